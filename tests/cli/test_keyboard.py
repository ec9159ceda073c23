"""Keys from action tables, and actions from keys, without a window."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games import two_team, two_team_homogeneous

from palaestra.cli.keyboard import FULL_SWING_S, RESERVED, REST_KEY, Hands, Keyboard, bind
from palaestra.game import Choice, Continuous, Field, Game, Role
from palaestra.games.calibration import cartpole

RAID, MELEE, CARTPOLE = two_team.game(), two_team_homogeneous.game(), cartpole.game()

PITCH = ("north", "south", "forward", "back", "stay")


def nothing(*arguments: Any) -> bool:
    return False


def game(*actions: Choice | Continuous, agents: tuple[str, ...] = ("red_0", "blue_0")) -> Game:
    role = Role("walker", agents, (Field("place", (), 0, 9),), actions)
    listed = any(isinstance(a, Choice) and a.candidates is not None for a in actions)
    legal = nothing if listed else None
    return Game("Tiny", (role,), (("place", "i8"),), reset=nothing, step=nothing, observe=nothing, legal=legal)


def says(keyboard: Keyboard) -> dict[str, str]:
    return {key.name: key.meaning for key in keyboard.keys}


@pytest.mark.parametrize(
    ("meanings", "agent", "expected"),
    [
        (("left", "right"), "red_0", {"left": "left", "right": "right"}),
        (("stay", "up", "down"), "red_0", {"up": "up", "down": "down"}),
        (("stay", "north", "east", "west"), "red_0", {"up": "north", "right": "east", "left": "west"}),
        (PITCH, "red_0", {"up": "north", "down": "south", "right": "forward", "left": "back"}),
        (PITCH, "blue_0", {"up": "north", "down": "south", "left": "forward", "right": "back"}),
        (("wait", "forward", "left", "right"), "blue_0", {"up": "forward", "left": "left", "right": "right"}),
        (("rest", "pull", "heave"), "red_0", {"1": "rest", "2": "pull", "3": "heave"}),
        (("stay", "north", "jump"), "red_0", {"1": "stay", "2": "north", "3": "jump"}),
        ((), "red_0", {"1": "move 0", "2": "move 1", "3": "move 2"}),
    ],
)  # fmt: skip
def test_directions_are_arrows_and_other_choices_are_digits(meanings: tuple[str, ...], agent: str, expected: dict):
    noop = meanings.index("stay") if "stay" in meanings else 0
    keyboard = bind(game(Choice("move", len(meanings) or 3, meanings, noop=noop)), [agent])
    assert says(keyboard) == expected
    assert keyboard.unbound == ()


def test_alternatives_without_a_meaning_of_their_own_are_numbers():
    keyboard = bind(game(Choice("order", 4, ("nothing", "stop"))), ["red_0"])
    assert [key.meaning for key in keyboard.keys] == ["nothing", "stop", "order 2", "order 3"]


def test_every_choice_has_a_row_of_its_own():
    keyboard = bind(game(Choice("a", 3), Choice("b", 4), Choice("c", 2)), ["red_0"])
    assert [key.name for key in keyboard.keys] == [*"123", *"qwet", *"as"]


def test_no_key_has_two_meanings_and_none_is_the_programs():
    everything = (Choice("go", 3, ("stay", "up", "down")), Choice("say", 9), Continuous("push", (4,)), Choice("aim", 9))
    keyboard = bind(game(*everything), ["red_0"])
    names = [key.name for key in keyboard.keys]
    assert len(names) == len(set(names))
    assert not {*names} & {*RESERVED, REST_KEY}


def test_actions_without_a_key_are_listed():
    keyboard = bind(game(Choice("far", 12), Continuous("joint", (9,))), ["red_0"])
    assert keyboard.unbound[0] == "red_0: far 10, 11"
    assert "red_0: joint[8]" in keyboard.unbound


def test_each_word_of_a_choice_has_a_row_of_its_own():
    tiny = game(Choice("word", 2, ("no", "yes"), shape=(2,)))
    keyboard = bind(tiny, ["red_0"])
    assert [(key.name, key.index, key.meaning) for key in keyboard.keys] == [
        *[("1", 0, "[0] no"), ("2", 0, "[0] yes")],
        *[("q", 1, "[1] no"), ("w", 1, "[1] yes")],
    ]
    hands = Hands(tiny, ["red_0"], keyboard)
    assert [hands.move(keys, 0.1)["red_0"]["word"].tolist() for keys in (["w"], ["2"])] == [[0, 1], [1, 1]]


def test_thousands_of_alternatives_are_abbreviated():
    assert bind(game(Choice("order", 13_000)), ["red_0"]).unbound == ("red_0: order 10 to 12999",)


def test_each_number_has_its_own_bounds():
    tiny = game(Continuous("joint", (2,), (-1.0, 0.0), (1.0, 8.0), noop=(0.0, 4.0)))
    hands = Hands(tiny, ["red_0"], bind(tiny, ["red_0"]))
    assert hands.values["red_0"]["joint"].tolist() == [0.0, 4.0]
    assert hands.move(["right", "up"], FULL_SWING_S)["red_0"]["joint"].tolist() == [1.0, 8.0]


def test_several_agents_share_the_keyboard():
    keyboard = bind(game(Choice("move", 3, ("stay", "up", "down"))), ["red_0", "blue_0"])
    assert [(key.agent, key.name) for key in keyboard.keys] == [
        *[("red_0", "up"), ("red_0", "down")],
        *[("blue_0", "w"), ("blue_0", "s")],
    ]


def test_a_held_key_is_done_and_a_free_hand_rests():
    tiny = game(Choice("move", 3, ("stay", "up", "down")))
    hands = Hands(tiny, ["red_0"], bind(tiny, ["red_0"]))
    moves = [hands.move(keys, 0.1)["red_0"]["move"] for keys in ([], ["up"], ["up", "down"], ["x"])]
    assert moves == [0, 1, 2, 0], "the last key that went down counts"


def test_a_choice_without_rest_keeps_what_was_chosen():
    hands = Hands(CARTPOLE, ["cart_0"], bind(CARTPOLE, ["cart_0"]))
    moves = [hands.move(keys, 0.1)["cart_0"]["push"] for keys in ([], ["right"], [], ["left"], [])]
    assert moves == [0, 1, 1, 0, 0]
    hands.move(["right"], 0.1)
    hands.rest()
    assert hands.values["cart_0"]["push"] == 0


def test_numbers_swing_to_their_bounds_and_back():
    tiny = game(Continuous("push", (2,), -1.0, 2.0, noop=0.5))
    hands = Hands(tiny, ["red_0"], bind(tiny, ["red_0"]))
    quarter = FULL_SWING_S / 4
    seen = [hands.move(["right"], quarter)["red_0"]["push"].tolist() for _ in range(5)]
    assert seen == [[0.875, 0.5], [1.25, 0.5], [1.625, 0.5], [2.0, 0.5], [2.0, 0.5]]
    seen = [hands.move(["down"], quarter)["red_0"]["push"].tolist() for _ in range(4)]
    np.testing.assert_allclose(seen, [[1.625, 0.125], [1.25, -0.25], [0.875, -0.625], [0.5, -1.0]])
    assert hands.move(["left", "right"], quarter)["red_0"]["push"][0] == 0.5, "both ways is neither"


@pytest.mark.parametrize("rules", [RAID, MELEE, CARTPOLE], ids=lambda rules: rules.name)
def test_whatever_is_pressed_is_inside_the_action_space(rules: Game):
    rng = np.random.default_rng(0)
    for agent in rules.agents[:3]:
        keyboard = bind(rules, [agent])
        hands = Hands(rules, [agent], keyboard)
        role, _ = rules.role_of(rules.agents.index(agent))
        names = [key.name for key in keyboard.keys] + ["x", REST_KEY]
        for _ in range(100):
            values = hands.move(rng.choice(names, 3).tolist(), 0.3)[agent]
            for f in role.action:
                value = values[f.name]
                assert 0 <= value < f.n if isinstance(f, Choice) else ((value >= f.low) & (value <= f.high)).all()


# -- lists of the legal alternatives -----------------------------------------------------------------------------------

ORDER = Choice("order", 13_000, candidates=4, noop=5)


def test_keys_of_a_listed_choice_are_places_in_its_list():
    rules = game(Choice("pace", 2), ORDER)
    keyboard = bind(rules, ["red_0"])
    assert [key.name for key in keyboard.keys] == [*"12", *"qwet"]
    assert keyboard.unbound == ()
    assert says(keyboard)["w"] == "order from the list: 2"
    hands = Hands(rules, ["red_0"], keyboard)
    ids = {"red_0": {"order": np.array([7, 12_345, 99, -1], np.int32)}}
    assert hands.move(["w"], 0.1, ids)["red_0"] == {"pace": 0, "order": 12_345}
    assert hands.move(["2", "e"], 0.1, ids)["red_0"] == {"pace": 1, "order": 99}


def test_a_place_behind_the_end_of_the_list_changes_nothing():
    rules = game(ORDER)
    hands = Hands(rules, ["red_0"], bind(rules, ["red_0"]))
    ids = {"red_0": {"order": np.array([7, 12_345, -1, -1], np.int32)}}
    assert hands.move(["4"], 0.1, ids)["red_0"]["order"] == 5
    hands.move(["2"], 0.1, ids)
    assert hands.move(["3"], 0.1, ids)["red_0"]["order"] == 12_345


def test_each_word_of_a_listed_choice_has_its_own_list():
    rules = game(Choice("orders", 50, shape=(2,), candidates=3))
    keyboard = bind(rules, ["red_0"])
    assert [key.name for key in keyboard.keys] == [*"123", *"qwe"]
    hands = Hands(rules, ["red_0"], keyboard)
    ids = {"red_0": {"orders": np.array([[1, 2, 3], [40, 41, -1]], np.int32)}}
    assert hands.move(["3", "w"], 0.1, ids)["red_0"]["orders"].tolist() == [3, 41]


def test_positions_without_a_key_are_listed():
    keyboard = bind(game(Choice("order", 900, candidates=11)), ["red_0"])
    assert keyboard.unbound == ("red_0: order 10",)
