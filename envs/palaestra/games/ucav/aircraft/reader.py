"""Reading of JSBSim's XML: numbers with units, and errors that name tag and file.

What the compiler does not know, it refuses: an aircraft with an unknown tag flies with ``engine="jsbsim"`` alone.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import NamedTuple

Element = ElementTree.Element

METRE_FT = 3.2808399
FACTORS: dict[tuple[str, str], float] = {
    ("M", "FT"): METRE_FT,
    ("IN", "FT"): 1.0 / 12.0,
    ("FT", "IN"): 12.0,
    ("M", "IN"): 12.0 * METRE_FT,
    ("M2", "FT2"): METRE_FT * METRE_FT,
    ("KG", "LBS"): 1.0 / 0.45359237,
    ("KG*M2", "SLUG*FT2"): 1.0 / 1.35594,
    ("DEG", "RAD"): 0.017453292519943295,
    ("N", "LBS"): 0.22482,
}
"""Factors between units as JSBSim has them, rounded where it rounds."""


class UnsupportedAircraft(ValueError):
    """An aircraft file with something that the compiler does not know; the message names it."""


class Source(NamedTuple):
    """An XML file in memory, with its name for messages.

    Attributes:
        name: File name.
        root: Its outermost element.
    """

    name: str
    root: Element

    def refuse(self, element: Element, why: str) -> UnsupportedAircraft:
        """The error that names an element of this file."""
        named = f' name="{element.get("name")}"' if element.get("name") else ""
        return UnsupportedAircraft(
            f'{self.name}: <{element.tag}{named}>: {why}. The compiled engine cannot fly it: use engine="jsbsim"'
        )

    def check(self, element: Element, known: str) -> None:
        """Refuses children of an element that are not among the known tags (words of a text)."""
        tags = known.split()
        for child in element:
            if child.tag not in tags:
                raise self.refuse(child, f"unknown inside <{element.tag}>")

    def number(self, parent: Element, tag: str, unit: str = "", default: float | None = None) -> float:
        """The number in a child, in a unit.

        Raises:
            UnsupportedAircraft: There is none and no default, or the unit is unknown.
        """
        child = parent.find(tag)
        if child is None:
            if default is None:
                raise self.refuse(parent, f"has no <{tag}>")
            return default
        return self.value(child, unit)

    def value(self, element: Element, unit: str = "") -> float:
        """The number that an element holds, in a unit."""
        try:
            number = float(text_of(element))
        except ValueError:
            raise self.refuse(element, f"{text_of(element)!r} is no number") from None
        return number * self.factor(element, element.get("unit", unit), unit)

    def factor(self, element: Element, given: str, wanted: str) -> float:
        """What a number of one unit is multiplied by to be one of another."""
        if not wanted or given == wanted:
            return 1.0
        if (given, wanted) not in FACTORS:
            raise self.refuse(element, f"the unit {given!r} is not known in place of {wanted!r}")
        return FACTORS[given, wanted]

    def triplet(self, element: Element, unit: str, names: str = "x y z") -> tuple[float, float, float]:
        """The three numbers of a location or orientation, in a unit."""
        self.check(element, names)
        factor = self.factor(element, element.get("unit", unit), unit)
        x, y, z = (self.number(element, name, default=0.0) * factor for name in names.split())
        return x, y, z


def text_of(element: Element) -> str:
    """The text of an element without blanks around it."""
    return (element.text or "").strip()


def lines_of(element: Element) -> Iterator[str]:
    """Its lines that are not empty, those after children included."""
    for text in (element.text, *(child.tail for child in element)):
        yield from (line.strip() for line in (text or "").splitlines() if line.strip())
