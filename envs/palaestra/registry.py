"""THE table of environments: it feeds Gymnasium, PettingZoo, `palaestra.zoo`, the command line and the docs."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import pettingzoo

from palaestra import calibration, teams, ucav
from palaestra.core import factories
from palaestra.core.catalog import Page, Row, by_page
from palaestra.core.game import Game

ROWS: dict[str, Row] = {row.id: row for row in (*calibration.ROWS, *teams.ROWS, *ucav.ROWS)}

_SIMULATION = ("autoreset_mode", "threads", "workers", "compiled", "out_of_range", "opponents")
GYMNASIUM_KEYWORDS = ("control", "copy", "opponent")
"""Keywords of Gymnasium's faces alone."""
PETTINGZOO_KEYWORDS = ("fixed_agents",)
"""Keywords of PettingZoo's face alone."""
FACE_KEYWORDS = (*GYMNASIUM_KEYWORDS, *PETTINGZOO_KEYWORDS, "mask", "mask_keys", "choices", "codec", "render_mode")
"""Keywords of the faces, which neither the rules nor a batch take. ``observation`` is no such one: both take it."""
_HORIZONS = ("max_episode_steps", "max_cycles")


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
        **kwargs: Defaults of the factory's keywords or of the game's parameters.

    Raises:
        ValueError: The id has another form.
    """
    if not re.fullmatch(r"[\w:-]+/[\w:.-]+-v\d+", id):
        raise ValueError(f"id must look like namespace/Name-v0, got {id!r}")
    ROWS[id] = Row(id, factory, family, about, kwargs)
    _register_everywhere(ROWS[id])


def register_all() -> None:
    """Registers every row; may be called again."""
    for row in ROWS.values():
        _register_everywhere(row)


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
        KeyError: No such id; suggests the near one.
    """
    if id in ROWS:
        return ROWS[id]
    near = difflib.get_close_matches(id, ROWS, 1, 0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
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

    The same structural keywords give the same `Game`, whose world is read-only (see `palaestra.core.factories.make`).

    Raises:
        TypeError: A keyword that neither the factory nor the rules know; suggests the near one.
    """
    from palaestra.core.fields import unknown_keyword

    entry = row(id)
    factory = factories.load(entry.factory)
    given = {**entry.kwargs, **keywords}
    observation = given.pop("observation", None)
    for alias in _HORIZONS:
        value = given.pop(alias, None)
        if value is not None:
            given["horizon"] = value
    structural = inspect.signature(factory).parameters
    game = factories.make(factory, {k: v for k, v in given.items() if k in structural})
    parameters = {k: v for k, v in given.items() if k not in structural}
    known = {p.name: p for p in game.parameters}
    for name in parameters:
        if name not in known:
            everything = dict.fromkeys([*known, *structural, *_SIMULATION, "observation", *FACE_KEYWORDS])
            unknown_keyword(name, everything, f"keyword of {id}")
    return game.shown_as(observation)[0], parameters


def make_batch(id: str, num_envs: int = 1, **keywords: Any) -> Any:
    """N matches as arrays: the `palaestra.core.simulation.Simulation` itself, the main face for multi-agent learners.

    Args:
        id: Registered id.
        num_envs: Number of lanes.
        **keywords: ``autoreset_mode`` (``"next_step"``, ``"same_step"``, ``"off"``), ``threads``, ``workers``
            (processes), ``compiled`` (False runs the rules as plain Python), ``out_of_range`` (``"clip"`` or
            ``"raise"`` for finite real numbers beyond their bounds), ``opponents`` (``{team: player}``),
            ``observation`` (one of the game's representations), the game's structural keywords and its parameters.

    Returns:
        The simulation; call ``reset(seed=...)`` first.
    """
    options = {k: keywords.pop(k) for k in _SIMULATION if k in keywords}
    game, parameters = make_game(id, **keywords)
    sim = _simulation_kind(game, options)(game, num_envs, parameters=parameters, **options)
    sim.origin = (id, keywords)
    return sim


def _simulation_kind(game: Game, options: dict[str, Any]) -> Any:
    """The class that plays a game; takes ``workers`` out of the options where there are none."""
    if options.get("workers"):
        from palaestra.core.workers import ProcessSimulation

        return ProcessSimulation
    options.pop("workers", None)
    if game.physics is not None:
        from palaestra.core.physics import PhysicsSimulation

        return PhysicsSimulation
    from palaestra.core.kernel import KernelSimulation

    return KernelSimulation


def against(id: str, num_envs: int, keywords: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A simulation in which every team but the controlled one has an opponent, and the keywords of the face.

    Args:
        id: Registered id.
        num_envs: Number of lanes.
        keywords: As for `make_env`; those of the face are taken out.
    """
    face = _face_keywords(keywords)
    for name in PETTINGZOO_KEYWORDS:
        if name in face:
            raise TypeError(f"{name}= is for PettingZoo's ParallelEnv: Gymnasium's environments are one team")
    opponent = face.pop("opponent", None)
    opponents = keywords.pop("opponents", None)
    sim = make_batch(id, num_envs, **keywords)
    teams = sim.game.teams
    control = face.get("control") or next(iter(teams))
    if control not in teams:
        raise ValueError(f"{id} has no team {control!r}: control is one of {', '.join(teams)}")
    face["control"] = control
    defaults = dict.fromkeys((t for t in teams if t != control), opponent or sim.game.default_opponent)
    for team, spec in {**defaults, **(opponents or {})}.items():
        if team == control:
            raise ValueError(f"team {team!r} is the one you control: it has no opponent= (control={control!r})")
        sim.set_opponent(team, spec)
    return sim, face


def _face_keywords(keywords: dict[str, Any]) -> dict[str, Any]:
    """Takes the keywords of the face out."""
    return {k: keywords.pop(k) for k in FACE_KEYWORDS if k in keywords}


def _form(sim: Any, keywords: dict[str, Any]) -> Any:
    """Whether the user, or else the row of the id, asks for one vector or for a dict by field."""
    assert sim.origin is not None
    return sim.game.shown_as({**row(sim.origin[0]).kwargs, **keywords}.get("observation"))[1]


def make_env(game_id: str, **keywords: Any) -> Any:
    """Gymnasium's entry point; keywords as for `GameEnv` and `make_batch`.

    The id is not named ``id``: `gymnasium.make_vec` hands all registered keywords to `gymnasium.make` beside its own.
    """
    from palaestra.core.faces.gym_env import GameEnv

    sim, face = against(game_id, 1, {**keywords, "autoreset_mode": "off"})
    return GameEnv(sim, observation=_form(sim, keywords), **face)


def make_vec(game_id: str, num_envs: int = 1, **keywords: Any) -> Any:
    """Gymnasium's vector entry point; keywords as for `GameVectorEnv` and `make_batch`."""
    from palaestra.core.faces.vector_env import GYMNASIUM_MODES, GameVectorEnv

    if (steps := keywords.get("max_episode_steps")) is not None:
        gymnasium.logger.warn(
            f"max_episode_steps={steps} sets the horizon of the rules here, while gymnasium.make wraps a TimeLimit "
            "around them, which tells no winner: say max_cycles= on every face"
        )
    mode = keywords.pop("autoreset_mode", "next_step")
    names = {v: k for k, v in GYMNASIUM_MODES.items()}
    sim, face = against(game_id, num_envs, {**keywords, "autoreset_mode": names.get(mode, mode)})
    return GameVectorEnv(sim, observation=_form(sim, keywords), **face)


def make_parallel(game_id: str, **keywords: Any) -> Any:
    """PettingZoo's entry point; keywords as for `GameParallelEnv` and `make_batch`."""
    from palaestra.core.faces.parallel_env import GameParallelEnv

    face = _face_keywords(keywords)
    for name in GYMNASIUM_KEYWORDS:
        if name in face:
            raise TypeError(f"{name}= is for Gymnasium; a ParallelEnv takes opponents={{team: player}}")
    sim = make_batch(game_id, 1, **{**keywords, "autoreset_mode": "off"})
    return GameParallelEnv(sim, name=zoo_name(game_id), observation=_form(sim, keywords), **face)


def make_aec(game_id: str, **keywords: Any) -> Any:
    """PettingZoo's entry point for agents that are asked one after the other; keywords as for `make_parallel`."""
    from palaestra.core.faces.aec_env import GameAECEnv

    return GameAECEnv(make_parallel(game_id, **keywords))


def zoo_name(id: str) -> str:
    """Name of the id in PettingZoo's style: ``palaestra/TeamPong-v0`` is ``team_pong_v0``."""
    name = id.split("/")[-1].replace("-", "_")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
