"""Whether the tasks of a set differ: the expert of one task in all others. ``python benchmarks/meta_claims.py``.

::

    python benchmarks/meta_claims.py                       # a row a set of tasks, 4 seconds
    python benchmarks/meta_claims.py --by-task             # a row a task
    python benchmarks/meta_claims.py --matches 10          # quicker, less certain
    python benchmarks/meta_claims.py --expert MetaCheetahVel last.safetensors --matches 2   # a learnt expert, 2 minutes

The return of the task's own expert is 100, that of uniform play 0. Where the expert of a task earns much in the others,
a player that takes one task for another loses little, and there is little to infer: the mean over all pairs of tasks
should be at most 40. The exit code is 1 where it is more. The experts of the half cheetah have to be learnt: with
``--expert`` a policy that was trained with ``observe_task=True`` plays in each task as if it were in another one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from measurement import VERDICTS
from palaestra import make_batch, registry
from palaestra.cli.common import positive_count
from palaestra.cli.progress_bar import Progress
from palaestra.console import print_table
from palaestra.core.run.opponents import resolve
from palaestra.game import Game

SETS = ("MetaPoint", "MetaDirection")
BAR = 40.0
"""Most that the experts of other tasks should have."""
MATCHES = 200


@dataclass(frozen=True)
class Table:
    """What players earn in the tasks of a set, mean returns of the same starts.

    Attributes:
        name: Of the game.
        own: Of each task's expert, ``[tasks]``.
        random: Of uniform play, ``[tasks]``.
        average: Of the script that plays for the average of all tasks, ``[tasks]``.
        others: Of the expert of each task (row) in each task (column), ``[tasks, tasks]``.
    """

    name: str
    own: np.ndarray
    random: np.ndarray
    average: np.ndarray
    others: np.ndarray

    def score(self, returns: np.ndarray) -> np.ndarray:
        """Returns ``[..., tasks]`` as scores: 100 is the task's expert, 0 uniform play."""
        return 100.0 * (returns - self.random) / (self.own - self.random)

    @property
    def pairs(self) -> np.ndarray:
        """Scores of the experts of other tasks by task, ``[tasks, tasks - 1]``."""
        scores = self.score(self.others).T
        return scores[~np.eye(len(scores), dtype=bool)].reshape(len(scores), -1)

    @property
    def holds(self) -> bool:
        """Whether the mean over all pairs is as small as it should be."""
        return bool(self.pairs.mean() <= BAR)

    def row(self) -> list[str]:
        """The set in a table."""
        pairs, average = self.pairs, self.score(self.average)
        low, high = pairs.mean(axis=1).min(), pairs.mean(axis=1).max()
        returns = [f"{values.mean():.2f}" for values in (self.own, self.random)]
        between = f"{low:.0f} to {high:.0f}"
        return [self.name, *returns, f"{average.mean():.0f}", f"{pairs.mean():.1f}", between, VERDICTS[self.holds]]

    def rows_by_task(self) -> list[list[str]]:
        """Its tasks in a table."""
        columns = (self.own, self.random, self.score(self.average), self.pairs.mean(axis=1))
        return [[self.name, str(k), *(f"{values[k]:.2f}" for values in columns)] for k in range(len(self.own))]


def measure(name: str, matches: int, progress: Callable[[int, int], object] = lambda done, total: None) -> Table:
    """Plays the same starts in each task by each player.

    The expert of a task plays its own task beside the matches of the others, which are given its actions: starts and
    motion do not depend on the task.
    """
    id = f"palaestra/{name}-v0"
    tasks = len(registry.make_game(id, tasks="all")[0].world.tasks.numbers)
    seeds = np.tile(np.arange(matches, dtype=np.uint64), tasks)

    def started(task: Any, player: str | None) -> Any:
        keywords = {} if player is None else {"opponents": {"agent": player}}
        sim = make_batch(id, tasks * matches, tasks="all", task=task, autoreset_mode="off", **keywords)
        sim.reset(seed=seeds)
        return sim

    def by_task(sim: Any, leader: Any = None) -> np.ndarray:
        returns = np.zeros(tasks * matches)
        for _ in range(sim.game.horizon):
            if leader is None:
                sim.step()
            else:
                leader.step()
                sim.step(leader.team_view("agent", "actions"))
            returns += sim.rewards[:, 0]
        return returns.reshape(tasks, matches).mean(axis=1)

    each = np.repeat(np.arange(tasks), matches)
    own, random, average = (by_task(started(each, player)) for player in ("expert", "random", "average"))
    others = np.zeros((tasks, tasks))
    for task in range(tasks):
        others[task] = by_task(started(each, None), started(task, "expert"))
        progress(task + 1, tasks)
    return Table(name, own, random, average, others)


@dataclass(frozen=True)
class Believer:
    """A policy that is told the same task in all matches, whichever they are in.

    Attributes:
        expert: Path of a policy that was trained with ``observe_task=True``.
        task: What it is told, ``[p]``.
    """

    expert: str
    task: np.ndarray

    def for_team(self, game: Game, team: str) -> Any:
        """The player of a team."""
        player: Any = resolve(game, team, self.expert)
        act = player.act

        def act_in_belief(observations: Any, *more: Any) -> Any:
            observations = np.array(observations)
            observations[..., -len(self.task) :] = self.task
            return act(observations, *more)

        player.act = act_in_belief
        return player


def measure_learnt(
    name: str, expert: str, matches: int, progress: Callable[[int, int], object] = lambda done, total: None
) -> Table:
    """Plays the same starts in each task by a policy that is told this task, another one, and the mean of all."""
    from palaestra_baselines.common.task_families import find_family, play_matches

    family = find_family(f"palaestra/{name}-v0", {}, expert)
    tasks = len(family.tasks)

    def by_task(player: str, told: np.ndarray | None = None) -> np.ndarray:
        played = family if told is None else replace(family, expert=Believer(expert, told))
        rewards = play_matches(played, np.arange(tasks), player, matches, 0).rewards
        return rewards.sum(1, dtype=np.float64).reshape(tasks, matches).mean(1)

    own, random, average = by_task("expert"), by_task("uniform"), by_task("expert", family.tasks.mean(0))
    others = np.zeros((tasks, tasks))
    for task in range(tasks):
        others[task] = by_task("expert", family.tasks[task])
        progress(task + 1, tasks)
    return Table(name, own, random, average, others)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints; returns 1 where the tasks of a set are too much alike."""
    parser = argparse.ArgumentParser(description="What the expert of one task earns in the others")
    parser.add_argument("--matches", type=positive_count, default=MATCHES, help=f"of each pair (default {MATCHES})")
    parser.add_argument("--by-task", action="store_true", help="a row a task")
    parser.add_argument("--expert", nargs=2, metavar=("GAME", "FILE"), help="a learnt expert in place of the scripts")
    args = parser.parse_args(arguments)
    found: list[Table] = []
    for name in args.expert[:1] if args.expert else SETS:
        with Progress(name) as bar:

            def show(done: int, total: int, bar: Progress = bar) -> None:
                bar(done, total, "")

            if args.expert:
                found.append(measure_learnt(name, args.expert[1], args.matches, show))
            else:
                found.append(measure(name, args.matches, show))
    if args.by_task:
        headings = ["tasks", "number", "expert", "random", "average, score", "other experts, score"]
        print_table([row for table in found for row in table.rows_by_task()], headings)
    headings = ["tasks", "expert", "random", "average, score", "other experts, score", "by task", f"at most {BAR:g}"]
    print_table([table.row() for table in found], headings)
    return 0 if all(table.holds for table in found) else 1


if __name__ == "__main__":
    sys.exit(main())
