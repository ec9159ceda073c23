"""Matches of Examiner as pictures and as text, in both phases. Nothing is hidden from the viewer.

The examiner's phase shows where it starts and what its last search found; then it is the picture of
`palaestra.games.search.search_render`: the path of the question, and what the student has found of it.
"""

from __future__ import annotations

from typing import Any

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import MUTED
from palaestra.drawing.widgets import HEADING
from palaestra.game import Game
from palaestra.games.search.examiner_turns import ASK, REFUSALS, VERBS
from palaestra.games.search.search_render import (
    BOX,
    FOUND,
    LOWER,
    NAMES,
    TITLES,
    UPPER,
    answer_of,
    color_of,
    cut,
    draw_box,
    draw_path,
    draw_turns,
    passages_of,
    steps_of,
    texts_of,
    turn_of,
    write_path,
    write_turns,
)
from palaestra.games.search.sources import Texts
from palaestra.games.search.turn_codec import name_of, question_of, words_of
from palaestra.games.search.turns import AT_START


def heading_of(texts: Texts, s: Any) -> str:
    """The question; before it was accepted, where the examiner starts."""
    return question_of(texts, s) if s.info.accepted else f"Start: {start_of(texts, s)}"


def start_of(texts: Texts, s: Any) -> str:
    """The name from which the examiner starts."""
    return name_of(texts, s.name_words, int(s.start))


def status_of(world: Any, s: Any) -> str:
    """Who is to move, its turns, and its words that are left."""
    taken = int(s.steps) - int(s.asked_at)
    agent, most = ("student", world.max_turns) if s.info.accepted else ("examiner", world.examiner_turns)
    return f"{agent}: turn {taken} of {most}, {int(s.words_left)} of {s.parameters.token_budget:.0f} words left"


def last_turn_of(texts: Texts, s: Any) -> tuple[str, str]:
    """The verb of the last turn and its words; both are empty before the first turn."""
    is_question = s.last_verb == AT_START if s.info.accepted else s.last_verb == ASK
    return (VERBS[ASK], words_of(texts, s.work.words)) if is_question else turn_of(texts, s)


def result_of(game: Game, s: Any) -> str:
    """How the match has ended."""
    reason = game.end_reason(int(s.info.end_reason)).replace("_", " ")
    if not reason:
        return "running"
    if not s.info.accepted:
        return ": ".join(filter(None, (reason, REFUSALS[s.info.refusal].replace("_", " "))))
    return f"{'right' if s.info.exact_match else 'wrong'} ({reason}), F1 {float(s.info.f1):.2f}"


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match.

    Args:
        game: The rules, as `palaestra.games.search.examiner.game` makes them.
        world: Their arrays.
        s: The match record.

    Returns:
        960 x 600 pixels.
    """
    texts = texts_of(game)
    passages, turn = passages_of(texts, world.library, s), last_turn_of(texts, s)
    canvas = draw_turns(game, s, heading_of(texts, s), status_of(world, s), passages, turn, result_of(game, s))
    if s.info.accepted:
        draw_path(canvas, steps_of(texts, world.library, s), int(s.kind), answer_of(texts, s), color_of(s))
    else:
        draw_start(canvas, start_of(texts, s), int(s.read.sum()))
    return canvas


def draw_start(canvas: Canvas, name: str, count: int) -> None:
    """In the place of the path: the name where the examiner starts, and how many passages it has read."""
    canvas.text((TITLES[1], UPPER + HEADING), f"{count} passages read", FOUND if count else MUTED, 12, "rs")
    top = (UPPER + LOWER - BOX) / 2
    draw_box(canvas, NAMES, top, name, FOUND)
    canvas.text((sum(NAMES) / 2, top + BOX + 16), "start", MUTED, 11, "ms")


def write(game: Game, world: Any, s: Any) -> str:
    """One match as text: question, whose turn it is, path, last turn, passages and result, in at most 15 lines.

    What the student has found of the path, and passages that the question needs, have a star.

    Args:
        game: The rules, as `palaestra.games.search.examiner.game` makes them.
        world: Their arrays.
        s: The match record.
    """
    texts = texts_of(game)
    steps = steps_of(texts, world.library, s)
    path = [*write_path(steps), f"right answer: {answer_of(texts, s)}"] if steps else []
    turns = write_turns(s, passages_of(texts, world.library, s), last_turn_of(texts, s), result_of(game, s))
    return "\n".join(map(cut, [heading_of(texts, s), status_of(world, s), *path, *turns]))
