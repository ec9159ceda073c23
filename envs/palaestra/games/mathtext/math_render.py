"""Matches of MathText as pictures and as text. Nothing is hidden from the viewer.

On the left is the worked solution, the steps that the agent has said so far in blue; on the right what the last turn
said, below them the result.
"""

from __future__ import annotations

import functools
from typing import Any

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import BACKGROUND, MUTED, TEAMS, TEXT, Color
from palaestra.drawing.widgets import PADDING, Area, arrange, draw_panel, draw_rows
from palaestra.game import Game
from palaestra.games.mathtext.math_language import ANSWER, CLOSE, as_text
from palaestra.games.mathtext.math_rules import AT_START, KINDS

WIDTH, HEIGHT, MARGIN, GAP = 720, 480, 24, 16
"""Pixels; the gap is between panels."""
UPPER, LOWER, MIDDLE = 92, 400, 352
"""Upper and lower edge of the panels of solution and turn, and the right edge of the solution's."""
SIZE, PITCH = 15, 20
"""Of letters in panels; from one line to the next."""
DONE: Color = TEAMS[1]
WRONG: Color = TEAMS[0]
RIGHT: Color = (126, 222, 164)


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
    background_canvas, solution, turn = background()
    canvas = background_canvas.copy()
    canvas.text((MARGIN, 30), game.name, MUTED, 13)
    canvas.text((WIDTH - MARGIN, 30), status_of(s), MUTED, 13, "rs")
    question = as_text(s.question.tolist())
    size, lines = arrange(question, (26, 22, 18, 15), WIDTH - 2 * MARGIN, 36)
    canvas.text((WIDTH / 2, 70), " ".join(lines), TEXT, size, "ms")
    steps = [(step, DONE if is_done else MUTED) for step, is_done in solution_of(s)]
    draw_rows(canvas, solution, steps, SIZE, PITCH)
    said = [(line, MUTED if s.last_turn == AT_START else TEXT) for line in turn_of(s)]
    draw_rows(canvas, turn, said, SIZE, PITCH)
    color = MUTED if s.info.end_reason == 0 else RIGHT if s.info.exact_match else WRONG
    canvas.text((MARGIN + PADDING, LOWER + GAP + 30), result_of(game, s), color, 16)
    return canvas


@functools.cache
def background() -> tuple[Canvas, Area, Area]:
    """What is the same in all pictures, and the areas of the solution and of the last turn."""
    canvas = Canvas(WIDTH, HEIGHT, BACKGROUND)
    solution = draw_panel(canvas, (MARGIN, UPPER, MIDDLE, LOWER), "WORKED SOLUTION")
    turn = draw_panel(canvas, (MIDDLE + GAP, UPPER, WIDTH - MARGIN, LOWER), "LAST TURN")
    draw_panel(canvas, (MARGIN, LOWER + GAP, WIDTH - MARGIN, HEIGHT - GAP))
    return canvas, solution, turn


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
