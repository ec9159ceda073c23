"""The documentation of Python's standard library as a corpus, read from the docstrings of the running Python.

Nothing is downloaded. The passages are those of the modules that `palaestra.games.search.stdlib_entries` lists, their
public classes, functions and methods; they differ a little between versions of Python. A passage has the title
``collections.OrderedDict`` (a class or a function), ``OrderedDict.move_to_end`` (a method) or ``collections`` (a
module). The title of a method names the module only where the class's name alone would be ambiguous: so the module of a
method takes two searches, for the method and then for its class.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache

from palaestra.games.search import stdlib_entries
from palaestra.games.search.corpus import Corpus, Question
from palaestra.games.search.stdlib_entries import Entry
from palaestra.games.search.vocabulary import split

WORDS_OF_SENTENCE = range(4, 17)
MOST_WORDS_OF_QUESTION = 24
TOP = 3
"""Each passage that a question needs is among the first three for the query of its hop."""


@cache
def read() -> Corpus:
    """The corpus, made when it is first asked for.

    Questions ask which function or method has a description, which class has a method, and in which module the class is
    that has a method, told by its name or its description. Each has one right answer within the corpus. Those for a
    module need two passages, of which the first does not tell the answer. Questions whose passages a plain query does
    not find among the first three are left out.
    """
    from palaestra.games.search.index import Index  # here, as it loads the compiler

    entries, attributes = entries_apart()
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


def entries_apart() -> tuple[list[Entry], Counter[str]]:
    """`palaestra.games.search.stdlib_entries.read_entries` of a Python that has loaded nothing else.

    The corpus then is the same in all processes, whatever they have imported, and with all options of Python.

    Raises:
        subprocess.CalledProcessError: Python could not be started anew.
    """
    command = [sys.executable, "-I", "-S", stdlib_entries.__file__]
    entries, attributes = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return [Entry(*entry) for entry in entries], Counter(attributes)
