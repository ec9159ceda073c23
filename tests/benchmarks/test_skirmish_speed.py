"""The speed of Skirmish: which bar decides, what is played, and the measurements from times."""

import os
import sys
from typing import Any

import numpy as np
import pytest

import skirmish_speed as skirmish
from measurement import NotHere
from palaestra import registry
from palaestra.cli.measure import Benchmark, Timing

pytestmark = pytest.mark.slow


def played(per_second: float, size: float = 64) -> Timing:
    return Timing(size / per_second, size / per_second, size)


@pytest.mark.parametrize(("tag", "decisive"), [(5e6, 0), (4e6, 1)])
def test_a_busy_machine_is_held_to_the_share_and_another_to_the_speed(
    monkeypatch: pytest.MonkeyPatch, tag: float, decisive: int
):
    nothing = Benchmark("", lambda: None)
    monkeypatch.setattr(skirmish, "battle", lambda map: nothing)
    monkeypatch.setattr(skirmish, "random_play", lambda id: nothing)
    monkeypatch.setattr(skirmish, "timed", lambda *s: [played(140e3), played(90e3), played(12e3), played(tag)])
    rows = skirmish.speeds(print)
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    assert [round(share.value or 0, 3) for _, share in pairs] == [round(100 * v / tag, 3) for v in (140e3, 90e3, 12e3)]
    assert [pair[decisive].holds for pair in pairs] == [bool(decisive), True, False]
    assert [pair[1 - decisive].holds for pair in pairs] == [None] * 3


def test_red_plays_random_legal_orders_against_the_script(monkeypatch: pytest.MonkeyPatch):
    made: list[Any] = []
    make_batch = registry.make_batch
    monkeypatch.setattr(
        registry, "make_batch", lambda *a, **k: made.append(make_batch(*a, compiled=False, **k)) or made[-1]
    )
    monkeypatch.setattr(skirmish, "LANES", 2)
    benchmark = skirmish.battle("2s3z")
    benchmark.call()
    (sim,) = made
    red, blue = sim.states["last_action"][:, :5], sim.states["last_action"][:, 5:10]
    assert len(np.unique(red)) > 1
    assert len(np.unique(blue)) == 1
    assert not sim.info["illegal"].any()
    assert benchmark.size == 2
    benchmark.close()


def test_smax_is_compared_by_the_wall():
    measurement = skirmish.smax_measurement(Timing(1.0, 9.0, 120e3), Timing(0.5, 0.1, 20e3))
    assert (measurement.value, measurement.bar, measurement.holds) == (3.0, 4.0, False)
    assert measurement.note == "decisions/s by the wall: 120,000 to 40,000"


def test_without_jaxmarl_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(NotHere, match=r"pip install jaxmarl==0\.2\.0 jax"):
        skirmish.smax("2s3z")


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system keeps no threads on cores")
def test_the_thread_has_one_core_for_a_while():
    before = os.sched_getaffinity(0)
    with skirmish.one_core():
        assert len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def test_a_face_counts_decisions_of_the_match():
    measurement = skirmish.face_measurement("ParallelEnv", Timing(1.0, 20e-6, 10), 40e3)
    assert measurement.value == pytest.approx(50e3)
    assert measurement.holds
    assert measurement.note == "us a decision: 20.0"


def test_memory_counts_what_each_lane_adds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(skirmish, "array_bytes", lambda id, lanes: 10_000_000 + 30_000 * lanes)
    monkeypatch.setattr(skirmish, "BYTES", {"2s3z": 24e3, "27m_vs_30m": 144e3})
    assert [(measurement.value, measurement.holds) for measurement in skirmish.memory(print)] == [
        (30e3, False),
        (30e3, True),
    ]


def test_the_arrays_of_a_simulation_are_seen(monkeypatch: pytest.MonkeyPatch):
    make_batch = registry.make_batch
    monkeypatch.setattr(registry, "make_batch", lambda *a, **k: make_batch(*a, compiled=False, **k))
    monkeypatch.setattr(skirmish, "BYTES_LANES", (1, 2))
    sim = registry.make_batch("palaestra/Skirmish-3m-v0", 1)
    arrays = ("states", "observations", "masks", "state")
    assert skirmish.bytes_a_lane("palaestra/Skirmish-3m-v0") > sum(getattr(sim.buffers, name).nbytes for name in arrays)


def test_the_fastest_compiler_and_the_slowest_further_map_count():
    walls, cpus = ([14.0, 0.06, 0.02], [11.0, 0.04, 0.03]), ([13.0, 0.0, 0.0], [10.5, 0.0, 0.0])
    runs = [{"wall_s": wall, "cpu_s": cpu} for wall, cpu in zip(walls, cpus, strict=True)]
    cold, further = skirmish.layout_measurements("battle", ("2s3z", "3m", "8m"), runs)
    assert (cold.value, cold.holds, cold.note) == (11.0, True, "CPU s: 10.50")
    assert (further.value, further.holds) == (pytest.approx(40.0), True)
    assert further.note == "the slowest of 3m 40.0, 8m 20.0"


def test_a_warm_start_is_all_from_the_imports_to_the_first_step():
    slow, fast = ({"import_s": s, "wall_s": 0.5, "step_s": 0.1} for s in (2.0, 1.5))
    measurement = skirmish.warm_measurement([slow, fast])
    assert (measurement.value, measurement.holds) == (pytest.approx(2.1), False)
    assert measurement.note == "import 1.50, make 0.50, step 0.10"


def test_starts_use_caches_of_their_own(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, str]] = []

    def fake(installation: Any, measurement: str, *, cache: str, **words: Any) -> dict[str, Any]:
        asked.append((measurement, cache))
        if measurement == "make":
            return {"import_s": 1.0, "wall_s": 0.5, "step_s": 0.0}
        return {"wall_s": [10.0] + [0.01] * (len(words["values"]) - 1), "cpu_s": [10.0] * len(words["values"])}

    monkeypatch.setattr(skirmish, "start", fake)
    measurements = skirmish.first_starts(print)
    assert [measurement.bar for measurement in measurements] == [12.0, 50.0, 2.0, 12.0, 50.0]
    assert all(measurement.holds for measurement in measurements)
    cold = [cache for measurement, cache in asked if measurement == "presets"]
    assert len(set(cold)) == len(cold) == 4
    assert {cache for measurement, cache in asked if measurement == "make"} == set(cold[:2])
