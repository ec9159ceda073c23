"""Pages of the environments, made from the docstrings of their factories' modules and from the games' own tables.

A docstring writes ``<!-- table: action -->``, ``<!-- table: observation -->`` and ``<!-- table: parameters -->`` where
the tables go, so that text stands beside the rules and numbers are never copied by hand. ``palaestra info ID`` prints a
page; ``python -m palaestra.docs --write`` writes `docs/environments/` and the tables in README.md, ``--check`` fails
where they are stale.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from palaestra import gallery, registry
from palaestra.core.fields import Choice, Field, table_rows
from palaestra.core.game import Game

SECTIONS = (
    "Description",
    "Action Space",
    "Observation Space",
    "Rewards",
    "Starting State",
    "Episode End",
    "Arguments",
    "Version History",
)
"""Headings that every page has, in this order."""

COMMAND = "python -m palaestra.docs --write"
PAGES = Path("docs", "environments")
BASELINES = Path("baselines", "palaestra_baselines")
GALLERY_WIDTH = 260
"""Width of a picture in README.md, pixels."""
NO_METHODS = ("__init__", "demo", "figures", "team_figures")
"""Files of the baselines that are no method."""
EXAMPLE = Path("examples", "add_a_game.py")
"""Shown in README.md."""
SUITE_INFO = (
    Field("winner", about="team that won (a name, in batches its number), None or -1 for nobody; valid at the end"),
    Field("end_reason", about="why the match ended (a name, in batches its number); valid at the end"),
)
ILLEGAL = Field("illegal", about="actions so far that the mask forbade, each replaced by its no-op")


def docstring(id: str) -> str:
    """The page's text: docstring of the factory's module, or of the factory itself where that has the sections.

    Raises:
        KeyError: No such id; suggests the near one.
    """
    factory = registry.row(id).factory
    if isinstance(factory, str):
        module, _, name = factory.partition(":")
        factory = getattr(importlib.import_module(module), name)
    own = inspect.getdoc(factory) or ""
    if "## " in own:
        return own
    module = sys.modules.get(getattr(factory, "__module__", ""))
    return inspect.cleandoc(module.__doc__ or "") if module is not None else ""


def page(id: str, **keywords: Any) -> str:
    """The whole page of an id as Markdown.

    Args:
        id: Registered id.
        **keywords: Structural keywords and parameters, as `palaestra.make_batch` takes them.
    """
    game, parameters = registry.make_game(id, **keywords)
    headline, _, body = docstring(id).partition("\n")
    tables = {
        "action": action_tables(game),
        "observation": observation_tables(game),
        "parameters": parameter_table(game),
    }
    for name, table in tables.items():
        body = body.replace(f"<!-- table: {name} -->", table)
    body = _before_section(body, "Version History", "\n\n".join([*_opponents(game), *_info(game)]))
    parts = [f"# {id}", headline.strip(), _facts(id, game, parameters), body.strip()]
    return "\n\n".join(part for part in parts if part) + "\n"


def names(game: Game) -> list[str]:
    """Names of all actions, observations, parameters and info fields: what a page has to mention."""
    fields = [*game.parameters, *game.info, *game.team_observation, *game.lane_observation]
    for role in game.roles:
        fields += [*role.action, *role.observation]
    return list(dict.fromkeys(f.name for f in fields))


def action_tables(game: Game) -> str:
    """Action tables of all roles."""
    return _by_role(game, [(role.name, role.agents, role.action) for role in game.roles])


def observation_tables(game: Game) -> str:
    """Observation tables of all roles, of the teams and of the match."""
    tables = [_by_role(game, [(role.name, role.agents, role.observation) for role in game.roles])]
    if game.team_observation:
        tables.append(
            f"What a team sees, the same for all its members:\n\n{markdown_table(table_rows(game.team_observation))}"
        )
    if game.lane_observation:
        tables.append(f"What everybody sees:\n\n{markdown_table(table_rows(game.lane_observation))}")
    return "\n\n".join(tables)


def parameter_table(game: Game) -> str:
    """Table of the parameters, the horizon first."""
    return markdown_table(table_rows(game.parameters))


def markdown_table(rows: Sequence[dict[str, str]]) -> str:
    """Rows as a Markdown table; columns that are empty in all rows are left out."""
    if not rows:
        return "None."
    columns = [c for c in rows[0] if any(row[c] for row in rows)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [f"`{row[c]}`" if c == "name" else row[c].replace("|", "\\|").strip() for c in columns]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def readme_table() -> str:
    """Table of all ids that can be made here."""
    rows = []
    for id, row in registry.ROWS.items():
        if (game := _made(id)) is not None:
            players = " against ".join(_count(team, len(slots)) for team, slots in game.teams.items())
            players += "s" if len(game.teams) == 1 and len(game.agents) > 1 else ""
            link = f"[`{id}`]({(PAGES / page_name(id)).as_posix()})"
            rows.append((row.family, link, players, _actions_in_short(game), game.reproducibility, row.about))
    lines = ["| family | id | players | actions | bits | what |", "|---|---|---|---|---|---|"]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows]
    return "\n".join(lines)


def baseline_table(root: Path) -> str:
    """Table of the methods in `baselines/`, from the first line of each file's docstring."""
    lines = ["| method | what | run |", "|---|---|---|"]
    for path in sorted((root / BASELINES).glob("*.py")):
        if path.stem in NO_METHODS:
            continue
        about = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]
        link = f"[`{path.stem}`]({(BASELINES / path.name).as_posix()})"
        lines.append(f"| {link} | {about.rstrip('.')} | `palaestra train {path.stem}` |")
    return "\n".join(lines)


