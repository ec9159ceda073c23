"""Checks of the structural keywords of a game's factory: what is refused, in the same words for every game."""

from __future__ import annotations

from typing import Any


def check_word(keyword: str, word: Any, words: tuple[str, ...]) -> None:
    """Refuses what is none of the words.

    Raises:
        ValueError: Names keyword, word and choices.
    """
    if word not in words:
        raise ValueError(f"{keyword} must be one of {', '.join(map(repr, words))}, got {word!r}")


def check_count(keyword: str, count: Any, low: int, high: int) -> None:
    """Refuses what is no integer in [low, high].

    Raises:
        ValueError: Names keyword, number and range.
    """
    if not isinstance(count, int) or not low <= count <= high:
        raise ValueError(f"{keyword} must be an integer from {low} to {high}, got {count!r}")
