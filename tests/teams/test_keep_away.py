"""TeamKeepAway: the team that is nearer to the goal gains, and red alone sees the goal."""

import numpy as np
import pytest
from games.points import STAY, assert_mirror_goes_on_as_mirror, placed, played_out, started

from palaestra.games.teams import keep_away

pytestmark = pytest.mark.check

DISCRETE, CONTINUOUS = keep_away.game(), keep_away.game(actions="continuous")
SPARSE = keep_away.game(reward="sparse")
BOTH_ACTIONS = pytest.mark.parametrize(
    "game", [DISCRETE, pytest.param(CONTINUOUS, marks=pytest.mark.slow)], ids=["discrete", "continuous"]
)
GOALS = [(0.0, 0.0), (0.9, 0.9)]
RED_NEARER = [(0.3, 0.0), (-0.8, 0.8), (0.0, -0.5), (0.8, -0.8), *GOALS]
"""Red is 0.3 m from the first landmark, blue 0.5 m."""


def stay(sim):
    sim.step(np.full(sim.actions.shape, STAY))


def test_red_gains_by_how_much_nearer_its_nearest_is():
    sim = placed(DISCRETE, RED_NEARER)
    sim.states["goal"] = 0
    stay(sim)
    np.testing.assert_allclose(sim.rewards[0], [0.2, 0.2, -0.2, -0.2], rtol=1e-6)


def test_exchanging_the_teams_changes_the_sign():
    sim = placed(DISCRETE, [*RED_NEARER[2:4], *RED_NEARER[:2], *GOALS])
    sim.states["goal"] = 0
    stay(sim)
    np.testing.assert_allclose(sim.rewards[0], [-0.2, -0.2, 0.2, 0.2], rtol=1e-6)


@pytest.mark.parametrize(("needed", "winner"), [(0.35, 0), (0.45, 1)])
def test_the_lead_over_the_match_decides(needed, winner):
    sim = placed(DISCRETE, RED_NEARER, horizon=2, margin_to_win_m=needed)
    sim.states["goal"] = 0
    stay(sim)
    assert sim.info["winner"][0] == -1
    stay(sim)
    assert sim.truncated[0]
    assert sim.info["winner"][0] == winner
    np.testing.assert_allclose(sim.info["margin_m"][0], 0.4)


def test_a_sparse_match_pays_the_winner_in_its_last_decision():
    sim = placed(SPARSE, RED_NEARER, horizon=2, margin_to_win_m=0.0)
    sim.states["goal"] = 0
    stay(sim)
    assert not sim.rewards.any()
    stay(sim)
    assert sim.rewards[0].tolist() == [1, 1, -1, -1]


def test_red_alone_sees_the_goal():
    sim = started(DISCRETE, 64)
    seen = sim.buffers.observations["player"]["goal"]
    np.testing.assert_array_equal(seen[:, 0].argmax(axis=1), sim.states["goal"])
    assert (seen[:, :2].sum(axis=2) == 1).all()
    assert not seen[:, 2:].any()


def test_a_player_sees_its_own_team_before_the_other_one():
    sim = placed(DISCRETE, RED_NEARER)
    stay(sim)
    seen = sim.buffers.observations["player"]["other_offset_m"][0]
    np.testing.assert_allclose(seen[0], [(-1.1, 0.8), (-0.3, -0.5), (0.5, -0.8)], rtol=1e-6)  # red_1, blue_0, blue_1
    np.testing.assert_allclose(seen[2], [(0.8, -0.3), (0.3, 0.5), (-0.8, 1.3)], rtol=1e-6)  # blue_1, red_0, red_1


@pytest.mark.check
@pytest.mark.jitless
@BOTH_ACTIONS
def test_a_mirrored_match_continues_as_the_mirror(game):
    assert_mirror_goes_on_as_mirror(game, decisions=20)


@BOTH_ACTIONS
def test_either_team_s_script_beats_random_players(game):
    assert (played_out(game, 128, red="default", blue="random").info["winner"] == 0).mean() > 0.9
    assert (played_out(game, 128, red="random", blue="default").info["winner"] == 1).mean() > 0.9


def test_the_script_of_blue_does_not_look_at_the_goal():
    sims = [started(DISCRETE, 64), started(DISCRETE, 64)]
    for number, sim in enumerate(sims):
        sim.states["goal"] = number
        sim.set_opponent("blue", "default")
        sim.step()
    np.testing.assert_array_equal(sims[0].actions[:, 2:], sims[1].actions[:, 2:])
    assert sims[0].actions[:, 2:].any()


def test_scripts_win_about_as_often_on_either_side():
    wins = (played_out(DISCRETE, 512, red="default", blue="default").info["winner"] == 0).mean()
    assert 0.4 < wins < 0.6
