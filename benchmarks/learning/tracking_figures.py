"""The figure of the inner loop of flight, PPO against the tuned PID: ``python benchmarks/learn.py tracking``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from learning import drawing
from learning.figures import FigureArgs, bootstrap_interval, copy_file
from learning.study import Figure
from palaestra_baselines import ppo_tracking
from palaestra_baselines.common.many_runs import continued, finished, mark_finished
from palaestra_baselines.common.policy_file import arrays_to_layers, read_policy
from palaestra_baselines.common.run_folder import read_rows, write_csv
from palaestra_baselines.pid import REFERENCE, Errors
from palaestra_baselines.ppo_tracking import SELECTION_SEED, TARGETS, hunt, measure_conditions

INNER_LOOP = "ucav_inner_loop"
"""Name of the weights that the dogfight's ``inner_loop="ppo"`` flies with."""
LEAST_KILLS, MOST_LOST = 60, 1
"""Of 64 hunts by macros over an inner loop that may ship."""
LABELS = {
    "roll_settled_deg": ("roll, settled", "RMS error (deg)"),
    "flight_path_settled_deg": ("flight path, settled", "RMS error (deg)"),
    "roll_deg": ("roll, whole window", "RMS error (deg)"),
    "flight_path_deg": ("flight path, whole window", "RMS error (deg)"),
}
"""What is drawn, and its error with the unit, by column."""
Tests = dict[str, dict[str, Errors]]
"""Errors by player and condition."""


def tracking(args: FigureArgs) -> None:
    """PPO's inner loop over decisions, with the tuned PID and the untrained policy as lines."""
    logs, tests, ranked = [], {}, []
    for seed in range(args.seeds):
        given = {"directory": args.runs / "ppo_tracking", "trust_checkpoint": args.trust_checkpoint}
        run = ppo_tracking.Args(seed=seed, workers=args.workers, **given)
        if not finished(run):
            report = ppo_tracking.train(continued(run))
            mark_finished(run, steps=report.steps, wall_s=report.wall_s, cpu_s=report.cpu_s)
        logs.append(read_rows(run.folder / "log.csv"))
        weights = run.folder / "best.safetensors"
        arrays, notes = read_policy(weights)
        player = ppo_tracking.player_of(arrays_to_layers(arrays))
        tests[f"PPO, seed {seed}"] = measure_conditions(player, workers=args.workers)
        hunts = [hunt(str(weights), target, SELECTION_SEED) for target in TARGETS]
        may_ship = all(kills >= LEAST_KILLS and lost <= MOST_LOST for kills, lost in hunts)
        ranked.append((not may_ship, notes["score"], weights))
    tests["PID"] = measure_conditions(None, workers=args.workers)
    copy_file(min(ranked)[-1], args.assets / "weights" / f"{INNER_LOOP}.safetensors")
    flights = ppo_tracking.Args().flights  # the curves use these flights, so the line does too
    reference = measure_conditions(None, flights, SELECTION_SEED, args.workers, ("default",))["default"]
    write_table(args.figures / "tracking.csv", logs, tests, reference)
    draw_tracking(args.figures)
    print_table(tests)
    for name, inner_loop in (("PID", "pid"), *((f"PPO, seed {k}", str(row[-1])) for k, row in enumerate(ranked))):
        for target in TARGETS:
            kills, lost = hunt(inner_loop, target)
            print(f"{name:14s}macros of lag_pursuit against {target}: {kills} kills, {lost} own losses of 64")


def draw_tracking(folder: Path) -> None:
    """Draws the errors over decisions; the tuned PID and the untrained policy are lines."""
    table = folder / "tracking.csv"
    selection = [{**row, "seed": row["player"]} for row in drawing.read_table(table) if row["flights"] == "selection"]
    runs = drawing.group_runs(selection, "flights", "player")
    ((reference,),) = runs.pop(("selection", "PID"))
    logs = [log for (log,) in runs.values()]
    panels = [
        drawing.Panel(
            f"UcavTrack, {what}",
            label,
            {"PPO": drawing.curve_over_seeds([log[1:] for log in logs], name)},
            {
                "untrained": float(np.mean([float(log[0][name]) for log in logs])),
                "tuned PID": float(reference[name]),
            },
            is_log=True,
        )
        for name, (what, label) in LABELS.items()
    ]
    drawing.draw(table, panels)


def write_table(path: Path, logs: list[list[dict[str, float]]], tests: Tests, reference: Errors) -> None:
    """Writes the tests, the PID on the flights of the curves, and all evaluations of all seeds there."""
    columns = [f.name for f in dataclasses.fields(Errors)]
    rows: list[list[object]] = [["flights", "player", "steps", *columns, "wall_s", "cpu_s"]]
    others = [(condition, name, errors) for name, own in tests.items() for condition, errors in own.items()]
    for flights, name, errors in (*others, ("selection", "PID", reference)):
        rows.append([flights, name, "", *(f"{value:.5g}" for value in vars(errors).values()), "", ""])
    for seed, log in enumerate(logs):
        for row in log:
            figures = [f"{row[name]:.5g}" for name in columns]
            times = [f"{row['wall_s']:.0f}", f"{row['cpu_s']:.0f}"]
            rows.append(["selection", f"PPO, seed {seed}", int(row["steps"]), *figures, *times])
    write_csv(path, rows)


def print_table(tests: Tests) -> None:
    """Prints errors and their ratios to the PID's."""
    for condition, pid in tests["PID"].items():
        print(f"{condition + ' commands':20s}" + "".join(f"{name:>26s}" for name in REFERENCE) + "   ended   stick")
        for name, own in tests.items():
            errors, ratios = own[condition], own[condition].ratios(pid)
            cells = "".join(f"{getattr(errors, error):16.3f} ({ratios[error]:5.2f} x)" for error in REFERENCE)
            print(f"{name:20s}{cells}{errors.ended:8d}{ratios['action_change']:6.2f} x")
        for error in REFERENCE:
            learnt = [own[condition].ratios(pid)[error] for name, own in tests.items() if name != "PID"]
            mean, low, high = bootstrap_interval(np.array(learnt))
            print(f"{error} over the PID's: IQM {mean:.2f}, 95 % interval {low:.2f} to {high:.2f}")


FIGURES = (Figure("tracking", tracking, draw_tracking),)
