"""Functions that are compiled apart from kernels and called by address, instead of being compiled into every kernel.

An author names such a function at module level and calls it like any other. With the types of its arguments it is
compiled once for all games::

    fly = apart(fly_frame, (AIRCRAFT_DTYPE, Array("f8", 2), "f8"), returns="f8")


    def advance(s, world, scratch):
        airspeed_mps = fly(s.body[0], world.tables, s.parameters.dt_s)

The machine code of a kernel holds a symbol, never an address: each process loads the function, says where it lies, and
then loads its kernels. A call costs what a call costs (a few nanoseconds), so small helpers stay plain functions.

Without types it is compiled for each game, when a match first calls it. A game with many scripts would spend much of
its compile time on scripts that are not played::

    careful = apart(play_with_care)


    def script(s, world, slot, which, actions, scratch):
        if which < CAREFUL:
            play_simply(s, world, slot, which, actions)
        else:
            careful(s, world, slot, which, actions)

The machine code of a kernel holds the name of a place in memory with the function's address, which is null at first. A
kernel that finds null there calls Python, which compiles the function, or loads it from the cache, and writes the
address (`FirstCall`). Later calls cost what a call by address costs.
"""

from __future__ import annotations

import ctypes
import inspect
import re
import threading
import traceback
import types
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from palaestra.core.compile.reachable import code_digest, layout, plain

ARRAYS = {"s": "S", "world": "world", "scratch": "SCRATCH", "actions": "A"}
"""Parameters of functions without types that are a record or the world, and the names of their arrays in
`palaestra.core.compile.batch_loop`."""
INTERRUPTED, FAILED = 1, 2


class Array(NamedTuple):
    """Type of an argument that is an array, C-contiguous as all arrays in records and (usually) in ``world`` are.

    Attributes:
        dtype: Of an element, a scalar or a record.
        dimensions: How many.
        writeable: Whether the function writes it. What it does not write may be read-only or not.
    """

    dtype: Any
    dimensions: int = 1
    writeable: bool = False


class ApartFunction:
    """A function with machine code of its own; see `apart`.

    Attributes:
        py_func: The Python function.
        arguments: Types of its parameters; None for a function that is compiled when it is first called.
        returns: Type of its result, or None.
    """

    def __init__(self, function: Callable, arguments: tuple[Any, ...] | None, returns: Any) -> None:
        """See `apart`."""
        code, parameters = _code_of(function)
        self.py_func, self.parameters = code, tuple(p.name for p in parameters)
        self.arguments, self.returns = None, None
        if arguments is None:
            if returns is not None:
                raise ValueError(f"the function apart {code.__name__!r}: give the types of its arguments, too")
            return
        name = f"the function apart {code.__name__!r}"
        if len(parameters) != len(arguments):
            raise ValueError(f"{name}: {len(arguments)} types for {len(parameters)} parameters")
        self.arguments = tuple(_argument(code.__name__, a) for a in arguments)
        self.returns = None if returns is None else _argument(code.__name__, returns)
        if isinstance(self.returns, Array) or (self.returns is not None and self.returns.fields is not None):
            raise ValueError(f"{name}: returns a number or None; hand in what it shall fill")

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Calls the Python function: what happens outside of kernels, and where nothing is compiled."""
        return self.py_func(*arguments, **keywords)

    def __reduce__(self) -> tuple:
        return apart, (self.py_func, self.arguments, self.returns)

    @property
    def compiled_as(self) -> str:
        """The types as text: part of the digest of all code that calls the function."""
        if self.arguments is None:
            return "late"
        kinds = [
            f"{layout(a.dtype)} x{a.dimensions} {a.writeable}" if isinstance(a, Array) else layout(a)
            for a in self.arguments
        ]
        return f"native ({', '.join(kinds)}) -> {'' if self.returns is None else layout(self.returns)}"

    def symbol(self, mark: str = "") -> str:
        """Name of the machine code, equal in all processes that compile the same function in the same way.

        Args:
            mark: All that the code of a function without types depends on.
        """
        from palaestra.core.compile.compiler import made_with  # here, as authors' modules load this one at once

        name = re.sub(r"\W", "_", self.py_func.__name__)
        if self.arguments is None:
            return f"palaestra_late_{name}_{code_digest({'late': self.py_func}, mark)}"
        return f"palaestra_{name}_{code_digest({'native': self.py_func}, self.compiled_as + made_with())}"

    @cached_property
    def signature(self) -> Any:
        """Numba's signature of a function with types."""
        import numba

        kinds = [_numba_type(a) for a in self.arguments or ()]
        return (numba.types.none if self.returns is None else _numba_type(self.returns))(*kinds)

    def call(self, symbol: str) -> Any:
        """What stands for a function with types in compiled code: a call of the symbol, by numba's convention."""
        from numba.core import cgutils, types

        formal, returns = self.signature.args, self.signature.return_type

        def typing(context: Any, actual: list[Any]) -> Any:
            for parameter, given, wanted in zip(self.parameters, actual, formal, strict=True):
                if not _fits(context, given, wanted):
                    raise self.unlike(parameter, given, wanted)
            # An array in a record has a type of its own, and the same words: it is handed on as it is.
            return returns(*(a if isinstance(f, types.Array) else f for a, f in zip(actual, formal, strict=True)))

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            function = cgutils.get_or_insert_function(
                builder.module, convention.get_function_type(returns, formal), symbol
            )
            status, result = convention.call_function(builder, function, returns, formal, values)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        return self.intrinsic(typing, lower)

    def unlike(self, parameter: str, given: Any, wanted: Any) -> Exception:
        """The error of an argument of another type."""
        from numba.core.errors import TypingError

        return TypingError(f"the function apart {self.py_func.__name__!r}: {parameter!r} is {given}, not {wanted}")

    def intrinsic(self, signature_of: Callable[[Any, list[Any]], Any], lower: Callable) -> Any:
        """A numba intrinsic with the function's parameters.

        Args:
            signature_of: Numba's signature of a call, by the context and the types of the arguments.
            lower: Writes the call.
        """
        from numba.core import types
        from numba.core.errors import TypingError
        from numba.extending import intrinsic

        parameters = inspect.signature(self.py_func)

        def typing(context: Any, *arguments: Any, **keywords: Any) -> Any:
            try:
                actual = [types.unliteral(a) for a in parameters.bind(*arguments, **keywords).arguments.values()]
            except TypeError as error:
                raise TypingError(f"the function apart {self.py_func.__name__!r}: {error}") from None
            return signature_of(context, actual), lower

        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        typing.__signature__ = inspect.Signature([context, *parameters.parameters.values()])  # type: ignore[attr-defined]
        return intrinsic(typing)


