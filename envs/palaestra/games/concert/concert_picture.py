"""The map of a Concert match with the orders of the last phase, and the same in words.

Land is of the colour of the power that owns its supply centre. Armies are discs, fleets are boats; who has to retreat
has a red edge. Arrows are moves, with a cross where they failed; dashed lines are supports, dotted lines convoys, rings
around units orders to hold.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from palaestra.core.compile.linker import record_view
from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, MUTED, SIGNAL, TEXT, Color, fade
from palaestra.drawing.widgets import Area, draw_bar, draw_legend, draw_panel, fit
from palaestra.game import Game
from palaestra.games.concert.adjudication import OK, RESULTS
from palaestra.games.concert.concert_map import NOBODY, Names, World
from palaestra.games.concert.concert_orders import is_fleet, location_of, power_of
from palaestra.games.concert.concert_phases import PHASES, RETREATS
from palaestra.games.concert.concert_position import (
    LastOrder,
    Position,
    heading,
    last_lines,
    last_orders,
    position_lines,
    position_of_record,
)
from palaestra.games.concert.map_drawing import CLOSED, INK, STROKES, MapDrawing, draw_centres, draw_map, drawing_of
from palaestra.games.concert.order_marks import WRONG, OrderMarks, aside, draw_arrow, draw_cross

WIDTH, HEIGHT = 1280, 792
MAP: Area = (20, 52, 908, 756)
PANEL_AREA: Area = (924, 52, 1260, 772)
BASE = 34
"""Base line of the title."""
ROW, BAR = 24, 104
"""From power to power in the panel, and where bars begin."""
WASH = 0.6
"""Opacity of an owner's colour."""
COLORS: dict[str, Color] = {
    "austria": (214, 66, 44),
    "england": (52, 84, 168),
    "france": (92, 188, 236),
    "germany": (86, 88, 94),
    "italy": (24, 150, 104),
    "russia": (186, 104, 178),
    "turkey": (240, 200, 52),
    "red": (226, 84, 60),
    "blue": (64, 132, 208),
}
OTHERS: tuple[Color, ...] = ((150, 96, 52), (150, 170, 60))
"""Of powers that have no colour of their own."""
FAILED: Color = (255, 128, 112)
SAMPLE: Color = (150, 170, 188)
"""Of results in the list, and of symbols in the legend."""


def colors_of(names: Names) -> list[Color]:
    """The colours of the powers."""
    return [COLORS.get(name, OTHERS[k % len(OTHERS)]) for k, name in enumerate(names.powers)]


BACKGROUNDS: WeakKeyDictionary[Names, tuple[MapDrawing, Canvas]] = WeakKeyDictionary()
"""What all pictures of a map have in common, by its names."""


def background(world: World, names: Names) -> tuple[MapDrawing, Canvas]:
    """The map in pixels, and what all its pictures have in common."""
    if names not in BACKGROUNDS:
        drawing, canvas = drawing_of(world, names, MAP), Canvas(WIDTH, HEIGHT, BACKGROUND)
        draw_map(canvas, world, names, drawing)
        draw_panel(canvas, PANEL_AREA)
        draw_symbols(canvas)
        BACKGROUNDS[names] = drawing, canvas
    return BACKGROUNDS[names]


