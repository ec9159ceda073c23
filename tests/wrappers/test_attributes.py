"""Parameters of the rules through the wrappers, and methods only where an environment has what they say."""

from __future__ import annotations

from typing import Any

import pytest
from games import aim  # noqa: F401 (it registers its id)
from gymnasium.wrappers import OrderEnforcing

from palaestra.adapters.rows import rows
from palaestra.registry import make_batch
from palaestra.wrappers import SwapSides


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
