"""Matrix games of two against two: tables with known solutions, and the play of the scripts."""

import itertools
from typing import Any

import numpy as np
import pytest
from games.play import simulation
from hypothesis import given, settings
from hypothesis import strategies as st

import palaestra
from palaestra import replay
from palaestra.games.teams import matrix
from palaestra.games.teams.matrix import payoff_of

pytestmark = pytest.mark.jitless

ID = "palaestra/TeamMatrix-v0"
TABLES = matrix.TABLES
EVERY_TABLE = pytest.mark.parametrize("name", TABLES)
WITH_SADDLE = {"saddle": (2, 1), "climb": (0, 0), "nonmonotone": (0, 0)}


def started(lanes: int = 1, seed: int = 0, opponents: Any = None, **keywords: Any) -> Any:
    sim = simulation(matrix.game(**keywords), lanes, autoreset_mode="off", opponents=opponents)
    sim.reset(seed=seed)
    return sim


def seen(sim: Any) -> Any:
    """Observations by name, structured [N, A]."""
    return sim.buffers.observations["player"]


def gains(name: Any) -> np.ndarray:
    """What red gets, by joint choices: [red's, blue's]."""
    table = payoff_of(name)
    return table.reshape(len(table) ** 2, -1)


# -- tables ------------------------------------------------------------------------------------------------------------


@EVERY_TABLE
def test_payoffs_use_the_whole_range(name: Any):
    assert (payoff_of(name).min(), payoff_of(name).max()) == (-1.0, 1.0)


@pytest.mark.parametrize(("name", "best"), WITH_SADDLE.items())
def test_three_tables_have_one_pure_saddle_point_of_value_zero(name: Any, best: tuple[int, int]):
    table = gains(name)
    maximin, minimax = table.min(1), table.max(0)
    assert maximin.max() == minimax.min() == 0
    joint = best[0] * 3 + best[1]
    assert np.flatnonzero(maximin == 0).tolist() == np.flatnonzero(minimax == 0).tolist() == [joint]


@pytest.mark.parametrize("name", ["pennies", "repeated"])
def test_the_other_tables_have_no_pure_saddle_point_and_value_zero_with_a_shared_draw(name: Any):
    table = gains(name)
    assert (table.min(1).max(), table.max(0).min()) == (-1, 1)
    choices = len(payoff_of(name))
    agreed = np.array([a == b for a, b in itertools.product(range(choices), repeat=2)]) / choices
    assert (agreed @ table).min() >= -1e-12
    assert (table @ agreed).max() <= 1e-12


