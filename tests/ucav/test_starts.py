"""How a fight of two begins: set-ups by name, places of the user's, options of reset."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from games.play import long_without_the_compiler

import palaestra
from palaestra.core.compile.linker import record_view
from palaestra.games.ucav import CONTEST, dogfight
from palaestra.games.ucav.body import BLUE, RED
from palaestra.games.ucav.geometry import antenna_train_angle_rad, distance_m, energy_height_m
from palaestra.games.ucav.starts import PLACED, STARTS

pytestmark = pytest.mark.jitless

GAME = dogfight.game()
SEEDS = range(0, 40 * 7919, 7919)


def begin(start: str, seed: int, **parameters: float) -> Any:
    """Match record of a match that has been set up."""
    s: Any = record_view(np.zeros(1, GAME.state_dtype))[0]
    for p in GAME.parameters:
        setattr(s.parameters, p.name, (CONTEST | parameters).get(p.name, p.default))
    s.parameters.start = STARTS.index(start)
    s.team[:], s.alive[:] = GAME.team_index, 1
    s.rng = seed
    with np.errstate(over="ignore"):
        GAME.reset(s, GAME.world)
    return s


def off_noses_deg(s: Any) -> tuple[float, float]:
    """Angle of the other off each nose, seen from above: both at one height."""
    for body in s.body:
        body.altitude_m = 4000.0
    angles = antenna_train_angle_rad(s.body[RED], s.body[BLUE]), antenna_train_angle_rad(s.body[BLUE], s.body[RED])
    return math.degrees(angles[0]), math.degrees(angles[1])


@pytest.mark.parametrize(
    ("start", "red_deg", "blue_deg"),
    [
        ("offensive", (0.0, 20.0), (135.0, 180.0)),
        ("defensive", (135.0, 180.0), (0.0, 20.0)),
        ("head_on", (0.0, 10.0), (0.0, 10.0)),
        ("high_aspect", (20.0, 45.0), (20.0, 45.0)),
    ],
)
def test_each_set_up_has_its_angles_and_uses_their_range(start, red_deg, blue_deg):
    seen = np.array([off_noses_deg(begin(start, seed)) for seed in SEEDS])
    for angles, (low, high) in zip(seen.T, (red_deg, blue_deg), strict=True):
        assert low - 1e-6 <= angles.min()
        assert angles.max() <= high + 1e-6
        assert np.ptp(angles) > 0.7 * (high - low)


@pytest.mark.parametrize("start", ["neutral", "head_on", "high_aspect"])
def test_sides_of_an_even_set_up_are_images_under_half_a_turn(start):
    for seed in SEEDS[:10]:
        red, blue = begin(start, seed).body
        assert (red.north_m, red.east_m) == pytest.approx((-blue.north_m, -blue.east_m))
        assert math.remainder(red.heading_rad - blue.heading_rad - math.pi, math.tau) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("start", "sign"), [("energy_high", 1.0), ("energy_low", -1.0)])
def test_one_side_has_more_energy(start, sign):
    for seed in SEEDS[:20]:
        s = begin(start, seed)
        assert sign * (s.body[RED].altitude_m - s.body[BLUE].altitude_m) >= 500.0
        assert sign * (energy_height_m(s.body[RED]) - energy_height_m(s.body[BLUE])) >= 500.0


def test_a_mixture_draws_the_three_set_ups_with_their_weights():
    angles = np.array([off_noses_deg(begin("mix", seed)) for seed in range(0, 400 * 7919, 7919)])
    behind = (angles.min(axis=1) < 20.0) & (angles.max(axis=1) > 135.0)
    assert 0.35 < behind.mean() < 0.65
    assert 0.2 < (angles[behind, 0] < 90.0).mean() < 0.8
    alone = {"neutral_weight": 0.0, "blue_behind_weight": 0.0}
    assert all(off_noses_deg(begin("mix", seed, **alone))[0] <= 20.0 for seed in SEEDS)


def test_a_place_of_the_users_is_taken_as_given():
    given = {"red_north_m": -300.0, "red_east_m": 400.0, "red_altitude_m": 6000.0, "red_heading_deg": -90.0}
    s = begin("placed", 3, **given, blue_speed_mps=310.0)
    assert (s.body[RED].north_m, s.body[RED].east_m, s.body[RED].altitude_m) == (-300.0, 400.0, 6000.0)
    assert math.degrees(s.body[RED].heading_rad) == pytest.approx(270.0)
    assert s.body[BLUE].true_airspeed_mps == 310.0
    assert distance_m(*begin("placed", 4).body) == distance_m(*begin("placed", 5).body)
    assert STARTS.index("placed") == PLACED


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "head-on"}, "start must be one of .*did you mean 'head_on'"),
        ({"strat": "head_on"}, "unknown option 'strat'"),
        ({"start": "placed", "red_altitude_m": -50.0}, r"red_altitude_m must be in \[500, 15000\] m"),
        ({"start": "placed", "blue_speed_mps": 10.0}, "blue_speed_mps must be in"),
        ({"behind_range_low_m": 500.0}, "'behind_range_low_m' is no option but a parameter of the rules"),
    ],
)
def test_a_start_that_cannot_be_is_refused(options, message):
    env = gymnasium.make("palaestra/UcavDogfight-v2", opponent="straight")
    with pytest.raises(ValueError, match=message):
        env.reset(seed=1, options=options)


@pytest.mark.parametrize("name", ["altitude_low_m", "speed_low_mps", "behind_range_low_m", "neutral_range_low_m"])
def test_a_range_of_starts_with_exchanged_ends_is_refused(name):
    top = {p.name: p.high for p in GAME.parameters}[name]
    with pytest.raises(ValueError, match=f"{name} must not exceed {name.replace('low', 'high')}"):
        palaestra.make_batch("palaestra/UcavDogfight-v2", 2, **{name: top})


@long_without_the_compiler
def test_reset_takes_starts_of_its_own_for_each_lane():
    sim = palaestra.make_batch("palaestra/UcavDogfight-v2", 2)
    envs: Any = gymnasium.make_vec("palaestra/UcavDogfight-v2", 3, opponent="straight")
    envs.reset(seed=0, options={"start": ["offensive", "defensive", "placed"], "red_north_m": [0.0, 0.0, -5000.0]})
    bodies = envs.unwrapped.sim.states["body"]
    assert bodies["north_m"][2, RED] == pytest.approx(-5000.0, abs=1.0)
    assert (np.abs(bodies["north_m"][:2, RED]) < 1000.0).all()
    envs.reset()
    assert bodies["north_m"][2, RED] != pytest.approx(-5000.0, abs=1.0)
    sim.close()
    envs.close()
