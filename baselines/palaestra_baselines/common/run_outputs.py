"""What a training leaves beside its policies: its settings as a file, its curve as a picture and in a tracker."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from palaestra.core.files import write_atomically

SETTINGS = "settings.toml"
CURVE = "curve.png"
COUNTS = ("steps", "updates", "iterations", "generation", "wall_s", "cpu_s")
"""Columns of a curve that are not drawn."""
Curve = Sequence[Mapping[str, float]]
Track = Callable[[Mapping[str, float]], None]


def write_settings(folder: Path, method: str, settings: Mapping[str, Any]) -> None:
    """Writes ``settings.toml``, from which ``palaestra train METHOD --config`` trains the same again.

    Args:
        folder: Of the run.
        method: Its name.
        settings: Numbers, texts, truth values and lists of them by name; those that are None are left out.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    lines = [f"# palaestra train {method} --config {SETTINGS}"]
    lines += [
        f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in settings.items() if value is not None
    ]
    content = "\n".join([*lines, ""]).encode()
    path = folder / SETTINGS
    if not path.exists() or path.read_bytes() != content:
        write_atomically(path, lambda file: file.write(content))


@contextmanager
def open_tracker(kind: str, method: str, folder: Path, settings: Mapping[str, Any]) -> Iterator[Track]:
    """Sends rows of a curve to a tracker, with the digits of ``log.csv``.

    A run that is resumed sends its rows from the first one: events of TensorBoard from before are dropped, on Weights &
    Biases it is a run of its own.

    Args:
        kind: ``"tensorboard"``, ``"wandb"``, or ``"none"``: then nothing is sent.
        method: Name of the method.
        folder: Of the run; TensorBoard's events go to ``tensorboard`` in it.
        settings: Of the run.

    Yields:
        ``track(row)``; a row has ``steps``.

    Raises:
        ImportError: The tracker is not installed; gives the command that installs it.
    """
    if kind == "none":
        yield lambda row: None
        return
    try:
        library: Any = importlib.import_module("torch.utils.tensorboard" if kind == "tensorboard" else kind)
    except ImportError as error:
        raise ImportError(f"--track {kind} needs {kind}, which is not installed: pip install {kind}") from error
    if kind == "tensorboard":
        with library.SummaryWriter(str(folder / "tensorboard"), purge_step=0) as writer:

            def add(row: Mapping[str, float]) -> None:
                steps, numbers = split_row(row)
                for name, value in numbers.items():
                    writer.add_scalar(name, value, steps)

            yield add
        return
    group = f"{method} {settings.get('env_id', '')}".strip()
    name = f"{group} seed {settings['seed']}"
    run = library.init(project="palaestra", group=group, name=name, config=dict(settings), dir=str(folder))
    try:
        yield lambda row: run.log(split_row(row)[1], step=split_row(row)[0])
    finally:
        run.finish()


def split_row(row: Mapping[str, float]) -> tuple[int, dict[str, float]]:
    """The steps of a row, and its other numbers as the file of the curve has them."""
    return int(row["steps"]), {name: float(as_text(value)) for name, value in row.items() if name != "steps"}


def as_text(value: float) -> str:
    """A number as the file of a curve has it."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def draw_curves(path: Path, curves: Mapping[str, Curve], title: str) -> None:
    """Draws the columns of curves over their steps, a panel each, as a PNG.

    Args:
        path: The picture.
        curves: Rows by the name of a run.
        title: Of the picture.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: It cannot be written.
    """
    from matplotlib.figure import Figure

    names = [name for name in dict.fromkeys(n for rows in curves.values() for n in rows[0]) if name not in COUNTS]
    across = min(3, max(1, len(names)))
    down = max(1, -(-len(names) // across))
    figure = Figure(figsize=(4.0 * across, 2.6 * down + 0.4), layout="constrained")
    figure.suptitle(title)
    for place, name in enumerate(names):
        axes = figure.add_subplot(down, across, place + 1)
        for run, rows in curves.items():
            points = [(row["steps"], row[name]) for row in rows if name in row]
            axes.plot([x for x, _ in points], [y for _, y in points], marker=".", label=run)
        axes.set_title(name)
        axes.set_xlabel("steps")
        if place == 0 and len(curves) > 1:
            axes.legend(fontsize="small")
    write_atomically(path, lambda file: figure.savefig(file, format="png", dpi=100))
