"""The promises of `palaestra.adapters.rllib` to RLlib's multi-agent runners."""

# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import palaestra

pytestmark = pytest.mark.peers
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("ray.rllib")
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule
    from ray.rllib.utils.pre_checks.env import check_multiagent_environments

    from palaestra.adapters.rllib import MatchEnv, policy_by_team, register

PONG, SOCCER = "palaestra/TeamPong-v0", "palaestra/GridSoccer-v0"
DUEL, RELAY, DEPOT = "rllib/Duel-v0", "rllib/Relay-v0", "rllib/Depot-v0"
for id in (DUEL, RELAY, DEPOT):
    palaestra.register(id, f"games.{id[6:-3].lower()}:game")


def random_match(env: MatchEnv, seed: int = 0) -> list[Any]:
    """Plays a match by chance; what each step gave."""
    rng = np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    steps: list[Any] = []
    while not steps or not (steps[-1][2]["__all__"] or steps[-1][3]["__all__"]):
        actions = {a: rng.integers(env.action_spaces[a].n) for a in observations}  # type: ignore[union-attr]
        steps.append(env.step(actions))
        observations = steps[-1][0]
    return steps


def test_all_agents_of_a_simultaneous_game_are_shown_in_every_step():
    env = MatchEnv(PONG, horizon=20)
    assert env.possible_agents == ["red_0", "red_1", "blue_0", "blue_1"]
    for observations, rewards, terminated, _, infos in random_match(env):
        assert list(observations) == list(rewards) == list(infos) == env.possible_agents
        assert terminated.keys() == {*env.possible_agents, "__all__"}
        assert all(observations[a] in env.observation_spaces[a] for a in observations)  # type: ignore[index]


def test_only_agents_that_are_asked_are_shown_and_paid_what_they_earned_in_the_meantime():
    env = MatchEnv(RELAY, compiled=False)
    observations, _ = env.reset(seed=0)
    assert list(observations) == ["red_0"]
    paid, flags = [], []
    for _ in range(5):
        observations, rewards, terminated, truncated, infos = env.step(dict.fromkeys(observations, 0))
        assert list(observations) == list(rewards) == list(infos)
        paid.append(rewards)
        assert not terminated["__all__"]  # the horizon truncates
        flags.append([name for name in terminated if terminated[name] or truncated[name]])
    assert paid == [
        {"blue_0": -1, "blue_1": -1},
        {"red_0": 1 + 2, "red_1": 2},  # red_1 arrives
        {"blue_0": -2 - 3, "blue_1": -2 - 3},  # blue_0 leaves
        {"red_0": 3 + 4, "red_1": 3 + 4},
        {"red_0": 5, "red_1": 5, "blue_1": -4 - 5},
    ]
    assert flags == [[], [], ["blue_0"], [], ["red_0", "red_1", "blue_1", "__all__"]]


def test_agents_that_were_never_asked_are_not_in_the_end_of_a_match():
    env = MatchEnv(RELAY, compiled=False, ends_at=1)
    env.reset(seed=0)
    _, rewards, terminated, truncated, _ = env.step({"red_0": 0})
    assert rewards == {"red_0": 1}
    assert terminated == {"red_0": True, "__all__": True}
    assert truncated == {"red_0": False, "__all__": False}


def test_rllib_s_own_checker_takes_a_match_that_ends_with_its_first_decision():
    env = MatchEnv(RELAY, compiled=False, ends_at=1)
    check_multiagent_environments(env)
    assert env.agents == ["red_0"]


def test_opponents_are_not_shown_and_their_turns_are_played():
    env = MatchEnv(SOCCER, order="alternating", opponents={"blue": "striker"}, horizon=50)
    steps = random_match(env)
    assert len(steps) > 3
    assert all(list(step[0]) == ["red_0"] for step in steps)


