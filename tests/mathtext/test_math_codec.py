"""MathText as text: numbers, steps and answers are read exactly, in linear time; what is told fits what is played."""

import time
from typing import Any

import gymnasium
import numpy as np
import pytest

from palaestra import make_batch, registry
from palaestra.games.mathtext import demonstrations, score_answer
from palaestra.games.mathtext.math_codec import MathCodec, parse
from palaestra.games.mathtext.math_language import ALGEBRA, ANSWER, ARITH, USUAL, as_text
from palaestra.games.mathtext.score_numbers import read_number

pytestmark = pytest.mark.jitless

ARITH_ID, ALGEBRA_ID = "palaestra/MathText-Arith-v1", "palaestra/MathText-Algebra-v0"
LEFT_ID = "palaestra/MathText-LeftToRight-v0"
LENGTH = 26
MOST_MS = 100
"""For a turn of a million characters; most take a millisecond."""


def codec(tokens: int = LENGTH, prompt: str = "instructed", task: int = ARITH, in_steps: bool = False) -> MathCodec:
    return MathCodec(tokens, prompt, (task, USUAL), in_steps)


def read(text: str, tokens: int = LENGTH) -> str:
    """A turn as text, tokens and text again."""
    decoded = codec(tokens).decode(None, text)  # type: ignore[arg-type]
    assert (decoded.dtype, decoded.shape) == (np.int64, (tokens,))
    return as_text(decoded.tolist())


@pytest.fixture(scope="module")
def sims() -> dict[str, Any]:
    """64 lanes of each task, as plain Python."""
    sims = {id: make_batch(id, 64, compiled=False) for id in (ARITH_ID, ALGEBRA_ID)}
    for sim in sims.values():
        sim.reset(seed=3)
    return sims


# -- numbers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("2", "2"),
        (" -7/2\n", "-7/2"),
        ("- 7 / 2", "-7/2"),
        ("7/-2", "-7/2"),
        ("-7/-2", "7/2"),
        ("+4/6", "2/3"),
        ("-3.5", "-7/2"),
        (".5", "1/2"),
        ("0.50/2", "1/4"),
        ("\N{MINUS SIGN}3", "-3"),
        ("007", "7"),
        ("-0", "0"),
        ("123456789", "123456789"),
        ("0.12345678", "6172839/50000000"),
        ("1234567890", None),
        ("0.123456789", None),
        ("1/1234567890", None),
        ("3/0", None),
        ("3/", None),
        ("/3", None),
        ("1 2", None),
        ("1.", None),
        ("1e3", None),
        ("--3", None),
        ("x = 3", None),
        ("\N{SUPERSCRIPT TWO}", None),
        ("\N{ARABIC-INDIC DIGIT TWO}", None),
        ("nan", None),
        ("", None),
        (" " * 90 + "5", "5"),
        ("5" + " " * 90 + "/1", "5"),
        ("5" + " " * 100 + "/1", None),
    ],
)
def test_numbers_are_read_exactly(text: str, number: str | None):
    found = read_number(text)
    assert (None if found is None else str(found)) == number


def test_an_answer_scores_one_if_it_equals_the_right_one_and_else_nothing():
    entry = {"question": "3x = 2", "answer": "2/3", "metadata": {}}
    scores = {answer: score_answer(answer, entry) for answer in ("4/6", "2/3", "0.667", "3/2", "two thirds", "")}
    assert scores == {"4/6": 1.0, "2/3": 1.0, "0.667": 0.0, "3/2": 0.0, "two thirds": 0.0, "": 0.0}
    assert score_answer(None, entry) == 0.0
    for wrong in ({}, {"answer": ""}, {"answer": "no"}):
        with pytest.raises(ValueError, match=r'entry needs the right answer, \{"answer": "-7/2"\}, got answer='):
            score_answer("2", wrong)


