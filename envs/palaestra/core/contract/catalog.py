"""What the registry knows of environments: one row an id, one page for all ids of one factory, and their family."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
        family: Name of the family, for tables; a `Family` writes its own name here.
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


def presets(factory: str | Callable[..., Game], *ids: Preset, page: Page | None = None) -> tuple[Row, ...]:
    """Rows of one factory, for `Family`.

    Args:
        factory: As for `Row`.
        *ids: The first is shown where one stands for all.
        page: As for `Row`.
    """
    return tuple(Row(p.id, factory, about=p.about, kwargs=p.keywords, page=page) for p in ids)


@dataclass(frozen=True)
class Family:
    """A folder of games, and what it offers to commands and programs, none of which names a family.

    Functions are texts, ``"module:name"``, imported when they are first needed.

    Attributes:
        name: In tables; of a family of palaestra that of its folder.
        rows: Its environments, see `presets`.
        order: Place in tables; families of one place stand by their names.
        needs: Packages that some of its games need beside those of palaestra, and what to install for each:
            ``{"mujoco": "palaestra[robots]"}``.
        example: Id that stands for the family where one is enough; by default the first.
        demo: Id and players of its teams for ``palaestra demo --game NAME``; by default the example.
        players: Scripts of the teams in pictures, where the default opponent is no good player.
        speed: Id, player of all its teams (a script, or ``"random"``), and the decisions of a match a second on one
            core that are the least.
        exports: Options of ``palaestra replay``: what it writes, and a function of the file, the game, the records of
            one match after another and a title, which raises ValueError for a game that it cannot write.
        questions: Factories whose questions ``palaestra questions`` writes; the module that holds their ``ABILITY``,
            ``split_keywords`` and ``find_seeds``, see `palaestra.cli.questions`.
        corpus: Function that makes an index of a file or a folder, for ``palaestra serve``.
        exact: Names of `palaestra.exact`, and what each stands for.
    """

    name: str
    rows: Sequence[Row]
    order: int = 100
    needs: Mapping[str, str] = field(default_factory=dict)
    example: str = ""
    demo: tuple[str, ...] = ()
    players: tuple[str, ...] = ()
    speed: Sequence[tuple[str, str, float]] = ()
    exports: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    questions: Mapping[str, str] = field(default_factory=dict)
    corpus: str | None = None
    exact: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Writes the family's name into its rows, and the defaults.

        Raises:
            ValueError: A family without rows.
        """
        if not self.rows:
            raise ValueError(f"the family {self.name!r} has no rows: give rows=presets(...)")
        rows = tuple(replace(row, family=self.name) for row in self.rows)
        example = self.example or rows[0].id
        for name, value in (("rows", rows), ("example", example), ("demo", self.demo or (example,))):
            object.__setattr__(self, name, value)


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
