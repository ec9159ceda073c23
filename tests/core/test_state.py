"""The global state for centralised critics."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games import body_game, two_team, two_team_homogeneous
from games.play import idle_actions, simulation

from palaestra.core.run import kernel, physics

pytestmark = pytest.mark.jitless


def count_alive(s, world, out):
    out[0] = s.alive[0]


def test_a_game_says_what_its_global_state_is():
    sim = simulation(two_team.game(), 3)
    sim.reset(seed=1)
    sim.step(idle_actions(sim))
    state = sim.state()
    assert (state.shape, state.dtype) == ((3, 11), np.float32)
    np.testing.assert_array_equal(state[:, 0:10:2], sim.states["node"])
    np.testing.assert_array_equal(state[:, 1:10:2], np.float32(sim.states["energy"]))
    np.testing.assert_array_equal(state[:, 10], [1, 1, 1])


@pytest.mark.parametrize("make", [two_team.game, body_game.game])
def test_it_is_written_again_without_linking_the_rules_again(make: Any, monkeypatch: pytest.MonkeyPatch):
    game = replace(make(), global_state=count_alive, global_state_size=1)
    sim = simulation(game, 2)
    sim.reset(seed=1)
    before = sim.state().copy()
    for module in (kernel, physics):
        monkeypatch.setattr(module, "link", lambda *_: pytest.fail("the rules are linked once"))
    np.testing.assert_array_equal(sim.state(), before)


def test_otherwise_it_is_all_observations_side_by_side():
    sim: Any = simulation(two_team_homogeneous.game(), 3)
    sim.reset(seed=1)
    state = sim.state()
    assert state.shape == (3, 10 * 34)
    assert sorted(state[1]) == sorted(sim.observations[1].ravel())


def test_the_global_state_is_a_copy():
    sim = simulation(two_team.game(), 2)
    sim.reset(seed=1)
    first = sim.state()
    first[:] = 9
    assert not (sim.state() == 9).any()
