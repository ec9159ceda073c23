"""Keywords: checks, which refuse in the same words for every game and face, and near names for mistyped ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from string import Formatter
from typing import Any

import numpy as np

Words = Collection[str] | Callable[[str], Any]
"""The texts of a keyword that name nothing outside the game: all of them, or a function that knows one."""


def any_text(text: str) -> bool:
    """The `Words` of a keyword that is prose (a prompt) or a name of the game's own: no text of it is ever opened."""
    return True


def check_word(keyword: str, word: Any, words: Collection[str | None]) -> None:
    """Refuses what is none of the words.

    Raises:
        ValueError: Names keyword, word and choices, and the near one.
    """
    if not isinstance(word, str | None) or word not in words:
        near = nearest(word, filter(None, words)) if isinstance(word, str) else None
        hint = "" if near is None else f", did you mean {near!r}?"
        raise ValueError(f"{keyword} must be one of {', '.join(map(repr, words))}, got {word!r}{hint}")


def check_count(keyword: str, count: Any, low: int, high: int) -> None:
    """Refuses what is no integer in [low, high].

    Raises:
        ValueError: Names keyword, number and range.
    """
    if not isinstance(count, int | np.integer) or isinstance(count, bool) or not low <= count <= high:
        raise ValueError(f"{keyword} must be an integer from {low} to {high}, got {count!r}")


def check_flag(keyword: str, flag: Any) -> None:
    """Refuses what is neither True nor False.

    Raises:
        ValueError: Names keyword and value.
    """
    if not isinstance(flag, bool | np.bool_):
        raise ValueError(f"{keyword} must be True or False, got {flag!r}")


LONGEST_TEMPLATE = 100_000
"""Characters of a template."""
WIDEST = 1000
"""Characters to which a template may pad a field."""


def check_template(template: Any) -> None:
    """Refuses a template for `str.format` that could fill the memory: it may come out of the file of somebody else.

    Raises:
        ValueError: It is no text, its braces do not match, it is too long, or it pads a field to too many characters.
    """
    if not isinstance(template, str):
        raise ValueError(f"it is no text but {type(template).__name__}")
    if len(template) > LONGEST_TEMPLATE:
        raise ValueError(f"it has {len(template)} characters, at most {LONGEST_TEMPLATE} are possible")
    for _, field, form, _ in Formatter().parse(template):
        if form and ("{" in form or any(len(n) > 4 or int(n) > WIDEST for n in re.findall(r"\d+", form))):
            raise ValueError(f"its field {{{field}}} has the format {form[:20]!r}: give a width of up to {WIDEST}")


LONGEST_WORD = 100
"""Characters of a word that may be a mistyped name."""


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The name that a mistyped one may stand for: one that contains it, else one that looks like it, else None.

    Args:
        word: What was given.
        known: The names that there are.
        cutoff: How much alike names must look, 0 to 1; see `difflib.get_close_matches`.
    """
    if len(word) > LONGEST_WORD:
        return None
    names = list(known)
    containing = [name for name in names if len(word) > 2 and word.lower() in name.lower()]
    return next(iter(containing or difflib.get_close_matches(word, names, 1, cutoff)), None)


def picked_lanes(lanes: Any, num_envs: int) -> slice | np.ndarray:
    """What picks the lanes that a user names from arrays ``[N, ...]``; all of them if None.

    Raises:
        ValueError: Neither a bool mask ``[N]`` nor numbers of lanes.
    """
    if lanes is None:
        return slice(None)
    picked = np.atleast_1d(np.asarray(lanes, np.intp if np.size(lanes) == 0 else None))
    is_mask = picked.dtype == np.bool_ and picked.shape == (num_envs,)
    is_numbers = picked.dtype.kind in "iu" and picked.ndim == 1 and bool(((picked >= 0) & (picked < num_envs)).all())
    if not (is_mask or is_numbers):
        raise ValueError(f"lanes must be a bool mask [{num_envs}], or numbers from 0 to {num_envs - 1}, got {lanes!r}")
    return picked
