"""The agents of all lanes as rows of one Gymnasium VectorEnv: one policy for all of them, no dependency but Gymnasium.

    from palaestra.adapters.rows import rows

    envs = rows("palaestra/TeamTag-v0", num_envs=64)  # 64 lanes of 4 agents: 256 rows
    observations, infos = envs.reset(seed=0)
    observations, rewards, terminated, truncated, infos = envs.step(envs.action_space.sample())

Row ``lane * A + k`` is agent k of a lane, in the order of ``envs.agents``: the order that SuperSuit's
``pettingzoo_env_to_vec_env_v1`` and ``concat_vec_envs_v1`` give. Agents of a team with an opponent have no row. Which
row plays where is in ``envs.lane`` and ``envs.team`` (int64 ``[rows]``).

* **Unlike roles** are padded: flat observations with zeros, choices with alternatives that the mask forbids (chosen all
  the same they are the choice's ``noop``), real numbers with some that are ignored.
* **Black death:** rows of agents that are dead, have not arrived or are not asked now stay in the batch. Their actions
  are ignored; dead ones see what the game shows to the dead (zeros, as a rule) and are paid what the batch pays them:
  their team's reward, or what the game gives to the dead where each agent has a reward of its own. All rows of a lane
  end together. An action counts where ``infos["acting"]`` was set before it: leave the others out of the loss.
* **Autoreset** is Gymnasium's SAME_STEP: rows of a lane that has ended show the next match; ``infos["final_obs"]`` (by
  row, None where no match ended) and ``infos["final_info"]`` hold the end of the last one.

Infos are numbers ``[rows, ...]``, the same keys in every step: ``acting``, ``alive``, ``team``, ``winner`` (number of a
team, -1) and ``end_reason`` (number, 0 while a match goes on), the game's own fields, and ``illegal`` and
``action_mask`` (int8 ``[rows, M]``) where choices may be forbidden.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from palaestra.core.faces.agent_io import (
    MASK_KEYS,
    NOBODY,
    RUNNING,
    ChoicesMode,
    MaskMode,
    check_mask_keys,
)
from palaestra.core.faces.attributes import RuleAttributes, has_parameter, only_where
from palaestra.core.faces.masks import NO_CHOICES
from palaestra.core.faces.reset_arguments import start_matches
from palaestra.core.faces.screen import check_render_mode
from palaestra.core.run.parameters import no_parameter
from palaestra.core.run.simulation import Simulation
from palaestra.players.agent_rows import AgentRows, AgentsMode, listed, simulation_of


def rows(
    sim: Simulation | str,
    num_envs: int | None = None,
    *,
    team: str | None = None,
    agents: AgentsMode = "rows",
    observation: str | None = None,
    mask: MaskMode = "auto",
    mask_keys: tuple[str, str] = MASK_KEYS,
    choices: ChoicesMode = "separate",
    pad: bool = True,
    render_mode: str | None = None,
    **keywords: Any,
) -> RowsVectorEnv:
    """Makes a VectorEnv whose rows are the agents of all lanes of a simulation or of an id.

    Args:
        sim: A simulation in ``autoreset_mode="same_step"``, or an id.
        num_envs: Number of lanes, for an id only; 1 if None. The VectorEnv's own ``num_envs`` is the number of rows.
        team: Team that the policy plays, the others have opponents (the game's default ones for an id). None is all
            agents that have no opponent.
        agents: ``"rows"``: a row is one agent. ``"joint"``: a row is a lane, its action that of the whole team.
        observation: ``"flat"`` (Box) or ``"dict"`` (Dict of Boxes), or for an id one of the game's representations
            (``"name"``, ``"name:dict"``); None is the game's default.
        mask: ``"info"`` (the default where some choice may be forbidden) gives ``infos["action_mask"]``, ``"obs"``
            observations ``{"observation", "action_mask"}``, None leaves the masks to `RowsVectorEnv.action_masks`.
        mask_keys: Other names for the two parts with ``mask="obs"``.
        choices: ``"discrete"`` makes the choices of a row one Discrete and multiplies their masks out.
        pad: False refuses agents of unlike roles instead of padding them.
        render_mode: ``"rgb_array"`` or None.
        **keywords: For an id: as for `palaestra.make_batch` (``opponents``, ``workers``, ``threads``, parameters, ...)
            and, with ``team``, ``opponent``.

    Raises:
        ValueError: The simulation cannot be seen in this way; the message gives what to change.
        TypeError: An unknown keyword, or one that goes with an id only.
    """
    made, form = simulation_of(sim, num_envs, team, agents, observation, keywords, "rows")
    return RowsVectorEnv(AgentRows(made, team, agents, form, choices, pad), mask, mask_keys, render_mode)


class RowsVectorEnv(RuleAttributes, VectorEnv):
    """Rows of a `Simulation`; see the module for what a row is, `rows` for the arguments.

    Attributes:
        sim: The simulation.
        agents: Names of the agents of a lane that have a row, in the order of these.
        lane: Lane of each row, int64 ``[rows]``, read-only.
        team: Number of the team of each row, likewise.
        team_names, end_reasons: Names of the numbers in ``team`` and in the infos.
    """

    _is_batch = True

    def __init__(
        self,
        agent_rows: AgentRows,
        mask: MaskMode = "auto",
        mask_keys: tuple[str, str] = MASK_KEYS,
        render_mode: str | None = None,
    ) -> None:
        """See `rows`."""
        self._rows, sim = agent_rows, agent_rows.sim
        self.sim, self.lane, self.team = sim, self._rows.lane, self._rows.team
        if mask not in (None, "info", "obs", "auto"):
            raise ValueError(f'mask must be None, "info" or "obs", got {mask!r}')
        self.team_names, self.end_reasons = sim.game.team_names, sim.game.all_end_reasons
        self.agents = tuple(sim.game.agents[slot] for slot in self._rows.slots)
        self.num_envs = self._rows.num_rows
        self.autoreset_mode = AutoresetMode.SAME_STEP
        modes = ["rgb_array"] if sim.game.render else []
        frames = {"render_modes": modes, "render_fps": sim.game.render_fps}
        self.metadata = {"autoreset_mode": self.autoreset_mode, **frames}
        self.render_mode = check_render_mode(render_mode, modes, sim.game.name)
        self.single_observation_space, self.single_action_space = self._rows.observation_space, self._rows.action_space
        has_masks = self._rows.mask_width > 0
        self._shows_masks = has_masks and (mask == "info" or (mask == "auto" and self._rows.forbids))
        self._mask_keys, self._wraps = check_mask_keys(mask_keys, mask), mask == "obs"
        if self._wraps:
            parts: dict[str, spaces.Space] = {self._mask_keys[0]: self.single_observation_space}
            if has_masks:
                parts[self._mask_keys[1]] = spaces.Box(0, 1, (self._rows.mask_width,), np.int8)
            self.single_observation_space = spaces.Dict(parts)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._own_fields = [f.name for f in sim.game.info]
        self._all = np.ones(self.num_envs, np.bool_)
        no_winner, no_reason = np.full(self.num_envs, NOBODY), np.full(self.num_envs, RUNNING)
        self._running = {"winner": no_winner, "end_reason": no_reason, "team": self.team}  # of all matches that go on
        for constant in (self._all, no_winner, no_reason):
            constant.flags.writeable = False
        self._take_rules(sim)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts a match in all lanes.

        Args:
            seed: Lane i gets ``seed + i``, or the i-th of a list of one a lane; a lane whose seed is None goes on.
            options: Parameters of the start of a match.

        Raises:
            ValueError: A wrong seed, or options.
        """
        start_matches(self.sim, options, seed=seed)
        self.closed = False
        return self._observe(), self._infos()

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays one decision in all lanes. Arrays are the caller's own, or read-only where they never change.

        Raises:
            ActionError: An action outside its space; names lane and agent. No match has moved.
        """
        sim, of_lanes = self.sim, self._rows.of_lanes
        self._rows.write(actions)
        sim.step()
        infos = self._infos()
        over = sim.terminated | sim.truncated
        if not over.any():  # the common case
            terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        else:
            terminated, truncated = of_lanes(sim.terminated), of_lanes(sim.truncated)
            self._add_ends(np.flatnonzero(over), terminated | truncated, infos)
        return self._observe(), self._rows.rewards(), terminated, truncated, infos

    @only_where(lambda envs: envs._rows.mask_width > 0, NO_CHOICES)
    def action_masks(self) -> np.ndarray:
        """Masks bool ``[rows, M]`` of the choices side by side; only where actions are choices."""
        return self._rows.action_masks()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What each row has under a name: a parameter of the rules, an attribute of this, or a picture (``render``)."""
        if has_parameter(self.sim, name):
            return tuple(self._rows.of_lanes(self.sim.parameters[name]).tolist())
        if name == "render":
            pictures = self.render() or (None,) * self.sim.num_envs
            return tuple(pictures[lane] for lane in self.lane)
        value = getattr(self, f"single_{name}" if name in ("observation_space", "action_space") else name)
        if callable(value):
            raise AttributeError(f"rows have no {name}() of their own: call it on the vector environment")
        return (value,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """As `call`."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Changes a parameter of the rules in all lanes (a number), or in each (a list ``[N]``)."""
        if not has_parameter(self.sim, name):
            raise AttributeError(no_parameter(self.sim.game, name))
        self.sim.set_parameters(**{name: np.array(values) if isinstance(values, list | tuple) else values})

    def render(self) -> Any:
        """Pictures (uint8 ``[H, W, 3]``) of all lanes as a tuple; None without a render mode."""
        return None if self.render_mode is None else tuple(self.sim.render(i) for i in range(self.sim.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Frees what the simulation holds; the next call takes it again."""
        self.sim.suspend()

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _observe(self) -> Any:
        seen = self._rows.observe()
        return self._wrapped(seen, slice(None)) if self._wraps else seen

    def _wrapped(self, seen: Any, which: Any, final: bool = False) -> dict[str, Any]:
        parts = {self._mask_keys[0]: seen}
        if self._rows.mask_width:
            parts[self._mask_keys[1]] = self._rows.action_masks(final)[which].view(np.int8)
        return parts

    def _infos(self) -> dict[str, Any]:
        """Infos of the matches that go on."""
        sim, of_rows = self.sim, self._rows.of_rows
        flags = {"acting": of_rows(sim.acting), "alive": of_rows(sim.alive)}
        return self._with_flags({**self._columns(sim.info), **self._running, **flags}, self._all)

    def _columns(self, info: dict[str, np.ndarray], final: bool = False) -> dict[str, np.ndarray]:
        rows = self._rows
        columns = {name: rows.of_lanes(info[name]) for name in self._own_fields}
        if self.sim.legal is not None:
            columns["illegal"] = rows.of_rows(info["illegal"])
        if self._shows_masks:
            columns["action_mask"] = rows.action_masks(final).view(np.int8)
        return columns

    def _with_flags(self, columns: dict[str, np.ndarray], which: np.ndarray) -> dict[str, Any]:
        """Gymnasium's form: beside each column, which rows have it."""
        return {**columns, **{f"_{name}": which for name in columns}}

    def _add_ends(self, lanes: np.ndarray, over: np.ndarray, infos: dict[str, Any]) -> None:
        """What was last seen in the ``lanes`` whose match ended in this step, for their rows ``over``."""
        rows, info = self._rows, self.sim.final_info
        seen = rows.final_rows(lanes)
        seen = self._wrapped(seen, over, final=True) if self._wraps else seen
        finals = np.full(self.num_envs, None, dtype=object)
        finals[over] = np.fromiter(listed(seen), object)
        columns = self._columns(info, final=True)
        for column in columns.values():
            column[~over] = 0
        for name, constant in self._running.items():
            columns[name] = constant if name == "team" else np.where(over, rows.of_lanes(info[name]), constant)
        columns["acting"] = columns["alive"] = np.zeros(self.num_envs, np.bool_)
        infos["final_obs"], infos["_final_obs"] = finals, over
        infos["final_info"], infos["_final_info"] = self._with_flags(columns, over), over


__all__ = ["RowsVectorEnv", "rows"]
