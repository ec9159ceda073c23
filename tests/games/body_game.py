"""Three pucks on a table, each driven by thrusters of its own to a pad of its own: a game whose bodies an engine moves.

## Description
Each puck starts at the left edge and has a pad at the right edge, opposite: their ways cross, and they push each other
out of the way. There are two engines for the same rules. `engine="outside"`: `Pucks`, a NumPy engine that
keeps the thrust of the thrusters and the pressure of the contacts to itself. `engine="compiled"`: the hook
`advance`, which keeps them in the match record. Both give the same bits. Thrusters lag behind their command and
contacts are elastic with a delay, so that what the rules see of the bodies does not say how they go on.

## Action Space
<!-- table: action -->

Forward is +x. The thrust follows the command with a time constant of about 0.04 s.

## Observation Space
<!-- table: observation -->

## Rewards
Each puck has its own. `dense=1`: minus the distance to its pad (m) times time (s), minus the square of its
command (N^2) times time times `effort_price`. `dense=0`: nothing. With both, 1 for each puck when all are at
their pads, and -1 for the one that leaves the table.

## Starting State
A start and a pad for each puck, drawn uniformly within 0.1 m, at rest; a mass, drawn within 1 kg plus or minus
`mass_spread_kg`. The mass and the pad are shown once, when the match starts.

## Episode End
- terminated: `all_home`, all pucks are within 0.1 m of their pads and slower than 0.3 m/s; `off_table`, a puck is
  more than 1.5 m from the centre along an axis.
- truncated: `diverged`, a puck is faster than `speed_limit_mps`, beyond which the steps of the engine are too long; or
  the horizon.

## Arguments
`engine`: `"outside"` or `"compiled"`. Parameters:

<!-- table: parameters -->

`dense` may change at any time, `mass_spread_kg` changes with the next match.

## Version History
v0: initial version.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np

import palaestra
from palaestra.game import TERMINATED, TRUNCATED, Continuous, Field, Game, Parameter, Role, uniform

PUCKS = 3
PAIRS = ((0, 1), (0, 2), (1, 2))
RADIUS_M = 0.15
TABLE_M = 1.5
PAD_M, PAD_MPS = 0.1, 0.3
PERIOD_S = 0.02
THRUST_SHARE = 0.4  # of the way to the command that the thrust goes in a period
STIFFNESS_NPM, PRESSURE_SHARE = 300.0, 0.5
TINY_M2 = 1e-12
ALL_HOME, OFF_TABLE, DIVERGED = 2, 3, 4  # numbers of the end reasons (0 is running, 1 the horizon)
INF = float("inf")

PUCK = np.dtype(
    [
        ("command_x_n", "f8"),
        ("command_y_n", "f8"),
        ("mass_kg", "f8"),
        ("x_m", "f8"),
        ("y_m", "f8"),
        ("velocity_x_mps", "f8"),
        ("velocity_y_mps", "f8"),
        ("speed_mps", "f8"),
    ],
    align=True,
)
"""A body. Commands and mass are the rules', the engine writes the others; `reset` writes where it starts."""

ROLE = Role(
    name="puck",
    agents=tuple(f"puck_{k}" for k in range(PUCKS)),
    observation=(
        Field("position_m", (2,), -INF, INF, "m", "x, y", "f8", checked=(-1.7, 1.7)),
        Field("velocity_mps", (2,), -INF, INF, "m/s", "x, y", "f8", checked=(-15.0, 15.0)),
        Field("others_m", (2, 2), -INF, INF, "m", "to the other pucks, by number: x, y", "f8", checked=(-4.0, 4.0)),
        Field("pad_m", (2,), -TABLE_M, TABLE_M, "m", "x, y of its pad", "f8", at="reset"),
        Field("mass_kg", (), 0.1, 1.9, "kg", "its mass", "f8", at="reset"),
    ),
    action=(Continuous("force_n", (2,), (-3.0, -2.0), (4.0, 2.0), "N", "command of its thrusters: x, y"),),
)
PARAMETERS = (
    Parameter("drag_nspm", 0.8, 0.0, 5.0, "N s/m", "friction of the table"),
    Parameter("speed_limit_mps", 2.0, 0.1, 10.0, "m/s", "a puck that is faster truncates the match"),
    Parameter("effort_price", 0.01, 0.0, 1.0, "1/(N^2 s)", "price of the command, under the dense reward"),
    Parameter("mass_spread_kg", 0.4, 0.0, 0.9, "kg", "of the masses", at_start=True),
    Parameter("dense", 1, 0, 1, "1", "1 pays on the way too, 0 at the end alone", whole=True),
)


