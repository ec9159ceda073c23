"""Fields that stay the same during a match: written once, when it starts, and kept wherever users look."""

import copy
from typing import Any

import numpy as np
import pytest
from games import orchard
from games.orchard import started
from games.play import idle_actions, random_actions

from palaestra.game import Choice, Field, Game, Representation, Role

pytestmark = pytest.mark.jitless

DRAWN = 7  # its place in a picker's vector
N = 3


def fixed(sim: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The fields at reset of roles, teams and lanes."""
    return (
        sim.observations["picker"][..., DRAWN],
        sim.team_observations["home"],
        sim.lane_observations["weather"],
    )


def expected(sim: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    drawn = sim.states["drawn"].astype("f4")
    weather = (sim.states["drawn"][:, :1] + np.arange(2)).astype("f4")
    return drawn[:, :3], np.array([[7, 8]] * sim.num_envs), weather


def check(sim: Any) -> None:
    for mine, its in zip(fixed(sim), expected(sim), strict=True):
        np.testing.assert_array_equal(mine, its)


def marked(sim: Any) -> None:
    """Writes into what is kept what no hook writes."""
    for array in fixed(sim):
        array[...] = 0.125


def test_they_are_written_when_a_match_starts():
    check(started(N))


def test_during_a_match_they_are_not_written():
    sim = started(N)
    marked(sim)
    for _ in range(4):
        sim.step(idle_actions(sim))
        assert all((array == 0.125).all() for array in fixed(sim))
    assert (sim.lane_observations["time"] == 4).all()  # the others are written


def test_nor_in_a_game_without_capacities():
    sim = started(N, CALLED, parameters={"horizon": [2, 9, 9]})
    sim.observations[..., 1] = 0.125
    for decision in range(1, 4):
        sim.step(idle_actions(sim) + 1)
        assert (sim.observations[1:, 0] == [1 + decision, 0.125]).all()
        assert (sim.observations[0, 0, 1] == 0.125) == (decision < 3)


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_a_new_match_has_new_ones_in_its_lane_alone(mode: Any):
    sim = started(N, autoreset_mode=mode, parameters={"horizon": [2, 9, 3]})
    marked(sim)
    for _ in range(2 if mode == "same_step" else 3):
        sim.step(idle_actions(sim))
    for mine, its in zip(fixed(sim), expected(sim), strict=True):
        np.testing.assert_array_equal(mine[0], its[0])
        assert (mine[1:] == 0.125).all()
    assert sim.states["steps"].tolist() == ([0, 2, 2] if mode == "same_step" else [0, 3, 3])


def test_a_reset_of_some_lanes_leaves_the_others():
    sim = started(N)
    marked(sim)
    sim.reset(np.array([False, True, False]))
    for mine, its in zip(fixed(sim), expected(sim), strict=True):
        np.testing.assert_array_equal(mine[1], its[1])
        assert (mine[[0, 2]] == 0.125).all()


@pytest.mark.parametrize("verb", ["refresh", "restore", "load_states"])
def test_they_are_written_anew_where_records_came_from_elsewhere(verb: str):
    sim, other = started(N), started(N)
    other.reset(seed=77)
    if verb == "refresh":
        sim.states["drawn"] = other.states["drawn"]
        sim.refresh()
    elif verb == "restore":
        sim.restore(other.snapshot())
    else:
        sim.load_states(other.states.copy())
    check(sim)
    np.testing.assert_array_equal(sim.observations["picker"], other.observations["picker"])


def test_a_copy_keeps_them():
    sim = started(N)
    sim.step(idle_actions(sim))
    twin = copy.deepcopy(sim)
    for _ in range(2):
        twin.step(idle_actions(twin))
        check(twin)


def test_they_stand_in_flat_vectors_and_in_the_global_state():
    sim = started(N)
    sim.step(idle_actions(sim))
    check(sim)
    np.testing.assert_array_equal(sim.state()[:, -2:], sim.lane_observations["weather"])
    before = 3 * (1 + 2 + 4)  # fields stand one after the other, each of all agents
    np.testing.assert_array_equal(sim.state()[:, before : before + 3], np.float32(sim.states["drawn"][:, :3]))
    seen = sim.team_view("red", "observations")
    np.testing.assert_array_equal(seen["team"]["home"], [7] * N)
    np.testing.assert_array_equal(seen["lane"]["weather"], sim.lane_observations["weather"])


def test_fields_of_the_last_match_are_not_those_of_agents_that_are_not_there():
    sim = started(1, autoreset_mode="off", parameters={"leaver": 0})
    for _ in range(2):
        sim.step(idle_actions(sim))
    assert sim.observations["picker"][0, 0, DRAWN] == np.float32(sim.states["drawn"][0, 0])
    assert not sim.observations["picker"][0, 0, :DRAWN].any()  # it has left


def reset(s, world):
    s.kept = s.rng % 100
    s.now = 1


def step(s, world, actions, rewards, scratch):
    s.now += actions.walker[0].move
    return 0


def observe(s, world, observations, scratch):
    observations.walker[0].now = s.now


def observe_reset(s, world, observations, scratch):
    observations.walker[0].kept = s.kept


NOW, KEPT = Field("now", (), 0, 99), Field("kept", (), 0, 99, at="reset")


def walkers(*fields: Any, **changes: Any) -> Game:
    role = Role("walker", ("red_0",), fields or (NOW, KEPT), (Choice("move", 3),))
    given: dict[str, Any] = {
        "state": (("kept", "i8"), ("now", "i8")),
        "reset": reset,
        "step": step,
        "observe": observe,
        "observe_reset": observe_reset,
    }
    return Game("Walkers", (role,), **{**given, **changes})


CALLED = walkers()
SHORT = Representation("nothing kept", observe, {"walker": (NOW,)}, observe_reset=observe_reset)


@pytest.mark.parametrize(
    "make",
    [
        lambda: walkers(observe_reset=None),
        lambda: walkers(NOW),
        lambda: walkers(NOW, observe_reset=None, lane_observation=(KEPT,)),
        lambda: walkers(NOW, observe_reset=None, team_observation=(KEPT,)),
        lambda: orchard.game(observe_reset=None),
        lambda: walkers(representations={"short": SHORT}).represented("short"),
    ],
)
def test_the_hook_and_the_fields_come_together(make: Any):
    with pytest.raises(ValueError, match='give observe_reset and fields with at="reset" together'):
        make()


def test_a_random_match_never_changes_them():
    sim, rng = started(N, opponents={"blue": "random"}, parameters={"horizon": [5, 6, 7]}), np.random.default_rng(0)
    for _ in range(12):
        sim.step(random_actions(sim, rng))
        check(sim)
