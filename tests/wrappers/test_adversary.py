"""The adversary: whose decisions are its policy's, what both players remember, and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from games.play import idle_actions
from wrappers.test_pool import MELEE, Adder, constant, played

import palaestra
from palaestra import registry
from palaestra.core.files import FileError
from palaestra.core.run.opponents import resolve
from palaestra.game import Game
from palaestra.players.named_players import named_player
from palaestra.replay import Recorder, verify
from palaestra.wrappers import Adversary, SelfPlayPool
from palaestra.wrappers.adversary import read_name
from palaestra.wrappers.transcript import text_keywords

pytestmark = pytest.mark.check

PONG, DOWN = "palaestra/TeamPong-v0", 2


def down(observations: Any) -> np.ndarray:
    """Every paddle goes down."""
    return np.full(observations.shape[:2], DOWN)


def batch(id: str, adversary: Adversary, n: int = 64, **keywords: Any) -> Any:
    sim = palaestra.make_batch(id, n, opponents={"blue": adversary}, autoreset_mode="same_step", **keywords)
    sim.reset(seed=7)
    return sim


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, 0, 0), (1.0, 640, 640), (0.25, 120, 200)])
def test_a_share_of_the_decisions_is_the_policys_drawn_anew_for_each(share: float, low: int, high: int):
    sim = batch(MELEE, Adversary(constant(0.5), constant(-0.5), share), horizon=3)
    decisions = np.array([played(sim) for _ in range(10)])
    assert set(np.unique(decisions)) <= {0.5, -0.5}
    is_adverse = decisions == -0.5
    assert low <= is_adverse.sum() <= high
    if low < high:
        assert 0.4 < (is_adverse[1:] != is_adverse[:-1]).mean() / (2 * share * (1 - share)) < 1.6
        again = batch(MELEE, Adversary(constant(0.5), constant(-0.5), share), horizon=3)
        assert (np.array([played(again) for _ in range(10)]) == decisions).all()


def test_both_players_remember_all_decisions_of_their_match():
    sim = batch(MELEE, Adversary(Adder(0.01), Adder(-0.01), 0.5), horizon=4)
    decisions = np.array([played(sim) for _ in range(4)])
    assert (np.abs(decisions) == 0.01 * np.arange(1, 5)[:, None]).all()
    assert 0.3 < (decisions > 0).mean() < 0.7
    assert (np.abs(played(sim)) == 0.01).all()


def test_a_script_plays_the_other_decisions_at_its_strength():
    sim = batch(PONG, Adversary("tracker:0.9", down, 0.5), 32)
    assert isinstance(sim.game, Game)
    tracker, slots = sim.game.scripts.index("tracker"), list(sim.game.teams["blue"])
    for _ in range(4):
        sim.step(idle_actions(sim))
        is_script = sim.states["current_player"][:, slots] == tracker
        assert (is_script.all(axis=1) | ~is_script.any(axis=1)).all()
        assert 4 < is_script[:, 0].sum() < 28
        assert (sim.states["strength"][:, slots][is_script] == 0.9).all()
        assert (sim.actions[:, slots][~is_script] == DOWN).all()


def test_a_pool_of_scripts_may_be_the_player():
    pool = SelfPlayPool(PONG, "blue", ["tracker", "random"])
    sim = batch(PONG, Adversary(pool, down, 0.5), 64)
    with Recorder(sim) as recorder:
        sim.reset(seed=7)
        for _ in range(3):
            sim.step(idle_actions(sim))
    drawn = set(np.unique(sim.states["current_player"][:, sim.game.teams["blue"][0]]))
    assert drawn == {sim.game.scripts.index("tracker"), -1, -2}
    verify(recorder.replay())
    pickle.loads(pickle.dumps(sim)).close()


@pytest.mark.parametrize(
    ("adversary", "error"),
    [
        (Adversary("tracker", constant(0.0), 1.5), r"share is a probability in \[0, 1\], got 1.5"),
        (Adversary("mix", constant(0.0), 0.5), r"'mix' draws a script for each match: give SelfPlayPool"),
        (Adversary("tracker", "tracker", 0.5), r"needs a player and a policy \(a file or an Opponent; scripts have no"),
        (Adversary(None, constant(0.0), 0.5), "needs a player and a policy"),
        (Adversary("tracker", SelfPlayPool(PONG, "blue", ["tracker"]), 0.5), "pool remembers more than a match: give"),
    ],
)
def test_what_cannot_be_one_is_refused(adversary: Adversary, error: str):
    with pytest.raises(ValueError, match=error):
        batch(PONG, adversary, 1, compiled=False)


def test_a_text_names_an_adversary_of_the_default_opponent():
    named = read_name("adversary:0.25:C:/learnt.zip")
    assert (named.player, named.policy, named.share) == ("default", "C:/learnt.zip", 0.25)
    game, _ = registry.make_game(PONG)
    with pytest.raises(FileError, match=r"nowhere\.zip: there is no such file"):
        resolve(game, "blue", "adversary:0.25:nowhere.zip")
    text = "adversary:learnt"
    assert named_player(text) == text, "no module of this name is looked for"
    assert text_keywords("palaestra/SearchQA-2Hop-v1", {}, ["adversary:0.25:learnt.zip"]) == {}


@pytest.mark.parametrize("text", ["adversary:2:a.zip", "adversary:a.zip", "adversary:0.5:", "adversary:nan:a.zip"])
def test_a_text_of_another_form_is_refused_with_the_right_one(text: str):
    with pytest.raises(ValueError, match=rf"'{text}': write \"adversary:SHARE:FILE\", a probability"):
        read_name(text)
