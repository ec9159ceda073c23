"""The read-only arrays of a text search game: what all matches share, in one form for all sources of passages."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

TOP, MOST_TOP = 3, 10
"""Passages that a search shows, and the most that it may show."""
WORDS, MOST_WORDS = 16, 64
"""Words of an answer and of a turn in the token form, and the most of a query in text."""
QUESTION_WORDS, PASSAGE_WORDS = 24, 32
"""Words of a question and of a passage that observations show."""
MOST_HOPS = 4
ANSWERS = 4
"""Right answers to a question."""
ENTITIES, RELATIONS, MENTIONS = 24, 8, 16
"""Capacities: entities of a world that is drawn for each match, relations, and entities that an agent keeps in mind."""
PASSAGES = 192
"""Passages of a world that is drawn for each match: each of its facts, other names, and what there is room for."""


class Rules(NamedTuple):
    """Plain numbers beside those of the options; games that differ in them alone share a kernel.

    Attributes:
        fresh: 1 where each match draws a world of its own.
        structured: 1 in the structured form.
        dense: 1 where an action says which passages a search finds.
        entities: Of a generated world.
        mentions: Entities that an agent keeps in mind.
        questions: Number of questions of a fixed world.
        judge_right: Pay for a right judgement.
        judge_accept: Pay for calling passages sufficient that are not.
        judge_reject: Pay for calling passages insufficient that are not.
        judge: 1 where an agent may judge.
        first_second: Token of the first of the second words of names.
        first_stem: Token of the first stem.
    """

    fresh: int
    structured: int
    dense: int
    entities: int
    mentions: int
    questions: int
    judge_right: float
    judge_accept: float
    judge_reject: float
    judge: int
    first_second: int
    first_stem: int


class Language(NamedTuple):
    """The words of generated worlds; see `palaestra.games.search.language`. T templates, W words that are no stems.

    Attributes:
        relation_words: int32 ``[8]``.
        applies: uint8 ``[8, 3]``: whether entities of a kind have a relation.
        leads_to: int32 ``[8]``: kinds.
        is_many: uint8 ``[8]``.
        templates: int32 ``[T, 12]``: sentences of passages.
        template_counts: uint8 ``[T, W]``: how often a word stands in a template.
        once: uint8 ``[W]``: whether a word stands once in each passage that has it, as nouns of relations do.
        template_lengths: int32 ``[T]``: its words, with the relation's.
        question_templates: int32 ``[5, 12]``.
        step_of_path: int32 ``[3]``: the words of one hop in a question.
        literal_words: int32 ``[102, 2]``.
        idf: float64 ``[193, 193]``: of a word in d of n passages, by n and d.
    """

    relation_words: np.ndarray
    applies: np.ndarray
    leads_to: np.ndarray
    is_many: np.ndarray
    templates: np.ndarray
    template_counts: np.ndarray
    once: np.ndarray
    template_lengths: np.ndarray
    question_templates: np.ndarray
    step_of_path: np.ndarray
    literal_words: np.ndarray
    idf: np.ndarray


class Facts(NamedTuple):
    """What the passages of a generated fixed world say. N passages, E entities; none in other worlds.

    Attributes:
        names: int32 ``[E, 2]``: tokens.
        subject: int32 ``[N]``: entities.
        relation: int32 ``[N]``: -1 where a passage tells another name.
        says: int32 ``[N]``: one of `palaestra.games.search.language.CURRENT` and its like.
        objects: int32 ``[N, 2]``: entities or literals.
    """

    names: np.ndarray
    subject: np.ndarray
    relation: np.ndarray
    says: np.ndarray
    objects: np.ndarray


class Questions(NamedTuple):
    """The questions of a fixed world, Q of them; none in fresh worlds.

    Attributes:
        words: int32 ``[Q, 24]``: tokens.
        kind: int32 ``[Q]``: one of `palaestra.games.search.language.HOPS` and its like.
        hops: int32 ``[Q]``: passages that are needed.
        relations: int32 ``[Q, 4]``: along the path.
        nodes: int32 ``[Q, 5]``: entities along the path; the last one is the answer.
        gold: int32 ``[Q, 4]``: the passages that are needed.
        answers: int32 ``[Q, 4, 16]``: tokens without articles.
        queries: int32 ``[Q, 4, 16]``: what finds the passages, where questions have no path of relations.
    """

    words: np.ndarray
    kind: np.ndarray
    hops: np.ndarray
    relations: np.ndarray
    nodes: np.ndarray
    gold: np.ndarray
    answers: np.ndarray
    queries: np.ndarray


class Library(NamedTuple):
    """The world of a game.

    Attributes:
        options: Numbers of the options, see `palaestra.games.search.search_qa`; relations are the first few of
            `palaestra.games.search.language.RELATIONS`.
        rules: Other numbers.
        language: Words of generated worlds.
        facts: What passages say.
        questions: Questions.
        words: int32 ``[W]``: tokens of all passages of a fixed world.
        starts: int64 ``[N + 1]``: passage n has ``words[starts[n]:starts[n + 1]]``.
        offsets: See `palaestra.games.search.bm25.Postings`, as for the next three.
        peaks: float32.
        passages: int32.
        scores: float32.
    """

    options: Any
    rules: Rules
    language: Language
    facts: Facts
    questions: Questions
    words: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray
    peaks: np.ndarray
    passages: np.ndarray
    scores: np.ndarray


def no_facts() -> Facts:
    """Facts of no passages."""
    empty = np.zeros(0, np.int32)
    return Facts(np.zeros((0, 2), np.int32), empty, empty, empty, np.zeros((0, 2), np.int32))


def no_questions(count: int = 0) -> Questions:
    """Questions whose numbers are all 0."""
    empty = lambda *shape: np.zeros((count, *shape), np.int32)  # noqa: E731
    return Questions(
        empty(QUESTION_WORDS),
        empty(),
        empty(),
        empty(MOST_HOPS),
        empty(MOST_HOPS + 1),
        empty(MOST_HOPS),
        empty(ANSWERS, WORDS),
        empty(MOST_HOPS, WORDS),
    )
