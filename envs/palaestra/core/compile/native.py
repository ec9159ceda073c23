"""Large functions that are compiled once and called by address, instead of being compiled into every kernel.

An author names such a function at module level, with the types of its arguments, and calls it like any other::

    fly = native(fly_frame, (AIRCRAFT_DTYPE, Array("f8", 2), "f8"), returns="f8")


    def advance(s, world, scratch):
        airspeed_mps = fly(s.body[0], world.tables, s.parameters.dt_s)

The machine code of a kernel holds a symbol, never an address: each process loads the function, says where it lies, and
then loads its kernels. A call costs what a call costs (a few nanoseconds), so small helpers stay plain functions.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from palaestra.core.compile.reachable import code_digest, layout, plain


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


class NativeFunction:
    """A function of numbers, records and arrays with machine code of its own; see `native`."""

    def __init__(self, function: Callable, arguments: tuple[Any, ...], returns: Any) -> None:
        """See `native`."""
        code, parameters = function_apart("native", function)
        if len(parameters) != len(arguments):
            count = f"{len(arguments)} types for {len(parameters)} parameters"
            raise ValueError(f"native function {code.__name__!r}: {count}")
        self.py_func = code
        self.arguments = tuple(_argument(code.__name__, a) for a in arguments)
        self.returns = None if returns is None else _argument(code.__name__, returns)
        if isinstance(self.returns, Array) or (self.returns is not None and self.returns.fields is not None):
            raise ValueError(f"native function {code.__name__!r}: returns a number or None; hand in what it shall fill")

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Calls the Python function: what happens outside of kernels, and where nothing is compiled."""
        return self.py_func(*arguments, **keywords)

    def __reduce__(self) -> tuple:
        return native, (self.py_func, self.arguments, self.returns)

    @property
    def compiled_as(self) -> str:
        """The types as text: part of the digest of all code that calls the function."""
        kinds = [
            f"{layout(a.dtype)} x{a.dimensions} {a.writeable}" if isinstance(a, Array) else layout(a)
            for a in self.arguments
        ]
        return f"native ({', '.join(kinds)}) -> {'' if self.returns is None else layout(self.returns)}"

    def symbol(self) -> str:
        """Name of the machine code, equal in all processes that compile the same function in the same way."""
        from palaestra.core.compile.compiler import made_with  # here, as authors' modules load this one at once

        name = re.sub(r"\W", "_", self.py_func.__name__)
        return f"palaestra_{name}_{code_digest({'native': self.py_func}, self.compiled_as + made_with())}"

    @cached_property
    def signature(self) -> Any:
        """Numba's signature."""
        import numba

        kinds = [_numba_type(a) for a in self.arguments]
        return (numba.types.none if self.returns is None else _numba_type(self.returns))(*kinds)

    def call(self, symbol: str) -> Any:
        """What stands for the function in compiled code: a call of the symbol, in numba's own calling convention."""
        from numba.core import cgutils, types
        from numba.core.errors import TypingError
        from numba.extending import intrinsic

        name, formal, returns = self.py_func.__name__, self.signature.args, self.signature.return_type
        parameters = inspect.signature(self.py_func)

        def typing(context: Any, *arguments: Any, **keywords: Any) -> Any:
            try:
                actual = [types.unliteral(a) for a in parameters.bind(*arguments, **keywords).arguments.values()]
            except TypeError as error:
                raise TypingError(f"the native function {name!r}: {error}") from None
            for parameter, given, wanted in zip(parameters.parameters, actual, formal, strict=True):
                if not _fits(context, given, wanted):
                    wrong = f"{parameter!r} is {given}, not {wanted}"
                    raise TypingError(f"the native function {name!r}: {wrong}")
            # An array in a record has a type of its own, and the same words: it is handed on as it is.
            seen = [a if isinstance(f, types.Array) else f for a, f in zip(actual, formal, strict=True)]
            return returns(*seen), lower

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            convention = context.call_conv
            function = cgutils.get_or_insert_function(
                builder.module, convention.get_function_type(returns, formal), symbol
            )
            status, result = convention.call_function(builder, function, returns, formal, values)
            with cgutils.if_unlikely(builder, status.is_error):
                convention.return_status_propagate(builder, status)
            return result

        context = inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        typing.__signature__ = inspect.Signature([context, *parameters.parameters.values()])  # type: ignore[attr-defined]
        return intrinsic(typing)


def function_apart(kind: str, function: Any) -> tuple[types.FunctionType, list[inspect.Parameter]]:
    """The code of a function that is compiled apart from kernels, and its parameters.

    Args:
        kind: What the author makes of it, for messages: ``"native"`` or ``"late"``.
        function: What the author gave.

    Raises:
        TypeError: Not a function.
        ValueError: A closure, or a function with defaults.
    """
    code = plain(function)
    if code is None:
        raise TypeError(f"{kind} takes a plain function, got {type(function).__name__}")
    parameters = list(inspect.signature(code).parameters.values())
    if code.__closure__ is not None:
        raise ValueError(f"{kind} function {code.__name__!r} is a closure: define it at the level of the module")
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty for p in parameters):
        raise ValueError(f"{kind} function {code.__name__!r}: defaults, *args and keyword-only parameters do not work")
    return code, parameters


def native(function: Callable, arguments: tuple[Any, ...], returns: Any = None) -> NativeFunction:
    """Makes a function of a game's rules one that is compiled once and called by address from all kernels.

    The result belongs at the module level of the author's file, under another name than the function's.

    Args:
        function: A plain function; it may call others, natives among them.
        arguments: Type of each parameter: a NumPy scalar type (``"f8"``, by value), a record dtype (by reference, the
            very dtype of the field that is handed in) or an `Array`.
        returns: Scalar type of the result, None for none.

    Raises:
        TypeError: Not a function, or not a type.
        ValueError: The number of types is not that of the parameters, or the function has defaults.
    """
    return NativeFunction(function, arguments, returns)


def _argument(name: str, kind: Any) -> Any:
    if isinstance(kind, Array):
        return kind._replace(dtype=_argument(name, kind.dtype))
    try:
        dtype = np.dtype(kind)
    except TypeError:
        raise TypeError(f"native function {name!r}: {kind!r} is no NumPy type and no Array") from None
    if dtype.subdtype is not None or (dtype.fields is None and dtype.kind not in "biuf"):
        raise TypeError(
            f"native function {name!r}: {kind!r} is no number and no record; arrays are Array(dtype, dimensions)"
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
