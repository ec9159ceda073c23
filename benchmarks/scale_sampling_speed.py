"""Speed of `palaestra.scale.sampler`: two actors next to the same sampling in one process, and copies of a byte.

Part of ``speed.py``, as measurement zr; ``make test-ray`` makes the environment that has Ray, ``build/ray``.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from measurement import Measurement, NotHere, ReportProgress
from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.scale.pieces import made_with, row_data
from palaestra.scale.sampler import sample
from palaestra.scale.sampler_actor import LaneSampler, Recipe

TAG, LANES, LENGTH, ACTORS, DEPTH = "palaestra/TeamTag-2v2-v0", 1024, 64, 2, 2
WIDTHS = (21, 64, 64, 5)
POLICY = "scale_sampling_speed:policy"
"""By the name of this file: actors have another ``__main__``."""
ROUNDS, BATCHES = 7, 8
SPEED_BAR, COPIES_BAR = 1.5, 3.0


class Network:
    """A perceptron by torch, one thread; it plays all agents and keeps what PPO learns from."""

    def __init__(self, rng: np.random.Generator) -> None:
        torch.set_num_threads(1)
        self._rng = rng

    def load(self, weights: Mapping[str, np.ndarray]) -> None:
        """See `palaestra.scale.sampler_actor.Policy`, here and below."""
        self._layers = [torch.tensor(weights[str(k)]) for k in range(len(weights))]

    def observe(self, sim: Simulation) -> dict[str, np.ndarray]:
        """All that agents see, and which of them act."""
        observations: Any = sim.observations
        return {"observations": observations, "acting": sim.acting}

    def act(self, sim: Simulation, observed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Draws actions from a softmax."""
        hidden = torch.from_numpy(observed["observations"])
        for number, layer in enumerate(self._layers):
            hidden = (hidden if number == 0 else torch.relu(hidden)) @ layer
        logs = hidden.log_softmax(-1)
        waits = torch.from_numpy(self._rng.standard_exponential(logs.shape, np.float32))
        actions = (logs - waits.log()).argmax(-1, keepdim=True)
        taken: Any = sim.actions
        taken[...] = actions[..., 0].numpy()
        return {"actions": taken, "log_probabilities": logs.gather(-1, actions)[..., 0].numpy()}


def policy(sim: Simulation, rng: np.random.Generator) -> Network:
    """What the actors import."""
    return Network(rng)


def weights() -> dict[str, np.ndarray]:
    """Random layers by number."""
    rng = np.random.default_rng(0)
    sizes = enumerate(pairwise(WIDTHS))
    return {str(k): (rng.standard_normal(size) / size[0] ** 0.5).astype(np.float32) for k, size in sizes}


def in_this_process() -> LaneSampler:
    """What one actor does, without Ray."""
    recipe = Recipe(TAG, row_data(registry.row(TAG)), {}, {}, LANES, LENGTH, 0, POLICY, made_with(TAG, {}))
    return LaneSampler(recipe, 0)


def sampling(report_progress: ReportProgress) -> list[Measurement]:
    """The stream of two actors, read by a learner that does nothing, and one process; both in turns, start left out.

    Raises:
        NotHere: Ray is missing.
    """
    one, given = in_this_process(), weights()
    alone: Callable[[], Any] = lambda: one.sample(0, given)  # noqa: E731
    best = [float("inf")] * 2
    try:
        with sample(TAG, POLICY, given, actors=ACTORS, lanes=LANES, length=LENGTH, depth=DEPTH) as sampler:
            batch = next(sampler)
            for number in range(ROUNDS):
                report_progress(f"{number + 1}/{ROUNDS}")
                for _ in range(ACTORS * DEPTH + 1):  # made while the other was timed
                    next(sampler)
                for k, call in enumerate((lambda: next(sampler), alone)):
                    if k == 1:
                        time.sleep(0.3)  # until the actors have done what was asked for
                    start = time.perf_counter()
                    for _ in range(BATCHES):
                        call()
                    best[k] = min(best[k], (time.perf_counter() - start) / BATCHES)
            copies = copies_of_a_byte(one, batch.arrays)
    except ImportError as error:
        raise NotHere(str(error)) from error
    size = sum(array.nbytes for array in batch.arrays.values())
    stream, process = (LANES * LENGTH / seconds for seconds in best)
    note = f"M decisions of lanes/s: {stream / 1e6:.2f} to {process / 1e6:.2f}, {size / 1e6:.1f} MB a batch"
    about = f"TeamTag 2v2, {LANES} lanes, T = {LENGTH}: {ACTORS} Ray actors over one process without Ray"
    return [
        Measurement("", about, stream / process, SPEED_BAR, True, note),
        Measurement("", "copies of a byte from the simulation to a mini-batch", copies, COPIES_BAR, False),
    ]


def copies_of_a_byte(one: LaneSampler, read: Mapping[str, np.ndarray]) -> float:
    """Copies of a mean byte from the simulation to the learner's mini-batch, by looking at memory.

    Args:
        one: Lanes in this process.
        read: Arrays of a batch as the learner gets them.

    Returns:
        1 into the batch, 1 into the object store, and 1 into the mini-batch; besides, the share of bytes that pickle
        copies (those that it does not hand over as the memory that was written), and of those that Ray copies out of
        the store (arrays that own their memory or may be written).
    """
    written = one.arrays
    buffers: list[pickle.PickleBuffer] = []
    pickle.dumps(one.sample(0, weights()), protocol=5, buffer_callback=buffers.append)
    handed = {np.frombuffer(buffer.raw(), np.uint8).ctypes.data for buffer in buffers}
    total = sum(array.nbytes for array in written.values())
    pickled = sum(array.nbytes for array in written.values() if array.ctypes.data not in handed)
    owned = sum(array.nbytes for array in read.values() if array.flags.owndata or array.flags.writeable)
    return 3.0 + pickled / total + owned / total
