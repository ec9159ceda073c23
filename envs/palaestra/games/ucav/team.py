"""UcavTeam: two formations of F-16s fight with guns or missiles until one of them is gone.

## Description

The rules of `palaestra/UcavDogfight-v2` (`palaestra.games.ucav.dogfight`) for teams of one to eight aircraft each:
``red_0``, ``red_1``, ... against ``blue_0``, ``blue_1``, ... A UCAV is an unmanned combat aerial vehicle. Aircraft,
flight, gun, arena and the limits of an airframe are those of the dogfight.

The gun of an aircraft fires at one opponent at a time: of those at gun range the one nearest to the line of its nose.
It never hits a teammate. Two aircraft that come within `collision_m` of each other are both lost, teammates too: the
straight ways of a tenth of a second are compared, not their ends alone.

An aircraft that is shot down, crashes, breaks or collides leaves the match: it flies, sees and decides no more.

## Missiles

With ``weapons="missile"`` or ``"both"`` each aircraft has `red_missiles` or `blue_missiles` missiles
(`palaestra.games.ucav.missiles`), of which two can be in flight. The choice `launch` launches one; the mask has the
opponents that cone, range and seeker allow. It hits its target alone, and takes `missile_damage` of its health. If the
target leaves before, the missile destroys itself. Pilots are warned of missiles that follow them.

## Action Space

* `commands="stick"` decides at 10 Hz.
* `commands="macro"` decides at 2 Hz; the PID of `palaestra.games.ucav.autopilot` flies a macro for five periods of
  0.1 s.
* `commands="aim"` decides at 5 Hz at whom the nose is to point, where relative to that one, and how fast to fly, as in
  the dogfight; the law that flies it keeps off the ground and the others and inside the arena. All zeros is pure
  pursuit of the nearest at 250 m/s.

<!-- table: action -->

## Observation Space

Float32, scaled (the unit column gives the value of 1), clipped to its bounds, all in the pilot's own body axes. Row k
of `opponents` is the opponent with number k; rows of `mates` are the others of the own team by their numbers. Rows of
aircraft that have left are 0, and so is all that a pilot sees who has left.

<!-- table: observation -->

The state for central critics has a row of numbers for each aircraft, red first, as many as the memory has room for (4,
8 or 16): 1 if it flies, 1 for red and -1 for blue, position (north and east in arena radii, height in 5 km), velocity
(north, east and down in 340 m/s), sine and cosine of roll, pitch and heading, health; with missiles also how many it
has left and how many follow it. Rows of those that have left are 0. The last number is the share of the match that is
left.

## Rewards

Zero-sum, exactly: one number is computed, each member of red gets it and each of blue its negative.

* **damage**: share of its health that blue has lost in this decision minus the share that red has lost. A team has the
  sum of the healths of its aircraft; one that crashes, breaks or collides loses all that it had left;
* **end**: +1 if blue is gone, -1 if red is gone, 0 if both are, `horizon_reward` at the horizon for the larger share of
  health;
* **posture, altitude, energy, aim**: the dogfight's shaping. Of teams its potentials are means over the aircraft in the
  match, or over all pairs of opponents.

So a lost match costs 2, however it is lost, less the share of its health that the other team has lost. Who rams an
opponent with more health left gains the difference.

## Starting State

Both teams in line abreast, `spacing_m` apart, facing each other at a range from `range_low_m` to `range_high_m`, on a
line through the origin whose direction is drawn. Of teams of one size the places are images of each other under half a
turn about the origin. The height of both formations is drawn once, for each aircraft a deviation of up to half of
`altitude_spread_m` and a speed.

## Episode End

A match ends by rule when a team has no aircraft left (``wiped_out``): the other team has won. If both lose their last
one in the same tenth of a second nobody has (``both``). At the horizon (200 s) it is truncated and the team with the
larger share of its health has won. Why an aircraft has left (``kill``, ``fled``, ``crash``, ``overload``,
``off_tables``, ``not_finite``, ``collision``) is in the match record, `lost`.

## Arguments

Sizes are data: all matches of up to 4, 8 or 16 aircraft share a compiled kernel.

Scripts: ``solo``, everybody fights the nearest opponent, as ``expert`` of the dogfight does. ``sort``: opponents are
divided, so that nobody attacks one who has an attacker while another has none. ``drag``: as sort, but who is hunted
runs away from its hunter while that one is out of range, and the nearest mate attacks the hunter. ``cover``: as sort,
but the two of each pair, by number, attack whoever hunts the other. ``straight`` holds its course. All others launch a
missile at their target when they may and none follows it. Scripts keep clear of each other.

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import DRAW, Choice, Field, Game, Option, Parameter, Role, uniform, with_options
from palaestra.games.ucav import dogfight
from palaestra.games.ucav.aim_macros import AIM, AIM_PERIODS, fly_as_wished, remember_aim, wish_as_aimed
from palaestra.games.ucav.armament import EACH, MISSILE_INFO, WEAPONS
from palaestra.games.ucav.autopilot import AUTOPILOT
from palaestra.games.ucav.body import BLUE, BODY, NOT_FLOWN, PERIOD_S, RED
from palaestra.games.ucav.dogfight import (
    BOTH,
    COLLISION,
    FIRST_FAILURE,
    FLED,
    KILL,
    RUNNING,
    STICK_PERIODS,
)
from palaestra.games.ucav.flight import FLIGHT_OPTIONS, flight_of_game
from palaestra.games.ucav.flight_commands import fly_macro, put_stick
from palaestra.games.ucav.geometry import rotate_to_earth
from palaestra.games.ucav.inner_loop import STICK
from palaestra.games.ucav.limits import NO_FAILURE, NOT_FINITE, extend_overload_s, find_failure
from palaestra.games.ucav.macros import MACRO, MACRO_PERIODS
from palaestra.games.ucav.missiles import (
    FREE,
    GONE,
    MISSILE,
    MISSILE_PARAMETERS,
    arm,
    fly,
    in_flight,
    launch,
)
from palaestra.games.ucav.pilots import MEMORY, PILOT_SCRATCH
from palaestra.games.ucav.shaping import note_potentials, shape
from palaestra.games.ucav.starts import START_PARAMETERS, place
from palaestra.games.ucav.team_scripts import (
    SCRIPTS,
    keep_clear,
    nearest_opponent,
    plan,
    plan_scratch,
    script_aim,
    script_macro,
    script_stick,
    shot_at,
)
from palaestra.games.ucav.team_sight import (
    MOST,
    ROW_OF_MISSILES,
    ROW_SIZE,
    end_of_opponents,
    first_opponent,
    global_state,
    global_state_missiles,
    legal_both,
    legal_launch,
    legal_target,
    observe,
    observe_missiles,
    room_for_opponents,
    team_table,
)
from palaestra.games.ucav.weapons import (
    GUN_FAR_M,
    GUN_INFO,
    GUN_NEAR_M,
    closest_approach_m,
    fire,
    note_places,
)
from palaestra.games.ucav.weather import change_weather

CAPACITIES = (4, 8, 16)
"""Slots of a match record: matches of as many aircraft or fewer share a kernel."""
DURATION_S = 200.0
"""Length of a match, s."""
NOBODY = -1
END_REASONS = (*dogfight.END_REASONS, "wiped_out")
WIPED_OUT = 2 + END_REASONS.index("wiped_out")
"""Number of the end of a team."""

START_RANGES = ("altitude_low_m", "altitude_high_m", "altitude_spread_m", "speed_low_mps", "speed_high_mps")
"""Parameters of the dogfight's starts that these starts have too."""
PARAMETERS = (
    *(p for p in dogfight.PARAMETERS if p not in START_PARAMETERS or p.name in START_RANGES),
    Parameter("range_low_m", 4000.0, 500.0, 20_000.0, "m", "smallest range at the start", up_to="range_high_m"),
    Parameter("range_high_m", 8000.0, 500.0, 20_000.0, "m", "largest range at the start"),
    Parameter("spacing_m", 500.0, 50.0, 5000.0, "m", "distance of neighbours in a formation"),
)

