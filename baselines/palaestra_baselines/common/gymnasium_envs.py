"""Environments of Gymnasium: made, and played by a policy whose numbers lie in [-1, 1]."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import gymnasium
import numpy as np

from palaestra_baselines.common.agents import keywords
from palaestra_baselines.common.training import EVALUATION_SEED


def make_gymnasium(env_id: str, options: tuple[str, ...] = ()) -> gymnasium.Env[Any, Any]:
    """An environment of Gymnasium; what MuJoCo warns of while it is made is printed once a process.

    Raises:
        ModuleNotFoundError: MuJoCo, or another package that it needs, is not installed; gives the command to install.
    """
    try:
        with mujoco_warns_once():
            return gymnasium.make(env_id, **keywords(options))
    except gymnasium.error.DependencyNotInstalled as error:
        hint = ': pip install "gymnasium[mujoco]"' if "mujoco" in str(error).lower() else ""
        raise ModuleNotFoundError(f"{env_id} needs a package that is not installed ({error}){hint}") from error


@contextmanager
def mujoco_warns_once() -> Iterator[None]:
    """Prints each warning of MuJoCo in this block once a process; does nothing where MuJoCo is not installed."""
    try:
        mujoco: Any = importlib.import_module("mujoco")
    except ImportError:
        yield
        return
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(print_once)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


@cache
def print_once(text: str) -> None:
    """Prints a text to stderr, the first time that it is given."""
    print(f"MuJoCo: {text}", file=sys.stderr, flush=True)


def play_gymnasium(
    env_id: str, policy: Any, episodes: int, options: tuple[str, ...] = (), seed: int = EVALUATION_SEED
) -> list[float]:
    """Returns of episodes of an environment of Gymnasium, all played side by side.

    Args:
        env_id: Which.
        policy: Observations ``[n, inputs]`` to numbers in [-1, 1], ``[n, D]``.
        episodes: How many.
        options: Keywords of the environment.
        seed: Of the first episode; the others follow.
    """
    envs = [make_gymnasium(env_id, options) for _ in range(episodes)]
    seen = np.stack([np.ravel(env.reset(seed=seed + k)[0]) for k, env in enumerate(envs)])
    box: Any = envs[0].action_space
    middle, half = (box.high + box.low) / 2.0, (box.high - box.low) / 2.0
    returns, playing = [0.0] * episodes, list(range(episodes))
    while playing:
        actions = (middle.ravel() + half.ravel() * policy(seen[playing])).astype(box.dtype)
        for k, action in zip(list(playing), actions, strict=True):
            shown, reward, terminated, truncated, _ = envs[k].step(action.reshape(box.shape))
            seen[k], returns[k] = np.ravel(shown), returns[k] + float(reward)
            if terminated or truncated:
                playing.remove(k)
                envs[k].close()
    return returns
