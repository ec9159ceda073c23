"""Cascaded PID: the classical inner loop of the UCAV family, and the search for its gains.

The reference for learned inner loops. The laws are `palaestra.games.ucav.autopilot`; this file flies them on
`palaestra/UcavTrack-v3` and chooses their gains on the commands of that task, so that a tuned network is
not compared with an untuned PID (Chai et al., arXiv 2212.03830, claim that PPO tracks better than a "fine-tuned PID"
and print no gains; all numbers here are ours)::

    python -m palaestra_baselines.pid            # fly the gains in use and print their errors
    python -m palaestra_baselines.pid --grid     # fly all sets of the grid and keep a table; a
                                                 # second call resumes an interrupted search

Every set flies the same matches: the same seeds give the same commands and starts. The score of a set is the mean of
its six root mean square errors (roll, flight path, speed; settled and whole window), each over that of the gains with
which macros are flown. Sets that end a match by a rule or move the stick more than `MOST_ACTION_CHANGE` are out.
*Settled* is the time from five seconds after a command on. Over the whole window no set is clearly better than another:
most of that error is the way to a command, with stick, load factor or thrust at a stop.
"""

from __future__ import annotations

import csv
import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import palaestra_assets
from palaestra.core.files import FileError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.physics import PhysicsSimulation
from palaestra.game import Game, Parameter
from palaestra.games.ucav import track
from palaestra.games.ucav.autopilot import TRACKING_GAINS, Gains, steer_with
from palaestra_baselines.common.run_folder import check_numbers, lock, run_command, write_csv

METHOD = "pid"
SETTLED_AFTER_S = 5.0
MOST_ACTION_CHANGE = 0.03  # mean absolute change of the four actions a decision; a chattering PID is no reference
REFERENCE = {  # errors that make a score of 1, those of `GAINS`: settled and whole window
    "roll_settled_deg": 0.06,
    "flight_path_settled_deg": 0.06,
    "speed_settled_mps": 12.0,
    "roll_deg": 9.3,
    "flight_path_deg": 4.1,
    "speed_mps": 19.0,
}
GRID = {
    "roll": (2.0, 3.5),
    "roll_rate": (0.1, 0.35),
    "roll_integral": (2.0, 9.0),
    "flight_path": (4.0, 6.0, 8.5, 12.0),
    "flight_path_lead": (0.15, 0.2, 0.3),
    "pitch_rate": (3.0, 4.0),
}
"""The sets: all combinations, the other gains as in `TRACKING_GAINS`."""


def table_file() -> Path:
    """The bundled table where the assets stand in a clone of the repository; an installed one is never written to."""
    assets = Path(palaestra_assets.path("py.typed")).parent
    is_clone = assets.parent.name == "assets" and (assets.parents[1] / "pyproject.toml").exists()
    return (assets if is_clone else Path("runs", METHOD)) / "tables" / "pid_grid.csv"


@dataclass
class Args:
    """Arguments.

    Attributes:
        grid: Fly the grid instead of the gains in use alone.
        flights: Aircraft a set flies with.
        horizon: Decisions of a flight, ten a second.
        seed: Seed of the first flight.
        directory: Where the grid keeps its results while it runs.
        table: Where the finished table goes; empty for nowhere.
    """

    grid: bool = False
    flights: int = 32
    horizon: int = 600
    seed: int = 0
    directory: Path = Path("runs/pid")
    table: Path = field(default_factory=table_file)

    def check(self) -> None:
        """Looks at the numbers.

        Raises:
            ValueError: One that cannot be; names the option.
        """
        check_numbers(vars(self), ("seed",), ())


@dataclass(frozen=True)
class Errors:
    """Errors of a player: root mean squares over all decisions, and over those of settled commands.

    Attributes:
        roll_settled_deg: Roll error from `SETTLED_AFTER_S` after a command on.
        flight_path_settled_deg: Flight-path error then.
        speed_settled_mps: Airspeed error then.
        roll_deg: Roll error over the whole window of every command.
        flight_path_deg: Flight-path error likewise.
        speed_mps: Airspeed error likewise.
        action_change: Mean absolute change of the four actions a decision.
        ended: Flights that a rule ended.
    """

    roll_settled_deg: float
    flight_path_settled_deg: float
    speed_settled_mps: float
    roll_deg: float
    flight_path_deg: float
    speed_mps: float
    action_change: float
    ended: int

    @property
    def score(self) -> float:
        """Mean of the six errors over their references."""
        return sum(getattr(self, name) / reference for name, reference in REFERENCE.items()) / len(REFERENCE)

    @property
    def eligible(self) -> bool:
        """Whether a set of gains may be chosen: it lost no aircraft and does not chatter."""
        return not self.ended and self.action_change <= MOST_ACTION_CHANGE

    def ratios(self, reference: Errors) -> dict[str, float]:
        """The six errors and the action change over those of a reference."""
        return {name: getattr(self, name) / getattr(reference, name) for name in (*REFERENCE, "action_change")}

    def row(self) -> dict[str, float]:
        """One line of the table of gains."""
        return {**vars(self), "score": self.score, "eligible": int(self.eligible)}


