"""GraphConfront: moves, shots, rewards, starts, what each team sees, the graph codec, and the scripts."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from pursuit.hunts import act, confront, ended, nodes_of, place, wound

from palaestra import make_batch
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.contract.actions import ActionError
from palaestra.games.pursuit.confront import game
from palaestra.games.pursuit.confront_scripts import NAMES
from palaestra.games.pursuit.graphs import Graph
from palaestra.registry import make_parallel
from palaestra.testing.checks.mirror_checks import walk
from palaestra.testing.players import Player

pytestmark = pytest.mark.jitless
compiles = pytest.mark.skipif(jit_disabled(), reason="hundreds of matches")
ID = "palaestra/GraphConfront-v0"


def duel(*nodes: int, graph: Any = "path:9", red: int = 1, blue: int = 1, **keywords: Any) -> Any:
    """Red stands on the first nodes, blue on the others."""
    return place(confront(graph, red=red, blue=blue, **keywords), *nodes)


def two_against_two(**keywords: Any) -> Any:
    """Red on the nodes 0 and 1 of a path of five, blue on 3 and 4, with 3, 2, 1 and 3 hit points of 3."""
    return wound(duel(0, 1, 3, 4, graph="path:5", red=2, blue=2, **keywords), 3, 2, 1, 3)


def hit_points(sim: Any) -> list[float]:
    return sim.states["hit_points"][0, : len(sim.game.agents)].tolist()


def view(sim: Any, agent: str) -> Any:
    """The observation of an agent, by field."""
    return sim.buffers.observations["unit"][0, sim.game.agents.index(agent)]


def columns(sim: Any, agent: str, diameter: int, most: int) -> list[list[int]]:
    """Hops and hit points of everybody as an agent sees them."""
    return [whole(view(sim, agent)["hops"], diameter), whole(view(sim, agent)["hit_points"], most)]


def whole(shares: np.ndarray, most: int) -> list[Any]:
    """What are shares of the most; -1 as it is."""
    return np.where(shares < 0, shares, np.rint(shares * most)).tolist()


def targets(sim: Any, agent: str) -> list[int]:
    """Mask of an agent's targets: nobody, then an opponent each."""
    return sim.legal[0, sim.game.agents.index(agent), sim.game.roles[0].action[0].n :].tolist()


# ----------------------------------------------------------------------------------------------------- moves and shots


def test_all_move_at_once_and_opponents_may_cross_and_stand_together():
    sim = duel(3, 4)
    act(sim, red_0=4, blue_0=3)
    assert nodes_of(sim) == [4, 3]
    act(sim, red_0=3)
    assert nodes_of(sim) == [3, 3]


def test_moves_are_the_neighbours_in_ascending_order():
    sim = duel(4, 8, graph="grid:3x3")
    assert sim.game.world.neighbours[0, 4].tolist() == [4, 1, 3, 5, 7]
    assert sim.legal[0, :, :5].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    sim.actions[0, 1, 0] = 3  # node 8 is a corner
    sim.step()
    assert nodes_of(sim) == [4, 8], "who wants a move that is not there stays"
    assert sim.info["illegal"][0].tolist() == [0, 1]


@pytest.mark.parametrize("reach", [0, 1, 2])
def test_a_shot_hits_who_is_within_reach_after_the_moves(reach: int):
    for blue, left, target in ((2 + reach, 2, 1), (3 + reach, 3, -1)):
        sim = duel(1, blue - 1, parameters={"reach": reach})
        act(sim, red_0=(2, "blue_0"), blue_0=blue)
        assert hit_points(sim) == [3, left]
        assert sim.states["target"][0].tolist()[:2] == [target, -1]


def test_all_shots_at_one_target_count_and_it_loses_no_more_than_it_has():
    sim = wound(duel(1, 2, 3, 2, red=3), 3, 3, 3, 5)
    act(sim, red_0="blue_0", red_1="blue_0", red_2="blue_0", blue_0="red_1")
    assert hit_points(sim) == [3, 2, 3, 2]
    act(sim, red_0="blue_0", red_1="blue_0", red_2="blue_0")
    assert hit_points(sim) == [3, 2, 3, 0]
    assert sim.rewards[0].tolist() == pytest.approx([2 / 9] * 3 + [-2 / 9]), "three shots took the two that were left"
    assert ended(sim) == ("wiped_out", 0)


