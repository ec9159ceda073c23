"""Heads on ordered atoms: sums in 50 digits, atoms and actions, first distributions, temperatures, a task to learn."""

from __future__ import annotations

import math
import re
from decimal import Decimal, getcontext
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

import torch
from stable_baselines3 import A2C, PPO
from stable_baselines3.common.vec_env import DummyVecEnv

from palaestra_baselines.common.ordered_heads import (
    ANNEALED_TO,
    HEADS,
    LEAST_LAMBDA,
    TAU_BOUNDS,
    AtomActions,
    Atoms,
    AtomVecEnv,
    OrderedDistribution,
    OrderedHead,
    OrderedPolicy,
    centred_poisson,
    mean_and_std,
    poisson_logits,
)

pytestmark = pytest.mark.check

getcontext().prec = 50


def distribution(log_probs: torch.Tensor) -> OrderedDistribution:
    return OrderedDistribution([log_probs.shape[-1]] * log_probs.shape[-2]).proba_distribution(log_probs)


# -- sums --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("atoms", [2, 3, 7, 11, 15, 31])
def test_ordered_probabilities_sum_to_one_and_have_one_mode(atoms: int):
    rng = np.random.default_rng(atoms)
    count = 1667  # of each number of atoms: 10^4 in all
    rate = torch.from_numpy(np.exp(rng.uniform(math.log(1e-4), math.log(1e4), count)))
    tau = torch.from_numpy(np.exp(rng.uniform(math.log(TAU_BOUNDS[0]), math.log(TAU_BOUNDS[1]), count)))
    log_probs = torch.log_softmax(poisson_logits(rate, tau, atoms), -1)
    assert torch.isfinite(log_probs).all()
    np.testing.assert_allclose(log_probs.exp().sum(-1), 1.0, rtol=0.0, atol=1e-12)
    rises = np.sign(np.diff(log_probs.numpy(), axis=1))
    assert (np.diff(rises, axis=1) <= 0).all()  # up, then down
    assert (log_probs.argmax(-1) == torch.clamp(torch.ceil(rate) - 1, 0, atoms - 1)).all()


def in_50_digits(rate: float, tau: float, atoms: int) -> list[Decimal]:
    """Log-probabilities of one dimension."""
    factorial = [Decimal(math.factorial(k)).ln() for k in range(atoms)]
    logits = [(k * Decimal(rate).ln() - factorial[k]) / Decimal(tau) for k in range(atoms)]
    top = max(logits)
    total = sum(((z - top).exp() for z in logits), Decimal(0)).ln() + top
    return [z - total for z in logits]


CASES = [
    (rate, tau, atoms) for rate in (1e-4, 0.3, 5.1, 40.0, 1e4) for tau in (0.05, 0.7, 5.0) for atoms in (2, 7, 11, 31)
]


