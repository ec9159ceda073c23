"""Which question a match asks of a world that must be read, and what its path needs.

A question is asked only if one who follows its path is shown every passage that it needs: each search for a name and
the question's words for a relation must have the passage among those that are shown; where nobody knows the answer and
no passage says so, both passages of the entity.
"""

from __future__ import annotations

import numpy as np

from palaestra.core.rng import GOLDEN, mix64
from palaestra.game import integer
from palaestra.games.search.language import NO_WORD, NOTHING
from palaestra.games.search.library import ANSWERS, MOST_HOPS, WORDS
from palaestra.games.search.reading_language import (
    COUNT,
    EACH,
    ENTITY_RELATIONS,
    KINDS,
    YEAR_RELATION,
)
from palaestra.games.search.reading_world import ABSENT, ENTITIES, TOLD, draw_other, draw_world, find_fresh

PATH, EARLIER, NOBODY = range(3)
"""Kinds of questions: along a path, which of two is earlier, a path whose end nobody knows."""
EARLIER_SHARE, NOBODY_SHARE = 5, 8
"""In per cent."""
QUESTION = 32
"""Words of a question."""
TRIES, MOST_TRIES = 128, 2048
"""Questions of a kind that are drawn until one can be answered, and with those along paths that are drawn then."""

STATE = (
    ("question", "i4", (QUESTION,)),
    ("number", "i8"),
    ("kind", "i8"),
    ("hops", "i8"),
    ("relations", "i4", (MOST_HOPS,)),
    ("nodes", "i4", (MOST_HOPS + 1, 2)),
    ("gold", "i4", (MOST_HOPS,)),
    ("seen", "u1", (MOST_HOPS,)),
    ("answers", "i4", (ANSWERS, WORDS)),
    ("queries", "i4", (MOST_HOPS, WORDS)),
)
"""What a match remembers of its question, see `palaestra.games.search.reading_world.Asked`."""


def pose(s, world):
    """Poses the question of a match; draws the world before where it is fresh."""
    if world.rules.fresh:
        s.number = NOTHING
        draw_world(s, world)
        if s.parameters.question > 0:
            s.rng = mix64(s.rng + GOLDEN * np.uint64(int(s.parameters.question)))
        draw_question(s, world)
    else:
        s.number = integer(s, world.rules.questions)
        read_question(s, world.asked, s.number)
    s.info.number = s.number


def read_question(s, asked, number):
    """Copies a question of a fixed world."""
    s.kind, s.hops = asked.kind[number], asked.hops[number]
    for k in range(QUESTION):
        s.question[k] = asked.question[number, k]
    for hop in range(MOST_HOPS):
        s.relations[hop], s.gold[hop] = asked.relations[number, hop], asked.gold[number, hop]
        for k in range(WORDS):
            s.queries[hop, k] = asked.queries[number, hop, k]
    for k in range(MOST_HOPS + 1):
        s.nodes[k, 0], s.nodes[k, 1] = asked.nodes[number, k, 0], asked.nodes[number, k, 1]
    for j in range(ANSWERS):
        for k in range(WORDS):
            s.answers[j, k] = asked.answers[number, j, k]


def draw_question(s, world):
    """Draws a question that can be answered, and writes its words and answers."""
    share, tries, is_fair = integer(s, 100), 0, False
    while tries < MOST_TRIES and not is_fair:
        tries += 1
        share = share if tries <= TRIES else 100
        if share < EARLIER_SHARE:
            is_fair = draw_pair(s, world)
        else:
            is_fair = draw_path(s, world, share < EARLIER_SHARE + NOBODY_SHARE)
        is_fair = is_fair and is_followable(s, world)
    write_question(s, world)
    write_answers(s, world)


def start(s, kind, hops):
    """Starts a question."""
    s.kind, s.hops = kind, hops
    for k in range(MOST_HOPS):
        s.relations[k], s.gold[k], s.path[k] = NOTHING, NOTHING, NOTHING


def draw_path(s, world, is_unknown):
    """Draws a path over entities that differ to an entity, a year or a number; returns whether it did not end early."""
    fewest, most = world.options.hops
    start(s, NOBODY if is_unknown else PATH, fewest + integer(s, most - fewest + 1))
    at = integer(s, ENTITIES)
    for hop in range(s.hops):
        is_last = hop == s.hops - 1
        relation = integer(s, EACH if is_last else ENTITY_RELATIONS)
        add_step(s, hop, at, relation, integer(s, 2))
        is_wanted_unknown = is_unknown and is_last
        if (s.status[at, relation] == TOLD) == is_wanted_unknown:
            return False
        at = s.objects[at, relation]
        for k in range(hop + 1):
            if s.path[k] == at and not is_wanted_unknown:
                return False
    s.path[MOST_HOPS] = at
    return True


