"""Soccer on a grid: Littman's rules, two against two under the same, and the positions that can be counted."""

from typing import Any

import numpy as np
import pytest
from games.play import simulation
from hypothesis import given, settings
from hypothesis import strategies as st

from palaestra.core.rng import opposite_stream, stream_before
from palaestra.games.teams import soccer
from palaestra.games.teams.soccer import BACK, FORWARD, NORTH, SOUTH, STAY

pytestmark = pytest.mark.jitless

SINGLES: Any = soccer.game()
SINGLES_IN_TURN: Any = soccer.game(order="alternating")
PAIRS: Any = soccer.game(3, 3, 2)
PAIRS_IN_TURN: Any = soccer.game(3, 3, 2, "alternating")
GAMES = {"singles": SINGLES, "singles in turn": SINGLES_IN_TURN, "pairs": PAIRS, "pairs in turn": PAIRS_IN_TURN}
EVERY_GAME = pytest.mark.parametrize("game", GAMES.values(), ids=GAMES)
OWN = ("row", "column", "holder", "turn", "alive", "acting")
RED_FIRST, BLUE_FIRST = 0, 1
"""Outcomes of the draw in singles."""


def started(game: Any, lanes: int = 1, seed: int = 0) -> Any:
    sim = simulation(game, lanes, autoreset_mode="off")
    sim.reset(seed=seed)
    return sim


def position(game: Any, cells: list[tuple[int, int]], holder: int, turn: int = 0) -> Any:
    """A match in which the players stand in these cells (row, column)."""
    sim = started(game)
    sim.states["row"], sim.states["column"] = np.array(cells).T
    sim.states["holder"], sim.states["turn"] = holder, turn
    if len(game.world.orders) == 2:
        sim.states["acting"] = np.arange(len(cells)) // (len(cells) // 2) == turn
    return sim


def play(sim: Any, *moves: int, outcome: int = 0) -> None:
    """One decision in which the draw falls as told."""
    draw = np.full(sim.num_envs, (outcome + 0.5) / sim.game.enumeration.chance_outcomes)
    sim.states["rng"] = stream_before(draw)
    sim.step(np.tile(moves, (sim.num_envs, 1)))


def cells_of(sim: Any) -> list[tuple[int, int]]:
    return list(zip(sim.states["row"][0].tolist(), sim.states["column"][0].tolist(), strict=True))


def seen(sim: Any) -> Any:
    """Observations by name, structured [N, A]."""
    return sim.buffers.observations["player"]


def where(plane: np.ndarray) -> set[tuple[int, ...]]:
    """The cells that are 1."""
    return {tuple(cell) for cell in np.argwhere(plane == 1).tolist()}


def set_matches(sim: Any, records: Any) -> None:
    """Writes the rules' fields of records [N]."""
    for name in OWN:
        sim.states[name] = records[name]


# -- rules -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("move", "red", "blue"),
    [
        (NORTH, (0, 1), (1, 3)),
        (SOUTH, (2, 1), (3, 3)),
        (FORWARD, (1, 2), (2, 2)),
        (BACK, (1, 0), (2, 4)),
        (STAY, (1, 1), (2, 3)),
    ],
)
def test_both_teams_call_their_own_direction_of_attack_forward(move: int, red: tuple, blue: tuple):
    sim = position(SINGLES, [(1, 1), (2, 3)], holder=0)
    play(sim, move, move)
    assert cells_of(sim) == [red, blue]


@pytest.mark.parametrize(
    ("cell", "move"), [((0, 1), NORTH), ((3, 1), SOUTH), ((0, 4), FORWARD), ((1, 0), BACK), ((3, 0), BACK)]
)
def test_the_edge_of_the_pitch_and_ones_own_mouth_are_walls(cell: tuple[int, int], move: int):
    sim = position(SINGLES, [cell, (2, 3)], holder=0)
    play(sim, move, STAY)
    assert cells_of(sim) == [cell, (2, 3)]
    assert not sim.terminated[0]


@pytest.mark.parametrize("holder", [0, 1])
def test_a_player_that_runs_into_an_opponent_stays_and_loses_the_ball(holder: int):
    sim = position(SINGLES, [(1, 2), (1, 3)], holder)
    play(sim, FORWARD, STAY)
    assert cells_of(sim) == [(1, 2), (1, 3)]
    assert sim.states["holder"][0] == 1


