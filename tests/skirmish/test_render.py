"""Pictures, texts and clicks of battles: what stands where, and what a viewer may do with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from skirmish.battles import at_red, decide, fight, put, unit

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.core.compile.linker import record_view
from palaestra.core.run.kernel import KernelSimulation
from palaestra.drawing.colors import SIGNAL, TEAMS, TEXT, blend
from palaestra.game import Game
from palaestra.games.skirmish import battle, games, maps, render, ruleset
from palaestra.games.skirmish.battle_records import NEVER
from palaestra.games.skirmish.combat import NOBODY
from palaestra.games.skirmish.ground import FOOTER, HEADER, MARGIN, WIDTH, view_of
from palaestra.games.skirmish.orders import EAST, NORTH, SOUTH, STOP, WEST
from palaestra.games.skirmish.render import HEAL, click, radius_of, view_of_match, write
from palaestra.games.skirmish.unit_icons import describe, initial

pytestmark = pytest.mark.check

SMAC = ruleset.load("smac-4.10")
SHOT_OF_RED = blend(TEAMS[0], TEXT, 0.35)
CORNER = ("....", "....", "..##", "..##")
"""Ground of 4 x 4 cells with a wall in the south-east."""


def start(name: str) -> tuple[Game, Any]:
    """A map and the record of a match at its start, without observations: large battles are slow in plain Python."""
    game = games.battle(name)
    s = record_view(np.zeros(1, game.state_dtype))[0]
    s.team[:], s.team[: len(game.agents)] = -1, game.team_index
    s.alive[: len(game.agents)] = 1
    s.info.winner, s.parameters.horizon = -1, game.horizon
    with np.errstate(over="ignore"):  # random numbers are drawn modulo 2**64
        battle.reset(s, type(game.world)(*map(record_view, game.world)))
    return game, s


def draw(game: Game, world: Any, s: Any) -> np.ndarray:
    return np.asarray(render.draw(game, world, s))


@pytest.mark.parametrize(
    ("preset", "map_name", "title"),
    [
        ("Skirmish-3m", "3m", "Skirmish-3m"),
        ("Skirmish-5m_vs_6m", "5m_vs_6m", "Skirmish-5m_vs_6m"),
        ("Skirmish", "3m", "Skirmish 3m"),
        ("SkirmishDuel", "3m", "SkirmishDuel 3m"),
        ("Drill-SplashWaves", "splash-waves", "Drill-SplashWaves"),
        ("SkirmishUnshaped-Abilities", "a_map_with_a_long_name", "SkirmishUnshaped-Abilities a_map_with_a…"),
    ],
)
def test_a_title_names_preset_and_map_but_the_map_once(preset: str, map_name: str, title: str):
    game, s = start("3m")
    named = replace(game, captions=game.captions._replace(maps=(map_name,))).titled(preset)
    assert render.title(named, s) == title


def record(sim: Any) -> Any:
    return record_view(sim.states)[0]


def with_prizes(world: Any, kind: str) -> Any:
    """A world in which a kind of unit is a prize."""
    names = world.units.dtype.names
    more: list[tuple] = [] if "prize" in names else [("prize", "i8")]
    units: Any = np.zeros(len(world.units), np.dtype(world.units.dtype.descr + more))
    for name in names:
        units[name] = world.units[name]
    units["prize"][SMAC.number_of(kind)] = 1
    return world._replace(units=units)


def at(sim: Any, slot: int, dx: float = 0.0, dy: float = 0.0) -> tuple[int, int]:
    """The pixel that is so many pixels right and down of a unit's centre."""
    view = view_of_match(sim.game.world, record(sim))
    x, y = view.place(*unit(sim, "position", slot))
    return round(x + dx), round(y + dy)


def color_at(picture: np.ndarray, pixel: tuple[float, float]) -> np.ndarray:
    return picture[round(pixel[1]), round(pixel[0])].astype(int)


