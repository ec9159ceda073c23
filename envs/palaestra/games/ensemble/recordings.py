"""Files of recorded experts: what K language models say to each token of documents, as an ``.npz`` archive.

::

    np.savez("experts.npz", probs=probs, right=right, domain=domain)

=========  ========  ======================================  ========================================================
array      dtype     shape                                   content
=========  ========  ======================================  ========================================================
probs      float32   ``[documents, T, K, V]``                distributions over V tokens; each row adds up to 1
right      int32     ``[documents, T]``                      the right token
domain     int32     ``[documents]`` or ``[documents, T]``   what the text is about, 0 to 7
=========  ========  ======================================  ========================================================

The K models read the same right text so far and have one vocabulary, or were mapped onto one. Nothing in a file is
evaluated. Its distributions are kept once, for all lanes.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from palaestra.core.files import FileError
from palaestra.core.files.archive import Archive
from palaestra.games.ensemble.ensemble_rules import MOST_DOMAINS, MOST_EXPERTS

MOST_BYTES = 2**35
"""Largest size of an array."""
LARGE, MOST_INFLATED = 2**27, 50
"""Bytes from which on an array may not be as many times larger than in its file: probabilities are not."""
TOLERANCE = 1e-3
"""By how much the sum of a distribution may differ from 1: that of 100,000 numbers of half precision does."""
SMALLEST = 1e-30
"""Takes the place of probabilities of 0 in logarithms."""


class Recording(NamedTuple):
    """Recorded experts.

    Attributes:
        probs: float32 ``[C, T, K, V]``.
        right: int32 ``[C, T]``.
        domain: int32 ``[C, T]``.
        top: int32 ``[C, T, K]``: the most probable token of each expert, the lowest of equal ones.
        entropy: float64 ``[C, T, K]``: as a share of log V.
    """

    probs: np.ndarray
    right: np.ndarray
    domain: np.ndarray
    top: np.ndarray
    entropy: np.ndarray


def read_recording(path: str | Path, tokens: int) -> Recording:
    """Reads a file.

    Args:
        path: The file.
        tokens: Tokens of a match: T is as many or more.

    Raises:
        FileError: Not such a file; names file and array, what is wrong and what to do.
    """
    try:
        with Archive(path) as archive:
            size = archive.sizes.get("probs", 0)
            if size > max(LARGE, MOST_INFLATED * archive.stored.get("probs", 0)):
                raise FileError(f"{path}: array 'probs' has {size} bytes, of which few are stored: save it by np.savez")
            probs = archive.read("probs", "<f4", (None,) * 4, MOST_BYTES)
            documents, length, experts, vocabulary = probs.shape
            right = archive.read("right", "<i4", (documents, length), MOST_BYTES)
            shape = (documents,) if archive.sizes.get("domain", 0) < right.nbytes else (documents, length)
            domain = archive.read("domain", "<i4", shape, MOST_BYTES)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from error
    if documents < 1 or length < tokens:
        ask = "give a longer recording, or fewer spans= or span_tokens="
        raise FileError(f"{path}: array 'probs' has {documents} documents of {length} tokens, a match {tokens}: {ask}")
    if not 1 <= experts <= MOST_EXPERTS or vocabulary < 2:
        ask = f"give 1 to {MOST_EXPERTS} experts and 2 tokens or more"
        raise FileError(f"{path}: array 'probs' has {experts} experts and {vocabulary} tokens: {ask}")
    _check_numbers(path, "right", right, vocabulary)
    _check_numbers(path, "domain", domain, MOST_DOMAINS)
    entropy = np.empty((documents, length, experts))
    for document in range(documents):  # one at a time: no second copy of all
        entropy[document] = _entropies(path, document, probs[document])
    if domain.ndim == 1:
        domain = np.repeat(domain[:, None], length, axis=1)
    return Recording(probs, right, domain, probs.argmax(axis=3).astype(np.int32), entropy)


def _check_numbers(path: str | Path, name: str, numbers: np.ndarray, limit: int) -> None:
    wrong = np.argwhere((numbers < 0) | (numbers >= limit))
    if len(wrong):
        place = tuple(wrong[0].tolist())
        raise FileError(f"{path}: array {name!r} has {numbers[place]} at {place}: give numbers from 0 to {limit - 1}")


def _entropies(path: str | Path, document: int, probs: np.ndarray) -> np.ndarray:
    """Entropies of the distributions ``[T, K, V]`` of a document, as shares of log V.

    Raises:
        FileError: No distributions.
    """
    sums = probs.sum(axis=2, dtype=np.float64)
    for wrong, what in (
        (~np.isfinite(probs).all(axis=2), "a number that is not finite"),
        ((probs < 0.0).any(axis=2), "a negative number"),
        (np.abs(sums - 1.0) > TOLERANCE, "a sum other than 1"),
    ):
        if wrong.any():
            place = (document, *np.argwhere(wrong)[0].tolist())
            raise FileError(f"{path}: array 'probs' has {what} at {place}: give distributions, which add up to 1")
    surprise = -(probs * np.log(np.maximum(probs, SMALLEST))).sum(axis=2, dtype=np.float64)
    return np.clip(surprise / np.log(probs.shape[2]), 0.0, 1.0)
