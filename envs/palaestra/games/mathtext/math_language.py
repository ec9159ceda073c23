"""The tokens of MathText, the sizes that follow from the options, and tokens as text."""

from __future__ import annotations

from collections.abc import Iterable

TOKENS = ("end", *"0123456789", *"+-*/=;x", "answer")
"""What each token means. 0 is no token: a turn or a question ends at its first."""
VOCABULARY = len(TOKENS)
END, ZERO = 0, 1
NINE = ZERO + 9
PLUS, MINUS, TIMES, OVER, EQUALS, CLOSE, UNKNOWN, ANSWER = range(11, 19)
"""``CLOSE`` (``;``) closes a worked step, ``UNKNOWN`` is x, what follows ``ANSWER`` is the answer."""

ARITH, ALGEBRA = 0, 1
TASKS = ("arith", "algebra")
"""Names of the tasks by their numbers."""
USUAL, LEFT_TO_RIGHT = 0, 1
ORDERS = ("usual", "left_to_right")
"""Names of the orders in which a chain is worked out, by their numbers."""
TRAIN, TEST, LONG = 0, 1, 2
SPLITS = ("train", "test", "long")
"""Names of the splits by their numbers."""

FEWEST_OPERATIONS, MOST_OPERATIONS, LONGER = 2, 8, 4
"""Range of `operations`; how many more the longest chains of the split "long" have."""
STEP = len("a+b=c;")
"""Tokens of a worked step of a chain."""
LEAST_LARGEST, MOST_LARGEST = 2, 49
"""Range of the largest coefficient: twice as much still has two digits."""
EQUATION_STEP, LONG_EQUATION_STEP = len("-98x=-98;"), len("-98x-98=-98x-98;")
"""Most tokens of a worked step of an equation."""
EQUATION_STEPS, LONG_EQUATION_STEPS = 2, 3
QUESTION_TOKENS = len("-49x-49-49x-49=-49x-49-49x-49")
"""Most tokens of a question: an equation of the split "long"."""
SOLUTION_TOKENS = STEP * (MOST_OPERATIONS + LONGER) + 2
"""Most tokens of a worked solution: a chain of the split "long"."""
DEFAULT_OPERATIONS = (2, 4)


def most_operations(most: int, is_long: bool) -> int:
    """Operations of the longest chain, where `operations` allows so many."""
    return most + LONGER * is_long


def question_tokens(task: int, most: int, largest: int, is_long: bool) -> int:
    """Tokens of the longest question.

    Args:
        task: `ARITH` or `ALGEBRA`.
        most: Largest number of operations of a chain.
        largest: Largest coefficient of an equation.
        is_long: Whether the split is "long".
    """
    if task == ARITH:
        return 2 * most_operations(most, is_long) + 1
    digits = len(str(largest))
    side = (1 + digits + 1) + (1 + digits)
    return 2 * (2 * side if is_long else side) + 1


def step_tokens(task: int, is_long: bool) -> int:
    """Tokens of the longest worked step, which an answer does not exceed."""
    if task == ARITH:
        return STEP
    return LONG_EQUATION_STEP if is_long else EQUATION_STEP


def solution_tokens(task: int, most: int, is_long: bool) -> int:
    """Tokens of the longest worked solution with its answer.

    Equations get as many as chains of `DEFAULT_OPERATIONS`, which is enough, so that both tasks share a kernel.
    """
    return STEP * most_operations(most if task == ARITH else DEFAULT_OPERATIONS[1], is_long) + 2


def solution_turns(task: int, most: int, is_long: bool) -> int:
    """Worked steps of the longest solution, and its answer."""
    if task == ARITH:
        return most_operations(most, is_long) + 1
    return (LONG_EQUATION_STEPS if is_long else EQUATION_STEPS) + 1


def as_text(tokens: Iterable[int]) -> str:
    """Tokens as they are written, up to the first 0: ``3x + 5 = x - 2``, ``x = -7/2;``, ``<answer>-7/2</answer>``."""
    text, last, is_answer = "", END, False
    for token in tokens:
        if token == END:
            break
        follows_number = ZERO <= last <= NINE or last == UNKNOWN
        if token == ANSWER:
            text += " <answer>" if last == CLOSE else "<answer>"
            is_answer = True
        elif token in (PLUS, MINUS, TIMES, EQUALS) and (follows_number or token == EQUALS):
            text += f" {TOKENS[token]} "
        else:
            text += f" {TOKENS[token]}" if last == CLOSE else TOKENS[token]
        last = token
    return f"{text}</answer>" if is_answer else text
