"""The promises of `palaestra.adapters.sb3` to Stable-Baselines3."""

from __future__ import annotations

import subprocess
import sys
import time
from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
import pytest
from games import body_game, reach, size_game  # noqa: F401 (they register their ids)

import palaestra
from palaestra import registry
from palaestra.core.contract.actions import ActionError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Choice, Continuous, Field, Game, Role

pytest.importorskip("stable_baselines3")
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, VecCheckNan, VecMonitor, VecNormalize

from palaestra.adapters.sb3 import SimulationVecEnv, as_vec_env

torch.set_num_threads(1)
TEXT_IDS = (
    "palaestra/SearchQA-Custom-v1",
    "palaestra/SearchQA-Reading-v0",
    "palaestra/SearchQA-Reading-Fictional-v0",
)
"""Observations are texts, which Stable-Baselines3 does not take."""
CARTPOLE = "palaestra/CartPole-v0"
LAST = 5


def reset(s, world):
    for a in range(4):
        s.points[a] = 0.0


def step(s, world, actions, rewards, scratch):
    """Red gains what it bids; red_0 dies after the second decision; the third alternative ends the match for blue."""
    gain = 0.0
    for a in range(4):
        s.points[a] = actions.player[a].bid
        if a < 2 and s.alive[a]:
            gain += s.points[a]
    for a in range(4):
        rewards[a] = gain if a < 2 else -gain
    if s.steps == 2:
        s.alive[0] = 0
    if actions.player[1].bid == 2:
        s.info.winner = 1
        s.info.end_reason = 2
        return True
    return False


def observe(s, world, observations, scratch):
    for a in range(4):
        if s.alive[a]:
            observations.player[a].number = a + 1
            observations.player[a].time = s.steps


def legal(s, world, mask):
    for a in range(4):
        for j in range(3):
            mask.player[a].bid[j] = j < 2 or a == 1


def auction() -> Game:
    """Two teams of two; red_0 dies early, red_1 may end the match."""
    seen = (Field("number", (), 0, 4), Field("time", (), 0, 100))
    names = ("red_0", "red_1", "blue_0", "blue_1")
    return Game(
        name="Auction",
        roles=(Role("player", names, seen, (Choice("bid", 3),)),),
        state=(("points", "f8", (4,)),),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        horizon=LAST,
        end_reasons=("sold",),
        zero_sum=True,
    )


def flat(vec: SimulationVecEnv) -> np.ndarray:
    """Resets, and promises the type checker that the observation is one array."""
    observations = vec.reset()
    assert isinstance(observations, np.ndarray)
    return observations


def make_auction(lanes: int = 2, **options) -> KernelSimulation:
    sim = KernelSimulation(auction(), lanes, autoreset_mode="same_step", compiled=False)
    for team, opponent in options.items():
        sim.set_opponent(team, opponent)
    return sim


def test_rows_equal_the_gymnasium_face_lane_by_lane():
    lanes, seed = 3, 7
    vec = as_vec_env(CARTPOLE, lanes, horizon=40)
    envs = [gymnasium.make(CARTPOLE, horizon=40) for _ in range(lanes)]
    vec.seed(seed)
    np.testing.assert_array_equal(flat(vec), [env.reset(seed=seed + k)[0] for k, env in enumerate(envs)])
    rng = np.random.default_rng(0)
    ends = set()
    for _ in range(200):
        actions = rng.integers(0, 2, lanes)
        observations, rewards, dones, infos = vec.step(actions)
        assert isinstance(observations, np.ndarray)
        for k, env in enumerate(envs):
            observation, reward, terminated, truncated, info = env.step(int(actions[k]))
            assert rewards[k] == reward
            assert dones[k] == (terminated or truncated)
            if dones[k]:
                np.testing.assert_array_equal(infos[k]["terminal_observation"], observation)
                assert infos[k]["TimeLimit.truncated"] is (truncated and not terminated)
                assert infos[k]["end_reason"] == info["end_reason"]
                assert infos[k]["winner"] == info["winner"]
                ends.add(info["end_reason"])
                observation, _ = env.reset()
            else:
                assert infos[k] == {}
            np.testing.assert_array_equal(observations[k], observation)
    assert 3 in ends  # the cart fell


