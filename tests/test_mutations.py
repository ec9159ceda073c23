"""The list of mutations fits the code, and its runner tells a caught mutation from one that survives."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
import sys
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.check
REPOSITORY = Path(__file__).parents[1]
FEWEST = 60


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, REPOSITORY / "tests" / "mutations" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


runner = load("run")
draw = load("draw")  # imports run
MUTATIONS = runner.load_mutations()


@functools.cache
def marks_in(path: str) -> dict[str, set[str]]:
    """Functions and classes of a file, and the markers of each, those of the whole file among them."""
    tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))

    def marks(*decorators: ast.expr) -> set[str]:  # not those of single parameters
        return {name for d in decorators for name in re.findall(r"^pytest\.mark\.(\w+)", ast.unparse(d))}

    alone = [n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "pytestmark"]
    shared = marks(*(d for n in alone for d in (n.elts if isinstance(n, ast.List) else [n])))
    named = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.ClassDef))
    return {n.name: shared | marks(*n.decorator_list) for n in named}


def test_mutations_fit_the_code_and_name_tests_that_exist():
    for mutation in MUTATIONS:
        *_, changed = mutation.changed((REPOSITORY / mutation.file).read_text(encoding="utf-8"))
        ast.parse(textwrap.dedent(changed))
        for test in mutation.tests:
            path, _, name = test.partition("::")
            assert not name or name.partition("[")[0] in marks_in(path), str(mutation)


def test_every_named_test_runs_in_make_test_or_make_check():
    for mutation in MUTATIONS:
        for path, _, name in (test.partition("::") for test in mutation.tests):
            marks = marks_in(path)[name.partition("[")[0]] if name else set().union(*marks_in(path).values())
            assert marks.isdisjoint(("browser", "learning", "peers", "ray", "slow")), str(mutation)


def test_there_are_enough_mutations_of_rules_kernels_faces_and_learners():
    assert len(MUTATIONS) >= FEWEST
    assert {m.group for m in MUTATIONS} >= {"rules", "kernels", "faces", "learners"}
    assert len({(m.file, m.place, m.old, m.new) for m in MUTATIONS}) == len(MUTATIONS)


def mutation(old: str = "a + b", new: str = "a - b", test: str = "tests/test_add.py", place: str = ""):
    return runner.Mutation("rules", "envs/add.py", place, old, new, (test,), "adds")


def test_a_place_or_a_text_that_is_missing_or_stands_twice_is_refused_by_the_name_of_the_entry():
    with pytest.raises(ValueError, match=r"rules\.toml, add\.py, 'adds': the old text stands 0 times"):
        mutation(old="a * b").applied("a + b")
    with pytest.raises(ValueError, match="2 times"):
        mutation().applied("a + b, a + b")
    with pytest.raises(ValueError, match="'adds': changes nothing"):
        mutation(new="a + b").applied("a + b")
    with pytest.raises(ValueError, match=r"'adds': 'sum' stands 0 times in envs/add\.py"):
        mutation(place="sum").applied("a + b")


def test_a_text_need_stand_once_in_its_function_alone():
    source = "class A:\n    def f(a, b):\n        return a + b\n\n\ndef f(a, b):\n    return a + b\n"
    assert mutation(place="f").applied(source) == "a - b".join(source.rsplit("a + b", 1))
    assert mutation(place="A.f").applied(source) == "a - b".join(source.split("a + b", 1))


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


def test_an_entry_of_other_than_four_strings_and_an_unknown_file_are_refused(tmp_path):
    (tmp_path / "rules.toml").write_text('["pong.py"]\n"test_a.py" = [["step", "old", "new"]]\n')
    with pytest.raises(ValueError, match="wants function, old, new, why"):
        runner.load_mutations(tmp_path)
    for name in ("pnog.py", "__init__.py"):
        (tmp_path / "rules.toml").write_text(f'["{name}"]\n')
        with pytest.raises(ValueError, match=f"files are called '{name}', not one"):
            runner.load_mutations(tmp_path)


def test_mutants_are_drawn_where_byte_code_changes_and_only_in_functions_that_are_reached():
    source = b"""N = 3
def f(a: int = 1) -> int:
    'text'
    if a < N and f:
        a += min(a, 2)
    return a
def g(a):
    return a - 1
"""
    found = draw.mutants_of("rules", "x.py", source, {2})
    assert {line: sorted(m.new for m in mutants) for line, mutants in found.items()} == {
        1: ["(2)", "(4)"],
        2: ["(0)", "(2)"],
        4: ["(a < N or f)", "(a <= N)", "(not (a < N and f))"],
        5: ["(1)", "(3)", "(max(a, 2))", "a -= min(a, 2)", "pass"],
        6: ["pass"],
    }
    for mutant in (m for mutants in found.values() for m in mutants):
        assert draw.essence(draw.mutated(mutant, source)) not in (None, draw.essence(source))
    assert draw.essence(source) == draw.essence(b"\n" + source.replace(b"a < N and f:", b"(a <N) and f:  # why"))
