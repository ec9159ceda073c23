"""GRPO: which way it learns, what counts in its loss, resuming, the player of its files, and the bundled bases."""

from __future__ import annotations

import copy
import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_policy

import palaestra_assets
from palaestra.cli import main as command_line
from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra.games.search.name_tokens import CONTEXT, VOCABULARY
from palaestra_baselines import grpo
from palaestra_baselines.common.lm import base as bases
from palaestra_baselines.common.lm.base import RECIPES, Unranked, train_base
from palaestra_baselines.common.lm.demonstrations import Demonstrator
from palaestra_baselines.common.lm.losses import chosen, group_advantages, loss_mask
from palaestra_baselines.common.lm.rollouts import Rollout, make_batch, measure_exact_match, play
from palaestra_baselines.common.lm.tiny_model import PAD, TinyModel, base_file, load_base, model_of
from palaestra_baselines.common.policy_file import read_policy

pytestmark = pytest.mark.check

TWO_HOPS = "palaestra/SearchQA-2Hop-v1"
SMALL: dict[str, Any] = {
    "total_steps": 40,
    "evaluations": 2,
    "groups": 2,
    "group": 4,
    "questions": 16,
    "entropy": 0.01,
    "quiet": True,
}
GROUP = 4


@pytest.fixture(scope="module")
def base() -> TinyModel:
    return load_base("shortcut")


@pytest.fixture(scope="module")
def rollout(base: TinyModel) -> Rollout:
    """Four groups, in two of which one match is called right."""
    sim, tokens = make_batch(TWO_HOPS, 4 * GROUP)
    seeds = np.repeat(np.arange(4, dtype=np.uint64), GROUP)
    played = play(base, sim, tokens, seeds, torch.Generator().manual_seed(0), temperature=2.0)
    rewards = torch.zeros(4 * GROUP)
    rewards[[0, GROUP]] = 1.0
    return dataclasses.replace(played, exact_match=rewards)


def learn(base: TinyModel, rollout: Rollout, **arguments: Any) -> tuple[TinyModel, torch.Tensor]:
    """The model after one small update, and by how much each token of the rollout became likelier, ``[N, T]``."""
    model = copy.deepcopy(base)
    args = grpo.Args(**{"passes": 1, "max_gradient_norm": 1e9, **arguments})
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    args.learning_rate = arguments.get("learning_rate", 1e-2)
    grpo.update(
        model, base if args.kl else None, optimizer, rollout, group_advantages(rollout.exact_match, GROUP), args
    )
    everything = rollout.ids != PAD
    everything[:, 0] = False
    with torch.no_grad():
        before, after = (chosen(m.log_probs(rollout.ids, everything), rollout.ids, everything) for m in (base, model))
    return model, after - before


def difference(a: TinyModel, b: TinyModel) -> float:
    return max((p - q).abs().max().item() for p, q in zip(a.parameters(), b.parameters(), strict=True))


# -- the update --------------------------------------------------------------------------------------------------------


def test_right_answers_become_likelier_and_wrong_ones_of_their_groups_less_likely(base: TinyModel, rollout: Rollout):
    change = (learn(base, rollout)[1] * loss_mask(rollout)).sum(1).view(4, GROUP)
    gain = change[:2, 0] - change[:2, 1:].mean(1)
    assert gain.sum() > 0.1
    assert gain.sum() > (change[2:, 0] - change[2:, 1:].mean(1)).abs().sum()


def test_nothing_is_learnt_where_all_of_each_group_are_alike(base: TinyModel, rollout: Rollout):
    rewards = torch.zeros(4 * GROUP)
    rewards[:GROUP] = 1.0
    alike = dataclasses.replace(rollout, exact_match=rewards)
    assert difference(learn(base, alike)[0], base) == 0.0


def gradient_of(base: TinyModel, rollout: Rollout, **arguments: Any) -> list[torch.Tensor]:
    return [p - q for p, q in zip(learn(base, rollout, **arguments)[0].parameters(), base.parameters(), strict=True)]


def test_the_step_is_the_gradient_of_a_sum_over_all_sampled_tokens(base: TinyModel, rollout: Rollout):
    model, advantages = copy.deepcopy(base), group_advantages(rollout.exact_match, GROUP)
    total, terms = 0, torch.zeros(())
    for ids, turn, advantage in zip(rollout.ids, rollout.turn, advantages, strict=True):  # each match alone
        mask = (turn >= 0)[None]
        logs = model.log_probs(ids[None], mask).gather(1, ids[mask[0]][:, None]).sum()
        total, terms = total + int(mask.sum()), terms + advantage * logs
    (-1e-2 * terms / total).backward()
    for found, parameter in zip(gradient_of(base, rollout), model.parameters(), strict=True):
        assert parameter.grad is not None
        torch.testing.assert_close(found, -parameter.grad, atol=2e-6, rtol=1e-3)


