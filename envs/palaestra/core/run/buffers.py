"""The arrays of N lanes: public, named, allocated once. Faces, recorders, solvers and checks read and write these."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from palaestra.core.contract.fields import Choice, ObservationField, is_homogeneous, member_offset, values_of
from palaestra.core.contract.game_parts import Role
from palaestra.core.contract.rules import Game

Allocate = Callable[[str, tuple[int, ...], np.dtype], np.ndarray]


class Buffers:
    """The memory of a simulation, one row a lane.

    Attributes:
        states: Match records ``[N]``.
        action_words: int64 ``[N, columns]``: what all slots do, 8 bytes a number, at capacity.
        action_reals: The same memory as float64.
        action_records: The same memory as records ``[N]`` by role.
        observations: Observation records ``[N]`` by role (and ``team``, ``lane``), in the sizes that users see.
        masks: Mask records ``[N]`` likewise; one unused byte where the game forbids nothing.
        mask_bytes: The same memory as int8 ``[N, M]``.
        mask_rows: int64 ``[N]``, the row of ``masks`` that holds for a lane: its own, that of a lane with an equal
            record, or -1 where none does.
        rewards: Float ``[N, slots]``.
        terminated: bool ``[N]``.
        truncated: bool ``[N]``.
        winners: int64 ``[N]``, the winner of the match that ended in this step, -1 where none did.
        end_reasons: int64 ``[N]``, likewise its end reason, or 0.
        agent_terminated: bool ``[N, slots]``.
        final_observations: Like observations, for finished matches under ``same_step`` (else one row).
        final_masks: Like masks, likewise.
        final_info: Info records, likewise.
        state: Global state float32 ``[N, S]``.
        scratch: Work records of the hooks, one a thread.
        work_observations: Observation records that kernels of sized games write before they are packed, one a thread.
        work_masks: Mask records, likewise.
    """

    def __init__(self, game: Game, lanes: int, finals: int, threads: int, allocate: Allocate | None = None) -> None:
        """Allocates.

        Args:
            game: The rules.
            lanes: N.
            finals: Rows for finished matches.
            threads: Number of work records.
            allocate: ``allocate(name, shape, dtype)`` gives zeroed memory, shared memory say.
        """
        zeros: Allocate = allocate or (lambda _name, shape, dtype: np.zeros(shape, dtype))
        n, slots = lanes, game.slots
        flag = np.dtype("?")
        self.game = game
        self.states: Any = zeros("states", (n,), game.state_dtype)
        self.action_words = zeros("actions", (n, game.action_dtype.itemsize // 8), np.dtype("i8"))
        self.observations: Any = zeros("observations", (n,), game.observation_dtype)
        self.masks: Any = zeros("legal", (n,), game.mask_dtype)
        self.mask_rows = np.arange(n)
        self.rewards = zeros("rewards", (n, slots), np.dtype(game.reward_dtype))
        self.terminated = zeros("terminated", (n,), flag)
        self.truncated = zeros("truncated", (n,), flag)
        self.winners = zeros("winners", (n,), np.dtype("i8"))
        self.end_reasons = zeros("end_reasons", (n,), np.dtype("i8"))
        self.agent_terminated = zeros("agent_terminated", (n, slots), flag)
        self.final_observations: Any = zeros("final_observations", (finals,), game.observation_dtype)
        self.final_masks: Any = zeros("final_legal", (finals,), game.mask_dtype)
        self.final_info: Any = zeros("final_info", (finals,), game.info_dtype)
        self.state = zeros("state", (n, state_size(game)), np.dtype("f4"))
        self.scratch = np.zeros(threads, game.scratch_dtype)
        self.work_observations = np.zeros(threads, game.kernel_observation_dtype)
        self.work_masks = np.zeros(threads, game.kernel_mask_dtype)

    @property
    def action_reals(self) -> np.ndarray:
        """See the class."""
        return self.action_words.view("f8")

    @property
    def action_records(self) -> Any:
        """See the class."""
        return self.action_words.view(self.game.action_dtype)[:, 0]

    @property
    def mask_bytes(self) -> np.ndarray:
        """See the class."""
        return rows_of_bytes(self.masks, "i1")

    def clear_results(self, which: np.ndarray | slice = slice(None)) -> None:
        """Clears the results of the last step in some lanes (bool ``[N]``), or in all."""
        for array in (self.rewards, self.terminated, self.truncated, self.end_reasons, self.agent_terminated):
            array[which] = 0
        self.winners[which] = -1

    def live(self) -> dict[str, np.ndarray]:
        """The arrays that a copy of a simulation takes over, by name."""
        return {name: getattr(self, name) for name in _LIVE}


_LIVE = (
    "states",
    "action_words",
    "observations",
    "masks",
    "mask_rows",
    "rewards",
    "terminated",
    "truncated",
    "winners",
    "end_reasons",
    "agent_terminated",
    "final_observations",
    "final_masks",
    "final_info",
)


def rows_of_bytes(records: np.ndarray, kind: str = "u1") -> np.ndarray:
    """Contiguous rows as bytes ``[N, B]``, the same memory."""
    return records.view(kind).reshape(len(records), -1)


def first_of_equal(records: np.ndarray, which: np.ndarray) -> np.ndarray:
    """The first lane of each run of lanes with equal bytes, among lanes ``which`` (bool ``[N]``): int64, one for each.

    Records are whole numbers of 8 bytes, and their padding is what the simulation was allocated with: a copy of records
    has other bytes there.
    """
    lanes, words = np.flatnonzero(which), rows_of_bytes(records, "i8")
    if len(lanes) < len(words):
        words = words[lanes]
    is_first = np.ones(len(lanes), np.bool_)
    is_first[1:] = (words[1:] != words[:-1]).any(axis=1)
    return lanes[np.maximum.accumulate(np.where(is_first, np.arange(len(lanes)), 0))]


def state_size(game: Game) -> int:
    """Numbers of the global state: the game's own, or all observations side by side."""
    if game.global_state is not None:
        return game.global_state_size
    size = lambda fields: sum(f.size for f in fields if f.world is None)  # noqa: E731
    own = sum(len(r.agents) * size(r.observation) for r in game.roles)
    return own + len(game.teams) * size(game.team_observation) + size(game.lane_observation)


