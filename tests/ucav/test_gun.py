"""The gun of a fight of two, one behaviour a test. Numbers are those of the contest unless a test says others."""

from __future__ import annotations

import math

import pytest
from ucav.fights import Match

from palaestra.games.ucav import weapons
from palaestra.games.ucav.dogfight import BLUE, RED

pytestmark = pytest.mark.jitless


def test_a_target_in_the_cone_takes_exactly_the_damage_of_its_range():
    match = Match().chase(range_m=500.0)
    assert not match.evaluate()
    expected = 0.1 * (914.4 - 500.0) / (914.4 - 152.4)
    assert match.s.health[BLUE] == pytest.approx(1.0 - expected, rel=1e-12)
    assert match.s.health[RED] == 1.0
    assert match.s.info.gun_damage[RED] == pytest.approx(expected)


def test_damage_falls_with_range():
    near, far = Match().chase(200.0), Match().chase(900.0)
    near.evaluate()
    far.evaluate()
    assert near.s.health[BLUE] < far.s.health[BLUE] < 1.0


@pytest.mark.parametrize(("heading_deg", "hit"), [(0.0, True), (130.0, True), (140.0, False), (180.0, False)])
def test_an_aspect_rule_forbids_shots_into_the_forward_quarter(heading_deg, hit):
    match = Match(gun_aspect_deg=135.0)
    match.put(RED, 0.0)
    match.put(BLUE, 400.0, heading_deg=heading_deg)
    match.evaluate()
    assert (match.s.health[BLUE] < 1.0) == hit
    assert bool(match.s.in_gun[RED]) == hit


@pytest.mark.parametrize(
    ("heading_deg", "column"), [(0.0, 0), (59.0, 0), (61.0, 1), (119.0, 1), (121.0, 2), (180.0, 2)]
)
def test_damage_is_counted_by_where_it_comes_from(heading_deg, column):
    match = Match(blue_gun=0.0)
    match.put(RED, 0.0)
    match.put(BLUE, 400.0, heading_deg=heading_deg)
    match.evaluate()
    damage = match.s.info.aspect_damage[RED]
    assert damage[column] == match.s.info.gun_damage[RED] > 0.0
    assert damage.sum() == damage[column]


@pytest.mark.parametrize("range_m", [150.0, 920.0])
def test_outside_the_range_window_the_gun_does_nothing(range_m):
    match = Match().chase(range_m)
    match.evaluate()
    assert match.s.health[BLUE] == 1.0


def test_outside_the_cone_the_gun_does_nothing():
    match = Match().chase(off_deg=1.01)
    match.evaluate()
    assert match.s.health[BLUE] == 1.0


def test_a_wider_cone_hits_what_a_narrow_one_misses():
    match = Match(cone_half_angle_deg=2.0).chase(off_deg=1.9)
    match.evaluate()
    assert match.s.health[BLUE] < 1.0


def test_the_cone_widens_on_the_schedule_of_the_contest():
    match = Match(cone_step_deg=1.0)
    for seconds, degrees in ((0, 1), (99.9, 1), (100, 2), (149.9, 2), (150, 3), (200, 4)):
        match.s.periods = round(10 * seconds)
        assert math.degrees(weapons.cone_half_angle_rad(match.s)) == pytest.approx(degrees)


def test_by_default_the_cone_stays_as_it_is():
    match = Match()
    match.s.periods = 1990
    assert math.degrees(weapons.cone_half_angle_rad(match.s)) == pytest.approx(1.0)


def test_an_unarmed_aircraft_does_no_damage():
    match = Match(red_gun=0.0).chase()
    match.evaluate()
    assert match.s.health[BLUE] == 1.0
    assert match.s.info.cone_seconds[RED] == pytest.approx(0.1)


def test_head_on_both_guns_hit():
    match = Match()
    match.put(RED, 0.0)
    match.put(BLUE, 400.0, heading_deg=180.0)
    match.evaluate()
    assert match.s.health[RED] == match.s.health[BLUE] < 1.0
    assert match.rewards.tolist() == [0.0, 0.0]


def test_the_funnel_counts_an_opportunity_once_and_its_seconds_all():
    match = Match().chase(off_deg=5.0)
    for _ in range(3):
        match.evaluate()
    assert match.s.info.opportunities.tolist() == [1, 0]
    assert match.s.info.opportunity_seconds[RED] == pytest.approx(0.3)
    assert match.s.info.cone_seconds[RED] == 0.0
