"""sb3-contrib's MaskablePPO on ConcertDuel: ``python benchmarks/learn.py concert_first_hour``.

A decision is the order of one unit (``decisions="unit"``), the opponent plays at random, the match pays at its end
alone. The learner is `sb3_contrib.MaskablePPO` as it is; only sizes of its batches and its learning rate are given.
`ARMS` compares the game's own observation, a dict with numbers of orders, with the representation ``"vector"``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from learning import drawing, figures
from learning.figures import FigureArgs
from learning.study import Figure
from palaestra.adapters.sb3 import as_vec_env
from palaestra.evaluation import evaluate
from palaestra.players.models import as_opponent

ENV_ID = "palaestra/ConcertDuel-v0"
OPTIONS: dict[str, Any] = {"decisions": "unit"}
ARMS = {"vector": "MlpPolicy", "dict": "MultiInputPolicy"}
"""Policy of Stable-Baselines3 by representation."""
LANES, STEPS, TENTHS = 64, 204_800, 10
ARGUMENTS: dict[str, Any] = {"n_steps": 64, "batch_size": 512, "n_epochs": 4, "learning_rate": 1e-3}
LEARNS_FROM = "random"
TESTS = ("random", "hold", "province_value", "greedy_support", "search")
"""Opponents in new matches, after the training."""
OTHERS = ("random", "hold", "province_value", "greedy_support", "search")
"""Players that learn nothing."""
TEST_MATCHES = 512
LEAST_WINS, MOST_SECONDS = 0.7, 600.0
"""Asked of each seed: the least share of matches won against random play, the most processor time."""


class Ends(BaseCallback):
    """Notes how each match ended.

    Attributes:
        rows: Decisions before the end and the winner: 0 the learner, 1 the opponent, -1 nobody.
    """

    def __init__(self) -> None:
        """Nothing has ended."""
        super().__init__()
        self.rows: list[tuple[int, int]] = []

    def _on_step(self) -> bool:
        for info, is_over in zip(self.locals["infos"], self.locals["dones"], strict=True):
            if is_over:
                self.rows.append((self.num_timesteps, int(info["winner"])))
        return True


def first_hour(args: FigureArgs) -> None:
    """Shares of won matches in each tenth of the training, actions sampled, and of new matches after it."""
    torch.set_num_threads(1)
    rows, results = [], []
    for arm in ARMS:
        for seed in range(args.seeds):
            model, tenths = train(arm, seed, STEPS)
            rows += tenths
            results += result_rows(arm, seed, as_opponent(model), {"cpu_s": tenths[-1]["cpu_s"]})
            print("\n".join(result_lines(results[-len(TESTS) :])))
    for player in OTHERS:
        results += result_rows(player, "", player)
    figures.write_rows(args.figures / "concert_first_hour.csv", rows)
    figures.write_rows(args.figures / "concert_first_hour_results.csv", results)
    draw_first_hour(args.figures)
    print("\n".join(result_lines(results)))


def train(arm: str, seed: int, steps: int) -> tuple[Any, list[dict[str, Any]]]:
    """Trains MaskablePPO; returns it and a row for each tenth. The processor time holds the making of the game."""
    from sb3_contrib import MaskablePPO  # the dependency group `figures`: no other figure needs it

    ends, began_s = Ends(), time.process_time()
    lanes = as_vec_env(ENV_ID, LANES, observation=arm, opponent=LEARNS_FROM, **OPTIONS)
    model = MaskablePPO(ARMS[arm], lanes, seed=seed, device="cpu", **ARGUMENTS)
    model.learn(steps, callback=ends)
    cpu_s = time.process_time() - began_s
    rows = []
    for tenth in range(TENTHS):
        low, high = tenth * steps // TENTHS, (tenth + 1) * steps // TENTHS
        winners = np.array([winner for at, winner in ends.rows if low < at <= high])
        row = {"arm": arm, "seed": seed, "steps": high, "matches": len(winners)}
        for name, winner in (("wins", 0), ("losses", 1)):
            row[name] = float((winners == winner).mean()) if len(winners) else 0.0
        rows.append({**row, "cpu_s": cpu_s * (tenth + 1) / TENTHS})
    return model, rows


def result_rows(player: str, seed: int | str, who: Any, more: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Results in new matches against each opponent, both sides played.

    Args:
        player: Arm, or name of a script.
        seed: Number of the training.
        who: What plays.
        more: Further columns.
    """
    shown: dict[str, Any] = {"observation": player} if player in ARMS else {}
    rows = []
    for opponent in TESTS:
        table = evaluate(ENV_ID, who, opponent, matches=TEST_MATCHES, num_envs=256, swap=True, **OPTIONS, **shown)
        low, high = table.win_interval
        row = {"player": player, "seed": seed, "opponent": opponent, "wins": table.wins / table.matches}
        losses = float((table.results["outcome"] < 0).mean())
        mean = float(table.results["return_a"].mean())
        rows.append({**row, "low": low, "high": high, "losses": losses, "reward": mean, **(more or {})})
    return rows


def draw_first_hour(folder: Path) -> None:
    """Draws won matches over decisions, and the share that is asked for."""
    table = folder / "concert_first_hour.csv"
    rows, title = drawing.read_table(table), "ConcertDuel, against random play"
    shown: Any = {"titles": {arm: f"MaskablePPO, {arm}" for arm in ARMS}, "is_share": True}
    shown["lines"] = {"threshold: 70 %": LEAST_WINS}
    drawing.draw(table, [drawing.panel_of(title, "share won while exploring", rows, "arm", "wins", **shown)])


def result_lines(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """A line of text for each player, seed and opponent, with what was asked."""
    for row in rows:
        text = f"{row['player']:16s}{row['seed']!s:3s}against {row['opponent']:16s}won {row['wins']:.3f}"
        text += f" ({row['low']:.3f} to {row['high']:.3f}), lost {row['losses']:.3f}, reward {row['reward']:+.3f}"
        if row["player"] in ARMS and row["opponent"] == LEARNS_FROM:
            asked = [
                (f"at least {LEAST_WINS:g}", row["wins"] >= LEAST_WINS),
                (f"{row['cpu_s']:.0f} s of processor, at most {MOST_SECONDS:g}", row["cpu_s"] <= MOST_SECONDS),
            ]
            text += figures.verdicts(asked)
        yield text


FIGURES = (Figure("concert_first_hour", first_hour, draw_first_hour),)
