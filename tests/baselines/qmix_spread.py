"""QMIX on Spread: a method that is new to the skeleton of the baselines, as short as one can be.

Rashid et al., "QMIX: Monotonic Value Function Factorisation for Deep Multi-Agent Reinforcement Learning" (arXiv
1803.11485): the team is trained on its reward through a total that rises in each agent's utility,

    Q_tot(s, q) = |w2(s)| . elu(|W1(s)| q + b1(s)) + v(s),    y = r + gamma Q_tot'(s', greedy a'),

with weights that hypernetworks make of the global state. Without the paper's recurrence: Spread hides nothing.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.evaluation import evaluate
from palaestra_baselines.common.agents import Roster, make_lanes
from palaestra_baselines.common.flat_networks import Utilities, UtilityPlayer, greedy, q_of_actions
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.rollout import Batch, Collector, Replay, epsilon_greedy
from palaestra_baselines.common.run_folder import RunArgs, RunFolder
from palaestra_baselines.common.training import gradient_step, linear_schedule, polyak_update, weighted_mean

ENV_ID = "palaestra/Spread-v0"


@dataclass
class Args(RunArgs):
    """Arguments, beside those of `RunArgs`; named as in `palaestra_baselines.common.training.LearningArgs`."""

    total_steps: int = 150_000
    evaluations: int = 4
    lanes: int = 64
    updates: int = 3
    batch_size: int = 128
    replay_size: int = 100_000
    warmup_steps: int = 5_000
    epsilon: tuple[float, float] = (1.0, 0.05)
    epsilon_until: float = 0.25
    learning_rate: tuple[float, float] = (2e-3, 1e-4)
    gamma: float = 0.85
    tau: float = 0.02
    hidden: tuple[int, ...] = (64, 64)
    embedding: int = 16
    matches: int = 500
    directory: Path = Path("runs/qmix")


class Qmix(nn.Module):
    """Utilities and the monotone mixer."""

    def __init__(self, roster: Roster, state_size: int, args: Args) -> None:
        """Networks of random weights."""
        super().__init__()
        self.sizes = (args.embedding * roster.agents, args.embedding, args.embedding, 1)
        self.utilities = Utilities(roster, args.hidden)
        self.weights = nn.Sequential(nn.Linear(state_size, 64), nn.ReLU(), nn.Linear(64, sum(self.sizes)))

    def total(self, utilities: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Q_tot ``[B]`` of utilities ``[B, A]`` in states ``[B, S]``."""
        w1, w2, b1, v = self.weights(state).split(self.sizes, -1)
        rows = w1.abs().unflatten(-1, (-1, utilities.shape[-1])) * utilities[:, None]
        return (w2.abs() * nn.functional.elu(rows.sum(-1) + b1)).sum(-1) + v[:, 0]


def td_loss(online: Qmix, target: Qmix, batch: Batch, gamma: float) -> torch.Tensor:
    """Mean of (r + gamma Q_tot'(s', greedy a') - Q_tot(s, a))^2, the greedy actions by the online network."""
    before, after = batch.before, batch.after
    with torch.no_grad():
        values, choice = (network.utilities(after.observations) for network in (target, online))
        following = target.total(greedy(values, choice, after), after.state)
        y = batch.rewards[:, 0] + gamma * batch.continues * following
    chosen = q_of_actions(online.utilities(before.observations), batch.actions, before)
    return weighted_mean((online.total(chosen, before.state) - y) ** 2, batch.weights)


def train(args: Args) -> list[dict[str, float]]:
    """Learns; returns the curve: mean return of the greedy policy over decisions."""
    torch.manual_seed(args.seed)
    sim = make_lanes(ENV_ID, (), args.lanes)
    roster, replay = Roster(sim.game), Replay(args.replay_size // args.lanes, args.lanes)
    collector = Collector(sim, roster, replay, args.seed, with_state=True)
    online = Qmix(roster, collector.position.state.shape[1], args)
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=args.learning_rate[0], fused=True)
    learnt: dict[str, Any] = {"online": online, "target": target, "optimizer": optimizer}
    rng = np.random.default_rng([args.seed, 2])
    with RunFolder(args, "qmix") as folder:
        while True:
            share = collector.steps / args.total_steps
            if folder.is_due(collector.steps):
                player = UtilityPlayer(target.utilities.arrays(), sim.game, "agent")
                score = evaluate(ENV_ID, player, matches=args.matches, num_envs=args.matches).mean_return
                save_policy(
                    args.folder / "last.safetensors", target.utilities.arrays(), method="qmix", env_id=ENV_ID, args=args
                )
                folder.record(
                    {"steps": collector.steps, "return": score}, {n: p.state_dict() for n, p in learnt.items()}
                )
            if share >= 1.0:
                return folder.rows
            learns = collector.steps >= args.warmup_steps
            with torch.no_grad():
                observed = {name: torch.from_numpy(rows) for name, rows in collector.position.observations.items()}
                values = online.utilities(observed).numpy() if learns else None
            epsilon = linear_schedule(args.epsilon, share / args.epsilon_until)
            collector.play(epsilon_greedy(collector.rng, collector.position.legal, values, epsilon))
            for _ in range(args.updates if learns else 0):
                loss = td_loss(online, target, replay.sample(rng, args.batch_size), args.gamma)
                gradient_step(optimizer, loss, linear_schedule(args.learning_rate, share), 10.0)
                polyak_update(target, online, args.tau)
            folder.progress.update(collector.steps)