TEAM_INFO = (
    Field("health", (2,), 0, 1, "1", "share of its health that each team has", "f8"),
    Field("left", (2,), 0, MOST, "1", "aircraft of each team in the match", "i8"),
    *(field for field in dogfight.INFO if field.name.startswith("reward_")),
)


class World(NamedTuple):
    """Sizes of the teams, and whether guns fire."""

    red: int
    blue: int
    guns: int


# ------------------------------------------------------------------------------------------------------------ start


def reset(s, world):
    """Two lines abreast that face each other, one the image of the other under half a turn about the origin."""
    p = s.parameters
    bearing = uniform(s, -math.pi, math.pi)  # of blue from red
    half = 0.5 * uniform(s, p.range_low_m, p.range_high_m)
    middle = uniform(s, p.altitude_low_m, p.altitude_high_m)
    for k in range(s.health.shape[0]):
        s.body[k].throttle_command = NOT_FLOWN
        s.gun_target[k] = NOBODY
    for slot in range(world.red + world.blue):
        of_red = s.team[slot] == RED
        number, size = (slot, world.red) if of_red else (slot - world.red, world.blue)
        aside = (number - 0.5 * (size - 1)) * p.spacing_m
        heading = bearing if of_red else bearing + math.pi
        altitude = middle + uniform(s, -0.5, 0.5) * p.altitude_spread_m
        north = -half * math.cos(heading) - aside * math.sin(heading)
        east = -half * math.sin(heading) + aside * math.cos(heading)
        speed = uniform(s, p.speed_low_mps, p.speed_high_mps)
        place(s, slot, north, east, heading, altitude, speed)
    s.info.health[RED], s.info.health[BLUE] = 1.0, 1.0
    s.info.left[RED], s.info.left[BLUE] = world.red, world.blue
    note_potentials(s)


