"""Networks for teams on graphs: attention from where an agent can go to where everybody is and opponents can go.

A position is the number of the graph and the nodes of all agents; everything else is looked up in the game's world. No
weight depends on the graph or on the number of agents. Agents of a team decide one after the other: who decides sees
where its earlier teammates are going.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.core.run.simulation import Simulation
from palaestra.game import Choice, Game
from palaestra.pursuit.graph_ground import FAR, NO_NODE
from palaestra_baselines.common.agents import Roster

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
MASKED = -1e9


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
    """Where everybody is, tensors of S positions.

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
        """From rows of `GraphRoster`, ``[S, 1 + 2 agents]``; nobody has decided."""
        everybody = (nodes.shape[1] - 1) // 2
        places, lives = nodes[:, 1 : 1 + everybody].long(), nodes[:, 1 + everybody :] / FULL_LIFE
        own, others = places[:, :members], places[:, members:]
        aimed, decided = torch.zeros(others.shape), torch.zeros(own.shape, dtype=torch.bool)
        return Places(nodes[:, 0].long(), own, others, lives[:, :members], lives[:, members:], aimed, decided)

    def at(self, rows: torch.Tensor) -> Places:
        """Some of the positions."""
        return Places(*(value[rows] for value in vars(self).values()))


class Maps:
    """The graphs of a game as tensors.

    Attributes:
        ways: Alternatives of a move, D.
        targets: Opponents that an agent may aim at, 0 where nobody aims.
        nodes: Largest number of nodes.
    """

    def __init__(self, game: Game) -> None:
        """Reads `palaestra.pursuit.graph_ground.Ground`."""
        world = game.world
        choices = {choice.name: choice.n for role in game.roles for choice in role.action if isinstance(choice, Choice)}
        self.ways, self.targets = choices["move"], choices.get("target", 1) - 1
        self.nodes = world.hops.shape[1]
        self._neighbours = torch.from_numpy(world.neighbours[:, :, : self.ways].astype(np.int64)).reshape(-1, self.ways)
        self._hops = torch.from_numpy(np.array(world.hops)).reshape(-1)
        self._exit_hops = torch.from_numpy(np.array(world.exit_hops)).reshape(-1)
        self._per_hop = torch.from_numpy(world.per_hop.astype(np.float32))
        self._has_exits = bool(world.rules.has_exits)
        self._places = torch.from_numpy(places_of(world, self.ways))
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


def places_of(world: Any, ways: int) -> np.ndarray:
    """Features of all nodes of all graphs in their graph, float32 ``[graphs * nodes, PLACE]``.

    Args:
        world: A `palaestra.pursuit.graph_ground.Ground`.
        ways: Alternatives of a move, staying among them.
    """
    is_there = world.hops != FAR
    hops, counts = np.where(is_there, world.hops, 0), np.maximum(is_there.sum(axis=2), 1)
    per_hop = world.per_hop[:, None]
    degrees = (world.neighbours[:, :, 1:ways] != NO_NODE).sum(axis=2) / max(ways - 1, 1)
    features = (degrees, hops.max(axis=2) * per_hop, hops.sum(axis=2) / counts * per_hop)
    return np.stack(features, axis=-1).reshape(-1, PLACE).astype(np.float32)


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
        weights = (self.score(hidden) + MASKED * ~there[..., None]).softmax(dim=2) * there[..., None]
        return (hidden.unflatten(-1, (self.heads, -1)) * weights[..., None]).sum(dim=2).flatten(2)


