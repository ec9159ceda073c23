"""piKL-Hedge over plans of joint orders that an anchor drew, all adjudicated; and what a policy can be exploited for.

Jacob et al., "Modeling Strong and Human-Like Gameplay with KL-Regularized Search" (arXiv 2112.07544). Each power draws
some plans from the anchor. In each round it plays them by, with Q the mean of its values so far,

    pi_t(k) ~ exp((Q(k) + lambda log tau(k)) / (lambda + 1 / (eta t)))

and the mean of all rounds is its policy. Plans are *drawn* from the anchor, so that each counts alike: log tau(k) is 0
among them, and w(k) ~ exp(Q(k) / lambda) of drawn plans stands for tau(k) exp(Q(k) / lambda) of all plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from palaestra.core.run.simulation import Simulation
from palaestra_baselines.common.joint_orders import Terrain, View, features_of, view_of

TRIALS = 16_384
"""Results that are asked for at once."""


class Value(Protocol):
    """What positions are worth to the power that sees them."""

    def values(self, features: np.ndarray) -> np.ndarray:
        """Expected rewards float ``[N]`` of features ``[N, F]``."""
        ...


@dataclass(frozen=True)
class Search:
    """Numbers of the search.

    Attributes:
        plans: K, that each power draws.
        anchor_weight: lambda, in rewards; large: the anchor, 0: the Hedge algorithm.
        rounds: Of Hedge.
        hedge_step: eta, by which Hedge follows the values.
    """

    plans: int = 16
    anchor_weight: float = 0.05
    rounds: int = 150
    hedge_step: float = 10.0


class Results:
    """Asks the rules for results: `palaestra.core.run.simulation.Simulation` without outputs.

    Attributes:
        terrain: Of the game.
        sim: Its lanes, with ``autoreset_mode="off"``.
        value: What positions are worth.
    """

    def __init__(self, terrain: Terrain, sim: Simulation, value: Value) -> None:
        """Keeps the lanes."""
        self.terrain, self.sim, self.value = terrain, sim, value

    def after(self, records: np.ndarray, plans: np.ndarray, powers: Sequence[int]) -> np.ndarray:
        """What some powers expect after one phase, float64 ``[M, len(powers)]``.

        Args:
            records: Match records ``[M]``.
            plans: Of all powers, int64 ``[M, Q, S]``.
            powers: Who expects; both where the game is zero-sum.
        """
        lanes = self.sim.num_envs
        values = np.zeros((len(records), len(powers)))
        for first in range(0, len(records), lanes):
            some = slice(first, min(first + lanes, len(records)))
            count = some.stop - some.start
            self.sim.load_states(np.resize(records[some], lanes), outputs=False)  # lanes left over play some again
            actions: Any = self.sim.actions
            actions[:count], actions[count:] = plans[some], plans[first]
            self.sim.step(outputs=False)
            values[some] = self._expected(count, powers)
        return values

    def _expected(self, count: int, powers: Sequence[int]) -> np.ndarray:
        states, terrain = self.sim.states[:count], self.terrain
        told = [self.value.values(features_of(terrain, states, power)) for power in powers]
        expected = np.stack(told, axis=1).astype(np.float64)
        if terrain.game.zero_sum:
            expected = (expected - expected[:, ::-1]) / 2.0
        rewards = self.sim.rewards[:count][:, list(powers)]
        return np.where(self.sim.terminated[:count, None], rewards, expected)


def payoffs(results: Results, records: np.ndarray, plans: Sequence[np.ndarray]) -> np.ndarray:
    """Values of all pairs of plans in a game of two powers, float64 ``[N, I, J, 2]``.

    Args:
        results: Asks the rules.
        records: Match records ``[N]``.
        plans: Of both powers, int64 ``[N, I, S]`` and ``[N, J, S]``.
    """
    (n, i, _), j = plans[0].shape, plans[1].shape[1]
    first = np.repeat(plans[0], j, axis=1).reshape(n * i * j, -1)
    second = np.tile(plans[1], (1, i, 1)).reshape(n * i * j, -1)
    return results.after(np.repeat(records, i * j), np.stack([first, second], axis=1), (0, 1)).reshape(n, i, j, 2)


def pikl_hedge(
    values: np.ndarray, search: Search, anchors: Sequence[np.ndarray] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Mean policies of two powers over their plans, float64 ``[N, I]`` and ``[N, J]``.

    Args:
        values: Of pairs of plans for both, ``[N, I, J, 2]``.
        search: Numbers of the search.
        anchors: Logarithms of the anchor's probabilities of the plans, ``[N, I]`` and ``[N, J]``; None where the plans
            were drawn from it.
    """
    own = (values[..., 0], values[..., 1].swapaxes(1, 2))
    prior = [np.zeros(v.shape[:2]) if anchors is None else anchors[side] for side, v in enumerate(own)]
    sums, policies = [np.zeros(p.shape) for p in prior], [softmax(p) for p in prior]
    means = [np.zeros(p.shape) for p in prior]
    for t in range(1, search.rounds + 1):
        for side in (0, 1):
            means[side] += policies[side] / search.rounds
            sums[side] += (own[side] @ policies[1 - side][..., None])[..., 0]
        scale = search.anchor_weight + 1.0 / (search.hedge_step * t)
        policies = [softmax((sums[s] / t + search.anchor_weight * prior[s]) / scale) for s in (0, 1)]
    return means[0], means[1]


