"""Measures the speed of environments, every face of each, or prints the suite's speed figures with their bars.

With --against it compares this installation with another version of palaestra in one run: each has a process of its
own, and they take turns round by round. Name the folder of a checkout, say of an older commit, or the python (or
virtual environment) of another installation:

  git worktree add ../before v0.1.0
  palaestra bench --against ../before --figures actions scripts
"""

from __future__ import annotations

import argparse
from typing import Any

from palaestra import registry
from palaestra.cli import against, measure, subjects
from palaestra.cli.common import add_id, add_json, add_keywords, keywords_of, natural, positive_count, print_json
from palaestra.cli.figure import Setup
from palaestra.cli.progress_bar import Progress
from palaestra.console import find_id, print_table

ABOUT = "steps per second of every face, and the speed figures"
EXAMPLE = "palaestra bench CartPole --num-envs 1 1024"

KERNEL_LANES, ENGINE_LANES = (1, 64, 1024), (1, 8)
LANES_HELP = f"default 1 64 1024; engines 1 8; one number with --against, {against.LANES} by default"
ROUNDS_HELP = f"default {measure.ROUNDS}; with --against {against.ROUNDS}, to compile at most {against.COLD_ROUNDS}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """See `palaestra.cli`."""
    add_id(parser, optional=True)
    parser.add_argument("--all", action="store_true", help="every registered environment")
    parser.add_argument(
        "--figures",
        nargs="*",
        metavar="NAME",
        help="the speed figures, all or those of these letters; with --against of these names: actions (a batch by "
        "random actions), scripts (a batch with scripts on all teams), single (gymnasium.make), vector (make_vec), "
        "parallel (PettingZoo), compile (CPU s)",
    )
    parser.add_argument(
        "--against",
        metavar="PLACE",
        help="another palaestra to compare with: a checkout, an interpreter or a virtual environment; of one ID or all",
    )
    parser.add_argument(
        "--game", metavar="MODULE:FUNCTION", help="with --figures: a homogeneous two-team game for overhead and threads"
    )
    parser.add_argument(
        "--size-game", metavar="MODULE:FUNCTION", help="with --figures: a game of one kernel with the keyword agents"
    )
    parser.add_argument(
        "--body-game", metavar="MODULE:FUNCTION", help="with --figures: a game whose bodies an engine moves"
    )
    parser.add_argument("--num-envs", type=positive_count, nargs="+", metavar="N", help=f"lanes ({LANES_HELP})")
    parser.add_argument("--opponent", help="player of the other teams (default: the game's own default)")
    parser.add_argument("--threads", type=positive_count, default=1, help="threads of the batch and vector faces")
    parser.add_argument("--workers", type=natural, default=0, help="processes of the batch and vector faces")
    parser.add_argument("--rounds", type=positive_count, metavar="N", help=f"rounds ({ROUNDS_HELP})")
    add_keywords(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    """See `palaestra.cli`.

    Raises:
        ValueError: Not exactly one of an id, ``--all``, ``--figures`` and ``--against``, or options that do not go
            together.
    """
    if args.against is not None:
        return _compare(args)
    if (args.id is not None) + args.all + (args.figures is not None) != 1:
        raise ValueError("say what to measure: an ID, --all, --figures, or --against PLACE")
    if args.figures is not None:
        from palaestra.cli import bench_figures

        return bench_figures.run(args.figures, Setup(args.game, args.size_game, args.body_game), args.json)
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


def _compare(args: argparse.Namespace) -> int:
    """Next to another version."""
    without = {"--all": args.all, "--set": args.keywords, "--opponent": args.opponent, "--workers": args.workers}
    without |= {"--threads": args.threads != 1, "two numbers of --num-envs": len(args.num_envs or ()) > 1}
    for option, given in without.items():
        if given:
            raise ValueError(f"--against does not go with {option}")
    id = None if args.id is None else find_id(args.id)
    lanes = args.num_envs[0] if args.num_envs else None
    return against.run(args.against, args.figures or [], id, lanes, args.rounds, args.json)


def _measure(id: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    keywords = keywords_of(args)
    if args.threads != 1:
        keywords["threads"] = args.threads
    if args.workers:
        keywords["workers"] = args.workers
    rules = {name: value for name, value in keywords.items() if name not in ("threads", "workers")}
    game, _ = registry.make_game(id, **rules)
    lanes = args.num_envs or (KERNEL_LANES if subjects.is_kernel_game(game) else ENGINE_LANES)
    rows = []
    for n in lanes:
        rivals = subjects.faces(id, n, args.opponent, **keywords)
        yardstick = subjects.calibration()
        with Progress("rounds") as report_progress:
            *timings, unit = measure.measure(
                [*rivals, yardstick], rounds=args.rounds or measure.ROUNDS, report_progress=report_progress
            )
        for rival, timing in zip(rivals, timings, strict=True):
            rows.append(
                {
                    "id": id,
                    "face": rival.name,
                    "num_envs": n,
                    "threads": args.threads,
                    "workers": args.workers,
                    "steps_per_second": timing.per_second / len(game.agents),
                    "ns_per_agent_step": 1e9 * timing.wall_s / timing.size,
                    "cpu_ns_per_agent_step": timing.ns,
                    "times_calibration": timing.wall_s / timing.size / (unit.wall_s / unit.size),
                }
            )
        for subject in (*rivals, yardstick):
            subject.close()
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
