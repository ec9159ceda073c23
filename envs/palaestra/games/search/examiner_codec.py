"""``form="text"`` of Examiner: turns of examiner and student as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from palaestra.game import AgentView, Role, TextSpace
from palaestra.games.search.examiner_turns import REFUSALS
from palaestra.games.search.language import NO_WORD
from palaestra.games.search.library import WORDS
from palaestra.games.search.queries import QueryTooLongError, split_query
from palaestra.games.search.sources import Texts
from palaestra.games.search.turn_codec import (
    LONGEST_TURN,
    QUESTION,
    READ_CHARACTERS,
    TOOLS,
    TurnCodec,
    fresh_answers,
    fresh_path,
    parse,
    question_of,
    sample_turn,
    words_of,
)
from palaestra.games.search.turns import AT_START, NONE, TOO_LONG
from palaestra.games.search.vocabulary import split

EXAMINER_TAGS = ("none", "search", QUESTION)
"""Tags of the examiner's turns, in the order of its verbs."""
EXAMINER_PROMPT = (
    "Ask a question that is hard to answer, over facts that you have read. Think between <think> and </think> before"
    " you act. To read, write a query between <search> and </search>; the passages that fit best come back between"
    " <information> and </information>. Then write the question between <question> and </question>: one to four"
    " relations, the last one first, and the name where the path begins, as in: What is the mayor of the birthplace of"
    " Velka Arnev? Nobody may be visited twice. You have {turns} turns and {words} words for queries and the question."
    "\n\nStart: {start}\n"
)
EXAMINER_REFUSAL = (
    "\n\nThis turn said nothing: write a query between <search> and </search>, or the question between <question> and"
    " </question>.\n\n"
)


class ExaminerSide(TurnCodec):
    """The examiner's turns and observations."""

    _tags = EXAMINER_TAGS

    def _turn(self, action: str) -> tuple[int, list[int]]:
        """Verb, and the words' numbers in the vocabulary."""
        tag, content = parse(action, EXAMINER_TAGS[1:])
        if tag == QUESTION:
            words = split(content[:READ_CHARACTERS].replace("\0", " "))
            return EXAMINER_TAGS.index(tag), self.texts.vocabulary.ids_of(words[:WORDS])
        try:
            return EXAMINER_TAGS.index(tag), self.texts.vocabulary.ids_of(split_query(content, self._query_words))
        except QueryTooLongError:
            return NONE, []

    def _segment(self, numbers: Sequence[int], row: Any, record: Any) -> str:
        """See `TurnCodec.encode`."""
        *_, verb, turns, words = numbers
        if verb == AT_START:
            return EXAMINER_PROMPT.format(start=words_of(self.texts, row["question"]), turns=turns, words=words)
        return EXAMINER_REFUSAL if verb == NONE else super()._segment(numbers, row, record)

    def tools(self, role: Role) -> dict[str, str]:
        """The verbs of turns, and what each does."""
        return {tag: TOOLS[tag] for tag in EXAMINER_TAGS[1:]}


class StudentSide(TurnCodec):
    """The student's turns and observations: SearchQA's, and nothing before a question was accepted."""

    def _turn(self, action: str) -> tuple[int, list[int]]:
        """Verb, and the words' numbers; a query that is too long says nothing, as the examiner's."""
        verb, ids = super()._turn(action)
        return (NONE if verb == TOO_LONG else verb), ids

    def _segment(self, numbers: Sequence[int], row: Any, record: Any) -> str:
        """See `TurnCodec.encode`."""
        return super()._segment(numbers, row, record) if row["question"][0] != NO_WORD else ""


class ExaminerCodec:
    """Text for both agents' tokens; each observation is what came since the agent's last turn."""

    total = True

    def __init__(self, texts: Texts, prompt: str) -> None:
        """See `palaestra.games.search.examiner.game`."""
        self.texts = texts
        self._sides = {"examiner": ExaminerSide(texts, "plain", False), "student": StudentSide(texts, prompt, False)}

    def observation_space(self, role: Role) -> TextSpace:
        """Any text."""
        return self._sides[role.name].observation_space(role)

    def action_space(self, role: Role) -> TextSpace:
        """Any text; samples are turns."""
        if role.name == "student":
            return self._sides["student"].action_space(role)
        return TextSpace(LONGEST_TURN, min_length=0, charset=None, samples=sample_examiner_turn)

    def tools(self, role: Role) -> dict[str, str]:
        """The verbs of a role's turns, and what each does."""
        return self._sides[role.name].tools(role)

    def decode(self, view: AgentView, action: str) -> np.ndarray:
        """Verb and words, int64 ``[17]``; any text is a turn."""
        return self._sides[view.role.name].decode(view, action)

    def decode_many(self, view: AgentView, actions: Sequence[str]) -> np.ndarray:
        """The same of N matches, int64 ``[N, 17]``."""
        return self._sides[view.role.name].decode_many(view, actions)

    def encode_action(self, view: AgentView, action: np.ndarray) -> str:
        """A turn of verb and words, int64 ``[17]``, as text."""
        return self._sides[view.role.name].encode_action(view, action)

    def encode(self, view: AgentView) -> str:
        """What came since the last turn: at first a prompt, then passages."""
        return self._sides[view.role.name].encode(view)

    def encode_many(self, view: AgentView) -> list[str]:
        """The same for N matches."""
        return self._sides[view.role.name].encode_many(view)

    def info(self, view: AgentView) -> dict[str, Any]:
        """``question``, ``answers`` and ``path`` of an accepted question, ``refusal_reason`` of another one; or empty.

        All are empty once the next match has begun.
        """
        return self._told(view.record)

    def info_many(self, view: AgentView) -> dict[str, list[Any]]:
        """The same of N matches, by name."""
        records: Iterable[Any] = repeat(None, len(view.row)) if view.record is None else view.record
        told = list(map(self._told, records))
        return {name: [one[name] for one in told] for name in told[0]}

    def _told(self, record: Any) -> dict[str, Any]:
        """See `info`."""
        is_asked = record is not None and record["info"]["accepted"] == 1
        return {
            "question": question_of(self.texts, record) if is_asked else "",
            "answers": [*fresh_answers(self.texts, record)] if is_asked else [],
            "path": list(map(list, fresh_path(self.texts, record))) if is_asked else [],
            "refusal_reason": "" if record is None else REFUSALS[record["info"]["refusal"]],
        }


def sample_examiner_turn(generator: np.random.Generator) -> str:
    """A turn of the language's words, for the samples of the action space."""
    return sample_turn(generator).replace("answer>", f"{QUESTION}>")
