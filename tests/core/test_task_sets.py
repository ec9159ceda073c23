"""Games that are a set of tasks: which are played, what tells their number, what is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from games.play import simulation

from palaestra.game import (
    TASK_OPTIONS,
    Continuous,
    Field,
    Game,
    Role,
    TaskWorld,
    begin_task,
    task_set,
    uniform,
    with_options,
)

pytestmark = pytest.mark.jitless

HELD_OUT = (1, 4, 9)
LANES = 64


class World(NamedTuple):
    tasks: TaskWorld


def reset(s, world):
    begin_task(s, world)
    s.start = uniform(s, 0.0, 1.0)


def step(s, world, actions, rewards, scratch):
    rewards[0] = s.task
    return False


def observe(s, world, observations, scratch):
    observations.agent[0].start = s.start


@with_options(*TASK_OPTIONS)
def game(options: Any) -> Game:
    """Ten tasks, each of which pays its number."""
    tasks = task_set(options, 10, HELD_OUT)
    return Game(
        name="Numbers",
        roles=(Role("agent", ("agent_0",), (Field("start", (), 0.0, 1.0),), (Continuous("idle"),)),),
        state=(("task", "i8"), ("start", "f8")),
        reset=reset,
        step=step,
        observe=observe,
        parameters=(tasks.parameter,),
        info=(tasks.info,),
        horizon=1,
        world=World(tasks.world),
    )


def started(task: Any = -1, **options: Any) -> Any:
    sim = simulation(game(**options), LANES, compiled=False, parameters={"task": task}, autoreset_mode="off")
    sim.reset(seed=3)
    return sim


@pytest.mark.parametrize(
    ("tasks", "numbers"),
    [("train", {0, 2, 3, 5, 6, 7, 8}), ("test", set(HELD_OUT)), ("all", set(range(10)))],
)
def test_every_task_of_the_split_is_drawn_and_no_other(tasks: str, numbers: set[int]):
    assert set(started(tasks=tasks).states["task"].tolist()) == numbers


def test_a_task_that_is_said_is_played_one_a_lane_and_the_match_is_that_in_which_it_is_drawn():
    drawn = started(tasks="all")
    said = started(drawn.states["task"].astype(float), tasks="all")
    assert len(set(drawn.states["task"].tolist())) > 5
    for name in ("task", "start", "rng"):
        np.testing.assert_array_equal(said.states[name], drawn.states[name])
    others = started(np.arange(LANES) % 10, tasks="all")
    np.testing.assert_array_equal(others.states["start"], drawn.states["start"])
    others.step()
    np.testing.assert_array_equal(others.rewards[:, 0], np.arange(LANES) % 10)


def test_observations_do_not_depend_on_the_task():
    np.testing.assert_array_equal(started(3).observations, started(7).observations)


def test_the_info_tells_the_task_only_where_it_is_asked_for():
    shown = started(hide_task=False)
    np.testing.assert_array_equal(shown.info["task"], shown.states["task"])
    assert (started().info["task"] == -1).all()


def test_a_change_of_the_task_waits_for_the_next_match():
    sim = started(3)
    sim.set_parameters(task=7)
    assert (sim.parameters["task"] == 3).all()
    sim.step()
    assert (sim.rewards == 3).all()
    sim.reset()
    assert (sim.states["task"] == 7).all()


@pytest.mark.parametrize(
    ("tasks", "task", "allowed"),
    [("all", 10, "-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"), ("test", 3, "-1, 1, 4, 9"), ("train", 4, "-1, 0, 2, 3, 5, 6, 7")],
)
def test_a_task_that_is_none_or_of_another_split_is_refused_with_those_that_are_allowed(tasks, task, allowed):
    with pytest.raises(ValueError, match=f"task must be one of {allowed}"):
        started(task, tasks=tasks)


def test_a_seed_draws_another_split_of_the_same_sizes_which_repeats():
    splits = [
        [set(started(tasks=t, split_seed=k).states["task"].tolist()) for t in ("train", "test")] for k in range(9)
    ]
    for train, test in splits:
        assert (len(train), len(test), train | test) == (7, 3, set(range(10)))
    assert len({tuple(sorted(test)) for _, test in splits}) > 5
    assert set(game(tasks="test", split_seed=0).parameters[1].values) == {-1, *splits[0][1]}
    with pytest.raises(ValueError, match="split_seed=1 means nothing with tasks='all'"):
        game(tasks="all", split_seed=1)
