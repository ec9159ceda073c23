"""Cost of testing many ids: processor time of the kit for an id, of compiling a kernel, and a forecast from both."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

IDS, KERNELS, ENGINES = 80, 38, 12
"""Of the suite that the forecast is made for: ids, kernels among them, and kernels that fly or walk with an engine."""
JOBS = 2
"""Cores of the machine that it is made for."""


@dataclass(frozen=True)
class Term:
    """One part of the forecast.

    Attributes:
        name: What is done.
        count: How often.
        cpu_s: Processor time of one.
    """

    name: str
    count: int
    cpu_s: float

    @property
    def total_s(self) -> float:
        """Processor time of all."""
        return self.count * self.cpu_s


def forecast(kit_s: Mapping[str, Sequence[float]], kernel_s: float, rest_s: float) -> list[Term]:
    """The terms of testing `IDS` ids.

    Args:
        kit_s: Processor time of the kit by kind: ``"kernel"`` and ``"engine"`` (level ``"fast"``) and ``"preset"``, one
            number an id. A kind that was not measured counts nothing.
        kernel_s: Processor time of compiling one kernel.
        rest_s: Processor time of all other tests.
    """
    mean = {kind: statistics.fmean(seconds) if seconds else 0.0 for kind, seconds in kit_s.items()}
    return [
        Term("kernels compiled", KERNELS, kernel_s),
        Term("kit, an id of each kernel", KERNELS - ENGINES, mean["kernel"]),
        Term("kit, an id of each engine kernel", ENGINES, mean["engine"]),
        Term("kit, presets", IDS - KERNELS, mean["preset"]),
        Term("other tests", 1, rest_s),
    ]


def seconds_to_compile(ids: Sequence[str]) -> float:
    """Processor time of compiling the kernels of these ids, a mean of the kernels, measured with an empty cache."""
    before = os.times()
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, "-m", "palaestra", "doctor", "--warm", "--json", *ids],
            env={**os.environ, "NUMBA_CACHE_DIR": cache},
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    after = os.times()
    compiled = sum(game["seconds"] > 0 for game in json.loads(done.stdout)["games"])
    spent_s = after.children_user + after.children_system - before.children_user - before.children_system
    return spent_s / max(compiled, 1)
