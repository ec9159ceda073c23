"""VDN: a team adds up its members' utilities and treats the other team as part of the environment.

Sunehag et al., "Value-Decomposition Networks for Cooperative Multi-Agent Learning" (arXiv 1706.05296): agents of a
team are trained on the reward of the team through the sum of their utilities,

    Q_team(o, a) = sum_i Q_i(o_i, a_i),    y = r_team + gamma max_a' Q_team'(o', a'),

and each agent acts greedily by its own utility. The paper's tasks are cooperative. Here both teams learn, each against
the other, or one team learns against a script. It is a comparison for `palaestra_baselines.fm3q`, with the same
networks, replay, schedules and number of gradient steps, and without the recurrence and the sharing by roles of the
paper::

    python -m palaestra_baselines.vdn --env-id palaestra/TeamPong-v0
    python -m palaestra_baselines.vdn --env-id palaestra/TeamTag-2v2-v0 --team red --opponent default
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from palaestra_baselines.common.flat_networks import Utilities, greedy, q_of_actions
from palaestra_baselines.common.rollout import Batch
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import (
    Evaluation,
    LearningArgs,
    Report,
    Training,
    learn,
    learning_command,
    weighted_mean,
)
from palaestra_baselines.common.unit_networks import Network, UnitUtilities, load_utilities, make_utilities

METHOD = "vdn"
load_policy = load_utilities


@dataclass
class Args(LearningArgs):
    """Arguments beside those of `LearningArgs`.

    Attributes:
        network: ``flat`` reads the whole observation by one layer, ``entity`` each unit's row by the same weights.
    """

    network: Network = "flat"
    directory: Path = Path("runs/vdn/{env_id}")


def td_loss(
    online: Utilities | UnitUtilities,
    target: Utilities | UnitUtilities,
    batch: Batch,
    team_of: torch.Tensor,
    gamma: float,
    double: bool = True,
) -> torch.Tensor:
    """Mean of (r_team + gamma Q_team'(o', greedy a') - Q_team(o, a))^2 over decisions and teams that learn.

    Args:
        online: The online network.
        target: Its target network.
        batch: Decisions.
        team_of: int64 ``[A]``, number of each agent's team.
        gamma: Discount per decision.
        double: Whether the online network chooses the greedy actions.
    """
    teams = team_of.unique()
    members = (team_of[:, None] == teams).float()
    with torch.no_grad():
        values = target(batch.after.observations)
        choice = online(batch.after.observations) if double else values
        y = batch.rewards[:, teams] + gamma * batch.continues[:, None] * (greedy(values, choice, batch.after) @ members)
    totals = q_of_actions(online(batch.before.observations), batch.actions, batch.before) @ members
    return weighted_mean(((totals - y) ** 2).mean(1), batch.weights)


def train_utilities(
    args: LearningArgs,
    method: str,
    loss: Callable[..., torch.Tensor],
    evaluation: Evaluation | None,
    network: Network = "flat",
) -> Report:
    """Trains utilities of all learning agents by a loss that takes the arguments of `td_loss`."""
    with RunFolder(args, method) as folder:
        training = Training(args, folder, evaluation)
        online = make_utilities(training.roster, network, args.hidden)
        target = copy.deepcopy(online).requires_grad_(False)
        team_of = torch.from_numpy(training.roster.team_of)
        return learn(
            training,
            online,
            target,
            loss=lambda: loss(online, target, training.sample(), team_of, args.gamma, args.double),
        )


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains, or resumes; files and arguments as in `palaestra_baselines.fm3q.train`."""
    return train_utilities(args, METHOD, td_loss, evaluation, args.network)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
