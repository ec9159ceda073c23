"""Gymnasium's Env: one match, one team played by the user, the others by opponents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np

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
from palaestra.core.faces.attributes import RuleAttributes, only_where
from palaestra.core.faces.blocks import Form
from palaestra.core.faces.goals import NO_GOALS, compute_reward, has_goals
from palaestra.core.faces.masks import NO_CHOICES
from palaestra.core.faces.reset_arguments import start_matches
from palaestra.core.faces.screen import Screen, check_render_mode, render_modes
from palaestra.core.rng import check_seed
from palaestra.core.run.arrays import summed
from palaestra.core.run.simulation import Simulation


class GameEnv(RuleAttributes, gymnasium.Env):
    """One match of a `Simulation` with ``num_envs=1``. A team of several agents is one agent with a joint action.

    ``info`` holds numbers (NumPy scalars and arrays) under the same keys in every step: ``winner`` (a team's number, -1
    while there is none), ``end_reason`` (a number, 0 while the match goes on), the game's own fields; ``action_mask``,
    ``candidates`` (int32 ids by choice, -1 beyond the list) and ``illegal`` where the game forbids actions; and
    ``acting`` (whether the next action counts) where there are opponents. The last two are arrays, one entry a member,
    where the team has several. The reward is the team's, or the sum of the members' where each has its own
    (``Game(reward="agent")``).

    A mask is what ``action_space.sample`` takes: int8 ``[n]`` for one choice, a tuple of these for several, which
    ``np.concatenate`` makes one row, a dict where the action is a Dict.

    Parameters of the rules are attributes that may be set, see `palaestra.core.faces.attributes.RuleAttributes`.

    Attributes:
        sim: The simulation.
        control: The team that the user plays.
        team_names: Names of ``info["winner"]`` by number, ``""`` for -1.
        end_reasons: Names of ``info["end_reason"]`` by number, ``""`` for 0.
    """

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
    ) -> None:
        """Wraps a simulation of one lane in ``autoreset_mode="off"``.

        Args:
            sim: The simulation; opponents are set already.
            control: Team that the user plays, but for agents given to others; the first team if None.
            observation: ``"flat"`` or ``"dict"``; the game's default if None.
            mask: Where masks go: ``"info"`` (default where the game forbids something), ``"obs"`` or None.
            mask_keys: Names of the observation and its mask with ``mask="obs"``.
            choices: ``"discrete"`` makes the joint action one Discrete.
            codec: One of the game's codecs, or ``"none"``; the game's default if None.
            render_mode: ``"rgb_array"``, ``"human"``, ``"ansi"`` or None, of these what the game has.
        """
        game = sim.game
        self.sim, self._spec = sim, None
        self.metadata = {"render_modes": render_modes(game), "render_fps": game.render_fps}
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"], game.name)
        self.control = control if control is not None else next(iter(game.teams))
        slots = controlled_slots(sim, self.control)
        mask = where_masks_go(mask, "info", game)
        self.agent_io = AgentIO(sim, slots, observation, mask, codec, choices, mask_keys)
        self.observation_space = self.agent_io.observation_space
        self.action_space = self.agent_io.action_space
        self._screen = Screen(game)
        self._slot = slots[0]
        in_a_row = slots == tuple(range(slots[0], slots[0] + len(slots)))
        many = slice(slots[0], slots[-1] + 1) if in_a_row else list(slots)
        self._own: Any = slots[0] if len(slots) == 1 else many
        self._adds_up = game.reward == "agent" and len(slots) > 1
        self._own_numbers = [f.name for f in game.info if not f.shape]
        self._own_arrays = [f.name for f in game.info if f.shape]
        self._says_acting = len(game.teams) > 1
        self._says_mask = self.agent_io.mask_mode == "info"
        tells = self._tells = self.agent_io.tells
        self._says_no_more = not (game.info or self._says_mask or sim.legal is not None or self._says_acting or tells)
        self.team_names, self.end_reasons = game.team_names, game.all_end_reasons
        self._take_views()
        self._take_rules(sim)

    def _take_views(self) -> None:
        """Views of the only lane, of which infos are copies."""
        sim = self.sim
        self._numbers = [(name, sim.info[name]) for name in self._own_numbers]
        self._arrays = [(name, sim.info[name][0]) for name in self._own_arrays]
        self._illegal = None if sim.legal is None else sim.info["illegal"][0]
        self._acting = sim.acting[0] if self._says_acting else None

    def __getstate__(self) -> dict[str, Any]:
        """A copy of a view is no view: copies find the memory of their own simulation anew."""
        return {name: value for name, value in vars(self).items() if name not in _VIEWS}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        """See `__getstate__`."""
        super().__setstate__(saved)
        self._take_views()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts a match; see `gymnasium.Env.reset`. The same seed gives the same match, bit for bit.

        Raises:
            ValueError: A wrong seed, or an option that is no parameter of the start of a match.
        """
        seed = None if seed is None else check_seed(seed)
        start_matches(self.sim, options, seed=seed)
        super().reset(seed=seed)
        if self.render_mode == "human":
            self.render()
        return self._observe(), self._info(False)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one decision.

        Raises:
            ActionError: The action is outside its space.
        """
        sim = self.sim
        self.agent_io.write_one(action)
        sim.step()
        terminated, truncated = sim.terminated.item(0), sim.truncated.item(0)
        if self.render_mode == "human":
            self.render()
        return (
            self._observe(),
            summed(sim.rewards[:, self._own]).item(0) if self._adds_up else sim.rewards.item(0, self._slot),
            terminated,
            truncated,
            self._info(terminated or truncated),
        )

    @property
    def spec(self) -> Any:
        """How the environment was made; ``max_episode_steps`` is the horizon of its rules."""
        spec = self._spec
        return None if spec is None else replace(spec, max_episode_steps=int(self.sim.parameters["horizon"][0]))

    @spec.setter
    def spec(self, spec: Any) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        self._spec = spec

    def _observe(self) -> Any:
        return self.agent_io.observe_one(copy_world=True)  # Gymnasium's checker wants no memory in two observations

    def _info(self, over: bool) -> dict[str, Any]:
        sim = self.sim
        info: dict[str, Any] = {"winner": NOBODY, "end_reason": RUNNING}
        if over:
            info["winner"], info["end_reason"] = sim.info["winner"][0], sim.info["end_reason"][0]
        if self._says_no_more:
            return info
        for name, numbers in self._numbers:
            info[name] = numbers[0]
        for name, array in self._arrays:
            info[name] = array.copy()
        if self._says_mask:
            info.update(self.agent_io.masks_of())
        if self._illegal is not None:
            info["illegal"] = self._illegal[self._own].copy()
        if self._acting is not None:
            acting = self._acting[self._own]
            info["acting"] = acting & np.False_ if over else acting.copy()
        if self._tells:
            self.agent_io.tell(info)
        return info

    @only_where(lambda env: has_goals(env.sim.game, env.observation_space), NO_GOALS)
    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any = None) -> Any:
        """What the rules pay where other goals are achieved or desired; see `palaestra.core.faces.goals`.

        Only environments whose game has rewards by goals and that observe goals have it.
        """
        return compute_reward(self.sim.game, self.observation_space, achieved_goal, desired_goal, info)

    @only_where(lambda env: env.agent_io.has_choices, NO_CHOICES)
    def action_masks(self) -> np.ndarray:
        """Mask of the joint choices as bool ``[sum of n]``, the name that sb3-contrib's MaskablePPO calls.

        Lists of candidates are made dense; all true where the game forbids nothing. Only environments whose actions are
        choices have it.

        Raises:
            RuntimeError: No match has been started.
        """
        return self.agent_io.action_masks()[0]

    def render(self) -> Any:
        """Picture (uint8 ``[H, W, 3]``) or text of the match as ``render_mode`` asks."""
        return self._screen.show(self.sim, self.render_mode)

    def close(self) -> None:
        """Closes the window and frees what the simulation holds; the next call takes it again."""
        self._screen.close()
        self.sim.suspend()


_VIEWS = ("_numbers", "_arrays", "_illegal", "_acting")
"""Attributes that are views of the simulation's memory."""
