"""The three faces of one simulation: sizes, tables, fields of the world, candidates, rewards and texts."""

from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from games import depot, duel, two_team
from games.play import all_bytes, simulation
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from pettingzoo.test import parallel_api_test

from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.game import offer
from palaestra.games.calibration import cartpole

pytestmark = pytest.mark.jitless

ORDER, FULL, MIXED = depot.game(), depot.game("full"), depot.game("mixed")
SIZES = [1, 3]
KINDS = {"order": ORDER, "full": FULL, "mixed": MIXED}


def single(game: Any = ORDER, **options: Any) -> GameEnv:
    sim = simulation(game, 1, autoreset_mode="off")
    sim.set_opponent("blue", "random")
    return GameEnv(sim, **options)


def vector(game: Any = ORDER, n: int = 3, mode: str = "next_step", **options: Any) -> GameVectorEnv:
    sim = simulation(game, n, autoreset_mode=mode)
    sim.set_opponent("blue", "random")
    return GameVectorEnv(sim, **options)


def parallel(game: Any = ORDER, **options: Any) -> GameParallelEnv:
    return GameParallelEnv(simulation(game, 1, autoreset_mode="off"), **options)


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("team_size", SIZES)
def test_faces_show_the_visible_agents(team_size: int):
    game = depot.game(team_size=team_size, places=9 + team_size)
    env = parallel(game)
    env.reset(seed=1)
    space: Any = env.observation_space("red_0")
    assert len(env.possible_agents) == 2 * team_size
    assert len(env.agents) == 2 * team_size - 1  # the last one comes late
    assert space["observation"].shape == (1 + 2 * 3 + 2 + 1 + 1 + (9 + team_size) ** 2,)
    assert single(game).action_space == (spaces.Discrete(10 + team_size) if team_size == 1 else
                                         spaces.MultiDiscrete([10 + team_size] * team_size))  # fmt: skip
    assert env.step({a: 0 for a in env.agents})[1].keys() == {*env.possible_agents} - {"blue_" + str(team_size - 1)}


def test_info_has_the_visible_part_of_an_array():
    env, vec = single(), vector()
    env.reset(seed=1)
    vec.reset(seed=1)
    assert env.step(np.zeros(2, int))[4]["moves"].tolist() == [1, 1]
    assert vec.step(np.zeros((3, 2), int))[4]["moves"].shape == (3, 2)


# -- tables and arrays of the world ------------------------------------------------------------------------------------


def test_a_table_is_one_box_by_name_and_a_part_of_the_flat_vector():
    by_name, flat = parallel(observation="dict", mask=None), parallel(mask=None)
    seen, vectors = by_name.reset(seed=1)[0]["red_1"], flat.reset(seed=1)[0]["red_1"]
    space: Any = by_name.observation_space("red_1")
    np.testing.assert_array_equal(seen["routes"], [[2, 1, 0], [0, 1, 1]])
    np.testing.assert_array_equal(space["routes"].high, [[11, 1, 2]] * 2)
    assert space.contains(seen)
    np.testing.assert_array_equal(vectors[:9], [1, 2, 1, 0, 0, 1, 1, 1, 0])
    assert flat.observation_space("red_1").contains(vectors)


@pytest.mark.parametrize("copy", [True, False])
def test_an_array_of_the_world_is_handed_out_as_it_is(copy: bool):
    env, vec = parallel(observation="dict", mask=None), vector(observation="dict", copy=copy)
    seen, many = env.reset(seed=1)[0]["red_0"], vec.reset(seed=1)[0]
    world = ORDER.world.hops
    assert np.shares_memory(seen["hops"], world)
    assert np.shares_memory(many["hops"], world)
    assert many["hops"].shape == (3, 12, 12)
    assert not many["hops"].flags.writeable
    assert vec.observation_space.contains(many)
    np.testing.assert_array_equal(vector().reset(seed=1)[0][2, -144:], world.reshape(-1))


def test_a_gymnasium_env_copies_it_as_gymnasiums_checker_wants():
    seen, _ = single(observation="dict").reset(seed=1)
    np.testing.assert_array_equal(seen["hops"], ORDER.world.hops)
    assert not np.shares_memory(seen["hops"], ORDER.world.hops)


