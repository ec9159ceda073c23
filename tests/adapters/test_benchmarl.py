"""The promises of `palaestra.adapters.benchmarl` to BenchMARL."""

# pyright: reportMissingImports=false

from __future__ import annotations

import pickle
import subprocess
import sys
import warnings
from typing import Any

import pytest
from games import size_game, two_team_homogeneous  # noqa: F401 (the first registers its ids)

import palaestra

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]
pytest.importorskip("benchmarl")

with warnings.catch_warnings(action="ignore"):  # the libraries warn of themselves
    import torch
    from benchmarl.algorithms import MappoConfig, QmixConfig, VdnConfig
    from benchmarl.experiment import Experiment, ExperimentConfig
    from benchmarl.models.mlp import MlpConfig

    from palaestra.adapters.benchmarl import PalaestraTask

torch.set_num_threads(1)
palaestra.register("tests/Melee-v0", two_team_homogeneous.game)
TAG, ARENA, SPEAKER = "palaestra/TeamTag-v0", "palaestra/ArenaDuel2v2-v0", "palaestra/SpeakerListener-v0"


def trained(task: PalaestraTask, algorithm: Any, folder: Any) -> Experiment:
    """One iteration of an experiment: 600 decisions, one update or two, one evaluation."""
    config = ExperimentConfig.get_from_yaml()
    config.loggers, config.save_folder, config.render = ["csv"], str(folder), False
    config.max_n_iters, config.max_n_frames = 1, None
    config.on_policy_n_envs_per_worker = config.off_policy_n_envs_per_worker = 10
    config.on_policy_collected_frames_per_batch = config.off_policy_collected_frames_per_batch = 600
    config.on_policy_minibatch_size, config.on_policy_n_minibatch_iters = 300, 1
    config.off_policy_train_batch_size, config.off_policy_n_optimizer_steps = 64, 1
    config.off_policy_init_random_frames = 0
    config.evaluation, config.evaluation_episodes, config.evaluation_interval = True, 2, 600
    experiment = Experiment(
        task=task,
        algorithm_config=algorithm.get_from_yaml(),
        model_config=MlpConfig.get_from_yaml(),
        critic_model_config=MlpConfig.get_from_yaml(),
        seed=0,
        config=config,
    )
    before = {group: _weights(policy) for group, policy in experiment.group_policies.items()}
    experiment.run()
    for group, policy in experiment.group_policies.items():
        assert not torch.equal(before[group], _weights(policy))
    return experiment


def _weights(policy: Any) -> torch.Tensor:
    return torch.cat([p.detach().clone().flatten() for p in policy.parameters()])


@pytest.mark.parametrize(
    ("id", "algorithm", "opponents", "groups"),
    [
        (TAG, MappoConfig, {}, {"red", "blue"}),
        (TAG, VdnConfig, {"blue": "random"}, {"red"}),
        (ARENA, QmixConfig, {"blue": "mix"}, {"red"}),
        (SPEAKER, MappoConfig, {}, {"agent_speaker", "agent_listener"}),
    ],
)
def test_an_algorithm_updates_the_policy_of_each_open_team(id, algorithm, opponents, groups, tmp_path):
    task = PalaestraTask(id, opponents=opponents)
    experiment = trained(task, algorithm, tmp_path)
    assert set(experiment.group_policies) == groups
    logged = {path.stem for path in tmp_path.rglob("*.csv")}
    assert {f"collection_info_win_rate_{team}" for team in task.teams} <= logged
    assert "eval_reward_episode_reward_mean" in logged


def test_masks_and_continuous_actions_reach_benchmarl(tmp_path):
    task = PalaestraTask("tests/Couriers-v0", observation="nearest:flat", opponents={"blue": "random"})
    env = task.get_env_fun(2, False, 0, "cpu")()
    assert task.supports_discrete_actions()
    masks: Any = task.action_mask_spec(env)
    assert masks["red", "action_mask"].shape[-1] == task.action_spec(env)["red", "action"].n
    assert task.max_steps(env) == env.sim.parameters["horizon"][0]
    trained(task, VdnConfig, tmp_path)
    melee = PalaestraTask("tests/Melee-v0")
    assert melee.supports_continuous_actions()
    assert melee.action_mask_spec(melee.get_env_fun(2, True, 0, "cpu")()) is None


def test_the_win_rate_is_that_of_the_matches_that_ended():
    task = PalaestraTask(TAG)
    data = task.get_env_fun(4, False, 0, "cpu")().rollout(60, break_when_any_done=False)
    winners = data["next", "info", "winner"][data["next", "done"]]
    rates = task.log_info(data)
    assert rates["collection/info/win_rate_red"] == (winners == 0).float().mean()
    assert sum(rates.values()) == pytest.approx((winners >= 0).float().mean().item())
    assert task.log_info(data[:, :3]) == {}


def test_seeds_reach_the_matches():
    task = PalaestraTask(TAG)
    first, again, other = (task.get_env_fun(2, False, seed, "cpu")().reset()["state"] for seed in (1, 1, 5))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_task_is_a_picklable_name_with_its_keywords_and_refuses_unknown_ones():
    task = PalaestraTask(TAG, opponents={"blue": "random"})
    assert pickle.loads(pickle.dumps(task)) == task
    assert (task.name, task.env_name()) == ("team_tag_v0", "palaestra")
    with pytest.raises(TypeError, match="speeed"):
        PalaestraTask(TAG, speeed=1)


def test_without_benchmarl_the_error_says_what_to_install():
    code = "import sys; sys.modules['benchmarl'] = None; import palaestra.adapters.benchmarl"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install benchmarl" in done.stderr
