"""Parts of the search that find the place of a passage among the postings of a word."""

import numpy as np
import pytest

from palaestra.games.search import bm25

pytestmark = pytest.mark.jitless


@pytest.mark.parametrize(
    "passages",
    [
        np.arange(40, dtype=np.int32),
        np.arange(5, 400, 7, dtype=np.int32),
        np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 1000], np.int32),
        np.array([0, *range(2**31 - 20, 2**31 - 1)], np.int32),
        np.array([3], np.int32),
        np.array([], np.int32),
    ],
    ids=["all", "each seventh", "most are low", "most are high", "one", "none"],
)
def test_a_passage_is_found_wherever_the_first_guess_is(passages: np.ndarray):
    targets = {0, 1, 500, 2**31 - 1} | {int(p) + step for p in passages for step in (-1, 0, 1)}
    end = len(passages)
    for start in range(end + 1):
        for passage in sorted(targets):
            place = start + int(np.searchsorted(passages[start:], passage))
            assert bm25.move_to(passages, start, end, passage) == place, (start, passage)


def test_a_place_far_from_the_first_guess_takes_few_reads():
    class Counted:
        reads = 0

        def __getitem__(self, place: int) -> int:
            self.reads += 1
            return min(place, 1) * 10**9 + place

    passages = Counted()
    assert bm25.move_to(passages, 0, 2**20, 10**9 + 1000) == 1000
    assert passages.reads < 60