def test_retrieved_tokens_are_learnt_only_when_asked(base: TinyModel, rollout: Rollout):
    changed = dataclasses.replace(rollout, retrieved=torch.zeros_like(rollout.retrieved))
    masked, unmasked = gradient_of(base, rollout), gradient_of(base, rollout, mask_retrieved="no")
    for a, b in zip(masked, gradient_of(base, changed), strict=True):
        torch.testing.assert_close(a, b, atol=0.0, rtol=0.0)
    assert max((a - b).abs().max().item() for a, b in zip(masked, unmasked, strict=True)) > 1e-4
    advantages = group_advantages(rollout.exact_match, GROUP)[:, None] * rollout.retrieved
    with_them, without = (learn(base, rollout, mask_retrieved=word)[1] for word in ("no", "yes"))
    assert (advantages * (with_them - without)).sum() > 0.1


@pytest.mark.parametrize("level", ["token", "turn", "sequence"])
def test_two_passes_at_a_high_rate_stay_within_the_clip_of_their_level(base: TinyModel, rollout: Rollout, level: Any):
    loose, held = (learn(base, rollout, level=level, passes=5, clip=clip)[1] for clip in (1e9, 0.2))
    mask = loss_mask(rollout)
    mask[2 * GROUP :] = False
    assert (held * mask).abs().sum() < (loose * mask).abs().sum()


def test_every_pass_is_a_gradient_step(base: TinyModel, rollout: Rollout):
    once, twice = (learn(base, rollout, passes=passes, clip=1e9)[0] for passes in (1, 2))
    assert difference(twice, once) > 0.1 * difference(once, base)


def test_an_iteration_compares_the_matches_of_one_question(monkeypatch: pytest.MonkeyPatch):
    run, seen = grpo.Run(grpo.Args(**{**SMALL, "groups": 3, "questions": 1})), list[Any]()
    rewards = torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    played = lambda *given: dataclasses.replace(play(*given), returns=rewards)  # noqa: E731
    monkeypatch.setattr(run, "player", played)
    monkeypatch.setattr(grpo, "update", lambda *given: seen.extend(given))
    run.iterate()
    rollout, advantages = seen[3], seen[4]
    prompts = rollout.ids[:, :4].view(3, GROUP, 4)
    assert (prompts == prompts[:, :1]).all()
    assert len(prompts[:, 0].unique(dim=0)) == 3
    assert advantages.tolist() == pytest.approx([1.5, -0.5, -0.5, -0.5, *[0.0] * 8], abs=1e-3)
    assert run.losses["mixed"] == pytest.approx(1 / 3)


def test_kl_holds_the_policy_at_its_base_and_entropy_spreads_it(base: TinyModel, rollout: Rollout):
    arguments: dict[str, Any] = {"passes": 4, "clip": 1e9, "learning_rate": 2e-3}
    free, held = (learn(base, rollout, kl=kl, **arguments)[1] * loss_mask(rollout) for kl in (0.0, 1.0))
    assert held.square().sum() < 0.5 * free.square().sum()
    mask = loss_mask(rollout)

    def entropy(model: TinyModel) -> float:
        with torch.no_grad():
            logs = model.log_probs(rollout.ids, mask)
        return float(-(logs.exp() * logs).sum(1).mean())

    alike = dataclasses.replace(rollout, exact_match=torch.zeros(4 * GROUP))
    spread, sharpened = (entropy(learn(base, alike, entropy=sign * 0.5)[0]) for sign in (1.0, -1.0))
    assert sharpened < entropy(base) < spread


# -- rewards -----------------------------------------------------------------------------------------------------------


def weights_after_an_iteration(**arguments: Any) -> list[torch.Tensor]:
    run = grpo.Run(grpo.Args(**{**SMALL, "base": "noisy", "questions": 1, **arguments}))
    run.iterate()
    return [weight.detach() for weight in run.model.parameters()]


def test_rewards_of_turns_are_learnt_unless_answers_alone_count():
    paid = {"options": ("turn_reward=1.0",)}
    found = {
        (reward, bool(more)): weights_after_an_iteration(reward=reward, **more)
        for reward in ("return", "exact_match")
        for more in (paid, {})
    }
    plain = found.pop(("return", False))
    equal = {key: all(map(torch.equal, plain, weights)) for key, weights in found.items()}
    assert equal == {("return", True): False, ("exact_match", True): True, ("exact_match", False): True}


