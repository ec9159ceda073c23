"""Text search: agents that search passages and answer questions, and the search engine without an environment.

The rules of ``SearchQA`` are in `palaestra.games.search.search_qa` and `palaestra.games.search.turns`. The engine and
the scorer::

    from palaestra.games.search import Index, score

    index = Index(["The cat sat on the mat.", "Dogs bark at cats.", "A mat for the dog."])
    numbers, scores = index.search(["cat on a mat", "dog"], k=2)  # [[0, 2], [2, -1]]
    index.passages[numbers[0, 0]]  # "The cat sat on the mat."
    index.save("cats")  # and Index.load("cats")
    score("The mat!", ["mat"]).exact_match  # 1.0

Passages are ranked by BM25 as in Lucene (`palaestra.games.search.bm25`). Words are runs of letters, digits and
combining marks in lower case (`palaestra.games.search.vocabulary`): ``cats`` is another word than ``cat``. `DenseIndex`
ranks them by embeddings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaestra.game import Family, Page, Preset, presets

if TYPE_CHECKING:
    from palaestra.games.search.dense import DenseIndex
    from palaestra.games.search.index import Index
    from palaestra.games.search.scoring import Score, score

__all__ = ["FAMILY", "DenseIndex", "Index", "Score", "score"]

GAME = "palaestra.games.search.search_qa:game"
READING = "palaestra.games.search.reading_qa:game"

FAMILY = Family(
    "search",
    rows=(
        *presets(
            GAME,
            Preset("palaestra/SearchQA-2Hop-v1", "questions over two facts of a world that each match draws", hops=2),
            Preset("palaestra/SearchQA-1Hop-v1", "questions after one fact", hops=1),
            Preset("palaestra/SearchQA-3Hop-v1", "questions over three facts", hops=3),
            Preset("palaestra/SearchQA-Bridge4-v1", "questions over two to four facts", hops=(2, 4), max_turns=6),
            Preset("palaestra/SearchQA-Compare-v1", "which of two is older, whether both have the same", compare=True),
            Preset(
                "palaestra/SearchQA-Noisy-v1",
                "two facts among other names, near-duplicates, and what is no longer or not so",
                hops=2,
                aliases=0.2,
                near_duplicates=0.2,
                stale=0.3,
                contradicting=0.2,
                max_turns=6,
            ),
            Preset(
                "palaestra/SearchQA-Fictional-v1", "10,000 passages that all matches share, with splits", world="fixed"
            ),
            Preset("palaestra/SearchQA-Judge-v1", "a turn says whether the passages help", judge=True, max_turns=8),
            page=Page("SearchQA", "answer questions by searching text, as choices, tokens or words"),
        ),
        *presets(
            READING,
            Preset("palaestra/SearchQA-Reading-v0", "two facts in passages that say them in other words; fresh worlds"),
            Preset(
                "palaestra/SearchQA-Reading-Fictional-v0",
                "the same in 10,000 passages that all matches share, with splits",
                world="fixed",
            ),
            page=Page("SearchReading", "answer questions by searching text that says things in other words"),
        ),
        *presets(
            GAME,
            Preset(
                "palaestra/SearchQA-Custom-v1",
                "passages and questions of your own; an example without",
                world="example",
            ),
            page=Page("SearchFiles", "the same with real text: files of your own"),
        ),
    ),
    order=6,
    needs={"sentence-transformers": "palaestra[text]"},
    demo=("palaestra/SearchQA-Bridge4-v1", "oracle"),
    questions={name: "palaestra.games.search.search_services" for name in (GAME, READING)},
    corpus="palaestra.games.search.search_services:read_index",
)


def __getattr__(name: str) -> Any:
    """`Index`, `DenseIndex`, `Score` and `score`, imported when they are asked for."""
    if name == "Index":
        from palaestra.games.search.index import Index

        return Index
    if name == "DenseIndex":
        from palaestra.games.search.dense import DenseIndex

        return DenseIndex
    if name in ("Score", "score"):
        from palaestra.games.search import scoring

        return getattr(scoring, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
