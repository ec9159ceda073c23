"""Keywords: none names code, a file, a folder or a model without being declared."""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import tempfile
import typing
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

from palaestra import registry
from palaestra.core.compile.identity import rules_digest
from palaestra.core.contract import factories
from palaestra.core.contract.file_keywords import refusal
from palaestra.core.contract.options import declared_words
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.game import Game, any_text
from palaestra.testing.harness import PRESET, conformance, require
from palaestra.testing.subject import Subject

CANARY = "palaestra_canary"
"""Stands in every text that is tried: whoever reaches for it is seen."""
SUFFIXES = (".txt", ".json", ".npz", ".safetensors")
LOOKED_AT = ("stat", "lstat", "access")
"""Functions of `os` that look for a file, of which Python tells no audit hook."""


@conformance(order=1302, levels=PRESET)
def keywords_that_name_files_are_declared(subject: Subject) -> None:
    """No keyword makes the factory import, open or look for what it names, but those whose option has ``texts``.

    Each is given names of a module, a file, a folder and a model, as they are and within a list and a mapping. At full
    level also beside other values of one other keyword. A library that opens files past Python is not seen.
    """
    factory = factories.load(registry.row(subject.id).factory)
    given = {**registry.row(subject.id).kwargs, **subject.rules_keywords}
    base = {name: given[name] for name in inspect.signature(factory).parameters if name in given}
    with tempfile.TemporaryDirectory(prefix=f"{CANARY}_") as folder:
        for name, value, event in undeclared(factory, base, Path(folder), is_thorough=subject.level == "full"):
            require(
                False,
                f"{name}={value!r} reaches {event}: declare that the keyword may name code or files, "
                f"@with_options(Option({name!r}, ..., texts=(<texts that name none>))), for files of others use it too",
            )


def undeclared(
    factory: Callable[..., Any], base: Mapping[str, Any], folder: Path, *, is_thorough: bool
) -> Iterator[tuple[str, Any, str]]:
    """Keywords whose texts reach something outside the game without being declared: name, value, and what is reached.

    Args:
        factory: Makes a game.
        base: The other keywords.
        folder: An empty one, for the canaries.
        is_thorough: Also beside each other value of another keyword that can be found.
    """
    declared, canaries = declared_words(factory), list(_canaries(folder))
    of_each_kind = canaries[::4]
    within = [value for text in of_each_kind for value in (Path(text), [text], {"name": text})]
    for name in inspect.signature(factory).parameters:
        is_prose = declared.get(name) is any_text  # is taken, and may be looked at when the rest of the game is made
        tried = [(base, value) for value in (of_each_kind if is_prose else [*canaries, *within])]
        if is_thorough:
            tried += [(others, text) for others in _neighbours(factory, base, name) for text in of_each_kind]
        for others, value in tried:
            if name in declared and refusal({name: value}, declared) is not None:
                continue  # nor is it taken from others
            with _watched() as events:
                _use(factory, {**others, name: value}, is_played=value in of_each_kind)
            if events:
                yield name, value, events[0]


def _canaries(folder: Path) -> Iterator[str]:
    """Texts that name a module, a model and files; each fourth is one of another kind."""
    (folder / "model").mkdir()
    (folder / "model" / "config.json").write_text("{}", encoding="utf-8")
    files = [folder / f"file{suffix}" for suffix in SUFFIXES]
    for file in files:
        file.write_text("a b\n", encoding="utf-8")
    yield from (f"{CANARY}:fly", f"{CANARY}.fly", CANARY, f"{CANARY}/model", str(folder / "model"))
    yield from (str(file) for file in files)


def _use(factory: Callable[..., Any], keywords: dict[str, Any], is_played: bool) -> None:
    """Makes the game and, if it takes the keywords, a match and what is shown of it."""
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        game: Game = factory(**keywords)
        if not is_played:
            return
        rules_digest(game)
        kind: Any = KernelSimulation if game.physics is None else PhysicsSimulation
        with contextlib.closing(kind(game, 1, compiled=False)) as sim:
            GameParallelEnv(sim, name="canary").reset(seed=0)


def _neighbours(factory: Any, base: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    """The base with another value of one other keyword: of its annotation, its words, or another id of the factory."""
    rows = [row for row in registry.ROWS.values() if factories.load(row.factory) is factory]
    for other, parameter in inspect.signature(factory).parameters.items():
        words = declared_words(factory).get(other, ())
        values = [*_literals(parameter.annotation, factory), *(words if isinstance(words, tuple) else ())]
        values += [row.kwargs[other] for row in rows if other in row.kwargs]
        if other != name:
            yield from ({**base, other: value} for value in values)


def _literals(annotation: Any, factory: Any) -> list[Any]:
    """The words of the `typing.Literal` types in an annotation."""
    if isinstance(annotation, str):
        names = {**vars(typing), **vars(sys.modules[factory.__module__])}
        with contextlib.suppress(Exception):
            annotation = eval(annotation, names)
    if get_origin(annotation) is typing.Literal:
        return list(get_args(annotation))
    return [word for part in get_args(annotation) for word in _literals(part, factory)]


# -- who reaches for a canary ------------------------------------------------------------------------------------------

_events: list[str] | None = None
"""What was reached while somebody watches."""


def _note(event: str, arguments: Any) -> None:
    if _events is not None and any(map(_is_canary, arguments)):
        _events.append(event)


def _is_canary(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_canary, value))
    return isinstance(value, str | bytes | os.PathLike) and CANARY in os.fsdecode(value)


class _Finder:
    """Is asked for every module that is not loaded yet."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> None:
        _note("import", (name,))


_has_hook = False


@contextlib.contextmanager
def _watched() -> Iterator[list[str]]:
    """Notes every event of the interpreter, and every look at the disk, that names a canary."""
    global _events, _has_hook
    if not _has_hook:
        sys.addaudithook(_note)  # no hook can be taken away
        _has_hook = True
    looks = {name: getattr(os, name) for name in LOOKED_AT}

    def looking(name: str) -> Callable[..., Any]:
        def look(path: Any, *arguments: Any, **options: Any) -> Any:
            _note(f"os.{name}", (path,))
            return looks[name](path, *arguments, **options)

        return look

    sys.meta_path.insert(0, _Finder)  # type: ignore[arg-type]
    for name in looks:
        setattr(os, name, looking(name))
    _events = []
    try:
        yield _events
    finally:
        _events = None
        for name, look in looks.items():
            setattr(os, name, look)
        sys.meta_path.remove(_Finder)  # type: ignore[arg-type]
