"""What the registry knows of environments: one row an id, one page for all ids of one factory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaestra.core.contract.rules import Game


@dataclass(frozen=True)
class Page:
    """What the presets of one factory share: a page of the documentation, a row of README.md and a picture.

    Attributes:
        name: File name of the page.
        about: One line for tables; by default that of the first preset.
    """

    name: str
    about: str = ""


@dataclass(frozen=True)
class Row:
    """One registered environment.

    Attributes:
        id: ``namespace/Name-vN``, the same in Gymnasium and PettingZoo.
        factory: ``"module:function"`` (imported when first used) or a callable; its keywords are structural, it
            returns the `Game`, always the same one for the same keywords.
        family: Name of the family, for tables.
        about: One line for tables.
        kwargs: Keywords that this id fixes as defaults.
        page: The page that it shares with other rows (see `presets`). Without one, rows of one factory share a page
            that is named after the first of them.
    """

    id: str
    factory: str | Callable[..., Game]
    family: str = "third party"
    about: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    page: Page | None = None


@dataclass(frozen=True, init=False)
class Preset:
    """One id of a factory, for `presets`.

    Attributes:
        id: As of a `Row`.
        about: One line for tables.
        keywords: What the factory, or the game's parameters, are given by default.
    """

    id: str
    about: str
    keywords: Mapping[str, Any]

    def __init__(self, id: str, about: str, /, **keywords: Any) -> None:
        for name, value in (("id", id), ("about", about), ("keywords", keywords)):
            object.__setattr__(self, name, value)


def presets(family: str, factory: str | Callable[..., Game], *ids: Preset, page: Page | None = None) -> tuple[Row, ...]:
    """Rows of one factory.

    Args:
        family: As for `Row`.
        factory: As for `Row`.
        *ids: The first is shown where one stands for all.
        page: As for `Row`.
    """
    return tuple(Row(p.id, factory, family, p.about, p.keywords, page) for p in ids)


def by_page(rows: Mapping[str, Row]) -> list[tuple[Page, list[Row]]]:
    """Pages and the rows of each, in the order of their first rows."""
    found: list[tuple[Page, list[Row]]] = []
    for row in rows.values():
        for _, members in found:
            if (members[0].page, members[0].factory) == (row.page, row.factory):
                members.append(row)
                break
        else:
            page = row.page or Page(_stem(row.id))
            found.append((page if page.about else Page(page.name, row.about), [row]))
    return found


def _stem(id: str) -> str:
    """``palaestra/TeamTag-2v2-v0`` is a ``TeamTag``."""
    return id.split("/")[-1].partition("-")[0]
