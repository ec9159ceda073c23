"""The turns of Examiner: searches and a question of one agent, the check of the question, answers of the other one."""

from __future__ import annotations

from typing import NamedTuple

from palaestra.game import TERMINATED, TRUNCATED, integer
from palaestra.games.search import turns
from palaestra.games.search.fresh_world import SAYS_OF, draw_world, write_name, write_passage, write_question
from palaestra.games.search.language import BOTH, HOPS, NO_WORD, NOTHING
from palaestra.games.search.library import MOST_HOPS, PASSAGES, QUESTION_WORDS, TOP, WORDS, Library
from palaestra.games.search.question_rules import COUNT_OF, FIRST_OF, follow, goes_on, start_path
from palaestra.games.search.turns import AT_START, SEARCH, plan, start_turns, take_turn

EXAMINER, STUDENT = 0, 1
"""Slots and teams."""
ASK = 2
VERBS = ("none", "search", "ask")
"""Of the examiner; `ASK` is the third one."""
REFUSED, NOT_ASKED, OUT_OF_TURNS = 4, 5, 6
"""Numbers of the end reasons that SearchQA has not."""
FINE, MALFORMED, TOO_LONG, NO_NAME, NO_RELATION, NO_SUCH_FACT, AMBIGUOUS, CIRCULAR, UNREAD = range(9)
REFUSALS = (
    "",
    "malformed",
    "too_long",
    "no_name",
    "no_relation",
    "no_such_fact",
    "ambiguous",
    "circular",
    "unread",
)
"""Reasons for which a question is refused, and their numbers."""
LONGEST_WALK = 3
"""Facts on the path of the examiner's script."""

STATE = (
    *turns.STATE,
    ("start", "i8"),  # entity from which the examiner starts
    ("wording", "i8"),  # template of the question
    ("asked_at", "i8"),  # turns that the examiner took to ask the question
    ("examiner_words_left", "i8"),  # once the question was accepted; `words_left` is of the agent that is to move
    ("read", "u1", (PASSAGES,)),  # passages that searches have shown to the examiner
)
SCRATCH = (*turns.SCRATCH, ("walk", "i4", (LONGEST_WALK + 1,)), ("walk_relations", "i4", (LONGEST_WALK,)))


class ExaminerWorld(NamedTuple):
    """The world of the game.

    Attributes:
        library: What SearchQA has.
        examiner_turns: Most turns of the examiner.
        max_turns: Most turns of the student.
    """

    library: Library
    examiner_turns: int
    max_turns: int


# -- start -------------------------------------------------------------------------------------------------------------


def reset(s, world):
    """Draws a world and where the examiner starts."""
    s.number, s.judged = NOTHING, 1
    draw_world(s, world.library)
    s.start = draw_start(s, world.library)
    start_path(s, s.start)
    s.wording = FIRST_OF[HOPS] + integer(s, COUNT_OF[HOPS])
    s.acting[STUDENT] = 0
    start_turns(s)


def draw_start(s, world):
    """Draws an entity from which a relation leads to another entity."""
    count = 0
    for entity in range(world.rules.entities):
        count += leads_on(s, world, entity)
    left, start = integer(s, count), NOTHING
    for entity in range(world.rules.entities):
        if leads_on(s, world, entity):
            if left == 0:
                start = entity
            left -= 1
    return start


def leads_on(s, world, entity):
    """Whether a relation leads from an entity to one other entity."""
    start_path(s, entity)
    count = 0
    for relation in range(world.options.relations):
        count += goes_on(s, world, relation, False)
    return count > 0


# -- turns -------------------------------------------------------------------------------------------------------------


def step(s, world, actions, rewards, scratch):
    """A turn of the agent that is to move."""
    if s.info.accepted:
        return take_student_turn(s, world, actions.student[0], rewards, scratch)
    return take_examiner_turn(s, world, actions.examiner[0], rewards, scratch)


def take_examiner_turn(s, world, turn, rewards, scratch):
    """The examiner searches or asks."""
    for k in range(WORDS):
        s.work.words[k] = turn.words[k]
    if turn.verb == ASK:
        ask(s, world.library, rewards)
    else:
        take_turn(s, world.library, turn.verb, rewards, scratch)
        s.info.turn_label = 0  # which is about the student's turns
        for k in range(TOP):
            if s.last_verb == SEARCH and s.shown[k] != NOTHING:
                s.read[s.shown[k]] = 1
    if s.info.accepted:
        return 0
    if s.info.end_reason != REFUSED and (s.words_left == 0 or s.steps >= world.examiner_turns):
        s.info.end_reason = NOT_ASKED
    return TERMINATED if s.info.end_reason != 0 else 0


