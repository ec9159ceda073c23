"""Speed of text search next to bm25s with its numba backend, one thread: queries, and making an index."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np

from measurement import Measurement, NotHere, ReportProgress
from palaestra.cli.measure import no_garbage_collection
from palaestra.search import Index, bm25

SIZES = (10_000, 100_000)
"""Passages."""
SINGLE_BARS, BATCH_BARS = (4.0, 10.0), (2.5, 10.0)
"""Times as many queries a second as bm25s, by the size."""
INDEX_BAR, BYTES_BAR = 1.0, 8.0
LENGTH, QUERY_LENGTH, QUERIES, SINGLES, K = 60, 8, 2000, 200, 3
VOCABULARY, RANK_SHIFT = 50_000, 2.7
"""Word r has the share 1 / (r + 2.7) of a text (Zipf and Mandelbrot)."""
ROUNDS = 7
"""Turns of each side."""


def made_up_texts(passages: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Passages of about `LENGTH` words, and queries of `QUERY_LENGTH` words that stand in one passage."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkqjxz"))
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        words["".join(letters[np.minimum(rng.geometric(0.12, rng.integers(2, 11)) - 1, 25)])] = None
    names = list(words)
    shares = np.cumsum(1 / (np.arange(VOCABULARY) + RANK_SHIFT))
    ends = np.cumsum(np.maximum(rng.poisson(LENGTH, passages), QUERY_LENGTH))
    drawn = np.split(np.searchsorted(shares, rng.random(ends[-1]) * shares[-1]), ends[:-1])
    texts = [" ".join([names[i] for i in passage]).capitalize() + "." for passage in drawn]
    asked = (rng.choice(drawn[n], QUERY_LENGTH, replace=False) for n in rng.integers(0, passages, QUERIES))
    return texts, [" ".join([names[i] for i in query]).capitalize() + "?" for query in asked]


class Bm25s:
    """The same index by bm25s."""

    def __init__(self, texts: list[str]) -> None:
        """Makes it.

        Raises:
            NotHere: bm25s is missing.
        """
        try:
            import bm25s  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise NotHere('needs bm25s: pip install "bm25s==0.3.16"') from error
        self._tokenize = lambda t: bm25s.tokenize(t, stopwords=None, show_progress=False)  # pyright: ignore
        self._retriever = bm25s.BM25(method="lucene", k1=bm25.K1, b=bm25.B, backend="numba")
        self._retriever.index(self._tokenize(texts), show_progress=False)

    def search(self, queries: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and scores ``[Q, k]``, by one thread."""
        found = self._retriever.retrieve(self._tokenize(queries), k=k, show_progress=False)
        return found.documents, found.scores


def speeds(report_progress: ReportProgress) -> list[Measurement]:
    """Queries a second of text, words found in it included, next to bm25s; and the time to make the index.

    Raises:
        NotHere: bm25s is missing.
    """
    measurements = []
    Bm25s(["to find out", "whether it is here"])
    Index(["and to", "compile"]).search("to")
    for number, size in enumerate(SIZES):
        report_progress(f"{size} passages")
        texts, queries = made_up_texts(size)
        build, (ours, theirs) = pairs(lambda texts=texts: Index(texts), lambda texts=texts: Bm25s(texts), 1)
        agree(ours, theirs, queries)
        few = queries[:SINGLES]
        batch, _ = pairs(lambda: ours.search(queries, K), lambda: theirs.search(queries, K), ROUNDS)  # noqa: B023
        single, _ = pairs(
            lambda: [ours.search(q, K) for q in few],  # noqa: B023
            lambda: [theirs.search(q, K) for q in few],  # noqa: B023
            ROUNDS,
        )
        postings = ours.postings
        used = (postings.passages.nbytes + postings.scores.nbytes) / len(postings.passages)
        about = f"{size:,} passages, best {K}"
        measurements += [
            faster(f"{about}: single queries over bm25s", single, len(few), SINGLE_BARS[number]),
            faster(f"{about}: a batch of {QUERIES} over bm25s", batch, QUERIES, BATCH_BARS[number]),
            slower(f"{size:,} passages, text to index, time of bm25s", build),
            Measurement("", f"{size:,} passages, bytes a posting", used, BYTES_BAR, False),
        ]
    return measurements


def pairs(ours: Any, theirs: Any, rounds: int) -> tuple[list[tuple[float, float]], tuple[Any, Any]]:
    """CPU seconds of both in turns, and what they return."""
    if rounds > 1:
        ours()
        theirs()
    found, results = [], (None, None)
    with no_garbage_collection():
        for _ in range(rounds):
            start = time.thread_time()
            one = ours()
            middle = time.thread_time()
            other = theirs()
            found.append((middle - start, time.thread_time() - middle))
            results = one, other
    return found, results


def faster(about: str, seconds: list[tuple[float, float]], queries: int, bar: float) -> Measurement:
    """How many times more queries a second are ours: the median of the turns."""
    ours, theirs = (1e6 * min(side) / queries for side in zip(*seconds, strict=True))
    ratio = median(theirs / ours for ours, theirs in seconds)
    return Measurement("", about, ratio, bar, True, f"CPU us a query, least: {ours:.1f} to {theirs:.1f}")


def slower(about: str, seconds: list[tuple[float, float]]) -> Measurement:
    """Our share of the other's time."""
    ours, theirs = seconds[0]
    return Measurement("", about, ours / theirs, INDEX_BAR, False, f"CPU s: {ours:.2f} to {theirs:.2f}")


def agree(ours: Index, theirs: Bm25s, queries: list[str]) -> None:
    """Both find the same scores; of equal scores bm25s may return any passage.

    Raises:
        AssertionError: They do not.
    """
    np.testing.assert_allclose(ours.search(queries, K)[1], theirs.search(queries, K)[1], rtol=1e-5)
