"""Exact arithmetic for learners of language: chains modulo 10 and linear equations, as tokens or as text.

The rules are in `palaestra.games.mathtext.math_text` (the page and the keywords) and
`palaestra.games.mathtext.math_rules`. Worked solutions and the scorer, which needs no environment::

    import palaestra
    from palaestra.games.mathtext import demonstrations, score_answer

    sim = palaestra.make_batch("palaestra/MathText-Arith-v1", 8)
    sim.reset(seed=0)
    demonstrations(sim.states)  # int64 [N, L], what the script `oracle` would write in each lane
    score_answer("4/6", {"question": "3x = 2", "answer": "2/3"})  # 1.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaestra.game import Family, Page, Preset, presets

if TYPE_CHECKING:
    from palaestra.games.mathtext.math_rules import demonstrations
    from palaestra.games.mathtext.score_numbers import score_answer

__all__ = ["FAMILY", "demonstrations", "score_answer"]

FAMILY = Family(
    "mathtext",
    rows=presets(
        "palaestra.games.mathtext.math_text:game",
        Preset("palaestra/MathText-Arith-v1", "chains of +, - and * modulo 10, products first", task="arith"),
        Preset(
            "palaestra/MathText-LeftToRight-v0", "the same chains, worked out from left to right", order="left_to_right"
        ),
        Preset("palaestra/MathText-Algebra-v0", "linear equations with one unknown, in fractions", task="algebra"),
        page=Page("MathText", "exact arithmetic with worked steps, as tokens or words"),
    ),
    order=7,
    speed=[
        ("palaestra/MathText-Arith-v1", "oracle", 500e3),
        ("palaestra/MathText-Arith-v1", "random", 500e3),
        ("palaestra/MathText-Algebra-v0", "oracle", 500e3),
    ],
)


def __getattr__(name: str) -> Any:
    """`demonstrations` and `score_answer`, imported when they are asked for."""
    if name == "demonstrations":
        from palaestra.games.mathtext.math_rules import demonstrations

        return demonstrations
    if name == "score_answer":
        from palaestra.games.mathtext.score_numbers import score_answer

        return score_answer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
