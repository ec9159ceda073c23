"""Tokens of SearchQA-Reading: what is read and left out, turns, and a base that learns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from palaestra.core.contract.turn_tokens import BOS, END, INFO, INFO_END
from palaestra.games.search.language import ARTICLES
from palaestra.games.search.name_tokens import ANSWER, SEARCH
from palaestra.games.search.reading_language import FUNCTION_WORDS
from palaestra.games.search.reading_questions import QUESTION
from palaestra.games.search.reading_tokens import KEPT, ReadingTokens
from palaestra.games.search.reading_world import TOKENS
from palaestra_baselines.common.lm import base as bases
from palaestra_baselines.common.lm.base import Recipe, train_base
from palaestra_baselines.common.lm.rollouts import Rollout, demonstrate, make_batch, rows_of

pytestmark = pytest.mark.check

ID = "palaestra/SearchQA-Reading-v0"
LANES = 32


@pytest.fixture(scope="module")
def played() -> tuple[ReadingTokens, Rollout, list[str]]:
    """Matches of the script that answers right, and the words of tokens."""
    sim, tokens = make_batch(ID, LANES)
    rollout = demonstrate(sim, tokens, np.arange(LANES, dtype=np.uint64))
    return tokens, rollout, [sim.game.captions.words[word] for word in tokens.word_of]


def test_right_turns_are_right_after_their_way_through_tokens(played: tuple[ReadingTokens, Rollout, list[str]]):
    rollout = played[1]
    assert (rollout.exact_match == 1.0).all()
    assert (rollout.turns == 3).all()
    for number, verb in enumerate((SEARCH, SEARCH, ANSWER)):
        said = [ids[turn == number].tolist() for ids, turn in zip(rollout.ids, rollout.turn, strict=True)]
        assert {turn[0] for turn in said} == {verb}
        assert {turn[-1] for turn in said} == {END}


def test_words_that_say_nothing_are_left_out_of_passages_and_others_stay_in_order():
    sim, tokens = make_batch(ID, LANES)
    sim.reset(seed=np.arange(LANES, dtype=np.uint64))
    memory = tokens.new_memory(LANES)
    question = tokens.questions(rows_of(sim), memory)
    assert (question[:, 0] == BOS).all()
    sim.step(tokens.actions(tokens.demonstration(sim.states, 0), memory)[:, None])
    found, words = tokens.passages(rows_of(sim), memory), sim.game.captions.words
    assert (found[:, 0] == INFO).all()
    assert (found[:, -1] == INFO_END).all()
    shown = rows_of(sim)[:, QUESTION : QUESTION + TOKENS].astype(int)  # the first passage
    for lane in range(LANES):
        passage = [words[word] for word in shown[lane] if word]
        read = [words[tokens.word_of[token]] for token in found[lane, 1 : 1 + KEPT] if token]
        left = iter(passage)
        assert all(word in left for word in read)  # in this order
        assert 30 < len(read) <= KEPT
        assert not {*ARTICLES, *FUNCTION_WORDS} & set(read)


def test_games_that_are_too_large_are_refused():
    for keywords in ({"world": "fixed", "passages": 720}, {"topk": 5}):
        with pytest.raises(ValueError, match="reads fresh worlds and 3 passages"):
            make_batch(ID, 1, **keywords)


def test_a_base_learns_from_right_matches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bases, "QUESTIONS", 2)
    recipe = Recipe(ID, told=0.0, steps=2, lanes=2)
    model, _ = train_base(recipe)
    other, _ = train_base(dataclasses.replace(recipe, steps=1))
    assert any((a != b).any() for a, b in zip(model.parameters(), other.parameters(), strict=True))