def draw_symbols(canvas: Canvas) -> None:
    """What the symbols mean, below the map."""

    def ends(at: Point) -> tuple[Point, Point]:
        return (at[0] - 11, at[1]), (at[0] + 9, at[1])

    def home(at: Point) -> None:
        canvas.circle(at, 6.0, None, SAMPLE, 1.2)
        canvas.circle(at, 3.0, SAMPLE)

    entries = [
        ("army", lambda at: draw_unit(canvas, at, 7, SAMPLE, False, INK)),
        ("fleet", lambda at: draw_unit(canvas, at, 7, SAMPLE, True, INK)),
        ("has to retreat", lambda at: draw_unit(canvas, at, 6, SAMPLE, False, WRONG)),
        ("move", lambda at: draw_arrow(canvas, *ends(at), SAMPLE, INK)),
        ("support", lambda at: canvas.dashes(*ends(at), SAMPLE, 2.2, 3.0)),
        ("convoy", lambda at: canvas.marks(np.linspace(*ends(at), 5), 1.8, SAMPLE)),
        ("hold", lambda at: canvas.circle(at, 8, None, SAMPLE, 1.4)),
        ("failed", lambda at: draw_cross(canvas, at, 4.0)),
        ("centre", lambda at: canvas.circle(at, 3.5, SAMPLE)),
        ("home centre", home),
        ("no passage", lambda at: canvas.line(ends(at), *STROKES[CLOSED])),
    ]
    draw_legend(canvas, (MAP[0] + 14, HEIGHT - 18), entries, MAP[2])


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws a match.

    Args:
        game: The rules.
        world: With their board.
        s: The match record.

    Returns:
        1280 x 792 pixels.
    """
    match: Any = record_view(s)
    position, board, names = position_of_record(match), world.board[0].map, game.captions
    drawing, below = background(board, names)
    canvas, colors = below.copy(), colors_of(names)
    for c in np.flatnonzero(position.owners != NOBODY).tolist():
        for outline in drawing.cells[board.centre_province[c]]:
            canvas.polygon(outline, fade(colors[position.owners[c]], WASH))
    draw_centres(canvas, board, names, drawing)
    orders, phase = last_orders(board, names, position), position.last_phase
    OrderMarks(canvas, board, drawing, position, colors).draw(orders, phase)
    draw_units(canvas, board, names, drawing, position)
    if world.board[0].single:
        draw_asked(canvas, board, drawing, match)
    draw_title(canvas, game, match, position, colors)
    draw_powers(canvas, board, names, position, colors)
    draw_list(canvas, names, orders, phase, colors)
    return canvas


def draw_title(canvas: Canvas, game: Game, match: Any, position: Position, colors: list[Color]) -> None:
    """Name, season, phase, and the result."""
    canvas.text((MAP[0], BASE), game.name, TEXT, 18)
    words, winner = result(game, match)
    canvas.text((MAP[2], BASE), heading(position, bool(words)), TEXT, 18, "rs")
    middle = (MAP[0] + MAP[2]) / 2
    canvas.text((middle, BASE), words, colors[winner] if winner >= 0 else TEXT, 16, "ms")


def result(game: Game, match: Any) -> tuple[str, int]:
    """How the match has ended, in words, and who has won: -1 for nobody."""
    winner, reason = int(match.info.winner), game.end_reason(int(match.info.end_reason)).replace("_", " ")
    return (f"{game.captions.powers[winner]} has won ({reason})" if winner >= 0 else reason), winner


# --------------------------------------------------------------------------------------------------------------- units


def draw_units(canvas: Canvas, world: World, names: Names, drawing: MapDrawing, position: Position) -> None:
    """Draws all units; those that have to retreat stand beside their place, with a red edge."""
    radius, colors = drawing.unit, colors_of(names)
    for units, edge in ((position.dislodged, WRONG), (position.units, INK)):
        for p in np.flatnonzero(units).tolist():
            at = tuple(drawing.places[location_of(world, units[p], p)].tolist())
            at = aside(drawing, at) if edge == WRONG else at
            power = int(power_of(units[p]))
            draw_unit(canvas, at, radius, colors[power], bool(is_fleet(units[p])), edge)
            size = max(round(0.9 * radius), 8)
            base = at[1] + (0.72 * radius if is_fleet(units[p]) else 0.36 * size)
            canvas.text((at[0], base), names.powers[power][:2].title(), ink_on(colors[power]), size, "ms")


def draw_asked(canvas: Canvas, world: World, drawing: MapDrawing, match: Any) -> None:
    """A bright ring around the next unit of each power, where a decision is the order of one."""
    has_to_go = int(match.phase) == RETREATS
    for p in match.next.tolist():
        if p != NOBODY:
            unit = match.dislodged[p] if has_to_go else match.unit[p]
            x, y = drawing.places[location_of(world, unit, p)].tolist()
            at = aside(drawing, (x, y)) if has_to_go else (x, y)
            canvas.circle(at, drawing.unit + 4.0, None, SIGNAL, 2.4)


def draw_unit(canvas: Canvas, at: Point, radius: float, color: Color, is_boat: bool, edge: Color) -> None:
    """An army is a disc, a fleet a boat with two sails."""
    x, y = at
    wide = 2.6 if edge == WRONG else 1.4
    if not is_boat:
        canvas.circle(at, radius + wide, edge)
        canvas.circle(at, radius, color)
        return
    for grown, shade in ((wide, edge), (0.0, color)):
        bow, keel, deck = 1.3 * radius + 1.5 * grown, 0.75 * radius + 0.7 * grown, y - 0.15 * radius - grown
        bottom, foot, top = y + 0.85 * radius + grown, y - 0.28 * radius + grown, y - 1.35 * radius - 2 * grown
        canvas.polygon([(x - bow, deck), (x + bow, deck), (x + keel, bottom), (x - keel, bottom)], shade)
        for side, length in ((1, 0.85 * radius), (-1, 0.65 * radius)):
            mast = x + side * (0.14 * radius - grown)
            canvas.polygon([(mast, top), (mast, foot), (x + side * (length + 2 * grown), foot)], shade)


def ink_on(color: Color) -> Color:
    """Dark or light letters, whichever can be read on a colour."""
    return INK if 0.3 * color[0] + 0.59 * color[1] + 0.11 * color[2] > 140 else (255, 255, 255)


# --------------------------------------------------------------------------------------------------------------- panel


def draw_powers(canvas: Canvas, world: World, names: Names, position: Position, colors: list[Color]) -> None:
    """A bar of centres for each power, full with those that win, and how many units it has."""
    left, top, right = PANEL_AREA[0] + 16, PANEL_AREA[1] + 26, PANEL_AREA[2] - 16
    canvas.text((left, top), f"CENTRES, {world.solo} WIN", MUTED, 11)
    canvas.text((right, top), "units", MUTED, 11, "rs")
    for power, name in enumerate(names.powers):
        base = top + ROW * (power + 1)
        centres = int((position.owners == power).sum())
        units = sum(power_of(unit) == power for unit in position.units[position.units != 0].tolist())
        canvas.circle((left + 5, base - 5), 6, colors[power])
        canvas.text((left + 18, base), name, TEXT if centres else MUTED, 13)
        draw_bar(canvas, (left + BAR, base - 10, right - 64, base), centres / world.solo, colors[power])
        canvas.text((right - 36, base), f"{centres}", TEXT if centres else MUTED, 14, "rs")
        canvas.text((right, base), f"{units}", MUTED, 13, "rs")


def draw_list(canvas: Canvas, names: Names, orders: list[LastOrder], phase: int, colors: list[Color]) -> None:
    """The last orders with what became of them, each beside its power."""
    left, right, bottom = PANEL_AREA[0] + 16, PANEL_AREA[2] - 16, PANEL_AREA[3] - 14
    top = PANEL_AREA[1] + 26 + ROW * (len(names.powers) + 1) + 12
    canvas.text((left, top), f"LAST {PHASES[phase].upper()}" if orders else "NO ORDERS YET", MUTED, 11)
    pitch = min(max((bottom - top) / max(len(orders), 1), 12.0), 19.0)
    size = max(10, min(13, int(pitch - 3)))
    for number, order in enumerate(orders[: int((bottom - top) / pitch)], 1):
        base = top + number * pitch
        owner = names.powers[order.power][:2].title() if order.power != NOBODY else ""
        color = colors[order.power] if order.power != NOBODY else MUTED
        canvas.rectangle(left, base - 0.75 * size, left + 4, base + 1, color)
        canvas.text((left + 10, base), owner, MUTED, size)
        canvas.text((left + 34, base), fit(order.text, size, right - left - 108), TEXT, size)
        result = RESULTS[order.result].replace("_", " ")
        canvas.text((right, base), "" if order.result == OK else result, FAILED, size, "rs")


# ---------------------------------------------------------------------------------------------------------------- text


def write(game: Game, world: Any, s: Any) -> str:
    """The match as text: phase, centres, units, the last orders and their results.

    Args:
        game: The rules.
        world: With their board.
        s: The match record.
    """
    match: Any = record_view(s)
    position, board, names = position_of_record(match), world.board[0].map, game.captions
    words, _ = result(game, match)
    return "\n".join(
        [
            f"{game.name}: {heading(position, bool(words))}{f': {words}' if words else ''}",
            *position_lines(board, names, position),
            *last_lines(board, names, position),
        ]
    )
