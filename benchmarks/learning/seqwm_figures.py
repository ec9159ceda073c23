"""The figures of SeqWM, made by ``python benchmarks/learn.py seqwm``.

``seqwm_copy``    modes in a game whose exact bounds are known: what the second agent must know, the first alone sees
``seqwm_tasks``   SeqWM, MAPPO and PPO with shared weights on two robots in three tasks
``seqwm_modes``   all modes of SeqWM on one of them
``seqwm_tuning``  the settings of each method that were tried there, with a seed of their own; a table alone

Methods of a task are compared by the area under the curve of their return: its mean over the decisions of a training.
An evaluation is played by the deterministic player, which plans where the method does. Success is the share of matches
that end because the task is done.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from learning import drawing, figures
from learning.figures import CLONE, Method, bootstrap_interval, interquartile_mean, verdicts
from learning.study import Entry, Figure, Made, Place, Rows, Study, panel_per_place
from palaestra import registry
from palaestra.core.run.opponents import OpponentSpec
from palaestra.evaluation import EVALUATION_RUN, evaluate
from palaestra_baselines import seqwm
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, Report

PPO, MAPPO, SEQWM = "PPO (SB3)", "MAPPO", "SeqWM"
RANDOM_ORDER, CENTRALISED, DECENTRALISED = "SeqWM, random order", "SeqWM, centralised", "SeqWM, decentralised"
OWN_LATENT = "SeqWM, own latent"
MODES = {SEQWM: "seq", RANDOM_ORDER: "random", CENTRALISED: "centralised", DECENTRALISED: "decentralised"}
"""Mode by the name of the arm."""
SCRIPT, RANDOM_PLAY = "script", "random play"
ROBOTS: dict[str, Any] = {"team": "robot", "column": "return", "label": "return"}
HANDS: dict[str, Any] = {"team": "hand", "column": "return", "label": "return"}
TASKS = {
    "QuadGate2": Place("QuadGate2", "palaestra/QuadGate2-v0", scripts=("turns",), **ROBOTS),
    "QuadPushBox": Place("QuadPushBox", "palaestra/QuadPushBox-v0", scripts=("push",), **ROBOTS),
    "HandOver": Place("HandOver", "palaestra/HandOver-v0", ("commands=grip",), scripts=("hold",), **HANDS),
}
"""Tasks of a team, and the scripted player of each."""
WEIGHTS_OF = {"QuadGate2": "seqwm_quad_gate2", "QuadPushBox": "seqwm_quad_push_box", "HandOver": "seqwm_hand_over"}
"""Names of the weights of SeqWM that are shipped."""
TUNED_ON = MODES_ON = "QuadPushBox"
CLAIMED_ON = ("QuadPushBox", "QuadGate2")
"""Tasks on one of which SeqWM is to be ahead of the others."""
DECISIONS, MATCHES, TEST_MATCHES = 50_000, 64, 256
"""Decisions of a training; matches of an evaluation; those of scripts and of actors alone."""
TUNING_SEED, TUNING_EVALUATIONS = 100, 5
SHARED: dict[str, Any] = {"opponent": "", "lanes": 32, "evaluations": 10, "matches": MATCHES}
"""Arguments of all trainings on tasks."""
MINUTES = {PPO: 2.0, MAPPO: 2.0, SEQWM: 6.0}
"""Most processor time of a training."""


# -- what methods are given --------------------------------------------------------------------------------------------


def rates(first: float) -> dict[str, tuple[float, float]]:
    """Learning rates of policy and critic of MAPPO."""
    ends = (first, 0.1 * first)
    return {"learning_rate": ends, "critic_learning_rate": ends}


PPO_BASE: dict[str, Any] = {
    **{"head": "gaussian", "normalise_rewards": False, "reward_scale": 10.0},
    **{"rollout": 64, "epochs": 10, "minibatches": 16, "gamma": 0.99},
}
MAPPO_BASE: dict[str, Any] = {
    **{"rollout": 64, "epochs": 10, "minibatches": 8, "gamma": 0.99, "entropy": (0.0, 0.0)},
    **rates(3e-4),
}
FAST: dict[str, Any] = {"learning_rate": (1e-3, 1e-4)}
SHORT: dict[str, Any] = {"gamma": 0.96}
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    PPO: {
        "base": PPO_BASE,
        "rate 1e-3": {**PPO_BASE, **FAST},
        "gamma 0.96": {**PPO_BASE, **SHORT},
        "rollout 128": {**PPO_BASE, "rollout": 128, "minibatches": 32},
        "epochs 5": {**PPO_BASE, "epochs": 5},
        "entropy 1e-3": {**PPO_BASE, "entropy": (1e-3, 1e-3)},
        "rate 1e-3, gamma 0.96": {**PPO_BASE, **FAST, **SHORT},
        "rate 1e-3, gamma 0.96, rollout 32": {**PPO_BASE, **FAST, **SHORT, "rollout": 32, "minibatches": 8},
    },
    MAPPO: {
        "base": MAPPO_BASE,
        "rate 1e-3": {**MAPPO_BASE, **rates(1e-3)},
        "gamma 0.96": {**MAPPO_BASE, **SHORT},
        "rollout 128": {**MAPPO_BASE, "rollout": 128, "minibatches": 16},
        "epochs 5": {**MAPPO_BASE, "epochs": 5},
        "entropy 1e-3": {**MAPPO_BASE, "entropy": (1e-3, 1e-3)},
        "rate 1e-3, gamma 0.96": {**MAPPO_BASE, **rates(1e-3), **SHORT},
        "rate 1e-3, gamma 0.96, rollout 32": {
            **{**MAPPO_BASE, **rates(1e-3), **SHORT},
            **{"rollout": 32, "minibatches": 4},
        },
    },
    SEQWM: {
        "base": FAST,
        "entropy 3e-3": {**FAST, "entropy": 3e-3},
        "gamma 0.98": {**FAST, "gamma": 0.98},
        "5 value steps": {**FAST, "value_steps": 5},
        "2 value steps": {**FAST, "value_steps": 2},
        "deviation 0.5": {**FAST, "deviation": 0.5},
        "rate 2e-3": {"learning_rate": (2e-3, 2e-4)},
        "entropy 2e-2": {**FAST, "entropy": 2e-2},
    },
}
"""Settings that were tried, by method and name: arguments beside `SHARED`."""
CHOSEN = {PPO: "rate 1e-3, gamma 0.96, rollout 32", MAPPO: "rate 1e-3, gamma 0.96, rollout 32", SEQWM: "rate 2e-3"}
"""The setting of each method that is compared; `seqwm_tuning` says which one has the greatest area."""
MODULES = {PPO: "poisson_ppo", MAPPO: "mappo", SEQWM: "seqwm"}
ARMS: dict[str, Method] = {
    **{name: Method(name, MODULES[name], SETTINGS[name][CHOSEN[name]]) for name in (PPO, MAPPO)},
    **{
        name: Method(name, MODULES[SEQWM], {**SETTINGS[SEQWM][CHOSEN[SEQWM]], "mode": mode})
        for name, mode in MODES.items()
    },
}
"""Methods as they are compared on tasks."""


# -- runs on tasks -----------------------------------------------------------------------------------------------------


def folder_of(name: str) -> str:
    """Name of a folder for a name in tables."""
    return "".join(c if c.isalnum() or c in "-." else "_" for c in name)


def play(task: str, player: OpponentSpec, matches: int, run: int = EVALUATION_RUN) -> dict[str, float]:
    """Mean return and share of success of a player in matches of a run."""
    where = TASKS[task]
    table = evaluate(where.env_id, player, matches=matches, num_envs=MATCHES, seed=run, **where.keywords)
    return {"return": table.mean_return, "success": table.success}


def measure(task: str, player_of: Callable[[str], Any]) -> dict[str, float]:
    """What evaluations of a training on a task measure, in matches that no training plays."""
    return play(task, player_of(TASKS[task].team), MATCHES, EVALUATION_SEED)


def lines_of(study: Study) -> list[dict[str, Any]]:
    """What the scripts of the tasks and random play reach."""
    return [
        {"task": task, "method": name, **play(task, player, TEST_MATCHES)}
        for task in dict.fromkeys(entry.place for entry in study.entries)
        for name, player in ((SCRIPT, TASKS[task].scripts[0]), (RANDOM_PLAY, "random"))
    ]


def table_rows(study: Study, made: Made) -> Rows:
    """Rows of a table: an evaluation of a run, then scripts and random play, which have no seed."""
    rows = [
        {
            "task": entry.place,
            "method": entry.method,
            "mode": MODES.get(entry.method, ""),
            "seed": run.seed,
            **{name: row[name] for name in ("steps", "return", "success", "cpu_s")},
        }
        for entry, run, log in made.each(study.entries)
        for row in log
    ]
    return [*rows, *lines_of(study)]


def area(log: Rows, total: float = DECISIONS) -> float:
    """Mean of the return over the first ``total`` decisions of a curve, by trapezoids between evaluations."""
    steps, values = (np.array([row[name] for row in log], np.float64) for name in ("steps", "return"))
    places = np.append(steps[steps < total], total)
    heights = np.interp(places, steps, values)
    return float((np.diff(places) * (heights[1:] + heights[:-1]) / 2.0).sum() / total)


def result(entry: Entry, made: Made) -> dict[str, Any]:
    """A row of results: interquartile means over seeds, and the 95 % interval of the area."""
    logs = made.logs[entry.key]
    last = {column: np.array([log[-1][column] for log in logs]) for column in ("return", "success", "cpu_s")}
    mean, low, high = bootstrap_interval(np.array([area(log) for log in logs]))
    reached = {name: float(interquartile_mean(last[name])) for name in ("return", "success")}
    row = {"task": entry.place, "method": entry.method, "area": mean, "low": low, "high": high, **reached}
    if entry.method in MODES:
        row |= actors_alone(entry, made.runs[entry.key])
    return {**row, "cpu_s": float(last["cpu_s"].max())}


def actors_alone(entry: Entry, runs: Sequence[RunArgs]) -> dict[str, float]:
    """Interquartile means over seeds of return and success of the last actors without a planner."""
    where = TASKS[entry.place]
    game, _ = registry.make_game(where.env_id, **where.keywords)
    players = [seqwm.load_policy(run.folder / WEIGHTS, game, where.team, plan=False) for run in runs]
    played = [play(entry.place, player, TEST_MATCHES) for player in players]
    return {f"actor_{n}": float(interquartile_mean(np.array([p[n] for p in played]))) for n in ("return", "success")}


def results(study: Study, made: Made) -> Rows:
    """A row for each entry and for each line."""
    return [*(result(entry, made) for entry in study.entries), *lines_of(study)]


def is_ahead(rows: Rows, task: str) -> bool:
    """Whether the interval of SeqWM's area lies above those of both other methods on a task."""
    of = {row["method"]: row for row in rows if row["task"] == task and "area" in row}
    return all(of[SEQWM]["low"] > of[other]["high"] for other in (PPO, MAPPO))