def likeness(picture: np.ndarray, pixel: tuple[float, float], color: tuple[int, ...]) -> float:
    """The least distance of a colour from the pixels around one."""
    x, y = (round(p) for p in pixel)
    around = picture[y - 2 : y + 3, x - 2 : x + 3].astype(int)
    return float(np.abs(around - np.array(color[:3])).sum(-1).min())


def push(sim: Any, slot: int, pixel: tuple[float, float]) -> int | str | None:
    return click(sim.game, sim.game.world, record(sim), slot, *(round(p) for p in pixel))


# ------------------------------------------------------------------------------------------------------------- picture


@pytest.mark.parametrize("name", maps.names())
def test_every_unit_of_a_map_is_drawn_in_the_colour_of_its_team(name: str):
    game, s = start(name)
    picture, view = draw(game, game.world, s), view_of_match(game.world, s)
    for slot in np.flatnonzero(s.alive).tolist():
        x, y = view.place(*s.position[slot])
        away = 0.55 * radius_of(view, game.world, s, slot)
        corners = [color_at(picture, (x + dx * away, y + dy * away)) for dx in (-1, 1) for dy in (-1, 1)]
        warmth = max((c[0] - c[2] for c in corners), key=abs)
        assert (warmth > 0) == game.agents[slot].startswith("red"), game.agents[slot]


def test_the_picture_shows_the_ground_and_leaves_out_walls_around_it():
    band, open_map = (draw(game, game.world, s) for game, s in map(start, ("3m", "3s_vs_3z")))
    assert band.shape[0] < 0.7 * open_map.shape[0]


def covered(game: Game, s: Any) -> float:
    """The larger share of the frame's width and height that the bodies of the living cover, all of them in it."""
    slots, box = render.living(game.world, s), view_of_match(game.world, s).box
    radii = game.world.units["separation_radius"][s.kind[slots]][:, None]
    low, high = (s.position[slots] - radii).min(axis=0), (s.position[slots] + radii).max(axis=0)
    assert (low >= box[:2]).all()
    assert (high <= box[2:]).all()
    return float(((high - low) / (box[2] - box[0], box[3] - box[1])).max())


@pytest.mark.parametrize("name", ["3m", "8m", "2s3z", "MMM2", "27m_vs_30m", "corridor"])
def test_the_camera_fits_the_fight(name: str):
    game, s = start(name)
    here = render.living(game.world, s)
    began, middle = s.position[here].copy(), s.position[here].mean(axis=0)
    for nearer in (1.0, 0.8, 0.7, 0.6, 0.5):
        s.position[here] = middle + nearer * (began - middle)
        assert covered(game, s) >= 0.5, nearer


def test_the_camera_stands_still_while_units_move_a_little():
    game, s = start("27m_vs_30m")
    here, rng = render.living(game.world, s), np.random.default_rng(5)
    began, views = s.position[here].copy(), []
    for _ in range(50):
        s.position[here] = began + rng.uniform(-0.2, 0.2, began.shape)
        views.append(view_of_match(game.world, s))
    assert len(set(views)) <= 3


def test_nothing_of_a_battle_is_drawn_beside_its_ground(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 14, 10), ("marine", 3, 3)], [("marine", 17, 10)])
    beside = sim.render().copy()
    sim.states[0]["alive"][1] = 0  # a cross, far outside of the part of the map that is shown now
    sim.states[0]["hit_points"][1] = 0.0
    x, y = at(sim, 1)
    after = sim.render()
    assert not (MARGIN <= x < WIDTH - MARGIN and HEADER <= y < after.shape[0] - FOOTER)
    assert (after[:, :MARGIN] == beside[:, :MARGIN]).all()
    assert (after[:, WIDTH - MARGIN :] == beside[:, WIDTH - MARGIN :]).all()


def test_higher_ground_is_lighter_and_a_slope_darker(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 0.5, 0.5)], [("marine", 7.5, 0.5)], ("..^^88..",) * 4)
    picture, view = sim.render(), view_of_match(sim.game.world, record(sim))
    low, slope, high = (color_at(picture, view.place(x, 2.5)).sum() for x in (1.5, 2.35, 4.5))
    assert slope < low < high - 30


