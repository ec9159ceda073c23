"""How palaestra calls numba: the options, the cache on disk, and errors in the words of the author's own code.

Nothing here imports numba before something is compiled.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import multiprocessing
import os
import re
import sys
import types
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from palaestra.core.compile.disk_cache import warn_once
from palaestra.core.interrupts import Hold, let_through

EVERYWHERE = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
"""Options of all compiled code. Without numba's run-time memory manager (``_nrt``) an array inside a record is a plain
view; with it, every slice of a record counts references by atomic instructions, most of the time of a small game.
It is not called from C."""
INSIDE = {"no_cpython_wrapper": True}
"""Options of code that Python never calls: a quarter of the time of compiling goes into ways to call it from there."""
BATCH_LOOP = {"forceinline": True}
"""Options of the parts of the batch loop: each is called from one place, with more arrays than registers hold."""
TUNING = ("_nrt", "no_cfunc_wrapper", *INSIDE, *BATCH_LOOP)
"""Options that change speed and no result: a numba that does not know them compiles without."""

BYTES_A_SECOND = 5000
"""Byte code that is compiled in a second, about: 8,600 bytes (CartPole) take 2 s and 41,000 (Skirmish) 9 to 21 s on two
shared cores."""
KEPT = "once, then cached; `palaestra doctor --warm` compiles all ids ahead, PALAESTRA_VERBOSE=0 hides this line"

_announced: set[tuple[types.FunctionType, ...]] = set()
_silent = False


def options(*, inside: bool, batch_loop: bool = False) -> dict[str, Any]:
    """Options for `numba.njit`: of a function that only compiled code calls (``inside``), or of a driver."""
    wanted = {**EVERYWHERE, **(INSIDE if inside else {}), **(BATCH_LOOP if batch_loop else {})}
    known = known_options()
    missing = [name for name in TUNING if name not in known]
    if missing:
        import numba

        warn_once(
            "options",
            f"numba {numba.__version__} does not know the options {missing}: games compile and run more slowly, with "
            "the same results. Use the numba version that palaestra was tested with.",
        )
    return {name: value for name, value in wanted.items() if name not in missing}


def made_with() -> str:
    """The options and NumPy, whose types are numba's, as text: part of the name of all stored machine code."""
    return repr((np.__version__, options(inside=False), options(inside=True, batch_loop=True)))


def _import_numba() -> None:
    """Imports numba without two packages that it looks for and that take longer to import than a game to load.

    *Coverage*: numba tells a running measurement which lines it compiled. None runs where nothing has imported it.
    *SciPy*, when `numba.np.arraymath` is imported, for `np.cov`: what needs SciPy imports it when it is compiled.
    """
    if "numba.np.arraymath" not in sys.modules:
        with Hold("the import of numba"):
            _import_without_coverage()
            _import_without_scipy()


def _import_without_coverage() -> None:
    if "numba" in sys.modules:
        return
    is_hidden = "coverage" not in sys.modules
    if is_hidden:
        sys.modules["coverage"] = None  # type: ignore[assignment] (an import of it fails)
    try:
        import numba.core.cpu  # noqa: F401
    finally:
        if is_hidden:
            del sys.modules["coverage"]


def _import_without_scipy() -> None:
    with contextlib.suppress(ImportError, AttributeError):  # another numba: it imports SciPy, as it would without us
        from numba.np import linalg

        ensure_blas = linalg.ensure_blas

        def is_there() -> None:
            if importlib.util.find_spec("scipy") is None:
                raise ImportError("no SciPy")

        linalg.ensure_blas = is_there
        try:
            from numba.np import arraymath

            arraymath.ensure_blas = ensure_blas  # pyright: ignore[reportPrivateImportUsage] (what the import bound)
        finally:
            linalg.ensure_blas = ensure_blas


def known_options() -> frozenset[str]:
    """Names of the options that this numba can read; those of its public interface where it does not say."""
    _import_numba()
    try:
        from numba.core.cpu import CPUTargetOptions
    except ImportError:
        return frozenset(EVERYWHERE) - frozenset(TUNING)
    return frozenset(dir(CPUTargetOptions))


