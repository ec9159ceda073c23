"""What units look like, and what they are called, in pictures: both follow from their numbers alone.

The middle of a unit shows what it does, its body what it is. A ruleset of one's own needs no drawings.

=================  =====================================================================================
middle             meaning
=================  =====================================================================================
plus               heals
star               attacks by its own death
bars               hits all in a circle or line
one or more slash  range below `MELEE_CELLS`: as many strokes as an attack has hits
dot, diamond       range above; a diamond hits some attributes harder
none               has no weapon
=================  =====================================================================================

A square body cannot move, one with legs walks over cliffs, one with a shadow flies, a round one with two rims is
armoured.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, SIGNAL, TEXT, Color, blend, fade
from palaestra.drawing.widgets import draw_bar
from palaestra.games.skirmish.combat import CIRCLE
from palaestra.games.skirmish.ruleset import ATTRIBUTES

MELEE_CELLS = 1.0
"""A weapon of less range is drawn as a blade."""
ARMOURED = 1 << ATTRIBUTES.index("armoured")
SHADOW = (0.35, 0.55)
"""How far to the right and down of a flier its shadow falls, shares of its radius."""


def is_melee(unit: Any) -> bool:
    """Whether a unit, a row of `palaestra.games.skirmish.ruleset.table` , has a weapon of short range."""
    return bool(unit["targets"]) and not unit["suicide"] and unit["range"] < MELEE_CELLS


def is_prize(unit: Any) -> bool:
    """Whether it is no unit but a thing to collect."""
    return bool(unit["prize"])


def describe(unit: Any) -> str:
    """What a unit is and does, in words: ``"flying healer"``."""
    if is_prize(unit):
        return "prize"
    if unit["heal_per_loop"] > 0.0:
        does = "healer"
    elif not unit["targets"]:
        does = "unarmed"
    elif unit["suicide"]:
        does = "exploding"
    elif unit["splash_shape"]:
        does = "splash"
    elif is_melee(unit):
        does = "melee" if unit["hits"] == 1 else f"melee x{int(unit['hits'])}"
    else:
        does = "ranged" if not unit["bonus_mask"] else "ranged with bonus"
    if unit["flying"]:
        return f"flying {does}"
    if unit["cliff_walker"]:
        return f"climbing {does}"
    return f"static {does}" if unit["speed_per_loop"] == 0.0 else does


def initial(unit: Any) -> str:
    """One capital letter for a unit on a map of characters: what it does, as in `describe`."""
    return describe(unit).split(" with")[0].split(" x")[0].rpartition(" ")[2][0].upper()


@functools.cache
def shades(color: Color) -> tuple[Color, Color, Color]:
    """Colours of a body, of the rim where hit points are missing, and of the rim where they are left."""
    return blend(color, BACKGROUND, 0.6), blend(color, BACKGROUND, 0.45), blend(color, TEXT, 0.15)


def draw_shadow(canvas: Canvas, center: Point, radius: float) -> None:
    """The shadow of a flier."""
    across, down = SHADOW
    canvas.circle((center[0] + across * radius, center[1] + down * radius), 0.92 * radius, fade((0, 0, 0), 0.4))


def draw_prize(canvas: Canvas, center: Point, radius: float) -> None:
    """A thing to collect."""
    (x, y), size = center, 0.9 * radius
    canvas.circle(center, 1.3 * radius, fade(SIGNAL, 0.15))
    canvas.polygon([(x, y - size), (x + size, y), (x, y + size), (x - size, y)], SIGNAL)


def draw_body(canvas: Canvas, center: Point, radius: float, unit: Any, color: Color) -> None:
    """Body and mark of a unit; ``radius`` in pixels."""
    (x, y), (fill, rim, _) = center, shades(color)
    if unit["cliff_walker"]:
        for tilt in (0.25, 0.75, 1.25, 1.75):
            dx, dy = math.cos(tilt * math.pi), math.sin(tilt * math.pi)
            canvas.line([center, (x + 1.45 * radius * dx, y + 1.45 * radius * dy)], rim, 2)
    if unit["speed_per_loop"] == 0.0:
        canvas.rectangle(x - radius, y - radius, x + radius, y + radius, rim, 3)
        canvas.rectangle(x - radius + 1, y - radius + 1, x + radius - 1, y + radius - 1, fill, 3)
    else:
        canvas.circle(center, radius, fill, rim)
    if unit["attributes"] & ARMOURED and unit["speed_per_loop"] > 0.0:
        canvas.circle(center, radius - 2.6, None, fade(color, 0.6))
    draw_mark(canvas, center, min(0.5 * radius, 9.0), unit)


def draw_mark(canvas: Canvas, center: Point, size: float, unit: Any, color: Color = TEXT) -> None:
    """What a unit does, as a sign of half the height ``size`` in pixels."""
    (x, y), width = center, max(1.2, 0.3 * size)
    if unit["heal_per_loop"] > 0.0:
        canvas.line([(x - size, y), (x + size, y)], color, 1.6 * width)
        canvas.line([(x, y - size), (x, y + size)], color, 1.6 * width)
    elif not unit["targets"]:
        return
    elif unit["suicide"]:
        for k in range(4):
            dx, dy = size * math.cos(0.25 * math.pi * k), size * math.sin(0.25 * math.pi * k)
            canvas.line([(x - dx, y - dy), (x + dx, y + dy)], color, width)
    elif unit["splash_shape"] == CIRCLE:
        canvas.circle(center, size, None, color, width)
        canvas.circle(center, 0.35 * size, color)
    elif unit["splash_shape"]:
        for across in (-0.45, 0.45):
            canvas.line([(x - size, y + across * size), (x + size, y + across * size)], color, width)
    elif is_melee(unit):
        for k in range(min(int(unit["hits"]), 3)):
            middle = x + (k - 0.5 * (min(int(unit["hits"]), 3) - 1)) * 0.8 * size
            canvas.line([(middle - 0.5 * size, y + size), (middle + 0.5 * size, y - size)], color, width)
    elif unit["bonus_mask"]:
        canvas.polygon([(x, y - size), (x + size, y), (x, y + size), (x - size, y)], color)
    else:
        canvas.circle(center, 0.6 * size, color)


def draw_life(canvas: Canvas, center: Point, radius: float, color: Color, shares: tuple[float, float, float]) -> None:
    """Rings of hit points and, outside, of shield, both from the top clockwise; below them a bar of energy.

    Args:
        canvas: Where to draw.
        center: Of the unit.
        radius: Of its body, pixels.
        color: Of its team.
        shares: What is left of hit points, shield and energy, 0 to 1; -1 for what the unit never has.
    """
    (x, y), (hit_points, shield, energy) = center, shares
    rings = ((hit_points, radius + 0.4, 2.2, shades(color)[2]), (shield, radius + 2.8, 1.2, TEXT))
    for share, ring, width, shade in rings:
        if share >= 0.999:
            canvas.circle(center, ring, None, shade, width)
        elif share > 0.0:
            canvas.arc(center, ring, -90.0, -90.0 + 360.0 * share, shade, width)
    if energy >= 0.0:
        left, top = x - 0.8 * radius, y + radius + 3.0
        draw_bar(canvas, (left, top, left + 1.6 * radius, top + 2.0), energy, SIGNAL, radius=0)
