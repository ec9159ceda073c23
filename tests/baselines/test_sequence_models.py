"""Sequence models: transformers, world models with a context, and the recorded matches that they learn from."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.random_walks import walks

from palaestra_baselines import meta_dt
from palaestra_baselines.common.decision_transformers import (
    HISTORY,
    Decisions,
    DecisionTransformer,
    Design,
    WorldModel,
    imitation_loss,
)
from palaestra_baselines.common.offline_data import (
    TaskGroups,
    fit_scaling,
    gather_matches,
    largest_segments,
    make_learnable,
    target_of,
)
from palaestra_baselines.meta_dt import Args

SMALL = Design("reward", 3, "largest", prompt=3, steps=6, width=8, layers=2, heads=2, tokens=1)


@pytest.fixture(autouse=True)
def seeded():
    torch.set_num_threads(1)
    torch.manual_seed(0)


def random_rows(design: Design, count: int = 4, steps: int = 6) -> torch.Tensor:
    """Rows of decisions of two numbers each for states and actions."""
    return torch.randn(count, steps, 2 + 1 + 2 + 1 + design.context)


def transformer_of(**changes: Any) -> tuple[DecisionTransformer, Design]:
    design = dataclasses.replace(SMALL, **changes)
    return DecisionTransformer(2, 2, design.context, design), design


def decisions(*shape: int) -> Decisions:
    """Random decisions of two numbers each for states and actions."""
    return Decisions(torch.randn(*shape, 2), torch.randn(*shape, 2), torch.randn(*shape), torch.randn(*shape, 2))


# -- the transformer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("prompt", [0, 3])
def test_a_later_decision_changes_no_earlier_output_and_a_decision_does_not_see_its_own_action_or_reward(
    tokens: int, prompt: int
):
    network, design = transformer_of(tokens=tokens, prompt=prompt)
    rows, given, there = random_rows(design), random_rows(design, steps=prompt), torch.tensor([True, False] * 2)
    before = network(rows, given, there)
    for at in range(6):
        other = rows.clone()
        other[:, at + 1 :] += 1.0
        other[:, at, 3:6] += 1.0  # action and reward
        after = network(other, given, there)
        torch.testing.assert_close(after[:, : at + 1], before[:, : at + 1], rtol=0, atol=0)
        if at < 5:
            assert (after[:, at + 1 :] - before[:, at + 1 :]).abs().amax(-1).min() > 1e-5


@pytest.mark.parametrize("tokens", [1, 3])
@pytest.mark.parametrize("column", [0, 2, 3, 5, 6], ids=["state", "to go", "action", "reward", "context"])
def test_each_part_of_a_decision_is_read_by_the_next_one(tokens: int, column: int):
    network, design = transformer_of(tokens=tokens)
    rows, given, there = random_rows(design), random_rows(design, steps=3), torch.ones(4, dtype=torch.bool)
    other = rows.clone()
    other[:, 2, column] += 1.0
    assert (network(other, given, there) - network(rows, given, there))[:, 3].abs().amax(-1).min() > 1e-6


def test_a_prompt_that_is_not_there_changes_nothing_and_one_that_is_there_changes_all_decisions():
    network, design = transformer_of()
    rows, given = random_rows(design), random_rows(design, steps=3)
    there = torch.tensor([True, False, True, False])
    before, after = network(rows, given, there), network(rows, given + 1.0, there)
    torch.testing.assert_close(after[~there], before[~there], rtol=0, atol=0)
    assert (after - before)[there].abs().amax(-1).min() > 1e-6


def test_the_return_to_go_of_a_prompt_is_not_read_and_its_context_is():
    network, design = transformer_of()
    rows, given, there = random_rows(design), random_rows(design, steps=3), torch.ones(4, dtype=torch.bool)
    before = network(rows, given, there)
    other = given.clone()
    other[..., 2] += 1.0
    torch.testing.assert_close(network(rows, other, there), before, rtol=0, atol=0)
    other[..., -1] += 1.0
    assert not torch.equal(network(rows, other, there), before)


def test_the_loss_is_the_mean_squared_error_and_padding_counts_nothing():
    predicted, actions, weights = torch.randn(2, 3, 2), torch.randn(2, 3, 2), torch.tensor([[1.0, 1, 0], [1, 0, 0]])
    expected = ((predicted - actions) ** 2)[weights > 0].mean()
    assert imitation_loss(predicted, actions, weights).item() == pytest.approx(expected.item())
    actions[weights == 0] += 5.0
    assert imitation_loss(predicted, actions, weights).item() == pytest.approx(expected.item())


# -- the world model ---------------------------------------------------------------------------------------------------


def test_errors_are_squared_and_those_of_both_decoders_are_summed():
    now, z = decisions(5), torch.randn(5, 3)
    model = WorldModel(2, 2, 3, "both")
    given = torch.cat([now.states, now.actions, z], -1)
    reward = (model.reward(torch.cat([given, now.changes], -1))[:, 0] - now.rewards) ** 2
    state = ((model.state(given) - now.changes) ** 2).mean(-1)
    torch.testing.assert_close(model.errors(now, z), reward + state)
    for decoder, expected in (("reward", reward), ("state", state)):
        alone = WorldModel(2, 2, 3, decoder)  # type: ignore[arg-type]
        alone.load_state_dict({k: v for k, v in model.state_dict().items() if k in alone.state_dict()})
        torch.testing.assert_close(alone.errors(now, z), expected)


def test_a_context_reads_all_decisions_that_are_there_and_no_others():
    model, before = WorldModel(2, 2, 3, "reward"), decisions(1, HISTORY)
    there = torch.tensor([[False, False, True, True]])
    z = model.encode(before, there)
    for step in range(HISTORY):
        for part in ("states", "actions", "rewards"):
            changed = getattr(before, part).clone()
            changed[:, step] += 1.0
            moved = (model.encode(before._replace(**{part: changed}), there) - z).abs().max()
            assert (moved > 1e-6) == (step >= 2), (part, step)
    zeros = Decisions(*(torch.zeros_like(part) for part in before))
    assert not torch.equal(model.encode(zeros, ~there), model.encode(zeros, there)), "absent is not seen as zero"


def test_a_history_is_the_decisions_right_before_one():
    data = make_learnable(gather_matches(walks()), fit_scaling(gather_matches(walks())))
    before, there = data.histories(torch.tensor([1, 0]), torch.tensor([2, 7]))
    torch.testing.assert_close(before.actions[0, 2:], data.decisions.actions[1, :2])
    assert there.tolist() == [[False, False, True, True], [True] * 4]
    torch.testing.assert_close(before.rewards[1], data.decisions.rewards[0, 3:7])


@pytest.mark.check
def test_a_world_model_learns_better_with_a_context_than_without():
    matches = gather_matches(walks(each=20))
    data, errors = make_learnable(matches, fit_scaling(matches)), []
    for context in (3, 0):
        model = WorldModel(2, 2, context, "reward", width=32)
        args = Args(world_steps=150, world_batch=64, world_rate=1e-2)
        meta_dt.learn_world_model(model, data, args, np.random.default_rng(0))
        errors.append(meta_dt.predict(model, data)[1].mean())
    assert errors[0] < 0.6 * errors[1]


def test_predictions_of_all_decisions_are_those_of_each_and_0_behind_the_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(meta_dt, "PASS", 7)
    matches = gather_matches(walks())
    data, model = make_learnable(matches, fit_scaling(matches)), WorldModel(2, 2, 3, "reward")
    z, errors = meta_dt.predict(model, data)
    rows, at = torch.tensor([4]), torch.tensor([6])
    torch.testing.assert_close(z[4, 6], model.encode(*data.histories(rows, at))[0])
    torch.testing.assert_close(errors[4, 6], model.errors(data.decisions.at(rows, at), z[4:5, 6])[0])
    assert matches.lengths[2] == 7
    assert not errors[2, 7:].any()


# -- recorded matches --------------------------------------------------------------------------------------------------


def test_returns_to_go_are_the_rewards_of_a_decision_and_of_all_after_it():
    matches = gather_matches(walks())
    for number, episode in enumerate(walks()):
        sums = [episode.rewards[t:].sum() for t in range(len(episode.rewards))]
        np.testing.assert_allclose(matches.to_go[number, : len(sums)], sums, rtol=1e-4, atol=1e-5)
        assert not matches.to_go[number, len(sums) :].any()


def test_what_is_aimed_at_is_a_high_return_of_the_data():
    matches = gather_matches(walks())
    returns = [episode.rewards.sum() for episode in walks()]
    assert target_of(matches) == pytest.approx(np.percentile(returns, 95), abs=1e-5)


def test_episodes_that_do_not_fit_are_refused():
    made = walks()
    with pytest.raises(ValueError, match=r"episode 1 has observations \(9, 2\), actions \(7, 2\) and 8 rewards"):
        gather_matches([made[0], made[1]._replace(actions=made[1].actions[:-1])])
    with pytest.raises(ValueError, match="no episode is given"):
        gather_matches([])


def test_what_is_learnt_is_scaled_by_the_data_and_0_behind_the_end():
    matches = gather_matches(walks())
    data, inside = make_learnable(matches, fit_scaling(matches)), matches.weights > 0
    for values in (data.decisions.states, data.decisions.rewards, data.decisions.changes, data.to_go):
        kept = values[torch.from_numpy(inside)]
        torch.testing.assert_close(kept.mean(0), torch.zeros_like(kept[0]), atol=1e-5, rtol=0)
        torch.testing.assert_close(kept.std(0), torch.ones_like(kept[0]), atol=1e-5, rtol=0)
        assert not values[torch.from_numpy(~inside)].any()
    torch.testing.assert_close(data.decisions.actions, torch.from_numpy(matches.actions))


def test_the_segment_with_the_largest_sum_of_errors_is_chosen_within_its_match():
    errors = torch.tensor([[1.0, 0, 0, 9, 9, 1], [1, 2, 3, 0, 99, 99], [5, 0, 0, 0, 0, 0], [1, 1, 0, 9, 9, 9]])
    assert largest_segments(errors, np.array([6, 4, 6, 2]), 3).tolist() == [3, 0, 0, 0]


def test_prompts_are_drawn_from_all_other_matches_of_the_task():
    tasks, rng = np.array([4, 2, 4, 2, 4, 9]), np.random.default_rng(0)
    rows = np.repeat(np.arange(6), 50)
    drawn = TaskGroups(tasks).draw(rows, rng)
    assert {*zip(rows.tolist(), drawn.tolist(), strict=True)} == {
        *((0, 2), (0, 4), (2, 0), (2, 4), (4, 0), (4, 2), (1, 3), (3, 1)),
        (5, 5),  # there is no other
    }
    drawn = TaskGroups(tasks[:4], np.array([2, 4, 2])).draw(rows[:200], rng)
    assert {*zip(rows[:200].tolist(), drawn.tolist(), strict=True)} == {(0, 1), (2, 1), (1, 0), (1, 2), (3, 0), (3, 2)}
    with pytest.raises(ValueError, match="no match to draw from in task 4"):
        TaskGroups(tasks, np.array([2, 9]))
