"""Links a game's hooks into the batch loop and compiles it.

Every plain Python function that a hook uses is compiled with it (`palaestra.core.compile.reachable` finds them,
`palaestra.core.compile.binder` binds them); authors need no decorator. Only the drivers are cached on disk, under a
name that carries a digest of all code and constants they were built from, so that an edit anywhere is never served by
old machine code (numba itself watches the driver's own file alone). With ``compiled=False``, or for the whole process
with ``NUMBA_DISABLE_JIT=1``, the same source runs as plain Python: nothing is compiled and numba is not imported.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import types
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.compile import batch_loop, compiler
from palaestra.core.compile.binder import Around, Compiled, Interpreted
from palaestra.core.compile.diagnosis import RuleError, with_place
from palaestra.core.compile.hook_checks import check_arguments, check_sources
from palaestra.core.compile.reachable import attributes_in, circle_of_calls, code_digest, plain, remembered
from palaestra.core.contract.fields import Choice, member_offset
from palaestra.core.contract.packing import pack_slices
from palaestra.core.contract.rules import Game
from palaestra.core.interrupts import Hold

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
    "evaluate",
    "global_state",
)
KERNEL_DRIVERS = ("step_lanes", "check_lanes", "result_lanes")
ENGINE_DRIVERS = ("check_lanes", "engine_lanes")
FEW_BYTES = 2**14
"""Observations up to this size are cleared byte by byte: a few stores in a small game, a second of plain Python where
they are megabytes."""

_linked: dict[tuple, Kernel] = {}
_around: ContextVar[Around | None] = ContextVar("around", default=None)


class Kernel:
    """The drivers of one game, compiled or interpreted; one per process for games of equal code and layout.

    Attributes:
        digest: Hash of the code and constants that the drivers were built from.
        drivers: The drivers by name.
        compiled: Whether the drivers are machine code.
    """

    def __init__(self, game: Game, digest: str, build: Callable[[], tuple[Interpreted, dict[str, Callable]]]) -> None:
        """Holds the drivers by name; ``build`` makes the builder and the drivers, which are not compiled yet."""
        self.digest = digest
        self._build = build
        self._builder, self.drivers = build()
        self.compiled = isinstance(self._builder, Compiled)
        self._name = game.name
        self._entry_points: dict[str, Callable] = {}
        self._is_torn = False  # a compilation has ended by an error or an interrupt
        self._earlier: list[Interpreted] = []  # machine code refers to their functions apart

    @property
    def functions(self) -> tuple[types.FunctionType, ...]:
        """The functions that were handed to the compiler."""
        return self._builder.functions()

    @property
    def native_codes(self) -> set[types.CodeType]:
        """Code of the functions apart that the drivers call."""
        return self._builder.native_codes()

    def compile_late(self) -> None:
        """Compiles the functions that would be compiled when a match first calls them; after `bind`."""
        self._builder.compile_late()

    def cache_names(self) -> set[str]:
        """Names of the drivers and of the functions apart that they call in the file names of the cache."""
        return {function.py_func.__qualname__ for function in self._stored()}

    def cache_folders(self) -> set[Path]:
        """Folders of the disk cache that hold them."""
        return {Path(function.stats.cache_path) for function in self._stored() if function.stats.cache_path}

    def _stored(self) -> list[Any]:
        return [*self.drivers.values(), *self._builder.stored_natives()] if self.compiled else []

    def bind(self, name: str, *arguments: Any, before: Callable[[], None] | None = None) -> Callable:
        """The driver ``name``, compiled for these arguments, without the dispatcher's type check on each call.

        The result may only be called with arrays of the same dtypes and layouts, as a `Simulation` owns them.
        ``arguments`` must describe an empty range of lanes (lo = hi = 0): the call compiles and does nothing.

        Args:
            name: Of the driver.
            *arguments: What it is called with.
            before: Called before the compiler, if it has to be asked; what it raises is raised here.

        Raises:
            RuleError: A hook allocates memory or never ends; names the hook and the line.
            Exception: Whatever else numba refuses, see `palaestra.core.run.kernel.bound`.
        """
        driver = self.drivers[name]
        if not self.compiled:
            return driver
        if name not in self._entry_points:
            with compiler.compiling(self._name, before):
                if self._is_torn:
                    self._begin_anew()
                self._is_torn = True
                self._entry_points[name] = self._compile(name, arguments)
                self._is_torn = False
        return self._entry_points[name]

    def _compile(self, name: str, arguments: tuple[Any, ...]) -> Callable:
        """The machine code of a driver."""
        driver, parameters = self.drivers[name], inspect.signature(getattr(batch_loop, name)).parameters
        try:
            with compiler.announcement(self._name, self.functions), compiler.without_garbage_collection():
                self._builder.load_natives(dict(zip(parameters, arguments, strict=True)))
                with self._builder.shortcuts():
                    driver(*arguments)
        except RuleError:
            raise
        except Exception as error:
            if (wrong := self._builder.explain(error)) is not None:
                refusal = with_place(RuleError(f"{self._name}: {wrong}"), wrong.file, wrong.line)
                refusal.compiler_message = str(error)
                raise refusal from None
            raise
        (overload,) = driver.overloads.values()  # type: ignore[attr-defined]
        return overload.entry_point

    def _begin_anew(self) -> None:
        """Drops what is half compiled; drivers that are compiled stay."""
        self._earlier.append(self._builder)
        self._builder, drivers = self._build()
        self.drivers |= {name: driver for name, driver in drivers.items() if name not in self._entry_points}


def jit_disabled() -> bool:
    """Whether ``NUMBA_DISABLE_JIT`` asks for the interpreted twin in the whole process."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def record_view(array: np.ndarray) -> np.ndarray:
    """A view whose rows have attributes like compiled records, for the interpreted twin."""
    return array if array.dtype.names is None else array.view(_attribute_dtype(array.dtype))


