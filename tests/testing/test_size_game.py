"""The size game: presets of one kernel pass the conformance kit, compiled or not, in every representation."""

import json

import pytest
from games import size_game
from games.play import match_hash, python

from palaestra.core.linker import jit_disabled
from palaestra.testing import check

PRESETS = ("tests/Couriers-3-v0", "tests/Couriers-v0", "tests/Couriers-40-v0")
SIZES = (
    {"agents": 3, "parcels": 4, "paces": 1},
    {"agents": 6, "parcels": 12, "paces": 2},
    {"agents": 40, "parcels": 5, "paces": 4},
)
PLAYERS = (None, {"red": "shared_plan", "blue": "nearest"}, {"red": "random", "blue": "mix"})
HASHES = """
import json, sys
from games.play import match_hash
print(json.dumps([match_hash("size_game", **words) for words in json.loads(sys.argv[1])]))
"""


@pytest.mark.parametrize("id", PRESETS[:2])
def test_a_size_passes_the_kit(id: str):
    report = check(id)
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


@pytest.mark.skipif(jit_disabled(), reason="compares with compiled kernels")
def test_the_interpreted_twin_gives_the_same_bits_at_every_size():
    words = [
        {"steps": 8 if sizes["agents"] == 40 else 40, "mode": mode, "opponents": players, **sizes}
        for sizes in SIZES
        for players, mode in zip(PLAYERS, ("next_step", "same_step", "off"), strict=True)
    ]
    interpreted = json.loads(python(HASHES, json.dumps(words), NUMBA_DISABLE_JIT="1"))
    assert interpreted == [match_hash("size_game", **given) for given in words]
