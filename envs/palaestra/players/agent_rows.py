"""The agents of all lanes as rows of one batch: what they see, may choose, do and earn.

What `palaestra.adapters.rows` and `palaestra.adapters.sb3` have in common. Row ``lane * A + k`` is agent k of a lane
(``agents="rows"``), or a row is a lane, played by one team as one agent (``agents="joint"``, A = 1).

Agents of unlike roles are padded to one space, see `palaestra.players.padding`. Dead agents stay in the batch (black
death): they see what the game shows to the dead (zeros, as a rule), their actions are ignored, and they earn what the
batch pays them: their team's reward, or where each agent has its own, what the game pays to the dead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from palaestra import registry
from palaestra.core.contract.actions import ActionError, as_array
from palaestra.core.contract.keywords import check_flag
from palaestra.core.faces.agent_io import NO_CODEC, AgentIO, ChoicesMode
from palaestra.core.faces.blocks import Form
from palaestra.core.faces.masks import refuse_before_reset
from palaestra.core.run.simulation import Simulation
from palaestra.players.padding import Part, common_action, common_observation

AgentsMode = Literal["rows", "joint"]


def simulation_of(
    given: Simulation | str,
    num_envs: int | None,
    team: str | None,
    agents: AgentsMode,
    observation: str | None,
    keywords: dict[str, Any],
    caller: str,
) -> tuple[Simulation, Form | None]:
    """The simulation that ``caller`` was given, or that of an id, and the form of its observations.

    Raises:
        ValueError, TypeError: A keyword, or its value, that ``caller``, `palaestra.make_batch` or the game refuses.
    """
    if not isinstance(given, str):
        if extra := [*keywords, *(["num_envs"] if num_envs is not None else [])]:
            raise TypeError(f"{', '.join(extra)}: only for an id; a simulation has them already")
        form: Any = observation  # its agent interface refuses what is no form
        return given, form
    if "control" in keywords:
        raise TypeError(f"control: not a keyword of {caller}, give team={keywords['control']!r}")
    num_envs = 1 if num_envs is None else num_envs
    if keywords.setdefault("autoreset_mode", "same_step") != "same_step":
        raise ValueError(f'{caller} knows autoreset_mode="same_step" only, not {keywords["autoreset_mode"]!r}')
    keywords |= {"observation": observation} if observation is not None else {}
    if agents == "rows" and team is None:
        if "opponent" in keywords:
            raise TypeError('opponent= needs team=; with agents="rows" and no team, give opponents={team: player}')
        sim = registry.make_batch(given, num_envs, **keywords)
        return sim, sim.game.shown_as(observation)[1]
    sim, face = registry.against(given, num_envs, {**keywords, "control": team})
    del face["control"]
    form = face.pop("observation")
    if face:
        sim.close()
        raise TypeError(f"{', '.join(face)}: not a keyword of {caller}")
    return sim, form


class AgentRows:
    """Rows of a simulation in ``autoreset_mode="same_step"``; see the module.

    Attributes:
        sim: The simulation.
        slots: Slots of a lane that the rows play, in their order.
        rows_per_lane, num_rows: A, and N * A.
        lane: Lane of each row, int64 ``[rows]``, read-only.
        team: Number of the team of each row in the order of ``game.teams``, likewise.
        observation_space, action_space: Spaces of one row.
        mask_width: Numbers M in the mask of a row, 0 where actions are real numbers.
        forbids: Whether some choice of some row may be forbidden: by the game, or as its role does not have it.
    """

    def __init__(
        self,
        sim: Simulation,
        team: str | None = None,
        agents: AgentsMode = "rows",
        observation: Form | None = None,
        choices: ChoicesMode = "separate",
        pad: bool = True,
    ) -> None:
        """Finds the rows.

        Args:
            sim: The simulation, whose other teams have opponents.
            team: Team that the rows play. None is the first team or, with ``agents="rows"``, all agents that have no
                opponent.
            agents: ``"rows"`` or ``"joint"``.
            observation: ``"flat"``, ``"dict"`` or None, the game's default.
            choices: ``"discrete"`` makes the choices of a row one Discrete and multiplies their masks out.
            pad: Whether agents of unlike roles are padded to one space; else they are refused.

        Raises:
            ValueError: The simulation cannot be seen in this way; the message gives what to change.
        """
        check_flag("pad", pad)
        game = sim.game
        if sim.autoreset_mode != "same_step":
            raise ValueError(f'the simulation must be made with autoreset_mode="same_step", not {sim.autoreset_mode!r}')
        if agents not in ("joint", "rows"):
            raise ValueError(f'agents must be "joint" or "rows", got {agents!r}')
        if team is not None and team not in game.teams:
            raise ValueError(f"{game.name} has no team {team!r}: choose from {', '.join(game.teams)}")
        self.sim, self.slots = sim, _slots(sim, team, agents)
        units = [self.slots] if agents == "joint" else [(slot,) for slot in self.slots]
        ios = [AgentIO(sim, unit, observation, codec=NO_CODEC, choices=choices) for unit in units]
        self.rows_per_lane, self.num_rows = len(units), sim.num_envs * len(units)
        self.lane = np.repeat(np.arange(sim.num_envs), len(units))
        self.team = np.tile(np.array([io.team for io in ios]), sim.num_envs)
        self.lane.flags.writeable = self.team.flags.writeable = False
        first = (ios[0].observation_space, ios[0].action_space)
        if not pad and any((io.observation_space, io.action_space) != first for io in ios):
            names = ", ".join(dict.fromkeys(game.role_of(slot)[0].name for slot in self.slots))
            raise ValueError(f"{game.name}: the roles {names} have different spaces: give pad=True, or choose a team")
        self.observation_space = common_observation(game.name, [io.observation_space for io in ios])
        self.action_space = common_action(game.name, [io.action_space for io in ios])
        by_slot = [Part(io, k, 1, io.action_space, self.action_space) for k, io in enumerate(ios)]
        self._moved = by_slot if agents == "joint" or choices == "discrete" else self._by_role(ios, observation)
        # Rows of one role without shared fields lie side by side in the simulation: a copy a role instead of one a row.
        shared = game.team_observation or game.lane_observation
        self._observed = by_slot if shared or ios[0].form == "dict" else self._moved
        self.forbids = game.legal is not None or any(part.padding and part.mask_width for part in self._moved)
        self.mask_width = self._moved[0].mask_width
        self._is_joint, self._adds_up = agents == "joint", agents == "rows" or game.reward == "agent"
        side_by_side = self.slots == tuple(range(self.slots[0], self.slots[-1] + 1))
        self._own: Any = slice(self.slots[0], self.slots[-1] + 1) if side_by_side else list(self.slots)

    def _by_role(self, ios: list[AgentIO], observation: Form | None) -> list[Part]:
        """Parts of one role each, whose slots lie side by side; of one agent each where no AgentIO holds them all."""
        parts, start = [], 0
        for _, members in itertools.groupby(self.slots, lambda slot: self.sim.game.role_of(slot)[0].name):
            slots = tuple(members)
            evenly = len(set(np.diff(slots).tolist())) < 2
            for group in [slots] if evenly else [(slot,) for slot in slots]:
                io = AgentIO(self.sim, group, observation, codec=NO_CODEC)
                parts.append(Part(io, start, len(group), ios[start].action_space, self.action_space))
                start += len(group)
        return parts

    # -- what rows see and earn ----------------------------------------------------------------------------------------

    def observe(self) -> Any:
        """Observations of all rows: an array ``[rows, ...]`` or a dict of such, the caller's own."""
        whole = self._observed[0].io
        if len(self._observed) == 1 and whole.form == "flat":
            return whole.observe(copy=True).reshape(self.num_rows, -1)
        return self._join(lambda io: io.observe(copy=False), self.sim.num_envs)

    def final_rows(self, lanes: np.ndarray) -> Any:
        """Last observations of the matches that just ended in ``lanes``, ``[len(lanes) * A, ...]``, copies."""
        return self._join(lambda io: io.final_rows(lanes), len(lanes))

    def _join(self, see: Callable[[AgentIO], Any], lanes: int) -> Any:
        if isinstance(self.observation_space, spaces.Dict):
            return _interleave([see(part.io) for part in self._observed])
        space: Any = self.observation_space
        joined = np.zeros((lanes, self.rows_per_lane, *space.shape), space.dtype)
        for part in self._observed:
            rows = see(part.io).reshape(lanes, part.count, -1)
            joined[:, part.at, : rows.shape[2]] = rows
        return joined.reshape(-1, *space.shape)

    def rewards(self) -> np.ndarray:
        """Rewards ``[rows]`` in the game's dtype, a copy; a team's is the sum where each member has its own."""
        return self.of_rows(self.sim.rewards) if self._adds_up else self.sim.rewards[:, self.slots[0]].copy()

    def of_rows(self, by_slot: np.ndarray) -> np.ndarray:
        """What the slots of an array ``[N, slots]`` hold, ``[rows]``: a copy; a team's sum, or whether any is true."""
        own: Any = by_slot[:, self._own]
        if not self._is_joint:
            return own.flatten()
        return own.any(axis=1) if own.dtype == np.bool_ else own.sum(axis=1)

    def of_lanes(self, by_lane: np.ndarray) -> np.ndarray:
        """The entries of the lanes (``[N, ...]``) of the rows, ``[rows, ...]``, a copy."""
        return by_lane.repeat(self.rows_per_lane, axis=0)

    # -- what rows may choose and do -----------------------------------------------------------------------------------

    def action_masks(self, final: bool = False) -> np.ndarray:
        """Masks bool ``[rows, M]`` of the choices side by side, lists of candidates made dense, the caller's own.

        Where the game forbids nothing all is allowed, and the no-op alone to a row that is not asked.

        Args:
            final: Those of the last observations of the matches that ended in this step, valid in their rows.

        Raises:
            AttributeError: No action is a choice.
            RuntimeError: No match has been started.
        """
        if not self.mask_width:
            raise AttributeError(f"{self.sim.game.name} has real numbers as actions: no mask forbids any")
        refuse_before_reset(self.sim)
        masks = np.empty((self.sim.num_envs, self.rows_per_lane, self.mask_width), np.bool_)
        for part in self._moved:
            masks[:, part.at] = part.masks(final)
        return masks.reshape(self.num_rows, -1)

    def write(self, actions: Any) -> None:
        """Takes the actions of all rows, in the batched form of `action_space`.

        Raises:
            ActionError: Wrong shape or kind. Ranges are the simulation's business.
        """
        is_dict = isinstance(actions, Mapping)
        by_lane = {name: self._by_lane(a) for name, a in actions.items()} if is_dict else self._by_lane(actions)
        for part in self._moved:
            part.write(by_lane)

    def _by_lane(self, actions: Any) -> np.ndarray:
        array = as_array(actions, "actions")
        if array.shape[:1] != (self.num_rows,):
            raise ActionError(f"there are {self.num_rows} rows, and actions of shape {array.shape}")
        return array.reshape(self.sim.num_envs, self.rows_per_lane, *array.shape[1:])


