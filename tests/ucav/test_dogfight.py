"""The rules of the dogfight, one behaviour a test. Most write the aircraft records themselves: no engine flies.

Numbers are those of the contest where a test does not say others.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file
from ucav.fights import ALTITUDE_M, MACRO, STICK, Match

from palaestra.core.contract.spaces import box_space
from palaestra.games.ucav import dogfight, pursuit, shaping, weapons
from palaestra.games.ucav.dogfight import BLUE, RED
from palaestra.games.ucav.geometry import antenna_train_angle_rad
from palaestra.games.ucav.inner_loop import TRACKING_SIZE

pytestmark = pytest.mark.jitless


# ---------------------------------------------------------------------------------------------------- ends of a match


def test_a_kill_wins_and_pays_the_last_health_and_one():
    match = Match().chase()
    match.s.health[BLUE] = 0.01
    assert match.evaluate()
    assert (match.reason, match.s.info.winner) == ("kill", RED)
    assert match.s.health[BLUE] == 0.0
    assert match.rewards.tolist() == pytest.approx([1.01, -1.01])


def crash(body: Any) -> None:
    body.altitude_m = 304.0


def break_up(body: Any) -> None:
    body.load_factor_g = 12.1


def break_down(body: Any) -> None:
    body.load_factor_g = -12.1


def depart(body: Any) -> None:
    body.in_tables = 0


def diverge(body: Any) -> None:
    body.finite = 0


ENDS = {
    crash: "crash",
    break_up: "overload",
    break_down: "overload",
    depart: "off_tables",
    diverge: "not_finite",
}


@pytest.mark.parametrize("slot", [RED, BLUE])
@pytest.mark.parametrize(("mistake", "reason"), ENDS.items())
def test_the_aircraft_that_makes_a_mistake_loses(slot, mistake, reason):
    match = Match().chase(range_m=2000.0)
    mistake(match.s.body[slot])
    assert match.evaluate()
    assert (match.reason, match.s.info.winner) == (reason, 1 - slot)
    assert match.rewards[slot] == -2.0
    assert match.rewards[1 - slot] == 2.0
    assert match.s.info.health[slot] == 0.0


@pytest.mark.parametrize("slot", [RED, BLUE])
@pytest.mark.parametrize("end", [*ENDS, "kill", "fled"])
def test_every_lost_match_costs_two_in_all(slot, end):
    """However it is lost and however late: the health that was left is lost with it."""
    match = Match(arena_drain=0.5, damage_per_second=4.0).chase(range_m=2000.0)
    total = 0.0
    if end == "kill":
        match.put(1 - slot, 0.0)
        match.put(slot, 400.0)
    else:
        match.s.body[slot].north_m = 15_001.0
    for decision in range(30):
        if decision == 3 and end not in ("kill", "fled"):
            end(match.s.body[slot])
        over = match.evaluate()
        total += float(match.rewards[slot])
        assert match.rewards[0] + match.rewards[1] == 0.0
        if over:
            break
    assert match.reason == {**ENDS, "kill": "kill", "fled": "fled"}[end]
    assert total == pytest.approx(-2.0, abs=1e-6)


def test_both_at_once_is_a_draw_in_which_the_damage_of_before_stands():
    match = Match().chase(range_m=2000.0)
    match.s.health[RED] = 0.4
    crash(match.s.body[RED])
    depart(match.s.body[BLUE])
    assert match.evaluate()
    assert (match.reason, match.s.info.winner) == ("both", -1)
    assert match.rewards.tolist() == [0.0, 0.0]


def pass_by(match: Match, red_m: tuple[float, ...], blue_m: tuple[float, ...]) -> bool:
    """A decision in which red flies 30 m north and blue 30 m south from where they are put: north, east, up."""
    weapons.note_places(match.s)
    for slot, place, ahead_m in ((RED, red_m, 30.0), (BLUE, blue_m, -30.0)):
        body = match.put(slot, place[0] + ahead_m, heading_deg=180.0 * slot, altitude_m=ALTITUDE_M + place[2])
        body.east_m = place[1]
        match.s.past_m[slot] = place[0], place[1], ALTITUDE_M + place[2]
    match.rewards[:] = 0.0
    return bool(match.game.evaluate(match.s, None, match.rewards, None))


def test_aircraft_that_pass_within_a_period_collide_though_both_ends_are_far_apart():
    match = Match()
    assert pass_by(match, (0.0, 0.0, 0.0), (29.0, 10.0, 11.0))
    assert (match.reason, match.s.info.winner) == ("collision", -1)
    assert match.rewards.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("blue_m", [(29.0, 15.1, 0.0), (29.0, 0.0, -15.1), (80.0, 0.0, 0.0), (-16.0, 0.0, 0.0)])
def test_aircraft_that_pass_farther_off_fly_on(blue_m):
    assert not pass_by(Match(), (0.0, 0.0, 0.0), blue_m)


def test_without_a_distance_nobody_collides():
    assert not pass_by(Match(collision_m=0.0), (0.0, 0.0, 0.0), (29.0, 0.0, 0.0))


def test_who_rams_keeps_its_deficit_and_no_more():
    match = Match(red_gun=0.0).chase()
    match.put(BLUE, -400.0)
    match.evaluate()
    lost = float(match.rewards[RED])
    assert lost < 0.0
    assert pass_by(match, (0.0, 0.0, 0.0), (29.0, 0.0, 0.0))
    assert match.rewards.tolist() == [0.0, 0.0]


def test_two_guns_that_kill_in_the_same_period_are_a_draw():
    match = Match()
    match.put(RED, 0.0)
    match.put(BLUE, 200.0, heading_deg=180.0)
    match.s.health[:] = 0.01
    assert match.evaluate()
    assert match.reason == "both"


def test_nine_g_may_be_exceeded_for_half_a_second_and_no_longer():
    match = Match().chase(range_m=2000.0)
    match.s.body[RED].load_factor_g = 9.5
    assert [match.evaluate() for _ in range(6)] == [False] * 5 + [True]
    assert (match.reason, match.s.info.winner) == ("overload", BLUE)


def test_a_pause_forgives_the_overload_before_it():
    match = Match().chase(range_m=2000.0)
    for load in (9.5, 9.5, 9.5, 9.5, 8.9, 9.5, 9.5, 9.5, 9.5):
        match.s.body[RED].load_factor_g = load
        assert not match.evaluate()


def test_outside_the_arena_health_drains_and_counts_as_damage_by_the_other():
    match = Match(arena_drain=0.5).chase(range_m=2000.0)
    match.s.body[BLUE].north_m = 15_001.0
    assert not match.evaluate()
    assert match.s.health[BLUE] == pytest.approx(0.95)
    assert match.s.info.arena_damage[RED] == pytest.approx(0.05)
    assert match.rewards.tolist() == pytest.approx([0.05, -0.05])


def test_a_fleeing_aircraft_without_health_has_lost():
    match = Match(arena_drain=5.0).chase(range_m=2000.0)
    match.s.body[BLUE].north_m = 20_000.0
    assert [match.evaluate() for _ in range(2)] == [False, True]
    assert (match.reason, match.s.info.winner) == ("fled", RED)


def test_at_the_horizon_more_damage_wins_and_nothing_is_paid_for_it():
    match = Match(horizon=2).chase(range_m=2000.0)
    match.s.health[RED] = 0.5
    assert not match.evaluate()
    assert match.s.info.winner == -1
    assert not match.evaluate()
    assert match.s.info.winner == BLUE
    assert match.rewards.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("healthier", "paid"), [(RED, 0.5), (BLUE, -0.5)])
def test_a_lead_at_the_horizon_is_paid_where_the_rules_say_so(healthier, paid):
    match = Match(horizon=1, horizon_reward=0.5).chase(range_m=2000.0)
    match.s.health[1 - healthier] = 0.9
    assert not match.evaluate()
    assert match.rewards.tolist() == [paid, -paid]
    assert match.s.info.reward_end == paid


def test_at_the_horizon_equal_damage_is_a_draw():
    match = Match(horizon=1).chase(range_m=2000.0)
    match.evaluate()
    assert match.s.info.winner == -1


def test_a_macro_match_decides_the_horizon_in_the_last_period():
    match = Match(MACRO, horizon=1).chase(range_m=2000.0)
    match.s.health[RED] = 0.5
    match.s.steps = 1
    weapons.note_places(match.s)
    winners = []
    for _ in range(5):
        match.game.evaluate(match.s, None, match.rewards, None)
        winners.append(int(match.s.info.winner))
    assert winners == [-1] * 4 + [BLUE]


def test_a_macro_decision_adds_up_the_damage_of_its_periods():
    macro, stick = Match(MACRO).chase(), Match().chase()
    macro.evaluate()
    for _ in range(5):
        stick.evaluate()
    assert macro.s.health[BLUE] == stick.s.health[BLUE]
    assert macro.rewards[RED] == pytest.approx(1.0 - macro.s.health[BLUE], rel=1e-6)


# -------------------------------------------------------------------------------------------------- rewards, shaping

WEIGHTS = {"posture_weight": 1.0, "altitude_weight": 0.7, "energy_weight": 0.3, "aim_weight": 2.0}


def scatter(match: Match, random: np.random.Generator) -> None:
    """Both aircraft anywhere near the floor, the other's gun and the edge of the arena."""
    for body in match.s.body:
        body.north_m, body.east_m = random.uniform(-400, 400, 2)
        body.altitude_m = random.uniform(200, 6000)
        body.roll_rad, body.pitch_rad = random.uniform(-3, 3), random.uniform(-1.5, 1.5)
        body.heading_rad = random.uniform(0, 2 * math.pi)
        body.true_airspeed_mps = random.uniform(60, 500)
        for name in ("velocity_north_mps", "velocity_east_mps", "velocity_down_mps", "u_mps", "v_mps", "w_mps"):
            body[name] = random.uniform(-400, 400)
        for name in ("p_radps", "q_radps", "r_radps"):
            body[name] = random.uniform(-20, 20)
        body.load_factor_g = random.uniform(-9, 9)


