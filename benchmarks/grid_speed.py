"""Speed of the battles on a grid: next to MAgent2 in one run, memory, first starts, threads; and who wins.

::

    pip install magent2==0.3.4
    python benchmarks/speed.py --measurements grid-magent grid-huge grid-start grid-threads grid-mirrored
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from measurement import Measurement, NotHere, ReportProgress, timed
from palaestra import registry
from palaestra.cli.measure import Benchmark
from palaestra.cli.random_actions import POOL, batch_call
from palaestra.core.run.kernel import KernelSimulation
from palaestra.evaluation import evaluate
from palaestra.games.grid.grid_battle import step as step_by_rules
from palaestra.games.grid.grid_ground import EDGE, is_offered, slots
from processes import start, this_installation
from skirmish_claims import mirrored_measurement
from skirmish_speed import bytes_a_lane
from team_speed import ratio

BATTLE, SMALL, HUGE = "palaestra/GridBattle-v0", "palaestra/GridBattle-12-v0", "palaestra/GridBattle-Huge-v0"
TEAM, SIDE, ACTIONS, LANES, HUGE_LANES, THREAD_LANES = 81, 45, 21, 16, 4, 64
DECISIONS = 125
"""Of each match: with random actions nobody leaves in them, neither here nor there."""
FORMS = ("windows", "windows, masks", "windows, masks, lists")
BATCH_BARS, PARALLEL_BARS = (2.3, 1.9, 1.4), (2.5, 1.5, 1.0)
HUGE_BAR, THREADS_BAR = 400.0, 1.7
BYTES = {BATTLE: 185e3, HUGE: 2.5e6}
"""Most bytes a lane."""
FIRST_USE = {BATTLE: 15.0, HUGE: 20.0}
"""Most CPU seconds of the first use, with an empty cache."""
ARMIES, FURTHER_BAR_MS = (81, 60, 100), 50.0
"""Sizes of red of one kernel; milliseconds of all but the first."""
MIRRORED_BAR, RANDOM_BAR, FOCUS_BAR = 2.0, 1.0, 60.0
"""Points from 50 %, and per cent of the matches."""


def next_to_magent(report_progress: ReportProgress) -> list[Measurement]:
    """81 against 81 next to MAgent2's battle, from the same cells, by random actions drawn before.

    An illegal action does nothing, here and there. In so few decisions of random play nearly nobody leaves.

    Raises:
        NotHere: magent2 is missing.
    """
    peer = magent()
    cells = np.concatenate([peer.env.get_pos(handle)[:, ::-1] for handle in peer.handles])  # theirs are x, y
    loop, *batches = timed(c_loop(peer), *(batch(form, cells) for form in FORMS), round_s=0.3)
    theirs, *faces = timed(
        parallel(peer, lambda: begin(peer)), *(our_parallel(form, cells) for form in FORMS), round_s=0.3
    )
    rows = [(f"batch of {LANES} over MAgent2's C loop", loop, BATCH_BARS, batches)]
    rows.append(("ParallelEnv over MAgent2's", theirs, PARALLEL_BARS, faces))
    return [
        ratio(f"GridBattle 81v81, {form}, {about}", ours, other, bar)
        for about, other, bars, timings in rows
        for form, bar, ours in zip(FORMS, bars, timings, strict=True)
    ]


def magent() -> Any:
    """MAgent2's battle, a ParallelEnv, ready to play.

    Raises:
        NotHere: magent2 is missing.
    """
    try:
        env = importlib.import_module("magent2.environments.battle_v4").parallel_env(map_size=SIDE)
    except ImportError as error:
        raise NotHere("needs MAgent2: pip install magent2==0.3.4") from error
    env.reset(seed=0)
    return env


def begin(peer: Any) -> None:
    """Starts a match of MAgent2.

    Raises:
        RuntimeError: The last match has lost so many agents that it was no equal work.
    """
    left = min(peer.env.get_num(handle) for handle in peer.handles)
    if left < 0.95 * TEAM:
        raise RuntimeError(f"a match of MAgent2 ended with {left} of {TEAM} agents")
    peer.reset(seed=0)


def c_loop(peer: Any) -> Benchmark:
    """MAgent2's engine without its ParallelEnv: actions, a step, observations and rewards, the dead cleared."""
    engine, handles = peer.env, peer.handles
    pool = [np.split(row, 2) for row in random_actions(2 * TEAM)]

    def play(number: int) -> None:
        for handle, actions in zip(handles, pool[number], strict=True):
            engine.set_action(handle, actions[: engine.get_num(handle)])
        engine.step()
        for handle in handles:
            engine.get_observation(handle)
            engine.get_reward(handle)
        engine.clear_dead()

    return Benchmark("C loop", in_matches(lambda: begin(peer), play))


def parallel(env: Any, begin: Callable[[], object]) -> Benchmark:
    """Decisions of a ParallelEnv."""
    everybody = env.possible_agents
    pool = [dict(zip(everybody, row, strict=True)) for row in random_actions(len(everybody)).tolist()]

    def play(number: int) -> None:
        actions, agents = pool[number], env.agents
        env.step(actions if len(agents) == len(everybody) else {agent: actions[agent] for agent in agents})

    return Benchmark("ParallelEnv", in_matches(begin, play))


def our_parallel(form: str, cells: np.ndarray) -> Benchmark:
    """Our ParallelEnv, every match from the same cells."""
    keywords: Any = {"observation": observation_of(form), "mask": "obs" if "masks" in form else None}
    env = registry.make_parallel(BATTLE, **keywords)

    def begin() -> None:
        env.reset(seed=0)
        place(env.sim, cells)

    return parallel(env, begin)


