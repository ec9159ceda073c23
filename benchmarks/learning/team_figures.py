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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from learning import drawing, fm3q_tables
from learning.figures import (
    FigureArgs,
    Logs,
    Method,
    bootstrap_interval,
    curve_rows,
    install,
    install_best,
    read_logs,
    train_in_turn,
    write_rows,
)
from palaestra import exact
from palaestra.core.run.opponents import Opponent
from palaestra.evaluation import wilson_interval
from palaestra_baselines import fm3q
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.flat_networks import UtilityPlayer
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, read_rows
from palaestra_baselines.common.training import LearningArgs, play_both_sides

MIXERS: dict[Literal["monotone", "vdn", "pairwise"], str] = {
    "monotone": "FM3Q",
    "vdn": "FM3Q, sums",
    "pairwise": "FM3Q, pairwise",
}
"""Name of FM3Q in pictures by its mixer."""
TABLES = ("saddle", "climb", "nonmonotone", "pennies", "repeated")
"""Matrix games of tabular FM3Q, one round each."""
SOCCER = {
    "env_id": "palaestra/TeamGridSoccer-3x3-v0",
    "options": ("order=alternating",),
    "gamma": 0.9,
    "random_starts": True,
    "epsilon": (1.0, 0.2),
    "updates": 1,
    "batch_size": 512,
    "hidden": (128, 128),
    "total_steps": 3_000_000,
}
LITTMAN = {**SOCCER, "env_id": "palaestra/GridSoccer-v0", "options": (), "hidden": (64, 64), "total_steps": 1_000_000}
GAMES: dict[str, dict[str, Any]] = {
    "team_pong": {
        "env_id": "palaestra/TeamPong-v0",
        "opponent": "tracker:0.8",
        "gamma": 0.99,
        "updates": 3,
        "batch_size": 256,
        "total_steps": 1_500_000,
    },
    "team_tag": {
        "env_id": "palaestra/TeamTag-2v2-v0",
        "opponent": "default:0.5",
        "gamma": 0.95,
        "updates": 4,
        "batch_size": 512,
        "hidden": (128, 128),
        "epsilon_until": 0.5,
        "total_steps": 1_100_000,
    },
}
"""Arguments of the comparison: the same for all methods."""
METHODS: dict[str, Method] = {
    "fm3q": Method("FM3Q", "fm3q"),
    "fm3q_sums": Method("FM3Q, sums", "fm3q", {"mixer": "vdn"}),
    "vdn": Method("VDN", "vdn"),
    "iql": Method("IQL", "iql"),
}
AUXILIARY: dict[str, Method] = {
    "fm3q": Method("FM3Q", "fm3q"),
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


def fm3q_exact(args: FigureArgs) -> None:
    """FM3Q against the exact solution: tables on the matrix games, networks on alternating soccer."""
    rows: list[dict[str, Any]] = table_rows_of(args.seeds)
    shared = {**SOCCER, "trust_checkpoint": args.trust_checkpoint, "quiet": True}
    runs = {
        m: [fm3q.Args(**shared, mixer=m, seed=k, directory=args.runs / "fm3q_exact" / m) for k in range(args.seeds)]
        for m in MIXERS
    }
    evaluation = ExactEvaluation(SOCCER["env_id"], SOCCER["options"], SOCCER["gamma"])
    train_in_turn("fm3q_exact", runs, lambda mixer: "fm3q", args, evaluation)
    logs = read_logs(runs)
    shown = {("network", "alternating soccer", mixer): group for mixer, group in logs.items()}
    rows += curve_rows(shown, "part", "game", "mixer")
    write_rows(args.figures / "fm3q_exact.csv", rows)
    draw_exact(args.figures)
    best = min(runs["monotone"], key=lambda run: read_rows(run.folder / "log.csv")[-1]["nash_conv"])
    install(best, args.assets, "fm3q_grid_soccer")
    print_exact(rows, logs)


def draw_exact(folder: Path) -> None:
    """Draws the exploitability of the networks of all mixers."""
    table = folder / "fm3q_exact.csv"
    rows = [row for row in drawing.read_table(table) if row["part"] == "network"]
    runs = drawing.group_runs(rows, "mixer")
    panel = drawing.Panel(
        "TeamGridSoccer-3x3, alternating order",
        "NashConv, both teams together",
        {MIXERS[mixer]: drawing.curve_over_seeds(made, "nash_conv") for mixer, made in runs.items()},
        {"threshold: 0.1 a team": 0.2},
        is_log=True,
    )
    drawing.draw(table, [panel])


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


def print_exact(rows: Iterable[Mapping[str, Any]], logs: Logs) -> None:
    """Prints the largest exploitability of a team over the seeds, tables first."""
    print(f"{'exploitability of a team, worst seed':40s}" + "".join(f"{mixer:>12s}" for mixer in MIXERS))
    tables = [row for row in rows if row["part"] == "table"]
    for game in TABLES:
        cells = [[r for r in tables if r["game"] == game and r["mixer"] == mixer] for mixer in MIXERS]
        print(f"{'table, ' + game:40s}" + "".join(f"{max(map(worst_team, cell)):12.4f}" for cell in cells))
    last = [[log[-1] for log in logs[mixer]] for mixer in MIXERS]
    print(f"{'network, alternating soccer 3 x 3':40s}" + "".join(f"{max(map(worst_team, x)):12.4f}" for x in last))
    print(f"{'processor time of a run, s':40s}" + "".join(f"{max(r['cpu_s'] for r in x):12.0f}" for x in last))


def worst_team(row: Mapping[str, Any]) -> float:
    """The larger of the two teams' exploitabilities."""
    return max(float(row["exploitability_red"]), float(row["exploitability_blue"]))


# ---------------------------------------------------------------------------------------------------------- fm3q_limit


def fm3q_limit(args: FigureArgs) -> None:
    """FM3Q on Littman's simultaneous soccer: its security value beside those of pure and of mixed play."""
    folder = args.runs / "fm3q_limit"
    shared = {**LITTMAN, "trust_checkpoint": args.trust_checkpoint, "quiet": True}
    runs = [fm3q.Args(**shared, seed=seed, directory=folder) for seed in range(args.seeds)]
    evaluation = ExactEvaluation(LITTMAN["env_id"], LITTMAN["options"], LITTMAN["gamma"])
    train_in_turn("fm3q_limit", {"fm3q": runs}, str, args, evaluation)
    solution = evaluation.solution
    rows = [limit_row(solution, seed, run) for seed, run in enumerate(runs)]
    write_rows(args.figures / "fm3q_limit.csv", rows)
    for row in rows:
        print("  ".join(f"{name} {value:.4g}" for name, value in row.items()))


def limit_row(solution: exact.Solution, seed: int, run: LearningArgs) -> dict[str, Any]:
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


def team_learning(args: FigureArgs) -> None:
    """FM3Q, VDN and IQL on TeamPong and TeamTag: curves against the script, final figures and duels."""
    runs = train_methods("team_learning", args, METHODS)
    logs = read_logs(runs)
    write_rows(args.figures / "team_learning.csv", curve_rows(logs, "game", "method"))
    draw_methods("team_learning", args.figures)
    results = [script_row(game) for game in GAMES]
    results += [final_row(game, method, runs[game, method], logs[game, method]) for game, method in runs]
    duels = [duel_row(game, a, b, runs) for game in GAMES for a, b in itertools.combinations(METHODS, 2)]
    write_rows(args.figures / "team_learning_results.csv", [*results, *duels])
    for game in GAMES:
        install_best(runs[game, "fm3q"], logs[game, "fm3q"], args.assets, f"fm3q_{game}")
    print_rows([*results, *duels])


def train_methods(title: str, args: FigureArgs, methods: Mapping[str, Method]) -> dict[tuple[str, str], list[RunArgs]]:
    """Trains the missing runs of all methods on both games, the first seeds of all first; runs by game and method."""
    shared = {"trust_checkpoint": args.trust_checkpoint, "quiet": True}
    runs = {
        (game, name): [
            method.make_args(**GAMES[game], **method.arguments, **shared, seed=seed, directory=args.runs / game / name)
            for seed in range(args.seeds)
        ]
        for game in GAMES
        for name, method in methods.items()
    }
    train_in_turn(title, runs, lambda key: methods[key[1]].module, args)
    return runs


def draw_methods(name: str, folder: Path) -> None:
    """Draws the curves of all methods against the script, a panel for each game."""
    table, methods = folder / f"{name}.csv", {**METHODS, **AUXILIARY}
    runs = drawing.group_runs(drawing.read_table(table), "game", "method")
    panels = []
    for game in dict.fromkeys(game for game, _ in runs):
        here = {methods[method].title: made for (where, method), made in runs.items() if where == game}
        title = GAMES[game]["env_id"].removeprefix("palaestra/").removesuffix("-v0")
        panels.append(drawing.win_rate_panel(title, GAMES[game]["opponent"], here, [WANTED]))
    drawing.draw(table, panels)


def script_row(game: str) -> dict[str, Any]:
    """Strength of the script of the evaluations: matches won against the random player, half of them as each team."""
    id, script = GAMES[game]["env_id"], GAMES[game]["opponent"]
    table = play_both_sides(id, script, "random", TEST_MATCHES)
    low, high = wilson_interval(table.as_first.wins + table.as_second.losses, TEST_MATCHES)
    return {
        "part": "script",
        "game": game,
        "a": script,
        "b": "random",
        "won": table.win_rate,
        "low": low,
        "high": high,
    }


def final_row(game: str, method: str, runs: Sequence[Any], logs: Sequence[list[dict[str, float]]]) -> dict[str, Any]:
    """Final share of matches won against the script on new matches, and decisions until `WANTED` was reached."""
    id, script = GAMES[game]["env_id"], GAMES[game]["opponent"]
    shares, by_side = [], np.zeros(2)
    for run in runs:
        table = play_both_sides(id, str(run.folder / WEIGHTS), script, TEST_MATCHES)
        shares.append(table.win_rate)
        by_side += np.array(table.win_rates) / len(runs)
    mean, low, high = bootstrap_interval(np.array(shares))
    reached = [first_reach(log) for log in logs]
    return {
        "part": "final",
        "game": game,
        "a": method,
        "b": script,
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


def duel_row(game: str, a: str, b: str, runs: Mapping[tuple[str, str], Sequence[Any]]) -> dict[str, Any]:
    """Score of all networks of one method against all of another, each pair from both sides."""
    id = GAMES[game]["env_id"]
    scores = np.zeros((len(runs[game, a]), len(runs[game, b])))
    points = 0.0
    for (k, one), (j, other) in itertools.product(enumerate(runs[game, a]), enumerate(runs[game, b])):
        table = play_both_sides(id, str(one.folder / WEIGHTS), str(other.folder / WEIGHTS), DUEL_MATCHES)
        scores[k, j] = table.score
        points += scores[k, j] * DUEL_MATCHES
    low, high = wilson_interval(points, DUEL_MATCHES * scores.size)
    return {"part": "duel", "game": game, "a": a, "b": b, "won": float(scores.mean()), "low": low, "high": high}


# ------------------------------------------------------------------------------------------------------- fm3q_features


def fm3q_features(args: FigureArgs) -> None:
    """FM3Q with and without the auxiliary loss, which trains the features of the utilities and nothing else."""
    runs = train_methods("fm3q_features", args, AUXILIARY)
    logs = read_logs(runs)
    write_rows(args.figures / "fm3q_features.csv", curve_rows(logs, "game", "method"))
    draw_methods("fm3q_features", args.figures)
    rows = [final_row(game, method, runs[game, method], logs[game, method]) for game, method in runs]
    write_rows(args.figures / "fm3q_features_results.csv", rows)
    print_rows(rows)


# --------------------------------------------------------------------------------------------------------------- parts


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Prints a line for each row."""
    for row in rows:
        print(
            "  ".join(f"{name} {value:.4g}" if isinstance(value, float) else f"{value}" for name, value in row.items())
        )
