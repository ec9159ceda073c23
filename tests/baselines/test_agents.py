"""Which agents learn, which share weights, what they observe and what they may do."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from games import body_game, depot, duel, relay

from palaestra import registry
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Game
from palaestra.games.pursuit import graph_pursuit
from palaestra_baselines.common.agents import Roster, keywords, two_team_roster

PONG, TAG = "palaestra/TeamPong-v0", "palaestra/TeamTag-2v2-v0"


def roster_of(id: str, **options: Any) -> Roster:
    return Roster(registry.make_game(id, **options)[0])


def test_both_teams_share_weights_where_they_are_alike_and_have_their_own_where_not():
    assert list(roster_of(PONG).groups) == ["paddle"]
    groups = roster_of(TAG).groups
    assert list(groups) == ["player_red", "player_blue"]
    assert groups["player_blue"].agents == (2, 3)
    assert groups["player_blue"].places.tolist() == [0, 1]


def test_places_are_counted_within_each_team_of_a_shared_group():
    assert roster_of(PONG).groups["paddle"].places.tolist() == [0, 1, 0, 1]


def test_roles_of_teams_whose_slots_alternate_keep_their_agents_apart():
    groups = Roster(relay.game()).groups
    assert {name: g.agents for name, g in groups.items()} == {
        "runner_red": (0, 2),
        "runner_blue": (1,),
        "keeper_blue": (3,),
    }
    assert groups["runner_red"].places.tolist() == [0, 1]


def test_one_team_learns_with_the_weights_that_it_would_have_beside_the_other():
    red, blue = (Roster(relay.game(), (team,)) for team in ("red", "blue"))
    assert red.slots.tolist() == [0, 2]
    assert {name: g.agents for name, g in red.groups.items()} == {"runner_red": (0, 1)}
    assert {name: g.agents for name, g in blue.groups.items()} == {"runner_blue": (0,), "keeper_blue": (1,)}
    assert blue.team_of.tolist() == [1, 1]
    with pytest.raises(ValueError, match="Relay has no team 'green': choose from red, blue"):
        Roster(relay.game(), ("green",))


def test_a_game_of_one_team_has_a_group_a_role():
    roster = roster_of("palaestra/SpeakerListener-v0")
    assert list(roster.groups) == ["speaker", "listener"]
    assert roster.actions == max(roster.choices.values())


@pytest.mark.parametrize("mask", [relay.legal, None])
def test_an_agent_that_is_not_asked_has_its_no_op_alone(mask: Any):
    sim = KernelSimulation(relay.game(legal=mask), 1, compiled=False)
    sim.reset(seed=0)
    sim.step()  # one decision: slots 1 and 3 are asked, slot 2 has not arrived
    legal = Roster(sim.game).read_legal(sim)[0]
    only_noop = [True, False, False]
    runner, keeper = [True, True, mask is None], [True, True, False]
    assert legal.tolist() == [only_noop, runner, only_noop, keeper]


def test_actions_of_the_learning_team_go_to_its_own_slots():
    sim = KernelSimulation(relay.game(), 1, compiled=False)
    sim.reset(seed=0)
    Roster(sim.game, ("blue",)).write_actions(sim, np.array([[2, 1]]))
    assert (sim.actions["runner"].tolist(), sim.actions["keeper"].tolist()) == ([[0, 2, 0]], [[1]])


def test_options_are_python_values_or_words():
    assert keywords(("players=1", "order=alternating")) == {"players": 1, "order": "alternating"}
    with pytest.raises(ValueError, match="name=value, got 'players'"):
        keywords(("players",))


# -- refusals ----------------------------------------------------------------------------------------------------------


def spelled() -> Game:
    """A duel in which a move is two words."""
    (role,) = duel.game(legal=None).roles
    words = dataclasses.replace(role, action=(Choice("move", 3, shape=(2,)),))
    return duel.game(roles=(words,), legal=None)


@pytest.mark.parametrize(
    ("game", "lacks"),
    [
        (lambda: duel.game(listed=True), "the legal alternatives of 'move' are a list of candidates, .* not support"),
        (lambda: graph_pursuit.game("path:3").represented("nodes"), "shows things to a whole team or match"),
        (lambda: body_game.game(), "is no zero-sum game of two teams"),
        (lambda: depot.game(), "is no zero-sum game of two teams"),
        (lambda: spelled(), "have other actions than single choices"),
        (lambda: registry.make_game("palaestra/CartPole-v0")[0], "is no zero-sum game of two teams"),
        (
            lambda: registry.make_game("palaestra/TeamTag-v0", actions="continuous")[0],
            "have other actions than single choices",
        ),
    ],
)
def test_games_that_these_methods_cannot_play_say_why(game, lacks: str):
    with pytest.raises(ValueError, match=lacks):
        two_team_roster(game())
