"""The rules of team fights, one behaviour a test. Most write the aircraft records themselves: no engine flies."""

from __future__ import annotations

import math
from contextlib import closing
from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler
from hypothesis import given, settings
from hypothesis import strategies as st
from ucav.team_fights import FOUR, MACRO, TWO, UNEQUAL, UNSHAPED, Match

import palaestra
from palaestra.core.compile.linker import link
from palaestra.game import Game
from palaestra.games.ucav import shaping, team
from palaestra.games.ucav.body import BLUE, NOT_FLOWN, RED

pytestmark = pytest.mark.jitless

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")


# ------------------------------------------------------------------------------------------------------------ sizes


def test_matches_of_up_to_four_eight_and_sixteen_aircraft_share_a_kernel():
    games = [team.game(red=red, blue=blue) for red, blue in ((1, 1), (1, 3), (3, 1), (1, 4), (4, 4), (1, 8), (8, 8))]
    assert [game.slots for game in games] == [4, 4, 4, 8, 8, 16, 16]
    assert len({link(game) for game in games}) == 3


def test_rows_of_tables_are_the_opponents_and_the_mates_of_the_larger_team():
    tables = {
        field.name: field.shape[0] for field in UNEQUAL.roles[0].observation if field.name in ("opponents", "mates")
    }
    assert tables == {"opponents": 3, "mates": 2}
    assert UNEQUAL.agents == ("red_0", "blue_0", "blue_1", "blue_2")
    assert not UNEQUAL.symmetric_teams
    assert TWO.symmetric_teams


# ---------------------------------------------------------------------------------------------------------- the gun


def test_a_gun_hits_the_opponent_nearest_to_the_line_of_the_nose_and_no_other():
    match = Match(cone_half_angle_deg=20.0).apart()
    match.put(2, 300.0, 30.0)
    match.put(3, 500.0, 10.0)
    match.evaluate()
    assert match.s.health[:4].tolist()[:3] == [1.0, 1.0, 1.0]
    assert 0.0 < match.s.health[3] < 1.0
    assert match.s.gun_target[:2].tolist() == [3, -1]
    assert match.s.in_gun[:4].tolist() == [1, 0, 0, 0]


def test_no_gun_hits_a_teammate():
    match = Match(cone_half_angle_deg=20.0).apart()
    match.put(1, 400.0, 0.0)
    match.evaluate()
    assert match.s.health[:4].tolist() == [1.0] * 4


def test_two_guns_on_one_aircraft_add_up():
    match = Match().apart()
    match.put(1, 800.0, 0.0, heading_deg=180.0)
    match.put(2, 400.0, 0.0, heading_deg=90.0)
    match.evaluate()
    assert 1.0 - match.s.health[2] == pytest.approx(2 * 0.1 * (914.4 - 400.0) / (914.4 - 152.4))
    assert match.s.info.gun_damage[0] == match.s.info.gun_damage[1] > 0.0


def test_a_gun_is_its_teams():
    match = Match(blue_gun=0.0).apart()
    match.put(3, -400.0, 0.0)
    match.evaluate()
    assert match.s.in_gun[3]
    assert match.s.health[0] == 1.0


# ------------------------------------------------------------------------------------------------ losses and the end


def test_an_aircraft_that_is_shot_down_leaves_and_the_others_go_on():
    match = Match().apart()
    match.put(2, 400.0, 0.0)
    match.s.health[2] = 0.01
    match.s.info.health[BLUE] = 0.505
    assert not match.evaluate()
    assert match.why(2) == "kill"
    assert match.s.alive[:4].tolist() == [1, 1, 0, 1]
    assert match.s.info.left.tolist() == [2, 1]
    assert match.s.body[2].throttle_command == NOT_FLOWN
    assert match.rewards.tolist() == pytest.approx([0.005, 0.005, -0.005, -0.005], abs=1e-7)


def test_a_crash_costs_the_health_that_was_left():
    match = Match().apart()
    match.s.body[1].altitude_m = 300.0
    assert not match.evaluate()
    assert match.why(1) == "crash"
    assert match.rewards.tolist() == [-0.5, -0.5, 0.5, 0.5]


@pytest.mark.parametrize(("mistake", "reason"), [("altitude_m", "crash"), ("load_factor_g", "overload")])
def test_a_team_that_is_lost_has_paid_two(mistake, reason):
    match = Match().apart()
    paid = 0.0
    for slot in (0, 1):
        match.s.body[slot][mistake] = {"altitude_m": 0.0, "load_factor_g": 12.5}[mistake]
        over = match.evaluate()
        paid += float(match.rewards[0])
        assert match.why(slot) == reason
    assert over
    assert paid == -2.0
    assert (match.reason, match.s.info.winner) == ("wiped_out", BLUE)


