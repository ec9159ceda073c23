"""The runner of `make test-peers`, without installing anything: what is run again, what a failure does, the table."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"peers_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


runner = load(HERE / "run.py")
trials = load(HERE / "libraries" / "trials.py")


def row(kind: str = "box", outcome: str = "works", what: str = "PPO", detail: str = "") -> dict[str, Any]:
    return {"kind": kind, "what": what, "outcome": outcome, "detail": detail, "seconds": 1.0}


LIBRARIES = {
    name: runner.Library(name, name.upper(), "trials.py", (f"{name}==1.0",), venv=name) for name in ("one", "two")
}


class Execute:
    """Notes what is run and answers with rows."""

    def __init__(self, **rows: Any) -> None:
        self.rows, self.ran = rows, []

    def __call__(self, library: Any, digest: str) -> Any:
        self.ran.append(library.name)
        found = self.rows.get(library.name, [row()])
        if isinstance(found, Exception):
            raise found
        return runner.Result(library.name, digest, trials=found)


def run(execute: Execute, folder: Path, only: tuple[str, ...] = ("one", "two"), **keywords: Any) -> list[Any]:
    return runner.run_all(LIBRARIES, only, execute, folder, **keywords)


def test_the_list_names_scripts_and_tests_that_exist_and_pins_what_it_installs():
    libraries = runner.load_libraries()
    assert len(libraries) >= 12
    for library in libraries.values():
        assert (HERE / "libraries" / library.script).exists(), library.name
        assert all((runner.REPOSITORY / test).exists() for test in library.tests), library.name
        assert all("==" in r or "<" in r for r in library.requirements), library.name
        assert all(len(r.rpartition("@")[2]) == 40 for r in library.alone), library.name
        assert len(library.source.get("commit", "0" * 40)) == 40


def test_an_unknown_key_is_refused_by_name(tmp_path):
    path = tmp_path / "libraries.toml"
    path.write_text('[one]\ntitle = "One"\nscript = "one.py"\nrequirements = []\nminute = 3\n')
    with pytest.raises(ValueError, match=r"\[one\].*minute"):
        runner.load_libraries(path)


def test_libraries_with_one_venv_are_installed_together_under_the_same_constraints(tmp_path):
    path = tmp_path / "libraries.toml"
    entry = '[{0}]\ntitle = "T"\nscript = "s.py"\nrequirements = ["{0}==1"]\nvenv = "v"\nconstraints = {1}\n'
    path.write_text(entry.format("one", "true") + entry.format("two", "true"))
    libraries = runner.load_libraries(path)
    assert runner.venv_requirements(libraries["one"], libraries) == ["one==1", "two==1"]
    path.write_text(entry.format("one", "true") + entry.format("two", "false"))
    with pytest.raises(ValueError, match=r"\[one\] and \[two\] differ"):
        runner.load_libraries(path)


def test_what_is_done_is_skipped_until_its_digest_changes_or_again_is_asked_for(tmp_path, monkeypatch):
    first, second, third, fourth = Execute(), Execute(), Execute(), Execute()
    results = run(first, tmp_path)
    assert first.ran == ["one", "two"]
    assert run(second, tmp_path) == results
    assert second.ran == []
    run(third, tmp_path, again=True)
    assert third.ran == ["one", "two"]
    monkeypatch.setitem(LIBRARIES, "two", runner.replace(LIBRARIES["two"], requirements=("two==2.0",)))
    run(fourth, tmp_path)
    assert fourth.ran == ["two"]


def test_the_digest_changes_with_the_script_and_the_sources(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "REPOSITORY", tmp_path)
    monkeypatch.setattr(runner, "HERE", tmp_path)
    monkeypatch.setattr(runner, "SHARED_SCRIPT", tmp_path / "shared.py")
    for path in ("libraries/trials.py", "shared.py", "envs/palaestra/core/a.py", "constraints.txt"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("1")
    digests = [runner.digest_of(LIBRARIES["one"], LIBRARIES)]
    for path in ("libraries/trials.py", "shared.py", "envs/palaestra/core/a.py", "constraints.txt"):
        (tmp_path / path).write_text("2")
        digests.append(runner.digest_of(LIBRARIES["one"], LIBRARIES))
    assert len(set(digests)) == 5


def test_only_the_chosen_are_run(tmp_path):
    execute = Execute()
    run(execute, tmp_path, ("two",))
    assert execute.ran == ["two"]
    assert runner.load_result("one", tmp_path) is None


def test_a_script_that_was_interrupted_goes_on_after_its_last_trial(tmp_path, monkeypatch):
    out, tried = tmp_path / "results", []
    rows = [row(what="one"), row(what="two", outcome="breaks")]
    out.write_text(json.dumps({"versions": {}, "trials": rows}))
    made = [trials.Trial("box", name, lambda name=name: tried.append(name), None) for name in ("one", "two", "three")]
    monkeypatch.setattr(trials, "TRIALS", made)
    monkeypatch.setattr(sys, "argv", ["script", "--out", str(out)])
    trials.main("numpy")
    assert tried == ["two", "three"]
    assert [row["what"] for row in json.loads(out.read_text())["trials"]] == ["one", "two", "three"]


def test_what_was_tried_so_far_is_forgotten_when_again_is_asked_for(tmp_path):
    path = runner.unfinished("one", runner.digest_of(LIBRARIES["one"], LIBRARIES), tmp_path)
    path.write_text("{}")
    run(Execute(), tmp_path, ("one",))
    assert path.exists()
    run(Execute(), tmp_path, ("one",), again=True)
    assert not path.exists()


def check_that_refuses(*refused: str) -> Any:
    def check(id: str) -> None:
        if id in refused:
            raise TypeError(f"no {id}")

    return check


@pytest.mark.check
def test_a_check_of_all_ids_names_those_that_fail_and_expects_the_refusals_that_are_declared(monkeypatch):
    monkeypatch.setattr(trials, "TRIALS", made := [])
    ids = ("a/1", "a/2", "a/3")
    trials.trial_of_ids("check", ids, limits={"no a": ("a/2",)})(check_that_refuses("a/2"))
    assert [one.what for one in made] == ["check, 2 of 3 ids", "check, 2"]
    assert [trials.attempt(one) for one in made] == [("works", ""), ("limit", "TypeError: no a/2")]
    made.clear()
    trials.trial_of_ids("check", ids, limits={"no a": ("a/2", "a/3")})(check_that_refuses("a/1", "a/2"))
    first, second = (trials.attempt(one) for one in made)
    assert first == ("breaks", "AssertionError: 1 of 1 ids, a/1: TypeError: no a/1")
    assert second == ("breaks", "AssertionError: no longer refused: a/3")


def test_an_assertion_without_a_message_is_quoted_and_a_library_s_line_is_named(monkeypatch):
    def refuse() -> None:
        compile_and_run = compile("assert 1 == 2\n", "/venv/site-packages/lib/a.py", "exec")
        exec(compile_and_run)

    said = trials.attempt(trials.Trial("box", "PPO", refuse, "AssertionError"))
    assert said == ("limit", "AssertionError:  (lib/a.py, line 1)")


def test_a_failure_is_kept_does_not_stop_the_others_and_is_tried_again(tmp_path, capsys):
    execute = Execute(one=runner.PeerError("pip install failed"))
    one, two = run(execute, tmp_path)
    assert (one.error, one.fails, two.fails) == ("pip install failed", True, False)
    assert runner.load_result("one", tmp_path) == one
    assert "pip install failed" in capsys.readouterr().out
    mended = Execute(one=[row(outcome="breaks")])
    assert run(mended, tmp_path)[0].fails
    assert mended.ran == ["one"]
    assert not run(Execute(one=[row(outcome="limit")]), tmp_path)[0].fails


def test_a_spoilt_result_is_run_again(tmp_path):
    (tmp_path / "one.json").write_text('{"name": "one"')
    execute = Execute()
    run(execute, tmp_path, ("one",))
    assert execute.ran == ["one"]


def test_the_table_says_yes_no_or_breaks_and_quotes_beside_it():
    found = [
        row(), row(outcome="limit", what="DQN", detail="DQN | `only` Discrete"),
        row("vector", "limit", "native", "no VectorEnv"),
        row("choices", "breaks", "masks", "KeyError: 'mask'"), row("choices"), row("ids"),
    ]  # fmt: skip
    results = [
        runner.Result("one", "", commit="0123456", versions={"one": "1.5", "gymnasium": "1.4"}, trials=found),
        runner.Result("two", "", error="pip failed"),
    ]
    shown, limits = runner.table(LIBRARIES, results)
    lines = shown.splitlines()
    assert lines[2] == "| ONE 1.5 | 0123456 | yes | yes [1] | - | **breaks** [2] | - | no [3] | - |"
    assert lines[3].startswith("| TWO | - | **breaks** [4] |")
    assert limits.splitlines() == [
        "1. ONE, DQN: the library's limit: `DQN / 'only' Discrete`",
        "2. ONE, masks: **breaks**: `KeyError: 'mask'`",
        "3. ONE, native: the library's limit: `no VectorEnv`",
        "4. TWO: **breaks**: `pip failed`",
    ]


def test_what_is_no_package_is_named_by_its_commit():
    library = runner.replace(LIBRARIES["one"], source={"repository": "a/one", "commit": "0123456789"})
    result = runner.Result("one", "", versions={"torch": "2.0"}, trials=[row()])
    assert runner.table({"one": library}, [result])[0].splitlines()[2].startswith("| ONE 0123456 | - | - | yes |")


def test_rows_of_libraries_without_a_result_stay_with_their_limits_numbered_anew():
    lines = ["| TWO 2.0 | abcdef0 | yes [12] | no [3] |", "| TWO and more | - | yes |", "| THREE 1 | - | yes [1] |"]
    limits = "1. THREE: `no`\n3. TWO, box: `three`\n12. TWO, ids: `twelve`"
    first = runner.Result("one", "", trials=[row(outcome="limit", what="DQN", detail="no")])
    shown, notes = runner.table(LIBRARIES, [first], ("\n".join(lines), limits))
    assert shown.splitlines()[3] == "| TWO 2.0 | abcdef0 | yes [2] | no [3] |"
    assert notes.splitlines()[1:] == ["2. TWO, ids: `twelve`", "3. TWO, box: `three`"]


def test_the_table_is_written_between_its_markers(tmp_path):
    page = tmp_path / "libraries.md"
    begin, end = "<!-- begin: libraries -->", "<!-- end: libraries -->"
    page.write_text(f"before\n{begin}\nold\n{end}\nafter\n")
    assert runner.write_table(page, "libraries", "| new |")
    assert page.read_text() == f"before\n{begin}\n| new |\n{end}\nafter\n"
    assert not runner.write_table(page, "libraries", "| new |")
    with pytest.raises(ValueError, match="has no lines"):
        runner.write_table(page, "limits", "| new |")


def test_the_page_has_the_markers_and_as_many_limits_as_the_table_counts():
    table, limits = (runner.read_table(runner.PAGE, name) for name in ("libraries", "limits"))
    counted = re.findall(r" \[(\d+)\]", table)
    assert counted == re.findall(r"^(\d+)\. ", limits, re.M)


def test_a_library_that_does_not_exist_is_refused_and_the_list_runs_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    with pytest.raises(SystemExit):
        runner.main(["--only", "sb4"])
    assert "no library 'sb4'" in capsys.readouterr().err
    assert runner.main(["--list"]) == 0
    assert capsys.readouterr().out.count("not run") == len(runner.load_libraries())


@pytest.mark.parametrize(("broken", "status"), [([], 0), ([row(outcome="breaks")], 1)])
def test_the_exit_status_says_whether_something_breaks(broken, status, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    monkeypatch.setattr(runner, "Runner", lambda libraries, sources: Execute(sb3=[row(), *broken]))
    assert runner.main(["--only", "sb3"]) == status
    assert ("breaks: Stable-Baselines3" in capsys.readouterr().out) == bool(status)


def test_a_command_shows_its_marked_lines_logs_all_and_says_how_it_failed(tmp_path, capsys):
    log = tmp_path / "log"
    code = "import sys; print('| shown'); print('logged'); sys.exit(3)"
    assert runner.stream([sys.executable, "-S", "-c", code], log, 20.0, {}) == "failed with status 3"
    assert capsys.readouterr().out == "    shown\n"
    assert log.read_text().splitlines() == ["| shown", "logged"]


@pytest.mark.check
@pytest.mark.skipif(os.name == "nt", reason="groups of processes are POSIX's")
def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path):
    command = ["sh", "-c", "sleep 60 & echo $!; wait"]
    start_s = time.perf_counter()
    assert runner.stream(command, tmp_path / "log", 0.4, {}) == "ran past 0.4 s"
    assert time.perf_counter() - start_s < 20
    pid = int((tmp_path / "log").read_text())
    deadline_s = time.perf_counter() + 5
    while is_running(pid) and time.perf_counter() < deadline_s:
        time.sleep(0.01)
    assert not is_running(pid)


def is_running(pid: int) -> bool:
    """Whether there is such a process; one that ended and that nobody asked for its status counts as ended."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():
        return "(zombie)" not in status.read_text()
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def refuse() -> None:
    raise TypeError("only supports Discrete")


