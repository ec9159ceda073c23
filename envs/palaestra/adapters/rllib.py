"""RLlib's MultiAgentEnv on a match: only agents that are asked for an action are shown.

    from palaestra.adapters.rllib import policy_by_team, register

    name = register("palaestra/TeamPong-v0")
    config = PPOConfig().environment(name, env_config={"horizon": 200})
    config = config.multi_agent(policies={"red", "blue"}, policy_mapping_fn=policy_by_team)

`register` names the environment for the driver and for all workers, which import palaestra as they make it.
``env_config`` holds the keywords of `palaestra.core.faces.parallel_env.GameParallelEnv` and of
`palaestra.make_batch`: ``opponents={"blue": "tracker"}`` leaves red alone to learn, ``mask="obs"`` gives the
observations that RLlib's action masking module reads (``"observations"`` and ``"action_mask"``, float32).

For one team as one agent RLlib needs no adapter: the id ``"palaestra:palaestra/TeamPong-v0"`` is Gymnasium's, and
``env_runners(num_envs_per_env_runner=64, gym_env_vectorize_mode="vector_entry_point")`` plays it in the native batch.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from palaestra import registry
from palaestra.core.faces.attributes import RuleAttributes
from palaestra.game import Importing

with Importing(
    "ray",
    'palaestra.adapters.rllib needs RLlib, which is not installed: pip install "ray[rllib]" (it brings its own '
    "version of Gymnasium)",
):
    from ray.rllib.env.multi_agent_env import MultiAgentEnv
    from ray.tune.registry import register_env

MASK_KEYS = ("observations", "action_mask")
"""Names of the parts of an observation that RLlib's action masking module reads."""


def register(id: str, name: str | None = None, **keywords: Any) -> str:
    """Registers a game for RLlib's configs, on the driver and all workers.

    Args:
        id: A registered id.
        name: Name in RLlib; the id if None.
        **keywords: Defaults of the keywords that ``env_config`` may hold, see `MatchEnv`.

    Returns:
        The name, for ``config.environment(name)``.

    Raises:
        KeyError: No such id; suggests the near one.
    """
    registry.row(id)
    name = name or id
    register_env(name, partial(_make, id, keywords))
    return name


def _make(id: str, keywords: dict[str, Any], config: Any) -> MatchEnv:
    return MatchEnv(id, **{**keywords, **dict(config)})


def policy_by_team(agent_id: str, *args: Any, **kwargs: Any) -> str:
    """The policy of an agent is named as its team: that of ``red_1`` is ``"red"``."""
    return agent_id.rpartition("_")[0]