def test_a_flier_outside_the_ground_stays_in_a_picture_of_the_same_size(tmp_path: Path):
    walls = ("." * 8,) * 4 + ("#" * 8,) * 16
    sim = fight(tmp_path, [("medivac", 2, 18)], [("marine", 6, 18)], walls)
    before = sim.render()
    put(sim, 0, position=(2.0, 3.0))
    after = sim.render()
    assert after.shape == before.shape
    x, y = at(sim, 0)
    assert MARGIN <= x < WIDTH - MARGIN
    assert HEADER <= y < after.shape[0]
    assert likeness(after, (x, y), TEXT) < 30.0


def test_the_rim_is_as_long_as_the_share_of_hit_points(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10)], [("marine", 20, 10)])
    radius = radius_of(view_of_match(sim.game.world, record(sim)), sim.game.world, record(sim), 0)
    right, left = at(sim, 0, radius - 0.5), at(sim, 0, -radius + 0.5)
    whole = sim.render()
    put(sim, 0, hit_points=22.5)
    half = sim.render()
    assert (color_at(whole, right) == color_at(half, right)).all()
    assert color_at(half, left)[0] < color_at(whole, left)[0] - 40


@pytest.mark.parametrize(("kind", "field", "color"), [("zealot", "shield", TEXT), ("medivac", "energy", SIGNAL)])
def test_shield_and_energy_are_drawn_while_there_are_any(tmp_path: Path, kind: str, field: str, color: tuple[int, ...]):
    sim = fight(tmp_path, [(kind, 5, 10)], [("marine", 20, 10)])
    radius = radius_of(view_of_match(sim.game.world, record(sim)), sim.game.world, record(sim), 0)
    spot = at(sim, 0, 0.0, radius + 3.0) if field == "energy" else at(sim, 0, radius + 2.5)
    put(sim, 0, **{field: 50.0})
    spot = at(sim, 0, -0.7 * radius, radius + 4.0) if field == "energy" else spot
    full = likeness(sim.render(), spot, color)
    put(sim, 0, **{field: 0.0})
    assert full + 60.0 < likeness(sim.render(), spot, color)


@pytest.mark.parametrize(("kind", "color", "other"), [("marine", SHOT_OF_RED, HEAL), ("medivac", HEAL, SHOT_OF_RED)])
def test_a_line_in_a_colour_of_its_own_leads_to_whom_a_unit_attacked_or_healed(
    tmp_path: Path, kind: str, color: tuple[int, ...], other: tuple[int, ...]
):
    sim = fight(tmp_path, [(kind, 5, 10), ("marauder", 9, 10)], [("marine", 9, 14)])
    target = 1 if kind == "medivac" else 2
    middle = np.mean([at(sim, 0), at(sim, target)], axis=0)
    without = sim.render()
    put(sim, 0, shot_at=target)
    after = sim.render()
    assert likeness(after, middle, color) < likeness(without, middle, color) - 60.0
    assert likeness(after, middle, color) < likeness(after, middle, other)


def test_who_exploded_leaves_the_circle_that_it_hit(tmp_path: Path):
    sim = fight(tmp_path, [("baneling", 5, 10), ("marine", 15, 10)], [("marine", 25, 10)])
    radius = view_of_match(sim.game.world, record(sim)).scale * 2.2
    ring = at(sim, 0, radius)
    sim.states[0]["alive"][0] = 0
    without = sim.render()
    sim.states[0]["shot_at"][0] = 0
    assert likeness(sim.render(), ring, SIGNAL) < likeness(without, ring, SIGNAL) - 60.0


def test_a_cross_stands_where_a_unit_has_fallen_and_none_for_one_that_never_came(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10), ("marine", 15, 10)], [("marine", 25, 10)])
    spot = at(sim, 1)
    sim.states[0]["alive"][1] = 0
    cross = color_at(sim.render(), spot)
    put(sim, 1, arrives=NEVER)
    ground = color_at(sim.render(), spot)
    assert cross[0] > ground[0] + 30


