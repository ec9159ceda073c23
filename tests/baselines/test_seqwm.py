"""SeqWM: its losses, what each gradient step moves, the ends of matches, training, resuming, and what it refuses."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import signal
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_run, evaluation_until, whole_and_resumed
from games import aim, copy_game
from games.point_plan import make_roster, make_sequences, random_model

from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra.game import Choice, Continuous, Field
from palaestra_baselines import seqwm
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.world_models import SIZES, TwoHot
from palaestra_baselines.seqwm import RHO, VALUE, Learner, actor_loss, decay, load_policy, model_loss

pytestmark = pytest.mark.check

COPY = "tests/Copy-v0"
TINY: dict[str, Any] = {
    **{"env_id": COPY, "total_steps": 256, "lanes": 8, "warmup_steps": 64, "batch_size": 8, "replay_size": 160},
    **{"latent": 8, "encoder": (8,), "models": 8, "hidden": (8,), "bins": 11, "samples": 8, "actor_samples": 2},
    **{"elites": 3, "evaluations": 2, "matches": 4, "horizon": 2, "decisions_per_update": 16, "quiet": True},
    "value_steps": 3,
}
IN_ORDER = torch.arange(2)[:, None]


def random_sequences(
    length: int = 3, rows: int = 4, agents: int = 2, seed: int = 0, continues: Any = None, weights: Any = None
) -> Any:
    """Sequences of random numbers, of agents that see three numbers and give one."""
    draw = torch.Generator().manual_seed(seed)
    seen = torch.randn(length + 1, rows, agents, 3, generator=draw)
    actions = torch.rand(length, rows, agents, 1, generator=draw) * 2.0 - 1.0
    one = torch.ones(length, rows)
    return make_sequences(
        seen,
        actions,
        torch.randn(length, rows, generator=draw),
        one if continues is None else continues,
        one if weights is None else weights,
    )


def loss_of(model: Any, target: Any, batch: Any, seed: int = 0) -> Any:
    """The loss of a model, whose agents act in order."""
    length, rows = batch.weights.shape
    noise = torch.randn(len(model.counts), length * rows, 1, generator=torch.Generator().manual_seed(seed))
    masks = model.masks(torch.arange(len(model.counts))[:, None])
    return model_loss(model, target, batch, batch.rewards[..., 0], masks, noise)


def networks_with_gradients(model: Any) -> set[str]:
    """Networks any of whose parameters have a gradient beside 0."""
    return {name.split(".")[0] for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}


# -- the losses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["seq", "decentralised"])
def test_targets_of_values_end_at_a_rule_and_go_on_by_the_lesser_target_value_after_a_truncation(mode: Any):
    model, groups = random_model(make_roster(), mode=mode), 1 if mode == "seq" else 2
    categories: TwoHot = model.two_hot
    later = torch.stack([torch.linspace(0.5, 3.0, 6), torch.linspace(3.0, 0.5, 6)])  # [2, L * B]
    seen = list[Any]()

    def target(latents: torch.Tensor, actions: torch.Tensor) -> torch.Tensor:
        seen.extend((latents, actions))
        return categories.encode(later).clamp(min=1e-30).log()[:, None].expand(2, groups, -1, -1)

    with torch.no_grad():
        model.critics.rest.last.weight.zero_()
        bias = model.critics.rest.last.bias  # logits of both critics, the same in all positions
    chances = bias.detach().log_softmax(-1).reshape(2, groups, -1)
    continues, weights = [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]], [[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    batch = random_sequences(2, 3, continues=continues, weights=weights)
    _, losses, _ = loss_of(model, target, batch)
    after = later.amin(0).reshape(2, 3)
    y = batch.rewards[..., 0] + 0.9 * torch.tensor(continues) * after
    each = -(categories.encode(y)[..., None, None, :] * chances).sum(-1).mean(-2).sum(-1)  # [L, B]
    shares = torch.tensor([[1.0, 1.0, 0.0], [RHO, 0.0, 0.0]])  # the third row began with no decision
    torch.testing.assert_close(losses["value"], (shares * each).sum() / 3 / 2)
    latents = model.encode(model.read(batch.positions.observations)[:, 3:])
    torch.testing.assert_close(seen[0], latents)  # of the positions after the decisions
    noise = torch.randn(2, 6, 1, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(seen[1], model.act(latents, model.masks(IN_ORDER), noise)[0])


def test_rewards_are_learnt_by_the_decision_that_earned_them_and_losses_add_up_by_their_weights():
    model = random_model(make_roster(), horizon=3)
    with torch.no_grad():
        model.transitions.reward.weight.zero_()
    chances = model.transitions.reward.bias.detach().log_softmax(-1)[:, 0]  # [A, bins]
    batch = random_sequences()
    loss, losses, _ = loss_of(model, model.critics, batch)
    each = -(model.two_hot.encode(batch.rewards[..., 0])[..., None, :] * chances).sum((-1, -2))
    shares = RHO ** torch.arange(3.0)[:, None]
    torch.testing.assert_close(losses["reward"], (shares * each).mean(1).sum() / 3)
    parts = 20.0 * losses["consistency"] + 0.1 * losses["reward"] + VALUE * losses["value"]
    torch.testing.assert_close(loss, parts)
    assert VALUE == 0.1


def test_the_rollout_is_compared_with_encodings_of_what_followed():
    model, batch = random_model(make_roster()), random_sequences(2)
    _, losses, rollout = loss_of(model, model.critics, batch)
    masks, seen = model.masks(IN_ORDER), batch.positions.observations["walker"]
    latent, expected = model.encode(seen[0].transpose(0, 1)), torch.zeros(())
    for t in range(2):
        torch.testing.assert_close(rollout[:, t], latent)
        latent, _ = model.step(latent, batch.actions[t].transpose(0, 1), masks)
        missed = (latent - model.encode(seen[t + 1].transpose(0, 1))) ** 2
        expected = expected + RHO**t * missed.mean(-1).sum(0).mean()
    torch.testing.assert_close(losses["consistency"], expected / 2)
    assert not rollout.requires_grad


def test_decisions_after_the_horizon_count_in_targets_of_values_alone():
    model, continues = random_model(make_roster()), torch.ones(4, 4)
    continues[3, :2] = 0.0
    batch = random_sequences(4, continues=continues)
    later = torch.linspace(-3.0, 3.0, 16)
    logits = model.two_hot.encode(later).clamp(min=1e-30).log().expand(2, 1, -1, -1)
    _, losses, rollout = loss_of(model, lambda *_: logits, batch)
    r, v = batch.rewards[..., 0], later.reshape(4, 4)
    v = torch.cat([v[:3], v[3:] * batch.continues[3]])
    y = torch.stack([r[t] + 0.9 * r[t + 1] + 0.81 * r[t + 2] + 0.729 * v[t + 2] for t in range(2)])
    critics = model.critics(rollout[:, :2].flatten(1, 2), batch.actions[:2].permute(2, 0, 1, 3).flatten(1, 2))
    each = model.two_hot.loss(critics[:, 0], y.flatten()).mean(0).reshape(2, 4).mean(1)
    torch.testing.assert_close(losses["value"], (each[0] + RHO * each[1]) / 2)
    assert rollout.shape == (2, 3, 4, 16)
    cut = make_sequences(
        batch.positions.observations["walker"][:3], batch.actions[:2], r[:2], torch.ones(2, 4), torch.ones(2, 4)
    )
    _, short, _ = loss_of(model, model.critics, cut)
    for name in ("consistency", "reward"):
        torch.testing.assert_close(losses[name], short[name])


def test_what_followed_and_targets_give_no_gradient():
    model = random_model(make_roster())
    target, batch = random_model(make_roster(), 1).critics, random_sequences(2)
    seen = batch.positions.observations["walker"].requires_grad_()
    loss, losses, _ = loss_of(model, target, batch)
    losses["consistency"].backward(retain_graph=True)
    assert networks_with_gradients(model) == {"encoder", "transitions"}
    assert seen.grad is not None
    assert seen.grad[0].all()
    assert not seen.grad[1:].any()  # what followed is encoded without a gradient
    loss.backward()
    assert networks_with_gradients(model) == {"encoder", "transitions", "critics"}
    assert all(p.grad is None for p in target.parameters())


def test_the_loss_of_the_actors_weighs_values_by_their_range_and_moves_actors_alone():
    model, draw = random_model(make_roster()), torch.Generator().manual_seed(2)
    model.value_range.fill_(4.0)
    model.critics.requires_grad_(False)
    latents, noise = torch.rand(2, 6, 16, generator=draw), torch.randn(2, 6, 1, generator=draw)
    weights = torch.tensor([1.0, 0.5, 0.0, 1.0, 0.25, 1.0])
    masks = model.masks(IN_ORDER)
    loss, values = actor_loss(model, latents, weights, masks, noise, 0.3)
    actions, logs = model.act(latents, masks, noise)
    assert logs is not None
    expected = model.values(latents, actions).mean(0).sum(0)
    torch.testing.assert_close(values[0], expected.detach())
    torch.testing.assert_close(loss, (weights * (0.3 * logs.sum(0) - expected / 4.0)).mean())
    loss.backward()
    assert networks_with_gradients(model) == {"actor"}


@pytest.mark.parametrize("mode", ["seq", "decentralised"])
def test_each_optimizer_moves_its_own_networks_and_the_target_that_plays_follows_by_its_share(
    mode: Any, monkeypatch: pytest.MonkeyPatch
):
    args = seqwm.Args(**{**TINY, "mode": mode, "tau": 0.25, "learning_rate": (1e-2, 1e-2)})
    learner = Learner(args, Roster(copy_game.game(), ["team"], numbers=True))
    learner.model.load_state_dict(random_model(learner.model.roster, 3, **design_of(args)).state_dict())
    model, moved, rates = learner.model, list[Any](), list[Any]()
    step = seqwm.gradient_step

    def watched(optimizer: Any, *given: Any) -> float:
        before = {name: p.detach().clone() for name, p in model.named_parameters()}
        norm = step(optimizer, *given)
        moved.append({n.split(".")[0] for n, p in model.named_parameters() if not torch.equal(p, before[n])})
        rates.append([group["lr"] for group in optimizer.param_groups])
        return norm

    monkeypatch.setattr(seqwm, "gradient_step", watched)
    before = [p.clone() for p in learner.target.parameters()]
    losses = learner.update(copy_sequences(), 0, 1e-2, np.random.default_rng(0))
    assert moved == [{"encoder", "transitions", "critics"}, {"actor"}]
    assert rates == [[pytest.approx(0.3e-2), 1e-2], [1e-2]]
    for old, new, online in zip(before, learner.target.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(new, old + 0.25 * (online - old))
    assert all(p.requires_grad for p in model.critics.parameters())
    assert len(losses) == len(seqwm.PlanTraining.LOSSES)
    assert model.value_range.item() == learner.target.value_range.item() > 0.05
    for name, array in learner.arrays().items():
        np.testing.assert_array_equal(array, learner.target.state_dict()[name].numpy())


def test_a_step_learns_scaled_rewards_in_the_order_of_each_sequence_and_the_range_of_values_within_matches(
    monkeypatch: pytest.MonkeyPatch,
):
    args, ended, ranges = seqwm.Args(**{**TINY, "mode": "random", "reward_scale": 4.0}), torch.ones(3, 4), []
    ended[0, :3] = 0.0
    asked: list[Any] = []
    for name in ("model_loss", "actor_loss"):
        loss = getattr(seqwm, name)
        monkeypatch.setattr(seqwm, name, lambda *given, loss=loss: asked.append(given) or loss(*given))
    for actions in (0.0, 1.0):  # of the decisions of the next match
        learner = Learner(args, Roster(copy_game.game(), ["team"], numbers=True))
        learner.model.load_state_dict(random_model(learner.model.roster, 3, **design_of(args)).state_dict())
        batch = copy_sequences(ended)
        batch.actions[1:, :3] = actions
        learner.update(batch, 0, 1e-2, np.random.default_rng(0))
        ranges.append(learner.model.value_range.item())
        (_, _, _, rewards, masks, _), (_, _, weights, repeated, _, entropy) = asked[-2:]
        torch.testing.assert_close(rewards, 4.0 * batch.rewards[..., 0])
        assert {tuple(row.tolist()) for row in masks.models.flatten(0, 1).T} == {(0, 0, 1, 0), (0, 1, 0, 0)}
        assert torch.equal(repeated.actors, torch.cat([masks.actors] * 3, -1))
        assert torch.equal(weights, decay(batch, 2).flatten())
        assert entropy == args.entropy
    assert ranges[0] == ranges[1] > 0.05


def design_of(args: seqwm.Args) -> dict[str, Any]:
    """The numbers of its design."""
    return dataclasses.asdict(args.design)


def copy_sequences(weights: Any = None, seed: int = 0) -> Any:
    """Sequences of Copy: each agent sees one number."""
    draw = torch.Generator().manual_seed(seed)
    seen, actions = torch.randn(4, 4, 2, 1, generator=draw), torch.rand(3, 4, 2, 1, generator=draw)
    ones = torch.ones(3, 4)
    return make_sequences(seen, actions, torch.randn(3, 4, generator=draw), ones, ones if weights is None else weights)


# -- ends of matches ---------------------------------------------------------------------------------------------------


def test_positions_weigh_less_and_less_and_nothing_from_the_end_of_a_match_on():
    batch = random_sequences(4, 3, weights=[[1, 1, 0], [1, 1, 1], [1, 0, 1], [1, 1, 1]])
    expected = [[1.0, 1.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.0, 0.0], [0.125, 0.0, 0.0], [0.0625, 0.0, 0.0]]
    assert decay(batch, 4).tolist() == expected


def test_what_happens_after_the_end_of_a_match_changes_neither_losses_nor_gradients():
    ended = [[1.0] * 4, [0.0] * 4, [1.0] * 4]  # the second row is the last position of the first match
    found = []
    for seed in (1, 2):
        model, batch = random_model(make_roster(), horizon=3), random_sequences(weights=ended)
        other = random_sequences(seed=seed)
        seen = batch.positions.observations["walker"]
        seen[2:] = other.positions.observations["walker"][2:]
        batch.rewards[1:], batch.actions[1:], batch.continues[1:] = other.rewards[1:], other.actions[1:], seed - 1.0
        loss, _, latents = loss_of(model, model.critics, batch)
        loss.backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        noise = torch.randn(2, 16, 1, generator=torch.Generator().manual_seed(0))
        weights, masks = decay(batch, 3).flatten(), model.masks(IN_ORDER)
        second, _ = actor_loss(model, latents.flatten(1, 2), weights, masks, noise, 1e-3)
        found.append((loss, second, gradients))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    for name, gradient in found[0][2].items():
        assert torch.equal(gradient, found[1][2][name]), name


def test_a_lane_that_starts_a_match_plans_from_zero_and_others_from_the_plan_before(tmp_path: Path):
    args = seqwm.Args(**{**TINY, "team": "team", "warmup_steps": 24, "value_steps": 1}, directory=tmp_path)
    with RunFolder(args, "seqwm") as folder:
        training = seqwm.PlanTraining(args, folder, None, 20, memory_size=2)
        learner = Learner(args, training.roster)
        model = random_model(training.roster, 3, **design_of(args))
        starts, kept = 0, 0
        for _ in range(24):
            was_random = training.collector.steps < args.warmup_steps
            training.play(model)
            position = training.collector.position
            memory = position.memory.reshape(8, 2, 2)
            assert not memory[position.first].any()
            assert not memory[..., 1].any()
            starts += int(position.first.sum())
            if was_random:
                assert not memory.any()
            else:
                assert memory[~position.first, :, 0].all()
                kept += int((~position.first).sum())
        assert starts == 16
        assert kept > 100
    assert learner.model.value_range.item() == pytest.approx(0.05)


def test_the_planner_begins_with_what_the_collector_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    args = seqwm.Args(**{**TINY, "team": "team", "warmup_steps": 24, "value_steps": 1}, directory=tmp_path)
    given, found = list[Any](), list[Any]()
    decide = seqwm.decide

    def watched(model: Any, observations: Any, before: torch.Tensor, normals: Any, explore: bool) -> Any:
        assert explore
        given.append(before.clone())
        plan = decide(model, observations, before, normals, explore)
        found.append(plan.following)
        return plan

    monkeypatch.setattr(seqwm, "decide", watched)
    with RunFolder(args, "seqwm") as folder:
        training = seqwm.PlanTraining(args, folder, None, 20, memory_size=2)
        model = random_model(training.roster, 3, **design_of(args))
        while len(given) < 4:
            training.play(model)
    assert not given[0].any()
    for before, following in zip(given[1:], found[:-1], strict=True):
        assert torch.equal(before, following)


# -- known dynamics ----------------------------------------------------------------------------------------------------


def test_dynamics_and_reward_of_a_point_mass_are_learnt():
    torch.manual_seed(0)
    rng, roster = np.random.default_rng(0), make_roster(1, 2, 2)
    learner = Learner(seqwm.Args(horizon=1, value_steps=1), roster)
    position = rng.uniform(-1.0, 1.0, (4096, 2))
    velocity = rng.uniform(-1.0, 1.0, (4096, 2))
    after = position + 0.2 * velocity
    seen, actions, rewards = (
        torch.from_numpy(x).float()
        for x in (np.stack([position, after]), velocity[None], -(after**2).sum(-1)[None] / 4.0)
    )
    first, losses = 0.0, dict[str, torch.Tensor]()
    for step in range(400):
        rows = torch.from_numpy(rng.integers(4096, size=128))
        one = torch.ones(1, 128)
        batch = make_sequences(seen[:, rows, None], actions[:, rows, None], rewards[:, rows], one, one)
        noise = torch.zeros(1, 128, 2)
        masks = learner.model.masks(torch.zeros(1, 1, dtype=torch.long))
        loss, losses, _ = model_loss(learner.model, learner.target.critics, batch, batch.rewards[..., 0], masks, noise)
        seqwm.gradient_step(learner.optimizers[0], loss, 1e-2 * (1.0 - step / 400), 20.0)
        first = first or losses["consistency"].item()
    assert losses["consistency"].item() < 0.1 * first
    model = learner.model
    with torch.no_grad():
        latents = model.encode(model.read({"walker": seen[0, :, None]}))
        following, logits = model.step(latents, actions[0][None], model.masks(torch.zeros(1, 1, dtype=torch.long)))
        target = model.encode(model.read({"walker": seen[1, :, None]}))
        assert (model.two_hot.decode(logits)[0] - rewards[0]).abs().mean() < 0.02 < 0.2 * rewards.std()
        # latents are told apart: what follows is nearer to the right one than to another
        missed, other = ((following - x).square().mean() for x in (target, target.roll(1, 1)))
    assert missed < 0.1 * other


# -- training ----------------------------------------------------------------------------------------------------------


def test_the_bounds_of_copy_are_exact_and_its_matches_are_truncated(rules: Any):
    cells = 400  # a number in the middle of each of equal cells: the mean over them is the expectation
    sim = rules(copy_game.game(), cells)
    sim.reset(seed=0)
    goals = (np.arange(cells) + 0.5) / cells * 2.0 - 1.0
    means = {}
    for second in ("goal", 0.0, 0.5, -0.25):
        sim.states["g"] = goals
        sim.actions[:, 0, 0] = goals
        sim.actions[:, 1, 0] = goals if second == "goal" else second
        sim.step()
        means[second] = sim.team_rewards("team").mean()
    assert means["goal"] == pytest.approx(copy_game.BEST, abs=1e-12)
    assert means[0.0] == pytest.approx(copy_game.BLIND, abs=1e-12)
    assert means[0.5] == pytest.approx(1.0 - 0.25 * (1.0 + 0.5**2), abs=1e-12)
    assert max(means[0.5], means[-0.25]) < copy_game.BLIND
    assert not sim.observations[:, 1].any()
    for _ in range(copy_game.DECISIONS - 4):
        assert not sim.truncated.any()
        sim.step()
    assert sim.truncated.all()
    assert not sim.terminated.any()


def test_agents_that_plan_one_after_another_learn_to_pass_on_what_the_first_alone_sees(tmp_path: Path):
    args = seqwm.Args(
        **{"env_id": COPY, "horizon": 1, "gamma": 0.5, "deviation": 2.0, "total_steps": 4_000, "evaluations": 1},
        **{"learning_rate": (1e-3, 1e-3), "temperature": 0.5, "entropy": 1e-4, "value_steps": 1},
        **{"decisions_per_update": 8, "matches": 8, "quiet": True},
        directory=tmp_path,
    )
    report = seqwm.train(args)
    assert report.updates == 500
    player = load_policy(report.weights, copy_game.game(), "team")
    table = evaluate(COPY, player, matches=128, seed=2**30, num_envs=128)
    assert table.mean_return / copy_game.DECISIONS > 0.85


def test_sequences_have_all_decisions_of_targets_and_inputs_are_scaled_by_the_first_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    found, update = list[Any](), Learner.update

    def watched(learner: Learner, batch: Any, *given: Any) -> Any:
        found.append((batch.weights.shape, learner.model.mean[:, 0, 0].tolist(), learner.target.mean[:, 0, 0].tolist()))
        return update(learner, batch, *given)

    monkeypatch.setattr(Learner, "update", watched)
    report = seqwm.train(seqwm.Args(**{**TINY, "value_steps": 4}, directory=tmp_path), lambda _: {})
    assert {shape for shape, _, _ in found} == {(5, 8)}
    assert found[0][1] == found[0][2] == found[-1][1]  # scaled once
    assert 0.0 < abs(found[0][1][0]) < 0.5
    assert found[0][1][1] == 0.0
    assert len(found) == report.updates == 256 // 16


KINDS: dict[str, dict[str, Any]] = {
    "seq": {},
    "random": {"mode": "random", "plan": False},
    "decentralised": {"mode": "decentralised", "env_id": "tests/Aim-v0", "team": "team"},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_an_interrupted_run_resumes_bitwise_equal(kind: dict[str, Any], tmp_path: Path):
    whole, resumed = whole_and_resumed(seqwm, seqwm.Args(**{**TINY, **kind}), tmp_path)
    assert_same_run(whole, resumed)
    assert whole.updates > 8


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_a_killed_run_resumes_bitwise_equal(tmp_path: Path):
    whole = seqwm.train(seqwm.Args(**TINY, directory=tmp_path / "whole"), lambda _: {})
    halves = seqwm.Args(**TINY, directory=tmp_path / "halves")
    process = multiprocessing.get_context("fork").Process(
        target=seqwm.train, args=(halves, evaluation_until(3, lambda: os.kill(os.getpid(), signal.SIGKILL)))
    )
    process.start()
    process.join(60.0)
    assert process.exitcode == -signal.SIGKILL
    assert (halves.folder / "last.safetensors").read_bytes() != whole.weights.read_bytes()
    assert_same_run(whole, seqwm.train(dataclasses.replace(halves, resume=True), lambda _: {}))
    assert whole.updates > 8


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A short run, and its report."""
    args = seqwm.Args(**TINY, directory=tmp_path_factory.mktemp("seqwm"))
    return args, seqwm.train(args)


