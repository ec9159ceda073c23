"""Stable-Baselines3's VecEnv on a simulation: N lanes in one call, no Python loop over environments.

    from stable_baselines3 import PPO
    from palaestra.adapters.sb3 import as_vec_env

    PPO("MlpPolicy", as_vec_env("palaestra/CartPole-v0", 64)).learn(100_000)

A row of the VecEnv is a lane, played by one team (``agents="joint"``: a team of several is one agent with a joint
action), or one agent of a lane (``agents="rows"``: all agents share the policy). As Stable-Baselines3 wants it, a lane
that ends starts anew in the same step; its rows get ``terminal_observation`` and ``TimeLimit.truncated`` in their info,
all other infos are empty dicts, the same objects in every step.

Rows of agents that are dead, or not asked for an action now, stay in the batch: their actions are ignored, dead ones
see what the game shows to the dead (zeros, as a rule) and earn their team's reward until the match ends, and only then
are their rows done. `SimulationVecEnv.acting` shows a learner which rows it may leave out of its loss.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np

from palaestra import registry
from palaestra.core.faces.agent_io import NO_CODEC, AgentIO
from palaestra.core.faces.blocks import Form
from palaestra.core.faces.screen import check_render_mode
from palaestra.core.simulation import Simulation

try:
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError(
        'palaestra.adapters.sb3 needs Stable-Baselines3, which is not installed: pip install "palaestra[baselines]"'
    ) from error

AgentsMode = Literal["joint", "rows"]


def as_vec_env(
    sim: Simulation | str,
    num_envs: int | None = None,
    *,
    team: str | None = None,
    agents: AgentsMode = "joint",
    observation: str | None = None,
    monitor: bool = False,
    render_mode: str | None = None,
    **keywords: Any,
) -> SimulationVecEnv:
    """Makes a Stable-Baselines3 VecEnv of a simulation or of an id.

    Args:
        sim: A simulation in ``autoreset_mode="same_step"``, whose other teams have opponents, or an id.
        num_envs: Number of lanes, for an id only; 1 if None.
        team: Team that the policy plays. None is the first team or, with ``agents="rows"``, all agents that have no
            opponent.
        agents: ``"joint"``: a row is a lane, its action that of the whole team. ``"rows"``: a row is one agent, number
            ``lane * A + k``.
        observation: ``"flat"`` (Box) or ``"dict"`` (Dict of Boxes, for ``MultiInputPolicy``), or for an id one of the
            game's representations (``"name"``, ``"name:dict"``); None is the game's default.
        monitor: Put the return and length of each finished match into ``info["episode"]``, as SB3's Monitor does.
        render_mode: ``"rgb_array"`` or None.
        **keywords: For an id: as for `palaestra.make_batch` (``workers``, ``threads``, parameters, ...), and
            ``opponent``.

    Raises:
        ValueError: The simulation cannot be seen in this way; says what to change.
        TypeError: Keywords that go with an id only.
    """
    if isinstance(sim, str):
        keywords |= {"observation": observation} if observation is not None else {}
        made = _simulation(sim, num_envs or 1, team, agents, keywords)
        return SimulationVecEnv(made, team, agents, made.game.shown_as(observation)[1], monitor, render_mode)
    given = [*keywords, *(["num_envs"] if num_envs is not None else [])]
    if given:
        raise TypeError(f"{', '.join(given)}: only for an id; a simulation has them already")
    form: Any = observation  # its agent interface refuses what is no form
    return SimulationVecEnv(sim, team, agents, form, monitor, render_mode)


def _simulation(id: str, num_envs: int, team: str | None, agents: AgentsMode, keywords: dict[str, Any]) -> Simulation:
    if keywords.setdefault("autoreset_mode", "same_step") != "same_step":
        raise ValueError('Stable-Baselines3 knows autoreset_mode="same_step" only')
    if agents == "rows" and team is None:
        if "opponent" in keywords:
            raise TypeError('opponent= needs team=; with agents="rows" and no team, give opponents={team: player}')
        return registry.make_batch(id, num_envs, **keywords)
    sim, face = registry.against(id, num_envs, {**keywords, "control": team})
    face.pop("control")
    if face:
        sim.close()
        raise TypeError(f"{', '.join(face)}: not a keyword of as_vec_env")
    return sim


class SimulationVecEnv(VecEnv):
    """Rows of a `Simulation`; see the module for what a row is, `as_vec_env` for the arguments.

    Attributes:
        sim: The simulation.
        slots: Slots of a lane that the policy plays.
        rows_per_lane: Rows of one lane: 1, or the number of slots with ``agents="rows"``.
    """

    def __init__(
        self,
        sim: Simulation,
        team: str | None = None,
        agents: AgentsMode = "joint",
        observation: Form | None = None,
        monitor: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """See `as_vec_env`."""
        game = sim.game
        if sim.autoreset_mode != "same_step":
            raise ValueError(f'the simulation must be made with autoreset_mode="same_step", not {sim.autoreset_mode!r}')
        if agents not in ("joint", "rows"):
            raise ValueError(f'agents must be "joint" or "rows", got {agents!r}')
        if team is not None and team not in game.teams:
            raise ValueError(f"{game.name} has no team {team!r}: choose from {', '.join(game.teams)}")
        self.sim, self.monitor = sim, monitor
        self.slots = _slots(sim, team, agents)
        self.rows_per_lane = len(self.slots) if agents == "rows" else 1
        self._joint = AgentIO(sim, self.slots, observation, codec=NO_CODEC)
        self._agent_ios = [self._joint]
        if agents == "rows":
            roles = {game.role_of(slot)[0].name for slot in self.slots}
            if len(roles) > 1:
                names = ", ".join(sorted(roles))
                raise ValueError(f'agents="rows" needs agents with the same tables, not {names}: choose a team')
            self._agent_ios = [AgentIO(sim, (slot,), observation, codec=NO_CODEC) for slot in self.slots]
        # Rows of one role without shared fields lie side by side in the simulation: one reshape instead of a loop.
        shared = game.team_observation or game.lane_observation
        self._side_by_side = agents == "rows" and self._joint.form == "flat" and not shared
        first = self._agent_ios[0]
        if isinstance(first.action_space, gymnasium.spaces.Dict):
            raise ValueError(f"{game.name} has composite actions, a Dict, which Stable-Baselines3 has no policy for")
        self._render_mode = check_render_mode(render_mode, ["rgb_array"] if game.render else [], game.name)
        rows = sim.num_envs * self.rows_per_lane
        super().__init__(rows, first.observation_space, first.action_space)
        self._adds_up = agents == "joint" and game.reward == "agent"
        self._reward_slots: Any = list(self.slots) if self._adds_up or self.rows_per_lane > 1 else self.slots[0]
        self._empty_infos: list[dict[str, Any]] = [{} for _ in range(rows)]
        self._returns, self._lengths = np.zeros(rows), np.zeros(rows, np.int64)
        self._started_s = time.time()

    # -- SB3's verbs ---------------------------------------------------------------------------------------------------

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Gives lane i the stream ``seed + i`` at the next reset; all rows of a lane report the lane's seed."""
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        self._seeds = [seed + row // self.rows_per_lane for row in range(self.num_envs)]
        return self._seeds

    def reset(self) -> Any:
        """Starts a match in all lanes; without an earlier `seed` the lanes' streams go on."""
        lane_seeds = self._seeds[:: self.rows_per_lane]
        self.sim.reset(seed=None if None in lane_seeds else np.array(lane_seeds, np.uint64))
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0.0, 0
        return self._observe()

    def step_async(self, actions: np.ndarray) -> None:
        """Takes the actions of all rows.

        Raises:
            ActionError: Wrong shape or kind.
        """
        if self.rows_per_lane > 1:
            actions = np.asarray(actions)
            actions = actions.reshape(self.sim.num_envs, self.rows_per_lane, *actions.shape[1:])
        self._joint.write(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Plays one decision in all lanes. All arrays are the caller's own.

        Raises:
            ActionError: An action outside its space; names lane and agent. No match has moved.
        """
        sim = self.sim
        sim.step()
        rewards = np.array(sim.rewards[:, self._reward_slots])
        rewards = rewards.sum(axis=1) if self._adds_up else rewards.reshape(-1)
        over = sim.terminated | sim.truncated
        if self.monitor:
            self._returns += rewards
            self._lengths += 1
        infos = self._final_infos(over) if over.any() else self._empty_infos
        dones = over if self.rows_per_lane == 1 else np.repeat(over, self.rows_per_lane)
        return self._observe(), rewards, dones, infos

    def close(self) -> None:
        """Frees the simulation."""
        self.sim.close()

    # -- attributes of rows --------------------------------------------------------------------------------------------

    @property
    def acting(self) -> np.ndarray:
        """Rows whose action counts in the next step, bool ``[rows]``."""
        if self.rows_per_lane > 1:
            return self.sim.acting[:, list(self.slots)].reshape(-1)
        return self.sim.acting[:, list(self.slots)].any(axis=1)

    def action_masks(self) -> np.ndarray:
        """Masks bool ``[rows, M]`` of the choices side by side, lists of candidates made dense.

        Raises:
            AttributeError: The game forbids nothing.
        """
        masks = [agent_io.action_masks() for agent_io in self._agent_ios]
        return np.stack(masks, axis=1).reshape(self.num_envs, -1)

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Values of a name, one a row.

        The name is a parameter of the game, ``action_masks`` (a function), ``acting``, or an attribute of this object
        or its simulation.

        Raises:
            AttributeError: No environment has it.
        """
        rows = self._get_indices(indices)
        if attr_name == "render_mode":
            return [self._render_mode for _ in rows]
        if attr_name == "action_masks":
            self.action_masks()
            return [partial(self._mask_of, row) for row in rows]
        if attr_name in self.sim.parameters:
            values = self.sim.parameters[attr_name]
            return [float(values[row // self.rows_per_lane]) for row in rows]
        if attr_name == "acting":
            return [bool(self.acting[row]) for row in rows]
        value = getattr(self if hasattr(self, attr_name) else self.sim, attr_name)
        return [value for _ in rows]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets a parameter of the game in the lanes of the rows, or an attribute of this object."""
        if attr_name in self.sim.parameters:
            lanes = sorted({row // self.rows_per_lane for row in self._get_indices(indices)})
            self.sim.set_parameters(lanes=np.array(lanes, np.int64), **{attr_name: value})
        else:
            setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Calls a method once a row; ``action_masks`` is what MaskablePPO calls."""
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[row] for row in self._get_indices(indices)]
        return [method(*method_args, **method_kwargs) for method in self.get_attr(method_name, indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Whether the rows behave as if wrapped: true for SB3's Monitor with ``monitor=True``."""
        wrapped = self.monitor and isinstance(wrapper_class, type) and issubclass(wrapper_class, Monitor)
        return [wrapped for _ in self._get_indices(indices)]

    def get_images(self) -> Sequence[np.ndarray | None]:
        """Pictures of the lanes."""
        return [self.sim.render(lane) for lane in range(self.sim.num_envs)]

    # -- helpers -------------------------------------------------------------------------------------------------------

    def _observe(self) -> Any:
        if self.rows_per_lane == 1:
            return _writable(self._agent_ios[0].observe(copy=True))
        if self._side_by_side:
            return self._joint.observe(copy=True).reshape(self.num_envs, -1)
        return _interleave([agent_io.observe(copy=False) for agent_io in self._agent_ios], self.num_envs)

    def _final_infos(self, over: np.ndarray) -> list[dict[str, Any]]:
        infos = list(self._empty_infos)
        lanes = np.flatnonzero(over)
        ends = self._ends_of(lanes)
        for k, agent_io in enumerate(self._agent_ios):
            seen = agent_io.final_rows(lanes)
            for i, lane in enumerate(lanes.tolist()):
                row = lane * self.rows_per_lane + k
                infos[row] = info = {**ends[i], "terminal_observation": _writable(_row_of(seen, i))}
                if self.monitor:
                    seconds = round(time.time() - self._started_s, 6)
                    info["episode"] = {"r": float(self._returns[row]), "l": int(self._lengths[row]), "t": seconds}
        if self.monitor:
            over_rows = np.repeat(over, self.rows_per_lane)
            self._returns[over_rows], self._lengths[over_rows] = 0.0, 0
        return infos

    def _ends_of(self, lanes: np.ndarray) -> list[dict[str, Any]]:
        """The info of all rows of a finished lane: as the info of the Gymnasium face in the last step."""
        sim = self.sim
        columns: dict[str, list[Any]] = {"TimeLimit.truncated": sim.truncated[lanes].tolist()}
        for name, array in sim.final_info.items():
            rows = array[lanes]
            columns[name] = rows.tolist() if rows.ndim == 1 else list(rows)
        if sim.legal is None:
            del columns["illegal"]
        else:
            columns["illegal"] = [int(counts[list(self.slots)].sum()) for counts in columns["illegal"]]
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def _mask_of(self, row: int) -> np.ndarray:
        return self.action_masks()[row]


def _slots(sim: Simulation, team: str | None, agents: AgentsMode) -> tuple[int, ...]:
    """Slots that the policy plays; all others must have an opponent."""
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
    return tuple(slot for name in wanted for slot in open_slots[name])


def _row_of(rows: Any, i: int) -> Any:
    return {name: _row_of(member, i) for name, member in rows.items()} if isinstance(rows, dict) else rows[i]


def _writable(seen: Any) -> Any:
    """The same with copies of the arrays of the world, as torch takes no array that cannot be written to."""
    if isinstance(seen, dict):
        return {name: _writable(member) for name, member in seen.items()}
    return seen if seen.flags.writeable else seen.copy()


def _interleave(parts: list[Any], rows: int) -> Any:
    """Observations of the agent interfaces, row ``lane * A + k`` from agent interface k."""
    if isinstance(parts[0], dict):
        return {name: _interleave([part[name] for part in parts], rows) for name in parts[0]}
    stacked = np.stack(parts, axis=1)
    return stacked.reshape(rows, *stacked.shape[2:])


__all__ = ["AgentsMode", "SimulationVecEnv", "as_vec_env"]