def certain(name: Any, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What red guarantees if its teammates draw independently, [...], by their probabilities [..., k]."""
    k = len(payoff_of(name))
    joint = (first[..., :, None] * second[..., None, :]).reshape(*first.shape[:-1], k * k)
    return (joint @ gains(name)).min(-1)


@pytest.mark.parametrize(
    ("name", "probabilities", "value"),
    [("pennies", (0.5, 0.5), -0.5), ("repeated", (2**0.5 - 1, 2 - 2**0.5, 0.0), 5 - 4 * 2**0.5)],
)
def test_independent_draws_of_teammates_guarantee_less(name: Any, probabilities: tuple[float, ...], value: float):
    best = np.array(probabilities)
    assert certain(name, best, best) == pytest.approx(value)
    tried = np.random.default_rng(0).dirichlet(np.ones(len(best)), (2, 20_000))
    assert certain(name, tried[0], tried[1]).max() < value + 1e-9, "and nothing else is better"


def is_monotone(name: Any) -> bool:
    """Whether the choices of each player can be ordered so that more is never worse, whatever the others do."""
    table = payoff_of(name)
    for player in range(4):
        rows = np.moveaxis(table if player < 2 else -table, player, 0).reshape(len(table), -1)
        orders = (list(order) for order in itertools.permutations(range(len(rows))))
        if not any((np.diff(rows[order], axis=0) >= 0).all() for order in orders):
            return False
    return True


def test_a_monotone_mixer_can_represent_the_saddle_table_alone():
    assert [name for name in TABLES if is_monotone(name)] == ["saddle"]


def test_no_sum_of_utilities_represents_the_saddle_table():
    table = payoff_of("saddle")
    mixed = table[1:, 1:, 0, 0] - table[:1, 1:, 0, 0] - table[1:, :1, 0, 0] + table[0, 0, 0, 0]
    assert np.abs(mixed).max() > 0.1


# -- rules -------------------------------------------------------------------------------------------------------------


@EVERY_TABLE
def test_red_gets_what_the_table_says_and_blue_the_opposite(name: Any):
    table = payoff_of(name)
    joints = np.array(list(np.ndindex(*table.shape)))
    sim = started(len(joints), game=name, rounds=1)
    sim.step(joints)
    paid = table[tuple(joints.T)].astype(np.float32)
    np.testing.assert_array_equal(sim.rewards, np.stack([paid, paid, -paid, -paid], 1))
    assert sim.terminated.all()
    np.testing.assert_array_equal(sim.info["winner"], np.where(paid > 0, 0, np.where(paid < 0, 1, -1)))


def test_a_match_ends_after_its_rounds_and_the_sum_names_the_winner():
    sim = started(game="pennies", rounds=3)
    for joint, over in (([0, 0, 1, 1], False), ([0, 0, 0, 0], False), ([1, 1, 0, 1], True)):
        sim.step([joint])
        assert sim.terminated[0] == over
    assert sim.info["winner"][0] == 0
    assert sim.game.end_reason(sim.info["end_reason"][0]) == "over"


def test_rounding_is_no_victory():
    sim = started(game="saddle", rounds=3)
    joints = ((2, 0, 0, 0), (1, 1, 1, 2), (1, 2, 2, 1))
    for joint in joints:
        sim.step([joint])
    assert 0 < abs(sim.states["total"][0]) < 1e-12
    assert sim.info["winner"][0] == -1


def test_each_player_sees_the_time_and_the_last_joint_choice():
    sim = started(game="pennies", rounds=2)
    assert seen(sim)["time_left"][0].tolist() == [1, 1, 1, 1]
    assert not seen(sim)["last_own"].any()
    sim.step([[0, 1, 1, 1]])
    players = seen(sim)[0]
    assert players["time_left"].tolist() == [0.5] * 4
    assert players["last_own"].argmax(1).tolist() == [0, 1, 1, 1]
    assert players["last_teammate"].argmax(1).tolist() == [1, 0, 1, 1]
    assert players["last_opponents"].argmax(2).tolist() == [[1, 1], [1, 1], [0, 1], [0, 1]]
    assert players["is_second"].tolist() == [0, 1, 0, 1]
    assert players["is_blue"].tolist() == [0, 0, 1, 1]


@EVERY_TABLE
def test_a_table_is_mirrored_where_exchanging_the_teams_gives_its_opposite(name: Any):
    game = matrix.game(name)
    table = payoff_of(name)
    opposite = all(table[a, b, c, d] == -table[c, d, a, b] for a, b, c, d in np.ndindex(*table.shape))
    assert opposite == (name != "pennies")
    assert (game.mirror is not None) == opposite
    assert ("is_blue" in (f.name for f in game.roles[0].observation)) != opposite


def test_exchanged_teams_play_the_exchanged_match():
    sim, twin = started(16, game="climb", rounds=5), started(16, game="climb", rounds=5)
    rng = np.random.default_rng(0)
    for _ in range(5):
        actions = rng.integers(3, size=(16, 4))
        sim.step(actions)
        twin.step(np.roll(actions, 2, 1))
        np.testing.assert_array_equal(np.roll(sim.observations, 2, 1), twin.observations)
        np.testing.assert_array_equal(np.roll(sim.rewards, 2, 1), twin.rewards)
    np.testing.assert_array_equal(sim.info["winner"], np.where(twin.info["winner"] < 0, -1, 1 - twin.info["winner"]))


@settings(max_examples=10)
@given(st.sampled_from(TABLES), st.integers(1, 4))
def test_positions_are_counted_once_each_and_placed_as_they_were(name: Any, rounds: int):
    game: Any = matrix.game(name, rounds)
    count = game.enumeration
    choices = len(payoff_of(name))
    assert count.positions == 1 + (rounds - 1) * choices**4
    numbers = np.arange(count.positions)
    records: Any = np.zeros(len(numbers), game.state_dtype)
    count.write_state(records, numbers)
    np.testing.assert_array_equal(count.state_index(records), numbers)
    sim, rng = started(3, game=name, rounds=rounds), np.random.default_rng(rounds)
    for _ in range(rounds - 1):
        assert (count.state_index(sim.states) < count.positions).all()
        sim.step(rng.integers(choices, size=(3, 4)))
        placed: Any = np.zeros(3, game.state_dtype)
        count.write_state(placed, count.state_index(sim.states))
        for field in ("played", "last", "alive", "acting"):
            np.testing.assert_array_equal(placed[field], sim.states[field])


# -- scripts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "best"), WITH_SADDLE.items())
def test_maximin_plays_the_saddle_point(name: Any, best: tuple[int, int]):
    sim = started(4, game=name, opponents={"red": "maximin", "blue": "maximin"})
    sim.step()
    assert sim.states["last"].tolist() == [[*best, *best]] * 4


def test_maximin_plays_what_is_sure_and_not_what_might_be_most():
    payoff = np.zeros((2, 2, 2, 2))
    payoff[0, 0, 0, 0], payoff[0, 0, 1, 1], payoff[1, 1] = 1.0, -1.0, 0.1
    sim = started(payoff=payoff, opponents={"red": "maximin"})
    sim.step()
    assert sim.states["last"][0, :2].tolist() == [1, 1]


@pytest.mark.check
@pytest.mark.parametrize("name", ["pennies", "repeated"])
def test_maximin_mixes_by_a_random_draw_that_only_teammates_share(name: Any):
    sim = started(64, game=name, opponents={"red": "maximin", "blue": "maximin"})
    shown = []
    for _ in range(5):
        sim.step()
        last = sim.states["last"].copy()
        np.testing.assert_array_equal(last[:, ::2], last[:, 1::2])
        shown.append(last[:, ::2])
    red, blue = np.concatenate(shown).T
    choices = len(payoff_of(name))
    together = np.histogram2d(red, blue, bins=choices)[0] / len(red)
    np.testing.assert_allclose(together, 1 / choices**2, atol=0.08)


@pytest.mark.parametrize(("name", "joint", "answer"), [("repeated", [1, 1], [2, 2]), ("pennies", [1, 1], [1, 1])])
def test_counter_answers_what_the_other_team_chose_last(name: Any, joint: list[int], answer: list[int]):
    sim = started(game=name, opponents={"red": "counter"})
    for _ in range(3):
        sim.step([[0, 0, *joint]])
    assert sim.states["last"][0].tolist() == [*answer, *joint]


# -- the world outside -------------------------------------------------------------------------------------------------


def test_a_table_of_ones_own_is_played_and_recorded():
    payoff = np.zeros((3, 3, 3, 3))  # as large as the default: no kernel of its own
    payoff[1, 1, 0, 0] = 0.5
    sim: Any = palaestra.make_batch(ID, payoff=payoff, rounds=1, autoreset_mode="off", compiled=False)
    sim.reset(seed=0)
    sim.step([[1, 1, 0, 0]])
    assert sim.rewards[0].tolist() == [0.5, 0.5, -0.5, -0.5]
    recorded = replay.record(ID, payoff=payoff, rounds=2, seed=0)
    assert replay.verify(recorded).ok


BAD = np.zeros((2, 2, 2, 2))
BAD[1, 0, 1, 1] = np.nan
LARGE = np.zeros((3, 3, 3, 3))
LARGE[0, 0, 2, 1] = -1.5


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"game": "chicken"}, "game must be one of 'saddle', .*, 'repeated', got 'chicken'"),
        ({"rounds": 0}, "rounds must be an integer from 1 to 100, got 0"),
        ({"rounds": 2.0}, "rounds must be an integer from 1 to 100, got 2.0"),
        ({"payoff": np.zeros((3, 3))}, r"payoff must have shape \(k, k, k, k\).*got \(3, 3\)"),
        ({"payoff": np.zeros((2, 2, 2, 3))}, r"one axis a player .* got \(2, 2, 2, 3\)"),
        ({"payoff": np.zeros((9, 9, 9, 9))}, "k from 2 to 8"),
        ({"payoff": BAD}, r"payoffs must be in \[-1, 1\], but payoff\[1, 0, 1, 1\] is nan"),
        ({"payoff": LARGE}, r"payoff\[0, 0, 2, 1\] is -1.5"),
    ],
)
def test_a_table_that_cannot_be_played_is_refused(keywords: Any, message: str):
    with pytest.raises(ValueError, match=message):
        matrix.game(**keywords)


def test_a_picture_frames_what_was_chosen_last():
    pytest.importorskip("PIL")
    from palaestra.drawing.colors import SIGNAL, TEAMS
    from palaestra.games.teams.render_matrix import board_of

    sim, board = started(game="repeated"), board_of(3)
    assert not (sim.render(0) == SIGNAL).all(2).any()
    sim.step([[2, 1, 0, 0]])
    picture = sim.render(0)
    assert (picture.shape[1:], picture.dtype) == ((600, 3), np.uint8)
    y, x = np.argwhere((picture == SIGNAL).all(2)).mean(0)
    assert np.hypot(*np.subtract((x, y), board.center(7, 0))) < 0.1 * board.side
    for column, color in ((0, TEAMS[1]), (4, TEAMS[1]), (1, None)):
        x, y = (round(at - 0.3 * board.side) for at in board.center(7, column))
        bluish = picture[y, x, 2] > 2 * int(picture[y, x, 0])
        assert bluish == (color is not None), "blue gains where red's teammates differ and its own agree"
