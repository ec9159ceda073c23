"""Positions on graphs as tensors, for `palaestra_baselines.arac`: sight of a team, attention, turns, references.

A position is the number of the graph and the nodes of all agents; everything else is looked up in the game's world.
Agents of a team decide one after the other: who decides sees where its earlier teammates are going.

References are distributions over the alternatives of who decides next:

``shortest_path``  uniform over the alternatives that lead nearest to the nearest opponent; where there are several, not
                   to where a teammate is going; aims at the nearest legal target
``optimal``        uniform over the optimal ones of a solved pursuit, given where earlier teammates are going
``random``         uniform over all
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.core.run.simulation import Simulation
from palaestra.game import Choice, Game
from palaestra.games.pursuit.graph_ground import NO_NODE
from palaestra.players.choosing import Chance
from palaestra_baselines.common.agents import JointChoice, Roster
from palaestra_baselines.common.flat_networks import NEVER

ABSENT = -1
"""Node of an agent that is not in the match or not seen."""
NEAREST = 8
"""Hops that have a number of their own among the features of a pair."""
FARTHEST = 63
"""Larger hops look like this one."""
PAIR = NEAREST + 4
MEMBER = 4
"""Features of a member of the team: oneself, one that has decided, one that has not, and its life."""
PLACE = 3
"""Features of a node in its graph: neighbours, most hops to another node, mean hops to all, each as a share."""
NODE = PLACE + 4
"""Features of a node: the agent stays there, there are exits, hops to the next one as a share, it is one, and
`PLACE`."""
TARGET = 2
"""Features of an opponent as a target: its life, and the share of the team that has decided to aim at it."""
FULL_LIFE = 1000
"""Life of an agent without hit points, and with all of them, in positions."""


class GraphRoster(Roster):
    """The learning agents of a team on a graph, which observe graph, nodes and lives: int16 ``[N, 1, 1 + 2 agents]``.

    The graph's number comes first, then the nodes of the team's members and of the opponents, `ABSENT` for who is not
    seen, then their lives in the same order.
    """

    def __init__(self, game: Game, teams: Any) -> None:
        """See `Roster`.

        Raises:
            ValueError: The game does not show nodes, or `Roster` refuses it.
        """
        if not any(f.name == "node_hops" for f in game.team_observation):
            raise ValueError(f'{game.name} does not show its nodes: make it with observation="nodes"')
        super().__init__(game, teams)
        (self.team,) = teams

    def check_shared(self) -> None:
        """Takes what is shown to whole teams and matches."""

    def read_observations(self, sim: Simulation) -> dict[str, np.ndarray]:
        """Graph, nodes and lives."""
        return {"nodes": nodes_of(sim.team_view(self.team, "observations"))[:, None]}


def nodes_of(observations: dict[str, Any]) -> np.ndarray:
    """Graph, nodes and lives int16 ``[N, 1 + 2 agents]`` of what a team observes with ``observation="nodes"``."""
    team = observations["team"]
    at = team["node_hops"][:, 1:] == 0
    is_seen = at.any(axis=2)
    nodes = np.where(is_seen, at.argmax(axis=2), ABSENT)
    lives = FULL_LIFE * (np.rint(FULL_LIFE * team["hit_points"]) / FULL_LIFE if "hit_points" in team else is_seen)
    return np.concatenate([observations["lane"]["graph"][:, None], nodes, lives], axis=1).astype(np.int16)


@dataclass(frozen=True)
class Places:
    """Nodes and lives of all agents, tensors of S positions.

    Attributes:
        graph: int64 ``[S]``.
        own: Nodes of the team's members, int64 ``[S, k]``, `ABSENT` for those out of the match.
        others: Nodes of opponents, int64 ``[S, m]``, `ABSENT` for those that are not seen.
        own_life: Shares of the members' hit points, float32 ``[S, k]``.
        other_life: Likewise of opponents, ``[S, m]``.
        aimed: Share of the team that has decided to aim at an opponent, float32 ``[S, m]``.
        decided: Members that have decided and are where they are going, bool ``[S, k]``.
    """

    graph: torch.Tensor
    own: torch.Tensor
    others: torch.Tensor
    own_life: torch.Tensor
    other_life: torch.Tensor
    aimed: torch.Tensor
    decided: torch.Tensor

    @staticmethod
    def of(nodes: torch.Tensor, members: int) -> Places:
        """From rows of `GraphRoster`, ``[S, 1 + 2 agents]``; no member has decided."""
        agents = (nodes.shape[1] - 1) // 2
        places, lives = nodes[:, 1 : 1 + agents].long(), nodes[:, 1 + agents :] / FULL_LIFE
        own, others = places[:, :members], places[:, members:]
        aimed, decided = torch.zeros(others.shape), torch.zeros(own.shape, dtype=torch.bool)
        return Places(nodes[:, 0].long(), own, others, lives[:, :members], lives[:, members:], aimed, decided)

    def at(self, rows: torch.Tensor) -> Places:
        """Some of the positions."""
        return Places(*(value[rows] for value in vars(self).values()))


class Graphs:
    """The graphs of a game as tensors.

    Attributes:
        moves: Alternatives of a move, D.
        targets: Opponents that an agent may aim at, 0 where agents do not aim.
        nodes: Largest number of nodes.
    """

    def __init__(self, game: Game) -> None:
        """Reads `palaestra.games.pursuit.graph_ground.Ground`."""
        world = game.world
        choices = {choice.name: choice.n for role in game.roles for choice in role.action if isinstance(choice, Choice)}
        self.moves, self.targets = choices["move"], choices.get("target", 1) - 1
        self.nodes = world.hops.shape[1]
        self._neighbours = torch.from_numpy(world.neighbours[:, :, : self.moves].astype(np.int64)).reshape(
            -1, self.moves
        )
        self._hops = torch.from_numpy(np.array(world.hops)).reshape(-1)
        self._exit_hops = torch.from_numpy(np.array(world.exit_hops)).reshape(-1)
        self._per_hop = torch.from_numpy(world.per_hop.astype(np.float32))
        self._has_exits = bool(world.rules.has_exits)
        self._places = torch.from_numpy(places_of(world, self.moves))
        hops = np.arange(FARTHEST + 1)
        known = [hops == k for k in range(NEAREST)] + [np.log1p(hops) / 4.0, hops % 2, hops == FARTHEST]
        self._table = torch.from_numpy(np.stack(known, axis=1).astype(np.float32))

    def neighbours(self, graph: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Closed neighbourhoods, int64 ``[..., D]``, `ABSENT` beyond them; all `ABSENT` of an absent node."""
        found = self._neighbours[graph * self.nodes + nodes.clamp(min=0)]
        return torch.where(nodes[..., None] >= 0, found, ABSENT)

    def hops(self, graph: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Hops between nodes, int16; arbitrary where one is absent."""
        return self._hops[(graph * self.nodes + one.clamp(min=0)) * self.nodes + other.clamp(min=0)]

    def pairs(self, graph: torch.Tensor, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Features float32 ``[..., PAIR]`` of pairs of nodes."""
        hops = self.hops(graph, one, other)
        share = (hops * self._per_hop[graph]).clamp(max=1.0)
        return torch.cat([self._table[hops.long().clamp(max=FARTHEST)], share[..., None]], dim=-1)

    def places(self, graph: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Features float32 ``[..., NODE]`` of the alternatives ``[..., D]`` of a move."""
        at = graph * self.nodes + nodes.clamp(min=0)
        stays, exits = torch.zeros(*nodes.shape, 1), torch.zeros(*nodes.shape, 3)
        stays[..., 0, 0] = 1.0
        if self._has_exits:
            hops = self._exit_hops[at]
            share = (hops * self._per_hop[graph]).clamp(max=1.0)
            exits = torch.stack([torch.ones(nodes.shape), share, (hops == 0).float()], dim=-1)
        return torch.cat([stays, exits, self._places[at]], dim=-1)


def places_of(world: Any, moves: int) -> np.ndarray:
    """Features of all nodes of all graphs in their graph, float32 ``[graphs * nodes, PLACE]``.

    Args:
        world: A `palaestra.games.pursuit.graph_ground.Ground`.
        moves: Alternatives of a move, staying among them.
    """
    degrees = (world.neighbours[:, :, 1:moves] != NO_NODE).sum(axis=2) / max(moves - 1, 1)
    return np.stack((degrees, world.eccentricity, world.farness), axis=-1).reshape(-1, PLACE).astype(np.float32)


def prefixes(places: Places, graphs: Graphs, actions: torch.Tensor, sequential: bool) -> tuple[Places, torch.Tensor]:
    """The positions in which each member of the teams decides, after its earlier teammates.

    Args:
        places: S positions in which no member has decided.
        graphs: The graphs.
        actions: Alternatives that the members take, int64 ``[S, k]``.
        sequential: Members see the decisions of earlier ones; else all decide at once.

    Returns:
        Positions ``[S * k]`` in the order of the members, and numbers of the members ``[S * k]``.
    """
    count, members = places.own.shape
    order = torch.arange(members)
    decided = (order[None, :] < order[:, None]) & torch.tensor(sequential)
    chosen, aims = results_of(places, graphs, actions)
    own = torch.where(decided, chosen[:, None], places.own[:, None])
    aimed = torch.einsum("ij,sjm->sim", decided.float(), aims)
    repeat = lambda value: value[:, None].expand(-1, members, *value.shape[1:]).flatten(0, 1)  # noqa: E731
    return Places(
        repeat(places.graph),
        own.flatten(0, 1),
        repeat(places.others),
        repeat(places.own_life),
        repeat(places.other_life),
        aimed.flatten(0, 1),
        decided.expand(count, -1, -1).flatten(0, 1),
    ), order.repeat(count)


def results_of(places: Places, graphs: Graphs, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Nodes int64 ``[S, k]`` where members go, and shares of the team ``[S, k, m]`` that aim at each opponent."""
    here = graphs.neighbours(places.graph[:, None], places.own)
    chosen = here.gather(2, (actions // (1 + graphs.targets))[..., None])[..., 0]
    others, members = places.others.shape[1], places.own.shape[1]
    if not graphs.targets:
        return chosen, torch.zeros(*actions.shape, others)
    aims = nn.functional.one_hot(actions % (1 + graphs.targets), 1 + others)[..., 1:].float()
    return chosen, aims / members


class PairAttention(nn.Module):
    """Additive attention whose keys look different from each query, by the features of the pair.

    u_qk = relu(W_query x_q + W_key y_k + W_pair p_qk),    out_q = concat_h sum_k softmax_k(a_h . u_qk) u_qk,h
    """

    def __init__(self, width: int, query: int, key: int, heads: int) -> None:
        """Layers of random weights from torch's generator.

        Args:
            width: Of u.
            query: Features of a query.
            key: Features of a key.
            heads: Parts of the width with weights of attention of their own.
        """
        super().__init__()
        self.query, self.key = nn.Linear(query, width, bias=False), nn.Linear(key, width, bias=False)
        self.pair, self.score = nn.Linear(PAIR, width), nn.Linear(width, heads, bias=False)
        self.heads = heads

    def forward(self, query: torch.Tensor, key: torch.Tensor, pair: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
        """``[S, Q, width]`` of queries ``[S, Q, query]``, keys ``[S, K, key]`` and pairs ``[S, Q, K, PAIR]``.

        Keys that are not ``there``, bool ``[S, 1 or Q, K]``, count for nothing.
        """
        hidden = torch.relu(self.pair(pair) + self.query(query)[:, :, None] + self.key(key)[:, None])
        weights = (self.score(hidden) + NEVER * ~there[..., None]).softmax(dim=2) * there[..., None]
        return (hidden.unflatten(-1, (self.heads, -1)) * weights[..., None]).sum(dim=2).flatten(2)


Scores = Callable[[Places, torch.Tensor, torch.Tensor], torch.Tensor]
"""``scores(places, agent, legal)`` of the members that decide, ``[S, M]``; arguments as of
`palaestra_baselines.arac.MoveNetwork`, and what is legal, bool ``[S, M]``."""


@torch.no_grad()
def decide(
    scores: Scores,
    graphs: Graphs,
    places: Places,
    legal: torch.Tensor,
    draw: torch.Tensor | None = None,
    sequential: bool = True,
) -> torch.Tensor:
    """Alternatives int64 ``[S, k]`` that the members choose one after the other.

    Args:
        scores: Logarithms of the probabilities of alternatives, up to a constant.
        graphs: The graphs.
        places: S positions in which no member has decided.
        legal: bool ``[S, k, M]``.
        draw: Numbers float32 ``[S, k, M]`` that are added to the logits, of a Gumbel distribution for samples; None
            takes the most probable alternatives.
        sequential: See `prefixes`.
    """
    actions = torch.zeros(places.own.shape, dtype=torch.int64)
    for member in range(places.own.shape[1]):
        before, agent = prefixes(places, graphs, actions, sequential)
        rows = agent == member
        logits = scores(before.at(rows), agent[rows], legal[:, member])
        logits = logits if draw is None else logits + draw[:, member]
        actions[:, member] = logits.masked_fill(~legal[:, member], NEVER).argmax(dim=1)
    return actions


class GraphPlayer:
    """Plays a team.

    Attributes:
        memory_size, kept_size: 1 where it draws, for the number of decisions; else 0.
    """

    def __init__(self, choose: Callable[..., torch.Tensor], game: Game, team: str, draws: bool = False) -> None:
        """Keeps how to choose.

        Args:
            choose: ``choose(places, legal [S, k, M], draw)``, alternatives int64 ``[S, k]``, see `decide`.
            game: The rules.
            team: The team.
            draws: Draws from the policy, by the seeds of the lanes; else it takes the most probable alternatives.
        """
        self.choose, self.members = choose, len(game.teams[team])
        self.memory_size = self.kept_size = int(draws)
        self.number = list(game.teams).index(team)
        self.joint = JointChoice(game, game.role_of(game.teams[team][0])[0])

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Moves of the team; see `palaestra.core.run.opponents.Opponent`."""
        places = Places.of(torch.from_numpy(nodes_of(observations)), self.members)
        allowed = torch.from_numpy(self.joint.mask(np.asarray(legal)))
        draw = None
        if self.memory_size:
            memory[:, 0] += 1.0
            uniforms = Chance(seeds, memory[:, 0], 1, self.number).uniforms(allowed[0].numel())
            draw = torch.from_numpy(-np.log(-np.log(uniforms))).float().reshape(allowed.shape)
        return self.joint.split(self.choose(places, allowed, draw).numpy())


# ----------------------------------------------------------------------------------------------------------- references

REFERENCES = ("shortest_path", "optimal", "random")
UNREACHABLE = 1 << 20
CAUGHT, SAFE = 1 << 18, 0
"""Values of a position for the pursuers: caught, and never; a capture in t moves is `FAST` - t."""
FAST = 1 << 17


class Reference:
    """A reference policy of one team."""

    def __init__(self, name: str, game: Game, graphs: Graphs, team: str) -> None:
        """Prepares it.

        Args:
            name: One of `REFERENCES`.
            game: The rules.
            graphs: Its graphs.
            team: The team that learns.

        Raises:
            ValueError: ``optimal`` of a team or a game that has none.
        """
        self.name, self.graphs = name, graphs
        if name == "optimal":
            if not game.world.rules.solved or team != next(iter(game.teams)):
                raise ValueError(
                    f"--reference optimal needs a solved pursuit and its pursuers: {game.name} as {team} has none; "
                    "add --options solve=True"
                )
            self._times = torch.from_numpy(game.world.times.reshape(-1).copy())
            self._size = game.world.times.shape[1]

    @torch.no_grad()
    def __call__(self, places: Places, agent: torch.Tensor, legal: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Probabilities float32 ``[S, M]`` of the alternatives.

        Args:
            places: Positions in which ``agent`` decides, see `palaestra_baselines.arac.MoveNetwork`.
            agent: int64 ``[S]``.
            legal: bool ``[S, M]``.
            moves: Nodes that moves lead to, ``[S, D]``.
        """
        if self.name == "random":
            good = legal
        elif self.name == "optimal":
            good = self._optimal(places, agent, moves)
        else:
            good = self._nearest(places, moves)
            if self.graphs.targets:
                good = good[:, :, None] & self._aims(places, legal.unflatten(1, (self.graphs.moves, -1)), moves)
                good = good.flatten(1)
        good = good & legal
        good = torch.where(good.any(dim=1, keepdim=True), good, legal).float()
        return good / good.sum(dim=1, keepdim=True).clamp(min=1.0)

    def scores(self, places: Places, agent: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        """Logarithms of the probabilities, see `decide`."""
        moves = self.graphs.neighbours(places.graph, places.own.gather(1, agent[:, None])[:, 0])
        return self(places, agent, legal, moves).clamp(min=1e-30).log()

    def _nearest(self, places: Places, moves: torch.Tensor) -> torch.Tensor:
        hops = self._hops_to_others(places, moves).min(dim=2).values
        taken = ((moves[:, :, None] == places.own[:, None]) & places.decided[:, None]).any(dim=2)
        cost = (2 * hops + taken).masked_fill(moves < 0, 4 * UNREACHABLE)
        return cost == cost.min(dim=1, keepdim=True).values

    def _hops_to_others(self, places: Places, moves: torch.Tensor) -> torch.Tensor:
        hops = self.graphs.hops(places.graph[:, None, None], moves[:, :, None], places.others[:, None, :]).long()
        return hops.masked_fill((places.others < 0)[:, None], UNREACHABLE)

    def _aims(self, places: Places, legal: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """The nearest legal targets, bool ``[S, D, 1 + m]``; no target where there are none."""
        hops = self._hops_to_others(places, moves).masked_fill(~legal[..., 1:], 2 * UNREACHABLE)
        least = hops.min(dim=2, keepdim=True).values
        return torch.cat([least == 2 * UNREACHABLE, (hops == least) & legal[..., 1:]], dim=2)

    def _optimal(self, places: Places, agent: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Every joint move of those that have not decided, against the evader's best answer."""
        members, good = places.own.shape[1], torch.zeros_like(moves, dtype=torch.bool)
        for first in range(members):
            rows = (agent == first).nonzero()[:, 0]
            some, own_moves = places.at(rows), moves[rows]
            start = torch.zeros_like(some.graph)
            for member in range(first):
                start = start * self.graphs.nodes + some.own[:, member]
            joint = (start[:, None] * self.graphs.nodes + own_moves).masked_fill(own_moves < 0, -1)[:, :, None]
            for member in range(first + 1, members):
                joint = self._append(joint, self.graphs.neighbours(some.graph, some.own[:, member]))
            values = self._after(some, joint).amax(dim=2)
            values = values.masked_fill(own_moves < 0, -1)
            good[rows] = values == values.max(dim=1, keepdim=True).values
        return good

    def _append(self, joint: torch.Tensor, moves: torch.Tensor) -> torch.Tensor:
        """Indices of joint moves ``[S, D, J]`` with the nodes ``[S, D]`` of one more member; -1 where it has none."""
        more = joint[..., None] * self.graphs.nodes + moves[:, None, None, :]
        return more.masked_fill((joint[..., None] < 0) | (moves < 0)[:, None, None, :], -1).flatten(2)

    def _after(self, places: Places, joint: torch.Tensor) -> torch.Tensor:
        """Values of joint moves for the pursuers."""
        start = places.graph * self._size
        evader = places.others[:, 0]
        at = start[:, None, None] + joint.clamp(min=0) * self.graphs.nodes
        caught = self._times[at + evader.clamp(min=0)[:, None, None]] == 0
        ahead = self.graphs.neighbours(places.graph, evader)
        times = self._times[at[..., None] + ahead.clamp(min=0)[:, None, None]].long()
        value = torch.where(times < 0, SAFE, FAST - times)
        value = value.masked_fill((ahead < 0)[:, None, None], CAUGHT).min(dim=3).values
        return torch.where(caught, CAUGHT, value).masked_fill(joint < 0, -1)
