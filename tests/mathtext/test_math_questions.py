"""Questions of MathText are solved exactly, are drawn as told, and are in one split alone.

Not run without the compiler: thousands of questions are drawn here.
"""

import re
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from palaestra import make_batch
from palaestra.games.mathtext.math_language import as_text

MANY, SOME = 2048, 64
IDS = {"arith": "palaestra/MathText-Arith-v1", "algebra": "palaestra/MathText-Algebra-v0"}


def batch(task: str, lanes: int, seed: int = 7, **keywords: Any) -> Any:
    """Few lanes are played as plain Python, which compiles nothing."""
    sim = make_batch(IDS[task], lanes, compiled=lanes > SOME, **keywords)
    sim.reset(seed=seed)
    return sim


def texts(sim: Any, name: str) -> list[str]:
    return [as_text(row) for row in sim.states[name].tolist()]


def questions(sim: Any) -> list[str]:
    return texts(sim, "question")


def solutions(sim: Any) -> list[tuple[list[str], str]]:
    """Steps and answer of the worked solution of each lane."""
    solved = []
    for text in texts(sim, "solution"):
        *steps, answer = text.removesuffix("</answer>").replace("<answer>", "").split("; ")
        solved.append((steps, answer))
    return solved


def worked(question: str, order: str = "usual") -> tuple[list[str], str]:
    """Steps and answer of a chain, by Python's integers: the first product, or else the first operation, comes next."""
    tokens, steps = re.findall(r"\d+|[-+*]", question), []
    while len(tokens) > 1:
        at = tokens.index("*") if order == "usual" and "*" in tokens else 1
        first, sign, second = tokens[at - 1 : at + 2]
        result = {"+": int(first) + int(second), "-": int(first) - int(second), "*": int(first) * int(second)}[
            sign
        ] % 10
        steps.append(f"{first} {sign} {second} = {result}")
        tokens[at - 1 : at + 2] = [str(result)]
    return steps, tokens[0]


@pytest.mark.check
@pytest.mark.parametrize("order", ["usual", "left_to_right"])
@pytest.mark.parametrize(("split", "lanes"), [("train", MANY), ("long", SOME)])
def test_a_chain_is_worked_out_modulo_10_in_its_order(split: str, lanes: int, order: str):
    sim = batch("arith", lanes, split=split, order=order)
    assert solutions(sim) == [worked(question, order) for question in questions(sim)]
    assert sim.states["numerator"].tolist() == [int(answer) for _, answer in solutions(sim)]
    assert (sim.states["denominator"] == 1).all()


def test_the_usual_answer_of_a_chain_is_that_of_python():
    sim = batch("arith", SOME, split="long")
    assert sim.states["numerator"].tolist() == [eval(question) % 10 for question in questions(sim)]


@pytest.mark.check
def test_answers_operations_and_numbers_of_chains_are_uniform():
    asked = questions(batch("arith", 2 * MANY))
    answers = Counter(worked(question)[1] for question in asked)
    assert sorted(answers) == list("0123456789")
    assert max(abs(count / len(asked) - 0.1) for count in answers.values()) < 0.02
    signs = Counter(sign for question in asked for sign in re.findall("[-+*]", question))
    assert max(abs(signs[sign] / signs.total() - 1 / 3) for sign in "+-*") < 0.02
    factors = Counter(number for question in asked for number in re.findall(r"\* (\d)", question))
    assert set(factors) == set("379")
    others = Counter(number for question in asked for number in re.findall(r"[-+] (\d)", question))
    assert set(others) == set("0123456789")
    lengths = Counter(len(re.findall("[-+*]", question)) for question in asked)
    assert set(lengths) == {2, 3, 4}
    assert max(abs(count / len(asked) - 1 / 3) for count in lengths.values()) < 0.04


def side_at(side: str, x: Fraction) -> Fraction:
    """Value of a side of an equation at x."""
    total = Fraction(0)
    for sign, number, unknown in re.findall(r"([-+]?)(\d*(?:/\d+)?)(x?)", side.replace(" ", "")):
        if number or unknown:
            value = Fraction(number or 1) * (x if unknown else 1)
            total += -value if sign == "-" else value
    return total


