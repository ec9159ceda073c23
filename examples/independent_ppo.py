"""Independent PPO with shared weights on `palaestra.adapters.rows`: three chasers learn to catch a runner.

    pip install "palaestra[baselines]"
    python examples/independent_ppo.py 500000

Every agent of every lane is a row of one VectorEnv, so multi-agent PPO is the PPO of one agent: one network sees the
row's own observation and is paid the row's own reward. The runner moves at random; half a minute of one core is enough.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical

from palaestra.adapters.rows import rows

LANES, DECISIONS, EPOCHS, MINIBATCHES = 32, 50, 4, 4
GAMMA, GAE_LAMBDA, CLIP, ENTROPY, LEARNING_RATE = 0.95, 0.95, 0.2, 0.01, 1e-3


class Policy(nn.Module):
    """Logits of the choices and the value of observations ``[..., inputs]``."""

    def __init__(self, inputs: int, choices: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.logits, self.value = nn.Linear(64, choices), nn.Linear(64, 1)

    def forward(self, observations: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        """See the class."""
        hidden = self.body(observations)
        return Categorical(logits=self.logits(hidden)), self.value(hidden).squeeze(-1)


def advantages_of(rewards: torch.Tensor, values: torch.Tensor, ended: torch.Tensor) -> torch.Tensor:
    """Generalised advantages ``[T, rows]`` from rewards and ends ``[T, rows]`` and values ``[T + 1, rows]``."""
    advantages, following = torch.zeros_like(rewards), torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        goes_on = 1.0 - ended[t]
        error = rewards[t] + GAMMA * goes_on * values[t + 1] - values[t]
        advantages[t] = following = error + GAMMA * GAE_LAMBDA * goes_on * following
    return advantages


def train(decisions: int) -> list[float]:
    """Trains for so many decisions of agents. Returns the mean reward of a chaser in each round of matches."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    envs = rows("palaestra/TeamTag-v0", LANES, team="red", opponent="random")
    sees: Any = envs.single_observation_space
    acts: Any = envs.single_action_space
    policy = Policy(sees.shape[0], acts.n)
    optimizer = torch.optim.Adam(policy.parameters(), LEARNING_RATE)
    shape = (DECISIONS, envs.num_envs)
    seen = torch.zeros(*shape, sees.shape[0])
    chosen, old_log_probs = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
    rewards, ended, values = torch.zeros(shape), torch.zeros(shape), torch.zeros(DECISIONS + 1, envs.num_envs)
    acting = torch.zeros(shape, dtype=torch.bool)
    means: list[float] = []
    observations, infos = envs.reset(seed=0)
    while len(means) * seen[..., 0].numel() < decisions:
        with torch.no_grad():
            for t in range(DECISIONS):
                seen[t], acting[t] = torch.from_numpy(observations), torch.from_numpy(infos["acting"])
                distribution, values[t] = policy(seen[t])
                chosen[t] = distribution.sample()
                old_log_probs[t] = distribution.log_prob(chosen[t])
                observations, reward, terminated, truncated, infos = envs.step(chosen[t].numpy())
                rewards[t], ended[t] = torch.from_numpy(reward), torch.from_numpy(terminated | truncated)
            values[-1] = policy(torch.from_numpy(observations))[1]
        advantages = advantages_of(rewards, values, ended)
        returns = advantages + values[:-1]
        update(policy, optimizer, *(x[acting] for x in (seen, chosen, old_log_probs, advantages, returns)))
        means.append(rewards.sum(dim=0).mean().item())
    envs.close()
    return means


def update(
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    seen: torch.Tensor,
    chosen: torch.Tensor,
    old_log_probs: torch.Tensor,
    advantages: torch.Tensor,
    returns: torch.Tensor,
) -> None:
    """Some epochs of PPO's clipped objective on the decisions that counted."""
    advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(seen)).chunk(MINIBATCHES):
            distribution, values = policy(seen[batch])
            ratio = (distribution.log_prob(chosen[batch]) - old_log_probs[batch]).exp()
            gain = torch.min(ratio * advantages[batch], ratio.clamp(1 - CLIP, 1 + CLIP) * advantages[batch]).mean()
            loss = (values - returns[batch]).square().mean() - gain - ENTROPY * distribution.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
            optimizer.step()


if __name__ == "__main__":
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    means = train(steps)
    tenth = max(1, len(means) // 10)
    first, last = np.mean(means[:tenth]), np.mean(means[-tenth:])
    print(f"touches a match in {steps} decisions: {first:.2f} at first, {last:.2f} in the end")
