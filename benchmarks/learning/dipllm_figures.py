"""DipLLM: what factorised policies of joint orders are worth on Concert: ``python benchmarks/learn.py dipllm``.

``dipllm_duel`` and ``dipllm_duel20`` train the arms on the two maps and play them against each other; ``dipllm_duel``
measures, too, how far policies can be exploited in positions whose plans can be counted, and what a decision costs.
``dipllm_standard`` trains on the standard map, for two powers and for seven. On all maps the student at temperature 0.3
and the anchor play against scripts.

All arms of a map and a seed learn from the same games, as they are collected by the same seed. A share is the points of
400 matches, sides swapped; a drawn match is half a point.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch

from learning import figures
from learning.figures import FigureArgs, Method
from learning.study import Entry, Made, Place, Rows, Study, panel_per_place
from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.evaluation import EVALUATION_RUN
from palaestra.games.concert.concert_phases import MOVES
from palaestra_baselines import dipllm
from palaestra_baselines.common.joint_networks import ValueNetwork
from palaestra_baselines.common.joint_orders import Terrain, View, draw_plans, drawn, log_probabilities
from palaestra_baselines.common.joint_players import OneByOne, one_against_others
from palaestra_baselines.common.pikl import TRIALS, Results, Search, nash_conv, payoffs, search_plans, views_of
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.rollout import RUN_BITS
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs
from palaestra_baselines.common.value_anchor import Anchor

MATCHES = 400
IDS = {
    "duel": "palaestra/ConcertDuel-v0",
    "duel20": "palaestra/ConcertDuel-20-v0",
    "france_austria": "palaestra/ConcertDuel-FranceAustria-v0",
    "standard": "palaestra/Concert-v0",
}
METHODS: dict[str, Method] = {
    "full": Method("factorised, taught", "dipllm"),
    "clone": Method("factorised, cloned anchor", "dipllm", {"student": "clone"}),
    "joint": Method("classifier of plans", "dipllm", {"student": "joint"}),
    "reversed": Method("factorised, units reversed", "dipllm", {"unit_order": "reversed"}),
    "full_100": Method("factorised, 100 games", "dipllm", {"games": 100}),
    "joint_100": Method("classifier, 100 games", "dipllm", {"games": 100, "student": "joint"}),
}
STEPS = {"duel": 400_000, "duel20": 1_200_000, "france_austria": 400_000, "standard": 400_000}
"""Positions of gradient steps. On the small map 1,500,000 were worse, on the larger one 1,200,000 were better."""
STANDARD: dict[str, Any] = {"games": 60, "rounds": 20, "hidden": (96, 96), "matches": 70}
"""Arguments on the standard map with seven powers: a phase takes longer, and the search plays each round anew."""
GROUPS: dict[str, tuple[Entry, ...]] = {
    "duel": tuple(Entry("duel", arm, STEPS["duel"]) for arm in METHODS),
    "duel20": tuple(Entry("duel20", arm, STEPS["duel20"]) for arm in METHODS if arm not in ("clone", "reversed")),
    "standard": tuple(
        Entry(place, "full", STEPS[place], arguments=more)
        for place, more in (("france_austria", {}), ("standard", STANDARD))
    ),
}
SHARP = 0.3
"""Temperature at which arms are compared beside 1."""
PLACES = {
    place: Place(f"map {place}, at temperature {SHARP}", env_id, column="score", label="score against the anchor")
    for place, env_id in IDS.items()
}
FEWEST, MOST = 80, 500
"""Plans of each power in positions where a policy is exploited."""
POSITIONS, GAMES, SEARCHES = 16, 4096, 32
"""Such positions, the games in which they are looked for, and searches whose mean is the teacher's policy."""


@dataclass(frozen=True)
class Pair:
    """Matches of one arm against another, by names such as ``full:0.3``, and the least share asked for."""

    one: str
    other: str
    least: float | None = None


