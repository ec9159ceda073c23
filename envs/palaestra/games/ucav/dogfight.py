"""UcavDogfight: two F-16s fight with guns; an aircraft loses when it has no health left, crashes or breaks.

## Description

A UCAV is an unmanned combat aerial vehicle. `palaestra/UcavDogfight-v2` is a within-visual-range gun fight of two of
them with full six-degree-of-freedom dynamics. ``red_0`` fights ``blue_0``; both have the same
aircraft, the same gun and, over the matches, the same distribution of starting positions. `palaestra/UcavPursuit-v2`
(`palaestra.games.ucav.pursuit`) is the same fight with an unarmed target.

There is no trigger: as in the contests that these rules follow, **the gun fires by itself while the solution is
there**, that is while the other aircraft is inside a cone around the nose (half-angle `cone_half_angle_deg`) and at a
range from 152 m to 914 m (500 to 3000 ft). Damage per second falls linearly from `damage_per_second` at the near end
to nothing at the far end. Health starts at 1. The cone has a half-angle of 15 degrees, in
`palaestra/UcavDogfight-Contest-v2` of 1, as in the contests; it may widen while the match lasts
(``cone_half_angle_deg=1, cone_step_deg=1`` is 1, 2 and 3 degrees from 0, 100 and 150 s). With ``gun_aspect_deg=135`` no
shot into the forward quarter hits, that is from where the other's tail is more than 135 degrees off the line of sight.

**Aircraft collide**: if at any moment of a tenth of a second they come nearer than `collision_m`, both are lost. Each
counts as flying straight within it, so that a pass at 700 m/s is not missed.

An aircraft outside the arena, a cylinder about the origin of the match, loses health too, and that counts as damage
dealt by the other: flight does not lead to a draw.

`weapons` and `trigger` give the pilots more to decide, and more to see. With ``trigger=True`` the gun fires while the
pilot says so, 5 s in all (`gun_seconds`). With ``weapons="missile"`` or ``"both"`` each aircraft has two missiles
(`red_missiles`, `blue_missiles`), as in `palaestra/UcavEvade-v0` (`palaestra.games.ucav.evade`), and a launch is a
masked choice: legal up to 30 degrees off the nose, from 1 to 5 km, where the seeker sees the other, that is from behind
rather than from ahead. A missile passes within 8 m (`lethal_m`) or misses; a hit takes `missile_damage`, all of the
health. The warning receiver shows the two next missiles that follow the aircraft.

## Flight

The aircraft is JSBSim's F-16 with its own flight control system, gear up, at 60 frames a second. Its files are read
from the user's installation. `engine="compiled"` makes machine code of them, every table and component in the order in
which JSBSim computes: after one frame forces are JSBSim's to 1e-7 lbf, after 60 s of flight places are its own to a
micrometre or less, and a frame takes a twenty-fifth of the time. `engine="jsbsim"` is JSBSim itself.

In JSBSim's file the ailerons change the symmetric lift and drag: two signs and a gain of the flaperon mixer are wrong,
and learners find the thrust that rolling right pays. `airframe="f16"` corrects them when the file is read,
`"f16-jsbsim"` flies it as installed. Energy height gained per second in a full roll at idle from 250 m/s and 6 km, and
how far apart mirrored flights of 20 s end:

| | rolling right | wings level | rolling left | mirrored flights |
|---|---|---|---|---|
| as installed | +50 m/s | -56 m/s | -165 m/s | 387 m |
| corrected | -59 m/s | -56 m/s | -59 m/s | 34 m |

`planet="still"` is a sphere that does not turn: the same flight ends at the same place, to 0.03 m after 60 s, whatever
its heading (59 m over the turning Earth, `"wgs84"`). Wind, gusts, the density of the air and a payload are among the
parameters.

## Action Space

* `commands="stick"` decides at 10 Hz.
* `commands="macro"` decides at 2 Hz; an inner loop (`inner_loop`) flies a macro for five periods of 0.1 s.
* `commands="aim"` decides at 5 Hz where the nose is to point relative to the other aircraft, and how fast to fly; the
  scripts' own law flies it and keeps off the ground and inside the arena. All zeros is pure pursuit at 250 m/s.
* `commands="aim"` with `blue_commands="stick"`: red aims at 5 Hz, and blue flies the stick at 10 Hz. A decision is then
  0.1 s, and red, asked in every second one (``acting`` in ``info``), flies its aim for both.

<!-- table: action -->

## Observation Space

Float32, scaled (the unit column gives the value of 1), clipped to its bounds. Nothing in it depends on where north
is; the only place that it knows is the centre of the arena.

<!-- table: observation -->

## Rewards

Zero-sum, exactly: one number is computed, red gets it and blue gets its negative.

* **damage**: health that blue lost minus health that red lost in this decision. Who alone crashes, breaks or leaves
  the tables loses the health that was left: every lost match costs 2, however it is lost, less the damage dealt;
* **end**: +1 if a rule ended the match for red, -1 if for blue, 0 after a draw, `horizon_reward` at the horizon for
  more health;
* **posture, altitude, energy, aim**: shaping by who has whom before the nose, height over the floor, energy height and
  aim at gun range, each with a weight among the parameters: 1, 1, 0.2 and 2, and none in the contest's rules, where
  nothing is paid before a gun hits. A shaping item is ``weight * (shaping_discount * F(next) - F(now))`` of a
  potential ``F`` that is red's minus blue's, so it changes no optimal policy (Ng, Harada and Russell, ICML 1999) when
  `shaping_discount` (0.99) is the learner's discount. ``F`` is 0 after an end by rule.

``info`` holds each item's sum over the match, as red's, and for both sides how often they came near a shot
(`opportunities`), for how long, for how long they had it (`cone_seconds`), and what came of it (`gun_damage`, and
`aspect_damage` by where it came from).

## Starting State

`start` names the set-up, as a keyword or for one match: ``env.reset(options={"start": "head_on"})``; lanes of a batch
may have each its own.

| start | |
|---|---|
| ``"mix"`` | one of the next three, with `neutral_weight`, `red_behind_weight` and `blue_behind_weight` |
| ``"neutral"`` | positions and headings are one image of the other under half a turn, at any angle off |
| ``"offensive"`` | red sits within 45 degrees of blue's tail and points within 20 degrees of it |
| ``"defensive"`` | the same with the sides exchanged |
| ``"head_on"`` | as neutral, each within 10 degrees of the other's nose |
| ``"high_aspect"`` | as neutral, each 20 to 45 degrees off the other's nose: they pass side by side |
| ``"energy_high"``, ``"energy_low"`` | as neutral; red (blue) is 1 km higher and faster |
| ``"placed"`` | place, height, heading and speed of each side are parameters: ``red_north_m=-3000`` |

Heights and speeds are drawn for each aircraft alone from their ranges, wings level; ranges differ from behind
(`behind_range_low_m`, `behind_range_high_m`) and elsewhere (`neutral_range_low_m`, `neutral_range_high_m`).

## Episode End

A match ends by rule when an aircraft has no health left (``kill``, ``fled``), sinks below `floor_m` (``crash``),
pulls more than 9 g for over half a second or 12 g at all, either way up (``overload``), leaves the tables of the
aerodynamic model (``off_tables``) or has a state that is not a number (``not_finite``): it loses. If both do in the
same tenth of a second the match is a draw (``both``), and so it is if they touch (``collision``): nothing more is paid,
and the damage of before stands, so ramming gives back nothing. At the horizon (200 s) it is truncated and `info.winner`
is the aircraft that dealt more damage.

## Scripts

Targets: ``straight``, ``level_turn``, ``weave``, ``jink`` (hard turns of random side and slant), ``random_macros`` and
``vertical`` (loops). Hunters, a ladder: ``pure_pursuit``, ``lag_pursuit``, ``lead_pursuit``, ``expert``; ``pure_fast``
hunts at full speed. All keep off the ground, inside the arena and out of each other's way. ``"expert:0.5"`` looks less
often, misjudges where the other is and pulls less, and crashes no more than at full strength.

Score (paid wins and half of the undecided; in brackets paid wins and losses) by the stick with a cone of 1 degree, 512
matches each from both sides, under four rules:

| | `-Contest` | ``gun_aspect_deg=135`` | and ``cone_step_deg=1`` | and ``horizon_reward=1`` |
|---|---|---|---|---|
| lag v pure | .60 (.34, .15) | .49 (.11, .12) | .50 (.16, .16) | .54 |
| lead v lag | .62 (.46, .22) | .50 (.12, .13) | .52 (.17, .15) | .48 |
| expert v lead | .60 (.48, .28) | .48 (.10, .15) | .45 (.17, .27) | .42 |
| expert v pure | .70 (.55, .15) | .50 (.13, .14) | .48 (.20, .25) | .46 |

The last column counts leads at the horizon, which are paid there, as wins. What the expert does better is the head-on
pass: where no shot from ahead hits, the scripts are alike and the clock ends most matches. With the cone of 15 degrees
the scores are .64, .62, .53 and .57. By aim commands and by macros it is no ladder: ``expert`` has .29 against
``lead_pursuit`` by the former and collides with itself in 13 % of matches by the latter.

## Arguments

With ``commands="macro"``, ``inner_loop="ppo"`` is a network that learnt the commands of `palaestra/UcavTrack-v3`, half
of them wide ones like those of macros. Hunting in UcavPursuit, the script ``"lag_pursuit"`` shot down 64 of 64 targets
that turn level and 64 of 64 that weave over ``"pid"``, 62 and 63 over ``"ppo"``, and crashed in none.
In UcavPursuit-Contest (200 s) over ``"ppo"``, two scripts lost their own aircraft in more than one of 64 matches:
``"pure_fast"`` in 5 and ``"vertical"`` in 4; in UcavDogfight-Contest 6 and 3. Some targets leave the arena and lose
their health there (``fled``): in UcavDogfight ``"vertical"`` in 11 of 64 matches over ``"ppo"`` and ``"random_macros"``
in 9 (1 and 0 over ``"pid"``).

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v2: shaping is on and the cone is wide; every lost match costs the same; aircraft collide; starts have names.
* v1, v0: before the first release: the rules of ``-Contest``, compiled and flown by JSBSim (`engine`, `airframe`,
  `planet`), without collisions, and with a crash that cost half of being shot down.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from palaestra.game import Field, Game, Option, Parameter, Role, with_options
from palaestra.games.ucav.aim_macros import AIM, AIM_PERIODS, script_aim
from palaestra.games.ucav.armament import (
    LAUNCH,
    MISSILE_FIELDS,
    MISSILE_INFO,
    MISSILE_STATE,
    TRIGGER,
    TRIGGER_FIELDS,
    TRIGGER_PARAMETERS,
    TRIGGER_STATE,
    WEAPON_OPTIONS,
    armed_hooks,
    exchange_weapons,
)
from palaestra.games.ucav.autopilot import AUTOPILOT
from palaestra.games.ucav.body import BLUE, BODY, COUNT, PERIOD_S, RED, opponent_of
from palaestra.games.ucav.flight import FLIGHT_OPTIONS, flight_of_game
from palaestra.games.ucav.flight_commands import command_aim, command_macro_network, command_macro_pid, command_stick
from palaestra.games.ucav.inner_loop import INNER_LOOP_SCRATCH, STICK, load_inner_loop
from palaestra.games.ucav.limits import (
    FAILURES,
    NO_FAILURE,
    NOT_FINITE,
    extend_overload_s,
    find_failure,
)
from palaestra.games.ucav.macros import MACRO, MACRO_PERIODS
from palaestra.games.ucav.missiles import MISSILE_PARAMETERS
from palaestra.games.ucav.mixed_commands import BLUE_COMMANDS, MIXED_ROLES, mixed_hooks
from palaestra.games.ucav.pilots import MEMORY, PILOT_SCRATCH, SCRIPTS, script_macro, script_stick
from palaestra.games.ucav.shaping import note_potentials, shape
from palaestra.games.ucav.sight import observation_table, write_fight
from palaestra.games.ucav.starts import START_PARAMETERS, set_up
from palaestra.games.ucav.weapons import (
    GUN_INFO,
    GUN_PARAMETERS,
    closest_approach_m,
    fire,
)
from palaestra.games.ucav.weather import WEATHER

STICK_PERIODS = 1
"""Periods in one decision with the stick: 10 Hz. `MACRO_PERIODS` are those of a macro."""
DURATION_S = 200.0
"""Length of a match, s, by default: a round of the contest."""

END_REASONS = ("kill", "fled", *FAILURES, "both", "collision")
RUNNING, KILL, FLED, FIRST_FAILURE, BOTH, COLLISION = 0, 2, 3, 4, 4 + len(FAILURES), 5 + len(FAILURES)
"""Numbers of the end reasons: 0 and 1 belong to the suite."""

PARAMETERS = (
    *GUN_PARAMETERS,
    Parameter("arena_radius_m", 15_000.0, 1000.0, 1e6, "m", "radius of the arena about the origin"),
    Parameter("arena_drain", 0.05, 0.0, 100.0, "1/s", "health lost outside the arena"),
    Parameter("floor_m", 305.0, 0.0, 5000.0, "m", "height below which an aircraft has crashed (1000 ft)"),
    Parameter("collision_m", 15.0, 0.0, 1000.0, "m", "aircraft that come nearer than this are both lost"),
    *START_PARAMETERS,
    Parameter("horizon_reward", 0.0, 0.0, 100.0, "1", "paid at the horizon to whom more health is left"),
    Parameter("posture_weight", 1.0, -100.0, 100.0, "1", "weight of the shaping by angles", shaping=True),
    Parameter(
        "altitude_weight", 1.0, -100.0, 100.0, "1", "weight of the shaping by height over the floor", shaping=True
    ),
    Parameter("energy_weight", 0.2, -100.0, 100.0, "1", "weight of the shaping by energy height", shaping=True),
    Parameter("aim_weight", 2.0, -100.0, 100.0, "1", "weight of the shaping by aim at gun range", shaping=True),
    Parameter("shaping_discount", 0.99, 0.0, 1.0, "1", "discount in the shaping: give the learner's"),
    *WEATHER,
)

INFO = (
    *GUN_INFO,
    Field("arena_damage", (COUNT,), unit="1", about="health that the other lost outside the arena", dtype="f8"),
    Field("health", (COUNT,), unit="1", about="health left", dtype="f8"),
    Field("reward_damage", about="red's reward so far for damage", dtype="f8"),
    Field("reward_end", about="red's reward for the end", dtype="f8"),
    Field("reward_posture", about="red's shaping by angles so far", dtype="f8"),
    Field("reward_altitude", about="red's shaping by height so far", dtype="f8"),
    Field("reward_energy", about="red's shaping by energy so far", dtype="f8"),
    Field("reward_aim", about="red's shaping by aim so far", dtype="f8"),
)


STATE = (
    ("body", BODY, (COUNT,)),
    ("autopilots", AUTOPILOT, (COUNT,)),
    ("pilots", MEMORY, (COUNT,)),  # memory of the scripts
    ("past_m", "f8", (COUNT, 3)),  # north, east, up when the period began
    ("health", "f8", (COUNT,)),
    ("overload_s", "f8", (COUNT,)),  # time above the sustained load, ending now
    ("potentials", "f8", (4,)),  # at the end of the last decision
    ("last_action", "f8", (COUNT, 4)),
    ("periods", "i8"),  # periods played in this match
    ("in_gun", "u1", (COUNT,)),  # slot's gun hits
    ("in_funnel", "u1", (COUNT,)),  # slot has an opportunity
    ("lost", "i8", (COUNT,)),  # end reason of the slot, 0 while it is in the fight
)
AIMS = ("aims", MEMORY, (COUNT,))
"""What the law that flies aim commands remembers."""
INTEGRALS = ("integrals", "f8", (COUNT, 3))
"""Integrals of the errors that a learned inner loop sees."""


# ------------------------------------------------------------------------------------------------------------ start


def reset(s, world):
    """Sets up both aircraft and fills the books."""
    set_up(s)
    note_potentials(s)


# ------------------------------------------------------------------------------------------------------------ rules


def evaluate_stick(s, world, rewards, scratch):
    """Judges a period that is a whole decision."""
    s.periods += 1
    return evaluate(s, rewards, STICK_PERIODS, exchange_fire(s))


def evaluate_macro(s, world, rewards, scratch):
    """Judges one of the five periods of a decision."""
    s.periods += 1
    return evaluate(s, rewards, MACRO_PERIODS, exchange_fire(s))


def evaluate_aim(s, world, rewards, scratch):
    """Judges one of the two periods of a decision."""
    s.periods += 1
    return evaluate(s, rewards, AIM_PERIODS, exchange_fire(s))


def evaluate(s, rewards, periods, dealt):
    """Arena, airframe, ground; then the end and the rewards: ``dealt`` is red's for what weapons did in this period.

    Returns whether a rule ended the match.
    """
    damage = dealt + drain_outside(s)
    touch = closest_approach_m(s, RED, BLUE) < s.parameters.collision_m
    for slot in range(COUNT):
        s.overload_s[slot] = extend_overload_s(s.overload_s[slot], s.body[slot])
        s.lost[slot] = COLLISION if touch else fate(s, slot)
    over = is_beaten(s, RED) or is_beaten(s, BLUE)
    end = 0.0
    if over:
        damage += forfeit(s)
        end = conclude(s)
    decision_over = s.periods % periods == 0
    if decision_over and not over and s.steps >= s.parameters.horizon:
        s.info.winner = leader(s)
        if s.info.winner >= 0:
            end = s.parameters.horizon_reward if s.info.winner == RED else -s.parameters.horizon_reward
    shaping = 0.0
    if over or decision_over:
        shaping = shape(s, over)
    s.info.health[RED], s.info.health[BLUE] = s.health[RED], s.health[BLUE]
    s.info.reward_damage += damage
    s.info.reward_end += end
    total = float(rewards[RED]) + damage + end + shaping
    rewards[RED] = total
    rewards[BLUE] = 0.0 - total
    return over


def exchange_fire(s):
    """Lets every gun hit the opponent for one period; returns red's reward for it."""
    damage = 0.0
    for shooter in range(COUNT):
        lost = fire(s, shooter, opponent_of(shooter))
        damage += lost if shooter == RED else -lost
    return damage


