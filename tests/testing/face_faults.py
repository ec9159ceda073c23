"""Planted faults in what the faces make of their options; they join `planting.FAULTS` when imported."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from testing.planting import face, replace_step


@face("uncopied_results_are_equal", "vec", "in spite of copy=False")
def always_copies(vec: Any) -> None:
    """copy=False is ignored"""
    vec.copy = True


@face("agents_in_turn_see_the_same", "aec", "a reward with")
def late_rewards(aec: Any) -> None:
    """what an agent has earned is paid twice"""
    last = aec.last
    aec.last = lambda: ((r := last())[0], 2 * r[1], *r[2:])


@face("fixed_agents_play_the_same", "parallel", "with fixed_agents=True")
def unpaid_fixed_agents(parallel: Any) -> None:
    """with fixed agents nobody is paid"""
    if parallel.fixed_agents:
        replace_step(parallel, lambda _, r: (r[0], dict.fromkeys(r[1], 0.0), *r[2:]))


@face("joint_choices_play_the_same", "env", "separate choices and joint ones")
def reversed_joint_choices(env: Any) -> None:
    """joint choices are numbered from behind"""
    if isinstance(env.action_space, gymnasium.spaces.Discrete):
        step, last = env.step, int(env.action_space.n) - 1
        env.step = lambda action: step(last - action)


@face("masks_stand_where_they_are_asked_for", "env", "with masks in their observations|depends on where masks are")
def blinding_mask(env: Any) -> None:
    """beside a mask the observation is empty"""
    if env.agent_io.mask_mode == "obs":
        replace_step(
            env, lambda _, r: ({k: np.zeros_like(v) if k != "action_mask" else v for k, v in r[0].items()}, *r[1:])
        )


@face("faces_tell_what_they_play", "parallel", "max_cycles was set to")
def fixed_max_cycles(parallel: Any) -> None:
    """max_cycles changes what it says, but not the match"""
    first = int(parallel.sim.parameters["horizon"][0])
    parallel.reset = lambda seed=None, options=None, reset=parallel.reset: (
        parallel.sim.set_parameters(horizon=first),
        reset(seed, options),
    )[1]


@face("compiled_rules_equal_plain_python", "batch", "compiled and in plain Python")
def other_numbers_in_plain_python(sim: Any) -> None:
    """plain Python starts matches from another stream"""
    if not sim.compiled:
        sim.reset = lambda seed, reset=sim.reset: reset(seed=seed + 1)
