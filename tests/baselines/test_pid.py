"""The search for the PID's gains: its flights, its resume after an interruption, and its winner, the gains in use."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("jsbsim", reason="the aircraft need the extra palaestra[flight]")
pytest.importorskip("tyro", reason="the methods need the extra palaestra[baselines]")
import palaestra_assets
from palaestra.ucav.autopilot import GAINS, Gains
from palaestra_baselines import pid

TABLE = Path(palaestra_assets.__file__).parent / "tables" / "pid_grid.csv"


@pytest.fixture
def short(tmp_path, monkeypatch):
    monkeypatch.setattr(pid, "GRID", {"roll": (1.0, 2.0), "speed": (0.1,)})
    return pid.Args(grid=True, flights=2, horizon=80, directory=tmp_path / "runs", table=tmp_path / "grid.csv")


def test_the_gains_in_use_won_the_grid():
    with TABLE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 54
    assert Gains(*(float(rows[0][name]) for name in Gains._fields)) == GAINS
    assert rows[0]["eligible"] == "1"
    assert float(rows[0]["score"]) == min(float(row["score"]) for row in rows if row["eligible"] == "1")


def test_the_same_flights_give_the_same_errors_and_poor_gains_poorer_ones(short):
    report = pid.train(replace(short, grid=False))
    again = pid.train(replace(short, grid=False))
    assert report.results[GAINS] == again.results[GAINS]
    sim = pid.PhysicsSimulation(pid.tuning_game(), 2, parameters={"horizon": 80}, opponents={"pilot": "pid"})
    poor = pid.fly(sim, GAINS._replace(roll=0.2), 0)
    assert poor.rms["roll_deg"] > 1.5 * report.results[GAINS].rms["roll_deg"]
    assert poor.reward < report.results[GAINS].reward
    sim.close()


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
