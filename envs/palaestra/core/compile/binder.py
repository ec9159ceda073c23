"""Binds hooks and what they call into drivers: as plain Python functions, or as compiled ones."""

from __future__ import annotations

import contextlib
import enum
import hashlib
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from palaestra.core import rng
from palaestra.core.compile import batch_loop, compiler, compiler_shortcuts
from palaestra.core.compile.apart import ApartFunction, FirstCall
from palaestra.core.compile.reachable import (
    Chain,
    author_options,
    free_variables,
    is_enumeration,
    is_own_module,
    names_in,
    plain,
    reachable,
)

Around = Callable[[str, Callable], Callable]
"""``around(name, hook)`` gives what is called in place of a hook."""
loaded: dict[str, Callable] = {}
"""Functions apart of this process by symbol."""


class Interpreted:
    """Binds the templates to plain Python functions."""

    def __init__(self, hooks: dict[str, Callable], around: Around | None = None) -> None:
        self._hooks = hooks
        self._around = around
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
        own = names if function.__module__ == batch_loop.__name__ else {}
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
        """Makes a bound function callable by others; ``value`` is what its author wrote.

        Random streams wrap around by design, in `palaestra.core.rng` and where rules advance a stream of their own by
        its constant. Everywhere else NumPy warns of an overflow: compiled rules compute in 64 bits what here has the
        width of the table that a number was read from.
        """
        advances = any(bound.__globals__.get(name) is rng.GOLDEN for name in bound.__code__.co_names)
        if advances or bound.__module__ == rng.__name__:
            bound = np.errstate(over="ignore")(bound)
        if self._around is not None:
            for name, hook in self._hooks.items():
                if plain(hook) is plain(value):
                    return self._around(name, bound)
        return bound

    def driver(self, template: types.FunctionType, names: dict[str, Any], mark: str) -> Callable:
        """A template with its free names bound. ``mark`` says all that its machine code depends on."""
        return self._bound_copy(template, names)

    def explain(self, error: Exception) -> compiler.Refused | None:
        """What is wrong with a hook that could not be compiled, in words of the game; None if numba says it best."""
        return None

    def functions(self) -> tuple[types.FunctionType, ...]:
        """The functions that were handed to the compiler."""
        return ()

    def native_codes(self) -> set[types.CodeType]:
        """Code of the functions apart that the drivers call, of those with types."""
        return set()

    def load_natives(self, arguments: dict[str, Any]) -> None:
        """Makes the functions known that compiled code calls by address; before a driver is compiled or loaded.

        ``arguments`` are those of the driver, by name.
        """

    def compile_late(self) -> None:
        """Compiles the functions that would be compiled when they are first called."""

    def stored_natives(self) -> list[Any]:
        """The functions apart that the drivers call, as the cache on disk knows them."""
        return []

    def shortcuts(self) -> contextlib.AbstractContextManager[None]:
        """Where a driver is to be compiled in less time."""
        return contextlib.nullcontext()

    def _bound_copy(self, function: types.FunctionType, names: dict[str, Any]) -> types.FunctionType:
        bound = self._empty(function, names)
        self._fill(bound, function, names)
        return bound


