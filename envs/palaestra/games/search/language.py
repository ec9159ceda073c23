"""The language of generated worlds: kinds of entities, relations, names, and the sentences of passages and questions.

A relation leads from an entity to another one, or to a year. Sentences are templates with slots; they are written as
text for large worlds (`palaestra.games.search.generator`) and as token ids by compiled code
(`palaestra.games.search.fresh_world`).

Tokens are numbers of words: 0 is no word, 1 a word that is not in the vocabulary, word k of the vocabulary is k + 2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from palaestra.games.search.vocabulary import split

NO_WORD, UNKNOWN_WORD, FIRST_WORD = 0, 1, 2
ARTICLES = ("the", "a", "an")
"""The first words of every vocabulary; answers are compared without them."""

PERSON, CITY, COMPANY, YEAR = 0, 1, 2, 3
KINDS = 3
"""Kinds of entities: entity e is of kind ``e % 3``."""

NOTHING = -1
"""Stands for no entity, relation, passage."""
LITERAL = -2
"""Literal l, which is no entity, is written as ``LITERAL - l``."""
YES, NO, FIRST_YEAR = 0, 1, 2
"""Literals."""
YEARS = tuple(str(year) for year in range(1900, 2000))
LITERALS = ("yes", "no", *YEARS)


class Relation(NamedTuple):
    """What an entity may have.

    Attributes:
        noun: Its one word.
        subjects: Kinds of the entities that have it.
        objects: Kind of what it leads to.
        is_many: Whether an entity may have two of them.
    """

    noun: str
    subjects: tuple[int, ...]
    objects: int
    is_many: bool = False


RELATIONS = (
    Relation("birthplace", (PERSON,), CITY),
    Relation("mayor", (CITY,), PERSON),
    Relation("employer", (PERSON,), COMPANY),
    Relation("founder", (COMPANY,), PERSON),
    Relation("year", (PERSON, CITY, COMPANY), YEAR),
    Relation("headquarters", (COMPANY,), CITY),
    Relation("ally", (PERSON,), PERSON, is_many=True),
    Relation("rival", (CITY, COMPANY), PERSON),
)
"""A world has the first few of them: two are enough for paths of any length."""
YEAR_RELATION = 4

SUBJECT, OBJECT, SECOND, RELATION, PATH = -1, -2, -3, -4, -5
"""Slots of encoded templates."""
SLOTS = {"{s}": SUBJECT, "{o}": OBJECT, "{p}": SECOND, "{r}": RELATION, "{path}": PATH}

CURRENT, BOTH, STALE, RUMOUR, ALIAS = range(5)
"""What a passage says: a fact, a fact with two objects, one that is no longer so, one that is not so, another name."""
SENTENCES = {
    CURRENT: (
        "The {r} of {s} is {o}.",
        "{o} is the {r} of {s}.",
        "As {r} {s} has {o}.",
        "According to the records the {r} of {s} is {o}.",
    ),
    BOTH: ("As {r} {s} has both {o} and {p}.", "Both {o} and {p} are known as {r} of {s}."),
    STALE: ("In former times the {r} of {s} was {o}.", "{o} was once the {r} of {s}."),
    RUMOUR: ("Some wrongly say that the {r} of {s} is {o}.", "It is false that {o} is the {r} of {s}."),
    ALIAS: ("{s} is also called {o}.",),
}
TEMPLATES = tuple((kind, text) for kind, texts in SENTENCES.items() for text in texts)
"""All sentences of passages; template t of the arrays."""

HOPS, SAME, OLDER, GIVEN = range(4)
"""Kinds of questions: along a path, whether two have the same, which has the earlier year, one that a file has."""
QUESTIONS = {
    HOPS: ("What is {path} {s}?", "Name {path} {s}."),
    SAME: ("Do {s} and {o} have the same {r}?",),
    OLDER: ("Which of {s} and {o} has the earlier {r}?",),
}
QUESTION_TEMPLATES = tuple((kind, text) for kind, texts in QUESTIONS.items() for text in texts)
STEP_OF_PATH = "the {r} of"
LONGEST_TEMPLATE = 12

SECOND_WORDS = tuple(
    tuple(words.split())
    for words in (
        "Arnev Boltan Cersk Dulmar Egrit Fenwal Gostin Hurvel Iskar Jolten Kravin Lomset",
        "Harbour Falls Heights Springs Bridge Market Abbey Cross Haven Mills Shore Valley",
        "Works Motors Press Foods Mining Airways Optics Textiles Pottery Tools Steel Glass",
    )
)
"""Second words of the names by kind; the first word is a stem."""
SECONDS = len(SECOND_WORDS[0])

FRESH_STEMS = 211
"""Stems of worlds that are drawn for each match: a prime, so that strides over them meet none twice."""
ONSETS, VOWELS, CODAS = "bdfghjklmnprstvz", "aeiou", "bdfgklmnrstvxz"
MOST_STEMS = (len(ONSETS) * len(VOWELS)) ** 2 * len(CODAS)
STRIDE = 36_671
"""Step through the stems, without a factor in common with their number, so that neighbours are unlike."""


def stem(number: int) -> str:
    """The stem of a number below `MOST_STEMS`, in lower case: two syllables; different numbers, different stems."""
    rest, letters = number * STRIDE % MOST_STEMS, []
    for alphabet in (ONSETS, VOWELS, ONSETS, VOWELS, CODAS):
        rest, letter = divmod(rest, len(alphabet))
        letters.append(alphabet[letter])
    return "".join(letters)


def stems(count: int) -> list[str]:
    """The first stems that are no other word of the language."""
    taken, found, number = set(plain_words()), list[str](), 0
    while len(found) < count:
        if (word := stem(number)) not in taken:
            found.append(word)
        number += 1
    return found


def plain_words() -> list[str]:
    """All words that are no stems, in lower case: articles, those of the sentences, relations, literals, seconds."""
    texts = [text for _, text in (*TEMPLATES, *QUESTION_TEMPLATES)]
    sentences = (word for text in (*texts, STEP_OF_PATH) for word in _plain(text))
    nouns, seconds = (r.noun for r in RELATIONS), (w.lower() for words in SECOND_WORDS for w in words)
    return list(dict.fromkeys((*ARTICLES, *sentences, *nouns, *LITERALS, *seconds)))


def _plain(text: str) -> Iterable[str]:
    for slot in SLOTS:
        text = text.replace(slot, " ")
    return split(text)


def encoded(texts: Iterable[str], tokens: Mapping[str, int]) -> np.ndarray:
    """Templates as tokens and slots, int32 ``[T, LONGEST_TEMPLATE]``, 0 behind the last."""

    def symbols(text: str) -> Iterator[int]:
        for word in text.replace("}", "} ").split():
            slot = word if word in SLOTS else word.rstrip(",.?")
            if slot in SLOTS:
                yield SLOTS[slot]
            else:
                yield from (tokens[w] for w in split(word))

    table = np.zeros((len(rows := [list(symbols(text)) for text in texts]), LONGEST_TEMPLATE), np.int32)
    for row, found in zip(table, rows, strict=True):
        row[: len(found)] = found
    return table