def test_a_truncated_row_says_so():
    vec = as_vec_env(CARTPOLE, 2, horizon=3)
    vec.reset()
    for _ in range(2):
        vec.step(np.zeros(2, int))
    _, _, dones, infos = vec.step(np.zeros(2, int))
    assert dones.all()
    assert all(info["TimeLimit.truncated"] and info["end_reason"] == 1 for info in infos)


def test_later_steps_do_not_change_what_a_step_returned():
    vec = as_vec_env(CARTPOLE, 4)
    vec.seed(0)
    first = vec.reset()
    seen = [first, *vec.step(np.ones(4, int))[:3]]
    kept = [array.copy() for array in seen]
    assert not np.shares_memory(seen[2], vec.sim.rewards)  # every decision of this game pays 1
    for _ in range(100):
        vec.step(np.ones(4, int))
    for array, copy in zip(seen, kept, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_infos_of_running_rows_are_the_same_empty_dicts_in_every_step():
    vec = as_vec_env(CARTPOLE, 2)
    vec.reset()
    assert vec.step(np.zeros(2, int))[3][0] is vec.step(np.ones(2, int))[3][0]


def test_a_seed_counts_for_one_reset():
    vec = as_vec_env(CARTPOLE, 2)
    vec.seed(3)
    first, second = vec.reset(), vec.reset()
    vec.seed(3)
    again = vec.reset()
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)


def test_rows_of_agents_share_the_lane_and_its_seed():
    vec = as_vec_env(make_auction(), agents="rows")
    assert (vec.num_envs, vec.rows_per_lane) == (8, 4)
    assert vec.seed(5) == [5, 5, 5, 5, 6, 6, 6, 6]
    np.testing.assert_array_equal(flat(vec)[:, 0], [1, 2, 3, 4] * 2)
    _, rewards, _, _ = vec.step(np.array([1, 1, 0, 0, 0, 1, 0, 0]))
    np.testing.assert_array_equal(rewards, [2, 2, -2, -2, 1, 1, -1, -1])


def test_a_dead_agents_row_sees_zeros_and_earns_its_teams_reward_until_the_match_ends():
    vec = as_vec_env(make_auction(1), agents="rows")
    vec.reset()
    bids = np.array([1, 1, 0, 0])
    vec.step(bids)
    assert vec.acting.all()
    observations, rewards, dones, infos = vec.step(bids)
    assert isinstance(observations, np.ndarray)
    assert vec.acting.tolist() == [False, True, True, True]
    assert vec.get_attr("acting") == [False, True, True, True]
    assert not observations[0].any()
    assert observations[1].all()
    for _ in range(LAST - 2):
        assert not dones.any()
        observations, rewards, dones, infos = vec.step(bids)
        np.testing.assert_array_equal(rewards, [1, 1, -1, -1])
    assert dones.all()
    assert all(info["TimeLimit.truncated"] for info in infos)
    np.testing.assert_array_equal(np.array([info["terminal_observation"] for info in infos])[:, 0], [0, 2, 3, 4])


def test_a_team_is_one_agent_with_a_joint_action_and_an_opponent_plays_the_other():
    vec = as_vec_env(make_auction(3, blue="random"))
    assert vec.num_envs == 3
    assert vec.observation_space.shape == (4,)
    vec.reset()
    _, rewards, dones, infos = vec.step(np.array([[0, 0], [1, 1], [1, 2]]))
    np.testing.assert_array_equal(rewards, [0, 2, 3])
    assert dones.tolist() == [False, False, True]
    assert infos[2]["winner"] == 1
    assert infos[2]["end_reason"] == 2
    assert infos[2]["TimeLimit.truncated"] is False


def test_a_row_an_agent_of_one_team_only():
    vec = as_vec_env(make_auction(2, red="random"), agents="rows")
    assert vec.slots == (2, 3)
    np.testing.assert_array_equal(flat(vec)[:, 0], [3, 4, 3, 4])


def test_observations_by_name():
    vec = as_vec_env(make_auction(2), agents="rows", observation="dict")
    observations = vec.reset()
    assert isinstance(observations, dict)
    np.testing.assert_array_equal(observations["number"][:, 0], [1, 2, 3, 4] * 2)