def test_who_dies_has_shot_all_the_same_and_both_dead_are_a_draw():
    sim = wound(duel(2, 3, parameters={"horizon": 1}), 1, 1)
    act(sim, red_0="blue_0", blue_0="red_0")
    assert hit_points(sim) == [0, 0]
    assert ended(sim) == ("wiped_out", -1), "in the last decision as well"
    assert (sim.truncated[0], sim.terminated[0]) == (False, True)
    assert sim.rewards[0].tolist() == [0, 0]


def test_who_has_no_hit_points_left_leaves_the_match():
    sim = wound(duel(2, 3, 4, blue=2), 3, 1, 3)
    act(sim, red_0="blue_0", blue_0="red_0")
    assert hit_points(sim) == [2, 0, 3]
    assert sim.alive[0].tolist() == sim.acting[0].tolist() == [True, False, True]
    assert sim.agent_terminated[0].tolist() == [False, True, False]
    assert sim.legal[0, 1].tolist() == [1, 0, 0, 1, 0, 0]
    assert targets(sim, "red_0") == [1, 0, 1]
    sim.actions[0] = [(0, 1), (1, 1), (0, 0)]  # at the dead one, which wants to move and shoot
    sim.step()
    assert hit_points(sim) == [2, 0, 3]
    assert nodes_of(sim) == [2, 3, 4]
    assert sim.states["target"][0, :3].tolist() == [-1, -1, -1]


# ---------------------------------------------------------------------------------------------------- rewards and ends


def test_dense_rewards_are_shares_of_the_hit_points_of_the_larger_team():
    sim = duel(2, 1, 3, 8, blue=3, parameters={"hit_points": 4})
    act(sim, red_0="blue_1", blue_0="red_0", blue_1="red_0")
    assert sim.rewards[0].tolist() == pytest.approx([-1 / 12, 1 / 12, 1 / 12, 1 / 12])


@pytest.mark.parametrize(("red", "blue", "winner"), [(3, 2, 0), (1, 3, 1), (2, 2, -1)])
def test_at_the_horizon_the_team_with_more_hit_points_has_won(red: int, blue: int, winner: int):
    sim = wound(duel(2, 3, parameters={"horizon": 2}, reward="sparse"), red, blue + 1)
    act(sim, red_0="blue_0")
    assert not sim.truncated[0]
    assert sim.rewards[0].tolist() == [0, 0], "sparse rewards are paid at the end"
    act(sim)
    assert ended(sim) == ("horizon", winner)
    assert (sim.truncated[0], sim.terminated[0]) == (True, False)
    assert sim.rewards[0].tolist() == [[1, -1], [-1, 1], [0, 0]][winner]
    assert game().horizon == 60


@pytest.mark.parametrize("keywords", [{"reward": "dense", "blue": 3}, {"reward": "sparse"}], ids=str)
def test_rewards_add_up_to_zero_and_none_is_minus_zero(keywords: dict[str, Any]):
    sim = confront("cycle:5", 6, red=2, parameters={"horizon": 12}, **({"blue": 2} | keywords))
    player, is_paid, signs = Player(sim), False, np.where(np.arange(len(sim.game.agents)) < 2, 1, -1)
    for _ in range(12):
        player.play(sim)
        sim.step()
        assert (sim.rewards == sim.rewards[:, :1] * signs).all()
        assert not np.signbit(sim.rewards[sim.rewards == 0]).any()
        is_paid |= bool(sim.rewards.any())
    assert is_paid


# --------------------------------------------------------------------------------------------------------------- starts


@pytest.mark.check
@compiles
def test_the_team_placed_first_is_drawn_and_the_other_one_is_far_enough_or_as_far_as_possible():
    sim = make_batch(ID, 6000, graph="path:5", red=1, blue=1, start_hops=3, autoreset_mode="off")
    sim.reset(seed=0)
    counts, chances = np.zeros((5, 5)), np.zeros((5, 5))
    np.add.at(counts, tuple(sim.states["node"][:, :2].T), 1)
    for first, seconds in enumerate(([3, 4], [4], [0, 4], [0], [0, 1])):
        chances[first, seconds] = 1 / 5 / len(seconds)
    means = 6000 * (chances + chances.T) / 2
    assert (np.abs(counts - means) <= 5 * np.sqrt(means)).all()


