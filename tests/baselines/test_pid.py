"""The search for the PID's gains: its flights, its resume after an interruption, and what its table says of `GAINS`."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
pytest.importorskip("tyro", reason="the methods need the extra palaestra[baselines]")
import palaestra_assets
from palaestra.core.files import FileError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.ucav.autopilot import TRACKING_GAINS as GAINS
from palaestra.games.ucav.autopilot import Gains
from palaestra_baselines import pid
from palaestra_baselines.common.run_folder import lock

pytestmark = pytest.mark.check

TABLE = Path(palaestra_assets.__file__).parent / "tables" / "pid_grid.csv"


@pytest.fixture
def short(tmp_path, monkeypatch):
    """A search of seconds, interpreted: no other test needs the kernel of the game with gains as parameters."""
    monkeypatch.setattr(pid, "KernelSimulation", partial(pid.KernelSimulation, compiled=False))
    monkeypatch.setattr(pid, "GRID", {"roll": (1.0, 2.0), "speed": (0.1,)})
    return pid.Args(grid=True, flights=2, horizon=80, directory=tmp_path / "runs", table=tmp_path / "grid.csv")


def test_no_set_of_the_grid_tracks_clearly_better_than_the_gains_in_use():
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    sets = {Gains(*(float(row[name]) for name in Gains._fields)): row for row in rows if row["eligible"] == "1"}
    assert len(rows) >= 54
    assert float(sets[GAINS]["score"]) < 1.01 * min(float(row["score"]) for row in sets.values())


def test_the_same_flights_give_the_same_errors_and_poor_gains_poorer_ones(short):
    report = pid.train(replace(short, grid=False))
    again = pid.train(replace(short, grid=False))
    assert report.results[GAINS] == again.results[GAINS]
    sim = pid.tuning_flights(2, 80)
    poor = pid.fly(sim, GAINS._replace(roll=0.2), 0)
    assert poor.roll_deg > 1.5 * report.results[GAINS].roll_deg
    assert poor.roll_settled_deg > 1.5 * report.results[GAINS].roll_settled_deg
    sim.close()


class Flights:
    """Two flights of three decisions, the second one of which a rule ends after two."""

    num_envs = 2
    errors = ((3.0, 30.0), (4.0, 40.0), (5.0, 50.0))
    ages = ((5.0, 5.0), (5.1, 5.0), (5.2, 5.2))

    def reset(self, *, seed: int) -> None:
        self.turn = 0
        self.actions, self.observations = np.zeros((2, 1, 4)), np.full((2, 1, 32), float(seed))

    def step(self) -> None:
        errors, self.turn = np.array(self.errors[self.turn]), self.turn + 1
        ends = np.array([0, 2 if self.turn > 1 else 0])
        self.terminated, self.truncated = ends > 1, np.array([self.turn > 2, False])
        self.info = {
            "turn_error_rad": np.radians(errors),
            "climb_error": -np.radians(2 * errors),
            "speed_error_mps": 3 * errors,
            "command_age_s": np.array(self.ages[self.turn - 1]),
            "action_change": np.abs(self.actions[:, 0]).mean(axis=1) * self.turn,
            "end_reason": ends,
        }


def test_errors_are_root_mean_squares_while_a_flight_lasts_and_settled_ones_begin_after_five_seconds():
    seen = []
    errors = pid.measure_errors(Flights(), 7, lambda rows: (seen.append(rows[0, 0]), np.full((2, 4), 0.1))[1])
    settled, whole = math.sqrt((16 + 25) / 2), math.sqrt((9 + 900 + 16 + 1600 + 25) / 5)
    expected = [settled, 2 * settled, 3 * settled, whole, 2 * whole, 3 * whole]
    assert [getattr(errors, name) for name in pid.REFERENCE] == pytest.approx(expected)
    assert errors.action_change == pytest.approx(0.1 * (1 + 1 + 2 + 2 + 3) / 5)
    assert errors.ended == 1
    assert seen == [7.0] * 3


def test_the_script_with_gains_as_parameters_compiles_and_hands_on_every_gain(monkeypatch):
    """Everything else of this kernel is compiled with the registered id."""
    monkeypatch.setattr(pid, "steer_with", weigh_gains)
    game = replace(
        pid.tuning_game(), reset=start_nothing, observe=show_nothing, command=move_nothing, advance=stand_still,
        evaluate=play_on, physics=None, physics_options={}, engine_version=None,
    )  # fmt: skip
    gains = {f"gain_{name}": 0.5**k for k, name in enumerate(Gains._fields, 1)}
    actions = []
    for compiled in (True, False):
        sim = KernelSimulation(game, 1, compiled=compiled, parameters=gains, opponents={"pilot": "pid"})
        sim.reset(seed=0)
        sim.states["body"]["aileron_command"] = 0.75
        sim.step(sim.actions)
        assert sim.states["body"]["aileron_command"].item() == 0.75
        actions.append(sim.actions.ravel().tolist())
    weighed = sum(k * gain for k, gain in enumerate(gains.values(), 1)) / 13
    assert actions[0] == actions[1] == [weighed, 0.25, 0.125, 0.5]


def weigh_gains(gains, body, autopilot, roll_command_rad, flight_path_command_rad, speed_command_mps):
    total = 0.0
    for k in range(len(gains)):
        total += (k + 1) * gains[k]
    body.aileron_command, body.elevator_command = total / 13, 0.25
    body.rudder_command, body.throttle_command = 0.125, 0.75


def start_nothing(s, world): ...


def show_nothing(s, world, observations, scratch): ...


def move_nothing(s, world, actions, scratch): ...


def stand_still(s, world, scratch): ...


def play_on(s, world, rewards, scratch):
    return False


def test_an_interrupted_grid_search_resumes(short, monkeypatch, capsys):
    first = pid.train(short)
    assert len(first.results) == 3
    flown = []
    monkeypatch.setattr(pid, "fly", lambda *arguments: flown.append(arguments))
    second = pid.train(short)
    assert flown == []
    assert second.results == first.results
    assert second.best == first.best
    assert short.table.read_text().count("\n") == 4
    assert "in use" in capsys.readouterr().out


def test_a_set_that_loses_an_aircraft_or_chatters_is_out():
    good = pid.Errors(**pid.REFERENCE, action_change=0.01, ended=0)
    poor = pid.Errors(**{name: 2 * value for name, value in pid.REFERENCE.items()}, action_change=0.01, ended=0)
    assert good.score == pytest.approx(1.0)
    assert pid.rank(good) < pid.rank(poor)
    assert pid.rank(poor) < pid.rank(replace(good, ended=1))
    assert pid.rank(poor) < pid.rank(replace(good, action_change=0.05))


@pytest.fixture
def flown(monkeypatch: pytest.MonkeyPatch) -> list[Gains]:
    """The sets that were flown; none really is."""
    sets: list[Gains] = []

    def fly(sim: object, gains: Gains, seed: int) -> pid.Errors:
        sets.append(gains)
        return pid.Errors(**dict.fromkeys(pid.REFERENCE, gains.roll / 3), action_change=0.01, ended=0)

    monkeypatch.setattr(pid, "fly", fly)
    return sets


def record_of(folder: Path) -> Path:
    (path,) = folder.glob("grid_*.csv")
    return path


def test_half_a_last_row_of_the_record_is_flown_again_and_the_record_is_as_before(short, flown):
    first = pid.train(short)
    record, before = record_of(short.directory), len(flown)
    whole = record.read_bytes()
    for cut in (8, 20, 150):
        record.write_bytes(whole[:-cut])
        assert pid.train(short).results == first.results
        assert record.read_bytes() == whole
    assert flown[before:] == [list(first.results)[-1]] * 3


def test_another_row_that_is_not_whole_is_an_error_that_names_file_and_line(short, flown):
    pid.train(short)
    record = record_of(short.directory)
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join([lines[0], lines[1][:40] + "\n", *lines[2:]]))
    with pytest.raises(FileError, match=r"grid_.*\.csv: line 2 is no row of a grid of gains"):
        pid.train(short)


def test_no_two_processes_fly_the_same_grid(short):
    short.directory.mkdir(parents=True, exist_ok=True)
    name = f"grid_{short.flights}x{short.horizon}_seed{short.seed}.lock"
    with lock(short.directory / name), pytest.raises(RuntimeError, match="another process"):
        pid.train(short)


@pytest.mark.parametrize(("name", "value"), [("flights", 0), ("horizon", -5), ("seed", -1)])
def test_a_number_that_cannot_be_is_refused_by_name(short, name: str, value: int):
    with pytest.raises(ValueError, match=f"--{name} must be"):
        pid.train(replace(short, **{name: value}))
