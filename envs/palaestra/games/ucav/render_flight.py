"""Pictures of the games of this family, drawn without a display.

A picture is a function of one match record. Where the aircraft have been is not in the record: a caller that has kept
the earlier ones (a replay, `palaestra.games.ucav.flightplot.film`) passes them as ``trail``. Without them the lines
*ahead* of the aircraft still show how they turn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, GROUND, LINE, MUTED, SIGNAL, TEAMS, TEXT, Color, fade
from palaestra.drawing.widgets import draw_bar
from palaestra.game import Facts, Game
from palaestra.games.ucav.autopilot import altitude_to_flight_path, heading_to_roll
from palaestra.games.ucav.evade import PILOT
from palaestra.games.ucav.geometry import (
    GRAVITY_MPS2,
    antenna_train_angle_rad,
    closure_mps,
    distance_m,
)
from palaestra.games.ucav.instruments import Quantity, draw_aircraft, draw_attitude, draw_chart, draw_gauge, draw_stick
from palaestra.games.ucav.mapview import (
    GLYPH,
    Scene,
    draw_arena,
    draw_envelope,
    draw_flight,
    draw_gun,
    draw_line_of_sight,
    draw_map_grid,
    draw_missiles,
    draw_trail,
    grid_lines,
    map_view,
    path_ahead_m,
    positions_m,
    scene_around,
    side_view,
)
from palaestra.games.ucav.missiles import FREE, GUIDED, HIT, LOST, speed_mps, threat, time_to_go_s
from palaestra.games.ucav.records import match_time_s, outcome, reason
from palaestra.games.ucav.track import ATTITUDE, HEADING, PID_FLIGHT_PATH_RAD, PID_ROLL_RAD, climb_error, turn_error_rad
from palaestra.games.ucav.weapons import GUN_FAR_M, GUN_NEAR_M, cone_half_angle_rad
from palaestra.kernels.angles import wrap_angle_rad

WIDTH, HEIGHT = 960, 540
MARGIN, HEADER = 10, 34
SQUARE = HEIGHT - HEADER - 2 * MARGIN
"""Side of the large panel on the left, pixels."""
COLUMN = WIDTH - SQUARE - 3 * MARGIN
"""Width of the panels on the right, pixels."""
SIDE_HEIGHT = 164
STRIP_HEIGHT = (SQUARE - SIDE_HEIGHT - 2 * MARGIN) // 2
CHART_HEIGHT = (SQUARE - 2 * MARGIN) // 3

TRAIL_S, SIDE_TRAIL_S = 25.0, 6.0
"""How much of a trail is drawn on the map and from the side, s."""
CHART_S = 30.0
"""How much of a trail the charts show, s."""
RANGE_SCALE_M, ALTITUDE_SCALE_M, SPEED_SCALE_MPS, CLOSURE_SCALE_MPS = 6000.0, 12_000.0, 400.0, 600.0
"""What the gauges show at most."""
RAD_PER_G = math.radians(5.0)
"""How far the command bar moves for an error of the load factor, rad/g: a picture of it, not a law."""


def draw_dogfight(
    game: Game, world: Any, s: np.void, trail: np.ndarray | None = None, scene: Scene | None = None
) -> Canvas:
    """Draws one match of `dogfight`, `pursuit` or `team`: map, view from the side, instruments or a list of aircraft.

    Args:
        game: The rules.
        world: Unused.
        s: The match record.
        trail: Earlier records of the same match ``[T]``, oldest first.
        scene: What map and side view cover (`palaestra.games.ucav.mapview.scene_of` a whole match); what is around the
            aircraft now if None.

    Returns:
        960 x 540 pixels, the same for the same arguments.
    """
    match = s.view((np.record, s.dtype))  # fields as attributes, as in the rules
    past = _history(game, s, trail, TRAIL_S)
    path = positions_m(past["body"][:, : len(game.agents)])
    scene = scene or scene_around(path[-1][_shown(game, match)])
    below = HEADER + SIDE_HEIGHT + MARGIN
    cone = f"gun cone ±{math.degrees(cone_half_angle_rad(match)):.3g}°"
    panels = [
        (_header(game, match, cone), (MARGIN, 0)),
        (_map(game, match, past, scene), (MARGIN, HEADER)),
        (_side(game, match, past[-round(SIDE_TRAIL_S * game.render_fps) :], scene), (SQUARE + 2 * MARGIN, HEADER)),
    ]
    if len(game.agents) > 2:
        return _compose([*panels, (_roster(game, match), (SQUARE + 2 * MARGIN, below))])
    for k, top in enumerate((below, below + STRIP_HEIGHT + MARGIN)):
        panels += [(_cockpit(game, match, k), (SQUARE + 2 * MARGIN, top))]
    return _compose(panels)


def draw_track(game: Game, world: Any, s: np.void, trail: np.ndarray | None = None) -> Canvas:
    """Draws one match of `track`: an attitude indicator with command bars, and the three quantities.

    Args:
        game: The rules.
        world: The game's world: holds what is commanded.
        s: The match record.
        trail: Earlier records of the same match ``[T]``, oldest first.

    Returns:
        960 x 540 pixels, the same for the same arguments.
    """
    match, mode = s.view((np.record, s.dtype)), world.command
    past = _history(game, s, trail, CHART_S)
    what = ("attitude", "heading", "load factor")[mode]
    panels = [(_header(game, match, f"command {what}"), (MARGIN, 0)), (_flight_deck(match, mode), (MARGIN, HEADER))]
    for row, quantity in enumerate(_quantities(match.parameters, past, mode)):
        chart = Canvas(COLUMN, CHART_HEIGHT)
        draw_chart(chart, quantity, TEAMS[1], round(CHART_S * game.render_fps))
        panels.append((chart, (SQUARE + 2 * MARGIN, HEADER + row * (CHART_HEIGHT + MARGIN))))
    return _compose(panels)


def _history(game: Game, s: np.void, trail: np.ndarray | None, seconds: float) -> np.ndarray:
    """The records of the last seconds and the present one ``[T]``."""
    now = np.array([s])
    if trail is None or len(trail) == 0:
        return now
    return np.concatenate([trail[-round(seconds * game.render_fps) :], now])


def _compose(panels: list[tuple[Canvas, tuple[int, int]]]) -> Canvas:
    whole = Canvas(WIDTH, HEIGHT, BACKGROUND)
    for canvas, corner in panels:
        whole.put(canvas, corner)
    return whole


def _header(game: Game, match: Any, note: str) -> Canvas:
    canvas = Canvas(WIDTH - 2 * MARGIN, HEADER, BACKGROUND)
    base = 23
    canvas.text((0, base), game.name, TEXT, 16)
    seconds = match_time_s(game, match)
    canvas.text((SQUARE, base), f"{int(seconds // 60)}:{seconds % 60:04.1f}", TEXT, 16, "rs")
    canvas.text((SQUARE - 70, base), note, MUTED, 12, "rs")
    winner = int(match.info.winner)
    color = TEAMS[winner] if len(game.teams) == 2 and winner >= 0 else SIGNAL
    canvas.text((canvas.width, base), outcome(game, match), color, 16, "rs")
    return canvas


# --------------------------------------------------------------------------------------------------------- dogfight


def _shown(game: Game, match: Any) -> np.ndarray:
    """Which aircraft the picture is around, bool [n]: those in the match, all where there is none."""
    lost = match.lost[: len(game.agents)] != 0
    return ~lost if not lost.all() else lost


def _map(game: Game, match: Any, past: np.ndarray, scene: Scene) -> Canvas:
    canvas, here = Canvas(SQUARE, SQUARE), positions_m(past[-1]["body"][: len(game.agents)])
    view = map_view(scene, SQUARE)
    draw_map_grid(canvas, view)
    draw_arena(canvas, view, float(match.parameters.arena_radius_m))
    pair = len(game.agents) == 2
    if pair and "missiles" in (past.dtype.names or ()):
        for k in range(2):
            draw_envelope(canvas, view, match, k, k)
    _draw_scene(canvas, view, game, match, past)
    at = view.points(here)
    for k, agent in enumerate(game.agents):
        color = TEAMS[game.team_index[k]]
        below = pair and (at[k][1], k) > (at[1 - k][1], 1 - k)
        x, y = min(max(at[k][0], 40.0), SQUARE - 40.0), at[k][1] + (30.0 if below else -30.0)
        team, _, number = agent.partition("_")
        name = f"{team} {here[k, 2] / -1000:.1f} km" if pair else number
        canvas.text((x, min(max(y, 12.0), SQUARE - 24.0)), name, color, 12, "mm")
    canvas.text((8, 18), "map", MUTED, 11)
    x = SQUARE - 16
    canvas.polygon([(x, 10), (x - 4, 24), (x, 21), (x + 4, 24)], MUTED)
    canvas.text((x, 27), "N", MUTED, 11, "ma")
    return canvas


def _side(game: Game, match: Any, past: np.ndarray, scene: Scene) -> Canvas:
    canvas, ground = Canvas(COLUMN, SIDE_HEIGHT), SIDE_HEIGHT - 12.0
    here = positions_m(past[-1]["body"][: len(game.agents)])
    shown = _shown(game, match)
    middles = [
        here[own & shown] if (own & shown).any() else here[own] for own in (game.team_index == k for k in (0, 1))
    ]
    view = side_view(scene, np.stack([places.mean(0) for places in middles]), COLUMN, ground)
    scale = float(view.pixels_per_m[1])
    for height, opacity in grid_lines(0.0, ground / scale, scale, 22.0):
        y = round(ground - height * scale)
        canvas.line([(0, y), (COLUMN, y)], fade(LINE, opacity))
        if opacity == 1.0 and height > 0.0 and y > 14:
            canvas.text((6, y - 3), f"{height / 1000:g} km", MUTED, 10)
    canvas.rectangle(0, ground, COLUMN, SIDE_HEIGHT, GROUND)
    floor = ground - float(match.parameters.floor_m) * scale
    canvas.dashes((0, floor), (COLUMN, floor), fade(SIGNAL, 0.6))
    for k, (x, y) in enumerate(view.points(here)):
        canvas.line([(x, y), (x, ground)], fade(TEAMS[game.team_index[k]], 0.35))
    _draw_scene(canvas, view, game, match, past)
    return canvas


def _draw_scene(canvas: Canvas, view: Any, game: Game, match: Any, past: np.ndarray) -> None:
    teams = game.team_index.tolist()
    path = positions_m(past["body"][:, : len(teams)])
    if len(teams) == 2:
        draw_line_of_sight(canvas, view, path[-1])
    if "missiles" in (past.dtype.names or ()):
        draw_missiles(canvas, view, past["missiles"], teams, int(match.steps))
    for k, team in enumerate(teams):
        draw_gun(canvas, view, match, k, team)
    for k, team in enumerate(teams):
        draw_flight(canvas, view, match, k, team, path[:, k], _is_hit(match, k, len(teams)))


def _is_hit(match: Any, k: int, count: int) -> bool:
    """Whether a gun hits an aircraft."""
    if count == 2:
        return bool(match.in_gun[1 - k])
    return bool(((match.gun_target == k) & (match.in_gun != 0)).any())


def _roster(game: Game, match: Any) -> Canvas:
    """All aircraft, one team beside the other: name, script, health, height, speed and weapons or why it has left."""
    canvas = Canvas(COLUMN, 2 * STRIP_HEIGHT + MARGIN)
    for team, slots in enumerate(game.teams.values()):
        left = 0.5 * COLUMN * team
        for row, k in enumerate(slots):
            y, body, color = 37.5 * row, match.body[k], TEAMS[team]
            playing, lost = int(match.current_player[k]), reason(game, match.lost[k])
            canvas.rectangle(left, y + 4, left + 3, y + 34, color)
            canvas.text((left + 12, y + 17), game.agents[k], MUTED if lost else color, 12)
            canvas.text((left + 62, y + 17), game.scripts[playing] if playing >= 0 else "", MUTED, 11)
            draw_bar(canvas, (left + 118, y + 9, left + 202, y + 16), float(match.health[k]), color, radius=3)
            numbers = f"{body.altitude_m:.0f} m  {body.true_airspeed_mps:.0f} m/s"
            canvas.text((left + 12, y + 31), lost or numbers, SIGNAL if lost else TEXT, 11)
            canvas.text((left + 202, y + 31), "" if lost else _note(game, match, k), SIGNAL, 11, "rs")
    return canvas


def _cockpit(game: Game, match: Any, k: int) -> Canvas:
    canvas = Canvas(COLUMN, STRIP_HEIGHT)
    color, body, other = TEAMS[k], match.body[k], match.body[1 - k]
    canvas.rectangle(0, 0, 3, STRIP_HEIGHT, color)
    canvas.text((14, 21), game.agents[k], color, 14)
    playing = int(match.current_player[k])
    canvas.text((66, 21), game.scripts[playing] if playing >= 0 else "", MUTED, 12)
    left, right, health = COLUMN - 162.0, COLUMN - 48.0, float(match.health[k])
    canvas.text((left - 10, 21), _note(game, match, k), SIGNAL, 12, "rs")
    draw_bar(canvas, (left, 12, right, 20), health, color, radius=3)
    canvas.text((COLUMN - 14, 21), f"{math.ceil(100 * health)}%", TEXT, 12, "rs")
    draw_attitude(canvas, (62.0, 91.0), 48.0, body, color)
    range_m, off_nose, closure = distance_m(body, other), antenna_train_angle_rad(body, other), closure_mps(body, other)
    gun = (GUN_NEAR_M / RANGE_SCALE_M, GUN_FAR_M / RANGE_SCALE_M)
    gauges = (
        *_own_gauges(match, body),
        ("range m", f"{range_m:.0f}", range_m / RANGE_SCALE_M, 0.0, gun),
        ("off nose °", f"{math.degrees(off_nose):.1f}", off_nose / math.pi, 0.0, ()),
        ("closure m/s", f"{closure:+.0f}", 0.5 + 0.5 * closure / CLOSURE_SCALE_MPS, 0.5, ()),
        _throttle_gauge(body),
    )
    _draw_gauges(canvas, (128.0, 42.0), 78.0, gauges, color)
    return canvas


def _note(game: Game, match: Any, k: int) -> str:
    """Why an aircraft is lost, else what follows it, else what its weapons do, a text."""
    text = reason(game, match.lost[k]) or ("on target" if match.in_gun[k] else "")
    if "missiles" in match.dtype.names and not match.lost[k]:
        text = _warning(match, k) or f"{text}  missiles: {int(match.ammunition[k])}".strip()
    return text


def _warning(match: Any, k: int) -> str:
    """How soon the next missile arrives at an aircraft, a text; empty where none follows it."""
    next_one = threat(match, k, -1)
    return f"missile {time_to_go_s(match.missiles[next_one], match.body[k]):.1f} s" if next_one >= 0 else ""


# ------------------------------------------------------------------------------------------------------------- evade


def draw_evade(game: Game, world: Any, s: np.void, trail: np.ndarray | None = None) -> Canvas:
    """Draws one match of `evade`: a map, attitude and gauges, distance and speed of each missile.

    Args:
        game: The rules.
        world: Unused.
        s: The match record.
        trail: Earlier records of the same match ``[T]``, oldest first.

    Returns:
        960 x 540 pixels, the same for the same arguments.
    """
    match = s.view((np.record, s.dtype))
    past = _history(game, s, trail, TRAIL_S)
    rear, front = match.parameters.seeker_rear_m / 1000, match.parameters.seeker_front_m / 1000
    lock = f"seen from behind {rear:.3g} km, beside {front:.3g} km"
    return _compose(
        [
            (_header(game, match, lock), (MARGIN, 0)),
            (_chase(match, past), (MARGIN, HEADER)),
            (_evader(match), (SQUARE + 2 * MARGIN, HEADER)),
        ]
    )


def _chase(match: Any, past: np.ndarray) -> Canvas:
    """The map: an aircraft and the missiles in flight, each with its distance."""
    canvas, body = Canvas(SQUARE, SQUARE), match.body[PILOT]
    flying = [missile for missile in match.missiles if missile.status in (GUIDED, LOST)]
    here = np.stack([positions_m(one) for one in (body, *flying)])
    view = map_view(scene_around(here), SQUARE)
    draw_map_grid(canvas, view)
    draw_missiles(canvas, view, past["missiles"], (1, 0), int(match.steps))
    path = view.points(positions_m(past["body"][:, PILOT]))
    draw_trail(canvas, path, TEAMS[1], int(match.steps))
    canvas.line(view.points(path_ahead_m(body)), fade(TEXT, 0.45), 1.0)
    draw_aircraft(canvas, path[-1], body, view.screen, view.toward_viewer, TEAMS[1], GLYPH)
    for missile, (x, y) in zip(flying, view.points(here)[1:], strict=True):
        text = f"{distance_m(missile, body) / 1000:.1f} km" if missile.status == GUIDED else "lost"
        canvas.text((x, y - 10.0), text, TEAMS[0], 12, "ms")
    canvas.text((8, 18), "map", MUTED, 11)
    return canvas


def _evader(match: Any) -> Canvas:
    """Attitude, gauges, and what the warning receiver says."""
    canvas, body, color = Canvas(COLUMN, SQUARE), match.body[PILOT], TEAMS[1]
    draw_attitude(canvas, (0.5 * COLUMN, 150.0), 120.0, body, color)
    _draw_gauges(canvas, (20.0, 300.0), 0.25 * COLUMN - 8.0, (*_own_gauges(match, body), _throttle_gauge(body)), color)
    for k, missile in enumerate(match.missiles):
        if missile.status == FREE:
            continue
        flies = missile.status in (GUIDED, LOST)
        text = f"missile {k + 1}: {('', 'follows', 'has lost you', 'hit', 'gone')[int(missile.status)]}"
        if flies:
            text += f", {speed_mps(missile):.0f} m/s, {missile.lift_mps2 / GRAVITY_MPS2:.0f} g"
        if missile.status == GUIDED:
            text += f", {distance_m(missile, body):.0f} m, {time_to_go_s(missile, body):.1f} s"
        canvas.text((20, 430 + 24 * k), text, SIGNAL if missile.status in (GUIDED, HIT) else MUTED, 13)
    return canvas


# -------------------------------------------------------------------------------------------------------- instruments


def _own_gauges(match: Any, body: Any) -> tuple[tuple, ...]:
    floor = float(match.parameters.floor_m) / ALTITUDE_SCALE_M
    speed, altitude, load = float(body.true_airspeed_mps), float(body.altitude_m), float(body.load_factor_g)
    attack = math.degrees(body.angle_of_attack_rad)
    return (
        ("speed m/s", f"{speed:.0f}", speed / SPEED_SCALE_MPS, 0.0, ()),
        ("altitude m", f"{altitude:.0f}", altitude / ALTITUDE_SCALE_M, 0.0, (floor,)),
        ("load g", f"{load:+.1f}", (load + 3.0) / 15.0, 0.2, (0.8,)),
        ("attack °", f"{attack:+.1f}", (attack + 10.0) / 40.0, 0.25, ()),
    )


def _throttle_gauge(body: Any) -> tuple:
    throttle = float(body.throttle_command)
    return ("throttle", f"{100 * throttle:.0f}%", throttle, 0.0, (0.5,))


def _draw_gauges(canvas: Canvas, at: Point, pitch: float, gauges: tuple[tuple, ...], color: Color) -> None:
    """Rows of four."""
    for i, (label, value, share, zero, ticks) in enumerate(gauges):
        corner = (at[0] + i % 4 * pitch, at[1] + i // 4 * 53.0)
        draw_gauge(canvas, corner, pitch - 12.0, label, value, share, color, zero=zero, ticks=ticks)


# ------------------------------------------------------------------------------------------------------------- track


def _flight_deck(match: Any, mode: int) -> Canvas:
    """Attitude indicator, stick and gauges."""
    canvas, body, color = Canvas(SQUARE, SQUARE), match.body[0], TEAMS[1]
    turn, climb = turn_error_rad(match, mode), climb_error(match, mode)
    if mode == HEADING:
        roll = heading_to_roll(body, match.turn_command_rad, PID_ROLL_RAD)
        turn = wrap_angle_rad(roll - body.roll_rad)
        climb = altitude_to_flight_path(body, match.climb_command, PID_FLIGHT_PATH_RAD) - body.flight_path_angle_rad
    elif mode != ATTITUDE:
        climb *= RAD_PER_G
    draw_attitude(canvas, (0.5 * SQUARE, 182.0), 166.0, body, TEXT, (float(turn), float(climb)))
    draw_stick(canvas, (60.0, 425.0), 40.0, body, color)
    heading, path = math.degrees(body.heading_rad), math.degrees(body.flight_path_angle_rad)
    length, age = float(match.command_length), float(match.command_age)
    gauges = (
        *_own_gauges(match, body),
        ("heading °", f"{heading:.0f}", heading / 360.0, 0.0, ()),
        ("flight path °", f"{path:+.1f}", 0.5 + path / 180.0, 0.5, ()),
        _throttle_gauge(body),
        ("next in s", f"{(length - age) / 10.0:.1f}", 1.0 - age / max(length, 1.0), 0.0, ()),
    )
    _draw_gauges(canvas, (126.0, 382.0), 88.0, gauges, color)
    return canvas


def _quantities(p: Any, past: np.ndarray, mode: int) -> tuple[Quantity, Quantity, Quantity]:
    """What the three charts show of the last records."""
    body = past["body"][:, 0]
    heading = mode == HEADING
    turn_command = np.degrees(past["turn_command_rad"])
    turn = Quantity(
        "heading °" if heading else "roll °",
        _near(turn_command[-1], np.degrees(body["heading_rad" if heading else "roll_rad"])),
        _near(turn_command[-1], turn_command),
        (lambda x: f"{x % 360.0:.0f}") if heading else (lambda x: f"{(x + 180.0) % 360.0 - 180.0:+z.0f}"),
        60.0,
        float(p.heading_scale_deg if heading else p.roll_scale_deg),
    )
    command = past["climb_command"]
    if mode == ATTITUDE:
        path = np.degrees(body["flight_path_angle_rad"])
        scale = float(p.flight_path_scale_deg)
        climb = Quantity("flight path °", path, np.degrees(command), "{:+z.1f}".format, 20.0, scale)
    elif heading:
        climb = Quantity("altitude m", body["altitude_m"], command, "{:.0f}".format, 400.0, float(p.altitude_scale_m))
    else:
        load = body["load_factor_g"]
        climb = Quantity("load g", load, command, "{:+z.1f}".format, 4.0, float(p.load_factor_scale_g))
    speed = body["true_airspeed_mps"], past["speed_command_mps"]
    return turn, climb, Quantity("speed m/s", *speed, "{:.0f}".format, 60.0, float(p.speed_scale_mps))


def _near(command: float, angles: np.ndarray) -> np.ndarray:
    """The same angles, degrees, each at most half a turn from the command."""
    return command + (angles - command + 180.0) % 360.0 - 180.0


def facts(game: Game, world: Any, s: np.void) -> Facts:
    """At whom pilots aim and launch."""
    options = {}
    for slot, team in enumerate(game.team_index):
        opponents = [agent for agent, other in zip(game.agents, game.team_index, strict=True) if other != team]
        options[slot] = {
            "target": ["nearest", *opponents],
            "launch": ["none", *(f"launch at {agent}" for agent in opponents)],
        }
    return Facts(options)
