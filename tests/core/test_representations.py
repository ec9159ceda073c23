"""Other ways to see the same match: chosen by name, in one vector or by field, under the same rules."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from games import size_game
from games.play import idle_actions, random_actions, started

import palaestra
from palaestra import registry
from palaestra.core.compile.linker import link
from palaestra.game import Representation

pytestmark = pytest.mark.jitless

GAME = size_game.game(agents=4, parcels=5)
COURIERS = "tests/RepresentedCouriers-v0"
palaestra.register(COURIERS, "games.size_game:game", family="test")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")


@pytest.mark.parametrize(
    ("word", "name", "form"),
    [
        (None, "", "dict"),
        ("flat", "", "flat"),
        ("dict", "", "dict"),
        ("nearest", "nearest", "flat"),
        ("nearest:flat", "nearest", "flat"),
        ("nearest:dict", "nearest", "dict"),
    ],
)
def test_a_word_says_the_representation_and_the_form(word: str | None, name: str, form: str):
    shown, said = GAME.shown_as(word)
    assert shown is (GAME.represented("nearest") if name else GAME)
    assert said == form


def test_a_default_may_say_both():
    game = dataclasses.replace(GAME, default_observation="nearest:dict")
    assert game.shown_as(None) == (game.represented("nearest"), "dict")
    assert game.shown_as("flat") == (game, "flat")


@pytest.mark.parametrize(
    ("word", "complaint"),
    [
        ("far", "Couriers has no observation 'far': choose from 'flat', 'dict', 'nearest'"),
        ("far:dict", "Couriers has no observation 'far'"),
        ("nearest:box", "observation='nearest:box': the form of 'nearest' is \"flat\" or \"dict\", got 'box'"),
        ("flat:dict", "Couriers has no observation 'flat'"),
    ],
)
def test_another_word_is_refused(word: str, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        GAME.shown_as(word)


def test_a_default_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="default_observation 'far:dict' is neither flat, dict nor a representation"):
        dataclasses.replace(GAME, default_observation="far:dict")


def test_it_replaces_what_is_seen_and_leaves_the_rules():
    nearest = GAME.represented("nearest")
    assert nearest.roles[0].observation[0].name == "nearest_m"
    assert (nearest.lane_observation, nearest.observe_reset) == ((), None)
    assert nearest.roles[0].action == GAME.roles[0].action
    assert nearest.roles[0].capacity == GAME.roles[0].capacity
    assert (nearest.step, nearest.state_dtype, nearest.parameters) == (GAME.step, GAME.state_dtype, GAME.parameters)


def test_a_role_that_it_does_not_name_keeps_its_table():
    blind = dataclasses.replace(
        GAME,
        representations={"same": Representation("all", size_game.observe, {}, observe_reset=size_game.observe_reset)},
    )
    assert blind.represented("same").roles[0].observation == GAME.roles[0].observation


def test_it_is_the_same_object_each_time():
    assert GAME.represented("nearest") is GAME.represented("nearest")


def test_another_representation_shows_the_same_match():
    full, near = (
        started(GAME, 2, opponents={"blue": "mix"}),
        started(GAME.represented("nearest"), 2, opponents={"blue": "mix"}),
    )
    rng = np.random.default_rng(0)
    for _ in range(5):
        actions = random_actions(full, rng)
        full.step(actions)
        near.step(actions)
        np.testing.assert_array_equal(near.states, full.states)
        np.testing.assert_array_equal(near.rewards, full.rewards)
        np.testing.assert_array_equal(near.buffers.mask_bytes, full.buffers.mask_bytes)
    assert near.observations.shape == (2, 4, 2)
    offsets = full.buffers.observations["courier"]["parcels"]["offset_m"][0, 0]
    left = full.buffers.observations["courier"]["parcels"]["left"][0, 0] > 0
    assert near.observations[0, 0].tolist() in offsets[left].tolist()


def test_presets_share_its_kernel_too():
    other = size_game.game(agents=7, parcels=9)
    assert link(GAME.represented("nearest")) is link(other.represented("nearest"))
    assert link(GAME.represented("nearest")) is not link(GAME)


def test_faces_take_the_word():
    env: Any = registry.make_env(COURIERS, observation="nearest", agents=4)
    assert env.observation_space.shape == (2 * 2,)
    by_name: Any = registry.make_env(COURIERS, observation="nearest:dict", agents=4)
    assert by_name.reset(seed=1)[0].keys() == {"nearest_m"}
    assert registry.make_env(COURIERS, agents=4).reset(seed=1)[0].keys() >= {"couriers", "parcels", "worth"}
    batch = palaestra.make_batch(COURIERS, 2, observation="nearest", agents=4)
    batch.reset(seed=1)
    assert batch.observations.shape == (2, 4, 2)
    many: Any = registry.make_parallel(COURIERS, observation="nearest", agents=4, mask=None)
    assert many.reset(seed=1)[0]["red_0"].shape == (2,)
    with pytest.raises(ValueError, match="has no observation 'far'"):
        registry.make_env(COURIERS, observation="far")


def test_what_is_seen_does_not_reach_through_from_the_last_decision():
    sim = started(GAME.represented("nearest"), 2)
    sim.states["taken"][:] = 1
    sim.step(idle_actions(sim))
    assert not sim.observations.any()


def total_worth(s: Any, world: Any, out: Any):
    """A global state of one number."""
    out[0] = s.steps


def test_it_may_have_a_global_state_a_form_and_codecs_of_its_own():
    codec: Any = object()
    brief = dataclasses.replace(
        GAME.representations["nearest"],
        global_state=total_worth,
        global_state_size=1,
        default_form="dict",
        codecs={"brief": codec},
    )
    game = dataclasses.replace(GAME, representations={"brief": brief})
    shown, form = game.shown_as("brief")
    assert (form, shown.default_observation) == ("dict", "dict")
    assert game.shown_as("brief:flat") == (shown, "flat")
    assert shown.codecs == {**game.codecs, "brief": codec}
    assert started(shown, 2).state().shape == (2, 1)
    assert game.global_state is GAME.global_state
    assert "brief" not in game.codecs


def test_without_one_the_global_state_is_the_games():
    nearest = GAME.represented("nearest")
    assert (nearest.global_state, nearest.global_state_size) == (GAME.global_state, GAME.global_state_size)


@pytest.mark.parametrize(
    ("id", "keywords", "advice"),
    [
        ("palaestra/GraphPursuit-v0", {"view": "nodes"}, "'view': say observation=\"nodes\""),
        ("palaestra/GraphConfront-v0", {"view": "hops"}, "'view': say observation=\"hops\""),
        (
            "palaestra/Skirmish-3m-v0",
            {"compat": "smac"},
            "'compat': say observation=\"smac\" .*; smac_rules=True",
        ),
    ],
)
@pytest.mark.parametrize("make", [palaestra.make_batch, registry.make_env, registry.make_vec, registry.make_parallel])
def test_another_keyword_for_a_representation_is_refused_and_told_the_right_one(
    make: Any, id: str, keywords: dict[str, str], advice: str
):
    with pytest.raises(TypeError, match=f"got an unexpected keyword argument {advice}"):
        make(id, **keywords)


def test_a_codec_of_another_representation_is_named_with_it():
    with pytest.raises(ValueError, match="no codec 'graph' \\(it has: none\\); say observation=\"nodes\""):
        registry.make_parallel("palaestra/GraphPursuit-v0", codec="graph")
