"""On-policy distillation: supports, losses against loops, what masks leave out, which way it learns, resuming."""

from __future__ import annotations

import copy
import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_policy

from palaestra.games.search.name_tokens import FIRST_RELATION
from palaestra_baselines import opd
from palaestra_baselines.common.lm.losses import loss_mask, reverse_kl
from palaestra_baselines.common.lm.rollouts import Rollout, play
from palaestra_baselines.common.lm.tiny_model import Nucleus, TinyModel, base_file
from palaestra_baselines.common.policy_file import read_policy, save_policy

pytestmark = pytest.mark.check

M, V, K = 5, 9, 3
SMALL: dict[str, Any] = {
    "total_steps": 60,
    "evaluations": 1,
    "groups": 2,
    "group": 4,
    "questions": 4,
    "top_p": 1.0,
    "mask_special": "no",
    "quiet": True,
}
NONE = torch.zeros(V, dtype=torch.bool)


@pytest.fixture
def logs() -> tuple[torch.Tensor, torch.Tensor]:
    """Distributions of a student and a teacher, float64 ``[M, V]``."""
    generator = torch.Generator().manual_seed(0)
    draws = 2.0 * torch.randn((2, M, V), generator=generator, dtype=torch.float64)
    return draws[0].log_softmax(-1), draws[1].log_softmax(-1)


@pytest.fixture
def run() -> opd.Run:
    return opd.Run(opd.Args(**SMALL))


@pytest.fixture
def rollout(run: opd.Run) -> Rollout:
    return play(run.model, run.sim, run.tokens, np.repeat(np.arange(2, dtype=np.uint64), 4), run.generator)


# -- losses ------------------------------------------------------------------------------------------------------------


def test_the_support_is_the_teachers_most_probable_tokens(logs: tuple[torch.Tensor, torch.Tensor]):
    teacher = logs[1]
    best = [set(row.argsort()[-K:].tolist()) for row in teacher.numpy()]
    assert [set(row.nonzero()[:, 0].tolist()) for row in opd.support_of(teacher, K, NONE)] == best
    barred = NONE.clone()
    barred[[min(best[0]), 2]] = True
    found = opd.support_of(teacher, K, barred)
    assert found.sum(1).tolist() == [K] * M
    assert not found[:, barred].any()
    least = teacher.argmin(1)
    appended = opd.support_of(teacher, K, NONE, least)
    assert appended.sum(1).tolist() == [K + 1] * M
    assert appended[torch.arange(M), least].all()
    assert opd.support_of(teacher, 10 * V, barred).sum(1).tolist() == [V - int(barred.sum())] * M


@pytest.mark.parametrize("renormalise", [True, False])
@pytest.mark.parametrize("clamp", [0.0, 0.7])
def test_the_loss_on_a_support_is_that_of_loops(
    logs: tuple[torch.Tensor, torch.Tensor], renormalise: bool, clamp: float
):
    student, teacher = logs
    support = opd.support_of(teacher, K, NONE)
    total = 0.0
    for m in range(M):
        inside = [v for v in range(V) if support[m, v]]
        p, t = ([math.exp(float(x[m, v])) for v in inside] for x in (student, teacher))
        if renormalise:
            p, t = ([value / sum(values) for value in values] for values in (p, t))
        ratios = [math.log(a / b) for a, b in zip(p, t, strict=True)]
        if clamp:
            ratios = [min(max(r, -clamp), clamp) for r in ratios]
        total += sum(a * r for a, r in zip(p, ratios, strict=True))
    assert float(opd.support_loss(student, teacher, support, renormalise, clamp)) == pytest.approx(total / M)


def test_renormalised_the_loss_does_not_see_what_lies_outside(logs: tuple[torch.Tensor, torch.Tensor]):
    support = opd.support_of(logs[1], K, NONE)
    for renormalise in (True, False):
        logits = logs[0].clone().requires_grad_(True)
        opd.support_loss(logits.log_softmax(-1), logs[1], support, renormalise).backward()
        assert logits.grad is not None
        outside = logits.grad[~support].abs().max()
        assert (outside < 1e-12) == renormalise
        assert logits.grad[support].abs().max() > 1e-3


