"""BM25 as Lucene computes it: postings, how they are built, and the exact best k passages of a query.

``score(query, passage)`` is the sum over the query's words of ``idf * tf / (tf + k1 * (1 - b + b * length / mean))``,
``idf = ln(1 + (N - df + 0.5) / (df + 0.5))``: tf is how often the word stands in the passage, df in how many of the N
passages it stands, length the number of all words of the passage. The summands are computed once, when the index is
built. A word that stands twice in the query counts twice, as in Lucene and bm25s. (S. Robertson and H. Zaragoza, "The
probabilistic relevance framework: BM25 and beyond", 2009; without Lucene's old constant factor k1 + 1.)

`find` and what it calls are plain functions that allocate nothing: a game's rules call them, by `palaestra.game.native`
or compiled into the hooks. Python calls them through `palaestra.games.search.Index`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

K1, B = 1.5, 0.75
"""Usual parameters: how fast a word that is repeated stops to count, and how far long passages count less."""
LARGEST_K1 = 1000.0
"""With a larger one, scores of float32 could be 0."""

TERM = np.dtype(
    [
        ("word", "i8"),
        ("count", "i8"),
        ("start", "i8"),
        ("end", "i8"),
        ("before", "i8"),
        ("at", "i8"),
        ("peak", "f8"),
        ("left", "f8"),
    ]
)
"""Work memory of `find` for one different word of a query: its id, how often it stands there, its postings ``start`` to
``end``, two places among them, its largest summand, and the sum of the largest summands from this word on."""

SAMPLE = 128
"""A word in no more passages is rare: the best of its passages are scored before all others."""
RATIO = 16
"""How many times as many postings as were added up are added up rather than searched."""
WINDOW = 4096
"""Numbers of passages whose scores Python's searches add up at a time; 32 kB."""

ROUNDING = 1.0 - 2.0**-30
"""A sum of largest summands, added up in another order than a score, may be less than the score by its rounding. What
is compared with such a sum is made smaller by this factor, which covers more words than a query can have."""

LN2 = 0.6931471805599453
LN_TERMS = 13
"""Terms of the series in `natural_log`: the next one is below 1e-20."""


class Postings(NamedTuple):
    """Which passages have a word, and what it adds to their scores. Plain arrays: a game may hold them in its world.

    V words, N passages, P pairs of a word and a passage that has it; 8 bytes a pair.

    Attributes:
        offsets: int64 ``[V + 1]``: the pairs of word w are ``offsets[w]`` to ``offsets[w + 1]``.
        peaks: float32 ``[V]``: the largest of the word's scores.
        passages: int32 ``[P]``: numbers of the passages, ascending within a word.
        scores: float32 ``[P]``: what the word adds to the passage's score; positive.
    """

    offsets: np.ndarray
    peaks: np.ndarray
    passages: np.ndarray
    scores: np.ndarray


def find(offsets, peaks, passages, scores, words, terms, sums, numbers, found):
    """Finds the k best passages of a query, exactly, and returns how many there are.

    Higher scores come first, equal ones by the passages' numbers. A score is the float64 sum of float32 numbers in an
    order that depends on the set of words alone. The words stand by falling peak:

    1. The best passages of the rarest words (`SAMPLE`) are scored: others must reach them.
    2. The postings of all words are added up, for ``len(sums)`` numbers of passages at a time, but for the last words:
       those that together could not lift a passage into the first k. A passage whose sum could reach the first k with
       them is looked up in their postings; the first of them is added up, too, where that is faster (`RATIO`).

    The second step is MaxScore (H. Turtle and J. Flood, "Query evaluation: strategies and optimizations", 1995).

    Args:
        offsets: See `Postings`.
        peaks: See `Postings`.
        passages: See `Postings`.
        scores: See `Postings`.
        words: int32 ``[n]``: ids of the query's words; what is no id (-1) matches nothing.
        terms: Records `TERM` ``[m]``, work memory. Different words of the query beyond m are left out.
        sums: float64 ``[s]``, work memory of zeros, s at least 1; zeros again afterwards.
        numbers: int32 ``[k]``, written: numbers of the passages, -1 behind the last.
        found: float64 ``[k]``, written: their scores, 0 behind the last.

    Returns:
        Number of passages found, at most k: passages without any of the words are none.
    """
    if len(numbers) == 0:
        return 0
    count = read_query(offsets, peaks, words, terms)
    hits = score_sample(passages, scores, terms, count, numbers, found)
    last = count
    while True:
        least = lowest(found, hits)
        while last > 0 and terms[last - 1].left < least:
            last -= 1
        base = next_passage(passages, terms, last)
        if base < 0:
            break
        add_up(passages, scores, terms, last, base, sums)
        further = last
        if last < count and is_short(terms, last):
            add_further(passages, scores, terms, last, base, sums)
            further += 1
        hits = score_window(passages, scores, terms, last, further, count, base, sums, numbers, found, hits)
    for k in range(hits, len(numbers)):
        numbers[k] = -1
        found[k] = 0.0
    return hits


