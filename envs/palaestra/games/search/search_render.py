"""Matches of a text search game as pictures and as text. Nothing is hidden from the viewer.

On the left is the path of facts that the question needs: what was found is blue, the rest is hollow, and the right
answer stands at its end, hollow until the match is over. On the right are the passages of the last search, those that
the question needs with a blue edge. Below are the last turn and the result.
"""

from __future__ import annotations

import functools
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, TEAMS, TEXT, Color, blend
from palaestra.drawing.widgets import ELLIPSIS, HEADING, PADDING, Area, draw_panel, draw_text, fit, length_of
from palaestra.game import Game
from palaestra.games.search.fresh_world import write_passage
from palaestra.games.search.language import GIVEN, HOPS, NOTHING, RELATIONS, SAME
from palaestra.games.search.library import MOST_HOPS, PASSAGE_WORDS, TOP
from palaestra.games.search.sources import Texts
from palaestra.games.search.turn_codec import fresh_passage, name_of, passage_of, question_of, words_of
from palaestra.games.search.turns import AT_START, NONE, SEARCH, TOO_LONG, VERBS

WIDTH, HEIGHT, MARGIN, GAP = 960, 600, 24, 16
"""Pixels; the gap is between panels."""
UPPER, LOWER, MIDDLE = 122, 496, 424
"""Upper and lower edge of the panels of path and passages, right edge of the path's."""
FOOTER, RESULT = LOWER + GAP, 664
"""Upper edge of the panel of the last turn, left edge of the result in it."""
BOX, NAME, FACT, PITCH, CAPTION = 32, 240, 130, 88, 20
"""Height of a box; its width with a name, and in a row; most from a box to the next; room below the last one."""
FRAME, ROW_PITCH = 12, 60
"""Around the rows of a comparison; from one row to the next."""
TITLES = (MARGIN + PADDING, MIDDLE - PADDING)
NAMES = (sum(TITLES) / 2 - NAME / 2, sum(TITLES) / 2 + NAME / 2)
"""Left and right edges of boxes with a title, with a name."""
FOUND: Color = TEAMS[1]
WRONG: Color = TEAMS[0]
RIGHT: Color = (126, 222, 164)
CARD: Color = blend(PANEL, LINE, 0.45)
LONGEST_LINE = 120
"""Characters of a line of the text form."""

PANELS: tuple[Area, ...] = (
    (MARGIN, UPPER, MIDDLE, LOWER),
    (MIDDLE + GAP, UPPER, WIDTH - MARGIN, LOWER),
    (MARGIN, FOOTER, WIDTH - MARGIN, HEIGHT - GAP),
)
"""Path, passages, last turn."""


class Step(NamedTuple):
    """A passage that the question needs.

    Attributes:
        subject: Name of the entity that it is about; its title in a file's world.
        relation: Empty in a file's world.
        thing: What the relation leads to; empty in a file's world.
        is_found: Whether a search found it.
    """

    subject: str
    relation: str
    thing: str
    is_found: bool


class Passage(NamedTuple):
    """A passage that the last search found.

    Attributes:
        title: May be empty.
        text: What follows.
        is_needed: Whether the question needs it.
    """

    title: str
    text: str
    is_needed: bool


# ------------------------------------------------------------------------------------------------------ what is shown


def texts_of(game: Game) -> Texts:
    """The words of a game of `palaestra.games.search.search_qa`."""
    return game.captions


def steps_of(texts: Texts, world: Any, s: Any) -> list[Step]:
    """The passages that the question needs, in the order of its path."""
    gold, is_found = s.gold[: s.hops].tolist(), s.seen[: s.hops].astype(bool).tolist()
    if s.kind == GIVEN:
        titles = [title or text for title, text in (passage_of(texts, passage) for passage in gold)]
        return [Step(title, "", "", flag) for title, flag in zip(titles, is_found, strict=True)]
    names, objects = (s.name_words, s.objects) if world.rules.fresh else (world.facts.names, world.facts.objects)
    return [
        Step(
            name_of(texts, names, int(s.nodes[hop])),
            RELATIONS[s.relations[hop]].noun,
            name_of(texts, names, int(objects[passage, 0])),
            is_found[hop],
        )
        for hop, passage in enumerate(gold)
    ]


