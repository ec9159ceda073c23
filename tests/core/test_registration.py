"""Ids are registered once in each library, however often that is asked for."""

import warnings

import gymnasium
import pettingzoo

from palaestra import registry


def test_registering_again_changes_nothing_and_says_nothing():
    before = gymnasium.registry["palaestra/CartPole-v0"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.register_all()
    assert gymnasium.registry["palaestra/CartPole-v0"] is before
    if hasattr(pettingzoo, "spec"):
        assert pettingzoo.spec("parallel", "palaestra/CartPole-v0").id == "palaestra/CartPole-v0"
