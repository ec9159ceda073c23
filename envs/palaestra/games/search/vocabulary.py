"""How text becomes words: lower case, runs of Unicode letters and digits; no stop words, no stemming.

A letter or digit is what `str.isalnum` says. Combining marks (category M: vowels of Hindi and Tamil, Arabic's shadda,
accents) and the two joiners continue a word, as in Unicode's text segmentation (UAX 29, WB4). So ``e`` and U+0301 are
another word than the composed character: text should be in composed form (NFC), as most text is. Scripts without blanks
are not segmented: a run of Chinese or Thai is one word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, count, islice, repeat

import numpy as np

UNKNOWN = -1
"""Id of all words that are not in the vocabulary."""
BETWEEN, END = "\0", -2
"""Stands behind each text of a batch, and its id; no letter, so that no text has it as a word."""
AT_ONCE = 4096
"""Texts whose words are in memory at the same time."""

PLACES_OF_MARKS = range(0x300, 0x1E94B), range(0xE0100, 0xE01F0)
"""Code points among which all combining marks are, and the joiners."""
JOINERS = "\u200c\u200d"
ASCII = bytes(ord(c.lower() if c.isalnum() or c == BETWEEN else " ") for c in map(chr, range(128))).ljust(256)
"""What stands for each byte of a text of ASCII."""


class Vocabulary:
    """Ids of words, in the order in which they came.

    Example::

        vocabulary = Vocabulary()
        vocabulary.learn(["The cat.", "A cat!"])  # words [0, 1, 2, 1], starts [0, 2, 4]
        vocabulary.encode(["the dog"])  # words [0, -1], starts [0, 2]
    """

    def __init__(self, words: Iterable[str] = ()) -> None:
        """Gives word k of ``words``, which are all different, the id k."""
        self._ids = {BETWEEN: END, **dict(zip(words, count()))}

    def __len__(self) -> int:
        """Number of words."""
        return len(self._ids) - 1

    def __iter__(self) -> Iterator[str]:
        """The words by id."""
        return islice(self._ids, 1, None)

    def encode(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The words of Q texts.

        Returns:
            Ids int32 ``[W]``, `UNKNOWN` among them, and starts int64 ``[Q + 1]``: text q has
            ``ids[starts[q]:starts[q + 1]]``.
        """
        if len(texts) == 1:  # the usual case, in a tenth of the time
            words = split(texts[0].replace(BETWEEN, " "))
            return np.array([self._ids.get(w, UNKNOWN) for w in words], np.int32), np.array([0, len(words)], np.int64)
        parts = [np.fromiter(map(self._ids.get, words, repeat(UNKNOWN)), np.int32, len(words)) for words in _in(texts)]
        return _apart(parts)

    def ids_of(self, words: Sequence[str]) -> list[int]:
        """Ids of words, each in lower case as `split` gives it."""
        return [UNKNOWN if word == BETWEEN else self._ids.get(word, UNKNOWN) for word in words]

    def add(self, words: Iterable[str]) -> None:
        """Gives words that are unknown the next ids, as they are."""
        for word in words:
            self._ids.setdefault(word, len(self))

    def learn(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The words of Q texts, of which unknown ones get the next ids; see `encode`."""
        ids = defaultdict(count(len(self)).__next__, self._ids)
        parts = [np.fromiter(map(ids.__getitem__, words), np.int32, len(words)) for words in _in(texts)]
        self._ids = dict(ids)
        return _apart(parts)


def split(text: str) -> list[str]:
    """The words of a text; `BETWEEN` is one, too.

    A table of bytes and `str.split` are the fastest way for ASCII.
    """
    if text.isascii():
        return text.encode().translate(ASCII).decode().split()
    return _word().findall(text.lower().replace("_", " "))


def matches(text: str) -> Iterator[re.Match[str]]:
    """The words of a text with their places, in the case that they have."""
    return _word().finditer(text.replace("_", " "))


@cache
def _word() -> re.Pattern[str]:
    """A letter or digit and what continues its word; the first text that is no ASCII looks for the marks."""
    marks = (c for c in map(chr, chain(*PLACES_OF_MARKS)) if unicodedata.category(c)[0] == "M")
    return re.compile(rf"\w[\w{''.join(marks)}{JOINERS}]*|{BETWEEN}")


def _in(texts: Sequence[str]) -> Iterator[list[str]]:
    """The words of some texts at a time, `BETWEEN` behind each text."""
    for first in range(0, len(texts), AT_ONCE):
        some = texts[first : first + AT_ONCE]
        together = f" {BETWEEN} ".join([*some, ""])
        if together.count(BETWEEN) != len(some):
            together = f" {BETWEEN} ".join([*(text.replace(BETWEEN, " ") for text in some), ""])
        yield split(together)


def _apart(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Ids without `END`, and where the texts start."""
    ids = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    ends = np.flatnonzero(ids == END)
    return ids[ids != END], np.concatenate([[0], ends - np.arange(len(ends))]).astype(np.int64)