class Compiled(Interpreted):
    """Binds the templates to compiled functions; the drivers are cached on disk.

    A driver's name says all that its machine code depends on; what it calls has names that no other process gives.
    """

    # The docstrings are those of the class above.
    # ruff: noqa: D102

    def __init__(self, hooks: dict[str, Callable], name: str = "", mark: str = "") -> None:
        """``name`` of the game, and what its machine code depends on, for functions apart without types."""
        super().__init__(hooks)
        self._inside = compiler.Inside()
        self._name = name
        self._mark = mark
        self._natives: dict[ApartFunction, tuple[str, Any]] = {}  # symbols, and what stands for them in the code
        self._late: dict[ApartFunction, tuple[FirstCall, Any]] = {}  # those without types

    def _function(self, value: Any, names: dict[str, Any]) -> Any:
        if not isinstance(value, ApartFunction) or (value.arguments is None and not self._mark):
            return super()._function(value, names)
        if value.arguments is None:
            if value not in self._late:
                code = FirstCall(value, value.symbol(self._mark), self._load_late)
                self._late[value] = code, code.call()
            return self._late[value][1]
        if value not in self._natives:
            symbol = value.symbol()
            self._natives[value] = symbol, value.call(symbol)
        return self._natives[value][1]

    def finish(self, bound: types.FunctionType, value: Any) -> Any:
        return self._inside.compile(bound, bound.__module__ == batch_loop.__name__, **author_options(value))

    def driver(self, template: types.FunctionType, names: dict[str, Any], mark: str) -> Callable:
        observe = plain(self._hooks["observe"])
        assert observe is not None
        return self._stored(template, names, mark, observe)

    def load_natives(self, arguments: dict[str, Any]) -> None:
        import llvmlite.binding

        for native, (symbol, _) in self._natives.items():
            if symbol not in loaded:
                loaded[symbol], address = _load(native, symbol, native.signature)
                llvmlite.binding.add_symbol(symbol, address)
        for code, _ in self._late.values():
            code.place(arguments)

    def _load_late(self, code: FirstCall) -> int:
        name = f"{self._name}, {code.function.py_func.__name__}"
        found = [found.value for found in reachable({"late": code.function.py_func}) if found.is_new]
        with compiler.compiling(name), compiler.announcement(name, found), compiler.without_garbage_collection():
            loaded[code.symbol], address = _load(code.function, code.symbol, code.signature)
        return address

    def compile_late(self) -> None:
        for code, _ in self._late.values():
            code.compile()

    def stored_natives(self) -> list[Any]:
        found = []
        symbols = {native: symbol for native, (symbol, _) in self._natives.items()}
        symbols |= {function: code.symbol for function, (code, _) in self._late.items()}
        for function, symbol in symbols.items():
            builder = _CompiledNative(function)
            found += [builder.stored(symbol), *builder.stored_natives()]
        return found

    def shortcuts(self) -> contextlib.AbstractContextManager[None]:
        return compiler_shortcuts.shortcuts(self._inside.mark, len(self._inside.functions))

    def explain(self, error: Exception) -> compiler.Refused | None:
        return self._inside.explain(error, self._hooks)

    def functions(self) -> tuple[types.FunctionType, ...]:
        return self._inside.functions

    def native_codes(self) -> set[types.CodeType]:
        return {native.py_func.__code__ for native in self._natives}

    def _stored(self, template: types.FunctionType, names: dict[str, Any], mark: str, author: Any) -> Callable:
        """A bound template, kept on disk beside the file of an author's function."""
        bound = self._bound_copy(template, names)
        home, filename = sys.modules.get(author.__module__, batch_loop), author.__code__.co_filename
        driver = types.FunctionType(
            bound.__code__.replace(co_filename=filename), bound.__globals__, bound.__name__, None, bound.__closure__
        )
        driver.__module__ = home.__name__  # a module that exists: the cache refuses to load from '<dynamic>'
        # The module is in the name too: what was stored for the same file under another name cannot be loaded.
        key = hashlib.sha256((mark + home.__name__).encode()).hexdigest()[:16]
        driver.__qualname__ = f"{template.__name__}_{key}"
        dispatcher = compiler.compile_cached(driver)
        driver.__code__ = bound.__code__  # the cache has taken note of the author's file: messages name the right one
        return dispatcher


class _CompiledNative(Compiled):
    """Binds one function apart, as a driver of its own."""

    def __init__(self, native: ApartFunction) -> None:
        super().__init__({})
        self._native = native

    def stored(self, symbol: str) -> Any:
        """The function, not compiled yet."""
        function = self._native.py_func
        dispatcher = self._stored(function, {}, symbol, function)
        if self._native in self._natives:
            name = function.__name__
            raise compiler.Refused(f"the function apart {name!r} calls its own address: let it call {name!r}")
        return dispatcher

    def explain(self, error: Exception) -> compiler.Refused | None:
        return self._inside.explain(error, {}, self._native.py_func)


def _load(native: ApartFunction, symbol: str, signature: Any) -> tuple[Callable, int]:
    """Compiles a function or loads it from the cache. Returns what keeps it in memory, and its address."""
    builder = _CompiledNative(native)
    dispatcher = builder.stored(symbol)
    builder.load_natives({})
    try:
        with builder.shortcuts():
            dispatcher.compile(signature)
    except Exception as error:
        if (wrong := builder.explain(error)) is not None:
            raise wrong from error
        raise
    (overload,) = dispatcher.overloads.values()
    return dispatcher, overload.library.get_pointer_to_function(overload.fndesc.llvm_func_name)
