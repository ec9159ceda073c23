"""A step of some lanes: each lane plays its own match at its own pace, and the others do not move."""

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from games import body_game, logged_pucks, orchard
from games.play import all_bytes, idle_actions, leaves, random_actions, seen_bytes, simulation

import palaestra
from palaestra.core.contract.actions import ActionError
from palaestra.replay import Recorder, frames, verify

pytestmark = pytest.mark.check

N, DECISIONS = 5, 24
GAMES = {"orchard": orchard.game(), "engine": body_game.game(), "logged": logged_pucks.game()}
HORIZONS = [3, 9, 4, 30, 7]
SOME = np.array([True, False, True, False, False])


def started(name: str, mode: Any = "next_step", **options: Any) -> Any:
    sim = simulation(GAMES[name], N, autoreset_mode=mode, parameters={"horizon": HORIZONS}, **options)
    sim.reset(seed=3)
    return sim


@pytest.mark.jitless
@pytest.mark.parametrize(
    ("name", "mode", "threads"),
    [("orchard", "next_step", 2), ("orchard", "same_step", 1), ("engine", "same_step", 1), ("logged", "next_step", 1)],
)
def test_a_lane_plays_at_its_own_pace_what_it_plays_with_the_others(name: str, mode: str, threads: int):
    whole, some = started(name, mode), started(name, mode, threads=threads)
    rng = np.random.default_rng(0)
    decisions = [random_actions(whole, rng) for _ in range(DECISIONS)]
    history = []
    for actions in decisions:
        whole.step(actions)
        history.append(all_bytes(whole))
    done, given = np.zeros(N, int), copy.deepcopy(decisions[0])
    while (done < DECISIONS).any():
        moves = (rng.random(N) < 0.5) & (done < DECISIONS)
        for lane in np.flatnonzero(moves):
            for mine, its in zip(leaves(given), leaves(decisions[done[lane]]), strict=True):
                mine[lane] = its[lane]
        for array in (some.rewards, some.agent_terminated, some.terminated, some.truncated):
            array[~moves] = 0
        before = all_bytes(some)
        some.step(given, moves)
        done += moves
        now = all_bytes(some)
        assert (now[~moves] == before[~moves]).all()
        for lane in np.flatnonzero(moves):
            assert (now[lane] == history[done[lane] - 1][lane]).all()
    some.close()
    whole.close()


@pytest.mark.jitless
@pytest.mark.parametrize("name", ["orchard", "engine"])
def test_a_match_that_waits_for_a_reset_stays_ended(name: str):
    sim = started(name, "off")
    for _ in range(3):
        sim.step(idle_actions(sim))
    assert sim.truncated.tolist() == [True, False, False, False, False]
    sim.rewards[...] = 5.0
    sim.step(idle_actions(sim), ~SOME)
    assert sim.truncated.tolist() == [True, False, False, False, False]
    assert not sim.rewards[SOME].any()
    sim.reset(sim.truncated)
    assert not sim.truncated.any()


@pytest.mark.jitless
def test_the_action_of_a_lane_that_is_left_out_is_not_looked_at():
    sim = palaestra.make_batch("palaestra/CartPole-v0", N)
    sim.reset(seed=0)
    sim.step(np.where(SOME, 1, 99)[:, None], SOME)
    assert (sim.states["steps"] == SOME).all()
    with pytest.raises(ActionError, match="lane 2"):
        sim.step(np.where(SOME, 99, 1)[:, None], np.array([False, True, True, True, False]))
    assert (sim.states["steps"] == SOME).all()
    with pytest.raises(ValueError, match=r"mask must be bool of shape \(5,\)"):
        sim.step(lanes=np.array([0, 2]))


def test_a_python_opponent_is_asked_for_the_lanes_that_move():
    asked: list[list[int]] = []

    class Watcher:
        memory_size = kept_size = 1

        def act(self, observations, legal, acting, first, seeds, memory):
            asked.append((seeds - 7).tolist())
            memory += 1
            return np.zeros((len(seeds), 2), np.int64)

    sim = palaestra.make_batch("palaestra/TeamPong-v0", N, opponents={"blue": Watcher()})
    sim.reset(seed=7)
    for lanes in (SOME, None, ~SOME):
        sim.step(lanes=lanes)
    assert asked == [[0, 2], [0, 1, 2, 3, 4], [1, 3, 4]]
    (assignment,) = sim.opponent_assignments["blue"]
    assert (assignment.memory == 2).all()


@pytest.mark.check
def test_workers_move_the_same_lanes():
    one, two = (palaestra.make_batch("palaestra/CartPole-v0", N, workers=workers) for workers in (0, 2))
    rng = np.random.default_rng(1)
    for sim in (one, two):
        sim.reset(seed=2)
    for _ in range(12):
        actions, lanes = random_actions(one, rng), rng.random(N) < 0.5
        for sim in (one, two):
            sim.step(actions, lanes)
        assert (seen_bytes(one) == seen_bytes(two)).all()
    one.close()
    two.close()


def test_a_vector_environment_takes_the_lanes_as_an_option():
    envs: Any = gymnasium.make_vec("palaestra/CartPole-v0", num_envs=N).unwrapped
    first, _ = envs.reset(seed=0)
    seen, rewards, terminated, truncated, _ = envs.step(np.zeros(N, int), options={"step_mask": SOME})
    assert ((seen != first).any(axis=1) == SOME).all()
    assert (rewards == SOME).all()
    assert not (terminated | truncated).any()
    with pytest.raises(ValueError, match="step: unknown option 'reset_mask'; known here: 'step_mask'"):
        envs.step(np.zeros(N, int), options={"reset_mask": SOME})


@pytest.mark.check
def test_a_codec_is_asked_for_the_lanes_that_move():
    envs: Any = gymnasium.make_vec(
        "palaestra/GraphPursuit-v0", num_envs=2, control="evader", observation="nodes", codec="graph"
    ).unwrapped
    envs.reset(seed=0)
    actions = envs.action_space.sample()
    with pytest.raises((ValueError, TypeError)):
        envs.step([actions[0], "no move"])
    envs.step([actions[0], "no move"], options={"step_mask": np.array([True, False])})
    assert envs.sim.states["steps"].tolist() == [1, 0]


def test_a_replay_repeats_steps_of_some_lanes():
    sim = palaestra.make_batch("palaestra/GridSoccer-v0", N, autoreset_mode="same_step", horizon=4)
    rng, paces = np.random.default_rng(0), []
    with Recorder(sim) as recorder:
        sim.reset(seed=5)
        for number in range(20):
            lanes = rng.random(N) < 0.5 if number % 3 else None
            sim.step(random_actions(sim, rng), lanes)
            paces.append(sim.states["steps"].copy())
    replay = recorder.replay()
    assert verify(replay).ok
    played = [frame.states["steps"].copy() for frame in frames(replay)]
    assert (np.array(played[1:]) == np.array(paces)).all()
