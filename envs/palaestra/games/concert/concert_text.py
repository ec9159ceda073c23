"""``form="text"``: what a power reads, and turns as `palaestra.games.concert.order_reader` reads them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from palaestra.game import AgentView, Role, TextSpace
from palaestra.games.concert.concert_map import NOBODY, Names
from palaestra.games.concert.concert_orders import BUILD_ARMY, MOVE, ROOM, Board, order_number, own_number
from palaestra.games.concert.concert_phases import ADJUSTMENTS, RETREATS
from palaestra.games.concert.concert_position import Position, heading, last_lines, position_lines, position_of_view
from palaestra.games.concert.order_grammar import LETTERS, WAIVE, order_text
from palaestra.games.concert.order_reader import CLOSED, OPENED, OrderReader, Slot

LONGEST_TEXT = 2**20
"""Characters of a turn, and of what a power reads."""
SHOWN, SHOWN_ALONE = 12, 60
"""Orders of a unit that are listed; those of a unit that is asked for alone."""
TOLD = 5
"""Errors that a refusal tells."""
ASKED = (
    "units that are not named hold",
    "units that are not named disband",
    "what is not named is not built",
    "what is not named is chosen by the rules of civil disorder",
)
"""What happens without an order: moves, retreats, builds, removals."""
WRONG = ("A turn with a wrong order is refused.", "A wrong order is as none.")
"""What happens to wrong orders, with ``repair="refuse"`` and ``"hold"``."""


def sample_turn(provinces: Sequence[str], generator: np.random.Generator) -> str:
    """A turn for the samples of the action space: some orders of units anywhere."""
    orders = list[str]()
    for _ in range(1 + generator.integers(4)):
        a, b, c = (provinces[k] for k in generator.integers(len(provinces), size=3))
        letter = LETTERS[generator.integers(2)]
        forms = ("H", f"- {b}", f"S A {b}", f"S F {b} - {c}", f"C A {b} - {c}", "disband")
        unit = f"{letter} {a}"
        orders.append((f"{unit} {forms[generator.integers(len(forms))]}", f"build {unit}", WAIVE)[generator.choice(3)])
    return "\n".join(orders)


class ConcertCodec:
    """Text for a power of a Concert game."""

    def __init__(self, board: Board, names: Names, repair: str) -> None:
        """See `palaestra.games.concert.concert_rules.make_game`.

        Args:
            board: The map.
            names: Its names.
            repair: ``"hold"``: the unit of a wrong order holds; ``"refuse"``: the turn is refused.
        """
        self._board, self._names, self._world = board, names, board.map
        self.total = repair == "hold"

    def observation_space(self, role: Role) -> TextSpace:
        """Any text."""
        return TextSpace(LONGEST_TEXT, min_length=0, charset=None)

    def action_space(self, role: Role) -> TextSpace:
        """Any text; samples are orders."""
        samples = functools.partial(sample_turn, self._names.provinces)
        return TextSpace(LONGEST_TEXT, min_length=0, charset=None, samples=samples)

    # ---------------------------------------------------------------------------------------------------------- turns

    def decode(self, view: AgentView, action: str) -> Any:
        """The numbers of the orders, int64 ``[slots]``; with ``decisions="unit"`` the place in the list.

        A wrong order becomes one that is never legal, which the suite counts and replaces by the no-op. One that is for
        no unit, or for a unit that has an order, becomes that of a unit which is not named, where there is one.

        Raises:
            ValueError: With ``repair="refuse"``, orders that cannot be given; says which, why, and what is near.
        """
        position = position_of_view(self._board, view)
        reader = self._reader(view, position)
        reader.read(action)
        if reader.errors and not self.total:
            more = f"; {len(reader.errors) - TOLD} more errors" if len(reader.errors) > TOLD else ""
            raise ValueError("; ".join(reader.errors[:TOLD]) + more)
        unnamed = [k for k in range(len(reader.slots)) if k not in reader.given and k not in reader.wrong]
        wrong = [*reader.wrong, *unnamed[: reader.strays]]
        if self._board.single:
            return self._place_of(reader, bool(wrong))
        numbers = np.zeros(self._board.slots, np.int64)
        for slot, number in reader.given.items():
            numbers[slot] = own_number(self._board, view.slot, number)
        numbers[wrong] = order_number(self._world, MOVE if position.phase == ADJUSTMENTS else BUILD_ARMY, 0, 0)
        return numbers

    def encode_action(self, view: AgentView, action: Any) -> str:
        """Numbers of orders, or the place in the list, as a turn that `decode` reads: an order a line.

        The turn is empty where all units hold, disband or are not built.

        Raises:
            ValueError: An order that may not be given, or two builds or removals in one place.
        """
        position = position_of_view(self._board, view)
        reader = self._reader(view, position)
        numbers = np.asarray(action).reshape(-1).tolist()
        if self._board.single:
            ids = reader.slots[0].ids if reader.slots else [0]
            numbers = [ids[numbers[0]] if numbers[0] < len(ids) else NOBODY]
        else:
            numbers = [int(own_number(self._board, view.slot, number)) for number in numbers]
        slots = reader.slots
        is_given = all(number in slot.ids for slot, number in zip(slots, numbers, strict=False))
        if not is_given or any(numbers[len(slots) :]):
            raise ValueError("an order that may not be given has no text")
        if not any(numbers):
            return ""
        turn = "\n".join(reader.text_of(slot, number) for slot, number in zip(slots, numbers, strict=False))
        reader.read(turn)
        if reader.errors:
            raise ValueError(reader.errors[0])
        return turn

    def _place_of(self, reader: OrderReader, is_wrong: bool) -> int:
        """Place of the only order in its list; behind its end for a wrong one."""
        ids = reader.slots[0].ids if reader.slots else [0]
        if is_wrong:
            return min(len(ids), ROOM - 1)
        return ids.index(reader.given.get(0, 0))

    def _reader(self, view: AgentView, position: Position) -> OrderReader:
        return OrderReader(self._world, self._names, position, self._slots(view, position), view.slot)

    def _province(self, view: AgentView, place: int) -> int:
        """The province of a location that a power observes in its own view."""
        return int(self._world.province_of[self._board.seen_at[view.slot * self._board.mirrored, place]])

    def _slots(self, view: AgentView, position: Position) -> list[Slot]:
        """The orders that a power has to give; none where it is not asked."""
        row, mask = view.row, view.mask
        if self._board.single:
            places, lists = [int(row["unit"])], [row["candidates"][row["candidates"] >= 0].tolist()]
        else:
            lists = [listing["ids"][: listing["count"]].tolist() for listing in mask["orders"]]
            places = row["units"].tolist()
        lists = [[int(own_number(self._board, view.slot, number)) for number in ids] for ids in lists]
        slots = list[Slot]()
        has_to_go = position.phase == RETREATS
        units = position.dislodged if has_to_go else position.units
        for place, ids in zip(places, lists, strict=True):
            if len(ids) > 1:
                province = NOBODY if position.phase == ADJUSTMENTS else self._province(view, place)
                slots.append(Slot(province, 0 if province < 0 else int(units[province]), has_to_go, ids))
        return slots

    # --------------------------------------------------------------------------------------------------- observations

    def encode(self, view: AgentView) -> str:
        """The position, the last orders, and what the power may order."""
        position = position_of_view(self._board, view)
        return "\n".join([*self._position_lines(view, position), *self._asked_lines(view, position)])

    def position_text(self, view: AgentView) -> str:
        """The first part of `encode`: the position and the last orders."""
        return "\n".join(self._position_lines(view, position_of_view(self._board, view)))

    def order_texts(self, view: AgentView) -> list[list[str]]:
        """All orders of each list with a choice, in the order of the lists, as turns are written."""
        reader = self._reader(view, position_of_view(self._board, view))
        return [[reader.text_of(slot, number) for number in slot.ids] for slot in reader.slots]

    def _position_lines(self, view: AgentView, position: Position) -> Iterator[str]:
        """The position and the last orders."""
        power = self._names.powers[view.slot]
        yield f"{heading(position)}. You are {power}. {self._world.solo} centres win."
        yield from position_lines(self._world, self._names, position)
        yield from last_lines(self._world, self._names, position)

    def _asked_lines(self, view: AgentView, position: Position) -> Iterator[str]:
        """The orders that a power has to give, and its orders of this phase so far."""
        reader = self._reader(view, position)
        if not reader.slots:
            yield "You have nothing to order."
            return
        if self._board.single:
            yield from self._earlier_lines(view, position)
        due = int(view.row["build"])
        yield f"Your orders, one a line between {OPENED} and {CLOSED}; {ASKED[position.phase + (due < 0)]}."
        yield f"{WRONG[self.total]} You may choose from:"
        if due != 0:
            yield f"you {'may build' if due > 0 else 'have to remove'} {abs(due)}, out of"
        most = SHOWN_ALONE if self._board.single else SHOWN
        for slot in reader.slots[: 1 if position.phase == ADJUSTMENTS else None]:
            texts = [reader.text_of(slot, number) for number in slot.ids[:most]]
            more = f" ... and {len(slot.ids) - most} more" if len(slot.ids) > most else ""
            yield "; ".join(texts) + more

    def _earlier_lines(self, view: AgentView, position: Position) -> Iterator[str]:
        """Own orders of this phase so far."""
        given = [
            int(own_number(self._board, view.slot, number)) for number in view.row["earlier"].tolist() if number >= 0
        ]
        places = view.row["units"].tolist()
        if given:
            has_to_go = position.phase == RETREATS
            units = position.dislodged if has_to_go else position.units
            provinces = [self._province(view, place) if place >= 0 else NOBODY for place in places]
            texts = [
                order_text(self._world, self._names, position.units, p, number, int(units[p]) if has_to_go else 0)
                for p, number in zip(provinces, given, strict=False)
            ]
            yield f"You have ordered {'; '.join(texts)}."
