"""How a fight of two begins: set-ups by name, drawn places, or places that the user gives. Kernel functions.

=============  =========================================================================================================
mix            one of the next three, drawn with their weights
neutral        the two positions and headings are one image of the other under half a turn, at any angle off
offensive      red sits within 45 degrees of blue's tail and points within 20 degrees of it
defensive      the same with the sides exchanged
head_on        as neutral, each within 10 degrees of the other's nose
high_aspect    as neutral, each 20 to 45 degrees off the other's nose: they pass side by side
energy_high    as neutral; red is 1 km higher, and draws its speed from the upper half where blue draws from the lower
energy_low     the same with the sides exchanged
placed         place, height, heading and speed of each side are parameters
=============  =========================================================================================================
"""

from __future__ import annotations

import math

from palaestra.game import Parameter, uniform
from palaestra.games.ucav.body import BLUE, RED
from palaestra.games.ucav.weather import start_weather

STARTS = (
    *("mix", "neutral", "offensive", "defensive"),
    *("head_on", "high_aspect", "energy_high", "energy_low", "placed"),
)
MIX, NEUTRAL, OFFENSIVE, DEFENSIVE, HEAD_ON, HIGH_ASPECT, ENERGY_HIGH, ENERGY_LOW, PLACED = range(9)

TAIL_RAD, NOSE_RAD = math.radians(45.0), math.radians(20.0)
"""Behind: largest angle off the other's tail and largest angle off the own nose, rad."""
HEAD_ON_RAD, ASIDE_LOW_RAD, ASIDE_HIGH_RAD = math.radians(10.0), math.radians(20.0), math.radians(45.0)
"""Largest angle off the nose of `head_on`, smallest and largest one of `high_aspect`, rad."""
ENERGY_M = 1000.0
"""Difference of height of `energy_high`, m."""


def _placed(side: str, north_m: float, heading_deg: float) -> tuple[Parameter, ...]:
    about = f"start placed: {side}'s"
    return (
        Parameter(f"{side}_north_m", north_m, -50_000.0, 50_000.0, "m", f"{about} place north of the origin", True),
        Parameter(f"{side}_east_m", 0.0, -50_000.0, 50_000.0, "m", f"{about} place east of it", True),
        Parameter(f"{side}_altitude_m", 4000.0, 500.0, 15_000.0, "m", f"{about} height", True),
        Parameter(f"{side}_heading_deg", heading_deg, -360.0, 360.0, "deg", f"{about} heading, 0 is north", True),
        Parameter(f"{side}_speed_mps", 250.0, 120.0, 400.0, "m/s", f"{about} airspeed", True),
    )


START_PARAMETERS = (
    Parameter("start", MIX, about="how a match begins", at_start=True, words=STARTS),
    Parameter("neutral_weight", 2.0, 0.0, 1e6, "1", "start mix: weight of neutral"),
    Parameter("red_behind_weight", 1.0, 0.0, 1e6, "1", "start mix: weight of offensive, red behind blue"),
    Parameter("blue_behind_weight", 1.0, 0.0, 1e6, "1", "start mix: weight of defensive, blue behind red"),
    Parameter(
        "neutral_range_low_m",
        1500.0,
        200.0,
        20_000.0,
        "m",
        "smallest range of all starts but from behind",
        up_to="neutral_range_high_m",
    ),
    Parameter("neutral_range_high_m", 4000.0, 200.0, 20_000.0, "m", "largest range of all starts but from behind"),
    Parameter(
        "behind_range_low_m",
        800.0,
        200.0,
        20_000.0,
        "m",
        "starts from behind: smallest range",
        up_to="behind_range_high_m",
    ),
    Parameter("behind_range_high_m", 1600.0, 200.0, 20_000.0, "m", "starts from behind: largest range"),
    Parameter("altitude_low_m", 3000.0, 500.0, 15_000.0, "m", "smallest starting height", up_to="altitude_high_m"),
    Parameter("altitude_high_m", 5000.0, 500.0, 15_000.0, "m", "largest starting height"),
    Parameter("altitude_spread_m", 500.0, 0.0, 5000.0, "m", "largest difference of the two starting heights"),
    Parameter("speed_low_mps", 200.0, 120.0, 400.0, "m/s", "smallest starting airspeed", up_to="speed_high_mps"),
    Parameter("speed_high_mps", 280.0, 120.0, 400.0, "m/s", "largest starting airspeed"),
    *_placed("red", -1000.0, 0.0),
    *_placed("blue", 1000.0, 180.0),
)


