"""Links a game's hooks into the batch loop and compiles it.

Every plain Python function that a hook calls by a global name is compiled with it; authors need no decorator. Only the
drivers are cached on disk, under a name that carries a digest of all code and constants they were built from, so that
an edit anywhere is never served by old machine code (numba itself watches the driver's own file alone). With
``NUMBA_DISABLE_JIT=1`` nothing is compiled and numba is not imported.
"""

from __future__ import annotations

import hashlib
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from palaestra.core import compiler, lanes
from palaestra.core.fields import Choice, member_offset
from palaestra.core.game import Game

HOOKS = (
    "reset",
    "step",
    "observe",
    "observe_reset",
    "legal",
    "script",
    "plan",
    "command",
    "advance",
    "load",
    "judge",
    "global_state",
)
KERNEL_DRIVERS = ("step_lanes", "check_lanes")
ENGINE_DRIVERS = (
    "check_lanes",
    "begin_lanes",
    "prepare_lanes",
    "command_lanes",
    "judge_lanes",
    "close_lanes",
    "see_lanes",
)

DEEPEST = 4
"""Modules may hold each other; constants are looked for in ``a.b.c.d`` and no deeper."""

_linked: dict[tuple, Kernel] = {}


class Kernel:
    """The compiled drivers of one game; one per process for games of equal code and layout."""

    def __init__(self, game: Game, digest: str, builder: _Interpreted, drivers: dict[str, Callable]) -> None:
        """Holds the drivers by name."""
        self.digest = digest
        self.drivers = drivers
        self._name = game.name
        self._builder = builder
        self._entry_points: dict[str, Callable] = {}
        self._world_type = type(game.world)

    def bind(self, name: str, *arguments: Any) -> Callable:
        """The driver ``name``, compiled for these arguments, without the dispatcher's type check on each call.

        The result may only be called with arrays of the same dtypes and layouts, as a `Simulation` owns them.
        ``arguments`` must describe an empty range of lanes (lo = hi = 0): the call compiles and does nothing.

        Raises:
            ValueError: A hook allocates memory; names the hook and the line.
        """
        driver = self.drivers[name]
        if jit_disabled():
            return driver
        if name not in self._entry_points:
            try:
                driver(*arguments)
            except Exception as error:
                if (wrong := self._builder.memory_error(error)) is not None:
                    raise ValueError(f"{self._name}: {wrong}") from error
                raise
            (overload,) = driver.overloads.values()  # type: ignore[attr-defined]
            self._entry_points[name] = overload.entry_point
        return self._entry_points[name]


