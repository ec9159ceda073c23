"""Saved policies: a safetensors file whose metadata names the method, the game and the arguments.

Arrays and texts have a checksum over all of them, here and in checkpoints: `write_arrays`, `read_arrays`.

`palaestra.core.run.opponents.policy_metadata` reads the metadata without safetensors; the module of the method turns
the arrays into a player with its own ``load_policy(path, game, team)``.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from palaestra import registry
from palaestra.core.files import FileError, open_regular, printable, write_atomically
from palaestra.core.run.opponents import policy_metadata
from palaestra.game import Game

Layers = Sequence[tuple[np.ndarray, np.ndarray]]
"""``(W [outputs, inputs], b [outputs])`` of each layer of a perceptron."""
PLAIN = ("method", "env_id", "game", "format")
"""Entries of the metadata that are texts; all others are JSON."""


def save_policy(
    path: Path, arrays: Mapping[str, np.ndarray], *, method: str, env_id: str, args: Any, **more: Any
) -> None:
    """Writes a policy in one piece, with a checksum.

    Args:
        path: File to write, ``.safetensors``.
        arrays: Weights by name.
        method: Name of the method in the entry-point group ``palaestra.baselines``.
        env_id: Environment that it was trained in. Where it is registered, the name of its game is saved, too.
        args: The method's arguments: a dataclass or a mapping. Paths among them are left out.
        **more: Anything else worth keeping that JSON can hold (figures, versions).

    Raises:
        ValueError: A weight is not finite: the training has diverged.
        OSError: It cannot be written; names ``path``.
    """
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ValueError(
                f"{name} has weights that are not finite, the training has diverged: {path} is not written"
            )
    values = dict(args) if isinstance(args, Mapping) else dataclasses.asdict(args)
    values = {k: v for k, v in values.items() if not isinstance(v, Path)}  # paths are the machine's, not the policy's
    notes = {name: json.dumps(value, default=str) for name, value in {"args": values, **more}.items()}
    write_arrays(path, arrays, {"method": method, "env_id": env_id, **game_name(env_id), **notes})


def game_name(env_id: str) -> dict[str, str]:
    """``{"game": name}`` of a registered id: the presets of one game share it; nothing for other ids."""
    return {"game": registry.make_game(env_id)[0].name} if env_id in registry.ROWS else {}


def read_policy(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and metadata that `save_policy` wrote.

    Raises:
        FileError: The file is not a saved policy, is damaged, or has weights that are not finite.
    """
    path = Path(path)
    policy_metadata(path)
    arrays, metadata = read_arrays(path)
    for name, array in arrays.items():
        if array.dtype.kind != "f" or not np.isfinite(array).all():
            raise FileError(
                f"{path}: {printable(name)} holds weights that are no finite numbers: train the policy again"
            )
    try:
        return arrays, {name: text if name in PLAIN else json.loads(text) for name, text in metadata.items()}
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path}: its metadata are no JSON ({error}): take another copy of it") from error


@contextmanager
def policy_for(path: Path, game: Game, team: str) -> Iterator[dict[str, np.ndarray]]:
    """The arrays of a policy that is to play a team; a ValueError in the block becomes an error of the file.

    Raises:
        FileError: It is not a saved policy, or was trained for another game.
    """
    arrays, notes = read_policy(path)
    trained_in = notes.get("game", game.name)
    if trained_in != game.name:
        raise FileError(
            f"{path}: was trained in {printable(notes.get('env_id'))}, the game {printable(trained_in)}, and cannot "
            f"play {team} of {game.name}: give it to that, or train one for {game.name}"
        )
    try:
        yield arrays
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"{path}: {error} (it was trained in {printable(notes.get('env_id'))})") from error


def arrays_to_layers(arrays: Mapping[str, np.ndarray], prefix: str = "") -> list[tuple[np.ndarray, np.ndarray]]:
    """The layers that `layer_arrays` named.

    Args:
        arrays: Weights by name.
        prefix: What stands before the names of the layers.

    Raises:
        ValueError: There is none, an array is missing, or the layers do not fit each other.
    """
    count = sum(name.startswith(f"{prefix}layer_") and name.endswith(".weight") for name in arrays)
    if not count:
        raise ValueError(
            f"the policy has no layers {prefix}layer_0.weight, ...; it has {printable(', '.join(sorted(arrays)))}: "
            "it was trained for another game"
        )
    layers = []
    for k in range(count):
        names = (f"{prefix}layer_{k}.weight", f"{prefix}layer_{k}.bias")
        missing = [name for name in names if name not in arrays]
        if missing:
            raise ValueError(f"the policy has {count} layers and no {missing[0]}")
        weight, bias = (arrays[name] for name in names)
        inputs = len(layers[-1][1]) if layers else weight.shape[-1] if weight.ndim else 0
        if weight.ndim != 2 or weight.shape != (bias.size, inputs) or bias.ndim != 1 or not weight.size:
            raise ValueError(
                f"{names[0]} of the policy is {weight.shape} and its bias {bias.shape}; the layer before gives {inputs}"
            )
        layers.append((weight, bias))
    return layers


# -- arrays and texts --------------------------------------------------------------------------------------------------

LONGEST_REASON = 200
"""Characters of the reader's own error that a message repeats."""
CHECKSUM = "sha256"
"""Entry of the metadata that holds `checksum`; all other entries count for it."""


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Writes a file in one piece; the old one stays until the new one is on the disk.

    Args:
        path: File to write, ``.safetensors``. Its folder is made.
        arrays: Arrays of numbers or truth values by name.
        metadata: Texts by name; the checksum is added.

    Raises:
        OSError: It cannot be written; names ``path``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    content = arrays_to_bytes(arrays, metadata)
    write_atomically(path, lambda file: file.write(content))


def arrays_to_bytes(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> bytes:
    """The content of the file that `write_arrays` writes: the same bytes of the same arrays and texts.

    The library writes metadata in an order that changes from call to call; here the header is sorted.
    """
    contiguous = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    content = save(contiguous, {**metadata, CHECKSUM: checksum(contiguous, metadata)})
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # arrays are aligned
    return len(header).to_bytes(8, "little") + header + content[end:]


def read_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Arrays and metadata that `write_arrays` wrote; the checksum is left out.

    The header is compared with the size of the file before anything is allocated: arrays are never larger than the
    file.

    Raises:
        FileError: Not such a file, cut, changed, or without a checksum.
        OSError: There is no such file, or it cannot be read.
    """
    open_regular(path).close()  # a pipe would keep safetensors waiting
    try:
        with safe_open(path, "numpy") as file:
            metadata = dict(file.metadata() or {})
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, ValueError, TypeError, KeyError, AttributeError) as error:  # the last four: other dtypes
        reason = printable(str(error) or type(error).__name__, LONGEST_REASON)
        raise FileError(f"{path}: no safetensors file that can be used ({reason}): take another copy of it") from error
    written = metadata.pop(CHECKSUM, None)
    if written is None:
        raise FileError(
            f"{path}: has no checksum (metadata {CHECKSUM!r}), so an older version or another program wrote it: "
            "train again, or take another copy of it"
        )
    if written != checksum(arrays, metadata):
        raise FileError(f"{path}: its checksum is wrong, the file is damaged or was changed: take another copy of it")
    return arrays, metadata


def checksum(arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> str:
    """SHA-256 over metadata and over name, dtype, shape and bytes of each array, whatever their order."""
    shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
    digest = hashlib.sha256(json.dumps([dict(metadata), shapes], sort_keys=True).encode())
    for name in sorted(arrays):
        digest.update(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