# -- rewards -----------------------------------------------------------------------------------------------------------


def test_rewards_of_ones_own_keep_their_precision_and_are_added_up_for_a_team():
    env, vec, many = single(), vector(), parallel()
    for face in (env, vec, many):
        face.reset(seed=1)
    go = np.array([12, 1])  # to places 11 and 0, back along the ring
    reward = env.step(go)[1]
    assert (reward, type(reward)) == (1 / 3 + 2 / 3, float)
    rewards = vec.step(np.array([go, [0, 1], [0, 0]]))[1]
    assert rewards.dtype == np.float64
    assert rewards.tolist() == [1 / 3 + 2 / 3, 2 / 3, 0.0]
    assert many.step({"red_0": 12, "red_1": 1, "blue_0": 0})[1] == {"red_0": 1 / 3, "red_1": 2 / 3, "blue_0": 0.0}


def test_a_lane_without_a_seed_goes_on_with_its_stream():
    vec, other = (GameVectorEnv(simulation(two_team.game(), 3), observation="dict") for _ in range(2))
    vec.reset(seed=5)
    other.reset(seed=5)
    vec.reset(seed=[9, None, 4])
    other.reset()
    assert (vec.sim.states["rng"] == other.sim.states["rng"]).tolist() == [False, True, False]
    np.testing.assert_array_equal(vec.sim.lane_seeds, [9, 6, 4])
    fresh = GameVectorEnv(simulation(two_team.game(), 2), observation="dict")
    fresh.reset(seed=[None, 3])
    assert fresh.sim.lane_seeds[1] == 3


def test_an_agent_that_leaves_gets_its_last_reward_and_its_flag():
    env = parallel(mask=None)
    env.reset(seed=1)
    result: Any = ()
    for place in (11, 10, 9):  # back along the ring until the fuel is spent
        result = env.step({a: place + 1 if a == "red_0" else 0 for a in env.agents})
    _, rewards, ends, cuts, _ = result
    assert (rewards["red_0"], ends["red_0"], cuts["red_0"]) == (1 / 3, True, False)
    assert not any(ends[a] or cuts[a] for a in ends if a != "red_0")
    assert env.agents == ["red_1", "blue_0", "blue_1"]


@pytest.mark.parametrize("copy", [True, False])
def test_what_a_step_returns_is_the_callers_own_if_copied(copy: bool):
    vec = GameVectorEnv(simulation(cartpole.game(), 2), copy=copy)
    vec.reset(seed=1)
    seen, rewards, ends, cuts, _ = vec.step(np.zeros(2, int))
    sim: Any = vec.sim
    own = (sim.observations, sim.rewards, sim.terminated, sim.truncated)
    for mine, its in zip((seen, rewards, ends, cuts), own, strict=True):
        assert np.shares_memory(mine, its) != copy


def test_the_global_state_of_a_match_is_the_callers_own():
    env = parallel()
    env.reset(seed=1)
    assert not np.shares_memory(env.state(), env.sim.state())


# -- seeds, teams and ends ---------------------------------------------------------------------------------------------


def test_a_lane_of_a_vector_starts_as_the_single_environment_of_its_seed():
    vec = GameVectorEnv(simulation(cartpole.game(), 3))
    env = GameEnv(simulation(cartpole.game(), 1, autoreset_mode="off"))
    for seen, seeds in ((vec.reset(seed=5)[0], [5, 6, 7]), (vec.reset(seed=[9, 2, 4])[0], [9, 2, 4])):
        np.testing.assert_array_equal(seen, [env.reset(seed=seed)[0] for seed in seeds])


def test_a_team_is_shown_the_fields_of_its_own_team():
    env = parallel(two_team.game(), observation="dict", mask=None)
    env.reset(seed=1)
    env.sim.states["info"]["goals"][0] = 1, 2
    env.sim.refresh()
    goals = {agent: agent_io.observe_one()["goals"].item() for agent, agent_io in env.agent_ios.items()}
    assert goals == {a: 1.0 if a.startswith("red") else 2.0 for a in env.possible_agents}


