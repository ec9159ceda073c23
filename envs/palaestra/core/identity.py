"""Digest of a game's rules: what must be the same for a match to go on in the same way."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import io
import textwrap
import tokenize
import types
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from palaestra.core import factories
from palaestra.core.fields import ActionField, Choice
from palaestra.core.game import Game
from palaestra.core.linker import HOOKS
from palaestra.core.reachable import (
    Found,
    constant_bytes,
    digest_of,
    is_enumeration,
    is_in_package,
    layout,
    reachable,
    remembered,
)

_digests: weakref.WeakKeyDictionary[Game, tuple[str, str]] = weakref.WeakKeyDictionary()
"""By game: the digest of the byte code that its rules' digest was made of, and the digest of the rules."""


def rules_digest(game: Game) -> str:
    """Hash of everything that decides how a match goes on: hooks and what they call, constants, tables, records, world.

    It is made from source text without comments, docstrings and blank space, not from byte code: the same rules have
    the same digest under every Python. Of an engine outside it sees the class, its methods and what they use of their
    own package. Defaults of parameters are left out, a replay holds their values; observation tables are left out, they
    follow from the hooks. It is made anew only if a function or constant of the game has become another one.
    """
    code = remembered(("code", game), lambda: digest_of(_code(game), ""))
    known, digest = _digests.get(game, ("", ""))
    if known != code:
        digest = _rules_digest(game)
        _digests[game] = (code, digest)
    return digest


def _code(game: Game) -> Iterator[Found]:
    """Hooks, engine and what they use."""
    yield from reachable({f"hook {name}": getattr(game, name) for name in HOOKS if getattr(game, name) is not None})
    if game.physics is not None:
        engine: Any = factories.load(game.physics)
        yield from _engine_code(engine)


def _rules_digest(game: Game) -> str:
    sha = hashlib.sha256()

    def put(text: str, value: bytes = b"") -> None:
        sha.update(text.encode() + b"\0" + value + b"\0")

    for found in _code(game):
        if found.number < 0:
            put(found.name, constant_bytes(found.value))
        else:
            put(f"{found.name} {found.number}", _text_of(found.value).encode() if found.is_new else b"")
    put(f"record {layout(game.state_dtype)}, scratch {layout(game.scratch_dtype)}")
    for role in game.roles:
        put(f"role {role.name} {role.agents} {role.slots} {[_untold(a) for a in role.action]}")
    put(f"scripts {game.scripts}, ends {game.end_reasons} {game.truncation_reasons}")
    put(f"rewards {game.reward} {game.reward_dtype}, periods {game.periods}")
    put(f"parameters {[(p.name, p.low, p.high, p.words, p.at_start) for p in game.parameters]}")
    for name, value in _members(game.world):
        put(name, _world_bytes(value))
    put(f"engine {game.physics} {sorted(game.physics_options.items())!r}")
    return sha.hexdigest()[:16]


def _untold(action: ActionField) -> ActionField:
    """An action without the words that explain it."""
    words: dict[str, Any] = {"meanings": ()} if isinstance(action, Choice) else {"unit": ""}
    return dataclasses.replace(action, about="", **words)


def _engine_code(engine: type) -> Iterator[Found]:
    """Methods of an engine's class and what they use of its package; of other packages the names alone."""
    package = engine.__module__.rpartition(".")[0] or engine.__module__
    classes = [engine]
    for cls in classes:
        bases = [base for base in cls.__bases__ if base is not object]
        for found in reachable(_methods(cls), package):
            yield found
            bases += [found.value] if isinstance(found.value, type) and not is_enumeration(found.value) else []
        classes += [c for c in dict.fromkeys(bases) if is_in_package(c, package) and c not in classes]


def _methods(cls: type) -> dict[str, Any]:
    """The functions in a class's body, those behind properties and decorators too, and its constants."""
    found: dict[str, Any] = {}
    for name, member in vars(cls).items():
        if isinstance(member, property):
            found |= {f"{name} {k}": f for k, f in enumerate((member.fget, member.fset, member.fdel)) if f is not None}
        elif isinstance(member, staticmethod | classmethod):
            found[name] = member.__func__
        elif isinstance(member, functools.cached_property):
            found[name] = member.func
        elif isinstance(member, types.FunctionType):
            if inspect.unwrap(member).__code__.co_filename != "<string>":  # what a dataclass makes has no source
                found[name] = member
        elif not name.startswith("__"):
            found[name] = member
    return {f"{cls.__qualname__}.{name}": member for name, member in found.items()}


def _members(world: Any) -> Iterable[tuple[str, Any]]:
    """Names and values of what a world holds; numbers where it has no names."""
    if world is None:
        return ()
    members = world if isinstance(world, tuple) else (world,)
    return zip(getattr(world, "_fields", map(str, range(len(members)))), members, strict=True)


def _world_bytes(value: Any) -> bytes:
    """Numbers of the world; how an array lies in memory changes no rule."""
    return constant_bytes(np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value)


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
