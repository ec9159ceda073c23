"""Links a game's hooks into the batch loop and compiles it.

Every plain Python function that a hook calls by a global name is compiled with it; authors need no decorator. Only the
drivers are cached on disk, under a name that carries a digest of all code and constants they were built from, so that
an edit anywhere is never served by old machine code (numba itself watches the driver's own file alone). With
``NUMBA_DISABLE_JIT=1`` nothing is compiled and numba is not imported.
"""

from __future__ import annotations

import enum
import hashlib
import operator
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from palaestra.core import compiler, lanes
from palaestra.core.fields import Choice, member_offset
from palaestra.core.game import Game
from palaestra.core.reachable import (
    Chain,
    attributes_in,
    author_options,
    circle_of_calls,
    constant_bytes,
    free_variables,
    is_enumeration,
    is_own_module,
    names_in,
    plain,
    reachable,
)

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
            ValueError: A hook allocates memory or never ends; names the hook and the line.
        """
        driver = self.drivers[name]
        if jit_disabled():
            return driver
        if name not in self._entry_points:
            try:
                with compiler.announcement(self._name):
                    driver(*arguments)
            except Exception as error:
                if (wrong := self._builder.explain(error)) is not None:
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
    """Binds, digests and (lazily) compiles the drivers of a game.

    Raises:
        TypeError: A hook is no plain function.
        ValueError: Functions of the rules call each other in a circle.
    """
    hooks = _hooks(game)
    names = (KERNEL_DRIVERS if game.physics is None else ENGINE_DRIVERS) + (
        ("state_lanes",) if game.global_state is not None else ()
    )
    constants = _constants(game)
    play = lanes.play_step if game.step is not None else lanes.play_periods
    digest = _digest({**hooks, "play": play, **{n: getattr(lanes, n) for n in names}}, constants)
    records = (game.kernel_observation_dtype, game.kernel_mask_dtype)
    layout = (game.state_dtype, game.action_dtype, *records, game.scratch_dtype, game.reward_dtype)
    made_with = None if jit_disabled() else (compiler.options(inside=False), compiler.options(inside=True))
    key = (digest, layout, type(game.world), _types(game.world), repr(made_with))
    if key not in _linked:
        if made_with is not None and (circle := circle_of_calls(hooks)):
            names_of = " and ".join(f"{f.__name__!r}" for f in circle)
            raise ValueError(
                f"{game.name}: {names_of} call each other, which numba cannot load from its cache: write a loop, or "
                "one function that calls itself"
            )
        builder = _Interpreted(hooks) if made_with is None else _Compiled(hooks)
        bound = {**constants, **hooks, "play": play}
        drivers = {n: builder.driver(getattr(lanes, n), bound, repr(key)) for n in names}
        _linked[key] = Kernel(game, digest, builder, drivers)
    return _linked[key]


def _hooks(game: Game) -> dict[str, Callable]:
    """The hooks that a game has."""
    hooks = {name: getattr(game, name) for name in HOOKS if getattr(game, name) is not None}
    for name, hook in hooks.items():
        if plain(hook) is None:
            raise TypeError(f"{game.name}: the hook {name!r} is a {type(hook).__name__}: give a plain function")
    return hooks


def _types(world: Any) -> Any:
    """What compiled code takes for granted of the world: no more than this may differ between games that share it."""
    if isinstance(world, tuple):
        return tuple(_types(member) for member in world)
    if isinstance(world, np.ndarray):
        flags = world.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"  # numba's own rule: one row is both
        return (world.dtype, world.ndim, order, flags.writeable, flags.aligned)
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


def _names_used(game: Game) -> frozenset[str]:
    """Names of the attributes in the code of the hooks and of what they call, members of records among them."""
    return attributes_in(_hooks(game))


class _Interpreted:
    """Binds the templates to plain Python functions."""

    def __init__(self, hooks: dict[str, Callable]) -> None:
        self._hooks = hooks
        self._bound: dict[types.FunctionType, Any] = {}

    def _function(self, value: Any, names: dict[str, Any]) -> Any:
        """What takes the place of a function; it is known before what it calls is bound: it may call itself."""
        function = plain(value)
        assert function is not None
        if function not in self._bound:
            bound = self._empty(function, names)
            self._bound[function] = self.finish(bound, value)
            self._fill(bound, function, names)
        return self._bound[function]

    def _empty(self, function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
        """A copy of a function with a scope and a closure of its own."""
        own = names if function.__module__ == lanes.__name__ else {}
        closure = None if function.__closure__ is None else tuple(types.CellType() for _ in function.__closure__)
        scope = {**function.__globals__, **own}
        bound = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, closure)
        bound.__kwdefaults__ = function.__kwdefaults__
        return bound

    def _fill(self, bound: types.FunctionType, function: types.FunctionType, names: dict[str, Any]) -> None:
        """Binds the functions that a copy uses."""
        used, scope, free = names_in(function.__code__), bound.__globals__, free_variables(function)
        for name in {chain[0] for chain in used.globals} & scope.keys():
            scope[name] = self._replaced(scope[name], [c[1:] for c in used.globals if c[0] == name], names)
        for name, cell in zip(bound.__code__.co_freevars, bound.__closure__ or (), strict=True):
            if name in free:
                cell.cell_contents = self._replaced(free[name], [c[1:] for c in used.free if c[0] == name], names)

    def _replaced(self, value: Any, chains: list[Chain], names: dict[str, Any]) -> Any:
        """A value as code in the kernel sees it: every function bound, every member of an integer enumeration an int.

        Functions are found in tuples too, and, like members, in modules and classes where ``chains`` of attributes
        lead to them: a module with these members takes the place of what holds them.
        """
        if plain(value) is not None:
            return self._function(value, names)
        if type(value) is tuple:
            members = tuple(self._replaced(member, [], names) for member in value)
            return value if all(map(operator.is_, members, value)) else members
        if isinstance(value, int) and isinstance(value, enum.Enum) and not any(chains):
            return int(value)  # numba has no arithmetic of its members with real numbers
        holds_names = is_own_module(value) or (is_enumeration(value) and all(len(c) == 1 for c in chains))
        if holds_names:
            held = {c[0]: getattr(value, c[0]) for c in chains if c and hasattr(value, c[0])}
            bound = {n: self._replaced(m, [c[1:] for c in chains if c[:1] == (n,)], names) for n, m in held.items()}
            if any(bound[name] is not held[name] for name in held):
                module = types.ModuleType(value.__name__)  # type: ignore[attr-defined]
                vars(module).update({**vars(value), **bound})
                return module
        return value

    def finish(self, bound: types.FunctionType, value: Any) -> Any:
        """Makes a bound function callable by others; ``value`` is what its author wrote."""
        return bound

    def driver(self, template: types.FunctionType, names: dict[str, Any], mark: str) -> Callable:
        driver = self._template(template, names)

        def quiet(*arguments: Any) -> Any:
            with np.errstate(over="ignore"):  # the lane streams wrap around by design
                return driver(*arguments)

        return quiet

    def explain(self, error: Exception) -> str | None:
        """What is wrong with a hook that could not be compiled, in words of the game; None if numba says it best."""
        return None

    def _template(self, template: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
        names = {**{name: _absent for name in HOOKS if name not in self._hooks}, **names}
        bound = self._empty(template, names)
        self._fill(bound, template, names)
        return bound


class _Compiled(_Interpreted):
    """Binds the templates to compiled functions; the drivers are cached on disk.

    A driver's name says all that its machine code depends on; what it calls has names that no other process gives.
    """

    def __init__(self, hooks: dict[str, Callable]) -> None:
        super().__init__(hooks)
        self._inside = compiler.Inside()

    def finish(self, bound: types.FunctionType, value: Any) -> Any:
        return self._inside.compile(bound, **author_options(value))

    def driver(self, template: types.FunctionType, names: dict[str, Any], mark: str) -> Callable:
        bound = self._template(template, names)
        observe = plain(self._hooks["observe"])
        assert observe is not None
        home, filename = sys.modules.get(observe.__module__, lanes), observe.__code__.co_filename
        driver = types.FunctionType(
            bound.__code__.replace(co_filename=filename), bound.__globals__, bound.__name__, bound.__defaults__
        )
        driver.__module__ = home.__name__  # a module that exists: the cache refuses to load from '<dynamic>'
        # The module is in the name too: what was stored for the same file under another name cannot be loaded.
        key = hashlib.sha256((mark + home.__name__).encode()).hexdigest()[:16]
        driver.__qualname__ = f"{template.__name__}_{key}"
        return compiler.compile_cached(driver)

    def explain(self, error: Exception) -> str | None:
        return self._inside.explain(error, self._hooks)


def _absent(*arguments):
    """Stands for a hook that a game does not have; its calls are pruned at compile time."""
    return None


def _digest(functions: dict[str, Callable], constants: dict[str, Any]) -> str:
    """Hash of the byte code of functions and of everything that they call, and of all constants that they name."""
    sha = hashlib.sha256(repr(sorted(constants.items())).encode())
    for found in reachable(functions):
        sha.update(f"\0{found.name} {found.number} ".encode())
        if found.number < 0:
            sha.update(constant_bytes(found.value))
        elif found.is_new:
            sha.update(_code_bytes(found.value.__code__))
    return sha.hexdigest()[:16]


def _code_bytes(code: types.CodeType) -> bytes:
    """Byte code, names and constants; neither file nor line, which change nothing."""
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]  # callers may use them as keywords
    names = repr((code.co_names, arguments, code.co_freevars, code.co_exceptiontable))
    inner = [_code_bytes(c) if isinstance(c, types.CodeType) else constant_bytes(c) for c in code.co_consts]
    return b"\0".join([code.co_code, names.encode(), *inner])
