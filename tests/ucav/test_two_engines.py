"""UCAV matches on both engines: JSBSim itself, the oracle, and its frame as machine code, with the ids' own rules."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import palaestra
from palaestra.games.ucav.geometry import GRAVITY_MPS2
from palaestra.games.ucav.pilots import SCRIPTS
from palaestra.testing.checks.mirror_checks import walk

pytestmark = pytest.mark.check

pytest.importorskip("jsbsim", reason='the aircraft need the extra "palaestra[flight]"')

DOGFIGHT = "palaestra/UcavDogfight-Contest-v2"
ENGINES = ("compiled", "jsbsim")
PLACE = ("north_m", "east_m", "altitude_m")
HZ = 10


# ---------------------------------------------------------------------------------------------------------- matches


def matches(engine: str, red: str, blue: str, lanes: int, **options: Any) -> Any:
    return palaestra.make_batch(
        DOGFIGHT, lanes, engine=engine, autoreset_mode="off", opponents={"red": red, "blue": blue}, **options
    )


def finish(sim: Any) -> None:
    """Plays all lanes to their end."""
    playing = ~(sim.terminated | sim.truncated)
    while playing.any():
        sim.step()
        playing &= ~(sim.terminated | sim.truncated)


@pytest.mark.slow
def test_a_round_robin_has_the_same_winners_on_both_engines():
    """Every pair of scripts, both sides."""
    equal = total = 0
    for red, blue in itertools.permutations(SCRIPTS, 2):
        with closing(matches("compiled", red, blue, 2)) as ours, closing(matches("jsbsim", red, blue, 2)) as oracle:
            for sim in (ours, oracle):
                sim.reset(seed=11)
                finish(sim)
            equal += int((ours.info["winner"] == oracle.info["winner"]).sum())
            total += len(ours.info["winner"])
    print(f"{equal} of {total} winners are equal")
    assert equal >= 0.95 * total


@pytest.mark.parametrize(("red", "blue"), [("pure_pursuit", "expert"), ("lag_pursuit", "weave")])
def test_equal_seeds_fly_the_same_match_on_both_engines(red, blue):
    with closing(matches("compiled", red, blue, 4)) as ours, closing(matches("jsbsim", red, blue, 4)) as oracle:
        ours.reset(seed=7)
        oracle.reset(seed=7)
        for _ in range(5 * HZ):
            ours.step()
            oracle.step()
            for axis in PLACE:
                np.testing.assert_allclose(ours.states["body"][axis], oracle.states["body"][axis], rtol=0, atol=1e-6)
        finish(ours)
        finish(oracle)
        assert ours.info["end_reason"].tolist() == oracle.info["end_reason"].tolist()
        assert ours.info["winner"].tolist() == oracle.info["winner"].tolist()
        assert ours.terminated.all()


def play(engine: str, red: str, blue: str, **options: Any) -> np.ndarray:
    """Winners of 256 matches of two scripts."""
    with closing(matches(engine, red, blue, 256, **options)) as sim:
        sim.reset(seed=10_000)
        finish(sim)
        return sim.info["winner"].copy()


def test_matches_with_exchanged_teams_are_the_same_matches():
    """From the start to kills and crashes, under shaping: `Game.mirror` exchanges the teams of running matches."""
    weights = {"posture_weight": 0.1, "altitude_weight": 0.1, "energy_weight": 0.1, "aim_weight": 0.1}
    options = {**weights, "cone_half_angle_deg": 5.0, "engine": "compiled", "autoreset_mode": "off"}
    with closing(palaestra.make_batch(DOGFIGHT, 16, **options)) as twin:
        for red, blue in (("expert", "lead_pursuit"), ("random", "pure_pursuit")):
            with closing(palaestra.make_batch(DOGFIGHT, 16, opponents={"red": red, "blue": blue}, **options)) as sim:
                _, over = walk(sim, twin, seed=4, rounds=range(400))
            assert over > 0


PAIRS = (
    ("expert", "pure_pursuit"),
    ("lead_pursuit", "expert"),
    ("expert", "lag_pursuit"),
    ("expert", "expert"),
    ("pure_pursuit", "lead_pursuit"),
    ("lag_pursuit", "weave"),
    ("weave", "expert"),
    ("level_turn", "lead_pursuit"),
)


@pytest.mark.slow
def test_equal_seeds_have_the_same_winner_on_both_engines():
    """JSBSim takes about a quarter of an hour for this, half a second of one core a match of hunters."""
    print(f"\n{'red':>13s} {'blue':13s} same winner  red/draw/blue: compiled JSBSim")
    shares = []
    for red, blue in PAIRS:
        ours, oracle = play("compiled", red, blue), play("jsbsim", red, blue, workers=2)
        counts = ["/".join(str(np.sum(winners == who)) for who in (0, -1, 1)) for winners in (ours, oracle)]
        shares.append(float(np.mean(ours == oracle)))
        print(f"{red:>13s} {blue:13s} {shares[-1]:11.1%} {counts[0]:>24s} {counts[1]}", flush=True)
    assert min(shares) >= 0.9


# ---------------------------------------------------------------------------------------------------------- flights


def fly(
    id: str, seconds: float, sticks: Callable[[float, Any], Any], lanes: int = 1, **keywords: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Aircraft from 250 m/s, 6 km, wings level: their records ``[lane, red or blue]`` at the start and at the end.

    ``sticks`` has aileron, elevator, rudder and throttle (0 to 1) for the time (s) and the records.
    """
    level = {"altitude_low_m": 6000.0, "altitude_high_m": 6000.0, "altitude_spread_m": 0.0}
    alike = {"speed_low_mps": 250.0, "speed_high_mps": 250.0, "damage_per_second": 0.0, "arena_radius_m": 1e6}
    with closing(palaestra.make_batch(id, lanes, autoreset_mode="off", **level, **alike, **keywords)) as sim:
        sim.reset(seed=0)
        start = sim.states["body"].copy()
        for period in range(round(HZ * seconds)):
            actions = np.empty((lanes, 2, 4), np.float32)
            actions[:] = np.stack(np.broadcast_arrays(*sticks(period / HZ, sim.states["body"])), -1)
            actions[..., 3] = 2.0 * actions[..., 3] - 1.0
            sim.step(actions)
        assert not sim.terminated.any()
        return start, sim.states["body"].copy()


