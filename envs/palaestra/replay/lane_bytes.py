"""Which bytes of a match record hold a value: the padding between them never matters."""

from __future__ import annotations

import numpy as np

from palaestra.core.run.buffers import rows_of_bytes


def padding_mask(dtype: np.dtype) -> np.ndarray:
    """Ones where a record holds a value and zeros where it is padded, uint64, as many words as it has."""
    mask = np.zeros(dtype.itemsize, np.uint8)
    for lo, hi in _leaves(dtype, 0):
        mask[lo:hi] = 255
    return mask.view(np.uint64)


def record_bytes(records: np.ndarray) -> bytes:
    """The bytes of match records, with zeros for padding."""
    words = rows_of_bytes(np.ascontiguousarray(records)).view(np.uint64)
    return (words & padding_mask(records.dtype)).tobytes()


def _leaves(dtype: np.dtype, offset: int) -> list[tuple[int, int]]:
    """Spans of bytes of the values in a record."""
    base, shape = dtype.subdtype or (dtype, ())
    if base.fields is None:
        return [(offset, offset + dtype.itemsize)] if dtype.itemsize else []
    leaves: list[tuple[int, int]] = []
    for element in range(int(np.prod(shape, dtype=np.int64))):
        members = sorted((place, member) for member, place, *_ in base.fields.values())
        for place, member in members:
            leaves += _leaves(member, offset + element * base.itemsize + place)
    return leaves
