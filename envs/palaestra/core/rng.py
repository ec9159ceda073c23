"""One 8-byte random stream per lane: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).

A match record holds two streams, ``s.rng`` for the rules and ``s.script_rng`` for the random draws of scripted
opponents, so that a different opponent never changes the random stream of the rules. The functions below are called
from kernels with the match record::

    angle_rad = uniform(s, -math.pi, math.pi)

Always draw the same number of values per step, whatever branch is taken: then a branch never shifts the stream.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
MIX_2 = np.uint64(0x94D049BB133111EB)
UNMIX_1, UNMIX_2 = np.uint64(0x96DE1B173F119089), np.uint64(0x319642B2D24D8EC3)
"""Inverses of the factors, modulo 2**64."""
SHIFT_30, SHIFT_27, SHIFT_31, SHIFT_11 = (np.uint64(n) for n in (30, 27, 31, 11))
TO_UNIT = 2.0**-53
SALT_RULES = np.uint64(0x7061_6C61_6573_7472)
SALT_SCRIPTS = np.uint64(0x6F70_706F_6E65_6E74)


def mix64(z):
    """Finaliser of splitmix64: a bijection on uint64 that scrambles all bits."""
    z = (z ^ (z >> SHIFT_30)) * MIX_1
    z = (z ^ (z >> SHIFT_27)) * MIX_2
    return z ^ (z >> SHIFT_31)


def uniform(s, low, high):
    """A float64 in [low, high) from the stream of the rules."""
    s.rng += GOLDEN
    return low + (high - low) * (float(mix64(s.rng) >> SHIFT_11) * TO_UNIT)


def integer(s, n):
    """An int in [0, n) from the stream of the rules."""
    return int(uniform(s, 0.0, 1.0) * n)


def script_uniform(s, low, high):
    """A float64 in [low, high) from the stream of the scripted opponents."""
    s.script_rng += GOLDEN
    return low + (high - low) * (float(mix64(s.script_rng) >> SHIFT_11) * TO_UNIT)


def script_integer(s, n):
    """An int in [0, n) from the stream of the scripted opponents."""
    return int(script_uniform(s, 0.0, 1.0) * n)


def unmix64(z: np.ndarray | np.generic) -> np.ndarray:
    """Inverse of `mix64`, uint64 arrays."""
    with np.errstate(over="ignore"):
        z = np.asarray(z, np.uint64)
        z = z ^ (z >> SHIFT_31) ^ (z >> np.uint64(62))
        z = z * UNMIX_2
        z = z ^ (z >> SHIFT_27) ^ (z >> np.uint64(54))
        z = z * UNMIX_1
        return z ^ (z >> SHIFT_30) ^ (z >> np.uint64(60))


def stream_before(draws: np.ndarray) -> np.ndarray:
    """Streams whose next `uniform` in [0, 1) is ``draws`` (float64, rounded down to a multiple of 2**-53).

    So a solver makes chance fall as it wants: ``stream_before((k + 0.5) / n)`` lets ``integer(s, n)`` give k.
    """
    with np.errstate(over="ignore"):
        bits = (np.asarray(draws, np.float64) * 2.0**53).astype(np.uint64) << SHIFT_11
        return unmix64(bits) - GOLDEN


def opposite_stream(streams: np.ndarray) -> np.ndarray:
    """Streams whose next `uniform` u in [0, 1) is 1 - 2**-53 - u of these: a coin falls on its other side."""
    with np.errstate(over="ignore"):
        return unmix64(~mix64(streams + GOLDEN)) - GOLDEN


def draw_integers(streams: np.ndarray, which: np.ndarray, n: int) -> np.ndarray:
    """An int64 in [0, n) from each of the streams where ``which`` is set; they move on."""
    with np.errstate(over="ignore"):
        streams[which] += GOLDEN
        return ((mix64(streams[which]) >> SHIFT_11) * TO_UNIT * n).astype(np.int64)


def check_seed(seed: Any, lanes: int = 1) -> int:
    """The seed of the first of so many lanes, lane i gets ``seed + i``: any integer but a bool, of Python or NumPy.

    Raises:
        ValueError: No integer, or one beyond the range in which each lane has a seed of its own.
    """
    is_integer = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not is_integer or not 0 <= int(seed) <= 2**64 - lanes:
        why = f", as lane i of {lanes} gets seed + i" if lanes > 1 else ""
        raise ValueError(f"seed must be an integer from 0 to 2**64 - {lanes}{why}, got {seed!r}")
    return int(seed)


def lane_seeds(seed: int | Sequence[int] | np.ndarray, lanes: int) -> np.ndarray:
    """Seeds of the lanes, uint64 ``[lanes]``: ``seed + i``, or the given ones (a list, tuple or array).

    Raises:
        ValueError: What `check_seed` refuses, or not one a lane.
    """
    if not isinstance(seed, list | tuple | np.ndarray):
        return np.uint64(check_seed(seed, lanes)) + np.arange(lanes, dtype=np.uint64)
    if isinstance(seed, np.ndarray) and seed.dtype == np.uint64 and seed.shape == (lanes,):
        return seed.copy()
    if len(np.shape(np.asarray(seed, object))) != 1 or len(seed) != lanes:
        raise ValueError(f"seed must be an integer, or a list of one for each of the {lanes} lanes, got {seed!r}")
    return np.array([check_seed(of_lane) for of_lane in seed], np.uint64)


def lane_keys(seeds: np.ndarray, salt: np.uint64) -> np.ndarray:
    """Start states of the streams for an array of lane seeds (uint64), the same for any batch size."""
    with np.errstate(over="ignore"):
        return mix64(mix64(seeds.astype(np.uint64) ^ salt) + GOLDEN)


def keyed_uniforms(key: str, count: int) -> np.ndarray:
    """Float64 ``[count]`` in [0, 1), the same for a key on every machine: tables that a game draws once.

    ``np.argsort(keyed_uniforms(key, n))`` is a random order of n things.
    """
    stream = np.frombuffer(hashlib.sha256(key.encode()).digest()[:8], "<u8")
    with np.errstate(over="ignore"):
        draws = mix64(stream + GOLDEN * np.arange(1, count + 1, dtype=np.uint64))
    return (draws >> SHIFT_11) * TO_UNIT
