"""Speed measurements of flight: the compiled frame next to JSBSim's, dogfights under both engines, and first starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from measurement import Measurement, ReportProgress, register_game, timed
from palaestra import registry
from palaestra.cli.benchmarks import vector
from palaestra.cli.measure import Benchmark
from palaestra.cli.random_actions import POOL, episodes
from palaestra.game import TERMINATED, Field, Game, Role, uniform, with_options
from palaestra.games.ucav.body import BODY
from palaestra.games.ucav.flight import FLIGHT_OPTIONS, PHYSICS_HZ, flight_of_game, frames_in_a_period
from palaestra.games.ucav.inner_loop import STICK
from palaestra.games.ucav.missiles import GUIDED

DOGFIGHT, TRACK = "palaestra/UcavDogfight-v2", "palaestra/UcavTrack-v3"
FLIGHT, FLIGHT_GAME = "palaestra-bench/Flight-v0", "flight_speed:game"
LANES, JSBSIM_LANES = 1024, 64
FRAMES = frames_in_a_period(PHYSICS_HZ)
"""Frames that an aircraft flies in a decision by the stick."""
PERIODS = 10
"""Periods in a decision of the game of flight: what is not flight is about one per cent."""
FRAME_BAR, FACE_BAR = 25.0, 0.6
FIGHTS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("1v1 by stick, both by the caller", {}, 30.0),
    ("1v1 by stick, the caller against the expert", {"opponents": {"blue": "expert"}}, 15.0),
    ("1v1 by macros over the bundled network", {"commands": "macro", "inner_loop": "ppo"}, 20.0),
)
"""What is played, keywords, and the bar of the compiled batch over JSBSim's."""
TEAM, TEAM_LANES = "palaestra/UcavTeam-4v4-v0", 256
TEAM_CYCLE, MISSILE_CYCLE, MISSILE_MPS = 200, 10, 500.0
"""Decisions after which team fights begin anew, and each aircraft has a missile in flight again; speed of these."""
LONG_SIGHTED = {"seeker_deg": 90.0, "seeker_rear_m": 1e5, "seeker_front_m": 1e5, "lethal_m": 0.1, "missile_damage": 0.0}
"""Parameters with which missiles follow whom they are launched at, and nobody is lost by them."""
TEAM_FIGHTS: tuple[tuple[str, dict[str, Any], float], ...] = (
    ("all by the caller, guns", {}, 120e3),
    ("all by the caller, a missile of each in flight", {"weapons": "both", **LONG_SIGHTED}, 80e3),
    ("the script sort on one side, guns", {"opponents": {"blue": "sort"}}, 50e3),
)
"""What is played, keywords, and the bar: decisions of single aircraft in a second on one thread."""
THREADS_BAR, WORKERS_BAR, SINGLE_BAR = 1.7, 1.6, 8.0
RESET_BAR_US = 20.0
RESTORE_LANES, RESTORE_DECISIONS, RESTORE_BAR_MS = 64, 300, 1.0
COLD_BAR_S, WARM_BAR_S, SECOND_BAR_S = 20.0, 1.5, 3.0
TRIES = 2
"""Fresh processes of each start; the one with the least CPU time counts."""
LOWEST_M, JSBSIM_CALLS = 1000.0, 300
"""The game of flight ends below this height; JSBSim's bare loop starts anew after half a minute."""


# -------------------------------------------------------------------------------------------- a game of flight alone


def reset(s, world):
    """Level flight."""
    body = s.body[0]
    body.altitude_m = uniform(s, 4000.0, 6000.0)
    body.true_airspeed_mps = uniform(s, 200.0, 280.0)
    body.throttle_command = 0.5
    body.finite = 1
    body.in_tables = 1


def command(s, world, actions, scratch):
    """Puts the stick where the pilot wants it."""
    action, body = actions.pilot[0], s.body[0]
    body.aileron_command = action.aileron
    body.elevator_command = action.elevator
    body.rudder_command = action.rudder
    body.throttle_command = 0.5 * (action.throttle + 1.0)


def evaluate(s, world, rewards, scratch):
    """Ends a flight near the ground or outside the tables."""
    body = s.body[0]
    return TERMINATED if body.altitude_m < LOWEST_M or not body.in_tables or not body.finite else 0


def observe(s, world, observations, scratch):
    """One number."""
    observations.pilot[0].altitude_m = s.body[0].altitude_m


