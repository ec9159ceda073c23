"""The first surface on each of many rays from one point: planes, spheres, capsules, cylinders, ellipsoids and boxes.

The formulas are those of `mujoco.mj_ray`. A body is compared with those rays alone that pass near it: rays are sorted
by where they pass through a plane (`Rays`). Meshes and height fields, which no robot here has, are not seen.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from palaestra.games.robots.engine import import_mujoco

CELLS = 64
"""Cells of the plane in which rays are sorted, in each direction."""
NEAR_M = 1e-6
"""A body that reaches so near to the plane of the camera is compared with every ray."""
LEAST = 1e-300
CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


class Outline(NamedTuple):
    """A body as it is seen from a point.

    Attributes:
        geom: Its number.
        rectangle: The lower left and the upper right corner of what it covers of a plane at the distance 1,
            ``[2, 2]``; None where it reaches behind the point.
    """

    geom: int
    rectangle: np.ndarray | None


class Rays(NamedTuple):
    """``R`` rays from one point, sorted by where they pass through a plane at the distance 1.

    Attributes:
        start: The point, metres.
        ways: Directions of length 1, float64 ``[3, R]``.
        axes: Columns: to the right, upwards, away from the plane.
        corner: The lower left corner of the cells on the plane.
        cell: Width and height of a cell.
        order: Numbers of the rays, cell by cell; those outside of the cells, which pass no body, are the last ones.
        starts: Where those of each cell begin in ``order``, and the end.
        bodies: What they may meet, see `outlines`.
    """

    start: np.ndarray
    ways: np.ndarray
    axes: np.ndarray
    corner: np.ndarray
    cell: np.ndarray
    order: np.ndarray
    starts: np.ndarray
    bodies: list[Outline]

    def near(self, rectangle: np.ndarray | None) -> np.ndarray:
        """Numbers of the rays that pass through a rectangle of the plane, and some more; all of them for None."""
        if rectangle is None:
            return self.order
        first, last = np.floor((rectangle - self.corner) / self.cell)
        if (last < 0.0).any() or (first >= CELLS).any():
            return self.order[:0]
        (left, bottom), (right, top) = np.clip([first, last], 0, CELLS - 1).astype(int).tolist()
        rows = range(bottom * CELLS, (top + 1) * CELLS, CELLS)
        parts = [self.order[self.starts[row + left] : self.starts[row + right + 1]] for row in rows]
        return np.concatenate(parts)


def sorted_rays(
    model: Any, data: Any, start: np.ndarray, ways: np.ndarray, axes: np.ndarray, x: np.ndarray, y: np.ndarray
) -> Rays:
    """See `Rays`; ``x`` and ``y`` are where the rays pass through the plane, of shapes that together give R places."""
    bodies = outlines(model, data, start, axes)
    ends = np.array([[x.min(initial=0.0), y.min(initial=0.0)], [x.max(initial=0.0), y.max(initial=0.0)]])
    seen = np.array([body.rectangle for body in bodies if body.rectangle is not None])
    if len(seen):
        ends = np.clip(ends, seen[:, 0].min(axis=0), seen[:, 1].max(axis=0))
    corner, cell = ends[0], np.maximum((ends[1] - ends[0]) * (1.0 + 1e-9) / CELLS, 1e-9)
    columns, rows = (
        np.floor(np.clip((places - low) / width, -1.0, CELLS)).astype(np.int16)
        for places, low, width in zip((x, y), corner, cell, strict=True)
    )
    within = ((columns >= 0) & (columns < CELLS)) & ((rows >= 0) & (rows < CELLS))
    keys = np.where(within, rows * np.int16(CELLS) + columns, np.int16(CELLS * CELLS)).reshape(-1)
    starts = np.concatenate([[0], np.bincount(keys, minlength=CELLS * CELLS).cumsum()])
    return Rays(start, ways, axes, corner, cell, np.argsort(keys, kind="stable"), starts, bodies)  # a radix sort


def along(axis: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """Scalar products of an axis and ``[3, R]``."""
    return axis[0] * ways[0] + axis[1] * ways[1] + axis[2] * ways[2]


def turned(axes: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """The scalar products of three axes, the rows of ``[3, 3]``, and ``[3, R]``: the same bits on all machines."""
    return np.stack([along(axis, ways) for axis in axes])


# -- the first surface -------------------------------------------------------------------------------------------------


def first_surfaces(model: Any, data: Any, rays: Rays) -> tuple[np.ndarray, np.ndarray]:
    """The first geom on each ray, int32 ``[R]``, -1 where there is none, and its distance, infinite there."""
    geoms, distances = np.full(rays.ways.shape[1], -1, np.int32), np.full(rays.ways.shape[1], np.inf)
    for geom in np.flatnonzero((model.geom_type == _types().mjGEOM_PLANE) & (paint(model)[:, 3] > 0.0)):
        found = _plane(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom], model.geom_size[geom], rays)
        nearer = found < distances
        geoms[nearer], distances[nearer] = geom, found[nearer]
    first_bodies(model, data, rays, distances, geoms)
    return geoms, distances


def first_bodies(model: Any, data: Any, rays: Rays, distances: np.ndarray, geoms: np.ndarray | None = None) -> None:
    """Writes the distances of the geoms but planes that are nearer than ``distances``, ``[R]``, and their numbers."""
    for geom, rectangle in rays.bodies:
        which = rays.near(rectangle)
        turn = data.geom_xmat[geom].reshape(3, 3).T
        start = turn @ (rays.start - data.geom_xpos[geom])
        ways = turned(turn, rays.ways.take(which, axis=1))
        found = _distances(model.geom_type[geom], model.geom_size[geom], start, ways)
        nearer = found < distances[which]
        which = which[nearer]
        distances[which] = found[nearer]
        if geoms is not None:
            geoms[which] = geom


def outlines(model: Any, data: Any, start: np.ndarray, axes: np.ndarray) -> list[Outline]:
    """The geoms but planes that are seen from a point in the direction opposite to the third axis (columns)."""
    kinds = _types()
    shapes = [
        kinds.mjGEOM_SPHERE,
        kinds.mjGEOM_CAPSULE,
        kinds.mjGEOM_CYLINDER,
        kinds.mjGEOM_ELLIPSOID,
        kinds.mjGEOM_BOX,
    ]
    drawn = np.flatnonzero(np.isin(model.geom_type, np.array(shapes, int)) & (paint(model)[:, 3] > 0.0))
    kind, half = model.geom_type[drawn], model.geom_size[drawn].copy()
    is_round = kind == int(kinds.mjGEOM_SPHERE)
    half[is_round] = half[is_round, :1]
    has_axis = (kind == int(kinds.mjGEOM_CAPSULE)) | (kind == int(kinds.mjGEOM_CYLINDER))
    half[has_axis] = np.column_stack([half[has_axis, 0], half[has_axis, 0], half[has_axis, 1]])
    half[kind == int(kinds.mjGEOM_CAPSULE), 2] += half[kind == int(kinds.mjGEOM_CAPSULE), 0]
    turns = data.geom_xmat[drawn].reshape(-1, 3, 3)
    corners = np.einsum("gij,gcj->gci", turns, half[:, None] * CORNERS) + data.geom_xpos[drawn, None] - start
    corners = corners @ axes
    ahead = -corners[..., 2]
    found = list[Outline]()
    for geom, places, depths in zip(drawn.tolist(), corners[..., :2], ahead, strict=True):
        if depths.min() > NEAR_M:
            seen = places / depths[:, None]
            found.append(Outline(geom, np.stack([seen.min(axis=0), seen.max(axis=0)])))
        elif depths.max() > NEAR_M:
            found.append(Outline(geom, None))
    return found


def _plane(axes: np.ndarray, place: np.ndarray, halves: np.ndarray, rays: Rays) -> np.ndarray:
    """Distances to a plane from its front, within its size where it has one."""
    start, up = axes.T @ (rays.start - place), along(axes[:, 2], rays.ways)
    falls = up < -1e-15
    distances = np.where(falls & (start[2] >= 0.0), -start[2] / np.where(falls, up, -1.0), np.inf)
    for side in (0, 1):
        if halves[side] > 0.0:
            beyond = np.abs(start[side] + along(axes[:, side], rays.ways) * distances)
            distances[~(beyond <= halves[side])] = np.inf
    return distances


def _distances(kind: int, size: np.ndarray, start: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """Distances along rays, ``[3, n]`` in the frame of a body, from a point outside of it or, from within, to leave it.

    Infinite where there is none.
    """
    kinds = _types()
    if kind == kinds.mjGEOM_BOX:
        return _first(*_slabs(start, ways, size))
    if kind == kinds.mjGEOM_CYLINDER:
        near, far = _slabs(start[2:], ways[2:], size[1:2])
        side_near, side_far = _roots(start[:2], ways[:2], size[0])
        return _first(np.maximum(near, side_near), np.minimum(far, side_far))
    if kind == kinds.mjGEOM_CAPSULE:
        return _first(*_capsule(start, ways, size[0], size[1]))
    if kind == kinds.mjGEOM_ELLIPSOID:
        return _first(*_roots(start / size, ways / size[:, None], 1.0))
    return _first(*_roots(start, ways, size[0]))


def _first(near: np.ndarray, far: np.ndarray) -> np.ndarray:
    """The first point of what a ray passes from ``near`` to ``far``; nothing where it enters after it leaves."""
    return np.where((near <= far) & (far >= 0.0), np.where(near >= 0.0, near, far), np.inf)


def _slabs(start: np.ndarray, ways: np.ndarray, halves: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where rays ``[k, n]`` enter and leave what lies between ``-halves`` and ``halves`` in k directions."""
    with np.errstate(divide="ignore"):
        inverse = 1.0 / np.where(ways == 0.0, LEAST, ways)
    middle, reach = -start[:, None] * inverse, halves[:, None] * np.abs(inverse)
    return (middle - reach).max(axis=0), (middle + reach).min(axis=0)


