"""The suite's speed measurements: ratios measured on this machine, each with its bar.

::

    python benchmarks/speed.py                     # all of them, an hour
    python benchmarks/speed.py --measurements cartpole threads exact   # some
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import concert_speed
import crowd_speed
import exact_claims
import family_speed
import flight_speed
import grid_speed
import plan_speed
import pursuit_speed
import robots_speed
import scale_sampling_speed
import scale_speed
import search_speed
import skirmish_speed
import start_speed
import team_speed
from measurement import Measurement, NotHere, ReportProgress, print_measurements, register_game, timed
from palaestra import registry
from palaestra.cli.benchmarks import batch, peer, single, vector
from palaestra.cli.common import add_json, print_json
from palaestra.cli.measure import Benchmark, Timing
from palaestra.cli.progress_bar import Progress
from palaestra.cli.random_actions import POOL, samples, stepper

CARTPOLE, PEER = "palaestra/CartPole-v0", "CartPole-v1"
GAME_ID, TWO_TEAMS = "palaestra-bench/TwoTeam-v0", "games.two_team_homogeneous:game"
TESTS = Path(__file__).parents[1] / "tests"
"""Folder of the games that are measured and are no part of the suite."""
BATCH, SYNC_BATCH, THREAD_BATCH = 8192, 64, 4096
VECTOR_BAR, SINGLE_BAR = 1.5, 0.45


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints. Returns 1 where a bar was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--measurements",
        nargs="*",
        metavar="NAME",
        choices=MEASUREMENTS,
        help=f"{', '.join(MEASUREMENTS)} (default: all)",
    )
    add_json(parser)
    args = parser.parse_args(arguments)
    sys.path.append(str(TESTS))
    chosen = args.measurements or list(MEASUREMENTS)
    found: list[Measurement] = []
    with Progress("measurements") as progress:
        for done, name in enumerate(chosen):
            function, about, bar, at_least = MEASUREMENTS[name]
            progress(done, len(chosen), name)
            report = lambda note, done=done, name=name: progress(done, len(chosen), f"{name} {note}")  # noqa: E731
            try:
                found += [replace(measurement, name=name) for measurement in function(report)]
            except (NotHere, ImportError) as reason:
                found.append(Measurement(name, about, None, bar, at_least, str(reason)))
    if args.json:
        print_json([{**asdict(measurement), "holds": measurement.holds} for measurement in found])
    else:
        print_measurements(found)
    return 1 if any(measurement.holds is False for measurement in found) else 0


def _vector_peers(report_progress: ReportProgress) -> list[Measurement]:
    """CartPole next to Gymnasium's two ways to run many of it, all returning fresh arrays."""
    native = gymnasium.make_vec(PEER, BATCH, vectorization_mode="vector_entry_point")
    sync = gymnasium.make_vec(PEER, SYNC_BATCH, vectorization_mode="sync")
    bare, copies, theirs, slow = timed(
        batch(CARTPOLE, BATCH),
        vector(CARTPOLE, BATCH, copy=True),
        peer("CartPoleVectorEnv", native, BATCH),
        peer("SyncVectorEnv", sync, SYNC_BATCH),
    )

    def measurement(ours: Timing, face: str, other: Timing, name: str, bar: float | None) -> Measurement:
        note = f"M lane-steps/s: {1e3 / ours.ns:.1f} to {1e3 / other.ns:.2f}"
        return Measurement(
            "a", f"CartPole, {face} of {BATCH} over Gymnasium's {name}", other.ns / ours.ns, bar, True, note
        )

    return [
        measurement(bare, "batch", theirs, f"vector env of {BATCH}", VECTOR_BAR),
        measurement(copies, "vector env, copies,", theirs, f"vector env of {BATCH}", VECTOR_BAR),
        measurement(bare, "batch", slow, f"SyncVectorEnv of {SYNC_BATCH}", 100.0),
    ]


