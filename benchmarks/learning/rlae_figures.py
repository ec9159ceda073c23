"""Figures of ensembles of language models: ``python benchmarks/learn.py rlae --seeds 8``, and ``rlae_hidden``.

``rlae``: PPO (one agent) and MAPPO (an agent for each expert) of `palaestra_baselines.rlae` learn weights of synthetic
experts on the mixture of domains that the environment has by default. What counts is the share of right tokens of
greedy play in matches that no training plays, on that mixture and on one that was not trained on, and how much of the
gap from the best static weights to the oracle that is. The features are noisy: even their best use, all weight on the
expert of the greatest mean skill under the posterior of the domain, closes 95 % of the gap.

``rlae_hidden``: the same experts, but the features of one span hardly tell its domain, which mostly stays the same from
span to span. Learners with a recurrent state (``memory``) are beside those without.

Controls without reinforcement learning: random weights; the best single expert; the best static weights, searched over
a grid on other matches of the same mixture; and a table, which is learnt from matches of equal weights: the share of
right tokens of each expert where the same feature was the largest. All weight goes to the best expert of the row. The
table with memory takes a sum of features that fades from span to span instead. It sees of each span which experts were
right (`info`), as no learner does; that is what makes it a control.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from learning import drawing
from learning.figures import FigureArgs, bootstrap_interval, curve_rows, read_logs, train_all, verdicts, write_rows
from palaestra import make_batch, registry
from palaestra.evaluation import evaluate
from palaestra_baselines import rlae

Mixtures = Mapping[str, Mapping[str, Any]]
"""Keywords of mixtures of domains; the first one is that of the training."""
METHODS: dict[str, dict[str, Any]] = {
    "PPO": {"agents": "one"},
    "MAPPO": {"agents": "each"},
    "PPO, memory": {"agents": "one", "recurrent": True},
    "MAPPO, memory": {"agents": "each", "recurrent": True},
}
"""Arguments of the trainings, by method."""
TABLE, MEMORY_TABLE = "table of the largest feature", "table with memory"
STATIC, ORACLE, SINGLE = "best static weights", "oracle", "best single expert"
PICTURED = (STATIC, TABLE, MEMORY_TABLE, ORACLE)
"""Controls that are lines of the picture."""
SCRIPTS = {"random weights": "random", "uniform weights": "uniform", "weights by entropy": "entropy", ORACLE: "oracle"}
MINUTE_S = 60.0
"""Most processor time of a training of `RLAE`."""
MATCHES, TEST_SEED, SEARCH_SEED = 4096, 2**30, 2**30 + 1
"""Matches of an evaluation; number of the run of matches that count, and of that by which static weights are chosen."""
TABLE_MATCHES, TABLE_SEED = 512, 2**30 + 2
"""Matches of equal weights from which a table is learnt, and the number of their run."""
KEEPS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""How much of a sum of features may be left after a span."""
PARTS = 20
"""Static weights are multiples of 1 / PARTS."""
LOGIT = 5.0
"""Bound of the logits."""


@dataclass(frozen=True)
class Setting:
    """A figure.

    Attributes:
        name: Of the figure.
        mixtures: Where players are measured.
        titles: Of the panels.
        methods: Names of those that learn.
        bars: Least share of the gap from the best static weights to the oracle, on the first mixture; without bars
            methods are asked for more than the tables have.
    """

    name: str
    mixtures: Mixtures
    titles: Mapping[str, str]
    methods: tuple[str, ...]
    bars: Mapping[str, float]

    @property
    def trained(self) -> str:
        """The mixture of the training."""
        return next(iter(self.mixtures))


RLAE = Setting(
    "rlae",
    {"trained": {}, "unseen": {"mixture": (0.1, 0.1, 0.6, 0.1, 0.1)}},
    {"trained": "mixture of the training", "unseen": "mixture not trained on"},
    ("PPO", "MAPPO"),
    {"PPO": 0.9, "MAPPO": 0.8},
)
HIDDEN = Setting(
    "rlae_hidden",
    {"hidden": {"spans": 12, "domain_stay": 0.95, "feature_noise": 1.0}},
    {"hidden": "domain hidden, 12 spans"},
    tuple(METHODS),
    {},
)


