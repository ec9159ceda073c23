"""The official checkers: Gymnasium's `check_env` on one id of each kind, PettingZoo's tests on the same games."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pettingzoo
from gymnasium.utils.env_checker import check_env
from peers.libraries.more_ids import ONE, TWO
from peers.libraries.trials import STEPS, main, trial
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, seed_test

from palaestra import zoo


def check(id: str, **keywords: Any) -> None:
    check_env(gymnasium.make(id, disable_env_checker=True, **keywords).unwrapped, skip_render_check=True)


@trial("box", "check_env")
def _() -> None:
    check("palaestra/UcavTrack-v1")
    check("palaestra/CartPole-v0")


@trial("opponent", "check_env against a script, flat and Dict observations, one Discrete")
def _() -> None:
    for id in ("palaestra/TeamPong-v0", "palaestra/TeamTag-v0", "palaestra/UcavDogfight-v1"):
        check(id)
        check(id, observation="dict")


@trial("choices", "check_env on MultiDiscrete, Dict and masks")
def _() -> None:
    for id in ("palaestra/ArenaDuel2v2-v0", "palaestra/SpeakerListener-v0", ONE, TWO):
        check(id)
    check(TWO, mask="obs")


@trial("choices", 'choices="discrete" makes one Discrete of a team\'s choices')
def _() -> None:
    for id in ("palaestra/TeamPong-v0", "palaestra/ArenaDuel2v2-v0", TWO):
        env = gymnasium.make(id, choices="discrete")
        assert isinstance(env.action_space, gymnasium.spaces.Discrete)
        check(id, choices="discrete")


@trial("parallel", "PettingZoo's tests of the API, seeds and cycles")
def _() -> None:
    for name in ("team_pong_v0", "team_tag_v0", "arena_duel2v2_v0", "speaker_listener_v0"):
        module = getattr(zoo, name)
        parallel_api_test(module.parallel_env(), num_cycles=STEPS)
        parallel_seed_test(module.parallel_env)
        api_test(module.env(), num_cycles=STEPS)
        seed_test(module.env)
        max_cycles_test(module)


@trial("parallel", 'pettingzoo.make("parallel") and ("aec") by id')
def _() -> None:
    pettingzoo.make("parallel", "palaestra/TeamPong-v0").reset(seed=0)
    pettingzoo.make("aec", "palaestra/TeamPong-v0").reset(seed=0)


@trial("vector", "make_vec native, sync and async")
def _() -> None:
    for mode in (None, "sync", "async"):
        envs = gymnasium.make_vec("palaestra/TeamTag-v0", num_envs=2, vectorization_mode=mode)
        envs.reset(seed=0)
        for _ in range(STEPS):
            seen, rewards, *_ = envs.step(envs.action_space.sample())
            assert np.isfinite(np.asarray(seen)).all()
            assert np.isfinite(np.asarray(rewards)).all()
        envs.close()


if __name__ == "__main__":
    main("pettingzoo")