def test_slots_beyond_the_agents_are_not_drawn(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10)], [("marine", 25, 10)])
    picture, beyond = sim.render(), len(sim.game.agents)
    sim.states[0]["shot_at"][beyond:] = 0
    sim.states[0]["position"][beyond:] = 9.0
    assert (sim.render() == picture).all()


def test_a_prize_is_drawn_and_written_and_is_no_unit(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5.5, 10.5)], [("spine_crawler", 25.5, 10.5), ("marine", 15.5, 10.5)])
    world, s = with_prizes(sim.game.world, "spine_crawler"), record(sim)
    assert likeness(draw(sim.game, world, s), at(sim, 1), SIGNAL) < 10.0
    text = write(sim.game, world, s)
    assert "red 1, blue 1;" in text
    assert "blue_0" not in text
    assert text.split("\n")[10] == "." * 5 + "R" + "." * 9 + "r" + "." * 9 + "*" + "." * 6


def test_a_prize_that_was_collected_is_nowhere(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5.5, 10.5)], [("spine_crawler", 25.5, 10.5), ("marine", 15.5, 10.5)])
    world, lying = with_prizes(sim.game.world, "spine_crawler"), draw(sim.game, sim.game.world, record(sim))
    put(sim, 1, position=(-100.0, -100.0))
    there = np.array([[5.5, 10.5], [15.5, 10.5]])
    assert view_of_match(world, record(sim)) == view_of(world.terrain, 0, there)
    assert draw(sim.game, world, record(sim)).shape == lying.shape
    assert "*" not in write(sim.game, world, record(sim))


# ---------------------------------------------------------------------------------------------------- marks and shot_at


def test_words_for_units_follow_from_their_numbers():
    units = ruleset.table(SMAC)
    words = {name: describe(row) for name, row in zip(SMAC.unit_names, units, strict=True)}
    assert words == {
        "marine": "ranged",
        "marauder": "ranged with bonus",
        "medivac": "flying healer",
        "zealot": "melee x2",
        "stalker": "ranged with bonus",
        "colossus": "climbing splash",
        "zergling": "melee",
        "baneling": "exploding",
        "hydralisk": "ranged",
        "spine_crawler": "static ranged with bonus",
        "roach": "ranged",
        "sentry": "ranged",
        "immortal": "ranged with bonus",
        "beacon": "prize",
        "shard": "prize",
    }
    assert "".join(map(initial, units)) == "RRHMRSMERRRRRPP"


def test_the_rules_note_whom_a_unit_attacked_in_this_decision_and_forget_it(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10)], [("marine", 8, 10)])
    assert unit(sim, "shot_at", 0) == NOBODY
    decide(sim, at_red(0))
    assert unit(sim, "shot_at", 0) == 1
    decide(sim, WEST)
    assert unit(sim, "shot_at", 0) == NOBODY


def test_the_rules_note_whom_a_unit_healed(tmp_path: Path):
    sim = fight(tmp_path, [("medivac", 5, 10), ("marine", 7, 10)], [("marine", 25, 10)])
    put(sim, 1, hit_points=10.0)
    decide(sim, [at_red(1), STOP])
    assert unit(sim, "shot_at", 0) == 1


def test_the_rules_note_who_exploded_as_having_hit_itself(tmp_path: Path):
    sim = fight(tmp_path, [("baneling", 5, 10), ("marine", 9, 14)], [("marine", 5.8, 10)])
    decide(sim, [at_red(0), STOP])
    assert not unit(sim, "alive", 0)
    assert unit(sim, "shot_at", 0) == 0


# ---------------------------------------------------------------------------------------------------------------- text


