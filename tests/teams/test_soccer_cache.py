"""Compiled games are kept on disk; pitches of several sizes are the same source in several layouts."""

import pytest
from games.play import python

from palaestra.core.compile.linker import jit_disabled

pytestmark = [pytest.mark.slow, pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")]

SMALL, LARGE = "palaestra/GridSoccer-v0", "palaestra/TeamGridSoccer-3x3-v0"
PLAY = """
import sys
import numpy as np
import palaestra
for id in sys.argv[1:]:
    sim = palaestra.make_batch(id, 4, opponents={"blue": "striker"})
    sim.reset(seed=0)
    for k in range(300):
        sim.step(np.random.default_rng(k).integers(5, size=sim.actions.shape))
    print(id, int(sim.states["row"].sum()), float(sim.observations.sum()), sim.states["rng"].tolist())
"""


def test_games_that_two_processes_compiled_do_not_get_mixed_up_in_a_third(tmp_path):
    def play(*ids: str) -> list[str]:
        return python(PLAY, *ids, NUMBA_CACHE_DIR=str(tmp_path)).splitlines()

    small, large = play(SMALL), play(LARGE)
    assert play(SMALL, LARGE) == small + large
    assert play(LARGE, SMALL) == large + small
