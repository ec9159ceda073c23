"""From action tables to keys, and from keys to actions. It needs no window.

A `Choice` whose alternatives are directions takes the arrow keys (or w, a, s, d if they are taken), every other one a
row of keys: digits, then q, w, e, ... Where the legal alternatives are a list, these keys select its entries.
Each number of a `Continuous` takes a pair of keys, those of the crosses before digits, and moves towards its bound
while one is held, back to its no-op when none is. Several agents share the keyboard in their order. An axis of a
joystick sets such a number at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from palaestra.core.contract.fields import bounds
from palaestra.game import ActionField, Choice, Continuous, Game

RESERVED = {"space": "pause", "n": "next match", "return": "next match", "r": "again", "escape": "quit"}
"""Keys of the program, by their names in pygame."""
SELECT_KEY = "tab"
"""Chooses the agent that clicks move, where there are several."""
REST_KEY = "."
"""Does nothing for every agent that has no other key: how a decision is passed where the match waits."""
FULL_SWING_S = 0.4
"""Time in which a held key takes a number from its no-op to the bound."""
MOST_AXES = 32
"""Axes of a joystick."""
DEAD_ZONE = 0.05
"""Share of an axis about its middle that is its middle."""

CROSSES = (("left", "right", "down", "up"), ("a", "d", "s", "w"), ("j", "l", "k", "i"))
PAIRS = (*(pair for cross in CROSSES for pair in (cross[:2], cross[2:])), *("12", "34", "56", "78", "90"))
ROWS = ("1234567890", "qwetyuiop", "asdfghjkl", "zxcvbm")
LEFT, RIGHT, DOWN, UP = range(4)
DIRECTIONS = {
    **dict.fromkeys(("left", "west"), LEFT),
    **dict.fromkeys(("right", "east"), RIGHT),
    **dict.fromkeys(("down", "south"), DOWN),
    **dict.fromkeys(("up", "north"), UP),
}
RESTS = ("stay", "wait", "rest", "hold", "none", "nothing", "idle")


@dataclass(frozen=True)
class Key:
    """A key that does something for one agent.

    Attributes:
        name: As pygame calls it.
        agent: Agent that it moves.
        field: Which part of the action.
        value: Alternative of a `Choice`, or place in the list of the legal ones; -1 or 1 for the low and the high bound
            of a number.
        meaning: What it does, for the legend.
        index: Place within a field of several numbers or choices, else 0.
        listed: Whether ``value`` is a place in a list.
    """

    name: str
    agent: str
    field: str
    value: int
    meaning: str
    index: int = 0
    listed: bool = False


@dataclass(frozen=True)
class Keyboard:
    """All keys of some agents.

    Attributes:
        keys: In the order of agents and fields.
        unbound: Parts of actions that no key is left for, as text.
    """

    keys: tuple[Key, ...]
    unbound: tuple[str, ...]

    def named(self, name: str) -> Key | None:
        """What a key does."""
        return next((key for key in self.keys if key.name == name), None)


@dataclass
class _Free:
    """Keys that are not taken yet."""

    taken: set[str] = field(default_factory=lambda: {*RESERVED, REST_KEY, SELECT_KEY})

    def take(self, sets: Iterable[Sequence[str]], count: int) -> Sequence[str]:
        """The first set of keys of which ``count`` are free, or an empty one."""
        for keys in sets:
            free = [key for key in keys if key not in self.taken]
            if len(free) >= count:
                self.taken.update(keys)
                return free
        return ()


def bind(game: Game, agents: Sequence[str]) -> Keyboard:
    """Keys for some agents of a game."""
    free, keys, unbound = _Free(), [], []
    for agent in agents:
        role, _ = game.role_of(game.agents.index(agent))
        second_team = game.team_index[game.agents.index(agent)] == 1
        for f in role.action:
            for index in range(f.size):
                label = f.name if not f.shape else f"{f.name}[{index}]"
                if isinstance(f, Choice):
                    found = _choice_keys(free, agent, f, index, second_team)
                    if len(found) < (f.candidates or f.n - _has_rest(f)):
                        unbound.append(f"{agent}: {label} {_missing(f, found)}")
                    keys += found
                    continue
                pair = free.take(PAIRS, 2)
                if not pair:
                    unbound.append(f"{agent}: {label}")
                for name, sign, mark in zip(pair, (-1, 1), "-+", strict=False):
                    keys.append(Key(name, agent, f.name, sign, f"{label} {mark}", index))
    return Keyboard(tuple(keys), tuple(unbound))


def _missing(choice: Choice, found: Sequence[Key]) -> str:
    """Alternatives without a key: all of them, or where they are many from which on."""
    bound = {key.value for key in found}
    missing = [value for value in range(choice.candidates or choice.n) if value not in bound]
    return ", ".join(map(str, missing)) if len(missing) <= 9 else f"{missing[0]} to {missing[-1]}"


def _choice_keys(free: _Free, agent: str, choice: Choice, index: int, second_team: bool) -> list[Key]:
    where = f"[{index}] " if choice.shape else ""
    if choice.candidates is not None:
        row = free.take(ROWS, min(choice.candidates, 9))
        prefix = f"{choice.name} {where}from the list: "
        places = zip(range(choice.candidates), row, strict=False)
        return [Key(name, agent, choice.name, k, f"{prefix}{k + 1}", index, listed=True) for k, name in places]
    make = lambda name, value: Key(name, agent, choice.name, value, where + meaning(choice, value), index)  # noqa: E731
    directions = _directions(choice, second_team)
    if directions is not None and (cross := free.take(CROSSES, 4)):
        return [make(cross[where], value) for value, where in sorted(directions.items())]
    row = free.take(ROWS, min(choice.n, 9))
    return [make(name, value) for value, name in zip(range(choice.n), row, strict=False)]


def _directions(choice: Choice, second_team: bool) -> dict[int, int] | None:
    """Directions by alternative where all are directions but for one that rests; None where some are something else.

    Forward and back are up and down beside left and right; else they point to the right for the first team and to the
    left for the second, as their pictures do.
    """
    names = [name.lower() for name in choice.meanings]
    ahead = (UP, DOWN) if {"left", "right"} & {*names} else (LEFT, RIGHT) if second_team else (RIGHT, LEFT)
    known = {**DIRECTIONS, "forward": ahead[0], "back": ahead[1], "backward": ahead[1]}
    found = {value: known[name] for value, name in enumerate(names) if name in known}
    if len(found) < 2 or len(found) < choice.n - _has_rest(choice) or len(set(found.values())) < len(found):
        return None
    return found


def _has_rest(choice: Choice) -> bool:
    """Whether the meaning of its no-op is that nothing is done."""
    return bool(choice.meanings) and choice.meanings[choice.noop].lower() in RESTS


def meaning(choice: Choice, value: int) -> str:
    """Name of an alternative."""
    return choice.meanings[value] if value < len(choice.meanings) else f"{choice.name} {value}"


class Axis(NamedTuple):
    """A number of an action that an axis of a joystick sets.

    Attributes:
        field: Of the action.
        place: Number within the field.
        axis: Of the joystick, counted from 0.
        sign: -1 where the axis works the other way.
    """

    field: str
    place: int
    axis: int
    sign: int


def bind_axes(game: Game, agent: str, words: Sequence[str]) -> tuple[Axis, ...]:
    """Axes for the real numbers of an agent's action.

    Args:
        game: The rules.
        agent: Who is moved.
        words: ``FIELD=AXIS`` or ``FIELD=-AXIS`` (``FIELD[1]=2`` for one of several numbers), axes counted from 1; none
            is one axis for each number, in their order.

    Raises:
        ValueError: No real numbers, no such number or no axis; names the numbers that there are.
    """
    fields = [f for f in game.role_of(game.agents.index(agent))[0].action if isinstance(f, Continuous)]
    labels = {f.name if not f.shape else f"{f.name}[{k}]": (f.name, k) for f in fields for k in range(f.size)}
    if not labels:
        raise ValueError(f"{agent} has choices alone, which no axis of a joystick makes: leave --joystick away")
    axes = []
    for word in words or [f"{label}={k + 1}" for k, label in enumerate(labels)]:
        label, _, axis = word.partition("=")
        if label not in labels or not axis.removeprefix("-").isdecimal() or not 1 <= abs(int(axis)) <= MOST_AXES:
            known = ", ".join(f"{name}={k + 1}" for k, name in enumerate(labels))
            raise ValueError(f"--joystick {word}: say which axis, 1 to {MOST_AXES}, moves which number, as {known}")
        axes.append(Axis(*labels[label], abs(int(axis)) - 1, -1 if axis.startswith("-") else 1))
    return tuple(axes)


class Hands:
    """What some agents do while keys go down and up.

    A choice with a no-op that rests returns to it when no key is held; one without keeps what was chosen last.
    """

    def __init__(self, game: Game, agents: Sequence[str], keyboard: Keyboard) -> None:
        """No key is held."""
        self.game, self.agents, self.keyboard = game, tuple(agents), keyboard
        self._fields = {a: game.role_of(game.agents.index(a))[0].action for a in agents}
        self.values: dict[str, dict[str, Any]] = {}
        self.rest()

    def rest(self) -> None:
        """Everything is at its no-op."""
        self.values = {agent: {f.name: _at_rest(f) for f in fields} for agent, fields in self._fields.items()}

    def move(
        self, pressed: Collection[str], seconds: float, lists: Mapping[str, Mapping[str, np.ndarray]] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Actions by agent and field.

        Args:
            pressed: Keys that are held, or went down since the last decision, in the order in which they did.
            seconds: Time since the last decision.
            lists: Of each agent the legal alternatives of the choices with lists, ids int32, -1 beyond the list.
        """
        order = list(pressed)
        for agent, fields in self._fields.items():
            own = [key for name in order if (key := self.keyboard.named(name)) is not None and key.agent == agent]
            for f in fields:
                mine = [key for key in own if key.field == f.name]
                if isinstance(f, Choice):
                    ids = (lists or {}).get(agent, {}).get(f.name)
                    self.values[agent][f.name] = _choose(f, self.values[agent][f.name], mine, ids)
                else:
                    self.values[agent][f.name] = _swing(f, self.values[agent][f.name], mine, seconds)
        return self.values

    def steer(self, agent: str, axes: Sequence[Axis], positions: Sequence[float]) -> None:
        """Sets the numbers of an agent that axes move, from their no-op in the middle to their bounds.

        Args:
            agent: Whose.
            axes: From `bind_axes`; those beyond ``positions`` do nothing.
            positions: Of the axes of a joystick, -1 to 1.
        """
        fields = {f.name: f for f in self._fields[agent]}
        for axis in axes:
            if axis.axis < len(positions):
                f, position = fields[axis.field], axis.sign * float(positions[axis.axis])
                position = 0.0 if abs(position) < DEAD_ZONE else position
                low, high = (float(bound.reshape(-1)[axis.place]) for bound in bounds(f))  # type: ignore[arg-type]
                noop = float(_at_rest(f).reshape(-1)[axis.place])
                value = noop + abs(position) * ((high if position > 0.0 else low) - noop)
                self.values[agent][axis.field].reshape(-1)[axis.place] = value


