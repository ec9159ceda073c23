"""Saved policies: a safetensors file whose metadata names the method, the game and the arguments, with a checksum.

`palaestra.core.run.opponents.policy_metadata` reads the metadata without safetensors; the module of the method turns
the arrays into a player with its own ``load_policy(path, game, team)``.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from palaestra import registry
from palaestra.core.files import FileError, printable
from palaestra.core.run.opponents import policy_metadata
from palaestra.game import Game
from palaestra_baselines.common.checked_arrays import CHECKSUM, read_arrays, write_arrays

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


def reseal(path: Path) -> None:
    """Adds the checksum and the name of the game to a policy that was saved without; the weights stay bitwise.

    Raises:
        FileError: The file is not a saved policy.
    """
    policy_metadata(path)
    with safe_open(path, "numpy") as file:
        metadata = dict(file.metadata())
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    metadata.pop(CHECKSUM, None)
    write_arrays(path, arrays, {**metadata, **game_name(metadata["env_id"])})


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
