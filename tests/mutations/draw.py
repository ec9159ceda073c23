"""Random mutants: breaks the code at places drawn by a seed, and counts how many of them the tests catch.

    python tests/mutations/draw.py --count 300  # goes on where it was stopped
    python tests/mutations/draw.py --list       # what is drawn
    python tests/mutations/draw.py --summary    # what was caught

Lines are drawn alike often from three rooms in turn, so that any first part of the rows is a fair sample: rules (what
the hooks of all ids reach under ``games/``, and constants of these files), learners and faces. A mutant turns a
comparison, ``+``, ``and``, ``min`` or a condition round, moves a number by one, or drops a statement (none that binds a
variable, which any test would notice); one that leaves the byte code as it is is not drawn. It stands in a copy of one
commit. Its tests are those of its folder that reach it, the nearest first: interpreted ones, recorded play of its ids,
compiled ones, the conformance kit, and last what neither `make test` nor `make check` runs: compiled, what the former
runs without the compiler. The digest of rules, which sees every change, is left out. A test that takes three minutes
hangs, and catches the mutant. The folder holds the copy, its warm cache and a table with a row a mutant. Needs git, and
Linux or macOS.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import functools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run import COPIED, COPIED_FILES, REPOSITORY, run_tests

ROOMS = {
    "rules": ("envs/palaestra/games",),
    "learners": ("baselines/palaestra_baselines",),
    "faces": ("envs/palaestra/core/faces", "envs/palaestra/core/run"),
}
SWAPPED: dict[type, type] = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq},
    **{ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In},
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.And: ast.Or, ast.Or: ast.And},
}
OTHER = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
DROPPED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Raise)
HANG_S, PHASE_S, MEMORY_BYTES = 180, 1500.0, 12 << 30
FACES = ("palaestra/CartPole-v0", "palaestra/TeamTag-2v2-v0")
"""Ids that the kit plays for mutants of faces."""
MOST_IDS = 3
OPTIONS = ("-o", f"faulthandler_timeout={HANG_S}", "-o", "faulthandler_exit_on_timeout=true")
ELSEWHERE = "browser or learning or peers or ray or slow"
JITLESS, COMPILED = f"jitless and not ({ELSEWHERE})", f"not (jitless or {ELSEWHERE})"
LEFT = "left"
"""The phase of tests that belong to neither `make test` nor `make check`."""


@dataclass(frozen=True)
class Mutant:
    """One place of a file and the text that takes its place.

    Attributes:
        room: One of `ROOMS`.
        file: Path in the repository.
        line: Its first line, from 1.
        start: Its first byte.
        end: The byte after its last.
        old: Its text.
        new: The text that takes its place.
    """

    room: str
    file: str
    line: int
    start: int
    end: int
    old: str
    new: str

    def __str__(self) -> str:
        """One line that tells what is changed."""
        return " ".join(f"{self.old[:80]} -> {self.new[:80]}".split())


def changes(node: ast.AST, is_inside: bool) -> Iterator[ast.AST]:
    """The changed forms of one node; statements are dropped inside of functions alone."""
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            changed = copy.deepcopy(node)
            changed.ops[place] = SWAPPED[type(operator)]()
            yield changed
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPPED:
        changed = copy.deepcopy(node)
        changed.op = SWAPPED[type(node.op)]()
        yield changed
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        yield from (ast.Constant(node.value + by) for by in (1, -1))
    elif isinstance(node, ast.Call):
        changed = copy.deepcopy(node)
        if isinstance(changed.func, ast.Name) and changed.func.id in OTHER:
            changed.func.id = OTHER[changed.func.id]
            yield changed
        elif isinstance(changed.func, ast.Attribute) and changed.func.attr in OTHER:
            changed.func.attr = OTHER[changed.func.attr]
            yield changed
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    binds = isinstance(node, ast.Assign) and not isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    if isinstance(node, DROPPED) and is_inside and not is_text and not binds:
        yield ast.Pass()


def changed_places(tree: ast.AST, reached: set[int] | None) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Nodes of a tree with the texts that may take their places.

    Annotations and pieces of f-strings are left out, and functions whose first line is not in ``reached``, if given.
    """
    for name, value in ast.iter_fields(tree):
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, ast.JoinedStr) or name in ("annotation", "returns"):
                continue
            if isinstance(node, ast.FunctionDef | ast.Lambda) and reached is not None:
                first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
                if first not in reached:
                    continue
            if isinstance(node, ast.expr | ast.stmt):
                for changed in changes(node, not isinstance(tree, ast.Module | ast.ClassDef)):
                    yield node, ast.unparse(changed) if isinstance(node, ast.stmt) else f"({ast.unparse(changed)})"
                if name == "test" and isinstance(tree, ast.If | ast.While | ast.IfExp):
                    yield node, f"(not ({ast.unparse(node)}))"
            yield from changed_places(node, reached)


