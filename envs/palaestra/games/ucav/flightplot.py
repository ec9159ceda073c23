"""A whole match on one page, and as a film."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from palaestra.game import Game, Importing
from palaestra.games.ucav.geometry import antenna_train_angle_rad, distance_m
from palaestra.games.ucav.mapview import scene_of
from palaestra.games.ucav.records import match_time_s, outcome, stack_records
from palaestra.games.ucav.render_flight import draw_dogfight, draw_track
from palaestra.games.ucav.weapons import GUN_FAR_M, GUN_NEAR_M

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = ("#d1495b", "#1f78b4")
"""Red and blue on white: they differ in lightness too."""
WINDOW = "#f2b134"
TICK_S = 10.0
"""Between two dots on the paths, s."""


def plot_flight(game: Game, records: Iterable[np.void] | np.ndarray, title: str = "") -> Figure:
    """Draws a fight on one page: the paths from above, and altitude, range, angle off the nose and health over time.

    Args:
        game: The rules: `palaestra.games.ucav.dogfight`, `palaestra.games.ucav.pursuit` or `palaestra.games.ucav.team`.
            Of teams the range is the smallest between two opponents, the angle the smallest off a nose of the team
            against any opponent, the health that of all.
        records: All records of the match in their order.
        title: Above the page; how the match ended if empty.

    Returns:
        The figure: ``figure.savefig("fight.png")``. It needs no display.

    Raises:
        ImportError: Matplotlib is missing.
    """
    with Importing("matplotlib", 'plots need Matplotlib: pip install "palaestra[render]"'):
        from matplotlib.figure import Figure
    flight = stack_records(records)
    times = np.array([match_time_s(game, s) for s in flight])
    figure = Figure((11.0, 6.2), dpi=110, layout="constrained")
    grid = figure.add_gridspec(4, 2, width_ratios=(1.15, 1.0))
    _plot_paths(figure.add_subplot(grid[:, 0]), game, flight, times)
    side = [figure.add_subplot(grid[row, 1]) for row in range(4)]
    _plot_series(side, game, flight, times)
    figure.suptitle(title or f"{game.name}: {outcome(game, flight[-1])}", fontsize=12)
    return figure


def _plot_paths(axes: Any, game: Game, flight: np.ndarray, times: np.ndarray) -> None:
    ticks = np.searchsorted(times, np.arange(0.0, times[-1] + 1e-9, TICK_S))
    for k, agent in enumerate(game.agents):
        ink = INK[game.team_index[k]]
        east, north = flight["body"]["east_m"][:, k] / 1000, flight["body"]["north_m"][:, k] / 1000
        axes.plot(east, north, color=ink, lw=1.3, label=agent)
        axes.plot(east[ticks], north[ticks], "o", color=ink, ms=2.6)
        hits = np.where(flight["in_gun"][:, k] > 0, 1.0, np.nan)
        axes.plot(east * hits, north * hits, color=WINDOW, lw=4.0, alpha=0.8, solid_capstyle="round", zorder=1)
        axes.plot(east[0], north[0], "s", color=ink, ms=5)
        axes.plot(east[-1], north[-1], "X" if flight["lost"][-1, k] else ">", color=ink, ms=9, mec="white")
        for tick in ticks[:: max(1, len(ticks) // 6)] if len(game.agents) == 2 else ():
            at = (east[tick], north[tick])
            axes.annotate(f"{times[tick]:.0f} s", at, (5, 4), textcoords="offset points", fontsize=7, color=ink)
    axes.set(xlabel="east, km", ylabel="north, km", aspect="equal")
    axes.set_title(f"from above; a dot every {TICK_S:.0f} s, yellow where the gun hits", fontsize=9)
    axes.set_adjustable("datalim")
    axes.legend(loc="best", fontsize=8, frameon=False)
    axes.grid(alpha=0.25)


def _plot_series(side: list[Any], game: Game, flight: np.ndarray, times: np.ndarray) -> None:
    bodies, floor_m = flight["body"].view(np.recarray), float(flight["parameters"]["floor_m"][0])
    altitude, apart, angle, health = side
    for k, team in enumerate(game.team_index):
        flown = np.concatenate([[True], flight["lost"][:-1, k] == 0])
        altitude.plot(times[flown], flight["body"]["altitude_m"][flown, k] / 1000, color=INK[team], lw=1.2)
        for start, end in _runs(flight["in_gun"][:, k] > 0):
            for axes in side:
                axes.axvspan(times[start] - 0.1, times[end], color=INK[team], alpha=0.18, lw=0)
    red, blue = (list(slots) for slots in game.teams.values())
    range_m = _least(distance_m, bodies, flight["lost"], red, blue)
    for own, other, ink in ((red, blue, INK[0]), (blue, red, INK[1])):
        off_nose = _least(antenna_train_angle_rad, bodies, flight["lost"], own, other)
        angle.plot(times, np.degrees(off_nose), color=ink, lw=1.2)
        health.step(times, flight["health"][:, own].mean(1), color=ink, lw=1.4, where="post")
    altitude.axhspan(0.0, floor_m / 1000, color="#8d6e4f", alpha=0.5, lw=0)
    altitude.set(ylabel="altitude, km", ylim=(0.0, None))
    apart.plot(times, range_m / 1000, color="0.25", lw=1.2)
    apart.axhspan(GUN_NEAR_M / 1000, GUN_FAR_M / 1000, color=WINDOW, alpha=0.3, lw=0)
    apart.set(ylabel="range, km", ylim=(0.0, None))
    angle.set(ylabel="off nose, deg", ylim=(0.0, 180.0), yticks=(0, 90, 180))
    health.set(ylabel="health", ylim=(-0.05, 1.05), xlabel="time, s")
    for axes in side:
        axes.set_xlim(0.0, times[-1])
        axes.grid(alpha=0.25)
    for axes in side[:-1]:
        axes.tick_params(labelbottom=False)


def _least(measure: Any, bodies: Any, lost: np.ndarray, own: list[int], others: list[int]) -> np.ndarray:
    """The smallest value of a function of two aircraft, one of each team, both in the match before; NaN without any."""
    gone = np.concatenate([np.zeros((1, lost.shape[1]), np.bool_), lost[:-1] != 0])
    pairs = [(k, j) for k in own for j in others]
    values = [
        [np.nan if g[k] or g[j] else measure(b[k], b[j]) for k, j in pairs] for b, g in zip(bodies, gone, strict=True)
    ]
    return np.fmin.reduce(np.array(values), axis=1)


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
    """Draws the pictures of a match one after the other, with trails and a ground that does not move.

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
        draw = functools.partial(draw_dogfight, scene=scene_of(flight, len(game.agents)))
    for i in [*range(0, len(flight) - 1, every), len(flight) - 1]:
        yield np.asarray(draw(game, game.world, flight[i], flight[:i]))
