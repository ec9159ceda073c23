"""Figures of methods that train a tiny language model: ``python benchmarks/learn.py text``.

Every run starts from bundled base weights (`palaestra_baselines.common.lm.base`) and plays the same number of matches
an iteration. Exact match is that of 512 questions that no training asks, sampled, after every iteration; at temperature
0.5 and greedy before the first and after the last one. Runs of one seed learn from the same questions, so methods are
compared seed by seed. ``entropy alone`` is the control: the entropy of the policy is minimised, without any reward.
"""

from __future__ import annotations

import concurrent.futures
import importlib
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learning import drawing
from learning.figures import FigureArgs, bootstrap_interval, verdicts, write_rows
from palaestra.cli.progress_bar import Progress
from palaestra_baselines import grpo
from palaestra_baselines.common.lm.base import RECIPES, load_base
from palaestra_baselines.common.lm.examination import examine
from palaestra_baselines.common.lm.privileged import FORMS, prefixes
from palaestra_baselines.common.lm.rollouts import (
    EVALUATION_SEED,
    TEMPERATURES,
    Rollout,
    make_batch,
    measure_all,
    measure_exact_match,
    play,
)
from palaestra_baselines.common.run_folder import read_rows

SEEDS = 8
"""Runs of each method, where the command asks for as many or more."""
QUESTIONS = 512
WANTED = 0.65
"""Exact match whose iterations are counted."""
FEW = (0, 1, 2, 3, 5, 7, 10, 15, 20, 25, 30)


@dataclass(frozen=True)
class Place:
    """Base weights, and how methods learn from them.

    Attributes:
        base: The weights.
        groups: Questions of an iteration.
        iterations: Of a run.
        learning_rate: Of all methods there. For `early` it is the one of 6e-4 and 1.5e-3 with which GRPO got further
            with one seed; elsewhere it was not chosen.
        turns: Turns of a match, about, for schedules.
        measured: Iterations after which exact match is measured; all if there are none.
    """

    base: str
    groups: int
    iterations: int
    learning_rate: float = 6e-4
    turns: float = 4.0
    measured: tuple[int, ...] = ()


@dataclass(frozen=True)
class Arm:
    """A method as it is compared.

    Attributes:
        module: Its module in `palaestra_baselines`; empty for the control.
        arguments: What it is given.
        places: Where it learns.
    """

    module: str
    places: tuple[str, ...]
    arguments: Mapping[str, Any] = field(default_factory=dict)


PLACES = {
    "shortcut": Place("shortcut", 16, 30, turns=3.0, measured=FEW),
    "early": Place("early", 8, 20, learning_rate=1.5e-3, measured=FEW),
    "noisy": Place("noisy", 8, 20),
    "examiner": Place("noisy", 8, 36, measured=(*FEW, 36)),
}
GRPO, CONTROL, UNMASKED = "GRPO", "entropy alone", "GRPO, passages in the loss"
PATH, DOT = "pi-Play, path", "pi-Play, dot"
EXACT, MODEL, WRONG = "CriticSearch, exact labels", "CriticSearch, model", "CriticSearch, 20 % wrong"
TOLD = ("pi-Play, partial", "pi-Play, answer", "pi-Play, none")
ASKED, ASKING = "environment's questions", "examiner's questions"
EVERYWHERE = ("shortcut", "early", "noisy")
ARMS = {
    GRPO: Arm("grpo", EVERYWHERE),
    CONTROL: Arm("", EVERYWHERE),
    EXACT: Arm("critic_search", EVERYWHERE, {"critic": "exact"}),
    PATH: Arm("pi_play", EVERYWHERE),
    UNMASKED: Arm("grpo", ("shortcut",), {"mask_retrieved": "no"}),
    MODEL: Arm("critic_search", ("noisy",), {"critic": "model"}),
    WRONG: Arm("critic_search", ("noisy",), {"critic": "noisy:0.2"}),
    DOT: Arm("pi_play", ("early", "noisy"), {"privileged": "dot"}),
    **{name: Arm("pi_play", ("early",), {"privileged": name.removeprefix("pi-Play, ")}) for name in TOLD},
    ASKED: Arm("pi_play", ("examiner",)),
    ASKING: Arm("pi_play", ("examiner",), {"questions_by": "examiner", "examiner_iterations": 50}),
}