def rlae_figure(setting: Setting, args: FigureArgs) -> None:
    """Shares of right tokens over decisions of the methods, beside those of scripts and controls."""
    lines = control_lines(setting.mixtures)
    runs = {method: [run_of(args, setting, method, seed) for seed in range(args.seeds)] for method in setting.methods}
    in_turn = [run for seeds in zip(*runs.values(), strict=True) for run in seeds]
    train_all(setting.name, [("rlae", run, partial(measure, run.agents, setting.mixtures)) for run in in_turn], args)
    write_tables(setting, read_logs(runs), lines, args.figures)
    draw_rlae(setting, args.figures)


def write_tables(setting: Setting, logs: Any, lines: Mapping[str, Mapping[str, float]], folder: Path) -> None:
    """Writes the curves, and the results at their ends, with a row for each control."""
    rows = curve_rows({(method,): group for method, group in logs.items()}, "method")
    rows = [{name: row[name] for name in ("method", "seed", "steps", *setting.mixtures, "cpu_s")} for row in rows]
    write_rows(folder / f"{setting.name}.csv", [*rows, *({"method": name, **right} for name, right in lines.items())])
    results = [{"method": name, "mixture": m, "mean": right[m]} for name, right in lines.items() for m in right]
    results += [result(setting, method, m, logs[method], lines) for method in logs for m in setting.mixtures]
    write_rows(folder / f"{setting.name}_results.csv", results)
    for row in results:
        print(row)


def run_of(args: FigureArgs, setting: Setting, method: str, seed: int) -> rlae.Args:
    """Arguments of a run."""
    options = tuple(f"{name}={value}" for name, value in setting.mixtures[setting.trained].items())
    who = METHODS[method]["agents"] + ("_memory" if "recurrent" in METHODS[method] else "")
    shared: dict[str, Any] = {"trust_checkpoint": args.trust_checkpoint, "quiet": True, "options": options}
    return rlae.Args(seed=seed, directory=args.runs / setting.name / who, **METHODS[method], **shared)


def measure(agents: str, mixtures: Mixtures, player_of: Callable[[str], Any]) -> dict[str, float]:
    """Share of right tokens on each mixture.

    Args:
        agents: Who decides, as in `palaestra_baselines.rlae.WHO`.
        mixtures: Where.
        player_of: Gives the player of a team.
    """
    env_id, team = rlae.WHO[agents]
    return {name: right_share(player_of(team), options, TEST_SEED, env_id) for name, options in mixtures.items()}


def right_share(player: Any, options: Mapping[str, Any], seed: int, env_id: str = rlae.WHO["one"][0]) -> float:
    """Share of right tokens of a player in matches of a run."""
    sizes = {"matches": MATCHES, "num_envs": MATCHES}
    return float(evaluate(env_id, player, seed=seed, **sizes, **options).results["return_a"].mean())


# -- controls ----------------------------------------------------------------------------------------------------------


def control_lines(mixtures: Mixtures) -> dict[str, dict[str, float]]:
    """Share of right tokens on each mixture, by control; tables are learnt on the first mixture."""
    lines = {name: measure("one", mixtures, lambda _, script=script: script) for name, script in SCRIPTS.items()}
    learnt = next(iter(mixtures.values()))
    table = learn_table(learnt, 0.0)
    lines[SINGLE] = {name: best_of(single_experts(), options) for name, options in mixtures.items()}
    lines[STATIC] = {name: best_of(static_weights(), options) for name, options in mixtures.items()}
    lines[TABLE] = {name: right_share(table, options, TEST_SEED) for name, options in mixtures.items()}
    if learnt.get("domain_stay"):
        tables = {f"keeps {keep}": learn_table(learnt, keep) for keep in KEEPS}
        lines[MEMORY_TABLE] = {name: best_of(tables, options) for name, options in mixtures.items()}
    return lines


def best_of(players: Mapping[str, Any], options: Mapping[str, Any]) -> float:
    """Share of right tokens of the player that is the best one in other matches of the same mixture."""
    best = max(players, key=lambda name: right_share(players[name], options, SEARCH_SEED))
    print(f"best of {len(players)} players, {dict(options)}: {best}", flush=True)
    return right_share(players[best], options, TEST_SEED)


def single_experts() -> dict[str, str]:
    """The scripts that give all weight to one expert."""
    return {name: name for name in registry.make_game(rlae.WHO["one"][0])[0].scripts if name.startswith("static_")}


