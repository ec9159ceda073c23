"""Wide batches: every lane is what it is in a narrow batch, wherever it lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array

from palaestra.testing.harness import conformance, require
from palaestra.testing.players import Player, SpacePlayer
from palaestra.testing.snapshot_view import difference, rows_of, snapshot_view, unlike
from palaestra.testing.subject import Subject

Parts = list[tuple[slice, Any]]


@conformance(order=216)
def wide_batches_match_narrow(subject: Subject) -> None:
    """Each lane of a batch or a VectorEnv of many lanes is bitwise the same lane of several narrow ones.

    Whatever lies beside it: seeds, parameters of each lane, results, finals, infos and the global state.
    """
    draw, engine = subject.draw, subject.is_engine_game
    most = {"fast": 80, "full": 600}.get(subject.level, 80)
    lanes = draw.integer("lanes", 6, 8) if engine else draw.integer("lanes", 66, most)
    narrow = draw.integer("narrow", 2, 3) if engine else draw.integer("narrow", max(9, lanes // 9), max(13, lanes // 4))
    rows = [slice(start, min(start + narrow, lanes)) for start in range(0, lanes, narrow)]
    steps = _batches(subject, lanes, rows) + _vectors(subject, lanes, rows)
    subject.note(f"{steps} lane-steps, {lanes} lanes and {narrow}")


def _batches(subject: Subject, lanes: int, rows: list[slice]) -> int:
    draw, seed = subject.draw, subject.draw.seed()
    options = {"autoreset_mode": draw.choice("mode", ("next_step", "same_step"))}
    wide = subject.batch(lanes, **options)
    parts: Parts = [(own, subject.batch(own.stop - own.start, **options)) for own in rows]
    free = [p for p in subject.game.parameters if p.name not in (*subject.keywords, "horizon")]
    values = {"horizon": np.array([draw.integer("horizon", 1, 9) for _ in range(lanes)], np.float64)}
    if free:
        parameter = draw.choice("parameter", free)
        values[parameter.name] = draw.parameter("value", parameter, lanes, free)
    for own, part in [(slice(0, lanes), wide), *parts]:
        part.set_parameters(**{name: of_lanes[own] for name, of_lanes in values.items()})
        part.seed(seed + own.start)
        part.reset()
    player, steps = Player(wide), 0
    for number in subject.rounds(6, 10, 100):
        _same_lanes(subject, wide, parts, number)
        player.play(wide)
        words = wide.buffers.action_words.copy()
        wide.step()
        for own, part in parts:
            part.buffers.action_words[...] = words[own]
            part.step()
        steps += lanes
    _same_lanes(subject, wide, parts, steps // lanes)
    return steps


def _same_lanes(subject: Subject, wide: Any, parts: Parts, number: int) -> None:
    shown, state = snapshot_view(wide), wide.state().copy()
    for own, part in parts:
        found = difference(subject.game, rows_of(shown, own), snapshot_view(part), own.start)
        require(not found, f"{found} in a batch of {wide.num_envs} and of {part.num_envs}, after {number} steps")
        place = f"lanes {own.start} to {own.stop - 1}, after {number} steps"
        found = unlike(state[own], part.state())
        require(not found, f"{place}: state(){found} in a batch of {wide.num_envs} and of {part.num_envs}")


def _vectors(subject: Subject, lanes: int, rows: list[slice]) -> int:
    draw, steps = subject.draw, 0
    short = {
        "autoreset_mode": draw.choice("mode", ("same_step", "next_step")),
        "horizon": draw.integer("horizon", 2, 5),
    }
    for options in (short, {"autoreset_mode": "next_step"}):
        seed = draw.seed()
        wide = subject.vec(lanes, **options)
        parts: Parts = [(own, subject.vec(own.stop - own.start, **options)) for own in rows]
        wide.reset(seed=seed)
        for own, part in parts:
            part.reset(seed=seed + own.start)
        if options is not short and not subject.is_engine_game:
            _go_ahead(wide.sim, [(own, part.sim) for own, part in parts], draw.integer("ahead", 10, 60))
        steps += _compare_vectors(subject, wide, parts, seed)
    return steps


def _compare_vectors(subject: Subject, wide: Any, parts: Parts, seed: int) -> int:
    space, steps, lanes = wide.single_action_space, 0, wide.num_envs
    players = [SpacePlayer(space, seed + lane) for lane in range(lanes)]
    for number in subject.rounds(5, 8, 60):
        actions = [player.act() for player in players]
        whole = wide.step(_joined(space, actions))
        for own, part in parts:
            found = _unlike(_rows(whole, own), part.step(_joined(space, actions[own])))
            place = f"VectorEnv, decision {number}, lanes {own.start} to {own.stop - 1}"
            require(not found, f"{place}: {found} ({lanes} lanes and {part.num_envs})")
        steps += lanes
    return steps


def _go_ahead(wide: Any, parts: Parts, decisions: int) -> None:
    """Plays the wide batch to where matches end, and takes the narrow ones there."""
    player = Player(wide)
    for _ in range(decisions):
        player.play(wide)
        wide.step()
    states, seeds = wide.states.copy(), wide.lane_seeds.copy()
    for own, sim in [(slice(0, wide.num_envs), wide), *parts]:
        sim.load_states(states[own])
        sim.lane_seeds[...] = seeds[own]


def _joined(space: Any, actions: list[Any]) -> Any:
    return concatenate(space, actions, create_empty_array(space, len(actions)))


def _unlike(wide: tuple[Any, ...], narrow: tuple[Any, ...]) -> str:
    """As `unlike`, of results; infos have finals only where a match has ended, in whichever lane."""
    *seen, info = wide
    for name in ("final_obs", "final_info"):
        if name in info and name not in narrow[-1]:
            if info[f"_{name}"].any():
                return f"infos have {name} of {np.flatnonzero(info[f'_{name}']).tolist()} and none"
            info = {k: v for k, v in info.items() if k not in (name, f"_{name}")}
    return unlike((*seen, info), narrow)


def _rows(result: Any, own: slice) -> Any:
    """Some lanes of a batched result."""
    if isinstance(result, Mapping):
        return {name: _rows(part, own) for name, part in result.items()}
    if isinstance(result, tuple):
        return tuple(_rows(part, own) for part in result)
    return result[own]
