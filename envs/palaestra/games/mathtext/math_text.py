"""MathText: an agent answers questions of exact arithmetic, in worked steps or at once.

## Description

Questions whose answers can be checked, for learners of language: one agent, `agent_0`, reads a question and writes
worked steps and an answer.

``task="arith"``: a chain of operations modulo 10, products first: ``3 + 5 * 7 - 4`` is 5 * 7 = 5, 3 + 5 = 8,
8 - 4 = 4. Factors are 3, 7 and 9, which have an inverse modulo 10: all ten answers are equally probable.
``order="left_to_right"`` (`palaestra/MathText-LeftToRight-v0`) works the same chains out one operation after the other:
3 + 5 = 8, 8 * 7 = 6, 6 - 4 = 2. The prompt says so, but it is a trap for models that have read mathematics: the usual
answer is wrong there in 0.33 of the questions of train, 0.31 of test and 0.66 of long. It measures obedience.
``task="algebra"``: a linear equation with exactly one solution, in fractions: ``3x + 5 = x - 2`` is 2x = -7, x = -7/2.

``turns="one"``: one turn says all. ``turns="steps"``: a turn is a step or the answer.

The same match is played in two forms, which share rules and seeds: ``form="tokens"``, numbers of a vocabulary of 19,
and ``form="text"`` for language models. The scripts play both:

* ``random_digit``: answers at once with a digit that is drawn at random. It is right in a tenth of the chains.
* ``oracle``: writes the worked solution; it is always right.

## Action Space

<!-- table: action -->

0 is no token; 1 to 10 are the digits 0 to 9; then come ``+``, ``-``, ``*``, ``/``, ``=``, ``;``, ``x`` and ``answer``.
A turn ends at its first 0. Steps end with ``;``, and the answer follows the first ``answer``:
``5 * 7 = 5 ; 3 + 5 = 8 ; 8 - 4 = 4 ; answer 4``. The longest worked solution fits, or where a turn is a step the
longest step; turns of equations have a few tokens more.

``form="text"``: the same as ``5 * 7 = 5; 3 + 5 = 8; 8 - 4 = 4; <answer>4</answer>``. The first complete pair of
``<answer>`` and ``</answer>`` is the answer. Before it (in the first 4,096 characters) steps are what stands alone
between semicolons or line ends and is made of ``0`` to ``9``, ``+ - * / = x`` and spaces, with an ``=``; other text is
free. More steps than fit into the tokens are one wrong step. Any text is a turn.

An answer is a number: ``-7/2``, ``-14/4``, and in text ``-3.5``. Spaces and signs are free; a number of more than nine
digits and a denominator 0 are wrong.

## Observation Space

<!-- table: observation -->

``text``: first the prompt with the question, then a line on what the turn was.

In `info`:

* ``exact_match``: the answer is right.
* ``turn_label``: 1 if all that the last turn says is right: its steps are the next ones of the worked solution, token
  by token, and its answer, if it has one, is right; else -1. 0 before the first turn. A right answer without steps
  has 1.
* ``right_steps``: worked steps that were right so far.
* ``malformed``: turns that said nothing.

With text also ``question``, ``answer`` and ``demonstration``: what ``oracle`` would write next. The last two are empty
once the next match has begun. `palaestra.games.mathtext.score_answer` compares an answer with them, and
`palaestra.games.mathtext.demonstrations` gives the demonstrations of all lanes as tokens.

## Rewards

1 for an answer that equals the right one, else 0. Steps are not needed and pay nothing.

## Starting State

A question of the `split`. Chains: the number of operations is uniform over `operations`, the operator over ``+``, ``-``
and ``*``, numbers over 0 to 9 and factors over 3, 7 and 9. Equations: the coefficients of two terms on each side are
uniform from -`largest` to `largest`, and terms with 0 are left out. Equations without exactly one solution, and those
with nothing to collect (``3x = 5``), are drawn again.

``split="train"`` and ``"test"`` share no question: one in ten, by a hash of its tokens, is for tests. ``"long"``:
chains of 1 to 4 more operations than `operations` allows, equations of four terms on each side, none of them 0, which
are added up in a first step. Its questions and turns have more tokens than those of the other two splits.

## Episode End

``answered``; the agent has won if it is right. With ``turns="one"`` also ``malformed``: the turn has no answer. With
``turns="steps"`` truncated after `max_turns`; there a turn without a step and an answer is malformed and counts.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* MathText-Arith-v1: products come first; v0 worked chains out from left to right, as MathText-LeftToRight-v0 does.
* v0: first version.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from palaestra.game import Field, Game, Option, Role, any_text, with_options
from palaestra.games.mathtext import math_rules
from palaestra.games.mathtext.math_codec import MathCodec
from palaestra.games.mathtext.math_language import (
    DEFAULT_OPERATIONS,
    FEWEST_OPERATIONS,
    LEAST_LARGEST,
    LONG,
    MOST_LARGEST,
    MOST_OPERATIONS,
    ORDERS,
    SPLITS,
    TASKS,
    question_tokens,
    solution_tokens,
    solution_turns,
    step_tokens,
)
from palaestra.games.mathtext.math_questions import MathWorld

SPARE_TURNS = 3
"""Turns beyond those of the longest worked solution, unless the user says otherwise."""

INFO = (
    Field("exact_match", (), 0, 1, "1", "the answer is right", "i8"),
    Field("turn_label", (), -1, 1, "1", "1 if all that the last turn said is right, else -1", "i8"),
    Field("malformed", (), 0, math_rules.MOST_TURNS, "1", "turns that said nothing", "i8"),
    Field("right_steps", (), 0, MOST_OPERATIONS * 2, "1", "worked steps that were right so far", "i8"),
)


def max_turns_of(turns: int, above: Mapping[str, Any]) -> int:
    """Refuses fewer turns than the longest worked solution needs.

    Raises:
        ValueError: They are fewer.
    """
    needed = turns_needed(above)
    if turns < needed:
        raise ValueError(f"max_turns must be an integer from {needed} to {math_rules.MOST_TURNS}, got {turns}")
    return turns


def turns_needed(options: Mapping[str, Any]) -> int:
    """Turns of the longest worked solution."""
    return solution_turns(TASKS.index(options["task"]), options["operations"][1], options["split"] == SPLITS[LONG])


@with_options(
    Option("task", "arith", "chains of operations, or equations", words=TASKS),
    Option(
        "operations",
        DEFAULT_OPERATIONS,
        "of a chain",
        low=FEWEST_OPERATIONS,
        high=MOST_OPERATIONS,
        is_span=True,
        only={"task": "arith"},
    ),
    Option(
        "order",
        "usual",
        "in which a chain is worked out: products first, or all operations from left to right",
        words=ORDERS,
        only={"task": "arith"},
        example="left_to_right",
    ),
    Option("largest", 9, "coefficient", low=LEAST_LARGEST, high=MOST_LARGEST, only={"task": "algebra"}),
    Option("split", "train", "which questions are asked: see Starting State", words=SPLITS),
    Option("form", "tokens", "what is read and written", words=("tokens", "text")),
    Option("turns", "one", "one turn says all, or each is a step or the answer", words=("one", "steps")),
    Option(
        "max_turns",
        None,
        "by default three more than the longest worked solution needs, which are the fewest",
        low=1,
        high=math_rules.MOST_TURNS,
        check=max_turns_of,
        otherwise=lambda options: turns_needed(options) + SPARE_TURNS,
        only={"turns": "steps"},
        example=20,
    ),
    Option(
        "prompt",
        "instructed",
        '`"instructed"` explains the task, `"plain"` is the question alone; else a template with `{question}`, and '
        "`{turns}` where it tells them",
        texts=any_text,
        only={"form": "text"},
        example="plain",
    ),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/MathText-Arith-v1` and the like."""
    number, in_steps, is_long = TASKS.index(options.task), options.turns == "steps", options.split == SPLITS[LONG]
    most = options.operations[1]
    step = step_tokens(number, is_long)
    tokens = step if in_steps else solution_tokens(number, most, is_long)
    question = question_tokens(number, most, options.largest, is_long)
    return Game(
        name="MathText",
        roles=(
            Role(
                "agent",
                ("agent_0",),
                math_rules.observation_fields(question, step),
                (math_rules.action_field(tokens),),
            ),
        ),
        state=math_rules.state(tokens),
        reset=math_rules.reset,
        step=math_rules.step,
        observe=math_rules.observe,
        observe_reset=math_rules.observe_question,
        script=math_rules.script,
        scripts=math_rules.SCRIPTS,
        default_opponent="oracle",
        horizon=options.max_turns if in_steps else 1,
        info=INFO,
        end_reasons=("answered", "malformed"),
        world=MathWorld(options.numbers, question, step),
        determinism="cross-platform",
        codecs={"text": MathCodec(tokens, options.prompt, (number, ORDERS.index(options.order)), in_steps)},
        default_codec="text" if options.form == "text" else None,
        render="palaestra.games.mathtext.math_render:draw",
        render_text="palaestra.games.mathtext.math_render:write",
        render_fps=1.0,
    )
