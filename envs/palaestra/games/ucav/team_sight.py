"""What pilots of teams see and may do, and the state for central critics."""

from __future__ import annotations

import math

from palaestra.game import Continuous, Field, Table
from palaestra.games.ucav.armament import EACH, MISSILES_LEFT
from palaestra.games.ucav.body import RED
from palaestra.games.ucav.limits import SUSTAINED_LOAD_S
from palaestra.games.ucav.missiles import GUIDED, WARNING_FIELDS, may_launch, write_warnings
from palaestra.games.ucav.sight import (
    ALTITUDE_UNIT_M,
    NEAR_UNIT_M,
    NOSE,
    OTHER,
    OTHER_HEALTH,
    PLACE,
    SITUATION,
    SPEED_UNIT_MPS,
    own_table,
    write_centre,
    write_ego,
    write_mate,
    write_other,
)
from palaestra.games.ucav.weapons import GUN_FAR_M, cone_half_angle_rad
from palaestra.kernels.scalars import clip

MOST = 8
"""Aircraft of a team."""
ROW_SIZE, ROW_OF_MISSILES = 15, 2
"""Numbers of an aircraft in the global state, and how many more there are with missiles."""
PRESENT = Field("present", (), 0.0, 1.0, "1", "1 if it is in the match")
MATE = (PRESENT, *PLACE, NOSE, OTHER_HEALTH)
MISSILE_FLIES = Field("missile_flies", (), 0.0, 1.0, "1", "1 while an own missile follows it")


def team_table(
    action: tuple[Continuous, ...], most: int, capacity: int, has_missiles: bool
) -> tuple[Field | Table, ...]:
    """What a pilot sees.

    Args:
        action: What it decides by real numbers.
        most: Aircraft of the larger team.
        capacity: Aircraft that a match has room for.
        has_missiles: Whether there are missiles.
    """
    opponent = (PRESENT, *OTHER, MISSILE_FLIES) if has_missiles else (PRESENT, *OTHER)
    return (
        *own_table(action),
        *SITUATION,
        *((MISSILES_LEFT, *WARNING_FIELDS) if has_missiles else ()),
        Table("opponents", most, opponent, "by number", room_for_opponents(capacity)),
        Table("mates", max(most - 1, 1), MATE, "the others of the own team, by number", min(capacity - 2, MOST - 1)),
    )


def room_for_opponents(capacity: int) -> int:
    """The most opponents in a match of so many aircraft."""
    return min(capacity - 1, MOST)


def first_opponent(world, team):
    """Slot of the first opponent of a team."""
    return world.red if team == RED else 0


def end_of_opponents(world, team):
    """Slot behind the last opponent of a team."""
    return world.red + world.blue if team == RED else world.red


def legal_launch(s, world, mask):
    """Missiles at opponents in the match that ammunition, range, cone and seeker allow."""
    for slot in range(world.red + world.blue):
        mask.pilot[slot].launch[0] = 1
        first = first_opponent(world, s.team[slot])
        for k in range(first, end_of_opponents(world, s.team[slot])):
            if s.alive[slot] and s.alive[k] and may_launch(s, slot, k):
                mask.pilot[slot].launch[1 + k - first] = 1


def legal_target(s, world, mask):
    """Aims at opponents in the match."""
    for slot in range(world.red + world.blue):
        mask.pilot[slot].target[0] = 1
        first = first_opponent(world, s.team[slot])
        for k in range(first, end_of_opponents(world, s.team[slot])):
            if s.alive[slot] and s.alive[k]:
                mask.pilot[slot].target[1 + k - first] = 1


def legal_both(s, world, mask):
    """Both."""
    legal_launch(s, world, mask)
    legal_target(s, world, mask)


def observe(s, world, observations, scratch):
    """Shows each pilot in the match the own aircraft, the opponents and the mates."""
    p, count = s.parameters, world.red + world.blue
    cone = cone_half_angle_rad(s)
    time_left = clip(1.0 - s.steps / p.horizon, 0.0, 1.0)
    for slot in range(count):
        if s.alive[slot]:
            o, ego = observations.pilot[slot], s.body[slot]
            write_ego(o, ego)
            o.height_over_floor = clip((ego.altitude_m - p.floor_m) / NEAR_UNIT_M, -1.0, 5.0)
            o.overload = clip(s.overload_s[slot] / SUSTAINED_LOAD_S, 0.0, 1.0)
            o.health = clip(s.health[slot], 0.0, 1.0)
            o.cone_half_angle = cone
            o.time_left = time_left
            write_centre(o, ego, p.arena_radius_m)
            for i in range(o.last_action.shape[0]):
                o.last_action[i] = clip(s.last_action[slot, i], -1.0, 1.0)
            write_opponents(s, world, slot, o)
            write_mates(s, world, slot, o)


