"""What the hooks of a game use: functions that they call and constants that they name, found in the byte code.

There is one walk for all users: the linker, which binds and digests what is reached, and the digest of the rules.
A name counts only if the code really loads it as a global or a closure variable. A member of a module counts if the
code loads that chain of attributes (``tools.OFFSET``); the name of an attribute alone is no global.
"""

from __future__ import annotations

import contextlib
import dataclasses
import dis
import enum
import functools
import hashlib
import operator
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

CORE = "palaestra.core."
"""Where names of modules begin that are the suite's own, never an author's."""
FOREIGN = ("builtins", "math", "numpy", "numba", "llvmlite")
"""Packages whose members are as numba knows them, never looked into."""
PLAIN = frozenset((int, float, complex, bool, str, bytes, type(None)))
"""Classes of most constants."""
DEEPEST = 4
"""Modules may hold each other; where one is handed on whole, members are looked for no deeper."""

Chain = tuple[str, ...]


class Names(NamedTuple):
    """What a function's byte code, and the code of functions inside it, loads from outside.

    Attributes:
        globals: Chains ``("tools", "OFFSET")``: a global and the attributes taken from it at once. Sorted.
        free: The same of variables of an enclosing function.
        attributes: Names of all attributes loaded or stored, and all constant strings (``s["alive"]``).
    """

    globals: tuple[Chain, ...]
    free: tuple[Chain, ...]
    attributes: frozenset[str]


class Found(NamedTuple):
    """One thing that reachable code uses.

    Attributes:
        name: As the code that uses it says it.
        value: A plain function, or a constant.
        number: Of a function, in the order of the walk; -1 for a constant.
        is_new: Whether the walk meets this function for the first time.
    """

    name: str
    value: Any
    number: int
    is_new: bool


@functools.lru_cache(maxsize=4096)
def names_in(code: types.CodeType) -> Names:
    """The names that code loads from outside."""
    chains: dict[str, set[Chain]] = {"global": set(), "free": set()}
    attributes: set[str] = set()
    kind, chain = "", []
    for instruction in dis.get_instructions(code):
        operation, name = instruction.opname, instruction.argval
        if operation in ("EXTENDED_ARG", "CACHE"):
            continue
        if operation in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR"):
            attributes.add(name)
            if kind and operation.startswith("LOAD"):
                chain.append(name)
                continue
        if kind:
            chains[kind].add(tuple(chain))
            kind = ""
        if operation in ("LOAD_GLOBAL", "LOAD_NAME"):
            kind, chain = "global", [name]
        elif operation == "LOAD_DEREF":
            kind, chain = "free", [name]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = names_in(constant)
            chains["global"].update(inner.globals)
            chains["free"].update(inner.free)
            attributes.update(inner.attributes)
        elif isinstance(constant, str):
            attributes.add(constant)
    return Names(tuple(sorted(chains["global"])), tuple(sorted(chains["free"])), frozenset(attributes))


def plain(value: Any) -> types.FunctionType | None:
    """The Python function behind a value: itself, or the one that its author compiled; None if it is no function."""
    value = getattr(value, "py_func", value)
    return value if isinstance(value, types.FunctionType) else None


def wrapped(value: Any) -> types.FunctionType | None:
    """The Python function that numba has made a ufunc or a callback of; None for anything else."""
    if type(value).__module__.partition(".")[0] == "numba":
        for path in ("_dispatcher.py_func", "gufunc_builder.py_func", "_pyfunc"):
            with contextlib.suppress(AttributeError):
                return plain(operator.attrgetter(path)(value))
    return None


def is_in_package(value: types.FunctionType | type, package: str) -> bool:
    """Whether the code of a function or class stands in a package or module.

    What another package's decorator returns does not, although `functools.wraps` gives it the module's name.
    """
    module = value.__module__ if isinstance(value, type) else value.__globals__.get("__name__", "")
    return f"{module}.".startswith(f"{package}.")


def function_of(value: Any, package: str = "") -> types.FunctionType | None:
    """The Python function behind a value, of ``package`` where one is given, and behind decorators of other packages.

    So `functools.cache` and `contextlib.contextmanager` are seen through; what numba made is not, see `wrapped`.
    """
    while value is not None:
        function = plain(value)
        if function is not None and (not package or is_in_package(function, package)):
            return function
        is_last = isinstance(value, type) or wrapped(value) is not None
        value = None if is_last else getattr(value, "__wrapped__", None)
    return None


