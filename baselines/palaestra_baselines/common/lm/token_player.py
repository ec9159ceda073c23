"""Plays SearchQA by the most probable tokens of a tiny model: an `palaestra.core.run.opponents.Opponent`.

The token form and the text form of a game share their arrays, so the same player plays both.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from palaestra.game import Game
from palaestra_baselines.common.lm.name_tokens import PASSAGES, TURN, NameTokens
from palaestra_baselines.common.lm.rollouts import speak
from palaestra_baselines.common.lm.tiny_model import TinyModel


class TokenPlayer:
    """The player. It remembers, for each lane, the match so far as tokens, second words, and the number of turns.

    Attributes:
        memory_size: Numbers per lane.
    """

    def __init__(self, model: TinyModel, game: Game) -> None:
        """Keeps the model.

        Raises:
            ValueError: The model cannot read such a game, or its matches are too long for it.
        """
        self.model, self.tokens = model, NameTokens(game)
        self.tokens.check_context(model.context)
        self.columns = self.tokens.question_size + self.tokens.turns * (TURN + PASSAGES)
        self.memory_size = self.columns + self.tokens.new_memory(1).shape[1] + 1

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """A turn of each lane, int64 ``[n, 1, 17]``; see `palaestra.core.run.opponents.Opponent`."""
        rows, lanes = observations[:, 0], np.arange(len(observations))[:, None]
        known = memory.astype(np.int64)
        ids, seconds, turns = known[:, : self.columns], known[:, self.columns : -1], known[:, -1]
        start = self.tokens.question_size + turns * (TURN + PASSAGES)
        ids[first, : self.tokens.question_size] = self.tokens.questions(rows, seconds)[first]
        found = self.tokens.passages(rows, seconds)
        ids[lanes[~first], (start[~first] - PASSAGES)[:, None] + np.arange(PASSAGES)] = found[~first]
        self.model.start(torch.from_numpy(ids))
        speaking = torch.ones(len(rows), dtype=torch.bool)
        words = speak(self.model, speaking, torch.Generator(), temperature=0.0)[0].numpy()
        ids[lanes, start[:, None] + np.arange(TURN)] = words
        known[:, -1] += 1
        memory[:] = known
        return self.tokens.actions(words, seconds)[:, None]
