"""``python small_figure.py WORDS``: `learn.main` with a figure ``fm3q_limit`` of six runs of half a second each."""

import sys

import learn
from learning import team_figures

SMALL = {
    "env_id": "palaestra/GridSoccer-v0",
    "total_steps": 1600,
    "lanes": 16,
    "warmup_steps": 100,
    "updates": 1,
    "batch_size": 16,
    "replay_size": 400,
    "hidden": (8,),
    "evaluations": 12,
}


def main(*words: str) -> None:
    """Makes the figure."""
    before = team_figures.LITTMAN
    team_figures.LITTMAN = {**before, **SMALL}
    try:
        learn.main(["fm3q_limit", "--seeds", "6", *words])
    finally:
        team_figures.LITTMAN = before


if __name__ == "__main__":
    main(*sys.argv[1:])