@pytest.mark.check
@pytest.mark.parametrize("native", [True, False])
def test_ppo_learns_from_observations_by_name(native: bool):
    envs = as_vec_env(CARTPOLE, 2, observation="dict") if native else gymnasium.make(CARTPOLE, observation="dict")
    PPO("MultiInputPolicy", envs, n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(32)


def test_masks_reach_maskable_ppo_by_the_names_that_it_calls():
    vec = as_vec_env(make_auction(2), agents="rows")
    vec.reset()
    masks = np.stack(vec.env_method("action_masks"))
    assert masks.dtype == bool
    np.testing.assert_array_equal(masks[:4], [[1, 1, 0], [1, 1, 1], [1, 1, 0], [1, 1, 0]])
    assert vec.has_attr("action_masks")
    np.testing.assert_array_equal(vec.get_attr("action_masks", 1)[0](), [1, 1, 1])
    joint = as_vec_env(make_auction(2, blue="random"))
    joint.reset()
    assert np.stack(joint.env_method("action_masks")).shape == (2, 6)
    open_game = as_vec_env(CARTPOLE, 2)
    open_game.reset()
    assert open_game.env_method("action_masks")[1].tolist() == [True, True]  # nothing is forbidden


@pytest.mark.parametrize("seed", [-1, 2**64, 2**64 - 1, 1.5, True, "1"])
def test_a_wrong_seed_is_refused_at_once(seed: Any):
    env = as_vec_env(CARTPOLE, 2, compiled=False)
    with pytest.raises(ValueError, match=r"seed must be an integer from 0 to 2\*\*64 - 2"):
        env.seed(seed)
    assert list(env.seed(2**64 - 2)) == [2**64 - 2, 2**64 - 1]
    env.reset()
    assert env.sim.lane_seeds.tolist() == [2**64 - 2, 2**64 - 1]


def test_options_of_a_reset_are_refused():
    env = as_vec_env(CARTPOLE, 2, compiled=False)
    env.set_options({})
    env.reset()
    env.set_options([{}, {"pole_mass_kg": 0.2}])
    with pytest.raises(ValueError, match="reset: 'pole_mass_kg' is no option but a parameter of the rules"):
        env.reset()


def test_an_attribute_that_nothing_has_is_refused_with_the_near_parameter():
    env = as_vec_env(CARTPOLE, 2, compiled=False)
    with pytest.raises(AttributeError, match="CartPole has no parameter 'horizn'; did you mean 'horizon'"):
        env.set_attr("horizn", 5)
    env.set_attr("horizon", 5)
    env.set_attr("monitor", True)
    assert (env.get_attr("horizon"), env.monitor) == ([5.0, 5.0], True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"num_envs": 0}, "num_envs must be at least 1, got 0"),
        ({"monitor": "no"}, "monitor must be True or False, got 'no'"),
        ({"render_mode": "human"}, "render_mode: CartPole renders 'rgb_array', not 'human'"),
        ({"opponent": "random"}, "opponent"),
        ({"colour": 1}, "'colour'"),
        ({"autoreset_mode": "off"}, "same_step"),
        ({"choices": ""}, "choices must be"),
        ({"agents": None}, "agents must be"),
    ],
)
def test_a_wrong_word_is_refused(words: dict[str, Any], message: str):
    with pytest.raises((ValueError, TypeError), match=message):
        as_vec_env(CARTPOLE, compiled=False, **words)


def test_parameters_are_attributes_of_the_rows():
    vec = as_vec_env(CARTPOLE, 3)
    vec.set_attr("force_n", 5.0, indices=[0, 2])
    assert vec.get_attr("force_n") == [5.0, 10.0, 5.0]
    with pytest.raises(AttributeError):
        vec.get_attr("nonsense")


def test_returns_and_lengths_are_those_of_sb3s_own_monitor():
    ours, theirs = as_vec_env(CARTPOLE, 4, monitor=True), VecMonitor(as_vec_env(CARTPOLE, 4))
    assert ours.env_is_wrapped(Monitor) == [True] * 4
    assert as_vec_env(CARTPOLE).env_is_wrapped(Monitor) == [False]
    finished = 0
    for vec in (ours, theirs):
        vec.seed(0)
        vec.reset()
    for _ in range(60):
        _, _, dones, infos = ours.step(np.ones(4, int))
        _, _, _, expected = theirs.step(np.ones(4, int))
        for k in np.flatnonzero(dones):
            for key in ("r", "l"):
                assert infos[k]["episode"][key] == expected[k]["episode"][key]
            finished += 1
    assert finished > 4


