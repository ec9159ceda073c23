"""``form="text"``: turns and questions as text, with the answer between ``<answer>`` and ``</answer>``."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np

from palaestra.game import AgentView, Game, Role, TextSpace, check_template
from palaestra.games.mathtext.math_language import (
    ALGEBRA,
    ANSWER,
    ARITH,
    CLOSE,
    LEFT_TO_RIGHT,
    QUESTION_TOKENS,
    TOKENS,
    USUAL,
    as_text,
)
from palaestra.games.mathtext.math_rules import AT_START, MALFORMED_TURN, MOST_TURNS, STEPPED
from palaestra.games.mathtext.math_tokens import MathTokens
from palaestra.games.mathtext.score_numbers import PLAIN, read_number

LONGEST_TEXT = 2**20
"""Characters of a turn, and of what an agent reads."""
LONGEST_QUESTION = 3 * QUESTION_TOKENS
"""Characters of a question, or more: an operator has a blank on both sides."""
READ_CHARACTERS = 4096
"""Characters of a turn, from its first, in which steps are looked for."""
OPENED, CLOSED = "<answer>", "</answer>"
BREAK = re.compile("[;\n]")
"""What stands between steps."""
TOKEN_OF = {token: number for number, token in enumerate(TOKENS) if len(token) == 1}
STEP_CHARACTERS = frozenset(" ").union(TOKEN_OF) - {";"}

EXPLAINED = {
    (ARITH, USUAL): (
        "Calculate modulo 10, products first, then sums and differences from left to right: each result is a digit from"
        " 0 to 9, so that 8 + 5 is 3 and 3 - 5 is 8. Write each step on its own, such as 3 * 5 = 5;"
    ),
    (ARITH, LEFT_TO_RIGHT): (
        "Calculate from left to right, one operation after the other, modulo 10: each result is a digit from 0 to 9,"
        " so that 8 + 5 is 3 and 3 - 5 is 8. Write each step on its own, such as 3 + 5 = 8;"
    ),
    (ALGEBRA, USUAL): (
        "Solve the equation for x, in exact fractions. Write each step on its own: collect x on the left and the"
        " numbers on the right, such as 2x = -7; and divide, such as x = -7/2;"
    ),
}
"""The task in words."""
ASKED = (
    " Then write the answer alone, a number, between <answer> and </answer>.\n\nQuestion: {question}\n",
    " Say one step in a turn; you have {turns} turns. Last say the answer alone, a number, between <answer> and"
    " </answer>.\n\nQuestion: {question}\n",
)
"""What is asked for where one turn says all, and where a turn is a step."""
PROMPTS = ("instructed", "plain")
"""Names of prompts; ``"plain"`` is the question alone."""
REFUSAL = "\nThis turn said nothing: write a step and a semicolon, or the answer between <answer> and </answer>.\n"


def template_of(prompt: str, task: tuple[int, int], in_steps: bool) -> str:
    """A prompt by its name, or the template itself.

    Raises:
        ValueError: No such name, or a template without the question or with an unknown field.
    """
    if prompt in PROMPTS:
        return EXPLAINED[task] + ASKED[in_steps] if prompt == "instructed" else "{question}"
    try:
        check_template(prompt)
        is_fine = "\0" in prompt.format(question="\0", turns=4)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        raise ValueError(f"prompt={prompt!r}: its fields are {{question}} and {{turns}}: {error!r}") from None
    if not is_fine:
        raise ValueError(f"prompt={prompt!r}: give {' or '.join(PROMPTS)}, or a template with {{question}}")
    if (length := len(prompt.format(question="x" * LONGEST_QUESTION, turns=MOST_TURNS))) > LONGEST_TEXT:
        raise ValueError(
            f"prompt={prompt[:60]!r}...: with the longest question it has {length} characters, an observation at most "
            f"{LONGEST_TEXT}: shorten it"
        )
    return prompt


def parse(turn: str) -> tuple[str, str | None]:
    """What a turn says before its answer, and the answer, in time linear in its length.

    The answer is the first complete pair of tags: from the first that opens to where it is closed first. None without
    such a pair: all of the turn is then before it.
    """
    start = turn.find(OPENED)
    end = turn.find(CLOSED, start + len(OPENED)) if start >= 0 else -1
    return (turn[:start], turn[start + len(OPENED) : end]) if end >= 0 else (turn, None)


def steps_of(text: str) -> list[int]:
    """Tokens of the worked steps in a text: what stands alone between semicolons or line ends and is an equation."""
    tokens = list[int]()
    for piece in BREAK.split(text[:READ_CHARACTERS]):
        piece = piece.translate(PLAIN)
        if "=" in piece and STEP_CHARACTERS.issuperset(piece):
            tokens += [TOKEN_OF[character] for character in piece if character != " "]
            tokens.append(CLOSE)
    return tokens


def answer_of(text: str, most: int) -> list[int]:
    """Tokens of an answer: its number in lowest terms, or none if it is no number of so many tokens."""
    number = read_number(text)
    tokens = [] if number is None else [TOKEN_OF[character] for character in str(number)]
    return [ANSWER, *tokens] if len(tokens) < most else [ANSWER]


def sample_turn(generator: np.random.Generator) -> str:
    """A turn for the samples of the action space: a step, an answer, or both."""
    a, b, c = generator.integers(10, size=3).tolist()
    answer = f"<answer>{a if generator.integers(2) else f'-{a}/{b + 1}'}</answer>"
    return (f"{a} + {b} = {c};", answer, f"{a} * 7 = {c}; {answer}", f"{a}x = {b}; {answer}")[generator.integers(4)]


class MathCodec:
    """Text for the tokens of `palaestra.games.mathtext.math_rules`."""

    total = True

    def __init__(self, tokens: int, prompt: str, task: tuple[int, int], in_steps: bool) -> None:
        """See `palaestra.games.mathtext.math_text.game`.

        Args:
            tokens: Of a turn.
            prompt: Its name or a template.
            task: `ARITH` or `ALGEBRA`, and in which order chains are worked out.
            in_steps: Whether a turn is a step.
        """
        self._tokens, self._template = tokens, template_of(prompt, task, in_steps)

    def observation_space(self, role: Role) -> TextSpace:
        """Any text."""
        return TextSpace(LONGEST_TEXT, min_length=0, charset=None)

    def action_space(self, role: Role) -> TextSpace:
        """Any text; samples are turns."""
        return TextSpace(LONGEST_TEXT, min_length=0, charset=None, samples=sample_turn)

    def tools(self, role: Role) -> dict[str, str]:
        """The answer; steps are content."""
        return {"answer": "Answers the question, by a number alone."}

    def turn_tokens(self, game: Game) -> MathTokens:
        """Tokens for small models."""
        return MathTokens(game)

    def demonstration(self, view: AgentView) -> list[str]:
        """The worked solution, or its next step, as a turn; none once the next match has begun."""
        return [] if view.record is None else [as_text(view.record["turn"].tolist())]

    def decode(self, view: AgentView, action: str) -> np.ndarray:
        """The turn as tokens, int64 ``[L]``; any text is a turn.

        Steps that do not fit into the tokens of a turn are one wrong step.
        """
        before, answer = parse(action)
        said = [] if answer is None else answer_of(answer, self._tokens)
        steps = steps_of(before)
        if len(steps) + len(said) > self._tokens:
            steps = [CLOSE] * (len(said) < self._tokens)
        decoded = np.zeros(self._tokens, np.int64)
        decoded[: len(steps) + len(said)] = steps + said
        return decoded

    def encode_action(self, view: AgentView, action: np.ndarray) -> str:
        """A turn of tokens, int64 ``[L]``, as text.

        Raises:
            ValueError: It begins with an empty step, as which too long a turn is read.
        """
        tokens = np.asarray(action).tolist()
        if tokens[0] == CLOSE:
            raise ValueError("an empty step cannot be written")
        return as_text(tokens)

    def encode(self, view: AgentView) -> str:
        """At first the prompt with the question, then what the rules took the last turn for."""
        row = view.row
        kind, turns = int(row["last_turn"]), int(row["turns_left"])
        if kind == AT_START:
            return self._template.format(question=as_text(row["question"].tolist()), turns=turns)
        if kind == STEPPED:
            return f"\n{turns} turns left.\n"
        return REFUSAL if kind == MALFORMED_TURN and turns > 0 else ""

    def info(self, view: AgentView) -> dict[str, Any]:
        """``question``, ``answer`` and ``demonstration``; the last two are empty once the next match has begun."""
        question, record = as_text(view.row["question"].tolist()), view.record
        if record is None:
            return {"question": question, "answer": "", "demonstration": ""}
        answer = Fraction(int(record["numerator"]), int(record["denominator"]))
        return {"question": question, "answer": str(answer), "demonstration": as_text(record["turn"].tolist())}
