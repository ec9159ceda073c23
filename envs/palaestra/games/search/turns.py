"""What a turn does: search, answer, judge what was found; and what agents see and may do in each form."""

from __future__ import annotations

from typing import Any

from palaestra.game import Array, Choice, Field, apart, script_integer
from palaestra.games.search import language
from palaestra.games.search.bm25 import TERM, find
from palaestra.games.search.first_hit import follow_first, write_first
from palaestra.games.search.fresh_world import STATE as FRESH_STATE
from palaestra.games.search.fresh_world import YEAR_COUNT, find_fresh, find_long, is_long, write_name, write_passage
from palaestra.games.search.language import (
    ARTICLES,
    FIRST_WORD,
    FIRST_YEAR,
    GIVEN,
    HOPS,
    KINDS,
    LITERAL,
    NO,
    NO_WORD,
    NOTHING,
    OLDER,
    SAME,
    YEAR,
    YES,
)
from palaestra.games.search.library import (
    ANSWERS,
    MENTIONS,
    MOST_HOPS,
    MOST_TOP,
    MOST_WORDS,
    PASSAGE_WORDS,
    QUESTION_WORDS,
    RELATIONS,
    WORDS,
)
from palaestra.games.search.question_rules import STATE as QUESTION_STATE
from palaestra.games.search.question_rules import find_again, mention_of, note_all, pose, query

NONE, SEARCH, ANSWER, JUDGE, TOO_LONG = range(5)
"""Verbs of a turn; the last one is a query in text that has too many words, and is not searched."""
AT_START, UNPLAYED = -1, -2
"""In place of the last verb before the first turn; in place of a verb whose turn has more words than are left."""
VERBS = ("none", "search", "answer", "judge", "too_long")
ANSWERED, OUT_OF_WORDS = 2, 3
"""Numbers of the end reasons."""
LAST_ARTICLE = FIRST_WORD + len(ARTICLES) - 1
LARGEST_BUDGET = 4096
"""Most words of all turns."""
MOST_TURNS = 128
ORACLE, CLOSED_BOOK, FIRST_HIT = range(3)
SCRIPTS = ("oracle", "closed_book", "first_hit")
SUMS = 4096
"""Passages whose scores are added up at a time."""

find_native = apart(
    find,
    (
        Array("i8"),
        Array("f4"),
        Array("i4"),
        Array("f4"),
        Array("i4"),
        Array(TERM, 1, True),
        Array("f8", 1, True),
        Array("i4", 1, True),
        Array("f8", 1, True),
    ),
    returns="i8",
)

STATE = (
    *FRESH_STATE,
    *QUESTION_STATE,
    ("last_verb", "i8"),
    ("words_left", "i8"),
    ("judged", "u1"),
    ("approved", "u1", (MOST_HOPS,)),
    ("earned", "f8"),
    ("shown", "i4", (MOST_TOP,)),
    ("searches", "i8"),
    ("firsts", "i4", (MOST_HOPS,)),
)
SCRATCH = (
    ("terms", TERM, (MOST_WORDS,)),
    ("sums", "f8", (SUMS,)),
    ("left", "i4", (WORDS,)),
    ("sentence", "i4", (PASSAGE_WORDS,)),
)


def reset(s, world):
    """Poses a question."""
    pose(s, world)
    s.judged = 1
    start_turns(s)


def start_turns(s):
    """Gives an agent its words; it has not taken a turn."""
    s.last_verb, s.words_left, s.searches = AT_START, int(s.parameters.token_budget), 0
    for k in range(MOST_TOP):
        s.shown[k] = NOTHING
    for k in range(MOST_HOPS):
        s.firsts[k] = NOTHING


# -- turns -------------------------------------------------------------------------------------------------------------


def step_tokens(s, world, actions, rewards, scratch):
    """A turn of a verb and words."""
    turn = actions.agent[0]
    read_words(s.work.words, turn.words)
    return take_turn(s, world, turn.verb, rewards, scratch)


def read_words(words, given):
    """Copies the words of a turn."""
    for k in range(len(words)):
        words[k] = given[k] if k < len(given) else NO_WORD


def step_dense(s, world, actions, rewards, scratch):
    """A turn of a verb, words, and the passages that a search with these words finds."""
    turn = actions.agent[0]
    for k in range(len(turn.found)):
        s.work.numbers[k] = turn.found[k] - 1
    return step_tokens(s, world, actions, rewards, scratch)


