"""Tokens of MathText: questions at fixed positions, turns there and back, worked solutions, and wrong ones."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch

from palaestra.core.contract.turn_tokens import BOS, DOT, END, PAD
from palaestra.core.run.simulation import Simulation
from palaestra.evaluation import evaluate
from palaestra.games.mathtext import math_language as words
from palaestra.games.mathtext.math_tokens import ANSWER, FIRST_WORD, MathTokens
from palaestra_baselines.common.lm.base import ARITH, RECIPES, Demonstrations
from palaestra_baselines.common.lm.demonstrations import with_sums
from palaestra_baselines.common.lm.rollouts import UNSAID, Rollout, check_fits, demonstrate, make_batch
from palaestra_baselines.common.lm.tiny_model import TinyModel

pytestmark = pytest.mark.check

LANES = 64
SEEDS = np.arange(LANES, dtype=np.uint64)


@pytest.fixture(scope="module")
def batch() -> tuple[Simulation, Any]:
    return make_batch(ARITH, LANES)


def text_of(row: np.ndarray) -> str:
    """Words as text, as far as they go."""
    return " ".join(words.TOKENS[word] for word in row.tolist() if word)


def value_of(question: str, has_sums: bool = False) -> int:
    """The answer of a chain, by Python."""
    first, *rest = question.split()
    value = int(first)
    for sign, number in zip(rest[::2], map(int, rest[1::2]), strict=True):
        value = value - number if sign == "-" else value + number if sign == "+" or has_sums else value * number
    return value % 10


def test_questions_fill_the_same_columns_whatever_their_length(batch: tuple[Simulation, MathTokens]):
    sim, tokens = batch
    rollout = demonstrate(sim, tokens, SEEDS)
    prompts = rollout.ids[:, : tokens.question_size]
    assert (prompts[:, 0] == BOS).all()
    assert (prompts != PAD).all()
    assert len({int((row == DOT).sum()) for row in prompts}) == 3  # chains of 2, 3 and 4
    observed: Any = sim.observations
    for row, seen in zip(prompts.numpy(), observed[:, 0, : tokens.words], strict=True):
        said = row[1:][row[1:] != DOT]
        assert (said - FIRST_WORD + 1).tolist() == seen[seen > 0].tolist()
    assert not (rollout.turn[:, : tokens.question_size] != UNSAID).any()


def test_turns_come_back_and_nothing_is_said_behind_a_mark(batch: tuple[Simulation, MathTokens]):
    sim, tokens = batch
    sim.reset(seed=SEEDS)
    solutions = sim.states["turn"].astype(np.int64)
    turns = tokens.turns_of(solutions)
    assert ((turns == END).sum(1) == 1).all()
    assert ((turns == ANSWER).sum(1) == 1).all()
    assert np.array_equal(tokens.actions(turns, np.zeros((LANES, 0))), solutions)
    turns[:, 3] = END
    assert np.array_equal(tokens.actions(turns, np.zeros((LANES, 0)))[:, :3], solutions[:, :3])
    assert not tokens.actions(turns, np.zeros((LANES, 0)))[:, 3:].any()
    assert tokens.is_complete([ANSWER, FIRST_WORD, END])
    assert not tokens.is_complete([ANSWER, FIRST_WORD])
    assert tokens.is_complete([FIRST_WORD] * tokens.turn_size)


@pytest.mark.check
@pytest.mark.parametrize("id", [ARITH, "palaestra/MathText-Algebra-v0"])
@pytest.mark.parametrize("split", ["train", "long"])
def test_worked_solutions_are_right(id: str, split: str):
    sim, tokens = make_batch(id, LANES, split=split)
    rollout = demonstrate(sim, tokens, SEEDS)
    assert rollout.exact_match.tolist() == [1.0] * LANES
    assert rollout.labels.tolist() == [[1]] * LANES
    assert rollout.turns.tolist() == [1] * LANES
    assert (rollout.ids[rollout.sampled] != PAD).all()


def test_solutions_in_steps_are_shown_step_by_step():
    sim, tokens = make_batch(ARITH, LANES, turns="steps")
    rollout = demonstrate(sim, tokens, SEEDS)
    assert rollout.exact_match.tolist() == [1.0] * LANES
    assert {*rollout.turns.tolist()} == {3, 4, 5}  # chains of 2, 3 and 4, and the answer
    assert (rollout.labels.sum(1) == rollout.turns).all()


def erring(batch: tuple[Simulation, MathTokens], share: float) -> Rollout:
    """Demonstrations of the base ``sums``, with this share of wrong ones."""
    demonstrations = Demonstrations(dataclasses.replace(RECIPES["sums"], noise=share, seed=1), *batch)
    return demonstrations.play(SEEDS, np.random.default_rng(0), torch.Generator())


def test_wrong_solutions_add_and_go_on_with_what_follows(batch: tuple[Simulation, MathTokens]):
    sim, _ = batch
    sim.reset(seed=SEEDS)
    right = sim.states["turn"].astype(np.int64)
    wrong = with_sums(right)
    assert (right == sim.states["turn"]).all()
    differs = 0
    for question, row, solution in zip(sim.states["question"], wrong, right, strict=True):
        asked = text_of(question)
        *steps, answer = text_of(row).split(" ; ")
        assert answer == f"answer {value_of(asked, has_sums=True)}"
        value = asked.split()[0]
        for step in steps:
            left, sign, number, _, result = step.split()
            assert left == value
            shift = -int(number) if sign == "-" else int(number)
            assert int(result) == (int(left) + shift) % 10
            value = result
        differs += (row != solution).any()
        assert (row != solution).any() == ("*" in asked and [*row] != [*solution])
    assert 0.3 < differs / LANES < 0.95
    rollout = erring(batch, 1.0)
    expected = [value_of(text_of(q), True) == value_of(text_of(q)) for q in sim.states["question"]]
    assert rollout.exact_match.bool().tolist() == expected
    half = erring(batch, 0.5)
    assert rollout.exact_match.mean() < half.exact_match.mean() < 1.0


def test_weights_of_other_tokens_are_refused(batch: tuple[Simulation, MathTokens]):
    with pytest.raises(ValueError, match=f"136 tokens, the game has {batch[1].vocabulary}"):
        check_fits(TinyModel(136, 112), batch[1])
    with pytest.raises(ValueError, match="the model reads 40"):
        check_fits(TinyModel(batch[1].vocabulary, 40), batch[1])


def test_the_player_of_a_file_writes_what_the_model_writes(batch: tuple[Simulation, MathTokens], tmp_path: Path):
    import palaestra_assets

    table = evaluate(ARITH, str(palaestra_assets.path("weights/lm_worked.safetensors")), matches=200)
    assert table.results["return_a"].mean() > 0.9