def test_a_match_as_text(tmp_path: Path):
    sim = fight(
        tmp_path,
        [("zealot", 0.5, 3.5), ("medivac", 3.5, 0.5)],
        [("stalker", 3.5, 3.5)],
        CORNER,
    )
    decide(sim, [EAST, STOP])
    sim.states[0]["order"][1], sim.states[0]["target"][1] = at_red(0), 0
    put(sim, 1, energy=50.0)
    lines = write(sim.game, sim.game.world, record(sim)).split("\n")
    assert lines == [
        "decision 1 of 400: red 2, blue 1; 0 and 0 have died, damage 0.0",
        ".M.r",
        "....",
        "..##",
        "..#H",
        "red_0    melee x2           at  1.62,  3.50  hit points 100.0/100  shield 50.0/50  goes east",
        "red_1    flying healer      at  3.50,  0.50  hit points 150.0/150  energy 50.0/200  heals red_0",
        "blue_0   ranged with bonus  at  3.50,  3.50  hit points 80.0/80  shield 80.0/80",
    ]


def test_the_text_of_a_finished_match_names_the_winner(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10)], [("marine", 8, 10)])
    put(sim, 1, hit_points=1.0)
    decide(sim, at_red(0))
    assert "red has won (wiped_out)" in sim.render_text()


# --------------------------------------------------------------------------------------------------------------- mouse


def test_clicks_on_units_attack_heal_or_stop(tmp_path: Path):
    sim = fight(tmp_path, [("medivac", 5, 10), ("marine", 8, 10)], [("marine", 11, 10), ("marine", 10, 12)])
    assert push(sim, 1, at(sim, 2)) == at_red(0)
    assert push(sim, 1, at(sim, 3)) == at_red(1)
    assert push(sim, 1, at(sim, 1)) == STOP
    assert push(sim, 0, at(sim, 1)) == at_red(1)
    assert push(sim, 1, at(sim, 0)) == "red_0", "who does not heal leaves the next clicks to its teammate"


def test_a_click_on_an_opponent_out_of_reach_leads_to_it(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10)], [("marine", 25, 10)])
    assert push(sim, 0, at(sim, 1)) == EAST


@pytest.mark.parametrize(("dx", "dy", "order"), [(9, -80, NORTH), (9, 80, SOUTH), (80, 9, EAST), (-80, 9, WEST)])
def test_a_click_on_the_ground_moves_nearest_to_it(tmp_path: Path, dx: int, dy: int, order: int):
    sim = fight(tmp_path, [("marine", 15, 10)], [("marine", 25, 10)])
    assert push(sim, 0, at(sim, 0, dx, dy)) == order


def test_a_click_beyond_a_wall_takes_the_other_axis_or_means_nothing(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 1.5, 0.5)], [("marine", 0.5, 3.5)], CORNER)
    scale = view_of_match(sim.game.world, record(sim)).scale
    assert push(sim, 0, at(sim, 0, 2 * scale, -1.5 * scale)) == NORTH
    assert push(sim, 0, at(sim, 0, 2 * scale, 0)) is None


def test_clicks_outside_the_ground_or_for_the_dead_mean_nothing(tmp_path: Path):
    sim = fight(tmp_path, [("marine", 5, 10), ("marine", 6, 12)], [("marine", 8, 10)])
    assert push(sim, 0, (WIDTH / 2, 5)) is None
    sim.states[0]["alive"][0] = 0
    assert push(sim, 0, at(sim, 2)) is None
    assert push(sim, 0, at(sim, 1)) == "red_1"


def test_every_click_is_a_legal_order():
    sim = KernelSimulation(games.battle("MMM"), 1, compiled=False)
    sim.reset(seed=0)
    assert sim.legal is not None
    height, width, _ = sim.render().shape
    for slot in (2, 9):
        clicked = {push(sim, slot, (x, y)) for x in range(0, width, 36) for y in range(0, height, 36)}
        orders = {order for order in clicked if isinstance(order, int)}
        assert len(orders) >= 4
        assert all(sim.legal["red"][0, slot, order] for order in orders)
