"""Wrappers around games of many sizes, lists of candidates, and games that show representations."""

from __future__ import annotations

import pytest
from games import body_game, size_game  # noqa: F401 (they register their ids)

import palaestra
from palaestra.testing.players import RememberingPlayer
from palaestra.wrappers import SelfPlayPool, SwapSides

COURIERS, BODY = "tests/Couriers-v0", "tests/Body-v0"


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
