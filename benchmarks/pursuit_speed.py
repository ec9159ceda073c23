"""Speed of pursuit: decisions a second next to TeamTag and PettingZoo's pursuit, faces, and making graphs."""

from __future__ import annotations

import importlib
from typing import Any

from measurement import Measurement, NotHere, ReportProgress, timed
from palaestra import registry
from palaestra.cli import benchmarks
from palaestra.cli.measure import Timing
from processes import start, this_installation
from skirmish_speed import further_measurement
from team_speed import LANES, TAG, next_to_tag, parallel, random_play, ratio

PURSUIT, CONFRONT = "palaestra/GraphPursuit-v0", "palaestra/GraphConfront-v0"
PURSUERS = 3
GRAPHS = ("grid:10x10", "regular:200x4")
SHOWN = {"flat": (3e6, 64.0), "hops": (4e6, 85.0), "nodes": (1.5e6, 32.0)}
"""Bars by ``observation=`` on each of `GRAPHS`: decisions a second of a match on one core, and their share of TeamTag's
in per cent; see `team_speed.next_to_tag`."""
CONFRONT_BARS = (1.5e6, 32.0)
SISL, SISL_SIDE, SISL_PURSUERS, SISL_BAR = "pettingzoo.sisl.pursuit_v5", 16, 8, 80.0
GYMNASIUM_BAR = 80e3
FURTHER, FURTHER_BAR_MS = ("grid:10x10", "petersen", "cube:4", "torus:8x8", "grid:16x16", "regular:200x4"), 20.0
"""Graphs of one class of degrees, so that the kernel of the first serves all."""
POOL, SMALL_POOL, POOL_BAR_S, POOL_BAR_MB = "dungeons:256x200", "dungeons:8x200", 5.0, 48.0
"""The small pool has the first graphs of the large one, and its kernel."""
TRIES = 2
"""Fresh processes of each start; the fastest counts."""


def speeds(report_progress: ReportProgress) -> list[Measurement]:
    """Decisions a second of one match on one core, with observations and masks, TeamTag in the same run.

    All agents get uniform random actions from outside, as TeamTag's do; what is illegal becomes a no-op. Finished
    matches start anew.
    """
    rows: list[tuple[str, str, dict[str, Any], tuple[float, float]]] = [
        (f"GraphPursuit {PURSUERS}v1 on {graph}, {shown}", PURSUIT, {"graph": graph, "observation": shown}, bars)
        for graph in GRAPHS
        for shown, bars in SHOWN.items()
    ]
    for _, _, keywords, _ in rows:
        keywords["pursuers"] = PURSUERS
    rows.append(("GraphConfront 3v3 on grid:8x8", CONFRONT, {}, CONFRONT_BARS))
    *timings, tag = timed(*(random_play(id, **keywords) for _, id, keywords, _ in rows), random_play(TAG))
    measurements = []
    for (about, _, _, bars), timing in zip(rows, timings, strict=True):
        measurements += next_to_tag(f"{about}, {LANES} lanes, random actions", timing, bars, tag)
    return measurements


def next_to_sisl(report_progress: ReportProgress) -> list[Measurement]:
    """A ParallelEnv with masks next to PettingZoo's: eight pursuers and one evader on 16 x 16 places, random actions.

    All our agents are moved from outside; PettingZoo moves its evader itself. Both get a reset after each match.

    Raises:
        NotHere: PettingZoo's pursuit or a package that it needs is missing.
    """
    them = parallel(sisl())
    us = registry.make_parallel(PURSUIT, graph=f"grid:{SISL_SIDE}x{SISL_SIDE}", pursuers=SISL_PURSUERS)
    ours, theirs = timed(parallel(us), them)
    about = f"GraphPursuit {SISL_PURSUERS}v1 on {SISL_SIDE} x {SISL_SIDE}, ParallelEnv with masks over {SISL}"
    return [ratio(about, ours, theirs, SISL_BAR)]


def sisl() -> Any:
    """PettingZoo's pursuit with one evader.

    Raises:
        NotHere: It or a package that it needs is missing.
    """
    try:
        module = importlib.import_module(SISL)
    except ImportError as error:
        raise NotHere('needs PettingZoo\'s pursuit: pip install "pettingzoo[sisl]>=1.27"') from error
    return module.parallel_env(n_pursuers=SISL_PURSUERS, n_evaders=1, x_size=SISL_SIDE, y_size=SISL_SIDE)


def single(report_progress: ReportProgress) -> list[Measurement]:
    """Steps a second of ``gymnasium.make``, the evader by the default script; the actions are drawn before."""
    (timing,) = timed(benchmarks.single(PURSUIT, graph=GRAPHS[0], pursuers=PURSUERS))
    return [single_measurement(timing)]


def single_measurement(timing: Timing) -> Measurement:
    """Steps of the match; the size of a face's `Timing` is the number of agents of both sides."""
    us = timing.size * timing.ns / 1e3
    about = f"gymnasium.make GraphPursuit {PURSUERS}v1 on {GRAPHS[0]} with masks against its script, steps a second"
    return Measurement("", about, 1e6 / us, GYMNASIUM_BAR, True, f"us a step: {us:.1f}")


def further_games(report_progress: ReportProgress) -> list[Measurement]:
    """Games on further graphs in a fresh process whose kernel is there, each from make to its first step."""
    runs = []
    for number in range(TRIES):
        report_progress(f"{number + 1}/{TRIES}")
        keywords = {"game": "palaestra.games.pursuit.graph_pursuit:game", "keyword": "graph", "values": list(FURTHER)}
        runs.append(start(this_installation(), "presets", **keywords))
    about = "GraphPursuit on a further graph of the same kernel: make to first step, ms"
    return [further_measurement(about, FURTHER, runs, FURTHER_BAR_MS)]


def pools(report_progress: ReportProgress) -> list[Measurement]:
    """A large pool of generated graphs in fresh processes: how long it takes, and what it keeps."""
    runs = []
    for number in range(TRIES):
        report_progress(f"{number + 1}/{TRIES}")
        keywords = {"id": PURSUIT, "first": {"graph": SMALL_POOL}, "then": {"graph": POOL}}
        runs.append(start(this_installation(), "further", **keywords))
    return pool_measurements(runs)


def pool_measurements(runs: list[Any]) -> list[Measurement]:
    """The fastest process, and what it keeps: the arrays, in the note how much the process has grown."""
    best = min(runs, key=lambda run: run["wall_s"])
    grown = best["resident_bytes"]
    note = "" if grown is None else f"growth of the process, what it freed on the way included: {grown / 1e6:.1f}"
    seconds, kept = f"GraphPursuit {POOL}: make to first step, s", f"GraphPursuit {POOL}, arrays of the world, MB"
    return [
        Measurement("", seconds, best["wall_s"], POOL_BAR_S, False),
        Measurement("", kept, best["world_bytes"] / 1e6, POOL_BAR_MB, False, note),
    ]
