"""Interrupts simulations at random moments and looks whether they are whole afterwards, or say that they are not.

    python tests/reliability/interrupts.py [--interrupts 200] [--seed 0] [--kinds NAME ...]
    python tests/reliability/interrupts.py --first-calls 50

An alarm whose handler raises, or a SIGINT, ends a verb somewhere. Then the simulation must have the bits of a twin that
was never disturbed, as before the verb or as after it, at once and in the decisions that follow; or the next verb
raises: `InterruptedCallError`, after which a reset or a restore must lead back to the bits of the twin, or the error of
a closed simulation. Anything else is wrong. Exit status 1 if anything was wrong or a verb hung.

``--first-calls`` interrupts the first call of a process instead: ``import palaestra``, make, and 20 steps, at moments
spread evenly over its time, each in a new process, from another one, with and without a cache of compiled games; every
third time twice in quick succession. The same call again, in the same process, must play what an undisturbed process
plays, and nothing may be left behind: no half-written file, process or shared memory.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from games import body_game, logged_pucks, two_team
from games.play import all_bytes, random_actions

from palaestra import make_batch
from palaestra.core.run.call_guard import InterruptedCallError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.core.run.simulation import Simulation
from palaestra.core.run.workers import ProcessSimulation

HANG_SECONDS = 120.0
MOST_TRIES = 5
BEFORE, AFTER, TORN, CLOSED, WRONG = "as before", "as after", "torn", "closed", "WRONG"
OUTCOMES = (BEFORE, AFTER, TORN, CLOSED, WRONG)
VERBS = ("step", "step", "step", "reset", "reset some", "restore", "snapshot", "set_parameters", "load_states", "seed")


FIRST_CALLS = {
    "make": """env = gymnasium.make(id, **keywords)
env.action_space.seed(1)
seen = [env.reset(seed=1)[0]]
for _ in range(20):
    seen += env.step(env.action_space.sample())[:4]
    if any(seen[-2:]):
        seen.append(env.reset()[0])""",
    "make_vec": """env = gymnasium.make_vec(id, num_envs=3, **keywords)
env.action_space.seed(1)
seen = [env.reset(seed=1)[0]]
for _ in range(20):
    seen += env.step(env.action_space.sample())[:4]""",
    "make_batch": """env = palaestra.make_batch(id, num_envs=3, **keywords)
env.reset(seed=1)
seen = []
for _ in range(20):
    env.step()
    seen += [env.states.tobytes(), env.rewards.tobytes()]""",
    "parallel_env": """env = palaestra.registry.make_parallel(id, **keywords)
for k, agent in enumerate(env.possible_agents):
    env.action_space(agent).seed(k)
seen = [sorted(env.reset(seed=1)[0].items())]
for _ in range(20):
    if not env.agents:
        env.reset()
    seen += map(sorted, map(dict.items, env.step({a: env.action_space(a).sample() for a in env.agents})[:4]))""",
}
"""The first call of a process by face."""
PROGRAM = """
import hashlib, multiprocessing, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been started in the background
first_call, id, keywords = {call!r}, {id!r}, {keywords!r}
def call():
    import palaestra, gymnasium, numpy
    numpy.set_printoptions(threshold=sys.maxsize, floatmode="unique")
    names = dict(globals(), palaestra=palaestra, gymnasium=gymnasium)
    exec(first_call, names)
    names["env"].close()
    return hashlib.sha256(repr(names["seen"]).encode()).hexdigest()
if __name__ == "__main__":
    print("begin", flush=True)
    interrupts = 0
    while True:
        try:
            played = call()
            break
        except KeyboardInterrupt:
            interrupts += 1
    left = len(multiprocessing.active_children())
    print("end", interrupts, left, played, flush=True)
