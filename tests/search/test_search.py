"""The search finds what the sum of BM25's summands over all passages says, compiled or not, in a game or outside."""

import os
import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

from palaestra.core.compile.linker import jit_disabled, record_view
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Array, Choice, Field, Game, Role, apart
from palaestra.games.search import Index, bm25
from palaestra.games.search.bm25 import TERM, Postings
from palaestra.games.search.vocabulary import Vocabulary

pytestmark = pytest.mark.jitless

K1, B = 1.5, 0.75


def naive(texts: list[str], query: str) -> np.ndarray:
    """Scores of all passages in float64, from their words."""
    documents = [text.lower().split() for text in texts]
    lengths = np.array([len(d) for d in documents])
    scores = np.zeros(len(texts))
    for word in query.lower().split():
        tf = np.array([d.count(word) for d in documents], float)
        df = (tf > 0).sum()
        idf = np.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        scores += idf * tf / (tf + K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9)))
    return scores


def best(scores: np.ndarray, k: int) -> np.ndarray:
    order = np.lexsort((np.arange(len(scores)), -scores))[:k]
    return order[scores[order] > 0]


def random_texts(rng: np.random.Generator, number: int, words: int, longest: int) -> list[str]:
    """Passages of a few words, which are the rarer the higher their number; many of the scores are equal."""
    return [
        " ".join(f"w{int(words * x**2)}" for x in rng.random(rng.integers(longest + 1))) for _ in range(number)
    ]  # fmt: skip


def assert_as_naive(index: Index, texts: list[str], queries: list[str], k: int) -> None:
    numbers, scores = index.search(queries, k)
    assert (numbers.dtype, scores.dtype, numbers.shape) == (np.int32, np.float64, (len(queries), k))
    for query, found, found_scores in zip(queries, numbers, scores, strict=True):
        exact = naive(texts, query)
        hits = found[found >= 0]
        assert len(hits) == min(k, (exact > 0).sum()), query
        assert (found[len(hits) :] == -1).all()
        assert (found_scores[len(hits) :] == 0).all()
        np.testing.assert_allclose(found_scores[: len(hits)], exact[best(exact, k)], rtol=1e-6)
        np.testing.assert_allclose(found_scores[: len(hits)], exact[hits], rtol=1e-6)
        for a, b, first, second in zip(hits, hits[1:], found_scores, found_scores[1:], strict=False):
            assert first > second or (first == second and a < b), "equal scores are ordered by number"


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("sample", "window", "ratio"), [(128, 4096, 16), (2, 7, 16), (1, 3, 0), (3, 1, 2)])
def test_random_corpora_next_to_the_sum_over_all_passages(
    monkeypatch: pytest.MonkeyPatch, seed: int, sample: int, window: int, ratio: int
):
    rng = np.random.default_rng(seed)
    size = (1, 3, 12, 40, 90, 160)[seed]
    texts = random_texts(rng, size, 5 + 9 * seed, 9)
    monkeypatch.setattr(bm25, "SAMPLE", sample)
    monkeypatch.setattr(bm25, "RATIO", ratio)
    index = Index(texts)
    queries = [*random_texts(rng, 6, 5 + 9 * seed, 7), "", "unknown", "w0 w0 unknown w0 w1", " ".join(texts[:3])]
    for k in (1, 3, size + 3):
        for query in queries:
            assert_python_as_naive(index.postings, index.vocabulary, texts, query, k, window)


def assert_python_as_naive(
    postings: Postings, vocabulary: Vocabulary, texts: list[str], query: str, k: int, window: int
) -> None:
    """`find` as plain Python, in which an index outside an array is an error."""
    words, _ = vocabulary.encode([query])
    terms, sums = record_view(np.zeros(max(len(words), 1), TERM)), np.zeros(window)
    numbers, found = np.full(k, 99, np.int32), np.full(k, 9.0)
    hits = bm25.find(*postings, words, terms, sums, numbers, found)
    exact = summed(postings, words, len(texts))
    np.testing.assert_array_equal(numbers[:hits], best(exact, k))
    np.testing.assert_array_equal(found[:hits], exact[numbers[:hits]])
    assert (numbers[hits:] == -1).all()
    assert not sums.any()
    np.testing.assert_allclose(exact, naive(texts, query), rtol=1e-6)


