"""Battles from above, as text, and what a click in the picture means. Nothing is hidden from the viewer.

A unit is a disc of the radius that others cannot enter; its icon (`palaestra.games.skirmish.unit_icons`) says what it
does. Its rim is what is left of its hit points, the white ring around it what is left of its shield, the yellow bar
below it its energy. Lines go to whom it attacked or healed last in this decision; crosses are where units have fallen.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from palaestra.core.compile.linker import record_view
from palaestra.drawing.canvas import Canvas, Point
from palaestra.drawing.colors import BACKGROUND, MUTED, SIGNAL, TEAMS, TEXT, Color, blend, fade
from palaestra.drawing.widgets import draw_bar, draw_legend, length_of
from palaestra.game import Choice, Facts, Game
from palaestra.games.skirmish.battle_records import ARRIVED, RED
from palaestra.games.skirmish.combat import CIRCLE, NOBODY
from palaestra.games.skirmish.ground import HEADER, MARGIN, WIDTH, View, empty_ground, on_panel, view_of
from palaestra.games.skirmish.movement import CLIFF, GROUND
from palaestra.games.skirmish.observe import is_free, is_target, sight_of
from palaestra.games.skirmish.orders import (
    AHEAD,
    FACING,
    NORTH,
    STOP,
    WEST,
    action_of,
    aim_at,
    first_target,
    targets_of,
)
from palaestra.games.skirmish.unit_icons import (
    MELEE_CELLS,
    describe,
    draw_body,
    draw_life,
    draw_prize,
    draw_shadow,
    initial,
    is_prize,
)

HEAL: Color = (126, 222, 164)
FEW = 8
"""Ranges of weapons are drawn while so many units live."""
MANY = 24
"""Lines of shots have no glow where there are more."""
LONGEST_TITLE = 28
"""Characters of the title of a picture; a longer one is in smaller letters, one of `LONGEST_SMALL` is cut."""
LONGEST_SMALL = 40
LEAST_RADIUS = 4.0
"""Pixels of the smallest unit."""
CLICK_PIXELS = 8.0
"""A click so near to the centre of a unit means it, however small it is."""
DASHES = 60
CIRCLE_POINTS = [(math.cos(math.pi * k / DASHES), math.sin(math.pi * k / DASHES)) for k in range(2 * DASHES)]
"""Ends of the dashes of a circle."""
DIRECTIONS = ("north", "south", "east", "west")


def view_of_match(world: Any, s: Any) -> View:
    """Where everything of a match is in its picture, which shows units, prizes and whom units have shot at."""
    shooting = np.flatnonzero((s["shot_at"] != NOBODY) & (s["team"] >= 0)).tolist()
    seen = {*living(world, s), *prizes(world, s), *shooting, *s["shot_at"][shooting].tolist()}
    return view_of(world.terrain, int(s["map"]), np.asarray(s["position"])[sorted(seen)])


def living(world: Any, s: Any) -> list[int]:
    """Slots of the living units; prizes are no units."""
    return [slot for slot in np.flatnonzero(s["alive"]).tolist() if not is_prize(world.units[s["kind"][slot]])]


def fallen(s: Any) -> list[int]:
    """Slots whose unit has died: those that have never been there, still come or have changed sides left no trace."""
    gone = (s["alive"] == 0) & (s["team"] >= 0) & (np.asarray(s["position"]) >= 0.0).all(1)
    gone &= (s["arrives"] == ARRIVED) & (s["comes_with"] == 0)
    return np.flatnonzero(gone).tolist()


def with_attributes(world: Any) -> Any:
    """The world as the rules read it in plain Python."""
    return type(world)(*(record_view(member) for member in world))


def prizes(world: Any, s: Any) -> list[int]:
    """Slots of the prizes that lie on the map."""
    slots = np.flatnonzero((s["alive"] == 1) & (np.asarray(s["position"]) >= 0.0).all(1)).tolist()
    return [slot for slot in slots if is_prize(world.units[s["kind"][slot]])]


# ------------------------------------------------------------------------------------------------------------- picture


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match of `palaestra.games.skirmish.battle`.

    Args:
        game: The rules.
        world: Their arrays.
        s: The match record.

    Returns:
        W x H pixels; all matches of a game give pictures of one size.
    """
    view, number, here = view_of_match(world, s), int(s["map"]), living(world, s)
    canvas, whole = empty_ground(world.terrain[number], view), Canvas(WIDTH, view.height, BACKGROUND)
    draw_header(whole, game, world, s)
    draw_footer(whole, view, game, s)
    view = on_panel(view)
    rules = with_attributes(world)
    for slot in here if rules.rules[number].half_view >= -1.0 else ():
        draw_sight(canvas, view, rules, s, slot)
    for slot in here if len(here) <= FEW else ():
        draw_range(canvas, view, world, s, slot)
    for slot in fallen(s):
        draw_cross(canvas, place(view, s, slot), TEAMS[s["team"][slot]])
    for slot in prizes(world, s):
        draw_prize(canvas, place(view, s, slot), radius_of(view, world, s, slot))
    flying = world.units["flying"][s["kind"]]
    for slot in sorted(here, key=lambda slot: (flying[slot], -s["position"][slot, 1])):
        draw_unit(canvas, view, world, s, slot)
    shooting = np.flatnonzero((s["shot_at"] != NOBODY) & (s["team"] >= 0)).tolist()
    for slot in shooting:
        draw_splash(canvas, view, world, s, slot)
        draw_shot(canvas, view, world, s, slot, len(shooting) <= MANY)
    whole.put(canvas, (MARGIN, HEADER))
    return whole


