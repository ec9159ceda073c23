"""Tokens of a tiny model for generated worlds of SearchQA: a name is one token, a passage is three.

    question   BOS  relation of the last hop ... relation of the first hop  name
    turn       SEARCH name relation END, or ANSWER name END, at most `TURN` tokens
    passages   INFO  (subject relation object) of the first to the third passage  INFO_END

So the question "What is the mayor of the birthplace of Velka Arnev?" is ``BOS mayor birthplace Velka``. Articles and
the other words of sentences say nothing that a model could use. The second word of a name is read where the name
occurs, and written behind its first one in turns; first words of a world differ. A turn without a verb at its start,
without ``END``, or with anything but names and relations between them, says nothing: the environment counts it as
malformed.

The worlds are those of matches of their own with at most four relations and without noise: of them the sentences are
known, and each passage is one fact with one object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from palaestra.core.contract.turn_tokens import BOS, END, FIRST_WORD, INFO, INFO_END, MARKS, PAD, VERBS, packed
from palaestra.game import Game
from palaestra.games.search.language import FRESH_STEMS, RELATIONS
from palaestra.games.search.library import PASSAGE_WORDS, QUESTION_WORDS, TOP, WORDS
from palaestra.games.search.turns import ANSWER as ANSWER_VERB
from palaestra.games.search.turns import NONE as NO_VERB
from palaestra.games.search.turns import SEARCH as SEARCH_VERB

SEARCH, ANSWER, UNUSED = VERBS
FIRST_RELATION = FIRST_WORD
FIRST_NAME = FIRST_RELATION + len(RELATIONS)
VOCABULARY = FIRST_NAME + FRESH_STEMS
TURN = 5
"""Most tokens of a turn."""
PASSAGES = 2 + 3 * TOP
"""Tokens of what a search finds."""
MOST_RELATIONS = 4
CONTEXT = 112
"""Most tokens of a match: a prefix of up to 16, a question over four hops, six turns and what five of them found."""


class NameTokens:
    """Translates between a batch's arrays and tokens, see `palaestra.core.contract.turn_tokens.TurnTokens`.

    Attributes:
        turn_size: Most tokens of a turn.
        first_name: Tokens from here on are the first words of names.

    What was read of names is an int64 array ``seconds [N, FRESH_STEMS]``, second words by first word, which its user
    keeps with the lanes.
    """

    vocabulary, turn_size, found_size, first_name = VOCABULARY, TURN, PASSAGES, FIRST_NAME
    special = MARKS

    def __init__(self, game: Game) -> None:
        """Looks at the rules; see above.

        Raises:
            ValueError: A world whose passages are not one fact each.
        """
        options, rules = game.world.options, game.world.rules
        noise = (options.aliases, options.near_duplicates, options.stale, options.contradicting)
        is_other = not rules.fresh or options.topk != TOP or options.compare or rules.judge or any(noise)
        if is_other or options.relations > MOST_RELATIONS:
            raise ValueError(
                f"{game.name}: the tiny model reads worlds of their own without noise, comparisons and judgements, "
                f"{TOP} passages of each search and at most {MOST_RELATIONS} relations: SearchQA-1Hop, -2Hop, -3Hop, "
                "-Bridge4"
            )
        self.turns, self.question_size = int(game.horizon or 0), 2 + options.hops[1]
        words = np.zeros(rules.first_stem + FRESH_STEMS, np.int64)
        words[game.world.language.relation_words] = FIRST_RELATION + np.arange(len(RELATIONS))
        words[rules.first_stem :] = FIRST_NAME + np.arange(FRESH_STEMS)
        self.token_of = words
        """Token of each word of the environment, 0 for words that are none."""
        self.word_of = np.zeros(VOCABULARY, np.int64)
        self.word_of[words[words > 0]] = np.flatnonzero(words)

    def new_memory(self, lanes: int) -> np.ndarray:
        """What is known of second words before anything was read."""
        return np.zeros((lanes, FRESH_STEMS), np.int64)

    # -- reading -------------------------------------------------------------------------------------------------------

    def questions(self, observations: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """The questions, int64 ``[N, question_size]``, paddings at their end.

        Args:
            observations: int32 ``[N, 126]`` of the token form.
            seconds: What is known of second words; those of the question are added.
        """
        words = observations[:, :QUESTION_WORDS].astype(np.int64)
        self._read_seconds(words, seconds)
        questions = np.full((len(words), self.question_size), BOS)
        questions[:, 1:] = packed(self.token_of[words], self.question_size - 1)
        return questions

    def passages(self, observations: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """What the last turn found, int64 ``[N, PASSAGES]``, paddings for passages that were not; see `questions`."""
        shown = observations[:, QUESTION_WORDS : QUESTION_WORDS + TOP * PASSAGE_WORDS].astype(np.int64)
        self._read_seconds(shown, seconds)
        tokens = self.token_of[shown].reshape(len(shown), TOP, PASSAGE_WORDS)
        subject = tokens[..., :1]  # a passage begins with its title
        is_name = (tokens >= FIRST_NAME) & (tokens != subject)
        relation = np.where(tokens < FIRST_NAME, tokens, PAD).max(-1, keepdims=True)
        thing = np.where(is_name, tokens, PAD).max(-1, keepdims=True)
        facts = np.concatenate([subject, relation, thing], -1).reshape(len(shown), -1)
        ends = np.full((len(shown), 1), INFO_END)
        return np.concatenate([np.full_like(ends, INFO), facts, ends], 1)

    def _read_seconds(self, words: np.ndarray, seconds: np.ndarray) -> None:
        rows, columns = np.nonzero(self.token_of[words] >= self.first_name)
        seconds[rows, self.token_of[words[rows, columns]] - self.first_name] = words[rows, columns + 1]

    def is_complete(self, turn: Sequence[int]) -> bool:
        """Whether the tokens of a turn are all of it."""
        return len(turn) == self.turn_size or turn[-1] == END

    # -- writing -------------------------------------------------------------------------------------------------------

    def actions(self, turns: np.ndarray, seconds: np.ndarray) -> np.ndarray:
        """Turns as the environment takes them, int64 ``[N, 1 + WORDS]``: a verb, and words with 0 between them.

        Args:
            turns: int64 ``[N, L]``, at most `TURN` tokens.
            seconds: What is known of second words.
        """
        actions = np.zeros((len(turns), 1 + WORDS), np.int64)
        content = turns[:, 1:]
        inside = (content != END).cumprod(1).astype(bool)
        fits = (~inside | (content >= FIRST_RELATION)).all(1) & ~inside.all(1)
        verbs = np.select([turns[:, 0] == SEARCH, turns[:, 0] == ANSWER], [SEARCH_VERB, ANSWER_VERB], NO_VERB)
        actions[:, 0] = np.where(fits, verbs, NO_VERB)
        said = np.where(inside & (actions[:, :1] != NO_VERB), content, PAD)
        is_name = said >= self.first_name
        actions[:, 1 : 1 + 2 * said.shape[1] : 2] = self.word_of[said]
        rows = np.arange(len(said))[:, None]
        known = seconds[rows, np.maximum(said - self.first_name, 0)]
        actions[:, 2 : 2 + 2 * said.shape[1] : 2] = np.where(is_name, known, 0)
        return actions

    # -- right turns ---------------------------------------------------------------------------------------------------

    def facts(self, records: Any) -> tuple[np.ndarray, np.ndarray]:
        """The facts that answer the questions of N matches.

        Returns:
            Subject, relation and object of each fact as tokens, int64 ``[N, most hops, 3]``, anything beyond the last
            one; and the number of facts, int64 ``[N, 1]``.
        """
        most, lanes = self.question_size - 2, np.arange(len(records))[:, None]
        gold = records["gold"][:, :most].astype(np.int64)
        names = self.token_of[records["name_words"][:, :, 0]]
        facts = [
            names[lanes, records["subject"][lanes, gold]],
            FIRST_RELATION + records["relation"][lanes, gold],
            names[lanes, records["objects"][lanes, gold, 0]],
        ]
        return np.stack(facts, -1), records["hops"].astype(np.int64)[:, None]

    def demonstration(self, records: Any, number: int) -> np.ndarray:
        """A search for each fact of the path, then the answer; int64 ``[N, turn_size]``, see `TurnTokens`."""
        facts, hops = self.facts(records)
        fact, turns = facts[:, min(number, facts.shape[1] - 1)], np.full((len(facts), self.turn_size), PAD)
        answers, ends = np.take_along_axis(facts[..., 2], hops - 1, 1)[:, 0], np.full(len(facts), END)
        search = np.stack([np.full_like(ends, SEARCH), fact[:, 0], fact[:, 1], ends], 1)
        answer = np.stack([np.full_like(ends, ANSWER), answers, ends, np.full_like(ends, PAD)], 1)
        turns[:, :4] = np.where(number < hops, search, np.where(number == hops, answer, PAD))
        return turns