@with_options(*FLIGHT_OPTIONS)
def game(options: Any) -> Game:
    """One aircraft that flies by the stick, and no task: what a decision of a second costs is its frames."""
    flight = flight_of_game(options, count=1)
    return Game(
        name="Flight",
        roles=(Role("pilot", ("pilot_0",), (Field("altitude_m", (), -1e9, 1e9, "m", "height"),), STICK),),
        state=(("body", BODY, (1,)), *flight.pop("state")),
        reset=reset,
        command=command,
        evaluate=evaluate,
        observe=observe,
        periods=PERIODS,
        horizon=10**6,
        end_reasons=("out_of_range",),
        **flight,
    )


# ------------------------------------------------------------------------------------------------------- physics alone


def frames(report_progress: ReportProgress) -> list[Measurement]:
    """Frames of one aircraft: the compiled ones and those of a dogfight of JSBSim, next to JSBSim's ``run()``."""
    compiled, face, bare = timed(
        flown(register_game(FLIGHT, FLIGHT_GAME), LANES, 0.05, LANES * FRAMES * PERIODS),
        single("jsbsim", 2 * FRAMES, 0.05, opponent="straight"),
        bare_jsbsim(),
        rounds=9,
    )
    of_bare = f"{1e9 / bare.ns:,.0f}"
    ours = f"frames/s: {1e9 / compiled.ns:,.0f} to {of_bare}; ns a frame: {compiled.ns:.0f}"
    theirs = f"frames/s: {1e9 / face.ns:,.0f} to {of_bare}"
    about = "UCAV 1v1 by sticks, JSBSim behind gymnasium.make, frames of a bare JSBSim loop"
    return [
        Measurement(
            "", f"compiled frame, {LANES} lanes, over JSBSim's run()", bare.ns / compiled.ns, FRAME_BAR, True, ours
        ),
        Measurement("", about, bare.ns / face.ns, FACE_BAR, True, theirs),
    ]


def bare_jsbsim() -> Benchmark:
    """Two aircraft of JSBSim in straight flight, a decision's frames each a call, and nothing else."""
    sim: Any = registry.make_batch(register_game(FLIGHT, FLIGHT_GAME), 2, engine="jsbsim")
    runs = [aircraft.fdm.run for (aircraft,) in sim.engine.aircraft]
    count = [0]

    def fly() -> None:
        if count[0] % JSBSIM_CALLS == 0:
            sim.reset(seed=0)
        count[0] += 1
        for run_frame in runs:
            for _ in range(FRAMES):
                run_frame()

    return Benchmark("bare JSBSim", fly, len(runs) * FRAMES, sim.close)


# ---------------------------------------------------------------------------------------------------- decisions


def flown(id: str, lanes: int, spread: float, size: float, **keywords: Any) -> Benchmark:
    """The batch loop; who has no script gets normally distributed actions of this standard deviation."""
    sim = registry.make_batch(id, lanes, **keywords)
    sim.reset(seed=0)
    actions: Any = sim.actions
    return Benchmark(id, alternate(actions, sim.step, noise(actions.shape, spread)), size, sim.close)


def noise(shape: tuple[int, ...], spread: float) -> np.ndarray:
    """A pool of actions around the middle of the stick, float32 [POOL, *shape]: an aircraft flies on for minutes."""
    drawn = np.random.default_rng(0).normal(0.0, spread, (POOL, *shape))
    return np.clip(drawn, -1.0, 1.0).astype(np.float32)


def alternate(actions: np.ndarray, step: Callable[[], object], pool: np.ndarray) -> Callable[[], None]:
    """A call that writes the next actions of the pool and steps."""
    count = [0]

    def call() -> None:
        actions[...] = pool[count[0] % POOL]
        count[0] += 1
        step()

    return call


def decisions(report_progress: ReportProgress) -> list[Measurement]:
    """Decisions of a dogfight in a batch of the compiled engine next to one of JSBSim, per lane."""
    measurements = []
    for about, keywords, bar in FIGHTS:
        report_progress(about)
        sizes = (LANES, JSBSIM_LANES)
        *compiled, theirs = timed(
            *(flown(DOGFIGHT, lanes, 0.2, lanes, engine="compiled", **keywords) for lanes in sizes),
            flown(DOGFIGHT, JSBSIM_LANES, 0.2, JSBSIM_LANES, engine="jsbsim", **keywords),
            round_s=0.1,
        )
        for lanes, ours in zip(sizes, compiled, strict=True):
            note = f"us a decision: {ours.ns / 1e3:.2f} to {theirs.ns / 1e3:.1f}"
            what = f"{about}, compiled batch of {lanes} over JSBSim's of {JSBSIM_LANES}"
            measurements.append(Measurement("", what, theirs.ns / ours.ns, bar, True, note))
    return measurements