def answer_of(texts: Texts, s: Any) -> str:
    """The right answer; the first one if there are several."""
    return texts.answers[s.number][0] if texts.answers else name_of(texts, s.name_words, int(s.nodes[MOST_HOPS]))


def passages_of(texts: Texts, world: Any, s: Any) -> list[Passage]:
    """What the last search found."""
    found, gold = [passage for passage in s.shown.tolist() if passage != NOTHING], s.gold[: s.hops].tolist()
    if not world.rules.fresh:
        return [Passage(*passage_of(texts, passage), passage in gold) for passage in found]
    passages, tokens = list[Passage](), np.zeros(PASSAGE_WORDS, np.int32)
    for passage in found:
        write_passage(s, world, passage, tokens)
        passages.append(Passage(*fresh_passage(texts, tokens), passage in gold))
    return passages


def turn_of(texts: Texts, s: Any) -> tuple[str, str]:
    """The verb of the last turn and its words; both are empty before the first turn."""
    if s.last_verb == AT_START:
        return "", ""
    if s.last_verb == NONE:
        return "nothing", "neither a query nor an answer"
    if s.last_verb == TOO_LONG:
        return "nothing", "a query of too many words"
    return VERBS[s.last_verb], words_of(texts, s.work.words)


def status_of(s: Any) -> str:
    """Turns that were taken, and words that are left."""
    words = f"{int(s.words_left)} of {s.parameters.token_budget:.0f} words left"
    return f"turn {int(s.steps)} of {s.parameters.horizon:.0f}, {words}"


def result_of(game: Game, s: Any) -> str:
    """How the match has ended."""
    reason = game.end_reason(int(s.info.end_reason)).replace("_", " ")
    if not reason:
        return "running"
    return f"{'right' if s.info.exact_match else 'wrong'} ({reason}), F1 {float(s.info.f1):.2f}"


def no_passages(s: Any) -> str:
    """What stands in the place of passages."""
    return "No passage was found." if s.last_verb == SEARCH else "Nothing was found yet."


