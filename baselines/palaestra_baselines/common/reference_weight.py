"""The weight of a reference policy in a loss, and what it adapts to: returns of matches of either policy."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

WeightRule = Literal["adaptive", "fixed", "linear", "none"]


class MatchReturns:
    """Discounted returns of the matches that the policy plays, and of those that the reference plays in its own lanes.

    Attributes:
        of_policy: Mean return of the last matches of the policy, by exponential averaging.
        of_reference: Likewise of the reference.
    """

    def __init__(self, lanes: int, reference_lanes: int, gamma: float, decay: float) -> None:
        """No match has ended.

        Args:
            lanes: N.
            reference_lanes: Number of lanes, the first ones, in which the reference plays.
            gamma: Discount of a decision.
            decay: Weight of a match in the mean of its policy; the first ones weigh more, so that they count alike.
        """
        self.reference_lanes, self.gamma, self.decay = reference_lanes, gamma, decay
        self._return, self._discount = np.zeros(lanes), np.ones(lanes)
        self._means, self._counts = np.zeros(2), np.zeros(2)

    @property
    def of_policy(self) -> float:
        """See above."""
        return float(self._means[0])

    @property
    def of_reference(self) -> float:
        """See above."""
        return float(self._means[1])

    @property
    def advantage(self) -> float:
        """``(R_pi - R_ref) / (|R_pi| + |R_ref|)``, in [-1, 1]; 0 until matches of both have ended."""
        if not self._counts.all():
            return 0.0
        one, other = self._means
        return float((one - other) / max(abs(one) + abs(other), 1e-6))

    def count(self, rewards: np.ndarray, running: np.ndarray) -> None:
        """Counts a decision of all lanes.

        Args:
            rewards: float32 ``[N]``.
            running: bool ``[N]``: it was a decision of a match; else the lane has started its next match.
        """
        for lane in np.flatnonzero(~running):
            kind = int(lane < self.reference_lanes)
            self._counts[kind] += 1
            weight = max(self.decay, 1.0 / self._counts[kind])
            self._means[kind] += weight * (self._return[lane] - self._means[kind])
        self._return = np.where(running, self._return + self._discount * rewards, 0.0)
        self._discount = np.where(running, self._discount * self.gamma, 1.0)

    def state_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return {name: vars(self)[name].copy() for name in ("_return", "_discount", "_means", "_counts")}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The inverse."""
        vars(self).update({name: np.array(value) for name, value in state.items()})


class ReferenceWeight:
    """beta: ``adaptive``, ``fixed``, ``linear`` (falls to 0 in the training) or ``none`` (is 0)."""

    def __init__(self, rule: WeightRule, first: float, least: float, rate: float, wanted: float) -> None:
        """The first weight.

        Args:
            rule: See above.
            first: First and largest weight.
            least: Smallest weight of ``adaptive``.
            rate: eta of ``adaptive``: how fast it changes.
            wanted: kappa of ``adaptive``: the advantage over which it falls.
        """
        self.rule, self.first, self.least, self.rate, self.wanted = rule, first, least, rate, wanted
        self.beta = 0.0 if rule == "none" else first

    def update(self, advantage: float, share: float) -> None:
        """One step, with the advantage of the policy over the reference; ``share`` of the training is done."""
        if self.rule == "adaptive":
            changed = self.beta * math.exp(self.rate * (self.wanted - advantage))
            self.beta = min(max(changed, self.least), self.first)
        elif self.rule == "linear":
            self.beta = self.first * (1.0 - share)

    def state_dict(self) -> dict[str, float]:
        """For a checkpoint."""
        return {"beta": self.beta}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """The inverse."""
        self.beta = state["beta"]
