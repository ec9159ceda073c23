"""Coins: which side is up?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from palaestra.game import TERMINATED, AgentView, Choice, Field, Game, Option, Role, TextSpace, integer, with_options

SIDES = ("heads", "tails")
ABILITY = "guessing"


def reset(s, world):
    """Tosses the coin."""
    s.side = integer(s, 2)


def step(s, world, actions, rewards, scratch):
    """Pays a right guess, then tosses again or ends."""
    rewards[0] = 1.0 if actions.guesser[0].side == s.side else 0.0
    s.side = integer(s, 2)
    return TERMINATED if s.steps >= world.coins else 0


def observe(s, world, observations, scratch):
    """Shows the number of guesses."""
    observations.guesser[0].guesses = s.steps


class Sides:
    """Says ``heads`` or ``tails``; anything else is heads."""

    total = True

    def observation_space(self, role: Role) -> TextSpace:
        return TextSpace(100, min_length=0, charset=None)

    def action_space(self, role: Role) -> TextSpace:
        return TextSpace(100, min_length=0, charset=None)

    def encode(self, view: AgentView) -> str:
        return "Which side is up? "

    def decode(self, view: AgentView, action: str) -> list[int]:
        return [int(action == "tails")]

    def info(self, view: AgentView) -> dict[str, Any]:
        return {"question": "Which side?", "answers": ["heads"], "path": []}


@with_options(
    Option("coins", 1, "guesses of a match", low=1, high=9),
    Option("form", "numbers", "how a guess is said", words=("numbers", "text")),
)
def game(options: Any) -> Game:
    """The rules."""
    fields = (Field("guesses", (), 0, 9, "1"),)
    return Game(
        name="Coins",
        roles=(Role("guesser", ("guesser_0",), fields, (Choice("side", 2, SIDES),)),),
        state=(("side", "i8"),),
        reset=reset,
        step=step,
        observe=observe,
        horizon=9,
        end_reasons=("guessed",),
        world=options.numbers,
        codecs={"text": Sides()},
        default_codec="text" if options.form == "text" else None,
    )


def write_sides(path: Path, game: Game, records: Iterable[np.void], title: str) -> None:
    """Writes which sides were up."""
    path.write_text("\n".join([title, *(SIDES[int(s["side"])] for s in records)]))


def split_keywords(keywords: Mapping[str, Any], split: str) -> dict[str, Any]:
    """All splits ask the same."""
    return {}


def find_seeds(sim: Any, n: int, first: int) -> list[int]:
    """Every seed asks."""
    return list(range(first, first + n))


def read_index(path: Path) -> Any:
    """Lines of a file."""
    return SimpleNamespace(passages=path.read_text().split("\n"))


def guessing_chance(coins: int) -> float:
    """Chance that all guesses are right."""
    return 0.5**coins