def _roots(start: np.ndarray, ways: np.ndarray, radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Where rays ``[k, n]`` enter and leave the sphere (k = 3) or the infinite cylinder (k = 2) around the origin."""
    square, half = np.zeros(ways.shape[1]), np.zeros(ways.shape[1])
    for place, way in zip(start.tolist(), ways, strict=True):
        square += way * way
        half += place * way
    np.maximum(square, LEAST, out=square)
    half /= square
    inside = half * half - (float(np.sum(start * start)) - radius * radius) / square
    root = np.sqrt(np.maximum(inside, 0.0))
    is_hit = inside >= 0.0
    return np.where(is_hit, -half - root, np.inf), np.where(is_hit, root - half, -np.inf)


def _capsule(start: np.ndarray, ways: np.ndarray, radius: float, half: float) -> tuple[np.ndarray, np.ndarray]:
    """Where rays enter and leave a capsule: where they do the cylinder, or beyond its ends one of the two spheres."""
    found = _roots(start[:2], ways[:2], radius)
    passing = np.flatnonzero(found[0] <= found[1])
    ways = ways[:, passing]
    ends = [_roots(start - [0.0, 0.0, end], ways, radius) for end in (-half, half)]
    for side, whole in enumerate(found):
        place = whole[passing]
        upright = start[2] + place * ways[2]
        place = np.where(upright < -half, ends[0][side], np.where(upright > half, ends[1][side], place))
        whole[passing] = place
    return found


# -- surfaces ----------------------------------------------------------------------------------------------------------


def facing(model: Any, data: Any, geoms: np.ndarray, points: np.ndarray, ways: np.ndarray) -> np.ndarray:
    """How much surfaces face what comes along ``ways``, ``[3, R]``: cosines, at most 0 where they turn away.

    Args:
        model: The robots.
        data: Where they are.
        geoms: Whose surfaces, int32 ``[R]``.
        points: Points on them, metres, ``[3, R]``.
        ways: Directions of length 1.
    """
    cosines = np.empty(len(geoms))
    order = np.argsort(geoms.astype(np.int16), kind="stable")
    ends = np.cumsum(np.bincount(geoms, minlength=model.ngeom))
    for geom in np.flatnonzero(np.diff(ends, prepend=0)).tolist():
        which = order[ends[geom - 1] if geom else 0 : ends[geom]]
        axes, here = data.geom_xmat[geom].reshape(3, 3).T, ways[:, which]
        if model.geom_type[geom] == _types().mjGEOM_PLANE:
            cosines[which] = -along(axes[2], here)
            continue
        away = points[:, which] - data.geom_xpos[geom][:, None]
        normals = _normals(model.geom_type[geom], model.geom_size[geom], turned(axes, away))
        cosines[which] = -along(normals, turned(axes, here))
    return cosines


def _normals(kind: int, size: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Normals at points ``[3, n]``, in the frame of a body."""
    kinds = _types()
    if kind == kinds.mjGEOM_BOX:
        side = np.abs(points / size[:, None]).argmax(axis=0)
        return np.where(side == np.arange(3)[:, None], np.sign(points), 0.0)
    if kind == kinds.mjGEOM_CYLINDER:
        is_end = np.abs(points[2]) * size[0] >= np.hypot(points[0], points[1]) * size[1]
        ways = np.where(is_end, [[0.0], [0.0], [1.0]] * np.sign(points[2]), points * [[1.0], [1.0], [0.0]])
    elif kind == kinds.mjGEOM_CAPSULE:
        ways = points - [[0.0], [0.0], [1.0]] * np.clip(points[2], -size[1], size[1])
    elif kind == kinds.mjGEOM_ELLIPSOID:
        ways = points / (size * size)[:, None]
    else:
        ways = points
    return ways / np.sqrt(np.maximum(along(ways, ways), LEAST))


def paint(model: Any) -> np.ndarray:
    """Red, green, blue, opacity of all geoms: of the material where there is one."""
    colors, has_material = model.geom_rgba.copy(), model.geom_matid >= 0
    colors[has_material] = model.mat_rgba[model.geom_matid[has_material]]
    return colors


def _types() -> Any:
    return import_mujoco().mjtGeom
