"""The page of an environment as Markdown, made from the docstring of its factory's module and its games' own tables.

A docstring writes ``<!-- table: action -->``, ``<!-- table: observation -->`` and ``<!-- table: parameters -->`` where
the tables go, so that text is beside the rules and numbers are never copied by hand. `page` is about one id with
its own sizes, `shared_page` about all presets of a factory: there, one table has the quantities of all of them.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

from gymnasium import spaces

from palaestra import registry
from palaestra.core.contract import factories
from palaestra.core.contract.fields import table_rows
from palaestra.core.contract.options import options_of
from palaestra.core.contract.spaces import action_space
from palaestra.core.faces.screen import render_modes
from palaestra.game import Choice, Field, Game, Page, Role, Row
from palaestra.pages.page_spaces import names_of, space_rows, with_indices

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
MARKERS = tuple(f"<!-- table: {name} -->" for name in ("action", "observation", "parameters"))
"""Where the tables go: each is in every docstring."""
OPTIONS = "<!-- table: options -->"
"""Likewise in the docstring of a factory that has options."""
TEMPLATE = """MyGame: what it is, in one line.

## Description

Who plays, on what, what for.

## Action Space

<!-- table: action -->

## Observation Space

<!-- table: observation -->

## Rewards

What is paid, to whom, when.

## Starting State

What is drawn, from which distribution.

## Episode End

Each end reason, and who has won; the horizon.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""
"""A docstring with everything that a page needs: `palaestra.testing` refuses others."""
FOR_THE_REFERENCE = re.compile(r"^(?:Args|Returns|Raises):\n(?:(?: .*)?\n| .+\Z)*", re.MULTILINE)
"""Parts of a Google docstring."""
SUITE_INFO = (
    Field("winner", about="number of the team that won, -1 for none; names: `env.unwrapped.team_names`"),
    Field("end_reason", about="number of the reason why the match ended, 0 before; names: `env.unwrapped.end_reasons`"),
)
ILLEGAL = Field("illegal", about="actions so far that the mask forbade, each replaced by its no-op")
MOST_LISTED = 3
"""Values of the presets that are listed in one cell; where there are more, the cell has ``by preset``."""
OWN_PAGE = "The tables below are of all presets: `palaestra info ID` prints those of one."

Rows = list[dict[str, str]]


class Preset(NamedTuple):
    """An id with its rules, as they are shown without a representation."""

    row: Row
    game: Game
    parameters: dict[str, float]


def page(id: str, **keywords: Any) -> str:
    """The page of one id.

    Args:
        id: Registered id.
        **keywords: Structural keywords and parameters, as `palaestra.make_batch` takes them.

    Raises:
        KeyError: No such id; suggests the near one.
    """
    registry.make_game(id, **keywords)  # refuses what is no representation
    return _page(id, [_preset(registry.row(id), {**keywords, "observation": "flat"})])


def shared_page(page: Page, rows: Sequence[Row]) -> str:
    """The page of all presets of a factory; for a single one, the same as `page` under another title."""
    return _page(page.name, [_preset(row, {"observation": "flat"}) for row in rows])


def _preset(row: Row, keywords: dict[str, Any]) -> Preset:
    return Preset(row, *registry.make_game(row.id, **keywords))


def docstring(id: str) -> str:
    """The page's text: docstring of the factory's module, or of the factory itself where that has sections.

    Sections that the factory lacks are those of its module, so that factories of one module share what is the same.
    What the reference of the API needs (``Args:``, ``Raises:``) is left out.

    Raises:
        KeyError: No such id; suggests the near one.
    """
    factory = factories.load(registry.row(id).factory)
    own = inspect.getdoc(factory) or ""
    module = sys.modules.get(getattr(factory, "__module__", ""))
    shared = inspect.cleandoc(module.__doc__ or "") if module is not None else ""
    return _completed(FOR_THE_REFERENCE.sub("", own), shared) if "## " in own else shared


def _completed(own: str, shared: str) -> str:
    """A docstring and, each in its place, those of `SECTIONS` that it lacks and ``shared`` has."""
    head, sections = _split(own)
    for title, text in _split(shared)[1]:
        titles = [known for known, _ in sections]
        if title in SECTIONS and title not in titles:
            later = SECTIONS[SECTIONS.index(title) + 1 :]
            place = next((k for k, known in enumerate(titles) if known in later), len(titles))
            sections.insert(place, (title, text))
    return "\n\n".join([head, *(f"## {title}\n\n{text}" for title, text in sections)])


