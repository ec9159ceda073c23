"""PPO's pilots of UcavPursuit: ``python benchmarks/learn.py ucav``.

``ucav_pursuit``     kills of pilots of the curriculum, by stick and by macros; random play and scripts beside them
``ucav_first_hour``  Stable-Baselines3's default PPO on `gymnasium.make`: kills while it explores
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import palaestra  # noqa: F401 (registers the ids)
from learning import drawing, figures
from learning.figures import FigureArgs, Method
from learning.study import Entry, Figure, Made, Place, Rows, Study
from palaestra.games.ucav.dogfight import KILL
from palaestra_baselines.common.run_folder import WEIGHTS
from palaestra_baselines.ucav_pursuit import METHOD, TESTS, WEAVE, Args, kill_share

ENV_ID = Args().env_id
TEST_MATCHES = 512
STICK, MACRO = "stick", "macro"
ARMS = {
    STICK: Method("PPO", METHOD),
    MACRO: Method(
        "PPO, macros", METHOD, {"options": ("commands=macro",), "gamma": 0.97, "std": 0.22, "cone_deg": (15.0, 3.0)}
    ),
}
SECONDS = {STICK: 120.0, MACRO: 300.0}
"""Most processor time of a run."""
BARS: dict[tuple[str, str], float] = {
    **{(STICK, name): 0.95 for name in list(TESTS)[:2]},
    **{(STICK, name): least for name, least in zip(list(TESTS)[2:5], (0.9, 0.8, 0.85), strict=True)},
    **{(MACRO, name): least for name, least in zip(list(TESTS)[:2], (0.6, 0.35), strict=True)},
    ("aim, all zeros", WEAVE): 0.95,
}
"""Least share of kills of each seed, by arm or player and test."""
OTHERS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "random": ("random", ()),
    "lead_pursuit": ("lead_pursuit", ()),
    "expert": ("expert", ()),
    "aim, all zeros": (lambda observations: np.zeros((len(observations), 1, 4)), ("commands=aim",)),
}
"""Players that learn nothing, and the keywords of their game."""
HOUR_STEPS, TENTHS = 150_000, 10


def pursuit_panels(study: Study, rows: list[dict[str, str]]) -> list[drawing.Panel]:
    """Kills and cones over decisions."""
    titles: Any = {"titles": study.titles}
    cone, target = "half-angle of the cone (deg)", "weaving target, cone of 1 deg"
    return [
        drawing.panel_of(target, "share shot down", rows, "arm", "kills", is_share=True, **titles),
        drawing.panel_of("curriculum, start behind", cone, rows, "arm", "cone_behind_deg", is_log=True, **titles),
    ]


def pursuit_results(study: Study, made: Made) -> Rows:
    """Kills in tests; installs the weights of the best by stick."""
    runs: dict[str, Any] = {arm: group for (_, arm), group in made.runs.items()}
    rows = list(result_rows(runs))
    for row in rows:
        if row["player"] in ARMS:
            row["cpu_s"] = made.logs["", row["player"]][row["seed"]][-1]["cpu_s"]
    kills = [
        sum(row["kills"] for row in rows if row["player"] == STICK and row["seed"] == run.seed) for run in runs[STICK]
    ]
    figures.install(runs[STICK][int(np.argmax(kills))], made.args.assets, METHOD)
    return rows


def result_rows(runs: Mapping[str, Sequence[Args]]) -> Iterator[dict[str, Any]]:
    """Kills of each run and of those that learn nothing, in new matches of each test."""
    for arm, group in runs.items():
        for run in group:
            player = str(run.folder / WEIGHTS)
            for name, test in TESTS.items():
                yield {
                    "player": arm,
                    "seed": run.seed,
                    "test": name,
                    "kills": kill_share(run, player, test, TEST_MATCHES),
                }
    for title, (player, options) in OTHERS.items():
        for name, test in TESTS.items():
            kills = kill_share(Args(options=options), player, test, TEST_MATCHES)
            yield {"player": title, "seed": "", "test": name, "kills": kills}


def result_lines(study: Study, rows: Rows, made: Made) -> Iterator[str]:
    """A line of text for each player and test: kills by seed, and whether they are as many as asked for."""
    players: dict[str, None] = dict.fromkeys(row["player"] for row in rows)
    for player in players:
        own = [row for row in rows if row["player"] == player]
        for name in TESTS:
            kills = [row["kills"] for row in own if row["test"] == name]
            if not kills:
                continue
            least = BARS.get((player, name))
            asked = [] if least is None else [(f"at least {least:g}", min(kills) >= least)]
            yield f"{player:16s}{name:38s}{'  '.join(f'{share:.3f}' for share in kills)}{figures.verdicts(asked)}"
        if player in SECONDS:
            most, allowed = max(row["cpu_s"] for row in own), SECONDS[player]
            verdict = figures.verdicts([(f"at most {allowed:g} s", most <= allowed)])
            yield f"{player:16s}processor time up to {most:.0f} s{verdict}"


# --------------------------------------------------------------------------------------------------------- first hour


class Ends(BaseCallback):
    """Notes how each match ended.

    Attributes:
        rows: Decisions before the end, whether it was a kill, and the seconds that the target was in the cone.
    """

    def __init__(self) -> None:
        """Nothing has ended."""
        super().__init__()
        self.rows: list[tuple[int, bool, float]] = []

    def _on_step(self) -> bool:
        for info, is_over in zip(self.locals["infos"], self.locals["dones"], strict=True):
            if is_over:
                is_kill = info["winner"] == 0 and info["end_reason"] == KILL
                self.rows.append((self.num_timesteps, bool(is_kill), float(info["cone_seconds"][0])))
        return True


def first_hour(args: FigureArgs) -> None:
    """Kills of the matches of each tenth of the training, actions sampled."""
    torch.set_num_threads(1)
    rows = [row for seed in range(args.seeds) for row in train_by_default(seed)]
    figures.write_rows(args.figures / "ucav_first_hour.csv", rows)
    draw_first_hour(args.figures)
    for seed in range(args.seeds):
        first, *_, last = (row for row in rows if row["seed"] == seed)
        share, more = last["kills"], last["cone_s"] / max(first["cone_s"], 0.1)
        asked = [("70 % kills", share >= 0.7), ("10x", more >= 10.0), ("180 s", last["cpu_s"] <= 180.0)]
        text = f"seed {seed}: kills {share:.2f} in the last tenth, {more:.0f}x the seconds in the cone of the first"
        print(f"{text}, {last['cpu_s']:.0f} s of processor{figures.verdicts(asked)}")


def train_by_default(seed: int, steps: int = HOUR_STEPS) -> list[dict[str, Any]]:
    """Trains Stable-Baselines3's default PPO; a row for each tenth."""
    ends, began_s = Ends(), time.process_time()
    model = PPO("MlpPolicy", gymnasium.make(ENV_ID), seed=seed, device="cpu")
    model.learn(steps, callback=ends)
    cpu_s = time.process_time() - began_s
    rows = []
    for tenth in range(TENTHS):
        low, high = tenth * steps // TENTHS, (tenth + 1) * steps // TENTHS
        ended = [(is_kill, cone_s) for at, is_kill, cone_s in ends.rows if low < at <= high]
        kills, cone_s = np.array(ended, np.float64).reshape(-1, 2).T
        row = {"seed": seed, "steps": high, "matches": len(ended), "kills": float(kills.mean()) if ended else 0.0}
        rows.append({**row, "cone_s": float(cone_s.sum()), "cpu_s": cpu_s * (tenth + 1) / TENTHS})
    return rows


def draw_first_hour(folder: Path) -> None:
    """Draws the kills over decisions."""
    table, title = folder / "ucav_first_hour.csv", "UcavPursuit, PPO with default arguments"
    rows = [{**row, "arm": "PPO (SB3)"} for row in drawing.read_table(table)]
    panel = drawing.panel_of(title, "share shot down while exploring", rows, "arm", "kills", is_share=True)
    drawing.draw(table, [panel])


FIGURES = (
    Study(
        "ucav_pursuit",
        tuple(Entry("", arm, Args.total_steps) for arm in ARMS),
        ARMS,
        {"": Place("", ENV_ID)},
        columns=("arm",),
        panels=pursuit_panels,
        results=pursuit_results,
        lines=result_lines,
        folder=lambda study, entry: Path(study.name, entry.method),
    ),
    Figure("ucav_first_hour", first_hour, draw_first_hour),
)
