"""Worlds that are drawn for each match: entities, facts, the words of their passages, and the search among them.

A passage is numbers: subject, relation, objects and a template; its words are written when they are shown. The search
scores all passages by the same formula as `palaestra.search.bm25`, to the bit, without postings.
"""

from __future__ import annotations

import numpy as np

from palaestra.game import integer, uniform
from palaestra.search.bm25 import K1, B, enter
from palaestra.search.language import (
    ALIAS,
    BOTH,
    CURRENT,
    FIRST_WORD,
    FIRST_YEAR,
    FRESH_STEMS,
    KINDS,
    LITERAL,
    NOTHING,
    OBJECT,
    PATH,
    RELATION,
    RUMOUR,
    SECOND,
    SECONDS,
    SENTENCES,
    STALE,
    SUBJECT,
    YEAR,
    YEARS,
)
from palaestra.search.library import ENTITIES, PASSAGES, RELATIONS, TOP, WORDS

COUNT_OF = tuple(len(texts) for texts in SENTENCES.values())
FIRST_OF = tuple(sum(COUNT_OF[:kind]) for kind in range(len(COUNT_OF)))
"""Templates of what a passage says: how many, and the first one."""
TEMPLATES = sum(COUNT_OF)
SAYS_OF = tuple(kind for kind, count in enumerate(COUNT_OF) for _ in range(count))
SUBJECT_ALIAS, OBJECT_ALIAS, SECOND_ALIAS = 1, 2, 4
"""Bits of `other_names`: whom the sentence calls by the other name."""
YEAR_COUNT = len(YEARS)
SECOND_OBJECTS = 0.5
"""Chance of a second object of a relation that may have two."""

WORK = np.dtype(
    [
        ("words", "i4", (WORDS,)),
        ("different", "i4", (WORDS,)),
        ("times", "i4", (WORDS,)),
        ("having", "i4", (WORDS,)),
        ("in_name", "i4", (ENTITIES,)),
        ("is_alias", "i4", (ENTITIES,)),
        ("in_template", "i4", (TEMPLATES,)),
        ("is_relation", "i4", (RELATIONS,)),
        ("in_passage", "i4", (PASSAGES,)),
        ("numbers", "i4", (TOP,)),
        ("scores", "f8", (TOP,)),
    ]
)
"""Work memory, in the record as questions are tried out when a match starts: the words of a query; the different ones
and how often they are there and in passages; in which names, templates and passages they are, as bits; what is found."""

STATE = (
    ("name_words", "i4", (ENTITIES, 2)),
    ("alias_words", "i4", (ENTITIES,)),
    ("fact", "i2", (ENTITIES, RELATIONS)),
    ("passages", "i8"),
    ("mean_length", "f8"),
    ("subject", "i1", (PASSAGES,)),
    ("relation", "i1", (PASSAGES,)),
    ("template", "i1", (PASSAGES,)),
    ("other_names", "i1", (PASSAGES,)),
    ("objects", "i2", (PASSAGES, 2)),
    ("work", WORK),
)
"""What a match remembers of its world."""


# -- drawing -----------------------------------------------------------------------------------------------------------


def draw_world(s, world):
    """Draws names and facts."""
    rules = world.rules
    draw_names(s, world)
    s.passages = 0
    length = 0
    for entity in range(rules.entities):
        for relation in range(RELATIONS):
            s.fact[entity, relation] = NOTHING
            if relation < rules.relations and world.language.applies[relation, entity % KINDS]:
                length += draw_fact(s, world, entity, relation)
        if rules.aliases > 0.0:
            length += add_passage(s, world, entity, NOTHING, ALIAS, NOTHING, NOTHING)
    s.mean_length = length / s.passages


def draw_names(s, world):
    """Draws names: a stem that no other name has, unless it is a near-duplicate, and a word of the entity's kind."""
    rules = world.rules
    start, stride = integer(s, FRESH_STEMS), 1 + integer(s, FRESH_STEMS - 1)
    for entity in range(rules.entities):
        s.name_words[entity, 0] = rules.first_stem + (start + stride * entity) % FRESH_STEMS
        s.name_words[entity, 1] = rules.first_second + entity % KINDS * SECONDS + integer(s, SECONDS)
        s.alias_words[entity] = rules.first_stem + (start + stride * (rules.entities + entity)) % FRESH_STEMS
        if entity > 0 and rules.near_duplicates > 0.0 and uniform(s, 0.0, 1.0) < rules.near_duplicates:
            twin = s.name_words[integer(s, entity), 0]
            if not is_taken(s, entity, twin):
                s.name_words[entity, 0] = twin


def is_taken(s, entity, first_word):
    """Whether an earlier entity has the name that this one would have with another first word."""
    for other in range(entity):
        if s.name_words[other, 0] == first_word and s.name_words[other, 1] == s.name_words[entity, 1]:
            return True
    return False