class WaysNetwork(nn.Module):
    """Numbers for each alternative of an agent, by attention over where opponents may go and over teammates.

    The encoder looks, from each node where an opponent may go, at all members of the team; the decoder from each node
    where the agent may go at these nodes as encoded, and at its teammates. Where agents aim, an alternative is a node
    to go to and an opponent, and its numbers are the sum of one for the node and one for the opponent from there.
    """

    def __init__(self, maps: Maps, width: int, heads: int, outputs: int) -> None:
        """Layers of random weights from torch's generator.

        Args:
            maps: The graphs.
            width: Of all hidden layers.
            heads: Of the attention.
            outputs: Numbers for each alternative.
        """
        super().__init__()
        self.maps = maps
        self.encode = PairAttention(width, NODE + 1, MEMBER, heads)
        self.encoded = nn.Linear(width + NODE + 1, width)
        self.decode_others = PairAttention(width, NODE, width, heads)
        self.decode_own = PairAttention(width, NODE, MEMBER, heads)
        self.hidden = nn.Linear(2 * width + NODE, width)
        self.output = nn.Linear(width, outputs)
        if maps.targets:
            self.aim_from, self.aim_pair = nn.Linear(width, width), nn.Linear(PAIR + TARGET, width)
            self.aim = nn.Linear(width, outputs)

    def forward(self, places: Places, agent: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Numbers ``[S, M, outputs]`` of the alternatives and the nodes ``[S, D]`` that they lead to.

        M is D, or D (1 + m) where agents aim: nodes, and for each nobody and every opponent.

        Args:
            places: Positions, in which those that have decided are where they are going.
            agent: Number of the member that decides, int64 ``[S]``.
        """
        maps, graph, own = self.maps, places.graph, places.own
        far, is_there = graph[:, None, None], (own >= 0)[:, None]
        ways = maps.neighbours(graph, own.gather(1, agent[:, None])[:, 0])
        ahead = maps.neighbours(graph[:, None], places.others)
        life = places.other_life[:, :, None, None].expand(-1, -1, maps.ways, 1)
        seen, ahead = torch.cat([maps.places(far, ahead), life], dim=-1).flatten(1, 2), ahead.flatten(1)
        queries = maps.places(graph[:, None], ways)
        is_self = torch.arange(own.shape[1]) == agent[:, None]
        kinds = [is_self, places.decided & ~is_self, ~places.decided & ~is_self, places.own_life]
        members = torch.stack([kind.float() for kind in kinds], dim=-1)

        covered = self.encode(seen, members, maps.pairs(far, ahead[:, :, None], own[:, None]), is_there)
        encoded = torch.relu(self.encoded(torch.cat([covered, seen], dim=-1)))
        pairs = maps.pairs(far, ways[:, :, None], ahead[:, None])
        others = self.decode_others(queries, encoded, pairs, (ahead >= 0)[:, None])
        pairs = maps.pairs(far, ways[:, :, None], own[:, None])
        teammates = self.decode_own(queries, members, pairs, is_there & ~is_self[:, None])
        hidden = torch.relu(self.hidden(torch.cat([others, teammates, queries], dim=-1)))
        numbers = self.output(hidden)
        if maps.targets:
            numbers = numbers[:, :, None] + self._aims(places, ways, hidden)
            numbers = numbers.flatten(1, 2)
        return numbers, ways

    def scores(self, places: Places, agent: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        """The first number of each alternative, ``[S, M]``, as logits of a policy."""
        return self(places, agent)[0][..., 0]

    def _aims(self, places: Places, ways: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Numbers ``[S, D, 1 + m, outputs]`` of nobody and of every opponent as a target."""
        pairs = self.maps.pairs(places.graph[:, None, None], ways[:, :, None], places.others[:, None])
        target = torch.stack([places.other_life, places.aimed], dim=-1)[:, None].expand(-1, ways.shape[1], -1, -1)
        aims = torch.relu(self.aim_from(hidden)[:, :, None] + self.aim_pair(torch.cat([pairs, target], dim=-1)))
        return torch.cat([torch.zeros_like(aims[:, :, :1, : self.aim.out_features]), self.aim(aims)], dim=2)


def prefixes(places: Places, maps: Maps, actions: torch.Tensor, sequential: bool) -> tuple[Places, torch.Tensor]:
    """The positions in which each member of the teams decides, after its earlier teammates.

    Args:
        places: S positions in which nobody has decided.
        maps: The graphs.
        actions: Alternatives that the members take, int64 ``[S, k]``.
        sequential: Members see the decisions of earlier ones; else all decide at once.

    Returns:
        Positions ``[S * k]`` in the order of the members, and numbers of the members ``[S * k]``.
    """
    count, members = places.own.shape
    order = torch.arange(members)
    decided = (order[None, :] < order[:, None]) & torch.tensor(sequential)
    chosen, aims = results_of(places, maps, actions)
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


def results_of(places: Places, maps: Maps, actions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Nodes int64 ``[S, k]`` where members go, and shares of the team ``[S, k, m]`` that aim at each opponent."""
    here = maps.neighbours(places.graph[:, None], places.own)
    chosen = here.gather(2, (actions // (1 + maps.targets))[..., None])[..., 0]
    others, members = places.others.shape[1], places.own.shape[1]
    if not maps.targets:
        return chosen, torch.zeros(*actions.shape, others)
    aims = nn.functional.one_hot(actions % (1 + maps.targets), 1 + others)[..., 1:].float()
    return chosen, aims / members


Scores = Callable[[Places, torch.Tensor, torch.Tensor], torch.Tensor]
"""``scores(places, agent, legal)`` of the members that decide, ``[S, M]``; arguments as of `WaysNetwork`, and what is
legal, bool ``[S, M]``."""


@torch.no_grad()
def decide(
    scores: Scores,
    maps: Maps,
    places: Places,
    legal: torch.Tensor,
    draw: torch.Tensor | None = None,
    sequential: bool = True,
) -> torch.Tensor:
    """Alternatives int64 ``[S, k]`` that the members choose one after the other.

    Args:
        scores: Logarithms of the probabilities of alternatives, up to a constant.
        maps: The graphs.
        places: S positions in which nobody has decided.
        legal: bool ``[S, k, M]``.
        draw: Numbers float32 ``[S, k, M]`` that are added to the logits, of a Gumbel distribution for samples; None
            takes the most probable alternatives.
        sequential: See `prefixes`.
    """
    actions = torch.zeros(places.own.shape, dtype=torch.int64)
    for member in range(places.own.shape[1]):
        before, agent = prefixes(places, maps, actions, sequential)
        rows = agent == member
        logits = scores(before.at(rows), agent[rows], legal[:, member])
        logits = logits if draw is None else logits + draw[:, member]
        actions[:, member] = logits.masked_fill(~legal[:, member], MASKED).argmax(dim=1)
    return actions


def named_parameters(network: nn.Module) -> Iterator[tuple[str, np.ndarray]]:
    """Weights by name, float32."""
    for name, value in network.state_dict().items():
        yield name, value.numpy().copy()
