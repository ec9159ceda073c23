"""Reference policies on graphs, as distributions over the alternatives of who decides next.

``shortest_path``  uniform over the alternatives that lead nearest to the nearest opponent; where there are several, not
                   to where a teammate is going; aims at the nearest legal target
``optimal``        uniform over the optimal ones of a solved pursuit, given where earlier teammates are going
``random``         uniform over all
"""

from __future__ import annotations

import torch

from palaestra.core.game import Game
from palaestra_baselines.common.graph_networks import Maps, Places

REFERENCES = ("shortest_path", "optimal", "random")
FAR = 1 << 20
CAUGHT, SAFE = 1 << 18, 0
"""Values of a position for the pursuers: caught, and never; a capture in t moves is `FAST` - t."""
FAST = 1 << 17


class Reference:
    """A reference policy of one team."""

    def __init__(self, name: str, game: Game, maps: Maps, team: str) -> None:
        """Prepares it.

        Args:
            name: One of `REFERENCES`.
            game: The rules.
            maps: Its graphs.
            team: The team that learns.

        Raises:
            ValueError: ``optimal`` of a team or a game that has none.
        """
        self.name, self.maps = name, maps
        if name == "optimal":
            if not game.world.rules.solved or team != next(iter(game.teams)):
                raise ValueError(
                    f"--reference optimal needs a solved pursuit and its pursuers: {game.name} as {team} has none; "
                    "add --options solve=True"
                )
            self._times = torch.from_numpy(game.world.times.reshape(-1).copy())
            self._size = game.world.times.shape[1]

    @torch.no_grad()
    def __call__(self, places: Places, agent: torch.Tensor, legal: torch.Tensor, ways: torch.Tensor) -> torch.Tensor:
        """Probabilities float32 ``[S, M]`` of the alternatives.

        Args:
            places: Positions in which ``agent`` decides, see `WaysNetwork`.
            agent: int64 ``[S]``.
            legal: bool ``[S, M]``.
            ways: Nodes that moves lead to, ``[S, D]``.
        """
        if self.name == "random":
            good = legal
        elif self.name == "optimal":
            good = self._optimal(places, agent, ways)
        else:
            good = self._nearest(places, ways)
            if self.maps.targets:
                good = good[:, :, None] & self._aims(places, legal.unflatten(1, (self.maps.ways, -1)), ways)
                good = good.flatten(1)
        good = good & legal
        good = torch.where(good.any(dim=1, keepdim=True), good, legal).float()
        return good / good.sum(dim=1, keepdim=True).clamp(min=1.0)

    def scores(self, places: Places, agent: torch.Tensor, legal: torch.Tensor) -> torch.Tensor:
        """Logarithms of the probabilities, see `palaestra_baselines.common.graph_networks.decide`."""
        ways = self.maps.neighbours(places.graph, places.own.gather(1, agent[:, None])[:, 0])
        return self(places, agent, legal, ways).clamp(min=1e-30).log()

    def _nearest(self, places: Places, ways: torch.Tensor) -> torch.Tensor:
        hops = self._hops_to_others(places, ways).min(dim=2).values
        taken = ((ways[:, :, None] == places.own[:, None]) & places.decided[:, None]).any(dim=2)
        cost = (2 * hops + taken).masked_fill(ways < 0, 4 * FAR)
        return cost == cost.min(dim=1, keepdim=True).values

    def _hops_to_others(self, places: Places, ways: torch.Tensor) -> torch.Tensor:
        hops = self.maps.hops(places.graph[:, None, None], ways[:, :, None], places.others[:, None, :]).long()
        return hops.masked_fill((places.others < 0)[:, None], FAR)

    def _aims(self, places: Places, legal: torch.Tensor, ways: torch.Tensor) -> torch.Tensor:
        """The nearest legal targets, bool ``[S, D, 1 + m]``; nobody where there are none."""
        hops = self._hops_to_others(places, ways).masked_fill(~legal[..., 1:], 2 * FAR)
        least = hops.min(dim=2, keepdim=True).values
        return torch.cat([least == 2 * FAR, (hops == least) & legal[..., 1:]], dim=2)

    def _optimal(self, places: Places, agent: torch.Tensor, ways: torch.Tensor) -> torch.Tensor:
        """Every joint move of those that have not decided, against the evader's best answer."""
        members, good = places.own.shape[1], torch.zeros_like(ways, dtype=torch.bool)
        for first in range(members):
            rows = (agent == first).nonzero()[:, 0]
            some, own_ways = places.at(rows), ways[rows]
            start = torch.zeros_like(some.graph)
            for member in range(first):
                start = start * self.maps.nodes + some.own[:, member]
            joint = (start[:, None] * self.maps.nodes + own_ways).masked_fill(own_ways < 0, -1)[:, :, None]
            for member in range(first + 1, members):
                joint = self._append(joint, self.maps.neighbours(some.graph, some.own[:, member]))
            values = self._after(some, joint).amax(dim=2)
            values = values.masked_fill(own_ways < 0, -1)
            good[rows] = values == values.max(dim=1, keepdim=True).values
        return good

    def _append(self, joint: torch.Tensor, ways: torch.Tensor) -> torch.Tensor:
        """Indices of joint moves ``[S, D, J]`` with the nodes ``[S, D]`` of one more member; -1 where it has none."""
        more = joint[..., None] * self.maps.nodes + ways[:, None, None, :]
        return more.masked_fill((joint[..., None] < 0) | (ways < 0)[:, None, None, :], -1).flatten(2)

    def _after(self, places: Places, joint: torch.Tensor) -> torch.Tensor:
        """Values of joint moves for the pursuers."""
        start = places.graph * self._size
        evader = places.others[:, 0]
        at = start[:, None, None] + joint.clamp(min=0) * self.maps.nodes
        caught = self._times[at + evader.clamp(min=0)[:, None, None]] == 0
        ahead = self.maps.neighbours(places.graph, evader)
        times = self._times[at[..., None] + ahead.clamp(min=0)[:, None, None]].long()
        value = torch.where(times < 0, SAFE, FAST - times)
        value = value.masked_fill((ahead < 0)[:, None, None], CAUGHT).min(dim=3).values
        return torch.where(caught, CAUGHT, value).masked_fill(joint < 0, -1)
