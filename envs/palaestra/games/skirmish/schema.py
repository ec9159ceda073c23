"""Reads JSON files into frozen dataclasses and names exactly what is wrong with those that cannot be used.

The annotation of each field names the reader of its value: ``range: Annotated[float, number(0, 64)]``. A reader takes
a value and its key path (``units.marine.weapon.range``) and returns what the field holds, or raises `Refusal`. So the
type of a file is in one place, its dataclass, and one function, `build`, finds missing and unknown keys.
Conditions on several fields are in ``__post_init__`` and raise `Refusal` too.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeVar, get_type_hints

import palaestra_assets
from palaestra.core.contract.keywords import nearest
from palaestra.core.files import FileError, TextFile, TextSource, printable, read_text

Reader = Callable[[Any, str], Any]
T = TypeVar("T")

LARGEST = 2**20
"""Bytes of a file that are read."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
"""What names of units, rulesets and maps look like."""


class Refusal(ValueError):
    """A value that a file must not hold.

    Attributes:
        key: Path of the value inside the file, ``"blue.groups.0.at"``; "" is the file as a whole.
        reason: What is allowed there and what was found.
    """

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.key}: {self.reason}" if self.key else self.reason


def build(kind: type[T], value: Any, key: str, **known: Any) -> T:
    """Makes a dataclass of an object of a JSON file.

    Args:
        kind: Its annotations are ``Annotated[type, reader]``. A key may be missing if its field has a default.
        value: What the file has.
        key: Its key path.
        known: Fields without a reader.

    Raises:
        Refusal: No object, a key is missing or unknown, or a reader refuses a value.
    """
    if not isinstance(value, dict):
        raise Refusal(key, f"must be an object, got {shortened(value)}")
    readers = _readers(kind)
    for name in value:
        if name not in readers:
            raise Refusal(_inside(key, name), f"unknown key: {suggestion(name, readers)}")
    for name in readers:
        if name not in value and not hasattr(kind, name):
            raise Refusal(_inside(key, name), "missing key")
    read = {name: readers[name](member, _inside(key, name)) for name, member in value.items()}
    try:
        return kind(**known, **read)
    except Refusal as refusal:
        raise Refusal(_inside(key, refusal.key), refusal.reason) from None


@functools.cache
def _readers(kind: type) -> dict[str, Reader]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if hasattr(hint, "__metadata__")}


