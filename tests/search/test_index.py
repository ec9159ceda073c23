"""Work memory of `Index.search`: reused, of one search at a time, and none of a search that was interrupted."""

from typing import Any

import numpy as np
import pytest

from palaestra.games.search import Index, index

pytestmark = pytest.mark.jitless

TEXTS = ["a b", "b c", "c", "a c d"]


def test_two_searches_at_the_same_time_share_no_work_memory():
    Index(TEXTS).search("a")  # leaves some
    first, second = index.work_memory(), index.work_memory()
    assert not any(np.shares_memory(a, b) for a, b in zip(first, second, strict=True))


def test_a_search_reuses_the_work_memory_of_the_one_before():
    searched = Index(TEXTS)
    searched.search("a")
    terms, sums = index.spare[-1]
    searched.search(["b", "c d"])
    assert index.spare[-1][0] is terms
    assert index.spare[-1][1] is sums


def test_an_interrupted_search_leaves_no_work_memory(monkeypatch: pytest.MonkeyPatch):
    def interrupted(*arguments: Any) -> None:
        *_, sums, _numbers, _scores = arguments
        sums[:] = 1.0
        raise KeyboardInterrupt

    searched = Index(TEXTS)
    monkeypatch.setattr(index, "_find_all", lambda: interrupted)
    with pytest.raises(KeyboardInterrupt):
        searched.search("a c")
    _, sums = index.work_memory()
    assert not sums.any()


def test_all_words_of_a_long_query_are_searched():
    texts = [f"w{n}" for n in range(index.KEPT_WORDS + 9)]
    numbers, scores = Index(texts).search(" ".join(texts), k=len(texts))
    assert numbers.tolist() == list(range(len(texts)))
    assert (scores > 0).all()
