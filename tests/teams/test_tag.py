"""TeamTag: rewards of a touch, winner, observations, scripts."""

import numpy as np
import pytest
from games.play import random_actions
from games.points import LEFT, RIGHT, STAY, UP, assert_mirror_goes_on_as_mirror, placed, played_out, started

from palaestra.games.teams import tag
from palaestra.games.teams.tag_mpe import CHASERS, RUNNERS

PAIRS, SPARSE, FORCES = tag.game(2, 2), tag.game(2, 2, reward="sparse"), tag.game(2, 2, actions="continuous")
OBSTACLES = [(-0.2, -0.2), (0.2, 0.2)]
FAR = [(-0.7, -0.7), (-0.7, 0.7), (0.7, -0.7), (0.7, 0.7), *OBSTACLES]
TOUCHING = [(-0.7, -0.7), (0.7, 0.6), (0.7, -0.7), (0.7, 0.7), *OBSTACLES]
"""The second chaser is at the second runner."""


def stay(sim):
    sim.step(np.full(sim.actions.shape, STAY))


@pytest.mark.check
def test_a_touched_runner_pays_its_team_exactly_what_the_chasers_gain():
    sim = placed(PAIRS, TOUCHING, contact_reward=2.5)
    stay(sim)
    assert sim.rewards[0].tolist() == [2.5, 2.5, -2.5, -2.5]
    assert sim.states["touched"][0].tolist() == [0, 1]


@pytest.mark.jitless
def test_a_runner_that_two_chasers_touch_pays_once():
    sim = placed(PAIRS, [(0.1, 0.7), (-0.1, 0.7), (0.7, -0.7), (0.0, 0.7), *OBSTACLES])
    stay(sim)
    assert sim.rewards[0].tolist() == [1, 1, -1, -1]
    assert sim.info["tags"][0] == 1


def test_each_runner_pays_for_itself():
    sim = placed(PAIRS, [(0.1, 0.7), (0.7, -0.6), (0.7, -0.7), (0.0, 0.7), *OBSTACLES])
    stay(sim)
    assert sim.rewards[0].tolist() == [2, 2, -2, -2]


def test_touches_among_teammates_and_with_obstacles_cost_nothing():
    sim = placed(PAIRS, [(-0.8, 0.0), (-0.75, 0.0), (0.8, 0.0), (0.85, 0.0), (0.7, 0.0), (-0.9, 0.0)])
    stay(sim)
    assert not sim.rewards.any()


@pytest.mark.jitless
def test_the_first_tag_ends_a_sparse_match():
    sim = placed(SPARSE, TOUCHING)
    stay(sim)
    assert sim.terminated[0]
    assert sim.rewards[0].tolist() == [1, 1, -1, -1]
    assert sim.info["winner"][0] == CHASERS
    assert sim.game.end_reason(sim.info["end_reason"][0]) == "tagged"


def test_a_sparse_match_pays_nothing_before_the_last_tag():
    sim = placed(SPARSE, TOUCHING, tags_to_win=2)
    stay(sim)
    assert not sim.rewards.any()
    assert not sim.terminated[0]
    sim.states["position_m"], sim.states["velocity_mps"] = TOUCHING, 0.0
    stay(sim)
    assert sim.terminated[0]
    assert sim.rewards[0].tolist() == [1, 1, -1, -1]


@pytest.mark.parametrize(("positions", "winner"), [(FAR, RUNNERS), (TOUCHING, CHASERS)])
def test_at_the_horizon_the_chasers_have_won_if_they_have_tagged(positions, winner):
    sim = placed(PAIRS, positions, horizon=2)
    stay(sim)
    assert sim.info["winner"][0] == -1
    stay(sim)
    assert sim.truncated[0]
    assert sim.info["winner"][0] == winner


def test_walls_keep_all_agents_in():
    sim = started(PAIRS, 64)
    rng = np.random.default_rng(1)
    for _ in range(50):
        sim.step(random_actions(sim, rng))
        radius = np.array([0.075, 0.075, 0.05, 0.05])[:, None]
        assert (np.abs(sim.states["position_m"][:, :4]) <= 1 - radius).all()


