"""What the registry knows of an environment: one row an id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaestra.core.game import Game


@dataclass(frozen=True)
class Row:
    """One registered environment.

    Attributes:
        id: ``namespace/Name-vN``, the same in Gymnasium and PettingZoo.
        factory: ``"module:function"`` (imported when first used) or a callable; its keywords are structural, it
            returns the `Game`.
        family: Name of the family, for tables.
        about: One line for tables.
        kwargs: Keywords that this id fixes as defaults.
    """

    id: str
    factory: str | Callable[..., Game]
    family: str = "third party"
    about: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