def load_lightly(dispatcher: Any) -> Any:
    """Lets a dispatcher load stored machine code without building numba's registries; returns the dispatcher.

    The registries hold typing rules and implementations. Only the compiler needs them, and building them takes long.
    Stored code refers to symbols of numba's run-time system and helper library alone. They
    are there without the registries; only hashes of strings, which hooks do not have, need more. Where nothing stored
    fits, or numba's internals have changed, the dispatcher loads or compiles as numba does by itself.
    """
    cache = dispatcher._cache
    load_after_registries = cache.load_overload

    def load_overload(signature: Any, context: Any) -> Any:
        stored = None
        with contextlib.suppress(Exception):
            from numba.core.runtime.nrt import rtsys

            rtsys.initialize(context)  # the symbols that machine code refers to
            with cache._guard_against_spurious_io_errors():
                stored = cache._load_overload(signature, context)
        return load_after_registries(signature, context) if stored is None else stored

    cache.load_overload = load_overload
    return dispatcher


def compile_whole(dispatcher: Any) -> Any:
    """Lets Ctrl-C wait while a dispatcher compiles or loads; returns the dispatcher.

    With ``NUMBA_DISABLE_JIT`` numba gives the function itself, which compiles nothing.
    """
    if isinstance(dispatcher, types.FunctionType):
        return dispatcher
    compile_now = dispatcher.compile

    def compile_held(signature: Any) -> Any:
        with compiling(dispatcher.py_func.__name__):
            return compile_now(signature)

    dispatcher.compile = compile_held
    return dispatcher


def compile_cached(function: types.FunctionType) -> Callable:
    """Compiles a driver with the disk cache where one can be written, else without, with one warning."""
    with Hold("the import of numba"):
        import numba

        from palaestra.core.compile import numba_cache

        dispatcher = compile_whole(numba.njit(**options(inside=False))(function))
    try:
        return load_lightly(numba_cache.keep(dispatcher))
    except RuntimeError as error:
        if numba_cache.NO_FOLDER not in str(error):
            raise
        others = "; ".join(f"{folder}: {problem}" for folder, problem in numba_cache.refused.items())
        warn_once(
            "cache",
            f"palaestra found no directory in which to keep compiled games ({others or 'read-only install and home'}): "
            "every process compiles them anew, seconds each. Set NUMBA_CACHE_DIR to a writable directory that is yours "
            "alone.",
        )
        return dispatcher


@contextlib.contextmanager
def announcement(game: str, functions: Sequence[types.FunctionType]) -> Iterator[None]:
    """Says in one line on stderr that a game is compiled, if a driver is compiled inside that the cache does not have.

    It is said once a kernel and process, before the compiler starts; see `is_announced`.

    Args:
        game: Its name.
        functions: What is handed to the compiler: the more byte code, the longer it takes.
    """
    try:
        from numba.core import event
    except ImportError:  # numba calls this interface experimental
        event = None
    key = tuple(functions)
    if event is None or key in _announced or not is_announced():
        yield
        return

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            driver = event.data["dispatcher"]
            if key not in _announced:
                _announced.add(key)
                kept = KEPT if driver.stats.cache_path is not None else "in every process: no cache"
                print(f"palaestra: compiling {game}, {_duration(key)} ({kept})", file=sys.stderr, flush=True)

        def on_end(self, event: Any) -> None:
            return

    with event.install_listener("numba:compile", Listener()):
        yield


def _duration(functions: Sequence[types.FunctionType]) -> str:
    least = max(1, round(sum(len(function.__code__.co_code) for function in functions) / BYTES_A_SECOND))
    return f"usually {least} to {3 * least} s"


@contextlib.contextmanager
def compiling(what: str, before: Callable[[], None] | None = None) -> Iterator[None]:
    """Where something is compiled or loaded: Ctrl-C waits until the compiler begins with another function.

    There nothing of numba is half done. What was being compiled is lost, and `Kernel.bind` begins anew.

    Args:
        what: What is compiled, for the line that Ctrl-C prints.
        before: Called once before the first function that is compiled, not for what the cache has. What it raises, the
            compilation raises. Where numba does not tell of its compilations, it is not called.
    """
    with Hold(f"the compilation of {what}", breakable=True):
        try:
            from numba.core import event
        except ImportError:
            yield
            return
        waiting = [] if before is None else [before]

        class Listener(event.Listener):
            def on_start(self, event: Any) -> None:
                with let_through():  # rules that never end are played here
                    if waiting:
                        waiting.pop()()

            def on_end(self, event: Any) -> None:
                return

        with event.install_listener("numba:compile", Listener()):
            yield


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Collects no garbage inside: most of what the compiler makes lives on, and looking through it takes long."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Announces nothing inside: for callers that report on compiling themselves."""
    global _silent
    before, _silent = _silent, True
    try:
        yield
    finally:
        _silent = before


