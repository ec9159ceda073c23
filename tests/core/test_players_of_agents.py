"""Python players of single agents: each sees what its team sees, and moves its own agents."""

import copy
from typing import Any

import numpy as np
import pytest
from games import two_team, two_team_homogeneous
from games.play import all_bytes, idle_actions, simulation

from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv

pytestmark = pytest.mark.jitless

RAID, MELEE = two_team.game(), two_team_homogeneous.game()


def started(n: int) -> Any:
    sim = simulation(MELEE, n)
    sim.reset(seed=1)
    return sim


class Counter:
    """Thrusts by the number of decisions it remembers, and keeps what it was shown."""

    memory_size = 2

    def __init__(self, scale: float = 0.01) -> None:
        self.scale = scale
        self.calls: list[dict] = []

    def act(self, observations, legal, acting, first, seeds, memory):
        self.calls.append({"observations": observations, "acting": acting})
        memory[:, 0] += 1
        return np.broadcast_to((self.scale * memory[:, 0])[:, None, None], (len(memory), 5, 2))


def test_one_agent_can_be_given_to_a_python_player():
    sim, player = started(3), Counter()
    sim.set_opponent("red_1", player, lanes=[0, 2])
    assert sim.open_slots("red") == (0, 1, 2, 3, 4)
    given, shown = idle_actions(sim) + 0.5, sim.observations[[0, 2], :5].copy()
    sim.step(given)
    assert sim.actions[:, :5, 0].tolist() == [[0.5, 0.01, 0.5, 0.5, 0.5], [0.5] * 5, [0.5, 0.01, 0.5, 0.5, 0.5]]
    (call,) = player.calls
    np.testing.assert_array_equal(call["observations"], shown)  # what the whole team sees
    assert call["acting"].tolist() == [[False, True, False, False, False]] * 2
    sim.set_opponent("red_1", player, lanes=[1])
    assert sim.open_slots("red") == (0, 2, 3, 4)


def test_two_agents_of_a_team_may_have_different_players_and_a_word_for_the_team_ends_both():
    sim, first, second = started(2), Counter(0.1), Counter(0.2)
    sim.set_opponent("red", "chaser")
    sim.set_opponent("red_0", first)
    sim.set_opponent("red_3", second)
    assert sim.open_slots("red") == ()
    sim.step()
    assert sim.actions[:, [0, 3], 0].tolist() == [[0.1, 0.2]] * 2
    assert not np.isin(sim.actions[:, [1, 2, 4]], [0.1, 0.2]).any()
    sim.set_opponent("red", None)
    sim.step(idle_actions(sim))
    assert not sim.actions[:, :5].any()
    assert (sim.opponent_assignments, sim.open_slots("red")) == ({}, (0, 1, 2, 3, 4))
    assert len(first.calls) == len(second.calls) == 1


def test_one_player_of_several_agents_is_asked_once_and_remembers_once():
    sim, player = started(2), Counter()
    for agent in ("red_1", "red_4"):
        sim.set_opponent(agent, player)
    for _ in range(3):
        sim.step(idle_actions(sim))
    assert len(player.calls) == 3
    assert player.calls[0]["acting"].tolist() == [[False, True, False, False, True]] * 2
    assert sim.actions[0, :5, 0].tolist() == [0, 0.03, 0, 0, 0.03]
    sim.set_opponent("red_1", None)
    sim.step(idle_actions(sim))
    assert sim.actions[0, :5, 0].tolist() == [0, 0, 0, 0, 0.04]


def test_an_agent_leaves_the_player_of_its_team_for_another_one_and_comes_back():
    sim, whole, own = started(2), Counter(), Counter(0.5)
    sim.set_opponent("red", whole)
    sim.set_opponent("red_0", own, lanes=[1])
    sim.step()
    assert sim.actions[:, 0, 0].tolist() == [0.01, 0.5]
    assert (sim.actions[:, 1:5] == 0.01).all()
    assert whole.calls[0]["acting"].tolist() == [[True] * 5, [False, True, True, True, True]]
    sim.set_opponent("red_0", None)
    sim.step()
    assert (sim.actions[:, :5] == 0.02).all()
    assert list(sim.opponent_assignments["red"]) == [sim.opponent_assignments["red"][0]]


def test_one_agent_of_a_team_of_several_roles_can_have_a_python_player():
    def act(observations):
        assert observations["scout"].shape[:2] == (2, 2)
        n = len(observations["scout"])
        guard = {"move": np.full((n, 1), 2), "trigger": np.zeros((n, 1), int), "effort": np.full((n, 1), 0.7)}
        return {"scout": np.tile([1, 3], (n, 1)), "guard": guard}

    sim: Any = simulation(RAID, 2)
    sim.set_opponent("red_1", act)
    sim.reset(seed=1)
    sim.step(idle_actions(sim))
    assert sim.actions["scout"][:, :2].tolist() == [[0, 0]] * 2, "it has not arrived: its choice is a no-op"
    sim.states["alive"][:, 1] = sim.states["acting"][:, 1] = 1
    sim.write_team_actions("red", act({"scout": np.zeros((2, 2, 5))}), agents=np.array([[0, 1, 0], [0, 0, 1]], bool))
    assert sim.actions["scout"][:, :2].tolist() == [[0, 3], [0, 0]]
    assert sim.actions["guard"]["move"][:, 0].tolist() == [0, 2]
    assert sim.actions["guard"]["effort"][1, 0] == 0.7


def test_snapshots_and_copies_keep_what_players_of_single_agents_remember():
    sim = started(2)
    sim.set_opponent("red_1", Counter(0.01))
    sim.set_opponent("red_2", Counter(0.1))
    sim.step(idle_actions(sim))
    saved, twin = sim.snapshot(), copy.deepcopy(sim)
    assert saved.memories["red"].tolist() == [[1, 0, 1, 0]] * 2
    for each in (sim, twin):
        each.step(idle_actions(each))
        assert each.actions[0, :5, 0].tolist() == [0, 0.02, 0.2, 0, 0]
    sim.restore(saved)
    sim.step(idle_actions(sim))
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))


def test_a_refused_player_of_one_agent_leaves_all_as_it_was():
    sim, player = started(2), Counter()
    sim.set_opponent("red_1", player)
    for spec in (3, "nobody"):
        with pytest.raises((TypeError, ValueError)):
            sim.set_opponent("red_1", spec)
    sim.step(idle_actions(sim))
    assert sim.actions[0, :5, 0].tolist() == [0, 0.01, 0, 0, 0]


def test_the_faces_leave_out_agents_that_a_python_player_plays():
    make = lambda n: simulation(MELEE, n, autoreset_mode="off", opponents={"red_4": Counter(), "blue": "chaser"})  # noqa: E731
    assert GameEnv(make(1)).action_space.shape == (8,)
    assert GameVectorEnv(make(2)).single_action_space.shape == (8,)
    assert GameParallelEnv(make(1)).possible_agents == ["red_0", "red_1", "red_2", "red_3"]
