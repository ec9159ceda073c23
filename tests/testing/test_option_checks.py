"""The check of options: one that decides nothing is seen, and one for files of the user's is left to their tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from games import duel

from palaestra import register
from palaestra.game import Game, Option, with_options
from palaestra.testing import check


@with_options(
    Option("level", None, "a file of the user's", texts=()),
    Option("decisions", 6, "of a match", low=1, high=9),
    Option("volume", 1, "nothing at all", low=1, high=9),
)
def loud_duel(options: Any) -> Game:
    return replace(duel.game(), name=f"Duel{options.decisions}", horizon=options.decisions)


@pytest.mark.check
def test_an_option_that_decides_nothing_fails_and_one_for_files_alone_is_left_out():
    register("test/LoudDuel-v0", loud_duel, family="test")
    report = check("test/LoudDuel-v0", "fast", only=["each_option_makes_a_difference"])
    assert [result.message for result in report.results if result.status == "FAILED"] == [
        "volume=2 makes no difference beside {}: leave it out or refuse it"
    ]


@with_options(
    Option("kind", "long", "of match", words=("long", "short", "free")),
    Option("cut", 0, "decisions less", low=0, high=3, only={"kind": "short"}),
    Option("decisions", 20, "of a match", low=1, high=30, only={"kind": "free"}),
)
def duel_of_a_kind(options: Any) -> Game:
    horizon = {"long": 9, "short": 6 - options.cut, "free": options.decisions}[options.kind]
    return replace(duel.game(), name=f"Duel{horizon}", horizon=horizon)


def test_an_option_that_is_given_is_left_out_where_another_one_needs_what_excludes_it():
    register("test/DuelOfAKind-v0", duel_of_a_kind, family="test")
    check("test/DuelOfAKind-v0", "fast", only=["each_option_makes_a_difference"], kind="short", cut=2).raise_if_failed()
