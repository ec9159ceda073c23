"""A fight of aim commands against the stick: when each side is asked, what it sees, and what flies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler
from ucav.fights import STICK, Match

from palaestra.core.compile.linker import record_view
from palaestra.evaluation import evaluate
from palaestra.games.ucav import dogfight, pursuit
from palaestra.games.ucav.body import BLUE, RED
from palaestra.games.ucav.pilots import EXPERT, JINK, LEAD
from palaestra.testing import check

pytestmark = pytest.mark.jitless

DOGFIGHT = "palaestra/UcavDogfight-Contest-v2"
MIXED: dict[str, Any] = {"commands": "aim", "blue_commands": "stick"}
AIM, FIGHT = dogfight.game(commands="aim"), dogfight.game(**MIXED)
AIMED, MOVED = (0.5, 0.75, -0.5, 0.25), (0.1, -0.2, 0.3, 0.5)
CONTROLS = ("aileron_command", "elevator_command", "rudder_command", "throttle_command")


def fight(seed: int = 1) -> Match:
    """A match in which red has aimed and blue has moved the stick, in the first of the two periods."""
    match = Match(FIGHT, seed)
    match.s.acting[:] = 1
    match.actions.pilot[0], match.actions.stick_pilot[0] = AIMED, MOVED
    return match


def play_period(match: Match) -> None:
    match.rewards[:] = 0.0
    match.s.steps += 1
    match.game.command(match.s, None, match.actions, match.scratch)
    assert not match.game.evaluate(match.s, None, match.rewards, None)


def controls(match: Match, slot: int) -> list[float]:
    return [float(match.s.body[slot][name]) for name in CONTROLS]


def see(match: Match) -> Any:
    rows: Any = record_view(np.zeros(1, match.game.observation_dtype))[0]
    match.game.observe(match.s, None, rows, match.scratch)
    return rows


def test_red_is_asked_in_every_second_period_and_blue_in_each():
    match, asked = fight(), []
    for _ in range(5):
        asked.append(match.s.acting.tolist())
        play_period(match)
    assert asked == [[1, 1], [0, 1], [1, 1], [0, 1], [1, 1]]


def test_each_period_pays_the_shaping_and_may_be_the_last():
    match = fight()
    match.s.parameters.posture_weight, match.s.parameters.horizon = 1.0, 3.0
    match.s.health[BLUE] = 0.5
    for heading_deg, winner in ((20.0, -1), (40.0, -1), (60.0, RED)):
        match.put(RED, 0.0, heading_deg)
        match.put(BLUE, 2000.0)
        play_period(match)
        assert match.rewards[RED] != 0.0
        assert match.s.info.winner == winner


def test_each_aircraft_flies_in_gusts_of_its_own_as_where_both_aim():
    mixed, both = Match(FIGHT, gust_mps=4.0), Match(AIM, gust_mps=4.0)
    mixed.s.acting[:] = 1
    for match in (mixed, both):
        with np.errstate(over="ignore"):
            match.game.command(match.s, None, match.actions, match.scratch)
    for name in ("wind_north_mps", "wind_east_mps", "wind_down_mps"):
        assert mixed.s.body[name].tolist() == both.s.body[name].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_an_aim_is_flown_in_two_periods_as_where_both_aim(seed):
    mixed, both = fight(seed), Match(AIM, seed)
    both.actions.pilot[RED] = AIMED
    for period in range(2):
        for match in (mixed, both):
            match.game.command(match.s, None, match.actions, match.scratch)
        assert controls(mixed, RED) == controls(both, RED)
        assert mixed.s.aims[RED].tobytes() == both.s.aims[RED].tobytes()
        mixed.s.acting[RED], mixed.actions.pilot[0] = 0, (0.0, 0.0, 0.0, 0.0)  # who is not asked does nothing
        for match in (mixed, both):
            body = match.put(RED, 150.0 * period, 30.0)
            body.roll_rad = 0.4
    turned = fight(seed)
    turned.actions.pilot[0].side = -AIMED[1]
    turned.game.command(turned.s, None, turned.actions, turned.scratch)
    assert controls(turned, RED) != controls(fight(seed), RED)


def test_blue_moves_the_stick_in_every_period():
    match = fight()
    play_period(match)
    assert controls(match, BLUE) == [0.1, -0.2, 0.3, 0.75]
    match.actions.stick_pilot[0].aileron = -0.5
    play_period(match)
    assert controls(match, BLUE)[0] == -0.5


def test_each_pilot_has_the_tables_of_the_game_in_which_both_decide_as_it_does():
    red, blue = FIGHT.roles
    assert (red.name, red.agents, blue.agents) == ("pilot", ("red_0",), ("blue_0",))
    assert (red.observation, red.action) == (AIM.roles[0].observation, AIM.roles[0].action)
    assert (blue.observation, blue.action) == (STICK.roles[0].observation, STICK.roles[0].action)


@pytest.mark.parametrize("seed", range(3))
def test_each_pilot_sees_what_it_sees_there_and_its_own_last_action(seed):
    match, both = fight(seed), Match(AIM, seed)
    for _ in range(2):
        play_period(match)
        match.actions.pilot[0] = (0.0, 0.0, 0.0, 0.0)
        assert see(match).pilot[0].last_action == pytest.approx(AIMED)
        assert see(match).stick_pilot[0].last_action == pytest.approx(MOVED)
    both.s.body[:], both.s.steps, both.s.periods = match.s.body, 1, 2
    both.s.last_action[:] = AIMED, MOVED
    assert see(both).pilot[RED].tobytes() == see(match).pilot[0].tobytes()
    assert see(both).pilot[BLUE].tobytes() == see(match).stick_pilot[0].tobytes()


@pytest.mark.parametrize("which", [JINK, LEAD, EXPERT])
def test_scripts_of_red_aim_and_scripts_of_blue_fly_the_stick(which):
    mixed = fight()
    for slot, game, role in ((RED, AIM, "pilot"), (BLUE, STICK, "stick_pilot")):
        alike = Match(game)
        for match in (mixed, alike):
            match.s.script_rng = 9
            with np.errstate(over="ignore"):
                match.game.script(match.s, None, slot, which, match.actions, match.scratch)
        chosen = getattr(mixed.actions, role)[0]
        assert chosen.tobytes() == alike.actions.pilot[slot].tobytes()
        assert any(chosen.tolist())


def test_a_match_lasts_as_long_in_periods_and_has_no_second_side():
    assert (FIGHT.periods, FIGHT.horizon, pursuit.game(**MIXED).horizon) == (1, 2000, 400)
    assert FIGHT.render_fps == 10.0
    assert not FIGHT.symmetric_teams
    assert FIGHT.mirror is None
    assert FIGHT.zero_sum


@pytest.mark.parametrize(
    "other", [{"commands": "stick"}, {"commands": "macro"}, {"weapons": "both"}, {"trigger": True}]
)
def test_it_goes_with_aim_commands_and_a_gun_that_fires_by_itself_alone(other):
    with pytest.raises(ValueError, match=r"blue_commands='stick' means nothing with .*: leave it out"):
        dogfight.game(**MIXED | other)


# ------------------------------------------------------------------------------------------------------- real flight


@pytest.mark.parametrize("script", ["straight", "jink"])
def test_blue_flies_as_where_both_fly_the_stick(rules, script):
    """Red is far away, and what its script draws is the same."""
    pytest.importorskip("jsbsim", reason='the aircraft need the extra "palaestra[flight]"')
    far: dict[str, Any] = {"start": "placed", "red_north_m": -15_000.0, "arena_radius_m": 100_000.0}
    flights = [rules(DOGFIGHT, 1, opponents={"red": "straight", "blue": script}, **far, **kind) for kind in ({}, MIXED)]
    for flight in flights:
        flight.reset(seed=4)
    for _ in range(8):
        for flight in flights:
            flight.step()
        stick, mixed = (flight.states["body"][0, BLUE] for flight in flights)
        assert stick.tobytes() == mixed.tobytes()
    assert flights[0].states["last_action"][0, BLUE].any()
    assert flights[0].states["body"][0, RED].tobytes() != flights[1].states["body"][0, RED].tobytes()


def zeros(seen: np.ndarray) -> np.ndarray:
    return np.zeros((*seen.shape[:2], 4))


@long_without_the_compiler
def test_zeros_shoot_down_what_weaves_by_the_stick():
    table = evaluate("palaestra/UcavPursuit-Contest-v2", zeros, "weave", matches=64, **MIXED)
    assert table.end_reasons["kill"] >= 58  # as where both aim, see test_aim_macros.py
    assert not table.swapped


def test_sides_that_decide_different_things_cannot_be_swapped():
    with pytest.raises(ValueError, match="swap"):
        evaluate(DOGFIGHT, zeros, "weave", matches=2, swap=True, **MIXED)


@pytest.mark.slow  # compiles the kernel and its representations
@pytest.mark.parametrize("name", ["UcavDogfight", "UcavPursuit"])
def test_it_passes_the_conformance_kit(name: str):
    pytest.importorskip("jsbsim", reason='the aircraft need the extra "palaestra[flight]"')
    report = check(f"palaestra/{name}-v2", "fast", **MIXED)
    assert report.passed, str(report)
