"""The documentation in the tree: a page for every factory of games (`palaestra.pages`) and the tables in README.md.

``palaestra info ID`` prints the page of one id; ``python -m palaestra.docs --write`` writes `docs/environments/` and
the tables in README.md, ``--check`` fails where they are stale.
"""

from __future__ import annotations

import argparse
import ast
import csv
import statistics
from collections.abc import Sequence
from pathlib import Path

from palaestra import gallery, pages, registry
from palaestra.core.catalog import Page, Row

COMMAND = "python -m palaestra.docs --write"
PAGES = Path("docs", "environments")
MADE_BY = f"<!-- Made by {COMMAND} from the docstring of"
"""Beginning of every page: files that begin otherwise are left alone."""
SEE_ALSO = """## See also

[Keywords](../keywords.md) of all environments, [glossary](../glossary.md), [references](../references.md) with BibTeX.
"""
"""End of every page."""
BASELINES = Path("baselines", "palaestra_baselines")
GALLERY_WIDTH = 260
"""Width of a picture in README.md, pixels."""
MOST_IDS = 4
"""Presets that README.md names; of more it gives the number."""
FIGURES = Path("assets", "palaestra_assets", "figures")
LEARNERS = {"vdn": "VDN", "qmix": "QMIX", "unmas": "UNMAS", "mappo": "MAPPO"}
"""Columns of the table of battles, by the name of the method in the files of results."""
SOLVED = 0.95
"""Share of won matches from which on a battle counts as solved."""
EXAMPLE = Path("examples", "add_a_game.py")
"""Shown in README.md."""


def readme_table() -> str:
    """Table of all factories whose games can be made here."""
    lines = ["| family | id | players | actions | determinism | what |", "|---|---|---|---|---|---|"]
    for page, rows in _pages():
        games = [registry.make_game(row.id)[0] for row in rows]
        cells = (
            rows[0].family,
            _ids(page, rows),
            pages.either(pages.players_of(game) for game in games),
            pages.either(pages.actions_of(game) for game in games),
            pages.either(game.determinism for game in games),
            page.about,
        )
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def gallery_table(root: Path) -> str:
    """Pictures of the pages that have one, each a link to its page; the calibration games are left out."""
    cells = [
        f'<a href="{(PAGES / page_name(page)).as_posix()}"><img width="{GALLERY_WIDTH}" alt="{page.name}" '
        f'src="{(gallery.FOLDER / gallery.picture_name(page)).as_posix()}"></a>'
        for page, rows in _pages()
        if rows[0].family != "calibration" and (root / gallery.FOLDER / gallery.picture_name(page)).exists()
    ]
    return "\n".join(cells)


