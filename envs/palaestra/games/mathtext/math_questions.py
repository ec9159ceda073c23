"""The questions of MathText and their worked solutions, as tokens in the match record.

A question is drawn again until it belongs to the split: nine of ten are for training, by a hash of their tokens. Those
of the split "long" have more operations, or more terms, than any other question.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from palaestra.game import integer
from palaestra.games.mathtext.math_language import (
    ANSWER,
    ARITH,
    CLOSE,
    END,
    EQUALS,
    LEFT_TO_RIGHT,
    LONG,
    LONGER,
    MINUS,
    OVER,
    PLUS,
    QUESTION_TOKENS,
    SOLUTION_TOKENS,
    STEP,
    TEST,
    TIMES,
    UNKNOWN,
    ZERO,
)

FACTORS = (3, 7, 9)
"""All but 1 that have an inverse modulo 10: no operation makes an answer more probable than another one."""
TERMS = 4
"""Most terms on a side of an equation: x, number, x, number."""
PRIME, SPREAD = 2**31 - 1, 1_103_515_245
"""Of the hash: products of two numbers below `PRIME` have 62 bits."""
ONE_IN = 10
"""One question in so many belongs to the split "test"."""

STATE = (
    ("question", "u1", (QUESTION_TOKENS,)),
    ("question_end", "i8"),
    ("terms", "i8", (2 * TERMS,)),
    ("solution", "u1", (SOLUTION_TOKENS,)),
    ("numerator", "i8"),
    ("denominator", "i8"),
)
"""Tokens of the question; coefficients of an equation, the left side first; the worked solution; the right answer."""


class MathWorld(NamedTuple):
    """What the rules read.

    Attributes:
        options: Numbers of the options, see `palaestra.games.mathtext.math_text`.
        shown: Tokens of a question that agents see.
        shown_steps: Tokens of the last step that agents see.
    """

    options: Any
    shown: int
    shown_steps: int


def pose(s, world):
    """Draws a question of the split and solves it."""
    is_drawn = False
    while not is_drawn:
        if world.options.task == ARITH:
            draw_chain(s, world)
        else:
            draw_equation(s, world)
        is_drawn = world.options.split == LONG or (world.options.split == TEST) == is_for_test(s)
    if world.options.task == ARITH:
        solve_chain(s, world.options.order == LEFT_TO_RIGHT)
    else:
        solve_equation(s, world)


def is_for_test(s):
    """Whether the question belongs to the split "test", by a hash of its tokens."""
    code = 1
    for k in range(s.question_end):
        code = (code * SPREAD + np.int64(s.question[k])) % PRIME
    code = (code * SPREAD) % PRIME
    return (code >> 9) % ONE_IN == 0


# -- chains ------------------------------------------------------------------------------------------------------------


def draw_chain(s, world):
    """Writes a chain of operations; each operation is as probable as the others, and so is each number."""
    if world.options.split == LONG:
        operations = world.options.operations[1] + 1 + integer(s, LONGER)
    else:
        fewest, most = world.options.operations
        operations = fewest + integer(s, most - fewest + 1)
    s.question[0] = ZERO + integer(s, 10)
    for k in range(operations):
        operator = PLUS + integer(s, 3)
        number = integer(s, 10) if operator != TIMES else factor(integer(s, 3))
        s.question[2 * k + 1] = operator
        s.question[2 * k + 2] = ZERO + number
    finish_question(s, 2 * operations + 1)


def factor(k):
    """One of `FACTORS`."""
    return FACTORS[k]


def finish_question(s, end):
    """Notes where a question ends; a longer one may have been drawn before it."""
    s.question_end = end
    for k in range(end, QUESTION_TOKENS):
        s.question[k] = END


def solve_chain(s, from_left):
    """Works a chain out modulo 10: products first, then sums and differences; or all operations from left to right."""
    end, value = 0, number_at(s, 0)
    for k in range(1, s.question_end, 2):
        if from_left or s.question[k] == TIMES:
            value, end = write_operation(s.solution, end, value, s.question[k], number_at(s, k + 1)), end + STEP
        else:
            value = number_at(s, k + 1)
    if not from_left:
        value = product_at(s, 0)
        for k in range(1, s.question_end, 2):
            if s.question[k] != TIMES:
                value, end = write_operation(s.solution, end, value, s.question[k], product_at(s, k + 1)), end + STEP
    s.numerator, s.denominator = value, 1
    write_answer(s, end)


def number_at(s, k):
    """The number of a chain at a token of the question."""
    return np.int64(s.question[k]) - ZERO


def product_at(s, k):
    """The number of a chain at a token of the question times the factors that follow it, modulo 10."""
    value = number_at(s, k)
    while k + 1 < s.question_end and s.question[k + 1] == TIMES:
        k += 2
        value = (value * number_at(s, k)) % 10
    return value


def write_operation(out, end, value, operator, number):
    """Writes a worked step and returns its result, modulo 10."""
    out[end], out[end + 1], out[end + 2], out[end + 3] = ZERO + value, operator, ZERO + number, EQUALS
    if operator == PLUS:
        value = (value + number) % 10
    elif operator == MINUS:
        value = (value + 10 - number) % 10
    else:
        value = (value * number) % 10
    out[end + 4], out[end + 5] = ZERO + value, CLOSE
    return value


# -- equations ---------------------------------------------------------------------------------------------------------


def draw_equation(s, world):
    """Writes an equation with one solution; those of the split "long" have twice as many terms, none of them 0."""
    count = TERMS if world.options.split == LONG else TERMS // 2
    is_drawn = False
    while not is_drawn:
        for side in range(2):
            for k in range(count):
                s.terms[TERMS * side + k] = integer(s, 2 * world.options.largest + 1) - world.options.largest
        is_drawn = is_worth_asking(s, world.options.split == LONG)
    end = write_side(s.question, 0, s.terms, 0, count)
    s.question[end] = EQUALS
    finish_question(s, write_side(s.question, end + 1, s.terms, TERMS, count))


def is_worth_asking(s, is_long):
    """Whether there is one solution and something to collect, and in the split "long" no term is 0."""
    if is_long:
        for k in range(2 * TERMS):
            if s.terms[k] == 0:
                return False
    left_x, left, right_x, right = (
        coefficient(s, 0),
        coefficient(s, 1),
        coefficient(s, TERMS),
        coefficient(s, TERMS + 1),
    )
    is_collected = (left == 0 and right_x == 0) or (left_x == 0 and right == 0)
    return left_x != right_x and (is_long or not is_collected)


def coefficient(s, k):
    """Sum of a side's coefficients of x (an even ``k``), or of its numbers."""
    return s.terms[k] + s.terms[k + 2]


