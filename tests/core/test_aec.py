"""PettingZoo's AEC face asks the agents whose action counts, one after the other, and adds their rewards up."""

from typing import Any

import numpy as np
import pettingzoo
import pytest
from games import two_team, two_team_homogeneous
from games.play import simulation
from pettingzoo.test import api_test

from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.game import Choice, Field, Game, Role
from palaestra.zoo import grid_soccer_v0, team_matrix_v0


def reset(s, world):
    for a in range(3):
        s.acting[a] = a == 0


def step(s, world, actions, rewards, scratch):
    """Asks a_0, nobody, b_0, a_0, ...; pays a_0 1 and b_0 -1 a decision; b_1 waits all the time and leaves at 4."""
    s.word = 10 * s.word + actions.player[0].move + 2 * actions.player[1].move
    for a in range(3):
        rewards[a] = 1.0 if a == 0 else -1.0
    turn = s.steps % 3
    s.acting[0], s.acting[1] = turn == 0, turn == 2
    s.alive[2] = s.steps < 4
    return s.steps >= 8


def observe(s, world, observations, scratch):
    for a in range(3):
        observations.player[a].time = s.steps


TURNS = Game(
    name="Turns",
    roles=(Role("player", ("a_0", "b_0", "b_1"), (Field("time", (), 0, 9),), (Choice("move", 2),)),),
    state=[("word", "i8")],
    reset=reset,
    step=step,
    observe=observe,
)


def one_after_the_other(game: Game, **options: Any) -> GameAECEnv:
    return GameAECEnv(GameParallelEnv(simulation(game, 1, compiled=False, autoreset_mode="off"), **options))


def test_only_agents_whose_action_counts_are_asked():
    env = one_after_the_other(TURNS)
    env.reset(seed=1)
    told = []
    for agent in env.agent_iter():
        _, reward, terminated, truncated, info = env.last()
        told.append((agent, env.env.sim.states["steps"].item(), reward, terminated))
        assert info["acting"] or terminated
        env.step(None if terminated or truncated else 1)
    assert told == [
        ("a_0", 0, 0.0, False),
        ("b_0", 2, -2.0, False),
        ("a_0", 3, 3.0, False),
        ("b_1", 4, -4.0, True),  # it leaves, though nobody is asked now
        ("b_0", 5, -3.0, False),
        ("a_0", 6, 3.0, False),
        ("a_0", 8, 2.0, True),
        ("b_0", 8, -3.0, True),
    ]
    assert env.env.sim.states["word"].item() == 10210210
    assert env.agents == []


def test_where_everybody_acts_all_are_asked_in_every_decision():
    env = team_matrix_v0.env()
    parallel = team_matrix_v0.parallel_env()
    env.reset(seed=3)
    seen, _ = parallel.reset(seed=3)
    rng = np.random.default_rng(0)
    assert env.metadata["is_parallelizable"]
    while parallel.agents:
        actions = {agent: int(rng.integers(parallel.action_space(agent).n)) for agent in parallel.agents}
        for agent, action in actions.items():
            assert env.agent_selection == agent
            np.testing.assert_array_equal(env.last()[0], seen[agent])
            env.step(action)
        seen, rewards, ends, cuts, infos = parallel.step(actions)
        assert (env.rewards, env.terminations, env.truncations, env.infos) == (rewards, ends, cuts, infos)


@pytest.mark.check
def test_a_game_in_turns_asks_one_team_at_a_time():
    env = grid_soccer_v0.env(order="alternating")
    env.reset(seed=1)
    asked = []
    for agent in env.agent_iter(8):
        asked.append(agent)
        env.step(env.action_space(agent).sample() if not any(env.last()[2:4]) else None)
    first = asked[0]
    assert all(agent == first for agent in asked[::2])
    assert first not in asked[1::2]
    assert not env.metadata["is_parallelizable"]


def test_a_refused_action_asks_the_first_agent_of_the_decision_again():
    env = one_after_the_other(two_team_homogeneous.game())
    env.reset(seed=1)
    first = env.agent_selection
    good = np.zeros(2)
    env.step(good)
    assert env.agent_selection != first
    for _ in range(8):
        env.step(good)
    with pytest.raises(ActionError):
        env.step(np.full(2, np.nan))
    assert env.agent_selection == first
    assert env.env.sim.states["steps"].item() == 0


@pytest.mark.filterwarnings("ignore")
def test_pettingzoo_tests_a_game_in_turns():
    api_test(one_after_the_other(TURNS), num_cycles=20)
    api_test(one_after_the_other(two_team.game(), mask=None, observation="dict"), num_cycles=60)


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="this PettingZoo has no registry")
def test_pettingzoo_makes_both_kinds_by_id():
    for api, kind in (("aec", GameAECEnv), ("parallel", GameParallelEnv)):
        made: Any = pettingzoo.make(api, "palaestra/TeamMatrix-v0")  # pyright: ignore[reportCallIssue,reportArgumentType]
        while not isinstance(made, kind):
            made = made.env
        assert made.possible_agents[0] == "red_0"