@functools.lru_cache(maxsize=256)
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
    record = np.dtype(layout)  # type: ignore[call-overload]
    members = {name: _member(record[name], member_offset(dtype, name)) for name in dtype.names}
    row = type("Row", (np.void,), {"__slots__": (), **members})
    return np.dtype((row, record))  # type: ignore[call-overload]


def _member(dtype: np.dtype, offset: int) -> property:
    """Attribute of a row: several times as fast as that of `numpy.record`, which looks its fields up by name."""
    return property(lambda row: row.getfield(dtype, offset), lambda row, value: row.setfield(value, dtype, offset))


def link(game: Game, compiled: bool = True) -> Kernel:
    """Binds, digests and (lazily) compiles the drivers of a game.

    Args:
        game: The rules.
        compiled: False for the interpreted twin: the same source as plain Python functions.

    Raises:
        TypeError: A hook is no plain function.
        RuleError: A hook takes other arguments than it is given; compiled ones use a debugger or random numbers that no
            seed decides.
        ValueError: Functions of the rules call each other in a circle.
    """
    if _around.get() is not None and not compiled:
        return _link(game, False, _around.get())
    return remembered(("kernel", game, compiled), lambda: _link(game, compiled))


@contextlib.contextmanager
def hooks_called(around: Around) -> Iterator[None]:
    """Interpreted twins that are linked inside call ``around(name, hook)`` in place of each hook."""
    token = _around.set(around)
    try:
        yield
    finally:
        _around.reset(token)


