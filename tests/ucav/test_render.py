"""Pictures: functions of the match alone, true to attitude and place, and without a display."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import GROUND, SIGNAL, SKY, TEAMS
from palaestra.game import Game
from palaestra.games.ucav import dogfight, evade, missiles, render_flight, track
from palaestra.games.ucav.flightplot import film, plot_flight
from palaestra.games.ucav.geometry import GRAVITY_MPS2
from palaestra.games.ucav.instruments import draw_aircraft, draw_attitude
from palaestra.games.ucav.mapview import AHEAD_S, FROM_ABOVE, NORTH_UP, Scene, grid_lines, path_ahead_m, scene_of
from palaestra.games.ucav.render_flight import HEADER, MARGIN, SQUARE
from palaestra.games.ucav.weapons import GUN_FAR_M, GUN_NEAR_M
from palaestra.replay.export import write_gif

GAME = dogfight.game()
SCENE = Scene(0.0, 0.0, 2430.0, 2500.0, 6000.0)
"""A map of 10 m a pixel."""
PIXELS_PER_M = SQUARE / (2 * SCENE.half_side_m)


def make_fight(count: int = 1, game: Game = GAME) -> np.ndarray:
    """Red 1 km south of the origin flying north, blue 1 km north of it flying east, 4 km up, 200 m/s."""
    records = np.zeros(count, game.state_dtype)
    for parameter in game.parameters:
        records["parameters"][parameter.name] = parameter.default
    records["steps"] = records["periods"] = np.arange(count)
    records["info"]["winner"], records["current_player"], records["health"] = -1, -1, 1.0
    body = records["body"]
    body["north_m"], body["altitude_m"] = (-1000.0, 1000.0), 4000.0
    body["heading_rad"] = (0.0, 0.5 * math.pi)
    body["true_airspeed_mps"] = 200.0
    body["velocity_north_mps"], body["velocity_east_mps"] = (200.0, 0.0), (0.0, 200.0)
    body["load_factor_g"] = 1.0
    return records


def make_flight(command: str = "attitude", count: int = 1):
    game = track.game(command)
    records = np.zeros(count, game.state_dtype)
    for parameter in game.parameters:
        records["parameters"][parameter.name] = parameter.default
    records["steps"] = np.arange(count)
    records["info"]["winner"], records["current_player"] = -1, -1
    records["body"]["altitude_m"], records["body"]["true_airspeed_mps"] = 6000.0, 250.0
    records["body"]["load_factor_g"] = 1.0
    records["speed_command_mps"], records["command_length"] = 260.0, 80
    records["climb_command"] = {"attitude": 0.1, "heading": 6200.0, "load_factor": 2.0}[command]
    records["turn_command_rad"] = 0.5
    return game, records


def draw_dogfight(*arguments: Any, **keywords: Any) -> np.ndarray:
    return np.array(render_flight.draw_dogfight(*arguments, **keywords))


def draw_track(*arguments: Any, **keywords: Any) -> np.ndarray:
    return np.array(render_flight.draw_track(*arguments, **keywords))


def where(picture: np.ndarray, color: tuple[int, ...], tolerance: int = 30) -> np.ndarray:
    """Pixels (x, y) of about this colour, int [n, 2]."""
    near = np.abs(picture.astype(int) - color[:3]).max(-1) <= tolerance
    return np.argwhere(near)[:, ::-1]


def map_of(picture: np.ndarray) -> np.ndarray:
    return picture[HEADER : HEADER + SQUARE, MARGIN : MARGIN + SQUARE]


def silhouette(roll: float = 0.0, pitch: float = 0.0, heading: float = 0.0) -> np.ndarray:
    """Pixels of an aircraft from above, around the middle of a panel of 120 pixels, 40 pixels long each way."""
    body = make_fight()[0]["body"][0]
    body["roll_rad"], body["pitch_rad"], body["heading_rad"] = roll, pitch, heading
    canvas = Canvas(120, 120, (0, 0, 0))
    draw_aircraft(canvas, (60.0, 60.0), body, NORTH_UP, FROM_ABOVE, (255, 255, 255), 40.0)
    return np.argwhere(np.asarray(canvas.finish()).max(-1) > 60)[:, ::-1] - 60


# --------------------------------------------------------------------------------------------------------- the picture


def _track_arguments():
    game, records = make_flight()
    return game, game.world, records[0]


@pytest.mark.parametrize("slot", [0, 1])
@pytest.mark.parametrize(("north", "east"), [(-1000.0, 0.0), (500.0, 1500.0), (1500.0, -1200.0)])
def test_an_aircraft_stands_where_it_is(slot: int, north: float, east: float):
    records = make_fight()
    body = records["body"]
    body["north_m"][0, 1 - slot], body["east_m"][0, 1 - slot] = -2000.0, -2000.0
    body["north_m"][0, slot], body["east_m"][0, slot] = north, east
    records["parameters"]["red_gun"] = records["parameters"]["blue_gun"] = 0.0
    picture = map_of(draw_dogfight(GAME, None, records[0], scene=SCENE))
    expected = np.array([0.5 * SQUARE + east * PIXELS_PER_M, 0.5 * SQUARE - north * PIXELS_PER_M])
    pixels = where(picture, TEAMS[slot])
    near = pixels[np.abs(pixels - expected).max(1) < 20]  # without its label
    assert len(near) > 60
    np.testing.assert_allclose(0.5 * (near.min(0) + near.max(0)), expected, atol=4.0)


def test_red_is_south_of_blue_on_the_map_when_it_is():
    picture = map_of(draw_dogfight(GAME, None, make_fight()[0]))
    red, blue = (where(picture, color).mean(0) for color in TEAMS)
    assert red[1] > blue[1] + 100


def test_a_trail_shows_where_the_aircraft_has_been():
    records = make_fight(100)
    records["body"]["north_m"][:, 0] = np.linspace(-2200.0, -1000.0, 100)
    bare, trailed = (
        map_of(draw_dogfight(GAME, None, records[-1], trail, SCENE)).astype(int) for trail in (None, records[:-1])
    )
    changed = np.argwhere(np.abs(bare - trailed).max(-1) > 8)
    assert len(changed) > 100
    np.testing.assert_allclose(changed[:, 1], 0.5 * SQUARE, atol=3.0)  # it came straight from the south
    assert changed[:, 0].max() == pytest.approx(0.5 * SQUARE + 2200.0 * PIXELS_PER_M, abs=3.0)


def test_a_hit_is_yellow():
    records = make_fight()
    calm = len(where(map_of(draw_dogfight(GAME, None, records[0])), SIGNAL))
    records["in_gun"][0, 0] = 1
    assert len(where(map_of(draw_dogfight(GAME, None, records[0])), SIGNAL)) > calm + 40


def test_the_gun_of_an_armed_aircraft_reaches_ahead_of_its_nose():
    records = make_fight()
    armed = map_of(draw_dogfight(GAME, None, records[0], scene=SCENE)).astype(int)
    records["parameters"]["blue_gun"] = 0.0
    unarmed = map_of(draw_dogfight(GAME, None, records[0], scene=SCENE))
    changed = np.argwhere(np.abs(armed - unarmed).max(-1) > 8)
    start, end = (0.5 * SQUARE + x * PIXELS_PER_M for x in (GUN_NEAR_M, GUN_FAR_M))
    assert (changed[:, 1].min(), changed[:, 1].max()) == pytest.approx((start, end), abs=2.0)
    assert changed[:, 0].mean() == pytest.approx(0.5 * SQUARE - 1000.0 * PIXELS_PER_M, abs=1.0)


def test_a_finished_match_says_so():
    records = make_fight()
    running = draw_dogfight(GAME, None, records[0])
    records["info"]["winner"], records["info"]["end_reason"], records["lost"][0, 1] = 0, dogfight.KILL, dogfight.KILL
    over = draw_dogfight(GAME, None, records[0])
    header = np.s_[:HEADER, 600:]
    assert len(where(running[header], TEAMS[0])) == 0
    assert len(where(over[header], TEAMS[0])) > 100


@pytest.mark.parametrize("state", ["together", "nose up", "inverted", "far", "high", "slow", "start"])
def test_no_state_is_too_odd_for_a_picture(state: str):
    records = make_fight()
    body = records["body"]
    match state:
        case "together":
            body["north_m"] = 0.0
        case "nose up":
            body["pitch_rad"] = 0.5 * math.pi
        case "inverted":
            body["roll_rad"] = math.pi
        case "far":
            body["east_m"] = (-60_000.0, 80_000.0)
        case "high":
            body["altitude_m"] = (25_000.0, -10.0)
        case "slow":
            body["true_airspeed_mps"] = body["velocity_north_mps"] = body["velocity_east_mps"] = 0.0
        case "start":
            records["health"] = 0.0
    assert draw_dogfight(GAME, None, records[0]).std() > 5.0


@pytest.mark.check
def test_a_picture_needs_no_display_and_loads_neither_window_nor_plot():
    program = """
