"""Lane fields that are an array of the world: no memory, no copies, read-only."""

import pickle
from typing import Any

import numpy as np
import pytest
from games import depot, orchard
from games.orchard import started
from games.play import idle_actions, simulation

from palaestra.core.contract.fields import table_rows
from palaestra.game import Choice, Field, Role

pytestmark = pytest.mark.jitless

PRICES = Field("prices", (6,), 0, 99, world="prices")
WEATHER = orchard.game().lane_observation[1]
ROLE = Role("picker", ("red_0", "blue_0"), (PRICES,), (Choice("pick", 3),))


def test_every_lane_sees_the_one_array():
    sim = started(3)
    seen = sim.world_observations["prices"]
    assert seen.shape == (3, 6)
    assert seen.strides[0] == 0
    assert np.shares_memory(seen, sim.game.world.prices)
    np.testing.assert_array_equal(seen, [np.arange(6)] * 3)


def test_it_takes_no_memory_in_the_rows():
    sim = started(3)
    assert sim.lane_observations.dtype.names == ("time", "weather")
    assert "prices" not in sim.buffers.observations.dtype["lane"].names
    only = orchard.game(lane_observation=(PRICES,))
    assert "lane" not in (only.observation_dtype.names or ())


def test_it_is_read_only():
    sim = started(2)
    with pytest.raises(ValueError, match="read-only"):
        sim.world_observations["prices"][0, 0] = 9
    with pytest.raises(ValueError, match="read-only"):
        sim.game.world.prices[0] = 9


def test_it_is_not_in_the_global_state():
    with_prices, without = started(2), started(2, orchard.game(lane_observation=(Field("time", (), 0, 99), WEATHER)))
    assert with_prices.state().shape == without.state().shape


def test_a_copy_sees_the_array_of_its_own_world():
    sim = pickle.loads(pickle.dumps(started(2)))
    assert np.shares_memory(sim.world_observations["prices"], sim.game.world.prices)
    np.testing.assert_array_equal(sim.world_observations["prices"], [np.arange(6)] * 2)


@pytest.mark.parametrize(
    "lanes", [slice(None), slice(1, 3), np.array([3, 0]), np.array([True, False, False, True]), slice(0, 0)]
)
def test_a_team_sees_it_in_the_lanes_it_asks_for(lanes: Any):
    sim = simulation(depot.game(), 4)
    sim.reset(seed=1)
    sim.step(idle_actions(sim))
    view = sim.team_view("red", "observations", lanes)
    count = len(np.arange(4)[lanes])
    assert view["driver"].shape[:2] == (count, 2)
    assert view["lane"]["time"].shape == (count,)
    assert view["lane"]["hops"].shape == (count, 12, 12)
    assert count == 0 or np.shares_memory(view["lane"]["hops"], sim.game.world.hops)


@pytest.mark.parametrize("lanes", [slice(1, 3), np.array([1, 2]), np.array([False, True, True, False])])
def test_a_team_acts_in_the_lanes_it_says(lanes: Any):
    sim = simulation(depot.game(), 4)
    sim.reset(seed=1)
    sim.write_team_actions("blue", np.array([[3, 4], [5, 6]]), lanes)
    assert sim.actions.tolist() == [[0] * 4, [0, 0, 3, 4], [0, 0, 5, 6], [0] * 4]


@pytest.mark.parametrize(
    ("field", "complaint"),
    [
        (Field("prices", (7,), 0, 9, world="prices"), r"'prices' is f4 \(7,\), but world.prices is float32 \(6,\)"),
        (Field("prices", (6,), 0, 9, dtype="f8", world="prices"), r"is f8 \(6,\), but world.prices is float32 \(6,\)"),
        (Field("prices", (6,), 0, 9, world="cost"), r"'prices' is f4 \(6,\), but world.cost is NoneType"),
        (Field("prices", (), 0, 9, world="count"), "but world.count is builtin_function_or_method"),
    ],
)
def test_a_field_that_is_not_that_array_is_refused(field: Field, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        orchard.game(lane_observation=(field, WEATHER))


def test_other_tables_have_no_arrays_of_the_world():
    others: list[dict[str, Any]] = [{"team_observation": (PRICES, WEATHER)}, {"roles": (ROLE, orchard.game().roles[1])}]
    for changes in others:
        with pytest.raises(ValueError, match="'prices' is an array of the world: such a field belongs to lane_obs"):
            orchard.game(**changes)


def test_the_page_says_that_it_is_the_same_for_all():
    assert table_rows((PRICES,))[0]["about"] == " (the same for all matches)"
