"""Plays all lanes of a simulation, and keeps what the learning agents observe, do and receive as reward.

A recorded row is a `Position` (before a decision) and a `Decision`. Lanes use the autoreset mode ``"next_step"``: after
its last decision a match shows its last position; the row of that position starts the next match of the lane, is no
decision of a match and has ``running`` False. `Replay`, one ring of rows, gives single decisions, sequences, or the
last rollout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.run.simulation import Simulation
from palaestra.core.run.snapshot import Snapshot
from palaestra_baselines.common.agents import Roster

RUN_BITS = 32
"""Lanes of run r have the seeds (r << RUN_BITS) + lane."""
OBSERVATIONS = "observations."


@dataclass(frozen=True)
class Position:
    """Inputs of a decision: arrays ``[N, ...]``, or tensors of any leading shape once they come from a store.

    Attributes:
        observations: float32 ``[..., A_role, size]`` by role.
        legal: bool ``[..., A, M]``, see `Roster.read_legal`: alternatives, or numbers that count.
        alive: bool ``[..., A]``: agents in the match.
        asked: bool ``[..., A]``: agents that act now.
        first: bool ``[...]``: the match starts here.
        state: float32 ``[..., S]``, global state for centralised training; None if it is not recorded.
        memory: float32 ``[..., A, H]``, recurrent state of each agent before the decision: 0 at the start of a match
            and for agents out of it; None without recurrence.
    """

    observations: dict[str, Any]
    legal: Any
    alive: Any
    asked: Any
    first: Any
    state: Any = None
    memory: Any = None

    def named(self) -> dict[str, Any]:
        """All arrays by name."""
        arrays = {OBSERVATIONS + role: rows for role, rows in self.observations.items()}
        others = {name: value for name, value in vars(self).items() if name != "observations" and value is not None}
        return arrays | others

    @staticmethod
    def from_named(arrays: dict[str, Any]) -> Position:
        """The inverse of `named`."""
        roles = [name for name in arrays if name.startswith(OBSERVATIONS)]
        observations = {name.removeprefix(OBSERVATIONS): arrays[name] for name in roles}
        return Position(observations, **{name: value for name, value in arrays.items() if name not in roles})


@dataclass(frozen=True)
class Decision:
    """Actions in all lanes and their results.

    Attributes:
        actions: ``[N, A]``, uint8 where all actions fit, else int32; scaled numbers float32 ``[N, A, M]``.
        rewards: float32 ``[N, T]`` of each team, or what else the roster reads as rewards.
        terminated: bool ``[N]``: a rule ended the match; False where the horizon truncated it: the value of its last
            position is then bootstrapped.
        running: bool ``[N]``: it was a decision of a match; False where the lane started its next match.
    """

    actions: np.ndarray
    rewards: np.ndarray
    terminated: np.ndarray
    running: np.ndarray


class Collector:
    """Plays all lanes.

    Attributes:
        sim: The lanes.
        roster: The learning agents; opponents of the simulation play the others.
        store: Where positions and decisions are written.
        rng: Generator of exploration and of random starts.
        position: The position before the next decision.
        steps: Decisions of matches so far; rows that start the next match of a lane are not counted.
    """

    position: Position

    def __init__(
        self,
        sim: Simulation,
        roster: Roster,
        store: Replay,
        seed: int,
        *,
        with_state: bool = False,
        memory_size: int = 0,
        random_starts: bool = False,
    ) -> None:
        """Starts all lanes.

        Args:
            sim: Lanes in the autoreset mode ``"next_step"``.
            roster: The learning agents.
            store: Where to write.
            seed: Number of the run, see `RUN_BITS`.
            with_state: Record the global state.
            memory_size: H, the length of an agent's recurrent state; 0 for none.
            random_starts: Start matches at positions drawn uniformly from all positions of an enumerable game.
        """
        self.sim, self.roster, self.store = sim, roster, store
        self.with_state, self.memory_size, self.random_starts = with_state, memory_size, random_starts
        self.seed, self.steps = seed, 0
        self.rng = np.random.default_rng([seed, 1])
        self._action_dtype = np.float32 if roster.gives_numbers else np.uint8 if roster.actions <= 256 else np.int32
        sim.reset(seed=seed << RUN_BITS)
        if random_starts:
            scatter_starts(sim, np.arange(sim.num_envs), self.rng)
        self._read_position(np.zeros((sim.num_envs, roster.agents, memory_size), np.float32))

    def _running(self) -> np.ndarray:
        return self.sim.states["pending"] == RUNNING

    def _read_position(self, memory: np.ndarray | None) -> None:
        sim, roster = self.sim, self.roster
        alive = roster.read_alive(sim)
        first = self._running() & (sim.states["steps"] == 0)
        if self.memory_size:
            if memory is None:
                raise ValueError("the agents are recurrent: play(actions, memory) wants their new recurrent state")
            memory = np.where((alive & ~first[:, None])[:, :, None], memory, np.float32(0.0))
        self.position = Position(
            roster.read_observations(sim),
            roster.read_legal(sim),
            alive,
            roster.read_asked(sim),
            first,
            sim.state() if self.with_state else None,
            memory if self.memory_size else None,
        )
        self.store.write_position(self.position)

    def play(self, actions: np.ndarray, memory: np.ndarray | None = None) -> Decision:
        """One decision in all lanes.

        Args:
            actions: ``[N, A]``, or scaled numbers ``[N, A, M]``, which are clipped when they are played alone.
            memory: float32 ``[N, A, H]``, recurrent state of the agents after their decision.

        Returns:
            The decision, as it was written to the store.

        Raises:
            ValueError: The agents are recurrent, and ``memory`` is None.
        """
        sim, running = self.sim, self._running()
        self.roster.write_actions(sim, actions)
        sim.step()
        rewards = self.roster.read_rewards(sim)
        decision = Decision(actions.astype(self._action_dtype), rewards, sim.terminated & running, running)
        self.store.write_decision(decision)
        self.steps += int(running.sum())
        if self.random_starts and not running.all():
            scatter_starts(sim, np.flatnonzero(~running), self.rng)
        self._read_position(memory)
        return decision

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint."""
        rng = self.rng.bit_generator.state
        return {**matches_state(self.sim), "rng": rng, "steps": self.steps, "memory": self.position.memory}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores what `state` returned; the store must be restored before.

        Raises:
            ValueError: The matches were played by other rules, or do not fit these lanes.
        """
        restore_matches(self.sim, state)
        self.rng.bit_generator.state, self.steps = state["rng"], state["steps"]
        self._read_position(state["memory"])


def matches_state(sim: Simulation) -> dict[str, Any]:
    """The matches of a simulation as a checkpoint can hold them."""
    snapshot = sim.snapshot()
    return {
        "rules": sim.rules,
        "states": snapshot.states.view(np.uint8).reshape(sim.num_envs, -1),
        "lane_seeds": snapshot.lane_seeds,
        "memories": snapshot.memories,
        "engine": snapshot.engine,
    }


def restore_matches(sim: Simulation, state: Mapping[str, Any]) -> None:
    """Restores what `matches_state` returned.

    Raises:
        ValueError: The matches were played by other rules, or do not fit these lanes.
    """
    check_rules(sim, state["rules"])
    states = np.ascontiguousarray(state["states"]).view(sim.game.state_dtype)[:, 0]
    arrays = (states, state["lane_seeds"], state["memories"], state["engine"])
    sim.restore(Snapshot(sim.game.name, sim.rules, *arrays))


def check_rules(sim: Simulation, rules: str) -> None:
    """Whether matches that were saved under some rules can go on under those of a simulation.

    Raises:
        ValueError: The rules are others.
    """
    if rules != sim.rules:
        raise ValueError(
            f"its matches were played by other rules of {sim.game.name} (another version of palaestra or of the game): "
            "install that version, or train anew with --overwrite"
        )


def scatter_starts(sim: Simulation, lanes: np.ndarray, rng: np.random.Generator) -> None:
    """Puts lanes that have just started onto positions drawn uniformly from all positions of an enumerable game.

    Raises:
        ValueError: The positions of the game are not enumerable.
    """
    enumeration = sim.game.enumeration
    if enumeration is None:
        raise ValueError(f"random starts need positions that can be counted; those of {sim.game.name} cannot")
    snapshot = sim.snapshot()
    rows = snapshot.states[lanes]
    for name, *_ in sim.game.state:
        rows[name] = 0
    enumeration.write_state(rows, rng.integers(enumeration.positions, size=len(lanes)))
    snapshot.states[lanes] = rows
    sim.restore(snapshot)


def epsilon_greedy(
    rng: np.random.Generator, legal: np.ndarray, values: np.ndarray | None, epsilon: float
) -> np.ndarray:
    """Actions int64 ``[N, A]``: each agent's best legal alternative, or a random legal one with probability epsilon.

    Args:
        rng: Generator of the random draws.
        legal: bool ``[N, A, M]``.
        values: float32 ``[N, A, M]``; None draws all actions at random.
        epsilon: Probability of a random action.
    """
    random = np.where(legal, rng.random(legal.shape, np.float32), -1.0).argmax(axis=2)
    if values is None:
        return random
    greedy = np.where(legal, values, -np.inf).argmax(axis=2)
    return np.where(rng.random(random.shape, np.float32) < epsilon, random, greedy)


def random_actions(collector: Collector) -> np.ndarray:
    """Legal actions int64 ``[N, A]``, or scaled numbers float32 ``[N, A, M]``, drawn uniformly for all lanes."""
    legal = collector.position.legal
    if collector.roster.gives_numbers:
        return np.where(legal, 2.0 * collector.rng.random(legal.shape, np.float32) - 1.0, 0.0).astype(np.float32)
    return epsilon_greedy(collector.rng, legal, None, 1.0)


def draw_numbers(rng: np.random.Generator, legal: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> np.ndarray:
    """Scaled numbers float32 ``[N, A, M]`` drawn from normal distributions, not clipped; 0 where they do not count.

    Args:
        rng: Generator of the random draws.
        legal: bool ``[N, A, M]``, numbers that count.
        means: float32 ``[N, A, M]``.
        deviations: float32, ``[A, M]``.
    """
    return np.where(legal, means + deviations * rng.standard_normal(means.shape, np.float32), np.float32(0.0))


def draw_actions(rng: np.random.Generator, legal: np.ndarray, logits: np.ndarray) -> np.ndarray:
    """Actions int64 ``[N, A]`` drawn from a softmax over the legal alternatives, as the largest of perturbed logits.

    Args:
        rng: Generator of the random draws.
        legal: bool ``[N, A, M]``.
        logits: float32 ``[N, A, M]``.
    """
    waits = np.maximum(rng.standard_exponential(logits.shape, np.float32), np.float32(1e-30))
    return np.where(legal, logits - np.log(waits), -np.inf).argmax(axis=2)


@dataclass(frozen=True)
class Batch:
    """Single decisions.

    Attributes:
        before: Positions ``[B, ...]`` before the decisions.
        after: Positions after them: where a match ended, its last one.
        actions: int64 ``[B, A]``, or float32 ``[B, A, M]``.
        rewards: float32 ``[B, T]`` of each team.
        continues: float32 ``[B]``: 0 where a rule ended the match, else 1.
        weights: float32 ``[B]``: 0 where a lane started its next match, which is no decision, else 1.
    """

    before: Position
    after: Position
    actions: torch.Tensor
    rewards: torch.Tensor
    continues: torch.Tensor
    weights: torch.Tensor


@dataclass(frozen=True)
class Sequences:
    """Sequences of L successive decisions, time first. They may cross from one match to the next.

    Attributes:
        positions: Positions ``[L + 1, B, ...]``; ``positions.memory[0]`` is the recurrent state at the beginning.
        keeps: float32 ``[L + 1, B, A, 1]``: an agent's recurrent state before a position is multiplied by this: 0 at
            the start of a match and out of the match, else 1.
        actions: int64 ``[L, B, A]``, or float32 ``[L, B, A, M]``.
        rewards: float32 ``[L, B, T]``.
        continues: float32 ``[L, B]``, as in `Batch`.
        weights: float32 ``[L, B]``, as in `Batch`.
    """

    positions: Position
    keeps: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    continues: torch.Tensor
    weights: torch.Tensor


class Replay:
    """The last decisions of all lanes.

    Attributes:
        arrays: Arrays ``[rows, N, ...]`` by name, allocated when something is first written.
        head: Row of the last position, whose decision is not written yet.
        filled: Rows of decisions that can be drawn.
    """

    def __init__(self, rows: int, lanes: int) -> None:
        """Prepares the ring.

        Args:
            rows: Decisions of a lane that are kept, plus one: the row at the head waits for its decision.
            lanes: N.
        """
        self.rows, self.lanes = rows, lanes
        self.arrays: dict[str, np.ndarray] = {}
        self._flat: dict[str, torch.Tensor] = {}
        self.head = self.filled = 0

    def _array(self, name: str, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        if name not in self.arrays:
            self.arrays[name] = np.zeros((self.rows, *shape), dtype)
            self._flat[name] = torch.from_numpy(self.arrays[name].reshape(self.rows * self.lanes, *shape[1:]))
        return self.arrays[name]

    def _write(self, name: str, value: np.ndarray) -> None:
        self._array(name, value.shape, value.dtype)[self.head] = value

    def write_position(self, position: Position) -> None:
        """Writes the position before the next decision."""
        for name, value in position.named().items():
            self._write(name, value)

    def write_decision(self, decision: Decision) -> None:
        """Writes the decision at the last position and moves to the next row."""
        for name, value in vars(decision).items():
            self._write(name, value)
        self.head = (self.head + 1) % self.rows
        self.filled = min(self.filled + 1, self.rows - 1)

    def observed(self) -> dict[str, np.ndarray]:
        """All observations that are kept, ``[rows * N, A_role, size]`` by role."""
        flat = {name: array[: self.filled] for name, array in self.arrays.items() if name.startswith(OBSERVATIONS)}
        return {n.removeprefix(OBSERVATIONS): rows.reshape(-1, *rows.shape[2:]) for n, rows in flat.items()}

    def sample(self, rng: np.random.Generator, size: int) -> Batch:
        """Draws single decisions uniformly."""
        rows = (self.head - 1 - rng.integers(self.filled, size=size)) % self.rows
        lanes = rng.integers(self.lanes, size=size)
        before = torch.from_numpy(rows * self.lanes + lanes)
        after = torch.from_numpy((rows + 1) % self.rows * self.lanes + lanes)
        return Batch(self._positions(before), self._positions(after), *self._decisions(before))

    def sample_sequences(self, rng: np.random.Generator, size: int, length: int) -> Sequences:
        """Draws sequences of ``length`` decisions uniformly from all that lie in the ring.

        Raises:
            ValueError: Fewer decisions of a lane have been written.
        """
        self._check_length(length)
        back = length + rng.integers(self.filled - length + 1, size=size)
        return self._sequences(self.head - back, rng.integers(self.lanes, size=size), length)

    def last(self, length: int) -> Sequences:
        """The last ``length`` decisions of all lanes: a rollout, ``B`` is N.

        Raises:
            ValueError: Fewer decisions of a lane have been written.
        """
        self._check_length(length)
        return self._sequences(np.array(self.head - length), np.arange(self.lanes), length)

    def _check_length(self, length: int) -> None:
        if not 1 <= length <= self.filled:
            raise ValueError(f"sequences of {length} decisions were asked for; {self.filled} of a lane are kept")

    def _sequences(self, starts: np.ndarray, lanes: np.ndarray, length: int) -> Sequences:
        rows = (starts + np.arange(length + 1)[:, None]) % self.rows
        index = torch.from_numpy(rows * self.lanes + lanes)
        positions = self._positions(index)
        keeps = (positions.alive & ~positions.first[..., None])[..., None].float()
        return Sequences(positions, keeps, *self._decisions(index[:-1]))

    def _positions(self, index: torch.Tensor) -> Position:
        names = [name for name in self._flat if name not in Decision.__dataclass_fields__]
        return Position.from_named({name: self._flat[name][index] for name in names})

    def _decisions(self, index: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        actions, rewards, terminated, running = (self._flat[name][index] for name in Decision.__dataclass_fields__)
        actions = actions if actions.is_floating_point() else actions.long()
        return actions, rewards, 1.0 - terminated.float(), running.float()

    def state(self) -> dict[str, Any]:
        """Contents for a checkpoint: the rows that have been written."""
        used = self.rows if self.filled == self.rows - 1 else self.filled + 1
        return {"head": self.head, "filled": self.filled, "arrays": {n: a[:used] for n, a in self.arrays.items()}}

    def restore(self, state: dict[str, Any]) -> None:
        """Restores what `state` returned."""
        self.head, self.filled = state["head"], state["filled"]
        for name, array in state["arrays"].items():
            self._array(name, array.shape[1:], array.dtype)[: len(array)] = array


def generalised_advantages(
    rollout: Sequences, rewards: torch.Tensor, values: torch.Tensor, gamma: float, gae_lambda: float
) -> torch.Tensor:
    """Advantages by generalised advantage estimation (Schulman et al., arXiv 1506.02438).

        delta_t = r_t + gamma V_{t+1} - V_t,    A_t = delta_t + gamma lambda A_{t+1}

    V_{t+1} is 0 where a rule ended the match, and that of the last position where the horizon truncated it; A_{t+1} is
    0 in both cases.

    Args:
        rollout: Says where matches end.
        rewards: ``[L, B, K]``, of teams or of agents.
        values: ``[L + 1, B, K]``, of the positions.
        gamma: Discount per decision.
        gae_lambda: Decay of the estimate.

    Returns:
        ``[L, B, K]``; 0 where a lane started its next match. Added to ``values[:-1]`` they are the targets of the
        values.
    """
    continues, weights = rollout.continues[..., None], rollout.weights[..., None]
    deltas = rewards + gamma * continues * values[1:] - values[:-1]
    decays = gamma * gae_lambda * continues
    advantages, carried = torch.empty_like(deltas), torch.zeros_like(deltas[0])
    for t in range(len(deltas) - 1, -1, -1):
        carried = weights[t] * (deltas[t] + decays[t] * carried)
        advantages[t] = carried
    return advantages


def value_targets(
    rewards: torch.Tensor, values: torch.Tensor, batch: Sequences, gamma: float, steps: int
) -> torch.Tensor:
    """Targets ``[G, L, B]`` of values from rewards of n decisions, and the value of the position after them.

        y_t = r_t + gamma c_t V_{t+1} for n = 1, else r_t + gamma c_t (that of t + 1 for n - 1)

    Where decision t was the last one of a match it is V_{t+1} for every n.

    Args:
        rewards: ``[L + n - 1, B]``.
        values: ``[G, L + n - 1, B]``, of the positions after the decisions.
        batch: Says where matches end.
        gamma: Discount per decision.
        steps: n.
    """
    after, targets = values, rewards
    discounts, goes_on = gamma * batch.continues, batch.weights > 0.0
    for n in range(steps):
        length = len(rewards) - n
        targets = rewards[:length] + discounts[:length] * after
        after = torch.where(goes_on[1:length], targets[:, 1:], values[:, : length - 1])
    return targets
