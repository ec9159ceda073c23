"""MAPPO: its losses by hand, what a rollout says of ends of matches, the loop, resuming, players and refusals."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import OF_MAPPO, assert_same_run, whole_and_resumed
from torch import nn

import palaestra
from palaestra import registry
from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra_baselines import mappo
from palaestra_baselines.common.rollout import Position, Sequences, draw_actions
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.mappo import (
    ValueScale,
    logits_of,
    masked_log_softmax,
    mean_entropy,
    policy_loss,
    read_rollout,
    sequences,
    standardised,
    value_loss,
)

pytestmark = pytest.mark.check

TAG, BATTLE = "palaestra/TeamTag-2v2-v0", "palaestra/Skirmish-3m-v0"
SMALL: dict[str, Any] = {
    "env_id": TAG,
    "team": "blue",
    "opponent": "default:0.5",
    **OF_MAPPO,
}
KINDS: list[dict[str, Any]] = [
    {},
    {"recurrent": True},
    {"env_id": BATTLE, "team": "red", "opponent": "builtin", "network": "entity"},
    {"env_id": BATTLE, "team": "red", "opponent": "builtin", "network": "entity", "recurrent": True},
]
ALL = torch.ones(1)


# -- the loss ----------------------------------------------------------------------------------------------------------


def test_illegal_actions_have_no_probability_and_the_others_are_a_softmax():
    legal = torch.tensor([[True, False, True], [False, True, False]])
    probabilities = masked_log_softmax(torch.tensor([[0.0, 9.0, math.log(3.0)], [0.0, -5.0, 0.0]]), legal).exp()
    torch.testing.assert_close(probabilities, torch.tensor([[0.25, 0.0, 0.75], [0.0, 1.0, 0.0]]))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "moves"),
    [
        (1.1, 2.0, -2.2, True),
        (1.5, 2.0, -2.4, False),  # likelier already than the clipping rewards
        (0.5, 2.0, -1.0, True),
        (0.9, -2.0, 1.8, True),
        (0.5, -2.0, 1.6, False),  # less likely already than the clipping rewards
        (1.5, -2.0, 3.0, True),
    ],
)
def test_the_surrogate_is_clipped_on_the_side_that_pays(ratio: float, advantage: float, loss: float, moves: bool):
    new = torch.tensor([math.log(ratio) - 1.0], requires_grad=True)
    found = policy_loss(new, torch.tensor([-1.0]), torch.tensor([advantage]), ALL, 0.2)
    assert found.item() == pytest.approx(loss)
    found.backward()
    assert new.grad is not None
    assert new.grad.item() == pytest.approx(-ratio * advantage if moves else 0.0)


def test_agents_that_did_not_act_count_neither_in_the_loss_nor_in_the_number():
    new, old = torch.zeros(2, 3), torch.zeros(2, 3)
    new[0, 1] = new[1, 2] = 7.0
    acts = torch.tensor([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    assert policy_loss(new, old, torch.tensor([[2.0], [4.0]]), acts, 0.2).item() == pytest.approx(-3.0)


def test_the_entropy_is_that_of_the_legal_actions_of_agents_that_acted():
    legal = torch.tensor([[[True] * 4, [True] * 4, [True, True, False, False]]])
    logs = masked_log_softmax(torch.zeros(1, 3, 4), legal)
    assert mean_entropy(logs, torch.tensor([[1.0, 0.0, 1.0]])).item() == pytest.approx(math.log(8.0) / 2.0)
    logits = torch.tensor([[[2.0, 0.0]]], requires_grad=True)
    mean_entropy(masked_log_softmax(logits, torch.ones(1, 1, 2, dtype=torch.bool)), torch.ones(1, 1)).backward()
    assert logits.grad is not None
    assert logits.grad[0, 0, 0] < 0.0 < logits.grad[0, 0, 1]  # more entropy: towards the other action


@pytest.mark.parametrize(
    ("new", "old", "target", "loss"),
    [
        (1.1, 1.0, 2.0, 0.5 * 0.9**2),
        (1.5, 1.0, 2.0, 0.5 * 0.8**2),  # a change beyond the clipping does not count
        (0.5, 1.0, 2.0, 0.5 * 1.5**2),  # unless it made the value worse
        (0.0, 0.0, 30.0, 10.0 * (30.0 - 5.0)),  # far away the loss is linear
    ],
)
def test_a_value_pays_the_larger_of_its_error_and_that_of_its_clipped_change(
    new: float, old: float, target: float, loss: float
):
    found = value_loss(torch.tensor([new]), torch.tensor([old]), torch.tensor([target]), ALL, 0.2)
    assert found.item() == pytest.approx(loss)


def test_values_of_rows_that_start_the_next_match_do_not_count():
    new, targets = torch.tensor([[1.0, 50.0]]), torch.tensor([[2.0, 0.0]])
    assert value_loss(new, new, targets, torch.tensor([[1.0, 0.0]]), 0.2).item() == pytest.approx(0.5)


def test_advantages_are_scaled_over_the_agents_that_acted():
    acts = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = standardised(torch.tensor([[1.0], [5.0], [1000.0]]), acts)
    assert found[:2, 0].tolist() == pytest.approx([-1.0 / 3.0**0.5, 3.0**0.5])


# -- the rollout -------------------------------------------------------------------------------------------------------


class Uniform(nn.Module):
    """A policy without weights for two actions."""

    memory_size = 0

    def evaluate(self, observations: dict[str, torch.Tensor], memory: None = None) -> tuple[torch.Tensor, None]:
        return torch.zeros(*observations["all"].shape[:-1], 2), None


class ReadsState(nn.Module):
    """A critic that says the number which the state is."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states[..., 0]


