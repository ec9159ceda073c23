"""Starts, presets and engines: the requests to fresh processes and the measurements from their answers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import start_speed
import start_worker
from processes import ChildError, Installation, start, this_installation

pytestmark = pytest.mark.slow

CARTPOLE = "palaestra/CartPole-v0"
SIZES = "games.two_team:game"
BODIES = "palaestra.games.calibration.cartpole:game"


def answer(wall_s: float, *lines: str) -> dict[str, Any]:
    return {"wall_s": wall_s, "cpu_s": 2 * wall_s, "import_s": 0.2, "step_s": 0.001, "lines": list(lines)}


@pytest.fixture
def stranger(tmp_path: Path) -> Installation:
    """A palaestra of which everything is quick: games are numbers, and its CartPole says that it is compiled."""
    package = tmp_path / "palaestra"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import gymnasium, sys, time\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "def make_env(**keywords):\n"
        "    print('compiling CartPole', file=sys.stderr)\n"
        "    print('and more')\n"
        "    time.sleep(0.05)\n"
        "    return CartPoleEnv()\n"
        f"gymnasium.register('{CARTPOLE}', entry_point=make_env)\n"
        "def register(id, factory, about):\n"
        "    gymnasium.register(id, entry_point=factory)\n"
        "class Sim:\n"
        "    def __init__(self, seconds): self.seconds = seconds\n"
        "    def reset(self, seed): time.sleep(self.seconds)\n"
        "    def step(self): time.sleep(self.seconds)\n"
        "def make_batch(id, lanes, seconds=0.0):\n"
        "    sum(range(4_000_000))\n"
        "    return Sim(seconds)\n"
    )
    return Installation("stranger", sys.executable, (str(tmp_path), *this_installation().path), tmp_path)


def test_a_start_says_how_long_make_took_and_what_it_printed(stranger: Installation):
    found = start(stranger, "make", id=CARTPOLE)
    assert found["lines"] == ["compiling CartPole", "and more"]
    assert 0.05 < found["wall_s"] < 1.0
    assert min(found["import_s"], found["step_s"]) > 0


def test_compiling_is_measured_from_make_to_the_first_step(stranger: Installation):
    found = start(stranger, "compile_cold", id=CARTPOLE)
    assert found["cpu_s"] > 0.01
    assert found["import_cpu_s"] > 0.1
    assert start(stranger, "compile_cold", id="palaestra/Nothing-v0") == {"unknown": True}


def test_presets_are_made_one_after_the_other(stranger: Installation):
    found = start(stranger, "presets", game="math:sqrt", keyword="seconds", values=[0.0, 0.2])
    first, second = found["wall_s"]
    assert second - first > 0.2
    assert all(0.01 < seconds < 0.2 for seconds in found["cpu_s"])  # a sleeping process uses no processor time


@pytest.mark.slow
def test_compiled_code_is_found_where_it_was_kept(tmp_path: Path):
    cold, warm = (start(this_installation(), "make", cache=str(tmp_path), id=CARTPOLE) for _ in range(2))
    assert cold["wall_s"] > 1.5 * warm["wall_s"] > 0
    words = {"game": SIZES, "keyword": "nodes", "values": [6, 8, 10]}
    found = start(this_installation(), "presets", cache=str(tmp_path), **words)
    assert all(10 * further < found["cpu_s"][0] for further in found["cpu_s"][1:])  # the same kernel


def test_the_fastest_of_the_starts_counts_and_the_line_is_looked_for(monkeypatch: pytest.MonkeyPatch):
    line = "compiling CartPole once"
    answers = {"CartPole": [answer(5.0, line), answer(0.3), answer(3.0, line, "kept"), answer(0.5)]}
    answers["TeamTag"] = [answer(3.0), answer(0.3, line)] * 2
    caches = []

    def fake(installation: Any, measurement: str, *, cache: str, id: str) -> dict[str, Any]:
        assert measurement == "make"
        caches.append(cache)
        return answers[start_speed.short(id)].pop(0)

    monkeypatch.setattr(start_speed, "start", fake)
    monkeypatch.setattr(start_speed, "kernel_ids", lambda: [CARTPOLE, "palaestra/TeamTag-v0"])
    printed = []
    cold, warm, tag, _, silent, imports = start_speed.makes(printed.append)
    assert (cold.value, warm.value, tag.value, imports.value) == (3.0, 0.3, 3.0, 0.2)
    assert (cold.bar, warm.bar, cold.at_least) == (4.0, 0.4, False)
    assert cold.note == f'CPU s: 6.00; first reset and step 1.0 ms; "{line}"'
    assert (silent.value, silent.holds, silent.note) == (1.0, False, "TeamTag")
    assert printed == ["1/2 CartPole", "2/2 TeamTag"]
    assert len(caches) == 8
    assert all(a == b for a, b in zip(caches[::2], caches[1::2], strict=True))  # the second finds what the first kept
    assert len(set(caches)) == 4


def test_presets_are_added_up_and_the_second_one_is_reported(monkeypatch: pytest.MonkeyPatch):
    runs = [{"wall_s": [4.0] + [0.1] * 22, "cpu_s": [4.0, 0.03] + [0.1] * 21}]
    runs += [{"wall_s": [3.0] + [0.2] * 22, "cpu_s": [3.0, 0.015] + [0.2] * 21}]
    asked = []
    monkeypatch.setattr(start_speed, "start", lambda *a, **words: asked.append(words) or runs.pop(0))
    every, second = start_speed.presets(print)
    assert (every.value, every.bar, every.holds) == (pytest.approx(6.2), 8.0, True)
    assert (second.value, second.bar, second.holds) == (pytest.approx(15.0), 20.0, True)
    assert second.note == "of 22 further ones: median 200.0, largest 200.0"
    assert asked[0]["values"] == list(range(3, 26))
    assert asked[0]["cache"] != asked[1]["cache"]


def test_a_game_is_restored_and_its_memory_looked_at(monkeypatch: pytest.MonkeyPatch):
    for name, value in {"BODY_LANES": 2, "BODY_DECISIONS": 3, "MEMORY_START": 5, "MEMORY_END": 20}.items():
        monkeypatch.setattr(start_speed, name, value)
    monkeypatch.setattr(start_speed, "BODY_GAME", BODIES)
    restore, memory = start_speed.bodies(print)
    assert restore.value is not None
    assert restore.value > 0
    assert (restore.bar, memory.bar) == (1.0, 1.0)
    assert memory.about == "growth of a simulation from 5 to 20 decisions of 2 lanes, MB"
    assert memory.value is not None


def test_the_growth_is_the_larger_of_both(monkeypatch: pytest.MonkeyPatch):
    found = {"allocated_bytes": 2_000_000, "resident_bytes": 3_500_000}
    monkeypatch.setattr(start_speed, "start", lambda *a, **words: found)
    monkeypatch.setattr(start_speed, "BODY_DECISIONS", 1)
    monkeypatch.setattr(start_speed, "BODY_GAME", BODIES)
    _, memory = start_speed.bodies(print)
    assert (memory.value, memory.holds) == (3.5, False)
    assert memory.note == "MB: 2.00 by Python and NumPy, 3.50 of the process"
    found["resident_bytes"] = None  # type: ignore[assignment]
    assert start_speed.bodies(print)[1].value == 2.0


def test_memory_that_is_kept_is_seen(monkeypatch: pytest.MonkeyPatch):
    import palaestra

    kept = []
    make_batch = palaestra.make_batch

    def leaky(id: str, lanes: int, **keywords: Any) -> Any:
        sim: Any = make_batch(CARTPOLE, lanes, **keywords)
        step = sim.step
        sim.step = lambda: (kept.append(bytes(1000)), step())
        return sim

    monkeypatch.setattr(palaestra, "make_batch", leaky)
    found = start_worker.memory(BODIES, 2, 10, 110)
    assert 100_000 < (found["allocated_bytes"] or 0) < 120_000


def test_a_measurement_that_fails_says_why():
    with pytest.raises(ChildError, match=r"this: its process ended with code 1: ModuleNotFoundError: .*nowhere"):
        start(this_installation(), "presets", game="nowhere:game", keyword="agents", values=[3])