@dataclass(frozen=True)
class Report:
    """Result of `train`.

    Attributes:
        best: The best set.
        results: Errors by set, `TRACKING_GAINS` among them.
    """

    best: Gains
    results: dict[Gains, Errors] = field(default_factory=dict)


def fly_script(s, world, slot, which, actions, scratch):
    """Script of the game under `tuning_game`: the PID with the gains in the match's parameters."""
    p, body, action = s.parameters, s.body[0], actions.pilot[0]
    gains = Gains(
        p.gain_roll,
        p.gain_roll_rate,
        p.gain_roll_integral,
        p.gain_flight_path,
        p.gain_flight_path_lead,
        p.gain_flight_path_integral,
        p.gain_pitch_rate,
        p.gain_load_factor,
        p.gain_load_factor_integral,
        p.gain_speed,
        p.gain_speed_integral,
        p.gain_sideslip,
        p.gain_turn_rate,
    )
    aileron, elevator = body.aileron_command, body.elevator_command
    rudder, throttle = body.rudder_command, body.throttle_command
    steer_with(gains, body, s.autopilot, s.turn_command_rad, s.climb_command, s.speed_command_mps)
    action.aileron = body.aileron_command
    action.elevator = body.elevator_command
    action.rudder = body.rudder_command
    action.throttle = 2.0 * body.throttle_command - 1.0
    body.aileron_command, body.elevator_command = aileron, elevator
    body.rudder_command, body.throttle_command = rudder, throttle


def tuning_game() -> Game:
    """`palaestra/UcavTrack-v3` with the gains as parameters, so that sets change without a new compilation."""
    game = track.game()
    gains = tuple(Parameter(f"gain_{name}", value) for name, value in TRACKING_GAINS._asdict().items())
    return dataclasses.replace(game, script=fly_script, parameters=(*game.parameters, *gains))


def tuning_flights(flights: int, horizon: int) -> Any:
    """Flights of `tuning_game` by its script."""
    game = tuning_game()
    kind = KernelSimulation if game.physics is None else PhysicsSimulation
    numbers = {"horizon": horizon}
    return kind(game, flights, parameters=numbers, opponents={"pilot": "pid"}, autoreset_mode="off")


def fly(sim: Any, gains: Gains, seed: int) -> Errors:
    """Flies all lanes of ``sim`` to the horizon with one set of gains."""
    sim.set_parameters(**{f"gain_{name}": value for name, value in gains._asdict().items()})
    return measure_errors(sim, seed)


def measure_errors(sim: Any, seed: int, player: Callable[[np.ndarray], np.ndarray] | None = None) -> Errors:
    """Flies all lanes to their end.

    Args:
        sim: Flights of `palaestra/UcavTrack-v3` with ``autoreset_mode="off"``.
        seed: Of the first lane: the same seed gives the same starts and commands to every player.
        player: Observations ``[N, 33]`` to actions ``[N, 4]``; None where a script flies.
    """
    sim.reset(seed=seed)
    sums, counts, change = np.zeros((2, 3)), np.zeros(2), 0.0  # settled, whole
    flying = np.ones(sim.num_envs, np.bool_)
    while flying.any():
        if player is not None:
            sim.actions[:, 0] = player(sim.observations[:, 0])
        sim.step()
        info = sim.info
        angles = np.degrees(info["turn_error_rad"]), np.degrees(info["climb_error"])
        squares = np.stack([*angles, info["speed_error_mps"]], axis=-1) ** 2
        for number, counted in enumerate((flying & (info["command_age_s"] > SETTLED_AFTER_S), flying)):
            sums[number] += squares[counted].sum(axis=0)
            counts[number] += counted.sum()
        change += float(info["action_change"][flying].sum())
        flying &= ~(sim.terminated | sim.truncated)
    rms: list[float] = np.sqrt(sums / np.maximum(counts, 1)[:, None]).ravel().tolist()
    errors = dict(zip(REFERENCE, rms, strict=True))
    return Errors(**errors, action_change=change / float(counts[1]), ended=int((sim.info["end_reason"] > 1).sum()))


def rank(errors: Errors) -> tuple[bool, float]:
    """Sorts sets from the best to the worst, those that may not be chosen last."""
    return not errors.eligible, errors.score


