"""The figure of Skirmish's learners, made by ``python -m palaestra_baselines.figures skirmish_learning``.

Red learns by VDN against the script ``builtin``; its units share a network. A run takes a minute of processor time; its
replay of 2s3z fills 160 MB, and so does each of its two checkpoints on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from palaestra.evaluation import evaluate
from palaestra_baselines import vdn
from palaestra_baselines.common.curves import plot_panels, read_rows
from palaestra_baselines.common.runs import FigureArgs, train_all
from palaestra_baselines.common.value_learning import WEIGHTS, LearningArgs
from palaestra_baselines.team_figures import curve_by_evaluation, write_rows

BATTLES = {"3m": "palaestra/Skirmish-3m-v0", "2s3z": "palaestra/Skirmish-2s3z-v0"}
"""Id by name of the map."""
RED_LEARNS: dict[str, Any] = {
    "team": "red",
    "opponent": "builtin",
    "total_steps": 200_000,
    "evaluations": 8,
    "lanes": 64,
    "updates": 2,
    "replay_size": 50_000,
    "warmup_steps": 5_000,
    "matches": 256,
}
"""Arguments of the runs: the same for all maps and methods."""
METHODS: dict[str, Callable[..., LearningArgs]] = {"vdn": vdn.Args}
"""Arguments by name of the method, which is its module."""
TITLES = {"vdn": "VDN"}
WANTED = 0.9
TEST_MATCHES = 1024


def skirmish_learning(args: FigureArgs) -> None:
    """Share of matches that learnt teams win against the script, over decisions and at the end."""
    shared = {**RED_LEARNS, "trust_checkpoint": args.trust_checkpoint, "quiet": True}
    runs = {
        (name, method): [
            make(**shared, env_id=id, seed=seed, directory=args.runs / f"skirmish_{name}" / method)
            for seed in range(args.seeds)
        ]
        for name, id in BATTLES.items()
        for method, make in METHODS.items()
    }
    in_turn = [[(method, run, None) for run in group] for (_, method), group in runs.items()]
    train_all("skirmish_learning", [entry for group in zip(*in_turn, strict=True) for entry in group], args.workers)
    logs = {key: [read_rows(run.folder / "log.csv") for run in group] for key, group in runs.items()}
    curves = [
        {"map": name, "method": method, "seed": seed, **row}
        for (name, method), group in logs.items()
        for seed, log in enumerate(group)
        for row in log
    ]
    write_rows(args.assets / "figures" / "skirmish_learning.csv", curves)
    panels = [
        {
            "label": f"matches won against {RED_LEARNS['opponent']}",
            "x_label": f"decisions, {name}",
            "curves": {TITLES[m]: curve_by_evaluation(log, "win_rate") for (b, m), log in logs.items() if b == name},
            "lines": {f"{WANTED:.0%}": WANTED},
        }
        for name in BATTLES
    ]
    title = f"Skirmish, red learns, {args.seeds} seeds: IQM and 95 % bootstrap interval"
    plot_panels(args.assets / "figures" / "skirmish_learning.png", panels, title)
    results = [final_row(*key, run, log) for key in runs for run, log in zip(runs[key], logs[key], strict=True)]
    write_rows(args.assets / "figures" / "skirmish_learning_results.csv", results)
    print_table(results)


def final_row(name: str, method: str, run: LearningArgs, log: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Cost of a run, and share of new matches that its greedy team won."""
    table = evaluate(run.env_id, str(run.folder / WEIGHTS), run.opponent, matches=TEST_MATCHES, swap=False)
    low, high = table.win_interval
    return {
        "map": name,
        "method": method,
        "seed": run.seed,
        "decisions": int(log[-1]["steps"]),
        "cpu_s": log[-1]["cpu_s"],
        "won": table.wins / table.matches,
        "low": low,
        "high": high,
    }


def print_table(rows: Sequence[dict[str, Any]]) -> None:
    """Prints a line for each run."""
    print(f"{'map':6s}{'method':>8s}{'seed':>6s}{'decisions':>11s}{'processor s':>13s}{'won':>8s}  95 % interval")
    for row in rows:
        cost = f"{row['seed']:6d}{row['decisions']:11d}{row['cpu_s']:13.1f}"
        print(
            f"{row['map']:6s}{TITLES[row['method']]:>8s}{cost}{row['won']:8.3f}  {row['low']:.3f} to {row['high']:.3f}"
        )