def lowest(found, hits):
    """What a sum of largest summands must reach for a passage to be among the first k."""
    return found[hits - 1] * ROUNDING if hits == len(found) else -1.0


def score_sample(passages, scores, terms, count, numbers, found):
    """Scores the best passages of the rarest words; returns how many there are.

    They are the best by the words that stand before a word with more than `SAMPLE` passages.
    """
    rare, hits = 0, 0
    while rare < count and terms[rare].end - terms[rare].start <= SAMPLE:
        rare += 1
    rare = max(rare, min(count, 1))
    for i in range(rare):
        for at in range(terms[i].start, min(terms[i].start + SAMPLE, terms[i].end)):
            passage, score = passages[at], terms[i].count * np.float64(scores[at])
            # With an earlier word it was scored before: it is among the best, or worse by fewer words all the more.
            score = add_others(passages, scores, terms, i + 1, rare, passage, passage, score, -1.0)
            hits = enter(numbers, found, hits, passage, score)
        for j in range(rare):
            terms[j].at = terms[j].start
    for k in range(hits):
        passage = numbers[k]
        score = add_others(passages, scores, terms, rare, count, 0, passage, found[k], -1.0)
        enter(numbers[: k + 1], found[: k + 1], k, passage, score)
    return hits


def next_passage(passages, terms, last):
    """The lowest passage that one of the first words has and that was not added up yet, -1 where there is none."""
    base = -1
    for j in range(last):
        if terms[j].at < terms[j].end and (base < 0 or passages[terms[j].at] < base):
            base = passages[terms[j].at]
    return base


def add_up(passages, scores, terms, last, base, sums):
    """Adds up what the first words add to the passages from ``base`` on."""
    for j in range(last):
        at, end = terms[j].at, terms[j].end
        terms[j].before = at
        terms[j].at = at + add_word(passages[at:end], scores[at:end], terms[j].count, base, sums)


def add_word(passages, scores, times, base, sums):
    """Adds up what one word adds to the passages from ``base`` on; returns the number of postings that were used.

    It gets the word's postings alone and counts from 0: indexes that the compiler knows not to be negative are faster.
    """
    for k in range(len(passages)):
        place = passages[k] - base
        if place >= len(sums):
            return k
        sums[place] += times * np.float64(scores[k])
    return len(passages)


def is_short(terms, last):
    """Whether adding up the postings of word ``last`` is faster than to look passages up in them."""
    total = 0
    for j in range(last):
        total += terms[j].end - terms[j].start
    return terms[last].end - terms[last].start <= RATIO * total


def add_further(passages, scores, terms, j, base, sums):
    """Adds up what a word adds to those passages from ``base`` on that have a sum."""
    at, end = move_to(passages, terms[j].at, terms[j].end, base), terms[j].end
    terms[j].at = at + add_to_sums(passages[at:end], scores[at:end], terms[j].count, base, sums)


def add_to_sums(passages, scores, times, base, sums):
    """`add_word`, but sums of 0 remain 0."""
    for k in range(len(passages)):
        place = passages[k] - base
        if place >= len(sums):
            return k
        before = sums[place]
        score = times * np.float64(scores[k])
        sums[place] = before + score if before > 0.0 else 0.0
    return len(passages)


def score_window(passages, scores, terms, last, further, count, base, sums, numbers, found, hits):
    """Scores the passages that were added up, and clears the sums; returns how many the best are."""
    rest = terms[further].left if further < count else 0.0
    least = lowest(found, hits)
    for j in range(last):
        at, end = terms[j].before, terms[j].at
        while True:
            at += clear_sums(passages[at:end], base, sums, rest, least)
            if at == end:
                break
            place = passages[at] - base
            score = sums[place]
            sums[place] = 0.0
            score = add_others(passages, scores, terms, further, count, base, passages[at], score, least)
            hits = enter(numbers, found, hits, passages[at], score)
            least = lowest(found, hits)
            at += 1
    return hits