def _split(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The text above the first heading, and the sections: title and text."""
    head, *parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return head.strip(), [(title.strip(), section.strip()) for title, section in pairs]


def names(game: Game) -> list[str]:
    """What a page has to mention.

    Names of all actions, parameters, info fields, end reasons and observations, those of the representations and the
    columns of tables (``table.column``) among them.
    """
    fields = [*game.parameters, *game.info, *(f for role in game.roles for f in role.action)]
    for view in (game, *map(game.represented, game.representations)):
        fields += [*view.team_observation, *view.lane_observation, *(f for r in view.roles for f in r.observation)]
    reasons = ("horizon", *game.end_reasons, *game.truncation_reasons)
    return list(dict.fromkeys([*(row["name"] for row in table_rows(fields)), *reasons]))


# -- tables ------------------------------------------------------------------------------------------------------------


def action_tables(*games: Game) -> str:
    """Action tables of all roles."""
    return _by_role(games, "action")


def observation_tables(*games: Game) -> str:
    """Observation tables of all roles, of the teams and of the match; then those of each representation."""
    named = dict.fromkeys(name for game in games for name in game.representations)
    own = _observation_tables(games)
    if not named:
        return own
    parts = [f"{_quoted(forms_of(games[0]), ' or ')}:\n\n{own}"]
    for name in named:
        having = [game for game in games if name in game.representations]
        about = having[0].representations[name].about
        lacking = f" (in {len(having)} of {len(games)} presets)" if len(having) < len(games) else ""
        tables = _observation_tables([game.represented(name) for game in having])
        parts.append(f"{_quoted([name])}, {about}{lacking}:\n\n{tables}")
    return "\n\n".join(parts)


def forms_of(game: Game) -> list[str]:
    """Options of ``observation=`` besides representations: ``"flat"`` where all that an agent sees is of one type."""
    shared = {f.dtype for f in (*game.team_observation, *game.lane_observation)}
    flat = all(len({f.dtype for f in role.observation} | shared) == 1 for role in game.roles)
    return ["flat", "dict"] if flat else ["dict"]


def _quoted(options: Sequence[str], between: str = ", ") -> str:
    """``observation="flat"`` or ``"dict"``, in code."""
    return between.join(f'`observation="{w}"`' if k == 0 else f'`"{w}"`' for k, w in enumerate(options))


def _observation_tables(games: Sequence[Game]) -> str:
    tables = [_by_role(games, "observation")]
    team = _shared_table(games, lambda game: game.team_observation, lambda game: ())
    lane = _shared_table(games, lambda game: game.lane_observation, lambda game: game.team_observation)
    if team:
        tables.append(f"What a team sees, the same for all its members:\n\n{markdown_table(team)}")
    if lane:
        tables.append(f"What all agents see:\n\n{markdown_table(lane)}")
    return "\n\n".join(tables)


def parameter_table(*games: Game) -> str:
    """Table of the parameters, the horizon first."""
    return markdown_table(_table(game.parameters for game in games))


def option_table(row: Row) -> str:
    """Table of the options of a factory."""
    return markdown_table([option.row() for option in options_of(factories.load(row.factory))])


def preset_table(presets: Sequence[Preset]) -> str:
    """Table of the ids of one factory: their keywords, and how large they are."""
    lines = ["| id | keywords | agents | actions | observation | what |", "|---|---|---|---|---|---|"]
    for preset in presets:
        keywords = f"`{keywords_of(preset.row)}`" if preset.row.kwargs else ""
        sizes, about = observations_of(preset.game.shown_as(None)[0]), preset.row.about
        cells = (f"`{preset.row.id}`", keywords, players_of(preset.game), actions_of(preset.game), sizes, about)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def markdown_table(rows: Sequence[dict[str, str]]) -> str:
    """Rows as a Markdown table; columns that are empty in all rows are left out."""
    if not rows:
        return "None."
    columns = [c for c in dict.fromkeys(c for row in rows for c in row) if any(row.get(c) for row in rows)]
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for row in rows:
        texts = [row.get(c, "").replace("|", "\\|").replace("\n", " ").strip() for c in columns]
        cells = [f"`{text}`" if c == "name" else text for c, text in zip(columns, texts, strict=True)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def merged(tables: Sequence[Rows]) -> Rows:
    """One table that has the rows of all: differing texts are listed, rows that some lack are marked."""
    rows = []
    for name in dict.fromkeys(row["name"] for table in tables for row in table):
        found = [row for table in tables for row in table if row["name"] == name]
        row = {column: _cell([other.get(column, "") for other in found]) for column in found[0]}
        about = found[0]["about"]
        notes = ["differs by preset"] if any(other["about"] != about for other in found) else []
        notes += [f"in {len(found)} of {len(tables)} presets"] if len(found) < len(tables) else []
        rows.append({**row, "about": f"{about} ({', '.join(notes)})" if notes else about})
    return rows


def _cell(texts: Sequence[str]) -> str:
    """Only shapes can be empty: those of single numbers."""
    return either(text or "scalar" for text in texts) if any(texts) else ""


def either(values: Iterable[str]) -> str:
    """The values of the presets in one cell, each once."""
    found = list(dict.fromkeys(values))
    return " or ".join(found) if len(found) <= MOST_LISTED else "by preset"


def _table(fields: Iterable[Iterable[Any]]) -> Rows:
    """Rows of one table, from the fields of each preset."""
    return _one_table([table_rows(own) for own in fields])


def _one_table(tables: Sequence[Rows]) -> Rows:
    return tables[0] if len(tables) == 1 else merged(tables)


def _observed(game: Game, role: Role) -> Rows:
    """Rows of what an agent sees itself, with the place in its flat vector where it has one."""
    rows = table_rows(role.observation)
    return with_indices(rows, role.observation, 0) if "flat" in forms_of(game) else rows


def _shared_table(games: Sequence[Game], of: Callable[[Game], Any], before: Callable[[Game], Any]) -> Rows:
    """Rows of shared observations, which follow the agent's own in the flat vector."""
    tables = []
    for game in games:
        own = {sum(f.size for f in role.observation) for role in game.roles}
        rows, fields = table_rows(of(game)), of(game)
        known = len(own) == 1 and "flat" in forms_of(game)
        begin = own.pop() + sum(f.size for f in before(game))
        tables.append(with_indices(rows, fields, begin) if known else rows)
    return _one_table(tables)


def _by_role(games: Sequence[Game], kind: Literal["action", "observation"]) -> str:
    tables = {}
    for name in dict.fromkeys(role.name for game in games for role in game.roles):
        having = [(game, role) for game in games for role in game.roles if role.name == name]
        roles = [role for _, role in having]
        members = {role.agents for role in roles}
        note = f" ({names_of(roles[0].agents)})" if len(members) == 1 else ""
        note += f", in {len(roles)} of {len(games)} presets" if len(roles) < len(games) else ""
        rows = [_observed(*own) for own in having] if kind == "observation" else [table_rows(r.action) for r in roles]
        tables[f"**{name}**{note}"] = markdown_table(_one_table(rows))
    if len(tables) == 1:
        return next(iter(tables.values()))
    return "\n\n".join(f"{title}:\n\n{table}" for title, table in tables.items())


# -- a game in a few lines ---------------------------------------------------------------------------------------------


def keywords_of(row: Row) -> str:
    """``rows=3, columns=3``."""
    return ", ".join(f"{name}={value!r}" for name, value in row.kwargs.items())


def players_of(game: Game) -> str:
    """``3 red against blue``."""
    sizes = {team: len(slots) for team, slots in game.teams.items()}
    text = " against ".join(team if size == 1 else f"{size} {team}" for team, size in sizes.items())
    return f"{text}s" if len(sizes) == 1 and len(game.agents) > 1 else text


def actions_of(game: Game) -> str:
    """Action spaces of one agent of each role, each once."""
    return "; ".join(dict.fromkeys(f"`{_space(action_space(role.action))}`" for role in game.roles))


def observations_of(game: Game) -> str:
    """How many numbers one agent of each role sees, those that it shares with others among them."""
    shared = sum(f.size for f in (*game.team_observation, *game.lane_observation))
    sizes = {role.name: str(sum(f.size for f in role.observation) + shared) for role in game.roles}
    if len(set(sizes.values())) == 1:
        return next(iter(sizes.values()))
    return ", ".join(f"{name} {size}" for name, size in sizes.items())


def _space(space: spaces.Space) -> str:
    if isinstance(space, spaces.Discrete):
        return f"Discrete({space.n})"
    if isinstance(space, spaces.MultiDiscrete):
        sizes = space.nvec.tolist()
        alike = len(set(sizes)) == 1 and len(sizes) > MOST_LISTED
        return f"MultiDiscrete([{sizes[0]}] * {len(sizes)})" if alike else f"MultiDiscrete({sizes})"
    if isinstance(space, spaces.Dict):
        return f"Dict({', '.join(f'{name}: {_space(member)}' for name, member in space.items())})"
    return f"{type(space).__name__}{space.shape}"


# -- parts -------------------------------------------------------------------------------------------------------------


def _page(title: str, presets: Sequence[Preset]) -> str:
    games = [preset.game for preset in presets]
    headline, _, body = docstring(presets[0].row.id).partition("\n")
    tables = {
        "action": action_tables(*games),
        "observation": observation_tables(*games),
        "parameters": parameter_table(*games),
        "options": option_table(presets[0].row),
    }
    for name, table in tables.items():
        body = body.replace(f"<!-- table: {name} -->", table)
    added = [*_opponents(presets), *_info(games)]
    body = _before_section(body, "Version History", "\n\n".join(added))
    parts = [f"# {title}", headline.strip(), _facts(presets), _usage(presets[0]), _spaces(presets[0], len(presets) > 1)]
    if len(presets) > 1:
        parts.append(f"## Presets\n\n{preset_table(presets)}\n\n{OWN_PAGE}")
    return "\n\n".join(part for part in [*parts, body.strip()] if part) + "\n"


def _facts(presets: Sequence[Preset]) -> str:
    """Table of how to make it and what it is; of several presets the first is made."""
    row = presets[0].row
    module = registry.zoo_name(row.id)
    facts = {
        "Gymnasium": f'`gymnasium.make("{row.id}")`, `gymnasium.make_vec("{row.id}", num_envs=N)`',
        "PettingZoo": f"`from palaestra.zoo import {module}`, `{module}.parallel_env()`",
        "batch": f'`palaestra.make_batch("{row.id}", num_envs=N)`',
        "scripts of other libraries": f"`palaestra:{row.id}` as the id, which imports the suite; lanes instead of "
        "processes ([why](../../README.md#with-your-library))",
    }
    if len(presets) == 1:
        facts["keywords"] = f"`{keywords_of(row)}`" if row.kwargs else ""
        facts["teams"] = _teams(presets[0].game)
    listed = [_facts_of(preset) for preset in presets]
    for name in listed[0]:
        facts[name] = either(filter(None, (facts_of_one[name] for facts_of_one in listed)))
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in facts.items() if text)])