@pytest.mark.check
@given(st.integers(0, 2**32))
def test_the_rewards_add_up_to_exactly_zero(seed):
    random = np.random.default_rng(seed)
    match = Match(STICK if seed % 2 else MACRO, seed, cone_half_angle_deg=60.0, arena_radius_m=1000.0, **WEIGHTS)
    for _ in range(5):
        scatter(match, random)
        over = match.evaluate()
        assert match.rewards[RED] + match.rewards[BLUE] == 0.0
        if over:
            break


def test_nothing_is_paid_where_nothing_happens():
    match = Match().chase(range_m=2000.0)
    match.evaluate()
    match.put(RED, 500.0, heading_deg=90.0, altitude_m=1000.0)
    match.evaluate()
    assert match.rewards.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("item", ["posture", "altitude", "energy", "aim"])
def test_shaping_telescopes_to_the_difference_of_the_potential(item):
    random = np.random.default_rng(3)
    weights: dict[str, Any] = {f"{item}_weight": 0.5}
    match = Match(**weights)
    before = float(getattr(shaping, f"{item}_potential")(match.s))
    paid = 0.0
    for _ in range(20):
        scatter(match, random)
        for body in match.s.body:
            body.altitude_m += 305.0
        match.evaluate()
        paid += float(match.rewards[RED])
        match.s.health[:] = 1.0
    after = float(getattr(shaping, f"{item}_potential")(match.s))
    assert match.s.info[f"reward_{item}"] == pytest.approx(0.5 * (after - before), abs=1e-9)
    assert paid == pytest.approx(0.5 * (after - before) + match.s.info.reward_damage, abs=1e-5)


