"""Independent Q-learning: each agent learns alone on its team's reward and treats all others as environment.

Tan, "Multi-Agent Reinforcement Learning: Independent vs. Cooperative Agents" (ICML 1993), with networks as in
Tampuu et al., "Multiagent cooperation and competition with deep reinforcement learning" (arXiv 1511.08779):

    y_i = r_team(i) + gamma max_a' Q_i'(o_i', a').

A comparison for `palaestra_baselines.fm3q`, with the same networks, replay, schedules and number of gradient
steps. Agents of a role share their weights, also across the teams where these are alike::

    python -m palaestra_baselines.iql --env-id palaestra/TeamPong-v0
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from palaestra_baselines.common.collector import epsilon_greedy
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.self_play import (
    Evaluation,
    LearningArgs,
    Report,
    SelfPlay,
    between,
    descend,
    follow,
    self_play_command,
    weighted_mean,
)
from palaestra_baselines.common.stores import Batch
from palaestra_baselines.common.utilities import Utilities, greedy, load_player, taken

METHOD = "iql"
load_policy = load_player


@dataclass
class Args(LearningArgs):
    """Arguments of independent Q-learning: those of `LearningArgs`."""

    directory: Path = Path("runs/iql")


def td_loss(
    online: Utilities, target: Utilities, batch: Batch, team_of: torch.Tensor, gamma: float, double: bool = True
) -> torch.Tensor:
    """Mean of (r_team(i) + gamma Q_i'(o_i', greedy a') - Q_i(o_i, a_i))^2 over decisions and agents.

    Args:
        online: The online network.
        target: Its target network.
        batch: Decisions.
        team_of: int64 ``[A]``, number of each agent's team.
        gamma: Discount per decision.
        double: Whether the online network chooses the greedy actions.
    """
    with torch.no_grad():
        values = target(batch.after.observations)
        choice = online(batch.after.observations) if double else values
        y = batch.rewards[:, team_of] + gamma * batch.continues[:, None] * greedy(values, choice, batch.after)
    chosen = taken(online(batch.before.observations), batch.actions, batch.before)
    return weighted_mean(((chosen - y) ** 2).mean(1), batch.weights)


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains by self-play, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    with RunFolder(args, METHOD) as folder:
        play = SelfPlay(args, folder, evaluation)
        online = Utilities(play.roster, args.hidden)
        target = copy.deepcopy(online).requires_grad_(False)
        optimizer = torch.optim.Adam(online.parameters(), lr=args.learning_rate[0], fused=True)
        play.resume(online=online, target=target, optimizer=optimizer)
        collector, team_of = play.collector, torch.from_numpy(play.roster.team_of)
        while play.goes_on(target):
            epsilon = between(args.epsilon, play.share / args.epsilon_until)
            values = play.values(online)
            collector.play(epsilon_greedy(collector.rng, collector.position.legal, values, epsilon))
            if play.warms_up:
                continue
            if play.updates == 0:
                for network in (online, target):
                    network.standardise(play.replay.observed())
            rate = between(args.learning_rate, play.share)
            for _ in range(args.updates):
                loss = td_loss(online, target, play.sample(), team_of, args.gamma, args.double)
                descend(optimizer, loss, rate, args.max_gradient_norm)
                follow(target, online, args.tau)
                play.count_update(loss)
        return play.report()


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    self_play_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
