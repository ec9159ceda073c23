"""A unit fights beside units that others order: those that learners know, or those that are held out."""

import gymnasium
import numpy as np
import pytest

from palaestra import make_batch

pytestmark = pytest.mark.jitless
ID = "palaestra/Skirmish-3m-v0"


def test_mates_that_are_held_out_are_kite_or_retreat_heal_and_those_of_a_mix_never():
    drawn = {}
    for mates in ("mix", "held_out"):
        sim = make_batch(ID, 64, mates=mates, opponents={"blue": mates}, compiled=False)
        sim.reset(seed=3)
        names = np.array(sim.game.scripts)[sim.states["current_player"][:, [1, 2, *sim.game.teams["blue"]]]]
        assert (names[:, 0] == names[:, 1]).all(), "one player has all mates of a match"
        drawn[mates] = set(names.ravel().tolist())
    assert drawn["held_out"] == {"kite", "retreat_heal"}
    assert drawn["mix"] == {"builtin", "hold", "nearest", "weakest", "focus_fire", "split", "surround"}


def test_one_unit_is_the_agent():
    env = gymnasium.make(ID, mates="nearest", compiled=False)
    assert env.action_space == gymnasium.spaces.Discrete(9)
    _, info = env.reset(seed=1)
    env.step(env.action_space.sample(info["action_mask"]))
    env.close()
