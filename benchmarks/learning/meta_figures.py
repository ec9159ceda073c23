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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from learning import drawing, figures
from learning.figures import Entry, FigureArgs, Method, bootstrap_interval
from palaestra_baselines import mappo, meta_dt
from palaestra_baselines.common.decision_transformers import WorldModel
from palaestra_baselines.common.offline_data import fit_scaling, make_learnable
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs
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


@dataclass(frozen=True)
class Setting:
    """Where methods learn.

    Attributes:
        title: In figures.
        env_id: Environment.
        seeds: Runs of each method.
        steps: Gradient steps of a run.
        expert_steps: Decisions from which the expert learns; 0 where a script is the expert.
        arguments: Of all methods here.
    """

    title: str
    env_id: str
    seeds: int
    steps: int
    expert_steps: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)


BODY = {"matches_per_task": 10, "world_steps": 1000, "matches": 6, "evaluations": 1}
SETTINGS = {
    "point": Setting("MetaPoint", "palaestra/MetaPoint-v0", 5, 700),
    "direction": Setting("MetaDirection", "palaestra/MetaDirection-v0", 3, 1400),
    "speed": Setting("MetaCheetahVel", "palaestra/MetaCheetahVel-v0", 3, 1000, 1_500_000, BODY),
    "body": Setting(
        "MetaCheetahParam", "palaestra/MetaCheetahParam-v0", 3, 1000, 3_000_000, {**BODY, "decoder": "state"}
    ),
}
EXPERT = {
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


def run_of(entry: Entry, seed: int, directory: Path, **more: Any) -> RunArgs:
    """Arguments of one run of an entry.

    Args:
        entry: The entry.
        seed: Of the run.
        directory: Its folder.
        **more: Arguments that decide nothing, ``quiet`` for one.
    """
    given = {**SETTINGS[entry.place].arguments, **METHODS[entry.method].arguments, **entry.arguments, **more}
    place = {"env_id": SETTINGS[entry.place].env_id, "total_steps": entry.steps, "evaluations": EVALUATIONS}
    return METHODS[entry.method].make_args(**{**place, **given}, seed=seed, directory=directory)


def score_figure(place: str, args: FigureArgs) -> None:
    """Curves and last scores of all methods in a family of tasks."""
    setting, expert = SETTINGS[place], train_expert(place, args)
    given = {"expert": str(expert)} if expert else {}
    entries = [Entry(place, name, setting.steps, seeds=setting.seeds, arguments=given) for name in METHODS]
    seeds = replace(args, seeds=setting.seeds)
    runs = figures.train_entries(f"meta_{place}", entries, METHODS, run_of, seeds)
    logs, table = figures.read_logs(runs), args.figures / f"meta_{place}.csv"
    figures.write_rows(table, figures.curve_rows(logs, "setting", "method"))
    draw_scores(place, args.figures)
    rows = [
        {"method": name, "seed": seed, **{column: log[-1][column] for column in COLUMNS if column in log[-1]}}
        for (_, name), group in logs.items()
        for seed, log in enumerate(group)
    ]
    figures.write_rows(args.figures / f"meta_{place}_results.csv", rows)
    print("\n".join(score_lines(place, rows)))


def train_expert(place: str, args: FigureArgs) -> Path | None:
    """The policy that is the expert of a setting's tasks, trained if it is missing; None where a script is."""
    setting = SETTINGS[place]
    if not setting.expert_steps:
        return None
    shared = {"trust_checkpoint": args.trust_checkpoint, "quiet": True, "seed": 0}
    directory = args.runs / "meta_experts" / place
    expert: Any = EXPERT
    run = mappo.Args(env_id=setting.env_id, total_steps=setting.expert_steps, directory=directory, **expert, **shared)
    figures.train_all(f"meta_{place}: expert", [("mappo", run, None)], args)
    return run.folder / WEIGHTS


COLUMNS = ("score", "zero_shot", "with_uniform", "loss", "world_loss", "cpu_s")


def draw_scores(place: str, folder: Path) -> None:
    """Draws the curves of all methods of a family, those of Meta-DT in its first match in a task, too."""
    table = folder / f"meta_{place}.csv"
    runs = drawing.group_runs(drawing.read_table(table), "method")
    curves = {METHODS[name].title: drawing.curve_over_seeds(made, "score") for name, made in runs.items()}
    curves[ZERO_SHOT] = drawing.curve_over_seeds(runs["meta_dt"], "zero_shot")
    drawing.draw(table, [drawing.Panel(SETTINGS[place].title, SCORE, curves, x_label="gradient steps")])


def score_lines(place: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Interquartile means over seeds with intervals, and what is asked of them."""
    found = {METHODS[name].title: of_method(rows, name, "score") for name in METHODS}
    found[ZERO_SHOT] = of_method(rows, "meta_dt", "zero_shot")
    found[SWAPPED] = of_method(rows, "prompt_dt", "with_uniform")
    spans = {name: bootstrap_interval(scores) for name, scores in found.items()}
    own_mean, own_low, _ = spans["Meta-DT"]
    above = {name: own_low > spans[name][2] for name in spans}
    asked = dict[str, list[tuple[str, bool]]]()
    if not SETTINGS[place].expert_steps:
        asked["DT"] = [("Meta-DT above it, intervals apart", above["DT"])]
    if place == "point":
        for name in (METHODS["random_prompt"].title, SWAPPED):
            asked[name] = [("Meta-DT above it, intervals apart", above[name])]
        asked[ZERO_SHOT] = [("below the later match", found[ZERO_SHOT].mean() < found["Meta-DT"].mean())]
        asked["true task"] = [("above Meta-DT", found["true task"].mean() > found["Meta-DT"].mean())]
    for name, (mean, low, high) in spans.items():
        told = " ".join(f"{score:.0f}" for score in found[name])
        text = f"{SETTINGS[place].title}, {name}: {mean:.1f} ({low:.1f} to {high:.1f}; {told})"
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
    run = meta_dt.Args(env_id=SETTINGS[place].env_id, context=max(context, 1), seed=seed)
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
    table, curves = folder / "meta_models.csv", dict[str, dict[str, drawing.Curve]]()
    for (place, name), runs in drawing.group_runs(drawing.read_table(table), "setting", "method").items():
        curves.setdefault(place, {})[name] = drawing.curve_over_seeds(runs, "error")
    panels = [
        drawing.Panel(SETTINGS[place].title, "squared error", made, x_label="decision of a match")
        for place, made in curves.items()
    ]
    drawing.draw(table, panels)


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
        text = f"{SETTINGS[place].title}: {shown}; from the second decision on {later_ratio:.3f}"
        yield text + figures.verdicts([("at most 1/4", bool(ratio <= 0.25))])
