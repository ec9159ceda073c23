"""PyMARL's interface of the battles of Skirmish: every id, its masks, its sizes, late agents, the limit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games.play import by_tier

from palaestra import registry
from palaestra.adapters.pymarl import TeamMultiAgentEnv
from palaestra.games.skirmish import maps

pytestmark = pytest.mark.check

IDS = [row.id for row in registry.ROWS.values() if row.family == "skirmish" and row.id.startswith("palaestra/")]
THREE, LATE, DUEL = "palaestra/Skirmish-3m-v0", "palaestra/SkirmishUnshaped-Late-v0", "palaestra/SkirmishDuel-v0"
NOTHING, STOP = 0, 1
SMAC_SIZES = {
    "3m": (30, 48, 9),
    "8m": (80, 168, 14),
    "2s3z": (80, 120, 11),
    "MMM": (160, 290, 16),
    "2c_vs_64zg": (332, 342, 70),
    "corridor": (156, 282, 30),
}
"""What get_obs_size, get_state_size and get_total_actions of SMAC return (tests/skirmish/test_smac_view.py)."""


def play(id: str, **keywords: Any) -> TeamMultiAgentEnv:
    """A match whose rules run as plain Python: what no other test needs is not compiled for a few decisions."""
    return TeamMultiAgentEnv(id, compiled=False, **keywords)


def choose(env: TeamMultiAgentEnv, rng: np.random.Generator) -> list[int]:
    """Random actions among those that are offered."""
    return [int(rng.choice(np.flatnonzero(offered))) for offered in env.get_avail_actions()]


@pytest.mark.parametrize("id", by_tier(IDS))
def test_every_id_plays_with_masks_and_the_sizes_that_it_names(id: str):
    env, rng = TeamMultiAgentEnv(id, seed=1), np.random.default_rng(0)
    info = env.get_env_info()
    observations, state = env.reset()
    for _ in range(2):
        assert np.array(observations).shape == (info["n_agents"], info["obs_shape"])
        assert state.shape == (info["state_shape"],)
        offered = np.array(env.get_avail_actions())
        assert offered.shape == (info["n_agents"], info["n_actions"])
        alive = env.sim.alive[0, : info["n_agents"]]
        assert np.array_equal(offered[:, NOTHING] == 0, alive)
        assert np.array_equal(offered[:, STOP] == 1, alive)
        _, terminated, _ = env.step(choose(env, rng))
        assert not terminated
        observations, state = env.get_obs(), env.get_state()
    assert not env.sim.info["illegal"].any()
    env.close()


@pytest.mark.parametrize("map", SMAC_SIZES)
def test_as_smac_shows_it_the_sizes_are_those_of_smac(map: str):
    env = play(f"palaestra/Skirmish-{map}-v0", observation="smac")
    assert (env.get_obs_size(), env.get_state_size(), env.get_total_actions()) == SMAC_SIZES[map]
    assert env.episode_limit == maps.load(map).limit


def test_an_agent_that_comes_late_is_offered_nothing_before_and_orders_after():
    env = TeamMultiAgentEnv(LATE, seed=3, opponent="hold")
    env.reset()
    late = np.flatnonzero(~env.sim.alive[0, : env.n_agents]).tolist()
    assert len(late) == 4
    actions = {True: STOP, False: NOTHING}
    for _ in range(40):
        alive = env.sim.alive[0, : env.n_agents].tolist()
        for k in late:
            assert (env.get_avail_agent_actions(k)[STOP], env.get_obs_agent(k).any()) == (alive[k], alive[k])
        env.step([actions[a] for a in alive])
    assert env.sim.alive[0, late].all()


def test_the_limit_terminates_without_a_victory():
    env = play(THREE, time_limit=2, opponent="hold")
    env.reset(seed=0)
    assert env.step([STOP] * 3)[1] is False
    reward, terminated, info = env.step([STOP] * 3)
    assert (reward, terminated, info["episode_limit"], info["battle_won"]) == (0.0, True, True, False)


@pytest.mark.parametrize("control", ["red", "blue"])
def test_either_team_of_a_duel_is_played(control: str):
    env, rng = play(DUEL, control=control, seed=2), np.random.default_rng(0)
    env.reset()
    assert env.agents == [f"{control}_{k}" for k in range(3)]
    env.step(choose(env, rng))
    assert not env.sim.info["illegal"].any()
