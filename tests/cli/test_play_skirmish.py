"""Battles played by mouse: a click on the ground walks, on an opponent attacks, on the unit itself stops.

A click on another unit of the player selects that one.
"""

from __future__ import annotations

import pytest

from palaestra.cli.play import Session
from palaestra.core.compile.linker import record_view
from palaestra.games.skirmish.orders import AIM, EAST, FIRST, NORTH, SOUTH, STOP
from palaestra.games.skirmish.render import view_of_match

pytestmark = pytest.mark.check

pytest.importorskip("PIL")
ID = "palaestra/Skirmish-3m-v0"


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A match is played for a few decisions."""
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


def started(*agents: str) -> Session:
    session = Session(ID, agents or None, opponent="hold", teammates=None if len(agents) > 1 else "hold")
    session.start()
    return session


def pixel(session: Session, x: float, y: float) -> tuple[int, int]:
    """Where a point of the map stands in the picture."""

    column, row = view_of_match(session.sim.game.world, record_view(session.sim.states)[0]).place(x, y)
    return round(column), round(row)


def place(session: Session, slot: int) -> tuple[float, float]:
    x, y = session.sim.states["position"][0, slot].tolist()
    return x, y


def test_a_click_on_the_ground_is_an_order_to_walk_there():
    session = started()
    x, y = place(session, 0)
    assert session.wait, "two decisions a second wait for the player"
    assert session.click(*pixel(session, x, y - 5.0))
    assert session.decide([])
    assert session.sim.states["order"][0, 0] == SOUTH
    assert place(session, 0)[1] == pytest.approx(y - 1.125)


def test_a_click_on_an_opponent_in_reach_is_an_order_to_attack_it():
    session = started()
    session.sim.states["position"][0, 4] = 14.0, 16.0
    session.sim.refresh()
    assert session.click(*pixel(session, 14.0, 16.0))
    assert session.decide([])
    assert session.sim.actions["red"][0, 0] == FIRST + 1
    assert (session.sim.states["order"][0, 0], session.sim.states["target"][0, 0]) == (AIM, 4)


def test_tab_chooses_the_unit_that_the_next_click_commands():
    session = started("red_0", "red_1", "red_2")
    north, east = (pixel(session, x, y) for x, y in ((9.0, 21.0), (15.0, 16.0)))
    for clicked in (north, east, pixel(session, *place(session, 2))):
        assert not session.decide([]), "the match waits for every unit"
        assert session.click(*clicked)
        session.command("tab")
    assert session.decide([])
    assert session.sim.states["order"][0, :3].tolist() == [NORTH, EAST, STOP]


def test_a_click_on_a_unit_of_the_player_makes_it_the_one_that_the_next_click_commands():
    session = started("red_0", "red_1", "red_2")
    assert session.click(*pixel(session, *place(session, 2)))
    assert session.selected == "red_2"
    assert session.click(*pixel(session, 15.0, 16.0))
    session.decide(["."])
    assert session.sim.states["order"][0, 2] == EAST


def test_the_command_plays_a_battle_by_clicks(run, refused):
    session = started()
    x, y = place(session, 0)
    column, row = pixel(session, x, y + 5.0)
    printed = run("play", ID, "--opponent", "hold", "--headless", f"click:{column},{row},.,3")
    assert (printed.out, printed.err) == ("seed 0: not over after 3 decisions, score +0\n", "")
    assert "a click on 0, 0 does nothing for red_0" in refused(run("play", ID, "--headless", "click:0,0"))
