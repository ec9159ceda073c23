"""Results of a face belong to the caller: they share no memory with the simulation and never change later."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from palaestra.testing.checks.lane_checks import SEED, SHORT
from palaestra.testing.drivers import LANES, Driver, EnvDriver, ParallelDriver, VectorDriver
from palaestra.testing.harness import conformance, require
from palaestra.testing.snapshot_view import unlike
from palaestra.testing.subject import Subject


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
    made: list[Driver] = [
        EnvDriver(subject.env(horizon=SHORT), SEED),
        ParallelDriver(subject.parallel(horizon=SHORT), SEED),
    ]
    modes = ("next_step", "same_step", "off")
    made += [VectorDriver(subject.vec(LANES, horizon=SHORT, autoreset_mode=m), SEED) for m in modes]
    return made


@conformance(order=501)
def results_share_no_memory(subject: Subject) -> None:
    """No returned array shares memory with the simulation, nor, if it can be written, with another result.

    Fields that are an array of the world may be views of it, as long as they are read-only.
    """
    world = [np.asarray(member) for member in subject.game.world or ()]
    for driver in _drivers(subject):
        earlier: list[tuple[str, np.ndarray]] = []
        for number in range(100 if subject.level == "full" else 2 * SHORT + 2):
            result = driver.start() if number == 0 else driver.play()
            arrays, live = list(arrays_in(result, f"{driver.name} call {number} ")), memory_of(driver.face.sim)
            for where, array in arrays:
                if not array.flags.writeable and any(_shared(array, member) for member in world):
                    continue
                for name, memory in live:
                    require(not _shared(array, memory), f"{where} is the simulation's own memory ({name})")
                for other, before in earlier if array.flags.writeable else ():
                    require(not _shared(array, before), f"{where} shares memory with {other}")
            earlier = arrays


def _shared(a: np.ndarray, b: np.ndarray) -> bool:
    return a.size > 0 and b.size > 0 and np.may_share_memory(a, b) and np.shares_memory(a, b)


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