def _usage(preset: Preset) -> str:
    """A script of five lines."""
    row, game = preset.row, preset.game
    home = row.factory.partition(":")[0] if isinstance(row.factory, str) else row.factory.__module__
    opponent = f', opponent="{game.default_opponent}"' if len(game.teams) > 1 else ""
    lines = [
        "import gymnasium",
        f"import {'palaestra' if row.id.startswith('palaestra/') else home}",
        "",
        f'env = gymnasium.make("{row.id}"{opponent})',
        "observation, info = env.reset(seed=7)",
        "observation, reward, terminated, truncated, info = env.step(env.action_space.sample())",
    ]
    return "\n".join(["```python", *lines, "```"])


def _spaces(preset: Preset, named: bool) -> str:
    """Table of the spaces by interface; ``low`` and ``high`` are the columns of the tables."""
    game = preset.game
    lines = ["| interface | observation | action |", "|---|---|---|", *(_cells(*row) for row in space_rows(game))]
    title = f"## Spaces of {preset.row.id}" if named else "## Spaces"
    text = "Gymnasium controls a whole team; a player is a callable on n lanes."
    if "flat" in forms_of(game):
        text += " The column *index* below is the place of a field in the vector of one agent."
        if any(len(slots) > 1 for slots in game.teams.values()):
            text += " A team's vector is those of its members, one after another."
    return "\n\n".join([title, "\n".join(lines), text])


