"""What a planted fault is, and the list of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

Patch = tuple[Any, str, Any]
Patches = Callable[[], Iterator[Patch]]


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        about: The fault in words.
        game: The game that shows it.
        change: Old and new text of its source; empty for a fault of the suite.
        patches: What is replaced in the suite; None for a fault of rules.
    """

    about: str
    game: str
    change: tuple[str, str] = ("", "")
    patches: Patches | None = None


FAULTS: list[Fault] = []


def rule(about: str, game: str, old: str, new: str) -> None:
    """Adds a fault of rules."""
    FAULTS.append(Fault(about, game, change=(old, new)))


def suite(game: str = "Raid") -> Callable[[Patches], Patches]:
    """Adds a fault of the suite: a generator of what is replaced, named by its docstring."""

    def add(patches: Patches) -> Patches:
        FAULTS.append(Fault((patches.__doc__ or "").strip().rstrip("."), game, patches=patches))
        return patches

    return add
