"""Bounds: a number for all elements or one for each, infinite ones that are checked, and no-ops inside them."""

from typing import Any

import numpy as np
import pytest
from games.orchard import started
from games.play import idle_actions
from gymnasium import spaces

from palaestra.core.contract.actions import idle_words, word_table
from palaestra.core.contract.fields import bounds, checked_bounds, table_rows
from palaestra.core.contract.spaces import action_space, box_space, dict_space
from palaestra.game import Choice, Continuous, Field, Game, Role

pytestmark = pytest.mark.jitless

INF = float("inf")


def nothing(*arguments):
    return 0


def game(*fields: Field, action: Any = None) -> Game:
    role = Role("walker", ("red_0",), fields or (Field("x", (), 0, 1),), (action or Choice("move", 2),))
    return Game("Tiny", (role,), (), reset=nothing, step=nothing, observe=nothing)


@pytest.mark.parametrize("low", [[[0, 1], [2, 3]], ((0, 1), (2, 3)), np.array([[0.0, 1.0], [2.0, 3.0]])])
def test_bounds_may_be_arrays_of_any_kind(low: Any):
    field = Field("x", (2, 2), low, 9)
    assert field.low == ((0.0, 1.0), (2.0, 3.0))
    assert hash(field) == hash(Field("x", (2, 2), ((0, 1), (2, 3)), 9))
    assert bounds(field)[0].tolist() == [[0, 1], [2, 3]]
    assert bounds(field)[1].tolist() == [[9, 9], [9, 9]]
    assert dict_space((field,))["x"] == spaces.Box(np.array(low, "f4"), np.full((2, 2), 9, "f4"))
    assert box_space((field,)).low.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("number", [np.float32(-2), np.float64(-2), np.int64(-2), np.array(-2)])
def test_a_number_of_numpy_is_a_number(number: Any):
    assert Field("x", (3,), number, 4).low == -2.0
    assert bounds(Continuous("x", (3,), number))[0].tolist() == [-2.0] * 3


def test_bounds_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"x: low has shape \(3,\), the field \(2,\)"):
        Field("x", (2,), (0, 1, 2), 9)
    with pytest.raises(ValueError, match=r"x: high has shape \(2,\), the field \(\)"):
        Field("x", (), 0, (1, 2))
    with pytest.raises(ValueError, match=r"x: noop has shape \(3,\), the field \(2,\)"):
        Continuous("x", (2,), noop=(0, 0, 0))


def test_infinite_bounds_are_the_spaces_and_the_checked_range_is_the_kits():
    field = Field("x", (2,), -INF, (1, INF), checked=(-3, 4))
    assert box_space((field,)).low.tolist() == [-INF, -INF]
    assert box_space((field,)).high.tolist() == [1, INF]
    low, high = checked_bounds(field)
    assert (low.tolist(), high.tolist()) == ([-3, -3], [4, 4])
    assert game(field).roles[0].observation == (field,)


def test_without_a_checked_range_values_are_held_to_the_bounds():
    low, high = checked_bounds(Field("x", (2,), (0, 1), 4))
    assert (low.tolist(), high.tolist()) == ([0, 1], [4, 4])