def drain_outside(s):
    """Takes health from every aircraft outside the arena; returns red's reward for it."""
    damage = 0.0
    for slot in range(COUNT):
        lost = drain(s, slot)
        damage += -lost if slot == RED else lost
    return damage


def drain(s, slot):
    """Takes a period's health from an aircraft outside the arena, books it as dealt by the other, and returns it."""
    body = s.body[slot]
    lost = 0.0
    if math.sqrt(body.north_m * body.north_m + body.east_m * body.east_m) > s.parameters.arena_radius_m:
        lost = min(s.health[slot], s.parameters.arena_drain * PERIOD_S)
        s.health[slot] -= lost
        s.info.arena_damage[opponent_of(slot)] += lost
        if s.health[slot] <= 0.0 and lost > 0.0 and not s.in_gun[opponent_of(slot)]:
            s.lost[slot] = FLED
    return lost


def fate(s, slot):
    """Why the aircraft is out of the fight: an end reason, or `RUNNING`."""
    failure = find_failure(s.body[slot], s.overload_s[slot], s.parameters.floor_m)
    if s.health[slot] <= 0.0 and failure != NOT_FINITE:
        return FLED if s.lost[slot] == FLED else KILL
    return FIRST_FAILURE + failure if failure != NO_FAILURE else RUNNING


