"""What a training leaves in its folder beside its policies: settings, curve, tracker and checkpoints.

Checkpoints: everything that decides how a training goes on, without pickle, with a checksum and a seal.

A checkpoint holds the records of running matches, and compiled code indexes memory by their numbers without checks: a
made-up record could make it write anywhere. A checksum protects against damage, not against intent, since everybody can
compute it. Therefore a checkpoint is sealed with a key of the user who writes it (HMAC-SHA-256, see
`user_key`), and one without that seal is refused unless the caller says that it is trusted.

The last two are kept. Where the newest one is damaged the one before serves.
"""

from __future__ import annotations

import hmac
import importlib
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import FileError, open_atomically, printable, write_atomically
from palaestra_baselines.common.policy_file import arrays_to_bytes, checksum, read_arrays

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


# -- checkpoints -------------------------------------------------------------------------------------------------------

CHECKPOINT = "checkpoint.safetensors"
PREVIOUS = "checkpoint.previous.safetensors"
SEAL, STATE = "seal", "state"


class UnsealedError(FileError):
    """A whole checkpoint that this user on this machine has not written."""


def save_checkpoint(path: Path, state: dict[str, Any], *, previous: Path | None = None) -> None:
    """Writes a checkpoint in one piece, sealed where the user's key can be had.

    Args:
        path: The file, ``.safetensors``.
        state: Dicts and lists, nested to any depth, of arrays, torch tensors, numbers, texts, truth values and None.
            bfloat16 is kept as float32. Keys are texts or whole numbers. A tuple comes back as a list.
        previous: Name that the file which is there now gets, once the new one is on the disk.

    Raises:
        TypeError: Something else is in it.
        OSError: It cannot be written; both files are as they were.
    """
    arrays: dict[str, np.ndarray] = {}
    metadata = {STATE: json.dumps(packed(state, arrays))}
    seal = sealed(checksum(arrays, metadata))
    content = arrays_to_bytes(arrays, {**metadata, SEAL: seal} if seal else metadata)
    with open_atomically(path) as file:
        file.write(content)
        if previous is not None and path.exists():
            file.flush()
            os.fsync(file.fileno())
            path.replace(previous)


def sealed(digest: str) -> str:
    """The seal of a checksum; empty where the user's key cannot be had."""
    try:
        return hmac.new(user_key(), digest.encode(), "sha256").hexdigest()
    except OSError:
        return ""


def load_checkpoint(path: Path, *, trusted: bool = False) -> dict[str, Any]:
    """What `save_checkpoint` wrote.

    Args:
        path: The file.
        trusted: Whether the seal does not matter: whoever wrote the file may do everything that the caller may do.

    Raises:
        UnsealedError: This user on this machine has not written it, and it is not trusted.
        FileError: It is no checkpoint, or it is damaged.
    """
    arrays, metadata = read_arrays(path)
    seal = metadata.pop(SEAL, "")
    if STATE not in metadata:
        raise FileError(f"{path}: no checkpoint (metadata {STATE!r} is missing): give the checkpoint of a training")
    wanted = sealed(checksum(arrays, metadata))
    if not trusted and (not wanted or not hmac.compare_digest(seal.encode(), wanted.encode())):
        raise UnsealedError(
            f"{path}: was not written by this user on this machine (no seal by {key_path()}), and a made-up checkpoint "
            "can run code: if you know who wrote it, resume with --trust-checkpoint; else train anew with --overwrite"
        )
    try:
        return unpacked(json.loads(metadata[STATE]), arrays)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(f"{path}: no checkpoint ({type(error).__name__}: {printable(error)}): train anew") from error


def load_latest(folder: Path, *, trusted: bool, warn: Callable[[str], None]) -> tuple[Path, dict[str, Any]] | None:
    """The newest whole checkpoint of a folder and its file; None where there is no checkpoint.

    Args:
        folder: Of the run.
        trusted: See `load_checkpoint`.
        warn: Told where the newest checkpoint is damaged or missing.

    Raises:
        UnsealedError: See `load_checkpoint`.
        FileError: All checkpoints are damaged; names the newest.
    """
    newest, before = folder / CHECKPOINT, folder / PREVIOUS
    if not newest.exists() and not before.exists():
        return None
    try:
        if newest.exists():
            return newest, load_checkpoint(newest, trusted=trusted)
        problem = FileError(f"{newest}: is missing")
    except UnsealedError:
        raise
    except FileError as error:
        problem = error
    if not before.exists():
        raise problem
    try:
        found = before, load_checkpoint(before, trusted=trusted)
    except UnsealedError:
        raise
    except FileError:
        raise problem from None
    warn(f"warning: {problem}; the run continues from the checkpoint before it")
    return found


def packed(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON can hold it; its arrays go to ``arrays``, by number.

    Raises:
        TypeError: A checkpoint cannot hold it.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict):
        return {"dict": [[key, packed(entry, arrays)] for key, entry in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [packed(entry, arrays) for entry in value]}
    is_tensor = hasattr(value, "detach")
    if is_tensor and str(value.dtype) == "torch.bfloat16":  # which numpy has not; float32 holds the same numbers
        value = value.float()
    array = value.detach().cpu().numpy() if is_tensor else value
    if not isinstance(array, np.ndarray) or array.dtype.names or array.dtype.hasobject:
        raise TypeError(f"a checkpoint holds arrays, numbers and texts, not {type(value).__name__}")
    name = str(len(arrays))
    arrays[name] = np.ascontiguousarray(array).reshape(array.shape)
    return {"tensor" if is_tensor else "array": name}


def unpacked(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The inverse of `packed`."""
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "dict":
        return {key: unpacked(entry, arrays) for key, entry in content}
    if kind == "list":
        return [unpacked(entry, arrays) for entry in content]
    if kind == "tensor":
        import torch

        return torch.from_numpy(arrays[content])
    return arrays[content]


SIZE = 32
"""Bytes of the key."""


def key_path() -> Path:
    """Where the key lies: in the user's folder for state, which no other user may write to."""
    if os.name == "nt":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return folder / "palaestra" / "checkpoint.key"


def user_key() -> bytes:
    """The key; made at first use, with rights for this user alone.

    Raises:
        OSError: It can neither be read nor made, or others can read or replace it; says what to do.
    """
    path = key_path()
    if not path.exists():
        make_key(path)
    key = path.read_bytes()
    if len(key) != SIZE:
        raise OSError(f"{path}: the key has {len(key)} bytes instead of {SIZE}: delete it, a new one is made")
    if os.name != "nt":
        facts = path.stat()
        if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o077:
            raise OSError(f"{path}: the key belongs to another user, or others can read it: delete it")
    return key


def make_key(path: Path) -> None:
    """Makes the key; of two processes that do so at once one is first, and both have its key."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SIZE))
            file.flush()
            os.fsync(file.fileno())
        os.link(unfinished, path)  # fails where the key is there by now
    except FileExistsError:
        pass
    finally:
        unfinished.unlink(missing_ok=True)
