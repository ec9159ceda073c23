"""Minimax-Q: Q-learning in which the value of a position is that of a matrix game.

Littman, "Markov games as a framework for multi-agent reinforcement learning" (ICML 1994): in a zero-sum game of two
sides, action values Q(s, a, b) of the joint decision are learnt from samples by

    Q(s, a, b) <- (1 - alpha) Q(s, a, b) + alpha (r + gamma V(s')),    V(s) = max_x min_b sum_a x(a) Q(s, a, b),

V(s) by a linear program. The claim: what is learnt is the minimax policy, which mixes and loses to nobody on average,
whereas Q-learning against some opponent gives a policy that a challenger takes apart. Littman showed it on a soccer
game on 4 by 5 cells, `palaestra/GridSoccer-v0`, by matches against challengers trained for it. Here it is
shown against the truth: `palaestra.exact` gives the value of every position and the exact exploitability of what has
been learnt, for the log alone::

    python -m palaestra_baselines.minimax_q --seed 1
    python -m palaestra_baselines.minimax_q --seed 1 --resume      # goes on after the last checkpoint

Littman's: the table, the update, gamma = 0.9, and that a side acts uniformly at random in a share of the decisions,
else by its current policy. Ours:

* thousands of matches at once; all their samples are learnt, then the matrix games of the positions they touched are
  solved anew;
* that share is a half, not a fifth: before the first goals all action values are equal, any policy solves them, and two
  sides that follow a fixed one hardly ever score;
* alpha = h / (h + n) for the n-th sample of an action value (with Littman's alpha, which falls by the clock, what is
  seen late is never learnt);
* a match that is cut at the horizon goes on in the target: only a rule ends it;
* teams of several and alternating order: Q is over joint actions, and who is not asked has one.
"""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numba
import numpy as np
import tyro

from palaestra import exact, registry
from palaestra.core.game import Game
from palaestra.core.lanes import RUNNING
from palaestra.core.rng import GOLDEN, SHIFT_11, TO_UNIT, mix64
from palaestra.exact.positions import Board, joint_actions
from palaestra.exact.sweeps import solve_positions
from palaestra_baselines.common.curves import CurveLog
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.common.progress import Progress
from palaestra_baselines.common.self_play import keywords

METHOD = "minimax_q"


@dataclass
class Args:
    """Arguments.

    Attributes:
        env_id: Two-team zero-sum game that tells how its positions are counted.
        options: Keywords of the game, ``name=value`` each.
        seed: Seed of actions and matches.
        total_steps: Decisions to learn from.
        lanes: Matches at once.
        gamma: Discount a decision.
        epsilon: Share of the decisions in which a team acts uniformly at random.
        half_after: Samples after which the step size of an action value is a half.
        evaluations: How often the exact exploitability is found.
        directory: Where logs, checkpoints and weights go, in a folder per seed.
        resume: Go on after the last checkpoint of this seed.
        quiet: Print nothing.
    """

    env_id: str = "palaestra/GridSoccer-v0"
    options: tuple[str, ...] = ()
    seed: int = 0
    total_steps: int = 10_000_000
    lanes: int = 4096
    gamma: float = 0.9
    epsilon: float = 0.5
    half_after: float = 20.0
    evaluations: int = 20
    directory: Path = Path("runs/minimax_q")
    resume: bool = False
    quiet: bool = False

    @property
    def folder(self) -> Path:
        """Folder of this seed."""
        return self.directory / f"seed_{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the result, as JSON can hold it: all but where and how it runs."""
        values = {k: v for k, v in asdict(self).items() if k not in ("directory", "resume", "quiet")}
        return json.loads(json.dumps(values))


@dataclass(frozen=True)
class Report:
    """Result of `train`. Exact figures are for discounted play from the start, positions in which the rules start.

    Attributes:
        weights: Saved policy.
        value: Exact value of the first start for the first team.
        learned_value: What minimax-Q takes it for.
        value_error: Largest error of the learnt values of all starts.
        exploitability: The larger one of both teams' policies.
        steps: Decisions learnt from.
        wall_s: Wall time of all parts of the run, evaluations included.
        cpu_s: Processor time.
        log: One row per evaluation.
    """

    weights: Path
    value: float
    learned_value: float
    value_error: float
    exploitability: float
    steps: int
    wall_s: float
    cpu_s: float
    log: list[dict[str, float]] = field(default_factory=list)


# ---------------------------------------------------------------------------------------------------------- learning


@numba.njit(nogil=True, error_model="numpy")
def draw_lines(positions, start, policy, epsilon, explores, draws, lines):
    """Places in the lists of joint actions, drawn from the policy, or uniformly in a share of the decisions."""
    for i in range(len(positions)):
        lo, hi = start[positions[i]], start[positions[i] + 1]
        if explores[i] < epsilon:
            lines[i] = int(draws[i] * (hi - lo))
        else:
            left, line = draws[i], 0
            while line < hi - lo - 1 and left >= policy[lo + line]:
                left -= policy[lo + line]
                line += 1
            lines[i] = line