def number(low: float, high: float) -> Reader:
    """Reads a finite number in [low, high] as float."""

    def read(value: Any, key: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise Refusal(key, f"must be a number from {low:g} to {high:g}, got {shortened(value)}")
        return float(value)

    return read


def integer(low: int, high: int) -> Reader:
    """Reads an integer in [low, high]."""

    def read(value: Any, key: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Refusal(key, f"must be an integer from {low} to {high}, got {shortened(value)}")
        return value

    return read


def flag(value: Any, key: str) -> bool:
    """Reads true or false."""
    if not isinstance(value, bool):
        raise Refusal(key, f"must be true or false, got {shortened(value)}")
    return value


def text(value: Any, key: str) -> str:
    """Reads any string."""
    if not isinstance(value, str):
        raise Refusal(key, f"must be a string, got {shortened(value)}")
    return value


def short_name(value: Any, key: str) -> str:
    """Reads a string that can name a unit, a ruleset or a map."""
    if not NAME.fullmatch(text(value, key)):
        raise Refusal(key, f"must be 1 to 40 letters, digits or _.- that begin with no mark, got {shortened(value)}")
    return value


def word(*words: str) -> Reader:
    """Reads one of the words."""

    def read(value: Any, key: str) -> str:
        if value not in words:
            raise Refusal(key, f"must be one of {', '.join(words)}, got {shortened(value)}")
        return value

    return read


def optional(reader: Reader) -> Reader:
    """Reads null as None, anything else by ``reader``."""
    return lambda value, key: None if value is None else reader(value, key)


def record(kind: type) -> Reader:
    """Reads an object as a dataclass, see `build`."""
    return lambda value, key: build(kind, value, key)


def members(reader: Reader, low: int, high: int) -> Reader:
    """Reads an array of ``low`` to ``high`` members as a tuple."""

    def read(value: Any, key: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or not low <= len(value) <= high:
            wanted = f"{low}" if low == high else f"{low} to {high}"
            found = f"{len(value)} members" if isinstance(value, list) else shortened(value)
            raise Refusal(key, f"must be an array of {wanted} members, got {found}")
        return tuple(reader(member, _inside(key, str(k))) for k, member in enumerate(value))

    return read


def named(kind: type, most: int) -> Reader:
    """Reads an object of up to ``most`` objects as a tuple of dataclasses; their keys become the field ``name``."""

    def read(value: Any, key: str) -> tuple[Any, ...]:
        if not isinstance(value, dict) or not 1 <= len(value) <= most:
            raise Refusal(key, f"must be an object of 1 to {most} members, got {shortened(value)}")
        return tuple(build(kind, member, _inside(key, k), name=short_name(k, key)) for k, member in value.items())

    return read


def load(path: Path | TextFile, newest: int, make: Callable[[dict[str, Any]], T]) -> T:
    """Reads a JSON file.

    Args:
        path: File in UTF-8, or its content.
        newest: The highest ``format`` that ``make`` understands.
        make: Makes the result of the content; may raise `Refusal`.

    Raises:
        FileError: It cannot be read or used. Names the file, the key path and the reason.
    """
    try:
        content = _parse(path)
        if integer(1, 10**6)(content.get("format"), "format") > newest:
            reason = f"{content['format']} is newer than {newest}, the newest that this version reads: update palaestra"
            raise Refusal("format", reason)
        return make(content)
    except Refusal as refusal:
        raise FileError(f"{path}: {refusal}") from None


def _parse(path: Path | TextFile) -> dict[str, Any]:
    text = read_text(path, LARGEST)
    try:
        content = json.loads(text, object_pairs_hook=_without_repeats)
    except Refusal:
        raise
    except (ValueError, RecursionError) as error:
        raise Refusal("", f"no JSON: {error}") from error
    if not isinstance(content, dict):
        raise Refusal("", f"must hold a JSON object, got {shortened(content)}")
    return content


def find(folder: str, wanted: TextSource, what: str) -> Path | TextFile:
    """Where a bundled file lies, or the path or content that was given instead of a name.

    Args:
        folder: Of the assets.
        wanted: Name of a bundled file without ``.json``; a `Path`, or a string that ends in ``.json``, is a path.
        what: What such a file is, for the message.

    Raises:
        ValueError: No such name. Suggests the nearest.
    """
    if isinstance(wanted, TextFile):
        return wanted
    if not isinstance(wanted, str) or wanted.endswith(".json"):
        return Path(wanted)
    names = bundled(folder)
    if wanted not in names:
        raise ValueError(
            f"no {what} {printable(wanted)}: {suggestion(wanted, names)} (paths of your files end in .json)"
        )
    return palaestra_assets.path(f"{folder}/{wanted}.json")


def bundled(folder: str) -> tuple[str, ...]:
    """Names of the JSON files in a folder of the assets, sorted."""
    return tuple(sorted((file.stem for file in palaestra_assets.path(folder).glob("*.json")), key=str.casefold))


def suggestion(wanted: str, names: Iterable[str]) -> str:
    """``"did you mean 'marine'?"`` where one of the names is near, else all of them."""
    known = sorted(names)
    near = nearest(wanted, known)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"


def _inside(key: str, name: str) -> str:
    shown = name if name.isprintable() and len(name) <= 60 else shortened(name)
    return f"{key}.{shown}" if key and shown else key or shown


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise Refusal("", f"the key {shortened(counts.most_common(1)[0][0])} stands twice in one object")
    return content
