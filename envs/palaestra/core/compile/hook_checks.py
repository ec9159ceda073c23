"""Mistakes in hooks that show without playing: their arguments, random numbers of another source, debuggers."""

from __future__ import annotations

import builtins
import dis
import inspect
import random
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from palaestra.core.compile.diagnosis import hook_codes, rule_error, subject_of
from palaestra.core.compile.reachable import CORE, free_variables, names_in, plain, reachable

ARGUMENTS = {
    "reset": "s, world",
    "step": "s, world, actions, rewards, scratch",
    "observe": "s, world, observations, scratch",
    "observe_reset": "s, world, observations, scratch",
    "legal": "s, world, mask",
    "script": "s, world, slot, which, actions, scratch",
    "plan": "s, world, team, which, scratch",
    "command": "s, world, actions, scratch",
    "advance": "s, world, scratch",
    "load": "s, world, scratch",
    "evaluate": "s, world, rewards, scratch",
    "global_state": "s, world, out",
}
"""What each hook of a game is called with."""
DEBUGGERS = ("pdb", "ipdb", "pudb", "bdb")
RANDOM = (
    "draw with palaestra.core.rng: from palaestra.core.rng import uniform; uniform(s, low, high). integer(s, n) draws "
    "an integer, script_uniform(s, low, high) and script_integer(s, n) are for scripts"
)
DEBUG = "a debugger stops in rules that run as plain Python: pass compiled=False, or set NUMBA_DISABLE_JIT=1"


def check_arguments(game: str, hooks: Mapping[str, Callable]) -> None:
    """Refuses hooks that cannot be called as the suite calls them.

    Raises:
        RuleError: Names the hook, its line and its arguments.
    """
    for name, hook in hooks.items():
        function, wanted = plain(hook), ARGUMENTS[name]
        assert function is not None
        code, count = function.__code__, len(wanted.split(", "))
        most = np.inf if code.co_flags & inspect.CO_VARARGS else code.co_argcount
        least = code.co_argcount - len(function.__defaults__ or ())
        if not least <= count <= most:
            own = ", ".join(code.co_varnames[: code.co_argcount])
            what = f"{name} is called with ({wanted}), this function takes ({own})"
            raise rule_error(
                f"{game}: {name}", what, code.co_filename, code.co_firstlineno, f"write def {code.co_name}({wanted}):"
            )


def check_sources(game: str, hooks: Mapping[str, Callable]) -> None:
    """Refuses random numbers that no seed decides, and debuggers, in hooks that are to be compiled.

    Raises:
        RuleError: Names the line and what to use instead.
    """
    codes = hook_codes(hooks)
    for name, hook in hooks.items():
        for found in reachable({name: hook}):
            if not found.is_new or found.value.__module__.startswith(CORE):
                continue
            code = found.value.__code__
            for chain, value in _taken(found.value):
                if (advice := _refused(value)) is None:
                    continue
                line = next(
                    (i.positions.lineno for i in dis.get_instructions(code) if i.argval == chain[-1] and i.positions),
                    None,
                )
                reason = "draws numbers that no seed decides" if advice is RANDOM else "cannot be compiled"
                what = f"{'.'.join(chain)} {reason}"
                subject = subject_of(game, name, code, codes)
                raise rule_error(subject, what, code.co_filename, line or code.co_firstlineno, advice)


def _taken(function: types.FunctionType) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Chains of names that a function loads from outside, and what each leads to, step by step."""
    names = names_in(function.__code__)
    scope = {**vars(builtins), **function.__globals__}
    for chains, known in ((names.globals, scope), (names.free, free_variables(function))):
        for chain in chains:
            value = known.get(chain[0])
            yield chain[:1], value
            for k, member in enumerate(chain[1:], start=2):
                if not isinstance(value, types.ModuleType):
                    break
                value = getattr(value, member, None)
                yield chain[:k], value


def _refused(value: Any) -> str | None:
    """What to write instead of a thing that rules may not use; None where they may."""
    if value is builtins.breakpoint:
        return DEBUG
    if isinstance(value, types.ModuleType):
        return DEBUG if value.__name__ in DEBUGGERS else None
    home = getattr(value, "__self__", None)
    if isinstance(home, random.Random | np.random.RandomState) or isinstance(value, np.random.Generator):
        return RANDOM
    return RANDOM if getattr(value, "__module__", "") in ("random", "secrets") and callable(value) else None
