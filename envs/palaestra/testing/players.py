"""Random players whose every choice is a function of the lane's seed and the number of its decision alone.

So a lane plays the same actions in a batch of any size, behind any face, before and after a copy, and on any machine.
Lanes differ in style (`STYLES`): uniform noise alone rarely holds an action at its bounds, where ranges are violated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.rng import GOLDEN, SHIFT_11, TO_UNIT, mix64
from palaestra.game import Choice

STYLES = ("uniform", "sticky", "corners", "constant")
"""What lane seed modulo 4 means: new values each decision, held for 8; bounds held for 16 and for 256 decisions."""
HELD = np.array([1, 8, 16, 256])
TO_BOUNDS = np.array([False, False, True, True])
AHEAD = 32
"""Decisions for which a `SpacePlayer` draws at a time."""
SALT = np.uint64(0x706C_6179_6572_7321)


def draws(seeds: np.ndarray, decisions: np.ndarray, count: int) -> np.ndarray:
    """Uniform numbers ``[N, count]`` in [0, 1) for lanes of these seeds at these decisions."""
    with np.errstate(over="ignore"):
        lane = mix64(seeds.astype(np.uint64) ^ SALT)[:, None]
        when = mix64(lane + GOLDEN * (decisions.astype(np.uint64)[:, None] + np.uint64(1)))
        bits = mix64(when + GOLDEN * (np.arange(count, dtype=np.uint64) + np.uint64(1)))
    return (bits >> SHIFT_11).astype(np.float64) * TO_UNIT


class Player:
    """Plays every slot of a simulation, legally, by writing into its `actions`."""

    def __init__(self, sim: Any) -> None:
        """Starts counting decisions."""
        self._decisions = np.zeros(sim.num_envs, np.int64)
        words = sim.action_table.words
        self._reals, self._lists = np.flatnonzero(words["n"] == 0), np.flatnonzero(words["candidates"] > 0)
        sizes = np.where(words["candidates"] == 0, words["n"], 0)
        self._sized = [(size, np.flatnonzero(sizes == size)) for size in np.unique(sizes[sizes > 0])]

    def play(self, sim: Any) -> None:
        """Writes the actions of the next decision; lanes that are about to be reset do not count it."""
        sim.buffers.action_words[...] = self.choose(sim)
        self._decisions += sim.states["pending"] == RUNNING

    def choose(self, sim: Any) -> np.ndarray:
        """Action words ``[N, columns]`` of the next decision: int64, or the bits of float64."""
        words, n = sim.action_table.words, sim.num_envs
        style = (sim.lane_seeds % np.uint64(len(STYLES))).astype(np.int64)
        values = draws(sim.lane_seeds, self._decisions // HELD[style], len(words))
        chosen = np.zeros((n, len(words)), np.int64)
        reals = chosen.view(np.float64)
        for number in self._reals:
            share = np.where(TO_BOUNDS[style], np.floor(3 * values[:, number]) / 2, values[:, number])
            low, high = words["low"][number], words["high"][number]
            reals[:, number] = np.clip(low + share * (high - low), low, high)
        masks = sim.buffers.mask_bytes
        for number in self._lists:
            ids, counts = sim.action_table.listed(masks, number)
            chosen[:, number] = ids[np.arange(n), (values[:, number] * counts).astype(np.int64)]
        for size, which in self._sized:
            if sim.legal is None:
                chosen[:, which] = values[:, which] * size
                continue
            places = words["mask_offset"][which][:, None] + np.arange(size)
            upto = np.cumsum(masks[:, places] != 0, axis=2)
            rank = np.floor(values[:, which] * upto[:, :, -1])
            chosen[:, which] = np.argmax(upto > rank[:, :, None], axis=2)
        row = sim.buffers.action_words.copy()
        row[:, words["column"]] = chosen
        return row


class SpacePlayer:
    """Plays one learner behind a face: samples of a space, within the mask."""

    def __init__(self, space: spaces.Space, seed: int, slot: int = 0) -> None:
        """Starts counting decisions."""
        self.space, self._seed, self._slot = space, seed, slot
        self._size = _size(space)
        self._decisions = 0
        self._ahead = np.zeros((0, self._size))

    def act(self, mask: Any = None) -> Any:
        """The next action, within a mask as `mask_of` gives it."""
        style = self._seed % len(STYLES)
        number = self._decisions % AHEAD
        if number == 0:
            seeds = np.full(AHEAD, ((self._seed << 8) + self._slot) % 2**64, np.uint64)
            self._ahead = draws(seeds, (self._decisions + np.arange(AHEAD)) // HELD[style], self._size)
        values = self._ahead[number]
        self._decisions += 1
        return _take(self.space, iter(values), mask, bool(TO_BOUNDS[style]))


class RememberingPlayer:
    """An `Opponent` whose moves depend on its memory: it counts its decisions there, of all matches and of this one.

    It records a violation if the count of the match is not 0 when a match starts.
    It plays simulations of games whose team has one role of choices or of reals; see `fits`.

    Attributes:
        decisions: How many it has taken, in all lanes together.
    """

    memory_size = 2
    kept_size = 1

    def __init__(self, sim: Any, team: str) -> None:
        """Learns the shape of the team's actions."""
        ((role, slots),) = sim.game.team_roles(team).items()
        actions = sim.actions if isinstance(sim.actions, np.ndarray) else sim.actions[role]
        self._shape, self._real = (len(slots), *actions.shape[2:]), actions.dtype.kind == "f"
        first = sim.game.teams[team][0]
        words = sim.action_table.of_slot(first)
        self._low, self._high, self._n = words["low"], words["high"], words["n"]
        self.decisions = 0

    @staticmethod
    def fits(sim: Any, team: str) -> bool:
        """Whether it can play the team."""
        roles = sim.game.team_roles(team)
        actions = sim.actions if isinstance(sim.actions, np.ndarray) else sim.actions[next(iter(roles))]
        return len(roles) == 1 and actions.dtype.names is None

    @classmethod
    def team_of(cls, sim: Any) -> str | None:
        """The first team that it can play; None if there is none."""
        return next((team for team in sim.game.teams if cls.fits(sim, team)), None)

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: np.ndarray, memory: np.ndarray) -> Any:
        """See `palaestra.core.run.opponents.Opponent`."""
        n, count = len(seeds), int(np.prod(self._shape))
        self.decisions += n
        if memory[first, 1].any():
            lane = np.flatnonzero(first & (memory[:, 1] != 0))[0]
            raise ValueError(f"player {lane} remembers {memory[lane, 1]:.0f} decisions of the match before")
        decisions = (7919 * memory[:, 0] + memory[:, 1]).astype(np.int64)
        values = draws(seeds, decisions, count).reshape(n, self._shape[0], -1)
        memory += 1.0
        chosen = self._low + values * (self._high - self._low) if self._real else (values * self._n).astype(np.int64)
        return chosen.reshape(n, *self._shape)


