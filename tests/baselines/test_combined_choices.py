"""Several choices of an agent as one: how combinations are numbered, which are legal, and what is refused."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from palaestra import make_batch
from palaestra.game import Choice, Continuous, Field, Role
from palaestra_baselines.common.agents import MOST, JointChoice, Roster

CONFRONT = "palaestra/GraphConfront-v0"
SIGHT = (Field("turn", (), 0, 1),)
KINDS = (*SIGHT, Field("score", (), 0, 9, dtype="i8"))


def joint(*action: Any, observation: tuple[Field, ...] = SIGHT) -> JointChoice:
    """The choices of agents of a role, of a game that has a name alone."""
    game: Any = SimpleNamespace(name="Fair")
    return JointChoice(game, Role("walker", ("one",), observation, action))


THREE = joint(Choice("move", 3, noop=1), Choice("aim", 2), Choice("word", 4, noop=3))


# -- numbers -----------------------------------------------------------------------------------------------------------


def test_combinations_are_numbered_like_digits_the_first_choice_counts_most():
    assert (THREE.sizes, THREE.n) == ((3, 2, 4), 24)
    expected = list(itertools.product(range(3), range(2), range(4)))
    assert THREE.split(np.arange(24)).tolist() == [list(one) for one in expected]
    assert THREE.split(np.array([[0, 23], [5, 8]])).tolist() == [[[0, 0, 0], [2, 1, 3]], [[0, 1, 1], [1, 0, 0]]]


def test_the_noop_is_the_combination_of_the_noops():
    assert THREE.split(np.array(THREE.noop)).tolist() == [1, 0, 3]
    assert joint(Choice("move", 5, noop=2)).noop == 2


def test_a_combination_is_legal_where_all_its_parts_are():
    draw = np.random.default_rng(0)
    allowed = (draw.random((6, 5, 9)) < 0.6).astype(np.uint8)
    found = THREE.mask(allowed)
    assert (found.dtype, found.shape) == (np.bool_, (6, 5, 24))
    for number, (move, aim, word) in enumerate(THREE.split(np.arange(24))):
        expected = allowed[..., move] & allowed[..., 3 + aim] & allowed[..., 5 + word]
        np.testing.assert_array_equal(found[..., number], expected)


def test_a_single_choice_is_as_it_is():
    one = joint(Choice("move", 5))
    numbers = np.array([[3, 0], [1, 4]])
    assert (one.n, one.sizes) == (5, (5,))
    assert one.split(numbers) is numbers
    assert one.mask(np.array([[1, 0, 2, 0, 1]], np.uint8)).tolist() == [[True, False, True, False, True]]


# -- refused -----------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[tuple[Any, ...], str]] = [
    (
        (Choice("move", 3), Continuous("push", (), -1, 1)),
        "Fair: agents of role 'walker' have other actions than single",
    ),
    ((Choice("word", 3, shape=(2,)),), "have other actions than single choices"),
    ((Choice("move", 3), Choice("word", 30_000, candidates=8)), "alternatives of 'word' are a list of candidates"),
    ((Choice("move", 64), Choice("aim", 65)), "have 4160 combinations of their choices"),
]


@pytest.mark.parametrize(("action", "message"), REFUSED, ids=[message[-30:] for _, message in REFUSED])
def test_what_is_no_choice_of_a_few_combinations_is_refused(action: tuple[Any, ...], message: str):
    with pytest.raises(ValueError, match=message):
        joint(*action)


def test_as_many_combinations_as_allowed_are_not_refused():
    assert joint(Choice("move", 64), Choice("aim", MOST // 64)).n == MOST


def test_observations_of_several_dtypes_are_refused():
    with pytest.raises(ValueError, match="agents of role 'walker' see numbers of several kinds"):
        joint(Choice("move", 3), observation=KINDS)


def test_a_roster_that_reads_fields_one_by_one_takes_observations_of_several_dtypes():
    game: Any = SimpleNamespace(name="Fair")
    assert JointChoice(game, Role("walker", ("one",), KINDS, (Choice("move", 3),)), takes_records=True).n == 3


# -- played ------------------------------------------------------------------------------------------------------------


def test_learners_play_combinations_of_moves_and_targets():
    sim: Any = make_batch(CONFRONT, 3, compiled=False, graph="grid:3x3", autoreset_mode="off", opponents={})
    sim.reset(seed=0)
    roster = Roster(sim.game, ["red"])
    legal, masks = roster.read_legal(sim), sim.legal["unit"] if isinstance(sim.legal, dict) else sim.legal
    moves, targets = (choice.n for choice in sim.game.roles[0].action)
    assert legal.shape == (3, roster.agents, moves * targets)
    assert roster.noops.tolist() == [0] * roster.agents
    allowed = masks[:, : roster.agents]
    expected = allowed[..., :moves, None] & allowed[..., None, moves:]
    np.testing.assert_array_equal(legal, (expected != 0).reshape(legal.shape))
    draw = np.random.default_rng(0)
    numbers = np.where(legal, draw.random(legal.shape), -1.0).argmax(axis=2)
    roster.write_actions(sim, numbers)
    actions = sim.actions["unit"] if isinstance(sim.actions, dict) else sim.actions
    assert actions[:, : roster.agents].tolist() == np.stack([numbers // targets, numbers % targets], axis=-1).tolist()
    sim.step()
    assert not sim.info["illegal"][:, : roster.agents].any()
