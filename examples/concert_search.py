"""A player of ConcertDuel that tries 1,024 sets of orders, 8 times each, and takes the one that leads to most centres.

It asks for results alone: ``load_states(..., outputs=False)`` and ``step(..., outputs=False)`` write no observations.
The other power is played by a script whose draws it cannot know, so each trial has draws of its own.

    python examples/concert_search.py
"""

from typing import Any

import numpy as np

import palaestra
from palaestra.game import Game

SETS, DRAWS = 1024, 8
TRIALS = SETS * DRAWS
ID = "palaestra/ConcertDuel-v0"
RED = 1
"""Powers are in alphabetical order."""


def centres_held(game: Game, states: np.ndarray) -> np.ndarray:
    """Centres that red owns or stands in, [N]."""
    world = game.world.board[0].map
    units, owners = states["unit"][:, world.centre_province], states["owner"]
    holders = np.where(units > 0, (units.astype(int) - 1) % 8, owners)
    return (holders == RED).sum(axis=1)


def search(trials: Any, record: np.ndarray, lists: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Red's orders in a position, [slots].

    Args:
        trials: A batch of `TRIALS` matches in which a script plays blue.
        record: The match record.
        lists: What red's units may be ordered, records [slots] of ``count`` and ``ids``.
        rng: For the sets of orders, and for what blue's script draws.
    """
    places = rng.integers(lists["count"], size=(SETS, len(lists)))
    orders = np.take_along_axis(lists["ids"][None], places[..., None], axis=-1)[..., 0]
    records = np.repeat(record[None], TRIALS)
    records["rng"] = rng.integers(2**63, size=TRIALS, dtype=np.uint64)
    trials.load_states(records, outputs=False)
    trials.actions[:, RED] = np.repeat(orders, DRAWS, axis=0)
    trials.step(outputs=False)
    return orders[centres_held(trials.game, trials.states).reshape(SETS, DRAWS).mean(axis=1).argmax()]


def main() -> None:
    """Plays a match and tells how it went."""
    rng = np.random.default_rng(1)
    match, trials = (palaestra.make_batch(ID, n, autoreset_mode="off") for n in (1, TRIALS))
    for sim in (match, trials):
        sim.set_opponent("blue", "province_value")
        sim.reset(seed=0)
    legal: Any = match.legal
    while not match.terminated[0]:
        if match.states["acting"][0, RED]:
            match.actions[0, RED] = search(trials, match.states[0], legal[0, RED]["orders"], rng)
        match.step()
        print(match.render_text().splitlines()[0])
    owned = (match.states["owner"][0] == RED).sum()
    print(f"red owns {owned} of 8 centres")


if __name__ == "__main__":
    main()