def observe_missiles(s, world, observations, scratch):
    """The same, the own missiles, and warnings of those of the opponents."""
    observe(s, world, observations, scratch)
    for slot in range(world.red + world.blue):
        if s.alive[slot]:
            o = observations.pilot[slot]
            o.missiles_left = s.ammunition[slot]
            write_warnings(o, s, slot)
            for k in range(slot * EACH, (slot + 1) * EACH):
                if s.missiles[k].status == GUIDED:
                    o.opponents[s.missiles[k].target - first_opponent(world, s.team[slot])].missile_flies = 1.0


def write_opponents(s, world, slot, o):
    """Writes the opponents in the match, row by number."""
    first = first_opponent(world, s.team[slot])
    for k in range(first, end_of_opponents(world, s.team[slot])):
        if s.alive[k]:
            row = o.opponents[k - first]
            row.present = 1.0
            distance = write_other(row, s.body[slot], s.body[k])
            row.gun_range = clip(distance / GUN_FAR_M, 0.0, 5.0)
            row.other_health = clip(s.health[k], 0.0, 1.0)
            row.in_my_gun = 1.0 if s.in_gun[slot] and s.gun_target[slot] == k else 0.0
            row.in_its_gun = 1.0 if s.in_gun[k] and s.gun_target[k] == slot else 0.0


def write_mates(s, world, slot, o):
    """Writes the others of the own team that are in the match, by number."""
    first = 0 if s.team[slot] == RED else world.red
    end = world.red if s.team[slot] == RED else world.red + world.blue
    for k in range(first, end):
        if s.alive[k] and k != slot:
            row = o.mates[k - first if k < slot else k - first - 1]
            row.present = 1.0
            write_mate(row, s.body[slot], s.body[k])
            row.other_health = clip(s.health[k], 0.0, 1.0)


def global_state(s, world, out):
    """All aircraft in the match, and the time."""
    write_state(s, world, out, ROW_SIZE)


def global_state_missiles(s, world, out):
    """The same, and of each aircraft how many missiles it has left and how many follow it."""
    size = ROW_SIZE + ROW_OF_MISSILES
    write_state(s, world, out, size)
    for slot in range(world.red + world.blue):
        if s.alive[slot]:
            out[size * slot + ROW_SIZE] = s.ammunition[slot]
    for k in range(s.missiles.shape[0]):
        if s.missiles[k].status == GUIDED:
            out[size * s.missiles[k].target + ROW_SIZE + 1] += 1.0


def write_state(s, world, out, size):
    """Writes the rows of the aircraft in the match, of so many numbers each, and the time."""
    for i in range(out.shape[0]):
        out[i] = 0.0
    for slot in range(world.red + world.blue):
        if s.alive[slot]:
            write_row(s, slot, out, size * slot)
    out[size * s.health.shape[0]] = clip(1.0 - s.steps / s.parameters.horizon, 0.0, 1.0)


def write_row(s, slot, out, at):
    """Writes one aircraft."""
    body, radius_m = s.body[slot], s.parameters.arena_radius_m
    out[at] = 1.0
    out[at + 1] = 1.0 if s.team[slot] == RED else -1.0
    out[at + 2], out[at + 3] = body.north_m / radius_m, body.east_m / radius_m
    out[at + 4] = body.altitude_m / ALTITUDE_UNIT_M
    out[at + 5] = body.velocity_north_mps / SPEED_UNIT_MPS
    out[at + 6] = body.velocity_east_mps / SPEED_UNIT_MPS
    out[at + 7] = body.velocity_down_mps / SPEED_UNIT_MPS
    out[at + 8], out[at + 9] = math.sin(body.roll_rad), math.cos(body.roll_rad)
    out[at + 10], out[at + 11] = math.sin(body.pitch_rad), math.cos(body.pitch_rad)
    out[at + 12], out[at + 13] = math.sin(body.heading_rad), math.cos(body.heading_rad)
    out[at + 14] = s.health[slot]