def test_the_last_of_both_teams_lost_at_once_are_a_draw():
    match = Match(UNEQUAL).apart()
    for slot in range(4):
        match.s.body[slot].altitude_m = 0.0
    assert match.evaluate()
    assert (match.reason, match.s.info.winner) == ("both", -1)
    assert not match.rewards.any()


def test_a_team_of_one_loses_more_by_a_hit_than_a_team_of_three():
    match = Match(UNEQUAL).apart()
    match.s.health[0] -= 0.3
    match.s.health[1] -= 0.3
    match.evaluate()
    assert match.rewards.tolist() == pytest.approx([-0.2, 0.2, 0.2, 0.2])


def test_outside_the_arena_health_drains_until_the_aircraft_has_fled():
    match = Match(arena_drain=6.0).apart()
    match.put(3, 20_000.0, 0.0)
    match.evaluate()
    assert match.s.health[3] == pytest.approx(0.4)
    assert match.s.info.arena_damage[:4].tolist() == pytest.approx([0.0, 0.0, 0.0, 0.6])
    match.evaluate()
    assert match.why(3) == "fled"


def test_who_left_neither_shoots_nor_is_shot_nor_collides():
    match = Match().apart()
    match.put(2, 400.0, 0.0, heading_deg=180.0)
    match.put(1, 400.0, 5.0, heading_deg=90.0)
    match.s.alive[2] = 0
    match.evaluate()
    assert match.s.health[:2].tolist() == [1.0, 1.0]
    assert not match.s.in_gun.any()
    assert match.s.alive[1]


def test_at_the_horizon_the_larger_share_of_health_wins_and_nothing_is_paid():
    match = Match(UNEQUAL, horizon=1).apart()
    match.s.health[1], match.s.info.health[BLUE] = 0.0, 2.0 / 3.0
    match.s.health[0], match.s.info.health[RED] = 0.7, 0.7
    assert not match.evaluate()
    assert match.s.info.winner == RED
    assert match.rewards.tolist() == pytest.approx([0.0] * 4, abs=1e-12)


# ------------------------------------------------------------------------------------------------------- collisions


@pytest.mark.parametrize("other", [1, 2])
def test_aircraft_that_pass_between_two_evaluations_collide_with_mates_and_opponents(other):
    match = Match().apart()
    match.put(0, 25.0, 0.0)
    match.put(other, 25.0, 10.0, heading_deg=180.0)
    match.s.past_m[0, 0], match.s.past_m[other, 0] = 0.0, 50.0
    match.s.body[0].north_m, match.s.body[other].north_m = 50.0, 0.0  # 51 m apart at both ends, 10 m in the middle
    match.evaluate()
    assert (match.why(0), match.why(other)) == ("collision", "collision")
    assert match.s.alive[:4].sum() == 2


def test_a_pass_beyond_the_distance_is_no_collision():
    for metres, alive in ((15.1, 4), (14.9, 2)):
        match = Match().apart()
        match.put(0, 0.0, 0.0)
        match.put(1, 0.0, metres)
        match.evaluate()
        assert match.s.alive[:4].sum() == alive


# --------------------------------------------------------------------------------------------------- rewards in sum


@pytest.mark.check
@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_the_rewards_of_the_teams_add_up_to_exactly_zero_and_a_return_ends_at_most_at_two(seed):
    random = np.random.default_rng(seed)
    match = Match(
        (TWO, MACRO, UNEQUAL, FOUR)[seed % 4], cone_half_angle_deg=60.0, arena_radius_m=700.0, arena_drain=0.5
    )
    total, over = 0.0, False
    for _ in range(12):
        for slot in range(match.count):
            north, east = random.uniform(-500, 500, 2)
            match.put(slot, north, east, random.uniform(0, 360)).altitude_m = random.uniform(295, 1500)
            match.s.past_m[slot, 2] = match.s.body[slot].altitude_m
        over = match.evaluate()
        red, blue = (match.rewards[: match.count][match.game.team_index == k] for k in (RED, BLUE))
        assert len({*red.tolist(), *(-blue).tolist()}) == 1
        total += float(red[0])
        if over:
            break
    assert abs(total) <= 2.0 + 1e-5
    lost = 1.0 - match.s.info.health
    won = {RED: 1.0, BLUE: -1.0, -1: 0.0}[int(match.s.info.winner)] if over else 0.0
    assert total == pytest.approx(lost[BLUE] - lost[RED] + won, abs=1e-5)


WEIGHTS: dict[str, Any] = dict.fromkeys(UNSHAPED, 0.7)


