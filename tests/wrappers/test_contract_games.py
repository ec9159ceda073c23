"""Wrappers around games of many sizes, lists of candidates, own rewards, and games that show representations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games import body_game, size_game  # noqa: F401 (they register their ids)
from pettingzoo.test import parallel_api_test

import palaestra
from palaestra import registry
from palaestra.testing.players import RememberingPlayer
from palaestra.wrappers import CheckZeroSum, SelfPlayPool, SingleTeam, SwapSides, TeamAsAgent, ZeroSumError

COURIERS, BODY = "tests/Couriers-v0", "tests/Body-v0"


def parallel(id: str, **keywords: Any) -> Any:
    return registry.make_parallel(id, **{"horizon": 12, **keywords})


@pytest.mark.check
@pytest.mark.parametrize("mask", ["obs", "info"])
@pytest.mark.parametrize("observation", ["dict", "nearest"])
def test_a_team_observes_the_lists_of_its_members(mask: str, observation: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # a few decisions, and a representation with a kernel of its own
    env = TeamAsAgent(parallel(COURIERS, mask=mask, observation=observation))
    parallel_api_test(env, num_cycles=20)
    seen, infos = env.reset(seed=1)
    assert env.observation_space("red").contains(seen["red"])
    source = seen["red"] if mask == "obs" else infos["red"]["agents"]
    assert source["red_0"]["candidates"]["parcel"].dtype == np.int32
    assert env.joints["red"].listed == (mask == "obs")
    assert not env.joints["red"].masked


def test_a_learner_plays_against_a_policy_that_reads_the_lists():
    def nearest(seen: dict[str, Any]) -> np.ndarray:
        rows = [[own["candidates"]["parcel"][1], 1] for own in seen.values()]
        return np.maximum(np.array(rows), 0).reshape(-1)

    env = SingleTeam(parallel(COURIERS, horizon=100), opponent=nearest)
    env.reset(seed=0)
    stay, over = np.zeros(env.action_space.shape or 1, np.int64), False
    total, info = 0.0, {}
    while not over:
        _, reward, terminated, truncated, info = env.step(stay)
        total, over = total + reward, terminated or truncated
    assert total < 0.0
    assert info["winner"] == 1
    with pytest.raises(AttributeError, match=r"no attribute 'action_masks': .* lists of candidates"):
        env.action_masks()


def test_lists_cannot_be_sampled():
    with pytest.raises(ValueError, match=r'blue observes lists of "candidates", .* give opponent='):
        SingleTeam(parallel(COURIERS))


def test_own_rewards_are_added_up_when_that_is_said():
    with pytest.raises(ValueError, match=r'different rewards.*TeamAsAgent\(env, reward="sum"\)'):
        step(TeamAsAgent(parallel(BODY)))
    env = TeamAsAgent(parallel(BODY), reward="sum")
    rewards, plain = step(env)[1], step(parallel(BODY))[1]
    assert rewards == {"puck": pytest.approx(sum(plain.values()), abs=1e-12)}


def test_own_rewards_are_no_zero_sum():
    with pytest.raises(ZeroSumError, match="the members of puck do not share one reward: puck_0 -0"):
        step(CheckZeroSum(parallel(BODY)))


@pytest.mark.parametrize("opponents", [{}, {"red": "nearest"}])
def test_zero_sum_rewards_of_both_teams_are_checked_and_those_of_a_single_team_are_not(opponents: dict[str, str]):
    env = CheckZeroSum(parallel(COURIERS, opponents=opponents))
    env.reset(seed=2)
    paid = 0.0
    while env.agents:
        _, rewards, *_ = env.step({a: np.ones(2, np.int64) for a in env.agents})
        paid += abs(rewards["blue_0"])
    assert paid > 0.0


def step(env: Any) -> Any:
    env.reset(seed=4)
    space = env.action_space(env.agents[0])
    return env.step({a: np.zeros(env.action_space(a).shape, space.dtype) for a in env.agents})


@pytest.mark.check
@pytest.mark.parametrize("observation", ["flat", "dict", "nearest", "nearest:dict"])
def test_sides_are_swapped_in_every_representation(observation: str):
    env = SwapSides(COURIERS, observation=observation, mask="obs")
    for seed, side in ((0, "red"), (None, "blue")):
        seen, info = env.reset(seed=seed)
        assert info["side"] == side
        assert env.observation_space.contains(seen)
        assert env.action_masks().shape == (3 * 15,)
        env.step(env.action_space.sample())


def test_sides_are_no_sides_of_a_parallel_env():
    with pytest.raises(TypeError, match="fixed_agents= is for PettingZoo's ParallelEnv"):
        SwapSides(COURIERS, fixed_agents=True)


@pytest.mark.parametrize("id", [COURIERS, BODY])
def test_a_pool_plays_them(id: str):
    sim = palaestra.make_batch(id, 4, horizon=5, observation="dict")
    team = list(sim.game.teams)[-1]
    pool = SelfPlayPool(id, team, [RememberingPlayer(sim, team) for _ in range(2)], observation="dict")
    sim.set_opponent(team, pool)
    sim.reset(seed=0)
    for _ in range(13):
        sim.step()
        pool.watch(sim)
    assert pool.matches.sum() == 8
    assert set(pool.members_of(sim)) <= {0, 1}
