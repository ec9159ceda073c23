"""``form="text"`` of worlds that must be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from palaestra.game import Game
from palaestra.games.search.language import NOTHING
from palaestra.games.search.library import MOST_HOPS
from palaestra.games.search.reading_language import RELATIONS
from palaestra.games.search.reading_questions import EARLIER
from palaestra.games.search.reading_sources import text_of
from palaestra.games.search.reading_tokens import ReadingTokens
from palaestra.games.search.sources import Texts
from palaestra.games.search.turn_codec import (
    Told,
    TurnCodec,
    as_shown,
    fresh_answers,
    question_of,
    sentence_of,
    words_of,
)

NOUNS = tuple(relation.noun for some in RELATIONS for relation in some)


class ReadingCodec(TurnCodec):
    """Passages of several sentences, and the paths to them."""

    def _passages(self, documents: Sequence[int], row: Any) -> list[str]:
        """Numbers, titles and texts of what was found."""
        if self.texts.passages:
            return super()._passages(documents, row)
        found = row["passages"][: sum(number != NOTHING for number in documents)]
        passages = (text_of(self.texts.words, tokens).partition("\n") for tokens in found)
        return [f"Doc {k}{as_shown(title, text)}" for k, (title, _, text) in enumerate(passages, 1)]

    def turn_tokens(self, game: Game) -> ReadingTokens:
        """See `TurnCodec.turn_tokens`."""
        return ReadingTokens(game)

    def _told_of(self, world: Any, row: Any, record: Any) -> Told:
        """See `TurnCodec.info`."""
        if record is None:
            return sentence_of(words_of(self.texts, row["question"])), (), ()
        return question_of(self.texts, record), fresh_answers(self.texts, record), steps_of(self.texts, record)


def steps_of(texts: Texts, record: Any) -> tuple[tuple[str, str, str], ...]:
    """Name, relation, and what it leads to, of each passage that a question needs.

    Args:
        texts: The game's texts.
        record: A match record.
    """
    hops, first = int(record["hops"]), 2 if record["kind"] == EARLIER else 1
    names = [words_of(texts, node) for node in record["nodes"]]
    things = [*names[first:hops], names[MOST_HOPS]] if first == 1 else names[2:4]
    relations = [NOUNS[row] for row in record["relations"][:hops]]
    return tuple(zip(names[:hops], relations, things, strict=True))
