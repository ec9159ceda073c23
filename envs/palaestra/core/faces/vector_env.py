"""Gymnasium's VectorEnv: N matches, one team played by the user, natively batched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from palaestra.core.contract.keywords import check_flag
from palaestra.core.faces.agent_io import (
    MASK_KEYS,
    NOBODY,
    RUNNING,
    AgentIO,
    ChoicesMode,
    MaskMode,
    controlled_slots,
    where_masks_go,
)
from palaestra.core.faces.attributes import RuleAttributes, has_parameter, only_where
from palaestra.core.faces.blocks import Form
from palaestra.core.faces.goals import NO_GOALS, compute_reward, has_goals
from palaestra.core.faces.masks import map_arrays
from palaestra.core.faces.reset_arguments import check_options, start_matches
from palaestra.core.faces.screen import LIST, check_render_mode, render_modes
from palaestra.core.run.arrays import summed
from palaestra.core.run.parameters import no_parameter
from palaestra.core.run.simulation import Simulation

GYMNASIUM_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "off": AutoresetMode.DISABLED,
}


class GameVectorEnv(RuleAttributes, VectorEnv):
    """N lanes of a `Simulation`. Lane i under seed s is `GameEnv` under seed s + i, bit for bit.

    Autoreset as Gymnasium defines it: ``NEXT_STEP`` (default), ``SAME_STEP`` (``info["final_obs"]``,
    ``info["final_info"]`` and their masks), ``DISABLED`` (``reset(options={"reset_mask": bool[N]})``). ``info`` holds
    arrays ``[N, ...]`` under the same keys in every step, those of `GameEnv`: ``winner`` (team number, -1 while there
    is none), ``end_reason`` (number, 0 while the match goes on) and the game's own fields; ``illegal``,
    ``action_mask`` and ``candidates`` (ids by choice) where the game forbids actions; and ``acting`` (whether the next
    action counts) where there are opponents (``[N]``, or ``[N, A_team]`` for a team of several). The reward is the
    team's, or the sum of the members' where each has its own. With ``copy=False`` all arrays are the simulation's own:
    valid until the next step.

    ``info["action_mask"]`` is int8 ``[N, M]``, a row a lane with all choices side by side, as a network's logits are:
    Gymnasium's batch of a MultiDiscrete is a Box, whose ``sample`` takes no mask. One line makes the choices of it:
    ``np.split(mask, np.cumsum(env.single_action_space.nvec)[:-1], axis=1)``, or where the action is a Dict
    ``split_masks(env.agent_io.mask_plan, mask)`` of `palaestra.core.faces.masks`. With ``mask="obs"`` the observation
    holds the batch of what `GameEnv` observes: a tuple of ``[N, n]``, one a choice.

    Parameters of the rules are attributes that may be set, see `palaestra.core.faces.attributes.RuleAttributes`: to one
    value or to one a lane.

    Attributes:
        sim: The simulation.
        control: The team that the user plays.
        team_names: Names of ``info["winner"]`` by number, ``""`` for -1.
        end_reasons: Names of ``info["end_reason"]`` by number, ``""`` for 0.
    """

    _is_batch = True
    closed = True
    """Until it is made: some versions of Gymnasium close what is deleted, one whose arguments were refused, too."""

    def __init__(
        self,
        sim: Simulation,
        *,
        control: str | None = None,
        observation: Form | None = None,
        mask: MaskMode = "auto",
        mask_keys: tuple[str, str] = MASK_KEYS,
        choices: ChoicesMode = "separate",
        codec: str | None = None,
        render_mode: str | None = None,
        copy: bool = True,
    ) -> None:
        """Wraps a simulation.

        Args:
            sim: The simulation; opponents are set already.
            control: Team that the user plays, but for agents given to others; the first team if None.
            observation: ``"flat"`` or ``"dict"``; the game's default if None.
            mask: Where masks go: ``"info"`` (default where the game forbids something), ``"obs"`` or None.
            mask_keys: Names of the observation and its mask with ``mask="obs"``.
            choices: ``"discrete"`` makes the joint action one Discrete.
            codec: One of the game's codecs, or ``"none"``; the game's default if None. Observations then are a list of
                N objects. Under ``SAME_STEP`` the record of a match that has ended is gone: a codec encodes its last
                observation from what the agent saw, `AgentView.record` is None.
            render_mode: ``"rgb_array"``, ``"ansi"`` or None, of these what the game has; with ``"_list"`` at its end
                `render` gives for each lane a list of what there was to see since its match began or since the last
                call, as `gymnasium.make` does for one match.
            copy: Return copies (default), or the live arrays.
        """
        check_flag("copy", copy)
        game = sim.game
        self.sim, self.copy = sim, copy
        self.num_envs = sim.num_envs
        self.autoreset_mode = GYMNASIUM_MODES[sim.autoreset_mode]
        self.metadata = {
            "autoreset_mode": self.autoreset_mode,
            "render_modes": render_modes(game, window=False),
            "render_fps": game.render_fps,
        }
        known = self.metadata["render_modes"]
        check_render_mode(render_mode, [*known, *(mode + LIST for mode in known)], game.name)
        self.render_mode = render_mode
        collects = render_mode is not None and render_mode.endswith(LIST)
        self._frames: list[list[Any]] | None = [[] for _ in range(self.num_envs)] if collects else None
        self.control = control if control is not None else next(iter(game.teams))
        slots = controlled_slots(sim, self.control)
        mask = where_masks_go(mask, "info", game)
        self.agent_io = AgentIO(sim, slots, observation, mask, codec, choices, mask_keys)
        self.team_names, self.end_reasons = game.team_names, game.all_end_reasons
        self.single_observation_space = self.agent_io.observation_space
        self.single_action_space = self.agent_io.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._slot = slots[0]
        side_by_side = slots == tuple(range(slots[0], slots[-1] + 1))
        own: Any = slice(slots[0], slots[-1] + 1) if side_by_side else list(slots)
        self._own = slots[0] if len(slots) == 1 else own
        self._adds_up = game.reward == "agent" and len(slots) > 1
        self._own_fields = [f.name for f in game.info]
        self._tells = self.agent_io.tells
        self._all = np.ones(self.num_envs, np.bool_)
        self._all.flags.writeable = False
        self._running = np.full(self.num_envs, NOBODY), np.full(self.num_envs, RUNNING)
        for constant in self._running:
            constant.flags.writeable = False
        self.closed = False
        self._take_rules(sim)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts matches in all lanes, or where ``options["reset_mask"]`` (bool ``[N]``) is set.

        Args:
            seed: Lane i gets ``seed + i``, or the i-th of a list of N; a lane whose seed is None goes on.
            options: See above.

        Raises:
            ValueError: A wrong seed, or an option that is neither ``"reset_mask"`` nor a parameter of the start.
        """
        mask = options.get("reset_mask") if isinstance(options, Mapping) else None
        if seed is not None and mask is not None:
            raise ValueError("seed the lanes in a reset of all of them: seed= and reset_mask= do not go together")
        start_matches(self.sim, options, ("reset_mask",), mask, seed)
        self.closed = False
        if self._frames is not None:
            self._collect(self._frames, mask)
        return self.agent_io.observe(self.copy), self._info(None)

    def step(
        self, actions: Any, *, options: dict[str, Any] | None = None
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays one decision in all lanes, or where ``options["step_mask"]`` (bool ``[N]``) is set.

        The other lanes stay as they are, and nothing happens in them: no reward, no end; their actions, which have to
        be there, are not looked at.

        Args:
            actions: Of all lanes.
            options: See above.

        Raises:
            ActionError: An action outside its space; names lane and agent. No match has moved.
            ValueError: An option other than ``"step_mask"``.
        """
        sim = self.sim
        which = None if options is None else check_options(sim, options, ("step_mask",), "step").get("step_mask")
        self.agent_io.write(actions, which)
        sim.step() if which is None else sim.step(lanes=which)
        rewards = summed(sim.rewards[:, self._own]) if self._adds_up else sim.rewards[:, self._slot]
        terminated, truncated = sim.terminated, sim.truncated
        over = terminated | truncated
        ends = bool(over.any())
        info = self._info(over if ends else None)
        if ends and sim.autoreset_mode == "same_step":
            self._add_finals(over, info)
        observations = self.agent_io.observe(self.copy)
        if self._frames is not None:
            self._collect(self._frames, which)
        if self.copy:
            return observations, rewards.copy(), terminated.copy(), truncated.copy(), info
        return observations, rewards, terminated, truncated, info

    def _info(self, over: np.ndarray | None) -> dict[str, Any]:
        sim = self.sim
        info: dict[str, Any] = {}
        # Under SAME_STEP what is shown is the next match, which goes on.
        same_step = sim.autoreset_mode == "same_step"
        winners, reasons = self._running if same_step else (sim.buffers.winners, sim.buffers.end_reasons)
        views = {"winner": winners, "end_reason": reasons}
        for name in self._own_fields:
            views[name] = sim.info[name]
        if self.agent_io.mask_mode == "info":
            for name, masks in self.agent_io.masks(self.copy).items():
                info[name], info[f"_{name}"] = masks, self._all
        if sim.legal is not None:
            views["illegal"] = sim.info["illegal"][:, self._own]
        if len(sim.game.teams) > 1:
            acting = sim.acting[:, self._own]
            if over is None or same_step:
                views["acting"] = acting
            else:
                info["acting"] = acting & ~(over if acting.ndim == 1 else over[:, None])
                info["_acting"] = self._all
        for name, view in views.items():
            info[name], info[f"_{name}"] = view.copy() if self.copy else view, self._all
        if self._tells:
            self.agent_io.tell_lanes(info, self._all)
        return info

    def _add_finals(self, over: np.ndarray, info: dict[str, Any]) -> None:
        """What was last seen of the matches that ended in this step."""
        sim = self.sim
        finished = np.flatnonzero(over)
        finals = np.full(self.num_envs, None, dtype=object)
        for lane, seen in zip(finished.tolist(), self.agent_io.final_observations(finished), strict=True):
            finals[lane] = seen
        final_info: dict[str, Any] = {}
        views: dict[str, Any] = {name: sim.final_info[name] for name in ("winner", "end_reason", *self._own_fields)}
        if self.agent_io.mask_mode == "info":
            views.update(self.agent_io.masks(copy=False, final=True))
        if sim.legal is not None:
            views["illegal"] = sim.final_info["illegal"][:, self._own]
        if len(sim.game.teams) > 1:
            views["acting"] = np.zeros_like(sim.acting[:, self._own])

        def only_finished(view: np.ndarray) -> np.ndarray:
            values = np.zeros(view.shape, view.dtype)
            values[finished] = view[finished]
            return values

        for name, view in views.items():
            final_info[name], final_info[f"_{name}"] = map_arrays(only_finished, view), over
        if self._tells:
            self.agent_io.tell_lanes(final_info, over, final=True)
        info["final_obs"], info["_final_obs"] = finals, over
        info["final_info"], info["_final_info"] = final_info, over

    @only_where(lambda env: has_goals(env.sim.game, env.single_observation_space), NO_GOALS)
    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """What the rules pay where other goals are achieved or desired; see `palaestra.core.faces.goals`.

        Only environments whose game has rewards by goals and that observe goals have it.
        """
        return compute_reward(self.sim.game, self.single_observation_space, achieved_goal, desired_goal, info)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """What each lane has under a name, as Sync and Async have of their environments: a tuple of N.

        Lanes have the parameters of the rules, ``observation_space``, ``action_space``, the other
        attributes of this object, and ``render``.

        Raises:
            AttributeError: Nothing of this name, or a method of all lanes together.
        """
        if name == "render":
            return (None,) * self.num_envs if self.render_mode is None else self.render()
        if has_parameter(self.sim, name):
            return tuple(self.sim.parameters[name].tolist())
        value = getattr(self, f"single_{name}" if name in ("observation_space", "action_space") else name)
        if callable(value):
            raise AttributeError(f"lanes have no {name}() of their own: call it on the vector environment")
        return (value,) * self.num_envs

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """As `call`."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Changes a parameter of the rules, see `Simulation.set_parameters`.

        Args:
            name: Of the parameter.
            values: A list or tuple of N values, one a lane; or one value for all lanes.

        Raises:
            AttributeError: The rules have no such parameter.
            ValueError: Not N values, or a value outside its range.
        """
        if not has_parameter(self.sim, name):
            raise AttributeError(no_parameter(self.sim.game, name))
        if isinstance(values, list | tuple):
            if len(values) != self.num_envs:
                raise ValueError(f"set_attr wants a value for each of the {self.num_envs} lanes, got {len(values)}")
            values = np.array(values)
        self.sim.set_parameters(**{name: values})

    def render(self) -> Any:
        """Pictures or texts of all lanes, or lists of them, as a tuple; None without a render mode."""
        if self.render_mode is None:
            return None
        if self._frames is None:
            return tuple(self._picture(lane) for lane in range(self.num_envs))
        frames, self._frames = self._frames, [[] for _ in range(self.num_envs)]
        return tuple(frames)

    def _picture(self, lane: int) -> Any:
        return self.sim.render_text(lane) if str(self.render_mode).startswith("ansi") else self.sim.render(lane)

    def _collect(self, frames: list[list[Any]], which: np.ndarray | None) -> None:
        """Adds what there is to see of the lanes that have moved; a match that has just begun has no other pictures."""
        for lane in range(self.num_envs) if which is None else np.flatnonzero(which).tolist():
            if self.sim.states["steps"][lane] == 0:
                frames[lane].clear()
            frames[lane].append(self._picture(lane))

    def close_extras(self, **kwargs: Any) -> None:
        """Frees what the simulation holds; the next call takes it again."""
        self.sim.suspend()
