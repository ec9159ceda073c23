"""pi-Play: what the teacher reads, which way it pulls, its moving average and lambda, and resuming."""

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
from baselines.short_runs import assert_same_policy, resumed_after

from palaestra_baselines import grpo, pi_play
from palaestra_baselines.common.lm.losses import loss_mask, reverse_kl
from palaestra_baselines.common.lm.privileged import FORMS, prefixes, told_text
from palaestra_baselines.common.lm.rollouts import Rollout, play
from palaestra_baselines.common.policy_file import read_policy

pytestmark = pytest.mark.check

SMALL: dict[str, Any] = {
    "env_id": "palaestra/SearchQA-3Hop-v1",
    "base": "noisy",
    "total_steps": 60,
    "evaluations": 1,
    "groups": 2,
    "group": 4,
    "questions": 4,
    "quiet": True,
}


@pytest.fixture
def run() -> pi_play.Run:
    return pi_play.Run(pi_play.Args(**SMALL))


@pytest.fixture
def rollout(run: pi_play.Run) -> Rollout:
    return play(run.model, run.sim, run.tokens, np.repeat(np.arange(2, dtype=np.uint64), 4), run.generator)


def distance(run: pi_play.Run, rollout: Rollout, teacher: torch.Tensor) -> float:
    mask = loss_mask(rollout)
    with torch.no_grad():
        return float(reverse_kl(run.model.log_probs(rollout.ids, mask), teacher))


def test_the_distance_is_the_sum_over_the_whole_vocabulary():
    generator = torch.Generator().manual_seed(0)
    p, q = (torch.randn((3, 7), generator=generator, dtype=torch.float64).log_softmax(-1) for _ in range(2))
    naive = [sum(float(p[m, v].exp() * (p[m, v] - q[m, v])) for v in range(7)) for m in range(3)]
    assert float(reverse_kl(p, q)) == pytest.approx(np.mean(naive))
    assert float(reverse_kl(p, p)) == 0.0
    assert float(reverse_kl(q, p)) != pytest.approx(np.mean(naive))


def test_the_teacher_reads_the_prefix_and_then_what_the_student_wrote(run: pi_play.Run, rollout: Rollout):
    found = run.teacher_log_probs(rollout)
    prefix = prefixes(run.sim, run.tokens, np.full(8, FORMS.index("path")))
    row = 0
    for lane in range(8):  # each match alone, without paddings
        kept = rollout.ids[lane] != 0
        ids = torch.cat([prefix[lane], rollout.ids[lane][kept]])[None]
        at = torch.cat([torch.zeros(len(prefix[lane]), dtype=torch.bool), loss_mask(rollout)[lane][kept]])[None]
        with torch.no_grad():
            alone = run.teacher.log_probs(ids, at)
        torch.testing.assert_close(found[row : row + len(alone)], alone, atol=2e-5, rtol=0.0)
        row += len(alone)
    assert row == len(found)
    run.forms[:] = FORMS.index("none")
    mask = loss_mask(rollout)
    with torch.no_grad():
        torch.testing.assert_close(run.teacher_log_probs(rollout), run.model.log_probs(rollout.ids, mask))


def test_the_student_comes_nearer_to_its_teacher_where_answers_teach_nothing(run: pi_play.Run, rollout: Rollout):
    teacher = run.teacher_log_probs(rollout)
    before = distance(run, rollout, teacher)
    for _ in range(3):
        run.learn(rollout, torch.zeros(8))
    assert distance(run, rollout, teacher) < 0.8 * before


def test_lambda_falls_to_zero_and_zero_is_grpo(run: pi_play.Run, rollout: Rollout, monkeypatch: pytest.MonkeyPatch):
    weights = list[float]()
    kept = grpo.update

    def update(*given: Any) -> None:
        weights.append(given[6].weight if given[6] is not None else 0.0)
        kept(*given)

    monkeypatch.setattr(grpo, "update", update)
    for steps in (0, 15, 45, 60, 90):
        run.steps = steps
        run.learn(rollout, torch.zeros(8))
    assert weights == pytest.approx([1.0, 0.75, 0.25, 0.0, 0.0])
    monkeypatch.undo()
    advantages = torch.tensor([1.0, -1.0] * 4)
    plain, zero = grpo.Run(grpo.Args(**SMALL)), pi_play.Run(pi_play.Args(**SMALL, teacher_weight=0.0))
    for learner in (plain, zero):
        learner.learn(rollout, advantages)
    assert all(torch.equal(a, b) for a, b in zip(plain.model.parameters(), zero.model.parameters(), strict=True))


def test_the_teacher_is_a_moving_average_of_the_student(run: pi_play.Run, rollout: Rollout):
    start = copy.deepcopy(run.teacher)
    run.learn(rollout, torch.tensor([1.0, -1.0] * 4))
    for old, new, student in zip(start.parameters(), run.teacher.parameters(), run.model.parameters(), strict=True):
        torch.testing.assert_close(new, 0.95 * old + 0.05 * student)
        assert not new.requires_grad
    assert any((a != b).any() for a, b in zip(start.parameters(), run.teacher.parameters(), strict=True))


@pytest.mark.check
def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path: Path):
    settings = {**SMALL, "groups": 1, "total_steps": 45, "evaluations": 3, "questions": 1}
    whole = pi_play.train(pi_play.Args(**settings, directory=tmp_path / "whole"))
    args = pi_play.Args(**settings, directory=tmp_path / "halves")
    assert_same_policy(whole, resumed_after(2, "learn", pi_play, args))
    assert read_policy(whole.weights)[1]["method"] == "pi_play"


def test_a_model_that_reads_text_is_told_in_words():
    path, answers = [["Velka Arnev", "mayor", "Odo Ruk"], ["Odo Ruk", "birthplace", "Tarn"]], ["Tarn", "the Tarn"]
    told = {form: told_text(form, path, answers) for form in FORMS}
    assert told == {
        "none": "",
        "path": "Facts: Velka Arnev - mayor - Odo Ruk; Odo Ruk - birthplace - Tarn\n",
        "partial": "Facts: Velka Arnev - mayor - Odo Ruk\n",
        "answer": "Answer: Tarn\n",
        "dot": "Facts: .\n",
    }
    assert told_text("partial", path[:1], answers) == told["dot"]