def batch(form: str, cells: np.ndarray) -> Benchmark:
    """Our batch, all agents by random actions from outside, every match from the same cells."""
    game, _ = registry.make_game(BATTLE, observation=observation_of(form))
    sim = KernelSimulation(game if "masks" in form else replace(game, legal=None, step=step_without_masks), LANES)
    actions: Any = sim.actions
    pool = random_actions(LANES * 2 * TEAM).reshape(POOL, *actions.shape)

    def begin() -> None:
        sim.reset(seed=0)
        place(sim, cells)

    def play(number: int) -> None:
        actions[...] = pool[number]
        sim.step()

    return Benchmark(form, in_matches(begin, play), LANES, sim.close)


def observation_of(form: str) -> str:
    """The representation."""
    return "dict" if "lists" in form else "windows"


def random_actions(count: int) -> np.ndarray:
    """Actions int32 ``[POOL, count]``."""
    return np.random.default_rng(0).integers(ACTIONS, size=(POOL, count), dtype=np.int32)


def in_matches(begin: Callable[[], object], play: Callable[[int], object]) -> Callable[[], None]:
    """A decision by the next of the actions; a match begins where the last one has had `DECISIONS`."""
    count = [0]

    def call() -> None:
        if count[0] % DECISIONS == 0:
            begin()
        play(count[0] % POOL)
        count[0] += 1

    return call


def place(sim: Any, cells: np.ndarray) -> None:
    """Puts all agents of all lanes into cells ``[agent, 2]``, those of red first."""
    states, (rows, columns) = sim.states, cells.T
    states["cell"][:, EDGE : EDGE + SIDE, EDGE : EDGE + SIDE] = 0
    states["row"][:, : 2 * TEAM], states["column"][:, : 2 * TEAM] = rows, columns
    states["cell"][:, rows + EDGE, columns + EDGE] = np.arange(1, 2 * TEAM + 1)
    sim.refresh()


def step_without_masks(s, world, actions, rewards, scratch):
    """The rules of a battle for which no mask is written: they look themselves whether an action is legal."""
    for k in range(slots(world)):
        if not is_offered(s, world, k, actions.soldier[k].act):
            actions.soldier[k].act = 0
    return step_by_rules(s, world, actions, rewards, scratch)


def sizes(report_progress: ReportProgress) -> list[Measurement]:
    """Decisions a second of 1,000 against 1,000 with masks and lists, and bytes a lane."""
    sim = registry.make_batch(HUGE, HUGE_LANES)
    (huge,) = timed(Benchmark(HUGE, batch_call(sim), HUGE_LANES, sim.close), round_s=0.3)
    about = "GridBattle 1,000v1,000 on 200 x 200 with masks and lists, decisions a second"
    return [
        Measurement("", about, 1e9 / huge.ns, HUGE_BAR, True, f"batch of {HUGE_LANES}, random actions"),
        *(
            Measurement("", f"{id.split('/')[1]}, bytes a lane, all arrays", bytes_a_lane(id), bar, False)
            for id, bar in BYTES.items()
        ),
    ]


def starts(report_progress: ReportProgress) -> list[Measurement]:
    """Fresh processes: the first use with an empty cache, and further sizes of the same kernel."""
    found = []
    for id, bar in FIRST_USE.items():
        report_progress(id)
        with tempfile.TemporaryDirectory() as cache:
            cpu_s = start(this_installation(), "compile_cold", cache=cache, id=id)["cpu_s"]
        found.append(Measurement("", f"{id.split('/')[1]}, first use with an empty cache, CPU s", cpu_s, bar, False))
    keywords = {"game": "palaestra.games.grid.grid_battle:game", "keyword": "red", "values": list(ARMIES)}
    walls = start(this_installation(), "presets", **keywords)["wall_s"]
    about = "GridBattle, a further size of the class: make to first step, ms"
    return [*found, Measurement("", about, 1e3 * max(walls[1:]), FURTHER_BAR_MS, False)]


def threads(report_progress: ReportProgress) -> list[Measurement]:
    """Two threads next to one, by the clock on the wall."""
    sims = [registry.make_batch(BATTLE, THREAD_LANES, threads=count) for count in (1, 2)]
    one, two = timed(*(Benchmark(BATTLE, batch_call(sim), THREAD_LANES, sim.close) for sim in sims), round_s=0.3)
    note = f"ms a call: {1e3 * one.wall_s:.2f} to {1e3 * two.wall_s:.2f}"
    about = f"GridBattle, two threads, {THREAD_LANES} lanes, speed-up"
    return [Measurement("", about, one.wall_s / two.wall_s, THREADS_BAR, True, note)]


def matches(report_progress: ReportProgress) -> list[Measurement]:
    """Matches of scripts: the same one on both sides, and two pairs whose winner is known."""
    report_progress("rush, rush")
    mirrored = evaluate(BATTLE, "rush", "rush", matches=10_000, swap=False)
    found = [mirrored_measurement("GridBattle", "rush", mirrored, MIRRORED_BAR)]
    for id, a, b, bar, at_least in (
        (SMALL, "random", "rush", RANDOM_BAR, False),
        (BATTLE, "focus", "rush", FOCUS_BAR, True),
    ):
        report_progress(f"{a}, {b}")
        table = evaluate(id, a, b, matches=2000)
        low, high = table.win_interval
        note = f"{table.matches} matches, {100 * low:.1f} to {100 * high:.1f}; draws {table.draws}"
        about = f"{id.split('/')[1]}: {a} wins against {b}, %"
        found.append(Measurement("", about, 100 * table.wins / table.matches, bar, at_least, note))
    return found
