"""A fight in which red decides aim commands at 5 Hz and blue the stick at 10 Hz: `blue_commands="stick"`.

A decision of the match is one period of 0.1 s. Red is asked in every second one, and its aim is flown in both.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from palaestra.game import Option, Role
from palaestra.games.ucav.aim_macros import AIM, AIM_PERIODS, decide_aim, fly_aim, remember_aim
from palaestra.games.ucav.body import BLUE, RED
from palaestra.games.ucav.flight_commands import put_stick
from palaestra.games.ucav.inner_loop import STICK
from palaestra.games.ucav.pilots import decide_stick
from palaestra.games.ucav.sight import observation_table, write_fight
from palaestra.games.ucav.weapons import note_places
from palaestra.games.ucav.weather import change_weather

BLUE_COMMANDS = Option(
    "blue_commands",
    "same",
    "what blue decides: the same as red, or the stick at 10 Hz against red's aim commands",
    words=("same", "stick"),
    only={"commands": "aim", "weapons": "gun", "trigger": False},
)

MIXED_ROLES = (
    Role("pilot", ("red_0",), observation_table(AIM), AIM),
    Role("stick_pilot", ("blue_0",), observation_table(STICK), STICK),
)
"""Each is the pilot of a game in which both decide the same, so that its policies play here."""


def command_mixed(s, world, actions, scratch):
    """Points red where it aimed in this period or the one before, and puts blue's stick where its pilot wants it."""
    note_places(s)
    change_weather(s, s.body[RED])
    if s.acting[RED]:
        remember_aim(s, RED, actions.pilot[0])
    fly_aim(s, RED, BLUE)
    put_stick(s, BLUE, actions.stick_pilot[0])


def observe_mixed(s, world, observations, scratch):
    """Shows both pilots what they see in a game in which both decide the same."""
    write_fight(s, RED, observations.pilot[0])
    write_fight(s, BLUE, observations.stick_pilot[0])


def script_mixed(s, world, slot, which, actions, scratch):
    """Decides for red five times a second, for blue ten times."""
    if slot == RED:
        decide_aim(s, slot, which, actions.pilot[0], scratch)
    else:
        decide_stick(s, slot, which, actions.stick_pilot[0], scratch)


def mixed_hooks(reset: Callable, exchange_fire: Callable, evaluate: Callable) -> SimpleNamespace:
    """The hooks of the fight.

    Args:
        reset: As of a fight in which both decide the same.
        exchange_fire: Likewise.
        evaluate: Rules of a period after the weapons.
    """

    def evaluate_mixed(s, world, rewards, scratch):
        """Judges a period, which is a whole decision, and asks red in every second one."""
        s.periods += 1
        s.acting[RED] = s.periods % AIM_PERIODS == 0
        return evaluate(s, rewards, 1, exchange_fire(s))

    return SimpleNamespace(
        reset=reset,
        command=command_mixed,
        evaluate=evaluate_mixed,
        observe=observe_mixed,
        script=script_mixed,
        legal=None,
    )
