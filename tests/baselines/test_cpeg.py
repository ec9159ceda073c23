"""CPEG: the consistency function and its loss, the consensus and its losses, options, training, resuming, files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_run, no_figures, whole_and_resumed
from baselines.test_masac import CONTINUES, COPY, TINY, WEIGHTS, sequences
from games import copy_game

from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra_baselines import cpeg, masac
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.policy_file import read_policy, save_policy
from palaestra_baselines.cpeg import (
    COMMITMENT,
    ENTRIES,
    KEPT,
    LEVELS,
    PARTS,
    UNUSED,
    WIDTH,
    Consensus,
    ConsistencyPolicy,
    consensus_loss,
    consistency_loss,
    value_loss,
)

SMALL: dict[str, Any] = {**TINY, "encoder_hidden": (8,), "team": "team"}


def copiers() -> Roster:
    return Roster(copy_game.game(), ["team"], numbers=True)


def random_policy(seed: int = 0) -> ConsistencyPolicy:
    torch.manual_seed(seed)
    return ConsistencyPolicy(copiers(), 3, (8,))


# -- the consistency policy --------------------------------------------------------------------------------------------


def test_at_the_least_noise_the_consistency_function_gives_back_its_input_exactly():
    policy, rows, x = random_policy(), torch.randn(5, 2, 3), torch.randn(5, 2, 1)
    assert torch.equal(policy.denoise(rows, x, torch.zeros(5, 2, dtype=torch.long)), x)
    levels = policy.levels
    assert levels[0].item() == pytest.approx(0.01)
    assert levels[-1].item() == pytest.approx(2.0)
    assert len(levels) == LEVELS
    torch.testing.assert_close(levels[1:] / levels[:-1], torch.full((LEVELS - 1,), 200.0 ** (1 / (LEVELS - 1))))


def test_above_it_the_network_counts_by_the_published_weights():
    policy, rows, x = random_policy(), torch.randn(5, 2, 3), torch.randn(5, 2, 1)
    number = torch.full((5, 2), 7)
    k = policy.levels[7].item()
    total = (0.25 + k * k) ** 0.5
    given = torch.cat([rows, x / total, torch.nn.functional.one_hot(number, LEVELS)], -1)
    expected = 0.25 / ((k - 0.01) ** 2 + 0.25) * x + 0.5 * (k - 0.01) / total * policy.network(given)
    torch.testing.assert_close(policy.denoise(rows, x, number), expected)


def test_an_action_is_one_step_from_the_greatest_noise_clipped_and_without_density():
    policy, rows, noise = random_policy(), torch.randn(50, 2, 3), torch.randn(50, 2, 1)
    legal = torch.ones(50, 2, 1, dtype=torch.bool)
    legal[0, 1] = False
    with torch.no_grad():
        policy.network.networks[0][-1].bias.fill_(2.0)  # type: ignore[union-attr, index]
        actions, logs = policy(rows, legal, noise)
        free = policy.denoise(rows, 2.0 * noise, torch.full((50, 2), LEVELS - 1))
        torch.testing.assert_close(actions, free.clamp(-1.0, 1.0) * legal)
        middle = policy.denoise(rows, torch.zeros(50, 2, 1), torch.full((50, 2), LEVELS - 1))
        torch.testing.assert_close(policy(rows, legal, None)[0], middle.clamp(-1.0, 1.0) * legal)
    assert logs is None
    assert 0.2 < (free.abs() > 1.0).float().mean() < 0.8


def test_the_loss_compares_with_the_target_network_at_the_level_below_from_the_same_noise():
    policy, target = random_policy(), random_policy(1)
    rows, actions, noise = torch.randn(4, 2, 3), torch.rand(4, 2, 1), torch.randn(4, 2, 1)
    number = torch.tensor([[0, 3], [5, 0], [10, 1], [2, 2]])
    legal = torch.ones(4, 2, 1, dtype=torch.bool)
    legal[3, 1] = False
    found = consistency_loss(policy, target, rows, actions, legal, noise, number)
    for lane in range(4):
        for agent in range(2):
            n, a, z = number[lane, agent], actions[lane], noise[lane]
            low, high = policy.levels[n], policy.levels[n + 1]
            both = torch.full((2,), int(n))
            wanted = target.denoise(rows[lane], a + low * z, both)[agent]
            given = policy.denoise(rows[lane], a + high * z, both + 1)[agent]
            expected = 0.0 if (lane, agent) == (3, 1) else ((given - wanted) ** 2).sum().item()
            assert found[lane, agent].item() == pytest.approx(expected, abs=1e-6)
    found.sum().backward()
    assert all(p.grad is None for p in target.parameters())


def test_at_the_lowest_level_the_loss_draws_to_actions_of_the_replay():
    policy, target = random_policy(), random_policy(1)
    rows, actions, none = torch.randn(4, 2, 3), torch.rand(4, 2, 1), torch.zeros(4, 2, 1)
    lowest, legal = torch.zeros(4, 2, dtype=torch.long), torch.ones(4, 2, 1, dtype=torch.bool)
    given = policy.denoise(rows, actions, lowest + 1)
    found = consistency_loss(policy, target, rows, actions, legal, none, lowest)
    torch.testing.assert_close(found, ((given - actions) ** 2)[..., 0])


def test_values_count_by_their_mean_size_and_rows_that_are_no_decision_not_at_all():
    values = torch.tensor([[2.0, -3.0, 50.0], [4.0, -1.0, 50.0]], requires_grad=True)
    loss = value_loss(values, torch.tensor([1.0, 1.0, 0.0]))
    assert loss.item() == pytest.approx(-(2.0 - 3.0) / 2 / 2.5)
    loss.backward()
    assert values.grad is not None
    assert values.grad.flatten().tolist() == pytest.approx([-0.2, -0.2, 0.0, 0.0, 0.0, 0.0])
    assert value_loss(torch.full((2, 1), 1e-3), torch.ones(1)).item() == pytest.approx(-0.1)


# -- the consensus -----------------------------------------------------------------------------------------------------


def line_of_codes() -> Consensus:
    """A consensus whose k-th entry is k in all numbers, in both codebooks."""
    torch.manual_seed(0)
    consensus = Consensus(copiers(), 3, (8,), joint=False)
    consensus.codebook.copy_(torch.arange(float(ENTRIES))[:, None].expand(PARTS, -1, WIDTH))
    return consensus


def latents_at(*places: Any) -> torch.Tensor:
    """Latents ``[..., PARTS, WIDTH]`` of places ``[..., PARTS]`` on the line."""
    return torch.tensor(places, dtype=torch.float32)[..., None].expand(*np.shape(places), WIDTH).clone()


def test_the_nearest_entries_are_taken_of_each_part():
    number, entries = line_of_codes().quantise(latents_at((0.4, 7.6), (3.1, 20.0)))
    assert number.tolist() == [[0, 8], [3, 15]]
    torch.testing.assert_close(entries, latents_at((0.0, 8.0), (3.0, 15.0)))


def test_the_gradient_passes_straight_through_and_the_commitment_draws_to_the_own_entry():
    consensus, latents = line_of_codes(), latents_at([(0.3, 5.4), (0.3, 5.4)]).requires_grad_()
    seen = list[torch.Tensor]()

    def decoder(rows: torch.Tensor) -> torch.Tensor:
        seen.append(rows)
        return rows * 3.0

    states = torch.ones(1, PARTS * WIDTH)
    loss, _ = consensus_loss(consensus, decoder, latents, states, torch.ones(1, 2), 0.0)  # type: ignore[arg-type]
    entries = latents_at([(0.0, 5.0), (0.0, 5.0)])
    torch.testing.assert_close(seen[0], entries.flatten(2))  # it reads entries, not latents
    missed = (3.0 * entries.flatten(2) - 1.0).unflatten(-1, (PARTS, WIDTH))
    commitment = COMMITMENT * (latents.detach() - entries)
    assert COMMITMENT == 0.25
    assert loss.item() == pytest.approx((missed**2).mean().item() + 0.25 * (0.09 + 0.16) / 2, rel=1e-5)
    (gradient,) = torch.autograd.grad(loss, latents)
    numbers = PARTS * WIDTH
    torch.testing.assert_close(gradient, (2.0 * 3.0 * missed + 2.0 * commitment) / numbers / 2)


def test_agents_are_drawn_to_the_mean_of_those_in_the_match():
    consensus = line_of_codes()
    latents = latents_at([(1.0, 2.0), (4.0, 2.0)], [(1.0, 2.0), (9.0, 2.0)]).requires_grad_()  # means 2.5 and 1
    alive = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    still = torch.nn.Linear(PARTS * WIDTH, 1)
    with torch.no_grad():
        still.weight.zero_()
        still.bias.zero_()
    loss, same = consensus_loss(consensus, still, latents, torch.zeros(2, 1), alive, 0.5)
    assert loss.item() == pytest.approx(0.5 * (2.25 + 2.25 + 0.0) / PARTS / 3)
    (gradient,) = torch.autograd.grad(loss, latents)
    assert gradient[0, 0, 0, 0] < 0.0 < gradient[0, 1, 0, 0]
    assert not gradient[:, :, 1].any()
    assert not gradient[1].any()
    assert same.item() == 0.0
    alike = latents_at([(1, 2), (1, 2)], [(1, 2), (1, 3)])
    _, same = consensus_loss(consensus, still, alike, torch.zeros(2, 1), torch.ones(2, 2), 0.5)
    assert same.item() == 0.5


def test_entries_move_towards_the_mean_of_their_latents_and_unused_ones_start_again():
    consensus, rng = line_of_codes(), np.random.default_rng(0)
    consensus.uses.fill_(1.0)
    latents = latents_at((0.4, 3.2), (0.2, 3.2))
    perplexity = consensus.update_codebook(latents, rng)
    assert perplexity.item() == pytest.approx(1.0)
    uses = KEPT + (1.0 - KEPT) * 2.0
    assert consensus.codebook[0, 0, 0].item() == pytest.approx((1.0 - KEPT) * 0.6 / uses)
    assert consensus.codebook[1, 3, 0].item() == pytest.approx((KEPT * 3.0 + (1.0 - KEPT) * 6.4) / uses)
    torch.testing.assert_close(consensus.codebook[0, 1:], line_of_codes().codebook[0, 1:])
    for _ in range(UNUSED - 2):
        consensus.update_codebook(latents, rng)
    torch.testing.assert_close(consensus.codebook[0, 9], torch.full((WIDTH,), 9.0))
    consensus.update_codebook(latents, rng)
    assert {round(x, 4) for x in consensus.codebook[0, 1:, 0].tolist()} == {0.2, 0.4}
    assert round(consensus.codebook[0, 0, 0].item(), 4) not in (0.2, 0.4)
    assert {round(x, 4) for x in consensus.codebook[1, [0, 1, 2, 4], 0].tolist()} == {3.2}


def test_a_new_codebook_starts_from_latents_and_perplexity_counts_the_entries_in_use():
    consensus = Consensus(copiers(), 3, (8,), joint=False)
    latents = latents_at(*[(float(k), 0.0) for k in range(64)])
    consensus.update_codebook(latents, np.random.default_rng(0))
    assert len(consensus.codebook[0, :, 0].unique()) > 8
    consensus = line_of_codes()
    consensus.uses.fill_(1.0)
    places = [(float(k % 4), float(k % 2)) for k in range(8)]
    perplexity = consensus.update_codebook(latents_at(*places), np.random.default_rng(0))
    assert perplexity.item() == pytest.approx((4.0 + 2.0) / 2, rel=1e-5)


@pytest.mark.parametrize("consensus", [True, "state"])
def test_an_agent_acts_by_what_it_sees_alone_unless_the_code_is_that_of_all(consensus: Any):
    torch.manual_seed(0)
    actor = cpeg.Actor(copiers(), (8,), "consistency", consensus, (8,))
    assert actor.consensus is not None
    actor.consensus.codebook.mul_(0.2)  # about as large as latents of new weights
    noise, legal = torch.randn(1, 2, 1), torch.ones(1, 2, 1, dtype=torch.bool)
    acted = list[float]()
    for unseen in np.linspace(-2.0, 2.0, 20):
        seen = actor.inputs({"copier": torch.tensor([[[unseen], [0.5]]], dtype=torch.float32)})
        acted.append(actor.policy(actor.read(seen).rows, legal, noise)[0][0, 1].item())
    assert (len(set(acted)) == 1) == (consensus is True)
    codes = actor.read(actor.inputs({"copier": torch.randn(30, 2, 1)})).codes
    assert codes is not None
    assert bool((codes[:, 0] == codes[:, 1]).all()) == (consensus == "state")
    assert 0 <= codes.min() < codes.max() < ENTRIES**PARTS


# -- the loop ----------------------------------------------------------------------------------------------------------


def tiny_learner(**changes: Any) -> cpeg.Learner:
    torch.manual_seed(0)
    learner = cpeg.Learner(cpeg.Args(**{**SMALL, **changes}), copiers(), 2)
    with torch.no_grad():
        for parameter in learner.critic.parameters():
            parameter.uniform_(-0.7, 0.7)
    return learner


def with_state(batch: Any) -> Any:
    """The batch with the numbers that are seen as its state."""
    positions = copy.copy(batch.positions)
    object.__setattr__(positions, "state", batch.positions.observations["copier"][..., 0])
    batch = copy.copy(batch)
    object.__setattr__(batch, "positions", positions)
    return batch


def test_a_step_moves_critic_policy_and_consensus_by_their_own_losses(monkeypatch: pytest.MonkeyPatch):
    learner, moved, step = tiny_learner(tau=0.25), list[Any](), masac.gradient_step
    parts = {"critic": learner.critic, "policy": learner.actor.policy}
    parts |= {"encoder": learner.actor.consensus.encoder, "decoder": learner.decoder}

    def watched(optimizer: Any, *given: Any) -> float:
        before = {name: [p.clone() for p in part.parameters()] for name, part in parts.items()}
        norm = step(optimizer, *given)
        pairs = {name: zip(before[name], part.parameters(), strict=True) for name, part in parts.items()}
        moved.append({name for name, both in pairs.items() if any(not torch.equal(a, b) for a, b in both)})
        return norm

    monkeypatch.setattr(masac, "gradient_step", watched)
    before = [p.clone() for p in learner.policy_target.parameters()]
    codebook = learner.actor.consensus.codebook.clone()
    losses = learner.update(with_state(sequences(CONTINUES, WEIGHTS)), 1e-2, np.random.default_rng(0))
    assert moved == [{"critic"}, {"policy"}, {"encoder", "decoder"}]
    assert len(losses) == len(cpeg.Training.LOSSES)
    pairs = zip(before, learner.policy_target.parameters(), learner.actor.policy.parameters(), strict=True)
    for old, new, online in pairs:
        torch.testing.assert_close(new, old + 0.25 * (online - old))
    assert not torch.equal(learner.actor.consensus.codebook, codebook)


def test_the_loss_of_the_policy_is_that_of_consistency_less_eta_times_the_value(monkeypatch: pytest.MonkeyPatch):
    found = dict[float, Any]()
    for eta in (0.0, 3.0):
        learner = tiny_learner(eta=eta, consensus=False, guidance=False)
        for name, value in (("consistency_loss", torch.full((4, 2), 0.5)), ("value_loss", torch.tensor(-0.25))):
            weights = value.clone().requires_grad_()
            monkeypatch.setattr(cpeg, name, lambda *_, weights=weights: weights)
        found[eta] = learner.update(sequences(CONTINUES, WEIGHTS), 1e-2, np.random.default_rng(0))[1]
    assert found[0.0].item() == pytest.approx(0.5)
    assert found[3.0].item() == pytest.approx(0.5 - 0.75)


def test_guidance_counts_by_codes_and_without_it_nothing_is_added():
    learner = tiny_learner(guidance=True, bonus=0.5)
    read = learner.actor.read(learner.actor.inputs({"copier": torch.randn(6, 2, 1)}))
    assert read.codes is not None
    actions = torch.rand(6, 2, 1)
    assert torch.equal(learner.index(read, actions), learner.visits.index(read.codes, actions))
    assert learner.bonus == 0.5
    assert tiny_learner(guidance=False, bonus=0.5).bonus == 0.0


@pytest.mark.check
def test_without_its_parts_it_is_masac_bit_by_bit(tmp_path: Path):
    plain = masac.train(masac.Args(**TINY, directory=tmp_path / "masac"), no_figures)
    parts = {"policy": "gaussian", "consensus": False, "guidance": False}
    parts |= {name: getattr(masac.Args, name) for name in ("learning_rate", "bonus")}
    other = cpeg.train(cpeg.Args(**{**TINY, **parts}, directory=tmp_path / "cpeg"), no_figures)
    arrays, others = (read_policy(report.weights)[0] for report in (plain, other))
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name])


@pytest.mark.check
@pytest.mark.parametrize("parts", [{}, {"policy": "gaussian", "consensus": "state"}])
def test_a_resumed_run_ends_as_one_without_a_break_and_its_policy_plays(parts: Any, tmp_path: Path):
    whole, resumed = whole_and_resumed(cpeg, cpeg.Args(**{**SMALL, "replay_size": 96, **parts}), tmp_path)
    assert_same_run(whole, resumed)
    player = cpeg.load_policy(whole.weights, copy_game.game(), "team")
    returns = [evaluate(COPY, player, matches=12, seed=1, num_envs=n).results["return_a"] for n in (12, 5)]
    np.testing.assert_allclose(*returns, rtol=1e-6)
    assert all(np.isfinite(returns[0]))


def test_files_that_name_no_parts_or_have_other_weights_are_refused(tmp_path: Path):
    path, game = tmp_path / "policy.safetensors", copy_game.game()
    arrays = cpeg.Actor(copiers(), (8, 4), "consistency", True, (6,)).arrays()
    whole = {"policy": "consistency", "consensus": True}

    def load(named: Any, design: Any) -> Any:
        save_policy(path, named, method="cpeg", env_id=COPY, args={}, design=design)
        return cpeg.load_policy(path, game, "team")

    assert load(arrays, whole).memory_size == 1
    for design in (None, [], {}, {**whole, "policy": "tree"}, {**whole, "consensus": ["state"]}):
        with pytest.raises(FileError, match="the metadata name no policy and consensus of CPEG"):
            load(arrays, design)
    for design in ({**whole, "consensus": False}, {**whole, "policy": "gaussian"}, {**whole, "consensus": "state"}):
        with pytest.raises(FileError, match=r"the weights do not fit|has no layers"):
            load(arrays, design)


def test_the_words_of_the_command_are_read(monkeypatch: pytest.MonkeyPatch):
    given = list[Any]()

    def train(args: Any) -> Any:
        given.append(args)
        raise KeyboardInterrupt

    monkeypatch.setattr(cpeg, "train", train)
    words = ["--env-id", "palaestra/Spread-v0", "--policy", "gaussian", "--consensus", "state", "--no-guidance"]
    with pytest.raises(KeyboardInterrupt):
        cpeg.main(words)
    with pytest.raises(KeyboardInterrupt):
        cpeg.main(["--consensus", "False"])
    found = [(args.policy, args.consensus, args.guidance) for args in given]
    assert found == [("gaussian", "state", False), ("consistency", False, True)]
