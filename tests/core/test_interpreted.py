"""Compiled or not, on one processor or another: the same source gives the same bits.

Most tests of the core are cheap enough for `NUMBA_DISABLE_JIT=1` (marker `jitless`), where an index outside an array is
an error.
"""

import pytest
from games.play import match_hash, python

from palaestra.core.linker import jit_disabled

HASH = "import sys; from games.play import match_hash; print(match_hash(sys.argv[1], int(sys.argv[2])))"


@pytest.mark.skipif(jit_disabled(), reason="compares with compiled kernels")
@pytest.mark.parametrize("name", ["two_team", "two_team_homogeneous"])
def test_the_interpreted_twin_gives_the_same_bits(name: str):
    assert python(HASH, name, "120", NUMBA_DISABLE_JIT="1") == match_hash(name, 120)


@pytest.mark.skipif(jit_disabled(), reason="compiles")
def test_a_plain_processor_gives_the_same_bits(tmp_path):
    generic = python(HASH, "two_team_homogeneous", "60", NUMBA_CPU_NAME="generic", NUMBA_CACHE_DIR=str(tmp_path))
    assert generic == match_hash("two_team_homogeneous", 60)


def test_the_interpreted_twin_finds_an_index_outside_its_array():
    program = """
from games import two_team_homogeneous as melee
from games.play import idle_actions
from palaestra.core.kernel import KernelSimulation
inside = melee.observe
melee.observe = lambda s, world, observations, scratch: s.hit_points[melee.POINTS]
try:
    KernelSimulation(melee.game(), 1).reset(seed=1)
except IndexError:
    print("found")
"""
    assert python(program, NUMBA_DISABLE_JIT="1") == "found"


def test_the_interpreted_twin_does_without_numba():
    program = "import sys; from games.play import match_hash; match_hash('two_team', 3); print('numba' in sys.modules)"
    assert python(program, NUMBA_DISABLE_JIT="1") == "False"