@pytest.mark.parametrize(
    ("outcome", "cells", "holder"), [(RED_FIRST, [(1, 2), (1, 3)], 0), (BLUE_FIRST, [(1, 1), (1, 2)], 1)]
)
def test_a_random_draw_decides_which_player_gets_a_contested_cell(outcome: int, cells: list, holder: int):
    sim = position(SINGLES, [(1, 1), (1, 3)], holder=1 - holder)
    play(sim, FORWARD, FORWARD, outcome=outcome)
    assert cells_of(sim) == cells
    assert sim.states["holder"][0] == holder, "the other one ran into it with the ball"


@pytest.mark.parametrize("mouth_row", [1, 2])
def test_a_goal_pays_one_and_costs_one_and_ends_the_match(mouth_row: int):
    sim = position(SINGLES, [(mouth_row, 4), (0, 0)], holder=0)
    play(sim, FORWARD, STAY)
    assert (sim.rewards[0].tolist(), sim.info["winner"][0]) == ([1.0, -1.0], 0)
    assert sim.terminated[0]
    assert SINGLES.end_reason(sim.info["end_reason"][0]) == "goal"
    sim = position(SINGLES, [(0, 0), (mouth_row, 0)], holder=1)
    play(sim, STAY, FORWARD)
    assert (sim.rewards[0].tolist(), sim.info["winner"][0]) == ([-1.0, 1.0], 1)


def test_no_player_scores_without_the_ball():
    sim = position(SINGLES, [(1, 4), (0, 0)], holder=1)
    play(sim, FORWARD, STAY)
    assert not sim.terminated[0]
    assert cells_of(sim) == [(1, 4), (0, 0)]


def test_after_a_goal_no_player_moves():
    for outcome, blue in ((RED_FIRST, (0, 1)), (BLUE_FIRST, (0, 0))):
        sim = position(SINGLES, [(1, 4), (0, 1)], holder=0)
        play(sim, FORWARD, FORWARD, outcome=outcome)
        assert cells_of(sim)[1] == blue


def test_a_player_that_runs_into_its_teammate_passes_the_ball_and_the_teammate_may_score_at_once():
    sim = position(PAIRS, [(0, 1), (0, 2), (2, 0), (2, 1)], holder=0)
    play(sim, FORWARD, FORWARD, STAY, STAY, outcome=0)
    assert PAIRS.world.orders[0, 0].tolist() == [0, 2, 1, 3]
    assert sim.info["winner"][0] == 0
    sim = position(PAIRS, [(0, 1), (1, 1), (2, 0), (2, 1)], holder=0)
    play(sim, SOUTH, STAY, STAY, STAY)
    assert sim.states["holder"][0] == 1
    assert cells_of(sim)[:2] == [(0, 1), (1, 1)]


def test_in_alternating_order_only_the_team_to_move_moves():
    sim = position(PAIRS_IN_TURN, [(0, 0), (2, 0), (0, 2), (2, 2)], holder=0, turn=1)
    play(sim, FORWARD, FORWARD, FORWARD, BACK)
    assert cells_of(sim) == [(0, 0), (2, 0), (0, 1), (2, 2)]
    assert sim.acting[0].tolist() == [True, True, False, False]
    play(sim, SOUTH, FORWARD, FORWARD, FORWARD)
    assert cells_of(sim) == [(1, 0), (2, 1), (0, 1), (2, 2)]