def test_after_an_end_by_rule_the_potential_is_zero():
    match = Match(posture_weight=1.0)
    start = float(shaping.posture_potential(match.s))
    crash(match.s.body[RED])
    match.evaluate()
    assert match.rewards[RED] == pytest.approx(-2.0 - start)


def test_shaping_discounts_the_next_potential():
    match = Match(posture_weight=1.0, shaping_discount=0.9).chase(range_m=2000.0)
    start = float(match.s.potentials[shaping.POSTURE])
    match.evaluate()
    assert match.rewards[RED] == pytest.approx(0.9 * 1.0 - start)


@pytest.mark.parametrize("item", ["posture", "altitude", "energy", "aim"])
def test_every_potential_changes_its_sign_when_the_two_change_places(item):
    match = Match()
    scatter(match, np.random.default_rng(4))
    match.s.body[BLUE].altitude_m = 700.0
    potential = getattr(shaping, f"{item}_potential")
    value = float(potential(match.s))
    match.s.body[RED], match.s.body[BLUE] = match.s.body[BLUE].copy(), match.s.body[RED].copy()
    assert float(potential(match.s)) == -value != 0.0


def test_posture_is_one_right_behind_the_other_and_zero_head_on():
    match = Match().chase()
    assert shaping.posture_potential(match.s) == pytest.approx(1.0)
    match.put(BLUE, 400.0, heading_deg=180.0)
    assert shaping.posture_potential(match.s) == pytest.approx(0.0)


# ------------------------------------------------------------------------------------------------------------- starts

NEUTRAL: dict[str, Any] = {"red_behind_weight": 0.0, "blue_behind_weight": 0.0}
RED_BEHIND: dict[str, Any] = {"neutral_weight": 0.0, "blue_behind_weight": 0.0}


