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
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from learning import drawing
from learning.figures import Method, bootstrap_interval, verdicts
from learning.study import Entry, Made, Place, Rows, Study, curve_table
from palaestra import make_batch, registry
from palaestra.evaluation import evaluate
from palaestra_baselines import rlae

Mixtures = Mapping[str, Mapping[str, Any]]
"""Keywords of mixtures of domains; the first one is that of the training."""
METHODS = {
    "PPO": Method("PPO", "rlae", {"agents": "one"}),
    "MAPPO": Method("MAPPO", "rlae", {"agents": "each"}),
    "PPO, memory": Method("PPO, memory", "rlae", {"agents": "one", "recurrent": True}),
    "MAPPO, memory": Method("MAPPO, memory", "rlae", {"agents": "each", "recurrent": True}),
}
TABLE, MEMORY_TABLE = "table of the largest feature", "table with memory"
STATIC, ORACLE, SINGLE = "best static weights", "oracle", "best single expert"
PICTURED = (STATIC, TABLE, MEMORY_TABLE, ORACLE)
"""Controls that are lines of the picture."""
SCRIPTS = {"random weights": "random", "uniform weights": "uniform", "weights by entropy": "entropy", ORACLE: "oracle"}
MINUTE_S = 60.0
"""Most processor time of a training of `rlae`."""
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


MIXTURES: dict[str, Mixtures] = {
    "rlae": {"trained": {}, "unseen": {"mixture": (0.1, 0.1, 0.6, 0.1, 0.1)}},
    "rlae_hidden": {"hidden": {"spans": 12, "domain_stay": 0.95, "feature_noise": 1.0}},
}
"""Where players are measured, by figure."""
TITLES = {
    "trained": "mixture of the training",
    "unseen": "mixture not trained on",
    "hidden": "domain hidden, 12 spans",
}
BARS = {"PPO": 0.9, "MAPPO": 0.8}
"""Least share of the gap from the best static weights to the oracle, where the domain is seen; elsewhere methods are
asked for more than the tables have."""


def curves_and_controls(study: Study, made: Made) -> Rows:
    """The curves, and a row for each control."""
    columns = ("method", "seed", "steps", *MIXTURES[study.name], "cpu_s")
    rows = [{name: row[name] for name in columns} for row in curve_table(study, made)]
    return [*rows, *({"method": name, **right} for name, right in control_lines(study.name).items())]


def all_results(study: Study, made: Made) -> Rows:
    """Shares of right tokens of controls and methods on each mixture."""
    lines = control_lines(study.name)
    rows = [{"method": name, "mixture": m, "mean": right[m]} for name, right in lines.items() for m in right]
    for (_, method), logs in made.logs.items():
        rows += [result(study.name, method, mixture, logs, lines) for mixture in MIXTURES[study.name]]
    return rows


def folder_of(study: Study, entry: Entry) -> Path:
    """Folder of the runs of a method."""
    given = METHODS[entry.method].arguments
    return Path(study.name, given["agents"] + ("_memory" if "recurrent" in given else ""))


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


@cache
def control_lines(figure: str) -> dict[str, dict[str, float]]:
    """Share of right tokens on each mixture of a figure, by control; tables are learnt on the first mixture."""
    mixtures = MIXTURES[figure]
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


def result(figure: str, method: str, mixture: str, logs: Any, lines: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the table of results: interquartile mean over seeds, 95 % interval, worst seed, share of the gap."""
    right, cpu_s = (np.array([log[-1][name] for log in logs]) for name in (mixture, "cpu_s"))
    static, oracle = lines[STATIC][mixture], lines[ORACLE][mixture]
    mean, low, high = bootstrap_interval(right)
    gap, gap_low, gap_high = bootstrap_interval((right - static) / (oracle - static))
    if figure == "rlae_hidden":
        asked = [(f"above the {name}", low > lines[name][mixture]) for name in (TABLE, MEMORY_TABLE)]
    elif mixture == "trained":
        asked = [
            (f"{100 * BARS[method]:g} % of the gap", gap >= BARS[method]),
            (f"{MINUTE_S:g} s", bool(cpu_s.max() <= MINUTE_S)),
            (f"above the {TABLE}", low > lines[TABLE][mixture]),
        ]
    else:
        asked = [("not below the best static weights", low >= static)]
    shares = {"gap": gap, "gap_low": gap_low, "gap_high": gap_high, "cpu_s": float(cpu_s.max())}
    row = {"method": method, "mixture": mixture, "mean": mean, "low": low, "high": high, "worst": float(right.min())}
    return {**row, **shares, "verdict": verdicts(asked).strip()}


def mixture_panels(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """A panel a mixture."""
    shown, label = [row for row in rows if row["method"] in (*METHODS, *PICTURED)], "share of right tokens"
    return [drawing.panel_of(TITLES[mixture], label, shown, "method", mixture) for mixture in MIXTURES[study.name]]


def study_of(name: str, methods: Sequence[str]) -> Study:
    """The study of some methods; the first mixture is that of the training."""
    mixtures = MIXTURES[name]
    options = tuple(f"{option}={value}" for option, value in next(iter(mixtures.values())).items())
    return Study(
        name,
        tuple(Entry("", method, rlae.Args.total_steps) for method in methods),
        METHODS,
        {"": Place("", rlae.Args.env_id, options)},
        columns=("method",),
        table=curves_and_controls,
        panels=mixture_panels,
        results=all_results,
        lines=lambda study, rows, made: map(str, rows),
        evaluation=lambda entry: partial(measure, METHODS[entry.method].arguments["agents"], mixtures),
        folder=folder_of,
    )


FIGURES = (study_of("rlae", ("PPO", "MAPPO")), study_of("rlae_hidden", tuple(METHODS)))
