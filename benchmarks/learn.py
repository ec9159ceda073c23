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

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from learning import (
    concert_figures,
    dipllm_figures,
    distil_figures,
    duel_figures,
    hierarchy_figures,
    meta_figures,
    nvif_figures,
    poisson_figures,
    pursuit_figures,
    real_figures,
    rlae_figures,
    robust_figures,
    search_figures,
    seqwm_figures,
    skirmish_figures,
    skirmish_methods,
    sparse_figures,
    team_figures,
    text_figures,
    tracking_figures,
    ucav_pursuit_figures,
)
from learning.figures import FigureArgs
from palaestra.cli.typed_arguments import read_arguments

FIGURES: dict[str, Callable[[FigureArgs], None]] = {
    "tracking": tracking_figures.tracking,
    "fm3q_exact": team_figures.fm3q_exact,
    "fm3q_limit": team_figures.fm3q_limit,
    "fm3q_features": team_figures.fm3q_features,
    "team_learning": team_figures.team_learning,
    **{f"skirmish_{group}": partial(skirmish_figures.battle_figure, group) for group in skirmish_figures.GROUPS},
    "skirmish_methods": skirmish_methods.skirmish_methods,
    "held_out_policy": robust_figures.held_out_policy,
    "skirmish_mix": skirmish_figures.skirmish_mix,
    "skirmish_scripts": skirmish_figures.skirmish_scripts,
    "skirmish_speed": skirmish_figures.skirmish_speed,
    "skirmish_duel": duel_figures.skirmish_duel,
    "mates": robust_figures.mates,
    "adversary": robust_figures.adversary,
    **{f"pursuit_{group}": partial(pursuit_figures.pursuit_figure, group) for group in pursuit_figures.GROUPS},
    "pursuit_references": pursuit_figures.pursuit_references,
    "search_turns": search_figures.search_turns,
    "text_bases": text_figures.text_bases,
    "text_learning": text_figures.text_learning,
    "text_reading": text_figures.text_reading,
    "text_distil": distil_figures.text_distil,
    "rlae": partial(rlae_figures.rlae_figure, rlae_figures.RLAE),
    "rlae_hidden": partial(rlae_figures.rlae_figure, rlae_figures.HIDDEN),
    **{f"dipllm_{group}": partial(dipllm_figures.dipllm_figure, group) for group in dipllm_figures.GROUPS},
    "seqwm_copy": seqwm_figures.seqwm_copy,
    "seqwm_tasks": seqwm_figures.seqwm_tasks,
    "seqwm_modes": seqwm_figures.seqwm_modes,
    "seqwm_tuning": seqwm_figures.seqwm_tuning,
    "poisson_gradient": poisson_figures.poisson_gradient,
    "poisson_speed": poisson_figures.poisson_speed,
    "poisson_tuning": poisson_figures.poisson_tuning,
    "poisson_tasks": poisson_figures.poisson_tasks,
    "poisson_atoms": poisson_figures.poisson_atoms,
    "poisson_modes": poisson_figures.poisson_modes,
    "humanoid": poisson_figures.humanoid,
    **{f"nvif_{group}": partial(nvif_figures.nvif_figure, group) for group in nvif_figures.GROUPS},
    "ucav_pursuit": ucav_pursuit_figures.pursuit_figure,
    "ucav_first_hour": ucav_pursuit_figures.first_hour,
    "ucav_league": hierarchy_figures.league_figure,
    "concert_first_hour": concert_figures.first_hour,
    **{f"sparse_{group}": partial(sparse_figures.once_figure, group) for group in sparse_figures.ONCE_GROUPS},
    **{f"sparse_{group}": partial(sparse_figures.curve_figure, group) for group in sparse_figures.CURVE_GROUPS},
    "sparse_tuning": sparse_figures.sparse_tuning,
    "sparse_speed": sparse_figures.sparse_speed,
    **{f"meta_{place}": partial(meta_figures.score_figure, place) for place in meta_figures.SETTINGS},
    "meta_models": meta_figures.models_figure,
    "real_model": real_figures.real_model,  # needs packages that no extra brings
}
"""Figure by name, in the order in which they are made."""
PICTURES: dict[str, Callable[[Path], None]] = {
    "tracking": tracking_figures.draw_tracking,
    "fm3q_exact": team_figures.draw_exact,
    "fm3q_features": partial(team_figures.draw_methods, "fm3q_features"),
    "team_learning": partial(team_figures.draw_methods, "team_learning"),
    **{f"skirmish_{group}": partial(skirmish_figures.draw_battles, group) for group in skirmish_figures.GROUPS},
    "skirmish_duel": duel_figures.draw_duel,
    **{f"pursuit_{group}": partial(pursuit_figures.draw_pursuit, group) for group in pursuit_figures.PICTURED},
    "search_turns": search_figures.draw_search,
    **{name: partial(text_figures.draw_learning, name) for name in text_figures.PICTURED},
    "text_reading": text_figures.draw_reading,
    **{name: partial(distil_figures.draw_distil, name) for name in distil_figures.PICTURED},
    "rlae": partial(rlae_figures.draw_rlae, rlae_figures.RLAE),
    "rlae_hidden": partial(rlae_figures.draw_rlae, rlae_figures.HIDDEN),
    "seqwm_copy": seqwm_figures.draw_copy,
    **{name: partial(seqwm_figures.draw_tasks, name) for name in seqwm_figures.AXES},
    "seqwm_modes": seqwm_figures.draw_modes,
    **{name: partial(poisson_figures.draw, name) for name in poisson_figures.PICTURED},
    **{f"nvif_{group}": partial(nvif_figures.draw_nvif, group) for group in nvif_figures.GROUPS},
    "ucav_pursuit": ucav_pursuit_figures.draw_pursuit,
    "ucav_first_hour": ucav_pursuit_figures.draw_first_hour,
    "ucav_league": hierarchy_figures.draw_league,
    "ucav_league_matrix": hierarchy_figures.draw_matrix,
    "concert_first_hour": concert_figures.draw_first_hour,
    **{f"sparse_{group}": partial(sparse_figures.draw_curves, group) for group in sparse_figures.CURVE_GROUPS},
    **{f"dipllm_{group}": partial(dipllm_figures.draw_dipllm, group) for group in ("duel", "duel20")},
    **{f"meta_{place}": partial(meta_figures.draw_scores, place) for place in meta_figures.SETTINGS},
    "meta_models": meta_figures.draw_models,
    "real_model": real_figures.draw_real,
}
"""Draws the picture of a figure beside its table in a folder, by name; the other figures are tables alone."""
TABLES = {"text_results": text_figures.write_results, "text_distil": distil_figures.write_results}
"""Makes a table of claims from the other tables of its figure in a folder, by name."""


def main(argv: Sequence[str] | None = None) -> None:
    """Makes the named figures, or all; the first part of a name stands for all figures that begin with it."""
    args = read_arguments(FigureArgs, argv, "python benchmarks/learn.py", __doc__)
    args.check()
    if args.redraw:
        drawn = {**PICTURES, **TABLES}
        for name in chosen(args.names, drawn):
            drawn[name](args.figures)
        return
    for name in chosen(args.names, FIGURES):
        FIGURES[name](args)


def chosen(names: Sequence[str], among: Mapping[str, Any] = FIGURES) -> list[str]:
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
