"""Battles and pursuits for tests: agents in any cells, actions by their words. Rules run as plain Python."""

from typing import Any

import numpy as np
from games.play import idle_actions

from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.grid import grid_battle as battle
from palaestra.games.grid import grid_pursuit as pursuit
from palaestra.games.grid.grid_ground import EDGE

Cell = tuple[int, int]


def fight(red: int = 1, blue: int = 1, lanes: int = 1, **options: Any) -> Any:
    """Battles on a small map, as the game's own reset begins them."""
    return _started(battle.game, lanes, red=red, blue=blue, **options)


def hunt(predators: int = 1, prey: int = 1, lanes: int = 1, **options: Any) -> Any:
    """Pursuits on a small map, as the game's own reset begins them."""
    return _started(pursuit.game, lanes, predators=predators, prey=prey, **options)


def _started(factory: Any, lanes: int, compiled: bool = False, parameters: Any = None, **options: Any) -> Any:
    game = factory(**{"map_size": 20, "view": 1, "radius": 1, **options})
    sim = KernelSimulation(game, lanes, compiled=compiled, autoreset_mode="off", parameters=parameters or {})
    sim.reset(seed=1)
    return sim


def place(sim: Any, *cells: Cell, hit_points: Any = None) -> Any:
    """Puts all agents of all lanes into cells, those of the first team first."""
    states, size = sim.states, sim.game.world.size
    states["cell"][:, EDGE : EDGE + size, EDGE : EDGE + size] = 0
    for k, (row, column) in enumerate(cells):
        states["row"][:, k], states["column"][:, k] = row, column
        states["cell"][:, row + EDGE, column + EDGE] = k + 1
    if hit_points is not None:
        states["hit_points"][:, : len(cells)] = hit_points
    sim.refresh()
    return sim


def go(sim: Any, **acts: str) -> Any:
    """One decision in all lanes, such as ``red_0="hit ahead"``; who is not named stays."""
    actions = idle_actions(sim)
    for agent, words in acts.items():
        role, index = sim.game.role_of(list(sim.game.agents).index(agent))
        (actions[role.name] if isinstance(actions, dict) else actions)[:, index] = words_of(role).index(words)
    sim.step(actions)
    assert not sim.info["illegal"].any()
    return sim


def words_of(role: Any) -> list[str]:
    """The alternatives of an agent."""
    return list(role.action[0].meanings)


def cells(sim: Any, lane: int = 0) -> list[Any]:
    """Where all agents are, `Cell`; None has left."""
    state = sim.states[lane]
    places = zip(state["alive"], state["row"].tolist(), state["column"].tolist(), strict=True)
    return [(row, column) if alive else None for alive, row, column in places][: len(sim.game.agents)]


def hit_points(sim: Any) -> list[int]:
    """Tenths of hit points of all agents of the first lane."""
    return sim.states["hit_points"][0, : len(sim.game.agents)].tolist()


def ended(sim: Any) -> tuple[str, int]:
    """Why the match is over, and who has won (-1: nobody)."""
    assert sim.terminated[0] or sim.truncated[0]
    return sim.game.all_end_reasons[int(sim.info["end_reason"][0])], int(sim.info["winner"][0])


def assert_map_is_whole(sim: Any) -> None:
    """Each living agent stands in one cell of the map, which names it; all other cells are free, and walls stand."""
    size = sim.game.world.size
    for state in sim.states:
        expected = np.zeros_like(state["cell"])
        expected[: size + 2 * EDGE, : size + 2 * EDGE] = -1
        expected[EDGE : EDGE + size, EDGE : EDGE + size] = 0
        alive = np.flatnonzero(state["alive"])
        rows, columns = state["row"][alive], state["column"][alive]
        assert (np.minimum(rows, columns) >= 0).all()
        assert (np.maximum(rows, columns) < size).all()
        expected[rows + EDGE, columns + EDGE] = alive + 1
        np.testing.assert_array_equal(state["cell"], expected)
        assert np.count_nonzero(expected > 0) == len(alive)
        assert [np.sum(state["team"][alive] == team) for team in (0, 1)] == state["left"].tolist()
