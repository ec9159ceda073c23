r"""Passages and questions from files: JSON Lines of one's own, HotpotQA, 2WikiMultihopQA, MuSiQue, Search-R1's corpora.

Example::

    from palaestra.games.search.corpora import read

    read("passages.jsonl", "questions.jsonl")
    read("hotpot_dev_distractor_v1.json")

A file is a JSON list of objects, or has one object a line (JSON Lines). Its format is recognised from the fields of its
first object:

- ``text`` or ``contents``: a passage, ``{"id": .., "title": .., "text": ..}`` or ``{"id": .., "contents":
  "title\ntext"}``. ``id`` and ``title`` may be missing; a title within ``contents`` may be in quotation marks. Such a
  corpus takes a second file of questions, ``{"question": .., "answer": .., "gold": [..], "split": ..}``: ``gold`` and
  ``split`` may be missing; ``gold`` holds ids or titles; for ``answer`` (one text or a list) there may be ``answers``,
  ``golden_answers`` or ``answer_aliases``, or several of them.
- ``context``: a question of HotpotQA or 2WikiMultihopQA, as published or in the columns of Hugging Face's copy.
- ``paragraphs``: a question of MuSiQue. Those that are not answerable are left out.

In the last two, the corpus is the passages of all questions, equal ones once; paragraphs without text are left out.

A question without the field ``split`` is of the split that the file's name says as a word between other characters
than letters (``dev``, ``val`` or ``validation``; ``test``), else of ``"train"``.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from palaestra.core.files import FileError, escaped, open_regular, printable, printable_error
from palaestra.games.search.corpus import Corpus, Passages, Question

__all__ = ["Corpus", "Question", "read", "read_passages"]

LARGEST = 2**34
"""Bytes of a file; Wikipedia in passages of 100 words has 14 GB."""
LONGEST_OBJECT = 2**24
"""Bytes of a line, and characters of an item of a list."""
LONGEST_PASSAGE, LONGEST_QUESTION, LONGEST_ID = 2**16, 2**16, 2**10
"""Characters. Ten passages must fit into what an agent reads at once, `turn_codec.LONGEST_TEXT`."""
READ_BYTES = 2**16
BLANKS, PARSE = re.compile(r"[ \t\r\n]*"), json.JSONDecoder().raw_decode

SPLITS = ("train", "validation", "test")
ANSWERS = ("answer", "answers", "golden_answers", "answer_aliases")
"""Fields that hold right answers, a text or a list of texts; the first one that is there has the answer to show."""

HOTPOT = {"question": str, "answer": str, "context": [(str, [str])], "supporting_facts": [(str, int)]}
HOTPOT_COLUMNS = {
    "question": str,
    "answer": str,
    "context": {"title": [str], "sentences": [[str]]},
    "supporting_facts": {"title": [str]},
}
MUSIQUE = {
    "question": str,
    "answer": str,
    "paragraphs": [{"idx": int, "title": str, "paragraph_text": str}],
    "question_decomposition": [{"paragraph_support_idx": int}],
}
"""Shapes of questions: a type, a list of one shape, a list of a fixed length (a tuple), an object's fields."""
SEVERAL = -1
"""Stands for the number of a passage where several passages have its title."""
KINDS = {
    dict: "an object", list: "a list", str: "a text", int: "a whole number", float: "a number", bool: "true or false",
    type(None): "null",
}  # fmt: skip
"""What messages call the types of JSON."""

PASSAGE = 'a passage is {"id": .., "title": .., "text": ..} or {"id": .., "contents": ..}; id and title may be missing'
QUESTION = (
    'a question is {"question": .., "answer": .., "gold": [ids or titles], "split": ..}; the last two may be missing'
)
DATASET = (
    "give a file as HotpotQA (distractor setting), 2WikiMultihopQA or MuSiQue publish it, with answers and with all "
    "passages that its questions need"
)
JSON = "give JSON Lines (an object a line) or a JSON list of objects, in UTF-8"


