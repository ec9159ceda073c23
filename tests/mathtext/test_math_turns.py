"""MathText: demonstrations are right, and turns are read and paid as told."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from palaestra import make_batch
from palaestra.games.mathtext import demonstrations, score_answer
from palaestra.games.mathtext.math_language import ANSWER, TOKENS, VOCABULARY, as_text
from palaestra.testing import check

pytestmark = pytest.mark.jitless

MANY, SOME = 512, 64
IDS = {"arith": "palaestra/MathText-Arith-v1", "algebra": "palaestra/MathText-Algebra-v0"}
NUMBER_OF = {token: number for number, token in enumerate(TOKENS)}
HORIZON = 1
"""Number of the end reason of a match that its horizon truncates."""


def batch(task: str = "arith", lanes: int = 1, seed: int = 7, **keywords: Any) -> Any:
    """Lanes that stand still when their match is over. Few are played as plain Python, which compiles nothing."""
    options: dict[str, Any] = {"autoreset_mode": "off", "compiled": lanes > 4 * SOME, **keywords}
    sim = make_batch(IDS[task], lanes, **options)
    sim.reset(seed=seed)
    return sim


def texts(rows: np.ndarray) -> list[str]:
    return [as_text(row) for row in rows.tolist()]


def questions(sim: Any) -> list[str]:
    return texts(sim.states["question"])


def solutions(sim: Any) -> list[tuple[list[str], str]]:
    """Steps and answer of the worked solution of each lane."""
    solved = []
    for text in texts(sim.states["solution"]):
        *steps, answer = text.removesuffix("</answer>").replace("<answer>", "").split("; ")
        solved.append((steps, answer))
    return solved


def tokens(words: str, length: int) -> np.ndarray:
    """A turn of words between spaces, int64 ``[1, 1, length]``."""
    row = np.zeros((1, 1, length), np.int64)
    said = [NUMBER_OF[word] for word in words.split()]
    row[0, 0, : len(said)] = said
    return row


def say(sim: Any, *turns: str) -> float:
    """Plays turns in the only lane; the last reward."""
    length = sim.game.roles[0].action[0].shape[0]
    for turn in turns:
        sim.step(tokens(turn, length))
    return float(sim.rewards[0, 0])


def spaced(text: str) -> str:
    """A text as words of `tokens`."""
    return " ".join(text.replace("<answer>", "A").replace("</answer>", "").replace(" ", "")).replace("A", "answer")


def info(sim: Any, name: str) -> int:
    return int(sim.info[name][0])


def pose(sim: Any, question: str, solution: str) -> None:
    """Puts a question into the only lane: ``"3 + 5 * 7"`` and its worked solution, as tokens."""
    for name, text in (("question", question), ("solution", solution)):
        row = tokens(spaced(text), sim.states[name].shape[1])[0, 0]
        sim.states[name][0] = row


# -- demonstrations and scripts ----------------------------------------------------------------------------------------


def test_a_seed_asks_the_same_question_again():
    sim = batch("algebra", 4)
    sim.reset(seed=[5, 5, 5, 6])
    first = questions(sim)
    assert first[0] == first[1] == first[2] != first[3]
    sim.step(np.zeros((4, 1, 26), np.int64))
    sim.reset(seed=[6, 5, 5, 5])
    assert questions(sim) == first[::-1]


@pytest.mark.parametrize("task", ["arith", "algebra"])
@pytest.mark.parametrize("split", ["train", "test", "long"])
@pytest.mark.parametrize("turns", ["one", "steps"])
def test_demonstrations_are_what_the_oracle_writes_and_are_right(task: str, split: str, turns: str):
    sim = batch(task, 16, split=split, turns=turns, compiled=False)
    oracle = batch(task, 16, split=split, turns=turns, compiled=False, opponents={"agent": "oracle"})
    paid, steps = np.zeros(16), solutions(sim)
    while not (over := sim.terminated.copy()).all():
        shown = demonstrations(sim.states)
        assert (shown.dtype, shown.shape) == (np.int64, (16, *sim.game.roles[0].action[0].shape))
        sim.step(shown[:, None], lanes=~over)
        oracle.step(lanes=~over)
        assert np.array_equal(sim.states["said"], oracle.states["said"])
        assert (sim.info["turn_label"][~over] == 1).all()
        paid[~over] += sim.rewards[~over, 0]
    assert (paid == 1).all()
    assert (sim.info["exact_match"] == 1).all()
    assert sim.info["right_steps"].tolist() == [len(steps) for steps, _ in steps]
    assert sim.states["steps"].tolist() == ([1] * 16 if turns == "one" else [len(steps) + 1 for steps, _ in steps])


def test_longest_demonstrations_fit_exactly():
    """A chain of the most operations fills its turn; those of the split "long" have the most that there is room for."""
    for split, most in (("train", 8), ("long", 12)):
        sim = batch("arith", SOME, operations=8, split=split)
        longest = (demonstrations(sim.states) > 0).sum(1).max()
        assert longest == 6 * most + 2 == sim.game.roles[0].action[0].shape[0]


# -- turns -------------------------------------------------------------------------------------------------------------


FRACTION = [
    ("- 7 / 2", True),
    ("- 1 4 / 4", True),
    ("7 / - 2", True),
    ("- 0 0 7 / 0 2", True),
    ("+ 7 / - 2", True),
    ("7 / 2", False),
    ("- 7", False),
    ("- - 7 / 2", False),
    ("- 7 / 0", False),
    ("- 7 / 2 / 1", False),
    ("- 7 / 2 ;", False),
    ("- 7 / 2 answer - 7 / 2", False),
    ("- 7 / 2 x", False),
    ("- 7 /", False),
    ("-", False),
    ("", False),
    ("x = - 7 / 2", False),
    ("- 9 9 9 9 9 9 9 9 3 / 2 8 5 7 1 4 2 8 4", False),
    ("- 0 0 0 0 0 0 0 7 0 / 0 0 0 0 0 0 0 2 0", True),
    ("- 0 0 0 0 0 0 0 0 7 0 / 2 0", False),
    ("- 1 8 4 4 6 7 4 4 0 7 3 7 0 9 5 5 1 6 1 7 / 1", False),
]


@pytest.mark.parametrize(("answer", "is_right"), FRACTION)
def test_an_answer_is_one_number_that_equals_the_right_one(answer: str, is_right: bool):
    sim = batch("algebra")
    sim.states["numerator"], sim.states["denominator"] = -7, 2
    assert say(sim, f"answer {answer}") == is_right
    assert (info(sim, "exact_match"), info(sim, "winner")) == (is_right, 0 if is_right else -1)
    assert sim.game.end_reason(info(sim, "end_reason")) == "answered"


def test_zero_equals_zero_whatever_is_below_it():
    for answer, is_right in (("0", True), ("- 0", True), ("0 / 5", True), ("0 / 0", False), ("5 / 0", False)):
        sim = batch("algebra")
        sim.states["numerator"], sim.states["denominator"] = 0, 1
        assert say(sim, f"answer {answer}") == is_right


@pytest.mark.check
def test_rules_and_scorer_agree_on_random_answers():
    rng, right = np.random.default_rng(1), 0
    sim = batch("algebra", MANY)
    turns = np.zeros((MANY, 1, 26), np.int64)
    turns[:, 0, 0] = ANSWER
    turns[:, 0, 1:6] = rng.integers(1, VOCABULARY - 3, (MANY, 5)) * (np.arange(5) < rng.integers(0, 6, (MANY, 1)))
    turns[::2, 0, 1:] = 0
    for lane in range(0, MANY, 2):  # half of them say the right number, more or less
        above, below = (int(sim.states[name][lane]) for name in ("numerator", "denominator"))
        above, below = above * (k := int(rng.integers(1, 4))) + int(rng.integers(8) == 0), below * k
        words = f"{above} / {below}" if rng.integers(4) else str(above)
        row = tokens(spaced(words), 25)[0, 0]
        turns[lane, 0, 1:] = row
    sim.step(turns)
    for lane, text in enumerate(texts(turns[:, 0])):
        answer = text.removeprefix("<answer>").removesuffix("</answer>")
        number = str(Fraction(*(int(sim.states[name][lane]) for name in ("numerator", "denominator"))))
        is_right = sim.rewards[lane, 0] == 1
        assert score_answer(answer, {"answer": number}) == is_right, answer
        right += is_right
    assert MANY / 4 < right < 0.9 * MANY


CHAIN = ("3 + 5 * 7 - 4", "3 + 5 = 8; 8 * 7 = 6; 6 - 4 = 2; <answer>2</answer>")


@pytest.mark.parametrize(
    ("turn", "label", "right_steps", "reward"),
    [
        ("3 + 5 = 8 ; 8 * 7 = 6 ; 6 - 4 = 2 ; answer 2", 1, 3, 1.0),
        ("answer 2", 1, 0, 1.0),
        ("3 + 5 = 8 ; answer 2", 1, 1, 1.0),
        ("3 + 5 = 8 ; 8 * 7 = 6 ; 6 - 4 = 2 ; answer 3", -1, 3, 0.0),
        ("3 + 5 = 9 ; answer 2", -1, 0, 1.0),
        ("3 + 5 = 8 ; 8 * 7 = 5 ; 6 - 4 = 2 ; answer 2", -1, 1, 1.0),
        ("8 * 7 = 6 ; answer 2", -1, 0, 1.0),
        ("3 + 5 = 8 ; 8 * 7 answer 2", -1, 1, 1.0),
        ("3 + 5 = 8 ; ; answer 2", -1, 1, 1.0),
        ("3 + 5 = 8 ; 3 + 5 = 8 ; answer 2", -1, 1, 1.0),
        ("3 + 5 = 8 8 ; answer 2", -1, 0, 1.0),
        ("3 + 5 = 8 ; 8 * 7 = 6 ; 6 - 4 = 2 ; 2 = 2 ; answer 2", -1, 3, 1.0),
        ("answer 2 2", -1, 0, 0.0),
        ("answer 2 answer 2", -1, 0, 0.0),
    ],
)
def test_a_turn_is_right_if_all_that_it_says_is(turn: str, label: int, right_steps: int, reward: float):
    sim = batch("arith", operations=4)
    pose(sim, *CHAIN)
    sim.states["numerator"] = 2
    length = sim.game.roles[0].action[0].shape[0]
    said = np.zeros((1, 1, max(length, 40)), np.int64)
    said[0, 0] = tokens(turn, said.shape[2])[0, 0]
    sim.step(said[:, :, :length])
    assert (info(sim, "turn_label"), info(sim, "right_steps")) == (label, right_steps)
    assert sim.rewards[0, 0] == reward
    assert sim.terminated.all()
    assert info(sim, "malformed") == 0


@pytest.mark.parametrize("turn", ["", "3 + 5 = 8", "3 + 5 = 8 ; 8 * 7 = 6 ;", "2"])
def test_one_turn_without_an_answer_is_malformed_and_ends_the_match(turn: str):
    sim = batch("arith")
    pose(sim, *CHAIN)
    assert say(sim, turn) == 0.0
    assert sim.terminated.all()
    assert sim.game.end_reason(info(sim, "end_reason")) == "malformed"
    assert (info(sim, "malformed"), info(sim, "turn_label"), info(sim, "winner")) == (1, -1, -1)
    assert seen(sim)["last_turn"] == 3


def test_what_follows_the_first_zero_is_not_read():
    sim = batch("arith")
    right = sim.states["numerator"][0] + 1
    turn = np.full((1, 1, 26), 5)
    turn[0, 0, :3] = (ANSWER, right, 0)
    sim.step(turn)
    assert sim.rewards[0, 0] == 1
    assert sim.states["said"][0].tolist() == [ANSWER, right, *[0] * 24]


def seen(sim: Any) -> dict[str, Any]:
    """The observation of the only agent by field; questions and steps as text."""
    row = sim.observations[0, 0].tolist()
    fields, found = sim.game.roles[0].observation, {}
    for field in sorted(fields, key=lambda field: field.at != "reset"):
        part, row = row[: field.size], row[field.size :]
        found[field.name] = as_text(part) if field.shape else part[0]
    return found


def test_steps_are_said_one_a_turn_and_wrong_ones_may_be_said_again():
    sim = batch("arith", turns="steps", operations=(2, 4), max_turns=6)
    pose(sim, *CHAIN)
    sim.states["numerator"] = 2
    assert seen(sim)["last_turn"] == 0
    for turn, label, right_steps, malformed, last_turn, last in [
        ("3 + 5 = 8 ;", 1, 1, 0, 1, "3 + 5 = 8;"),
        ("8 * 7 = 5 ;", -1, 1, 0, 1, "8 * 7 = 5;"),
        ("8 * 7 = 6", -1, 1, 1, 3, ""),
        ("8 * 7 = 6 ;", 1, 2, 1, 1, "8 * 7 = 6;"),
    ]:
        assert say(sim, turn) == 0.0
        assert not sim.terminated.any()
        assert info(sim, "turn_label") == label
        assert (info(sim, "right_steps"), info(sim, "malformed")) == (right_steps, malformed)
        assert (seen(sim)["last_turn"], seen(sim)["last"]) == (last_turn, last)
        assert seen(sim)["turns_left"] == 6 - sim.states["steps"][0]
    assert as_text(demonstrations(sim.states)[0].tolist()) == "6 - 4 = 2;"
    assert say(sim, "answer 2") == 1.0
    assert sim.terminated.all()
    assert (seen(sim)["last_turn"], seen(sim)["last"]) == (2, "")


def test_steps_are_truncated_after_max_turns():
    sim = batch("algebra", turns="steps")
    for turn in range(1, 7):
        assert say(sim, "") == 0.0
        assert bool(sim.truncated[0]) == (turn == 6)
    assert (info(sim, "malformed"), info(sim, "end_reason")) == (6, HORIZON)
    assert not sim.terminated.any()


def test_where_one_turn_says_all_no_step_is_shown():
    sim = batch("arith")
    say(sim, "3 + 5 = 8 ;")
    assert seen(sim)["last"] == ""


@pytest.mark.slow  # compiles kernels of turns of other lengths than the registered ids have
@pytest.mark.parametrize("id", IDS.values())
@pytest.mark.parametrize("keywords", [{"turns": "steps"}, {"split": "long", "form": "text"}])
def test_other_turns_pass_the_conformance_kit(id: str, keywords: dict[str, Any]):
    report = check(id, "fast", **keywords)
    assert report.passed, str(report)
