"""Text search: the passages that fit a question best, exactly, without an environment.

Example::

    from palaestra.search import Index

    index = Index(["The cat sat on the mat.", "Dogs bark at cats.", "A mat for the dog."])
    numbers, scores = index.search(["cat on a mat", "dog"], k=2)  # [[0, 2], [2, -1]]
    index.passages[numbers[0, 0]]  # "The cat sat on the mat."
    index.save("cats")  # and Index.load("cats")

Passages are ranked by BM25 as in Lucene (`palaestra.search.bm25`). Words are runs of letters and digits in lower case
(`palaestra.search.vocabulary`): ``cats`` is another word than ``cat``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from palaestra.search.index import Index

__all__ = ["Index"]


def __getattr__(name: str) -> Any:
    """`Index`, imported when it is asked for."""
    if name == "Index":
        from palaestra.search.index import Index

        return Index
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
