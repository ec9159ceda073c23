"""Actions: malformed ones are refused and change nothing; illegal ones, and those of idle agents, do nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from palaestra.core.compile.batch_loop import CALLER, RUNNING
from palaestra.core.contract.actions import ActionError
from palaestra.testing.drivers import LANES
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player, SpacePlayer, draws
from palaestra.testing.snapshot_view import difference, record_change, snapshot_view
from palaestra.testing.subject import Subject

OUT_OF_RANGE = ("is n", "is -1", "is above", "is below", "is NaN", "is inf", "is -inf", "is 2**70")
"""Beginnings of what is wrong with the value alone: an agent that does not act may send any value."""


def malformed(space: spaces.Space, good: Any) -> Iterator[tuple[str, Any]]:
    """Actions like ``good`` that are not in the space, with what is wrong about them. Batched spaces too."""
    if isinstance(space, spaces.Dict):
        name = next(iter(space.spaces))
        yield "lacks an entry", {k: v for k, v in good.items() if k != name}
        yield "has an entry too many", {**good, "no such entry": good[name]}
        for key, part in space.spaces.items():
            for what, bad in malformed(part, good[key]):
                yield f"{key} {what}", {**good, key: bad}
        return
    if isinstance(space, spaces.Discrete):
        n = int(space.n)
        yield "is n", n
        yield "is -1", -1
        yield "is -1 as int32", np.int32(-1)
        yield "is 2**70", 2**70
        yield "is a float", float(good)
        yield "is a string", "0"
        yield "has a shape", np.array([good, good])
        return
    array = np.asarray(good)
    if array.ndim and array.shape[-1] > 1:
        yield "is too short", array[..., :-1]
    elif array.ndim:
        yield "lacks a lane", array[:-1]
    yield "is too long", np.concatenate([array, array], axis=-1) if array.ndim else np.array([array] * 2)
    yield "is a string", array.astype(str)
    yield "is complex", array.astype(complex)
    for what, value in _outside(space):
        for place in {0, array.size - 1}:
            bad = array.copy()
            bad.reshape(-1)[place] = value.reshape(-1)[place]
            yield f"{what} at {place}", bad
    if array.dtype.kind in "iu":
        yield "is float", array.astype(float)


def _outside(space: spaces.Space) -> list[tuple[str, np.ndarray]]:
    if isinstance(space, spaces.MultiDiscrete):
        return [("is n", space.nvec), ("is -1", np.full(space.shape, -1))]
    if not isinstance(space, spaces.Box):
        raise TypeError(f"the kit cannot break the action space {space}")
    if space.dtype.kind in "iu":  # a batch of MultiDiscrete
        return [("is n", space.high + 1), ("is -1", space.low - 1)]
    step = np.maximum(np.abs(space.high), 1.0) * 1e-3
    whole = lambda v: np.full(space.shape, v)  # noqa: E731
    return [
        ("is above the bound", space.high + step),
        ("is below the bound", space.low - step),
        ("is NaN", whole(np.nan)),
        ("is inf", whole(np.inf)),
        ("is -inf", whole(-np.inf)),
    ]


class Untouched:
    """Whether a refused action has moved anything."""

    def __init__(self, sim: Any) -> None:
        """Remembers the matches."""
        self._sim, self._states, self._shown = sim, sim.states.copy(), snapshot_view(sim)

    def check(self, what: str) -> None:
        """Demands that all is as it was."""
        for lane in range(self._sim.num_envs):
            changed = record_change(self._sim, self._states, lane)
            require(not changed, f"{what}: refused, but the match record of lane {lane} has changed: {changed}")
        found = difference(self._sim.game, self._shown, snapshot_view(self._sim))
        require(not found, f"{what}: refused, but {found} (before and after)")


@conformance(order=901)
def malformed_actions_raise(subject: Subject) -> None:
    """Wrong shape, kind, range and NaN raise ActionError on every face, and nothing has moved.

    Real numbers beyond their bounds do with ``out_of_range="raise"``. The message of the batch names lane and agent.
    """
    tried = _check_batch(subject, 1)
    if not subject.is_engine_game:
        tried += _check_batch(subject, subject.draw.integer("threads", 2, LANES))
    env, vec = subject.env(out_of_range="raise"), subject.vec(LANES, out_of_range="raise")
    seed = subject.draw.seed()
    vec.action_space.seed(seed % 2**31)
    good = SpacePlayer(env.action_space, seed).act()
    for face, sound in ((env, good), (vec, vec.action_space.sample())):
        face.reset(seed=seed)
        slots = list(subject.game.teams[face.control])
        all_asked = bool(face.sim.acting[:, slots].all())
        for what, bad in malformed(face.action_space, sound):
            if all_asked or not any(beginning in what for beginning in OUT_OF_RANGE):
                tried += _refuses(face, bad, f"{'Env' if face is env else 'VectorEnv'}: an action that {what}")
    parallel = subject.parallel(out_of_range="raise")
    parallel.reset(seed=seed)
    players = {a: SpacePlayer(parallel.action_space(a), seed, slot) for slot, a in enumerate(parallel.agents)}
    fine = {a: player.act() for a, player in players.items()}
    acting = parallel.sim.acting[0]
    asked = [a for a in parallel.agents if acting[subject.game.agents.index(a)]]
    for agent in (asked[0], asked[-1]):
        for what, bad in malformed(parallel.action_space(agent), fine[agent]):
            tried += _refuses(parallel, {**fine, agent: bad}, f"ParallelEnv: an action of {agent} that {what}")
        without = {a: v for a, v in fine.items() if a != agent}
        tried += _refuses(parallel, without, f"ParallelEnv: no action of {agent}")
    tried += _refuses(parallel, {**fine, "nobody_7": 0}, "ParallelEnv: an action of an unknown agent", KeyError)
    subject.note(f"{tried} malformed actions")


@conformance(order=905)
def real_numbers_are_clipped(subject: Subject) -> None:
    """Finite real numbers beyond their bounds are played as the nearer bound, to the bit."""
    beyond, at_bounds = subject.batch(LANES), subject.batch(LANES, out_of_range="raise")
    words = beyond.action_table.words
    reals = words[words["n"] == 0]
    if len(reals) == 0:
        raise Skipped("all actions are choices")
    seed = subject.draw.seed()
    for sim in (beyond, at_bounds):
        sim.reset(seed=seed)
    for number in subject.rounds(4, 20, 50):
        is_high = (np.arange(LANES)[:, None] + np.arange(len(reals)) + number) % 2 == 1
        bound = np.where(is_high, reals["high"], reals["low"])
        at_bounds.buffers.action_reals[:, reals["column"]] = bound
        beyond.buffers.action_reals[:, reals["column"]] = bound + np.where(is_high, 1.0, -1.0) * 10.0**number
        for sim in (beyond, at_bounds):
            sim.step()
        found = difference(subject.game, snapshot_view(beyond), snapshot_view(at_bounds))
        require(not found, f"decision {number}, numbers beyond their bounds and at them: {found}")


def _check_batch(subject: Subject, threads: int) -> int:
    sim = subject.batch(LANES, threads=threads, out_of_range="raise")
    sim.reset(seed=subject.draw.seed())
    player = Player(sim)
    player.play(sim)
    sim.step()
    player.play(sim)
    good = sim.buffers.action_words.copy()
    tried = 0
    for word, name in zip(sim.action_table.words, sim.action_table.names, strict=True):
        slot, lane = int(word["agent"]), LANES - 1
        if not (sim.alive[lane, slot] and sim.acting[lane, slot]) or sim.states["pending"][lane]:
            continue
        agent = subject.game.agents[slot]
        for value in [int(word["n"]), -1] if word["n"] else [np.nan, np.inf, word["low"] - 1.0, word["high"] + 1.0]:
            sim.buffers.action_words[...] = good
            memory = sim.buffers.action_words if word["n"] else sim.buffers.action_words.view(np.float64)
            memory[lane, word["column"]] = value
            what = f"batch: {name} = {value} of {agent} in lane {lane}"
            tried += _refuses(sim, None, what, names=(f"lane {lane}", agent))
        if tried >= 40:
            break
    sim.buffers.action_words[...] = good
    return tried + _check_batch_arrays(sim)


def _check_batch_arrays(sim: Any) -> int:
    """Wrong shapes, kinds and names of the arrays that `step` takes."""
    tried = 0
    by_role = {sim.game.roles[0].name: sim.actions} if isinstance(sim.actions, np.ndarray) else sim.actions
    for name, array in by_role.items():
        bad: list[tuple[str, Any]] = [("has a lane too few", array[:-1].copy())]
        if array.dtype.names is None:
            bad += [("is complex", array.astype(complex)), ("is a string", array.astype(str))]
            bad += [("is float", array.astype(float))] if array.dtype.kind == "i" else []
        else:
            fields = {f: array[f].copy() for f in array.dtype.names}
            bad.append(("lacks a field", dict(list(fields.items())[1:])))
        for what, given in bad:
            whole = given if isinstance(sim.actions, np.ndarray) else {**sim.actions, name: given}
            tried += _refuses(sim, whole, f"batch: an array of {name} that {what}")
    return tried


def _refuses(
    face: Any, action: Any, what: str, error: type[Exception] = ActionError, names: tuple[str, ...] = ()
) -> int:
    untouched = Untouched(getattr(face, "sim", face))
    try:
        face.step(action)
    except error as refusal:
        for name in names:
            require(name in str(refusal), f"{what}: the message does not name {name}: {refusal}")
    except Exception as other:
        require(False, f"{what} raises {type(other).__name__} ({other}), not {error.__name__}")
    else:
        require(False, f"{what} is not refused")
    untouched.check(what)
    return 1


@conformance(order=902)
def action_bounds_are_accepted(subject: Subject) -> None:
    """The corners of the action spaces are actions: clipping to the bounds of a space gives what every face accepts."""
    strict: dict[str, Any] = {"out_of_range": "raise"}
    for face in (subject.env(**strict), subject.vec(LANES, **strict)):
        for corner in ("low", "high"):
            face.reset(seed=subject.draw.seed())
            face.step(_corner(face.action_space, corner))
    parallel = subject.parallel(**strict)
    for corner in ("low", "high"):
        parallel.reset(seed=subject.draw.seed())
        parallel.step({a: _corner(parallel.action_space(a), corner) for a in parallel.agents})


def _corner(space: spaces.Space, corner: str) -> Any:
    if isinstance(space, spaces.Dict):
        return {name: _corner(part, corner) for name, part in space.spaces.items()}
    if isinstance(space, spaces.Discrete):
        return 0 if corner == "low" else int(space.n) - 1
    if isinstance(space, spaces.MultiDiscrete):
        return np.zeros(space.shape, np.int64) if corner == "low" else space.nvec - 1
    return np.array(getattr(space, corner))


@conformance(order=903)
def illegal_actions_become_noops(subject: Subject) -> None:
    """An alternative that the mask forbids does what the no-op does, and is counted once for its agent."""
    if subject.game.legal is None:
        raise Skipped("the game forbids nothing")
    tried = 0
    lanes, seed = subject.draw.integer("lanes", 5, 9), subject.draw.seed()
    sims = subject.batch(lanes), subject.batch(lanes)
    players = Player(sims[0]), Player(sims[1])
    for sim in sims:
        sim.reset(seed=seed)
    counts = np.zeros_like(sims[0].info["illegal"])
    for number in subject.rounds(20, 60, 1000):
        for sim, player in zip(sims, players, strict=True):
            player.play(sim)
        counts[sims[0].states["steps"] == 0] = 0
        where = _forbid(sims[0], sims[1], number)
        for sim in sims:
            sim.step()
        counts[sims[0].states["steps"] == 0] = 0
        for lane, slot in where:
            counts[lane, slot] += 1
        tried += len(where)
        _compare_counts(subject, sims, counts, where, number)
    if not tried:
        raise Skipped("no forbidden alternative was met")
    subject.note(f"{tried} illegal actions")


def _forbid(sim: Any, twin: Any, number: int) -> list[tuple[int, int]]:
    """Gives ``sim`` one forbidden alternative in each lane that has one, and ``twin`` the no-op."""
    words = sim.action_table.words
    choices = np.flatnonzero(words["n"] > 0)
    if choices.size == 0:
        return []
    forbidden = [_forbidden(sim, w) for w in choices.tolist()]
    slots = words["agent"][choices]
    asked = sim.alive[:, slots] & sim.acting[:, slots] & (sim.states["current_player"][:, slots] == CALLER)
    asked &= (sim.states["pending"] == RUNNING)[:, None]
    upto = np.cumsum(asked * np.stack([f.sum(axis=1) for f in forbidden], axis=1), axis=1)
    where = []
    for lane in np.flatnonzero(upto[:, -1]):
        pick = draws(sim.lane_seeds[lane : lane + 1], np.array([number]), 1)[0, 0]
        rank = int(pick * upto[lane, -1])
        k = int(np.searchsorted(upto[lane], rank, "right"))
        column, alternatives = words["column"][choices[k]], np.flatnonzero(forbidden[k][lane])
        sim.buffers.action_words[lane, column] = alternatives[rank - upto[lane, k]]  # counted from the last
        twin.buffers.action_words[lane, column] = words["noop"][choices[k]]
        where.append((int(lane), int(slots[k])))
    return where


def _forbidden(sim: Any, number: int) -> np.ndarray:
    """Which alternatives of one action word are illegal and not its no-op, bool ``[N, n]``."""
    forbidden = ~sim.action_table.allowed(sim.buffers.mask_bytes, number)
    forbidden[:, sim.action_table.words["noop"][number]] = False
    return forbidden


def _compare_counts(subject: Subject, sims: Any, counts: np.ndarray, where: list, number: int) -> None:
    one, two = (snapshot_view(sim) for sim in sims)
    counted = one["info"]["illegal"][:, : counts.shape[1]].copy()
    expected = np.where((sims[0].states["steps"] == 0)[:, None], 0, counts)
    for lane, slot in np.argwhere(counted != expected):
        agent = subject.game.agents[slot]
        require(
            False,
            f"lane {lane}, {agent}: {counted[lane, slot]} illegal actions counted, {expected[lane, slot]} given, "
            f"step {number}",
        )
    one["info"]["illegal"] = two["info"]["illegal"] = 0
    found = difference(subject.game, one, two)
    require(not found, f"{found}, after an illegal action and after the no-op (step {number}; {where})")


@conformance(order=904)
def inactive_actions_are_ignored(subject: Subject) -> None:
    """Actions of an agent that is dead, not there yet or not acting change nothing and are not counted."""
    lanes, seed = subject.draw.integer("lanes", 5, 9), subject.draw.seed()
    sims = subject.batch(lanes), subject.batch(lanes)
    players = Player(sims[0]), Player(sims[1])
    for sim in sims:
        sim.reset(seed=seed)
    tried = 0
    for number in subject.rounds(20, 80, 1000):
        for sim, player in zip(sims, players, strict=True):
            player.play(sim)
        tried += _scribble_idle(sims[0], number)
        for sim in sims:
            sim.step()
        found = difference(subject.game, snapshot_view(sims[0]), snapshot_view(sims[1]))
        require(not found, f"{found}: agents that were not asked did something, and did nothing (step {number})")
    if not tried:
        raise Skipped("every agent was asked in every decision")
    subject.note(f"{tried} actions of agents that were not asked")


def _scribble_idle(sim: Any, number: int) -> int:
    words, reals = sim.action_table.words, sim.buffers.action_words.view(np.float64)
    values = draws(sim.lane_seeds, np.full(sim.num_envs, number + 10_000), len(words))
    count = 0
    for w, word in enumerate(words):
        idle = ~(sim.alive[:, word["agent"]] & sim.acting[:, word["agent"]]) & (sim.states["pending"] == 0)
        count += int(idle.sum())
        if word["n"]:
            sim.buffers.action_words[idle, word["column"]] = (values[idle, w] * word["n"]).astype(np.int64)
        else:
            reals[idle, word["column"]] = word["low"] + values[idle, w] * (word["high"] - word["low"])
    return count
