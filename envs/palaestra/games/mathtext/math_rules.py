"""The rules of MathText: what a turn says, whether it is right, what agents see, and how scripts play.

A turn is a row of tokens up to its first 0: worked steps, each closed by ``;``, then ``answer`` and a number. The first
``answer`` counts; what follows it up to the end of the turn has to be one number.
"""

from __future__ import annotations

import numpy as np

from palaestra.game import Choice, Field, script_integer
from palaestra.games.mathtext.math_language import (
    ANSWER,
    CLOSE,
    END,
    LONG_EQUATION_STEP,
    MINUS,
    NINE,
    OVER,
    PLUS,
    QUESTION_TOKENS,
    TOKENS,
    VOCABULARY,
    ZERO,
)
from palaestra.games.mathtext.math_questions import STATE as QUESTION_STATE
from palaestra.games.mathtext.math_questions import pose

AT_START, STEPPED, ANSWERED_TURN, MALFORMED_TURN = range(4)
"""What the last turn was."""
KINDS = ("at_start", "step", "answer", "malformed")
ANSWERED, MALFORMED = 2, 3
"""Numbers of the end reasons."""
MOST_DIGITS = 9
"""Digits of a number that are read: a longer one is wrong, so that products of two stay below 2**63."""
MOST_TURNS = 128
RANDOM_DIGIT, ORACLE = 0, 1
SCRIPTS = ("random_digit", "oracle")


def state(tokens: int) -> tuple[tuple, ...]:
    """The fields of a match record with turns of so many tokens.

    ``turn`` is what the oracle would say next, ``at`` the token of the solution at which it begins, ``said`` the last
    turn, ``last`` its steps where a turn is a step.
    """
    more = (("turn", "u1", (tokens,)), ("at", "i8"), ("said", "u1", (tokens,)), ("last_turn", "i8"))
    return (*QUESTION_STATE, *more, ("last", "u1", (LONG_EQUATION_STEP,)))


def demonstrations(states: np.ndarray) -> np.ndarray:
    """What the script ``oracle`` would write next in each lane.

    Where one turn says all, these are the worked solutions, before and after the turn; where a turn is a step, the next
    right step, or the answer.

    Args:
        states: Match records ``[N]``, ``simulation.states``.

    Returns:
        Tokens, int64 ``[N, L]``, L being the tokens of a turn; 0 from the end of each row on.
    """
    return states["turn"].astype(np.int64)


def reset(s, world):
    """Poses a question."""
    pose(s, world)
    s.at, s.last_turn = 0, AT_START
    write_next(s, world)


def write_next(s, world):
    """Writes the turn that goes on with the solution: all of it, or its next step."""
    is_over = False
    for k in range(len(s.turn)):
        place = s.at + k
        token = END if is_over or place >= len(s.solution) else np.int64(s.solution[place])
        s.turn[k] = token
        is_over = is_over or token == END or (world.options.turns == 1 and token == CLOSE)


# -- turns -------------------------------------------------------------------------------------------------------------


def step(s, world, actions, rewards, scratch):
    """A turn; where one turn says all, it ends the match."""
    turn = actions.agent[0]
    end = note(s, turn.tokens)
    answer_at = 0
    while answer_at < end and turn.tokens[answer_at] != ANSWER:
        answer_at += 1
    steps, is_right = check_steps(s, turn.tokens, answer_at)
    s.last_turn = MALFORMED_TURN
    if answer_at < end:
        s.last_turn, s.info.end_reason = ANSWERED_TURN, ANSWERED
        if is_answer(turn.tokens, answer_at + 1, end, s.numerator, s.denominator):
            s.info.exact_match, s.info.winner, rewards[0] = 1, 0, 1.0
        else:
            is_right = False
    elif world.options.turns == 0:
        s.info.end_reason = MALFORMED
    elif steps > 0:
        s.last_turn = STEPPED
    if s.last_turn == MALFORMED_TURN:
        s.info.malformed += 1
        is_right = False
    s.info.turn_label = 1 if is_right else -1
    if world.options.turns == 1:
        write_next(s, world)
        for k in range(len(s.last)):
            s.last[k] = s.said[k] if s.last_turn == STEPPED and k < end else END
    return s.info.end_reason != 0


