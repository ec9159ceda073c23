"""Agents that make several choices in a decision, as learners see them: one choice of all combinations.

Combinations are numbered like digits, the first choice the most significant one. An agent of one choice is as it is.
"""

from __future__ import annotations

from math import prod

import numpy as np

from palaestra.core.fields import Choice, is_homogeneous
from palaestra.core.game import Game, Role

MOST = 4096
"""Combinations that an agent may have."""


class JointChoice:
    """All choices of an agent as one.

    Attributes:
        sizes: Alternatives of each choice.
        n: Number of combinations.
        noop: The combination of the no-ops.
    """

    def __init__(self, game: Game, role: Role) -> None:
        """Reads a role's table of actions.

        Raises:
            ValueError: Its agents do not make single choices alone, legal alternatives are a list, there are more than
                `MOST` combinations, or observations differ in dtype.
        """
        choices = [choice for choice in role.action if isinstance(choice, Choice) and not choice.shape]
        if len(choices) != len(role.action):
            raise ValueError(f"{game.name}: agents of role {role.name!r} have other actions than single choices")
        for choice in choices:
            if choice.candidates is not None:
                raise ValueError(
                    f"{game.name}: the legal alternatives of {choice.name!r} are a list of candidates, which these "
                    "methods do not support: they need a mask of all alternatives"
                )
        if not is_homogeneous(role.observation):
            raise ValueError(f"{game.name}: agents of role {role.name!r} see numbers of several kinds")
        self.sizes = tuple(choice.n for choice in choices)
        self.n = prod(self.sizes)
        if self.n > MOST:
            raise ValueError(f"{game.name}: agents of role {role.name!r} have {self.n} combinations of their choices")
        self.noop = int(np.ravel_multi_index([choice.noop for choice in choices], self.sizes))

    def mask(self, allowed: np.ndarray) -> np.ndarray:
        """Legal combinations bool ``[..., n]`` of the masks of all choices side by side, ``[..., sum of sizes]``."""
        if len(self.sizes) == 1:
            return allowed != 0
        first, *rest = np.split(allowed != 0, np.cumsum(self.sizes)[:-1], axis=-1)
        for more in rest:
            first = (first[..., :, None] & more[..., None, :]).reshape(*first.shape[:-1], -1)
        return first

    def split(self, numbers: np.ndarray) -> np.ndarray:
        """Choices int64 ``[..., choices]`` of combinations ``[...]``; unchanged where there is one choice."""
        if len(self.sizes) == 1:
            return numbers
        return np.stack(np.unravel_index(numbers, self.sizes), axis=-1)
