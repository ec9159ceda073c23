"""THE table of environments: it feeds Gymnasium, PettingZoo, `palaestra.zoo`, the command line and the docs."""

from __future__ import annotations

import copyreg
import functools
import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pettingzoo

from palaestra import games
from palaestra.core.compile.diagnosis import short_traceback
from palaestra.core.contract import factories
from palaestra.core.contract.catalog import by_page
from palaestra.core.contract.file_keywords import hold_files, refusal
from palaestra.core.contract.keywords import check_count, check_flag, check_word, nearest
from palaestra.core.contract.options import declared_words
from palaestra.core.interrupts import Hold
from palaestra.core.run import recipes
from palaestra.game import Family, Game, Page, Row, any_text

if TYPE_CHECKING:
    from palaestra.core.run.simulation import Simulation

ROWS: dict[str, Row] = {}
FAMILIES: dict[str, Family] = {}
"""Those of palaestra, the folders of `palaestra.games`, then those of installed packages; by name."""
ENTRY_POINTS = "palaestra.families"
"""Group of the entry points by which installed packages add families: each names a `Family`."""

copyreg.pickle(Game, recipes.reduced)  # type: ignore[arg-type] (also tells what an object's own method returns)

SIMULATION_KEYWORDS = (
    *("autoreset_mode", "threads", "workers", "compiled", "out_of_range", "render_size"),
    *("opponents", "mates"),
)
"""Keywords of what plays the rules, which the rules do not take."""
GYMNASIUM_KEYWORDS = ("control", "copy", "opponent")
"""Keywords of Gymnasium's faces alone."""
PETTINGZOO_KEYWORDS = ("fixed_agents",)
"""Keywords of PettingZoo's face alone."""
FACE_KEYWORDS = (*GYMNASIUM_KEYWORDS, *PETTINGZOO_KEYWORDS, "mask", "mask_keys", "choices", "codec", "render_mode")
"""Keywords of the faces, which neither the rules nor a batch take. ``observation`` is no such one: both take it."""
_HORIZONS = ("max_episode_steps", "max_cycles")
_SIDES = {"width": 640, "height": 480}
"""Gymnasium's keywords of the size of pictures, and what is usual."""
MOST_WORKERS = 4096
"""Worker processes that anybody can mean."""


def register(
    id: str, factory: str | Callable[..., Game], *, family: str = "third party", about: str = "", **kwargs: Any
) -> None:
    """Registers a game under an id in Gymnasium, PettingZoo and palaestra.

    Presets are ids of one factory that differ in their keywords: register each; tables show them together.

    Args:
        id: ``namespace/Name-vN``.
        factory: ``"module:function"`` or a callable that returns the `Game`; its keywords become keywords of every
            face. It is called once for the same keywords, its game serves all simulations.
        family: For tables.
        about: For tables.
        **kwargs: Defaults of the factory's keywords, of the game's parameters, or of keywords of the faces (``codec``,
            ``mask``, ...), which `make_batch` leaves out.

    Raises:
        ValueError: The id has another form.
    """
    _check_id(id)
    ROWS[id] = Row(id, factory, family, about, kwargs)
    _register_everywhere(ROWS[id])


def register_all() -> None:
    """Registers every row, those of the families of installed packages too; may be called again.

    Warns:
        RuntimeWarning: A family that cannot be loaded, or that claims the name or an id of another one, is left out.
    """
    folders = [folder.name for folder in pkgutil.iter_modules(games.__path__) if folder.ispkg]
    own = [importlib.import_module(f"{games.__name__}.{name}").FAMILY for name in folders]
    for family in sorted(own, key=lambda family: (family.order, family.name)):
        _add_family(family)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            _add_family(entry.load())
        except Exception as error:  # whatever a stranger's module raises, the other families stay
            place = f"{entry.value!r}, entry point {entry.name!r} of {entry.dist.name if entry.dist else 'a package'}"
            problem = f"{type(error).__name__}: {error}"
            warnings.warn(f"the environments of {place} are left out: {problem}", RuntimeWarning, stacklevel=2)
    for row in ROWS.values():
        _register_everywhere(row)


