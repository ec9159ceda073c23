"""Record layouts of a game: what a kernel works on (capacity) and what lies in the arrays (visible sizes)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from palaestra.core.fields import (
    Choice,
    Continuous,
    Field,
    ObservationField,
    Table,
    action_dtype,
    mask_dtype,
    member_offset,
    parameter_dtype,
    record_dtype,
)

if TYPE_CHECKING:
    from palaestra.core.game import Game

WORD = np.dtype(
    [
        ("agent", "i8"),  # visible slot
        ("column", "i8"),  # place in a lane's row of action words
        ("n", "i8"),  # alternatives, 0 for a real number
        ("noop", "i8"),
        ("mask_offset", "i8"),  # byte in a lane's visible masks
        ("candidates", "i8"),  # room in the list of candidates, 0 for a dense mask
        ("clips", "i8"),  # 1 for a real number that is clipped to its bounds, 0 where what lies outside is refused
        ("low", "f8"),
        ("high", "f8"),
        ("noop_value", "f8"),
    ],
    align=True,
)
"""One row an action word that users see: what it may hold and where its mask is."""

SPAN = np.dtype([("source", "i8"), ("target", "i8"), ("length", "i8"), ("at_reset", "i8")], align=True)
"""Bytes of the kernel's observation or mask record and where they go in the visible one."""


def is_sized(game: Game) -> bool:
    """Whether any table of the game has a capacity of its own: then kernels write work records that are packed."""
    fields = [*game.lane_observation, *game.team_observation, *(f for r in game.roles for f in r.observation)]
    capacities = [f.capacity for f in (*fields, *game.info) if f.world is None]
    capacities += [r.capacity for r in game.roles]
    capacities += [c.capacity for r in game.roles for c in r.action if isinstance(c, Choice)]
    return any(capacity is not None for capacity in capacities)


def state_dtype(game: Game, slots: int, info: np.dtype) -> np.dtype:
    """The match record: the suite's fields, then the author's."""
    parameters = parameter_dtype(game.parameters)
    suite = [
        ("rng", "u8"),
        ("script_rng", "u8"),
        ("assigned_player", "i8", (slots,)),
        ("strength", "f8", (slots,)),
        ("team", "i8", (slots,)),
        ("parameters", parameters),
        *([("next_parameters", parameters)] if any(p.at_start for p in game.parameters) else []),
        ("seeded", "u1"),
        ("steps", "i8"),  # from here on a record is cleared when a match starts; what stands before outlives it
        ("current_player", "i8", (slots,)),
        ("info", info),
        ("alive", "u1", (slots,)),
        ("acting", "u1", (slots,)),
        ("pending", "u1"),
    ]
    taken = {name for name, *_ in suite} & {name for name, *_ in game.state}
    if taken:
        raise ValueError(f"{game.name}: state fields {sorted(taken)} belong to the suite")
    return np.dtype([*suite, *game.state], align=True)


def info_dtype(game: Game, slots: int) -> np.dtype:
    """``s.info``: the suite's fields, then the author's."""
    info = [("winner", "i8"), ("end_reason", "i8"), ("illegal", "i8", (slots,))]
    return np.dtype(info + [f.member(visible=False) for f in game.info], align=True)


def actions_dtype(game: Game) -> np.dtype:
    """Action records of all roles, at capacity."""
    return np.dtype([(r.name, action_dtype(r.action), (r.slots,)) for r in game.roles])


def observations_dtype(game: Game, visible: bool) -> np.dtype:
    """Observation records of all roles, of the teams and of the lane."""
    members: list[tuple] = [
        (r.name, record_dtype(r.observation, visible), (len(r.agents) if visible else r.slots,)) for r in game.roles
    ]
    if game.team_observation:
        members.append(("team", record_dtype(game.team_observation, visible), (len(game.teams),)))
    if any(f.world is None for f in game.lane_observation):
        members.append(("lane", record_dtype(game.lane_observation, visible)))
    return np.dtype(members)


def masks_dtype(game: Game, visible: bool) -> np.dtype:
    """Mask records of all roles with choices; one unused byte where the game forbids nothing."""
    members = [
        (r.name, mask_dtype(r.action, visible), (len(r.agents) if visible else r.slots,))
        for r in game.roles
        if game.legal is not None and any(isinstance(c, Choice) for c in r.action)
    ]
    return np.dtype(members if members else [("none", "i1")])


def observation_spans(game: Game) -> np.ndarray:
    """Where the bytes of the kernel's observation record go in the visible one; fields written at reset are marked."""
    kernel, visible = game.kernel_observation_dtype, game.observation_dtype
    parts = [(r.name, len(r.agents), r.observation) for r in game.roles]
    parts += [("team", len(game.teams), game.team_observation)] if game.team_observation else []
    parts += [("lane", 1, game.lane_observation)] if "lane" in (kernel.names or ()) else []
    spans = []
    for name, count, fields in parts:
        for k in range(count):
            source, target = _element(kernel, name, k), _element(visible, name, k)
            for f in fields:
                if f.world is None:
                    spans += _spans_of(f, source, target)
    return _merged(spans)


