"""Speed measurements of first starts, of presets that share a kernel, and of what a simulation with an engine keeps."""

from __future__ import annotations

import tempfile
from statistics import median
from typing import Any

from compare import kernel_ids, short
from measurement import Measurement, ReportProgress, register_game, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark
from palaestra.cli.random_actions import batch_call
from processes import start, this_installation
from start_worker import BODY_ID

SIZE_GAME, BODY_GAME = "games.size_game:game", "games.body_game:game"
TRIES = 2
"""Fresh processes of each start; the fastest counts, as other work on the machine only adds time."""
COLD_BAR_S, WARM_BAR_S = 4.0, 0.4
PRESETS, PRESETS_BAR_S, PRESET_BAR_MS = tuple(range(3, 26)), 8.0, 20.0
BODY_LANES, BODY_DECISIONS, RESTORE_BAR_MS = 64, 300, 1.0
MEMORY_START, MEMORY_END, MEMORY_BAR_MB = 1000, 10_000, 1.0
"""A log of one number a lane and decision would grow by 4.6 MB between the looks."""


def makes(report_progress: ReportProgress) -> list[Measurement]:
    """``gymnasium.make`` of every compiled game in fresh processes, without and with compiled code on the disk."""
    measurements, quiet, imports = [], [], []
    ids = kernel_ids()
    for number, id in enumerate(ids):
        report_progress(f"{number + 1}/{len(ids)} {short(id)}")
        colds, warms = _starts(id)
        imports += [found["import_s"] for found in (*colds, *warms)]
        lines = [_compiler_lines(found) for found in colds]
        if any(len(line) != 1 for line in lines) or any(map(_compiler_lines, warms)):
            quiet.append(short(id))
        measurements.append(
            _start_measurement(id, "cold cache", colds, COLD_BAR_S, f'"{lines[0][0]}"' if lines[0] else "")
        )
        measurements.append(_start_measurement(id, "warm cache", warms, WARM_BAR_S, ""))
    about = "games that do not report in one line that they are being compiled, or report it of a warm cache"
    measurements.append(Measurement("", about, float(len(quiet)), 0.0, False, ", ".join(quiet)))
    about = "importing gymnasium and palaestra, before make, s"
    return [*measurements, Measurement("", about, min(imports), None, False, f"the least of {len(imports)}")]


def _starts(id: str) -> tuple[list[Any], list[Any]]:
    """What fresh processes report of ``gymnasium.make``: without, then with compiled code on the disk."""
    colds, warms = [], []
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory() as cache:
            for kind in (colds, warms):
                kind.append(start(this_installation(), "make", cache=cache, id=id))
    return colds, warms


def _compiler_lines(found: Any) -> list[str]:
    return [line for line in found["lines"] if "compil" in line.lower()]


def _start_measurement(id: str, about: str, found: list[Any], bar: float, note: str) -> Measurement:
    best = {name: min(one[name] for one in found) for name in ("wall_s", "cpu_s", "step_s")}
    notes = (f"CPU s: {best['cpu_s']:.2f}", f"first reset and step {1e3 * best['step_s']:.1f} ms", note)
    about = f"gymnasium.make {short(id)}, {about}, s"
    return Measurement("", about, best["wall_s"], bar, False, "; ".join(filter(None, notes)))


def presets(report_progress: ReportProgress) -> list[Measurement]:
    """Sizes of one game, one after the other in one fresh process, each from make to its first step."""
    runs = []
    for number in range(TRIES):
        report_progress(f"{number + 1}/{TRIES}")
        with tempfile.TemporaryDirectory() as cache:
            keywords = {"game": SIZE_GAME, "keyword": "agents", "values": list(PRESETS)}
            runs.append(start(this_installation(), "presets", cache=cache, **keywords))
    all_s = min(sum(run["wall_s"]) for run in runs)
    cpu_s = min(sum(run["cpu_s"]) for run in runs)
    best = min(runs, key=lambda run: run["cpu_s"][1])
    further_ms = [1e3 * seconds for seconds in best["cpu_s"][1:]]
    all_of = f"{len(PRESETS)} presets of one kernel ({PRESETS[0]} to {PRESETS[-1]} agents), cold, make to first step, s"
    second = "a second preset of a kernel, make to first step, CPU ms"
    note = f"of {len(further_ms)} further ones: median {median(further_ms):.1f}, largest {max(further_ms):.1f}"
    return [
        Measurement("", all_of, all_s, PRESETS_BAR_S, False, f"CPU s: {cpu_s:.2f}"),
        Measurement("", second, further_ms[0], PRESET_BAR_MS, False, note),
    ]


def bodies(report_progress: ReportProgress) -> list[Measurement]:
    """A game whose bodies an engine moves: how long a restore takes, what a long run keeps."""
    sim = registry.make_batch(register_game(BODY_ID, BODY_GAME), BODY_LANES)
    call = batch_call(sim)
    for _ in range(BODY_DECISIONS):
        call()
    snapshot = sim.snapshot()
    call()
    (restore,) = timed(Benchmark("restore", lambda: sim.restore(snapshot), 1, sim.close))
    report_progress("memory")
    keywords = {"game": BODY_GAME, "lanes": BODY_LANES, "start": MEMORY_START, "end": MEMORY_END}
    grown = start(this_installation(), "memory", **keywords)
    allocated, resident = grown["allocated_bytes"], grown["resident_bytes"]
    note = f"MB: {allocated / 1e6:.2f} by Python and NumPy"
    note += "" if resident is None else f", {resident / 1e6:.2f} of the process"
    value = max(allocated, resident or 0) / 1e6
    restored = f"restore of {BODY_LANES} lanes after {BODY_DECISIONS} decisions, ms"
    about = f"growth of a simulation from {MEMORY_START} to {MEMORY_END} decisions of {BODY_LANES} lanes, MB"
    return [
        Measurement("", restored, 1e3 * restore.wall_s, RESTORE_BAR_MS, False, f"CPU ms: {1e3 * restore.cpu_s:.2f}"),
        Measurement("", about, value, MEMORY_BAR_MB, False, note),
    ]
