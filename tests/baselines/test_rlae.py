"""RLAE: what PPO draws and learns, resuming, files of policies, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")

import torch
from baselines.short_runs import assert_same_run, whole_and_resumed
from torch.distributions import Normal

import palaestra
from palaestra import registry
from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra_baselines import rlae
from palaestra_baselines.common.policy_file import read_policy
from palaestra_baselines.common.run_folder import RunFolder
from palaestra_baselines.common.training import EVALUATION_SEED

pytestmark = pytest.mark.check

SMALL: dict[str, Any] = {
    "total_steps": 400,
    "lanes": 16,
    "rollout": 6,
    "epochs": 2,
    "minibatches": 2,
    "hidden": (8, 8),
    "critic_hidden": (8,),
    "evaluations": 2,
    "matches": 64,
    "quiet": True,
}
AGENTS = pytest.mark.parametrize("agents", ["one", "each"])


def small(folder: Path, agents: str = "one", **changes: Any) -> rlae.Args:
    return rlae.Args(**{**SMALL, "agents": agents, "directory": folder, **changes})


def learning_model(args: rlae.Args) -> tuple[Any, Any]:
    """PPO and its lanes, started."""
    vec = rlae.as_vec_env(args.env_id, args.lanes)
    vec.seed(0)
    return rlae.make_model(args, vec), vec


# -- PPO ---------------------------------------------------------------------------------------------------------------


def test_the_action_is_a_draw_from_the_normal_distribution_and_its_density_is_kept(tmp_path: Path):
    model, vec = learning_model(small(tmp_path))
    seen: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        honest = vec.step_async
        patch.setattr(vec, "step_async", lambda actions: (seen.append(actions.copy()), honest(actions))[1])
        patch.setattr(model, "train", lambda: None)
        model.learn(SMALL["lanes"] * SMALL["rollout"])
    buffer = model.rollout_buffer
    observed, drawn = (torch.from_numpy(x.reshape(-1, x.shape[-1])) for x in (buffer.observations, buffer.actions))
    with torch.no_grad():
        policy = model.policy.get_distribution(observed).distribution
        means, deviation = policy.mean, model.policy.log_std.exp()
    torch.testing.assert_close(deviation, torch.full((3,), 0.5 * 5.0))
    kept = torch.from_numpy(buffer.log_probs.reshape(-1))
    torch.testing.assert_close(kept, Normal(means, deviation).log_prob(drawn).sum(-1), atol=1e-4, rtol=1e-4)
    assert ((drawn - means) / deviation).std().item() == pytest.approx(1.0, abs=0.15)
    assert drawn.abs().max() > 5.0  # what is kept is the draw, what is played lies within its bounds
    np.testing.assert_array_equal(np.array(seen), np.clip(buffer.actions, -5.0, 5.0))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_update_makes_paid_draws_more_probable_and_costly_ones_less(sign: float, tmp_path: Path):
    args = small(tmp_path, epochs=1, minibatches=1, entropy=(0.0, 0.0))
    model, vec = learning_model(args)
    honest = vec.step_wait

    def paid() -> Any:  # the first expert's logit is paid, whatever is written
        seen, _, ends, infos = honest()
        return seen, (sign * vec.sim.actions[:, 0, 0]).astype(np.float32), ends, infos

    vec.step_wait, model.lr_schedule = paid, lambda _: 1e-2
    before = model.policy.get_distribution(torch.zeros(1, 9)).distribution.mean[0].detach()
    model.learn(1_000)
    after = model.policy.get_distribution(torch.zeros(1, 9)).distribution.mean[0].detach()
    assert sign * (after - before)[0] > 0.01
    assert sign * (after - before)[0] > 2 * (after - before)[1:].abs().max()


def test_rates_and_the_entropy_fall_linearly_across_evaluations(tmp_path: Path):
    seen: list[tuple[float, ...]] = []
    honest = rlae.PPO.train

    def noted(model: Any) -> None:
        honest(model)
        seen.append((model.policy.optimizer.param_groups[0]["lr"], model.ent_coef, model.num_timesteps))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rlae.PPO, "train", noted)
        report = rlae.train(small(tmp_path, learning_rate=(1e-2, 1e-3), entropy=(0.1, 0.0)))
    assert (report.steps, len(seen), report.updates) == (480, 5, 5 * 2 * 2)
    shares = np.minimum(np.arange(96, 96 * 6, 96) / 400, 1.0)
    np.testing.assert_allclose([rate for rate, _, _ in seen], 1e-2 - 9e-3 * shares)
    np.testing.assert_allclose([entropy for _, entropy, _ in seen], 0.1 - 0.1 * shares, atol=1e-12)
    assert [row["steps"] for row in report.log] == [0, 288, 480]


@pytest.mark.learning
@AGENTS
def test_weights_are_learnt_in_a_minute(agents: str, tmp_path: Path):
    who: Any = agents
    args = rlae.Args(agents=who, seed=100, quiet=True, directory=tmp_path)
    report = rlae.train(args)
    assert report.cpu_s < 60.0
    static, oracle = (
        evaluate(args.env_id, script, matches=4096).results["return_a"].mean() for script in ("static", "oracle")
    )
    share = (report.log[-1]["return"] - static) / (oracle - static)
    assert share > {"one": 0.9, "each": 0.8}[agents]


# -- the run -----------------------------------------------------------------------------------------------------------


@pytest.mark.check
@AGENTS
def test_an_interrupted_run_resumes_bitwise_equal(agents: str, tmp_path: Path):
    whole, resumed = whole_and_resumed(rlae, small(tmp_path, agents), tmp_path)
    assert_same_run(whole, resumed)
    again = rlae.train(small(tmp_path / "halves", agents, resume=True), lambda _: {})
    assert (again.steps, again.updates, again.log) == (resumed.steps, resumed.updates, resumed.log)


@pytest.mark.check
@AGENTS
def test_a_policy_file_plays_what_was_evaluated_on_any_mixture(agents: str, tmp_path: Path):
    args = small(tmp_path, agents, total_steps=96, options=("feature_noise=0.25",))
    report = rlae.train(args)
    _, notes = read_policy(report.weights)
    assert (notes["method"], notes["env_id"], notes["args"]["agents"]) == ("rlae", args.env_id, agents)
    game = registry.make_game(args.env_id)[0]
    player = rlae.load_policy(report.weights, game, args.team)
    options: dict[str, Any] = {"matches": 64, "seed": 2**30, "feature_noise": 0.25}
    found = evaluate(args.env_id, player, **options).results["return_a"].mean()
    assert found == pytest.approx(report.log[-1]["return"])
    elsewhere = evaluate(args.env_id, player, **options, mixture=(0.0, 0.0, 1.0, 0.0, 0.0))
    assert elsewhere.results["return_a"].mean() != pytest.approx(found)


@AGENTS
def test_a_policy_with_memory_is_played_as_it_was_evaluated(agents: str, tmp_path: Path):
    args = small(tmp_path, agents, total_steps=96, recurrent=True, rollout=12, options=("domain_stay=0.9",))
    report = rlae.train(args)
    player = rlae.load_policy(report.weights, registry.make_game(args.env_id)[0], args.team)
    assert player.memory_size == (1 if agents == "one" else 3) * SMALL["hidden"][-1]
    options: dict[str, Any] = {"matches": 64, "num_envs": 64, "seed": EVALUATION_SEED, "domain_stay": 0.9}
    found = evaluate(args.env_id, player, **options).results["return_a"].mean()
    assert found == pytest.approx(report.log[-1]["return"])


def test_the_saved_perceptron_is_the_mean_of_the_policy(tmp_path: Path):
    model, vec = learning_model(small(tmp_path))
    model.learn(200)
    model.policy.action_net.bias.data[0] = 100.0  # beyond the bounds
    observed = vec.reset()
    expected, _ = model.predict(observed, deterministic=True)
    game = palaestra.make_batch("palaestra/LLMEnsemble-v0", 1).game
    player = rlae.UtilityPlayer(rlae.policy_arrays(model), game, "agent")
    found = player.act(observed[:, None], None, None, None, None, None)[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert (found[:, 0] == 5.0).all()
    assert np.ptp(found[:, 1]) > 0.0


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"env_id": "palaestra/TeamTag-2v2-v0"}, "--agents one weights the models of palaestra/LLMEnsemble-v0, got"),
        ({"env_id": "palaestra/LLMEnsemble-Multi-v0"}, "got --env-id palaestra/LLMEnsemble-Multi-v0: give the other"),
        ({"agents": "each", "env_id": "palaestra/LLMEnsemble-v0"}, "--agents each weights the models of"),
        ({"opponent": "uniform"}, "--opponent uniform: nobody plays against an ensemble"),
        ({"network": "entity"}, "--network entity reads units, an ensemble has none"),
        ({"agents": "each", "network": "entity"}, "--network entity reads units, an ensemble has none"),
        ({"recurrent": True, "rollout": 8}, "--rollout must be a multiple of --chunk, got 8 and 12"),
        ({"lanes": 5, "rollout": 5}, "--lanes times --rollout must be a multiple of --minibatches, got 2"),
        ({"clip": 2.0}, "--clip must be between 0 and 1"),
    ],
    ids=str,
)
def test_arguments_that_cannot_be_are_refused(given: dict[str, Any], message: str, tmp_path: Path):
    with pytest.raises(ValueError, match=message):
        rlae.train(rlae.Args(**{**SMALL, **given}, directory=tmp_path))


def test_a_policy_of_one_agent_cannot_play_for_each(tmp_path: Path):
    report = rlae.train(small(tmp_path, total_steps=1), lambda _: {})
    game = registry.make_game("palaestra/LLMEnsemble-Multi-v0")[0]
    with pytest.raises(FileError, match="it was trained"):
        rlae.load_policy(report.weights, game, "expert")


def test_a_run_of_another_agent_is_not_resumed(tmp_path: Path):
    rlae.train(small(tmp_path), lambda _: {})
    with (
        pytest.raises(ValueError, match="agents: was one, is each"),
        RunFolder(small(tmp_path, "each", resume=True), "rlae"),
    ):
        pass
