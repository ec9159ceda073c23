"""Dense retrieval: passages ranked by the dot product of their embeddings with that of the query.

Embeddings come from a function of yours, or from an embedding model of Sentence Transformers on this disk (extra
``text``)::

    from palaestra.games.search import DenseIndex

    index = DenseIndex(["The cat sat on the mat.", "Dogs bark at cats."], "models/all-MiniLM-L6-v2")
    numbers, scores = index.search(["pets on a carpet"], k=1)

``SearchQA``'s text form takes the same names: ``retriever="models/all-MiniLM-L6-v2"``, ``retriever="mine:embed"``.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.compile import compiler
from palaestra.core.contract.factories import load
from palaestra.core.files import open_regular, write_atomically
from palaestra.core.files.model_files import digest_of_folder
from palaestra.core.files.model_folder import checked_copy
from palaestra.core.files.model_loading import load_embedder, refusing
from palaestra.games.search.corpus import Passages, ids_of
from palaestra.games.search.queries import query_refusal

Embed = Callable[[Sequence[str]], np.ndarray]
"""Gives one embedding each text, ``[n, d]``."""
AT_ONCE = 1024
"""Passages that are handed to a function at a time."""


class DenseIndex:
    """Passages and their embeddings; searched like `palaestra.games.search.Index`, exactly.

    Attributes:
        passages: The passages, by number: the title, a line break and the text where there are titles.
        embeddings: float32 ``[N, d]``.
        refusal: See `palaestra.games.search.Index`.
    """

    refusal = staticmethod(query_refusal)

    def __init__(
        self, texts: Sequence[str], retriever: str | Path | Embed, *, titles: Sequence[str] | None = None
    ) -> None:
        """Embeds passages; those of a model of this disk are kept in the user's cache folder.

        Args:
            texts: One each passage.
            retriever: A function from n texts to embeddings ``[n, d]``, its name as ``"module:function"``, or the
                folder of a model.
            titles: One each passage; they are embedded, too.

        Raises:
            TypeError: ``texts`` is one string.
            ValueError: Another number of titles than of texts; no such function or folder; embeddings of another
                shape, or with numbers that are not finite.
            FileError: Something is wrong with the folder of a model; names the file.
            ImportError: A folder, and Sentence Transformers is missing; says how to install it.
        """
        if isinstance(texts, str):
            raise TypeError("texts is one string: give a list of them")
        if titles is not None and len(titles) != len(texts):
            raise ValueError(f"{len(titles)} titles for {len(texts)} texts: give one each")
        joined = texts if titles is None else map("{}\n{}".format, titles, texts)
        self.passages = Passages(joined, ids_of(texts))
        source = find_source(retriever)
        if isinstance(source, Path):
            model = _Model.of(source)
            self._embed: Embed = model.queries
            self.embeddings = _kept(self.passages, model)
        else:
            self._embed = source
            self.embeddings = _embedded(source, self.passages)

    def __len__(self) -> int:
        """Number of passages."""
        return len(self.passages)

    def search(self, queries: str | Sequence[str], k: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """The k passages of the largest dot products with each query: by falling score, equal scores by number.

        A query has the same answer alone as among others, where it has the same embedding.

        Args:
            queries: Q of them, or one.
            k: Most passages of each.

        Returns:
            Numbers int32 ``[Q, k]``, -1 behind the last passage, and scores float64 ``[Q, k]``, 0 there; ``[k]`` for
            one string.

        Raises:
            ValueError: ``k`` is negative, or the embeddings of the queries do not fit those of the passages.
        """
        if k < 0:
            raise ValueError(f"k={k}: give the number of passages, 0 or more")
        texts = [queries] if isinstance(queries, str) else list(queries)
        numbers, found = np.full((len(texts), k), -1, np.int32), np.zeros((len(texts), k))
        count = min(k, len(self))
        if count and texts:
            embedded = _checked(self._embed(texts), len(texts), self.embeddings.shape[1])
            for row, query in enumerate(embedded):
                scores = self.embeddings @ query
                best = _best(scores, count)
                numbers[row, :count], found[row, :count] = best, scores[best]
        return (numbers[0], found[0]) if isinstance(queries, str) else (numbers, found)


def find_source(retriever: str | Path | Embed) -> Path | Embed:
    """The function, or the folder of the model, that a retriever names.

    Raises:
        ValueError: Neither; says what to give.
    """
    if callable(retriever):
        return retriever
    if (folder := Path(retriever)).is_dir():
        return folder
    ask = "give a function's name as 'module:function', or the folder of a model of Sentence Transformers"
    if not isinstance(retriever, str) or not all(retriever.partition(":")):
        raise ValueError(f"retriever={str(retriever)!r}: no such folder: {ask}")
    try:
        found = load(retriever)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"retriever={retriever!r}: {error}: {ask}") from error
    if not callable(found):
        raise ValueError(f"retriever={retriever!r} is no function: {ask}")
    return found


@dataclass(frozen=True)
class RetrieverDigest:
    """Says which model or function decides what is found: `palaestra.game.Game.model_digest`."""

    retriever: str

    def __call__(self) -> str:
        """SHA-256 of the model's files, or the name of the function."""
        source = find_source(self.retriever)
        return digest_of_folder(source) if isinstance(source, Path) else self.retriever


