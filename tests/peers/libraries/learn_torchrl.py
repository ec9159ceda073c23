# pyright: reportMissingImports=false
"""TorchRL: its checker on its own wrappers of all ids (`GymEnv`, `PettingZooWrapper`), a collector, a PPO update."""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from peers.libraries.more_ids import ALL, ONE, TEXTS, TWO
from peers.libraries.trials import STEPS, main, trial, trial_of_ids
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import (
    ActionMask,
    GymEnv,
    GymWrapper,
    MarlGroupMapType,
    PettingZooWrapper,
    SerialEnv,
    TransformedEnv,
    check_env_specs,
)
from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from palaestra import zoo
from palaestra.registry import make_parallel


def update(env: Any) -> None:
    """Collects random-policy steps and takes one gradient step of PPO on continuous actions."""
    size = env.observation_spec["observation"].shape[-1]
    low, high = env.action_spec.space.low, env.action_spec.space.high
    net = torch.nn.Sequential(torch.nn.Linear(size, 2 * low.shape[-1]), NormalParamExtractor())
    actor = ProbabilisticActor(
        TensorDictModule(net, ["observation"], ["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": low, "high": high},
        return_log_prob=True,
    )
    critic = ValueOperator(torch.nn.Linear(size, 1), in_keys=["observation"])
    collector = Collector(env, actor, frames_per_batch=STEPS, total_frames=STEPS)
    loss = ClipPPOLoss(actor, critic)
    optimiser = torch.optim.Adam(loss.parameters())
    for batch in collector:
        GAE(gamma=0.99, lmbda=0.95, value_network=critic)(batch)
        values = loss(batch.reshape(-1))
        (values["loss_objective"] + values["loss_critic"]).backward()
        optimiser.step()
    collector.shutdown()


@trial_of_ids("check_env_specs of GymEnv", ALL)
def _(id: str) -> None:
    check_env_specs(GymEnv(id))


LATE = tuple(f"palaestra/SkirmishUnshaped-{name}-v0" for name in ("Waves", "Late", "Maps", "Turncoats"))
LATE += ("palaestra/Drill-Waves-v0", "palaestra/Drill-SplashWaves-v0")
"""Whose agents come late, or by chance."""
UNLIKE = ("palaestra/SpeakerListener-v0",)
"""Whose agents see and do different things."""
PARTS = ("palaestra/GraphConfront-v0", "palaestra/GraphConfront-Dungeons-v0")
"""Whose agents make two choices of different lengths."""
LIMITS = {
    "KeyError: 'red_": LATE,
    "Failed to stack tensors": UNLIKE,
    "expected sequence of length": PARTS,
    "invalid data type 'str'": TEXTS,
}


@trial_of_ids("check_env_specs of PettingZooWrapper", ALL, limits=LIMITS)
def _(id: str) -> None:
    check_env_specs(PettingZooWrapper(make_parallel(id), return_state=True, use_mask=True))


@trial_of_ids("check_env_specs of PettingZooWrapper, agents that come late, fixed_agents=True", LATE)
def _(id: str) -> None:
    check_env_specs(PettingZooWrapper(make_parallel(id, fixed_agents=True), return_state=True, use_mask=True))


@trial_of_ids("check_env_specs of PettingZooWrapper, unlike agents, ONE_GROUP_PER_AGENT", UNLIKE)
def _(id: str) -> None:
    groups = MarlGroupMapType.ONE_GROUP_PER_AGENT
    check_env_specs(PettingZooWrapper(make_parallel(id), return_state=True, use_mask=True, group_map=groups))


@trial_of_ids('check_env_specs of PettingZooWrapper, choices of unlike lengths, choices="discrete"', PARTS)
def _(id: str) -> None:
    check_env_specs(PettingZooWrapper(make_parallel(id, choices="discrete"), return_state=True, use_mask=True))


@trial("box", "GymEnv(id): specs, collector, PPO update on UcavTrack")
def _() -> None:
    check_env_specs(GymEnv("palaestra/UcavTrack-v3"))
    update(GymEnv("palaestra/UcavTrack-v3"))


@trial("opponent", "GymEnv(id) on TeamPong and UcavDogfight; infos read into the tensordict")
def _() -> None:
    for id in ("palaestra/TeamPong-v0", "palaestra/UcavDogfight-v2"):
        check_env_specs(GymEnv(id))
        read = GymWrapper(gymnasium.make(id)).auto_register_info_dict()
        assert "winner" in read.rollout(STEPS, break_when_any_done=False)["next"].keys()  # noqa: SIM118 (a TensorDict)
    update(GymEnv("palaestra/UcavDogfight-v2"))


@trial("choices", "GymEnv(id) on MultiDiscrete, unlike roles, Dict observations")
def _() -> None:
    for id in ("palaestra/ArenaDuel2v2-v0", "palaestra/SpeakerListener-v0"):
        check_env_specs(GymEnv(id))
        check_env_specs(GymEnv(id, observation="dict"))


@trial("choices", "ActionMask on Discrete, on MultiDiscrete and on a team's choices as one Discrete")
def _() -> None:
    for id, choices in ((ONE, "separate"), (TWO, "separate"), (TWO, "discrete")):
        made = gymnasium.make(id, mask="obs", choices=choices)
        env = TransformedEnv(GymWrapper(made, categorical_action_encoding=True))
        env.append_transform(ActionMask(mask_key="action_mask"))
        env.rollout(STEPS, break_when_any_done=False)


@trial("parallel", "PettingZooWrapper on TeamPong, TeamTag, UcavDogfight and masked agents")
def _() -> None:
    environments = [module.parallel_env() for module in (zoo.team_pong_v0, zoo.team_tag_v0, zoo.ucav_dogfight_v2)]
    for environment in (*environments, make_parallel(TWO)):
        env = PettingZooWrapper(environment, return_state=True, use_mask=True)
        check_env_specs(env)
        assert set(env.group_map) == {"red", "blue"}
        env.rollout(STEPS, break_when_any_done=False)


@trial("parallel", "PettingZooWrapper on agents that die, and on unlike roles")
def _() -> None:
    PettingZooWrapper(zoo.arena_duel2v2_v0.parallel_env(), use_mask=True).rollout(STEPS, break_when_any_done=False)
    speakers = zoo.speaker_listener_v0.parallel_env()
    env = PettingZooWrapper(speakers, use_mask=True, group_map=MarlGroupMapType.ONE_GROUP_PER_AGENT)
    env.rollout(STEPS, break_when_any_done=False)


@trial("vector", "GymEnv(id, num_envs=2), SerialEnv")
def _() -> None:
    GymEnv("palaestra/TeamTag-v0", num_envs=2).rollout(STEPS, break_when_any_done=False)
    SerialEnv(2, lambda: GymEnv("palaestra/TeamTag-v0")).rollout(STEPS, break_when_any_done=False)


@trial("vector", "GymWrapper on a native make_vec, same-step autoreset")
def _() -> None:
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    envs = gymnasium.make_vec("palaestra/UcavTrack-v3", num_envs=4, autoreset_mode=mode)
    update(GymWrapper(envs))


@trial("vector", "GymWrapper on a native make_vec, next-step autoreset", limit="autoreset")
def _() -> None:
    GymWrapper(gymnasium.make_vec("palaestra/UcavTrack-v3", num_envs=4))


if __name__ == "__main__":
    main("torchrl", "tensordict", "torch")