def _at_rest(f: ActionField) -> Any:
    """The no-op: a number for one choice, else an array."""
    if isinstance(f, Choice):
        return np.full(f.shape, f.noop, np.int64) if f.shape else f.noop
    return np.array(np.broadcast_to(np.asarray(f.noop, np.float64), f.shape))


def meant(key: Key, ids: np.ndarray | None) -> int:
    """The alternative that a key of a `Choice` selects now; -1 where the list ends before its place."""
    return key.value if not key.listed or ids is None else int(ids.reshape(-1, ids.shape[-1])[key.index, key.value])


def _choose(f: Choice, value: Any, keys: Sequence[Key], ids: np.ndarray | None) -> Any:
    """What was chosen last of the keys that are down; the no-op where none is and it rests."""
    values = np.array(value).reshape(-1)
    for index in range(f.size):
        mine = [meant(key, ids) for key in keys if key.index == index and meant(key, ids) >= 0]
        if mine or _has_rest(f):
            values[index] = mine[-1] if mine else f.noop
    return values.reshape(f.shape) if f.shape else int(values[0])


def _swing(f: Continuous, value: np.ndarray, keys: Sequence[Key], seconds: float) -> np.ndarray:
    """Moves numbers towards the bounds that their keys name."""
    value = np.array(value, np.float64)
    flat, noops = value.reshape(-1), _at_rest(f).reshape(-1)
    lows, highs = (bound.reshape(-1) for bound in bounds(f))
    for index, (low, noop, high) in enumerate(zip(lows, noops, highs, strict=True)):
        sign = sum(key.value for key in keys if key.index == index)
        target = noop if sign == 0 else low if sign < 0 else high
        step = max(high - noop, noop - low) * seconds / FULL_SWING_S
        flat[index] += np.clip(target - flat[index], -step, step)
        flat[index] = np.clip(flat[index], low, high)
    return value


def key_table(keyboard: Keyboard) -> list[list[str]]:
    """Rows agent, key, what it does, for people."""
    rows = [[key.agent, key.name, key.meaning] for key in keyboard.keys]
    rows += [["", REST_KEY, "nothing, for agents without another key"]]
    return rows + [["", name, meaning] for name, meaning in RESERVED.items()]
