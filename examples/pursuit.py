"""Pursuit that is solved: how near a script comes to optimal pursuers on a grid, against an evader that plays optimally.

python examples/pursuit.py                # plays 1,000 matches from starts that optimal pursuers win
python examples/pursuit.py dungeon.gif    # and draws a match in a dungeon (needs palaestra[render])
"""

import sys

import gymnasium
import numpy as np

import palaestra
from palaestra import exact

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

if len(sys.argv) > 1:
    from PIL import Image

    env = gymnasium.make("palaestra/GraphPursuit-Dungeons-v0", opponent="flee", render_mode="rgb_array")
    observation, info = env.reset(seed=3)
    pictures, over = [env.render()], False
    while not over:
        moves = [np.flatnonzero(mask)[-1] for mask in info["action_mask"]]
        observation, reward, terminated, truncated, info = env.step(moves)
        pictures.append(env.render())
        over = terminated or truncated
    first, *others = map(Image.fromarray, pictures)
    first.save(sys.argv[1], save_all=True, append_images=others, duration=333)