def short_rollout(continues: list[float], weights: list[float]) -> Sequences:
    """Decisions of one lane with two agents, of which the second is never asked, and rewards of two teams."""
    count = len(continues)
    shape = (count + 1, 1, 2)
    asked = torch.tensor([True, False]).expand(shape)
    states = torch.tensor([10.0, 20.0, 40.0, 80.0])[: count + 1, None, None]
    legal = torch.ones(*shape, 2, dtype=torch.bool)
    observations = {"all": torch.zeros(*shape, 3)}
    position = Position(observations, legal, asked, asked, torch.zeros(count + 1, 1, dtype=torch.bool), states)
    rewards = torch.tensor([[1.0, -9.0], [2.0, -9.0], [4.0, -9.0]])[:count, None]
    actions = torch.zeros(count, 1, 2, dtype=torch.int64)
    flags = [torch.tensor(x)[:, None] for x in (continues, weights)]
    return Sequences(position, torch.ones(*shape, 1), actions, rewards, *flags)


def targets_of(continues: list[float], weights: list[float]) -> tuple[list[float], mappo.Samples]:
    """What the critic is to learn, scaling undone, and all samples."""
    scale = ValueScale(0.0)
    args = mappo.Args(gamma=0.5, gae_lambda=0.5)
    samples = read_rollout(short_rollout(continues, weights), Uniform(), ReadsState(), scale, args, 0)
    return scale.restored(samples.targets).flatten().tolist(), samples


def test_a_truncated_match_is_worth_its_last_position_and_a_terminated_one_its_reward():
    truncated, samples = targets_of([1.0, 1.0, 1.0], [1.0, 0.0, 1.0])
    assert truncated[::2] == pytest.approx([1.0 + 0.5 * 20.0, 4.0 + 0.5 * 80.0])
    assert samples.weights[:, 0].tolist() == [1.0, 0.0, 1.0]
    terminated, _ = targets_of([0.0, 1.0, 1.0], [1.0, 0.0, 1.0])
    assert terminated[::2] == pytest.approx([1.0, 4.0 + 0.5 * 80.0])


def test_targets_and_advantages_are_those_of_the_team_that_learns():
    targets, samples = targets_of([1.0, 1.0, 1.0], [1.0, 1.0, 1.0])
    advantages = [1.0 + 0.25 * 3.0, 2.0 + 0.25 * 4.0, 4.0]
    assert targets == pytest.approx([v + a for v, a in zip((10.0, 20.0, 40.0), advantages, strict=True)])
    wanted = (np.array(advantages) - np.mean(advantages)) / np.std(advantages)
    assert samples.advantages.flatten().tolist() == pytest.approx(wanted.tolist(), abs=1e-5)
    assert samples.values.flatten().tolist() == [10.0, 20.0, 40.0]


