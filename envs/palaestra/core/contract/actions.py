"""The one door for actions from outside: the table of action words, checks of shape and kind, and refusals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from palaestra.core.contract.fields import ActionField, Choice, Continuous, member_offset
from palaestra.core.contract.game_parts import Role
from palaestra.core.contract.rules import Game

OutOfRange = Literal["clip", "raise"]
"""What happens to a finite real number beyond its bounds."""
PLAIN_INTEGERS = (int, np.int64, np.int32)
"""Types of a single choice that need no array to be checked: no bool, none that an int64 cannot hold."""


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


class ActionError(ValueError):
    """An action outside its space."""


def offer(listing, alternative):
    """Adds an alternative to a list of candidates; called by `Game.legal`: ``offer(mask.caller[k].order, 17)``.

    What is offered beyond the list's room is counted but not kept, and an error of the conformance kit.
    """
    if listing.count < len(listing.ids):
        listing.ids[listing.count] = alternative
    listing.count += 1


class ActionTable:
    """What a lane's row of 8-byte action words may hold.

    Attributes:
        words: One row an action word that users see, records of `WORD` ``[W]``.
        names: Name of each of them, for error messages.
        first_word: First word of each visible slot and of none, int64 ``[A + 1]``.
        idle: A lane's row of no-ops, int64 ``[columns]``.
    """

    def __init__(self, game: Game, out_of_range: OutOfRange = "clip") -> None:
        """Derives the table from the roles; see `palaestra.core.run.simulation.Simulation` for ``out_of_range``."""
        self._game = game
        self.words, self.names, self.first_word = word_table(game, out_of_range == "clip")
        self.idle = idle_words(game)

    def of_slot(self, slot: int) -> np.ndarray:
        """Rows of one slot."""
        return self.words[self.first_word[slot] : self.first_word[slot + 1]]

    def single_choice(self, slot: int) -> int | None:
        """Column of a slot whose action is one choice and nothing else; None for others."""
        rows = self.of_slot(slot)
        return int(rows["column"][0]) if len(rows) == 1 and rows["n"][0] > 0 else None

    def listed(self, mask_bytes: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The candidates of one action word in masks int8 ``[N, M]``: ids int32 ``[N, room]``, counts ``[N]``."""
        start, room = int(self.words["mask_offset"][number]), int(self.words["candidates"][number])
        numbers = np.ascontiguousarray(mask_bytes[:, start : start + 4 + 4 * room]).view(np.int32)
        return numbers[:, 1:], np.clip(numbers[:, 0], 0, room)

    def allowed(self, mask_bytes: np.ndarray, number: int) -> np.ndarray:
        """Which alternatives of one action word masks int8 ``[N, M]`` allow, bool ``[N, n]``."""
        word = self.words[number]
        start, n = int(word["mask_offset"]), int(word["n"])
        if word["candidates"] == 0:
            return mask_bytes[:, start : start + n] != 0
        ids, counts = self.listed(mask_bytes, number)
        dense = np.zeros((len(mask_bytes), n), np.bool_)
        lanes, places = np.nonzero(np.arange(ids.shape[1]) < counts[:, None])
        dense[lanes, ids[lanes, places]] = True
        return dense

    def rows(self, memory: np.ndarray, role: Role) -> np.ndarray:
        """View of a role's visible actions in action words ``[N, columns]``.

        Returns:
            int64 ``[N, A_role]`` (one choice) or ``[N, A_role, K]``, float64 ``[N, A_role, K]``, or structured
            ``[N, A_role]`` for composite actions.
        """
        records: Any = memory.view(self._game.action_dtype)[:, 0][role.name][:, : len(role.agents)]
        choices = [isinstance(f, Choice) for f in role.action]
        if any(choices) and not all(choices):
            return records
        first = member_offset(self._game.action_dtype, role.name) // 8
        width, count = sum(f.size for f in role.action), len(role.agents)
        block = memory[:, first : first + count * width].reshape(len(memory), count, width)
        if all(choices):
            return block[:, :, 0] if width == 1 else block
        return block.view("f8")

    def refusal(self, memory: np.ndarray, offender: int) -> ActionError:
        """The error for the action word that the batch loop found outside its space."""
        lane, number = divmod(offender, len(self.words))
        word, name = self.words[number], self.names[number]
        agent, column = self._game.agents[int(word["agent"])], int(word["column"])
        if word["n"] > 0:
            value = memory[lane, column]
            return ActionError(f"lane {lane}, {agent}: {name} = {value} is not an integer in [0, {word['n']})")
        value = memory.view("f8")[lane, column]
        return ActionError(
            f"lane {lane}, {agent}: {name} = {float(value)!r} is not in [{word['low']:g}, {word['high']:g}]"
        )


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


def write_actions(role: Role, target: np.ndarray, given: Any, flat: bool = False) -> None:
    """Writes actions of a role's agents, as a user gave them, into rows of action words.

    Args:
        role: The role.
        target: A view as `ActionTable.rows` gives it, or some of its rows.
        given: An array of the target's shape, or a mapping (or records) by field name for composite actions.
        flat: Also take arrays whose rows are flattened, as the spaces of a face are.

    Raises:
        ActionError: Wrong shape, kind or fields. Ranges are checked by the batch loop.
    """
    if target.dtype.names is None:
        target[...] = _checked(given, target.shape, f"action of {role.name}", role.action[0], flat)
        return
    is_record = isinstance(given, np.ndarray) and given.dtype.names is not None
    names: Any = given.dtype.names if is_record else given
    if not (is_record or isinstance(given, Mapping)) or set(names) != set(target.dtype.names):
        raise ActionError(f"actions of {role.name} must give the fields {', '.join(target.dtype.names)}")
    for f in role.action:
        rows = target[f.name]
        rows[...] = _checked(given[f.name], rows.shape, f"{f.name} of {role.name}", f, flat)


def parts_by_role(given: Any, roles: Sequence[str]) -> Mapping[str, Any]:
    """The actions of several roles, by name.

    Raises:
        ActionError: No mapping, or one of other names.
    """
    if not isinstance(given, Mapping) or set(given) != set(roles):
        raise ActionError(f"actions must be a dict with the roles {', '.join(roles)}")
    return given


def write_choice(row: Any, at: Any, action: Any, f: ActionField) -> None:
    """Writes a single plain integer (`PLAIN_INTEGERS`), the common case, without the price of arrays."""
    try:
        row[at] = action
    except (OverflowError, ValueError) as error:
        raise ActionError(f"{f.name} = {action} is far outside its space") from error


def as_array(given: Any, name: str) -> np.ndarray:
    """What a user gave, as an array.

    Raises:
        ActionError: Lists of unlike lengths in each other.
    """
    try:
        return np.asarray(given)
    except ValueError:
        raise ActionError(f"{name} must be numbers in rows of one length, got {given!r:.80}") from None


def _checked(given: Any, shape: tuple[int, ...], name: str, f: ActionField, flat: bool) -> np.ndarray:
    array = as_array(given, name)
    if array.shape != shape:
        if not flat:
            raise ActionError(f"{name} must have shape {shape}, got {array.shape}")
        if array.ndim == 0 or array.shape[0] != shape[0] or array.size != math.prod(shape):
            size, n = math.prod(shape[1:]), shape[0]
            raise ActionError(f"{name} must have {size} numbers in each of {n} lanes, got shape {array.shape}")
    discrete = isinstance(f, Choice)
    if array.dtype.kind not in ("iu" if discrete else "iuf"):
        raise ActionError(f"{name} must be {'integers' if discrete else 'real numbers'}, got {array.dtype}")
    return array.reshape(shape)
