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
from palaestra.games.concert.concert_phases import ADJUSTMENTS, MOVES, RETREATS
from palaestra.games.concert.concert_values import STEPS, WEIGHTS
from palaestra_baselines.common.joint_orders import Terrain, View

UNIFORM = 0.1
"""Share of the uniform distribution."""
POWER = 2**SHARPNESS
"""Exponent of the values."""
SMALLEST = 1e-9
"""Value that stands for less, where units are removed."""


class Known(NamedTuple):
    """What the anchor knows of N positions.

    Attributes:
        view: The positions.
        army, fleet: Weight of each location for an army and for a fleet, ``[N, L]``.
        value: Value of each province for the unit that stands there, ``[N, P]``.
        rivals: Most units of one other power that reach each province, ``[N, P]``.
        own: Whether an own unit is in each province, ``[N, P]``.
    """

    view: View
    army: np.ndarray
    fleet: np.ndarray
    value: np.ndarray
    rivals: np.ndarray
    own: np.ndarray


class Anchor:
    """The anchor of a map, a `palaestra_baselines.common.joint_orders.Conditionals`."""

    def __init__(self, terrain: Terrain) -> None:
        """Makes the matrices."""
        world = terrain.map
        self.terrain = terrain
        self.province = world.province_of.astype(np.int64)
        inside = (self.province[:, None] == np.arange(terrain.provinces)).astype(float)
        self.inside = inside
        armies = (world.army_edge != 0) | np.eye(terrain.provinces, dtype=bool)
        self.army_reach = armies.astype(float)
        self.fleet_reach = ((world.fleet_reach != 0) | (inside != 0)).astype(float)
        fleets = (world.fleet_edge != 0) | np.eye(terrain.locations, dtype=bool)
        self.near_army, self.near_fleet = spread(armies), inside.T @ spread(fleets).T

    # ------------------------------------------------------------------------------------------------------- positions

    def prepare(self, view: View) -> Known:
        """Values all places; see `palaestra_baselines.common.joint_orders.Conditionals`."""
        terrain = self.terrain
        powers, provinces = terrain.powers, terrain.provinces
        flags = view.features[:, : -vector.CLOCK].reshape(len(view), terrain.locations, -1).astype(float)
        clock = view.features[:, -vector.CLOCK :]
        whose = self.standing(view, flags)
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
        value = army[:, :provinces].copy()
        rows, at = np.nonzero(flags[..., vector.FLEET])
        value[rows, self.province[at]] = fleet[rows, at]
        return Known(view, (army * chance) ** POWER, (fleet * chance) ** POWER, value, rivals, units[..., 0])

    def standing(self, view: View, flags: np.ndarray) -> np.ndarray:
        """Whose units stand where, ``[N, L, Q]``, without those dislodged.

        A location shows the powers of both. The own dislodged units are those that are ordered; where two others meet,
        both count.

        Args:
            view: The positions.
            flags: Numbers of the locations, ``[N, L, columns]``.
        """
        whose = flags[..., vector.POWER : vector.POWER + self.terrain.powers].copy()
        if (view.phase == RETREATS).any():
            is_left = flags[..., vector.DISLODGED] > 0
            goes = (view.units[:, :, None] == np.arange(self.terrain.locations)).any(1) & is_left
            whose[goes, 0] = 0.0
            stays = is_left & (whose[..., 0] > 0)
            whose[..., 1:] *= ~stays[..., None]
        return whose

    # ---------------------------------------------------------------------------------------------------------- orders

    def probabilities(self, known: Known, rows: np.ndarray, slot: int, earlier: np.ndarray) -> np.ndarray:
        """See `palaestra_baselines.common.joint_orders.Conditionals`."""
        lists = known.view.lists[rows, slot]
        is_listed = lists >= 0
        kinds, first, second = (self.terrain.parts[np.maximum(lists, 0)][..., k] for k in range(3))
        weights = self.weights(known, rows, slot, earlier, kinds, first, second) * is_listed
        total, count = weights.sum(1, keepdims=True), is_listed.sum(1, keepdims=True)
        flat = is_listed / count
        return np.where(total > 0, (1.0 - UNIFORM) * weights / np.where(total > 0, total, 1.0) + UNIFORM * flat, flat)

    def weights(
        self,
        known: Known,
        rows: np.ndarray,
        slot: int,
        earlier: np.ndarray,
        kinds: np.ndarray,
        first: np.ndarray,
        second: np.ndarray,
    ) -> np.ndarray:
        """Weights ``[R, K]`` of orders of these kinds and places; see `probabilities` for the rest."""
        view, terrain = known.view, self.terrain
        at, phase = view.units[rows, slot], view.phase[rows]
        comes, backers, is_open = self.follow(known, rows, slot, earlier)
        line = np.arange(len(rows))[:, None]
        flags = view.features[rows][:, : -vector.CLOCK].reshape(len(rows), terrain.locations, -1)
        is_fleet = flags[line[:, 0], np.maximum(at, 0), vector.FLEET] > 0
        places = np.minimum(first, terrain.locations - 1)
        goal = self.province[places]
        if (phase != MOVES).any():  # a dislodged unit, or one to be built: the place says which
            sea = (terrain.map.ground[goal] == SEA) | (places >= terrain.provinces)
            naval = np.where((phase == MOVES)[:, None], is_fleet[:, None], sea | (kinds == BUILD_FLEET))
        else:
            naval = np.broadcast_to(is_fleet[:, None], kinds.shape)
        worth = np.where(naval, known.fleet[rows[:, None], places], known.army[rows[:, None], places])
        weights = np.zeros(kinds.shape)
        moves = (kinds == MOVE) & (comes[line, goal] < 0) & ~is_open[line, goal]
        builds = ((kinds == BUILD_ARMY) | (kinds == BUILD_FLEET)) & (comes[line, goal] < 0)
        weights[moves | builds] = worth[moves | builds]
        removes = (kinds == REMOVE) & (comes[line, goal] < 0)
        weights[removes] = np.maximum(known.value[rows[:, None], goal], SMALLEST)[removes] ** -POWER
        if (phase == MOVES).any():
            here = np.maximum(at, 0)
            stays = np.where(is_fleet, known.fleet[rows, here], known.army[rows, here])
            weights = np.where((kinds == HOLD) & (phase == MOVES)[:, None], stays[:, None], weights)
            to = np.where(kinds == SUPPORT_MOVE, second, np.minimum(first, terrain.provinces - 1))
            helps = (kinds == SUPPORT_HOLD) & (comes[line, to] == to)
            helps |= (kinds == SUPPORT_MOVE) & (comes[line, to] == first) & (first != to)
            helps &= backers[line, to] < known.rivals[rows[:, None], to]
            gain = np.where(is_fleet[:, None], self.best_fleet(known, rows)[line, to], known.army[rows[:, None], to])
            weights[helps] = gain[helps]
        return weights

    def best_fleet(self, known: Known, rows: np.ndarray) -> np.ndarray:
        """Weight of each province for a fleet, at its best location, ``[R, P]``."""
        best = np.zeros((len(rows), self.terrain.provinces))
        np.maximum.at(best.T, self.province, known.fleet[rows].T)
        return best

    def follow(
        self, known: Known, rows: np.ndarray, slot: int, earlier: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What the earlier orders of a plan say of each province, ``[R, P]``.

        Returns:
            The province whose own unit will be there, or -1 (in adjustments, a build or a removal); own supports of
            it; whether an own unit stands there that has no order yet.
        """
        terrain, view = self.terrain, known.view
        comes = np.full((len(rows), terrain.provinces), -1)
        backers, is_open = np.zeros(comes.shape, np.int64), known.own[rows].copy()
        late = view.phase[rows] == ADJUSTMENTS
        is_open[view.phase[rows] != MOVES] = False
        if slot < view.units.shape[1]:
            here = view.units[rows, slot]
            has = np.flatnonzero(here >= 0)
            is_open[has, self.province[here[has]]] = False
        for d in range(slot):
            kind, first, second = terrain.parts[earlier[:, d]].T
            at = view.units[rows, d]
            here = self.province[np.maximum(at, 0)]
            goal = self.province[np.minimum(first, terrain.locations - 1)]
            moves = (at >= 0) & (kind == MOVE)
            stays = (at >= 0) & (kind != MOVE) & (view.phase[rows] == MOVES)
            named = late & (kind != HOLD)
            for which, province, start in ((moves, goal, here), (stays, here, here), (named, goal, goal)):
                some = np.flatnonzero(which)
                comes[some, province[some]] = start[some]
            some = np.flatnonzero(at >= 0)
            is_open[some, here[some]] = False
            for which, place in ((kind == SUPPORT_HOLD, goal), (kind == SUPPORT_MOVE, second)):
                some = np.flatnonzero(which)
                backers[some, place[some]] += 1
        return comes, backers, is_open


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
