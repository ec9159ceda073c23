"""TeamPush: reward of a push, winner, and equal chances of both sides."""

import numpy as np
import pytest
from games.play import random_actions
from games.points import LEFT, RIGHT, STAY, assert_mirror_goes_on_as_mirror, placed, played_out, started

from palaestra.evaluation import evaluate
from palaestra.games.teams import push

pytestmark = pytest.mark.check

DISCRETE, CONTINUOUS, SPARSE = push.game(), push.game(actions="continuous"), push.game(reward="sparse")
BOTH_ACTIONS = pytest.mark.parametrize(
    "game", [DISCRETE, pytest.param(CONTINUOUS, marks=pytest.mark.slow)], ids=["discrete", "continuous"]
)
FORWARD, BACK = RIGHT, LEFT
CORNERS = [(-0.9, 0.8), (-0.9, -0.8), (0.9, 0.8), (0.9, -0.8)]


def with_puck(x, vx, game=DISCRETE, **parameters):
    """All agents in a corner; the puck on the middle line between the teams."""
    velocities = np.zeros((5, 2))
    velocities[4] = vx, 0.0
    return placed(game, [*CORNERS, (x, 0.0)], velocities, **parameters)


def stay(sim):
    sim.step(np.full(sim.actions.shape, STAY))


def test_the_way_of_the_puck_is_paid_as_a_share_of_the_way_to_the_goal():
    sim = with_puck(0.1, 0.7)
    stay(sim)
    np.testing.assert_allclose(sim.rewards[0], [0.1, 0.1, -0.1, -0.1], rtol=1e-6)


def test_the_rewards_of_a_match_add_up_to_where_the_puck_is():
    sim = played_out(DISCRETE, 64, red="default", blue="default:0.5")
    where = sim.states["position_m"][:, 4, 0] / 0.7
    np.testing.assert_allclose(sim.returns[:, 0], where, atol=1e-5)
    np.testing.assert_array_equal(sim.returns[:, 2], -sim.returns[:, 0])


@pytest.mark.parametrize(("x", "vx", "winner"), [(0.65, 1.0, 0), (-0.65, -1.0, 1)])
def test_a_goal_ends_the_match_and_alone_is_paid_if_sparse(x, vx, winner):
    sim = with_puck(x, vx, SPARSE)
    stay(sim)
    assert sim.terminated[0]
    assert sim.info["winner"][0] == winner
    assert sim.rewards[0].tolist() == ([1, 1, -1, -1] if winner == 0 else [-1, -1, 1, 1])
    assert sim.game.end_reason(sim.info["end_reason"][0]) == "goal"
    short = with_puck(x, vx / 3, SPARSE)
    stay(short)
    assert not short.rewards.any()
    assert not short.terminated[0]


@pytest.mark.parametrize(("x", "winner"), [(0.2, 0), (-0.2, 1), (0.0, -1)])
def test_at_the_horizon_the_half_decides_in_which_the_puck_is(x, winner):
    sim = with_puck(x, 0.0, horizon=1)
    stay(sim)
    assert sim.truncated[0]
    assert sim.info["winner"][0] == winner


def test_both_teams_see_and_steer_as_if_they_attacked_to_the_right():
    sim = placed(DISCRETE, [(-0.5, 0.3), (-0.6, -0.3), (0.5, 0.3), (0.6, -0.3), (0.0, 0.0)])
    sim.restore(sim.snapshot())
    np.testing.assert_array_equal(sim.observations[0, :2], sim.observations[0, 2:])
    sim.step(np.array([[FORWARD, BACK, FORWARD, BACK]]))
    np.testing.assert_allclose(sim.states["velocity_mps"][0, :4, 0], [0.5, -0.5, -0.5, 0.5])
    np.testing.assert_array_equal(sim.observations[0, :2], sim.observations[0, 2:])


def test_two_push_the_puck_faster_than_one():
    ways = []
    for helpers in (1, 2):
        sim = placed(
            DISCRETE, [(-0.3, 0.08), (-0.3, -0.08) if helpers == 2 else (-0.9, -0.8), *CORNERS[2:], (0.0, 0.0)]
        )
        for _ in range(10):
            sim.step(np.array([[FORWARD, FORWARD if helpers == 2 else STAY, STAY, STAY]]))
        ways.append(sim.states["position_m"][0, 4, 0])
    assert ways[1] > 1.5 * ways[0] > 0


@pytest.mark.jitless
@BOTH_ACTIONS
def test_a_mirrored_match_with_exchanged_teams_continues_as_the_mirror(game):
    assert_mirror_goes_on_as_mirror(game, decisions=20)


def test_a_crowd_at_the_puck_stays_its_mirror():
    sim = started(DISCRETE, 64, seed=3)
    twin = started(DISCRETE, 64, seed=3)
    sim.states["position_m"] *= 0.3
    for name in ("position_m", "velocity_mps"):
        twin.states[name] = sim.states[name]
    push.mirror(twin.states, twin.buffers.action_records)
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = random_actions(sim, rng)
        sim.step(actions)
        twin.step(np.roll(actions, 2, axis=1))
        expected = sim.states.copy()
        push.mirror(expected, twin.buffers.action_records.copy())
        np.testing.assert_array_equal(twin.states["position_m"], expected["position_m"])
    assert (sim.states["position_m"][:, 4] != 0).any(axis=1).mean() > 0.9, "the puck was touched"


@BOTH_ACTIONS
def test_the_script_beats_random_players_from_both_sides(game):
    assert (played_out(game, 128, red="default", blue="random").info["winner"] == 0).mean() > 0.95
    assert (played_out(game, 128, red="random", blue="default").info["winner"] == 1).mean() > 0.95


def test_neither_side_is_better_off():
    wins = (played_out(DISCRETE, 512, seed=9, red="default", blue="default").info["winner"] == 0).mean()
    assert abs(wins - 0.5) < 4 * 0.5 / np.sqrt(512)


@pytest.mark.slow
def test_the_strength_of_the_script_is_a_grade():
    grades = [f"default:{grade}" for grade in (0, 0.25, 0.5, 0.75, 1)]
    scores = [evaluate("palaestra/TeamPush-v0", grade, grades[2], matches=4000, num_envs=256).score for grade in grades]
    assert (np.diff(scores) > 0).all(), scores
    assert evaluate("palaestra/TeamPush-v0", grades[-1], grades[0], matches=2000, num_envs=256).wins >= 0.9 * 2000
    for grade in (grades[2], grades[4]):
        table = evaluate("palaestra/TeamPush-v0", grade, grade, matches=4000, swap=False, num_envs=256)
        assert abs(table.score - 0.5) < 0.03
