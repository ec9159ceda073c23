"""Teams of a PettingZoo ParallelEnv, and an environment in which each team is one agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from palaestra.core.faces.attributes import RuleAttributes, simulations_of
from palaestra.wrappers.joint import Joint

RewardMode = Literal["common", "sum"]


def teams_of(env: Any) -> dict[str, tuple[str, ...]]:
    """Teams by name: ``env.teams`` where there is such a mapping, else by the names of the agents, ``{team}_{i}``.

    Raises:
        ValueError: Neither defines the teams.
    """
    declared = getattr(env, "teams", None) or getattr(env.unwrapped, "teams", None)
    if isinstance(declared, Mapping):
        return {team: tuple(members) for team, members in declared.items()}
    teams: dict[str, list[str]] = {}
    for agent in env.possible_agents:
        team, _, number = str(agent).rpartition("_")
        if not team or not number.isdigit():
            raise ValueError(f"{agent!r} is not named team_number, and the environment has no dict `teams`")
        teams.setdefault(team, []).append(agent)
    return {team: tuple(members) for team, members in teams.items()}


class TeamAsAgent(RuleAttributes, ParallelEnv):
    """One agent a team: joint actions, stacked observations, one reward. See `palaestra.wrappers.joint.Joint`.

    Members that have left show zeros and their part of the action is not used. A team leaves `agents` with its last
    member. ``infos[team]["agents"]`` holds the members' infos; ``winner`` and ``end_reason`` are beside it.

    Attributes:
        joints: What the members of each team see and do together.
    """

    def __init__(self, env: Any, *, reward: RewardMode = "common") -> None:
        """Wraps an environment.

        Args:
            env: A PettingZoo ParallelEnv whose agents form teams.
            reward: ``"common"`` takes the reward that all members share (and raises where they do not), ``"sum"``
                adds the members' rewards up.

        Raises:
            ValueError: Unknown reward mode, or teams that cannot be determined.
        """
        if reward not in ("common", "sum"):
            raise ValueError(f'reward must be "common" or "sum", got {reward!r}')
        self.env, self._reward = env, reward
        self.members = teams_of(env)
        self.possible_agents = list(self.members)
        self.agents: list[str] = []
        self.teams = {team: (team,) for team in self.members}
        seen = {a: env.observation_space(a) for a in env.possible_agents}
        done = {a: env.action_space(a) for a in env.possible_agents}
        self.joints = {team: Joint(members, seen, done) for team, members in self.members.items()}
        self.observation_spaces = {team: joint.observation_space for team, joint in self.joints.items()}
        self.action_spaces = {team: joint.action_space for team, joint in self.joints.items()}
        self.metadata = {**env.metadata, "name": f"{env.metadata.get('name', type(env).__name__)}_teams"}
        self.render_mode = getattr(env, "render_mode", None)
        self._take_rules(*simulations_of(env))

    @property
    def unwrapped(self) -> Any:
        """The environment under all wrappers."""
        return self.env.unwrapped

    @property
    def max_cycles(self) -> int:
        """Decisions until a match is truncated; may be set."""
        return self.env.max_cycles

    @max_cycles.setter
    def max_cycles(self, value: int) -> None:
        self.env.max_cycles = value

    @property
    def state_space(self) -> spaces.Space:
        """Space of `state`."""
        return self.env.state_space

    def observation_space(self, agent: str) -> spaces.Space:
        """Space of a team's observations, the same object each time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """Space of a team's actions, the same object each time."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Starts a match; see `pettingzoo.ParallelEnv.reset`."""
        observations, infos = self.env.reset(seed=seed, options=options)
        self.agents = self._present()
        return self._observe(self.agents, observations), {t: self._info(t, infos) for t in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Plays one decision.

        Raises:
            KeyError: The action of a team is missing, or there is no such team.
            ValueError: The members of a team have different rewards.
        """
        if not self.agents:
            return {}, {}, {}, {}, {}
        if set(actions) != set(self.agents):
            raise KeyError(f"actions are for {', '.join(actions)}, but {', '.join(self.agents)} must act")
        present = set(self.env.agents)
        parts = {m: a for team, joint in actions.items() for m, a in self.joints[team].split(joint).items()}
        seen, rewards, _, truncations, infos = self.env.step({m: a for m, a in parts.items() if m in present})
        asked, self.agents = self.agents, self._present()
        over = [team for team in asked if team not in self.agents]
        truncated = {t: t in over and any(truncations[m] for m in self.members[t] if m in truncations) for t in asked}
        return (
            self._observe(asked, seen),
            {team: self._team_reward(team, rewards) for team in asked},
            {team: team in over and not truncated[team] for team in asked},
            truncated,
            {team: self._info(team, infos) for team in asked},
        )

    def state(self) -> np.ndarray:
        """Global state of the environment."""
        return self.env.state()

    def render(self) -> Any:
        """Picture of the environment."""
        return self.env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def _present(self) -> list[str]:
        alive = set(self.env.agents)
        return [team for team, members in self.members.items() if not alive.isdisjoint(members)]

    def _observe(self, teams: list[str], seen: Mapping[str, Any]) -> dict[str, Any]:
        return {team: self.joints[team].observe(seen) for team in teams}

    def _team_reward(self, team: str, rewards: Mapping[str, float]) -> float:
        own = {m: float(rewards[m]) for m in self.members[team] if m in rewards}
        if self._reward == "sum":
            return sum(own.values())
        if len(set(own.values())) > 1:
            raise ValueError(f'the members of {team} have different rewards, {own}: TeamAsAgent(env, reward="sum")')
        return next(iter(own.values()))

    def _info(self, team: str, infos: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        own = {m: infos[m] for m in self.members[team] if m in infos}
        first = next(iter(own.values()), {})
        return {**{key: first[key] for key in ("winner", "end_reason") if key in first}, "agents": own}