def test_unnormalised_the_loss_falls_when_probability_leaves_the_support():
    teacher = torch.tensor([[0.90, 0.06, 0.02, 0.02]]).log()
    support = opd.support_of(teacher, 2, torch.zeros(4, dtype=torch.bool))
    drained = torch.tensor([[0.36, 0.02, 0.31, 0.31]]).log()
    assert opd.support_loss(drained, teacher, support, renormalise=False) < -0.3
    assert opd.support_loss(drained, teacher, support, renormalise=True) >= 0.0


def test_the_sampled_loss_is_a_policy_gradient_whose_advantage_is_the_difference_of_logarithms(
    run: opd.Run, rollout: Rollout
):
    mask, args = loss_mask(rollout), dataclasses.replace(run.args, clamp=0.5)
    with torch.no_grad():
        told = run.teacher.log_probs(rollout.ids, mask).gather(1, rollout.ids[mask][:, None])[:, 0]
    gradients = list[list[torch.Tensor]]()
    for clamp in (0.0, 0.5):
        for way in ("loss", "naive"):
            run.model.zero_grad()
            logs = run.model.log_probs(rollout.ids, mask)
            if way == "loss":
                args.clamp = clamp
                with torch.no_grad():
                    teacher = run.teacher.log_probs(rollout.ids, mask)
                opd.sampled_loss(logs, teacher, rollout, mask, args).backward()
            else:
                said = logs.gather(1, rollout.ids[mask][:, None])[:, 0]
                advantage = told - said.detach()
                advantage = advantage.clamp(-clamp, clamp) if clamp else advantage
                (-(advantage * said).mean()).backward()
            gradients.append([p.grad.clone() for p in run.model.parameters()])
    for a, b in zip(gradients[0::2], gradients[1::2], strict=True):
        for found, expected in zip(a, b, strict=True):
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


# -- learning ----------------------------------------------------------------------------------------------------------


def distance(run: opd.Run, rollout: Rollout) -> float:
    mask = loss_mask(rollout)
    with torch.no_grad():
        return float(reverse_kl(*(m.log_probs(rollout.ids, mask) for m in (run.model, run.teacher))))


@pytest.mark.parametrize("loss", ["sampled", "top_k", "full"])
def test_the_student_comes_nearer_to_its_teacher(loss: opd.Loss):
    run = opd.Run(opd.Args(**SMALL, loss=loss))
    rollout = play(run.model, run.sim, run.tokens, np.repeat(np.arange(2, dtype=np.uint64), 4), run.generator)
    before = distance(run, rollout)
    for _ in range(3):
        run.learn(rollout, torch.zeros(8))
    assert distance(run, rollout) < 0.9 * before
    assert 0.0 < run.losses["support_mass"] <= 1.0
    assert run.losses["gradient_norm"] > 0.0


def test_the_curve_has_the_mass_and_the_distance_before_the_update(run: opd.Run, rollout: Rollout):
    mask, before = loss_mask(rollout), distance(run, rollout)
    with torch.no_grad():
        student, teacher = (m.log_probs(rollout.ids, mask) for m in (run.model, run.teacher))
    mass = np.mean([float(p[q.argsort()[-16:]].exp().sum()) for p, q in zip(student, teacher, strict=True)])
    run.learn(rollout, torch.zeros(8))
    assert run.losses["support_mass"] == pytest.approx(mass, abs=1e-5)
    assert run.losses["kl"] == pytest.approx(before, rel=1e-4)


