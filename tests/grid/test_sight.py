"""What agents on a grid see and may do, against a plain definition: all pairs of agents, and cells by their words."""

from typing import Any

import numpy as np
import pytest
from grid.grids import words_of

from palaestra import registry
from palaestra.core.run.simulation import Simulation
from palaestra.games.grid.grid_ground import class_of

BATTLE, PURSUIT = "palaestra/GridBattle-v0", "palaestra/GridPursuit-v0"
WAYS = {"ahead": (0, 1), "back": (0, -1), "up": (-1, 0), "down": (1, 0)}
LISTED, NEAREST = 8, 16
PLAYERS = {
    BATTLE: (("random", "random"), ("rush", "rush"), ("focus", "wander")),
    PURSUIT: (("random", "random"), ("rush", "flee"), ("wander", "wander")),
}
SIZES = {
    (16, 64): ((12, 12, 20, 2, 10), (16, 9, 20, 6, 6)),
    (128, 100): ((20, 30, 20, 6, 6), (6, 8, 66, 4, 16)),
    (512, 128): ((10, 10, 101, 5, 16), (129, 20, 40, 6, 6)),
    (1024, 200): ((12, 14, 130, 6, 16), (40, 513, 70, 3, 5)),
}
"""By capacity class, few agents and a crowd: agents of the first and the second team, side of the map, view, radius."""
LANES, ROUND = 16, 64


def of_roles(sim: Simulation, arrays: Any) -> list[np.ndarray]:
    """An array of each role."""
    return [arrays[role.name] for role in sim.game.roles] if isinstance(arrays, dict) else [arrays]


