"""Lists of candidates: the legal ones of thousands of alternatives, which stay ids of the whole action."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from games import orchard
from games.orchard import GOODS, ROOM, started
from games.play import idle_actions
from gymnasium import spaces

from palaestra.core.contract.fields import table_rows
from palaestra.core.contract.spaces import action_space
from palaestra.game import Choice, Field, Game, Role, offer

pytestmark = pytest.mark.jitless

FIRST, SECOND = 3, 4  # slots of the carriers blue_1 and red_2


def ids(sim: Any, lane: int = 0) -> Any:
    """The two lists of the two carriers."""
    return sim.legal["carrier"]["loads"]["ids"][lane].tolist()


def counts(sim: Any, lane: int = 0) -> Any:
    return sim.legal["carrier"]["loads"]["count"][lane].tolist()


def test_the_rules_list_ids_and_what_is_beyond_the_list_is_minus_one():
    sim = started(1)
    assert ids(sim) == [[[0, 103, -1, -1], [0, 203, -1, -1]], [[0, 104, -1, -1], [0, 204, -1, -1]]]
    assert counts(sim) == [[2, 2], [2, 2]]
    assert sim.legal["carrier"]["loads"]["ids"].dtype == np.int32
    sim.step(idle_actions(sim))
    assert ids(sim)[0] == [[0, 103, GOODS - 1, -1], [0, 203, GOODS - 1, -1]]
    sim.step(idle_actions(sim))
    assert ids(sim)[0] == [[0, 103, -1, -1], [0, 203, -1, -1]]


def test_what_is_listed_is_done_and_what_is_not_is_counted_and_replaced():
    sim = started(2)
    actions = idle_actions(sim)
    actions["carrier"]["loads"][0] = [[103, 0], [0, 204]]
    actions["carrier"]["loads"][1] = [[203, 203], [1, 12_999]]  # in its own list alone
    sim.step(actions)
    assert sim.states["count"][:, [FIRST, SECOND]].tolist() == [[103, 204], [203, 0]]
    assert sim.info["illegal"].tolist() == [[0] * 5, [0, 0, 0, 1, 2]]
    assert sim.actions["carrier"]["loads"][1].tolist() == [[0, 203], [0, 0]]
    actions["carrier"]["loads"][1] = [[103, 203], [GOODS - 1, 0]]
    sim.step(actions)
    assert sim.states["count"][1, [FIRST, SECOND]].tolist() == [203 + 306, GOODS - 1]


def test_ids_beyond_n_are_no_actions_listed_or_not():
    sim = started(1)
    actions = idle_actions(sim)
    for value in (-1, GOODS):
        actions["carrier"]["loads"][0, 0, 0] = value
        with pytest.raises(ValueError, match=rf"blue_1: loads\[0\] = {value} is not an integer in \[0, 13000\)"):
            sim.step(actions)


@pytest.mark.check
def test_a_random_player_draws_uniformly_from_its_list():
    sim = started(60, opponents={"red": "random", "blue": "random"})
    drawn: dict[int, int] = {}
    for _ in range(10):
        listed = sim.legal["carrier"]["loads"]["ids"].copy()
        sim.step()
        loads = sim.actions["carrier"]["loads"]
        assert (listed == loads[..., None]).any(axis=3).all()
        for value in loads[:, 0, 0].tolist():
            drawn[value] = drawn.get(value, 0) + 1
    assert sim.info["illegal"].sum() == 0
    # Five decisions with two ids, five with three: 60 * (5/2 + 5/3) of each common id.
    assert drawn.keys() == {0, 103, GOODS - 1}
    assert abs(drawn[0] - 250) < 50
    assert abs(drawn[103] - 250) < 50
    assert abs(drawn[GOODS - 1] - 100) < 35


def test_an_agent_that_is_not_to_act_has_the_noop_alone():
    sim = started(1, parameters={"leaver": FIRST})
    sim.step(idle_actions(sim))
    assert ids(sim)[0] == [[0, -1, -1, -1]] * 2
    assert counts(sim)[0] == [1, 1]
    assert ids(sim)[1][0] == [0, 104, GOODS - 1, -1]
    actions = idle_actions(sim)
    actions["carrier"]["loads"][0, 0] = 103
    sim.step(actions)
    assert sim.states["count"][0, FIRST] == 0
    assert sim.info["illegal"][0, FIRST] == 0


@pytest.mark.parametrize("flood", [3, 9])
def test_what_is_offered_beyond_the_room_is_counted_and_changes_nothing_else(flood: int):
    sim = started(1, parameters={"flood": flood})
    assert counts(sim) == [[2 + flood] * 2] * 2
    expected = [[[0, 100 * w + slot, 5000, 5001] for w in (1, 2)] for slot in (FIRST, SECOND)]
    assert ids(sim) == expected
    assert sim.legal["picker"][0].tolist() == [[1, 1, 0], [1, 1, 1], [1, 1, 0]]
    actions = idle_actions(sim)
    actions["carrier"]["loads"][0] = [[5001, 0], [5002, 0]]
    sim.step(actions)
    assert sim.info["illegal"][0].tolist() == [0, 0, 0, 0, 1]
    players = started(24, parameters={"flood": flood}, opponents={"red": "random", "blue": "random"})
    players.step()
    assert set(players.actions["carrier"]["loads"][:, 0, 0].tolist()) == {0, 103, 5000, 5001}


def test_offering_writes_no_byte_beyond_the_list():
    memory = np.full(3, 77, np.int32)
    listing = SimpleNamespace(count=0, ids=memory[:2])
    for number in range(5):
        offer(listing, number)
    assert (listing.count, memory.tolist()) == (5, [0, 1, 77])


def test_scripts_may_do_what_is_listed():
    sim = started(1, opponents={"red": "one", "blue": "two"})
    sim.step()
    assert sim.actions["carrier"]["loads"][0].tolist() == [[0, 203], [104, 0]]
    assert sim.info["illegal"].sum() == 0


def test_masks_hold_lists_and_no_thirteen_thousand_bytes():
    sim = started(1)
    assert sim.buffers.masks.dtype.itemsize == 3 * 3 + 2 * 2 * (4 + 4 * ROOM)
    loads: Any = orchard.game().roles[1].action[0]
    assert loads.mask_bytes == 4 + 4 * ROOM


def test_the_dense_mask_of_one_word_can_be_had():
    sim = started(2)
    words = sim.action_table
    number = int(words.first_word[SECOND]) + 1
    dense = words.allowed(sim.buffers.mask_bytes, number)
    assert dense.shape == (2, GOODS)
    assert np.flatnonzero(dense[1]).tolist() == [0, 204]
    listed, count = words.listed(sim.buffers.mask_bytes, number)
    assert (listed[1].tolist(), count.tolist()) == ([0, 204, -1, -1], [2, 2])


def test_an_action_is_an_id_of_all_alternatives():
    assert action_space((Choice("c", GOODS, candidates=4),)) == spaces.Discrete(GOODS)
    assert action_space((Choice("c", GOODS, shape=(3,), candidates=4),)) == spaces.MultiDiscrete([GOODS] * 3)
    row = table_rows((Choice("c", GOODS, about="what", shape=(3,), candidates=4),))[0]
    assert (row["high"], row["about"], row["shape"]) == ("12999", "what (legal ones as a list of at most 4)", "3")


def nothing(*arguments):
    return 0


def test_a_list_without_a_writer_is_refused():
    role = Role("caller", ("red_0",), (Field("x", (), 0, 1),), (Choice("order", 9, candidates=3),))
    with pytest.raises(ValueError, match="'order' has candidates: legal has to list them"):
        Game("Tiny", (role,), (), reset=nothing, step=nothing, observe=nothing)


# -- choices of several words with dense masks -------------------------------------------------------------------------


def reset(s, world):
    s.limit = 1


def step(s, world, actions, rewards, scratch):
    for word in range(2):
        s.said[word] = actions.speaker[0].tokens[word]
    s.limit += 1
    return 0


def observe(s, world, observations, scratch):
    observations.speaker[0].limit = s.limit


def legal(s, world, mask):
    for a in range(2):
        for word in range(2):
            for token in range(4):
                mask.speaker[a].tokens[word, token] = token <= s.limit + word


def speakers(capacity: int | None) -> Game:
    tokens = Choice("tokens", 4, shape=(2,), capacity=capacity)
    speaker = Role("speaker", ("red_0", "blue_0"), (Field("limit", (), 0, 9),), (tokens,))
    state = (("limit", "i8"), ("said", "i8", (2,)))
    return Game("Speakers", (speaker,), state, reset=reset, step=step, observe=observe, legal=legal)


@pytest.mark.parametrize("capacity", [None, 6])
def test_each_word_has_a_dense_mask_of_its_own(capacity: int | None, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    sim = started(1, speakers(capacity))
    assert sim.legal.shape == (1, 2, 8)
    assert sim.legal[0, 0].tolist() == [1, 1, 0, 0, 1, 1, 1, 0]
    sim.step(np.array([[[2, 2], [0, 0]]]))
    assert sim.states["said"][0].tolist() == [0, 2]
    assert sim.info["illegal"][0].tolist() == [1, 0]
    assert sim.legal[0, 0].tolist() == [1, 1, 1, 0, 1, 1, 1, 1]
    with pytest.raises(ValueError, match=r"lane 0, red_0: tokens\[1\] = 4 is not an integer in \[0, 4\)"):
        sim.step(np.array([[[2, 4], [0, 0]]]))
