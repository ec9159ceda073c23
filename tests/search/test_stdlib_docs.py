"""The standard library's documentation: true questions, found by plain queries, the same in every process."""

import importlib
import os
import re
import sys
import textwrap
from bisect import bisect_left
from collections import Counter
from typing import Any

import pytest

from palaestra.games.search import Index, stdlib_docs, stdlib_entries
from palaestra.games.search.vocabulary import split

DESCRIPTION = re.compile(r"Which function or method has this description: '(.*)'\?")
OWNER = re.compile(r"Which class of the standard library has the method `(\w+)`\?")
MODULE = re.compile(r"In which module is the class that has the method `(\w+)`\?")
MODULE_OF_DESCRIPTION = re.compile(r"In which module is the class whose method has this description: '(.*)'\?")
KINDS = (DESCRIPTION, OWNER, MODULE, MODULE_OF_DESCRIPTION)


@pytest.fixture(scope="module")
def corpus() -> stdlib_docs.Corpus:
    return stdlib_docs.read()


@pytest.fixture(scope="module")
def classes() -> dict[str, type]:
    """The public classes of the modules by qualified name, found in another way than the corpus finds them."""
    found = {}
    for name in stdlib_entries.MODULES:
        module = importlib.import_module(name)
        for key in getattr(module, "__all__", dir(module)):
            if isinstance(member := getattr(module, key), type) and not key.startswith("_"):
                found[f"{name}.{key}"] = member
    return found


def title(passage: str) -> str:
    return passage.partition("\n")[0]


def tell(passage: str, name: str) -> bool:
    return f" {' '.join(split(name))} " in f" {' '.join(split(passage))} "


def test_there_are_passages_of_all_kinds(corpus: stdlib_docs.Corpus):
    assert corpus.name == "stdlib"
    by_title = {title(passage): passage for passage in corpus.passages}
    assert len(by_title) == len(corpus.passages) > 1900
    assert by_title["json"].startswith("json\nmodule json: ")
    assert by_title["heapq.heappop"].startswith("heapq.heappop\nfunction heappop(heap, /): Pop the smallest item")
    assert by_title["collections.OrderedDict"].startswith("collections.OrderedDict\nclass OrderedDict")
    moved = by_title["OrderedDict.move_to_end"]
    assert moved.startswith("OrderedDict.move_to_end\nmethod move_to_end(self, /, key, last=True): Move an existing")
    assert by_title["dict.fromkeys"].startswith("dict.fromkeys\nmethod fromkeys(")  # a class method
    assert by_title["Fraction.from_float"].startswith("Fraction.from_float\nmethod from_float(cls, f): Converts")
    assert by_title["str.maketrans"].startswith("str.maketrans\nmethod maketrans")  # a static method


def test_a_method_is_documented_once_by_the_class_that_defines_it(corpus: stdlib_docs.Corpus):
    titles = {title(passage) for passage in corpus.passages}
    assert "Counter.most_common" in titles
    assert "Counter.popitem" not in titles
    assert "dict.popitem" in titles


def test_what_a_module_has_from_elsewhere_is_documented_where_it_belongs(corpus: stdlib_docs.Corpus):
    titles = {title(passage) for passage in corpus.passages}
    assert {"random.SystemRandom", "enum.Enum", "io.open", "Random.shuffle"} <= titles
    assert not {"secrets.SystemRandom", "uuid.Enum", "builtins.open", "random.shuffle"} & titles


def test_a_class_whose_name_is_ambiguous_has_its_module_in_the_title_of_methods(corpus: stdlib_docs.Corpus):
    titles = {title(passage) for passage in corpus.passages}
    assert {"Queue.put", "pathlib.Path.touch", "logging.Formatter.format"} <= titles  # zipfile.Path, string.Formatter
    assert not {"Path.touch", "Formatter.format"} & titles
    assert {"array.array.append", "datetime.datetime.date", "datetime.date"} <= titles  # also names of modules
    assert "array.append" not in titles


