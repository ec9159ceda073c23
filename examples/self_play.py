"""A league in a few lines: past versions of a policy play in different lanes of one batch, swapped while it runs.

The policy here is a single number (the breath at which it pulls), improved by hill climbing: what matters is who plays
whom.
"""

import sys

import numpy as np

sys.path.insert(0, __file__.rpartition("/")[0])
import add_a_game  # noqa: F401  (registers examples/Rope-v0)

import palaestra

LANES = 512


def policy(breath_wanted: float):
    """Pulls as soon as it has ``breath_wanted``: observations [n, 1, 3] -> actions [n, 1]."""
    return lambda observations: (observations[:, :, 1] >= breath_wanted).astype(np.int64)


batch = palaestra.make_batch("examples/Rope-v0", num_envs=LANES)
batch.set_opponent("blue", "steady")
league, best = [policy(0.9)], 0.9
for generation in range(5):
    scores = {}
    for candidate in (best, best - 0.1):
        batch.set_opponent("red", policy(candidate))
        for k, past in enumerate(league):  # every past version gets its share of the lanes
            batch.set_opponent("blue", past, lanes=np.arange(LANES) % len(league) == k)
        batch.reset(seed=generation << 32)
        scores[candidate] = sum(float(batch.rewards[:, 0].sum()) for _ in range(200) if batch.step() is None)
    best = max(scores, key=lambda c: scores[c])
    league.append(policy(best))
    print(f"generation {generation}: pulls at breath {best:.1f}, score {scores[best]:+.0f} in {LANES} lanes")
