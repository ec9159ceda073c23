"""Batches of transitions, played by actors on the machines of a Ray cluster, for one learner.

    from palaestra import scale

    opponents = {"blue": "builtin"}
    with scale.sample("palaestra/Skirmish-3m-v0", "my_module:policy", weights, opponents=opponents) as sampler:
        for batch in sampler:
            weights = learn(batch.arrays, batch.version)
            sampler.publish(weights)

``my_module:policy`` is a function ``policy(sim, rng)`` that all machines can import. It gets the actor's lanes, a
`palaestra.make_batch` in the autoreset mode ``"next_step"``, and a NumPy generator, and returns a
`palaestra.scale.sampler_actor.Policy`, which plays the agents without an opponent and says what is kept.

* **Arrays** of a batch are ``[T, N, ...]``: what the policy's ``act`` returned, and ``rewards`` (``[T, N, A]``, of all
  agents), ``terminated``, ``truncated`` and ``running`` (bool). What its ``observe`` returned is ``[T + 1, N, ...]``:
  the last row is the position after the last decision. After its last decision a lane shows the last position of its
  match; the next row starts another match, is no decision and has ``running`` False. So the value of a truncated match
  is that of row t + 1, and no other array of final observations is needed.
* **Copies.** A byte is copied from the simulation into the actor's batch, and from there into Ray's object store. The
  learner's arrays are read-only views of the store: keep copies, not batches, or the store fills. (Between machines Ray
  transfers an object once.)
* **Back pressure.** Each actor has at most ``depth`` batches that are requested and not read. A batch counts as read
  when the next one is asked for; its actor is then asked for another one, by the newest weights. One actor with
  ``depth=1`` samples on-policy: it waits for the learner.
* **Determinism.** Batches come from the actors in turns. The run is a function of its arguments and of what the learner
  publishes after each batch, whatever the timing.
* **Losses.** An actor that dies, or its machine, is replaced. Its requests are repeated with the newest weights, in new
  matches with seeds that nobody had before. ``sampler.losses`` counts such actors.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import itertools
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.contract.keywords import check_count
from palaestra.core.run.opponents import OpponentSpec
from palaestra.players.named_players import named_player
from palaestra.scale.cluster import connected, work_error
from palaestra.scale.pieces import made_with, row_data, travelling
from palaestra.scale.sampler_actor import LaneSampler, Recipe, make_lanes

MOST = {"actors": 2**10, "lanes": 2**20, "length": 2**20, "depth": 2**10}
"""Largest values of arguments. The seeds of a run suffice for 2**12 actors of the most lanes, replacements included."""
MOST_SEED = 2**31 - 1
"""Later runs are those of evaluations."""
MOST_LOSSES = 5
"""Replacements of an actor without a batch between them before their task is taken for the cause."""
FIXED = {
    "autoreset_mode": 'it is "next_step"',
    "compiled": "rules are compiled",
    "out_of_range": 'it is "clip"',
    "render_size": "an actor draws no pictures",
    "threads": "an actor has one processor, actors= says how many there are",
    "workers": "an actor has one processor, actors= says how many there are",
}
"""Keywords of `palaestra.make_batch` that `sample` does not take, and why."""


KEEP_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**30)}
"""Environment of actors, bytes: glibc keeps the memory of a network's temporary arrays. Else it gives it back to the
system after each decision, and the page faults cost up to 60 % of the time of a batch."""


@dataclass(frozen=True)
class Batch:
    """Decisions of all lanes of an actor.

    Attributes:
        arrays: Read-only, ``[T, N, ...]`` or ``[T + 1, N, ...]`` by name, see the module.
        version: Of the weights that made it.
        actor: Its number, from 0.
    """

    arrays: dict[str, np.ndarray]
    version: int
    actor: int


@contextmanager
def sample(
    id: str,
    policy: str,
    weights: Mapping[str, np.ndarray],
    *,
    actors: int = 2,
    address: str | None = None,
    lanes: int = 1024,
    length: int = 64,
    seed: int = 0,
    depth: int = 2,
    opponents: Mapping[str, OpponentSpec] | None = None,
    **keywords: Any,
) -> Iterator[Sampler]:
    """Starts the actors; they end with the ``with`` block, and so does a cluster that was started for them.

    Args:
        id: Registered id.
        policy: ``"module:function"``, see the module.
        weights: The first weights, version 0.
        actors: Number of actors, one processor each.
        address: Of a Ray cluster, see `palaestra.scale.cluster.connected`; None starts one on this machine.
        lanes: N, matches at once in an actor.
        length: T, decisions of a lane in a batch.
        seed: Number of the run. The n-th actor that is started, n from 0 and replacements included, has the lanes of
            seeds ``(seed << 32) + n * lanes`` and on, and the generator ``numpy.random.default_rng([seed, n])``.
        depth: Most batches of an actor that are requested and not read.
        opponents: Players of teams: scripts, files of policies, or what stands at the top level of a module, as
            ``"module:name"`` or itself. The policy plays the other teams.
        **keywords: The game's own, as for `palaestra.make_batch`.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: There is no cluster at the address.
        TypeError: An unknown keyword, weights that are no arrays, or an opponent that cannot travel.
        ValueError: A value of an argument; names both.
    """
    for name, count in {"actors": actors, "lanes": lanes, "length": length, "depth": depth}.items():
        check_count(name, count, 1, MOST[name])
    check_count("seed", seed, 0, MOST_SEED)
    if not isinstance(policy, str) or not all(policy.partition(":")) or policy.startswith("__main__:"):
        raise ValueError(
            f'policy must be "module:function", which every machine can import (not __main__), got {policy!r}'
        )
    for name in FIXED.keys() & keywords.keys():
        raise TypeError(f"{name}: not a keyword of sample: {FIXED[name]}")
    players = {team: named_player(who) if isinstance(who, str) else who for team, who in (opponents or {}).items()}
    make_lanes(id, lanes, players, keywords).close()  # what is wrong with them is said before a cluster is asked
    with connected(address, actors) as ray:
        travelled = {team: travelling(player, ray.put) for team, player in (opponents or {}).items()}
        row, versions = row_data(registry.row(id)), made_with(id, keywords)
        recipe = Recipe(id, row, keywords, travelled, lanes, length, seed, policy, versions)
        sampler = Sampler(ray, recipe, weights, actors, depth)
        try:
            sampler.start()
            yield sampler
        finally:
            sampler.close()


class Sampler:
    """The stream of batches: an iterator without an end. See `sample`.

    Attributes:
        version: Of the newest weights.
        losses: Actors that died so far.
    """

    def __init__(self, ray: Any, recipe: Recipe, weights: Mapping[str, np.ndarray], actors: int, depth: int) -> None:
        """Publishes the first weights and starts nothing; arguments as of `sample`, Ray connected."""
        self.version, self.losses = -1, 0
        self._ray, self._recipe, self._depth = ray, recipe, depth
        options = {"num_cpus": 1, "max_restarts": 0, "max_task_retries": 0, "runtime_env": {"env_vars": KEEP_MEMORY}}
        self._kind = ray.remote(**options)(LaneSampler)
        self._numbers = itertools.count()
        self._actors: list[Any] = [None] * actors
        self._requests: list[deque[tuple[Any, int]]] = [deque() for _ in range(actors)]
        self._losses_in_a_row = [0] * actors
        self._turns = itertools.cycle(range(actors))
        self._read: int | None = None
        self.publish(weights)

    def start(self) -> None:
        """Starts all actors; each has its first requests."""
        processors = self._ray.cluster_resources().get("CPU", 0)
        if processors < len(self._actors):
            text = f"the cluster has {processors:g} processors for {len(self._actors)} actors: waiting for more"
            warnings.warn(text, stacklevel=4)  # that of the `with` statement
        for actor in range(len(self._actors)):
            self._start(actor)

    def publish(self, weights: Mapping[str, np.ndarray]) -> int:
        """Gives requests from now on other weights; they are copied. Returns their version, one more than the last.

        Raises:
            TypeError: Some are no NumPy arrays.
        """
        for name, value in weights.items():
            if not isinstance(value, np.ndarray):
                raise TypeError(f"weights are NumPy arrays by name: {name!r} is {type(value).__name__}")
        self._weights = self._ray.put(dict(weights))
        self.version += 1
        return self.version

    def __iter__(self) -> Sampler:
        return self

    def __next__(self) -> Batch:
        """The next batch, of the next actor.

        Raises:
            WorkerRefused: A machine has another version of palaestra, of NumPy, or other rules.
            ImportError: A machine has no palaestra, or cannot import the policy.
            RuntimeError: An actor died again and again.
            Exception: What the policy or the game raised.
        """
        if self._read is not None:
            self._request(self._read)
            self._read = None
        actor = next(self._turns)
        while (arrays := self._oldest(actor)) is None:
            self._replace(actor)
        self._losses_in_a_row[actor] = 0
        self._read = actor
        _, version = self._requests[actor].popleft()
        return Batch(arrays, version, actor)

    def close(self) -> None:
        """Ends the actors at once, whatever they do."""
        for actor in self._actors:
            if actor is not None:
                self._ray.kill(actor)
        self._actors = []

    def _start(self, actor: int) -> None:
        self._actors[actor] = self._kind.remote(self._recipe, next(self._numbers))
        for _ in range(self._depth):
            self._request(actor)

    def _request(self, actor: int) -> None:
        reference = self._actors[actor].sample.remote(self.version, self._weights)
        self._requests[actor].append((reference, self.version))

    def _oldest(self, actor: int) -> dict[str, np.ndarray] | None:
        """The batch of the actor's oldest request; None if it is lost."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(self._requests[actor][0][0])
        except errors.RayTaskError as error:
            raised = work_error(error)
            raised.add_note(f"in actor {actor}: {error}")
            raise raised from None
        except (errors.RayActorError, errors.NodeDiedError, errors.ObjectLostError, errors.OutOfMemoryError) as error:
            if "No module named 'palaestra" in str(error):  # what an actor is made of could not be read
                raise ImportError(
                    "a worker of the cluster cannot import 'palaestra': install it on every machine"
                ) from error
            self._losses_in_a_row[actor] += 1
            if self._losses_in_a_row[actor] > MOST_LOSSES:
                raise RuntimeError(f"actor {actor} died {MOST_LOSSES + 1} times without a batch: {error}") from None
            return None

    def _replace(self, actor: int) -> None:
        """Another actor instead of one that died, or is out of reach: that one is ended."""
        self.losses += 1
        self._ray.kill(self._actors[actor])
        self._requests[actor].clear()
        self._start(actor)
