"""The arrays of worlds that must be read, and the fixed world, which is many drawn ones side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np

from palaestra.game import Game
from palaestra.games.search import reading_language as words_of_language
from palaestra.games.search.bm25 import K1, B, build_postings, natural_log
from palaestra.games.search.generator import SPLITS, Stream
from palaestra.games.search.index import Index, compiled
from palaestra.games.search.language import ARTICLES, FIRST_WORD, FRESH_STEMS, NO_WORD
from palaestra.games.search.library import ANSWERS, MOST_HOPS, WORDS
from palaestra.games.search.reading_language import PRONOUNS, RELATIONS, SLOTS
from palaestra.games.search.reading_questions import NOBODY, QUESTION
from palaestra.games.search.reading_world import (
    ENTITIES,
    PASSAGES,
    TOKENS,
    Asked,
    Language,
    ReadingLibrary,
    Rules,
    write_passage,
)
from palaestra.games.search.sources import Texts
from palaestra.games.search.turn_codec import sentence_of
from palaestra.games.search.vocabulary import Vocabulary, split

LONGEST = 24
"""Words, slots and stops of a template."""
QUESTIONS_EACH = 40
"""Questions that are drawn of each of the worlds that a fixed one is made of."""
AT_ONCE = 400
"""Matches that are drawn at the same time."""
SPLIT_OF = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2)
"""Split of world w, by ``w % 10``: no fact of one split stands in another one."""


def language() -> Language:
    """The words of the language as arrays."""
    tokens = {word: k + FIRST_WORD for k, word in enumerate(words_of_language.plain_words())}
    relations = [relation for some in RELATIONS for relation in some]
    phrases = [relation.phrases for relation in relations]
    number = np.arange(PASSAGES + 1)

    def table(*texts: Iterable[str]) -> np.ndarray:
        return np.array([[_encoded(text, tokens) for text in some] for some in texts], np.int32)

    sentences = [text for r in relations for text in (*r.sentences, r.apart, r.denial)]
    intros = [text for some in words_of_language.INTROS for text in some]
    templates = table((*sentences, *intros, *words_of_language.PAIRS, *words_of_language.FILLERS))[0]
    counts = np.zeros((len(tokens) + FIRST_WORD, len(templates)), np.uint8)
    for template, symbols in enumerate(templates):
        np.add.at(counts[:, template], symbols[symbols >= FIRST_WORD], 1)
    bits = np.uint64(1) << (np.arange(len(templates), dtype=np.uint64) % np.uint64(64))
    halves = [(counts[:, part] > 0) @ bits[part] for part in (slice(0, 64), slice(64, None))]
    having = np.stack(halves, axis=1).astype(np.uint64)
    return Language(
        np.array([relation.leads_to for relation in relations], np.int32),
        templates,
        (templates >= FIRST_WORD).sum(axis=1).astype(np.int32),
        counts,
        having,
        table(*((p.before for p in some) for some in phrases)),
        table(*((p.behind for p in some) for some in phrases)),
        table(*((p.keywords for p in some) for some in phrases)),
        np.array([[p.is_whole for p in some] for some in phrases], np.uint8),
        table(text for text, _ in words_of_language.EARLIER)[0],
        table(text for _, text in words_of_language.EARLIER)[0],
        table(words_of_language.LEADS)[0],
        table(words_of_language.WHICH)[0],
        np.array([tokens[word] for word in PRONOUNS], np.int32),
        natural_log(1 + (PASSAGES - number + 0.5) / (number + 0.5)),
    )


def _encoded(text: str, tokens: dict[str, int]) -> list[int]:
    """A template as tokens and slots, 0 behind the last."""
    found = list[int]()
    for word in text.split():
        found += [SLOTS[word]] if word in SLOTS else [tokens[w] for w in split(word)]
    return found + [0] * (LONGEST - len(found))


def rules() -> Rules:
    """The numbers of a world that is drawn for each match."""
    plain = words_of_language.plain_words()
    token = {word: k + FIRST_WORD for k, word in enumerate(plain)}.__getitem__
    second = FIRST_WORD + len(plain)
    return Rules(
        fresh=1,
        questions=0,
        number=token(words_of_language.NUMBERS[0]),
        digit=token(words_of_language.DIGITS[0]),
        year=token(words_of_language.YEARS[0]),
        second=second,
        stem=second + len(words_of_language.second_words()),
        stop=token("."),
        unknown=token(words_of_language.UNKNOWN),
        the=token(ARTICLES[0]),
        former=token("former"),
        latter=token("latter"),
    )


def fresh_world(options: Any) -> tuple[ReadingLibrary, Texts]:
    """A world that each match draws."""
    vocabulary, shown = _vocabulary(FRESH_STEMS)
    empty, ends = np.zeros(0, np.int32), np.zeros(1, np.int64)
    postings = build_postings(empty, ends, 0, K1, B)
    library = ReadingLibrary(options.numbers, rules(), language(), _no_questions(), empty, ends, *postings)
    return library, Texts(shown, vocabulary)


def fixed_world(options: Any, draw: Callable[[], Game]) -> tuple[ReadingLibrary, Texts]:
    """A world that all matches share: the passages of many drawn worlds, with names of their own, in one index.

    Args:
        options: See `palaestra.games.search.reading_qa.game`.
        draw: Makes the game of a fresh world.

    Raises:
        ValueError: No question of the split can be answered.
    """
    count = -(-options.passages // PASSAGES)
    vocabulary, shown = _vocabulary(count * ENTITIES)
    worlds, asked = draw_worlds(draw(), count, options.world_seed, len(vocabulary) - count * ENTITIES + FIRST_WORD)
    texts = [text_of(shown, tokens) for tokens in worlds]
    words, starts = vocabulary.learn(texts)
    index = Index.of_parts(texts, vocabulary, build_postings(words, starts, len(vocabulary), K1, B, compiled))
    split_of = np.array(SPLIT_OF)[asked.gold[:, 0] // PASSAGES % len(SPLIT_OF)]
    is_asked = _is_followable(asked, index, shown, options.topk)
    if options.split is not None:
        is_asked &= split_of == SPLITS.index(options.split)
    if not is_asked.any():
        raise ValueError(f"no question of split={options.split!r} of passages={options.passages}: take more passages")
    asked = Asked(*(np.ascontiguousarray(array[is_asked]) for array in asked))
    questions = tuple(sentence_of(_joined(shown, tokens.tolist())) for tokens in asked.question)
    answers = tuple(tuple(_joined(shown, row) for row in rows if row[0]) for rows in asked.answers.tolist())
    tokens = np.concatenate(worlds)
    ends = np.cumsum([0, *map(len, worlds)])
    library = ReadingLibrary(
        options.numbers,
        rules()._replace(fresh=0, questions=len(questions)),
        language(),
        asked,
        tokens,
        ends,
        *index.postings,
    )
    return library, Texts(shown, vocabulary, index.passages, questions, answers, index)


def draw_worlds(game: Game, count: int, seed: int, first_stem: int) -> tuple[list[np.ndarray], Asked]:
    """Passages as tokens, and different questions, of some worlds."""
    from palaestra.core.run.kernel import KernelSimulation

    worlds, parts = list[np.ndarray](), list[Asked]()
    seeds = Stream(4, seed).below(2**62, count).tolist()
    at_once = min(AT_ONCE // QUESTIONS_EACH, count)
    sim = KernelSimulation(game, at_once * QUESTIONS_EACH)
    sim.set_parameters(question=np.tile(np.arange(QUESTIONS_EACH), at_once))
    for start in range(0, count, at_once):
        some = seeds[start : start + at_once]
        sim.reset(seed=np.repeat([*some, *[0] * (at_once - len(some))], QUESTIONS_EACH).tolist())
        for k in range(len(some)):
            records = sim.states[k * QUESTIONS_EACH : (k + 1) * QUESTIONS_EACH]
            texts, part = _read_world(records, start + k, game.world, first_stem)
            worlds += texts
            parts.append(part)
    return worlds, Asked(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _read_world(
    records: np.ndarray, number: int, world: ReadingLibrary, first_stem: int
) -> tuple[list[np.ndarray], Asked]:
    """Passages and different questions of world ``number``, whose stems become those of its own among all worlds."""
    stem, new = world.rules.stem, np.arange(FRESH_STEMS)
    new[records["name_words"][0, :, 0] - stem] = first_stem + number * ENTITIES + np.arange(ENTITIES)

    def named(tokens: np.ndarray) -> np.ndarray:
        return np.where(tokens < stem, tokens, new[np.maximum(tokens - stem, 0)]).astype(np.int32)

    text = named(passages_of(world, records[0]))
    part = Asked(*(named(records[name]) for name in Asked._fields))
    part = part._replace(gold=np.where(part.gold >= 0, part.gold + number * PASSAGES, part.gold).astype(np.int32))
    _, first = np.unique(part.question, axis=0, return_index=True)
    part = Asked(*(array[np.sort(first)] for array in part))
    return [tokens[tokens > 0] for tokens in text], part


def passages_of(world: ReadingLibrary, record: np.void) -> np.ndarray:
    """The passages of a drawn world as tokens, int32 ``[72, TOKENS]``."""
    names = ("name_words", "sentences", "template", "subject", "how", "thing", "second")
    s = SimpleNamespace(**{name: record[name].tolist() for name in names})  # lists are read five times as fast
    language = SimpleNamespace(templates=world.language.templates.tolist(), pronouns=world.language.pronouns.tolist())
    rows = [[0] * TOKENS for _ in range(PASSAGES)]
    for passage, row in enumerate(rows):
        write_passage(s, SimpleNamespace(language=language, rules=world.rules), passage, row)
    return np.array(rows, np.int32)


def _is_followable(asked: Asked, index: Index, shown: tuple[str, ...], top: int) -> np.ndarray:
    """Which questions are asked, see `palaestra.games.search.reading_questions`: here among all passages."""
    fair = np.ones(len(asked.kind), bool)
    for hop in range(MOST_HOPS):
        found, _ = index.search([_joined(shown, row) for row in asked.queries[:, hop].tolist()], top)
        is_last = asked.hops == hop + 1
        has_gold = (found == asked.gold[:, hop, None]).any(axis=1)
        has_other = (found == (asked.gold[:, hop] ^ 1)[:, None]).any(axis=1)
        fair &= (hop >= asked.hops) | (has_gold & (has_other | ~is_last | (asked.kind != NOBODY)))
    return fair


def _vocabulary(stems: int) -> tuple[Vocabulary, tuple[str, ...]]:
    """All words, and each token as it is shown: names with a capital."""
    plain, names = words_of_language.plain_words(), words_of_language.second_words()
    names += words_of_language.stems(stems)
    return Vocabulary([*plain, *names]), ("", "?", *plain, *(name.capitalize() for name in names))


def _no_questions() -> Asked:
    empty = lambda *shape: np.zeros((0, *shape), np.int32)  # noqa: E731
    path, nodes = empty(MOST_HOPS), empty(MOST_HOPS + 1, 2)
    return Asked(empty(QUESTION), empty(), empty(), path, nodes, path, empty(ANSWERS, WORDS), empty(MOST_HOPS, WORDS))


def _joined(shown: tuple[str, ...], tokens: list[int]) -> str:
    return " ".join([shown[token] for token in tokens if token != NO_WORD])


def text_of(shown: tuple[str, ...], tokens: np.ndarray) -> str:
    """A passage as text: title, line break, sentences."""
    words = [shown[token] for token in tokens.tolist() if token != NO_WORD]
    sentences = " ".join(words[2:]).removesuffix(" .").split(" . ")
    return f"{words[0]} {words[1]}\n{' '.join(f'{text[0].upper()}{text[1:]}.' for text in sentences)}"
