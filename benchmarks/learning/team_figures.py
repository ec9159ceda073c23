"""The figures of the learners of two-team zero-sum games, made by `learn`.

``fm3q_exact``    where FM3Q is exact and where it is not: exploitability of the three mixers, as tables on the matrix
                  games and as networks on two-against-two soccer in alternating order
``fm3q_limit``    its limit where play is simultaneous and the best policy mixes
``fm3q_features`` FM3Q with and without an auxiliary loss for the features of its utility networks
``team_learning`` FM3Q with the monotone mixer and with the difference of sums, VDN and IQL in self-play, evaluated
                  against scripts and against each other
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from learning import drawing, fm3q_tables
from learning.figures import Method, Runs, bootstrap_interval, curve_rows
from learning.study import Entry, Made, Place, Rows, Study, won_per_place
from palaestra import exact
from palaestra.core.run.opponents import Opponent
from palaestra.evaluation import wilson_interval
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.flat_networks import UtilityPlayer
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs
from palaestra_baselines.common.training import play_both_sides

MIXERS: dict[Literal["monotone", "vdn", "pairwise"], str] = {
    "monotone": "FM3Q",
    "vdn": "FM3Q, sums",
    "pairwise": "FM3Q, pairwise",
}
"""Name of FM3Q in pictures by its mixer."""
TABLES = ("saddle", "climb", "nonmonotone", "pennies", "repeated")
"""Matrix games of tabular FM3Q, one round each."""
EXACT: dict[str, Any] = {"gamma": 0.9, "random_starts": True, "epsilon": (1.0, 0.2), "updates": 1, "batch_size": 512}
SOCCER = Place(
    "TeamGridSoccer-3x3, alternating order",
    "palaestra/TeamGridSoccer-3x3-v0",
    ("order=alternating",),
    arguments={**EXACT, "hidden": (128, 128)},
)
LITTMAN = Place("GridSoccer", "palaestra/GridSoccer-v0", arguments={**EXACT, "hidden": (64, 64)})
SOCCER_STEPS, LITTMAN_STEPS = 3_000_000, 1_000_000
GAMES = {
    "team_pong": Place(
        "TeamPong",
        "palaestra/TeamPong-v0",
        opponent="tracker:0.8",
        arguments={"gamma": 0.99, "updates": 3, "batch_size": 256},
    ),
    "team_tag": Place(
        "TeamTag-2v2",
        "palaestra/TeamTag-2v2-v0",
        opponent="default:0.5",
        arguments={"gamma": 0.95, "updates": 4, "batch_size": 512, "hidden": (128, 128), "epsilon_until": 0.5},
    ),
}
"""Where all methods are compared by the same arguments."""
GAME_STEPS = {"team_pong": 1_500_000, "team_tag": 1_100_000}
METHODS: dict[str, Method] = {
    "fm3q": Method("FM3Q", "fm3q"),
    "fm3q_sums": Method("FM3Q, sums", "fm3q", {"mixer": "vdn"}),
    "vdn": Method("VDN", "vdn"),
    "iql": Method("IQL", "iql"),
}
AUXILIARY: dict[str, Method] = {
    "fm3q": METHODS["fm3q"],
    "fm3q_auxiliary": Method("FM3Q, auxiliary loss", "fm3q", {"auxiliary_weight": 1.0}),
}
"""FM3Q as in the paper, and with the auxiliary loss of `palaestra_baselines.fm3q.td_loss`."""
WANTED = 0.7
"""Methods are compared by the decisions until they first win this share of the matches."""
TEST_MATCHES, DUEL_MATCHES = 1000, 100


# ---------------------------------------------------------------------------------------------------------- fm3q_exact


@dataclass
class ExactEvaluation:
    """Exact exploitability of the greedy policies during training; can be pickled.

    Attributes:
        env_id: Game whose positions can be counted.
        options: Its keywords, ``name=value`` each.
        gamma: Discount per decision.
    """

    env_id: str
    options: tuple[str, ...]
    gamma: float

    @cached_property
    def table(self) -> exact.PositionTable:
        """All positions and transitions."""
        return exact.enumerate_positions(self.env_id, symmetry=False, **keywords(self.options))

    @cached_property
    def solution(self) -> exact.Solution:
        """Values of all positions."""
        return exact.solve(self.table, self.gamma)

    def __call__(self, player_of: Callable[[str], Opponent]) -> dict[str, float]:
        """Exploitability of each team at the start, and their sum, which is NashConv."""
        lost = {t: exact.exploitability(self.solution, player_of(t), t).exploitability for t in self.table.teams}
        return {"nash_conv": sum(lost.values()), **{f"exploitability_{team}": loss for team, loss in lost.items()}}


AT_SOCCER, AT_LITTMAN = (ExactEvaluation(p.env_id, p.options, p.arguments["gamma"]) for p in (SOCCER, LITTMAN))


def exact_table(study: Study, made: Made) -> Rows:
    """Tables on the matrix games, networks on alternating soccer."""
    shown = {("network", "alternating soccer", mixer): logs for (_, mixer), logs in made.logs.items()}
    return [*table_rows_of(made.args.seeds), *curve_rows(shown, "part", "game", "mixer")]


def exact_panels(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """The exploitability of the networks of all mixers."""
    rows, label = [row for row in rows if row["part"] == "network"], "NashConv, both teams together"
    more: Any = {"titles": MIXERS, "lines": {"threshold: 0.1 a team": 0.2}, "is_log": True}
    return [drawing.panel_of(SOCCER.title, label, rows, "mixer", "nash_conv", **more)]


def table_rows_of(seeds: int) -> list[dict[str, Any]]:
    """Exact exploitability of tabular FM3Q on the matrix games."""
    rows = []
    for game, mixer, seed in itertools.product(TABLES, MIXERS, range(seeds)):
        options = (f"game={game}", "rounds=1")
        run = fm3q_tables.TableArgs(options=options, mixer=mixer, seed=seed, gamma=1.0)
        tables = fm3q_tables.fit_tables(run)
        lost = {
            team: exact.exploitability(tables.rules, tables.policy(team), team, gamma=1.0).exploitability
            for team in tables.rules.teams
        }
        figures = {"nash_conv": sum(lost.values()), **{f"exploitability_{team}": x for team, x in lost.items()}}
        rows.append({"part": "table", "game": game, "mixer": mixer, "seed": seed, **figures, "loss": tables.loss})
    return rows


def exact_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """The largest exploitability of a team over the seeds, tables first."""
    yield f"{'exploitability of a team, worst seed':40s}" + "".join(f"{mixer:>12s}" for mixer in MIXERS)
    tables = drawing.read_table(made.args.figures / f"{study.name}.csv")
    for game in TABLES:
        cells = [[r for r in tables if r["game"] == game and r["mixer"] == mixer] for mixer in MIXERS]
        yield f"{'table, ' + game:40s}" + "".join(f"{max(map(worst_team, cell)):12.4f}" for cell in cells)
    last = [[log[-1] for log in made.logs["soccer", mixer]] for mixer in MIXERS]
    yield f"{'network, alternating soccer 3 x 3':40s}" + "".join(f"{max(map(worst_team, x)):12.4f}" for x in last)
    yield f"{'processor time of a run, s':40s}" + "".join(f"{max(r['cpu_s'] for r in x):12.0f}" for x in last)


def worst_team(row: Mapping[str, Any]) -> float:
    """The larger of the two teams' exploitabilities."""
    return max(float(row["exploitability_red"]), float(row["exploitability_blue"]))


