"""Positions of the Concert games as arrays, and policies of joint orders that give one order after another.

A power gives S orders at once, one a unit, each from a list of its own. A policy writes them in the order of the lists:

    pi(a_1 ... a_S | s) = product over d of pi_d(a_d | s, a_1 ... a_{d-1})

`Conditionals` is such a policy; `draw_plans` and `log_probabilities` follow it for many positions and plans at once. A
*plan* are the S orders of a power as numbers (`palaestra.games.concert.concert_orders`) in its own view, 0 where no
order is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from palaestra.game import Game
from palaestra.games.concert import concert_sight as sight
from palaestra.games.concert import concert_vector as vector
from palaestra.games.concert.concert_orders import CONTESTED, number_of_orders, order_parts
from palaestra.games.concert.concert_phases import ADJUSTMENTS, RETREATS

NO_UNIT = -1
LEAST = 1e-30
"""Probability that stands for less, in logarithms."""
CODES = 256
"""Of a unit, which is a byte."""


class Terrain:
    """What follows from the map of a game.

    Attributes:
        game: The rules, with ``decisions="phase"``.
        board, map: Its `Board` and `World`.
        powers, slots: Q, and S, the most orders of a power.
        provinces, locations: P and L.
        orders: Numbers of orders.
        parts: Kind, a and b of each order, int64 ``[orders, 3]``.
        location: Where a unit of some code stands in a province, int64 ``[P, 256]``.
        features: F, numbers of a position.
    """

    def __init__(self, game: Game) -> None:
        """Reads the map.

        Raises:
            ValueError: The game is no Concert, or its decisions are single orders.
        """
        board = getattr(game.world, "board", None)
        if board is None or "unit" not in (game.state_dtype.names or ()):
            raise ValueError(f"{game.name}: joint orders are those of Concert, as palaestra/ConcertDuel-v0")
        if board[0].single:
            raise ValueError(f'{game.name}: joint orders need decisions="phase", the default')
        self.game, self.board, self.map = game, board[0], board[0].map
        world = self.map
        self.powers, self.slots = int(world.powers), int(self.board.slots)
        self.provinces, self.locations = int(world.provinces), int(world.locations)
        self.orders = int(number_of_orders(world))
        self.parts = np.array([order_parts(world, number) for number in range(self.orders)], np.int64)
        forms = np.maximum(np.arange(CODES) - 1, 0) // 8
        here = np.arange(self.provinces)[:, None]
        self.location = np.where(forms < 2, here, world.first_coast[:, None].astype(np.int64) + forms - 2)
        self.columns = vector.POWER + 2 * self.powers
        self.features = self.locations * self.columns + vector.CLOCK

    def view(self, power: int) -> np.ndarray:
        """Where a power sees each location, int64 ``[L]``."""
        return np.asarray(self.board.seen_at[power * self.board.mirrored]).astype(np.int64)


# ------------------------------------------------------------------------------------------------------------ positions


def power_of(units: np.ndarray) -> np.ndarray:
    """Powers of units, int64; -1 for none."""
    return np.where(units > 0, (units.astype(np.int64) - 1) % 8, -1)


def features_of(terrain: Terrain, records: np.ndarray, power: int) -> np.ndarray:
    """What a power sees, float32 ``[N, F]``: the numbers of ``observation="vector"``, places then clock.

    Args:
        terrain: Of the game.
        records: Match records ``[N]``.
        power: Who looks.
    """
    world, powers = terrain.map, terrain.powers
    at, flags = terrain.view(power), np.zeros((len(records), terrain.locations, terrain.columns), np.float32)
    for name in ("unit", "dislodged"):
        rows, provinces = np.nonzero(records[name])
        units = records[name][rows, provinces].astype(np.int64)
        places = at[terrain.location[provinces, units]]
        kinds = np.where(units > 8, vector.FLEET, vector.ARMY) if name == "unit" else vector.DISLODGED
        flags[rows, places, kinds] = 1.0
        flags[rows, places, vector.POWER + (power_of(units) - power) % powers] = 1.0
    rows, provinces = np.nonzero(records["mark"] == CONTESTED)
    flags[rows, at[provinces], vector.LEFT_EMPTY] = 1.0
    centres = at[world.centre_province.astype(np.int64)]
    flags[:, centres, vector.CENTRE] = 1.0
    flags[:, centres, vector.HOME] = world.home[world.centre_province] == power
    owners = records["owner"].astype(np.int64)
    rows, owned = np.nonzero(owners >= 0)
    first = vector.POWER + powers
    flags[rows, centres[owned], first + (owners[rows, owned] - power) % powers] = 1.0
    return np.concatenate([flags.reshape(len(records), -1), clock_of(terrain, records, power)], axis=1)


def clock_of(terrain: Terrain, records: np.ndarray, power: int) -> np.ndarray:
    """Phase, season, years left and units to build or remove, float32 ``[N, 8]``."""
    board, world = terrain.board, terrain.map
    clock = np.zeros((len(records), vector.CLOCK), np.float32)
    clock[np.arange(len(records)), records["phase"]] = 1.0
    clock[:, vector.IS_AUTUMN] = records["season"]
    years = max(int(board.last_year) - int(world.first_year), 1)
    clock[:, vector.YEARS_LEFT] = (board.last_year - records["year"]) / years
    late = records["phase"] == ADJUSTMENTS
    if late.any():
        mine, units = records["owner"] == power, records["unit"][:, world.centre_province]
        balance = mine.sum(1) - (power_of(records["unit"]) == power).sum(1)
        free = (mine & (units == 0) & (world.home[world.centre_province] == power)).sum(1)
        due = np.where(late, np.minimum(balance, np.where(balance > 0, free, balance)), 0)
        share = np.minimum(np.abs(due) / terrain.slots, 1.0)
        clock[:, vector.BUILDS], clock[:, vector.REMOVALS] = share * (due > 0), share * (due < 0)
    return clock


@dataclass(frozen=True)
class View:
    """N positions as a power sees them.

    Attributes:
        features: float32 ``[N, F]``, see `features_of`.
        phase: int64 ``[N]``.
        units: Where the units stand that it orders, in the order of their lists, int64 ``[N, S]``; -1 for none.
        lists: Orders that it may give each, int16 ``[N, S, K]``, -1 beyond the list; ``[0]`` where none is asked for.
        texts: For language models alone, objects ``[N, 1 + S]``, see `palaestra_baselines.common.joint_text`.
    """

    features: np.ndarray
    phase: np.ndarray
    units: np.ndarray
    lists: np.ndarray
    texts: np.ndarray | None = None

    def __len__(self) -> int:
        """N."""
        return len(self.phase)

    def take(self, rows: Any) -> View:
        """Some of the positions."""
        texts = None if self.texts is None else self.texts[rows]
        return View(self.features[rows], self.phase[rows], self.units[rows], self.lists[rows], texts)

    def backwards(self) -> View:
        """The lists from the last to the first."""
        texts = None if self.texts is None else np.concatenate([self.texts[:, :1], self.texts[:, :0:-1]], 1)
        return View(self.features, self.phase, self.units[:, ::-1], self.lists[:, ::-1], texts)


def join(views: Sequence[View]) -> View:
    """All positions of some views."""
    most = max(view.lists.shape[2] for view in views)
    lists = [np.pad(v.lists, ((0, 0), (0, 0), (0, most - v.lists.shape[2])), constant_values=-1) for v in views]
    features, phase, units = (
        np.concatenate([getattr(view, name) for view in views]) for name in ("features", "phase", "units")
    )
    texts = [view.texts for view in views if view.texts is not None]
    return View(features, phase, units, np.concatenate(lists), np.concatenate(texts) if texts else None)


def view_of(terrain: Terrain, records: np.ndarray, lists: np.ndarray, power: int) -> View:
    """What a power sees of positions.

    Args:
        terrain: Of the game.
        records: Match records ``[N]``.
        lists: Its lists, records ``[N, S]`` of ``count`` and ``ids``.
        power: Who looks.
    """
    phase = records["phase"].astype(np.int64)
    asked = np.where((phase == RETREATS)[:, None], records["dislodged"], records["unit"])
    is_own = (power_of(asked) == power) & (phase != ADJUSTMENTS)[:, None]
    order = np.argsort(np.where(is_own, terrain.map.rank[power], CODES), axis=1, kind="stable")[:, : terrain.slots]
    codes = np.take_along_axis(asked, order, 1)
    places = terrain.view(power)[terrain.location[order, codes]]
    units = np.where(np.take_along_axis(is_own, order, 1), places, NO_UNIT)
    most = int(lists["count"].max(initial=1))
    ids = np.where(np.arange(most) < lists["count"][..., None], lists["ids"][..., :most], -1)
    return View(features_of(terrain, records, power), phase, units, ids.astype(np.int16))


def records_of(terrain: Terrain, observed: Any) -> np.ndarray:
    """Match records ``[N]`` that show what a power observes: on a map with a mirror, to the first power.

    What is not observed is as at a start: how long no centre changed its owner, and where attackers came from.

    Args:
        terrain: Of the game.
        observed: ``board``, ``phase``, ``season`` and ``year``, each ``[N, ...]``: fields of records, or a dict.
    """
    world, board = terrain.map, np.asarray(observed["board"])
    records = np.zeros(len(board), terrain.game.state_dtype)
    records["alive"], records["mark"], records["owner"] = 1, -1, -1
    for name, kind, owner in (("unit", sight.KIND, sight.OWNER), ("dislodged", sight.LEFT, sight.LEFT_OWNER)):
        for place in range(terrain.locations):
            p = int(world.province_of[place])
            fleet = 1 if place < terrain.provinces else 2 + place - int(world.first_coast[p])
            form = np.where(board[:, place, kind + 1] != 0, fleet, 0)
            units = 1 + board[:, place, owner : owner + sight.POWERS].argmax(1) + 8 * form
            has = board[:, place, kind + sight.NONE] == 0
            records[name][has, p] = units[has]
    for c, p in enumerate(world.centre_province):
        owners = board[:, p, sight.CENTRE : sight.CENTRE + sight.POWERS]
        records["owner"][:, c] = np.where(owners.any(1), owners.argmax(1), -1)
    records["mark"][board[:, : terrain.provinces, sight.EMPTY] != 0] = CONTESTED
    for name in ("phase", "season", "year"):
        records[name] = observed[name]
    return records


# ------------------------------------------------------------------------------------------------------------- policies


class Conditionals(Protocol):
    """A policy that gives one order after another."""

    def prepare(self, view: View) -> Any:
        """What it knows of N positions, whatever the orders."""
        ...

    def probabilities(self, known: Any, rows: np.ndarray, slot: int, earlier: np.ndarray) -> np.ndarray:
        """How probable each order of a list is.

        Args:
            known: What `prepare` returned.
            rows: int64 ``[R]``, numbers of positions.
            slot: d, of the list.
            earlier: int64 ``[R, S]``; the first d orders are given.

        Returns:
            float ``[R, K]``, 0 beyond the list.
        """
        ...


def draw_plans(policy: Conditionals, view: View, uniforms: np.ndarray) -> np.ndarray:
    """Plans drawn from a policy, int64 ``[N, K, S]``.

    Args:
        policy: Gives one order after another.
        view: N positions.
        uniforms: Draws from [0, 1), float64 ``[N, K, S]``.
    """
    rows, draws = np.repeat(np.arange(len(view)), uniforms.shape[1]), uniforms.reshape(-1, uniforms.shape[2])
    known, plans = policy.prepare(view), np.zeros(draws.shape, np.int64)
    for slot in range(plans.shape[1]):
        lists = view.lists[rows, slot]
        plans[:, slot] = lists[:, 0]
        active = np.flatnonzero(has_choice(lists))
        if len(active):
            shares = policy.probabilities(known, rows[active], slot, plans[active]).cumsum(1)
            plans[active, slot] = lists[active, drawn(shares, draws[active, slot])]
    return plans.reshape(uniforms.shape)


def has_choice(lists: np.ndarray) -> np.ndarray:
    """Whether lists ``[..., K]`` have more than one order, bool ``[...]``."""
    return lists[..., 1] >= 0 if lists.shape[-1] > 1 else np.zeros(lists.shape[:-1], bool)


def drawn(shares: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Places int64 ``[R]`` drawn by cumulative weights ``[R, K]`` and draws from [0, 1) ``[R]``."""
    return (shares[:, :-1] <= uniforms[:, None] * shares[:, -1:]).sum(1)


def log_probabilities(policy: Conditionals, view: View, plans: np.ndarray) -> np.ndarray:
    """Logarithms of the probabilities of plans int64 ``[N, count, S]``, float64 ``[N, count]``."""
    count = plans.shape[1]
    known, rows = policy.prepare(view), np.repeat(np.arange(len(view)), count)
    flat, total = plans.reshape(len(rows), -1), np.zeros(len(rows))
    for slot in range(flat.shape[1]):
        shares = policy.probabilities(known, rows, slot, flat)
        chosen = view.lists[rows, slot] == flat[:, slot, None]
        total += np.log(np.maximum((shares * chosen).sum(1), LEAST))
    return total.reshape(len(view), count)
