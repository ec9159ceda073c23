"""Signals that wait: Ctrl-C during an import or a compilation takes effect after it.

Python raises `KeyboardInterrupt` between any two instructions. Libraries do not survive that while they are imported:
the half that has run stays behind, and the next ``import numba`` finds `numba` without `numba.core`. The compiler's own
tables are no better. So nothing of that kind is interrupted: a `Hold` notes the signals that arrive and calls their own
handlers when it ends, in the order in which they came.

Only the main thread receives signals, so a `Hold` of another thread does nothing. It costs a few microseconds and
belongs around what happens once, never into a step. This module imports nothing that an interrupt could leave half
done: it is the first that `palaestra` loads.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

NUMBERS = [getattr(signal, name) for name in ("SIGINT", "SIGALRM") if hasattr(signal, name)]
"""Signals whose handlers raise in the midst of other code: Ctrl-C, and the alarms of time limits."""

_reasons: list[str] = []
"""What the main thread is doing that must not be interrupted, from the outside in; empty where nothing waits."""
_unbroken: list[None] = []
"""One for each hold among them that lets nothing through before its end."""
_waiting: list[int] = []
"""Signals that have arrived meanwhile."""
_handlers: dict[int, Callable[[int, Any], Any]] = {}
"""Handlers of the signals, while `_note` stands in their place."""


class Hold:
    """Lets Ctrl-C and alarms wait until the end of a ``with`` block; may be nested."""

    def __init__(self, what: str, breakable: bool = False) -> None:
        """Holds nothing yet.

        Args:
            what: What is going on, for the line that Ctrl-C prints: ``"the import of mujoco"``.
            breakable: What is inside has places that may be interrupted, and marks them by `let_through`.
        """
        self._what, self._breakable = what, breakable
        self._depth = self._depth_unbroken = -1

    def __enter__(self) -> None:
        """From here on signals wait."""
        if threading.current_thread() is not threading.main_thread():
            return
        depth, depth_unbroken = len(_reasons), len(_unbroken)
        _stand_in()
        _reasons.append(self._what)  # until here a signal is handled at once
        self._depth, self._depth_unbroken = depth, depth_unbroken
        if not self._breakable:
            _unbroken.append(None)

    def __exit__(self, kind: Any = None, error: Any = None, traceback: Any = None) -> None:
        """Handles the signals that have waited, if this is the outermost hold."""
        if self._depth < 0:
            return
        del _unbroken[self._depth_unbroken :]
        depth, self._depth = self._depth, -1
        del _reasons[depth:]  # from here on a signal is handled at once
        if not _reasons:
            _step_back()
            _handle()


class Importing(Hold):
    """A `Hold` around the import of another library."""

    def __init__(self, library: str, missing: str = "") -> None:
        """Imports nothing yet.

        Args:
            library: Its name.
            missing: Message of the `ImportError` where it is not installed; by default that of Python.
        """
        super().__init__(f"the import of {library}")
        self._missing = missing

    def __exit__(self, kind: Any = None, error: Any = None, traceback: Any = None) -> None:
        """Says how to install what is missing."""
        super().__exit__()
        if self._missing and isinstance(error, ImportError):
            raise ImportError(self._missing) from error


def imported_whole(function: Callable[[], Any]) -> Any:
    """A function that imports a library, called once and where Ctrl-C waits.

    To the digest of rules it is the function itself.
    """

    @functools.cache
    def call() -> Any:
        with Hold(f"the import of {function.__name__.removeprefix('import_')}"):
            return function()

    call.py_func = function  # type: ignore[attr-defined]
    return call


@contextlib.contextmanager
def let_through() -> Iterator[None]:
    """Lets the signals that wait be handled, and those that arrive inside at once, if all holds are breakable."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not _reasons or _unbroken:
        yield
        return
    reasons = _reasons.copy()
    _reasons.clear()
    try:
        _step_back()
        _handle()
        yield
    finally:
        _stand_in()
        _reasons[:] = reasons


def rejoin(package: str) -> None:
    """Makes modules of a package its attributes that an earlier import of it has loaded.

    Where an interrupt ends the import of a package at its end, Python forgets the package and keeps its modules, and
    does not make them attributes of the next one.
    """
    for name, module in list(sys.modules.items()):
        parent, _, child = name.rpartition(".")
        if parent == package:
            vars(sys.modules[package]).setdefault(child, module)


def _stand_in() -> None:
    """Puts `_note` in the place of the signals' handlers; those of the system and of C programs stay."""
    for number in NUMBERS:
        handler: Any = signal.getsignal(number)
        if callable(handler) and handler is not _note:
            _handlers[number] = handler
            with contextlib.suppress(ValueError):  # a main thread of another interpreter, which receives no signals
                signal.signal(number, _note)


def _step_back() -> None:
    for number, handler in _handlers.items():
        if signal.getsignal(number) is _note:
            signal.signal(number, handler)


def _note(number: int, frame: Any) -> None:
    """Notes a signal. Where nothing holds it (somebody may have kept this handler), it is handled at once."""
    _waiting.append(number)
    if not _reasons:
        _handle()
    elif number == signal.SIGINT and _waiting.count(number) == 1 and os.environ.get("PALAESTRA_VERBOSE") != "0":
        with contextlib.suppress(Exception):  # it may have arrived in the midst of another print
            print(f"palaestra: Ctrl-C waits for the end of {_reasons[0]}", file=sys.stderr, flush=True)


def _handle() -> None:
    """Calls the handlers of all signals that have waited; the first error that one of them raises is raised."""
    raised: BaseException | None = None
    while _waiting:
        number = _waiting.pop(0)
        try:
            _handlers[number](number, sys._getframe())
        except BaseException as error:
            raised = raised or error
    if raised is not None:
        raise raised
