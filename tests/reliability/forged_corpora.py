# ruff: noqa: E501 - a written list: a row a line
"""The written list of forged corpora, questions and indexes."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from reliability.forged_folders import ESCAPES, WRITERS, Forgery, content, directory, linked, missing, pipe
from reliability.mutations import Payload

P, Q = "passages.jsonl", "questions.jsonl"
TEXTS = ["The cat sat on the mat.", "Dogs bark at cats.", "A mat for the dog, a cat.", "Birds sing."]
BEYOND = 2**63 - 1


def rows(*values: Any) -> str:
    """JSON Lines."""
    return "\n".join(map(json.dumps, values)) + "\n"


def write_corpus(folder: Path) -> None:
    """Passages and questions."""
    passages = [{"id": str(k), "title": f"T{k}", "text": text} for k, text in enumerate(TEXTS)]
    content(P, rows(*passages))(folder)
    content(Q, rows({"question": "who sat?", "answer": "cat", "gold": ["0"]}))(folder)


def write_index(folder: Path) -> None:
    """A saved index whose passages have ids."""
    from palaestra.games.search import Index
    from palaestra.games.search.corpus import Passages

    Index(Passages(TEXTS, ["a", "b", "c", "d"])).save(folder)


WRITERS |= {
    "corpus": write_corpus,
    "index": write_index,
}


def sparse(file: str, size: int = 20 * 10**9) -> Callable[[Path], None]:
    """A file of as many bytes, of which few are there."""
    return lambda folder: os.truncate(folder / file, size)


def array(name: str, change: Callable[[np.ndarray], Any]) -> Callable[[Path], None]:
    """Another array in a file of an index."""

    def write(folder: Path) -> None:
        path = folder / f"{name}.npy"
        np.save(path, np.asarray(change(np.load(path).copy())), allow_pickle=True)

    return write


def put(name: str, at: int | slice, value: Any) -> Callable[[Path], None]:
    """Another number at a place."""

    def change(numbers: np.ndarray) -> np.ndarray:
        numbers[at] = value
        return numbers

    return array(name, change)


def grown(name: str, kind: str, length: int) -> Callable[[Path], None]:
    """A sparse array that says that it has so many numbers."""

    def write(folder: Path) -> None:
        head = io.BytesIO()
        np.lib.format.write_array_header_1_0(head, {"descr": kind, "fortran_order": False, "shape": (length,)})
        (folder / f"{name}.npy").write_bytes(head.getvalue())
        os.truncate(folder / f"{name}.npy", len(head.getvalue()) + length * np.dtype(kind).itemsize)

    return write


def header(name: str, text: bytes) -> Callable[[Path], None]:
    """Another header of an array."""
    padded = text + b" " * (117 - len(text)) + b"\n"
    return content(f"{name}.npy", b"\x93NUMPY\1\0" + len(padded).to_bytes(2, "little") + padded)


def of(kind: str, *table: tuple) -> list[Forgery]:
    return [Forgery(row[0], kind, *row[1:]) for row in table]


LONG = "word " * 60_000
CORPORA = of(
    "corpus",
    ("passages: missing", missing(P), P),
    ("passages: a pipe", pipe(P), P),
    ("passages: a folder", directory(P), P),
    ("passages: a device", linked(P, "/dev/zero"), P),
    ("passages: 20 GB", sparse(P), P),
    ("passages: 15 GB behind a good line", sparse(P, 15 * 10**9), P),
    ("passages: 1 GB of nothing", lambda folder: (content(P, b"")(folder), sparse(P, 10**9)(folder)), P),
    ("passages: a list of 1 GB of nothing", lambda folder: (content(P, b"[")(folder), sparse(P, 10**9)(folder)), P),
    ("passages: an endless line", content(P, b'{"text": "' + b"x" * 80_000_000), P),
    ("passages: an endless item", content(P, b'[{"text": "' + b"x" * 80_000_000), P),
    ("passages: an endless number", content(P, b"[" + b"1" * 20_000_000), P),
    ("passages: blanks without end", content(P, b"[" + b" " * 80_000_000), P),
    ("passages: empty", content(P, b""), P),
    ("passages: 100,000 brackets", content(P, b"[" * 100_000), P),
    ("passages: 100,000 objects in a line", content(P, b'{"text": ' * 100_000), P),
    ("passages: compressed", content(P, gzip.compress(bytes(2**26))), P),
    ("passages: a pickle", content(P, pickle.dumps(Payload(Path("/tmp/none")))), P),
    ("passages: no UTF-8", content(P, b'{"text": "\xff"}\n'), P),
    ("passages: half a character", content(P, b'{"text": "\\ud800"}\n'), P),
    ("passages: a number of 5,000 digits", content(P, b'{"id": ' + b"1" * 5000 + b', "text": "x"}\n'), P),
    ("passages: id twice", content(P, rows({"id": "a", "text": "x"}, {"id": "a", "text": "y"})), P),
    ("passages: id NaN", content(P, '{"id": NaN, "text": "x"}\n'), P),
    ("passages: id a list", content(P, rows({"id": [1], "text": "x"})), P),
    ("passages: id true", content(P, rows({"id": True, "text": "x"})), P),
    ("passages: id of escapes, twice", content(P, rows({"id": f"a{ESCAPES}", "text": "x"}, {"id": f"a{ESCAPES}", "text": "x"})), P),
    ("passages: id of 2,000 characters", content(P, rows({"id": "x" * 2000, "text": "x"})), P),
    ("passages: text missing", content(P, rows({"id": "a"})), P),
    ("passages: text a number", content(P, rows({"text": 3})), P),
    ("passages: text blank", content(P, rows({"text": "  \n"})), P),
    ("passages: title a list", content(P, rows({"title": ["x"], "text": "y"})), P),
    ("passages: longer than is shown", content(P, rows({"text": LONG})), P),
    ("passages: contents longer than is shown", content(P, rows({"contents": f"a\n{LONG}"})), P),
    ("passages: a title longer than is shown", content(P, rows({"title": LONG, "text": "x"})), P),
    ("passages: title and text longer than is shown", content(P, rows({"title": LONG[:150_000], "text": LONG[:150_000]})), P),
    ("passages: a list of numbers", content(P, "[1, 2]"), P),
    ("passages: a list without commas", content(P, '[{"text": "x"} {"text": "y"}]'), P),
    ("passages: a list that goes on", content(P, '[{"text": "x"}] {}'), P),
    ("passages: a list that ends", content(P, '[{"text": "x"},'), P),
    ("passages: text", content(P, "cats and dogs\n"), P),
    ("questions: missing", missing(Q), Q),
    ("questions: a pipe", pipe(Q), Q),
    ("questions: 20 GB", sparse(Q), Q),
    ("questions: empty", content(Q, b""), Q),
    ("questions: gold of nobody", content(Q, rows({"question": "x?", "answer": "y", "gold": [f"z{ESCAPES}"]})), Q),
    ("questions: gold a number", content(Q, rows({"question": "x?", "answer": "y", "gold": 3})), Q),
    ("questions: gold below 0", content(Q, rows({"question": "x?", "answer": "y", "gold": [-1]})), Q),
    ("questions: answer missing", content(Q, rows({"question": "x?"})), Q),
    ("questions: answers numbers", content(Q, rows({"question": "x?", "answers": [1]})), Q),
    ("questions: a long answer", content(Q, rows({"question": "x?", "answer": LONG})), Q),
    ("questions: a long question", content(Q, rows({"question": LONG, "answer": "x"})), Q),
    ("questions: another split", content(Q, rows({"question": "x?", "answer": "y", "split": f"dev{ESCAPES}"})), Q),
    ("HotpotQA: other lengths", content(P, rows({"question": "x?", "answer": "y", "context": {"title": ["a"], "sentences": []}, "supporting_facts": {"title": []}})), ""),
    ("HotpotQA: a long paragraph", content(P, rows({"question": "x?", "answer": "y", "context": [["a", [LONG]]], "supporting_facts": []})), ""),
    ("MuSiQue: idx twice", content(P, rows({"question": "x?", "answer": "y", "paragraphs": [{"idx": 0, "title": "a", "paragraph_text": "b"}] * 2, "question_decomposition": []})), ""),
)  # fmt: skip
INDEXES = of(
    "index",
    *((f"{name}: missing", missing(f"{name}.npy"), f"{name}.npy") for name in ("parameters", "offsets", "texts", "words", "id_offsets")),
    *((f"{name}: a pipe", pipe(f"{name}.npy"), f"{name}.npy") for name in ("texts", "ids")),
    ("texts: a device", linked("texts.npy", "/dev/zero"), "texts.npy"),
    ("texts: a folder", directory("texts.npy"), "texts.npy"),
    ("texts: 20 GB", grown("texts", "|u1", 20 * 10**9), "texts.npy"),
    ("offsets: 20 GB", grown("offsets", "<i8", 25 * 10**8), "offsets.npy"),
    ("words: 20 GB", grown("words", "|u1", 20 * 10**9), "words.npy"),
    ("ids: 20 GB", grown("ids", "|u1", 20 * 10**9), "ids.npy"),
    ("scores: 20 GB", grown("scores", "<f4", 5 * 10**9), "scores.npy"),
    ("offsets: differences overflow", put("offsets", slice(1, 4), [2**62, -(2**63) + 5, -(2**62)]), "offsets.npy"),
    ("text_offsets: differences overflow", put("text_offsets", slice(1, 4), [2**62, -(2**63) + 5, -(2**62)]), "text_offsets.npy"),
    ("id_offsets: differences overflow", put("id_offsets", slice(1, 4), [2**62, -(2**63) + 5, -(2**62)]), "id_offsets.npy"),
    ("offsets: fall", put("offsets", 2, 0), "offsets.npy"),
    ("offsets: begin later", put("offsets", 0, 1), "offsets.npy"),
    ("offsets: below 0", put("offsets", 1, -5), "offsets.npy"),
    ("offsets: end behind the file", put("offsets", -1, BEYOND), "offsets.npy"),
    ("offsets: empty", array("offsets", lambda a: a[:0]), "offsets.npy"),
    ("text_offsets: end behind the file", put("text_offsets", -1, BEYOND), "text_offsets.npy"),
    ("text_offsets: fewer", array("text_offsets", lambda a: np.delete(a, 1)), ""),
    ("id_offsets: fewer", array("id_offsets", lambda a: np.delete(a, 1)), "id_offsets.npy"),
    ("offsets: objects", array("offsets", lambda a: np.array([Payload(Path("/tmp/none"))] * 3, object)), "offsets.npy"),
    ("offsets: 32 bits", array("offsets", lambda a: a.astype("<i4")), "offsets.npy"),
    ("offsets: decimals", array("offsets", lambda a: a.astype("<f8")), "offsets.npy"),
    ("offsets: big-endian", array("offsets", lambda a: a.astype(">i8")), "offsets.npy"),
    ("offsets: two axes", array("offsets", lambda a: a[None]), "offsets.npy"),
    ("offsets: no axis", array("offsets", lambda a: a[0]), "offsets.npy"),
    ("offsets: a header that is evaluated", header("offsets", b"{'descr': '<i8', 'fortran_order': False, 'shape': (__import__('os').system('true'),), }"), "offsets.npy"),
    ("offsets: a shape of 2**63", header("offsets", b"{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775808,), }"), "offsets.npy"),
    ("offsets: a shape of 190 digits", header("offsets", b"{'descr': '<i8', 'fortran_order': False, 'shape': (" + b"9" * 50 + b",), }"), "offsets.npy"),
    ("offsets: a pickle", content("offsets.npy", pickle.dumps(Payload(Path("/tmp/none")))), "offsets.npy"),
    ("offsets: cut", lambda folder: os.truncate(folder / "offsets.npy", 150), "offsets.npy"),
    ("passages: below 0", put("passages", 0, -1), "passages.npy"),
    ("passages: beyond the last", put("passages", 0, 10**6), "passages.npy"),
    ("passages: fall", array("passages", lambda a: a[::-1]), "passages.npy"),
    ("scores: not a number", put("scores", 0, np.nan), "scores.npy"),
    ("scores: infinite", put("scores", 0, np.inf), "scores.npy"),
    ("scores: below 0", put("scores", 0, -1.0), "scores.npy"),
    ("scores: fewer", array("scores", lambda a: a[:-1]), "scores.npy"),
    ("peaks: others", put("peaks", 0, 99.0), "peaks.npy"),
    ("peaks: fewer", array("peaks", lambda a: a[:-1]), "peaks.npy"),
    ("parameters: not a number", put("parameters", 1, np.nan), "parameters.npy"),
    ("parameters: k1 of 10**9", put("parameters", 1, 1e9), "parameters.npy"),
    ("parameters: another format", put("parameters", 0, 9.0), "parameters.npy"),
    ("words: no UTF-8", put("words", 0, 255), "words.npy"),
    ("words: one twice", array("words", lambda a: np.frombuffer(b"a\na", np.uint8)), "words.npy"),
)  # fmt: skip
FORGERIES = [*CORPORA, *INDEXES]