def place(view: View, s: Any, slot: int) -> Point:
    """Pixels of a unit's centre."""
    x, y = s["position"][slot].tolist()
    return view.place(x, y)


def radius_of(view: View, world: Any, s: Any, slot: int) -> float:
    """Pixels of a unit's radius."""
    return max(LEAST_RADIUS, view.scale * float(world.units["separation_radius"][s["kind"][slot]]))


def draw_cross(canvas: Canvas, center: Point, color: Color) -> None:
    """Where a unit has fallen."""
    x, y = center
    for tilt in (-3.0, 3.0):
        canvas.line([(x - 3.0, y - tilt), (x + 3.0, y + tilt)], fade(color, 0.45), 1.5)


def draw_range(canvas: Canvas, view: View, world: Any, s: Any, slot: int) -> None:
    """How far a unit shoots or heals, dashed and no further than the map is shown; not of those that fight in melee."""
    unit, (x, y) = world.units[s["kind"][slot]], s["position"][slot].tolist()
    if unit["range"] < MELEE_CELLS:
        return
    (west, south, east, north), reach = view.box, float(unit["range"] + unit["radius"])
    ring = [(x + reach * dx, y + reach * dy) for dx, dy in CIRCLE_POINTS]
    color = fade(TEAMS[s["team"][slot]], 0.3)
    for ends in zip(ring[::2], ring[1::2], strict=True):
        if all(west < end[0] < east and south < end[1] < north for end in ends):
            canvas.line([view.place(*end) for end in ends], color)


def draw_sight(canvas: Canvas, view: View, world: Any, s: Any, slot: int) -> None:
    """The two edges of what a red unit sees that does not see all around."""
    if s["team"][slot] != RED:
        return
    (x, y), (dx, dy) = s["position"][slot].tolist(), FACING[s["facing"][slot]].tolist()
    along, reach = float(world.rules[int(s["map"])].half_view), float(sight_of(s, world, slot))
    across = math.sqrt(1.0 - along * along)
    for side in (-across, across):
        end = (x + reach * (along * dx - side * dy), y + reach * (along * dy + side * dx))
        canvas.line([view.place(x, y), view.place(*end)], fade(TEAMS[RED], 0.35))


def draw_unit(canvas: Canvas, view: View, world: Any, s: Any, slot: int) -> None:
    """Body, mark, hit points, shield and energy of a unit."""
    unit, center, radius = world.units[s["kind"][slot]], place(view, s, slot), radius_of(view, world, s, slot)
    color = TEAMS[s["team"][slot]]
    if unit["flying"]:
        draw_shadow(canvas, center, radius)
    draw_body(canvas, center, radius, unit, color)
    energy = float(s["energy"][slot] / unit["energy_most"]) if unit["energy_most"] > 0.0 else -1.0
    shield = float(s["shield"][slot] / unit["shield"]) if unit["shield"] > 0.0 else -1.0
    draw_life(canvas, center, radius, color, (float(s["hit_points"][slot] / unit["hit_points"]), shield, energy))


