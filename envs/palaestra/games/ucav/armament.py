"""What pilots of a fight of two decide about weapons: `weapons=` and `trigger=` of the dogfight and of Pursuit.

By default the gun fires by itself and nobody decides anything. Each part below adds fields to the match record, to the
observation and to the action: the trigger one of a gun with ammunition, the launch one of missiles
(`palaestra.games.ucav.missiles`). `armed_hooks` puts the parts that a user asked for around the hooks of the game.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from palaestra.game import Choice, Field, Option, Parameter
from palaestra.games.ucav.body import COUNT, PERIOD_S, RED, opponent_of
from palaestra.games.ucav.geometry import aspect_angle_rad, distance_m
from palaestra.games.ucav.missiles import (
    FREE,
    GUIDED,
    MISSILE,
    WARNING_FIELDS,
    arm,
    fly,
    in_flight,
    launch,
    may_launch,
    write_warnings,
)
from palaestra.games.ucav.weapons import REAR_RAD, shoot
from palaestra.kernels.scalars import clip

WEAPONS = Option("weapons", "gun", "what the aircraft carry", words=("gun", "missile", "both"))
WEAPON_OPTIONS = (
    WEAPONS,
    Option(
        "trigger",
        False,
        "the pilot fires the gun, which has ammunition; without, it fires by itself",
        only={"weapons": ("gun", "both")},
    ),
)

EACH = 2
"""Missiles that an aircraft can have in the air."""
EAGER_M = 3000.0
"""Range, m, up to which scripts launch from behind; elsewhere they do wherever the seeker sees the other."""

TRIGGER_STATE = (
    ("trigger", "u1", (COUNT,)),
    ("rounds_s", "f8", (COUNT,)),  # seconds of fire that are left
)
TRIGGER_PARAMETERS = (
    Parameter(
        "gun_seconds", 5.0, 0.0, 1e6, "s", "trigger: ammunition as time of fire; 500 rounds at 6000 a minute are 5 s"
    ),
)
TRIGGER_FIELDS = (Field("gun_left", (), 0.0, 1.0, "1", "share of the gun's ammunition that is left"),)
TRIGGER = Choice("trigger", 2, ("hold", "fire"), "fires the gun")

MISSILE_STATE = (
    ("missiles", MISSILE, (COUNT * EACH,)),  # those of red, those of blue
    ("ammunition", "i8", (COUNT,)),
)
MISSILES_LEFT = Field("missiles_left", (), 0.0, 8.0, "1", "own missiles that are not launched yet")
MISSILE_FIELDS = (
    MISSILES_LEFT,
    Field("may_launch", (), 0.0, 1.0, "1", "1 while a missile can be launched"),
    Field("missile_flies", (), 0.0, 1.0, "1", "1 while an own missile follows the other"),
    *WARNING_FIELDS,
)
MISSILE_INFO = (
    Field("missiles_launched", (COUNT,), unit="1", about="missiles that it launched", dtype="i8"),
    Field("missile_hits", (COUNT,), unit="1", about="of these, hits", dtype="i8"),
    Field("missile_damage", (COUNT,), unit="1", about="health taken from the other by missiles", dtype="f8"),
)
LAUNCH = Choice("launch", 2, ("hold", "launch"), "launches a missile at the other aircraft")


# ----------------------------------------------------------------------------------------------------------- trigger


def load_gun(s, slot):
    """Fills the magazine."""
    s.rounds_s[slot] = s.parameters.gun_seconds


def pull_trigger(s, slot, action):
    """Notes the trigger."""
    s.trigger[slot] = action.trigger


def exchange_triggered_fire(s):
    """Lets the guns fire whose triggers are pulled; returns red's reward for it."""
    damage = 0.0
    for shooter in range(COUNT):
        firing = s.trigger[shooter] == 1 and s.rounds_s[shooter] > 0.0
        lost = shoot(s, shooter, opponent_of(shooter), firing)
        if firing:
            s.rounds_s[shooter] = max(s.rounds_s[shooter] - PERIOD_S, 0.0)
        damage += lost if shooter == RED else -lost
    return damage


def may_fire(s, slot, may):
    """Allows the trigger while there is ammunition."""
    may.trigger[0], may.trigger[1] = 1, 1 if s.rounds_s[slot] > 0.0 else 0


def show_gun(s, slot, o):
    """Writes `TRIGGER_FIELDS`."""
    o.gun_left = clip(s.rounds_s[slot] / s.parameters.gun_seconds, 0.0, 1.0) if s.parameters.gun_seconds > 0.0 else 0.0


def script_trigger(s, slot, action):
    """Fires while the gun would hit."""
    action.trigger = 1 if s.in_gun[slot] and s.rounds_s[slot] > 0.0 else 0


# ---------------------------------------------------------------------------------------------------------- missiles


def press_launch(s, slot, action):
    """Launches."""
    if action.launch == 1 and may_launch(s, slot, opponent_of(slot)):
        launch(s, slot, opponent_of(slot))
        s.info.missiles_launched[slot] += 1


def exchange_missiles(s):
    """Flies all missiles for one period; returns red's reward for it. Both sides' hits of one period count."""
    damage = 0.0
    for k in range(s.missiles.shape[0]):
        missile = s.missiles[k]
        if in_flight(missile):
            shooter, target = missile.shooter, missile.target
            if fly(missile, s.past_m[target], s.body[target], s.parameters):
                lost = min(s.health[target], s.parameters.missile_damage)
                s.health[target] -= lost
                s.info.missile_hits[shooter] += 1
                s.info.missile_damage[shooter] += lost
                damage += lost if shooter == RED else -lost
    return damage


