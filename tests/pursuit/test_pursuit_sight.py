"""What agents of GraphPursuit see: hops by hand on small graphs, the views, and that what is hidden changes nothing."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from pursuit.hunts import go, hunt, place

from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.pursuit.graph_pursuit import game

pytestmark = pytest.mark.jitless

PLACE = [2, 3]
"""Columns of an alternative that tell where it is in the graph."""


def two_against_two(**keywords: Any) -> Any:
    """Pursuers on the nodes 0 and 1 of a path of five, evaders on 3 and 4."""
    return place(hunt("path:5", pursuers=2, evaders=2, **keywords), 0, 1, 3, 4)


def view(sim: Any, agent: str) -> Any:
    """The observation of an agent, by field."""
    role, _, member = agent.partition("_")
    return sim.buffers.observations[role][0, int(member)]


def node_hops(sim: Any, team: int) -> list[list[int]]:
    return sim.buffers.observations["team"][0, team]["node_hops"].tolist()


# ----------------------------------------------------------------------------------------------------------- from nodes


def test_hops_are_shares_of_the_diameter_to_oneself_teammates_and_opponents():
    sim = two_against_two()
    assert view(sim, "pursuer_0")["hops"].tolist() == [0, 0.25, 0.75, 1]
    assert view(sim, "pursuer_1")["hops"].tolist() == [0, 0.25, 0.5, 0.75]
    assert view(sim, "evader_0")["hops"].tolist() == [0, 0.25, 0.75, 0.5]
    assert view(sim, "evader_1")["hops"].tolist() == [0, 0.25, 1, 0.75]


def test_teammates_and_opponents_stand_in_the_order_of_their_names():
    sim = place(hunt("path:9", pursuers=3), 1, 3, 7, 8)
    assert (8 * view(sim, "pursuer_1")["hops"]).tolist() == [0, 2, 4, 5]
    assert (8 * view(sim, "pursuer_2")["hops"]).tolist() == [0, 6, 4, 1]
    assert (8 * view(sim, "evader_0")["hops"]).tolist() == [0, 7, 5, 1]


def test_neighbours_say_the_same_from_behind_each_alternative():
    sim = two_against_two()
    assert np.delete(view(sim, "pursuer_1")["neighbours"], PLACE, axis=1).tolist() == [
        [1, -1, 0, 0.25, 0.5, 0.75],  # staying
        [1, -1, 0.25, 0, 0.75, 1],  # node 0
        [1, -1, 0.25, 0.5, 0.25, 0.5],  # node 2
    ]
    assert np.delete(view(sim, "evader_1")["neighbours"], PLACE, axis=1).tolist() == [
        [1, -1, 0, 0.25, 1, 0.75],
        [1, -1, 0.25, 0, 0.75, 0.5],
        [0, 0, 0, 0, 0, 0],  # the end of the path has one neighbour
    ]


def test_alternatives_tell_most_and_mean_hops_from_there_to_all_nodes():
    sim = two_against_two()
    for agent, nodes in (("pursuer_1", (1, 0, 2)), ("evader_1", (4, 3))):
        found = view(sim, agent)["neighbours"][: len(nodes), PLACE]
        most = [max(node, 4 - node) / 4 for node in nodes]
        mean = [sum(abs(node - other) for other in range(5)) / 5 / 4 for node in nodes]
        np.testing.assert_array_equal(found, np.array([most, mean], np.float32).T)
    assert not view(sim, "evader_1")["neighbours"][2].any(), "the end of the path has one neighbour"


def test_of_a_graph_in_parts_the_nodes_that_a_way_leads_to_count():
    sim = hunt([np.array([[0, 1], [1, 2], [3, 4]])], pursuers=1)
    sim.states["node"][0, :2] = 3, 0
    place(sim, 3, 0)
    assert view(sim, "pursuer_0")["neighbours"][:2, PLACE].tolist() == [[0.5, 0.25]] * 2


def test_exits_are_as_far_as_the_nearest_one():
    sim = two_against_two(exits=[2])
    assert [view(sim, name)["exit_hops"] for name in sim.game.agents] == [0.5, 0.25, 0.25, 0.5]
    assert view(sim, "pursuer_0")["neighbours"][:, 1].tolist() == [0.5, 0.25, 0]
    assert view(two_against_two(), "pursuer_0")["exit_hops"] == -1


def test_the_time_is_a_share_of_the_horizon():
    sim = two_against_two(parameters={"horizon": 8})
    assert view(sim, "pursuer_0")["time"] == 0
    go(sim, 0, 1, 3, 4)
    assert {float(view(sim, name)["time"]) for name in sim.game.agents} == {0.125}


def test_who_has_left_is_out_of_sight_and_sees_nothing():
    sim = two_against_two()
    go(sim, 0, 2, 2, 4)
    assert view(sim, "pursuer_0")["hops"].tolist() == [0, 0.5, -1, 1]
    assert view(sim, "pursuer_0")["neighbours"][:2, 6].tolist() == [-1, -1]
    assert view(sim, "evader_1")["hops"].tolist() == [0, -1, 1, 0.5]


def test_an_absent_pursuer_is_out_of_sight():
    sim = hunt("path:5", pursuers=2, fewest_pursuers=1)
    sim.states["alive"][0] = 1, 0, 1, *sim.states["alive"][0, 3:]
    place(sim, 0, 2, 3)
    assert view(sim, "pursuer_0")["hops"].tolist() == [0, -1, 0.75]
    assert view(sim, "evader_0")["hops"].tolist() == [0, 0.75, -1]


def test_shares_are_those_of_the_drawn_graph():
    sim = hunt(["path:3", "path:9"], pursuers=1)
    for number, share in ((0, 0.5), (1, 0.125)):
        sim.states["graph"] = number
        place(sim, 0, 1)
        assert view(sim, "pursuer_0")["hops"].tolist() == [0, share]


# ------------------------------------------------------------------------------------------------- the representations


def test_hops_alone_are_a_representation():
    sim = two_against_two(observation="hops")
    assert view(sim, "pursuer_1").dtype.names == ("hops", "exit_hops", "time")
    assert view(sim, "pursuer_1")["hops"].tolist() == [0, 0.25, 0.5, 0.75]


def test_nodes_show_hops_from_every_node_once_for_each_team():
    sim = two_against_two(observation="nodes", exits=[2])
    p0, p1, e0, e1 = [0, 1, 2, 3, 4], [1, 0, 1, 2, 3], [3, 2, 1, 0, 1], [4, 3, 2, 1, 0]
    assert node_hops(sim, 0) == [[2, 1, 0, 1, 2], p0, p1, e0, e1]
    assert node_hops(sim, 1) == [[2, 1, 0, 1, 2], e0, e1, p0, p1]
    go(sim, 0, 2, 3, 3)
    assert node_hops(sim, 0)[2] == [2, 1, 0, 1, 2]
    assert node_hops(two_against_two(observation="nodes"), 0)[0] == [-1] * 5


def test_nodes_show_which_graph_was_drawn_and_no_nodes_that_it_does_not_have():
    sim = hunt(["path:3", "cycle:5"], pursuers=1, observation="nodes")
    for number, diameter in ((0, 2), (1, 2)):
        sim.states["graph"] = number
        place(sim, 0, 2)
        lane = sim.buffers.observations["lane"][0]
        assert (lane["graph"], lane["diameter"]) == (number, diameter)
    assert sim.game.world.neighbours[0, :, :3].tolist() == [[0, 1, -1], [1, 0, 2], [2, 1, -1], [-1] * 3, [-1] * 3]
    sim.states["graph"] = 0
    place(sim, 0, 2)
    assert node_hops(sim, 0) == [[-1] * 5, [0, 1, 2, -1, -1], [2, 1, 0, -1, -1]]


def test_the_global_state_has_everybody_the_time_and_the_turn():
    sim = place(hunt("path:5", pursuers=2, exits=[2], order="alternating", parameters={"horizon": 4}), 0, 1, 4)
    assert sim.state()[0].tolist() == [1, 0.5, 0, 0.25, 1, 1, 0.25, 0.25, 0, 0.75, 1, 0.5, 1, 0.75, 0, 0, 0]
    go(sim, 0, 1, 4)
    assert sim.state()[0, -2:].tolist() == [0.25, 1]
    sim.states["alive"][0, 1] = 0
    place(sim, 0, 1, 4)
    assert sim.state()[0, :10].tolist() == [1, 0.5, 0, -1, 1, 0, -1, -1, -1, -1]


# -------------------------------------------------------------------------------------------------------- hide and seek


@pytest.mark.parametrize(("vision", "seen"), [(1, [-1, -1]), (2, [0.75, -1]), (3, [0.75, 1]), (0, [0.75, 1])])
def test_a_team_sees_as_far_as_one_of_its_members(vision: int, seen: list[float]):
    sim = two_against_two(observation="nodes", parameters={"vision": vision})
    assert view(sim, "pursuer_0")["hops"].tolist() == [0, 0.25, *seen], "the pursuer on node 1 sees for both"
    assert [row != [-1] * 5 for row in node_hops(sim, 0)] == [False, True, True, seen[0] > 0, seen[1] > 0]


def test_each_team_sees_by_itself():
    sim = place(hunt("path:9", pursuers=2, parameters={"vision": 2}), 0, 5, 7)
    assert (8 * view(sim, "evader_0")["hops"]).tolist() == [0, -8, 2]
    assert (8 * view(sim, "pursuer_0")["hops"]).tolist() == [0, 5, 7]


def test_the_captured_see_no_more_for_their_team():
    sim = hunt("path:9", pursuers=1, evaders=2, parameters={"vision": 2})
    sim.states["alive"][0, 1] = 0
    place(sim, 0, 1, 8)
    assert view(sim, "evader_1")["hops"].tolist() == [0, -1, -1]


def shown_to(sim: Any, team: str, lane: int) -> tuple[bytes, ...]:
    """All that agents of a team are told in a lane, as bytes."""
    seen, number = sim.buffers.observations, list(sim.game.teams).index(team)
    parts = [seen[team][lane], sim.legal[team][lane]]
    parts += [sim.info[name][lane : lane + 1] for name in sim.info]
    parts += [sim.rewards[lane], sim.terminated[lane : lane + 1], sim.alive[lane], sim.acting[lane]]
    if "team" in seen.dtype.names:
        parts += [seen["team"][lane, number], seen["lane"][lane]]
    return tuple(np.ascontiguousarray(part).tobytes() for part in parts)


@pytest.mark.parametrize("order", ["simultaneous", "alternating"])
@pytest.mark.parametrize(("keywords", "shown"), [({"exits": [35]}, "nodes"), ({"evaders": 2}, "dict"), ({}, "hops")])
def test_where_an_unseen_evader_stands_changes_nothing_for_pursuers(keywords: Any, shown: str, order: Any):
    sim = hunt("grid:6x6", 2, pursuers=2, observation=shown, order=order, parameters={"vision": 2}, **keywords)
    evaders = sim.game.roles[1].agents
    records = sim.states[[0, 0]].copy()
    records["node"][:, :2] = 0, 6
    for lane, nodes in enumerate(((22, 28), (33, 23))):
        records["node"][lane, 2 : 2 + len(evaders)] = nodes[: len(evaders)]
    sim.load_states(records)
    assert shown_to(sim, "pursuer", 0) == shown_to(sim, "pursuer", 1)
    sim.actions["pursuer"][...], sim.actions["evader"][...] = 1, 0
    for _ in range(2):
        sim.step(sim.actions)
        assert shown_to(sim, "pursuer", 0) == shown_to(sim, "pursuer", 1)


def test_where_unseen_pursuers_stand_changes_nothing_for_the_evader():
    sim = hunt("grid:6x6", 2, pursuers=2, observation="nodes", parameters={"vision": 1})
    records = sim.states[[0, 0]].copy()
    records["node"][:, :3] = [(0, 1, 35), (12, 21, 35)]
    sim.load_states(records)
    assert shown_to(sim, "evader", 0) == shown_to(sim, "evader", 1)


def test_who_comes_into_sight_is_seen():
    sim = place(hunt("grid:6x6", pursuers=2, parameters={"vision": 2}), 0, 6, 8)
    assert view(sim, "pursuer_0")["hops"][2] > 0


# ----------------------------------------------------------------------------------------------------------- as a graph


def parallel(graph: Any = "path:5", parameters: dict[str, float] | None = None, **keywords: Any) -> Any:
    options: dict[str, Any] = {"compiled": False, "autoreset_mode": "off", "parameters": parameters or {}}
    sim = KernelSimulation(game(graph, **keywords).represented("nodes"), 1, **options)
    env = GameParallelEnv(sim, mask=None, codec="graph")
    env.reset(seed=0)
    return env


def moved(env: Any, *nodes: int) -> Any:
    """What everybody observes after it has stood on a node and stayed."""
    place(env.sim, *nodes)
    return env.step(dict.fromkeys(env.agents, 0))[0]


def test_the_graph_codec_shows_a_row_of_shares_for_each_node():
    env = parallel(pursuers=2, exits=[4])
    shown = moved(env, 0, 1, 3)
    near = np.array([[4, 3, 2, 1, 0], [0, 1, 2, 3, 4], [1, 0, 1, 2, 3], [3, 2, 1, 0, 1]], np.float32) / 4
    np.testing.assert_array_equal(shown["pursuer_0"].nodes, near.T)
    np.testing.assert_array_equal(shown["pursuer_1"].nodes, near[[0, 2, 1, 3]].T)
    np.testing.assert_array_equal(shown["evader_0"].nodes, near[[0, 3, 1, 2]].T)
    assert all(env.observation_space(agent).contains(seen) for agent, seen in shown.items())


def test_the_graph_codec_shows_each_edge_in_both_directions():
    links = moved(parallel(pursuers=1), 0, 4)["evader_0"].edge_links.tolist()
    assert sorted(links) == sorted([[k, k + 1] for k in range(4)] + [[k + 1, k] for k in range(4)])


def test_the_graph_codec_shows_unseen_opponents_and_missing_exits_as_minus_one():
    nodes = moved(parallel("path:9", pursuers=1, parameters={"vision": 3}), 0, 8)["pursuer_0"].nodes
    assert set(nodes[:, 0]) == set(nodes[:, 2]) == {-1.0}
    assert nodes[8, 1] == 1


def test_the_graph_codec_shows_the_graph_that_was_drawn():
    env = parallel(["path:3", "cycle:7"], pursuers=1)
    for number, (nodes, links) in enumerate(((3, 4), (7, 14))):
        env.sim.states["graph"] = number
        shown = moved(env, 0, 2)["pursuer_0"]
        assert (shown.nodes.shape, shown.edge_links.shape) == ((nodes, 3), (links, 2))


def test_the_graph_codec_encodes_a_batch_at_once_as_one_after_the_other():
    sim = hunt(["path:3", "cycle:7", "grid:3x3"], 8, pursuers=2, observation="nodes", parameters={"vision": 2})
    for slot in range(3):
        agent_io = AgentIO(sim, (slot,), codec="graph")
        alone = [agent_io.observe_lane(lane) for lane in range(8)]
        assert len({len(seen.nodes) for seen in alone}) == 3
        for seen, twin in zip(agent_io.observe(), alone, strict=True):
            for ours, theirs in zip(seen, twin, strict=True):
                assert ours.dtype == theirs.dtype
                np.testing.assert_array_equal(ours, theirs)


def test_the_graph_codec_hides_what_is_hidden():
    env = parallel("grid:6x6", pursuers=2, parameters={"vision": 2})
    first, second = (moved(env, 0, 6, node)["pursuer_1"] for node in (22, 35))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    assert not np.array_equal(moved(env, 0, 6, 8)["pursuer_1"].nodes, first.nodes)


def test_a_move_with_the_graph_codec_is_the_number_of_an_alternative():
    env = parallel(pursuers=1)
    assert env.action_space("pursuer_0") == gymnasium.spaces.Discrete(3)
    place(env.sim, 1, 4)
    env.step({"pursuer_0": 2, "evader_0": 0})
    assert env.sim.states["node"][0, :2].tolist() == [2, 4]
    with pytest.raises(ValueError, match=r"an action must be numbers of alternatives, got 'up'"):
        env.step({"pursuer_0": "up", "evader_0": 0})


def test_the_graph_codec_needs_the_representation_of_nodes():
    assert "graph" in game("path:3").represented("nodes").codecs
    assert not game("path:3").codecs
