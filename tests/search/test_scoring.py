"""Answers are scored as in open-domain QA, and found in a response, in linear time."""

import re
import string
import time
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaestra.games.search.scoring import Score, extract_answer, normalize, score

pytestmark = pytest.mark.jitless

WORDS = st.sampled_from(
    ["the", "a", "an", "The", "Paris", "theatre", "x-ray", "U.S.", "“the”", "café", "1,000", "_", ""]
)
TEXTS = st.lists(WORDS | st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=8).map(" ".join)


def plainly_normalized(text: str) -> str:
    """SQuAD's four steps, one character at a time."""
    kept = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


@given(TEXTS)
@example("a\x01 the\x7f b")
def test_normalisation_is_the_usual_one(text: str):
    assert normalize(text) == plainly_normalized(text)


def test_case_punctuation_articles_and_white_space_do_not_count():
    assert normalize("  The U.S.A.,\n an   x-ray_ of\tA theatre ") == "usa xray of theatre"
    assert normalize("Été, a “the” b") == "été “ ” b"


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_each_number_is_the_best_over_the_targets(answer: str, targets: list[str]):
    words = plainly_normalized(answer).split()
    best = [0.0, 0.0, 0.0]
    for target in targets:
        gold = plainly_normalized(target).split()
        common = sum((Counter(words) & Counter(gold)).values())
        f1 = 2 * common / (len(words) + len(gold)) if words and gold else float(words == gold)
        runs = [words[k : k + len(gold)] for k in range(len(words))]
        contains = float(gold in runs if gold else not words)
        best = [max(pair) for pair in zip(best, (float(words == gold), f1, contains), strict=True)]
    assert score(answer, targets) == pytest.approx(best)


@pytest.mark.parametrize(
    ("answer", "targets", "expected"),
    [
        ("the Eiffel Tower!", "Eiffel tower", Score(1, 1, 1)),
        ("It is the Eiffel Tower.", ["Eiffel Tower", "La tour Eiffel"], Score(0, 2 / 3, 1)),
        ("Eiffel's Tower", "Eiffel Tower", Score(0, 0.5, 0)),
        ("Tower, Eiffel", "Eiffel Tower", Score(0, 1, 0)),
        ("parisian", "Paris", Score(0, 0, 0)),
        ("tower parisian paris", "tower paris", Score(0, 0.8, 0)),
        ("paris paris paris", "Paris", Score(0, 0.5, 1)),
        ("anything", "The", Score(0, 0, 0)),
        ("", "The", Score(1, 1, 1)),
        ("", "Paris", Score(0, 0, 0)),
    ],
)
def test_scores(answer: str, targets: str | list[str], expected: Score):
    assert score(answer, targets) == pytest.approx(expected)


def test_numbers_of_different_targets_may_be_the_best():
    assert score("eiffel tower", ["tower", "eiffel tower in paris"]) == pytest.approx((0, 2 / 3, 1))


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="no targets"):
        score("Paris", [])
    with pytest.raises(TypeError, match="got 1991"):
        score("1991", ["MCMXCI", 1991])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="got None"):
        score(None, "Paris")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("", None),
        ("Paris", None),
        ("<answer>Paris", None),
        ("</answer>Paris<answer>", None),
        ("<answer> Paris\n</answer>", "Paris"),
        ("<answer></answer>", ""),
        ("<answer>Rome</answer> no, <answer>Paris</answer> is it", "Paris"),
        ("<answer>Paris</answer><answer>Rome", "Paris"),
        ("<answer>Paris</answer> Rome</answer>", "Paris"),
        ("<answer>Rome <answer>Paris</answer>", "Paris"),
        ("<answer>Paris</answer><information><answer>Rome</answer></information>", "Paris"),
        ("<information>It is <answer>Rome</answer></information>", None),
        ("<information>a</information><answer>Paris</answer><information>b</information>c", "Paris"),
        ("<information><answer>Rome</answer></information>a<information>b</information>c", None),
        ("<answer>Pa<information>x</information>ris</answer>", None),
        ("<answ<information>x</information>er>Paris</answer>", None),
        ("<information><answer>Paris</answer>", "Paris"),
        ("<information>a <information> b</information><answer>Paris</answer>", "Paris"),
    ],
)
def test_the_last_complete_answer_outside_of_information_counts(text: str, answer: str | None):
    assert extract_answer(text) == answer


BABBLE = [
    "<answer>", "<answer>x", "</answer>", "<answer></answer>", "<information>", "<information></information>",
    "</information><answer>", "the ", "paris ", "p", "“a”",
]  # fmt: skip


@pytest.mark.parametrize("unit", BABBLE)
def test_time_is_linear_in_the_length(unit: str):
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        times = []
        for _ in range(3):
            start = time.process_time()
            extract_answer(text)
            score(text, ["paris", "paris paris p", "the"])
            times.append(time.process_time() - start)
        return min(times)

    seconds(1000)
    assert seconds(160_000) < 40 * seconds(10_000) + 0.01, "16 times the length; a quadratic time is 256 times as long"
