"""ArenaDuel2v2: how robots drive, aim and shoot; rewards, winner and observations."""

from typing import Any

import numpy as np
import pytest
from games.points import started
from games.robots import BLUE_0, BLUE_1, DUEL, HIDDEN, LEFT, RED_0, RED_1, RIGHT, SPARSE, UP, duel, play

from palaestra.games.teams import arena_duel
from palaestra.games.teams.arena_moves import ADVANCE, COVER, FLANK, HOLD, NOWHERE

pytestmark = pytest.mark.jitless

SUBSTEPS = arena_duel.SUBSTEPS


def pair(distance_m: float, headings: Any = (RIGHT, LEFT), **keywords: Any) -> Any:
    """Two robots that face each other below the middle, their teammates dead."""
    places = ((-0.5 * distance_m, -0.75), HIDDEN[0], (0.5 * distance_m, -0.75), HIDDEN[1])
    return duel(places, (headings[0], RIGHT, headings[1], LEFT), dead=(RED_1, BLUE_1), **keywords)


def lost(sim: Any) -> list[float]:
    """Hit points that the robots have lost."""
    return (arena_duel.HIT_POINTS - sim.states["hit_points"][0]).tolist()


def seen(sim: Any, slot: int) -> Any:
    return sim.buffers.observations["robot"][0, slot]


# -- driving -----------------------------------------------------------------------------------------------------------


def test_a_holding_robot_stays():
    sim = started(DUEL)
    before = sim.states["position_m"].copy()
    play(sim)
    np.testing.assert_array_equal(sim.states["position_m"], before)
    assert (sim.states["post"] == NOWHERE).all()


def test_a_robot_drives_no_farther_than_its_speed_allows():
    sim = duel(((-3.5, 1.0), (-3.5, -1.0), (3.5, -1.0), (3.5, 1.0)), speed_mps=0.5, rounds=0)
    before = sim.states["position_m"].copy()
    play(sim, ADVANCE, ADVANCE, ADVANCE, ADVANCE)
    driven_m = np.hypot(*(sim.states["position_m"] - before)[0].T)
    assert (driven_m <= 0.5 * 3.6 + 1e-9).all()
    assert (driven_m > 1.0).all()


def test_friction_changes_the_speed_of_all_robots():
    driven_m = []
    for friction in (0.0, 0.25):
        sim = duel(((-3.75, 2.0), (-3.75, 1.75), (3.75, -2.0), (3.75, -1.75)), rounds=0, speed_mps=0.1)
        sim.states["friction"] = friction
        before = sim.states["position_m"].copy()
        play(sim, ADVANCE, ADVANCE, ADVANCE, ADVANCE)
        driven_m.append(np.hypot(*(sim.states["position_m"] - before)[0].T))
    np.testing.assert_allclose(driven_m[1], 1.25 * driven_m[0], rtol=0.05)


def test_the_friction_of_a_match_is_within_its_range():
    friction = started(DUEL, 256).states["friction"]
    assert 0.03 < np.abs(friction).max() <= 0.0375
    assert not started(DUEL, 8, friction_spread=0.0).states["friction"].any()


def test_an_advancing_robot_ends_in_sight_of_its_target_at_fighting_distance():
    sim = duel(((-3.5, 1.5), (-3.5, -1.5), (3.5, 1.5), (3.5, -1.5)), rounds=0)
    for _ in range(4):
        play(sim, ADVANCE, ADVANCE, HOLD, HOLD, targets=(0, 1, 0, 0))
    for k in range(2):
        away_m = np.hypot(*(sim.states["position_m"][0, 2 + k] - sim.states["position_m"][0, k]))
        assert 0.75 < away_m < 2.25
        assert seen(sim, k)["sees_opponent"][k] == 1


@pytest.mark.parametrize("heading", [RIGHT, LEFT, UP], ids=["to the right", "to the left", "up"])
def test_a_flanking_robot_goes_where_it_sees_a_side_or_the_rear(heading: tuple):
    ahead = {}
    for move in (ADVANCE, FLANK):
        sim = duel(((-1.5, 0.75), HIDDEN[0], (1.5, 0.75), HIDDEN[1]), (RIGHT, RIGHT, heading, LEFT), rounds=0)
        play(sim, move, HOLD, HOLD, HOLD)
        way_m = sim.game.world.post_m[sim.states["post"][0, RED_0]] - (1.5, 0.75)
        ahead[move] = float(way_m @ heading) / np.hypot(*way_m)
    assert ahead[FLANK] <= ahead[ADVANCE]
    assert ahead[FLANK] < 0.1


