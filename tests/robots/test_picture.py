"""Pictures by casting rays: without a display or a graphics library, the same bytes each time, and what they show."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import pytest
from games.play import python

from palaestra import make_batch
from palaestra.games.robots import ma
from palaestra.games.robots.picture import cast, picture

pytestmark = pytest.mark.check

mujoco = pytest.importorskip("mujoco")

PROGRAM = """
import hashlib, sys
from palaestra import make_batch
sim = make_batch("palaestra/MaAnt-v0", 2)
sim.reset(seed=3)
print(hashlib.sha256(sim.render(1).tobytes()).hexdigest(), "OpenGL.GL" in sys.modules)
"""


def test_a_picture_is_the_same_in_another_process_and_needs_no_graphics_library():
    sim = make_batch("palaestra/MaAnt-v0", 2)
    sim.reset(seed=3)
    shown = sim.render(1)
    assert (shown.shape, shown.dtype) == ((480, 640, 3), np.uint8)
    assert shown.tobytes() == sim.render(1).tobytes()
    assert shown.tobytes() != sim.render(0).tobytes()
    digest = hashlib.sha256(shown.tobytes()).hexdigest()
    assert python(PROGRAM, MUJOCO_GL=None, DISPLAY=None) == f"{digest} False"


def scene() -> tuple:
    model = ma.model("hopper")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def test_kinds_of_pictures_agree():
    model, data = scene()
    geoms = cast(model, data, size=(64, 48), kind="segmentation")
    depth = cast(model, data, size=(64, 48), kind="depth")
    colors = cast(model, data, size=(64, 48))
    assert (geoms.dtype, depth.dtype, colors.dtype) == (np.int32, np.float32, np.uint8)
    assert (geoms.shape, depth.shape, colors.shape) == ((48, 64), (48, 64), (48, 64, 3))
    assert set(np.unique(geoms)) > {-1, 0, 1}  # the sky, the floor, the torso
    assert ((geoms < 0) == np.isinf(depth)).all()
    assert 3.0 < depth[geoms == 1].min() < 3.7  # the camera stands 3.4 m beside the robot
    assert len(np.unique(colors[geoms == 0], axis=0)) > 2  # tiles, and the shadow on them


def test_the_shadow_lies_on_the_side_away_from_the_lamp():
    model, data = scene()
    geoms = cast(model, data, size=(160, 120), kind="segmentation")
    colors = cast(model, data, size=(160, 120)).astype(int).sum(axis=2)
    dark = (geoms == 0) & (colors < 0.6 * np.median(colors[geoms == 0]))
    assert 20 < dark.sum() < 800
    assert np.argwhere(dark)[:, 1].mean() > np.argwhere(geoms > 0)[:, 1].mean()  # the lamp stands on the left


ROOM = """
<mujoco><worldbody>
  <geom type="plane" size="3 2 1"/>
  <geom type="plane" size="0 0 1" pos="0 0 -0.5" euler="0 8 0"/>
  <geom type="plane" size="0 0 1" pos="0 0 0.01" rgba="1 1 1 0"/>
  <geom type="box" size="0.05 1.5 0.4" pos="2 0 0.4"/>
  <body pos="0 0 0.5"><freejoint/>
    <geom type="ellipsoid" size="0.3 0.1 0.05"/>
    <geom type="capsule" size="0.04" fromto="0 0 0 0.3 0.4 0.2"/>
    <geom type="cylinder" size="0.1 0.2" pos="0 0.5 0"/>
    <camera name="moving" pos="-0.1 0.3 0.6" xyaxes="0 -1 0 0.5 0 1" fovy="80"/>
  </body>
  <camera name="near" pos="1 -0.6 0.3" xyaxes="-0.6 -0.8 0 0 0 1"/>
  <camera name="overview" pos="-3 -2 2" xyaxes="0.55 -0.83 0 0.35 0.23 0.9"/>
</worldbody></mujoco>
"""
"""A floor with an end, one below that slopes, one that is not seen, a wall, and a thing of round shapes.

