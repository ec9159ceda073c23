"""One table of named quantities gives the memory layout, the spaces and the documentation."""

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given
from hypothesis import strategies as st

from palaestra.core.contract.fields import action_dtype, parameter_dtype, record_dtype, table_rows
from palaestra.core.contract.spaces import action_space, box_space, dict_space
from palaestra.game import Choice, Continuous, Field, Parameter

PILOT = (
    Field("altitude_m", (), 0.0, 20_000.0, "m", "height above sea level"),
    Field("velocity_mps", (3,), -900.0, 900.0, "m/s"),
)
MIXED = (*PILOT, Field("target", (), 0, 7, dtype="i8"))


def test_a_float32_record_is_the_flat_vector():
    records = np.zeros(2, record_dtype(PILOT))
    records["altitude_m"] = 5.0
    records["velocity_mps"] = [1.0, 2.0, 3.0]
    np.testing.assert_array_equal(records.view("f4").reshape(2, 4), [[5, 1, 2, 3]] * 2)


def test_the_flat_box_has_the_bounds_of_each_number():
    box = box_space(PILOT)
    assert box == spaces.Box(np.array([0, -900, -900, -900], "f4"), np.array([20_000, 900, 900, 900], "f4"))
    assert box.dtype == np.float32


def test_the_dict_has_one_box_a_field():
    assert dict_space(MIXED) == spaces.Dict(
        {
            "altitude_m": spaces.Box(0, 20_000, (1,), np.float32),
            "velocity_mps": spaces.Box(-900, 900, (3,), np.float32),
            "target": spaces.Box(0, 7, (1,), np.int64),
        }
    )


def test_fields_of_different_dtypes_have_no_flat_vector():
    with pytest.raises(ValueError, match=r'velocity_mps:f4, target:i8.*observation="dict"'):
        box_space(MIXED)


def test_a_refusal_names_each_field_once_however_many_agents_have_it():
    with pytest.raises(ValueError, match=r"\(altitude_m:f4, velocity_mps:f4, target:i8\)"):
        box_space(MIXED * 3)


def test_every_word_of_an_action_has_eight_bytes():
    dtype = action_dtype((Choice("move", 5), Continuous("thrust", (2,))))
    assert dtype == np.dtype([("move", "i8"), ("thrust", "f8", (2,))])


@pytest.mark.parametrize(
    ("fields", "agents", "expected"),
    [
        ((Choice("move", 5),), 1, spaces.Discrete(5)),
        ((Choice("move", 5),), 2, spaces.MultiDiscrete([5, 5])),
        ((Choice("move", 5), Choice("fire", 2)), 1, spaces.MultiDiscrete([5, 2])),
        ((Choice("move", 5), Choice("fire", 2)), 2, spaces.MultiDiscrete([5, 2, 5, 2])),
        (
            (Continuous("turn"), Continuous("thrust", (2,), 0.0, 3.0)),
            1,
            spaces.Box(np.array([-1, 0, 0], "f4"), np.array([1, 3, 3], "f4")),
        ),
        ((Continuous("turn", (), -2.0, 2.0),), 2, spaces.Box(-2, 2, (2,))),
        (
            (Choice("fire", 2), Continuous("aim")),
            1,
            spaces.Dict({"fire": spaces.Discrete(2), "aim": spaces.Box(-1, 1, ())}),
        ),
        (
            (Choice("fire", 2), Continuous("aim", (3,))),
            2,
            spaces.Dict({"fire": spaces.MultiDiscrete([2, 2]), "aim": spaces.Box(-1, 1, (2, 3))}),
        ),
    ],
)
def test_the_space_of_actions_is_the_natural_one(fields, agents: int, expected: spaces.Space):
    assert action_space(fields, agents) == expected


def test_parameters_are_float64():
    assert parameter_dtype((Parameter("horizon", 5), Parameter("speed", 1.5))) == np.dtype(
        [("horizon", "f8"), ("speed", "f8")]
    )


def test_tables_for_people_say_what_the_spaces_say():
    rows = table_rows((*PILOT, Choice("fire", 2, ("hold", "shoot")), Parameter("speed", 1.5, 0, 9, "m/s", "of sound")))
    assert rows[0] == {
        "name": "altitude_m", "shape": "", "low": "0", "high": "20000", "unit": "m", "about": "height above sea level",
    }  # fmt: skip
    assert rows[1]["shape"] == "3"
    assert (rows[2]["low"], rows[2]["high"], rows[2]["about"]) == ("0", "1", "0 hold, 1 shoot")
    assert rows[3]["about"] == "of sound (default 1.5)"


@given(st.floats(-1e6, 1e6), st.floats(0, 1e6), st.floats(0, 1))
def test_a_float64_inside_its_bounds_is_inside_the_float32_space(low: float, width: float, share: float):
    field = Field("x", (), low, low + width)
    record = np.zeros(1, record_dtype((field,)))
    record["x"] = min(max(low + share * width, low), low + width)
    assert box_space((field,)).contains(record.view("f4"))


def test_a_bound_that_only_float64_sets_is_shown_as_no_limit():
    rows = table_rows([Parameter("horizon", 50, 1, 2**53, "decisions"), Field("x_m", (), -np.inf, np.inf, "m")])
    assert [(row["low"], row["high"]) for row in rows] == [("1", "no limit"), ("-inf", "inf")]