def _link(game: Game, compiled: bool, around: Around | None = None) -> Kernel:
    hooks = hooks_of(game)
    names = (KERNEL_DRIVERS if game.physics is None else ENGINE_DRIVERS) + (
        ("state_lanes",) if game.global_state is not None else ()
    )
    constants = constants_of(game)
    play = game.step if game.step is not None else batch_loop.play_periods
    functions = {**hooks, "play": play, **{n: getattr(batch_loop, n) for n in names}}
    digest = code_digest(functions, repr(sorted(constants.items())))
    records = (game.kernel_observation_dtype, game.kernel_mask_dtype)
    layout = (game.state_dtype, game.action_dtype, *records, game.scratch_dtype, game.reward_dtype)
    made_with = compiler.made_with() if compiled and not jit_disabled() else ""
    key = (digest, layout, _types(game.world), made_with)
    if key not in _linked or around is not None:
        check_arguments(game.name, hooks)
        if made_with:
            check_sources(game.name, hooks)
        if made_with and (circle := circle_of_calls(hooks)):
            names_of = " and ".join(f"{f.__name__!r}" for f in circle)
            raise ValueError(
                f"{game.name}: {names_of} call each other, which numba cannot load from its cache: write a loop, or "
                "one function that calls itself"
            )
        bound = {**{name: _absent for name in HOOKS}, **constants, **hooks, "play": play}
        if not made_with:
            bound["pack"] = pack_slices

        def build() -> tuple[Interpreted, dict[str, Callable]]:
            builder = Compiled(hooks, game.name, repr(key)) if made_with else Interpreted(hooks, around)
            return builder, {n: builder.driver(getattr(batch_loop, n), bound, repr(key)) for n in names}

        if around is not None:
            return Kernel(game, digest, build)
        with Hold(f"the linking of {game.name}"):
            _linked[key] = Kernel(game, digest, build)
    return _linked[key]


def hooks_of(game: Game) -> dict[str, Callable]:
    """The hooks that a game has."""
    hooks = {name: getattr(game, name) for name in HOOKS if getattr(game, name) is not None}
    for name, hook in hooks.items():
        if plain(hook) is None:
            raise TypeError(f"{game.name}: the hook {name!r} is a {type(hook).__name__}: give a plain function")
    return hooks


def _types(world: Any) -> Any:
    """What compiled code takes for granted of the world: no more than this may differ between games that share it."""
    if isinstance(world, tuple):
        return (type(world), *map(_types, world))
    if isinstance(world, np.ndarray):
        flags = world.flags
        order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"  # numba's own rule: one row is both
        return (world.dtype, world.ndim, order, flags.writeable, flags.aligned)
    return type(world)


def scripts_play(game: Game) -> bool:
    """Whether scripts or random play can play a game.

    Not one of a single team without scripts: to ask who plays would cost a short step 5 % of its time. Where an engine
    moves the bodies that is nothing.
    """
    return len(game.teams) > 1 or game.script is not None or game.physics is not None


def constants_of(game: Game) -> dict[str, Any]:
    """What the drivers of `palaestra.core.compile.batch_loop` receive of a game at compile time, by name."""
    fields = game.state_dtype.fields
    assert fields is not None
    has_legal = game.legal is not None
    choices = [c for r in game.roles for c in r.action if isinstance(c, Choice)]
    size = game.observation_dtype.itemsize
    return {
        "AGENTS": game.slots,
        "WORDS": game.action_dtype.itemsize // 8,
        "SIZED": game.sized,
        "TEAMS": len(game.teams),
        "SCRIPTS": len(game.scripts),
        "MIXED": len(game.scripts) - len(game.held_out),
        "SCRIPTS_PLAY": scripts_play(game),
        "HAS_PLAN": game.plan is not None,
        "STRENGTH_IS_SHARE": "strength" not in _names_used(game),
        "HAS_LOAD": game.load is not None,
        "HAS_LEGAL": has_legal,
        "HAS_CANDIDATES": any(c.candidates is not None for c in choices),
        "RESET_FIELDS": game.observe_reset is not None,
        "PERIODS": game.periods if game.advance is not None else 1,
        "MAY_FORBID": has_legal or game.slots > 1 or not {"alive", "acting"}.isdisjoint(_names_used(game)),
        "OBSERVATION_BYTES": 0 if game.sized or size > FEW_BYTES else size,
        "CLEARED_FROM": fields["steps"][1],
        "AT_START": "next_parameters" in fields,
        "PARAMETERS_AT": fields["parameters"][1],
        "NEXT_PARAMETERS_AT": fields["next_parameters"][1] if "next_parameters" in fields else 0,
        "PARAMETER_BYTES": fields["parameters"][0].itemsize,
    }


def _names_used(game: Game) -> frozenset[str]:
    """Names of the attributes in the code of the hooks and of what they call, members of records among them."""
    return attributes_in(hooks_of(game))


def _absent(*arguments):
    """Stands for a hook that a game does not have; its calls are pruned at compile time."""
    return None
