"""Networks for teams on graphs: attention from where an agent can go to where everybody is and opponents can go.

A position is the number of the graph and the nodes of all agents; everything else is looked up in the game's world. No
weight depends on the graph or on the number of agents. Agents of a team decide one after the other: who decides sees
where its earlier teammates are going.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from palaestra.core.game import Game
from palaestra.core.simulation import Simulation
from palaestra.core.team_rows import team_rows
from palaestra_baselines.common.agents import Roster

ABSENT = -1
"""Node of an agent that is not in the match or not seen."""
NEAREST = 8
"""Hops that have a number of their own among the features of a pair."""
FARTHEST = 63
"""Larger hops look like this one."""
PAIR = NEAREST + 4
KINDS = 3
"""Kinds of teammates: oneself, one that has decided, one that has not."""
NODE = 4
"""Features of a node: the agent stays there, there are exits, hops to the next one as a share, and it is one."""
MASKED = -1e9


class GraphRoster(Roster):
    """The learning agents of a team on a graph, which observe graph and nodes: int16 ``[N, 1, 1 + agents]``.

    The graph's number comes first, then the nodes of the team's members and of the opponents, `ABSENT` for who is not
    seen.
    """

    def __init__(self, game: Game, teams: Any) -> None:
        """See `Roster`.

        Raises:
            ValueError: The game does not show nodes, or `Roster` refuses it.
        """
        if not any(f.name == "node_hops" for f in game.team_observation):
            raise ValueError(f'{game.name} does not show its nodes: make it with view="nodes"')
        super().__init__(game, teams)
        (self.team,) = teams

    def check_shared(self, game: Game) -> None:
        """Takes what is shown to whole teams and matches."""

    def read_observations(self, sim: Simulation) -> dict[str, np.ndarray]:
        """Graph and nodes."""
        return {"nodes": nodes_of(team_rows(sim, self.team, "observations", slice(None)))[:, None]}


def nodes_of(observations: dict[str, Any]) -> np.ndarray:
    """Graph and nodes int16 ``[N, 1 + agents]`` of what a team observes with ``view="nodes"``."""
    at = observations["team"]["node_hops"][:, 1:] == 0
    nodes = np.where(at.any(axis=2), at.argmax(axis=2), ABSENT)
    return np.concatenate([observations["lane"]["graph"][:, None], nodes], axis=1).astype(np.int16)


@dataclass(frozen=True)
class Places:
    """Where everybody is, tensors of S positions.

    Attributes:
        graph: int64 ``[S]``.
        own: Nodes of the team's members, int64 ``[S, k]``, `ABSENT` for those out of the match.
        others: Nodes of opponents, int64 ``[S, m]``, `ABSENT` for those that are not seen.
    """

    graph: torch.Tensor
    own: torch.Tensor
    others: torch.Tensor

    @staticmethod
    def of(nodes: torch.Tensor, members: int) -> Places:
        """From rows of `GraphRoster`, ``[S, 1 + agents]``."""
        nodes = nodes.long()
        return Places(nodes[:, 0], nodes[:, 1 : 1 + members], nodes[:, 1 + members :])

    def at(self, rows: torch.Tensor) -> Places:
        """Some of the positions."""
        return Places(self.graph[rows], self.own[rows], self.others[rows])


class Maps:
    """The graphs of a game as tensors.

    Attributes:
        ways: Alternatives of a move, D.
    """

    def __init__(self, game: Game) -> None:
        """Reads `palaestra.pursuit.ground.Ground`."""
        world = game.world
        (self.ways,) = {choice.n for role in game.roles for choice in role.action if choice.name == "move"}  # type: ignore[union-attr]
        self.nodes = world.hops.shape[1]
        self._neighbours = torch.from_numpy(world.neighbours[:, :, : self.ways].astype(np.int64)).reshape(-1, self.ways)
        self._hops = torch.from_numpy(np.array(world.hops)).reshape(-1)
        self._exit_hops = torch.from_numpy(np.array(world.exit_hops)).reshape(-1)
        self._per_hop = torch.from_numpy(world.per_hop.astype(np.float32))
        self._has_exits = bool(world.rules["has_exits"][0])
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
        hops = self._exit_hops[graph * self.nodes + nodes.clamp(min=0)]
        stays = torch.zeros(nodes.shape)
        stays[..., 0] = 1.0
        if not self._has_exits:
            return torch.stack([stays, *[torch.zeros(nodes.shape)] * (NODE - 1)], dim=-1)
        share = (hops * self._per_hop[graph]).clamp(max=1.0)
        return torch.stack([stays, torch.ones(nodes.shape), share, (hops == 0).float()], dim=-1)


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
    """Numbers for each alternative of an agent's move, by attention over opponents' alternatives and teammates.

    The encoder looks, from each node where an opponent may go, at all members of the team; the decoder from each node
    where the agent may go at these nodes as encoded, and at its teammates.
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
        self.encode = PairAttention(width, NODE, KINDS, heads)
        self.encoded = nn.Linear(width + NODE, width)
        self.decode_others = PairAttention(width, NODE, width, heads)
        self.decode_own = PairAttention(width, NODE, KINDS, heads)
        self.hidden = nn.Linear(2 * width + NODE, width)
        self.output = nn.Linear(width, outputs)

    def forward(self, places: Places, agent: torch.Tensor, decided: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Numbers ``[S, D, outputs]`` and the nodes ``[S, D]`` of the alternatives.

        Args:
            places: Positions, in which those that have decided are where they are going.
            agent: Number of the member that decides, int64 ``[S]``.
            decided: bool ``[S, k]``.
        """
        maps, members = self.maps, places.own.shape[1]
        graph, own, far = places.graph, places.own, places.graph[:, None, None]
        ways = maps.neighbours(graph, own.gather(1, agent[:, None])[:, 0])
        ahead = maps.neighbours(graph[:, None], places.others)
        seen, ahead = maps.places(far, ahead).flatten(1, 2), ahead.flatten(1)
        queries = maps.places(graph[:, None], ways)
        is_self = torch.arange(members) == agent[:, None]
        kinds = torch.stack([is_self, decided & ~is_self, ~decided & ~is_self], dim=-1).float()
        is_there, is_ahead = (own >= 0)[:, None], (ahead >= 0)[:, None]

        covered = self.encode(seen, kinds, maps.pairs(far, ahead[:, :, None], own[:, None]), is_there)
        encoded = torch.relu(self.encoded(torch.cat([covered, seen], dim=-1)))
        others = self.decode_others(queries, encoded, maps.pairs(far, ways[:, :, None], ahead[:, None]), is_ahead)
        pairs = maps.pairs(far, ways[:, :, None], own[:, None])
        teammates = self.decode_own(queries, kinds, pairs, is_there & ~is_self[:, None])
        hidden = torch.relu(self.hidden(torch.cat([others, teammates, queries], dim=-1)))
        return self.output(hidden), ways


def prefixes(places: Places, chosen: torch.Tensor, sequential: bool) -> tuple[Places, torch.Tensor, torch.Tensor]:
    """The positions in which each member of the teams decides, after its earlier teammates.

    Args:
        places: S positions.
        chosen: Nodes where the members go, int64 ``[S, k]``.
        sequential: Members see the decisions of earlier ones; else all decide at once.

    Returns:
        Positions ``[S * k]`` in the order of the members, numbers of the members ``[S * k]``, and who has decided.
    """
    count, members = places.own.shape
    order = torch.arange(members)
    has_decided = (order[None, :] < order[:, None]) & torch.tensor(sequential)
    own = torch.where(has_decided, chosen[:, None, :], places.own[:, None, :])
    graph = places.graph[:, None].expand(-1, members)
    others = places.others[:, None].expand(-1, members, -1)
    decided = has_decided.expand(count, -1, -1)
    flat = Places(graph.reshape(-1), own.reshape(-1, members), others.reshape(count * members, -1))
    return flat, order.repeat(count), decided.reshape(-1, members)


@torch.no_grad()
def decide(
    network: WaysNetwork, places: Places, legal: torch.Tensor, draw: torch.Tensor | None, sequential: bool = True
) -> torch.Tensor:
    """Alternatives int64 ``[S, k]`` that the members choose one after the other.

    Args:
        network: Logits of the alternatives are its first output.
        places: S positions.
        legal: bool ``[S, k, D]``.
        draw: Numbers float32 ``[S, k, D]`` that are added to the logits, of a Gumbel distribution for samples; None
            takes the most probable alternatives.
        sequential: See `prefixes`.
    """
    own, found = places.own.clone(), []
    decided = torch.zeros(own.shape, dtype=torch.bool)
    for member in range(own.shape[1]):
        agent = torch.full((len(own),), member)
        outputs, ways = network(Places(places.graph, own, places.others), agent, decided)
        logits = outputs[..., 0] if draw is None else outputs[..., 0] + draw[:, member]
        choice = logits.masked_fill(~legal[:, member], MASKED).argmax(dim=1)
        found.append(choice)
        if sequential:
            there = places.own[:, member] >= 0
            own[:, member] = torch.where(there, ways.gather(1, choice[:, None])[:, 0], own[:, member])
            decided[:, member] = True
    return torch.stack(found, dim=1)


def named_parameters(network: nn.Module) -> Iterator[tuple[str, np.ndarray]]:
    """Weights by name, float32."""
    for name, value in network.state_dict().items():
        yield name, value.numpy().copy()