def _face_overhead(report_progress: ReportProgress) -> list[Measurement]:
    """The vector face over the bare batch loop: the same matches, actions and opponents, calls of a millisecond."""
    name = register_game(GAME_ID, TWO_TEAMS)
    lanes = _lanes_of_a_millisecond(name)
    benchmarks = [_equal_run(name, lanes, face) for face in ("batch", "copies", "no copies")]
    bare, copies, views = timed(*benchmarks, rounds=25, round_s=0.03)
    note = f"{lanes} lanes, {1e3 * bare.cpu_s:.2f} ms a call"
    return [
        Measurement(
            "b", "VectorEnv over the bare batch loop, copies", copies.cpu_s / bare.cpu_s - 1, 0.10, False, note
        ),
        Measurement(
            "b", "VectorEnv over the bare batch loop, no copies", views.cpu_s / bare.cpu_s - 1, 0.02, False, note
        ),
    ]


def _single(report_progress: ReportProgress) -> list[Measurement]:
    """One CartPole behind ``gymnasium.make`` with its default wrappers, next to Gymnasium's own."""
    ours, theirs = timed(single(CARTPOLE), peer(PEER, gymnasium.make(PEER), 1))
    note = f"us a step: {ours.ns / 1e3:.2f} to {theirs.ns / 1e3:.2f}"
    return [
        Measurement(
            "c", "gymnasium.make CartPole, time of Gymnasium's own", ours.ns / theirs.ns, SINGLE_BAR, False, note
        )
    ]


def _threads(report_progress: ReportProgress) -> list[Measurement]:
    """Two threads next to one."""
    name = register_game(GAME_ID, TWO_TEAMS)
    one, two = timed(*(_equal_run(name, THREAD_BATCH, "batch", threads=k) for k in (1, 2)), rounds=5, round_s=0.2)
    note = f"ms a call: {1e3 * one.wall_s:.2f} to {1e3 * two.wall_s:.2f}, {os.cpu_count()} cores"
    return [Measurement("d", f"two threads, {THREAD_BATCH} lanes, speed-up", one.wall_s / two.wall_s, 1.6, True, note)]


IMPORT = """
import json, sys, time
start = time.process_time()
import {name}
spent = time.process_time() - start
print(json.dumps([spent, [m for m in ("numba", "torch", "jsbsim", "mujoco") if m in sys.modules]]))
"""


def _import_time(report_progress: ReportProgress) -> list[Measurement]:
    """``import palaestra`` next to ``import gymnasium``, each in fresh processes, the least of nine."""
    best = {"palaestra": float("inf"), "gymnasium": float("inf")}
    loaded: list[str] = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for _ in range(9):
        for name in best:
            command = [sys.executable, "-c", IMPORT.format(name=name)]
            answer = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            seconds, heavy = json.loads(answer.stdout)
            best[name] = min(best[name], seconds)
            loaded = heavy if name == "palaestra" else loaded
    note = f"CPU s: {best['palaestra']:.2f} to {best['gymnasium']:.2f}; loads {', '.join(loaded) or 'nothing heavy'}"
    ratio = best["palaestra"] / best["gymnasium"]
    return [
        Measurement("e", "import palaestra, time of import gymnasium", ratio, 1.6, False, note),
        Measurement("e", "compilers, learners and engines that the import loads", float(len(loaded)), 0.0, False),
    ]


def _exact(report_progress: ReportProgress) -> list[Measurement]:
    """The solvers of `palaestra.exact` next to scipy's, and Littman's soccer."""
    return list(exact_claims.measurements())


