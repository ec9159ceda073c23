"""Minimax-Q: Q-learning in which the value of a position is that of a matrix game.

Littman, "Markov games as a framework for multi-agent reinforcement learning" (ICML 1994): in a zero-sum game of two
sides, action values Q(s, a, b) of the joint decision are learnt from samples by

    Q(s, a, b) <- (1 - alpha) Q(s, a, b) + alpha (r + gamma V(s')),    V(s) = max_x min_b sum_a x(a) Q(s, a, b),

V(s) by a linear program. The claim: minimax-Q learns the minimax policy, which mixes and cannot be exploited.
Q-learning against a fixed opponent learns a policy that a trained challenger exploits. Littman showed it on a soccer
game on 4 by 5 cells, `palaestra/GridSoccer-v0`, by matches against trained challengers. Here the learnt tables are
compared with the exact solution: `palaestra.exact` gives the value of every position and the exploitability of the
learnt policies. Learning does not use either::

    python -m palaestra_baselines.minimax_q --seed 1
    python -m palaestra_baselines.minimax_q --seed 1 --resume      # continues from the last checkpoint

From the paper: the table, the update, gamma = 0.9, and exploration: in a share of its decisions a team acts uniformly
at random, else by its current policy. Ours:

* thousands of matches at once; each decision of all lanes is one batch of updates, then the matrix games of the
  updated positions are solved again;
* that share is a half, not a fifth: before the first goals all action values are equal, every policy is optimal for
  them, and two teams with fixed policies rarely score;
* alpha = h / (h + n) for the n-th sample of an action value (Littman's alpha falls with the number of decisions of
  the run, so positions first visited late are never learnt);
* a match that is truncated at the horizon is bootstrapped: only termination by a rule sets V(s') to 0;
* teams of several agents and alternating order: Q is over joint actions, and a team that does not act has one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numba
import numpy as np

from palaestra import exact, registry
from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.rng import GOLDEN, SHIFT_11, TO_UNIT, mix64
from palaestra.core.run.snapshot import Snapshot
from palaestra.exact.positions import Board, joint_actions
from palaestra.exact.sweeps import solve_positions
from palaestra.game import Game
from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.policy_file import policy_for, save_policy
from palaestra_baselines.common.rollout import check_rules
from palaestra_baselines.common.run_folder import WEIGHTS, RunArgs, RunFolder, evaluation_hint, run_command

METHOD = "minimax_q"
LEARNT = ("q", "visits", "values", "rows", "columns")
"""Arrays of a `Learner` that a checkpoint keeps."""


@dataclass
class Args(RunArgs):
    """Arguments, beside those of `RunArgs`.

    Attributes:
        env_id: Two-team zero-sum game whose positions are enumerable.
        options: Keywords of the game, ``name=value`` each.
        lanes: Matches at once.
        gamma: Discount per decision.
        epsilon: Share of the decisions in which a team acts uniformly at random.
        half_after: Samples after which the step size of an action value is a half.
    """

    SHARES: ClassVar[tuple[str, ...]] = ("gamma", "epsilon")

    env_id: str = "palaestra/GridSoccer-v0"
    options: tuple[str, ...] = ()
    total_steps: int = 10_000_000
    lanes: int = 4096
    gamma: float = 0.9
    epsilon: float = 0.5
    half_after: float = 20.0
    directory: Path = Path("runs/minimax_q/{env_id}")


@dataclass(frozen=True)
class Report:
    """Result of `train`.

    Attributes:
        weights: Saved policy.
        steps: Decisions learnt from.
        log: One row per evaluation, see `Learner.evaluate`; times are of all parts of the run, evaluations included.
    """

    weights: Path
    steps: int
    log: list[dict[str, float]]


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
    """Action values, matches, and the exact solution for their evaluation.

    Attributes:
        table: The game's positions. Learning uses its lists of joint actions and none of its transitions.
        solution: The exact solution, for the log.
        steps: Decisions learnt from.
    """

    def __init__(self, args: Args) -> None:
        """Starts all matches; all action values are 0."""
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
        return counting.state_index(self.sim.states)

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
        """Policies by team: probabilities of its joint actions, ``[P, J]``."""
        return {
            team: self.table.dense(team, p) for team, p in zip(self.table.teams, (self.rows, self.columns), strict=True)
        }

    def evaluate(self) -> dict[str, float]:
        """Exact figures for discounted play from the start, the positions in which the rules start.

        ``value`` is that of the first start for the first team, ``learned_value`` its estimate by minimax-Q,
        ``value_error`` the largest error of the learnt values of all starts, ``exploitability`` the larger one of both
        teams' policies.
        """
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
        """Contents for a checkpoint."""
        snapshot = self.sim.snapshot()
        matches = {"rules": self.sim.rules, "states": snapshot.states.view(np.uint8), "lane_seeds": snapshot.lane_seeds}
        return {name: getattr(self, name) for name in LEARNT} | matches | {"rng": self.rng.bit_generator.state}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores what `state` returned.

        Raises:
            ValueError: It is of other rules or sizes.
        """
        check_rules(self.sim, state["rules"])
        for name in LEARNT:
            here, there = getattr(self, name), state[name]
            if (here.shape, here.dtype) != (there.shape, there.dtype):
                raise ValueError(f"{name} is {there.dtype} {there.shape} instead of {here.dtype} {here.shape}")
            setattr(self, name, there)
        self.rng.bit_generator.state = state["rng"]
        game, states = self.sim.game, state["states"].view(self.sim.game.state_dtype)
        self.sim.restore(Snapshot(game.name, self.sim.rules, states, state["lane_seeds"], {}))