"""
"""A process that is interrupted, and calls again."""


class FirstCall(NamedTuple):
    """The first call of a process, and whether the cache has the compiled game."""

    face: str
    id: str
    keywords: dict[str, Any]
    is_warm: bool

    def __str__(self) -> str:
        """For tables."""
        words = " ".join(f"{name}={value}" for name, value in self.keywords.items())
        return f"{self.face} {self.id.partition('/')[2]} {words}".strip() + (", warm" if self.is_warm else ", cold")


FIRST_KINDS = (
    FirstCall("make", "palaestra/CartPole-v0", {}, False),
    FirstCall("make_vec", "palaestra/TeamTag-v0", {}, False),
    FirstCall("make_batch", "palaestra/Skirmish-3m-v0", {}, False),
    FirstCall("parallel_env", "palaestra/TeamPong-v0", {}, False),
    FirstCall("make_vec", "palaestra/CartPole-v0", {"workers": 2}, False),
    FirstCall("make", "palaestra/UcavTrack-v3", {}, True),
    FirstCall("make_batch", "palaestra/MaHalfCheetah-v0", {}, True),
    FirstCall("make_vec", "palaestra/UcavDogfight-v2", {}, True),
    FirstCall("parallel_env", "palaestra/GraphPursuit-v0", {}, True),
    FirstCall("make_batch", "palaestra/CartPole-v0", {"workers": 2}, True),
)


class Alarm(Exception):
    """What the handler of the alarm raises."""


class Counting:
    """A Python opponent that plays by what it remembers."""

    memory_size = 2

    def act(self, observations: Any, legal: Any, acting: Any, first: Any, seeds: Any, memory: np.ndarray) -> Any:
        """Counts its decisions and moves by their number."""
        memory[:, 0] += 1
        memory[:, 1] = memory[:, 0] % 2
        scout = memory[:, 1:].astype(np.int64)
        return {"scout": scout, "guard": {"move": scout, "trigger": scout, "effort": 0.5 * memory[:, 1:]}}


def raid(kind: Any = KernelSimulation, n: int = 64, **options: Any) -> Simulation:
    """Matches of the test game of two teams."""
    return kind(two_team.game(), n, autoreset_mode="same_step", parameters={"horizon": 40}, **options)


def with_opponent() -> Simulation:
    """The same with a Python opponent."""
    sim = raid()
    sim.set_opponent("blue", Counting())
    return sim


def pucks(game: Any, kind: Any = PhysicsSimulation, **options: Any) -> Simulation:
    """Matches of the test game whose bodies an engine moves."""
    return kind(game, 8, parameters={"horizon": 30}, **options)


def dogfight(**options: Any) -> Simulation:
    """Matches of an engine with a process-wide library."""
    return make_batch("palaestra/UcavDogfight-v2", num_envs=4, opponents={"blue": "straight"}, **options)


KINDS: dict[str, tuple[Callable[[], Simulation], Callable[[], Simulation]]] = {
    "kernel, 1 thread": (lambda: raid(n=400), lambda: raid(n=400)),
    "kernel, 2 threads": (lambda: raid(n=400, threads=2), lambda: raid(n=400)),
    "kernel, Python opponent": (with_opponent, with_opponent),
    "interpreted": (lambda: raid(n=3, compiled=False), lambda: raid(n=3, compiled=False)),
    "engine that saves": (lambda: pucks(body_game.game()), lambda: pucks(body_game.game())),
    "engine with a log": (lambda: pucks(logged_pucks.game()), lambda: pucks(logged_pucks.game())),
    "UcavDogfight": (dogfight, dogfight),
    "2 workers": (lambda: raid(ProcessSimulation, n=6, workers=2), lambda: raid(n=6)),
    "UcavDogfight, 2 workers": (lambda: dogfight(workers=2), dogfight),
}
"""The simulation that is interrupted, and its twin."""


class Trial:
    """One simulation, its twin, and what came of the interrupts."""

    def __init__(self, kind: str, seed: int) -> None:
        """Starts both."""
        self.make, make_twin = KINDS[kind]
        self.rng = np.random.default_rng(seed)
        self.sim, self.twin = self.make(), make_twin()
        self.outcomes: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.armed = False
        self.wrong: list[str] = []
        signal.signal(signal.SIGALRM, self._on_alarm)
        signal.signal(signal.SIGINT, self._on_interrupt)
        self._begin()
        self.seconds: dict[str, float] = dict.fromkeys(VERBS, 1e-3)

    def _on_alarm(self, *_: Any) -> None:
        if self.armed:
            self.armed = False
            if self.by_signal:
                self.armed = True
                os.kill(os.getpid(), signal.SIGINT)
            else:
                raise Alarm

    def _on_interrupt(self, *_: Any) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt

    def _begin(self) -> None:
        """The same matches in both."""
        seed = int(self.rng.integers(2**32))
        for sim in (self.sim, self.twin):
            sim.reset(seed=seed)
        self._play(3)

    def _play(self, decisions: int) -> None:
        for _ in range(decisions):
            actions = random_actions(self.twin, self.rng)
            for sim in (self.sim, self.twin):
                sim.step(actions)

    def _verb(self, name: str) -> Callable[[Simulation], Any]:
        """A verb with arguments that were drawn now, for both simulations."""
        if name == "step":
            actions = random_actions(self.twin, self.rng)
            return lambda sim: sim.step(actions)
        if name in ("restore", "load_states"):
            snapshot = self.twin.snapshot()
            self._play(2)
            return lambda sim: sim.restore(snapshot) if name == "restore" else sim.load_states(snapshot.states)
        if name == "snapshot":
            return lambda sim: sim.snapshot()
        if name == "set_parameters":
            values: dict[str, Any] = {"horizon": int(self.rng.integers(20, 60))}
            return lambda sim: sim.set_parameters(**values)
        seed, some = int(self.rng.integers(2**32)), self.rng.random(self.twin.num_envs) < 0.5
        if name == "seed":
            return lambda sim: sim.seed(seed, some)
        return lambda sim: sim.reset(some if name == "reset some" else None, seed=seed)

    def interrupt(self) -> None:
        """Draws a verb and a moment until one is interrupted, and judges what is left."""
        while True:
            name = str(self.rng.choice(VERBS))
            verb = self._verb(name)
            self.by_signal = bool(self.rng.random() < 0.5)
            delay = max(self.rng.uniform(0.0, 1.2) * self.seconds[name], 1e-6)
            start = time.perf_counter()
            try:
                self.armed = True
                signal.setitimer(signal.ITIMER_REAL, delay)
                verb(self.sim)
                self.armed = False
            except (Alarm, KeyboardInterrupt):
                outcome = self._judge(name, verb)
                self.outcomes[outcome] += 1
                if outcome in (CLOSED, WRONG):
                    self.sim.close()
                    self.sim = self.make()
                    self.sim.restore(self.twin.snapshot())  # its parameters too
                self._begin()
                return
            finally:
                self.armed = False
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            self.seconds[name] = 0.8 * self.seconds[name] + 0.2 * (time.perf_counter() - start)
            verb(self.twin)

    def _judge(self, name: str, verb: Callable[[Simulation], Any]) -> str:
        """What the simulation is after an interrupted verb."""
        before = self.twin.snapshot(), all_bytes(self.twin)
        verb(self.twin)
        after = self.twin.snapshot(), all_bytes(self.twin)
        try:
            self.sim.snapshot()
        except InterruptedCallError:
            return TORN if self._heals(before[0]) else self._is_wrong(name, "is not healed")
        except RuntimeError as error:
            self.reasons[str(error)] += 1
            return CLOSED if "is closed (" in str(error) else self._is_wrong(name, str(error))
        there = all_bytes(self.sim)
        candidates = [(BEFORE, *before)] if np.array_equal(there, before[1]) else []
        candidates += [(AFTER, *after)] if np.array_equal(there, after[1]) else []
        actions = [random_actions(self.twin, self.rng) for _ in range(3)]
        played = list(_bytes_of(self.sim, actions))
        for outcome, snapshot, _ in candidates:
            self.twin.restore(snapshot)
            if all(map(np.array_equal, _bytes_of(self.twin, actions), played)):
                return outcome
        return self._is_wrong(name, "has other bits" if candidates else "is neither as before nor as after")

    def _heals(self, snapshot: Any) -> bool:
        """Whether a reset or a restore leads back to the twin."""
        if self.rng.random() < 0.5:
            self._begin()
        else:
            for sim in (self.sim, self.twin):
                sim.restore(snapshot)
            self._play(3)
        return np.array_equal(all_bytes(self.sim), all_bytes(self.twin))

    def _is_wrong(self, name: str, what: str) -> str:
        self.wrong.append(f"after an interrupted {name} the simulation {what}")
        return WRONG

    def close(self) -> None:
        """Ends both."""
        self.sim.close()
        self.twin.close()


def _bytes_of(sim: Simulation, actions: Iterable[Any]) -> Iterable[np.ndarray]:
    for chosen in actions:
        sim.step(chosen)
        yield all_bytes(sim)


def run(kind: str, interrupts: int, seed: int) -> Trial:
    """Interrupts one kind of simulation so many times; signal handlers are as before afterwards."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGALRM, signal.SIGINT)}
    trial = Trial(kind, seed)
    try:
        for _ in range(interrupts):
            faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
            trial.interrupt()
    finally:
        faulthandler.cancel_dump_traceback_later()
        trial.close()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return trial