# --------------------------------------------------------------------------------------------------------- commands


def command_stick(s, world, actions, scratch):
    """Puts the sticks where the pilots want them."""
    note_places(s)
    for slot in range(world.red + world.blue):
        if s.alive[slot]:
            put_stick(s, slot, actions.pilot[slot])


def command_macro(s, world, actions, scratch):
    """Lets the PID fly the macros for one period."""
    note_places(s)
    for slot in range(world.red + world.blue):
        if s.alive[slot]:
            fly_macro(s, slot, actions)


def command_aim(s, world, actions, scratch):
    """Points the aircraft where their pilots aim, for one period; they keep clear of their mates too."""
    note_places(s)
    for slot in range(world.red + world.blue):
        if s.alive[slot]:
            target = aimed_at(s, world, slot, actions.pilot[slot].target)
            change_weather(s, s.body[slot])
            remember_aim(s, slot, actions.pilot[slot])
            wish_as_aimed(s, slot, target)
            keep_clear(s, world, slot, target, s.aims[slot], PERIOD_S)
            fly_as_wished(s, slot)


def aimed_at(s, world, slot, choice):
    """Slot of the opponent that a pilot has chosen, of the nearest one if that has left or none was."""
    chosen = first_opponent(world, s.team[slot]) + choice - 1
    return chosen if choice > 0 and s.alive[chosen] else nearest_opponent(s, slot, world.red + world.blue)


def launch_all(s, world, actions):
    """Launches the missiles that the pilots launch."""
    for slot in range(world.red + world.blue):
        if s.alive[slot] and actions.pilot[slot].launch > 0:
            launch(s, slot, first_opponent(world, s.team[slot]) + actions.pilot[slot].launch - 1)
            s.info.missiles_launched[slot] += 1


# ------------------------------------------------------------------------------------------------------------ rules


def evaluate_stick(s, world, rewards, scratch):
    """Judges a period that is a whole decision."""
    return evaluate(s, world, rewards, STICK_PERIODS)


def evaluate_macro(s, world, rewards, scratch):
    """Judges one of the five periods of a decision."""
    return evaluate(s, world, rewards, MACRO_PERIODS)


def evaluate_aim(s, world, rewards, scratch):
    """Judges one of the two periods of a decision."""
    return evaluate(s, world, rewards, AIM_PERIODS)


def evaluate(s, world, rewards, periods):
    """Guns, collisions, arena, airframes, losses; then the end and the rewards. Returns whether a rule ended it."""
    s.periods += 1
    exchange_fire(s, world)
    collide(s, world)
    leave_all(s, world)
    red, blue = health_of(s, 0, world.red), health_of(s, world.red, world.red + world.blue)
    damage = (s.info.health[BLUE] - blue) - (s.info.health[RED] - red)
    s.info.health[RED], s.info.health[BLUE] = red, blue
    over = s.info.left[RED] == 0 or s.info.left[BLUE] == 0
    end, shaping = conclude(s) if over else 0.0, 0.0
    decision_over = s.periods % periods == 0
    if decision_over and not over and s.steps >= s.parameters.horizon and red != blue:
        s.info.winner = RED if red > blue else BLUE
        end = s.parameters.horizon_reward if red > blue else -s.parameters.horizon_reward
    if over or decision_over:
        shaping = shape(s, over)
    s.info.reward_damage += damage
    s.info.reward_end += end
    total = float(rewards[0]) + damage + end + shaping
    for slot in range(world.red + world.blue):
        rewards[slot] = total if s.team[slot] == RED else 0.0 - total
    return over


