"""A league in a few lines: every match of a batch is against one of the past versions of a policy.

The policy here is a single number (the breath at which it pulls), improved by hill climbing: what matters is the choice
of opponents.
"""

import sys

import numpy as np

sys.path.insert(0, __file__.rpartition("/")[0])
import add_a_game  # noqa: F401  (registers examples/Rope-v0)

import palaestra
from palaestra.wrappers import SelfPlayPool

LANES = 512


def policy(breath_wanted: float):
    """Pulls as soon as it has ``breath_wanted``: observations [n, 1, 3] -> actions [n, 1]."""
    return lambda observations: (observations[:, :, 1] >= breath_wanted).astype(np.int64)


best = 0.9
league = SelfPlayPool("examples/Rope-v0", members=[policy(best)])
batch = palaestra.make_batch("examples/Rope-v0", num_envs=LANES, opponents={"blue": league})
for generation in range(5):
    scores = {}
    for candidate in (best, best - 0.1):
        batch.set_opponent("red", policy(candidate))
        batch.reset(seed=generation << 32)
        scores[candidate] = sum(float(batch.rewards[:, 0].sum()) for _ in range(200) if batch.step() is None)
    best = max(scores, key=lambda c: scores[c])
    league.add(policy(best))
    print(
        f"generation {generation}: pulls at breath {best:.1f}, score {scores[best]:+.0f} against {len(league)} others"
    )
