"""The figures of methods on graphs, made by ``python benchmarks/learn.py pursuit``.

A team learns against a script. A table of entries says which method learns where for how many decisions, and what is
asked of the median of its seeds. Each group of entries is a figure:

``pursuit_grid``      ARAC, what it is compared with, and MAPPO: two pursuers on a grid against an optimal evader
``pursuit_arms``      the parts of ARAC one at a time, and weights of the reference, on a larger grid (``--seeds 5``)
``pursuit_optimal``   adaptive against fixed weight of a perfect reference
``pursuit_teams``     one network for teams whose size is drawn in each match, also for a size that it has not learnt
``pursuit_dungeons``  learnt on dungeons of 100 nodes, played on new ones of 200
``pursuit_confront``  ARAC against MAPPO on GraphConfront, each learnt against the same script
``pursuit_references``  the references and other scripts alone in the same matches; nothing learns

A figure trains the runs that are missing, plays `TEST_MATCHES` new matches with each, and writes the curves
(``pursuit_grid.csv``, ``.png``, ``.svg``) and the results (``pursuit_grid_results.csv``). Where the game is solved,
matches start where optimal pursuers win, so that 1 is the most that is possible, and the moves that captures took are
compared with those of optimal play.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from learning import drawing, figures
from learning.figures import FigureArgs, Logs, Method, Runs
from learning.study import Entry, Figure, Made, Place, Rows, Study, asked_of, median, won_per_place
from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.evaluation import EVALUATION_RUN, evaluate
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.rollout import RUN_BITS
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs
from palaestra_baselines.common.training import play_both_sides

TEST_MATCHES = 4096
GRAPH = "palaestra/GraphPursuit-v0"
SOLVED = ("order=alternating", "starts=winnable", "solve=True")
DRAWN_TEAMS = ("order=alternating", "graph=torus:8x8", "pursuers=4", "fewest_pursuers=2")


EVADED: dict[str, Any] = {"team": "pursuer", "opponent": "optimal", "scripts": ("shortest_path", "optimal")}
FLED: dict[str, Any] = {"team": "pursuer", "opponent": "flee", "scripts": ("shortest_path",)}
FOUGHT: dict[str, Any] = {"team": "red", "opponent": "focus_fire", "scripts": ("greedy", "focus_fire")}
PLACES = {
    "grid": Place("grid of 10 x 10 nodes, 2 pursuers", "palaestra/GraphPursuit-Grid10-v0", **EVADED),
    "grid16": Place("grid of 16 x 16 nodes, 2 pursuers", GRAPH, (*SOLVED, "graph=grid:16x16"), **EVADED),
    "teams": Place(
        "torus of 8 x 8 nodes, 2 to 4 pursuers",
        GRAPH,
        DRAWN_TEAMS,
        tests={
            **{
                f"{k} pursuers, torus of {size}, starts that win": (
                    "optimal",
                    (*SOLVED, f"graph=torus:{size}", f"pursuers={k}"),
                )
                for k, size in ((2, "8x8"), (3, "8x8"), (4, "5x5"))
            },
            "6 pursuers": ("flee", ("order=alternating", "graph=torus:8x8", "pursuers=6")),
        },
        **FLED,
    ),
    "dungeons": Place(
        "64 dungeons of 100 nodes, 2 pursuers",
        GRAPH,
        (*SOLVED, "graph=dungeons:64x100"),
        tests={"20 new dungeons of 200 nodes": ("optimal", (*SOLVED, "graph=dungeons:20x200:1"))},
        **EVADED,
    ),
    "confront": Place("GraphConfront, 3 against 3", "palaestra/GraphConfront-v0", **FOUGHT),
}

NODES = ("observation=nodes",)
METHODS: dict[str, Method] = {
    "arac": Method("ARAC", "arac", {}, NODES),
    "fixed": Method("fixed weight 0.03", "arac", {"beta": "fixed"}, NODES),
    "linear": Method("linear weight", "arac", {"beta": "linear"}, NODES),
    "published": Method("fixed weight 0.1", "arac", {"beta": "fixed", "beta_first": 0.1}, NODES),
    "fixed_least": Method("fixed weight 0.003", "arac", {"beta": "fixed", "beta_first": 0.003}, NODES),
    "fixed_middle": Method("fixed weight 0.01", "arac", {"beta": "fixed", "beta_first": 0.01}, NODES),
    "lanes": Method("lanes, no divergence", "arac", {"beta": "lanes"}, NODES),
    "divergence": Method("divergence, no lanes", "arac", {"beta": "fixed", "reference_share": 0.0}, NODES),
    "none": Method("MASAC, no reference", "arac", {"beta": "none"}, NODES),
    "independent": Method("ARAC, agents decide at once", "arac", {"decoder": "independent"}, NODES),
    "mappo": Method("MAPPO", "mappo", {"gamma": 0.97, "lanes": 128}),
    "mappo_long": Method("MAPPO, 4 M decisions", "mappo", {"gamma": 0.97, "lanes": 128}),
}
"""Method by the name that entries give it.