@pytest.mark.parametrize("game", [TWO, UNEQUAL, FOUR])
def test_shaping_pays_red_the_change_of_its_potentials_and_blue_the_opposite(game):
    random, match = np.random.default_rng(3), Match(game, shaping_discount=1.0, collision_m=0.0, **WEIGHTS).apart()
    match.evaluate()
    before = match.s.potentials.sum()
    for slot in range(match.count):
        north, east, heading = random.uniform(-3000, 3000, 3)
        match.put(slot, north, east, heading).altitude_m = random.uniform(600, 3000)
    match.evaluate()
    assert match.rewards[0] == pytest.approx(0.7 * (match.s.potentials.sum() - before), abs=1e-6)
    assert match.rewards[match.count - 1] == -match.rewards[0] != 0.0


def test_each_potential_is_a_mean_over_the_aircraft_in_the_match():
    match = Match(UNEQUAL).apart()
    posture = shaping.posture_potential(match.s)
    for slot in (1, 2, 3):
        match.put(slot, 1000.0, 0.0)  # all three before red's nose, their tails to it
    assert posture == pytest.approx(0.0)
    assert shaping.posture_potential(match.s) == pytest.approx(1.0)
    assert shaping.aim_potential(match.s) == pytest.approx(3.0 * math.exp(-0.5))
    match.s.alive[3] = 0
    assert shaping.aim_potential(match.s) == pytest.approx(2.0 * math.exp(-0.5), abs=1e-6)
    assert shaping.altitude_potential(match.s) == pytest.approx(1.0 - 2.0 / 3.0)
    assert shaping.energy_potential(match.s) == pytest.approx(0.0)


# ------------------------------------------------------------------------------------------------------------ start


@pytest.mark.parametrize("seed", range(10))
def test_the_formations_face_each_other_and_are_images_under_half_a_turn(seed):
    s = Match(FOUR, seed * 7919).s
    places = np.array([[body.north_m, body.east_m] for body in s.body])
    np.testing.assert_allclose(places[:4], -places[4:], atol=1e-9)
    np.testing.assert_allclose(np.hypot(*np.diff(places[:4], axis=0).T), 500.0)
    toward = places[4:].mean(0) - places[:4].mean(0)
    assert 4000.0 <= np.hypot(*toward) <= 8000.0
    for body in s.body[:4]:
        np.testing.assert_allclose(
            np.hypot(*toward) * np.array([math.cos(body.heading_rad), math.sin(body.heading_rad)]), toward
        )
    assert math.cos(s.body[0].heading_rad - s.body[4].heading_rad) == pytest.approx(-1.0)
    assert len({body.altitude_m for body in s.body}) == len({body.true_airspeed_mps for body in s.body}) == 8


def test_slots_without_an_aircraft_are_not_flown():
    s = Match(team.game(red=2, blue=3)).s
    assert [body.throttle_command for body in s.body] == [0.5] * 5 + [NOT_FLOWN] * 3
    assert not s.health[5:].any()


# ------------------------------------------------------------------------------------------------------------ sight


def test_rows_are_opponents_and_mates_by_number():
    match = Match(FOUR).apart()
    seen = match.see()[1]
    assert seen.opponents["range"][:4].tolist() == pytest.approx([0.6, 0.8, 1.0, 1.2])
    assert seen.mates["range"][:3].tolist() == pytest.approx([0.2, 0.2, 0.4])
    assert seen.mates["relative_position"][:3, 1].tolist() == pytest.approx([-0.2, 0.2, 0.4])
    assert seen.opponents["present"].tolist() == [1.0] * 4 + [0.0] * 3
    blue = match.see()[6]
    assert blue.opponents["range"][:4].tolist() == pytest.approx([1.2, 1.0, 0.8, 0.6])
    assert blue.mates["range"][:3].tolist() == pytest.approx([0.4, 0.2, 0.2])


def test_who_left_is_a_row_of_zeros_and_sees_nothing():
    match = Match(FOUR).apart()
    match.s.alive[2] = match.s.alive[5] = 0
    seen = match.see()
    for row in (seen[0].mates[1], seen[0].opponents[1], seen[2], seen[5]):
        assert not np.frombuffer(row.tobytes(), np.float32).any()
    assert seen[0].mates[0].present == seen[0].opponents[0].present == 1.0


def test_pilots_see_the_gun_that_hits_them_and_whom_their_own_hits():
    match = Match().apart()
    match.put(3, 400.0, 0.0)
    match.evaluate()
    seen = match.see()
    assert seen[0].opponents["in_my_gun"][:2].tolist() == [0.0, 1.0]
    assert seen[3].opponents["in_its_gun"][:2].tolist() == [1.0, 0.0]
    assert seen[1].opponents["in_my_gun"].max() == seen[2].opponents["in_its_gun"].max() == 0.0


