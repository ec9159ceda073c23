"""Each row of a family's speed is measured and held to its bar; what cannot be made says why."""

from collections.abc import Sequence

import pytest

import family_speed
import speed
import team_speed
from palaestra import registry
from palaestra.cli.measure import Benchmark, Timing
from palaestra.game import Family, Preset, presets

pytestmark = pytest.mark.slow

ARITH = "palaestra/MathText-Arith-v1"


def test_each_row_of_each_family_is_a_rate_with_its_bar(monkeypatch: pytest.MonkeyPatch):
    played = list[Benchmark]()

    def timed(*benchmarks: Benchmark) -> list[Timing]:
        played.extend(benchmarks)
        for benchmark in benchmarks:
            benchmark.call()
            benchmark.close()
        return [Timing(0.0, 1e-3, 1000.0) for _ in benchmarks]

    def family(name: str, *speed: tuple[str, str, float], factory: str = "no_such_module:game") -> Family:
        return Family(name, presets(factory, Preset(f"test/{name}-v0", "")), speed=speed)

    rows: Sequence[tuple[str, str, float]] = ((ARITH, "oracle", 1e5), (ARITH, "random", 2e6))
    families = {"sums": family("sums", *rows), "none": family("none"), "gone": family("gone", ("test/x-v0", "mix", 1))}
    monkeypatch.setattr(registry, "FAMILIES", families)
    monkeypatch.setitem(registry.ROWS, "test/x-v0", registry.Row("test/x-v0", "no_such_module:game"))
    monkeypatch.setattr(family_speed, "timed", timed)
    monkeypatch.setattr(family_speed, "LANES", 8)
    monkeypatch.setattr(team_speed, "LANES", 8)
    found = family_speed.decisions(print)
    assert [benchmark.size for benchmark in played] == [8, 8]
    assert [(row.value, row.bar, row.holds) for row in found[:2]] == [(1e6, 1e5, True), (1e6, 2e6, False)]
    assert "oracle" in found[0].about
    assert "random" in found[1].about
    assert [(row.value, row.note) for row in found[2:]] == [(None, "No module named 'no_such_module'")]
    assert speed.MEASUREMENTS["families"][0] is family_speed.decisions


def test_every_row_names_an_id_of_its_family_and_a_player_of_it():
    for family in registry.FAMILIES.values():
        for id, player, bar in family.speed:
            assert registry.row(id).family == family.name
            assert player in ("random", *registry.make_game(id)[0].scripts)
            assert bar > 0