def _add_family(family: Any) -> None:
    """Adds a family whose name no other one has, and whose rows have the form of ids that no other row has."""
    if not isinstance(family, Family):
        raise TypeError(f"expected a palaestra.game.Family, got a {type(family).__name__}")
    if FAMILIES.get(family.name, family) is not family:
        raise ValueError(f"the name {family.name!r} is taken")
    rows: dict[str, Row] = {}
    for row in family.rows:
        if not isinstance(row, Row):
            raise TypeError(f"expected rows of palaestra.game.Row, got a {type(row).__name__} among them")
        _check_id(row.id)
        if rows.get(row.id, ROWS.get(row.id, row)) is not row:
            raise ValueError(f"the id {row.id!r} is taken")
        rows[row.id] = row
    FAMILIES[family.name] = family
    ROWS.update(rows)


def offers(service: str) -> dict[str, Any]:
    """What families offer to a service, by its name: ``needs``, ``exports``, ``questions`` or ``exact`` of `Family`."""
    return {name: offer for family in FAMILIES.values() for name, offer in getattr(family, service).items()}


def _check_id(id: str) -> None:
    if not re.fullmatch(r"[\w:-]+/[\w:.-]+-v\d+", id):
        raise ValueError(f"id must look like namespace/Name-v0, got {id!r}")


def _register_everywhere(row: Row) -> None:
    if row.id not in gymnasium.registry:
        gymnasium.register(
            row.id,
            entry_point="palaestra.registry:make_env",
            vector_entry_point="palaestra.registry:make_vec",
            kwargs={"game_id": row.id},
        )
    for api in ("parallel", "aec"):
        if hasattr(pettingzoo, "register") and not _pettingzoo_knows(api, row.id):
            entry_point = f"palaestra.registry:make_{api}"
            pettingzoo.register(api, row.id, entry_point=entry_point, kwargs={"game_id": row.id})


def _pettingzoo_knows(api: Any, id: str) -> bool:
    from pettingzoo.env_registry.exceptions import PettingZooRegistryError

    try:
        return pettingzoo.spec(api, id).id == id
    except PettingZooRegistryError:
        return False


def row(id: str) -> Row:
    """The row of an id.

    Raises:
        KeyError: No such id; names the other version of it, or suggests the near one.
    """
    if id in ROWS:
        return ROWS[id]
    name = id.rpartition("-v")[0]
    if version := next((other for other in ROWS if other.rpartition("-v")[0] == name), None):
        raise KeyError(f"palaestra has no environment {id!r}: the version here, with other rules, is {version!r}")
    near = nearest(id, ROWS, 0.4)
    hint = "" if near is None else f" Did you mean {near!r}?"
    raise KeyError(f"palaestra has no environment {id!r}.{hint} `palaestra list` shows all.")


def pages() -> list[tuple[Page, list[Row]]]:
    """The rows of the table by page: presets of one factory stand together."""
    return by_page(ROWS)


def page_of(id: str) -> tuple[Page, list[Row]]:
    """The page of an id and all rows that share it.

    Raises:
        KeyError: No such id; suggests the near one.
    """
    sought = row(id)
    return next((page, rows) for page, rows in pages() if any(member is sought for member in rows))


def make_game(id: str, **keywords: Any) -> tuple[Game, dict[str, float]]:
    """The rules of an id, and the parameters among the keywords.

    The same structural keywords give the same `Game`, whose world is read-only (see
    `palaestra.core.contract.factories.make`).

    Raises:
        TypeError: A keyword that neither the factory nor the rules know; suggests the near one.
    """
    game, _, parameters = _rules(id, keywords)
    return game, parameters