# ------------------------------------------------------------------------------------------------------------- picture


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match.

    Args:
        game: The rules, as `palaestra.games.search.search_qa.game` makes them.
        world: Their arrays.
        s: The match record.

    Returns:
        960 x 600 pixels.
    """
    texts = texts_of(game)
    passages = passages_of(texts, world, s)
    canvas = draw_turns(game, s, question_of(texts, s), status_of(s), passages, turn_of(texts, s), result_of(game, s))
    draw_path(canvas, steps_of(texts, world, s), int(s.kind), answer_of(texts, s), color_of(s))
    return canvas


def color_of(s: Any) -> Color:
    """Of the result: muted while the match is running."""
    return MUTED if s.info.end_reason == 0 else RIGHT if s.info.exact_match else WRONG


def draw_turns(
    game: Game, s: Any, heading: str, status: str, passages: list[Passage], turn: tuple[str, str], result: str
) -> Canvas:
    """Draws all but the path."""
    canvas = background(len(passages)).copy()
    canvas.text((MARGIN, 30), game.name, MUTED, 13)
    canvas.text((WIDTH - MARGIN, 30), status, MUTED, 13, "rs")
    draw_text(canvas, (MARGIN, 40, WIDTH - MARGIN, UPPER - 8), heading, (22, 19, 16), is_centered=True)
    draw_passages(canvas, passages, no_passages(s))
    draw_turn(canvas, *turn, int(s.info.turn_label))
    below = (RESULT, FOOTER + HEADING + 4, WIDTH - MARGIN - PADDING, HEIGHT - GAP - 4)
    draw_text(canvas, below, result, (16, 13), color_of(s), is_centered=True)
    return canvas


@functools.cache
def background(cards: int) -> Canvas:
    """What is the same in all pictures with so many passages."""
    canvas = Canvas(WIDTH, HEIGHT, BACKGROUND)
    for panel, title in zip(PANELS, ("PATH", "PASSAGES OF THE LAST SEARCH", "LAST TURN"), strict=True):
        draw_panel(canvas, panel, title)
    for number in range(cards):
        canvas.rectangle(*card(number, cards), CARD, 6)
    canvas.text((RESULT, FOOTER + HEADING), "RESULT", MUTED, 11)
    return canvas


def draw_path(canvas: Canvas, steps: list[Step], kind: int, answer: str, color: Color) -> None:
    """What the question needs, and below it the right answer, which is muted while the match is running."""
    found, count, is_chain = sum(step.is_found for step in steps), len(steps), kind in (HOPS, GIVEN)
    told = f"{found} of {count} found" if steps else "not given"
    canvas.text((TITLES[1], UPPER + HEADING), told, FOUND if found else MUTED, 12, "rs")
    first, last = UPPER + HEADING + 14, LOWER - PADDING - CAPTION - BOX
    pitches = [min((last - first) / count, PITCH)] * count if is_chain and steps else [ROW_PITCH, PITCH + FRAME][:count]
    tops = list(accumulate(pitches, initial=(first + last - sum(pitches)) / 2))
    if is_chain:
        draw_chain(canvas, steps, tops, kind == GIVEN)
    else:
        draw_rows(canvas, steps, tops, kind)
    draw_box(canvas, TITLES if kind == GIVEN else NAMES, tops[-1], answer, color)
    caption = {MUTED: "right answer", RIGHT: "answered", WRONG: "missed"}[color]
    canvas.text((sum(NAMES) / 2, tops[-1] + BOX + 16), caption, color, 11, "ms")


def draw_chain(canvas: Canvas, steps: list[Step], tops: list[float], is_titles: bool) -> None:
    """Entities with relations between them, or titles. The question names the first entity: it is always blue."""
    is_known = True
    for step, top, below in zip(steps, tops, tops[1:], strict=False):
        is_known = step.is_found if is_titles else is_known
        draw_box(canvas, TITLES if is_titles else NAMES, top, step.subject, FOUND if is_known else MUTED)
        draw_arrow(canvas, (top + BOX, below), step.relation, step.is_found)
        is_known = step.is_found


def draw_rows(canvas: Canvas, steps: list[Step], tops: list[float], kind: int) -> None:
    """What a comparison needs of each entity: entity, relation and what it leads to, side by side in a frame."""
    (left, right), edge = TITLES, tops[len(steps) - 1] + BOX + FRAME
    canvas.rectangle(left, tops[0] - FRAME, right, edge, LINE, 12)
    canvas.rectangle(left + 1, tops[0] - FRAME + 1, right - 1, edge - 1, PANEL, 11)
    for step, top in zip(steps, tops, strict=False):
        start, end, middle = left + FRAME + FACT, right - FRAME - FACT, top + BOX / 2
        color = FOUND if step.is_found else LINE
        draw_box(canvas, (start - FACT, start), top, step.subject, FOUND)
        draw_box(canvas, (end, end + FACT), top, step.thing, FOUND if step.is_found else MUTED)
        canvas.line([(start + 4, middle), (end - 8, middle)], color, 2)
        canvas.polygon([(end - 11, middle - 5), (end - 11, middle + 5), (end - 4, middle)], color)
        canvas.text(((start + end) / 2, middle - 6), step.relation, TEXT if step.is_found else MUTED, 12, "ms")
    asked = f"same {steps[0].relation}?" if kind == SAME else f"earlier {steps[0].relation}?"
    draw_arrow(canvas, (edge, tops[-1]), asked, all(step.is_found for step in steps))


def draw_box(canvas: Canvas, sides: tuple[float, float], top: float, words: str, color: Color) -> None:
    """A box with a name: filled with a shade of its colour, hollow if that is `MUTED`."""
    (left, right), is_hollow = sides, color == MUTED
    canvas.rectangle(left, top, right, top + BOX, LINE if is_hollow else color, 8)
    inside = PANEL if is_hollow else blend(PANEL, color, 0.25)
    canvas.rectangle(left + 1.5, top + 1.5, right - 1.5, top + BOX - 1.5, inside, 7)
    shown = fit(words, 14, right - left - PADDING)
    canvas.text(((left + right) / 2, top + 21), shown, MUTED if is_hollow else TEXT, 14, "ms")


def draw_arrow(canvas: Canvas, ends: tuple[float, float], words: str, is_found: bool) -> None:
    """An arrow down the middle of the path, with words beside it."""
    (top, bottom), x, color = ends, sum(NAMES) / 2, FOUND if is_found else LINE
    canvas.line([(x, top + 4), (x, bottom - 8)], color, 2)
    canvas.polygon([(x - 5, bottom - 11), (x + 5, bottom - 11), (x, bottom - 4)], color)
    canvas.text((x + 14, (top + bottom) / 2 + 3), words, TEXT if is_found else MUTED, 13)


def draw_passages(canvas: Canvas, passages: list[Passage], none: str) -> None:
    """What stands on the cards, the best passage first."""
    if not passages:
        canvas.text(((MIDDLE + GAP + WIDTH - MARGIN) / 2, (UPPER + LOWER) / 2), none, MUTED, 14, "ms")
    for number, passage in enumerate(passages):
        left, top, right, bottom = card(number, len(passages))
        title_width = right - left - 2 * PADDING
        if passage.is_needed:
            canvas.rectangle(left, top, left + 5, bottom, FOUND, 2)
            canvas.text((right - PADDING, top + 22), "needed", FOUND, 12, "rs")
            title_width -= 60
        title = fit(passage.title, 15, title_width)
        for x in (left + PADDING, left + PADDING + 1):  # bold: the typeface has one weight
            canvas.text((x, top + 22), title, TEXT, 15)
        area = (left + PADDING, top + 28 if title else top + 6, right - PADDING, bottom - 2)
        draw_text(canvas, area, passage.text, (15, 13), blend(MUTED, TEXT, 0.55))


def card(number: int, count: int) -> Area:
    """Where one of ``count`` passages of the last search stands."""
    first = UPPER + HEADING + 12
    pitch = (LOWER - 4 - first) / max(count, TOP)
    top = first + number * pitch
    return MIDDLE + GAP + PADDING, top, WIDTH - MARGIN - PADDING, top + pitch - 10


def draw_turn(canvas: Canvas, verb: str, words: str, label: int) -> None:
    """The verb in a box, its words beside it, and whether the turn was of use; nothing is said of that for label 0."""
    left, right, middle = MARGIN + PADDING, RESULT - 2 * PADDING, (FOOTER + HEADING + HEIGHT - GAP) / 2
    if not verb:
        canvas.text((left, middle + 5), "no turn was taken yet", MUTED, 16)
        return
    told, color = ("of use", FOUND) if label > 0 else ("of no use" if label else "", MUTED)
    canvas.text((right, FOOTER + HEADING), told, color, 12, "rs")
    width = length_of(verb, 14) + PADDING
    canvas.rectangle(left, middle - 12, left + width, middle + 12, LINE, 6)
    canvas.text((left + width / 2, middle + 5), verb, TEXT, 14, "ms")
    area = (left + width + 10, FOOTER + HEADING + 4, right, HEIGHT - GAP - 4)
    draw_text(canvas, area, words, (16, 14, 12), TEXT, is_centered=True)


# ---------------------------------------------------------------------------------------------------------------- text


def write(game: Game, world: Any, s: Any) -> str:
    """One match as text: question, path, last turn, passages and result, in at most 15 lines.

    What was found of the path, and passages that the question needs, have a star.

    Args:
        game: The rules, as `palaestra.games.search.search_qa.game` makes them.
        world: Their arrays.
        s: The match record.
    """
    texts = texts_of(game)
    path = [*write_path(steps_of(texts, world, s)), f"right answer: {answer_of(texts, s)}"]
    turns = write_turns(s, passages_of(texts, world, s), turn_of(texts, s), result_of(game, s))
    return "\n".join(map(cut, [question_of(texts, s), status_of(s), *path, *turns]))


def write_path(steps: list[Step]) -> list[str]:
    """A line for each passage that the question needs."""
    return ["path:", *(f"  {'*' if step.is_found else '-'} {' - '.join(filter(None, step[:3]))}" for step in steps)]


def write_turns(s: Any, passages: list[Passage], turn: tuple[str, str], result: str) -> list[str]:
    """Lines of the last turn, of the passages and of the result."""
    found = [(p.is_needed, ": ".join(filter(None, p[:2]))) for p in passages] or [(False, no_passages(s))]
    return [
        f"last turn: {' '.join(turn)}" if turn[0] else "last turn: none",
        "passages of the last search:",
        *(f"  {'*' if is_needed else '-'} {passage}" for is_needed, passage in found),
        f"result: {result}",
    ]


def cut(line: str) -> str:
    """A line of at most `LONGEST_LINE` characters, without line breaks."""
    indent = line[: len(line) - len(line.lstrip())]
    line = indent + " ".join(line.split())
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - len(ELLIPSIS)] + ELLIPSIS
