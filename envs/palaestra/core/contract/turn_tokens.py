"""Tokens of turns: how a small language model, with a vocabulary of some hundred tokens, reads and writes matches.

A codec of texts that has them gives them as ``turn_tokens(game)``, see `palaestra.game.Codec`. A match is::

    question | turn | what it found | turn | what it found | ... | turn

`MARKS` have the same numbers in all families; the words of a family follow them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

PAD, BOS, *VERBS, END, INFO, INFO_END, TOLD, DOT, GOOD, BAD = range(12)
"""Padding; the beginning of a question; three that a family may begin turns with; the end of a turn; around what a turn
found; the beginning of a prefix before a question; a filler that says nothing; labels of turns."""
MARKS = range(12)
FIRST_WORD = len(MARKS)
"""Tokens of a family's words begin here."""


class TurnTokens(Protocol):
    """Translates between the arrays of N matches and tokens.

    What is remembered of matches between turns is an int64 array ``memory [N, M]``, which the caller keeps.

    Attributes:
        vocabulary: Number of tokens.
        turns: Most turns of a match.
        question_size: Tokens of a question, paddings counted.
        turn_size: Most tokens of a turn.
        found_size: Tokens of what a turn found, paddings counted.
    """

    vocabulary: int
    turns: int
    question_size: int
    turn_size: int
    found_size: int

    @property
    def special(self) -> Sequence[int]:
        """Tokens that are no words of the game; a plain attribute will do."""
        ...

    def new_memory(self, lanes: int) -> np.ndarray:
        """The memory of matches of which nothing was read, int64 ``[N, M]``."""
        ...

    def questions(self, observations: np.ndarray, memory: np.ndarray, /) -> np.ndarray:
        """The questions int64 ``[N, question_size]`` of first observations ``[N, n]``; writes into the memory."""
        ...

    def passages(self, observations: np.ndarray, memory: np.ndarray, /) -> np.ndarray:
        """What the last turns found, int64 ``[N, found_size]``; writes into the memory."""
        ...

    def is_complete(self, turn: Sequence[int]) -> bool:
        """Whether the tokens of a turn are all of it."""
        ...

    def actions(self, turns: np.ndarray, memory: np.ndarray, /) -> np.ndarray:
        """Turns int64 ``[N, L]`` as the environment takes them, int64 ``[N, K]``."""
        ...

    def demonstration(self, records: Any, number: int) -> np.ndarray:
        """Right turns of this number, int64 ``[N, turn_size]``; paddings where a match has fewer.

        Args:
            records: Match records ``[N]``.
            number: Of the turn, from 0.
        """
        ...


def packed(tokens: np.ndarray, width: int) -> np.ndarray:
    """The tokens of each row that are not 0, in their order, ``[N, width]``."""
    order = np.argsort(tokens == PAD, axis=1, kind="stable")
    return np.take_along_axis(tokens, order, 1)[:, :width]
