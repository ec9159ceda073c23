"""Views of a simulation's memory by role, the table of action words, and the taking of actions from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from palaestra.core.fields import Choice, Continuous, is_homogeneous, member_offset
from palaestra.core.game import Game, Role

WORD = np.dtype(
    [
        ("agent", "i8"),
        ("n", "i8"),
        ("noop", "i8"),
        ("mask_offset", "i8"),
        ("low", "f8"),
        ("high", "f8"),
        ("noop_value", "f8"),
    ],
    align=True,
)


class ActionError(ValueError):
    """An action outside its space."""


def word_table(game: Game) -> tuple[np.ndarray, list[str]]:
    """One row per 8-byte word of a lane's actions, in memory order, and the names for error messages."""
    words: list[tuple] = []
    names: list[str] = []
    slot = mask_offset = 0
    for role in game.roles:
        for _ in role.agents:
            for f in role.action:
                if isinstance(f, Choice):
                    words.append((slot, f.n, f.noop, mask_offset, 0.0, 0.0, 0.0))
                    names.append(f.name)
                    mask_offset += f.n
                elif isinstance(f, Continuous):
                    # The spaces are float32: a bound that it rounds outwards is inside all the same.
                    low, high = min(f.low, float(np.float32(f.low))), max(f.high, float(np.float32(f.high)))
                    words += [(slot, 0, 0, 0, low, high, f.noop)] * f.size
                    names += [f.name if not f.shape else f"{f.name}[{k}]" for k in range(f.size)]
            slot += 1
    return np.array(words, WORD), names


def idle_words(words: np.ndarray) -> np.ndarray:
    """The words of a lane in which everybody does nothing, int64."""
    return np.where(words["n"] > 0, words["noop"], words["noop_value"].view(np.int64))


def observation_rows(memory: Any, game: Game, role: Role) -> np.ndarray:
    """Rows of one role: flat ``[N, A_role, size]`` where its fields share a dtype, else structured ``[N, A_role]``."""
    block = memory[role.name]
    if not is_homogeneous(role.observation):
        return block
    kind = np.dtype(role.observation[0].dtype)
    size = sum(f.size for f in role.observation)
    return np.ndarray(
        (len(memory), len(role.agents), size),
        kind,
        buffer=memory,
        offset=member_offset(game.observation_dtype, role.name),
        strides=(game.observation_dtype.itemsize, block.dtype.itemsize, kind.itemsize),
    )


def action_rows(words: np.ndarray, game: Game, role: Role) -> np.ndarray:
    """Actions of one role: int64 ``[N, A_role(, K)]``, float64 ``[N, A_role, K]``, or structured for composites."""
    rows: Any = words.view(game.action_dtype)[:, 0][role.name]
    choices = [isinstance(f, Choice) for f in role.action]
    if any(choices) and not all(choices):
        return rows
    offset = member_offset(game.action_dtype, role.name) // 8
    width = sum(f.size for f in role.action)
    count = len(role.agents)
    block = words[:, offset : offset + count * width].reshape(len(words), count, width)
    if all(choices):
        return block[:, :, 0] if width == 1 else block
    return block.view("f8")


def mask_rows(memory: np.ndarray, game: Game, role: Role) -> np.ndarray:
    """Masks of one role, int8 ``[N, A_role, M]``, its choices side by side."""
    if role.name not in (game.mask_dtype.names or ()):
        return np.zeros((len(memory), len(role.agents), 0), np.int8)
    block: Any = memory[role.name]
    width = block.dtype.itemsize
    return np.ndarray(
        (len(memory), len(role.agents), width),
        np.int8,
        buffer=memory,
        offset=member_offset(game.mask_dtype, role.name),
        strides=(game.mask_dtype.itemsize, width, 1),
    )


def take_role(role: Role, target: np.ndarray, given: Any) -> None:
    """Writes a role's actions into ``target``.

    Raises:
        ActionError: Wrong shape, kind or fields.
    """
    if target.dtype.names is not None:
        is_record = isinstance(given, np.ndarray) and given.dtype.names is not None
        names: Any = given.dtype.names if is_record else given
        if not (is_record or isinstance(given, Mapping)) or set(names) != set(target.dtype.names):
            raise ActionError(f"actions of {role.name} must give the fields {', '.join(target.dtype.names)}")
        for f in role.action:
            _take_array(role, f.name, target[f.name], given[f.name], isinstance(f, Choice))
    else:
        _take_array(role, "action", target, given, isinstance(role.action[0], Choice))


def _take_array(role: Role, name: str, target: np.ndarray, given: Any, discrete: bool) -> None:
    array = np.asarray(given)
    if array.shape != target.shape:
        raise ActionError(f"{name} of {role.name} must have shape {target.shape}, got {array.shape}")
    if array.dtype.kind not in ("iu" if discrete else "iuf"):
        kind = "integers" if discrete else "real numbers"
        raise ActionError(f"{name} of {role.name} must be {kind}, got {array.dtype}")
    target[...] = array


def refusal(game: Game, words: np.ndarray, names: list[str], memory: np.ndarray, offender: int) -> ActionError:
    """The error for the action word that the batch loop found outside its space."""
    lane, number = divmod(offender, len(words))
    word, name = words[number], names[number]
    agent = game.agents[int(word["agent"])]
    if word["n"] > 0:
        value = memory[lane, number]
        return ActionError(f"lane {lane}, {agent}: {name} = {value} is not an integer in [0, {word['n']})")
    value = memory.view("f8")[lane, number]
    return ActionError(f"lane {lane}, {agent}: {name} = {value:g} is not in [{word['low']:g}, {word['high']:g}]")
