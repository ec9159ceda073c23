"""Results of a face belong to the caller: they share no memory with the simulation and never change later."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from palaestra.testing.checks.lane_checks import SHORT
from palaestra.testing.drawn import Draw
from palaestra.testing.drivers import Driver, EnvDriver, ParallelDriver, VectorDriver
from palaestra.testing.harness import conformance, require
from palaestra.testing.snapshot_view import unlike
from palaestra.testing.subject import Subject

byte_bounds: Callable[[np.ndarray], tuple[int, int]] = vars(getattr(np.lib, "array_utils", np))["byte_bounds"]
"""First address of an array and the one behind its last; NumPy 2 moved it."""


def arrays_in(value: Any, path: str) -> Iterator[tuple[str, np.ndarray]]:
    """All arrays in a nested result, with where they are."""
    if isinstance(value, np.ndarray):
        if value.dtype != object:
            yield path, value
            return
        value = list(value)
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from arrays_in(member, f"{path}[{key!r}]")
    elif isinstance(value, tuple | list):
        for number, member in enumerate(value):
            yield from arrays_in(member, f"{path}[{number}]")


def memory_of(sim: Any) -> list[tuple[str, np.ndarray]]:
    """All arrays that a simulation holds."""
    return [found for name, value in vars(sim).items() for found in arrays_in(value, name)]


def _drivers(subject: Subject) -> list[Driver]:
    """A run of each face and autoreset mode; two calls with the same numbers drawn make the same runs."""
    draw = Draw(subject.seed, subject.id, "runs")
    seed, horizon, lanes = draw.seed(), draw.integer("horizon", 2, SHORT), draw.integer("lanes", 1, 4)
    subject.draw.numbers.update(draw.numbers)
    made: list[Driver] = [
        EnvDriver(subject.env(horizon=horizon), seed),
        ParallelDriver(subject.parallel(horizon=horizon), seed),
    ]
    modes = ("next_step", "same_step", "off")
    made += [VectorDriver(subject.vec(lanes, horizon=horizon, autoreset_mode=m), seed) for m in modes]
    return made


@conformance(order=501)
def results_share_no_memory(subject: Subject) -> None:
    """No returned array shares memory with the simulation, nor, if it can be written, with another result.

    Fields that are an array of the world may be views of it, as long as they are read-only.
    """
    world = Memory(arrays_in(subject.game.world, "world"))
    for driver in _drivers(subject):
        earlier = Memory(())
        for number in range(100 if subject.level == "full" else 2 * SHORT + 2):
            result = driver.start() if number == 0 else driver.play()
            arrays, live = list(arrays_in(result, f"{driver.name} call {number} ")), Memory(memory_of(driver.face.sim))
            for where, array in arrays:
                if not array.flags.writeable and world.shared_by(array):
                    continue
                name = live.shared_by(array)
                require(not name, f"{where} is the simulation's own memory ({name})")
                other = earlier.shared_by(array) if array.flags.writeable else ""
                require(not other, f"{where} shares memory with {other}")
            earlier = Memory(arrays)


class Memory:
    """Arrays by name; those that may share memory with another array are found by their addresses."""

    def __init__(self, arrays: Iterable[tuple[str, np.ndarray]]) -> None:
        """Notes where the arrays lie."""
        self._arrays = [(name, array) for name, array in arrays if array.size > 0]
        self._bounds = np.array([byte_bounds(array) for _, array in self._arrays], np.uint64).reshape(-1, 2)

    def shared_by(self, array: np.ndarray) -> str:
        """Name of an array that shares memory with this one, or ``""``."""
        if array.size == 0:
            return ""
        low, high = map(np.uint64, byte_bounds(array))
        for k in np.flatnonzero((self._bounds[:, 0] < high) & (self._bounds[:, 1] > low)).tolist():
            name, memory = self._arrays[k]
            if np.shares_memory(array, memory):
                return name
        return ""


@conformance(order=502)
def results_keep_their_values(subject: Subject) -> None:
    """A result is the same after later steps as when it was returned."""
    for driver in _drivers(subject):
        kept = []
        for number in range(100 if subject.level == "full" else 2 * SHORT + 2):
            result = driver.start() if number == 0 else driver.play()
            kept.append((result, copy.deepcopy(result)))
        for number, (result, as_returned) in enumerate(kept):
            found = unlike(as_returned, result)
            require(
                not found, f"{driver.name}: later calls changed the result of call {number}: {found} (then and now)"
            )


@conformance(order=503)
def results_are_copies(subject: Subject) -> None:
    """Writing into returned arrays, or into the given actions, does not change how the match continues."""
    for scribbled, clean in zip(_drivers(subject), _drivers(subject), strict=True):
        for number in range(100 if subject.level == "full" else 2 * SHORT + 2):
            one = scribbled.start() if number == 0 else scribbled.play()
            other = clean.start() if number == 0 else clean.play()
            found = unlike(other, one)
            require(not found, f"{clean.name}, call {number}: {found} (clean, and after writing into earlier results)")
            _scribble(one, scribbled)


def _scribble(result: Any, driver: Driver) -> None:
    for value in (result, driver.given):
        for _, array in arrays_in(value, ""):
            if not array.flags.writeable:
                continue
            if array.dtype == np.bool_:
                array[...] = ~array
            else:
                array[...] = 85
