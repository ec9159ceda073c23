"""Aircraft on a map or from the side: scale, grid, paths, guns and silhouettes on a panel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import LINE, MUTED, PANEL, SIGNAL, TEAMS, TEXT, Color, blend, fade
from palaestra.games.ucav.geometry import GRAVITY_MPS2
from palaestra.games.ucav.instruments import body_axes, draw_aircraft
from palaestra.games.ucav.missiles import GUIDED, LOST
from palaestra.games.ucav.weapons import GUN_FAR_M, GUN_NEAR_M, cone_half_angle_rad

GLYPH = 17.0
"""Half the length of an aircraft on a map, pixels: far larger than life."""
AHEAD_S = 3.0
"""How far ahead the path at the present turn is drawn, s."""
SLOWEST_MPS = 30.0
"""Below this speed no path ahead is drawn."""
WIDEST_CONE_RAD = math.radians(60.0)
"""A gun's cone is drawn no wider than this."""
PIECE, SHADES = 6, 8
"""Points in a piece of a trail, and its number of shades."""

NORTH_UP = np.array([(0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)])
"""Screen of a map: east runs right, south runs down."""
FROM_ABOVE = np.array([0.0, 0.0, -1.0])


class View(NamedTuple):
    """A horizontal or vertical plane of the scene on a panel.

    Attributes:
        screen: Directions along north, east, down that run right and down on the panel, float64 [2, 3].
        toward_viewer: Direction to the eye.
        center: Point drawn at `middle`, m along north, east, down.
        pixels_per_m: Scale right and down.
        middle: Pixels.
    """

    screen: np.ndarray
    toward_viewer: np.ndarray
    center: np.ndarray
    pixels_per_m: np.ndarray
    middle: np.ndarray

    def points(self, positions: np.ndarray) -> list[Point]:
        """Pixels of positions, m along north, east, down, float64 [n, 3]."""
        pixels = (positions - self.center) @ self.screen.T * self.pixels_per_m + self.middle
        return [(x, y) for x, y in pixels.tolist()]

    def point(self, position: np.ndarray) -> Point:
        """Pixel of one position."""
        return self.points(position[None])[0]


def positions_m(bodies: np.ndarray | np.void) -> np.ndarray:
    """Positions of aircraft records [...] or of one, m along north, east, down, float64 [..., 3]."""
    return np.stack([bodies["north_m"], bodies["east_m"], -bodies["altitude_m"]], -1)


class Scene(NamedTuple):
    """What map and side view cover, m.

    Attributes:
        north_m: Middle of the map.
        east_m: Middle of the map.
        half_side_m: From the middle of the map to its edges.
        half_width_m: From the middle of the side view to its ends.
        top_m: Height of the side view.
    """

    north_m: float
    east_m: float
    half_side_m: float
    half_width_m: float
    top_m: float


def scene_around(here: np.ndarray) -> Scene:
    """The scene around aircraft at ``here``, float64 [n, 3]: smooth in their positions, so that no scale jumps."""
    north, east, _ = here.mean(0).tolist()
    half = float(np.hypot(1000.0, 1.5 * _farthest_m(here)))
    return Scene(north, east, half, half, float(np.hypot(2500.0, 1.2 * here[:, 2].min())))


def scene_of(records: np.ndarray, count: int = 2) -> Scene:
    """The scene of a whole match of so many aircraft, records ``[T]``: in a film the ground does not move."""
    paths = positions_m(records["body"][:, :count])
    low, high = paths.min((0, 1)), paths.max((0, 1))
    north, east, _ = (0.5 * (low + high)).tolist()
    half_side, half_width = 0.56 * float((high - low)[:2].max()), 1.2 * _farthest_m(paths)
    return Scene(north, east, max(1500.0, half_side), max(1500.0, half_width), max(3000.0, -1.15 * float(low[2])))


def _farthest_m(positions: np.ndarray) -> float:
    """The largest distance over the ground of an aircraft from the middle of all, positions [..., n, 3]."""
    offsets = positions - positions.mean(-2, keepdims=True)
    return float(np.hypot(offsets[..., 0], offsets[..., 1]).max())


def map_view(scene: Scene, size: int) -> View:
    """The view from above on a square panel."""
    center = np.array([scene.north_m, scene.east_m, 0.0])
    return View(NORTH_UP, FROM_ABOVE, center, np.full(2, 0.5 * size / scene.half_side_m), np.full(2, 0.5 * size))