def step_structured(s, world, actions, rewards, scratch):
    """A turn that is one choice; it is played as the words that say the same."""
    return take_turn(s, world, write_choice(s, world, actions.agent[0].turn), rewards, scratch)


def write_choice(s, world, choice):
    """Writes the words of a choice and returns its verb."""
    rules, words = world.rules, s.work.words
    searches = rules.mentions * world.options.relations
    for k in range(len(words)):
        words[k] = NO_WORD
    if choice == 0:
        return NONE
    if choice <= searches:
        end = write_name(s, world, s.mentioned[(choice - 1) // world.options.relations], 0, words, 0)
        words[end] = world.language.relation_words[(choice - 1) % world.options.relations]
        return SEARCH
    if choice <= searches + rules.mentions:
        write_name(s, world, s.mentioned[choice - 1 - searches], 0, words, 0)
        return ANSWER
    is_no = choice == searches + rules.mentions + 1
    write_name(s, world, LITERAL - (NO if is_no else YES), 0, words, 0)
    return JUDGE


def take_turn(s, world, verb, rewards, scratch):
    """Plays a turn, whose words are in ``s.work.words``."""
    verb, pay = start_turn(s, verb), 0.0
    if verb == SEARCH:
        pay = search(s, world, scratch)
    elif verb == ANSWER:
        pay = answer(s, scratch) + s.earned
    elif verb == JUDGE:
        pay = judge(s, world)
    return end_turn(s, verb, pay, rewards)


def start_turn(s, verb):
    """Takes the words of a turn from the budget; returns its verb, `UNPLAYED` where too few words were left."""
    used = 0
    for k in range(len(s.work.words)):
        used += s.work.words[k] != NO_WORD
    if used == 0 and verb != TOO_LONG:
        verb = NONE
    s.last_verb, s.info.turn_label = verb, -1
    s.words_left -= used if verb != NONE else 0
    if s.words_left >= 0:
        return verb
    s.words_left = 0
    for k in range(MOST_TOP):
        s.shown[k] = NOTHING
    return UNPLAYED


def end_turn(s, verb, pay, rewards):
    """Pays for a turn; returns whether the match is over."""
    if verb in (NONE, TOO_LONG):
        s.info.malformed += 1
        pay = 0.0 - s.parameters.malformed_cost
    rewards[0] = pay
    if s.info.end_reason == 0 and s.words_left == 0:
        s.info.end_reason = OUT_OF_WORDS
    return s.info.end_reason != 0


def search(s, world, scratch):
    """Searches; returns the pay for passages of the path that were not found before."""
    words, numbers, top = s.work.words, s.work.numbers, world.options.topk
    if world.rules.fresh:
        if is_long(words):
            find_long(s, world, scratch.terms, scratch.sentence)
        elif not find_again(s, world):
            find_fresh(s, world)
    elif world.rules.dense == 0:
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
            numbers[:top],
            s.work.scores[:top],
        )
        for k in range(len(words)):
            words[k] += FIRST_WORD
    if world.rules.structured:
        note_all(s, world, numbers)
    s.judged = 0
    return show_found(s, top)


def show_found(s, top):
    """Shows what a search has found; returns the pay for passages of the path that were not found before."""
    gained = 0
    if s.searches < MOST_HOPS:
        s.firsts[s.searches] = s.work.numbers[0]
    s.searches += 1
    for k in range(top):
        s.shown[k] = s.work.numbers[k]
        for hop in range(s.hops):
            if s.shown[k] != NOTHING and s.shown[k] == s.gold[hop] and s.seen[hop] == 0:
                s.seen[hop] = 1
                gained += 1
    s.info.hops_found += gained
    if gained > 0:
        s.info.turn_label = 1
    return s.parameters.turn_reward * gained


def answer(s, scratch):
    """Ends the match with an answer; returns its pay."""
    s.info.end_reason = ANSWERED
    for j in range(ANSWERS):
        if s.answers[j, 0] != NO_WORD:
            s.info.f1 = max(s.info.f1, overlap(s, s.answers[j], scratch.left))
            if is_equal(s.work.words, s.answers[j]):
                s.info.exact_match = 1
    if s.info.exact_match == 0:
        return s.parameters.partial_credit * s.info.f1
    s.info.winner = 0
    s.info.turn_label = 1
    return 1.0


def is_equal(words, target):
    """Whether an answer is the target, articles apart."""
    k, j = next_word(words, 0), next_word(target, 0)
    while k < len(words) and j < WORDS and target[j] >= FIRST_WORD and words[k] == target[j]:
        k, j = next_word(words, k + 1), next_word(target, j + 1)
    return k >= len(words) and j >= WORDS


def next_word(words, k):
    """The next place from ``k`` on where a word stands that is no article."""
    while k < len(words) and words[k] <= LAST_ARTICLE and (words[k] == NO_WORD or words[k] >= FIRST_WORD):
        k += 1
    return k


def overlap(s, target, left):
    """F1 of an answer's words, articles apart: twice the words that it shares with the target over the words of both.

    Where one of them has no words, 1 if the other has none either.
    """
    given, wanted, shared = 0, 0, 0
    for j in range(WORDS):
        left[j] = target[j] if target[j] > LAST_ARTICLE else NO_WORD
        wanted += left[j] != NO_WORD
    k = next_word(s.work.words, 0)
    while k < len(s.work.words):
        given += 1
        for j in range(WORDS):
            if left[j] == s.work.words[k] and left[j] != NO_WORD:
                left[j] = NO_WORD
                shared += 1
                break
        k = next_word(s.work.words, k + 1)
    if given == 0 or wanted == 0:
        return 1.0 if given == wanted else 0.0
    return 2.0 * shared / (given + wanted)


def judge(s, world):
    """Judges the passages of the last search, once; returns the pay.

    What a right judgement earns is paid with the answer, and once for each needed passage: so neither searches that
    find nothing, nor passages that come again, nor a match without an answer pay.
    """
    is_yes = s.work.words[0] == world.language.literal_words[YES, 0]
    if s.judged or not (is_yes or s.work.words[0] == world.language.literal_words[NO, 0]):
        return 0.0
    s.judged = 1
    is_new = approve(s)
    if s.hops == 0 or s.shown[0] == NOTHING or suffices(s) != is_new:
        return 0.0
    if is_yes == is_new:
        s.info.turn_label = 1
        s.earned += world.rules.judge_right if is_yes else 0.0
        return 0.0
    return world.rules.judge_accept if is_yes else world.rules.judge_reject


def approve(s):
    """Notes which needed passages the last search found; returns whether there are some that were not judged before."""
    is_new = False
    for hop in range(s.hops):
        for k in range(MOST_TOP):
            if s.shown[k] != NOTHING and s.shown[k] == s.gold[hop] and s.approved[hop] == 0:
                s.approved[hop], is_new = 1, True
    return is_new


def suffices(s):
    """Whether the last search found a passage that is needed."""
    for k in range(MOST_TOP):
        for hop in range(s.hops):
            if s.shown[k] != NOTHING and s.shown[k] == s.gold[hop]:
                return True
    return False


# -- observations ------------------------------------------------------------------------------------------------------


def token_fields(
    documents: int, vocabulary: int, top: int, sizes: tuple[int, int] = (QUESTION_WORDS, PASSAGE_WORDS)
) -> tuple[Field, ...]:
    """What an agent sees in the token form.

    Args:
        documents: Number of passages.
        vocabulary: Number of tokens.
        top: Passages that a search shows.
        sizes: Words of a question and of a passage that observations show.
    """
    token: dict[str, Any] = {"low": 0, "high": vocabulary - 1, "dtype": "i4"}
    return (
        Field("question", (sizes[0],), about="words of the question", at="reset", **token),
        Field("passages", (top, sizes[1]), about="words of what was found, its best passage first", **token),
        Field("documents", (top,), NOTHING, documents - 1, "1", "numbers of these passages, -1 for none", "i4"),
        Field("verb", (), AT_START, TOO_LONG, "1", "of the last turn, -1 at first", "i4"),
        Field("turns_left", (), 0, MOST_TURNS, "1", "turns until the match is truncated", "i4"),
        Field("words_left", (), 0, LARGEST_BUDGET, "1", "words that the agent may still write", "i4"),
    )


def observe_tokens(s, world, observations, scratch):
    """What the last turn found."""
    row = observations.agent[0]
    for k in range(len(row.documents)):
        row.documents[k] = NOTHING
        if s.last_verb == SEARCH and s.shown[k] != NOTHING:
            row.documents[k] = s.shown[k]
            if world.rules.fresh:
                write_passage(s, world, s.shown[k], row.passages[k])
            else:
                copy_passage(world, s.shown[k], row.passages[k])
    row.verb, row.words_left = s.last_verb, s.words_left
    row.turns_left = int(s.parameters.horizon) - s.steps


def observe_question(s, world, observations, scratch):
    """The words of the question."""
    row = observations.agent[0]
    for k in range(len(row.question)):
        row.question[k] = s.question[k]


def copy_passage(world, passage, out):
    """Writes the first words of a passage of a fixed world."""
    start = world.starts[passage]
    for k in range(min(world.starts[passage + 1] - start, len(out))):
        out[k] = world.words[start + k]


def structured_fields(relations: int, mentions: int) -> tuple[Field, ...]:
    """What an agent sees in the structured form."""
    share: dict[str, Any] = {"low": 0.0, "high": 1.0}
    mentioned = tuple(f"entity {k}" for k in range(mentions))
    return (
        Field(
            "asked",
            (MOST_HOPS, relations),
            about="relations of the question, hop by hop",
            capacity=(MOST_HOPS, RELATIONS),
            parts=tuple(relation.noun for relation in language.RELATIONS[:relations]),
            **share,
        ),
        Field(
            "kind",
            (3,),
            about="asks for a path's end, whether two have the same, who is older",
            parts=("end of a path", "the same", "older"),
            **share,
        ),
        Field(
            "present",
            (mentions,),
            about="whether so many entities were mentioned",
            capacity=MENTIONS,
            parts=mentioned,
            **share,
        ),
        Field(
            "year",
            (mentions,),
            about="share of the century of a mentioned year",
            capacity=MENTIONS,
            parts=mentioned,
            **share,
        ),
        Field(
            "known",
            (mentions, relations, mentions),
            about="passages said: relation of entity is entity; 0.5 if only as former or false",
            capacity=(MENTIONS, RELATIONS, MENTIONS),
            **share,
        ),
        Field("turns_left", about="share of the turns that are left", **share),
    )


def observe_structured(s, world, observations, scratch):
    """The question, and what was found so far."""
    row = observations.agent[0]
    if s.kind == HOPS:
        for hop in range(s.hops):
            row.asked[hop, s.relations[hop]] = 1.0
    else:
        row.asked[0, s.relations[0]] = 1.0
    row.kind[s.kind] = 1.0
    for k in range(s.mentions):
        row.present[k] = 1.0
        year = LITERAL - FIRST_YEAR - s.mentioned[k]
        if s.mentioned[k] <= LITERAL - FIRST_YEAR:
            row.year[k] = (year + 1) / YEAR_COUNT
        for relation in range(world.options.relations):
            known, doubtful = int(s.known[k, relation]), int(s.doubtful[k, relation])
            other = 0
            while known | doubtful:
                if known & 1:
                    row.known[k, relation, other] = 1.0
                elif doubtful & 1:
                    row.known[k, relation, other] = 0.5
                known, doubtful, other = known >> 1, doubtful >> 1, other + 1
    row.turns_left = (s.parameters.horizon - s.steps) / s.parameters.horizon


# -- actions -----------------------------------------------------------------------------------------------------------


def token_choices(vocabulary: int, judges: bool, query_words: int = 0) -> tuple[Choice, Choice]:
    """A turn of words: as numbers, or as what a codec makes of text, whose queries have at most so many words."""
    verbs, size = (VERBS, MOST_WORDS) if query_words else (VERBS[: JUDGE + judges], WORDS)
    about = "words of the query or the answer: 0 no word, 1 unknown"
    about += f"; of a query at most {query_words}" if query_words else ""
    return (
        Choice("verb", len(verbs), verbs, "what the turn does"),
        Choice("words", vocabulary, about=about, shape=(size,)),
    )


def found_choice(documents: int, top: int) -> Choice:
    """What a turn says beside its verb and words where passages are found outside of the rules."""
    return Choice("found", documents + 1, about="1 + number of each passage that a search finds, or 0", shape=(top,))


def structured_choice(relations: int, mentions: int, judges: bool) -> Choice:
    """A turn in the structured form."""
    n = 1 + mentions * relations + mentions + 2 * judges
    most = 1 + MENTIONS * RELATIONS + MENTIONS + 2
    about = f"0 nothing; 1 + {relations} k + r search relation r of mentioned entity k; "
    about += f"{1 + mentions * relations} + k answer k"
    about += f"; {n - 2} and {n - 1} judge that the passages do not suffice, that they do" if judges else ""
    return Choice("turn", n, about=about, capacity=most)


def legal_structured(s, world, mask):
    """Searches and answers of what was mentioned; literals have no relations."""
    rules, allowed = world.rules, mask.agent[0].turn
    allowed[0] = 1
    searches = rules.mentions * world.options.relations
    for k in range(s.mentions):
        allowed[1 + searches + k] = 1
        if s.mentioned[k] >= 0:
            for relation in range(world.options.relations):
                allowed[1 + world.options.relations * k + relation] = 1
    if rules.judge and s.judged == 0:
        allowed[1 + searches + rules.mentions] = 1
        allowed[2 + searches + rules.mentions] = 1


# -- scripts -----------------------------------------------------------------------------------------------------------


def script_tokens(s, world, slot, which, actions, scratch):
    """A script's turn as a verb and words."""
    turn = actions.agent[0]
    if which == FIRST_HIT and s.kind == GIVEN:
        turn.verb = SEARCH if write_first(s, world, turn.words) else ANSWER
        return
    verb, thing, relation = plan(s, world, which)
    turn.verb = verb
    for k in range(len(turn.words)):
        turn.words[k] = NO_WORD
    if thing != NOTHING:
        end = write_name(s, world, thing, 0, turn.words, 0)
        if verb == SEARCH:
            turn.words[end] = world.language.relation_words[relation]
    elif verb == SEARCH:
        query(s, world, relation, turn.words)
    else:
        number = s.number if which == ORACLE else script_integer(s, world.rules.questions)
        for k in range(WORDS):
            turn.words[k] = world.questions.answers[number, 0, k]


def script_dense(s, world, slot, which, actions, scratch):
    """A script's turn as a verb, words, and the passage that the path needs next."""
    script_tokens(s, world, slot, which, actions, scratch)
    turn, wanted = actions.agent[0], NOTHING
    for hop in range(s.hops):
        if turn.verb == SEARCH and s.seen[hop] == 0 and wanted == NOTHING:
            wanted = s.gold[hop]
    for k in range(len(turn.found)):
        turn.found[k] = wanted + 1 if k == 0 else 0


def script_structured(s, world, slot, which, actions, scratch):
    """A script's turn as a choice; what was not mentioned cannot be answered, then the first that was is."""
    rules, turn = world.rules, actions.agent[0]
    searches = rules.mentions * world.options.relations
    verb, thing, relation = plan(s, world, which)
    if verb == SEARCH:
        turn.turn = 1 + world.options.relations * max(mention_of(s, thing), 0) + relation
    elif verb == ANSWER:
        turn.turn = 1 + searches + max(mention_of(s, thing), 0)
    else:
        turn.turn = 1 + searches + rules.mentions + (thing == LITERAL - YES)


def plan(s, world, which):
    """A script's verb, the entity that it is about (-1 in a file's world) and its relation (there: its hop)."""
    if which == CLOSED_BOOK:
        return ANSWER, guess(s, world), NOTHING
    if which == FIRST_HIT:
        thing, relation = follow_first(s, world)
        return ANSWER if relation == NOTHING else SEARCH, thing, relation
    if world.rules.judge and s.judged == 0:
        return JUDGE, LITERAL - (YES if suffices(s) else NO), NOTHING
    for hop in range(s.hops):
        if s.seen[hop] == 0 and s.steps + 1 < s.parameters.horizon:
            return SEARCH, s.nodes[hop], hop if s.kind == GIVEN else s.relations[hop]
    return ANSWER, s.nodes[MOST_HOPS], NOTHING


def guess(s, world):
    """An answer of the right kind, drawn at random."""
    if s.kind == GIVEN:
        return NOTHING
    if s.kind == SAME:
        return LITERAL - (YES if script_integer(s, 2) else NO)
    if s.kind == OLDER:
        return s.nodes[script_integer(s, 2)]
    kind = world.language.leads_to[s.relations[s.hops - 1]]
    if kind == YEAR:
        return LITERAL - FIRST_YEAR - script_integer(s, YEAR_COUNT)
    entities = world.rules.entities
    return kind + KINDS * script_integer(s, (entities - kind + KINDS - 1) // KINDS)
