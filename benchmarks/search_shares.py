"""How often scripts and random turns answer right in SearchQA: ``python benchmarks/search_shares.py``.

::

    python benchmarks/search_shares.py                  # all presets, 4,096 matches of each player
    python benchmarks/search_shares.py --matches 512    # quicker, less certain
    python benchmarks/search_shares.py --only Reading   # ids that have this in their name

The scripts: ``oracle`` follows the path of the question, ``closed_book`` guesses an answer of the right kind,
``first_hit`` takes the first object of the first passage of each search; random turns are uniform ones of the default
form. The last column is how often the passage that is needed is the first one in the oracle's searches.
The exit code is 1 where a share of the presets that must be read lies outside its bar.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from measurement import VERDICTS
from palaestra import registry
from palaestra.cli.common import positive_count
from palaestra.cli.progress_bar import Progress
from palaestra.console import print_table
from palaestra.core.run.kernel import KernelSimulation
from palaestra.evaluation import evaluate
from palaestra.games.search.turns import SEARCH

IDS = tuple(id for id in registry.ROWS if "/SearchQA-" in id)
PLAYERS = ("oracle", "closed_book", "first_hit", "random")
READING_BARS = {
    "oracle": (1.0, 1.0),
    "closed_book": (0.0, 0.1),
    "first_hit": (0.0, 0.35),
    "random": (0.0, 0.02),
    "rank": (0.4, 0.6),
}
"""Between which the shares of presets that must be read lie."""
MATCHES, LANES = 4096, 512


@dataclass(frozen=True)
class Row:
    """The shares of a preset.

    Attributes:
        id: The preset.
        shares: By player; ``"rank"`` is the share of searches whose first passage is the one that is needed.
    """

    id: str
    shares: dict[str, float]

    @property
    def holds(self) -> bool | None:
        """Whether all shares lie between their bars; None where there are none."""
        if "Reading" not in self.id:
            return None
        return all(low <= self.shares[name] <= high for name, (low, high) in READING_BARS.items())

    def cells(self) -> list[str]:
        """A row of the table."""
        return [self.id.removeprefix("palaestra/"), *(f"{self.shares[name]:.3f}" for name in (*PLAYERS, "rank"))]


def rows(ids: Sequence[str], matches: int) -> Iterator[Row]:
    """The shares of some presets."""
    for id in ids:
        shares = {"rank": share_of_first_places(id, matches)}
        for player in PLAYERS:
            shares[player] = evaluate(id, player, matches=matches, num_envs=LANES).success
        yield Row(id, shares)


def share_of_first_places(id: str, matches: int) -> float:
    """Of the oracle's searches, how many have the passage that is needed in the first place."""
    game, _ = registry.make_game(id)
    sim = KernelSimulation(game, min(matches, LANES), autoreset_mode="off")
    sim.set_opponent("agent", "oracle")
    firsts, searches = 0, 0
    for seed in range(-(-matches // sim.num_envs)):
        sim.reset(seed=seed)
        while not (over := sim.terminated | sim.truncated).all():
            wanted = next_needed(sim.states)
            sim.step(lanes=~over)
            has_searched = ~over & (sim.states["last_verb"] == SEARCH)
            firsts += int((has_searched & (sim.states["shown"][:, 0] == wanted)).sum())
            searches += int(has_searched.sum())
    return firsts / max(searches, 1)


def next_needed(states: np.ndarray) -> np.ndarray:
    """Number of the passage that each match needs next, -1 behind the last."""
    is_open = (states["seen"] == 0) & (np.arange(states["gold"].shape[1]) < states["hops"][:, None])
    gold = np.take_along_axis(states["gold"], is_open.argmax(axis=1)[:, None], axis=1)[:, 0]
    return np.where(is_open.any(axis=1), gold, -1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns 1 where a share lies outside its bar."""
    parser = argparse.ArgumentParser(description="How often scripts and random turns answer right in SearchQA")
    parser.add_argument("--only", default="", help="in the name of an id")
    parser.add_argument("--matches", type=positive_count, default=MATCHES, help=f"of each player (default {MATCHES:,})")
    args = parser.parse_args(arguments)
    ids, found = [id for id in IDS if args.only in id], list[Row]()
    with Progress("presets") as bar:
        for row in rows(ids, args.matches):
            found.append(row)
            bar(len(found), len(ids), row.id)
    verdicts = {True: VERDICTS[True], False: VERDICTS[False], None: ""}
    print_table(
        [[*row.cells(), verdicts[row.holds]] for row in found], ["preset", *PLAYERS, "needed passage first", ""]
    )
    return 1 if any(row.holds is False for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
