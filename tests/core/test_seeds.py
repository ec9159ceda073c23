"""Lane i under seed s is a single match under seed s + i, bitwise, for any batch size and number of threads."""

import copy

import numpy as np
import pytest
from games import two_team, two_team_homogeneous
from games.play import all_bytes, lanes_of, match_hash, random_actions, seen_bytes, simulation

from palaestra.core.run.simulation import Simulation

SEED = 1000
GAMES = {"raid": two_team.game(), "melee": two_team_homogeneous.game()}


def play(sim: Simulation, actions: list, seed: int) -> np.ndarray:
    """Bytes of every lane after every step, uint8 [T, N, bytes]."""
    sim.reset(seed=seed)
    rows = [all_bytes(sim)]
    for given in actions:
        sim.step(given)
        rows.append(all_bytes(sim))
    return np.array(rows)


def make_actions(game, n: int, steps: int) -> list:
    sim, rng = simulation(game, n), np.random.default_rng(3)
    return [random_actions(sim, rng) for _ in range(steps)]


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("opponent", [None, "random", "mix"])
def test_a_lane_equals_a_single_match_seeded_with_its_number_through_resets(name: str, opponent: str | None):
    game = GAMES[name]
    n, steps = 7, 130
    options = {"opponents": {"blue": opponent}, "parameters": {"horizon": 40}}
    actions = make_actions(game, n, steps)
    batch = play(simulation(game, n, **options), actions, SEED)
    for lane in (0, 3, n - 1):
        single = play(simulation(game, 1, **options), [lanes_of(a, [lane]) for a in actions], SEED + lane)
        np.testing.assert_array_equal(single[:, 0], batch[:, lane])


def test_a_lane_does_not_depend_on_the_size_of_the_batch():
    game = GAMES["raid"]
    actions = make_actions(game, 64, 100)
    large = play(simulation(game, 64, opponents={"blue": "mix"}), actions, SEED)
    small = play(simulation(game, 7, opponents={"blue": "mix"}), [lanes_of(a, slice(7)) for a in actions], SEED)
    np.testing.assert_array_equal(small, large[:, :7])
    assert len({row.tobytes() for row in large[0]}) == 64  # and all lanes are different


def test_a_copy_keeps_the_seeds_of_its_lanes():
    sim = simulation(GAMES["raid"], 3)
    sim.reset(seed=SEED)
    assert copy.deepcopy(sim).lane_seeds.tolist() == [SEED, SEED + 1, SEED + 2]


@pytest.mark.parametrize("threads", [2, 3, 8])
def test_threads_do_not_change_a_bit(threads: int):
    assert match_hash("two_team", threads=threads) == match_hash("two_team", threads=1)


def test_equal_seeds_give_equal_matches_and_a_list_of_seeds_is_taken_as_it_is():
    sim, twin = (simulation(GAMES["raid"], 3) for _ in range(2))
    sim.reset(seed=5)
    twin.reset(seed=[5, 6, 7])
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))
    np.testing.assert_array_equal(sim.lane_seeds, [5, 6, 7])


def test_without_a_seed_the_random_streams_continue():
    sim, twin = (simulation(GAMES["raid"], 2) for _ in range(2))
    for s in (sim, twin):
        s.reset(seed=5)
    first = seen_bytes(sim)
    for s in (sim, twin):
        s.reset()
    np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))
    assert (seen_bytes(sim) != first).any(axis=1).all()
    sim.reset(seed=5)
    np.testing.assert_array_equal(seen_bytes(sim), first)


def test_a_simulation_that_never_got_a_seed_gets_one_of_its_own():
    sim, twin = (simulation(GAMES["raid"], 4) for _ in range(2))
    sim.reset()
    twin.reset()
    assert len({*sim.lane_seeds.tolist(), *twin.lane_seeds.tolist()}) == 8
    again = simulation(GAMES["raid"], 4)
    again.reset(seed=sim.lane_seeds)  # what it drew can be had again
    np.testing.assert_array_equal(all_bytes(again), all_bytes(sim))


NO_SEEDS = [-1, 2**64, 2**64 - 2, True, 1.0, "1", np.float64(1), [1, 2], [[1, 2, 3]], [1.0, 2.0, 3.0], [1, -2, 3],
            ["1", "2", "3"], [1, True, 3], [1, None, 3], [2**64, 0, 0], (1, 2), np.ones(3), {}]  # fmt: skip


@pytest.mark.parametrize("seed", NO_SEEDS)
def test_what_is_no_seed_is_refused(seed):
    sim = simulation(GAMES["raid"], 3)
    sim.reset(seed=1)
    before = all_bytes(sim)
    with pytest.raises(ValueError, match="seed must be an integer"):
        sim.reset(seed=seed)
    np.testing.assert_array_equal(all_bytes(sim), before)


def test_every_lane_needs_a_seed_of_its_own_below_the_largest():
    sim = simulation(GAMES["raid"], 2)
    sim.reset(seed=2**64 - 2)
    np.testing.assert_array_equal(sim.lane_seeds, np.array([2**64 - 2, 2**64 - 1], np.uint64))
    with pytest.raises(
        ValueError, match=r"from 0 to 2\*\*64 - 2, as lane i of 2 gets seed \+ i, got 18446744073709551615"
    ):
        sim.reset(seed=2**64 - 1)


@pytest.mark.parametrize("seeds", [[5, 6, 7], (5, 6, 7), np.array([5, 6, 7]), [np.uint8(5), 6, 7]])
def test_a_seed_for_each_lane_may_be_any_row_of_integers(seeds):
    sim = simulation(GAMES["raid"], 3)
    sim.reset(seed=seeds)
    np.testing.assert_array_equal(sim.lane_seeds, [5, 6, 7])
