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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from learning import drawing
from learning.figures import (
    CLONE,
    FigureArgs,
    Method,
    bootstrap_interval,
    install_best,
    interquartile_mean,
    train_all,
    verdicts,
    write_rows,
)
from palaestra import registry
from palaestra.core.run.opponents import OpponentSpec
from palaestra.evaluation import EVALUATION_RUN, evaluate
from palaestra_baselines import seqwm
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.run_folder import LOG, WEIGHTS, RunArgs, read_rows
from palaestra_baselines.common.training import EVALUATION_SEED, Evaluation, Report

PPO, MAPPO, SEQWM = "PPO (SB3)", "MAPPO", "SeqWM"
RANDOM_ORDER, CENTRALISED, DECENTRALISED = "SeqWM, random order", "SeqWM, centralised", "SeqWM, decentralised"
OWN_LATENT = "SeqWM, own latent"
MODES = {SEQWM: "seq", RANDOM_ORDER: "random", CENTRALISED: "centralised", DECENTRALISED: "decentralised"}
"""Mode by the name of the arm."""
SCRIPT, RANDOM_PLAY = "script", "random play"
Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Task:
    """A task of a team.

    Attributes:
        env_id: Where.
        team: The only team.
        script: The scripted player.
        weights: Name of the weights of SeqWM that are shipped.
        options: Keywords of the game.
    """

    env_id: str
    team: str
    script: str
    weights: str
    options: tuple[str, ...] = ()


TASKS = {
    "QuadGate2": Task("palaestra/QuadGate2-v0", "robot", "turns", "seqwm_quad_gate2"),
    "QuadPushBox": Task("palaestra/QuadPushBox-v0", "robot", "push", "seqwm_quad_push_box"),
    "HandOver": Task("palaestra/HandOver-v0", "hand", "hold", "seqwm_hand_over", ("commands=grip",)),
}
TUNED_ON = MODES_ON = "QuadPushBox"
CLAIMED_ON = ("QuadPushBox", "QuadGate2")
"""Tasks on one of which SeqWM is to be ahead of the others."""
DECISIONS, MATCHES, TEST_MATCHES = 50_000, 64, 256
"""Decisions of a training; matches of an evaluation; those of scripts and of actors alone."""
TUNING_SEED, TUNING_EVALUATIONS = 100, 5
SHARED: dict[str, Any] = {"opponent": "", "total_steps": DECISIONS, "lanes": 32, "evaluations": 10, "matches": MATCHES}
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


@dataclass(frozen=True)
class Trained:
    """Runs of an arm on a task, by seed.

    Attributes:
        task: Name of the task.
        method: Name of the arm.
        runs: Their arguments.
        logs: Their curves.
    """

    task: str
    method: str
    runs: Sequence[RunArgs]
    logs: Sequence[Rows] = field(default_factory=tuple)

    def last(self, column: str) -> np.ndarray:
        """A column of the last evaluations, by seed."""
        return np.array([log[-1][column] for log in self.logs])


def folder_of(name: str) -> str:
    """Name of a folder for a name in tables."""
    return "".join(c if c.isalnum() or c in "-." else "_" for c in name)


def run_of(args: FigureArgs, task: str, method: str, seed: int) -> RunArgs:
    """Arguments of a run of an arm."""
    return make_run(args, task, ARMS[method], seed, Path(folder_of(task), folder_of(method)))


def make_run(args: FigureArgs, task: str, method: Method, seed: int, folder: Path, **more: Any) -> RunArgs:
    """Arguments of a run on a task.

    Args:
        args: Of the figure.
        task: Name of the task.
        method: Who learns.
        seed: Of the run.
        folder: Of all seeds, below that of the figures of SeqWM.
        **more: Instead of those of `SHARED`.
    """
    where = TASKS[task]
    given = {**SHARED, **method.arguments, **more, "seed": seed, "directory": args.runs / "seqwm" / folder}
    given |= {"env_id": where.env_id, "team": where.team, "options": where.options}
    return method.make_args(**given, quiet=True, trust_checkpoint=args.trust_checkpoint)


