"""Plays a game's rules as plain Python for a short time, to find mistakes that machine code cannot report."""

from __future__ import annotations

import contextlib
import functools
import io
import sys
import time
import types
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import RANDOM
from palaestra.core.compile.diagnosis import RuleError, explain_exception, is_arithmetic, is_certain, runs_through
from palaestra.core.compile.linker import HOOKS, hooks_called, hooks_of, scripts_play
from palaestra.core.contract.rules import Game
from palaestra.core.run.simulation import Simulation

BEFORE_COMPILING = (20, 0.1)
"""Decisions, and seconds of processor time, played before a game is compiled anew."""
AFTER_A_REFUSAL = (300, 2.0)
"""The same when the compiler has refused."""
MOST_LANES = 5
RULES_S, OTHERS_S = 0.3, 0.05
"""Seconds of processor time that each hook of `_RULES`, and each other hook, has at first, however large the game is.

Without a limit of its own the first slow hook would hide the mistakes of those behind it: two thousand agents that look
around themselves take plain Python a minute."""
_RULES = frozenset({"reset", "load", "step", "command", "advance", "evaluate"})
"""Hooks that change the match: where one is not finished, what follows would meet a match that no rule makes."""
_LINES = 32
"""Lines of rules between two looks at the clock."""

MakeTwin = Callable[[int], Any]
"""Makes an interpreted simulation of so many lanes."""


class TimeUp(BaseException):
    """A hook has used up its time."""


def dry_run(game: Game, make_twin: MakeTwin, decisions: int, seconds: float) -> Exception | None:
    """Plays decisions at random and by every script; what the rules print is not shown, breakpoints are passed over.

    At first it plays one decision of one match, some agents of each role by each script, in which each hook has a time
    of its own. Then whole matches as long as there is time left. The time ends within a decision too, even within a
    loop of the rules that never ends.

    Args:
        game: The rules.
        make_twin: Makes the simulation that plays.
        decisions: Most decisions in a lane; with 0 matches are only started.
        seconds: Processor time after which no more is begun; the first decision takes less than a second.

    Returns:
        The first exception, with its traceback; None if there was none.
    """
    end = time.process_time() + seconds
    with np.errstate(all="ignore"), contextlib.redirect_stdout(io.StringIO()), _without_breakpoints():
        try:
            _play_once(make_twin, decisions > 0)
            with hooks_called(lambda _name, hook: functools.partial(call_until, end, hook)):
                if time.process_time() < end:
                    with closing(make_twin(min(1 + len(game.scripts), MOST_LANES))) as sim:
                        _play(sim, decisions, end)
        except TimeUp:
            return None
        except Exception as error:
            return error
    return None


def call_until(end: float, hook: Callable, *arguments: Any) -> Any:
    """Calls a hook.

    Python drops what is raised in a ``__del__``, or in a callback of the garbage collector: the hook is then stopped at
    its next line.

    Raises:
        TimeUp: The processor time ``end`` has come.
    """
    clock, lines, is_late = time.process_time, 0, False
    if clock() >= end:
        raise TimeUp

    def trace(frame: types.FrameType, event: str, argument: Any) -> Any:
        nonlocal lines, is_late
        lines += 1
        is_late = is_late or (lines % _LINES == 0 and clock() >= end)
        if is_late:
            raise TimeUp
        return trace

    def trace_again(unraisable: Any) -> None:
        if unraisable.exc_type is TimeUp:  # Python has ended the trace by it, and the hook goes on
            sys.settrace(trace)
        else:
            hook_before(unraisable)

    before, hook_before = sys.gettrace(), sys.unraisablehook
    sys.unraisablehook = trace_again
    sys.settrace(trace)
    try:
        return hook(*arguments)
    finally:
        sys.settrace(before)
        sys.unraisablehook = hook_before


class _Shares:
    """Gives each hook a time of its own. What other hooks read is whole or empty when it has run out."""

    def __init__(self) -> None:
        self._left = {name: RULES_S if name in _RULES else OTHERS_S for name in HOOKS}
        self._is_inside = False
        self.sim: Any = None

    def around(self, name: str, hook: Callable) -> Callable:
        def call(*arguments: Any) -> Any:
            if self._is_inside:  # a hook that calls another one
                return hook(*arguments)
            start, self._is_inside = time.process_time(), True
            try:
                return call_until(start + self._left[name], hook, *arguments)
            except TimeUp:
                if name in _RULES:
                    raise
                self._clear(name)
                return 0
            finally:
                self._left[name] -= time.process_time() - start
                self._is_inside = False

        return call

    def _clear(self, name: str) -> None:
        buffers = self.sim.buffers
        if name == "legal":  # nobody may do anything but its no-op
            buffers.mask_bytes[...] = 0
            buffers.work_masks.view("u1")[...] = 0
        elif name == "plan":
            self._left["script"] = 0.0
        elif name == "script":
            buffers.action_words[...] = self.sim.action_table.idle


def _play_once(make_twin: MakeTwin, decides: bool) -> None:
    """Starts one match and plays one decision, each hook for its share of the time.

    Raises:
        TimeUp: A rule that changes the match was not finished.
    """
    shares = _Shares()
    with hooks_called(shares.around), closing(make_twin(1)) as sim:
        shares.sim = sim
        players = sim.states["assigned_player"][0]
        if scripts_play(sim.game):
            players[...] = RANDOM
        played: Counter[tuple[str, int]] = Counter()  # scripts, by role and team
        roles = (role.name for role in sim.game.roles for _ in role.agents)
        for slot, kind in enumerate(zip(roles, sim.game.team_index.tolist(), strict=True)):
            if played[kind] < len(sim.game.scripts):
                players[slot] = played[kind]
                played[kind] += 1
        sim.reset(seed=0)
        if sim.game.global_state is not None:
            sim.state()
        if decides:
            _draw_actions(sim, np.random.default_rng(0))
            sim.step()


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
    names = (*game.held_out, *game.scripts)  # those that no mix plays first
    for lane in range(1, sim.num_envs):
        script = names[lane - 1] if lane < MOST_LANES - 1 else "mix"
        for team in game.teams:
            sim.set_opponent(team, script, lanes=[lane])
    if scripts_play(game):
        sim.states["assigned_player"][0] = RANDOM
    sim.reset(seed=0)
    for decision in range(decisions):
        if decision and time.process_time() > end:
            return
        _draw_actions(sim, rng)
        sim.step()
        if game.global_state is not None and decision < 2:
            sim.state()


def _draw_actions(sim: Simulation, rng: np.random.Generator) -> None:
    words = sim.action_table.words
    choices = words["n"] > 0
    drawn = rng.integers(np.where(choices, words["n"], 1), size=(sim.num_envs, len(words)))
    share = rng.random(drawn.shape)
    drawn.view(np.float64)[:, ~choices] = (words["low"] + share * (words["high"] - words["low"]))[:, ~choices]
    sim.buffers.action_words[:, words["column"]] = drawn


def refuse_certain_mistakes(sim: Simulation, make_twin: MakeTwin, natives: Collection[types.CodeType] = ()) -> None:
    """Raises what a few decisions find that is wrong compiled too; before the compiler, which takes seconds, is asked.

    An engine outside is not started for it. What fails inside a function apart (code in ``natives``) may have been
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
