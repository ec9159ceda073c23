"""Pictures and texts of matches of MathText: what has been said shows, and nothing leaves its place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.drawing.colors import BACKGROUND
from palaestra.games.mathtext.math_language import SOLUTION_TOKENS
from palaestra.games.mathtext.math_render import DONE, LOWER, MARGIN, MIDDLE, RIGHT, UPPER, WRONG, steps_of

pytestmark = pytest.mark.check

ARITH_ID, ALGEBRA_ID = "palaestra/MathText-Arith-v1", "palaestra/MathText-Algebra-v0"


def count_of(sim: Any, color: tuple[int, ...], left: int = 0, right: int = 720) -> int:
    """Pixels of about a colour between two columns."""
    image = np.asarray(sim.render())[:, left:right].astype(int)
    return int((np.abs(image - np.array(color)).sum(-1) < 12).sum())


@pytest.fixture
def match(rules: Callable[..., Any]) -> Callable[..., Any]:
    """``match(said, id, **keywords)``: a match in which the oracle has said some turns; if none, the caller plays."""

    def match(said: int, id: str = ARITH_ID, **keywords: Any) -> Any:
        sim = rules(id, opponents={"agent": "oracle"} if said else {}, autoreset_mode="off", **keywords)
        sim.reset(seed=5)
        for _ in range(said):
            sim.step()
        return sim

    return match


def test_steps_that_were_said_have_a_star(match: Callable[..., Any]):
    for said in range(3):
        sim = match(said, turns="steps")
        lines = sim.render_text().split("\n")
        start, end = lines.index("worked solution:") + 1, next(k for k, line in enumerate(lines) if "last turn" in line)
        assert [line[2] for line in lines[start:end]] == ["*"] * said + ["-"] * (end - start - said)


def test_the_text_tells_question_turn_and_result(match: Callable[..., Any]):
    lines = match(0, ALGEBRA_ID).render_text().split("\n")
    assert "x" in lines[0]
    assert " = " in lines[0]
    assert lines[1] == "turn 0 of 1"
    assert lines[-2:] == ["last turn (at start): none", "result: running"]
    sim = match(1, ALGEBRA_ID)
    assert sim.render_text().split("\n")[-1] == "result: right (answered)"
    assert "last turn (answer): " in sim.render_text()
    sim = match(0)
    sim.step(np.zeros((1, 1, 26), np.int64))
    assert sim.render_text().split("\n")[-2:] == ["last turn (malformed): nothing", "result: wrong (malformed)"]


def test_said_steps_are_blue_and_the_result_is_green_or_red(match: Callable[..., Any]):
    start, right, wrong = match(0), match(1), match(0)
    wrong.step(np.zeros((1, 1, 26), np.int64))
    assert [count_of(sim, DONE) > 0 for sim in (start, right, wrong)] == [False, True, False]
    assert [count_of(sim, RIGHT) > 0 for sim in (start, right, wrong)] == [False, True, False]
    assert [count_of(sim, WRONG) > 0 for sim in (start, right, wrong)] == [False, False, True]
    assert count_of(right, DONE, MIDDLE) == 0


def test_the_parts_of_a_turn_are_its_steps_and_what_follows():
    assert steps_of([4, 11, 5, 16, 16, 18, 3, 0, 0]) == ["3 + 4;", ";", "<answer>2</answer>"]
    assert steps_of([4, 0, 5]) == ["3"]
    assert steps_of([0] * 5) == []


@pytest.mark.parametrize("token", [16, 18, 11, 10])
def test_whatever_a_turn_says_stays_in_its_panel(match: Callable[..., Any], token: int):
    sim = match(0, operations=8, split="long")
    sim.step(np.full((1, 1, SOLUTION_TOKENS), token))
    image = np.asarray(sim.render())
    assert image.shape == (480, 720, 3)
    gaps = image[UPPER:LOWER, MIDDLE + 1 : MIDDLE + 15], image[LOWER + 1 : LOWER + 15]
    for margin in (image[:, :MARGIN], image[:, -MARGIN:], *gaps):
        assert (np.abs(margin.astype(int) - np.array(BACKGROUND)).sum(-1) < 12).all()
    assert len(sim.render_text().split("\n")) < 20
