"""Where the bytes of a kernel's records, at capacity, go in the rows that users see."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from palaestra.core.contract.fields import Choice, Field, ObservationField, Table, member_offset
from palaestra.core.contract.rules import Game

SPAN = np.dtype([("source", "i8"), ("target", "i8"), ("length", "i8"), ("at_reset", "i8")], align=True)
"""Bytes of the kernel's observation or mask record and where they go in the visible one."""


def observation_spans(game: Game) -> np.ndarray:
    """Where the bytes of the kernel's observation record go in the visible one; fields written at reset are marked."""
    kernel, visible = game.kernel_observation_dtype, game.observation_dtype
    parts = [(r.name, len(r.agents), r.observation) for r in game.roles]
    parts += [("team", len(game.teams), game.team_observation)] if game.team_observation else []
    parts += [("lane", 1, game.lane_observation)] if "lane" in (kernel.names or ()) else []
    spans = []
    for name, count, fields in parts:
        for k in range(count):
            source, target = _element(kernel, name, k), _element(visible, name, k)
            for f in fields:
                if f.world is None:
                    spans += _spans_of(f, source, target)
    return _merged(spans)


def mask_spans(game: Game) -> np.ndarray:
    """Likewise for masks."""
    spans = []
    for role in game.roles:
        if role.name not in (game.mask_dtype.names or ()):
            continue
        for k in range(len(role.agents)):
            source, target = (_element(d, role.name, k) for d in (game.kernel_mask_dtype, game.mask_dtype))
            for c in role.action:
                if isinstance(c, Choice):
                    spans += _member_spans(c.name, source, target, 0)
    return _merged(spans)


def pack_slices(spans, work, row, started):
    """`palaestra.core.compile.batch_loop.pack` for plain Python, which takes a second for a loop over a megabyte."""
    for source, target, length, at_reset in spans.tolist():
        if started or not at_reset:
            row[target : target + length] = work[source : source + length]


def _element(dtype: np.dtype, name: str, k: int) -> tuple[np.dtype, int]:
    """Record and byte offset of the k-th element of a member."""
    base = dtype[name].base
    return base, member_offset(dtype, name) + k * base.itemsize


def _spans_of(
    f: ObservationField, source: tuple[np.dtype, int], target: tuple[np.dtype, int]
) -> Iterator[tuple[int, int, int, int]]:
    assert isinstance(f, Field | Table)
    return _member_spans(f.name, source, target, int(f.at == "reset"))


def _member_spans(
    name: str, source: tuple[np.dtype, int], target: tuple[np.dtype, int], at_reset: int
) -> Iterator[tuple[int, int, int, int]]:
    """Spans of one member: the visible corner of an array in memory, run by run."""
    (from_record, from_at), (to_record, to_at) = source, target
    memory, visible = from_record[name], to_record[name]
    item = memory.base.itemsize
    from_at += member_offset(from_record, name)
    to_at += member_offset(to_record, name)
    if memory.shape[1:] == visible.shape[1:]:
        yield from_at, to_at, visible.itemsize, at_reset
        return
    pitch = [int(np.prod(memory.shape[k + 1 :])) * item for k in range(len(memory.shape))]
    run = visible.shape[-1] * item
    for number, at in enumerate(np.ndindex(visible.shape[:-1])):
        yield from_at + sum(p * k for p, k in zip(pitch, at, strict=False)), to_at + number * run, run, at_reset


def _merged(spans: list[tuple[int, int, int, int]]) -> np.ndarray:
    """Spans side by side as one; at least one row, as an empty array has no address."""
    merged: list[tuple[int, int, int, int]] = []
    for source, target, size, at_reset in spans:
        if merged:
            before = merged[-1]
            if (before[0] + before[2], before[1] + before[2], before[3]) == (source, target, at_reset):
                merged[-1] = (before[0], before[1], before[2] + size, at_reset)
                continue
        merged.append((source, target, size, at_reset))
    return np.array(merged or [(0, 0, 0, 0)], SPAN)
