"""The documentation of Python's standard library as a corpus, read from the docstrings of the running Python.

Nothing is downloaded. The passages are those of the modules in `MODULES`, their public classes, functions and methods;
they differ a little between versions of Python. A passage has the title ``collections.OrderedDict`` (a class or a
function), ``OrderedDict.move_to_end`` (a method) or ``collections`` (a module). The title of a method names the module
only where the class's name alone would be ambiguous: so the module of a method takes two searches, for the method and
then for its class.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType, NoneType
from typing import Any, NamedTuple

from palaestra.search.corpus import Corpus, Question
from palaestra.search.vocabulary import split

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
WORDS_OF_SENTENCE = range(4, 17)
MOST_WORDS_OF_QUESTION = 24
TOP = 3
"""Each passage that a question needs is among the first three for the query of its hop."""
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


@cache
def read() -> Corpus:
    """The corpus, made when it is first asked for.

    Questions ask which function or method has a description, which class has a method, and in which module the class is
    that has a method, told by its name or its description. Each has one right answer within the corpus. Those for a
    module need two passages, of which the first does not tell the answer. Questions whose passages a plain query does
    not find among the first three are left out.
    """
    from palaestra.search.index import Index  # here, as it loads the compiler

    entries, attributes = read_entries()
    passages = tuple(entry.passage for entry in entries)
    asked = list(_questions(entries, attributes))
    found, _ = Index(passages).search([query for _, queries in asked for query in queries], TOP)
    rows = iter(found.tolist())
    questions = []
    for question, queries in asked:
        tops = [next(rows) for _ in queries]
        is_found = all(number in top for number, top in zip(question.gold, tops, strict=True))
        if is_found and len(split(question.text)) <= MOST_WORDS_OF_QUESTION:
            questions.append(question)
    return Corpus("stdlib", passages, tuple(questions))


def _questions(entries: list[Entry], attributes: Counter[str]) -> Iterator[tuple[Question, tuple[str, ...]]]:
    """All questions about functions and methods, each with a query for each passage that it needs."""
    sentences = [tuple(split(entry.sentence)) for entry in entries]
    times = Counter(words[:n] for words in sentences for n in WORDS_OF_SENTENCE if n <= len(words))  # how they begin
    classes = {(entry.module, entry.name): number for number, entry in enumerate(entries) if entry.kind == "class"}
    for number, entry in enumerate(entries):
        if entry.kind not in ("function", "method"):
            continue
        is_described = times[sentences[number]] == 1
        is_named = bool(entry.owner) and attributes[entry.name] == 1
        owner = classes.get((entry.module, entry.owner))
        takes_two = owner is not None and not _tells(entry.passage, entry.module)
        for text, answers, queries in _ask(entry, is_described, is_named, takes_two):
            gold = (number,) if owner is None else (number, owner)[: len(queries)]
            yield Question(text, tuple(dict.fromkeys(answers)), gold, entry.split), queries


def _ask(
    entry: Entry, is_described: bool, is_named: bool, takes_two: bool
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """Questions about a function or method: text, answers, and queries such as a player could write.

    Args:
        entry: The function or method.
        is_described: Whether its description stands for it.
        is_named: Whether the name of the method stands for it.
        takes_two: Whether the module is told by the passage of the method's class, and not by its own.
    """
    _, module, owner, name, _, sentence = entry
    by_name, by_class = f"method {name}", f"class {owner}"
    if is_described and not _tells(sentence, name):
        text = f"Which function or method has this description: '{sentence}'?"
        qualified = f"{owner}.{name}" if owner else name
        yield text, (name, qualified, f"{module}.{qualified}"), (sentence,)
    if is_described and takes_two:
        text = f"In which module is the class whose method has this description: '{sentence}'?"
        yield text, (module,), (sentence, by_class)
    if is_named:
        text = f"Which class of the standard library has the method `{name}`?"
        yield text, (owner, f"{module}.{owner}"), (by_name,)
    if is_named and takes_two:
        yield f"In which module is the class that has the method `{name}`?", (module,), (by_name, by_class)


def _tells(text: str, name: str) -> bool:
    """Whether all words of a name stand in a text, behind each other."""
    return f" {' '.join(split(name))} " in f" {' '.join(split(text))} "


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
