"""A game says what it is in data, and contradictions are refused where they are written down."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from games import two_team

from palaestra.game import Choice, Continuous, Field, Game, Parameter, Role, Table


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


MOVED: dict[str, Any] = {"command": nothing, "advance": nothing, "evaluate": nothing}


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


def test_plots_are_fields_of_what_agents_see_and_of_the_match_or_facts():
    assert game(plots=("place",)).plots == ("place",)
    assert game(plots=("speed",), info=(Field("speed", (), 0, 9),)).plots == ("speed",)
    assert game(plots=("speed",), facts="some_module:facts").plots == ("speed",)


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


THREE = {"script": nothing, "scripts": ("a", "b", "c")}


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"step": None}, "give either step, or command, evaluate and an engine"),
        ({"evaluate": nothing}, "give either step, or command, evaluate and an engine"),
        ({"step": None, "evaluate": nothing}, "evaluate needs command and one engine"),
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
        ({"held_out": ("runner",)}, r"held_out must be the last scripts, and not all, got \('runner',\) of \(\)"),
        ({**THREE, "held_out": ("a", "b", "c")}, "held_out must be the last scripts, and not all"),
        ({**THREE, "held_out": ("b",)}, "held_out must be the last scripts"),
        ({**THREE, "held_out": ("c", "b")}, "held_out must be the last scripts"),
        ({**THREE, "held_out": ("c",), "default_opponent": "c"}, "default_opponent 'c' is held out for evaluation"),
        ({**THREE, "held_out": ("c",), "default_opponent": "held_out"}, "default_opponent 'held_out' is held out"),
        ({**THREE, "default_opponent": "held_out"}, "default_opponent 'held_out' is not a script"),
        ({"plots": ("speed",)}, "plots names at most two fields, got"),
        ({"global_state": nothing}, "give global_state and global_state_size together"),
        ({"lane_observation": (Field("time"),)}, r"'time' has no finite bounds: \[-inf, inf\]"),
        ({"parameters": (Parameter("speed", 5, 0, 1),)}, r"default of 'speed' is 5, not in \[0, 1\]"),
        ({"parameters": (Parameter("horizon", 5),)}, "the parameter horizon is the suite's"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        (
            {"step": None, "evaluate": nothing, "command": nothing},
            "evaluate needs command and one engine: advance or phy",
        ),
        ({"step": None, **MOVED, "physics": "a:B"}, "evaluate needs command and one engine: advance or physics"),
        ({"step": None, **MOVED, "command": None}, "evaluate needs command and one engine"),
        ({"command": nothing}, "command, advance and physics go with evaluate, not with step"),
        ({"advance": nothing}, "command, advance and physics go with evaluate, not with step"),
        ({"physics": "a:B"}, "command, advance and physics go with evaluate, not with step"),
        ({"load": nothing}, "load completes the bodies of a compiled engine: it needs advance"),
        ({"step": None, **MOVED, "advance": None, "physics": "a:B", "load": nothing}, "load .* needs advance"),
        ({"plan": nothing}, "plan plans for scripts: it needs script"),
        ({"script": nothing, "scripts": ("a",) * 32}, "teams times scripts must be at most 62"),
        ({"global_state_size": 3}, "give global_state and global_state_size together"),
        ({"reward": "agent", "zero_sum": True}, 'zero_sum is a promise about team rewards: it needs reward="team"'),
        ({"default_codec": "text"}, "default_codec 'text' is not one of codecs"),
        ({"default_observation": "far"}, "default_observation 'far' is neither flat, dict nor a representation"),
        ({"observe_reset": nothing}, 'give observe_reset and fields with at="reset" together'),
        ({"lane_observation": (Field("x", (), 0, 1, world="x"),)}, r"'x' is f4 \(\), but world.x is NoneType"),
        ({"team_observation": (Field("x", (), 0, 1, world="x"),)}, "such a field belongs to lane_observation"),
        ({"parameters": (Parameter("x", np.nan),)}, "default of 'x' is nan"),
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


def test_sixty_two_plans_fit():
    assert len(game(script=nothing, scripts=("a",) * 31).scripts) == 31


def test_a_game_with_a_compiled_engine_is_no_contradiction():
    assert game(step=None, **MOVED, load=nothing).periods == 1


def seen(field: Field | Table) -> Role:
    return Role("walker", ("red_0", "blue_0"), (field,), (Choice("move", 3),))


@pytest.mark.parametrize(
    "changes",
    [
        {"state": (("size", "i8"),)},
        {"state": (("body", [("mass", "f8"), ("size", "f8")], (3,)),)},
        {"info": (Field("size", dtype="i8"),)},
        {"parameters": (Parameter("size", 1),)},
        {"scratch": (("size", "f8"),)},
        {"roles": (walkers("red_0", "blue_0", name="size"),)},
        {"roles": (seen(Field("size", (), 0, 1)),)},
        {"roles": (seen(Table("units", 2, (Field("size", (), 0, 1),))),)},
        {"roles": (Role("walker", ("red_0",), (Field("place", (), 0, 9),), (Choice("size", 3),)),)},
        {"team_observation": (Field("size", (), 0, 1),)},
        {"lane_observation": (Field("size", (), 0, 1),)},
    ],
)
def test_a_name_that_records_of_numpy_have_themselves_is_refused(changes: dict):
    with pytest.raises(ValueError, match="Tiny: 'size' is an attribute of NumPy's records: give the field another na"):
        game(**changes)


@pytest.mark.parametrize("name", ["shape", "data", "flat", "T", "base", "max", "round", "item", "copy"])
def test_there_are_many_such_names(name: str):
    with pytest.raises(ValueError, match=f"Tiny: '{name}' is an attribute of NumPy's records"):
        game(state=((name, "i8"),))


@pytest.mark.check
def test_no_registered_game_has_one():
    from palaestra import registry

    for id in registry.ROWS:  # making a game refuses them
        if not id.startswith("test"):
            registry.make_game(id)


@pytest.mark.parametrize("member", ["f4", "?"])
def test_a_nested_record_of_the_state_holds_real_numbers_in_double_precision(member: str):
    body = np.dtype([("x", "f8"), ("wheel", [("grip", member, (2,))], (3,))])
    with pytest.raises(ValueError, match=r"state field 'body.wheel.grip' is (float32|bool): flags are uint8"):
        game(state=(("body", body, (2,)),))
