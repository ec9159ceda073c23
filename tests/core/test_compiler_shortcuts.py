"""The shortcuts through numba's compiler: equal results, less work, and no trace of them outside."""

from __future__ import annotations

import collections
import threading
import types
from collections.abc import Callable

import llvmlite.binding
import numba
import numpy as np
import pytest
from numba.core import analysis, codegen, event, postproc
from numba.core.types import functions, npytypes

from palaestra.core.compile import compiler
from palaestra.core.compile.compiler_shortcuts import LARGE, shortcuts
from palaestra.core.compile.linker import jit_disabled

pytestmark = pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")

RECORD = np.dtype([("x", "f8"), ("n", "i8")], align=True)
PLACES = (
    (codegen.JITCodeLibrary, "finalize"),
    (codegen.CPUCodeLibrary, "_optimize_functions"),
    (codegen.CPUCodeLibrary, "_optimize_final_module"),
    (codegen.JITCPUCodegen, "set_env"),
    (functions.BaseFunction, "get_call_type"),
    (npytypes.Record, "__repr__"),
    (postproc.PostProcessor, "run"),
    (event, "start_event"),
    (event, "end_event"),
)


class Program:
    """A driver that calls functions which call each other, one of them from two places, and one that calls itself."""

    def __init__(self) -> None:
        self.inside = compiler.Inside()
        root = self._inside("def root(x):\n    return math.sqrt(min(max(x, 0.0), 9.0))", {})
        half = self._inside("def half(s):\n    s.x = 0.5 * root(s.x) + s.n == 3", {"root": root})
        sums = self._inside("def sums(n):\n    if n == 0:\n        return 0\n    return n + sums(n - 1)", {})
        both = "def both(s):\n    half(s)\n    s.n += sums(s.n)\n    s.x += root(s.x + s.n)"
        self._both = self._inside(both, {"half": half, "root": root, "sums": sums})
        lines = "def driver(records):\n    for i in range(len(records)):\n        both(records[i])"
        self.driver = numba.njit(**compiler.options(inside=False))(self._plain(lines, {"both": self._both}))

    def run(self) -> bytes:
        records = np.zeros(3, RECORD)
        records["x"], records["n"] = (4.0, -1.0, 70.0), (3, 0, 5)
        self.driver(records)
        return records.tobytes()

    def _inside(self, source: str, scope: dict) -> Callable:
        function = self._plain(source, scope)
        compiled = self.inside.compile(function)
        function.__globals__[function.__name__] = compiled
        return compiled

    @staticmethod
    def _plain(source: str, scope: dict) -> types.FunctionType:
        import math

        names = {"math": math, "__name__": __name__, **scope}
        exec(source, names)
        (function,) = [v for v in names.values() if isinstance(v, types.FunctionType)]
        return function


@numba.njit
def squares(n):
    for i in range(n):
        yield i * i


@numba.njit
def sum_of_squares(n):
    total = 0
    for square in squares(n):
        total += square
    return total


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list:
    """Arguments of all calls of a method from now on."""
    calls, plain = [], getattr(owner, name)

    def counting(*arguments):
        calls.append(arguments)
        return plain(*arguments)

    monkeypatch.setattr(owner, name, counting)
    return calls


def in_place() -> list:
    return [getattr(owner, name) for owner, name in PLACES]


@pytest.mark.check
@pytest.mark.parametrize("count", [LARGE - 1, LARGE])
def test_results_are_those_of_numba_alone(count: int):
    plain, quick = Program(), Program()
    with shortcuts(quick.inside.mark, count):
        quick_result = quick.run()
    assert quick_result == plain.run()
    assert quick.run() == quick_result


@pytest.mark.check
def test_only_the_driver_becomes_machine_code(monkeypatch: pytest.MonkeyPatch):
    program, calls = Program(), counted(monkeypatch, codegen.CPUCodeLibrary, "_optimize_final_module")
    with shortcuts(program.inside.mark):
        program.run()
    names = [library.name for (library,) in calls]
    assert "driver" in names[-1]
    assert [name for name in names if program.inside.mark in name] == []
    without = Program()
    without.run()
    assert sum(without.inside.mark in library.name for (library,) in calls) >= 4


