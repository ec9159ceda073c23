"""The documentation in the tree: a page for every factory of games (`palaestra.pages`) and the tables of other pages.

``palaestra info ID`` prints the page of one id. ``python docs/tools/write_pages.py --write`` writes the pages in
`docs/environments/`, the modules of families in `docs/api/`, and the tables of README.md, docs/results.md, its pages,
docs/keywords.md and the guide to the environments; ``--check`` fails where they are stale.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import gallery
import result_tables
from palaestra import games, pages, registry
from palaestra.core.contract import factories
from palaestra.core.contract.fields import is_homogeneous
from palaestra.core.contract.options import options_of
from palaestra.game import Continuous, Game, Option, Page, Row

COMMAND = "python docs/tools/write_pages.py --write"
PAGES = Path("docs", "environments")
MADE_BY = f"<!-- Made by {COMMAND} from the docstring of"
"""Beginning of every page: files that begin otherwise are left alone."""
SEE_ALSO = """## See also

[Keywords](../keywords.md) of all environments, [glossary](../glossary.md), [references](../references.md) with BibTeX.
"""
"""End of every page."""
BASELINES = Path("baselines", "palaestra_baselines")
GALLERY_WIDTH = 260
"""Width of a picture of the gallery, pixels."""
README, RESULTS, KEYWORDS = Path("README.md"), Path("docs", "results.md"), Path("docs", "keywords.md")
SPEED = Path("docs", "speed.md")
CHOICE, API = Path("docs", "guides", "choose_an_environment.md"), Path("docs", "api")
"""Pages with tables that are written here, beside those of the environments."""
ID = re.compile(r"palaestra/\w[\w.-]*-v\d+")
"""Of an environment, in the file of a method."""
EXAMPLE = Path("examples", "add_a_game.py")
"""Shown in README.md."""


def readme_table() -> str:
    """Table of all factories whose games can be made here, with the first id and the number of the others."""
    lines = ["| family | id | what |", "|---|---|---|"]
    for page, rows in _pages():
        others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        link = f"[`{rows[0].id}`]({(PAGES / page_name(page)).as_posix()}){others}"
        lines.append(f"| {rows[0].family} | {link} | {page.about} |")
    return "\n".join(lines)


def option_table() -> str:
    """Index of the options of all factories: what each may be, and the pages that have it."""
    found: dict[str, list[tuple[Option, Page]]] = {}
    for page, rows in _pages():
        for option in options_of(factories.load(rows[0].factory)):
            found.setdefault(option.name, []).append((option, page))
    lines = ["| option | values | environments |", "|---|---|---|"]
    for name, users in sorted(found.items()):
        values = pages.either(option.row()["values"] for option, _ in users)
        links = [f"[{page.name}](environments/{page_name(page)})" for _, page in users]
        lines.append(f"| `{name}` | {values.replace('by preset', 'by environment')} | {', '.join(links)} |")
    return "\n".join(lines)


def reference(root: Path, family: str) -> str:
    """Page of the reference for a family: what stands above its first heading is kept, its modules follow.

    Modules that hold the page of an environment are left out.

    Args:
        root: Of the repository.
        family: Name of its folder.
    """
    package, page = importlib.import_module(f"{games.__name__}.{family}"), root / API / f"{family}.md"
    head = f"# {family.capitalize()}\n\n{(package.__doc__ or '').partition(chr(10) * 2)[0]}\n"
    if page.exists():
        head = page.read_text(encoding="utf-8").partition("\n## ")[0]
    folder = Path(package.__path__[0])
    files = [file for file in folder.rglob("*.py") if "<!-- table: " not in file.read_text(encoding="utf-8")]
    names = sorted(".".join([package.__name__, *file.relative_to(folder).with_suffix("").parts]) for file in files)
    names = [name.removesuffix(".__init__") for name in names]
    return head + "".join(f"\n## {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n" for name in names)


def gallery_table(root: Path) -> str:
    """Pictures of the pages that have one for `CHOICE`, each a link to its page; calibration is left out."""
    up = "../" * (len(CHOICE.parts) - 1)
    cells = [
        f'<a href="{up}{(PAGES / page_name(page)).as_posix()}"><img width="{GALLERY_WIDTH}" alt="{page.name}" '
        f'src="{up}{(gallery.FOLDER / gallery.picture_name(page)).as_posix()}"></a>'
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
        link = f"[`{path.stem}`](../{(BASELINES / path.name).as_posix()})"
        lines.append(f"| {link} | {about.rstrip('.')} | `palaestra train {path.stem}` |")
    return "\n".join(lines)


def training_section(root: Path, rows: Sequence[Row]) -> str:
    """What trains an environment: PPO where it can learn it, and the methods whose default is of the same family."""
    row = rows[0]
    game, _ = registry.make_game(row.id)
    methods = [name for name, id in default_ids(root).items() if registry.row(id).family == row.family]
    links = ", ".join(f"[{name}](../../{(BASELINES / name).as_posix()}.py)" for name in methods)
    lines = [f"`palaestra train ppo --env-id {row.id}`"] if is_for_ppo(game) else []
    lines += [f"Methods that learn environments of this family by default: {links}"] if links else []
    return f"## Training\n\n{'. '.join(lines)}.\n\n" if lines else ""


def is_for_ppo(game: Game) -> bool:
    """Whether ``palaestra train ppo`` learns a game: one or two teams, agents that see vectors and act in one way."""
    roles = [game.role_of(slot)[0] for slot in next(iter(game.teams.values()))]
    kinds = {isinstance(field, Continuous) for role in roles for field in role.action}
    return len(game.teams) <= 2 and len(kinds) == 1 and all(is_homogeneous(role.observation) for role in roles)


def default_ids(root: Path) -> dict[str, str]:
    """The id that each method learns by default, by its name, as far as its file or that of its arguments says it."""
    found: dict[str, str] = {}
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted((root / BASELINES).glob("*.py"))}
    shared = root / BASELINES / "common" / "training.py"
    for name, text in texts.items():
        inherited = re.search(r"^class Args\((\w+)\.Args\):", text, re.M)
        of_all = re.search(r"^class Args\((LaneArgs|LearningArgs)\):", text, re.M)
        others = texts[inherited[1]] if inherited else shared.read_text(encoding="utf-8") if of_all else ""
        source = text if re.search(r"^    env_id: str = ", text, re.M) else others
        said = re.search(r"^    env_id: str = (.*)", source, re.M)
        if said:  # where a name or nothing stands there, the first id that the file names
            ids = [id for id in [*ID.findall(said[1]), *ID.findall(source)] if id in registry.ROWS]
            found.update({name: ids[0]} if ids else {})
    return {name: id for name, id in found.items() if name != "ppo"}


def example(root: Path) -> str:
    """The rules of `EXAMPLE` as a code block: the file without double blank lines and what it does when it is run."""
    rules = (root / EXAMPLE).read_text(encoding="utf-8").partition("\nif __name__")[0]
    return "```python\n" + rules.strip().replace("\n\n\n", "\n\n") + "\n```"


def page_name(page: Page) -> str:
    """File name of a page."""
    return f"{page.name}.md"


def write(root: Path) -> list[Path]:
    """Writes the pages and the tables. Returns the files that changed."""
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write docs/environments and the tables")
    action.add_argument("--check", action="store_true", help="fail where they are stale")
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
        text = _filled(_with_picture(pages.shared_page(page, rows), root, page, rows[0].id), root)
        files[root / PAGES / page_name(page)] = f"{note}\n\n{text}\n{training_section(root, rows)}{SEE_ALSO}"
    for name in (folder.name for folder in pkgutil.iter_modules(games.__path__) if folder.ispkg):
        files[root / API / f"{name}.md"] = reference(root, name)
    for page in (
        README,
        RESULTS,
        CHOICE,
        KEYWORDS,
        SPEED,
        *(result_tables.FIELDS / path.name for path in (root / result_tables.FIELDS).glob("*.md")),
    ):
        if (root / page).exists():
            files[root / page] = _filled((root / page).read_text(encoding="utf-8"), root)
    return files


def _filled(text: str, root: Path) -> str:
    for name, make in _tables(root).items():
        text = _fill(text, name, make)
    if "<!-- begin: speed: " in text:
        for peer, table in result_tables.speed_tables(root).items():
            text = _fill(text, f"speed: {peer}", lambda table=table: table)
    return text


def _tables(root: Path) -> dict[str, Callable[[], str]]:
    """The text between the markers of a name."""
    return {
        "environments": readme_table,
        "gallery": lambda: gallery_table(root),
        "example": lambda: example(root),
        "options": option_table,
        "claims": lambda: result_tables.claims_table(root),
        "baselines": lambda: baseline_table(root),
        "battles": lambda: result_tables.battle_table(root),
        "what battles measure": lambda: result_tables.measures_table(root),
        "methods at equal time": lambda: result_tables.methods_table(root, "time"),
        "methods at equal decisions": lambda: result_tables.methods_table(root, "decisions"),
        "mix": lambda: result_tables.mix_table(root),
        "mates": lambda: result_tables.mates_table(root),
        "adversary": lambda: result_tables.adversary_table(root),
        "more battles": lambda: result_tables.more_battles_table(root),
        "duel": lambda: result_tables.duel_table(root),
        "pursuit": lambda: result_tables.pursuit_table(root),
        "messages": lambda: result_tables.messages_table(root),
        "orders": lambda: result_tables.orders_table(root),
        "robots": lambda: result_tables.robots_table(root, "seqwm_tasks"),
        "modes": lambda: result_tables.robots_table(root, "seqwm_modes"),
        "copy": lambda: result_tables.copy_table(root),
        "settings": lambda: result_tables.settings_table(root),
        "ordered": lambda: result_tables.ordered_table(root, "poisson_tasks"),
        "atoms": lambda: result_tables.ordered_table(root, "poisson_atoms"),
        "heads": lambda: result_tables.ordered_table(root, "poisson_modes"),
        "humanoid": lambda: result_tables.ordered_table(root, "humanoid"),
        "deviations": lambda: result_tables.deviations_table(root),
        "gradient": lambda: result_tables.gradient_table(root),
    }


def _with_picture(text: str, root: Path, page: Page, id: str) -> str:
    """The page with the picture of ``gallery.py`` under its headline, if there is one."""
    if not (root / gallery.FOLDER / gallery.picture_name(page)).exists():
        return text
    title, headline, rest = text.split("\n\n", 2)
    link = f"![A match of {id}](../images/environments/{gallery.picture_name(page)})"
    return "\n\n".join([title, headline, link, rest])


def _fill(text: str, name: str, make: Callable[[], str]) -> str:
    """The text with the table between its markers; the text itself where it has no such markers."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    head, found, rest = text.partition(begin)
    if not found or end not in rest:
        return text
    return f"{head}{begin}\n{make()}\n{end}{rest.partition(end)[2]}"


def _orphans(root: Path) -> list[Path]:
    """Pages that were made once and are no more; those whose optional package is missing are not among them."""
    known = {page_name(page) for page, _ in registry.pages()}
    strangers = sorted(p for p in (root / PAGES).glob("*.md") if p.name not in known)
    return [p for p in strangers if p.read_text(encoding="utf-8").startswith(MADE_BY)]


def _home(row: Row) -> str:
    return row.factory.partition(":")[0] if isinstance(row.factory, str) else row.factory.__module__


if __name__ == "__main__":
    raise SystemExit(main())
