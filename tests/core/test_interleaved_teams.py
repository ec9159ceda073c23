"""Teams whose slots alternate within a role see and move their own slots, as others do."""

from __future__ import annotations

import numpy as np
import pytest
from games.play import simulation

from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.game import Choice, Field, Game, Role


def reset(s, world):
    for a in range(4):
        s.count[a] = 10 * a


def step(s, world, actions, rewards, scratch):
    for a in range(4):
        s.count[a] += actions.seat[a].add
    return False


def observe(s, world, observations, scratch):
    for a in range(4):
        observations.seat[a].count = s.count[a]


def legal(s, world, mask):
    for a in range(4):
        mask.seat[a].add[:] = 1
        mask.seat[a].add[2] = s.count[a] % 2


def table(*agents: str) -> Game:
    seat = Role("seat", agents, (Field("count", (), 0, 1000),), (Choice("add", 3),))
    return Game(
        name="Table",
        roles=(seat,),
        state=(("count", "i8", (4,)),),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
    )


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


@pytest.mark.jitless
@pytest.mark.parametrize(("control", "first"), [("north", 0), ("east", 1)])
def test_a_team_of_every_other_slot_sees_and_moves_its_own(control: str, first: int):
    sim = simulation(table("north_0", "east_0", "north_1", "east_1"), 1, autoreset_mode="off")
    env = GameEnv(sim, control=control)
    observation, info = env.reset(seed=0)
    np.testing.assert_array_equal(observation, [10 * first, 10 * first + 20])
    observation, _, _, _, info = env.step(np.array([1, 0]))
    np.testing.assert_array_equal(observation, [10 * first + 1, 10 * first + 20])
    assert [mask.tolist() for mask in info["action_mask"]] == [[1, 1, 1], [1, 1, 0]]


@pytest.mark.jitless
@pytest.mark.parametrize("mode", ["flat", "dict"])
@pytest.mark.parametrize("copy", [True, False])
def test_so_does_a_vector_of_them(mode: str, copy: bool):
    sim = simulation(table("north_0", "east_0", "north_1", "east_1"), 3)
    env = GameVectorEnv(sim, control="east", observation=mode, copy=copy)  # type: ignore[arg-type]
    env.reset(seed=0)
    observation, *_ = env.step(np.array([[0, 1], [1, 0], [0, 0]]))
    seen = observation if mode == "flat" else observation["count"]
    np.testing.assert_array_equal(np.reshape(seen, (3, 2)), [[10, 31], [11, 30], [10, 30]])


def test_slots_without_a_pattern_are_refused():
    sim = simulation(table("north_0", "north_1", "east_0", "north_2"), 1)
    with pytest.raises(ValueError, match="north's slots 0, 1, 3 of the role seat are not evenly spaced"):
        GameEnv(sim, control="north")