def _cells(*texts: str) -> str:
    return "| " + " | ".join(texts) + " |"


def _facts_of(preset: Preset) -> dict[str, str]:
    game = preset.game
    horizon = preset.parameters.get("horizon", game.horizon)
    return {
        "observation": _views(game),
        "rewards": _rewards(game),
        "masks": _masks(game),
        "horizon": f"{horizon:g} decisions, {_pace(game.render_fps)}",
        "determinism": _determinism(game),
        "licence of the model": getattr(game.model_digest, "licence", str)(),
        "codecs": _codecs(game),
        "render": ", ".join(f'`"{mode}"`' for mode in render_modes(game)),
    }


def _pace(per_second: float) -> str:
    return f"{per_second:g} a second" if per_second >= 1 else f"one every {1 / per_second:g} s"


def _views(game: Game) -> str:
    """What ``observation=`` takes, where that is not the usual."""
    if not game.representations and game.default_observation == "flat":
        return ""
    text = f'{_quoted([*forms_of(game), *game.representations])}; the default is `"{game.default_observation}"`'
    flat = [name for name, shown in game.representations.items() if shown.default_form == "flat"]
    return text + "".join(f'; `"{name}:dict"` by name' for name in flat)


def _rewards(game: Game) -> str:
    if game.zero_sum:
        text = "zero-sum"
    else:
        text = "one per agent; Gymnasium gives the sum" if game.reward == "agent" else "one shared reward per team"
    return text if game.reward_dtype == "f4" else f"{text}; float64"