def add_step(s, hop, entity, relation, phrase):
    """Adds a fact to a path."""
    s.path[hop], s.phrases[hop] = entity, phrase
    s.relations[hop] = entity % KINDS * EACH + relation
    s.gold[hop] = s.told_in[entity, relation]


def draw_pair(s, world):
    """Draws two entities of a kind with different years; returns whether passages tell both."""
    start(s, EARLIER, 2)
    first = integer(s, ENTITIES)
    second = draw_other(s, first, first % KINDS)
    add_step(s, 0, first, YEAR_RELATION, 0)
    add_step(s, 1, second, YEAR_RELATION, 0)
    ours, theirs = s.objects[first, YEAR_RELATION], s.objects[second, YEAR_RELATION]
    s.path[MOST_HOPS] = first if ours > theirs else second  # the token of a later year is higher, minus it is lower
    are_told = s.status[first, YEAR_RELATION] == TOLD and s.status[second, YEAR_RELATION] == TOLD
    return are_told and ours != theirs


def is_followable(s, world):
    """Writes what one who follows the path searches for, and returns whether that shows what is needed."""
    is_fair = True
    for hop in range(MOST_HOPS):
        write_query(s, world, hop)
    for hop in range(s.hops):
        if is_fair:
            for k in range(len(s.work.words)):
                s.work.words[k] = s.queries[hop, k] if k < WORDS else NO_WORD
            find_fresh(s, world)
            is_fair = has_found(s, world, s.gold[hop])
    if s.kind == NOBODY and s.status[s.path[s.hops - 1], s.relations[s.hops - 1] % EACH] == ABSENT:
        is_fair = is_fair and has_found(s, world, s.gold[s.hops - 1] ^ 1)
    return is_fair


def has_found(s, world, passage):
    """Whether the search has found a passage."""
    is_there = False
    for k in range(world.options.topk):
        is_there |= s.work.numbers[k] == passage
    return is_there


# -- words -------------------------------------------------------------------------------------------------------------


def write_query(s, world, hop):
    """Writes a name and the question's words for its relation; nothing behind the end of the path."""
    query, end, language = s.queries[hop], 0, world.language
    if hop < s.hops:
        end = write_name(s, s.path[hop], query, 0)
        if s.kind == EARLIER:
            end = write_words(language.earlier_keywords[s.path[hop] % KINDS], query, end)
        else:
            end = write_words(language.keywords[s.relations[hop], s.phrases[hop]], query, end)
    for k in range(end, WORDS):
        query[k] = NO_WORD


def write_name(s, entity, out, at):
    """Writes a name; returns the place behind it."""
    out[at], out[at + 1] = s.name_words[entity, 0], s.name_words[entity, 1]
    return at + 2


def write_words(words, out, at):
    """Writes some words, whose end is a 0; returns the place behind them."""
    for k in range(len(words)):
        if words[k] == NO_WORD:
            break
        out[at] = words[k]
        at += 1
    return at


def write_question(s, world):
    """Writes the words of the question."""
    language, out, end, last = world.language, s.question, 0, s.hops - 1
    if s.kind == EARLIER:
        end = write_name(s, s.path[0], out, write_words(language.which[0], out, 0))
        end = write_name(s, s.path[1], out, write_words(language.which[1], out, end))
        end = write_words(language.earlier[s.path[0] % KINDS], out, end)
    else:
        if language.is_whole[s.relations[last], s.phrases[last]] == 0:
            end = write_words(language.leads[integer(s, 2)], out, 0)
        for hop in range(last, -1, -1):
            end = write_words(language.before[s.relations[hop], s.phrases[hop]], out, end)
        end = write_name(s, s.path[0], out, end)
        for hop in range(s.hops):
            end = write_words(language.behind[s.relations[hop], s.phrases[hop]], out, end)
    for k in range(end, QUESTION):
        out[k] = NO_WORD


def write_answers(s, world):
    """Writes the right answers, a number as word and as digits, and the names along the path."""
    rules, thing = world.rules, s.path[MOST_HOPS]
    for j in range(ANSWERS):
        for k in range(WORDS):
            s.answers[j, k] = NO_WORD
    if s.kind == NOBODY:
        s.answers[0, 0] = rules.unknown
    elif thing >= 0:
        write_name(s, thing, s.answers[0], 0)
    else:
        s.answers[0, 0] = -thing
        if world.language.leads_to[s.relations[s.hops - 1]] == COUNT:
            s.answers[1, 0] = -thing - rules.number + rules.digit
    for k in range(MOST_HOPS + 1):
        s.nodes[k, 0], s.nodes[k, 1] = NO_WORD, NO_WORD
    for hop in range(s.hops):
        write_name(s, s.path[hop], s.nodes[hop], 0)
    if s.kind == EARLIER:
        for k in range(2):
            s.nodes[2 + k, 0] = -s.objects[s.path[k], YEAR_RELATION]
    s.nodes[MOST_HOPS, 0], s.nodes[MOST_HOPS, 1] = s.answers[0, 0], s.answers[0, 1]