class Item(NamedTuple):
    """An object of a file.

    Attributes:
        where: File and line, or file and item, for messages.
        fields: The object.
        expected: What such an object should be, for messages.
    """

    where: str
    fields: dict[str, Any]
    expected: str

    def error(self, reason: str) -> FileError:
        """What to raise for this object."""
        return FileError(f"{self.where}: {reason}: {self.expected}")

    def check(self, shape: Any) -> None:
        """Refuses an object that has another shape.

        Raises:
            FileError: It has.
        """
        if reason := find_mismatch(self.fields, shape):
            raise self.error(reason)

    def text(self, name: str) -> str:
        """A field that holds a text, without blanks around it.

        Raises:
            FileError: It is missing, no text, or empty.
        """
        if type(self.fields.get(name)) is not str:
            self.check({name: str})
        return self.stripped(self.fields[name], name)

    def stripped(self, text: str, name: str) -> str:
        """A text without blanks around it.

        Raises:
            FileError: It is empty, or cannot be written as UTF-8.
        """
        text = text.strip()
        if not text:
            raise self.error(f"{name} is empty")
        self.check_length(text, name, LONGEST_PASSAGE if name not in (*ANSWERS, "question") else LONGEST_QUESTION)
        try:
            text.encode()
        except UnicodeEncodeError:
            raise self.error(f"{name} has half of a character (\\ud800 to \\udfff)") from None
        return text

    def check_length(self, text: str, name: str, most: int) -> None:
        """Refuses a text that is too long for what agents read.

        Raises:
            FileError: It is.
        """
        if len(text) > most:
            raise self.error(f"{name} has {len(text)} characters, more than {most}: cut it into several")


def read(corpus: str | Path, questions: str | Path | None = None) -> Corpus:
    """Reads passages and questions; see `palaestra.games.search.corpora` for the formats.

    Args:
        corpus: A file.
        questions: A file of questions, for a file of passages only.

    Raises:
        FileError: A file is missing or not as it should be; names file, line or item (the first is 1), and reason.
        ValueError: ``questions`` is given for a corpus that has questions.
    """
    items = _items(corpus, PASSAGE)
    first = list(islice(items, 1))
    items = chain(first, items)
    if any("context" in item.fields or "paragraphs" in item.fields for item in first):
        _refuse_questions(corpus, questions)
        return _read_dataset(items, corpus)
    passages, numbers = _read_passages(items, corpus)
    if questions is None:
        raise FileError(f"{corpus}: passages without questions: give a file of questions, too (questions=...)")
    default = _split_of(questions)
    found = tuple(_read_question(item, numbers, default) for item in _items(questions, QUESTION))
    if not found:
        raise FileError(f"{questions}: no questions: {QUESTION}")
    return Corpus(str(corpus), passages, found)


def read_passages(path: str | Path) -> tuple[Passages, dict[str, int]]:
    """Reads a file of passages.

    Returns:
        The passages with their ids, and their numbers by id and, where it is nobody's id, by title; `SEVERAL` where
        several have it.

    Raises:
        FileError: The file is missing or not as it should be; names file, line or item, and reason.
    """
    return _read_passages(_items(path, PASSAGE), path)


def join(title: str, text: str) -> str:
    """A passage of a title in one line, which may be "", and a text; only a passage with a title has line breaks."""
    return f"{title}\n{text}" if title else tidy(text)


def tidy(text: str) -> str:
    """A text in one line, with single blanks."""
    return " ".join(text.split())


def find_mismatch(value: Any, shape: Any, at: str = "") -> str:
    """Says where a JSON value has another shape than it should have, see `HOTPOT`; "" where it has not."""
    kind = shape if isinstance(shape, type) else list if isinstance(shape, tuple) else type(shape)
    if type(value) is not kind:
        return f"{at} is {KINDS[type(value)]}, not {KINDS[kind]}"
    if isinstance(shape, dict):
        for name, inner in shape.items():
            if name not in value:
                return f"no field {name}" + (f" in {at}" if at else "")
            if type(value[name]) is not inner and (
                reason := find_mismatch(value[name], inner, f"{at}.{name}".lstrip("."))
            ):
                return reason
    elif isinstance(shape, tuple) and len(value) != len(shape):
        return f"{at} has {len(value)} elements, not {len(shape)}"
    elif isinstance(shape, list | tuple):
        shapes = shape if isinstance(shape, tuple) else shape * len(value)
        for k, (element, inner) in enumerate(zip(value, shapes, strict=True)):
            if type(element) is not inner and (reason := find_mismatch(element, inner, f"{at}[{k}]")):
                return reason
    return ""


def _items(path: str | Path, expected: str) -> Iterator[Item]:
    """The objects of a file, a JSON list or JSON Lines.

    Raises:
        FileError: It cannot be read, or is neither.
    """
    try:
        with open_regular(path, LARGEST) as file:
            name, is_first = str(path), True
            for number, line in enumerate(iter(lambda: file.readline(LONGEST_OBJECT + 1), b""), 1):
                if not line.strip():
                    continue
                where = f"{name}: line {number}"
                if is_first and line.removeprefix(BOM_UTF8).lstrip().startswith(b"["):
                    file.seek(0)
                    yield from (_item(value, at, expected) for at, value in _ListReader(file, name))
                    return
                if len(line) > LONGEST_OBJECT:
                    raise FileError(f"{where}: longer than {LONGEST_OBJECT} bytes: {JSON}")
                is_first = False
                yield _item(_parse(line, where), where, expected)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from error


