"""Speed of Concert on the standard map: next to the package `diplomacy` in one run, search, threads, memory.

::

    pip install "diplomacy>=1.1.2"
    python benchmarks/speed.py --measurements concert
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from measurement import Measurement, NotHere, ReportProgress, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark
from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.concert.adjudication import adjudicate
from palaestra.games.concert.concert_orders import BITS, count_of
from palaestra.games.concert.concert_phases import MOVES, asked_power
from palaestra.games.concert.concert_rules import step_phase
from skirmish_speed import bytes_a_lane
from team_speed import ratio

CONCERT = "palaestra/Concert-v0"
LANES, THREAD_LANES, JOINT_ORDERS, DECISIONS, REPEATS = 64, 256, 256, 40, 10
"""Lanes of a batch, joint orders from one state, decisions of each match, adjudications more of the same orders."""
LISTS_BAR, PROCESS_BAR, ADJUDICATION_BAR_US, SEARCH_BAR = 60.0, 50.0, 40.0, 25e3
THREADS_BAR, RECORD_BAR, BYTES_BAR = 1.6, 1100.0, 300e3


def concert(report_progress: ReportProgress) -> list[Measurement]:
    """Random play over the package, with outputs and without; adjudication alone; search; threads; memory.

    Without outputs the lists are made too: orders are held to them. Joint orders from one state share one.

    Raises:
        NotHere: diplomacy is missing.
    """
    package = diplomacy()
    sim = new_batch(LANES)
    record = sim.game.state_dtype.itemsize
    match, moves = recorded(sim)
    listed, bare, repeated, search, their_play, their_replay = timed(
        replay(sim, match, outputs=True),
        replay(new_batch(LANES), match, outputs=False),
        replay(repeating(), match, outputs=False),
        joint_orders(),
        Benchmark("package", package_play(package)),
        Benchmark("package", package_replay(package)),
        round_s=0.3,
    )
    about = "Concert, random play, batch of"
    return [
        ratio(f"{about} {LANES} over the package's lists, set_orders, process", listed, their_play, LISTS_BAR),
        ratio(
            f"{about} {LANES} without outputs over the package's set_orders, process", bare, their_replay, PROCESS_BAR
        ),
        Measurement(
            "",
            "Concert, adjudication alone, us",
            (repeated.ns - bare.ns) / 1e3 / REPEATS / moves,
            ADJUDICATION_BAR_US,
            False,
        ),
        Measurement("", "Concert, joint orders a second from one state", 1e9 / search.ns, SEARCH_BAR, True),
        threads(match),
        Measurement("", "Concert, bytes a record", record, RECORD_BAR, False),
        Measurement("", "Concert, bytes a lane, all arrays", bytes_a_lane(CONCERT), BYTES_BAR, False),
    ]


def new_batch(lanes: int, **options: Any) -> Any:
    """A batch whose matches are begun by `replay` alone."""
    return registry.make_batch(CONCERT, lanes, autoreset_mode="off", **options)


def recorded(sim: Any) -> tuple[list[np.ndarray], float]:
    """Orders of the first decisions of random play [lanes, powers, slots], and the share of movement phases."""
    rng, match, moves = np.random.default_rng(0), [], 0
    sim.reset(seed=0)
    for _ in range(DECISIONS):
        lists = sim.legal["orders"]
        place = (rng.random(lists.shape) * lists["count"]).astype(np.int64)
        match.append(np.take_along_axis(lists["ids"], place[..., None], -1)[..., 0])
        moves += np.count_nonzero(sim.states["phase"] == MOVES)
        sim.step(match[-1])
    return match, moves / (DECISIONS * sim.num_envs)


def repeating() -> Any:
    """A batch that adjudicates all moves `REPEATS` times more."""
    game, _ = registry.make_game(CONCERT)
    return KernelSimulation(replace(game, step=step_with_repeats), LANES, autoreset_mode="off")


def step_with_repeats(s, world, actions, rewards, scratch):
    """The rules of a phase, and before them adjudications of which nothing is kept."""
    board = world.board[0]
    if s.phase == MOVES:
        counters = 0
        for p in range(board.map.provinces):
            power = asked_power(s, board, 0, p)
            if power >= 0:
                s.order[p] = actions.power[power].orders[count_of(counters, power)]
                counters += 1 << (BITS * power)
        for _ in range(REPEATS):
            adjudicate(s, board, scratch)
    return step_phase(s, world, actions, rewards, scratch)


def replay(sim: Any, match: list[np.ndarray], *, outputs: bool) -> Benchmark:
    """Decisions of a recorded match."""
    sim.reset(seed=0)
    count, start = [0], sim.states.copy()

    def call() -> None:
        k = count[0] % DECISIONS
        if k == 0:
            sim.load_states(start, outputs=outputs)
        sim.step(match[k], outputs=outputs)
        count[0] += 1

    return Benchmark(CONCERT, call, sim.num_envs, sim.close)


def joint_orders() -> Benchmark:
    """A state with moves of the middle of a match put into all lanes, and one decision in each."""
    sim, rng = new_batch(JOINT_ORDERS), np.random.default_rng(1)
    recorded(sim)
    lane = np.flatnonzero(sim.states["phase"] == MOVES)[0]
    records, lists = sim.states[[lane] * JOINT_ORDERS].copy(), sim.legal["orders"][[lane] * JOINT_ORDERS]
    place = (rng.random(lists.shape) * lists["count"]).astype(np.int64)
    orders = np.take_along_axis(lists["ids"], place[..., None], -1)[..., 0]

    def call() -> None:
        sim.load_states(records, outputs=False)
        sim.step(orders, outputs=False)

    return Benchmark(CONCERT, call, JOINT_ORDERS, sim.close)


def threads(match: list[np.ndarray]) -> Measurement:
    """Two threads next to one, by the clock on the wall."""
    wide = [np.tile(orders, (THREAD_LANES // LANES, 1, 1)) for orders in match]
    sims = [new_batch(THREAD_LANES, threads=count) for count in (1, 2)]
    one, two = timed(*(replay(sim, wide, outputs=True) for sim in sims), round_s=0.3)
    note = f"ms a call: {1e3 * one.wall_s:.2f} to {1e3 * two.wall_s:.2f}"
    about = f"Concert, two threads, {THREAD_LANES} lanes, speed-up"
    return Measurement("", about, one.wall_s / two.wall_s, THREADS_BAR, True, note)


def diplomacy() -> Any:
    """The package.

    Raises:
        NotHere: It is missing.
    """
    try:
        return importlib.import_module("diplomacy")
    except ImportError as error:
        raise NotHere('needs the package diplomacy: pip install "diplomacy>=1.1.2"') from error


def package_play(package: Any) -> Callable[[], None]:
    """Phases of the package by random orders of its own lists; a match begins where one has had `DECISIONS`."""
    rng, matches, count = np.random.default_rng(0), [package.Game()], [0]

    def call() -> None:
        if count[0] % DECISIONS == 0 or matches[0].is_game_done:
            matches[0] = package.Game()
        give_random_orders(matches[0], rng)
        matches[0].process()
        count[0] += 1

    return call


def give_random_orders(match: Any, rng: np.random.Generator) -> dict[str, list[str]]:
    """One order of each list; returns them by power."""
    lists = match.get_all_possible_orders()
    orders = {
        power: [
            lists[at][int(rng.random() * len(lists[at]))] for at in match.get_orderable_locations(power) if lists[at]
        ]
        for power in match.powers
    }
    for power, texts in orders.items():
        match.set_orders(power, texts)
    return orders


def package_replay(package: Any) -> Callable[[], None]:
    """The same without lists: orders that were drawn before."""
    rng, match, recorded = np.random.default_rng(0), package.Game(), []
    while len(recorded) < DECISIONS and not match.is_game_done:
        recorded.append(give_random_orders(match, rng))
        match.process()
    matches, count = [match], [0]

    def call() -> None:
        k = count[0] % len(recorded)
        if k == 0:
            matches[0] = package.Game()
        for power, texts in recorded[k].items():
            matches[0].set_orders(power, texts)
        matches[0].process()
        count[0] += 1

    return call
