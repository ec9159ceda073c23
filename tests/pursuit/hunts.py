"""Pursuits and confrontations for tests: agents on any nodes, moves by nodes. Rules run as plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.pursuit.confront import game as confront_game
from palaestra.games.pursuit.graph_pursuit import game

ID = "palaestra/GraphPursuit-v0"
FREE = -1


def hunt(graph: Any, lanes: int = 1, **options: Any) -> Any:
    """Matches on a graph as the game's own reset begins them."""
    return _started(game, graph, lanes, **options)


def _started(
    factory: Any,
    graph: Any,
    lanes: int,
    seed: int = 0,
    parameters: dict[str, float] | None = None,
    observation: str | None = None,
    **keywords: Any,
) -> Any:
    options: dict[str, Any] = {"compiled": False, "autoreset_mode": "off", "parameters": parameters or {}}
    sim = KernelSimulation(factory(graph, **keywords).shown_as(observation)[0], lanes, **options)
    sim.reset(seed=seed)
    return sim


def place(sim: Any, *nodes: int, lane: int = 0, turn: int = 0) -> Any:
    """Puts everybody on a node, pursuers first, and says whose turn it is."""
    state = sim.states[lane]
    state["node"][: len(nodes)] = nodes
    state["turn"] = turn
    if sim.game.world.rules.order:
        is_evader = np.arange(len(nodes)) >= sim.game.world.rules.pursuers
        state["acting"][: len(nodes)] = (is_evader == turn) & (state["alive"][: len(nodes)] != 0)
    sim.refresh()
    return sim


def nodes_of(sim: Any, lane: int = 0) -> list[int]:
    """Where everybody is, pursuers first."""
    return sim.states["node"][lane, : len(sim.game.agents)].tolist()


def go(sim: Any, *nodes: int) -> Any:
    """One decision of a single match: each agent goes to a neighbouring node. Who has left is not asked."""
    pursuers, state = sim.actions["pursuer"].shape[1], sim.states[0]
    for slot, node in enumerate(nodes):
        ways = sim.game.world.neighbours[state["graph"], state["node"][slot]].tolist()
        role, member = ("pursuer", slot) if slot < pursuers else ("evader", slot - pursuers)
        sim.actions[role][0, member] = ways.index(node) if state["acting"][slot] else 0
    sim.step()
    assert not sim.info["illegal"].any()
    return sim


def ended(sim: Any) -> tuple[str, int]:
    """Why the match is over, and who has won (-1: nobody)."""
    assert sim.terminated[0] or sim.truncated[0]
    return sim.game.all_end_reasons[int(sim.info["end_reason"][0])], int(sim.info["winner"][0])


# -- confrontations ----------------------------------------------------------------------------------------------------


def confront(graph: Any, lanes: int = 1, **options: Any) -> Any:
    """Confrontations on a graph as the game's own reset begins them."""
    return _started(confront_game, graph, lanes, **options)


def wound(sim: Any, *hit_points: float) -> Any:
    """Gives everybody hit points, red first; who has none left has left the match."""
    state, everybody = sim.states[0], len(hit_points)
    state["hit_points"][:everybody] = hit_points
    state["alive"][:everybody] = state["acting"][:everybody] = np.array(hit_points) > 0
    sim.refresh()
    return sim


def act(sim: Any, **agents: Any) -> Any:
    """One decision of a single confrontation: ``red_0=(3, "blue_0")`` goes to node 3 and shoots at blue_0.

    A node alone is a move, a name alone a shot. Who is not named stays and shoots at nobody.
    """
    state, names = sim.states[0], list(sim.game.agents)
    sim.actions[...] = 0
    for name, action in agents.items():
        slot = names.index(name)
        node, target = action if isinstance(action, tuple) else (action, None)
        if isinstance(action, str):
            node, target = state["node"][slot], action
        ways = sim.game.world.neighbours[state["graph"], state["node"][slot]].tolist()
        sim.actions[0, slot, 0] = ways.index(node)
        if target is not None:
            opponents = [other for other in names if other[0] != name[0]]
            sim.actions[0, slot, 1] = 1 + opponents.index(target)
    sim.step()
    assert not sim.info["illegal"].any()
    return sim
