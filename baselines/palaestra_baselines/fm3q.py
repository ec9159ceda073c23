"""FM3Q: greedy decentralised actions are the minimax solution of one joint value that both teams learn.

Hu, Zhu, Li and Zhao, "FM3Q: Factorized Multi-Agent MiniMax Q-Learning for Two-Team Zero-Sum Markov Games" (arXiv
2402.00738). If Q_tot(s, a, b) rises in every utility Q_i(o_i, a_i) of the first team and falls in every Q_j(o_j, b_j)
of the second, then max_a min_b Q_tot is attained where each agent takes the best of its own utilities
(*individual-global-minimax*): the value of a position costs as many argmaxes as there are agents, and policies are
deterministic and decentralised. Learning is fitted Q iteration by both teams in self-play,

    y = r + gamma Q_tot'(s', greedy a', greedy b'),    r of the first team.

The paper claims faster learning, better final play and lower exploitability than baselines; its tables were not
available to us, nor the layout of its tasks. What is ours:

* three mixers: `Monotone`, the paper's idea with the hypernetworks of QMIX, from the view of either team; ``vdn``, the
  difference of the teams' sums; ``pairwise``, the released code's, where agents of equal index are opponents;
* one network for all agents where the teams are alike, double Q-learning, a target network by Polyak averaging, Adam,
  as for the comparisons `palaestra_baselines.vdn` and `palaestra_baselines.iql`;
* an auxiliary loss for the features of the utility networks (``--auxiliary-weight 1``; `td_loss` says why);
* an agent that does not act (alternating order) contributes the utility of its no-op; a dead agent contributes 0.

**Where it is exact** (``python benchmarks/learn.py fm3q_exact``). Where play alternates or a pure saddle point
exists: on two-against-two soccer in alternating order a team loses 0.057 to a best response to its policy with the
monotone mixer, 0.070 with sums, 0.135 with pairs, after 3 M decisions and under three minutes of one core each. In
tabular form (``benchmarks/learning/fm3q_tables.py``) it finds the saddle point of ``saddle`` with every mixer. No
monotone total represents ``climb`` and ``nonmonotone``: there the policies lose 0.146 and 0.4.

**The limit** (``learn.py fm3q_limit``). A game whose best play mixes has no pure saddle point. In Littman's
simultaneous soccer its policies guarantee 0 at the kick-off to the team with the ball and -0.328 to the other.
Deterministic policies guarantee 0 and -0.295 at most, mixed ones 0.218 and -0.218. There Q_tot is not the value of
the game.

**Against self-play VDN and IQL** (``learn.py team_learning``) it learns TeamPong best, in the curves and in the duels.
On TeamTag it learns most slowly: its chasers are nearly as strong as theirs, its runners are weaker. The reason is what
its utility networks learn, not what its total represents (``learn.py fm3q_features``, three seeds, 1,000 matches each):
an auxiliary loss that trains their features, and otherwise changes nothing, wins 0.82 instead of 0.65 of the matches of
TeamTag against the script, and 0.62 instead of 0.64 of those of TeamPong. VDN wins 0.84 and 0.54, IQL 0.79 and 0.41::

    python -m palaestra_baselines.fm3q --env-id palaestra/TeamTag-2v2-v0 --opponent default:0.5 --auxiliary-weight 1
    python -m palaestra_baselines.fm3q --env-id palaestra/TeamPong-v0 --opponent tracker:0.8
    palaestra eval palaestra/TeamPong-v0 --a runs/fm3q/TeamPong-v0/seed_0/last.safetensors --b tracker
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import nn

from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.flat_networks import Utilities, greedy, load_player, q_of_actions
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

METHOD = "fm3q"
load_policy = load_player


@dataclass
class Args(LearningArgs):
    """Arguments, beside those of `LearningArgs`.

    Attributes:
        mixer: How utilities become a total: `Monotone`, the difference of sums, or pairs.
        embedding: Rows of W1 of the monotone mixer.
        mixer_hidden: Width of the hidden layer of its hypernetworks.
        auxiliary_weight: Weight of the auxiliary loss of the monotone mixer, see `td_loss`; 0 is the paper's method.
    """

    MAY_BE_ZERO: ClassVar[tuple[str, ...]] = (*LearningArgs.MAY_BE_ZERO, "auxiliary_weight")

    mixer: Literal["monotone", "vdn", "pairwise"] = "monotone"
    embedding: int = 16
    mixer_hidden: int = 64
    auxiliary_weight: float = 0.0
    directory: Path = Path("runs/fm3q/{env_id}")


# ------------------------------------------------------------------------------------------------------------- mixers


class Pairwise(nn.Module):
    """A total for each pair of agents of equal number: Q_k = Q_k+ - Q_k-, as in the authors' code."""

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

    def forward(self, utilities: torch.Tensor, observations: Any) -> torch.Tensor:
        """Totals ``[..., pairs]`` of utilities ``[..., A]``."""
        return utilities[..., self.first] - utilities[..., self.second]