@pytest.mark.check
@compiles
def test_the_whole_second_team_keeps_away_from_the_whole_first_one():
    sim = make_batch(ID, 400, graph=["grid:8x8", "path:6"], autoreset_mode="off")
    sim.reset(seed=0)
    world, states = sim.game.world, sim.states
    for state in states:
        hops, red_nodes, blue_nodes = world.hops[state["graph"]], state["node"][:3], state["node"][3:6]
        red, blue = (hops[nodes, : world.nodes[state["graph"]]].min(axis=0) for nodes in (red_nodes, blue_nodes))
        apart = red[blue_nodes].min()
        assert apart >= min(4, red.max()) or apart >= min(4, blue.max())
    assert (states["node"][:, 0] == states["node"][:, 1]).any(), "teammates may share a node"
    assert 150 < states["graph"].sum() < 250
    assert (states["hit_points"][:, :6] == 3).all()


# ------------------------------------------------------------------------------------------------------ masks and sight


def test_targets_are_those_that_may_come_into_reach():
    sim = duel(2, 5, 6, blue=2)
    assert targets(sim, "red_0") == [1, 1, 0], "both may come one hop nearer, and reach is 1"
    assert (targets(sim, "blue_0"), targets(sim, "blue_1")) == ([1, 1, 0], [1, 0, 0])
    sim = duel(2, 6, 7, blue=2, parameters={"reach": 2})
    assert targets(sim, "red_0") == [1, 1, 0]


def test_targets_are_those_that_the_team_sees():
    sim = duel(1, 3, 5, 5, 4, red=2, blue=3, parameters={"vision": 1, "reach": 2})
    assert targets(sim, "red_0") == [1, 0, 0, 1], "its teammate sees the one on node 4"
    assert targets(sim, "red_1") == [1, 0, 0, 1]
    assert [targets(sim, f"blue_{k}") for k in range(3)] == [[1, 0, 1, 0]] * 3


def test_hops_and_hit_points_stand_in_the_order_of_each_agent():
    sim = two_against_two()
    assert columns(sim, "red_0", 4, 3) == [[0, 1, 3, 4], [3, 2, 1, 3]]
    assert columns(sim, "red_1", 4, 3) == [[0, 1, 2, 3], [2, 3, 1, 3]]
    assert columns(sim, "blue_0", 4, 3) == [[0, 1, 3, 2], [1, 3, 3, 2]]
    assert columns(sim, "blue_1", 4, 3) == [[0, 1, 4, 3], [3, 1, 3, 2]]


def test_columns_of_a_third_member_and_of_unequal_teams():
    sim = wound(duel(0, 3, 5, 8, red=1, blue=3, parameters={"hit_points": 4}), 1, 2, 3, 4)
    assert columns(sim, "blue_2", 8, 4) == [[0, 5, 3, 8], [4, 2, 3, 1]]
    assert columns(sim, "blue_1", 8, 4) == [[0, 2, 3, 5], [3, 2, 4, 1]]
    assert columns(sim, "red_0", 8, 4) == [[0, 3, 5, 8], [1, 2, 3, 4]]
    assert (8 * view(sim, "blue_2")["neighbours"][1]).tolist() == pytest.approx([8, -8, 7, 29 / 9, 1, 4, 2, 7]), (
        "from 7"
    )


def test_the_dead_are_minus_one_and_see_nothing():
    sim = wound(two_against_two(observation="nodes"), 3, 0, 1, 3)
    assert columns(sim, "red_0", 4, 3) == [[0, -1, 3, 4], [3, -1, 1, 3]]
    assert columns(sim, "blue_1", 4, 3) == [[0, 1, 4, -1], [3, 1, 3, -1]]
    assert view(sim, "red_0")["neighbours"][1, 4:].tolist() == [0.25, -1, 0.5, 0.75]
    assert not sim.observations[0, 1].any()
    seen = sim.buffers.observations["team"][0, 1]
    assert (seen["node_hops"][4].tolist(), whole(seen["hit_points"], 3)) == ([-1] * 5, [1, 3, 3, -1])


def test_a_team_shares_what_it_sees_and_the_dead_do_not_see_for_it():
    sim = wound(duel(0, 5, 7, 8, red=2, blue=2, parameters={"vision": 2, "hit_points": 4}), 4, 3, 2, 1)
    assert columns(sim, "red_0", 8, 4) == [[0, 5, 7, -1], [4, 3, 2, -1]]
    assert columns(sim, "blue_1", 8, 4) == [[0, 1, -1, 3], [1, 2, -1, 3]]
    wound(sim, 4, 0, 2, 1)
    assert columns(sim, "red_0", 8, 4) == [[0, -1, -1, -1], [4, -1, -1, -1]]