def teams(report_progress: ReportProgress) -> list[Measurement]:
    """Decisions of aircraft in fights of four against four, by the CPU time of one thread."""
    fights = timed(*(fought(**keywords) for _, keywords, _ in TEAM_FIGHTS), rounds=3, round_s=3.0)
    return [
        Measurement(
            "", f"UCAV 4v4, {about}, aircraft-decisions/s", 1e9 / fight.ns, bar, True, f"us each: {fight.ns / 1e3:.2f}"
        )
        for (about, _, bar), fight in zip(TEAM_FIGHTS, fights, strict=True)
    ]


def fought(**keywords: Any) -> Benchmark:
    """A batch of team fights; its size is the number of aircraft in them, on average over `TEAM_CYCLE` decisions."""
    sim: Any = registry.make_batch(TEAM, TEAM_LANES, **keywords)
    actions, pool, count = sim.actions, noise((TEAM_LANES, len(sim.game.agents), len(STICK)), 0.2), [0]

    def call() -> None:
        if count[0] % TEAM_CYCLE == 0:
            sim.reset(seed=0)
        if "missiles" in sim.states.dtype.names and count[0] % MISSILE_CYCLE == 0:
            put_missiles(sim.states)
        stick = pool[count[0] % POOL]
        if actions.dtype.names is None:
            actions[...] = stick
        else:  # with missiles an action has fields
            for k, field in enumerate(STICK):
                actions[field.name] = stick[..., k]
        count[0] += 1
        sim.step()

    aircraft = 0
    for _ in range(TEAM_CYCLE):
        call()
        aircraft += int(sim.alive.sum())
    return Benchmark(TEAM, call, aircraft / TEAM_CYCLE, sim.close)


