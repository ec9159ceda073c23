"""What the registry knows of environments: one row an id, one page for all ids of one factory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from palaestra.core.game import Game


@dataclass(frozen=True)
class Page:
    """What the presets of one factory share: a page of the documentation, a row of README.md and a picture.

    Attributes:
        name: File name of the page.
        about: One line for tables.
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


def presets(
    name: str, factory: str | Callable[..., Game], family: str, about: str, ids: Mapping[str, tuple[str, dict]]
) -> tuple[Row, ...]:
    """Rows of one factory under several ids, which share a page.

    Args:
        name: Of the page.
        factory: As for `Row`.
        family: As for `Row`.
        about: One line about all of them.
        ids: ``{id: (one line about it, its keywords)}``; the first is shown where one stands for all.
    """
    page = Page(name, about)
    return tuple(Row(id, factory, family, line, keywords, page) for id, (line, keywords) in ids.items())


def by_page(rows: Mapping[str, Row]) -> list[tuple[Page, list[Row]]]:
    """Pages and the rows of each, in the order of their first rows."""
    found: list[tuple[Page, list[Row]]] = []
    for row in rows.values():
        for _, members in found:
            if (members[0].page, members[0].factory) == (row.page, row.factory):
                members.append(row)
                break
        else:
            found.append((row.page or Page(_stem(row.id), row.about), [row]))
    return found


def _stem(id: str) -> str:
    """``palaestra/TeamTag-2v2-v0`` is a ``TeamTag``."""
    return id.split("/")[-1].partition("-")[0]
