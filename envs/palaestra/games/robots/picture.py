"""Pictures of robots by casting rays: no window, no graphics library, the same bytes in each run.

A ray for each point finds the first surface (MuJoCo's own geometry); a second one from the lamp says whether the point
lies in shadow. Floors are chequered. Rays that pass all geoms but floors are not given to MuJoCo: most of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from palaestra.core.contract.keywords import check_count, check_word
from palaestra.game import Game
from palaestra.games.robots.engine import camera_axes, import_mujoco

WIDTH, HEIGHT, MOST = 320, 240, 4096
"""Columns, rows; most that either may be."""
OVERVIEW, BESIDE = "overview", ((0.4, -3.4, 1.1), 0.5, 45.0)
"""The view that each model has: its camera of this name; else from this offset to a point at this height above the
first moving body, metres, with this vertical field of view, degrees."""
SKY_TOP, SKY_LOW = np.array([[0.45, 0.62, 0.82], [0.86, 0.91, 0.96]], np.float32)
FLOOR_LIGHT, FLOOR_DARK = np.array([[0.80, 0.82, 0.80], [0.62, 0.65, 0.64]], np.float32)
TILE_M = 0.5
LAMP_M = np.array([-2.0, -4.0, 8.0])
"""The lamp, from the point that the overview looks at."""
AMBIENT, SHADE = 0.45, 0.55
FAR_M = 60.0
BAND, MARGIN = 16384, 1e-5
"""Rays that are cast at a time, for bounded memory; what cones are widened by: more than float32 errs."""
Kind = Literal["rgb", "depth", "segmentation"]


class View(NamedTuple):
    """What a picture is taken from.

    Attributes:
        eye: Its place, metres.
        axes: Columns: to the right, upwards, backwards.
        degrees: Vertical field of view.
        target: A point that it looks at, metres.
    """

    eye: np.ndarray
    axes: np.ndarray
    degrees: float
    target: np.ndarray


class Hits(NamedTuple):
    """The first surface on each of ``R`` rays.

    Attributes:
        geoms: Its geom, int32, -1 where there is none.
        distances: From the start, float64.
        normals: float64 ``[R, 3]``.
    """

    geoms: np.ndarray
    distances: np.ndarray
    normals: np.ndarray


def picture(
    sim: Any, lane: int = 0, camera: str = OVERVIEW, size: tuple[int, int] = (WIDTH, HEIGHT), kind: Kind = "rgb"
) -> np.ndarray:
    """Picture of a match of robots.

    Args:
        sim: What `palaestra.make_batch` gives.
        lane: The match.
        camera: ``"overview"``, or a camera of the model: ``"robot_0"``, the head of a quadruped, say.
        size: Columns W and rows H.
        kind: ``"rgb"``: uint8 ``[H, W, 3]``. ``"depth"``: float32 ``[H, W]``, metres along the axis of the camera (not
            along the ray), infinite where there is nothing. ``"segmentation"``: int32 ``[H, W]``, numbers of MuJoCo's
            geoms, -1 where there is nothing.

    Raises:
        ValueError: Another game, or no such lane, camera, size or kind; names what there is.
        ImportError: MuJoCo is missing; the message names the extra that brings it.
    """
    if not {"model", "arguments", "starts"} <= sim.game.physics_options.keys():
        raise ValueError(f"{sim.game.name} is no game of robots: sim.render(lane) draws it, where it has a picture")
    check_count("lane", lane, -sim.num_envs, sim.num_envs - 1)
    return _picture(sim.game, sim.states[lane], camera, size, kind)


def draw(game: Game, world: Any, s: Any) -> np.ndarray:
    """Picture of one match from its record, uint8 ``[240, 320, 3]``.

    Raises:
        ImportError: MuJoCo is missing; the message names the extra that brings it.
    """
    return _picture(game, s, OVERVIEW, (WIDTH, HEIGHT), "rgb")


def _picture(game: Game, s: Any, camera: str, size: tuple[int, int], kind: Kind) -> np.ndarray:
    """`picture` from a match record."""
    options, mujoco = game.physics_options, import_mujoco()
    model, data = _scene(options["model"], options["arguments"])
    for field, body, member, array, first, part in options["starts"]:
        values = np.asarray(s[field][body][member]).reshape(-1)[slice(*part) if part else slice(None)]
        getattr(data, array)[first : first + values.size] = values
    for stage in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight):
        stage(model, data)
    return cast(model, data, camera, size, kind)


@functools.lru_cache(maxsize=16)
def _scene(model: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    made = model(*arguments)
    return made, import_mujoco().MjData(made)


def cast(
    model: Any, data: Any, camera: str = OVERVIEW, size: tuple[int, int] = (WIDTH, HEIGHT), kind: Kind = "rgb"
) -> np.ndarray:
    """`picture` of a ``MjData`` whose frames, cameras included, are up to date."""
    check_word("kind", kind, ("rgb", "depth", "segmentation"))
    width, height = size
    check_count("width (the first of size)", width, 1, MOST)
    check_count("height (the second of size)", height, 1, MOST)
    view, lamp = _view(model, data, camera), _view(model, data, OVERVIEW).target + LAMP_M
    rows, bands = max(1, BAND // width), []
    for first in range(0, height, rows):
        rays, cosines = _rays(view, width, height, np.arange(first, min(first + rows, height)))
        hits = _hits(model, data, view.eye, rays)
        if kind == "segmentation":
            band = hits.geoms
        elif kind == "depth":
            band = np.where(hits.geoms >= 0, hits.distances * cosines, np.inf).astype(np.float32)
        else:
            band = _colors(model, data, view.eye, rays, hits, lamp)
        bands.append(band.reshape(-1, width, *band.shape[1:]))
    return np.concatenate(bands)


def _view(model: Any, data: Any, camera: str) -> View:
    """A camera of the model, or `OVERVIEW`.

    Raises:
        ValueError: There is no such camera; names those that there are.
    """
    names = [model.camera(number).name for number in range(model.ncam)]
    check_word("camera", camera, (OVERVIEW, *(name for name in names if name != OVERVIEW)))
    if camera in names:
        number = names.index(camera)
        eye, axes = data.cam_xpos[number].copy(), data.cam_xmat[number].reshape(3, 3)
        return View(eye, axes, float(model.cam_fovy[number]), eye - axes[:, 2] * np.linalg.norm(eye))
    offset, height, degrees = np.array(BESIDE[0]), BESIDE[1], BESIDE[2]
    target = np.array([*data.xpos[1][:2], height])
    return View(target + offset, camera_axes(offset).T, degrees, target)


def _rays(view: View, width: int, height: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directions of length 1, row by row, float64 ``[3, R]``; cosines of their angles to the axis, ``[R]``."""
    half = math.tan(0.5 * math.radians(view.degrees))
    y = half * (1.0 - (2.0 * rows[:, None] + 1.0) / height)
    x = half * width / height * ((2.0 * np.arange(width) + 1.0) / width - 1.0)
    cosines = 1.0 / np.sqrt(1.0 + x * x + y * y)
    right, up, back = view.axes.T[:, :, None, None]
    return ((right * x + up * y - back) * cosines).reshape(3, -1), cosines.reshape(-1)