def baseline_table(root: Path) -> str:
    """Table of the methods in `baselines/`, files with a function `train`, from the first line of their docstrings."""
    lines = ["| method | what | run |", "|---|---|---|"]
    for path in sorted((root / BASELINES).glob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        if not any(isinstance(part, ast.FunctionDef) and part.name == "train" for part in module.body):
            continue
        about = (ast.get_docstring(module) or "").split("\n")[0]
        link = f"[`{path.stem}`]({(BASELINES / path.name).as_posix()})"
        lines.append(f"| {link} | {about.rstrip('.')} | `palaestra train {path.stem}` |")
    return "\n".join(lines)


def battle_table(root: Path) -> str:
    """Table of what methods win on battles, from the results that ``figures skirmish`` has written.

    A cell holds the median of the seeds, bold from `SOLVED` on, the least and the most, and the decisions of a run.
    """
    found: dict[str, dict[str, list[dict[str, str]]]] = {}
    for path in sorted((root / FIGURES).glob("skirmish_*_results.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                battle = row["battle"] + (f", learnt on {row['learnt_on']}" if row.get("learnt_on") else "")
                found.setdefault(battle, {}).setdefault(f"{row['method']} {row['decisions_wanted']}", []).append(row)
    if not found:
        return "No results yet."
    lines = [f"| battle | {' | '.join(LEARNERS.values())} |", "|---" * (1 + len(LEARNERS)) + "|"]
    for battle, by_method in sorted(found.items(), key=lambda item: -max(map(_median, item[1].values()))):
        cells = ["; ".join(map(_cell, _of(method, by_method))) for method in LEARNERS]
        lines.append(f"| {battle} | {' | '.join(cells)} |")
    return "\n".join(lines)


def duel_table(root: Path) -> str:
    """Table of the rounds of self-play on SkirmishDuel, from the results that ``figures skirmish_duel`` has written."""
    path = root / FIGURES / "skirmish_duel.csv"
    if not path.exists():
        return "No results yet."
    rounds: dict[str, list[dict[str, str]]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rounds.setdefault(row["round"], []).append(row)
    lines = [
        "| round | policies in the pool | gain of the best response, by seed | matches it won |",
        "|---|---|---|---|",
    ]
    for number, rows in rounds.items():
        gains = ", ".join(f"{float(row['gain']):+.1f}" for row in rows)
        won = ", ".join(f"{float(row['exploited']):.2f}" for row in rows)
        lines.append(f"| {int(number) + 1} | {rows[0]['pool']} | {gains} | {won} |")
    return "\n".join(lines)


def pursuit_table(root: Path) -> str:
    """Table of what learnt teams win on graphs, from the results that ``figures pursuit`` has written.

    Medians of the seeds, with the least and the most share of won matches.
    """
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for path in sorted((root / FIGURES).glob("pursuit_*_results.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                found.setdefault((path.name, row["where"], row["title"], row["test"]), []).append(row)
    if not found:
        return "No results yet."
    lines = ["| learnt on | method | played | won | moves over optimal | decisions | processor |", "|---" * 7 + "|"]
    for (_, where, title, test), rows in found.items():
        slower, decisions, seconds = (
            statistics.median(float(row[name]) for row in rows) for name in ("slower", "decisions", "cpu_s")
        )
        won = sorted(float(row["won"]) for row in rows)
        cells = [
            where,
            title,
            test,
            f"{_median(rows):.3f} ({won[0]:.3f} to {won[-1]:.3f})",
            f"{slower:.2f}" if slower else "",
            f"{decisions / 1e6:.2f} M" if decisions else "",
            f"{seconds / 60:.1f} min" if decisions else "",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def example(root: Path) -> str:
    """The rules of `EXAMPLE` as a code block: the file without what it does when it is run."""
    rules = (root / EXAMPLE).read_text(encoding="utf-8").partition("\nif __name__")[0]
    return f"```python\n{rules.strip()}\n```"


def page_name(page: Page) -> str:
    """File name of a page."""
    return f"{page.name}.md"


def write(root: Path) -> list[Path]:
    """Writes the pages and the table in README.md. Returns the files that changed."""
    changed = []
    for path, text in _files(root).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
            changed.append(path)
    for path in _orphans(root):
        path.unlink()
        changed.append(path)
    return changed


def stale(root: Path) -> list[Path]:
    """Files that `write` would change."""
    texts = _files(root).items()
    return [p for p, text in texts if not p.exists() or p.read_text(encoding="utf-8") != text] + _orphans(root)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m palaestra.docs", description=(__doc__ or "").split("\n")[0])
    verb = parser.add_mutually_exclusive_group(required=True)
    verb.add_argument("--write", action="store_true", help="write docs/environments and the table in README.md")
    verb.add_argument("--check", action="store_true", help="fail where they are stale")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of README.md (default: here)")
    given = parser.parse_args(arguments)
    paths = write(given.root) if given.write else stale(given.root)
    for path in paths:
        print(f"{'wrote' if given.write else 'stale'}: {path}")
    if given.check and paths:
        print(f"run: {COMMAND}")
    return int(bool(given.check and paths))


# -- parts -------------------------------------------------------------------------------------------------------------


def _pages() -> list[tuple[Page, list[Row]]]:
    """Our pages, but for those whose optional package is missing."""
    found = []
    for page, rows in registry.pages():
        ours = [row for row in rows if row.id.startswith("palaestra/")]
        try:
            for row in ours:
                registry.make_game(row.id)
        except ImportError:
            continue
        if ours:
            found.append((page, ours))
    return found


def _files(root: Path) -> dict[Path, str]:
    files = {}
    for page, rows in _pages():
        note = f"{MADE_BY} {_home(rows[0])}: edit that. -->"
        text = _with_picture(pages.shared_page(page, rows), root, page, rows[0].id)
        files[root / PAGES / page_name(page)] = f"{note}\n\n{text}\n{SEE_ALSO}"
    readme = root / "README.md"
    if readme.exists():
        text = readme.read_text(encoding="utf-8")
        filled = _fill(_fill(text, "environments", readme_table()), "baselines", baseline_table(root))
        filled = _fill(_fill(filled, "gallery", gallery_table(root)), "battles", battle_table(root))
        filled = _fill(_fill(filled, "duel", duel_table(root)), "pursuit", pursuit_table(root))
        if (root / EXAMPLE).exists():
            filled = _fill(filled, "example", example(root))
        if filled != text or "<!-- begin: environments -->" in text:
            files[readme] = filled
    return files


def _with_picture(text: str, root: Path, page: Page, id: str) -> str:
    """The page with the picture of `palaestra.gallery` under its headline, if there is one."""
    if not (root / gallery.FOLDER / gallery.picture_name(page)).exists():
        return text
    title, headline, rest = text.split("\n\n", 2)
    link = f"![A match of {id}](../images/environments/{gallery.picture_name(page)})"
    return "\n\n".join([title, headline, link, rest])


def _of(method: str, runs: dict[str, list[dict[str, str]]]) -> list[list[dict[str, str]]]:
    """The runs of a method, those of each budget apart."""
    return [rows for name, rows in runs.items() if name.split()[0] == method]


def _median(rows: Sequence[dict[str, str]]) -> float:
    """Median share of won matches over seeds."""
    return statistics.median(float(row["won"]) for row in rows)


def _cell(rows: Sequence[dict[str, str]]) -> str:
    """Median, least and most of the seeds, and the decisions of a run in millions."""
    won, median = sorted(float(row["won"]) for row in rows), _median(rows)
    shown = f"**{median:.2f}**" if median >= SOLVED else f"{median:.2f}"
    seeds = f"{won[0]:.2f} to {won[-1]:.2f}" if len(rows) > 1 else "one seed"
    return f"{shown} ({seeds}), {int(rows[0]['decisions_wanted']) / 1e6:g} M"


def _ids(page: Page, rows: Sequence[Row]) -> str:
    """The first id as a link to the page, and the others or their number."""
    first = f"[`{rows[0].id}`]({(PAGES / page_name(page)).as_posix()})"
    others = [f"`{row.id}`" for row in rows[1:]]
    return ", ".join([first, *others]) if len(rows) <= MOST_IDS else f"{first} and {len(others)} more"


def _fill(text: str, name: str, table: str) -> str:
    """The text with the table between its markers; the text itself where it has no such markers."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    head, found, rest = text.partition(begin)
    if not found or end not in rest:
        return text
    return f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"


def _orphans(root: Path) -> list[Path]:
    """Pages that were made once and are no more; those whose optional package is missing are not among them."""
    known = {page_name(page) for page, _ in registry.pages()}
    strangers = sorted(p for p in (root / PAGES).glob("*.md") if p.name not in known)
    return [p for p in strangers if p.read_text(encoding="utf-8").startswith(MADE_BY)]


def _home(row: Row) -> str:
    return row.factory.partition(":")[0] if isinstance(row.factory, str) else row.factory.__module__


if __name__ == "__main__":
    raise SystemExit(main())
