"""Entity tables: rows of records for kernels, one Box for learners, a row a column for readers."""

from typing import Any

import numpy as np
import pytest
from games.orchard import started
from games.play import idle_actions
from gymnasium import spaces

from palaestra.core.contract.fields import bounds, checked_bounds, part_names, record_dtype, table_rows, values_of
from palaestra.core.contract.spaces import box_space, dict_space
from palaestra.game import Choice, Continuous, Field, Game, Role, Table

pytestmark = pytest.mark.jitless

HIT_POINTS = Field("hit_points", (), 0, 100, "1", "left")
OFFSET = Field("offset_m", (2,), (-5, -9), 5, "m", "from me")
UNITS = Table("units", 3, (HIT_POINTS, OFFSET), "nearest first", capacity=7)
SPEED = Field("speed", (), 0, 1)
SPEED_TOO = Field("speed_too", (3,), 0, 1)
BY_AGENT = Field("f", (2,), 0, 1, parts=(("x", "y"), ("left", "right")))
INF = float("inf")


def test_kernels_have_a_record_a_row_at_capacity():
    records = np.zeros(2, record_dtype((SPEED, UNITS)))
    assert records["units"]["hit_points"].shape == (2, 7)
    assert records["units"]["offset_m"].shape == (2, 7, 2)
    assert np.zeros(2, record_dtype((SPEED, UNITS), visible=True))["units"]["hit_points"].shape == (2, 3)


def test_values_are_a_view_with_the_columns_side_by_side():
    records: Any = np.zeros((2, 4), record_dtype((SPEED, UNITS, SPEED_TOO), visible=True))
    records["units"]["hit_points"][1, 2] = [50, 60, 70]
    records["units"]["offset_m"][1, 2, :, 1] = [1, 2, 3]
    values = values_of(records, UNITS)
    assert values.shape == (2, 4, 3, 3)
    assert values[1, 2].tolist() == [[50, 0, 1], [60, 0, 2], [70, 0, 3]]
    assert not values[0].any()
    assert np.shares_memory(values, records)
    assert values_of(records, SPEED).shape == (2, 4)


def test_a_table_is_one_box_with_the_bounds_of_each_column():
    box = dict_space((SPEED, UNITS))["units"]
    low, high = [[0, -5, -9]] * 3, [[100, 5, 5]] * 3
    assert box == spaces.Box(np.array(low, "f4"), np.array(high, "f4"))
    assert (UNITS.shape, UNITS.size, UNITS.width) == ((3, 3), 9, 3)
    two: Any = dict_space((UNITS,), count=2)["units"]
    assert two.shape == (2, 3, 3)
    np.testing.assert_array_equal(two.low[1], low)


def test_a_table_lies_in_the_flat_vector_row_after_row():
    box = box_space((SPEED, UNITS))
    assert box.low.tolist() == [0, *[0, -5, -9] * 3]
    assert box.high.tolist() == [1, *[100, 5, 5] * 3]


def test_bounds_of_columns_of_any_shape_are_flattened():
    table = Table("t", 2, (Field("m", (2, 2), ((0, 1), (2, 3)), 9), Field("x", (), -1, 1)))
    low, high = bounds(table)
    assert low.tolist() == [[0, 1, 2, 3, -1]] * 2
    assert high.tolist() == [[9, 9, 9, 9, 1]] * 2


def test_columns_may_be_infinite_where_they_are_checked():
    table = Table("t", 2, (Field("x", (), -INF, INF, checked=(-3, 4)), SPEED))
    assert checked_bounds(table)[0].tolist() == [-3, 0]
    assert checked_bounds(table)[1].tolist() == [4, 1]


def test_readers_see_the_table_and_its_columns():
    rows = table_rows((SPEED, UNITS, Table("fixed", 2, (SPEED,), "what stays", at="reset")))
    assert [r["name"] for r in rows] == [
        "speed", "units", "units.hit_points", "units.offset_m", "fixed", "fixed.speed",
    ]  # fmt: skip
    assert rows[1] == {"name": "units", "shape": "3x3", "low": "", "high": "", "unit": "", "about": "nearest first"}
    assert rows[2] == {
        "name": "units.hit_points", "shape": "", "low": "0", "high": "100", "unit": "1", "about": "left",
    }  # fmt: skip
    assert (rows[3]["shape"], rows[3]["low"], rows[3]["high"]) == ("2", "-9 (differs)", "5")
    assert rows[4]["about"] == "what stays (fixed during a match)"


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Table("t", 2, (SPEED, Field("n", (), 0, 1, dtype="i8"))), "t: the columns of a table share one dtype"),
        (lambda: Table("t", 5, (SPEED,), capacity=4), "t: capacity 4 does not hold 5 rows"),
        (lambda: Table("t", 5, (Field("x", (2,), 0, 1, capacity=3),)), "belong to the table, not to a column"),
        (lambda: Table("t", 5, (Field("x", (), 0, 1, at="reset"),)), "belong to the table, not to a column"),
        (lambda: Table("t", 5, (Field("x", (), 0, 1, world="x"),)), "belong to the table, not to a column"),
        (lambda: Field("f", (4, 2), 0, 1, parts=("x",)), r"f: 1 parts for the shape \(4, 2\)"),
        (lambda: Continuous("c", (2,), parts=("x",)), r"c: 1 parts for the shape \(2,\)"),
        (lambda: Field("f", (2,), 0, 1, parts=(("x", "y"), ("x",))), r"f: 1 parts for the shape \(2,\)"),
        (lambda: Role("r", ("r_0",), (BY_AGENT,), ()), "f: parts of 2 agents for a role of 1"),
        (lambda: Field("f", (4,), 0, 1, capacity=3), r"f: capacity 3 does not hold the shape \(4,\)"),
        (lambda: Field("f", (4, 2), 0, 1, capacity=(5, 1)), r"f: capacity \(5, 1\) does not hold the shape \(4, 2\)"),
        (lambda: Field("f", (4, 2), 0, 1, capacity=(5,)), r"f: capacity \(5,\) does not hold the shape \(4, 2\)"),
        (lambda: Choice("c", 4, capacity=3), "c: capacity 3 does not hold 4 alternatives"),
        (lambda: Choice("c", 4, candidates=0), "c: a list of candidates has room for at least 1, got 0"),
        (lambda: Choice("c", 4, candidates=2, capacity=8), "c: a list of candidates needs no capacity"),
    ],
)
def test_a_table_that_cannot_be_is_refused(make: Any, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        make()


def test_parts_are_names_of_all_agents_or_of_each():
    assert part_names(Field("f", (2,), 0, 1, parts=("x", "y")), 1) == ("x", "y")
    assert part_names(BY_AGENT, 1) == ("left", "right")
    assert part_names(SPEED, 0) == ()


def test_a_column_without_bounds_is_refused_by_the_game():
    nothing = lambda *arguments: 0  # noqa: E731
    table = Table("units", 2, (SPEED, Field("x", (2,), 0)))
    role = Role("walker", ("red_0",), (table,), (Choice("move", 2),))
    with pytest.raises(ValueError, match=r"'x' has no finite bounds: \[0, inf\]"):
        Game("Tiny", (role,), (), reset=nothing, step=nothing, observe=nothing)


def test_rows_that_are_not_written_are_zero_in_every_decision():
    sim = started(2, parameters={"leaver": 1})
    for _ in range(2):
        sim.step(idle_actions(sim))
    rows = values_of(sim.buffers.observations["picker"], sim.game.roles[0].observation[4])
    assert rows[0, 0].tolist() == [[0, 0, 2], [1, 0, 2]]
    assert not rows[:, 1].any()  # it has left
