"""The speed of flight: what is flown, and the measurements from times."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import flight_speed as flight
import speed
from palaestra import registry
from palaestra.cli import measure
from palaestra.cli.measure import Benchmark, Timing

pytestmark = pytest.mark.slow

NOTHING = Benchmark("", lambda: None)


def timings(monkeypatch: pytest.MonkeyPatch, *found: Timing) -> None:
    """Lets `timed` answer this, whatever it is asked for; nothing is flown."""
    for name in ("flown", "single", "bare_jsbsim", "starting", "restored", "vector"):
        monkeypatch.setattr(flight, name, lambda *a, **k: NOTHING)
    monkeypatch.setattr(flight, "timed", lambda *benchmarks, **k: list(found[: len(benchmarks)]))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few lanes, one short round of each."""
    for name, value in {
        **{"LANES": 3, "JSBSIM_LANES": 2, "RESTORE_LANES": 2, "RESTORE_DECISIONS": 3},
        **{"TEAM_LANES": 2, "TEAM_CYCLE": 3},
    }.items():
        monkeypatch.setattr(flight, name, value)
    monkeypatch.setattr(measure, "WARM_UP_S", 0.0)
    monkeypatch.setattr(flight, "timed", lambda *b, **_: measure.measure(b, rounds=1, round_s=1e-3))


def test_the_game_of_flight_moves_under_both_engines_as_the_stick_says(rules: Any):
    climbs = []
    for engine in ("compiled", "jsbsim"):
        sim = rules(flight.game(engine=engine), 2)
        sim.reset(seed=0)
        sim.actions[:, 0] = [[0.0, 0.5, 0.0, 0.0], [0.0, -0.2, 0.0, 0.0]]
        before = sim.states["body"]["altitude_m"].copy()
        for _ in range(2):
            sim.step()
        climbs.append((sim.states["body"]["altitude_m"] - before)[:, 0])
    assert climbs[0][0] > 5.0 > -5.0 > climbs[0][1]
    assert climbs[0] == pytest.approx(climbs[1], abs=1e-3)


@pytest.mark.parametrize(
    ("change", "end"), [({}, 0), ({"altitude_m": 900.0}, 1), ({"in_tables": 0}, 1), ({"finite": 0}, 1)]
)
def test_a_flight_ends_near_the_ground_and_where_the_engine_is_not_valid(change: dict[str, float], end: int):
    body = SimpleNamespace(**({"altitude_m": 5000.0, "in_tables": 1, "finite": 1} | change))
    assert flight.evaluate(SimpleNamespace(body=[body]), None, None, None) == end


def test_the_caller_moves_everybody_by_another_action_in_each_call():
    actions, steps = np.zeros((2, 2, 4), np.float32), list[np.ndarray]()
    pool = flight.noise(actions.shape, 0.2)
    assert (pool.shape, pool.dtype) == ((flight.POOL, 2, 2, 4), np.float32)
    assert abs(pool).max() <= 1.0
    call = flight.alternate(actions, lambda: steps.append(actions.copy()), pool)
    for _ in range(flight.POOL + 1):
        call()
    assert (np.array(steps[:-1]) == pool).all()
    assert (steps[-1] == pool[0]).all()


@pytest.mark.slow  # compiles a fight by sticks and one by macros, where they are not in the cache
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("function", "rows"), [("frames", 2), ("decisions", 6), ("threads", 1), ("singles", 1), ("resets", 2), ("teams", 3)]
)
def test_each_measurement_can_be_made(function: str, rows: int):
    found = getattr(flight, function)(lambda note: None)
    assert len(found) == rows
    assert all(row.value > 0 and row.bar for row in found)


def test_a_frame_is_one_of_one_aircraft(monkeypatch: pytest.MonkeyPatch):
    timings(monkeypatch, Timing(9.0, 1e-3, 4000), Timing(9.0, 120e-6, 12), Timing(9.0, 72e-6, 12))
    compiled, face = flight.frames(print)
    assert (compiled.value, compiled.bar, compiled.holds) == (pytest.approx(24.0), 25.0, False)
    assert compiled.note == "frames/s: 4,000,000 to 166,667; ns a frame: 250"
    assert (face.value, face.holds) == (pytest.approx(0.6), True)


def test_jsbsim_alone_runs_the_frames_of_its_size(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flight, "JSBSIM_CALLS", 2)
    made, make_batch = list[Any](), registry.make_batch
    monkeypatch.setattr(registry, "make_batch", lambda *a, **k: made.append(make_batch(*a, **k)) or made[-1])
    benchmark = flight.bare_jsbsim()
    (sim,) = made
    (first,), (second,) = sim.engine.aircraft
    seconds = []
    for _ in range(3):
        benchmark.call()
        seconds.append([aircraft.fdm.get_sim_time() for aircraft in (first, second)])
    flown_s = np.diff(seconds, axis=0)
    assert flown_s[0] * flight.PHYSICS_HZ == pytest.approx([benchmark.size / 2] * 2)
    assert sim.states["body"]["altitude_m"].min() > 3000.0
    benchmark.close()