DUEL_ENDS = [(duel.WAIT, "blue", "goal", 1), (duel.PRESS, "", "spent", -1)]
"""Red gives way, blue attacks: the choice of red, the winner, the end reason, and the winner's number."""


@pytest.mark.parametrize(("corner", "winner", "reason", "number"), DUEL_ENDS)
def test_the_end_tells_the_winner_if_there_is_one(corner: int, winner: str, reason: str, number: int):
    make = lambda n, mode: simulation(duel.game(tries=1), n, autoreset_mode=mode)  # noqa: E731
    many, one, lanes = GameParallelEnv(make(1, "off")), make(1, "off"), make(2, "same_step")
    for sim in (one, lanes):
        sim.set_opponent("blue", "presser")
    env, vec = GameEnv(one), GameVectorEnv(lanes)
    printed: Any = ()
    for face in (many, env, vec):
        face.reset(seed=1)
    for move in (duel.WAIT, corner):
        printed = (
            many.step({"red_0": move, "blue_0": duel.PRESS})[4]["red_0"],
            env.step(move)[4],
            vec.step(np.array([move, move]))[4],
        )
    for face, info in ((many, printed[0]), (env, printed[1])):
        assert info["winner"] == number
        assert (face.team_names[info["winner"]], face.end_reasons[info["end_reason"]]) == (winner, reason)
    assert printed[2]["winner"].tolist() == [-1] * 2  # the next match goes on
    assert printed[2]["final_info"]["winner"].tolist() == [number] * 2
    assert [vec.end_reasons[k] for k in printed[2]["final_info"]["end_reason"]] == [reason] * 2


def test_infos_have_the_same_keys_in_every_step_of_every_face():
    make = lambda mode, n=1, **options: simulation(duel.game(tries=1), n, autoreset_mode=mode, **options)  # noqa: E731
    many = GameParallelEnv(make("off"))
    env = GameEnv(make("off", opponents={"blue": "presser"}))
    vec = GameVectorEnv(make("same_step", 2, opponents={"blue": "presser"}))
    one, several = env.reset(seed=1)[1], vec.reset(seed=1)[1]
    each = [info for infos in [many.reset(seed=1)[1]] for info in infos.values()]
    names = {name for name in several if not name.startswith("_")}
    assert set(one) == names
    assert {"winner", "end_reason", "acting", "illegal", "action_mask"} <= names
    assert set(each[0]) == (names | {"team"}) - {"action_mask"}  # which stand in the observation here
    for _ in range(2):
        infos = many.step({"red_0": duel.PRESS, "blue_0": duel.PRESS})[4]
        assert {frozenset(info) for info in infos.values()} == {frozenset(each[0])}
        one, several = env.step(duel.PRESS)[4], vec.step(np.array([duel.PRESS] * 2))[4]
        assert set(one) == names == {name for name in several if name[0] != "_"} - {"final_obs", "final_info"}
    assert {name for name in several["final_info"] if name[0] != "_"} == names


def test_nobody_is_asked_after_the_end_of_a_match():
    make = lambda mode, n=1: simulation(duel.game(tries=1), n, autoreset_mode=mode, opponents={"blue": "presser"})  # noqa: E731
    many = GameParallelEnv(simulation(duel.game(tries=1), 1, autoreset_mode="off"))
    env, vec, again = GameEnv(make("off")), GameVectorEnv(make("next_step", 2)), GameVectorEnv(make("same_step", 2))
    infos: Any = ()
    for face in (many, env, vec, again):
        face.reset(seed=1)
    for asked in (True, False):
        infos = (
            many.step({"red_0": duel.PRESS, "blue_0": duel.PRESS})[4]["red_0"],
            env.step(duel.PRESS)[4],
            vec.step(np.array([duel.PRESS] * 2))[4],
            again.step(np.array([duel.PRESS] * 2))[4],
        )
        assert [np.all(info["acting"] == asked) for info in infos[:3]] == [True] * 3
    assert infos[3]["acting"].all()
    assert not infos[3]["final_info"]["acting"].any()


# -- masks and candidates ----------------------------------------------------------------------------------------------