def clear_sums(passages, base, sums, rest, least):
    """Clears sums up to the first one that reaches ``least`` with ``rest``; returns how many were cleared."""
    for k in range(len(passages)):
        place = passages[k] - base
        score = sums[place]
        if score > 0.0 and score + rest >= least:
            return k
        sums[place] = 0.0
    return len(passages)


def read_query(offsets, peaks, words, terms):
    """Writes the different words of a query to ``terms``, by falling peak and then by id; returns their number."""
    count = 0
    for k in range(len(words)):
        word = words[k]
        if word < 0 or word >= len(peaks):
            continue
        i = 0
        while i < count and terms[i].word != word:
            i += 1
        if i == len(terms):
            continue
        if i == count:
            terms[i].word = word
            terms[i].count = 0
            count += 1
        terms[i].count += 1
    for i in range(count):  # insertion sort, as there are few
        word, times = terms[i].word, terms[i].count
        peak = times * np.float64(peaks[word])
        place = i
        while place > 0 and is_better(peak, word, terms[place - 1].peak, terms[place - 1].word):
            terms[place].word = terms[place - 1].word
            terms[place].count = terms[place - 1].count
            terms[place].peak = terms[place - 1].peak
            place -= 1
        terms[place].word = word
        terms[place].count = times
        terms[place].peak = peak
    left = 0.0
    for i in range(count - 1, -1, -1):
        left += terms[i].peak
        terms[i].left = left
        terms[i].start = offsets[terms[i].word]
        terms[i].end = offsets[terms[i].word + 1]
        terms[i].at = terms[i].start
    return count


def is_better(score, number, other_score, other_number):
    """Whether the first comes before the second: a higher score, of equal scores the lower number."""
    return score > other_score or (score == other_score and number < other_number)


def add_others(passages, scores, terms, first, count, base, passage, score, least):
    """Adds what the words from ``first`` on add to a passage's score; -1 as soon as it cannot reach ``least``."""
    for j in range(first, count):
        if score + terms[j].left < least:
            return -1.0
        terms[j].at = move_to(passages, terms[j].at, terms[j].end, base)
        at = move_to(passages, terms[j].at, terms[j].end, passage)
        if at < terms[j].end and passages[at] == passage:
            score += terms[j].count * np.float64(scores[at])
    return score


def move_to(passages, start, end, passage):
    """The first place from ``start`` on whose passage is not below ``passage``, ``end`` where there is none.

    The first guess takes the passages to lie at equal distances. From there steps double until they are beyond the
    place, then the last one is halved. A word of many passages is found with few reads, which are slow: each is of
    another part of the memory.
    """
    if start >= end or passages[start] >= passage:
        return start
    if passages[end - 1] < passage:
        return end
    low, high, step = start, end - 1, 1  # the passage of low is below the one that is searched for, that of high is not
    share = (passage - passages[low]) / (passages[high] - passages[low])
    guess = low + int(share * (high - low))
    if passages[guess] < passage:
        low = guess
        while low + step < high and passages[low + step] < passage:
            low += step
            step *= 2
        high = min(low + step, high)
    else:
        high = guess
        while high - step > low and passages[high - step] >= passage:
            high -= step
            step *= 2
        low = max(high - step, low)
    while high - low > 1:
        middle = (low + high) // 2
        if passages[middle] < passage:
            low = middle
        else:
            high = middle
    return high


def enter(numbers, found, hits, passage, score):
    """Puts a passage where it belongs among the best, unless it is there or too bad; returns their number."""
    most = len(numbers)
    if score < 0.0 or (hits == most and not is_better(score, passage, found[most - 1], numbers[most - 1])):
        return hits
    for k in range(hits):
        if numbers[k] == passage:
            return hits
    place = min(hits, most - 1)
    while place > 0 and is_better(score, passage, found[place - 1], numbers[place - 1]):
        numbers[place], found[place] = numbers[place - 1], found[place - 1]
        place -= 1
    numbers[place], found[place] = passage, score
    return min(hits + 1, most)