def static_weights() -> dict[str, Static]:
    """All weights in multiples of 1 / `PARTS`."""
    grid = [w for w in itertools.product(range(PARTS + 1), repeat=len(single_experts())) if sum(w) == PARTS]
    return {str(weights): Static(np.array(weights) / PARTS) for weights in grid}


def learn_table(options: Mapping[str, Any], keep: float) -> Table:
    """The table of matches of equal weights.

    Args:
        options: Keywords of the mixture.
        keep: See `Table`.
    """
    sim = make_batch(rlae.WHO["one"][0], TABLE_MATCHES, autoreset_mode="off", opponents={"agent": "uniform"}, **options)
    sim.reset(seed=TABLE_SEED)
    experts = sim.game.roles[0].action[0].size
    sums = np.zeros((sim.game.roles[0].observation[0].size, experts))
    counts, table = np.zeros(len(sums)), Table(sums, keep)
    seen, before, span = np.zeros((TABLE_MATCHES, len(sums))), np.zeros((TABLE_MATCHES, experts)), 0
    while not sim.terminated.any():
        rows = table.rows(sim.observations, seen)
        sim.step()
        span += 1
        so_far = span * sim.info["expert_right"]
        np.add.at(sums, rows, so_far - before)
        np.add.at(counts, rows, 1.0)
        before = so_far
    return Table(sums / np.maximum(counts, 1.0)[:, None], keep)


class Table:
    """Gives all weight to the best expert of a row: an `palaestra.core.run.opponents.Opponent`.

    Attributes:
        right: float64 ``[D, K]``, share of right tokens of each expert where feature d was the largest.
        keep: How much of a sum of features is left after a span; with 0 the features of this span alone count.
        memory_size: D.
    """

    def __init__(self, right: np.ndarray, keep: float) -> None:
        """Keeps them."""
        self.right, self.keep, self.memory_size = right, keep, len(right)

    def rows(self, observations: np.ndarray, seen: np.ndarray) -> np.ndarray:
        """Numbers of the rows, int64 ``[n]``; adds the features to the sums ``seen [n, D]``."""
        seen *= self.keep
        seen += observations[:, 0, : self.memory_size]
        return seen.argmax(axis=1)

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Logits ``[n, 1, K]``."""
        best = self.right[self.rows(observations, memory)].argmax(axis=1)
        return (2.0 * LOGIT * np.eye(self.right.shape[1])[best] - LOGIT)[:, None]


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


# -- results -----------------------------------------------------------------------------------------------------------


def result(setting: Setting, method: str, mixture: str, logs: Any, lines: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table of results: interquartile mean over seeds, 95 % interval, worst seed, share of the gap."""
    right, cpu_s = (np.array([log[-1][name] for log in logs]) for name in (mixture, "cpu_s"))
    static, oracle = lines[STATIC][mixture], lines[ORACLE][mixture]
    mean, low, high = bootstrap_interval(right)
    gap, gap_low, gap_high = bootstrap_interval((right - static) / (oracle - static))
    if not setting.bars:
        asked = [(f"above the {name}", low > lines[name][mixture]) for name in (TABLE, MEMORY_TABLE)]
    elif mixture == setting.trained:
        asked = [
            (f"{100 * setting.bars[method]:g} % of the gap", gap >= setting.bars[method]),
            (f"{MINUTE_S:g} s", bool(cpu_s.max() <= MINUTE_S)),
            (f"above the {TABLE}", low > lines[TABLE][mixture]),
        ]
    else:
        asked = [("not below the best static weights", low >= static)]
    shares = {"gap": gap, "gap_low": gap_low, "gap_high": gap_high, "cpu_s": float(cpu_s.max())}
    row = {"method": method, "mixture": mixture, "mean": mean, "low": low, "high": high, "worst": float(right.min())}
    return {**row, **shares, "verdict": verdicts(asked).strip()}


def draw_rlae(setting: Setting, folder: Path) -> None:
    """Draws the table in a folder, a panel a mixture."""
    table = folder / f"{setting.name}.csv"
    rows = drawing.read_table(table)
    runs = drawing.group_runs([row for row in rows if row["method"] in METHODS], "method")
    panels = [
        drawing.Panel(
            title,
            "share of right tokens",
            {method: drawing.curve_over_seeds(made, mixture) for method, made in runs.items()},
            {row["method"]: float(row[mixture]) for row in rows if row["method"] in PICTURED},
        )
        for mixture, title in setting.titles.items()
    ]
    drawing.draw(table, panels)
