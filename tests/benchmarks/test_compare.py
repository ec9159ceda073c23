"""This palaestra compared with another version: what is measured, in which order, what is compared and refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import compare
import compare_worker
import palaestra
import processes

pytestmark = pytest.mark.slow

HOUSE = Path(__file__).parents[2]
CARTPOLE, SOCCER = "palaestra/CartPole-v0", "palaestra/GridSoccer-v0"
MELEE = "test/Melee-v0"
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test", about="five against five")
QUICK = ("--num-envs", 2, "--rounds", 1, "--json")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch):
    """Measures too shortly to be right."""
    monkeypatch.setattr(compare, "PAIRS", 1)
    monkeypatch.setattr(compare, "WARM_UP_CALLS", 2)
    monkeypatch.setattr(compare, "ROUND_S", 1e-4)


@pytest.fixture
def stranger(tmp_path: Path) -> Path:
    """A checkout of something called palaestra, whose CartPole is another one and which has nothing else."""
    package = tmp_path / "stranger" / "envs" / "palaestra"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import gymnasium\n"
        "from gymnasium.envs.classic_control import CartPoleEnv\n"
        "__version__ = '0.0'\n"
        f"gymnasium.register('{CARTPOLE}', entry_point=CartPoleEnv)\n"
        "def make_batch(id, lanes):\n"
        "    raise SystemExit('no batches here')\n"
    )
    return tmp_path / "stranger"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def run(*words: object) -> SimpleNamespace:
        code = compare.main([str(word) for word in words])
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err, json=lambda: json.loads(printed.out))

    return run


# -- the whole ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "measurements",
    [pytest.param(["actions", "single"], id="warm"), pytest.param([], marks=pytest.mark.slow, id="cold")],
)
def test_a_version_is_compared_with_itself_by_everything_that_an_id_has(measurements: list[str], run):
    printed = run("CartPole", "--against", HOUSE, *QUICK, *(["--measurements", *measurements] if measurements else []))
    rows = {row["measurement"]: row for row in printed.json()}
    assert list(rows) == (measurements or ["actions", "single", "vector", "parallel", "compile"])
    assert all(row["before"] > 0 and row["after"] > 0 and row["note"] == "" for row in rows.values())
    assert (rows["actions"]["bar"], rows["single"]["bar"]) == (0.97, 0.97)
    assert rows["actions"]["ratio"] == pytest.approx(rows["actions"]["after"] / rows["actions"]["before"])
    if "compile" in rows:
        assert rows["compile"]["ratio"] == pytest.approx(rows["compile"]["after"] / rows["compile"]["before"])
        assert rows["compile"]["before"] > 0.5  # no compiled code was found
    assert printed.code == (0 if all(row["holds"] in (None, True) for row in rows.values()) else 1)


@pytest.mark.usefixtures("quick")
def test_each_compilation_has_a_cache_and_a_process_of_its_own(run, monkeypatch: pytest.MonkeyPatch, stranger: Path):
    caches, seconds = [], iter([4.0, 3.0, 8.0, 2.0, 4.0, 2.0])

    def fake(installation: processes.Installation, measurement: str, *, cache: str, id: str) -> dict[str, float]:
        assert not any(Path(cache).iterdir())
        caches.append((installation.name, cache))
        return {"cpu_s": next(seconds)}

    monkeypatch.setattr(compare, "start", fake)
    printed = run("CartPole", "--against", stranger, "--measurements", "compile", "--rounds", 3, "--json")
    (row,) = printed.json()
    assert [name for name, _ in caches] == [str(stranger), "this"] * 3
    assert len({cache for _, cache in caches}) == 6
    assert (row["before"], row["after"], row["bar"], row["holds"]) == (4.0, 2.0, 1.03, True)


@pytest.mark.usefixtures("quick")
def test_a_version_without_the_id_has_an_empty_row(run, stranger: Path):
    printed = run("GridSoccer", "--against", stranger, "--measurements", "actions", "scripts", *QUICK)
    assert [(row["measurement"], row["bar"], row["ratio"], row["holds"]) for row in printed.json()] == [
        ("actions", 0.97, None, None),
        ("scripts", 0.97, None, None),
    ]
    assert {row["note"] for row in printed.json()} == {f"{stranger} has no {SOCCER}"}
    assert printed.code == 0


@pytest.mark.usefixtures("quick")
def test_a_process_that_ends_fails_its_row_alone(run, monkeypatch: pytest.MonkeyPatch, stranger: Path):
    monkeypatch.setattr(compare, "kernel_ids", lambda: [CARTPOLE, SOCCER])
    printed = run("--against", stranger, "--measurements", "actions", *QUICK)
    dead, absent = printed.json()
    assert dead["note"] == f"{stranger}: its process ended with code 1: no batches here"
    assert (dead["failed"], absent["failed"]) == (True, False)
    assert absent["note"].endswith(f"has no {SOCCER}")
    assert printed.code == 1


def test_the_table_says_what_was_missed(run, monkeypatch: pytest.MonkeyPatch):
    seconds = {"actions": (8e-3, 1e-3), "scripts": (4e-3, 8e-3)}

    def turns(self: Any, measurement: str, id: str, rounds: int) -> compare.Seconds:
        return compare.Seconds(np.array([seconds[measurement]] * rounds))

    monkeypatch.setattr(compare.Pair, "take_turns", turns)
    printed = run("GridSoccer", "--against", HOUSE)
    title, _, actions, scripts = printed.out.splitlines()
    assert title == f"before: {HOUSE}; after: this installation"
    assert " ".join(actions.split()) == "actions GridSoccer 512,000 4,096,000 decisions/s 8 >= 0.97 holds"
    assert " ".join(scripts.split()) == "scripts GridSoccer 977 1,953 ns a lane-step 0.5 >= 0.97 MISSED"
    assert printed.code == 1


# -- the numbers -------------------------------------------------------------------------------------------------------


def test_the_processes_take_turns_and_change_the_first_one(monkeypatch: pytest.MonkeyPatch):
    order = []

    class Fake:
        def __init__(self, installation: SimpleNamespace) -> None:
            self.name = installation.name

        def ask(self, what: str, **words: Any) -> dict[str, Any]:
            order.append((what, self.name))
            return {"results": self.name, "cpu_s": len(order)}

        def close(self) -> None:
            order.append(("close", self.name))

    monkeypatch.setattr(compare, "Child", Fake)
    with compare.Pair((SimpleNamespace(name="a"), SimpleNamespace(name="b")), 8) as pair:  # type: ignore[arg-type]
        seconds = pair.take_turns("actions", CARTPOLE, 3)
        assert "".join(name for what, name in order if what == "round") == "abbaab"
        assert seconds.rounds.tolist() == [[3, 4], [6, 5], [7, 8]]
        assert not seconds.same
        pair.renew(0)
        assert ("close", "a") not in order
        pair.renew(1)
        assert [what for what, name in order if name == "a"][-1] == "close"


def test_a_row_is_the_median_of_the_pairs_of_their_fast_rounds():
    def pair(before: float, after: float, same: bool = True) -> compare.Seconds:
        slow = np.full((9, 2), 50.0)
        return compare.Seconds(np.concatenate([slow, np.full((2, 2), (before, after))]), same)

    pairs = [pair(3.0, 1.0), pair(8.0, 1.0), pair(20.0, 5.0, same=False)]
    row = compare.row_of(("actions", SOCCER), pairs, 100)
    assert (row.before, row.after, row.ratio) == (100 / 8.0, 100 / 1.0, 4.0)
    assert row.note == "results differ: not the same matches"
    assert compare.row_of(("actions", SOCCER), pairs[:2], 100).note == ""
    assert compare.row_of(("compile", CARTPOLE), pairs, 100).ratio == 0.25


def test_this_version_may_be_three_per_cent_slower():
    def slower(measurement: str, share: float) -> bool | None:
        return compare.row_of((measurement, SOCCER), [compare.Seconds(np.array([[1.0, 1.0 + share]]))], 1).holds

    assert [slower(measurement, share) for measurement in ("actions", "compile") for share in (0.029, 0.04)] == [
        True,
        False,
    ] * 2
    assert compare.row_of(("actions", SOCCER), [], 1).holds is None


def test_every_compiled_game_is_compared():
    ids = compare.kernel_ids()
    assert CARTPOLE in ids
    assert "palaestra/QuadGate2-v0" not in ids
    assert compare.KINDS["actions"].ids(ids) == ids
    scripted = {compare.short(id) for id in compare.KINDS["scripts"].ids(ids)}
    assert "GridSoccer" in scripted
    assert "CartPole" not in scripted
    assert {compare.short(id) for id in compare.KINDS["compile"].ids(ids)} == set(compare.COMPILED)


# -- what a process does -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "played_by"), [("actions", -1), ("scripts", 0)])
def test_a_process_plays_all_teams_from_outside_or_by_the_first_script(
    kind: str, played_by: int, monkeypatch: pytest.MonkeyPatch
):
    made, make_batch = [], palaestra.make_batch
    monkeypatch.setattr(palaestra, "make_batch", lambda *words: made.append(make_batch(*words)) or made[-1])
    call, close, _ = compare_worker.KINDS[kind](MELEE, 4)
    for _ in range(3):
        call()
    (sim,) = made
    assert (sim.states["current_player"] == played_by).all()
    assert (sim.states["steps"] == 3).all()
    close()


def test_equal_matches_have_equal_results_and_others_have_not():
    process = compare_worker.Worker()

    def results(kind: str, warm_up_calls: int) -> str:
        return process.prepare(kind, MELEE, 2, warm_up_calls, 1e-5)["results"]

    for kind in compare_worker.KINDS:
        assert results(kind, 5) == results(kind, 5)
        assert results(kind, 5) != results(kind, 6)
    assert min(process.round().values()) > 0
    process.drop()
    with pytest.raises(RuntimeError, match="round before prepare"):
        process.round()


# -- what is compared --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--against", "nowhere"), "--against nowhere: it does not exist; name the folder of a checkout, or"),
        (("--against", HOUSE / "docs"), "it has no envs/palaestra and no bin/python"),
        (
            ("CartPole", "--against", HOUSE, "--measurements", "scripts"),
            f"{CARTPOLE} has none of the measurements scripts",
        ),
        (("QuadGate2", "--against", HOUSE), "is moved by an engine: compiled games are compared"),
    ],
)
def test_what_cannot_be_compared_is_refused(words: tuple, error: str, run):
    printed = run(*words)
    assert (printed.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert error in printed.err


def test_a_checkout_that_cannot_be_imported_is_one_line(run, stranger: Path):
    (stranger / "envs" / "palaestra" / "__init__.py").write_text("raise RuntimeError('half a merge')\n")
    printed = run("CartPole", "--against", stranger)
    assert printed.code == 2
    assert printed.err == f"compare.py: {stranger}: its process ended with code 1: RuntimeError: half a merge\n"


def test_a_checkout_that_imports_another_palaestra_is_refused(monkeypatch: pytest.MonkeyPatch):
    place = processes.find_installation(str(HOUSE))
    elsewhere = processes.Installation("elsewhere", place.python, place.path, HOUSE / "docs")
    with pytest.raises(processes.ChildError, match=r"elsewhere: its python imports another palaestra, .*__init__\.py"):
        processes.Child(elsewhere)


def test_a_checkout_comes_first_on_its_path_and_this_one_not_at_all(stranger: Path):
    place = processes.find_installation(str(stranger))
    assert place.path[:3] == tuple(str(stranger / name) for name in processes.PACKAGES)
    assert str(processes.OURS) not in place.path
    assert processes.this_installation().path[0] == str(processes.OURS)


def test_a_virtual_environment_is_its_own_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(processes.OURS))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    for place in (tmp_path, tmp_path / "bin" / "python"):
        found = processes.find_installation(str(place))
        assert found.python == str(tmp_path / "bin" / "python")
        assert found.path == ()


@pytest.mark.parametrize("worker", ["compare_worker", "start_worker"])
def test_the_measuring_code_needs_nothing_of_this_package(worker: str, tmp_path: Path):
    (tmp_path / "palaestra.py").touch()  # empty: nothing of it can be imported
    place = processes.Installation("empty", sys.executable, (str(tmp_path),), None)
    command = [word.replace(".main(sys.argv[3:])", "") for word in place.command(worker)]
    done = subprocess.run(command, env=place.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
