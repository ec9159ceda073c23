"""Ids are registered once in each library, compiled games kept apart by the module they come from."""

import importlib.util
import sys
import warnings

import gymnasium
import pettingzoo
import pytest
from games import two_team

from palaestra import registry
from palaestra.core.linker import link


def test_registering_again_changes_nothing_and_says_nothing():
    before = gymnasium.registry["palaestra/CartPole-v0"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.register_all()
    assert gymnasium.registry["palaestra/CartPole-v0"] is before
    if hasattr(pettingzoo, "spec"):
        assert pettingzoo.spec("parallel", "palaestra/CartPole-v0").id == "palaestra/CartPole-v0"


def test_a_file_imported_under_another_name_has_compiled_code_of_its_own(monkeypatch: pytest.MonkeyPatch):
    # The cache on disk names the module of a world: under another name it could not be read.
    spec = importlib.util.spec_from_file_location("raid_by_another_name", two_team.__file__)
    assert spec is not None
    assert spec.loader is not None
    again = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "raid_by_another_name", again)
    spec.loader.exec_module(again)
    names = {link(module.game()).drivers["step_lanes"].__qualname__ for module in (again, two_team)}
    assert len(names) == 2
