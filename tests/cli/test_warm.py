"""`palaestra doctor --warm`: every kernel is compiled once, the largest first, and old entries of the cache go."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from palaestra.cli import warm
from palaestra.core.compile.linker import jit_disabled, link

DAY_S = 86_400.0
PONG, MATRIX, CARTPOLE = (f"palaestra/{name}-v0" for name in ("TeamPong", "TeamMatrix", "CartPole"))
needs_compiler = pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the games that would be compiled, in their order."""
    names: list[str] = []

    def note(name: str) -> dict:
        names.append(name)
        return {"status": "ready", "seconds": 1.0, "note": ""}

    monkeypatch.setattr(warm, "_compile", note)
    return names


def test_the_largest_game_is_compiled_first(compiled: list[str], capsys: pytest.CaptureFixture[str]):
    rows = warm.warm([CARTPOLE, PONG, MATRIX])
    assert compiled == [PONG, MATRIX, CARTPOLE]
    assert [row["id"] for row in rows] == [CARTPOLE, PONG, MATRIX]
    assert capsys.readouterr().err.splitlines()[0] == f"1/3 {PONG}: ready, 1.0 s"


def test_games_that_share_a_kernel_are_compiled_once(compiled: list[str]):
    first, second = warm.warm([CARTPOLE, "palaestra.games.calibration.cartpole:game"])
    assert compiled == [CARTPOLE]
    assert (first["note"], second["note"]) == ("", f"the kernel of {CARTPOLE}")
    assert second["status"] == "ready"


def test_a_game_that_cannot_be_made_does_not_stop_the_others(compiled: list[str]):
    rows = warm.warm(["a_package_that_nobody_has:game", "palaestra.games.calibration.cartpole:nothing", CARTPOLE])
    assert [row["status"] for row in rows] == ["missing", "failed", "ready"]


def test_solvers_and_the_recorder_are_compiled_like_a_game(monkeypatch: pytest.MonkeyPatch):
    calls = []
    monkeypatch.setattr(warm.factories, "load", lambda name: lambda: calls.append(name))
    rows = warm.warm(warm.OTHERS)
    assert [(row["id"], row["status"]) for row in rows] == [("palaestra.exact", "ready"), ("palaestra.replay", "ready")]
    assert calls == ["palaestra.exact.values:compile_solvers", "palaestra.replay.lane_hashes:compiled_calls"]


@pytest.mark.check
@needs_compiler
def test_kernels_are_compiled_in_processes_of_their_own():
    (row,) = warm.warm([CARTPOLE], jobs=2)
    assert (row["status"], row["note"]) == ("ready", "")
    assert list(link(warm.find_game(CARTPOLE)).cache_folders().pop().glob("cartpole.step_lanes_*.nbi"))


@needs_compiler
def test_the_files_of_a_kernel_are_known_by_their_names():
    kernel = link(warm.find_game(CARTPOLE))
    (folder,) = kernel.cache_folders()
    warm.play_one_decision(warm.find_game(CARTPOLE))
    names = {found[1] for path in folder.glob("cartpole.*.nb[ic]") if (found := warm.ENTRY.search(path.name))}
    assert {name for name in kernel.cache_names() if name.startswith(("step", "check"))} <= names


def test_only_entries_go_that_no_game_uses_and_that_were_not_read_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    used, other = f"step_lanes_{'a' * 16}", f"step_lanes_{'b' * 16}"
    ages = {f"pong.{used}-288.py311.nbi": 99, f"pong.{other}-9.py311.nbi": 99, f"tag.{other}-9.py311.1.nbc": 29}
    ages |= {f"pong.{other}-9.py311.1.nbc": 31, "pong.somebody_elses-9.py311.nbi": 99}
    for name, days in ages.items():
        (tmp_path / name).write_bytes(b"12345")
        seconds = DAY_S * (1000 - days)
        os.utime(tmp_path / name, (seconds, seconds))
    kernel = SimpleNamespace(cache_names=lambda: {used}, cache_folders=lambda: {tmp_path})
    monkeypatch.setattr(warm, "link", lambda game: kernel)
    assert warm.prune([CARTPOLE], now=DAY_S * 1000) == {"files": 2, "megabytes": 1e-5, "modules": ["pong"]}
    assert {path.name for path in tmp_path.iterdir()} == {name for name in ages if not name.startswith(f"pong.{other}")}
    assert warm.prune([CARTPOLE], now=DAY_S * 1000)["files"] == 0
