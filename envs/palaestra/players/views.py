"""A team as a learner saw it: the rows that a Gymnasium face or an adapter shows, from the arrays of a Python player.

A model is trained on the observations of a face (one vector or dict of a team, or of each agent). As a player it is
handed arrays of the team instead. A `TeamView` writes these into the memory of a simulation that plays nothing and
reads them through the agent interface of that face, so both ways give the same numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces

from palaestra.core.compile.batch_loop import RANDOM
from palaestra.core.contract.fields import values_of
from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game
from palaestra.players.agent_rows import AgentRows, AgentsMode
from palaestra.players.padding import choice_sizes


class Board(Simulation):
    """The memory of N lanes that hold what a team sees; it plays nothing and compiles nothing."""

    def __init__(self, game: Game, lanes: int) -> None:
        """Allocates."""
        super().__init__(game, lanes, autoreset_mode="same_step", compiled=False)
        self.guard.started = True  # what a team sees is of matches that go on elsewhere

    def _reset_lanes(self, which: np.ndarray) -> None:
        self._refuse()

    def _step_lanes(self) -> int:
        self._refuse()

    def _refresh_lanes(self, which: np.ndarray) -> None:
        self._refuse()

    def _write_state(self, out: np.ndarray) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise RuntimeError("this simulation holds observations and plays no match")


@dataclass(frozen=True)
class Way:
    """How a model sees a team.

    Attributes:
        agents: ``"joint"``: a row is a lane, its action that of the whole team; ``"rows"``: a row is one agent.
        form: ``"flat"``, ``"dict"`` or None, the game's default.
        choices: ``"separate"`` or ``"discrete"``, all choices of a row as one.
        all_teams: Rows are padded to the agents of all teams, as they are where all agents share one policy.
    """

    agents: AgentsMode
    form: Form | None
    choices: ChoicesMode
    all_teams: bool = False


class TeamView:
    """The rows of one team in one `Way`.

    Attributes:
        way: The way.
        observation_space, action_space: Gymnasium spaces of one row.
        rows_per_lane: Rows of a lane: 1, or the number of the team's agents.
        sizes: Alternatives of each choice of a row; empty for real numbers.
    """

    def __init__(self, game: Game, team: str, way: Way) -> None:
        """Makes the spaces.

        Raises:
            ValueError: The team cannot be seen in this way.
        """
        self.game, self.team, self.way = game, team, way
        self._make(1)
        self.observation_space, self.action_space = self._rows.observation_space, self._rows.action_space
        own = [k for k, slot in enumerate(self._rows.slots) if slot in game.teams[team]]
        self._own = [0] if way.agents == "joint" else own
        self.rows_per_lane = len(self._own)
        self.sizes = choice_sizes(self.action_space)

    @property
    def is_choice_of_agent(self) -> bool:
        """Whether a row is an agent that makes one choice."""
        roles = self.game.team_roles(self.team)
        is_one = all(len(role.action) == 1 for role in self.game.roles if role.name in roles)
        return is_one and len(self.sizes) == 1 and (self.way.agents == "rows" or len(self.game.teams[self.team]) == 1)

    def _make(self, lanes: int) -> None:
        """Allocates room for that many lanes."""
        game = self.game
        self._board = Board(game, lanes)
        if not self.way.all_teams:
            for other in (slots for name, slots in game.teams.items() if name != self.team):
                self._board.states["assigned_player"][:, other] = RANDOM
        team = None if self.way.all_teams else self.team
        self._rows = AgentRows(self._board, team, self.way.agents, self.way.form, self.way.choices)

    def show(self, observations: Any, legal: Any, acting: np.ndarray) -> tuple[Any, np.ndarray | None]:
        """The arrays of a player, as rows.

        Args:
            observations: See `palaestra.core.run.opponents.Opponent.act`.
            legal: Likewise.
            acting: Likewise.

        Returns:
            Observations ``[n * rows_per_lane, ...]`` (an array or a dict of arrays) and masks bool
            ``[n * rows_per_lane, M]``, None where nothing is forbidden.
        """
        n = len(acting)
        if n > self._board.num_envs:
            self._make(n)
        self._write(observations, legal, acting)
        forbids = self._rows.forbids and self._rows.mask_width > 0
        masks = self._of_team(self._rows.action_masks(), n) if forbids else None
        return self._of_team(self._rows.observe(), n), masks

    def team_actions(self, actions: Any, n: int) -> Any:
        """Actions of the rows (in the batched form of `action_space`) as a player returns them."""
        board, rows = self._board, self._rows
        if isinstance(actions, Mapping):
            raise TypeError(f"{self.game.name} has composite actions: write an Opponent, or a callable on its arrays")
        given = np.asarray(actions).reshape(n, self.rows_per_lane, *np.shape(actions)[1:])
        whole = np.zeros((board.num_envs, rows.rows_per_lane, *given.shape[2:]), given.dtype)
        whole[:n, self._own] = given
        rows.write(whole.reshape(-1, *given.shape[2:]))
        parts = {
            name: (board.actions if isinstance(board.actions, np.ndarray) else board.actions[name])[:n, slots]
            for name, slots in self.game.team_roles(self.team).items()
        }
        return next(iter(parts.values())) if len(parts) == 1 else parts

    def empty(self) -> Any:
        """Observations of one lane, all zero: to see whether a model takes them."""
        return self._of_team(self._rows.observe(), 1)

    def _of_team(self, rows: Any, n: int) -> Any:
        """The team's rows of the first n lanes."""
        if isinstance(rows, dict):
            return {name: self._of_team(part, n) for name, part in rows.items()}
        by_lane = rows.reshape(-1, self._rows.rows_per_lane, *rows.shape[1:])[:n, self._own]
        return by_lane.reshape(-1, *rows.shape[1:])

    def _write(self, observations: Any, legal: Any, acting: np.ndarray) -> None:
        game, board, n = self.game, self._board, len(acting)
        roles = game.team_roles(self.team)
        alone = len(roles) == 1
        for name, slots in roles.items():
            shown = observations if not isinstance(observations, Mapping) else observations[name]
            target = board.observations if isinstance(board.observations, np.ndarray) else board.observations[name]
            target[:n, slots] = shown
            if legal is not None and board.legal is not None:
                target = board.legal if isinstance(board.legal, np.ndarray) else board.legal[name]
                target[:n, slots] = legal if alone else legal[name]
        slots = list(game.teams[self.team])
        board.states["acting"][:n, slots] = board.states["alive"][:n, slots] = acting
        memory: Any = board.buffers.observations
        number = list(game.teams).index(self.team)
        for f in game.team_observation:
            values_of(memory["team"], f)[:n, number] = observations["team"][f.name]
        for f in (f for f in game.lane_observation if f.world is None):
            values_of(memory["lane"], f)[:n] = observations["lane"][f.name]

    def __str__(self) -> str:
        what = f"the whole of {self.team}" if self.way.agents == "joint" else f"each agent of {self.team}"
        padded = " (padded to all roles)" if self.way.all_teams else ""
        return f"{what}{padded}: {space_text(self.observation_space)} -> {space_text(self.action_space)}"


def space_text(space: spaces.Space) -> str:
    """A space in short: a Box by its shape."""
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(f'{name}: {space_text(part)}' for name, part in space.items())})"
    return f"Box{space.shape}" if isinstance(space, spaces.Box) else str(space)


def views_of(game: Game, team: str, ways: list[Way]) -> Iterator[TeamView]:
    """The views of a team that there are among some ways, each pair of spaces once a kind of row."""
    seen: list[Any] = []
    for way in ways:
        try:
            view = TeamView(game, team, way)
        except ValueError:
            continue
        shown = (view.observation_space, view.action_space, view.rows_per_lane)
        if shown not in seen:
            seen.append(shown)
            yield view
