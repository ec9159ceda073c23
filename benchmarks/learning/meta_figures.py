"""Meta-DT: sequence models in tasks that nobody names; ``python benchmarks/learn.py meta``.

``meta_point``      MetaPoint: scores of all methods in the five tasks that are held out
``meta_direction``  the same on MetaDirection
``meta_speed``      the same on MetaCheetahVel
``meta_body``       the same on MetaCheetahParam
``meta_models``     errors of world models in the tasks of the first two, with a context and without

The expert of a task scores 100, uniform play 0. The half cheetahs have no script: one MAPPO policy that is told the
task learns to be the expert of all tasks first. All methods have networks of the same size, learn as many gradient
steps from the same matches and aim at the same return in all tasks. They differ in what they are told of a test task:
Meta-DT has its own four earlier matches there, Prompt-DT five decisions of an expert or of uniform play, DT nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learning import drawing, figures
from learning.figures import FigureArgs, Method, bootstrap_interval
from learning.study import Entry, Figure, Made, Place, Rows, Study, panel_per_place
from palaestra_baselines import mappo, meta_dt
from palaestra_baselines.common.decision_transformers import WorldModel
from palaestra_baselines.common.offline_data import fit_scaling, make_learnable
from palaestra_baselines.common.run_folder import WEIGHTS
from palaestra_baselines.common.task_families import find_family, play_matches

SCORE = "score in held-out tasks"
ZERO_SHOT = "Meta-DT, first match"
SWAPPED = "Prompt-DT, given a random prompt"
"""The network of Prompt-DT, which learnt with prompts of experts."""
HIDDEN = {"task": "hidden"}
METHODS: dict[str, Method] = {
    "meta_dt": Method("Meta-DT", "meta_dt"),
    "any_segment": Method("Meta-DT, any segment", "meta_dt", {"prompt": "random"}),
    "dt": Method("DT", "meta_dt", {**HIDDEN, "prompt": "none"}),
    "prompt_dt": Method("Prompt-DT, expert prompt", "meta_dt", {**HIDDEN, "prompt": "expert"}),
    "random_prompt": Method("Prompt-DT, random prompt", "meta_dt", {**HIDDEN, "prompt": "uniform"}),
    "true_task": Method("true task", "meta_dt", {"task": "true", "prompt": "none"}),
}


BODY = {"matches_per_task": 10, "world_steps": 1000, "matches": 6, "evaluations": 1}
CURVE: dict[str, Any] = {"column": "score", "label": SCORE}
PLACES = {
    "point": Place("MetaPoint", "palaestra/MetaPoint-v0", **CURVE),
    "direction": Place("MetaDirection", "palaestra/MetaDirection-v0", **CURVE),
    "speed": Place("MetaCheetahVel", "palaestra/MetaCheetahVel-v0", arguments=BODY, **CURVE),
    "body": Place("MetaCheetahParam", "palaestra/MetaCheetahParam-v0", arguments={**BODY, "decoder": "state"}, **CURVE),
}
SEEDS = {"point": 5, "direction": 3, "speed": 3, "body": 3}
STEPS = {"point": 700, "direction": 1400, "speed": 1000, "body": 1000}
"""Gradient steps of a run."""
EXPERT_STEPS = {"speed": 1_500_000, "body": 3_000_000}
"""Decisions from which the expert learns; elsewhere a script is the expert."""
EXPERT: dict[str, Any] = {
    **{"options": ("observe_task=True",), "team": "body", "opponent": "", "lanes": 90, "matches": 90, "epochs": 10},
    **{"learning_rate": (5e-4, 1e-4), "hidden": (128, 128), "critic_hidden": (128, 128), "entropy": (0.0, 0.0)},
    **{"evaluations": 10, "max_gradient_norm": 0.5},
}
"""Arguments of MAPPO by which the experts of half cheetahs learn."""
MODEL_SEEDS = 3
EVALUATIONS = 4
CONTEXTS = {"world model, context": 16, "world model, no context": 0}
"""Numbers of z, by the names of the models."""
MODEL_PLACES = ("point", "direction")


def with_expert(study: Study, args: FigureArgs) -> Study:
    """Trains the expert of the tasks if there is no script."""
    expert = train_expert(study.entries[0].place, args)
    given = {} if expert is None else {"expert": str(expert)}
    return replace(
        study, entries=tuple(replace(entry, arguments={**entry.arguments, **given}) for entry in study.entries)
    )


def train_expert(place: str, args: FigureArgs) -> Path | None:
    """The policy that is the expert of a place's tasks, trained if it is missing; None where a script is."""
    if place not in EXPERT_STEPS:
        return None
    shared = {"trust_checkpoint": args.trust_checkpoint, "quiet": True, "seed": 0, **EXPERT}
    directory = args.runs / "meta_experts" / place
    run = mappo.Args(env_id=PLACES[place].env_id, total_steps=EXPERT_STEPS[place], directory=directory, **shared)
    figures.train_all(f"meta_{place}: expert", [("mappo", run, None)], args)
    return run.folder / WEIGHTS


COLUMNS = ("score", "zero_shot", "with_uniform", "loss", "world_loss", "cpu_s")


def last_scores(study: Study, made: Made) -> Rows:
    """The last evaluation of each run."""
    return [
        {
            "method": entry.method,
            "seed": run.seed,
            **{column: log[-1][column] for column in COLUMNS if column in log[-1]},
        }
        for entry, run, log in made.each(study.entries)
    ]