def note(s, tokens):
    """Keeps a turn up to its first 0, and returns where it ends."""
    end = 0
    while end < len(tokens) and tokens[end] != END:
        end += 1
    for k in range(len(s.said)):
        s.said[k] = tokens[k] if k < end else END
    return end


def check_steps(s, tokens, end):
    """Counts the worked steps of a turn, and whether they are all right, without a token outside of them.

    A step is right if it is token by token the next one of the solution.
    """
    steps, start, is_right = 0, 0, True
    for k in range(end):
        if tokens[k] == CLOSE:
            steps += 1
            if is_next(s, tokens, start, k):
                s.at += k + 1 - start
                s.info.right_steps += 1
            else:
                is_right = False
            start = k + 1
    return steps, is_right and start == end


def is_next(s, tokens, start, close):
    """Whether a step is the next one of the solution."""
    k = start
    while k <= close and tokens[k] == s.solution[s.at + k - start]:  # at the latest the answer is another token
        k += 1
    return k > close


def is_answer(tokens, start, end, numerator, denominator):
    """Whether tokens are a number, or a fraction, that equals a fraction."""
    above, place = read_number(tokens, start, end)
    below = 1
    if 0 <= place < end and tokens[place] == OVER:
        below, place = read_number(tokens, place + 1, end)
    return place == end and below != 0 and above * denominator == below * numerator


def read_number(tokens, start, end):
    """A number with or without a sign, and where it ends: -1 if there is none, after `MOST_DIGITS` if it is longer."""
    place, value, sign = start, 0, 1
    if place < end and (tokens[place] == PLUS or tokens[place] == MINUS):
        sign = -1 if tokens[place] == MINUS else 1
        place += 1
    first = place
    while place < end and ZERO <= tokens[place] <= NINE and place - first < MOST_DIGITS:
        value = 10 * value + (np.int64(tokens[place]) - ZERO)
        place += 1
    return sign * value, place if place > first else -1


# -- observations and actions ------------------------------------------------------------------------------------------


def observation_fields(question: int, step: int) -> tuple[Field, ...]:
    """What the agent sees.

    Args:
        question: Tokens of the longest question.
        step: Tokens of the longest worked step.
    """
    last = "steps of the last turn, where a turn is a step"
    top, room = VOCABULARY - 1, (QUESTION_TOKENS, LONG_EQUATION_STEP)
    return (
        Field("question", (question,), 0, top, "1", "tokens of the question", "i4", capacity=room[0], at="reset"),
        Field("last", (step,), 0, top, "1", last, "i4", capacity=room[1]),
        Field("last_turn", (), 0, len(KINDS) - 1, "1", "0 none yet, 1 a step, 2 an answer, 3 malformed", "i4"),
        Field("turns_left", (), 0, MOST_TURNS, "1", "turns until the match is truncated", "i4"),
    )


def observe_question(s, world, observations, scratch):
    """The question."""
    row = observations.agent[0]
    for k in range(world.shown):
        row.question[k] = s.question[k]


def observe(s, world, observations, scratch):
    """What the last turn was, and the turns that are left."""
    row = observations.agent[0]
    for k in range(world.shown_steps):
        row.last[k] = s.last[k]
    row.last_turn = s.last_turn
    row.turns_left = np.int64(s.parameters.horizon) - s.steps


def action_field(tokens: int) -> Choice:
    """A turn of so many tokens."""
    return Choice("tokens", VOCABULARY, TOKENS, "the turn, up to its first 0", shape=(tokens,))


# -- scripts -----------------------------------------------------------------------------------------------------------


def script(s, world, slot, which, actions, scratch):
    """0 "random_digit": an answer that is drawn at random; 1 "oracle": the worked solution."""
    turn = actions.agent[0]
    for k in range(len(s.turn)):
        turn.tokens[k] = s.turn[k] if which == ORACLE else END
    if which == RANDOM_DIGIT:
        turn.tokens[0] = ANSWER
        turn.tokens[1] = ZERO + script_integer(s, 10)