def test_a_return_is_the_sum_of_all_rewards_of_a_match():
    prices = {"turn_reward": 0.25, "malformed_cost": 0.125}
    sim, tokens = make_batch(TWO_HOPS, 64, **prices)
    generator = torch.Generator().manual_seed(0)
    rollout = play(load_base("noisy"), sim, tokens, np.arange(64, dtype=np.uint64), generator, temperature=1.5)
    found, malformed = sim.info["hops_found"], sim.info["malformed"]
    wanted = rollout.exact_match.numpy() + 0.25 * found - 0.125 * malformed
    np.testing.assert_allclose(rollout.returns.numpy(), wanted)
    assert found.max() == 2
    assert malformed.max() > 1


def test_a_function_of_the_users_gives_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lines = ["def short(rollout, info):", "    return info['exact_match'] - 0.1 * rollout.turns.numpy()"]
    lines += ["def one(rollout, info):", "    return [1.0]"]
    (tmp_path / "rewards_of_mine.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    run = grpo.Run(grpo.Args(**{**SMALL, "questions": 1}, reward="rewards_of_mine:short"))
    rollout = play(run.model, run.sim, run.tokens, np.arange(8, dtype=np.uint64), run.generator)
    torch.testing.assert_close(run.rewards(rollout), rollout.exact_match - 0.1 * rollout.turns)
    run.reward = grpo.reward_function("rewards_of_mine:one")
    with pytest.raises(ValueError, match="give one for each of 8 matches"):
        run.rewards(rollout)
    for name in ("f1", "rewards_of_mine:none", "no_such_module:f"):
        with pytest.raises(ValueError, match=f"--reward {name}: give return, exact_match, or module:function"):
            grpo.Args(reward=name).check()


# -- the run -----------------------------------------------------------------------------------------------------------


def test_a_run_with_kl_keeps_its_base_as_it_was():
    run = grpo.Run(grpo.Args(**{**SMALL, "questions": 1}, kl=0.5))
    assert run.reference is not None
    run.reward = lambda rollout, info: torch.arange(8.0)
    run.iterate()
    assert difference(run.reference, load_base("shortcut")) == 0.0
    assert difference(run.model, run.reference) > 0.0
    assert not any(weight.requires_grad for weight in run.reference.parameters())


def test_a_resumed_run_is_the_one_that_was_not_interrupted(tmp_path: Path):
    whole = grpo.train(grpo.Args(**SMALL, directory=tmp_path / "whole"))
    halves = {**SMALL, "directory": tmp_path / "halves"}
    grpo.train(grpo.Args(**{**halves, "total_steps": 20, "evaluations": 1}))
    resumed = grpo.train(grpo.Args(**halves, resume=True))
    assert_same_policy(whole, resumed)
    arrays, notes = read_policy(whole.weights)
    assert notes["method"] == "grpo"
    assert set(notes["figures"]) == {"sampled", "temperature_0.5", "greedy"}
    columns = "steps,iterations,sampled,temperature_0.5,greedy,reward,turns,mixed,cpu_s"
    assert (whole.weights.parent / "log.csv").read_text().splitlines()[0] == columns
    assert (difference(model_of(arrays), load_base("shortcut"))) > 0.0


def test_the_command_ends_with_the_one_that_evaluates_its_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["--total-steps", "1", "--evaluations", "1", "--groups", "1", "--questions", "2", "--quiet"]
    grpo.main([*words, "--directory", str(tmp_path)])
    printed = capsys.readouterr().out.split("palaestra eval ")[1].split()
    assert command_line(["eval", *printed, "--matches", "4"]) == 0
    with pytest.raises(SystemExit):
        grpo.main(["--help"])
    assert (grpo.__doc__ or "").splitlines()[0] in " ".join(capsys.readouterr().out.split())


def test_a_base_may_be_a_file_and_one_of_another_method_is_refused(tmp_path: Path):
    args = {**SMALL, "total_steps": 1, "evaluations": 1, "directory": tmp_path}
    grpo.train(grpo.Args(**args, base=str(base_file("early"))))
    loaded, early = model_of(read_policy(tmp_path / "seed_0" / "last.safetensors")[0]), load_base("early")
    assert difference(loaded, early) < difference(loaded, load_base("shortcut"))
    other = str(palaestra_assets.path("weights/fm3q_team_pong.safetensors"))
    with pytest.raises(ValueError, match="no language model"):
        grpo.train(grpo.Args(**args, base=other, overwrite=True))


def test_a_file_plays_tokens_and_text_as_the_model_does():
    sim, tokens = make_batch("palaestra/SearchQA-3Hop-v1", 32)
    seeds = (np.uint64(5 << 32) + np.arange(32)).astype(np.uint64)
    played = play(load_base("early"), sim, tokens, seeds, torch.Generator(), temperature=0.0)
    assert 0.1 < played.exact_match.mean() < 0.7
    for form in ("tokens", "text"):
        table = evaluate("palaestra/SearchQA-3Hop-v1", base_file("early"), matches=32, seed=5, num_envs=7, form=form)
        order = np.argsort(table.results["seed"])
        np.testing.assert_array_equal(table.results["return_a"][order], played.exact_match.numpy())
        np.testing.assert_array_equal(table.results["steps"][order], played.turns.numpy())


def test_a_file_refuses_what_it_cannot_read():
    with pytest.raises(FileError, match=r'SearchQA has no tokens .* give form="tokens" or form="text"'):
        evaluate(TWO_HOPS, base_file("shortcut"), matches=1)
    with pytest.raises(FileError, match="take fewer or shorter turns"):
        evaluate(TWO_HOPS, base_file("shortcut"), matches=1, form="text", max_turns=12)


# -- the bases ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_a_bundled_base_is_small_and_says_what_it_is(name: str):
    path = base_file(name)
    assert path.stat().st_size < 2_000_000
    _, notes = read_policy(path)
    assert notes["base"] == name
    assert notes["args"] == json.loads(json.dumps(dataclasses.asdict(RECIPES[name])))
    sim, tokens = make_batch(RECIPES[name].env_id, 128)
    greedy = measure_exact_match(load_base(name), sim, tokens, temperature=0.0)
    assert greedy == pytest.approx(notes["figures"]["greedy"], abs=0.13)
    assert (greedy <= 0.5) == (name in ("shortcut", "early", "sums"))


def test_a_recipe_trains_the_same_base_each_time(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bases, "QUESTIONS", 8)
    recipe = dataclasses.replace(RECIPES["early"], steps=3, lanes=4)
    model, figures = train_base(recipe)
    assert set(figures) == {"sampled", "temperature_0.5", "greedy"}
    assert difference(train_base(recipe)[0], model) == 0.0
    assert difference(model, TinyModel(VOCABULARY, CONTEXT, recipe.seed)) > 0.0
    assert difference(train_base(dataclasses.replace(recipe, last=None))[0], model) > 0.0
    assert difference(train_base(dataclasses.replace(recipe, told=0.0))[0], model) > 0.0


def test_a_base_that_was_not_ranked_reads_the_same_passages_in_other_orders():
    sim, tokens = make_batch(TWO_HOPS, 64)
    seeds = np.arange(64, dtype=np.uint64)
    ranked = play(Demonstrator(0), sim, tokens, seeds, torch.Generator()).ids[:, 9:18].view(64, 3, 3)
    other = play(Demonstrator(0), sim, Unranked(sim.game, 0, 0.0), seeds, torch.Generator()).ids[:, 9:18].view(64, 3, 3)
    first = (ranked == other).all(-1)
    assert 0.15 < first[:, 0].float().mean() < 0.55
    assert sorted(map(sorted, ranked.tolist())) == sorted(map(sorted, other.tolist()))


def test_the_command_writes_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(bases, "QUESTIONS", 8)
    monkeypatch.setattr(bases, "RECIPES", {"early": dataclasses.replace(RECIPES["early"], steps=2, lanes=4)})
    bases.main(["early", "--directory", str(tmp_path)])
    assert "lm_early.safetensors: exact match sampled 0.000" in capsys.readouterr().out
    assert read_policy(tmp_path / "lm_early.safetensors")[1]["base"] == "early"


@pytest.mark.learning
def test_grpo_mends_the_shortcut_in_seven_of_eight_seeds(tmp_path: Path):
    args: dict[str, Any] = {"quiet": True, "directory": tmp_path, "total_steps": 12_000, "evaluations": 1}
    reports = [grpo.train(grpo.Args(seed=seed, **args)) for seed in range(8)]
    assert max(report.cpu_s for report in reports) < 60.0
    mended = [report.log[-1]["sampled"] >= 0.8 and report.log[-1]["greedy"] >= 0.9 for report in reports]
    assert sum(mended) >= 7, mended