def test_every_order_of_moves_has_the_teams_take_turns_and_none_is_named_twice():
    for order in PAIRS.world.orders[0]:
        teams = (order // 2).tolist()
        assert teams in ([0, 1, 0, 1], [1, 0, 1, 0])
        assert sorted(order) == [0, 1, 2, 3]
    assert len({tuple(order) for order in PAIRS.world.orders[0].tolist()}) == 8
    assert PAIRS_IN_TURN.world.orders.tolist() == [[[0, 1], [1, 0]], [[3, 2], [2, 3]]]


@pytest.mark.parametrize(
    ("rows", "players", "mouth"),
    [(4, 1, (1, 2)), (3, 1, (0, 2)), (5, 1, (1, 3)), (3, 2, (0, 2)), (4, 2, (0, 3)), (5, 2, (1, 3)), (2, 2, (0, 1))],
)
def test_a_mouth_lies_in_the_middle_and_is_wider_than_a_team_if_it_can(rows: int, players: int, mouth: tuple[int, int]):
    world = soccer.game(rows, 5, players).world
    assert (world.mouth_first_row, world.mouth_last_row) == mouth


# -- kick-off ----------------------------------------------------------------------------------------------------------


def test_singles_kick_off_in_littmans_cells_with_the_ball_drawn_at_random():
    sim = started(SINGLES, 64)
    assert {tuple(x) for x in sim.states["row"].tolist()} == {(2, 1)}
    assert {tuple(x) for x in sim.states["column"].tolist()} == {(1, 3)}
    assert set(sim.states["holder"].tolist()) == {0, 1}


@EVERY_GAME
def test_every_kick_off_is_as_likely_as_the_one_with_the_teams_exchanged(game: Any):
    outcomes = game.enumeration.initial_chance_outcomes
    sim = started(game, outcomes)
    sim.states["rng"] = stream_before((np.arange(outcomes) + 0.5) / outcomes)
    sim.reset()
    holder, turn = sim.states["holder"], sim.states["turn"]
    assert sorted(holder.tolist()) == sorted([*range(len(game.agents))] * (outcomes // len(game.agents)))
    half = len(game.agents) // 2
    np.testing.assert_array_equal(holder[::-1], (holder + half) % len(game.agents))
    if len(game.world.orders) == 2:
        np.testing.assert_array_equal(turn[::-1], 1 - turn)
        np.testing.assert_array_equal(sim.acting, np.arange(len(game.agents)) // half == turn[:, None])


# -- observations ------------------------------------------------------------------------------------------------------


def test_blue_sees_what_red_sees_when_the_teams_are_exchanged():
    for game in GAMES.values():
        sim, mirrored = started(game, 8, seed=1), started(game, 8)
        half = len(game.agents) // 2
        rng = np.random.default_rng(0)
        for _ in range(5):
            sim.step(rng.integers(5, size=(8, 2 * half)))
        mirror_into(mirrored, sim, rng.integers(5, size=(8, 2 * half)))
        play_nothing = np.full((8, 2 * half), STAY)
        sim.step(play_nothing)
        mirrored.step(play_nothing)
        np.testing.assert_array_equal(sim.observations[:, half:], mirrored.observations[:, :half])


def test_a_player_sees_itself_its_teammate_the_opponents_and_the_ball():
    sim = position(PAIRS, [(0, 0), (1, 0), (2, 1), (2, 2)], holder=2)
    play(sim, STAY, STAY, STAY, STAY)
    _, red, blue, teammate = seen(sim)[0]
    assert where(red["own"]) == {(1, 0)}
    assert where(red["teammate"]) == {(0, 0)}
    assert where(red["opponents"]) == {(2, 1), (2, 2)}
    assert where(red["ball"]) == {(2, 1)}
    assert where(blue["own"]) == where(blue["ball"]) == {(2, 1)}
    assert where(blue["teammate"]) == {(2, 0)}
    assert where(blue["opponents"]) == {(0, 2), (1, 2)}
    flags = [
        [int(seen[name]) for name in ("has_ball", "teammate_has_ball", "opponents_have_ball")]
        for seen in (red, blue, teammate)
    ]
    assert flags == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]


def test_the_order_of_the_opponents_does_not_show():
    shown = []
    for opponents, holder in (([(2, 1), (2, 2)], 2), ([(2, 2), (2, 1)], 3)):
        sim = position(PAIRS, [(0, 0), (1, 0), *opponents], holder)
        play(sim, STAY, STAY, STAY, STAY)
        shown.append(sim.observations[0, :2].copy())
    np.testing.assert_array_equal(*shown)


@pytest.mark.parametrize("game", [SINGLES_IN_TURN, PAIRS_IN_TURN])
def test_in_alternating_order_each_player_sees_whose_turn_it_is(game: Any):
    sim = started(game, 8)
    for _ in range(3):
        np.testing.assert_array_equal(seen(sim)["turn"], sim.acting)
        sim.step(np.full(sim.actions.shape, STAY))


# -- symmetry ----------------------------------------------------------------------------------------------------------


def mirror_into(mirrored: Any, sim: Any, actions: np.ndarray) -> np.ndarray:
    """Writes the mirror images of all matches, their next draw on the other side. Returns the mirrored actions."""
    records: Any = sim.states.copy()
    given: Any = np.zeros(sim.num_envs, sim.game.action_dtype)
    given["player"]["move"] = actions
    sim.game.mirror(records, given)
    set_matches(mirrored, records)
    mirrored.states["rng"] = opposite_stream(sim.states["rng"])
    return given["player"]["move"]


@pytest.mark.check
@EVERY_GAME
def test_a_mirrored_match_continues_as_the_mirror_of_the_match(game: Any):
    lanes, half = 16, len(game.agents) // 2
    sim, mirrored, rng = started(game, lanes, seed=3), started(game, lanes), np.random.default_rng(0)
    goals = 0
    for _ in range(60):
        actions = rng.choice(5, p=[0.2, 0.2, 0.35, 0.15, 0.1], size=(lanes, 2 * half))
        sim.reset(mask=sim.terminated | sim.truncated)
        mirrored.reset(mask=mirrored.terminated | mirrored.truncated)
        mirrored_actions = mirror_into(mirrored, sim, actions)
        sim.step(actions)
        mirrored.step(mirrored_actions)
        records: Any = sim.states.copy()
        game.mirror(records, np.zeros(lanes, game.action_dtype))
        for name in OWN:
            np.testing.assert_array_equal(records[name], mirrored.states[name], err_msg=name)
        np.testing.assert_array_equal(sim.rewards, -mirrored.rewards)
        np.testing.assert_array_equal(sim.terminated, mirrored.terminated)
        np.testing.assert_array_equal(np.roll(sim.observations, half, 1), mirrored.observations)
        goals += int(sim.terminated.sum())
    assert goals > 0


# -- positions ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "columns", "players", "order", "positions"),
    [
        (4, 5, 1, "simultaneous", 760),
        (4, 5, 1, "alternating", 1520),
        (3, 3, 2, "simultaneous", 12_096),
        (3, 3, 2, "alternating", 24_192),
        (4, 5, 2, "simultaneous", 465_120),
    ],
)
def test_positions_are_counted_once_each(rows: int, columns: int, players: int, order: Any, positions: int):
    game = soccer.game(rows, columns, players, order)
    count: Any = game.enumeration
    assert count.positions == positions
    numbers = np.arange(positions) if positions < 30_000 else np.arange(0, positions, 97)
    records: Any = np.zeros(len(numbers), game.state_dtype)
    count.write_state(records, numbers)
    np.testing.assert_array_equal(count.state_index(records), numbers)
    cells: Any = records["row"] * columns + records["column"]
    assert np.diff(np.sort(cells, 1)).min() > 0, "no two players in a cell"


@pytest.mark.check
@settings(max_examples=20)
@given(st.sampled_from(list(GAMES)), st.integers(0, 2**32 - 1))
def test_what_the_rules_reach_is_placed_as_it_was(name: str, seed: int):
    game = GAMES[name]
    sim, rng = started(game, 4, seed), np.random.default_rng(seed)
    for _ in range(6):
        sim.reset(mask=sim.terminated)
        sim.step(rng.integers(5, size=sim.actions.shape))
    records: Any = np.zeros(4, game.state_dtype)
    game.enumeration.write_state(records, game.enumeration.state_index(sim.states))
    for field in OWN:
        np.testing.assert_array_equal(records[field], sim.states[field], err_msg=field)


def test_exchanging_teammates_and_reflecting_the_pitch_leaves_an_eighth_of_the_positions_or_little_more():
    numbers = np.arange(PAIRS.enumeration.positions)
    canonical = PAIRS.enumeration.canonical(numbers)
    np.testing.assert_array_equal(PAIRS.enumeration.canonical(canonical), canonical)
    assert len(np.unique(canonical)) == 1530, "of 3,024 without the reflection, 36 are their own"


# -- the world outside -------------------------------------------------------------------------------------------------


def test_a_picture_shows_the_ball_and_the_players_where_they_are():
    pytest.importorskip("PIL")
    from palaestra.drawing.colors import SIGNAL, TEAMS
    from palaestra.games.teams.render_soccer import board_of

    board = board_of(4, 5)
    for cells, holder in (([(2, 1), (1, 3)], 0), ([(0, 4), (3, 0)], 1)):
        picture = position(SINGLES, cells, holder).render(0)
        assert (picture.shape[1:], picture.dtype) == ((600, 3), np.uint8)
        for team, cell in enumerate(cells):
            x, y = board.center(*cell)
            left = round(x - 0.2 * board.side)
            assert tuple(picture[round(y), left]) == TEAMS[team]
        ring = np.argwhere((picture == SIGNAL).all(2))
        y, x = ring.mean(0)
        near = board.center(*cells[holder])
        assert abs(x - near[0]) < 0.25 * board.side
        assert abs(y - near[1]) < 0.25 * board.side
