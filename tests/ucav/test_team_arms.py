"""Missiles and aim commands of teams, one behaviour a test."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ucav.team_fights import Match

from palaestra.core.compile.linker import record_view
from palaestra.game import Game
from palaestra.games.ucav import missiles, team, team_scripts
from palaestra.games.ucav.body import BLUE, RED

pytestmark = pytest.mark.jitless

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")


# --------------------------------------------------------------------------------------------------------- missiles

MISSILES, BOTH_ARMS = team.game(red=2, blue=2, weapons="missile"), team.game(red=2, blue=2, weapons="both")


def tail_chase(game: Game = MISSILES) -> Match:
    """red_0 is 1.5 km behind blue_1, both fly north; the others are away."""
    match = Match(game).apart()
    match.put(3, 1500.0, 0.0)
    return match


def launches(match: Match) -> np.ndarray:
    mask: Any = record_view(np.zeros(1, match.game.kernel_mask_dtype))[0]
    match.game.legal(match.s, match.game.world, mask)
    return mask.pilot["launch"][: match.count]


def move(match: Match) -> bool:
    """One decision in which the aircraft fly straight; missiles are launched as the actions say."""
    match.game.command(match.s, match.game.world, match.actions, match.scratch)
    for body in match.s.body[: match.count]:
        if body.throttle_command >= 0.0:
            body.north_m += 0.1 * body.velocity_north_mps
            body.east_m += 0.1 * body.velocity_east_mps
    return match.evaluate()


def test_a_missile_may_be_launched_at_opponents_in_range_and_cone():
    match = tail_chase()
    assert launches(match)[:, :3].tolist() == [[1, 0, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]]
    match.s.ammunition[0] = 0
    assert launches(match)[0, :3].tolist() == [1, 0, 0]
    assert not launches(match)[:, 3:].any()
    match.s.ammunition[0], match.s.alive[3] = 1, 0
    assert launches(match)[0, :3].tolist() == [1, 0, 0]


def test_a_missile_hits_its_target_and_takes_its_health():
    match = tail_chase()
    match.actions.pilot[0].launch = 2
    over, decisions = move(match), 1
    match.actions.pilot[0].launch = 0
    assert match.s.ammunition[:4].tolist() == [1, 2, 2, 2]
    while match.s.alive[3] and decisions < 100:
        over, decisions = move(match), decisions + 1
    assert not over
    assert 20 < decisions < 60
    assert match.why(3) == "kill"
    assert match.s.info.missile_hits[:4].tolist() == match.s.info.missiles_launched[:4].tolist() == [1, 0, 0, 0]
    assert match.s.info.missile_damage[0] == 1.0
    assert match.rewards.tolist() == [0.5, 0.5, -0.5, -0.5]


def test_a_missile_destroys_itself_when_its_target_has_left():
    match = tail_chase()
    match.actions.pilot[0].launch = 2
    move(match)
    match.actions.pilot[0].launch = 0
    assert match.see()[0].opponents["missile_flies"][:2].tolist() == [0.0, 1.0]
    match.s.alive[3] = 0
    move(match)
    assert match.s.missiles[0].status == missiles.GONE


def test_an_aircraft_has_two_missiles_in_flight_at_most():
    match = tail_chase()
    match.s.ammunition[0] = 8
    match.actions.pilot[0].launch = 2
    move(match)
    move(match)
    assert launches(match)[0].tolist()[:3] == [1, 0, 0]
    assert match.s.missiles["status"].tolist()[:3] == [missiles.GUIDED, missiles.GUIDED, missiles.FREE]


def test_pilots_are_warned_and_critics_count():
    match = tail_chase(BOTH_ARMS)
    match.actions.pilot[0].launch = 2
    move(match)
    seen = match.see()
    assert seen["warning"][:4].tolist() == [[0, 0], [0, 0], [0, 0], [1, 0]]
    assert seen["missiles_left"][:4].tolist() == [1, 2, 2, 2]
    state = np.ones(match.game.global_state_size, np.float32)
    match.game.global_state(match.s, match.game.world, state)
    assert state[:-1].reshape(4, -1)[:, -2:].tolist() == [[1, 0], [2, 0], [2, 0], [2, 1]]


def test_guns_fire_unless_missiles_are_the_only_weapon():
    for game, health in ((MISSILES, 1.0), (BOTH_ARMS, pytest.approx(1.0 - 0.1 * (914.4 - 400.0) / (914.4 - 152.4)))):
        match = Match(game).apart()
        match.put(2, 400.0, 0.0)
        match.evaluate()
        assert match.s.health[2] == health


def test_in_macros_a_missile_is_launched_once():
    match = tail_chase(team.game(red=2, blue=2, weapons="missile", commands="macro"))
    match.actions.pilot[0].launch = 2
    for _ in range(5):
        match.game.command(match.s, match.game.world, match.actions, match.scratch)
        match.s.periods += 1
    assert match.s.info.missiles_launched[0] == 1


def test_scripts_launch_at_their_target_when_no_missile_follows_it():
    match = tail_chase()
    match.plan(RED, "solo")
    world, scratch = match.game.world, match.scratch
    assert [team_scripts.shot_at(match.s, world, slot, team_scripts.SOLO, scratch) for slot in (0, 1)] == [2, 0]
    assert team_scripts.shot_at(match.s, world, 0, team_scripts.HOLD, scratch) == 0
    match.actions.pilot[0].launch = 2
    move(match)
    assert team_scripts.shot_at(match.s, world, 0, team_scripts.SOLO, scratch) == 0


# --------------------------------------------------------------------------------------------------- aim commands

AIMS = team.game(red=2, blue=2, commands="aim")


def test_a_pilot_aims_at_the_opponent_of_its_choice_or_the_nearest():
    match = Match(AIMS).apart()
    aimed_at = [team.aimed_at(match.s, AIMS.world, slot, choice) for slot in (0, 3) for choice in range(3)]
    assert aimed_at == [2, 2, 3, 1, 0, 1]
    match.s.alive[3] = 0
    assert team.aimed_at(match.s, AIMS.world, 0, 2) == 2
    mask: Any = record_view(np.zeros(1, AIMS.kernel_mask_dtype))[0]
    match.game.legal(match.s, AIMS.world, mask)
    assert mask.pilot["target"][:4, :3].tolist() == [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0]]


def test_an_aim_turns_towards_its_target_and_a_mate_is_avoided():
    match = Match(AIMS).apart()
    match.game.command(match.s, AIMS.world, match.actions, match.scratch)
    assert match.s.body[0].aileron_command > 0.1  # all opponents are to the right
    assert match.s.body[3].aileron_command < -0.1
    match.put(1, 200.0, 0.0, heading_deg=180.0)
    match.game.command(match.s, AIMS.world, match.actions, match.scratch)
    assert match.s.aims[0].avoiding


def test_scripts_name_their_targets_in_aim_commands():
    match = Match(AIMS).apart()
    match.s.steps = 1
    match.plan(BLUE, "sort")
    for slot in (2, 3):
        match.game.script(match.s, AIMS.world, slot, team_scripts.SORT, match.actions, match.scratch)
    assert sorted(match.actions.pilot["target"][2:4].tolist()) == [1, 2]
