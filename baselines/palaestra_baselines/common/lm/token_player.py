"""Plays a game by the most probable tokens of a tiny model: an `palaestra.core.run.opponents.Opponent`.

The token form and the text form of a game share their arrays, so the same player plays both. Turns of the text form
may have more words.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from palaestra.game import Game
from palaestra_baselines.common.lm.rollouts import check_fits, speak, tokens_of
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
        self.model, self.tokens = model, tokens_of(game)
        check_fits(model, self.tokens)
        self.each = self.tokens.turn_size + self.tokens.found_size
        self.columns = self.tokens.question_size + self.tokens.turns * self.each
        self.width = sum(math.prod(choice.shape) for choice in game.roles[0].action)
        self.memory_size = self.columns + self.tokens.new_memory(1).shape[1] + 1

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """A turn of each lane, int64 ``[n, 1, L]``; see `palaestra.core.run.opponents.Opponent`."""
        rows, lanes = observations[:, 0], np.arange(len(observations))[:, None]
        known = memory.astype(np.int64)
        ids, seconds, turns = known[:, : self.columns], known[:, self.columns : -1], known[:, -1]
        start = self.tokens.question_size + turns * self.each
        ids[first, : self.tokens.question_size] = self.tokens.questions(rows, seconds)[first]
        found = self.tokens.passages(rows, seconds)
        ids[lanes[~first], (start[~first] - found.shape[1])[:, None] + np.arange(found.shape[1])] = found[~first]
        self.model.start(torch.from_numpy(ids))
        speaking = torch.ones(len(rows), dtype=torch.bool)
        words = speak(self.model, speaking, torch.Generator(), 0.0, self.tokens.turn_size)[0].numpy()
        ids[lanes, start[:, None] + np.arange(words.shape[1])] = words
        known[:, -1] += 1
        memory[:] = known
        actions = self.tokens.actions(words, seconds)
        return np.pad(actions, [(0, 0), (0, self.width - actions.shape[1])])[:, None]
