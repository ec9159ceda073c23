"""Worlds that must be read, drawn for each match: facts, passages of several sentences, and the search among them.

An entity has two passages with its name as title; each tells some of its facts and mentions other entities. A sentence
is numbers: template, subject, how it is called, what is said of it; its words are written when they are shown. The
search scores all passages by the same formula as `palaestra.games.search.bm25`, to the bit, without postings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from palaestra.game import integer
from palaestra.games.search.bm25 import K1, B, enter
from palaestra.games.search.language import FIRST_WORD, NOTHING, SECONDS
from palaestra.games.search.language import FRESH_STEMS as STEMS
from palaestra.games.search.library import MOST_HOPS, MOST_TOP, MOST_WORDS
from palaestra.games.search.reading_language import (
    COUNT_RELATION,
    EACH,
    FILLER_STEP,
    KINDS,
    LEAST_COUNT,
    NUMBERS,
    OBJECT,
    SECOND,
    STOP,
    SUBJECT,
    YEAR,
    YEARS,
)

ENTITIES, PASSAGES = 36, 72
TOKENS = 144
"""Words and full stops of a passage, its title with them: at most."""
SHORTEST = 62
"""Words of a passage, its title with them: at least."""
TOLD, ABSENT, DENIED = range(3)
"""What passages say of a fact: it, nothing, that nobody knows it."""
ABSENT_SHARE, DENIED_SHARE = 8, 8
"""In per cent."""
NAME, PRONOUN, FORMER, LATTER = range(4)
"""How a sentence names its subject."""
SENTENCES, APART, DENIAL = 3, 3, 4
"""Sentences of a relation; places of the other two templates."""
INTROS, PAIRS, FILLERS = 4, 3, 34
INTRO = KINDS * EACH * (SENTENCES + 2)
PAIR, FILLER = INTRO + KINDS * INTROS, INTRO + KINDS * INTROS + PAIRS
"""Numbers of the first of these templates; before them are those of relations, `SENTENCES` + 2 each."""
MOST_SENTENCES = 16
"""Templates of a passage."""
ONE = np.uint64(1)
ROOM_FOR_PAIR, ROOM_FOR_OTHERS, ROOM_FOR_FILLER = 50, 62, 78
"""Words of a passage up to which one adds a pair with its facts, a fact of another entity, a sentence about nobody."""

WORK = np.dtype(
    [
        ("words", "i4", (MOST_WORDS,)),
        ("numbers", "i4", (MOST_TOP,)),
        ("scores", "f8", (MOST_TOP,)),
        ("times", "i4", (PASSAGES,)),
        ("totals", "f8", (PASSAGES,)),
        ("order", "i1", (EACH,)),
        ("has_word", "u1", (ENTITIES + 1,)),
    ]
)
"""Work memory, in the record as questions are tried out when a match starts."""

STATE = (
    ("name_words", "i2", (ENTITIES, 2)),
    ("objects", "i2", (ENTITIES, EACH)),
    ("status", "u1", (ENTITIES, EACH)),
    ("told_in", "i2", (ENTITIES, EACH)),
    ("sentences", "i2", (PASSAGES,)),
    ("template", "i1", (PASSAGES, MOST_SENTENCES)),
    ("subject", "i1", (PASSAGES, MOST_SENTENCES)),
    ("how", "i1", (PASSAGES, MOST_SENTENCES)),
    ("thing", "i2", (PASSAGES, MOST_SENTENCES)),
    ("second", "i2", (PASSAGES, MOST_SENTENCES)),
    ("mentions", "u8", (PASSAGES,)),
    ("used", "u8", (PASSAGES, 2)),
    ("length", "i2", (PASSAGES,)),
    ("mean_length", "f8"),
    ("path", "i2", (MOST_HOPS + 1,)),
    ("phrases", "i1", (MOST_HOPS,)),
    ("work", WORK),
)
"""What a match remembers of its world; `objects` and `thing` are entities, minus the token of a year or a number, or -1
for nothing; `second` is likewise a number or nothing, `subject` an entity or nothing. `mentions` and `used` have bits
of the entities and templates of a passage."""


class Rules(NamedTuple):
    """Plain numbers beside those of the options; most are the first tokens of words that stand together.

    Attributes:
        fresh: 1 where each match draws a world of its own.
        questions: Number of questions of a fixed world.
        number: Of "two" and the next numbers.
        digit: Of "2".
        year: Of "1900".
        second: Of the second words of names.
        stem: Of the first words of names.
        stop: Of the full stop.
        unknown: Of the answer where nobody knows.
        the: Of the article.
        former: Of "former".
        latter: Of "latter".
    """

    fresh: int
    questions: int
    number: int
    digit: int
    year: int
    second: int
    stem: int
    stop: int
    unknown: int
    the: int
    former: int
    latter: int


class Language(NamedTuple):
    """Tokens and slots of `palaestra.games.search.reading_language`, 0 behind the last.

    Relation r of kind k is row 5 k + r.

    Attributes:
        leads_to: int32 ``[15]``: kinds.
        templates: int32 ``[124, 24]``: of each relation three sentences, one in two parts, one that nobody knows; of
            each kind four to begin with; then pairs and sentences about nobody.
        lengths: int32 ``[124]``: their words, without slots.
        counts: uint8 ``[W, 124]``: how often a word that is part of no name stands in them; row 0 is token 0.
        having: uint64 ``[W, 2]``: bits of the templates that have it.
        before: int32 ``[15, 2, 24]``: phrases of questions, before the name.
        behind: int32 ``[15, 2, 24]``: behind it.
        keywords: int32 ``[15, 2, 24]``.
        is_whole: uint8 ``[15, 2]``.
        earlier: int32 ``[3, 24]``: by kind.
        earlier_keywords: int32 ``[3, 24]``.
        leads: int32 ``[2, 24]``.
        which: int32 ``[2, 24]``.
        pronouns: int32 ``[3]``: by kind.
        idf: float64 ``[73]``: of a word in d of the passages.
    """

    leads_to: np.ndarray
    templates: np.ndarray
    lengths: np.ndarray
    counts: np.ndarray
    having: np.ndarray
    before: np.ndarray
    behind: np.ndarray
    keywords: np.ndarray
    is_whole: np.ndarray
    earlier: np.ndarray
    earlier_keywords: np.ndarray
    leads: np.ndarray
    which: np.ndarray
    pronouns: np.ndarray
    idf: np.ndarray


class Asked(NamedTuple):
    """The questions of a fixed world, Q of them.

    Attributes:
        question: int32 ``[Q, 32]``: tokens.
        kind: int32 ``[Q]``.
        hops: int32 ``[Q]``: passages that are needed.
        relations: int32 ``[Q, 4]``.
        nodes: int32 ``[Q, 5, 2]``: names along the path, the answer last. Of a pair: two names and years.
        gold: int32 ``[Q, 4]``: the passages that are needed.
        answers: int32 ``[Q, 4, 16]``.
        queries: int32 ``[Q, 4, 16]``: a name and the question's words for its relation.
    """

    question: np.ndarray
    kind: np.ndarray
    hops: np.ndarray
    relations: np.ndarray
    nodes: np.ndarray
    gold: np.ndarray
    answers: np.ndarray
    queries: np.ndarray


class ReadingLibrary(NamedTuple):
    """The world of a game; see `palaestra.games.search.library.Library` for the last six."""

    options: Any
    rules: Rules
    language: Language
    asked: Asked
    words: np.ndarray
    starts: np.ndarray
    offsets: np.ndarray
    peaks: np.ndarray
    passages: np.ndarray
    scores: np.ndarray


# -- facts -------------------------------------------------------------------------------------------------------------


def draw_world(s, world):
    """Draws names, facts, and the sentences of all passages."""
    draw_names(s, world)
    for entity in range(ENTITIES):
        for relation in range(EACH):
            draw_fact(s, world, entity, relation)
    total = 0
    for entity in range(ENTITIES):
        write_entity(s, world, entity)
        total += s.length[2 * entity] + s.length[2 * entity + 1]
    s.mean_length = total / PASSAGES


def draw_names(s, world):
    """Draws names: a stem that no other name has, and a word of the entity's kind."""
    stem, stride = integer(s, STEMS), 1 + integer(s, STEMS - 1)
    for entity in range(ENTITIES):
        s.name_words[entity, 0] = world.rules.stem + stem
        s.name_words[entity, 1] = world.rules.second + entity % KINDS * SECONDS + integer(s, SECONDS)
        stem = (stem + stride) % STEMS


