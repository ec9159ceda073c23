"""Seeds: every face takes 64 bits of them, each bit matters, and without one the operating system gives them."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.testing.call_sequences import seeds_of
from palaestra.testing.drivers import drivers
from palaestra.testing.harness import conformance, require
from palaestra.testing.snapshot_view import difference, first_difference, snapshot_view
from palaestra.testing.subject import Subject

BITS = 64
WIDTHS = (64, 128, 256, 512, 1024, 2048)
"""Lanes beyond which they are looked at, as many as can be afforded."""
MOST_BYTES = 8 * 2**20
"""Memory of a wide batch at the level ``"fast"``."""


def _streams(sim: Any) -> list[tuple[int, int]]:
    """The streams of the rules and of the scripts, by lane."""
    return list(zip(sim.states["rng"].tolist(), sim.states["script_rng"].tolist(), strict=True))


@conformance(order=208)
def all_seed_bits_matter(subject: Subject) -> None:
    """Seeds that differ in one bit give other streams, of rules and of scripts; faces hand seeds on whole."""
    draw = subject.draw
    seed = draw.seed()
    seeds = [seed, *(seed ^ (1 << bit) for bit in range(BITS))]
    sim = subject.batch(5)
    found: dict[int, int] = {}
    for start in range(0, len(seeds), sim.num_envs):
        sim.seed(np.array(seeds[start : start + sim.num_envs], np.uint64))
        for own, streams in zip(seeds[start:], _streams(sim), strict=False):
            for stream in streams:
                require(stream not in found, f"seeds {own} and {found.get(stream)} give one stream")
                found[stream] = own
    sim.seed(seed)
    by_count = _streams(sim)
    sim.seed(np.array(seeds_of(seed, sim.num_envs), np.uint64))
    require(by_count == _streams(sim), f"seed={seed} does not seed lane i with {seed} + i")
    for driver in drivers(subject, seed):
        driver.start()
        held = driver.face if driver.name == "batch" else driver.face.sim
        given, expected = held.lane_seeds.tolist(), seeds_of(seed, held.num_envs)
        require(given == expected, f"{driver.name}: reset(seed={seed}) seeds the lanes with {given}")
    vec = subject.vec(3)
    own = draw.seeds("seeds", 3).tolist()
    vec.reset(seed=own)
    require(vec.sim.lane_seeds.tolist() == own, f"VectorEnv: reset(seed={own}) gives the lanes {vec.sim.lane_seeds}")
    streams = _streams(vec.sim)
    vec.reset(seed=[own[1], None, None])
    kept = vec.sim.lane_seeds.tolist()
    require(kept == [own[1], own[1], own[2]], f"VectorEnv: seeds [{own[1]}, None, None] give the lanes {kept}")
    again = _streams(vec.sim)
    require(again[0] == streams[1], f"VectorEnv: lane 0 seeded {own[1]} differs from lane 1 of that seed")


@conformance(order=218)
def far_lanes_equal_single_envs(subject: Subject) -> None:
    """Lane i under seed s starts like the single env under s + i, wherever it lies: beyond 64 lanes, or a thousand.

    As many lanes as memory and time allow; their seeds and streams are all different.
    """
    draw, seed = subject.draw, subject.draw.seed()
    lanes = _affordable_lanes(subject)
    threads = 1 if subject.is_engine_game else draw.integer("threads", 1, 3)
    sim, single = subject.batch(lanes, threads=threads), subject.batch(1)
    sim.reset(seed=seed)
    expected = np.array(seeds_of(seed, lanes), np.uint64)
    wrong = np.flatnonzero(sim.lane_seeds != expected)
    require(not len(wrong), f"reset(seed={seed}) does not seed lanes {wrong[:9]} of {lanes} with {seed} + i")
    same = lanes - len(np.unique(sim.states["script_rng"]))
    require(not same, f"{same} of {lanes} lanes have a stream that another lane has, too")
    near = {edge + offset for edge in (32, *WIDTHS) for offset in (-1, 0)}
    looked = {1, lanes - 1, *(draw.integer("lane", 0, lanes - 1) for _ in range(3)), *(k for k in near if k < lanes)}
    for lane in sorted(looked):
        single.reset(seed=int(expected[lane]))
        found = difference(subject.game, snapshot_view(sim, lane), snapshot_view(single), lane)
        if not found and (differs := first_difference(sim.states[lane : lane + 1], single.states)) is not None:
            path, _, ours, theirs = differs
            found = f"lane {lane}: state {'.'.join(path)} = {ours} and {theirs}"
        require(not found, f"{found} (of {lanes} lanes, and alone with seed {seed} + {lane})")
    subject.note(f"{len(looked)} of {lanes} lanes")


def _affordable_lanes(subject: Subject) -> int:
    """Lanes of the widest batch that is made in a moment."""
    is_full = subject.level == "full"
    if subject.is_engine_game:
        return WIDTHS[0] + 2 if is_full else 8
    lane_bytes = sum(array.nbytes for array in subject.batch(1).buffers.live().values())
    widest = [n for n in WIDTHS if n * lane_bytes <= MOST_BYTES * (16 if is_full else 1)]
    return max(widest, default=WIDTHS[0]) + 2


@conformance(order=209)
def unseeded_lanes_differ(subject: Subject) -> None:
    """A reset without a seed draws one from the operating system, once; later resets go on with the stream."""
    seen: set[int] = set()
    for make in (lambda: subject.batch(3), subject.env, lambda: subject.vec(3), subject.parallel) * 2:
        face = make()
        sim = getattr(face, "sim", face)
        face.reset()
        seeds, first = sim.lane_seeds.tolist(), _streams(sim)
        name = type(face).__name__
        require(not seen & set(seeds) and len(set(seeds)) == len(seeds), f"{name}: the seeds {seeds} were there before")
        seen |= set(seeds)
        face.reset()
        require(sim.lane_seeds.tolist() == seeds, f"{name}: a second reset without a seed draws others")
        second = _streams(sim)
        sim.seed(np.array(seeds, np.uint64))
        for lane, (start, one, two) in enumerate(zip(_streams(sim), first, second, strict=True)):
            moves = one[0] != start[0]
            require(not moves or two[0] != one[0], f"{name}, lane {lane}: the second match starts like the first")
            require(two[1] != start[1], f"{name}, lane {lane}: the stream of the scripts starts again")