@pytest.mark.parametrize(("count", "runs"), [(LARGE - 1, 2), (LARGE, 1)])
def test_large_kernels_are_optimised_in_one_run(monkeypatch: pytest.MonkeyPatch, count: int, runs: int):
    program = Program()
    calls = counted(monkeypatch, llvmlite.binding.newpassmanagers.ModulePassManager, "run")
    with shortcuts(program.inside.mark, count):
        program.run()
    drivers = [module for _, module, *_ in calls if "driver" in module.name]
    assert len(drivers) == runs


def test_each_module_is_linked_once(monkeypatch: pytest.MonkeyPatch):
    program, calls = Program(), counted(monkeypatch, codegen.CPUCodeLibrary, "_get_module_for_linking")
    with shortcuts(program.inside.mark):
        program.run()
    counts = collections.Counter(library.name for (library,) in calls if program.inside.mark in library.name)
    assert len(counts) == 4
    assert set(counts.values()) == {1}


@pytest.mark.check
def test_an_operator_is_typed_once_for_the_same_types(monkeypatch: pytest.MonkeyPatch):
    program, calls = Program(), counted(monkeypatch, functions.BaseFunction, "get_call_type")
    with shortcuts(program.inside.mark):
        program.run()
    with_shortcuts = collections.Counter((f, tuple(a)) for f, _, a, kws in calls if not kws)
    calls.clear()
    Program().run()
    without = collections.Counter((f, tuple(a)) for f, _, a, kws in calls if not kws)
    key = max(without, key=without.__getitem__)
    assert without[key] > 1
    assert with_shortcuts[key] == 1


@pytest.mark.check
def test_live_variables_are_looked_for_in_generators_alone(monkeypatch: pytest.MonkeyPatch):
    program, calls = Program(), counted(monkeypatch, analysis, "compute_live_variables")
    with shortcuts(program.inside.mark):
        program.run()
        assert calls == []
        assert sum_of_squares(5) == 30
    assert calls != []


def test_nothing_is_left_behind():
    before = in_place()
    with shortcuts("mark", LARGE):
        assert all(now is not then for now, then in zip(in_place(), before, strict=True))
        with shortcuts("other"):  # a native function that is compiled for another one
            pass
    assert in_place() == before
    with pytest.raises(KeyError), shortcuts("mark"):
        raise KeyError
    assert in_place() == before
    assert "finalize" not in vars(codegen.JITCodeLibrary)


@pytest.mark.check
def test_other_threads_compile_as_before(monkeypatch: pytest.MonkeyPatch):
    program, other = Program(), Program()
    calls, results = counted(monkeypatch, codegen.CPUCodeLibrary, "_optimize_final_module"), []
    thread = threading.Thread(target=lambda: results.append(other.run()))
    with shortcuts(other.inside.mark):
        thread.start()
        thread.join()
        result = program.run()
    assert sum(other.inside.mark in library.name for (library,) in calls) >= 4
    assert results == [result]


def test_code_of_the_user_that_is_compiled_inside_can_be_called():
    program = Program()

    @numba.njit
    def inner(x):
        return min(x, 2.0) + 1.0

    @numba.njit
    def outer(x):
        return inner(x) * inner(x + 1.0)

    with shortcuts(program.inside.mark):
        assert outer(1.0) == 6.0
        assert inner(5.0) == 3.0


@pytest.mark.check
@pytest.mark.parametrize(
    ("owner", "name"), [(codegen, "RuntimeLinker"), (functions, "BaseFunction"), (npytypes, "Record")]
)
def test_another_numba_compiles_without_them(monkeypatch: pytest.MonkeyPatch, owner: types.ModuleType, name: str):
    program, expected = Program(), Program().run()
    with monkeypatch.context() as patch:
        patch.delattr(owner, name)
        context = shortcuts(program.inside.mark)
        context.__enter__()
    try:
        assert program.run() == expected
    finally:
        context.__exit__(None, None, None)