def test_lists_of_candidates_are_reported_beside_dense_masks():
    env = parallel(FULL, mask="info")
    printed = env.reset(seed=1)[1]["red_1"]
    assert printed["candidates"].keys() == {"order"}
    assert (printed["candidates"]["order"].tolist(), printed["candidates"]["order"].dtype) == ([0, 3, 1, -1], np.int32)
    assert [m.tolist() for m in printed["action_mask"]] == [[1, 1], [1, 1, 0], [1, 1, 1]]
    assert "action_mask" not in parallel(ORDER, mask="info").reset(seed=1)[1]["red_1"]


@pytest.mark.parametrize("kind", KINDS)
def test_lists_and_masks_that_are_observed_are_in_their_space(kind: str):
    faces = [single(KINDS[kind], mask="obs"), vector(KINDS[kind], mask="obs")]
    for face in faces:
        seen, _ = face.reset(seed=1)
        assert seen.keys() == face.observation_space.keys()
        assert face.observation_space.contains(seen)
        assert ("action_mask" in seen) == (kind != "order")
    seen = faces[0].reset(seed=1)[0]["candidates"]["order"]
    np.testing.assert_array_equal(seen, [[0, 2, 12, -1], [0, 3, 1, -1]])  # one row a member of the team
    assert faces[1].reset(seed=1)[0]["candidates"]["order"].shape == (3, 2, 4)


def test_a_dict_is_sampled_with_the_dense_part_of_its_mask():
    env = parallel(MIXED)
    seen = env.reset(seed=1)[0]["red_0"]
    mask = seen["action_mask"]
    assert mask["order"] is None
    samples = [env.action_space("red_0").sample(mask) for _ in range(60)]
    assert {int(s["gear"]) for s in samples} == {0}
    assert {tuple(s["signs"].tolist()) for s in samples} == {(a, b) for a in range(2) for b in range(3)}


@pytest.mark.parametrize("kind", KINDS)
def test_action_masks_are_dense_for_learners_that_know_no_lists(kind: str):
    env = single(KINDS[kind])
    env.reset(seed=1)
    mask = env.action_masks()
    width = 13 + (0 if kind == "order" else 2 + 2 * 3)
    assert (mask.shape, mask.dtype) == ((2 * width,), bool)
    assert np.flatnonzero(mask[:13]).tolist() == [0, 2, 12]
    assert np.flatnonzero(mask[width : width + 13]).tolist() == [0, 1, 3]
    if kind != "order":
        assert mask[13:width].astype(int).tolist() == [1, 0, 1, 1, 0, 1, 1, 1]


def must_go_on(s, world, mask):
    for a in range(depot.drivers(s)):
        offer(mask.driver[a].order, 1 + (s.here[a] + 1) % len(world.hops))


