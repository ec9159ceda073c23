"""The search for the PID's gains: its flights, its resume after an interruption, and what its table says of `GAINS`."""

from __future__ import annotations

import csv
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
pytest.importorskip("tyro", reason="the methods need the extra palaestra[baselines]")
import palaestra_assets
from palaestra.core.files import FileError
from palaestra.core.run.kernel import KernelSimulation
from palaestra.games.ucav.autopilot import GAINS, Gains
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
    """The best one is half a percent better, but pilots that fly macros with it kill less."""
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    sets = {Gains(*(float(row[name]) for name in Gains._fields)): row for row in rows if row["eligible"] == "1"}
    assert len(rows) >= 54
    assert float(sets[GAINS]["score"]) < 1.01 * min(float(row["score"]) for row in sets.values())


def test_the_same_flights_give_the_same_errors_and_poor_gains_poorer_ones(short):
    report = pid.train(replace(short, grid=False))
    again = pid.train(replace(short, grid=False))
    assert report.results[GAINS] == again.results[GAINS]
    sim = pid.KernelSimulation(pid.tuning_game(), 2, parameters={"horizon": 80}, opponents={"pilot": "pid"})
    poor = pid.fly(sim, GAINS._replace(roll=0.2), 0)
    assert poor.rms["roll_deg"] > 1.5 * report.results[GAINS].rms["roll_deg"]
    assert poor.reward < report.results[GAINS].reward
    sim.close()


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
    rms = dict(pid.REFERENCE)
    good = pid.Errors(rms, action_change=0.01, reward=0.8, ended=0)
    poor = replace(good, rms={name: 2 * value for name, value in rms.items()})
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
        return pid.Errors(dict.fromkeys(pid.REFERENCE, gains.roll / 3), action_change=0.01, reward=0.8, ended=0)

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