def test_the_dead_are_shown_once_more_and_those_that_never_came_not_at_all():
    env = MatchEnv(DEPOT, compiled=False)
    observations, _ = env.reset(seed=0)
    assert list(observations) == ["red_0", "red_1", "blue_0"]  # blue_1 comes later
    ends = []
    for order in (2, 1, 2, 0):
        observations, _, terminated, _, _ = env.step({a: order if a == "red_0" else 0 for a in observations})
        ends.append(terminated.get("red_0"))
    assert ends == [False, False, True, None]
    assert "red_0" not in env.agents
    assert "blue_1" in observations


def test_masks_have_the_names_and_the_type_of_rllibs_masking_module():
    env = MatchEnv(DUEL, mask="obs", horizon=20)
    observations, _ = env.reset(seed=0)
    assert observations["red_0"].keys() == {"observations", "action_mask"}
    assert observations["red_0"]["action_mask"].dtype == np.float32
    assert observations["red_0"] in env.observation_spaces["red_0"]  # type: ignore[index]


def test_masks_of_several_choices_stand_in_one_row_as_the_logits_do():
    env = MatchEnv("palaestra/GraphConfront-v0", mask="obs", horizon=20)
    observations, _ = env.reset(seed=0)
    assert observations["red_0"]["action_mask"].shape == (5 + 4,)
    assert observations["red_0"]["action_mask"].dtype == np.float32
    assert observations["red_0"] in env.observation_spaces["red_0"]  # type: ignore[index]


def test_wrong_keywords_are_refused():
    with pytest.raises(KeyError, match=r"Did you mean 'palaestra/TeamPong-v0'"):
        register("palaestra/TeamPng-v0")
    with pytest.raises(TypeError, match="fixed_agents: not a keyword of MatchEnv"):
        MatchEnv(PONG, fixed_agents=True)
    with pytest.raises(TypeError, match="horizont"):
        MatchEnv(PONG, horizont=3)


def test_a_policy_is_named_as_the_team():
    assert policy_by_team("red_1", object()) == "red"
    assert policy_by_team("left_wing_0", None, worker=1) == "left_wing"


@pytest.mark.parametrize("id", [PONG, SOCCER])
def test_ppo_trains_both_teams_by_name(id: str):
    name = register(id, horizon=20, **({"order": "alternating"} if id == SOCCER else {}))
    config = _quick(PPOConfig().environment(name)).multi_agent(
        policies={"red", "blue"}, policy_mapping_fn=policy_by_team
    )
    learners, _ = _train(config)
    assert {"red", "blue"} <= learners.keys()
    assert all(learners[team]["num_module_steps_trained"] > 0 for team in ("red", "blue"))


def test_rllibs_masking_module_chooses_nothing_illegal():
    name = register(DUEL, "duel", mask="obs", horizon=20)
    config = _quick(PPOConfig().environment(name)).multi_agent(
        policies={"red", "blue"}, policy_mapping_fn=policy_by_team
    )
    config = config.rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
    learners, episodes = _train(config, matches=8)
    assert learners["red"]["num_module_steps_trained"] > 0
    infos = [info for episode in episodes for one in episode.agent_episodes.values() for info in one.get_infos()]
    assert len(infos) > 40
    assert not any(info["illegal"] for info in infos)


def test_one_team_plays_in_the_native_batch_by_id():
    config = _quick(PPOConfig().environment("palaestra:palaestra/TeamPong-v0", env_config={"opponent": "tracker"}))
    config = config.env_runners(num_envs_per_env_runner=4, gym_env_vectorize_mode="vector_entry_point")
    assert _train(config)[0]["default_policy"]["num_module_steps_trained"] > 0


def _quick(config: Any) -> Any:
    config = config.env_runners(num_env_runners=0, rollout_fragment_length="auto")
    return config.training(train_batch_size_per_learner=200, minibatch_size=100, num_epochs=1)


def _train(config: Any, matches: int = 0) -> tuple[Any, Any]:
    """Results of the learners after one update, and then so many matches."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        algorithm = config.build_algo()
        try:
            learners = algorithm.train()["learners"]
            return learners, algorithm.env_runner.sample(num_episodes=matches) if matches else []
        finally:
            algorithm.stop()
