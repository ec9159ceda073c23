"""A game of orders in words: its text codec is all that a language model needs to learn and to play it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.lm import chat_model
from baselines.lm.chat_model import Letters

from palaestra import registry
from palaestra.evaluation import evaluate
from palaestra_baselines import grpo
from palaestra_baselines.common.lm.hf_model import HFModel, TextTokens, padded
from palaestra_baselines.common.lm.rollouts import play_at_own_pace, play_turns

pytestmark = pytest.mark.check

DUEL = "palaestra/ConcertDuel-v0"
YEARS: dict[str, Any] = {"last_year": 1}
WORDS = Letters("m", None)


def lanes_of_text(lanes: int) -> tuple[Any, TextTokens]:
    sim = registry.make_batch(DUEL, lanes, autoreset_mode="off", opponents={"red": "random"}, form="text", **YEARS)
    return sim, TextTokens(sim, "m", 40)


def test_grpo_plays_a_duel_of_orders_as_text_for_ten_iterations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch)
    monkeypatch.setattr(grpo, "reward_function", lambda name: lambda rollout, info: torch.arange(2.0))
    args = grpo.Args(
        env_id=DUEL,
        options=("last_year=1",),
        opponent="random",
        model="m",
        turn_tokens=6,
        learning_rate=0.1,
        groups=1,
        group=2,
        questions=2,
        total_steps=40,
        evaluations=1,
        directory=tmp_path,
        quiet=True,
    )
    runs, weights = list[grpo.Run](), list(HFModel("m").parameters())
    kept = grpo.Run.report
    monkeypatch.setattr(grpo.Run, "report", lambda run: (runs.append(run), kept(run))[1])
    report = grpo.train(args)
    assert report.log[-1]["iterations"] >= 10
    assert 0.0 <= report.log[-1]["greedy"] <= 1.0
    for weight, before in zip(runs[0].model.parameters(), weights, strict=True):
        assert (weight != before).any()
    report.weights.mkdir()  # which the pretended model does not write
    table = evaluate(DUEL, tmp_path / "seed_0" / "last.safetensors", "random", matches=4, form="text", **YEARS)
    assert table.matches == 4


def test_a_match_that_is_won_counts_as_exact(monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch)
    sim, tokens = lanes_of_text(16)
    model, seeds = HFModel("m", tokens.size), np.arange(16, dtype=np.uint64)
    rollout = play_at_own_pace(model, sim, tokens, seeds, torch.Generator().manual_seed(0))
    assert rollout.exact_match.tolist() == (sim.info["winner"] == 0).astype(float).tolist()
    assert not rollout.labels.any()
    assert ((rollout.returns > 0) == (sim.info["winner"] == 0)).all()


def test_orders_are_read_in_the_position_of_their_lane(monkeypatch: pytest.MonkeyPatch):
    chat_model.pretend(monkeypatch, chat_template=None)
    sim, tokens = lanes_of_text(8)
    sim.reset(seed=np.arange(8, dtype=np.uint64))
    memory = tokens.new_memory(8)
    codec: Any = tokens.io.codec
    for decision in range(2):  # in the second one positions differ
        views = [tokens.io.agent_view(lane) for lane in range(8)]
        texts = [min(codec.order_texts(view)[0][1 + lane :][:1], default="") for lane, view in enumerate(views)]
        turns = padded([WORDS(text, add_special_tokens=False)["input_ids"] for text in texts])
        actions = tokens.actions(turns, memory)
        assert actions.tolist() == [codec.decode(view, text).tolist() for view, text in zip(views, texts, strict=True)]
        assert len({*map(tuple, actions.tolist())}) > 3, decision
        play_turns(sim, actions, np.ones(8, bool))
    assert not sim.info["illegal"].any()
