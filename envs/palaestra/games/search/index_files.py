"""Files of an index: a folder of plain ``.npy`` arrays, mapped into memory, which a stranger may have written.

Nothing is unpickled or evaluated. Sizes, types and contents are checked when a folder is loaded, so that the search
stays inside its arrays; the files must not be changed while the index is used.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.files import FileError, open_regular, write_atomically
from palaestra.core.files.archive import LONGEST_NPY_HEADER, NPY_HEADER, NPY_START
from palaestra.games.search.bm25 import LARGEST_K1, Postings, read_only
from palaestra.games.search.corpus import ids_of
from palaestra.games.search.vocabulary import Vocabulary

FORMAT = 1.0
KINDS = {
    "parameters": "<f8", "offsets": "<i8", "peaks": "<f4", "passages": "<i4", "scores": "<f4",
    "words": "|u1", "texts": "|u1", "text_offsets": "<i8",
}  # fmt: skip
"""Files and their types: ``parameters`` are the format, k1 and b; ``words`` are UTF-8, one a line, by id."""
ID_KINDS = {"ids": "|u1", "id_offsets": "<i8"}
"""Those of an index whose passages have names in their file: whole numbers as digits, texts behind a `QUOTE`."""
QUOTE = '"'
WHOLE = re.compile("-?[0-9]{1,1024}")
LONGEST_TEXT, LONGEST_ID, WORDS_BYTES = 2**24, 2**13, 2**28
"""Bytes of a passage, of its id, and of all words."""
LARGEST = 2**40
"""Bytes of a file."""
PART = 2**22
"""Numbers that are looked at together."""


class Texts(Sequence[str]):
    """Texts that lie in memory, or on the disk, as UTF-8 behind each other; what is no UTF-8 reads as U+FFFD."""

    def __init__(self, content: np.ndarray, offsets: np.ndarray, ids: Sequence[str | int] = ()) -> None:
        """Text n is ``content[offsets[n]:offsets[n + 1]]``, uint8; ``ids`` are its names, where it has some."""
        self.content, self.offsets, self.ids = content, offsets, ids

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.offsets) - 1

    def __getitem__(self, number: Any) -> Any:
        """A text by its number, a tuple of them for a slice."""
        if isinstance(number, slice):
            return tuple(self[k] for k in range(*number.indices(len(self))))
        k = range(len(self))[number]
        return bytes(self.content[self.offsets[k] : self.offsets[k + 1]]).decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        """All of them."""
        return (self[k] for k in range(len(self)))


class Ids(Texts):
    """Names of passages, see `ID_KINDS`; what is no whole number there is a text, whoever wrote it."""

    def __getitem__(self, number: Any) -> Any:
        """A name by its number."""
        text = super().__getitem__(number)
        return text[1:] if text.startswith(QUOTE) else int(text) if WHOLE.fullmatch(text) else text


def write(
    folder: Path, passages: Sequence[str], vocabulary: Vocabulary, postings: Postings, k1_and_b: tuple[float, float]
) -> None:
    """Writes all files; ``parameters`` at the end, so that what was interrupted is no index.

    Raises:
        OSError: A file cannot be written; names it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("parameters", *ID_KINDS):
        (folder / f"{name}.npy").unlink(missing_ok=True)
    texts, text_offsets = _joined(passages)
    arrays = {
        **postings._asdict(),
        "words": np.frombuffer("\n".join(vocabulary).encode(), np.uint8),
        "texts": texts,
        "text_offsets": text_offsets,
    }
    if ids := ids_of(passages):
        arrays["ids"], arrays["id_offsets"] = _joined([QUOTE + id if isinstance(id, str) else str(id) for id in ids])
    for name, array in {**arrays, "parameters": np.array([FORMAT, *k1_and_b])}.items():
        array = np.ascontiguousarray(array, (KINDS | ID_KINDS)[name])
        write_atomically(folder / f"{name}.npy", lambda file, array=array: np.save(file, array, allow_pickle=False))


