"""A warm start: stored machine code is loaded without the registries of the compiler, which still work afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from palaestra.core.linker import jit_disabled

PLAY = """
import sys

import numpy as np
import palaestra
from palaestra.core import compiler

def total():
    sim = palaestra.make_batch("palaestra/CartPole-v0", 4)
    sim.reset(seed=3)
    for _ in range(20):
        sim.step(np.ones(sim.actions.shape, np.int64))
    return sim.states.tobytes().hex()[:4000]

if "broken" in sys.argv:
    from numba.core.runtime import nrt

    del nrt.rtsys
states = total()
registries = "numba.cpython.heapq" in sys.modules

import numba

@numba.njit
def norm(values):
    return np.sqrt((values * values).sum())

assert norm(np.array([3.0, 4.0])) == 5.0
print(registries, states)
"""


def played(folder: Path, *words: str) -> tuple[bool, str]:
    """Whether the compiler's registries were built, and the states after 20 decisions."""
    variables = os.environ | {
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
    }
    run = subprocess.run([sys.executable, "-c", PLAY, *words], capture_output=True, text=True, env=variables)
    assert run.returncode == 0, run.stderr
    registries, states = run.stdout.split()
    return registries == "True", states


@pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
def test_a_warm_start_builds_no_registries_and_gives_the_same_bits(tmp_path: Path):
    cold_registries, cold = played(tmp_path)
    warm_registries, warm = played(tmp_path)
    assert cold_registries
    assert not warm_registries
    assert warm == cold
    fallen_back, same = played(tmp_path, "broken")  # numba's internals are not what they were
    assert fallen_back
    assert same == cold