def test_a_word_that_can_only_equal_the_kth_score_is_searched(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bm25, "SAMPLE", 1)  # passage 3 is scored first
    postings = Postings(
        np.array([0, 1, 3]), np.ones(2, np.float32), np.array([3, 1, 9], np.int32), np.ones(3, np.float32)
    )
    numbers, terms = np.zeros(1, np.int32), record_view(np.zeros(2, TERM))
    bm25.find(*postings, np.array([0, 1], np.int32), terms, np.zeros(4), numbers, np.zeros(1))
    assert numbers.tolist() == [1]


def summed(postings: Postings, words: np.ndarray, size: int) -> np.ndarray:
    """All scores in the order of `find`: words by falling peak, then by id."""
    different, times = np.unique(words[words >= 0], return_counts=True)
    order = np.lexsort((different, -(times * postings.peaks[different].astype(float))))
    scores = np.zeros(size)
    for word, count in zip(different[order], times[order], strict=True):
        span = slice(postings.offsets[word], postings.offsets[word + 1])
        scores[postings.passages[span]] += count * postings.scores[span].astype(float)
    return scores


def test_an_index_finds_the_same():
    rng = np.random.default_rng(7)
    texts = random_texts(rng, 200, 40, 12)
    index = Index(texts)
    for k in (0, 1, 10, 300):
        assert_as_naive(index, texts, random_texts(rng, 20, 42, 8), k)


def test_one_query_gets_one_row():
    index = Index(["a b", "b c", "c"])
    numbers, scores = index.search("b b c", k=5)
    many, scores_of_many = index.search(["b b c"], k=5)
    assert numbers.shape == scores.shape == (5,)
    np.testing.assert_array_equal([numbers], many)
    np.testing.assert_array_equal([scores], scores_of_many)
    assert index.search([], k=2)[0].shape == (0, 2)


def test_equal_scores_go_to_the_lower_number():
    texts = ["x y", "y x", "z", "x y", "y z", "x y"]
    assert Index(texts).search("x y", k=3)[0].tolist() == [0, 1, 3]
    assert Index(texts[::-1]).search("x y", k=3)[0].tolist() == [0, 2, 4]


def test_a_word_counts_as_often_as_it_stands_in_the_query():
    texts = ["cat", "dog", "dog", "fish"]
    index = Index(texts)
    once, twice = index.search("dog")[1][0], index.search("dog dog")[1][0]
    assert twice == 2 * once
    assert index.search("cat dog dog")[0].tolist()[:3] == [1, 2, 0]


def test_titles_are_part_of_the_passage():
    index = Index(["born in Rome", "born in Paris"], titles=["Ann", "Ben"])
    assert index.passages[1] == "Ben\nborn in Paris"
    assert index.search("where was Ben born?", k=1)[0].tolist() == [1]


def test_wrong_arguments_are_told():
    with pytest.raises(TypeError, match="one string"):
        Index("text")
    with pytest.raises(ValueError, match="1 titles for 2 texts"):
        Index(["a", "b"], titles=["c"])
    with pytest.raises(ValueError, match="k1 is 0 to 1000, b is 0 to 1"):
        Index(["a"], b=2)
    with pytest.raises(ValueError, match="k=-1"):
        Index(["a"]).search("a", k=-1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The CAT's 2 mats_x!", ["the", "cat", "s", "2", "mats", "x"]),
        ("Größe ÉTÉ, 東京 3½", ["größe", "été", "東京", "3½"]),
        ("हिन्दी में_खोज", ["हिन्दी", "में", "खोज"]),
        ("தமிழ் مُحَمَّد", ["தமிழ்", "مُحَمَّد"]),
        ("İstanbul e\u0301te\u0301 \u0301a \u200dx\u200cy", ["i\u0307stanbul", "e\u0301te\u0301", "a", "x\u200cy"]),
        ("a\0b", ["a", "b"]),
        ("", []),
    ],
)
def test_words_are_runs_of_letters_and_digits_in_lower_case(text: str, words: list[str]):
    for texts in ([text], [text, "other"], [text, "ünicode"]):
        vocabulary = Vocabulary()
        ids, starts = vocabulary.learn(texts)
        names = list(vocabulary)
        assert [names[i] for i in ids[: starts[1]]] == words
        again, starts_again = vocabulary.encode(texts)
        np.testing.assert_array_equal(again, ids)
        np.testing.assert_array_equal(starts_again, starts)
        assert Vocabulary(names).encode(["zzz"])[0].tolist() == [-1]