def is_beaten(s, team):
    """Whether a team has no aircraft left in the fight: it has one, in the slot of its own number."""
    return s.lost[team] != RUNNING


def forfeit(s):
    """Takes the health that was left from the aircraft that alone is beaten, and returns red's reward for it.

    So a crash costs as much as being shot down.
    """
    if is_beaten(s, RED) == is_beaten(s, BLUE):
        return 0.0
    loser = RED if is_beaten(s, RED) else BLUE
    left = s.health[loser]
    s.health[loser] = 0.0
    return -left if loser == RED else left


def conclude(s):
    """Books winner and reason of a match that a rule ended; returns red's reward for it."""
    if is_beaten(s, RED) and is_beaten(s, BLUE):
        s.info.end_reason = COLLISION if s.lost[RED] == COLLISION else BOTH
        return 0.0
    loser = RED if is_beaten(s, RED) else BLUE
    s.info.winner = opponent_of(loser)
    s.info.end_reason = s.lost[loser]
    return 1.0 if loser == BLUE else -1.0


def leader(s):
    """The aircraft that dealt more damage, -1 if neither did."""
    difference = s.health[RED] - s.health[BLUE]
    if difference == 0.0:
        return -1
    return RED if difference > 0.0 else BLUE


# ------------------------------------------------------------------------------------------------------------ sight


