"""Teams as agents: observations, actions and rewards of members, joined and split, for our and other environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env, data_equivalence
from pettingzoo import ParallelEnv
from pettingzoo.test import parallel_api_test
from testing.broken_games import NUMBER

import palaestra
from palaestra import registry
from palaestra.testing.checks.standard_checks import SAMPLES_MASKS
from palaestra.wrappers import CheckZeroSum, SingleTeam, TeamAsAgent, ZeroSumError, teams_of

DUEL, MELEE, RAID = "wrappers/Duel-v0", "wrappers/Melee-v0", "wrappers/Raid-v0"
palaestra.register(DUEL, "testing.broken_games:duel", family="test")
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test")
palaestra.register(RAID, "games.two_team:game", family="test")
OPTIONS: dict[str, dict[str, Any]] = {DUEL: {}, MELEE: {}, RAID: {"observation": "dict"}}


class Scales(ParallelEnv):
    """An environment without our classes: two agents a team put weights on scales; each agent has its own reward."""

    render_mode = None

    def __init__(self, weights: tuple[int, ...] = (5, 5, 5, 5), shared: bool = True) -> None:
        self.metadata = {"name": "scales_v0", "render_modes": []}
        self.possible_agents = ["left_0", "left_1", "right_0", "right_1"]
        self.agents: list[str] = []
        self._sees = spaces.Box(-1e3, 1e3, (1,), np.float32)
        self._does = {a: spaces.Discrete(n) for a, n in zip(self.possible_agents, weights, strict=True)}
        self._shared = shared

    def observation_space(self, agent: str) -> spaces.Space:
        return self._sees

    def action_space(self, agent: str) -> spaces.Space:
        return self._does[agent]

    def reset(self, seed: int | None = None, options: dict | None = None) -> Any:
        self.agents, self.tilt, self.steps = list(self.possible_agents), 0.0, 0
        return self._seen(), {a: {} for a in self.agents}

    def _seen(self) -> dict[str, np.ndarray]:
        return {a: np.array([self.tilt if a < "m" else -self.tilt], np.float32) for a in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        gain = {a: float(n) for a, n in actions.items()}
        change = gain["left_0"] + gain["left_1"] - gain["right_0"] - gain["right_1"]
        self.tilt += change
        self.steps += 1
        rewards = {a: (change if a < "m" else -change) if self._shared else gain[a] for a in self.agents}
        over = self.steps == 10
        result = (self._seen(), rewards, dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, over))
        infos: dict[str, dict] = {a: {} for a in self.agents}
        self.agents = [] if over else self.agents
        return (*result, infos)


def parallel(id: str, **keywords: Any) -> Any:
    return registry.make_parallel(id, **{**OPTIONS[id], **keywords})


def test_teams_are_defined_by_the_environment_or_by_the_names_of_its_agents():
    assert teams_of(parallel(RAID)) == {"red": ("red_0", "red_1", "red_2"), "blue": ("blue_0", "blue_1")}
    assert teams_of(Scales()) == {"left": ("left_0", "left_1"), "right": ("right_0", "right_1")}
    lonely = Scales()
    lonely.possible_agents = ["left", "right_0"]
    with pytest.raises(ValueError, match="'left' is not named team_number"):
        teams_of(lonely)


@pytest.mark.parametrize("id", [DUEL, MELEE, RAID])
def test_pettingzoo_takes_a_team_for_an_agent(id: str):
    env = TeamAsAgent(parallel(id, **({} if SAMPLES_MASKS else {"mask": None})))
    for team in env.possible_agents:
        env.action_space(team).seed(0)
    parallel_api_test(env, num_cycles=60)


def test_pettingzoo_takes_the_teams_of_others_too():
    parallel_api_test(TeamAsAgent(Scales()), num_cycles=60)


def test_choices_become_one_multidiscrete_and_boxes_are_stacked():
    env = TeamAsAgent(Scales((2, 3, 4, 5)))
    assert env.possible_agents == ["left", "right"]
    assert env.action_space("left") == spaces.MultiDiscrete([2, 3])
    assert env.action_space("right") == spaces.MultiDiscrete([4, 5])
    assert env.observation_space("left") == spaces.Box(-1e3, 1e3, (2, 1), np.float32)
    env.reset()
    seen, rewards, *_ = env.step({"left": np.array([1, 2]), "right": np.array([3, 4])})
    np.testing.assert_array_equal(seen["left"], [[-4], [-4]])
    assert rewards == {"left": -4, "right": 4}
    assert TeamAsAgent(parallel(MELEE)).action_space("red").shape == (10,)


def test_a_team_plays_as_its_members_would():
    joint, single = TeamAsAgent(parallel(DUEL)), parallel(DUEL)
    seen, _ = joint.reset(seed=3)
    alone, _ = single.reset(seed=3)
    for team in joint.agents:
        joint.action_space(team).seed(0)
    terminations, truncations, infos, printed = {}, {}, {}, {}
    while joint.agents:
        actions = {team: joint.action_space(team).sample(seen[team]["action_mask"]) for team in joint.agents}
        parts = {f"{team}_{k}": int(action[k]) for team, action in actions.items() for k in range(2)}
        seen, rewards, terminations, truncations, infos = joint.step(actions)
        alone, by_agent, *_, printed = single.step({a: parts[a] for a in single.agents})
        for agent, row in alone.items():
            team, number = agent.split("_")
            np.testing.assert_array_equal(seen[team]["observation"][int(number)], row["observation"])
            np.testing.assert_array_equal(seen[team]["action_mask"][int(number)], row["action_mask"])
            assert rewards[team] == by_agent[agent]
            assert infos[team]["agents"][agent]["team"] == printed[agent]["team"]
    assert single.agents == []
    assert all(terminations[t] != truncations[t] for t in ("red", "blue"))
    last = next(iter(printed.values()))
    assert infos["red"]["end_reason"] == infos["blue"]["end_reason"] == last["end_reason"]


def test_an_agent_that_left_shows_zeros_and_has_one_choice():
    env = TeamAsAgent(parallel(DUEL))
    env.reset(seed=0)
    env.unwrapped.sim.states["health"][0, 1] = 0.0
    seen, *_ = env.step({"red": np.array([0, 0]), "blue": np.array([0, 0])})  # red_1 leaves
    seen, *_ = env.step({"red": np.array([0, 3]), "blue": np.array([0, 0])})
    assert not seen["red"]["observation"][1, :4].any()
    np.testing.assert_array_equal(seen["red"]["action_mask"][1], [1, 0, 0, 0])
    assert env.agents == ["red", "blue"]


def test_members_with_rewards_of_their_own_are_added_up_if_asked():
    with pytest.raises(ValueError, match=r'members of left have different rewards, .*reward="sum"'):
        step_all(TeamAsAgent(Scales(shared=False)))
    assert step_all(TeamAsAgent(Scales(shared=False), reward="sum"))[1] == {"left": 1, "right": 5}


def step_all(env: Any) -> Any:
    env.reset()
    return env.step({"left": np.array([0, 1]), "right": np.array([2, 3])})


def test_a_team_without_an_action_is_refused():
    env = TeamAsAgent(Scales())
    env.reset()
    with pytest.raises(KeyError, match="left, right must act"):
        env.step({"left": np.array([0, 0])})
    with pytest.raises(ValueError, match="has 2 numbers, got shape"):
        env.step({"left": np.array([0]), "right": np.array([0, 0])})


@pytest.mark.parametrize("id", [DUEL, MELEE])
def test_gymnasium_takes_a_single_team(id: str):
    check_env(SingleTeam(parallel(id)), skip_render_check=True)


def test_gymnasium_takes_the_single_team_of_others():
    check_env(SingleTeam(Scales(), "right"), skip_render_check=True)


def test_a_single_team_meets_the_policies_of_the_others():
    shown = []

    def heaviest(observation: np.ndarray) -> np.ndarray:
        shown.append(observation.copy())
        return np.array([4, 4])

    env = SingleTeam(Scales(), "left", opponent=heaviest)
    env.reset()
    observation, reward, *_ = env.step(np.array([1, 0]))
    assert reward == -7
    np.testing.assert_array_equal(observation, [[-7], [-7]])
    env.step(np.array([1, 0]))
    np.testing.assert_array_equal(shown, [[[0], [0]], [[7], [7]]])


def test_a_single_team_equals_the_suites_own_env_against_the_same_player():
    def brave(masks: Any) -> np.ndarray:
        return np.array([3 if mask[3] else 0 for mask in masks])

    own = gymnasium.make(DUEL, opponent=lambda seen: np.where(seen["fighter"][:, :, 2] > 0, 3, 0)).unwrapped
    env = SingleTeam(parallel(DUEL), "red", opponent=lambda seen: brave(seen["action_mask"]))
    env.reset(seed=5)
    own.reset(seed=5)
    number = 0
    for number in range(30):
        action = np.array([number % 2 * 3, 0])
        ours, theirs = env.step(action), own.step(action)
        assert ours[1:4] == theirs[1:4]
        assert data_equivalence(ours[4]["action_mask"], theirs[4]["action_mask"], exact=True)
        if ours[2] or ours[3]:
            break
    assert number > 3


def test_masks_of_a_single_team_stand_in_the_info():
    env = SingleTeam(parallel(DUEL), "blue")
    observation, info = env.reset(seed=0)
    assert observation.shape == (2, env.observation_space.shape[1])  # type: ignore[index]
    assert env.action_space.sample(info["action_mask"]).shape == (2,)
    np.testing.assert_array_equal(env.action_masks(), np.concatenate(info["action_mask"]) == 1)
    assert env.action_masks().shape == (8,)
    assert not hasattr(SingleTeam(Scales()), "action_masks")


def test_the_same_seed_is_the_same_match_against_chance():
    def returns(seed: int) -> list[float]:
        env = SingleTeam(parallel(DUEL))
        env.reset(seed=seed)
        return [env.step(np.array([3, 0]))[1] for _ in range(8)]

    assert returns(1) == returns(1) != returns(2)


@pytest.mark.parametrize(
    ("keywords", "complaint"),
    [
        ({"team": "up"}, "there is no team 'up': choose from left, right"),
        ({"opponent": {"left": print}}, "opponents are given for left, the other teams are right"),
    ],
)
def test_a_team_without_a_player_is_refused(keywords: dict, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        SingleTeam(Scales(), **keywords)


def test_rewards_that_add_up_to_zero_pass():
    env = CheckZeroSum(Scales())
    parallel_api_test(env, num_cycles=30)
    ours = CheckZeroSum(parallel(RAID))  # three against two
    ours.reset(seed=1)
    while ours.agents:
        ours.step({a: ours.action_space(a).sample() for a in ours.agents})


def test_a_step_whose_rewards_do_not_add_up_to_zero_is_named():
    env = CheckZeroSum(parallel(DUEL, fault=NUMBER["rewards do not add up"]))
    with pytest.raises(ZeroSumError, match=r"step \d+: team rewards do not add up to 0: red -?\d\.\d, blue -?\d\.\d"):
        play_out(env)
    env = CheckZeroSum(parallel(DUEL, fault=NUMBER["one member is paid"]))
    with pytest.raises(ZeroSumError, match=r"step \d+: the members of (red|blue) do not share one reward: \w+_0 "):
        play_out(env)


def play_out(env: Any) -> None:
    seen, _ = env.reset(seed=1)
    while env.agents:
        seen, *_ = env.step({a: 3 if seen[a]["action_mask"][3] else 0 for a in env.agents})
