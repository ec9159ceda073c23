"""Exports of a replay: an animated GIF, a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import open_atomically
from palaestra.replay.file import Replay, ReplayError
from palaestra.replay.playback import frames

SHORTEST_GIF_FRAME_MS = 20
"""Viewers show shorter frames slowly."""


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
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('pictures need Pillow: pip install "palaestra[render]"') from error
    check_lane(replay, lane)
    if Path(path).suffix.lower() != ".gif":
        raise ValueError(f"{path}: a replay is drawn as an animated GIF: name the file *.gif (to_csv writes a table)")
    if every < 1 or not 0 < speed < float("inf"):
        raise ValueError(f"every must be at least 1 and speed a number above 0, got {every} and {speed}")
    played = frames(replay)
    sim = next(played)
    step_ms = 1000.0 / sim.game.render_fps / speed
    every = max(every, int(np.ceil(SHORTEST_GIF_FRAME_MS / step_ms)))

    def pictures() -> Iterator[Any]:
        for number, frame in enumerate(played, 1):
            if number % every == 0 or number + 1 == len(replay.operations):
                yield Image.fromarray(frame.render(lane)).quantize(128)

    first = Image.fromarray(sim.render(lane)).quantize(128)
    rest = list(pictures())
    with open_atomically(path) as file:
        first.save(file, "GIF", save_all=True, append_images=rest, duration=round(every * step_ms), loop=0)
    return 1 + len(rest)


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
        ReplayError: It has not; says which it has.
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
