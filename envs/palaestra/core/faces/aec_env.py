"""PettingZoo's AECEnv: agents are asked one after the other, and only those whose action counts."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import AECEnv

from palaestra.core.compile.linker import hooks_of
from palaestra.core.compile.reachable import attributes_in
from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.attributes import RuleAttributes
from palaestra.core.faces.parallel_env import GameParallelEnv

_put = object.__setattr__
_TOLD = ("_seen", "rewards", "terminations", "truncations", "infos")
"""Attributes that hold what the ParallelEnv's step returns; ``rewards`` are summed up after that."""


class GameAECEnv(RuleAttributes, AECEnv):
    """The agents of a `GameParallelEnv` one after the other, in the order of its `agents`.

    `agent_selection` runs over the agents that are asked in this decision. When all of them have answered the decision
    is played. Decisions in which no agent acts are played at once. An agent's cumulative reward counts from its own
    last action, so that in a game in turns it holds what the others' turns brought. Agents that left the match, and all
    agents at its end, are selected once more and take None.

    Attributes:
        env: The ParallelEnv.
        possible_agents: As of the ParallelEnv.
        agents: Agents in the match, and those whose last flag has not been taken yet.
    """

    def __init__(self, env: GameParallelEnv) -> None:
        """Wraps a ParallelEnv, which is this object's from now on."""
        self.env = env
        in_turns = "acting" in attributes_in(hooks_of(env.sim.game))
        self.metadata = {**env.metadata, "is_parallelizable": not in_turns}
        self.possible_agents = list(env.possible_agents)
        self.render_mode = env.render_mode
        self.agents: list[str] = []
        self._seen: dict[str, Any] = {}
        self._actions: dict[str, Any] = {}
        self._waiting: deque[str] = deque()
        self._asked = False
        self._take_rules(env.sim)

    @property
    def unwrapped(self) -> Any:
        """The ParallelEnv."""
        return self.env

    @property
    def max_cycles(self) -> int:
        """Decisions until a match is truncated; may be set."""
        return self.env.max_cycles

    @max_cycles.setter
    def max_cycles(self, value: int) -> None:
        self.env.max_cycles = value

    @property
    def state_space(self) -> spaces.Box:
        """Space of `state`."""
        return self.env.state_space

    def observation_space(self, agent: str) -> spaces.Space:
        """Space of an agent's observations, the same object each time."""
        return self.env.observation_space(agent)

    def action_space(self, agent: str) -> spaces.Space:
        """Space of an agent's actions, the same object each time."""
        return self.env.action_space(agent)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a match; see `pettingzoo.AECEnv.reset`."""
        self._seen, self.infos = self.env.reset(seed=seed, options=options)
        self.agents = list(self.env.agents)
        self.rewards: dict[str, float] = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards: dict[str, float] = dict.fromkeys(self.agents, 0.0)
        self.terminations: dict[str, bool] = dict.fromkeys(self.agents, False)
        self.truncations: dict[str, bool] = dict.fromkeys(self.agents, False)
        self._skip_agent_selection = None
        self._ask()
        if not self._asked:
            self._play({})

    def step(self, action: Any) -> None:
        """Takes the action of `agent_selection`, and plays the decision when all agents have been asked.

        Raises:
            ActionError: An action outside its space. The match has not moved, the decision asks its first agent again.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            flagged = any(self.terminations.values()) or any(self.truncations.values())
            if self.agents and not flagged and not self._asked:
                self._play({})
            return
        if not self._waiting:
            self._play({**self._actions, agent: action})
            return
        if not self._actions:
            self._clear_rewards()
        self._actions[agent] = action
        self._cumulative_rewards[agent] = 0.0
        _put(self, "agent_selection", self._waiting.popleft())

    def _ask(self) -> None:
        """Selects the first agent that is asked in this decision, if there is one.

        What changes in each decision is put past `RuleAttributes.__setattr__`, which takes its time.
        """
        env = self.env
        acting = dict(zip(env.sim.game.agents, env.sim.acting[0].tolist(), strict=True))
        waiting = deque(a for a in env.agents if acting[a])
        _put(self, "_actions", {})
        _put(self, "_waiting", waiting)
        _put(self, "_asked", bool(waiting))
        if waiting:
            _put(self, "agent_selection", waiting.popleft())

    def _play(self, actions: dict[str, Any]) -> None:
        """Plays decisions until an agent is asked, leaves or the match is over."""
        earned: dict[str, float] = {}
        while True:
            try:
                result = self.env.step(actions)
            except ActionError:
                self._ask()
                raise
            rewards = result[1]
            for name, value in zip(_TOLD, result, strict=True):
                _put(self, name, value)
            for agent in actions:
                self._cumulative_rewards[agent] = 0.0
            for agent, reward in rewards.items():
                earned[agent] = earned.get(agent, 0.0) + reward
                self._cumulative_rewards[agent] = self._cumulative_rewards.get(agent, 0.0) + reward
            self._ask()
            over = any(self.terminations.values()) or any(self.truncations.values())
            if self._asked or over:
                break
            actions = {}
        agents = list(self._seen)
        _put(self, "agents", agents)
        _put(self, "rewards", {agent: earned[agent] for agent in agents})
        _put(self, "_cumulative_rewards", {agent: self._cumulative_rewards[agent] for agent in agents})
        if over:
            if not self._asked:
                self.agent_selection = self.agents[0]
            self._deads_step_first()

    def observe(self, agent: str) -> Any:
        """What an agent saw last."""
        return self._seen[agent]

    def state(self) -> np.ndarray:
        """Global state float32, for centralised critics."""
        return self.env.state()

    def render(self) -> Any:
        """Picture (uint8 ``[H, W, 3]``) or text of the match as ``render_mode`` asks."""
        return self.env.render()

    def close(self) -> None:
        """Closes the window and frees what the simulation holds; the next call takes it again."""
        self.env.close()