# -- turns -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<answer>2</answer>", "<answer>2</answer>"),
        ("3 + 5 = 8; 8*7=6\n<answer> 2 </answer> or <answer>3</answer>", "3 + 5 = 8; 8 * 7 = 6; <answer>2</answer>"),
        ("First I add.\n3 + 5 = 8\nThen: 8 * 7 = 6\n<answer>2</answer>", "3 + 5 = 8; <answer>2</answer>"),
        ("8 \N{MULTIPLICATION SIGN} 7 = 6; 3 + 5;", "8 * 7 = 6;"),
        ("2x = \N{MINUS SIGN}7; x = -7/2; <answer>-7/2</answer>", "2x = -7; x = -7/2; <answer>-7/2</answer>"),
        ("<answer>-3.5</answer>", "<answer>-7/2</answer>"),
        ("<answer>-14/4</answer>", "<answer>-7/2</answer>"),
        ("<answer>seven</answer>", "<answer></answer>"),
        ("<answer>3/0</answer>", "<answer></answer>"),
        ("<answer><answer>2</answer>", "<answer></answer>"),
        ("</answer><answer>2</answer>", "<answer>2</answer>"),
        ("<answer>2", ""),
        ("2", ""),
        ("", ""),
        ("<answer>2</answer> 3 + 5 = 8;", "<answer>2</answer>"),
        ("1 + 1 = 2;" * 9 + "<answer>2</answer>", "; <answer>2</answer>"),
        ("1 + 1 = 2;" * 9, ";"),
        ("prose " * 700 + "\n1 + 1 = 2; <answer>2</answer>", "<answer>2</answer>"),
    ],
)
def test_a_turn_is_read_as_its_steps_and_the_first_answer(text: str, said: str):
    assert read(text) == said


def test_an_answer_that_no_turn_has_room_for_is_none():
    assert read("<answer>123/457</answer>", 6) == "<answer></answer>"
    assert read("<answer>1234</answer>", 6) == "<answer>1234</answer>"
    assert read("1 + 1 = 2;<answer>12345</answer>", 6) == "<answer>12345</answer>"


