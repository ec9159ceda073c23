"""An examiner's matches in groups, its rewards and advantages, its demonstrations, and how pi-Play trains it."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import resumed_after

from palaestra_baselines import pi_play
from palaestra_baselines.common.lm import examination as examiners
from palaestra_baselines.common.lm.base import load_base
from palaestra_baselines.common.lm.demonstrations import Demonstrator
from palaestra_baselines.common.lm.examination import (
    Examination,
    ExaminerBatch,
    demonstrate,
    examine,
    examiner_rewards,
    load_examiner,
    make_examination,
)
from palaestra_baselines.common.lm.losses import chosen, loss_mask
from palaestra_baselines.common.lm.name_tokens import ASK, BOS, END, FIRST_NAME, FIRST_RELATION, SEARCH
from palaestra_baselines.common.lm.privileged import facts_of
from palaestra_baselines.common.lm.rollouts import UNSAID

pytestmark = pytest.mark.check

QUESTIONS, STUDENTS = 6, 4
SEEDS = np.arange(QUESTIONS, dtype=np.uint64)
SMALL: dict[str, Any] = {
    "env_id": "palaestra/SearchQA-3Hop-v1",
    "base": "noisy",
    "questions_by": "examiner",
    "examiner_iterations": 1,
    "total_steps": 90,
    "evaluations": 1,
    "groups": 2,
    "group": 4,
    "questions": 1,
    "quiet": True,
}


@pytest.fixture(scope="module")
def batch() -> ExaminerBatch:
    return make_examination(QUESTIONS * STUDENTS)


@pytest.fixture(scope="module")
def played(batch: ExaminerBatch) -> Examination:
    return examine(load_examiner(), load_base("noisy"), batch, SEEDS, torch.Generator().manual_seed(0))


def test_the_students_of_a_group_get_the_question_of_their_examiner(batch: Any, played: Examination):
    assert played.students is not None
    assert played.hops.shape == played.right.shape == (QUESTIONS,)
    assert played.lanes.view(QUESTIONS, STUDENTS).float().std(1).max() == 0.0
    accepted = played.examiner.exact_match == 1.0
    assert torch.equal(played.lanes.view(QUESTIONS, STUDENTS)[:, 0], accepted)
    assert accepted.any()
    rows = iter(played.students.ids.view(-1, STUDENTS, played.students.ids.shape[1]))
    for asked, turn, hops, was in zip(played.examiner.ids, played.examiner.turn, played.hops, accepted, strict=True):
        if not was:
            continue
        question = asked[turn == turn.max()].tolist()
        assert question[0] == ASK
        assert question[-1] == END
        for row in next(rows):
            assert row[: hops + 2].tolist() == [BOS, *question[1:-1]]


def test_right_answers_are_counted_by_question(played: Examination):
    assert played.students is not None
    right = torch.zeros(QUESTIONS, STUDENTS)
    right[played.examiner.exact_match == 1.0] = played.students.exact_match.view(-1, STUDENTS)
    assert torch.equal(right.sum(1).long(), played.right)


def test_demonstrated_questions_are_accepted_and_answered():
    batch = make_examination(32, {"examiner": "oracle", "student": "closed_book"})
    rollout = demonstrate(batch, np.arange(32, dtype=np.uint64))
    assert rollout.exact_match.tolist() == [1.0] * 32
    for ids, turn, turns in zip(rollout.ids, rollout.turn, rollout.turns, strict=True):
        assert [ids[turn == k][0].item() for k in range(turns)] == [SEARCH] * (turns - 1) + [ASK]
    facts, hops = facts_of(batch.sim, batch.student)
    assert set(hops[:, 0].tolist()) <= {1, 2, 3}
    assert (facts[:, 0, 0] == rollout.ids[:, 1].numpy()).all()

    class Copy:
        """Says what was demonstrated."""

        def start(self, prompts: torch.Tensor, columns: int = 0) -> None:
            self.turn = 0
            self.left: Any = None

        def force(self, ids: torch.Tensor) -> None:
            if ids.shape[1] > 1:
                self.turn, self.left = self.turn + 1, None

        def sample(self, generator: torch.Generator, temperature: float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
            if self.left is None:
                width = max(int((row == self.turn).sum()) for row in rollout.turn)
                self.left = torch.zeros((32, width + 8), dtype=torch.int64)
                for lane, (ids, turn) in enumerate(zip(rollout.ids, rollout.turn, strict=True)):
                    self.left[lane, : int((turn == self.turn).sum())] = ids[turn == self.turn]
            ids, self.left = self.left[:, 0].clone(), self.left[:, 1:]
            return ids, torch.zeros(32)

    again = make_examination(32)
    found = examine(Copy(), Demonstrator(0), again, np.arange(32, dtype=np.uint64), torch.Generator())
    assert found.hops.tolist() == hops[:, 0].tolist()
    assert found.right.tolist() == [1] * 32


def test_rewards_are_those_of_the_paper():
    right, accepted = torch.tensor([0, 1, 2, 3, 4, 0]), torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
    rewards = examiner_rewards(right, accepted, 4, 0.5)
    np.testing.assert_allclose(rewards.numpy(), [0.5, 1.5, 0.5 + 2 / 3, 0.5 + 1 / 3, 0.5, 0.0], rtol=1e-6)


def test_the_relations_of_accepted_questions_are_counted(played: Examination):
    for ids, turn, hops, was in zip(
        played.examiner.ids, played.examiner.turn, played.hops, played.examiner.exact_match, strict=True
    ):
        relations = sum(FIRST_RELATION <= token < FIRST_NAME for token in ids[turn == turn.max()].tolist())
        assert hops == (relations if was else 0)


def test_questions_that_pay_become_likelier(played: Examination):
    run = pi_play.Run(pi_play.Args(**{**SMALL, "groups": QUESTIONS, "group": STUDENTS}))
    before = copy.deepcopy(run.examiner)
    run.examiner_optimizer = torch.optim.SGD(run.examiner.parameters(), lr=1e-2)
    run.args.learning_rate = 1e-2
    accepted = dataclasses.replace(played.examiner, exact_match=torch.ones(QUESTIONS))
    paid = dataclasses.replace(played, examiner=accepted, right=torch.tensor([1, STUDENTS] * (QUESTIONS // 2)))
    run.teach_examiner(paid)
    mask = loss_mask(played.examiner)
    with torch.no_grad():
        new, old = (
            chosen(m.log_probs(played.examiner.ids, mask), played.examiner.ids, mask) for m in (run.examiner, before)
        )
    gain = (new - old).sum(1)
    assert gain[::2].mean() > gain[1::2].mean() + 0.01


def test_the_examiner_learns_at_the_start_of_each_round_and_the_run_resumes(tmp_path: Path):
    settings = {**SMALL, "evaluations": 4}
    calls = list[int]()
    kept = pi_play.Run.teach_examiner
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pi_play.Run, "teach_examiner", lambda self, p: (calls.append(self.steps), kept(self, p)))
        whole = pi_play.train(pi_play.Args(**settings, directory=tmp_path / "whole"))
    assert len(calls) == 3
    assert calls[0] == 0
    assert calls[1] >= 30
    assert calls[2] >= 60
    resumed = resumed_after(3, "learn", pi_play, pi_play.Args(**settings, directory=tmp_path / "halves"))
    assert [row["hops"] for row in resumed.log] == [row["hops"] for row in whole.log]
    assert 0.0 < whole.log[-1]["accepted"] <= 1.0


def test_base_weights_learn_and_repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any):
    monkeypatch.setattr(examiners, "LANES", 4)
    first, second = (examiners.train_examiner(steps=3) for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    monkeypatch.setattr(examiners, "train_examiner", lambda **_: first)
    examiners.main(["--directory", str(tmp_path)])
    assert "lm_examiner.safetensors" in capsys.readouterr().out


def test_the_turns_of_an_examiner_are_marked(played: Examination):
    mask = loss_mask(played.examiner)
    assert (mask == (played.examiner.turn != UNSAID)).all()
    assert not (mask & played.examiner.retrieved).any()
