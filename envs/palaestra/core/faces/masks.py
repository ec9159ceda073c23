"""Masks in the shape of a composite action: what ``space.sample(mask)`` takes where the action space is a Dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium import spaces

from palaestra.core.fields import Choice

if TYPE_CHECKING:
    from palaestra.core.faces.ports import Block

Plan = Any
"""Where the entries of a flat mask go: a slice, a tuple of slices, None (nothing to mask), or a dict of plans."""


class Unmasked(spaces.Space[None]):
    """Holds None alone, the only mask that a Box can be sampled with."""

    @property
    def is_np_flattenable(self) -> bool:
        """None is no number."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> None:
        """None."""
        return None

    def contains(self, x: Any) -> bool:
        """Whether it is None."""
        return x is None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unmasked)

    def __hash__(self) -> int:
        return hash(Unmasked)

    def __repr__(self) -> str:
        return "Unmasked()"


def mask_plan(blocks: Sequence[Block]) -> Plan:
    """The plan for slots whose masks stand side by side, slot after slot, the choices of each in their order."""
    plans: dict[str, Plan] = {}
    start = 0
    for block in blocks:
        slices: dict[str, list[slice]] = {f.name: [] for f in block.role.action}
        in_order = []
        for _ in range(block.count):
            for f in block.role.action:
                if isinstance(f, Choice):
                    in_order.append(slice(start, start + f.n))
                    slices[f.name].append(in_order[-1])
                    start += f.n
        by_field = {name: _leaf(found) for name, found in slices.items()}
        plans[block.role.name] = by_field if block.mixed else _leaf(in_order)
    return plans if len(plans) > 1 else next(iter(plans.values()))


def _leaf(slices: list[slice]) -> Plan:
    if not slices:
        return None
    return slices[0] if len(slices) == 1 else tuple(slices)


def mask_space(plan: Plan) -> spaces.Space:
    """Space of the masks that `shape_masks` makes of one lane."""
    if isinstance(plan, Mapping):
        return spaces.Dict({name: mask_space(part) for name, part in plan.items()})
    if isinstance(plan, tuple):
        return spaces.Tuple([mask_space(part) for part in plan])
    return Unmasked() if plan is None else spaces.Box(0, 1, (plan.stop - plan.start,), np.int8)


def shape_masks(plan: Plan, flat: np.ndarray) -> Any:
    """Masks of one lane (int8 ``[M]``) or of many (``[N, M]``) in the shape of the plan, as views."""
    if isinstance(plan, Mapping):
        return {name: shape_masks(part, flat) for name, part in plan.items()}
    if isinstance(plan, tuple):
        return tuple(shape_masks(part, flat) for part in plan)
    if plan is None:
        return None if flat.ndim == 1 else (None,) * len(flat)
    return flat[..., plan]
