"""Pictures, texts and clicks of the games on a grid."""

from typing import Any

import numpy as np
import pytest
from games.play import started

from palaestra.drawing.colors import PANEL, TEAMS
from palaestra.games.grid import grid_battle as battle
from palaestra.games.grid import grid_picture as picture
from palaestra.games.grid import grid_pursuit as pursuit

pytestmark = pytest.mark.jitless

LAST_MOVE = {"soldier": 12, "predator": 4, "prey": 8}
"""Number of the last alternative of each role that is no hit."""


def drawn(sim: Any) -> np.ndarray:
    return np.asarray(picture.draw(sim.game, sim.game.world, sim.states[0]))


def clicked(sim: Any, slot: int, row: int, column: int) -> Any:
    x, y = picture.board_of(sim.game.world.size).center(row, column)
    return picture.click(sim.game, sim.game.world, sim.states[0], slot, int(x), int(y))


@pytest.mark.parametrize("size", [20, 45, 90])
def test_each_agent_is_a_place_in_the_colour_of_its_team(size):
    sim = started(battle.game(map_size=size, red=5, blue=5), compiled=False)
    s, board, pixels = sim.states[0], picture.board_of(size), drawn(sim)
    for slot in range(10):
        x, y = board.center(int(s["row"][slot]), int(s["column"][slot]))
        beside = 0 if board.side < 12 else int(0.25 * board.side)  # an agent may wear its number in the middle
        assert tuple(pixels[int(y) - beside, int(x)]) == TEAMS[s["team"][slot]]
    free = np.argwhere(s["cell"][2 : 2 + size, 2 : 2 + size] == 0)[0]
    x, y = board.center(*free)
    assert tuple(pixels[int(y), int(x)]) == PANEL


def test_who_has_fewer_hit_points_is_darker_and_the_dead_are_not_drawn():
    sim = started(battle.game(map_size=90, red=1, blue=1), compiled=False)
    s = sim.states[0]
    x, y = (int(v) for v in picture.board_of(90).center(int(s["row"][0]), int(s["column"][0])))
    brightness = []
    for points in (100, 50, 1):
        s["hit_points"][0] = points
        brightness.append(int(drawn(sim)[y, x].sum()))
    assert brightness == sorted(brightness, reverse=True)
    assert len(set(brightness)) == 3
    s["alive"][0] = 0
    assert tuple(drawn(sim)[y, x]) == PANEL


def test_the_text_has_a_letter_for_each_agent_and_says_how_many_live():
    sim = started(pursuit.game(map_size=30, predators=3, prey=2), compiled=False)
    s = sim.states[0]
    s["hit_points"][0] = 30
    head, *lines = picture.write(sim.game, sim.game.world, s).split("\n")
    assert "predator (x) 3, prey (o) 2" in head
    letters = [lines[s["row"][k]][s["column"][k]] for k in range(5)]
    assert letters == ["x", "X", "X", "O", "O"]
    assert sum(letter != "." for line in lines for letter in line) == 5


def test_a_large_map_has_several_cells_a_character():
    sim = started(battle.game(map_size=200, red=9, blue=9), compiled=False)
    head, *lines = picture.write(sim.game, sim.game.world, sim.states[0]).split("\n")
    assert "4 x 4 cells a character" in head
    assert {len(lines), *map(len, lines)} == {50}


@pytest.mark.check
@pytest.mark.parametrize("rules", [battle, pursuit])
def test_a_click_means_what_the_mask_allows_and_nothing_else(rules):
    teams = {"red": 30, "blue": 30} if rules is battle else {"predators": 30, "prey": 30}
    sim = started(rules.game(map_size=20, **teams), compiled=False)
    for team in sim.game.teams:
        sim.set_opponent(team, "wander" if team == "prey" else "rush")
    for _ in range(3 if rules is battle else 1):  # opponents stand side by side
        sim.step()
    s, world = sim.states[0], sim.game.world
    fighters = np.zeros(2, int)
    for slot in np.flatnonzero(s["alive"])[::5].tolist():
        role, index = sim.game.role_of(slot)
        allowed = set(np.flatnonzero(sim.buffers.masks[role.name]["act"][0, index]).tolist())
        found = {}
        for cell in np.ndindex(20, 20):
            meant = clicked(sim, slot, *cell)
            if isinstance(meant, int):
                found[meant] = cell
            elif meant is not None:
                other = sim.game.agents.index(meant)
                assert (s["row"][other], s["column"][other]) == cell
                assert other != slot
                assert s["team"][other] == s["team"][slot]
        assert set(found) == allowed
        fighters[s["team"][slot]] += max(allowed) > LAST_MOVE[role.name]
        assert found[0] == (s["row"][slot], s["column"][slot])
    assert fighters[0] > 0
    assert (fighters[1] > 0) == (rules is battle)
    assert picture.click(sim.game, world, s, 0, 0, 0) is None
