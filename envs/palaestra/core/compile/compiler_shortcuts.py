"""Shortcuts through numba's compiler: what it does again and again for the many functions of one kernel, done once.

Numba treats each function as if Python called it: links it with all that it calls, optimises that and makes machine
code of it. A kernel of 150 functions is so optimised over and over, and only its driver is ever called. Here the
functions behind a driver are kept as they come from the front end, and linked, optimised and turned into machine code
once, with their driver. Typing rules of operators are likewise asked once for each combination of types.

The machine code means the same: only when numba optimises differs, not what. Everything here belongs to numba's
inside. Where a numba has other insides, kernels are compiled without the shortcuts, in more time.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

LARGE = 100
"""Functions of a kernel from which on LLVM's first passes are left out, see `_one_optimisation`."""

_one_at_a_time = threading.RLock()


@contextlib.contextmanager
def shortcuts(mark: str, functions: int = 0) -> Iterator[None]:
    """Compiles by shortcuts what this thread compiles inside; what other threads compile is not touched.

    Args:
        mark: Part of the qualified names of all functions that only compiled code calls, and of no others.
        functions: How many these are.
    """
    with _one_at_a_time, contextlib.ExitStack() as undo:
        large = (_one_optimisation,) if functions >= LARGE else ()
        for shorten in (_operators_once, _no_lock_events, _short_texts, _no_live_variables, *large, _machine_code_once):
            with contextlib.suppress(ImportError, AttributeError):
                shorten(undo, mark)
        yield


def _replace(undo: contextlib.ExitStack, owner: Any, name: str, by: Callable[[Callable], Callable]) -> None:
    """Replaces a method or a function of a module, in this thread, until ``undo`` is closed."""
    plain, thread = getattr(owner, name), threading.get_ident()
    is_own = name in vars(owner)
    shortcut = by(plain)

    def replaced(*arguments: Any, **keywords: Any) -> Any:
        return (shortcut if threading.get_ident() == thread else plain)(*arguments, **keywords)

    setattr(owner, name, replaced)
    if is_own:
        undo.callback(setattr, owner, name, plain)
    else:
        undo.callback(delattr, owner, name)


def _operators_once(undo: contextlib.ExitStack, mark: str) -> None:
    """Asks for the signature of a built-in function once for each combination of types.

    Numba tries dozens of definitions of ``==`` or ``+`` at each place where one stands.
    """
    from numba.core.types import functions

    known: dict[tuple, Any] = {}

    def remembering(plain: Callable) -> Callable:
        def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
            key = (self, context, tuple(args))
            if kws:
                return plain(self, context, args, kws)
            if key not in known:
                known[key] = plain(self, context, args, kws)
            return known[key]

        return get_call_type

    _replace(undo, functions.BaseFunction, "get_call_type", remembering)


def _no_lock_events(undo: contextlib.ExitStack, mark: str) -> None:
    """Measures no times of LLVM's lock: tens of thousands of events, each told to the timers of many functions."""
    from numba.core import event

    def without(plain: Callable) -> Callable:
        def of_kind(kind: str, *arguments: Any, **keywords: Any) -> None:
            if kind != "numba:llvm_lock":
                plain(kind, *arguments, **keywords)

        return of_kind

    _replace(undo, event, "start_event", without)
    _replace(undo, event, "end_event", without)


def _short_texts(undo: contextlib.ExitStack, mark: str) -> None:
    """Writes the text of a record's type once: numba asks for it in each of its passes."""
    from numba.core.types import npytypes

    texts: dict[int, tuple[Any, str]] = {}

    def remembering(plain: Callable) -> Callable:
        def text_of(self: Any) -> str:
            if id(self) not in texts:
                texts[id(self)] = self, plain(self)  # the type is kept, so that no other gets its id
            return texts[id(self)][1]

        return text_of

    _replace(undo, npytypes.Record, "__repr__", remembering)


