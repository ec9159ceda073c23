"""Turns of a power as text: which orders they hold, which units these are for, and what is wrong with them.

A turn has an order a line, or orders between semicolons, in the notation of `order_grammar`. Where it has a complete
pair of ``<orders>`` and ``</orders>``, the last one holds the orders, and all other text is free.
"""

from __future__ import annotations

import difflib
from typing import NamedTuple

from palaestra.games.concert.concert_map import NOBODY, Names, World
from palaestra.games.concert.concert_orders import BUILD_ARMY, BUILD_FLEET, REMOVE, order_parts, power_of
from palaestra.games.concert.concert_position import Position
from palaestra.games.concert.order_grammar import WAIVE, Order, order_text, read_order, unit_text

READ_CHARACTERS, READ_ORDERS = 8192, 64
"""Of the orders of a turn, from the first on."""
LONGEST_ORDER = 60
"""Characters of an order that are read."""
SUGGESTED = 3
"""Orders that an error suggests."""
OPENED, CLOSED = "<orders>", "</orders>"


class Slot(NamedTuple):
    """An order that a power has to give.

    Attributes:
        province: Where the unit stands, -1 for one that is to be built or removed.
        unit: Its byte, 0 likewise.
        has_to_go: Whether it retreats.
        ids: Numbers of the orders that it may be given.
    """

    province: int
    unit: int
    has_to_go: bool
    ids: list[int]


class OrderError(ValueError):
    """An order that cannot be given.

    Attributes:
        slot: Number of the slot for which it was meant, None for none.
    """

    def __init__(self, message: str, slot: int | None = None) -> None:
        """An error of the order for a slot."""
        super().__init__(message)
        self.slot = slot


def orders_in(turn: str) -> list[tuple[int, str]]:
    """The orders of a turn, each with its line, counted from 1; at most one more than `READ_ORDERS`."""
    end = turn.rfind(CLOSED)
    opened = turn.rfind(OPENED, 0, end) if end >= 0 else -1
    start, end = (opened + len(OPENED), end) if opened >= 0 else (0, len(turn))
    found = list[tuple[int, str]]()
    text = turn[start : min(end, start + READ_CHARACTERS)]
    for line, content in enumerate(text.split("\n"), 1 + turn.count("\n", 0, start)):
        found += [(line, order.strip()) for order in content.split(";") if order.strip()]
    return found[: READ_ORDERS + 1]


class OrderReader:
    """Reads the orders of one power in one phase.

    Attributes:
        slots: Orders that it has to give.
        given: Numbers of the orders that were read, by slot.
        wrong: Slots whose order cannot be given.
        strays: How many orders cannot be given that are for no slot, or for one that has an order.
        errors: What is wrong with them, one each.
    """

    def __init__(self, world: World, names: Names, position: Position, slots: list[Slot], power: int) -> None:
        """Reads nothing yet."""
        self._world, self._names, self._position, self._power = world, names, position, power
        self.slots = slots
        self.given, self.wrong, self.strays, self.errors = dict[int, int](), set[int](), 0, list[str]()

    def read(self, turn: str) -> None:
        """Reads a turn."""
        for count, (line, text) in enumerate(orders_in(turn), 1):
            try:
                if count > READ_ORDERS:
                    raise OrderError(f"no more than {READ_ORDERS} orders are read")
                slot, number = self._read_one(text[:LONGEST_ORDER])
                self.given[slot] = number
            except OrderError as error:
                self.errors.append(f"order {count} (line {line}): {error}")
                if error.slot is None or error.slot in self.given or error.slot in self.wrong:
                    self.strays += 1
                else:
                    self.wrong.add(error.slot)

    def text_of(self, slot: Slot, number: int) -> str:
        """An order of a slot as text."""
        dislodged = slot.unit if slot.has_to_go else 0
        return order_text(self._world, self._names, self._position.units, slot.province, number, dislodged)

    def _read_one(self, text: str) -> tuple[int, int]:
        """Slot and number of an order.

        Raises:
            OrderError: It cannot be given.
        """
        try:
            order = read_order(self._world, self._names, text)
        except ValueError as error:
            places = [self._names.locations.index(w) for w in text.upper().split()[:3] if w in self._names.locations]
            slot = self._slot_at(places[0]) if places else None
            raise OrderError(f"{text!r}: {error}{self._near(slot, text)}", slot) from None
        try:
            return self._place(order)
        except OrderError as error:
            raise OrderError(f"{text!r}: {error}{self._near(error.slot, text)}", error.slot) from None

    def _place(self, order: Order) -> tuple[int, int]:
        """Slot and number of an order that was read."""
        if not self.slots:
            raise OrderError("you have nothing to order")
        if self.slots[0].unit == 0:
            slot = self._free_slot(order)
        elif order.place < 0:
            raise OrderError(f"{WAIVE!r} is for builds")
        else:
            slot = self._slot_of(order)
        if order.number not in self.slots[slot].ids:
            raise OrderError("it cannot be ordered now", slot)
        return slot, order.number

    def _free_slot(self, order: Order) -> int:
        """The next slot for a build or a removal."""
        province = self._province(order.number)
        if province != NOBODY and province in map(self._province, self.given.values()):
            raise OrderError(f"a second order for {self._names.provinces[province]}")
        free = [slot for slot in range(len(self.slots)) if slot not in self.given and slot not in self.wrong]
        if not free:
            raise OrderError(f"one more than the {len(self.slots)} that you have to give")
        return free[0]

    def _slot_of(self, order: Order) -> int:
        """The slot of the unit that an order names."""
        slot = self._slot_at(order.place)
        if slot is None:
            raise OrderError(self._no_unit(int(self._world.province_of[order.place])))
        unit = unit_text(self._world, self._names, self.slots[slot].unit, self.slots[slot].province)
        if unit[0] != order.unit:
            raise OrderError(f"the unit there is {unit}", slot)
        if slot in self.given or slot in self.wrong:
            raise OrderError(f"a second order for {unit}", slot)
        return slot

    def _slot_at(self, place: int) -> int | None:
        """The slot of the unit at a location, wherever it stands in the province."""
        province = int(self._world.province_of[place])
        return next((k for k, slot in enumerate(self.slots) if slot.unit and slot.province == province), None)

    def _province(self, number: int) -> int:
        """Province of a build or a removal, -1 for other orders."""
        kind, place, _ = order_parts(self._world, number)
        return int(self._world.province_of[place]) if kind in (BUILD_ARMY, BUILD_FLEET, REMOVE) else NOBODY

    def _no_unit(self, province: int) -> str:
        """Why a power has no unit to order in a province."""
        unit = self._position.units[province]
        if unit != 0 and power_of(unit) != self._power:
            owner = self._names.powers[power_of(unit)]
            return f"{unit_text(self._world, self._names, unit, province)} is a unit of {owner}"
        return f"you have no unit to order in {self._names.provinces[province]}"

    def _near(self, slot: int | None, text: str) -> str:
        """What could be ordered instead."""
        if slot is None:
            return ""
        texts = [self.text_of(self.slots[slot], number) for number in self.slots[slot].ids]
        return f"; near are {', '.join(map(repr, difflib.get_close_matches(text, texts, SUGGESTED, 0.0)))}"