def exchange_fire(s, world):
    """Lets every gun hit for one period. All fire at once: who is hit fires too."""
    for shooter in range(world.red + world.blue):
        s.in_gun[shooter] = 0
        target = gun_target(s, world, shooter) if s.alive[shooter] and world.guns else NOBODY
        s.gun_target[shooter] = target
        if target == NOBODY:
            s.in_funnel[shooter] = 0
        else:
            fire(s, shooter, target)
    for slot in range(world.red + world.blue):
        if s.alive[slot] and s.health[slot] <= 0.0:
            s.lost[slot] = KILL


def fly_missiles(s, world):
    """Flies all missiles for the period. One whose target has left destroys itself."""
    for k in range((world.red + world.blue) * EACH):
        missile = s.missiles[k]
        if in_flight(missile):
            target, shooter = missile.target, missile.shooter
            if not s.alive[target]:
                missile.status = GONE
            elif fly(missile, s.past_m[target], s.body[target], s.parameters):
                lost = min(s.health[target], s.parameters.missile_damage)
                s.health[target] -= lost
                s.info.missile_hits[shooter] += 1
                s.info.missile_damage[shooter] += lost


def gun_target(s, world, shooter):
    """Of the opponents at gun range the one nearest to the line of the nose, or `NOBODY`."""
    me, best, target = s.body[shooter], -2.0, NOBODY
    for k in range(first_opponent(world, s.team[shooter]), end_of_opponents(world, s.team[shooter])):
        other = s.body[k]
        north, east, up = other.north_m - me.north_m, other.east_m - me.east_m, other.altitude_m - me.altitude_m
        square = north * north + east * east + up * up
        if s.alive[k] and GUN_NEAR_M * GUN_NEAR_M <= square <= GUN_FAR_M * GUN_FAR_M:
            x, y, z = rotate_to_earth(me, 1.0, 0.0, 0.0)
            cosine = (x * north + y * east - z * up) / math.sqrt(square)
            if cosine > best:
                best, target = cosine, k
    return target


def collide(s, world):
    """Notes who came too close to another one on the straight ways of this period."""
    reach = s.parameters.collision_m
    for i in range(world.red + world.blue):
        for j in range(i + 1, world.red + world.blue):
            if s.alive[i] and s.alive[j] and closest_approach_m(s, i, j) < reach:
                s.lost[i] = COLLISION if s.lost[i] == RUNNING else s.lost[i]
                s.lost[j] = COLLISION if s.lost[j] == RUNNING else s.lost[j]


def leave_all(s, world):
    """Takes health outside the arena, finds the failures, and lets those leave who are lost."""
    for slot in range(world.red + world.blue):
        if s.alive[slot]:
            drain(s, slot)
            s.overload_s[slot] = extend_overload_s(s.overload_s[slot], s.body[slot])
            failure = find_failure(s.body[slot], s.overload_s[slot], s.parameters.floor_m)
            if failure == NOT_FINITE or (failure != NO_FAILURE and s.lost[slot] == RUNNING):
                s.lost[slot] = FIRST_FAILURE + failure
            if s.lost[slot] != RUNNING:
                leave(s, slot)


def drain(s, slot):
    """Takes a period's health from an aircraft outside the arena."""
    body = s.body[slot]
    if math.sqrt(body.north_m * body.north_m + body.east_m * body.east_m) > s.parameters.arena_radius_m:
        lost = min(s.health[slot], s.parameters.arena_drain * PERIOD_S)
        s.health[slot] -= lost
        s.info.arena_damage[slot] += lost
        if s.health[slot] <= 0.0 and s.lost[slot] == RUNNING:
            s.lost[slot] = FLED


