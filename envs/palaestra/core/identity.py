"""Digest of a game's rules: what must be the same for a match to go on in the same way."""

from __future__ import annotations

import hashlib
import inspect
import io
import textwrap
import tokenize
import types
import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np

from palaestra.core.game import Game
from palaestra.core.linker import HOOKS
from palaestra.core.reachable import constant_bytes, layout, reachable

_digests: weakref.WeakKeyDictionary[Game, str] = weakref.WeakKeyDictionary()


def rules_digest(game: Game) -> str:
    """Hash of everything that decides how a match goes on: hooks and what they call, constants, tables, records, world.

    It is made from source text without comments, docstrings and blank space, not from byte code: the same rules have
    the same digest under every Python. Defaults of parameters are left out, a replay holds their values. A game does
    not change, so it is made once for each game object.
    """
    if game not in _digests:
        _digests[game] = _rules_digest(game)
    return _digests[game]


def _rules_digest(game: Game) -> str:
    sha = hashlib.sha256()

    def put(text: str, value: bytes = b"") -> None:
        sha.update(text.encode() + b"\0" + value + b"\0")

    hooks = {name: getattr(game, name) for name in HOOKS if getattr(game, name) is not None}
    for found in reachable({f"hook {name}": hook for name, hook in hooks.items()}):
        if found.number < 0:
            put(found.name, constant_bytes(found.value))
        else:
            put(f"{found.name} {found.number}", _text_of(found.value).encode() if found.is_new else b"")
    put(f"record {layout(game.state_dtype)}")
    for role in game.roles:
        put(f"role {role.name} {role.agents} {role.action!r}")
    tables = (game.scripts, game.end_reasons, game.periods, [p.name for p in game.parameters], game.physics)
    put(f"tables {tables!r} {sorted(game.physics_options.items())!r}")
    for name, value in _members(game.world):
        put(name, _world_bytes(value))
    return sha.hexdigest()[:16]


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