def test_passages_are_short_and_name_no_address_or_path(corpus: stdlib_docs.Corpus):
    text = "\n\n".join(corpus.passages)
    assert not re.search(r" at 0x[0-9a-f]{4}", text)
    for folder in {sys.prefix, sys.base_prefix, os.path.dirname(os.__file__), os.path.expanduser("~/")}:
        assert folder not in text
    for passage in corpus.passages:
        assert passage.count("\n") == 1
        assert len(passage.partition("): ")[2].split()) <= stdlib_entries.MOST_WORDS_OF_PASSAGE


@pytest.mark.parametrize("pattern", KINDS)
def test_there_are_questions_of_each_kind_in_each_split(corpus: stdlib_docs.Corpus, pattern: re.Pattern):
    splits = Counter(question.split for question in corpus.questions if pattern.fullmatch(question.text))
    assert set(splits) == {"train", "validation", "test"}
    assert 0.7 < splits["train"] / splits.total() < 0.95
    assert splits.total() >= 80


def test_questions_have_few_words_and_are_asked_once(corpus: stdlib_docs.Corpus):
    assert max(len(split(question.text)) for question in corpus.questions) <= 24
    assert len({question.text for question in corpus.questions}) == len(corpus.questions) > 1100
    assert all(sum(kind.fullmatch(question.text) is not None for kind in KINDS) == 1 for question in corpus.questions)


def test_a_description_belongs_to_one_passage_and_does_not_tell_the_name(corpus: stdlib_docs.Corpus):
    texts = [" " + " ".join(split(p.partition(": ")[2])) for p in corpus.passages]
    for question in corpus.questions:
        if match := DESCRIPTION.fullmatch(question.text) or MODULE_OF_DESCRIPTION.fullmatch(question.text):
            sentence = " " + " ".join(split(match[1]))
            assert 4 <= sentence.count(" ") <= 16
            assert sentence in texts[question.gold[0]]
        if match := DESCRIPTION.fullmatch(question.text):
            (number,) = question.gold
            assert question.answers[0] == title(corpus.passages[number]).rpartition(".")[2]
            assert all(answer.endswith(question.answers[0]) for answer in question.answers)
            assert not tell(match[1], question.answers[0])


def test_no_two_passages_have_the_description(corpus: stdlib_docs.Corpus):
    texts = sorted(" ".join(split(passage.partition(": ")[2])) + " " for passage in corpus.passages)
    assert len(set(texts)) < len(texts)
    for question in corpus.questions:
        if match := DESCRIPTION.fullmatch(question.text) or MODULE_OF_DESCRIPTION.fullmatch(question.text):
            beginning = " ".join(split(match[1])) + " "
            at = bisect_left(texts, beginning)
            assert sum(text.startswith(beginning) for text in texts[at : at + 2]) <= 1


def test_one_class_has_the_method(corpus: stdlib_docs.Corpus, classes: dict[str, type]):
    for question in corpus.questions:
        if match := OWNER.fullmatch(question.text):
            owners = {owner for owner in classes.values() if hasattr(owner, match[1])}
            assert [owner.__name__ for owner in owners] == [question.answers[0]]
            assert classes[question.answers[1]] in owners


def test_the_module_has_the_class_and_takes_both_passages(corpus: stdlib_docs.Corpus, classes: dict[str, type]):
    for question in corpus.questions:
        if MODULE.fullmatch(question.text) or MODULE_OF_DESCRIPTION.fullmatch(question.text):
            method, owner = (corpus.passages[number] for number in question.gold)
            (module,) = question.answers
            assert title(owner).startswith(module + ".")
            name = title(method).rpartition(".")[2]
            assert name in vars(classes[title(owner)])
            assert title(method) == f"{title(owner).removeprefix(module + '.')}.{name}"
            assert MODULE.fullmatch(question.text) is None or question.text.split("`")[1] == name
            assert not tell(method, module)


def test_plain_queries_find_the_passages_that_have_the_answer(corpus: stdlib_docs.Corpus):
    queries, gold = [], []
    for question in corpus.questions:
        assert tell(corpus.passages[question.gold[-1]], question.answers[0])
        if match := DESCRIPTION.fullmatch(question.text) or MODULE_OF_DESCRIPTION.fullmatch(question.text):
            queries.append(match[1])
        else:
            name = question.text.split("`")[1]
            queries.append(f"method {name}")
        if len(question.gold) == 2:
            queries.append("class " + title(corpus.passages[question.gold[0]]).partition(".")[0])
        gold += question.gold
    found, _ = Index(corpus.passages).search(queries, 3)
    assert len(found) == len(gold)
    assert all(number in row for number, row in zip(gold, found.tolist(), strict=True))


