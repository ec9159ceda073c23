"""The map of both games: alternatives, moves at once, lots, and what holds in every match."""

import itertools
from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler, random_actions
from grid.grids import assert_map_is_whole, cells, fight, go, hit_points, hunt, place, words_of

from palaestra.games.grid.grid_ground import CLASSES, class_of
from palaestra.testing.checks.mirror_checks import walk

pytestmark = pytest.mark.jitless

# --------------------------------------------------------------------------------------------------------- alternatives

WAYS = {"ahead": (0, 1), "back": (0, -1), "up": (-1, 0), "down": (1, 0)}


def way(words: str) -> np.ndarray:
    """Rows down and columns ahead of alternatives such as "move 2 up" and "hit back and down"."""
    far = 2 if "2" in words else 1
    return far * sum((np.array(step) for name, step in WAYS.items() if name in words.split()), np.zeros(2, np.int64))


@pytest.mark.parametrize("agent", ["red_0", "blue_0", "predator_0", "prey_0"])
def test_each_alternative_concerns_the_cell_that_its_words_say(agent: str):
    sim = fight(lanes=1) if agent in ("red_0", "blue_0") else hunt(lanes=1)
    slot, side = list(sim.game.agents).index(agent), -1 if agent == "blue_0" else 1
    role, index = sim.game.role_of(slot)
    legal = sim.legal if agent in ("red_0", "blue_0") else sim.legal[role.name]
    for alternative, words in enumerate(words_of(role)):
        there = tuple((np.array((9, 9)) + way(words) * (1, side)).tolist())
        both = {slot: (9, 9), 1 - slot: there if words.startswith("hit") else (0, 0)}
        place(sim, both[0], both[1], hit_points=100)
        assert legal[0, index, alternative], words
        go(sim, **{agent: words})
        if words.startswith("hit"):
            assert cells(sim)[slot] == (9, 9)
            assert hit_points(sim)[1 - slot] == 81 or sim.info["catches"][0] == 1
            sim.reset(seed=1)
        else:
            assert cells(sim)[slot] == there


def test_two_cells_far_an_agent_passes_over_others():
    sim = go(place(fight(), (5, 5), (5, 6)), red_0="move 2 ahead", blue_0="move 2 ahead")
    assert cells(sim) == [(5, 7), (5, 4)]


def test_nobody_moves_into_walls_or_into_a_cell_that_was_taken_before_the_decision():
    sim = place(fight(2, 1), (0, 0), (0, 1), (1, 1))
    moves = [words for words, may in zip(words_of(sim.game.roles[0]), sim.legal[0, 0], strict=True) if may]
    assert moves == ["stay", "move down", "move 2 ahead", "move 2 down", "hit ahead and down"]
    go(sim, red_1="move ahead")
    assert cells(sim) == [(0, 0), (0, 2), (1, 1)]


def test_an_illegal_choice_stays_and_is_counted():
    sim = place(fight(), (0, 0), (5, 5))
    sim.step(np.array([[3, 13]]))  # up, into the wall; a hit at nobody
    assert cells(sim) == [(0, 0), (5, 5)]
    assert hit_points(sim) == [100, 100]
    assert sim.info["illegal"].tolist() == [[1, 1]]


# ---------------------------------------------------------------------------------------------------------- moves, lots

TO_THE_MIDDLE = {"red_0": "move ahead", "red_1": "move down", "blue_0": "move ahead", "blue_1": "move up"}
AROUND = (5, 5), (4, 6), (5, 7), (6, 6)


@pytest.mark.check
def test_of_several_that_want_a_cell_exactly_one_gets_it():
    sim = go(place(fight(2, 2, lanes=40), *AROUND), **TO_THE_MIDDLE)
    got = [[place == (5, 6) for place in cells(sim, lane)] for lane in range(40)]
    assert (np.sum(got, axis=1) == 1).all()
    assert np.any(got, axis=0).all()
    for lane in range(40):
        assert all(a in ((5, 6), b) for a, b in zip(cells(sim, lane), AROUND, strict=True))
    assert_map_is_whole(sim)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_with_ties_nobody_all_that_want_the_same_cell_stay(count: int):
    sim = place(fight(2, 2, ties="nobody"), *AROUND)
    go(sim, **dict(list(TO_THE_MIDDLE.items())[:count]))
    assert cells(sim) == list(AROUND)
    go(sim, red_0="move ahead")
    assert cells(sim)[0] == (5, 6)


