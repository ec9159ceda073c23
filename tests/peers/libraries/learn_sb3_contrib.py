# pyright: reportMissingImports=false
"""sb3-contrib: masks of all ids with choices; masked, recurrent and quantile learners."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from peers.libraries.more_ids import ALL, ONE, TWO
from peers.libraries.trials import STEPS, main, trial, trial_of_ids
from sb3_contrib import QRDQN, TQC, MaskablePPO, RecurrentPPO
from sb3_contrib.common.maskable.distributions import make_masked_proba_distribution
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from sb3_contrib.common.wrappers import ActionMasker
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from palaestra.adapters.sb3 import as_vec_env

ON_POLICY = {"n_steps": 100, "batch_size": 50, "device": "cpu"}
OFF_POLICY = {"learning_starts": 100, "train_freq": 50, "batch_size": 32, "buffer_size": 1000, "device": "cpu"}


def chooses(id: str) -> bool:
    """Whether the action of the id is a choice, or several."""
    return isinstance(gymnasium.make(id).action_space, spaces.Discrete | spaces.MultiDiscrete)


def action_masks(env: Any) -> Any:
    """The masks of an environment."""
    return env.unwrapped.action_masks()


@trial_of_ids("masks that a masked distribution draws from, and ActionMasker", [id for id in ALL if chooses(id)])
def _(id: str) -> None:
    env = gymnasium.make(id)
    check_env(env, warn=False)
    assert is_masking_supported(env)
    wrapped = ActionMasker(env, action_masks)
    distribution = make_masked_proba_distribution(env.action_space)
    layer = distribution.proba_distribution_net(8)
    env.reset(seed=0)
    for _ in range(20):
        masks = get_action_masks(env)
        np.testing.assert_array_equal(get_action_masks(wrapped), masks)
        distribution.proba_distribution(layer(torch.zeros(1, 8)))
        distribution.apply_masking(masks)
        *_, terminated, truncated, info = env.step(distribution.sample()[0].numpy())
        assert not np.any(info.get("illegal", False))
        if terminated or truncated:
            env.reset()


@trial("box", "TQC on UcavTrack, RecurrentPPO on UcavPursuit")
def _() -> None:
    TQC("MlpPolicy", "palaestra/UcavTrack-v3", **OFF_POLICY).learn(STEPS)
    RecurrentPPO("MlpLstmPolicy", "palaestra/UcavPursuit-v2", **ON_POLICY).learn(STEPS)


@trial("opponent", "RecurrentPPO, and MaskablePPO where nothing is forbidden, on TeamPong")
def _() -> None:
    RecurrentPPO("MlpLstmPolicy", "palaestra/TeamPong-v0", **ON_POLICY).learn(STEPS)
    MaskablePPO("MlpPolicy", gymnasium.make("palaestra/TeamPong-v0"), **ON_POLICY).learn(STEPS)


@trial("choices", "MaskablePPO on masked Discrete and MultiDiscrete, none forbidden is chosen")
def _() -> None:
    kinds: tuple[tuple[str, dict[str, Any]], ...] = ((ONE, {}), (TWO, {}), (TWO, {"choices": "discrete"}))
    for id, keywords in kinds:
        env = gymnasium.make(id, **keywords)
        model = MaskablePPO("MlpPolicy", env, **ON_POLICY).learn(STEPS)
        seen, _ = env.reset(seed=0)
        for _ in range(STEPS):
            action, _ = model.predict(seen, action_masks=get_action_masks(env))
            seen, _, terminated, truncated, info = env.step(action)
            assert not info["illegal"].any() if hasattr(info["illegal"], "any") else not info["illegal"]
            if terminated or truncated:
                seen, _ = env.reset()


@trial("choices", "ActionMasker, QRDQN on Discrete")
def _() -> None:
    masked = ActionMasker(gymnasium.make(ONE), action_masks)
    MaskablePPO("MlpPolicy", masked, **ON_POLICY).learn(STEPS)
    QRDQN("MlpPolicy", gymnasium.make(TWO, choices="discrete"), **OFF_POLICY).learn(STEPS)


@trial("vector", "MaskablePPO on DummyVecEnv")
def _() -> None:
    MaskablePPO("MlpPolicy", make_vec_env(TWO, 2), **ON_POLICY).learn(STEPS)


@trial("adapter", "MaskablePPO on adapters.sb3.as_vec_env, a team and a row for every agent")
def _() -> None:
    MaskablePPO("MlpPolicy", as_vec_env(TWO, 2), **ON_POLICY).learn(STEPS)
    MaskablePPO("MlpPolicy", as_vec_env(TWO, 2, agents="rows", team="red"), **ON_POLICY).learn(STEPS)


if __name__ == "__main__":
    main("sb3-contrib", "torch")