PICTURED = {
    "text_methods": (EVERYWHERE, (GRPO, CONTROL, EXACT, PATH, UNMASKED)),
    "text_critics": (("noisy",), (GRPO, EXACT, MODEL, WRONG)),
    "text_privileged": (("early",), (GRPO, PATH, *TOLD, DOT)),
}
"""Bases and methods of each picture."""
ASKED_ABOUT = ("accepted", "fair", "hops")
EXAMINED = 8
"""Times that an examiner asks in every group when it is measured."""
Curves = Mapping[tuple[str, str], Sequence[Sequence[Mapping[str, float]]]]
"""Curves by place and method, then by seed."""


class EntropyRun(grpo.Run):
    """The control."""

    def learn(self, rollout: Rollout, advantages: torch.Tensor) -> None:
        """Minimises the entropy at the tokens that were sampled."""
        self.args.entropy = -1.0
        grpo.update(self.model, None, self.optimizer, rollout, torch.zeros_like(advantages), self.args)


# -- runs --------------------------------------------------------------------------------------------------------------


def start(place: str, name: str, seed: int) -> grpo.Run:
    """A training at its start."""
    arm, setting = ARMS[name], PLACES[place]
    module: Any = importlib.import_module(f"palaestra_baselines.{arm.module or 'grpo'}")
    matches = setting.groups * grpo.Args.group
    args = module.Args(
        seed=seed,
        env_id=RECIPES[setting.base].env_id,
        base=setting.base,
        groups=setting.groups,
        learning_rate=setting.learning_rate,
        total_steps=int(setting.iterations * matches * setting.turns),
        questions=1,
        **arm.arguments,
    )
    args.check()
    return (module.Run if arm.module else EntropyRun)(args)


def train(log: Path, place: str, name: str, seed: int) -> None:
    """Trains with one seed and writes the curve when it is complete."""
    torch.set_num_threads(1)
    run, rows, setting = start(place, name, seed), list[dict[str, Any]](), PLACES[place]
    questions = make_batch(RECIPES[setting.base].env_id, QUESTIONS)
    for iteration in range(setting.iterations + 1):
        if iteration:
            run.iterate()
        if setting.measured and iteration not in setting.measured:
            continue
        row = {"iteration": iteration, "cpu_s": run.cpu_s, **dict.fromkeys((*TEMPERATURES, *ASKED_ABOUT), np.nan)}
        if iteration in (0, setting.iterations):
            row |= measure_all(run.model, *questions)
        else:
            row["sampled"] = measure_exact_match(run.model, *questions, temperature=1.0)
        if name == ASKING:
            row |= measure_examiner(run)
        rows.append({**row, "critic_accuracy": run.seen.get("critic_accuracy", np.nan) if iteration else np.nan})
    log.parent.mkdir(parents=True, exist_ok=True)
    write_rows(log, rows)


def measure_examiner(run: Any) -> dict[str, float]:
    """Shares of the questions of an examiner that were accepted and that some students answered, and their facts."""
    group, generator, sums = run.args.group, torch.Generator().manual_seed(0), np.zeros(3)
    for number in range(EXAMINED):
        seeds = np.arange(run.args.groups, dtype=np.uint64) + np.uint64(EVALUATION_SEED + number * run.args.groups)
        played = examine(run.examiner, run.model, run.batch, seeds, generator)
        accepted, fair = played.examiner.exact_match, (played.right > 0) & (played.right < group)
        sums += [float(accepted.sum()), float(fair.sum()), float(played.hops.sum())]
    count = EXAMINED * run.args.groups
    shares = (sums[0] / count, sums[1] / count, sums[2] / max(sums[0], 1.0))
    return dict(zip(ASKED_ABOUT, map(float, shares), strict=True))


def log_of(runs: Path, place: str, name: str, seed: int) -> Path:
    """File of a curve."""
    return runs / "text" / place / f"{name.replace(' ', '_').replace(',', '')}_{seed}.csv"


def train_missing(args: FigureArgs) -> Curves:
    """Curves of all runs by place and method, then by seed; trains those that are missing, the first seeds first."""
    jobs = [(p, name, seed) for seed in range(SEEDS) for name, arm in ARMS.items() for p in arm.places]
    return train_curves(args, "text", jobs, train, log_of)


