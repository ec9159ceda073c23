"""The learning figures, each made by one command; an interrupted command resumes when it is run again.

    python benchmarks/learn.py             # all of them
    python benchmarks/learn.py tracking    # the inner loop: PPO against the tuned PID
    python benchmarks/learn.py fm3q_exact fm3q_limit fm3q_features team_learning  # see `learning.team_figures`
    python benchmarks/learn.py skirmish    # all whose names begin so: see `learning.skirmish_figures`
    python benchmarks/learn.py skirmish_solved skirmish_speed
    python benchmarks/learn.py pursuit     # likewise: see `learning.pursuit_figures`
    python benchmarks/learn.py search_turns  # turn rewards in text search

A figure trains the seeds that are missing under ``runs/``, evaluates every seed on the same matches, and writes
``docs/figures/<name>.png`` and ``.csv``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import tyro

from learning import (
    duel_figures,
    pursuit_figures,
    search_figures,
    skirmish_figures,
    team_figures,
    tracking_figures,
)
from learning.figures import FigureArgs

FIGURES: dict[str, Callable[[FigureArgs], None]] = {
    "tracking": tracking_figures.tracking,
    "fm3q_exact": team_figures.fm3q_exact,
    "fm3q_limit": team_figures.fm3q_limit,
    "fm3q_features": team_figures.fm3q_features,
    "team_learning": team_figures.team_learning,
    **{f"skirmish_{group}": partial(skirmish_figures.battle_figure, group) for group in skirmish_figures.GROUPS},
    "skirmish_scripts": skirmish_figures.skirmish_scripts,
    "skirmish_speed": skirmish_figures.skirmish_speed,
    "skirmish_duel": duel_figures.skirmish_duel,
    **{f"pursuit_{group}": partial(pursuit_figures.pursuit_figure, group) for group in pursuit_figures.GROUPS},
    "pursuit_references": pursuit_figures.pursuit_references,
    "search_turns": search_figures.search_turns,
}
"""Figure by name, in the order in which they are made."""


def main(argv: Sequence[str] | None = None) -> None:
    """Makes the named figures, or all; the first part of a name stands for all figures that begin with it."""
    args = tyro.cli(FigureArgs, args=argv, prog="python benchmarks/learn.py", description=__doc__)
    args.check()
    for name in chosen(args.names):
        FIGURES[name](args)


def chosen(names: Sequence[str]) -> list[str]:
    """Names of the figures that words stand for, each once, in the order in which they are given; all without a word.

    Raises:
        SystemExit: No such figure.
    """
    found: dict[str, None] = {} if names else dict.fromkeys(FIGURES)
    for word in names:
        meant = [name for name in FIGURES if name == word or name.startswith(f"{word}_")]
        if not meant:
            raise SystemExit(f"no figure {word!r}: choose from {', '.join(FIGURES)}")
        found |= dict.fromkeys(meant)
    return list(found)


if __name__ == "__main__":
    main()
