"""Games of many sizes share one kernel: memory has the capacity, and users see the visible size everywhere."""

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from games import orchard, size_game
from games.orchard import CARRIERS, FULL, PAIRS, PICKERS, ROWS, started
from games.play import all_bytes, idle_actions, leaves, random_actions, seen_bytes, simulation
from gymnasium import spaces

from palaestra.core.compile.linker import jit_disabled, link
from palaestra.core.contract.spaces import action_space, box_space
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.run.workers import ProcessSimulation

pytestmark = pytest.mark.jitless

SIZES = {
    "small": {"pickers": 2, "carriers": 1, "pairs": 1, "rows": 1},
    "middle": {},
    "full": FULL,
}
compiled = pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")


def agents_in(game: Any) -> tuple[int, int]:
    return len(game.roles[0].agents), len(game.roles[1].agents)


# -- what users see ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_arrays_have_the_visible_agents(size: str):
    game = orchard.game(**SIZES[size])
    sim, (pickers, carriers) = started(3, game), agents_in(game)
    agents = pickers + carriers
    assert game.slots == orchard.SLOTS
    for array in (sim.rewards, sim.alive, sim.acting, sim.agent_terminated, sim.info["illegal"]):
        assert array.shape == (3, agents)
    pairs, rows = game.world.sizes[2:]
    assert sim.observations["picker"].shape == (3, pickers, 1 + pairs + 2 * pairs + 1 + 3 * rows)
    assert sim.observations["carrier"]["shelf"].shape == (3, carriers, pairs)
    assert sim.lane_observations["weather"].shape == (3, pairs)
    assert sim.team_observations.shape == (3, 2)
    assert sim.legal["picker"].shape == (3, pickers, 3)
    assert sim.legal["carrier"]["loads"]["ids"].shape == (3, carriers, 2, orchard.ROOM)
    assert sim.actions["picker"].shape == (3, pickers)
    assert sim.actions["carrier"]["force"].shape == (3, carriers, 2)
    assert sim.info["totals"].shape == (3, pairs)
    assert sim.states["info"]["totals"].shape == (3, orchard.PAIRS)


@pytest.mark.parametrize("size", SIZES)
def test_numbers_stand_where_the_tables_say(size: str):
    game = orchard.game(**SIZES[size])
    sim = started(2, game)
    sim.step(idle_actions(sim))
    pickers, _, pairs, rows = game.world.sizes
    seen = sim.buffers.observations["picker"]
    for a in range(pickers):
        np.testing.assert_array_equal(seen["pair"][:, a], [10 * a + np.arange(pairs)] * 2)
        grid = 100 * a + 10 * np.arange(pairs)[:, None] + np.arange(2)
        np.testing.assert_array_equal(seen["grid"][:, a], [grid] * 2)
        np.testing.assert_array_equal(seen["rows"]["kind"][:, a], [np.arange(rows)] * 2)
        np.testing.assert_array_equal(seen["rows"]["offset"][:, a], [[[a, 1]] * rows] * 2)
    assert sim.info["totals"].tolist() == [[1 + j for j in range(pairs)]] * 2


@pytest.mark.parametrize("size", SIZES)
def test_spaces_and_agents_are_of_the_visible_size(size: str):
    game = orchard.game(**SIZES[size])
    env = GameParallelEnv(simulation(game, 1, autoreset_mode="off"), observation="dict", mask=None)
    seen, _ = env.reset(seed=1)
    assert tuple(env.possible_agents) == game.agents
    assert set(seen) == set(game.agents)
    assert env.action_space("red_0") == spaces.Discrete(3)
    for agent in game.agents:
        assert env.observation_space(agent).contains(seen[agent])
        assert env.observation_space(agent).contains(env.step({a: idle(env, a) for a in env.agents})[0][agent])
    picker, carrier = game.roles
    assert box_space(picker.observation).shape == started(1, game).observations["picker"].shape[2:]
    assert action_space(picker.action, len(picker.agents)) == spaces.MultiDiscrete([3] * len(picker.agents))
    joint: Any = action_space(carrier.action, len(carrier.agents))
    assert joint["loads"] == spaces.MultiDiscrete([orchard.GOODS] * 2 * len(carrier.agents))


def idle(env: Any, agent: str) -> Any:
    space = env.action_space(agent)
    return 0 if isinstance(space, spaces.Discrete) else {"loads": np.zeros(2, int), "force": np.array([0, 1], "f4")}


def test_a_vector_and_a_single_env_have_it_too():
    game = size_game.game(agents=5, parcels=6)
    single = GameEnv(simulation(game, 1, autoreset_mode="off", opponents={"blue": "nearest"}), observation="dict")
    vector = GameVectorEnv(simulation(game, 2, opponents={"blue": "nearest"}), observation="dict")
    seen, _ = single.reset(seed=1)
    assert seen["couriers"].shape == (3, 5, 4)
    assert seen["parcels"].shape == (3, 6, 3)
    assert single.observation_space.contains(seen)
    assert vector.observation_space.contains(vector.reset(seed=1)[0])
    assert single.action_space == spaces.MultiDiscrete([7, 2] * 3)