def side_view(scene: Scene, here: np.ndarray, width: float, ground: float) -> View:
    """The view from the side: ``here``, float64 [2, 3], is red left and blue right, sea level at the given ordinate."""
    apart = here[1, :2] - here[0, :2]
    across = float(np.hypot(*apart))
    right = np.array([*(apart / across if across > 1.0 else (0.0, 1.0)), 0.0])
    scale = np.array([0.5 * width / scene.half_width_m, (ground - 6.0) / scene.top_m])
    center = here.mean(0) * (1.0, 1.0, 0.0)
    screen = np.stack([right, (0.0, 0.0, 1.0)])
    return View(screen, np.array([right[1], -right[0], 0.0]), center, scale, np.array([0.5 * width, ground]))


def grid_lines(low: float, high: float, pixels_per_m: float, spacing: float) -> list[tuple[float, float]]:
    """Multiples of 250 m, 500 m, 1 km, 2 km ... in [low, high] at least ``spacing`` pixels apart, each with an opacity.

    The next finer multiples are there too, the fainter the closer they are: nothing jumps while the scale changes.
    """
    level = max(0, math.ceil(math.log2(spacing / (250.0 * pixels_per_m))))
    step = 250.0 * 2.0**level
    lines = [(i * step, 1.0) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    if level > 0:
        half, opacity = 0.5 * step, max(0.0, step * pixels_per_m / spacing - 1.0)
        lines += [(i * half, opacity) for i in range(math.ceil(low / half), math.floor(high / half) + 1) if i % 2]
    return lines


def draw_map_grid(canvas: Canvas, view: View) -> None:
    """Lines of round distances from the origin of the match, named in km."""
    size, scale = canvas.width, float(view.pixels_per_m[0])
    for axis, (ahead, behind) in ((1, "EW"), (0, "NS")):
        center, span = float(view.center[axis]), 0.5 * size / scale
        for distance, opacity in grid_lines(center - span, center + span, scale, 70.0):
            offset = round(0.5 * size + (distance - center) * scale * (1.0 if axis else -1.0))
            canvas.line([(offset, 0), (offset, size)] if axis else [(0, offset), (size, offset)], fade(LINE, opacity))
            if opacity == 1.0 and 24 < offset < size - 24:
                side = "" if distance == 0.0 else ahead if distance > 0.0 else behind
                at = (offset, size - 5) if axis else (5, offset)
                canvas.text(at, f"{abs(distance) / 1000:g}{side}", MUTED, 10, "ms" if axis else "lm")


def draw_arena(canvas: Canvas, view: View, radius_m: float) -> None:
    """The edge of the arena as far as it is in sight."""
    angles = np.radians(np.arange(361.0))
    points = np.array(view.points(radius_m * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], 1)))
    near = np.all(np.abs(points - view.middle) < 0.7 * canvas.width, 1)
    for i in np.flatnonzero(near[:-1] & near[1:]).tolist():
        canvas.line([tuple(points[i]), tuple(points[i + 1])], blend(PANEL, SIGNAL, 0.6), 1.5)


def draw_line_of_sight(canvas: Canvas, view: View, here: np.ndarray) -> None:
    """A faint line between two aircraft that are not close."""
    red, blue = view.points(here)
    if math.dist(red, blue) > 4 * GLYPH:
        canvas.dashes(red, blue, fade(MUTED, 0.45), 1.0, 4.0)


def draw_gun(canvas: Canvas, view: View, match: Any, k: int, team: int) -> None:
    """The cone of the gun of aircraft k within its range window, never finer than the eye can see."""
    armed = float(match.parameters.red_gun if team == 0 else match.parameters.blue_gun)
    if armed <= 0.0 or match.lost[k]:
        return
    here, nose = positions_m(match.body[k]), body_axes(match.body[k])[0]
    near, far = view.point(here + GUN_NEAR_M * nose), view.point(here + GUN_FAR_M * nose)
    length = math.dist(near, far)
    if length < 1.0:  # it points at the eye
        return
    across = ((near[1] - far[1]) / length, (far[0] - near[0]) / length)
    spread = math.tan(min(cone_half_angle_rad(match), WIDEST_CONE_RAD)) * length / (GUN_FAR_M - GUN_NEAR_M)
    at_near, at_far = max(spread * GUN_NEAR_M, 1.0), max(spread * GUN_FAR_M, 2.5)
    corners = [
        (x + half * across[0], y + half * across[1])
        for (x, y), half in ((near, -at_near), (far, -at_far), (far, at_far), (near, at_near))
    ]
    hits = bool(match.in_gun[k])
    color = SIGNAL if hits else TEAMS[team]
    canvas.polygon(corners, fade(color, 0.75 if hits else 0.3), fade(color, 0.8))