def sets() -> Iterator[Gains]:
    """The gains in use, then every set of the grid."""
    yield TRACKING_GAINS
    for values in itertools.product(*GRID.values()):
        gains = TRACKING_GAINS._replace(**dict(zip(GRID, values, strict=True)))
        if gains != TRACKING_GAINS:
            yield gains


def train(args: Args) -> Report:
    """Flies the gains in use, or the grid, and returns the best set.

    The grid writes ``directory/grid_*.csv`` after each set and skips sets that are in the file, so that it can be
    interrupted at any time.

    Raises:
        ValueError: A number that cannot be; names the option.
        RuntimeError: Another process flies the same grid.
    """
    args.check()
    if not args.grid:
        report = Report(TRACKING_GAINS, fly_sets(args, [TRACKING_GAINS], {}))
        print_report(report)
        return report
    args.directory.mkdir(parents=True, exist_ok=True)
    record = args.directory / f"grid_{args.flights}x{args.horizon}_seed{args.seed}.csv"
    with lock(record.with_suffix(".lock")):
        wanted = list(sets())
        flown = fly_sets(args, wanted, read_results(record), record)
        results = {gains: flown[gains] for gains in wanted}
        report = Report(min(results, key=lambda gains: rank(results[gains])), results)
        print_report(report)
        if str(args.table) not in ("", "."):
            write_table(args.table, report)
    return report


def fly_sets(
    args: Args, wanted: list[Gains], before: dict[Gains, Errors], record: Path | None = None
) -> dict[Gains, Errors]:
    """Errors of all sets that are wanted; flies those that are not among the errors before.

    Args:
        args: Of the run.
        wanted: The sets.
        before: Errors that are known.
        record: Where the errors are written after each set, if anywhere.
    """
    results, todo = dict(before), [gains for gains in wanted if gains not in before]
    sim = tuning_flights(args.flights, args.horizon)
    start = time.perf_counter()
    for number, gains in enumerate(todo, 1):
        results[gains] = fly(sim, gains, args.seed)
        if record is not None:
            write_results(record, results)
            left = (time.perf_counter() - start) / number * (len(todo) - number)
            print(f"{number:4d}/{len(todo)} score {results[gains].score:.4f}, {left:4.0f} s left", flush=True)
    sim.close()
    return results


def print_report(report: Report) -> None:
    """Prints the errors of the best set and of the gains in use."""
    print(f"{'':22s}" + "".join(f"{name:>26s}" for name in REFERENCE))
    for label, gains in (("best of the grid", report.best), ("in use", TRACKING_GAINS)):
        errors = report.results[gains]
        print(f"{label:22s}" + "".join(f"{getattr(errors, name):26.3f}" for name in REFERENCE))
        print(
            f"{'':22s}score {errors.score:.4f}, action change {errors.action_change:.4f}, "
            f"matches ended by a rule {errors.ended}"
        )
    print("best:", report.best)


def write_table(path: Path, report: Report) -> None:
    """Writes all sets, the best first."""
    rows = sorted(report.results.items(), key=lambda item: rank(item[1]))
    table = [[*gains, *(f"{value:.5g}" for value in errors.row().values())] for gains, errors in rows]
    write_csv(path, [[*Gains._fields, *rows[0][1].row()], *table])
    print(f"{len(rows)} sets in {path}")


def write_results(path: Path, results: Mapping[Gains, Errors]) -> None:
    """Writes the record of a running grid as a whole, in one piece."""
    rows = [[*gains, *(repr(float(value)) for value in errors.row().values())] for gains, errors in results.items()]
    write_csv(path, [[*Gains._fields, *next(iter(results.values())).row()], *rows])


def read_results(path: Path) -> dict[Gains, Errors]:
    """Reads the record of a grid that was stopped; nothing if there is none.

    A last row that is not complete is left out: the set is flown again.

    Raises:
        FileError: Another row is no row of a grid; names its line.
    """
    results: dict[Gains, Errors] = {}
    if not path.exists():
        return results
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = list(csv.DictReader(file))
    for line, row in enumerate(rows, 2):
        try:
            gains = Gains(*(float(row[name]) for name in Gains._fields))
            numbers = {name: float(row[name]) for name in (*REFERENCE, "action_change")}
            errors = Errors(**numbers, ended=int(float(row["ended"])))
            float(row["eligible"])  # the last column is whole
        except (KeyError, TypeError, ValueError) as error:
            if line == len(rows) + 1:
                break
            raise FileError(f"{path}: line {line} is no row of a grid of gains: delete the file or the line") from error
        results[gains] = errors
    return results


def main(argv: Sequence[str] | None = None) -> None:
    """Flies the gains in use, or the grid."""
    run_command(Args, METHOD, __doc__ or "", argv, train)


if __name__ == "__main__":
    main()
