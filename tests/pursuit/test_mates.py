"""A pursuer hunts beside players that it does not know."""

import pytest

from palaestra import make_batch
from palaestra.zoo import graph_pursuit_v0

pytestmark = pytest.mark.jitless


def test_one_pursuer_learns_beside_scripts():
    hunt = graph_pursuit_v0.parallel_env(
        mates=["greedy", "keep_exits"], opponents={"evader": "default"}, compiled=False
    )
    assert hunt.possible_agents == ["pursuer_0"]
    observations, _ = hunt.reset(seed=1)
    while hunt.agents:
        observations, *_ = hunt.step({"pursuer_0": 0})
        assert list(observations) == ["pursuer_0"]


def test_mates_of_a_mix_are_drawn_anew_in_each_match():
    sim = make_batch("palaestra/GraphPursuit-v0", 1, mates="mix", opponents={"evader": "stay"}, compiled=False)
    drawn = set()
    for seed in range(40):
        sim.reset(seed=seed)
        drawn.add(int(sim.states["current_player"][0, 1]))
        assert sim.states["current_player"][0, 0] == -1
    assert drawn == set(range(len(sim.game.scripts)))
