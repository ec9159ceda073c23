"""MetaPoint and MetaDirection: what is paid, where matches start, what tells the task, the scripts, the split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games.play import simulation

from palaestra.games.meta import meta_direction, meta_point
from palaestra.games.meta.plane_tasks import TASKS, held_out

pytestmark = pytest.mark.jitless

GAMES = {"MetaPoint": meta_point, "MetaDirection": meta_direction}
FACTORIES = [meta_point.game, meta_direction.game]
GOALS, DIRECTIONS = meta_point.game().world.goals_m, meta_direction.game().world.directions


def started(factory: Any, lanes: int = TASKS, task: Any = None, **keywords: Any) -> Any:
    """One match of each task unless said otherwise."""
    task = np.arange(lanes) % TASKS if task is None else task
    sim = simulation(factory(tasks="all"), lanes, autoreset_mode="off", parameters={"task": task}, **keywords)
    sim.reset(seed=4)
    return sim


def returns(sim: Any) -> np.ndarray:
    """Returns of the matches that have started."""
    total = np.zeros(sim.num_envs)
    while not sim.states["pending"].all():
        sim.step()
        total += sim.rewards[:, 0]
    return total


# ------------------------------------------------------------------------------------------------------------- rewards


def test_a_point_is_paid_minus_its_distance_from_the_goal_after_a_step_of_a_tenth_of_the_action():
    sim = started(meta_point.game, 2, [7, 8])
    sim.states["position_m"][:] = [(0.3, -0.2), (1.0, 1.0)]
    sim.states["goal_m"][:] = [(0.0, 0.0), (0.0, 1.0)]
    sim.step(np.array([[[-1.0, 0.5]], [[0.0, -1.0]]], np.float32))
    np.testing.assert_allclose(sim.states["position_m"], [(0.2, -0.15), (1.0, 0.9)])
    np.testing.assert_allclose(sim.rewards[:, 0], [-0.25, -np.sqrt(1.01)], rtol=1e-6)
    np.testing.assert_allclose(sim.observations[:, 0], sim.states["position_m"], rtol=1e-6)


def test_a_body_is_paid_its_velocity_along_the_direction_minus_the_cost_of_the_thrust():
    sim = started(meta_direction.game, 2, [7, 8])
    sim.states["position_m"][:], sim.states["velocity_mps"][:] = 0.0, (0.5, -1.0)
    sim.states["direction"][:] = [(1.0, 0.0), (0.6, 0.8)]
    sim.step(np.array([[[0.5, 0.0]], [[0.0, 1.0]]], np.float32))
    np.testing.assert_allclose(sim.states["velocity_mps"], [(0.5, -0.8), (0.4, -0.6)])
    np.testing.assert_allclose(sim.states["position_m"], [(0.05, -0.08), (0.04, -0.06)])
    np.testing.assert_allclose(sim.rewards[:, 0], [0.5 - 0.05 * 0.25, 0.24 - 0.48 - 0.05], rtol=1e-6)
    seen = np.hstack([sim.states["position_m"], sim.states["velocity_mps"]])
    np.testing.assert_allclose(sim.observations[:, 0], seen, rtol=1e-6)


def test_a_thrust_longer_than_1_is_cut_to_1():
    sims = [started(meta_direction.game, 1, 0) for _ in range(2)]
    for sim, thrust in zip(sims, ((0.6, 0.8), (0.75, 1.0)), strict=True):
        sim.step(np.array([[thrust]], np.float32))
    np.testing.assert_allclose(sims[0].states["velocity_mps"], sims[1].states["velocity_mps"], rtol=1e-6)
    np.testing.assert_allclose(sims[0].rewards, sims[1].rewards, rtol=1e-5)


@pytest.mark.parametrize("factory", FACTORIES)
def test_a_match_is_cut_off_after_20_decisions_and_never_ended_by_rule(factory: Any):
    sim = started(factory, 4)
    for _ in range(19):
        sim.step()
        assert not sim.terminated.any()
        assert not sim.truncated.any()
    sim.step()
    assert sim.truncated.all()
    assert not sim.terminated.any()


# -------------------------------------------------------------------------------------------------------------- starts


def test_starts_cover_the_square_and_all_velocities_whatever_the_task():
    for factory, numbers in ((meta_point.game, 2), (meta_direction.game, 4)):
        seen = started(factory, 400, 3).observations[:, 0]
        assert seen.shape == (400, numbers)
        assert np.abs(seen).max() <= 1.0
        for pair in seen.reshape(400, -1, 2).transpose(1, 0, 2):
            cells = np.floor((pair + 1.0) * 2.0).astype(int)
            assert len(np.unique(cells, axis=0)) == 16


# --------------------------------------------------------------------------------------------------------------- tasks


def test_goals_are_evenly_spaced_on_the_half_circle_and_directions_on_the_circle():
    for vectors in (GOALS, DIRECTIONS):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=2e-9)
        np.testing.assert_array_equal(vectors, np.round(vectors, 9))  # the same on machines whose sine differs
    angles = np.sort(np.arctan2(GOALS[:, 1], GOALS[:, 0]))
    np.testing.assert_allclose(angles, np.pi * (np.arange(TASKS) + 0.5) / TASKS, atol=2e-9)
    angles = np.sort(np.arctan2(DIRECTIONS[:, 1], DIRECTIONS[:, 0]) % (2 * np.pi))
    np.testing.assert_allclose(angles, 2 * np.pi * np.arange(TASKS) / TASKS, atol=2e-9)


@pytest.mark.parametrize("tasks", [GOALS, DIRECTIONS], ids=["goals", "directions"])
def test_neighbours_in_number_are_as_far_apart_as_any_two_tasks(tasks: np.ndarray):
    apart = np.linalg.norm(tasks[:, None] - tasks, axis=2)
    beside = np.linalg.norm(np.diff(tasks, axis=0), axis=1)
    assert beside.mean() == pytest.approx(apart[~np.eye(TASKS, dtype=bool)].mean(), rel=0.15)
    assert np.abs(np.corrcoef(np.arange(TASKS), tasks.T)[0, 1:]).max() < 0.25


def test_lanes_play_different_tasks_side_by_side_and_each_is_that_of_its_number():
    point, body = (started(factory, 3, [40, 2, 13]) for factory in FACTORIES)
    np.testing.assert_array_equal(point.states["goal_m"], GOALS[[40, 2, 13]])
    np.testing.assert_array_equal(body.states["direction"], DIRECTIONS[[40, 2, 13]])


@pytest.mark.parametrize("factory", FACTORIES)
def test_the_number_of_the_task_alone_changes_no_input_of_a_learner(factory: Any):
    """Two numbers with one goal: the same observations, rewards, ends and infos, to the bit."""
    game = factory(tasks="all")
    of_tasks = game.world[1].copy()
    of_tasks[31] = of_tasks[6]
    object.__setattr__(game, "world", game.world._replace(**{game.world._fields[1]: of_tasks}))
    sims: list[Any] = [simulation(game, 8, compiled=False, parameters={"task": task}) for task in (6, 31)]
    rng = np.random.default_rng(0)
    for sim in sims:
        sim.reset(seed=9)
    for _ in range(25):
        one, other = ([sim.observations, sim.rewards, sim.truncated, sim.info["task"]] for sim in sims)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
        actions = rng.uniform(-1, 1, (8, 1, 2)).astype(np.float32)
        for sim in sims:
            sim.step(actions)
    assert set(sims[1].states["task"]) == {31}


def test_before_the_first_reward_all_tasks_look_alike_and_afterwards_rewards_alone_tell_them():
    actions = np.random.default_rng(0).uniform(-1, 1, (20, 1, 1, 2)).astype(np.float32)
    for factory in FACTORIES:
        seen, paid = [], []
        for task in (3, 24):
            sim = started(factory, 1, task)
            shown = [sim.observations.copy()]
            rewards = []
            for action in actions:
                sim.step(action)
                shown.append(sim.observations.copy())
                rewards.append(sim.rewards[0, 0])
            seen.append(shown)
            paid.append(rewards)
        np.testing.assert_array_equal(*seen)
        assert (np.array(paid[0]) != paid[1]).all()


@pytest.mark.parametrize("name", GAMES)
def test_five_tasks_are_held_out_and_lie_among_those_for_training(name: str):
    factory, numbers = GAMES[name].game, held_out(name)
    train, test = (factory(tasks=tasks).parameters[1].values for tasks in ("train", "test"))
    assert (len(train), test) == (1 + 45, (-1, *numbers))
    assert set(train[1:]) == set(range(TASKS)) - set(numbers)


# ------------------------------------------------------------------------------------------------------------- scripts


@pytest.mark.check
@pytest.mark.parametrize("factory", FACTORIES)
def test_the_expert_beats_the_average_which_beats_random_play(factory: Any):
    expert, average, random = (
        returns(started(factory, 2 * TASKS, opponents={"agent": player})) for player in ("expert", "average", "random")
    )
    assert (expert > average).all()
    assert average.mean() > random.mean()


@pytest.mark.check
@pytest.mark.parametrize("factory", FACTORIES)
def test_no_other_actions_earn_more_than_those_of_the_expert(factory: Any):
    sim = started(factory, opponents={"agent": "expert"})
    best, actions = np.zeros(TASKS), []
    for _ in range(20):
        sim.step()
        best += sim.rewards[:, 0]
        actions.append(sim.team_view("agent", "actions").copy())
    rng = np.random.default_rng(0)
    for noise in (0.05, 0.5, 2.0):
        sim = started(factory)
        total = np.zeros(TASKS)
        for action in actions:
            sim.step(np.clip(action + rng.normal(0, noise, action.shape), -1, 1).astype(action.dtype))
            total += sim.rewards[:, 0]
        assert (total < best).all()
