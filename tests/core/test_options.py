"""Options: what a table of keywords makes of a factory, and what it refuses."""

from __future__ import annotations

import inspect
import pickle
import re
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import pytest
from games import duel
from games.named_level import named_level

import palaestra
from palaestra import registry
from palaestra.core.contract import factories
from palaestra.core.contract.file_keywords import refusal
from palaestra.core.contract.options import declared_words, options_of
from palaestra.game import Game, Option, any_text, with_options
from palaestra.pages import docstring
from palaestra.registry import make_game

TASK = Option("task", "sum", "what is asked", words=("sum", "product"))
LARGEST = Option("largest", 9, "of the numbers", low=2, high=49)
SHARED = (TASK, LARGEST)


@with_options(
    *SHARED,
    Option("steps", (2, 4), "how many", low=1, high=8, is_span=True),
    Option("share", 0.5, "that is shown", low=0.0, high=1.0),
    Option("hints", False, "whether there are any"),
    Option("hint", "none", "which one", words=("none", "first"), only={"hints": True}),
    Option("split", "train", "of the questions; None has all", words=("train", "test", None)),
    Option("turns", None, "twice the steps by default", low=1, high=64, otherwise=lambda above: 2 * above["steps"][1]),
    Option("seed", None, "an even number", check=lambda value, above: even(value), example=4),
)
def asked(options: Any) -> Any:
    return options


def even(value: Any) -> int:
    if value % 2:
        raise ValueError(f"seed must be even, got {value}")
    return value // 2


def test_a_factory_gets_the_values_of_all_its_options_by_name():
    assert asked()._asdict() == {
        "task": "sum", "largest": 9, "steps": (2, 4), "share": 0.5, "hints": False, "hint": "none", "split": "train",
        "turns": 8, "seed": None,
    }  # fmt: skip
    given = asked("product", steps=3, share=1, split=None, turns=np.int64(5), hints=np.True_, hint="first", seed=6)
    assert given == ("product", 9, (3, 3), 1.0, True, "first", None, 5, 3)
    assert [type(given.share), type(given.turns), type(given.hints)] == [float, int, bool]