def _equal_run(id: str, lanes: int, face: str, **options: Any) -> Benchmark:
    """The first team by random actions, the other by the default opponent; every face plays the same matches.

    The batch loop writes the same float32 arrays as the face gets, and reads no result.
    """
    env: Any = registry.make_vec(id, lanes, copy=face == "copies", **options)
    actions = samples(env.action_space)
    if face != "batch":
        return Benchmark(face, stepper(env, actions), lanes, env.close)
    env.reset(seed=0)
    count = [0]
    sim = env.sim
    own = sim.game.teams[env.control]
    if not isinstance(sim.actions, np.ndarray) or sim.actions.dtype.names is not None:
        raise NotHere("the game must have one role and actions of one kind")
    memory = sim.actions[:, own[0] : own[-1] + 1]
    shaped = [np.asarray(action).reshape(memory.shape) for action in actions]

    def bare() -> None:
        memory[...] = shaped[count[0] % POOL]
        count[0] += 1
        sim.step()

    return Benchmark(face, bare, lanes, env.close)


def _lanes_of_a_millisecond(id: str) -> int:
    """Lanes with which a call takes a little over a millisecond."""
    lanes = 256
    while True:
        (timing,) = timed(_equal_run(id, lanes, "batch"), rounds=3)
        if timing.cpu_s >= 1.1e-3:
            return lanes
        lanes *= 2