@long_without_the_compiler
@pytest.mark.parametrize("who", ["01", "02", "03", "12", "012", "013", "0123"])
def test_all_that_want_a_cell_are_as_likely_to_get_it(who: str):
    lanes, slots = 6000, [int(k) for k in who]
    sim = place(fight(2, 2, lanes, compiled=True), *AROUND)
    go(sim, **{agent: words for k, (agent, words) in enumerate(TO_THE_MIDDLE.items()) if k in slots})
    states = sim.states
    got = ((states["row"] == 5) & (states["column"] == 6) & (states["alive"] != 0)).sum(axis=0)[slots]
    assert got.sum() == lanes
    expected = lanes / len(slots)
    assert np.sum((got - expected) ** 2 / expected) < 16.3, got  # chi-square of 3 degrees of freedom, 1 in 1,000


def test_the_order_of_the_agents_makes_no_difference():
    rng, order = np.random.default_rng(1), np.array([3, 1, 0, 2, 4, 5, 11, 8, 9, 10, 6, 7])
    sim, other = (fight(6, 6, ties="nobody", parameters={"damage": 50}) for _ in range(2))
    for _ in range(10):
        places = np.stack(np.unravel_index(rng.choice(36, 12, replace=False), (6, 6)), axis=1).tolist()
        points = rng.integers(1, 101, 12)
        place(sim, *map(tuple, places), hit_points=points)
        place(other, *(tuple(places[k]) for k in order), hit_points=points[order])
        actions = sample_legal(sim.legal, rng)
        sim.step(actions)
        other.step(actions[:, order])
        assert [cells(sim)[k] for k in order] == cells(other)
        assert [hit_points(sim)[k] for k in order] == hit_points(other)
        np.testing.assert_array_equal(sim.rewards[:, order], other.rewards)
        sim.reset(seed=1)
        other.reset(seed=1)


def sample_legal(mask: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A legal alternative for each agent; hits are as likely as all the rest."""
    weights = np.where(mask, rng.random(mask.shape), -1.0)
    weights[..., 5:] += mask[..., 5:] * rng.choice([0.0, 1.0], (*mask.shape[:-1], 1))
    return weights.argmax(axis=-1)


@long_without_the_compiler
def test_the_mirror_image_of_a_battle_goes_on_as_its_mirror_image():
    sim, twin = (fight(16, 16, 32, compiled=True) for _ in range(2))
    for team in ("red", "blue"):
        sim.set_opponent(team, "rush:0.7")
    _, matches = walk(sim, twin, 3, range(100))
    assert matches > 0


# -------------------------------------------------------------------------------------------- all sizes and matches


def test_the_smallest_class_that_holds_teams_and_map_is_taken():
    for (agents, size), (more, larger) in itertools.pairwise(CLASSES):
        assert class_of(agents, size) == (agents, size)
        assert class_of(agents + 1, size) == class_of(agents, size + 1) == (more, larger)
        assert class_of(1, larger) == (more, larger)


SIZES = [(16, 64), (17, 64), (16, 65), (128, 100), (129, 101), (512, 128), (513, 129), (1024, 200)]


def play_at(sim: Any, decisions: int, players: tuple[str, ...]) -> None:
    """Plays random actions, legal or not, then scripts; the map stays whole."""
    rng = np.random.default_rng(5)
    for player in ("", *players):
        for team in sim.game.teams if player else ():
            sim.set_opponent(team, player)
        for _ in range(decisions):
            sim.step(None if player else random_actions(sim, rng))
            assert_map_is_whole(sim)


@pytest.mark.parametrize("make", [fight, hunt])
@pytest.mark.parametrize(
    ("agents", "size"), [pytest.param(*s, marks=pytest.mark.slow) if s[0] > 17 else s for s in SIZES]
)
def test_never_two_agents_in_a_cell_and_no_index_beyond_the_map_at_the_limits_of_each_class(
    make: Any, agents: int, size: int
):
    play_at(make(agents, agents - 1, map_size=size), 2, ("rush:0.8",) if agents < 500 else ())


@long_without_the_compiler
@pytest.mark.parametrize("make", [fight, hunt])
@pytest.mark.parametrize("options", [{}, {"ties": "nobody"}], ids=["lots", "nobody"])
def test_never_two_agents_in_a_cell_in_long_matches_on_a_crowded_map(make: Any, options: dict):
    play_at(make(16, 14, 16, compiled=True, **options), 100, ("rush:0.8", "focus:0.8", "flee:0.8"))
