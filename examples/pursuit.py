"""Solved pursuit: how near a script comes to optimal pursuers on a grid, against an evader that plays optimally.

python examples/pursuit.py                # plays 1,000 matches from starts that optimal pursuers win
python examples/pursuit.py dungeon.gif    # and draws a match in a dungeon (needs palaestra[render])
"""

import sys
from typing import Any

import gymnasium
import numpy as np

import palaestra
from palaestra import exact
from palaestra.replay import Recorder, to_gif

MATCHES = 1_000
PURSUERS_WON = 0

solution = exact.pursuit("grid:10x10", pursuers=2)
batch = palaestra.make_batch("palaestra/GraphPursuit-Grid10-v0", MATCHES, autoreset_mode="off")
batch.set_opponent("evader", "optimal")
for script in ("shortest_path", "optimal"):
    batch.set_opponent("pursuer", script)
    batch.reset(seed=7)
    first, second, evader = batch.states["node"][:, :3].T
    fewest = solution.times[first, second, evader]  # the pursuers' moves under optimal play
    while not (batch.terminated | batch.truncated).all():
        batch.step()
    captured = batch.info["winner"] == PURSUERS_WON
    moves = (batch.states["steps"] + 1) // 2  # every other decision is the pursuers'
    times = f"{moves[captured].mean():.1f} moves, optimal {fewest[captured].mean():.1f}" if captured.any() else "never"
    print(f"{script}: captured in {captured.mean():.1%} of {MATCHES:,} matches, in the mean after {times}")

# Policies for any graph see hops from behind each alternative of a move: here the one nearest to the evader is taken.
env: Any = gymnasium.make("palaestra/GraphPursuit-Dungeons-v0", opponent="flee", observation="dict")
with Recorder(env.unwrapped.sim) as recorder:
    observation, info = env.reset(seed=3)
    over = False
    while not over:
        is_there, hops_to_evader = observation["neighbours"][..., 0], observation["neighbours"][..., -1]
        moves = np.where(is_there, hops_to_evader, np.inf).argmin(axis=1)  # of both pursuers
        observation, reward, terminated, truncated, info = env.step(moves)
        over = terminated or truncated
print(f"in a dungeon: {env.unwrapped.sim.states['steps'][0]} decisions, captured {info['captured']}")
if len(sys.argv) > 1:
    print(f"{sys.argv[1]}: {to_gif(recorder.replay(), sys.argv[1])} pictures")
