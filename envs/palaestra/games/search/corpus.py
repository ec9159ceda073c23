"""Passages and the questions about them, as all sources give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple


class Passages(tuple[str, ...]):
    """Passages of a file, which may have names there.

    Attributes:
        ids: Of each passage, a text or a whole number as the file has it; empty where it gives none.
    """

    ids: tuple[str | int, ...]

    def __new__(cls, texts: Iterable[str], ids: Iterable[str | int] = ()) -> Passages:
        """See the attributes."""
        passages = super().__new__(cls, texts)
        passages.ids = tuple(ids)
        return passages

    def __getnewargs__(self) -> tuple[Any, ...]:
        """For pickles and copies."""
        return tuple(self), self.ids


def ids_of(passages: Sequence[str]) -> Sequence[str | int]:
    """The names that passages have in their file; empty where they have none."""
    return getattr(passages, "ids", ())


class Question(NamedTuple):
    """A question about a corpus.

    Attributes:
        text: The question.
        answers: All right answers, the one to show first; at least one, none empty.
        gold: Numbers of the passages that are needed, in the order of the path; may be empty.
        split: ``"train"``, ``"validation"`` or ``"test"``.
    """

    text: str
    answers: tuple[str, ...]
    gold: tuple[int, ...] = ()
    split: str = "train"


class Corpus(NamedTuple):
    """Passages and questions about them.

    Attributes:
        name: For messages.
        passages: The title, a line break and the text; the text alone, without a line break, where there is no title.
        questions: At least one.
    """

    name: str
    passages: tuple[str, ...]
    questions: tuple[Question, ...]
