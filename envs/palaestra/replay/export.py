"""Exports of a replay: an animated GIF, a table."""

from __future__ import annotations

import csv
import io
import math
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.contract.pictures import Size, check_size
from palaestra.core.files import open_atomically
from palaestra.drawing.canvas import Canvas, import_pillow
from palaestra.drawing.colors import BACKGROUND, SIGNAL
from palaestra.replay.file import STEP, Replay, ReplayError
from palaestra.replay.playback import frames

LONGEST_S, SHORTEST_S, FEWEST_FPS = 11.0, 4.0, 8.0
"""What `gif_speed` aims at: seconds of a GIF at most, seconds below which no match is hurried, pictures a second."""
END_MS = 1000
"""The last picture is shown so long before the first one follows again."""
SHORTEST_GIF_FRAME_MS = 20
"""Viewers show shorter frames slowly."""
COLORS = 128
PALETTE_PICTURES = 8
"""At least so many pictures, evenly spread over a GIF, give it its palette."""


def gif_speed(decisions: int, decisions_per_s: float) -> int:
    """Simulated seconds a second at which a GIF shows a match: 1, or more where the match is long or the game slow.

    A match lasts `LONGEST_S` at most. A game with few decisions a second gets `FEWEST_FPS` pictures a second, or fewer
    where its match would be over before `SHORTEST_S`.

    Args:
        decisions: Of the match.
        decisions_per_s: Decisions per simulated second, `palaestra.game.Game.render_fps`.
    """
    match_s = decisions / decisions_per_s
    hurried = min(math.ceil(FEWEST_FPS / decisions_per_s - 1e-6), math.floor(match_s / SHORTEST_S))
    return max(1, hurried, math.ceil(match_s / LONGEST_S))


def to_gif(
    replay: Replay,
    path: str | Path,
    *,
    lane: int = 0,
    every: int = 1,
    speed: float | None = None,
    render_size: Size | None = None,
) -> int:
    """Draws one lane as an animated GIF, to the end of its last match; an old file stays until the new one is whole.

    Args:
        replay: What to draw.
        path: File to write, ``*.gif``.
        lane: Which match.
        every: Decisions from one picture to the next; more where viewers are too slow for that.
        speed: Simulated seconds a second, by default those of `gif_speed`. Another one than 1 stands below the picture.
        render_size: Columns and rows of the pictures; None for the size of the game's own.

    Returns:
        Number of pictures that were drawn; in the file those in a row that are equal are one that lasts longer.

    Raises:
        ReplayError: No such lane, or the replay cannot be played here.
        ValueError: The file is to be no GIF, or a number is out of range.
        NotImplementedError: The game has no picture.
        ImportError: Pillow is missing.
    """
    import_pillow()  # before anything is played
    check_lane(replay, lane)
    size = check_size(render_size)
    if Path(path).suffix.lower() != ".gif":
        raise ValueError(f"{path}: a replay is drawn as an animated GIF: name the file *.gif (to_csv writes a table)")
    if every < 1 or not (speed is None or 0 < speed < float("inf")):
        raise ValueError(f"every must be at least 1 and speed a number above 0, got {every} and {speed}")
    played, last = frames(replay), _last_operation(replay, lane)
    sim = next(played)
    sim.render_size = size
    fps = sim.game.render_fps
    speed = gif_speed(int((replay.operations[: last + 1] == STEP).sum()), fps) if speed is None else speed
    step_ms = 1000.0 / fps / speed
    every = max(every, math.ceil(SHORTEST_GIF_FRAME_MS / step_ms))

    def pictures() -> Iterator[np.ndarray]:
        yield sim.render(lane)
        for number, frame in enumerate(played, 1):
            if number % every == 0 or number == last:
                yield frame.render(lane)
            if number == last:
                return

    return write_gif(pictures(), path, every * step_ms, speed)


