"""The figure of the inner loop of flight, PPO against the tuned PID: ``python benchmarks/learn.py tracking``."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np

from learning import drawing
from learning.figures import FigureArgs, bootstrap_interval, copy_file
from palaestra_baselines import ppo_tracking
from palaestra_baselines.common.many_runs import continued, finished, mark_finished
from palaestra_baselines.common.policy_file import arrays_to_layers, read_policy
from palaestra_baselines.common.run_folder import read_rows, write_csv
from palaestra_baselines.ppo_tracking import ERRORS, TEST_FLIGHTS, TEST_SEED, Tracking, evaluation_flights, track

INNER_LOOP = "ucav_inner_loop"
"""Name of the weights that the dogfight's ``inner_loop="ppo"`` flies with."""
LABELS = {
    "roll_rms_deg": ("roll", "RMS error (deg)"),
    "flight_path_rms_deg": ("flight path", "RMS error (deg)"),
    "speed_rms_mps": ("airspeed", "RMS error (m/s)"),
}
"""What is tracked, and its error with the unit, by column."""


def tracking(args: FigureArgs) -> None:
    """PPO's inner loop over decisions, with the tuned PID and the untrained policy as lines."""
    logs, tests, best = [], {}, []
    for seed in range(args.seeds):
        given = {"directory": args.runs / "ppo_tracking", "trust_checkpoint": args.trust_checkpoint}
        run = ppo_tracking.Args(seed=seed, workers=args.workers, **given)
        if not finished(run):
            report = ppo_tracking.train(continued(run))
            mark_finished(run, steps=report.steps, wall_s=report.wall_s, cpu_s=report.cpu_s)
        logs.append(read_rows(run.folder / "log.csv"))
        weights = run.folder / "best.safetensors"
        arrays, notes = read_policy(weights)
        tests[f"PPO, seed {seed}"] = evaluate(args.workers, ppo_tracking.player_of(arrays_to_layers(arrays)))
        best.append((notes["score"], weights))
    pid = tests["PID"] = evaluate(args.workers, None)
    install_weights(min(best)[1], args.assets)
    flights = ppo_tracking.Args().flights  # the curves use these flights, so the line does too
    reference = evaluate(args.workers, None, flights, ppo_tracking.SELECTION_SEED)
    write_table(args.figures / "tracking.csv", logs, tests, reference)
    draw_tracking(args.figures)
    print_table(tests, pid)


def draw_tracking(folder: Path) -> None:
    """Draws the settled errors over decisions; the tuned PID and the untrained policy are lines."""
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


def evaluate(
    workers: int,
    player: Callable[[np.ndarray], np.ndarray] | None,
    flights: int = TEST_FLIGHTS,
    seed: int = TEST_SEED,
) -> Tracking:
    """Flies the test flights, or those of another seed, with a policy; None is the PID."""
    sim = evaluation_flights(flights, workers, script=None if player else "pid")
    result = track(sim, seed, player)
    sim.close()
    return result


def install_weights(source: Path, assets: Path) -> None:
    """Copies the best weights to the assets, where the dogfight finds them."""
    copy_file(source, assets / "weights" / f"{INNER_LOOP}.safetensors")


def write_table(
    path: Path, logs: list[list[dict[str, float]]], tests: dict[str, Tracking], reference: Tracking
) -> None:
    """Writes the tests, the PID on the flights of the curves, and all evaluations of all seeds there."""
    columns = [f.name for f in dataclasses.fields(Tracking)]
    rows: list[list[object]] = [["flights", "player", "steps", *columns, "wall_s", "cpu_s"]]
    others = [*(("test", name, result) for name, result in tests.items()), ("selection", "PID", reference)]
    for flights, name, result in others:
        rows.append([flights, name, "", *(f"{value:.5g}" for value in vars(result).values()), "", ""])
    for seed, log in enumerate(logs):
        for row in log:
            figures = [f"{row[name]:.5g}" for name in columns]
            times = [f"{row['wall_s']:.0f}", f"{row['cpu_s']:.0f}"]
            rows.append(["selection", f"PPO, seed {seed}", int(row["steps"]), *figures, *times])
    write_csv(path, rows)


def print_table(tests: dict[str, Tracking], pid: Tracking) -> None:
    """Prints errors and their ratios to the PID's."""
    print(
        f"{'settled RMS, test flights':26s}"
        + "".join(f"{name:>28s}" for name in ERRORS)
        + f"{'ended':>8s}{'stick':>8s}"
    )
    for name, result in tests.items():
        cells = "".join(
            f"{getattr(result, error):18.3f} ({ratio:5.2f} x)"
            for error, ratio in zip(ERRORS, result.ratios(pid), strict=True)
        )
        print(f"{name:26s}{cells}{result.ended:8d}{result.action_change:8.3f}")
    learnt = np.array([result.ratios(pid) for name, result in tests.items() if name != "PID"])
    for number, error in enumerate(ERRORS):
        mean, low, high = bootstrap_interval(learnt[:, number])
        print(f"{error} over the PID's: IQM {mean:.2f}, 95 % interval {low:.2f} to {high:.2f}")