def _hits(model: Any, data: Any, start: np.ndarray, rays: np.ndarray) -> Hits:
    """The first surface on each ray ``[3, R]`` from one point."""
    hits = _floors(model, data, start, rays)
    near = np.flatnonzero(_are_near(model, data, start, rays))
    n = len(near)
    geoms, distances, normals = np.empty(n, np.int32), np.empty(n), np.empty(3 * n)
    flat = np.ascontiguousarray(rays[:, near].T).reshape(-1)
    import_mujoco().mj_multiRay(model, data, start, flat, None, True, -1, geoms, distances, normals, n, 2.0 * FAR_M)
    hits.geoms[near], hits.distances[near], hits.normals[near] = geoms, distances, normals.reshape(n, 3)
    return hits


def _are_near(model: Any, data: Any, start: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Which rays pass through the bounding sphere of a geom, and a few more; floors have none."""
    bounded = model.geom_rbound > 0.0
    radii, ways = model.geom_rbound[bounded], data.geom_xpos[bounded] - start
    lengths = np.maximum(np.linalg.norm(ways, axis=1), 1e-9)
    sines = np.minimum(radii / lengths, 1.0)
    least = np.where(sines < 1.0, np.sqrt(1.0 - sines * sines) - MARGIN, -2.0)  # all rays from within a sphere
    cones = np.column_stack([ways / lengths[:, None], -least]).astype(np.float32)
    extended = np.append(rays, np.ones((1, rays.shape[1])), axis=0).astype(np.float32)
    return (cones @ extended).max(axis=0, initial=-1.0) > 0.0


def _floors(model: Any, data: Any, start: np.ndarray, rays: np.ndarray) -> Hits:
    """The first plane on each ray ``[3, R]`` from one point; MuJoCo's rule: from its front, within its size."""
    n = rays.shape[1]
    hits = Hits(np.full(n, -1, np.int32), np.full(n, -1.0), np.zeros((n, 3)))
    planes = model.geom_type == int(import_mujoco().mjtGeom.mjGEOM_PLANE)
    for plane in np.flatnonzero(planes & (_paint(model)[:, 3] > 0.0)):
        axes = data.geom_xmat[plane].reshape(3, 3).T
        place, (ahead, left, up) = axes @ (start - data.geom_xpos[plane]), (_along(axis, rays) for axis in axes)
        distances = -place[2] / np.minimum(up, -1e-15)
        is_hit = (up < -1e-15) & (distances >= 0.0) & ((hits.geoms < 0) | (distances < hits.distances))
        for begin, slope, half in zip(place, (ahead, left), model.geom_size[plane], strict=False):
            is_hit &= (half <= 0.0) | (np.abs(begin + slope * distances) <= half)
        hits.geoms[is_hit], hits.distances[is_hit], hits.normals[is_hit] = plane, distances[is_hit], axes[2]
    return hits


def _along(axis: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Scalar products of an axis and rays ``[3, R]``."""
    return axis[0] * rays[0] + axis[1] * rays[1] + axis[2] * rays[2]


def _colors(model: Any, data: Any, eye: np.ndarray, rays: np.ndarray, hits: Hits, lamp: np.ndarray) -> np.ndarray:
    """What is seen along rays ``[3, R]``: surfaces in the light of the lamp, fog, the sky; uint8 ``[R, 3]``."""
    colors = SKY_LOW + (SKY_TOP - SKY_LOW) * np.clip(2.0 * rays[2], 0.0, 1.0).astype(np.float32)[:, None]
    seen = np.flatnonzero((hits.geoms >= 0) & (hits.distances < FAR_M))
    distances = hits.distances[seen]
    points = eye[:, None] + rays[:, seen] * distances
    lit = _light(model, data, points, hits.normals[seen], lamp)
    fog = (distances / FAR_M).astype(np.float32)
    surface = _surface(model, hits.geoms[seen], points)
    colors[seen] = surface * (lit * (1.0 - fog))[:, None] + SKY_LOW * fog[:, None]
    return (np.clip(colors, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8)


def _paint(model: Any) -> np.ndarray:
    """Red, green, blue, opacity of all geoms: of the material where there is one."""
    colors, has_material = model.geom_rgba.copy(), model.geom_matid >= 0
    colors[has_material] = model.mat_rgba[model.geom_matid[has_material]]
    return colors


def _surface(model: Any, geoms: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Colour of surfaces at points ``[3, R]`` without light, float32: chequered floors, other geoms by their colour."""
    colors = _paint(model)[geoms, :3]
    is_floor = np.flatnonzero(model.geom_type[geoms] == int(import_mujoco().mjtGeom.mjGEOM_PLANE))
    tiles = np.floor(points[:2, is_floor] / TILE_M).sum(axis=0) % 2.0
    colors[is_floor] = np.where(tiles[:, None] > 0.0, FLOOR_LIGHT, FLOOR_DARK)
    return colors


def _light(model: Any, data: Any, points: np.ndarray, normals: np.ndarray, lamp: np.ndarray) -> np.ndarray:
    """Brightness at points ``[3, R]``: less where the surface turns away from the lamp, least in shadow; float32."""
    ways = points - lamp[:, None]
    lengths = np.sqrt(_along(ways, ways))
    ways /= lengths
    facing = np.clip(-_along(normals.T, ways), 0.0, 1.0)
    is_lit = _hits(model, data, lamp, ways).distances > lengths - 1e-3
    return (AMBIENT + SHADE * facing * is_lit).astype(np.float32)