@pytest.mark.parametrize("seed", range(20))
def test_a_neutral_start_is_its_own_image_under_half_a_turn(seed):
    red, blue = Match(seed=seed, **NEUTRAL).s.body
    assert (red.north_m, red.east_m) == pytest.approx((-blue.north_m, -blue.east_m))
    assert math.cos(red.heading_rad - blue.heading_rad) == pytest.approx(-1.0)
    assert 1500.0 <= 2.0 * math.hypot(red.north_m, red.east_m) <= 4000.0


@pytest.mark.parametrize("seed", range(20))
def test_behind_means_behind_and_pointing_at_it(seed):
    s = Match(seed=seed, **RED_BEHIND).s
    nose = antenna_train_angle_rad(s.body[RED], s.body[BLUE])
    tail = math.pi - antenna_train_angle_rad(s.body[BLUE], s.body[RED])
    assert math.degrees(nose) < 40.0  # 20 degrees in the plane; the difference of height comes on top
    assert math.degrees(tail) < 60.0


def test_both_sides_start_alike_on_average():
    values = []
    for seed in range(400):
        s = Match(seed=seed * 7919).s
        values.append(
            (
                antenna_train_angle_rad(s.body[RED], s.body[BLUE]),
                antenna_train_angle_rad(s.body[BLUE], s.body[RED]),
                s.body[RED].altitude_m - s.body[BLUE].altitude_m,
                s.body[RED].true_airspeed_mps - s.body[BLUE].true_airspeed_mps,
            )
        )
    red, blue, altitude, speed = np.array(values).T
    assert abs(red.mean() - blue.mean()) < 4.0 * (red - blue).std() / 20.0
    assert abs(altitude.mean()) < 4.0 * altitude.std() / 20.0
    assert abs(speed.mean()) < 4.0 * speed.std() / 20.0


def test_heights_and_speeds_start_within_their_ranges():
    for seed in range(50):
        for body in Match(seed=seed).s.body:
            assert 2750.0 <= body.altitude_m <= 5250.0
            assert 200.0 <= body.true_airspeed_mps <= 280.0
            assert 0.0 <= body.heading_rad <= 2.0 * math.pi


# -------------------------------------------------------------------------------------------------------------- sight


@pytest.mark.check
@given(st.integers(0, 2**32))
def test_what_is_seen_lies_within_the_bounds_of_the_table(seed):
    random = np.random.default_rng(seed)
    match = Match(seed=seed)
    scatter(match, random)
    for body in match.s.body:
        for name in ("north_m", "east_m", "altitude_m"):
            body[name] *= random.choice([1.0, 1e3])
    match.evaluate()
    space = box_space(match.game.roles[0].observation)
    for row in match.see():
        assert space.contains(np.frombuffer(row.tobytes(), np.float32))


def test_north_is_nowhere_in_what_is_seen():
    match = Match()
    scatter(match, np.random.default_rng(5))
    before = match.see().tobytes()
    angle = 2.0
    for body in match.s.body:
        for north, east in (("north_m", "east_m"), ("velocity_north_mps", "velocity_east_mps")):
            x, y = float(body[north]), float(body[east])
            body[north] = math.cos(angle) * x - math.sin(angle) * y
            body[east] = math.sin(angle) * x + math.cos(angle) * y
        body.heading_rad += angle
    after = np.frombuffer(match.see().tobytes(), np.float32)
    np.testing.assert_allclose(after, np.frombuffer(before, np.float32), atol=2e-6)


def test_the_two_pilots_see_the_same_match_from_two_cockpits():
    match = Match()
    scatter(match, np.random.default_rng(6))
    match.s.health[:] = 0.25, 0.75
    red, blue = match.see()
    match.s.body[RED], match.s.body[BLUE] = match.s.body[BLUE].copy(), match.s.body[RED].copy()
    match.s.health[:] = 0.75, 0.25
    swapped = match.see()
    assert swapped[RED].tobytes() == blue.tobytes()
    assert swapped[BLUE].tobytes() == red.tobytes()


def test_a_pilot_sees_whose_gun_hits():
    match = Match().chase()
    match.evaluate()
    red, blue = match.see()
    assert (red.in_my_gun, red.in_its_gun) == (1.0, 0.0)
    assert (blue.in_my_gun, blue.in_its_gun) == (0.0, 1.0)


def test_the_fine_sight_reads_right_and_up():
    match = Match().chase(off_deg=-2.0)
    match.put(BLUE, 400.0, altitude_m=ALTITUDE_M + 400.0 * math.tan(math.radians(3.0)))
    right, up = match.see()[RED].aim_error
    assert right == pytest.approx(0.2, abs=1e-3)
    assert up == pytest.approx(0.3, abs=1e-3)