MEASUREMENTS: dict[str, tuple[Callable[[ReportProgress], list[Measurement]], str, float | None, bool]] = {
    "cartpole": (_vector_peers, "CartPole over Gymnasium's", VECTOR_BAR, True),
    "faces": (_face_overhead, "VectorEnv over the bare batch loop", 0.10, False),
    "gymnasium-step": (_single, "gymnasium.make CartPole, time of Gymnasium's own", SINGLE_BAR, False),
    "threads": (_threads, "two threads, speed-up", 1.6, True),
    "import": (_import_time, "import palaestra, time of import gymnasium", 1.6, False),
    "ucav-frame": (flight_speed.frames, "compiled frame over JSBSim's run()", flight_speed.FRAME_BAR, True),
    "ucav-workers": (
        flight_speed.workers,
        "UCAV vector, two workers over one, speed-up",
        flight_speed.WORKERS_BAR,
        True,
    ),
    "ucav-reset": (flight_speed.resets, "UCAV, reset of a lane, us", flight_speed.RESET_BAR_US, False),
    "particles": (team_speed.particles, "particle games over mpe2's", 500.0, True),
    "families": (family_speed.decisions, "decisions a second on one core of games that families name", None, True),
    "exact": (_exact, "exact solvers", 500.0, True),
    "first-step": (
        start_speed.makes,
        "gymnasium.make of every compiled game, cold cache, s",
        start_speed.COLD_BAR_S,
        False,
    ),
    "presets": (start_speed.presets, "presets of one kernel, cold, s in all", start_speed.PRESETS_BAR_S, False),
    "engine-restore": (start_speed.bodies, "restore of a game with an engine, ms", start_speed.RESTORE_BAR_MS, False),
    "skirmish": (skirmish_speed.speeds, "decisions a second of Skirmish on one core", 150e3, True),
    "skirmish-smax": (
        skirmish_speed.next_to_smax,
        "Skirmish 2s3z over JaxMARL's SMAX on the CPU",
        skirmish_speed.SMAX_BAR,
        True,
    ),
    "skirmish-faces": (skirmish_speed.faces, "one match of Skirmish with masks", skirmish_speed.PARALLEL_BAR, True),
    "skirmish-memory": (skirmish_speed.memory, "Skirmish, bytes a lane", 24e3, False),
    "skirmish-start": (
        skirmish_speed.first_starts,
        "compiling a layout of Skirmish, s",
        skirmish_speed.COLD_BAR_S,
        False,
    ),
    "pursuit": (pursuit_speed.speeds, "decisions a second of pursuit on one core", 3e6, True),
    "pursuit-pettingzoo": (
        pursuit_speed.next_to_sisl,
        "GraphPursuit, ParallelEnv over PettingZoo's pursuit",
        pursuit_speed.SISL_BAR,
        True,
    ),
    "pursuit-gymnasium": (pursuit_speed.single, "one match of GraphPursuit", pursuit_speed.GYMNASIUM_BAR, True),
    "pursuit-graphs": (
        pursuit_speed.further_games,
        "GraphPursuit on a further graph, ms",
        pursuit_speed.FURTHER_BAR_MS,
        False,
    ),
    "pursuit-pools": (pursuit_speed.pools, "GraphPursuit, making a pool of graphs, s", pursuit_speed.POOL_BAR_S, False),
    "robots": (robots_speed.shares, "MuJoCo alone over VectorEnv, robots", robots_speed.CHEETAH.share_bar, True),
    "cheetah-gymnasium": (
        robots_speed.next_to_gymnasium,
        "gymnasium.make of the half cheetah over Gymnasium's",
        robots_speed.SINGLE_BAR,
        False,
    ),
    "robots-restore": (
        robots_speed.states,
        "restore of 256 lanes of robots, ms; pictures, memory",
        robots_speed.RESTORE_BAR_MS,
        False,
    ),
    "robots-start": (robots_speed.starts, "robots, make_batch to first step, CPU s", robots_speed.COMPILE_BAR_S, False),
    "robots-threads": (robots_speed.threads, "quadrupeds, two threads, speed-up", robots_speed.THREADS_BAR, True),
    "bm25": (search_speed.speeds, "text search over bm25s", search_speed.SINGLE_BARS[0], True),
    "passages": (search_speed.making, "passages made and indexed, CPU s", search_speed.MAKING_BAR_S, False),
    "search-text": (search_speed.texts, "SearchQA, text, turns a second", search_speed.TEXT_BAR, True),
    "search-tokens": (search_speed.tokens, "SearchQA, tokens, turns a second", search_speed.FIXED_BAR, True),
    "search-server": (search_speed.serving, "/retrieve, queries a second", search_speed.SERVER_BAR, True),
    "seqwm-plan": (plan_speed.planning, "SeqWM, planned decisions a second", plan_speed.BAR, True),
    "ucav": (flight_speed.decisions, "UCAV 1v1, compiled batch over JSBSim's", flight_speed.FIGHTS[0][2], True),
    "ucav-threads": (flight_speed.threads, "UCAV, two threads, speed-up", flight_speed.THREADS_BAR, True),
    "ucav-gymnasium": (
        flight_speed.singles,
        "gymnasium.make UCAV, compiled over JSBSim",
        flight_speed.SINGLE_BAR,
        True,
    ),
    "ucav-start": (flight_speed.starts, "UCAV, imports to first step, CPU s", flight_speed.COLD_BAR_S, False),
    "ray-matches": (scale_speed.evaluations, "matches by two processes of Ray over one, speed-up", 1.6, True),
    "ray-pieces": (scale_speed.overheads, "a piece without work on Ray, ms", None, False),
    "ray-sampling": (scale_sampling_speed.sampling, "sampling by two actors over one process", 1.5, True),
    "crowds": (crowd_speed.measurements, "hundreds of agents, long lists", crowd_speed.LISTS_BAR_US, False),
    "grid-magent": (grid_speed.next_to_magent, "GridBattle over MAgent2's battle", 1.9, True),
    "grid-huge": (grid_speed.sizes, "GridBattle-Huge, decisions a second", grid_speed.HUGE_BAR, True),
    "grid-start": (grid_speed.starts, "GridBattle, first use, CPU s", grid_speed.FIRST_USE[grid_speed.BATTLE], False),
    "grid-threads": (grid_speed.threads, "GridBattle, two threads, speed-up", grid_speed.THREADS_BAR, True),
    "grid-mirrored": (grid_speed.matches, "GridBattle, matches of scripts", grid_speed.MIRRORED_BAR, False),
    "ucav-teams": (flight_speed.teams, "UCAV 4v4, aircraft-decisions a second", flight_speed.TEAM_FIGHTS[0][2], True),
    "concert": (concert_speed.concert, "Concert over the package diplomacy", concert_speed.LISTS_BAR, True),
}
"""Measurement, and for where it cannot be made: what it would have shown, the bar, whether more is better."""


if __name__ == "__main__":
    sys.exit(main())
