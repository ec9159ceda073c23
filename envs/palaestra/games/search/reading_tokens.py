"""Tokens of a tiny model for SearchQA-Reading: a word is a token, and words that say nothing are left out.

    question   BOS  word ... word
    turn       SEARCH name word ... END, or ANSWER word END, at most `TURN` tokens
    passages   INFO  (words of the first to the third passage, `KEPT` at most of each)  INFO_END

Left out are articles, the words that questions and sentences may share, and the second words of names, which are kept
as in `palaestra.games.search.name_tokens`. Full stops stay. So a passage of 60 to 120 words has about 60 tokens,
and what it says is not taken apart for the model: it has to find the sentence and to know what it means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.contract.turn_tokens import BOS, END, INFO, INFO_END, PAD, packed
from palaestra.game import Game
from palaestra.games.search.language import ARTICLES, FIRST_WORD, FRESH_STEMS
from palaestra.games.search.library import TOP
from palaestra.games.search.name_tokens import ANSWER, FIRST_RELATION, SEARCH, NameTokens
from palaestra.games.search.reading_language import FUNCTION_WORDS, plain_words
from palaestra.games.search.reading_questions import QUESTION
from palaestra.games.search.reading_world import TOKENS

TURN, KEPT = 7, 88
"""Most tokens of a turn, and those of a passage that are read."""


class ReadingTokens(NameTokens):
    """Translates between a batch's arrays and tokens."""

    turn_size, found_size, question_size = TURN, 2 + TOP * KEPT, 1 + QUESTION

    def __init__(self, game: Game) -> None:
        """Looks at the rules.

        Raises:
            ValueError: Not the token form of fresh worlds, or another number of passages.
        """
        rules = game.world.rules
        if not rules.fresh or game.world.options.topk != TOP:
            raise ValueError(f"{game.name}: the tiny model reads fresh worlds and {TOP} passages of each search")
        plain, self.turns = plain_words(), int(game.horizon or 0)
        kept = [k for k, word in enumerate(plain) if word not in FUNCTION_WORDS and word not in ARTICLES]
        self.first_name = FIRST_RELATION + len(kept)
        self.vocabulary = self.first_name + FRESH_STEMS
        self.token_of = np.zeros(rules.stem + FRESH_STEMS, np.int64)
        self.token_of[FIRST_WORD + np.array(kept)] = FIRST_RELATION + np.arange(len(kept))
        self.token_of[rules.stem :] = self.first_name + np.arange(FRESH_STEMS)
        self.word_of = np.zeros(self.vocabulary, np.int64)
        self.word_of[self.token_of[self.token_of > 0]] = np.flatnonzero(self.token_of)

    def questions(self, observations: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """The questions, int64 ``[N, question_size]``, paddings at their end; see `NameTokens.questions`."""
        words = observations[:, :QUESTION].astype(np.int64)
        self._read_seconds(words, seconds)
        begins = np.full((len(words), 1), BOS)
        return np.concatenate([begins, packed(self.token_of[words], QUESTION)], 1)

    def passages(self, observations: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """What the last turn found, int64 ``[N, found_size]``, paddings behind each passage."""
        words = observations[:, QUESTION : QUESTION + TOP * TOKENS].astype(np.int64)
        self._read_seconds(words, seconds)
        read = packed(self.token_of[words].reshape(-1, TOKENS), KEPT).reshape(len(words), -1)
        ends = np.full((len(words), 1), INFO_END)
        return np.concatenate([np.full_like(ends, INFO), read, ends], 1)

    def demonstration(self, records: Any, number: int) -> np.ndarray:
        """The search for each passage that is needed, then the answer; int64 ``[N, turn_size]``, see `TurnTokens`."""
        hops, queries = records["hops"], records["queries"]
        searches = number < hops
        query = queries[:, min(number, queries.shape[1] - 1)]
        words = np.where(searches[:, None], query, records["answers"][:, 0]).astype(np.int64)
        said = packed(self.token_of[words], TURN - 1)
        said[np.arange(len(said)), np.minimum((said != PAD).sum(1), TURN - 2)] = END
        turns = np.concatenate([np.where(searches, SEARCH, ANSWER)[:, None], said], 1)
        return np.where((number <= hops)[:, None], turns, PAD)
