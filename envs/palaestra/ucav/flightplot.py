"""A whole match on one page, and as a film."""

from __future__ import annotations

import functools
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from palaestra.core.canvas import import_pillow
from palaestra.core.files import open_atomically
from palaestra.core.game import Game
from palaestra.ucav.dogfight import GUN_FAR_M, GUN_NEAR_M
from palaestra.ucav.geometry import antenna_train_angle_rad, distance_m
from palaestra.ucav.mapview import scene_of
from palaestra.ucav.records import match_time_s, outcome, stack_records
from palaestra.ucav.render_flight import draw_dogfight, draw_track

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = ("#d1495b", "#1f78b4")
"""Red and blue on white: they differ in lightness too."""
WINDOW = "#f2b134"
TICK_S = 10.0
"""Between two dots on the paths, s."""

TOLERANCE = 8
"""A pixel of a film stays as it is if no channel of its colour would change by more than this, of 255."""
FLAT = 3
"""The most frequent colours, those of the empty panels, are exempt: what goes leaves no ghost."""


def plot_flight(game: Game, records: Iterable[np.void] | np.ndarray, title: str = "") -> Figure:
    """Draws a fight on one page: the paths from above, and altitude, range, angle off the nose and health over time.

    Args:
        game: The rules: `palaestra.ucav.dogfight` or `palaestra.ucav.pursuit`.
        records: All records of the match in their order.
        title: Above the page; says how the match ended if empty.

    Returns:
        The figure: ``figure.savefig("fight.png")``. It needs no display.

    Raises:
        ImportError: Matplotlib is missing.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need Matplotlib: pip install "palaestra[render]"') from error
    flight = stack_records(records)
    times = np.array([match_time_s(game, s) for s in flight])
    figure = Figure((11.0, 6.2), dpi=110, layout="constrained")
    grid = figure.add_gridspec(4, 2, width_ratios=(1.15, 1.0))
    _plot_paths(figure.add_subplot(grid[:, 0]), game, flight, times)
    side = [figure.add_subplot(grid[row, 1]) for row in range(4)]
    _plot_series(side, flight, times)
    figure.suptitle(title or f"{game.name}: {outcome(game, flight[-1])}", fontsize=12)
    return figure


def _plot_paths(axes: Any, game: Game, flight: np.ndarray, times: np.ndarray) -> None:
    marks = np.searchsorted(times, np.arange(0.0, times[-1] + 1e-9, TICK_S))
    for k in range(2):
        east, north = flight["body"]["east_m"][:, k] / 1000, flight["body"]["north_m"][:, k] / 1000
        axes.plot(east, north, color=INK[k], lw=1.3, label=game.agents[k])
        axes.plot(east[marks], north[marks], "o", color=INK[k], ms=2.6)
        hits = np.where(flight["in_gun"][:, k] > 0, 1.0, np.nan)
        axes.plot(east * hits, north * hits, color=WINDOW, lw=4.0, alpha=0.8, solid_capstyle="round", zorder=1)
        axes.plot(east[0], north[0], "s", color=INK[k], ms=5)
        axes.plot(east[-1], north[-1], "X" if flight["lost"][-1, k] else ">", color=INK[k], ms=9, mec="white")
        for mark in marks[:: max(1, len(marks) // 6)]:
            at = (east[mark], north[mark])
            axes.annotate(f"{times[mark]:.0f} s", at, (5, 4), textcoords="offset points", fontsize=7, color=INK[k])
    axes.set(xlabel="east, km", ylabel="north, km", aspect="equal")
    axes.set_title(f"from above; a dot every {TICK_S:.0f} s, yellow where the gun hits", fontsize=9)
    axes.set_adjustable("datalim")
    axes.legend(loc="best", fontsize=8, frameon=False)
    axes.grid(alpha=0.25)


def _plot_series(side: list[Any], flight: np.ndarray, times: np.ndarray) -> None:
    bodies = flight["body"].view(np.recarray)
    range_m = [distance_m(red, blue) for red, blue in bodies]
    floor_m = float(flight["parameters"]["floor_m"][0])
    altitude, apart, angle, health = side
    for k in range(2):
        off_nose = [antenna_train_angle_rad(pair[k], pair[1 - k]) for pair in bodies]
        altitude.plot(times, flight["body"]["altitude_m"][:, k] / 1000, color=INK[k], lw=1.2)
        angle.plot(times, np.degrees(off_nose), color=INK[k], lw=1.2)
        health.step(times, flight["health"][:, k], color=INK[k], lw=1.4, where="post")
        for start, end in _runs(flight["in_gun"][:, k] > 0):
            for axes in side:
                axes.axvspan(times[start] - 0.1, times[end], color=INK[k], alpha=0.18, lw=0)
    altitude.axhspan(0.0, floor_m / 1000, color="#8d6e4f", alpha=0.5, lw=0)
    altitude.set(ylabel="altitude, km", ylim=(0.0, None))
    apart.plot(times, np.array(range_m) / 1000, color="0.25", lw=1.2)
    apart.axhspan(GUN_NEAR_M / 1000, GUN_FAR_M / 1000, color=WINDOW, alpha=0.3, lw=0)
    apart.set(ylabel="range, km", ylim=(0.0, None))
    angle.set(ylabel="off nose, deg", ylim=(0.0, 180.0), yticks=(0, 90, 180))
    health.set(ylabel="health", ylim=(-0.05, 1.05), xlabel="time, s")
    for axes in side:
        axes.set_xlim(0.0, times[-1])
        axes.grid(alpha=0.25)
    for axes in side[:-1]:
        axes.tick_params(labelbottom=False)


def _runs(flags: np.ndarray) -> list[tuple[int, int]]:
    """First and last index of each run of True."""
    edges = np.diff(np.concatenate([[0], flags.astype(np.int8), [0]]))
    return list(zip(np.flatnonzero(edges == 1).tolist(), (np.flatnonzero(edges == -1) - 1).tolist(), strict=True))


# -------------------------------------------------------------------------------------------------------------- films


def film(
    game: Game,
    records: Iterable[np.void] | np.ndarray,
    every: int = 1,
) -> Iterator[np.ndarray]:
    """Draws the pictures of a match one after the other, with trails and a ground that stands still.

    The last record is always among them.

    Args:
        game: The rules.
        records: All records of the match in their order.
        every: Draws one record out of so many.

    Yields:
        uint8 ``[540, 960, 3]``.
    """
    flight = stack_records(records)
    draw = draw_track
    if "in_gun" in (flight.dtype.names or ()):
        draw = functools.partial(draw_dogfight, scene=scene_of(flight))
    for i in [*range(0, len(flight) - 1, every), len(flight) - 1]:
        yield draw(game, game.world, flight[i], flight[:i])


def save_gif(
    frames: Iterable[np.ndarray],
    path: str | os.PathLike[str],
    fps: float = 10.0,
    size: tuple[int, int] = (640, 360),
    colors: int = 48,
) -> None:
    """Writes pictures as an animated GIF, small enough for a README: one palette for all, only what changes is stored.

    Args:
        frames: uint8 ``[H, W, 3]``, all of one shape; may be an iterator, they are kept compressed.
        path: The file.
        fps: Pictures per second; the format rounds to hundredths of a second.
        size: Width and height in the file.
        colors: Of the palette, at most 255.

    Raises:
        ValueError: There are no frames.
        ImportError: Pillow is missing.
    """
    image_module = import_pillow()[0]
    counts = np.zeros(1 << 15, np.int64)
    packed = []
    for frame in frames:
        image = image_module.fromarray(frame).resize(size, image_module.Resampling.HAMMING)
        counts += np.bincount(_color_bins(np.asarray(image)).ravel(), minlength=1 << 15)
        packed.append(zlib.compress(image.tobytes(), 1))
    if not packed:
        raise ValueError("a film needs at least one picture")
    palette = _common_palette(counts, colors)

    shades = np.array(palette.getpalette()[: 3 * colors], np.int16).reshape(-1, 3)
    near = np.abs(shades[:, None] - shades).max(-1) <= TOLERANCE
    flat = _nearest(shades, np.argsort(counts)[-FLAT:])
    near[flat] = np.eye(len(shades), dtype=np.bool_)[flat]

    def delta_images() -> Iterator[Any]:
        shown = None
        for data in packed:
            image = image_module.frombytes("RGB", size, zlib.decompress(data)).quantize(palette=palette, dither=0)
            now = np.asarray(image)
            keep = np.zeros(now.shape, np.bool_) if shown is None else near[now, shown]
            shown = now if shown is None else np.where(keep, shown, now)
            delta = image_module.fromarray(np.where(keep, np.uint8(colors), now))
            delta.putpalette(palette.getpalette())
            yield delta

    images = delta_images()
    with open_atomically(os.fspath(path)) as file:
        next(images).save(
            file,
            format="GIF",
            save_all=True,
            append_images=images,
            duration=round(100.0 / fps) * 10,
            loop=0,
            disposal=1,
            transparency=colors,
            optimize=False,
        )


def _color_bins(pixels: np.ndarray) -> np.ndarray:
    """Number of each pixel's colour among 32^3."""
    r, g, b = np.moveaxis(pixels.astype(np.uint16) >> 3, -1, 0)
    return (r << 10) | (g << 5) | b


def _nearest(shades: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """Indices of the palette's colours next to some of the 32^3."""
    return np.abs(shades[:, None] - _bin_colors(bins)).sum(-1).argmin(0)


def _bin_colors(bins: np.ndarray) -> np.ndarray:
    """Colours in the middle of some of the 32^3, int64 [n, 3]."""
    return np.stack([bins >> 10, bins >> 5 & 31, bins & 31], -1) * 8 + 4


def _common_palette(counts: np.ndarray, colors: int) -> Any:
    """An image whose palette serves all frames: rare colours weigh more than their share, or a flash would be grey."""
    image_module = import_pillow()[0]
    used = np.flatnonzero(counts)
    weights = np.maximum(1, np.sqrt(counts[used]) / np.sqrt(counts[used].max()) * 1000).astype(np.int64)
    sample = np.repeat(_bin_colors(used).astype(np.uint8), weights, axis=0)[None]
    return image_module.fromarray(sample).quantize(colors, method=image_module.Quantize.MEDIANCUT)