def softmax(scores: np.ndarray) -> np.ndarray:
    """Probabilities in proportion to exp(scores), over the last axis."""
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def nash_conv(values: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What both could gain together by best responses, in a zero-sum game, float64 ``[N]``; 0 in an equilibrium.

    Args:
        values: Of pairs of plans for the first, ``[N, I, J]``.
        first: Its policy ``[N, I]``.
        second: That of the second ``[N, J]``.
    """
    best_first = (values @ second[..., None])[..., 0].max(1)
    best_second = (first[:, None] @ values)[:, 0].min(1)
    return best_first - best_second


def search_plans(
    results: Results, records: np.ndarray, plans: Sequence[np.ndarray], search: Search, rng: np.random.Generator
) -> list[np.ndarray]:
    """Policies of all powers over plans that the anchor drew, float64 ``[N, K]`` each.

    Args:
        results: Asks the rules.
        records: Match records ``[N]``.
        plans: Of each power, int64 ``[N, K, S]``.
        search: Numbers of the search.
        rng: For the draws of more than two powers.
    """
    if len(plans) > 2:
        return sampled_hedge(results, records, plans, search, rng)
    least = max(results.sim.num_envs // plans[0].shape[1] ** 2, 1)  # positions at once: what is held stays small
    parts = []
    for first in range(0, len(records), least):
        some = slice(first, first + least)
        parts.append(pikl_hedge(payoffs(results, records[some], [p[some] for p in plans]), search))
    return [np.concatenate(weights) for weights in zip(*parts, strict=True)]


def sampled_hedge(
    results: Results, records: np.ndarray, plans: Sequence[np.ndarray], search: Search, rng: np.random.Generator
) -> list[np.ndarray]:
    """`pikl_hedge` for any number of powers: in each round the others' plans are drawn from their policies."""
    powers, (n, k, _) = len(plans), plans[0].shape
    everyone = np.stack(plans, axis=1)
    sums, means = np.zeros((n, powers, k)), np.zeros((n, powers, k))
    policies = np.full((n, powers, k), 1.0 / k)
    for t in range(1, search.rounds + 1):
        means += policies / search.rounds
        draws = (policies.cumsum(-1)[..., :-1] <= rng.random((n, powers, 1))).sum(-1)
        joint = np.take_along_axis(everyone, draws[..., None, None], 2)[:, :, 0]
        for power in range(powers):
            trials = np.repeat(joint[:, None], k, 1)
            trials[:, :, power] = plans[power]
            told = results.after(np.repeat(records, k), trials.reshape(n * k, powers, -1), (power,))
            sums[:, power] += told.reshape(n, k)
        scale = search.anchor_weight + 1.0 / (search.hedge_step * t)
        policies = softmax(sums / t / scale)
    return [means[:, power] for power in range(powers)]


def is_over(sim: Simulation) -> np.ndarray:
    """Which matches have ended, by the rules or by the horizon, bool ``[N]``."""
    return sim.terminated | sim.truncated


def views_of(terrain: Terrain, sim: Simulation) -> list[View]:
    """What each power sees in all lanes of a simulation."""
    lists: Any = sim.legal
    return [view_of(terrain, sim.states, lists[:, power]["orders"], power) for power in range(terrain.powers)]
