"""Speed figures of the team games: particles next to mpe2 in one run, and decisions a second on one core."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.cli.figures import Figure, NotHere
from palaestra.cli.measure import Subject, Timing, measure
from palaestra.cli.subjects import POOL
from palaestra.core.fields import Choice

LANES = 4096
TAG, SPREAD, PONG, SOCCER = (f"palaestra/{name}-v0" for name in ("TeamTag", "Spread", "TeamPong", "GridSoccer"))
TAG_BAR, TAG_FACE_BAR, SPREAD_BAR, DECISIONS_BAR = 500.0, 50.0, 1000.0, 1e6


def particles(game: str | None) -> list[Figure]:
    """Tag and spread next to mpe2: everybody moves at random, whatever is returned is thrown away.

    Raises:
        NotHere: mpe2 is missing.
    """
    tag, face, their_tag, spread, their_spread = _timed(
        everybody(TAG),
        parallel(registry.make_parallel(TAG)),
        parallel(_mpe2("simple_tag_v3")),
        everybody(SPREAD, rules="mpe"),
        parallel(_mpe2("simple_spread_v3")),
    )
    return [
        _ratio(f"TeamTag 3v1, batch of {LANES} over mpe2's simple_tag", tag, their_tag, TAG_BAR),
        _ratio("TeamTag 3v1, ParallelEnv over mpe2's simple_tag", face, their_tag, TAG_FACE_BAR),
        _ratio(f"Spread by mpe2's rules, batch of {LANES} over mpe2's simple_spread", spread, their_spread, SPREAD_BAR),
    ]


def decisions(game: str | None) -> list[Figure]:
    """Decisions of a match a second on one core, everybody at random."""
    names = (PONG, SOCCER, TAG, SPREAD)
    timings = _timed(*(everybody(name) for name in names))
    return [
        Figure("", f"{name}, decisions a second on one core", 1e9 / timing.ns, DECISIONS_BAR, True)
        for name, timing in zip(names, timings, strict=True)
    ]


def everybody(id: str, **keywords: Any) -> Subject:
    """The batch loop of a game with one role and one choice; all its agents by random actions."""
    (role,) = registry.make_game(id, **keywords)[0].roles
    (choice,) = role.action
    if not isinstance(choice, Choice):
        raise TypeError(f"{id}: the action must be one choice")
    sim = registry.make_batch(id, LANES, **keywords)
    rng, count = np.random.default_rng(0), [0]
    pool = [rng.integers(choice.n, size=sim.actions.shape) for _ in range(POOL)]
    sim.reset(seed=0)

    def call() -> None:
        sim.actions[...] = pool[count[0] % POOL]
        count[0] += 1
        sim.step()

    return Subject(id, call, LANES, sim.close)


def parallel(env: Any) -> Subject:
    """A ParallelEnv of PettingZoo, ours or another's; all its agents by random actions, a reset after each match."""
    env.reset(seed=0)
    rng, count = np.random.default_rng(0), [0]
    pool = [{agent: int(rng.integers(env.action_space(agent).n)) for agent in env.agents} for _ in range(POOL)]

    def call() -> None:
        env.step(pool[count[0] % POOL])
        count[0] += 1
        if not env.agents:
            env.reset()

    return Subject(str(env), call, 1, env.close)


def _mpe2(scenario: str) -> Any:
    try:
        return importlib.import_module(f"mpe2.{scenario}").parallel_env()
    except ImportError as error:
        raise NotHere('needs mpe2: pip install "mpe2>=1.1"') from error


def _ratio(about: str, ours: Timing, theirs: Timing, bar: float) -> Figure:
    note = f"decisions/s: {1e9 / ours.ns:,.0f} to {1e9 / theirs.ns:,.0f}"
    return Figure("", about, theirs.ns / ours.ns, bar, True, note)


def _timed(*subjects: Subject) -> list[Timing]:
    try:
        return measure(subjects)
    finally:
        for subject in subjects:
            subject.close()