def draw_fact(s, world, entity, relation):
    """Draws where a relation leads to and the passages about it; returns the number of their words."""
    rules = world.rules
    first = draw_object(s, world, entity, relation, NOTHING)
    second = NOTHING
    if world.language.is_many[relation] and uniform(s, 0.0, 1.0) < SECOND_OBJECTS:
        second = draw_object(s, world, entity, relation, first)
    s.fact[entity, relation] = s.passages
    length = add_passage(s, world, entity, relation, CURRENT if second == NOTHING else BOTH, first, second)
    if rules.stale > 0.0 and uniform(s, 0.0, 1.0) < rules.stale:
        other = draw_object(s, world, entity, relation, first)
        length += add_passage(s, world, entity, relation, STALE, other, NOTHING)
    if rules.contradicting > 0.0 and uniform(s, 0.0, 1.0) < rules.contradicting:
        other = draw_object(s, world, entity, relation, first)
        length += add_passage(s, world, entity, relation, RUMOUR, other, NOTHING)
    return length


def draw_object(s, world, subject, relation, other):
    """Draws what a relation leads to: neither the subject nor ``other``."""
    kind = world.language.leads_to[relation]
    if kind == YEAR:
        year = integer(s, YEAR_COUNT - (other != NOTHING))
        return LITERAL - FIRST_YEAR - year - (other != NOTHING and year >= LITERAL - FIRST_YEAR - other)
    count = (world.rules.entities - kind + KINDS - 1) // KINDS
    low, high = min(subject, other), max(subject, other)
    is_low = low != NOTHING and low % KINDS == kind
    is_high = high % KINDS == kind and high != low
    found = kind + KINDS * integer(s, count - is_low - is_high)
    if is_low and found >= low:
        found += KINDS
    if is_high and found >= high:
        found += KINDS
    return found


def add_passage(s, world, subject, relation, says, first, second):
    """Adds a passage; returns the number of its words."""
    passage = s.passages
    template = FIRST_OF[says] + integer(s, COUNT_OF[says])
    s.subject[passage], s.relation[passage], s.template[passage] = subject, relation, template
    s.objects[passage, 0], s.objects[passage, 1] = first, second
    names = 0
    if world.rules.aliases > 0.0 and says != ALIAS:
        for bit in range(3):
            names |= int(uniform(s, 0.0, 1.0) < world.rules.aliases) << bit
    s.other_names[passage] = names
    s.passages = passage + 1
    return length_of(s, world, passage)


def length_of(s, world, passage):
    """Number of a passage's words."""
    names, length = s.other_names[passage], 2 + world.language.template_lengths[s.template[passage]]
    length += 1 if names & SUBJECT_ALIAS else 2
    for k in range(2):
        thing = s.objects[passage, k]
        if thing >= 0:
            length += 1 if names & (OBJECT_ALIAS << k) else 2
        else:
            length += thing <= LITERAL
    return length + (SAYS_OF[s.template[passage]] == ALIAS)


# -- words -------------------------------------------------------------------------------------------------------------


def write_passage(s, world, passage, out):
    """Writes the words of a passage, its title first, and zeros behind them."""
    names, subject = s.other_names[passage], s.subject[passage]
    first, second = s.objects[passage, 0], s.objects[passage, 1]
    end = write_name(s, world, subject, 0, out, 0)
    template = world.language.templates[s.template[passage]]
    for k in range(len(template)):
        symbol = template[k]
        if symbol >= FIRST_WORD:
            out[end] = symbol
            end += 1
        elif symbol == SUBJECT:
            end = write_name(s, world, subject, names & SUBJECT_ALIAS, out, end)
        elif symbol == OBJECT and SAYS_OF[s.template[passage]] == ALIAS:
            end = write_name(s, world, subject, 1, out, end)
        elif symbol == OBJECT:
            end = write_name(s, world, first, names & OBJECT_ALIAS, out, end)
        elif symbol == SECOND:
            end = write_name(s, world, second, names & SECOND_ALIAS, out, end)
        elif symbol == RELATION:
            out[end] = world.language.relation_words[s.relation[passage]]
            end += 1
    for k in range(end, len(out)):
        out[k] = 0


def write_name(s, world, thing, by_alias, out, at):
    """Writes the name of an entity or a literal; returns the place behind it."""
    if by_alias and thing >= 0:
        out[at] = s.alias_words[thing]
        return at + 1
    for k in range(2):
        if thing <= LITERAL:
            word = world.language.literal_words[LITERAL - thing, k]
        elif world.rules.fresh:
            word = s.name_words[thing, k]
        else:
            word = world.facts.names[thing, k]
        if word != 0 and at < len(out):
            out[at] = word
            at += 1
    return at


def write_question(s, world, template, out):
    """Writes the words of a question: its path or its two entities."""
    symbols, end = world.language.question_templates[template], 0
    for k in range(len(symbols)):
        symbol = symbols[k]
        if symbol >= FIRST_WORD:
            out[end] = symbol
            end += 1
        elif symbol == SUBJECT:
            end = write_name(s, world, s.nodes[0], 0, out, end)
        elif symbol == OBJECT:
            end = write_name(s, world, s.nodes[1], 0, out, end)
        elif symbol == RELATION:
            out[end] = world.language.relation_words[s.relations[0]]
            end += 1
        elif symbol == PATH:
            for hop in range(s.hops - 1, -1, -1):
                for j in range(len(world.language.step_of_path)):
                    word = world.language.step_of_path[j]
                    out[end] = world.language.relation_words[s.relations[hop]] if word == RELATION else word
                    end += 1
    for k in range(end, len(out)):
        out[k] = 0


