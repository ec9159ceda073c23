"""The demo: a learnt pilot flies, a rule hunts, and everything that it leaves behind can be looked at.

A scripted hunter decides twice a second where to point the nose; the network that `palaestra_baselines.ppo_tracking`
trained moves stick and throttle of both F-16s. It hunts a target that turns and one that weaves, and leaves a table of
kills and, for each target, one match as a flight recording for Tacview, a film and a page of plots::

    palaestra demo
    python -m palaestra_baselines.demo --matches 64 --out somewhere
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

import palaestra
from palaestra.core.evaluation import MatchTable
from palaestra.core.game import Game
from palaestra.core.lanes import RUNNING
from palaestra.core.ratings import wilson_interval
from palaestra.evaluation import evaluate
from palaestra.ucav.acmi import write_acmi
from palaestra.ucav.flightplot import film, plot_flight, save_gif
from palaestra_baselines.common.progress import Progress

ENV_ID = "palaestra/UcavPursuit-v0"
HUNTER, TARGETS = "expert", ("level_turn", "weave")
FILM_FPS = 10.0
"""Pictures a second; a match has two decisions a second, so it runs five times as fast as it was flown."""
LONGEST_FILM = 240
"""Pictures; of longer matches every second or third decision is shown."""


@dataclass
class Args:
    """Arguments.

    Attributes:
        out: Folder for the recordings; made if it is not there.
        matches: Matches against each target.
        seed: Number of the run; other numbers give other matches.
        inner_loop: Who moves the stick: ``ppo`` (the bundled network), ``pid``, or the npz file of a trained network.
        cone_half_angle_deg: Half-angle of the gun's cone.
        workers: Processes that fly; 0 is this one, which is faster up to about a hundred matches.
        quiet: Print the result only.
    """

    out: Path = Path("palaestra-demo")
    matches: int = 16
    seed: int = 0
    inner_loop: str = "ppo"
    cone_half_angle_deg: float = 1.0
    workers: int = 0
    quiet: bool = False


def hunt(args: Args, target: str) -> MatchTable:
    """Plays all matches against one target."""
    with Progress(f"hunting {target}", args.matches, quiet=args.quiet, unit="matches") as progress:
        return evaluate(
            ENV_ID,
            HUNTER,
            target,
            matches=args.matches,
            seed=args.seed,
            swap=False,
            num_envs=args.matches,
            workers=args.workers,
            progress=lambda done, _: progress.update(done),
            **rules(args),
        )


def rules(args: Args) -> dict[str, Any]:
    """Keywords of the environment."""
    return {
        "commands": "macro",
        "inner_loop": args.inner_loop,
        "cone_half_angle_deg": args.cone_half_angle_deg,
    }


def kills(table: MatchTable) -> np.ndarray:
    """Whether the hunter shot the target down, for each match."""
    return (table.results["outcome"] == 1) & (table.results["end_reason"] == table.game.end_reasons.index("kill") + 2)


def best_seed(table: MatchTable) -> int:
    """Seed of the kill of median length, or of the longest match if there was none."""
    shot = table.results[kills(table)]
    if len(shot) == 0:
        return int(table.results["seed"][np.argmax(table.results["steps"])])
    return int(shot["seed"][np.argsort(shot["steps"], kind="stable")[(len(shot) - 1) // 2]])


def fly_again(args: Args, target: str, seed: int) -> tuple[np.ndarray, Game]:
    """Plays one match once more and returns all its records; the same seed gives the same match."""
    opponents = {"red": HUNTER, "blue": target}
    sim = palaestra.make_batch(ENV_ID, 1, autoreset_mode="off", opponents=opponents, **rules(args))
    sim.reset(seed=[seed])
    records = [sim.states[0].copy()]
    while sim.states["pending"][0] == RUNNING:
        sim.step()
        records.append(sim.states[0].copy())
    sim.close()
    return np.array(records), sim.game


def record(args: Args, target: str, seed: int) -> list[Path]:
    """Writes the flight recording, the page of plots and the film of one match."""
    records, game = fly_again(args, target, seed)
    stem = args.out / target
    acmi, page, picture = stem.with_suffix(".acmi"), stem.with_suffix(".png"), stem.with_suffix(".gif")
    title = f"{HUNTER} hunts {target}"
    write_acmi(acmi, game, records, Title=title)
    plot_flight(game, records, title).savefig(page)
    every = -(-len(records) // LONGEST_FILM)
    save_gif(film(game, records, every), picture, FILM_FPS)
    return [acmi, page, picture]


def result_lines(args: Args, tables: dict[str, MatchTable]) -> list[str]:
    """The result as a table of text."""
    lines = [
        f"{HUNTER} with the {args.inner_loop} inner loop, gun cone of {args.cone_half_angle_deg:g} deg half-angle",
        f"{'target':12s}{'matches':>8s}{'kills':>7s}{'share':>7s}  {'95 % interval':15s}{'lost':>5s}{'kill at':>13s}",
    ]
    for target, table in tables.items():
        shot = kills(table)
        low, high = wilson_interval(int(shot.sum()), table.matches)
        seconds = np.median(table.results["steps"][shot]) / table.game.render_fps if shot.any() else float("nan")
        lines.append(
            f"{target:12s}{table.matches:8d}{shot.sum():7d}{shot.mean():7.2f}  {low:.2f} to {high:.2f}   "
            f"{table.losses:5d}{seconds:11.0f} s"
        )
    return lines


def main(argv: Sequence[str] | None = None) -> None:
    """Flies, prints the table and writes the recordings."""
    args = tyro.cli(Args, args=argv, prog="palaestra demo")
    if args.matches < 1:
        raise SystemExit("--matches must be at least 1")
    started_s = time.perf_counter()
    args.out.mkdir(parents=True, exist_ok=True)
    tables = {target: hunt(args, target) for target in TARGETS}
    print("\n".join(result_lines(args, tables)))
    with Progress("recording", len(TARGETS), quiet=args.quiet, unit="matches") as progress:
        files = []
        for number, (target, table) in enumerate(tables.items(), 1):
            files += record(args, target, best_seed(table))
            progress.update(number)
    print(f"Recordings (.acmi opens in Tacview), {time.perf_counter() - started_s:.0f} s:")
    for file in files:
        print(f"  {file}  {file.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
