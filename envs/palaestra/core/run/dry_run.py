"""Plays a game's rules as plain Python for a short time, to find mistakes that machine code cannot report."""

from __future__ import annotations

import contextlib
import io
import sys
import time
import types
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import RANDOM
from palaestra.core.compile.diagnosis import RuleError, explain_exception, is_arithmetic, is_certain, runs_through
from palaestra.core.compile.linker import hooks_of
from palaestra.core.run.simulation import Simulation
from palaestra.core.spec.rules import Game

BEFORE_COMPILING = (20, 0.1)
"""Decisions, and seconds of processor time, played before a game is compiled anew."""
AFTER_A_REFUSAL = (300, 2.0)
"""The same when the compiler has refused."""
MOST_LANES = 5

MakeTwin = Callable[[int], Any]
"""Makes an interpreted simulation of so many lanes."""


def dry_run(game: Game, make_twin: MakeTwin, decisions: int, seconds: float) -> Exception | None:
    """Plays decisions at random and by every script; what the rules print is not shown, breakpoints are passed over.

    Args:
        game: The rules.
        make_twin: Makes the simulation that plays.
        decisions: Most decisions in a lane.
        seconds: Processor time after which it ends.

    Returns:
        The first exception, with its traceback; None if there was none.
    """
    lanes = min(1 + len(game.scripts), MOST_LANES)
    with np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()), _without_breakpoints():
        try:
            with closing(make_twin(lanes)) as sim:
                _play(sim, decisions, time.process_time() + seconds)
        except Exception as error:
            return error
    return None


@contextlib.contextmanager
def _without_breakpoints() -> Iterator[None]:
    before, sys.breakpointhook = sys.breakpointhook, lambda *arguments, **keywords: None
    try:
        yield
    finally:
        sys.breakpointhook = before


def _play(sim: Simulation, decisions: int, end: float) -> None:
    """Plays: the first lane at random, each other one by another script, the last one by a mix of those left."""
    game, rng = sim.game, np.random.default_rng(0)
    for lane in range(1, sim.num_envs):
        script = game.scripts[lane - 1] if lane < MOST_LANES - 1 else "mix"
        for team in game.teams:
            sim.set_opponent(team, script, lanes=[lane])
    if len(game.teams) > 1 or game.scripts:
        sim.states["assigned_player"][0] = RANDOM
    words = sim.action_table.words
    choices = words["n"] > 0
    sim.reset(seed=0)
    for decision in range(decisions):
        if decision and time.process_time() > end:
            return
        drawn = rng.integers(np.where(choices, words["n"], 1), size=(sim.num_envs, len(words)))
        share = rng.random(drawn.shape)
        drawn.view(np.float64)[:, ~choices] = (words["low"] + share * (words["high"] - words["low"]))[:, ~choices]
        sim.buffers.action_words[:, words["column"]] = drawn
        sim.step()
        if game.global_state is not None and decision < 2:
            sim.state()


def refuse_certain_mistakes(sim: Simulation, make_twin: MakeTwin, natives: Collection[types.CodeType] = ()) -> None:
    """Raises what a few decisions find that is wrong compiled too; before the compiler, which takes seconds, is asked.

    An engine outside is not started for it. What fails inside a native function (code in ``natives``) may have been
    called with the wrong arguments, of which the compiler says more.

    Raises:
        RuleError: With the line of the author.
    """
    if sim.game.physics is not None:
        return
    error = dry_run(sim.game, make_twin, *BEFORE_COMPILING)
    if error is not None and is_certain(error) and not runs_through(error, natives):
        wrong = explain_exception(sim.game, hooks_of(sim.game), error)
        if wrong is not None:
            raise wrong from None


def find_mistake(sim: Simulation, make_twin: MakeTwin) -> RuleError | None:
    """What many decisions find in rules that the compiler has refused."""
    error = dry_run(sim.game, make_twin, *AFTER_A_REFUSAL)
    if error is None or is_arithmetic(error):
        return None
    return error if isinstance(error, RuleError) else explain_exception(sim.game, hooks_of(sim.game), error)
