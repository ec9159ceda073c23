"""Agents that are alive, act and are paid: deaths, arrivals, alternating turns, horizons."""

import numpy as np
import pytest
from games import duel, two_team, two_team_homogeneous
from games.play import idle_actions, random_actions, simulation
from games.two_team import LATE
from hypothesis import given, settings
from hypothesis import strategies as st

from palaestra.core.contract.spaces import box_space, dict_space
from palaestra.core.run.simulation import Simulation
from palaestra.game import Choice, Field, Game, Role

pytestmark = pytest.mark.jitless

GAME, MELEE = two_team.game(), two_team_homogeneous.game()
BLUE_SCOUT, RED_GUARD, BLUE_GUARD = 2, 3, 4


def match(**parameters) -> Simulation:
    sim = simulation(GAME, 1, autoreset_mode="off", parameters=parameters)
    sim.reset(seed=1)
    return sim


def strike(sim: Simulation) -> dict:
    """Red's guard strikes, all other agents stay."""
    actions = idle_actions(sim)
    actions["guard"]["trigger"][0, 0] = 1
    actions["guard"]["effort"][0, 0] = 0.9
    return actions


def face_to_face(**parameters) -> Simulation:
    """Blue's scout stands where red's guard stands, and red's turn it is."""
    sim = match(hit_chance=1.0, **parameters)
    sim.states["node"][0, BLUE_SCOUT] = sim.states["node"][0, RED_GUARD]
    sim.restore(sim.snapshot())  # sees what was changed from outside
    return sim


def test_the_dead_leave_in_the_step_in_which_they_die():
    sim = face_to_face(damage=10.0)
    sim.step(strike(sim))
    np.testing.assert_array_equal(sim.agent_terminated[0], [False, False, True, False, False])
    assert not sim.alive[0, BLUE_SCOUT]
    assert not sim.acting[0, BLUE_SCOUT]
    assert not sim.observations["scout"][0, 2].any()
    sim.step(idle_actions(sim))
    assert not sim.agent_terminated.any()
    assert not sim.alive[0, BLUE_SCOUT]


def test_the_dead_do_nothing_and_their_actions_are_ignored():
    sim = face_to_face(damage=10.0)
    sim.step(strike(sim))
    place = sim.states["node"][0, BLUE_SCOUT]
    actions = idle_actions(sim)
    actions["scout"][0, 2] = 99
    sim.step(actions)
    assert sim.states["node"][0, BLUE_SCOUT] == place
    assert sim.info["illegal"][0, BLUE_SCOUT] == 0
    assert sim.actions["scout"][0, 2] == 0


def test_the_last_death_ends_the_match_and_is_booked_with_it():
    sim = face_to_face(damage=10.0)
    sim.states["alive"][0, BLUE_GUARD] = 0
    sim.step(strike(sim))
    assert sim.terminated[0]
    assert sim.agent_terminated[0, BLUE_SCOUT]
    assert not sim.agent_terminated[0, BLUE_GUARD]  # it had left before
    assert GAME.end_reason(sim.info["end_reason"][0]) == "wiped_out"
    assert sim.info["winner"][0] == two_team.RED


def test_a_newcomer_arrives_when_the_rules_say_so():
    sim = match(arrival=4)
    for step in range(1, 7):
        sim.step(idle_actions(sim))
        assert sim.alive[0, LATE] == (step >= 4)
        assert sim.acting[0, LATE] == (step >= 4 and step % 2 == 0)
        assert not sim.agent_terminated.any()
    assert sim.observations["scout"][0, LATE, -1] == np.float32(sim.states["energy"][0, LATE])


def test_teams_act_in_turn():
    sim = match()
    red, blue = [True, False, False, True, False], [False, False, True, False, True]
    for step in range(4):
        np.testing.assert_array_equal(sim.acting[0], blue if step % 2 else red)
        sim.step(idle_actions(sim))


def test_an_agent_that_is_not_to_act_does_nothing():
    sim = match()
    before = sim.states["node"].copy()
    actions = idle_actions(sim)
    actions["scout"][0, 2] = actions["guard"]["move"][0, 1] = 1  # blue, in red's turn
    sim.step(actions)
    np.testing.assert_array_equal(sim.states["node"], before)
    sim.step(actions)
    assert (sim.states["node"] != before)[0].tolist() == [False, False, True, False, True]


