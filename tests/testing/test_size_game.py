"""The size game: presets of one kernel pass the conformance kit, compiled or not, in every representation."""

from typing import Any

import pytest
from games import size_game
from games.play import match_hash

from palaestra.core.compile.linker import jit_disabled
from palaestra.testing import check
from palaestra.testing.subject import Level

PRESETS = ("tests/Couriers-3-v0", "tests/Couriers-v0", "tests/Couriers-40-v0")
SIZES = (  # decisions, keywords: rules in plain Python take long where agents are many
    (80, {"agents": 3, "parcels": 4, "paces": 1}),
    (16, {"agents": 6, "parcels": 12, "paces": 2}),
    (3, {"agents": 40, "parcels": 5, "paces": 4}),
)
PLAYERS = (None, {"red": "shared_plan", "blue": "nearest"}, {"red": "random", "blue": "mix"})


@pytest.mark.check
@pytest.mark.parametrize(("id", "level"), [("tests/Couriers-v0", "fast"), ("tests/Couriers-3-v0", "preset")])
def test_a_size_passes_the_kit(id: str, level: Level):
    report = check(id, level)
    assert report.passed, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("id", PRESETS)
def test_a_size_passes_the_kit_at_full(id: str):
    report = check(id, "full")
    assert report.passed, str(report)
    looked_at = {
        name for name in ("reset_fields_are_constant", "unused_slots_are_inactive") if report[name].status == "passed"
    }
    assert looked_at == (
        {"reset_fields_are_constant"} if "40" in id else {"reset_fields_are_constant", "unused_slots_are_inactive"}
    )


@pytest.mark.slow
@pytest.mark.parametrize("observation", ["nearest", "nearest:dict", "flat"])
def test_another_way_to_see_it_passes_the_kit_at_full(observation: str):
    report = check("tests/Couriers-v0", "full", observation=observation)
    assert report.passed, str(report)


@pytest.mark.parametrize(("name", "value"), [("agents", 2), ("agents", 41), ("parcels", 65), ("paces", 0)])
def test_a_size_beyond_the_capacity_is_refused(name: str, value: int):
    with pytest.raises(ValueError, match=rf"{name} must be in \[\d+, \d+\], got {value}"):
        size_game.game(**{name: value})


@pytest.mark.check
@pytest.mark.skipif(jit_disabled(), reason="compares with compiled kernels")
@pytest.mark.parametrize(("decisions", "sizes"), SIZES, ids=lambda given: f"{given}")
def test_the_interpreted_twin_gives_the_same_bits_at_every_size(decisions: int, sizes: dict[str, int]):
    for opponents, mode in zip(PLAYERS, ("next_step", "same_step", "off"), strict=True):
        options: Any = {"steps": decisions, "mode": mode, "opponents": opponents, **sizes}
        assert match_hash("size_game", compiled=False, **options) == match_hash("size_game", **options)
