"""Next to bm25s and tantivy (Lucene in Rust): the same scores and, where they differ, the same passages."""

from typing import Any

import numpy as np
import pytest

from palaestra.games.search import Index

pytestmark = pytest.mark.peers

PASSAGES, QUERIES, K = 500, 200, 10


@pytest.fixture(scope="module")
def corpus() -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(5)

    def draw(words: int) -> str:
        return " ".join(f"w{int(400 * x**2)}" for x in rng.random(words))

    return [draw(int(rng.integers(5, 60))) for _ in range(PASSAGES)], [
        draw(int(rng.integers(2, 9))) for _ in range(QUERIES)
    ]


def assert_same(ours: tuple[np.ndarray, np.ndarray], numbers: np.ndarray, scores: np.ndarray, rtol: float) -> None:
    np.testing.assert_allclose(ours[1], scores, rtol=rtol)
    gaps = np.abs(np.diff(ours[1], append=0, prepend=np.inf)) > 10 * rtol * ours[1].max()
    alone = gaps[:, :-1] & gaps[:, 1:]
    alone[:, -1] = False  # the next one may have the same score
    assert alone.mean() > 0.5
    np.testing.assert_array_equal(ours[0][alone], numbers[alone])


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_bm25s_finds_the_same(corpus: tuple[list[str], list[str]], backend: str):
    bm25s: Any = pytest.importorskip("bm25s", reason='pip install "bm25s==0.3.16"')
    texts, queries = corpus
    theirs = bm25s.BM25(method="lucene", k1=1.5, b=0.75, backend=backend)
    theirs.index([text.split() for text in texts], show_progress=False)
    numbers, scores = theirs.retrieve([query.split() for query in queries], k=K, show_progress=False)
    assert_same(Index(texts).search(queries, K), numbers, scores, 1e-5)


def test_tantivy_finds_the_same(corpus: tuple[list[str], list[str]]):
    """It keeps one byte of a passage's length, exact below 40 words, and has k1 1.2 and Lucene's old factor k1 + 1."""
    tantivy: Any = pytest.importorskip("tantivy", reason='pip install "tantivy==0.27.0"')
    texts = [" ".join(text.split()[:39]) for text in corpus[0]]
    queries = [" ".join(dict.fromkeys(query.split())) for query in corpus[1]]  # its parser drops repeated words
    schema = tantivy.SchemaBuilder().add_text_field("text", stored=False).add_unsigned_field("number", stored=True)
    theirs = tantivy.Index(schema.build())
    writer = theirs.writer(num_threads=1)
    for number, text in enumerate(texts):
        writer.add_document(tantivy.Document(text=text, number=number))
    writer.commit()
    theirs.reload()
    searcher = theirs.searcher()
    assert searcher.num_segments == 1
    numbers, scores = np.full((QUERIES, K), -1), np.zeros((QUERIES, K))
    for q, query in enumerate(queries):
        hits = searcher.search(theirs.parse_query(query, ["text"]), K).hits
        for k, (score, address) in enumerate(hits):
            numbers[q, k] = searcher.doc(address)["number"][0]
            scores[q, k] = score / (1.2 + 1)
    assert_same(Index(texts, k1=1.2).search(queries, K), numbers, scores, 1e-5)
