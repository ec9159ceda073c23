"""Imports, threads and forks."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from games import two_team_homogeneous
from games.play import match_hash, python

from palaestra.core.compile.linker import jit_disabled
from palaestra.core.run.kernel import KernelSimulation


@pytest.mark.check
@pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
def test_numba_is_imported_with_the_first_simulation_and_not_before():
    program = """
import sys
import palaestra
import palaestra.core.run.kernel, palaestra.core.compile.linker, palaestra.core.run.opponents
from games import two_team_homogeneous
game = two_team_homogeneous.game()
print("numba" in sys.modules)
palaestra.core.run.kernel.KernelSimulation(game, 1)
print("numba" in sys.modules)
"""
    assert python(program).split() == ["False", "True"]


def test_simulations_may_run_side_by_side_in_threads():
    expected = match_hash("two_team_homogeneous", 40)
    with ThreadPoolExecutor(4) as pool:
        hashes = list(pool.map(lambda _: match_hash("two_team_homogeneous", 40, threads=2), range(8)))
    assert set(hashes) == {expected}


def test_closing_ends_the_threads():
    sim = KernelSimulation(
        two_team_homogeneous.game(), 8, threads=2, opponents=dict.fromkeys(("red", "blue"), "chaser")
    )
    before = set(threading.enumerate())
    sim.reset(seed=1)
    sim.step()
    started = set(threading.enumerate()) - before
    assert started
    sim.close()
    assert not any(thread.is_alive() for thread in started)


@pytest.mark.check
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_simulation_with_threads_survives_a_fork():
    program = """
import multiprocessing, os, warnings
import numpy as np
from games import two_team_homogeneous
from games.play import all_bytes, random_actions
from palaestra.core.run.kernel import KernelSimulation

warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 says that threads and forks do not go together
sim = KernelSimulation(two_team_homogeneous.game(), 64, threads=2)
sim.reset(seed=1)
rng = np.random.default_rng(0)
sim.step(random_actions(sim, rng))  # the threads run now

def go_on(connection):
    for _ in range(5):
        sim.step(random_actions(sim, rng))
    connection.send_bytes(all_bytes(sim).tobytes())

ours, theirs = multiprocessing.Pipe()
if os.fork() == 0:
    go_on(theirs)
    os._exit(0)
print(os.wait()[1])
child = ours.recv_bytes()
process = multiprocessing.get_context("fork").Process(target=go_on, args=(theirs,))
process.start()
grandchild = ours.recv_bytes()
process.join()
print(process.exitcode)
go_on(theirs)
print(child == grandchild == ours.recv_bytes())
"""
    assert python(program).split() == ["0", "0", "True"]
