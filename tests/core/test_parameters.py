"""Numbers of the rules: keywords, per lane, changed while a match runs."""

import numpy as np
import pytest
from games import two_team
from games.play import all_bytes, idle_actions, random_actions
from hypothesis import given, settings
from hypothesis import strategies as st

from palaestra.core.kernel import KernelSimulation

pytestmark = pytest.mark.jitless

GAME = two_team.game()


def started(n: int = 3, **parameters) -> KernelSimulation:
    sim = KernelSimulation(GAME, n, parameters=parameters)
    sim.reset(seed=1)
    return sim


def test_parameters_have_their_defaults_and_keywords_change_them():
    assert {name: v.tolist() for name, v in started().parameters.items()} == {
        "horizon": [40.0] * 3,
        "damage": [0.6] * 3,
        "hit_chance": [0.8] * 3,
        "arrival": [6.0] * 3,
    }
    assert started(damage=2.0).parameters["damage"].tolist() == [2.0] * 3
    assert started(damage=[1.0, 2.0, 3.0]).parameters["damage"].tolist() == [1.0, 2.0, 3.0]


def test_parameters_outlive_the_match():
    sim = started(damage=2.0)
    sim.reset()
    sim.reset(seed=3)
    assert sim.parameters["damage"].tolist() == [2.0] * 3


def test_a_change_acts_in_the_running_match_and_in_its_lane_alone():
    sim = started(arrival=100)
    sim.set_parameters(arrival=2, lanes=np.array([False, True, False]))
    sim.set_parameters(horizon=3, lanes=[2])
    arrivals, cut = [], []
    for _ in range(3):
        sim.step(idle_actions(sim))
        arrivals.append(sim.alive[:, two_team.LATE].tolist())
        cut.append(sim.truncated.tolist())
    assert arrivals == [[False] * 3, [False, True, False], [False, True, False]]
    assert cut == [[False] * 3, [False] * 3, [False, False, True]]


@settings(max_examples=20)
@given(st.floats(0, 10), st.integers(0, 2))
def test_lanes_differ_in_nothing_but_their_parameters(damage: float, lane: int):
    sim, twin, rng = started(), started(), np.random.default_rng(0)
    sim.set_parameters(damage=damage, lanes=[lane])
    others = np.arange(3) != lane
    for _ in range(10):
        actions = random_actions(sim, rng)
        sim.step(actions)
        twin.step(actions)
    np.testing.assert_array_equal(all_bytes(sim)[others], all_bytes(twin)[others])


def test_the_views_cannot_be_written():
    view = started().parameters["damage"]
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1.0


def test_an_unknown_name_gets_the_near_one_proposed():
    with pytest.raises(TypeError, match="'damge' is not a Raid parameter: did you mean 'damage'"):
        started(damge=1.0)
    with pytest.raises(TypeError, match="known: horizon, damage, hit_chance, arrival"):
        started(xyz=1.0)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, [0.5, 0.5, 2.0]])
def test_a_value_outside_its_range_is_refused_and_nothing_changes(value):
    sim = started()
    before = all_bytes(sim)
    with pytest.raises(ValueError, match=r"hit_chance must be in \[0, 1\] 1, got"):
        sim.set_parameters(damage=5.0, hit_chance=value)
    np.testing.assert_array_equal(all_bytes(sim), before)
