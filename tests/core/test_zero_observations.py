"""Observations are zero before `observe`, in games of one agent too."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from games import lamp  # noqa: F401 (it registers its id)

import palaestra
from palaestra.core.compile import linker

LAMP = "tests/Lamp-v0"
DARK, LIT = [0.0, 1.0], [1.0, 1.0]


def lanes_of(rows: np.ndarray) -> list[float]:
    """What every lane shows."""
    assert (rows == rows[:1]).all()
    return rows[0, 0].tolist()


@pytest.mark.check
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("mode", ["next_step", "same_step", "off"])
def test_every_decision_starts_from_zero(mode: Any, compiled: bool):
    with contextlib.closing(palaestra.make_batch(LAMP, 3, autoreset_mode=mode, compiled=compiled)) as sim:
        assert lanes_of(sim.reset(seed=0)) == DARK
        for number in range(1, 5):
            sim.step()
            assert lanes_of(sim.observations) == (LIT if number % 2 else DARK)
        assert lanes_of(sim.refresh()) == DARK
        sim.step()
        if mode == "same_step":
            assert lanes_of(sim.final_observations) == LIT
            assert lanes_of(sim.observations) == DARK
        else:
            assert lanes_of(sim.observations) == LIT
            sim.step() if mode == "next_step" else sim.reset()
            assert lanes_of(sim.observations) == DARK


def test_large_observations_start_from_zero_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(linker, "FEW_BYTES", 0)
    test_every_decision_starts_from_zero("same_step", compiled=False)


@pytest.mark.check
@pytest.mark.parametrize("how", [{"threads": 2}, {"workers": 2, "compiled": False}])
def test_threads_and_workers_start_from_zero_too(how: dict[str, Any]):
    with contextlib.closing(palaestra.make_batch(LAMP, 4, **how)) as sim:
        sim.reset(seed=0)
        sim.step()
        assert lanes_of(sim.observations) == LIT
        sim.step()
        assert lanes_of(sim.observations) == DARK
