"""``python small_figure.py WORDS``: `learn.main` with a figure ``fm3q_limit`` of six runs of half a second each."""

import sys
from dataclasses import replace

import learn
from learning.study import Study

STEPS = 1600
SMALL = {
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
    study = learn.FIGURES["fm3q_limit"]
    assert isinstance(study, Study)
    places = {name: replace(place, arguments={**place.arguments, **SMALL}) for name, place in study.places.items()}
    entries = tuple(replace(entry, steps=STEPS) for entry in study.entries)
    learn.FIGURES["fm3q_limit"] = replace(study, places=places, entries=entries)
    learn.main(["fm3q_limit", "--seeds", "6", *words])


if __name__ == "__main__":
    main(*sys.argv[1:])