def solve_equation(s, world):
    """Collects x on the left and the numbers on the right, and divides; in the split "long" each side comes first.

    A step that would repeat the one before it, or be the next one already, is left out.
    """
    end, is_long = 0, world.options.split == LONG
    for side in range(2):
        for k in range(2):
            s.terms[TERMS * side + k] = coefficient(s, TERMS * side + k)
            s.terms[TERMS * side + k + 2] = 0
    if is_long:
        end = write_side(s.solution, 0, s.terms, 0, 2)
        s.solution[end] = EQUALS
        end = write_side(s.solution, end + 1, s.terms, TERMS, 2)
        s.solution[end] = CLOSE
        end += 1
    is_collected = is_long and s.terms[1] == 0 and s.terms[TERMS] == 0
    below, above = s.terms[0] - s.terms[TERMS], s.terms[TERMS + 1] - s.terms[1]
    if below != 1 and not is_collected:
        end = write_term(s.solution, end, below, True, True)
        s.solution[end] = EQUALS
        end = write_number(s.solution, end + 1, above)
        s.solution[end] = CLOSE
        end += 1
    divisor = common_divisor(above, below)
    divisor = -divisor if below < 0 else divisor
    s.numerator, s.denominator = above // divisor, below // divisor
    if below != 1 or not is_collected:
        s.solution[end], s.solution[end + 1] = UNKNOWN, EQUALS
        end = write_fraction(s, end + 2)
        s.solution[end] = CLOSE
        end += 1
    write_answer(s, end)


def common_divisor(a, b):
    """Greatest common divisor of two numbers that are not both 0, by Euclid's algorithm."""
    a, b = abs(a), abs(b)
    while b != 0:
        a, b = b, a % b
    return a


def write_side(out, end, terms, first, count):
    """Writes one side of an equation without the terms that are 0, and returns where it ends."""
    start = end
    for k in range(count):
        if terms[first + k] != 0:
            end = write_term(out, end, terms[first + k], k % 2 == 0, end == start)
    return write_number(out, end, 0) if end == start else end


def write_term(out, end, number, is_of_x, is_first):
    """Writes a term with its sign, which a first one has only if it is negative; returns where it ends."""
    if number < 0 or not is_first:
        out[end] = MINUS if number < 0 else PLUS
        end += 1
    if not is_of_x:
        return write_number(out, end, abs(number))
    if abs(number) != 1:
        end = write_number(out, end, abs(number))
    out[end] = UNKNOWN
    return end + 1


def write_number(out, end, number):
    """Writes a whole number and returns where it ends."""
    if number < 0:
        out[end] = MINUS
        end += 1
    left, unit = abs(number), 1
    while left >= 10 * unit:
        unit *= 10
    while unit > 0:
        out[end] = ZERO + left // unit
        left, unit, end = left % unit, unit // 10, end + 1
    return end


def write_fraction(s, end):
    """Writes the right answer and returns where it ends."""
    end = write_number(s.solution, end, s.numerator)
    if s.denominator == 1:
        return end
    s.solution[end] = OVER
    return write_number(s.solution, end + 1, s.denominator)


def write_answer(s, end):
    """Ends a worked solution with the answer."""
    s.solution[end] = ANSWER
    write_fraction(s, end + 1)