def mutants_of(room: str, file: str, source: bytes, reached: set[int] | None) -> dict[int, list[Mutant]]:
    """All mutants of a file, by line."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: dict[int, list[Mutant]] = {}
    for node, text in changed_places(ast.parse(source), reached):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        mutant = Mutant(room, file, node.lineno, start, end, source[start:end].decode(), text)
        found.setdefault(node.lineno, []).append(mutant)
    return found


def mutated(mutant: Mutant, source: bytes) -> bytes:
    """The file with the mutant."""
    return source[: mutant.start] + mutant.new.encode() + source[mutant.end :]


def essence(source: bytes) -> Any:
    """What the byte code of a source does, without its lines; None where it is no Python."""

    def of(code: types.CodeType) -> Any:
        inner = [of(c) if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
        return code.co_code, code.co_names, code.co_varnames, inner

    try:
        return of(compile(source, "", "exec"))
    except SyntaxError:
        return None


class Tree:
    """A copy of one commit, in which mutants stand one at a time.

    Attributes:
        folder: The copy.
        ids: By file and first line: ids whose hooks reach the function there.
    """

    def __init__(self, commit: str, folder: Path) -> None:
        self.folder, self.ids = folder, dict[str, dict[int, list[str]]]()
        if not folder.exists():
            folder.mkdir(parents=True)
            files = subprocess.run(
                ["git", "archive", commit, *COPIED, *COPIED_FILES], cwd=REPOSITORY, check=True, stdout=subprocess.PIPE
            )
            subprocess.run(["tar", "-x", "-C", str(folder)], input=files.stdout, check=True)
        if not (folder.parent / "warm").exists():
            path = os.pathsep.join(str(folder / name) for name in ("envs", "baselines", "assets"))
            places = {"PYTHONPATH": path, "NUMBA_CACHE_DIR": str(folder.parent / "warm")}
            warm = [sys.executable, "-m", "palaestra", "doctor", "--warm", "--jobs", "2"]
            subprocess.run(warm, cwd=folder, env={**os.environ, **places}, check=True)
        sys.path[:0] = [str(folder / name) for name in ("envs", "baselines", "assets")]
        from palaestra import registry
        from palaestra.core.compile.identity import rules_code

        for id in registry.ROWS:
            for found in rules_code(registry.make_game(id)[0]):
                if found.number >= 0 and found.is_new and (code := getattr(found.value, "__code__", None)):
                    file = code.co_filename.removeprefix(f"{folder}/")
                    self.ids.setdefault(file, {}).setdefault(code.co_firstlineno, []).append(id)

    def draw(self, count: int, seed: int) -> list[Mutant]:
        """Mutants from the rooms in turn."""
        numbers, lines = random.Random(seed), dict[str, list[list[Mutant]]]()
        for room, folders in ROOMS.items():
            lines[room] = []
            for path in sorted(p for name in folders for p in (self.folder / name).rglob("*.py")):
                file = path.relative_to(self.folder).as_posix()
                if room != "rules" or file in self.ids:
                    reached = set(self.ids[file]) if room == "rules" else None
                    lines[room] += mutants_of(room, file, path.read_bytes(), reached).values()
        drawn: list[Mutant] = []
        while len(drawn) < count:
            room = list(ROOMS)[len(drawn) % len(ROOMS)]
            mutant = numbers.choice(numbers.choice(lines[room]))
            before = (self.folder / mutant.file).read_bytes()
            after = essence(mutated(mutant, before))
            if after is not None and after != essence(before) and mutant not in drawn:
                drawn.append(mutant)
        return drawn

    def ids_of(self, mutant: Mutant) -> list[str]:
        """Some ids whose rules have the mutant."""
        if mutant.room != "rules":
            return list(FACES) if mutant.room == "faces" else []
        reached = self.ids[mutant.file]
        first = max((line for line in reached if line <= mutant.line), default=min(reached))
        return reached[first][:: max(1, len(reached[first]) // MOST_IDS)][:MOST_IDS]

    @functools.cached_property
    def imports(self) -> dict[str, set[str]]:
        """By file of the learners: names of the files it imports, and of those that these import."""
        found = {p.stem: self.named(p.read_text()) for p in (self.folder / ROOMS["learners"][0]).rglob("*.py")}
        for _ in range(8):
            found = {name: used.union(*(found.get(u, ()) for u in used)) for name, used in found.items()}
        return found

    def named(self, text: str) -> set[str]:
        """Last names of modules in the imports of a text."""
        lines = re.findall(r"^ *(?:from|import) +(palaestra_baselines.*(?:\([^)]*\))?)", text, re.MULTILINE)
        return set(re.findall(r"\w+", " ".join(lines)))

    def test_files(self, mutant: Mutant) -> list[str]:
        """Files of tests that may reach a mutant; those that name its file most often come first."""
        stem = Path(mutant.file).stem
        folder = {"learners": "baselines", "faces": "core"}.get(mutant.room) or mutant.file.split("/")[3]
        texts = {p: p.read_text(encoding="utf-8") for p in (self.folder / "tests" / folder).rglob("test_*.py")}
        if mutant.room == "learners":
            near = {p: set(re.findall(r"\w+", text)) for p, text in texts.items()}
            texts = {
                p: texts[p] for p, words in near.items() if any(stem in {w, *self.imports.get(w, ())} for w in words)
            }
        count = {p: (stem in p.stem, len(re.findall(rf"\b{stem}\b", text))) for p, text in texts.items()}
        return [str(p.relative_to(self.folder)) for p in sorted(texts, key=lambda p: (*count[p], p), reverse=True)]

    def phases(self, mutant: Mutant) -> Iterator[tuple[str, dict[str, str], list[str]]]:
        """Names, environment variables and arguments of pytest of the runs that may catch a mutant, the quick first."""
        files, ids = self.test_files(mutant), self.ids_of(mutant)
        if mutant.room != "learners":
            yield "interpreted", {"NUMBA_DISABLE_JIT": "1"}, ["-m", JITLESS, *files]
        if mutant.room == "rules":
            yield "recorded", {}, [f"tests/testing/test_golden.py::test_an_id_plays_as_recorded[{id}]" for id in ids]
        yield "compiled", {}, ["-m", COMPILED, *files]
        if ids:
            kit = "tests/testing/test_registered_ids.py::test_an_id_passes_the_conformance_kit"
            yield "kit", {}, [f"{kit}[{id}]" for id in ids]
            yield LEFT, {}, ["-m", JITLESS, *files]

    def run(self, mutant: Mutant) -> dict[str, Any]:
        """Plants a mutant, runs its tests and takes it back; the row of the table."""
        path, started_s = self.folder / mutant.file, time.perf_counter()
        source, stat = path.read_bytes(), path.stat()
        row, own = {"verdict": "survived", "phase": "", "caught_by": ""}, self.folder.parent / "own"
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(self.folder.parent / "warm", own, copy_function=os.link)
        path.write_bytes(mutated(mutant, source))
        try:
            for phase, variables, arguments in self.phases(mutant):
                variables["NUMBA_CACHE_DIR"] = str(own)
                status, output = run_tests(self.folder, [*OPTIONS, *arguments], PHASE_S, variables)
                if status not in (0, 5):
                    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
                    hangs = status < 0 or "Timeout (" in output
                    row = {
                        "verdict": "caught" if failed else "hangs" if hangs else f"status {status}",
                        "phase": phase,
                        "caught_by": failed[1] if failed else "",
                    }
                    break
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        described = {"room": mutant.room, "file": mutant.file, "line": mutant.line, "what": str(mutant)}
        return {**described, **row, "seconds": round(time.perf_counter() - started_s, 1)}


def read_rows(path: Path) -> dict[int, dict[str, str]]:
    """The rows of a table, by the number of their mutants."""
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {int(row["number"]): row for row in csv.DictReader(file)}


def summary(rows: Sequence[dict[str, str]]) -> str:
    """Caught mutants by room, those that are caught only by tests that were left, and those that survived."""
    lines = []
    for room in ROOMS:
        own = [row for row in rows if row["room"] == room]
        survived = sum(row["verdict"] == "survived" for row in own)
        left = sum(row["phase"] == LEFT for row in own)
        lines.append(
            f"{room:10s} {len(own) - survived - left} of {len(own)} caught, {left} more by tests that were left"
        )
    found = [r for r in rows if r["verdict"] == "survived" or r["phase"] == LEFT]
    lines += [f"{r['verdict']} {r['phase']} {r['file']}:{r['line']}: {r['what']} {r['caught_by']}" for r in found]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Draws mutants and runs those without a row; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="mutants, a third from each room (default 300)")
    parser.add_argument("--seed", type=int, default=61, help="seed of the draw (default 61)")
    parser.add_argument("--commit", default="HEAD", help="what is broken, where the folder has no copy yet")
    parser.add_argument("--folder", type=Path, default=REPOSITORY / "build" / "mutants", help="where all is kept")
    parser.add_argument("--list", action="store_true", help="print the mutants and run none")
    parser.add_argument("--summary", action="store_true", help="print what the table has and run none")
    args = parser.parse_args(argv)
    folder = args.folder.resolve()
    table = folder / f"mutants-{args.seed}.csv"
    if args.summary:
        print(summary(list(read_rows(table).values())))
        return 0
    tree = Tree(args.commit, folder / "copy")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the mutant is taken back
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for number, mutant in enumerate(tree.draw(args.count, args.seed)):
        if args.list:
            print(f"{number:3d} {mutant.room:8s} {mutant.file}:{mutant.line}: {mutant}")
            continue
        rows = read_rows(table)
        if number in rows:
            continue
        row = {"number": number, **tree.run(mutant)}
        with table.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if not rows:
                writer.writeheader()
            writer.writerow(row)
        print(*row.values(), flush=True)
    if not args.list:
        print(summary(list(read_rows(table).values())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
