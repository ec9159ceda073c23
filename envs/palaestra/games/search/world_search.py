"""Searches in worlds that matches draw, by the seeds of these: the environment's own, for ``/retrieve``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np

from palaestra.game import AgentView

SHOWN = re.compile(r'(?:^|>)Doc \d+\(Title: "(.*?)"\) (.*?)(?:</information>)?$', re.M)
"""A passage as agents read it, see `palaestra.games.search.turn_codec.as_shown`."""


class WorldSearch:
    """The matches of an environment whose worlds are searched.

    Attributes:
        topk: Passages that a turn shows, at most.
    """

    def __init__(self, sim: Any) -> None:
        """Takes a simulation, in whose lanes searches are made side by side.

        Args:
            sim: Of worlds that matches draw, with ``form="text"`` and ``autoreset_mode="off"``. What a seed draws is
                decided by its keywords, which are those with which the questions were written.
        """
        self._sim, self._lock, game = sim, Lock(), sim.game
        self._codec: Any = game.codecs["text"]
        (role,) = game.roles
        self._row: Any = game.observation_dtype[role.name].base
        self._view = AgentView(role, 0, None, None, None, game.world, None, None)
        self._sim.reset(seed=0)
        self.topk = self._row["documents"].shape[0]

    def __str__(self) -> str:
        """The id."""
        return self._sim.origin[0]

    def refusal(self, query: str) -> str:
        """Why a query is not searched; empty if it is."""
        return self._codec.refusal(query)

    def search(self, queries: Sequence[str], seeds: Sequence[int], k: int) -> list[list[tuple[str, str, float]]]:
        """The best ``k`` passages of each query in the world of its seed, as a search in the first turn shows them.

        Returns:
            Of each query: id (``"seed:number"``), text and score of the passages.
        """
        found = list[list[tuple[str, str, float]]]()
        with self._lock:
            for start in range(0, len(queries), self._sim.num_envs):
                some = slice(start, start + self._sim.num_envs)
                found += self._search(queries[some], seeds[some], k)
        return found

    def _search(self, queries: Sequence[str], seeds: Sequence[int], k: int) -> list[list[tuple[str, str, float]]]:
        sim = self._sim
        lanes = np.arange(sim.num_envs) < len(queries)
        sim.reset(lanes, seed=np.resize(np.array(seeds, np.uint64), sim.num_envs))
        said = [f"<search>{query.replace('<', ' ')}</search>" for query in queries]  # no word has such a character
        turns = np.zeros(sim.actions.shape, np.int64)
        turns[: len(queries), 0] = self._codec.decode_many(self._view, said)
        sim.step(turns, lanes)
        rows = sim.observations[: len(queries), 0].view(self._row)[:, 0]
        shown = self._codec.encode_many(replace(self._view, row=rows))
        scores = sim.states["work"]["scores"].tolist()
        return [
            [*_hits(*of_query)][:k] for of_query in zip(seeds, rows["documents"].tolist(), shown, scores, strict=False)
        ]


def _hits(seed: int, numbers: list[int], text: str, scores: list[float]) -> Iterator[tuple[str, str, float]]:
    """The passages that a text shows, whose numbers and scores these are."""
    for (title, passage), number, score in zip(SHOWN.findall(text), numbers, scores, strict=False):
        yield f"{seed}:{number}", f"{title}\n{passage}", score