@numba.njit(nogil=True, error_model="numpy")
def learn(before, cells, rewards, after, gamma, half_after, q, visits, values, touched):
    """Minimax-Q's update for a batch of samples; ``after`` is -1 where a rule ended the match."""
    for i in range(len(before)):
        if before[i] < 0:
            continue
        target = rewards[i] + (gamma * values[after[i]] if after[i] >= 0 else 0.0)
        cell = cells[i]
        q[cell] += half_after / (half_after + visits[cell]) * (target - q[cell])
        visits[cell] += 1
        touched[before[i]] = True


class Learner:
    """Action values, matches and what they are judged by.

    Attributes:
        table: The game's positions. Learning takes from it which joint actions there are, and no transition.
        solution: The truth, for the log.
        steps: Decisions learnt from.
    """

    def __init__(self, args: Args) -> None:
        """Starts all matches; knows nothing."""
        options = keywords(args.options)
        self.args = args
        self.table = exact.enumerate_positions(args.env_id, symmetry=False, **options)
        self.solution = exact.solve(self.table, args.gamma, pure=False)
        self.sim = registry.make_batch(args.env_id, args.lanes, **options)
        self.sim.reset(seed=args.seed << 32)
        self.rng = np.random.default_rng(args.seed)
        counts = [np.diff(start) for start in self.table.action_start]
        self.rows, self.columns = (np.repeat(1.0 / count, count) for count in counts)
        self.columns_of, self.width = counts[1], int(max(count.max() for count in counts))
        self.q, self.visits = np.zeros(len(self.table.rewards)), np.zeros(len(self.table.rewards), np.int64)
        self.values = np.zeros(len(self.table))
        self.touched = np.zeros(len(self.table), np.bool_)
        self.steps = 0

    def position(self) -> np.ndarray:
        """Positions of all lanes, int64 ``[N]``."""
        counting = self.table.game.enumeration
        assert counting is not None
        return counting.number(self.sim.states)

    def step(self) -> None:
        """Plays one decision in all lanes and learns from it."""
        args, table, sim = self.args, self.table, self.sim
        running = sim.states["pending"] == RUNNING
        before = np.where(running, self.position(), 0)
        lines = []
        for side, policy in enumerate((self.rows, self.columns)):
            explores, draws = self.rng.random((2, args.lanes))
            line = np.empty(args.lanes, np.int64)
            draw_lines(before, table.action_start[side], policy, args.epsilon, explores, draws, line)
            lines.append(line)
            chosen = table.actions[side][table.action_start[side][before] + line]
            team = table.teams[side]
            choices = table.joint_actions[side][chosen]
            rows = choices.reshape(args.lanes, len(sim.game.teams[team]), -1)
            sim.write_team_actions(team, rows[:, :, 0] if rows.shape[2] == 1 else rows)
        sim.step()
        cells = table.cell_start[before] + lines[0] * self.columns_of[before] + lines[1]
        after = np.where(sim.terminated, -1, self.position())
        before[~running] = -1
        rewards = sim.team_rewards(table.teams[0]).astype(np.float64)
        learn(
            before, cells, rewards, after, args.gamma, args.half_after, self.q, self.visits, self.values, self.touched
        )
        solve_positions(
            self.touched,
            table.cell_start,
            *table.action_start,
            self.q,
            self.values,
            self.rows,
            self.columns,
            self.width,
        )
        self.steps += int(running.sum())

    def policies(self) -> dict[str, np.ndarray]:
        """What either team plays: probabilities of its joint actions, ``[P, J]``."""
        return {
            team: self.table.dense(team, p) for team, p in zip(self.table.teams, (self.rows, self.columns), strict=True)
        }

    def judge(self) -> dict[str, float]:
        """Exact figures of what has been learnt."""
        starts = self.table.starts
        lost = {
            team: exact.exploitability(self.solution, p, team).exploitability for team, p in self.policies().items()
        }
        return {
            "value": float(self.solution.values[starts[0]]),
            "learned_value": float(self.values[starts[0]]),
            "value_error": float(np.abs(self.values - self.solution.values)[starts].max()),
            "exploitability": max(lost.values()),
            **{f"exploitability_{team}": loss for team, loss in lost.items()},
        }

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        names = ("q", "visits", "values", "rows", "columns", "steps")
        kept = {name: getattr(self, name) for name in names}
        return {**kept, "sim": self.sim.snapshot(), "rng": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` gave."""
        for name, value in state.items():
            if name == "sim":
                self.sim.restore(value)
            elif name == "rng":
                self.rng.bit_generator.state = value
            else:
                setattr(self, name, value)


def train(args: Args) -> Report:
    """Learns, or goes on learning.

    Files of the run, in `Args.folder`: ``log.csv`` (a row per evaluation), ``policy.safetensors`` and
    ``checkpoint.pickle``.
    """
    began_wall, began_cpu = time.perf_counter(), time.process_time()
    path = args.folder / "checkpoint.pickle"
    before = pickle.loads(path.read_bytes()) if args.resume and path.exists() else None
    learner = Learner(args)
    wall = cpu = 0.0
    if before:
        wall, cpu = before.pop("wall_s"), before.pop("cpu_s")
        learner.restore(before)
    log, rows = CurveLog(args.folder / "log.csv", learner.steps if before else None), []
    weights = args.folder / "policy.safetensors"

    def evaluate() -> None:
        spent = {"wall_s": wall + time.perf_counter() - began_wall, "cpu_s": cpu + time.process_time() - began_cpu}
        rows.append({"steps": learner.steps, **learner.judge(), **spent})
        log.write(rows[-1])
        save_policy(weights, learner.policies(), method=METHOD, env_id=args.env_id, args=args.settings, **rows[-1])
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(pickle.dumps({**learner.state(), **spent}))
        unfinished.replace(path)
        progress.say(
            f"{learner.steps / 1e6:6.1f}M decisions: value {rows[-1]['learned_value']:+.4f} "
            f"(exact {rows[-1]['value']:+.4f}), exploitability {rows[-1]['exploitability']:.4f}"
        )

    interval = args.total_steps / args.evaluations
    with Progress(f"minimax_q, seed {args.seed}", args.total_steps, learner.steps, args.quiet) as progress:
        due = learner.steps + interval
        while learner.steps < args.total_steps:
            learner.step()
            if learner.steps >= min(due, args.total_steps):
                evaluate()
                due += interval
            progress.update(learner.steps)
        if not rows:
            evaluate()
    last = rows[-1]
    return Report(
        weights,
        last["value"],
        last["learned_value"],
        last["value_error"],
        last["exploitability"],
        learner.steps,
        last["wall_s"],
        last["cpu_s"],
        rows,
    )


# ------------------------------------------------------------------------------------------------------------ player


class MinimaxPlayer:
    """Plays a team by a table of probabilities: an `palaestra.core.opponents.Opponent`.

    It knows a position by what its team sees there. Each lane has its luck from its seed and the number of decisions.

    Attributes:
        memory_size: 1, the number of decisions so far.
    """

    memory_size = 1

    def __init__(self, policy: np.ndarray, game: Game, team: str) -> None:
        """Looks at every position.

        Args:
            policy: Probabilities of joint actions ``[P, J]``.
            game: The rules.
            team: Whom it plays.

        Raises:
            ValueError: The policy was made for another game, or positions look alike.
        """
        counting = game.enumeration
        joints = int(np.prod([f.n for s in game.teams[team] for f in game.role_of(s)[0].action]))  # type: ignore[union-attr]
        if counting is None or policy.shape != (counting.positions, joints):
            positions = counting.positions if counting else "uncounted"
            raise ValueError(
                f"the policy is for {policy.shape[0]} positions and {policy.shape[1]} joint actions; {team} of "
                f"{game.name} has {positions} and {joints}, so it was trained for another game"
            )
        self.policy = policy.astype(np.float64)
        self.edges = self.policy.cumsum(1)
        board = Board(game, {})
        board.place(np.arange(counting.positions))
        seen = board.sim.team_view(team, "observations")
        self.agents = seen.shape[1]
        self.choices = joint_actions(game, team)
        self.known = {key: p for p, key in enumerate(self._keys(seen))}
        if len(self.known) < counting.positions:
            raise ValueError(f"{team} of {game.name} cannot tell its positions apart by what it sees")

    def _keys(self, observations: np.ndarray) -> list[bytes]:
        rows = np.ascontiguousarray(observations).reshape(len(observations), -1)
        return [row.tobytes() for row in rows]

    def probabilities(self, observations: Any, legal: Any, acting: Any) -> np.ndarray:
        """Of the joint actions, float64 ``[n, J]``; `palaestra.exact` asks for them."""
        return self.policy[[self.known[key] for key in self._keys(observations)]]

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: Any) -> np.ndarray:
        """Actions of the team; see `palaestra.core.opponents.Opponent`."""
        with np.errstate(over="ignore"):
            streams = mix64(seeds) + (memory[:, 0].astype(np.uint64) + np.uint64(1)) * GOLDEN
            draws = (mix64(streams) >> SHIFT_11) * TO_UNIT
        memory[:, 0] += 1
        edges = self.edges[[self.known[key] for key in self._keys(observations)]]
        chosen = np.minimum((edges <= draws[:, None] * edges[:, -1:]).sum(1), edges.shape[1] - 1)
        return self.choices[chosen].reshape(len(chosen), self.agents)


def load_policy(path: Path, game: Game, team: str) -> MinimaxPlayer:
    """Player of a saved policy; called by `palaestra.core.opponents.load_policy`.

    Raises:
        ValueError: The policy was made for another game.
    """
    arrays = read_policy(path)[0]
    if team not in arrays:
        raise ValueError(f"{path} holds policies of {', '.join(arrays)}, none of {team!r}")
    return MinimaxPlayer(arrays[team], game, team)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains and prints the exact figures."""
    report = train(tyro.cli(Args, args=argv))
    print(
        f"{report.weights}: value {report.learned_value:+.4f}, exact {report.value:+.4f}; exploitability "
        f"{report.exploitability:.4f}; {report.steps} decisions, {report.wall_s:.0f} s, {report.cpu_s:.0f} s of "
        "processor"
    )


if __name__ == "__main__":
    main()