def example(root: Path) -> str:
    """The rules of `EXAMPLE` as a code block: the file without what it does when it is run."""
    rules = (root / EXAMPLE).read_text(encoding="utf-8").partition("\nif __name__")[0]
    return f"```python\n{rules.strip()}\n```"


def page_name(id: str) -> str:
    """File name of an id's page."""
    return f"{id.split('/')[-1]}.md"


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


def _made(id: str) -> Game | None:
    """The game, or None where an optional package is missing or the namespace is not ours."""
    if not id.startswith("palaestra/"):
        return None
    try:
        return registry.make_game(id)[0]
    except ImportError:
        return None


def _files(root: Path) -> dict[Path, str]:
    files = {}
    for id in registry.ROWS:
        if _made(id) is not None:
            note = f"<!-- Made by {COMMAND} from the docstring of {_home(id)}: edit that. -->"
            files[root / PAGES / page_name(id)] = f"{note}\n\n{_with_picture(page(id), root, id)}"
    readme = root / "README.md"
    if readme.exists():
        text = readme.read_text(encoding="utf-8")
        filled = _fill(_fill(text, "environments", readme_table()), "baselines", baseline_table(root))
        filled = _fill(filled, "gallery", gallery_table(root))
        if (root / EXAMPLE).exists():
            filled = _fill(filled, "example", example(root))
        if filled != text or "<!-- begin: environments -->" in text:
            files[readme] = filled
    return files


def _with_picture(text: str, root: Path, id: str) -> str:
    """The page with the picture of `palaestra.gallery` under its headline, if there is one."""
    if not (root / gallery.FOLDER / gallery.picture_name(id)).exists():
        return text
    title, headline, rest = text.split("\n\n", 2)
    link = f"![A match of {id}](../images/environments/{gallery.picture_name(id)})"
    return "\n\n".join([title, headline, link, rest])


def gallery_table(root: Path) -> str:
    """Pictures of the ids that have one, a few a row, each a link to its page; one of those with the same rules."""
    there = [id for id in registry.ROWS if (root / gallery.FOLDER / gallery.picture_name(id)).exists()]
    shown = {registry.ROWS[id].factory: id for id in there if registry.ROWS[id].family != "calibration"}
    cells = [
        f'<a href="{(PAGES / page_name(id)).as_posix()}"><img width="{GALLERY_WIDTH}" alt="{id}" '
        f'src="{(gallery.FOLDER / gallery.picture_name(id)).as_posix()}"></a>'
        for id in shown.values()
    ]
    return "\n".join(cells)


def _fill(text: str, name: str, table: str) -> str:
    """The text with the table between its markers; the text itself where it has no such markers."""
    begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
    head, found, rest = text.partition(begin)
    if not found or end not in rest:
        return text
    return f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"


def _orphans(root: Path) -> list[Path]:
    """Pages of ids that are no more."""
    known = {page_name(id) for id in registry.ROWS}
    folder = root / PAGES
    return sorted(p for p in folder.glob("*-v*.md") if p.name not in known) if folder.is_dir() else []


