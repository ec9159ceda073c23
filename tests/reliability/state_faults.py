"""Faults of far lanes' seeds, of what snapshots and copies share or forget, and of what depends on the process."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from testing.planting import Patch, changed_rule, suite

from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.run import simulation
from palaestra.core.run.opponent_assignments import OpponentAssignments
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.core.run.simulation import Simulation

# -- seeds of lanes that repeat ----------------------------------------------------------------------------------------


def _repeating(after: int) -> Iterator[Patch]:
    honest = simulation.lane_seeds
    yield simulation, "lane_seeds", lambda seed, lanes: honest(seed, lanes)[np.arange(lanes) % after]


@suite("Flight")
def _() -> Iterator[Patch]:
    """far seeds: they repeat after 64 lanes."""
    yield from _repeating(64)


@suite("MathText")
def _() -> Iterator[Patch]:
    """far seeds: they repeat after 500 lanes."""
    yield from _repeating(500)


def _seeding(change: Any) -> Iterator[Patch]:
    honest = Simulation._seed

    def seed(sim: Any, seeds: Any, which: Any, interrupted: str) -> None:
        honest(sim, seeds, which, interrupted)
        change(sim)

    yield Simulation, "_seed", seed


@suite("Pong")
def _() -> Iterator[Patch]:
    """far seeds: lane 1024 and later draw as lane 1023 does."""

    def change(sim: Any) -> None:
        sim.states["rng"][1024:] = sim.states["rng"][1023:1024]

    yield from _seeding(change)


@suite()
def _() -> Iterator[Patch]:
    """far seeds: scripts of lanes in the later half of many draw as those of the first half do."""

    def change(sim: Any) -> None:
        half = sim.num_envs // 2
        if half > 64:
            sim.states["script_rng"][half : 2 * half] = sim.states["script_rng"][:half]

    yield from _seeding(change)


@suite("Robot")
def _() -> Iterator[Patch]:
    """far seeds: robots of lane 65 and later start as the first do."""

    def change(sim: Any) -> None:
        if isinstance(sim, PhysicsSimulation) and sim.num_envs > 65:
            sim.states["rng"][65:] = sim.states["rng"][: sim.num_envs - 65]

    yield from _seeding(change)


# -- what snapshots and copies share or forget -------------------------------------------------------------------------


def _after_copy(change: Any) -> Iterator[Patch]:
    honest = Simulation.__setstate__

    def setstate(sim: Any, saved: dict[str, Any]) -> None:
        honest(sim, saved)
        change(sim, saved)

    yield Simulation, "__setstate__", setstate


@suite("Orchard")
def _() -> Iterator[Patch]:
    """copies: they forget parameters that wait for the next match."""

    def change(sim: Any, saved: Any) -> None:
        if "next_parameters" in sim.states.dtype.names:
            sim.states["next_parameters"] = sim.states["parameters"]

    yield from _after_copy(change)


@suite("Flight")
def _() -> Iterator[Patch]:
    """copies: their scripts play at full strength."""
    yield from _after_copy(lambda sim, saved: sim.states["strength"].fill(1.0))


@suite("MathText")
def _() -> Iterator[Patch]:
    """copies: they forget the actions that are written."""
    yield from _after_copy(lambda sim, saved: np.copyto(sim.buffers.action_words, sim.action_table.idle))


@suite("Robot")
def _() -> Iterator[Patch]:
    """copies: a deep copy shares the seeds of the lanes."""

    def deepcopy(sim: Any, memo: dict) -> Any:
        made = object.__new__(type(sim))
        made.__setstate__(copy.deepcopy(sim.__getstate__(), memo))
        made.lane_seeds = sim.lane_seeds
        return made

    yield Simulation, "__deepcopy__", deepcopy


@suite("Robot")
def _() -> Iterator[Patch]:
    """copies: an AEC interface forgets what agents of this decision have chosen."""
    yield (
        GameAECEnv,
        "__getstate__",
        lambda env: {**vars(env), "_actions": dict.fromkeys(vars(env).get("_actions", ()), 0)},
    )


@suite("Couriers")
def _() -> Iterator[Patch]:
    """copies: an AEC interface forgets what has been earned."""

    def getstate(env: Any) -> dict[str, Any]:
        earned = vars(env).get("_cumulative_rewards", {})
        return {**vars(env), "_cumulative_rewards": dict.fromkeys(earned, 0.0)}

    yield GameAECEnv, "__getstate__", getstate


@suite()
def _() -> Iterator[Patch]:
    """snapshots: they share what opponents remember."""
    honest = Simulation.snapshot

    def snapshot(sim: Any) -> Any:
        made, own = honest(sim), sim.opponent_assignments
        live = {team: of_team[0].memory for team, of_team in own.items() if len(of_team) == 1}
        return replace(made, memories={**made.memories, **live})

    yield Simulation, "snapshot", snapshot


@suite("Pong")
def _() -> Iterator[Patch]:
    """snapshots: opponents go on remembering in the snapshot that was restored."""

    def restore_memories(assignments: Any, memories: dict[str, np.ndarray]) -> None:
        for team, of_team in assignments.items():
            for assignment in of_team:
                assignment.memory = memories[team][:, : assignment.memory.shape[1]]

    yield OpponentAssignments, "restore_memories", restore_memories


@suite("Flight")
def _() -> Iterator[Patch]:
    """snapshots: they share the seeds of the lanes."""
    honest = Simulation.snapshot
    yield Simulation, "snapshot", lambda sim: replace(honest(sim), lane_seeds=sim.lane_seeds)


# -- the process -------------------------------------------------------------------------------------------------------

changed_rule(
    "process: the second home lies where the order of a set says",
    "Raid",
    "    return Graph(edges | edges.T.copy(), np.array([0, nodes // 2]))",
    '    names = [*{f"node {k}" for k in range(1, nodes)}]\n'
    "    return Graph(edges | edges.T.copy(), np.array([0, int(names[0][5:])]))",
)
changed_rule(
    "process: robots start with noise that a hash decides",
    "Robot",
    "        noise=np.array(kind.noise),",
    "        noise=np.array(kind.noise) * (1.0 + 1e-9 * (hash(robot) % 1009)),",
)
changed_rule(
    "process: default weights of a flight depend on hashes of their names",
    "Flight",
    'build(options, "UcavPursuit", DEFAULTS, "weave"',
    'build(options, "UcavPursuit", {**DEFAULTS, "neutral_weight": 1 - hash("weight") % 97 / 1e6}, "weave"',
)
changed_rule(
    "process: the prompt of a text depends on the current folder",
    "MathText",
    "MathCodec(tokens, options.prompt, ",
    'MathCodec(tokens, (options.prompt, "plain")[len(str(Path.cwd())) > 5], ',
    ("from __future__ import annotations\n", "from __future__ import annotations\n\nfrom pathlib import Path\n"),
)
changed_rule(
    "process: paddles are as fast as the number of the process says",
    "Pong",
    'Parameter("paddle_speed", 3.0, 0.0, 20.0,',
    'Parameter("paddle_speed", 3.0 + __import__("os").getpid() % 1000 / 1e6, 0.0, 20.0,',
)