The camera ``near`` stands within the sphere around the wall.
"""


@pytest.mark.parametrize("camera", ["overview", "moving", "near"])
def test_what_is_seen_is_what_mujoco_finds_ray_by_ray(camera):
    model = mujoco.MjModel.from_xml_string(ROOM)
    data = mujoco.MjData(model)
    data.qpos[:3] = 0.4, -0.2, 0.6
    data.qpos[3:7] = np.array([0.9, 0.1, -0.1, 0.3]) / np.linalg.norm([0.9, 0.1, -0.1, 0.3])
    mujoco.mj_forward(model, data)
    width, height = 45, 30
    geoms = cast(model, data, camera, (width, height), "segmentation")
    depth = cast(model, data, camera, (width, height), "depth")
    place, half = data.camera(camera).xpos, np.tan(np.radians(model.camera(camera).fovy[0]) / 2)
    axes, found = data.camera(camera).xmat.reshape(3, 3), np.zeros(1, np.int32)
    for row in range(height):
        for column in range(width):
            x, y = (2 * column + 1 - width) / height * half, (height - 2 * row - 1) / height * half
            ray = axes @ [x, y, -1.0]  # of length 1 along the axis: MuJoCo's distance is the depth
            distance = mujoco.mj_ray(model, data, place, ray, None, 1, -1, found)
            assert geoms[row, column] == found[0]
            assert depth[row, column] == pytest.approx(distance if found[0] >= 0 else np.inf, rel=1e-6)
    assert len(np.unique(geoms)) >= 3


def walking() -> Any:
    sim = make_batch("palaestra/QuadGate2-v0", 3)
    sim.reset(seed=5)
    for _ in range(3):
        sim.step()
    return sim


def test_the_camera_on_a_head_moves_with_the_robot():
    sim = walking()
    records = sim.states.copy()
    records["robots"]["position_m"][:, 0, :2] = [[-2.0, 1.0], [-1.6, 1.0], [-1.6, 1.0]]
    records["robots"]["quaternion"][:, 0] = 1.0, 0.0, 0.0, 0.0
    records["robots"]["quaternion"][2, 0] = 0.0, 0.0, 0.0, 1.0
    sim.load_states(records, np.ones(3, bool))
    far, near, turned = (picture(sim, lane, "robot_0", kind="depth")[240, 320] for lane in range(3))
    assert far - near == pytest.approx(0.4, abs=1e-5)  # the wall is across the axis
    assert turned > near + 1.0


def test_a_picture_without_words_is_that_of_render():
    sim = walking()
    assert picture(sim).tobytes() == sim.render(0).tobytes()
    assert picture(sim, 2).tobytes() == picture(sim, -1).tobytes() == sim.render(2).tobytes()
    assert picture(sim, camera="robot_1", size=(80, 60)).tobytes() != picture(sim, size=(80, 60)).tobytes()


def test_a_picture_of_another_size_shows_the_same_from_the_same_camera():
    sim = walking()
    whole = sim.render(1).astype(float)
    drawn = sim.draw(1)
    sim.render_size = (320, 240)
    half = sim.render(1)
    assert half.tobytes() == picture(sim, 1, size=(320, 240)).tobytes()
    assert np.abs(whole.reshape(240, 2, 320, 2, 3).mean(axis=(1, 3)) - half).mean() < 4.0
    sim.states["robots"]["position_m"] += 1.0
    assert np.asarray(drawn).tobytes() == whole.astype(np.uint8).tobytes(), "a drawing is of the match as it was"


def test_robots_of_gymnasium_are_seen_from_beside_and_by_their_own_camera():
    sim = make_batch("palaestra/MaHalfCheetah-v0", 1)
    sim.reset(seed=5)
    beside, track = picture(sim), picture(sim, camera="track")
    assert beside.tobytes() == sim.render(0).tobytes()
    assert beside.tobytes() != track.tobytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"camera": "robot_7"}, r"camera must be one of 'overview', 'robot_0', 'robot_1', got 'robot_7'"),
        ({"kind": "normals"}, r"kind must be one of 'rgb', 'depth', 'segmentation', got 'normals'"),
        ({"lane": 3}, r"lane must be an integer from -3 to 2, got 3"),
        ({"size": (0, 240)}, r"width .* must be an integer from 1 to 4096, got 0"),
        ({"size": (320, 2.5)}, r"height .* must be an integer from 1 to 4096, got 2.5"),
    ],
)
def test_what_there_is_not_is_refused_with_what_there_is(wrong, message):
    with pytest.raises(ValueError, match=message):
        picture(walking(), **wrong)


def test_games_without_robots_are_refused():
    with pytest.raises(ValueError, match=r"CartPole is no game of robots: sim\.render"):
        picture(make_batch("palaestra/CartPole-v0", 1))
