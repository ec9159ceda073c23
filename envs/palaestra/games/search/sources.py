"""The arrays of each source of passages, and the words that belong to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from palaestra.core.files import FileError
from palaestra.games.search import generator
from palaestra.games.search.bm25 import K1, B, build_postings, natural_log
from palaestra.games.search.corpus import Corpus
from palaestra.games.search.dense import DenseIndex
from palaestra.games.search.generator import Noise
from palaestra.games.search.index import Index, compiled
from palaestra.games.search.language import (
    ARTICLES,
    FIRST_WORD,
    FRESH_STEMS,
    GIVEN,
    KINDS,
    LITERALS,
    NOTHING,
    QUESTION_TEMPLATES,
    RELATION,
    RELATIONS,
    SECOND_WORDS,
    STEP_OF_PATH,
    TEMPLATES,
    encoded,
    plain_words,
    stems,
)
from palaestra.games.search.library import (
    ANSWERS,
    MOST_HOPS,
    PASSAGES,
    QUESTION_WORDS,
    TOP,
    WORDS,
    Facts,
    Language,
    Library,
    Questions,
    Rules,
    no_facts,
    no_questions,
)
from palaestra.games.search.scoring import normalize
from palaestra.games.search.vocabulary import Vocabulary, split


@dataclass(frozen=True)
class Texts:
    """What texts need beside the arrays.

    Attributes:
        words: Each token as it is shown.
        vocabulary: Its word k is token k + 2.
        passages: Of a fixed world: title, line break, text.
        questions: Of a fixed world.
        answers: The right answers to them.
        index: Of a fixed world; what agents search.
    """

    words: tuple[str, ...]
    vocabulary: Vocabulary
    passages: Sequence[str] = ()
    questions: tuple[str, ...] = ()
    answers: tuple[tuple[str, ...], ...] = ()
    index: Index | DenseIndex | None = None


@cache
def language() -> Language:
    """The words of generated worlds as arrays."""
    plain = plain_words()
    tokens = {word: k + FIRST_WORD for k, word in enumerate(plain)}
    templates = encoded((text for _, text in TEMPLATES), tokens)
    counts = np.zeros((len(templates), len(plain)), np.uint8)
    for row, symbols in zip(counts, templates, strict=True):
        np.add.at(row, symbols[symbols >= FIRST_WORD] - FIRST_WORD, 1)
    with_relation = (templates == RELATION).sum(axis=1)
    applies = np.array([[kind in r.subjects for kind in range(KINDS)] for r in RELATIONS], np.uint8)
    passages, having = np.ogrid[: PASSAGES + 1, : PASSAGES + 1]
    idf = natural_log(1 + np.maximum(passages - having + 0.5, 0.0) / (having + 0.5))
    return Language(
        np.array([tokens[r.noun] for r in RELATIONS], np.int32),
        applies,
        np.array([r.objects for r in RELATIONS], np.int32),
        np.array([r.is_many for r in RELATIONS], np.uint8),
        templates,
        counts,
        (counts.sum(axis=0) == 0).astype(np.uint8),
        (counts.sum(axis=1) + with_relation).astype(np.int32),
        encoded((text for _, text in QUESTION_TEMPLATES), tokens),
        encoded([STEP_OF_PATH], tokens)[0, :3].copy(),
        np.array([(tokens[word], 0) for word in LITERALS], np.int32),
        idf,
    )


def first_words() -> tuple[int, int]:
    """Tokens of the first of the second words of names, and of the first stem."""
    seconds = sum(len(words) for words in SECOND_WORDS)
    return FIRST_WORD + len(plain_words()) - seconds, FIRST_WORD + len(plain_words())


def fresh_world(rules: Rules, options: Any) -> tuple[Library, Texts]:
    """A world that each match draws."""
    vocabulary = Vocabulary([*plain_words(), *stems(FRESH_STEMS)])
    empty, ends = np.zeros(0, np.int32), np.zeros(1, np.int64)
    postings = build_postings(empty, ends, 0, K1, B)
    library = Library(options.numbers, rules, language(), no_facts(), no_questions(), empty, ends, *postings)
    return library, Texts(_shown(vocabulary, set(_names_of_language())), vocabulary)


def fixed_world(rules: Rules, options: Any) -> tuple[Library, Texts]:
    """A world of thousands of generated passages.

    Raises:
        ValueError: No question of the split can be answered.
    """
    passages, seed, split = options.passages, options.world_seed, options.split
    noise = Noise(options.aliases, options.near_duplicates, options.stale, options.contradicting)
    world = generator.make_world(passages, seed, noise)
    vocabulary, words, starts, index = _indexed(world.texts)
    asked = generator.draw_questions(world, seed, passages, options.hops, options.compare, split)
    found = np.stack([index.search(generator.path_queries(world, asked, hop), TOP)[0] for hop in range(MOST_HOPS)], 1)
    is_asked = generator.is_followable(world, asked, found)
    asked = generator.Asked(*(array[is_asked] for array in asked))
    if not is_asked.any():
        asked_for = f"split={split!r} of passages={passages}"
        raise ValueError(f"no question of {asked_for} can be answered: take more passages, fewer hops or less noise")
    questions = tuple(generator.question_texts(world, asked, seed))
    things = asked.nodes[:, MOST_HOPS].tolist()
    answers = tuple((world.name(k), world.aliases[k]) if k >= 0 and noise.aliases else (world.name(k),) for k in things)
    vocabulary.learn([*questions, *world.names])
    names = np.array([[t + FIRST_WORD for t in vocabulary.encode([name])[0]] for name in world.names], np.int32)
    facts = Facts(names, world.subject, world.relation, world.says, world.objects)
    table = _questions(vocabulary, questions, answers)._replace(**asked._asdict())
    texts = Texts(_shown(vocabulary, _capitals(world)), vocabulary, index.passages, questions, answers, index)
    rules = rules._replace(questions=len(questions), entities=len(names))
    return Library(options.numbers, rules, language(), facts, table, words, starts, *index.postings), texts


def corpus_world(rules: Rules, options: Any, corpus: Corpus) -> tuple[Library, Texts]:
    """Passages and questions of files.

    Raises:
        FileError: No question of the split can be answered; says why.
    """
    split = options.split
    vocabulary, words, starts, index = _indexed(corpus.passages)
    asked = [q for q in corpus.questions if split is None or q.split == split]
    if not asked:
        there = ", ".join(sorted({q.split for q in corpus.questions}))
        raise FileError(f"{corpus.name}: no questions of split={split!r}: it has {there}")
    kept = []
    short = [_short_answers(q.answers) for q in asked]
    queries = [[_beginning(corpus.passages[n]) for n in q.gold[:MOST_HOPS]] for q in asked]
    flat = [query for some in queries for query in some]
    found = iter(index.search(flat, TOP)[0]) if flat else iter(())
    for question, answers, some in zip(asked, short, queries, strict=True):
        hits = [next(found) for _ in some]
        is_found = all(n in hit for n, hit in zip(question.gold, hits, strict=False))
        if answers and is_found and len(question.gold) <= MOST_HOPS:
            kept.append((question, answers, some))
    if not kept:
        reason = f"an answer of 1 to {WORDS} words, and at most {MOST_HOPS} passages that a search finds"
        raise FileError(f"{corpus.name}: none of {len(asked)} questions of split={split!r} has {reason}")
    questions, answers = tuple(q.text for q, _, _ in kept), tuple(short for _, short, _ in kept)
    vocabulary.learn([*questions, *(f"{normalize(a)} {a}" for some in answers for a in some)])
    table = _questions(vocabulary, questions, answers)
    for k, (question, _, some) in enumerate(kept):
        table.hops[k] = len(question.gold)
        table.gold[k, : len(question.gold)] = question.gold
        for hop, query in enumerate(some):
            ids = vocabulary.encode([query])[0]
            table.queries[k, hop, : len(ids)] = ids + FIRST_WORD
    table.kind[:], table.nodes[:], table.relations[:] = GIVEN, NOTHING, NOTHING
    texts = Texts(_shown(vocabulary, set()), vocabulary, index.passages, questions, answers, index)
    rules = rules._replace(questions=len(questions))
    return Library(options.numbers, rules, language(), no_facts(), table, words, starts, *index.postings), texts


def _indexed(texts: Sequence[str]) -> tuple[Vocabulary, np.ndarray, np.ndarray, Index]:
    """Vocabulary that begins with the language's words, tokens and starts of the passages, and their index."""
    vocabulary = Vocabulary(plain_words())
    words, starts = vocabulary.learn(texts)
    postings = build_postings(words, starts, len(vocabulary), K1, B, compiled)
    return vocabulary, words + FIRST_WORD, starts, Index.of_parts(texts, vocabulary, postings)


