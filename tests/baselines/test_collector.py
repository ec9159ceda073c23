"""What a collector records: deaths, arrivals, turns, ends, recurrent states; on matches whose numbers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

from games import duel, relay

import palaestra
from palaestra.core.run.kernel import KernelSimulation
from palaestra_baselines.common.agents import Roster, make_lanes
from palaestra_baselines.common.rollout import Collector, Replay, epsilon_greedy

SOCCER, PONG = "palaestra/GridSoccer-v0", "palaestra/TeamPong-v0"


def recorded(decisions: int, teams: tuple[str, ...] | None = None, **options: Any) -> dict[str, np.ndarray]:
    """Rows of one lane of Relay, with a recurrent state that counts decisions."""
    parameters = {"ends_at": options.pop("ends_at", 1000)}
    sim = KernelSimulation(relay.game(), 1, compiled=False, parameters=parameters, **options)
    replay = Replay(decisions + 1, 1)
    collector = Collector(sim, Roster(sim.game, teams), replay, 3, with_state=True, memory_size=1)
    for _ in range(decisions):
        actions = epsilon_greedy(collector.rng, collector.position.legal, None, 1.0)
        collector.play(actions, collector.position.memory + 1.0)
    return {name: rows[:, 0].tolist() for name, rows in replay.arrays.items()}


def collected(id: str, decisions: int, lanes: int = 8, random_starts: bool = False, **options: Any):
    """A replay after some decisions at random, and its collector."""
    sim = make_lanes(id, tuple(f"{name}={value!r}" for name, value in options.items()), lanes)
    replay = Replay(decisions + 1, lanes)
    collector = Collector(sim, Roster(sim.game), replay, 3, random_starts=random_starts)
    for _ in range(decisions):
        collector.play(epsilon_greedy(collector.rng, collector.position.legal, None, 1.0))
    return collector, replay


def test_deaths_and_arrivals_are_recorded_where_they_happen():
    alive = recorded(5)["alive"]
    assert [row[relay.LATE] for row in alive] == [False, False, True, True, True, True]
    assert [row[relay.LEAVER] for row in alive] == [True, True, True, False, False, False]


def test_only_agents_in_the_match_whose_turn_it_is_are_asked():
    assert recorded(4)["asked"][:4] == [
        [True, False, False, False],  # slot 2 has not arrived
        [False, True, False, True],
        [True, False, True, False],
        [False, False, False, True],  # slot 1 has left
    ]


def test_each_team_is_paid_its_own_reward():
    assert recorded(3)["rewards"][:3] == [[1.0, -1.0], [2.0, -2.0], [3.0, -3.0]]


def test_a_match_that_the_horizon_cuts_is_not_terminated_and_the_row_after_it_is_no_decision():
    rows = recorded(7)
    assert rows["terminated"][:7] == [False] * 7
    assert rows["running"][:7] == [True] * 5 + [False, True]
    assert rows["observations.keeper"][5] == [[3.0, 5.0]]  # its last position
    assert rows["observations.keeper"][6] == [[3.0, 0.0]]


def test_steps_are_decisions_of_matches():
    sim = KernelSimulation(relay.game(), 3, compiled=False)
    collector = Collector(sim, Roster(sim.game), Replay(9, 3), 3)
    for _ in range(8):
        collector.play(epsilon_greedy(collector.rng, collector.position.legal, None, 1.0))
    assert collector.steps == 3 * 7  # the sixth row starts the lanes anew


def test_a_match_that_a_rule_ends_is_terminated():
    rows = recorded(4, ends_at=2)
    assert rows["terminated"][:4] == [False, True, False, False]
    assert rows["running"][:4] == [True, True, False, True]


def test_the_first_position_of_each_match_is_marked():
    assert recorded(7)["first"] == [True, False, False, False, False, False, True, False]


def test_a_recurrent_state_starts_from_zero_with_the_match_and_with_the_arrival_of_the_agent():
    memory = [[agent[0] for agent in row] for row in recorded(7)["memory"]]
    assert [row[0] for row in memory] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0]
    assert [row[relay.LATE] for row in memory] == [0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0]
    assert [row[relay.LEAVER] for row in memory] == [0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 1.0]


def test_recurrent_agents_must_hand_on_their_state():
    sim = KernelSimulation(relay.game(), 1, compiled=False)
    collector = Collector(sim, Roster(sim.game), Replay(3, 1), 0, memory_size=2)
    with pytest.raises(ValueError, match="wants their new recurrent state"):
        collector.play(np.zeros((1, 4), np.int64))


@pytest.mark.check
def test_the_global_state_is_recorded_where_it_is_wanted():
    assert recorded(3)["state"][:3] == [[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]]
    _, replay = collected(SOCCER, 1)
    assert "state" not in replay.arrays


def test_one_team_learns_while_a_script_plays_the_other():
    rows = recorded(5, ("red",), opponents={"blue": "eager"})
    assert np.shape(rows["actions"][0]) == (2,)
    assert [row[1] for row in rows["alive"]] == [False, False, True, True, True, True]
    runs = KernelSimulation(relay.game(), 1, compiled=False, opponents={"blue": "eager"})
    collector = Collector(runs, Roster(runs.game, ("red",)), Replay(3, 1), 3)
    for _ in range(2):
        collector.play(np.array([[2, 0]]))
    assert runs.states["last"][0].tolist() == [0, 1, 0, 1]  # the script's moves; red was not asked
    collector.play(np.array([[2, 2]]))
    assert runs.states["last"][0].tolist() == [2, 0, 2, 0]


def test_a_roster_says_whose_rewards_are_recorded(monkeypatch: pytest.MonkeyPatch):
    teams = recorded(3)["rewards"][:3]
    monkeypatch.setattr(Roster, "read_rewards", lambda roster, sim: sim.team_rewards("blue")[:, None])
    assert recorded(3)["rewards"][:3] == [[blue] for _, blue in teams]


@pytest.mark.check
def test_the_replay_holds_what_the_lanes_did():
    collector, replay = collected(SOCCER, 40, order="alternating")
    lanes = palaestra.make_batch(SOCCER, 8, autoreset_mode="next_step", order="alternating")
    lanes.reset(seed=3 << 32)
    for row in range(40):
        np.testing.assert_array_equal(replay.arrays["observations.player"][row], lanes.observations)
        running = lanes.states["pending"] == 0
        lanes.step(replay.arrays["actions"][row].astype(np.int64))
        np.testing.assert_array_equal(replay.arrays["running"][row], running)
        np.testing.assert_array_equal(replay.arrays["rewards"][row, :, 0], lanes.team_rewards("red"))
        np.testing.assert_array_equal(replay.arrays["rewards"][row, :, 1], lanes.team_rewards("blue"))
        np.testing.assert_array_equal(replay.arrays["terminated"][row], lanes.terminated & running)
    assert collector.steps == int(replay.arrays["running"][:40].sum())


@pytest.mark.check
def test_random_starts_are_spread_over_all_positions():
    collector, _ = collected(SOCCER, 0, lanes=400, random_starts=True)
    enumeration = collector.roster.game.enumeration
    assert enumeration is not None
    assert len(set(enumeration.state_index(collector.sim.states).tolist())) > 200
    with pytest.raises(ValueError, match="positions that can be counted"):
        collected(PONG, 0, random_starts=True)


def test_a_game_of_larger_capacity_is_collected_like_its_own_size():
    kept = []
    for capacity in (None, 6):
        sim = KernelSimulation(duel.game(players=2, capacity=capacity, reward_dtype="f8"), 4, compiled=False)
        replay = Replay(21, 4)
        collector = Collector(sim, Roster(sim.game), replay, 3)
        for _ in range(20):
            collector.play(epsilon_greedy(collector.rng, collector.position.legal, None, 1.0))
        kept.append(replay.arrays)
    assert np.abs(kept[0]["rewards"]).sum() > 0
    for name, rows in kept[0].items():
        np.testing.assert_array_equal(rows, kept[1][name])


# -- exploration -------------------------------------------------------------------------------------------------------

LEGAL = np.array([[[True, True, False], [False, True, True]]])
VALUES = np.array([[[1.0, 0.0, 9.0], [9.0, 2.0, 1.0]]], np.float32)


def test_without_exploration_each_agent_takes_its_best_legal_action():
    actions = epsilon_greedy(np.random.default_rng(0), np.repeat(LEGAL, 50, 0), np.repeat(VALUES, 50, 0), 0.0)
    assert (actions == [[0, 1]]).all()


def test_exploration_draws_among_the_legal_actions_with_the_probability_epsilon():
    many = np.repeat(LEGAL, 4000, 0)
    actions = epsilon_greedy(np.random.default_rng(0), many, np.repeat(VALUES, 4000, 0), 0.2)
    assert (actions == [[0, 1]]).mean(0) == pytest.approx([0.9, 0.9], abs=0.02)  # a half of the draws are greedy, too
    assert (many[np.arange(4000)[:, None], [0, 1], actions]).all()


def test_without_values_all_legal_actions_are_equally_likely():
    actions = epsilon_greedy(np.random.default_rng(0), np.repeat(LEGAL, 4000, 0), None, 0.0)
    assert actions.mean(0) == pytest.approx([0.5, 1.5], abs=0.03)
