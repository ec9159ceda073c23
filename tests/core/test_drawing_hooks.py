"""Hooks that draw see a match record as all hooks do: with attributes."""

import copy
import dataclasses
from typing import Any

import numpy as np
import pytest
from games import duel
from games.play import simulation

pytestmark = pytest.mark.jitless


def draw(game: Any, world: Any, s: Any) -> np.ndarray:
    picture = np.zeros((2, 2, 3), np.uint8)
    picture[0, 0, 0] = s.info.winner + 5
    assert s["info"]["winner"] == s.info.winner
    assert s.parameters.horizon == 9
    return picture


def write(game: Any, world: Any, s: Any) -> str:
    return f"decision {s.steps}, winner {s.info.winner}"


def test_a_drawing_hook_reads_the_record_by_attributes():
    game = dataclasses.replace(duel.game(), render=f"{__name__}:draw", render_text=f"{__name__}:write")
    sim = simulation(game, 2, compiled=False, parameters={"horizon": 9})
    sim.reset(seed=1)
    sim.states["info"]["winner"] = [0, 1]
    assert [sim.render(lane)[0, 0, 0] for lane in range(2)] == [5, 6]
    assert [sim.render_text(lane) for lane in range(2)] == ["decision 0, winner 0", "decision 0, winner 1"]


def draw_quarters(game: Any, world: Any, s: Any) -> np.ndarray:
    return np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


def test_pixels_of_a_hook_are_fitted_into_the_size_that_was_asked_for():
    sim = simulation(dataclasses.replace(duel.game(), render=f"{__name__}:draw_quarters"), 1, compiled=False)
    sim.reset(seed=1)
    sim.render_size = (100, 64)
    picture = sim.render()
    assert picture.shape == (64, 100, 3)
    assert not picture[:, :18].any()
    assert not picture[:, 82:].any()
    assert (picture[:32, 18:50] == [0, 1, 2]).all()
    assert (picture[32:, 50:82] == [9, 10, 11]).all()
    assert copy.deepcopy(sim).render().shape == (64, 100, 3)