def take_student_turn(s, world, turn, rewards, scratch):
    """The student searches or answers, as in SearchQA; the examiner is paid when the match ends."""
    for k in range(WORDS):
        s.work.words[k] = turn.words[k]
    take_turn(s, world.library, turn.verb, rewards[STUDENT:], scratch)
    if s.info.end_reason == 0 and s.steps >= s.asked_at + world.max_turns:
        s.info.end_reason = OUT_OF_TURNS
    if s.info.end_reason == 0 and s.steps < s.parameters.horizon:
        return 0
    s.info.winner = STUDENT if s.info.exact_match else EXAMINER
    if s.info.exact_match == 0:
        rewards[EXAMINER] = 1.0 - s.parameters.format_reward
    if s.info.end_reason == OUT_OF_TURNS:
        return TRUNCATED
    return TERMINATED if s.info.end_reason != 0 else 0


def ask(s, world, rewards):
    """Asks the question whose words are in ``s.work.words``; one of more words than are left is not asked."""
    used = 0
    for k in range(WORDS):
        used += s.work.words[k] != NO_WORD
    s.last_verb = ASK
    if used > s.words_left:
        s.words_left = 0
        return
    s.words_left -= used
    s.info.refusal = check_question(s, world, used)
    if s.info.refusal != FINE:
        start_path(s, s.start)
        s.info.end_reason = REFUSED
        return
    rewards[EXAMINER] = s.parameters.format_reward
    s.info.accepted = 1
    tell_path(s, world)
    write_question(s, world, s.wording, s.question)
    write_name(s, world, s.nodes[s.hops], 0, s.answers[0], 0)
    s.asked_at, s.examiner_words_left = s.steps, s.words_left
    s.acting[EXAMINER], s.acting[STUDENT] = 0, 1
    start_turns(s)


def tell_path(s, world):
    """Writes the path of the question into the info."""
    s.info.hops = s.hops
    for hop in range(s.hops + 1):
        write_name(s, world, s.nodes[hop], 0, s.info.path_names[hop], 0)
    for hop in range(s.hops):
        s.info.path_relations[hop] = world.language.relation_words[s.relations[hop]]


# -- the check of a question -------------------------------------------------------------------------------------------


def check_question(s, world, used):
    """Follows the path of a question of so many words; returns why it is refused, or `FINE`."""
    names, start, hops = 0, NOTHING, 0
    for k in range(WORDS):
        entity = entity_at(s, world, k)
        if entity != NOTHING:
            names += 1
            start = entity
        hops += relation_at(s, world, k) != NOTHING
    if used == 0:
        return MALFORMED
    if hops > MOST_HOPS:
        return TOO_LONG
    if names != 1:
        return NO_NAME
    if hops == 0:
        return NO_RELATION
    start_path(s, start)
    for k in range(WORDS - 1, -1, -1):
        relation = relation_at(s, world, k)
        if relation != NOTHING:
            refusal = check_fact(s, world, relation)
            if refusal != FINE:
                return refusal
            follow(s, relation)
    return FINE


def entity_at(s, world, k):
    """The entity whose name begins at a word of the turn, or -1."""
    words = s.work.words
    for entity in range(world.rules.entities if k < WORDS - 1 else 0):
        if words[k] == s.name_words[entity, 0] and words[k + 1] == s.name_words[entity, 1]:
            return entity
    return NOTHING


def relation_at(s, world, k):
    """The relation whose noun is a word of the turn, or -1; the world need not have it."""
    nouns = world.language.relation_words
    for relation in range(len(nouns)):
        if s.work.words[k] == nouns[relation]:
            return relation
    return NOTHING


def check_fact(s, world, relation):
    """Why the path cannot go on along a relation, or `FINE`."""
    entity = s.nodes[MOST_HOPS]  # the end of the path so far
    if entity < 0 or relation >= world.options.relations or s.fact[entity, relation] == NOTHING:
        return NO_SUCH_FACT
    passage = s.fact[entity, relation]
    if SAYS_OF[s.template[passage]] == BOTH:
        return AMBIGUOUS
    for k in range(s.hops + 1):
        if s.nodes[k] == s.objects[passage, 0]:
            return CIRCULAR
    return FINE if s.read[passage] else UNREAD


# -- observations ------------------------------------------------------------------------------------------------------


