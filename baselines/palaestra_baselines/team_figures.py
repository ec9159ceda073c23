"""The figures of the learners of two-team zero-sum games, made by `palaestra_baselines.figures`.

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
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import exact
from palaestra.core.opponents import Opponent
from palaestra.evaluation import wilson_interval
from palaestra_baselines import fm3q, fm3q_tables, iql, vdn
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.curves import bootstrap_interval, curve_over_seeds, plot_panels, read_rows
from palaestra_baselines.common.match_evaluation import play_both_sides
from palaestra_baselines.common.output_files import copy_file, write_csv
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.run_folder import RunArgs
from palaestra_baselines.common.runs import FigureArgs, train_all
from palaestra_baselines.common.utilities import UtilityPlayer
from palaestra_baselines.common.value_learning import WEIGHTS, LearningArgs

MIXERS = ("monotone", "vdn", "pairwise")
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
METHODS: dict[str, Callable[..., LearningArgs]] = {
    "fm3q": fm3q.Args,
    "fm3q_sums": partial(fm3q.Args, mixer="vdn"),
    "vdn": vdn.Args,
    "iql": iql.Args,
}
"""Arguments by name of the method; the part before the underscore is its module."""
TITLES = {
    "fm3q": "FM3Q",
    "fm3q_sums": "FM3Q, sums",
    "vdn": "VDN",
    "iql": "IQL",
}
AUXILIARY: dict[str, Callable[..., LearningArgs]] = {
    "fm3q": fm3q.Args,
    "fm3q_auxiliary": partial(fm3q.Args, auxiliary_weight=1.0),
}
"""FM3Q as in the paper, and with the auxiliary loss of `palaestra_baselines.fm3q.td_loss`."""
AUXILIARY_TITLES = {"fm3q": "FM3Q", "fm3q_auxiliary": "FM3Q, auxiliary loss"}
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
    train_all(
        "fm3q_exact",
        [("fm3q", run, evaluation) for group in zip(*runs.values(), strict=True) for run in group],
        args.workers,
    )
    logs = {mixer: [read_rows(run.folder / "log.csv") for run in group] for mixer, group in runs.items()}
    for mixer, group in logs.items():
        for seed, log in enumerate(group):
            rows += [{"part": "network", "game": "alternating soccer", "mixer": mixer, "seed": seed, **r} for r in log]
    write_rows(args.figures / "fm3q_exact.csv", rows)
    panel = {
        "label": "NashConv, two teams together",
        "x_label": "decisions",
        "curves": {m: curve_by_evaluation(group, "nash_conv") for m, group in logs.items()},
        "lines": {"bar: 0.1 a team": 0.2},
        "log": True,
    }
    title = f"FM3Q on alternating soccer 3 x 3\nIQM and 95 % interval of {args.seeds} seeds"
    plot_panels(args.figures / "fm3q_exact.png", [panel], title)
    best = min(runs["monotone"], key=lambda run: read_rows(run.folder / "log.csv")[-1]["nash_conv"])
    install(best, args.assets, "fm3q_grid_soccer")
    print_exact(rows, logs)


def table_rows_of(seeds: int) -> list[dict[str, Any]]:
    """Exact exploitability of tabular FM3Q on the matrix games."""
    rows = []
    for game, mixer, seed in itertools.product(TABLES, MIXERS, range(seeds)):
        options = (f"game={game}", "rounds=1")
        run = fm3q_tables.TableArgs(options=options, mixer=mixer, seed=seed, gamma=1.0)  # type: ignore[arg-type]
        tables = fm3q_tables.fit_tables(run)
        lost = {
            team: exact.exploitability(tables.rules, tables.policy(team), team, gamma=1.0).exploitability
            for team in tables.rules.teams
        }
        figures = {"nash_conv": sum(lost.values()), **{f"exploitability_{team}": x for team, x in lost.items()}}
        rows.append({"part": "table", "game": game, "mixer": mixer, "seed": seed, **figures, "loss": tables.loss})
    return rows


def print_exact(rows: Iterable[Mapping[str, Any]], logs: Mapping[str, list[list[dict[str, float]]]]) -> None:
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
    train_all("fm3q_limit", [("fm3q", run, evaluation) for run in runs], args.workers)
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
    logs = {key: [read_rows(run.folder / "log.csv") for run in group] for key, group in runs.items()}
    write_curves("team_learning", args, logs, TITLES)
    results = [script_row(game) for game in GAMES]
    results += [final_row(game, method, runs[game, method], logs[game, method]) for game, method in runs]
    duels = [duel_row(game, a, b, runs) for game in GAMES for a, b in itertools.combinations(METHODS, 2)]
    write_rows(args.figures / "team_learning_results.csv", [*results, *duels])
    for game in GAMES:
        last = [log[-1]["win_rate"] for log in logs[game, "fm3q"]]
        install(runs[game, "fm3q"][int(np.argmax(last))], args.assets, f"fm3q_{game}")
    print_rows([*results, *duels])


def train_methods(
    title: str, args: FigureArgs, methods: Mapping[str, Callable[..., LearningArgs]]
) -> dict[tuple[str, str], list[LearningArgs]]:
    """Trains the missing runs of all methods on both games, the first seeds of all first; runs by game and method."""
    shared = {"trust_checkpoint": args.trust_checkpoint, "quiet": True}
    runs = {
        (game, method): [
            make(**GAMES[game], **shared, seed=seed, directory=args.runs / game / method) for seed in range(args.seeds)
        ]
        for game in GAMES
        for method, make in methods.items()
    }
    in_turn = [[(method.partition("_")[0], run, None) for run in group] for (_, method), group in runs.items()]
    train_all(title, [entry for group in zip(*in_turn, strict=True) for entry in group], args.workers)
    return runs


def write_curves(
    name: str,
    args: FigureArgs,
    logs: Mapping[tuple[str, str], list[list[dict[str, float]]]],
    titles: Mapping[str, str],
) -> None:
    """Writes the evaluations of all runs as CSV, and their curves as a picture with a panel for each game."""
    curves = [
        {"game": g, "method": m, "seed": seed, **row}
        for (g, m), group in logs.items()
        for seed, log in enumerate(group)
        for row in log
    ]
    write_rows(args.figures / f"{name}.csv", curves)
    panels = [
        {
            "label": f"matches won against {GAMES[game]['opponent']}",
            "x_label": f"decisions, {game.replace('_', ' ')}",
            "curves": {titles[m]: curve_by_evaluation(log, "win_rate") for (g, m), log in logs.items() if g == game},
            "lines": {"70 %": WANTED},
        }
        for game in GAMES
    ]
    title = f"Self-play, {args.seeds} seeds: IQM and 95 % bootstrap interval"
    plot_panels(args.figures / f"{name}.png", panels, title)


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
    logs = {key: [read_rows(run.folder / "log.csv") for run in group] for key, group in runs.items()}
    write_curves("fm3q_features", args, logs, AUXILIARY_TITLES)
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


def curve_by_evaluation(logs: Sequence[list[dict[str, float]]], column: str) -> np.ndarray:
    """`curve_over_seeds` where runs were evaluated at nearly the same steps: k-th evaluations are compared."""
    steps = [float(np.mean([row["steps"] for row in rows])) for rows in zip(*logs, strict=True)]
    alike = [[{**row, "steps": step} for row, step in zip(log, steps, strict=True)] for log in logs]
    return curve_over_seeds(alike, "steps", column)


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Writes rows, whose columns may differ, as CSV."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    shown = [{n: f"{v:.5g}" if isinstance(v, float) else v for n, v in row.items()} for row in rows]
    write_csv(path, [columns, *([row.get(name, "") for name in columns] for row in shown)])


def install(run: RunArgs, assets: Path, name: str) -> None:
    """Copies the weights of a run to the assets."""
    copy_file(run.folder / WEIGHTS, assets / "weights" / f"{name}.safetensors")
