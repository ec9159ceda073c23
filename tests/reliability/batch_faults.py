"""Faults of the suite: seeds, resets, batches and opponents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from testing.planting import Patch, suite

from palaestra.core.compile.batch_loop import MIX, RANDOM
from palaestra.core.run import opponent_assignments, simulation
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.opponent_assignments import OpponentAssignments
from palaestra.core.run.parameters import ParameterRecords
from palaestra.core.run.simulation import Simulation
from palaestra.core.run.workers import ProcessSimulation

# -- seeds and resets --------------------------------------------------------------------------------------------------


@suite()
def _() -> Iterator[Patch]:
    """seeds are cut to 32 bits."""
    honest = simulation.lane_seeds
    yield simulation, "lane_seeds", lambda seed, lanes: honest(seed, lanes) & np.uint64(2**32 - 1)


@suite()
def _() -> Iterator[Patch]:
    """lane 8 and later repeat the seeds of the first lanes."""
    honest = simulation.lane_seeds
    yield simulation, "lane_seeds", lambda seed, lanes: honest(seed, lanes)[np.arange(lanes) % 8]


@suite()
def _() -> Iterator[Patch]:
    """seed 0 is taken for no seed."""
    honest = Simulation.reset
    yield (
        Simulation,
        "reset",
        lambda sim, mask=None, *, seed=None: honest(
            sim, mask, seed=None if isinstance(seed, int) and seed == 0 else seed
        ),
    )


@suite()
def _() -> Iterator[Patch]:
    """a list of seeds counts from its first."""
    honest = Simulation.seed
    yield (
        Simulation,
        "seed",
        lambda sim, seed, mask=None: honest(sim, int(np.asarray(seed).reshape(-1)[0]), mask),
    )


@suite()
def _() -> Iterator[Patch]:
    """an unseeded simulation always has the same seed."""

    class Fixed(np.random.SeedSequence):
        def __init__(self, *entropy: Any) -> None:
            super().__init__(12345)

    yield np.random, "SeedSequence", Fixed


@suite()
def _() -> Iterator[Patch]:
    """a reset without a seed starts the same match again."""
    honest = Simulation.reset

    def reset(sim: Any, mask: Any = None, *, seed: Any = None) -> Any:
        if seed is None and sim.started and mask is None:
            seed = sim.lane_seeds
        return honest(sim, mask, seed=seed)

    yield Simulation, "reset", reset


@suite()
def _() -> Iterator[Patch]:
    """a reset of one lane resets all of them."""
    honest = Simulation.reset

    def reset(sim: Any, mask: Any = None, *, seed: Any = None) -> Any:
        if mask is not None and np.asarray(mask).sum() == 1:
            mask = None
        return honest(sim, mask, seed=seed)

    yield Simulation, "reset", reset


@suite()
def _() -> Iterator[Patch]:
    """a reset of some lanes leaves their masks as they were."""
    honest = KernelSimulation._reset_lanes

    def reset_lanes(sim: Any, which: np.ndarray) -> None:
        before = sim.buffers.mask_bytes.copy()
        honest(sim, which)
        if not which.all():
            sim.buffers.mask_bytes[...] = before

    yield KernelSimulation, "_reset_lanes", reset_lanes


# -- batches -----------------------------------------------------------------------------------------------------------


@suite()
def _() -> Iterator[Patch]:
    """two threads leave the last lane of an odd number out."""
    honest = KernelSimulation._slices

    def slices(sim: Any, call: Any) -> None:
        count = sim.num_envs
        if sim.threads > 1 and count % 2 and count > 6:
            call(0, count - 1, 0)
        else:
            honest(sim, call)

    yield KernelSimulation, "_slices", slices


@suite()
def _() -> Iterator[Patch]:
    """a refused action of a later lane lets the first lane move, with threads."""
    honest = KernelSimulation._step_lanes

    def step_lanes(sim: Any) -> int:
        before = sim.states[0].copy()
        offender = honest(sim)
        if offender > 0 and sim.threads > 1:
            sim.states[0] = before
            sim.states["steps"][0] += 1
        return offender

    yield KernelSimulation, "_step_lanes", step_lanes


@suite()
def _() -> Iterator[Patch]:
    """a horizon per lane is that of the first lane."""
    honest = Simulation.set_parameters

    def set_parameters(sim: Any, lanes: Any = None, **values: Any) -> None:
        if "horizon" in values:
            values["horizon"] = np.asarray(values["horizon"]).reshape(-1)[0]
        honest(sim, lanes, **values)

    yield Simulation, "set_parameters", set_parameters


@suite()
def _() -> Iterator[Patch]:
    """matches longer than 100 decisions are cut off one decision early."""
    honest = Simulation.set_parameters

    def set_parameters(sim: Any, lanes: Any = None, **values: Any) -> None:
        if np.any(np.asarray(values.get("horizon", 0)) > 100):
            values["horizon"] = np.asarray(values["horizon"]) - 1
        honest(sim, lanes, **values)

    yield Simulation, "set_parameters", set_parameters


@suite()
def _() -> Iterator[Patch]:
    """parameters for some lanes go to all lanes."""
    honest = Simulation.set_parameters

    def set_parameters(sim: Any, lanes: Any = None, **values: Any) -> None:
        alone = all(np.ndim(v) == 0 for v in values.values())
        honest(sim, None if alone else lanes, **values)

    yield Simulation, "set_parameters", set_parameters


@suite()
def _() -> Iterator[Patch]:
    """parameters by lane are written in reverse order."""
    honest = Simulation.set_parameters
    turned = lambda v: v[::-1] if isinstance(v, np.ndarray) and v.ndim else v  # noqa: E731
    yield (
        Simulation,
        "set_parameters",
        lambda sim, lanes=None, **values: honest(sim, lanes, **{k: turned(v) for k, v in values.items()}),
    )


@suite("Orchard")
def _() -> Iterator[Patch]:
    """parameters that wait for the next match change at once."""
    honest = ParameterRecords.write

    def write(records: Any, lanes: Any, values: Any, have_started: bool) -> None:
        honest(records, lanes, values, have_started)
        for name in values:
            if "next_parameters" in records._states.dtype.names:
                records._states["parameters"][name] = records._states["next_parameters"][name]

    yield ParameterRecords, "write", write


@suite()
def _() -> Iterator[Patch]:
    """state() gives what it gave first."""
    honest = Simulation.state

    def state(sim: Any) -> np.ndarray:
        if "_first_state" not in vars(sim):
            sim._first_state = honest(sim).copy()
        return sim._first_state

    yield Simulation, "state", state


@suite()
def _() -> Iterator[Patch]:
    """team_rewards() of the last team are the first team's."""
    honest = Simulation.team_rewards
    yield Simulation, "team_rewards", lambda sim, team: honest(sim, next(iter(sim.game.teams)))