# -- search ------------------------------------------------------------------------------------------------------------


def find_fresh(s, world):
    """Finds the best passages of the query ``s.work.words``, as `palaestra.search.bm25.find` does; writes ``s.work.numbers``."""
    count = read_words(s)
    mark_words(s, world, count)
    for passage in range(s.passages):
        bits, j = words_of(s, world, passage, count), 0
        s.work.in_passage[passage] = bits
        while bits:
            s.work.having[j] += bits & 1
            bits >>= 1
            j += 1
    hits = 0
    for k in range(TOP):
        s.work.numbers[k] = NOTHING
    for passage in range(s.passages):
        if s.work.in_passage[passage]:
            score = score_of(s, world, passage)
            hits = enter(s.work.numbers, s.work.scores, hits, passage, score)
    return hits


def read_words(s):
    """The different words of a query and how often each stands there; returns their number."""
    words, count = s.work.words, 0
    for k in range(len(words)):
        if words[k] < FIRST_WORD:
            continue
        j = 0
        while j < count and s.work.different[j] != words[k]:
            j += 1
        if j == count:
            s.work.different[j] = words[k]
            s.work.times[j] = 0
            s.work.having[j] = 0
            count += 1
        s.work.times[j] += 1
    return count


def mark_words(s, world, count):
    """Marks in which names, templates and relations the words of a query are: bit j for word j."""
    language = world.language
    plain = language.template_counts.shape[1]
    for entity in range(world.rules.entities):
        s.work.in_name[entity], s.work.is_alias[entity] = 0, 0
    for relation in range(RELATIONS):
        s.work.is_relation[relation] = 0
    for template in range(TEMPLATES):
        s.work.in_template[template] = 0
    for j in range(count):
        word, bit = s.work.different[j], 1 << j
        for entity in range(world.rules.entities):
            if s.name_words[entity, 0] == word or s.name_words[entity, 1] == word:
                s.work.in_name[entity] |= bit
            if s.alias_words[entity] == word:
                s.work.is_alias[entity] |= bit
        for relation in range(RELATIONS):
            if language.relation_words[relation] == word:
                s.work.is_relation[relation] |= bit
        if word - FIRST_WORD < plain:
            for template in range(TEMPLATES):
                if language.template_counts[template, word - FIRST_WORD]:
                    s.work.in_template[template] |= bit


def words_of(s, world, passage, count):
    """Which of the ``count`` words of the query a passage has, as bits."""
    template, subject, names = s.template[passage], s.subject[passage], s.other_names[passage]
    bits = s.work.in_template[template] | s.work.in_name[subject]
    if s.relation[passage] != NOTHING:
        bits |= s.work.is_relation[s.relation[passage]]
    if names & SUBJECT_ALIAS or SAYS_OF[template] == ALIAS:
        bits |= s.work.is_alias[subject]
    for k in range(2):
        thing = s.objects[passage, k]
        if thing >= 0:
            bits |= s.work.is_alias[thing] if names & (OBJECT_ALIAS << k) else s.work.in_name[thing]
        elif thing <= LITERAL:
            for j in range(count):
                bits |= int(s.work.different[j] == world.language.literal_words[LITERAL - thing, 0]) << j
    return bits


def score_of(s, world, passage):
    """A passage's score: the sum of what each word adds, rounded to float32 as in postings."""
    template, subject, names = s.template[passage], s.subject[passage], s.other_names[passage]
    weight = K1 * (1 - B + B * length_of(s, world, passage) / s.mean_length)
    bits, j, score = s.work.in_passage[passage], 0, 0.0
    while bits:
        if bits & 1:
            word = s.work.different[j] - FIRST_WORD
            times = 0
            if word < world.language.template_counts.shape[1]:
                times += world.language.template_counts[template, word]
            if s.relation[passage] != NOTHING:
                times += s.work.is_relation[s.relation[passage]] >> j & 1
            in_name, is_alias = s.work.in_name[subject] >> j & 1, s.work.is_alias[subject] >> j & 1
            times += in_name + (is_alias if names & SUBJECT_ALIAS else in_name)
            if SAYS_OF[template] == ALIAS:
                times += is_alias
            for k in range(2):
                thing = s.objects[passage, k]
                if thing >= 0:
                    marks = s.work.is_alias[thing] if names & (OBJECT_ALIAS << k) else s.work.in_name[thing]
                    times += marks >> j & 1
                elif thing <= LITERAL:
                    times += s.work.different[j] == world.language.literal_words[LITERAL - thing, 0]
            idf = world.language.idf[s.passages, s.work.having[j]]
            score += s.work.times[j] * np.float64(np.float32(idf * times / (times + weight)))
        bits >>= 1
        j += 1
    return score