def test_the_state_for_critics_has_a_row_for_each_slot():
    match = Match(FOUR).apart()
    match.s.alive[6] = 0
    state = np.ones(FOUR.global_state_size, np.float32)
    match.game.global_state(match.s, match.game.world, state)
    rows = state[:-1].reshape(8, -1)
    assert state[-1] == 1.0
    assert rows[:, 0].tolist() == [1, 1, 1, 1, 1, 1, 0, 1]
    assert rows[:, 1].tolist() == [1, 1, 1, 1, -1, -1, 0, -1]
    assert rows[5, 2:].tolist() == pytest.approx([0, 10 / 15, 1, 250 / 340, 0, 0, 0, 1, 0, 1, 0, 1, 1], abs=1e-6)


# ---------------------------------------------------------------------------------------------------------- flight


@long_without_the_compiler
def test_the_dead_do_not_fly_and_a_match_of_scripts_goes_to_its_end():
    id, opponents = "palaestra/UcavTeam-v0", {"red": "solo", "blue": "solo"}
    with closing(palaestra.make_batch(id, 8, opponents=opponents, autoreset_mode="off")) as sim:
        sim.reset(seed=1)
        wrecks = 0
        for _ in range(2000):
            dead, before = sim.alive == 0, sim.states["body"]["north_m"].copy()
            sim.step()
            np.testing.assert_array_equal(sim.states["body"]["north_m"][dead], before[dead])
            wrecks += int(dead.sum())
            if (sim.terminated | sim.truncated).all():
                break
        assert wrecks > 100
        assert (sim.terminated | sim.truncated).all()


@pytest.mark.slow
@long_without_the_compiler
def test_equal_seeds_fly_the_same_match_on_both_engines():
    def fly(engine: str) -> np.ndarray:
        sim = palaestra.make_batch(
            "palaestra/UcavTeam-v0", 2, red=3, blue=2, engine=engine, opponents={"red": "cover", "blue": "sort"}
        )
        with closing(sim):
            sim.reset(seed=3)
            for _ in range(50):
                sim.step()
            return np.stack([sim.states["body"][name] for name in ("north_m", "east_m", "altitude_m")])

    np.testing.assert_allclose(fly("compiled"), fly("jsbsim"), rtol=0, atol=1e-6)


# --------------------------------------------------------------------------------------------------------- pictures


def fought(sizes: tuple[int, int] = (3, 2)) -> tuple[Game, np.ndarray]:
    """Ten records of a match whose blue_0 is shot down in the fifth."""
    match = Match(team.game(red=sizes[0], blue=sizes[1])).apart()
    records = []
    for step in range(10):
        if step == 4:
            match.put(3, 300.0, 0.0)
            match.s.health[3] = 0.01
        match.evaluate()
        records.append(np.array(match.s).copy())
    return match.game, np.array(records)


def test_pictures_show_each_aircraft_in_the_colour_of_its_team():
    pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")
    from palaestra.drawing.colors import TEAMS
    from palaestra.games.ucav.flightplot import film

    game, records = fought()
    frames = list(film(game, records, every=9))
    assert [frame.shape for frame in frames] == [(540, 960, 3)] * 2
    for color in TEAMS:
        assert (np.abs(frames[-1].astype(int) - color).max(-1) < 30).sum() > 300


@pytest.mark.check
def test_a_page_of_a_team_fight_has_a_path_for_each_aircraft():
    pytest.importorskip("matplotlib", reason="plots need the extra palaestra[render]")
    from palaestra.games.ucav.flightplot import plot_flight

    game, records = fought()
    paths, altitude, *_ = plot_flight(game, records).axes
    assert paths.get_legend_handles_labels()[1] == list(game.agents)
    assert [np.size(line.get_xdata()) for line in altitude.get_lines()[:5]] == [10, 10, 10, 5, 10]


def test_a_flight_recording_takes_an_aircraft_away_when_it_leaves(tmp_path):
    from ucav.acmi_reader import read_acmi

    from palaestra.games.ucav.acmi import write_acmi

    game, records = fought()
    write_acmi(tmp_path / "teams.acmi", game, records)
    objects = read_acmi(tmp_path / "teams.acmi").objects
    calls = {one.properties["CallSign"]: one.removed_s for one in objects.values() if "CallSign" in one.properties}
    assert calls == {"red_0": None, "red_1": None, "red_2": None, "blue_0": pytest.approx(0.5), "blue_1": None}
