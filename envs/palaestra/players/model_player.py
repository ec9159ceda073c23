"""A model of any library as the player of a team: how it sees the team is found when it is assigned."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.core.files import FileError
from palaestra.game import Game
from palaestra.players.agent_rows import AgentsMode
from palaestra.players.choosing import Chance
from palaestra.players.views import TeamView, Way, views_of


class Model(Protocol):
    """What `ModelPlayer` asks of a model of any library.

    Attributes:
        name: What to call it in tables.
        forms: Forms of observation that it may have been trained on, in the order in which to try them; (None,) is the
            game's default.
        choices: Likewise how its choices may be joined.
        outputs: What the last `act` computed for the alternatives of all choices side by side, ``[rows, M]`` by name.
        spaces: What it sees and gives, as text; empty if unknown. Such models are tried with zeros, and have
            to fit in one way only.
    """

    name: str
    outputs: Mapping[str, np.ndarray]

    @property
    def forms(self) -> tuple[Form | None, ...]: ...  # noqa: D102
    @property
    def choices(self) -> tuple[ChoicesMode, ...]: ...  # noqa: D102
    @property
    def spaces(self) -> str: ...  # noqa: D102

    def refusal(self, view: TeamView) -> str:
        """Why the model does not fit the rows of a view; empty if it does."""
        ...

    def act(self, view: TeamView, rows: Any, masks: np.ndarray | None, chance: Chance | None) -> np.ndarray:
        """Actions of the rows in the batched form of ``view.action_space``; the likeliest without ``chance``.

        Raises:
            ValueError: The model has no distribution to draw from, or gave NaN.
        """
        ...


class ModelPlayer:
    """A model that becomes an `palaestra.core.run.opponents.Opponent` of a team when it is assigned to one.

    Attributes:
        name: What to call it in tables.
    """

    def __init__(
        self, model: Model, deterministic: bool = True, agents: AgentsMode | None = None, file: Path | None = None
    ) -> None:
        """See `palaestra.players.models.as_opponent`; ``file`` is where the model came from."""
        self.model, self.deterministic, self.file = model, deterministic, file
        self.agents: AgentsMode | None = agents
        self.name = model.name if file is None else file.stem

    def for_team(self, game: Game, team: str) -> TeamPlayer:
        """The player of one team.

        Raises:
            ValueError: The model sees or does something else than the team; names what both see and do.
        """
        modes: list[AgentsMode] = ["joint", "rows"]
        if self.agents is not None:
            modes = [self.agents]
        ways = [
            Way(mode, form, choices, all_teams)
            for mode in modes
            for all_teams in ((False,) if mode == "joint" else (False, True))
            for choices in self.model.choices
            for form in self.model.forms
        ]
        views = list(views_of(game, team, ways))
        reasons = [self.model.refusal(view) for view in views]
        fitting = [view for view, reason in zip(views, reasons, strict=True) if not reason]
        if not fitting:
            spaces = self.model.spaces or "; ".join(dict.fromkeys(reasons))
            raise self._error(
                f"the model does not fit {team} of {game.name}. The model: {spaces or 'nothing'}. The team, "
                f"{'; '.join(map(str, views)) or 'nothing that a model of this kind can see'}"
            )
        if not self.model.spaces and len({view.way.agents for view in fitting}) > 1:
            raise self._error(
                f'the model takes both {" and ".join(map(str, fitting))}: choose by agents="joint" or agents="rows"'
            )
        return TeamPlayer(self, game, team, fitting[0].way)

    def _error(self, text: str) -> ValueError:
        return ValueError(f"{self.name}: {text}") if self.file is None else FileError(f"{self.file}: {text}")


class TeamPlayer:
    """A model as the player of one team: an `palaestra.core.run.opponents.Opponent`.

    Attributes:
        name: What to call it in tables.
        memory_size, kept_size: 1 where it draws its actions, the number of its decisions in the lane; else 0.
        way: How the model sees the team.
        policy_outputs: See `palaestra.core.run.opponents.Opponent`.
    """

    def __init__(self, player: ModelPlayer, game: Game, team: str, way: Way) -> None:
        """See `ModelPlayer.for_team`."""
        self.player, self.game, self.team, self.way = player, game, team, way
        self.name = player.name
        self.memory_size = self.kept_size = int(not player.deterministic)
        self._number = list(game.teams).index(team)
        self._view: TeamView | None = None
        self.policy_outputs = dict[str, np.ndarray]()

    def act(
        self,
        observations: Any,
        legal: Any,
        acting: np.ndarray,
        first: np.ndarray,
        seeds: np.ndarray,
        memory: np.ndarray,
    ) -> Any:
        """See `palaestra.core.run.opponents.Opponent`.

        Raises:
            ValueError: The model cannot draw, or gave NaN; names it.
        """
        view = self._view = self._view or TeamView(self.game, self.team, self.way)
        rows, masks = view.show(observations, legal, acting)
        chance = None
        if self.memory_size:
            memory[:, 0] += 1.0
            chance = Chance(seeds, memory[:, 0], view.rows_per_lane, self._number)
        try:
            chosen = self.player.model.act(view, rows, masks, chance)
            self.policy_outputs = {}
            if view.is_choice_of_agent:
                outputs = self.player.model.outputs.items()
                self.policy_outputs = {name: table.reshape(*acting.shape, -1) for name, table in outputs}
            return view.team_actions(chosen, len(acting))
        except ValueError as error:
            where = self.name if self.player.file is None else self.player.file
            kind = ValueError if self.player.file is None else FileError
            raise kind(f"{where}, {self.team} of {self.game.name}: {error}") from error

    def __getstate__(self) -> dict[str, Any]:
        """Copies make their own view."""
        return {**vars(self), "_view": None, "policy_outputs": {}}

    def __deepcopy__(self, memo: dict) -> TeamPlayer:
        """Copies of a simulation share their players."""
        return self
