"""Parameters of the rules through the wrappers, and methods only where an environment has what they say."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from games import aim, two_team  # noqa: F401 (aim registers its id)
from gymnasium.wrappers import OrderEnforcing

from palaestra.adapters.rows import rows
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.run.kernel import KernelSimulation
from palaestra.registry import make_batch
from palaestra.wrappers import SingleTeam, SwapSides, TeamAsAgent


def teams() -> Any:
    sim = KernelSimulation(two_team.game(), 1, compiled=False, autoreset_mode="off")
    return TeamAsAgent(GameParallelEnv(sim, observation="dict", mask=None))


def one_team() -> Any:
    return SingleTeam(teams())


@pytest.mark.parametrize("make", [teams, one_team, lambda: copy.deepcopy(teams())])
def test_setting_a_parameter_is_set_parameters(make: Callable[[], Any]):
    env = make()
    env.damage = 2.5
    sim = getattr(env, "teams_env", env).unwrapped.sim
    assert env.damage == 2.5
    assert sim.parameters["damage"].tolist() == [2.5]
    with pytest.raises(ValueError, match="damage must be in"):
        env.damage = -1.0
    with pytest.raises(AttributeError, match="did you mean 'damage'"):
        env.damge = 1.0
    with pytest.raises(AttributeError, match="did you mean 'damage'"):
        OrderEnforcing(one_team()).set_wrapper_attr("damge", 1.0)


def test_the_horizon_of_teams_is_that_of_the_match():
    env = teams()
    env.max_cycles = 9  # as PettingZoo's tests say it
    assert env.unwrapped.sim.parameters["horizon"].tolist() == [9.0]


def test_both_sides_of_a_swap_take_a_parameter():
    env: Any = SwapSides("palaestra/TeamPong-v0", compiled=False)
    OrderEnforcing(env).set_wrapper_attr("paddle_speed", 0.5)
    assert [one.sim.parameters["paddle_speed"].tolist() for one in env.envs] == [[0.5], [0.5]]


def test_rows_have_masks_where_agents_choose():
    words: dict[str, Any] = {"autoreset_mode": "same_step", "compiled": False}
    for id, chooses in (("palaestra/TeamPong-v0", True), ("tests/Aim-v0", False)):
        envs: Any = rows(make_batch(id, 2, **words))
        assert hasattr(envs, "action_masks") == chooses
        with pytest.raises(AttributeError, match="did you mean 'horizon'"):
            envs.horizn = 3