def start_alone(s, world):
    s.acting[0] = 1


def count_alone(s, world, actions, rewards, scratch):
    s.count += actions.walker[0].move
    rest(s)
    return False


def rest(s):
    s.acting[0] = s.steps % 2 == 0


def look_alone(s, world, observations, scratch):
    observations.walker[0].count = s.count


def test_a_single_agent_that_is_not_to_act_does_nothing():
    walker = Role("walker", ("red_0",), (Field("count", (), 0, 99),), (Choice("move", 3),))
    state = (("count", "i8"),)
    alone = Game("Alone", (walker,), state, reset=start_alone, step=count_alone, observe=look_alone)
    sim = simulation(alone, 1)
    sim.reset(seed=0)
    for acting, count in ((True, 2), (False, 2), (True, 4)):
        assert sim.acting[0, 0] == acting
        sim.step(np.array([[2 if acting else 99]]))  # the action of an agent that does not act is ignored
        assert sim.states["count"][0] == count


def test_a_horizon_truncates_and_is_no_end_by_rule():
    sim = match(horizon=3)
    for _ in range(3):
        assert not sim.truncated[0]
        sim.step(idle_actions(sim))
    assert (sim.truncated[0], sim.terminated[0]) == (True, False)
    assert GAME.end_reason(sim.info["end_reason"][0]) == "horizon"
    assert sim.info["winner"][0] == -1
    assert not sim.agent_terminated.any()


def test_an_end_by_rule_at_the_horizon_is_an_end_by_rule():
    sim = face_to_face(damage=10.0, horizon=1)
    sim.states["alive"][0, BLUE_GUARD] = 0
    sim.step(strike(sim))
    assert (sim.truncated[0], sim.terminated[0]) == (False, True)


def test_rewards_start_from_nothing_in_every_step():
    sim = simulation(duel.game(), 1)  # its rules write no rewards before a goal
    sim.reset(seed=1)
    sim.rewards[:] = 5.0
    sim.step(np.array([[duel.PRESS, duel.WAIT]]))
    assert sim.states["side"][0] == duel.RED_ATTACKS
    assert not sim.rewards.any()


@pytest.mark.check
@pytest.mark.parametrize("game", [GAME, MELEE], ids=["raid", "melee"])
@settings(max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_what_one_team_gets_the_other_pays_and_members_share(game, seed: int):
    sim = simulation(game, 2, parameters={"horizon": 40})
    sim.reset(seed=seed)
    rng, paid = np.random.default_rng(seed), 0.0
    for _ in range(40):
        sim.step(random_actions(sim, rng))
        red, blue = sim.team_rewards("red"), sim.team_rewards("blue")
        assert (red + blue == 0).all()
        for team, common in (("red", red), ("blue", blue)):
            assert (sim.rewards[:, list(game.teams[team])] == common[:, None]).all()
        paid += float(np.abs(red).sum())
    assert paid > 0 or game is GAME


@pytest.mark.check
@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_observations_are_inside_their_spaces_and_flags_make_sense(seed: int):
    sim = simulation(GAME, 2)
    sim.reset(seed=seed)
    rng = np.random.default_rng(seed)
    scout, guard = box_space(two_team.SCOUT.observation), dict_space(two_team.GUARD.observation)
    for _ in range(60):
        sim.step(random_actions(sim, rng))
        for lane in range(2):
            assert all(scout.contains(row) for row in sim.observations["scout"][lane])
            for row in sim.observations["guard"][lane]:
                assert guard.contains({name: np.atleast_1d(row[name]) for name in row.dtype.names})
        assert not (sim.acting & ~sim.alive).any()
        assert not (sim.agent_terminated & sim.alive).any()
        assert not (sim.terminated & sim.truncated).any()


def test_teams_and_lanes_have_observations_of_their_own():
    sim = match(horizon=10)
    sim.states["info"]["goals"][0] = [0, 2]
    sim.step(idle_actions(sim))
    assert sim.team_observations is not None
    assert sim.lane_observations is not None
    np.testing.assert_array_equal(sim.team_observations["goals"], [[0, 2]])
    assert sim.lane_observations["phase"][0] == two_team.BLUE
    assert sim.lane_observations["time_left"][0] == np.float32(0.9)
    assert simulation(MELEE, 1).team_observations is None
