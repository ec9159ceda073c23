"""Random actions: they cover the action space, stay inside it, and differ between calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import palaestra
from palaestra.cli import random_actions
from palaestra.game import Choice, Continuous, Field, Game, Role

LANES = 16
MIXED = "test/MovesMixed-v0"


def mixed_game() -> Game:
    """One agent that chooses and steers, and two that set two numbers each or choose twice."""

    def step(s: Any, world: Any, actions: Any, rewards: Any, scratch: Any) -> bool:
        return False

    def start(s: Any, world: Any) -> None:
        return

    def observe(s: Any, world: Any, observations: Any, scratch: Any) -> None:
        return

    seen = (Field("nothing", low=0.0, high=1.0),)
    return Game(
        name="MovesMixed",
        roles=(
            Role("tank", ("red_0",), seen, (Choice("gear", 4), Continuous("steer", (2,), -3.0, -1.0, noop=-2.0))),
            Role("plane", ("red_1", "blue_0"), seen, (Continuous("stick", (2,), 5.0, 6.0, noop=5.5),)),
            Role("radar", ("blue_1",), seen, (Choice("beam", 2), Choice("power", 7))),
        ),
        state=(),
        reset=start,
        step=step,
        observe=observe,
        horizon=50,
    )


palaestra.register(MIXED, mixed_game, family="test")


@pytest.fixture
def sim():
    sim = palaestra.make_batch(MIXED, LANES, compiled=False)
    sim.reset(seed=0)
    yield sim
    sim.close()


def test_all_of_every_range_is_drawn_and_nothing_else(sim):
    move, drawn = random_actions.mover(sim), []
    for _ in range(random_actions.POOL):
        move()
        drawn.append({name: block.copy() for name, block in sim.actions.items()})
        sim.step()  # refuses what is outside its space
    gears = np.concatenate([d["tank"]["gear"] for d in drawn])
    steers = np.concatenate([d["tank"]["steer"] for d in drawn])
    sticks = np.concatenate([d["plane"] for d in drawn])
    beams, powers = np.moveaxis(np.concatenate([d["radar"] for d in drawn]), -1, 0)
    assert [set(values.ravel()) for values in (gears, beams, powers)] == [set(range(n)) for n in (4, 2, 7)]
    assert steers.min() < -2.9
    assert -1.1 < steers.max() <= -1.0
    assert 5.0 <= sticks.min() < 5.1 < 5.9 < sticks.max()


def test_only_the_named_slots_move(sim):
    idle = {name: block.copy() for name, block in sim.actions.items()}
    random_actions.mover(sim, (1,))()
    assert (sim.actions["plane"][:, 0] != idle["plane"][:, 0]).all()
    assert (sim.actions["plane"][:, 1] == idle["plane"][:, 1]).all()
    assert all((sim.actions[name] == idle[name]).all() for name in ("tank", "radar"))


def test_every_call_brings_another_batch_and_the_same_seed_the_same_ones(sim):
    def batches(seed: int) -> list[bytes]:
        move, seen = random_actions.mover(sim, seed=seed), []
        for _ in range(random_actions.POOL + 1):
            move()
            seen.append(sim.actions["plane"].tobytes())
        return seen

    first = batches(0)
    assert len(set(first)) == random_actions.POOL
    assert first[-1] == first[0]
    assert batches(0) == first
    assert batches(1) != first