def with_verdicts(rows: Rows) -> list[dict[str, Any]]:
    """Results of tasks with what is asked of them."""
    judged = []
    for row in rows:
        asked: list[tuple[str, bool]] = []
        if row["method"] in MINUTES:
            limit = MINUTES[row["method"]]
            asked.append((f"at most {limit:g} min", row["cpu_s"] <= 60.0 * limit))
        if row["method"] == SEQWM:
            asked.append((f"area above {PPO} and {MAPPO}", is_ahead(rows, row["task"])))
        judged.append({**row, "verdict": verdicts(asked).strip()})
    where = [task for task in CLAIMED_ON if is_ahead(rows, task)]
    verdict = verdicts([(f"area above {PPO} and {MAPPO} on one of them", bool(where))]).strip()
    return [*judged, {"task": " or ".join(CLAIMED_ON), "method": SEQWM, "verdict": verdict}]


# -- figures of tasks --------------------------------------------------------------------------------------------------


AXES = {"seqwm_tasks": ("steps", "decisions"), "seqwm_tasks_cpu": ("cpu_s", "processor time, s")}
"""Column of x and its name, by picture; both have the same table."""


def draw_over_time(folder: Path) -> None:
    """Draws the curves of the tasks over processor time."""
    draw_tasks("seqwm_tasks_cpu", folder)