def reset(s, world):
    """Draws starts, pads and masses."""
    for k in range(PUCKS):
        puck = s.pucks[k]
        puck.x_m = -1.2 + uniform(s, -0.1, 0.1)
        puck.y_m = 0.6 * (k - 1) + uniform(s, -0.1, 0.1)
        puck.mass_kg = 1.0 + uniform(s, -1.0, 1.0) * s.parameters.mass_spread_kg
        s.pad_m[k, 0] = 1.2 + uniform(s, -0.1, 0.1)
        s.pad_m[k, 1] = 0.6 * (1 - k) + uniform(s, -0.1, 0.1)


def command(s, world, actions, scratch):
    """Hands the forces to the bodies."""
    for k in range(PUCKS):
        s.pucks[k].command_x_n = actions.puck[k].force_n[0]
        s.pucks[k].command_y_n = actions.puck[k].force_n[1]


def evaluate(s, world, rewards, scratch):
    """Pays each puck, and ends the match."""
    s.info.home = 0
    result = 0
    for k in range(PUCKS):
        puck = s.pucks[k]
        distance = pad_distance_m(s, k)
        s.info.home += distance <= PAD_M and puck.speed_mps <= PAD_MPS
        if s.parameters.dense:
            effort = puck.command_x_n * puck.command_x_n + puck.command_y_n * puck.command_y_n
            rewards[k] -= (distance + effort * s.parameters.effort_price) * PERIOD_S
        if abs(puck.x_m) > TABLE_M or abs(puck.y_m) > TABLE_M:
            rewards[k] -= 1.0
            s.info.end_reason = OFF_TABLE
            result = TERMINATED
        elif not puck.speed_mps <= s.parameters.speed_limit_mps and result == 0:  # true for NaN
            s.info.end_reason = DIVERGED
            result = TRUNCATED
    if s.info.home == PUCKS and result == 0:
        for k in range(PUCKS):
            rewards[k] += 1.0
        s.info.end_reason = ALL_HOME
        result = TERMINATED
    return result


def pad_distance_m(s, k):
    """From a puck to its pad."""
    x, y = s.pad_m[k, 0] - s.pucks[k].x_m, s.pad_m[k, 1] - s.pucks[k].y_m
    return np.sqrt(x * x + y * y)


def observe(s, world, observations, scratch):
    """What changes during a match."""
    for k in range(PUCKS):
        seen, puck = observations.puck[k], s.pucks[k]
        seen.position_m[0], seen.position_m[1] = puck.x_m, puck.y_m
        seen.velocity_mps[0], seen.velocity_mps[1] = puck.velocity_x_mps, puck.velocity_y_mps
        row = 0
        for j in range(PUCKS):
            if j != k:
                seen.others_m[row, 0] = s.pucks[j].x_m - puck.x_m
                seen.others_m[row, 1] = s.pucks[j].y_m - puck.y_m
                row += 1


def observe_reset(s, world, observations, scratch):
    """What stays the same."""
    for k in range(PUCKS):
        observations.puck[k].pad_m[0], observations.puck[k].pad_m[1] = s.pad_m[k, 0], s.pad_m[k, 1]
        observations.puck[k].mass_kg = s.pucks[k].mass_kg


def script(s, world, slot, which, actions, scratch):
    """0 "steer": a spring to the pad with a damper."""
    puck, force = s.pucks[slot], actions.puck[slot].force_n
    force[0] = clip(1.5 * (s.pad_m[slot, 0] - puck.x_m) - 1.5 * puck.velocity_x_mps, -3.0, 4.0)
    force[1] = clip(1.5 * (s.pad_m[slot, 1] - puck.y_m) - 1.5 * puck.velocity_y_mps, -2.0, 2.0)


def clip(value, low, high):
    """The nearest number in [low, high]."""
    return min(max(value, low), high)


# The formulas of both engines: of numbers in the compiled one, of one array a lane in the other. They hold +, -, *, /
# and sqrt alone, whose results are the same everywhere, so the order of the operations decides every bit.


def followed(value, target, share):
    """What follows a target and has gone a share of the way."""
    return value + (target - value) * share


def length(x, y):
    """Length of a vector; never zero."""
    return np.sqrt(x * x + y * y + TINY_M2)


def overlap_m(distance):
    """How deep two pucks are in each other; 0 where they are apart."""
    depth = 2.0 * RADIUS_M - distance
    return 0.5 * (depth + abs(depth))


def moved(position, velocity, force, mass, drag):
    """Position and velocity after a period (semi-implicit Euler)."""
    velocity = velocity + (force - drag * velocity) / mass * PERIOD_S
    return position + velocity * PERIOD_S, velocity


