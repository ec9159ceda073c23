"""Tabular FM3Q: fitted Q iteration over all positions and joint actions of a small game, as in the paper's proof.

The mixers are those of `palaestra_baselines.fm3q`; every position has its own table of utilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from palaestra.exact.positions import Board, PositionTable, enumerate_positions
from palaestra_baselines.common.agents import Roster, keywords, two_team_roster
from palaestra_baselines.fm3q import Difference, Pairwise, mix


@dataclass
class TableArgs:
    """Arguments.

    Attributes:
        env_id: Two-team zero-sum game whose positions are enumerable.
        options: Keywords of the game, ``name=value`` each.
        seed: Seed of the first utilities and weights.
        gamma: Discount per decision.
        mixer: How utilities become a total, as in `palaestra_baselines.fm3q.Args`.
        embedding: Rows of W1 of the monotone mixer.
        iterations: Iterations of fitted Q iteration.
        steps: Gradient steps of each.
        rate: Learning rate at the start of each; falls to 0.
    """

    env_id: str = "palaestra/TeamMatrix-v0"
    options: tuple[str, ...] = ()
    seed: int = 0
    gamma: float = 0.99
    mixer: Literal["monotone", "vdn", "pairwise"] = "monotone"
    embedding: int = 16
    iterations: int = 1
    steps: int = 500
    rate: float = 0.05


class TableMonotone(nn.Module):
    """The mixer of `palaestra_baselines.fm3q.Monotone` with weights of its own at every position."""

    def __init__(self, roster: Roster, positions: int, rows: int) -> None:
        """Random weights."""
        super().__init__()
        self.rows = rows
        self.own = torch.from_numpy(roster.signs)
        weights = 0.1 * torch.randn(2, positions, rows * (roster.agents + 2) + 1)
        weights[..., : rows * (roster.agents + 1)] += rows**-0.5
        self.weights = nn.Parameter(weights)

    def forward(self, utilities: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Totals ``[C, 1]`` of utilities ``[C, A]`` at positions ``[C]``."""
        own, (here, there) = utilities * self.own, self.weights[:, positions]
        return 0.5 * (mix(own, here, self.rows) - mix(-own, there, self.rows))


@dataclass(frozen=True)
class Tables:
    """The tables of a game.

    Attributes:
        rules: Its positions and transitions, for `palaestra.exact`.
        utilities: float32 ``[P, A, M]``, minus infinity for what is not legal.
        loss: Mean squared error of the totals in the last iteration.
    """

    rules: PositionTable
    utilities: np.ndarray
    loss: float

    def policy(self, team: str) -> np.ndarray:
        """The greedy policy of a team as `palaestra.exact` takes it: probabilities ``[P, A_team, M]``."""
        own = self.utilities[:, list(self.rules.game.teams[team])]
        return np.eye(own.shape[2])[own.argmax(2)]


def fit_tables(args: TableArgs) -> Tables:
    """Fitted Q iteration over the whole table.

    In each iteration the totals of all joint actions at all positions are regressed on
    y(s, a, b) = E[r + gamma Q_tot(s', the agents' own greedy actions)], all of equal weight. Here the regression is a
    number of steps of Adam on the utilities and on the mixer's weights at each position.

    Raises:
        ValueError: The positions of the game are not enumerable.
    """
    torch.manual_seed(args.seed)
    rules = enumerate_positions(args.env_id, symmetry=False, **keywords(args.options))
    roster, board = two_team_roster(rules.game), Board(rules.game, rules.parameters)
    board.write_state(rules.numbers)
    legal = torch.from_numpy(roster.read_legal(board.sim))
    position, joint = cells_of(rules, roster)
    rewards = torch.from_numpy(rules.rewards).float()
    following = torch.from_numpy(rules.next).long()
    tables = nn.Parameter(0.1 * torch.randn(len(rules), roster.agents, roster.actions))
    mixer: Any = Difference(roster) if args.mixer == "vdn" else Pairwise(roster) if args.mixer == "pairwise" else None
    mixer = mixer or TableMonotone(roster, len(rules), args.embedding)
    optimizer = torch.optim.Adam([tables, *mixer.parameters()], lr=args.rate)
    loss = torch.zeros(())
    for _ in range(args.iterations):
        with torch.no_grad():
            best = tables.masked_fill(~legal, -torch.inf).amax(2)
            values = mixer(best, torch.arange(len(rules)))  # [P, K]
            after = torch.where(following[..., None] < 0, 0.0, values[following]).mean(1)
            targets = rewards[:, None] + args.gamma * after
        for step in range(args.steps):
            optimizer.param_groups[0]["lr"] = args.rate * (1.0 - step / args.steps)
            chosen = tables[position[:, None], torch.arange(roster.agents), joint]
            loss = ((mixer(chosen, position) - targets) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return Tables(rules, tables.detach().masked_fill(~legal, -torch.inf).numpy(), float(loss.detach()))


def cells_of(rules: PositionTable, roster: Roster) -> tuple[torch.Tensor, torch.Tensor]:
    """Position ``[C]`` and choices of all agents ``[C, A]`` of each cell of a table."""
    widths = [np.diff(start) for start in rules.action_start]
    position = np.repeat(np.arange(len(rules)), widths[0] * widths[1])
    number = np.arange(len(position)) - rules.cell_start[position]
    joint = np.zeros((len(position), roster.agents), np.int64)
    for side, team in enumerate(rules.teams):
        row = number // widths[1][position] if side == 0 else number % widths[1][position]
        chosen = rules.actions[side][rules.action_start[side][position] + row]
        joint[:, list(roster.game.teams[team])] = rules.joint_actions[side][chosen]
    return torch.from_numpy(position), torch.from_numpy(joint)
