"""Figures of methods that train a tiny language model: ``python benchmarks/learn.py text``.

``text_reading`` trains GRPO on SearchQA-Reading, from a base that it makes first, and shows it beside SearchQA-2Hop.

Every run starts from bundled base weights (`palaestra_baselines.common.lm.base`) and plays the same number of matches
an iteration. Exact match is that of 512 questions that no training asks, sampled, after every iteration; at temperature
0.5 and greedy before the first and after the last one. Runs of one seed learn from the same questions, so methods are
compared seed by seed, and GRPO is what all are compared with. Two controls: ``entropy alone`` minimises the entropy of
the policy without any reward, and ``GRPO, turn rewards`` knows what the exact labels of CriticSearch say.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from learning import drawing
from learning.figures import FigureArgs, Method, bootstrap_interval, method_module, verdicts, write_rows
from learning.study import Figure
from palaestra.cli.progress_bar import Progress
from palaestra_baselines import grpo
from palaestra_baselines.common.lm.base import RECIPES, Recipe, train_base
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
from palaestra_baselines.common.lm.tiny_model import load_base
from palaestra_baselines.common.policy_file import save_policy
from palaestra_baselines.common.run_folder import read_rows

SEEDS = 8
"""Runs of each method, where the command asks for as many or more."""
QUESTIONS = 512
WANTED = 0.65
"""Exact match whose iterations are counted."""
FEW = (0, 1, 2, 3, 5, 7, 10, 15, 20, 25, 30)


@dataclass(frozen=True)
class TextPlace:
    """Base weights, and how methods learn from them.

    Attributes:
        title: Of pictures.
        env_id: Where.
        base: The weights.
        groups: Questions of an iteration.
        iterations: Of a run.
        learning_rate: Of all methods there. For `early` it is the one of 6e-4 and 1.5e-3 with which GRPO got further
            with one seed; elsewhere it was not chosen, see `docs/results/text.md`.
        turns: Turns of a match, about, for schedules.
        measured: Iterations after which exact match is measured; all if there are none.
        questions: Of a measurement.
    """

    title: str
    env_id: str
    base: str
    groups: int
    iterations: int
    learning_rate: float = 6e-4
    turns: float = 4.0
    measured: tuple[int, ...] = ()
    questions: int = QUESTIONS


BASES = {**RECIPES, "reading": Recipe("palaestra/SearchQA-Reading-v0", told=0.0, steps=700)}
"""Recipes of the bases; that of `text_reading` is not bundled."""


def place_of(base: str, groups: int, iterations: int, **more: Any) -> TextPlace:
    """The place of a base."""
    env_id = BASES[base].env_id
    return TextPlace(f"{game_title(env_id)}, base {base}", env_id, base, groups, iterations, **more)


def game_title(env_id: str) -> str:
    """The name of an environment without its version."""
    return env_id.removeprefix("palaestra/").rpartition("-v")[0]


PLACES = {
    "shortcut": place_of("shortcut", 16, 30, turns=3.0, measured=FEW),
    "early": place_of("early", 8, 20, learning_rate=1.5e-3, measured=FEW),
    "noisy": place_of("noisy", 8, 20),
    "reading": place_of("reading", 16, 30, turns=3.0, measured=FEW, questions=256),
}
READING_SEEDS = 4
GRPO, CONTROL, UNMASKED, TURNS = "GRPO", "entropy alone", "GRPO, passages in the loss", "GRPO, turn rewards"
PATH, DOT = "pi-Play, path", "pi-Play, dot"
EXACT, MODEL, WRONG = "CriticSearch, exact labels", "CriticSearch, model", "CriticSearch, 20 % wrong"
TOLD = ("pi-Play, partial", "pi-Play, answer", "pi-Play, none")
EVERYWHERE = ("shortcut", "early", "noisy")
ARMS: dict[str, tuple[Method, tuple[str, ...]]] = {
    GRPO: (Method(GRPO, "grpo"), EVERYWHERE),
    CONTROL: (Method(CONTROL, ""), EVERYWHERE),
    TURNS: (Method(TURNS, "grpo", {"reward": "return", "options": ("turn_reward=0.25",)}), EVERYWHERE),
    EXACT: (Method(EXACT, "critic_search", {"critic": "exact"}), EVERYWHERE),
    PATH: (Method(PATH, "pi_play"), EVERYWHERE),
    UNMASKED: (Method(UNMASKED, "grpo", {"mask_retrieved": "no"}), ("shortcut",)),
    MODEL: (Method(MODEL, "critic_search", {"critic": "model"}), ("noisy",)),
    WRONG: (Method(WRONG, "critic_search", {"critic": "noisy:0.2"}), ("noisy",)),
    DOT: (Method(DOT, "pi_play", {"privileged": "dot"}), ("early", "noisy")),
    **{n: (Method(n, "pi_play", {"privileged": n.removeprefix("pi-Play, ")}), ("early",)) for n in TOLD},
}
"""Methods and where they learn; the control has no module."""


PICTURED = {
    "text_methods": (EVERYWHERE, (GRPO, CONTROL, EXACT, PATH, UNMASKED)),
    "text_critics": (EVERYWHERE, (GRPO, TURNS, EXACT, MODEL, WRONG)),
    "text_privileged": (("early", "noisy"), (GRPO, PATH, *TOLD, DOT)),
}
"""Bases and methods of each picture."""
Curves = Mapping[tuple[str, str], Sequence[Sequence[Mapping[str, float]]]]
"""Curves by place and method, then by seed."""


class EntropyRun(grpo.Run):
    """The control."""

    def learn(self, rollout: Rollout, advantages: torch.Tensor) -> None:
        """Minimises the entropy at the tokens that were sampled."""
        self.args.entropy = -1.0
        grpo.update(self.model, None, self.optimizer, rollout, torch.zeros_like(advantages), self.args)


# -- runs --------------------------------------------------------------------------------------------------------------


def start(place: TextPlace, method: Method, seed: int, base: str = "") -> grpo.Run:
    """A training at its start, from a file of base weights or those of the place."""
    module = method_module(method.module or "grpo")
    args = module.Args(
        seed=seed,
        env_id=place.env_id,
        base=base or place.base,
        groups=place.groups,
        learning_rate=place.learning_rate,
        total_steps=int(place.iterations * place.groups * grpo.Args.group * place.turns),
        questions=1,
        **method.arguments,
    )
    args.check()
    return (module.Run if method.module else EntropyRun)(args)


def train(log: Path, place: str, name: str, seed: int, base: str = "") -> None:
    """Trains with one seed and writes the curve when it is complete."""
    torch.set_num_threads(1)
    rows, setting, method = list[dict[str, Any]](), PLACES[place], ARMS[name][0]
    paid = {"reward": "exact_match", **method.arguments}
    run = start(setting, replace(method, arguments=paid), seed, base)
    questions, cpu_s = make_batch(setting.env_id, setting.questions), 0.0
    for iteration in range(setting.iterations + 1):
        if iteration:
            began_s = process_time()
            run.iterate()
            cpu_s += process_time() - began_s
        if setting.measured and iteration not in setting.measured:
            continue
        row = {"iteration": iteration, "cpu_s": cpu_s, **dict.fromkeys(TEMPERATURES, np.nan)}
        if iteration in (0, setting.iterations):
            row |= measure_all(run.model, *questions)
        else:
            row["sampled"] = measure_exact_match(run.model, *questions, temperature=1.0)
        rows.append({**row, "critic_accuracy": run.losses.get("critic_accuracy", np.nan) if iteration else np.nan})
    log.parent.mkdir(parents=True, exist_ok=True)
    write_rows(log, rows)


def log_of(runs: Path, place: str, name: str, seed: int) -> Path:
    """File of a curve."""
    return runs / "text" / place / f"{name.replace(' ', '_').replace(',', '')}_{seed}.csv"


def train_missing(args: FigureArgs) -> Curves:
    """Curves of all runs by place and method, then by seed; trains those that are missing, the first seeds first."""
    jobs = [(p, name, seed) for seed in range(SEEDS) for name, (_, places) in ARMS.items() for p in places]
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
    for table, (places, names) in PICTURED.items():
        rows = [
            {"base": place, "method": name, "seed": seed, **{k: "" if v != v else v for k, v in row.items()}}
            for place in places
            for name in names
            for seed, run in enumerate(curves.get((place, name), ()))
            for row in run
        ]
        write_rows(args.figures / f"{table}.csv", rows)
        draw_learning(table, args.figures)
    write_results(args.figures)


def read_curves(folder: Path, tables: Iterable[str], place: str = "base") -> Curves:
    """The curves of tables in a folder; ``place`` is the column of places."""
    runs = dict[tuple[str, str], dict[str, list[dict[str, float]]]]()
    for table in tables:
        found = dict[tuple[str, str, str], list[dict[str, float]]]()
        for row in drawing.read_table(folder / f"{table}.csv"):
            key = row.pop(place), row.pop("method"), row.pop("seed")
            found.setdefault(key, []).append({name: float(value or "nan") for name, value in row.items()})
        for (where, method, seed), run in found.items():
            runs.setdefault((where, method), {})[seed] = run
    return {key: list(by_seed.values()) for key, by_seed in runs.items()}


def write_results(folder: Path) -> None:
    """Writes and prints what is claimed, from the tables of `PICTURED`."""
    results = claims(read_curves(folder, PICTURED))
    write_rows(folder / "text_results.csv", results)
    for row in results:
        print(row)


def draw_learning(name: str, folder: Path) -> None:
    """Draws sampled exact match over iterations, a panel a base; `name` is one of `PICTURED`."""
    table, (places, _) = folder / f"{name}.csv", PICTURED[name]
    rows, shown = drawing.read_table(table), {"x_label": "iterations", "is_share": True}
    label, panels = "exact match, sampled", list[drawing.Panel]()
    for place in places:
        if own := [row for row in rows if row["base"] == place]:
            title = PLACES[place].title
            panels.append(drawing.panel_of(title, label, own, "method", "sampled", "iteration", **shown))
    drawing.draw(table, panels)


def text_reading(args: FigureArgs) -> None:
    """Exact match of GRPO over iterations where passages must be read, beside SearchQA-2Hop."""
    base = args.runs / "text" / "reading" / "base.safetensors"
    if not base.exists():
        model, figures = train_base(BASES["reading"], quiet=False)
        base.parent.mkdir(parents=True, exist_ok=True)
        notes = {"env_id": BASES["reading"].env_id, "args": asdict(BASES["reading"]), "figures": figures}
        save_policy(base, model.arrays(), method="grpo", **notes)
    jobs = [("reading", GRPO, seed) for seed in range(READING_SEEDS)]
    curves = train_curves(args, "text_reading", jobs, partial(train, base=str(base)), log_of)
    beside = read_curves(args.figures, ("text_methods",))["shortcut", GRPO]
    write_rows(
        args.figures / "text_reading.csv",
        [
            {
                "environment": game_title(PLACES[place].env_id),
                "seed": seed,
                "iteration": row["iteration"],
                "sampled": row["sampled"],
            }
            for place, runs in (("shortcut", beside), ("reading", curves["reading", GRPO]))
            for seed, run in enumerate(runs)
            for row in run
        ],
    )
    draw_reading(args.figures)
    reached = int(np.median([iterations_to(run) for run in beside]))
    read = np.array([by_iteration(run)[reached]["sampled"] for run in curves["reading", GRPO]])
    print(claim(f"SearchQA-Reading after {reached} iterations, SearchQA-2Hop's to {WANTED:g}", read))


def draw_reading(folder: Path) -> None:
    """Draws sampled exact match of both environments over iterations."""
    table = folder / "text_reading.csv"
    rows = drawing.read_table(table)
    shown: Any = {"x_label": "iterations", "is_share": True}
    shown["titles"] = {row["environment"]: f"GRPO, {row['environment']}" for row in rows}
    label = "exact match, sampled"
    drawing.draw(table, [drawing.panel_of("GRPO", label, rows, "environment", "sampled", "iteration", **shown)])


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
    spread = {"lowest": float(values.min()), "seeds": len(values), "failed": ""}
    return {"claim": what, "mean": mean, "low": low, "high": high, **spread, "verdict": verdicts(asked).strip()}


def score(what: str, values: np.ndarray) -> dict[str, Any]:
    """A row of final exact match, with the number of seeds that failed: those below `WANTED`."""
    return {**claim(what, values), "failed": int(np.sum(values < WANTED))}


def claims(curves: Curves) -> list[dict[str, Any]]:
    """What is asked of the methods, or shown: interquartile mean and 95 % interval over seeds, paired by seed."""

    def column(place: str, name: str, what: str = "sampled", at: int = -1) -> np.ndarray:
        """A column of all seeds after an iteration, at the end by default."""
        runs = curves[place, name]
        return np.array([(run[-1] if at < 0 else by_iteration(run)[at])[what] for run in runs])

    def ahead(place: str, name: str, other: str = GRPO, at: int = -1) -> np.ndarray:
        """How far a method is ahead of another one."""
        return column(place, name, at=at) - column(place, other, at=at)

    def sooner(place: str, name: str) -> np.ndarray:
        """How many times as many iterations GRPO needs."""
        needed = (np.array([iterations_to(run) for run in curves[place, arm]]) for arm in (GRPO, name))
        return np.divide(*needed)

    others = [(place, name) for name in ARMS if name != GRPO for place in EVERYWHERE if (place, name) in curves]
    learnt = (column("shortcut", GRPO) >= 0.8) & (column("shortcut", GRPO, "greedy") >= 0.9)
    accuracy = np.array([np.mean([row["critic_accuracy"] for row in run[1:]]) for run in curves["noisy", MODEL]])
    bars = {("noisy", EXACT): (1.0, 1.0), ("noisy", PATH): (1.5, 1.0)}
    rows = [
        claim("GRPO, shortcut: seeds of 8 with sampled >= 0.8 and greedy >= 0.9", np.full(1, 8 * learnt.mean()), 7),
        claim("GRPO, shortcut, CPU seconds", column("shortcut", GRPO, "cpu_s")),
        claim(f"{MODEL}: share of right labels in learning, noisy", accuracy, 0.9),
    ]
    for place, name in [*((place, GRPO) for place in EVERYWHERE), *others]:
        rows += [score(f"{name}, {place}, final, {word}", column(place, name, word)) for word in TEMPERATURES]
    for place, name in others:
        if name != CONTROL:
            said = f"iterations to {WANTED:g}, {GRPO} over {name}, {place}"
            rows.append(claim(said, sooner(place, name), *bars.get((place, name), ())))
        rows += [
            claim(f"{name} - {GRPO}, {place}, {when}", ahead(place, name, at=at))
            for when, at in (("iteration 5", 5), ("iteration 10", 10), ("final", -1))
        ]
    for place in (place for place, name in others if name == TURNS):
        rows += [
            claim(f"{EXACT} - {TURNS}, {place}, {when}", ahead(place, EXACT, TURNS, at))
            for when, at in (("iteration 5", 5), ("iteration 10", 10), ("final", -1))
        ]
    for name in (DOT, *TOLD):
        asked = (0.05, 0.0) if name == DOT else ()
        rows.append(claim(f"{PATH} - {name}, early, iteration 5", ahead("early", PATH, name, 5), *asked))
    for place in ("early", "shortcut"):
        rows.append(claim(f"{GRPO} - {CONTROL}, {place}, final", ahead(place, GRPO, CONTROL), above=0.0))
    return rows


FIGURES = (
    Figure("text_bases", text_bases),
    Figure("text_learning", text_learning),
    *(Figure(name, None, partial(draw_learning, name)) for name in PICTURED),
    Figure("text_results", None, claims=write_results),
    Figure("text_reading", text_reading, draw_reading),
)