class _ListReader:
    """Reads a JSON list value by value: a file of gigabytes is never in memory as a whole."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file, self._name, self._number = file, name, 0
        self._decode = getincrementaldecoder("utf-8-sig")().decode
        self._text, self._at, self._is_all = "", 0, False

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The values, and where they are."""
        before = "["
        while self._next() == before:
            self._at += 1
            if before == "[" and self._next() == "]":
                break
            self._number, before = self._number + 1, ","
            yield f"{self._name}: item {self._number}", self._value()
        if self._next() != "]":
            raise self._error(f"{before!r} or ']' is missing")
        self._at += 1
        if self._next():
            raise self._error("the file goes on behind the list")

    def _error(self, reason: str) -> FileError:
        return FileError(f"{self._name}: item {max(self._number, 1)}: no JSON ({reason}): {JSON}")

    def _read_on(self) -> None:
        """Reads as much again as is left: a long value is tried a few times only."""
        rest = self._text[self._at :]
        content = self._file.read(max(READ_BYTES, len(rest)))
        self._is_all, self._at = not content, 0
        try:
            self._text = rest + self._decode(content, self._is_all)
        except UnicodeDecodeError as error:
            raise FileError(f"{self._name}: no text in UTF-8 (behind item {self._number}): {JSON}") from error

    def _next(self) -> str:
        """The next character that is no blank, "" at the end."""
        while True:
            self._at = BLANKS.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._is_all:
                return self._text[self._at : self._at + 1]
            self._read_on()

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = PARSE(self._text, self._at)
                if end < len(self._text) or self._is_all or not isinstance(value, int | float):
                    self._at = end
                    return value
                reason = "the list does not end"
            except json.JSONDecodeError as error:
                reason = f"{error.msg}, character {error.pos - self._at + 1}"
            except (ValueError, RecursionError) as error:
                raise self._error(printable_error(error)) from None
            if self._is_all:
                raise self._error(reason)
            if len(self._text) - self._at > LONGEST_OBJECT:
                raise self._error(f"longer than {LONGEST_OBJECT} characters, or {reason}")
            self._read_on()


