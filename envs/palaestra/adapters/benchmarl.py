"""A BenchMARL task of any id, on the native batch: `palaestra.adapters.torchrl` with the keys that BenchMARL reads.

::

    from benchmarl.algorithms import MappoConfig
    from benchmarl.experiment import Experiment, ExperimentConfig
    from benchmarl.models.mlp import MlpConfig
    from palaestra.adapters.benchmarl import PalaestraTask

    Experiment(
        task=PalaestraTask("palaestra/TeamTag-v0", opponents={"blue": "mix"}),
        algorithm_config=MappoConfig.get_from_yaml(),
        model_config=MlpConfig.get_from_yaml(),
        critic_model_config=MlpConfig.get_from_yaml(),
        seed=0,
        config=ExperimentConfig.get_from_yaml(),
    ).run()

Every team without an opponent is a group with a policy of its own. The win rate of each team is logged as
``collection/info/win_rate_<team>``.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from palaestra import registry
from palaestra.game import Importing

with Importing(
    "benchmarl",
    "palaestra.adapters.benchmarl needs BenchMARL, which is not installed: pip install benchmarl",
):
    from benchmarl.environments.common import TaskClass
    from tensordict import TensorDictBase
    from torchrl.data import Categorical, Composite
    from torchrl.envs import EnvBase

from palaestra.adapters.torchrl import TorchRLEnv


class PalaestraTask(TaskClass):
    """A registered id as a BenchMARL task. Several choices of an agent are one (BenchMARL has no MultiDiscrete)."""

    def __init__(self, id: str, **config: Any) -> None:
        """Makes one match to see what kind of actions it has.

        Args:
            id: Registered id.
            **config: Keywords of `TorchRLEnv`: ``opponents``, ``observation``, ``threads``, parameters of the game, ...

        Raises:
            ValueError: The agents have both choices and real numbers, which no algorithm of BenchMARL plays.
        """
        super().__init__(registry.zoo_name(id), config)
        self.id = id
        env = TorchRLEnv(id, 1, **config)
        self.teams = tuple(env.sim.game.teams)
        kinds = {
            "discrete" if isinstance(leaf, Categorical) else "separate"
            for leaf in env.full_action_spec.values(True, True)
        }
        env.close()
        if len(kinds) > 1:
            raise ValueError(f"{id} has both choices and real numbers as actions: BenchMARL plays one kind")
        self.choices: Any = kinds.pop()

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        """A function that makes an environment of ``num_envs`` lanes; lane i plays the stream ``seed + i``."""

        def make() -> EnvBase:
            env = TorchRLEnv(self.id, num_envs, choices=self.choices, device=device, **self.config)
            env.set_seed(seed)
            return env

        return make

    def supports_continuous_actions(self) -> bool:
        """Whether actions are real numbers."""
        return not self.supports_discrete_actions()

    def supports_discrete_actions(self) -> bool:
        """Whether actions are choices."""
        return self.choices == "discrete"

    def max_steps(self, env: EnvBase) -> int:
        """The horizon of a match."""
        return int(env.sim.parameters["horizon"].max())

    def has_render(self, env: EnvBase) -> bool:
        """Whether the game has a picture."""
        return env.sim.game.render is not None

    def group_map(self, env: EnvBase) -> dict[str, list[str]]:
        """Names of the agents of each group."""
        return env.group_map

    def observation_spec(self, env: EnvBase) -> Composite:
        """Observations of each group."""
        return _members(env, "observation")

    def action_mask_spec(self, env: EnvBase) -> Composite | None:
        """Masks of each group, or None where the game forbids nothing."""
        found = _members(env, "action_mask")
        return None if found.is_empty() else found

    def action_spec(self, env: EnvBase) -> Composite:
        """Actions of each group."""
        return env.full_action_spec_unbatched

    def state_spec(self, env: EnvBase) -> Composite | None:
        """The global state, or None under ``state=False``."""
        seen = env.full_observation_spec_unbatched
        return Composite({"state": seen["state"].clone()}) if "state" in seen.keys() else None  # noqa: SIM118

    def info_spec(self, env: EnvBase) -> Composite | None:
        """None: what is known of a match is beside the groups, where it is logged all the same."""
        return None

    def log_info(self, batch: TensorDictBase) -> dict[str, float]:
        """Share of the matches ended in the batch that each team has won."""
        winners = batch.get(("next", "info", "winner"))[batch.get(("next", "done"))]
        shares = {team: (winners == number).float().mean().item() for number, team in enumerate(self.teams)}
        return {f"collection/info/win_rate_{team}": share for team, share in shares.items() if len(winners)}

    @staticmethod
    def env_name() -> str:
        """Name of the suite."""
        return "palaestra"

    @staticmethod
    def render_callback(experiment: Any, env: EnvBase, data: TensorDictBase) -> Any:
        """Picture of the first match, uint8 ``[H, W, 3]``."""
        return env.sim.render(0)


def _members(env: EnvBase, name: str) -> Composite:
    """One member of each group that has it, as specs of one lane."""
    seen = env.full_observation_spec_unbatched
    groups = {g: seen[g] for g in env.group_map if name in seen[g].keys()}  # noqa: SIM118
    return Composite({g: Composite({name: part[name].clone()}, shape=part.shape) for g, part in groups.items()})