@pytest.mark.parametrize("loss", ["sampled", "top_k", "full"])
def test_special_tokens_are_neither_learnt_nor_compared_where_they_are_masked(
    loss: opd.Loss, rollout: Rollout, monkeypatch: pytest.MonkeyPatch
):
    run = opd.Run(opd.Args(**{**SMALL, "mask_special": "yes"}, loss=loss))
    seen = dict[str, Any]()

    def support_loss(student: torch.Tensor, teacher: torch.Tensor, support: torch.Tensor, *rest: Any) -> torch.Tensor:
        seen["rows"], seen["support"] = len(student), support
        return student.sum()

    def sampled_loss(student: torch.Tensor, teacher: torch.Tensor, given: Rollout, mask: torch.Tensor, args: Any):
        seen["rows"], seen["mask"] = len(student), mask
        return student.sum()

    monkeypatch.setattr(opd, "support_loss", support_loss)
    monkeypatch.setattr(opd, "sampled_loss", sampled_loss)
    run.learn(rollout, torch.zeros(8))
    names = loss_mask(rollout) & (rollout.ids >= FIRST_RELATION)
    assert seen["rows"] == int(names.sum()) < int(loss_mask(rollout).sum())
    if loss == "sampled":
        assert torch.equal(seen["mask"], names)
    else:
        assert not seen["support"][:, :FIRST_RELATION].any()
        assert seen["support"].sum(1).unique().tolist() == (
            [16] if loss == "top_k" else [run.tokens.vocabulary - FIRST_RELATION]
        )


def test_the_teacher_does_not_learn(run: opd.Run):
    before = copy.deepcopy(run.teacher.state_dict())
    run.iterate()
    assert all(torch.equal(before[name], weight) for name, weight in run.teacher.state_dict().items())


def test_nucleus_sampling_draws_among_the_most_probable_tokens():
    model, lanes = TinyModel(12, 8, seed=1), 4000
    with torch.no_grad():
        model.tokens.weight *= 0.2
    model.start(torch.full((lanes, 1), 3))
    probabilities = model.next_log_probs()[0].exp()
    order = probabilities.argsort(descending=True).tolist()
    needed = next(k for k in range(1, 12) if float(probabilities[order[:k]].sum()) >= 0.8)
    assert 1 < needed < 11
    speaker = Nucleus(model, 0.8)
    ids, logs = speaker.sample(torch.Generator().manual_seed(0))
    assert set(ids.tolist()) == set(order[:needed])
    torch.testing.assert_close(logs, probabilities[ids].log())
    share = float((ids == order[0]).float().mean())
    assert share == pytest.approx(float(probabilities[order[0]] / probabilities[order[:needed]].sum()), abs=0.03)
    assert set(Nucleus(model, 1e-6).sample(torch.Generator())[0].tolist()) == {order[0]}


# -- runs --------------------------------------------------------------------------------------------------------------


def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path: Path):
    settings = {**SMALL, "total_steps": 45, "evaluations": 3, "questions": 1, "top_p": 0.9}
    whole = opd.train(opd.Args(**settings, directory=tmp_path / "whole"))
    opd.train(opd.Args(**{**settings, "total_steps": 20}, directory=tmp_path / "parts"))
    resumed = opd.train(opd.Args(**settings, directory=tmp_path / "parts", resume=True))
    assert_same_policy(whole, resumed)
    assert {"support_mass", "kl", "gradient_norm"} <= set(whole.log[-1])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kl": 0.1}, "--kl means nothing here"),
        ({"level": "turn"}, "--level means nothing here"),
        ({"top_p": 1.5}, "--top-p"),
        ({"top_k": 0}, "--top-k"),
        ({"model": "somewhere"}, "--model needs --teacher"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=words):
        opd.Args(**arguments).check()


def test_a_teacher_with_other_tokens_is_refused(tmp_path: Path):
    path = tmp_path / "other.safetensors"
    save_policy(path, TinyModel(30, 112).arrays(), method="grpo", env_id="palaestra/MathText-LeftToRight-v0", args={})
    with pytest.raises(ValueError, match="a model with 30 tokens, the game has"):
        opd.Run(opd.Args(**SMALL, teacher=str(path)))


def test_the_bundled_teacher_is_right():
    figures = read_policy(base_file("teacher"))[1]["figures"]
    assert figures["greedy"] > 0.97
    assert 0.85 < figures["sampled"] < 0.99  # it is no table of answers
