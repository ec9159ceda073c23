"""What commands ask of text search: the index of a corpus, and questions as a data set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from palaestra.games.search.corpora import read_passages
from palaestra.games.search.index import Index
from palaestra.games.search.world_search import WorldSearch

__all__ = ["ABILITY", "WorldSearch", "find_seeds", "read_index", "split_keywords"]
ABILITY = "search"
"""Kind of the questions, a field of verl's datasets."""


def read_index(path: Path) -> Index:
    """The index of a corpus: a folder that `Index.save` wrote, or a file of passages.

    Raises:
        FileError: It cannot be read; names the file.
    """
    if path.is_dir():
        return Index.load(path)
    passages, *_ = read_passages(path)
    return Index(passages)


def split_keywords(keywords: Mapping[str, Any], split: str) -> dict[str, Any]:
    """The keyword that asks the questions of a split; none where each match draws a world, and seeds tell splits apart.

    Args:
        keywords: Of the id, and the user's.
        split: Of the questions.
    """
    return {} if keywords.get("world", "fresh") == "fresh" else {"split": split}


def find_seeds(sim: Any, n: int, first: int) -> list[int]:
    """Seeds whose matches ask different questions: n, or one for each question if there are fewer.

    Args:
        sim: A simulation of `palaestra.games.search.search_qa`.
        n: Most seeds.
        first: Where to begin; seeds are tried one after the other.
    """
    count = sim.game.world.rules.questions
    if not count:
        return list(range(first, first + n))
    found = dict[int, int]()
    while len(found) < min(n, count):
        sim.reset(seed=first)
        for seed, question in enumerate(sim.states["number"].tolist(), first):
            found.setdefault(question, seed)
        first += sim.num_envs
    return list(found.values())[:n]
