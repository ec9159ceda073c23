"""Every game has a picture, which names the preset; a game that draws none shows its match record as text."""

import copy
from typing import Any

import gymnasium
import numpy as np
from games import duel, two_team
from games.play import simulation

from palaestra import make_batch, register
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.screen import render_modes
from palaestra.drawing import plain_picture


def test_a_game_without_a_picture_shows_its_record():
    sim = simulation(duel.game(), 2, compiled=False)
    sim.reset(seed=1)
    before = sim.states.copy()
    first, other = sim.render(0), sim.render(1)
    assert first.dtype == np.uint8
    assert first.shape[1:] == (plain_picture.WIDTH, 3)
    np.testing.assert_array_equal(first, other)
    sim.states["side"][1] = 2
    assert (sim.render(1) != first).any()
    sim.states["side"][1] = before["side"][1]
    assert all(np.array_equal(sim.states[name], before[name]) for name in before.dtype.names or ())


def test_the_lines_of_the_picture():
    sim = simulation(two_team.game(), 1, compiled=False, parameters={"horizon": 9})
    sim.reset(seed=1)
    sim.states["alive"][0, :] = 0, 1, 1, 1, 1
    sim.states["acting"][0, 1:] = 1, 0, 1, 0
    lines = dict(plain_picture.lines_of(sim.game, sim.states[0]))
    assert lines["decision"] == "0 of 9"
    assert lines["match"] == "running, winner nobody"
    names = sim.game.agents
    assert lines["in the match"] == f"{names[1]} ({names[2]}) {names[3]} ({names[4]})"
    assert set(lines) >= {name for name, *_ in sim.game.state}
    sim.states["info"]["end_reason"][0], sim.states["info"]["winner"][0] = 1, 1
    assert dict(plain_picture.lines_of(sim.game, sim.states[0]))["match"] == "horizon, winner blue"


def test_a_game_without_a_text_prints_the_same_lines():
    sim = simulation(duel.game(), 1, compiled=False)
    sim.reset(seed=1)
    assert "ansi" in render_modes(sim.game)
    lines = [line.split(maxsplit=1)[0] for line in sim.render_text().splitlines()]
    assert lines[:2] == ["game", "decision"]
    assert set(lines) >= {name for name, *_ in duel.game().state}


def test_gymnasium_makes_it_with_a_render_mode():
    register("tests/Plain-v0", duel.game)
    env: Any = gymnasium.make("tests/Plain-v0", render_mode="rgb_array")
    assert isinstance(env.unwrapped, GameEnv)
    env.reset(seed=1)
    assert np.ndim(env.render()) == 3


def test_pictures_name_the_preset_unless_the_user_changes_what_it_fixes():
    def title(**keywords: Any) -> str:
        sim = make_batch("palaestra/TeamGridSoccer-3x4-v0", compiled=False, **keywords)
        sim.reset(seed=0)
        assert sim.game.name == "TeamGridSoccer"
        assert copy.deepcopy(sim).draw().words == sim.draw().words
        return sim.draw().words[0].words

    assert title() == title(horizon=50) == "TeamGridSoccer-3x4"
    assert title(rows=5) == title(columns=4) == "TeamGridSoccer"


def test_a_simulation_made_by_hand_has_the_name_of_the_game_in_its_picture():
    sim = simulation(duel.game(), 1, compiled=False)
    sim.reset(seed=1)
    assert sim.draw().words[0].words == sim.game.name == "Duel"
