"""The scripts of soccer: what the striker does, and the effect of its strength."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from games.pitch import in_turn
from games.play import simulation

from palaestra import registry
from palaestra.evaluation import MatchTable, evaluate
from palaestra.evaluation.matches import play_pair
from palaestra.games.teams import soccer

pytestmark = pytest.mark.check

IDS = tuple(f"palaestra/{name}-v0" for name in ("GridSoccer", *(f"TeamGridSoccer-{n}" for n in ("3x3", "3x4", "4x5"))))
SINGLES: Any = soccer.game()
PAIRS: Any = soccer.game(4, 5, 2)


def played(game: Any, cells: list[tuple[int, int]], holder: int, lanes: int = 32) -> Any:
    """One decision of red strikers from a position, blue stays: 32 matches with their own random draws."""
    sim: Any = simulation(game, lanes, autoreset_mode="off", opponents={"red": "striker"})
    sim.reset(seed=0)
    sim.states["row"], sim.states["column"] = np.array(cells).T
    sim.states["holder"] = holder
    sim.step(np.full(sim.actions.shape, soccer.STAY))
    return sim


def cells_of(sim: Any, slot: int) -> set[tuple[int, int]]:
    """Where a player stands in the lanes."""
    return set(zip(sim.states["row"][:, slot].tolist(), sim.states["column"][:, slot].tolist(), strict=True))


def share(table: MatchTable) -> float:
    return table.wins / table.matches


def test_a_striker_runs_forward_where_the_way_is_free():
    assert cells_of(played(SINGLES, [(1, 1), (2, 3)], 0), 0) == {(1, 2)}


def test_a_striker_runs_around_a_opponent_on_either_side():
    assert cells_of(played(SINGLES, [(1, 1), (1, 2)], 0), 0) == {(0, 1), (2, 1)}


def test_a_striker_in_the_corner_runs_to_the_mouth():
    assert cells_of(played(SINGLES, [(0, 4), (2, 2)], 0), 0) == {(1, 4)}


def test_a_striker_in_front_of_the_mouth_scores():
    assert played(SINGLES, [(2, 4), (1, 4)], 0).terminated.all()


def test_a_striker_that_cannot_get_past_passes_to_its_teammate():
    sim = played(PAIRS, [(0, 1), (1, 1), (0, 2), (2, 4)], 0)
    assert set(sim.states["holder"].tolist()) <= {0, 1}
    assert (sim.states["holder"] == 1).mean() > 0.4, "unless the teammate has moved away first"


def test_a_striker_without_the_ball_gets_in_front_of_the_holder():
    assert cells_of(played(SINGLES, [(1, 1), (1, 3)], 1), 0) == {(1, 2)}
    assert cells_of(played(SINGLES, [(1, 2), (1, 3)], 1), 0) == {(1, 2)}, "and stays there"


def test_of_two_strikers_one_stays_between_the_ball_and_the_mouth():
    sim = played(PAIRS, [(1, 2), (2, 1), (1, 4), (2, 4)], 2)
    assert cells_of(sim, 0) == {(1, 3)}
    assert cells_of(sim, 1) <= {(1, 1), (2, 0)}


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("order", ["simultaneous", "alternating"])
def test_a_striker_beats_the_random_player_in_nine_of_ten_matches(id: str, order: str):
    game = registry.make_game(id)[0]
    if order == "alternating":
        game = in_turn(game.world.rows, game.world.columns, len(game.agents) // 2)  # type: ignore[attr-defined]
    make = partial(simulation, game, compiled=True, autoreset_mode="off")
    table = play_pair(id, game, make, "striker", "striker:0", matches=200)
    assert share(table) >= 0.95, table.sides


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("order", ["simultaneous", "alternating"])
def test_the_stronger_striker_wins_more_matches(id: str, order: str):
    strengths = ("striker:0", "striker:0.25", "striker:0.5", "striker:0.75", "striker")
    wins = [share(evaluate(id, player, "striker:0", matches=2000, order=order)) for player in strengths]
    assert all(weaker < stronger for weaker, stronger in pairwise(wins)), wins
    assert wins[-1] >= 0.98
    for weaker, stronger in pairwise(strengths):
        table = evaluate(id, stronger, weaker, matches=2000, order=order)
        assert table.wins > 1.2 * table.losses, (stronger, weaker, table.sides)


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("order", ["simultaneous", "alternating"])
def test_neither_side_is_better_off_between_equal_players(id: str, order: str):
    table = evaluate(id, "striker:0.7", "striker:0.7", matches=8000, order=order)
    assert abs(table.first_team_score - 0.5) < 0.03
    assert abs(table.score - 0.5) < 0.03
