"""Networks for joint orders: a factorised policy, a classifier over whole plans, and the value of a position.

The factorised policy knows of the orders given before only which they are, in no order. An order is its kind and first
place, and its kind and second place; each of both has a row in two tables, so that a table does not grow with the
square of the map::

    h = relu(B relu(A x + u[place of the unit] + sum over earlier orders of (e1 + e2) + c) + d)
    score(order) = h . (o1 * (1 + o2))

x are the features of the position.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from palaestra.games.concert.concert_orders import CONVOY, SUPPORT_MOVE
from palaestra_baselines.common.joint_orders import Conditionals, Terrain, View, draw_plans, drawn, has_choice

FEW_ORDERS = 2048
"""Up to so many all orders are scored, and those of a list taken; above only those of the lists are."""
NEVER = -1e9
"""Score of what is not in a list."""


class Embedding(nn.Module):
    """A vector for each order, of its two parts, see the module."""

    first: torch.Tensor
    second: torch.Tensor

    def __init__(self, terrain: Terrain, width: int, multiplies: bool) -> None:
        """Random tables.

        Args:
            terrain: Of the game.
            width: Numbers of a vector.
            multiplies: Whether parts are multiplied; else added.
        """
        super().__init__()
        kinds, a, b = terrain.parts.T
        pairs = np.isin(kinds, (SUPPORT_MOVE, CONVOY))
        first = np.unique(kinds * terrain.locations + a, return_inverse=True)[1]
        second = np.unique(np.where(pairs, 1 + kinds * terrain.provinces + b, 0), return_inverse=True)[1]
        self.register_buffer("first", torch.from_numpy(first), persistent=False)
        self.register_buffer("second", torch.from_numpy(second), persistent=False)
        self.multiplies = multiplies
        self.one = nn.Parameter(torch.randn(int(first.max()) + 1, width) / width**0.5)
        self.two = nn.Parameter(torch.zeros(int(second.max()) + 1, width))
        nn.init.normal_(self.two, std=0.1)

    def forward(self, orders: torch.Tensor) -> torch.Tensor:
        """Vectors ``[..., W]`` of orders int64 ``[...]``."""
        one, two = self.one[self.first[orders]], self.two[self.second[orders]]
        return one * (1.0 + two) if self.multiplies else one + two


class FactorisedPolicy(nn.Module):
    """The policy, a `palaestra_baselines.common.joint_orders.Conditionals`.

    Attributes:
        terrain: Of the game.
        temperature: Scores are divided by it when it plays.
    """

    def __init__(self, terrain: Terrain, hidden: tuple[int, ...] = (128, 128)) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.terrain, self.temperature = terrain, 1.0
        self.position = nn.Linear(terrain.features, hidden[0])
        self.unit = nn.Parameter(torch.randn(terrain.locations + 1, hidden[0]) / 4.0)
        self.earlier = Embedding(terrain, hidden[0], multiplies=False)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(hidden))
        self.out = Embedding(terrain, hidden[-1], multiplies=True)

    def scores(
        self, position: torch.Tensor, units: torch.Tensor, earlier: torch.Tensor, lists: torch.Tensor
    ) -> torch.Tensor:
        """Scores float32 ``[R, K]`` of the orders of lists; `NEVER` beyond them.

        Args:
            position: ``[R, hidden]``, what `position` made of the features.
            units: int64 ``[R]``, where the units stand; -1 for none.
            earlier: int64 ``[R, d]``, orders given before.
            lists: int64 ``[R, K]``, -1 beyond the list.
        """
        hidden = position + self.unit[units + 1]
        if earlier.shape[1]:
            hidden = hidden + self.earlier(earlier).sum(1)
        hidden = torch.relu(hidden)
        for layer in self.layers:
            hidden = torch.relu(layer(hidden))
        orders = lists.clamp(min=0)
        if self.terrain.orders <= FEW_ORDERS:
            scores = (hidden @ self.out(torch.arange(self.terrain.orders)).T).gather(1, orders)
        else:
            scores = (self.out(orders) @ hidden[..., None])[..., 0]
        return scores.masked_fill(lists < 0, NEVER)

    @torch.no_grad()
    def prepare(self, view: View) -> tuple[View, torch.Tensor]:
        """See `palaestra_baselines.common.joint_orders.Conditionals`."""
        return view, self.position(torch.from_numpy(view.features))

    @torch.no_grad()
    def probabilities(
        self, known: tuple[View, torch.Tensor], rows: np.ndarray, slot: int, earlier: np.ndarray
    ) -> np.ndarray:
        """See `palaestra_baselines.common.joint_orders.Conditionals`."""
        view, position = known
        units, before = torch.from_numpy(view.units[rows, slot]), torch.from_numpy(earlier[:, :slot])
        lists = torch.from_numpy(view.lists[rows, slot]).long()
        scores = self.scores(position[torch.from_numpy(rows)], units, before, lists)
        return (scores / self.temperature).softmax(-1).double().numpy()


def plan_loss(policy: FactorisedPolicy, view: View, plans: np.ndarray) -> torch.Tensor:
    """Mean over positions of ``-log pi`` of a plan each, over lists with a choice; 0 where there is none.

    Args:
        policy: Learns.
        view: N positions.
        plans: int64 ``[N, S]``.
    """
    features, total = torch.from_numpy(view.features), torch.zeros(())
    position = policy.position(features)
    for slot in range(plans.shape[1]):
        rows = np.flatnonzero(has_choice(view.lists[:, slot]))
        if not len(rows):
            continue
        lists, units = torch.from_numpy(view.lists[rows, slot]).long(), torch.from_numpy(view.units[rows, slot])
        orders = torch.from_numpy(plans[rows])
        scores = policy.scores(position[torch.from_numpy(rows)], units, orders[:, :slot], lists)
        chosen = (lists == orders[:, slot, None]).float()
        total = total - (scores.log_softmax(-1) * chosen).sum()
    return total / len(plans)


class ValueNetwork(nn.Module):
    """What a position is worth to who sees it, in [-1, 1]."""

    def __init__(self, features: int, hidden: tuple[int, ...] = (64, 64)) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        widths = (features, *hidden)
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.last = nn.Linear(widths[-1], 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Values ``[N]`` of features ``[N, F]``."""
        for layer in self.layers:
            features = torch.relu(layer(features))
        return torch.tanh(self.last(features))[..., 0]

    @torch.no_grad()
    def values(self, features: np.ndarray) -> np.ndarray:
        """See `palaestra_baselines.common.pikl.Value`."""
        return self(torch.from_numpy(features)).numpy()


