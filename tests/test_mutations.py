"""The list of mutations fits the code, and its runner tells a caught mutation from one that survives."""

from __future__ import annotations

import ast
import functools
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[1]
FEWEST = 60


def load_runner() -> ModuleType:
    spec = importlib.util.spec_from_file_location("run_mutations", REPOSITORY / "tests" / "mutations" / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


runner = load_runner()
MUTATIONS = runner.load_mutations()


@functools.cache
def names_in(path: str) -> set[str]:
    """Functions and classes of a file."""
    tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize("file", sorted({m.file for m in MUTATIONS}))
def test_mutations_of_a_file_fit_it_and_name_tests_that_exist(file: str):
    source = (REPOSITORY / file).read_text(encoding="utf-8")
    for mutation in (m for m in MUTATIONS if m.file == file):
        ast.parse(mutation.applied(source))
        for test in mutation.tests:
            path, _, name = test.partition("::")
            assert not name or name.partition("[")[0] in names_in(path), mutation.why


def test_there_are_enough_mutations_of_rules_kernels_faces_and_learners():
    assert len(MUTATIONS) >= FEWEST
    assert {m.group for m in MUTATIONS} >= {"rules", "kernels", "faces", "learners"}
    assert len({(m.file, m.old, m.new) for m in MUTATIONS}) == len(MUTATIONS)


def mutation(old: str = "a + b", new: str = "a - b", test: str = "tests/test_add.py"):
    return runner.Mutation("rules", "envs/add.py", old, new, (test,), "adds")


def test_a_text_that_is_missing_or_stands_twice_is_refused():
    with pytest.raises(ValueError, match="0 times"):
        mutation(old="a * b").applied("return a + b")
    with pytest.raises(ValueError, match="2 times"):
        mutation().applied("a + b, a + b")
    with pytest.raises(ValueError, match="changes nothing"):
        mutation(new="a + b").applied("return a + b")


def write_small_repository(folder: Path) -> None:
    for name in ("envs", "tests"):
        (folder / name).mkdir(parents=True)
    (folder / "envs" / "add.py").write_text("def add(a, b):\n    c = 0\n    return a + b\n")
    (folder / "tests" / "test_add.py").write_text("from add import add\n\ndef test_add():\n    assert add(2, 3) == 5\n")
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["envs"]\n')


def test_the_runner_distinguishes_caught_survived_and_invalid(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(runner, "copy_repository", write_small_repository)
    outcomes = runner.run_all([mutation(), mutation("c = 0", "c = 1"), mutation("return", "retur")], 1, tmp_path)
    assert [o.verdict for o in outcomes] == [runner.CAUGHT, runner.SURVIVED, runner.INVALID]
    assert (tmp_path / "copy_0" / "envs" / "add.py").read_text().endswith("return a + b\n")
    assert runner.report(outcomes[:1]) == 0
    assert runner.report(outcomes[:2]) == 1
    assert runner.report(outcomes) == 2
    assert "1 of 3 caught" in capsys.readouterr().out


def test_a_test_that_fails_without_a_mutation_stops_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "copy_repository", write_small_repository)
    with pytest.raises(RuntimeError, match="without any mutation"):
        runner.run_all([mutation(test="tests/test_missing.py")], 1, tmp_path)


def test_an_entry_with_a_missing_key_is_refused(tmp_path):
    (tmp_path / "rules.toml").write_text('[[mutation]]\nfile = "a"\nold = "b"\n')
    with pytest.raises(ValueError, match="wants file, old, new, test, why"):
        runner.load_mutations(tmp_path)
