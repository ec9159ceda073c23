"""Pictures of robots by casting rays: no window, no graphics library, the same bytes in each run.

A ray for each point finds the first surface (MuJoCo's own geometry); a second one from the lamp says whether the point
lies in shadow. Floors are chequered.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from palaestra.game import Game
from palaestra.robots.engine import import_mujoco

WIDTH, HEIGHT = 320, 240
FIELD_OF_VIEW_RAD = math.radians(45.0)
SKY_TOP, SKY_LOW = np.array([0.45, 0.62, 0.82]), np.array([0.86, 0.91, 0.96])
FLOOR_LIGHT, FLOOR_DARK, TILE_M = np.array([0.80, 0.82, 0.80]), np.array([0.62, 0.65, 0.64]), 0.5
LAMP_M = np.array([-2.0, -4.0, 8.0])
"""The lamp, from the point that the camera looks at."""
AMBIENT, SHADE = 0.45, 0.55
FAR_M = 60.0
Kind = Literal["rgb", "depth", "segmentation"]


def draw(game: Game, world: Any, s: Any) -> np.ndarray:
    """Picture of one match from its record, uint8 ``[240, 320, 3]``.

    Raises:
        ImportError: MuJoCo is missing; the message names the extra that brings it.
    """
    options = game.physics_options
    model, data = _scene(options["model"], options["arguments"])
    for field, body, member, array, first in options["starts"]:
        values = np.asarray(s[field][body][member]).reshape(-1)
        getattr(data, array)[first : first + values.size] = values
    import_mujoco().mj_kinematics(model, data)
    return cast(model, data, WIDTH, HEIGHT)


@functools.lru_cache(maxsize=16)
def _scene(model: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    made = model(*arguments)
    return made, import_mujoco().MjData(made)


def cast(model: Any, data: Any, width: int, height: int, kind: Kind = "rgb") -> np.ndarray:
    """Casts a ray for each point, from the camera ``overview``; without one, from beside the first moving body.

    Args:
        model: ``MjModel``.
        data: ``MjData`` whose frames are up to date.
        width: Columns.
        height: Rows.
        kind: ``"rgb"``: uint8 ``[H, W, 3]``; ``"depth"``: float32 ``[H, W]``, metres, infinite where there is nothing;
            ``"segmentation"``: int32 ``[H, W]``, numbers of geoms, -1 where there is nothing.
    """
    mujoco = import_mujoco()
    camera = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, "overview")
    if camera >= 0:
        eye, turned = model.cam_pos[camera].copy(), np.empty(9)
        mujoco.mju_quat2Mat(turned, model.cam_quat[camera])
        target = eye - turned[2::3] * np.linalg.norm(eye)
    else:
        target = np.array([*data.xpos[1][:2], 0.5])
        eye = target + np.array([0.4, -3.4, 1.1])
    rays = _rays(eye, target, width, height)
    geoms, distances, normals = _hits(model, data, eye, rays)
    if kind == "depth":
        return np.where(geoms >= 0, distances, np.inf).astype(np.float32).reshape(height, width)
    if kind == "segmentation":
        return geoms.astype(np.int32).reshape(height, width)
    colors = SKY_LOW + (SKY_TOP - SKY_LOW) * np.clip(rays[:, 2:] * 2.0, 0.0, 1.0)
    seen = np.flatnonzero((geoms >= 0) & (distances < FAR_M))
    points = eye + rays[seen] * distances[seen, None]
    surface = _surface(model, geoms[seen], points)
    lit = _light(model, data, points, normals[seen], target + LAMP_M)
    fog = np.clip(distances[seen, None] / FAR_M, 0.0, 1.0)
    colors[seen] = surface * lit[:, None] * (1.0 - fog) + SKY_LOW * fog
    return (np.clip(colors, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8).reshape(height, width, 3)


def _rays(eye: np.ndarray, target: np.ndarray, width: int, height: int) -> np.ndarray:
    """Directions of length 1, row by row from the top: float64 ``[H W, 3]``."""
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    up = np.cross(right, ahead)
    half = math.tan(0.5 * FIELD_OF_VIEW_RAD)
    y, x = np.meshgrid(
        half * (1.0 - (2.0 * np.arange(height) + 1.0) / height),
        half * width / height * ((2.0 * np.arange(width) + 1.0) / width - 1.0),
        indexing="ij",
    )
    rays = ahead + x.reshape(-1, 1) * right + y.reshape(-1, 1) * up
    return rays / np.linalg.norm(rays, axis=1, keepdims=True)


def _hits(model: Any, data: Any, start: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Geom, distance and normal of the first surface on each ray from one point; geom -1 where there is none."""
    n = len(rays)
    geoms, distances, normals = np.full(n, -1, np.int32), np.zeros(n), np.zeros(3 * n)
    flat = np.ascontiguousarray(rays).reshape(-1)
    import_mujoco().mj_multiRay(model, data, start, flat, None, True, -1, geoms, distances, normals, n, 2.0 * FAR_M)
    return geoms, distances, normals.reshape(n, 3)


def _surface(model: Any, geoms: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Colour of the surface without light: chequered floors, other geoms by their colour."""
    colors = model.geom_rgba[geoms][:, :3].astype(np.float64)
    material = model.geom_matid[geoms]
    has_material = material >= 0
    colors[has_material] = model.mat_rgba[material[has_material]][:, :3]
    is_floor = model.geom_type[geoms] == int(import_mujoco().mjtGeom.mjGEOM_PLANE)
    tiles = np.floor(points[:, :2] / TILE_M).sum(axis=1) % 2.0
    colors[is_floor] = np.where(tiles[is_floor, None] > 0.0, FLOOR_LIGHT, FLOOR_DARK)
    return colors


def _light(model: Any, data: Any, points: np.ndarray, normals: np.ndarray, lamp: np.ndarray) -> np.ndarray:
    """Brightness of each point: less where the surface turns away from the lamp, least in shadow."""
    ways = points - lamp
    lengths = np.linalg.norm(ways, axis=1)
    ways /= lengths[:, None]
    _, reached, _ = _hits(model, data, lamp, ways)
    facing = np.clip(-(normals * ways).sum(axis=1), 0.0, 1.0)
    return AMBIENT + SHADE * facing * (reached > lengths - 1e-3)
