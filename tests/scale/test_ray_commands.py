"""``--ray`` of ``palaestra eval``, ``palaestra train`` and ``benchmarks/learn.py``: what one process gives."""

# pyright: reportMissingImports=false

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import palaestra_assets
from palaestra import registry
from palaestra.cli import main as palaestra

pytest.importorskip("ray", reason='needs the extra "palaestra[ray]"')
for package in ("torch", "tyro", "jsbsim", "matplotlib"):
    pytest.importorskip(package)
pytestmark = pytest.mark.ray
SCALE = Path(__file__).parent
BENCHMARKS = SCALE.parents[1] / "benchmarks"
MY_GAME = """
import numpy as np
import palaestra
from palaestra.games.teams.pong import game

palaestra.register("mine/Duel-v0", "my_duel:game")
still = lambda observations: np.zeros(observations.shape[:2], np.int64)
"""
ENDED_S = 60.0


@pytest.fixture
def my_duel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The id of a game in a module of the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_duel.py").write_text(MY_GAME)
    yield "my_duel:mine/Duel-v0"
    registry.ROWS.pop("mine/Duel-v0", None)
    sys.modules.pop("my_duel", None)


def figure(*words: object) -> subprocess.Popen:
    """The small figure by a program."""
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS)}
    program = [sys.executable, SCALE / "small_figure.py", *words]
    return subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL)


def wait_for(what: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + ENDED_S
    while not (found := what()):
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)
    return found


def in_the_middle(folder: Path, besides: Path | None = None) -> tuple[Path, bytes] | None:
    """Curve of a run that has some evaluations and goes on, with what it holds now."""
    for log in folder.glob("fm3q_limit/seed_*/log.csv"):
        if log != besides and not (log.parent / "done.json").exists() and (now := log.read_bytes()).count(b"\n") > 4:
            return log, now
    return None


def without_times(log: Path) -> list[str]:
    return [line.rpartition(",")[0] for line in log.read_text().splitlines()]


class WorkerKiller(threading.Thread):
    """Kills all processes that train, once, when a run is in the middle."""

    def __init__(self, trainings: Callable[[], list[int]], folder: Path, besides: Path) -> None:
        super().__init__()
        self.trainings, self.folder, self.besides, self.killed = trainings, folder, besides, 0

    def run(self) -> None:
        self.log, self.content = wait_for(lambda: in_the_middle(self.folder, self.besides))
        for training in self.trainings():
            os.kill(training, signal.SIGKILL)
            self.killed += 1


def test_an_evaluation_prints_the_table_of_one_process(cluster: Any, my_duel: str, capsys: pytest.CaptureFixture[str]):
    words = ["eval", my_duel, "--a", "my_duel:still", "--b", "random", "--matches", "40", "--json"]
    assert palaestra(words) == 0
    one = capsys.readouterr().out
    assert palaestra([*words, "--ray", cluster.address]) == 0
    many = capsys.readouterr()
    assert many.out == one


@pytest.mark.slow
def test_a_figure_outlives_its_driver_and_its_workers(
    cluster: Any,
    at_work: Callable[[str], list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.syspath_prepend(str(SCALE))
    import small_figure  # pyright: ignore[reportMissingImports]

    def trainings() -> list[int]:
        return at_work("train_piece")

    one, many = tmp_path / "one", tmp_path / "many"
    words = ("--ray", cluster.address, "--runs", str(many), "--figures", str(many))
    with figure("--workers", "0", "--runs", one, "--figures", one) as alone:
        with figure(*words) as driver:
            log, content = wait_for(lambda: in_the_middle(many))
            driver.kill()
        wait_for(lambda: not trainings())
        assert not (many / "fm3q_limit.csv").exists()
        capsys.readouterr()
        killer = WorkerKiller(trainings, many, log)
        killer.start()
        small_figure.main(*words)
        killer.join()
    assert alone.returncode == 0
    assert killer.killed > 0
    assert "  lost " in capsys.readouterr().out
    for before, now in ((content, log), (killer.content, killer.log)):
        assert now.read_bytes().startswith(before)  # its times, too: it was continued, not trained anew
    assert (many / "fm3q_limit.csv").read_bytes() == (one / "fm3q_limit.csv").read_bytes()
    logs = [path.relative_to(one) for path in one.glob("fm3q_limit/seed_*/log.csv")]
    assert len(logs) == 6
    for path in logs:
        assert without_times(many / path) == without_times(one / path)


def test_seeds_are_those_of_one_process_in_a_game_of_ones_own(
    cluster: Any, my_duel: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)  # the game's module is in another folder, which this process looks into
    shutil.copy(palaestra_assets.path("weights") / "fm3q_team_pong.safetensors", here / "strong.safetensors")
    small = ("--total-steps", "600", "--lanes", "16", "--warmup-steps", "100", "--batch-size", "16", "--hidden", "8")
    words = ["train", "fm3q", "--env-id", my_duel, "--evaluations", "2", "--matches", "8"]
    words += ["--opponent", "strong.safetensors", "--directory"]
    assert palaestra([*words, "one", *small, "--seeds", "0,2", "--quiet"]) == 0
    assert palaestra([*words, "many", *small, "--seeds", "0,2", "--quiet", "--ray", cluster.address]) == 0
    for seed in (0, 2):
        one, many = (here / name / f"seed_{seed}" for name in ("one", "many"))
        assert without_times(many / "log.csv") == without_times(one / "log.csv")
        assert len(without_times(one / "log.csv")) == 4
        assert (many / "done.json").exists()
    assert not list(Path("many").glob(".*"))
