"""Tokens of a tiny model for MathText: the environment's own, and marks where questions and turns begin and end.

    question   BOS  3 + 5 * 7 ...                      dots fill it up to one length
    turn       3 + 5 = 8 ; 8 * 7 = 6 ; ANSWER 6 END    all of it, or a step of it

Dots keep all turns at the same positions: the place of a number in a question is then found by its distance, whatever
the length of the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palaestra.core.contract.turn_tokens import BOS, DOT, END, FIRST_WORD, MARKS, PAD, VERBS
from palaestra.game import Game
from palaestra.games.mathtext.math_language import ANSWER as ANSWER_WORD
from palaestra.games.mathtext.math_language import VOCABULARY as WORDS
from palaestra.games.mathtext.math_rules import demonstrations

ANSWER = VERBS[1]
"""Token of the environment's word that opens an answer; the others follow the marks, word 1 is `FIRST_WORD`."""
SHORTEST_QUESTION = 18
"""Tokens of a question, BOS counted: enough for 8 operations. Games with longer questions have more."""


class MathTokens:
    """Translates between a batch's arrays and tokens; nothing is remembered of lanes.

    See `palaestra.core.contract.turn_tokens.TurnTokens`.
    """

    vocabulary, found_size = FIRST_WORD + WORDS - 1, 0
    special = MARKS

    def __init__(self, game: Game) -> None:
        """Looks at the rules."""
        (role,) = game.roles
        self.turns = int(game.horizon or 1)
        self.words = next(field.size for field in role.observation if field.name == "question")
        self.question_size = max(1 + self.words, SHORTEST_QUESTION)
        self.turn_size = sum(field.size for field in role.action) + 1
        self.token_of = np.concatenate([[PAD], FIRST_WORD + np.arange(WORDS - 1)])
        self.token_of[ANSWER_WORD] = ANSWER
        self.word_of = np.zeros(self.vocabulary, np.int64)
        self.word_of[self.token_of] = np.arange(WORDS)

    def new_memory(self, lanes: int) -> np.ndarray:
        """Nothing is remembered."""
        return np.zeros((lanes, 0), np.int64)

    def questions(self, observations: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """The questions, int64 ``[N, question_size]``, of observations int ``[N, n]`` of the token form."""
        table = np.full((len(observations), self.question_size), DOT)
        table[:, 0] = BOS
        words = self.token_of[observations[:, : self.words].astype(np.int64)]
        table[:, 1 : 1 + self.words] = np.where(words == PAD, DOT, words)
        return table

    def passages(self, observations: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Nothing is found, int64 ``[N, 0]``."""
        return np.zeros((len(observations), 0), np.int64)

    def is_complete(self, turn: Sequence[int]) -> bool:
        """Whether the tokens of a turn are all of it."""
        return len(turn) == self.turn_size or turn[-1] == END

    def actions(self, turns: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """Turns int64 ``[N, L]`` as the environment takes them: words up to ``END``, none from a mark on."""
        words = self.word_of[turns[:, : self.turn_size - 1]]
        actions = np.zeros((len(turns), self.turn_size - 1), np.int64)
        actions[:, : words.shape[1]] = np.where((words > 0).cumprod(1).astype(bool), words, 0)
        return actions

    def turns_of(self, words: np.ndarray) -> np.ndarray:
        """Turns as tokens, int64 ``[N, turn_size]``, of words ``[N, turn_size - 1]``: the inverse of `actions`."""
        turns = np.full((len(words), self.turn_size), PAD)
        turns[:, :-1] = self.token_of[words]
        turns[np.arange(len(turns)), (words > 0).sum(1)] = END
        return turns

    def demonstration(self, records: Any, number: int) -> np.ndarray:
        """The worked solutions, or their next steps, int64 ``[N, turn_size]``; see `TurnTokens`."""
        return self.turns_of(demonstrations(records))