def draw_splash(canvas: Canvas, view: View, world: Any, s: Any, slot: int) -> None:
    """The area in which the last attack of a unit hit all opponents."""
    unit, target = world.units[s["kind"][slot]], int(s["shot_at"][slot])
    radius, center = view.scale * float(unit["splash_radius"]), place(view, s, target)
    if unit["splash_shape"] == CIRCLE:
        if not unit["suicide"] or target == slot:
            canvas.circle(center, radius, fade(SIGNAL, 0.08), fade(SIGNAL, 0.5), 1.0)
    elif unit["splash_shape"]:
        start = place(view, s, slot)
        way = math.dist(start, center) or 1.0
        dx, dy = (center[0] - start[0]) / way * radius, (center[1] - start[1]) / way * radius
        width = max(3.0, 2.0 * view.scale * float(unit["splash_depth"]))
        canvas.line([(center[0] - dy, center[1] + dx), (center[0] + dy, center[1] - dx)], fade(SIGNAL, 0.6), width)


def draw_shot(canvas: Canvas, view: View, world: Any, s: Any, slot: int, glows: bool) -> None:
    """A line from the rim of a unit to that of its target, with a spark there; none for who exploded."""
    target = int(s["shot_at"][slot])
    start, end = place(view, s, slot), place(view, s, target)
    way = math.dist(start, end)
    if target == slot or way == 0.0:
        return
    heals = world.units["heal_per_loop"][s["kind"][slot]] > 0.0
    color = HEAL if heals else blend(TEAMS[s["team"][slot]], TEXT, 0.35)
    dx, dy = (end[0] - start[0]) / way, (end[1] - start[1]) / way
    near, far = radius_of(view, world, s, slot), way - radius_of(view, world, s, target)
    hit = (start[0] + max(far, 0.0) * dx, start[1] + max(far, 0.0) * dy)
    if far > near:
        muzzle = (start[0] + near * dx, start[1] + near * dy)
        if glows:
            canvas.line([muzzle, hit], fade(color, 0.18), 3.5)
        canvas.line([muzzle, hit], fade(color, 0.85), 1.0)
    canvas.circle(hit, 2.2, fade(color if heals else SIGNAL, 0.9))


def draw_header(canvas: Canvas, game: Game, world: Any, s: Any) -> None:
    """Name, the living of both sides or the winner, the number of the decision; below, what both sides have left."""
    base, winner, middle = 25, int(s["info"]["winner"]), WIDTH / 2
    words = title(game, s)
    canvas.text((MARGIN, base), words, TEXT, 16 if len(words) <= LONGEST_TITLE else 12)
    canvas.text((WIDTH - MARGIN, base), f"{int(s['steps'])} / {s['parameters']['horizon']:.0f}", MUTED, 14, "rs")
    if winner >= 0:
        canvas.text((middle, base), f"{game.team_names[winner]} has won", TEAMS[winner], 16, "ms")
    elif s["info"]["end_reason"]:
        canvas.text((middle, base), "draw", TEXT, 16, "ms")
    else:
        canvas.text((middle, base), ":", MUTED, 16, "ms")
    for team, side in ((0, -1), (1, 1)):
        count, share = strength(world, s, team)
        if winner < 0 and not s["info"]["end_reason"]:
            canvas.text((middle + 12 * side, base), str(count), TEAMS[team], 18, "rs" if team == 0 else "ls")
        left, right = sorted((middle + 3 * side, middle + side * (middle - MARGIN)))
        draw_bar(canvas, (left, 36, right, 41), share, TEAMS[team], mirrored=side < 0)


def strength(world: Any, s: Any, team: int) -> tuple[int, float]:
    """Number of a team's living units, and the share that it has left of hit points and shields, 0 to 1."""
    slots = [k for k in living(world, s) if s["team"][k] == team]
    gone = [k for k in fallen(s) if s["team"][k] == team]
    most = sum(float(world.units["hit_points"][k] + world.units["shield"][k]) for k in s["kind"][slots + gone])
    left = float(s["hit_points"][slots].sum() + s["shield"][slots].sum())
    return len(slots), left / most if most > 0.0 else 0.0


