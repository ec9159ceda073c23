"""Keywords of MathText that cannot be, or mean nothing where they stand, are refused by name; the others fit."""

import re
from typing import Any

import pytest

from palaestra.core.compile.linker import link
from palaestra.games.mathtext.math_text import game


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"turns": "steps", "max_turns": 4}, "max_turns must be an integer from 5 to 128"),
        ({"turns": "steps", "split": "long", "max_turns": 8}, "max_turns must be an integer from 9 to 128"),
        ({"largest": 5}, "largest=5 means nothing with task='arith'"),
        ({"task": "algebra", "operations": 3}, "operations=3 means nothing with task='algebra'"),
        ({"task": "algebra", "order": "left_to_right"}, "order='left_to_right' means nothing with task='algebra'"),
        ({"prompt": "plain"}, "prompt='plain' means nothing with form='tokens'"),
        ({"max_turns": 9}, "max_turns=9 means nothing with turns='one'"),
        ({"form": "text", "prompt": "hello"}, "prompt='hello': give instructed or plain, or a template"),
        ({"form": "text", "prompt": "{question} {x}"}, "its fields are {question} and {turns}"),
        ({"form": "text", "prompt": "{question:>999999999}"}, "give a width of up to 1000"),
        ({"form": "text", "prompt": 5}, "it is no text"),
        ({"form": "text", "prompt": "{question:>1000}" * 2000}, "with the longest question it has 2000000 characters"),
        ({"form": "text", "prompt": "{question"}, "its fields are {question} and {turns}"),
    ],
)
def test_wrong_keywords_are_refused(keywords: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        game(**keywords)


@pytest.mark.parametrize(
    ("keywords", "tokens", "question"),
    [
        ({}, 26, 9),
        ({"split": "test"}, 26, 9),
        ({"split": "long"}, 50, 17),
        ({"operations": 2}, 14, 5),
        ({"operations": (2, 8), "split": "long"}, 74, 25),
        ({"turns": "steps"}, 6, 9),
        ({"task": "algebra"}, 26, 11),
        ({"task": "algebra", "split": "long"}, 50, 21),
        ({"task": "algebra", "split": "long", "largest": 49}, 50, 29),
        ({"task": "algebra", "turns": "steps"}, 9, 11),
        ({"task": "algebra", "turns": "steps", "split": "long"}, 16, 21),
    ],
)
def test_turns_and_questions_have_the_room_that_they_need(keywords: dict[str, Any], tokens: int, question: int):
    (role,) = game(**keywords).roles
    assert [field.shape for field in role.action] == [(tokens,)]
    assert role.observation[0].shape == (question,)


def test_options_are_data_of_one_kernel():
    kernel = link(game())
    assert link(game(task="algebra")) is kernel
    assert link(game(split="test", operations=(3, 4), form="text")) is kernel
    assert link(game(task="algebra", split="long")) is link(game(split="long"))
