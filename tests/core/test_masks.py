"""Masks of legal actions, and what an illegal action does."""

import copy
from typing import Any

import numpy as np
import pytest
from games import duel, two_team, two_team_homogeneous
from games.play import idle_actions, leaves, random_actions, simulation, started
from gymnasium.utils.env_checker import data_equivalence

from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv

pytestmark = pytest.mark.jitless

GAME = two_team.game()  # a ring: two of the three exits of a node lead somewhere


def test_masks_stand_by_role_with_the_choices_side_by_side():
    sim = started(GAME, 3)
    assert sim.legal["scout"].shape == (3, 3, 4)
    assert sim.legal["guard"].shape == (3, 2, 4 + 2)
    assert sim.legal["guard"].dtype == np.int8


def test_an_agent_that_is_to_act_may_do_what_the_rules_allow():
    sim = started(GAME, 1)
    np.testing.assert_array_equal(sim.legal["scout"][0, 0], [1, 1, 1, 0])
    np.testing.assert_array_equal(sim.legal["guard"][0, 0], [1, 1, 1, 0, 1, 0])  # no opponent to strike


def test_an_agent_that_is_not_to_act_has_the_noop_alone():
    sim = started(GAME, 1)
    np.testing.assert_array_equal(sim.legal["scout"][0, 1:], [[1, 0, 0, 0]] * 2)  # not arrived, not its turn
    np.testing.assert_array_equal(sim.legal["guard"][0, 1], [1, 0, 0, 0, 1, 0])


def test_an_illegal_choice_is_the_noop_and_is_counted():
    sim = started(GAME, 2)
    before = sim.states["node"].copy()
    actions = idle_actions(sim)
    actions["scout"][1, 0] = 3  # there is no third exit
    actions["guard"]["trigger"][1, 0] = 1  # no opponent to strike
    actions["guard"]["move"][1, 0] = 1  # but this may be done
    sim.step(actions)
    np.testing.assert_array_equal(sim.info["illegal"], [[0] * 5, [1, 0, 0, 1, 0]])
    assert sim.info["strikes"].sum() == 0
    assert sim.actions["scout"][1, 0] == 0
    assert (sim.states["node"] != before).tolist() == [[False] * 5, [False, False, False, True, False]]


def test_illegal_choices_add_up_over_a_match_and_start_anew_with_it():
    sim = started(GAME, 1, parameters={"horizon": 6})
    actions = idle_actions(sim)
    actions["scout"][0, 0] = 3
    counts = []
    for _ in range(8):
        sim.step(actions)
        counts.append(int(sim.info["illegal"][0, 0]))
    assert counts == [1, 1, 2, 2, 3, 3, 0, 1]  # every other decision is red's; the seventh call starts a match


@pytest.mark.check
def test_the_uniform_player_does_what_is_legal_and_all_of_it():
    sim = started(GAME, 64, opponents={"red": "random", "blue": "random"})
    seen = set()
    for _ in range(60):
        allowed, acting = sim.legal["guard"].copy(), sim.acting[:, 3:].copy()
        sim.step()
        chosen = sim.actions["guard"]
        for lane, slot in zip(*np.nonzero(acting), strict=True):
            move, trigger = int(chosen["move"][lane, slot]), int(chosen["trigger"][lane, slot])
            assert allowed[lane, slot, move]
            assert allowed[lane, slot, 4 + trigger]
            assert 0.1 <= chosen["effort"][lane, slot] <= 0.9
            seen.add((move, trigger))
    assert sim.info["illegal"].sum() == 0
    assert seen == {(move, trigger) for move in range(3) for trigger in range(2)}


@pytest.mark.check
def test_a_slot_always_has_a_legal_choice():
    sim, rng = started(GAME, 16, autoreset_mode="same_step"), np.random.default_rng(0)
    for _ in range(80):
        for mask in leaves(sim.legal):
            assert mask[:, :, :4].any(axis=2).all()
        assert sim.legal["guard"][:, :, 4:].any(axis=2).all()
        sim.step(random_actions(sim, rng))