def draw_fact(s, world, entity, relation):
    """Draws where a relation of an entity leads to, and whether passages tell it."""
    share, wanted = integer(s, 100), world.language.leads_to[entity % KINDS * EACH + relation]
    s.status[entity, relation] = TOLD
    if share < ABSENT_SHARE + DENIED_SHARE:
        s.status[entity, relation] = ABSENT if share < ABSENT_SHARE else DENIED
    if wanted < KINDS:
        s.objects[entity, relation] = draw_other(s, entity, wanted)
    elif wanted == YEAR:
        s.objects[entity, relation] = -(world.rules.year + integer(s, len(YEARS)))
    else:
        s.objects[entity, relation] = -(world.rules.number + integer(s, len(NUMBERS)))


def draw_other(s, entity, kind):
    """Draws an entity of a kind that is another one."""
    is_same = entity % KINDS == kind
    other = kind + KINDS * integer(s, ENTITIES // KINDS - is_same)
    return other + KINDS * (is_same and other >= entity)


# -- passages ----------------------------------------------------------------------------------------------------------


def write_entity(s, world, entity):
    """Draws the sentences of the two passages of an entity."""
    order = s.work.order
    for k in range(EACH):
        order[k] = k
    for k in range(EACH - 1, 0, -1):
        j = integer(s, k + 1)
        order[k], order[j] = order[j], order[k]
    middle = 2 + integer(s, 2)
    for half in range(2):
        passage = 2 * entity + half
        s.sentences[passage], s.length[passage], s.mentions[passage] = 0, 2, ONE << np.uint64(entity)
        s.used[passage, 0], s.used[passage, 1] = 0, 0
        say(s, world, passage, INTRO + entity % KINDS * INTROS + integer(s, INTROS), entity, NAME, NOTHING, NOTHING)
        filler, last = integer(s, FILLERS), entity
        for k in range(middle if half else 0, EACH if half else middle):
            s.told_in[entity, order[k]] = passage
            last = tell(s, world, passage, entity, order[k], last)
            if integer(s, 3) == 0 and s.length[passage] <= ROOM_FOR_FILLER:
                say(s, world, passage, FILLER + filler, NOTHING, NAME, NOTHING, NOTHING)
                filler, last = (filler + FILLER_STEP) % FILLERS, NOTHING
        while s.length[passage] < SHORTEST:
            say(s, world, passage, FILLER + filler, NOTHING, NAME, NOTHING, NOTHING)
            filler = (filler + FILLER_STEP) % FILLERS


def tell(s, world, passage, entity, relation, last):
    """Adds what a passage tells of a fact, and facts of others beside it.

    Returns:
        The entity that a pronoun in the next sentence would stand for, -1 if there is none.
    """
    if s.status[entity, relation] == ABSENT:
        return last
    if s.status[entity, relation] == DENIED:
        say(s, world, passage, template_of(entity, relation, DENIAL), entity, NAME, NOTHING, NOTHING)
        return entity
    style = integer(s, 4) if s.length[passage] <= ROOM_FOR_PAIR else integer(s, 2)
    if style == 2:
        tell_pair(s, world, passage, entity, relation)
        last = NOTHING
    elif style == 3:
        template = template_of(entity, relation, APART)
        say(s, world, passage, template, entity, NAME, s.objects[entity, relation], NOTHING)
        last = NOTHING
    else:
        state(s, world, passage, entity, relation, PRONOUN if style == 1 and last == entity else NAME)
        last = entity
    if integer(s, 2) == 0 and s.length[passage] <= ROOM_FOR_OTHERS:
        other = draw_other(s, entity, entity % KINDS)
        if s.status[other, relation] == TOLD:
            state(s, world, passage, other, relation, NAME)
            last = other
    return last


def tell_pair(s, world, passage, entity, relation):
    """Names an entity beside another one of its kind, then tells a fact of "the former" or "the latter", or of both."""
    other, is_former = draw_other(s, entity, entity % KINDS), integer(s, 2)
    first, second = (entity, other) if is_former else (other, entity)
    say(s, world, passage, PAIR + integer(s, PAIRS), first, NAME, second, NOTHING)
    is_last, has_other = integer(s, 2), s.status[other, relation] == TOLD
    if has_other and is_last:
        state(s, world, passage, other, relation, LATTER if is_former else FORMER)
    state(s, world, passage, entity, relation, FORMER if is_former else LATTER)
    if has_other and not is_last:
        state(s, world, passage, other, relation, LATTER if is_former else FORMER)


def template_of(entity, relation, which):
    """Number of a template of a relation."""
    return (entity % KINDS * EACH + relation) * (SENTENCES + 2) + which


def state(s, world, passage, entity, relation, how):
    """Adds a fact in one sentence; a number may be the sum of two."""
    thing, second, which = int(s.objects[entity, relation]), NOTHING, integer(s, SENTENCES)
    if relation == COUNT_RELATION and which == SENTENCES - 1:
        count = -thing - world.rules.number + LEAST_COUNT
        if count < 2 * LEAST_COUNT:
            which = integer(s, SENTENCES - 1)
        else:
            part = integer(s, count - 2 * LEAST_COUNT + 1)
            thing, second = thing + part + LEAST_COUNT, -(world.rules.number + part)
    say(s, world, passage, template_of(entity, relation, which), entity, how, thing, second)


def say(s, world, passage, template, subject, how, thing, second):
    """Adds a sentence, or two that tell a fact together."""
    k = s.sentences[passage]
    s.template[passage, k], s.subject[passage, k], s.how[passage, k] = template, subject, how
    s.thing[passage, k], s.second[passage, k] = thing, second
    s.sentences[passage] = k + 1
    s.used[passage, template // 64] |= ONE << np.uint64(template % 64)
    if subject != NOTHING:
        s.mentions[passage] |= ONE << np.uint64(subject)
    if thing >= 0:
        s.mentions[passage] |= ONE << np.uint64(thing)
    length = world.language.lengths[template] + (2 if thing >= 0 else thing < NOTHING) + (second < NOTHING)
    if subject != NOTHING:
        length += 1 if how == PRONOUN else 2
    s.length[passage] += length


# -- words -------------------------------------------------------------------------------------------------------------


def write_passage(s, world, passage, out):
    """Writes the words and full stops of a passage, its title first, and zeros behind them.

    Args:
        s: The match record; rows of its arrays may be lists.
        world: The library.
        passage: Its number.
        out: Room for `TOKENS`.
    """
    name = s.name_words[passage // 2]
    out[0], out[1], end = name[0], name[1], 2
    for k in range(s.sentences[passage]):
        symbols = world.language.templates[s.template[passage][k]]
        for j in range(len(symbols)):
            symbol, thing = symbols[j], NOTHING
            if symbol == 0:
                break
            if symbol == SUBJECT and s.how[passage][k] == NAME:
                thing = s.subject[passage][k]
            elif symbol == SUBJECT:
                end = write_subject(world, s.subject[passage][k], s.how[passage][k], out, end)
            elif symbol == OBJECT:
                thing = s.thing[passage][k]
            elif symbol == SECOND:
                thing = s.second[passage][k]
            else:
                thing = -(world.rules.stop if symbol == STOP else symbol)
            end = write_thing(s, thing, out, end)
        out[end] = world.rules.stop
        end += 1
    for k in range(end, len(out)):
        out[k] = 0


def write_thing(s, thing, out, at):
    """Writes a name, a word, or nothing; returns the place behind it."""
    if thing >= 0:
        out[at], out[at + 1] = s.name_words[thing][0], s.name_words[thing][1]
        return at + 2
    if thing < NOTHING:
        out[at] = -thing
        return at + 1
    return at


def write_subject(world, entity, how, out, at):
    """Writes a pronoun, "the former" or "the latter"; returns the place behind it."""
    if how == PRONOUN:
        out[at] = world.language.pronouns[entity % KINDS]
        return at + 1
    out[at], out[at + 1] = world.rules.the, world.rules.former if how == FORMER else world.rules.latter
    return at + 2


# -- search ------------------------------------------------------------------------------------------------------------


def find_fresh(s, world):
    """Finds the best passages of the query ``s.work.words``, as `palaestra.games.search.bm25.find` does.

    Writes their numbers to ``s.work.numbers``, -1 behind the last.
    """
    work, top, hits = s.work, world.options.topk, 0
    numbers, scores = work.numbers[:top], work.scores[:top]
    for passage in range(PASSAGES):
        work.totals[passage] = 0.0
    for k in range(len(work.words)):
        count = count_in_query(work.words, k)
        if count > 0:
            add_word(s, world, work.words[k], count)
    for k in range(len(work.numbers)):
        work.numbers[k] = NOTHING
    for passage in range(PASSAGES):
        if work.totals[passage] > 0.0:
            hits = enter(numbers, scores, hits, passage, work.totals[passage])


def count_in_query(words, k):
    """How often a word that passages may have stands in a query; 0 if an earlier place has it."""
    if words[k] < FIRST_WORD:
        return 0
    for j in range(k):
        if words[j] == words[k]:
            return 0
    count = 0
    for j in range(k, len(words)):
        count += words[j] == words[k]
    return count


def add_word(s, world, word, count):
    """Adds what a word of the query adds to the scores of all passages, each rounded to float32 as in postings."""
    times, totals, having = s.work.times, s.work.totals, 0
    if word >= world.rules.second:
        count_name(s, word)
    else:
        count_plain(s, world, word)
    for passage in range(PASSAGES):
        having += times[passage] > 0
    idf = world.language.idf[having]
    for passage in range(PASSAGES):
        if times[passage] > 0:
            weight = K1 * (1 - B + B * s.length[passage] / s.mean_length)
            totals[passage] += count * np.float64(np.float32(idf * times[passage] / (times[passage] + weight)))


def count_name(s, word):
    """Counts how often a word of names stands in each passage."""
    has_word, named = s.work.has_word, np.uint64(0)
    for entity in range(ENTITIES):
        has_word[entity] = (s.name_words[entity, 0] == word) | (s.name_words[entity, 1] == word)
        named |= np.uint64(has_word[entity]) << np.uint64(entity)
    has_word[ENTITIES] = 0  # nothing
    for passage in range(PASSAGES):
        s.work.times[passage] = 0
        if s.mentions[passage] & named == 0:
            continue
        count = int(has_word[passage // 2])
        for k in range(s.sentences[passage]):
            subject, thing = s.subject[passage, k], s.thing[passage, k]
            if s.how[passage, k] == NAME:
                count += has_word[subject if subject >= 0 else ENTITIES]
            count += has_word[thing if thing >= 0 else ENTITIES]
        s.work.times[passage] = count


def count_plain(s, world, word):
    """Counts how often another word stands in each passage: in templates, in their slots, in place of names."""
    row, rules, pronouns = world.language.counts[word], world.rules, world.language.pronouns
    is_in_slot = rules.number <= word < rules.year + len(YEARS)
    is_in_subject = (word == rules.the) | (word == rules.former) | (word == rules.latter)
    for kind in range(KINDS):
        is_in_subject |= word == pronouns[kind]
    is_searched = is_in_slot | is_in_subject
    first, last = world.language.having[word, 0], world.language.having[word, 1]
    for passage in range(PASSAGES):
        count = 0
        is_there = is_searched | (s.used[passage, 0] & first | s.used[passage, 1] & last != 0)
        for k in range(s.sentences[passage] if is_there else 0):
            count += row[s.template[passage, k]]
            if is_in_slot:
                count += int(s.thing[passage, k] == -word) + int(s.second[passage, k] == -word)
            if is_in_subject and s.how[passage, k] != NAME:
                count += is_called(world, s.subject[passage, k], s.how[passage, k], word)
        s.work.times[passage] = count


def is_called(world, entity, how, word):
    """Whether a sentence calls its subject by a word in place of its name."""
    if how == PRONOUN:
        return word == world.language.pronouns[entity % KINDS]
    return word == world.rules.the or word == (world.rules.former if how == FORMER else world.rules.latter)
