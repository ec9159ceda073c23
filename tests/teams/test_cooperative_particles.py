"""Spread, Reference and SpeakerListener: rewards, observations, messages, scripts."""

import numpy as np
import pytest
from games.points import RIGHT, STAY, assert_mirror_goes_on_as_mirror, placed, played_out, started

from palaestra.games.teams import reference, speaker_listener, spread

pytestmark = pytest.mark.check

SPREAD, SPARSE_SPREAD = spread.game(), spread.game(reward="sparse")
REFERENCE, SPEAKER = reference.game(), speaker_listener.game()
KINDS = {
    "spread": spread.game,
    "reference": reference.game,
    "speaker": speaker_listener.game,
}
LANDMARKS = [(-1.0, 0.0), (0.0, 1.0), (1.0, 0.0)]
APART = [(-1.0, 0.1), (0.0, 1.0), (1.0, -0.2), *LANDMARKS]


def stay(sim):
    sim.step(None)


def test_spread_pays_the_distance_of_each_landmark_from_the_nearest_agent():
    sim = placed(SPREAD, APART)
    stay(sim)
    np.testing.assert_allclose(sim.rewards[0], -0.5 * (0.1 + 0.2), rtol=1e-6)


def test_an_overlap_costs_both_and_the_team_their_mean():
    sim = placed(SPREAD, [(0.0, 0.0), (0.2, 0.0), (0.0, 5.0), *LANDMARKS], local_ratio=1.0)
    stay(sim)
    np.testing.assert_allclose(sim.rewards[0], -2 / 3, rtol=1e-6)
    own = placed(spread.game(rules="mpe"), [(0.0, 0.0), (0.2, 0.0), (0.0, 5.0), *LANDMARKS], local_ratio=1.0)
    stay(own)
    assert own.rewards[0].tolist() == [-1, -1, 0]


@pytest.mark.parametrize(("last", "reward"), [((1.0, -0.15), 1.0), ((1.0, -0.16), 0.0)])
def test_sparse_spread_pays_while_every_landmark_is_covered(last, reward):
    sim = placed(SPARSE_SPREAD, [*APART[:2], last, *LANDMARKS], horizon=2)
    stay(sim)
    assert sim.rewards[0].tolist() == [reward] * 3
    stay(sim)
    assert sim.rewards[0].tolist() == [reward] * 3
    assert sim.info["winner"][0] == (0 if reward else -1)
    assert sim.info["covered"][0] == (3 if reward else 2)


@pytest.mark.parametrize(("last", "reward"), [((1.0, -0.15), 1.0), ((1.0, -0.16), 0.0)])
def test_the_first_cover_of_all_landmarks_is_paid_and_ends_the_match(last, reward):
    sim = placed(spread.game(reward="first"), [*APART[:2], last, *LANDMARKS])
    stay(sim)
    assert sim.rewards[0].tolist() == [reward] * 3
    assert sim.terminated[0] == (reward == 1.0)
    assert sim.game.end_reason(sim.info["end_reason"][0]) == ("solved" if reward else "")
    assert sim.info["winner"][0] == (0 if reward else -1)


def test_a_landmark_is_paid_when_it_is_covered_and_paid_back_when_it_is_left():
    sim, paid = placed(spread.game(reward="event"), [*LANDMARKS[:2], (1.0, 9.0), *LANDMARKS], horizon=6), []
    for third in (9.0, 0.1, 0.1, 9.0, 0.1, 0.1):
        sim.states["position_m"][0, 2, 1] = third
        stay(sim)
        paid.append(sim.rewards[0].tolist())
    assert paid == [[2.0] * 3, [1.0] * 3, [0.0] * 3, [-1.0] * 3, [1.0] * 3, [0.0] * 3]
    assert sim.truncated[0]
    assert sim.info["winner"][0] == 0


def test_an_arrival_is_an_event_of_reference_and_of_the_listener():
    both = placed(reference.game(reward="event"), [LANDMARKS[0], LANDMARKS[1], *LANDMARKS])
    both.states["goal"] = 0, 1
    listener = placed(speaker_listener.game(reward="event"), [LANDMARKS[2], *LANDMARKS])
    listener.states["goal"] = 2
    for sim, most in ((both, 2.0), (listener, 1.0)):
        stay(sim)
        assert sim.rewards[0].tolist() == [most] * 2
        sim.states["position_m"][0, 0] += 5.0
        stay(sim)
        assert sim.rewards[0].tolist() == [-1.0] * 2
        assert not sim.terminated[0]


def test_reference_and_the_listener_are_solved_at_their_goals():
    both = placed(reference.game(reward="first"), [LANDMARKS[0], LANDMARKS[2], *LANDMARKS])
    both.states["goal"] = 0, 1
    stay(both)
    assert both.rewards[0].tolist() == [0.0] * 2, "one of two has arrived"
    both.states["position_m"][0, 1] = LANDMARKS[1]
    listener = placed(speaker_listener.game(reward="first"), [LANDMARKS[2], *LANDMARKS])
    listener.states["goal"] = 2
    for sim in (both, listener):
        stay(sim)
        assert sim.rewards[0].tolist() == [1.0] * 2
        assert sim.terminated[0]
        assert sim.game.end_reason(sim.info["end_reason"][0]) == "solved"