@pytest.mark.check
def test_sb3s_wrappers_and_evaluation_work():
    vec = VecNormalize(VecCheckNan(as_vec_env(CARTPOLE, 8, monitor=True), raise_exception=True))
    model = PPO("MlpPolicy", vec, n_steps=32, batch_size=64, n_epochs=1, seed=0, device="cpu").learn(512)
    mean, _ = evaluate_policy(model, vec, n_eval_episodes=16)  # warns if rows do not report their episodes
    assert isinstance(mean, float)
    assert mean > 0


def test_a_picture_of_the_lanes():
    vec = as_vec_env(CARTPOLE, 4, render_mode="rgb_array")
    vec.reset()
    one = vec.get_images()[0]
    assert one is not None
    whole = vec.render()
    assert whole is not None
    assert whole.shape == (2 * one.shape[0], 2 * one.shape[1], 3)


def test_an_action_outside_its_space_is_refused():
    vec = as_vec_env(CARTPOLE, 2)
    vec.reset()
    with pytest.raises(ActionError, match="lane 1, cart_0: push = 2"):
        vec.step(np.array([0, 2]))


def apply_noop(*_): ...


def play_on(*_) -> bool:
    return False


def test_composite_actions_are_refused():
    pilot = Role("pilot", ("red_0",), (Field("x", (), 0, 1),), (Choice("trigger", 2), Continuous("stick")))
    game = Game("Composite", (pilot,), (("x", "f8"),), reset=apply_noop, observe=apply_noop, step=play_on)
    with pytest.raises(ValueError, match="Composite has composite actions"):
        as_vec_env(KernelSimulation(game, 1, autoreset_mode="same_step", compiled=False))


def test_what_cannot_be_a_vec_env_is_refused_with_the_cure():
    with pytest.raises(ValueError, match='autoreset_mode="same_step"'):
        as_vec_env(palaestra.make_batch(CARTPOLE, 2))
    with pytest.raises(ValueError, match=r"blue has no player: call sim\.set_opponent"):
        as_vec_env(make_auction())
    with pytest.raises(ValueError, match="red of Auction is played by an opponent already"):
        as_vec_env(make_auction(red="random", blue="random"), team="red")
    with pytest.raises(ValueError, match="no team 'green'"):
        as_vec_env(make_auction(), team="green")
    with pytest.raises(TypeError, match="num_envs: only for an id"):
        as_vec_env(make_auction(), 4)
    with pytest.raises(TypeError, match="mask: not a keyword"):
        as_vec_env(CARTPOLE, mask="obs")
    with pytest.raises(ValueError, match="same_step"):
        as_vec_env(CARTPOLE, autoreset_mode="off")


@pytest.mark.check
def test_without_stable_baselines3_the_message_is_the_pip_line():
    program = "import sys; sys.modules['stable_baselines3'] = None; import palaestra.adapters.sb3"
    path = [p for p in sys.path if p]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {path}; {program}"], capture_output=True, text=True
    )
    assert run.returncode == 1
    assert "ImportError: palaestra.adapters.sb3 needs Stable-Baselines3" in run.stderr
    assert 'pip install "palaestra[baselines]"' in run.stderr


def test_the_adapter_costs_about_as_much_as_the_smallest_of_games():
    sim = palaestra.make_batch(CARTPOLE, 1024, autoreset_mode="same_step")
    sim.set_parameters(gravity_mps2=0.1, force_n=0.0)  # no match ends: only finished rows cost Python
    vec = as_vec_env(deepcopy(sim))
    vec.reset()
    sim.reset()
    actions = np.zeros(1024, int)
    column = actions[:, None]

    def seconds(call) -> float:
        started = time.process_time()
        for _ in range(100):
            call()
        return time.process_time() - started

    rounds = [(seconds(lambda: vec.step(actions)), seconds(lambda: sim.step(column))) for _ in range(4)]
    ours, bare = (min(column) for column in zip(*rounds, strict=True))
    assert ours < 4 * bare  # 1.7 on an idle machine


