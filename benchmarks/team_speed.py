"""Speed of the team games: particles next to mpe2 in one run."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from measurement import Measurement, NotHere, ReportProgress, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark, Timing
from palaestra.cli.random_actions import POOL, batch_call

LANES = 4096
TAG, SPREAD = "palaestra/TeamTag-v0", "palaestra/Spread-v0"
TAG_BAR, TAG_FACE_BAR, SPREAD_BAR = 500.0, 50.0, 1000.0
REFERENCE = 4.7e6
"""TeamTag's decisions a second for which the bars of `next_to_tag` agree."""


def particles(report_progress: ReportProgress) -> list[Measurement]:
    """Tag and spread next to mpe2: all agents move at random, all results are discarded.

    Raises:
        NotHere: mpe2 is missing.
    """
    tag, face, their_tag, spread, their_spread = timed(
        random_play(TAG),
        parallel(registry.make_parallel(TAG)),
        parallel(mpe2("simple_tag_v3")),
        random_play(SPREAD, rules="mpe"),
        parallel(mpe2("simple_spread_v3")),
    )
    return [
        ratio(f"TeamTag 3v1, batch of {LANES} over mpe2's simple_tag", tag, their_tag, TAG_BAR),
        ratio("TeamTag 3v1, ParallelEnv over mpe2's simple_tag", face, their_tag, TAG_FACE_BAR),
        ratio(f"Spread by mpe2's rules, batch of {LANES} over mpe2's simple_spread", spread, their_spread, SPREAD_BAR),
    ]


def random_play(id: str, **keywords: Any) -> Benchmark:
    """The batch loop of a game; all its agents by random actions."""
    sim = registry.make_batch(id, LANES, **keywords)
    return Benchmark(id, batch_call(sim), LANES, sim.close)


def next_to_tag(about: str, timing: Timing, bars: tuple[float, float], tag: Timing) -> list[Measurement]:
    """Decisions a second, and their share of TeamTag's in the same run.

    Where TeamTag makes fewer than `REFERENCE`, the machine is slower or busy, and the share is held to its bar instead
    of the speed.

    Args:
        about: What is played.
        timing: Its timing.
        bars: Of decisions a second of a match on one core, and of their share of TeamTag's in per cent.
        tag: TeamTag's.
    """
    (bar, share_bar), rate, speed = bars, 1e9 / tag.ns, 1e9 / timing.ns
    is_slow = rate < REFERENCE
    which = "the share is held to its bar" if is_slow else "the speed is held to its bar"
    note = f"TeamTag {rate / 1e6:.2f} M/s, reference {REFERENCE / 1e6:.1f}: {which}"
    decisions = f"{about}: decisions a second on one core (bar {bar:,.0f} at the reference)"
    share = f"{about}: % of TeamTag's decisions a second (bar {share_bar:g} below it)"
    return [
        Measurement("", decisions, speed, None if is_slow else bar, True, note),
        Measurement("", share, 100 * speed / rate, share_bar if is_slow else None, True),
    ]


def parallel(env: Any) -> Benchmark:
    """A ParallelEnv of PettingZoo, ours or another's; all its agents by random actions, a reset after each match."""
    env.reset(seed=0)
    rng, count = np.random.default_rng(0), [0]
    pool = [{agent: int(rng.integers(env.action_space(agent).n)) for agent in env.agents} for _ in range(POOL)]

    def call() -> None:
        env.step(pool[count[0] % POOL])
        count[0] += 1
        if not env.agents:
            env.reset()

    return Benchmark(str(env), call, 1, env.close)


def mpe2(scenario: str) -> Any:
    """A ParallelEnv of mpe2.

    Raises:
        NotHere: mpe2 is missing.
    """
    try:
        return importlib.import_module(f"mpe2.{scenario}").parallel_env()
    except ImportError as error:
        raise NotHere('needs mpe2: pip install "mpe2>=1.1"') from error


def ratio(about: str, ours: Timing, theirs: Timing, bar: float) -> Measurement:
    """How many times more decisions a second are ours."""
    note = f"decisions/s: {1e9 / ours.ns:,.0f} to {1e9 / theirs.ns:,.0f}"
    return Measurement("", about, theirs.ns / ours.ns, bar, True, note)
