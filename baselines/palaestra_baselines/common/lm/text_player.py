"""Plays a game's text form by the most probable tokens of a model of Hugging Face: an `Opponent` as `TokenPlayer` is.

What it has read and said in a match is kept as tokens in the memory that the simulation saves, so that matches go on
after a snapshot.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import torch

from palaestra.game import AgentView, Game
from palaestra_baselines.common.lm.hf_model import HFModel, TextTurns, decoded, encoded
from palaestra_baselines.common.lm.rollouts import converse_at_own_pace, stacked

MOST_TOKENS = 8192
"""Of a match: all that it reads and says."""


class TextPlayer:
    """The player; its memory of a lane is the number of the tokens so far, and these.

    Attributes:
        memory_size: Numbers per lane.
    """

    memory_size = 1 + MOST_TOKENS

    def __init__(self, folder: Path, game: Game, team: str, turn_tokens: int) -> None:
        """Loads the model.

        Args:
            folder: Of the model and its tokenizer.
            game: The rules.
            team: Of one agent.
            turn_tokens: Most tokens of a turn.

        Raises:
            ImportError: transformers is not installed.
            ValueError: There is no such folder, the game has no text form, or turns are too long.
        """
        if not folder.is_dir():
            raise ValueError(f"it plays the model in {folder}, which is not there: keep both together")
        if "text" not in game.codecs:
            raise ValueError(f'{game.name} has no text that a language model reads: give form="text"')
        if not 1 <= turn_tokens <= MOST_TOKENS:
            raise ValueError(f"its turns have up to {turn_tokens} tokens: 1 to {MOST_TOKENS} are played")
        self.turns, self.codec, slot = TextTurns(folder, turn_tokens), game.codecs["text"], game.teams[team][0]
        self.model = HFModel(folder, self.turns.size).requires_grad_(False)
        (role,) = (role for role in game.roles if game.agents[slot] in role.agents)
        self.row: Any = game.observation_dtype[role.name].base
        self.view = AgentView(role, slot, None, None, None, game.world, None, None)

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """A turn of each lane, int64 ``[n, 1, K]``; see `palaestra.core.run.opponents.Opponent`.

        Raises:
            ValueError: A match has more tokens than are kept.
        """
        rows = np.ascontiguousarray(observations[:, 0]).view(self.row)[:, 0]
        texts = encoded(self.codec, dataclasses.replace(self.view, row=rows))
        lanes = list[list[int]]()
        for text, is_first, row in zip(texts, first.tolist(), memory, strict=True):
            known = row[1 : 1 + int(row[0])].astype(int).tolist()
            new = self.turns.prompt(text) if is_first else self.turns.reply(text, known[-1])
            lanes.append([*known, *(number + 1 for number in new)])
        said = self._speak(lanes)
        for row, lane, turn in zip(memory, lanes, said, strict=True):
            tokens = [*lane, *turn]
            if len(tokens) > MOST_TOKENS:
                raise ValueError(f"a match has {len(tokens)} tokens, this player keeps {MOST_TOKENS}: play fewer turns")
            row[0], row[1 : 1 + len(tokens)] = len(tokens), tokens
        return decoded(self.codec, self.view, list(map(self.turns.text_of, said)))[:, None]

    def _speak(self, lanes: list[list[int]]) -> list[list[int]]:
        """The turns of lanes that have read these tokens."""
        nothing = torch.zeros(len(lanes), 1, dtype=torch.int64)
        over = torch.zeros(len(lanes), dtype=torch.bool), nothing[:, 0]
        spoken = converse_at_own_pace(
            self.model, stacked(lanes), self.turns, 1, lambda *_: (over, nothing), torch.Generator(), temperature=0.0
        )
        ids, turns, *_ = spoken[0].arrays()
        return [row[turn == 0].tolist() for row, turn in zip(ids, turns, strict=True)]