def advance(s, world, scratch):
    """The compiled engine: one period of one match."""
    for k in range(PUCKS):
        s.thrust_n[k, 0] = followed(s.thrust_n[k, 0], s.pucks[k].command_x_n, THRUST_SHARE)
        s.thrust_n[k, 1] = followed(s.thrust_n[k, 1], s.pucks[k].command_y_n, THRUST_SHARE)
        scratch.force_n[k, 0], scratch.force_n[k, 1] = s.thrust_n[k, 0], s.thrust_n[k, 1]
    for pair in range(len(PAIRS)):
        i, j = PAIRS[pair]
        x, y = s.pucks[j].x_m - s.pucks[i].x_m, s.pucks[j].y_m - s.pucks[i].y_m
        distance = length(x, y)
        s.pressure_n[pair] = followed(s.pressure_n[pair], STIFFNESS_NPM * overlap_m(distance), PRESSURE_SHARE)
        push_x, push_y = s.pressure_n[pair] * x / distance, s.pressure_n[pair] * y / distance
        scratch.force_n[i, 0] -= push_x
        scratch.force_n[i, 1] -= push_y
        scratch.force_n[j, 0] += push_x
        scratch.force_n[j, 1] += push_y
    for k in range(PUCKS):
        puck, drag = s.pucks[k], s.parameters.drag_nspm
        puck.x_m, puck.velocity_x_mps = moved(puck.x_m, puck.velocity_x_mps, scratch.force_n[k, 0], puck.mass_kg, drag)
        puck.y_m, puck.velocity_y_mps = moved(puck.y_m, puck.velocity_y_mps, scratch.force_n[k, 1], puck.mass_kg, drag)
        puck.speed_mps = length(puck.velocity_x_mps, puck.velocity_y_mps)


def load(s, world, scratch):
    """Completes the bodies that `reset` has placed: the compiled counterpart of `Pucks.load`."""
    for k in range(PUCKS):
        s.thrust_n[k, 0] = s.thrust_n[k, 1] = 0.0
        s.pucks[k].speed_mps = length(s.pucks[k].velocity_x_mps, s.pucks[k].velocity_y_mps)
    for pair in range(len(PAIRS)):
        s.pressure_n[pair] = 0.0


