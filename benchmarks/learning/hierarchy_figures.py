"""Hierarchical pilots by fictitious self-play: ``python benchmarks/learn.py ucav_league``.

Five ways to train: the league of evolution strategies; and, for as many seconds of flight as some of its generations
(`EQUAL`), the same against scripts alone, PPO over aim commands against scripts alone and against its last self alone,
and flat PPO with stick and throttle in a league. Every generation is played against four scripts that fly the stick.
Then:

``results``  paid wins and losses of last generations against scripts, and of the league's against the other ways (also
             of that of as many seconds of flight) and under other rules, starts and engines; two players that learn
             nothing stand beside: zeros (pure pursuit at corner speed) and ``expert``
``matrix``   all generations of a league against each other
``best``     what a new policy gains that trains against a generation alone, frozen
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from learning import drawing, figures
from learning.figures import FigureArgs, Method
from learning.study import Entry, Figure, Made, Place, Rows, Study
from palaestra.core.run.opponents import OpponentSpec
from palaestra.evaluation import evaluate
from palaestra_baselines.common.league import BY_RULE, LEAGUE
from palaestra_baselines.common.run_folder import WEIGHTS
from palaestra_baselines.ucav_hierarchy import METHOD, Args

ENV_ID = Args().env_id
STEPS, GENERATIONS = Args().total_steps, Args().evaluations
TEST_MATCHES = 512
JSBSIM_MATCHES = 64
"""JSBSim itself flies a twenty-fifth as fast."""
SHAPING = ("posture_weight=1.0", "altitude_weight=1.0", "energy_weight=0.2", "aim_weight=2.0")
"""Of ``palaestra/UcavDogfight-v2``: PPO's training alone has it."""
LEAGUE_ARM, SCRIPTS, PPO_SCRIPTS, PPO_SELF, FLAT = "league", "scripts", "ppo_scripts", "ppo_self", "flat"
EQUAL = {SCRIPTS: GENERATIONS, PPO_SCRIPTS: 1, PPO_SELF: 1, FLAT: 1}
"""Generations of the league that fly as long as the other ways."""
AIM_HZ, STICK_HZ = 5, 10
"""Decisions a second of flight."""
PPO: dict[str, Any] = {
    "learner": "ppo",
    "training_options": SHAPING,
    "learning_rate": (5e-4, 2e-4),
    "hidden": (64, 64),
    "evaluations": 2,
}
FEW_STEPS = STEPS // GENERATIONS
STEPS_OF = {
    **{LEAGUE_ARM: STEPS, SCRIPTS: EQUAL[SCRIPTS] * FEW_STEPS, PPO_SCRIPTS: FEW_STEPS, PPO_SELF: FEW_STEPS},
    FLAT: STICK_HZ * STEPS // (AIM_HZ * GENERATIONS),
}
ARMS = {
    LEAGUE_ARM: Method("evolution, league", METHOD),
    SCRIPTS: Method("evolution, scripts", METHOD, {"anchor_share": 1.0, "evaluations": EQUAL[SCRIPTS]}),
    PPO_SCRIPTS: Method("PPO, scripts", METHOD, {**PPO, "anchor_share": 1.0}),
    PPO_SELF: Method("PPO, last self", METHOD, {**PPO, "anchor_share": 0.0, "draw": "latest", "latest_share": 1.0}),
    FLAT: Method("PPO, stick", METHOD, {**PPO, "options": ("commands=stick",), "anchor_options": (), "std": 0.5}),
}
"""The ways to train."""
BARS = {"pure_pursuit": 0.95, "lead_pursuit": 0.75, "expert": 0.65}
"""Least share of paid wins of the last generation of a league."""
AGAINST: dict[str, dict[str, Any]] = {
    "rules of the contest": {},
    "gun_aspect_deg=135": {"gun_aspect_deg": 135.0},
    "and cone_step_deg=1": {"gun_aspect_deg": 135.0, "cone_step_deg": 1.0},
    "and horizon_reward=1": {"gun_aspect_deg": 135.0, "cone_step_deg": 1.0, "horizon_reward": 1.0},
    "from 1 to 2 km height": {"altitude_low_m": 1000.0, "altitude_high_m": 2000.0},
    "from 6 to 9 km range": {"start": "neutral", "neutral_range_low_m": 6000.0, "neutral_range_high_m": 9000.0},
    "head-on": {"start": "head_on"},
}
"""Keywords of tests on which nothing was trained."""