def test_a_composite_action_is_sampled_with_the_mask_that_is_observed():
    env = GameParallelEnv(simulation(GAME, 1, autoreset_mode="off"), observation="dict")
    observations, _ = env.reset(seed=1)
    mask = observations["red_2"]["action_mask"]  # a guard
    assert set(mask) == {"move", "trigger", "effort"}
    np.testing.assert_array_equal(mask["move"], [1, 1, 1, 0])
    np.testing.assert_array_equal(mask["trigger"], [1, 0])
    assert mask["effort"] is None
    space = env.action_space("red_2")
    samples = [space.sample(mask) for _ in range(50)]
    assert {(int(s["move"]), int(s["trigger"])) for s in samples} == {(0, 0), (1, 0), (2, 0)}
    assert env.observation_space("red_2").contains(observations["red_2"])
    np.testing.assert_array_equal(observations["red_0"]["action_mask"], [1, 1, 1, 0])  # a scout has one choice: flat


@pytest.mark.parametrize("control", ["red", "blue"])
def test_so_is_the_joint_action_of_a_team(control: str):
    env = GameEnv(simulation(GAME, 1, autoreset_mode="off"), control=control, observation="dict", mask="obs")
    flat = GameEnv(simulation(GAME, 1, autoreset_mode="off"), control=control, observation="dict")
    observation, _ = env.reset(seed=1)
    _, info = flat.reset(seed=1)
    for _ in range(60):
        assert env.observation_space.contains(observation)
        action = env.action_space.sample(observation["action_mask"])
        assert data_equivalence(observation["action_mask"], info["action_mask"], exact=True)
        np.testing.assert_array_equal(flat_mask(info["action_mask"], GAME.teams[control]), choices_of(flat))
        observation, _, terminated, truncated, printed = env.step(action)
        *_, info = flat.step(action)
        assert np.sum(printed["illegal"]) == 0
        if terminated or truncated:
            break


def choices_of(env: GameEnv) -> np.ndarray:
    """The mask of all choices side by side."""
    return env.agent_io.masks()["action_mask"][0]


def flat_mask(mask: Any, slots: tuple[int, ...]) -> np.ndarray:
    """The scouts' moves, then the one guard's move and trigger."""
    moves = mask["scout"] if len(slots) == 3 else (mask["scout"],)
    return np.concatenate([*moves, mask["guard"]["move"], mask["guard"]["trigger"]])


def test_so_is_a_vector_of_them():
    env = GameVectorEnv(simulation(GAME, 3), control="blue", observation="dict", mask="obs")
    single = GameEnv(simulation(GAME, 1, autoreset_mode="off"), control="blue", observation="dict", mask="obs")
    observations, _ = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    for lane in range(3):
        expected = single.reset(seed=1 + lane)[0]["action_mask"]
        masks = observations["action_mask"]
        np.testing.assert_array_equal(masks["scout"][lane], expected["scout"])
        np.testing.assert_array_equal(masks["guard"]["trigger"][lane], expected["guard"]["trigger"])
        assert masks["guard"]["effort"][lane] is None


def test_several_choices_are_sampled_with_a_tuple_of_masks():
    env = GameEnv(simulation(duel.game(2), 1, autoreset_mode="off", opponents={"blue": "presser"}))
    seen_too = GameEnv(simulation(duel.game(2), 1, autoreset_mode="off", opponents={"blue": "presser"}), mask="obs")
    _, info = env.reset(seed=2)
    observation, _ = seen_too.reset(seed=2)
    for _ in range(20):
        mask = info["action_mask"]
        assert [type(part) for part in mask] == [np.ndarray, np.ndarray]
        assert seen_too.observation_space.contains(observation)
        assert data_equivalence(observation["action_mask"], mask, exact=True)
        np.testing.assert_array_equal(np.concatenate(mask), env.action_masks())
        action = env.action_space.sample(mask)
        *_, info = env.step(action)
        observation, *_ = seen_too.step(action)
        assert not np.any(info["illegal"])
        if info["end_reason"]:
            break


