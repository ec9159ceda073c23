"""``form="text"`` where passages are found by their embeddings, outside of the rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palaestra.game import AgentView
from palaestra.games.search.language import NO_WORD
from palaestra.games.search.turn_codec import TurnCodec, parse
from palaestra.games.search.turns import SEARCH


class DenseTurnCodec(TurnCodec):
    """The text form, whose searches are made here and hand the numbers of passages to the rules."""

    def decode(self, view: AgentView, action: str) -> np.ndarray:
        """Verb, words and passages that are found, int64 ``[1 + W + topk]``."""
        turn, found = super().decode(view, action), np.zeros(self._top, np.int64)
        if turn[0] == SEARCH and turn[1] != NO_WORD:
            assert self.texts.index is not None
            found[:] = self.texts.index.search(parse(action, self._verbs)[1], self._top)[0] + 1
        return np.concatenate([turn, found])

    def decode_many(self, view: AgentView, actions: Sequence[str]) -> np.ndarray:
        """The same of N matches, int64 ``[N, 1 + W + topk]``; one by one, as embeddings of many may round otherwise."""
        return np.stack([self.decode(view, action) for action in actions])
