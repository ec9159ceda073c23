"""Exports of a replay: an animated GIF, a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.replay.file import Replay, ReplayError
from palaestra.replay.playback import frames

SHORTEST_GIF_FRAME_MS = 20
"""Viewers show shorter frames slowly."""


def to_gif(replay: Replay, path: str | Path, *, lane: int = 0, every: int = 1, speed: float = 1.0) -> int:
    """Draws one lane as an animated GIF.

    Args:
        replay: What to draw.
        path: File to write.
        lane: Which match.
        every: Decisions from one picture to the next; more where viewers are too slow for that.
        speed: Simulated seconds a second.

    Returns:
        Number of pictures.

    Raises:
        ReplayError: No such lane, or the replay cannot be played here.
        NotImplementedError: The game has no picture.
        ImportError: Pillow is missing.
    """
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('pictures need Pillow: pip install "palaestra[render]"') from error
    if not 0 <= lane < replay.num_envs:
        raise ReplayError(f"the replay has lanes 0 to {replay.num_envs - 1}, not {lane}")
    if every < 1 or speed <= 0:
        raise ValueError(f"every must be at least 1 and speed above 0, got {every} and {speed}")
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
    first.save(path, "GIF", save_all=True, append_images=rest, duration=round(every * step_ms), loop=0)
    return 1 + len(rest)


def to_csv(replay: Replay, path: str | Path, *, lane: int = 0) -> int:
    """Writes the match record of one lane after every operation: one row each, one column a number.

    Returns:
        Number of rows.

    Raises:
        ReplayError: No such lane, or the replay cannot be played here.
    """
    if not 0 <= lane < replay.num_envs:
        raise ReplayError(f"the replay has lanes 0 to {replay.num_envs - 1}, not {lane}")
    rows = 0
    with Path(path).open("w", newline="", encoding="utf-8") as file:
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
    return rows


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
