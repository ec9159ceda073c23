"""What runs in each process of `palaestra.scale.sampler.sample`: lanes, a policy, and the arrays of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from palaestra import registry
from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.contract import factories
from palaestra.core.run.simulation import Simulation
from palaestra.scale.pieces import accept, arrived

RUN_BITS = 32
"""Lanes of run r have the seeds (r << RUN_BITS) + lane, counted over all actors of the run."""
RESULTS = ("rewards", "terminated", "truncated", "running")
"""Arrays of a batch that no policy names."""


class Policy(Protocol):
    """What plays the lanes of an actor, and says what is kept. It belongs to one simulation.

    Arrays are ``[N, ...]``, with the same names, shapes and dtypes in every call. They are copied at once and may be
    views of the simulation's. They must be a function of the position, the weights and the generator.
    """

    def load(self, weights: Mapping[str, np.ndarray]) -> None:
        """Takes weights; the arrays are read-only memory shared by all actors of a machine: copy what you change."""
        ...

    def observe(self, sim: Simulation) -> Mapping[str, np.ndarray]:
        """What is kept of a position, by name. Called before each decision, and again after the last of a batch."""
        ...

    def act(self, sim: Simulation, observed: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Writes actions into ``sim.actions``; returns what else is kept, by name: actions, log-probabilities, ...

        Args:
            sim: The lanes.
            observed: What `observe` returned, as it was kept.
        """
        ...


@dataclass(frozen=True)
class Recipe:
    """How an actor makes its lanes and its policy; plain data, which every machine understands.

    Attributes:
        id: Registered id.
        row: What registers it where it is not known, see `palaestra.scale.pieces.row_data`.
        keywords: Of `palaestra.make_batch`, opponents left out.
        opponents: Players by team, see `palaestra.scale.pieces.travelling`.
        lanes: N.
        length: T, decisions of a lane in a batch.
        seed: Number of the run.
        policy: ``"module:function"``, see `palaestra.scale.sampler.sample`.
        made_with: Versions and rules of the driver, see `palaestra.scale.pieces.made_with`.
    """

    id: str
    row: tuple[str, str, str, dict[str, Any]]
    keywords: dict[str, Any]
    opponents: dict[str, Any]
    lanes: int
    length: int
    seed: int
    policy: str
    made_with: dict[str, str]


def make_lanes(id: str, lanes: int, opponents: Mapping[str, Any], keywords: Mapping[str, Any]) -> Simulation:
    """The lanes of an actor; no match has started."""
    return registry.make_batch(id, lanes, autoreset_mode="next_step", opponents=opponents, **keywords)


class LaneSampler:
    """Lanes and their policy. All is made by the first call of `sample`, whose errors Ray hands on as they are.

    Attributes:
        arrays: The batch, ``[T + 1, N, ...]`` or ``[T, N, ...]`` by name. Each call of `sample` writes it anew.
    """

    def __init__(self, recipe: Recipe, number: int) -> None:
        """Makes nothing yet.

        Args:
            recipe: What to make.
            number: Of this process among all that the run starts, replacements included: each has its own seeds.
        """
        self._recipe, self._number = recipe, number
        self._version = -1
        self.arrays: dict[str, np.ndarray] = {}

    def sample(self, version: int, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Plays T decisions in all lanes.

        Args:
            version: Of the weights; they are loaded where it is another one than before.
            weights: NumPy arrays by name.

        Returns:
            `arrays`.

        Raises:
            WorkerRefused: This process has another version of palaestra or of NumPy than the driver, or other rules.
            ValueError: The policy returned other arrays than before, or a name of `RESULTS`.
            Exception: What the policy or the game raised.
        """
        if not self.arrays:
            self._start()
        if version != self._version:
            self._policy.load(weights)
            self._version = version
        sim, policy, length = self._sim, self._policy, self._recipe.length
        rewards, terminated, truncated, running = (self.arrays[name] for name in RESULTS)
        for t in range(length):
            observed = self._keep("observe", t, length + 1, policy.observe(sim))
            self._keep("act", t, length, policy.act(sim, observed))
            np.equal(sim.states["pending"], RUNNING, out=running[t])
            sim.step()
            rewards[t], terminated[t], truncated[t] = sim.rewards, sim.terminated, sim.truncated
        self._keep("observe", length, length + 1, policy.observe(sim))
        return self.arrays

    def _start(self) -> None:
        """Makes policy and lanes."""
        recipe, number = self._recipe, self._number
        accept(recipe.id, recipe.row, recipe.made_with, recipe.keywords)
        with arrived([*recipe.opponents.values()]) as players:
            opponents = dict(zip(recipe.opponents, players, strict=True))
            self._sim = sim = make_lanes(recipe.id, recipe.lanes, opponents, recipe.keywords)
        make_policy = factories.load(recipe.policy)
        self._policy: Policy = make_policy(sim, np.random.default_rng([recipe.seed, number]))
        sim.reset(seed=(recipe.seed << RUN_BITS) + number * recipe.lanes)
        self._layouts: dict[str, Any] = {}
        self.arrays = {"rewards": np.zeros((recipe.length, *sim.rewards.shape), sim.rewards.dtype)}
        self.arrays |= {name: np.zeros((recipe.length, recipe.lanes), np.bool_) for name in RESULTS[1:]}

    def _keep(self, call: str, t: int, rows: int, named: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Copies arrays into row t of the batch, which has so many rows; returns the row by name."""
        layout = {name: (value.shape, value.dtype) for name, value in named.items()}
        if call not in self._layouts:
            if taken := self.arrays.keys() & layout.keys():
                raise ValueError(f"policy.{call}: the name {min(taken)!r} is taken, choose another")
            self._layouts[call] = layout
            self.arrays |= {name: np.zeros((rows, *shape), dtype) for name, (shape, dtype) in layout.items()}
        elif layout != self._layouts[call]:
            raise ValueError(f"policy.{call} must always return the same arrays: {self._layouts[call]}, got {layout}")
        row = {name: self.arrays[name][t] for name in named}
        for name, value in named.items():
            row[name][...] = value
        return row
