"""GraphConfront: moves, shots, what is paid, who has won, starts, masks, what is seen and hidden, scripts, sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from palaestra import make_batch, registry
from palaestra.core.kernel import KernelSimulation
from palaestra.core.linker import jit_disabled
from palaestra.pursuit.confront import game

pytestmark = pytest.mark.jitless
compiles = pytest.mark.skipif(jit_disabled(), reason="kernels are plain functions")

ID = "palaestra/GraphConfront-v0"
NOBODY = -1


def meet(graph: Any, red: int = 1, blue: int = 1, lanes: int = 1, seed: int = 0, **keywords: Any) -> Any:
    """Matches on a graph by the rules as plain Python; keywords of the game, and ``parameters``."""
    options: dict[str, Any] = {"compiled": False, "autoreset_mode": "off", "parameters": keywords.pop("parameters", {})}
    sim = KernelSimulation(game(graph, red, blue, **keywords), lanes, **options)
    sim.reset(seed=seed)
    return sim


def place(sim: Any, *nodes: int, lane: int = 0) -> Any:
    """Puts everybody on a node, red first."""
    sim.states["node"][lane, : len(nodes)] = nodes
    sim.refresh()
    return sim


def go(sim: Any, *orders: tuple[int, int]) -> Any:
    """One decision of a single match: a node to go to and the number of the opponent to shoot at, for each agent."""
    state = sim.states[0]
    for slot, (node, target) in enumerate(orders):
        ways = sim.game.world.neighbours[state["graph"], state["node"][slot]].tolist()
        is_there = bool(state["alive"][slot])
        sim.actions[0, slot] = (ways.index(node), 1 + target) if is_there else (0, 0)
    sim.step()
    return sim


def points(sim: Any) -> list[float]:
    return sim.states["hit_points"][0, : len(sim.game.agents)].tolist()


def seen(sim: Any, agent: str, lane: int = 0) -> Any:
    return sim.buffers.observations["unit"][lane, sim.game.agents.index(agent)]


def ended(sim: Any) -> tuple[str, int]:
    assert sim.terminated[0] or sim.truncated[0]
    return sim.game.all_end_reasons[int(sim.info["end_reason"][0])], int(sim.info["winner"][0])


# ------------------------------------------------------------------------------------------------------ moves and shots


def test_agents_move_at_once_and_may_pass_each_other_and_share_a_node():
    sim = place(meet("path:5", 2, 1), 1, 3, 2)
    go(sim, (2, NOBODY), (3, NOBODY), (1, NOBODY))
    assert sim.states["node"][0, :3].tolist() == [2, 3, 1]
    go(sim, (3, NOBODY), (3, NOBODY), (2, NOBODY))
    assert sim.states["node"][0, :3].tolist() == [3, 3, 2]


def test_shots_fall_after_the_moves():
    sim = place(meet("path:9"), 0, 3)
    go(sim, (1, 0), (2, NOBODY))
    assert points(sim) == [3, 2], "they are one hop apart now"
    go(sim, (0, NOBODY), (3, 0))
    assert points(sim) == [3, 2], "three hops: the shot has missed"
    assert not sim.info["illegal"].any()


@pytest.mark.parametrize(("reach", "hit"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_target_within_reach_is_hit(reach: int, hit: bool):
    sim = place(meet("path:9", parameters={"reach": reach}), 0, 2)
    go(sim, (0, 0), (2, NOBODY))
    assert points(sim) == [3, 2 if hit else 3]
    assert sim.states["target"][0, :2].tolist() == [1 if hit else NOBODY, NOBODY]


def test_who_has_no_hit_points_left_has_shot_all_the_same_and_leaves():
    sim = place(meet("path:5", 2, 1, parameters={"hit_points": 1}), 1, 1, 2)
    go(sim, (1, 0), (1, NOBODY), (2, 1))
    assert points(sim) == [1, 0, 0]
    assert sim.alive[0].tolist() == [1, 0, 0]
    assert ended(sim) == ("wiped_out", 0)


def test_it_is_a_draw_if_nobody_is_left():
    sim = place(meet("path:5", parameters={"hit_points": 1}), 1, 2)
    go(sim, (1, 0), (2, 0))
    assert (points(sim), ended(sim)) == ([0, 0], ("wiped_out", -1))
    assert sim.terminated[0]
    assert sim.rewards[0].tolist() == [0, 0]


def test_more_shots_than_hit_points_cost_the_hit_points_that_there_were():
    sim = place(meet("path:5", 3, 3, parameters={"hit_points": 2}), 1, 1, 1, 2, 2, 2)
    go(sim, (1, 0), (1, 0), (1, 0), (2, NOBODY), (2, NOBODY), (2, NOBODY))
    assert points(sim) == [2, 2, 2, 0, 2, 2]
    np.testing.assert_allclose(sim.rewards[0], [2 / 6] * 3 + [-2 / 6] * 3, rtol=1e-6)


def test_the_dead_do_not_move_shoot_or_get_hit():
    sim = place(meet("path:5", 2, 1), 1, 1, 2)
    sim.states["alive"][0, 1] = sim.states["acting"][0, 1] = 0
    sim.states["hit_points"][0, 1] = 0
    sim.refresh()
    sim.actions[0] = [(0, 0), (1, 1), (0, 2)]
    sim.step()
    assert sim.states["node"][0, :3].tolist() == [1, 1, 2]
    assert points(sim) == [3, 0, 3]
    assert sim.states["target"][0, :3].tolist() == [NOBODY] * 3


# --------------------------------------------------------------------------------------------------------- pay and ends


def test_dense_rewards_are_shares_of_the_larger_team():
    sim = place(meet("path:5", 2, 1), 1, 1, 2)
    go(sim, (1, 0), (1, 0), (2, 0))
    np.testing.assert_allclose(sim.rewards[0], [1 / 6, 1 / 6, -1 / 6], rtol=1e-6)
    sim = place(meet("path:5", 1, 2), 1, 2, 2)
    go(sim, (1, NOBODY), (2, 0), (2, 0))
    np.testing.assert_allclose(sim.rewards[0], [-2 / 6, 2 / 6, 2 / 6], rtol=1e-6)


def test_sparse_rewards_come_at_the_end():
    sim = place(meet("path:5", reward="sparse", parameters={"hit_points": 2}), 1, 2)
    go(sim, (1, NOBODY), (2, 0))
    assert sim.rewards[0].tolist() == [0, 0]
    go(sim, (1, NOBODY), (2, 0))
    assert sim.rewards[0].tolist() == [-1, 1]
    assert ended(sim) == ("wiped_out", 1)


@pytest.mark.parametrize(("shots", "winner"), [((0, NOBODY), 0), ((NOBODY, 0), 1), ((0, 0), -1)])
@pytest.mark.parametrize("reward", ["dense", "sparse"])
def test_at_the_horizon_the_team_with_more_hit_points_has_won(shots: tuple[int, int], winner: int, reward: Any):
    sim = place(meet("path:5", reward=reward, parameters={"horizon": 2}), 1, 2)
    go(sim, (1, shots[0]), (2, shots[1]))
    assert not sim.truncated[0]
    go(sim, (1, NOBODY), (2, NOBODY))
    assert sim.truncated[0]
    assert not sim.terminated[0]
    assert ended(sim) == ("horizon", winner)
    paid = {0: [1, -1], 1: [-1, 1], -1: [0, 0]}[winner] if reward == "sparse" else [0, 0]
    assert sim.rewards[0].tolist() == paid


def test_teams_of_unlike_sizes_are_paid_exactly_opposite_amounts():
    sim = meet("grid:4x4", 3, 2, lanes=16, parameters={"start_hops": 0, "reach": 2, "horizon": 20})
    sim.set_opponent("red", "random")
    sim.set_opponent("blue", "focus_fire")
    sim.reset(seed=3)
    for _ in range(20):
        sim.step()
        assert (sim.rewards[:, 0] == -sim.rewards[:, 4]).all()
        assert (sim.rewards[:, :3] == sim.rewards[:, :1]).all()


# --------------------------------------------------------------------------------------------------------------- starts


def test_opponents_start_far_enough_from_each_other():
    sim = meet("grid:6x6", 2, 3, lanes=64)
    nodes, hops = sim.states["node"], sim.game.world.hops[0]
    apart = hops[nodes[:, :2, None], nodes[:, None, 2:5]]
    assert apart.min() == 4
    assert len(np.unique(nodes[:, :5])) > 30


def test_opponents_start_as_far_apart_as_there_is_room():
    nodes = meet("path:3", 1, 1, lanes=32, parameters={"start_hops": 9}).states["node"]
    first_or_second_in_the_middle = (nodes[:, :2] == 1).any(axis=1)
    apart = np.abs(nodes[:, 0] - nodes[:, 1])
    assert set(apart[~first_or_second_in_the_middle]) == {2}
    assert set(apart[first_or_second_in_the_middle]) == {1}


def test_either_team_may_be_the_one_that_is_placed_first():
    nodes = meet("path:3", 1, 1, lanes=64, parameters={"start_hops": 9}).states["node"]
    assert {0, 1} == {int(np.flatnonzero(row == 1)[0]) for row in nodes[:, :2] if (row == 1).any()}


def test_each_match_draws_a_graph_of_a_pool():
    sim = meet(["path:3", "cycle:7"], lanes=32)
    assert set(sim.states["graph"]) == {0, 1}
    assert sim.states["node"][sim.states["graph"] == 0, :2].max() <= 2


# ---------------------------------------------------------------------------------------------------------------- masks


def test_the_mask_allows_ways_that_there_are_and_targets_that_may_come_within_reach():
    sim = place(meet("path:9", 2, 2), 0, 4, 3, 8)
    move, target = sim.legal[0, :, :3], sim.legal[0, :, 3:]
    assert move.tolist() == [[1, 1, 0], [1, 1, 1], [1, 1, 1], [1, 1, 0]]
    assert target.tolist() == [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0]]


def test_the_dead_and_the_unseen_are_no_targets():
    sim = place(meet("path:9", 2, 2, parameters={"vision": 1}), 2, 8, 4, 3)
    assert sim.legal[0, :, 3:].tolist() == [[1, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 0]]
    sim.states["alive"][0, 3] = 0
    sim.refresh()
    assert sim.legal[0, 0, 3:].tolist() == [1, 0, 0]
    assert sim.legal[0, 3, 3:].tolist() == [1, 0, 0], "who has left has the no-op alone"


# ------------------------------------------------------------------------------------------------------- what they see


def test_everybody_stands_in_the_order_of_the_agent_that_looks():
    sim = place(meet("path:9", 3, 2), 0, 1, 3, 7, 8)
    for agent, hops in {
        "red_0": [0, 1, 3, 7, 8],
        "red_1": [0, 1, 2, 6, 7],
        "red_2": [0, 3, 2, 4, 5],
        "blue_0": [0, 1, 7, 6, 4],
        "blue_1": [0, 1, 8, 7, 5],
    }.items():
        assert (8 * seen(sim, agent)["hops"]).tolist() == hops
        assert (8 * seen(sim, agent)["neighbours"][0, 2:]).tolist() == hops, "as from behind staying"
    assert (8 * seen(sim, "red_2")["neighbours"][1, 2:]).tolist() == [1, 2, 1, 5, 6]


def test_hit_points_are_shares_in_the_same_order():
    sim = meet("path:9", 3, 2, parameters={"hit_points": 4})
    sim.states["hit_points"][0, :5] = 4, 3, 2, 1, 4
    place(sim, 0, 1, 3, 7, 8)
    assert seen(sim, "red_0")["hit_points"].tolist() == [1, 0.75, 0.5, 0.25, 1]
    assert seen(sim, "red_1")["hit_points"].tolist() == [0.75, 1, 0.5, 0.25, 1]
    assert seen(sim, "red_2")["hit_points"].tolist() == [0.5, 1, 0.75, 0.25, 1]
    assert seen(sim, "blue_1")["hit_points"].tolist() == [1, 0.25, 1, 0.75, 0.5]


def test_who_has_left_is_out_of_sight():
    sim = meet("path:9", 2, 2)
    sim.states["alive"][0, [0, 3]] = 0
    place(sim, 0, 1, 3, 8)
    assert (8 * seen(sim, "red_1")["hops"]).tolist() == [0, -8, 2, -8]
    assert seen(sim, "red_1")["hit_points"].tolist() == [1, -1, 1, -1]
    assert (8 * seen(sim, "blue_0")["hops"]).tolist() == [0, -8, -8, 2]
    assert not seen(sim, "red_0").tobytes().strip(b"\0")


def test_a_team_sees_as_far_as_one_of_its_members():
    sim = place(meet("path:9", 2, 2, parameters={"vision": 2}), 0, 5, 7, 8)
    assert (8 * seen(sim, "red_0")["hops"]).tolist() == [0, 5, 7, -8]
    assert seen(sim, "red_0")["hit_points"].tolist() == [1, 1, 1, -1]
    assert (8 * seen(sim, "blue_1")["hops"]).tolist() == [0, 1, -8, 3]


def test_views_agree():
    local, hops, nodes = (place(meet("path:5", 2, 1, view=view), 0, 1, 4) for view in ("local", "hops", "nodes"))
    for name in ("hops", "time", "hit_points"):
        assert seen(local, "red_1")[name].tolist() == seen(hops, "red_1")[name].tolist()
        assert seen(local, "red_1")[name].tolist() == seen(nodes, "red_1")[name].tolist()
    assert "neighbours" not in seen(hops, "red_1").dtype.names
    team = nodes.buffers.observations["team"][0]
    assert team[0]["node_hops"].tolist() == [[-1] * 5, [0, 1, 2, 3, 4], [1, 0, 1, 2, 3], [4, 3, 2, 1, 0]]
    assert team[1]["node_hops"].tolist()[1:] == [[4, 3, 2, 1, 0], [0, 1, 2, 3, 4], [1, 0, 1, 2, 3]]
    nodes.states["hit_points"][0, :3] = 1, 2, 3
    nodes.refresh()
    np.testing.assert_allclose(team[0]["hit_points"], [1 / 3, 2 / 3, 1], rtol=1e-6)
    np.testing.assert_allclose(team[1]["hit_points"], [1, 1 / 3, 2 / 3], rtol=1e-6)


@pytest.mark.parametrize("view", ["local", "hops", "nodes"])
def test_where_and_how_well_unseen_opponents_are_changes_nothing(view: Any):
    sim = meet("grid:6x6", 2, 2, lanes=2, view=view, parameters={"vision": 2})
    records = sim.states[[0, 0]].copy()
    records["node"][:, :2] = 0, 6
    records["node"][:, 2:4] = [(22, 28), (33, 23)]
    records["hit_points"][1, 2:4] = 1, 2
    sim.load_states(records)
    for _ in range(2):
        parts = [sim.buffers.observations["unit"][:, :2], sim.legal[:, :2], sim.rewards, sim.alive]
        if view == "nodes":
            parts += [sim.buffers.observations["team"][:, 0], sim.buffers.observations["lane"]]
        parts += [sim.info[name] for name in sim.info]
        for part in parts:
            assert np.ascontiguousarray(part[0]).tobytes() == np.ascontiguousarray(part[1]).tobytes()
        sim.actions[...] = (0, 0)
        sim.step()


def test_the_global_state_ends_with_the_hit_points():
    sim = place(meet("path:5", parameters={"horizon": 4}), 0, 3)
    sim.states["hit_points"][0, 1] = 1
    state = sim.state()[0].tolist()
    np.testing.assert_allclose(state, [1, -1, 0, 0.75, 1, -1, 0.75, 0, 0, 0, 1, 1 / 3], rtol=1e-6)


@pytest.mark.parametrize("codec", [None, "graph"])
def test_actions_are_the_same_with_the_graph_codec(codec: str | None):
    options: dict[str, Any] = {"graph": "path:5", "red": 1, "blue": 1, "view": "nodes", "compiled": False}
    env = registry.make_parallel(ID, codec=codec, mask=None, **options)
    env.reset(seed=0)
    place(env.sim, 0, 3)
    assert env.action_space("red_0").nvec.tolist() == [3, 2]
    shown, *_ = env.step({"red_0": np.array([1, 0]), "blue_0": np.array([1, 1])})
    assert env.sim.states["node"][0, :2].tolist() == [1, 2]
    assert points(env.sim) == [2, 3]
    if codec:
        assert env.observation_space("red_0").contains(shown["red_0"])
        assert (4 * shown["red_0"].nodes[:, 1:]).tolist() == [[1, 2], [0, 1], [1, 0], [2, 1], [3, 2]]
        with pytest.raises(ValueError, match="must be numbers of alternatives, got 'up'"):
            env.step({"red_0": "up", "blue_0": np.array([0, 0])})


# -------------------------------------------------------------------------------------------------------------- scripts


def played(script: str, nodes: tuple[int, ...], hit_points: tuple[float, ...] = (), **keywords: Any) -> Any:
    """The match after one decision of red by a script; blue stays and does not shoot."""
    sim = meet(keywords.pop("graph", "path:9"), **keywords)
    if hit_points:
        sim.states["hit_points"][0, : len(hit_points)] = hit_points
    sim.set_opponent("red", script)
    place(sim, *nodes)
    sim.actions[...] = (0, 0)
    sim.step()
    return sim


@pytest.mark.parametrize(
    ("script", "nodes", "ends", "left"),
    [
        ("stay", (3, 4), 3, 2),  # shoots and never moves
        ("greedy", (0, 4), 1, 3),
        ("greedy", (2, 4), 3, 2),
        ("focus_fire", (2, 4), 3, 2),
        ("flee", (3, 4), 2, 3),
        ("kite", (1, 4), 2, 3),  # comes nearer while nobody can shoot at it
        ("kite", (2, 4), 3, 2),  # one opponent is worth it
    ],
)
def test_scripts_of_one_agent(script: str, nodes: tuple[int, int], ends: int, left: float):
    sim = played(script, nodes)
    assert (int(sim.states["node"][0, 0]), points(sim)[1]) == (ends, left)


def test_kite_avoids_places_that_two_opponents_can_shoot_at():
    assert played("kite", (2, 4, 4), blue=2).states["node"][0, 0] == 2
    assert played("greedy", (2, 4, 4), blue=2).states["node"][0, 0] == 3


def test_focus_fire_goes_for_the_weakest_opponent_and_of_these_for_the_nearest():
    weak = played("focus_fire", (3, 3, 2, 6), (3, 3, 3, 1), red=2, blue=2)
    assert weak.states["node"][0, :2].tolist() == [4, 4]
    near = played("focus_fire", (3, 3, 1, 6), red=2, blue=2)
    assert near.states["node"][0, :2].tolist() == [2, 2]
    assert points(near) == [3, 3, 1, 3]


def test_greedy_agents_shoot_at_the_nearest_and_of_these_at_the_weakest():
    sim = played("greedy", (2, 3, 3, 8), (3, 3, 2, 1), blue=3)
    assert points(sim) == [3, 3, 1, 1]


# ---------------------------------------------------------------------------------------------------------------- sides


def test_exchanged_teams_do_what_the_others_did():
    rules = game("grid:4x4", 2, 2)
    sims = [
        KernelSimulation(rules, 8, compiled=False, autoreset_mode="off", parameters={"start_hops": 0, "reach": 2})
        for _ in range(2)
    ]
    for sim in sims:
        sim.reset(seed=5)
    states, rng = sims[0].states.copy(), np.random.default_rng(0)
    mirrored = states.copy()
    assert rules.mirror is not None
    rules.mirror(mirrored, {"unit": sims[1].actions.copy()})
    sims[1].load_states(mirrored)
    for _ in range(12):
        orders = np.stack([rng.integers(0, 2, (8, 4)), rng.integers(0, 3, (8, 4))], axis=-1)
        for sim, given in zip(sims, (orders, orders[:, [2, 3, 0, 1]]), strict=True):
            sim.actions[...] = given  # what is illegal is the no-op, in both
            sim.step()
        assert (sims[0].states["hit_points"][:, :4] == sims[1].states["hit_points"][:, [2, 3, 0, 1]]).all()
        assert (sims[0].rewards == sims[1].rewards[:, [2, 3, 0, 1]]).all()
    assert (sims[0].states["hit_points"][:, :4] < 3).any()


@compiles
def test_the_same_script_on_both_sides_wins_as_often_on_either():
    sim = make_batch(ID, 4000, autoreset_mode="off", opponents={"red": "greedy", "blue": "greedy"})
    sim.reset(seed=1)
    while not (sim.terminated | sim.truncated).all():
        sim.step()
    won = [(sim.info["winner"] == team).sum() for team in range(2)]
    assert abs(won[0] - won[1]) < 4 * np.sqrt(sum(won))


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("keywords", "named"),
    [
        ({"red": 0}, "red"),
        ({"blue": 17}, "blue"),
        ({"view": "all"}, "view"),
        ({"reward": "rich"}, "reward"),
        ({"graph": "grid:0x4"}, "grid:0x4"),
    ],
)
def test_wrong_keywords_are_named(keywords: dict[str, Any], named: str):
    with pytest.raises(ValueError, match=named):
        game(**keywords)
