"""What tests of the core do with a simulation, whatever its game: make actions, compare lanes, hash a match."""

from __future__ import annotations

import functools
import hashlib
import importlib
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaestra import registry
from palaestra.core.compile.linker import Kernel, jit_disabled, link
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.core.run.simulation import Simulation
from palaestra.game import Choice, Game, Role

ROOT = Path(__file__).resolve().parents[2]
COMPILED = ("two_team", "two_team_homogeneous", "orchard", "size_game", "body_game", "duel", "pitch")
"""Games of this folder that `make test` compiles beforehand."""
OURS = [id for id in registry.ROWS if id.startswith("palaestra/")]
_WARMED = re.search(r"^TEST_IDS := (.*?)(?<!\\)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE | re.DOTALL)
TEST_IDS = [f"palaestra/{name}" for name in re.findall(r"[\w.-]+-v\d+", _WARMED[1] if _WARMED else "")]
"""Ids that `make test` compiles beforehand."""
FIRST_OF_FAMILIES = {registry.ROWS[id].family: id for id in reversed(TEST_IDS)}.values()


def long_without_the_compiler(test: Callable) -> Callable:
    """Leaves a test of a file of ``jitless`` tests to `make check`."""
    skipped = pytest.mark.skipif(jit_disabled(), reason="takes seconds without the compiler")
    return pytest.mark.check(skipped(test))


def by_tier(ids: Iterable[str] = OURS) -> list[Any]:
    """Ids for `pytest.mark.parametrize`: `make test` takes the first of each family, `make check` the others too."""
    return [id if id in FIRST_OF_FAMILIES else pytest.param(id, marks=pytest.mark.check) for id in ids]


def simulation(game: Game, num_envs: int = 1, *, compiled: bool | None = None, **options: Any) -> Simulation:
    """A simulation for tests of rules: compiled if an id or a game of `COMPILED` has the same kernel, else interpreted.

    Those kernels are compiled anyway; that of a variant takes the compiler longer than a test of it takes interpreted.
    ``compiled`` says otherwise, for tests that play many matches.
    """
    if compiled is None:
        compiled = not jit_disabled() and link(game) in _kernels(_package(game.reset.__module__))
    kind = KernelSimulation if game.physics is None else PhysicsSimulation
    return kind(game, num_envs, compiled=compiled, **options)


def started(game: Game, num_envs: int = 1, *, seed: int = 1, **options: Any) -> Any:
    """`simulation`, reset with a seed."""
    sim = simulation(game, num_envs, **options)
    sim.reset(seed=seed)
    return sim


def played(game: Game, player: Any, team: str = "red") -> tuple[Any, np.ndarray]:
    """What a player observes and does in one decision in three lanes."""
    sim = started(game, 3, seed=2, compiled=False, opponents={team: player})
    seen = sim.team_view(team, "observations").copy()
    sim.step()
    return seen, sim.team_view(team, "actions")


@functools.cache
def _kernels(package: str) -> frozenset[Kernel]:
    """Those of a package: the others have other rules."""
    if package == _package(__name__):
        return frozenset(link(importlib.import_module(f"{package}.{name}").game()) for name in COMPILED)
    rows = (row for row in registry.ROWS.values() if row.id.startswith("palaestra/"))
    ids = [row.id for row in rows if _package(str(row.factory)) == package]
    return frozenset(link(registry.make_game(id)[0]) for id in ids)


def _package(module: str) -> str:
    return module.rpartition(".")[0]


def random_actions(sim: Simulation, rng: np.random.Generator) -> Any:
    """Actions inside their spaces for every slot, legal or not, as `Simulation.step` takes them."""

    def draw(f: Any, shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(f.n, size=shape) if _is_choice(f) else rng.uniform(f.low, f.high, shape)

    return _actions(sim, draw)


def idle_actions(sim: Simulation) -> Any:
    """The no-op for every slot: edit and step."""
    return _actions(sim, lambda f, shape: np.full(shape, f.noop))


def _actions(sim: Simulation, values: Callable[[Any, tuple[int, ...]], np.ndarray]) -> Any:
    parts = {role.name: _role_actions(role, sim.num_envs, values) for role in sim.game.roles}
    return parts if len(parts) > 1 else next(iter(parts.values()))


def _role_actions(role: Role, n: int, values: Callable[[Any, tuple[int, ...]], np.ndarray]) -> Any:
    count = len(role.agents)
    fields = {f.name: values(f, (n, count, *f.shape)) for f in role.action}
    choices = [_is_choice(f) for f in role.action]
    if any(choices) and not all(choices):
        return fields
    if all(choices) and len(choices) == 1:
        return next(iter(fields.values()))
    return np.concatenate([a.reshape(n, count, -1) for a in fields.values()], axis=2)


def _is_choice(f: Any) -> bool:
    return isinstance(f, Choice)


def lanes_of(actions: Any, lanes: Any) -> Any:
    """The rows of some lanes."""
    return _map(lambda array: array[lanes], actions)


def _map(function: Any, tree: Any) -> Any:
    return {k: _map(function, v) for k, v in tree.items()} if isinstance(tree, dict) else function(tree)


def leaves(tree: Any) -> list[np.ndarray]:
    """The arrays of an array, a dict of arrays or None."""
    if tree is None:
        return []
    return [leaf for value in tree.values() for leaf in leaves(value)] if isinstance(tree, dict) else [tree]


def seen_bytes(sim: Simulation) -> np.ndarray:
    """Everything that leaves the simulation, uint8 ``[N, bytes]``: observations, masks, rewards, flags and info."""
    arrays = [
        *leaves(sim.observations),
        *leaves(sim.team_observations),
        *leaves(sim.lane_observations),
        *leaves(sim.legal),
        *(sim.rewards, sim.terminated, sim.truncated, sim.agent_terminated, sim.alive, sim.acting),
        *leaves(sim.info),
    ]
    return np.concatenate([_bytes(a) for a in arrays], axis=1)


def all_bytes(sim: Simulation) -> np.ndarray:
    """What leaves the simulation and its match records without their padding, uint8 ``[N, bytes]``."""
    return np.concatenate([seen_bytes(sim), _bytes(sim.states)[:, _written(sim.states.dtype)]], axis=1)


@functools.cache
def _written(dtype: np.dtype) -> np.ndarray:
    """Which bytes of a record belong to fields, not to the padding between them, bool ``[bytes]``."""
    base, shape = dtype.subdtype or (dtype, ())
    if base.fields is None:
        return np.ones(dtype.itemsize, np.bool_)
    one = np.zeros(base.itemsize, np.bool_)
    for kind, offset, *_ in base.fields.values():
        one[offset : offset + kind.itemsize] = _written(kind)
    return np.tile(one, math.prod(shape))


def _bytes(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.uint8).reshape(len(array), -1)


def match_hash(
    name: str,
    steps: int = 150,
    threads: int = 1,
    mode: str = "next_step",
    opponents: dict[str, str] | None = None,
    compiled: bool = True,
    **sizes: int,
) -> str:
    """Hash of all bytes of three lanes that random actions play against a script drawn for each match.

    ``name`` is a module of this folder, or the full name of another; ``opponents`` names other players, ``compiled`` is
    an option of `Simulation`, ``sizes`` are keywords of the game.
    """
    game = importlib.import_module(name if "." in name else f"games.{name}").game(**sizes)
    sim = KernelSimulation(game, 3, threads=threads, autoreset_mode=mode, compiled=compiled)
    if opponents is None:
        opponents = {list(game.teams)[1]: "mix"} if len(game.teams) > 1 else {}
    for team, player in opponents.items():
        sim.set_opponent(team, player)
    sim.reset(seed=7)
    rng, sha = np.random.default_rng(7), hashlib.sha256()
    for _ in range(steps):
        sim.step(random_actions(sim, rng))
        sha.update(all_bytes(sim).tobytes())
    return sha.hexdigest()


def python(program: str, *arguments: str, **environment: str | None) -> str:
    """Standard output of a program in a process of its own that sees what this one can import.

    Keywords set variables of its environment, None removes one.
    """
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={k: v for k, v in variables.items() if v is not None},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()
