"""How often random play and the scripts solve the sparse tasks: ``python benchmarks/sparse_claims.py``.

::

    python benchmarks/sparse_claims.py                             # those with scripts, half a minute
    python benchmarks/sparse_claims.py --bodies --matches 2000     # the running robots, 4 minutes of CPU time
    python benchmarks/sparse_claims.py --matches 1000              # quicker, less certain

Uniform play should solve 0.1 to 2 % of the matches, so that a method has to explore and yet can; the script at least
95 %, so that the task can be solved in its horizon. The running robots have no scripts. The exit code is 1 where a
share lies outside.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from measurement import VERDICTS
from palaestra import registry
from palaestra.cli.common import positive_count
from palaestra.cli.progress_bar import Progress
from palaestra.console import print_table
from palaestra.evaluation import MatchTable, evaluate

SCRIPTS = {
    "SparseSpread-2": "default",
    "SparseSpread": "default",
    "SparseSpread-5": "default",
    "SparseReference": "default",
    "SparseSpeakerListener": "default",
}
"""Script by task."""
BODIES = ("SparseMaHalfCheetah", "SparseMaAnt", "SparseMaHopper")
RANDOM_BAR, SCRIPT_BAR = (0.001, 0.02), (0.95, 1.0)
"""Between which the shares should lie."""
MATCHES = 100_000
LANES, BODY_LANES = 2048, 64


@dataclass(frozen=True)
class Share:
    """How often a player solves a task.

    Attributes:
        task: Name of the id.
        player: Name of a script, or ``"random"``.
        table: The matches.
        bar: Between which the share should lie.
    """

    task: str
    player: str
    table: MatchTable
    bar: tuple[float, float]

    @property
    def holds(self) -> bool:
        """Whether the share lies there."""
        return self.bar[0] <= self.table.success <= self.bar[1]

    def row(self) -> list[str]:
        """The share in a table, in per cent with its 95 % interval."""
        low, high = (f"{100 * end:.2f}" for end in self.table.success_interval)
        solved = f"{100 * self.table.success:.2f}"
        bar = f"{100 * self.bar[0]:g} to {100 * self.bar[1]:g}"
        matches = f"{self.table.matches:,}"
        return [self.task, self.player, matches, solved, f"{low} to {high}", bar, VERDICTS[self.holds]]


def uniform_numbers(id: str) -> Callable[[np.ndarray], np.ndarray]:
    """Uniform play of a game without scripts, for which the suite has no player: float64 ``[n, A, D]`` in [-1, 1]."""
    game, _ = registry.make_game(id)
    rng, shape = np.random.default_rng(0), (len(game.agents), game.roles[0].action[0].size)
    return lambda seen: rng.uniform(-1.0, 1.0, (len(seen), *shape))


def shares(
    task: str, matches: int, progress: Callable[[int, int], object] = lambda done, total: None
) -> Iterator[Share]:
    """How often random play and the script of a task, if it has one, solve it."""
    id = f"palaestra/{task}-v0"
    players = {"random": (uniform_numbers(id) if task in BODIES else "random", RANDOM_BAR)}
    if task in SCRIPTS:
        players[SCRIPTS[task]] = SCRIPTS[task], SCRIPT_BAR
    for name, (player, bar) in players.items():
        lanes = BODY_LANES if task in BODIES else LANES
        yield Share(task, name, evaluate(id, player, matches=matches, num_envs=lanes, progress=progress), bar)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns 1 where a share lies outside its bar."""
    parser = argparse.ArgumentParser(description="How often random play and scripts solve the sparse tasks")
    parser.add_argument("--bodies", action="store_true", help="the running robots instead")
    parser.add_argument("--matches", type=positive_count, default=MATCHES, help=f"of each player (default {MATCHES:,})")
    args = parser.parse_args(arguments)
    found: list[Share] = []
    for task in BODIES if args.bodies else SCRIPTS:
        with Progress(task) as bar:
            found += shares(task, args.matches, lambda done, total, bar=bar: bar(done, total, ""))
    headings = ["task", "player", "matches", "solved, %", "95 % interval", "should be, %", ""]
    print_table([share.row() for share in found], headings)
    return 0 if all(share.holds for share in found) else 1


if __name__ == "__main__":
    sys.exit(main())