def test_both_batches_are_compared_by_the_lane_and_decision(monkeypatch: pytest.MonkeyPatch):
    timings(monkeypatch, Timing(9.0, 20e-3, 1000), Timing(9.0, 2e-3, 64), Timing(9.0, 38.4e-3, 64))
    rows = flight.decisions(lambda note: None)
    assert [row.value for row in rows] == [pytest.approx(30.0), pytest.approx(19.2)] * 3
    assert [row.bar for row in rows] == [30.0, 30.0, 15.0, 15.0, 20.0, 20.0]
    assert rows[0].note == "us a decision: 20.00 to 600.0"


def test_threads_and_workers_are_compared_by_the_wall_and_a_single_match_by_the_cpu(monkeypatch: pytest.MonkeyPatch):
    timings(monkeypatch, Timing(3.4e-3, 20e-6, 1), Timing(2e-3, 240e-6, 1))
    rows = [*flight.threads(print), *flight.workers(print), *flight.singles(print)]
    assert [row.value for row in rows] == [pytest.approx(1.7), pytest.approx(1.7), pytest.approx(12.0)]
    assert [row.bar for row in rows] == [1.7, 1.6, 8.0]


def test_a_reset_is_counted_by_the_lane_and_a_restore_by_the_call(monkeypatch: pytest.MonkeyPatch):
    timings(monkeypatch, Timing(9.0, 10e-3, 1000), Timing(9.0, 32e-3, 64), Timing(2e-3, 0.5e-3, 1))
    reset, restore = flight.resets(print)
    assert (reset.value, reset.bar, reset.note) == (pytest.approx(10.0), 20.0, "JSBSim: 500")
    assert (restore.value, restore.bar, restore.note) == (pytest.approx(0.5), 1.0, "wall ms: 2.000")


def test_starts_share_the_caches_of_a_try_and_the_least_counts(monkeypatch: pytest.MonkeyPatch):
    asked, answers = (
        list[tuple[str, Path]](),
        iter([(9.0, 8.0), (1.0, 2.0), (4.0, 3.0), (8.0, 9.0), (2.0, 1.0), (2.0, 5.0)]),
    )
    monkeypatch.setattr(flight, "TRIES", 2)
    monkeypatch.setattr(flight, "first_step", lambda *words: asked.append(words) or next(answers))
    rows = flight.starts(lambda note: None)
    assert [(row.value, row.bar, row.holds) for row in rows] == [(8.0, 20.0, True), (1.0, 1.5, True), (2.0, 3.0, True)]
    assert [row.note for row in rows] == ["wall s: 9.00", "wall s: 2.00", "wall s: 5.00"]
    assert [id for id, _ in asked] == [flight.DOGFIGHT, flight.DOGFIGHT, flight.TRACK] * 2
    assert len({folder for _, folder in asked[:3]}) == 1
    assert asked[0][1] != asked[3][1]


@pytest.mark.slow  # compiles a game in a fresh process
def test_a_first_step_is_made_in_a_process_with_caches_of_its_own(tmp_path: Path):
    cold, warm = (flight.first_step("palaestra/CartPole-v0", tmp_path) for _ in range(2))
    assert cold[0] > 1.5 * warm[0] > 0.0
    assert list((tmp_path / "numba").rglob("*.nbi"))
    with pytest.raises(subprocess.CalledProcessError):
        flight.first_step("palaestra/Nothing-v0", tmp_path)


@pytest.mark.slow  # compiles a game with missiles, where it is not in the cache
def test_in_team_fights_most_aircraft_have_a_missile_in_flight(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(flight, "TEAM_LANES", 16)
    made, make_batch, in_flight = list[Any](), registry.make_batch, list[float]()
    monkeypatch.setattr(registry, "make_batch", lambda *a, **k: made.append(make_batch(*a, **k)) or made[-1])
    benchmark = flight.fought(weapons="both", **flight.LONG_SIGHTED)
    for _ in range(flight.TEAM_CYCLE):
        benchmark.call()
        in_flight.append(float((made[0].states["missiles"]["status"] == flight.GUIDED).sum()))
    benchmark.close()
    assert 16 * 7 < benchmark.size <= 16 * 8
    assert np.mean(in_flight) > 0.9 * benchmark.size


def test_each_measurement_has_a_name():
    functions = [flight.frames, flight.workers, flight.resets, flight.decisions, flight.threads, flight.singles]
    kinds = ("frame", "workers", "reset", "", "threads", "gymnasium", "start", "teams")
    names = [f"ucav-{kind}".rstrip("-") for kind in kinds]
    assert [speed.MEASUREMENTS[name][0] for name in names] == [*functions, flight.starts, flight.teams]
    assert [name for name in speed.MEASUREMENTS if name.startswith("ucav")] == names
