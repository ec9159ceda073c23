"""What the running Python's standard library says of itself: its docstrings, as plain data.

This file is also run by itself, in a process of its own (`palaestra.games.search.stdlib_docs`): it imports nothing but
the standard library, whose functions other packages replace by their own.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType, NoneType
from typing import Any, NamedTuple

MODULES = (
    "abc", "argparse", "array", "base64", "bisect", "builtins", "calendar", "cmath", "code", "codecs", "collections",
    "collections.abc", "colorsys", "configparser", "contextlib", "copy", "csv", "dataclasses",
    "datetime", "decimal", "difflib", "dis", "email.message", "enum", "filecmp", "fileinput", "fnmatch", "fractions",
    "functools", "gettext", "glob", "graphlib", "gzip", "heapq", "hmac", "html", "html.parser", "http.client",
    "http.cookies", "inspect", "io", "ipaddress", "itertools", "json", "keyword", "logging", "math",
    "mimetypes", "numbers", "operator", "pathlib", "pickle", "pickletools", "plistlib", "pprint", "queue", "quopri",
    "random", "re", "reprlib", "sched", "secrets", "shelve", "shlex", "shutil", "statistics", "string", "struct",
    "symtable", "tarfile", "tempfile", "textwrap", "threading", "timeit", "tokenize", "trace", "traceback", "types",
    "typing", "unicodedata", "urllib.parse", "urllib.robotparser", "uuid", "wave", "weakref",
    "xml.etree.ElementTree", "zipfile", "zlib",
)  # fmt: skip
"""Modules of Python 3.11 to 3.14 that do nothing when they are imported. Left out is what changes while a program runs:
``concurrent.futures`` gets classes when they are first used; libraries patch ``warnings`` and ``linecache``."""

MOST_WORDS_OF_PASSAGE = 100
"""Of a docstring, whole paragraphs are taken up to this number of words."""
SHARES = {"validation": range(1), "test": range(1, 2), "train": range(2, 10)}
"""Tenths of the objects that each split gets."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+", re.IGNORECASE)
CALL = re.compile(r"[\w.]+\(.*\)( ?->.*)?")
"""A paragraph that only shows how a function is called: ``S.find(sub[, start[, end]]) -> int``."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


class Entry(NamedTuple):
    """What is documented: a module, a class, a function or a method.

    Attributes:
        kind: ``"module"``, ``"class"``, ``"function"`` or ``"method"``.
        module: Where it is.
        owner: The method's class, "" of others.
        name: Its plain name.
        passage: Title and text.
        sentence: The first sentence of its docstring.
    """

    kind: str
    module: str
    owner: str
    name: str
    passage: str
    sentence: str

    @property
    def split(self) -> str:
        """The split of its questions."""
        tenth = zlib.crc32(f"{self.module}.{self.owner}.{self.name}".encode()) % 10
        return next(name for name, share in SHARES.items() if tenth in share)


def read_entries() -> tuple[list[Entry], Counter[str]]:
    """All entries, in a fixed order, and in how many classes each attribute's name is found, inherited ones too."""
    modules = _import_modules()
    members = [(module, name, thing) for module in modules for name, thing in _members(module)]
    names = Counter(name for _, name, thing in members if isinstance(thing, type))
    entries = [_entry("module", module, "", module.__name__, module, module.__name__) for module in modules]
    for module, name, thing in members:
        title = f"{module.__name__}.{name}"
        if not isinstance(thing, type):
            entries.append(_entry("function", module, "", name, thing, title))
            continue
        entries.append(_entry("class", module, "", name, thing, title))
        owner = name if names[name] == 1 and name not in MODULES else title
        for method, function in _methods(thing):
            entries.append(_entry("method", module, name, method, function, f"{owner}.{method}"))
    classes = {
        thing
        for module in modules
        for name in _public_names(module)
        if isinstance(thing := vars(module).get(name), type)
    }
    attributes = Counter(name for owner in classes for name in {name for base in owner.__mro__ for name in vars(base)})
    return [entry for entry in entries if entry.sentence], attributes


def _import_modules() -> list[ModuleType]:
    """The modules that this Python has."""
    modules = []
    for name in MODULES:
        try:
            modules.append(import_module(name))
        except ImportError:  # built without it
            continue
    return modules


def _public_names(module: ModuleType) -> list[str]:
    """The names that a module offers, sorted."""
    return sorted(getattr(module, "__all__", None) or (name for name in vars(module) if not name.startswith("_")))


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The public classes and functions that a module itself has: not what it has from another one of `MODULES`."""
    for name in _public_names(module):
        thing = vars(module).get(name)
        home = getattr(thing, "__module__", None)
        if hasattr(module, "__all__"):
            is_own = home == module.__name__ or home not in MODULES
        else:
            is_own = str(home).lstrip("_") == module.__name__
        if is_own and _is_documented(name, thing):
            yield name, thing


def _methods(owner: type) -> Iterator[tuple[str, Any]]:
    """The public methods that a class itself defines."""
    for name, method in sorted(vars(owner).items()):
        function = method.__func__ if isinstance(method, staticmethod | classmethod) else method
        if not isinstance(function, type) and _is_documented(name, function):
            yield name, function


def _is_documented(name: str, thing: Any) -> bool:
    """Whether it is a public class or function with a docstring, under its first name, and no method of an object."""
    return (
        (isinstance(thing, type) or inspect.isroutine(thing))
        and not name.startswith("_")
        and getattr(thing, "__name__", None) == name
        and isinstance(getattr(thing, "__self__", None), NoneType | ModuleType)
    )


def _entry(kind: str, module: ModuleType, owner: str, name: str, thing: Any, title: str) -> Entry:
    """The entry of a module, class, function or method; its sentence is empty where there is no docstring."""
    docstring = thing.__doc__ if isinstance(thing.__doc__, str) else ""
    docstring = "" if ADDRESS.search(docstring) else inspect.cleandoc(docstring)
    paragraphs = [" ".join(paragraph.split()) for paragraph in docstring.split("\n\n")]
    described = [paragraph for paragraph in paragraphs if paragraph and not CALL.fullmatch(paragraph)]
    words: list[str] = []
    for paragraph in filter(None, paragraphs):
        further = paragraph.split()
        if words and len(words) + len(further) > MOST_WORDS_OF_PASSAGE:
            break
        words += further[:MOST_WORDS_OF_PASSAGE]
    text = f"{kind} {name}{_signature(thing)}: {' '.join(words)}"
    sentence = SENTENCE_END.split(described[0])[0] if described else ""
    return Entry(kind, module.__name__, owner, name, f"{title}\n{text}", sentence)


def _signature(thing: Any) -> str:
    """How it is called, "" where Python does not tell, or tells an object's address."""
    if isinstance(thing, ModuleType):
        return ""
    try:
        signature = str(inspect.signature(thing))
    except (NameError, TypeError, ValueError):
        return ""
    return "" if ADDRESS.search(signature) else signature


if __name__ == "__main__":
    json.dump(read_entries(), sys.stdout)