class PlanClassifier(nn.Module):
    """A policy over whole plans, the heaviest ones of some targets: what factorised policies are compared with.

    Where none of its plans is legal, a position is played by the anchor.

    Attributes:
        plans: int64 ``[C, S]``, the plans that it knows.
        temperature: Scores are divided by it when it plays.
    """

    plans: torch.Tensor

    def __init__(self, terrain: Terrain, plans: np.ndarray, hidden: tuple[int, ...] = (128, 128)) -> None:
        """Random weights from torch's generator."""
        super().__init__()
        self.orders, self.temperature = terrain.orders, 1.0
        widths = (terrain.features, *hidden, len(plans))
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.register_buffer("plans", torch.from_numpy(plans))

    def forward(self, view: View) -> tuple[torch.Tensor, torch.Tensor]:
        """Logarithms of probabilities of all plans ``[N, C]``, `NEVER` for illegal ones; and which are legal."""
        hidden = torch.from_numpy(view.features)
        for layer in self.layers[:-1]:
            hidden = torch.relu(layer(hidden))
        legal = self.legal(view)
        scores = self.layers[-1](hidden).masked_fill(~legal, NEVER)
        return scores, legal

    def legal(self, view: View) -> torch.Tensor:
        """Which plans are legal in which positions, bool ``[N, C]``."""
        legal = torch.ones(len(view), len(self.plans), dtype=torch.bool)
        for slot in range(self.plans.shape[1]):
            allowed = torch.zeros(len(view), self.orders + 1, dtype=torch.bool)
            allowed.scatter_(
                1, torch.from_numpy(view.lists[:, slot]).long() % (self.orders + 1), True
            )  # -1 is the last
            legal &= allowed[:, self.plans[:, slot]]
        return legal

    @torch.no_grad()
    def draw(self, view: View, anchor: Conditionals, uniforms: np.ndarray) -> np.ndarray:
        """A plan for each position, int64 ``[N, S]``.

        Args:
            view: N positions.
            anchor: Plays where no plan is legal.
            uniforms: Draws from [0, 1), ``[N, S]``.
        """
        scores, legal = self(view)
        shares = (scores / self.temperature).softmax(-1).double().cumsum(-1).numpy()
        known = self.plans.numpy()[drawn(shares, uniforms[:, 0])]
        return np.where(legal.any(-1).numpy()[:, None], known, draw_plans(anchor, view, uniforms[:, None])[:, 0])


def heaviest_plans(plans: np.ndarray, weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """The plans of the greatest total weight; that of holds alone, which fits everywhere, is left out.

    Args:
        plans: int64 ``[N, K, S]``.
        weights: float ``[N, K]``.
        most: How many, at most.

    Returns:
        int64 ``[C, S]``, and the class of each plan, int64 ``[N, K]``, -1 for none.
    """
    every, number = np.unique(plans.reshape(-1, plans.shape[-1]), axis=0, return_inverse=True)
    total = np.bincount(number.reshape(-1), weights.reshape(-1), minlength=len(every))
    total[~every.any(1)] = 0.0
    kept = np.argsort(-total, kind="stable")[: min(most, np.count_nonzero(total))]
    classes = np.full(len(every), -1)
    classes[kept] = np.arange(len(kept))
    return every[kept], classes[number.reshape(-1)].reshape(weights.shape)


def class_loss(network: PlanClassifier, view: View, classes: np.ndarray) -> torch.Tensor:
    """Mean of ``-log p`` of a class each; positions whose class is -1 do not count.

    Args:
        network: Learns.
        view: N positions.
        classes: int64 ``[N]``.
    """
    scores, _ = network(view)
    known = torch.from_numpy(classes >= 0)
    chosen = scores.log_softmax(-1).gather(1, torch.from_numpy(classes).clamp(min=0)[:, None])[:, 0]
    return -(chosen * known).sum() / max(int(known.sum()), 1)
