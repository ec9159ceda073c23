"""The three autoreset modes against a loop over single matches, and resets of some lanes."""

import numpy as np
import pytest
from games import two_team
from games.play import all_bytes, idle_actions, lanes_of, leaves, random_actions, seen_bytes, simulation
from hypothesis import given, settings
from hypothesis import strategies as st

from palaestra.core.run.simulation import Simulation

pytestmark = pytest.mark.jitless

GAME = two_team.game()
N, STEPS, SEED = 5, 150, 11
OPPONENTS = {"blue": "mix"}


def singles() -> list[Simulation]:
    sims = [simulation(GAME, 1, autoreset_mode="off", opponents=OPPONENTS) for _ in range(N)]
    for lane, sim in enumerate(sims):
        sim.reset(seed=SEED + lane)
    return sims


def batch(mode: str, **options) -> Simulation:
    sim = simulation(GAME, N, autoreset_mode=mode, opponents=OPPONENTS, **options)
    sim.reset(seed=SEED)
    return sim


def over(sim: Simulation) -> np.ndarray:
    return sim.terminated | sim.truncated


@pytest.mark.check
def test_next_step_spends_one_call_on_the_new_match_and_ignores_its_action():
    sim, rng = batch("next_step"), np.random.default_rng(0)
    loop, ended, resets = singles(), np.zeros(N, np.bool_), 0
    for _ in range(STEPS):
        actions = random_actions(sim, rng)
        sim.step(actions)
        for lane, single in enumerate(loop):
            if ended[lane]:
                single.reset()
                resets += 1
            else:
                single.step(lanes_of(actions, [lane]))
            ended[lane] = over(single)[0]
        np.testing.assert_array_equal(seen_bytes(sim), np.concatenate([seen_bytes(s) for s in loop]))
    assert resets > N


def test_next_step_takes_any_action_for_the_new_match():
    sim = batch("next_step", parameters={"horizon": 1})
    sim.step(idle_actions(sim))
    assert sim.truncated.all()
    nonsense = idle_actions(sim)
    nonsense["scout"][:] = 99
    sim.step(nonsense)
    assert not over(sim).any()
    assert (sim.states["steps"] == 0).all()


@pytest.mark.check
def test_same_step_keeps_the_last_observations_and_info_and_shows_the_new_match():
    sim, rng = batch("same_step"), np.random.default_rng(0)
    loop, resets = singles(), 0
    for _ in range(STEPS):
        actions = random_actions(sim, rng)
        sim.step(actions)
        for lane, single in enumerate(loop):
            single.step(lanes_of(actions, [lane]))
            assert (sim.terminated[lane], sim.truncated[lane]) == (single.terminated[0], single.truncated[0])
            np.testing.assert_array_equal(sim.rewards[lane], single.rewards[0])
            np.testing.assert_array_equal(sim.agent_terminated[lane], single.agent_terminated[0])
            if over(single)[0]:
                resets += 1
                for mine, its in zip(leaves(sim.final_observations), leaves(single.observations), strict=True):
                    assert mine[lane].tobytes() == its[0].tobytes()
                for name, values in sim.final_info.items():
                    np.testing.assert_array_equal(values[lane], single.info[name][0])
                single.reset()
            for mine, its in zip(leaves(sim.observations), leaves(single.observations), strict=True):
                assert mine[lane].tobytes() == its[0].tobytes()
            for mine, its in zip(leaves(sim.legal), leaves(single.legal), strict=True):
                np.testing.assert_array_equal(mine[lane], its[0])
            assert (sim.info["end_reason"][lane], sim.info["winner"][lane]) == (0, -1)
    assert resets > N


def test_off_lets_a_finished_lane_wait_without_a_change_until_it_is_reset():
    sim, rng = batch("off"), np.random.default_rng(0)
    while not over(sim).any():
        sim.step(random_actions(sim, rng))
    done = over(sim)
    ends = (sim.terminated.copy(), sim.truncated.copy())
    before, records = [o.copy() for o in leaves(sim.observations)], sim.states.copy()
    nonsense = random_actions(sim, rng)
    nonsense["scout"][done] = 99
    sim.step(nonsense)
    for now, then in zip(leaves(sim.observations), before, strict=True):
        assert now[done].tobytes() == then[done].tobytes()
    np.testing.assert_array_equal(sim.states[done], records[done])  # bytes between the fields are not copied
    assert not sim.rewards[done].any()
    assert not sim.agent_terminated[done].any()
    np.testing.assert_array_equal(sim.terminated[done], ends[0][done])
    np.testing.assert_array_equal(sim.truncated[done], ends[1][done])
    assert (sim.states["steps"][~done] == records["steps"][~done] + 1).all()
    sim.reset(done)
    assert not over(sim)[done].any()
    assert (sim.states["steps"][done] == 0).all()


@pytest.mark.check
@settings(max_examples=20)
@given(st.lists(st.booleans(), min_size=N, max_size=N), st.booleans())
def test_a_reset_of_some_lanes_touches_nothing_else(chosen: list[bool], seeded: bool):
    sim, which = batch("off"), np.array(chosen)
    rng = np.random.default_rng(0)
    for _ in range(20):
        sim.step(random_actions(sim, rng))
    before, seeds = all_bytes(sim), sim.lane_seeds.copy()
    sim.reset(which, seed=77 if seeded else None)
    np.testing.assert_array_equal(all_bytes(sim)[~which], before[~which])
    assert (sim.states["steps"][which] == 0).all()
    np.testing.assert_array_equal(sim.lane_seeds, np.where(which & seeded, 77 + np.arange(N, dtype=np.uint64), seeds))
    if seeded:
        fresh = batch("off")
        fresh.reset(seed=77)
        np.testing.assert_array_equal(all_bytes(sim)[which], all_bytes(fresh)[which])


@pytest.mark.parametrize("mask", [np.ones(N - 1, np.bool_), np.ones(N, np.int64), np.ones((N, 1), np.bool_)])
def test_what_is_no_mask_of_the_lanes_is_refused(mask: np.ndarray):
    with pytest.raises(ValueError, match=rf"mask must be bool of shape \({N},\)"):
        batch("off").reset(mask)


def test_the_first_reset_starts_all_lanes():
    sim = simulation(GAME, N)
    with pytest.raises(RuntimeError, match="call reset"):
        sim.step(idle_actions(sim))
    with pytest.raises(ValueError, match="first reset starts all lanes"):
        sim.reset(np.arange(N) == 0, seed=1)


def test_a_closed_simulation_says_so():
    sim = batch("off", threads=2)
    sim.step(idle_actions(sim))
    sim.close()
    sim.close()
    for verb in (sim.reset, sim.step, lambda: sim.restore(sim.snapshot())):
        with pytest.raises(RuntimeError, match="closed"):
            verb()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"num_envs": 0}, "num_envs must be at least 1, got 0"),
        ({"num_envs": 1, "threads": 0}, "threads must be at least 1, got 0"),
        ({"num_envs": 1, "autoreset_mode": "never"}, "autoreset_mode must be one of next_step, same_step, off"),
    ],
)
def test_numbers_that_cannot_be_are_refused(arguments: dict, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        simulation(GAME, **arguments)
