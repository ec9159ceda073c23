"""A game says what it is in data, and contradictions are refused where they are written down."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from games import two_team

from palaestra.core.fields import Choice, Continuous, Field, Parameter
from palaestra.core.game import Game, Role


def nothing(*arguments):
    return False


def game(**changes: Any) -> Game:
    role = Role("walker", ("red_0", "blue_0"), (Field("place", (), 0, 9),), (Choice("move", 3),))
    basics: dict[str, Any] = {
        "name": "Tiny",
        "roles": (role,),
        "state": (("place", "i8", (2,)),),
        "reset": nothing,
        "step": nothing,
        "observe": nothing,
    }
    return Game(**{**basics, **changes})


def walkers(*agents: str, name: str = "walker") -> Role:
    return Role(name, agents, (Field("place", (), 0, 9),), (Choice("move", 3),))


def test_slots_are_numbered_over_all_roles_and_teams_gather_them_by_name():
    raid = two_team.game()
    assert raid.agents == ("red_0", "red_1", "blue_0", "red_2", "blue_1")
    assert raid.teams == {"red": (0, 1, 3), "blue": (2, 4)}
    np.testing.assert_array_equal(raid.team_index, [0, 0, 1, 0, 1])
    role, index = raid.role_of(4)
    assert (role.name, index) == ("guard", 1)
    with pytest.raises(IndexError):
        raid.role_of(5)


def test_ends_have_names():
    raid = two_team.game()
    assert [raid.end_reason(n) for n in range(4)] == ["", "horizon", "scored", "wiped_out"]


def test_the_horizon_is_a_parameter():
    assert [(p.name, p.default) for p in two_team.game().parameters][:2] == [("horizon", 40), ("damage", 0.6)]


def test_a_game_with_a_change_has_the_other_parameters_as_before():
    raid = two_team.game()
    assert dataclasses.replace(raid).parameters == raid.parameters
    longer = dataclasses.replace(raid, horizon=99)
    assert (longer.parameters[0].name, longer.parameters[0].default) == ("horizon", 99)
    assert longer.parameters[1:] == raid.parameters[1:]
    wind = Parameter("wind", 1.0, 0, 2)
    windy = dataclasses.replace(longer, parameters=(*longer.parameters, wind))
    assert windy.parameters == (*longer.parameters, wind)
    assert windy.state_dtype["parameters"].names == ("horizon", "damage", "hit_chance", "arrival", "wind")


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"step": None}, "give either step, or command, judge and an engine"),
        ({"judge": nothing}, "give either step, or command, judge and an engine"),
        ({"step": None, "judge": nothing}, "judge needs command and one engine"),
        ({"roles": (walkers("red_0", "red_0"),)}, "agent names repeat"),
        ({"roles": (walkers("red"),)}, "agent 'red' is not named team_number"),
        ({"roles": (walkers("red_x"),)}, "agent 'red_x' is not named team_number"),
        ({"roles": (walkers("red_0"), walkers("red_1"))}, "names of roles repeat"),
        ({"roles": (walkers("red_0", name="lane"),)}, "are 'team' or 'lane'"),
        ({"roles": (walkers("red_0"),), "zero_sum": True}, "zero_sum needs two teams"),
        ({"state": (("rng", "u8"),)}, r"state fields \['rng'\] belong to the suite"),
        ({"state": (("speed", "f4"),)}, "'speed' is float32"),
        ({"state": (("armed", "?", (2,)),)}, "'armed' is bool"),
        ({"scripts": ("runner",)}, "give script and the names of the scripts together"),
        ({"script": nothing}, "give script and the names of the scripts together"),
        ({"default_opponent": "runner"}, "default_opponent 'runner' is not a script"),
        ({"default_opponent": "mix"}, "default_opponent 'mix' is not a script"),
        ({"global_state": nothing}, "give global_state and global_state_size together"),
        ({"lane_observation": (Field("time"),)}, r"'time' has no finite bounds: \[-inf, inf\]"),
        ({"parameters": (Parameter("speed", 5, 0, 1),)}, r"default of 'speed' is 5, not in \[0, 1\]"),
        ({"parameters": (Parameter("horizon", 5),)}, "the parameter horizon is the suite's"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
    ],
)
def test_a_contradiction_is_refused(changes: dict, complaint: str):
    with pytest.raises(ValueError, match=f"Tiny: .*{complaint}"):
        game(**changes)


@pytest.mark.parametrize(
    ("action", "complaint"),
    [
        (Choice("move", 3, noop=3), r"noop of 'move' is 3, not in \[0, 2\]"),
        (Continuous("turn", (), 0.1, 1.0), r"noop of 'turn' is 0, not in \[0.1, 1\]"),
        (Continuous("turn", (), -np.inf, 1.0), "'turn' has no finite bounds"),
    ],
)
def test_an_action_without_a_place_for_its_noop_is_refused(action: Choice | Continuous, complaint: str):
    role = Role("walker", ("red_0",), (Field("place", (), 0, 9),), (action,))
    with pytest.raises(ValueError, match=complaint):
        game(roles=(role,))


def test_masks_without_choices_are_refused():
    role = Role("walker", ("red_0",), (Field("place", (), 0, 9),), (Continuous("turn"),))
    with pytest.raises(ValueError, match="legal has no choice to forbid"):
        game(roles=(role,), legal=nothing)
