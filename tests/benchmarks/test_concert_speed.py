"""The speed of Concert: what is replayed, and what is said where the package is missing."""

from typing import Any

import numpy as np
import pytest

import concert_speed
from measurement import NotHere

pytestmark = pytest.mark.check


def test_a_replay_gives_legal_orders_that_bring_all_lanes_to_other_boards():
    sim: Any = concert_speed.new_batch(4)
    match, moves = concert_speed.recorded(sim)
    assert 0.5 < moves < 1
    call = concert_speed.replay(sim, match, outputs=True).call
    for _ in range(concert_speed.DECISIONS):
        call()
        assert not sim.info["illegal"].any()
    assert len(np.unique(sim.states["unit"], axis=0)) == 4


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(concert_speed.importlib, "import_module", missing)
    with pytest.raises(NotHere, match=r"diplomacy>=1\.1\.2"):
        concert_speed.concert(print)


@pytest.mark.slow
def test_joint_orders_are_played_from_one_state_in_each_call():
    benchmark = concert_speed.joint_orders()
    benchmark.call()
    benchmark.call()
    assert benchmark.size == concert_speed.JOINT_ORDERS
