"""PyMARL's interface of one team: sizes, actions, masks of the dead, ends, and the same matches as the other faces."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import palaestra
from palaestra import registry
from palaestra.adapters import epymarl
from palaestra.adapters.pymarl import TeamMultiAgentEnv
from palaestra.core.contract.actions import ActionError
from palaestra.replay import load, verify

pytestmark = pytest.mark.check

PONG, ARENA, TAG = "palaestra/TeamPong-v0", "palaestra/ArenaDuel2v2-v0", "palaestra/TeamTag-v0"
UNLIKE = "palaestra/SpeakerListener-v0"
MASKED = "test/MaskedPair-v0"
palaestra.register(MASKED, "games.duel:game", players=2, family="test")


def choose(env: TeamMultiAgentEnv, rng: np.random.Generator) -> list[int]:
    """Random actions among those that are offered."""
    return [int(rng.choice(np.flatnonzero(offered))) for offered in env.get_avail_actions()]


@pytest.mark.parametrize("id", [PONG, ARENA, UNLIKE, MASKED])
def test_everything_has_the_sizes_that_the_info_names(id):
    env = TeamMultiAgentEnv(id, seed=1, compiled=id != MASKED)
    info = env.get_env_info()
    observations, state = env.reset()
    assert len(observations) == info["n_agents"]
    assert all(seen.shape == (info["obs_shape"],) and seen.dtype == np.float32 for seen in observations)
    assert state.shape == (info["state_shape"],)
    assert np.array(env.get_avail_actions()).shape == (info["n_agents"], info["n_actions"])
    assert np.array_equal(env.get_obs_agent(1), env.get_obs()[1])
    env.close()


def test_wrong_seeds_and_options_are_refused():
    env = TeamMultiAgentEnv(PONG, compiled=False)
    wrong_seeds: list[Any] = [1.5, -1, True]
    for wrong in wrong_seeds:
        with pytest.raises(ValueError, match="seed must be an integer"):
            TeamMultiAgentEnv(PONG, compiled=False, seed=wrong)
        with pytest.raises(ValueError, match="seed must be an integer"):
            env.reset(wrong)
    with pytest.raises(ValueError, match="reset: unknown option 'side'; known here: none"):
        env.reset(1, {"side": "red"})
    with pytest.raises(TypeError, match="mask= is for other faces"):
        TeamMultiAgentEnv(PONG, mask="obs")


def test_several_choices_of_an_agent_are_one_discrete_number_that_counts_the_first_choice_most():
    env, joint = TeamMultiAgentEnv(ARENA), gymnasium.make(ARENA)
    assert env.get_total_actions() == 2 * 4
    env.reset(seed=5)
    joint.reset(seed=5)
    reward, *_ = env.step([4 * 1 + 2, 3])
    seen, expected, *_ = joint.step(np.array([1, 2, 0, 3]))
    assert reward == expected
    assert np.array_equal(np.concatenate(env.get_obs()), seen)


def test_unlike_members_are_padded_to_the_largest():
    env = TeamMultiAgentEnv(UNLIKE)
    env.reset(seed=0)
    tuples: Any = gymnasium.make(epymarl.register_tuple(UNLIKE))
    sizes = [space.shape[0] for space in tuples.observation_space]
    small = int(np.argmin(sizes))
    assert sizes[small] < env.get_obs_size()
    assert not env.get_obs_agent(small)[sizes[small] :].any()
    speaker = [space.n for space in tuples.action_space].index(3)
    assert env.get_avail_agent_actions(speaker) == [1, 1, 1, 0, 0]
    with pytest.raises(ActionError, match="is not one of 0 to 2"):
        env.step([4, 4])


@pytest.mark.parametrize(("control", "opponent"), [("red", "tracker"), ("blue", "chaser")])
def test_a_match_is_that_of_gymnasiums_face(control, opponent):
    env = TeamMultiAgentEnv(PONG, control=control, opponent=opponent)
    face = gymnasium.make(PONG, control=control, opponent=opponent)
    env.reset(seed=3)
    face.reset(seed=3)
    rng = np.random.default_rng(0)
    for _ in range(500):
        actions = choose(env, rng)
        reward, terminated, info = env.step(actions)
        seen, expected, ends, cut, _ = face.step(np.array(actions))
        assert (reward, terminated) == (expected, ends or cut)
        assert np.array_equal(np.concatenate(env.get_obs()), seen)
        assert info["battle_won"] == (reward == 1.0)
        if terminated:
            break
    else:
        pytest.fail("the match did not end")


def test_a_dead_member_is_offered_the_first_action_alone_and_what_it_sends_is_ignored():
    env, rng = TeamMultiAgentEnv(ARENA, seed=0), np.random.default_rng(1)
    for _ in range(30):
        env.reset()
        terminated = False
        while not terminated:
            dead = np.flatnonzero(~env.sim.alive[0, :2])
            if dead.size:
                assert env.get_avail_agent_actions(dead[0]) == [1] + [0] * 7
                actions = choose(env, rng)
                actions[dead[0]] = 10**6
                assert len(env.step(actions)) == 3
                return
            _, terminated, _ = env.step(choose(env, rng))
    pytest.fail("nobody died")


def test_forbidden_actions_are_not_offered():
    env = TeamMultiAgentEnv(MASKED, seed=0, compiled=False)
    env.reset()
    seen = set()
    for _ in range(40):
        in_midfield = env.get_obs_agent(0)[0] == 1
        offered = env.get_avail_actions()
        assert offered == [[1, 1, int(in_midfield)]] * 2
        seen.add(in_midfield)
        if env.step([0, 1])[1]:
            env.reset()
    assert seen == {True, False}


def test_a_match_that_is_cut_off_terminates_for_pymarl_and_is_truncated_for_epymarl():
    three = TeamMultiAgentEnv(PONG, time_limit=3, seed=0)
    five = TeamMultiAgentEnv(PONG, time_limit=3, seed=0, api="epymarl")
    assert three.episode_limit == three.get_env_info()["episode_limit"] == 3
    first, state = three.reset()
    again, info = five.reset()
    assert np.array_equal(first, again)
    assert np.array_equal(state, five.get_state())
    assert info == {}
    for t in range(3):
        reward, terminated, info = three.step([0, 0])
        observations, same_reward, ends, cut, same_info = five.step([0, 0])
        assert (terminated, info["episode_limit"]) == (t == 2, t == 2)
        assert (ends, cut) == (False, t == 2)
        assert (reward, info) == (same_reward, same_info)
        assert np.array_equal(observations, three.get_obs())
    assert three.get_stats() == {"battles_game": 1, "battles_won": 0, "timeouts": 1, "win_rate": 0.0}


def test_stats_count_the_matches_that_the_controlled_team_won():
    env, rng = TeamMultiAgentEnv(PONG, seed=0, opponent="chaser"), np.random.default_rng(0)
    won = []
    while len(won) < 2 or len(set(won)) < 2:
        env.reset()
        terminated, reward, info = False, 0.0, {}
        while not terminated:
            reward, terminated, info = env.step(choose(env, rng))
        assert info["battle_won"] == (reward > 0)
        won.append(info["battle_won"])
        assert len(won) < 200
    stats = env.get_stats()
    assert (stats["battles_game"], stats["battles_won"]) == (len(won), sum(won))
    assert stats["win_rate"] == sum(won) / len(won)


def test_the_reward_is_the_teams_or_one_a_member():
    common, each = TeamMultiAgentEnv(UNLIKE, seed=2), TeamMultiAgentEnv(UNLIKE, seed=2, common_reward=False)
    common.reset()
    each.reset()
    for _ in range(3):
        reward, own = common.step([1, 2])[0], each.step([1, 2])[0]
        assert own == [reward, reward]
        assert reward != 0


def test_a_seed_is_for_the_next_match_and_later_ones_go_on_from_it():
    env, other = TeamMultiAgentEnv(TAG, seed=7), TeamMultiAgentEnv(TAG)
    assert env.seed() == 7
    first, *_ = env.reset()
    assert other.seed(7) == 7
    assert np.array_equal(first, other.reset()[0])
    second, *_ = env.reset()
    assert not np.array_equal(first, second)
    assert np.array_equal(second, other.reset()[0])


def test_a_saved_replay_is_the_match(tmp_path):
    env, rng = TeamMultiAgentEnv(TAG, seed=4, replay_folder=tmp_path), np.random.default_rng(0)
    for _ in range(2):
        env.reset()
        terminated = False
        while not terminated:
            _, terminated, _ = env.step(choose(env, rng))
    replay = load(env.save_replay())
    assert replay.steps == env.episode_limit
    assert verify(replay).ok
    with pytest.raises(RuntimeError, match="replay_folder"):
        TeamMultiAgentEnv(TAG).save_replay()


@pytest.mark.parametrize(
    ("keywords", "error", "words"),
    [
        ({"api": "smac"}, ValueError, "pymarl"),
        ({"reward_scalarisation": "max"}, ValueError, "mean"),
        ({"mask": "obs"}, TypeError, "mask="),
        ({"oponent": "tracker"}, TypeError, "opponent"),
        ({"key": "palaestra/Spread-v0", "actions": "continuous", "compiled": False}, ValueError, "real-valued"),
    ],
)
def test_what_cannot_be_is_refused_by_name(keywords, error, words):
    with pytest.raises(error, match=words):
        TeamMultiAgentEnv(**{"key": PONG, **keywords})


def test_an_action_a_member_is_asked_for():
    env = TeamMultiAgentEnv(PONG)
    env.reset()
    with pytest.raises(ActionError, match="2 members need 2 actions, got 3"):
        env.step([0, 0, 0])
    with pytest.raises(ActionError, match="red_1: action -1"):
        env.step([0, -1])
    with pytest.raises(ActionError, match=r"whole numbers, got 1\.7"):
        env.step([0, 1.7])


def test_an_id_with_tuple_spaces_plays_the_same_match():
    env: Any = gymnasium.make("palaestra.adapters.epymarl:palaestra/TeamPong-tuple-v0", opponent="chaser")
    team = TeamMultiAgentEnv(PONG, api="epymarl", opponent="chaser")
    assert env.unwrapped.n_agents == len(env.observation_space) == len(env.action_space) == 2
    assert all(isinstance(space, gymnasium.spaces.Discrete) for space in env.action_space)
    seen, _ = env.reset(seed=6)
    assert np.array_equal(seen, team.reset(6)[0])
    for _ in range(50):
        actions = env.action_space.sample()
        seen, rewards, terminated, truncated, info = env.step(actions)
        observations, reward, ends, cut, same_info = team.step(actions)
        assert env.observation_space.contains(seen)
        assert np.array_equal(seen, observations)
        assert rewards == [reward, reward]
        assert (terminated, truncated, info) == (ends, cut, same_info)
        assert all(isinstance(value, bool | int | float) for value in info.values())
        if terminated or truncated:
            return


def test_tuple_ids_are_gymnasiums_alone():
    ours = set(registry.ROWS)
    assert epymarl.register_tuple(MASKED) == "test/MaskedPair-tuple-v0"
    assert set(registry.ROWS) == ours
    assert gymnasium.make("test/MaskedPair-tuple-v0", compiled=False).unwrapped.spec is not None
    with pytest.raises(KeyError, match="Did you mean 'palaestra/TeamPong-v0'"):
        epymarl.register_tuple("palaestra/TemPong-v0")
