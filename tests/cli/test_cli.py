"""The command line: what it prints, what it refuses and how it ends."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType, SimpleNamespace

import gymnasium
import numpy as np
import pytest
from reliability.forge import forge

import palaestra
from palaestra import console, registry
from palaestra.cli import COMMANDS, common, main, one_line
from palaestra.cli import train as train_command
from palaestra.cli.doctor import NO_CACHE
from palaestra.cli.warm import OTHERS
from palaestra.core.compile.linker import jit_disabled
from palaestra.core.run.kernel import KernelSimulation
from palaestra.game import Game
from palaestra.replay import record

MELEE, CARTPOLE = "test/Melee-v0", "palaestra/CartPole-v0"
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test", about="five against five")


def push_right(observations: np.ndarray) -> np.ndarray:
    return (observations[..., 2] > 0).astype(np.int64)


# -- the whole ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_ends_with_an_example_of_its_command(command: str, run):
    printed = run(command, "--help")
    assert printed.code == 0
    assert "example:" in printed.out.splitlines()[-2]
    assert printed.out.splitlines()[-1].startswith(f"  palaestra {command}")


def test_without_a_command_the_overview_names_them_all(run):
    printed = run()
    assert printed.code == 2
    assert all(f"  {command} " in printed.out for command in COMMANDS)
    assert run("--help").code == 0


def test_the_version_is_printed(run):
    assert run("--version").out == f"palaestra {palaestra.__version__}\n"


def test_an_unknown_command_suggests_the_near_one(run, refused):
    assert "no command 'chekc', did you mean 'check'?" in refused(run("chekc"), 2)


def test_a_wrong_option_is_one_line(run, refused):
    assert "unrecognized arguments: --what" in refused(run("list", "--what"), 2)


def test_debug_shows_where_an_error_comes_from(run, refused):
    assert "no environment" in refused(run("info", "nothing"))
    for words in (("--debug", "info", "nothing"), ("info", "nothing", "--debug")):
        with pytest.raises(KeyError, match="no environment"):
            main(words)


def test_an_interruption_ends_with_130(run, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("palaestra.cli.listing.run", interrupted)
    assert run("list").code == 130


def test_long_errors_become_one_line():
    assert one_line(ValueError("a worker failed:\nTraceback ...\n  File\nKeyError: 'x'\n")) == (
        "a worker failed: KeyError: 'x'"
    )
    assert one_line(KeyError("no such id")) == "no such id"
    assert one_line(MemoryError()) == "MemoryError"


def as_a_module(*words: str) -> subprocess.Popen:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUNBUFFERED": ""}
    program = [sys.executable, "-m", "palaestra", *words]
    return subprocess.Popen(program, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_it_runs_as_a_module():
    with as_a_module("list", "--family", "calibration") as process:
        printed, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert CARTPOLE in printed


@pytest.mark.check
def test_the_console_script_finds_modules_of_the_current_folder(tmp_path: Path):
    (tmp_path / "my_game.py").write_text(
        "import palaestra\npalaestra.register('mine/Duel-v0', 'palaestra.games.teams.pong:game')\n"
    )
    (script,) = entry_points(group="console_scripts", name="palaestra")
    without_folder = "sys.path[:] = [entry for entry in sys.path if entry not in ('', os.getcwd())]"
    program = f"import os, sys; {without_folder}; from {script.module} import {script.attr} as run; sys.exit(run())"
    words = [sys.executable, "-c", program, "info", "my_game:mine/Duel-v0", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["id"] == "mine/Duel-v0"


def test_a_module_of_the_current_folder_does_not_stand_for_an_installed_one(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    monkeypatch.chdir(tmp_path)
    run("--version")
    assert sys.path[-1] == str(tmp_path)


def test_what_the_output_cannot_show_is_escaped(monkeypatch: pytest.MonkeyPatch):
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(common, "near", None)
    monkeypatch.setattr("palaestra.cli.listing.run", lambda args: print("Übungsplatz") or 0)
    assert main(["list"]) == 0
    assert out.buffer.getvalue() == b"\\xdcbungsplatz\n"  # type: ignore[attr-defined]


@pytest.mark.check
def test_a_closed_pipe_is_no_error():
    with as_a_module("list") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


# -- ids and keywords --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["CartPole", "CartPole-v0", CARTPOLE])
def test_an_id_may_be_short(word: str):
    assert console.find_id(word) == CARTPOLE


def test_a_short_name_without_a_version_is_the_newest():
    assert console.find_id("UcavTrack") == "palaestra/UcavTrack-v3"
    assert console.find_id("UcavTrack-v3") == "palaestra/UcavTrack-v3"


@pytest.mark.parametrize(
    ("word", "new"),
    [
        ("UcavTrack-v0", "UcavTrack-v3"),
        ("UcavPursuit-v1", "UcavPursuit-v2"),
        ("palaestra/UcavDogfight-v1", "UcavDogfight-v2"),
    ],
)
def test_a_version_that_went_is_refused_with_the_name_of_the_new_one(word: str, new: str):
    with pytest.raises(LookupError, match=f"palaestra/{new}"):
        console.find_id(word)
    with pytest.raises(KeyError, match=f"palaestra/{new}"):
        palaestra.make_batch(f"palaestra/{word.rpartition('/')[2]}")
    with pytest.raises(gymnasium.error.DeprecatedEnv, match=f"palaestra/{new}"):
        gymnasium.make(f"palaestra/{word.rpartition('/')[2]}")


def test_an_id_may_name_the_module_that_registers_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "other_games.py").write_text(
        "import palaestra\npalaestra.register('other/Rope-v3', 'palaestra.games.calibration.cartpole:game')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert console.find_id("other_games:other/Rope-v3") == "other/Rope-v3"
    finally:
        del registry.ROWS["other/Rope-v3"]


def test_an_unknown_id_suggests_the_near_one():
    with pytest.raises(KeyError, match="no environment 'CartPol', did you mean 'palaestra/CartPole-v0'"):
        console.find_id("CartPol")


def test_keywords_are_read_as_python_reads_them():
    args = SimpleNamespace(keywords=["a=1", "b=2.5", "c=[1, 2]", "d=stick", "e=None", "f=x=y"])
    read = common.keywords_of(args)  # type: ignore[arg-type]
    assert read == {"a": 1, "b": 2.5, "c": [1, 2], "d": "stick", "e": None, "f": "x=y"}


def test_a_keyword_without_a_value_is_refused(run, refused):
    assert "--set takes NAME=VALUE, got 'horizon'" in refused(run("info", CARTPOLE, "--set", "horizon"))


def test_json_has_no_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]):
    common.print_json({"a": float("inf"), "b": [float("nan"), 1.5]})
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [None, 1.5]}


# -- list, info --------------------------------------------------------------------------------------------------------


def test_list_shows_one_line_for_the_presets_of_a_factory(run):
    printed = run("list")
    assert printed.code == 0
    (soccer,) = (line.split() for line in printed.out.splitlines() if "Soccer" in line)
    assert soccer[:4] == ["palaestra/GridSoccer-v0", "4", "teams", "Littman's"]
    assert printed.out.endswith("palaestra list --all shows every preset.\n")
    assert "--all" not in run("list", "--family", "calibration").out


def test_list_all_shows_every_id_and_so_does_json(run):
    printed = run("list", "--all")
    assert printed.code == 0
    assert all(f"{id} " in printed.out for id in registry.ROWS)
    rows = {row["id"]: row for row in run("list", "--json").json()}
    assert set(rows) == set(registry.ROWS)
    assert rows["palaestra/TeamTag-2v2-v0"]["page"] == "TeamTag"
    assert rows["palaestra/TeamTag-2v2-v0"]["keywords"] == {"chasers": 2, "runners": 2}


def test_list_shows_one_family(run, refused):
    assert [row["id"] for row in run("list", "--family", "calibration", "--json").json()] == [CARTPOLE]
    assert "no family 'calibratio', did you mean 'calibration'?" in refused(run("list", "--family", "calibratio"))


def test_info_prints_the_page(run):
    printed = run("info", "CartPole")
    assert printed.code == 0
    for heading in ("## Action Space", "## Observation Space", "## Episode End"):
        assert heading in printed.out
    assert "angle_rad" in printed.out


def test_info_as_json_has_spaces_parameters_and_ends(run):
    printed = run("info", MELEE, "--json").json()
    assert printed["teams"]["red"] == [f"red_{k}" for k in range(5)]
    assert [p["name"] for p in printed["parameters"]] == ["horizon", "damage"]
    assert printed["end_reasons"] == ["horizon", "wiped_out"]
    assert (printed["opponents"], printed["held_out"]) == (["chaser", "random", "mix"], [])
    assert printed["zero_sum"]


def test_info_of_a_preset_is_about_this_one(run):
    assert "| `own` | [0:12] | 3x4 | 0 | 1 |" in run("info", "TeamGridSoccer-3x4").out
    printed = run("info", "TeamGridSoccer-3x4", "--json", "--set", "horizon=7").json()
    assert (printed["page"], printed["keywords"]) == ("GridSoccer", {"rows": 3, "columns": 4, "players": 2})
    assert printed["horizon"] == 7


# -- train, demo -------------------------------------------------------------------------------------------------------


@pytest.fixture
def methods(monkeypatch: pytest.MonkeyPatch):
    """Installs methods: ``methods(name=module)``."""

    def install(**modules: ModuleType | str) -> None:
        entries = []
        for name, module in modules.items():
            if isinstance(module, ModuleType):
                monkeypatch.setitem(sys.modules, module.__name__, module)
            target = module.__name__ if isinstance(module, ModuleType) else module
            entries.append(EntryPoint(name, target, common.METHODS))
        monkeypatch.setattr(common, "entry_points", lambda group: entries)
        monkeypatch.setattr(train_command, "entry_points", lambda group: entries)

    return install


def module_with(**members: object) -> ModuleType:
    module = ModuleType("somebodys_method")
    vars(module).update(members)
    return module


def test_train_hands_everything_else_to_the_method(run, methods):
    heard = []
    methods(mine=module_with(main=lambda argv: heard.append(argv)))
    assert run("train", "mine", "--help", "--steps", "3", "--debug").code == 0
    assert heard == [["--help", "--steps", "3", "--debug"]]


@pytest.mark.parametrize("words", [["--help"], ["-h"]])
def test_the_help_of_the_demo_shows_its_games(words: list[str], run):
    pytest.importorskip("tyro", reason="the demo comes with the baselines")
    printed = run("demo", *words)
    assert printed.code == 0
    for game in ("dogfight", "skirmish", "teams", "pursuit", "robots", "search"):
        assert re.search(rf"\b{game}, ", printed.out)
    assert "`" not in printed.out, "a terminal shows no markup"


def test_train_ends_as_the_method_ends(run, methods):
    methods(mine=module_with(main=lambda argv: 3))
    assert run("train", "mine").code == 3


def test_train_reads_the_arguments_of_a_method_without_main(run, methods):
    pytest.importorskip("tyro")
    from dataclasses import make_dataclass

    heard = []
    args = make_dataclass("Args", [("steps", int, 1)])
    methods(mine=module_with(Args=args, train=heard.append))
    assert run("train", "mine", "--steps", "5").code == 0
    assert heard[0].steps == 5


def test_train_without_a_method_lists_them(run, methods):
    methods(mine=module_with(), json="json", demo="somebodys_demo")
    rows = run("train").out.splitlines()
    assert rows[0].split() == ["method", "module", "about"]
    assert rows[1].startswith("json    json              JSON (JavaScript Object Notation)")
    assert rows[2].split() == ["mine", "somebodys_method"]
    assert len(rows) == 3  # the demo is a command of its own


def test_an_unknown_method_suggests_the_near_one_and_what_to_install(run, refused, methods):
    methods(fm3q=module_with())
    printed = refused(run("train", "fm3"))
    assert "no method 'fm3', did you mean 'fm3q'?" in printed
    assert 'pip install "palaestra[baselines]"' in printed


def test_a_method_whose_package_is_missing_says_what_to_install(run, refused, methods):
    methods(mine="a_package_that_nobody_has")
    printed = refused(run("train", "mine"))
    assert 'mine needs a_package_that_nobody_has, which is not installed: pip install "palaestra[baselines]"' in printed


def test_demo_is_the_demo_of_the_baselines(run, methods):
    heard = []
    methods(demo=module_with(main=lambda argv: heard.append(argv)))
    assert run("demo", "--seed", "3").code == 0
    assert heard == [["--seed", "3"]]


def test_demo_without_the_baselines_says_what_to_install(run, refused, methods):
    methods()
    assert 'pip install "palaestra[baselines]"' in refused(run("demo"))
    methods(demo="a_package_that_nobody_has")
    assert 'not installed: pip install "palaestra[baselines,flight,render]"' in refused(run("demo"))


# -- replay ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def match(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replays") / "match.npz"
    record(CARTPOLE, {"cart": push_right}, seed=3, horizon=20).save(path)
    return path


def test_replay_lists_the_contents_of_the_file(match: Path, run):
    printed = run("replay", match)
    assert printed.code == 0
    assert f"{match}: palaestra/CartPole-v0, horizon=20" in printed.out
    assert "players: cart push_right" in printed.out
    assert "names that only the file gives: cart push_right" in printed.out
    assert f"written by palaestra {palaestra.__version__}, according to the file" in printed.out
    assert "1 lane, 20 decisions, seed 3" in printed.out
    assert "no winner, horizon" in printed.out


def test_replay_proves_itself(match: Path, run):
    assert "repeats bitwise: 20 decisions" in run("replay", match, "--verify").out
    printed = run("replay", match, "--verify", "--json").json()
    assert printed["verification"]["ok"]
    assert printed["verification"]["digest"] == printed["digest"]


def test_a_replay_that_diverges_ends_with_1_and_says_where(match: Path, run, monkeypatch: pytest.MonkeyPatch):
    def plays_the_other_way(sim, step=KernelSimulation.step):
        sim.buffers.action_words[...] = 1 - sim.buffers.action_words
        step(sim)

    monkeypatch.setattr(KernelSimulation, "step", plays_the_other_way)
    printed = run("replay", match, "--verify")
    assert printed.code == 1
    assert "the replay diverges: lane 0, decision 1" in printed.out
    assert run("replay", match, "--verify", "--json").json()["verification"]["diverged_by"] == 1


def test_a_replay_that_lists_other_matches_ends_with_1_and_says_so(match: Path, tmp_path: Path, run):
    forge(match, tmp_path / "forged.npz", match_rows=np.array([[0, 7, 0, 1]]))
    printed = run("replay", tmp_path / "forged.npz", "--verify")
    assert printed.code == 1
    assert "the replay repeats, but the file gives other matches than were played" in printed.out
    assert run("replay", tmp_path / "forged.npz", "--verify", "--json").json()["verification"]["wrong"] == ["matches"]


def test_a_lane_that_the_replay_lacks_is_one_line(match: Path, tmp_path: Path, run, refused):
    for option in ("--gif", "--csv"):
        assert "has lanes 0 to 0, not 5" in refused(run("replay", match, option, tmp_path / "a.gif", "--lane", 5))
    assert "name the file *.gif" in refused(run("replay", match, "--gif", tmp_path / "a.mp4"))


def test_replay_exports(match: Path, tmp_path: Path, run):
    pytest.importorskip("PIL")
    files = ("--gif", tmp_path / "a.gif", "--csv", tmp_path / "a.csv")
    assert run("replay", match, *files, "--every", 10, "--render-size", "300x200").code == 0
    assert (tmp_path / "a.gif").read_bytes().startswith(b"GIF89a")
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 22


def test_replay_puts_several_matches_on_one_page_and_exports_one_alone(match: Path, tmp_path: Path, run, refused):
    pytest.importorskip("PIL")
    printed = run("replay", match, match, "--html", tmp_path / "both.html", "--json").json()
    assert [report["steps"] for report in printed] == [20, 20]
    assert (tmp_path / "both.html").read_text().count("<iframe srcdoc=") == 2
    printed = refused(run("replay", match, match, "--csv", tmp_path / "a.csv"))
    assert "--csv: of one replay alone, 2 are given" in printed


def test_a_game_without_aircraft_gives_no_flight_recording(match: Path, tmp_path: Path, run, refused):
    printed = refused(run("replay", match, "--acmi", tmp_path / "a.acmi"))
    assert "a flight recording is of aircraft, and CartPole has none" in printed
    assert not (tmp_path / "a.acmi").exists()


def test_a_file_that_is_no_replay_is_one_line(tmp_path: Path, run, refused):
    (tmp_path / "letter").write_text("dear friend\n" * 99)
    assert "is no replay of palaestra" in refused(run("replay", tmp_path / "letter"))
    assert "nothing: there is no such file" in refused(run("replay", tmp_path / "nothing"))


# -- check -------------------------------------------------------------------------------------------------------------


def report(passed: bool) -> SimpleNamespace:
    result = SimpleNamespace(name="x", status="passed" if passed else "FAILED", seconds=0.1, message="")
    times = {"seconds": 0.1, "compile_seconds": 0.0, "cpu_seconds": 0.0}
    return SimpleNamespace(id=MELEE, level="fast", passed=passed, results=[result], **times)


@pytest.fixture
def kit(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A conformance kit with a given verdict; it records its arguments."""
    kit = SimpleNamespace(passes=True, asked=[])

    def check(id, level, **options):
        kit.asked.append((id, level, options))
        return report(kit.passes)

    kit.check, kit.check_all = check, lambda level, *, ids, **options: [check(ids[0], level, **options)]
    monkeypatch.setitem(sys.modules, "palaestra.testing", kit)  # type: ignore[arg-type]
    monkeypatch.setattr(palaestra, "testing", kit, raising=False)
    return kit


