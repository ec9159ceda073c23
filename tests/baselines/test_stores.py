"""What can be drawn from a replay, sequences that cross matches, and advantages by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from games import relay

from palaestra.core.run.kernel import KernelSimulation
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.rollout import (
    Collector,
    Decision,
    Position,
    Replay,
    Sequences,
    epsilon_greedy,
    generalised_advantages,
    value_targets,
)


def numbered(rows: int, decisions: int, lanes: int = 1) -> Replay:
    """A replay whose k-th position shows 100 k + lane, and whose k-th decision pays that."""
    replay = Replay(rows, lanes)
    for k in range(decisions + 1):
        number = 100.0 * k + np.arange(lanes, dtype=np.float32)
        yes = np.ones((lanes, 1), np.bool_)
        replay.write_position(Position({"all": number[:, None, None]}, yes[:, :, None], yes, yes, ~yes[:, 0]))
        if k < decisions:
            nothing = np.zeros(lanes, np.bool_)
            replay.write_decision(Decision(np.zeros((lanes, 1), np.uint8), number[:, None], nothing, ~nothing))
    return replay


def relayed(decisions: int, ends_at: int = 1000, rows: int = 20, lanes: int = 1) -> Replay:
    """A replay of Relay."""
    sim = KernelSimulation(relay.game(), lanes, compiled=False, parameters={"ends_at": ends_at})
    replay = Replay(rows, lanes)
    collector = Collector(sim, Roster(sim.game), replay, 3, memory_size=1)
    for _ in range(decisions):
        actions = epsilon_greedy(collector.rng, collector.position.legal, None, 1.0)
        collector.play(actions, collector.position.memory + 1.0)
    return replay


def test_a_full_replay_gives_the_last_decisions_only_each_with_its_own_positions():
    batch = numbered(5, 12, lanes=3).sample(np.random.default_rng(0), 300)
    rewards = batch.rewards[:, 0]
    assert set(rewards.tolist()) == {100.0 * k + lane for k in (8, 9, 10, 11) for lane in range(3)}
    torch.testing.assert_close(batch.before.observations["all"][:, 0, 0], rewards)
    torch.testing.assert_close(batch.after.observations["all"][:, 0, 0], rewards + 100.0)


def test_all_kept_decisions_are_drawn_equally_often():
    drawn = numbered(5, 12).sample(np.random.default_rng(0), 4000).rewards[:, 0]
    shares = [(drawn == 100.0 * k).float().mean().item() for k in (8, 9, 10, 11)]
    assert shares == pytest.approx([0.25] * 4, abs=0.03)


def test_a_decision_that_ended_its_match_by_a_rule_does_not_continue_and_a_lane_that_starts_anew_has_no_weight():
    rollout = relayed(4, ends_at=2).last(4)
    assert rollout.continues[:, 0].tolist() == [1.0, 0.0, 1.0, 1.0]
    assert rollout.weights[:, 0].tolist() == [1.0, 1.0, 0.0, 1.0]
    cut = relayed(7).last(7)
    assert cut.continues[:, 0].tolist() == [1.0] * 7
    assert cut.weights[:, 0].tolist() == [1.0] * 5 + [0.0, 1.0]


def test_sequences_are_successive_decisions_and_end_with_the_position_after_the_last():
    sequences = numbered(6, 12, lanes=2).sample_sequences(np.random.default_rng(0), 300, 3)
    assert sequences.rewards.shape == (3, 300, 1)
    seen = sequences.positions.observations["all"][:, :, 0, 0]
    torch.testing.assert_close(seen[:-1], sequences.rewards[:, :, 0])
    torch.testing.assert_close(seen, seen[0] + 100.0 * torch.arange(4)[:, None])
    assert set(seen[0].tolist()) == {100.0 * k + lane for k in (7, 8, 9) for lane in range(2)}


def test_the_rollout_is_the_last_decisions_of_all_lanes_in_order():
    rollout = numbered(6, 12, lanes=2).last(4)
    assert rollout.rewards[:, :, 0].tolist() == [[100.0 * k, 100.0 * k + 1] for k in (8, 9, 10, 11)]


def test_more_decisions_than_are_kept_cannot_be_drawn():
    for draw in (lambda r: r.last(4), lambda r: r.sample_sequences(np.random.default_rng(0), 2, 4)):
        with pytest.raises(ValueError, match="sequences of 4 decisions were asked for; 3 of a lane are kept"):
            draw(numbered(6, 3))


def test_unrolling_a_sequence_meets_the_recorded_recurrent_states():
    sequences = relayed(19).sample_sequences(np.random.default_rng(0), 50, 8)
    memory = sequences.positions.memory[0]
    for k in range(1, 9):
        memory = (memory + 1.0) * sequences.keeps[k]
        torch.testing.assert_close(memory, sequences.positions.memory[k])
    assert (sequences.keeps == 0.0).any()


def test_large_action_numbers_are_kept_whole():
    replay = Replay(3, 1)
    replay.write_decision(Decision(np.array([[299, 256]], np.int32), *(np.zeros(1, np.float32),) * 3))
    assert replay.arrays["actions"][0, 0].tolist() == [299, 256]


def test_a_restored_replay_draws_the_same():
    whole = relayed(9)
    other = Replay(20, 1)
    other.restore(whole.state())
    one, two = (r.sample(np.random.default_rng(5), 30) for r in (whole, other))
    assert torch.equal(one.rewards, two.rewards)
    assert torch.equal(one.after.memory, two.after.memory)
    assert len(whole.state()["arrays"]["rewards"]) == 10


# -- advantages --------------------------------------------------------------------------------------------------------


def rollout_of(continues: list[float], weights: list[float]) -> Sequences:
    flags = [torch.tensor(x)[:, None] for x in (continues, weights)]
    empty = torch.zeros(0)
    return Sequences(Position({}, empty, empty, empty, empty), empty, empty, empty, *flags)


def advantages(continues: list[float], weights: list[float], gamma: float = 0.5, gae_lambda: float = 0.5):
    rewards = torch.tensor([1.0, 2.0, 4.0])[:, None, None]
    values = torch.tensor([10.0, 20.0, 40.0, 80.0])[:, None, None]
    return generalised_advantages(rollout_of(continues, weights), rewards, values, gamma, gae_lambda).flatten().tolist()


def test_advantages_add_up_the_errors_that_follow():
    # errors: 1 + 10 - 10, 2 + 20 - 20, 4 + 40 - 40
    assert advantages([1.0, 1.0, 1.0], [1.0, 1.0, 1.0]) == [1.0 + 0.25 * 3.0, 2.0 + 0.25 * 4.0, 4.0]


def test_a_terminal_decision_takes_no_value_from_after_it():
    assert advantages([1.0, 0.0, 1.0], [1.0, 1.0, 0.0]) == [1.0 + 0.25 * -18.0, 2.0 - 20.0, 0.0]


def test_a_match_that_was_cut_is_worth_its_last_position_and_takes_nothing_from_the_next_match():
    assert advantages([1.0, 1.0, 1.0], [1.0, 0.0, 1.0]) == [1.0, 0.0, 4.0]


def test_lambda_one_gives_returns_and_lambda_zero_gives_one_step_errors():
    assert advantages([1.0] * 3, [1.0] * 3, gae_lambda=0.0) == [1.0, 2.0, 4.0]
    returns = 1.0 + 0.5 * (2.0 + 0.5 * (4.0 + 0.5 * 80.0))
    assert advantages([1.0] * 3, [1.0] * 3, gae_lambda=1.0)[0] == returns - 10.0


# -- targets of values -------------------------------------------------------------------------------------------------


def targets(continues: list[float], weights: list[float], steps: int) -> list[list[float]]:
    """Targets of two groups: the values of the second are 100 times those of the first."""
    rewards = torch.tensor([1.0, 2.0, 4.0])[:, None]
    values = torch.tensor([[8.0, 16.0, 32.0], [800.0, 1600.0, 3200.0]])[..., None]
    return value_targets(rewards, values, rollout_of(continues, weights), 0.5, steps)[..., 0].tolist()


def test_targets_add_up_the_rewards_of_their_decisions_and_the_value_after_them():
    one = [1.0] * 3
    assert targets(one, one, 1) == [[1.0 + 4.0, 2.0 + 8.0, 4.0 + 16.0], [1.0 + 400.0, 2.0 + 800.0, 4.0 + 1600.0]]
    assert targets(one, one, 2) == [[1.0 + 1.0 + 4.0, 2.0 + 2.0 + 8.0], [2.0 + 400.0, 4.0 + 800.0]]
    assert targets(one, one, 3) == [[1.0 + 1.0 + 1.0 + 4.0], [3.0 + 400.0]]


def test_a_target_ends_where_a_rule_ends_the_match():
    assert targets([1.0, 0.0, 1.0], [1.0, 1.0, 0.0], 3) == [[2.0], [2.0]]
    assert targets([0.0, 1.0, 1.0], [1.0, 0.0, 1.0], 3) == [[1.0], [1.0]]


def test_a_target_takes_the_value_of_the_last_position_of_a_match_that_was_cut_for_any_number_of_decisions():
    assert targets([1.0] * 3, [1.0, 0.0, 1.0], 3) == [[1.0 + 4.0], [401.0]]
    assert targets([1.0] * 3, [1.0, 1.0, 0.0], 3) == [[1.0 + 1.0 + 4.0], [402.0]]
