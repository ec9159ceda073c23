"""Figures of on-policy distillation and SRFT: ``python benchmarks/learn.py text_distil``.

A run starts from bundled base weights (`palaestra_baselines.common.lm.base`) and plays the same number of matches an
iteration as the others of its place. Exact match is that of 512 questions that no training asks: sampled, at
temperature 0.5 and greedy before the first and after the last iteration, sampled in between. Runs of one seed learn
from the same questions, so methods are compared seed by seed. ``entropy alone`` is the control, as in
`learning.text_figures`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import torch

from learning import drawing
from learning.figures import FigureArgs, Method, write_rows
from learning.study import Figure
from learning.text_figures import CONTROL, QUESTIONS, SEEDS, TextPlace, claim, read_curves, score, start, train_curves
from palaestra.core.contract.turn_tokens import END, GOOD
from palaestra_baselines import grpo
from palaestra_baselines.common.lm.base import ARITH
from palaestra_baselines.common.lm.losses import entropy, loss_mask
from palaestra_baselines.common.lm.rollouts import EVALUATION_SEED, make_batch, measure_all, play

TWO_HOPS = "palaestra/SearchQA-2Hop-v1"


PLACES = {
    "opd": TextPlace(
        "SearchQA-2Hop, base noisy", TWO_HOPS, "noisy", 8, 30, turns=3.0, measured=(0, 5, 10, 15, 20, 25, 30)
    ),
    "srft": TextPlace(
        "MathText-LeftToRight, base sums", ARITH, "sums", 16, 60, turns=1.0, measured=(0, 10, 20, 30, 40, 50, 60)
    ),
    "right": TextPlace(
        "MathText-LeftToRight, base worked", ARITH, "worked", 16, 60, turns=1.0, measured=tuple(range(0, 61, 3))
    ),
}
SAMPLED, TOP_16, TOP_4 = "OPD, sampled token", "OPD, K 16", "OPD, K 4"
APPENDED, NUCLEUS, FULL = "OPD, K 4, sampled appended", "OPD, K 4, top-p 0.9", "OPD, full vocabulary"
DRAINED_4, DRAINED_16 = "OPD, K 4, not renormalised", "OPD, K 16, not renormalised"
SWAPPED, MASKED, PAPER = "OPD, K 16, swapped", "OPD, K 16, swapped, masked", "OPD, K 16, masked, top-p 0.9"
SRFT, GRPO, SFT, SFT_GRPO = "SRFT", "GRPO", "SFT", "SFT then GRPO"
UNWEIGHTED, PLUS = "SRFT, weights 1", "SRFT, exp(+H)"


def distil(name: str, loss: str, top_k: int = 16, **arguments: Any) -> tuple[tuple[str, str], Method]:
    """An arm of on-policy distillation, with rollouts and masks as in plain sampling if nothing else is said."""
    given = {"loss": loss, "top_k": top_k, "top_p": 1.0, "mask_special": "no", **arguments}
    return ("opd", name), Method(name, "opd", given)


ARMS: dict[tuple[str, str], Method] = dict(
    (
        distil(SAMPLED, "sampled"),
        distil(TOP_16, "top_k"),
        distil(TOP_4, "top_k", 4),
        distil(APPENDED, "top_k", 4, append_sampled="yes"),
        distil(NUCLEUS, "top_k", 4, top_p=0.9),
        distil(FULL, "full"),
        distil(DRAINED_4, "top_k_unnormalised", 4),
        distil(DRAINED_16, "top_k_unnormalised"),
        distil(SWAPPED, "top_k"),
        distil(MASKED, "top_k", mask_special="yes"),
        distil(PAPER, "top_k", top_p=0.9, mask_special="yes"),
        (("opd", CONTROL), Method(CONTROL, "")),
        (("srft", SRFT), Method(SRFT, "srft")),
        (("srft", GRPO), Method(GRPO, "grpo", {"passes": 1, "reward": "exact_match"})),
        (("srft", SFT), Method(SFT, "srft", {"schedule": "sft"})),
        (("srft", SFT_GRPO), Method(SFT_GRPO, "srft", {"schedule": "sft_then_grpo"})),
        (("srft", UNWEIGHTED), Method(UNWEIGHTED, "srft", {"weights": "off"})),
        (("srft", PLUS), Method(PLUS, "srft", {"sft_entropy_sign": "+1"})),
        (("srft", CONTROL), Method(CONTROL, "", {"passes": 1})),
        (("right", SRFT), Method(SRFT, "srft")),
    )
)
"""Methods by place and name; the control has no module."""
SWAPS = (SWAPPED, MASKED)
"""Arms whose teacher's tokens END and GOOD are exchanged: it ends turns with another token."""
PICTURED = {
    "text_distil_opd": ("opd", (SAMPLED, TOP_16, TOP_4, FULL, DRAINED_4, DRAINED_16, CONTROL)),
    "text_distil_srft": ("srft", (SRFT, GRPO, SFT, SFT_GRPO, UNWEIGHTED, PLUS, CONTROL)),
}
"""Place and methods of each picture."""
Run = Sequence[Mapping[str, float]]