def jit_disabled() -> bool:
    """Whether ``NUMBA_DISABLE_JIT`` asks for the interpreted twin."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def record_view(array: np.ndarray) -> np.ndarray:
    """The array itself, or in the interpreted twin a view whose rows have attributes like compiled records."""
    if not jit_disabled() or array.dtype.names is None:
        return array
    return array.view(_attribute_dtype(array.dtype))


def _attribute_dtype(dtype: np.dtype) -> np.dtype:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((_attribute_dtype(base), shape))
    if dtype.names is None or dtype.fields is None:
        return dtype
    layout = {
        "names": list(dtype.names),
        "formats": [_attribute_dtype(dtype[name]) for name in dtype.names],
        "offsets": [member_offset(dtype, name) for name in dtype.names],
        "itemsize": dtype.itemsize,
    }
    return np.dtype((np.record, np.dtype(layout)))  # type: ignore[call-overload]


def link(game: Game) -> Kernel:
    """Binds, digests and (lazily) compiles the drivers of a game."""
    hooks = {name: getattr(game, name) for name in HOOKS if getattr(game, name) is not None}
    names = (KERNEL_DRIVERS if game.physics is None else ENGINE_DRIVERS) + (
        ("state_lanes",) if game.global_state is not None else ()
    )
    constants = _constants(game)
    play = lanes.play_step if game.step is not None else lanes.play_periods
    digest = _digest([*hooks.values(), play, *(getattr(lanes, n) for n in names)], constants)
    records = (game.kernel_observation_dtype, game.kernel_mask_dtype)
    layout = (game.state_dtype, game.action_dtype, *records, game.scratch_dtype, game.reward_dtype)
    made_with = None if jit_disabled() else (compiler.options(inside=False), compiler.options(inside=True))
    key = (digest, layout, type(game.world), _types(game.world), repr(made_with))
    if key not in _linked:
        builder = _Interpreted(hooks) if made_with is None else _Compiled(hooks)
        bound = {**constants, **hooks, "play": play}
        drivers = {n: builder.driver(getattr(lanes, n), bound, repr(key)) for n in names}
        _linked[key] = Kernel(game, digest, builder, drivers)
    return _linked[key]


def _types(world: Any) -> Any:
    """What compiled code takes for granted of the world: no more than this may differ between games that share it."""
    if isinstance(world, tuple):
        return tuple(_types(member) for member in world)
    if isinstance(world, np.ndarray):
        flags = world.flags
        return (world.dtype, world.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned)
    return type(world)


def _constants(game: Game) -> dict[str, Any]:
    fields = game.state_dtype.fields
    assert fields is not None
    has_legal = game.legal is not None
    shared = bool(game.lane_observation) or bool(game.team_observation)
    choices = [c for r in game.roles for c in r.action if isinstance(c, Choice)]
    return {
        "AGENTS": game.slots,
        "WORDS": game.action_dtype.itemsize // 8,
        "SIZED": game.sized,
        "TEAMS": len(game.teams),
        "SCRIPTS": len(game.scripts),
        "SCRIPTS_PLAY": len(game.teams) > 1 or game.script is not None,
        "HAS_PLAN": game.plan is not None,
        "HAS_LOAD": game.load is not None,
        "HAS_LEGAL": has_legal,
        "HAS_CANDIDATES": any(c.candidates is not None for c in choices),
        "RESET_FIELDS": game.observe_reset is not None,
        "PERIODS": game.periods if game.advance is not None else 1,
        "MAY_FORBID": has_legal or game.slots > 1 or not {"alive", "acting"}.isdisjoint(_names_used(game)),
        "CLEAR_OBSERVATIONS": game.slots > 1 or shared,
        "CLEARED_FROM": fields["steps"][1],
        "AT_START": "next_parameters" in fields,
        "PARAMETERS_AT": fields["parameters"][1],
        "NEXT_PARAMETERS_AT": fields["next_parameters"][1] if "next_parameters" in fields else 0,
        "PARAMETER_BYTES": fields["parameters"][0].itemsize,
    }


def _names_used(game: Game) -> set[str]:
    """Names in the code of the hooks and of the plain functions that they call, members of records among them."""
    names: set[str] = set()
    waiting, seen = [getattr(game, hook) for hook in HOOKS], set()
    while waiting:
        function = waiting.pop()
        function = getattr(function, "py_func", function)  # one that its author compiled
        if isinstance(function, types.FunctionType) and id(function) not in seen:
            seen.add(id(function))
            used = _global_names(function.__code__)
            names.update(used)
            waiting += [function.__globals__.get(name) for name in used]
            waiting += [cell.cell_contents for cell in function.__closure__ or ()]
    return names


class _Interpreted:
    """Binds the templates to plain Python functions."""

    def __init__(self, hooks: dict[str, Callable]) -> None:
        self._hooks = hooks
        self._bound: dict[int, Any] = {}

    def function(self, function: types.FunctionType, names: dict[str, Any]) -> Any:
        if id(function) not in self._bound:
            bound = self._rebuild(function, names)
            self._bound[id(function)] = self.finish(bound)
        return self._bound[id(function)]

    def _rebuild(self, function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
        if function.__module__ == lanes.__name__:
            scope = {**function.__globals__, **names}
        else:
            scope = dict(function.__globals__)
        for name in _global_names(function.__code__):
            value = scope.get(name)
            if isinstance(value, types.FunctionType):
                scope[name] = self.function(value, names)
        bound = types.FunctionType(
            function.__code__, scope, function.__name__, function.__defaults__, function.__closure__
        )
        bound.__kwdefaults__ = function.__kwdefaults__
        return bound

    def finish(self, function: types.FunctionType) -> Any:
        return function

    def driver(self, template: types.FunctionType, names: dict[str, Any], mark: str) -> Callable:
        driver = self._rebuild(template, {**self._unused(), **names})

        def quiet(*arguments: Any) -> Any:
            with np.errstate(over="ignore"):  # the lane streams wrap around by design
                return driver(*arguments)

        return quiet

    def memory_error(self, error: Exception) -> str | None:
        return None

    def _unused(self) -> dict[str, Callable]:
        return {name: _absent for name in HOOKS if name not in self._hooks}


class _Compiled(_Interpreted):
    """Binds the templates to compiled functions; the drivers are cached on disk.

    A driver's name says all that its machine code depends on; what it calls has names that no other process gives.
    """

    def __init__(self, hooks: dict[str, Callable]) -> None:
        super().__init__(hooks)
        self._inside = compiler.Inside()

    def finish(self, function: types.FunctionType) -> Any:
        return self._inside.compile(function)

    def driver(self, template: types.FunctionType, names: dict[str, Any], mark: str) -> Callable:
        bound = self._rebuild(template, {**self._unused(), **names})
        home = sys.modules.get(self._hooks["observe"].__module__, lanes)
        filename = self._hooks["observe"].__code__.co_filename
        driver = types.FunctionType(
            bound.__code__.replace(co_filename=filename), bound.__globals__, bound.__name__, bound.__defaults__
        )
        driver.__module__ = home.__name__  # a module that exists: the cache refuses to load from '<dynamic>'
        # The module is in the name too: what was stored for the same file under another name cannot be loaded.
        key = hashlib.sha256((mark + home.__name__).encode()).hexdigest()[:16]
        driver.__qualname__ = f"{template.__name__}_{key}"
        return compiler.compile_cached(driver)

    def memory_error(self, error: Exception) -> str | None:
        return self._inside.memory_error(error, self._hooks)


def _absent(*arguments):
    """Stands for a hook that a game does not have; its calls are pruned at compile time."""
    return None


def _global_names(code: types.CodeType) -> list[str]:
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _global_names(constant)
    return names


def _digest(functions: list[Callable], constants: dict[str, Any]) -> str:
    """Hash of the byte code, constants and global values of the functions and of everything they call."""
    digest = _Digest(repr(sorted(constants.items())))
    for function in functions:
        digest.add(function)  # type: ignore[arg-type]
    return digest.sha.hexdigest()[:16]


class _Digest:
    def __init__(self, start: str) -> None:
        self.sha = hashlib.sha256(start.encode())
        self._seen: set[int] = set()

    def add(self, function: types.FunctionType) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        self._add_code(function.__code__)
        self.sha.update(repr(function.__defaults__).encode())
        names = _global_names(function.__code__)
        for name in names:
            self._add_value(name, function.__globals__.get(name), names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._add_value(name, cell.cell_contents, names)

    def _add_code(self, code: types.CodeType) -> None:
        self.sha.update(code.co_code)
        self.sha.update(repr(code.co_names).encode())
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._add_code(constant)
            else:
                self.sha.update(repr(constant).encode())

    def _add_value(self, name: str, value: Any, names: list[str]) -> None:
        value = getattr(value, "py_func", value)  # a function that its author compiled
        if isinstance(value, types.FunctionType):
            self.add(value)
        elif isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] not in ("math", "numpy", "numba"):
            for member in names if name.count(".") < DEEPEST else ():
                if hasattr(value, member):
                    self._add_value(f"{name}.{member}", getattr(value, member), names)
        elif isinstance(value, tuple):
            for k, member in enumerate(value):
                self._add_value(f"{name}.{k}", member, names)
        elif isinstance(value, np.ndarray | np.generic):  # their repr leaves out what is in the middle
            self.sha.update(f"{name}={value.dtype}{value.shape}".encode() + value.tobytes())
        elif isinstance(value, int | float | str):
            self.sha.update(f"{name}={value!r}".encode())
