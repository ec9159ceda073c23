"""SRFT: the three parts of its loss against loops, which way each pushes, demonstrations, schedules, resuming."""

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
from baselines.short_runs import assert_same_policy, resumed_after

from palaestra_baselines import srft
from palaestra_baselines.common.lm.losses import chosen, loss_mask
from palaestra_baselines.common.lm.rollouts import Rollout, play
from palaestra_baselines.common.lm.tiny_model import PAD, TinyModel, base_file
from palaestra_baselines.common.policy_file import read_policy

pytestmark = pytest.mark.check

GROUPS, GROUP = 2, 4
SMALL: dict[str, Any] = {
    "total_steps": 24,
    "evaluations": 1,
    "groups": GROUPS,
    "group": GROUP,
    "questions": 4,
    "quiet": True,
}
SEEDS = np.repeat(np.arange(GROUPS, dtype=np.uint64), GROUP)


@pytest.fixture
def run() -> srft.Run:
    """A run whose last rollout was of `SEEDS`."""
    run = srft.Run(srft.Args(**SMALL))
    run.seeds = SEEDS
    return run


@pytest.fixture
def rollout(run: srft.Run) -> Rollout:
    """Answers at a high temperature, one of each group called right."""
    played = play(run.model, run.sim, run.tokens, SEEDS, torch.Generator().manual_seed(0), temperature=2.0)
    rewards = torch.zeros(GROUPS * GROUP)
    rewards[::GROUP] = 1.0
    return dataclasses.replace(played, exact_match=rewards)


# -- the loss ----------------------------------------------------------------------------------------------------------


