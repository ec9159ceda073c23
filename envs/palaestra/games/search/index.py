"""A searchable collection of passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.compile import compiler
from palaestra.core.compile.binder import Compiled
from palaestra.core.compile.linker import jit_disabled, record_view
from palaestra.core.compile.reachable import code_digest
from palaestra.games.search import bm25, index_files
from palaestra.games.search.bm25 import TERM, Postings
from palaestra.games.search.corpus import Passages, ids_of
from palaestra.games.search.queries import query_refusal
from palaestra.games.search.vocabulary import Vocabulary

KEPT_WORDS = 64
"""Words of the longest query whose work memory is kept for the next search."""

spare: list[tuple[np.ndarray, np.ndarray]] = []
"""Work memory of searches that are over, as many as ran at the same time; one that was interrupted leaves none."""


class Index:
    """Passages and their postings; see `palaestra.games.search`.

    Attributes:
        passages: The passages, by number: the title, a line break and the text where there are titles.
        postings: Arrays of the search, for the world of a game too.
        vocabulary: Ids of the words.
        refusal: Why a query of a client is not searched, see `palaestra.adapters.retrieval_server`.
        k1: BM25's parameter, see `palaestra.games.search.bm25`.
        b: BM25's parameter.
    """

    passages: Sequence[str]
    postings: Postings
    vocabulary: Vocabulary
    refusal = staticmethod(query_refusal)

    def __init__(
        self, texts: Sequence[str], *, titles: Sequence[str] | None = None, k1: float = bm25.K1, b: float = bm25.B
    ) -> None:
        """Indexes passages.

        Args:
            texts: One each passage; those of `palaestra.games.search.corpora.read_passages` keep the ids of their file.
            titles: One each passage; they are searched, too.
            k1: 0 to 1000.
            b: 0 to 1.

        Raises:
            TypeError: ``texts`` is one string.
            ValueError: Another number of titles than of texts, or a parameter outside its bounds.
        """
        if isinstance(texts, str):
            raise TypeError("texts is one string: give a list of them")
        if titles is not None and len(titles) != len(texts):
            raise ValueError(f"{len(titles)} titles for {len(texts)} texts: give one each")
        if not (0 <= k1 <= bm25.LARGEST_K1 and 0 <= b <= 1):
            raise ValueError(f"k1={k1}, b={b}: k1 is 0 to {bm25.LARGEST_K1:g}, b is 0 to 1")
        self.k1, self.b = float(k1), float(b)
        joined = texts if titles is None else map("{}\n{}".format, titles, texts)
        self.passages = Passages(joined, ids_of(texts))
        self.vocabulary = Vocabulary()
        words, starts = self.vocabulary.learn(self.passages)
        self.postings = bm25.build_postings(words, starts, len(self.vocabulary), self.k1, self.b, compiled)

    def __len__(self) -> int:
        """Number of passages."""
        return len(self.passages)

    def search(self, queries: str | Sequence[str], k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The best k passages of each query, exactly: by falling score, equal scores by number.

        A word that stands twice in a query counts twice; passages without any of its words are not found.

        Args:
            queries: Q of them, or one.
            k: Most passages of each.

        Returns:
            Numbers int32 ``[Q, k]``, -1 behind the last one found, and scores float64 ``[Q, k]``, 0 there; ``[k]`` for
            one string.

        Raises:
            ValueError: ``k`` is negative.
        """
        if k < 0:
            raise ValueError(f"k={k}: give the number of passages, 0 or more")
        texts = [queries] if isinstance(queries, str) else queries
        words, starts = self.vocabulary.encode(texts)
        numbers, scores = np.empty((len(texts), k), np.int32), np.empty((len(texts), k))
        longest = len(words) if len(texts) == 1 else int(np.diff(starts).max(initial=0))
        kept, sums = work_memory()
        terms = kept if longest <= len(kept) else _terms(longest)
        _find_all()(*self.postings, words, starts, terms, sums, numbers, scores)
        spare.append((kept, sums))
        return (numbers[0], scores[0]) if isinstance(queries, str) else (numbers, scores)

    def save(self, folder: str | Path) -> None:
        """Writes the index to a folder, made where it is not there, as plain ``.npy`` files.

        Raises:
            OSError: It cannot be written.
        """
        index_files.write(Path(folder), self.passages, self.vocabulary, self.postings, (self.k1, self.b))

    @classmethod
    def load(cls, folder: str | Path) -> Index:
        """An index that `save` wrote. Texts and postings stay on the disk until they are read.

        Raises:
            FileError: A file is missing, damaged, or does not fit the others; names it.
        """
        return cls.of_parts(*index_files.read(Path(folder)))

    @classmethod
    def of_parts(
        cls,
        passages: Sequence[str],
        vocabulary: Vocabulary,
        postings: Postings,
        k1_and_b: tuple[float, float] = (bm25.K1, bm25.B),
    ) -> Index:
        """An index of passages whose postings are there; see the attributes."""
        index = cls.__new__(cls)
        index.passages, index.vocabulary, index.postings, (index.k1, index.b) = passages, vocabulary, postings, k1_and_b
        return index


def work_memory() -> tuple[np.ndarray, np.ndarray]:
    """Terms and sums for `bm25.find`, which no other search has: to make them takes as long as to find a passage."""
    try:
        return spare.pop()
    except IndexError:
        return _terms(KEPT_WORDS), np.zeros(bm25.WINDOW)


def _terms(words: int) -> np.ndarray:
    """Work memory of `bm25.find` for queries of so many words."""
    terms = np.empty(words, TERM)
    return record_view(terms) if jit_disabled() else terms


@cache
def compiled(function: Any) -> Callable:
    """A function of `bm25` as Python calls it, compiled with what it calls and kept on the disk."""
    if jit_disabled():
        return function
    builder = Compiled({"observe": function})  # whose file the machine code is kept beside
    mark = code_digest({"search": function}, compiler.made_with())
    return builder.driver(function, {}, mark)


@cache
def _find_all() -> Callable:
    """`bm25.find_all`, compiled, without the dispatcher's look at the types, which takes longer than a search."""
    function = compiled(bm25.find_all)
    if jit_disabled():
        return function
    nothing = bm25.read_only(np.zeros(1, np.int64), *(np.zeros(0, kind) for kind in ("f4", "i4", "f4")))
    queries = np.zeros(0, np.int32), np.zeros(1, np.int64)
    function(*nothing, *queries, np.zeros(0, TERM), np.zeros(1), np.zeros((0, 0), np.int32), np.zeros((0, 0)))
    (overload,) = function.overloads.values()  # type: ignore[attr-defined]
    return overload.entry_point
