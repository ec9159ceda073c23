"""What is drawn at the start of a match: kinds, places, and which lane draws what."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from skirmish.battles import SMAC, start, write_groups

from palaestra import make_batch
from palaestra.core.compile.linker import jit_disabled, record_view
from palaestra.games.skirmish import games
from palaestra.games.skirmish.battle_records import World
from palaestra.games.skirmish.sampling import draw_battle

ID = "palaestra/SkirmishGen-v0"
compiles = pytest.mark.skipif(jit_disabled(), reason="compares with compiled rules")
MIDDLE = np.array([16.0, 16.0])


class Drawn(NamedTuple):
    """Kinds by name ``[matches, units]`` and places ``[matches, units, 2]`` of both sides."""

    red_kinds: np.ndarray
    blue_kinds: np.ndarray
    red: np.ndarray
    blue: np.ndarray


def drawn(matches: int = 256, **keywords: Any) -> Drawn:
    """What many matches of SkirmishGen draw one after the other."""
    sim = start(games.generated(**keywords), seed=1)
    world = World(*map(record_view, sim.game.world))
    kinds, places = [], []
    with np.errstate(over="ignore"):
        for _ in range(matches):
            draw_battle(record_view(sim.states)[0], world)
            kinds.append(sim.states["kind"][0].copy())
            places.append(sim.states["position"][0].copy())
    names, at = np.array(SMAC.unit_names)[np.array(kinds)], np.array(places)
    red, blue = (list(slots) for slots in sim.game.teams.values())
    return Drawn(names[:, red], names[:, blue], at[:, red], at[:, blue])


def is_reflected(found: Drawn) -> np.ndarray:
    """By match, whether blue's first unit is the mirror image of red's."""
    away = np.abs(found.red[:, 0] - (32, 0) - found.blue[:, 0] * (-1, 1))
    return away.max(axis=1) < 1e-9


# --- kinds ---


@pytest.mark.parametrize(
    ("race", "weights"),
    [
        ("a", {"marine": 0.45, "marauder": 0.45, "medivac": 0.1}),
        ("b", {"stalker": 0.45, "zealot": 0.45, "colossus": 0.1}),
        ("c", {"zergling": 0.45, "hydralisk": 0.45, "baneling": 0.1}),
    ],
)
def test_kinds_are_drawn_by_the_weights_of_their_race(race: str, weights: dict[str, float]):
    found = Counter(drawn(race=race).red_kinds.ravel().tolist())
    assert set(found) == set(weights)
    units = 256 * 5
    chi_square = sum((found[kind] - units * share) ** 2 / (units * share) for kind, share in weights.items())
    assert chi_square < 9.2, "99 % of draws with two degrees of freedom"


def test_the_mixed_race_draws_from_all_three():
    found = Counter(drawn(race="mixed").red_kinds.ravel().tolist())
    assert len(found) == 9
    assert all(found[kind] < 100 for kind in ("medivac", "colossus", "baneling"))
    assert all(found[kind] > 140 for kind in ("marine", "marauder", "stalker", "zealot", "zergling", "hydralisk"))


@pytest.mark.parametrize(("own", "others"), [(5, 5), (5, 8), (6, 2)])
def test_both_sides_have_the_same_kinds_as_far_as_both_go(own: int, others: int):
    red, blue, *_ = drawn(64, own=own, others=others)
    assert (red.shape, blue.shape) == ((64, own), (64, others))
    same = min(own, others)
    np.testing.assert_array_equal(red[:, :same], blue[:, :same])
    if others > own:
        assert len({tuple(more) for more in blue[:, own:]}) > 5, "the others are drawn, too"


@pytest.mark.parametrize(("race", "harmless"), [("a", "medivac"), ("c", "baneling")])
@pytest.mark.parametrize(("own", "others"), [(1, 1), (2, 1), (1, 2)])
def test_no_team_is_without_a_fighter_that_survives_its_attack(race: str, harmless: str, own: int, others: int):
    for kinds in drawn(race=race, own=own, others=others)[:2]:
        assert not np.all(kinds == harmless, axis=1).any()


def test_units_begin_with_all_that_their_drawn_kind_has():
    sim = start(games.generated("b"), lanes=4)
    units = sim.game.world.units[sim.states["kind"][:, :10]]
    for name in ("hit_points", "shield"):
        np.testing.assert_array_equal(sim.states[name][:, :10], units[name])
    assert sim.alive.all()


# --- places ---


def test_half_of_the_matches_reflect_red_and_in_the_others_blue_surrounds_it():
    share = is_reflected(drawn(512)).mean()
    assert 0.44 < share < 0.56  # 2.7 standard deviations


def test_a_reflected_red_stands_anywhere_in_its_half_and_blue_opposite():
    found = drawn(own=5, others=8)
    red, blue = found.red[is_reflected(found)], found.blue[is_reflected(found)]
    np.testing.assert_allclose(red, (32, 0) + blue[:, :5] * (-1, 1), atol=1e-9)
    for side, low, high in ((red, 1, 15), (blue, 17, 31)):
        assert low <= side[..., 0].min() < low + 1
        assert high - 1 < side[..., 0].max() <= high
        assert 1 <= side[..., 1].min() < 2
        assert 30 < side[..., 1].max() <= 31


def test_a_surrounded_red_stands_in_the_middle_and_blue_in_one_to_four_groups_on_diagonals():
    found = drawn(own=5, others=11)
    red, blue = found.red[~is_reflected(found)], found.blue[~is_reflected(found)]
    assert np.abs(red - MIDDLE).max() < 2.5
    np.testing.assert_array_equal(red[:, 0], np.broadcast_to(MIDDLE, (len(red), 2)))
    first = blue[:, 0] - MIDDLE  # the first of a group stands on the diagonal
    np.testing.assert_allclose(np.abs(first[:, 0]), np.minimum(np.abs(first[:, 1]), 15))
    assert np.abs(first).min() >= 2
    assert {tuple(corner) for corner in np.sign(first)} == {(1, 1), (1, -1), (-1, 1), (-1, -1)}
    groups = [len({tuple(corner) for corner in np.sign(lane)}) for lane in blue - MIDDLE]
    assert set(groups) == {1, 2, 3, 4}
    assert groups.count(4) > len(groups) / 8, "each group has a diagonal of its own"


def test_the_units_of_a_group_stand_apart():
    found = drawn(own=1, others=12)
    blue = found.blue[~is_reflected(found)]
    away = np.hypot(*(blue[:, :, None] - blue[:, None]).transpose(3, 0, 1, 2)) + 9.0 * np.eye(12)
    crowd = np.all((blue > 1) & (blue < 31), axis=(1, 2))  # units that the edge holds back may touch
    assert crowd.sum() > 20
    one_group = (np.sign(blue - MIDDLE) == np.sign(blue[:, :1] - MIDDLE)).all(axis=(1, 2))
    assert away[crowd & one_group].min() >= 2 * SMAC.unit("marauder").separation_radius


def test_a_place_that_is_anywhere_lies_on_open_ground_and_differs_from_match_to_match(tmp_path: Path):
    ground = ("#" * 12, "#....######.", "#....######.", "#" * 12)
    path = write_groups(tmp_path, [{"unit": "marine", "at": [2, 1]}], [{"unit": "marine", "at": "anywhere"}], ground)
    sim = start(games.scenario(path), lanes=40)
    x, y = sim.states["position"][:, 1].T
    assert ((x > 1) & (x < 5)).all(), "a cell from the edge of the map"
    assert ((y >= 1) & (y < 3)).all()
    assert len(set(x)) == 40


# --- streams ---


@pytest.mark.check
@compiles
def test_lane_i_of_a_seed_plays_the_match_of_that_seed_plus_i():
    together = make_batch(ID, 3, autoreset_mode="off", opponents={"red": "nearest", "blue": "builtin"})
    together.reset(seed=40)
    for _ in range(4):
        together.step()
    alone = make_batch(ID, 1, compiled=False, autoreset_mode="off", opponents={"red": "nearest", "blue": "builtin"})
    alone.reset(seed=42)
    for _ in range(4):
        alone.step()
    assert alone.states[0].tobytes() == together.states[2].tobytes()


def test_seeds_draw_different_matches_and_one_seed_the_same_again():
    sim = start(games.generated(), seed=3)
    first = sim.states["position"].tobytes()
    sim.reset(seed=4)
    assert sim.states["position"].tobytes() != first
    sim.reset(seed=3)
    assert sim.states["position"].tobytes() == first