def is_announced() -> bool:
    """Whether compiling is announced: in a main process, a log too, unless ``PALAESTRA_VERBOSE=0`` forbids it."""
    is_worker = multiprocessing.parent_process() is not None
    return not (_silent or is_worker or sys.stderr is None or os.environ.get("PALAESTRA_VERBOSE") == "0")


def _for_all_constants(dispatcher: Any) -> Any:
    """Compiles a function once for all integers: numba would do so anew for each constant that stands in a call."""
    from numba import types as numba_types

    template_for = dispatcher.get_call_template

    def get_call_template(args: Any, kws: Any) -> Any:
        plain = tuple(numba_types.unliteral(a) for a in args)
        return template_for(plain, {name: numba_types.unliteral(a) for name, a in kws.items()})

    dispatcher.get_call_template = get_call_template
    return dispatcher


class Refused(ValueError):
    """An author's code that cannot be compiled; the message says why.

    Attributes:
        file: File of the code, ``""`` where it is not known.
        line: Number of the line.
    """

    def __init__(self, message: str, file: str = "", line: int = 0) -> None:
        """Names the line."""
        super().__init__(message)
        self.file, self.line = file, line


class Inside:
    """Compiles the functions behind the drivers of one game, and knows them again in numba's messages.

    Numba distinguishes machine code of records by numbers that it counts in each process, so two games that were
    compiled in two processes may bring functions of one name to a third, where one game would run the other's code.
    What a driver calls therefore has names that no other process gives.

    Attributes:
        mark: Part of these names alone.
    """

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self._functions: list[types.FunctionType] = []

    @property
    def functions(self) -> tuple[types.FunctionType, ...]:
        """What was compiled, under the names that numba's messages have."""
        return tuple(self._functions)

    def compile(self, function: types.FunctionType, batch_loop: bool = False, **chosen: Any) -> Callable:
        """Compiles a function that only compiled code calls; ``chosen`` are options of its author."""
        import numba

        function.__qualname__ = f"{function.__qualname__}_{self.mark}_{len(self._functions)}"
        self._functions.append(function)
        return _for_all_constants(numba.njit(**{**chosen, **options(inside=True, batch_loop=batch_loop)})(function))

    def explain(
        self, error: Exception, hooks: dict[str, Callable], apart: types.FunctionType | None = None
    ) -> Refused | None:
        """What is wrong with code that numba refused, for mistakes whose names numba does not know; else None.

        Args:
            error: What numba raised.
            hooks: The hooks that were compiled.
            apart: The function that was compiled instead, apart from a kernel.
        """
        if isinstance(error, Refused):
            return error
        message = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        calls = list(re.finditer(rf"<function [^\n]*?_{self.mark}_(\d+) at", message))  # from the inside out
        chain = [self._functions[int(call[1])] for call in calls] + ([] if apart is None else [apart])
        if not chain:
            return None
        code = chain[0].__code__
        relevant = message[: calls[0].start()] if calls else message
        inside = re.findall(rf"at {re.escape(code.co_filename)} \((\d+)\)", relevant)
        line = int(inside[0]) if inside else code.co_firstlineno
        place = f"{os.path.basename(code.co_filename)} line {line}"
        codes = {getattr(hook, "py_func", hook).__code__: name for name, hook in hooks.items()}
        name = apart.__name__ if apart else next((codes[f.__code__] for f in chain if f.__code__ in codes), None)
        subject = f"the {'function apart' if apart else 'hook'} {name!r}" if name is not None else "a hook"
        where = f"in {code.co_name!r} ({place})" if name != code.co_name else f"({place})"
        wrong = _wrong_with_memory_or_calls(message, bool(inside), where)
        return None if wrong is None else Refused(f"{subject} {wrong}", code.co_filename, line)


def _wrong_with_memory_or_calls(message: str, has_line: bool, where: str) -> str | None:
    """The rest of the sentence about a hook, for the mistakes that `Inside.explain` knows."""
    if wrong_call := re.search(r"the function apart '[^\n]*", message):
        return f"calls {wrong_call[0]} {where}"
    if "cannot type infer runaway recursion" in message:
        return f"never ends {where}: a function that calls itself needs a return before it does"
    returns_array = "Only accept returning of array passed into" in message
    if returns_array and not has_line:
        return (
            f"returns an array that a function made {where}: kernels own no memory; hand the record or the array in, "
            "and slice it where it is used"
        )
    if returns_array or "NRT required but not enabled" in message:
        return (
            f"allocates memory {where}: kernels own no memory; use Game(scratch=...) or a field of the match record, "
            "and loops over elements instead of whole-array expressions, copies, lists and strings"
        )
    return None
