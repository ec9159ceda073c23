"""The learning figures, each made by one command; an interrupted command resumes when it is run again.

    python benchmarks/learn.py             # all of them
    python benchmarks/learn.py tracking    # the inner loop: PPO against the tuned PID
    python benchmarks/learn.py fm3q_exact fm3q_limit fm3q_features team_learning  # see `learning.team_figures`
    python benchmarks/learn.py skirmish    # all whose names begin so: see `learning.skirmish_figures`
    python benchmarks/learn.py skirmish_solved skirmish_speed
    python benchmarks/learn.py pursuit     # likewise: see `learning.pursuit_figures`
    python benchmarks/learn.py pursuit_arms --seeds 5  # of these, the parts of ARAC one at a time
    python benchmarks/learn.py search_turns  # turn rewards in text search
    python benchmarks/learn.py text          # tiny language models: see `learning.text_figures`
    python benchmarks/learn.py text_reading  # of these, the longest one: worlds that must be read
    python benchmarks/learn.py real_model    # a pretrained model, half an hour of a core: see `learning.real_figures`
    python benchmarks/learn.py text_distil   # of these, distillation and SRFT: see `learning.distil_figures`
    python benchmarks/learn.py rlae --seeds 8  # ensembles of language models: see `learning.rlae_figures`
    python benchmarks/learn.py rlae_hidden     # the same where the domain is hidden
    python benchmarks/learn.py seqwm       # sequential world models: see `learning.seqwm_figures`
    python benchmarks/learn.py poisson     # ordered discrete actions: see `learning.poisson_figures`
    python benchmarks/learn.py humanoid    # of these, the longest one, which `poisson` leaves out
    python benchmarks/learn.py nvif        # messages of neighbours: see `learning.nvif_figures`
    python benchmarks/learn.py ucav        # a pilot that hunts, and a league: see `learning.ucav_pursuit_figures`
    python benchmarks/learn.py ucav_league --seeds 2  # pilots by self-play: see `learning.hierarchy_figures`
    python benchmarks/learn.py concert     # orders with masks: see `learning.concert_figures`
    python benchmarks/learn.py dipllm      # policies of joint orders: see `learning.dipllm_figures`
    python benchmarks/learn.py sparse      # sparse rewards of teams: see `learning.sparse_figures`
    python benchmarks/learn.py mates held_out_policy adversary  # who was never met: see `learning.robust_figures`
    python benchmarks/learn.py meta        # families of tasks, offline: see `learning.meta_figures`
    python benchmarks/learn.py skirmish --ray auto --workers 0  # the runs are trained by a Ray cluster
    python benchmarks/learn.py --redraw    # pictures and tables of claims again, from tables alone; names may be given

A figure trains the seeds that are missing under ``runs/``, evaluates every seed on the same matches, and writes
``docs/figures/<name>.csv``. Its picture, ``.png`` and ``.svg``, is drawn from this table, see `learning.drawing`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence

from learning import skirmish_methods
from learning.figures import FigureArgs
from learning.study import Figure, Study
from palaestra.cli.typed_arguments import read_arguments

MODULES = (
    *(
        "tracking",
        "team",
        "skirmish",
        "robust",
        "duel",
        "pursuit",
        "search",
        "text",
        "distil",
        "rlae",
        "dipllm",
        "seqwm",
    ),
    *("poisson", "nvif", "ucav_pursuit", "hierarchy", "concert", "sparse", "meta", "real"),
)
"""First words of the files of `learning` that hold figures, in the order in which these are made."""
ALL: dict[str, Study | Figure] = {
    figure.name: figure
    for module in MODULES
    for figure in importlib.import_module(f"learning.{module}_figures").FIGURES
}
ALL["skirmish_methods"] = Figure("skirmish_methods", skirmish_methods.skirmish_methods)
FIGURES = {name: figure for name, figure in ALL.items() if figure.make is not None}
"""Figures that have a command by name, in the order in which they are made; `real_model` needs packages of its own."""
PICTURES = {name: figure for name, figure in ALL.items() if figure.panels is not None and figure.is_kept}
"""Figures whose picture is drawn from their table."""
TABLES = {name: figure for name, figure in ALL.items() if isinstance(figure, Figure) and figure.claims is not None}
"""Tables of claims that are made from the other tables of their figure."""


def main(argv: Sequence[str] | None = None) -> None:
    """Makes the named figures, or all; the first part of a name stands for all figures that begin with it."""
    args = read_arguments(FigureArgs, argv, "python benchmarks/learn.py", __doc__)
    args.check()
    if args.redraw:
        for name in chosen(args.names, {**PICTURES, **TABLES}):
            ALL[name].draw(args.figures)
        return
    for name in chosen(args.names, FIGURES):
        FIGURES[name].make(args)  # type: ignore[misc]


def chosen(names: Sequence[str], among: Iterable[str] = FIGURES) -> list[str]:
    """Names of the figures that words stand for, each once, in the order in which they are given; all without a word.

    Args:
        names: The words.
        among: Figures by name: `FIGURES`, or those that have `PICTURES`.

    Raises:
        SystemExit: No such figure.
    """
    found: dict[str, None] = {} if names else dict.fromkeys(among)
    for word in names:
        meant = [name for name in among if name == word or name.startswith(f"{word}_")]
        if not meant:
            what = "figure" if word not in FIGURES else "picture of the table"
            raise SystemExit(f"no {what} {word!r}: choose from {', '.join(among)}")
        found |= dict.fromkeys(meant)
    return list(found)


if __name__ == "__main__":
    main()
