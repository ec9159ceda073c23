"""Attributes of faces: parameters that act when they are set, and methods only where a game has what they say."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from games import orchard, reach, two_team
from gymnasium.vector import SyncVectorEnv, VectorEnv
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, RecordEpisodeStatistics
from pettingzoo import AECEnv, ParallelEnv

from palaestra import registry
from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Parameter

TAG = "palaestra/TeamTag-v0"
GAME = two_team.game()


def simulation(game: Any = GAME, n: int = 1, mode: str = "off", **options: Any) -> Any:
    return KernelSimulation(game, n, compiled=False, autoreset_mode=mode, **options)


def single(game: Any = GAME) -> Any:
    return GameEnv(simulation(game, opponents={"blue": "random"}), observation="dict")


def wrapped() -> Any:
    return RecordEpisodeStatistics(OrderEnforcing(PassiveEnvChecker(single())))


def parallel() -> Any:
    return GameParallelEnv(simulation(), observation="dict", mask=None)


def native() -> Any:
    return GameVectorEnv(simulation(n=2, mode="next_step", opponents={"blue": "random"}), observation="dict")


def aec() -> Any:
    return GameAECEnv(parallel())


# -- parameters --------------------------------------------------------------------------------------------------------

Setter = Callable[[Any, str, Any], Any]
FACES: dict[str, tuple[Callable[[], Any], Setter, Callable[[Any], list[Any]]]] = {
    "Env": (single, setattr, lambda env: [env]),
    "wrapped Env": (wrapped, lambda env, *given: env.set_wrapper_attr(*given), lambda env: [env.unwrapped]),
    "Sync": (
        lambda: SyncVectorEnv([wrapped, wrapped]),
        lambda envs, *given: envs.set_attr(*given),
        lambda envs: [env.unwrapped for env in envs.envs],
    ),
    "native": (native, lambda envs, *given: envs.set_attr(*given), lambda envs: [envs]),
    "native's attribute": (native, setattr, lambda envs: [envs]),
    "ParallelEnv": (parallel, setattr, lambda env: [env]),
    "AECEnv": (aec, setattr, lambda env: [env, env.env]),
}
"""How each is made, how its users set an attribute, and what then has it."""


@pytest.mark.parametrize("kind", FACES)
def test_setting_a_parameter_is_set_parameters(kind: str):
    make, put, bases_of = FACES[kind]
    face = make()
    put(face, "damage", 2.5)
    for wrong in (-1.0, 11.0, float("nan"), None, "2"):
        with pytest.raises(ValueError, match="damage must be"):
            put(face, "damage", wrong)
    for base in bases_of(face):
        assert np.all(base.damage == 2.5)


@pytest.mark.check
def test_rewards_are_those_of_the_new_rules():
    keywords: dict[str, Any] = {"compiled": False, "opponent": "random"}
    seen = {}
    for way in ("default", "keyword", "attribute", "sync"):
        given: dict[str, Any] = {"contact_reward": 5.0} if way == "keyword" else {}
        envs: Any = SyncVectorEnv([lambda given=given: gymnasium.make(TAG, **keywords, **given)])
        if way == "attribute":
            envs.envs[0].unwrapped.contact_reward = 5.0
        if way == "sync":
            envs.set_attr("contact_reward", 5.0)
            assert envs.get_attr("contact_reward") == (5.0,)
        envs.reset(seed=3)
        envs.action_space.seed(3)
        seen[way] = [float(envs.step(envs.action_space.sample())[1][0]) for _ in range(120)]
    assert any(seen["default"])
    assert seen["attribute"] == seen["sync"] == seen["keyword"] == [5.0 * reward for reward in seen["default"]]


def test_parameters_read_as_what_holds_now():
    env, envs = single(), native()
    assert type(env.damage) is float
    assert env.get_wrapper_attr("damage") == env.damage == 0.6
    envs.damage = [1.0, 2.0]
    read: Any = envs.damage
    assert read.tolist() == [1.0, 2.0]
    read[0] = 9.0  # the caller's own
    assert envs.get_attr("damage") == (1.0, 2.0)
    assert {"damage", "hit_chance", "horizon"} <= set(dir(env))
    assert wrapped().has_wrapper_attr("damage")
    waiting = single(orchard.game())
    waiting.reset(seed=1)
    waiting.tempo = 3.0  # of the next match
    assert waiting.tempo == 1.0
    waiting.reset()
    assert waiting.tempo == 3.0


def test_the_horizon_of_all_faces_is_one_number():
    env = aec()
    env.max_cycles = 7
    env.unwrapped.reset(seed=1)
    assert env.horizon == env.unwrapped.max_cycles == 7


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda face: pickle.loads(pickle.dumps(face))])
def test_copies_keep_what_was_set_and_have_rules_of_their_own(copied: Callable[[Any], Any]):
    faces: list[Any] = [wrapped().unwrapped, native(), aec()]
    for face in faces:
        face.damage = 3.0
        other = copied(face)
        assert np.all(other.damage == 3.0)
        other.damage = 4.0
        assert np.all(face.damage == 3.0)


# -- what there is not -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FACES)
def test_an_unknown_attribute_is_refused_and_the_near_name_is_told(kind: str):
    make, put, bases_of = FACES[kind]
    face = make()
    with pytest.raises(AttributeError, match="has no parameter 'damge'; did you mean 'damage'"):
        put(face, "damge", 1.0)
    for base in bases_of(face):
        assert "damge" not in vars(base)
        assert not hasattr(base, "damge")
        with pytest.raises(AttributeError, match="did you mean 'damage'"):
            base.get_wrapper_attr("damge")


def test_what_gymnasium_and_users_set_stays_possible():
    env: Any = single()
    env.metadata, env.render_mode, env.spec = {**env.metadata, "render_fps": 3}, None, None
    env.np_random = np.random.default_rng(3)
    env._note = 3
    env.step = lambda action: "mine"
    assert (env._note, env.step(0)) == (3, "mine")
    assert OrderEnforcing(env).set_wrapper_attr("_other_note", 4)

    class Counted(GameEnv):
        def __init__(self, sim: Any) -> None:
            super().__init__(sim, observation="dict")
            self.count = 0

    derived: Any = Counted(simulation(opponents={"blue": "random"}))
    derived.count, derived.damage = 3, 2.0
    derived.colour = "red"
    assert (derived.count, derived.colour, derived.sim.parameters["damage"].tolist()) == (3, "red", [2.0])


@pytest.mark.parametrize("name", ["render_mode", "close", "spec", "sim", "observation_space", "np_random"])
def test_a_parameter_with_the_name_of_something_else_is_refused(name: str):
    game = replace(GAME, parameters=(*GAME.parameters, Parameter(name, 1.0)))
    with pytest.raises(ValueError, match=f"the parameter '{name}' has the name of an attribute of GameEnv.*rename"):
        single(game)


# -- methods by which libraries decide what an environment is ----------------------------------------------------------

WRAPPER = {"get_wrapper_attr", "set_wrapper_attr"}
ALWAYS = {"sim", "team_names", "end_reasons", *WRAPPER}
MATCH = {*ALWAYS, "agent_io", "control", "action_masks", "compute_reward"}
OWN = {
    GameEnv: (gymnasium.Env, MATCH),
    GameVectorEnv: (VectorEnv, MATCH - {"action_masks"} | {"copy", "autoreset_mode", "call", "get_attr", "set_attr"}),
    GameParallelEnv: (
        ParallelEnv,
        ALWAYS | {"agent_ios", "fixed_agents", "max_cycles", "state_space", "team_of", "teams"},
    ),
    GameAECEnv: (AECEnv, {"env", "max_cycles", "state_space", *WRAPPER}),
}
"""Attributes of faces that Gymnasium's and PettingZoo's classes have not. `CAPABILITIES` says when games have them."""


def goals_shown(env: Any) -> bool:
    space: Any = getattr(env, "single_observation_space", env.observation_space)
    return env.sim.game.goal_reward is not None and "achieved_goal" in getattr(space, "spaces", ())


def choices_made(env: Any) -> bool:
    space: Any = getattr(env, "single_action_space", env.action_space)
    parts = space.spaces.values() if isinstance(space, gymnasium.spaces.Dict) else [space]
    return any(isinstance(part, gymnasium.spaces.Discrete | gymnasium.spaces.MultiDiscrete) for part in parts)


CAPABILITIES = {"compute_reward": goals_shown, "action_masks": choices_made}


def check_capabilities(face: Any) -> None:
    """A face has a method exactly where its game has what the method says, and `metadata` names what `render` does."""
    for name, has_it in CAPABILITIES.items():
        if name in vars(type(face)):
            assert hasattr(face, name) == callable(getattr(face, name, None)) == bool(has_it(face)), (face, name)
    game = face.sim.game
    pictures = [mode for mode in face.metadata["render_modes"] if mode in ("rgb_array", "human")]
    assert bool(pictures) == bool(game.render)
    assert ("ansi" in face.metadata["render_modes"]) == bool(game.render_text)


def test_every_attribute_of_a_face_is_known_here():
    faces: list[Any] = [
        single(),
        native(),
        parallel(),
        aec(),
    ]
    assert [type(face) for face in faces] == list(OWN)
    parameters = {p.name for p in GAME.parameters}
    for face in faces:
        base, own = OWN[type(face)]
        announced = {name for kind in base.__mro__ for name in getattr(kind, "__annotations__", ())}
        known = (set(dir(base)) | announced | parameters | {"render_mode"}) - WRAPPER
        found = {name for name in dir(face) if name[0] != "_"} - known
        assert found == own, f"{type(face).__name__}: say in OWN, and in CAPABILITIES where only some games have it"


def test_goals_and_choices_decide_by_representation_and_by_action():
    for observation in ("flat", "goal"):
        env: Any = gymnasium.make("tests/Reach-v0", observation=observation, compiled=False)
        check_capabilities(env.unwrapped)
        assert hasattr(env.unwrapped, "compute_reward") == env.has_wrapper_attr("compute_reward")
        assert env.has_wrapper_attr("compute_reward") == (observation == "goal")
        envs: Any = gymnasium.make_vec("tests/Reach-v0", 2, observation=observation, compiled=False)
        check_capabilities(envs)
        assert hasattr(envs, "compute_reward") == (observation == "goal")
        assert not hasattr(env.unwrapped, "action_masks")
    assert reach.game().goal_reward is not None
    with pytest.raises(AttributeError, match="no attribute 'compute_reward': its game has no rewards by goals"):
        single().compute_reward(0, 0)
    with pytest.raises(RuntimeError, match="action_masks before reset"):
        single().action_masks()


FIRST = [rows_[0].id for _, rows_ in registry.pages() if rows_[0].id.startswith("palaestra/")]
OTHERS = [id for id in registry.ROWS if id.startswith("palaestra/") and id not in FIRST]


@pytest.mark.check
@pytest.mark.parametrize("id", [*FIRST, *(pytest.param(id, marks=pytest.mark.slow) for id in OTHERS)])
def test_an_environment_has_what_its_game_has(id: str):
    face = registry.make_env(id, compiled=False)
    check_capabilities(face)
    face.close()