def may_press(s, slot, may):
    """Allows a launch inside the envelope."""
    may.launch[0], may.launch[1] = 1, 1 if may_launch(s, slot, opponent_of(slot)) else 0


def has_missile_out(s, slot):
    """Whether a missile of an aircraft follows the other."""
    out = False
    for k in range(s.missiles.shape[0]):
        out = out or (s.missiles[k].status == GUIDED and s.missiles[k].shooter == slot)
    return out


def show_missiles(s, slot, o):
    """Writes `MISSILE_FIELDS`."""
    o.missiles_left = clip(float(s.ammunition[slot]), 0.0, 8.0)
    o.may_launch = 1.0 if may_launch(s, slot, opponent_of(slot)) else 0.0
    o.missile_flies = 1.0 if has_missile_out(s, slot) else 0.0
    write_warnings(o, s, slot)


def script_launch(s, slot, action):
    """Launches one missile after the other."""
    good = is_good_shot(s.body[slot], s.body[opponent_of(slot)])
    ready = good and not has_missile_out(s, slot) and may_launch(s, slot, opponent_of(slot))
    action.launch = 1 if ready else 0


def is_good_shot(me, other):
    """Whether a script launches: from behind once it is near enough that turning away does not help."""
    return distance_m(me, other) <= EAGER_M or aspect_angle_rad(me, other) > REAR_RAD


def exchange_weapons(states: Any) -> None:
    """Exchanges the weapons of the two sides in match records, those that they have."""
    for name in ("trigger", "rounds_s", "ammunition"):
        if name in states.dtype.names:
            states[name] = states[name][:, ::-1]
    if "missiles" in states.dtype.names:
        states["missiles"] = np.roll(states["missiles"], EACH, axis=1)
        launched = states["missiles"]["status"] != FREE
        for name in ("shooter", "target"):
            states["missiles"][name][launched] = 1 - states["missiles"][name][launched]


# ------------------------------------------------------------------------------------------------------------- hooks


def skip(s, slot):
    """Nothing to load."""


def skip_record(s, slot, record):
    """Nothing to read or to write."""


def exchange_nothing(s):
    """Nothing flies."""
    return 0.0


def armed_hooks(
    hooks: Any, periods: int, trigger: bool, missile: bool, exchange_fire: Callable, evaluate: Callable
) -> SimpleNamespace:
    """The hooks of a fight whose pilots decide about weapons.

    Args:
        hooks: Those of the same fight without: `reset`, `command`, `observe`, `script`.
        periods: Periods of a decision.
        trigger: Whether pilots pull a trigger.
        missile: Whether they launch missiles.
        exchange_fire: The guns that fire by themselves.
        evaluate: Rules of a period after the weapons.
    """
    reset, command, observe, script = hooks.reset, hooks.command, hooks.observe, hooks.script
    load, pull, fire_guns, may_pull, show_rounds, decide_fire = (
        (load_gun, pull_trigger, exchange_triggered_fire, may_fire, show_gun, script_trigger)
        if trigger
        else (skip, skip_record, exchange_fire, skip_record, skip_record, skip_record)
    )
    hang, press, fly_all, may_send, show, decide_launch = (
        (arm, press_launch, exchange_missiles, may_press, show_missiles, script_launch)
        if missile
        else (skip, skip_record, exchange_nothing, skip_record, skip_record, skip_record)
    )

    def reset_armed(s, world):
        """Sets up the match and loads the weapons."""
        reset(s, world)
        for slot in range(COUNT):
            load(s, slot)
            hang(s, slot)

    def command_armed(s, world, actions, scratch):
        """Decides about the weapons, once a decision, and flies."""
        if s.periods % periods == 0:
            for slot in range(COUNT):
                pull(s, slot, actions.pilot[slot])
                press(s, slot, actions.pilot[slot])
        command(s, world, actions, scratch)

    def evaluate_armed(s, world, rewards, scratch):
        """Guns and missiles, then the rest of the rules."""
        s.periods += 1
        dealt = fire_guns(s)
        return evaluate(s, rewards, periods, dealt + fly_all(s))

    def observe_armed(s, world, observations, scratch):
        """Shows the fight and the weapons."""
        observe(s, world, observations, scratch)
        for slot in range(COUNT):
            show_rounds(s, slot, observations.pilot[slot])
            show(s, slot, observations.pilot[slot])

    def script_armed(s, world, slot, which, actions, scratch):
        """Flies, and decides about the weapons."""
        script(s, world, slot, which, actions, scratch)
        decide_fire(s, slot, actions.pilot[slot])
        decide_launch(s, slot, actions.pilot[slot])

    def legal_armed(s, world, mask):
        """No shot without ammunition, no launch outside the envelope."""
        for slot in range(COUNT):
            may_pull(s, slot, mask.pilot[slot])
            may_send(s, slot, mask.pilot[slot])

    return SimpleNamespace(
        reset=reset_armed,
        command=command_armed,
        evaluate=evaluate_armed,
        observe=observe_armed,
        script=script_armed,
        legal=legal_armed,
    )
