"""The speed measurement of MathText counts turns, each of which is a match."""

import pytest

import math_speed
import speed
from palaestra.cli.measure import Benchmark, Timing


def test_each_step_is_a_match_of_every_lane_and_the_rates_are_turns_a_second(monkeypatch: pytest.MonkeyPatch):
    played = list[Benchmark]()

    def timed(*benchmarks: Benchmark) -> list[Timing]:
        played.extend(benchmarks)
        for benchmark in benchmarks:
            benchmark.call()
        return [Timing(0.0, 1e-3, 1000.0) for _ in benchmarks]

    monkeypatch.setattr(math_speed, "timed", timed)
    found = math_speed.turns(print)
    assert [benchmark.size for benchmark in played] == [math_speed.LANES] * 3
    assert [measurement.value for measurement in found] == pytest.approx([1e6] * 3)
    assert all(measurement.holds for measurement in found)
    assert speed.MEASUREMENTS["zi"][0] is math_speed.turns