def test_a_robot_in_cover_is_seen_by_no_opponent_afterwards():
    sim = duel(((-1.5, 0.75), (-1.5, -0.75), (1.5, 0.75), (1.5, -0.75)), rounds=0)
    play(sim)
    assert seen(sim, BLUE_0)["sees_opponent"].any()
    play(sim, COVER, COVER, HOLD, HOLD)
    assert not seen(sim, BLUE_0)["sees_opponent"].any()
    assert not seen(sim, BLUE_1)["sees_opponent"].any()


# -- fire --------------------------------------------------------------------------------------------------------------


def test_a_round_takes_its_damage_times_the_share_that_hits():
    sim = pair(2.5)
    play(sim)
    np.testing.assert_allclose(lost(sim)[::2], SUBSTEPS * 20.0 * (1 - 2.5 / 5.0))
    assert sim.states["rounds"][0, ::2].tolist() == [200 - SUBSTEPS] * 2


@pytest.mark.parametrize(
    ("heading", "damage"), [(LEFT, 20.0), (UP, 40.0), (RIGHT, 60.0)], ids=["front", "side", "rear"]
)
def test_sides_and_rear_are_weaker_than_the_front(heading: tuple, damage: float):
    sim = pair(2.5, (RIGHT, heading), rounds=1)  # the chassis turns by less than a plate before the first round
    play(sim)
    assert lost(sim)[BLUE_0] == 0.5 * damage


def test_no_robot_shoots_through_an_obstacle():
    sim = duel(((-1.0, 0.0), HIDDEN[0], (1.0, 0.0), HIDDEN[1]))
    play(sim)
    assert lost(sim) == [0, 0, 0, 0]
    assert (sim.states["rounds"] == 200).all()


def test_no_robot_shoots_out_of_range_or_without_rounds():
    far = pair(3.5, range_m=3.0)
    play(far)
    assert lost(far)[::2] == [0, 0]
    assert (far.states["rounds"] == 200).all()
    empty = pair(2.5, rounds=3)
    play(empty)
    np.testing.assert_allclose(lost(empty)[::2], 3 * 10.0)


def test_a_turret_that_points_away_has_to_turn_first():
    sim = pair(2.5)
    sim.states["turret"][0, RED_0] = LEFT
    play(sim)
    assert sim.states["rounds"][0, BLUE_0] == 180
    assert sim.states["rounds"][0, RED_0] == 184, "four turns of 36.9 degrees, the fifth comes to rest on the target"


def test_fire_from_a_driving_robot_hits_less():
    held, driven = pair(2.0, moving_accuracy=0.0), [pair(2.0, moving_accuracy=share) for share in (0.0, 0.5, 1.0)]
    play(held)
    for sim in driven:
        play(sim, COVER, HOLD, HOLD, HOLD)
    none, half, full = (lost(sim)[BLUE_0] for sim in driven)
    assert none < half < full
    assert half - none == pytest.approx(0.5 * (full - none))
    assert none < lost(held)[BLUE_0]


def test_no_robot_hides_inside_an_opponent():
    sim = pair(0.0)
    play(sim)
    assert lost(sim)[::2] == [SUBSTEPS * 20.0] * 2


def test_a_robot_under_fire_of_two_loses_twice():
    places = ((-1.25, -0.75), (-1.25, -0.75), (1.25, -0.75), HIDDEN[1])
    sim = duel(places)
    play(sim, targets=(0, 0, 0, 0))
    assert lost(sim)[BLUE_0] == pytest.approx(2 * lost(sim)[RED_0])
    assert lost(sim)[RED_1] == 0


def test_the_agent_chooses_its_target_or_shoots_at_the_only_opponent_in_sight():
    places = ((-1.0, -0.75), HIDDEN[0], (1.0, -0.75), (1.0, -0.5))
    for target in (0, 1):
        sim = duel(places)
        play(sim, targets=(target, 0, 0, 0))
        assert [lost(sim)[BLUE_0] > 0, lost(sim)[BLUE_1] > 0] == [target == 0, target == 1]
    sim = pair(2.5)
    play(sim, targets=(1, 0, 0, 0))
    assert lost(sim)[BLUE_0] > 0


# -- rewards and ends --------------------------------------------------------------------------------------------------


def test_a_team_is_paid_the_damage_that_it_does_less_what_it_takes():
    sim = pair(2.5)
    sim.states["rounds"][0, BLUE_0] = 5
    play(sim)
    gain = (20 * 10.0 - 5 * 10.0) / 2000
    np.testing.assert_allclose(sim.rewards[0], [gain, gain, -gain, -gain])