def observe(s, world, observations, scratch):
    """What the last turn found for the agent that is to move; the other one sees what stays."""
    examiner, student = observations.examiner[0], observations.student[0]
    write_name(s, world.library, s.start, 0, examiner.question, 0)
    for k in range(QUESTION_WORDS):
        student.question[k] = s.question[k]
    if s.info.accepted:
        write_rest(examiner, ASK, world.examiner_turns - s.asked_at, s.examiner_words_left)
        last_turn = min(s.asked_at + world.max_turns, int(s.parameters.horizon))
        write_turn(s, world.library, student, last_turn - s.steps)
    else:
        write_rest(student, AT_START, world.max_turns, int(s.parameters.token_budget))
        last_turn = min(world.examiner_turns, int(s.parameters.horizon))
        write_turn(s, world.library, examiner, last_turn - s.steps)


def write_rest(row, verb, turns_left, words_left):
    """What an agent sees while the other one is to move."""
    row.verb, row.turns_left, row.words_left = verb, turns_left, words_left
    for k in range(TOP):
        row.documents[k] = NOTHING


def write_turn(s, world, row, turns_left):
    """What the agent that is to move sees of its last turn."""
    write_rest(row, s.last_verb, turns_left, s.words_left)
    for k in range(TOP):
        if s.last_verb == SEARCH and s.shown[k] != NOTHING:
            row.documents[k] = s.shown[k]
            write_passage(s, world, s.shown[k], row.passages[k])


# -- scripts -----------------------------------------------------------------------------------------------------------


def script(s, world, slot, which, actions, scratch):
    """Plays either agent."""
    if slot == EXAMINER:
        script_examiner(s, world, actions.examiner[0], scratch)
    else:
        script_student(s, world.library, actions.student[0], which)


def script_examiner(s, world, turn, scratch):
    """Searches for the first fact of a walk that was not read, or asks for where all of them lead to."""
    hops = plan_walk(s, world, scratch)
    searched = hops
    for hop in range(hops - 1, -1, -1):
        if s.read[s.fact[scratch.walk[hop], scratch.walk_relations[hop]]] == 0:
            searched = hop
    nouns = world.library.language.relation_words
    for k in range(WORDS):
        turn.words[k] = NO_WORD
    if searched < hops and s.steps < world.examiner_turns - 1:
        turn.verb = SEARCH
        end = write_name(s, world.library, scratch.walk[searched], 0, turn.words, 0)
        turn.words[end] = nouns[scratch.walk_relations[searched]]
    else:
        turn.verb = ASK
        for hop in range(hops):
            turn.words[hops - 1 - hop] = nouns[scratch.walk_relations[hop]]
        write_name(s, world.library, s.start, 0, turn.words, hops)


def plan_walk(s, world, scratch):
    """Writes entities and relations of a path from the start; returns its number of facts.

    The words of names, which are random, decide: a script has no memory, and says the same in each turn.
    """
    library, hops = world.library, 0
    wanted = min(1 + s.alias_words[s.start] % LONGEST_WALK, world.examiner_turns - 1)
    scratch.walk[0] = s.start
    while hops < wanted:
        entity, count = scratch.walk[hops], 0
        for relation in range(library.options.relations):
            count += next_entity(s, scratch, hops, relation) != NOTHING
        if count == 0:
            break
        left = s.name_words[entity, 0] % count
        for relation in range(library.options.relations):
            if next_entity(s, scratch, hops, relation) != NOTHING:
                if left == 0:
                    scratch.walk_relations[hops] = relation
                left -= 1
        scratch.walk[hops + 1] = next_entity(s, scratch, hops, scratch.walk_relations[hops])
        hops += 1
    return hops


def next_entity(s, scratch, hops, relation):
    """The one entity to which a relation leads from the end of a walk, where that was not yet; or -1."""
    passage = s.fact[scratch.walk[hops], relation]
    if passage == NOTHING or SAYS_OF[s.template[passage]] == BOTH or s.objects[passage, 0] < 0:
        return NOTHING
    for k in range(hops + 1):
        if scratch.walk[k] == s.objects[passage, 0]:
            return NOTHING
    return s.objects[passage, 0]


def script_student(s, world, turn, which):
    """A turn of SearchQA's scripts."""
    verb, thing, relation = plan(s, world, which)
    for k in range(WORDS):
        turn.words[k] = NO_WORD
    turn.verb = verb
    end = write_name(s, world, thing, 0, turn.words, 0)
    if verb == SEARCH:
        turn.words[end] = world.language.relation_words[relation]