def test_all_questions_about_an_object_are_of_one_split(corpus: stdlib_docs.Corpus):
    splits: dict[int, set[str]] = {}
    for question in corpus.questions:
        splits.setdefault(question.gold[0], set()).add(question.split)
    assert {len(found) for found in splits.values()} == {1}
    assert len(splits) < len(corpus.questions)


def test_splits_do_not_change():
    entries = [stdlib_entries.Entry("function", "math", "", name, "", "") for name in ("cos", "sqrt", "tanh")]
    assert [entry.split for entry in entries] == ["train", "validation", "test"]


def test_what_a_package_puts_in_the_place_of_a_function_is_not_read(monkeypatch: pytest.MonkeyPatch):
    entries, attributes = stdlib_docs.entries_apart()

    def dedent(text: str) -> str:
        """Replaces the function of the library."""
        return text

    monkeypatch.setattr("textwrap.dedent", dedent)
    assert stdlib_docs.entries_apart() == (entries, attributes)
    assert any(entry.name == "dedent" and "Replaces" not in entry.passage for entry in entries)


def test_a_module_that_is_missing_is_left_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stdlib_entries, "MODULES", ("heapq", "no_such_module"))
    entries, _ = stdlib_entries.read_entries()
    assert {entry.module for entry in entries} == {"heapq"}


def read_with(monkeypatch: pytest.MonkeyPatch, *things: Any) -> dict[str, stdlib_entries.Entry]:
    """The entries by title of a standard library that is ``textwrap`` alone, with other functions and classes."""
    for thing in things:
        thing.__module__ = "textwrap"
        monkeypatch.setattr(textwrap, thing.__name__, thing)
    monkeypatch.setattr(stdlib_entries, "MODULES", ("textwrap",))
    return {title(entry.passage): entry for entry in stdlib_entries.read_entries()[0]}


def test_an_address_in_a_signature_or_docstring_is_left_out(monkeypatch: pytest.MonkeyPatch):
    def dedent(text, default=object()):  # noqa: B008
        """Remove any common blanks."""

    def indent(text):
        return text

    indent.__doc__ = f"It has {object()!r}."
    entries = read_with(monkeypatch, dedent, indent)
    assert entries["textwrap.dedent"].passage == "textwrap.dedent\nfunction dedent: Remove any common blanks."
    assert "textwrap.indent" not in entries


def test_whole_paragraphs_are_taken_up_to_a_hundred_words(monkeypatch: pytest.MonkeyPatch):
    def dedent(text):
        pass

    def indent(text):
        pass

    dedent.__doc__ = "one\n" * 60 + "\n" + "two " * 40 + "\n\nthree"
    indent.__doc__ = "one " * 120 + "\n\ntwo"
    entries = read_with(monkeypatch, dedent, indent)
    assert entries["textwrap.dedent"].passage.partition(": ")[2].split() == ["one"] * 60 + ["two"] * 40
    assert entries["textwrap.indent"].passage.partition(": ")[2].split() == ["one"] * 100


def test_the_description_is_the_first_sentence_behind_a_call(monkeypatch: pytest.MonkeyPatch):
    def dedent(text):
        """dedent(text) -> str

        Remove e.g. blanks. Then
        stop.
        """

    entry = read_with(monkeypatch, dedent)["textwrap.dedent"]
    assert entry.sentence == "Remove e.g. blanks."
    assert entry.passage.endswith("function dedent(text): dedent(text) -> str Remove e.g. blanks. Then stop.")


def test_a_class_within_a_class_is_no_method(monkeypatch: pytest.MonkeyPatch):
    class TextWrapper:
        """Wraps text."""

        class wrap:
            """A class."""

        def fill(self):
            """Fills."""

    titles = read_with(monkeypatch, TextWrapper)
    assert "TextWrapper.fill" in titles
    assert "TextWrapper.wrap" not in titles