def leave(s, slot):
    """Takes an aircraft, and what is left of its health, out of the match."""
    s.alive[slot] = 0
    s.health[slot] = 0.0
    s.in_gun[slot], s.in_funnel[slot], s.gun_target[slot] = 0, 0, NOBODY
    s.body[slot].throttle_command = NOT_FLOWN
    s.info.left[s.team[slot]] -= 1


def health_of(s, first, end):
    """Share of its health that the team in these slots has."""
    total = 0.0
    for slot in range(first, end):
        total += s.health[slot]
    return total / (end - first)


def conclude(s):
    """Books winner and reason of a match that a rule ended; returns red's reward for it."""
    if s.info.left[RED] == s.info.left[BLUE]:
        s.info.end_reason, s.info.winner = BOTH, DRAW
        return 0.0
    s.info.end_reason = WIPED_OUT
    s.info.winner = RED if s.info.left[BLUE] == 0 else BLUE
    return 1.0 if s.info.winner == RED else -1.0


# ------------------------------------------------------------------------------------------------------------- game


def exchange(by_stick: bool, size: int, states: Any, actions: Any) -> None:
    """Exchanges teams of one size. What scripts remember is forgotten."""
    other = np.arange(states["health"].shape[1])
    other[: 2 * size] = np.roll(other[: 2 * size], size)
    states["potentials"] *= -1.0
    for name in ("health", "left"):  # which the rules read
        states["info"][name] = states["info"][name][:, ::-1].copy()
    of_slots = ("health", "overload_s", "last_action", "in_gun", "in_funnel", "lost", "past_m", "alive", "acting")
    for name in ("body", "flight", "autopilots", *(["aims"] if "aims" in states.dtype.names else []), *of_slots):
        states[name] = states[name][:, other]
    target = states["gun_target"][:, other]
    states["gun_target"] = np.where(target == NOBODY, NOBODY, other[target])
    actions["pilot"] = actions["pilot"][:, other]
    if "missiles" in states.dtype.names:
        states["ammunition"] = states["ammunition"][:, other]
        states["missiles"] = states["missiles"][:, (EACH * other[:, None] + np.arange(EACH)).ravel()]
        missiles = states["missiles"]
        for name in ("shooter", "target"):
            missiles[name] = np.where(missiles["status"] == FREE, missiles[name], other[missiles[name]])
    for name in ("pilots", "autopilots") if by_stick else ("pilots",):
        states[name] = np.zeros((), states.dtype[name].base)


def sized(field: Field, slots: int, capacity: int) -> Field:
    """A field of one number for each aircraft, for so many of them."""
    return replace(field, shape=(slots, *field.shape[1:]), capacity=capacity)


COMMANDS = {
    "stick": (STICK, STICK_PERIODS, command_stick, evaluate_stick, script_stick),
    "macro": (MACRO, MACRO_PERIODS, command_macro, evaluate_macro, script_macro),
    "aim": (AIM, AIM_PERIODS, command_aim, evaluate_aim, script_aim),
}
"""Action, periods of a decision and hooks of each form of commands."""


def hooks_of(commands: str, has_missiles: bool) -> SimpleNamespace:
    """The hooks of a fight."""
    _, periods, command, evaluate, script = COMMANDS[commands]
    aims = commands == "aim"
    if not has_missiles:
        return SimpleNamespace(
            reset=reset,
            command=command,
            evaluate=evaluate,
            script=script,
            observe=observe,
            legal=legal_target if aims else None,
            global_state=global_state,
        )

    def reset_armed(s, world):
        """Sets up the match with missiles."""
        reset(s, world)
        for slot in range(world.red + world.blue):
            arm(s, slot)

    def command_armed(s, world, actions, scratch):
        """Launches missiles, once a decision, and flies."""
        if s.periods % periods == 0:
            launch_all(s, world, actions)
        command(s, world, actions, scratch)

    def evaluate_armed(s, world, rewards, scratch):
        """Missiles, then the rest of the rules."""
        fly_missiles(s, world)
        return evaluate(s, world, rewards, scratch)

    def script_armed(s, world, slot, which, actions, scratch):
        """Flies and launches missiles."""
        script(s, world, slot, which, actions, scratch)
        actions.pilot[slot].launch = shot_at(s, world, slot, which, scratch)

    return SimpleNamespace(
        reset=reset_armed,
        command=command_armed,
        evaluate=evaluate_armed,
        script=script_armed,
        observe=observe_missiles,
        legal=legal_both if aims else legal_launch,
        global_state=global_state_missiles,
    )


