"""A warm start: stored machine code is loaded without the registries of the compiler, which still work afterwards."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from games.play import python

import palaestra
from palaestra.core.compile.linker import jit_disabled

pytestmark = pytest.mark.check

PLAY = """
import sys

import numpy as np
import palaestra

if "broken" in sys.argv:
    from numba.core.runtime import nrt

    del nrt.rtsys
{total}
states = total()
registries = "numba.cpython.heapq" in sys.modules

if not registries:
    import numba

    @numba.njit
    def norm(values):
        return np.sqrt((values * values).sum())

    assert norm(np.array([3.0, 4.0])) == 5.0
print(registries, states)
"""


def total() -> str:
    """The states after 20 decisions."""
    sim = palaestra.make_batch("palaestra/CartPole-v0", 4)
    sim.reset(seed=3)
    for _ in range(20):
        sim.step(np.ones(sim.actions.shape, np.int64))
    return sim.states.tobytes().hex()[:4000]


def played(*words: str) -> list[str]:
    """Whether a process of its own built the compiler's registries, and its states."""
    return python(PLAY.replace("{total}", inspect.getsource(total)), *words).split()


@pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
def test_a_warm_start_builds_no_registries_and_gives_the_same_bits():
    states = total()  # the machine code is stored now
    assert played() == ["False", states]
    assert played("broken") == ["True", states]  # numba's internals are not what they were