def put_missiles(states: np.ndarray) -> None:
    """Lets a missile of each aircraft fly at the opponent of the same number."""
    bodies = states["body"]
    slots = np.arange(bodies.shape[1])
    missiles = states["missiles"][:, :: states["missiles"].shape[1] // len(slots)]
    missiles["shooter"], missiles["target"] = slots, (slots + len(slots) // 2) % len(slots)
    missiles["status"], missiles["flight_s"], missiles["closest_m"] = GUIDED, 0.0, 1e9
    for name in ("north_m", "east_m", "altitude_m"):
        missiles[name] = bodies[name]
    ways = (
        np.stack([bodies[name] for name in ("north_m", "east_m", "altitude_m")])
        * np.array([1.0, 1.0, -1.0])[:, None, None]
    )
    ways = ways[:, :, missiles["target"][0]] - ways
    ways *= MISSILE_MPS / np.maximum(np.sqrt((ways * ways).sum(0)), 1.0)
    for axis, speeds in zip(("north", "east", "down"), ways, strict=True):
        missiles[f"velocity_{axis}_mps"] = speeds


def threads(report_progress: ReportProgress) -> list[Measurement]:
    """Two threads next to one, by the clock on the wall."""
    both = [flown(DOGFIGHT, LANES, 0.2, LANES, engine="compiled", threads=k) for k in (1, 2)]
    one, two = timed(*both, round_s=0.3)
    note = f"ms a call: {1e3 * one.wall_s:.2f} to {1e3 * two.wall_s:.2f}, {os.cpu_count()} cores"
    about = f"UCAV, two threads over one, compiled, {LANES} lanes, speed-up"
    return [Measurement("", about, one.wall_s / two.wall_s, THREADS_BAR, True, note)]


def workers(report_progress: ReportProgress) -> list[Measurement]:
    """A vector of JSBSim's dogfights in two worker processes next to one, by the clock on the wall."""
    made = [vector(DOGFIGHT, JSBSIM_LANES, "straight", copy=True, workers=k, engine="jsbsim") for k in (1, 2)]
    one, two = timed(*made, rounds=5, round_s=0.3)
    note = f"ms a call of {JSBSIM_LANES} lanes: {1e3 * one.wall_s:.2f} to {1e3 * two.wall_s:.2f}"
    about = "UCAV vector of JSBSim's, two workers over one, speed-up"
    return [
        Measurement("", about, one.wall_s / two.wall_s, WORKERS_BAR, True, f"{note}, {os.cpu_count()} cores"),
    ]


def single(engine: str, size: float, spread: float = 0.2, **keywords: Any) -> Benchmark:
    """``gymnasium.make`` with its default wrappers, resets included."""
    env: Any = gymnasium.make(DOGFIGHT, engine=engine, **keywords)
    return Benchmark(engine, episodes(env, list(noise(env.action_space.shape, spread))), size, env.close)


def singles(report_progress: ReportProgress) -> list[Measurement]:
    """One dogfight behind ``gymnasium.make`` under both engines, against the default opponent."""
    ours, theirs = timed(single("compiled", 1), single("jsbsim", 1), rounds=9, round_s=0.1)
    note = f"us a step: {ours.ns / 1e3:.1f} to {theirs.ns / 1e3:.1f}"
    about = "gymnasium.make UCAV 1v1 by stick, compiled over JSBSim"
    return [Measurement("", about, theirs.ns / ours.ns, SINGLE_BAR, True, note)]


# ---------------------------------------------------------------------------------------------------- resets and starts


def resets(report_progress: ReportProgress) -> list[Measurement]:
    """Start of a dogfight under both engines, and a restore in the middle of one."""
    compiled, theirs, restore = timed(
        starting("compiled", LANES), starting("jsbsim", JSBSIM_LANES), restored(RESTORE_LANES, RESTORE_DECISIONS)
    )
    about = f"UCAV, restore of {RESTORE_LANES} lanes after {RESTORE_DECISIONS} decisions, compiled, ms"
    note = f"JSBSim: {theirs.ns / 1e3:.0f}"
    return [
        Measurement(
            "", f"UCAV, reset of a lane of {LANES}, compiled, us", compiled.ns / 1e3, RESET_BAR_US, False, note
        ),
        Measurement("", about, 1e3 * restore.cpu_s, RESTORE_BAR_MS, False, f"wall ms: {1e3 * restore.wall_s:.3f}"),
    ]


def starting(engine: str, lanes: int) -> Benchmark:
    """The reset of a batch."""
    sim = registry.make_batch(DOGFIGHT, lanes, engine=engine)
    sim.reset(seed=0)
    return Benchmark(engine, sim.reset, lanes, sim.close)


def restored(lanes: int, decisions: int) -> Benchmark:
    """The restore of a snapshot that was taken after so many decisions, onto matches that have gone on."""
    sim = registry.make_batch(DOGFIGHT, lanes, engine="compiled")
    sim.reset(seed=0)
    actions: Any = sim.actions
    call = alternate(actions, sim.step, noise(actions.shape, 0.2))
    for _ in range(decisions):
        call()
    snapshot = sim.snapshot()
    call()
    return Benchmark("restore", lambda: sim.restore(snapshot), 1, sim.close)


FIRST_STEP = """
import json, os, sys, time
def cpu():
    times = os.times()  # with finished children
    return time.process_time() + times.children_user + times.children_system
spent, wall = cpu(), time.perf_counter()
import gymnasium
import palaestra
env = gymnasium.make(sys.argv[1])
env.reset(seed=0)
env.step(env.action_space.sample())
print(json.dumps([cpu() - spent, time.perf_counter() - wall]))
"""
"""What a fresh process does: from the imports to the end of the first step."""


def starts(report_progress: ReportProgress) -> list[Measurement]:
    """Fresh processes one after the other on one pair of empty caches: a dogfight, it again, and another task."""
    rows = (
        (DOGFIGHT, "UCAV dogfight, imports to first step, empty caches, CPU s", COLD_BAR_S),
        (DOGFIGHT, "UCAV dogfight, the same in a later process, CPU s", WARM_BAR_S),
        (TRACK, "UCAV track, a second task on the airframe, imports to first step, CPU s", SECOND_BAR_S),
    )
    runs = []
    for number in range(TRIES):
        report_progress(f"{number + 1}/{TRIES}")
        with tempfile.TemporaryDirectory() as folder:
            runs.append([first_step(id, Path(folder)) for id, _, _ in rows])
    return [
        Measurement("", about, cpu_s, bar, False, f"wall s: {wall_s:.2f}")
        for (_, about, bar), (cpu_s, wall_s) in zip(rows, map(min, zip(*runs, strict=True)), strict=True)
    ]


def first_step(id: str, caches: Path) -> tuple[float, float]:
    """CPU and wall seconds of `FIRST_STEP` in a fresh process.

    Args:
        id: Of the game.
        caches: Folder of its caches; they are made where they are missing.

    Raises:
        subprocess.CalledProcessError: The process failed.
    """
    folders = {"XDG_CACHE_HOME": caches / "cache", "NUMBA_CACHE_DIR": caches / "numba"}
    environment = {name: str(folder) for name, folder in folders.items()}
    path = os.pathsep.join(filter(None, sys.path))
    answer = subprocess.run(
        [sys.executable, "-c", FIRST_STEP, id],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": path, "PALAESTRA_VERBOSE": "0", **environment},
    )
    cpu_s, wall_s = json.loads(answer.stdout)
    return cpu_s, wall_s