def league_results(study: Study, made: Made) -> Rows:
    """Tests of the last generations; writes the table of the league, installs its best one, trains best responses."""
    runs: dict[str, Any] = {arm: group for (_, arm), group in made.runs.items()}
    folder = made.args.figures
    figures.write_rows(
        folder / "ucav_league_matrix.csv", [line for run in runs[LEAGUE_ARM] for line in matrix_rows(run)]
    )
    draw_matrix(folder)
    figures.write_rows(folder / "ucav_league_best.csv", best_responses(runs[LEAGUE_ARM], made.args))
    return [*result_rows(runs)]


def league_panels(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """Paid wins against scripts, and Elo, over hours of flight."""
    runs = drawing.group_runs(rows, "arm")
    return [
        drawing.Panel(title, label, by_arm(runs, column), x_label="hours of flight", is_share=column != "elo")
        for title, label, column in (
            ("against expert", "paid wins", "won_expert"),
            ("against lead_pursuit", "paid wins", "won_lead_pursuit"),
            ("against expert", "paid losses", "lost_expert"),
            ("Elo, pure_pursuit has 0", "Elo", "elo"),
        )
    ]


def by_arm(runs: Mapping[str, Any], column: str) -> dict[str, Any]:
    """Curves of a column over hours of flight by the title of the way."""
    curves = {}
    for arm, made in runs.items():
        curve = drawing.curve_over_seeds(made, column)
        decisions_per_hour = 3600 * (STICK_HZ if arm == FLAT else AIM_HZ)
        curves[ARMS[arm].title] = curve._replace(x=curve.x / decisions_per_hour)
    return curves


def matrix_rows(run: Args) -> Iterator[dict[str, Any]]:
    """The table of a league."""
    for row in drawing.read_table(run.folder / LEAGUE):
        yield {"seed": run.seed, **row}


def draw_matrix(folder: Path) -> None:
    """Draws the scores of all generations against all players, the mean of the seeds."""
    import matplotlib.style
    from matplotlib.figure import Figure

    table = folder / "ucav_league_matrix.csv"
    rows = drawing.read_table(table)
    players = list(dict.fromkeys(row["player"] for row in rows))
    opponents = [name for name in dict.fromkeys(row["opponent"] for row in rows) if name not in players]
    columns = [*opponents, *players]
    scores = np.full((len(players), len(columns)), np.nan)
    for i, player in enumerate(players):
        for j, opponent in enumerate(columns):
            met = [float(row["score"]) for row in rows if (row["player"], row["opponent"]) == (player, opponent)]
            met += [1 - float(row["score"]) for row in rows if (row["opponent"], row["player"]) == (player, opponent)]
            if met:
                scores[i, j] = np.mean(met)
    with matplotlib.style.context(["default", drawing.SETTINGS], after_reset=True):
        figure = Figure(figsize=(7.0, 3.4), layout="constrained")
        axis = figure.subplots()
        image = axis.imshow(scores, cmap="RdBu", vmin=0.0, vmax=1.0, aspect="auto")
        for (i, j), score in np.ndenumerate(scores):
            if np.isfinite(score):
                axis.text(j, i, f"{score:.2f}", ha="center", va="center", color="black", fontsize=8)
        axis.set_xticks(range(len(columns)), [short(name) for name in columns], rotation=30, ha="right")
        axis.set_yticks(range(len(players)), [short(name) for name in players])
        axis.set_title("score of the row: paid wins and half of the undecided")
        figure.colorbar(image)
    for suffix in drawing.FORMATS:
        drawing.write_picture(table.with_suffix(f".{suffix}"), figure, drawing.table_digest(table))


def short(name: str) -> str:
    """Name of a player in a picture."""
    return name.replace("generation_", "generation ")


# --------------------------------------------------------------------------------------------------------------- tests


def paid(player: OpponentSpec, opponent: OpponentSpec, matches: int = TEST_MATCHES, **rules: Any) -> dict[str, Any]:
    """Shares of matches that a rule ended for the first player and for the second, in new matches."""
    options: dict[str, Any] = {"matches": matches, "num_envs": min(matches, 256), **rules}
    results = evaluate(ENV_ID, player, opponent, **options).results
    by_rule = results["end_reason"] > BY_RULE
    won, lost = (float((by_rule & (results["outcome"] == sign)).mean()) for sign in (1, -1))
    return {"matches": matches, "won": won, "lost": lost, "score": 0.5 + (won - lost) / 2}


def result_rows(runs: Mapping[str, Sequence[Args]]) -> Iterator[dict[str, Any]]:
    """All tests of the last generations."""
    last = {arm: [str(run.folder / WEIGHTS) for run in group] for arm, group in runs.items()}
    anchors = Args().anchors
    idle = lambda observations: np.zeros((*observations.shape[:2], 4))  # noqa: E731
    for name, player in (("zeros", idle), ("expert", "expert")):
        rules: dict[str, Any] = {"commands": "stick"} if name == "expert" else Args().anchor_rules
        for anchor in anchors:
            yield {"player": name, "seed": "", "opponent": anchor, "test": "", **paid(player, anchor, **rules)}
    for arm, files in last.items():
        for seed, file in enumerate(files):
            for anchor in anchors:
                rules = runs[arm][seed].anchor_rules
                yield {"player": arm, "seed": seed, "opponent": anchor, "test": "", **paid(file, anchor, **rules)}
    for seed, file in enumerate(last[LEAGUE_ARM]):
        own = {"player": LEAGUE_ARM, "seed": seed}
        for arm, files in last.items():
            if arm == LEAGUE_ARM or seed >= len(files):
                continue
            rules = Args().anchor_rules if arm == FLAT else Args().rules
            equal = str(runs[LEAGUE_ARM][seed].folder / f"generation_{EQUAL[arm]}.safetensors")
            for test, player in (("equal frames", equal), ("last generation", file)):
                yield {**own, "opponent": arm, "test": test, **paid(player, files[seed], **rules)}
        for test, rules in AGAINST.items():
            yield {
                **own,
                "opponent": "expert",
                "test": test,
                **paid(file, "expert", **{**Args().anchor_rules, **rules}),
            }
        for engine in ("compiled", "jsbsim"):
            rules = {"commands": "aim", "engine": engine}
            flown = paid(file, "lead_pursuit", JSBSIM_MATCHES, **rules)
            yield {**own, "opponent": "lead_pursuit", "test": f"engine={engine}", **flown}


def best_responses(leagues: Sequence[Args], args: FigureArgs) -> list[dict[str, Any]]:
    """What the decisions of one generation gain against the first and the last generation."""
    runs: dict[Any, list[Args]] = {}
    for run in leagues:
        for generation in (1, GENERATIONS):
            frozen = run.folder / f"generation_{generation}.safetensors"
            against: dict[str, Any] = {"anchors": (str(frozen),), "anchor_options": (), "anchor_share": 1.0}
            directory = args.runs / "ucav_league" / "best" / f"of_{generation}"
            given = {"total_steps": STEPS // GENERATIONS, "evaluations": 1, "directory": directory}
            runs.setdefault(generation, []).append(replace(run, **against, **given))
    figures.train_in_turn("ucav_league, best responses", runs, lambda _: METHOD, args)
    rows = []
    for generation, group in runs.items():
        for run in group:
            result = paid(str(run.folder / WEIGHTS), run.anchors[0], **run.rules)
            rows.append({"generation": generation, "seed": run.seed, **result})
    return rows


def result_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """A line of text for each result, and whether it is what is asked for; then the best responses."""
    for row in rows:
        asked = []
        least = BARS.get(row["opponent"]) if row["player"] == LEAGUE_ARM and not row["test"] else None
        if least is not None:
            asked = [(f"paid wins at least {least:g}", row["won"] >= least)]
        elif row["test"] == "equal frames":
            asked = [("score at least 0.6", row["score"] >= 0.6)]
        who = f"{row['player']:12s}{row['seed']!s:3s}{row['opponent']:14s}{row['test']:24s}"
        yield f"{who}{row['won']:.3f} won  {row['lost']:.3f} lost  score {row['score']:.3f}{figures.verdicts(asked)}"
    for row in drawing.read_table(made.args.figures / "ucav_league_best.csv"):
        who = f"best response to generation {row['generation']}, seed {row['seed']}"
        yield f"{who}: {row['won']} won  {row['lost']} lost  score {row['score']}"


FIGURES = (
    Study(
        "ucav_league",
        tuple(Entry("", arm, STEPS_OF[arm], weights=METHOD if arm == LEAGUE_ARM else "") for arm in ARMS),
        ARMS,
        {"": Place("", ENV_ID)},
        columns=("arm",),
        panels=league_panels,
        results=league_results,
        lines=result_lines,
        folder=lambda study, entry: Path(study.name, entry.method),
        best=lambda last: last["elo"],
    ),
    Figure("ucav_league_matrix", None, draw_matrix),
)
