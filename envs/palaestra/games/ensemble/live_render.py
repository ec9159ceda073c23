"""Matches of live experts as pictures and as text: prompt, answer, what is written, and the weights."""

from __future__ import annotations

from typing import Any

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import BACKGROUND, MUTED, TEXT
from palaestra.drawing.widgets import draw_text
from palaestra.game import Game
from palaestra.games.ensemble.ensemble_render import HEADER, LABELS, MARGIN, RIGHT, ROW, WIDTH, WRONG, draw_weights

BLOCK = 144
"""Height of a text with its title, pixels."""


def written_of(game: Game, s: Any) -> str:
    """The text that is written."""
    tokens = s.text[0].tokens[: int(s.text[0].length)].tolist()
    return b"".join([game.captions.tokens[token] for token in tokens]).decode("utf-8", "replace")


def status_of(game: Game, world: Any, s: Any) -> str:
    """How far the match is, and how it ended."""
    reason = game.end_reason(int(s.info.end_reason)).replace("_", " ")
    return f"span {int(s.steps)} of {world.spans}, {reason or 'running'}, right {float(s.info.right):.0%}"


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match.

    Args:
        game: The rules, as `palaestra.games.ensemble.live_game.live_game` makes them.
        world: Their arrays.
        s: The match record.

    Returns:
        760 pixels wide; for K experts 48 + 24 + 34 (K + 1) + 3 x 144 pixels high.
    """
    below = HEADER + LABELS + ROW * (len(s.weights) + 1)
    canvas = Canvas(WIDTH, below + 3 * BLOCK, BACKGROUND)
    canvas.text((MARGIN, 30), game.name, TEXT, 16)
    canvas.text((WIDTH - MARGIN, 30), status_of(game, world, s), MUTED, 13, "rs")
    draw_weights(canvas, s, HEADER)
    color = WRONG if game.end_reason(int(s.info.end_reason)) == "departed" else RIGHT
    number = int(s.text[0].prompt)
    rows = (game.captions.prompts[number], TEXT), (game.captions.answers[number], TEXT), (written_of(game, s), color)
    for row, (title, (text, shade)) in enumerate(zip(("prompt", "answer", "written"), rows, strict=True)):
        top = below + row * BLOCK
        canvas.text((MARGIN, top), title, MUTED, 12)
        draw_text(canvas, (MARGIN, top + 4, WIDTH - MARGIN, top + BLOCK - 28), text, (14,), shade)
    return canvas


def write(game: Game, world: Any, s: Any) -> str:
    """One match as text.

    Args:
        game: The rules, as `palaestra.games.ensemble.live_game.live_game` makes them.
        world: Their arrays.
        s: The match record.
    """
    number = int(s.text[0].prompt)
    weights = " ".join(f"{float(weight):.2f}" for weight in s.weights)
    return "\n".join(
        [
            status_of(game, world, s),
            f"prompt: {game.captions.prompts[number]!r}",
            f"answer: {game.captions.answers[number]!r}",
            f"written: {written_of(game, s)!r}",
            f"weights: {weights}",
        ]
    )