@pytest.mark.parametrize("size", SIZES)
def test_the_global_state_is_of_the_visible_size(size: str):
    game = orchard.game(**SIZES[size])
    sim, (pickers, carriers) = started(2, game), agents_in(game)
    pairs, rows = game.world.sizes[2:]
    assert sim.state().shape == (2, pickers * (2 + 3 * pairs + 3 * rows) + carriers * (1 + pairs) + 2 * 2 + 1 + pairs)
    assert sim.state() is sim.state()


def test_slots_beyond_the_visible_agents_are_never_alive():
    game = orchard.game(**SIZES["small"])
    sim, rng = started(3, game, autoreset_mode="same_step", parameters={"horizon": 3}), np.random.default_rng(0)
    for _ in range(7):
        for name in ("alive", "acting"):
            assert not sim.states[name][:, 3:].any()
            assert sim.states[name][:, :3].all()
        assert (sim.states["team"] == [0, 1, 1, -1, -1, -1, -1]).all()
        assert not sim.buffers.rewards[:, 3:].any()
        assert not sim.states["info"]["illegal"][:, 3:].any()
        sim.step(random_actions(sim, rng))


def test_slots_of_interleaved_teams_are_numbered_over_the_visible_agents():
    game = orchard.game()
    assert game.agents == ("red_0", "blue_0", "red_1", "blue_1", "red_2")
    assert game.teams == {"red": (0, 2, 4), "blue": (1, 3)}
    assert [game.role_of(slot) for slot in (2, 3)] == [(game.roles[0], 2), (game.roles[1], 0)]
    sim = started(1, game)
    actions = idle_actions(sim)
    actions["picker"][0] = [1, 2, 0]
    actions["carrier"]["loads"][0] = [[103, 0], [104, 204]]
    sim.step(actions)
    np.testing.assert_allclose(sim.rewards[0], np.array([1, 2, 0, 103, 308]) / 3)
    np.testing.assert_allclose(sim.team_rewards("red"), [(1 + 0 + 308) / 3])
    assert sim.states["force"][0, :5].tolist() == [[0, 0]] * 3 + [[0.5, 2.0]] * 2


def test_errors_name_visible_agents_and_the_visible_size():
    sim = started(2)
    for name, value, complaint in (
        ("picker", 3, r"lane 1, red_1: pick = 3 is not an integer in \[0, 3\)"),
        ("loads", orchard.GOODS, r"lane 1, red_2: loads\[1\] = 13000 is not an integer in \[0, 13000\)"),
        ("force", np.nan, r"lane 1, red_2: force\[1\] = nan is not in \[0, 5\]"),
    ):
        actions = idle_actions(sim)
        if name == "picker":
            actions["picker"][1, 2] = value
        else:
            actions["carrier"][name][1, 1, 1] = value
        with pytest.raises(ValueError, match=complaint):
            sim.step(actions)
    with pytest.raises(ValueError, match=r"action of picker must have shape \(2, 3\), got \(2, 4\)"):
        sim.step({**idle_actions(sim), "picker": np.zeros((2, 4), int)})
    with pytest.raises(ValueError, match=r"one agent from red_0, blue_0, red_1, blue_1, red_2$"):
        sim.set_opponent("blue_2", "one")


def test_a_capacity_that_does_not_hold_the_agents_is_refused():
    with pytest.raises(ValueError, match="Orchard: capacity 4 of 'picker' does not hold its 5 agents"):
        orchard.game(pickers=5)


# -- one kernel --------------------------------------------------------------------------------------------------------


def test_presets_share_one_kernel():
    kernels = {id(link(orchard.game(**size))) for size in SIZES.values()}
    assert len(kernels) == 1
    assert link(size_game.game(3, 4, 1)) is link(size_game.game(40, 64, 4))


def test_other_tables_do_not():
    assert link(orchard.game()) is not link(orchard.game(capacity=False))


@pytest.mark.check
@compiled
def test_a_second_preset_compiles_nothing():
    started(2, orchard.game(**FULL), threads=2).close()  # check_lanes too
    kernel = link(orchard.game())
    before = {name: list(driver.overloads) for name, driver in kernel.drivers.items()}  # type: ignore[attr-defined]
    sim = started(3, orchard.game(pickers=2, carriers=3, pairs=1, rows=4), threads=2)
    sim.step(idle_actions(sim))
    sim.close()
    assert {name: list(d.overloads) for name, d in kernel.drivers.items()} == before  # type: ignore[attr-defined]


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_at_full_capacity_it_plays_like_the_same_rules_without_capacities(mode: Any):
    options = {"autoreset_mode": mode, "parameters": {"horizon": 5, "leaver": 2}, "opponents": {"blue": "mix"}}
    sized = started(4, orchard.game(**FULL), **options)
    plain = started(4, orchard.game(PICKERS, CARRIERS, PAIRS, ROWS, capacity=False), **options)
    assert (sized.game.sized, plain.game.sized) == (True, False)
    rng = np.random.default_rng(0)
    for _ in range(12):
        actions = random_actions(sized, rng)
        for sim in (sized, plain):
            sim.step(actions)
        np.testing.assert_array_equal(seen_bytes(sized), seen_bytes(plain))
        np.testing.assert_array_equal(sized.states, plain.states)
        np.testing.assert_array_equal(sized.state(), plain.state())


