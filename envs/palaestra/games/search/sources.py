"""The arrays of each source of passages, and the words that belong to them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from palaestra.core.files import FileError
from palaestra.games.search import generator
from palaestra.games.search.bm25 import K1, B, build_postings, natural_log
from palaestra.games.search.corpus import Corpus, Question
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
    WORDS,
    Facts,
    Language,
    Library,
    Questions,
    Rules,
    no_facts,
    no_questions,
)
from palaestra.games.search.scoring import normal_words, normalize
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
    world = generator.make_world(passages, seed, noise, options.split_by)
    vocabulary, words, starts, index = _indexed(world.texts)
    asked = generator.draw_questions(world, seed, passages, options.hops, options.compare, split)
    found = np.stack(
        [index.search(generator.path_queries(world, asked, hop), options.topk)[0] for hop in range(MOST_HOPS)], 1
    )
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
        FileError: No question of the split can be asked, or with ``strict`` one of them cannot; says why.

    Warns:
        UserWarning: Questions that cannot be asked are left out; says how many, and why.
    """
    split = options.split
    vocabulary, words, starts, index = _indexed(corpus.passages)
    asked = [q for q in corpus.questions if split is None or q.split == split]
    if not asked:
        there = ", ".join(sorted({q.split for q in corpus.questions}))
        raise FileError(f"{corpus.name}: no questions of split={split!r}: it has {there}")
    short = [_short_answers(q.answers) for q in asked]
    kept = [(q, some) for q, some in zip(asked, short, strict=True) if some and len(q.gold) <= MOST_HOPS]
    _tell_left_out(corpus.name, options, asked, short, len(kept))
    questions, answers = tuple(q.text for q, _ in kept), tuple(some for _, some in kept)
    queries = _queries(index, [q.gold for q, _ in kept], options.topk)
    vocabulary.learn(questions)
    vocabulary.add(word for some in answers for answer in some for word in normal_words(answer))
    table = _questions(vocabulary, questions, answers)
    for k, (question, _) in enumerate(kept):
        table.hops[k] = len(question.gold)
        table.gold[k, : len(question.gold)] = question.gold
        for hop, passage in enumerate(question.gold):
            ids = vocabulary.encode([queries[passage]])[0]
            table.queries[k, hop, : len(ids)] = ids + FIRST_WORD
    table.kind[:], table.nodes[:], table.relations[:] = GIVEN, NOTHING, NOTHING
    texts = Texts(_shown(vocabulary, set()), vocabulary, index.passages, questions, answers, index)
    rules = rules._replace(questions=len(questions))
    return Library(options.numbers, rules, language(), no_facts(), table, words, starts, *index.postings), texts


def _tell_left_out(
    name: str, options: Any, asked: Sequence[Question], short: Sequence[Sequence[str]], kept: int
) -> None:
    """Says which questions and answers a turn has no room for; see `corpus_world`."""
    without, long = short.count(()), sum(len(q.gold) > MOST_HOPS for q in asked)
    fewer = sum(0 < len(some) < len(set(map(normalize, q.answers))) for q, some in zip(asked, short, strict=True))
    counts = {
        f"have no right answer of at most {WORDS} words": without,
        f"need more than {MOST_HOPS} passages": long,
        f"have right answers of more than {WORDS} words, or more than {ANSWERS}, which do not count": fewer,
    }
    reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items() if count)
    if not reasons:
        return
    told = f"{name}: {len(asked) - kept} of {len(asked)} questions of split={options.split!r} are not asked: {reasons}"
    if not kept or options.strict:
        raise FileError(told)
    warnings.warn(told, UserWarning, stacklevel=2)


def _queries(index: Index, paths: Sequence[Sequence[int]], top: int) -> dict[int, str]:
    """What one who follows paths searches for to be shown each of their passages.

    It is what the passage begins with; where that does not find it, its rarest words, which fail only where several
    passages have the same ones.
    """
    numbers = list(dict.fromkeys(number for path in paths for number in path))
    queries = {number: " ".join(split(index.passages[number])[:WORDS]) for number in numbers}
    found = index.search(list(queries.values()), top)[0] if numbers else ()
    having = np.diff(index.postings.offsets)
    for number, hits in zip(numbers, found, strict=True):
        if number not in hits:
            words = dict.fromkeys(split(index.passages[number]))
            rare = sorted(words, key=lambda word: having[index.vocabulary.ids_of([word])[0]])
            queries[number] = " ".join(rare[:WORDS])
    return queries


def _indexed(texts: Sequence[str]) -> tuple[Vocabulary, np.ndarray, np.ndarray, Index]:
    """Vocabulary that begins with the language's words, tokens and starts of the passages, and their index."""
    vocabulary = Vocabulary(plain_words())
    words, starts = vocabulary.learn(texts)
    postings = build_postings(words, starts, len(vocabulary), K1, B, compiled)
    return vocabulary, words + FIRST_WORD, starts, Index.of_parts(texts, vocabulary, postings)


def question_words(vocabulary: Vocabulary, texts: Sequence[str]) -> np.ndarray:
    """The words of questions that observations show, int32 ``[Q, 24]``."""
    table = np.zeros((len(texts), QUESTION_WORDS), np.int32)
    words, starts = vocabulary.encode(texts)
    for k, start in enumerate(starts[:-1]):
        some = words[start : min(starts[k + 1], start + QUESTION_WORDS)]
        table[k, : len(some)] = some + FIRST_WORD
    return table


def _questions(vocabulary: Vocabulary, texts: Sequence[str], answers: Sequence[Sequence[str]]) -> Questions:
    """Questions with their words and answers; all else is 0."""
    table = no_questions(len(texts))
    table.words[:] = question_words(vocabulary, texts)
    for k, some in enumerate(answers):
        for j, answer in enumerate(some):
            ids = np.array(vocabulary.ids_of(normal_words(answer) or ARTICLES[:1]))
            table.answers[k, j, : len(ids)] = ids + FIRST_WORD
    return table


def _short_answers(answers: Sequence[str]) -> tuple[str, ...]:
    """The different answers that a turn has room for; one that has articles alone is one, too."""
    different: dict[tuple[str, ...], str] = {}
    for answer in answers:
        different.setdefault(tuple(normal_words(answer)), answer)
    return tuple(answer for words, answer in different.items() if len(words) <= WORDS)[:ANSWERS]


def _names_of_language() -> list[str]:
    return [*(word.lower() for words in SECOND_WORDS for word in words), *stems(FRESH_STEMS)]


def _capitals(world: generator.World) -> set[str]:
    return {word.lower() for name in (*world.names, *world.aliases) for word in name.split()}


def _shown(vocabulary: Vocabulary, capitals: set[str]) -> tuple[str, ...]:
    """Tokens as they are shown: names with a capital."""
    return ("", "?", *(word.capitalize() if word in capitals else word for word in vocabulary))
