"""The conformance kit on a game of many sizes with tables, lists of candidates, world fields and representations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games import depot, size_game  # noqa: F401 (it registers its ids)

from palaestra import registry
from palaestra.core.catalog import Row
from palaestra.testing import check
from palaestra.testing.players import masks_of, whole_mask

KEYWORDS: list[dict[str, Any]] = [
    {},
    {"observation": "nearest"},
    {"observation": "flat", "control": "blue"},
    {"mask": "obs", "fixed_agents": True},
]


@pytest.mark.parametrize("keywords", KEYWORDS, ids=str)
@pytest.mark.parametrize("id", ["tests/Couriers-v0", "tests/CouriersLarge-v0"])
def test_the_size_game_passes_the_kit(id: str, keywords: dict[str, Any]):
    report = check(id, **keywords)
    assert report.passed, str(report)


@pytest.mark.slow
def test_the_size_game_passes_the_kit_at_full():
    report = check("tests/Couriers-v0", "full")
    assert report.passed, str(report)


@pytest.mark.parametrize("mask", ["info", "obs"])
@pytest.mark.parametrize("kind", ["order", "full", "mixed"])
@pytest.mark.parametrize("whole_team", [True, False])
def test_a_player_chooses_among_the_listed_and_the_dense_alternatives(kind, mask, whole_team, monkeypatch):
    monkeypatch.setitem(registry.ROWS, "tests/Depot-v0", Row("tests/Depot-v0", depot.game, "test", "drivers"))
    if whole_team:
        env = registry.make_env("tests/Depot-v0", opponent="random", kind=kind, mask=mask)
        port, shown = env.port, env.reset(seed=0)
    else:
        parallel = registry.make_parallel("tests/Depot-v0", kind=kind, mask=mask)
        observations, infos = parallel.reset(seed=0)
        port, shown = parallel.ports["red_1"], (observations["red_1"], infos["red_1"])
    tree, dense = whole_mask(masks_of(*shown), port.blocks), port.action_masks()[0]
    if kind == "mixed":
        assert list(tree) == ["order", "gear", "signs", "effort"]
        assert tree["effort"] is None
        orders = tree["order"][:13] + tree["gear"][:2] + tree["signs"][:6]
        np.testing.assert_array_equal(orders, dense[:21])
        assert sum(len(tree[name]) for name in ("order", "gear", "signs")) == len(dense)
    else:
        np.testing.assert_array_equal(tree, dense)