@pytest.mark.check
def test_ppo_learns_cartpole_in_seconds():
    vec: SimulationVecEnv = as_vec_env(CARTPOLE, 32, monitor=True)
    model = PPO(
        "MlpPolicy", vec, n_steps=32, batch_size=256, n_epochs=10, learning_rate=3e-3, gae_lambda=0.9, gamma=0.98,
        seed=0, device="cpu",
    )  # fmt: skip
    started = time.process_time()
    model.learn(8192)
    mean, _ = evaluate_policy(model, as_vec_env(CARTPOLE, 20, monitor=True), n_eval_episodes=20)
    assert isinstance(mean, float)
    assert mean > 150
    assert time.process_time() - started < 6


# -- many sizes, own rewards, lists of candidates ----------------------------------------------------------------------

COURIERS, BODY, DEPOT = "tests/Couriers-v0", "tests/Body-v0", "sb3/Depot-v0"
palaestra.register(DEPOT, "games.depot:game", family="test", kind="full")


@pytest.mark.parametrize(
    ("word", "shape"),
    [("flat", (3 * 63 + 12,)), ("nearest", (6,)), ("nearest:flat", (6,)), ("dict", None), (None, None)],
)
def test_the_word_for_observations_chooses_the_representation_too(word: str | None, shape: tuple[int, ...] | None):
    envs = as_vec_env(COURIERS, 2, observation=word, compiled=False)
    assert envs.observation_space.shape == shape
    if shape is None:
        assert "parcels" in envs.observation_space.spaces  # type: ignore[attr-defined]
    assert envs.observation_space.contains(_first(envs.reset()))
    envs.close()


def _first(seen):
    return {name: array[0] for name, array in seen.items()} if isinstance(seen, dict) else seen[0]


def test_a_representation_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="Couriers has no observation 'nearst': choose from 'flat', 'dict', 'nearest'"):
        as_vec_env(COURIERS, 2, observation="nearst")


@pytest.mark.parametrize("agents", ["joint", "rows"])
def test_lists_of_candidates_are_dense_masks_of_the_rows(agents):
    envs = as_vec_env(COURIERS, 3, team="red", agents=agents, observation="nearest", compiled=False)
    envs.reset()
    masks = envs.action_masks()
    assert masks.shape == ((3, 3 * 15) if agents == "joint" else (9, 15))
    listed = envs.sim.legal["parcel"]["ids"][:, 0]  # type: ignore[index]
    for lane in range(3):
        row = masks[lane if agents == "joint" else 3 * lane]
        assert np.flatnonzero(row[:13]).tolist() == sorted(i for i in listed[lane].tolist() if i >= 0)
    for _ in range(20):
        masks = envs.action_masks()
        actions = np.array([[m.argmax() for m in np.split(row, _edges(envs))] for row in masks])
        envs.step(actions)
    assert envs.sim.info["illegal"].sum() == 0


def _edges(envs) -> np.ndarray:
    return np.cumsum(envs.action_space.nvec)[:-1]


def test_rewards_of_ones_own_go_to_the_rows_and_their_sum_to_the_team():
    options = {"horizon": 4, "dense": 1}
    joint, rows = (as_vec_env(BODY, 2, team="puck", agents=a, monitor=True, **options) for a in ("joint", "rows"))  # type: ignore[arg-type]
    assert (joint.num_envs, rows.num_envs) == (2, 6)
    for envs in (joint, rows):
        envs.seed(3)
        envs.reset()
    push = np.random.default_rng(0).uniform(-2, 2, (4, 2, 6)).astype(np.float32)
    total = np.zeros(2)
    dones, infos, own_infos = np.zeros(2, np.bool_), [], []
    for action in push:
        _, reward, dones, infos = joint.step(action)
        _, own, _, own_infos = rows.step(action.reshape(6, 2))
        assert reward.dtype == own.dtype == np.float64
        np.testing.assert_array_equal(own.reshape(2, 3).sum(axis=1), reward)
        total += reward
    assert dones.all()
    assert [info["episode"]["r"] for info in infos] == pytest.approx(total)
    assert sum(info["episode"]["r"] for info in own_infos[:3]) == pytest.approx(total[0])


