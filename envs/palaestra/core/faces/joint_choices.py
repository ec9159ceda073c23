"""The choices of some slots as one Discrete, for learners that know nothing else (``choices="discrete"``)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.contract.actions import ActionError, as_array
from palaestra.core.contract.fields import Choice
from palaestra.core.faces.blocks import Block, choice_sizes

MOST = 2**16
"""Most alternatives of a joint choice: its masks and the output layers of policies are as long."""


class JointChoices:
    """Numbers every combination of the choices of some slots.

    The choices stand slot after slot in the order of their MultiDiscrete, the first counts most: for sizes (3, 2) the
    number 5 is (2, 1).

    Attributes:
        sizes: Alternatives of each choice.
        table: int64 ``[P, choices]``: the choices behind each number.
        space: Discrete of P alternatives.
    """

    def __init__(self, name: str, blocks: Sequence[Block]) -> None:
        """Numbers the combinations.

        Args:
            name: Of the game, for errors.
            blocks: The slots.

        Raises:
            ValueError: Some actions are real numbers, or there are more than 65,536 combinations.
        """
        reals = [f.name for b in blocks for f in b.role.action if not isinstance(f, Choice)]
        if reals:
            raise ValueError(f'{name} has real-valued actions ({", ".join(reals)}): they have no choices="discrete"')
        self.sizes = choice_sizes(blocks)
        count = prod(self.sizes)
        if count > MOST:
            raise ValueError(
                f'choices="discrete" would number {count:,} combinations of {self.sizes}, more than {MOST:,}: play '
                "fewer agents at once, or each by itself (PettingZoo, palaestra.adapters.rows)"
            )
        self.table = np.stack([places.ravel() for places in np.indices(self.sizes)], axis=1).astype(np.int64)
        self.space = spaces.Discrete(count)

    def split(self, given: Any, lanes: int) -> np.ndarray:
        """The choices behind the numbers of some lanes, int64 ``[lanes, choices]``.

        Raises:
            ActionError: Not one integer a lane, or one that numbers nothing.
        """
        numbers = as_array(given, "joint choices")
        if numbers.dtype.kind not in "iu":
            raise ActionError(f"a joint choice must be an integer, got {numbers.dtype}")
        if numbers.size != lanes or numbers.shape[:1] != (lanes,):
            raise ActionError(f"a joint choice is one number in each of {lanes} lanes, got shape {numbers.shape}")
        numbers = numbers.reshape(lanes)
        wrong = np.flatnonzero((numbers < 0) | (numbers >= len(self.table)))
        if wrong.size:
            lane = int(wrong[0])
            raise ActionError(
                f"lane {lane}: joint choice = {numbers[lane]} is not an integer in [0, {len(self.table)})"
            )
        return self.table[numbers]

    def masks(self, allowed: np.ndarray) -> np.ndarray:
        """Masks of the combinations: allowed where each of their choices is.

        Args:
            allowed: Masks of the choices side by side, bool ``[N, sum of sizes]``.

        Returns:
            int8 ``[N, P]``.
        """
        parts = np.split(allowed, np.cumsum(self.sizes)[:-1], axis=1)
        multiply = lambda joint, part: (joint[:, :, None] & part[:, None, :]).reshape(len(joint), -1)  # noqa: E731
        return reduce(multiply, parts).astype(np.int8)