@pytest.mark.check
@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_two_threads_play_the_same(mode: Any):
    options = {"autoreset_mode": mode, "parameters": {"horizon": [3, 4, 5, 6, 3]}, "opponents": {"blue": "mix"}}
    sim, twin, rng = started(5, threads=2, **options), started(5, **options), np.random.default_rng(0)
    for _ in range(10):
        actions = random_actions(sim, rng)
        sim.step(actions)
        twin.step(actions)
        np.testing.assert_array_equal(all_bytes(sim), all_bytes(twin))
    sim.close()


# -- copies, processes, players ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda sim: pickle.loads(pickle.dumps(sim))])
def test_a_copy_in_the_middle_of_a_match_continues_like_the_original(duplicate: Any):
    sim, rng = started(3, parameters={"horizon": [4, 9, 20]}, opponents={"blue": "mix"}), np.random.default_rng(0)
    for _ in range(5):
        sim.step(random_actions(sim, rng))
    twin = duplicate(sim)
    np.testing.assert_array_equal(all_bytes(twin), all_bytes(sim))
    for _ in range(6):
        actions = random_actions(sim, rng)
        sim.step(actions)
        twin.step(actions)
        np.testing.assert_array_equal(all_bytes(twin), all_bytes(sim))


@pytest.mark.check
@compiled
def test_processes_play_the_same():
    options: dict[str, Any] = {"autoreset_mode": "same_step", "parameters": {"horizon": [2, 3, 4]}}
    with_workers = ProcessSimulation(orchard.game(), 3, workers=2, opponents={"blue": "one"}, **options)
    twin, rng = started(3, opponents={"blue": "one"}, **options), np.random.default_rng(0)
    with_workers.reset(seed=1)
    try:
        for _ in range(6):
            actions = random_actions(twin, rng)
            with_workers.step(actions)
            twin.step(actions)
            np.testing.assert_array_equal(all_bytes(with_workers), all_bytes(twin))
            np.testing.assert_array_equal(with_workers.state(), twin.state())
            for mine, its in zip(leaves(with_workers.final_info), leaves(twin.final_info), strict=True):
                np.testing.assert_array_equal(mine, its)
        mask = np.array([True, False, True])
        for sim in (with_workers, twin):
            sim.load_states(twin.states[[1, 1]], mask)
        np.testing.assert_array_equal(all_bytes(with_workers), all_bytes(twin))
    finally:
        with_workers.close()


def test_python_opponents_see_and_move_the_visible_agents():
    shapes = []

    def blue(seen: Any) -> Any:
        shapes.append({name: seen[name].shape for name in ("picker", "carrier")})
        shapes.append({name: array.shape for name, array in seen["lane"].items()})
        loads = np.zeros((len(seen["picker"]), 1, 2), int)
        loads[:, :, 0] = 103
        return {
            "picker": np.ones((len(loads), 1), int),
            "carrier": {"loads": loads, "force": np.full((len(loads), 1, 2), 0.25)},
        }

    sim = started(2, opponents={"blue": blue})
    sim.step(idle_actions(sim))
    assert shapes == [
        {"picker": (2, 1, 14), "carrier": (2, 1)},
        {"time": (2,), "weather": (2, 2), "prices": (2, 6)},
    ]
    assert sim.states["count"].tolist() == [[0, 1, 0, 103, 0, 0, 0]] * 2
    assert sim.states["force"][0, 3].tolist() == [0.25, 0.25]


# -- numbers of the world ----------------------------------------------------------------------------------------------

ORCHARD, COURIERS = orchard.game(), size_game.game()
OTHER_NUMBERS = {
    "a number": (COURIERS, COURIERS.world._replace(paces=1)),
    "a number in a tuple": (ORCHARD, ORCHARD.world._replace(sizes=ORCHARD.world.sizes._replace(pairs=1))),
}


@pytest.mark.parametrize("what", OTHER_NUMBERS)
def test_games_that_differ_in_a_number_of_their_world_share_a_kernel_that_reads_it(what: str):
    game, world = OTHER_NUMBERS[what]
    other = replace(game, world=world)
    assert link(game) is link(other)
    played = []
    for one in (game, other):
        sim, rng = simulation(one, 2), np.random.default_rng(0)
        sim.reset(seed=1)
        for _ in range(5):
            sim.step(random_actions(sim, rng))
        played.append(all_bytes(sim))
    assert (played[0] != played[1]).any()