def difference(equation: str, x: Fraction) -> Fraction:
    """Left side less right side at x."""
    left, right = equation.split("=")
    return side_at(left, x) - side_at(right, x)


@pytest.mark.parametrize(
    ("split", "lanes", "largest"), [("train", MANY, 9), ("train", SOME, 49), ("long", SOME, 9), ("long", SOME, 49)]
)
def test_an_equation_has_one_solution_which_each_step_keeps(split: str, lanes: int, largest: int):
    sim = batch("algebra", lanes, split=split, largest=largest)
    for question, (steps, answer) in zip(questions(sim), solutions(sim), strict=True):
        x = Fraction(answer)
        assert str(x) == answer
        for equation in (question, *steps):
            assert difference(equation, x) == 0
            assert difference(equation, x + 1) != 0
        assert steps[-1] == f"x = {answer}"
        assert len({question, *steps}) == len(steps) + 1
    assert [Fraction(*pair) for pair in zip(*(sim.states[name].tolist() for name in ("numerator", "denominator")))] == [  # noqa: B905
        Fraction(answer) for _, answer in solutions(sim)
    ]


def test_coefficients_go_from_minus_to_plus_the_largest():
    for split, terms in (("train", 4), ("long", 8)):
        asked = questions(batch("algebra", SOME, split=split, largest=2))
        found = {number for question in asked for number in re.findall(r"\d+", question)}
        assert found <= {"0", "2", "1"}
        counts = {len(re.findall(r"\d*x|\d+", question)) for question in asked}
        assert max(counts) == terms
        assert (min(counts) == terms) == (split == "long")


def test_steps_that_would_repeat_are_left_out():
    sim = batch("algebra", MANY)
    steps = {len(steps): question for question, (steps, _) in zip(questions(sim), solutions(sim), strict=True)}
    assert set(steps) == {1, 2}


@pytest.mark.parametrize(("task", "keywords"), [("arith", {}), ("algebra", {"largest": 3})])
def test_train_and_test_share_no_question_and_one_in_ten_is_for_tests(task: str, keywords: dict[str, Any]):
    train = Counter(questions(batch(task, 2 * MANY, **keywords)))
    test = Counter(questions(batch(task, 2 * MANY, split="test", **keywords)))
    assert not train & test
    if task == "arith":  # of those with two operations nearly all are drawn
        train, test = ({text for text in asked if len(text) == 9} for asked in (train, test))
    count = 10 * (10 + 10 + 3) ** 2 if task == "arith" else 7**4 - 7**3 - 2 * 42
    assert 0.08 < len(test) / count < 0.11
    assert len(train) > len(test)


def test_the_split_of_a_question_does_not_depend_on_the_other_options():
    test = set(questions(batch("algebra", 2 * MANY, split="test", largest=3)))
    assert not test & set(questions(batch("algebra", 2 * MANY, largest=4)))
    assert test & set(questions(batch("algebra", 2 * MANY, largest=4, split="test")))


@pytest.mark.parametrize("task", ["arith", "algebra"])
def test_long_questions_are_longer_than_any_other(task: str):
    count = lambda sim: [len(re.findall(r"\d*x|\d+", question)) for question in questions(sim)]  # noqa: E731
    longer = set(count(batch(task, SOME, split="long")))
    assert longer == ({6, 7, 8, 9} if task == "arith" else {8})
    assert max(count(batch(task, MANY))) == (5 if task == "arith" else 4)


def test_random_digits_are_right_in_a_tenth_of_the_chains_and_hardly_ever_else():
    for task, low, high in (("arith", 0.08, 0.12), ("algebra", 0.002, 0.03)):
        sim = batch(task, 2 * MANY, opponents={"agent": "random_digit"})
        sim.step()
        assert low < sim.rewards.mean() < high
        assert sim.terminated.all()
