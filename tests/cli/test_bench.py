"""Measurements: printed output and fair turns."""

from __future__ import annotations

import pytest

import palaestra
from palaestra.cli import measure

MELEE = "test/Melee-v0"
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test", about="five against five")

# -- bench -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch):
    """Measures too shortly to be right."""
    monkeypatch.setattr(measure, "WARM_UP_S", 0.0)
    monkeypatch.setattr(measure, "ROUND_S", 1e-4)
    monkeypatch.setattr(measure.measure, "__kwdefaults__", {"rounds": 1, "round_s": 1e-4, "report_progress": None})
    monkeypatch.setattr("palaestra.cli.benchmarks.CALIBRATION_LANES", 2)


@pytest.mark.check
@pytest.mark.usefixtures("quick")
def test_bench_measures_every_face(run):
    rows = run("bench", MELEE, "--num-envs", 1, 3, "--rounds", 1, "--json").json()
    faces = [(row["face"], row["num_envs"]) for row in rows]
    both = [(face, n) for n in (1, 3) for face in ("batch", "vector, copies", "vector, no copies")]
    assert sorted(faces) == sorted([*both, ("gymnasium.make", 1), ("PettingZoo", 1)])
    assert all(row[name] > 0 for row in rows for name in ("steps_per_second", "ns_per_agent_step", "times_calibration"))


@pytest.mark.usefixtures("quick")
def test_bench_prints_a_table(run):
    printed = run("bench", "CartPole", "--num-envs", 2, "--rounds", 1, "--threads", 2)
    assert printed.out.splitlines()[0] == "palaestra/CartPole-v0, 2 threads"
    assert [line.split()[0] for line in printed.out.splitlines()[1:5]] == ["face", "batch", "vector,", "vector,"]


def test_bench_wants_one_thing(run, refused):
    assert "give what to measure: an ID, or --all" in refused(run("bench"))
    assert "--num-envs: must be an integer of at least 1, got '0'" in refused(
        run("bench", "CartPole", "--num-envs", 0), 2
    )
    assert "has one team" in refused(run("bench", "CartPole", "--opponent", "nope", "--num-envs", 1))


@pytest.mark.usefixtures("quick")
def test_the_best_round_counts_and_the_rivals_take_turns(monkeypatch: pytest.MonkeyPatch):
    seconds = {"fast": iter([3.0, 1.0, 2.0]), "slow": iter([5.0, 7.0, 6.0])}
    order = []

    def timed(call, calls: int) -> tuple[float, float]:
        order.append(call())
        return next(seconds[call()]) * calls, 0.5 * calls

    monkeypatch.setattr(measure, "warm_up", lambda *arguments: None)
    monkeypatch.setattr(measure, "calls_of", lambda call, round_s: 4)
    monkeypatch.setattr(measure, "time_calls", timed)
    benchmarks = [measure.Benchmark(name, lambda name=name: name, 2.0) for name in seconds]
    fast, slow = measure.measure(benchmarks, rounds=3)
    assert order == ["fast", "slow"] * 3
    assert (fast.wall_s, slow.wall_s) == (1.0, 5.0)
    assert (fast.per_second, fast.ns) == (2.0, 0.25e9)