def _last_operation(replay: Replay, lane: int) -> int:
    """Number of the operation after which a lane shows nothing new: the end of its last match, if it waits then."""
    resets = np.flatnonzero(replay.operations != STEP)[replay.reset_lanes[:, lane]]
    decisions = np.cumsum(replay.operations == STEP)
    ends = replay.match_rows[replay.match_rows[:, 0] == lane, 1]
    last = len(replay.operations) - 1
    if replay.autoreset_mode != "off" or not len(ends) or decisions[resets].max(initial=0) >= ends[-1]:
        return last
    return min(int(np.searchsorted(decisions, ends[-1])), last)


def write_gif(pictures: Iterable[np.ndarray], path: str | Path, picture_ms: float, speed: float = 1.0) -> int:
    """Writes pictures as an animated GIF of one palette, so that the file holds what changes alone.

    An old file stays until the new one is whole.

    Args:
        pictures: uint8 ``[H, W, 3]``, at least one, all of one shape.
        path: The file.
        picture_ms: How long each is shown but the last one; the format rounds to hundredths of a second.
        speed: Times the game's own speed that the file has: another one than 1 is written below each picture.

    Returns:
        Number of pictures that were given; in the file those in a row that are equal are one that lasts longer.

    Raises:
        ImportError: Pillow is missing.
    """
    image_module = import_pillow()[0]
    told = pictures if speed == 1.0 else (_with_speed(picture, speed) for picture in pictures)
    packed = [(picture.shape, zlib.compress(picture.tobytes(), 1)) for picture in told]
    unpack = lambda kept: np.frombuffer(zlib.decompress(kept[1]), np.uint8).reshape(kept[0])  # noqa: E731
    some = np.concatenate([unpack(kept) for kept in packed[:: max(1, len(packed) // PALETTE_PICTURES)]])
    palette = image_module.fromarray(some).quantize(COLORS)
    first, *rest = (image_module.fromarray(unpack(kept)).quantize(palette=palette, dither=0) for kept in packed)
    with open_atomically(path) as file:
        durations = [round(picture_ms)] * len(rest) + [max(round(picture_ms), END_MS)]
        first.save(file, "GIF", save_all=True, append_images=rest, duration=durations, loop=0)
    return len(packed)


def _with_speed(picture: np.ndarray, speed: float) -> np.ndarray:
    """The picture above a strip that says how many times faster than the game's clock it plays."""
    width = picture.shape[1]
    size = max(12, width // 40)
    strip = Canvas(width, 2 * size, BACKGROUND)
    strip.text((width / 2, 1.4 * size), f"played at {speed:g}x", SIGNAL, size, "ms")
    return np.concatenate([picture, np.asarray(strip)])


def to_csv(replay: Replay, path: str | Path, *, lane: int = 0) -> int:
    """Writes the match record of one lane after every operation: one row each, one column a number.

    An old file stays until the new one is whole.

    Returns:
        Number of rows.

    Raises:
        ReplayError: No such lane, or the replay cannot be played here.
    """
    check_lane(replay, lane)
    rows = 0
    with open_atomically(path) as raw:
        file = io.TextIOWrapper(raw, "utf-8", newline="")
        writer = csv.writer(file)
        for sim in frames(replay):
            columns = dict(_numbers("", sim.states[lane]))
            columns |= {
                f"reward.{agent}": reward for agent, reward in zip(sim.game.agents, sim.rewards[lane], strict=True)
            }
            if rows == 0:
                writer.writerow(columns)
            writer.writerow(value.item() for value in columns.values())
            rows += 1
        file.detach()
    return rows


def check_lane(replay: Replay, lane: int) -> None:
    """Whether a replay has a lane.

    Raises:
        ReplayError: It has not; the message names those that it has.
    """
    if not 0 <= lane < replay.num_envs:
        raise ReplayError(f"the replay has lanes 0 to {replay.num_envs - 1}, not {lane}")


def _numbers(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The scalars of a record with their full names: ``body[1].north_m``."""
    if value.dtype.names is not None and value.shape == ():
        for member in value.dtype.names:
            yield from _numbers(f"{name}.{member}" if name else member, value[member])
    elif value.shape:
        for k in np.ndindex(value.shape):
            yield from _numbers(f"{name}[{','.join(map(str, k))}]", value[k])
    else:
        yield name, value
