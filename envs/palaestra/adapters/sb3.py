"""Stable-Baselines3's VecEnv on a simulation: N lanes in one call, no Python loop over environments.

    from stable_baselines3 import PPO
    from palaestra.adapters.sb3 import as_vec_env

    PPO("MlpPolicy", as_vec_env("palaestra/CartPole-v0", 64)).learn(100_000)

A row of the VecEnv is a lane, played by one team (``agents="joint"``: a team of several is one agent with a joint
action), or one agent of a lane (``agents="rows"``: all agents share the policy, those of unlike roles are padded; see
`palaestra.adapters.rows`, whose rows these are). As Stable-Baselines3 wants it, a lane
that ends starts anew in the same step; its rows get ``terminal_observation`` and ``TimeLimit.truncated`` in their info,
all other infos are empty dicts, the same objects in every step.

Rows of agents that are dead, or not asked for an action now, stay in the batch: their actions are ignored, dead ones
see what the game shows to the dead (zeros, as a rule) and earn their team's reward until the match ends, and only then
are their rows done. `SimulationVecEnv.acting` shows a learner which rows it may leave out of its loss.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from palaestra.core.contract.keywords import check_flag
from palaestra.core.faces.agent_io import ChoicesMode
from palaestra.core.faces.attributes import RuleAttributes, has_parameter, only_where
from palaestra.core.faces.blocks import Form
from palaestra.core.faces.goals import NO_GOALS, compute_reward, has_goals
from palaestra.core.faces.masks import NO_CHOICES
from palaestra.core.faces.reset_arguments import check_options
from palaestra.core.faces.screen import check_render_mode
from palaestra.core.rng import check_seed
from palaestra.core.run.parameters import no_parameter
from palaestra.core.run.simulation import Simulation
from palaestra.game import Importing
from palaestra.players.agent_rows import AgentRows, AgentsMode, listed, simulation_of

with Importing(
    "stable_baselines3",
    'palaestra.adapters.sb3 needs Stable-Baselines3, which is not installed: pip install "palaestra[baselines]"',
):
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv


def as_vec_env(
    sim: Simulation | str,
    num_envs: int | None = None,
    *,
    team: str | None = None,
    agents: AgentsMode = "joint",
    observation: str | None = None,
    choices: ChoicesMode = "separate",
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
        choices: ``"discrete"`` makes the choices of a row one Discrete, for DQN.
        monitor: Put the return and length of each finished match into ``info["episode"]``, as SB3's Monitor does.
        render_mode: ``"rgb_array"`` or None.
        **keywords: For an id: as for `palaestra.make_batch` (``workers``, ``threads``, parameters, ...), and
            ``opponent``.

    Raises:
        ValueError: The simulation cannot be seen in this way; the message gives what to change.
        TypeError: Keywords that go with an id only.
    """
    made, form = simulation_of(sim, num_envs, team, agents, observation, keywords, "as_vec_env")
    return SimulationVecEnv(made, team, agents, form, choices, monitor, render_mode)


