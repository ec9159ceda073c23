"""All methods on all battles for the same processor time: ``python benchmarks/learn.py skirmish_methods``.

An arm is a mixer or MAPPO with one of two networks. Each run learns red against the script ``builtin`` for about
`MINUTES` of processor time: as many decisions as a trial of `TRIAL` decisions of the same arm and battle says, so that
schedules end where the time ends. So every arm is measured twice: at equal time by its last weights, and at equal
decisions by the evaluations of its curve, at the end of the slowest arm of the battle. All learn by the arguments of
their method; those with a total value have one loss, the lambda-returns of QMIX, the sum of VDN too.

The tables grow by each run, ``skirmish_methods_results.csv`` by a row and ``skirmish_methods.csv`` by its curve, and a
run that stands there is not made again: the command goes on where it was interrupted, on another machine too. Rows of
battles that are played otherwise by now are left out.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from learning import drawing, figures
from learning.figures import FigureArgs, Method
from learning.skirmish_figures import BATTLES, FACTORED, RED_LEARNS, UNSHAPED
from palaestra import registry
from palaestra.evaluation import evaluate
from palaestra.games.skirmish import maps
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, read_rows

MINUTES = 3.0
TRIAL = 24_000
"""Decisions of the trial by whose second half the length of the runs is found: the first one fills replays."""
TEST_MATCHES = 512
"""New matches against each script."""
GOLDEN = figures.CLONE / "tests" / "golden" / "hashes.json"
"""Hashes of play by id: a run counts as long as its battle is played as when it was made."""
ENTITY: dict[str, Any] = {"network": "entity", "hidden": (32, 64)}
ARMS: dict[str, Method] = {
    "vdn": Method("VDN", "qmix", {**FACTORED, "mixer": "sum"}),
    "qmix": Method("QMIX", "qmix", FACTORED),
    "unmas": Method("UNMAS", "unmas", FACTORED),
    "mappo": Method("MAPPO", "mappo"),
    "vdn, entity": Method("VDN, entity", "qmix", {**FACTORED, **ENTITY, "mixer": "sum"}),
    "qmix, entity": Method("QMIX, entity", "qmix", {**FACTORED, **ENTITY}),
    "unmas, flat": Method("UNMAS, flat", "unmas", {**FACTORED, "network": "flat", "hidden": (64, 64)}),
    "mappo, entity": Method("MAPPO, entity", "mappo", {**ENTITY, "critic_hidden": (32, 64)}),
}
"""Methods by the name of their arm; those of the table of maps first."""
MAP_ARMS = tuple(ARMS)[:4]
OFTEN = ("3m", "8m", "2s3z", "3s5z", "5m_vs_6m", "MMM", "3s5z_vs_3s6z", "MMM2", "corridor", "6h_vs_8z", "27m_vs_30m")
"""Maps of three seeds, with Waves; the others have one."""
FACTORIAL = (*UNSHAPED, "3s5z_vs_3s6z")
"""Battles on which all arms learn: mixers by networks."""
SEEDS = {**dict.fromkeys(maps.names(), 1), **dict.fromkeys((*OFTEN, *UNSHAPED), 3), "3s5z_vs_3s6z": 5}
LARGE: dict[str, dict[str, Any]] = {"25m": {"replay_size": 8_000}, "27m_vs_30m": {"replay_size": 8_000}}
"""Arguments of methods with a replay where an observation of a team is large."""


@dataclass(frozen=True)
class Cell:
    """A run: an arm on a battle."""

    battle: str
    arm: str
    seed: int

    @property
    def play(self) -> str:
        """Hash of how the battle is played, see `GOLDEN`."""
        return json.loads(GOLDEN.read_text(encoding="utf-8"))["cross-platform"][BATTLES[self.battle]["env_id"]][:8]

    def is_in(self, row: Mapping[str, Any]) -> bool:
        """Whether a row of the results is this run's, of a battle that is played as today."""
        own = (self.battle, self.arm, str(self.seed), self.play)
        return own == (row["battle"], row["arm"], str(row["seed"]), row["play"])


def cells() -> Iterator[Cell]:
    """All runs: first those on which the verdict about mixers and networks stands, and first seeds before others."""
    for is_factorial, arms in ((True, tuple(ARMS)), (False, MAP_ARMS)):
        for seed in range(max(SEEDS.values())):
            for battle in (name for name in SEEDS if (name in FACTORIAL) == is_factorial and seed < SEEDS[name]):
                yield from (Cell(battle, arm, seed) for arm in arms)