@with_options(
    Option("red", 4, "aircraft of red", low=1, high=MOST),
    Option("blue", 4, "aircraft of blue", low=1, high=MOST),
    Option("commands", "stick", "what a pilot decides, at 10, 2 or 5 Hz", words=tuple(COMMANDS)),
    WEAPONS,
    *FLIGHT_OPTIONS,
)
def game(options: Any) -> Game:
    """The rules of `palaestra/UcavTeam-v0`."""
    red, blue, has_missiles, aims = options.red, options.blue, options.weapons != "gun", options.commands == "aim"
    slots, most = red + blue, max(red, blue)
    capacity = next(room for room in CAPACITIES if room >= slots)
    numbers, periods, *_ = COMMANDS[options.commands]
    hooks, flight = hooks_of(options.commands, has_missiles), flight_of_game(options, capacity)
    room = 1 + room_for_opponents(capacity)
    target = Choice("target", 1 + most, ("nearest",), "whom it aims at, then opponent 0, 1, ...", capacity=room)
    shot = Choice("launch", 1 + most, ("none",), "launches a missile at opponent 0, 1, ...", capacity=room)
    action = (*numbers, *((target,) if aims else ()), *((shot,) if has_missiles else ()))
    names = tuple(f"{team}_{k}" for team, size in (("red", red), ("blue", blue)) for k in range(size))
    observation = team_table(numbers, most, capacity, has_missiles)
    outside = Field("arena_damage", (2,), unit="1", about="health that it lost outside", dtype="f8")
    info = (*GUN_INFO, outside, *(MISSILE_INFO if has_missiles else ()))
    armed = (("missiles", MISSILE, (EACH * capacity,)), ("ammunition", "i8", (capacity,)))
    return Game(
        name="UcavTeam",
        roles=(Role("pilot", names, observation, action, capacity),),
        state=(
            ("body", BODY, (capacity,)),
            ("autopilots", AUTOPILOT, (capacity,)),
            ("pilots", MEMORY, (capacity,)),  # memory of the scripts
            ("health", "f8", (capacity,)),
            ("overload_s", "f8", (capacity,)),  # time above the sustained load, ending now
            ("potentials", "f8", (4,)),  # at the end of the last decision
            ("last_action", "f8", (capacity, 4)),
            ("past_m", "f8", (capacity, 3)),  # north, east and up when the period began
            ("periods", "i8"),  # periods played in this match
            ("gun_target", "i8", (capacity,)),  # slot that the gun fires at if it hits
            ("in_gun", "u1", (capacity,)),  # slot's gun hits
            ("in_funnel", "u1", (capacity,)),  # slot has an opportunity
            ("lost", "i8", (capacity,)),  # end reason of the slot, 0 while it is in the fight
            *(armed if has_missiles else ()),
            *((("aims", MEMORY, (capacity,)),) if aims else ()),
            *flight.pop("state"),
        ),
        reset=hooks.reset,
        observe=hooks.observe,
        legal=hooks.legal,
        script=hooks.script,
        plan=plan,
        scripts=SCRIPTS,
        command=hooks.command,
        evaluate=hooks.evaluate,
        periods=periods,
        parameters=(*PARAMETERS, *MISSILE_PARAMETERS) if has_missiles else PARAMETERS,
        horizon=round(DURATION_S / (PERIOD_S * periods)),
        info=(*(sized(field, slots, capacity) for field in info), *TEAM_INFO),
        end_reasons=END_REASONS,
        scratch=(*PILOT_SCRATCH, *plan_scratch(capacity)),
        world=World(red, blue, int(options.weapons != "missile")),
        zero_sum=True,
        symmetric_teams=red == blue,
        mirror=partial(exchange, options.commands == "stick", red) if red == blue and "advance" in flight else None,
        default_opponent="solo",
        global_state=hooks.global_state,
        global_state_size=(ROW_SIZE + ROW_OF_MISSILES * has_missiles) * capacity + 1,
        render="palaestra.games.ucav.render_flight:draw_dogfight",
        facts="palaestra.games.ucav.render_flight:facts",
        plots=("altitude", "health"),
        render_fps=1.0 / (PERIOD_S * periods),
        **flight,
    )
