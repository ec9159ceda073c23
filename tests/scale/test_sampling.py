"""Batches from Ray actors: what they hold, when they are made, and what happens where an actor dies or refuses."""

# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import palaestra
from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.scale.cluster import connected
from palaestra.scale.pieces import WorkerRefused, made_with, row_data
from palaestra.scale.sampler import Batch, sample
from palaestra.scale.sampler_actor import LaneSampler, Recipe

pytestmark = pytest.mark.ray
ROOT = Path(__file__).parents[2]
TAG, LANES, LENGTH, ACTORS = "palaestra/TeamTag-2v2-v0", 8, 4, 2
SIZES: dict[str, Any] = {"actors": ACTORS, "lanes": LANES, "length": LENGTH}
POLICY = "test_sampling:policy"


class RandomMoves:
    """Plays at random and keeps where it runs, which weights it has, how many decisions it made, and the lanes."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.made = rng, 0

    def load(self, weights: Mapping[str, np.ndarray]) -> None:
        self.bias, self.is_wrong = weights["bias"], bool(weights["is_wrong"])

    def observe(self, sim: Simulation) -> dict[str, np.ndarray]:
        return {"observations": sim.observations, "seeds": sim.lane_seeds}  # type: ignore[dict-item]

    def act(self, sim: Simulation, observed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        if self.is_wrong:
            raise ZeroDivisionError("wrong weights")
        self.made += 1
        taken: Any = sim.actions
        taken[...] = self.rng.integers(5, size=taken.shape)
        if os.environ.get("COUNT_FILE"):
            with Path(os.environ["COUNT_FILE"]).open("a") as file:
                file.write(".")
        facts = {"bias": self.bias, "pid": os.getpid()}
        return {"actions": taken, **{name: np.full(sim.num_envs, value) for name, value in facts.items()}}


def policy(sim: Simulation, rng: np.random.Generator) -> RandomMoves:
    """What actors import from this file."""
    return RandomMoves(rng)


def dies(sim: Simulation, rng: np.random.Generator) -> RandomMoves:
    os._exit(1)


def weights(bias: float = 0.0, is_wrong: bool = False) -> dict[str, np.ndarray]:
    return {"bias": np.array(bias), "is_wrong": np.array(is_wrong)}


@pytest.fixture(scope="module", autouse=True)
def connection(cluster: Any) -> Iterator[Any]:
    """One for all tests."""
    with connected(cluster.address, ACTORS) as ray:
        yield ray


def run(batches: int, **keywords: Any) -> list[Batch]:
    """Batches of a learner that publishes after each of them; copies."""
    read = []
    with sample(TAG, POLICY, weights(), **{**SIZES, **keywords}) as sampler:
        for number, batch in enumerate(itertools.islice(sampler, batches)):
            read.append(Batch({name: array.copy() for name, array in batch.arrays.items()}, batch.version, batch.actor))
            assert sampler.publish(weights(number + 1.0)) == number + 1
    return read


@pytest.fixture(scope="module")
def read() -> list[Batch]:
    return run(8, seed=1)


def test_two_runs_of_a_seed_are_equal_to_the_bit(read: list[Batch]):
    again = run(8, seed=1)
    assert [(b.actor, b.version) for b in read] == [(b.actor, b.version) for b in again]
    for one, two in zip(read, again, strict=True):
        assert bits(one) == bits(two)


def bits(batch: Batch) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in batch.arrays.items() if name != "pid"}


def test_batches_come_in_turns_by_the_weights_that_were_newest_when_they_were_requested(read: list[Batch]):
    assert [batch.actor for batch in read] == [0, 1] * 4
    # the first two of each actor are requested at the start, the third when the first has been read and learnt from
    assert [batch.version for batch in read] == [0, 0, 0, 0, 1, 2, 3, 4]
    assert all((batch.arrays["bias"] == batch.version).all() for batch in read)


def test_a_batch_is_what_the_lanes_of_the_actor_play_in_this_process(read: list[Batch]):
    """Lanes of all actors have the seeds of one batch of them."""
    sim = palaestra.make_batch(TAG, ACTORS * LANES, autoreset_mode="next_step")
    sim.reset(seed=1 << 32)
    for batches in zip(read[::2], read[1::2], strict=True):
        both = {name: np.concatenate([b.arrays[name] for b in batches], axis=1) for name in batches[0].arrays}
        for t in range(LENGTH):
            assert np.array_equal(both["observations"][t], sim.observations)
            sim.step(both["actions"][t])
            for name in ("rewards", "terminated", "truncated"):
                assert np.array_equal(both[name][t], getattr(sim, name))
        assert np.array_equal(both["observations"][LENGTH], sim.observations)


def in_this_process(policy: str, length: int = LENGTH) -> LaneSampler:
    return LaneSampler(
        Recipe(TAG, row_data(registry.row(TAG)), {}, {}, LANES, length, 0, policy, made_with(TAG, {})), 0
    )


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process can import this file as actors do."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.mark.usefixtures("importable")
def test_after_a_match_the_last_position_is_a_row_and_the_start_of_the_next_is_no_decision():
    arrays = in_this_process(POLICY, 60).sample(0, weights())  # TeamTag is truncated after 50 decisions
    assert np.flatnonzero(arrays["truncated"].all(axis=1)).tolist() == [49]
    assert np.flatnonzero(arrays["truncated"].any(axis=1)).tolist() == [49]
    assert np.flatnonzero(~arrays["running"].any(axis=1)).tolist() == [50]
    assert not arrays["rewards"][50].any()


def test_the_learner_reads_the_object_store_itself():
    with sample(TAG, POLICY, weights(), **{**SIZES, "actors": 1, "lanes": 1024}) as sampler:
        arrays = next(sampler).arrays
        assert sum(array.nbytes for array in arrays.values()) > 2**20  # Ray hands over small results in another way
        assert [name for name, a in arrays.items() if a.flags.owndata or a.flags.writeable] == []


@pytest.mark.usefixtures("importable")
def test_an_actor_hands_ray_the_memory_that_it_wrote():
    one = in_this_process(POLICY)
    first = dict(one.sample(0, weights()))
    handed: list[pickle.PickleBuffer] = []
    pickle.dumps(one.sample(0, weights()), protocol=5, buffer_callback=handed.append)
    places = {np.frombuffer(buffer.raw(), np.uint8).ctypes.data for buffer in handed}
    assert places == {array.ctypes.data for array in first.values()}


def test_actors_wait_for_a_slow_learner(decisions_file: Path):
    """They have made what was read and at most ``depth`` batches beyond."""
    decisions_file.write_text("")
    with sample(TAG, POLICY, weights(), **{**SIZES, "actors": 1}, depth=3) as sampler:
        for read in (1, 2, 3):
            next(sampler)
            # Requested: 3, and one for each batch that was read before the last call.
            wanted = 3 + read - 1
            until = time.monotonic() + 10
            while len(decisions_file.read_text()) < wanted * LENGTH and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(0.1)  # for one that would go on
            assert len(decisions_file.read_text()) == wanted * LENGTH


def test_a_killed_actor_is_replaced_and_plays_matches_of_other_seeds():
    with sample(TAG, POLICY, weights(), **SIZES, depth=1) as sampler:
        before = [next(sampler), next(sampler)]
        seen = np.concatenate([b.arrays["seeds"][0] for b in before])
        assert seen.tolist() == list(range(2 * LANES))
        os.kill(int(before[1].arrays["pid"][0, 0]), signal.SIGKILL)
        after = list(itertools.islice(sampler, 4))
        assert [b.actor for b in after] == [0, 1, 0, 1]
        assert sampler.losses == 1
        assert after[0].arrays["pid"][0, 0] == before[0].arrays["pid"][0, 0]
        assert after[-1].arrays["pid"][0, 0] != before[1].arrays["pid"][0, 0]
        assert after[-1].arrays["seeds"][0].tolist() == list(range(2 * LANES, 3 * LANES))


def test_a_task_that_kills_every_actor_ends_the_stream(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("palaestra.scale.sampler.MOST_LOSSES", 1)
    with (
        sample(TAG, "test_sampling:dies", weights(), **{**SIZES, "actors": 1}) as sampler,
        pytest.raises(RuntimeError, match="actor 0 died 2 times without a batch"),
    ):
        next(sampler)
    assert sampler.losses == 1


def test_an_error_of_the_policy_is_raised_as_it_was():
    with sample(TAG, POLICY, weights(), **{**SIZES, "actors": 1}, depth=1) as sampler:
        next(sampler)
        sampler.publish(weights(is_wrong=True))
        with pytest.raises(ZeroDivisionError, match="wrong weights") as raised:
            next(sampler)
    assert "in actor 0" in raised.value.__notes__[0]
    assert "test_sampling.py" in raised.value.__notes__[0]


def test_a_policy_that_no_worker_can_import_is_named():
    with (
        sample(TAG, "no_such_module:policy", weights(), **{**SIZES, "actors": 1}) as sampler,
        pytest.raises(ImportError, match="a worker of the cluster cannot import 'no_such_module'"),
    ):
        next(sampler)


def test_a_machine_without_palaestra_is_no_loss(monkeypatch: pytest.MonkeyPatch):
    class CannotBeImported:
        def __init__(self, *arguments: Any) -> None:
            raise ModuleNotFoundError("No module named 'palaestra.scale'")

        def sample(self, *arguments: Any) -> None: ...

    monkeypatch.setattr("palaestra.scale.sampler.LaneSampler", CannotBeImported)
    with (
        sample(TAG, POLICY, weights(), **{**SIZES, "actors": 1}) as sampler,
        pytest.raises(ImportError, match="a worker of the cluster cannot import 'palaestra'"),
    ):
        next(sampler)
    assert sampler.losses == 0


def test_a_worker_with_other_versions_is_refused(monkeypatch: pytest.MonkeyPatch):
    """That each version counts is tested with `check_made_with`."""
    monkeypatch.setattr("palaestra.scale.sampler.made_with", lambda *_: {**made_with(TAG, {}), "NumPy": "7.7"})
    with (
        sample(TAG, POLICY, weights(), **{**SIZES, "actors": 1}) as sampler,
        pytest.raises(WorkerRefused, match=f"NumPy there: {np.__version__}, here: 7.7"),
    ):
        next(sampler)


@pytest.mark.parametrize(
    ("keywords", "error", "match"),
    [
        ({"obstacle": 3}, TypeError, "unexpected keyword argument 'obstacle'"),
        ({"opponents": {"blue": "nobody"}}, ValueError, "nobody"),
        ({"workers": 2}, TypeError, "workers: not a keyword of sample"),
        ({"autoreset_mode": "off"}, TypeError, "autoreset_mode: not a keyword of sample"),
        ({"lanes": 0}, ValueError, "lanes must be an integer from 1"),
        ({"seed": 2**31}, ValueError, "seed must be an integer from 0"),
        ({"policy": "policy"}, ValueError, "module:function"),
        ({"policy": "__main__:policy"}, ValueError, "module:function"),
        ({"weights": {"bias": [1.0]}}, TypeError, "'bias' is list"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_starts(keywords: dict[str, Any], error: Any, match: str):
    given: dict[str, Any] = {"policy": POLICY, "weights": weights(), **SIZES, **keywords}
    with pytest.raises(error, match=match), sample(TAG, given.pop("policy"), given.pop("weights"), **given):
        pass


def test_more_actors_than_processors_are_told():
    sizes = {**SIZES, "actors": 3}
    with pytest.warns(UserWarning, match="2 processors for 3 actors") as told, sample(TAG, POLICY, weights(), **sizes):
        pass
    assert told[0].filename == __file__


class ChangesItsArrays(RandomMoves):
    def observe(self, sim: Simulation) -> dict[str, np.ndarray]:
        return {"position": np.zeros((sim.num_envs, 1 + self.made))}


class TakesAName(RandomMoves):
    def observe(self, sim: Simulation) -> dict[str, np.ndarray]:
        return {"rewards": np.zeros(sim.num_envs)}


def changes(sim: Simulation, rng: np.random.Generator) -> ChangesItsArrays:
    return ChangesItsArrays(rng)


def takes(sim: Simulation, rng: np.random.Generator) -> TakesAName:
    return TakesAName(rng)


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize(("name", "match"), [("changes", "always return"), ("takes", "'rewards' is taken")])
def test_arrays_of_a_policy_keep_their_names_and_shapes(name: str, match: str):
    with pytest.raises(ValueError, match=match):
        in_this_process(f"test_sampling:{name}").sample(0, weights())


def test_the_actors_end_with_the_block(read: list[Batch]):
    pids = {int(batch.arrays["pid"][0, 0]) for batch in read}
    assert len(pids) == ACTORS
    until = time.monotonic() + 10
    while any(is_running(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(is_running(pid) for pid in pids)


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.slow
def test_the_example_trains_for_two_updates_on_a_cluster(cluster: Any):
    where = ["--address", cluster.address, "--actors", "1"]
    command = [sys.executable, str(ROOT / "examples/mappo_on_ray.py"), *where, "--updates", "2", "--lanes", "16"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("update ")]
    assert len(lines) == 2
    assert "0 versions old" in lines[1]  # one actor of depth 1 samples on-policy