def test_agents_act_where_they_are_asked_in_a_running_match_and_their_old_probability_is_kept():
    _, samples = targets_of([1.0, 1.0], [1.0, 0.0])
    assert samples.acts[:, 0].tolist() == [[1.0, 0.0], [0.0, 0.0]]
    torch.testing.assert_close(samples.old, torch.full((2, 1, 2), -math.log(2.0)))


def test_an_epoch_holds_each_decision_once_and_sequences_are_successive():
    rows, lanes = sequences(torch.randperm(12), length=2, lanes=4)
    assert sorted(zip(rows.flatten().tolist(), lanes.flatten().tolist(), strict=True)) == [
        (row, lane) for row in range(6) for lane in range(4)
    ]
    assert (rows[1] == rows[0] + 1).all()
    assert (rows[0] % 2 == 0).all()
    assert (lanes[0] == lanes[1]).all()


def test_drawn_actions_are_legal_and_as_probable_as_the_policy_says():
    logits = np.broadcast_to(np.log([1.0, 3.0, 50.0]), (4000, 1, 3))
    legal = np.broadcast_to(np.array([True, True, False]), logits.shape)
    actions = draw_actions(np.random.default_rng(0), legal, logits)
    assert set(actions.flatten()) == {0, 1}
    assert actions.mean() == pytest.approx(0.75, abs=0.02)


def test_unrolled_sequences_give_the_policy_that_played(tmp_path: Path):
    args = mappo.Args(**{**SMALL, **KINDS[3], "rollout": 64, "chunk": 16}, directory=tmp_path)
    with RunFolder(args, "mappo") as folder:
        training = mappo.RolloutTraining(args, folder, None, args.rollout, with_state=True, memory_size=4)
    actor, critic = mappo.make_networks(args, training)
    for _ in range(args.rollout):
        training.collector.play(*mappo.decide(training, actor))
    rollout = training.replay.last(args.rollout)
    samples = read_rollout(rollout, actor, critic, ValueScale(0.9), args, 0)
    with torch.no_grad():
        played, _ = actor.evaluate(samples.observations, samples.memory)
        chosen = masked_log_softmax(played, samples.legal).gather(-1, samples.actions[..., None])[..., 0]
    assert samples.weights.min() == 0.0  # a match ended within a sequence
    torch.testing.assert_close(samples.old * samples.acts, chosen * samples.acts)
    whole = logits_of(actor, samples)
    torch.testing.assert_close(
        masked_log_softmax(whole, samples.legal).exp(), masked_log_softmax(played, samples.legal).exp()
    )


# -- the loop ----------------------------------------------------------------------------------------------------------


def spied_training(folder: Path, **given: Any) -> tuple[dict[str, list[Any]], Any]:
    """Trains by small arguments and notes what the loop hands to its parts and gets from them."""
    seen: dict[str, list[Any]] = {}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("gradient_step", "policy_loss", "mean_entropy", "value_loss", "read_rollout", "play_at_random"):
            inner: Callable[..., Any] = getattr(mappo, name)
            calls = seen[name] = []

            def spied(*values: Any, inner: Callable[..., Any] = inner, calls: list[Any] = calls) -> Any:
                calls.append((values, inner(*values)))
                return calls[-1][1]

            patch.setattr(mappo, name, spied)
        report = mappo.train(mappo.Args(**{**SMALL, **given}, directory=folder))
    return seen, report


def test_rates_and_the_coefficient_of_the_entropy_fall_linearly(tmp_path: Path):
    seen, report = spied_training(tmp_path, max_gradient_norm=0.3, entropy=(0.5, 0.1))
    rollouts = len(seen["read_rollout"])
    assert report.updates == len(seen["policy_loss"]) == rollouts * 2 * 3
    assert {values[3] for values, _ in seen["gradient_step"]} == {0.3}
    for part in (0, 1):
        rates = [values[2] for values, _ in seen["gradient_step"]][part::2]
        assert rates[0] == pytest.approx(1e-3 - 9e-4 * 128 / 320, rel=0.03)
        assert rates[-1] == pytest.approx(1e-4)
        assert len(set(rates)) == rollouts
    losses = [values[1].item() for values, _ in seen["gradient_step"]][::2]
    parts = [
        (loss.item(), entropy.item())
        for (_, loss), (_, entropy) in zip(seen["policy_loss"], seen["mean_entropy"], strict=True)
    ]
    coefficients = [(policy - loss) / entropy for loss, (policy, entropy) in zip(losses, parts, strict=True)]
    assert coefficients[0] == pytest.approx(0.5 - 0.4 * 128 / 320, rel=0.03)
    assert coefficients[-1] == pytest.approx(0.1, rel=0.01)
    (_, value), row = seen["value_loss"][-1], report.log[-1]
    assert [row[name] for name in ("loss", "value_loss", "entropy")] == [parts[-1][0], value.item(), parts[-1][1]]