class SimulationVecEnv(RuleAttributes, VecEnv):
    """Rows of a `Simulation`; see the module for what a row is, `as_vec_env` for the arguments.

    Attributes:
        sim: The simulation.
        rows: Its rows.
        slots: Slots of a lane that the policy plays.
        rows_per_lane: Rows of one lane: 1, or the number of slots with ``agents="rows"``.
    """

    _is_batch = True

    def __init__(
        self,
        sim: Simulation,
        team: str | None = None,
        agents: AgentsMode = "joint",
        observation: Form | None = None,
        choices: ChoicesMode = "separate",
        monitor: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """See `as_vec_env`."""
        check_flag("monitor", monitor)
        self.sim, self.monitor = sim, monitor
        self.rows = AgentRows(sim, team, agents, observation, choices)
        self.slots, self.rows_per_lane = self.rows.slots, self.rows.rows_per_lane
        game, space = sim.game, self.rows.action_space
        if isinstance(space, gymnasium.spaces.Dict):
            raise ValueError(f"{game.name} has composite actions, a Dict, which Stable-Baselines3 has no policy for")
        self._render_mode = check_render_mode(render_mode, ["rgb_array"] if game.render else [], game.name)
        super().__init__(self.rows.num_rows, self.rows.observation_space, space)
        self._empty_infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        self._returns, self._lengths = np.zeros(self.num_envs), np.zeros(self.num_envs, np.int64)
        self._started_s = time.time()
        self._take_rules(sim)

    # -- SB3's methods-------------------------------------------------------------------------------------------------

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Gives lane i the stream ``seed + i`` at the next reset; all rows of a lane report the lane's seed.

        Raises:
            ValueError: A wrong seed.
        """
        if seed is None:
            seed = int(np.random.SeedSequence().generate_state(1)[0])
        seed = check_seed(seed, self.sim.num_envs)
        self._seeds = [seed + row // self.rows_per_lane for row in range(self.num_envs)]
        return self._seeds

    def reset(self) -> Any:
        """Starts a match in all lanes; without an earlier `seed` the lanes' streams go on.

        Raises:
            ValueError: There are options (``set_options``), which have no meaning here.
        """
        for options in self._options:
            check_options(self.sim, options)
        lane_seeds = self._seeds[:: self.rows_per_lane]
        self.sim.reset(seed=None if None in lane_seeds else np.array(lane_seeds, np.uint64))
        self._reset_seeds()
        self._reset_options()
        self._returns[:], self._lengths[:] = 0.0, 0
        return self.rows.observe()

    def step_async(self, actions: np.ndarray) -> None:
        """Takes the actions of all rows.

        Raises:
            ActionError: Wrong shape or kind.
        """
        self.rows.write(actions)

    def step_wait(self) -> tuple[Any, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """Plays one decision in all lanes. All arrays are the caller's own.

        Raises:
            ActionError: An action outside its space; names lane and agent. No match has moved.
        """
        self.sim.step()
        rewards = self.rows.rewards()
        over = self.sim.terminated | self.sim.truncated
        if self.monitor:
            self._returns += rewards
            self._lengths += 1
        infos = self._final_infos(over) if over.any() else self._empty_infos
        return self.rows.observe(), rewards, self.rows.of_lanes(over), infos

    def close(self) -> None:
        """Frees what the simulation holds; the next call takes it again."""
        self.sim.suspend()

    # -- attributes of rows --------------------------------------------------------------------------------------------

    @property
    def spec(self) -> Any:
        """Gymnasium's spec of the id that the simulation was made from; None where it was made of a game."""
        id, keywords = self.sim.origin or (None, {})
        if id not in gymnasium.registry:
            return None
        spec = copy.deepcopy(gymnasium.spec(id))
        spec.kwargs.update(keywords)
        spec.max_episode_steps = int(self.sim.parameters["horizon"][0])
        return spec

    @property
    def acting(self) -> np.ndarray:
        """Rows whose action counts in the next step, bool ``[rows]``."""
        return self.rows.of_rows(self.sim.acting)

    @only_where(lambda vec: has_goals(vec.sim.game, vec.observation_space), NO_GOALS)
    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """What the rules pay where other goals are achieved or desired; see `palaestra.core.faces.goals`."""
        return compute_reward(self.sim.game, self.observation_space, achieved_goal, desired_goal, info)

    @only_where(lambda vec: vec.rows.mask_width > 0, NO_CHOICES)
    def action_masks(self) -> np.ndarray:
        """Masks bool ``[rows, M]`` of the choices side by side, lists of candidates made dense.

        Raises:
            RuntimeError: No match has been started.
        """
        return self.rows.action_masks()

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
            masks = self.action_masks  # which a VecEnv of real numbers has not
            return [lambda row=row: masks()[row] for row in rows]
        if has_parameter(self.sim, attr_name):
            values = self.sim.parameters[attr_name]
            return [float(values[row // self.rows_per_lane]) for row in rows]
        if attr_name == "acting":
            return [bool(self.acting[row]) for row in rows]
        value = getattr(self if hasattr(self, attr_name) else self.sim, attr_name)
        return [value for _ in rows]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Sets a parameter of the game in the lanes of the rows, or an attribute that this object has.

        Raises:
            AttributeError: Neither a parameter nor an attribute; suggests the near name.
        """
        if has_parameter(self.sim, attr_name):
            lanes = sorted({row // self.rows_per_lane for row in self._get_indices(indices)})
            self.sim.set_parameters(lanes=np.array(lanes, np.int64), **{attr_name: value})
        elif hasattr(self, attr_name):
            setattr(self, attr_name, value)
        else:
            raise AttributeError(no_parameter(self.sim.game, attr_name))

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

    def _final_infos(self, over: np.ndarray) -> list[dict[str, Any]]:
        infos = list(self._empty_infos)
        lanes = np.flatnonzero(over)
        seen, ends = listed(self.rows.final_rows(lanes)), self._ends_of(lanes)
        for i, row in enumerate(np.flatnonzero(self.rows.of_lanes(over)).tolist()):
            infos[row] = info = {**ends[i // self.rows_per_lane], "terminal_observation": seen[i]}
            if self.monitor:
                seconds = round(time.time() - self._started_s, 6)
                info["episode"] = {"r": float(self._returns[row]), "l": int(self._lengths[row]), "t": seconds}
        over_rows = self.rows.of_lanes(over)
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


__all__ = ["AgentsMode", "SimulationVecEnv", "as_vec_env"]
