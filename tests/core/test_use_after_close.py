"""A closed face plays on, as Gymnasium's own environments do; a closed simulation does not."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from games import body_game, logged_pucks, two_team
from games.play import all_bytes, random_actions

from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.run import input_log
from palaestra.core.run.call_guard import InterruptedCallError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation

GAMES = {"kernel": two_team.game(), "saving": body_game.game(), "logged": logged_pucks.game()}


def simulation(kind: str, n: int = 1, **options: Any) -> Any:
    game = GAMES[kind]
    sim = (KernelSimulation if game.physics is None else PhysicsSimulation)(game, n, compiled=False, **options)
    sim.reset(seed=1)
    return sim


@pytest.mark.parametrize("kind", GAMES)
def test_a_suspended_simulation_goes_on_where_it_was(kind: str):
    sim, other = (simulation(kind, 2, autoreset_mode="next_step") for _ in range(2))
    for number in range(12):
        if number % 3 == 1:
            sim.suspend()
            sim.suspend()
            assert sim.guard.closed
        for one in (sim, other):
            one.step(random_actions(one, np.random.default_rng(number)))
        np.testing.assert_array_equal(all_bytes(sim), all_bytes(other))
    sim.suspend()
    np.testing.assert_array_equal(all_bytes(copy.deepcopy(sim)), all_bytes(other))


@pytest.mark.parametrize("kind", GAMES)
def test_a_simulation_that_is_closed_for_good_stays_closed(kind: str):
    for ways in (("close",), ("suspend", "close"), ("close", "suspend")):
        sim = simulation(kind)
        for way in ways:
            getattr(sim, way)()
        for call in (sim.step, sim.reset, sim.snapshot, lambda sim=sim: sim.set_parameters(horizon=3)):
            with pytest.raises(RuntimeError, match="closed: make another"):
                call()


def test_an_engine_whose_log_was_given_up_wants_a_reset_first(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(input_log, "LOG_BYTES", 0)
    sim = simulation("logged")
    sim.step()
    sim.suspend()
    with pytest.raises(InterruptedCallError, match=r"after an interrupted close.*Call reset\(\)"):
        sim.step()
    sim.reset(seed=1)
    sim.step()


MAKERS: dict[str, Callable[[Any], Any]] = {
    "Env": lambda sim: GameEnv(sim, observation="dict"),
    "VectorEnv": lambda sim: GameVectorEnv(sim, observation="dict"),
    "ParallelEnv": lambda sim: GameParallelEnv(sim, observation="dict"),
    "AECEnv": lambda sim: GameAECEnv(GameParallelEnv(sim, observation="dict")),
}


@pytest.mark.parametrize("kind", ["kernel", "saving"])
@pytest.mark.parametrize("face", MAKERS)
def test_faces_play_on_after_close(face: str, kind: str):
    env = MAKERS[face](simulation(kind, autoreset_mode="off"))
    env.reset(seed=1)
    env.close()
    env.close()
    if face == "AECEnv":
        env.step(env.action_space(env.agent_selection).sample())
    elif face == "ParallelEnv":
        env.step({a: env.action_space(a).sample() for a in env.agents})
    else:
        env.step(env.action_space.sample())
    env.close()
    env.unwrapped.horizon = 5
    env.reset(seed=2)
    env.close()
    assert env.unwrapped.sim.guard.closed
