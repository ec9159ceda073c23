"""Functions of the rules that are compiled when a match first calls them, instead of with their kernel.

A game with many scripts would spend much of its compile time on scripts that are not played. An author marks the
function that they begin with, at module level, and calls it like any other::

    careful = late(play_with_care)


    def script(s, world, slot, which, actions, scratch):
        if which < CAREFUL:
            play_simply(s, world, slot, which, actions)
        else:
            careful(s, world, slot, which, actions)

The machine code of a kernel holds the name of a place in memory with the function's address, which is null at first. A
kernel that finds null there calls Python, which compiles the function, or loads it from the cache, and writes the
address. Later calls cost what a call by address costs.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from palaestra.core.compile.native import function_apart

ARRAYS = {"s": "S", "world": "world", "scratch": "SCRATCH", "actions": "A"}
"""Parameters that are a record or the world, and the names of their arrays in `palaestra.core.compile.batch_loop`."""
INTERRUPTED, FAILED = 1, 2


class LateFunction:
    """A function that is compiled when it is first called; see `late`."""

    compiled_as = "late"
    """Part of the digest of all code that calls the function."""

    def __init__(self, function: Callable) -> None:
        """See `late`."""
        code, parameters = function_apart("late", function)
        self.py_func = code
        self.parameters = tuple(p.name for p in parameters)

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        """Calls the Python function: what happens outside of kernels, and where nothing is compiled."""
        self.py_func(*arguments, **keywords)

    def __reduce__(self) -> tuple:
        return late, (self.py_func,)


def late(function: Callable) -> LateFunction:
    """Makes a function of a game's rules one that is compiled when a match first calls it.

    The result belongs at the module level of the author's file, under another name than the function's.

    Args:
        function: A plain function that returns nothing. Its parameters have the names that hooks have: ``s``,
            ``world``, ``scratch`` and ``actions`` are what hooks receive, all others are integers. It may call others,
            natives among them; late functions inside it are compiled with it.

    Raises:
        TypeError: Not a function.
        ValueError: A closure, or a function with defaults.
    """
    return LateFunction(function)


class LateCode:
    """The machine code of a late function in one kernel: its place in memory, and what fills it."""

    def __init__(self, function: LateFunction, symbol: str, load: Callable[[LateCode], int]) -> None:
        """Names the place; ``load`` compiles the function and returns its address."""
        self.function = function
        self.symbol = symbol
        self.arguments: dict[str, Any] = {}
        self._load = load
        self._address = ctypes.c_void_p(None)
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int32)(self._compile_in_match)
        self._one_at_a_time = threading.RLock()

    def compile(self) -> None:
        """Compiles the function, or loads it, unless that has been done."""
        with self._one_at_a_time:
            if self._address.value is None:
                self._address.value = self._load(self)

    def _compile_in_match(self) -> int:
        """Kernels call this, through which no error can be raised: says which one the kernel ends with."""
        try:
            self.compile()
        except KeyboardInterrupt:
            return INTERRUPTED
        except BaseException:
            traceback.print_exc()
            return FAILED
        return 0

    def place(self, arguments: dict[str, Any]) -> None:
        """Says where the place in memory is, before a driver is compiled or loaded.

        Args:
            arguments: What the driver is called with, by the names of its parameters; drivers without actions call no
                late function.
        """
        import llvmlite.binding

        if not self.arguments and arguments.keys() >= set(ARRAYS.values()):
            kept = {name: arguments[array] for name, array in ARRAYS.items()}
            self.arguments = {n: a.dtype if isinstance(a, np.ndarray) else a for n, a in kept.items()}
            llvmlite.binding.add_symbol(f"{self.symbol}_at", ctypes.addressof(self._address))
            callback = ctypes.cast(self._callback, ctypes.c_void_p).value
            assert callback is not None
            llvmlite.binding.add_symbol(f"{self.symbol}_load", callback)

    def types(self) -> tuple[Any, ...]:
        """Numba's types of the parameters."""
        import numba

        def of(name: str) -> Any:
            if name not in ARRAYS:
                return numba.types.int64
            argument = self.arguments[name]
            return numba.from_dtype(argument) if isinstance(argument, np.dtype) else numba.typeof(argument)

        return tuple(map(of, self.function.parameters))

    @property
    def signature(self) -> Any:
        """Numba's signature."""
        import numba

        return numba.types.none(*self.types())

    def call(self) -> Any:
        """What stands for the function in compiled code."""
        from numba.core import cgutils, types
        from numba.core.errors import TypingError
        from numba.extending import intrinsic

        name = self.function.py_func.__name__
        parameters = inspect.signature(self.function.py_func)

        def typing(context: Any, *arguments: Any, **keywords: Any) -> Any:
            try:
                actual = [types.unliteral(a) for a in parameters.bind(*arguments, **keywords).arguments.values()]
            except TypeError as error:
                raise TypingError(f"the late function {name!r}: {error}") from None
            for parameter, given, wanted in zip(self.function.parameters, actual, self.types(), strict=True):
                is_integer = isinstance(given, types.Integer | types.Boolean)
                if not (is_integer if parameter not in ARRAYS else given == wanted):
                    raise TypingError(f"the late function {name!r}: {parameter!r} is {given}, not {wanted}")
            return self.signature, lower

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            from llvmlite import ir

            convention = context.call_conv
            kind = convention.get_function_type(types.none, signature.args)
            at = _outside(builder.module, f"{self.symbol}_at", kind.as_pointer())
            with cgutils.if_unlikely(builder, cgutils.is_null(builder, builder.load(at))):
                kind_of_load = ir.FunctionType(ir.IntType(32), [])
                load = cgutils.get_or_insert_function(builder.module, kind_of_load, f"{self.symbol}_load")
                outcome = builder.call(load, [])
                for number, error, message in (
                    (INTERRUPTED, KeyboardInterrupt, f"while {name!r} was compiled"),
                    (FAILED, RuntimeError, f"{name!r} could not be compiled: the error is above"),
                ):
                    is_this = builder.icmp_signed("==", outcome, ir.Constant(outcome.type, number))
                    with cgutils.if_unlikely(builder, is_this):
                        convention.return_user_exc(builder, error, (message,))
            function = builder.load(at)
            # An interrupt before the first line of `_compile_in_match` is printed and dropped: nothing was compiled.
            with cgutils.if_unlikely(builder, cgutils.is_null(builder, function)):
                convention.return_user_exc(builder, KeyboardInterrupt, (f"before {name!r} was compiled",))
            status, _ = convention.call_function(builder, function, types.none, signature.args, values)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return context.get_dummy_value()

        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        typing.__signature__ = inspect.Signature([context, *parameters.parameters.values()])  # type: ignore[attr-defined]
        return intrinsic(typing)


def symbol_of(function: LateFunction, digest: str) -> str:
    """Name of the place, equal in all processes that compile the same kernel."""
    return f"palaestra_late_{re.sub(r'[^A-Za-z0-9_]', '_', function.py_func.__name__)}_{digest}"


def _outside(module: Any, name: str, kind: Any) -> Any:
    """A variable that another part of the process holds."""
    from llvmlite import ir

    if name in module.globals:
        return module.globals[name]
    variable = ir.GlobalVariable(module, kind, name)
    variable.linkage = "external"
    return variable