class Definition:
    """All that the agents of some matches should see and may do, arrays ``[lane, agent, ...]`` over all roles."""

    def __init__(self, sim: Simulation) -> None:
        self.sim, self.world, agents = sim, sim.game.world, len(sim.game.agents)
        names = ("row", "column", "hit_points", "team", "alive")
        self.row, self.column, self.points, self.team, alive = (
            sim.states[name][:, :agents].astype(np.int64) for name in names
        )
        self.alive = alive > 0
        self.side = np.where((self.team == 1) & bool(self.world.mirrored), -1, 1)
        self.down = self.row[:, None, :] - self.row[:, :, None]  # from the second agent to the third
        self.ahead = self.side[:, :, None] * (self.column[:, None, :] - self.column[:, :, None])
        self.both = self.alive[:, :, None] & self.alive[:, None, :]
        self.mates = self.team[:, :, None] == self.team[:, None, :]

    def own(self) -> np.ndarray:
        left = np.stack([(self.alive & (self.team == team)).sum(1) for team in (0, 1)], axis=1)
        shares = -(-100 * left // self.world.sizes)  # rounded up
        time = -(
            -100 * self.sim.states["steps"].astype(np.int64) // self.sim.states["parameters"]["horizon"].astype(int)
        )
        columns = np.where(self.side > 0, self.column, self.world.size - 1 - self.column)
        own = [
            self.points,
            np.take_along_axis(shares, self.team, 1),
            np.take_along_axis(shares, 1 - self.team, 1),
            np.broadcast_to(time[:, None], self.team.shape),
            self.row,
            columns,
        ]
        return np.stack(own, axis=2) * self.alive[:, :, None]

    def window(self) -> np.ndarray:
        view, size = self.world.sight, self.world.size
        window = np.zeros((*self.row.shape, 2 * view + 1, 2 * view + 1, 5), np.int64)
        near = np.arange(-view, view + 1)
        rows, columns = self.row[:, :, None] + near, self.column[:, :, None] + self.side[:, :, None] * near
        beyond = [(cells < 0) | (cells >= size) for cells in (rows, columns)]
        window[..., 0] = 100 * (beyond[0][:, :, :, None] | beyond[1][:, :, None, :])
        window[~self.alive] = 0
        lane, k, j = np.nonzero(self.both & (np.maximum(abs(self.down), abs(self.ahead)) <= view))
        cell = lane, k, self.down[lane, k, j] + view, self.ahead[lane, k, j] + view
        channel = np.where(self.mates[lane, k, j], 1, 3)
        window[(*cell, channel)], window[(*cell, channel + 1)] = 100, self.points[lane, j]
        return window

    def nearest(self, wanted: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Slots of the nearest wanted agents within the radius ``[lane, agent, most]``, and whether there is one."""
        agents = self.row.shape[1]
        in_reach = np.maximum(abs(self.down), abs(self.ahead)) <= self.world.radius
        wanted = wanted & in_reach & self.both & ~np.eye(agents, dtype=bool)
        keys = np.where(wanted, (self.down**2 + self.ahead**2) * agents + np.arange(agents), np.iinfo(np.int64).max)
        slots = np.argsort(keys, axis=2, kind="stable")[:, :, :most]
        return slots, np.take_along_axis(wanted, slots, 2)

    def lists(self) -> tuple[np.ndarray, np.ndarray]:
        slots, there = self.nearest(self.mates, LISTED)
        members = np.where(there, slots - self.team[:, :, None] * self.world.sizes[0], -1)
        return members, self.offsets(slots, there)

    def offsets(self, slots: np.ndarray, there: np.ndarray) -> np.ndarray:
        ways = [np.take_along_axis(way, slots, 2) for way in (self.down, self.ahead)]
        return np.stack(ways, axis=3) * there[..., None]

    def entities(self) -> np.ndarray:
        slots, there = self.nearest(np.ones_like(self.mates), NEAREST)
        mates, points = np.take_along_axis(self.mates, slots, 2), self.points[:, None, :] * np.ones_like(self.mates)
        shares = np.take_along_axis(points, slots, 2) / 100
        offsets = self.offsets(slots, there)
        rows = np.stack([there, mates & there, offsets[..., 0], offsets[..., 1], shares * there], axis=3)
        return (rows * self.alive[:, :, None, None]).reshape(*self.row.shape, -1)

    def mask(self, words: list[str]) -> np.ndarray:
        cells = np.full((len(self.row), self.world.size + 4, self.world.size + 4), -1)
        cells[:, 2:-2, 2:-2] = 0
        lane, k = np.nonzero(self.alive)
        cells[lane, self.row[lane, k] + 2, self.column[lane, k] + 2] = k + 1
        assert (cells > 0).sum() == len(k), "two agents are in one cell"
        mask, lanes = np.zeros((*self.row.shape, len(words)), bool), np.arange(len(self.row))[:, None]
        for act, word in enumerate(words):
            far = 2 if "2" in word else 1
            down, ahead = (
                far * sum(way[axis] for name, way in WAYS.items() if name in word.split()) for axis in (0, 1)
            )
            there = cells[lanes, self.row + 2 + down, self.column + 2 + self.side * ahead]
            if word.startswith("hit"):
                mask[..., act] = (there > 0) & (np.take_along_axis(self.team, there - 1, 1) != self.team)
            else:
                mask[..., act] = (there == 0) | (word == "stay")
        mask[~self.alive] = np.array(words) == "stay"
        return mask


def compare(sim: Simulation) -> None:
    """All that the matches show now is as defined."""
    definition, first = Definition(sim), 0
    own, window, (neighbours, offsets) = definition.own(), definition.window(), definition.lists()
    shown, legal = of_roles(sim, sim.observations), of_roles(sim, sim.legal)
    for role, seen, masks in zip(sim.game.roles, shown, legal, strict=True):
        of_role = slice(first, first := first + len(role.agents))
        np.testing.assert_array_equal(masks, definition.mask(words_of(role))[:, of_role])
        if seen.dtype == np.float32:  # entities
            expected = np.concatenate([own, definition.entities()], axis=2)
            np.testing.assert_array_equal(seen, expected[:, of_role].astype(np.float32))
        else:
            np.testing.assert_array_equal(seen["own"], own[:, of_role])
            np.testing.assert_array_equal(seen["window"], window[:, of_role])
            np.testing.assert_array_equal(seen["neighbours"], neighbours[:, of_role])
            np.testing.assert_array_equal(seen["offsets"], offsets[:, of_role])


def play(id: str, room: tuple[int, int], crowd: bool, decisions: int, lanes: int = LANES, **keywords: Any) -> None:
    """Compares so many decisions of matches; each round of them has other players."""
    first, second, size, view, radius = SIZES[room][crowd]
    teams = {"red": first, "blue": second} if id == BATTLE else {"predators": first, "prey": second}
    assert class_of(max(first, second), size) == room
    sim = registry.make_batch(id, lanes, map_size=size, view=view, radius=radius, **teams, **keywords)
    for number in range(-(-decisions // lanes // ROUND)):
        for team, player in zip(sim.game.teams, PLAYERS[id][number % 3], strict=True):
            sim.set_opponent(team, player)
        sim.reset(seed=number)
        compare(sim)
        for _ in range(min(ROUND, decisions // lanes)):
            sim.step()
            compare(sim)
    sim.close()


@pytest.mark.check
@pytest.mark.jitless
@pytest.mark.parametrize("id", [BATTLE, PURSUIT])
def test_without_a_compiler_too(id: str):
    play(id, (16, 64), False, 16, lanes=4, compiled=False)


@pytest.mark.check
@pytest.mark.parametrize("crowd", [False, True])
@pytest.mark.parametrize("room", SIZES)
@pytest.mark.parametrize("id", [BATTLE, PURSUIT])
def test_windows_lists_and_masks_are_as_defined(id: str, room: tuple[int, int], crowd: bool):
    play(id, room, crowd, 4 * LANES if crowd else LANES * ROUND)


@pytest.mark.check
@pytest.mark.parametrize("id", [BATTLE, PURSUIT])
def test_entities_are_as_defined(id: str):
    play(id, (16, 64), True, 3 * LANES * ROUND, observation="entities")


@pytest.mark.slow
@pytest.mark.parametrize("room", SIZES)
@pytest.mark.parametrize("id", [BATTLE, PURSUIT])
def test_windows_lists_and_masks_are_as_defined_in_50_000_decisions(id: str, room: tuple[int, int]):
    play(id, room, False, 48_000)
    play(id, room, True, 2_000)