def train(args: Args) -> Report:
    """Trains, or resumes.

    Files of the run, in ``args.folder``: those of `palaestra_baselines.common.run_folder`.
    """
    began_wall, began_cpu = time.perf_counter(), time.process_time()
    weights = args.folder / WEIGHTS
    with RunFolder(args, METHOD, evaluates_at_start=False) as folder:
        learner = Learner(args)
        before = folder.before or {"wall_s": 0.0, "cpu_s": 0.0}
        if folder.before is not None:
            with folder.restoring():
                learner.restore(before)
        learner.steps = folder.steps
        shown: dict[str, float] = {}
        while learner.steps < args.total_steps:
            learner.step()
            if folder.is_due(learner.steps):
                wall_s = before["wall_s"] + time.perf_counter() - began_wall
                spent = {"wall_s": wall_s, "cpu_s": before["cpu_s"] + time.process_time() - began_cpu}
                row = {"steps": learner.steps, **learner.evaluate(), **spent}
                save_policy(weights, learner.policies(), method=METHOD, env_id=args.env_id, args=args.settings, **row)
                folder.record(row, {**learner.state(), **spent})
                shown = {"exploitability": row["exploitability"]}
                folder.progress.say(
                    f"{learner.steps:9d} decisions: value {row['learned_value']:+.4f} "
                    f"(exact {row['value']:+.4f}), exploitability {row['exploitability']:.4f}"
                )
            folder.progress.update(learner.steps, **shown)
    return Report(weights, learner.steps, folder.rows)


# ------------------------------------------------------------------------------------------------------------ player


class MinimaxPlayer:
    """Plays a team by a table of probabilities: an `palaestra.core.run.opponents.Opponent`.

    It recognises a position by the observations of its team. The random draws of a lane come from its seed and the
    number of decisions.

    Attributes:
        memory_size: 1, the number of decisions so far.
        policy_outputs: See `palaestra.core.run.opponents.Opponent`.
    """

    memory_size = 1

    def __init__(self, policy: np.ndarray, game: Game, team: str) -> None:
        """Reads the observations of every position.

        Args:
            policy: Probabilities of joint actions ``[P, J]``.
            game: The rules.
            team: Name of the team.

        Raises:
            ValueError: The policy was made for another game, or positions look alike.
        """
        counting = game.enumeration
        if policy.ndim != 2 or not (policy >= 0.0).all() or not (policy.sum(1) > 0.0).all():
            raise ValueError(f"the policy of {team} is no table of probabilities ({policy.shape})")
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
        board.write_state(np.arange(counting.positions))
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
        """Actions of the team; see `palaestra.core.run.opponents.Opponent`."""
        with np.errstate(over="ignore"):
            streams = mix64(seeds) + (memory[:, 0].astype(np.uint64) + np.uint64(1)) * GOLDEN
            draws = (mix64(streams) >> SHIFT_11) * TO_UNIT
        memory[:, 0] += 1
        positions = [self.known[key] for key in self._keys(observations)]
        self.policy_outputs = {"probability": self.policy[positions][:, None]} if self.agents == 1 else {}
        edges = self.edges[positions]
        chosen = np.minimum((edges <= draws[:, None] * edges[:, -1:]).sum(1), edges.shape[1] - 1)
        return self.choices[chosen].reshape(len(chosen), self.agents)


def load_policy(path: Path, game: Game, team: str) -> MinimaxPlayer:
    """Player of a saved policy; called by `palaestra.core.run.opponents.load_policy`.

    Raises:
        FileError: The file is no saved policy, or one of another game.
    """
    with policy_for(path, game, team) as arrays:
        if team not in arrays:
            raise ValueError(f"it holds policies of {', '.join(sorted(arrays))}, none of {team!r}")
        return MinimaxPlayer(arrays[team], game, team)


def main(argv: Sequence[str] | None = None) -> None:
    """Trains and prints the exact figures."""
    args, report = run_command(Args, METHOD, __doc__ or "", argv, train)
    last = report.log[-1]
    print(
        f"{report.weights}: value {last['learned_value']:+.4f}, exact {last['value']:+.4f}; exploitability "
        f"{last['exploitability']:.4f}; {report.steps} decisions, {last['wall_s']:.0f} s, {last['cpu_s']:.0f} s of "
        "processor"
    )
    print(evaluation_hint(args, report.weights, "random"))


if __name__ == "__main__":
    main()