def test_a_policy_file_plays_what_the_run_evaluated_with_its_planner_or_its_actor(trained: Any):
    _, report = trained
    game, returns = copy_game.game(), []
    assert (
        evaluate(COPY, str(report.weights), matches=4, seed=2**30, num_envs=4).mean_return == report.log[-1]["return"]
    )
    for plan in (None, True, False):
        player = load_policy(report.weights, game, "team", plan=plan)
        assert player.model.design.plan == (plan is not False)
        assert player.policy_outputs == {}
        returns.append(evaluate(COPY, player, matches=4, seed=2**30, num_envs=4).mean_return)
    assert returns[0] == pytest.approx(report.log[-1]["return"])
    assert returns[0] == returns[1] != returns[2]
    assert list(report.log[-1])[:3] == ["steps", "updates", "return"]
    assert {"consistency", "reward_loss", "value_loss", "actor_loss"} <= set(report.log[-1])


def test_seeds_differ_and_a_run_repeats_to_the_bit(trained: Any, tmp_path: Path):
    args, report = trained
    again = seqwm.train(dataclasses.replace(args, directory=tmp_path))
    assert_same_run(report, again)
    other = seqwm.train(dataclasses.replace(args, directory=tmp_path, seed=1))
    assert other.log[-1]["consistency"] != report.log[-1]["consistency"]


