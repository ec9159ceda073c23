"""Pictures of robots by casting rays: no window, no graphics library, the same bytes in each run.

A ray for each point finds the first surface (`palaestra.games.robots.rays`); a second one from the lamp says whether
the point lies in shadow. Floors are chequered.
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
from palaestra.games.robots.rays import Rays, along, facing, first_bodies, first_surfaces, paint, sorted_rays

WIDTH, HEIGHT, MOST = 640, 480, 4096
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
LEAST_SHADOW_M = 1e-3
"""What is so near to a point throws no shadow on it: the surface of the point itself."""
BAND = 2**19
"""Rays that are cast at a time, for bounded memory."""
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
    return Pose(sim.game, sim.states[lane]).cast(camera, size, kind)


def draw(game: Game, world: Any, s: Any) -> Pose:
    """Picture of one match from its record, which can be drawn at any size."""
    return Pose(game, s)


class Pose:
    """Where all bodies of a match are: a `palaestra.core.contract.pictures.Drawing` of `OVERVIEW`."""

    def __init__(self, game: Game, s: Any) -> None:
        """Copies it from a match record."""
        self._options = game.physics_options
        self._values = list[tuple[str, int, np.ndarray]]()
        for field, body, member, array, first, part in self._options["starts"]:
            values = np.asarray(s[field][body][member]).reshape(-1)[slice(*part) if part else slice(None)]
            self._values.append((array, first, values.copy()))

    def cast(self, camera: str, size: tuple[int, int], kind: Kind) -> np.ndarray:
        """See `picture`."""
        mujoco = import_mujoco()
        model, data = _scene(self._options["model"], self._options["arguments"])
        for array, first, values in self._values:
            getattr(data, array)[first : first + values.size] = values
        for stage in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_camlight):
            stage(model, data)
        return cast(model, data, camera, size, kind)

    def pixels(self, size: tuple[int, int]) -> np.ndarray:
        """The picture of ``size``, columns and rows; uint8 ``[H, W, 3]``.

        Raises:
            ImportError: MuJoCo is missing; the message names the extra that brings it.
        """
        return self.cast(OVERVIEW, size, "rgb")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The picture at its usual size, uint8 ``[480, 640, 3]``."""
        return self.pixels((WIDTH, HEIGHT)).astype(np.uint8 if dtype is None else dtype, copy=False)


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
        rays, cosines = _rays(model, data, view, width, height, np.arange(first, min(first + rows, height)))
        geoms, distances = first_surfaces(model, data, rays)
        if kind == "segmentation":
            band = geoms
        elif kind == "depth":
            band = (distances * cosines).astype(np.float32)
        else:
            band = _colors(model, data, rays, geoms, distances, lamp)
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


def _rays(model: Any, data: Any, view: View, width: int, height: int, rows: np.ndarray) -> tuple[Rays, np.ndarray]:
    """Rays through the pixels of some rows; cosines of their angles to the axis, ``[R]``."""
    half = math.tan(0.5 * math.radians(view.degrees))
    y = half * (1.0 - (2.0 * rows[:, None] + 1.0) / height)
    x = half * width / height * ((2.0 * np.arange(width) + 1.0) / width - 1.0)
    cosines = 1.0 / np.sqrt(1.0 + x * x + y * y)
    right, up, back = view.axes.T[:, :, None, None]
    ways = ((right * x + up * y - back) * cosines).reshape(3, -1)
    return sorted_rays(model, data, view.eye, ways, view.axes, x, y), cosines.reshape(-1)


def _colors(
    model: Any, data: Any, rays: Rays, geoms: np.ndarray, distances: np.ndarray, lamp: np.ndarray
) -> np.ndarray:
    """What is seen along rays: surfaces in the light of the lamp, fog, the sky; uint8 ``[R, 3]``."""
    colors = SKY_LOW[:, None] + (SKY_TOP - SKY_LOW)[:, None] * np.clip(2.0 * rays.ways[2], 0.0, 1.0).astype(np.float32)
    seen = np.flatnonzero(distances < FAR_M)
    geoms, ways = geoms[seen], distances[seen]
    points = rays.start[:, None] + rays.ways.take(seen, axis=1) * ways
    fog = (ways / FAR_M).astype(np.float32)
    lit = _light(model, data, geoms, points, lamp) * (1.0 - fog)
    colors[:, seen] = _surface(model, geoms, points) * lit + SKY_LOW[:, None] * fog
    return np.ascontiguousarray((np.clip(colors, 0.0, 1.0) * 255.0 + 0.5).astype(np.uint8).T)


def _surface(model: Any, geoms: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Colour of surfaces at points ``[3, R]`` without light, float32 ``[3, R]``: floors are chequered."""
    palette = np.concatenate([paint(model)[:, :3], [FLOOR_DARK, FLOOR_LIGHT]]).astype(np.float32)
    is_floor = (model.geom_type == int(import_mujoco().mjtGeom.mjGEOM_PLANE))[geoms]
    tiles = np.floor(points[0] / TILE_M) + np.floor(points[1] / TILE_M)
    number = np.where(is_floor, model.ngeom + (tiles.astype(np.int64) & 1), geoms)
    return palette.T.take(number, axis=1)


def _light(model: Any, data: Any, geoms: np.ndarray, points: np.ndarray, lamp: np.ndarray) -> np.ndarray:
    """Brightness at points ``[3, R]`` of geoms: less where the surface turns away from the lamp, least in shadow.

    Floors throw no shadow. float32.
    """
    ways = points - lamp[:, None]
    lengths = np.sqrt(along(ways, ways))
    ways /= lengths
    bright = np.clip(facing(model, data, geoms, points, ways), 0.0, 1.0)
    lit = np.flatnonzero((bright > 0.0) & (ways[2] < 0.0))  # what is above the lamp has no shadow
    ways, reached = ways.take(lit, axis=1), lengths[lit] - LEAST_SHADOW_M
    shadows = reached.copy()
    rays = sorted_rays(model, data, lamp, ways, np.eye(3), -ways[0] / ways[2], -ways[1] / ways[2])
    first_bodies(model, data, rays, shadows)
    bright[lit[shadows < reached]] = 0.0
    return (AMBIENT + SHADE * bright).astype(np.float32)