def score_panels(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """The curves of all methods of a family, those of Meta-DT in its first match in a task, too."""
    (panel,), runs = panel_per_place(study, rows), drawing.group_runs(rows, "method")
    curves = {**panel.curves, ZERO_SHOT: drawing.curve_over_seeds(runs["meta_dt"], "zero_shot")}
    return [replace(panel, curves=curves, x_label="gradient steps")]


def score_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """Interquartile means over seeds with intervals, and what is asked of them."""
    place = study.entries[0].place
    found = {METHODS[name].title: of_method(rows, name, "score") for name in METHODS}
    found[ZERO_SHOT] = of_method(rows, "meta_dt", "zero_shot")
    found[SWAPPED] = of_method(rows, "prompt_dt", "with_uniform")
    spans = {name: bootstrap_interval(scores) for name, scores in found.items()}
    own_mean, own_low, _ = spans["Meta-DT"]
    above = {name: own_low > spans[name][2] for name in spans}
    asked = dict[str, list[tuple[str, bool]]]()
    if place not in EXPERT_STEPS:
        asked["DT"] = [("Meta-DT above it, intervals apart", above["DT"])]
    if place == "point":
        for name in (METHODS["random_prompt"].title, SWAPPED):
            asked[name] = [("Meta-DT above it, intervals apart", above[name])]
        asked[ZERO_SHOT] = [("below the later match", found[ZERO_SHOT].mean() < found["Meta-DT"].mean())]
        asked["true task"] = [("above Meta-DT", found["true task"].mean() > found["Meta-DT"].mean())]
    for name, (mean, low, high) in spans.items():
        told = " ".join(f"{score:.0f}" for score in found[name])
        text = f"{PLACES[place].title}, {name}: {mean:.1f} ({low:.1f} to {high:.1f}; {told})"
        yield text + figures.verdicts(asked.get(name, []))
    yield f"largest error over any segment: {own_mean - spans[METHODS['any_segment'].title][0]:+.1f}"
    yield f"processor time of a run: at most {max(row['cpu_s'] for row in rows):.0f} s"


def of_method(rows: Sequence[Mapping[str, Any]], name: str, column: str) -> np.ndarray:
    """A column of a method by seed."""
    return np.array([row[column] for row in rows if row["method"] == name])


# -- world models ------------------------------------------------------------------------------------------------------


def models_figure(args: FigureArgs) -> None:
    """Errors of world models in held-out tasks, by the number of the decision in its match."""
    torch.set_num_threads(1)
    rows = [
        {"setting": place, "method": name, "seed": seed, "steps": step, "error": float(error)}
        for place in MODEL_PLACES
        for name, context in CONTEXTS.items()
        for seed in range(MODEL_SEEDS)
        for step, error in enumerate(model_errors(place, context, seed))
    ]
    figures.write_rows(args.figures / "meta_models.csv", rows)
    draw_models(args.figures)
    print("\n".join(model_lines(rows)))


def model_errors(place: str, context: int, seed: int) -> np.ndarray:
    """Mean squared errors of scaled rewards ``[decisions]`` in held-out tasks, of medium players there."""
    run = meta_dt.Args(env_id=PLACES[place].env_id, context=max(context, 1), seed=seed)
    family = find_family(run.env_id, {})
    training = play_matches(family, family.training, run.data, run.matches_per_task, seed)
    test = play_matches(family, family.test, run.data, run.matches_per_task, meta_dt.PROMPT_RUN + seed)
    scaling = fit_scaling(training)
    torch.manual_seed(seed)
    model = WorldModel(training.states.shape[2], training.actions.shape[2], context, run.decoder)
    meta_dt.learn_world_model(model, make_learnable(training, scaling), run, np.random.default_rng([seed, 2]))
    return meta_dt.predict(model, make_learnable(test, scaling))[1].mean(0).numpy()


def draw_models(folder: Path) -> None:
    """Draws the errors of both models, a panel a family."""
    table = folder / "meta_models.csv"
    rows = drawing.read_table(table)
    names: Any = {"x_label": "decision of a match"}
    own = {place: [row for row in rows if row["setting"] == place] for place in MODEL_PLACES}
    drawing.draw(
        table,
        [drawing.panel_of(PLACES[p].title, "squared error", own[p], "method", "error", **names) for p in MODEL_PLACES],
    )


def model_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Mean errors over all decisions and seeds, and what is asked of their ratio.

    Nothing that came before a match's first decision tells its task: with or without a context its error is large.
    """
    first = next(iter(CONTEXTS))
    for place in MODEL_PLACES:
        with_context, without = (
            np.array([row["error"] for row in rows if (row["setting"], row["method"]) == (place, name)])
            for name in CONTEXTS
        )
        later = np.array([row["steps"] > 0 for row in rows if (row["setting"], row["method"]) == (place, first)])
        ratio = with_context.mean() / without.mean()
        shown = f"error {with_context.mean():.4f} with a context, {without.mean():.4f} without: {ratio:.3f}"
        later_ratio = with_context[later].mean() / without[later].mean()
        text = f"{PLACES[place].title}: {shown}; from the second decision on {later_ratio:.3f}"
        yield text + figures.verdicts([("at most 1/4", bool(ratio <= 0.25))])


STUDIES = {
    place: Study(
        f"meta_{place}",
        tuple(Entry(place, name, STEPS[place], seeds=SEEDS[place]) for name in METHODS),
        METHODS,
        PLACES,
        {"evaluations": EVALUATIONS},
        panels=score_panels,
        results=last_scores,
        lines=score_lines,
        prepare=with_expert,
        fixed_seeds=True,
    )
    for place in PLACES
}
FIGURES = (
    *STUDIES.values(),
    Figure("meta_models", models_figure, draw_models),
)
