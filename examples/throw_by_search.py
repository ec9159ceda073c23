"""A throw found by search: the right hand tosses the ball to the left one, without any learning.

A plan is what the servos are told at a few moments, with straight lines between. The cross-entropy method plays many
plans at once, keeps the best, and draws the next ones around them. 1,600 rollouts take about a minute,
and find a throw for two of the seeds 0, 1 and 2::

    python examples/throw_by_search.py --seed 0 --record throw.npz
    palaestra replay throw.npz --verify --gif throw.gif
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import palaestra
from palaestra.replay import Recorder

ID = "palaestra/HandOver-v0"
KNOTS, THROW = 5, 25
"""Moments of a plan, and the decisions over which they are spread; the last one holds until the end."""
ELITES, KEPT = 10, 4
"""Plans that the next ones are drawn around, and those that are played again."""


def play(sim: Any, plans: np.ndarray, seed: int) -> np.ndarray:
    """Plays a plan a lane, ``[N, KNOTS, 20]``, from the same start; returns the least distance to the goal, metres."""
    sim.reset(seed=np.full(sim.num_envs, seed))
    for k in range(sim.game.horizon):
        moment = min(k / THROW, 1.0) * (KNOTS - 1)
        before = min(int(moment), KNOTS - 2)
        sim.actions[:, 0] = plans[:, before] + (moment - before) * (plans[:, before + 1] - plans[:, before])
        sim.step()
    return sim.states["info"]["nearest_m"].copy()


def search(seed: int, rollouts: int = 1600, lanes: int = 200, quiet: bool = False) -> tuple[np.ndarray, float]:
    """The best plan that was found, ``[KNOTS, 20]``, and how near the ball came to the goal, metres."""
    rng = np.random.default_rng(seed)
    sim = palaestra.make_batch(ID, lanes, autoreset_mode="off")
    sim.set_opponent("hand_1", "hold")
    sim.reset(seed=seed)
    cupped = sim.states["last"][0, 0]  # what the servos are told at the start
    mean, spread = np.tile(cupped, (KNOTS, 1)), np.full((KNOTS, 20), 0.4)
    elites, nearest = mean[None], np.inf
    for number in range(rollouts // lanes):
        plans = np.clip(rng.normal(mean, spread, (lanes, KNOTS, 20)), -1.0, 1.0)
        plans[:, 0] = cupped
        plans[: len(elites[:KEPT])] = elites[:KEPT]
        distances = play(sim, plans, seed)
        elites = plans[np.argsort(distances)[:ELITES]]
        mean, spread = elites.mean(axis=0), elites.std(axis=0) + 0.04
        nearest = float(distances.min())
        if not quiet:
            print(f"rollouts {(number + 1) * lanes}  nearest {1000 * nearest:.1f} mm", flush=True)
    sim.close()
    return elites[0], nearest


def main() -> None:
    """Searches, and says what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="of the search and of the match")
    parser.add_argument("--rollouts", type=int, default=1600, help="matches that are played")
    parser.add_argument("--record", metavar="FILE", help="write the best throw as a replay (.npz)")
    options = parser.parse_args()
    plan, nearest = search(options.seed, options.rollouts)
    print(f"the ball came within {1000 * nearest:.1f} mm of the goal: {'caught' if nearest < 0.03 else 'missed'}")
    if options.record:
        sim: Any = palaestra.make_batch(ID, 1, autoreset_mode="off")
        sim.set_opponent("hand_1", "hold")
        with Recorder(sim) as recorder:
            play(sim, plan[None], options.seed)
        recorder.replay().save(options.record)


if __name__ == "__main__":
    main()