def title(game: Game, s: Any) -> str:
    """The preset, and the map of the match where the preset is not called by it; cut where both are long."""
    name, map_name = game.name, game.captions.maps[int(s["map"])]
    letters, sought = ("".join(filter(str.isalnum, words)).lower() for words in (name, map_name))
    words = name if letters.endswith(sought) else f"{name} {map_name}"
    return words if len(words) <= LONGEST_SMALL else f"{words[: LONGEST_SMALL - 1]}…"


def draw_footer(canvas: Canvas, view: View, game: Game, s: Any) -> None:
    """What the marks mean, for the kinds of this match, and the damage so far."""
    world, base, damage = game.world, view.height - 11.0, f"damage {float(s['info']['damage']):.0f}"
    alive = living(world, s)
    entries: list[tuple[str, Callable[[Point], None]]] = [
        (game.captions.units[kind].replace("_", " "), partial(draw_body, canvas, radius=7.5, unit=unit, color=MUTED))
        for kind, unit in enumerate(world.units)
        if kind in s["kind"][alive + fallen(s)]
    ]
    if len(alive) <= FEW and (world.units["range"][s["kind"][alive]] >= MELEE_CELLS).any():
        entries.append(("range", partial(draw_reach, canvas)))
    draw_legend(canvas, (MARGIN + 7.0, base - 4.5), entries, WIDTH - MARGIN - 16 - length_of(damage, 12))
    canvas.text((WIDTH - MARGIN, base), damage, MUTED, 12, "rs")


def draw_reach(canvas: Canvas, center: Point) -> None:
    """The symbol of a range: a dashed ring."""
    for k in range(0, 360, 40):
        canvas.arc(center, 6.5, k, k + 20, MUTED)


# ---------------------------------------------------------------------------------------------------------------- text


def write(game: Game, world: Any, s: Any) -> str:
    """One match as text: the score, the ground with its units, and a line for each living unit.

    A unit is a letter of what it does, capital for red: H heals, M hits from near, R from far, S splashes, E explodes,
    U has no weapon. ``*`` is a prize, ``#`` a wall and ``^`` a cliff.
    """
    score = ", ".join(f"{name} {strength(world, s, team)[0]}" for team, name in enumerate(game.teams))
    dead = " and ".join(str(int(number)) for number in s["info"]["dead"])
    limit, damage = float(s["parameters"]["horizon"]), float(s["info"]["damage"])
    lines = [f"decision {int(s['steps'])} of {limit:.0f}: {score}; {dead} have died, damage {damage:.1f}"]
    if reason := game.end_reason(int(s["info"]["end_reason"])):
        winner = game.team_names[int(s["info"]["winner"])]
        lines.append(f"{winner} has won ({reason})" if winner else f"nobody has won ({reason})")
    lines += [*write_ground(world, s), *(write_unit(game, world, s, slot) for slot in living(world, s))]
    return "\n".join(lines)


def write_ground(world: Any, s: Any) -> list[str]:
    """A character for each cell, the northernmost row first; of several units in a cell that of the last slot.

    Walls around everything are left out.
    """
    terrain, here = world.terrain[int(s["map"])], living(world, s)
    cells = np.where(terrain & GROUND, ".", np.where(terrain & CLIFF, "^", "#"))
    for slot in prizes(world, s):
        x, y = s["position"][slot]
        cells[int(y), int(x)] = "*"
    for slot in here:
        x, y = s["position"][slot]
        letter = initial(world.units[s["kind"][slot]])
        cells[int(y), int(x)] = letter if s["team"][slot] == 0 else letter.lower()
    rows, columns = (np.flatnonzero((cells != "#").any(axis)) for axis in (1, 0))
    return ["".join(row[columns[0] : columns[-1] + 1]) for row in cells[rows[0] : rows[-1] + 1][::-1]]