def mask_of(agent_io: Any, lane: int = 0) -> Any:
    """What the slots of a face's agent interface may choose in a lane now; None where nothing can be forbidden.

    None for joint choices too: numbers of illegal ones are played as no-ops.

    Returns:
        A mask bool ``[sum of n]`` of the choices in the order of the action space, or a dict of masks by name where
        the space is a Dict. Lists of candidates are made dense.
    """
    if (
        agent_io.sim.legal is None
        or agent_io.joint is not None
        or not any(isinstance(f, Choice) for block in agent_io.blocks for f in block.role.action)
    ):
        return None
    whole, start = agent_io.action_masks()[lane], 0
    parts: dict[str, Any] = {}
    for block in agent_io.blocks:
        choices = [f for f in block.role.action if isinstance(f, Choice)]
        masks: list[tuple[str, np.ndarray]] = []
        for f in choices * block.count:
            masks.append((f.name, whole[start : start + f.size * f.n]))
            start += f.size * f.n
        by_name = {f.name: np.concatenate([mask for name, mask in masks if name == f.name]) for f in choices}
        parts[block.role.name] = by_name if block.mixed else np.concatenate([mask for _, mask in masks] or [whole[:0]])
    if len(parts) > 1 and not isinstance(agent_io.action_space, spaces.Dict):  # the choices of all roles side by side
        return np.concatenate(list(parts.values()))
    return parts if len(parts) > 1 else next(iter(parts.values()))


def lane_of(batch: Any, lane: int) -> Any:
    """One lane of observations or masks of a vector environment."""
    if isinstance(batch, Mapping):
        return {name: lane_of(part, lane) for name, part in batch.items()}
    if isinstance(batch, tuple) and batch[0] is not None:
        return tuple(lane_of(part, lane) for part in batch)
    return None if batch is None else batch[lane]


def _size(space: spaces.Space) -> int:
    if isinstance(space, spaces.Dict):
        return sum(_size(s) for s in space.values())
    return 1 if isinstance(space, spaces.Discrete) else int(np.prod(space.shape or (1,)))


def _take(space: spaces.Space, values: Iterator[float], mask: Any, to_bounds: bool) -> Any:
    """Uses up the values; masks are those of `mask_of`."""
    if isinstance(space, spaces.Dict):
        return {name: _take(s, values, (mask or {}).get(name), to_bounds) for name, s in space.spaces.items()}
    if isinstance(space, spaces.Discrete):
        return _choice(int(space.n), next(values), mask)
    if isinstance(space, spaces.MultiDiscrete):
        sizes = space.nvec.ravel()
        masks = [None] * len(sizes) if mask is None else np.split(mask, np.cumsum(sizes)[:-1])
        chosen = [_choice(int(n), next(values), part) for n, part in zip(sizes, masks, strict=True)]
        return np.array(chosen).reshape(space.shape)
    if isinstance(space, spaces.Box):
        shares = np.array([next(values) for _ in range(space.low.size)])
        shares = (np.floor(3 * shares) / 2 if to_bounds else shares).reshape(space.shape)
        return (space.low + shares * (space.high - space.low)).astype(space.dtype)
    raise TypeError(f"the kit cannot play the action space {space}")


def _choice(n: int, value: float, mask: np.ndarray | None) -> int:
    if mask is None:
        return int(value * n)
    allowed = np.flatnonzero(mask)
    return int(allowed[int(value * len(allowed))]) if len(allowed) else 0