def run_of(cell: Cell, steps: int, directory: Path, **more: Any) -> RunArgs:
    """Arguments of a run of so many decisions."""
    method = ARMS[cell.arm]
    large = LARGE.get(cell.battle, {}) if method.module != "mappo" else {}
    given = {**RED_LEARNS, **method.arguments, **large, **BATTLES[cell.battle], **more}
    return method.make_args(**given, total_steps=steps, seed=cell.seed, directory=directory, quiet=True)


def skirmish_methods(args: FigureArgs) -> None:
    """Share of matches won by all arms on all battles, at equal processor time and at equal decisions."""
    table, curves = args.figures / "skirmish_methods_results.csv", args.figures / "skirmish_methods.csv"
    rows, points = (drawing.read_table(path) if path.exists() else [] for path in (table, curves))
    known = [row for cell in cells() for row in rows if cell.is_in(row)]
    todo = [cell for cell in cells() if not any(cell.is_in(row) for row in known)]
    points = [p for p in points if any(same_run(p, row) for row in known)]
    print(f"{len(known)} runs are there, {len(todo)} are to be made", flush=True)
    together = max(args.workers, 1)
    for some in (todo[first : first + together] for first in range(0, len(todo), together)):
        lengths = [length_of(cell, known, args) for cell in some]
        runs = [
            run_of(cell, length, args.runs / "skirmish_methods" / f"{cell.battle}_{cell.arm}".replace(", ", "_"))
            for cell, length in zip(some, lengths, strict=True)
        ]
        figures.train_all(
            "skirmish_methods", [(ARMS[c.arm].module, run, None) for c, run in zip(some, runs, strict=True)], args
        )
        for cell, run in zip(some, runs, strict=True):
            log = read_rows(run.folder / "log.csv")
            known.append(result_of(cell, run, log))
            names = {"battle": cell.battle, "arm": cell.arm, "seed": cell.seed}
            points += [{**names, "steps": p["steps"], "cpu_s": p["cpu_s"], "won": p["win_rate"]} for p in log]
            shutil.rmtree(run.folder)
            print(" ".join(f"{value}" for value in known[-1].values()), flush=True)
        figures.write_rows(table, known)
        figures.write_rows(curves, points)


def same_run(point: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether a point of a curve is of the run of a row."""
    return all(str(point[name]) == str(row[name]) for name in ("battle", "arm", "seed"))


def length_of(cell: Cell, known: Sequence[Mapping[str, Any]], args: FigureArgs) -> int:
    """Decisions of a run: those of another seed, or as many as fit into `MINUTES` by a trial; two digits."""
    for row in known:
        if (row["battle"], row["arm"], row["play"]) == (cell.battle, cell.arm, cell.play):
            return int(row["decisions_wanted"])
    run = run_of(cell, TRIAL, args.runs / "skirmish_methods" / "trial", evaluations=2, overwrite=True, matches=2)
    log = figures.method_module(ARMS[cell.arm].module).train(run).log
    shutil.rmtree(run.folder)
    first, last = log[-2:]
    rate = (last["steps"] - first["steps"]) / (last["cpu_s"] - first["cpu_s"])
    return max(int(float(f"{60.0 * MINUTES * rate:.2g}")), TRIAL)


def result_of(cell: Cell, run: RunArgs, log: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Cost of a run, and shares of new matches that its greedy team won against what it learnt with and against others.

    The scripts that are held out of the learners' are in columns of their own; none of these arms learns with one.
    """
    arguments = BATTLES[cell.battle]
    game, _ = registry.make_game(arguments["env_id"], **keywords(arguments.get("options", ())))
    won = {
        opponent: evaluate(
            arguments["env_id"],
            str(run.folder / WEIGHTS),
            opponent,
            matches=TEST_MATCHES,
            swap=False,
            num_envs=256,
            **keywords(arguments.get("options", ())),
        )
        for opponent in (RED_LEARNS["opponent"], *game.held_out)
    }
    low, high = won[RED_LEARNS["opponent"]].win_interval
    return {
        "battle": cell.battle,
        "arm": cell.arm,
        "seed": cell.seed,
        "play": cell.play,
        "decisions_wanted": run.total_steps,
        "decisions": int(log[-1]["steps"]),
        "cpu_s": round(log[-1]["cpu_s"], 1),
        **{f"won_{opponent}": round(table.wins / table.matches, 4) for opponent, table in won.items()},
        "low": round(low, 4),
        "high": round(high, 4),
    }