class Difference(nn.Module):
    """One total: the sum of the first team's utilities less that of the second's."""

    weights: torch.Tensor

    def __init__(self, roster: Roster) -> None:
        """Reads the teams of the agents."""
        super().__init__()
        self.register_buffer("weights", torch.from_numpy(roster.signs))

    def forward(self, utilities: torch.Tensor, observations: Any) -> torch.Tensor:
        """Totals ``[..., 1]`` of utilities ``[..., A]``."""
        return utilities @ self.weights[:, None]


class Monotone(nn.Module):
    """One total by networks whose weights are functions of the state: rising in own utilities, falling in the others'.

        Q_tot = (f(u; s_1) - g(-u; s_2)) / 2,    u = (Q_i of the first team, -Q_j of the second)
        f(u; s) = |w2(s)| . elu(|W1(s)| u + b1(s)) + v(s)

    as in QMIX (Rashid et al., arXiv 1803.11485), once from the view of each team: s_k is what the members of team k
    see. Both terms rise in the utilities of the first team and fall in those of the second. f alone is convex; the
    difference of f and g also represents totals that are not. Where the teams are alike g is f with
    the teams exchanged, so the value of a position is the negative of that of its mirror image. At first every weight
    of u is about 1 / sqrt(rows), so that Q_tot is near the difference of the sums.
    """

    weights: torch.Tensor

    def __init__(self, roster: Roster, embedding: int, hidden: int) -> None:
        """Hypernetworks of random weights.

        Args:
            roster: The agents.
            embedding: Rows of W1.
            hidden: Width of the layer from which all weights of a state come.
        """
        super().__init__()
        self.embedding = embedding
        self.views = [members(roster, team) for team in roster.game.teams.values()]
        self.order = exchanged(roster) if roster.alike else list(range(roster.agents))
        self.makers = nn.ModuleList()
        for view in self.views[:1] if roster.alike else self.views:
            inputs = sum(roster.sizes[name] * len(rows) for name, rows in view.items())
            last = nn.Linear(hidden, embedding * (roster.agents + 2) + 1)
            nn.init.constant_(last.bias[: embedding * (roster.agents + 1)], embedding**-0.5)
            self.makers.append(nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), last))
        self.register_buffer("weights", torch.from_numpy(roster.signs))

    def forward(self, utilities: torch.Tensor, observations: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Totals ``[B, 1]`` of utilities ``[B, A]`` and observations ``[B, A_role, size]`` by role."""
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


def members(roster: Roster, agents: Iterable[int]) -> dict[str, list[int]]:
    """Indices of some agents within their roles."""
    chosen = set(agents)
    return {n: [a - c.start for a in range(c.start, c.stop) if a in chosen] for n, c in roster.columns.items()}


def exchanged(roster: Roster) -> list[int]:
    """Index of the agent that each agent is exchanged with when the teams change sides."""
    first, second = (members(roster, team) for team in roster.game.teams.values())
    partner = {}
    for name, columns in roster.columns.items():
        for a, b in zip(first[name], second[name], strict=True):
            partner[columns.start + a], partner[columns.start + b] = columns.start + b, columns.start + a
    return [partner[agent] for agent in range(roster.agents)]


def make_mixer(args: Args, roster: Roster) -> Any:
    """The mixer that the arguments name.

    Raises:
        ValueError: The mixer is not monotone, and there is an auxiliary loss.
    """
    if args.auxiliary_weight and args.mixer != "monotone":
        raise ValueError(
            f"auxiliary_weight is for the mixer 'monotone', got {args.auxiliary_weight:g} with {args.mixer!r}"
        )
    if args.mixer == "monotone":
        return Monotone(roster, args.embedding, args.mixer_hidden)
    return Difference(roster) if args.mixer == "vdn" else Pairwise(roster)


# ----------------------------------------------------------------------------------------------------------- learning


class Factorisation(nn.Module):
    """Utilities and mixer: Q_tot as a whole; and the heads of the auxiliary loss, if there is one."""

    def __init__(self, utilities: Utilities, mixer: Any, heads: nn.ModuleDict | None = None) -> None:
        """Keeps the modules."""
        super().__init__()
        self.utilities, self.mixer, self.heads = utilities, mixer, heads


def td_loss(
    online: Factorisation,
    target: Factorisation,
    batch: Batch,
    gamma: float,
    double: bool = True,
    auxiliary_weight: float = 0.0,
) -> torch.Tensor:
    """Mean of (y - Q_tot(o, a, b))^2 with y = r + gamma Q_tot'(o', greedy a', greedy b'), ' for the target network.

    The auxiliary loss is ours. The hypernetworks of the monotone mixer can explain most of the value from the state
    alone; the utility networks then get little gradient and learn poor features. Therefore a second head on the same
    features has utilities q_i of its own, which VDN's loss trains: ``auxiliary_weight`` times the mean of
    (y - sum_i q_i)^2 and (-y - sum_j q_j)^2, i of the first team and j of the second. The heads are used for nothing
    else.

    Args:
        online: The online network.
        target: Its target network.
        batch: Decisions.
        gamma: Discount per decision.
        double: Whether the online network chooses the greedy actions.
        auxiliary_weight: Weight of the auxiliary loss; above 0 ``online`` has heads.
    """
    with torch.no_grad():
        values = target.utilities(batch.after.observations)
        choice = online.utilities(batch.after.observations) if double else values
        following = target.mixer(greedy(values, choice, batch.after), batch.after.observations)
        y = batch.rewards[:, :1] + gamma * batch.continues[:, None] * following
    features = online.utilities.features(batch.before.observations)
    chosen = q_of_actions(online.utilities.values(features), batch.actions, batch.before)
    error = (online.mixer(chosen, batch.before.observations) - y) ** 2
    if auxiliary_weight:
        others = q_of_actions(online.utilities.values(features, online.heads), batch.actions, batch.before)
        signs = online.mixer.weights
        sums = torch.stack([(others * (signs == sign)).sum(1) for sign in (1.0, -1.0)], 1)
        error = error + auxiliary_weight * ((sums - torch.cat([y, -y], 1)) ** 2).mean(1, keepdim=True)
    return weighted_mean(error.mean(1), batch.weights)


def train(args: Args, evaluation: Evaluation | None = None) -> Report:
    """Trains by self-play, or resumes: collect decisions, take gradient steps, update the target network.

    Files of the run, in ``args.folder``: ``log.csv`` (a row per evaluation), ``last.safetensors`` (the target network's
    utilities) and ``checkpoint.safetensors``, from which a run continues bitwise.

    Args:
        args: Of the run.
        evaluation: What evaluations measure; matches against the script ``args.opponent`` if None.

    Raises:
        ValueError: One team alone is to learn.
    """
    if args.team:
        raise ValueError(f"FM3Q learns one value for both teams: leave --team {args.team} out, or train by vdn or iql")
    with RunFolder(args, METHOD) as folder:
        training = Training(args, folder, evaluation)
        utilities, mixer = Utilities(training.roster, args.hidden), make_mixer(args, training.roster)
        online = Factorisation(utilities, mixer, utilities.other_heads() if args.auxiliary_weight else None)
        target = copy.deepcopy(online).requires_grad_(False)
        return learn(
            training,
            online,
            target,
            loss=lambda: td_loss(online, target, training.sample(), args.gamma, args.double, args.auxiliary_weight),
            utilities_of=lambda network: network.utilities,
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Trains."""
    learning_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