@pytest.mark.parametrize("atoms", [2, 7, 11, 31])
def test_ordered_sums_and_gradients_are_those_of_50_digits(atoms: int):
    cases = [(rate, tau) for rate, tau, count in CASES if count == atoms]
    log_rate = torch.tensor([math.log(rate) for rate, _ in cases], dtype=torch.float64, requires_grad=True)
    tau = torch.tensor([tau for _, tau in cases], dtype=torch.float64, requires_grad=True)
    table = torch.log_softmax(poisson_logits(log_rate.exp(), tau, atoms), -1)[:, None]  # one dimension
    other = torch.log_softmax(poisson_logits(1.3 * log_rate.detach().exp(), 0.9 * tau.detach(), atoms), -1)[:, None]
    here, there = distribution(table), distribution(other)
    entropy, divergence = here.entropy(), here.kl_divergence(there)
    slopes_of_entropy = torch.autograd.grad(entropy.sum(), log_rate, retain_graph=True)[0]
    for k in {0, atoms // 2, atoms - 1}:
        log_prob = here.log_prob(torch.full((len(cases), 1), float(k)))
        slopes, by_tau = torch.autograd.grad(log_prob.sum(), (log_rate, tau), retain_graph=True)
        for n, (rate, t) in enumerate(cases):
            exact = in_50_digits(math.exp(math.log(rate)), t, atoms)
            probs = [value.exp() for value in exact]
            mean = sum(j * p for j, p in enumerate(probs))
            close(log_prob[n], exact[k])
            close(slopes[n], (k - mean) / Decimal(t))
            expected = sum(p * value for p, value in zip(probs, exact, strict=True))
            close(by_tau[n], -(exact[k] - expected) / Decimal(t))
            close(entropy[n], -expected)
            slope = sum(p * (j - mean) * value for j, (p, value) in enumerate(zip(probs, exact, strict=True)))
            close(slopes_of_entropy[n], -slope / Decimal(t))
            twin = in_50_digits(1.3 * math.exp(math.log(rate)), 0.9 * t, atoms)
            close(divergence[n], sum(p * (a - b) for p, a, b in zip(probs, exact, twin, strict=True)))


def close(found: torch.Tensor, exact: Any) -> None:
    """Sums in float64; what PPO gets is float32, whose relative precision is 1.2e-7."""
    assert float(found.detach()) == pytest.approx(float(exact), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("head", HEADS)
def test_ordered_heads_add_up_dimensions_in_float64(head: str):
    torch.manual_seed(1)
    made = OrderedHead(5, 3, 7, head)
    features = torch.randn(9, 5)
    table = made(features)
    assert table.shape == (9, 3, 7)
    assert table.dtype == torch.float64
    outputs = (made.linear(features).double() + made.start).detach().numpy()
    tau = math.exp(made.log_tau.tolist()[0]) if made.is_poisson else 1.0
    atoms = torch.randint(7, (9, 3))
    wanted = np.zeros(9)
    for n in range(9):
        for d in range(3):
            if made.is_poisson:
                logits = poisson_by_definition(outputs[n, d], tau)[:: -1 if head == "poisson_mirrored" else 1]
            else:
                each = 6 if head == "ordinal" else 7
                own = outputs[n, d * each : (d + 1) * each]
                logits = ordinal_by_definition(own) if head == "ordinal" else own
            wanted[n] += logits[int(atoms[n, d])] - np.logaddexp.reduce(logits)
    np.testing.assert_allclose(distribution(table).log_prob(atoms).detach(), wanted, rtol=1e-6)


def poisson_by_definition(output: float, tau: float) -> np.ndarray:
    rate = math.log1p(math.exp(output)) + LEAST_LAMBDA
    return np.array([(k * math.log(rate) - math.lgamma(k + 1)) / tau for k in range(7)])


def ordinal_by_definition(outputs: np.ndarray) -> np.ndarray:
    """Tang and Agrawal's sums over sigmoids; the first sigmoid is part of all sums."""
    below = 1.0 / (1.0 + np.exp(-outputs))
    return np.array([np.log(below[:k]).sum() + np.log(1.0 - below[k:]).sum() for k in range(len(outputs) + 1)])


def test_ordered_samples_are_as_frequent_as_they_are_probable():
    torch.manual_seed(0)
    table = torch.log_softmax(poisson_logits(torch.tensor([2.0, 30.0, 1e-4], dtype=torch.float64), 1.0, 11), -1)
    drawn = distribution(table.expand(20_000, 3, 11)).sample()
    counts = np.stack([np.bincount(drawn[:, d], minlength=11) for d in range(3)])
    np.testing.assert_allclose(counts / 20_000, table.exp(), atol=0.015)
    assert drawn.dtype == torch.int64
    assert distribution(table[None]).mode().tolist() == [[1, 10, 0]]


# -- atoms and actions -------------------------------------------------------------------------------------------------

BOXES = [
    spaces.Box(-1.0, 1.0, (3,)),
    spaces.Box(np.array([-0.4, 0.0, 1e-3], np.float32), np.array([0.4, 250.0, 7.3], np.float32)),
    spaces.Box(-2.5, 0.1, (2, 2), np.float64),
]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("count", [2, 11, 31])
def test_ordered_atoms_become_actions_and_atoms_again_exactly(box: spaces.Box, count: int):
    atoms = Atoms(box, count)
    table = np.random.default_rng(0).integers(0, count, (500, box.low.size))
    table[0], table[1] = 0, count - 1
    actions = atoms.decode(table)
    assert actions.dtype == box.dtype
    assert actions.shape == (500, *box.shape)
    np.testing.assert_array_equal(actions[0], box.low)
    np.testing.assert_array_equal(actions[1], box.high)
    assert all(box.contains(action) for action in actions)
    np.testing.assert_array_equal(atoms.encode(actions), table)
    np.testing.assert_array_equal(atoms.encode(actions[7]), table[7])
    np.testing.assert_array_equal(atoms.decode(table.astype(np.float32)), actions)  # as a rollout stores them
    assert atoms.space.contains(table[5])


@pytest.mark.parametrize(
    ("space", "count", "message"),
    [
        (spaces.Box(-np.inf, 1.0, (2,)), 11, "atoms need finite bounds.*RescaleAction"),
        (spaces.Box(-1.0, 1.0, (2,)), 1, "at least 2 atoms, got 1"),
        (spaces.Box(-1.0, 1.0, (2,)), 2.5, "at least 2 atoms, got 2.5"),
        (spaces.Box(0.0, np.array([0.0, 1.0], np.float32)), 11, "a range in each"),
        (spaces.Box(0, 255, (2,), np.uint8), 11, "a Box of real numbers"),
        (spaces.Discrete(3), 11, "a Box of real numbers, got Discrete"),
        (spaces.Dict({"a": spaces.Box(-1.0, 1.0, (2,))}), 11, "a Box of real numbers, got Dict"),
    ],
)
def test_ordered_atoms_refuse_other_spaces(space: Any, count: Any, message: str):
    with pytest.raises(ValueError, match=message):
        Atoms(space, count)


class Aim(gymnasium.Env[Any, Any]):
    """One decision: its reward is highest at a point within the range of actions."""

    TARGET = np.array([4.0, -0.5], np.float32)

    def __init__(self) -> None:
        self.observation_space = spaces.Box(-1.0, 1.0, (1,))
        self.action_space = spaces.Box(np.array([0.0, -1.0], np.float32), np.array([10.0, 1.0], np.float32))
        self.taken: list[np.ndarray] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return np.ones(1, np.float32), {}

    def step(self, action: Any) -> Any:
        self.taken.append(action)
        return np.ones(1, np.float32), -float(np.sum(((action - self.TARGET) / [5.0, 1.0]) ** 2)), True, False, {}


def test_ordered_actions_reach_the_environment_as_they_were_chosen():
    inner = Aim()
    env = AtomActions(inner, 11)
    env.reset()
    env.step(np.array([10, 0]))
    np.testing.assert_array_equal(inner.taken[-1], np.array([10.0, -1.0], np.float32))
    vec = AtomVecEnv(DummyVecEnv([Aim] * 3), 11)
    vec.reset()
    vec.step(np.array([[0, 0], [1, 5], [10, 10]]))
    taken = [env.taken[-1] for env in vec.unwrapped.envs]  # type: ignore[attr-defined]
    np.testing.assert_array_equal(taken, np.array([[0.0, -1.0], [1.0, 0.0], [10.0, 1.0]], np.float32))


# -- heads -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("atoms", [7, 11, 15, 31])
def test_ordered_heads_start_with_the_same_distribution(atoms: int):
    biases = [OrderedHead(4, 2, atoms, head) for head in HEADS]
    for head in biases:
        torch.nn.init.zeros_(head.linear.bias)
    tables = {head.head: head(torch.zeros(1, 4)).detach() for head in biases}
    mean, std = mean_and_std(tables["poisson"][0, 0].numpy())
    assert mean == pytest.approx(0.0, abs=1e-6)
    assert 0.4 <= std <= 0.6
    for head, table in tables.items():
        wanted = tables["poisson"].flip(-1) if head == "poisson_mirrored" else tables["poisson"]
        np.testing.assert_allclose(table, wanted, atol=1e-6)


@pytest.mark.parametrize("std", [0.4, 0.5])
def test_ordered_heads_start_as_wide_as_they_are_told(std: float):
    rate, tau = centred_poisson(11, std)
    log_probs = torch.log_softmax(poisson_logits(torch.tensor(rate, dtype=torch.float64), tau, 11), -1)
    assert mean_and_std(log_probs.numpy()) == (pytest.approx(0.0, abs=1e-9), pytest.approx(std))
    assert centred_poisson(11)[1] == 1.0
    assert centred_poisson(11, 0.9)[1] == pytest.approx(TAU_BOUNDS[1])


def test_ordered_heads_say_what_they_do_not_know():
    with pytest.raises(ValueError, match=r"head is one of poisson, .*, got 'gauss'"):
        OrderedHead(4, 2, 11, "gauss")
    with pytest.raises(ValueError, match="tau is one of learnt, fixed, annealed, got 'free'"):
        OrderedHead(4, 2, 11, tau="free")
    with pytest.raises(ValueError, match=r"start_std lies between 0 and 1 half range, got 1\.5"):
        OrderedHead(4, 2, 11, start_std=1.5)
    with pytest.raises(ValueError, match=re.escape("the same number of atoms, at least 2, got [3, 4]")):
        OrderedDistribution([3, 4])
    with pytest.raises(ValueError, match=r"OrderedPolicy chooses atoms, a MultiDiscrete, got Box.*AtomVecEnv"):
        PPO(OrderedPolicy, DummyVecEnv([Aim]), device="cpu")


def learn_to_aim(head: str, updates: int = 10, method: Any = PPO, **options: Any) -> Any:
    env = AtomVecEnv(DummyVecEnv([Aim] * 16), 11)
    more: dict[str, Any] = {"n_epochs": 5, "batch_size": 64} if method is PPO else {}
    kwargs = {"head": head, "net_arch": [16], **options}
    model = method(
        OrderedPolicy, env, n_steps=8, learning_rate=0.02, seed=0, device="cpu", policy_kwargs=kwargs, **more
    )
    return model.learn(updates * 128)


@pytest.mark.parametrize("head", HEADS)
def test_ordered_policies_learn_where_to_aim(head: str):
    model = learn_to_aim(head)
    atoms, _ = model.predict(np.ones((1, 1), np.float32), deterministic=True)
    played = model.env.atoms.decode(atoms)[0]
    assert abs(played[0] - Aim.TARGET[0]) <= 1.0  # an atom beside the best one at most
    assert abs(played[1] - Aim.TARGET[1]) <= 0.2
    policy = model.policy
    table = policy.action_net(policy.mlp_extractor.forward_actor(torch.ones(1, 1))).detach().numpy()[0]
    assert mean_and_std(table[0])[1] < 0.45  # from 0.5


def test_ordered_policies_serve_other_on_policy_methods():
    model = learn_to_aim("poisson", 2, A2C)
    assert model.num_timesteps >= 256


def test_temperature_of_ordered_heads_is_learnt_fixed_or_annealed():
    modes = {mode: learn_to_aim("poisson", 3, tau=mode).policy.action_net for mode in ("learnt", "fixed", "annealed")}
    first = math.log(centred_poisson(11, 0.5)[1])
    moved = (modes["learnt"].log_tau - first).abs()
    assert (moved > 1e-3).all()
    assert modes["fixed"].log_tau.tolist() == [0.0, 0.0]
    head = modes["annealed"]
    assert head.log_tau.tolist() == pytest.approx([first] * 2)
    head.anneal(0.5)
    assert head.log_tau.exp().tolist() == pytest.approx([math.exp(first) * ANNEALED_TO**0.5] * 2)
    head.anneal(2.0)
    assert head.log_tau.exp().tolist() == pytest.approx([math.exp(first) * ANNEALED_TO] * 2)
    modes["learnt"].anneal(1.0)
    assert (modes["learnt"].log_tau - first).abs().tolist() == moved.tolist()


@pytest.mark.parametrize(("sign", "bound"), [(1.0, TAU_BOUNDS[0]), (-1.0, TAU_BOUNDS[1])])
def test_temperature_of_ordered_heads_stays_within_its_bounds(sign: float, bound: float):
    model = learn_to_aim("poisson", 0)
    head, optimizer = model.policy.action_net, model.policy.optimizer
    optimizer.param_groups[0]["lr"] = 10.0
    head.log_tau.grad = torch.full((2,), sign)
    optimizer.step()
    assert head.log_tau.exp().tolist() == pytest.approx([bound] * 2)


def test_ordered_policies_are_saved_and_loaded_by_stable_baselines(tmp_path: Path):
    model = learn_to_aim("ordinal", 1)
    model.save(tmp_path / "model.zip")
    model.policy.save(tmp_path / "policy.pt")
    shown = np.ones((1, 1), np.float32)
    again: Any = PPO.load(tmp_path / "model.zip", device="cpu").policy
    alone: Any = OrderedPolicy.load(str(tmp_path / "policy.pt"))
    for policy in (again, alone):
        assert policy.action_net.head == "ordinal"
        wanted = model.policy.get_distribution(torch.from_numpy(shown)).log_probs
        torch.testing.assert_close(policy.get_distribution(torch.from_numpy(shown)).log_probs, wanted)