def _joined(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Texts one behind the other in UTF-8, uint8, and where each begins, int64 ``[n + 1]``."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([0, *map(len, encoded)], dtype=np.int64)


def read(folder: Path) -> tuple[Texts, Vocabulary, Postings, tuple[float, float]]:
    """What `write` wrote: passages, vocabulary, postings, k1 and b.

    Raises:
        FileError: A file is missing, damaged, or does not fit the others; names it.
    """
    kinds = KINDS | (ID_KINDS if os.path.lexists(folder / "ids.npy") else {})
    arrays = {name: _mapped(folder / f"{name}.npy", kind) for name, kind in kinds.items()}

    def check(name: str, holds: Any, wrong: str) -> None:
        if not holds:
            raise FileError(f"{folder / name}.npy: {wrong}: build the index again, or take another copy of its folder")

    version, k1, b = arrays["parameters"] if len(arrays["parameters"]) == 3 else (0.0, 0.0, 0.0)
    check("parameters", version == FORMAT and 0 <= k1 <= LARGEST_K1 and 0 <= b <= 1, "not those of an index")
    # Offsets are copied: they decide where the search reads, whatever happens to their file.
    offsets, text_offsets = np.array(arrays["offsets"]), np.array(arrays["text_offsets"])
    passages, scores = arrays["passages"], arrays["scores"]
    check("text_offsets", _ascend(text_offsets, len(arrays["texts"])), "its numbers do not lead through texts.npy")
    check("text_offsets", np.diff(text_offsets).max(initial=0) <= LONGEST_TEXT, "a passage is too long")
    check("offsets", _ascend(offsets, len(passages)), "its numbers do not lead through passages.npy")
    check("scores", len(scores) == len(passages), f"{len(scores)} numbers, but {len(passages)} in passages.npy")
    check("peaks", len(arrays["peaks"]) == len(offsets) - 1, "another number of words than in offsets.npy")
    number, filled = len(text_offsets) - 1, np.flatnonzero(np.diff(offsets))
    for start in range(0, len(passages), PART):
        part, some = passages[max(start - 1, 0) : start + PART], scores[start : start + PART]
        check("scores", np.all((some > 0) & (some < np.inf)), "a score is not positive or not finite")
        check("passages", part.min() >= 0 and part.max() < number, "no such passage")
        firsts = offsets[np.searchsorted(offsets, start) : np.searchsorted(offsets, start + len(some))]
        ascends = np.diff(part) > 0
        ascends[firsts[firsts > 0] - max(start, 1)] = True  # the first passage of a word
        check("passages", ascends.all(), "passages of a word do not ascend")
    peaks = np.zeros(len(offsets) - 1, np.float32)
    if len(filled):
        peaks[filled] = np.maximum.reduceat(scores, offsets[filled])
    check("peaks", np.array_equal(peaks, arrays["peaks"]), "not the largest of scores.npy")
    check("words", len(arrays["words"]) <= WORDS_BYTES, f"larger than {WORDS_BYTES} bytes")
    try:
        words = bytes(arrays["words"]).decode().split("\n") if len(arrays["words"]) else []
    except UnicodeDecodeError:
        words = None
    check("words", words is not None and len(set(words)) == len(words) == len(peaks), "not one word for each peak")
    ids: Sequence[str | int] = ()
    if "ids" in arrays:
        id_offsets = np.array(arrays["id_offsets"])
        check("id_offsets", _ascend(id_offsets, len(arrays["ids"])), "its numbers do not lead through ids.npy")
        check("id_offsets", len(id_offsets) == len(text_offsets), "another number of ids than of passages")
        check("id_offsets", np.diff(id_offsets).max(initial=0) <= LONGEST_ID, "an id is too long")
        ids = Ids(arrays["ids"], id_offsets)
    passages_of = Texts(arrays["texts"], text_offsets, ids)
    return passages_of, Vocabulary(words or ()), read_only(offsets, peaks, passages, scores), (float(k1), float(b))


def _ascend(offsets: np.ndarray, end: int) -> bool:
    """Whether offsets start at 0, never fall and end where the array ends; differences could overflow."""
    is_led = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == end
    return bool(is_led and (offsets[1:] >= offsets[:-1]).all())


def _mapped(path: Path, kind: str) -> np.ndarray:
    """A file's array of one axis, mapped into memory for reading.

    Raises:
        FileError: It is missing or no such array; names it.
    """
    try:
        with open_regular(path, LARGEST) as file:
            start = file.read(len(NPY_START) + 2)
            text = file.read(min(int.from_bytes(start[-2:], "little"), LONGEST_NPY_HEADER))
            match = NPY_HEADER.fullmatch(text) if start.startswith(NPY_START) else None
            shape = match[2].replace(b" ", b"").split(b",") if match is not None else []
            if match is None or match[1].decode() != kind or len(shape) != 2 or shape[1]:
                raise FileError(f"{path}: not a plain array of type {kind} and one axis (npy 1.0)")
            length, begin = int(shape[0]), len(start) + len(text)
            if begin + length * np.dtype(kind).itemsize != os.fstat(file.fileno()).st_size:
                raise FileError(f"{path}: does not have the size that it says: take another copy of it")
            if length == 0:
                return np.zeros(0, kind)
            return np.asarray(np.memmap(file, kind, "r", begin, (length,)))
    except (OSError, OverflowError, ValueError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path}: cannot be read ({error}): give the folder of an index that was saved") from error
