"""The figure of ensembles of language models: ``python benchmarks/learn.py rlae --seeds 8``.

PPO (one agent) and MAPPO (an agent for each expert) of `palaestra_baselines.rlae` learn weights of synthetic experts
on the mixture of domains that the environment has by default. What counts is the share of right tokens of greedy play
in matches that no training plays, on that mixture and on one that was not trained on, and how much of the gap from the
best static weights to the oracle that is. The best static weights of a mixture are searched over a grid, on other
matches of the same mixture.

The features are noisy: even their best use, all weight on the expert of the greatest mean skill under the posterior of
the domain, closes 95 % of the gap.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from learning import drawing
from learning.figures import FigureArgs, bootstrap_interval, curve_rows, read_logs, train_all, verdicts, write_rows
from palaestra import registry
from palaestra.evaluation import evaluate
from palaestra_baselines import rlae

AGENTS = {"PPO": "one", "MAPPO": "each"}
"""Who decides, by method."""
BARS = {"PPO": 0.9, "MAPPO": 0.8}
"""Least share of the gap from the best static weights to the oracle, on the mixture that was trained on."""
MINUTE_S = 60.0
"""Most processor time of a training."""
MIXTURES: dict[str, Mapping[str, Any]] = {
    "trained": {},
    "unseen": {"mixture": (0.1, 0.1, 0.6, 0.1, 0.1)},
}
TITLES = {"trained": "mixture of the training", "unseen": "mixture not trained on"}
UNIFORM, ENTROPY, STATIC, ORACLE = "uniform weights", "weights by entropy", "best static weights", "oracle"
SCRIPTS = {UNIFORM: "uniform", ENTROPY: "entropy", ORACLE: "oracle"}
MATCHES, TEST_SEED, SEARCH_SEED = 4096, 2**30, 2**30 + 1
"""Matches of an evaluation; number of the run of matches that count, and of that by which static weights are chosen."""
PARTS = 20
"""Static weights are multiples of 1 / PARTS."""
LOGIT = 5.0
"""Bound of the logits."""


def rlae_figure(args: FigureArgs) -> None:
    """Shares of right tokens over decisions of both methods beside those of scripts and of the best static weights."""
    runs = {method: [run_of(args, method, seed) for seed in range(args.seeds)] for method in AGENTS}
    in_turn = [run for seeds in zip(*runs.values(), strict=True) for run in seeds]
    train_all("rlae", [("rlae", run, partial(measure, run.agents)) for run in in_turn], args)
    logs = read_logs(runs)
    lines = {name: measure("one", lambda _, script=script: script) for name, script in SCRIPTS.items()}
    lines[STATIC] = {mixture: best_static(mixture) for mixture in MIXTURES}
    rows = curve_rows({(method,): group for method, group in logs.items()}, "method")
    rows = [{name: row[name] for name in ("method", "seed", "steps", *MIXTURES, "cpu_s")} for row in rows]
    write_rows(args.figures / "rlae.csv", [*rows, *({"method": name, **shares} for name, shares in lines.items())])
    draw_rlae(args.figures)
    results = [{"method": name, "mixture": m, "mean": right[m]} for name, right in lines.items() for m in MIXTURES]
    results += [result(method, mixture, group, lines) for method, group in logs.items() for mixture in MIXTURES]
    write_rows(args.figures / "rlae_results.csv", results)
    for row in results:
        print(row)


def run_of(args: FigureArgs, method: str, seed: int) -> rlae.Args:
    """Arguments of a run."""
    who: Any = AGENTS[method]
    shared: dict[str, Any] = {"trust_checkpoint": args.trust_checkpoint, "quiet": True}
    return rlae.Args(agents=who, seed=seed, directory=args.runs / "rlae" / who, **shared)


def measure(agents: str, player_of: Callable[[str], Any]) -> dict[str, float]:
    """Share of right tokens on each mixture.

    Args:
        agents: Who decides, as in `palaestra_baselines.rlae.WHO`.
        player_of: Gives the player of a team.
    """
    env_id, team = rlae.WHO[agents]
    return {mixture: right_share(env_id, player_of(team), mixture, TEST_SEED) for mixture in MIXTURES}


def right_share(env_id: str, player: Any, mixture: str, seed: int) -> float:
    """Share of right tokens of a player in matches of a run."""
    options = {"matches": MATCHES, "num_envs": MATCHES, **MIXTURES[mixture]}
    return float(evaluate(env_id, player, seed=seed, **options).results["return_a"].mean())


def best_static(mixture: str) -> float:
    """Share of right tokens of the static weights that are best on other matches of the same mixture."""
    env_id, _ = rlae.WHO["one"]
    experts = registry.make_game(env_id)[0].roles[0].action[0].size
    grid = [w for w in itertools.product(range(PARTS + 1), repeat=experts) if sum(w) == PARTS]
    players = [Static(np.array(weights) / PARTS) for weights in grid]
    found = [right_share(env_id, player, mixture, SEARCH_SEED) for player in players]
    best = players[int(np.argmax(found))]
    print(f"best static weights, mixture {mixture}: {best.weights.tolist()}", flush=True)
    return right_share(env_id, best, mixture, TEST_SEED)


class Static:
    """Gives the same weights in all spans.

    Attributes:
        weights: float64 ``[K]``, which add up to 1.
    """

    def __init__(self, weights: np.ndarray) -> None:
        """Keeps them; none is less than what the bounds of the logits allow."""
        self.weights = weights
        logits = np.log(np.maximum(weights, np.finfo(np.float64).tiny))
        self._logits = np.maximum(logits - logits.max() + LOGIT, -LOGIT)

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """Logits ``[n, 1, K]``."""
        return np.broadcast_to(self._logits, (len(observations), 1, len(self._logits)))


def result(method: str, mixture: str, logs: Any, lines: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """A row of the table of results: interquartile mean over seeds, 95 % interval, and share of the gap."""
    right, cpu_s = (np.array([log[-1][name] for log in logs]) for name in (mixture, "cpu_s"))
    static, oracle = lines[STATIC][mixture], lines[ORACLE][mixture]
    mean, low, high = bootstrap_interval(right)
    gap, gap_low, gap_high = bootstrap_interval((right - static) / (oracle - static))
    if mixture == "trained":
        asked = [
            (f"{100 * BARS[method]:g} % of the gap", gap >= BARS[method]),
            (f"{MINUTE_S:g} s", bool(cpu_s.max() <= MINUTE_S)),
        ]
    else:
        asked = [("not below the best static weights", low >= static)]
    shares = {"gap": gap, "gap_low": gap_low, "gap_high": gap_high, "cpu_s": float(cpu_s.max())}
    row = {"method": method, "mixture": mixture, "mean": mean, "low": low, "high": high}
    return {**row, **shares, "verdict": verdicts(asked).strip()}


def draw_rlae(folder: Path) -> None:
    """Draws the table in a folder, a panel a mixture."""
    table = folder / "rlae.csv"
    rows = drawing.read_table(table)
    runs = drawing.group_runs([row for row in rows if row["method"] in AGENTS], "method")
    panels = [
        drawing.Panel(
            title,
            "share of right tokens",
            {method: drawing.curve_over_seeds(made, mixture) for method, made in runs.items()},
            {row["method"]: float(row[mixture]) for row in rows if row["method"] not in AGENTS},
        )
        for mixture, title in TITLES.items()
    ]
    drawing.draw(table, panels)
