"""Independent Q-learning: every agent learns alone on its team's reward, all others are part of the world.

Tan, "Multi-Agent Reinforcement Learning: Independent vs. Cooperative Agents" (ICML 1993), with networks as in
Tampuu et al., "Multiagent cooperation and competition with deep reinforcement learning" (arXiv 1511.08779):

    y_i = r_team(i) + gamma max_a' Q_i'(o_i', a').

The other comparison for `palaestra_baselines.fm3q`, with the same networks, replay, schedules and number of gradient
steps (`palaestra_baselines.common.td_learning`). Agents of a role share their weights, also across the teams::

    python -m palaestra_baselines.iql --env-id palaestra/TeamPong-v0
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

METHOD = "iql"
load_policy = load_player


@dataclass
class Args(LearningArgs):
    """Arguments of independent Q-learning: those of `LearningArgs`."""

    directory: Path = Path("runs/iql")


class Apart(nn.Module):
    """As many totals as agents: each utility is its own, on the reward of the agent's team."""

    signs: torch.Tensor

    def __init__(self, roster: Roster) -> None:
        """Notes who is in which team."""
        super().__init__()
        self.register_buffer("signs", torch.from_numpy(roster.signs))

    def forward(self, utilities: torch.Tensor, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Totals ``[B, A]``: the utilities ``[B, A]`` themselves."""
        return utilities


def train(args: Args, judge: Judge | None = None) -> Report:
    """Learns; see `palaestra_baselines.common.td_learning.run`."""
    return td_learning.run(args, METHOD, Apart, judge)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    print(train(tyro.cli(Args, args=argv)))


if __name__ == "__main__":
    main()
