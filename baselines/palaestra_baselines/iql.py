"""Independent Q-learning: each agent learns alone on its team's reward and treats all others as environment.

Tan, "Multi-Agent Reinforcement Learning: Independent vs. Cooperative Agents" (ICML 1993), with networks as in
Tampuu et al., "Multiagent cooperation and competition with deep reinforcement learning" (arXiv 1511.08779):

    y_i = r_team(i) + gamma max_a' Q_i'(o_i', a').

A comparison for `palaestra_baselines.fm3q`, with the same networks, replay, schedules and number of gradient
steps; networks and training are those of `palaestra_baselines.vdn`, and the loss is below. Agents of a role share their
weights, also across the teams where these are alike::

    python -m palaestra_baselines.iql --env-id palaestra/TeamPong-v0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from palaestra_baselines.common.flat_networks import Utilities, greedy, load_player, q_of_actions
from palaestra_baselines.common.rollout import Batch
from palaestra_baselines.common.training import Evaluation, LearningArgs, Report, learning_command, weighted_mean
from palaestra_baselines.vdn import train_utilities

METHOD = "iql"
load_policy = load_player


@dataclass
class Args(LearningArgs):
    """Arguments of independent Q-learning: those of `LearningArgs`."""

    directory: Path = Path("runs/iql/{env_id}")


def td_loss(
    online: Utilities, target: Utilities, batch: Batch, team_of: torch.Tensor, gamma: float, double: bool = True
) -> torch.Tensor:
    """Mean of (r_team(i) + gamma Q_i'(o_i', greedy a') - Q_i(o_i, a_i))^2 over decisions and agents.

    Arguments as of `palaestra_baselines.vdn.td_loss`.
    """
    with torch.no_grad():
        values = target(batch.after.observations)
        choice = online(batch.after.observations) if double else values
        y = batch.rewards[:, team_of] + gamma * batch.continues[:, None] * greedy(values, choice, batch.after)
    chosen = q_of_actions(online(batch.before.observations), batch.actions, batch.before)
    return weighted_mean(((chosen - y) ** 2).mean(1), batch.weights)


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    return train_utilities(args, METHOD, td_loss, evaluation)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