def _questions(vocabulary: Vocabulary, texts: Sequence[str], answers: Sequence[Sequence[str]]) -> Questions:
    """Questions with their words and answers; all else is 0."""
    table = no_questions(len(texts))
    words, starts = vocabulary.encode(texts)
    for k, start in enumerate(starts[:-1]):
        some = words[start : min(starts[k + 1], start + QUESTION_WORDS)]
        table.words[k, : len(some)] = some + FIRST_WORD
    for k, some in enumerate(answers):
        forms = dict.fromkeys(form for a in some for form in (normalize(a), " ".join(_content(a))))
        for j, form in enumerate(list(forms)[:ANSWERS]):
            ids = vocabulary.encode([form])[0]
            table.answers[k, j, : len(ids)] = ids + FIRST_WORD
    return table


def _content(answer: str) -> list[str]:
    """The words of an answer as passages have them, without articles."""
    return [word for word in split(answer) if word not in ARTICLES]


def _short_answers(answers: Sequence[str]) -> tuple[str, ...]:
    """The answers that a turn has room for."""
    return tuple(a for a in answers if 1 <= len(_content(a)) <= WORDS and normalize(a))[:ANSWERS]


def _beginning(passage: str) -> str:
    return " ".join(split(passage)[:WORDS])


def _names_of_language() -> list[str]:
    return [*(word.lower() for words in SECOND_WORDS for word in words), *stems(FRESH_STEMS)]


def _capitals(world: generator.World) -> set[str]:
    return {word.lower() for name in (*world.names, *world.aliases) for word in name.split()}


def _shown(vocabulary: Vocabulary, capitals: set[str]) -> tuple[str, ...]:
    """Tokens as they are shown: names with a capital."""
    return ("", "?", *(word.capitalize() if word in capitals else word for word in vocabulary))
