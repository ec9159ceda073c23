"""The scripts of teams: whom each aircraft fights."""

from __future__ import annotations

import math

import pytest
from ucav.team_fights import FOUR, Match

from palaestra.games.ucav import team_scripts
from palaestra.games.ucav.body import BLUE, RED

pytestmark = pytest.mark.jitless

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")


# ---------------------------------------------------------------------------------------------------------- scripts


def test_solo_fights_the_nearest_and_sort_leaves_no_opponent_free():
    match = Match(FOUR).apart()
    assert match.plan(RED, "solo") == [4, 4, 4, 4]
    assert match.plan(BLUE, "solo") == [3, 3, 3, 3]
    assert sorted(match.plan(RED, "sort")) == [4, 5, 6, 7]
    assert match.scratch.target[3] == 4
    match.s.alive[4] = match.s.alive[5] = 0
    assert sorted(match.plan(RED, "sort")) == [6, 6, 7, 7]


def hunted() -> Match:
    """blue_3 is 1.5 km behind red_0 and points at it; all others are beside each other."""
    match = Match(FOUR).apart()
    match.put(7, -1500.0, 0.0)
    return match


def test_the_bait_of_drag_is_who_is_hunted_and_the_nearest_mate_fights_the_hunter():
    assert Match(FOUR).apart().plan(RED, "drag") == Match(FOUR).apart().plan(RED, "sort")
    match = hunted()
    assert match.plan(RED, "drag")[:2] == [7, 7]
    assert match.scratch.bait[RED] == 0
    match.s.body[7].heading_rad = math.pi  # it flies away
    match.plan(RED, "drag")
    assert match.scratch.bait[RED] == -1
    match = hunted()
    match.s.alive[1:4] = 0
    assert match.plan(RED, "drag")[0] == 7
    assert match.scratch.bait[RED] == -1


def test_the_two_of_a_pair_of_cover_fight_whoever_hunts_the_other():
    assert Match(FOUR).apart().plan(RED, "cover") == Match(FOUR).apart().plan(RED, "sort")
    match = hunted()
    match.put(5, 500.0, 0.0)  # nearer to the hunted one, but it flies away
    assert match.plan(RED, "cover")[:2] == [5, 7]
    match.s.body[0], match.s.body[1] = match.s.body[1].copy(), match.s.body[0].copy()
    assert match.plan(RED, "cover")[:2] == [7, 5]
    match.s.alive[0] = 0  # the next one covers now
    assert match.plan(RED, "cover")[1:3] == [5, 7]


@pytest.mark.parametrize("ahead_m", [300.0, -300.0, 500.0])
def test_of_two_mates_that_are_close_the_one_behind_is_slower(ahead_m):
    match = Match(FOUR).apart()
    mate, m = match.put(1, ahead_m, 0.0), match.s.pilots[0]
    m.wish.speed_mps = 400.0
    team_scripts.fall_behind(m, match.s.body[0], mate)
    assert m.wish.speed_mps == (220.0 if ahead_m == 300.0 else 400.0)
