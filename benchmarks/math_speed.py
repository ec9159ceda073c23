"""Speed of MathText: turns a second of the batch loop, by the oracle and by random tokens."""

from __future__ import annotations

import numpy as np

from measurement import Measurement, ReportProgress, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark
from palaestra.games.mathtext.math_language import VOCABULARY

ARITH, ALGEBRA = "palaestra/MathText-Arith-v0", "palaestra/MathText-Algebra-v0"
LANES, BAR = 1024, 500e3
"""Matches side by side, and turns a second of one core."""


def turns(report_progress: ReportProgress) -> list[Measurement]:
    """Turns a second of the form of tokens; each ends a match, and the next question is drawn in the same step."""
    plays = {
        "chains, oracle": oracle_play(ARITH),
        "chains, random tokens": random_play(ARITH),
        "equations, oracle": oracle_play(ALGEBRA),
    }
    timings = zip(plays, timed(*plays.values()), strict=True)
    return [
        Measurement("", f"MathText, {about}, batch of {LANES}: turns a second", 1e9 / timing.ns, BAR, True)
        for about, timing in timings
    ]


def oracle_play(id: str) -> Benchmark:
    """The batch loop, the oracle as the player."""
    sim = registry.make_batch(id, LANES, opponents={"agent": "oracle"}, autoreset_mode="same_step")
    sim.reset(seed=0)
    return Benchmark(id, sim.step, LANES, sim.close)


def random_play(id: str) -> Benchmark:
    """The batch loop, with the same random tokens in each turn."""
    sim = registry.make_batch(id, LANES, autoreset_mode="same_step")
    sim.reset(seed=0)
    (choice,) = sim.game.roles[0].action
    actions = np.random.default_rng(0).integers(0, VOCABULARY, (LANES, 1, *choice.shape))
    return Benchmark(id, lambda: sim.step(actions), LANES, sim.close)
