"""The table of positions equals the environment, is complete, and refuses games that it cannot hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from games import duel, two_team, two_team_homogeneous
from games.duel import step as play
from games.play import simulation

from palaestra import registry
from palaestra.core.compile.linker import jit_disabled
from palaestra.exact import enumerate_positions, positions
from palaestra.exact.positions import Board, PositionTable, joint_actions
from palaestra.game import integer

pytestmark = pytest.mark.check

SOCCER = "palaestra/GridSoccer-v0"


TABLES = {
    "simultaneous": lambda: enumerate_positions(SOCCER, symmetry=False),
    "alternating": lambda: enumerate_positions(SOCCER, symmetry=False, rows=3, columns=3, order="alternating"),
    "pairs": lambda: enumerate_positions(duel.game(players=2, tries=3)),
}


@pytest.fixture(scope="module", params=TABLES)
def table(request):
    return TABLES[request.param]()


def test_placing_a_position_and_counting_it_is_the_identity(table):
    board = Board(table.game, table.parameters)
    board.write_state(table.numbers)
    assert (table.game.enumeration.state_index(board.sim.states) == table.numbers).all()


def test_random_play_only_ever_makes_moves_that_are_in_the_table(table):
    game = table.game
    lanes = 64 if len(table) > 500 else 16
    sim = simulation(game, lanes)
    sim.reset(seed=3)
    rng = np.random.default_rng(3)
    assert np.isin(table.index[game.enumeration.state_index(sim.states)], table.starts).all()
    for _ in range(60):
        before, fresh = table.index[game.enumeration.state_index(sim.states)], sim.states["pending"] != 0
        joints = []
        for side, team in enumerate(table.teams):
            choices = [rng.choice(table.actions_of(team, p)) for p in before]
            joints.append(np.array(choices))
            sim.write_team_actions(team, table.joint_actions[side][choices])
        sim.step()
        after = table.index[game.enumeration.state_index(sim.states)]
        for lane in np.flatnonzero(~fresh):
            p = before[lane]
            row, column = (
                int(np.flatnonzero(table.actions_of(t, p) == j[lane])[0])
                for t, j in zip(table.teams, joints, strict=True)
            )
            cell = table.cell_start[p] + row * len(table.actions_of(table.teams[1], p)) + column
            if sim.terminated[lane]:
                assert -1 in table.next[cell]
            else:
                assert after[lane] in table.next[cell]
            if len(set(table.next[cell])) == 1:
                assert table.rewards[cell] == sim.team_rewards(table.teams[0])[lane]


def test_a_team_that_is_not_to_move_has_one_joint_action():
    table = TABLES["alternating"]()
    red, blue = (np.diff(start) for start in table.action_start)
    assert ((red == 1) ^ (blue == 1)).all()
    assert set(red * blue) == {5}


def test_illegal_joint_actions_have_no_place():
    table = enumerate_positions(duel.game(players=2))
    assert len(table.actions_of("red", 0)) == 9
    assert [table.joint_actions[0][k].tolist() for k in table.actions_of("red", 1)] == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert len(table.rewards) == 81 + 2 * 16


def test_rewards_are_the_mean_over_chance_and_ends_are_marked():
    table = enumerate_positions(duel.game())
    assert table.chance_outcomes == 2
    assert table.next[0].tolist() == [1, 2]  # both press
    attack = slice(table.cell_start[1], table.cell_start[2])
    assert table.rewards[attack].tolist() == [0, 1, 1, 0]
    assert table.next[attack].tolist() == [[1, 1], [-1, -1], [-1, -1], [1, 1]]
    assert (table.starts.tolist(), table.start_probabilities.tolist()) == ([0], [1.0])


def test_the_first_agents_choice_is_the_most_significant_digit():
    assert joint_actions(duel.game(players=2), "blue")[[0, 1, 3, 8]].tolist() == [[0, 0], [0, 1], [1, 0], [2, 2]]


def test_positions_that_are_alike_stand_in_the_table_once():
    table, everything = enumerate_positions(SOCCER), enumerate_positions(SOCCER, symmetry=False)
    counting = table.game.enumeration
    assert counting is not None
    assert counting.canonical is not None
    assert table.symmetric
    assert not everything.symmetric
    assert len(table) < len(everything) == 760
    assert (table.numbers[table.index] == counting.canonical(np.arange(760))).all()


def test_parameters_reach_the_rules():
    table = enumerate_positions(SOCCER, horizon=3)
    assert table.parameters == {"horizon": 3}
    with pytest.raises(TypeError, match="horizon"):
        enumerate_positions(SOCCER, horizont=3)


def test_too_many_positions_are_refused_before_anything_is_played():
    with pytest.raises(
        ValueError, match=r"465,120 positions.*more than limit=1,000: take a smaller board.*raise limit="
    ):
        enumerate_positions("palaestra/TeamGridSoccer-4x5-v0", limit=1000)
    with pytest.raises(ValueError, match=r"760 positions with 38,000 transitions, more than limit=37,999"):
        enumerate_positions(SOCCER, symmetry=False, limit=37_999)


def bad_number(states):
    return np.full(len(states), 99)


def draws_twice(s, world, actions, rewards, scratch):
    integer(s, 2)
    return play(s, world, actions, rewards, scratch)


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (lambda: "palaestra/CartPole-v0", "lacks two teams: it has 1"),
        (lambda: two_team_homogeneous.game(), "discrete actions only"),
        (lambda: duel.game(zero_sum=False), r"Game\.zero_sum"),
        (lambda: duel.game(enumeration=None), r"Game\.enumeration"),
        (lambda: two_team.game(), "cannot be solved exactly"),
    ],
)
def test_a_game_that_cannot_be_enumerated_says_what_it_lacks(game, message):
    with pytest.raises(ValueError, match=message):
        enumerate_positions(game())


def test_an_enumeration_that_does_not_fit_the_rules_is_found_out():
    game = duel.game()
    assert game.enumeration is not None
    with pytest.raises(RuntimeError, match=r"numbers outside \[0, positions\)"):
        enumerate_positions(replace(game, enumeration=replace(game.enumeration, state_index=bad_number)))
    with pytest.raises(RuntimeError, match="draws more than once"):
        enumerate_positions(duel.game(step=draws_twice))


def assert_same_tables(one: PositionTable, other: PositionTable) -> None:
    for name in ("numbers", "rewards", "next", "starts", "cell_start"):
        np.testing.assert_array_equal(getattr(other, name), getattr(one, name), name)
    for name in ("action_start", "actions", "joint_actions"):
        for ours, theirs in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_array_equal(ours, theirs, name)


@pytest.mark.parametrize("players", [1, 2])
@pytest.mark.parametrize("sizes", [{"capacity": 6}, {"listed": True}, {"capacity": 6, "listed": True}], ids=str)
def test_capacity_and_lists_of_candidates_change_no_entry_of_the_table(players: int, sizes: dict):
    plain = enumerate_positions(duel.game(players=players, tries=2))
    assert_same_tables(plain, enumerate_positions(duel.game(players=players, tries=2, **sizes)))


@pytest.mark.parametrize("tries", [0, 2])
def test_interpreted_rules_give_the_table_of_compiled_ones(tries: int, monkeypatch: pytest.MonkeyPatch):
    game, made = duel.game(tries=tries), []
    for most in (0, 2000):
        monkeypatch.setattr(positions, "INTERPRETED_TO", most)
        made.append(enumerate_positions(game))
    boards = [Board(rules, {}) for rules in (game, registry.make_game(SOCCER)[0])]
    assert [board.sim.compiled for board in boards] == [False, not jit_disabled()]
    assert_same_tables(*made)


def test_rewards_in_double_precision_are_solved_like_others():
    plain, exact = (enumerate_positions(duel.game(reward_dtype=kind)) for kind in ("f4", "f8"))
    np.testing.assert_array_equal(plain.rewards, exact.rewards)
