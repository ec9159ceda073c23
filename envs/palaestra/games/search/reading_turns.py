"""What a turn does in a world that must be read, what agents see, and the scripts."""

from __future__ import annotations

from palaestra.game import script_integer
from palaestra.games.search.bm25 import TERM
from palaestra.games.search.language import FIRST_WORD, NO_WORD, NOTHING, SECONDS
from palaestra.games.search.library import MOST_HOPS, MOST_TOP, MOST_WORDS, WORDS
from palaestra.games.search.reading_language import COUNT, KINDS, NUMBERS, YEAR, YEARS
from palaestra.games.search.reading_questions import EARLIER, pose
from palaestra.games.search.reading_questions import STATE as QUESTION_STATE
from palaestra.games.search.reading_world import ENTITIES, TOKENS, find_fresh, write_passage
from palaestra.games.search.reading_world import STATE as WORLD_STATE
from palaestra.games.search.turns import (
    ANSWER,
    CLOSED_BOOK,
    FIRST_HIT,
    SEARCH,
    SUMS,
    answer,
    end_turn,
    find_native,
    read_words,
    show_found,
    start_turn,
    start_turns,
)

STATE = (
    *WORLD_STATE,
    *QUESTION_STATE,
    ("last_verb", "i8"),
    ("words_left", "i8"),
    ("shown", "i4", (MOST_TOP,)),
    ("searches", "i8"),
    ("firsts", "i4", (MOST_HOPS,)),
)
SCRATCH = (
    ("terms", TERM, (MOST_WORDS,)),
    ("sums", "f8", (SUMS,)),
    ("left", "i4", (WORDS,)),
    ("passage", "i4", (TOKENS,)),
    ("found", "i4", (MOST_HOPS, 2)),
)


def reset(s, world):
    """Poses a question."""
    pose(s, world)
    start_turns(s)


def step(s, world, actions, rewards, scratch):
    """A turn of a verb and words."""
    turn = actions.agent[0]
    read_words(s.work.words, turn.words)
    verb, pay = start_turn(s, turn.verb), 0.0
    if verb == SEARCH:
        find(s, world, scratch)
        pay = show_found(s, world.options.topk)
    elif verb == ANSWER:
        pay = answer(s, scratch)
    return end_turn(s, verb, pay, rewards)


def find(s, world, scratch):
    """Finds the best passages of the query ``s.work.words``; their numbers are in ``s.work.numbers``."""
    words, top = s.work.words, world.options.topk
    if world.rules.fresh:
        find_fresh(s, world)
        return
    for k in range(len(words)):
        words[k] -= FIRST_WORD
    find_native(
        world.offsets,
        world.peaks,
        world.passages,
        world.scores,
        words,
        scratch.terms,
        scratch.sums,
        s.work.numbers[:top],
        s.work.scores[:top],
    )
    for k in range(len(words)):
        words[k] += FIRST_WORD


# -- observations ------------------------------------------------------------------------------------------------------


def observe(s, world, observations, scratch):
    """What the last turn found."""
    row = observations.agent[0]
    for k in range(len(row.documents)):
        row.documents[k] = NOTHING
        if s.last_verb == SEARCH and s.shown[k] != NOTHING:
            row.documents[k] = s.shown[k]
            copy_passage(s, world, s.shown[k], row.passages[k])
    row.verb, row.words_left = s.last_verb, s.words_left
    row.turns_left = int(s.parameters.horizon) - s.steps


def copy_passage(s, world, passage, out):
    """Writes the words and full stops of a passage, its title first; zeros behind them."""
    if world.rules.fresh:
        write_passage(s, world, passage, out)
    else:
        start, end = world.starts[passage], world.starts[passage + 1]
        for k in range(len(out)):
            out[k] = world.words[start + k] if start + k < end else NO_WORD


# -- scripts -----------------------------------------------------------------------------------------------------------


def script(s, world, slot, which, actions, scratch):
    """A script's turn as a verb and words."""
    turn = actions.agent[0]
    turn.verb = ANSWER
    for k in range(len(turn.words)):
        turn.words[k] = NO_WORD
    if which == CLOSED_BOOK:
        guess(s, world, turn.words)
    elif which == FIRST_HIT:
        turn.verb = follow_first(s, world, turn.words, scratch)
    else:
        turn.verb = follow_path(s, turn.words)


def follow_path(s, words):
    """Writes the search for the first passage that is needed and was not found, or the right answer."""
    for hop in range(s.hops):
        if s.seen[hop] == 0 and s.steps + 1 < s.parameters.horizon:
            for k in range(WORDS):
                words[k] = s.queries[hop, k]
            return SEARCH
    for k in range(WORDS):
        words[k] = s.answers[0, k]
    return ANSWER


def guess(s, world, words):
    """Writes an answer of the right kind, drawn at random."""
    rules, wanted = world.rules, world.language.leads_to[s.relations[max(s.hops - 1, 0)]]
    if s.kind == EARLIER:
        which = script_integer(s, 2)
        words[0], words[1] = s.nodes[which, 0], s.nodes[which, 1]
    elif wanted == YEAR:
        words[0] = rules.year + script_integer(s, len(YEARS))
    elif wanted == COUNT:
        words[0] = rules.number + script_integer(s, len(NUMBERS))
    elif rules.fresh:
        entity = wanted + KINDS * script_integer(s, ENTITIES // KINDS)
        words[0], words[1] = s.name_words[entity, 0], s.name_words[entity, 1]
    else:
        passage = script_integer(s, len(world.starts) - 1)  # of a title of the right kind
        passage = (passage // (2 * KINDS) * KINDS + wanted) * 2
        words[0], words[1] = world.words[world.starts[passage]], world.words[world.starts[passage] + 1]


def follow_first(s, world, words, scratch):
    """Writes the search for the first thing that the last search's first passage has, or that as the answer."""
    count = min(s.searches, s.hops)
    for k in range(count):
        copy_passage(s, world, max(s.firsts[k], 0), scratch.passage)
        first_thing(world.rules, scratch.passage, world.language.leads_to[s.relations[k]], scratch.found[k])
    if s.searches < s.hops:
        for k in range(WORDS):
            words[k] = s.queries[s.searches, k]
        if s.kind != EARLIER and count > 0:
            words[0], words[1] = scratch.found[count - 1, 0], scratch.found[count - 1, 1]
        return SEARCH
    words[0], words[1] = scratch.found[count - 1, 0], scratch.found[count - 1, 1]
    if s.kind == EARLIER:
        which = 0 if scratch.found[0, 0] < scratch.found[1, 0] else 1
        words[0], words[1] = s.nodes[which, 0], s.nodes[which, 1]
    return ANSWER


def first_thing(rules, passage, kind, out):
    """Writes the first name, year or number of a kind in a passage that is not its title, or its title without one."""
    out[0], out[1] = passage[0], passage[1]
    first, size = rules.second + kind * SECONDS, SECONDS
    if kind == YEAR:
        first, size = rules.year, len(YEARS)
    elif kind == COUNT:
        first, size = rules.number, len(NUMBERS)
    for k in range(2, len(passage)):
        is_name = kind < KINDS and passage[k - 1] >= rules.stem and passage[k - 1] != passage[0]
        if first <= passage[k] < first + size and (is_name or kind >= KINDS):
            out[0], out[1] = passage[k], NO_WORD
            if is_name:
                out[0], out[1] = passage[k - 1], passage[k]
            return