def test_check_ends_with_the_verdict(kit: SimpleNamespace, run):
    assert run("check", MELEE).code == 0
    kit.passes = False
    assert run("check", MELEE).code == 1


def test_check_passes_level_choice_and_keywords_on(kit: SimpleNamespace, run):
    run("check", "CartPole", "--level", "full", "--skip", "x", "--seed", "5", "--set", "horizon=9")
    assert kit.asked == [(CARTPOLE, "full", {"only": None, "skip": ["x"], "seed": 5, "horizon": 9})]


def test_check_all_takes_every_id(kit: SimpleNamespace, run):
    printed = run("check", "--all", "--json").json()
    assert [id for id, _, _ in kit.asked] == list(registry.ROWS)
    assert printed[0]["checks"] == [{"name": "x", "status": "passed", "seconds": 0.1, "message": ""}]


def test_check_wants_an_id_or_all(run, refused):
    assert "give what to check: an ID, or --all" in refused(run("check"))
    assert "give what to check: an ID, or --all" in refused(run("check", "CartPole", "--all"))


def test_check_runs_the_real_kit(run):
    printed = run("check", "CartPole", "--only", "rewards_are_finite")
    assert printed.code == 0
    assert "rewards_are_finite" in printed.out


# -- doctor ------------------------------------------------------------------------------------------------------------