def draw_tasks(name: str, folder: Path) -> None:
    """Draws a picture of `AXES`, a panel a task."""
    table, (x, label) = folder / f"{name}.csv", AXES[name]
    panels, rows = list[drawing.Panel](), drawing.read_table(table)
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        panels.append(drawing.panel_of(task, "return", own, "method", "return", x, x_label=label))
    drawing.draw(table, panels)


def task_results(study: Study, made: Made) -> Rows:
    """Results with what is asked of them; draws the same table over processor time, too."""
    folder = made.args.figures
    figures.copy_file(folder / "seqwm_tasks.csv", folder / "seqwm_tasks_cpu.csv")
    draw_over_time(folder)
    return [*with_verdicts([result(entry, made) for entry in study.entries]), *lines_of(study)]


def tuning_results(study: Study, made: Made) -> Rows:
    """Area, return, success and processor time of all settings of all methods."""
    rows = []
    for entry, _, log in made.each(sorted(study.entries, key=order_of)):
        reached = {column: log[-1][column] for column in ("return", "success", "cpu_s")}
        row = {"method": entry.method, "setting": setting_of(entry), "area": area(log), **reached}
        rows.append(row)
    return rows


def tuning_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """The rows, and the settings of the greatest areas."""
    yield from map(str, rows)
    for method in SETTINGS:
        best = max((row for row in rows if row["method"] == method), key=lambda row: row["area"])["setting"]
        yield f"{method}: {best} has the greatest area, {CHOSEN[method]} is used"