def test_a_limit_is_quoted_only_if_the_library_says_so():
    def attempt(run: Any, limit: str | None) -> tuple[str, str]:
        return trials.attempt(trials.Trial("box", "PPO", run, limit))

    assert attempt(lambda: "fine", None) == ("works", "fine")
    assert attempt(refuse, "only supports") == ("limit", "TypeError: only supports Discrete")
    assert attempt(refuse, "another")[0] == "breaks"
    assert attempt(refuse, None)[0] == "breaks"
    assert attempt(lambda: None, "only supports")[1].startswith("no longer refused")

    def break_palaestra() -> None:
        import palaestra

        palaestra.make_batch("palaestra/Nothing-v0")

    assert attempt(break_palaestra, "no environment")[0] == "breaks"


def test_a_library_below_a_folder_named_palaestra_is_no_part_of_ours(tmp_path: Path):
    script = tmp_path / "palaestra" / "library.py"
    script.parent.mkdir()
    script.write_text("raise TypeError('only supports Discrete')\n")

    def run_library() -> None:
        trials.run_program([sys.executable, "-S", script], tmp_path)

    assert trials.attempt(trials.Trial("box", "PPO", run_library, "only supports"))[0] == "limit"


def test_a_program_that_fails_is_quoted_by_its_last_error_and_its_file(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("def f():\n    raise AssertionError('only discrete action space is supported')\n\nf()\n")
    with pytest.raises(trials.ProgramError, match=r"^AssertionError: only discrete") as caught:
        trials.run_program([sys.executable, "-S", script], tmp_path)
    assert caught.value.file == str(script)
    script.write_text("print('done')")
    assert trials.run_program([sys.executable, "-S", script], tmp_path) == "done\n"
