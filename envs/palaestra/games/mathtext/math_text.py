"""MathText: an agent answers questions of exact arithmetic, in worked steps or at once.

## Description

Questions whose answers can be checked, for learners of language: one agent, `agent_0`, reads a question and writes
worked steps and an answer.

``task="arith"``: a chain of operations modulo 10, from left to right: ``3 + 5 * 7 - 4`` is 3 + 5 = 8, 8 * 7 = 6,
6 - 4 = 2. Factors are 3, 7 and 9, which have an inverse modulo 10: all ten answers are equally probable.
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
``3 + 5 = 8 ; 8 * 7 = 6 ; 6 - 4 = 2 ; answer 2``. The longest worked solution fits, or where a turn is a step the
longest step; turns of equations have a few tokens more.

``form="text"``: the same as ``3 + 5 = 8; 8 * 7 = 6; 6 - 4 = 2; <answer>2</answer>``. The first complete pair of
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

* `task`: ``"arith"`` or ``"algebra"``.
* `operations`: of a chain, 2 to 8, or the fewest and the most.
* `largest`: coefficient of an equation, 2 to 49.
* `split`: ``"train"``, ``"test"`` or ``"long"``.
* `form`: ``"tokens"`` or ``"text"``.
* `turns`: ``"one"`` or ``"steps"``.
* `max_turns`: where a turn is a step. By default three more than the longest worked solution needs.
* `prompt`: of the text form: ``"instructed"`` explains the task, ``"plain"`` is the question alone; else a template
  with ``{question}``, and ``{turns}`` where it tells them.

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from palaestra.game import Field, Game, Role, any_text, check_count, check_word, names_files
from palaestra.games.mathtext import math_rules
from palaestra.games.mathtext.math_codec import MathCodec
from palaestra.games.mathtext.math_language import (
    ARITH,
    DEFAULT_OPERATIONS,
    FEWEST_OPERATIONS,
    LEAST_LARGEST,
    LONG,
    MOST_LARGEST,
    MOST_OPERATIONS,
    SPLITS,
    TASKS,
    question_tokens,
    solution_tokens,
    solution_turns,
    step_tokens,
)
from palaestra.games.mathtext.math_questions import MathWorld

Form = Literal["tokens", "text"]
Turns = Literal["one", "steps"]
SPARE_TURNS = 3
"""Turns beyond those of the longest worked solution, unless the user says otherwise."""

INFO = (
    Field("exact_match", (), 0, 1, "1", "the answer is right", "i8"),
    Field("turn_label", (), -1, 1, "1", "1 if all that the last turn said is right, else -1", "i8"),
    Field("malformed", (), 0, math_rules.MOST_TURNS, "1", "turns that said nothing", "i8"),
    Field("right_steps", (), 0, MOST_OPERATIONS * 2, "1", "worked steps that were right so far", "i8"),
)


@names_files(prompt=any_text)
def game(
    task: str = "arith",
    operations: int | Sequence[int] = DEFAULT_OPERATIONS,
    largest: int = 9,
    split: str = "train",
    form: Form = "tokens",
    turns: Turns = "one",
    max_turns: int | None = None,
    prompt: str = "instructed",
) -> Game:
    """The rules of `palaestra/MathText-Arith-v0` and `palaestra/MathText-Algebra-v0`.

    Raises:
        ValueError: A word, a number or a prompt that does not fit; says which and what to do.
    """
    given = locals()
    check_word("task", task, TASKS)
    check_word("split", split, SPLITS)
    check_word("form", form, get_args(Form))
    check_word("turns", turns, get_args(Turns))
    _refuse_unused(given)
    fewest, most = _range_of(operations)
    check_count("largest", largest, LEAST_LARGEST, MOST_LARGEST)
    number, in_steps, is_long = TASKS.index(task), turns == "steps", split == SPLITS[LONG]
    needed = solution_turns(number, most, is_long)
    if max_turns is not None:
        check_count("max_turns", max_turns, needed, math_rules.MOST_TURNS)
    step = step_tokens(number, is_long)
    tokens = step if in_steps else solution_tokens(number, most, is_long)
    question = question_tokens(number, most, largest, is_long)
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
        horizon=(max_turns or needed + SPARE_TURNS) if in_steps else 1,
        info=INFO,
        end_reasons=("answered", "malformed"),
        world=MathWorld(number, SPLITS.index(split), fewest, most, largest, int(in_steps), question, step),
        determinism="cross-platform",
        codecs={"text": MathCodec(tokens, prompt, number, in_steps)},
        default_codec="text" if form == "text" else None,
        render="palaestra.games.mathtext.math_render:draw",
        render_text="palaestra.games.mathtext.math_render:write",
        render_fps=1.0,
    )


def _range_of(operations: int | Sequence[int]) -> tuple[int, int]:
    """The fewest and the most operations.

    Raises:
        ValueError: Neither a number nor two in their order, within the range.
    """
    pair = (operations, operations) if isinstance(operations, int) else tuple(operations)
    if len(pair) != 2:
        raise ValueError(f"operations={operations!r}: give a number, or the fewest and the most, such as (2, 4)")
    check_count("operations", pair[0], FEWEST_OPERATIONS, MOST_OPERATIONS)
    check_count("operations", pair[1], pair[0], MOST_OPERATIONS)
    return pair[0], pair[1]


def _refuse_unused(given: Mapping[str, Any]) -> None:
    """Refuses what was said and means nothing.

    Raises:
        ValueError: A keyword other than by default that this task, form or kind of turn does not use; names it.
    """
    unused = {
        "largest" if given["task"] == TASKS[ARITH] else "operations": "task",
        **({"prompt": "form"} if given["form"] != "text" else {}),
        **({"max_turns": "turns"} if given["turns"] == "one" else {}),
    }
    for name, by in unused.items():
        if given[name] != inspect.signature(game).parameters[name].default:
            raise ValueError(f"{name}={given[name]!r} means nothing with {by}={given[by]!r}: leave it out")