def play(task: str, player: OpponentSpec, matches: int, run: int = EVALUATION_RUN) -> dict[str, float]:
    """Mean return and share of success of a player in matches of a run."""
    where = TASKS[task]
    table = evaluate(where.env_id, player, matches=matches, num_envs=MATCHES, seed=run, **keywords(where.options))
    return {"return": table.mean_return, "success": table.success}


def measure(task: str, player_of: Callable[[str], Any]) -> dict[str, float]:
    """What evaluations of a training on a task measure, in matches that no training plays."""
    return play(task, player_of(TASKS[task].team), MATCHES, EVALUATION_SEED)


def train_arms(args: FigureArgs, title: str, tasks: Iterable[str], methods: Iterable[str]) -> list[Trained]:
    """Trains the runs of arms on tasks that are missing, the first seeds of all first."""
    wanted = [
        Trained(task, method, [run_of(args, task, method, seed) for seed in range(args.seeds)])
        for task in tasks
        for method in methods
    ]
    in_turn = [
        (ARMS[arm.method].module, arm.runs[seed], partial(measure, arm.task))
        for seed in range(args.seeds)
        for arm in wanted
    ]
    train_all(title, in_turn, args)
    return [
        Trained(arm.task, arm.method, arm.runs, [read_rows(run.folder / LOG) for run in arm.runs]) for arm in wanted
    ]


def lines_of(task: str) -> dict[str, dict[str, float]]:
    """What the script of a task and random play reach."""
    players = {SCRIPT: TASKS[task].script, RANDOM_PLAY: "random"}
    return {name: play(task, player, TEST_MATCHES) for name, player in players.items()}


