"""The commands of `make test-peers`, without installing anything: what is a limit, the table, the exit status."""

from __future__ import annotations

import importlib.util
import re
import sys
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


def test_the_list_names_scripts_and_tests_that_exist_and_pins_what_it_installs():
    libraries = runner.load_libraries()
    assert len(libraries) >= 12
    for library in libraries.values():
        assert (HERE / "libraries" / library.script).exists(), library.name
        assert all((runner.REPOSITORY / test).exists() for test in library.tests), library.name
        assert all("==" in r or "<" in r for r in library.requirements), library.name
        assert all(len(r.rpartition("@")[2]) == 40 for r in library.alone), library.name
        assert len(library.source.get("commit", "0" * 40)) == 40


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


def answer(*rows: Any) -> Any:
    """Runs nothing; its trials have these outcomes."""
    return lambda library, digest: runner.Result(library.name, digest, trials=list(rows))


@pytest.mark.parametrize(("broken", "status"), [([], 0), ([row(outcome="breaks")], 1)])
def test_the_exit_status_says_whether_something_breaks(broken, status, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    monkeypatch.setattr(runner, "Runner", lambda libraries, sources: answer(row(), *broken))
    assert runner.main(["--only", "sb3"]) == status
    assert ("breaks: Stable-Baselines3" in capsys.readouterr().out) == bool(status)


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
