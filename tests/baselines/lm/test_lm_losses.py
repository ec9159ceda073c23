"""Losses of language models: each against a version in float64 with loops, and its masks."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

import torch

from palaestra.core.contract.turn_tokens import END, INFO, INFO_END, PAD
from palaestra.games.search.name_tokens import FIRST_RELATION, SEARCH
from palaestra_baselines.common.lm.losses import (
    Level,
    chosen,
    entropy,
    group_advantages,
    kl_to_reference,
    loss_mask,
    policy_loss,
    ratios,
    supervised_loss,
)
from palaestra_baselines.common.lm.rollouts import UNSAID, Rollout

B, T, V = 4, 7, 5
rng = np.random.default_rng(0)
MASK = torch.from_numpy(rng.random((B, T)) < 0.6)
TURN = torch.from_numpy(np.sort(rng.integers(0, 3, (B, T)), 1))
NEW, OLD, REFERENCE = (torch.from_numpy(rng.normal(-1.5, 0.4, (B, T))) for _ in range(3))
ADVANTAGES = torch.from_numpy(rng.normal(size=(B, 1)))
CLIP = 0.2
LEVELS: tuple[Level, ...] = ("token", "turn", "sequence")


def counted() -> list[tuple[int, int]]:
    """Places of the tokens that count."""
    return [(b, t) for b in range(B) for t in range(T) if MASK[b, t]]


def naive_ratio(b: int, t: int, level: Level) -> float:
    same = [
        s
        for s in range(T)
        if MASK[b, s] and (level == "sequence" or (level == "turn" and TURN[b, s] == TURN[b, t]) or s == t)
    ]
    return math.exp(sum(float(NEW[b, s] - OLD[b, s]) for s in same) / len(same))


@pytest.mark.parametrize("level", LEVELS)
def test_the_clipped_loss_is_that_of_loops(level: Level):
    terms = []
    for b, t in counted():
        ratio, advantage = naive_ratio(b, t, level), float(ADVANTAGES[b, 0])
        terms.append(min(ratio * advantage, min(max(ratio, 1.0 - CLIP), 1.0 + CLIP) * advantage))
    found = policy_loss(ratios(NEW, OLD, MASK, TURN, level), ADVANTAGES, MASK, CLIP)
    assert found.item() == pytest.approx(-sum(terms) / len(terms), abs=1e-12)


def test_the_three_levels_differ_and_agree_where_each_turn_has_one_token():
    losses = {
        level: policy_loss(ratios(NEW, OLD, MASK, TURN, level), ADVANTAGES, MASK, CLIP).item() for level in LEVELS
    }
    assert len(set(losses.values())) == 3
    alone = torch.arange(T).expand(B, T)
    torch.testing.assert_close(ratios(NEW, OLD, MASK, alone, "turn")[MASK], ratios(NEW, OLD, MASK, alone)[MASK])


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "moves"),
    [(1.1, 2.0, -2.2, True), (1.5, 2.0, -2.4, False), (0.5, 2.0, -1.0, True),
     (0.9, -2.0, 1.8, True), (0.5, -2.0, 1.6, False), (1.5, -2.0, 3.0, True)],
)  # fmt: skip
def test_the_clip_takes_the_gradient_only_where_moving_on_would_pay(
    ratio: float, advantage: float, loss: float, moves: bool
):
    new, one = torch.tensor([[math.log(ratio)]], requires_grad=True), torch.ones(1, 1, dtype=torch.bool)
    found = policy_loss(
        ratios(new, torch.zeros(1, 1), one, torch.zeros(1, 1).long()), torch.tensor([[advantage]]), one, 0.2
    )
    assert found.item() == pytest.approx(loss)
    found.backward()
    assert new.grad is not None
    assert new.grad.item() == pytest.approx(-ratio * advantage if moves else 0.0)


def test_the_advantage_compares_a_match_with_its_own_group():
    rewards = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    wanted = []
    for start in range(0, len(rewards), 4):
        group = np.array(rewards[start : start + 4])
        wanted += ((group - group.mean()) / (group.std(ddof=1) + 1e-4)).tolist()
    found = group_advantages(torch.tensor(rewards), 4)
    assert found.tolist() == pytest.approx(wanted, abs=1e-5)
    assert found[0] > 0.0 > found[1]
    assert found[4:12].tolist() == [0.0] * 8
    assert group_advantages(torch.tensor([1.0, 0.0]), 1).tolist() == [0.0, 0.0]


def test_kl_entropy_and_supervised_loss_are_those_of_loops():
    d = [float(REFERENCE[b, t] - NEW[b, t]) for b, t in counted()]
    assert kl_to_reference(NEW, REFERENCE, MASK).item() == pytest.approx(np.mean(np.exp(d) - d - np.ones(len(d))))
    assert supervised_loss(NEW, MASK).item() == pytest.approx(-np.mean([float(NEW[b, t]) for b, t in counted()]))
    logs = torch.from_numpy(rng.normal(size=(6, V))).log_softmax(-1)
    naive = [-sum(math.exp(x) * x for x in row) for row in logs.tolist()]
    assert entropy(logs).item() == pytest.approx(np.mean(naive))
    assert entropy(torch.zeros(0, V)).item() == supervised_loss(NEW, torch.zeros_like(MASK)).item() == 0.0


def test_kl_pulls_to_the_reference_and_sft_makes_tokens_likelier():
    new = NEW.clone().requires_grad_()
    kl_to_reference(new, REFERENCE, MASK).backward()
    assert new.grad is not None
    assert (torch.sign(new.grad) == torch.sign(NEW - REFERENCE))[MASK].all()
    fresh = NEW.clone().requires_grad_()
    supervised_loss(fresh, MASK).backward()
    assert fresh.grad is not None
    assert (fresh.grad[MASK] < 0.0).all()
    assert (fresh.grad[~MASK] == 0.0).all()


def test_the_distributions_of_counted_tokens_return_to_their_places():
    ids = torch.from_numpy(rng.integers(0, V, (B, T)))
    logs = torch.from_numpy(rng.normal(size=(len(counted()), V)))
    found = chosen(logs, ids, MASK)
    for row, (b, t) in zip(logs, counted(), strict=True):
        assert found[b, t] == row[ids[b, t]]
    assert (found[~MASK] == 0.0).all()


def test_the_mask_leaves_out_what_was_read_and_paddings():
    name = FIRST_RELATION + 20
    ids = torch.tensor([[1, name, SEARCH, name, END, INFO, name, INFO_END, PAD]])
    turn = torch.tensor([[UNSAID, UNSAID, 0, 0, 0, UNSAID, UNSAID, UNSAID, UNSAID]])
    retrieved = torch.tensor([[False] * 5 + [True] * 3 + [False]])
    rollout = Rollout(
        ids, turn, retrieved, torch.zeros(1, 9), torch.zeros(1), torch.zeros(1), torch.ones(1), torch.zeros(1, 1)
    )

    def columns(mask: torch.Tensor) -> list[int]:
        return mask[0].nonzero()[:, 0].tolist()

    assert columns(loss_mask(rollout)) == [2, 3, 4]
    assert columns(loss_mask(rollout, retrieved=True)) == [2, 3, 4, 5, 6, 7]
