"""Rewards by agent, of any precision, and the reward of a team."""

from typing import Any

import numpy as np
import pytest
from games import orchard, size_game
from games.orchard import started
from games.play import idle_actions, simulation

from palaestra.core.run.arrays import summed

pytestmark = pytest.mark.jitless


def paid(sim: Any) -> Any:
    actions = idle_actions(sim)
    actions["picker"][:] = [1, 2, 0]
    actions["carrier"]["loads"][:, 0, 0] = 103
    sim.step(actions)
    return sim


def test_agents_may_be_paid_unequally_and_a_team_has_the_sum():
    sim = paid(started(2))
    expected = np.array([1, 2, 0, 103, 0]) / 3
    np.testing.assert_array_equal(sim.rewards, [expected] * 2)
    np.testing.assert_array_equal(sim.team_rewards("red"), [expected[0] + expected[2] + expected[4]] * 2)
    np.testing.assert_array_equal(sim.team_rewards("blue"), [expected[1] + expected[3]] * 2)


@pytest.mark.check
def test_members_of_a_team_that_is_paid_together_have_its_common_value():
    sim = simulation(size_game.game(agents=5, parcels=7), 3, opponents=dict.fromkeys(("red", "blue"), "nearest"))
    sim.reset(seed=1)
    paid_once = False
    for _ in range(40):
        sim.step()
        np.testing.assert_array_equal(sim.team_rewards("red"), sim.rewards[:, 0])
        np.testing.assert_array_equal(sim.team_rewards("red"), -sim.team_rewards("blue"))
        paid_once |= bool(sim.rewards.any())
    assert paid_once


def test_double_precision_reaches_users():
    sim = paid(started(1))
    assert sim.rewards.dtype == sim.team_rewards("red").dtype == np.float64
    assert float(sim.rewards[0, 0]) == 1 / 3
    assert float(sim.rewards[0, 3]) == 103 / 3


def test_single_precision_rounds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    sim = paid(started(1, orchard.game(reward_dtype="f4")))
    assert sim.rewards.dtype == sim.team_rewards("red").dtype == np.float32
    assert sim.rewards[0, 0] == np.float32(1 / 3)


def test_rewards_of_ones_own_are_no_zero_sum():
    with pytest.raises(ValueError, match='zero_sum is a promise about team rewards: it needs reward="team"'):
        orchard.game(zero_sum=True)


@pytest.mark.check
def test_one_thread_or_two_pay_the_same():
    sim, twin = paid(started(4, threads=2)), paid(started(4))
    np.testing.assert_array_equal(sim.rewards, twin.rewards)
    sim.close()


def test_an_agent_that_left_is_paid_for_that_decision_and_no_longer():
    sim = paid(started(1, parameters={"leaver": 1}))
    assert sim.rewards[0, 1] == 2 / 3
    assert sim.agent_terminated[0].tolist() == [False, True, False, False, False]
    paid(sim)
    assert sim.rewards[0, 1] == 0.0


def test_the_sum_of_a_large_team_does_not_depend_on_the_number_of_lanes():
    rewards = np.random.default_rng(0).normal(size=(64, 162)).astype(np.float32)
    one_by_one = np.concatenate([summed(rewards[k : k + 1]) for k in range(64)])
    np.testing.assert_array_equal(one_by_one, summed(rewards))
    np.testing.assert_array_equal(one_by_one, summed(np.asfortranarray(rewards)))