def test_the_representations_agree():
    local, hops, nodes = (two_against_two(observation=name) for name in ("dict", "hops", "nodes"))
    assert view(hops, "red_0").dtype.names == ("hops", "exit_hops", "time", "hit_points")
    for name in local.game.agents:
        for field in view(hops, name).dtype.names:
            assert view(local, name)[field].tolist() == view(hops, name)[field].tolist()
        assert view(local, name).tobytes() == view(nodes, name).tobytes()
    teams = nodes.buffers.observations["team"][0]
    red, blue = [[0, 1, 2, 3, 4], [1, 0, 1, 2, 3]], [[3, 2, 1, 0, 1], [4, 3, 2, 1, 0]]
    assert teams["node_hops"].tolist() == [[[-1] * 5, *red, *blue], [[-1] * 5, *blue, *red]]
    assert whole(teams["hit_points"], 3) == [[3, 2, 1, 3], [1, 3, 3, 2]]
    assert nodes.buffers.observations["lane"][0]["diameter"] == 4
    assert view(local, "red_0")["exit_hops"] == -1


def shown_to(sim: Any, team: int, lane: int) -> tuple[bytes, ...]:
    """All that the two members of a team are told in a lane, as bytes."""
    seen, members = sim.buffers.observations, slice(2 * team, 2 * team + 2)
    parts = [seen["unit"][lane, members], sim.legal[lane, members]]
    parts += [sim.info[name][lane : lane + 1] for name in sim.info]
    parts += [sim.rewards[lane, members], sim.terminated[lane : lane + 1], sim.alive[lane], sim.acting[lane]]
    if "team" in seen.dtype.names:
        parts += [seen["team"][lane, team], seen["lane"][lane]]
    return tuple(np.ascontiguousarray(part).tobytes() for part in parts)


@pytest.mark.parametrize("name", ["dict", "hops", "nodes"])
@pytest.mark.parametrize("team", [0, 1])
def test_where_the_unseen_stand_and_how_well_they_are_changes_nothing(name: Any, team: int):
    sim = confront("grid:6x6", 3, red=2, blue=2, observation=name, parameters={"vision": 2})
    own, others = (slice(2), slice(2, 4)) if team == 0 else (slice(2, 4), slice(2))
    records = sim.states[[0, 0, 0]].copy()
    records["node"][:, own] = 0, 6
    records["node"][:, others] = [(22, 28), (33, 23), (33, 8)]
    records["hit_points"][:, others] = [(3, 3), (1, 2), (1, 2)]
    sim.load_states(records)
    assert shown_to(sim, team, 0) == shown_to(sim, team, 1)
    assert shown_to(sim, team, 0) != shown_to(sim, team, 2), "the one on node 8 is seen"
    sim.actions[...] = 0
    sim.actions[:, own, 0] = 1
    for _ in range(2):
        sim.step()
        assert shown_to(sim, team, 0) == shown_to(sim, team, 1)


def test_the_global_state_has_everybody_and_their_hit_points():
    sim = wound(duel(1, 4, graph="path:5", parameters={"horizon": 4}), 3, 1.5)
    act(sim)
    assert sim.state()[0].tolist() == [1, -1, 0, 0.75, 1, -1, 0.75, 0, 0.25, 0, 1, 0.5]


# ------------------------------------------------------------------------------------------------------ the graph codec


def as_graph(codec: str = "graph", **keywords: Any) -> Any:
    env = make_parallel(ID, observation="nodes", codec=codec, compiled=False, **keywords)
    env.reset(seed=0)
    return env