@suite("Pong")
def _() -> Iterator[Patch]:
    """render() draws the first lane whatever it is asked."""
    honest = Simulation.render
    yield Simulation, "render", lambda sim, lane=0: honest(sim, 0)


@suite()
def _() -> Iterator[Patch]:
    """a closed simulation plays on."""
    yield Simulation, "close", lambda sim: None
    yield KernelSimulation, "close", lambda sim: None


@suite()
def _() -> Iterator[Patch]:
    """out_of_range="raise" clips."""
    honest = Simulation.__init__

    def init(sim: Any, *args: Any, **options: Any) -> None:
        honest(sim, *args, **{k: v for k, v in options.items() if k != "out_of_range"})

    yield Simulation, "__init__", init


@suite()
def _() -> Iterator[Patch]:
    """worker processes exchange their slices when they tell the global state."""
    honest = ProcessSimulation._write_state

    def write_state(sim: Any, out: np.ndarray) -> None:
        honest(sim, out)
        if sim.workers > 1:
            out[...] = np.roll(out, 1, axis=0)

    yield ProcessSimulation, "_write_state", write_state


# -- opponents ---------------------------------------------------------------------------------------------------------


@suite()
def _() -> Iterator[Patch]:
    """the strength of scripts has no effect."""
    honest = opponent_assignments.split_strength
    yield opponent_assignments, "split_strength", lambda game, spec: (honest(game, spec)[0], 1.0)


@suite()
def _() -> Iterator[Patch]:
    """a strength below one half is 0."""
    honest = opponent_assignments.split_strength

    def split(game: Any, spec: Any) -> tuple[Any, float]:
        name, strength = honest(game, spec)
        return name, strength if strength >= 0.5 else 0.0

    yield opponent_assignments, "split_strength", split


@suite()
def _() -> Iterator[Patch]:
    """the mix of scripts is always the first of them."""
    honest = opponent_assignments.resolve
    yield (
        opponent_assignments,
        "resolve",
        lambda game, team, spec: 0 if isinstance(number := honest(game, team, spec), int) and number == MIX else number,
    )


@suite()
def _() -> Iterator[Patch]:
    """the mix of scripts leaves the last of them out."""
    honest = KernelSimulation._reset_lanes

    def reset_lanes(sim: Any, which: np.ndarray) -> None:
        honest(sim, which)
        last = len(sim.game.scripts) - 1
        drawn = (sim.states["assigned_player"] == MIX) & (sim.states["current_player"] == last)
        sim.states["current_player"][drawn] = 0

    yield KernelSimulation, "_reset_lanes", reset_lanes


@suite()
def _() -> Iterator[Patch]:
    """the random player is the last script."""
    honest = opponent_assignments.resolve

    def resolve(game: Any, team: str, spec: Any) -> Any:
        number = honest(game, team, spec)
        return len(game.scripts) - 1 if isinstance(number, int) and number == RANDOM and game.scripts else number

    yield opponent_assignments, "resolve", resolve


@suite()
def _() -> Iterator[Patch]:
    """an opponent for some lanes plays in all lanes."""
    honest = Simulation.set_opponent
    yield Simulation, "set_opponent", lambda sim, team, opponent, lanes=None: honest(sim, team, opponent)


@suite()
def _() -> Iterator[Patch]:
    """an opponent for lanes by number plays one lane further."""
    honest = Simulation.set_opponent

    def set_opponent(sim: Any, team: str, opponent: Any, lanes: Any = None) -> None:
        if lanes is not None and np.asarray(lanes).dtype != np.bool_:
            lanes = (np.asarray(lanes) + 1) % sim.num_envs
        elif lanes is not None:
            lanes = np.roll(lanes, 1)
        honest(sim, team, opponent, lanes)

    yield Simulation, "set_opponent", set_opponent


@suite()
def _() -> Iterator[Patch]:
    """what a Python opponent remembers is forgotten in every step."""
    honest = OpponentAssignments.query

    def query(assignments: Any, arrays: Any, lane_seeds: Any) -> Any:
        remembered = honest(assignments, arrays, lane_seeds)
        return [(team, given, lanes, np.zeros_like(memory)) for team, given, lanes, memory in remembered]

    yield OpponentAssignments, "query", query


@suite()
def _() -> Iterator[Patch]:
    """a Python opponent sees the observations of the first lanes."""
    honest = Simulation.team_view

    def team_view(sim: Any, team: str, what: str, lanes: Any = slice(None)) -> Any:
        return honest(sim, team, what, np.arange(len(lanes)) if isinstance(lanes, np.ndarray) else lanes)

    yield Simulation, "team_view", team_view