PAIRS: dict[str, tuple[Pair, ...]] = {
    "duel": (
        Pair("teacher", "anchor", 0.88),
        Pair("full:1", "anchor", 0.85),
        Pair("full:0.3", "anchor", 0.95),
        Pair("full:1", "teacher", 0.45),
        Pair("full:0.3", "teacher", 0.65),
        Pair("full:1", "clone:1", 0.80),
        Pair("clone:1", "anchor"),
        Pair("reversed:1", "anchor"),
        Pair("full:0.3", "joint:0.3"),
        Pair("full:1", "joint:1"),
        Pair("full_100:0.3", "joint_100:0.3"),
        Pair("full:0.3", "full_100:0.3", 0.50),
        Pair("joint:0.3", "anchor"),
    ),
    "duel20": (
        Pair("teacher", "anchor"),
        Pair("full:1", "anchor"),
        Pair("full:0.3", "anchor"),
        Pair("full:1", "teacher"),
        Pair("full:0.3", "teacher"),
        Pair("full:0.3", "joint:0.3", 0.60),
        Pair("full_100:0.3", "joint_100:0.3", 0.65),
        Pair("full:1", "joint:1"),
        Pair("full:0.3", "full_100:0.3", 0.55),
        Pair("joint:0.3", "anchor"),
    ),
}
SCRIPTS = ("random", "province_value", "greedy_support", "search")

Player = Callable[[np.ndarray, Sequence[View], int, np.random.Generator], np.ndarray]
"""``player(records, views, power, rng)`` -> plans int64 ``[N, S]``."""


# -------------------------------------------------------------------------------------------------------------- players


