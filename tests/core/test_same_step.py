"""Under same_step the next match starts in the same call, and the last results of the ended one are kept."""

from typing import Any

import numpy as np
import pytest
from games import orchard, size_game
from games.play import leaves, random_actions, seen_bytes, simulation

pytestmark = pytest.mark.jitless

N, STEPS = 5, 26
GAMES = {"orchard": orchard.game(), "couriers": size_game.game(agents=5, parcels=7)}
HORIZONS = [3, 4, 4, 3, 7]  # several end in the same decision, in the parts of both threads


def started(game: Any, mode: Any, threads: int = 1) -> Any:
    sim = simulation(game, N, autoreset_mode=mode, threads=threads, parameters={"horizon": HORIZONS})
    sim.reset(seed=3)
    return sim


@pytest.mark.check
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", GAMES)
def test_what_ended_shows_its_end_and_the_row_shows_the_new_match(name: str, threads: int):
    sim, waiting = started(GAMES[name], "same_step", threads), started(GAMES[name], "off")
    rng, together = np.random.default_rng(0), 0
    for _ in range(STEPS):
        actions = random_actions(sim, rng)
        sim.step(actions)
        waiting.step(actions)
        over = waiting.terminated | waiting.truncated
        np.testing.assert_array_equal(sim.terminated | sim.truncated, over)
        np.testing.assert_array_equal(sim.rewards, waiting.rewards)
        np.testing.assert_array_equal(sim.agent_terminated, waiting.agent_terminated)
        for final, last in (
            (sim.final_observations, waiting.observations),
            (sim.final_legal, waiting.legal),
            (sim.final_info, waiting.info),
        ):
            for mine, its in zip(leaves(final), leaves(last), strict=True):
                assert mine[over].tobytes() == its[over].tobytes()
        together += over.sum() > 1
        waiting.reset(over)
        shown = [*leaves(sim.observations), *leaves(sim.legal), sim.team_observations, sim.lane_observations]
        fresh = [*leaves(waiting.observations), *leaves(waiting.legal)]
        fresh += [waiting.team_observations, waiting.lane_observations]
        for mine, its in zip(shown, fresh, strict=True):
            assert mine is its is None or mine.tobytes() == its.tobytes()
    assert together >= 4
    sim.close()


def test_a_lane_in_mid_match_keeps_its_last_final_results():
    sim, rng = started(GAMES["orchard"], "same_step"), np.random.default_rng(0)
    for _ in range(3):
        sim.step(random_actions(sim, rng))
    kept = sim.final_observations["picker"].copy(), sim.final_info["totals"].copy()
    assert kept[1].tolist() == [[3, 4], [0, 0], [0, 0], [3, 4], [0, 0]]
    sim.step(random_actions(sim, rng))
    assert sim.truncated.tolist() == [False, True, True, False, False]
    np.testing.assert_array_equal(sim.final_observations["picker"][[0, 3]], kept[0][[0, 3]])
    assert sim.final_info["totals"].tolist() == [[3, 4], [4, 5], [4, 5], [3, 4], [0, 0]]


def test_what_is_fixed_during_a_match_is_the_old_one_at_the_end_and_the_new_one_in_the_row():
    sim, rng = started(GAMES["orchard"], "same_step"), np.random.default_rng(0)
    drawn = sim.observations["picker"][:, :, 7].copy()
    assert (drawn > 0).all()
    for _ in range(3):
        sim.step(random_actions(sim, rng))
    np.testing.assert_array_equal(sim.final_observations["picker"][[0, 3], :, 7], drawn[[0, 3]])
    assert (sim.observations["picker"][[0, 3], :, 7] != drawn[[0, 3]]).all()
    np.testing.assert_array_equal(sim.observations["picker"][[1, 2, 4], :, 7], drawn[[1, 2, 4]])
    np.testing.assert_array_equal(sim.observations["picker"][:, :, 7], np.float32(sim.states["drawn"][:, :3]))


def test_a_match_of_one_decision_ends_in_every_call():
    sim = simulation(GAMES["orchard"], 2, autoreset_mode="same_step", parameters={"horizon": 1})
    sim.reset(seed=1)
    rng, seen = np.random.default_rng(0), []
    for _ in range(3):
        sim.step(random_actions(sim, rng))
        assert sim.truncated.all()
        assert (sim.states["steps"] == 0).all()
        assert sim.final_info["totals"].tolist() == [[1, 2]] * 2
        seen.append(seen_bytes(sim).tobytes())
    assert len(set(seen)) == 3