def train_curves(
    args: FigureArgs,
    title: str,
    jobs: Sequence[tuple[str, str, int]],
    train: Callable[[Path, str, str, int], None],
    log_of: Callable[[Path, str, str, int], Path],
) -> Curves:
    """Curves of runs by place and method, then by seed; trains those that are missing, in their order.

    Args:
        args: Of the figure.
        title: Of the progress bar.
        jobs: Place, method and seed of each run.
        train: Trains one and writes its curve.
        log_of: File of a curve, in the folder of runs.
    """
    missing = [job for job in jobs if not log_of(args.runs, *job).exists()]
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(max(args.workers, 1), context) as pool,
        Progress("runs", len(missing), title=title, stream="stdout") as progress,
    ):
        waiting = [pool.submit(train, log_of(args.runs, *job), *job) for job in missing]
        for number, done in enumerate(concurrent.futures.as_completed(waiting)):
            done.result()
            progress.update(number + 1)
    curves = dict[tuple[str, str], list[list[dict[str, float]]]]()
    for place, name, seed in jobs:
        curves.setdefault((place, name), []).append(read_rows(log_of(args.runs, place, name, seed)))
    return curves


# -- figures -----------------------------------------------------------------------------------------------------------


def text_bases(args: FigureArgs) -> None:
    """Exact match of the bases with each prefix."""
    rows = list[dict[str, Any]]()
    seeds = np.arange(EVALUATION_SEED, EVALUATION_SEED + QUESTIONS, dtype=np.uint64)
    for base in EVERYWHERE:
        model, (sim, tokens) = load_base(base), make_batch(RECIPES[base].env_id, QUESTIONS)
        for number, form in enumerate(FORMS):
            prefix = partial(prefixes, tokens=tokens, forms=np.full(QUESTIONS, number))
            played = {
                name: play(model, sim, tokens, seeds, torch.Generator().manual_seed(0), value, prefix)
                for name, value in TEMPERATURES.items()
            }
            figures = {name: float(rollout.exact_match.mean()) for name, rollout in played.items()}
            rows.append({"base": base, "prefix": form, **figures})
            print(rows[-1], flush=True)
    write_rows(args.figures / "text_bases.csv", rows)


def text_learning(args: FigureArgs) -> None:
    """Exact match of all methods over iterations, and what is claimed of them."""
    curves = train_missing(args)
    tables = {**PICTURED, "text_examiner": (("examiner",), (ASKED, ASKING))}
    for table, (places, names) in tables.items():
        rows = [
            {"base": place, "method": name, "seed": seed, **{k: "" if v != v else v for k, v in row.items()}}
            for place in places
            for name in names
            for seed, run in enumerate(curves.get((place, name), ()))
            for row in run
        ]
        write_rows(args.figures / f"{table}.csv", rows)
    for name in PICTURED:
        draw_learning(name, args.figures)
    results = claims(curves)
    write_rows(args.figures / "text_results.csv", results)
    for row in results:
        print(row)


def draw_learning(name: str, folder: Path) -> None:
    """Draws sampled exact match over iterations, a panel a base; `name` is one of `PICTURED`."""
    table, (places, _) = folder / f"{name}.csv", PICTURED[name]
    rows = drawing.read_table(table)
    panels = list[drawing.Panel]()
    for place in places:
        runs = drawing.group_runs([row for row in rows if row["base"] == place], "method")
        shown = {title: drawing.curve_over_seeds(made, "sampled", "iteration") for title, made in runs.items()}
        title = f"{RECIPES[place].env_id.removeprefix('palaestra/').removesuffix('-v0')}, base {place}"
        panels.append(drawing.Panel(title, "exact match, sampled", shown, x_label="iterations", is_share=True))
    drawing.draw(table, panels)


# -- claims ------------------------------------------------------------------------------------------------------------


def iterations_to(run: Sequence[Mapping[str, float]], wanted: float = WANTED) -> float:
    """Iterations until exact match is reached for the first time; one more than all if it never is."""
    return next((row["iteration"] for row in run if row["sampled"] >= wanted), run[-1]["iteration"] + 1)


def by_iteration(run: Sequence[Mapping[str, float]]) -> dict[int, Mapping[str, float]]:
    """Rows of a curve by iteration."""
    return {int(row["iteration"]): row for row in run}


