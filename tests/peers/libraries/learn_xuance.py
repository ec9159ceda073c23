# pyright: reportMissingImports=false
"""XuanCe: PPO by id in its Gymnasium environment, QMIX on our adapter in its registry."""

from __future__ import annotations

import contextlib
import importlib.resources
import os
import tempfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import xuance
from peers.libraries.trials import STEPS, main, trial
from xuance.environment import REGISTRY_MULTI_AGENT_ENV

from palaestra.adapters.xuance import TeamRawEnv

REGISTRY_MULTI_AGENT_ENV["palaestra"] = TeamRawEnv
CONFIGS = Path(str(importlib.resources.files("xuance"))) / "configs"
SMALL = {"parallels": 2, "running_steps": STEPS, "test_mode": False, "benchmark": False, "seed": 1, "render": False}


def learn(method: str, config: str, id: str, **settings: Any) -> None:
    """Trains with the settings of one of XuanCe's own files, but for the environment and the number of steps."""
    given = Namespace(env_id=id, **{**SMALL, **settings})
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        runner = xuance.get_runner(method, "", id, config_path=os.fspath(CONFIGS / config), parser_args=given)
        runner.run(mode="train")


@trial("opponent", "PPO by id: XuanCe asks Gymnasium's TimeLimit for a private name", limit="_max_episode_steps")
def _() -> None:
    settings = {"env_name": "Classic Control", "horizon_size": 50, "n_epochs": 1, "n_minibatch": 2}
    learn("ppo", "ppo/classic_control/CartPole-v1.yaml", "palaestra:palaestra/GridSoccer-v0", **settings)


@trial("adapter", "QMIX with masks on TeamPong against a chosen script, and on the Arena with deaths")
def _() -> None:
    settings = {"env_name": "palaestra", "use_actions_mask": True, "start_training": 50, "batch_size": 32}
    for id, keywords in (("TeamPong", {"opponent": "chaser"}), ("ArenaDuel2v2", {})):
        learn("qmix", "qmix/mpe/simple_spread_v3.yaml", f"palaestra/{id}-v0", env_keywords=keywords, **settings)


if __name__ == "__main__":
    main("xuance", "torch")
