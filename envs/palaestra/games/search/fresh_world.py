"""Worlds that are drawn for each match: entities, facts, the words of their passages, and the search among them.

A passage is numbers: subject, relation, objects and a template; its words are written when they are shown. The search
scores all passages by the same formula as `palaestra.games.search.bm25`, to the bit, without postings.
"""

from __future__ import annotations

import numpy as np

from palaestra.core.rng import GOLDEN, mix64
from palaestra.game import integer, uniform
from palaestra.games.search.bm25 import K1, B, enter
from palaestra.games.search.language import (
    ALIAS,
    BOTH,
    CURRENT,
    FIRST_WORD,
    FIRST_YEAR,
    FRESH_STEMS,
    KINDS,
    LITERAL,
    LITERALS,
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
from palaestra.games.search.library import ENTITIES, MOST_TOP, MOST_WORDS, PASSAGES, RELATIONS, WORDS

COUNT_OF = tuple(len(texts) for texts in SENTENCES.values())
FIRST_OF = tuple(sum(COUNT_OF[:kind]) for kind in range(len(COUNT_OF)))
"""Templates of what a passage says: how many, and the first one."""
TEMPLATES = sum(COUNT_OF)
SAYS_OF = tuple(kind for kind, count in enumerate(COUNT_OF) for _ in range(count))
SUBJECT_ALIAS, OBJECT_ALIAS, SECOND_ALIAS, TELLS_ALIAS = 1, 2, 4, 8
"""Bits of `other_names`: whom the sentence calls by the other name, or that it tells it."""
LITERAL_COUNT = len(LITERALS)
THINGS = ENTITIES + LITERAL_COUNT + 1
"""Entities, literals and nothing: literals count from the end of such an array, nothing is the last of it."""
YEAR_COUNT = len(YEARS)
MOST_TIMES = 8
"""No word stands more often in a passage."""
SHORTEST = 7
"""Words of the shortest passage, or fewer."""
ROUNDED_UP = 1.000001
"""More than what a score gains by its rounding to float32."""
BITS, UNUSED_BITS = 31, np.uint64(2)
LOW_BITS = (1 << BITS) - 1
MOST_OF_ENTITY = 6
"""Passages that are left room for: the facts of an entity, its other name, and what noise adds to one fact."""

WORK = np.dtype(
    [
        ("words", "i4", (MOST_WORDS,)),
        ("different", "i4", (WORDS,)),
        ("times", "i4", (WORDS,)),
        ("having", "i4", (WORDS,)),
        ("in_name", "u2", (THINGS,)),
        ("is_alias", "u2", (THINGS,)),
        ("in_template", "u2", (TEMPLATES,)),
        ("is_relation", "u2", (RELATIONS + 1,)),
        ("in_passage", "u2", (PASSAGES,)),
        ("marked", "u1", (PASSAGES,)),
        ("has_literals", "u1"),
        ("numbers", "i4", (MOST_TOP,)),
        ("scores", "f8", (MOST_TOP,)),
        ("idf", "f8", (WORDS,)),
        ("most", "f8", (WORDS,)),
    ]
)
"""Work memory, in the record as questions are tried out when a match starts: the words of a query; the different ones
and how often they are there and in passages; in which names, templates and passages they are, as bits; the passages
that have any; results."""

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
    ("length", "i1", (PASSAGES,)),
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
    length, kind = 0, 0
    for entity in range(rules.entities):
        for relation in range(world.options.relations):
            s.fact[entity, relation] = NOTHING
            if world.language.applies[relation, kind]:
                length += draw_fact(s, world, entity, kind, relation)
        if world.options.aliases > 0.0:
            length += add_passage(s, world, entity, NOTHING, ALIAS, NOTHING, NOTHING, 0)
        kind = 0 if kind == KINDS - 1 else kind + 1
    s.mean_length = length / s.passages


def draw_names(s, world):
    """Draws names: a stem that no other name has, unless it is a near-duplicate, and a word of the entity's kind."""
    rules = world.rules
    stem, stride, kind = integer(s, FRESH_STEMS), 1 + integer(s, FRESH_STEMS - 1), 0
    for entity in range(rules.entities):
        s.name_words[entity, 0] = rules.first_stem + stem
        s.name_words[entity, 1] = rules.first_second + kind * SECONDS + share_of(draw_bits(s) >> BITS, SECONDS)
        stem = stem + stride if stem + stride < FRESH_STEMS else stem + stride - FRESH_STEMS
        kind = 0 if kind == KINDS - 1 else kind + 1
    for entity in range(rules.entities):
        s.alias_words[entity] = rules.first_stem + stem
        stem = stem + stride if stem + stride < FRESH_STEMS else stem + stride - FRESH_STEMS
    if world.options.near_duplicates > 0.0:
        for entity in range(1, rules.entities):
            if uniform(s, 0.0, 1.0) < world.options.near_duplicates:
                twin = s.name_words[integer(s, entity), 0]
                if not is_taken(s, entity, twin):
                    s.name_words[entity, 0] = twin


def draw_bits(s):
    """A number of twice `BITS` bits from the stream of the rules: two outcomes for one draw, in whole numbers."""
    s.rng += GOLDEN
    return np.int64(mix64(s.rng) >> UNUSED_BITS)


def share_of(bits, n):
    """An int in [0, n) from a number of `BITS` bits."""
    return bits * n >> BITS


def is_taken(s, entity, first_word):
    """Whether an earlier entity has the name that this one would have with another first word."""
    for other in range(entity):
        if s.name_words[other, 0] == first_word and s.name_words[other, 1] == s.name_words[entity, 1]:
            return True
    return False


def draw_fact(s, world, entity, kind, relation):
    """Draws where a relation of an entity leads to, and the passages about it; returns the number of their words."""
    rules = world.rules
    bits = draw_bits(s)
    first = draw_object(world, entity, kind, relation, NOTHING, bits >> BITS)
    second = NOTHING
    if world.language.is_many[relation] and bits & 1:
        second = draw_object(world, entity, kind, relation, first, draw_bits(s) >> BITS)
    s.fact[entity, relation] = s.passages
    says = CURRENT if second == NOTHING else BOTH
    length = add_passage(s, world, entity, relation, says, first, second, bits & LOW_BITS)
    has_room = s.passages + MOST_OF_ENTITY * (rules.entities - entity) < PASSAGES
    if world.options.stale > 0.0 and uniform(s, 0.0, 1.0) < world.options.stale and has_room:
        bits = draw_bits(s)
        other = draw_object(world, entity, kind, relation, first, bits >> BITS)
        length += add_passage(s, world, entity, relation, STALE, other, NOTHING, bits & LOW_BITS)
    if world.options.contradicting > 0.0 and uniform(s, 0.0, 1.0) < world.options.contradicting and has_room:
        bits = draw_bits(s)
        other = draw_object(world, entity, kind, relation, first, bits >> BITS)
        length += add_passage(s, world, entity, relation, RUMOUR, other, NOTHING, bits & LOW_BITS)
    return length


def draw_object(world, subject, kind, relation, other, bits):
    """What a relation leads to by random bits: neither the subject, of a kind, nor ``other`` (-1 for nothing)."""
    wanted = int(world.language.leads_to[relation])
    if wanted == YEAR:
        year = share_of(bits, YEAR_COUNT - (other != NOTHING))
        return LITERAL - FIRST_YEAR - year - (other != NOTHING and year >= LITERAL - FIRST_YEAR - other)
    low, high = -1, -1
    if kind == wanted:
        low = subject
    if other != NOTHING:
        low, high = min(low, other), max(low, other)
    if low == NOTHING:
        low, high = high, -1
    count = (world.rules.entities - wanted + KINDS - 1) // KINDS
    found = wanted + KINDS * share_of(bits, count - (low >= 0) - (high >= 0))
    if low >= 0 and found >= low:
        found += KINDS
    if high >= 0 and found >= high:
        found += KINDS
    return found


def add_passage(s, world, subject, relation, says, first, second, bits):
    """Adds a passage, whose sentence is chosen by random bits; returns the number of its words."""
    passage = s.passages
    template = FIRST_OF[says] + share_of(bits, COUNT_OF[says])
    s.subject[passage], s.relation[passage], s.template[passage] = subject, relation, template
    s.objects[passage, 0], s.objects[passage, 1] = first, second
    names = TELLS_ALIAS if says == ALIAS else 0
    if world.options.aliases > 0.0 and says != ALIAS:
        for bit in range(3):
            names |= int(uniform(s, 0.0, 1.0) < world.options.aliases) << bit
    s.other_names[passage] = names
    s.passages = passage + 1
    length = 2 + world.language.template_lengths[template] + name_length(subject, names & SUBJECT_ALIAS)
    length += name_length(first, names & OBJECT_ALIAS) + name_length(second, names & SECOND_ALIAS) + (says == ALIAS)
    s.length[passage] = length
    return length


def name_length(thing, by_alias):
    """Words of a name: two of an entity's, one of its other name or a literal, none of nothing."""
    if thing >= 0:
        return 1 if by_alias else 2
    return 1 if thing <= LITERAL else 0


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
    """Finds the best passages of the query ``s.work.words``, as `palaestra.games.search.bm25.find` does.

    Writes their numbers to ``s.work.numbers``, -1 behind the last.
    """
    top, count, hits = world.options.topk, read_words(s), 0
    numbers, scores = s.work.numbers[:top], s.work.scores[:top]
    mark_words(s, world, count)
    marked = mark_passages(s, world)
    for k in range(len(s.work.numbers)):
        s.work.numbers[k] = NOTHING
    first = most_of(s, world, count)
    for k in range(marked):
        passage = s.work.marked[k]
        if s.work.in_passage[passage] & first:
            hits = enter(numbers, scores, hits, passage, score_of(s, world, passage))
    for k in range(marked):
        passage = s.work.marked[k]
        bits = int(s.work.in_passage[passage])
        if not bits & first and (hits < top or not scores[top - 1] > bound_of(s, bits)):
            hits = enter(numbers, scores, hits, passage, score_of(s, world, passage))
    return hits


def is_long(words):
    """Whether a query may have more different words than a mask has bits."""
    count = 0
    for k in range(len(words)):
        count += words[k] >= FIRST_WORD
    return count > WORDS


def find_long(s, world, terms, sentence):
    """`find_fresh` for a query of up to `MOST_WORDS` different words, from the written passages.

    Args:
        s: The match record.
        world: The library.
        terms: Records of `palaestra.games.search.bm25.TERM`, work memory.
        sentence: int32, work memory with room for a passage.
    """
    top, count, hits = world.options.topk, 0, 0
    numbers, scores = s.work.numbers[:top], s.work.scores[:top]
    for k in range(len(s.work.words)):
        word, j = s.work.words[k], 0
        while j < count and terms[j].word != word:
            j += 1
        if word >= FIRST_WORD and j == count:
            terms[j].word, terms[j].count, terms[j].at = word, 0, 0
            count += 1
        if word >= FIRST_WORD:
            terms[j].count += 1
    for passage in range(s.passages):
        write_passage(s, world, passage, sentence)
        for j in range(count):
            terms[j].at += times_in(sentence, terms[j].word) > 0
    for k in range(len(s.work.numbers)):
        s.work.numbers[k] = NOTHING
    for passage in range(s.passages):
        write_passage(s, world, passage, sentence)
        weight, score = K1 * (1 - B + B * s.length[passage] / s.mean_length), 0.0
        for j in range(count):
            times = times_in(sentence, terms[j].word)
            idf = world.language.idf[s.passages, terms[j].at]
            score += terms[j].count * np.float64(np.float32(idf * times / (times + weight)))
        if score > 0.0:
            hits = enter(numbers, scores, hits, passage, score)
    return hits


def times_in(words, word):
    """How often a word stands in a passage."""
    times = 0
    for k in range(len(words)):
        times += words[k] == word
    return times


def mark_passages(s, world):
    """Marks which words of the query each passage has, and counts in how many passages each word is.

    Writes the passages that have any to ``s.work.marked``; returns their number.
    """
    work, end, n = s.work, int(s.passages), 0
    if world.options.aliases > 0.0:
        for passage in range(end):
            work.in_passage[passage] = words_of(s, passage)
    else:
        mark_plain(s, world, end)
    for passage in range(end):
        bits, j = int(work.in_passage[passage]), 0
        if bits:
            work.marked[n] = passage
            n += 1
            while bits >> j:
                work.having[j] += bits >> j & 1
                j += 1
    return n


def mark_plain(s, world, end):
    """Marks the words of the query in passages without other names; by what has a word, of which there are few."""
    work = s.work
    for passage in range(end):
        work.in_passage[passage] = 0
    for relation in range(world.options.relations):
        bits = work.is_relation[relation]
        if bits:
            for passage in range(end):
                work.in_passage[passage] |= bits * np.uint16(s.relation[passage] == relation)
    for template in range(TEMPLATES):
        bits = work.in_template[template]
        if bits:
            for passage in range(end):
                work.in_passage[passage] |= bits * np.uint16(s.template[passage] == template)
    for thing in range(world.rules.entities):
        if work.in_name[thing]:
            mark_thing(s, thing, end)
    for literal in range(LITERAL_COUNT if work.has_literals else 0):
        if work.in_name[LITERAL - literal]:
            mark_thing(s, LITERAL - literal, end)


def mark_thing(s, thing, end):
    """Marks the words of the name of an entity or a literal in the passages that are about it."""
    work = s.work
    bits = work.in_name[thing]
    for passage in range(end):
        is_about = (s.subject[passage] == thing) | (s.objects[passage, 0] == thing) | (s.objects[passage, 1] == thing)
        work.in_passage[passage] |= bits * np.uint16(is_about)


def most_of(s, world, count):
    """Computes what each word may add to a score at most; returns the bit of the one that may add most.

    A noun of a relation stands once in a passage, a word of names up to `MOST_TIMES`.
    """
    weight, best = K1 * (1 - B + B * SHORTEST / s.mean_length), 0
    for j in range(count):
        word = s.work.different[j]
        is_once = world.rules.first_second > word and world.language.once[word - FIRST_WORD]
        times = 1 if is_once else MOST_TIMES
        s.work.idf[j] = idf = world.language.idf[s.passages, s.work.having[j]]
        s.work.most[j] = s.work.times[j] * idf * times / (times + weight) * ROUNDED_UP
        if s.work.most[j] > s.work.most[best]:
            best = j
    return 1 << best


def bound_of(s, bits):
    """What a passage with some words of the query may score at most."""
    bound, j = 0.0, 0
    while bits >> j:
        if bits >> j & 1:
            bound += s.work.most[j]
        j += 1
    return bound


def read_words(s):
    """The different words of a query, at most `WORDS`, and how often each stands there; returns their number."""
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
    rules, language, work = world.rules, world.language, s.work
    for thing in range(THINGS):
        work.in_name[thing], work.is_alias[thing] = 0, 0
    for relation in range(RELATIONS):
        work.is_relation[relation] = 0
    for template in range(TEMPLATES):
        work.in_template[template] = 0
    work.has_literals = 0
    for j in range(count):
        word, bit = work.different[j], np.uint16(1 << j)
        literal = word - language.literal_words[0, 0]
        if word >= rules.first_second:
            mark_names(s, world, word, bit)
        elif 0 <= literal < LITERAL_COUNT:
            work.has_literals = 1
            work.in_name[LITERAL - literal] |= bit
        else:
            for relation in range(RELATIONS):
                if language.relation_words[relation] == word:
                    work.is_relation[relation] |= bit
            for template in range(TEMPLATES):
                if language.template_counts[template, word - FIRST_WORD]:
                    work.in_template[template] |= bit


def mark_names(s, world, word, bit):
    """Marks the entities whose names have a word."""
    rules, k = world.rules, int(word < world.rules.first_stem)
    for entity in range(rules.entities):
        if s.name_words[entity, k] == word:
            s.work.in_name[entity] |= bit
    for entity in range(rules.entities if world.options.aliases > 0.0 else 0):
        if s.alias_words[entity] == word:
            s.work.is_alias[entity] |= bit


def words_of(s, passage):
    """Which words of the query a passage has, as bits."""
    work, subject, names = s.work, s.subject[passage], s.other_names[passage]
    bits = work.in_template[s.template[passage]] | work.in_name[subject] | work.is_relation[s.relation[passage]]
    if names == 0:
        return int(bits | work.in_name[s.objects[passage, 0]] | work.in_name[s.objects[passage, 1]])
    return int(bits | said_subject(s, passage) | said_object(s, passage, 0) | said_object(s, passage, 1))


def said_subject(s, passage):
    """The words with which a sentence names its subject, as bits."""
    by_alias = s.other_names[passage] & SUBJECT_ALIAS
    return s.work.is_alias[s.subject[passage]] if by_alias else s.work.in_name[s.subject[passage]]


def said_object(s, passage, k):
    """The words with which a sentence names an object, as bits; the other name of its subject where it tells that."""
    thing, names = s.objects[passage, k], s.other_names[passage]
    if names & TELLS_ALIAS:
        return s.work.is_alias[s.subject[passage] if k == 0 else NOTHING]
    by_alias = thing >= 0 and names & (OBJECT_ALIAS << k)
    return s.work.is_alias[thing] if by_alias else s.work.in_name[thing]


def score_of(s, world, passage):
    """A passage's score: the sum of what each word adds, rounded to float32 as in postings."""
    weight = K1 * (1 - B + B * s.length[passage] / s.mean_length)
    bits, in_template = int(s.work.in_passage[passage]), int(s.work.in_template[s.template[passage]])
    title, relation = int(s.work.in_name[s.subject[passage]]), int(s.work.is_relation[s.relation[passage]])
    subject = int(said_subject(s, passage))
    first, second = int(said_object(s, passage, 0)), int(said_object(s, passage, 1))
    score, j = 0.0, 0
    while bits >> j:
        if bits >> j & 1:
            times = (title >> j & 1) + (subject >> j & 1) + (first >> j & 1) + (second >> j & 1) + (relation >> j & 1)
            if in_template >> j & 1:
                times += world.language.template_counts[s.template[passage], s.work.different[j] - FIRST_WORD]
            idf = s.work.idf[j]
            score += s.work.times[j] * np.float64(np.float32(idf * times / (times + weight)))
        j += 1
    return score
