"""A throw found by search: one hand tosses the ball to the other, without any learning.

A plan is how a hand grips at a few moments, with straight lines between: ``commands="grip"`` has 4 numbers for a fixed
hand and 10 for a movable one. The cross-entropy method plays many plans at once, keeps the best, and draws the next
ones around them; the catcher stays cupped. 1,600 rollouts take about a minute::

    pip install "palaestra[robots]"
    python examples/throw_by_search.py --seed 0 --record throw.npz
    palaestra replay throw.npz --verify --gif throw.gif
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import palaestra
from palaestra.replay import Recorder

IDS = ("palaestra/HandOver-v0", "palaestra/HandCatchAbreast-v0", "palaestra/HandCatchOver2Underarm-v0")
NEAR_M = 0.03
"""Where the rules say that the ball is caught."""
KNOTS, THROW = 5, 25
"""Moments of a plan, and the decisions over which they are spread; the last one holds until the end."""
LANES, ELITES, KEPT = 100, 10, 4
"""Plans at once, plans that the next ones are drawn around, and those that are played again."""
SPREAD, LEAST_SPREAD = 0.5, 0.04


def make(id: str, lanes: int) -> Any:
    """A batch whose catcher holds still."""
    sim = palaestra.make_batch(id, lanes, autoreset_mode="off", commands="grip")
    sim.set_opponent("hand_1", "hold")
    return sim


def play(sim: Any, plans: np.ndarray, seed: int) -> np.ndarray:
    """Plays a plan a lane, ``[N, KNOTS, numbers]``; returns the least distances of the balls to the goal, metres."""
    sim.reset(seed=np.full(sim.num_envs, seed))
    for k in range(sim.game.horizon):
        moment = min(k / THROW, 1.0) * (KNOTS - 1)
        before = min(int(moment), KNOTS - 2)
        sim.actions[:, 0] = plans[:, before] + (moment - before) * (plans[:, before + 1] - plans[:, before])
        sim.step()
        if (sim.states["info"]["end_reason"] > 0).all():
            break
    return sim.states["info"]["nearest_m"].copy()


def search(seed: int, rollouts: int = 1600, id: str = IDS[0], quiet: bool = False) -> tuple[np.ndarray, float]:
    """The best plan that was found, ``[KNOTS, numbers]``, and how near the ball came to the goal, metres."""
    lanes = min(LANES, rollouts)
    rng, sim = np.random.default_rng(seed), make(id, lanes)
    mean = np.zeros((KNOTS, sim.actions.shape[2]))  # of all grips 0 is the start's
    spread, elites, nearest = np.full(mean.shape, SPREAD), mean[None], np.inf
    for number in range(rollouts // lanes):
        plans = np.clip(rng.normal(mean, spread, (lanes, *mean.shape)), -1.0, 1.0)
        plans[:, 0] = 0.0
        plans[: len(elites[:KEPT])] = elites[:KEPT]
        distances = play(sim, plans, seed)
        elites = plans[np.argsort(distances)[:ELITES]]
        mean, spread = elites.mean(axis=0), elites.std(axis=0) + LEAST_SPREAD
        nearest = float(distances.min())
        if not quiet:
            print(f"rollouts {(number + 1) * lanes}  nearest {1000 * nearest:.1f} mm", flush=True)
    sim.close()
    return elites[0], nearest


def main() -> None:
    """Searches, and says what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--id", choices=IDS, default=IDS[0], help="which hands")
    parser.add_argument("--seed", type=int, default=0, help="of the search and of the match")
    parser.add_argument("--rollouts", type=int, default=1600, help="matches that are played")
    parser.add_argument("--record", metavar="FILE", help="write the best throw as a replay (.npz)")
    options = parser.parse_args()
    if options.rollouts <= ELITES:
        parser.error(f"--rollouts must be more than {ELITES}, those that the next plans are drawn around")
    plan, nearest = search(options.seed, options.rollouts, options.id)
    print(f"the ball came within {1000 * nearest:.1f} mm of the goal: {'caught' if nearest < NEAR_M else 'missed'}")
    if options.record:
        sim = make(options.id, 1)
        with Recorder(sim) as recorder:
            play(sim, plan[None], options.seed)
        recorder.replay().save(options.record)


if __name__ == "__main__":
    main()