@pytest.mark.check
def test_doctor_names_versions_cores_and_the_cache(run):
    printed = run("doctor")
    assert printed.code == 0
    assert f"palaestra {palaestra.__version__}" in printed.out
    assert "compiled games: " in printed.out
    facts = run("doctor", "--json").json()
    assert facts["packages"]["numpy"] == np.__version__
    assert facts["cores"] >= 1
    wanted = {"folder", "folders", "writable", "note", "owner", "files", "megabytes", "damaged", "foreign"}
    assert wanted == set(facts["cache"])
    assert [row["status"] for row in facts["bits"]] == ["equal", "equal"]
    assert "bits of palaestra/GridSoccer-v0: equal" in printed.out
    assert 'if __name__ == "__main__":' in printed.out


def test_doctor_names_what_is_wrong_with_the_cache_and_the_bits(run, monkeypatch: pytest.MonkeyPatch):
    survey = {"files": 2, "megabytes": 1.0, "damaged": ["a.nbc"], "foreign": ["b.nbc"]}
    monkeypatch.setattr("palaestra.cli.doctor.disk_cache.survey", lambda files: survey)
    monkeypatch.setattr("palaestra.cli.bit_check.match_hash", lambda id: "0")
    printed = run("doctor")
    assert printed.code == 1
    assert "bits of palaestra/GridSoccer-v0: different (0 instead of" in printed.out
    if not jit_disabled():
        assert "DAMAGED, removed and compiled anew by the next game that needs them: a.nbc" in printed.out
        assert "not used, because others can have written them: b.nbc" in printed.out


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
    """Compiled games of two modules, beside another file."""
    files = [
        tmp_path / name
        for name in ("teams_1/pong.step_0123456789abcdef-7.py311.nbi", "exact_2/b.run_" + "0" * 16 + "-1.py311.1.nbc")
    ]
    for path in (*files, tmp_path / "teams_1" / "notes.nbi"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 1000)
    monkeypatch.setattr("palaestra.cli.doctor._folder_of_yardstick", lambda: str(tmp_path / "calibration_0"))
    return files