def observe(s, world, observations, scratch):
    """Shows both pilots the same things, each from its own cockpit."""
    for slot in range(COUNT):
        write_fight(s, slot, observations.pilot[slot])


# ------------------------------------------------------------------------------------------------------------- game


def exchange(commands: str, states: Any, actions: Any) -> None:
    """Exchanges the teams, whose compiled flights are fields of the records. What only scripts remember is lost."""
    other = [BLUE, RED]
    of_slots = ("health", "overload_s", "last_action", "in_gun", "in_funnel", "lost", "alive", "acting")
    memories = [name for name in ("aims", "integrals") if name in states.dtype.names]
    for name in ("body", "past_m", "flight", "autopilots", *memories, *of_slots):
        states[name] = states[name][:, other]
    exchange_weapons(states)
    states["potentials"] *= -1.0
    actions["pilot"] = actions["pilot"][:, other]
    for name in ("pilots", "autopilots") if commands == "stick" else ("pilots",):
        states[name] = np.zeros((), states.dtype[name].base)


DOGFIGHT_OPTIONS = (
    Option("commands", "stick", "what a pilot decides, at 10, 2 or 5 Hz", words=("stick", "macro", "aim")),
    Option(
        "inner_loop",
        "pid",
        "what flies a macro: `pid`, `ppo` (the network that palaestra ships) or the path of a trained one",
        texts=("pid", "ppo"),
        only={"commands": "macro"},
        example="ppo",
    ),
    *WEAPON_OPTIONS,
    BLUE_COMMANDS,
    *FLIGHT_OPTIONS,
)
"""Of games of two aircraft."""


