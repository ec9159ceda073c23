"""TeamTrap: the worth of pairs of places, its optimum, the hill around the start, and the share of uniform play."""

from typing import Any

import numpy as np
import pytest
from games.play import simulation

from palaestra.games.teams import trap

pytestmark = pytest.mark.jitless

AXIS = np.linspace(-1.0, 1.0, 201)


def paid(pairs: Any, **parameters: float) -> Any:
    """Matches in which the two agents have chosen these places ``[N, 2]``."""
    sim: Any = simulation(trap.game(), len(pairs), autoreset_mode="off", parameters=parameters)
    sim.reset(seed=0)
    sim.step(np.asarray(pairs, np.float32)[..., None])
    return sim


def test_the_peak_is_the_best_pair_and_the_hill_the_only_other_top():
    for width in (0.02, 0.2, 0.39):
        worths = np.array([[trap.worth(x, y, width) for x in AXIS] for y in AXIS])
        inner = worths[1:-1, 1:-1]
        beside = [worths[1 + i : 200 + i, 1 + j : 200 + j] for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        tops = np.argwhere(np.all([inner > other for other in beside], axis=0)) + 1
        assert AXIS[tops] == pytest.approx(np.array([[-0.5, -0.5], [0.6, 0.6]]))
        assert (trap.worth(-0.5, -0.5, width), trap.worth(0.6, 0.6, width)) == (0.6, 1.0)
        assert worths.max() == pytest.approx(1.0)


def test_from_the_middle_the_way_uphill_leads_to_the_hill():
    worths = np.array([trap.worth(x, x, 0.2) for x in np.linspace(-0.5, 0.0, 51)])
    assert (np.diff(worths) < 0).all()


def test_both_are_paid_the_same_once_and_win_above_the_hill_alone():
    sim = paid([(0.6, 0.6), (-0.5, -0.5), (0.6, -0.5), (0.6, 0.6 + 0.2), (0.6, 0.6 + 0.21)])
    worths = [1.0, 0.6, 0.6 * np.exp(-3.78125), np.exp(-0.5), np.exp(-0.55125)]
    np.testing.assert_allclose(sim.rewards[:, 0], worths, rtol=1e-6)
    assert (sim.rewards[:, 0] == sim.rewards[:, 1]).all()
    assert sim.info["winner"].tolist() == [0, -1, -1, 0, -1]
    assert sim.terminated.all()


def test_uniform_play_wins_the_share_that_the_page_states():
    side = (np.arange(400) + 0.5) / 200 - 1
    pairs = np.stack(np.meshgrid(side, side), -1)
    squares = ((pairs - trap.PEAK_AT) ** 2).sum(-1)
    assert (np.exp(-squares / 0.08) > 0.6).mean() == pytest.approx(np.pi * 0.04 * np.log(5 / 3) / 2, rel=0.01)
    assert np.pi * 0.04 * np.log(5 / 3) / 2 == pytest.approx(0.0321, abs=5e-5)


def test_each_script_chooses_its_top():
    for script, reward in (("hill", 0.6), ("peak", 1.0)):
        sim: Any = simulation(trap.game(), 2, autoreset_mode="off", opponents={"agent": script})
        sim.reset(seed=0)
        sim.step()
        assert sim.rewards == pytest.approx(reward)
