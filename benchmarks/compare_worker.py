"""The process of one version in ``compare.py``: it prepares something to time and plays a round on request.

It runs under another version of palaestra too, so it uses public names only, and of `palaestra.cli` only what
``processes.py`` brings along. One JSON object a line comes in by stdin, one goes out by stdout; what is printed goes to
stderr.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import palaestra
from palaestra.cli.measure import calls_of, no_garbage_collection, time_calls, warm_up
from palaestra.cli.random_actions import batch_call, episodes, parallel_episodes, samples, stepper

Prepared = tuple[Callable[[], object], Callable[[], object], Callable[[], str]]
"""One call, what closes it, and what shows the results after the warm-up."""


class Worker:
    """Holds what is being timed.

    Every method answers one request; its arguments are the request's keywords.
    """

    def __init__(self) -> None:
        """Has nothing to time yet."""
        self._call: Callable[[], object] | None = None
        self._close: Callable[[], object] = lambda: None
        self._calls = 0

    def about(self) -> dict[str, Any]:
        """Which palaestra this is."""
        return {"file": palaestra.__file__, "version": palaestra.__version__, "python": sys.version.split()[0]}

    def prepare(self, kind: str, id: str, lanes: int, warm_up_calls: int, round_s: float) -> dict[str, Any]:
        """Makes what is to be timed and warms it up.

        Args:
            kind: Name of a function in `KINDS`.
            id: Registered id.
            lanes: Matches of a batch.
            warm_up_calls: Calls before the first round, not fewer: both versions must be equally far in their matches.
            round_s: Seconds a round.

        Returns:
            ``results``, a digest of what was returned last; equal where both play the same matches.
        """
        self.drop()
        if id not in gymnasium.registry:
            return {"unknown": True}
        self._call, self._close, results = KINDS[kind](id, lanes)
        warm_up(self._call, warm_up_calls)
        digest = results()
        self._calls = calls_of(self._call, round_s)
        return {"results": digest}

    def round(self) -> dict[str, float]:
        """Seconds a call, by the wall and of this thread's CPU time."""
        if self._call is None:
            raise RuntimeError("round before prepare")
        with no_garbage_collection():
            wall, cpu = time_calls(self._call, self._calls)
        return {"wall_s": wall / self._calls, "cpu_s": cpu / self._calls}

    def drop(self) -> dict[str, Any]:
        """Closes what was timed."""
        self._close()
        self._call, self._close = None, lambda: None
        return {}


def _actions(id: str, lanes: int) -> Prepared:
    """A batch, all agents by random actions."""
    sim = palaestra.make_batch(id, lanes)
    return batch_call(sim), sim.close, lambda: _digest(sim)


def _scripts(id: str, lanes: int) -> Prepared:
    """A batch, the first script on all teams."""
    sim = palaestra.make_batch(id, lanes)
    for team in sim.game.teams:
        sim.set_opponent(team, sim.game.scripts[0])
    sim.reset(seed=0)
    return sim.step, sim.close, lambda: _digest(sim)


def _single(id: str, lanes: int) -> Prepared:
    """``gymnasium.make`` with its default wrappers and opponent, by random actions."""
    env = gymnasium.make(id)
    return episodes(env, samples(env.action_space)), env.close, lambda: _digest(env.unwrapped.sim)  # type: ignore


def _vector(id: str, lanes: int) -> Prepared:
    """``gymnasium.make_vec`` with its default opponent, by random actions."""
    envs: Any = gymnasium.make_vec(id, num_envs=lanes)
    return stepper(envs, samples(envs.action_space)), envs.close, lambda: _digest(envs.unwrapped.sim)


def _parallel(id: str, lanes: int) -> Prepared:
    """PettingZoo's ParallelEnv, all agents by random actions."""
    from palaestra.registry import make_parallel

    env = make_parallel(id)
    return parallel_episodes(env), env.close, lambda: _digest(env.sim)


KINDS: dict[str, Callable[[str, int], Prepared]] = {
    "actions": _actions,
    "scripts": _scripts,
    "single": _single,
    "vector": _vector,
    "parallel": _parallel,
}


def _digest(sim: Any) -> str:
    """Hash of what the simulation returned last: observations, rewards, alive agents, finished lanes."""
    sha = hashlib.sha256()
    observations = sim.observations if isinstance(sim.observations, dict) else {"": sim.observations}
    for array in (*observations.values(), sim.rewards, sim.alive, sim.acting, sim.terminated, sim.truncated):
        for name in array.dtype.names or (None,):
            sha.update(np.ascontiguousarray(array if name is None else array[name]).tobytes())
    return sha.hexdigest()


def main(arguments: list[str]) -> None:
    """Answers requests until stdin ends.

    Args:
        arguments: None.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # nothing that the compiler or a game prints may come between the answers
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:  # whatever it is, the other side reports it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)