def set_up(s):
    """Puts both aircraft into the air, wings level."""
    p = s.parameters
    if p.start == PLACED:
        heading = math.radians(p.red_heading_deg)
        place(s, RED, p.red_north_m, p.red_east_m, heading, p.red_altitude_m, p.red_speed_mps)
        heading = math.radians(p.blue_heading_deg)
        place(s, BLUE, p.blue_north_m, p.blue_east_m, heading, p.blue_altitude_m, p.blue_speed_mps)
    else:
        draw_places(s, int(p.start))


def draw_places(s, start):
    """Draws a set-up: about the origin, at any bearing."""
    p = s.parameters
    total = p.neutral_weight + p.red_behind_weight + p.blue_behind_weight
    draw = uniform(s, 0.0, 1.0) * total
    bearing = uniform(s, -math.pi, math.pi)  # of blue from red
    range_share = uniform(s, 0.0, 1.0)
    off = uniform(s, -1.0, 1.0)
    nose = uniform(s, -1.0, 1.0)
    if start == MIX:
        is_neutral = draw < p.neutral_weight or total <= 0.0
        start = NEUTRAL if is_neutral else OFFENSIVE if draw < p.neutral_weight + p.red_behind_weight else DEFENSIVE
    if start in (OFFENSIVE, DEFENSIVE):
        distance = p.behind_range_low_m + range_share * (p.behind_range_high_m - p.behind_range_low_m)
        red_behind = start == OFFENSIVE
        ahead = bearing if red_behind else bearing + math.pi  # from the favoured side to the other
        chaser, chased = ahead + nose * NOSE_RAD, ahead + off * TAIL_RAD
        red_heading = chaser if red_behind else chased
        blue_heading = chased if red_behind else chaser
    else:
        distance = p.neutral_range_low_m + range_share * (p.neutral_range_high_m - p.neutral_range_low_m)
        angle_off = off * math.pi
        if start == HEAD_ON:
            angle_off = off * HEAD_ON_RAD
        elif start == HIGH_ASPECT:
            angle_off = math.copysign(ASIDE_LOW_RAD + abs(off) * (ASIDE_HIGH_RAD - ASIDE_LOW_RAD), off)
        red_heading = bearing + angle_off
        blue_heading = red_heading + math.pi
    above = 0.5 * ENERGY_M if start == ENERGY_HIGH else -0.5 * ENERGY_M if start == ENERGY_LOW else 0.0
    middle = uniform(s, p.altitude_low_m, p.altitude_high_m)
    above += uniform(s, -0.5, 0.5) * p.altitude_spread_m
    for slot in range(2):
        side = 1.0 if slot == BLUE else -1.0
        fast = uniform(s, 0.0, 1.0)
        if start in (ENERGY_HIGH, ENERGY_LOW):
            fast = 0.5 * fast + (0.5 if (slot == RED) == (start == ENERGY_HIGH) else 0.0)
        speed = p.speed_low_mps + fast * (p.speed_high_mps - p.speed_low_mps)
        north, east = 0.5 * distance * math.cos(bearing), 0.5 * distance * math.sin(bearing)
        heading = red_heading if slot == RED else blue_heading
        place(s, slot, side * north, side * east, heading, middle - side * above, speed)


def place(s, slot, north, east, heading, altitude, speed):
    """Puts one aircraft into the air: metres, rad and m/s; wings level, healthy."""
    body = s.body[slot]
    body.north_m = north
    body.east_m = east
    body.altitude_m = altitude
    body.heading_rad = heading - 2.0 * math.pi * math.floor(heading / (2.0 * math.pi))
    body.true_airspeed_mps = speed
    body.throttle_command = 0.5
    body.finite = 1
    body.in_tables = 1
    start_weather(s, body)
    s.health[slot] = 1.0
