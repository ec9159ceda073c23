# pyright: reportMissingImports=false
"""BenchMARL: a task of its own class on TorchRL's PettingZooWrapper, with its algorithms."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import Any

from benchmarl.algorithms import IppoConfig, MappoConfig, VdnConfig
from benchmarl.environments.common import Task, TaskClass
from benchmarl.experiment import Experiment, ExperimentConfig
from benchmarl.models.mlp import MlpConfig
from peers.libraries.trials import STEPS, main, trial
from torchrl.data import Composite
from torchrl.envs import EnvBase, PettingZooWrapper

from palaestra.registry import make_parallel


class ZooClass(TaskClass):
    """A registered id as a task, as BenchMARL's documentation shows for new environments."""

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        config = {k: v for k, v in self.config.items() if k != "id"}
        return lambda: PettingZooWrapper(
            make_parallel(self.config["id"], **config),
            return_state=True,
            categorical_actions=True,
            use_mask=True,
            seed=seed,
            device=device,
        )

    def supports_continuous_actions(self) -> bool:
        return self.config["id"] == "palaestra/UcavDogfight-v2"

    def supports_discrete_actions(self) -> bool:
        return not self.supports_continuous_actions()

    def has_render(self, env: EnvBase) -> bool:
        return False

    def max_steps(self, env: EnvBase) -> int:
        return 50

    def group_map(self, env: EnvBase) -> dict[str, list[str]]:
        return env.group_map

    def observation_spec(self, env: EnvBase) -> Composite:
        spec = env.observation_spec.clone()
        for group in self.group_map(env):
            for name in list(spec[group].keys()):
                if name != "observation":
                    del spec[group, name]
        del spec["state"]
        return spec

    def state_spec(self, env: EnvBase) -> Composite | None:
        return Composite({"state": env.observation_spec["state"].clone()})

    def action_spec(self, env: EnvBase) -> Composite:
        return env.full_action_spec

    def info_spec(self, env: EnvBase) -> Composite | None:
        return None

    def action_mask_spec(self, env: EnvBase) -> Composite | None:
        spec = env.observation_spec.clone()
        del spec["state"]
        for group in self.group_map(env):
            for name in list(spec[group].keys()):
                if name != "action_mask":
                    del spec[group, name]
            if spec[group].is_empty():
                del spec[group]
        return None if spec.is_empty() else spec

    @staticmethod
    def env_name() -> str:
        return "zoo"


class ZooTask(Task):
    """The one member that `TaskClass` wants a name from."""

    MATCH = None

    @staticmethod
    def associated_class() -> type[ZooClass]:
        return ZooClass


def learn(algorithm: Any, id: str, **config: Any) -> None:
    """One iteration of collecting and learning."""
    settings = ExperimentConfig.get_from_yaml()
    settings.loggers, settings.evaluation, settings.render = [], False, False
    settings.create_json = False
    settings.max_n_frames, settings.max_n_iters = None, 1
    settings.prefer_continuous_actions = id == "palaestra/UcavDogfight-v2"
    settings.on_policy_collected_frames_per_batch = settings.off_policy_collected_frames_per_batch = STEPS
    settings.on_policy_n_envs_per_worker = settings.off_policy_n_envs_per_worker = 1
    settings.on_policy_minibatch_size, settings.on_policy_n_minibatch_iters = 50, 1
    settings.off_policy_n_optimizer_steps, settings.off_policy_train_batch_size = 1, 50
    with tempfile.TemporaryDirectory() as folder:
        settings.save_folder = folder
        task = ZooClass(name="MATCH", config={"id": id, **config})
        models = {"model_config": MlpConfig.get_from_yaml(), "critic_model_config": MlpConfig.get_from_yaml()}
        made = Experiment(task=task, algorithm_config=algorithm.get_from_yaml(), seed=0, config=settings, **models)
        made.run()


@trial("parallel", "MAPPO on TeamPong, VDN on TeamTag, IPPO on UcavDogfight (continuous)")
def _() -> None:
    learn(MappoConfig, "palaestra/TeamPong-v0")
    learn(VdnConfig, "palaestra/TeamTag-v0")
    learn(IppoConfig, "palaestra/UcavDogfight-v2")


@trial("choices", 'MAPPO on composite choices with deaths (Arena), choices="discrete"')
def _() -> None:
    learn(MappoConfig, "palaestra/ArenaDuel2v2-v0", choices="discrete")


@trial("choices", "VDN on MultiDiscrete", limit="has no attribute 'n'")
def _() -> None:
    learn(VdnConfig, "palaestra/ArenaDuel2v2-v0")


if __name__ == "__main__":
    main("benchmarl", "torchrl", "torch")
