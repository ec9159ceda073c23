"""Which question a match asks: drawn from its own world, or one of those of a fixed world; and what agents mention.

A question is asked only if one who follows its path is shown every passage that is needed: each search for "name and
relation" must have the passage among the first three, and the answer must be among the entities that an agent keeps in
mind.
"""

from __future__ import annotations

import numpy as np

from palaestra.game import integer
from palaestra.games.search.fresh_world import SAYS_OF, draw_world, find_fresh, write_name, write_question
from palaestra.games.search.language import (
    BOTH,
    CURRENT,
    HOPS,
    KINDS,
    LITERAL,
    NO,
    NO_WORD,
    NOTHING,
    OLDER,
    QUESTIONS,
    SAME,
    YEAR,
    YEAR_RELATION,
    YES,
)
from palaestra.games.search.library import ANSWERS, MENTIONS, MOST_HOPS, MOST_TOP, QUESTION_WORDS, RELATIONS, WORDS

TRIES = 32
"""Questions that are drawn until one can be answered."""
PARTNERS = 64
"""Draws of the two entities of a comparison."""
COUNT_OF = tuple(len(texts) for texts in QUESTIONS.values())
FIRST_OF = tuple(sum(COUNT_OF[:kind]) for kind in range(len(COUNT_OF)))

STATE = (
    ("question", "i4", (QUESTION_WORDS,)),
    ("number", "i8"),
    ("kind", "i8"),
    ("hops", "i8"),
    ("relations", "i4", (MOST_HOPS,)),
    ("nodes", "i4", (MOST_HOPS + 1,)),
    ("gold", "i4", (MOST_HOPS,)),
    ("seen", "u1", (MOST_HOPS,)),
    ("tried", "i8"),
    ("found", "i2", (MOST_HOPS, MOST_TOP)),
    ("answers", "i4", (ANSWERS, WORDS)),
    ("mentions", "i8"),
    ("mentioned", "i4", (MENTIONS,)),
    ("known", "u2", (MENTIONS, RELATIONS)),
    ("doubtful", "u2", (MENTIONS, RELATIONS)),
)
"""What a match remembers of its question; of what `is_followable` found for the first `tried` steps of its path; and,
in the structured form, of what was mentioned."""


def pose(s, world):
    """Poses the question of a match; draws the world before where it is fresh."""
    if world.rules.fresh:
        s.number = NOTHING
        draw_world(s, world)
        draw_question(s, world)
    else:
        s.number = integer(s, world.rules.questions)
        read_question(s, world)
    s.info.number = s.number
    start_mentions(s, world)


def read_question(s, world):
    """Copies a question of a fixed world."""
    number = s.number
    s.kind, s.hops = world.questions.kind[number], world.questions.hops[number]
    for k in range(QUESTION_WORDS):
        s.question[k] = world.questions.words[number, k]
    for k in range(MOST_HOPS):
        s.relations[k] = world.questions.relations[number, k]
        s.gold[k] = world.questions.gold[number, k]
    for k in range(MOST_HOPS + 1):
        s.nodes[k] = world.questions.nodes[number, k]
    for j in range(ANSWERS):
        for k in range(WORDS):
            s.answers[j, k] = world.questions.answers[number, j, k]


def draw_question(s, world):
    """Draws a question that can be answered, and writes its words and answers."""
    tries, is_fair = 0, False
    while tries < TRIES and not is_fair:
        tries += 1
        is_fair = draw_comparison(s, world) if world.options.compare else draw_path(s, world)
        is_fair = is_fair and is_followable(s, world)
    if not is_fair:
        ask_any(s, world)
    write_question(s, world, FIRST_OF[s.kind] + integer(s, COUNT_OF[s.kind]), s.question)
    answer = s.nodes[MOST_HOPS]
    write_name(s, world, answer, 0, s.answers[0], 0)
    if answer >= 0 and world.options.aliases > 0.0:
        write_name(s, world, answer, 1, s.answers[1], 0)