# ---------------------------------------------------------------------------------------------------------- fm3q_limit


def limit_results(study: Study, made: Made) -> Rows:
    """FM3Q on Littman's simultaneous soccer: its security value beside those of pure and of mixed play."""
    return [limit_row(AT_LITTMAN.solution, run.seed, run) for _, run, _ in made.each(study.entries)]


def limit_row(solution: exact.Solution, seed: int, run: RunArgs) -> dict[str, Any]:
    """Values that the greedy policies guarantee at the start, with and without the ball, beside the exact values."""
    arrays, _ = read_policy(run.folder / WEIGHTS)
    table = solution.table
    red, blue = (exact.exploitability(solution, UtilityPlayer(arrays, table.game, team), team) for team in table.teams)
    has_ball = solution.values[table.starts] > 0  # red has it
    at_start = lambda values: float(values[table.starts][has_ball].mean())  # noqa: E731
    return {
        "seed": seed,
        "ball_value": at_start(solution.values),
        "ball_pure_maximin": at_start(solution.pure_maximin),
        "ball_security": at_start(red.values),
        "no_ball_value": -at_start(solution.values),
        "no_ball_pure_maximin": -at_start(solution.pure_minimax),
        "no_ball_security": at_start(blue.values),
        "exploitability_red": red.exploitability,
        "exploitability_blue": blue.exploitability,
    }


# ------------------------------------------------------------------------------------------------------- team_learning


def finals_and_duels(study: Study, made: Made) -> Rows:
    """FM3Q, VDN and IQL on TeamPong and TeamTag: scripts, final figures and duels."""
    rows = [script_row(*place) for place in study.places.items()]
    duels = [
        duel_row(study, made.runs, game, a, b) for game in study.places for a, b in itertools.combinations(METHODS, 2)
    ]
    return [*rows, *finals(study, made), *duels]


def finals(study: Study, made: Made) -> Rows:
    """Final figures of all methods."""
    return [final_row(study.places[e.place], e, made.runs[e.key], made.logs[e.key]) for e in study.entries]


