"""Checks of whole matches: horizon, flags, agents that leave, and calls that are refused outside a match."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import HORIZON
from palaestra.testing.drivers import LANES, EnvDriver, ParallelDriver, VectorDriver
from palaestra.testing.harness import conformance, require
from palaestra.testing.parallel_walk import report_on_parallel, wrong_info
from palaestra.testing.players import Player
from palaestra.testing.random_walk import report_on
from palaestra.testing.subject import Subject


@conformance(order=701)
def horizon_is_exact(subject: Subject) -> None:
    """``max_episode_steps=k`` truncates after exactly k decisions on every face, unless a rule was first."""
    truncated = 0
    draw = subject.draw
    for low, high in ((1, 1), (2, 4), (5, 12), (13, 30))[: 3 if subject.is_engine_game else None]:
        k, seed = draw.integer("horizon", low, high), draw.seed()
        truncated += _check_batch_horizon(subject, k, {"max_episode_steps": k}, 2 * k)
        for run in (
            VectorDriver(subject.vec(draw.integer("lanes", 1, LANES + 1), max_cycles=k), seed),
            EnvDriver(subject.env(horizon=k), seed),
            ParallelDriver(subject.parallel(max_cycles=k), seed),
        ):
            _check_face_horizon(run, k)
    truncated += _check_batch_horizon(subject, None, {}, 20)
    if not subject.is_engine_game:
        long = draw.integer("long horizon", 101, 250)
        truncated += _check_batch_horizon(subject, long, {"max_episode_steps": long}, long + 1)
    default = subject.default_horizon
    limit = 5000 if subject.level == "full" else 60
    if default <= limit:
        truncated += _check_batch_horizon(subject, default, {}, default)
    if truncated == 0 and not _ends_at_once(subject):
        require(False, "no match reached its horizon, not even one of 1, 2 or 5 decisions")
    subject.note(f"{truncated} matches truncated")


def _ends_at_once(subject: Subject) -> bool:
    """Whether a rule ends all matches with their first decision."""
    sim = subject.batch(16, autoreset_mode="off")
    sim.reset(seed=subject.draw.seed())
    Player(sim).play(sim)
    sim.step()
    return bool(sim.terminated.all())


def _check_batch_horizon(subject: Subject, k: int | None, options: dict[str, Any], most: int) -> int:
    """Plays matches of horizon k; of another one in each lane, and one that is changed on the way, if None."""
    sim = subject.batch(4 if subject.is_engine_game else 16, autoreset_mode="off", **options)
    player = Player(sim)
    sim.reset(seed=subject.draw.seed())
    horizons = np.full(sim.num_envs, k or 0)
    if k is None:
        horizons[:] = [subject.draw.integer("horizon", 1, most) for _ in range(sim.num_envs)]
        sim.set_parameters(horizon=horizons.astype(np.float64))
    ended = np.zeros(sim.num_envs, np.bool_)
    cut = 0
    for number in range(1, most + 1):
        player.play(sim)
        sim.step()
        for lane in np.flatnonzero(~ended).tolist():
            over = bool(sim.terminated[lane] or sim.truncated[lane])
            k = int(horizons[lane])
            where = f"lane {lane}, horizon {k}, decision {number}"
            by_horizon = sim.truncated[lane] and not _cut_by_rule(sim, lane)
            require(not by_horizon or number == k, f"{where}: truncated too early")
            require(over or number < k, f"{where}: the match is not over")
            if by_horizon:
                cut += 1
                reason = int(sim.info["end_reason"][lane])
                require(reason == HORIZON, f"{where}: truncated with end_reason {reason}, not {HORIZON}")
            ended[lane] |= over
        if ended.all():
            break
    return cut


def _cut_by_rule(sim: Any, lane: int) -> bool:
    """Whether the match of a lane was truncated by a rule of the game."""
    first = HORIZON + 1 + len(sim.game.end_reasons)
    return bool(sim.truncated[lane] and sim.info["end_reason"][lane] >= first)


def _check_face_horizon(run: Any, k: int) -> None:
    run.start()
    for number in range(1, k + 1):
        result = run.play()
        terminated, truncated = (_flags(flag) for flag in result[2:4])
        where = f"{run.name}, horizon {k}, decision {number}"
        cut = any(_cut_by_rule(run.face.sim, lane) for lane in range(run.face.sim.num_envs))
        require(number == k or cut or not truncated.any(), f"{where}: truncated too early")
        require(not (terminated & truncated).any(), f"{where}: terminated and truncated")
        if cut or terminated.any():
            return  # a rule was first
        require(number < k or truncated.all(), f"{where}: the match is not over: {truncated.tolist()}")


def _flags(flag: Any) -> np.ndarray:
    return np.atleast_1d(np.array(list(flag.values()) if isinstance(flag, dict) else flag))


@conformance(order=702)
def terminated_xor_truncated(subject: Subject) -> None:
    """A match is terminated or truncated, never both; in its last step every remaining agent gets the same flag."""
    report_on(subject, "flags")
    report_on_parallel(subject, "flags")


@conformance(order=703)
def dead_agents_get_final_reward(subject: Subject) -> None:
    """A dead agent gets a last observation, reward, flag and info, then leaves `agents` until the match ends."""
    report_on_parallel(subject, "departures")


@conformance(order=705)
def agents_keep_their_order(subject: Subject) -> None:
    """`agents` are all that are in the match, and every dict of a ParallelEnv holds the agents in their order.

    The order is that of `possible_agents`; in the dicts of a step agents that have just arrived are last.
    """
    report_on_parallel(subject, "order")


@conformance(order=708)
def infos_are_numbers(subject: Subject) -> None:
    """Infos of Env and ParallelEnv are NumPy numbers and arrays, under the same keys in every step.

    A mask of several choices is a tuple or a dict of arrays, as sampling its action space asks for.
    """
    report_on_parallel(subject, "infos")
    env = EnvDriver(subject.env(horizon=subject.draw.integer("horizon", 2, 30)), subject.draw.seed())
    info = env.start()[-1]
    expected = sorted(info)
    for number in subject.rounds(20, 100, 1000):
        wrong = wrong_info(info, expected)
        require(not wrong, f"Env, decision {number}: {wrong}")
        info = env.play()[-1]


@conformance(order=704)
def calls_out_of_order_raise(subject: Subject) -> None:
    """A step before the first reset raises RuntimeError, and of a batch a step after close; other faces play on then.

    close may be called twice.
    """
    for make in (lambda: subject.batch(2), subject.env, lambda: subject.vec(2), subject.parallel):
        face = make()
        name = type(face).__name__
        if name != "GameParallelEnv":  # a ParallelEnv without agents expects no actions: its step is empty
            _refused(face, f"{name}: step before reset")
        sim = getattr(face, "sim", face)
        require(not sim.started, f"{name}: started before its first reset")
        face.reset(seed=subject.draw.seed())
        require(sim.started, f"{name}: not started after a reset")
        face.close()
        face.close()
        if face is sim:
            _refused(face, f"{name}: step after close")
        else:
            face.step(_any_action(face))
            face.close()


def _any_action(face: Any) -> Any:
    if hasattr(face, "possible_agents"):
        return {a: face.action_space(a).sample() for a in face.agents}
    return face.action_space.sample() if hasattr(face, "action_space") else None


def _refused(face: Any, what: str) -> None:
    try:
        face.step(_any_action(face))
    except RuntimeError:
        return
    except Exception as error:
        require(False, f"{what} raises {type(error).__name__} ({error}), not RuntimeError")
    require(False, f"{what} is not refused")