0.1 is the fixed weight of EPG (arXiv 2511.00811), 0.03 the best that we found for fixed and for adaptive weights
(tried: 0.01, 0.03, 0.1). Of MAPPO, discounts of 0.95, 0.97 and 0.99 and entropies of 0.003 to 0.1 made no difference on
the grid.
"""


STEPS = 400_000
FEWER_STEPS = 240_000
ARMS = ("arac", "fixed_least", "fixed_middle", "fixed", "linear", "none", "lanes", "divergence")
ARM_STEPS = 200_000
STEADY: dict[str, Any] = {"entropy": (0.002, 0.0005), "play": "drawn"}
"""Arguments of all arms: greedy play goes in circles in a part of the matches that changes from one evaluation to the
next, and draws need policies of low entropy."""
REACHED, LAST = 0.8, 4
"""Share of won matches after which falls count, and evaluations at the end whose mean is told."""
AHEAD = {"fixed": 0.05, "published": 0.05}
PERFECT: dict[str, Any] = {"reference": "optimal"}
GROUPS: dict[str, tuple[Entry, ...]] = {
    "grid": (
        Entry("grid", "arac", STEPS, bar=0.9, minutes=6.0, slower=1.4, ahead=AHEAD, weights="pursuit_grid10"),
        Entry("grid", "fixed", STEPS),
        Entry("grid", "published", STEPS),
        Entry("grid", "linear", STEPS),
        Entry("grid", "none", STEPS),
        Entry("grid", "independent", STEPS),
        Entry("grid", "mappo", STEPS),
    ),
    "arms": tuple(
        Entry("grid16", arm, ARM_STEPS, fall=0.15 if arm == "arac" else None, arguments=STEADY) for arm in ARMS
    ),
    "optimal": (
        Entry("grid", "arac", FEWER_STEPS, ahead={"fixed": -0.02}, arguments=PERFECT),
        Entry("grid", "fixed", FEWER_STEPS, arguments=PERFECT),
    ),
    "teams": (Entry("teams", "arac", STEPS, spread=0.1),),
    "dungeons": (Entry("dungeons", "arac", 100_000, bar=0.8, weights="pursuit_dungeons"),),
    "confront": (
        Entry("confront", "arac", 150_000, bar=0.55),
        Entry("confront", "mappo", 150_000),
        Entry("confront", "mappo_long", 4_000_000),
    ),
}
"""Entries by group; a group has one of a method and a setting."""
LEARNS: dict[str, Any] = {"evaluations": 10, "matches": 512}
"""Arguments of all runs."""


def all_results(study: Study, made: Made) -> Rows:
    """Results of all runs in all tests, and on GraphConfront against each other."""
    rows = [
        {**costs(entry, run, log), **result}
        for entry, run, log in made.each(study.entries)
        for result in results_of(entry, run)
    ]
    others = [entry.method for entry in study.entries if entry.place == "confront" and entry.method != "arac"]
    return [*rows, *(row for method in others for row in head_to_head(made.runs, method))]


def curve_panels(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """The curves of all methods, and the bars that are asked; the title names the game and the reference."""
    (panel,), first = won_per_place(study, rows), study.entries[0]
    place, reference = PLACES[first.place], first.arguments.get("reference")
    game = place.env_id.removeprefix("palaestra/").partition("-")[0]
    told = f", reference: {reference}" if reference else ""
    return [replace(panel, title=f"{game}{told}\n{place.title.removeprefix(f'{game}, ')}")]


def costs(entry: Entry, run: RunArgs, log: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """First columns of a result."""
    return {
        "setting": entry.place,
        "where": PLACES[entry.place].title,
        "method": entry.method,
        "title": METHODS[entry.method].title,
        "reference": "" if getattr(run, "beta", "none") == "none" else getattr(run, "reference", ""),
        "seed": run.seed,
        "decisions": int(log[-1]["steps"]),
        "cpu_s": log[-1]["cpu_s"],
    }


def results_of(entry: Entry, run: RunArgs) -> list[dict[str, Any]]:
    """Results of a run in new matches of each test."""
    place, more, player = PLACES[entry.place], METHODS[entry.method].options, str(run.folder / WEIGHTS)
    return [
        {"test": name, "opponent": opponent, **play_matches(place, opponent, (*options, *more), player)}
        for name, (opponent, options) in place.played.items()
    ]


def pursuit_references(args: FigureArgs) -> None:
    """Shares of the same matches that scripts and random choices win in the place of learnt teams."""
    rows = []
    for name, place in PLACES.items():
        for script, (test, (opponent, options)) in itertools.product(("random", *place.scripts), place.played.items()):
            played = play_matches(place, opponent, options, script)
            told = {"setting": name, "where": place.title, "script": script, "test": test}
            rows.append({**told, "opponent": opponent, **played})
            print(f"{place.title:40s}{script:>14s}  {played['won']:.3f}  {test}", flush=True)
    figures.write_rows(args.figures / "pursuit_references.csv", rows)


def play_matches(place: Place, opponent: str, options: tuple[str, ...], player: Any) -> dict[str, float]:
    """Share of new matches that a player wins against a script, and moves of its captures over those of optimal play.

    The moves are 0 where optimal play is unknown.
    """
    given = keywords(options)
    game, _ = registry.make_game(place.env_id, **given)
    if not game.world.rules.solved:
        pair = (player, opponent) if place.team == next(iter(game.teams)) else (opponent, player)
        table = evaluate(place.env_id, *pair, matches=TEST_MATCHES, swap=False, num_envs=512, **given)
        return {"won": table.wins / table.matches, "slower": 0.0}
    teams = {place.team: player, **{team: opponent for team in game.teams if team != place.team}}
    sim = registry.make_batch(place.env_id, TEST_MATCHES, autoreset_mode="off", opponents=teams, **given)
    sim.reset(seed=EVALUATION_RUN << RUN_BITS)
    best = optimal_moves(sim)
    while not (sim.terminated | sim.truncated).all():
        sim.step()
    moves, won = (sim.states["steps"] + 1) // 2, sim.terminated
    sim.close()
    return {"won": float(won.mean()), "slower": float(moves[won].sum() / best[won].sum()) if won.any() else 0.0}


def optimal_moves(sim: Simulation) -> np.ndarray:
    """Moves of optimal pursuers from the positions of all lanes, int64 ``[N]``."""
    world, states = sim.game.world, sim.states
    nodes = states["node"][:, : len(sim.game.agents)]
    index = np.ravel_multi_index(tuple(nodes.T), (world.hops.shape[1],) * nodes.shape[1])
    return world.times[states["graph"], index].astype(np.int64)


def head_to_head(runs: Runs, other: str) -> list[dict[str, Any]]:
    """Matches of ARAC against another method, seed by seed, both of both sides."""
    place, rows = PLACES["confront"], []
    options = keywords((*place.options, *METHODS["arac"].options))
    for pair in zip(runs["confront", "arac"], runs["confront", other], strict=True):
        files = [str(run.folder / WEIGHTS) for run in pair]
        table = play_both_sides(place.env_id, *files, matches=TEST_MATCHES, num_envs=512, **options)
        rows.append(
            {
                "setting": "confront",
                "where": place.title,
                "method": "arac",
                "title": METHODS["arac"].title,
                "reference": getattr(pair[0], "reference", ""),
                "seed": pair[0].seed,
                "decisions": 0,
                "cpu_s": 0.0,
                "test": f"against {METHODS[other].title}",
                "opponent": METHODS[other].title,
                "won": table.score,
                "slower": 0.0,
            }
        )
    return rows


def result_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """A line of text for each run and test; then medians over the seeds beside what the entries ask for."""
    yield f"{'method':28s}{'seed':>5s}{'decisions':>11s}{'processor s':>13s}{'won':>8s}{'moves':>8s}  test"
    for row in rows:
        cost = f"{row['seed']:5d}{row['decisions']:11d}{row['cpu_s']:13.1f}"
        moves = f"{row['slower']:7.2f}x" if row["slower"] else f"{'-':>8s}"
        yield f"{METHODS[row['method']].title:28s}{cost}{row['won']:8.3f}{moves}  {row['test']}"
    yield "\nmedians of the seeds, and what is asked:"
    yield from median_lines(study, rows, made.logs)


def median_lines(study: Study, rows: Rows, logs: Logs) -> Iterator[str]:
    """Medians over the seeds beside what the entries ask for."""
    for entry in study.entries:
        own, curves = [row for row in rows if row["method"] == entry.method], logs[entry.key]
        shares = {test: median(own, "won", test=test) for test in dict.fromkeys(row["test"] for row in own)}
        half, last = steps_to(curves, 0.5), np.median([np.mean([r["win_rate"] for r in log[-LAST:]]) for log in curves])
        for test, won in shares.items():
            slower, minutes = median(own, "slower", test=test), median(own, "cpu_s", test=test) / 60
            of = lambda other, test=test: median(rows, "won", method=other, test=test)  # noqa: E731
            asked = asked_of(study, entry, won, minutes, of)
            if entry.slower is not None:
                asked.append((f"at most {entry.slower:g}x the moves", slower <= entry.slower))
            if entry.spread is not None:
                spread = max(shares.values()) - min(shares.values())
                asked.append((f"tests at most {entry.spread:.2f} apart ({spread:.2f})", spread <= entry.spread))
            if entry.fall is not None:
                fall = max(map(largest_fall, curves))
                asked.append((f"no seed falls more than {entry.fall:.2f} ({fall:.2f})", fall <= entry.fall))
            pace = "never" if np.isinf(half) else f"{half:,.0f}"
            moves = f"{slower:.2f}x moves  " if slower else ""
            facts = f"won {won:.3f}  {moves}{minutes:.1f} min  half after {pace}  last {LAST} {last:.3f}"
            yield f"{METHODS[entry.method].title:28s}{test:30s}{facts}{figures.verdicts(asked)}"


def steps_to(logs: Sequence[Sequence[Mapping[str, float]]], share: float) -> float:
    """Decisions until evaluations reach a share of won matches, the median of the seeds; infinite if they do not."""
    first = [next((row["steps"] for row in log if row["win_rate"] >= share), np.inf) for log in logs]
    return float(np.median(first))


def largest_fall(log: Sequence[Mapping[str, float]]) -> float:
    """Most that an evaluation is under an earlier one, from the first one that reaches `REACHED` on; 0 without one."""
    rates = np.array([row["win_rate"] for row in log])
    after = rates[int((rates >= REACHED).argmax()) :] if (rates >= REACHED).any() else rates[:0]
    return float((np.maximum.accumulate(after) - after).max(initial=0.0))


STUDIES = {
    group: Study(
        f"pursuit_{group}",
        entries,
        METHODS,
        PLACES,
        LEARNS,
        panels=curve_panels,
        results=all_results,
        lines=result_lines,
        is_kept=group != "arms",
    )
    for group, entries in GROUPS.items()
}
FIGURES = (*STUDIES.values(), Figure("pursuit_references", pursuit_references))
