"""Gymnasium spaces of field tables, in the sizes that users see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike

from palaestra.core.contract.fields import (
    ActionField,
    Choice,
    Continuous,
    ObservationField,
    bounds,
    is_homogeneous,
)


def _joined_bounds(fields: Iterable[ObservationField | Continuous]) -> tuple[np.ndarray, np.ndarray]:
    pairs = [bounds(f) for f in fields]
    return np.concatenate([low.reshape(-1) for low, _ in pairs]), np.concatenate(
        [high.reshape(-1) for _, high in pairs]
    )


def box_space(fields: Sequence[ObservationField]) -> spaces.Box:
    """Flat Box of the concatenated fields.

    Raises:
        ValueError: The fields have different dtypes (use `dict_space`).
    """
    if not is_homogeneous(fields):
        names = ", ".join(dict.fromkeys(f"{f.name}:{f.dtype}" for f in fields))  # each once, not once an agent
        raise ValueError(f'fields of different dtypes have no flat vector ({names}): use observation="dict"')
    dtype = np.dtype(fields[0].dtype)
    low, high = _joined_bounds(fields)
    return spaces.Box(low.astype(dtype), high.astype(dtype), dtype=dtype.type)


def dict_space(fields: Sequence[ObservationField], count: int | None = None) -> spaces.Dict:
    """Dict with one Box a field; ``count`` agents side by side where it is given.

    A number is a Box of shape ``(1,)``: libraries concatenate the fields, and few of them do so with shape ``()``.
    """
    return spaces.Dict({f.name: _field_box(f, f.dtype, _box_shape(f, count)) for f in fields})


def _box_shape(field: ObservationField, count: int | None) -> tuple[int, ...]:
    return (field.shape or (1,)) if count is None else (count, *field.shape)


def _field_box(field: ObservationField | Continuous, dtype: DTypeLike, shape: tuple[int, ...]) -> spaces.Box:
    kind: Any = np.dtype(dtype).type
    low, high = bounds(field)
    return spaces.Box(np.broadcast_to(low, shape).astype(kind), np.broadcast_to(high, shape).astype(kind), shape, kind)


def action_space(fields: Sequence[ActionField], agents: int = 1) -> spaces.Space:
    """The natural space of ``agents`` equal actions joined into one.

    One `Choice` is Discrete, several are MultiDiscrete, `Continuous` fields are one flat Box (float32), a mixture is a
    Dict by field name. For several agents the same, agent after agent.
    """
    choices = [f for f in fields if isinstance(f, Choice)]
    axes = [f for f in fields if isinstance(f, Continuous)]
    if choices and axes:
        joined: dict[str, spaces.Space] = {}
        for f in fields:
            if isinstance(f, Choice):
                sizes = [f.n] * (f.size * agents)
                joined[f.name] = spaces.Discrete(f.n) if len(sizes) == 1 else spaces.MultiDiscrete(sizes)
            else:
                joined[f.name] = _field_box(f, np.float32, f.shape if agents == 1 else (agents, *f.shape))
        return spaces.Dict(joined)
    if choices:
        sizes = [f.n for f in choices for _ in range(f.size)] * agents
        return spaces.Discrete(sizes[0]) if len(sizes) == 1 else spaces.MultiDiscrete(sizes)
    low, high = _joined_bounds(axes)
    return spaces.Box(np.tile(low, agents).astype(np.float32), np.tile(high, agents).astype(np.float32))
