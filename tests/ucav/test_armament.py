"""Triggers and missiles of the dogfight: actions, masks, ammunition, warnings, rewards; no engine flies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler
from ucav.fights import Match

from palaestra.core.compile.linker import record_view
from palaestra.games.ucav import dogfight, pursuit
from palaestra.games.ucav.body import BLUE, RED
from palaestra.games.ucav.missiles import FREE, GONE, GUIDED

pytestmark = pytest.mark.jitless

TRIGGER = dogfight.game(trigger=True)
MISSILE = dogfight.game(weapons="missile")
BOTH: Any = dogfight.game(weapons="both", trigger=True, commands="macro")


def chase(game: Any, range_m: float = 2000.0, **parameters: Any) -> Match:
    return Match(game, collision_m=0.0, **parameters).chase(range_m)


def decide(match: Match, **choices: tuple[int, int]) -> bool:
    """One decision in which nothing moves but missiles, with the choices of red and blue."""
    for name, both in choices.items():
        for slot in (RED, BLUE):
            setattr(match.actions.pilot[slot], name, both[slot])
    match.rewards[:] = 0.0
    match.s.steps += 1
    over = False
    for _ in range(match.game.periods):
        match.game.command(match.s, match.game.world, match.actions, match.scratch)
        over = over or bool(match.game.evaluate(match.s, match.game.world, match.rewards, match.scratch))
    return over


def mask(match: Match) -> Any:
    rows: Any = record_view(np.zeros(1, match.game.kernel_mask_dtype))[0]
    match.game.legal(match.s, match.game.world, rows)
    return rows.pilot


def test_by_default_nobody_decides_about_weapons():
    game = dogfight.game()
    assert game.legal is None
    assert [f.name for f in game.roles[0].action] == ["aileron", "elevator", "rudder", "throttle"]
    assert "missiles" not in (game.state_dtype.names or ())


# ----------------------------------------------------------------------------------------------------------- trigger


def test_a_gun_whose_trigger_is_not_pulled_hurts_nobody_and_shows_that_it_would_hit():
    match = chase(TRIGGER, 400.0)
    decide(match, trigger=(0, 0))
    assert (match.s.health[BLUE], match.see()[RED].in_my_gun) == (1.0, 1.0)
    decide(match, trigger=(1, 0))
    assert match.s.health[BLUE] < 1.0


def test_the_trigger_uses_ammunition_whether_the_gun_hits_or_not():
    match = chase(TRIGGER, 2000.0, gun_seconds=0.3)
    for left in (2 / 3, 1 / 3, 0.0):
        assert list(mask(match)[RED].trigger) == [1, 1]
        decide(match, trigger=(1, 0))
        assert match.see()[RED].gun_left == pytest.approx(left, abs=1e-9)
        assert match.see()[BLUE].gun_left == 1.0
    assert list(mask(match)[RED].trigger) == [1, 0]
    match.chase(400.0)
    decide(match, trigger=(1, 0))
    assert match.s.health[BLUE] == 1.0


# ---------------------------------------------------------------------------------------------------------- missiles


def test_a_launch_is_legal_inside_the_envelope_alone():
    match = chase(MISSILE)
    assert [list(mask(match)[slot].launch) for slot in (RED, BLUE)] == [[1, 1], [1, 0]]
    match.chase(6000.0)
    assert list(mask(match)[RED].launch) == [1, 0]


def test_a_launch_takes_a_missile_warns_the_other_and_is_counted():
    match = chase(MISSILE)
    assert (match.see()[RED].missiles_left, match.see()[RED].may_launch) == (2.0, 1.0)
    decide(match, launch=(1, 1))  # blue's is not legal and does nothing
    red, blue = match.see()[RED], match.see()[BLUE]
    assert (red.missiles_left, red.missile_flies, blue.missiles_left, blue.missile_flies) == (1.0, 1.0, 2.0, 0.0)
    assert (list(red.warning), list(blue.warning)) == ([0.0, 0.0], [1.0, 0.0])
    assert blue.warning_direction[0, 0] == pytest.approx(-1.0, abs=1e-3)
    assert list(match.s.info.missiles_launched) == [1, 0]


def test_a_macro_of_five_periods_launches_one_missile():
    match = chase(BOTH)
    decide(match, launch=(1, 0), trigger=(0, 0))
    assert (match.s.info.missiles_launched[RED], match.s.ammunition[RED]) == (1, 1)


def test_a_hit_is_a_kill_and_is_paid_to_both_exactly():
    match = chase(MISSILE)
    decide(match, launch=(1, 0))
    total = 0.0
    for _ in range(200):
        over = decide(match, launch=(0, 0))
        assert match.rewards[RED] == -match.rewards[BLUE]
        total += match.s.info.missile_damage[RED]
        if over:
            break
    assert (match.reason, match.s.info.winner) == ("kill", RED)
    assert (match.s.info.missile_hits[RED], match.s.info.missile_damage[RED], match.s.health[BLUE]) == (1, 1.0, 0.0)
    assert match.s.info.reward_damage == pytest.approx(1.0)
    assert match.s.info.reward_end == 1.0


def test_a_missile_may_take_a_part_of_the_health():
    match = chase(MISSILE, missile_damage=0.4)
    decide(match, launch=(1, 0))
    while match.s.missiles[0].status == GUIDED:
        assert not decide(match, launch=(0, 0))
    assert match.s.health[BLUE] == pytest.approx(0.6)
    assert match.reason == match.game.end_reason(0)


def test_without_a_gun_nobody_is_hit_by_one():
    match = chase(MISSILE, 400.0)
    decide(match, launch=(0, 0))
    assert match.s.health[BLUE] == 1.0


def test_the_target_of_the_pursuit_has_no_missiles():
    match = Match(pursuit.game(weapons="both"))
    assert list(match.s.ammunition) == [2, 0]


def test_scripts_launch_one_missile_after_the_other_and_fire_when_the_gun_hits():
    match = chase(BOTH)
    match.s.steps = 1
    for slot in (RED, BLUE):
        with np.errstate(over="ignore"):
            BOTH.script(match.s, BOTH.world, slot, 0, match.actions, match.scratch)
    assert [match.actions.pilot[slot].launch for slot in (RED, BLUE)] == [1, 0]
    assert [match.actions.pilot[slot].trigger for slot in (RED, BLUE)] == [0, 0]
    decide(match, launch=(1, 0), trigger=(0, 0))
    match.s.in_gun[RED] = 1
    BOTH.script(match.s, BOTH.world, RED, 0, match.actions, match.scratch)
    assert (match.actions.pilot[RED].launch, match.actions.pilot[RED].trigger) == (0, 1)


def test_exchanged_teams_have_each_others_weapons():
    match = chase(BOTH)
    decide(match, launch=(1, 0), trigger=(0, 1))
    states: Any = np.zeros(1, BOTH.state_dtype)
    states[0] = match.s
    actions: Any = np.zeros(1, BOTH.action_dtype)
    dogfight.exchange("macro", states, actions)
    missiles = states[0]["missiles"]
    assert [int(m["status"]) for m in missiles] == [FREE, FREE, GUIDED, FREE]
    assert (int(missiles[2]["shooter"]), int(missiles[2]["target"])) == (BLUE, RED)
    assert list(states[0]["ammunition"]) == [2, 1]
    assert states[0]["rounds_s"][RED] < states[0]["rounds_s"][BLUE]


def test_a_record_is_free_again_when_its_missile_is_gone():
    match = chase(MISSILE, red_missiles=8.0)
    for _ in range(2):
        decide(match, launch=(1, 0))
    assert list(mask(match)[RED].launch) == [1, 0]
    match.s.missiles[1].status = GONE
    assert list(mask(match)[RED].launch) == [1, 1]


# ------------------------------------------------------------------------------------------------------- real flight


@long_without_the_compiler
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["compiled", "jsbsim"])
def test_a_fight_with_all_weapons_is_zero_sum_on_either_engine(engine):
    pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
    from palaestra import make_batch

    options: Any = {"weapons": "both", "trigger": True, "engine": engine}
    players = {"red": "expert", "blue": "expert"}
    sim = make_batch("palaestra/UcavDogfight-v2", 8, opponents=players, start="offensive", **options)
    sim.reset(seed=3)
    for _ in range(120):
        sim.step()
        assert (sim.rewards.sum(1) == 0.0).all()
        assert math.isfinite(float(sim.rewards.sum()))
    sim.close()
