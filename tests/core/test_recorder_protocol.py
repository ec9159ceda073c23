"""A recorder receives every verb that decides how matches go on, before it happens and after it has."""

from __future__ import annotations

import numpy as np
import pytest
from games import two_team

from palaestra.core.run.kernel import KernelSimulation

BOTH, FIRST = [True, True], [True, False]


class Listing:
    """Writes down what it receives; refuses what it is told to."""

    keep_outputs = False

    def __init__(self) -> None:
        self.lines: list = []
        self.refused = ""

    def before(self, verb, which=None, what=None) -> None:
        if verb == self.refused:
            raise RuntimeError(f"no {verb} now")
        self.lines.append((verb, None if which is None else which.tolist(), what))

    def after(self) -> None:
        self.lines.append("done")


@pytest.fixture
def sim():
    return KernelSimulation(two_team.game(), 2, compiled=False, opponents={"red": "runner", "blue": "fighter"})


def test_every_verb_is_received_once(sim):
    sim.recorder = listing = Listing()
    sim.reset(seed=1)
    sim.seed(3, np.array(FIRST))
    sim.set_parameters([0], damage=2.0)
    sim.set_opponent("blue", "random", [0])
    sim.step()
    kept = sim.snapshot()
    sim.restore(kept)
    sim.refresh()
    sim.load_states(sim.states[:1].copy(), np.array(FIRST))
    assert listing.lines[1::2] == ["done"] * 10
    assert [line[:2] for line in listing.lines[::2]] == [
        ("seed", BOTH),
        ("reset", BOTH),
        ("seed", FIRST),
        ("set_parameters", FIRST),
        ("set_opponent", FIRST),
        ("step", None),
        ("snapshot", None),
        ("restore", None),
        ("refresh", BOTH),
        ("load_states", FIRST),
    ]
    assert [line[2] for line in listing.lines[::2]] == [
        *(None, None, None, ("damage",), "blue", None),
        *(kept, kept, None, None),
    ]


@pytest.mark.parametrize("verb", ["seed", "reset", "step", "set_opponent", "set_parameters", "restore", "load_states"])
def test_a_refused_verb_changes_nothing(sim, verb: str):
    sim.reset(seed=1)
    other = KernelSimulation(two_team.game(), 2, compiled=False, opponents={"red": "runner", "blue": "fighter"})
    other.reset(seed=2)
    verbs = {
        "seed": lambda: sim.seed(9),
        "reset": sim.reset,
        "step": sim.step,
        "set_opponent": lambda: sim.set_opponent("blue", "random"),
        "set_parameters": lambda: sim.set_parameters(damage=2.0),
        "restore": lambda: sim.restore(other.snapshot()),
        "load_states": lambda: sim.load_states(other.states.copy()),
    }
    before = sim.states.tobytes(), sim.lane_seeds.tobytes()
    sim.recorder = Listing()
    sim.recorder.refused = verb
    with pytest.raises(RuntimeError, match=f"no {verb} now"):
        verbs[verb]()
    assert (sim.states.tobytes(), sim.lane_seeds.tobytes()) == before


def test_a_verb_that_fails_is_not_reported_as_done(sim):
    sim.reset(seed=1)
    sim.recorder = listing = Listing()
    with pytest.raises(TypeError):
        sim.set_parameters(damge=2.0)
    with pytest.raises(ValueError, match="neither a script"):
        sim.set_opponent("blue", "nobody")
    assert "done" not in listing.lines
