"""Keywords of a factory that no game can be made from, and those that several factories share."""

import re
from typing import Any

import numpy as np
import pytest
from games import duel
from games.play import simulation

from palaestra.core.compile.batch_loop import CALLER
from palaestra.core.contract.keywords import check_count, check_flag, check_word, nearest, picked_lanes
from palaestra.game import check_template


def test_a_word_that_is_no_choice_is_refused_with_the_choices():
    with pytest.raises(ValueError, match=r"^reward must be one of 'dense', 'sparse', got 'shaped'$"):
        check_word("reward", "shaped", ("dense", "sparse"))
    check_word("reward", "sparse", ("dense", "sparse"))


@pytest.mark.parametrize("count", [0, 17, 2.0, "2", None])
def test_what_is_no_integer_in_the_range_is_refused_with_the_range(count: Any):
    with pytest.raises(ValueError, match=f"^agents must be an integer from 1 to 16, got {count!r}$"):
        check_count("agents", count, 1, 16)


@pytest.mark.parametrize("count", [1, 16])
def test_both_ends_of_the_range_are_allowed(count: int):
    check_count("agents", count, 1, 16)


@pytest.mark.parametrize("flag", [0, 1, None, "", "no", "True", []])
def test_what_is_neither_true_nor_false_is_no_flag(flag: Any):
    with pytest.raises(ValueError, match=f"^copy must be True or False, got {re.escape(repr(flag))}$"):
        check_flag("copy", flag)


def test_a_truth_value_is_no_count():
    with pytest.raises(ValueError, match=r"^agents must be an integer from 0 to 16, got True$"):
        check_count("agents", True, 0, 16)
    check_count("agents", np.int64(3), 0, 16)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("cone", "cone_half_angle_deg"),
        ("codek", "codec"),
        ("player", "players"),
        ("version", None),
        ("xy", None),
        ("Trian", "train"),
    ],
)
def test_a_mistyped_name_is_the_one_that_contains_it_or_looks_like_it(word: str, name: str | None):
    assert nearest(word, ["train", "codec", "cone_half_angle_deg", "players"]) == name


@pytest.mark.parametrize("lanes", [[3], [-1], [0.5], [True], [[0]], "0", 5, [[True, False, True]], np.ones(4, bool)])
def test_lanes_that_are_not_there_are_refused(lanes: Any):
    with pytest.raises(ValueError, match=r"^lanes must be a bool mask \[3\], or numbers from 0 to 2, got"):
        picked_lanes(lanes, 3)
    sim = simulation(duel.game(), 3, compiled=False)
    for verb in (lambda: sim.set_opponent("blue", "presser", lanes), lambda: sim.set_parameters(lanes, horizon=3)):
        with pytest.raises(ValueError, match=r"^lanes must be"):
            verb()
    assert (sim.states["assigned_player"] == CALLER).all()


@pytest.mark.parametrize(
    ("lanes", "changed"),
    [(None, [0, 1, 2]), ([2, 0], [0, 2]), ([True, False, True], [0, 2]), (1, [1]), ([], []), (np.uint8(2), [2])],
)
def test_lanes_are_named_by_a_mask_or_by_numbers(lanes: Any, changed: list[int]):
    sim = simulation(duel.game(), 3, compiled=False, parameters={"horizon": 9})
    sim.set_parameters(lanes, horizon=3)
    assert np.flatnonzero(sim.parameters["horizon"] == 3).tolist() == changed


@pytest.mark.parametrize(
    "template",
    [
        *("{question:>999999999}", "{question:1001}", "{question:.99999f}", "{turns:{question}}", "{question!r:٩٩٩٩}"),
        *("{question", "x" * 100_001, 5, None, ["{question}"]),
    ],
)
def test_a_template_that_could_fill_the_memory_is_refused(template: Any):
    with pytest.raises(ValueError, match=r"characters|width|text|expected"):
        check_template(template)


@pytest.mark.parametrize(
    "template", ["", "{question:>90} {turns:3} {{x:>9999}} {question!r:.1000}", "a/b.c: {question}"]
)
def test_a_template_is_padded_as_far_as_a_page_is_wide(template: str):
    check_template(template)