def setting_of(entry: Entry) -> str:
    """Name of the setting that an entry tries."""
    return entry.name.partition(": ")[2]


def order_of(entry: Entry) -> tuple[int, int]:
    """Place of a method and a setting in `SETTINGS`."""
    return list(SETTINGS).index(entry.method), list(SETTINGS[entry.method]).index(setting_of(entry))


# -- the game of known bounds ------------------------------------------------------------------------------------------


COPY, COPY_TEAM, COPY_GAME = "tests/Copy-v0", "team", "games.copy_game"
"""A game of the tests, see `tests/games/copy_game.py`."""
COPY_SEEDS, COPY_STEPS, COPY_MATCHES, COPY_TEST_MATCHES = 5, 20_000, 256, 4096
COPY_ARMS: dict[str, dict[str, Any]] = {
    SEQWM: {"mode": "seq"},
    CENTRALISED: {"mode": "centralised"},
    DECENTRALISED: {"mode": "decentralised"},
    OWN_LATENT: {"mode": "seq", "actor_sees": "own"},
}
COPY_LEARNS: dict[str, Any] = {
    **{"opponent": "", "evaluations": 10, "matches": COPY_MATCHES},
    **{"horizon": 1, "gamma": 0.5, "value_steps": 1, "decisions_per_update": 8},
}
COPY_BARS = {SEQWM: (0.9, 1.0), CENTRALISED: (0.9, 1.0), DECENTRALISED: (0.72, 0.76)}
"""Least and greatest score."""
COPY_SECONDS = 60.0
"""Most processor time of a training."""
BLIND, BEST = "best without communication", "best"


def copy_game() -> ModuleType:
    """The module of the game, which registers it."""
    if (tests := str(CLONE / "tests")) not in sys.path:
        sys.path.append(tests)
    return importlib.import_module(COPY_GAME)


Args = seqwm.Args
"""Of `train`, which is the method of a study."""


def train(args: seqwm.Args, evaluation: Evaluation | None = None) -> Report:
    """Trains SeqWM in the game of the tests, as a method of `learning.figures.train_all`."""
    copy_game()
    return seqwm.train(args, evaluation)


def copy_score(player: OpponentSpec, matches: int = COPY_MATCHES, run: int = EVALUATION_RUN) -> float:
    """Mean reward of a decision."""
    decisions = copy_game().DECISIONS
    return evaluate(COPY, player, matches=matches, num_envs=COPY_MATCHES, seed=run).mean_return / decisions


def random_numbers() -> Callable[[np.ndarray], np.ndarray]:
    """A player of uniform numbers, float64 ``[n, 2, 1]``; the game has no scripts."""
    rng = np.random.default_rng(0)
    return lambda seen: rng.uniform(-1.0, 1.0, (*seen.shape[:2], 1))


def measure_copy(player_of: Callable[[str], Any]) -> dict[str, float]:
    """What evaluations of a training measure."""
    return {"score": copy_score(player_of(COPY_TEAM), run=EVALUATION_SEED)}


def copy_lines() -> list[dict[str, Any]]:
    """The exact bounds with and without communication, and random play."""
    game = copy_game()
    reached = {BEST: game.BEST, BLIND: game.BLIND, RANDOM_PLAY: copy_score(random_numbers(), COPY_TEST_MATCHES)}
    return [{"method": name, "score": value} for name, value in reached.items()]


def copy_table(study: Study, made: Made) -> Rows:
    """Mean reward of a decision by mode, and the lines."""
    rows = [
        {"method": entry.method, "seed": run.seed, **{column: row[column] for column in ("steps", "score", "cpu_s")}}
        for entry, run, log in made.each(study.entries)
        for row in log
    ]
    return [*rows, *copy_lines()]


def copy_results(study: Study, made: Made) -> Rows:
    """Scores of all arms, and the lines."""
    actors = {e.method: np.array([actor_score(run) for run in made.runs[e.key]]) for e in study.entries}
    return [*(copy_result(e.method, made.logs[e.key], actors[e.method]) for e in study.entries), *copy_lines()]