def _rules(id: str, keywords: Mapping[str, Any]) -> tuple[Game, Any, dict[str, Any]]:
    """The rules, the form of their observations (``"flat"`` or ``"dict"``), and the parameters among the keywords."""
    from palaestra.core.contract.fields import unknown_keyword

    entry = row(id)
    factory = factories.load(entry.factory)
    fixed = {k: v for k, v in entry.kwargs.items() if k not in FACE_KEYWORDS}
    keywords = factories.without_nones(factory, keywords)
    given = {**fixed, **keywords}
    observation = given.pop("observation", None)
    _join_horizons(given, keywords)
    structural = _keywords_of(factory)
    is_preset = not any(name in structural or name in _HORIZONS for name in keywords)
    game = factories.make(factory, {k: v for k, v in given.items() if k in structural}, is_preset)
    parameters = {k: v for k, v in given.items() if k not in structural}
    known = {p.name: p for p in game.parameters}
    for name in structural:
        if name in known:
            raise ValueError(
                f"{id}: {name!r} is a keyword of the factory and a Parameter of its Game, so that {name}= would change "
                "one of the two alone: rename one of them"
            )
    for name in parameters:
        if name in FACE_KEYWORDS and name not in known:  # a face has taken its own ones out
            instead = ": make_batch takes opponents={team: player}" if name in ("opponent", "control") else ""
            raise TypeError(f"got an unexpected keyword argument {name!r}: it is for Gymnasium and PettingZoo{instead}")
        if name in SIMULATION_KEYWORDS and name not in known:  # likewise make_batch
            raise TypeError(f"got an unexpected keyword argument {name!r}: it is for what plays the rules (make_batch)")
        if name not in known:
            _refuse_if_it_names_a_representation(name, parameters[name], game)
            _refuse_if_it_is_a_side_of_pictures(name, parameters)
            everything = dict.fromkeys([*known, *structural, *SIMULATION_KEYWORDS, "observation", *FACE_KEYWORDS])
            unknown_keyword(name, everything, f"keyword of {id}")
    game, form = game.shown_as(observation)
    return game, form, parameters


def refused_keyword(id: Any, keywords: Any) -> str | None:
    """Why keywords that somebody else wrote cannot be given to `make` without trust in the author; None if they can.

    For what was found in a file, before anything is made of it: a text of theirs may be imported, called, opened or
    downloaded. Which keywords name such things the factory declares: ``texts`` of `palaestra.game.Option`.

    Args:
        id: Registered id. Of what is none here nothing is declared.
        keywords: By name.
    """
    return refusal(keywords, {**_declared(id), "observation": any_text})  # "name:flat", see Game.shown_as