def observation_rows(memory: Any, role: Role) -> np.ndarray:
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
        offset=member_offset(memory.dtype, role.name),
        strides=(memory.dtype.itemsize, block.dtype.itemsize, kind.itemsize),
    )


def info_views(records: Any, game: Game) -> dict[str, np.ndarray]:
    """Info fields by name ``[N, ...]``, in the sizes that users see."""
    views = {name: records[name] for name in records.dtype.names}
    views["illegal"] = views["illegal"][:, : len(game.agents)]
    for f in game.info:
        views[f.name] = views[f.name][(slice(None), *map(slice, f.shape))]
    return views


def mask_rows(memory: Any, role: Role) -> np.ndarray:
    """Masks of one role: int8 ``[N, A_role, M]``, its choices side by side.

    Where a choice has a list of candidates it is records ``[N, A_role]`` by choice: dense masks int8 ``[n]``, lists
    ``count`` and ``ids`` (int32, -1 beyond the list).
    """
    if role.name not in (memory.dtype.names or ()):
        return np.zeros((len(memory), len(role.agents), 0), np.int8)
    block: Any = memory[role.name]
    if any(isinstance(c, Choice) and c.candidates is not None for c in role.action):
        return block
    width = block.dtype.itemsize
    return np.ndarray(
        (len(memory), len(role.agents), width),
        np.int8,
        buffer=memory,
        offset=member_offset(memory.dtype, role.name),
        strides=(memory.dtype.itemsize, width, 1),
    )


def write_observations_flat(buffers: Buffers) -> None:
    """Writes all observations side by side into the global state: roles, teams, lane; no arrays of the world."""
    game, memory, start = buffers.game, buffers.observations, 0
    parts: list[tuple[str, Sequence[ObservationField]]] = [(r.name, r.observation) for r in game.roles]
    parts += [("team", game.team_observation), ("lane", game.lane_observation)]
    for name, fields in parts:
        for f in (f for f in fields if f.world is None):
            values = values_of(memory[name], f).reshape(len(memory), -1)
            buffers.state[:, start : start + values.shape[1]] = values
            start += values.shape[1]


def check_count(name: str, value: Any) -> int:
    """A number of things, at least 1.

    Raises:
        TypeError: It is no integer.
        ValueError: It is less than 1.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, at least 1, got {value!r}")
    if (number := operator.index(value)) < 1:
        raise ValueError(f"{name} must be at least 1, got {value!r}")
    return number


def allocated(game: Game, lanes: int, finals: int, threads: int, allocate: Allocate | None) -> Buffers:
    """The arrays of N lanes: see `Buffers`.

    Raises:
        MemoryError: They do not fit; says how many lanes of how many bytes.
    """
    try:
        return Buffers(game, lanes, finals, threads, allocate)
    except (MemoryError, ValueError, OverflowError) as error:
        if not isinstance(error, MemoryError) and lanes < 2**31:
            raise
        of_a_lane = Buffers(game, 1, 1, 1)
        size = sum(array.nbytes for array in of_a_lane.live().values())
    raise MemoryError(
        f"{game.name}: {lanes} lanes of {size} bytes ({lanes * size / 2**30:.1f} GiB) do not fit into memory: "
        "use a smaller num_envs"
    )