def test_the_dead_leave_and_their_team_is_paid_on():
    places = ((-1.0, -0.75), HIDDEN[0], (1.0, -0.75), (3.5, 1.5))
    sim = duel(places)
    sim.states["hit_points"][0, BLUE_0] = 5.0
    play(sim)
    assert sim.alive[0].tolist() == [True, True, False, True]
    assert sim.agent_terminated[0].tolist() == [False, False, True, False]
    assert not sim.terminated[0]
    assert not any(seen(sim, BLUE_0)[name].any() for name in ("own_position", "own_heading", "own_hit_points"))
    assert not seen(sim, RED_0)["opponent_position"][0].any()


@pytest.mark.parametrize("game", [DUEL, SPARSE], ids=["dense", "sparse"])
def test_the_last_robot_of_a_team_takes_the_match_with_it(game: Any):
    sim = pair(2.5, game=game)
    sim.states["hit_points"][0, BLUE_0] = 10.0
    play(sim)
    assert sim.terminated[0]
    assert sim.game.end_reason(sim.info["end_reason"][0]) == "wiped_out"
    assert sim.info["winner"][0] == arena_duel.RED
    assert (sim.rewards[0] * [1, 1, -1, -1] == sim.rewards[0, 0]).all()
    assert sim.rewards[0, 0] == (1.0 if game is SPARSE else 0.0), "both lost ten hit points"


def test_two_that_fall_in_the_same_substep_draw():
    sim = pair(2.5, game=SPARSE)
    sim.states["hit_points"][0, ::2] = 10.0
    play(sim)
    assert sim.terminated[0]
    assert sim.info["winner"][0] == -1
    assert not sim.rewards.any()


@pytest.mark.parametrize("hit_points", [(2000.0, 1999.0), (1999.0, 2000.0), (2000.0, 2000.0)])
def test_at_the_horizon_the_team_with_more_hit_points_has_won(hit_points: tuple[float, float]):
    sim = duel((HIDDEN[0], HIDDEN[0], HIDDEN[1], HIDDEN[1]), game=SPARSE, horizon=2)
    sim.states["hit_points"][0, RED_0], sim.states["hit_points"][0, BLUE_0] = hit_points
    play(sim)
    assert (sim.info["winner"][0], sim.rewards[0, 0]) == (-1, 0)
    play(sim)
    assert sim.truncated[0]
    advantage = np.sign(hit_points[0] - hit_points[1])
    assert sim.info["winner"][0] == {1: 0, -1: 1, 0: -1}[int(advantage)]
    assert sim.rewards[0].tolist() == [advantage, advantage, -advantage, -advantage]
    assert sim.info["hit_points"][0].tolist() == [2000 + hit_points[0], 2000 + hit_points[1]]


# -- observations ------------------------------------------------------------------------------------------------------


def test_every_agent_sees_37_numbers():
    assert started(DUEL).observations.shape == (1, 4, 37)


def test_both_teams_see_their_own_start_on_the_left():
    sim = started(DUEL, 32)
    own = sim.buffers.observations["robot"]["own_position"]
    assert (own[:, :, 0] < -0.8).all()
    assert (sim.buffers.observations["robot"]["own_heading"] == RIGHT).all()
    assert (sim.buffers.observations["robot"]["opponent_position"][:, :, :, 0] > 0.8).all()


def test_what_an_agent_sees_is_where_it_says():
    sim = duel(((-1.0, -0.75), (-2.0, 0.5), (1.0, -0.75), (2.0, 1.5)), (RIGHT, UP, UP, LEFT))
    sim.states["hit_points"][0] = [2000, 1500, 1000, 500]
    sim.states["rounds"][0] = [200, 150, 100, 50]
    sim.states["steps"] = 10
    sim.restore(sim.snapshot())
    red, blue = seen(sim, RED_0), seen(sim, BLUE_0)
    np.testing.assert_allclose(red["own_position"], [-0.25, -0.1875])
    np.testing.assert_allclose(red["teammate_position"], [-0.5, 0.125])
    np.testing.assert_allclose(red["opponent_position"], [(0.25, -0.1875), (0.5, 0.375)])
    np.testing.assert_allclose([red["teammate_hit_points"], *red["opponent_hit_points"]], [0.75, 0.5, 0.25])
    np.testing.assert_allclose([red["teammate_rounds"], *red["opponent_rounds"]], [0.75, 0.5, 0.25])
    np.testing.assert_allclose(red["time_left"], 0.8)
    np.testing.assert_allclose([red["opponent_plate"][0], red["own_plate"][0]], [2 / 3, 1 / 3])
    np.testing.assert_allclose(blue["own_position"], [-0.25, 0.1875])
    np.testing.assert_allclose(blue["opponent_position"], [(0.25, 0.1875), (0.5, -0.125)])
    np.testing.assert_allclose(blue["own_heading"], [0, -1])
    np.testing.assert_allclose([blue["opponent_plate"][0], blue["own_plate"][0]], [1 / 3, 2 / 3])
