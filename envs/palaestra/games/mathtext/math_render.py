"""Matches of MathText as pictures and as text. Nothing is hidden from the viewer.

On the left is the worked solution, the steps that the agent has said so far in blue; on the right what the last turn
said, below them the result.
"""

from __future__ import annotations

import functools
from typing import Any

from palaestra.drawing.canvas import Canvas, font
from palaestra.drawing.colors import BACKGROUND, MUTED, PANEL, TEAMS, TEXT, Color
from palaestra.game import Game
from palaestra.games.mathtext.math_language import ANSWER, CLOSE, as_text
from palaestra.games.mathtext.math_rules import AT_START, KINDS

WIDTH, HEIGHT, MARGIN, PADDING, GAP = 720, 480, 24, 16, 16
"""Pixels; the padding is within panels, the gap between them."""
UPPER, LOWER, MIDDLE = 92, 400, 352
"""Upper and lower edge of the panels of solution and turn, and the right edge of the solution's."""
HEADING, ROW = 26, 20
"""From the upper edge of a panel to the base line of its heading; from one line to the next."""
MOST_ROWS = (LOWER - UPPER - HEADING - PADDING) // ROW
SIZE = 15
DONE: Color = TEAMS[1]
WRONG: Color = TEAMS[0]
RIGHT: Color = (126, 222, 164)
ELLIPSIS = "..."


def steps_of(tokens: list[int]) -> list[str]:
    """The steps of a turn, and what follows them, as text."""
    found, start = list[str](), 0
    for k, token in enumerate(tokens):
        if token in (CLOSE, ANSWER):
            end = k + (token == CLOSE)
            found += [as_text(tokens[start:end])] if end > start else []
            start = end
    rest = as_text(tokens[start:])
    return [*found, rest] if rest else found


def solution_of(s: Any) -> list[tuple[str, bool]]:
    """The steps of the worked solution with its answer, and whether the agent has said each of them."""
    steps = steps_of(s.solution.tolist())
    done = [k < s.info.right_steps for k in range(len(steps) - 1)]
    return list(zip(steps, [*done, bool(s.info.exact_match)], strict=True))


def status_of(s: Any) -> str:
    """Turns that were taken."""
    return f"turn {int(s.steps)} of {s.parameters.horizon:.0f}"


def turn_of(s: Any) -> list[str]:
    """What the last turn said, step by step."""
    if s.last_turn == AT_START:
        return ["no turn was taken yet"]
    return steps_of(s.said.tolist()) or ["nothing"]


def result_of(game: Game, s: Any) -> str:
    """How the match has ended."""
    reason = game.end_reason(int(s.info.end_reason)).replace("_", " ")
    return f"{'right' if s.info.exact_match else 'wrong'} ({reason})" if reason else "running"


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match.

    Args:
        game: The rules, as `palaestra.games.mathtext.math_text.game` makes them.
        world: Their numbers.
        s: The match record.

    Returns:
        720 x 480 pixels.
    """
    canvas = background().copy()
    canvas.text((MARGIN, 30), game.name, MUTED, 13)
    canvas.text((WIDTH - MARGIN, 30), status_of(s), MUTED, 13, "rs")
    question = as_text(s.question.tolist())
    size = next((size for size in (26, 22, 18) if length_of(question, size) <= WIDTH - 2 * MARGIN), 15)
    canvas.text((WIDTH / 2, 70), question, TEXT, size, "ms")
    width = MIDDLE - MARGIN - 2 * PADDING
    for row, (step, is_done) in enumerate(solution_of(s)):
        write_row(canvas, MARGIN + PADDING, row, fit(step, width), DONE if is_done else MUTED)
    for row, line in enumerate(rows_of(turn_of(s), WIDTH - MARGIN - MIDDLE - GAP - 2 * PADDING)):
        write_row(canvas, MIDDLE + GAP + PADDING, row, line, MUTED if s.last_turn == AT_START else TEXT)
    color = MUTED if s.info.end_reason == 0 else RIGHT if s.info.exact_match else WRONG
    canvas.text((MARGIN + PADDING, LOWER + GAP + 30), result_of(game, s), color, 16)
    return canvas


@functools.cache
def background() -> Canvas:
    """What is the same in all pictures."""
    canvas = Canvas(WIDTH, HEIGHT, BACKGROUND)
    canvas.rectangle(MARGIN, UPPER, MIDDLE, LOWER, PANEL, 10)
    canvas.rectangle(MIDDLE + GAP, UPPER, WIDTH - MARGIN, LOWER, PANEL, 10)
    canvas.rectangle(MARGIN, LOWER + GAP, WIDTH - MARGIN, HEIGHT - GAP, PANEL, 10)
    canvas.text((MARGIN + PADDING, UPPER + HEADING), "WORKED SOLUTION", MUTED, 11)
    canvas.text((MIDDLE + GAP + PADDING, UPPER + HEADING), "LAST TURN", MUTED, 11)
    return canvas


def write_row(canvas: Canvas, left: float, row: int, words: str, color: Color) -> None:
    """Writes a line of a panel."""
    canvas.text((left, UPPER + HEADING + 4 + ROW * (row + 1)), words, color, SIZE)


def rows_of(lines: list[str], width: float) -> list[str]:
    """Lines that fit into a panel; the last one tells of those that do not."""
    shown = [fit(line, width) for line in lines[:MOST_ROWS]]
    return [*shown[:-1], ELLIPSIS] if len(lines) > MOST_ROWS else shown


def fit(words: str, width: float) -> str:
    """Words on one line, with an ellipsis where they are cut."""
    if length_of(words, SIZE) <= width:
        return words
    while words and length_of(words + ELLIPSIS, SIZE) > width:
        words = words[:-1]
    return words + ELLIPSIS


@functools.lru_cache(maxsize=4096)
def length_of(words: str, size: int) -> float:
    """Length of letters in pixels."""
    return font(size).getlength(words)


def write(game: Game, world: Any, s: Any) -> str:
    """One match as text: question, worked solution, last turn and result.

    Steps of the solution that the agent has said have a star.

    Args:
        game: The rules, as `palaestra.games.mathtext.math_text.game` makes them.
        world: Their numbers.
        s: The match record.
    """
    said = " ".join(turn_of(s)) if s.last_turn != AT_START else "none"
    lines = [
        as_text(s.question.tolist()),
        status_of(s),
        "worked solution:",
        *(f"  {'*' if is_done else '-'} {step}" for step, is_done in solution_of(s)),
        f"last turn ({KINDS[s.last_turn].replace('_', ' ')}): {said}",
        f"result: {result_of(game, s)}",
    ]
    return "\n".join(lines)