def apart(function: Callable, arguments: tuple[Any, ...] | None = None, returns: Any = None) -> ApartFunction:
    """Makes a function of a game's rules one that is compiled apart from kernels.

    The result belongs at the module level of the author's file, under another name than the function's.

    Args:
        function: A plain function. It may call others; those apart with types among them are called by address, those
            without are compiled with it.
        arguments: Type of each parameter: a NumPy scalar type (``"f8"``, by value), a record dtype (by reference, the
            very dtype of the field that is handed in) or an `Array`. The function is then compiled once for all games.
            None compiles it when a match of a game first calls it; parameters then have the names that hooks have:
            ``s``, ``world``, ``scratch`` and ``actions`` are what hooks receive, all others are integers, and nothing
            is returned.
        returns: Scalar type of the result, None for none.

    Raises:
        TypeError: Not a function, or not a type.
        ValueError: The number of types is not that of the parameters, a closure, or a function with defaults.
    """
    return ApartFunction(function, arguments, returns)


class FirstCall:
    """The machine code of a function without types in one kernel: its place in memory, and what fills it."""

    def __init__(self, function: ApartFunction, symbol: str, load: Callable[[FirstCall], int]) -> None:
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
            arguments: What the driver is called with, by the names of its parameters; drivers without actions call
                none.
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

        name = self.function.py_func.__name__

        def typing(context: Any, actual: list[Any]) -> Any:
            for parameter, given, wanted in zip(self.function.parameters, actual, self.types(), strict=True):
                is_integer = isinstance(given, types.Integer | types.Boolean)
                if not (is_integer if parameter not in ARRAYS else given == wanted):
                    raise self.function.unlike(parameter, given, wanted)
            return self.signature

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

        return self.function.intrinsic(typing, lower)


def _code_of(function: Any) -> tuple[types.FunctionType, list[inspect.Parameter]]:
    """The code of a function that is compiled apart from kernels, and its parameters.

    Raises:
        TypeError: Not a function.
        ValueError: A closure, or a function with defaults.
    """
    code = plain(function)
    if code is None:
        raise TypeError(f"apart takes a plain function, got {type(function).__name__}")
    parameters = list(inspect.signature(code).parameters.values())
    name = f"the function apart {code.__name__!r}"
    if code.__closure__ is not None:
        raise ValueError(f"{name} is a closure: define it at the level of the module")
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty for p in parameters):
        raise ValueError(f"{name}: defaults, *args and keyword-only parameters do not work")
    return code, parameters


def _argument(name: str, kind: Any) -> Any:
    if isinstance(kind, Array):
        return kind._replace(dtype=_argument(name, kind.dtype))
    try:
        dtype = np.dtype(kind)
    except TypeError:
        raise TypeError(f"the function apart {name!r}: {kind!r} is no NumPy type and no Array") from None
    if dtype.subdtype is not None or (dtype.fields is None and dtype.kind not in "biuf"):
        raise TypeError(
            f"the function apart {name!r}: {kind!r} is no number and no record; arrays are Array(dtype, dimensions)"
        )
    return dtype


def _numba_type(kind: Any) -> Any:
    import numba

    if not isinstance(kind, Array):
        return numba.from_dtype(kind)
    return numba.types.Array(numba.from_dtype(kind.dtype), kind.dimensions, "C", readonly=not kind.writeable)


def _fits(context: Any, given: Any, wanted: Any) -> bool:
    """Whether a value of the given type may be handed in: records and elements as they are, numbers without loss."""
    from numba.core import types

    if isinstance(wanted, types.Array):
        is_alike = isinstance(given, types.Array) and (given.dtype, given.ndim, given.layout) == (
            wanted.dtype,
            wanted.ndim,
            wanted.layout,
        )
        return is_alike and (given.mutable or not wanted.mutable)
    if isinstance(wanted, types.Record):
        return given == wanted
    is_number = isinstance(given, types.Number | types.Boolean)
    return is_number and not (isinstance(given, types.Float) and isinstance(wanted, types.Integer))


def _outside(module: Any, name: str, kind: Any) -> Any:
    """A variable that another part of the process holds."""
    from llvmlite import ir

    if name in module.globals:
        return module.globals[name]
    variable = ir.GlobalVariable(module, kind, name)
    variable.linkage = "external"
    return variable