# -- runs --------------------------------------------------------------------------------------------------------------


def start_arm(place: str, name: str, seed: int) -> grpo.Run:
    """A training at its start."""
    run: Any = start(PLACES[place], ARMS[place, name], seed)
    if name in SWAPS:
        weight = run.teacher.tokens.weight
        weight[[END, GOOD]] = weight[[GOOD, END]].clone()
    return run


def train(log: Path, place: str, name: str, seed: int) -> None:
    """Trains with one seed and writes the curve when it is complete."""
    torch.set_num_threads(1)
    run, rows, setting = start_arm(place, name, seed), list[dict[str, Any]](), PLACES[place]
    questions, norms, done = make_batch(setting.env_id, QUESTIONS), list[float](), 0
    cpu_s = 0.0
    for iteration in setting.measured:
        while done < iteration:
            rollouts, began_s = run.steps, process_time()
            run.iterate()
            cpu_s += process_time() - began_s
            done += run.steps > rollouts  # SFT before GRPO comes before its first rollout
            norms.append(run.losses.get("gradient_norm", np.nan))
        row = {"iteration": iteration, "cpu_s": cpu_s, **measure(run.model, *questions)}
        row |= {"temperature_0.5": np.nan, "greedy": np.nan, "long": np.nan}
        if iteration in (0, setting.iterations):
            row |= measure_all(run.model, *questions)
            if setting.env_id == ARITH:
                row["long"] = measure(run.model, *make_batch(ARITH, QUESTIONS, split="long"))["sampled"]
        mass = run.losses.get("support_mass", np.nan) if iteration else np.nan
        rows.append({**row, "support_mass": mass, "gradient_norm": np.mean(norms) if norms else np.nan})
    log.parent.mkdir(parents=True, exist_ok=True)
    write_rows(log, rows)


def measure(model: Any, sim: Any, tokens: Any) -> dict[str, float]:
    """Exact match of sampled answers, and the mean entropy at their tokens."""
    seeds = np.arange(EVALUATION_SEED, EVALUATION_SEED + sim.num_envs, dtype=np.uint64)
    rollout = play(model, sim, tokens, seeds, torch.Generator().manual_seed(0))
    with torch.no_grad():
        spread = entropy(model.log_probs(rollout.ids, loss_mask(rollout)))
    return {"sampled": float(rollout.exact_match.mean()), "entropy": float(spread)}


def log_of(runs: Path, place: str, name: str, seed: int) -> Path:
    """File of a curve."""
    word = "".join(c if c.isalnum() or c == "." else "_" for c in name)
    return runs / "text_distil" / place / f"{word}_{seed}.csv"


# -- figures -----------------------------------------------------------------------------------------------------------


def text_distil(args: FigureArgs) -> None:
    """Exact match of all methods over iterations, and what is claimed of them."""
    jobs = [(place, name, seed) for seed in range(SEEDS) for place, name in ARMS]
    curves = train_curves(args, "text_distil", jobs, train, log_of)
    for table, places in {"text_distil_opd": ("opd",), "text_distil_srft": ("srft", "right")}.items():
        rows = [
            {"place": place, "method": name, "seed": seed, **{k: "" if v != v else v for k, v in row.items()}}
            for place, name in ARMS
            if place in places
            for seed, run in enumerate(curves[place, name])
            for row in run
        ]
        write_rows(args.figures / f"{table}.csv", rows)
        draw_distil(table, args.figures)
    write_results(args.figures)


def write_results(folder: Path) -> None:
    """Writes and prints what is claimed, from the tables of `PICTURED`."""
    curves = read_curves(folder, PICTURED, "place")
    results = [*claims_of_distillation(column_of(curves, "opd")), *claims_of_srft(curves)]
    write_rows(folder / "text_distil.csv", results)
    for row in results:
        print(row)


def draw_distil(name: str, folder: Path) -> None:
    """Draws a picture of `PICTURED`: sampled exact match, and the mass on the support or the entropy."""
    table, (place, methods) = folder / f"{name}.csv", PICTURED[name]
    rows = [row for row in drawing.read_table(table) if row["place"] == place and row["method"] in methods]
    second = ("support_mass", "student's mass on the support") if place == "opd" else ("entropy", "entropy, nats")
    panels, where = list[drawing.Panel](), PLACES[place].title
    for what, label in (("sampled", "exact match, sampled"), second):
        shown = {"x_label": "iterations", "is_share": what != "entropy"}
        panels.append(drawing.panel_of(where, label, rows, "method", what, "iteration", **shown))
    drawing.draw(table, panels)


# -- claims ------------------------------------------------------------------------------------------------------------


Column = Callable[..., np.ndarray]


def column_of(curves: Mapping[tuple[str, str], Sequence[Run]], place: str) -> Column:
    """Gives a column of all seeds of a method, at the end or after an iteration."""

    def column(name: str, what: str = "sampled", at: int = -1) -> np.ndarray:
        runs = curves[place, name]
        return np.array([run[-1][what] if at < 0 else {int(r["iteration"]): r for r in run}[at][what] for run in runs])

    return column


