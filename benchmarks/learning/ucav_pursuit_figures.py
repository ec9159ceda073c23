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
from learning.figures import FigureArgs
from palaestra.games.ucav.dogfight import KILL
from palaestra_baselines import ucav_pursuit
from palaestra_baselines.common.run_folder import WEIGHTS
from palaestra_baselines.ucav_pursuit import TESTS, WEAVE, Args, kill_share

ENV_ID = Args().env_id
TEST_MATCHES = 512
STICK, MACRO = "stick", "macro"
ARMS: dict[str, tuple[str, dict[str, Any]]] = {
    STICK: ("PPO", {}),
    MACRO: (
        "PPO, macros",
        {"options": ("commands=macro",), "gamma": 0.97, "std": 0.22, "cone_deg": (15.0, 3.0)},
    ),
}
"""Title in pictures and arguments of each arm."""
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


def pursuit_figure(args: FigureArgs) -> None:
    """Kills of the learnt pilots over decisions and in tests; installs the weights of the best by stick."""
    shared: dict[str, Any] = {"trust_checkpoint": args.trust_checkpoint, "quiet": True}
    runs = {
        arm: [
            Args(seed=seed, directory=args.runs / "ucav_pursuit" / arm, **shared, **given) for seed in range(args.seeds)
        ]
        for arm, (_, given) in ARMS.items()
    }
    figures.train_in_turn("ucav_pursuit", runs, lambda _: ucav_pursuit.METHOD, args)
    logs = figures.read_logs(runs)
    by_arm = {(arm,): group for arm, group in logs.items()}
    figures.write_rows(args.figures / "ucav_pursuit.csv", figures.curve_rows(by_arm, "arm"))
    draw_pursuit(args.figures)
    rows = list(result_rows(runs))
    for row in rows:
        if row["player"] in ARMS:
            row["cpu_s"] = logs[row["player"]][row["seed"]][-1]["cpu_s"]
    figures.write_rows(args.figures / "ucav_pursuit_results.csv", rows)
    kills = [
        sum(row["kills"] for row in rows if row["player"] == STICK and row["seed"] == run.seed) for run in runs[STICK]
    ]
    figures.install(runs[STICK][int(np.argmax(kills))], args.assets, ucav_pursuit.METHOD)
    print("\n".join(result_lines(rows)))


def draw_pursuit(folder: Path) -> None:
    """Draws kills and cones over decisions."""
    table = folder / "ucav_pursuit.csv"
    runs = drawing.group_runs(drawing.read_table(table), "arm")
    kills, cones = (
        {ARMS[arm][0]: drawing.curve_over_seeds(made, column) for arm, made in runs.items()}
        for column in ("kills", "cone_behind_deg")
    )
    panels = [
        drawing.Panel("weaving target, cone of 1 deg", "share shot down", kills, is_share=True),
        drawing.Panel("curriculum, start behind", "half-angle of the cone (deg)", cones, is_log=True),
    ]
    drawing.draw(table, panels)


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


def result_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
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
    table = folder / "ucav_first_hour.csv"
    (runs,) = drawing.group_runs([{**row, "all": ""} for row in drawing.read_table(table)], "all").values()
    curves = {"PPO (SB3)": drawing.curve_over_seeds(runs, "kills")}
    title = "UcavPursuit, PPO with default arguments"
    drawing.draw(table, [drawing.Panel(title, "share shot down while exploring", curves, is_share=True)])