def duration_option(default_s: float) -> Option:
    """Length of a match, whatever a pilot decides and how often."""
    return Option(
        "duration_s",
        default_s,
        "length of a match: decides the default of `horizon`",
        low=1.0,
        high=10_000.0,
        unit="s",
        example=20.0,
    )


@with_options(*DOGFIGHT_OPTIONS, duration_option(DURATION_S))
def game(options: Any) -> Game:
    """The rules of `palaestra/UcavDogfight-v2`; errors as of `build`."""
    return build(options, "UcavDogfight", {}, "expert", symmetric_teams=True)


def build(
    options: Any,
    name: str,
    defaults: dict[str, float],
    default_opponent: str,
    *,
    symmetric_teams: bool,
) -> Game:
    """The rules under a name, with numbers.

    Args:
        options: `DOGFIGHT_OPTIONS` and `duration_option` of the user.
        name: CamelCase name of the game.
        defaults: Of parameters, where they differ from the dogfight's.
        default_opponent: Script that plays the teams that the user does not.
        symmetric_teams: Whether both aircraft have the same task and the same arms.

    Raises:
        FileError: A file that is no network for an inner loop.
        FileNotFoundError: There is no such network.
    """
    flight = flight_of_game(options, COUNT)
    network = None if options.inner_loop == "pid" else load_inner_loop(options.inner_loop)
    fly_macro = command_macro_pid if network is None else command_macro_network
    action, periods, command, judge, script = {
        "stick": (STICK, STICK_PERIODS, command_stick, evaluate_stick, script_stick),
        "macro": (MACRO, MACRO_PERIODS, fly_macro, evaluate_macro, script_macro),
        "aim": (AIM, AIM_PERIODS, command_aim, evaluate_aim, script_aim),
    }[options.commands]
    hooks = SimpleNamespace(reset=reset, command=command, evaluate=judge, observe=observe, script=script, legal=None)
    mixed = options.blue_commands != "same"
    if mixed:
        periods, hooks = STICK_PERIODS, mixed_hooks(reset, exchange_fire, evaluate)
        symmetric_teams = False
    table, state, info, parameters = observation_table(action), STATE, INFO, PARAMETERS
    trigger, missile = options.trigger, options.weapons != "gun"
    if trigger:
        action, table, state = (*action, TRIGGER), (*table, *TRIGGER_FIELDS), (*state, *TRIGGER_STATE)
        parameters = (*parameters, *TRIGGER_PARAMETERS)
    if missile:
        action, table, state = (*action, LAUNCH), (*table, *MISSILE_FIELDS), (*state, *MISSILE_STATE)
        parameters, info = (*parameters, *MISSILE_PARAMETERS), (*info, *MISSILE_INFO)
    if options.weapons == "missile":
        defaults = {"red_gun": 0.0, "blue_gun": 0.0, **defaults}
    if trigger or missile:
        hooks = armed_hooks(hooks, periods, trigger, missile, exchange_fire, evaluate)
    return Game(
        name=name,
        roles=MIXED_ROLES if mixed else (Role("pilot", ("red_0", "blue_0"), table, action),),
        state=(
            *state,
            *((AIMS,) if options.commands == "aim" else ()),
            *(() if network is None else (INTEGRALS,)),
            *flight.pop("state"),
        ),
        reset=hooks.reset,
        observe=hooks.observe,
        legal=hooks.legal,
        script=hooks.script,
        scripts=SCRIPTS,
        command=hooks.command,
        evaluate=hooks.evaluate,
        periods=periods,
        parameters=tuple(replace(p, default=defaults.get(p.name, p.default)) for p in parameters),
        horizon=round(options.duration_s / (PERIOD_S * periods)),
        info=info,
        end_reasons=END_REASONS,
        scratch=PILOT_SCRATCH if network is None else (*PILOT_SCRATCH, *INNER_LOOP_SCRATCH),
        world=network,
        zero_sum=True,
        symmetric_teams=symmetric_teams,
        mirror=partial(exchange, options.commands) if symmetric_teams and "advance" in flight else None,
        default_opponent=default_opponent,
        render="palaestra.games.ucav.render_flight:draw_dogfight",
        plots=("range", "health"),
        render_fps=1.0 / (PERIOD_S * periods),
        **flight,
    )
