"""Keywords that name files: what is passed on (a replay, a pool) holds the content of a file and no path.

Which ones these are a factory declares: ``texts`` of `palaestra.game.Option`. How a text looks decides only where
nothing is declared.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath, PureWindowsPath
from typing import Any

import numpy as np

from palaestra.core.contract.keywords import Words, any_text
from palaestra.core.files import FileError, TextFile, printable, printable_name, read_text

LARGEST = 2**21
"""Bytes of a file whose content is held."""
DEEPEST = 16
"""Lists and mappings within each other that a keyword of somebody else may have."""
MOST_WORDS = 12
"""Words of a keyword that a refusal repeats."""
LOOKS = re.compile(r"~.*|\.+|.*[/\\].*|.*\.[A-Za-z]\w*|[A-Za-z_][\w.]*:[A-Za-z_][\w.]*|[A-Za-z]:(?! ).*", re.DOTALL)
"""What looks like a path or like ``module:name``: it begins as a home or a drive, has a separator, has a suffix that
begins with a letter (``smac-4.10`` has none), or is two names with a colon between them (``grid:10x10`` is not)."""


def may_name(text: str, words: Words | None) -> bool:
    """Whether a text may name code, a file, a folder or a model.

    Args:
        text: Of a keyword.
        words: What is declared of it; None if nothing is: then the look of the text decides.
    """
    if words is None:
        return LOOKS.fullmatch(text) is not None
    return not (words(text) if callable(words) else text in words)


# -- content in the place of paths -------------------------------------------------------------------------------------


def hold_files(keywords: Mapping[str, Any], make: Callable[..., Any], declared: Mapping[str, Words]) -> dict[str, Any]:
    """Keywords with a `TextFile` in the place of each path, or the same ones if ``make`` takes paths alone.

    Args:
        keywords: As a user gives them.
        make: Makes the game of such keywords, to see whether it takes `TextFile` objects.
        declared: See `palaestra.core.contract.options.declared_words`.
    """
    held = with_contents(keywords, declared)
    if held == keywords:
        return dict(keywords)
    try:
        make(**held)
    except Exception:  # a factory of anybody, which opens paths itself
        return dict(keywords)
    return held


def with_contents(keywords: Mapping[str, Any], declared: Mapping[str, Words]) -> dict[str, Any]:
    """Keywords with a `TextFile` in the place of each path of a text file that can be read."""
    return {name: _with_contents(value, declared.get(name)) for name, value in keywords.items()}


def _with_contents(value: Any, words: Words | None) -> Any:
    if isinstance(value, Mapping):
        return {name: _with_contents(member, words) for name, member in value.items()}
    if type(value) in (list, tuple):  # a NamedTuple is an author's own object
        return type(value)([_with_contents(member, words) for member in value])
    if isinstance(value, PurePath) or (isinstance(value, str) and may_name(value, words)):
        try:
            return TextFile(PurePath(value).name, read_text(str(value), LARGEST))
        except (FileError, ValueError):
            return value
    return value


# -- keywords of somebody else -----------------------------------------------------------------------------------------


def refusal(keywords: Any, declared: Mapping[str, Words]) -> str | None:
    """Why keywords that somebody else wrote cannot be given to a factory without trust; None if they can.

    Nothing is imported, called, opened or looked for.

    Args:
        keywords: By name.
        declared: See `palaestra.core.contract.options.declared_words`.
    """
    if not isinstance(keywords, Mapping):
        return f"its keywords are {type(keywords).__name__}, not a mapping by name"
    for name, value in keywords.items():
        if not isinstance(name, str) or not name.isidentifier():
            return f"{printable(name)} is the name of no keyword"
        words = declared.get(name)
        for member in _members(value, DEEPEST):
            if (reason := _refused(member, words)) is not None:
                return f"its keyword {printable_name(name)} {reason}"
    return None


TOO_DEEP = object()
"""Stands for what lies beyond `DEEPEST`."""


def _members(value: Any, depth: int) -> Iterator[Any]:
    """All values within one, names of mappings included."""
    if not isinstance(value, Mapping | list | tuple):
        yield value
    elif not depth:
        yield TOO_DEEP
    else:
        for member in [*value, *value.values()] if isinstance(value, Mapping) else value:
            yield from _members(member, depth - 1)


def _refused(value: Any, words: Words | None) -> str | None:
    if value is None or isinstance(value, bool | int | float | complex | np.number | np.bool_):
        return None
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return None
    if value is TOO_DEEP:
        return f"has lists or mappings more than {DEEPEST} deep"
    if isinstance(value, TextFile):
        takes_files = words is not None and words is not any_text
        return None if takes_files else f"holds the file {value}, and is not declared to take one"
    if not isinstance(value, str):
        return f"holds {type(value).__name__} objects, which are no plain data"
    if not may_name(value, words):
        return None
    if words is None:
        return f"names {printable(value)}, which looks like a file, a folder or code"
    own = [] if callable(words) else sorted(words)[:MOST_WORDS]
    its = f", and is none of its own words ({', '.join(own)})" if own else ""
    return f"names {printable(value)}, which may be a file, a folder, code or a model{its}"


# -- as JSON -----------------------------------------------------------------------------------------------------------


def plain_file(value: Any) -> Any:
    """A `TextFile` as JSON holds it, for ``json.dumps(default=...)``."""
    if isinstance(value, TextFile):
        return {"file": value.name, "sha256": value.digest, "text": value.text}
    raise TypeError(type(value).__name__)


def plain_keywords(keywords: Mapping[str, Any], id: str) -> dict[str, Any]:
    """Keywords of an environment as `parse_json` reads them from a file.

    Raises:
        FileError: One that a file cannot hold; names it.
    """
    plain = {}
    for name, value in keywords.items():
        try:
            plain[name] = parse_json(json.dumps(value, default=_plain_value))
        except TypeError as error:
            raise FileError(
                f"{id} was made with {name}={value!r}, which a file cannot hold: it takes numbers, strings, lists and "
                "dicts"
            ) from error
    return plain


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    return plain_file(value)


def parse_json(text: str) -> Any:
    """JSON whose objects say each name once, with the `TextFile` objects that `plain_file` has written.

    Raises:
        FileError: A name stands twice, or the content of a file does not have its digest or has a path for a name.
        ValueError: No JSON.
        RecursionError: Nested too deep.
    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> Any:
    value = dict(pairs)
    if len(value) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise FileError(f"{printable(twice)} stands twice in one object: keep one")
    if set(value) != {"file", "sha256", "text"} or not all(isinstance(text, str) for text in value.values()):
        return value
    if PureWindowsPath(value["file"]).name != value["file"]:  # knows both separators
        raise FileError(f"{printable(value['file'])} is a path, not the name of a file: record or save it again")
    file = TextFile(value["file"], value["text"])
    if file.digest != value["sha256"]:
        raise FileError(f"{file}: the content does not have the digest beside it: record or save it again")
    return file