def method_panels(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """The curves of all methods against the script, a panel for each game."""
    wanted = drawing.thresholds([WANTED])
    return [replace(panel, lines=wanted) for panel in won_per_place(study, rows)]


def script_row(game: str, place: Place) -> dict[str, Any]:
    """Strength of the script of the evaluations: matches won against the random player, half of them as each team."""
    table = play_both_sides(place.env_id, place.opponent, "random", TEST_MATCHES)
    low, high = wilson_interval(table.as_first.wins + table.as_second.losses, TEST_MATCHES)
    names = {"part": "script", "game": game, "a": place.opponent, "b": "random"}
    return {**names, "won": table.win_rate, "low": low, "high": high}


def final_row(game: Place, entry: Entry, runs: Sequence[Any], logs: Sequence[list[dict[str, float]]]) -> dict[str, Any]:
    """Final share of matches won against the script on new matches, and decisions until `WANTED` was reached."""
    shares, by_side = [], np.zeros(2)
    for run in runs:
        table = play_both_sides(game.env_id, str(run.folder / WEIGHTS), game.opponent, TEST_MATCHES)
        shares.append(table.win_rate)
        by_side += np.array(table.win_rates) / len(runs)
    mean, low, high = bootstrap_interval(np.array(shares))
    reached = [first_reach(log) for log in logs]
    return {
        "part": "final",
        "game": entry.place,
        "a": entry.method,
        "b": game.opponent,
        "won": mean,
        "low": low,
        "high": high,
        "won_as_red": float(by_side[0]),
        "won_as_blue": float(by_side[1]),
        "steps_to_wanted": float(np.median(reached)),
        "seeds_that_reached": sum(np.isfinite(reached).tolist()),
        "cpu_s": float(np.mean([log[-1]["cpu_s"] for log in logs])),
    }


def first_reach(log: Sequence[Mapping[str, float]]) -> float:
    """Decisions until the first evaluation with a share of `WANTED`; infinite if there was none."""
    return next((row["steps"] for row in log if row["win_rate"] >= WANTED), float("inf"))


def duel_row(study: Study, runs: Runs, game: str, a: str, b: str) -> dict[str, Any]:
    """Score of all networks of one method against all of another, each pair from both sides."""
    id = study.places[game].env_id
    scores = np.zeros((len(runs[game, a]), len(runs[game, b])))
    points = 0.0
    for (k, one), (j, other) in itertools.product(enumerate(runs[game, a]), enumerate(runs[game, b])):
        table = play_both_sides(id, str(one.folder / WEIGHTS), str(other.folder / WEIGHTS), DUEL_MATCHES)
        scores[k, j] = table.score
        points += scores[k, j] * DUEL_MATCHES
    low, high = wilson_interval(points, DUEL_MATCHES * scores.size)
    return {"part": "duel", "game": game, "a": a, "b": b, "won": float(scores.mean()), "low": low, "high": high}


# ------------------------------------------------------------------------------------------------------------- studies


def game_study(name: str, methods: Mapping[str, Method], results: Any) -> Study:
    """Some methods on both games, by equal arguments; the weights of FM3Q in `team_learning` are bundled."""
    bundled = {"fm3q": "fm3q_{}"} if name == "team_learning" else {}
    entries = (
        Entry(game, method, GAME_STEPS[game], weights=bundled.get(method, "").format(game))
        for game in GAMES
        for method in methods
    )
    more: Any = {"columns": ("game", "method"), "panels": method_panels, "results": results}
    more["folder"] = lambda study, entry: Path(entry.place, entry.method)
    return Study(name, tuple(entries), methods, GAMES, **more)


FIGURES = (
    Study(
        "fm3q_exact",
        tuple(
            Entry("soccer", mixer, SOCCER_STEPS, weights="fm3q_grid_soccer" if mixer == "monotone" else "")
            for mixer in MIXERS
        ),
        {mixer: Method(title, "fm3q", {"mixer": mixer}) for mixer, title in MIXERS.items()},
        {"soccer": SOCCER},
        table=exact_table,
        panels=exact_panels,
        lines=exact_lines,
        evaluation=lambda entry: AT_SOCCER,
        folder=lambda study, entry: Path(study.name, entry.method),
        best=lambda last: -last["nash_conv"],
    ),
    Study(
        "fm3q_limit",
        (Entry("littman", "fm3q", LITTMAN_STEPS),),
        METHODS,
        {"littman": LITTMAN},
        table=None,
        results=limit_results,
        evaluation=lambda entry: AT_LITTMAN,
        folder=lambda study, entry: Path(study.name),
        ending="",
    ),
    game_study("fm3q_features", AUXILIARY, finals),
    game_study("team_learning", METHODS, finals_and_duels),
)
