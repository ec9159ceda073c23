"""Instruments of one aircraft: attitude indicator, gauges, and the silhouette for maps."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, GROUND, LINE, MUTED, SIGNAL, SKY, TEXT, Color, blend, fade

_RIGHT_HALF = (
    *((1.0, 0.0), (0.62, 0.07), (0.32, 0.13), (0.14, 0.20)),  # nose and strake
    *((-0.30, 0.68), (-0.48, 0.68), (-0.42, 0.17)),  # wing
    *((-0.60, 0.15), (-0.84, 0.42), (-1.0, 0.42), (-0.93, 0.10), (-1.04, 0.07)),  # tailplane and nozzle
)
PLANFORM = np.array([(x, y, 0.0) for x, y in _RIGHT_HALF] + [(x, -y, 0.0) for x, y in _RIGHT_HALF[::-1]])
"""A fighter from above in body axes (forward, right, down), half its length being 1. Ours, no type in particular."""
PROFILE = np.array(
    [
        *((1.0, 0.0, 0.0), (0.58, 0.0, -0.08), (0.42, 0.0, -0.17), (0.12, 0.0, -0.10)),  # nose and canopy
        *((-0.36, 0.0, -0.09), (-0.74, 0.0, -0.46), (-1.0, 0.0, -0.46), (-0.92, 0.0, -0.06)),  # fin
        *((-1.04, 0.0, 0.0), (-0.60, 0.0, 0.10), (0.36, 0.0, 0.11), (0.60, 0.0, 0.06)),  # nozzle and belly
    ]
)
"""The same from the side."""


def body_axes(body: np.void) -> np.ndarray:
    """Unit vectors of the body axes along north, east and down: rows forward, right, down, float64 [3, 3].

    The aerospace sequence heading, pitch, roll, as in `palaestra.games.ucav.geometry`.
    """
    sin_roll, cos_roll = math.sin(body["roll_rad"]), math.cos(body["roll_rad"])
    sin_pitch, cos_pitch = math.sin(body["pitch_rad"]), math.cos(body["pitch_rad"])
    sin_heading, cos_heading = math.sin(body["heading_rad"]), math.cos(body["heading_rad"])
    ahead = np.array([cos_heading, sin_heading, 0.0])
    right = np.array([-sin_heading, cos_heading, 0.0])
    down = np.array([0.0, 0.0, 1.0])
    below = sin_pitch * ahead + cos_pitch * down
    return np.stack(
        [cos_pitch * ahead - sin_pitch * down, cos_roll * right + sin_roll * below, cos_roll * below - sin_roll * right]
    )


def draw_aircraft(
    canvas: Canvas, at: Point, body: np.void, screen: np.ndarray, toward_viewer: np.ndarray, color: Color, size: float
) -> None:
    """The silhouette in its true attitude: foreshortened by roll and pitch, darker from below.

    Args:
        canvas: Panel.
        at: Where its middle is.
        body: Aircraft record.
        screen: Directions along north, east, down that run right and down on the panel, float64 [2, 3].
        toward_viewer: Direction from the scene to the eye.
        color: Of the team.
        size: Half its length, pixels.
    """
    axes = body_axes(body)
    belly = float(axes[2] @ toward_viewer) > 0.0
    wings = blend(color, BACKGROUND, 0.35) if belly else color
    parts = [(PROFILE, blend(color, TEXT, 0.35)), (PLANFORM, wings)]
    for shape, fill in parts if belly else parts[::-1]:
        points = (shape @ axes @ screen.T) * size + at
        canvas.polygon([(x, y) for x, y in points.tolist()], fill, fade(BACKGROUND, 0.8))


def draw_attitude(
    canvas: Canvas,
    center: Point,
    radius: float,
    body: np.void,
    color: Color,
    command: tuple[float, float] | None = None,
) -> None:
    """An attitude indicator: horizon, pitch ladder, roll scale, and a small ring where the aircraft really flies to.

    Args:
        canvas: Panel.
        center: Middle of the instrument.
        radius: Its size.
        body: Aircraft record.
        color: Of the aircraft symbol.
        command: Roll and flight-path angle still to go, rad: bars at which the symbol and the ring are to be laid.
    """
    roll, pitch = float(body["roll_rad"]), float(body["pitch_rad"])
    pixels_per_rad = radius / math.radians(40.0)
    up = (-math.sin(roll), -math.cos(roll))
    along = (math.cos(roll), -math.sin(roll))
    shift = min(max(pitch * pixels_per_rad, -0.9 * radius), 0.9 * radius)  # a rim of the other half stays in sight
    canvas.circle(center, radius, GROUND)
    middle, half = math.degrees(math.atan2(up[1], up[0])), math.degrees(math.acos(-shift / radius))
    canvas.segment(center, radius, middle - half, middle + half, SKY)

    def bar(offset: float, length: float, shade: Color, width: float) -> None:
        if abs(offset) < 0.86 * radius:
            reach = min(length, math.sqrt(radius * radius - offset * offset))
            x, y = center[0] + offset * up[0], center[1] + offset * up[1]
            ends = [(x + sign * reach * along[0], y + sign * reach * along[1]) for sign in (-1.0, 1.0)]
            canvas.line(ends, shade, width)

    bar(-shift, radius, TEXT, 1.5)
    for degrees in (*range(-80, 0, 10), *range(10, 90, 10)):
        offset = math.radians(degrees) * pixels_per_rad - pitch * pixels_per_rad
        bar(offset, radius * (0.28 if degrees % 20 == 0 else 0.15), fade(TEXT, 0.55), 1.0)
    for degrees in (-60, -30, 0, 30, 60):
        angle = math.radians(degrees) - roll
        tick = (math.sin(angle), -math.cos(angle))
        inner = 0.88 if degrees else 0.82
        canvas.line([(center[0] + r * radius * tick[0], center[1] + r * radius * tick[1]) for r in (inner, 1.0)], TEXT)
    x, y = center
    canvas.polygon([(x, y - 0.86 * radius), (x - 4, y - 0.86 * radius + 7), (x + 4, y - 0.86 * radius + 7)], color)
    ring = (
        x + float(np.clip(float(body["sideslip_rad"]) * pixels_per_rad, -0.8 * radius, 0.8 * radius)),
        y + float(np.clip(float(body["angle_of_attack_rad"]) * pixels_per_rad, -0.8 * radius, 0.8 * radius)),
    )
    canvas.circle(ring, max(3.0, 0.05 * radius), None, TEXT, 1.0)
    if command is not None:
        _draw_command(canvas, ring, radius, pixels_per_rad, roll, command)
    for shade, width in ((BACKGROUND, 4.0), (color, 2.0)):  # a dark edge keeps it apart from sky and ground
        for sign in (-radius, radius):
            canvas.line([(x + 0.5 * sign, y), (x + 0.2 * sign, y), (x + 0.1 * sign, y + 0.09 * radius)], shade, width)
        canvas.circle(center, width, shade)
    canvas.circle(center, radius, None, LINE, 1.5)


def _draw_command(
    canvas: Canvas, ring: Point, radius: float, pixels_per_rad: float, roll: float, command: tuple[float, float]
) -> None:
    """Two bars through the point of the sky to fly to, turned by the roll that is missing."""
    turn, climb = command
    offset = min(max(climb * pixels_per_rad, -0.7 * radius), 0.7 * radius)
    x, y = ring[0] - offset * math.sin(roll), ring[1] - offset * math.cos(roll)
    dx, dy = math.cos(turn), math.sin(turn)
    for sign in (-1.0, 1.0):
        ends = [(x + sign * share * radius * dx, y + sign * share * radius * dy) for share in (0.14, 0.62)]
        canvas.line(ends, SIGNAL, 2.5)
    canvas.circle((x, y), max(4.0, 0.07 * radius), None, SIGNAL, 2.0)


def draw_gauge(
    canvas: Canvas,
    at: Point,
    width: float,
    label: str,
    value: str,
    share: float,
    color: Color,
    *,
    zero: float = 0.0,
    ticks: tuple[float, ...] = (),
) -> None:
    """A number with its name and a bar of its place in its range.

    Args:
        canvas: Panel.
        at: Upper left corner; the gauge is 40 pixels high.
        width: Its width.
        label: Name and unit.
        value: The number as shown.
        share: Place of the number in its range, 0 to 1.
        color: Of the bar.
        zero: Where the bar starts, 0 to 1.
        ticks: Places of limits, 0 to 1.
    """
    x, y = at
    canvas.text((x, y), label, MUTED, 10, "la")
    canvas.text((x, y + 29), value, TEXT, 16)
    canvas.rectangle(x, y + 35, x + width, y + 38, LINE, 1.5)
    share, zero = min(max(share, 0.0), 1.0), min(max(zero, 0.0), 1.0)
    low, high = min(share, zero) * width, max(share, zero) * width
    if high - low > 0.5:
        canvas.rectangle(x + low, y + 35, x + high, y + 38, color, 1.5)
    for tick in ticks:
        canvas.rectangle(x + tick * width - 0.5, y + 33, x + tick * width + 0.5, y + 40, MUTED)


def draw_stick(canvas: Canvas, center: Point, half: float, body: np.void, color: Color) -> None:
    """Where the stick is (aileron across, elevator up the box: pulled is down) and, below it, the rudder."""
    x, y = center
    canvas.rectangle(x - half, y - half, x + half, y + half, BACKGROUND, 6)
    canvas.line([(x - half, y), (x + half, y)], LINE)
    canvas.line([(x, y - half), (x, y + half)], LINE)
    reach = half - 6.0
    at = (x + reach * float(body["aileron_command"]), y + reach * float(body["elevator_command"]))
    canvas.line([center, at], color, 1.5)
    canvas.circle(at, 5.0, color)
    canvas.rectangle(x - half, y + half + 7, x + half, y + half + 10, LINE, 1.5)
    pedal = x + reach * float(body["rudder_command"])
    canvas.rectangle(pedal - 3, y + half + 4, pedal + 3, y + half + 13, color, 2)


class Quantity(NamedTuple):
    """What one chart shows.

    Attributes:
        label: Name and unit.
        actual: Values, oldest first, float64 [T].
        command: The same of the command.
        write: Number to text.
        least_span: The chart covers at least this much.
        scale: Half the width of the band about the command.
    """

    label: str
    actual: np.ndarray
    command: np.ndarray
    write: Callable[[float], str]
    least_span: float
    scale: float


def draw_chart(canvas: Canvas, quantity: Quantity, color: Color, span: int) -> None:
    """A quantity and what was commanded over time, the newest value at the right edge.

    Args:
        canvas: The whole panel.
        quantity: What to show.
        color: Of the actual values.
        span: Number of values that fill the chart. With one value alone the lines run all through.
    """
    actual, command, write = quantity.actual, quantity.command, quantity.write
    left, right, top, bottom = 14.0, canvas.width - 26.0, 36.0, canvas.height - 14.0
    canvas.text((left, 23), quantity.label, MUTED, 12)
    canvas.text((left + 110, 24), write(actual[-1]), color, 18)
    canvas.text((left + 200, 24), write(command[-1]), SIGNAL, 18)
    canvas.text((left + 290, 23), f"error {command[-1] - actual[-1]:+z.1f}", MUTED, 12)
    if len(actual) == 1:
        actual, command, span = actual.repeat(2), command.repeat(2), 1
    both = np.concatenate([actual, command])
    middle = 0.5 * float(both.min() + both.max())
    reach = max(0.55 * float(np.ptp(both)), 0.5 * quantity.least_span)

    def height(value: float) -> float:
        return min(max(0.5 * (top + bottom) - (value - middle) / reach * 0.5 * (bottom - top), top), bottom)

    canvas.rectangle(left, top, right, bottom, BACKGROUND, 3)
    for value, anchor in ((middle + 0.9 * reach, "lm"), (middle - 0.9 * reach, "lm")):
        canvas.text((left + 6, height(value)), write(value), MUTED, 10, anchor)
    band = [height(command[-1] + sign * quantity.scale) for sign in (1.0, -1.0)]
    canvas.rectangle(right + 4, band[0], right + 8, band[1], fade(SIGNAL, 0.35), 2)
    across = right - (right - left) * np.arange(len(actual) - 1, -1, -1) / span
    for values, shade in ((command, SIGNAL), (actual, color)):
        jumps = np.flatnonzero(np.abs(np.diff(values)) > 180.0) + 1 if shade is color else []  # an angle went round
        for xs, ys in zip(np.split(across, jumps), np.split(values, jumps), strict=True):
            if len(xs) > 1:
                canvas.line([(x, height(y)) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)], shade, 1.5)
    y = height(float(command[-1]))
    canvas.polygon([(right, y), (right + 10, y - 5), (right + 10, y + 5)], SIGNAL)
    canvas.circle((right, height(float(actual[-1]))), 3.5, color)
