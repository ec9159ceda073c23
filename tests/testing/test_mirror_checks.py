"""Symmetric teams: the mirror check is never skipped, and names what the sides see differently."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Field, Game
from palaestra.games.teams import pong
from palaestra.testing import CHECKS, Subject
from palaestra.testing.checks.mirror_checks import partners
from palaestra.testing.harness import Result, run_one

pytestmark = pytest.mark.check

PONG = "palaestra/TeamPong-v0"


class Changed(Subject):
    """TeamPong with other fields of the game; two kernels are compiled for them, a second each."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(PONG)
        self._changes = changes

    @property
    def game(self) -> Game:
        return dataclasses.replace(super().game, **self._changes)

    def batch(self, num_envs: int = 1, **options: Any) -> Any:
        return KernelSimulation(self.game, num_envs, **options)


def observe_from_red(s, world, observations, scratch):
    """Blue sees itself a little higher than it is."""
    pong.observe(s, world, observations, scratch)
    for slot in range(4):
        observations.paddle[slot].own_y += 1e-3 * (slot // 2)


def observe_side(s, world, observations, scratch):
    """All see which side the ball is on."""
    pong.observe(s, world, observations, scratch)
    observations.lane.side = s.ball_position[0] > 0.0


def checked(**changes: Any) -> Result:
    subject = Changed(**changes)
    return run_one(subject, CHECKS["mirror_symmetry_holds"])


def test_a_game_without_a_mirror_whose_sides_see_differently_fails_by_the_fields_name():
    result = checked(mirror=None, observe=observe_from_red)
    assert result.status == "FAILED"
    assert "own_y of red_0 and of blue_0 are not distributed alike" in result.message


def test_a_fair_game_without_a_mirror_passes_and_the_note_says_what_was_compared():
    result = checked(mirror=None)
    assert result.status == "passed", result.message
    assert "the game gives no mirror" in result.message
    assert "same distributions" in result.message


def test_what_all_agents_see_is_compared_with_its_mirror():
    result = checked(observe=observe_side, lane_observation=(Field("side", (), 0, 1),))
    assert result.status == "FAILED"
    assert "lane observation" in result.message


def test_agents_are_exchanged_with_those_of_their_role_whatever_the_order():
    roles = pong.game().roles
    crews = (("guard", ("red_0", "blue_1")), ("scout", ("blue_0", "red_1")))
    game = dataclasses.replace(
        pong.game(), roles=tuple(dataclasses.replace(roles[0], name=name, agents=agents) for name, agents in crews)
    )
    slots = {agent: k for k, agent in enumerate(game.agents)}
    assert partners(game) == {
        slots["red_0"]: slots["blue_1"],
        slots["blue_1"]: slots["red_0"],
        slots["red_1"]: slots["blue_0"],
        slots["blue_0"]: slots["red_1"],
    }