def test_places_beyond_a_list_stand_for_no_alternative(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    env = single(depot.game(legal=must_go_on))
    env.reset(seed=1)  # at the places 0 and 1
    assert np.flatnonzero(env.action_masks()).tolist() == [2, 13 + 3]


def test_what_is_not_on_the_list_is_not_done():
    env = parallel(mask="info")
    env.reset(seed=1)
    _, rewards, _, _, infos = env.step({"red_0": 7, "red_1": 3, "blue_0": 0})
    assert (rewards["red_0"], infos["red_0"]["illegal"]) == (0.0, 1)
    assert (rewards["red_1"], infos["red_1"]["illegal"]) == (2 / 3, 0)


def test_final_lists_are_reported_for_matches_that_start_anew_at_once():
    vec = vector(FULL, mode="same_step")
    vec.sim.set_parameters(lanes=np.array([1]), horizon=1)
    vec.reset(seed=1)
    idle = np.zeros((3, 8), int)
    move = idle.copy()
    move[:, 0] = 2  # to place 1
    *_, info = vec.step(move)
    final = info["final_info"]
    assert info["_final_info"].tolist() == [False, True, False]
    assert final["candidates"]["order"][1, 0].tolist() == [0, 3, 1, -1]
    assert info["candidates"]["order"][1, 0].tolist() == [0, 2, 12, -1]
    assert final["action_mask"].shape == (3, 16)


def test_the_last_observation_holds_the_last_list():
    vec = vector(mode="same_step", mask="obs")
    vec.sim.set_parameters(horizon=1)
    vec.reset(seed=1)
    seen, *_, info = vec.step(np.full((3, 2), [2, 0]))  # the first driver goes to place 1
    assert info["final_obs"][1]["candidates"]["order"][0].tolist() == [0, 3, 1, -1]
    assert seen["candidates"]["order"][1, 0].tolist() == [0, 2, 12, -1]


@pytest.mark.parametrize("copy", [True, False])
def test_lists_are_the_callers_own_if_copied(copy: bool):
    vec = vector(copy=copy)
    _, info = vec.reset(seed=1)
    ids = info["candidates"]["order"]
    before = ids.copy()
    vec.step(np.full((3, 2), [12, 1]))
    assert (ids == before).all() == copy


@pytest.mark.parametrize("observation", ["flat", "dict"])
def test_the_last_observation_of_a_match_that_starts_anew_is_the_one_a_waiting_match_shows(observation: Any):
    game = cartpole.game()
    make = lambda mode: GameVectorEnv(simulation(game, 4, autoreset_mode=mode), observation=observation)  # noqa: E731
    anew, waiting = make("same_step"), make("off")
    for vec in (anew, waiting):
        vec.reset(seed=1)
        vec.sim.set_parameters(lanes=np.array([1, 3]), horizon=2)
    actions = np.array([0, 1, 1, 0])
    for vec in (anew, waiting):
        vec.step(actions)
    _, _, _, over, info = anew.step(actions)
    seen, *_ = waiting.step(actions)
    assert over.tolist() == [False, True, False, True]
    assert [final is None for final in info["final_obs"]] == [True, False, True, False]
    for lane in (1, 3):
        expected = seen[lane] if observation == "flat" else {name: array[lane] for name, array in seen.items()}
        np.testing.assert_equal(info["final_obs"][lane], expected)


def test_a_choice_of_several_words_takes_its_words():
    env = parallel(FULL, mask=None)
    env.reset(seed=1)
    assert env.action_space("red_0") == spaces.MultiDiscrete([13, 2, 3, 3])
    env.step({"red_0": [0, 0, 1, 2], "red_1": np.zeros(4, int), "blue_0": np.zeros(4, int)})
    assert env.sim.buffers.action_records["driver"]["signs"][0, 0].tolist() == [1, 2]


# -- pictures in words -------------------------------------------------------------------------------------------------


def test_all_faces_render_text():
    env, vec, many = single(render_mode="ansi"), vector(render_mode="ansi"), parallel(render_mode="ansi")
    for face in (env, vec, many):
        face.reset(seed=1)
        assert "ansi" in face.metadata["render_modes"]
    assert env.render() == many.render() == "drivers at 0 1 2 3"
    assert vec.render() == ("drivers at 0 1 2 3",) * 3


def test_a_game_without_text_has_no_such_mode():
    with pytest.raises(ValueError, match=r"Depot renders 'rgb_array' or 'human', not 'ansi'"):
        single(depot.game(render_text=None), render_mode="ansi")


@pytest.mark.parametrize(("driver", "waits"), [("dummy", 0), ("x11", 1)])
def test_pictures_go_at_the_pace_of_the_match_where_a_screen_shows_them(driver, waits, monkeypatch):
    pygame = pytest.importorskip("pygame")
    ticks = []
    monkeypatch.setattr(pygame.display, "get_driver", lambda: driver)
    monkeypatch.setattr(pygame.time, "Clock", lambda: SimpleNamespace(tick=ticks.append))
    env = single(render_mode="human")
    env.reset(seed=1)  # draws the first picture
    env.close()
    assert ticks == [env.metadata["render_fps"]] * waits


# -- attributes of the lanes of a vector -------------------------------------------------------------------------------


def test_a_vector_has_what_gymnasiums_own_vectors_have():
    cartpole = "palaestra/CartPole-v0"
    sync = gymnasium.make_vec(cartpole, 2, vectorization_mode="sync", render_mode="rgb_array")
    ours: Any = gymnasium.make_vec(cartpole, 2, render_mode="rgb_array")
    for envs in (sync, ours):
        envs.reset(seed=1)
    assert ours.autoreset_mode is sync.autoreset_mode is AutoresetMode.NEXT_STEP  # type: ignore[attr-defined]
    for name in ("observation_space", "action_space", "render_mode"):
        assert ours.get_attr(name) == ours.call(name) == sync.get_attr(name)  # type: ignore[attr-defined]
    for one, other in zip(ours.call("render"), sync.call("render"), strict=True):  # type: ignore[attr-defined]
        assert np.array_equal(one, other)
    assert vector().call("render") == (None, None, None)


@pytest.mark.parametrize("mode", ["rgb_array_list", "ansi_list"])
@pytest.mark.parametrize("autoreset", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_list_modes_collect_what_one_match_alone_shows(mode: str, autoreset: AutoresetMode):
    keywords: dict[str, Any] = {"compiled": False, "horizon": 3, "render_mode": mode}
    ours: Any = gymnasium.make_vec("palaestra/CartPole-v0", 2, autoreset_mode=autoreset, **keywords)
    sync: Any = gymnasium.make_vec(
        "palaestra/CartPole-v0", 2, vectorization_mode="sync", vector_kwargs={"autoreset_mode": autoreset}, **keywords
    )
    for envs in (ours, sync):
        envs.reset(seed=1)
    assert ours.render_mode == mode
    counts = []
    for number in range(9):
        for envs in (ours, sync):
            envs.step(np.zeros(2, np.int64))
        if number % 5 == 1:
            mine, theirs = ours.render(), sync.render()
            counts.append([len(frames) for frames in mine])
            for one, other in zip(mine, theirs, strict=True):
                assert len(one) == len(other)
                assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert counts[0] == [3, 3]


def test_lanes_of_a_vector_have_parameters_of_their_own():
    envs = vector(two_team.game(), observation="dict")
    envs.set_attr("damage", [0.0, 1.0, 2.0])
    assert envs.get_attr("damage") == (0.0, 1.0, 2.0)
    envs.set_attr("damage", 1.0)
    assert envs.sim.parameters["damage"].tolist() == [1.0] * 3
    with pytest.raises(ValueError, match="each of the 3 lanes, got 2"):
        envs.set_attr("damage", [1.0, 2.0])
    with pytest.raises(AttributeError, match=r"no parameter 'damge'; did you mean 'damage'"):
        envs.set_attr("damge", 1.0)
    with pytest.raises(AttributeError, match=r"no step\(\) of their own"):
        envs.call("step")
    with pytest.raises(AttributeError, match="'nothing'"):
        envs.get_attr("nothing")


# -- fixed agents ------------------------------------------------------------------------------------------------------


def test_fixed_agents_stay_from_reset_to_the_end_of_the_match():
    env = parallel(fixed_agents=True)
    seen, _ = env.reset(seed=1)
    agents = env.possible_agents
    assert env.agents == agents == list(seen)
    assert not seen["blue_1"]["observation"][:9].any()  # not there yet: its own fields are zero
    assert seen["blue_1"]["candidates"]["order"].tolist() == [0, -1, -1, -1]
    for number in range(1, 8):
        back = {a: 1 + (int(env.sim.states["here"][0, k]) - 1) % 12 for k, a in enumerate(agents)}
        seen, rewards, ends, cuts, infos = env.step(back)
        assert list(seen) == list(rewards) == list(ends) == list(cuts) == list(infos) == env.agents == agents
        assert not any(ends.values())
        assert not any(cuts.values())
        assert infos["red_0"]["acting"] == (number < depot.FUEL)
        assert infos["blue_1"]["acting"] == (depot.ARRIVAL <= number < depot.ARRIVAL + depot.FUEL)
        assert rewards["red_0"] == (1 / 3 if number <= depot.FUEL else 0.0)
    *_, ends, cuts, _ = env.step({})
    assert set(cuts.values()) == {True}
    assert set(ends.values()) == {False}
    assert env.agents == []


def test_actions_of_the_dead_are_ignored_or_left_out():
    env = parallel(fixed_agents=True, mask=None)
    env.reset(seed=1)
    env.step({"red_0": 0, "red_1": 0, "blue_0": 0, "blue_1": "anything"})
    env.step({"red_0": 0, "red_1": 0, "blue_0": 0})
    with pytest.raises(ValueError, match="no action for blue_1"):
        env.step({"red_0": 0, "red_1": 0, "blue_0": 0})
    with pytest.raises(KeyError, match="'green_0' is no agent: possible_agents are red_0, red_1"):
        env.step({"green_0": 0})


def test_actions_of_agents_that_are_not_in_the_match_are_ignored():
    """Libraries whose buffers have a row for every possible agent send actions of all of them."""
    env, other = parallel(mask=None), parallel(mask=None)
    for face in (env, other):
        face.reset(seed=1)
    while env.agents:
        everybody = dict.fromkeys(env.possible_agents, 1)
        seen = env.step({a: everybody[a] if a in env.agents else "anything" for a in everybody})
        assert seen[1:4] == other.step({a: everybody[a] for a in other.agents})[1:4]
        assert all_bytes(env.sim).tobytes() == all_bytes(other.sim).tobytes()
    assert env.sim.states["steps"][0] > 2


def test_fixed_agents_is_a_keyword_of_pettingzoos_entry_point():
    from palaestra import zoo

    env = zoo.team_tag_v0.parallel_env(fixed_agents=True)
    env.reset(seed=1)
    assert env.agents == env.possible_agents
    with pytest.raises(TypeError, match="fixed_agents"):
        gymnasium.make("palaestra/TeamTag-v0", fixed_agents=True)


# -- the peers' own tests ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("observation", ["flat", "dict"])
def test_gymnasium_accepts_the_face(kind: str, observation: Any):
    check_env(single(KINDS[kind], observation=observation), skip_render_check=True)


@pytest.mark.parametrize("fixed_agents", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_pettingzoo_accepts_the_face(kind: str, fixed_agents: bool):
    parallel_api_test(parallel(KINDS[kind], fixed_agents=fixed_agents, mask=None), num_cycles=60)


# -- what reset is told ------------------------------------------------------------------------------------------------

UNKNOWN_OPTIONS = [({"speed": 1}, "unknown option 'speed'"), ({"places": 3, "horizon": 9}, "unknown option 'places'"),
                   ({"horizon": 9}, r"'horizon' is no option but a parameter of the rules: .*set_parameters\(horizon="),
                   ("fast", "options must be a dict or None, got 'fast'"), ([], "options must be a dict")]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), UNKNOWN_OPTIONS)
@pytest.mark.parametrize("face", [single, vector, parallel, lambda: GameAECEnv(parallel())])
def test_an_option_without_a_meaning_is_refused_before_a_match_starts(face: Any, options: Any, message: str):
    env = face()
    env.reset(seed=1, options={})
    env.reset(options=None)
    before = all_bytes(env.unwrapped.sim)
    with pytest.raises(ValueError, match=f"^reset: {message}"):
        env.reset(seed=2, options=options)
    np.testing.assert_array_equal(all_bytes(env.unwrapped.sim), before)


def test_only_lanes_that_wait_can_be_reset_by_a_mask():
    for env in (single(), parallel()):
        with pytest.raises(ValueError, match=r"'reset_mask' is an option of gymnasium\.make_vec alone"):
            env.reset(options={"reset_mask": np.ones(1, bool)})
    vec = vector(mode="off")
    vec.reset(seed=1)
    with pytest.raises(ValueError, match="unknown option 'resetmask'; known here: 'reset_mask'"):
        vec.reset(options={"resetmask": np.ones(3, bool)})


@pytest.mark.parametrize("face", [single, parallel, lambda: GameAECEnv(parallel()), vector])
@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, True, "1", [1.5, 2, 3], ["1", "2", "3"], [-1, 2, None], [True, 0, 0]])
def test_a_seed_is_an_integer_for_every_face(face: Any, seed: Any):
    env = face()
    with pytest.raises(ValueError, match="seed must be an integer"):
        env.reset(seed=seed)
    env.reset(seed=np.int64(5))
    assert env.unwrapped.sim.lane_seeds[0] == 5
