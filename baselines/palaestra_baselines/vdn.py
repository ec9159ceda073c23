"""VDN in self-play: each team adds up its members' utilities and holds the other team for part of the world.

Sunehag et al., "Value-Decomposition Networks for Cooperative Multi-Agent Learning" (arXiv 1706.05296): agents of a
team are trained on the reward of the team through the sum of their utilities,

    Q_team(o, a) = sum_i Q_i(o_i, a_i),    y = r_team + gamma max_a' Q_team'(o', a'),

and act greedily, each by its own. The paper's tasks are cooperative. Here both teams learn so, against each other: a
comparison for `palaestra_baselines.fm3q`, with the same networks, replay, schedules and number of gradient steps
(`palaestra_baselines.common.td_learning`); recurrence and parameter sharing by roles of the paper are not::

    python -m palaestra_baselines.vdn --env-id palaestra/TeamPong-v0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import tyro
from torch import nn

from palaestra_baselines.common import td_learning
from palaestra_baselines.common.self_play import Roster
from palaestra_baselines.common.td_learning import Judge, LearningArgs, Report
from palaestra_baselines.common.utilities import load_player

METHOD = "vdn"
load_policy = load_player


@dataclass
class Args(LearningArgs):
    """Arguments of self-play VDN: those of `LearningArgs`."""

    directory: Path = Path("runs/vdn")


class TeamSums(nn.Module):
    """Two totals: the sum of the utilities of each team, on the reward of that team."""

    signs: torch.Tensor
    members: torch.Tensor

    def __init__(self, roster: Roster) -> None:
        """Notes who is in which team."""
        super().__init__()
        self.register_buffer("signs", torch.tensor([1.0, -1.0]))
        own = torch.from_numpy(roster.signs)
        self.register_buffer("members", torch.stack([(own > 0).float(), (own < 0).float()], 1))

    def forward(self, utilities: torch.Tensor, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Totals ``[B, 2]`` of utilities ``[B, A]``."""
        return utilities @ self.members


def train(args: Args, judge: Judge | None = None) -> Report:
    """Learns; see `palaestra_baselines.common.td_learning.run`."""
    return td_learning.run(args, METHOD, TeamSums, judge)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    print(train(tyro.cli(Args, args=argv)))


if __name__ == "__main__":
    main()
