"""FM3Q: two teams learn one minimax value whose saddle is everybody's own greedy action.

Hu, Zhu, Li and Zhao, "FM3Q: Factorized Multi-Agent MiniMax Q-Learning for Two-Team Zero-Sum Markov Games" (arXiv
2402.00738). If Q_tot(s, a, b) rises in every utility Q_i(o_i, a_i) of the first team and falls in every Q_j(o_j, b_j)
of the second, then max_a min_b Q_tot is attained where each agent takes the best of its own utilities
(*individual-global-minimax*): the value of a position costs as many argmaxes as there are agents, and policies are
deterministic and decentralised. Learning is fitted Q iteration by both teams in self-play,

    y = r + gamma Q_tot'(s', greedy a', greedy b'),    r of the first team.

The paper claims faster learning, better final play and lower exploitability than baselines; its tables were not
available to us, nor the layout of its tasks. What is ours:

* three mixers: `Monotone`, the paper's idea with the hypernetworks of QMIX, from the view of either team; ``vdn``, the
  difference of the teams' sums; ``pairwise``, the released code's, where agents of equal number face each other;
* one network for all agents where the teams are alike, double Q-learning, slow weights that follow by a share, Adam:
  `palaestra_baselines.common.td_learning`, which self-play VDN and IQL use too;
* an agent that is not asked (alternating order) counts with the utility of its no-op; one that has left with 0;
* `fit_tables` learns small games by heart, over all positions and joint actions, as in the paper's proof.

**Where it is exact** (``python -m palaestra_baselines.figures fm3q_exact``). Where play alternates or a saddle of pure
actions exists: on two-against-two soccer in alternating order a team loses 0.057 to whoever knows its policy with the
monotone mixer, 0.070 with sums, 0.135 with pairs, after 3 M decisions and under three minutes of one core each. As a
table it finds the saddle of ``saddle`` with every mixer. No monotone total holds ``climb`` and ``nonmonotone``: there
the teams settle for less (0.146 and 0.4 short).

**The limit** (``figures fm3q_limit``). A game whose best play mixes has no such saddle. In Littman's simultaneous
soccer the team with the ball can be sure of 0 at the kick-off and the other of -0.328, close to what no deterministic
play beats (0 and -0.295), where mixing is worth 0.218 and -0.218. Never take its Q_tot for the value there.

**Against self-play VDN and IQL** (``figures team_learning``) it learns TeamPong best, in the curves and in the duels.
On TeamTag it learns most slowly: its chasers come near theirs, its runners do not; sums do better there than
`Monotone`::

    python -m palaestra_baselines.fm3q --env-id palaestra/TeamPong-v0 --opponent tracker:0.8
    palaestra eval palaestra/TeamPong-v0 --a runs/fm3q/seed_0/last.safetensors --b tracker
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import tyro
from torch import nn

from palaestra.exact.positions import Board, PositionTable, enumerate_positions
from palaestra_baselines.common import td_learning
from palaestra_baselines.common.self_play import Roster, keywords
from palaestra_baselines.common.td_learning import Judge, LearningArgs, Report
from palaestra_baselines.common.utilities import load_player

METHOD = "fm3q"
load_policy = load_player


@dataclass
class Args(LearningArgs):
    """Arguments, beside those of `LearningArgs`.

    Attributes:
        mixer: How utilities become a total: `Monotone`, the difference of sums, or pairs.
        embedding: Rows of W1 of the monotone mixer.
        mixer_hidden: Width of the layer from which it makes its weights.
        table_iterations: Iterations of `fit_tables`.
        table_steps: Gradient steps of each.
        table_rate: Learning rate at the start of each; falls to 0.
    """

    mixer: Literal["monotone", "vdn", "pairwise"] = "monotone"
    embedding: int = 16
    mixer_hidden: int = 64
    table_iterations: int = 1
    table_steps: int = 500
    table_rate: float = 0.05
    directory: Path = Path("runs/fm3q")


# ------------------------------------------------------------------------------------------------------------- mixers


class Pairwise(nn.Module):
    """A total for each pair of agents of equal number: Q_k = Q_k+ - Q_k-, as in the authors' code."""

    signs: torch.Tensor

    def __init__(self, roster: Roster) -> None:
        """Pairs the agents.

        Raises:
            ValueError: The teams are not equally large.
        """
        super().__init__()
        first, second = roster.game.teams.values()
        if len(first) != len(second):
            raise ValueError(f"{roster.game.name}: pairs need teams of equal size, not {len(first)} and {len(second)}")
        self.first, self.second = list(first), list(second)
        self.register_buffer("signs", torch.ones(len(first)))

    def forward(self, utilities: torch.Tensor, observations: Any) -> torch.Tensor:
        """Totals ``[..., pairs]`` of utilities ``[..., A]``."""
        return utilities[..., self.first] - utilities[..., self.second]


