"""Passages and the questions about them, as all sources give them."""

from __future__ import annotations

from typing import NamedTuple


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
