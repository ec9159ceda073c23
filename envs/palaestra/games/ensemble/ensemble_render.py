"""Matches of LLMEnsemble as pictures and as text: weights, the tokens of the last span, right tokens of all spans."""

from __future__ import annotations

from typing import Any

from palaestra.drawing.canvas import Canvas
from palaestra.drawing.colors import BACKGROUND, LINE, MUTED, PANEL, SIGNAL, TEAMS, TEXT, Color, blend
from palaestra.drawing.widgets import draw_bar
from palaestra.game import Game

WIDTH, MARGIN, HEADER = 760, 20, 48
ROW, BAR = 34, 20
"""Height of a row and of a bar, pixels."""
NAMES, BARS, CELLS = MARGIN + 90, 210, 420
"""Where bars begin, their length for a weight of 1, and where the cells of tokens begin, pixels."""
LABELS = 24
RIGHT, WRONG = TEAMS[1], TEAMS[0]


def draw(game: Game, world: Any, s: Any) -> Canvas:
    """Draws one match.

    Args:
        game: The rules, as `palaestra.games.ensemble.llm_ensemble.game` makes them.
        world: Their arrays.
        s: The match record.

    Returns:
        760 pixels wide; for K experts 48 + 2 (24 + 34 (K + 1)) + 40 pixels high.
    """
    experts = len(s.weights)
    block = LABELS + ROW * (experts + 1)
    canvas = Canvas(WIDTH, HEADER + 2 * block + 2 * MARGIN, BACKGROUND)
    canvas.text((MARGIN, 30), game.name, TEXT, 16)
    canvas.text((WIDTH - MARGIN, 30), status_of(game, world, s), MUTED, 13, "rs")
    draw_weights(canvas, s, HEADER)
    draw_tokens(canvas, world, s, HEADER)
    draw_history(canvas, world, s, HEADER + block + MARGIN)
    return canvas


def status_of(game: Game, world: Any, s: Any) -> str:
    """How far the match is, what its next span is about, how it ended."""
    written, reason = span_count(world, s), game.end_reason(int(s.info.end_reason))
    now = reason if reason else f"next domain {int(s.domain)}"
    return f"span {written} of {world.spans}, {now}, right {float(s.info.right):.0%}"


def span_count(world: Any, s: Any) -> int:
    """Spans that are written."""
    return int(s.tokens) // world.span_tokens


def row_names(s: Any) -> list[str]:
    """Experts, and the ensemble."""
    return [*(f"expert {k}" for k in range(len(s.weights))), "ensemble"]


def shares_of(s: Any) -> list[float]:
    """Shares of right tokens so far, of the experts and of the ensemble."""
    return [*map(float, s.info.expert_right), float(s.info.right)]


def token_rows(world: Any, s: Any) -> list[list[int]]:
    """Tokens of the last span, as the experts propose them and as they were written; empty before the first span."""
    tokens = range(world.span_tokens if s.tokens else 0)
    proposed = [[int(s.proposed[t, k]) for t in tokens] for k in range(len(s.weights))]
    return [*proposed, [int(s.written[t]) for t in tokens]]


def draw_weights(canvas: Canvas, s: Any, top: float) -> None:
    """A bar for the weight of each expert in the last span; before the first one they are empty."""
    canvas.text((NAMES, top + 14), "weights of the last span", MUTED, 12)
    for k, name in enumerate(row_names(s)):
        middle = top + LABELS + (k + 0.5) * ROW
        canvas.text((MARGIN, middle + 5), name, TEXT, 14)
        if k < len(s.weights):
            weight = float(s.weights[k]) if s.tokens else 0.0
            bar = (NAMES, middle - BAR / 2, NAMES + BARS, middle + BAR / 2)
            draw_bar(canvas, bar, weight, SIGNAL, back=PANEL, radius=3)
            canvas.text((NAMES + BARS + 8, middle + 5), f"{weight:.2f}", TEXT, 13)


def draw_tokens(canvas: Canvas, world: Any, s: Any, top: float) -> None:
    """Tokens of the last span: blue where they are right, red where they are wrong."""
    wanted = [int(token) for token in s.wanted[: world.span_tokens]]
    canvas.text((CELLS, top + 14), "its tokens: blue is right, red is wrong", MUTED, 12)
    width = min(60.0, (WIDTH - MARGIN - CELLS) / world.span_tokens)
    for row, tokens in enumerate(token_rows(world, s)):
        for t, token in enumerate(tokens):
            left, upper = CELLS + t * width, top + LABELS + row * ROW + 4
            color = RIGHT if token == wanted[t] else WRONG
            canvas.rectangle(left, upper, left + width - 3, upper + ROW - 8, blend(PANEL, color, 0.75), 3)
            if width > 24:
                canvas.text((left + width / 2 - 1, upper + ROW / 2 + 1), str(token), TEXT, 12, "ms")


def draw_history(canvas: Canvas, world: Any, s: Any, top: float) -> None:
    """A cell for each span of each expert and of the ensemble, the bluer the more of its tokens are right."""
    written, share = span_count(world, s), shares_of(s)
    canvas.text((NAMES, top + 14), "right tokens of each span", MUTED, 12)
    width = min(60.0, (WIDTH - MARGIN - 50 - NAMES) / world.spans)
    for row, name in enumerate(row_names(s)):
        upper = top + LABELS + row * ROW + 4
        canvas.text((MARGIN, upper + ROW / 2 + 1), name, TEXT, 14)
        canvas.text((WIDTH - MARGIN, upper + ROW / 2 + 1), f"{share[row]:.0%}" if written else "", TEXT, 14, "rs")
        for span in range(world.spans):
            left = NAMES + span * width
            canvas.rectangle(left, upper, left + width - 3, upper + ROW - 8, cell_color(world, s, span, row), 3)
            if span < written and width > 24:
                count = str(int(s.history[span, row]))
                canvas.text((left + width / 2 - 1, upper + ROW / 2 + 1), count, TEXT, 12, "ms")


def cell_color(world: Any, s: Any, span: int, row: int) -> Color:
    """Of a span that is not written: that of lines; else from red to blue."""
    if span >= span_count(world, s):
        return blend(BACKGROUND, LINE, 0.5)
    return blend(PANEL, blend(WRONG, RIGHT, int(s.history[span, row]) / world.span_tokens), 0.75)


def write(game: Game, world: Any, s: Any) -> str:
    """One match as text: of each expert and the ensemble its weight, share of right tokens, and those of the last span.

    Right tokens have a star.

    Args:
        game: The rules, as `palaestra.games.ensemble.llm_ensemble.game` makes them.
        world: Their arrays.
        s: The match record.
    """
    lines = [status_of(game, world, s)]
    for k, (name, tokens, share) in enumerate(zip(row_names(s), token_rows(world, s), shares_of(s), strict=True)):
        weight = f"weight {float(s.weights[k]):.2f}" if k < len(s.weights) and s.tokens else " " * 11
        shown = " ".join(f"{token}{'*' if token == s.wanted[t] else ' '}" for t, token in enumerate(tokens))
        lines.append(f"{name:9} {weight:11}  right {share:4.0%}  {shown}".rstrip())
    return "\n".join(lines)