def claim(what: str, values: np.ndarray, least: float | None = None, above: float | None = None) -> dict[str, Any]:
    """A row of the table of claims.

    Args:
        what: What is measured.
        values: Of each seed.
        least: What the interquartile mean has to reach, if anything is asked.
        above: What the whole 95 % interval has to lie above, likewise.
    """
    mean, low, high = bootstrap_interval(values)
    asked = [(f"at least {least:g}", mean >= least)] if least is not None else []
    asked += [(f"interval above {above:g}", low > above)] if above is not None else []
    return {"claim": what, "mean": mean, "low": low, "high": high, "verdict": verdicts(asked).strip()}


def claims(curves: Curves) -> list[dict[str, Any]]:
    """What is asked of the methods, or shown: interquartile mean and 95 % interval over seeds, paired by seed."""

    def column(place: str, name: str, what: str = "sampled", at: int = -1) -> np.ndarray:
        """A column of all seeds after an iteration, at the end by default."""
        runs = curves[place, name]
        return np.array([(run[-1] if at < 0 else by_iteration(run)[at])[what] for run in runs])

    def sooner(name: str) -> np.ndarray:
        needed = (np.array([iterations_to(run) for run in curves["noisy", arm]]) for arm in (GRPO, name))
        return np.divide(*needed)

    learnt = (column("shortcut", GRPO) >= 0.8) & (column("shortcut", GRPO, "greedy") >= 0.9)
    accuracy = np.array([np.mean([row["critic_accuracy"] for row in run[1:]]) for run in curves["noisy", MODEL]])
    reached = f"iterations to {WANTED:g}, {GRPO} over"
    rows = [
        claim("GRPO, shortcut: seeds of 8 with sampled >= 0.8 and greedy >= 0.9", np.full(1, 8 * learnt.mean()), 7),
        *(claim(f"GRPO, shortcut, final, {name}", column("shortcut", GRPO, name)) for name in TEMPERATURES),
        claim("GRPO, shortcut, CPU seconds", column("shortcut", GRPO, "cpu_s")),
        claim(f"{UNMASKED} - masked, shortcut, final", column("shortcut", UNMASKED) - column("shortcut", GRPO)),
        claim(f"{reached} {EXACT}, noisy", sooner(EXACT), 1.0, 1.0),
        *(claim(f"{reached} {name}, noisy", sooner(name)) for name in (MODEL, WRONG, DOT)),
        claim(f"{reached} {PATH}, noisy", sooner(PATH), 1.5, 1.0),
        claim(f"{MODEL}: share of right labels in learning, noisy", accuracy, 0.9),
        *(
            claim(f"{name} - {EXACT}, noisy, final", column("noisy", name) - column("noisy", EXACT))
            for name in (MODEL, WRONG)
        ),
        *(
            claim(f"{EXACT} - {GRPO}, {place}, final", column(place, EXACT) - column(place, GRPO))
            for place in ("shortcut", "early")
        ),
    ]
    for name in (DOT, *TOLD):
        ahead = column("early", PATH, at=5) - column("early", name, at=5)
        asked = (0.05, 0.0) if name == DOT else ()
        rows.append(claim(f"{PATH} - {name}, early, iteration 5", ahead, *asked))
    for place in ("early", "shortcut"):
        for name in (GRPO, EXACT, PATH):
            for temperature in TEMPERATURES:
                ahead = column(place, name, temperature) - column(place, CONTROL, temperature)
                asked = (None, 0.0) if temperature == "sampled" else ()
                rows.append(claim(f"{name} - {CONTROL}, {place}, final, {temperature}", ahead, *asked))
    asked = {"start": 0, "after the examiner's first round": 1, "end": -1}
    fair = {when: column("examiner", ASKING, "fair", at) for when, at in asked.items()}
    rows += [
        claim(f"{ASKING}, {what}, {when}", column("examiner", ASKING, what, at))
        for what in ASKED_ABOUT
        for when, at in asked.items()
    ]
    for when in list(asked)[1:]:
        rises = np.full(1, np.sum(fair[when] > fair["start"]), np.float64)
        rows.append(claim(f"{ASKING}: seeds in which more have 0 < k < n than at the start, {when}", rises, 6))
    ahead = column("examiner", ASKING) - column("examiner", ASKED)
    rows.append(claim(f"{ASKING} - {ASKED}, SearchQA-3Hop, final", ahead, -0.03))
    return rows