def held_keywords(id: str, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords as a file holds them: with the content of the files that they name, where the game takes it."""
    return hold_files(keywords, lambda **given: make_game(id, **given), _declared(id))


def _declared(id: Any) -> Mapping[str, Any]:
    return declared_words(factories.load(row(id).factory)) if isinstance(id, str) and id in ROWS else {}


def _refuse_if_it_names_a_representation(name: str, value: Any, game: Game) -> None:
    """Refuses ``view="nodes"``, say, and tells its user of ``observation="nodes"``."""
    if isinstance(value, str) and value in game.representations:
        about = game.representations[value].about
        raise TypeError(f'got an unexpected keyword argument {name!r}: say observation="{value}" ({about})')


def _refuse_if_it_is_a_side_of_pictures(name: str, parameters: Mapping[str, Any]) -> None:
    """Refuses ``width=640`` and ``height=480``, which some of Gymnasium's environments take."""
    if name in _SIDES:
        sides = ", ".join(str(parameters.get(side, usual)) for side, usual in _SIDES.items())
        raise TypeError(
            f"got an unexpected keyword argument {name!r}: pictures have one keyword, render_size=({sides})"
        )


def _keywords_of(factory: Callable[..., Game]) -> list[str]:
    """Names of the keywords that a factory can be given."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [p.name for p in inspect.signature(factory).parameters.values() if p.kind in named]


def _join_horizons(given: dict[str, Any], keywords: Mapping[str, Any]) -> None:
    """Gives the horizon of the rules its one name, ``"horizon"``.

    Raises:
        TypeError: The user says it by two names.
    """
    said = {name: keywords[name] for name in ("horizon", *_HORIZONS) if keywords.get(name) is not None}
    if len(said) > 1 and any(not np.array_equal(value, next(iter(said.values()))) for value in said.values()):
        raise TypeError(f"{'= and '.join(said)}= are names of one number, the horizon: give one of them")
    values = [given.pop(name, None) for name in (*_HORIZONS, "horizon")]
    values = [value for value in (*said.values(), *values) if value is not None]
    if values:
        given["horizon"] = values[0]


@short_traceback
def make_batch(id: str, num_envs: int = 1, **keywords: Any) -> Simulation:
    """N matches as arrays, a `palaestra.core.run.simulation.Simulation`: the main face for multi-agent learners.

    Args:
        id: Registered id.
        num_envs: Number of lanes.
        **keywords: ``autoreset_mode`` (``"next_step"``, ``"same_step"``, ``"off"``), ``threads``, ``workers``
            (processes), ``compiled`` (False runs the rules as plain Python), ``out_of_range`` (``"clip"`` or
            ``"raise"`` for finite real numbers beyond their bounds), ``render_size`` (columns and rows of pictures),
            ``opponents`` (``{team or agent: player}``), ``mates`` (a player, or a list of players of which one is drawn
            for each match: they play all but the first agent of the first team that ``opponents`` does not name, which
            for Gymnasium's environments is the controlled one), ``observation`` (one of the game's representations),
            the game's structural keywords and its parameters.

    Returns:
        The simulation; call ``reset(seed=...)`` first.

    Raises:
        TypeError: An unknown keyword; suggests the near one.
        ValueError: A keyword's value; names both.
    """
    options = _options(id, keywords)
    game, _, parameters = _rules(id, keywords)
    return _simulation(id, game, num_envs, parameters, options, keywords)


def _simulation(
    id: str, game: Game, num_envs: int, parameters: dict[str, Any], options: dict[str, Any], keywords: dict[str, Any]
) -> Simulation:
    """The simulation of rules that are known; processes, if any, are started when all words have been checked."""
    if (mates := options.pop("mates", None)) is not None:
        options["opponents"] = _with_mates(id, game, mates, options.get("opponents") or {}, keywords)
    sim = _simulation_kind(game, options)(game, num_envs, parameters=parameters, **options)
    sim.origin, sim.title = (id, keywords), _title(row(id), game, keywords)
    return sim


def _with_mates(
    id: str, game: Game, mates: Any, opponents: Mapping[str, Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """The players by team or agent, with those of the learner's teammates.

    Raises:
        ValueError: No team has a learner with teammates, or a teammate has a player in ``opponents`` already.
    """
    team = next((team for team in game.teams if team not in opponents), None)
    if team is None:
        raise ValueError("mates= would play nobody: opponents= names every team, and no agent is left to learn")
    if twice := [agent for slot in game.teams[team] if (agent := game.agents[slot]) in opponents]:
        raise ValueError(
            f"mates= and opponents= both say who plays {', '.join(twice)}: mates= leaves "
            f"{game.agents[game.teams[team][0]]} to you and plays the rest of {team}; name each agent in opponents= "
            "instead, or leave mates= out"
        )
    return {**opponents, **mates_of(id, game, team, mates, keywords)}


def mates_of(id: str, game: Game, team: str, mates: Any, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The players of all agents of a team but the first, by agent.

    Args:
        id: Registered id.
        game: Its rules.
        team: Name of the team.
        mates: A player, or a list of players of which one is drawn for each match; it has all of these agents.
        keywords: Of the game, by which the members of a list are made.

    Raises:
        ValueError: The team has one agent, or the list none; or no such player.
    """
    first, *others = (game.agents[slot] for slot in game.teams[team])
    if not others:
        raise ValueError(f"{id}: {first} is all of {team} and has no teammates: leave mates= out")
    if isinstance(mates, list | tuple):
        if not mates:
            raise ValueError("mates= is a player, or a list of players of which one is drawn for each match: got none")
        structural = (*_keywords_of(factories.load(row(id).factory)), "observation")
        own = {name: value for name, value in keywords.items() if name in structural}
        mates = _loaded("palaestra.wrappers.pool:SelfPlayPool")(id, team, mates, **own)
    elif not isinstance(mates, str) or not isinstance(_resolved(game, team, mates), int):
        mates = _resolved(game, team, mates)  # once: one player has all of them
    return dict.fromkeys(others, mates)


def _resolved(game: Game, team: str, player: Any) -> Any:
    """The number of a script, or the `palaestra.core.run.opponents.Opponent` that a user means."""
    name, _ = _loaded("palaestra.core.run.opponents:split_strength")(game, player)
    return _loaded("palaestra.core.run.opponents:resolve")(game, team, name)


def _title(entry: Row, game: Game, keywords: Mapping[str, Any]) -> str:
    """What pictures call a match: the preset, or the game where the user changes what the preset fixes."""
    is_changed = any(keywords.get(name) is not None for name in entry.kwargs)
    return game.name if is_changed else entry.id.rpartition("/")[2].rpartition("-v")[0]


def _simulation_kind(game: Game, options: dict[str, Any]) -> Any:
    """The class that plays a game; takes ``workers`` out of the options where there are none."""
    if options.get("workers"):
        return _loaded("palaestra.core.run.workers:ProcessSimulation")
    options.pop("workers", None)
    kind = "kernel:KernelSimulation" if game.physics is None else "physics:PhysicsSimulation"
    return _loaded(f"palaestra.core.run.{kind}")


@functools.cache
def _loaded(name: str) -> Any:
    """What ``"module:name"`` names; the module is imported where Ctrl-C waits."""
    with Hold("the import of palaestra"):
        return factories.load(name)


def _options(id: str, keywords: dict[str, Any]) -> dict[str, Any]:
    """Takes the keywords of the simulation out.

    Raises:
        TypeError: ``opponents`` are no dict.
        ValueError: ``autoreset_mode``, ``workers`` or ``compiled`` is none of its values.
    """
    options = {k: keywords.pop(k) for k in SIMULATION_KEYWORDS if k in keywords}
    opponents, workers = options.get("opponents"), options.get("workers")
    if opponents is not None and not isinstance(opponents, Mapping):
        raise TypeError(f"{id}: opponents must be a dict {{team or agent: player}}, got {opponents!r}")
    if workers is not None:
        check_count("workers", workers, 0, MOST_WORKERS)
    check_flag("compiled", options.get("compiled", True))
    check_word("autoreset_mode", options.get("autoreset_mode", "off"), ("next_step", "same_step", "off"))
    return options


def against(id: str, num_envs: int, keywords: dict[str, Any]) -> tuple[Simulation, dict[str, Any]]:
    """A simulation in which every team but the controlled one has an opponent, and the keywords of the face.

    Args:
        id: Registered id.
        num_envs: Number of lanes.
        keywords: As for `make_env`; those of the face are taken out.

    Raises:
        TypeError: An unknown keyword, or one of another face.
        ValueError: No such team or player.
    """
    for name in PETTINGZOO_KEYWORDS:
        if name in keywords:
            raise TypeError(f"{name}= is for PettingZoo's ParallelEnv: Gymnasium's environments are one team")
    face = _face_keywords(id, keywords, PETTINGZOO_KEYWORDS)
    options = _options(id, keywords)
    opponents = options.pop("opponents", None)
    game, form, parameters = _rules(id, keywords)
    control = face.pop("control", None)
    if control is None:
        control = next(iter(game.teams))
    if control not in game.teams:
        raise ValueError(f"{id} has no team {control!r}: control is one of {', '.join(game.teams)}")
    options["opponents"] = _opponents_of(id, game, control, face.pop("opponent", None), opponents or {})
    sim = _simulation(id, game, num_envs, parameters, options, keywords)
    return sim, {**face, "control": control, "observation": form}


def _opponents_of(id: str, game: Game, control: str, opponent: Any, opponents: Mapping[str, Any]) -> dict[str, Any]:
    """The player of every team but the controlled one.

    Raises:
        ValueError: A player that would play nothing, or for the controlled team.
    """
    others = [team for team in game.teams if team != control]
    if opponent is not None and all(team in opponents for team in others):
        if others:
            raise ValueError("opponent= would play nobody: opponents= names every team that you do not control")
        scripted = f"palaestra.make_batch(id, opponents={{{control!r}: {game.scripts[0]!r}}})" if game.scripts else ""
        raise ValueError(
            f"{id} has one team, {control!r}, and you control it: there is no opponent, leave opponent= out"
            + (f"; {scripted} and palaestra eval let a script play it" if scripted else "")
        )
    if control in opponents:
        raise ValueError(f"team {control!r} is the one you control: it has no opponent= (control={control!r})")
    players = {**dict.fromkeys(others, game.default_opponent if opponent is None else opponent), **opponents}
    for team in others:
        if players[team] is None:
            raise ValueError(
                f"opponents[{team!r}] is None, so that nobody plays {team!r}: leave it out for the default player "
                f"({game.default_opponent}), or use make_batch or PettingZoo to play several teams yourself"
            )
    return players


def _face_keywords(id: str, keywords: dict[str, Any], of_others: Sequence[str]) -> dict[str, Any]:
    """Takes the keywords of the face out; those of its row besides, but for keywords ``of_others``."""
    own = {k: v for k, v in row(id).kwargs.items() if k in FACE_KEYWORDS and k not in of_others}
    return own | {k: keywords.pop(k) for k in FACE_KEYWORDS if k in keywords}


def _made(face: Callable[..., Any], sim: Simulation, **words: Any) -> Any:
    """The face; a simulation whose face refuses a word is closed."""
    try:
        return face(sim, **words)
    except BaseException:
        sim.close()
        raise


def _without_autoreset(keywords: dict[str, Any], maker: str) -> None:
    """Takes ``autoreset_mode`` out of the keywords of a face of one match.

    Raises:
        ValueError: It is another one than ``"off"``.
    """
    mode = keywords.pop("autoreset_mode", None)
    if mode is not None and mode != "off":
        raise ValueError(
            f'{maker} makes one match, which waits for reset when it is over: autoreset_mode is "off" here, got '
            f"{mode!r}; gymnasium.make_vec and palaestra.make_batch start matches anew"
        )


@short_traceback
def make_env(game_id: str, **keywords: Any) -> Any:
    """Gymnasium's entry point; keywords as for `GameEnv` and `make_batch`.

    The id is not named ``id``: `gymnasium.make_vec` hands all registered keywords to `gymnasium.make` beside its own.
    """
    face_class = _loaded("palaestra.core.faces.gym_env:GameEnv")
    if "copy" in keywords:
        raise TypeError("copy= is for gymnasium.make_vec: a single match always hands out copies")
    _without_autoreset(keywords, "gymnasium.make")
    sim, face = against(game_id, 1, {**keywords, "autoreset_mode": "off"})
    return _made(face_class, sim, **face)


make_env.metadata = {"render_modes": ["rgb_array", "human", "ansi"]}  # type: ignore[attr-defined]
"""What `gymnasium.make` reads before there is a game: where it is asked for ``rgb_array_list`` it collects pictures."""


@short_traceback
def make_vec(game_id: str, num_envs: int = 1, **keywords: Any) -> Any:
    """Gymnasium's vector entry point; keywords as for `GameVectorEnv` and `make_batch`."""
    from gymnasium.vector import AutoresetMode

    modes, face_class = (_loaded(f"palaestra.core.faces.vector_env:{n}") for n in ("GYMNASIUM_MODES", "GameVectorEnv"))
    if (steps := keywords.get("max_episode_steps")) is not None:
        gymnasium.logger.warn(
            f"max_episode_steps={steps} sets the horizon of the rules here, while gymnasium.make wraps a TimeLimit "
            "around them, which tells no winner: say max_cycles= on every face"
        )
    mode = keywords.pop("autoreset_mode", None)
    names: dict[Any, Any] = {v: k for k, v in modes.items()}
    mode = "next_step" if mode is None else names.get(mode, mode) if isinstance(mode, AutoresetMode) else mode
    sim, face = against(game_id, num_envs, {**keywords, "autoreset_mode": mode})
    return _made(face_class, sim, **face)


@short_traceback
def make_parallel(game_id: str, **keywords: Any) -> Any:
    """PettingZoo's entry point; keywords as for `GameParallelEnv` and `make_batch`."""
    face_class = _loaded("palaestra.core.faces.parallel_env:GameParallelEnv")
    for name in GYMNASIUM_KEYWORDS:
        if name in keywords:
            raise TypeError(f"{name}= is for Gymnasium; a ParallelEnv takes opponents={{team: player}}")
    face = _face_keywords(game_id, keywords, GYMNASIUM_KEYWORDS)
    _without_autoreset(keywords, "PettingZoo")
    options = _options(game_id, keywords)
    game, form, parameters = _rules(game_id, keywords)
    sim = _simulation(game_id, game, 1, parameters, {**options, "autoreset_mode": "off"}, keywords)
    return _made(face_class, sim, name=zoo_name(game_id), observation=form, **face)


def make_aec(game_id: str, **keywords: Any) -> Any:
    """PettingZoo's entry point for agents that are asked one after the other; keywords as for `make_parallel`."""
    face_class = _loaded("palaestra.core.faces.aec_env:GameAECEnv")
    return face_class(make_parallel(game_id, **keywords))


def zoo_name(id: str) -> str:
    """Name of the id in PettingZoo's style: ``palaestra/TeamPong-v0`` is ``team_pong_v0``."""
    name = id.split("/")[-1].replace("-", "_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
