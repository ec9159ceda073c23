"""The figure of turn rewards in text search: ``python benchmarks/learn.py search_turns``.

Stable-Baselines3's PPO learns ``palaestra/SearchQA-2Hop-v1`` in the structured form, once paid for the answer alone,
once also for each needed passage that is found. Networks, settings, seeds and decisions are the same; both are
evaluated by the share of right answers to questions that they did not learn from.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np

from learning import drawing
from learning.figures import FigureArgs
from learning.study import Figure
from palaestra import make_batch
from palaestra.core.faces.agent_io import AgentIO
from palaestra_baselines.common.run_folder import read_rows, write_csv

ID = "palaestra/SearchQA-2Hop-v1"
ARMS = {"answer alone": 0.0, "turn rewards": 0.25}
SCRIPTS = {"oracle": "script: oracle", "random": "random choices", "closed_book": "script: closed book"}
"""Names of the lines across by script."""
DECISIONS, EVALUATIONS, LANES, STEPS = 409_600, 20, 256, 16
QUESTIONS, TEST_SEED = 1024, 10_000_000
WANTED = 0.75
"""Share of right answers that is reached sooner by turn rewards."""
BAR = 0.5
"""Most of the decisions of the other arm that it may take."""


def search_turns(args: FigureArgs) -> None:
    """Share of right answers over decisions, of both arms, beside the scripts'."""
    jobs = [(arm, seed) for arm in ARMS for seed in range(args.seeds)]
    missing = [job for job in jobs if not _log(args.runs, *job).exists()]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(max(args.workers, 1), context) as pool:
        for _ in pool.map(_train, [args.runs] * len(missing), *zip(*missing, strict=True)) if missing else ():
            pass
    logs = {arm: [read_rows(_log(args.runs, arm, seed)) for seed in range(args.seeds)] for arm in ARMS}
    rows: list[dict[str, Any]] = [
        {"arm": arm, "seed": seed, **{name: row[name] for name in ("steps", "sampled", "greedy")}}
        for arm, runs in logs.items()
        for seed, run in enumerate(runs)
        for row in run
    ]
    rows += [
        {"arm": title, "seed": "", "steps": "", "sampled": script_score(script), "greedy": ""}
        for script, title in SCRIPTS.items()
    ]
    _write(args.figures / "search_turns.csv", rows)
    draw_search(args.figures)
    reached = {arm: [first_reached(run) for run in runs] for arm, runs in logs.items()}
    results = [
        {"arm": arm, "seed": seed, "decisions_to_three_quarters": steps, "last": logs[arm][seed][-1]["sampled"]}
        for arm, of_seeds in reached.items()
        for seed, steps in enumerate(of_seeds)
    ]
    _write(args.figures / "search_turns_results.csv", results)
    for row in results:
        print(row)
    with_turns, without = (float(np.median(reached[arm])) for arm in ("turn rewards", "answer alone"))
    verdict = "holds" if with_turns <= BAR * without else "does not hold"
    print(
        f"{WANTED:.2f} after {with_turns:,.0f} decisions with turn rewards, {without:,.0f} without (median): {verdict}"
    )


def draw_search(folder: Path) -> None:
    """Draws the share of right answers of both arms; scripts are lines."""
    table = folder / "search_turns.csv"
    shown: Any = {"titles": {arm: f"PPO, {arm}" for arm in ARMS}, "is_share": True}
    title, rows = "SearchQA-2Hop, one choice a turn", drawing.read_table(table)
    drawing.draw(table, [drawing.panel_of(title, "share of right answers", rows, "arm", "sampled", **shown)])


def first_reached(run: list[dict[str, float]]) -> float:
    """Decisions until the share of right answers is reached; infinite if it never is."""
    return next((row["steps"] for row in run if row["sampled"] >= WANTED), float("inf"))


def _log(runs: Path, arm: str, seed: int) -> Path:
    return runs / "search_turns" / f"{arm.replace(' ', '_')}_{seed}.csv"


def _train(runs: Path, arm: str, seed: int) -> None:
    """Trains one arm with one seed and writes its curve when it is complete."""
    import torch
    from stable_baselines3 import PPO

    from palaestra.adapters.sb3 import as_vec_env

    torch.set_num_threads(1)
    env = as_vec_env(ID, LANES, turn_reward=ARMS[arm])
    env.seed(seed * LANES)  # lane i plays from the stream of seed + i
    settings: dict[str, Any] = {"n_steps": STEPS, "batch_size": STEPS * LANES // 4, "n_epochs": 4, "ent_coef": 0.01}
    network = {"net_arch": [256, 256]}
    model = PPO("MlpPolicy", env, learning_rate=1e-3, policy_kwargs=network, seed=seed, device="cpu", **settings)
    rows = list[dict[str, float]]()
    for k in range(EVALUATIONS + 1):
        if k:
            model.learn(DECISIONS // EVALUATIONS, reset_num_timesteps=k == 1)
        shares = {name: evaluate(model, is_greedy) for name, is_greedy in (("sampled", False), ("greedy", True))}
        rows.append({"steps": float(k and model.num_timesteps), **shares})
        print(f"{arm}, seed {seed}: {rows[-1]}", flush=True)
    _log(runs, arm, seed).parent.mkdir(parents=True, exist_ok=True)
    _write(_log(runs, arm, seed), rows)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    write_csv(path, [list(rows[0]), *(row.values() for row in rows)])


def evaluate(model: Any, is_greedy: bool) -> float:
    """Share of right answers to new questions."""
    sim = make_batch(ID, QUESTIONS, autoreset_mode="off")
    sim.reset(seed=TEST_SEED)
    agent_io = AgentIO(sim, (0,))
    while not (over := sim.terminated | sim.truncated).all():
        actions, _ = model.predict(agent_io.observe(), deterministic=is_greedy)
        sim.step(actions[:, None], lanes=~over)
    return float(sim.info["exact_match"].mean())


def script_score(script: str) -> float:
    """Share of right answers of a script, or of random legal choices, to the same questions."""
    sim = make_batch(ID, QUESTIONS, autoreset_mode="off", opponents={"agent": script})
    sim.reset(seed=TEST_SEED)
    while not (over := sim.terminated | sim.truncated).all():
        sim.step(lanes=~over)
    return float(sim.info["exact_match"].mean())


FIGURES = (Figure("search_turns", search_turns, draw_search),)