def test_many_texts_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch):
    texts = ["a b", "", "c a", "d", "a"]
    whole = Vocabulary().learn(texts)
    monkeypatch.setattr("palaestra.games.search.vocabulary.AT_ONCE", 2)
    for one, other in zip(Vocabulary().learn(texts), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_logarithm_is_exact_to_the_last_bits():
    x = np.concatenate([1 + np.logspace(-9, 0, 500), np.logspace(0, 9, 500)])
    np.testing.assert_allclose(bm25.natural_log(x), np.log(x), rtol=1e-14, atol=3e-16)


PROGRAM = """
import hashlib, sys
import numpy as np
import palaestra.games.search
assert "numba" not in sys.modules
from palaestra.games.search import Index
rng = np.random.default_rng(1)
texts = [" ".join(f"w{int(60 * x**2)}" for x in rng.random(9)) for _ in range(300)]
numbers, scores = Index(texts).search(texts[:20], k=7)
print(("numba" in sys.modules), hashlib.sha256(numbers.tobytes() + scores.tobytes()).hexdigest())
"""


def run(**variables: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.split()


@pytest.mark.check
@pytest.mark.skipif(jit_disabled(), reason="compares with compiled code")
def test_plain_python_gives_the_same_bits_and_loads_no_compiler():
    (loaded, compiled), (loaded_plain, plain) = run(), run(NUMBA_DISABLE_JIT="1")
    assert (loaded, loaded_plain) == ("True", "False")
    assert plain == compiled


def test_a_search_keeps_no_memory_that_grows_with_the_corpus():
    texts = random_texts(np.random.default_rng(2), 6000 if not jit_disabled() else 300, 50, 9)
    index = Index(texts)
    index.search("w0 w1", k=3)
    tracemalloc.start()
    index.search("w0 w1 w2 w3", k=3)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * bm25.WINDOW + 20_000


search = apart(
    bm25.find,
    (
        Array("i8"), Array("f4"), Array("i4"), Array("f4"), Array("i4"),
        Array(TERM, 1, True), Array("f8", 1, True), Array("i4", 1, True), Array("f8", 1, True),
    ),
    returns="i8",
)  # fmt: skip


def game(index: Index) -> Game:
    """An action is the id of a word that is searched for together with word 0."""

    def reset(s, world):
        s.found[:] = 0

    def step(s, world, actions, rewards, scratch):
        s.words[0], s.words[1] = actions.reader[0].word, 0
        p = world
        rewards[0] = search(
            p.offsets, p.peaks, p.passages, p.scores, s.words, scratch.terms, scratch.sums, s.numbers, s.found
        )
        return False

    def observe(s, world, observations, scratch):
        observations.reader[0].best = s.numbers[0]

    role = Role("reader", ("red_0",), (Field("best", (), -1, 1e6),), (Choice("word", len(index.vocabulary)),))
    state = (("words", "i4", (2,)), ("numbers", "i4", (3,)), ("found", "f8", (3,)))
    scratch = (("terms", TERM, (2,)), ("sums", "f8", (16,)))
    hooks: dict[str, Any] = {"reset": reset, "step": step, "observe": observe}
    return Game(
        name="Library", roles=(role,), state=state, scratch=scratch, world=index.postings, horizon=10, **hooks
    )  # fmt: skip


def test_a_game_finds_what_the_index_finds():
    index = Index(random_texts(np.random.default_rng(3), 60, 12, 6))
    names = list(index.vocabulary)
    sim = KernelSimulation(game(index), 4)
    sim.reset(seed=0)
    for first in (0, 4):
        sim.step([[first], [first + 1], [first + 2], [first + 3]])
        numbers, scores = index.search([f"{names[first + k]} {names[0]}" for k in range(4)], k=3)
        np.testing.assert_array_equal(sim.states["numbers"], numbers)
        np.testing.assert_array_equal(sim.states["found"], scores)
    sim.close()
