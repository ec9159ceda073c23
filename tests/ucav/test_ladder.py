"""Scripts against scripts: none ends its own flight, few collide, the ladder is in order, and strength grades them."""

from __future__ import annotations

from contextlib import closing
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest

import palaestra
from palaestra.core.compile.batch_loop import HORIZON
from palaestra.evaluation import MatchTable, evaluate
from palaestra.games.ucav.pilots import SCRIPTS

pytestmark = pytest.mark.check

pytest.importorskip("jsbsim", reason='the aircraft need the extra "palaestra[flight]"')

CONTEST = "palaestra/UcavDogfight-Contest-v2"
TARGETS = ("straight", "level_turn", "weave", "jink", "random_macros", "vertical")
LADDER = ("pure_pursuit", "lag_pursuit", "lead_pursuit", "expert")
MATCHES = 1070
OWN_ENDS = {"crash", "overload", "off_tables", "not_finite", "both"}


def play(a: str, b: str, matches: int) -> MatchTable:
    """Matches by the rules of the contest, each seed from both sides."""
    return evaluate(CONTEST, a, b, matches=matches, num_envs=min(matches, 535))


def score(table: MatchTable) -> float:
    """Points of the first player: 1 for a match that a rule ended for it, 1/2 for one that stayed undecided."""
    decided = np.where(table.results["end_reason"] == HORIZON, 0, table.results["outcome"])
    return float((1.0 + decided.mean()) / 2.0)


def share(table: MatchTable, ends: set[str]) -> float:
    """Share of the matches that ended in one of these ways."""
    return sum(count for name, count in table.end_reasons.items() if name in ends) / table.matches


@pytest.mark.parametrize("script", TARGETS)
def test_a_target_that_nobody_hunts_flies_on(script: str):
    far = {"neutral_range_low_m": 20_000.0, "neutral_range_high_m": 20_000.0, "arena_radius_m": 100_000.0}
    players = {"opponents": {"red": script, "blue": "straight"}, "autoreset_mode": "off"}
    with closing(palaestra.make_batch(CONTEST, 16, neutral_weight=1.0, **far, **players)) as sim:
        sim.reset(seed=1)
        for _ in range(1000):
            sim.step()
        assert not sim.terminated.any()


@pytest.mark.parametrize("strength", ["1", "0.5", "0"])
def test_scripts_of_any_strength_do_not_end_their_own_flights(strength: str):
    table = play(f"mix:{strength}", f"mix:{strength}", 256)
    assert share(table, OWN_ENDS) == 0.0
    assert share(table, {"collision"}) <= 0.1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("hunter", LADDER)
def test_the_ladder_kills_targets(hunter: str, target: str):
    assert share(play(hunter, target, 64), {"kill"}) >= 0.95


@pytest.mark.slow
def test_a_pilot_of_more_strength_scores_more():
    scores = [score(play(f"pure_pursuit:{strength}", "pure_pursuit", 128)) for strength in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert all(more > less for less, more in pairwise(scores))
    assert scores[0] < 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("weaker", "better"), list(pairwise(LADDER)))
def test_each_of_the_ladder_beats_the_one_before(weaker: str, better: str):
    assert score(play(better, weaker, MATCHES)) >= 0.58


@pytest.mark.slow
@pytest.mark.parametrize(("a", "b"), list(combinations_with_replacement(SCRIPTS, 2)))
def test_few_matches_of_any_pair_end_by_collision(a: str, b: str):
    table = play(a, b, MATCHES if {a, b} <= set(LADDER) else 128)
    assert share(table, {"collision"}) <= 0.1
    assert share(table, OWN_ENDS - {"both"}) <= 0.01  # two guns that kill at once end as `both`, too