class Arms:
    """The arms of a map and a seed as players.

    Attributes:
        terrain: Of the map.
        anchor: Of all arms.
        results: Asks the rules, with the value of the full arm.
    """

    def __init__(self, runs: Mapping[str, RunArgs], sim: Simulation) -> None:
        """Reads the policies.

        Args:
            runs: Of one seed, by arm.
            sim: Lanes for the search.
        """
        self.runs, self.terrain = runs, Terrain(sim.game)
        self.anchor = Anchor(self.terrain)
        arrays = read_policy(runs["full"].folder / WEIGHTS)[0]
        value = ValueNetwork(self.terrain.features)
        weights = {name.removeprefix("value."): torch.from_numpy(array) for name, array in arrays.items()}
        value.load_state_dict({name: weights[name] for name in value.state_dict()})
        self.results, self.search = Results(self.terrain, sim, value), Search()

    def source(self, arm: str, temperature: float) -> Any:
        """What draws the plans of an arm that was trained, or of the anchor."""
        if arm == "anchor":
            return OneByOne(self.anchor)
        team = next(iter(self.terrain.game.teams))
        source: Any = dipllm.load_policy(self.runs[arm].folder / WEIGHTS, self.terrain.game, team).source
        (source.network if hasattr(source, "network") else source.policy).temperature = temperature
        return source

    def player(self, name: str) -> Player:
        """The player of a name such as ``full:0.3``."""
        arm, _, temperature = name.partition(":")
        if arm == "teacher":
            return self.teach
        source = self.source(arm, float(temperature or 1.0))
        return lambda records, views, power, rng: source.draw(
            views[power], rng.random((len(records), self.terrain.slots))
        )

    def teach(self, records: np.ndarray, views: Sequence[View], power: int, rng: np.random.Generator) -> np.ndarray:
        """Plans of the teacher."""
        plans, weights = self.searched(records, views, rng)
        chosen = drawn(weights[power].cumsum(1), rng.random(len(records)))
        return plans[power][np.arange(len(records)), chosen]

    def searched(
        self, records: np.ndarray, views: Sequence[View], rng: np.random.Generator
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Plans ``[N, K, S]`` that the anchor drew, and policies over them ``[N, K]``, of both powers."""
        shape = (len(records), self.search.plans, self.terrain.slots)
        plans = [draw_plans(self.anchor, view, rng.random(shape)) for view in views]
        return plans, search_plans(self.results, records, plans, self.search, rng)


def play(id: str, one: Player, other: Player, matches: int, seed: int) -> tuple[np.ndarray, float, float]:
    """Matches of two players, half of them with the first as each power.

    Args:
        id: Registered id.
        one: Its points are counted.
        other: The other one.
        matches: How many.
        seed: Number of the run.

    Returns:
        Points of the matches, 1, 1/2 or 0; and processor time of a decision of both, in microseconds.
    """
    sim = registry.make_batch(id, matches, autoreset_mode="off")
    terrain, lanes, rng = Terrain(sim.game), np.arange(matches), np.random.default_rng([seed, 6])
    as_first, points = lanes < matches // 2, np.zeros(matches)
    spent_s, decisions = [0.0, 0.0], [0, 0]
    sim.reset(seed=np.uint64(seed << RUN_BITS) + (lanes % (matches // 2)).astype(np.uint64))
    while not sim.terminated.all():
        playing = ~sim.terminated
        views = views_of(terrain, sim)
        for power, who in product((0, 1), (0, 1)):
            rows = np.flatnonzero(playing & (as_first == (power == who)))
            some = [view.take(rows) for view in views]
            began_s = time.process_time()
            plans = (one, other)[who](sim.states[rows], some, power, rng) if len(rows) else 0
            spent_s[who] += time.process_time() - began_s
            decisions[who] += len(rows)
            actions: Any = sim.actions
            actions[rows, power] = plans
        sim.step()
        over = playing & sim.terminated
        points[over] = (np.sign(np.where(as_first, 1, -1) * sim.rewards[:, 0])[over] + 1.0) / 2.0
    sim.close()
    return points, *(1e6 * s / n for s, n in zip(spent_s, decisions, strict=True))  # type: ignore[return-value]


def pair_rows(place: str, seed: int, arms: Arms, pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """Results of pairs of arms."""
    rows = []
    for pair in pairs:
        one, other = arms.player(pair.one), arms.player(pair.other)
        points, one_us, other_us = play(IDS[place], one, other, MATCHES, EVALUATION_RUN + seed)
        row = {"map": place, "seed": seed, "one": pair.one, "other": pair.other, "score": float(points.mean())}
        row |= {"wins": float((points == 1.0).mean()), "losses": float((points == 0.0).mean())}
        rows.append({**row, "one_us": one_us, "other_us": other_us})
    return rows


def alone_us(arms: Arms, name: str, positions: int = 64) -> float:
    """Processor time of a decision that is made for one position at a time, in microseconds."""
    sims = [registry.make_batch(IDS["duel"], lanes, autoreset_mode="off") for lanes in (1, arms.search.plans**2)]
    sims[0].reset(seed=0)
    views, rng, together = views_of(arms.terrain, sims[0]), np.random.default_rng(8), arms.results
    arms.results = Results(arms.terrain, sims[1], together.value)  # no more lanes than one search fills
    player = arms.player(name)
    began_s = time.process_time()
    for _ in range(positions):
        player(sims[0].states, views, 0, rng)
    spent_s = time.process_time() - began_s
    arms.results = together
    for sim in sims:
        sim.close()
    return 1e6 * spent_s / positions


# --------------------------------------------------------------------------------------------------------- exploitation


def all_plans(view: View) -> np.ndarray:
    """All plans of a power in a position, int64 ``[1, I, S]``."""
    lists = [row[row >= 0].tolist() for row in view.lists[0]]
    return np.array(list(product(*lists)), np.int64)[None]


def countable_positions(arms: Arms, seed: int) -> list[tuple[np.ndarray, list[View]]]:
    """Positions of the anchor's games after the opening in which both powers have `FEWEST` to `MOST` plans, all unlike.

    Units that may support each other soon have more plans than that: few games have such positions.
    """
    sim, rng = registry.make_batch(IDS["duel"], GAMES, autoreset_mode="off"), np.random.default_rng([seed, 7])
    sim.reset(seed=np.uint64(EVALUATION_RUN << RUN_BITS) + np.arange(GAMES, dtype=np.uint64) + np.uint64(seed * GAMES))
    found: dict[bytes, tuple[np.ndarray, list[View]]] = {}
    while not sim.terminated.all() and len(found) < POSITIONS:
        views = views_of(arms.terrain, sim)
        counts = np.stack([(view.lists >= 0).sum(2).prod(1) for view in views])
        fits = ((counts >= FEWEST) & (counts <= MOST)).all(0) & ~sim.terminated & (sim.states["phase"] == MOVES)
        for lane in np.flatnonzero(fits & (sim.states["steps"] > 0)).tolist():
            key = sim.states["unit"][lane].tobytes() + sim.states["owner"][lane].tobytes()
            found.setdefault(key, (sim.states[[lane]], [view.take([lane]) for view in views]))
        actions: Any = sim.actions
        for power, view in enumerate(views):
            actions[:, power] = OneByOne(arms.anchor).draw(view, rng.random((GAMES, arms.terrain.slots)))
        sim.step()
    sim.close()
    return list(found.values())[:POSITIONS]


def exploitation_rows(seed: int, arms: Arms) -> list[dict[str, Any]]:
    """NashConv of the anchor, the student at both temperatures, and the teacher, by position; the value is fixed."""
    rows, rng = [], np.random.default_rng([seed, 9])
    policies = {name: arms.source(*(name.split(":")[0], float(name.split(":")[1]))).policy for name in STUDENTS}
    for number, (records, views) in enumerate(countable_positions(arms, seed)):
        plans = [all_plans(view) for view in views]
        values = payoffs(arms.results, records, plans)[..., 0]
        row: dict[str, Any] = {"seed": seed, "position": number, "plans": f"{plans[0].shape[1]}x{plans[1].shape[1]}"}
        for name, policy in {"anchor": arms.anchor, **policies}.items():
            played = [np.exp(log_probabilities(policy, v, p)) for v, p in zip(views, plans, strict=True)]
            row[name] = float(nash_conv(values, *played)[0])
        row["teacher"] = float(nash_conv(values, *mean_teacher(arms, records, views, plans, rng))[0])
        rows.append(row)
    return rows


STUDENTS = ("full:1", f"full:{SHARP}")


def mean_teacher(
    arms: Arms, records: np.ndarray, views: Sequence[View], plans: Sequence[np.ndarray], rng: np.random.Generator
) -> list[np.ndarray]:
    """The teacher's policy over all plans, mean of `SEARCHES` searches, ``[1, I]`` and ``[1, J]``."""
    again = [View(*(np.repeat(x, SEARCHES, 0) for x in (v.features, v.phase, v.units, v.lists))) for v in views]
    tried, weights = arms.searched(np.repeat(records, SEARCHES), again, rng)
    means = []
    for every, some, weight in zip(plans, tried, weights, strict=True):
        number = {tuple(plan): k for k, plan in enumerate(every[0].tolist())}
        index = [number[tuple(plan)] for plan in some.reshape(-1, some.shape[2]).tolist()]
        means.append(np.bincount(index, weight.reshape(-1) / SEARCHES, minlength=every.shape[1])[None])
    return means


# -------------------------------------------------------------------------------------------------------------- figures


def all_rows(study: Study, made: Made) -> Rows:
    """Results against scripts, and on some maps those of the arms against each other."""
    torch.set_num_threads(1)
    rows, group = script_rows(made.runs), study.entries[0].place
    return rows + arm_rows(group, made.runs, made.args) if group in PAIRS else rows


def arm_rows(group: str, runs: Mapping[Any, Sequence[RunArgs]], args: FigureArgs) -> list[dict[str, Any]]:
    """Results of the arms of a map against each other; on the small map how far they can be exploited, too."""
    rows, exploited = [], []
    sim = registry.make_batch(IDS[group], TRIALS, autoreset_mode="off")
    for seed in range(args.seeds):
        arms = Arms({arm: made[seed] for (_, arm), made in runs.items()}, sim)
        rows += pair_rows(group, seed, arms, PAIRS[group])
        print("\n".join(pair_lines(rows[-len(PAIRS[group]) :], PAIRS[group])), flush=True)
        if group == "duel":
            exploited += exploitation_rows(seed, arms)
            times = {name: alone_us(arms, name) for name in ("teacher", "full:1")}
            print(f"one position at a time: {', '.join(f'{name} {us:.0f} us' for name, us in times.items())}")
    sim.close()
    if exploited:
        figures.write_rows(args.figures / "dipllm_exploited.csv", exploited)
        print("\n".join(exploitation_lines(exploited)))
    print("\n".join(["", *mean_lines(rows, PAIRS[group])]))
    return rows


def script_rows(runs: Mapping[Any, Sequence[RunArgs]]) -> list[dict[str, Any]]:
    """Points of the student and of the anchor, one against all others, the anchor or a script."""
    rows = []
    for (place, arm), made in runs.items():
        if arm != "full":
            continue
        game, _ = registry.make_game(IDS[place])
        anchors: dict[str, Any] = {team: dipllm.anchor_player(game, team) for team in game.teams}
        players: list[tuple[str, int | str, dict[str, Any]]] = [("anchor", "", anchors)]
        for run in made:
            learnt: dict[str, Any] = {t: dipllm.load_policy(run.folder / WEIGHTS, game, t) for t in game.teams}
            players.append(("student", run.seed, learnt))
        scripts = SCRIPTS if len(game.teams) == 2 else SCRIPTS[:-1]  # six that search take half an hour
        for (name, seed, one), other in product(players, ("anchor", *scripts)):
            others = anchors if other == "anchor" else dict.fromkeys(game.teams, other)
            points = one_against_others(IDS[place], {}, one, others, MATCHES, EVALUATION_RUN)
            row = {"map": place, "seed": seed, "one": name, "other": other, "score": float(points.mean())}
            rows.append({**row, "half": 1.96 * float(points.std()) / len(points) ** 0.5})
            text = "{map:16s}{seed!s:2s}  {one:8s} against {other:16s} {score:.3f} +- {half:.3f}"
            print(text.format(**rows[-1]), flush=True)
    return rows


def pair_lines(rows: Sequence[Mapping[str, Any]], pairs: Sequence[Pair]) -> Iterator[str]:
    """A line of text for each result, with what was asked."""
    for row, pair in zip(rows, pairs, strict=True):
        asked = [] if pair.least is None else [(f"at least {pair.least:g}", row["score"] >= pair.least)]
        text = "{map:8s}{seed:2d}  {one:14s} against {other:14s} {score:.3f}, won {wins:.3f}, lost {losses:.3f}"
        yield text.format(**row) + "  {one_us:.0f} and {other_us:.0f} us".format(**row) + figures.verdicts(asked)


def mean_lines(rows: Sequence[Mapping[str, Any]], pairs: Sequence[Pair]) -> Iterator[str]:
    """The means over seeds."""
    for pair in pairs:
        scores = [row["score"] for row in rows if (row["one"], row["other"]) == (pair.one, pair.other)]
        asked = [] if pair.least is None else [(f"at least {pair.least:g}", float(np.mean(scores)) >= pair.least)]
        told = " ".join(f"{score:.3f}" for score in scores)
        yield f"{pair.one:14s} against {pair.other:14s} {np.mean(scores):.3f} ({told})" + figures.verdicts(asked)


def exploitation_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Mean NashConv of each policy over that of the anchor."""
    anchor = np.mean([row["anchor"] for row in rows])
    most = {"full:1": 0.85, "teacher": 0.75}
    yield f"NashConv in {len(rows)} positions: anchor {anchor:.3f}"
    for name in (*STUDENTS, "teacher"):
        ratio = float(np.mean([row[name] for row in rows]) / anchor)
        asked = [(f"at most {most[name]:g}", ratio <= most[name])] if name in most else []
        yield f"{name:14s}{ratio:.2f} of the anchor's" + figures.verdicts(asked)


FIGURES = tuple(
    Study(
        f"dipllm_{group}",
        entries,
        METHODS,
        PLACES,
        columns=("map", "method"),
        panels=panel_per_place if group in PAIRS else None,
        results=all_rows,
        lines=lambda *_: (),
    )
    for group, entries in GROUPS.items()
)