def test_the_centre_of_the_arena_is_seen_from_the_nose():
    match = Match().chase()
    match.put(RED, -7500.0, heading_deg=90.0)  # south of the centre, flying east: it lies on the left
    red = match.see()[RED]
    assert red.centre == pytest.approx((0.0, -1.0), abs=1e-6)
    assert red.centre_distance == pytest.approx(0.5)


# ----------------------------------------------------------------------------------------------------------- commands


def test_the_stick_moves_the_controls_and_half_a_throttle_is_military_power():
    match = Match()
    match.actions.pilot[RED] = (0.1, 0.2, 0.3, 0.0)
    match.actions.pilot[BLUE] = (0.0, 0.0, 0.0, -1.0)
    match.game.command(match.s, None, match.actions, match.scratch)
    red, blue = match.s.body
    assert (red.aileron_command, red.elevator_command, red.rudder_command) == (0.1, 0.2, 0.3)
    assert (red.throttle_command, blue.throttle_command) == (0.5, 0.0)
    assert match.see()[RED].last_action == pytest.approx((0.1, 0.2, 0.3, 0.0))


def test_a_macro_is_flown_by_the_autopilot():
    match = Match(MACRO).chase()
    match.actions.pilot[RED] = (0.25, 0.0, 0.0)  # 45 degrees to the right
    match.actions.pilot[BLUE] = (-0.25, 0.0, 0.0)
    match.game.command(match.s, None, match.actions, match.scratch)
    assert match.s.body[RED].aileron_command > 0.3
    assert match.s.body[BLUE].aileron_command < -0.3


def inner_loop_file(folder: Path, inputs: int) -> str:
    """A network that gives the same four commands whatever it sees."""
    layer = {"layer_0.weight": np.zeros((4, inputs)), "layer_0.bias": np.array([0.1, -0.2, 0.3, 1.0])}
    save_file(layer, folder / "loop.safetensors")
    return str(folder / "loop.safetensors")


def test_a_macro_is_flown_by_a_network_from_a_file(tmp_path):
    match = Match(dogfight.game(commands="macro", inner_loop=inner_loop_file(tmp_path, TRACKING_SIZE)))
    match.game.command(match.s, match.game.world, match.actions, match.scratch)
    body = match.s.body[BLUE]
    assert (body.aileron_command, body.elevator_command) == (0.1, -0.2)
    assert (body.rudder_command, body.throttle_command) == (0.3, 1.0)


# --------------------------------------------------------------------------------------------------------------- game


def test_a_network_of_another_shape_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no inner loop"):
        dogfight.game(commands="macro", inner_loop=inner_loop_file(tmp_path, 7))


def test_a_missing_network_is_refused():
    with pytest.raises(FileNotFoundError, match="nowhere"):
        dogfight.game(commands="macro", inner_loop="nowhere.safetensors")


def test_all_kinds_of_commands_last_200_seconds_and_pursuits_40():
    aim = dogfight.game(commands="aim")
    assert (STICK.horizon * 0.1, MACRO.horizon * 0.5, aim.horizon * 0.2) == (200.0, 200.0, 200.0)
    assert (STICK.periods, MACRO.periods, aim.periods) == (1, 5, 2)
    assert [len(game.roles[0].action) for game in (STICK, MACRO, aim)] == [4, 3, 4]
    assert (pursuit.game().horizon, pursuit.game(commands="macro").horizon) == (400, 80)
    assert pursuit.game(duration_s=200.0).horizon == 2000


def test_the_target_of_the_pursuit_is_unarmed_and_may_leave_the_arena():
    match = Match(pursuit.game()).chase(range_m=2000.0)
    match.put(RED, 0.0)
    match.put(BLUE, 400.0, heading_deg=180.0)
    match.s.body[BLUE].east_m = 0.0
    match.evaluate()
    assert match.s.health[BLUE] < 1.0
    assert match.s.health[RED] == 1.0
    assert match.s.parameters.arena_drain == 0.0


@pytest.mark.parametrize(("start", "neutral"), [(2, 0), (0, 10)])
def test_the_pursuit_starts_behind_and_that_of_the_contest_neutral_too(start, neutral):
    assert [p.default for p in pursuit.game().parameters if p.name == "start"] == [2]
    angles = []
    for seed in range(60):
        s = Match(pursuit.game(), seed=seed * 104729, start=start).s
        angles.append(math.degrees(antenna_train_angle_rad(s.body[RED], s.body[BLUE])))
    assert sum(angle < 40.0 for angle in angles) > (25 if neutral else 55)
    assert neutral <= sum(angle > 60.0 for angle in angles) <= 4 * neutral
