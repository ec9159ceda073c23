"""The evolution strategy: its distribution, its step, and members that play the same matches."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import palaestra
from palaestra_baselines.common.agents import Roster, one_team_roster
from palaestra_baselines.common.evolution import Evolution, Shape, observed_columns, play_members

DUEL = "palaestra/SkirmishDuel-v0"


def shape(hidden: tuple[int, ...] = (), **more: Any) -> Shape:
    """Of a perceptron that sees two of three numbers and gives two."""
    means, deviations = np.array([1.0, -2.0]), np.array([2.0, 0.5])
    made = Shape(np.array([2, 0]), means, deviations, hidden, np.array([1.0, 0.25]), 3)
    return dataclasses.replace(made, **more)


# -- the distribution --------------------------------------------------------------------------------------------------


def test_members_are_drawn_in_mirrored_pairs_about_the_mean():
    search = Evolution(np.array([3.0, -1.0, 0.5]))
    members = search.draw(np.random.default_rng(0), 2000, 0.2)
    np.testing.assert_allclose(members[:2000] - search.mean, search.mean - members[2000:])
    np.testing.assert_allclose((members - search.mean).std(axis=0), 0.2, rtol=0.05)


def test_a_step_goes_towards_members_of_higher_returns_and_is_as_long_as_the_rate():
    search = Evolution(np.zeros(2))
    members = np.array([[0.1, 0.1], [0.1, -0.1], [-0.1, -0.1], [-0.1, 0.1]])
    search.learn(members, members @ [5.0, -2.0], 0.03)
    np.testing.assert_allclose(search.mean, [0.03, -0.03], rtol=1e-4)


def test_no_step_where_all_members_are_alike():
    search = Evolution(np.ones(3))
    members = search.draw(np.random.default_rng(0), 4, 0.1)
    search.learn(members, np.full(8, 2.0), 0.1)
    np.testing.assert_array_equal(search.mean, 1.0)


def test_it_finds_the_top_of_a_hill():
    search, rng, top = Evolution(np.zeros(5)), np.random.default_rng(1), np.array([0.5, -0.3, 0.0, 0.2, 1.0])
    for _ in range(300):
        members = search.draw(rng, 8, 0.05)
        search.learn(members, -((members - top) ** 2).sum(axis=1) + rng.normal(0.0, 0.02, 16), 0.01)
    assert np.abs(search.mean - top).max() < 0.1


def test_a_restored_search_goes_on_as_the_one_that_was_saved():
    search = Evolution(np.zeros(3))
    members = search.draw(np.random.default_rng(0), 3, 0.1)
    search.learn(members, np.arange(6.0), 0.1)
    other = Evolution(np.zeros(3))
    other.restore(search.state())
    for one in (search, other):
        one.learn(members, np.arange(6.0)[::-1].copy(), 0.1)
    np.testing.assert_array_equal(search.mean, other.mean)
    np.testing.assert_array_equal(search.average, other.average)


def test_the_policy_is_a_decaying_mean_of_the_weights():
    search = Evolution(np.zeros(1))
    members = np.array([[0.1], [-0.1]])
    means = []
    for _ in range(2):
        search.learn(members + search.mean, np.array([1.0, 0.0]), 0.1)
        means.append(search.mean[0])
    assert search.average[0] == pytest.approx(0.05 * means[1] + 0.95 * 0.05 * means[0])


# -- perceptrons -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)])
def test_the_saved_layers_give_what_the_member_gave(hidden: tuple[int, ...]):
    made, rng = shape(hidden), np.random.default_rng(0)
    vector, seen = rng.normal(size=made.parameters), rng.normal(size=(1, 6, 3))
    given = made.outputs(made.layers(vector[None]), seen)[0]
    rows, arrays = seen[0], made.arrays(vector)
    for number in range(len(hidden) + 1):
        rows = np.tanh(rows) if number else rows
        rows = rows @ arrays[f"layer_{number}.weight"].T + arrays[f"layer_{number}.bias"]
    np.testing.assert_allclose(rows, given, rtol=1e-12)


def test_each_member_has_its_own_weights():
    made, rng = shape((4,)), np.random.default_rng(0)
    vectors, seen = rng.normal(size=(3, made.parameters)), rng.normal(size=(3, 5, 3))
    together = made.outputs(made.layers(vectors), seen)
    for member in range(3):
        alone = made.outputs(made.layers(vectors[member, None]), seen[member, None])
        np.testing.assert_allclose(together[member], alone[0], rtol=1e-12)


def test_it_starts_with_zeros_and_hidden_layers_that_differ():
    made = shape((4,))
    vector = made.start(np.random.default_rng(0))
    assert not made.outputs(made.layers(vector[None]), np.ones((1, 2, 3))).any()
    assert np.unique(made.layers(vector[None])[0][0]).size == 8


# -- matches -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def duel() -> Any:
    """Two members in two matches each, against a script."""
    sim = palaestra.make_batch(
        DUEL, 4, autoreset_mode="off", map="arena", compiled=False, opponents={"blue": "nearest"}
    )
    yield sim, one_team_roster(Roster, sim.game, "red", numbers=True)
    sim.close()


@pytest.mark.check
def test_equal_members_have_equal_returns_and_others_differ(duel: Any):
    sim, roster = duel
    (role,) = roster.columns
    size, outputs = roster.sizes[role], roster.actions
    made = Shape(np.arange(size), np.zeros(size), np.ones(size), (), np.ones(outputs), size)
    one, other = np.random.default_rng(0).normal(size=(2, made.parameters))
    seeds, decided = np.array([3, 4], np.uint64), []
    returns, decisions = play_members(
        sim, roster, "red", made, np.stack([one, one]), seeds, lambda sim: decided.append(sim)
    )
    assert returns.shape == (2, 2)
    assert len(decided) <= decisions <= 4 * len(decided)
    np.testing.assert_array_equal(returns[0], returns[1])
    mixed, _ = play_members(sim, roster, "red", made, np.stack([one, other]), seeds, lambda _: None)
    np.testing.assert_array_equal(mixed[0], returns[0])
    assert (mixed[1] != returns[0]).any()


def test_fields_are_found_by_their_names(duel: Any):
    _, roster = duel
    everything = observed_columns(roster, ())
    (group,) = roster.groups.values()
    first, second = group.role.observation[:2]
    assert everything.tolist() == list(range(roster.sizes[group.role.name]))
    got = observed_columns(roster, (second.name,)).tolist()
    assert got == list(range(first.size, first.size + second.size))
    with pytest.raises(ValueError, match="observe no field 'nose'"):
        observed_columns(roster, ("nose",))