def _parse(content: bytes, where: str) -> Any:
    """A JSON value."""
    try:
        return json.loads(content.removeprefix(BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        raise FileError(f"{where}: no text in UTF-8 (byte {error.start}): {JSON}") from error
    except json.JSONDecodeError as error:
        raise FileError(f"{where}: no JSON ({error.msg}, character {error.pos + 1}): {JSON}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, thousands of brackets
        raise FileError(f"{where}: no JSON ({printable_error(error)}): {JSON}") from error


def _item(value: Any, where: str, expected: str) -> Item:
    """A JSON value that must be an object."""
    if not isinstance(value, dict):
        raise FileError(f"{where}: {KINDS[type(value)]}, not an object: {expected}")
    return Item(where, value, expected)


def _refuse_questions(corpus: str | Path, questions: str | Path | None) -> None:
    """Refuses a file of questions for a corpus that has questions."""
    if questions is not None:
        raise ValueError(
            f"questions={str(questions)!r}: {escaped(str(corpus))} has questions of its own: leave questions= out"
        )


def _read_passages(items: Iterable[Item], path: str | Path) -> tuple[Passages, dict[str, int]]:
    """See `read_passages`."""
    passages, names = list[str](), list[str | int]()
    ids: dict[str, int] = {}
    titles: dict[str, int] = {}
    for item in items:
        key = item.fields.get("id")
        if key is not None:
            if type(key) not in (int, str):
                raise item.error(f"id is {KINDS[type(key)]}, not a text or a whole number")
            item.check_length(str(key), "id", LONGEST_ID)
            if tidy(str(key)) in ids:
                raise item.error(f"id {printable(key)} stands twice")
            ids[tidy(str(key))] = len(passages)
        names.append(str(len(passages)) if key is None else key)
        title, text = _title_and_text(item)
        if title:
            titles[title] = SEVERAL if title in titles else len(passages)
        passages.append(join(title, text))
        item.check_length(passages[-1], "the passage", LONGEST_PASSAGE)
    if not passages:
        raise FileError(f"{path}: no passages: {PASSAGE}")
    return Passages(passages, names if ids else ()), titles | ids


def _title_and_text(item: Item) -> tuple[str, str]:
    """Title, "" where there is none, and text of a passage."""
    if "contents" in item.fields:
        item.text("contents")
        title, line_break, text = item.fields["contents"].partition("\n")
        if not line_break:
            return "", title
        return tidy(title.strip().strip('"')), item.stripped(text, "contents behind its first line")
    text = item.text("text")
    if item.fields.get("title") is None:
        return "", text
    item.check({"title": str})
    title = tidy(item.fields["title"])
    return title and item.stripped(title, "title"), text


def _read_question(item: Item, numbers: dict[str, int], default: str) -> Question:
    """A question of a file of questions."""
    names = item.fields.get("gold")
    if names is None:
        names = []
    if not isinstance(names, list) or any(type(name) not in (int, str) for name in names):
        raise item.error("gold is not a list of ids or titles")
    return _question(item, _gold(item, [tidy(str(name)) for name in names], numbers), default)


def _gold(item: Item, names: Iterable[str], numbers: dict[str, int]) -> tuple[int, ...]:
    """The passages that ids or titles stand for, each once."""
    gold = []
    for name in names:
        number = numbers.get(name)
        if number is None or number == SEVERAL:
            named = "no passage" if number is None else "several passages (give ids)"
            raise item.error(f"gold {printable(name)} is that of {named}")
        gold.append(number)
    return tuple(dict.fromkeys(gold))


def _question(item: Item, gold: tuple[int, ...], default: str) -> Question:
    """A question whose passages are known."""
    answers: list[str] = []
    for name in ANSWERS:
        given = item.fields.get(name)
        for answer in given if isinstance(given, list) else [] if given is None else [given]:
            if not isinstance(answer, str):
                raise item.error(f"{name} has {KINDS[type(answer)]}, not a text")
            answers.append(item.stripped(answer, name))
    if not answers:
        raise item.error(f"no answer (field {', '.join(ANSWERS[:-1])} or {ANSWERS[-1]})")
    split = item.fields.get("split")
    if split is None:
        split = default
    if split not in SPLITS:
        given = printable(split) if isinstance(split, str) else KINDS[type(split)]
        raise item.error(f"split is {given}, none of {', '.join(SPLITS)}")
    return Question(item.text("question"), tuple(dict.fromkeys(answers)), gold, split)


def _split_of(path: str | Path) -> str:
    """The split that a file's name says."""
    words = set(re.split(r"[^a-z]+", Path(path).name.lower()))
    return "validation" if words & {"dev", "val", "validation"} else "test" if "test" in words else "train"


def _read_dataset(items: Iterable[Item], path: str | Path) -> Corpus:
    """Reads HotpotQA, 2WikiMultihopQA or MuSiQue."""
    numbers: dict[str, int] = {}
    questions = []
    default = _split_of(path)
    for item in (item._replace(expected=DATASET) for item in items):
        if "answerable" in item.fields:
            item.check({"answerable": bool})
            if not item.fields["answerable"]:
                continue
        paragraphs, needed = _musique(item) if "paragraphs" in item.fields else _hotpot(item)
        own: dict[str, int] = {}
        for name, title, text in paragraphs:
            if text.strip():
                passage = item.stripped(join(tidy(title), text.strip()), "a paragraph")
                own.setdefault(name, numbers.setdefault(passage, len(numbers)))
        questions.append(_question(item, _gold(item, needed, own), default))
    if not questions:
        raise FileError(f"{path}: no questions: {DATASET}")
    return Corpus(str(path), tuple(numbers), tuple(questions))


def _musique(item: Item) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Paragraphs (name within the question, title, text) of a question, and the names of those that it needs."""
    item.check(MUSIQUE)
    paragraphs = [(str(p["idx"]), p["title"], p["paragraph_text"]) for p in item.fields["paragraphs"]]
    if len({name for name, *_ in paragraphs}) < len(paragraphs):
        raise item.error("an idx stands twice in paragraphs")
    return paragraphs, [str(step["paragraph_support_idx"]) for step in item.fields["question_decomposition"]]


def _hotpot(item: Item) -> tuple[list[tuple[str, str, str]], list[str]]:
    """Paragraphs of a question, and the names of those that it needs, see `_musique`; names are titles."""
    if isinstance(item.fields.get("context"), dict):
        item.check(HOTPOT_COLUMNS)
        context, needed = item.fields["context"], item.fields["supporting_facts"]["title"]
        if len(context["title"]) != len(context["sentences"]):
            raise item.error(f"context has {len(context['title'])} titles, but {len(context['sentences'])} texts")
        pairs = zip(context["title"], context["sentences"], strict=True)
    else:
        item.check(HOTPOT)
        pairs, needed = item.fields["context"], [title for title, _ in item.fields["supporting_facts"]]
    return [(title, title, " ".join(map(str.strip, sentences))) for title, sentences in pairs], needed
