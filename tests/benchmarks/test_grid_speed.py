"""The speed measurements of battles on a grid: what is compared is the same game."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import grid_speed
from measurement import NotHere
from palaestra import registry
from palaestra.core.run.kernel import KernelSimulation

pytestmark = pytest.mark.slow


def test_without_masks_the_same_match_is_played():
    game, _ = registry.make_game(grid_speed.SMALL, observation="windows")
    alone = replace(game, legal=None, step=grid_speed.step_without_masks)
    sims: list[Any] = [KernelSimulation(rules, 2, compiled=False) for rules in (game, alone)]
    rng = np.random.default_rng(0)
    for sim in sims:
        sim.reset(seed=0)
    for _ in range(10):
        actions = rng.integers(grid_speed.ACTIONS, size=sims[0].actions.shape)
        for sim in sims:
            sim.actions[...] = actions
            sim.step()
    np.testing.assert_array_equal(sims[0].observations, sims[1].observations)
    np.testing.assert_array_equal(sims[0].states["cell"], sims[1].states["cell"])
    assert sims[0].info["illegal"].sum() > 0


def test_all_stand_where_they_are_placed():
    sim: Any = registry.make_batch(grid_speed.BATTLE, 1, compiled=False)
    sim.reset(seed=0)
    cells = np.stack(np.unravel_index(np.arange(0, 2 * 2 * grid_speed.TEAM, 2), (grid_speed.SIDE, grid_speed.SIDE)), 1)
    grid_speed.place(sim, cells)
    rows = sim.observations["own"][0, :, 4]
    np.testing.assert_array_equal(rows, cells[:, 0])
    assert np.count_nonzero(sim.states["cell"] > 0) == 2 * grid_speed.TEAM


def test_a_missing_peer_is_named(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(grid_speed.importlib, "import_module", missing)
    with pytest.raises(NotHere, match=r"magent2==0\.3\.4"):
        grid_speed.next_to_magent(print)