def mask_spans(game: Game) -> np.ndarray:
    """Likewise for masks."""
    spans = []
    for role in game.roles:
        if role.name not in (game.mask_dtype.names or ()):
            continue
        for k in range(len(role.agents)):
            source, target = (_element(d, role.name, k) for d in (game.kernel_mask_dtype, game.mask_dtype))
            for c in role.action:
                if isinstance(c, Choice):
                    spans += _member_spans(c.name, source, target, 0)
    return _merged(spans)


def word_table(game: Game, clips: bool = True) -> tuple[np.ndarray, list[str], np.ndarray]:
    """The table of visible action words, their names for errors, and the first word of each visible slot and of none.

    Args:
        game: The rules.
        clips: Whether real numbers are clipped to their bounds.

    Returns:
        Records of `WORD` ``[W]``, W names, int64 ``[A + 1]``.
    """
    words: list[tuple] = []
    names: list[str] = []
    first = [0]
    slot = mask_offset = 0
    for role in game.roles:
        column = member_offset(game.action_dtype, role.name) // 8
        for _ in role.agents:
            for f in role.action:
                names += [f.name if not f.shape else f"{f.name}{list(at)}" for at in np.ndindex(f.shape)]
                if isinstance(f, Choice):
                    for _ in range(f.size):
                        words.append((slot, column, f.n, f.noop, mask_offset, f.candidates or 0, 0, 0.0, 0.0, 0.0))
                        column, mask_offset = column + 1, mask_offset + f.mask_bytes
                else:
                    for low, high, noop in zip(*_word_bounds(f), strict=True):
                        words.append((slot, column, 0, 0, 0, 0, clips, low, high, noop))
                        column += 1
            slot += 1
            first.append(len(words))
    return np.array(words, WORD), names, np.array(first)


def team_of_slots(game: Game) -> np.ndarray:
    """``s.team`` of every match: the team's number, -1 for slots beyond the visible agents."""
    teams = np.full(game.slots, -1, np.int64)
    teams[: len(game.agents)] = game.team_index
    return teams


def idle_words(game: Game) -> np.ndarray:
    """The words of a lane of no-ops, int64 ``[columns]``."""
    row = np.zeros(1, game.action_dtype)
    for role in game.roles:
        for f in role.action:
            row[role.name][f.name] = f.noop
    return row.view(np.int64)


def _word_bounds(f: Continuous) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bounds and no-op of each number. Spaces are float32: a bound that it rounds outwards is inside all the same."""
    low, high, noop = (np.broadcast_to(np.asarray(b, np.float64), f.shape).reshape(-1) for b in (f.low, f.high, f.noop))
    return np.minimum(low, low.astype(np.float32)), np.maximum(high, high.astype(np.float32)), noop


def _element(dtype: np.dtype, name: str, k: int) -> tuple[np.dtype, int]:
    """Record and byte offset of the k-th element of a member."""
    base = dtype[name].base
    return base, member_offset(dtype, name) + k * base.itemsize


def _spans_of(
    f: ObservationField, source: tuple[np.dtype, int], target: tuple[np.dtype, int]
) -> Iterator[tuple[int, int, int, int]]:
    assert isinstance(f, Field | Table)
    return _member_spans(f.name, source, target, int(f.at == "reset"))


def _member_spans(
    name: str, source: tuple[np.dtype, int], target: tuple[np.dtype, int], at_reset: int
) -> Iterator[tuple[int, int, int, int]]:
    """Spans of one member: the visible corner of an array in memory, run by run."""
    (from_record, from_at), (to_record, to_at) = source, target
    memory, visible = from_record[name], to_record[name]
    item = memory.base.itemsize
    from_at += member_offset(from_record, name)
    to_at += member_offset(to_record, name)
    if memory.shape[1:] == visible.shape[1:]:
        yield from_at, to_at, visible.itemsize, at_reset
        return
    pitch = [int(np.prod(memory.shape[k + 1 :])) * item for k in range(len(memory.shape))]
    run = visible.shape[-1] * item
    for number, at in enumerate(np.ndindex(visible.shape[:-1])):
        yield from_at + sum(p * k for p, k in zip(pitch, at, strict=False)), to_at + number * run, run, at_reset


def _merged(spans: list[tuple[int, int, int, int]]) -> np.ndarray:
    """Spans side by side as one; at least one row, as an empty array has no address."""
    merged: list[tuple[int, int, int, int]] = []
    for source, target, size, at_reset in spans:
        if merged:
            before = merged[-1]
            if (before[0] + before[2], before[1] + before[2], before[3]) == (source, target, at_reset):
                merged[-1] = (before[0], before[1], before[2] + size, at_reset)
                continue
        merged.append((source, target, size, at_reset))
    return np.array(merged or [(0, 0, 0, 0)], SPAN)