def test_a_vector_environment_has_a_row_a_lane_in_infos_and_the_batch_of_a_tuple_in_observations():
    make = lambda **options: GameVectorEnv(simulation(duel.game(2), 3, opponents={"blue": "presser"}), **options)  # noqa: E731
    told, shown = make(), make(mask="obs")
    _, infos = told.reset(seed=2)
    observations, _ = shown.reset(seed=2)
    parts = np.split(infos["action_mask"], np.cumsum(told.single_action_space.nvec)[:-1], axis=1)  # type: ignore[attr-defined]
    assert infos["action_mask"].shape == (3, 6)
    assert shown.observation_space.contains(observations)
    for part, batch in zip(parts, observations["action_mask"], strict=True):
        np.testing.assert_array_equal(part, batch)


def test_what_a_user_writes_into_a_mask_shows_nowhere_else():
    env = GameEnv(simulation(duel.game(2), 1, autoreset_mode="off", opponents={"blue": "presser"}))
    _, info = env.reset(seed=2)
    info["action_mask"][0][:] = 7
    assert info["action_mask"][1].max() == 1
    assert env.action_masks().all()
    assert max(part.max() for part in env.reset(seed=2)[1]["action_mask"]) == 1


def test_a_game_that_forbids_nothing_has_no_masks():
    sim = simulation(two_team_homogeneous.game(), 1)
    sim.reset(seed=1)
    assert sim.legal is None


def moved_on(env: GameEnv) -> list:
    """All that an environment hands out in some decisions."""
    rng = np.random.default_rng(3)
    kept: list[Any] = [env.reset(seed=2)]
    for _ in range(12):
        kept.append(env.step(rng.integers(0, 2, 2)))
        if kept[-1][2]:
            kept.append(env.reset())
    return kept


def forget_masks(sim: Any) -> None:
    """Zeroes the memory of a simulation in which masks are written."""
    sim.legal[...] = 0


@pytest.mark.parametrize("mask", ["obs", "info"])
def test_what_a_match_hands_out_is_its_own_memory_and_equal_to_that_of_the_batch(mask: Any):
    match = simulation(duel.game(2), 1, autoreset_mode="off")
    match.set_opponent("blue", "presser")
    env = GameEnv(match, mask=mask)
    kept: Any = moved_on(env)
    shown = [(seen if mask == "obs" else info)["action_mask"] for seen, *_, info in kept]
    masks = [np.concatenate(each) for each in shown]
    assert {tuple(m) for m in masks} == {(1, 1, 1, 1, 1, 1), (1, 1, 0, 1, 1, 0)}
    if mask == "obs":
        assert data_equivalence(env.agent_io.observe_lane()["action_mask"], shown[-1], exact=True)
    forget_masks(env.sim)
    env.sim.acting[...] = False
    for (*_, info), after, before in zip(kept, shown, masks, strict=True):
        np.testing.assert_array_equal(np.concatenate(after), before)
        np.testing.assert_array_equal(info["acting"], [True, True] if info["end_reason"] == 0 else [False, False])


def test_an_agents_row_and_mask_are_copies_also_in_a_copy_of_the_environment():
    sim = simulation(duel.game(2), 1, autoreset_mode="off")
    sim.set_opponent("blue", "presser")
    env = GameParallelEnv(sim)
    copied = copy.deepcopy(env)
    for one in (env, copied):
        seen, _ = one.reset(seed=2)
        assert seen["red_0"].keys() == {"observation", "action_mask"}
        whole = one.agent_ios["red_0"].observe_lane()
        np.testing.assert_array_equal(seen["red_0"]["action_mask"], [1, 1, 1])
        np.testing.assert_array_equal(seen["red_0"]["action_mask"], whole["action_mask"])
        np.testing.assert_array_equal(seen["red_0"]["observation"], whole["observation"])
        forget_masks(one.sim)
        np.testing.assert_array_equal(one.agent_ios["red_0"].observe_one()["action_mask"], [0, 0, 0])
        np.testing.assert_array_equal(seen["red_0"]["action_mask"], [1, 1, 1])
