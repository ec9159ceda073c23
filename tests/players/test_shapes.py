"""Shapes of players: the table says what is shown and what is accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from games import depot, duel, relay, two_team, two_team_homogeneous
from games.play import simulation

from palaestra.core.contract.action_shapes import accepted_shapes
from palaestra.core.contract.actions import ActionError
from palaestra.players import player_shapes

pytestmark = pytest.mark.jitless

GAMES = {
    "several roles, records, shared fields": two_team.game(),
    "real numbers": two_team_homogeneous.game(),
    "two roles of choices": relay.game(),
    "one agent": duel.game(players=1),
    "one choice": duel.game(players=2),
    "candidates": duel.game(players=2, listed=True),
    "composite choices with candidates": depot.game(kind="full"),
}
LANES = 3


class Witness:
    """Keeps what it is shown and returns what it is told to, or no-ops."""

    memory_size = 0

    def __init__(self, actions: Any) -> None:
        self.actions = actions

    def act(self, observations, legal, acting, first, seeds, memory):
        self.shown = {"observation": observations, "mask": legal}
        return self.actions


def played(game, team: str, actions: Any) -> Witness:
    witness = Witness(actions)
    sim = simulation(game, LANES, compiled=False)
    sim.reset(seed=1)
    sim.set_opponent(team, witness)
    sim.step()
    return witness


def at(arrays: Any, part: str) -> Any:
    for key in filter(None, part.split(", ")):
        arrays = arrays[key]
    return arrays


def zeros(shape: str, dtype: str) -> np.ndarray:
    sizes = [LANES if size == "n" else int(size) for size in shape.strip("[]").split(", ")]
    return np.zeros(sizes, dtype)


def filled(shape: str, dtype: str) -> np.ndarray:
    """Zeros, or real numbers that are in the bounds of every game here."""
    return zeros(shape, dtype) if dtype == "int64" else np.full_like(zeros(shape, dtype), 0.1)


def nested(parts: dict[str, np.ndarray]) -> Any:
    if list(parts) == [""]:
        return parts[""]
    tree: dict[str, Any] = {}
    for part, array in parts.items():
        *path, last = part.split(", ")
        branch = tree
        for key in path:
            branch = branch.setdefault(key, {})
        branch[last] = array
    return tree


def answers(game, team: str) -> list[Any]:
    """Actions in every shape that the table lists."""
    rows = [row for row in player_shapes(game, team) if row.what == "action"]
    alone = [zeros(row.shape, row.dtype) for row in rows if row.part.startswith("or ")]
    rows = [row for row in rows if not row.part.startswith("or ")]
    most = max(len(row.also) for row in rows)
    chosen = [[(row.shape, *row.also)[min(k, len(row.also))] for row in rows] for k in range(most + 1)]
    dicts = [{row.part: filled(s, row.dtype) for row, s in zip(rows, shapes, strict=True)} for shapes in chosen]
    return [*alone, *map(nested, dicts)]


@pytest.mark.parametrize("name", GAMES)
def test_the_table_of_shapes_is_what_a_player_is_shown_and_may_return(name: str):
    game = GAMES[name]
    for team in game.teams:
        witness = [played(game, team, actions) for actions in answers(game, team)][-1]
        rows = [row for row in player_shapes(game, team) if row.what != "action"]
        for row in rows:
            shown = at(witness.shown[row.what], row.part)
            assert (shown.shape, shown.dtype) == (zeros(row.shape, row.dtype).shape, np.dtype(row.dtype)), row
        assert any(row.what == "mask" for row in rows) == (game.legal is not None)


def test_a_joint_action_is_the_actions_agent_after_agent():
    flat = np.arange(30.0).reshape(3, 10) / 30
    game = two_team_homogeneous.game()
    sim = simulation(game, 3, compiled=False, opponents={"blue": lambda observations: flat})
    sim.reset(seed=1)
    sim.step()
    np.testing.assert_array_equal(sim.actions[:, 5:], flat.reshape(3, 5, 2))


def test_one_agent_needs_no_axis_of_agents():
    assert accepted_shapes((1,)) == [(1,), (), (1, 1)]
    assert accepted_shapes((1, 3)) == [(1, 3), (3,)]
    assert accepted_shapes((2,)) == [(2,), (2, 1)]
    assert accepted_shapes((2, 3)) == [(2, 3), (6,)]


@pytest.mark.parametrize("shape", [(3, 2, 5), (3, 10, 1), (10,), (5, 10), (3,)])
def test_another_shape_is_refused_with_those_that_are_accepted(shape):
    with pytest.raises(ActionError, match=r"action of point must have the shape \[n, 5, 2\] or \[n, 10\] with n = 3"):
        played(two_team_homogeneous.game(), "red", np.zeros(shape))


def test_wrong_roles_are_refused_with_the_accepted_forms():
    game = relay.game()
    team = next(team for team in game.teams if len(game.team_roles(team)) > 1)
    for actions in ({"runner": np.zeros((3, 2), int)}, {"runner": 0, "keeper": 0, "goalie": 0}):
        with pytest.raises(ActionError, match="a dict with the roles runner, keeper"):
            played(game, team, actions)
    with pytest.raises(ActionError, match=r"or \[n, 2\] with the choices of all agents side by side, got .* \(3, 9\)"):
        played(game, team, np.zeros((3, 9), int))


def test_a_team_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="Melee has no team 'green': choose from red, blue"):
        player_shapes(two_team_homogeneous.game(), "green")