def part(seed: int, matches: int, right: list[float]) -> srft.Part:
    """Matches of 6 tokens of 5, all from the third on sampled, by random distributions with gradients."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 5, (matches, 6), generator=generator)
    ids[0, 5] = PAD
    mask = (torch.arange(6) >= 2).expand_as(ids) & (ids != PAD)
    turn = mask.long() - 1
    logits = torch.randn((int(mask.sum()), 5), generator=generator, dtype=torch.float64).requires_grad_(True)
    zeros, ones = torch.zeros(ids.shape), torch.ones(matches)
    rollout = Rollout(ids, turn, turn > 5, zeros, torch.tensor(right), torch.tensor(right), ones, ones[:, None])
    made = srft.Part(rollout, mask, logits.log_softmax(-1))
    object.__setattr__(made, "logits", logits)
    return made


def naive_loss(answers: srft.Part, shown: srft.Part, sign: float, is_weighted: bool) -> tuple[float, list[float]]:
    """The loss written with loops, and the advantages of the demonstrations."""

    def logs_of(given: srft.Part) -> list[list[float]]:
        rows, found = iter(given.log_probs.tolist()), []
        for ids, mask in zip(given.rollout.ids.tolist(), given.mask.tolist(), strict=True):
            found.append([next(rows)[token] for token, counts in zip(ids, mask, strict=True) if counts])
        return found

    def entropy_of(given: srft.Part) -> float:
        return float(np.mean([-sum(math.exp(p) * p for p in row) for row in given.log_probs.tolist()]))

    w_sft = 0.5 * math.exp(sign * entropy_of(shown)) if is_weighted else 1.0
    w_rl = 0.1 * math.exp(entropy_of(answers)) if is_weighted else 1.0
    own, theirs = logs_of(answers), logs_of(shown)
    n, advantages = len(own) // len(theirs), list[float]()
    for g in range(len(theirs)):
        rewards = [2 * float(r) - 1 for r in answers.rollout.exact_match[g * n : (g + 1) * n]]
        rewards.append(2 * float(shown.rollout.exact_match[g]) - 1)
        advantages.append((rewards[-1] - float(np.mean(rewards))) / (float(np.std(rewards, ddof=1)) + 1e-4))
    tokens = sum(map(len, theirs))
    sft = -sum(map(sum, theirs)) / tokens
    off_policy = -sum(math.exp(p) * a for row, a in zip(theirs, advantages, strict=True) for p in row) / tokens
    right = answers.rollout.exact_match.tolist()
    answered = sum(-w_rl * p if r else p for row, r in zip(own, right, strict=True) for p in row)
    return w_sft * sft + off_policy + answered / sum(map(len, own)), advantages


@pytest.mark.parametrize(("sign", "weights"), [("-1", "on"), ("+1", "on"), ("-1", "off")])
def test_the_loss_is_that_of_loops(sign: Any, weights: Any):
    answers, shown = part(0, 6, [1, 0, 0, 0, 0, 0]), part(1, 2, [1, 1])
    args = srft.Args(sft_entropy_sign=sign, weights=weights)
    expected, advantages = naive_loss(answers, shown, float(sign), weights == "on")
    assert float(srft.srft_loss(answers, shown, args).detach()) == pytest.approx(expected, rel=1e-5)
    found = srft.demonstration_advantages(answers.rollout, shown.rollout)
    assert found.tolist() == pytest.approx(advantages, rel=1e-4)
    assert advantages[1] > advantages[0] > 0.0  # a right answer in the group makes a demonstration less of a surprise


def test_weights_are_constants_of_the_gradient():
    answers, shown = part(0, 6, [1, 0, 0, 0, 0, 0]), part(1, 2, [1, 1])
    srft.srft_loss(answers, shown, srft.Args()).backward()
    found = [made.logits.grad.clone() for made in (answers, shown)]  # type: ignore[attr-defined]
    w_sft, w_rl = (
        scale * math.exp(sign * float(srft.entropy(made.log_probs.detach())))
        for scale, sign, made in ((0.5, -1, shown), (0.1, 1, answers))
    )
    for step, made in ((0, answers), (1, shown)):
        logits = made.logits  # type: ignore[attr-defined]
        logs = logits.detach().clone().requires_grad_(True)
        said = chosen(logs.log_softmax(-1), made.rollout.ids, made.mask)
        count = made.mask.sum()
        if step == 0:
            right = made.rollout.exact_match[:, None]
            (((1 - right) - w_rl * right) * said * made.mask).sum().div(count).backward()
        else:
            advantages = srft.demonstration_advantages(answers.rollout, made.rollout)[:, None]
            (-(w_sft * said + said.exp() * advantages) * made.mask).sum().div(count).backward()
        assert logs.grad is not None
        torch.testing.assert_close(found[step], logs.grad, rtol=1e-5, atol=1e-8)


# -- learning ----------------------------------------------------------------------------------------------------------


def likelihoods(model: TinyModel, rollout: Rollout) -> torch.Tensor:
    """Mean logarithm of the probabilities of the tokens of each match, ``[N]``."""
    mask = loss_mask(rollout)
    with torch.no_grad():
        return chosen(model.log_probs(rollout.ids, mask), rollout.ids, mask).sum(1) / mask.sum(1)


def test_demonstrations_become_likelier_and_wrong_answers_less_likely(run: srft.Run, rollout: Rollout):
    shown, before = run.demonstrate(SEEDS[::GROUP]), copy.deepcopy(run.model)
    for _ in range(5):
        run.learn(rollout, torch.zeros(len(SEEDS)))
    assert (likelihoods(run.model, shown) - likelihoods(before, shown)).mean() > 0.0
    change = likelihoods(run.model, rollout) - likelihoods(before, rollout)
    wrong = rollout.exact_match == 0.0
    assert change[wrong].mean() < -0.5
    assert change[~wrong].mean() > change[wrong].mean()


def test_demonstrations_are_right_and_of_the_questions_of_the_groups(run: srft.Run, rollout: Rollout):
    shown = run.demonstrate(SEEDS[::GROUP])
    assert shown.exact_match.tolist() == [1.0] * GROUPS
    size = run.tokens.question_size
    assert torch.equal(shown.ids[:, :size], rollout.ids[::GROUP, :size])
    run.iterate()
    seen = list[np.ndarray]()
    run.demonstrate = lambda seeds: seen.append(seeds) or shown
    run.iterate()
    assert np.array_equal(seen[0], run.seeds[::GROUP])
    assert len(set(run.seeds.tolist())) == GROUPS


def test_search_has_demonstrations_too():
    run = srft.Run(srft.Args(**SMALL, env_id="palaestra/SearchQA-2Hop-v1", base="noisy"))
    assert run.demonstrate(SEEDS[::GROUP]).exact_match.tolist() == [1.0] * GROUPS


def test_sft_comes_before_grpo_with_as_many_demonstrations():
    run = srft.Run(srft.Args(**SMALL, schedule="sft_then_grpo"))
    shown = list[int]()
    kept = run.demonstrate
    run.demonstrate = lambda seeds: shown.append(len(seeds)) or kept(seeds)
    while run.steps < 24:
        run.iterate()
    single = srft.Run(srft.Args(**SMALL))
    while single.steps < 24:
        single.iterate()
    assert run.steps == single.steps
    assert shown == [GROUPS] * single.updates
    assert run.updates == 2 * single.updates


def test_sft_alone_plays_nothing_and_learns_demonstrations(monkeypatch: pytest.MonkeyPatch):
    run = srft.Run(srft.Args(**SMALL, schedule="sft"))
    monkeypatch.setattr(run, "player", None)
    shown = run.demonstrate(SEEDS[::GROUP])
    before = likelihoods(run.model, shown)
    for _ in range(3):
        run.iterate()
    assert run.steps == 24
    assert (likelihoods(run.model, shown) - before).mean() > 0.0


# -- runs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["single", "sft_then_grpo"])
def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path: Path, schedule: Any):
    settings = {**SMALL, "evaluations": 3, "questions": 1, "schedule": schedule}
    whole = srft.train(srft.Args(**settings, directory=tmp_path / "whole"))
    iterations = 2 if schedule == "single" else 5
    parts = srft.Args(**settings, directory=tmp_path / "parts")
    assert_same_policy(whole, resumed_after(iterations, "iterate", srft, parts))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"kl": 0.1}, "--kl and --entropy are GRPO's"),
        ({"schedule": "sft", "weights": "off"}, "leave them out with --schedule"),
        ({"schedule": "sft_then_grpo", "sft_entropy_sign": "+1"}, "leave them out with --schedule"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=words):
        srft.Args(**arguments).check()


def test_the_base_with_sums_errs_greedy_too_and_the_worked_one_hardly_does():
    sums, worked = (read_policy(base_file(name))[1] for name in ("sums", "worked"))
    assert sums["figures"]["greedy"] < 0.4
    assert worked["figures"]["sampled"] > 0.9