def test_the_first_rollout_is_random_scales_the_inputs_and_is_not_learnt_from(tmp_path: Path):
    seen, report = spied_training(tmp_path, total_steps=64)
    (((_, _, actor, critic), _),) = seen["play_at_random"]
    assert report.updates == 0
    assert not seen["read_rollout"]
    for network in (critic, *actor.networks.values()):
        assert (network.mean.abs() > 0.01).any()
        assert (network.scale != 1.0).all()


@pytest.mark.parametrize("kind", KINDS, ids=["flat", "flat-recurrent", "entity", "entity-recurrent"])
def test_an_interrupted_run_of_mappo_resumes_bitwise_equal_and_its_file_plays(kind: dict[str, Any], tmp_path: Path):
    settings = {**SMALL, **kind}
    whole, resumed = whole_and_resumed(mappo, mappo.Args(**settings), tmp_path)
    assert_same_run(whole, resumed)
    player = mappo.load_policy(whole.weights, registry.make_game(settings["env_id"])[0], settings["team"])
    other = {"red": "blue", "blue": "red"}[settings["team"]]
    sim = palaestra.make_batch(settings["env_id"], 2, opponents={settings["team"]: player, other: settings["opponent"]})
    sim.reset(seed=0)
    allowed: Any = True
    for _ in range(3):
        legal = sim.team_view(settings["team"], "legal")
        allowed = True if legal is None else legal.copy() == 1
        sim.step()
    told = player.policy_outputs["probability"]  # type: ignore[attr-defined]
    np.testing.assert_allclose(told.sum(2), 1.0, atol=1e-6)
    assert ((told > 0.0) == allowed).all()


@pytest.mark.learning
def test_mappo_wins_95_of_100_battles_after_two_minutes(tmp_path: Path):
    args = mappo.Args(total_steps=200_000, evaluations=4, quiet=True, directory=tmp_path)
    report = mappo.train(args)
    assert report.cpu_s <= 120.0
    player = mappo.load_policy(report.weights, registry.make_game(args.env_id)[0], args.team)
    table = evaluate(args.env_id, player, args.opponent, matches=1024, swap=False)
    assert table.wins / table.matches >= 0.95


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"team": ""}, "--team says which team learns"),
        ({"rollout": 10, "recurrent": True}, "--rollout must be a multiple of --chunk, got 10 and 4"),
        ({"minibatches": 65}, "--minibatches 65 are more than the sequences of a rollout"),
        ({"minibatches": 17, "recurrent": True}, "--minibatches 17 are more than"),
        ({"clip": 1.5}, "--clip must be between 0 and 1"),
        ({"network": "entity"}, "TeamTag: 'player' observes 0 tables of units"),
    ],
    ids=str,
)
def test_arguments_that_cannot_be_are_refused_by_mappo(given: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(ValueError, match=message):
        mappo.train(mappo.Args(**{**SMALL, **given}, directory=tmp_path))


def test_a_policy_of_mappo_plays_its_own_game_alone_unless_it_reads_units(tmp_path: Path):
    flat = mappo.train(
        mappo.Args(**{**SMALL, **KINDS[2], "network": "flat", "total_steps": 64}, directory=tmp_path / "a")
    )
    entity = mappo.train(mappo.Args(**{**SMALL, **KINDS[2], "total_steps": 64}, directory=tmp_path / "b"))
    larger, _ = registry.make_game("palaestra/Skirmish-5m_vs_6m-v0")
    with pytest.raises(FileError, match="trained for another game"):
        mappo.load_policy(flat.weights, larger, "red")
    assert mappo.load_policy(entity.weights, larger, "red").memory_size == 0