def test_none_is_the_default_where_it_is_no_value_of_its_own():
    assert asked(task=None, steps=None, hints=None, turns=None) == asked()
    assert asked(split=None).split is None


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"task": "prodct"}, "task must be one of 'sum', 'product', got 'prodct', did you mean 'product'?"),
        ({"task": 3}, "task must be one of 'sum', 'product', got 3"),
        ({"task": ["sum"]}, "task must be one of 'sum', 'product', got ['sum']"),
        ({"largest": 1}, "largest must be an integer from 2 to 49, got 1"),
        ({"largest": 50}, "largest must be an integer from 2 to 49, got 50"),
        ({"largest": 9.0}, "largest must be an integer from 2 to 49, got 9.0"),
        ({"largest": True}, "largest must be an integer from 2 to 49, got True"),
        ({"largest": "9"}, "largest must be an integer from 2 to 49, got '9'"),
        ({"share": 1.5}, "share must be a number from 0 to 1, got 1.5"),
        ({"share": float("nan")}, "share must be a number from 0 to 1, got nan"),
        ({"share": False}, "share must be a number from 0 to 1, got False"),
        ({"steps": (3, 2)}, "steps must be an integer from 1 to 8, or the fewest and the most, got (3, 2)"),
        ({"steps": (1, 9)}, "steps must be an integer from 1 to 8, or the fewest and the most, got (1, 9)"),
        ({"steps": (1, 2, 3)}, "steps must be an integer from 1 to 8, or the fewest and the most, got (1, 2, 3)"),
        ({"hints": 1}, "hints must be True or False, got 1"),
        ({"hints": "no"}, "hints must be True or False, got 'no'"),
        ({"hint": "first"}, "hint='first' means nothing with hints=False: leave it out"),
        ({"seed": 3}, "seed must be even, got 3"),
    ],
)
def test_what_an_option_cannot_be_is_refused_with_what_it_can(keywords: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        asked(**keywords)


@pytest.mark.parametrize(("meant", "fits"), [(3, [3]), ((2, 3), [2, 3]), (lambda n: n > 2, [3, 4]), (None, [])])
def test_an_option_means_something_beside_a_value_one_of_several_or_what_is_true_for_it(meant: Any, fits: list[int]):
    number = Option("number", 5, "beside", low=1, high=9)
    factory = with_options(number, Option("deep", False, "beside it", only={"number": meant}))(lambda options: options)
    for value in (2, 3, 4):
        if value in fits:
            assert factory(number=value, deep=True).deep
        else:
            with pytest.raises(ValueError, match=f"means nothing with number={value}"):
                factory(number=value, deep=True)
    assert not factory(number=1, deep=False).deep  # the default says nothing


def test_rules_read_the_numbers_of_words_flags_and_nothing():
    numbers = asked(task="product", split=None, hints=True).numbers
    assert numbers._asdict() == {
        "task": 1, "largest": 9, "steps": (2, 4), "share": 0.5, "hints": 1, "hint": 0, "split": -1, "turns": 8,
    }  # fmt: skip
    assert pickle.loads(pickle.dumps(numbers)) == numbers
    assert type(numbers) is type(asked().numbers)


def test_the_table_is_the_signature():
    parameters = inspect.signature(asked).parameters
    assert parameters["task"].annotation == Literal["sum", "product"]
    assert [parameters[name].annotation for name in ("largest", "share", "hints")] == [int, float, bool]
    assert [parameters[name].default for name in ("task", "steps", "turns")] == ["sum", (2, 4), None]
    with pytest.raises(TypeError, match="unexpected keyword argument 'rewards'"):
        asked(rewards="dense")
    assert pickle.loads(pickle.dumps(asked)) is asked
    assert options_of(partial(asked, largest=4))[:2] == SHARED
    assert options_of(print) == ()


def test_the_row_of_a_page_tells_default_values_and_unit():
    rows = [option.row() for option in options_of(asked)]
    assert [row["values"] for row in rows] == [
        '`"sum"`, `"product"`', "2 to 49", "1 to 8, or fewest and most", "0 to 1", "`True`, `False`",
        '`"none"`, `"first"`', '`"train"`, `"test"`, `None`', "1 to 64", "",
    ]  # fmt: skip
    assert rows[5]["about"] == "which one; only with `hints=True`"
    assert [row["default"] for row in rows[:3]] == ['`"sum"`', "`9`", "`(2, 4)`"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"default": 3},
        {"default": "a", "words": ("b",)},
        {"default": True, "words": ("a",)},
        {"default": 3, "low": 1},
        {"default": 3, "low": 4, "high": 5},
        {"default": "a", "words": ("a",), "low": 1, "high": 2},
    ],
)
def test_an_option_that_says_too_little_or_contradicts_itself_is_refused(arguments: dict[str, Any]):
    with pytest.raises(ValueError, match=r"'size'|size must be"):
        Option("size", about="of something", **arguments)


@pytest.mark.parametrize("table", [(TASK, TASK), (replace(TASK, only={"form": "text"}),)])
def test_a_table_whose_names_do_not_fit_is_refused(table: tuple[Option, ...]):
    with pytest.raises(ValueError, match="names of options stand once"):
        with_options(*table)


def test_texts_that_may_name_files_are_declared_by_the_table():
    assert declared_words(asked) == dict.fromkeys(
        ("task", "largest", "steps", "share", "hints", "hint", "split", "turns"), any_text
    )
    declared = declared_words(named_level)
    assert refusal({"level": "maze", "greeting": "/etc/passwd", "size": 4}, declared) is None
    assert refusal({"level": "passwd"}, declared) is not None
    assert declared_words(print) == {}


@with_options(replace(LARGEST, default=4), Option("reward", "sparse", "paid", words=("dense", "sparse")))
def shared_duel(options: Any) -> Game:
    return replace(duel.game(), name=f"Duel{options.largest}{options.reward.capitalize()}")


def test_registered_ids_have_options_as_structural_keywords_and_refuse_others():
    palaestra.register("test/SharedDuel-v0", shared_duel, family="test", largest=5)
    assert make_game("test/SharedDuel-v0", reward="dense")[0].name == "Duel5Dense"
    assert make_game("test/SharedDuel-v0", reward=None)[0].name == "Duel5Sparse"
    with pytest.raises(TypeError, match=r"[Dd]id you mean 'reward'"):
        make_game("test/SharedDuel-v0", rewards="dense")


def test_every_keyword_of_our_factories_is_an_option_with_a_text_and_a_line_of_its_page():
    for row in registry.ROWS.values():
        if row.id.startswith("palaestra/"):
            factory: Any = factories.load(row.factory)
            table = options_of(factory)
            assert [option.name for option in table] == list(inspect.signature(factory).parameters), row.id
            assert all(len(option.about) > 5 for option in table), row.id
            assert not table or "<!-- table: options -->" in docstring(row.id), row.id