def draw_path(s, world):
    """Draws a path along facts with one object, over entities that differ; returns whether it did not end early."""
    rules = world.rules
    fewest, most = world.options.hops
    hops = fewest + integer(s, most - fewest + 1)
    start_path(s, integer(s, rules.entities))
    for hop in range(hops):
        found = NOTHING
        count = 0
        for relation in range(world.options.relations):
            if goes_on(s, world, relation, hop == hops - 1):
                count += 1
        if count == 0:
            return False
        left = integer(s, count)
        for relation in range(world.options.relations):
            if goes_on(s, world, relation, hop == hops - 1):
                if left == 0:
                    found = relation
                left -= 1
        follow(s, found)
    return True


def start_path(s, entity):
    """Starts the path of a question."""
    s.kind, s.hops, s.tried = HOPS, 0, 0
    for k in range(MOST_HOPS):
        s.relations[k], s.gold[k], s.nodes[k] = NOTHING, NOTHING, NOTHING
    s.nodes[0] = entity
    s.nodes[MOST_HOPS] = entity


def goes_on(s, world, relation, is_last):
    """Whether the path may go on along a relation: to one entity where it was not yet, or to a year at its end."""
    passage = s.fact[s.nodes[MOST_HOPS], relation]
    if passage == NOTHING or SAYS_OF[s.template[passage]] != CURRENT:
        return False
    thing = s.objects[passage, 0]
    if thing <= LITERAL:
        return is_last
    is_new = True
    for k in range(s.hops + 1):
        is_new &= s.nodes[k] != thing
    return is_new


def follow(s, relation):
    """Goes on along a relation; the last of the nodes is the end of the path so far."""
    passage = s.fact[s.nodes[MOST_HOPS], relation]
    s.relations[s.hops], s.gold[s.hops] = relation, passage
    s.hops += 1
    thing = s.objects[passage, 0]
    if s.hops < MOST_HOPS:
        s.nodes[s.hops] = thing
    s.nodes[MOST_HOPS] = thing


def draw_comparison(s, world):
    """Draws two entities of a kind and what is asked of them; returns whether they were found."""
    rules = world.rules
    wants, is_of_years = integer(s, 2), integer(s, 2)
    if world.options.relations <= YEAR_RELATION:
        is_of_years = 0
    for _ in range(PARTNERS):
        first = integer(s, rules.entities)
        kind = first % KINDS
        others = (rules.entities - kind + KINDS - 1) // KINDS - 1
        second = kind + KINDS * integer(s, others)
        if second >= first:
            second += KINDS
        relation = YEAR_RELATION if is_of_years else integer(s, world.options.relations)
        is_year = world.language.leads_to[relation] == YEAR
        if is_of_years == is_year and is_pair(s, first, second, relation):
            ask_pair(s, first, second, relation, is_of_years)
            if is_of_years or wants == (s.nodes[MOST_HOPS] == LITERAL - YES):
                return True
    return False


def is_pair(s, first, second, relation):
    """Whether both have one object of the relation, and not the same one if it is a year."""
    ours, theirs = s.fact[first, relation], s.fact[second, relation]
    if ours == NOTHING or theirs == NOTHING:
        return False
    if SAYS_OF[s.template[ours]] == BOTH or SAYS_OF[s.template[theirs]] == BOTH:
        return False
    return s.objects[ours, 0] >= 0 or s.objects[ours, 0] != s.objects[theirs, 0]


def ask_pair(s, first, second, relation, is_of_years):
    """Asks which has the earlier year, or whether both have the same."""
    start_path(s, first)
    s.kind, s.hops = OLDER if is_of_years else SAME, 2
    s.nodes[1] = second
    for k in range(2):
        s.relations[k], s.gold[k] = relation, s.fact[s.nodes[k], relation]
    ours, theirs = s.objects[s.gold[0], 0], s.objects[s.gold[1], 0]
    if is_of_years:  # later years are lower numbers
        s.nodes[MOST_HOPS] = first if ours > theirs else second
    else:
        s.nodes[MOST_HOPS] = LITERAL - (YES if ours == theirs else NO)


def ask_any(s, world):
    """Asks for the first fact that is found; the last resort of very noisy worlds."""
    for entity in range(world.rules.entities):
        for relation in range(world.options.relations):
            start_path(s, entity)
            if goes_on(s, world, relation, True):
                follow(s, relation)
                if is_followable(s, world):
                    return


