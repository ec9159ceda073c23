"""The script ``first_hit``: it takes the first object of the first passage of each search, and reads nothing else.

What it scores tells how much of a world can be answered without reading.
"""

from __future__ import annotations

from palaestra.games.search.language import ARTICLES, FIRST_WORD, HOPS, LITERAL, NO, NOTHING, OLDER, YES
from palaestra.games.search.library import MOST_HOPS


def follow_first(s, world):
    """What the script searches or answers next in a world with a table of facts.

    Returns:
        The entity, and the relation to search; -1 for an answer.
    """
    if s.searches < s.hops:
        thing = s.nodes[s.searches]
        if s.kind == HOPS and s.searches > 0:
            thing = first_object(s, world, s.firsts[s.searches - 1])
        if thing >= 0:
            return thing, s.relations[s.searches]
        return thing, NOTHING
    last = first_object(s, world, s.firsts[min(s.hops, MOST_HOPS) - 1])
    if s.kind == HOPS:
        return last, NOTHING
    first = first_object(s, world, s.firsts[0])
    if s.kind == OLDER:  # later years are lower numbers
        return s.nodes[0 if first > last else 1], NOTHING
    return LITERAL - (YES if first == last else NO), NOTHING


def first_object(s, world, passage):
    """What a passage says of its subject first, or the subject where it names nothing else, or where none was found."""
    if passage == NOTHING:
        return s.nodes[0]
    if world.rules.fresh:
        thing, subject = int(s.objects[passage, 0]), int(s.subject[passage])
    else:
        thing, subject = int(world.facts.objects[passage, 0]), int(world.facts.subject[passage])
    return subject if thing == NOTHING else thing


def write_first(s, world, words):
    """Writes the script's turn where there is no table of facts; returns whether it is a search.

    It searches the question, and answers the first word of the first passage that the question has not.
    """
    for k in range(len(words)):
        words[k] = s.question[k] if s.searches == 0 and k < len(s.question) else 0
    if s.searches == 0 or s.firsts[0] == NOTHING:
        return s.searches == 0
    for k in range(world.starts[s.firsts[0]], world.starts[s.firsts[0] + 1]):
        word = world.words[k]
        is_new = word >= FIRST_WORD + len(ARTICLES)
        for j in range(len(s.question)):
            is_new &= s.question[j] != word
        if is_new:
            words[0] = word
            break
    return False