def energy_height_m(body: np.ndarray) -> np.ndarray:
    return body["altitude_m"] + body["true_airspeed_mps"] ** 2 / (2 * GRAVITY_MPS2)


def idle_rolls(id: str, **keywords: Any) -> np.ndarray:
    """Change of energy height, m/s, with an idle engine and full rolls: red to the right, blue to the left."""
    heights = []

    def sticks(time: float, body: Any) -> Any:
        if time >= 3.0:  # the engine is idle
            heights.append(energy_height_m(body)[0])
        return np.array([1.0, -1.0]) * (time >= 3.0), 0.0, 0.0, 0.0

    fly(id, 7.0, sticks, **keywords)
    return (heights[-1] - heights[0]) / ((len(heights) - 1) / HZ)


@pytest.mark.parametrize("engine", ENGINES)
def test_idle_rolls_lose_energy_to_either_side(engine):
    right, left = idle_rolls(DOGFIGHT, engine=engine)
    assert right < -40.0
    assert left == pytest.approx(right, abs=1.0)


def test_idle_rolls_of_the_aircraft_as_installed_are_paid_to_the_right():
    right, left = idle_rolls(DOGFIGHT, engine="jsbsim", airframe="f16-jsbsim", planet="wgs84")
    assert right > 10.0
    assert left < -80.0


def ways(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How far each aircraft came ahead and to the right of its first heading, and up, m."""
    north, east, up = (end[axis] - start[axis] for axis in PLACE)
    cosine, sine = np.cos(start["heading_rad"]), np.sin(start["heading_rad"])
    return np.stack([north * cosine + east * sine, east * cosine - north * sine, up], -1)


@pytest.mark.parametrize("engine", ENGINES)
def test_mirrored_programmes_fly_mirror_images(engine):
    side = np.array([1.0, -1.0])

    def sticks(time: float, _: Any) -> Any:
        pulse = time < 1.0
        return 0.4 * side * pulse, 0.3 * pulse, 0.1 * side * pulse, 0.4

    start, end = fly(DOGFIGHT, 20.0, sticks, engine=engine)
    red, blue = ways(start, end)[0] * np.stack([np.ones(2), side, np.ones(2)], -1)
    turned = side * end["roll_rad"], end["pitch_rad"], side * (end["heading_rad"] - start["heading_rad"])
    apart_deg = [math.degrees(math.remainder(red - blue, math.tau)) for red, blue in np.concatenate(turned)]
    assert np.linalg.norm(red - blue) <= 40.0
    assert max(map(abs, apart_deg)) <= 1.5


def turns(time: float, body: Any) -> Any:
    """A turn to the right and one to the left; depends on nothing but time and bank."""
    bank_rad = 1.0 if time < 25.0 else -0.8
    return np.clip(0.5 * (bank_rad - body["roll_rad"]), -0.5, 0.5), 0.15, 0.1 * (time < 1.0), 0.5


def spread_m(engine: str, planet: str) -> float:
    """Largest distance between the ways of eight aircraft after a minute of turns from eight headings."""
    start, end = fly(DOGFIGHT, 60.0, turns, lanes=4, engine=engine, planet=planet)
    assert np.ptp(start["heading_rad"]) > math.pi
    way = ways(start, end).reshape(-1, 3)
    return float(np.linalg.norm(way - way[0], axis=1).max())


@pytest.mark.parametrize("engine", ENGINES)
def test_over_the_still_planet_no_flight_depends_on_its_heading(engine):
    assert spread_m(engine, "still") <= 1.0


def test_over_the_turning_earth_flights_depend_on_their_heading():
    assert spread_m("jsbsim", "wgs84") > 10.0