def write_unit(game: Game, world: Any, s: Any, slot: int) -> str:
    """Name, kind, place and state of a unit, and what it is doing."""
    unit, (x, y) = world.units[s["kind"][slot]], s["position"][slot]
    words = [f"{game.agents[slot]:8} {describe(unit):18} at {x:5.2f}, {y:5.2f}"]
    for name, most in (("hit_points", "hit_points"), ("shield", "shield"), ("energy", "energy_most")):
        if unit[most] > 0.0:
            words.append(f"{name.replace('_', ' ')} {float(s[name][slot]):.1f}/{float(unit[most]):g}")
    order, target = int(s["order"][slot]), int(s["target"][slot])
    if target != NOBODY:
        words.append(f"{'heals' if unit['heal_per_loop'] > 0.0 else 'attacks'} {game.agents[target]}")
    elif NORTH <= order <= WEST:
        words.append(f"goes {DIRECTIONS[order - NORTH]}")
    return "  ".join(words)


# --------------------------------------------------------------------------------------------------------------- facts


def facts(game: Game, world: Any, s: Any) -> Facts:
    """At whom each unit's orders aim, and what is left of the teams."""
    rules = with_attributes(world)
    choices = [
        choice for role in game.roles for choice in role.action if isinstance(choice, Choice) for _ in role.agents
    ]
    options = {slot: {"order": orders_of(game, rules, s, slot, choice)} for slot, choice in enumerate(choices)}
    here = np.array([slot for slot in living(world, s) if slot < len(game.agents)], np.int64)
    counts, points = (np.bincount(s["team"][here], s[name][here], 2) for name in ("alive", "hit_points"))
    return Facts(options, {"units alive": counts.tolist(), "hit points": points.tolist()})


def orders_of(game: Game, rules: Any, s: Any, slot: int, choice: Choice) -> list[str]:
    """Words for the alternatives of a unit's order; those behind its last target have none."""
    first, verb = int(first_target(s, rules, slot)), "attack"
    if rules.units[s.kind[slot]].heal_per_loop > 0.0:
        verb = "heal"
    targets = game.agents[first : first + int(targets_of(s, rules, slot))]
    words = [*choice.meanings, *(f"{verb} {agent}" for agent in targets)][: choice.n]
    return words + [""] * (choice.n - len(words))


# --------------------------------------------------------------------------------------------------------------- mouse


def click(game: Game, world: Any, s: Any, slot: int, x: int, y: int) -> int | str | None:
    """What a click in the picture means for a unit.

    On itself: stop. On an opponent in reach: attack it; for a healer, on a teammate in reach: heal it. On another
    teammate: the next clicks command that one. Anywhere else: of the legal moves north, south, east and west the one
    that leads nearest to the point.

    Args:
        game: The rules.
        world: Their arrays.
        s: The match record.
        slot: The unit.
        x: Column of the pixel.
        y: Row of the pixel.

    Returns:
        The order or the name of the teammate; None outside the ground, for orders to the dead, and where no legal move
        leads nearer.
    """
    view = view_of_match(world, s)
    to_x, to_y = view.point(x, y)
    west, south, east, north = view.box
    if not (west <= to_x <= east and south <= to_y <= north):
        return None
    rules = with_attributes(world)
    clicked = unit_at(view, rules, s, slot, x, y)
    if clicked != NOBODY and clicked != slot and not is_target(s, rules, slot, clicked):
        return game.agents[clicked]
    if not s["alive"][slot]:
        return None
    if clicked == slot:
        return STOP
    if clicked != NOBODY:
        return int(aim_at(s, rules, slot, clicked))
    best, least = None, math.dist((to_x, to_y), s["position"][slot])
    for order in range(NORTH, WEST + 1):
        ahead = s["position"][slot] + rules.rules[int(s["map"])].move_cells * AHEAD[order - NORTH]
        way = math.dist((to_x, to_y), ahead)
        if way < least and is_free(s, rules, slot, order):
            best, least = order, way
    return None if best is None else int(action_of(s, rules, slot, best))


def unit_at(view: View, world: Any, s: Any, slot: int, x: float, y: float) -> int:
    """The unit under a pixel: a target of ``slot``, one of its team or itself; the nearest of several, or `NOBODY`."""
    best, least = NOBODY, math.inf
    for other in living(world, s):
        way, counts = math.dist((x, y), place(view, s, other)), s["team"][other] == s["team"][slot]
        if not counts and s["alive"][slot]:
            counts = is_target(s, world, slot, other)
        if counts and way < least and way <= max(CLICK_PIXELS, radius_of(view, world, s, other)):
            best, least = other, way
    return best
