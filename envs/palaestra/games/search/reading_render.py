"""Matches in worlds that must be read as pictures and as text; see `palaestra.games.search.search_render`."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.drawing.canvas import Canvas
from palaestra.game import Game
from palaestra.games.search import reading_codec
from palaestra.games.search.language import HOPS, NOTHING, OLDER
from palaestra.games.search.library import MOST_HOPS
from palaestra.games.search.reading_questions import EARLIER
from palaestra.games.search.reading_sources import text_of
from palaestra.games.search.reading_world import TOKENS, write_passage
from palaestra.games.search.search_render import (
    Passage,
    Step,
    color_of,
    cut,
    draw_path,
    draw_turns,
    result_of,
    status_of,
    texts_of,
    turn_of,
    write_path,
    write_turns,
)
from palaestra.games.search.sources import Texts
from palaestra.games.search.turn_codec import passage_of, question_of, words_of


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match, 960 x 600 pixels.

    Args:
        game: The rules, as `palaestra.games.search.reading_qa.game` makes them.
        world: Their arrays.
        s: The match record.
    """
    texts = texts_of(game)
    passages = passages_of(texts, world, s)
    canvas = draw_turns(game, s, question_of(texts, s), status_of(s), passages, turn_of(texts, s), result_of(game, s))
    draw_path(canvas, steps_of(texts, s), OLDER if s.kind == EARLIER else HOPS, answer_of(texts, s), color_of(s))
    return canvas


def write(game: Game, world: Any, s: Any) -> str:
    """One match as text, in at most 22 lines; see `palaestra.games.search.search_render.write`."""
    texts = texts_of(game)
    path = [*write_path(steps_of(texts, s)), f"right answer: {answer_of(texts, s)}"]
    turns = write_turns(s, passages_of(texts, world, s), turn_of(texts, s), result_of(game, s))
    return "\n".join(map(cut, [question_of(texts, s), status_of(s), *path, *turns]))


def steps_of(texts: Texts, s: Any) -> list[Step]:
    """The passages that the question needs, in the order of its path."""
    return [Step(*step, bool(seen)) for step, seen in zip(reading_codec.steps_of(texts, s), s.seen, strict=False)]


def answer_of(texts: Texts, s: Any) -> str:
    """The right answer."""
    return words_of(texts, s.nodes[MOST_HOPS])


def passages_of(texts: Texts, world: Any, s: Any) -> list[Passage]:
    """What the last search found."""
    found, gold = [number for number in s.shown.tolist() if number != NOTHING], s.gold[: s.hops].tolist()
    if texts.passages:
        return [Passage(*passage_of(texts, number), number in gold) for number in found]
    passages, tokens = list[Passage](), np.zeros(TOKENS, np.int32)
    for number in found:
        write_passage(s, world, number, tokens)
        title, _, text = text_of(texts.words, tokens).partition("\n")
        passages.append(Passage(title, text, number in gold))
    return passages
