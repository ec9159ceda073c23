"""The speed measurements: bars that they must reach, and that each can be measured."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

import flight_speed
import pursuit_speed
import robots_speed
import skirmish_speed
import speed
import start_speed
from measurement import Measurement, NotHere, ReportProgress
from palaestra.cli import measure

pytestmark = pytest.mark.slow


def test_a_missed_bar_is_a_failure_and_an_absent_one_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def measured(report_progress: ReportProgress) -> list[Measurement]:
        return [Measurement("x", "speed", 2.0, 1.5, True), Measurement("x", "time", 9.0, None, False)]

    def missed(report_progress: ReportProgress) -> list[Measurement]:
        return [Measurement("y", "time", 2.0, 1.5, False)]

    def absent(report_progress: ReportProgress) -> list[Measurement]:
        raise NotHere("needs mpe2")

    table = {"x": (measured, "", 1.5, True), "y": (missed, "", 1.5, False), "z": (absent, "threads", 1.6, True)}
    monkeypatch.setattr(speed, "MEASUREMENTS", table)
    assert speed.main(["--measurements", "x", "z", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["holds"] for row in rows] == [True, None, None]
    assert rows[2]["note"] == "needs mpe2"
    assert speed.main([]) == 1
    assert "MISSED" in capsys.readouterr().out


@pytest.mark.slow  # compiles games in fresh processes
def test_every_measurement_can_be_measured(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(measure, "WARM_UP_S", 0.0)
    for module in (start_speed, skirmish_speed, pursuit_speed, flight_speed):
        monkeypatch.setattr(module, "TRIES", 1)
    monkeypatch.setattr(start_speed, "kernel_ids", lambda: ["palaestra/CartPole-v0"])
    assert speed.main(["--measurements", "--json"]) in (0, 1)
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == set(speed.MEASUREMENTS)
    peers = {"particles": "mpe2", "skirmish-smax": "jaxmarl", "pursuit-pettingzoo": pursuit_speed.SISL, "bm25": "bm25s"}
    peers |= {
        "ray-matches": "ray",
        "ray-pieces": "ray",
        "ray-sampling": "ray",
        "grid-magent": "magent2",
        "concert": "diplomacy",
    }
    elsewhere = {name for name, peer in peers.items() if not find_spec(peer)}
    elsewhere |= {"robots-threads"} if robots_speed.cores() < 2 else set()
    assert [row["name"] for row in rows if row["value"] is None and row["name"] not in elsewhere] == []