def find_all(offsets, peaks, passages, scores, words, starts, terms, sums, numbers, found):
    """`find` for Q queries: ``words[starts[q]:starts[q + 1]]`` is query q, ``numbers`` and ``found`` are ``[Q, k]``."""
    for q in range(len(starts) - 1):
        find(offsets, peaks, passages, scores, words[starts[q] : starts[q + 1]], terms, sums, numbers[q], found[q])


def count_passages(words, starts, last, counts):
    """Counts the passages that have each word.

    Args:
        words: int32 ``[W]``: ids of the words of all passages.
        starts: int64 ``[N + 1]``: passage n has ``words[starts[n]:starts[n + 1]]``.
        last: int64 ``[V]``, work memory of -1.
        counts: int64 ``[V]``, written.
    """
    for n in range(len(starts) - 1):
        for k in range(starts[n], starts[n + 1]):
            word = words[k]
            if last[word] != n:
                last[word] = n
                counts[word] += 1


def fill_postings(words, starts, idf, lengths, offsets, ends, passages, scores, peaks):
    """Writes the postings of all words.

    Args:
        words: See `count_passages`.
        starts: See `count_passages`.
        idf: float64 ``[V]``.
        lengths: float64 ``[N]``: ``k1 * (1 - b + b * length / mean length)``.
        offsets: int64 ``[V + 1]``.
        ends: int64 ``[V]``, work memory: ``offsets[:-1]``.
        passages: int32 ``[P]``, written.
        scores: float32 ``[P]``, written.
        peaks: float32 ``[V]``, zeros, written.
    """
    for n in range(len(starts) - 1):
        for k in range(starts[n], starts[n + 1]):
            word = words[k]
            end = ends[word]
            if end > offsets[word] and passages[end - 1] == n:
                scores[end - 1] += 1
            else:
                passages[end], scores[end] = n, 1
                ends[word] = end + 1
    for word in range(len(idf)):
        for k in range(offsets[word], offsets[word + 1]):
            times = np.float64(scores[k])
            score = np.float32(idf[word] * times / (times + lengths[passages[k]]))
            scores[k] = score
            peaks[word] = max(peaks[word], score)


def natural_log(x: np.ndarray) -> np.ndarray:
    """Natural logarithm by additions, products and quotients alone, no library's logarithm; errors near 1e-16.

    Args:
        x: float64, at least 1.
    """
    fraction, exponent = np.frexp(x)
    is_small = fraction < 0.7071067811865476
    fraction, exponent = np.where(is_small, 2 * fraction, fraction), exponent - is_small
    z = (fraction - 1) / (fraction + 1)  # ln(f) = 2 (z + z^3 / 3 + z^5 / 5 + ...)
    square, series = z * z, np.zeros_like(z)
    for k in range(LN_TERMS, -1, -1):
        series = series * square + 1.0 / (2 * k + 1)
    return 2 * z * series + exponent * LN2


def build_postings(
    words: np.ndarray, starts: np.ndarray, size: int, k1: float, b: float, compiled: Any = lambda function: function
) -> Postings:
    """Postings of N passages.

    Args:
        words: int32 ``[W]``: ids of the words of all passages, 0 to ``size - 1``.
        starts: int64 ``[N + 1]``: passage n has ``words[starts[n]:starts[n + 1]]``.
        size: Number of different words V.
        k1: See the module.
        b: See the module.
        compiled: Makes a function of this module a compiled one.
    """
    passages_with = np.zeros(size, np.int64)
    compiled(count_passages)(words, starts, np.full(size, -1), passages_with)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(passages_with)])
    number = len(starts) - 1
    mean_length = max(len(words), 1) / max(number, 1)
    lengths = k1 * (1 - b + b * np.diff(starts) / mean_length)
    idf = natural_log(1 + (number - passages_with + 0.5) / (passages_with + 0.5))
    passages, scores = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.float32)
    peaks = np.zeros(size, np.float32)
    compiled(fill_postings)(words, starts, idf, lengths, offsets, offsets[:-1].copy(), passages, scores, peaks)
    return read_only(offsets, peaks, passages, scores)


def read_only(*arrays: np.ndarray) -> Postings:
    """Postings of these arrays, which nobody writes any more: all postings are of one type for compiled code."""
    for array in arrays:
        array.flags.writeable = False
    return Postings(*arrays)