def scores(column: Column, names: Sequence[str]) -> list[dict[str, Any]]:
    """Final exact match of methods at all temperatures, and before."""
    words = ("sampled", "temperature_0.5", "greedy")
    first = [claim(f"base, {word}", column(names[0], word, at=0)) for word in words]
    return first + [score(f"{name}, final, {word}", column(name, word)) for name in names for word in words]


def claims_of_distillation(column: Column) -> list[dict[str, Any]]:
    """What is asked of on-policy distillation, or shown: interquartile mean and 95 % interval, paired by seed."""
    names = [name for place, name in ARMS if place == "opd"]
    norm = {name: column(name, "gradient_norm") for name in names if name != CONTROL}
    mass = {name: column(name, "support_mass") for name in names if name != CONTROL}
    drained = {name: float(np.sum((mass[name] <= 0.5) | (column(name) <= 0.1))) for name in (DRAINED_4, DRAINED_16)}
    greedy = column(TOP_16, "greedy") - column(SAMPLED, "greedy")
    return [
        claim(f"{TOP_16} - {SAMPLED}, final, sampled", column(TOP_16) - column(SAMPLED), -0.15),
        claim(f"{TOP_16} - {SAMPLED}, final, greedy", greedy, -0.02),
        claim(f"{TOP_16}, final, mass on the support", mass[TOP_16], 0.9),
        *(claim(f"{n}, final, mass on the support", m) for n, m in mass.items() if n != TOP_16),
        below(f"{TOP_16}, gradient norm over that of {SAMPLED}", norm[TOP_16] / norm[SAMPLED], 0.4),
        *(claim(f"{n}, gradient norm over that of {SAMPLED}", norm[n] / norm[SAMPLED]) for n in (TOP_4, FULL)),
        claim(f"{DRAINED_4}: seeds of 8 with mass <= 0.5 or exact match <= 0.1", np.full(1, drained[DRAINED_4]), 6),
        claim(f"{DRAINED_16}: seeds of 8 with mass <= 0.5 or exact match <= 0.1", np.full(1, drained[DRAINED_16])),
        below(f"{SWAPPED}, final, sampled", column(SWAPPED), 0.1),
        claim(f"{MASKED} - {TOP_16}, final, sampled", column(MASKED) - column(TOP_16), -0.1),
        *(claim(f"{n} - {CONTROL}, final, sampled", column(n) - column(CONTROL)) for n in (SAMPLED, TOP_16, FULL)),
        *scores(column, names),
    ]


def below(what: str, values: np.ndarray, most: float) -> dict[str, Any]:
    """A row of the table of claims whose mean may be at most so much."""
    row = claim(what, values)
    return {**row, "verdict": f"at most {most:g}: {'yes' if row['mean'] <= most else 'NO'}"}


def claims_of_srft(curves: Mapping[tuple[str, str], Sequence[Run]]) -> list[dict[str, Any]]:
    """Likewise of SRFT."""
    column = column_of(curves, "srft")
    names = [name for place, name in ARMS if place == "srft"]
    lowest = {
        key: np.array([min(row[key] for row in run[1:]) for run in curves["right", SRFT]]) for key in ("sampled",)
    }
    right = column_of(curves, "right")
    return [
        claim(f"{SRFT} - {GRPO}, final, sampled", column(SRFT) - column(GRPO), above=0.0),
        claim(f"{SRFT} - {SFT_GRPO}, final, sampled", column(SRFT) - column(SFT_GRPO), -0.03),
        claim(f"{SRFT} - {SFT}, final, sampled", column(SRFT) - column(SFT)),
        *(
            claim(f"{SRFT} - {name}, entropy, final", column(SRFT, "entropy") - column(name, "entropy"), above=0.0)
            for name in (GRPO, SFT_GRPO)
        ),
        *(claim(f"{name} - {SRFT}, final, sampled", column(name) - column(SRFT)) for name in (UNWEIGHTED, PLUS)),
        *(claim(f"{name}, entropy, final", column(name, "entropy")) for name in names),
        *(claim(f"{name}, long chains, sampled", column(name, "long")) for name in names),
        claim(f"{SRFT} - {CONTROL}, final, sampled", column(SRFT) - column(CONTROL), above=0.0),
        claim(f"{SRFT}, base worked: seeds of 8 never below 0.9", np.full(1, np.sum(lowest["sampled"] >= 0.9)), 8),
        claim(f"{SRFT}, base worked: lowest exact match of a run", lowest["sampled"]),
        *(claim(f"{SRFT}, base worked, {word}, final", right(SRFT, word)) for word in ("sampled", "greedy")),
        *scores(column, names),
    ]


FIGURES = (
    Figure("text_distil", text_distil, claims=write_results),
    *(Figure(name, None, partial(draw_distil, name)) for name in PICTURED),
)