class Pucks:
    """The engine outside: all lanes at a time, thrust and pressure in arrays of its own."""

    body_field = "pucks"
    command_fields = ("command_x_n", "command_y_n")

    def __init__(self, game: Game, lanes: int, threads: int) -> None:
        """See `palaestra.game.PhysicsEngine`."""
        self.thrust_n = np.zeros((lanes, PUCKS, 2))
        self.pressure_n = np.zeros((lanes, len(PAIRS)))
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def load(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """Starts lanes: nothing thrusts and nothing presses yet."""
        self.thrust_n[lanes] = 0.0
        self.pressure_n[lanes] = 0.0
        pucks = states["pucks"]
        pucks["speed_mps"][lanes] = length(pucks["velocity_x_mps"][lanes], pucks["velocity_y_mps"][lanes])

    def advance(self, states: np.ndarray, lanes: np.ndarray) -> None:
        """One period; with several threads each has a slice of the lanes."""
        if self._pool is None:
            self._move(states, lanes)
        else:
            list(self._pool.map(lambda part: self._move(states, part), np.array_split(lanes, self.threads)))

    def _move(self, states: Any, lanes: np.ndarray) -> None:
        pucks = states["pucks"]
        command = np.stack([pucks["command_x_n"][lanes], pucks["command_y_n"][lanes]], axis=-1)
        thrust = followed(self.thrust_n[lanes], command, THRUST_SHARE)
        force, pressure = thrust.copy(), self.pressure_n[lanes]
        x, y = pucks["x_m"][lanes], pucks["y_m"][lanes]
        for pair, (i, j) in enumerate(PAIRS):
            along_x, along_y = x[:, j] - x[:, i], y[:, j] - y[:, i]
            distance = length(along_x, along_y)
            pressure[:, pair] = followed(pressure[:, pair], STIFFNESS_NPM * overlap_m(distance), PRESSURE_SHARE)
            push_x, push_y = pressure[:, pair] * along_x / distance, pressure[:, pair] * along_y / distance
            force[:, i, 0] -= push_x
            force[:, i, 1] -= push_y
            force[:, j, 0] += push_x
            force[:, j, 1] += push_y
        mass, drag = pucks["mass_kg"][lanes], states["parameters"]["drag_nspm"][lanes][:, None]
        x, velocity_x = moved(x, pucks["velocity_x_mps"][lanes], force[..., 0], mass, drag)
        y, velocity_y = moved(y, pucks["velocity_y_mps"][lanes], force[..., 1], mass, drag)
        pucks["x_m"][lanes], pucks["y_m"][lanes] = x, y
        pucks["velocity_x_mps"][lanes], pucks["velocity_y_mps"][lanes] = velocity_x, velocity_y
        pucks["speed_mps"][lanes] = length(velocity_x, velocity_y)
        self.thrust_n[lanes], self.pressure_n[lanes] = thrust, pressure

    def save(self, lanes: np.ndarray) -> Mapping[str, np.ndarray]:
        """What the match records do not hold."""
        return {"thrust_n": self.thrust_n[lanes], "pressure_n": self.pressure_n[lanes]}

    def load_saved(self, saved: Mapping[str, np.ndarray], lanes: np.ndarray) -> None:
        """Takes it back."""
        self.thrust_n[lanes], self.pressure_n[lanes] = saved["thrust_n"], saved["pressure_n"]

    def render(self, states: Any, lane: int) -> np.ndarray:
        """One match from above."""
        return draw(None, None, states[lane])

    def close(self) -> None:
        """Ends the threads."""
        if self._pool is not None:
            self._pool.shutdown()


def draw(game: Any, world: Any, s: Any) -> np.ndarray:
    """Pucks and, darker, their pads: uint8 ``[96, 96, 3]``."""
    at = (np.arange(96) + 0.5) / 96 * 2 * TABLE_M - TABLE_M
    picture = np.full((96, 96, 3), 235, np.uint8)
    colours = np.array([(200, 60, 50), (60, 120, 200), (70, 160, 80)], np.uint8)
    for k in range(PUCKS):
        for x, y, radius, colour in (
            (*s["pad_m"][k], PAD_M, colours[k] // 2),
            (s["pucks"]["x_m"][k], s["pucks"]["y_m"][k], RADIUS_M, colours[k]),
        ):
            picture[(at[None, :] - x) ** 2 + (at[::-1, None] - y) ** 2 <= radius**2] = colour
    return picture


def game(engine: Literal["outside", "compiled"] = "outside") -> Game:
    """The rules with one of the two engines.

    Raises:
        ValueError: Another word.
    """
    if engine not in ("outside", "compiled"):
        raise ValueError(f"engine must be 'outside' or 'compiled', got {engine!r}")
    bodies = [("pucks", PUCK, (PUCKS,)), ("pad_m", "f8", (PUCKS, 2))]
    hidden = [("thrust_n", "f8", (PUCKS, 2)), ("pressure_n", "f8", (len(PAIRS),))]
    if engine == "outside":
        kind: dict[str, Any] = {"state": bodies, "physics": f"{__name__}:Pucks", "render": "engine"}
    else:
        kind = {"state": bodies + hidden, "advance": advance, "load": load, "render": f"{__name__}:draw"}
    return Game(
        name="Body",
        roles=(ROLE,),
        reset=reset,
        command=command,
        evaluate=evaluate,
        periods=5,
        observe=observe,
        observe_reset=observe_reset,
        script=script,
        scripts=("steer",),
        parameters=PARAMETERS,
        horizon=100,
        info=(Field("home", (), 0, PUCKS, "1", "pucks at their pads", "i8"),),
        end_reasons=("all_home", "off_table"),
        truncation_reasons=("diverged",),
        reward="agent",
        reward_dtype="f8",
        scratch=(("force_n", "f8", (PUCKS, 2)),),
        determinism="cross-platform",
        default_opponent="steer",
        **kind,
    )


def compiled_game() -> Game:
    """The rules with the compiled engine, for `palaestra doctor --warm --game`."""
    return game("compiled")


palaestra.register("tests/Body-v0", game, about="pucks that an engine outside moves")
palaestra.register("tests/BodyCompiled-v0", game, about="the same, the engine compiled", engine="compiled")

if __name__ == "__main__":
    import time
    import tracemalloc

    sim = palaestra.make_batch("tests/Body-v0", num_envs=64, opponents={"puck": "steer"})
    sim.reset(seed=0)
    for _ in range(300):
        sim.step()
    snapshot, seconds = sim.snapshot(), []
    for _ in range(100):
        before = time.perf_counter()
        sim.restore(snapshot)
        seconds.append(time.perf_counter() - before)
    print(
        f"restore of 64 lanes after 300 decisions: {1e3 * min(seconds):.3f} ms (median {1e3 * np.median(seconds):.3f})"
    )
    tracemalloc.start()
    for decisions in range(1, 10_001):
        sim.step()
        if decisions in (1_000, 10_000):
            print(f"memory after {decisions} more decisions: {tracemalloc.get_traced_memory()[0] / 1024:+.1f} KiB")