def _no_live_variables(undo: contextlib.ExitStack, mark: str) -> None:
    """Looks for no variables that are alive where a block begins: asked after each pass, used for generators alone."""
    from numba.core import postproc, transforms

    def for_generators(plain: Callable) -> Callable:
        def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
            code = self.func_ir
            if code.is_generator:
                plain(self, emit_dels, extend_lifetimes)
                return
            code.blocks = transforms.canonicalize_cfg(code.blocks)
            code.variable_lifetime = postproc.VariableLifetime(code.blocks)  # computes what it is asked for
            code.generator_info = None
            if emit_dels:
                self._insert_var_dels(extend_lifetimes=extend_lifetimes)

        return run

    _replace(undo, postproc.PostProcessor, "run", for_generators)


def _one_optimisation(undo: contextlib.ExitStack, mark: str) -> None:
    """Leaves out LLVM's passes over each function and the cheap ones before the whole program is optimised.

    For large kernels only: they compile in less time and become no slower, where small ones may lose a tenth of their
    speed.
    """
    from numba.core import codegen

    def in_no_pass(plain: Callable) -> Callable:
        def optimize_functions(library: Any, module: Any) -> None:
            module.data_layout = library._codegen._data_layout

        return optimize_functions

    def in_one_pass(plain: Callable) -> Callable:
        def optimize_final_module(library: Any) -> None:
            manager, builder = library._codegen._module_pass_manager()
            manager.run(library._final_module, builder)

        return optimize_final_module

    _replace(undo, codegen.CPUCodeLibrary, "_optimize_functions", in_no_pass)
    _replace(undo, codegen.CPUCodeLibrary, "_optimize_final_module", in_one_pass)


def _machine_code_once(undo: contextlib.ExitStack, mark: str) -> None:
    """Links, optimises and makes machine code of all functions with their driver, and of none before."""
    from numba.core import codegen

    unresolved = codegen.RuntimeLinker.PREFIX
    waiting: list[tuple[Any, str, Any]] = []  # environments of functions that have no machine code yet

    def waits(library: Any) -> bool:
        """Whether only compiled code calls it; what calls itself through others is linked by address, at once."""
        is_recursive = any(g.name.startswith(unresolved) for g in library._final_module.global_variables)
        return mark in library.name and not is_recursive

    def finalizing(plain: Callable) -> Callable:
        def finalize(library: Any) -> None:
            if waits(library):
                library._finalized = True
                return
            if any(waits(linked) for linked in library._linking_libraries):
                library._linking_libraries = _callers_first(library)
            plain(library)
            missing = [f.name for f in library._final_module.functions if f.is_declaration and mark in f.name]
            if missing:  # a call of it would crash
                raise RuntimeError(f"not linked with {library.name}: {missing}")
            for codegen_, name, environment in waiting:
                if codegen_._engine.get_global_value_address(name):
                    codegen_.set_env(name, environment)

        return finalize

    def setting(plain: Callable) -> Callable:
        def set_env(self: Any, name: str, environment: Any) -> None:
            if self._engine.get_global_value_address(name):
                plain(self, name, environment)
            else:
                waiting.append((self, name, environment))

        return set_env

    for owner, name in ((codegen.JITCodeLibrary, "finalize"), (codegen.JITCPUCodegen, "set_env")):
        getattr(owner, name)  # both are there, or neither is replaced
    _replace(undo, codegen.JITCodeLibrary, "finalize", finalizing)
    _replace(undo, codegen.JITCPUCodegen, "set_env", setting)


def _callers_first(library: Any) -> list[Any]:
    """All libraries that one is linked with, directly or not. LLVM drops what nobody has called before."""
    found: dict[Any, None] = {}

    def visit(caller: Any) -> None:
        for linked in caller._linking_libraries:
            if linked not in found:
                found[linked] = None  # a circle ends here
                visit(linked)
                found[linked] = found.pop(linked)  # after all that it calls

    visit(library)
    return list(reversed(found))
