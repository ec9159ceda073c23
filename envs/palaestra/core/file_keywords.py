"""Keywords that name files: what is passed on (a replay, a pool) holds the content of a file and no path."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from palaestra.core.files import FileError, TextFile, read_text

LARGEST = 2**21
"""Bytes of a file whose content is held."""
PATH = re.compile(r".*[/\\].*|.*\.[A-Za-z]\w*", re.DOTALL)
"""What looks like a path: it has a separator, or a suffix that begins with a letter (``smac-4.10`` has none)."""


def hold_files(keywords: Mapping[str, Any], make: Callable[..., Any]) -> dict[str, Any]:
    """Keywords with a `TextFile` in the place of each path, or the same ones if ``make`` takes paths alone.

    Args:
        keywords: As a user gives them.
        make: Makes the game of such keywords, to see whether it takes `TextFile` objects.
    """
    held = with_contents(dict(keywords))
    if held == keywords:
        return dict(keywords)
    try:
        make(**held)
    except Exception:  # a factory of anybody, which opens paths itself
        return dict(keywords)
    return held


def with_contents(value: Any) -> Any:
    """Keywords, or a value within them, with a `TextFile` in the place of each path of a text file that can be read."""
    if isinstance(value, Mapping):
        return {name: with_contents(member) for name, member in value.items()}
    if type(value) in (list, tuple):  # a NamedTuple is an author's own object
        return type(value)([with_contents(member) for member in value])
    if isinstance(value, PurePath) or (isinstance(value, str) and PATH.fullmatch(value)):
        try:
            return TextFile(PurePath(value).name, read_text(str(value), LARGEST))
        except (FileError, ValueError):
            return value
    return value


def path_in(value: Any) -> str | None:
    """The first text in keywords that looks like a path, or None."""
    if isinstance(value, str):
        return value if PATH.fullmatch(value) else None
    members = [*value, *value.values()] if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return next((path for member in members if (path := path_in(member)) is not None), None)


def plain_file(value: Any) -> Any:
    """A `TextFile` as JSON holds it, for ``json.dumps(default=...)``."""
    if isinstance(value, TextFile):
        return {"file": value.name, "sha256": value.digest, "text": value.text}
    raise TypeError(type(value).__name__)


def file_of(value: dict[str, Any]) -> Any:
    """The `TextFile` that `plain_file` has written, or the dict, for ``json.loads(object_hook=...)``.

    Raises:
        FileError: The content does not have its digest.
    """
    if set(value) != {"file", "sha256", "text"} or not all(isinstance(text, str) for text in value.values()):
        return value
    file = TextFile(value["file"], value["text"])
    if file.digest != value["sha256"]:
        raise FileError(f"{file}: the content does not have the digest beside it: record or save it again")
    return file