@dataclass(frozen=True)
class _Model:
    """An embedding model, whose embeddings of queries and passages may differ by a prefix."""

    digest: str
    queries: Embed
    passages: Embed

    @staticmethod
    def of(folder: Path) -> _Model:
        """The model of a folder; loaded once a process for the same files.

        Raises:
            ImportError: Sentence Transformers is missing; says how to install it.
            FileError: Something is wrong with the folder; names the file.
        """
        with checked_copy(folder, sentences=True):  # before gigabytes are read for the digest
            pass
        return _model(folder.absolute(), digest_of_folder(folder))


@lru_cache(maxsize=4)
def _model(folder: Path, digest: str) -> _Model:
    model = load_embedder(folder)
    form: dict[str, Any] = {"normalize_embeddings": model.similarity_fn_name != "dot"}

    def queries(texts: Sequence[str]) -> np.ndarray:
        with refusing(folder, folder):
            return model.encode_query(list(texts), show_progress_bar=False, **form)

    def passages(texts: Sequence[str]) -> np.ndarray:
        with refusing(folder, folder):
            return model.encode_document(list(texts), show_progress_bar=compiler.is_announced(), **form)

    return _Model(digest, queries, passages)


def _kept(passages: Sequence[str], model: _Model) -> np.ndarray:
    """Embeddings of passages from the cache folder, where they are written the first time."""
    digest = hashlib.sha256(model.digest.encode())
    for passage in passages:
        digest.update(passage.encode("utf-8", "replace") + b"\0")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "palaestra" / "embeddings"
    path = folder / f"{digest.hexdigest()}.npy"
    try:
        with open_regular(path) as file:
            return _checked(np.load(file, allow_pickle=False), len(passages))
    except (OSError, ValueError, EOFError, MemoryError):
        pass  # not there yet, or damaged
    embeddings = _checked(model.passages(passages), len(passages))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda file: np.save(file, embeddings, allow_pickle=False))
    except OSError as error:
        warnings.warn(f"embeddings are not kept, and are made again next time: {error}", RuntimeWarning, stacklevel=4)
    return embeddings


def _embedded(embed: Embed, passages: Sequence[str]) -> np.ndarray:
    """Embeddings of passages, float32 ``[N, d]``."""
    parts = list[np.ndarray]()
    for start in range(0, len(passages), AT_ONCE):
        some = list(passages[start : start + AT_ONCE])
        parts.append(_checked(embed(some), len(some), parts[0].shape[1] if parts else None))
    return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)


def _checked(embeddings: Any, count: int, size: int | None = None) -> np.ndarray:
    """Embeddings as float32 ``[count, d]``.

    Raises:
        ValueError: Another shape, or numbers that are not finite.
    """
    array = np.ascontiguousarray(embeddings, np.float32)
    if array.ndim != 2 or len(array) != count or size not in (None, array.shape[1]):
        wanted = f"({count}, {'d' if size is None else size})"
        raise ValueError(f"embeddings of {count} texts have shape {wanted}, not {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError("embeddings have numbers that are not finite")
    return array


def _best(scores: np.ndarray, count: int) -> np.ndarray:
    """Places of the ``count`` largest scores, the largest first, of equal ones the lower place."""
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    places = np.flatnonzero(scores >= least)
    return places[np.argsort(-scores[places], kind="stable")[:count]]