def draw_flight(canvas: Canvas, view: View, match: Any, k: int, team: int, path: np.ndarray, is_hit: bool) -> None:
    """Where an aircraft has been (float64 [T, 3], the last is now), where its turn leads, and its silhouette."""
    color, lost = TEAMS[team], bool(match.lost[k])
    draw_trail(canvas, view.points(path), color, int(match.steps))
    if not lost:
        canvas.line(view.points(path_ahead_m(match.body[k])), fade(TEXT, 0.45), 1.0)
    at = view.point(positions_m(match.body[k]))
    if is_hit:
        canvas.circle(at, 1.5 * GLYPH, fade(SIGNAL, 0.12), SIGNAL, 1.5)
    draw_aircraft(canvas, at, match.body[k], view.screen, view.toward_viewer, color, GLYPH)
    if lost:
        for sign in (-GLYPH, GLYPH):
            canvas.line([(at[0] - GLYPH, at[1] - sign), (at[0] + GLYPH, at[1] + sign)], SIGNAL, 2.5)


def draw_envelope(canvas: Canvas, view: View, match: Any, k: int, team: int) -> None:
    """Where aircraft k may launch a missile at what the seeker sees: the edges of the cone and of the range, dashed."""
    if match.lost[k] or not match.ammunition[k]:
        return
    p, here = match.parameters, positions_m(match.body[k])
    nose, right, _ = body_axes(match.body[k])
    spread, near, far = math.radians(p.launch_deg), float(p.launch_near_m), float(p.launch_far_m)
    angles = np.linspace(-spread, spread, 9)
    rays = np.cos(angles)[:, None] * nose + np.sin(angles)[:, None] * right
    color = fade(TEAMS[team], 0.5)
    for ray in (rays[0], rays[-1]):
        canvas.dashes(view.point(here + near * ray), view.point(here + far * ray), color, 1.0, 6.0)
    for distance in (near, far):
        canvas.line(view.points(here + distance * rays), color, 1.0)


def draw_missiles(canvas: Canvas, view: View, past: np.ndarray, teams: Sequence[int], steps: int) -> None:
    """Missiles in flight with their trails: a cross where one flew on without its target.

    Args:
        canvas: Panel.
        view: Of the panel.
        past: Missile records [T, n], the last ones are now.
        teams: Of each slot that launches.
        steps: Decisions until now.
    """
    for k in range(past.shape[1]):
        track, now = past[:, k], past[-1, k]
        if now["status"] not in (GUIDED, LOST):
            continue
        color = TEAMS[teams[int(now["shooter"])]]
        track = track[track["flight_s"] > 0.0]
        starts = np.flatnonzero(np.diff(track["flight_s"]) < 0.0)
        track = track[starts[-1] + 1 :] if len(starts) else track
        points = view.points(positions_m(track)) if len(track) else []
        draw_trail(canvas, points, color, steps)
        at = view.point(positions_m(now))
        if now["status"] == GUIDED:
            canvas.circle(at, 0.25 * GLYPH, color, TEXT, 1.0)
        else:
            for sign in (-5.0, 5.0):
                canvas.line([(at[0] - 5.0, at[1] - sign), (at[0] + 5.0, at[1] + sign)], color, 1.5)


def draw_trail(canvas: Canvas, points: list[Point], color: Color, steps: int) -> None:
    """A path that fades with age, in `SHADES` steps and in pieces that stay the same from picture to picture.

    Args:
        canvas: Panel.
        points: One a decision, the last one being now.
        color: Of the newest piece.
        steps: Decisions until now.
    """
    count = len(points)
    start = 0
    while start < count - 1:
        end = min(start + PIECE - (steps - count + 1 + start) % PIECE, count - 1)
        share = math.ceil(SHADES * end / count) / SHADES
        canvas.line(points[start : end + 1], blend(PANEL, color, 0.05 + 0.7 * share), 1.5)
        start = end


def path_ahead_m(body: np.void) -> np.ndarray:
    """Positions during the next `AHEAD_S` if the present turn goes on, m along north, east, down, float64 [n, 3].

    The acceleration is gravity and the load factor along the aircraft's normal. Its part across the velocity turns
    that at the rate v x a / v^2, about an axis that stays.
    """
    position = positions_m(body)
    velocity = np.array([body[f"velocity_{axis}_mps"] for axis in ("north", "east", "down")], np.float64)
    speed = float(np.linalg.norm(velocity))
    if speed < SLOWEST_MPS:
        return np.stack([position, position])
    acceleration = GRAVITY_MPS2 * (np.array([0.0, 0.0, 1.0]) - float(body["load_factor_g"]) * body_axes(body)[2])
    turn = np.cross(velocity, acceleration) / speed**2
    rate = float(np.linalg.norm(turn))
    times = np.linspace(0.0, AHEAD_S, 13)[:, None]
    if rate < 1e-4:
        return position + velocity * times
    toward = np.cross(turn, velocity) / rate
    return position + (velocity * np.sin(rate * times) + toward * (1.0 - np.cos(rate * times))) / rate
