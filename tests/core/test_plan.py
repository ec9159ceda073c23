"""A plan is made once in a decision for each team and script, before the first of its slots decides."""

from typing import Any

import numpy as np
import pytest
from games.orchard import started
from games.play import idle_actions

pytestmark = pytest.mark.jitless

RED, BLUE = 0, 1
ONE, TWO = 0, 1


def plans(sim: Any) -> list:
    """Calls of plan so far, by team and script, in the first lane."""
    return sim.states["plans"][0].tolist()


def played(decisions: int, *players: tuple[str, Any], **parameters: Any) -> Any:
    sim = started(1, autoreset_mode="off", parameters=parameters)
    for team, player in players:
        sim.set_opponent(team, player)
    for _ in range(decisions):
        sim.step(idle_actions(sim))
    return sim


def test_it_is_made_once_a_decision_however_many_slots_the_team_has():
    sim = played(3, ("red", "one"))
    assert plans(sim) == [[3, 0], [0, 0]]
    assert sim.states["asked"][0].tolist() == [3, 0, 3, 0, 3, 0, 0]  # red has three slots, of two roles


def test_no_plan_is_made_for_teams_of_the_caller_or_the_random_player():
    assert plans(played(3)) == [[0, 0], [0, 0]]
    assert plans(played(3, ("red", "random"), ("blue", "random"))) == [[0, 0], [0, 0]]


def test_each_team_has_a_plan_of_its_own():
    sim = played(2, ("red", "two"), ("blue", "one"))
    assert plans(sim) == [[0, 2], [2, 0]]
    assert plans(played(2, ("red", "one"), ("blue", "one"))) == [[2, 0], [2, 0]]


def test_it_is_made_before_the_first_slot_decides():
    sim = played(3, ("red", "two"), ("blue", "one"))
    red, blue = 100 * (TWO + 1) + 2, 100 * (ONE + 1) + 2  # decisions are counted after the scripts have decided
    assert sim.states["token"][0].tolist() == [red, blue, red, blue, red, 0, 0]


def test_agents_of_one_team_may_have_plans_of_two_scripts():
    sim = played(2, ("red_0", "one"), ("red_1", "two"), ("red_2", "one"))
    assert plans(sim) == [[2, 2], [0, 0]]
    # Slots decide in their order, and share the scratch record: the plan that was made last stands there.
    assert sim.states["token"][0].tolist() == [101, 0, 201, 0, 201, 0, 0]


def test_a_single_scripted_agent_has_a_plan():
    sim = played(4, ("red_1", "two"))
    assert plans(sim) == [[0, 4], [0, 0]]
    assert sim.states["asked"][0].tolist() == [0, 0, 4, 0, 0, 0, 0]


def test_it_is_made_for_a_script_of_any_strength():
    sim = played(5, ("red", "one:0"))
    assert plans(sim) == [[5, 0], [0, 0]]
    assert not sim.states["asked"].any()
    assert plans(played(5, ("red", "one:0.5"))) == [[5, 0], [0, 0]]


def test_mix_plans_for_the_script_that_plays():
    sim = started(32, opponents={"red": "mix"})
    for _ in range(3):
        sim.step(idle_actions(sim))
    which = sim.states["current_player"][:, 0]
    assert set(which.tolist()) == {ONE, TWO}
    np.testing.assert_array_equal(sim.states["plans"][:, RED], 3 * np.eye(2, dtype=int)[which])
    assert not sim.states["plans"][:, BLUE].any()


def test_no_plan_is_made_for_a_team_that_has_left():
    sim = played(1, ("red", "one"), ("blue", "one"))
    sim.states["alive"][:, [0, 2, 4]] = 0
    sim.step(idle_actions(sim))
    assert plans(sim) == [[1, 0], [2, 0]]


def test_no_plan_is_made_for_a_team_that_is_not_to_act():
    sim = played(1, ("red", "one"))
    sim.states["acting"][:, [0, 2, 4]] = 0
    sim.step(idle_actions(sim))
    assert plans(sim) == [[1, 0], [0, 0]]


def test_the_first_slot_may_have_left():
    sim = played(3, ("red", "one"), leaver=0)
    assert sim.states["asked"][0].tolist() == [1, 0, 3, 0, 3, 0, 0]
    assert plans(sim) == [[3, 0], [0, 0]]


@pytest.mark.check
def test_threads_do_not_share_what_was_planned():
    sim = started(8, threads=2, opponents={"red": "mix", "blue": "mix"})
    twin = started(8, opponents={"red": "mix", "blue": "mix"})
    for _ in range(4):
        sim.step(idle_actions(sim))
        twin.step(idle_actions(twin))
    np.testing.assert_array_equal(sim.states["token"], twin.states["token"])
    sim.close()


def test_lanes_that_wait_have_no_plan():
    sim = played(4, ("red", "one"), horizon=2)
    assert plans(sim) == [[2, 0], [0, 0]]