def table_rows(arms: Sequence[Trained], lines: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Rows of a table: an evaluation of a run, then scripts and random play, which have no seed."""
    rows = [
        {
            "task": arm.task,
            "method": arm.method,
            "mode": MODES.get(arm.method, ""),
            "seed": seed,
            **{name: row[name] for name in ("steps", "return", "success", "cpu_s")},
        }
        for arm in arms
        for seed, log in enumerate(arm.logs)
        for row in log
    ]
    return rows + [
        {"task": task, "method": name, **found} for task, by_name in lines.items() for name, found in by_name.items()
    ]


def area(log: Rows, total: float = DECISIONS) -> float:
    """Mean of the return over the first ``total`` decisions of a curve, by trapezoids between evaluations."""
    steps, values = (np.array([row[name] for row in log], np.float64) for name in ("steps", "return"))
    places = np.append(steps[steps < total], total)
    heights = np.interp(places, steps, values)
    return float((np.diff(places) * (heights[1:] + heights[:-1]) / 2.0).sum() / total)


def result(arm: Trained) -> dict[str, Any]:
    """A row of results: interquartile means over seeds, and the 95 % interval of the area."""
    mean, low, high = bootstrap_interval(np.array([area(log) for log in arm.logs]))
    reached = {name: float(interquartile_mean(arm.last(name))) for name in ("return", "success")}
    row = {"task": arm.task, "method": arm.method, "area": mean, "low": low, "high": high, **reached}
    if arm.method in MODES:
        row |= actors_alone(arm)
    return {**row, "cpu_s": float(arm.last("cpu_s").max())}


def actors_alone(arm: Trained) -> dict[str, float]:
    """Interquartile means over seeds of return and success of the last actors without a planner."""
    where = TASKS[arm.task]
    game, _ = registry.make_game(where.env_id, **keywords(where.options))
    players = [seqwm.load_policy(run.folder / WEIGHTS, game, where.team, plan=False) for run in arm.runs]
    played = [play(arm.task, player, TEST_MATCHES) for player in players]
    return {f"actor_{n}": float(interquartile_mean(np.array([p[n] for p in played]))) for n in ("return", "success")}


def line_results(lines: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[dict[str, Any]]:
    """Rows of results of scripts and random play."""
    return [
        {"task": task, "method": name, "return": found["return"], "success": found["success"]}
        for task, by_name in lines.items()
        for name, found in by_name.items()
    ]


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


def seqwm_tasks(args: FigureArgs) -> None:
    """Return of three methods on all tasks, over decisions and over processor time; installs weights of SeqWM."""
    arms = train_arms(args, "seqwm_tasks", TASKS, (PPO, MAPPO, SEQWM))
    for arm in arms:
        if arm.method == SEQWM:
            install_best(arm.runs, arm.logs, args.assets, TASKS[arm.task].weights, "return")
    lines = {task: lines_of(task) for task in TASKS}
    rows = table_rows(arms, lines)
    for name in AXES:
        write_rows(args.figures / f"{name}.csv", rows)
        draw_tasks(name, args.figures)
    report(args, "seqwm_tasks", [*with_verdicts([result(arm) for arm in arms]), *line_results(lines)])


def draw_tasks(name: str, folder: Path) -> None:
    """Draws a picture of `AXES`, a panel a task."""
    table, (x, label) = folder / f"{name}.csv", AXES[name]
    rows = drawing.read_table(table)
    drawing.draw(table, [task_panel(rows, task, x, label) for task in dict.fromkeys(row["task"] for row in rows)])


def seqwm_modes(args: FigureArgs) -> None:
    """Return of the modes of SeqWM on a task; runs of the mode ``seq`` are those of `seqwm_tasks`."""
    arms = train_arms(args, "seqwm_modes", (MODES_ON,), MODES)
    lines = {MODES_ON: lines_of(MODES_ON)}
    write_rows(args.figures / "seqwm_modes.csv", table_rows(arms, lines))
    draw_modes(args.figures)
    report(args, "seqwm_modes", [*(result(arm) for arm in arms), *line_results(lines)])


def draw_modes(folder: Path) -> None:
    """Draws the table in a folder."""
    table = folder / "seqwm_modes.csv"
    drawing.draw(table, [task_panel(drawing.read_table(table), MODES_ON, *AXES["seqwm_tasks"])])


def task_panel(rows: Rows, task: str, x: str, x_label: str) -> drawing.Panel:
    """A panel of returns."""
    here = [row for row in rows if row["task"] == task]
    runs = drawing.group_runs([row for row in here if row["method"] in ARMS], "method")
    curves = {method: drawing.curve_over_seeds(made, "return", x) for method, made in runs.items()}
    lines = {row["method"]: float(row["return"]) for row in here if row["method"] not in ARMS}
    return drawing.Panel(task, "return", curves, lines, x_label)


def report(args: FigureArgs, name: str, results: Rows) -> None:
    """Writes and prints results."""
    write_rows(args.figures / f"{name}_results.csv", results)
    for row in results:
        print(row)


def seqwm_tuning(args: FigureArgs) -> None:
    """Area, return, success and processor time of all settings of all methods."""
    in_turn = zip(*SETTINGS.values(), strict=True)
    tried = [pair for names in in_turn for pair in zip(SETTINGS, names, strict=True)]
    runs = {pair: tuning_run(args, *pair) for pair in tried}
    evaluation = partial(measure, TUNED_ON)
    train_all("seqwm_tuning", [(MODULES[method], run, evaluation) for (method, _), run in runs.items()], args)
    rows = [tuning_row(*pair, read_rows(runs[pair].folder / LOG)) for pair in sorted(tried, key=order_of)]
    write_rows(args.figures / "seqwm_tuning.csv", rows)
    for row in rows:
        print(row)
    for method in SETTINGS:
        print(f"{method}: {best_setting(rows, method)} has the greatest area, {CHOSEN[method]} is used")


def order_of(pair: tuple[str, str]) -> tuple[int, int]:
    """Place of a method and a setting in `SETTINGS`."""
    method, name = pair
    return list(SETTINGS).index(method), list(SETTINGS[method]).index(name)


def tuning_run(args: FigureArgs, method: str, name: str) -> RunArgs:
    """Arguments of a run of a setting."""
    tried = Method(method, MODULES[method], SETTINGS[method][name])
    folder = Path("tuning", folder_of(method), folder_of(name))
    return make_run(args, TUNED_ON, tried, TUNING_SEED, folder, evaluations=TUNING_EVALUATIONS)


def tuning_row(method: str, name: str, log: Rows) -> dict[str, Any]:
    """A row of the table of settings."""
    reached = {column: log[-1][column] for column in ("return", "success", "cpu_s")}
    return {"method": method, "setting": name, "area": area(log), **reached}


def best_setting(rows: Rows, method: str) -> str:
    """The setting of a method with the greatest area."""
    return max((row for row in rows if row["method"] == method), key=lambda row: row["area"])["setting"]


# -- the game of known bounds ------------------------------------------------------------------------------------------


COPY, COPY_TEAM, COPY_GAME = "tests/Copy-v0", "team", "games.copy_game"
"""A game of the tests, see `tests/games/copy_game.py`."""
COPY_SEEDS, COPY_MATCHES, COPY_TEST_MATCHES = 5, 256, 4096
COPY_ARMS: dict[str, dict[str, Any]] = {
    SEQWM: {"mode": "seq"},
    CENTRALISED: {"mode": "centralised"},
    DECENTRALISED: {"mode": "decentralised"},
    OWN_LATENT: {"mode": "seq", "actor_sees": "own"},
}
COPY_LEARNS: dict[str, Any] = {
    **{"total_steps": 20_000, "evaluations": 10, "matches": COPY_MATCHES},
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


def seqwm_copy(args: FigureArgs) -> None:
    """Mean reward of a decision by mode, beside the exact bounds with and without communication."""
    game, runs = copy_game(), {name: [copy_run(args, name, s) for s in range(COPY_SEEDS)] for name in COPY_ARMS}
    in_turn = [run for seeds in zip(*runs.values(), strict=True) for run in seeds]
    train_all("seqwm_copy", [(__name__, run, measure_copy) for run in in_turn], args)
    logs = {name: [read_rows(run.folder / LOG) for run in group] for name, group in runs.items()}
    lines = {BEST: game.BEST, BLIND: game.BLIND, RANDOM_PLAY: copy_score(random_numbers(), COPY_TEST_MATCHES)}
    rows: list[dict[str, Any]] = [
        {"method": name, "seed": seed, **{column: row[column] for column in ("steps", "score", "cpu_s")}}
        for name, group in logs.items()
        for seed, log in enumerate(group)
        for row in log
    ]
    write_rows(args.figures / "seqwm_copy.csv", [*rows, *({"method": n, "score": x} for n, x in lines.items())])
    draw_copy(args.figures)
    actors = {name: np.array([actor_score(run) for run in group]) for name, group in runs.items()}
    results: list[dict[str, Any]] = [copy_result(name, logs[name], actors[name]) for name in COPY_ARMS]
    report(args, "seqwm_copy", [*results, *({"method": name, "score": value} for name, value in lines.items())])


def copy_run(args: FigureArgs, name: str, seed: int) -> seqwm.Args:
    """Arguments of a run."""
    shared: dict[str, Any] = {"env_id": COPY, "team": COPY_TEAM, "opponent": "", "quiet": True, **COPY_LEARNS}
    shared |= {"directory": args.runs / "seqwm" / "Copy" / folder_of(name), "trust_checkpoint": args.trust_checkpoint}
    return seqwm.Args(**shared, **COPY_ARMS[name], seed=seed)


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


def draw_copy(folder: Path) -> None:
    """Draws the table in a folder."""
    table = folder / "seqwm_copy.csv"
    rows = drawing.read_table(table)
    runs = drawing.group_runs([row for row in rows if row["method"] in COPY_ARMS], "method")
    curves = {name: drawing.curve_over_seeds(made, "score") for name, made in runs.items()}
    lines = {row["method"]: float(row["score"]) for row in rows if row["method"] not in COPY_ARMS}
    drawing.draw(table, [drawing.Panel("Copy", "reward of a decision", curves, lines, is_share=True)])
