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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from learning import drawing, figures
from learning.figures import FigureArgs, Logs, Method, Runs
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


@dataclass(frozen=True)
class Setting:
    """Where a team learns.

    Attributes:
        title: In figures.
        env_id: Environment.
        options: Keywords of the game.
        team: The team that learns.
        opponent: Script that plays the other.
        tests: Script of the other team and keywords of the game of each test, by its name in the results; those of the
            training if empty.
        scripts: Those that a learnt team is compared with, beside random legal choices.
    """

    title: str
    env_id: str
    options: tuple[str, ...] = ()
    team: str = "pursuer"
    opponent: str = "optimal"
    tests: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    scripts: tuple[str, ...] = ("shortest_path",)

    @property
    def played(self) -> Mapping[str, tuple[str, tuple[str, ...]]]:
        """The tests, or the training where there are none."""
        return self.tests or {"as learnt": (self.opponent, self.options)}


SETTINGS: dict[str, Setting] = {
    "grid": Setting(
        "grid of 10 x 10 nodes, 2 pursuers",
        "palaestra/GraphPursuit-Grid10-v0",
        scripts=("shortest_path", "optimal"),
    ),
    "grid16": Setting(
        "grid of 16 x 16 nodes, 2 pursuers",
        GRAPH,
        (*SOLVED, "graph=grid:16x16"),
        scripts=("shortest_path", "optimal"),
    ),
    "teams": Setting(
        "torus of 8 x 8 nodes, 2 to 4 pursuers",
        GRAPH,
        DRAWN_TEAMS,
        opponent="flee",
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
    ),
    "dungeons": Setting(
        "64 dungeons of 100 nodes, 2 pursuers",
        GRAPH,
        (*SOLVED, "graph=dungeons:64x100"),
        tests={"20 new dungeons of 200 nodes": ("optimal", (*SOLVED, "graph=dungeons:20x200:1"))},
        scripts=("shortest_path", "optimal"),
    ),
    "confront": Setting(
        "GraphConfront, 3 against 3",
        "palaestra/GraphConfront-v0",
        team="red",
        opponent="focus_fire",
        scripts=("greedy", "focus_fire"),
    ),
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


@dataclass(frozen=True)
class Entry(figures.Entry):
    """Runs of a method in a setting, see `SETTINGS`.

    Attributes:
        slower: Most moves of captures over those of optimal play.
        spread: Most difference between the shares of its tests.
        fall: Most that an evaluation of any seed may be under an earlier one, see `largest_fall`.
    """

    slower: float | None = None
    spread: float | None = None
    fall: float | None = None


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
PICTURED = tuple(group for group in GROUPS if group != "arms")
"""Groups whose tables are kept in docs/figures: their pictures can be drawn again."""


def run_of(entry: Entry, seed: int, directory: Path, **more: Any) -> RunArgs:
    """Arguments of one run of an entry.

    Args:
        entry: The entry.
        seed: Of the run.
        directory: Its folder.
        **more: Arguments that decide nothing, ``quiet`` for one.
    """
    method, setting = METHODS[entry.method], SETTINGS[entry.place]
    given = {
        "env_id": setting.env_id,
        "options": (*setting.options, *method.options),
        "team": setting.team,
        "opponent": setting.opponent,
        "evaluations": 10,
        "matches": 512,
        **method.arguments,
        **entry.arguments,
        **more,
    }
    return method.make_args(**given, total_steps=entry.steps, seed=seed, directory=directory)


def pursuit_figure(group: str, args: FigureArgs) -> None:
    """Share of matches that learnt teams win, over decisions and at the end."""
    entries = GROUPS[group]
    runs = figures.train_entries(f"pursuit_{group}", entries, METHODS, run_of, args)
    logs, folder = figures.read_logs(runs), args.figures
    figures.write_rows(folder / f"pursuit_{group}.csv", figures.curve_rows(logs, "setting", "method"))
    draw_pursuit(group, folder)
    results = [
        {**costs(entry, run, log), **result}
        for entry in entries
        for run, log in zip(runs[entry.key], logs[entry.key], strict=True)
        for result in results_of(entry, run)
    ]
    if group == "confront":
        results += [row for entry in entries if entry.method != "arac" for row in head_to_head(runs, entry.method)]
    for entry in entries:
        if entry.weights:
            figures.install_best(runs[entry.key], logs[entry.key], args.assets, entry.weights)
    figures.write_rows(folder / f"pursuit_{group}_results.csv", results)
    print("\n".join([*result_lines(results), "", *median_lines(entries, results, logs)]))


def draw_pursuit(group: str, folder: Path) -> None:
    """Draws the curves of all methods of a group, and the bars that are asked."""
    table, first = folder / f"pursuit_{group}.csv", GROUPS[group][0]
    setting, reference = SETTINGS[first.place], first.arguments.get("reference")
    game = setting.env_id.removeprefix("palaestra/").partition("-")[0]
    told = f", reference: {reference}" if reference else ""
    title = f"{game}{told}\n{setting.title.removeprefix(f'{game}, ')}"
    runs = drawing.group_runs(drawing.read_table(table), "method")
    bars = [entry.bar for entry in GROUPS[group] if entry.bar is not None]
    curves = {METHODS[method].title: made for method, made in runs.items()}
    drawing.draw(table, [drawing.win_rate_panel(title, setting.opponent, curves, bars)])


def costs(entry: Entry, run: RunArgs, log: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """First columns of a result."""
    return {
        "setting": entry.place,
        "where": SETTINGS[entry.place].title,
        "method": entry.method,
        "title": METHODS[entry.method].title,
        "reference": "" if getattr(run, "beta", "none") == "none" else getattr(run, "reference", ""),
        "seed": run.seed,
        "decisions": int(log[-1]["steps"]),
        "cpu_s": log[-1]["cpu_s"],
    }


def results_of(entry: Entry, run: RunArgs) -> list[dict[str, Any]]:
    """Results of a run in new matches of each test."""
    setting, method = SETTINGS[entry.place], METHODS[entry.method]
    return [
        {
            "test": name,
            "opponent": opponent,
            **play_matches(setting, opponent, (*options, *method.options), str(run.folder / WEIGHTS)),
        }
        for name, (opponent, options) in setting.played.items()
    ]


def pursuit_references(args: FigureArgs) -> None:
    """Shares of the same matches that scripts and random choices win in the place of learnt teams."""
    rows = []
    for name, setting in SETTINGS.items():
        for script, (test, (opponent, options)) in itertools.product(
            ("random", *setting.scripts), setting.played.items()
        ):
            played = play_matches(setting, opponent, options, script)
            told = {"setting": name, "where": setting.title, "script": script, "test": test}
            rows.append({**told, "opponent": opponent, **played})
            print(f"{setting.title:40s}{script:>14s}  {played['won']:.3f}  {test}", flush=True)
    figures.write_rows(args.figures / "pursuit_references.csv", rows)


def play_matches(setting: Setting, opponent: str, options: tuple[str, ...], player: Any) -> dict[str, float]:
    """Share of new matches that a player wins against a script, and moves of its captures over those of optimal play.

    The moves are 0 where optimal play is unknown.
    """
    given = keywords(options)
    game, _ = registry.make_game(setting.env_id, **given)
    if not game.world.rules.solved:
        pair = (player, opponent) if setting.team == next(iter(game.teams)) else (opponent, player)
        table = evaluate(setting.env_id, *pair, matches=TEST_MATCHES, swap=False, num_envs=512, **given)
        return {"won": table.wins / table.matches, "slower": 0.0}
    teams = {setting.team: player, **{team: opponent for team in game.teams if team != setting.team}}
    sim = registry.make_batch(setting.env_id, TEST_MATCHES, autoreset_mode="off", opponents=teams, **given)
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
    setting, rows = SETTINGS["confront"], []
    options = keywords((*setting.options, *METHODS["arac"].options))
    for pair in zip(runs["confront", "arac"], runs["confront", other], strict=True):
        files = [str(run.folder / WEIGHTS) for run in pair]
        table = play_both_sides(setting.env_id, *files, matches=TEST_MATCHES, num_envs=512, **options)
        rows.append(
            {
                "setting": "confront",
                "where": setting.title,
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


def result_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line of text for each run and test."""
    lines = [f"{'method':28s}{'seed':>5s}{'decisions':>11s}{'processor s':>13s}{'won':>8s}{'moves':>8s}  test"]
    for row in rows:
        cost = f"{row['seed']:5d}{row['decisions']:11d}{row['cpu_s']:13.1f}"
        moves = f"{row['slower']:7.2f}x" if row["slower"] else f"{'-':>8s}"
        lines.append(f"{METHODS[row['method']].title:28s}{cost}{row['won']:8.3f}{moves}  {row['test']}")
    return lines


def median_lines(entries: Sequence[Entry], rows: Sequence[Mapping[str, Any]], logs: Logs) -> list[str]:
    """Medians over the seeds beside what the entries ask for."""
    lines = ["medians of the seeds, and what is asked:"]
    for entry in entries:
        own = [row for row in rows if row["method"] == entry.method]
        tests = list(dict.fromkeys(row["test"] for row in own))
        shares = [median(own, test, "won") for test in tests]
        for test in tests:
            won, slower = (median(own, test, column) for column in ("won", "slower"))
            minutes, half = median(own, test, "cpu_s") / 60, steps_to(logs[entry.key], 0.5)
            last = float(np.median([np.mean([row["win_rate"] for row in log[-LAST:]]) for log in logs[entry.key]]))
            asked = []
            if entry.bar is not None:
                asked.append((f"at least {entry.bar:.2f}", won >= entry.bar))
            if entry.minutes is not None:
                asked.append((f"at most {entry.minutes:g} min", minutes <= entry.minutes))
            if entry.slower is not None:
                asked.append((f"at most {entry.slower:g}x the moves", slower <= entry.slower))
            if entry.spread is not None:
                spread = max(shares) - min(shares)
                what = f"tests at most {entry.spread:.2f} apart ({spread:.2f})"
                asked.append((what, spread <= entry.spread))
            if entry.fall is not None:
                fall = max(largest_fall(log) for log in logs[entry.key])
                asked.append((f"no seed falls more than {entry.fall:.2f} ({fall:.2f})", fall <= entry.fall))
            for other, lead in entry.ahead.items():
                over = won - median([row for row in rows if row["method"] == other], test, "won")
                asked.append((f"{lead:+.2f} over {METHODS[other].title} ({over:+.2f})", over >= lead))
            pace = "never" if np.isinf(half) else f"{half:,.0f}"
            moves = f"{slower:.2f}x moves  " if slower else ""
            facts = f"won {won:.3f}  {moves}{minutes:.1f} min  half after {pace}  last {LAST} {last:.3f}"
            lines.append(f"{METHODS[entry.method].title:28s}{test:30s}{facts}{figures.verdicts(asked)}")
    return lines


def median(rows: Iterable[Mapping[str, Any]], test: str, column: str) -> float:
    """Median of a column over the seeds in a test."""
    return float(np.median([row[column] for row in rows if row["test"] == test]))


def steps_to(logs: Sequence[Sequence[Mapping[str, float]]], share: float) -> float:
    """Decisions until evaluations reach a share of won matches, the median of the seeds; infinite if they do not."""
    first = [next((row["steps"] for row in log if row["win_rate"] >= share), np.inf) for log in logs]
    return float(np.median(first))


def largest_fall(log: Sequence[Mapping[str, float]]) -> float:
    """Most that an evaluation is under an earlier one, from the first one that reaches `REACHED` on; 0 without one."""
    rates = np.array([row["win_rate"] for row in log])
    after = rates[int((rates >= REACHED).argmax()) :] if (rates >= REACHED).any() else rates[:0]
    return float((np.maximum.accumulate(after) - after).max(initial=0.0))
