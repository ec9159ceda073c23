"""Players of policy files of language models: an `palaestra.core.run.opponents.Opponent` of tokens, and one of texts.

Both play by the most probable tokens. What they have read and written in a match is kept as tokens in the memory that
the simulation saves, so that matches go on after a snapshot.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch

from palaestra.game import AgentView, Game
from palaestra_baselines.common.lm.hf_model import HFModel, TextTurns, decoded, encoded, verbs_of
from palaestra_baselines.common.lm.rollouts import check_fits, converse_at_own_pace, speak, stacked, tokens_of
from palaestra_baselines.common.lm.tiny_model import TinyModel

MOST_TOKENS = 8192
"""Of a match: all that it reads and says."""


class TokenPlayer:
    """Plays by a tiny model. Its memory is the match so far as tokens, that of the tokens, and the number of turns.

    The token form and the text form of a game share their arrays, so the same player plays both. Turns of the text form
    may have more words.

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


class TextPlayer:
    """Plays a game's text form by a model of Hugging Face; its memory is the number of the tokens so far, and these.

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
            ValueError: There is no such folder, the game has no text form or shows what agents share, or turns are too
                long.
        """
        if not folder.is_dir():
            raise ValueError(f"it plays the model in {folder}, which is not there: keep both together")
        if "text" not in game.codecs:
            raise ValueError(f'{game.name} has no text that a language model reads: give form="text"')
        if game.lane_observation or game.team_observation:
            raise ValueError(f"{game.name} has observations that agents share, which this player does not read")
        if not 1 <= turn_tokens <= MOST_TOKENS:
            raise ValueError(f"its turns have up to {turn_tokens} tokens: 1 to {MOST_TOKENS} are played")
        self.codec, slot = game.codecs["text"], game.teams[team][0]
        (role,) = (role for role in game.roles if game.agents[slot] in role.agents)
        self.turns = TextTurns(folder, turn_tokens, verbs_of(self.codec, role))
        self.model = HFModel(folder, self.turns.size).requires_grad_(False)
        self.row: Any = game.observation_dtype[role.name].base
        self.view = AgentView(role, slot, None, None, None, game.world, None, None)

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """A turn of each lane, int64 ``[n, 1, K]``; see `palaestra.core.run.opponents.Opponent`.

        Raises:
            ValueError: A match has more tokens than are kept.
        """
        rows = observations[:, 0]
        rows = rows if rows.dtype.names else np.ascontiguousarray(rows).view(self.row)[:, 0]
        mask = None if legal is None or not legal.dtype.names else legal[:, 0]  # a codec reads lists of candidates
        view = dataclasses.replace(self.view, row=rows, mask=mask)
        texts = encoded(self.codec, view)
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
        return decoded(self.codec, view, list(map(self.turns.text_of, said)))[:, None]

    def _speak(self, lanes: list[list[int]]) -> list[list[int]]:
        """The turns of lanes that have read these tokens."""
        nothing = torch.zeros(len(lanes), 1, dtype=torch.int64)
        over = torch.zeros(len(lanes), dtype=torch.bool), nothing[:, 0]
        spoken = converse_at_own_pace(
            self.model, stacked(lanes), self.turns, 1, lambda *_: (over, nothing), torch.Generator(), temperature=0.0
        )
        ids, turns, *_ = spoken[0].arrays()
        return [row[turn == 0].tolist() for row, turn in zip(ids, turns, strict=True)]