import sys, numpy as np
from palaestra.games.ucav.dogfight import game
from palaestra.games.ucav.render_flight import draw_dogfight
g = game()
s = np.zeros(1, g.state_dtype)
for p in g.parameters:
    s["parameters"][p.name] = p.default
assert np.asarray(draw_dogfight(g, None, s[0])).shape == (540, 960, 3)
assert not {"pygame", "matplotlib", "jsbsim", "numba", "tkinter"} & set(sys.modules), sys.modules
"""
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "MPLBACKEND")
    environment = {k: v for k, v in os.environ.items() if k not in hidden}
    environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


# ---------------------------------------------------------------------------------------------------------- attitudes


def test_the_silhouette_points_where_the_nose_points():
    for heading, axis, sign in ((0.0, 1, -1), (0.5 * math.pi, 0, 1), (math.pi, 1, 1), (1.5 * math.pi, 0, -1)):
        pixels = silhouette(heading=heading)
        far = pixels[np.argmax(pixels[:, axis] * sign)]
        assert far[axis] * sign > 35
        assert abs(far[1 - axis]) < 4  # the nose is in the middle, wing tips are not


def test_the_silhouette_gets_narrow_with_roll_and_short_with_pitch():
    def extent(**angles: float) -> np.ndarray:
        return np.ptp(silhouette(**angles), axis=0)

    level = extent()
    assert extent(roll=math.radians(60.0))[0] == pytest.approx(0.5 * level[0], abs=8.0)
    assert extent(roll=math.radians(60.0))[1] == pytest.approx(level[1], abs=2.0)
    assert extent(pitch=math.radians(60.0))[1] == pytest.approx(0.5 * level[1], abs=8.0)
    assert extent(roll=0.5 * math.pi)[0] < 0.5 * level[0]


def test_a_right_bank_lowers_the_right_wing_of_the_indicator():
    def sky_and_ground(roll: float, pitch: float) -> tuple[np.ndarray, np.ndarray]:
        body = make_fight()[0]["body"][0]
        body["roll_rad"], body["pitch_rad"] = roll, pitch
        canvas = Canvas(100, 100)
        draw_attitude(canvas, (50.0, 50.0), 48.0, body, TEAMS[0])
        picture = np.asarray(canvas.finish())
        return where(picture, SKY, 6), where(picture, GROUND, 6)

    sky, ground = sky_and_ground(0.0, 0.0)
    assert sky[:, 1].max() <= 52 <= 2 + ground[:, 1].min() + 2
    sky, ground = sky_and_ground(math.radians(60.0), 0.0)
    assert sky.mean(0)[0] < 45 < 55 < ground.mean(0)[0]  # the world leans to the left
    assert len(sky_and_ground(0.0, 0.3)[0]) > 1.3 * len(sky_and_ground(0.0, -0.3)[0])
    assert len(sky_and_ground(0.0, -1.5)[0]) > 50  # a rim stays in sight


def test_a_level_turn_ahead_is_a_circle_of_the_coordinated_rate():
    body = make_fight()[0]["body"][0]
    bank = math.radians(60.0)
    body["roll_rad"], body["load_factor_g"] = bank, 1.0 / math.cos(bank)
    path = path_ahead_m(body)
    turned = GRAVITY_MPS2 * math.tan(bank) / 200.0 * AHEAD_S
    radius = 200.0**2 / (GRAVITY_MPS2 * math.tan(bank))
    np.testing.assert_allclose(path[0], (-1000.0, 0.0, -4000.0))
    end = (-1000.0 + radius * math.sin(turned), radius * (1.0 - math.cos(turned)), -4000.0)
    np.testing.assert_allclose(path[-1], end, atol=1e-6)


def test_one_g_ahead_is_straight():
    path = path_ahead_m(make_fight()[0]["body"][0])
    np.testing.assert_allclose(path[-1] - path[0], (200.0 * AHEAD_S, 0.0, 0.0), atol=1e-9)


# ------------------------------------------------------------------------------------------------------------- scales


@given(st.floats(1e-3, 1.0), st.floats(-1e5, 1e5), st.floats(20.0, 100.0))
def test_grid_lines_are_round_and_far_enough_apart(pixels_per_m: float, low: float, spacing: float):
    lines = grid_lines(low, low + 500.0 / pixels_per_m, pixels_per_m, spacing)
    full = sorted(d for d, opacity in lines if opacity == 1.0)
    assert all(d % 250.0 == 0.0 for d in full)
    assert all(0.0 <= opacity <= 1.0 for _, opacity in lines)
    assert np.all(np.diff(full) * pixels_per_m >= spacing * (1 - 1e-9))


@given(st.floats(2e-3, 0.2))
def test_the_grid_does_not_jump_while_the_scale_changes(pixels_per_m: float):
    def strength(scale: float) -> dict[float, float]:
        return dict(grid_lines(0.0, 4000.0, scale, 60.0))

    now, then = strength(pixels_per_m), strength(pixels_per_m * 1.001)
    for distance in now.keys() | then.keys():
        assert abs(now.get(distance, 0.0) - then.get(distance, 0.0)) < 0.01


def test_a_scene_holds_the_whole_match():
    records = make_fight(50)
    records["body"]["east_m"][:, 0] = np.linspace(-3000.0, 9000.0, 50)
    records["body"]["altitude_m"][:, 1] = np.linspace(4000.0, 7000.0, 50)
    scene = scene_of(records)
    assert abs(scene.east_m - 3000.0) < 1.0
    assert scene.half_side_m > 6000.0
    assert scene.top_m > 7000.0


# -------------------------------------------------------------------------------------------------------------- track


@pytest.mark.parametrize("command", ["attitude", "heading", "load_factor"])
def test_a_tracking_picture_follows_the_command(command: str):
    game, records = make_flight(command, 60)
    first = draw_track(game, game.world, records[-1], records[:-1])
    assert first.shape == (540, 960, 3)
    for name, change in (("turn_command_rad", 0.5), ("climb_command", 0.5), ("speed_command_mps", 20.0)):
        other = records.copy()
        other[name][-1] += change
        assert not np.array_equal(draw_track(game, game.world, other[-1], other[:-1]), first), name


def test_the_command_bars_lie_on_the_aircraft_when_nothing_is_left_to_do():
    game, records = make_flight()
    records["turn_command_rad"] = records["climb_command"] = 0.0
    deck = np.s_[HEADER : HEADER + 360, MARGIN : MARGIN + SQUARE]
    met = where(draw_track(game, game.world, records[0])[deck], SIGNAL)
    records["climb_command"] = 0.2
    above = where(draw_track(game, game.world, records[0])[deck], SIGNAL)
    records["climb_command"], records["turn_command_rad"] = 0.0, 0.6
    turned = where(draw_track(game, game.world, records[0])[deck], SIGNAL)
    assert np.ptp(met[:, 1]) < 30
    assert above[:, 1].mean() < met[:, 1].mean() - 20
    left, right = (turned[np.sign(turned[:, 0] - SQUARE / 2) == sign, 1].mean() for sign in (-1, 1))
    assert right > left + 20  # roll right


def test_a_heading_through_north_is_a_small_error():
    game, records = make_flight("heading", 2)
    records["body"]["heading_rad"], records["turn_command_rad"] = math.radians(350.0), math.radians(10.0)
    through_north = draw_track(game, game.world, records[1], records[:1])
    records["body"]["heading_rad"], records["turn_command_rad"] = math.radians(50.0), math.radians(70.0)
    elsewhere = draw_track(game, game.world, records[1], records[:1])
    error = np.s_[HEADER + 8 : HEADER + 30, 800:940]
    np.testing.assert_array_equal(through_north[error], elsewhere[error])


# ---------------------------------------------------------------------------------------------------- films and plots


def test_a_film_ends_with_the_last_record():
    records = make_fight(12)
    frames = list(film(GAME, list(records), every=5))
    assert len(frames) == 4
    np.testing.assert_array_equal(frames[-1], draw_dogfight(GAME, None, records[-1], records[:-1], scene_of(records)))
    assert len(list(film(*make_flight(count=3)))) == 3


@pytest.mark.check
def test_a_film_of_a_fight_is_small(tmp_path: Path):
    records = make_fight(21)
    for k in range(2):
        records["body"]["north_m"][:, k] += 20.0 * (1 - k) * np.arange(21)
        records["body"]["roll_rad"][:, k] = 0.05 * np.arange(21)
    write_gif(film(GAME, records), tmp_path / "fight.gif", 100)
    assert (tmp_path / "fight.gif").stat().st_size < 21 * 10_000  # 24 s at 10 Hz stay below 2.4 MB


@pytest.mark.check
def test_a_plot_of_a_fight_needs_no_display(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="plots need the extra palaestra[render]")
    records = make_fight(60)
    records["in_gun"][20:30, 0] = 1
    records["info"]["winner"][-1], records["info"]["end_reason"][-1] = 0, dogfight.KILL
    figure = plot_flight(GAME, list(records))
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "north, km", "altitude, km", "range, km", "off nose, deg", "health",
    ]  # fmt: skip
    assert figure.get_suptitle() == "UcavDogfight: red wins · kill"
    figure.savefig(tmp_path / "fight.png")
    assert (tmp_path / "fight.png").stat().st_size > 10_000


def test_a_missile_is_drawn_where_it_flies_with_its_shooters_color():
    game = dogfight.game(weapons="missile")
    records = make_fight(3, game)
    missile = records["missiles"][:, 2]
    for name, value in (("status", missiles.GUIDED), ("shooter", 1), ("altitude_m", 4000.0), ("flight_s", 0.1)):
        missile[name] = value
    missile["north_m"], missile["east_m"] = (300.0, 250.0, 200.0), 600.0
    records["missiles"][:, 2] = missile
    picture = np.asarray(render_flight.draw_dogfight(game, None, records[-1], records[:-1], SCENE))
    x, y = MARGIN + 0.5 * SQUARE + 600.0 * PIXELS_PER_M, HEADER + 0.5 * SQUARE - 200.0 * PIXELS_PER_M
    assert tuple(picture[round(y), round(x)]) == TEAMS[1]
    records["ammunition"] = 1
    armed = np.asarray(render_flight.draw_dogfight(game, None, records[-1], records[:-1], SCENE))
    assert (armed != picture).any()  # the envelope of a launch


def test_an_evader_sees_what_follows_it():
    game = evade.game()
    records = np.zeros(2, game.state_dtype)
    for parameter in game.parameters:
        records["parameters"][parameter.name] = parameter.default
    records["body"]["altitude_m"], records["body"]["true_airspeed_mps"] = 5000.0, 250.0
    records["missiles"]["status"][:, 0] = missiles.GUIDED
    records["missiles"]["altitude_m"], records["missiles"]["north_m"] = 5000.0, -3000.0
    records["missiles"]["velocity_north_mps"], records["missiles"]["flight_s"] = 500.0, (0.1, 0.2)
    canvas: Canvas = render_flight.draw_evade(game, None, records[-1], records[:-1])
    said = [words.words for panel, _ in canvas.panels for words in panel.words]
    assert "missile 1: follows, 500 m/s, 0 g, 3000 m, 6.0 s" in said
