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
        changes: Pairs of old and new text of its source; none for a fault of the suite.
        patches: What is replaced in the suite; None for a fault of rules.
    """

    about: str
    game: str
    changes: tuple[tuple[str, str], ...] = ()
    patches: Patches | None = None


FAULTS: list[Fault] = []


def rule(about: str, game: str, old: str, new: str, *more: tuple[str, str]) -> None:
    """Adds a fault of rules: what is written instead of a text, and instead of others where one is not enough."""
    FAULTS.append(Fault(about, game, changes=((old, new), *more)))


def suite(game: str = "Raid") -> Callable[[Patches], Patches]:
    """Adds a fault of the suite: a generator of what is replaced, named by its docstring."""

    def add(patches: Patches) -> Patches:
        FAULTS.append(Fault((patches.__doc__ or "").strip().rstrip("."), game, patches=patches))
        return patches

    return add
