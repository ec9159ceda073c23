"""The official checkers on all ids: Gymnasium's `check_env` and its tests of environments, PettingZoo's own tests."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # windows without a display

import gymnasium
import numpy as np
import pettingzoo
from gymnasium.utils.env_checker import check_env, data_equivalence
from peers.libraries.more_ids import ALL, ONE, TEXTS, TWO
from peers.libraries.trials import STEPS, main, trial, trial_of_ids
from pettingzoo.test import api_test, max_cycles_test, parallel_api_test, parallel_seed_test, render_test, seed_test
from pettingzoo.test.state_test import state_test

from palaestra import zoo
from palaestra.registry import zoo_name

# As in Gymnasium's own test of all its environments; and of a version that has a successor.
ALLOWED = (
    "A Box observation space m.* value is -?infinity",
    "For Box action spaces, we recommend",
    ".* is out of date",
)
CYCLES = 20
"""Decisions of a test of one id among all."""


def check(id: str, **keywords: Any) -> None:
    check_env(gymnasium.make(id, disable_env_checker=True, **keywords).unwrapped, skip_render_check=True)


def module_of(id: str) -> Any:
    return getattr(zoo, zoo_name(id))


@contextmanager
def no_warning() -> Iterator[None]:
    """Any warning is an error, but those that are `ALLOWED`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for message in ALLOWED:
            warnings.filterwarnings("ignore", rf"\x1b\[33mWARN: {message}")
        yield


@trial_of_ids("Gymnasium's check_env with every render mode, no warning", ALL)
def _(id: str) -> None:
    with no_warning():
        check_env(gymnasium.make(id, disable_env_checker=True).unwrapped)


@trial_of_ids("Gymnasium's passive checker without a warning; equal seeds, equal matches; a pickled environment", ALL)
def _(id: str) -> None:
    with no_warning():
        one, two = gymnasium.make(id), gymnasium.make(id)
        one.action_space.seed(0)
        assert data_equivalence(one.reset(seed=3), two.reset(seed=3))
        for k in range(CYCLES):
            if k == CYCLES // 2:
                two = pickle.loads(pickle.dumps(two))
            action = one.action_space.sample()
            step = one.step(action)
            assert data_equivalence(step, two.step(action))
            assert step[0] in one.observation_space
            if step[2] or step[3]:
                assert data_equivalence(one.reset(), two.reset())
        one.close()
        two.close()


@trial_of_ids("PettingZoo's parallel_api_test", ALL)
def _(id: str) -> None:
    parallel_api_test(module_of(id).parallel_env(), num_cycles=CYCLES)


@trial_of_ids("PettingZoo's parallel_seed_test", ALL)
def _(id: str) -> None:
    parallel_seed_test(module_of(id).parallel_env, num_cycles=CYCLES)


@trial_of_ids("PettingZoo's api_test of env and raw_env", ALL, limits={"has no attribute 'dtype'": TEXTS})
def _(id: str) -> None:
    api_test(module_of(id).env(), num_cycles=CYCLES)
    api_test(module_of(id).raw_env(), num_cycles=CYCLES)


LATE = ("palaestra/SkirmishUnshaped-Waves-v0", "palaestra/SkirmishUnshaped-Late-v0")
"""Whose agents come late: the test seeds the action spaces of those that are there at first."""


@trial_of_ids("PettingZoo's seed_test", ALL, limits={"Incorrect actions": LATE})
def _(id: str) -> None:
    seed_test(module_of(id).env, num_cycles=10 * CYCLES if id in LATE else CYCLES)


@trial_of_ids("PettingZoo's state_test", ALL)
def _(id: str) -> None:
    state_test(module_of(id).env(), module_of(id).parallel_env())


@trial_of_ids("PettingZoo's render_test, also in a window", ALL)
def _(id: str) -> None:
    render_test(module_of(id).env)


ENDS_EARLY = ("Drill-", "GraphPursuit", "SkirmishUnshaped-", "SearchQA-", "MathText-")
"""Families in which a match may end before its horizon of four, agents come late, or move in turns."""


@trial("ids", "PettingZoo's max_cycles_test, where random play lasts for four decisions")
def _() -> str:
    passed = 0
    for id in ALL:
        try:
            max_cycles_test(module_of(id))
            passed += 1
        except AssertionError:
            if not id.removeprefix("palaestra/").startswith(ENDS_EARLY):
                raise
    return f"{passed} of {len(ALL)} ids"


@trial("box", "check_env")
def _() -> None:
    check("palaestra/UcavTrack-v3")
    check("palaestra/CartPole-v0")


@trial("opponent", "check_env against a script, flat and Dict observations, one Discrete")
def _() -> None:
    for id in ("palaestra/TeamPong-v0", "palaestra/TeamTag-v0", "palaestra/UcavDogfight-v2"):
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