@pytest.mark.check
@pytest.mark.parametrize("id", [BODY, COURIERS, DEPOT])
def test_ppo_learns_on_them_without_complaint(id: str):
    dictionary = id == COURIERS
    envs = as_vec_env(id, 2, horizon=8, observation="dict" if dictionary else "flat", compiled=id != DEPOT)
    policy = "MultiInputPolicy" if dictionary else "MlpPolicy"
    PPO(policy, envs, n_steps=8, batch_size=16, n_epochs=1, device="cpu").learn(32)


def test_a_composite_action_is_refused():
    with pytest.raises(ValueError, match="composite actions, a Dict, which Stable-Baselines3 has no policy for"):
        as_vec_env(DEPOT, 2, kind="mixed", compiled=False)


def test_arrays_of_the_world_are_the_callers_own():
    envs = as_vec_env(COURIERS, 2, observation="dict", horizon=1)
    seen = envs.reset()
    assert isinstance(seen, dict)
    seen["worth"][:] = -1.0
    after, _, _, infos = envs.step(np.zeros((2, 6), np.int64))
    for worth in (after["worth"], infos[1]["terminal_observation"]["worth"]):  # type: ignore[call-overload]
        assert worth.flags.writeable
        assert (worth > 0.0).all()


# -- Stable-Baselines3's own checker and vectors -----------------------------------------------------------------------


def check(id: str, **keywords: Any) -> None:
    for mode in (None, "rgb_array"):
        env: Any = gymnasium.make(id, compiled=False, render_mode=mode, **keywords)
        check_env(env, skip_render_check=mode is None)
        env.close()


@pytest.mark.filterwarnings("ignore::UserWarning")  # advice on actions beyond -1 and 1, images and MultiDiscrete
@pytest.mark.parametrize(
    "id",
    [
        CARTPOLE,
        *(
            pytest.param(id, marks=pytest.mark.slow)
            for id in registry.ROWS
            if id.startswith("palaestra/") and id not in (*TEXT_IDS, CARTPOLE)
        ),
    ],
)
def test_the_checker_passes_and_list_modes_collect_pictures(id: str):
    check(id)
    frames: Any = gymnasium.make(id, compiled=False, render_mode="rgb_array_list")
    frames.reset(seed=1)
    frames.step(frames.action_space.sample())
    pictures = frames.render()
    assert [picture.dtype for picture in pictures] == [np.uint8] * 2
    frames.close()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_checker_takes_goals_for_goals():
    check("tests/Reach-v0", observation="flat")
    env: Any = gymnasium.make("tests/Reach-v0", observation="goal", compiled=False)
    check_env(env.unwrapped)  # the checker calls compute_reward of what it is given, and wrappers have none
    with pytest.raises(AttributeError, match="compute_reward"):
        as_vec_env("tests/Reach-v0", 2, observation="flat", compiled=False).env_method("compute_reward", 0, 0, 0)


def test_a_vec_env_of_stable_baselines_sets_parameters_through_the_wrappers():
    vec = DummyVecEnv([lambda: Monitor(gymnasium.make(CARTPOLE, compiled=False))] * 2)
    vec.env_method("set_wrapper_attr", "force_n", 5.0)
    assert vec.get_attr("force_n") == [5.0, 5.0]
    assert [env.unwrapped.sim.parameters["force_n"].tolist() for env in vec.envs] == [[5.0], [5.0]]  # type: ignore
    with pytest.raises(AttributeError, match="did you mean 'force_n'"):
        vec.env_method("set_wrapper_attr", "forse_n", 5.0)


def test_the_adapter_has_the_attributes_of_an_environment():
    vec: Any = as_vec_env(CARTPOLE, 2, horizon=7, compiled=False)
    (spec, _) = vec.get_attr("spec")
    assert (spec.id, spec.max_episode_steps, spec.kwargs["horizon"]) == (CARTPOLE, 7, 7)
    vec.force_n = [5.0, 6.0]
    assert vec.get_attr("force_n") == [5.0, 6.0]
    with pytest.raises(AttributeError, match="did you mean 'force_n'"):
        vec.forse_n = 5.0
    assert vec.has_attr("action_masks")
    with pytest.raises(RuntimeError, match="action_masks before reset"):
        vec.env_method("action_masks")
    vec.reset()
    assert np.all(vec.env_method("action_masks"))
    assert not as_vec_env("tests/Reach-v0", 2, observation="flat", compiled=False).has_attr("action_masks")
    vec.close()
    vec.close()
    vec.step(np.zeros(2, np.int64))
