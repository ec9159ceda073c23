"""Exports of a replay: an animated GIF, a table."""

from __future__ import annotations

import csv
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import open_atomically
from palaestra.drawing.canvas import import_pillow
from palaestra.replay.file import Replay, ReplayError
from palaestra.replay.playback import frames

SHORTEST_GIF_FRAME_MS = 20
"""Viewers show shorter frames slowly."""
COLORS = 128
PALETTE_PICTURES = 8
"""At least so many pictures, evenly spread over a GIF, give it its palette."""


def to_gif(replay: Replay, path: str | Path, *, lane: int = 0, every: int = 1, speed: float = 1.0) -> int:
    """Draws one lane as an animated GIF; an old file stays until the new one is whole.

    Args:
        replay: What to draw.
        path: File to write, ``*.gif``.
        lane: Which match.
        every: Decisions from one picture to the next; more where viewers are too slow for that.
        speed: Simulated seconds a second.

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
    if Path(path).suffix.lower() != ".gif":
        raise ValueError(f"{path}: a replay is drawn as an animated GIF: name the file *.gif (to_csv writes a table)")
    if every < 1 or not 0 < speed < float("inf"):
        raise ValueError(f"every must be at least 1 and speed a number above 0, got {every} and {speed}")
    played = frames(replay)
    sim = next(played)
    step_ms = 1000.0 / sim.game.render_fps / speed
    every = max(every, int(np.ceil(SHORTEST_GIF_FRAME_MS / step_ms)))

    def pictures() -> Iterator[np.ndarray]:
        yield sim.render(lane)
        for number, frame in enumerate(played, 1):
            if number % every == 0 or number + 1 == len(replay.operations):
                yield frame.render(lane)

    return write_gif(pictures(), path, every * step_ms)


def write_gif(pictures: Iterable[np.ndarray], path: str | Path, picture_ms: float) -> int:
    """Writes pictures as an animated GIF of one palette, so that the file holds what changes alone.

    An old file stays until the new one is whole.

    Args:
        pictures: uint8 ``[H, W, 3]``, at least one, all of one shape.
        path: The file.
        picture_ms: How long each is shown; the format rounds to hundredths of a second.

    Returns:
        Number of pictures that were given; in the file those in a row that are equal are one that lasts longer.

    Raises:
        ImportError: Pillow is missing.
    """
    image_module = import_pillow()[0]
    packed = [(picture.shape, zlib.compress(picture.tobytes(), 1)) for picture in pictures]
    unpack = lambda kept: np.frombuffer(zlib.decompress(kept[1]), np.uint8).reshape(kept[0])  # noqa: E731
    some = np.concatenate([unpack(kept) for kept in packed[:: max(1, len(packed) // PALETTE_PICTURES)]])
    palette = image_module.fromarray(some).quantize(COLORS)
    first, *rest = (image_module.fromarray(unpack(kept)).quantize(palette=palette, dither=0) for kept in packed)
    with open_atomically(path) as file:
        first.save(file, "GIF", save_all=True, append_images=rest, duration=round(picture_ms), loop=0)
    return len(packed)


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