class MatchEnv(RuleAttributes, MultiAgentEnv):
    """One match, for RLlib.

    An observation is shown to an agent that is asked for its next action, and a last one, with its flag, when it dies
    or the match ends. Rewards of an agent that is not shown are paid with its next observation. Infos are those of
    PettingZoo's face.

    Attributes:
        parallel_env: PettingZoo's face of the match.
        possible_agents: All agents without an opponent.
        agents: Those in the match; with the last observation of a match or of one that dies, those that get it, too.
        observation_spaces, action_spaces: By agent.
    """

    def __init__(
        self,
        id: str,
        *,
        mask: Literal["info", "obs"] | None = None,
        mask_keys: tuple[str, str] = MASK_KEYS,
        **keywords: Any,
    ) -> None:
        """Makes the match.

        Args:
            id: A registered id.
            mask: ``"obs"`` gives observations with a mask, ``"info"`` puts it into the infos; None does neither, as
                RLlib's default networks take no observation of several parts.
            mask_keys: Names of the parts of an observation with ``mask="obs"``.
            **keywords: As for ``palaestra.zoo``'s ``parallel_env``.

        Raises:
            TypeError: An unknown keyword, or ``fixed_agents``: the dead are never shown.
        """
        if "fixed_agents" in keywords:
            raise TypeError("fixed_agents: not a keyword of MatchEnv, which shows living agents only")
        names = {"mask_keys": mask_keys} if mask == "obs" else {}
        self.parallel_env = registry.make_parallel(id, mask=mask, **names, **keywords)
        super().__init__()
        self._mask_key = mask_keys[1]
        env = self.parallel_env
        self.possible_agents, self.agents = list(env.possible_agents), []
        self.metadata, self.render_mode = env.metadata, env.render_mode
        self.observation_spaces = {a: self._shown_space(env.observation_space(a)) for a in self.possible_agents}
        self.action_spaces = {a: env.action_space(a) for a in self.possible_agents}
        self.observation_space = spaces.Dict(self.observation_spaces)
        self.action_space = spaces.Dict(self.action_spaces)
        self._owed: dict[str, float] = {}  # rewards since an agent was shown
        self._seen: set[str] = set()  # RLlib keeps no account of agents that leave before they were shown
        self._take_rules(env.sim)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts a match. Observations and infos are those of the agents that act first."""
        env = self.parallel_env
        observations, infos = env.reset(seed=seed, options=options)
        self._owed, self._seen = dict.fromkeys(self.possible_agents, 0.0), set()
        shown = [agent for agent in observations if infos[agent]["acting"]]
        if not shown:
            observations, _, _, _, infos = self.step({})
            return observations, infos
        self.agents = list(env.agents)
        self._seen.update(shown)
        return {a: self._shown(observations[a]) for a in shown}, {a: infos[a] for a in shown}

    def step(
        self, action_dict: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Any]]:
        """Plays decisions until some agent is asked, dies, or the match ends.

        Raises:
            ActionError: An action outside its space, or one missing of an agent that was shown.
        """
        env, actions = self.parallel_env, action_dict
        while True:
            observations, rewards, terminated, truncated, infos = env.step(actions)
            for agent, reward in rewards.items():
                self._owed[agent] += reward
            left = {a for a in observations if (terminated[a] or truncated[a]) and a in self._seen}
            shown = [a for a in observations if infos[a]["acting"] or a in left]
            if shown or not env.agents:
                break
            actions = {}  # opponents alone are asked
        self.agents = [a for a in self.possible_agents if a in env.agents or a in shown]  # RLlib asks who is shown
        self._seen.update(shown)
        over, cut = not env.agents, all(truncated.values())
        ends = {**{a: bool(terminated[a]) for a in shown}, "__all__": over and not cut}
        cuts = {**{a: bool(truncated[a]) for a in shown}, "__all__": over and cut}
        paid = {a: self._owed[a] for a in shown}
        self._owed.update(dict.fromkeys(shown, 0.0))
        return {a: self._shown(observations[a]) for a in shown}, paid, ends, cuts, {a: infos[a] for a in shown}

    def render(self) -> Any:
        """Picture (uint8 ``[H, W, 3]``) or text as ``render_mode`` asks."""
        return self.parallel_env.render()

    def close(self) -> None:
        """Frees the simulation."""
        self.parallel_env.close()

    def _shown(self, observation: Any) -> Any:
        """Masks in one row, as the logits are, and float32: RLlib's masking module takes their logarithm."""
        mask = observation.get(self._mask_key) if isinstance(observation, dict) else None
        if not isinstance(mask, tuple | np.ndarray):
            return observation
        return {
            **observation,
            self._mask_key: np.concatenate(mask if isinstance(mask, tuple) else [mask], dtype=np.float32),
        }

    def _shown_space(self, space: spaces.Space) -> spaces.Space:
        mask = space.spaces.get(self._mask_key) if isinstance(space, spaces.Dict) else None
        if not isinstance(mask, spaces.Box | spaces.Tuple):
            return space
        parts = dict(space.spaces)  # type: ignore[attr-defined]
        return spaces.Dict({**parts, self._mask_key: spaces.Box(0.0, 1.0, (spaces.flatdim(mask),), np.float32)})


__all__ = ["MASK_KEYS", "MatchEnv", "policy_by_team", "register"]