def test_a_push_of_a_runner_is_stronger_than_that_of_a_chaser():
    sim = placed(PAIRS, FAR)
    sim.step(np.array([[RIGHT, UP, LEFT, STAY]]))
    np.testing.assert_allclose(sim.states["velocity_mps"][0], [(0.3, 0), (0, 0.3), (-0.4, 0), (0, 0)], atol=1e-15)


def test_matches_start_without_a_touch_and_teams_in_different_halves():
    sim = started(PAIRS, 256)
    x = sim.states["position_m"][:, :4, 0]
    assert (np.sign(x[:, :2]) == np.sign(x[:, :1])).all()
    assert (np.sign(x[:, 2:]) == -np.sign(x[:, :1])).all()
    assert 96 < (x[:, 0] > 0).sum() < 160, "either side"
    assert (np.abs(x) >= 0.1).all()


@pytest.mark.jitless
def test_teammates_come_before_opponents():
    sim = placed(PAIRS, [(0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.4, 0.0), (0.5, 0.0), (0.5, 0.1)])
    sim.states["velocity_mps"][0, :, 1] = [1, 2, 3, 4]
    sim.restore(sim.snapshot())
    seen = sim.buffers.observations["player"][0]
    assert seen["is_chaser"].tolist() == [1, 1, 0, 0]
    np.testing.assert_allclose(seen["obstacle_offset_m"][:, 0, 0], [0.4, 0.3, 0.2, 0.1], rtol=1e-6)
    np.testing.assert_allclose(
        seen["other_offset_m"][:, :, 0],
        [(0.1, 0.2, 0.3), (-0.1, 0.1, 0.2), (0.1, -0.2, -0.1), (-0.1, -0.3, -0.2)],
        rtol=1e-5,
    )
    expected = np.minimum([(2, 3, 4), (1, 3, 4), (4, 1, 2), (3, 1, 2)], 2)  # clipped to the greatest speed
    np.testing.assert_array_equal(seen["other_velocity_mps"][:, :, 1], expected)


@pytest.mark.check
@pytest.mark.jitless
@pytest.mark.parametrize("actions", ["discrete", "continuous"])
def test_a_mirrored_match_continues_as_the_mirror(actions):
    assert_mirror_goes_on_as_mirror(PAIRS if actions == "discrete" else FORCES)


def test_a_full_thrust_is_the_same_in_both_kinds_of_action():
    by_moves, by_forces = placed(PAIRS, FAR), placed(FORCES, FAR)
    by_moves.step(np.array([[RIGHT, UP, LEFT, STAY]]))
    by_forces.step(np.array([[(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, 0.0)]]))
    np.testing.assert_array_equal(by_moves.states["velocity_mps"], by_forces.states["velocity_mps"])


def test_rewards_add_up_to_zero_in_every_step():
    sim = started(tag.game(), 64, contact_reward=0.1)
    sim.set_opponent("red", "default")
    paid = 0.0
    for _ in range(50):
        sim.step()
        assert (sim.rewards[:, 0] + sim.rewards[:, -1] == 0).all()
        paid += abs(sim.rewards).sum()
    assert paid > 0


GAMES = {"three on one": tag.game(), "two on two": PAIRS, "continuous": FORCES, "sparse": SPARSE}


@pytest.mark.check
@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
def test_chasers_catch_random_runners_and_runners_escape_random_chasers(game):
    caught = played_out(game, 128, compiled=True, red="default", blue="random")
    assert (caught.info["winner"] == CHASERS).mean() > 0.95
    escaped = played_out(game, 128, compiled=True, red="random", blue="default")
    assert (escaped.info["winner"] == RUNNERS).mean() > 0.95


def test_two_against_two_is_open_between_scripts():
    sim = played_out(PAIRS, 256, red="default", blue="default")
    assert 0.3 < (sim.info["winner"] == CHASERS).mean() < 0.7
