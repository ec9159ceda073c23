"""Digest of a game's rules: what must be the same for a match to go on in the same way."""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import inspect
import types
import warnings
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from palaestra.core.compile.linker import HOOKS
from palaestra.core.compile.reachable import (
    Found,
    constant_bytes,
    digest_of,
    function_of,
    is_enumeration,
    is_in_package,
    layout,
    reachable,
    remembered,
)
from palaestra.core.contract import factories
from palaestra.core.contract.fields import ActionField
from palaestra.core.contract.rules import Game

_digests: weakref.WeakKeyDictionary[Game, tuple[str, str]] = weakref.WeakKeyDictionary()
"""By game: the digest of the byte code that its rules' digest was made of, and the digest of the rules."""


def rules_digest(game: Game) -> str:
    """Hash of everything that decides how a match goes on: hooks and what they call, constants, tables, records, world.

    It is made from syntax trees, not from text or byte code: the same rules have the same digest under every Python
    and NumPy and in every process, and comments, docstrings and layout do not matter. Of an engine outside it sees
    the class, its methods, the functions among `Game.physics_options`, and what they use of the engine's package; of
    anything else what `Game.model_digest` says.
    What may change while a process runs (a list, a dict, an object) counts by its class alone, see
    `palaestra.core.compile.reachable.constant_bytes`. Defaults of parameters are left out, a replay holds their
    values; observation tables are left out, they follow from the hooks. It is made anew only if a function or
    constant of the game has become another one.
    """
    code = remembered(("code", game), lambda: digest_of(rules_code(game), ""))
    known, digest = _digests.get(game, ("", ""))
    if known != code:
        digest = _rules_digest(game)
        _digests[game] = (code, digest)
    return digest


def rules_code(game: Game) -> Iterator[Found]:
    """Hooks, engine and what they use."""
    yield from reachable({f"hook {name}": getattr(game, name) for name in HOOKS if getattr(game, name) is not None})
    if game.physics is not None:
        engine: Any = factories.load(game.physics)
        yield from _engine_code(engine)
        package = engine.__module__.rpartition(".")[0] or engine.__module__
        given = {name: value for name, value in game.physics_options.items() if function_of(value, package) is not None}
        yield from reachable({f"option {name}": value for name, value in sorted(given.items())}, package)


def _rules_digest(game: Game) -> str:
    sha = hashlib.sha256()

    def put(text: str, value: bytes = b"") -> None:
        sha.update(text.encode() + b"\0" + value + b"\0")

    for found in rules_code(game):
        if found.number < 0:
            put(found.name, constant_bytes(found.value))
        else:
            put(f"{found.name} {found.number}", _text_of(found.value).encode() if found.is_new else b"")
    put(f"record {layout(game.state_dtype)}, scratch {layout(game.scratch_dtype)}")
    for role in game.roles:
        put("role", _given((role.name, role.agents, role.slots, [_untold(a) for a in role.action])))
    put("scripts, ends", _given((game.scripts, game.end_reasons, game.truncation_reasons)))
    if game.held_out:  # else as before there were such scripts
        put("held out", _given(game.held_out))
    put("rewards, periods", _given((game.reward, game.reward_dtype, game.periods)))
    put("parameters", _given([(p.name, p.low, p.high, p.at_start, *p.words, *p.values) for p in game.parameters]))
    for name, value in _members(game.world):
        put(name, _given(value))
    put("engine", _given((game.physics, game.physics_options)))
    if game.model_digest is not None:
        put("model", game.model_digest().encode())
    return sha.hexdigest()[:16]


def _untold(action: ActionField) -> tuple[Any, ...]:
    """An action without the words that explain it."""
    told = ("about", "meanings", "parts", "unit")
    members = (field.name for field in dataclasses.fields(action) if field.name not in told)
    return (type(action).__name__, *((name, getattr(action, name)) for name in members))


def _given(value: Any) -> bytes:
    """What a game was given, as bytes: lists and dicts count by their contents, nobody changes them any more.

    How an array lies in memory changes no rule.
    """
    return constant_bytes(_fixed(value))


def _fixed(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_fixed, value))
    if isinstance(value, Mapping):
        return frozenset((name, constant_bytes(_fixed(member))) for name, member in value.items())
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value


def _engine_code(engine: type) -> Iterator[Found]:
    """Methods of an engine's class and what they use of its package; of other packages the names alone."""
    package = engine.__module__.rpartition(".")[0] or engine.__module__
    classes = [engine]
    for cls in classes:
        bases = [base for base in cls.__bases__ if base is not object]
        for found in reachable(_methods(cls, package), package):
            yield found
            used = found.value if isinstance(found.value, type) else type(found.value)
            bases += [] if is_enumeration(used) else [used]
        classes += [c for c in dict.fromkeys(bases) if is_in_package(c, package) and c not in classes]


def _methods(cls: type, package: str) -> dict[str, Any]:
    """The functions in a class's body, those behind properties and decorators too, and its constants."""
    found: dict[str, Any] = {}
    for name, member in vars(cls).items():
        if isinstance(member, property):
            found |= {f"{name} {k}": f for k, f in enumerate((member.fget, member.fset, member.fdel)) if f is not None}
        elif isinstance(member, staticmethod | classmethod):
            found[name] = member.__func__
        elif isinstance(member, functools.cached_property):
            found[name] = member.func
        elif (function := function_of(member, package)) is not None:
            if function.__code__.co_filename != "<string>":  # what a dataclass makes has no source
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


def _text_of(function: types.FunctionType) -> str:
    """Digest of a function's syntax tree; its byte code where no source is at hand."""
    code = function.__code__
    try:
        lines, _ = inspect.findsource(code)
        return _trees("".join(lines))[code.co_name, code.co_firstlineno]
    except (OSError, SyntaxError, KeyError):
        return code.co_code.hex()


@functools.lru_cache(maxsize=256)
def _trees(source: str) -> dict[tuple[str, int], str]:
    """By name and first line, decorators included: digests of the syntax trees of all functions in a file.

    Of lambdas that begin on one line, each has the digest of all.
    """
    found: dict[tuple[str, int], str] = {}
    with warnings.catch_warnings():  # of its strings: the import has given them
        warnings.simplefilter("ignore")
        tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            key = (node.name, min(part.lineno for part in (node, *node.decorator_list)))
        elif isinstance(node, ast.Lambda):
            key = ("<lambda>", node.lineno)
        else:
            continue
        found[key] = hashlib.sha256(f"{found.get(key, '')}{_tree(node)}".encode()).hexdigest()
    return found


def _tree(node: Any) -> str:
    """A syntax tree as text that all versions of Python agree on.

    Left out are places, members that are empty (newer versions have more of them), docstrings and other texts that are
    statements, the prefix of ``u"..."``, and the empty pieces that Python 3.12 puts into f-strings.
    """
    if isinstance(node, ast.JoinedStr):
        node = ast.JoinedStr([piece for piece in node.values if getattr(piece, "value", None) != ""])
    if isinstance(node, ast.AST):
        members = [(name, value) for name, value in ast.iter_fields(node) if name != "kind"]
        texts = [f"{name}={_tree(value)}" for name, value in members if value is not None and value != []]
        return f"{type(node).__name__}({' '.join(texts)})"
    if isinstance(node, list):
        return f"[{' '.join(_tree(member) for member in node if not _is_text(member))}]"
    return ascii(node)


def _is_text(node: Any) -> bool:
    """Whether a node is a statement that is a text alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