def actor_score(run: RunArgs) -> float:
    """Score of the last actors of a run without a planner."""
    game, _ = registry.make_game(COPY)
    return copy_score(seqwm.load_policy(run.folder / WEIGHTS, game, COPY_TEAM, plan=False))


def copy_result(name: str, logs: Sequence[Rows], actors: np.ndarray) -> dict[str, Any]:
    """A row of results of an arm.

    Args:
        name: The arm.
        logs: Its curves by seed.
        actors: Scores of its actors alone by seed.
    """
    score, low, high = bootstrap_interval(np.array([log[-1]["score"] for log in logs]))
    cpu_s, asked = max(float(log[-1]["cpu_s"]) for log in logs), list[tuple[str, bool]]()
    if name in COPY_BARS:
        least, most = COPY_BARS[name]
        what = f"{least:g} to {most:g}" if most < 1.0 else f"at least {least:g}"
        asked.append((what, least <= score <= most))
    asked.append((f"at most {COPY_SECONDS:g} s", cpu_s <= COPY_SECONDS))
    row = {"method": name, "score": score, "low": low, "high": high, "actor": float(interquartile_mean(actors))}
    return {**row, "cpu_s": cpu_s, "verdict": verdicts(asked).strip()}


def copy_panels(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """Rewards of a decision, with the exact bounds."""
    return [drawing.panel_of("Copy", "reward of a decision", rows, "method", "score", is_share=True)]


# -- studies -----------------------------------------------------------------------------------------------------------


def tried_first() -> Iterator[Entry]:
    """The first setting of each method, then the second, and so on."""
    for names in zip(*SETTINGS.values(), strict=True):
        for method, name in zip(SETTINGS, names, strict=True):
            given = {**SETTINGS[method][name], "evaluations": TUNING_EVALUATIONS}
            yield Entry(TUNED_ON, method, DECISIONS, arguments=given, name=f"{method}: {name}")


def tuning_folder(study: Study, entry: Entry) -> Path:
    """Folder of the runs of a setting."""
    return Path("seqwm", "tuning", folder_of(entry.method), folder_of(setting_of(entry)))


PRINTED: dict[str, Any] = {"lines": lambda study, rows, made: map(str, rows)}
ON_TASKS: dict[str, Any] = {
    **{"methods": ARMS, "places": TASKS, "shared": SHARED, "columns": ("task", "method")},
    **{"table": table_rows, "panels": panel_per_place, "results": results, **PRINTED},
    "best": lambda last: last["return"],
    "evaluation": lambda entry: partial(measure, entry.place),
    "folder": lambda study, entry: Path("seqwm", folder_of(entry.place), folder_of(entry.method)),
}
TASK_STUDY = Study(
    "seqwm_tasks",
    tuple(
        Entry(task, name, DECISIONS, weights=WEIGHTS_OF[task] if name == SEQWM else "")
        for task in TASKS
        for name in (PPO, MAPPO, SEQWM)
    ),
    **{**ON_TASKS, "results": task_results},
)
MODE_STUDY = Study("seqwm_modes", tuple(Entry(MODES_ON, mode, DECISIONS) for mode in MODES), **ON_TASKS)
TUNING: dict[str, Any] = {
    **{**ON_TASKS, "methods": {name: Method(name, MODULES[name]) for name in MODULES}, "results": tuning_results},
    **{"lines": tuning_lines, "table": None, "panels": None, "folder": tuning_folder, "ending": ""},
}
TUNING_STUDY = Study("seqwm_tuning", tuple(tried_first()), seeds=(TUNING_SEED,), **TUNING)
COPY_STUDY = Study(
    "seqwm_copy",
    tuple(Entry(COPY, name, COPY_STEPS) for name in COPY_ARMS),
    {name: Method(name, __name__, arguments) for name, arguments in COPY_ARMS.items()},
    {COPY: Place("Copy", COPY, team=COPY_TEAM)},
    COPY_LEARNS,
    **{"table": copy_table, "panels": copy_panels, "results": copy_results, **PRINTED},
    evaluation=lambda entry: measure_copy,
    folder=lambda study, entry: Path("seqwm", "Copy", folder_of(entry.method)),
    seeds=tuple(range(COPY_SEEDS)),
)
FIGURES = (
    COPY_STUDY,
    TASK_STUDY,
    Figure("seqwm_tasks_cpu", None, draw_over_time),
    MODE_STUDY,
    TUNING_STUDY,
)