def test_a_team_that_leaves_the_landmarks_before_the_end_has_not_won():
    sim = placed(SPREAD, [*LANDMARKS, *LANDMARKS], horizon=2)
    stay(sim)
    assert sim.info["covered"][0] == 3
    sim.states["position_m"][0, :3] += 5.0
    stay(sim)
    assert sim.truncated[0]
    assert sim.info["winner"][0] == -1


def test_spread_shows_landmarks_and_the_others_from_where_an_agent_is():
    sim = placed(SPREAD, APART)
    stay(sim)
    first = sim.buffers.observations["agent"][0, 0]
    np.testing.assert_allclose(first["landmark_offset_m"], [(0.0, -0.1), (1.0, 0.9), (2.0, -0.1)], atol=1e-6)
    np.testing.assert_allclose(first["other_offset_m"], [(1.0, 0.9), (2.0, -0.3)], atol=1e-6)


def test_the_dense_team_reward_is_the_mean_of_what_mpe2_pays_its_agents():
    team, own = started(SPREAD, 256, seed=1), started(spread.game(rules="mpe"), 256, seed=1)
    stay(team)
    stay(own)
    assert (own.rewards != own.rewards[:, :1]).any()
    np.testing.assert_allclose(team.rewards[:, 0], own.rewards.mean(axis=1), rtol=1e-5)


def test_a_word_is_heard_in_the_next_decision_by_the_other_alone():
    sim = started(REFERENCE)
    assert not sim.observations[..., -10:].any(), "silent at the start"
    sim.step(np.array([[[STAY, 7], [STAY, 2]]]))
    heard = sim.observations[0, :, -10:]
    assert heard.argmax(axis=1).tolist() == [2, 7]
    assert heard.sum() == 2


def test_only_the_last_word_is_heard():
    sim = started(REFERENCE)
    sim.step(np.array([[[STAY, 7], [STAY, 2]]]))
    sim.step(np.array([[[STAY, 4], [STAY, 2]]]))
    assert np.flatnonzero(sim.observations[0, 0, -10:]).tolist() == [2]
    assert np.flatnonzero(sim.observations[0, 1, -10:]).tolist() == [4]


def test_each_agent_sees_the_colour_of_the_others_goal():
    sim = started(REFERENCE, 32)
    colors = sim.observations[..., 8:11]
    assert set(np.unique(colors)) == {0.25, 0.75}
    np.testing.assert_array_equal(colors.argmax(axis=2), sim.states["goal"][:, ::-1])


def test_reference_pays_the_mean_distance_from_the_goals():
    sim = placed(REFERENCE, [(0.0, 0.0), (0.0, 1.0), *LANDMARKS])
    sim.states["goal"] = 0, 1
    stay(sim)
    np.testing.assert_allclose(sim.rewards[0], -0.5)


def test_an_agent_of_mpe2_is_paid_for_the_way_of_the_agent_that_it_speaks_to():
    sim = placed(reference.game(rules="mpe"), [(0.0, 0.0), (0.0, 1.0), *LANDMARKS], local_ratio=1.0)
    sim.states["goal"] = 0, 1  # the first is 1 m from its goal, the second stands on its own
    stay(sim)
    assert sim.rewards[0].tolist() == [0, -1]


@pytest.mark.parametrize(("place", "reward"), [((0.0, 0.91), 1.0), ((0.0, 0.89), 0.0)])
def test_sparse_reference_pays_when_both_are_at_their_goals(place, reward):
    sim = placed(reference.game(reward="sparse"), [LANDMARKS[0], place, *LANDMARKS])
    sim.states["goal"] = 0, 1
    stay(sim)
    assert sim.rewards[0].tolist() == [reward] * 2
    assert sim.info["arrived"][0] == 1 + reward


def test_the_listener_hears_the_speaker_and_is_paid_for_its_squared_distance():
    sim = placed(SPEAKER, [(-1.0, 0.0), *LANDMARKS])
    sim.states["goal"] = 2
    sim.step({"speaker": np.array([[1]]), "listener": np.array([[RIGHT]])})
    assert sim.observations["listener"][0, 0, -3:].tolist() == [0, 1, 0]
    assert sim.rewards[0].tolist() == [-4, -4]
    assert sim.states["velocity_mps"][0, 0, 0] == 0.5
    np.testing.assert_array_equal(sim.observations["speaker"][0, 0], np.array([0.15, 0.15, 0.65], np.float32))


def test_the_listener_sees_each_landmark_from_where_it_is():
    sim = placed(SPEAKER, [(0.5, 0.5), *LANDMARKS])
    stay(sim)
    seen = sim.buffers.observations["listener"]["landmark_offset_m"][0, 0]
    assert seen.tolist() == [[-1.5, -0.5], [-0.5, 0.5], [0.5, -0.5]]


@pytest.mark.jitless
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_mirrored_match_continues_as_the_mirror(kind):
    assert_mirror_goes_on_as_mirror(kind(), decisions=15)


@pytest.mark.parametrize("actions", ["discrete", pytest.param("continuous", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_the_script_solves_the_task_and_random_agents_do_not(kind, actions):
    game = kind(actions=actions)
    assert (played_out(game, 128, agent="default").info["winner"] == 0).mean() > 0.9
    assert (played_out(game, 128, agent="random").info["winner"] == 0).mean() < 0.1


def test_the_listener_of_a_silent_speaker_stays():
    sim = started(SPEAKER, 8)
    sim.set_opponent("agent_1", "default")
    sim.states["said"] = 0.0
    sim.step(None)  # the speaker's word is heard from the next decision on
    assert not sim.states["velocity_mps"].any()