def test_the_graph_codec_moves_and_shoots_as_without_it():
    env, plain, random = as_graph(), as_graph("none"), np.random.default_rng(0)
    assert env.action_space("red_0") == gymnasium.spaces.MultiDiscrete([5, 4])
    place(env.sim, 0, 1, 2, 8, 9, 10)
    place(plain.sim, 0, 1, 2, 8, 9, 10)
    for _ in range(6):
        masks = dict(zip(env.sim.game.agents, env.sim.legal[0], strict=True))
        legal = {
            agent: [np.flatnonzero(masks[agent][part]) for part in (slice(5), slice(5, None))] for agent in env.agents
        }
        actions = {agent: np.array([random.choice(part) for part in parts]) for agent, parts in legal.items()}
        shown = env.step(actions)[0]
        plain.step(actions)
        assert all(env.observation_space(agent).contains(seen) for agent, seen in shown.items())
        for name in ("node", "hit_points", "target", "alive"):
            assert (env.sim.states[name] == plain.sim.states[name]).all()
    assert hit_points(env.sim) != [3] * 6


def test_an_edit_of_an_observed_graph_shows_nowhere_else():
    env = as_graph()
    links = env.step({agent: [0, 0] for agent in env.agents})[0]["red_0"]["observation"].edge_links
    before = links.copy()
    links[:] = -7
    later = env.step({agent: [0, 0] for agent in env.agents})[0]["red_0"]["observation"].edge_links
    new = as_graph().reset(seed=0)[0]["red_0"]["observation"].edge_links
    assert (later == before).all()
    assert (new == before).all()


def test_the_graph_codec_shows_hops_in_the_order_of_each_agent():
    env = as_graph(graph="path:5", red=1, blue=3, vision=3)
    place(env.sim, 0, 2, 3, 4)
    shown = env.step({agent: [0, 0] for agent in env.agents})[0].values()
    unseen, red, blue = [-1] * 5, [0, 1, 2, 3, 4], [[2, 1, 0, 1, 2], [3, 2, 1, 0, 1], [4, 3, 2, 1, 0]]
    rows = [whole(seen["observation"].nodes.T[:5], 4) for seen in shown]
    assert rows[0] == [unseen, red, blue[0], blue[1], unseen]
    assert rows[2:] == [[unseen, blue[k], blue[0], blue[3 - k], red] for k in (1, 2)]


def test_the_graph_codec_shows_hit_points_where_agents_stand():
    env = as_graph(graph="path:5", red=1, blue=2, vision=3)
    env.sim.states["hit_points"][0, :3] = 1, 2, 3
    place(env.sim, 0, 2, 4)
    shown = env.step({agent: [0, 0] for agent in env.agents})[0]
    red, second = (3 * shown[agent]["observation"].nodes.T[4:] for agent in ("red_0", "blue_1"))
    np.testing.assert_allclose(red, [[1, 0, 0, 0, 0], [0, 0, 2, 0, 0], [0] * 5], rtol=1e-6)
    np.testing.assert_allclose(second, [[0, 0, 0, 0, 3], [0, 0, 2, 0, 0], [1, 0, 0, 0, 0]], rtol=1e-6)


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        ([5, 0], ActionError, "red_1: move = 5 is not an integer in [0, 5)"),
        ([0, 4], ActionError, "red_1: target = 4 is not an integer in [0, 4)"),
        ([0.5, 1], ValueError, "an action must be numbers of alternatives, got [0.5, 1]"),
        ("up", ValueError, "an action must be numbers of alternatives, got 'up'"),
    ],
)
def test_a_wrong_action_is_refused_by_the_graph_codec(action: Any, error: type[Exception], message: str):
    env = as_graph()
    before = env.sim.states.tobytes()
    with pytest.raises(error, match=re.escape(message)):
        env.step({agent: action if agent == "red_1" else [0, 0] for agent in env.agents})
    assert env.sim.states.tobytes() == before
    assert not game().codecs


# -------------------------------------------------------------------------------------------------------------- scripts


def played(sim: Any, script: str) -> tuple[list[int], list[int]]:
    """Where red goes by a script in one decision, and at whom it shoots: -1 is nobody."""
    red = sim.game.world.rules.pursuers
    sim.set_opponent("red", script)
    sim.actions[...] = 0
    sim.step()
    assert not sim.info["illegal"].any()
    return nodes_of(sim)[:red], (sim.actions[0, :red, 1] - 1).tolist()


def test_stay_shoots_and_never_moves():
    assert played(duel(3, 4), "stay") == ([3], [0])
    assert played(duel(3, 6), "stay") == ([3], [0]), "it may come into reach"
    assert played(duel(3, 7), "stay") == ([3], [-1])


