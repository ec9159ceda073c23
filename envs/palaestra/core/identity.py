"""What must be the same for a replay to repeat: the rules, and for pinned games the engine and the platform."""

from __future__ import annotations

import hashlib
import inspect
import io
import platform
import textwrap
import tokenize
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from palaestra.core.game import Game
from palaestra.core.linker import HOOKS


def rules_digest(game: Game) -> str:
    """Hash of everything that decides how a match goes on: hooks and what they call, constants, tables, records, world.

    It is made from source text without comments, docstrings and blank space, not from byte code: the same rules have
    the same digest under every Python. Defaults of parameters are left out, a replay holds their values.
    """
    walk = _Walk()
    for name in HOOKS:
        hook = getattr(game, name)
        walk.put(f"hook {name}")
        if hook is not None:
            walk.function(hook)
    walk.put(f"record {layout(game.state_dtype)}")
    for role in game.roles:
        walk.put(f"role {role.name} {role.agents} {role.action!r}")
    tables = (game.scripts, game.end_reasons, game.periods, [p.name for p in game.parameters], game.physics)
    walk.put(f"tables {tables!r} {sorted(game.physics_options.items())!r}")
    for name, value in zip(getattr(game.world, "_fields", ()), game.world or (), strict=False):
        walk.value(name, value)
    return walk.sha.hexdigest()[:16]


def engine_key(game: Game) -> str:
    """What a pinned game's bits depend on besides its rules; empty for an exact game."""
    if game.reproducibility == "exact":
        return ""
    engine = f"{game.engine_version()} on " if game.engine_version is not None else ""
    return f"{engine}{platform.system()} {platform.machine()}"


def layout(dtype: np.dtype) -> str:
    """Names, places and types of all members of a record, whatever NumPy's own way of writing them."""
    base, shape = dtype.subdtype or (dtype, ())
    if base.fields is None:
        return f"{base.str}{shape}"
    places: Any = base.fields
    members = ", ".join(f"{name}@{places[name][1]}: {layout(places[name][0])}" for name in base.names or ())
    return f"{{{members}}}{base.itemsize}{shape}"


class _Walk:
    """Hashes functions, everything that they call by name, and the constants that they name."""

    def __init__(self) -> None:
        self.sha = hashlib.sha256()
        self._seen: set[int] = set()

    def put(self, text: str) -> None:
        self.sha.update(text.encode() + b"\0")

    def function(self, function: Callable) -> None:
        if id(function) in self._seen or not isinstance(function, types.FunctionType):
            return
        self._seen.add(id(function))
        self.put(_text_of(function))
        names = _names(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            self.value(name, function.__globals__[name], names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.value(name, cell.cell_contents)

    def value(self, name: str, value: Any, members: frozenset[str] | set[str] = frozenset()) -> None:
        value = getattr(value, "py_func", value)  # a function that its author compiled
        if isinstance(value, types.FunctionType):
            self.put(name)
            self.function(value)
        elif isinstance(value, types.ModuleType):
            if value.__name__.partition(".")[0] not in ("math", "numpy", "numba"):
                for member in sorted(m for m in members if hasattr(value, m)):
                    self.value(f"{name}.{member}", getattr(value, member))
        elif isinstance(value, np.ndarray):
            self.put(f"{name} = {layout(value.dtype)} {value.shape}")
            self.sha.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, int | float | str | tuple | np.generic):
            self.put(f"{name} = {value.item() if isinstance(value, np.generic) else value!r}")


def _names(code: types.CodeType) -> set[str]:
    nested = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*(_names(c) for c in nested))


def _text_of(function: types.FunctionType) -> str:
    """Tokens of a function's source without comments and docstrings; its byte code where no source is at hand."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (OSError, tokenize.TokenError, SyntaxError):
        return function.__code__.co_code.hex()
    lines: list[list[str]] = [[]]
    for token in tokens:
        if token.type == tokenize.NEWLINE:
            lines.append([])
        elif token.type in (tokenize.INDENT, tokenize.DEDENT):
            lines[-1].append(tokenize.tok_name[token.type])
        elif token.type == tokenize.STRING and all(word in ("INDENT", "DEDENT") for word in lines[-1]):
            continue  # a docstring
        elif token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER):
            lines[-1].append(token.string)
    return " ".join(word for line in lines for word in line)