def _home(id: str) -> str:
    factory = registry.row(id).factory
    return factory.partition(":")[0] if isinstance(factory, str) else factory.__module__


def _facts(id: str, game: Game, parameters: dict[str, float]) -> str:
    module = registry.zoo_name(id)
    horizon = parameters.get("horizon", game.horizon)
    teams = "; ".join(f"{team}: {_agents([game.agents[s] for s in slots])}" for team, slots in game.teams.items())
    facts = [
        ("Gymnasium", f'`gymnasium.make("{id}")`, `gymnasium.make_vec("{id}", num_envs=N)`'),
        ("PettingZoo", f"`from palaestra.zoo import {module}`, `{module}.parallel_env()`"),
        ("batch", f'`palaestra.make_batch("{id}", num_envs=N)`'),
        ("teams", teams),
        ("rewards", "zero-sum" if game.zero_sum else "one a team"),
        ("masks", "yes" if game.legal is not None else "no: nothing is ever forbidden"),
        ("horizon", f"{horizon:g} decisions, {game.render_fps:g} a second"),
        ("bits", _bits(game)),
    ]
    if game.codecs:
        facts.append(("codecs", ", ".join(f'`codec="{name}"`' for name in game.codecs)))
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in facts)])


def _bits(game: Game) -> str:
    if game.reproducibility == "exact":
        return "exact: the same on every machine"
    return "pinned: the same wherever engine, compiler and platform are the same"


def _agents(members: list[str]) -> str:
    if len(members) <= 4:
        return ", ".join(f"`{m}`" for m in members)
    return f"`{members[0]}` to `{members[-1]}` ({len(members)})"


def _count(team: str, size: int) -> str:
    return team if size == 1 else f"{size} {team}"


def _by_role(game: Game, tables: list[tuple[str, tuple[str, ...], Iterable[Any]]]) -> str:
    if len(tables) == 1:
        return markdown_table(table_rows(tables[0][2]))
    parts = []
    for name, members, fields in tables:
        parts.append(f"**{name}** ({_agents(list(members))}):\n\n{markdown_table(table_rows(fields))}")
    return "\n\n".join(parts)


def _opponents(game: Game) -> list[str]:
    if len(game.teams) == 1 and not game.scripts:
        return []
    scripts = [*game.scripts, "random", *(["mix"] if game.scripts else [])]
    told = ", ".join(f'`"{name}"`' for name in scripts)
    text = f'`opponent=` takes {told}, a callable, a saved policy; the default is `"{game.default_opponent}"`.'
    if game.scripts:
        text += " `mix` draws a script for each match."
        text += f' `"{game.scripts[0]}:0.7"` takes 70 % of its decisions itself, the others at random (strength 0.7).'
    return [f"## Opponents\n\n{text}"]


def _info(game: Game) -> list[str]:
    fields = [*SUITE_INFO, *([ILLEGAL] if game.legal is not None else []), *game.info]
    rows = [
        {"name": r["name"], "shape": r["shape"], "unit": r["unit"], "about": r["about"]} for r in table_rows(fields)
    ]
    reasons = ["1 `horizon`", *(f"{number} `{name}`" for number, name in enumerate(game.end_reasons, 2))]
    return [f"## Info\n\n{markdown_table(rows)}\n\nEnd reasons: {', '.join(reasons)}."]


def _before_section(body: str, title: str, text: str) -> str:
    found = re.search(rf"^## {title}$", body, re.MULTILINE)
    if found is None:
        return f"{body.rstrip()}\n\n{text}"
    return f"{body[: found.start()].rstrip()}\n\n{text}\n\n{body[found.start() :]}"


def _actions_in_short(game: Game) -> str:
    kinds = []
    for role in game.roles:
        choices = [str(f.n) for f in role.action if isinstance(f, Choice)]
        reals = sum(f.size for f in role.action if not isinstance(f, Choice))
        parts = [f"one of {' x '.join(choices)}"] if choices else []
        kinds.append(" and ".join([*parts, *([f"{reals} numbers"] if reals else [])]))
    return "; ".join(dict.fromkeys(kinds))


if __name__ == "__main__":
    raise SystemExit(main())
