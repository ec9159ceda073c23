"""What a simulation shows at one moment, and where two such moments differ, named by lane, agent and field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from palaestra.game import Game

PER_AGENT = ("rewards", "alive", "acting", "agent_terminated")
ENDS = ("terminated", "truncated")

SnapshotView = dict[str, np.ndarray]


def snapshot_view(sim: Any, lane: int | None = None) -> SnapshotView:
    """Copies of everything that a simulation shows, and of the streams of its rules; of one lane alone if named."""
    rows = slice(None) if lane is None else slice(lane, lane + 1)
    shown = {name: np.array(getattr(sim, name)[rows]) for name in (*PER_AGENT, *ENDS)}
    shown["observations"] = _copied(sim.buffers.observations[rows])
    shown["masks"] = _copied(sim.buffers.masks[rows])
    shown["info"] = _copied(sim.states["info"][rows])
    shown["stream of the rules"] = sim.states["rng"][rows].copy()
    if sim.game.global_state is not None:
        shown["global state"] = sim.state()[rows].copy()  # the array is the simulation's own
    if sim.autoreset_mode == "same_step":
        over = (sim.terminated | sim.truncated)[rows]
        memories = sim.buffers.final_observations, sim.buffers.final_masks, sim.buffers.final_info
        for name, memory in zip(("final observations", "final masks", "final info"), memories, strict=True):
            finals = _copied(memory[rows])
            finals[~over] = np.zeros((), finals.dtype)
            shown[name] = finals
    return shown


def _copied(array: np.ndarray) -> np.ndarray:
    """A copy with the padding of its records, so that equal arrays are equal byte by byte."""
    return (
        array.copy() if array.dtype.names is None else array.view(f"V{array.dtype.itemsize}").copy().view(array.dtype)
    )


def rows_of(shown: SnapshotView, lanes: Any) -> SnapshotView:
    """The frame of some lanes."""
    return {name: array[lanes] for name, array in shown.items()}


def difference(
    game: Game, one: SnapshotView, other: SnapshotView, lane: int | None = None, leave_out: tuple[str, ...] = ()
) -> str:
    """Where the first difference is, ``"lane 2, red_0: observations altitude_m = 3.0 and 4.0"``, or ``""``.

    Args:
        game: The rules, for names.
        one: A frame.
        other: Another of the same shape.
        lane: Number that the first row goes by in the message.
        leave_out: Fields that may differ.
    """
    for name, array in one.items():
        if name not in leave_out and (found := first_difference(array, other[name])):
            path, index, ours, theirs = found
            return f"{_place(game, name, path, index, lane)} = {ours} and {theirs}"
    return ""


def first_difference(a: np.ndarray, b: np.ndarray, path: tuple[str, ...] = ()) -> tuple | None:
    """Fields, index and the two values of the first entry that is not bitwise equal. Padding does not count."""
    if a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes():  # nearly always, and fast
        return None
    if a.dtype.names is not None:
        for name in a.dtype.names:
            if found := first_difference(a[name], b[name], (*path, name)):
                return found
        return None
    if a.shape != b.shape or a.dtype != b.dtype:
        return path, (), f"{a.dtype} {a.shape}", f"{b.dtype} {b.shape}"
    differs = _bits(a) != _bits(b)
    if not differs.any():
        return None
    index = tuple(int(i) for i in np.argwhere(differs)[0])
    return path, index, a[index], b[index]


def record_change(sim: Any, before: np.ndarray, lane: int) -> str:
    """What differs between a lane's match record and a copy made before, or ``""``. Padding does not count."""
    found = first_difference(before[lane : lane + 1], sim.states[lane : lane + 1])
    if found is None:
        return ""
    path, index, was, now = found
    return f"{'.'.join(path)}{list(index[1:]) if len(index) > 1 else ''} was {was} and is {now}"


def unlike(a: Any, b: Any, path: str = "") -> str:
    """Where two results of a face differ (dicts, tuples, arrays, numbers), bitwise; ``""`` if they are the same."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if set(a) != set(b):
            return f"{path or 'result'} has the keys {sorted(map(str, a))} and {sorted(map(str, b))}"
        return next((found for k in a if (found := unlike(a[k], b[k], f"{path}[{k!r}]" if path else str(k)))), "")
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        if len(a) != len(b):
            return f"{path} has {len(a)} and {len(b)} entries"
        return next((found for i in range(len(a)) if (found := unlike(a[i], b[i], f"{path}[{i}]"))), "")
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.dtype == object or b.dtype == object:
            return unlike(list(a), list(b), path)
        if found := first_difference(a, b):
            fields, index, ours, theirs = found
            where = "".join(f".{f}" for f in fields) + (str(list(index)) if index else "")
            return f"{path}{where} = {ours} and {theirs}"
        return ""
    if type(a) is not type(b):
        return f"{path} = {a!r} ({type(a).__name__}) and {b!r} ({type(b).__name__})"
    same = bool(a == b) or (isinstance(a, float) and a != a and b != b)
    return "" if same else f"{path} = {a!r} and {b!r}"


def agent_name(game: Game, name: str, index: int) -> str:
    """Name of the agent behind an index of a role's rows or of an array ``[N, A]``."""
    for role in game.roles:
        if role.name == name:
            return role.agents[index]
    return game.agents[index]


def _bits(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "f":
        return array
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def _place(game: Game, name: str, path: tuple[str, ...], index: tuple[int, ...], lane: int | None) -> str:
    rows = list(index)
    number = (rows.pop(0) if rows else 0) + (lane or 0)
    place, fields = f"lane {number}", list(path)
    roles = {role.name for role in game.roles}
    if fields and fields[0] in roles and rows:
        place += f", {agent_name(game, fields.pop(0), rows.pop(0))}"
    elif (name in PER_AGENT or fields == ["illegal"]) and rows:
        place += f", {game.agents[rows.pop(0)]}"
    elif fields[:1] == ["team"] and rows:
        place += f", team {list(game.teams)[rows.pop(0)]}"
        fields.pop(0)
    return f"{place}: {' '.join([name, *fields])}{rows if rows else ''}"
