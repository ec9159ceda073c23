"""Scripts of both games: what each does, in which order they win, and that both teams decide alike."""

from typing import Any

import numpy as np
import pytest
from games.play import long_without_the_compiler
from grid.grids import cells, fight, hit_points, hunt, place, words_of

from palaestra import make_batch
from palaestra.evaluation import evaluate

pytestmark = pytest.mark.jitless


def acts(sim: Any, script: str, team: str) -> list[str]:
    """What a script decides for each agent of a team in a single match."""
    sim.set_opponent(team, script)
    sim.step()
    sim.set_opponent(team, None)
    words = words_of(sim.game.role_of(sim.game.teams[team][0])[0])
    return [words[a] for a in sim.team_view(team, "actions")[0].reshape(-1)]


@pytest.mark.parametrize(
    ("script", "act"),
    [
        ("rush", "hit ahead"),
        ("wander", "hit ahead"),
        ("hold_line", "hit down"),
        ("focus", "hit up"),
        ("flee", "move 2 down"),
    ],
)
def test_scripts_hit_the_first_the_weakest_or_of_those_who_die_as_soon_the_healthiest(script: str, act: str):
    sim = place(fight(1, 3), (5, 5), (4, 5), (6, 5), (5, 6), hit_points=[100, 60, 50, 55])
    assert acts(sim, script, "red") == [act]


def test_focus_hits_whom_it_kills_sooner_though_another_one_is_healthier():
    sim = place(fight(1, 3), (5, 5), (4, 5), (6, 5), (5, 6), hit_points=[100, 60, 40, 35])
    assert acts(sim, "focus", "red") == ["hit down"]


def test_the_plan_of_focus_survives_another_script_in_its_team():
    sim = place(fight(3, 1), (5, 5), (1, 1), (5, 7), (5, 6))
    for agent, script in (("red_0", "focus"), ("red_1", "rush"), ("red_2", "focus")):
        sim.set_opponent(agent, script)
    sim.step()
    assert hit_points(sim)[3] == 100 - 2 * 20 + 1


def test_focus_hits_among_as_weak_opponents_whom_most_can_hit():
    for script, act in (("rush", "hit up"), ("focus", "hit down")):
        sim = place(fight(2, 2), (5, 5), (7, 5), (4, 5), (6, 5))
        assert acts(sim, script, "red") == [act, "hit up"]


@pytest.mark.parametrize("script", ["rush", "focus"])
def test_rush_and_focus_go_to_the_nearest_opponent(script: str):
    sim = place(fight(1, 2), (5, 5), (5, 12), (11, 5))
    assert acts(sim, script, "red") == ["move 2 down"]


@pytest.mark.parametrize(("team", "column"), [("red", 5), ("blue", 14)])
def test_hold_line_goes_to_the_column_at_a_quarter_and_stays(team: str, column: int):
    sim = place(fight(), (5, 9), (15, 10))
    decided = [acts(sim, "hold_line", team) for _ in range(3)]
    assert decided == [["move 2 back"], ["move 2 back"], ["stay"]]
    assert cells(sim)[int(team == "blue")][1] == column


def test_flee_goes_away_from_opponents_that_can_hit_and_rushes_at_others():
    sim = place(hunt(), (5, 5), (5, 7))
    assert acts(sim, "flee", "prey") == ["move ahead and up"]
    assert acts(place(sim, (5, 5), (5, 7)), "flee", "predator") == ["move ahead"]


def test_focus_waits_until_as_many_can_hit_as_are_needed():
    sim = place(hunt(2, 1, need=2), (5, 5), (5, 12), (5, 6))
    assert acts(sim, "focus", "predator") == ["stay", "move back"]
    place(sim, (5, 5), (5, 7), (5, 6))
    assert acts(sim, "focus", "predator") == ["hit ahead", "hit back"]


@pytest.mark.parametrize("script", ["rush", "hold_line", "focus", "flee"])
def test_both_teams_decide_alike_in_mirrored_matches(script: str):
    sim, twin = (fight(8, 8, ties="nobody") for _ in range(2))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        places = np.stack(np.unravel_index(rng.choice(100, 16, replace=False), (10, 10)), axis=1)
        points = rng.integers(1, 101, 16)
        mirrored = np.roll(places * (1, -1) + (0, 19), 8, axis=0)
        place(sim, *map(tuple, places.tolist()), hit_points=points)
        place(twin, *map(tuple, mirrored.tolist()), hit_points=np.roll(points, 8))
        assert acts(sim, script, "red") == acts(twin, script, "blue")
        sim.reset(seed=seed)
        twin.reset(seed=seed)


# ------------------------------------------------------------------------------------------------------------- strength


@long_without_the_compiler
@pytest.mark.parametrize(
    ("stronger", "weaker", "least"),
    [
        ("wander", "random", 0.95),
        ("hold_line", "wander", 0.95),
        ("rush", "wander", 0.95),
        ("focus", "rush", 0.7),
        ("hold_line", "rush", 0.6),
    ],
)
def test_scripts_win_in_this_order(stronger: str, weaker: str, least: float):
    table = evaluate("palaestra/GridBattle-12-v0", stronger, weaker, matches=400)
    assert table.score_interval[0] > least, (table.score, table.score_interval)


def caught(predators: str, prey: str, lanes: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Catches and hits in each match where three must hit at once."""
    opponents, pay = {"predator": predators, "prey": prey}, {"hit_reward": 1.0, "catch_reward": 0.0}
    sim = make_batch("palaestra/GridPursuit-Blind-v0", lanes, autoreset_mode="off", opponents=opponents, **pay)
    sim.reset(seed=1)
    hits = np.zeros(lanes)
    for _ in range(60):
        sim.step()
        hits += sim.rewards[:, :12].sum(axis=1)
    return sim.info["catches"], hits


def is_less(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether a mean is less, intervals of 99.9 % apart."""
    return a.mean() + 3.3 * a.std() / np.sqrt(len(a)) < b.mean() - 3.3 * b.std() / np.sqrt(len(b))


@long_without_the_compiler
def test_where_three_must_hit_at_once_focus_catches_as_many_as_rush_for_fewer_hits():
    focus, rush, wander = (caught(script, "wander") for script in ("focus", "rush", "wander"))
    assert is_less(wander[0], rush[0])
    assert not is_less(focus[0], rush[0])
    assert is_less(focus[1], rush[1])
    assert is_less(caught("focus", "flee")[0], focus[0])
