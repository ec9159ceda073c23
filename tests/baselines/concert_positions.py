"""Positions of matches of the Concert games, half of them played by the anchor and half at random."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from palaestra import make_batch
from palaestra.core.compile.linker import record_view
from palaestra.core.run.simulation import Simulation
from palaestra.games.concert.concert_map import SEA
from palaestra.games.concert.concert_orders import unit_at
from palaestra.games.concert.concert_phases import ADJUSTMENTS, RETREATS, write_acting
from palaestra_baselines.common.joint_orders import Terrain, View, draw_plans, power_of, view_of
from palaestra_baselines.common.pikl import views_of
from palaestra_baselines.common.value_anchor import Anchor

DUEL = "palaestra/ConcertDuel-v0"
SHORT: dict[str, Any] = {"lanes": 5, "seed": 1, "compiled": False, "last_year": 3}
"""A few short matches with all phases, whose rules run as plain Python."""


class Uniform:
    """All orders of a list alike, a `palaestra_baselines.common.joint_orders.Conditionals`."""

    def prepare(self, view: View) -> View:
        return view

    def probabilities(self, known: View, rows: np.ndarray, slot: int, earlier: np.ndarray) -> np.ndarray:
        is_listed = known.lists[rows, slot] >= 0
        return is_listed / is_listed.sum(1, keepdims=True)


@dataclass(frozen=True)
class Positions:
    """N positions.

    Attributes:
        terrain: Of the game.
        records: Match records ``[N]``.
        lists: Lists of all powers, records ``[N, Q, S]``.
        seen: What each power observes of the board, records ``[N]``.
        units: Where it observes its units, ``[N, S]``.
        vectors: Those of ``observation="vector"``, float32 ``[N, Q, F]``.
        views: What each power sees.
        ends: Whether the match ended with this phase, bool ``[N]``.
    """

    terrain: Terrain
    records: np.ndarray
    lists: np.ndarray
    seen: list[np.ndarray]
    units: list[np.ndarray]
    vectors: np.ndarray
    views: list[View]
    ends: np.ndarray


def place_rare_positions(sim: Simulation, terrain: Terrain) -> None:
    """Lets the first lane begin with units to remove, and the second with units to retreat, of the first two powers."""
    records, world = sim.states[:2].copy(), terrain.map
    removing, retreating = record_view(records)
    land = world.ground != SEA
    for power in (0, 1):
        removing.unit[np.flatnonzero((removing.unit == 0) & land)[[0, -1][power]]] = unit_at(world, power, False, 0)
        place = np.flatnonzero((power_of(retreating.unit) == power) & land)[0]
        retreating.dislodged[place] = retreating.unit[place]
        retreating.unit[place] = unit_at(world, 1 - power, False, place)
    for record, phase in ((removing, ADJUSTMENTS), (retreating, RETREATS)):
        record.phase, record.season = phase, 1
        write_acting(record, world)
    sim.load_states(records, np.arange(sim.num_envs) < 2)


def play(sim: Simulation, seed: int) -> Iterator[np.ndarray]:
    """Plays matches to their end; gives the numbers of the lanes that still play, before each phase."""
    terrain, rng = Terrain(sim.game), np.random.default_rng(seed)
    anchor, at_random = Anchor(terrain), np.arange(sim.num_envs) % 2 == 1
    sim.reset(seed=seed)
    place_rare_positions(sim, terrain)
    while not sim.terminated.all():
        yield np.flatnonzero(~sim.terminated)
        actions: Any = sim.actions
        for power, view in enumerate(views_of(terrain, sim)):
            draws = rng.random((sim.num_envs, 1, terrain.slots))
            plans = [draw_plans(policy, view, draws)[:, 0] for policy in (anchor, Uniform())]
            actions[:, power] = np.where(at_random[:, None], plans[1], plans[0])
        sim.step()


@functools.cache
def positions_of(id: str, lanes: int, seed: int, **keywords: Any) -> Positions:
    """The positions of some matches, in all powers' views."""
    sim = make_batch(id, lanes, autoreset_mode="off", **keywords)
    vectors = make_batch(id, lanes, autoreset_mode="off", observation="vector", **keywords)
    vectors.reset(seed=seed)
    terrain = Terrain(sim.game)
    records, lists, told, numbers, at = [], [], [], [], []
    for playing in play(sim, seed):
        vectors.load_states(sim.states.copy())
        legal: Any = sim.legal
        records.append(sim.states[playing].copy())
        lists.append(np.stack([legal[playing, power]["orders"] for power in range(terrain.powers)], 1))
        told.append([fields_of(sim, terrain, power, playing) for power in range(terrain.powers)])
        numbers.append(np.asarray(vectors.observations)[playing].copy())
        at.append(playing)
    every, places = np.concatenate(records), np.concatenate(at)
    ends = np.array([lane not in places[n + 1 :] for n, lane in enumerate(places)])
    seen, units = ([np.concatenate([t[q][k] for t in told]) for q in range(terrain.powers)] for k in (0, 1))
    legal = np.concatenate(lists)
    sim.close()
    vectors.close()
    views = [view_of(terrain, every, legal[:, power], power) for power in range(terrain.powers)]
    return Positions(terrain, every, legal, seen, units, np.concatenate(numbers), views, ends)


def fields_of(sim: Simulation, terrain: Terrain, power: int, lanes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a power observes: records with the board, and where its units stand ``[n, S]``."""
    told: Any = sim.observations
    if sim.lane_observations is None:
        return told[lanes, power], told[lanes, power]["units"]
    return sim.lane_observations[lanes], told[lanes, power, 1 : 1 + terrain.slots]