def is_own_module(value: Any) -> bool:
    """Whether a value is a module whose members may be an author's."""
    return isinstance(value, types.ModuleType) and value.__name__.partition(".")[0] not in FOREIGN


def is_enumeration(value: Any) -> bool:
    """Whether a value is a class of named constants."""
    return isinstance(value, type) and issubclass(value, enum.Enum)


def free_variables(function: types.FunctionType) -> dict[str, Any]:
    """Values of a function's closure; a variable that is not bound yet is left out."""
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # it names itself and is being made
            continue
    return values


def used_by(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Dotted names and values of all that a function takes from outside, its defaults among them, in a fixed order.

    What is not there (a builtin, a name that a template leaves open) is left out.
    """
    names = names_in(function.__code__)
    closure = free_variables(function)
    for chains, scope in ((names.globals, function.__globals__), (names.free, closure)):
        for chain in chains:
            if chain[0] in scope:
                yield from _follow(chain[0], scope[chain[0]], chain[1:], names.attributes, DEEPEST)
    for k, value in enumerate(function.__defaults__ or ()):
        yield f"default {k}", value
    for name, value in sorted((function.__kwdefaults__ or {}).items()):
        yield f"default {name}", value


def _follow(name: str, value: Any, chain: Chain, attributes: Iterable[str], deep: int) -> Iterator[tuple[str, Any]]:
    """What a chain of attributes leads to: through modules and enumerations, and no further."""
    if chain and (is_own_module(value) or is_enumeration(value) or isinstance(value, enum.Enum)):
        if hasattr(value, chain[0]):
            yield from _follow(f"{name}.{chain[0]}", getattr(value, chain[0]), chain[1:], attributes, deep)
    elif is_own_module(value):  # handed on whole: whatever the function takes from anything may be taken from it
        for member in sorted(attributes) if deep else ():
            if hasattr(value, member):
                yield from _follow(f"{name}.{member}", getattr(value, member), (), attributes, deep - 1)
    else:
        yield name, value


def reachable(roots: Mapping[str, Callable], package: str = "") -> Iterator[Found]:
    """Walks from the functions in ``roots`` over all that they use; each function is entered once.

    Those of other packages than ``package``, where one is given, are no more than constants.
    """
    numbers: dict[types.FunctionType, int] = {}

    def visit(name: str, value: Any) -> Iterator[Found]:
        function = function_of(value, package)
        if function is not None:
            is_new = function not in numbers
            number = numbers.setdefault(function, len(numbers))
            if chosen := compiled_as(value):
                yield Found(f"{name} compiled", chosen, -1, False)
            yield Found(name, function, number, is_new)
            if is_new:
                for inner_name, inner in used_by(function):
                    yield from visit(inner_name, inner)
        elif isinstance(value, tuple):
            yield Found(f"{name} length", len(value), -1, False)
            for k, member in enumerate(value):
                yield from visit(f"{name}[{k}]", member)
        else:
            yield Found(name, value, -1, False)
            if (behind := wrapped(value)) is not None:  # called as it is, but its code decides results
                if getattr(value, "_frozen", False):
                    yield Found(f"{name} types", tuple(getattr(value, "types", ())), -1, False)
                yield from visit(f"{name} wraps", behind)

    for name, root in roots.items():
        yield from visit(name, root)


def circle_of_calls(roots: Mapping[str, Callable]) -> list[types.FunctionType]:
    """Two or more functions that call each other in a circle; empty where there are none."""
    finished: set[types.FunctionType] = set()
    path: list[types.FunctionType] = []

    def visit(value: Any) -> list[types.FunctionType]:
        function = plain(value)
        if isinstance(value, tuple):
            return next(filter(None, map(visit, value)), [])
        if function is None or function in finished:
            return []
        if function in path:
            circle = path[path.index(function) :]
            return circle if len(circle) > 1 else []
        path.append(function)
        found = next(filter(None, (visit(used) for _, used in used_by(function))), [])
        finished.add(path.pop())
        return found

    return visit(tuple(roots.values()))


def compiled_as(value: Any) -> str:
    """What the author of a compiled function chose about its machine code; empty where that is nothing."""
    if (chosen := getattr(value, "compiled_as", None)) is not None:
        return chosen
    return ", ".join(f"{name}={option!r}" for name, option in sorted(author_options(value).items()))


def author_options(value: Any) -> dict[str, Any]:
    """Options of a function that its author compiled with `numba.njit`, as far as they change results or inlining."""
    options = getattr(value, "targetoptions", {})
    return {name: options[name] for name in ("boundscheck", "fastmath", "forceinline", "inline") if options.get(name)}


def attributes_in(roots: Mapping[str, Callable]) -> frozenset[str]:
    """Names of all attributes that reachable code loads or stores."""
    return frozenset().union(*(names_in(found.value.__code__).attributes for found in reachable(roots) if found.is_new))


def layout(dtype: np.dtype) -> str:
    """Names, places and types of all members of a record, independent of NumPy's own notation."""
    base, shape = dtype.subdtype or (dtype, ())
    if base.fields is None:
        return f"{base.str}{shape}"
    places: Any = base.fields
    members = ", ".join(f"{name}@{places[name][1]}: {layout(places[name][0])}" for name in base.names or ())
    return f"{{{members}}}{base.itemsize}{shape}"


def constant_bytes(value: Any) -> bytes:
    """A constant of the rules as bytes: equal for equal constants, under every Python and NumPy, in every process.

    Values count by what they are: numbers, text, tuples, frozen sets and dataclasses, read-only mappings, enumerations,
    arrays. Whatever else there is may change while a process runs, a list, a dict, a set, an object of some class: it
    counts by the name of its class alone. Functions, classes and modules count by their names.
    """
    if type(value) in PLAIN:
        return f"{type(value).__name__} {value!a}".encode()  # not repr: what it escapes depends on the Unicode version
    if isinstance(value, enum.Enum):
        return f"{type(value).__qualname__}.{value.name} ".encode() + constant_bytes(value.value)
    if is_enumeration(value):
        return b"\0".join(constant_bytes(member) for member in value.__members__.values())
    if isinstance(value, np.ndarray | np.generic):  # before float: a NumPy number may be one
        order = "" if isinstance(value, np.generic) or value.flags.c_contiguous else " strided"
        return f"{layout(value.dtype)} {value.shape}{order} ".encode() + value.tobytes()
    if isinstance(value, np.dtype):
        return layout(value).encode()
    if isinstance(value, int | float | complex | str | bytes):
        return f"{type(value).__name__} {value!a}".encode()
    if isinstance(value, tuple):
        return f"{len(value)} ".encode() + b"\0".join(constant_bytes(member) for member in value)
    if isinstance(value, frozenset):
        return f"{len(value)} ".encode() + b"\0".join(sorted(constant_bytes(member) for member in value))
    if isinstance(value, types.MappingProxyType):
        return b"mapping " + constant_bytes(frozenset(value.items()))
    if isinstance(value, slice):
        return b"slice " + constant_bytes((value.start, value.stop, value.step))
    if isinstance(value, range) or type(value).__module__.startswith("numba.core.types"):
        return f"{type(value).__qualname__} {value!r}".encode()
    name = _public_name(value if hasattr(value, "__name__") else type(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and value.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        members = tuple((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return f"{name} ".encode() + constant_bytes(members)
    return f"{name} {getattr(value, '_fields', '')}".encode()


def _public_name(named: Any) -> str:
    """Module and name of a function, class or module, the same wherever it is installed.

    A private module is left out: which one has a thing of the standard library changes between versions of Python. So
    is one of the core: where a class of ours is defined is no rule.
    """
    name = getattr(named, "__qualname__", named.__name__)
    module = "" if isinstance(named, types.ModuleType) else getattr(named, "__module__", None) or type(named).__module__
    parts = [] if module.startswith(CORE) else [part for part in module.split(".") if not part.startswith("_")]
    return ".".join([*parts, name])


_remembered: dict[Any, Any] | None = None


@contextlib.contextmanager
def unchanged_rules() -> Iterator[None]:
    """Walks over the code of each game once inside: for callers that make many simulations and edit no rules.

    Elsewhere every simulation looks again, so that an edit of a function or constant is never overlooked.
    """
    global _remembered
    before, _remembered = _remembered, {} if _remembered is None else _remembered
    try:
        yield
    finally:
        _remembered = before


def remembered(key: Any, make: Callable[[], Any]) -> Any:
    """What ``make`` returns; inside `unchanged_rules` it is called once a key."""
    if _remembered is None:
        return make()
    if key not in _remembered:
        _remembered[key] = make()
    return _remembered[key]


def code_digest(functions: Mapping[str, Callable], mark: str) -> str:
    """Hash of a mark, of the byte code of functions and all that they call, and of all constants that they name."""
    return digest_of(reachable(functions), mark)


def digest_of(uses: Iterable[Found], mark: str) -> str:
    """Likewise of what a walk has found."""
    sha = hashlib.sha256(mark.encode())
    for found in uses:
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
