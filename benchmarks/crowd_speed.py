"""Hundreds of agents and long lists of alternatives, alone or next to another version of palaestra.

::

    python benchmarks/crowd_speed.py
    python benchmarks/crowd_speed.py --against ../before

The games are those of ``tests/games/crowd.py``. Both versions play them in turns, each time in a fresh process; the
best time of each counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from measurement import VERDICTS, Measurement, ReportProgress, bar_text, holds, value_text
from palaestra.console import print_table
from processes import Installation, find_installation, this_installation

TESTS = Path(__file__).parents[1] / "tests"
TEAM, SIDE, LANES = 81, 45, 64
"""A battle of 81 against 81 on 45 x 45 cells; matches with lists side by side."""
LARGE_TEAM, LARGE_SIDE = 1000, 160
PAIRS, ROUNDS, CALLS = 3, 20, 20
PARALLEL = {
    "flat": ({"observation": "flat"}, False, 1.5),
    "flat, masks": ({"observation": "flat"}, True, 1.5),
    "dict": ({"observation": "dict"}, False, 1.3),
    "dict, masks": ({"observation": "dict"}, True, 1.3),
}
"""Keywords of the ParallelEnv, whether the game forbids something, and how many times faster it is to be."""
LISTS, DRY_RUN = "a decision with (17,) choices of 7 players, lists of 256", "dry run of 1,000 against 1,000"
LISTS_BAR_US, DRY_RUN_BAR_S = 50.0, 1.0


def measurements(report_progress: ReportProgress) -> list[Measurement]:
    """This version's figures."""
    found = measured(report_progress)
    rows = [
        Measurement("", f"ParallelEnv of {2 * TEAM}, {name}: decisions/s", found[name], None, True) for name in PARALLEL
    ]
    rows.append(Measurement("", f"{LISTS}, us", found[LISTS], LISTS_BAR_US, False))
    return [*rows, Measurement("", f"{DRY_RUN}, CPU s", found[DRY_RUN], DRY_RUN_BAR_S, False)]


def measured(report_progress: ReportProgress, with_dry_run: bool = True) -> dict[str, float]:
    """Figures of the palaestra that is imported, by name."""
    from games import crowd

    from palaestra.core.run.kernel import KernelSimulation

    found = {}
    for name, (keywords, forbids, _) in PARALLEL.items():
        report_progress(name)
        game = crowd.battle(TEAM, TEAM, SIDE, masks=forbids)
        found[name] = 1 / best_of(parallel_step(KernelSimulation(game, 1, autoreset_mode="off"), keywords))
    report_progress("lists")
    game = crowd.powers()
    sim = KernelSimulation(game, LANES, opponents=dict.fromkeys(game.teams, "random"))
    sim.reset(seed=0)
    found[LISTS] = 1e6 * best_of(sim.step) / LANES
    if with_dry_run:
        report_progress("dry run")
        found[DRY_RUN] = dry_run_s(crowd.battle(LARGE_TEAM, LARGE_TEAM, LARGE_SIDE))
    return found


def parallel_step(sim: Any, keywords: dict[str, Any]) -> Callable[[], object]:
    """A decision of a ParallelEnv, all agents by random actions, and a reset after `CALLS` of them."""
    from palaestra.core.faces.parallel_env import GameParallelEnv

    env, rng = GameParallelEnv(sim, **keywords), np.random.default_rng(0)
    pool = [{agent: int(rng.integers(10)) for agent in env.possible_agents} for _ in range(CALLS)]
    count = [0]

    def step() -> None:
        if count[0] % CALLS == 0:
            env.reset(seed=0)
        env.step(pool[count[0] % CALLS])
        count[0] += 1

    return step


def best_of(call: Callable[[], object]) -> float:
    """Seconds of CPU time a call, the best round."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.thread_time()
        for _ in range(CALLS):
            call()
        seconds.append((time.thread_time() - start) / CALLS)
    return min(seconds)


def dry_run_s(game: Any) -> float:
    """Seconds of processor time before the compiler is asked."""
    from palaestra.core.run.dry_run import BEFORE_COMPILING, dry_run
    from palaestra.core.run.kernel import KernelSimulation

    start = time.process_time()
    error = dry_run(game, lambda lanes: KernelSimulation(game, lanes, compiled=False), *BEFORE_COMPILING)
    if error is not None:
        raise error
    return time.process_time() - start


def in_turns(installations: Sequence[Installation]) -> Iterator[dict[str, float]]:
    """Figures of each version, best of the processes of each."""
    found: list[dict[str, list[float]]] = [{} for _ in installations]
    for pair in range(PAIRS):
        for installation, figures in zip(installations, found, strict=True):
            command = [installation.python, __file__, "--here", *(["--dry-run"] if pair == 0 else [])]
            path = ":".join([*installation.path, str(TESTS)])
            run = subprocess.run(
                command, capture_output=True, text=True, check=False, env=installation.environment(PYTHONPATH=path)
            )
            if run.returncode != 0:
                raise SystemExit(f"crowd_speed.py: {installation.name}: {run.stderr.strip().splitlines()[-1]}")
            for name, value in json.loads(run.stdout).items():
                figures.setdefault(name, []).append(value)
    for figures in found:
        yield {name: (max if name in PARALLEL else min)(values) for name, values in figures.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints. Returns 1 where a bar was missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", metavar="PLACE", help="another palaestra: a checkout or an interpreter")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--dry-run", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(arguments)
    if args.here:
        print(json.dumps(measured(lambda _: None, args.dry_run)))
        return 0
    installations = [this_installation(), *([] if args.against is None else [find_installation(args.against)])]
    after, *others = in_turns(installations)
    before = others[0] if others else {}
    rows, missed = [], False
    for name, value in after.items():
        old, bar, at_least = before.get(name), None, name in PARALLEL
        ratio = None if old is None else value / old if at_least else old / value
        if at_least:
            bar, judged = PARALLEL[name][2], ratio
        else:
            bar, judged = (LISTS_BAR_US if name == LISTS else DRY_RUN_BAR_S), value
        verdict = holds(judged, bar, at_least)
        missed |= verdict is False
        about = f"ParallelEnv of {2 * TEAM}, {name}" if at_least else name
        unit = "decisions/s" if at_least else "us" if name == LISTS else "CPU s"
        times = "" if ratio is None else f"{ratio:.2f}x"
        limit = f"{bar_text(bar, at_least)} {'x' if at_least else unit}"
        rows.append([about, value_text(old), value_text(value), unit, times, limit, VERDICTS[verdict]])
    print_table(rows, ["", "before", "after", "unit", "faster", "bar", ""])
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
