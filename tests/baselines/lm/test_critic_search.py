"""CriticSearch: advantages of turns, the critics, and which way their labels push."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch

import palaestra_assets
from palaestra.core.contract.turn_tokens import TOLD
from palaestra_baselines import critic_search, grpo
from palaestra_baselines.common.lm import critic as critics
from palaestra_baselines.common.lm.critic import accuracy, label_turns, load_critic, told_answers
from palaestra_baselines.common.lm.demonstrations import Demonstrator
from palaestra_baselines.common.lm.losses import chosen, loss_mask
from palaestra_baselines.common.lm.rollouts import make_batch, play
from palaestra_baselines.common.lm.tiny_model import load_base
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.critic_search import mixed_advantages, noise_of, turn_advantages

pytestmark = pytest.mark.check

THREE_HOPS = "palaestra/SearchQA-3Hop-v1"
SMALL: dict[str, Any] = {
    "env_id": THREE_HOPS,
    "base": "noisy",
    "total_steps": 60,
    "evaluations": 1,
    "groups": 2,
    "group": 4,
    "questions": 4,
    "quiet": True,
}


def test_labels_are_normalised_over_all_turns_of_their_group():
    labels = torch.tensor([[1, 1, 0], [1, -1, -1], [-1, -1, -1], [1, 0, 0]])
    found = turn_advantages(labels, 2)
    expected = list[list[float]]()
    for rows in (labels[:2], labels[2:]):
        played = [float(label) for row in rows for label in row if label != 0]
        mean, deviation = float(np.mean(played)), float(np.std(played, ddof=1))
        expected += [[(float(v) - mean) / (deviation + 1e-4) if v != 0 else 0.0 for v in row] for row in rows]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    assert turn_advantages(torch.ones(4, 3, dtype=torch.int64), 2).abs().max() == 0.0


def test_a_token_has_the_advantage_of_its_answer_and_of_its_turn():
    outcome, turns = torch.tensor([1.0, -1.0]), torch.tensor([[0.5, -0.5], [2.0, 0.0]])
    turn = torch.tensor([[-1, 0, 0, 1], [-1, 0, 1, 1]])
    mixed = mixed_advantages(outcome, turns, turn, 0.25)
    expected = [[1.0, 0.875, 0.875, 0.625], [-1.0, -0.25, -0.75, -0.75]]
    np.testing.assert_allclose(mixed.numpy(), expected)
    assert torch.equal(mixed_advantages(outcome, turns, turn, 0.0), outcome[:, None].expand(2, 4))


def test_turns_of_use_become_likelier_where_all_answers_are_alike():
    run = critic_search.Run(critic_search.Args(**{**SMALL, "critic": "exact", "turn_weight": 1.0}))
    before = copy.deepcopy(run.model)
    run.optimizer = torch.optim.SGD(run.model.parameters(), lr=1e-2)
    run.args.learning_rate, run.args.passes = 3e-2, 1
    seeds = np.repeat(np.arange(2, dtype=np.uint64), 4)
    rollout = play(run.model, run.sim, run.tokens, seeds, run.generator)
    run.learn(rollout, torch.zeros(8))
    mask = loss_mask(rollout)
    with torch.no_grad():
        new, old = (chosen(m.log_probs(rollout.ids, mask), rollout.ids, mask) for m in (run.model, before))
    labels = rollout.labels.gather(1, rollout.turn.clamp(min=0))
    gain = new - old
    assert gain[mask & (labels > 0)].mean() > gain[mask & (labels < 0)].mean() + 0.01
    assert run.losses["critic_accuracy"] == 1.0


def test_a_noisy_critic_errs_as_often_as_it_says():
    run = critic_search.Run(critic_search.Args(**{**SMALL, "critic": "noisy:0.2", "groups": 16}))
    seeds = np.repeat(np.arange(16, dtype=np.uint64), 4)
    rollout = play(Demonstrator(0, noise=0.5), run.sim, run.tokens, seeds, run.generator)
    labels = np.mean([accuracy(run.labels(rollout), rollout.labels) for _ in range(20)])
    assert labels == pytest.approx(0.8, abs=0.03)
    assert (run.labels(rollout) == 0).equal(rollout.labels == 0)


@pytest.mark.check
def test_the_bundled_critic_labels_matches_that_it_has_not_seen():
    notes = read_policy(palaestra_assets.path(critics.FILE))[1]
    assert set(notes["figures"]) == {"shortcut", "early", "noisy"}
    sim, tokens = make_batch(THREE_HOPS, 128)
    seeds = np.arange(7 << 40, (7 << 40) + 128, dtype=np.uint64)
    rollout = play(load_base("noisy"), sim, tokens, seeds, torch.Generator().manual_seed(1))
    told = told_answers(sim, tokens)
    labels = label_turns(load_critic(), rollout, told)
    assert accuracy(labels, rollout.labels) == pytest.approx(notes["figures"]["noisy"], abs=0.08)
    assert (told[:, 0] == TOLD).all()
    assert (labels == 0).equal(rollout.labels == 0)
    other = label_turns(load_critic(), rollout, told.roll(1, 0))  # the right answers of other questions
    assert accuracy(other, rollout.labels) < accuracy(labels, rollout.labels)


def test_a_critic_learns_and_repeats(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any):
    monkeypatch.setattr(critics, "LANES", 4)
    first, figures = critics.train_critic(steps=6)
    second, _ = critics.train_critic(steps=6)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert set(figures) == {"shortcut", "early", "noisy"}
    monkeypatch.setattr(critics, "train_critic", lambda **_: (first, figures))
    critics.main(["--directory", str(tmp_path)])
    assert "lm_critic.safetensors: right labels" in capsys.readouterr().out


def test_a_run_writes_the_accuracy_of_its_critic(tmp_path: Path):
    report = critic_search.train(critic_search.Args(**SMALL, directory=tmp_path))
    assert 0.5 < report.log[-1]["critic_accuracy"] <= 1.0
    assert read_policy(report.weights)[1]["method"] == "critic_search"
    plain = grpo.train(grpo.Args(**SMALL, directory=tmp_path / "grpo"))
    pairs = zip(*(read_policy(r.weights)[0].values() for r in (report, plain)), strict=True)
    assert any((a != b).any() for a, b in pairs)


@pytest.mark.parametrize("critic", ["noisy", "noisy:", "noisy:2", "noisy:nan", "oracle", "0.2"])
def test_an_unknown_critic_is_refused_by_name(critic: str):
    with pytest.raises(ValueError, match="give model, exact, or noisy:P"):
        noise_of(critic)