def _masks(game: Game) -> str:
    if game.legal is None:
        return "no action masks: every action is legal"
    lists = dict.fromkeys(
        f'; for `{c.name}` a list of at most {c.candidates} ids in `info["candidates"]`' for c in listed_choices(game)
    )
    return "yes" + "".join(lists)


def listed_choices(game: Game) -> list[Choice]:
    """The choices whose legal alternatives are given as a list."""
    choices = (a for role in game.roles for a in role.action if isinstance(a, Choice))
    return [choice for choice in choices if choice.candidates is not None]


def _codecs(game: Game) -> str:
    texts = [f'`codec="{name}"`' + (" (default)" if name == game.default_codec else "") for name in game.codecs]
    for word, shown in game.representations.items():
        texts += [f'`codec="{name}"` (with `observation="{word}"`)' for name in shown.codecs]
    return ", ".join([*texts, *(['`codec="none"` (arrays)'] if game.default_codec else [])])


def _determinism(game: Game) -> str:
    if game.determinism == "cross-platform":
        return "cross-platform: bitwise equal on every machine"
    return "per-platform: bitwise equal where engine, compiler and platform are equal"


def _teams(game: Game) -> str:
    return "; ".join(f"{team}: {names_of([game.agents[s] for s in slots])}" for team, slots in game.teams.items())


def _opponents(presets: Sequence[Preset]) -> list[str]:
    """Who may play; where presets differ, each text names its own."""
    texts: dict[str, list[str]] = {}
    for row, game in ((preset.row, preset.game) for preset in presets):
        if len(game.teams) > 1 or game.scripts:
            texts.setdefault(_opponents_of(game), []).append(f"`{row.id}`")
    if len(texts) > 1:
        texts = {f"{', '.join(ids)}: {text}": ids for text, ids in texts.items()}
    return ["## Opponents\n\n" + "\n\n".join(texts)] if texts else []


def _opponents_of(game: Game) -> str:
    script = next(iter(game.scripts), "")
    if len(game.teams) == 1:
        names = ", ".join(f"`{name}`" for name in game.scripts)
        return (
            f"There is one team, so there is no opponent. Scripts that play it: {names}. They play where a player is "
            f'named: `palaestra eval ID --a {script}`, `batch.set_opponent("{next(iter(game.teams))}", '
            f'"{script}")`.'
        )
    scripts = [*game.scripts, "random", *game.mixtures]
    listed = ", ".join(f'`"{name}"`' for name in scripts)
    text = f'`opponent=` takes {listed}, a callable, a saved policy; the default is `"{game.default_opponent}"`.'
    if script:
        text += _mixtures_of(game)
        text += f' `"{script}:0.7"` follows the script in 70 % of its decisions, the rest are random.'
    return text


def _mixtures_of(game: Game) -> str:
    if len(game.scripts) < 2:
        return ""
    if not game.held_out:
        return " `mix` draws one of the scripts for each match."
    held_out = ", ".join(f"`{name}`" for name in game.held_out)
    return (
        f" Held out for evaluation: {held_out}. For each match `held_out` draws one of these, `mix` one of the other "
        "scripts."
    )


def _info(games: Sequence[Game]) -> list[str]:
    fields = [(*SUITE_INFO, *([ILLEGAL] if game.legal is not None else []), *game.info) for game in games]
    rows = [{c: text for c, text in row.items() if c not in ("low", "high")} for row in _table(fields)]
    reasons = dict.fromkeys(_end_reasons(game) for game in games)
    return [f"## Info\n\n{markdown_table(rows)}\n\n" + "\n\n".join(reasons)]


def _end_reasons(game: Game) -> str:
    """The names by number; where rules truncate too, those that do are marked."""
    cut = {"horizon", *game.truncation_reasons} if game.truncation_reasons else set()
    names = ["horizon", *game.end_reasons, *game.truncation_reasons]
    reasons = [f"{k} `{name}`{' (truncates)' if name in cut else ''}" for k, name in enumerate(names, 1)]
    return f"End reasons: {', '.join(reasons)}."


def _before_section(body: str, title: str, text: str) -> str:
    found = re.search(rf"^## {title}$", body, re.MULTILINE)
    if found is None:
        return f"{body.rstrip()}\n\n{text}"
    return f"{body[: found.start()].rstrip()}\n\n{text}\n\n{body[found.start() :]}"