# -- refusals ----------------------------------------------------------------------------------------------------------


def test_files_of_other_games_and_without_a_design_are_refused_in_a_line(trained: Any, tmp_path: Path):
    with pytest.raises(FileError, match=r"was trained in .* and cannot play team of Aim"):
        load_policy(trained[1].weights, aim.game(), "team")
    arrays, _ = read_policy(trained[1].weights)
    save_policy(tmp_path / "bare.safetensors", arrays, method="seqwm", env_id=COPY, args={})
    with pytest.raises(FileError, match="the metadata hold no design of world models"):
        load_policy(tmp_path / "bare.safetensors", copy_game.game(), "team")


def test_a_run_is_not_resumed_in_another_mode_or_game(trained: Any):
    args, _ = trained
    for changes in ({"mode": "decentralised"}, {"env_id": "tests/Aim-v0"}, {"horizon": 1}):
        with pytest.raises(ValueError, match=rf"--{next(iter(changes)).replace('_', '-')}|{next(iter(changes))}"):
            seqwm.train(dataclasses.replace(args, resume=True, **changes))


TAG = "palaestra/TeamTag-2v2-v0"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env_id": TAG, "team": "blue", "opponent": "random"}, "TeamTag: agents make choices, .* mappo or qmix"),
        ({"env_id": "palaestra/TeamPong-v0", "team": "left"}, "agents make choices|has no team"),
        ({"env_id": TAG, "options": ("actions=continuous",)}, "TeamTag has the teams .* say by --team .* who plays"),
        ({"env_id": TAG, "options": ("actions=continuous",), "team": "blue"}, "say which by --opponent"),
        ({"team": "red"}, "Copy has no team 'red': choose from team"),
        ({"actor_samples": 9}, "--actor-samples 9 are more than --samples 8"),
        ({"elites": 9}, "--elites 9 are more than --samples 8"),
        ({"horizon": -1}, "--horizon must be greater than 0, got -1"),
        ({"latent": 12}, "--latent must be a multiple of 8, got 12"),
        ({"gamma": 1.5}, "--gamma must be between 0 and 1, got 1.5"),
        ({"warmup_steps": 23}, "--warmup-steps 23 are too few for .* at least 40"),
        ({"replay_size": 63}, "--replay-size 63 is less than --warmup-steps 64"),
    ],
)
def test_arguments_that_cannot_be_are_refused_in_a_line(given: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(ValueError, match=message) as error:
        seqwm.train(seqwm.Args(**{**TINY, **given}, directory=tmp_path))
    assert "\n" not in str(error.value)
    assert not list(tmp_path.rglob("*.safetensors"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"action": (Choice("which", 3), Continuous("number"))}, "composite actions are not learnt"),
        ({"observation": (Field("g", (), -1, 1), Field("kind", (), 0, 1, dtype="i4"))}, "see numbers of several kinds"),
    ],
)
def test_composite_actions_and_observations_that_are_no_vector_are_refused_by_role(
    change: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
):
    game = copy_game.game()
    mixed = dataclasses.replace(game, roles=(dataclasses.replace(game.roles[0], **change),))
    monkeypatch.setattr(seqwm.registry, "make_game", lambda *_, **__: (mixed, None))
    with pytest.raises(ValueError, match=f"role 'copier' .*{message}"):
        seqwm.learning_team(seqwm.Args(env_id=COPY))


def test_what_is_not_given_is_as_the_size_says():
    published = seqwm.Args(size="published", elites=7)
    expected = {**SIZES["published"], "elites": 7}
    assert {name: getattr(published, name) for name in expected} == expected
    small = seqwm.Args()
    assert {name: getattr(small, name) for name in SIZES["small"]} == SIZES["small"]
    assert small.design.mode == "seq"
