"""The anchor of joint orders: what the script `province_value` of the Concert games would choose, as probabilities.

The script lets its units choose one after another, each place in proportion to a power of its value; who comes second
to a place supports the first. Here the units choose in the order of their lists, so that a plan has a probability, and
a tenth of each choice is uniform over the list:

    tau_d(a | s, a_1 ... a_{d-1}) = 0.9 w(a) / sum of w + 0.1 / K,    w = (value of the place * chance there)^4

Values are those of `palaestra.games.concert.concert_values`, by matrices for many positions at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from palaestra.games.concert import concert_vector as vector
from palaestra.games.concert.concert_drafts import SHARPNESS
from palaestra.games.concert.concert_orders import (
    BUILD_ARMY,
    BUILD_FLEET,
    HOLD,
    MOVE,
    REMOVE,
    SEA,
    SUPPORT_HOLD,
    SUPPORT_MOVE,
)
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES
from palaestra.games.concert.concert_values import STEPS, WEIGHTS
from palaestra_baselines.common.joint_orders import Terrain, View

UNIFORM = 0.1
"""Share of the uniform distribution."""
POWER = 2**SHARPNESS
"""Exponent of the values."""
SMALLEST = 1e-9
"""Value that stands for less, where units are removed."""


class Known(NamedTuple):
    """What the anchor knows of N positions. A weight is the value of a place times the chance there, ^4.

    Attributes:
        view: The positions.
        army, fleet: Weight of each location for an army and for a fleet, float64 ``[N, L]``.
        port: Weight of each province for a fleet at its best location, float64 ``[N, P]``.
        value: Value of each province for the unit there, float64 ``[N, P]``.
        sails: Whether the unit at each location is a fleet, bool ``[N, L]``.
        rivals: Most units of one other power that reach each province, ``[N, P]``.
        own: Whether an own unit is in each province, bool ``[N, P]``.
    """

    view: View
    army: np.ndarray
    fleet: np.ndarray
    port: np.ndarray
    value: np.ndarray
    sails: np.ndarray
    rivals: np.ndarray
    own: np.ndarray


class Earlier(NamedTuple):
    """What the earlier orders of a plan say of each province.

    Attributes:
        comes: The province whose own unit will be there, or -1; in adjustments, whether it was named: 0 or more.
        backers: Own supports of the unit that will be there.
        waits: Whether an own unit stands there that has no order yet.
    """

    comes: np.ndarray
    backers: np.ndarray
    waits: np.ndarray


class Anchor:
    """The anchor of a map, a `palaestra_baselines.common.joint_orders.Conditionals`."""

    def __init__(self, terrain: Terrain) -> None:
        """Makes the matrices."""
        world = terrain.map
        self.terrain = terrain
        self.province = world.province_of.astype(np.int64)
        self.inside = (self.province[:, None] == np.arange(terrain.provinces)).astype(float)
        armies = (world.army_edge != 0) | np.eye(terrain.provinces, dtype=bool)
        fleets = (world.fleet_edge != 0) | np.eye(terrain.locations, dtype=bool)
        self.army_reach = armies.astype(float)
        self.fleet_reach = ((world.fleet_reach != 0) | (self.inside != 0)).astype(float)
        self.near_army, self.near_fleet = spread(armies), self.inside.T @ spread(fleets).T
        self.is_naval = (world.ground[self.province] == SEA) | (np.arange(terrain.locations) >= terrain.provinces)

    def prepare(self, view: View) -> Known:
        """Values all places; see `palaestra_baselines.common.joint_orders.Conditionals`."""
        terrain = self.terrain
        powers, provinces = terrain.powers, terrain.provinces
        flags = view.features[:, : -vector.CLOCK].reshape(len(view), terrain.locations, -1).astype(float)
        clock = view.features[:, -vector.CLOCK :]
        whose = flags[..., vector.POWER : vector.POWER + powers].copy()
        left = flags[..., vector.DISLODGED] > 0  # beside who stands there; an own one is among the units to order
        whose[left & (view.units[:, :, None] == np.arange(terrain.locations)).any(1), 0] = 0.0
        whose[left & (whose[..., 0] > 0), 1:] = 0.0
        armies, fleets = (flags[..., kind, None] * whose for kind in (vector.ARMY, vector.FLEET))
        reach = np.einsum("nlq,lp->nqp", armies[:, :provinces], self.army_reach)
        reach += np.einsum("nlq,lp->nqp", fleets, self.fleet_reach)
        rivals = reach[:, 1:].max(1)
        places = flags[:, :provinces]
        owned = places[..., vector.POWER + powers :]
        worth = np.where(owned.any(-1), 1.0, WEIGHTS.neutral)
        worth = np.where(owned[..., 0] > 0, WEIGHTS.own + WEIGHTS.threat * rivals, worth)
        worth *= places[..., vector.CENTRE]
        here = np.where(clock[:, vector.IS_AUTUMN] > 0, WEIGHTS.autumn, WEIGHTS.spring)[:, None] * worth
        army = (here + worth @ self.near_army)[:, self.province]
        fleet = here[:, self.province] + worth @ self.near_fleet
        units = np.einsum("nlq,lp->npq", armies + fleets, self.inside) > 0
        against = rivals + units[..., 1:].any(-1)
        chance = np.divide(reach[:, 0], reach[:, 0] + against, out=np.zeros_like(rivals), where=reach[:, 0] > 0)
        chance = np.where((view.phase == MOVES)[:, None], chance, 1.0)[:, self.province]
        sails = flags[..., vector.FLEET] > 0
        value, by_fleet = army[:, :provinces].copy(), (fleet * chance) ** POWER
        rows, at = np.nonzero(sails)
        value[rows, self.province[at]] = fleet[rows, at]
        port = np.zeros((len(view), provinces))
        np.maximum.at(port.T, self.province, by_fleet.T)
        return Known(view, (army * chance) ** POWER, by_fleet, port, value, sails, rivals, units[..., 0])

    def probabilities(self, known: Known, rows: np.ndarray, slot: int, earlier: np.ndarray) -> np.ndarray:
        """See `palaestra_baselines.common.joint_orders.Conditionals`."""
        lists = known.view.lists[rows, slot]
        is_listed = lists >= 0
        weights = self._weights(known, rows, slot, earlier, np.maximum(lists, 0)) * is_listed
        total, uniform = weights.sum(1, keepdims=True), is_listed / is_listed.sum(1, keepdims=True)
        shares = (1.0 - UNIFORM) * weights / np.where(total > 0, total, 1.0) + UNIFORM * uniform
        return np.where(total > 0, shares, uniform)

    def _weights(
        self, known: Known, rows: np.ndarray, slot: int, earlier: np.ndarray, orders: np.ndarray
    ) -> np.ndarray:
        """Weights float64 ``[R, K]`` of orders ``[R, K]``."""
        view, line, each = known.view, rows[:, None], np.arange(len(rows))[:, None]
        kind, a, b = np.moveaxis(self.terrain.parts[orders], -1, 0)
        place = np.minimum(a, self.terrain.locations - 1)
        goal = self.province[place]
        at, moves = np.maximum(view.units[rows, slot], 0), (view.phase[rows] == MOVES)[:, None]
        comes, backers, waits = self._follow(known, rows, slot, earlier)
        sails = np.where(moves, known.sails[rows, at][:, None], self.is_naval)  # a retreat: the place says which
        own = np.where(sails, known.fleet[rows], known.army[rows])
        supported = np.where(kind == SUPPORT_MOVE, b, goal)
        start = np.where(kind == SUPPORT_MOVE, goal, supported)
        is_needed = (comes[each, supported] == start) & (backers[each, supported] < known.rivals[line, supported])
        helps = is_needed & ((kind == SUPPORT_HOLD) | ((kind == SUPPORT_MOVE) & (start != supported)))
        ashore = np.where(known.sails[rows, at][:, None], known.port[rows], known.army[rows, : self.terrain.provinces])
        is_new = comes[each, goal] < 0
        weights = {
            MOVE: (is_new & ~waits[each, goal], own[each, place]),
            HOLD: (moves, own[each, at[:, None]]),
            BUILD_ARMY: (is_new, known.army[line, place]),
            BUILD_FLEET: (is_new, known.fleet[line, place]),
            REMOVE: (is_new, np.maximum(known.value[line, goal], SMALLEST) ** -POWER),
        }
        told = [((kind == number) & fits, weight) for number, (fits, weight) in weights.items()]
        return np.select(*zip(*told, (helps, ashore[each, supported]), strict=True), 0.0)  # type: ignore[arg-type]

    def _follow(self, known: Known, rows: np.ndarray, slot: int, earlier: np.ndarray) -> Earlier:
        """What the earlier orders of a plan say, ``[R, P]`` each."""
        view, shape = known.view, (len(rows), self.terrain.provinces)
        comes, backers = np.full(shape, -1), np.zeros(shape, np.int64)
        moves, late = view.phase[rows] == MOVES, view.phase[rows] == ADJUSTMENTS
        waits = known.own[rows] & moves[:, None]
        here = self.province[np.maximum(view.units[rows], 0)]
        has = view.units[rows] >= 0
        for d in range(slot + 1):
            some = np.flatnonzero(has[:, d])
            waits[some, here[some, d]] = False
        for d in range(slot):
            kind, a, b = self.terrain.parts[earlier[:, d]].T
            goal = self.province[np.minimum(a, self.terrain.locations - 1)]
            for which, province, start in (
                (has[:, d] & (kind == MOVE), goal, here[:, d]),
                (has[:, d] & (kind != MOVE) & moves, here[:, d], here[:, d]),
                (late & (kind != HOLD), goal, goal),
            ):
                some = np.flatnonzero(which)
                comes[some, province[some]] = start[some]
            for which, province in ((kind == SUPPORT_HOLD, goal), (kind == SUPPORT_MOVE, b)):
                some = np.flatnonzero(which)
                backers[some, province[some]] += 1
        return Earlier(comes, backers, waits)


def spread(near: np.ndarray) -> np.ndarray:
    """How worth spreads over borders, ``[from, to]``: what the places within `STEPS` steps add to the value of each.

    Args:
        near: Bool ``[n, n]``: next to each other, or the same.
    """
    step, share, total = np.eye(len(near)), 1.0, np.zeros(near.shape)
    for _ in range(STEPS):
        step, share = WEIGHTS.spread * step @ near, share * WEIGHTS.decay
        total += share * step
    return total
