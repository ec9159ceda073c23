"""XuanCe: one team against an opponent as its ``RawMultiAgentEnv``, on `palaestra.adapters.pymarl`.

    REGISTRY_MULTI_AGENT_ENV["palaestra"] = TeamRawEnv

A configuration with ``env_name: palaestra`` takes any id as ``env_id``; ``env_keywords`` holds ``opponent`` and others.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from palaestra.game import Importing

with Importing(
    "xuance",
    "palaestra.adapters.xuance needs XuanCe, which is not installed: pip install xuance",
):
    from xuance.environment import RawMultiAgentEnv

from palaestra.adapters.pymarl import TeamMultiAgentEnv


class TeamRawEnv(RawMultiAgentEnv):
    """The members of a team by name; observations, actions and masks as in `TeamMultiAgentEnv`."""

    def __init__(self, config: Any) -> None:
        """Makes the match from ``config.env_id``, ``config.env_seed`` and ``config.env_keywords`` (may be missing)."""
        super().__init__()
        keywords = getattr(config, "env_keywords", {})
        self.env = TeamMultiAgentEnv(config.env_id, api="epymarl", seed=config.env_seed, **keywords)
        info = self.env.get_env_info()
        seen, count = Box(-np.inf, np.inf, (info["obs_shape"],), np.float32), info["n_actions"]
        self.agents, self.num_agents, self.agent_groups = self.env.agents, self.env.n_agents, [self.env.agents]
        self.state_space = Box(-np.inf, np.inf, (info["state_shape"],), np.float32)
        self.observation_space: Any = dict.fromkeys(self.agents, seen)
        self.action_space: Any = {agent: Discrete(count) for agent in self.agents}
        self.max_episode_steps = info["episode_limit"]

    def _by_agent(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.agents, values, strict=True))

    def reset(self, **given: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Starts a match."""
        observations, info = self.env.reset(given.get("seed"))
        return self._by_agent(observations), info

    def step(self, action: dict[str, Any]) -> tuple[Any, ...]:
        """Plays one decision. A finished match is finished for all."""
        observations, reward, terminated, truncated, info = self.env.step([action[agent] for agent in self.agents])
        shared = (dict.fromkeys(self.agents, value) for value in (reward, terminated))
        return self._by_agent(observations), *shared, truncated, info

    def avail_actions(self) -> dict[str, np.ndarray]:
        """What each member may choose, bool ``[n_actions]``."""
        return self._by_agent(np.array(self.env.get_avail_actions(), np.bool_))

    def agent_mask(self) -> dict[str, bool]:
        """Which members are alive."""
        alive = self.env.sim.alive[0]
        return self._by_agent(bool(alive[agent_io.slots[0]]) for agent_io in self.env.agent_ios)

    def state(self) -> np.ndarray:
        """The global state, float32."""
        return self.env.get_state()

    def render(self, *given: Any) -> Any:
        """A picture uint8 ``[H, W, 3]``."""
        return self.env.render("rgb_array")

    def close(self) -> None:
        """Frees the simulation."""
        self.env.close()