def first_call(kind: FirstCall, cache: str, delays_s: tuple[float, ...] = ()) -> tuple[str, str, float]:
    """Interrupts a process after so many seconds of its first call, and after more.

    Args:
        kind: The call.
        cache: Folder of compiled games.
        delays_s: Before each interrupt.

    Returns:
        Its last line, what it wrote to the standard error output, and the seconds that it took.
    """
    program = Path(cache) / "program.py"
    program.write_text(
        PROGRAM.format(call=FIRST_CALLS[kind.face], id=kind.id, keywords=kind.keywords), encoding="utf-8"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(program)], env=environment, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        start = time.perf_counter()
        for delay_s in delays_s:
            time.sleep(delay_s)
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: its workers receive it too
        try:
            out, errors = process.communicate(timeout=HANG_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            out, errors = process.communicate()
            errors += "\nit hung"
    return out.strip(), errors.strip(), time.perf_counter() - start


def wrong_after(kind: FirstCall, warm: str, delays_s: tuple[float, ...], undisturbed: str) -> tuple[int, str]:
    """How many interrupts a first call has raised, and what was wrong afterwards; empty if nothing was."""
    with tempfile.TemporaryDirectory() as cold:
        cache = warm if kind.is_warm else cold
        out, errors, _ = first_call(kind, cache, delays_s)
        left = [path.name for path in Path(cache).rglob("*.tmp.*")]
    word, raised, processes, played = out.split() if len(out.split()) == 4 else ("", "0", "0", "")
    if word != "end":
        return int(raised), f"it did not play: {out}\n{errors[-4000:]}"
    if played != undisturbed:
        return int(raised), "it plays something else"
    if left or processes != "0" or "leaked" in errors or "Traceback" in errors:
        return int(raised), f"it left files {left}, {processes} processes\n{errors[-4000:]}"
    return int(raised), ""


def run_first_calls(moments: int, kinds: tuple[FirstCall, ...] = FIRST_KINDS) -> list[str]:
    """Interrupts first calls at so many moments in all, prints a line for each kind and returns what was wrong."""
    wrong: list[str] = []
    total: Counter[str] = Counter()
    for number, kind in enumerate(kinds):
        outcomes: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as warm:
            if kind.is_warm:
                first_call(kind, warm)
            out, _, seconds = first_call(kind, warm)
            undisturbed = out.split()[-1]
            own = len(range(number, moments, len(kinds)))
            for k in range(own):
                delay_s, raised, problem = (k + 0.5) / own * seconds, 0, ""
                for _ in range(MOST_TRIES):
                    raised, problem = wrong_after(kind, warm, (delay_s, 0.05)[: 1 + (k % 3 == 2)], undisturbed)
                    if raised or problem:
                        break
                    delay_s *= 0.7  # the process was faster than the undisturbed one
                outcomes[WRONG if problem else "works" if raised else "too late"] += 1
                if problem:
                    wrong.append(f"{kind}, interrupted after {delay_s:.2f} s: {problem}")
        total += outcomes
        print(f"{kind!s:40}{seconds:6.1f} s  {dict(outcomes)}", flush=True)
    print(f"{total.total()} moments: the next call works in {total['works']}; {dict(total)}")
    return wrong


def main() -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--interrupts", type=int, default=200, help="of each kind (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="NAME")
    parser.add_argument("--first-calls", type=int, metavar="MOMENTS", help="interrupt first calls instead")
    parser.add_argument("--verbose", action="store_true", help="say why simulations were closed")
    args = parser.parse_args()
    if args.first_calls is not None:
        wrong: list[str] = run_first_calls(args.first_calls)
        print("\n".join(wrong))
        return 1 if wrong else 0
    print(f"{'kind':26}{'interrupts':>11}" + "".join(f"{outcome:>11}" for outcome in OUTCOMES), flush=True)
    wrong = []
    for kind in args.kinds:
        trial = run(kind, args.interrupts, args.seed)
        counts = "".join(f"{trial.outcomes[outcome]:>11}" for outcome in OUTCOMES)
        print(f"{kind:26}{trial.outcomes.total():>11}{counts}", flush=True)
        wrong += [f"{kind}: {what}" for what in trial.wrong]
        if args.verbose:
            print(*trial.reasons.items(), sep="\n")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
