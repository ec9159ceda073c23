"""Numbers in text, exactly, and the score of an answer; no environment is needed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

LONGEST_NUMBER = 100
"""Characters of a number that are read."""
MOST_DIGITS = 9
"""Digits of a number that are read, decimals counted; a longer one is no number. As of `math_rules.MOST_DIGITS`."""
NUMBER = re.compile(r"([+-]?) *(\d+(?:\.\d+)?|\.\d+)(?: */ *([+-]?) *(\d+))?", re.ASCII)
PLAIN = str.maketrans({"\N{MINUS SIGN}": "-", "\N{MULTIPLICATION SIGN}": "*", "\t": " ", "\n": " ", "\r": " "})
"""Signs as they are typeset, and white space, to those of `NUMBER`."""


def read_number(text: str) -> Fraction | None:
    """The number that a text says: ``7``, ``- 7 / 2``, ``-3.5``; None if it says none, or more than one.

    Signs and spaces are free; so are denominators that divide the numerator, or are negative. A number with a
    denominator 0 is none, and so is one of more than `MOST_DIGITS` digits: any text is read in little time.
    """
    text = text.strip()
    match = NUMBER.fullmatch(text.translate(PLAIN)) if len(text) <= LONGEST_NUMBER else None
    if match is None:
        return None
    sign, above, below_sign, below = match.group(1), match.group(2), match.group(3), match.group(4) or "1"
    if max(len(above.replace(".", "")), len(below)) > MOST_DIGITS or int(below) == 0:
        return None
    number = Fraction(above) / int(below)
    return -number if (sign == "-") != (below_sign == "-") else number


def score_answer(answer: str | None, entry: Mapping[str, Any]) -> float:
    """Whether an answer is exactly right, with the call of ``score_answer`` in reasoning-gym.

    Args:
        answer: The answer alone, as between ``<answer>`` and ``</answer>``; any text, or None.
        entry: ``entry["answer"]`` is the right one: the ``info`` of a match with text, or a dict of one's own.

    Returns:
        1.0 for a number that equals the right one (``4/6`` for ``2/3``), else 0.0.

    Raises:
        ValueError: The entry has no right answer that is a number.
    """
    right = read_number(str(entry.get("answer", "")))
    if right is None:
        raise ValueError(f'entry needs the right answer, {{"answer": "-7/2"}}, got answer={entry.get("answer")!r}')
    return float(answer is not None and read_number(answer) == right)
