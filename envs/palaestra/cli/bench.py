"""Measures the speed of environments, yours too: steps per second of every face."""

from __future__ import annotations

import argparse
from typing import Any

from palaestra import registry
from palaestra.cli import benchmarks, measure
from palaestra.cli.common import add_id, add_json, add_keywords, keywords_of, natural, positive_count, print_json
from palaestra.cli.progress_bar import Progress
from palaestra.console import find_id, print_table

ABOUT = "steps per second of every face, of an environment of yours too"
EXAMPLE = "palaestra bench CartPole --num-envs 1 1024"

KERNEL_LANES, ENGINE_LANES = (1, 64, 1024), (1, 8)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    add_id(parser, optional=True)
    parser.add_argument("--all", action="store_true", help="every registered environment")
    parser.add_argument(
        "--num-envs", type=positive_count, nargs="+", metavar="N", help="lanes (1 64 1024; engines 1 8)"
    )
    parser.add_argument("--opponent", help="player of the other teams (default: the game's own default)")
    parser.add_argument("--threads", type=positive_count, default=1, help="threads of the batch and vector faces")
    parser.add_argument("--workers", type=natural, default=0, help="processes of the batch and vector faces")
    parser.add_argument(
        "--rounds", type=positive_count, default=measure.ROUNDS, metavar="N", help="rounds (default %(default)s)"
    )
    add_keywords(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: Neither an id nor ``--all``, or both.
    """
    if (args.id is None) != args.all:
        raise ValueError("give what to measure: an ID, or --all")
    if args.all and args.keywords:
        raise ValueError("--set goes with an ID, not with --all")
    rows: list[dict[str, Any]] = []
    for id in registry.ROWS if args.all else [find_id(args.id)]:
        try:
            measured = _measure(id, args)
        except ImportError as error:
            if not args.all:
                raise
            measured = []
            if not args.json:
                print(f"{id}: {error}")
        rows += measured
        if not args.json and measured:
            _print(id, measured)
    if args.json:
        print_json(rows)
    return 0


def _measure(id: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    keywords = keywords_of(args)
    if args.threads != 1:
        keywords["threads"] = args.threads
    if args.workers:
        keywords["workers"] = args.workers
    rules = {name: value for name, value in keywords.items() if name not in ("threads", "workers")}
    game, _ = registry.make_game(id, **rules)
    lanes = args.num_envs or (KERNEL_LANES if benchmarks.is_kernel_game(game) else ENGINE_LANES)
    rows = []
    for n in lanes:
        faces = benchmarks.faces(id, n, args.opponent, **keywords)
        calibration = benchmarks.calibration()
        with Progress("rounds") as report_progress:
            *timings, unit = measure.measure([*faces, calibration], rounds=args.rounds, report_progress=report_progress)
        for face, timing in zip(faces, timings, strict=True):
            rows.append(
                {
                    "id": id,
                    "face": face.name,
                    "num_envs": n,
                    "threads": args.threads,
                    "workers": args.workers,
                    "steps_per_second": timing.per_second / len(game.agents),
                    "ns_per_agent_step": 1e9 * timing.wall_s / timing.size,
                    "cpu_ns_per_agent_step": timing.ns,
                    "times_calibration": timing.wall_s / timing.size / (unit.wall_s / unit.size),
                }
            )
        for benchmark in (*faces, calibration):
            benchmark.close()
    return rows


def _print(id: str, rows: list[dict[str, Any]]) -> None:
    extra = "".join(f", {rows[0][name]} {name}" for name in ("threads", "workers") if rows[0][name] > 1)
    print(f"{id}{extra}")
    table = [
        [
            row["face"],
            f"{row['num_envs']}",
            f"{row['steps_per_second']:,.0f}",
            f"{row['ns_per_agent_step']:,.1f}",
            f"{row['cpu_ns_per_agent_step']:,.1f}",
            f"{row['times_calibration']:,.2f}",
        ]
        for row in rows
    ]
    headings = ["face", "lanes", "steps/s", "ns/agent-step", "CPU ns", "x calibration"]
    print_table(table, headings)
    print()
