"""Gymnasium's and PettingZoo's own checkers, on every id in every form in which it can be asked for.

The conformance kit runs them on ids as they are made without keywords, once a kernel. Here are the forms: observation,
mask, choices, codec, and the keywords that change what is seen. The fast tests take one form of each factory; all forms
of all ids are ``python -m pytest tests/testing/test_checkers.py -m "slow or not slow"``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from math import prod
from typing import Any

import gymnasium
import numpy as np
import pettingzoo.test  # noqa: F401 (it loads the module that is patched below)
import pytest
from games.play import OURS, by_tier
from gymnasium import spaces

from palaestra import registry
from palaestra.core.faces.joint_choices import MOST
from palaestra.game import Choice, Game
from palaestra.pages import forms_of
from palaestra.testing import Subject, check

pytestmark = pytest.mark.check

FIRST = list({registry.ROWS[id].factory: id for id in reversed(OURS)}.values())
"""The first id of each factory."""
CHECKERS = ("gymnasium_check_env", "pettingzoo_parallel_api_test", "pettingzoo_api_test", "pettingzoo_seed_tests")
PURSUIT, CONFRONT = "palaestra.games.pursuit.graph_pursuit:game", "palaestra.games.pursuit.confront:game"
VIEWS: dict[Any, list[dict[str, Any]]] = {
    "palaestra.games.skirmish.games:battle": [{"observation": "smac", "smac_rules": True}],
    "palaestra.games.skirmish.games:generated": [{"view": "cone"}],
    PURSUIT: [{"observation": "nodes"}],
    CONFRONT: [{"observation": "nodes"}],
}
"""Keywords of a factory that change what its agents see."""
ALONE: dict[Any, dict[str, Any]] = {PURSUIT: {"control": "evader"}, CONFRONT: {"red": 1}}
"""With these the team that a Gymnasium user plays is one agent, for which a codec can speak: others are so anyway."""


class Undrawn(Subject):
    """Pictures are looked at elsewhere: a window shows them at the pace of the game."""

    def why_not_drawn(self, human: bool = False) -> str:
        return "pictures have tests of their own"


def forms(id: str) -> Iterator[dict[str, Any]]:
    """Keywords of all forms of an id."""
    yield {}
    factory = registry.ROWS[id].factory
    for view in ({}, *VIEWS.get(factory, ())):
        game = registry.make_game(id, **view)[0]
        masks = ("info", "obs", None) if game.legal is not None else ("info", "obs")
        for shown in (*forms_of(game), *game.representations):
            yield from ({**view, "observation": shown, "mask": mask} for mask in masks)
        if has_joint_choices(game):
            yield {**view, "choices": "discrete"}
        yield from ({**view, "codec": codec, **ALONE.get(factory, {})} for codec in game.codecs)


def has_joint_choices(game: Game) -> bool:
    """Whether every team's choices, and nothing else, can be one Discrete."""
    teams = [[f for slot in slots for f in game.role_of(slot)[0].action] for slots in game.teams.values()]
    choices = [[f.n**f.size for f in fields if isinstance(f, Choice)] for fields in teams]
    return [*map(len, choices)] == [*map(len, teams)] and max(map(prod, choices)) <= MOST


def passes(id: str, monkeypatch: pytest.MonkeyPatch, **keywords: Any) -> None:
    """Runs the checkers of both packages."""
    module = sys.modules["pettingzoo.test.api_test"]
    if "codec" in keywords:  # api_test asks every observation for its dtype: a graph and a text have none
        monkeypatch.setattr(module, "_test_observation_space_compatibility", lambda *_, **__: None)
    if (keywords.get("observation"), keywords.get("mask")) == ("goal", "obs"):  # a dict beside a mask has no shape
        monkeypatch.setattr(module, "test_observation", lambda *_, **__: None)
    report = check(Undrawn(id, "preset", **keywords), only=CHECKERS)
    monkeypatch.undo()
    assert report.passed, f"{keywords}\n{report}"


def play_legally(env: Any) -> None:
    """Some decisions under Gymnasium's passive checker, whose warnings are errors: samples within the mask."""
    env.action_space.seed(0)
    seen, info = env.reset(seed=0)
    for _ in range(4):
        shown = seen if isinstance(seen, dict) and "action_mask" in seen else info
        mask = None if isinstance(env.action_space, spaces.Text) else shown.get("action_mask")
        seen, _, terminated, truncated, info = env.step(env.action_space.sample(mask))
        assert mask is None or not np.any(info.get("illegal", 0))
        if terminated or truncated:
            break
    env.close()


@pytest.mark.parametrize("id", by_tier())
def test_masked_samples_of_an_id_are_legal_and_its_results_pass_the_passive_checker(id: str):
    try:
        play_legally(gymnasium.make(id))
    except ImportError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("id", by_tier(FIRST))
def test_the_form_of_many_parts_passes_the_checkers(id: str, monkeypatch: pytest.MonkeyPatch):
    keywords: dict[str, Any] = {"observation": "dict", "mask": "obs"}
    try:
        play_legally(gymnasium.make(id, **keywords))
    except ImportError as error:
        pytest.skip(str(error))
    passes(id, monkeypatch, **keywords)


@pytest.mark.check
def test_so_does_a_graph(monkeypatch: pytest.MonkeyPatch):
    passes("palaestra/GraphPursuit-v0", monkeypatch, observation="nodes", codec="graph", control="evader")


@pytest.mark.slow  # 800 forms, 0.2 s each
@pytest.mark.parametrize("id", OURS)
def test_every_form_of_every_id_does(id: str, monkeypatch: pytest.MonkeyPatch):
    try:
        play_legally(gymnasium.make(id))
    except ImportError as error:
        pytest.skip(str(error))
    for keywords in forms(id):
        play_legally(gymnasium.make(id, **keywords))
        passes(id, monkeypatch, **keywords)
