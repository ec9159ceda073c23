"""Numbers of the rules: keywords, per lane, changed while a match runs."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games import orchard, two_team
from games.play import all_bytes, idle_actions, random_actions, simulation
from hypothesis import given, settings
from hypothesis import strategies as st

from palaestra.core.contract.fields import table_rows
from palaestra.core.run.simulation import Simulation
from palaestra.game import Parameter
from palaestra.testing.drawn import Draw

pytestmark = pytest.mark.jitless

GAME = two_team.game()


def started(n: int = 3, **parameters) -> Simulation:
    sim = simulation(GAME, n, parameters=parameters)
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


@pytest.mark.check
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
    with pytest.raises(
        TypeError, match="unexpected keyword argument 'damge': it is not a Raid parameter; did you mean 'damage'"
    ):
        started(damge=1.0)
    with pytest.raises(TypeError, match="known: horizon, damage, hit_chance, arrival"):
        started(xyz=1.0)


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, [0.5, 0.5, 2.0]])
def test_a_value_outside_its_range_is_refused_and_nothing_changes(value):
    sim = started()
    before = all_bytes(sim)
    with pytest.raises(ValueError, match=r"hit_chance must be in \[0, 1\], got"):
        sim.set_parameters(damage=5.0, hit_chance=value)
    np.testing.assert_array_equal(all_bytes(sim), before)


# -- changes that wait for the next match ------------------------------------------------------------------------------


def began(sim: Any) -> list[float]:
    """What the parameters at_start were when the matches began: 10 tempo + style."""
    return sim.states["began"].tolist()


def test_a_word_is_no_number():
    with pytest.raises(ValueError, match=r"tempo must be a number in \[0, 5\], got 'fast'"):
        orchard.started(2).set_parameters(tempo="fast")


def test_readers_see_the_default_and_when_a_change_acts():
    (row,) = table_rows((Parameter("tempo", 1.5, 0, 5, about="of the match", at_start=True),))
    assert row["about"] == "of the match (default 1.5) (a change takes effect at the next match)"
    (row,) = table_rows((Parameter("bonus", 1.5, 0, 5, about="on the way", shaping=True),))
    assert row["about"] == "on the way (default 1.5) (0 in evaluations)"


def test_what_is_set_before_the_first_reset_acts_in_the_first_match():
    sim = simulation(orchard.game(), 2, parameters={"tempo": 2.0})
    sim.set_parameters(style=1, lanes=[1])
    assert sim.parameters["tempo"].tolist() == [2.0] * 2
    sim.reset(seed=1)
    assert began(sim) == [20.0, 21.0]


def test_a_change_at_start_waits_for_the_lanes_next_match():
    sim = orchard.started(3, parameters={"horizon": [2, 9, 3]})
    sim.set_parameters(tempo=[2.0, 3.0, 4.0], style=1, horizon=[2, 9, 4])
    assert sim.parameters["tempo"].tolist() == [1.0] * 3
    assert sim.parameters["horizon"].tolist() == [2, 9, 4]  # this one acts at once
    seen = []
    for _ in range(5):
        sim.step(idle_actions(sim))
        seen.append((began(sim), sim.parameters["tempo"].tolist()))
    assert seen[1] == ([10.0] * 3, [1.0] * 3)
    assert seen[2] == ([21.0, 10.0, 10.0], [2.0, 1.0, 1.0])
    assert seen[4] == ([21.0, 10.0, 41.0], [2.0, 1.0, 4.0])


def test_a_change_at_start_acts_where_a_match_is_started_by_hand():
    sim = orchard.started(3)
    sim.set_parameters(tempo=5.0, lanes=[0, 1])
    sim.reset(np.array([True, False, True]))
    assert began(sim) == [50.0, 10.0, 10.0]
    assert sim.parameters["tempo"].tolist() == [5.0, 1.0, 1.0]
    sim.reset()
    assert began(sim) == [50.0, 50.0, 10.0]


def test_a_change_at_start_acts_in_a_match_that_starts_in_the_same_step():
    sim = orchard.started(2, autoreset_mode="same_step", parameters={"horizon": [2, 9]})
    sim.set_parameters(tempo=3.0)
    for _ in range(2):
        sim.step(idle_actions(sim))
    assert began(sim) == [30.0, 10.0]


def test_a_change_acts_for_all_later_matches():
    sim = orchard.started(1)
    sim.set_parameters(tempo=3.0)
    for _ in range(3):
        sim.reset()
        assert began(sim) == [30.0]


@pytest.mark.parametrize("way", ["restore", "load_states", "copy"])
def test_a_waiting_change_goes_with_the_match(way: str):
    sim = orchard.started(2)
    sim.set_parameters(tempo=4.0)
    other = orchard.started(2)
    if way == "restore":
        other.restore(sim.snapshot())
    elif way == "load_states":
        other.load_states(sim.states.copy())
    else:
        other = copy.deepcopy(sim)
    assert other.parameters["tempo"].tolist() == [1.0] * 2
    other.reset()
    assert began(other) == [40.0] * 2


def test_a_game_without_such_parameters_has_no_second_record():
    assert "next_parameters" in (orchard.game().state_dtype.names or ())
    assert "next_parameters" not in (GAME.state_dtype.names or ())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([0.5, 0.5], r"^damage must be one value, or one for each of 3 lanes, got shape \(2,\)$"),
        ([[0.5], [0.5, 1]], r"^damage must be a number in \[0, 10\], got"),
        (None, r"^damage must be a number in \[0, 10\], got None$"),
        ("", r"^damage must be a number in \[0, 10\], got ''$"),
        (1j, r"^damage must be a number in \[0, 10\], got 1j$"),
    ],
)
def test_what_is_no_value_for_a_parameter_is_refused_by_its_name_and_nothing_has_changed(value: Any, message: str):
    sim = simulation(two_team.game(), 3)
    with pytest.raises(ValueError, match=message):
        sim.set_parameters(hit_chance=0.25, damage=value)
    assert sim.parameters["hit_chance"].tolist() == [0.8] * 3


@pytest.mark.parametrize("value", [2.5, [3, 4.5], True])
def test_a_match_lasts_a_whole_number_of_decisions(value: Any):
    sim = simulation(two_team.game(), 2)
    with pytest.raises(ValueError, match=r"^horizon must be a whole number, got"):
        sim.set_parameters(horizon=value)
    with pytest.raises(ValueError, match=r"^horizon must be in \[1, 1e\+09\] decisions, got 1000000000000000\.0$"):
        sim.set_parameters(horizon=1e15)
    sim.set_parameters(horizon=np.array([3.0, 1e9]))
    assert sim.parameters["horizon"].tolist() == [3, 10**9]


# -- ranges ------------------------------------------------------------------------------------------------------------

ENDS = (
    Parameter("low_m", 3.0, 0.0, 10.0, "m", at_start=True, up_to="high_m"),
    Parameter("high_m", 5.0, 0.0, 10.0, "m", at_start=True),
)
RANGED = replace(GAME, parameters=(*GAME.parameters, *ENDS))


@pytest.mark.parametrize(
    "ends", [{"low_m": 6.0}, {"high_m": 2.0}, {"low_m": [1.0, 5.5, 1.0]}, {"low_m": 9, "high_m": 8}]
)
def test_a_range_whose_ends_are_exchanged_is_refused(ends: dict[str, Any]):
    message = r"low_m must not exceed high_m, got [\d.]+ and [\d.]+: give both ends in one call"
    with pytest.raises(ValueError, match=message):
        simulation(RANGED, 3, parameters=ends)
    sim = simulation(RANGED, 3)
    sim.reset(seed=1)
    before = all_bytes(sim).copy()
    with pytest.raises(ValueError, match=message):
        sim.set_parameters(**ends)
    np.testing.assert_array_equal(all_bytes(sim), before)


def test_both_ends_of_a_range_move_in_one_call_and_lanes_alone():
    sim = simulation(RANGED, 3)
    sim.set_parameters(low_m=7.0, high_m=7.0)
    sim.set_parameters(lanes=[1], low_m=8.0, high_m=9.0)
    assert sim.parameters["low_m"].tolist() == [7.0, 8.0, 7.0]
    with pytest.raises(ValueError, match="got 8 and 7"):
        sim.set_parameters(high_m=7.0)


@pytest.mark.parametrize("end", ["hihg_m", "damage"])
def test_a_range_that_cannot_be_meant_is_refused(end: str):
    with pytest.raises(ValueError, match=f"the range from 'low_m' up to '{end}' does not exist, or its defaults"):
        replace(GAME, parameters=(*GAME.parameters, replace(ENDS[0], up_to=end), ENDS[1]))


def test_the_kit_draws_no_range_whose_ends_are_exchanged():
    draw = Draw(0, "palaestra/Ranged-v0", "a")
    low, high = (draw.parameter(p.name, p, 200, ENDS) for p in ENDS)
    assert (low <= 3.0).all()
    assert (high >= 5.0).all()


CHOSEN = replace(GAME, parameters=(*GAME.parameters, Parameter("length_m", 2.0, values=(2.0, 3.0, 7.5))))


@pytest.mark.parametrize("value", [1.0, 4.0, [2.0, 5.0, 3.0]])
def test_a_number_that_is_none_of_the_values_is_refused_with_those_that_are(value: Any):
    sim = simulation(CHOSEN, 3, parameters={"length_m": 7.5})
    with pytest.raises(ValueError, match=r"length_m must be one of 2, 3, 7.5, got "):
        sim.set_parameters(length_m=value)
    assert sim.parameters["length_m"].tolist() == [7.5] * 3


def test_a_default_that_is_none_of_the_values_is_refused():
    with pytest.raises(ValueError, match="default of 'length_m' is 4, none of its values"):
        replace(GAME, parameters=(Parameter("length_m", 4.0, values=(2.0, 7.5)),))


def test_values_are_shown_by_their_ends_and_the_kit_draws_all_of_them_and_no_others():
    length = CHOSEN.parameters[-1]
    assert [table_rows([length])[0][name] for name in ("low", "high")] == ["2", "7.5"]
    assert set(Draw(0, "palaestra/Chosen-v0", "a").parameter("length_m", length, 100)) == {2.0, 3.0, 7.5}
