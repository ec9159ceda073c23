"""81 against 81 on a grid: a policy in NumPy that reads windows, masks and what its neighbours know.

python examples/grid_battle.py           # plays 64 matches against the script "rush"
python examples/grid_battle.py war.gif   # and draws one of them (needs palaestra[render])
"""

import sys
import time
from typing import Any

import numpy as np

import palaestra
from palaestra.replay import Recorder, to_gif

MATCHES = 64
FIRST_HIT = 13
COLUMN, LINE = 5, 11
OPPONENT, ITS_HIT_POINTS = 3, 4
AROUND = [(0, 1), (0, -1), (-1, 0), (1, 0), (-1, 1), (1, 1), (-1, -1), (1, -1)]
"""Rows and columns ahead of the eight hits."""
WAYS = [(0, 0), *AROUND, (0, 2), (0, -2), (-2, 0), (2, 0)]
"""Likewise of staying and of the twelve moves."""


def act(seen: Any, mask: np.ndarray) -> np.ndarray:
    """All hold a line and hit the weakest opponent; who sees none goes along the line to neighbours that see some.

    Args:
        seen: Records ``[N, 81]`` with the fields own, window, neighbours and offsets.
        mask: Legal alternatives, int8 ``[N, 81, 21]``.

    Returns:
        Alternatives, int64 ``[N, 81]``.
    """
    window, column = seen["window"], seen["own"][..., COLUMN].astype(int)
    alarm = window[..., OPPONENT].any(axis=(2, 3))
    neighbours = seen["neighbours"].astype(int)  # numbers within the team, -1 beyond the last
    known = np.take_along_axis(alarm, np.maximum(neighbours, 0).reshape(len(alarm), -1), 1).reshape(neighbours.shape)
    along = np.sign((seen["offsets"][..., 0] * (known & (neighbours >= 0))).sum(axis=2))  # up or down to those
    down, ahead = np.array(WAYS).T
    cost = 4 * abs(column[..., None] + ahead - LINE) + abs(down) - 2 * (along * ~alarm)[..., None] * down
    move = np.where(mask[..., :FIRST_HIT] == 1, cost, 1000).argmin(axis=2)
    weak = np.stack([window[..., 6 + down, 6 + ahead, ITS_HIT_POINTS] for down, ahead in AROUND], axis=2)
    weak = np.where(mask[..., FIRST_HIT:] == 1, weak, 255)
    return np.where(weak.min(axis=2) < 255, FIRST_HIT + weak.argmin(axis=2), move)


batch = palaestra.make_batch("palaestra/GridBattle-v0", MATCHES, autoreset_mode="off", opponents={"blue": "rush"})
with Recorder(batch) as recorder:
    batch.reset(seed=1)
    start, decisions = time.perf_counter(), 0
    while not (batch.terminated | batch.truncated).all() and decisions < 300:
        seen, legal = batch.team_view("red", "observations"), batch.team_view("red", "legal")
        batch.write_team_actions("red", act(seen, legal["act"] if legal.dtype.names else legal))
        batch.step()
        decisions += 1
seconds = time.perf_counter() - start
won = (batch.info["red_left"] > batch.info["blue_left"]).mean()
print(f"red holds a line and listens to its neighbours: it wins {won:.0%} of {MATCHES} matches against rush")
print(f"{MATCHES * decisions / seconds:,.0f} decisions of 162 agents a second, the policy's time included")
if len(sys.argv) > 1 and sys.argv[1].endswith(".gif"):
    print(f"{sys.argv[1]}: {to_gif(recorder.replay(), sys.argv[1])} pictures")