def _slots(sim: Simulation, team: str | None, agents: AgentsMode) -> tuple[int, ...]:
    """Slots that the rows play; all others must have an opponent."""
    game = sim.game
    open_slots = {name: slots for name in game.teams if (slots := sim.open_slots(name))}
    open_teams = list(open_slots)
    wanted = [team] if team is not None else open_teams if agents == "rows" else [next(iter(game.teams))]
    idle = [name for name in open_teams if name not in wanted]
    taken = [name for name in wanted if name not in open_teams]
    if idle:
        raise ValueError(f"{', '.join(idle)} has no player: call sim.set_opponent({idle[0]!r}, ...) first")
    if taken or not wanted:
        raise ValueError(f"{', '.join(taken) or 'every team'} of {game.name} is played by an opponent already")
    return tuple(sorted(slot for name in wanted for slot in open_slots[name]))


def listed(rows: Any) -> list[Any]:
    """The rows of an array, or of nested dicts of arrays, one by one."""
    if not isinstance(rows, dict):
        return list(rows)
    return [dict(zip(rows, row, strict=True)) for row in zip(*map(listed, rows.values()), strict=True)]


def _interleave(parts: list[Any]) -> Any:
    """Copies of what each agent of a lane sees (``[N, ...]``, or nested dicts of such) as ``[N * A, ...]``."""
    if isinstance(parts[0], dict):
        return {name: _interleave([part[name] for part in parts]) for name in parts[0]}
    stacked = np.stack(parts, axis=1)
    return stacked.reshape(-1, *stacked.shape[2:])
