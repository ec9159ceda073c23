"""Gymnasium's Env: one match, one team played by the user, the others by opponents."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from palaestra.core.faces.agent_io import AgentIO, MaskMode, controlled_slots
from palaestra.core.faces.blocks import Form
from palaestra.core.faces.screen import Screen, check_render_mode, render_modes
from palaestra.core.simulation import Simulation


class GameEnv(gymnasium.Env):
    """One match of a `Simulation` with ``num_envs=1``. A team of several agents is one agent with a joint action.

    ``info`` holds the game's own fields; ``action_mask`` (int8), ``candidates`` (int32 ids by choice, -1 beyond the
    list) and ``illegal`` where the game forbids actions; ``acting`` where the team has opponents (both as in
    `GameVectorEnv`: arrays, one entry a member, where the team has several); and in the last step of a match ``winner``
    (a team's name or None) and ``end_reason``. The reward is the team's, or the sum of the members' where each has its
    own (``Game(reward="agent")``).
    """

    def __init__(
        self,
        sim: Simulation,
        *,
        control: str | None = None,
        observation: Form | None = None,
        mask: MaskMode = "info",
        codec: str | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Wraps a simulation of one lane in ``autoreset_mode="off"``.

        Args:
            sim: The simulation; opponents are set already.
            control: Team that the user plays, but for agents given to a script; the first team if None.
            observation: ``"flat"`` or ``"dict"``; the game's default if None.
            mask: Where masks go: ``"info"``, ``"obs"`` or None.
            codec: One of the game's codecs, or ``"none"``; the game's default if None.
            render_mode: ``"rgb_array"``, ``"human"``, ``"ansi"`` or None, of these what the game has.
        """
        game = sim.game
        self.sim = sim
        self.metadata = {"render_modes": render_modes(game), "render_fps": game.render_fps}
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"], game.name)
        self.control = control if control is not None else next(iter(game.teams))
        slots = controlled_slots(sim, self.control)
        self.agent_io = AgentIO(sim, slots, observation, mask if game.legal else None, codec)
        self.observation_space = self.agent_io.observation_space
        self.action_space = self.agent_io.action_space
        self._screen = Screen(game)
        self._slot = slots[0]
        self._own: Any = slots[0] if len(slots) == 1 else list(slots)
        self._adds_up = game.reward == "agent" and len(slots) > 1
        self._own_fields = [f.name for f in game.info]
        self._says_acting = len(game.teams) > 1
        self._names = list(game.teams)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts a match; see `gymnasium.Env.reset`. The same seed gives the same match, bit for bit."""
        super().reset(seed=seed)
        self.sim.reset(seed=seed)
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
            float(sim.rewards[0, self._own].sum()) if self._adds_up else sim.rewards.item(0, self._slot),
            terminated,
            truncated,
            self._info(terminated or truncated),
        )

    def _observe(self) -> Any:
        return self.agent_io.observe_one(copy_world=True)  # Gymnasium's checker wants no memory in two observations

    def _info(self, over: bool) -> dict[str, Any]:
        sim = self.sim
        info: dict[str, Any] = {}
        for name in self._own_fields:
            values = sim.info[name]
            info[name] = values.item(0) if values.ndim == 1 else values[0].copy()
        if sim.legal is not None:
            if self.agent_io.mask_mode == "info":
                info.update(self.agent_io.masks_of())
            counts = sim.info["illegal"][0, self._own]
            info["illegal"] = counts.copy() if counts.ndim else int(counts)
        if self._says_acting:
            acting = sim.acting[0, self._own]
            info["acting"] = acting.copy() if acting.ndim else bool(acting)
        if over:
            winner = int(sim.info["winner"][0])
            info["winner"] = self._names[winner] if winner >= 0 else None
            info["end_reason"] = sim.game.end_reason(int(sim.info["end_reason"][0]))
        return info

    def action_masks(self) -> np.ndarray:
        """Mask of the joint choices as bool ``[sum of n]``, the name that sb3-contrib's MaskablePPO calls.

        Lists of candidates are made dense.

        Raises:
            AttributeError: The game forbids nothing.
        """
        return self.agent_io.action_masks()[0]

    def render(self) -> Any:
        """Picture (uint8 ``[H, W, 3]``) or text of the match as ``render_mode`` asks."""
        return self._screen.show(self.sim, self.render_mode)

    def close(self) -> None:
        """Frees the simulation and the window."""
        self._screen.close()
        self.sim.close()
