"""Pictures by casting rays: without a display or a graphics library, the same bytes each time, and what they show."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from games.play import python

from palaestra import make_batch
from palaestra.robots import ma, picture

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
    assert (shown.shape, shown.dtype) == ((240, 320, 3), np.uint8)
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
    geoms = picture.cast(model, data, 64, 48, "segmentation")
    depth = picture.cast(model, data, 64, 48, "depth")
    colors = picture.cast(model, data, 64, 48)
    assert set(np.unique(geoms)) > {-1, 0, 1}  # the sky, the floor, the torso
    assert ((geoms < 0) == np.isinf(depth)).all()
    assert 3.0 < depth[geoms == 1].min() < 3.7  # the camera stands 3.4 m beside the robot
    assert len(np.unique(colors[geoms == 0], axis=0)) > 2  # tiles, and the shadow on them


def test_the_shadow_lies_on_the_side_away_from_the_lamp():
    model, data = scene()
    geoms = picture.cast(model, data, 160, 120, "segmentation")
    colors = picture.cast(model, data, 160, 120).astype(int).sum(axis=2)
    dark = (geoms == 0) & (colors < 0.6 * np.median(colors[geoms == 0]))
    assert 20 < dark.sum() < 800
    assert np.argwhere(dark)[:, 1].mean() > np.argwhere(geoms > 0)[:, 1].mean()  # the lamp stands on the left