@pytest.mark.parametrize(
    ("field", "complaint"),
    [
        (Field("x", (), 0), r"'x' has no finite bounds: \[0, inf\] \(infinite ones need real numbers and checked="),
        (Field("x", (2,), (0, -INF), 1), r"'x' has no finite bounds: \[-inf, 1\]"),
        (Field("x", (), np.nan, 1), "'x' has no finite bounds"),
        (Field("x", (2,), 0, (1, -1)), r"'x' has no finite bounds: \[0, -1\]"),
        (Field("x", (), 3, 2, checked=(0, 1)), r"'x' has no finite bounds: \[3, 2\]"),
        (Field("x", (), 0, INF, dtype="i8", checked=(0, 9)), "infinite ones need real numbers"),
        (Field("x", (), 0, INF, checked=(0, INF)), r"checked range of 'x' is \(0, inf\): give finite numbers"),
        (Field("x", (), 0, INF, checked=(5, 0)), r"checked range of 'x' is \(5, 0\)"),
    ],
)
def test_bounds_that_say_nothing_are_refused(field: Field, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        game(field)


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        (Continuous("x", (2,), (0, -1), (INF, 1)), r"'x' has no finite bounds: \[0, inf\]$"),
        (Continuous("x", (2,), (0, -1), 1, noop=(0, -2)), r"noop of 'x' is -2, not in \[-1, 1\]"),
        (Continuous("x", (2,), (0, 1), 2), r"noop of 'x' is 0, not in \[1, 2\]"),
        (Choice("x", 3, noop=-1), r"noop of 'x' is -1, not in \[0, 2\]"),
    ],
)
def test_an_action_without_finite_bounds_or_a_noop_inside_them_is_refused(action: Any, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        game(action=action)


def test_readers_see_the_outermost_bounds():
    rows = table_rows((Field("x", (2,), (-1, 0), 5), Field("y", (), -INF, INF, about="far", checked=(-3, 4))))
    assert (rows[0]["low"], rows[0]["high"]) == ("-1 (differs)", "5")
    assert (rows[1]["low"], rows[1]["high"]) == ("-inf", "inf")
    assert rows[1]["about"] == "far (in practice within [-3, 4])"


def test_each_number_of_an_action_has_bounds_and_a_noop_of_its_own():
    action = Continuous("x", (2, 2), ((-1, 0), (1, 2)), ((1, 2), (3, 4)), noop=((0, 1), (2, 3)))
    words, names, _ = word_table(game(action=action))
    assert names == ["x[0, 0]", "x[0, 1]", "x[1, 0]", "x[1, 1]"]
    assert (words["low"].tolist(), words["high"].tolist()) == ([-1, 0, 1, 2], [1, 2, 3, 4])
    assert words["noop_value"].tolist() == [0, 1, 2, 3]
    assert idle_words(game(action=action)).view("f8").tolist() == [0, 1, 2, 3]
    box: Any = action_space((action,), 2)
    assert (box.low.tolist(), box.high.tolist()) == ([-1, 0, 1, 2] * 2, [1, 2, 3, 4] * 2)


def test_actions_that_were_not_written_are_noops_element_by_element():
    sim = started(2)
    sim.step()
    assert sim.states["force"][:, 3:5].tolist() == [[[0.5, 2.0]] * 2] * 2


def test_the_dead_and_scripts_that_say_nothing_do_the_noop_element_by_element():
    sim = started(1, opponents={"red": "one"}, parameters={"leaver": 3})
    sim.step(idle_actions(sim))
    actions = idle_actions(sim)
    actions["carrier"]["force"][:] = (0.1, 0.1)
    sim.step(actions)
    assert sim.actions["carrier"]["force"][0].tolist() == [[0.5, 2.0], [0.5, 2.0]]  # one has left, one is a script's


@pytest.mark.parametrize(
    ("element", "value", "complaint"),
    [
        (0, 1.5, r"force\[0\] = 1.5 is not in \[-1, 1\]"),
        (0, -1.5, r"force\[0\] = -1.5 is not in \[-1, 1\]"),
        (1, -0.5, r"force\[1\] = -0.5 is not in \[0, 5\]"),
        (1, np.nan, r"force\[1\] = nan is not in \[0, 5\]"),
    ],
)
def test_a_number_outside_is_named_with_its_element_and_its_own_bounds(element: int, value: float, complaint: str):
    sim = started(1, out_of_range="raise")
    actions = idle_actions(sim)
    actions["carrier"]["force"][0, 0, element] = value
    with pytest.raises(ValueError, match=f"lane 0, blue_1: {complaint}"):
        sim.step(actions)


def test_random_players_stay_inside_the_bounds_of_each_element():
    sim = started(8, opponents={"red": "random", "blue": "random"})
    drawn = []
    for _ in range(12):
        sim.step()
        drawn.append(sim.actions["carrier"]["force"].reshape(-1, 2).copy())
    low, high = np.min(drawn, axis=(0, 1)), np.max(drawn, axis=(0, 1))
    assert ((np.array([-1, 0]) <= low) & (low < [-0.8, 0.5])).all()
    assert ((np.array([0.8, 4.5]) < high) & (high <= [1, 5])).all()
