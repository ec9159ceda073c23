"""UcavTrack: commands, errors, rewards and ends of the inner loop's game."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palaestra.core.contract.fields import record_dtype
from palaestra.core.contract.spaces import box_space
from palaestra.games.ucav import inner_loop, track
from palaestra.games.ucav.body import BODY
from palaestra.games.ucav.track import ATTITUDE, HEADING, LOAD_FACTOR
from palaestra.kernels.networks import WIDEST, make_network

MODES = ("attitude", "heading", "load_factor")


def make_sim(lanes: int = 1, **keywords: Any) -> Any:
    pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
    from palaestra import make_batch

    return make_batch("palaestra/UcavTrack-v3", lanes, **keywords)


def make_match(**body: float) -> Any:
    """A match as plain Python sees it: the kernel functions ask for no more than attributes."""
    state = {name: 0.0 for name in BODY.names or ()}
    state |= {"altitude_m": 6000.0, "true_airspeed_mps": 250.0, "load_factor_g": 1.0, "finite": 1, "in_tables": 1}
    return SimpleNamespace(
        body=[SimpleNamespace(**{**state, **body})],
        parameters=SimpleNamespace(**{p.name: p.default for p in track.PARAMETERS}),
        info=SimpleNamespace(),
        rng=np.uint64(1),
        overload_s=0.0,
    )


def sticks(lanes: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (lanes, 1, 4))


def command_anew(s: Any, mode: int) -> None:
    with np.errstate(over="ignore"):  # the streams wrap around by design
        track.give_command(s, mode)


@pytest.mark.parametrize("mode", MODES)
def test_observations_stay_in_their_space_under_a_wild_stick(mode):
    sim = make_sim(3, command=mode)
    space = box_space(sim.game.roles[0].observation)
    sim.reset(seed=5)
    for step in range(250):
        turn = step // 8
        sim.step(np.sign(sticks(3, turn)) if turn % 2 else sticks(3, turn))
        for row in sim.observations:
            assert np.isfinite(row).all()
            assert space.contains(np.asarray(row, np.float32).reshape(-1))
    sim.close()


def test_the_reward_is_a_mean_over_errors_and_scales():
    scales = {"roll_scale_deg": 2.0, "flight_path_scale_deg": 0.7, "speed_scale_mps": 1.5}
    sim = make_sim(4, **scales)
    sim.reset(seed=0)
    for step in range(30):
        sim.step(0.3 * sticks(4, step))
        angles = np.degrees(sim.info["turn_error_rad"]), np.degrees(sim.info["climb_error"])
        errors = np.stack([*angles, sim.info["speed_error_mps"]]) / np.array([*scales.values()])[:, None]
        gaussians = [np.exp(-((errors / width) ** 2)) for width in (1, 5, 25, 125)]
        expected = np.average(gaussians, axis=0, weights=(1, 1, 1, 4)).mean(axis=0)
        np.testing.assert_allclose(sim.rewards[:, 0], expected, rtol=1e-6)
    sim.close()


def test_coming_nearer_to_a_command_pays_from_far_away_and_from_a_tenth_of_the_scale():
    errors = [0.0, 0.1, 1.0, 5.0, 25.0, 125.0, 250.0]
    paid = [track.closeness(error) for error in errors]
    assert paid[0] == 1.0
    assert min(-np.diff(paid)) > 1e-3
    assert track.closeness(-5.0) == track.closeness(5.0)


def test_the_errors_are_those_of_the_aircraft():
    s = make_match(roll_rad=0.5, heading_rad=6.0, flight_path_angle_rad=0.1)
    s.turn_command_rad, s.climb_command, s.speed_command_mps = 0.2, 0.3, 240.0
    assert track.turn_error_rad(s, ATTITUDE) == pytest.approx(-0.3)
    assert track.turn_error_rad(s, HEADING) == pytest.approx(0.2 - 6.0 + 2 * math.pi)
    assert track.climb_error(s, ATTITUDE) == pytest.approx(0.2)
    assert track.climb_error(s, HEADING) == pytest.approx(0.3 - 6000.0)
    assert track.climb_error(s, LOAD_FACTOR) == pytest.approx(-0.7)
    assert track.speed_error_mps(s) == pytest.approx(-10.0)


def test_changing_the_action_costs_what_the_parameter_says():
    free, dear = make_sim(), make_sim(control_rate_cost=0.5)
    for sim in (free, dear):
        sim.reset(seed=3)
    before = np.array([0.0, 0.0, 0.0, 2 * track.START_THROTTLE - 1])
    for step in range(5):
        action = sticks(1, step)
        for sim in (free, dear):
            sim.step(action)
        change = np.abs(action[0, 0] - before).mean()
        assert free.rewards[0, 0] - dear.rewards[0, 0] == pytest.approx(0.5 * change, abs=1e-6)
        before = action[0, 0]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ({}, ""),
        ({"altitude_m": 300.0}, "crash"),
        ({"load_factor_g": 12.5}, "overload"),
        ({"load_factor_g": -12.5}, "overload"),
        ({"load_factor_g": 9.5}, ""),
        ({"in_tables": 0}, "off_tables"),
        ({"finite": 0}, "not_finite"),
    ],
)
def test_each_end_has_its_reason(state, reason):
    assert track.game().end_reason(track.fate(make_match(**state))) == reason


def test_nine_g_may_be_exceeded_for_half_a_second():
    s = make_match(load_factor_g=9.5)
    ends = [track.fate(s) for _ in range(7)]
    assert [track.game().end_reason(end) for end in ends] == [""] * 5 + ["overload"] * 2
    s.body[0].load_factor_g = 1.0
    assert track.fate(s) == track.RUNNING
    assert s.overload_s == 0.0


def test_a_crash_ends_the_match_without_a_reward():
    sim = make_sim(altitude_low_m=600.0, altitude_high_m=700.0)
    sim.reset(seed=0)
    for _ in range(200):
        sim.step(np.array([[[0.0, -1.0, 0.0, 0.0]]]))
        if sim.terminated[0]:
            break
    assert sim.game.end_reason(int(sim.info["end_reason"][0])) == "crash"
    assert sim.rewards[0, 0] == 0.0
    assert not sim.truncated[0]


@pytest.mark.parametrize("mode", [ATTITUDE, HEADING, LOAD_FACTOR])
def test_commands_stay_in_their_ranges_and_last_as_long_as_they_should(mode):
    s = make_match()
    lengths = []
    for _ in range(300):
        command_anew(s, mode)
        lengths.append(s.command_length)
        assert 220.0 <= s.speed_command_mps <= 300.0
        if mode == ATTITUDE:
            assert abs(s.turn_command_rad) <= math.radians(60)
            assert abs(s.climb_command) <= math.radians(15)
        elif mode == HEADING:
            assert 5400.0 <= s.climb_command <= 6600.0
        else:
            assert 1.0 <= s.climb_command <= 5.0
            assert abs(s.turn_command_rad) <= math.pi
    assert 50 <= min(lengths) < 60 < 140 < max(lengths) <= 150


@pytest.mark.parametrize(("altitude_m", "sign"), [(2500.0, 1), (9500.0, -1)])
def test_no_command_leads_further_out_of_the_band_of_heights(altitude_m, sign):
    s = make_match(altitude_m=altitude_m)
    for _ in range(50):
        command_anew(s, ATTITUDE)
        assert sign * s.climb_command >= 0.0
        command_anew(s, HEADING)
        assert sign * (s.climb_command - altitude_m) >= 0.0


def test_the_bank_of_a_load_brings_the_path_where_it_should():
    body: Any = make_match(flight_path_angle_rad=0.1).body[0]
    bank = track.bank_for_path(body, 3.0, 0.4, 6.0)
    rate = 9.80665 / 250.0 * (3.0 * math.cos(bank) - math.cos(0.1))
    assert 0.1 + 6.0 * rate == pytest.approx(0.4)
    assert track.bank_for_path(body, 1.0, 0.8, 5.0) == 0.0  # more than one g can do: wings level is the best there is
    assert track.bank_for_path(body, 5.0, -0.9, 5.0) > math.pi / 2  # down: pull, upside down


def test_every_mode_draws_equally_often():
    s = [make_match() for _ in range(3)]
    for mode in (ATTITUDE, HEADING, LOAD_FACTOR):
        command_anew(s[mode], mode)
    assert s[0].rng == s[1].rng == s[2].rng


def test_a_new_command_comes_when_the_old_one_is_over():
    sim = make_sim(command_low_s=1.0, command_high_s=1.0)
    sim.reset(seed=0)
    ages = []
    for _ in range(20):
        sim.step(np.zeros((1, 1, 4)))
        ages.append(float(sim.info["command_age_s"][0]))
    np.testing.assert_allclose(ages, 0.1 * np.array([*range(1, 11), *range(1, 11)]))


def test_the_autopilot_earns_most_of_what_there_is_in_every_mode():
    for mode, least in (("attitude", 0.8), ("heading", 0.6), ("load_factor", 0.7)):
        sim = make_sim(4, command=mode, opponents={"pilot": "pid"})
        sim.reset(seed=1)
        total = np.zeros(4)
        for _ in range(200):
            sim.step(sim.actions)
            total += sim.rewards[:, 0]
            assert not sim.terminated.any()
        assert total.mean() / 200 > least, mode
        sim.close()


def test_a_restored_snapshot_continues_bitwise_equal():
    sim = make_sim(2)
    sim.reset(seed=11)
    for step in range(20):
        sim.step(sticks(2, step))
    saved = sim.snapshot()

    def go_on() -> bytes:
        seen = []
        for step in range(20):
            sim.step(sticks(2, 100 + step))
            seen.append(np.asarray(sim.observations).tobytes() + sim.rewards.tobytes())
        return b"".join(seen)

    first = go_on()
    sim.restore(saved)
    assert go_on() == first


def test_flat_inputs_are_the_observation_in_its_order():
    record = np.zeros(1, record_dtype(inner_loop.TRACKING))
    flat = record.view(np.float32)
    flat[:] = np.arange(1, flat.size + 1)
    x = np.zeros(WIDEST)
    inner_loop.flatten(record.view(np.recarray)[0], x)
    assert flat.size == inner_loop.TRACKING_SIZE
    np.testing.assert_array_equal(x, np.pad(flat, (0, WIDEST - flat.size)))


def test_an_error_is_integrated_near_the_command_alone():
    integrals = np.array([0.0, 0.0, 0.0995])
    inner_loop.integrate_errors(integrals, -0.04, 0.06, 4.0)
    np.testing.assert_allclose(integrals, [-0.004, 0.0, 0.1])  # the second one is far, the third at its bound
    for _ in range(50):
        inner_loop.integrate_errors(integrals, -0.04, 0.02, -4.0)
    np.testing.assert_allclose(integrals, [-0.1, 0.1, -0.1])


@pytest.mark.parametrize("mode", MODES)
def test_integrals_of_what_is_observed_are_observed(mode):
    sim = make_sim(3, command=mode, command_low_s=1.0, command_high_s=1.0, opponents={"pilot": "pid"})
    sim.reset(seed=1)
    expected, moved = np.zeros((3, 3)), np.zeros(3, np.bool_)
    for _ in range(60):
        row = np.asarray(sim.observations)[:, 0].astype(np.float64)
        errors = np.stack([np.arctan2(row[:, 20], row[:, 21]), row[:, 22], row[:, 23]], axis=-1)
        near = np.abs(errors) <= inner_loop.NEAR
        moved |= near.any(axis=0)
        expected = np.clip(expected + 0.1 * errors * near, -0.1, 0.1)
        np.testing.assert_allclose(0.1 * row[:, 30:], expected, atol=1e-6)
        sim.step()
    assert moved.sum() >= 2


def test_an_inner_loop_elsewhere_sees_what_it_was_trained_with():
    """Over a change of command too: the commands last for half a second."""
    sim = make_sim(1, command_low_s=0.5, command_high_s=0.5, opponents={"pilot": "pid"})
    sim.reset(seed=2)
    network = make_network([(np.zeros((4, inner_loop.TRACKING_SIZE)), np.zeros(4))])
    integrals, record = np.zeros(3), np.zeros(1, record_dtype(inner_loop.TRACKING))
    scratch = SimpleNamespace(
        tracking=record.view(np.recarray)[0], inputs=np.zeros(WIDEST), front=np.zeros(WIDEST), back=np.zeros(WIDEST)
    )
    for _ in range(40):
        s = sim.states[0].copy()
        body = sim.states["body"][0].copy().view(np.recarray)[0]
        commands = s["turn_command_rad"], s["climb_command"], s["speed_command_mps"], s["command_age"] * track.PERIOD_S
        inner_loop.steer_by_network(*network, scratch, body, integrals, *commands)
        np.testing.assert_array_equal(record.view(np.float32), np.asarray(sim.observations).reshape(-1))
        sim.step()
    assert integrals.all()


def test_a_network_flies_the_stick_it_computes():
    random = np.random.default_rng(0)
    first, second = random.normal(0, 0.2, (8, inner_loop.TRACKING_SIZE)), random.normal(0, 0.5, (4, 8))
    network = make_network([(first, np.zeros(8)), (second, np.zeros(4))])
    body = np.zeros(1, BODY).view(np.recarray)[0]
    body.altitude_m, body.true_airspeed_mps, body.roll_rad = 6000.0, 250.0, 0.4
    tracking = np.zeros(1, record_dtype(inner_loop.TRACKING))
    scratch = SimpleNamespace(
        tracking=tracking.view(np.recarray)[0], inputs=np.zeros(WIDEST), front=np.zeros(WIDEST), back=np.zeros(WIDEST)
    )
    inner_loop.steer_by_network(*network, scratch, body, np.zeros(3), 0.1, 0.2, 270.0, 0.5)
    x = tracking.view(np.float32).astype(np.float64)
    stick = np.clip(second @ np.tanh(first @ x), -1, 1)
    np.testing.assert_allclose([body.aileron_command, body.elevator_command, body.rudder_command], stick[:3], rtol=1e-9)
    assert body.throttle_command == pytest.approx(0.5 * (stick[3] + 1))


def test_turning_the_whole_flight_changes_nothing_that_is_seen():
    sims = [make_sim(1), make_sim(1)]
    for sim in sims:
        sim.reset(seed=4)
    east = sims[1]
    east.states["body"]["heading_rad"] = math.pi / 2  # the other flies where its seed says
    east.states["flight"] = np.zeros((), east.states["flight"].dtype)  # which begins as the aircraft record says
    for step in range(30):
        for sim in sims:
            sim.step(0.3 * sticks(1, step // 10))
    first, second = (np.asarray(sim.observations).reshape(-1) for sim in sims)
    np.testing.assert_allclose(first, second, atol=1e-5)  # on the planet that stands still


@pytest.mark.check
def test_the_physics_may_run_faster():
    sim = make_sim(1, physics_hz=120)
    sim.reset(seed=0)
    sim.step(np.zeros((1, 1, 4)))
    normal = make_sim(1)
    normal.reset(seed=0)
    normal.step(np.zeros((1, 1, 4)))
    fast, slow = sim.states["body"][0, 0], normal.states["body"][0, 0]
    assert fast["altitude_m"] == pytest.approx(slow["altitude_m"], abs=0.1)
    assert fast["altitude_m"] != slow["altitude_m"]


def test_pushing_towards_the_end_of_the_tables_costs():
    body = make_match().body[0]
    costs = []
    for degrees in (45.0, 0.0, -6.0, -7.0, -8.0, -10.0, -11.0):
        body.angle_of_attack_rad = math.radians(degrees)
        costs.append(track.pushed(body))
    assert costs == pytest.approx([0.0, 0.0, 0.0, 0.25, 0.5, 1.0, 1.0])
    kept, paid = make_sim(1, push_cost=0.0), make_sim(1, push_cost=3.0)
    for sim in (kept, paid):
        sim.reset(seed=0)
        for _ in range(20):
            sim.step(np.array([[[0.0, -1.0, 0.0, 0.0]]]))
    lost = 3.0 * track.pushed(paid.states["body"].view(np.recarray)[0, 0])
    assert lost > 0.5
    assert kept.rewards[0, 0] - paid.rewards[0, 0] == pytest.approx(lost, rel=1e-5)


WIDE = {
    "attitude": {
        "roll_range_deg": 180.0,
        "flight_path_range_deg": 60.0,
        "speed_low_mps": 150.0,
        "speed_high_mps": 380.0,
    },
    "load_factor": {"flight_path_range_deg": 60.0, "load_factor_low_g": 0.5, "load_factor_high_g": 7.0},
    "heading": {"heading_range_deg": 180.0, "altitude_range_m": 3000.0},
}


@pytest.mark.check
@pytest.mark.parametrize(("command", "ranges"), WIDE.items())
def test_no_command_of_a_wide_range_orders_a_crash(command, ranges):
    sim = make_sim(128, command=command, opponents={"pilot": "pid"}, autoreset_mode="off", **ranges)
    sim.reset(seed=5)
    for _ in range(600):
        sim.step()
    ends = [sim.game.end_reason(int(number)) for number in sim.info["end_reason"]]
    assert ends.count("crash") == 0
    assert ends.count("horizon") >= 127
    sim.close()