def test_a_turn_of_a_million_characters_is_read_in_linear_time():
    million = 10**6
    turns = [
        "<answer>" * (million // 8),
        "</answer>" * (million // 9),
        f"<answer>{' ' * million}</answer>",
        f"<answer>{'9' * million}</answer>",
        f"<answer>1{' ' * million}x</answer>",
        "1+1=2;" * (million // 6),
        ";" * million,
        "=" * million,
        "<" * million,
    ]
    for turn in turns:
        took = []
        for _ in range(3):
            start = time.process_time()
            read(turn)
            took.append(1e3 * (time.process_time() - start))
        assert min(took) < MOST_MS, turn[:20]


def test_a_pair_of_tags_is_the_first_that_opens_up_to_where_it_is_closed():
    assert parse("a<answer>b</answer>c<answer>d</answer>") == ("a", "b")
    assert parse("a</answer><answer>b") == ("a</answer><answer>b", None)


@pytest.mark.parametrize("id", [ARITH_ID, ALGEBRA_ID])
def test_text_and_tokens_say_the_same(id: str, sims: dict[str, Any]):
    """Right and spoilt solutions: as text they are the tokens that they were."""
    rng, count = np.random.default_rng(2), 0
    for row in demonstrations(sims[id].states):
        assert read(as_text(row.tolist())) == as_text(row.tolist())
        spoilt = row.copy()
        place = int(rng.integers(row.tolist().index(ANSWER)))
        spoilt[place] = rng.integers(1, 11) if 1 <= row[place] <= 10 else row[place]
        decoded = codec().decode(None, as_text(spoilt.tolist()))  # type: ignore[arg-type]
        assert np.array_equal(decoded, spoilt)
        count += not np.array_equal(spoilt, row)
    assert count > 16


@pytest.mark.parametrize("id", [ARITH_ID, ALGEBRA_ID])
@pytest.mark.parametrize("turns", ["one", "steps"])
def test_the_demonstration_is_right_turn_by_turn(id: str, turns: str):
    env = gymnasium.make(id, form="text", turns=turns, compiled=False)
    for seed in range(5):
        text, info = env.reset(seed=seed)
        assert info["question"] in text
        assert score_answer(info["answer"], info) == 1.0
        is_over, reward = False, 0.0
        while not is_over:
            text, reward, is_over, _, info = env.step(info["demonstration"])
            assert info["turn_label"] == 1
            assert is_over == (text == "")
        assert (reward, info["exact_match"], text) == (1.0, 1, "")
    env.close()


# -- what is told ------------------------------------------------------------------------------------------------------


def test_first_comes_the_prompt_then_what_the_turn_was():
    env = gymnasium.make(ARITH_ID, form="text", turns="steps", compiled=False, max_turns=9)
    prompt, info = env.reset(seed=0)
    assert prompt.startswith("Calculate modulo 10, products first")
    assert prompt.endswith(f"you have 9 turns. Last say the answer alone, a number, between <answer> and </answer>.\n\nQuestion: {info['question']}\n")  # fmt: skip  # noqa: E501
    assert env.step("hm")[0].startswith("\nThis turn said nothing")
    assert env.step("1 + 1 = 2")[0] == "\n7 turns left.\n"
    for _ in range(6):
        text, _, _, is_truncated, _ = env.step("hm")
        assert text.startswith("\nThis turn said nothing")
        assert not is_truncated
    text, _, _, is_truncated, _ = env.step("hm")
    assert (text, is_truncated) == ("", True)
    env.close()


@pytest.mark.parametrize(
    ("prompt", "text"), [("plain", "{}"), ("Q: {question} ({turns})", "Q: {} (1)"), ("{question}{question}", "{0}{0}")]
)
def test_a_prompt_may_be_a_template(prompt: str, text: str):
    env = gymnasium.make(ALGEBRA_ID, form="text", prompt=prompt, compiled=False)
    told, info = env.reset(seed=1)
    assert told == text.format(info["question"])
    env.close()


def test_the_task_is_explained():
    asked = {task: gymnasium.make(id, form="text", compiled=False).reset(seed=0)[0] for task, id in
             ((ARITH, ARITH_ID), (ALGEBRA, ALGEBRA_ID))}  # fmt: skip
    assert "products first" in asked[ARITH]
    assert "from left to right, one" in gymnasium.make(LEFT_ID, form="text", compiled=False).reset(seed=0)[0]
    assert "Solve the equation for x" in asked[ALGEBRA]


def test_the_last_observation_of_a_match_that_was_started_anew_has_the_question_alone():
    env = registry.make_vec(ALGEBRA_ID, 2, form="text", compiled=False, autoreset_mode="same_step")
    _, first = env.reset(seed=0)
    _, rewards, _, _, info = env.step(tuple(first["demonstration"]))
    assert rewards.tolist() == [1.0, 1.0]
    assert all(info["question"][k] != first["question"][k] for k in range(2))
    assert all(score_answer(info["answer"][k], {"answer": info["answer"][k]}) for k in range(2))
    last = info["final_info"]
    assert list(last["question"]) == list(first["question"])
    assert [*last["answer"], *last["demonstration"]] == ["", "", "", ""]
    env.close()


def test_samples_of_turns_say_something():
    space = codec().action_space(None)  # type: ignore[arg-type]
    space.seed(0)
    said = [read(space.sample()) for _ in range(200)]
    assert sum("<answer>" in text for text in said) > 60
    assert sum(";" in text for text in said) > 60


def test_too_long_a_turn_is_not_written_as_something_else():
    said = codec().decode(None, "0 = 0; " * LENGTH)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty step"):
        codec().encode_action(None, said)  # type: ignore[arg-type]