def test_greedy_goes_to_the_nearest_opponent_and_shoots_at_it():
    assert played(duel(4, 7, 2, blue=2), "greedy") == ([3], [1])
    assert played(wound(duel(4, 5, 5, 1, blue=3), 3, 3, 2, 1), "greedy") == ([5], [1]), "the weaker one of two as near"
    assert played(wound(duel(4, 5, 1, blue=2), 3, 0, 3), "greedy") == ([3], [1]), "the dead are no opponents"


def test_focus_fire_goes_as_a_team_for_the_weakest_of_these_the_nearest():
    sim = wound(duel(4, 2, 5, 8, red=2, blue=2), 3, 3, 3, 1)
    assert played(sim, "focus_fire") == ([5, 3], [0, 0]), "they shoot at the other one while the weak one is far"
    sim = wound(duel(4, 4, 5, 6, red=2, blue=2), 3, 3, 3, 1)
    assert played(sim, "focus_fire") == ([5, 5], [1, 1]), "it shoots at the weak one past a nearer one"
    assert played(duel(4, 4, 8, 1, red=2, blue=2), "focus_fire") == ([3, 3], [1, 1])


def test_the_nearer_opponent_is_chosen_where_hops_are_many_and_where_no_way_leads():
    sim = duel(0, 1, 3, 4, graph=np.array([[0, 1], [1, 2], [2, 3], [4, 5]]), red=2, blue=2)
    assert played(sim, "focus_fire") == ([1, 2], [0, 0])
    assert played(duel(0, 9, 256, graph="path:300", blue=2, parameters={"reach": 299}), "stay") == ([0], [0])


def test_kite_goes_where_one_opponent_alone_can_shoot_at_it():
    assert played(duel(4, 6), "kite") == ([5], [0])
    assert played(duel(4, 6, 6, blue=2), "kite")[0] == [4], "two would shoot at it on node 5"
    assert played(duel(4, 5, 5, blue=2), "kite")[0] == [3]


def test_flee_keeps_away_and_shoots_at_who_comes_near():
    assert played(duel(4, 5), "flee") == ([3], [0])
    assert played(duel(4, 3, 8, blue=2), "flee")[0] == [5]


@pytest.mark.parametrize("script", NAMES)
def test_scripts_shoot_only_at_opponents_that_their_team_sees(script: str):
    assert played(duel(4, 7, parameters={"vision": 2}), script)[1] == [-1]
    assert played(duel(4, 5, 7, red=2, parameters={"vision": 2}), script)[1] == [0, 0], "red_1 sees it"


@pytest.mark.check
def test_exchanged_teams_play_the_exchanged_match():
    rules: dict[str, float] = {"vision": 2, "hit_points": 2}
    sims = [confront("grid:3x3", 4, red=2, blue=2, observation="nodes", parameters=rules) for _ in range(2)]
    _, matches = walk(*sims, seed=0, rounds=range(20), player=Player(sims[0]))
    assert matches > 0
    for team in sims[0].game.teams:
        sims[0].set_opponent(team, "mix")
    walk(*sims, seed=1, rounds=range(10))
    assert game("path:3", 2, 1).mirror is None, "unequal teams are not alike"


@pytest.mark.check
@compiles
def test_a_script_wins_against_itself_as_often_on_both_sides():
    sim = make_batch(ID, 2000, autoreset_mode="off", opponents={"red": "focus_fire", "blue": "focus_fire"})
    sim.reset(seed=0)
    for _ in range(60):
        sim.step()
    wins = [int((sim.info["winner"] == team).sum()) for team in (0, 1)]
    assert sum(wins) > 1000
    assert abs(wins[0] - wins[1]) < 4 * sum(wins) ** 0.5


# -------------------------------------------------------------------------------------------------------------- refused


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"observation": "all"}, "no observation 'all': choose from 'flat', 'dict', 'hops', 'nodes'"),
        ({"graph": "grd:8x8"}, "no graph 'grd:8x8': did you mean grid:"),
        ({"graph": Graph("lonely", 1, np.zeros((0, 2), int))}, "lonely: no possible start, it has a single node"),
        ({"reach": -1}, "reach"),
        ({"hit_points": 0}, "hit_points"),
        ({"vision": 2**15}, "vision"),
        ({"start_hops": -1}, "start_hops"),
    ],
    ids=str,
)
def test_what_is_out_of_range_is_named(keywords: dict[str, Any], message: str):
    with pytest.raises(ValueError, match=re.escape(message)):
        make_batch(ID, 1, compiled=False, **keywords)