@pytest.mark.check
def test_doctor_names_each_folder_of_compiled_games(run, cache: list[Path], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("palaestra.cli.doctor.bit_check", lambda: [])
    monkeypatch.setattr("palaestra.core.compile.linker.jit_disabled", lambda: False)
    (cache[0].parents[1] / "calibration_0").mkdir()
    assert run("doctor", "--json").json()["cache"]["folders"] == {str(path.parent): 1 for path in cache}
    assert f"  {cache[0].parent}: 1\n" in run("doctor").out


def test_doctor_clears_the_compiled_games_and_nothing_else(run, refused, cache: list[Path]):
    assert "--clear removes what --warm compiles" in refused(run("doctor", "--clear", "--warm"))
    printed = run("doctor", "--clear")
    assert printed.out.startswith("removed 2 files of compiled games, 0.0 MB\n")
    assert not any(path.exists() for path in cache)
    assert (cache[0].parent / "notes.nbi").exists()
    assert run("doctor", "--clear", "--json").json()["removed"] == 0


@pytest.mark.check
def test_doctor_says_how_to_install_what_is_missing(run, monkeypatch: pytest.MonkeyPatch):
    from importlib.metadata import PackageNotFoundError

    def version(package: str) -> str:
        if package == "jsbsim":
            raise PackageNotFoundError
        return "1.0"

    monkeypatch.setattr("palaestra.cli.doctor.version", version)
    printed = run("doctor")
    assert printed.code == 0
    assert 'missing: pip install "palaestra[flight]"' in printed.out


@pytest.mark.check
def test_doctor_fails_without_a_package_that_everything_needs(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("palaestra.cli.doctor.REQUIRED", ("numpy", "a-package-that-does-not-exist"))
    assert run("doctor").code == 1


def test_doctor_warms_every_game_and_lists_failures(run, monkeypatch: pytest.MonkeyPatch):
    def breaks() -> Game:
        raise ZeroDivisionError("what no game survives")

    broken = registry.Row("test/Broken-v0", breaks, "test")
    missing = registry.Row("test/Missing-v0", "a_package_that_nobody_has:game", "test")
    monkeypatch.setattr(registry, "ROWS", {MELEE: registry.ROWS[MELEE], broken.id: broken, missing.id: missing})
    monkeypatch.setattr("palaestra.cli.doctor._cache", lambda: {**NO_CACHE, "folder": "x"})
    monkeypatch.setattr("palaestra.cli.doctor.bit_check", lambda: [])
    for name in OTHERS:
        monkeypatch.setitem(OTHERS, name, "builtins:dict")
    printed = run("doctor", "--warm", "--json")
    assert [game["status"] for game in printed.json()["games"]] == ["ready", "failed", "missing", "ready", "ready"]
    assert [game["id"] for game in printed.json()["games"][-2:]] == ["palaestra.exact", "palaestra.replay"]
    assert printed.code == 1
    assert [game["id"] for game in run("doctor", "--warm", "--json", MELEE).json()["games"]] == [MELEE]


def test_the_extras_of_doctor_are_those_of_the_package():
    import tomllib

    from palaestra.cli.doctor import OPTIONAL

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for package, installed_by in (OPTIONAL | registry.offers("needs")).items():
        extra = installed_by.removeprefix("palaestra[").removesuffix("]")
        requirements = project["optional-dependencies"][extra]
        assert any(text.startswith((f"{package}>", f"{package}[")) for text in requirements), (package, extra)
