"""A bonus for rarely visited pairs of a code of what an agent sees and a region of its actions.

    bonus = mean over agents of 1 / sqrt(1 + N(code, region))

A region is a cell of a grid on the numbers of an action, `CELLS` along each. Where an agent has no code of another kind
it is the signs of random projections of its inputs (Tang et al., arXiv 1611.04717).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

CELLS = 3
"""Equal parts of the range [-1, 1] of a number of an action."""
TABLE = 1 << 16
"""Entries of the table of counts; pairs of equal index are counted as one."""
SIGNS = 8
"""Random projections of a code: 2^8 codes."""
MEMORY = 0.01
"""How far a match that ends moves the running share of paid matches."""
FACTOR = 40_503
"""Spreads codes over the table: odd, and about the golden share of 2^16."""


class VisitCounts(nn.Module):
    """Counts of what was visited.

    Attributes:
        counts: float32 ``[TABLE]``.
        paid: ``[1]``, running share of matches that were paid.
    """

    counts: torch.Tensor
    paid: torch.Tensor
    directions: torch.Tensor

    def __init__(self, inputs: int) -> None:
        """No visits; random projections of ``inputs`` numbers from torch's generator."""
        super().__init__()
        self.register_buffer("counts", torch.zeros(TABLE))
        self.register_buffer("paid", torch.zeros(1))
        self.register_buffer("directions", torch.randn(inputs, SIGNS))

    def signs(self, seen: torch.Tensor) -> torch.Tensor:
        """Codes int64 ``[...]`` of inputs ``[..., I]``: signs of projections as a number."""
        return ((seen @ self.directions > 0.0).long() << torch.arange(SIGNS)).sum(-1)

    def index(self, codes: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        """Entries int64 ``[...]`` of codes int64 ``[...]`` and actions ``[..., M]`` in [-1, 1]."""
        cells = ((actions + 1.0) * (0.5 * CELLS)).long().clamp(0, CELLS - 1)
        regions = (cells * CELLS ** torch.arange(cells.shape[-1])).sum(-1)
        return (codes * FACTOR + regions) % TABLE

    def visit(self, index: torch.Tensor, acts: torch.Tensor) -> None:
        """Counts entries int64 ``[...]`` of agents for which ``acts [...]`` is true."""
        self.counts += torch.bincount(index[acts], minlength=TABLE)

    def bonus(self, index: torch.Tensor, acts: torch.Tensor) -> torch.Tensor:
        """The bonus ``[...]`` of entries ``[..., A]``, see the module; agents that do not act count as 0."""
        return ((1.0 + self.counts[index]).rsqrt() * acts).mean(-1)

    @property
    def weight(self) -> float:
        """Weight of the bonus: the share of matches that are not paid."""
        return 1.0 - float(self.paid)

    def end_matches(self, paid: np.ndarray) -> None:
        """Moves the share by matches that have ended, bool ``[matches]``: whether they were paid."""
        if len(paid):
            self.paid.lerp_(torch.tensor([paid.mean()], dtype=torch.float32), 1.0 - (1.0 - MEMORY) ** len(paid))
