"""The figure of self-play on SkirmishDuel: ``python benchmarks/learn.py skirmish_duel``.

Both sides are alike, three marines each, so that one policy plays either. They begin in a closed room within sight of
each other: on the open ground of ``3m`` nobody has to attack, and a policy of random weights never reaches an opponent
that waits, so a best response would learn nothing from it. In the first round the policy learns against a script that
goes forward. In each later round a policy learns anew against a pool (`palaestra.wrappers.SelfPlayPool`) of all
policies of the rounds before. At the end of a round a best response is trained: red learns, by the same method, against
the last policy alone, which is frozen. The game is zero-sum and the sides are alike, so its value is 0: what the best
response gains in a match is a lower bound of the policy's exploitability. The share of matches that it wins stands
beside it. Policy and best response then join the pool, as main agents and their exploiters do in Vinyals et al.,
"Grandmaster level in StarCraft II using multi-agent reinforcement learning" (Nature 575, 2019).

Six trainings a seed, of `LEARNS` decisions each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from learning import drawing
from learning.figures import FigureArgs, train_all, write_rows
from learning.study import Figure
from palaestra.evaluation import MatchTable, evaluate
from palaestra.wrappers import SelfPlayPool
from palaestra_baselines import mappo
from palaestra_baselines.common.run_folder import WEIGHTS, read_rows

DUEL = "palaestra/SkirmishDuel-v0"
METHOD = "mappo"
FIRST = "nearest"
"""The script that the first policy meets."""
ROUNDS = 3
MAP = "arena"
"""The closed room, see `palaestra.games.skirmish.maps.SCENARIOS`."""
LEARNS: dict[str, Any] = {
    "team": "red",
    "total_steps": 400_000,
    "evaluations": 4,
    "matches": 256,
    "gamma": 0.97,
    "entropy": (0.03, 0.001),
    "options": (f"map={MAP}",),
}
"""Arguments of all trainings, best responses included."""
TEST_MATCHES = 1024


@dataclass(frozen=True)
class Round:
    """A round of one seed.

    Attributes:
        folder: Of the figure's runs.
        seed: Number of the seed.
        number: Of the round, from 0.
    """

    folder: Path
    seed: int
    number: int

    @property
    def members(self) -> list[Path]:
        """Files of the policies before this round: of each the last policy and its best response."""
        before = [Round(self.folder, self.seed, number) for number in range(self.number)]
        return [run.folder / WEIGHTS for earlier in before for run in (earlier.learner, earlier.best_response)]

    @property
    def pool(self) -> Path:
        """File of the pool that the policy of this round meets; its members lie in folders below."""
        return self.folder / f"pool_of_round_{self.number}_seed_{self.seed}.json"

    @property
    def learner(self) -> mappo.Args:
        """The training of the policy."""
        if self.number == 0:
            return self._run("learner", 0, FIRST)
        return self._run("learner", 0, str(self.pool))

    @property
    def best_response(self) -> mappo.Args:
        """The training against the policy."""
        return self._run("best_response", 1, str(self.learner.folder / WEIGHTS))

    def _run(self, name: str, part: int, opponent: str) -> mappo.Args:
        """A training with a seed of its own: no two of them play the same matches."""
        directory = self.folder / f"round_{self.number}" / name
        seed = 2 * (self.seed * ROUNDS + self.number) + part
        return mappo.Args(**LEARNS, opponent=opponent, env_id=DUEL, seed=seed, directory=directory, quiet=True)

    def write_pool(self) -> None:
        """Writes the file of the pool, which the trainings before have filled."""
        self.pool.parent.mkdir(parents=True, exist_ok=True)
        SelfPlayPool(DUEL, "blue", self.members, map=MAP).save(self.pool)

    def row(self) -> dict[str, Any]:
        """Result of the round, in new matches."""
        policy, best_response = (str(run.folder / WEIGHTS) for run in (self.learner, self.best_response))
        exploited, against_script = matches(best_response, policy), matches(policy, FIRST)
        low, high = exploited.win_interval
        logs = [read_rows(run.folder / "log.csv")[-1] for run in (self.learner, self.best_response)]
        return {
            "round": self.number,
            "seed": self.seed,
            "pool": len(self.members),
            "decisions": int(sum(log["steps"] for log in logs)),
            "cpu_s": sum(log["cpu_s"] for log in logs),
            "gain": float(exploited.results["return_a"].mean()),
            "exploited": exploited.wins / exploited.matches,
            "low": low,
            "high": high,
            "score_against_script": against_script.score,
        }


def matches(red: str, blue: str) -> MatchTable:
    """New matches, wins of red counted."""
    return evaluate(DUEL, red, blue, matches=TEST_MATCHES, swap=False, num_envs=min(TEST_MATCHES, 256), map=MAP)


def skirmish_duel(args: FigureArgs) -> None:
    """How far the policies of self-play against a growing pool can be exploited, round by round."""
    folder = args.runs / "skirmish_duel"
    rows: list[dict[str, Any]] = []
    for number in range(ROUNDS):
        rounds = [Round(folder, seed, number) for seed in range(args.seeds)]
        if number:
            for one in rounds:
                one.write_pool()
        for name in ("learner", "best_response"):
            runs = [replace(getattr(one, name), trust_checkpoint=args.trust_checkpoint) for one in rounds]
            train_all(f"round {number}, {name}", [(METHOD, run, None) for run in runs], args)
        rows += [one.row() for one in rounds]
    write_rows(args.figures / "skirmish_duel.csv", rows)
    draw_duel(args.figures)
    print("\n".join(result_lines(rows)))


def draw_duel(folder: Path) -> None:
    """Draws what best responses gain and win, round by round; the rounds count from 1."""
    table = folder / "skirmish_duel.csv"
    rows = [{**row, "shown_round": int(row["round"]) + 1, "arm": "MAPPO"} for row in drawing.read_table(table)]
    title = "SkirmishDuel, best response"
    more: Any = {"x": "shown_round", "x_label": "round"}
    gain = drawing.panel_of(title, "gain in a match", rows, "arm", "gain", **more)
    won = drawing.panel_of(title, "share of matches won", rows, "arm", "exploited", is_share=True, **more)
    drawing.draw(table, [gain, won])


def result_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line of text for each round and seed."""
    head = f"{'round':>5s}{'seed':>6s}{'pool':>6s}{'decisions':>11s}{'processor s':>13s}"
    lines = [f"{head}{'gain':>8s}{'exploited':>11s}  95 % interval   score against {FIRST}"]
    for row in rows:
        cost = f"{row['round']:5d}{row['seed']:6d}{row['pool']:6d}{row['decisions']:11d}{row['cpu_s']:13.1f}"
        share = f"{row['gain']:8.2f}{row['exploited']:11.3f}  {row['low']:.3f} to {row['high']:.3f}"
        lines.append(f"{cost}{share}  {row['score_against_script']:.3f}")
    return lines


FIGURES = (Figure("skirmish_duel", skirmish_duel, draw_duel),)