class Difference(nn.Module):
    """One total: the sum of the first team's utilities less that of the second's."""

    signs: torch.Tensor
    weights: torch.Tensor

    def __init__(self, roster: Roster) -> None:
        """Notes who is in which team."""
        super().__init__()
        self.register_buffer("signs", torch.ones(1))
        self.register_buffer("weights", torch.from_numpy(roster.signs))

    def forward(self, utilities: torch.Tensor, observations: Any) -> torch.Tensor:
        """Totals ``[..., 1]`` of utilities ``[..., A]``."""
        return utilities @ self.weights[:, None]


class Monotone(nn.Module):
    """One total by networks whose weights are functions of the state: rising in own utilities, falling in the others'.

        Q_tot = (f(u; s_1) - g(-u; s_2)) / 2,    u = (Q_i of the first team, -Q_j of the second)
        f(u; s) = |w2(s)| . elu(|W1(s)| u + b1(s)) + v(s)

    as in QMIX (Rashid et al., arXiv 1803.11485), once from the view of each team: s_k is what the members of team k
    see. Both terms rise in the utilities of the first team and fall in those of the second. f alone bends upwards only,
    and what one team gains faster and faster the other loses so: that takes both. Where the teams are alike g is f with
    the teams exchanged, so the value of a position is the negative of that of its mirror image. At first every weight
    of u is about 1 / sqrt(rows), so that Q_tot is near the difference of the sums and utilities learn at their pace.
    """

    signs: torch.Tensor
    weights: torch.Tensor

    def __init__(self, roster: Roster, embedding: int, hidden: int) -> None:
        """Hypernetworks of random weights.

        Args:
            roster: Who plays.
            embedding: Rows of W1.
            hidden: Width of the layer from which all weights of a state come.
        """
        super().__init__()
        self.embedding = embedding
        self.views = [members(roster, team) for team in roster.game.teams.values()]
        self.order = exchanged(roster) if roster.alike else list(range(roster.agents))
        self.makers = nn.ModuleList()
        for view in self.views[:1] if roster.alike else self.views:
            seen = sum(roster.sizes[name] * len(rows) for name, rows in view.items())
            last = nn.Linear(hidden, embedding * (roster.agents + 2) + 1)
            nn.init.constant_(last.bias[: embedding * (roster.agents + 1)], embedding**-0.5)
            self.makers.append(nn.Sequential(nn.Linear(seen, hidden), nn.ReLU(), last))
        self.register_buffer("signs", torch.ones(1))
        self.register_buffer("weights", torch.from_numpy(roster.signs))

    def forward(self, utilities: torch.Tensor, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Totals ``[B, 1]`` of utilities ``[B, A]``, seen by role ``[B, A_role, size]``."""
        here, there = (
            self.makers[k % len(self.makers)](
                torch.cat([observations[name][:, rows].flatten(1) for name, rows in view.items()], 1)
            )
            for k, view in enumerate(self.views)
        )
        own = utilities * self.weights
        return 0.5 * (mix(own, here, self.embedding) - mix(-own[:, self.order], there, self.embedding))


def mix(signed: torch.Tensor, weights: torch.Tensor, rows: int) -> torch.Tensor:
    """|w2| . elu(|W1| u + b1) + v, ``[..., 1]``, of signed utilities u ``[..., A]``.

    Args:
        signed: Utilities, those of the opponents negative.
        weights: W1, w2, b1 and v one after the other, ``[..., rows * (A + 2) + 1]``.
        rows: Rows of W1.
    """
    agents = signed.shape[-1]
    first, second, bias, value = weights.split([rows * agents, rows, rows, 1], -1)
    hidden = (first.abs().unflatten(-1, (rows, agents)) * signed[..., None, :]).sum(-1) + bias
    return (second.abs() * nn.functional.elu(hidden)).sum(-1, keepdim=True) + value


def members(roster: Roster, slots: Iterable[int]) -> dict[str, list[int]]:
    """Indices of some slots within their roles."""
    chosen = set(slots)
    return {n: [s - r.start for s in range(r.start, r.stop) if s in chosen] for n, r in roster.slots.items()}


def exchanged(roster: Roster) -> list[int]:
    """The slot whose place each slot takes when the teams change sides."""
    first, second = (members(roster, team) for team in roster.game.teams.values())
    partner = {}
    for name, slots in roster.slots.items():
        for a, b in zip(first[name], second[name], strict=True):
            partner[slots.start + a], partner[slots.start + b] = slots.start + b, slots.start + a
    return [partner[slot] for slot in range(roster.agents)]


def make_mixer(args: Args, roster: Roster) -> Any:
    """The mixer that the arguments name."""
    if args.mixer == "monotone":
        return Monotone(roster, args.embedding, args.mixer_hidden)
    return Difference(roster) if args.mixer == "vdn" else Pairwise(roster)


def train(args: Args, judge: Judge | None = None) -> Report:
    """Learns; see `palaestra_baselines.common.td_learning.run`."""
    return td_learning.run(args, METHOD, lambda roster: make_mixer(args, roster), judge)


# ------------------------------------------------------------------------------------------------------------- tables


class TableMonotone(nn.Module):
    """The mixer of `Monotone` with weights of its own at every position."""

    def __init__(self, roster: Roster, positions: int, rows: int) -> None:
        """Random weights."""
        super().__init__()
        self.rows, self.signs = rows, torch.ones(1)
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
    """A game that was learnt by heart.

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


def fit_tables(args: Args) -> Tables:
    """Fitted Q iteration over the whole table, as in the paper's proof.

    In each iteration the totals of all joint actions at all positions are regressed on
    y(s, a, b) = E[r + gamma Q_tot(s', the agents' own greedy actions)], all of equal weight. Here the regression is a
    number of steps of Adam on the utilities and on the mixer's weights at each position.

    Raises:
        ValueError: The positions of the game cannot be counted.
    """
    torch.manual_seed(args.seed)
    rules = enumerate_positions(args.env_id, symmetry=False, **keywords(args.options))
    roster, board = Roster(rules.game), Board(rules.game, rules.parameters)
    board.place(rules.numbers)
    legal = torch.from_numpy(roster.legal(board.sim))
    position, joint = cells_of(rules, roster)
    rewards = torch.from_numpy(rules.rewards).float()
    following = torch.from_numpy(rules.next).long()
    tables = nn.Parameter(0.1 * torch.randn(len(rules), roster.agents, roster.actions))
    is_monotone = args.mixer == "monotone"
    mixer: Any = TableMonotone(roster, len(rules), args.embedding) if is_monotone else make_mixer(args, roster)
    optimizer = torch.optim.Adam([tables, *mixer.parameters()], lr=args.table_rate)
    loss = torch.zeros(())
    for _ in range(args.table_iterations):
        with torch.no_grad():
            best = tables.masked_fill(~legal, -torch.inf).amax(2)
            values = mixer(best, torch.arange(len(rules)))  # [P, K]
            after = torch.where(following[..., None] < 0, 0.0, values[following]).mean(1)
            targets = rewards[:, None] + args.gamma * after
        for step in range(args.table_steps):
            optimizer.param_groups[0]["lr"] = args.table_rate * (1.0 - step / args.table_steps)
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


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    print(train(tyro.cli(Args, args=argv)))


if __name__ == "__main__":
    main()