def is_followable(s, world):
    """Whether searches along the path find what is needed, and the answer stays in mind."""
    start_mentions(s, world)
    is_found = True
    for hop in range(s.hops):
        query(s, world, hop, s.work.words)
        find_fresh(s, world)
        has_gold = False
        for k in range(world.options.topk):
            s.found[hop, k] = s.work.numbers[k]
            has_gold |= s.work.numbers[k] == s.gold[hop]
        note_all(s, world, s.work.numbers)
        is_found &= has_gold and mention_of(s, s.nodes[hop]) != NOTHING
    s.tried = s.hops
    return is_found and mention_of(s, s.nodes[MOST_HOPS]) != NOTHING


def find_again(s, world):
    """Writes what the words found when `is_followable` tried them; returns whether it has."""
    for hop in range(s.tried):
        if is_query(s, world, hop):
            for k in range(world.options.topk):
                s.work.numbers[k] = s.found[hop, k]
            return True
    return False


def is_query(s, world, hop):
    """Whether the words are those that `query` writes in a world of the match's own."""
    words, subject = s.work.words, s.nodes[hop]
    is_same = words[0] == s.name_words[subject, 0] and words[1] == s.name_words[subject, 1]
    is_same &= words[2] == world.language.relation_words[s.relations[hop]]
    for k in range(3, len(words)):
        is_same &= words[k] == NO_WORD
    return is_same


def query(s, world, hop, out):
    """Writes the words that find a passage of the path: name and relation, or what the file's passage begins with."""
    end = 0
    if s.nodes[hop] != NOTHING:
        end = write_name(s, world, s.nodes[hop], 0, out, 0)
        out[end] = world.language.relation_words[s.relations[hop]]
        end += 1
    else:
        for k in range(WORDS):
            out[k] = world.questions.queries[s.number, hop, k]
        end = WORDS
    for k in range(end, len(out)):
        out[k] = 0


# -- mentions ----------------------------------------------------------------------------------------------------------


def start_mentions(s, world):
    """Notes the entities of the question, and yes and no where it asks for them."""
    s.mentions = 0
    if s.nodes[0] == NOTHING:
        return
    mention(s, world, s.nodes[0])
    if s.kind != HOPS:
        mention(s, world, s.nodes[1])
    if s.kind == SAME:
        mention(s, world, LITERAL - YES)
        mention(s, world, LITERAL - NO)


def mention_of(s, thing):
    """The number under which an entity or literal is kept in mind; -1 if it is not."""
    for k in range(s.mentions):
        if s.mentioned[k] == thing:
            return k
    return NOTHING


def mention(s, world, thing):
    """Keeps an entity or literal in mind while there is room; returns its number, or -1."""
    k = mention_of(s, thing)
    if k == NOTHING and s.mentions < world.rules.mentions:
        k = s.mentions
        s.mentioned[k] = thing
        s.mentions += 1
        for relation in range(world.options.relations):
            s.known[k, relation], s.doubtful[k, relation] = 0, 0
    return k


def note_all(s, world, numbers):
    """Notes what a search has found in the order of the passages' numbers: places in mind do not tell their rank."""
    last, top = NOTHING, world.options.topk
    for _ in range(top):
        passage = NOTHING
        for k in range(top):
            if numbers[k] > last and (passage == NOTHING or numbers[k] < passage):
                passage = numbers[k]
        if passage != NOTHING:
            note(s, world, passage)
            last = passage


def note(s, world, passage):
    """Keeps in mind whom a passage mentions and what it says."""
    if world.rules.fresh:
        subject, relation = s.subject[passage], s.relation[passage]
        says, first, second = SAYS_OF[s.template[passage]], s.objects[passage, 0], s.objects[passage, 1]
    else:
        subject, relation = world.facts.subject[passage], world.facts.relation[passage]
        says, first, second = (
            world.facts.says[passage],
            world.facts.objects[passage, 0],
            world.facts.objects[passage, 1],
        )
    at = mention(s, world, subject)
    for thing in (first, second):
        if thing != NOTHING:
            k = mention(s, world, thing)
            if at != NOTHING and k != NOTHING:
                if says <= BOTH:
                    s.known[at, relation] |= np.uint16(1 << k)
                else:
                    s.doubtful[at, relation] |= np.uint16(1 << k)
