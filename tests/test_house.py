"""The rules of this repository: allowed imports, cost of an import, length of files, promises of the documentation."""

from __future__ import annotations

import ast
import functools
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import palaestra_assets
from palaestra import registry
from palaestra.cli.doctor import OPTIONAL

pytestmark = pytest.mark.check

HOUSE = Path(__file__).parents[1]
SOURCES = {
    "palaestra": HOUSE / "envs" / "palaestra",
    "palaestra_baselines": HOUSE / "baselines" / "palaestra_baselines",
    "palaestra_assets": HOUSE / "assets" / "palaestra_assets",
}
# Rooms of palaestra from the ground up, as in the table of CONTRIBUTING.md. A room imports from its own floor and from
# those below; on the ground floor, and among the families (the folders of games), each from itself alone.
GROUND = ("core", "drawing", "kernels")
FLOORS = (
    GROUND,
    ("game",),
    ("games",),
    ("registry",),
    ("console", "data", "evaluation", "exact", "players", "replay", "wrappers", "zoo"),
    ("adapters", "pages", "scale"),
    ("testing",),
    ("__main__", "cli"),
)
ROOMS = {room for floor in FLOORS for room in floor}
FAMILIES = sorted(p.parent.name for p in (SOURCES["palaestra"] / "games").glob("*/__init__.py"))
FAMILY_FLOOR = 2
ROOT_FLOOR = 4
"""`palaestra` itself hands on what the registry offers."""
# Folders whose code uses our packages by their public names alone; what lies in the core may do as it likes.
READERS = ("envs", "baselines", "benchmarks", "docs/tools", "examples", "tests")
MEMBER_BY_NAME = {"getattr", "setattr", "delattr", "hasattr"}
"""Functions that are told a member's name as a text."""
LONGEST = 600
# Files that may be longer than LONGEST lines: path -> why it is not two files.
LONG_FILES: dict[str, str] = {"tests/replay/test_page_in_browser.py": "its tests share one browser and one page"}
IGNORED_FOLDERS = {".venv", "build", "dist", "runs", "__pycache__"}


def python_files(root: Path) -> list[Path]:
    return sorted(f for f in root.rglob("*.py") if not IGNORED_FOLDERS & set(f.relative_to(root).parts))


@dataclass
class Facts:
    """What the rules of this repository ask about the text of a file; each is read once for all rules.

    Attributes:
        imports: Imports anywhere: at the top, in functions, for types, by name.
        private_definitions: Private names that the file defines: functions, classes, module and class variables,
            attributes of objects.
        private_uses: Line and name of every use of a private member of an object other than ``self`` and ``cls``.
    """

    imports: list[ast.Import | ast.ImportFrom | ast.Call] = field(default_factory=list)
    private_definitions: set[str] = field(default_factory=set)
    private_uses: list[tuple[int, str]] = field(default_factory=list)


@functools.cache
def facts(source: str) -> Facts:
    found = Facts()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.private_definitions.add(node.name)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                found.private_definitions.add(node.id)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.ctx, ast.Store):
                found.private_definitions.add(node.attr)
            if is_private(node.attr) and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}):
                found.private_uses.append((node.lineno, node.attr))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.imports.append(node)
            found.private_uses += [(node.lineno, alias.name) for alias in node.names if is_private(alias.name)]
        elif isinstance(node, ast.Call) and all(isinstance(a, ast.Constant) for a in node.args[:1]):
            found.imports.append(node)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MEMBER_BY_NAME:
            found.private_uses += [(node.lineno, str(a.value)) for a in node.args[1:2] if isinstance(a, ast.Constant)]
    found.private_definitions = set(filter(is_private, found.private_definitions))
    return found


def module_name(file: Path, package: str, root: Path) -> str:
    parts = file.relative_to(root).with_suffix("").parts
    return ".".join([package, *parts]).removesuffix(".__init__")


def imported_modules(source: str, module: str, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and absolute name of everything that is imported anywhere: at the top, in functions, for types, by name.

    ``from a import b`` counts as ``a.b``: whether b is a module does not show, and the rules ask for prefixes only.
    """
    for node in facts(source).imports:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                ancestors = module.split(".")
                up = node.level - is_package
                anchor = ".".join(ancestors[: len(ancestors) - up])
                base = f"{anchor}.{base}".rstrip(".")
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def is_within(module: str, *packages: str) -> bool:
    return any(module == p or module.startswith(p + ".") for p in packages)


def may_import(module: str, imported: str) -> bool:
    """The layers: core, drawing, kernels <- game <- families <- registry <- palaestra <- methods; data imports none."""
    if not is_within(imported, *SOURCES):
        return True
    if is_within(module, "palaestra_assets"):
        return is_within(imported, "palaestra_assets")
    if is_within(module, "palaestra_baselines"):
        return True
    if is_within(imported, "palaestra_baselines"):
        return False
    if is_within(imported, "palaestra_assets"):
        return floor(module) > 0
    if floor(imported) == floor(module) and floor(module) <= FAMILY_FLOOR:
        return room(imported) == room(module)
    return floor(imported) <= floor(module)


def room(module: str) -> str:
    """``"core"`` of ``"palaestra.core.rng"``, a family of what is in it; "" of what stands in `palaestra` itself."""
    names = [*module.split("."), "", ""]
    if names[1] == "games" and names[2] in FAMILIES:
        return names[2]
    return names[1] if names[1] in ROOMS else ""


def floor(module: str) -> int:
    if room(module) in FAMILIES:
        return FAMILY_FLOOR
    return next((k for k, rooms in enumerate(FLOORS) if room(module) in rooms), ROOT_FLOOR)


def modules_of(package: str) -> dict[str, Path]:
    return {module_name(file, package, SOURCES[package]): file for file in python_files(SOURCES[package])}


def import_graph(modules: dict[str, str]) -> dict[str, set[str]]:
    """What each of the modules (sources by name) imports of the others: at the top, in functions, for types."""
    graph: dict[str, set[str]] = {}
    for module, source in modules.items():
        graph[module] = set()
        for _, name in imported_modules(source, module, is_package=False):
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module:
                graph[module].add(target)
    return graph


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle; empty where there is none."""
    left = dict(graph)
    while free := [module for module, wanted in left.items() if not wanted & left.keys()]:
        for module in free:
            del left[module]
    return sorted(left)


def test_the_import_reader_sees_every_kind_of_import():
    source = """
import a.b
from c import d
from . import sibling
from .e import f
from ...core import g
def late():
    import h
    importlib.import_module("i.j")
"""
    from_module = {name for _, name in imported_modules(source, "palaestra.games.teams.pong", is_package=False)}
    assert from_module == {
        "a.b", "c.d", "palaestra.games.teams.sibling", "palaestra.games.teams.e.f", "palaestra.core.g", "h", "i.j",
    }  # fmt: skip
    from_package = {name for _, name in imported_modules("from .e import f", "palaestra.games.teams", is_package=True)}
    assert from_package == {"palaestra.games.teams.e.f"}


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("palaestra.core.compile.linker", "palaestra.registry"),
        ("palaestra.core.faces.gym_env", "palaestra.games.ucav.body"),
        ("palaestra.core.compile.batch_loop", "palaestra.kernels.scalars"),
        ("palaestra.kernels.scalars", "palaestra.core.rng"),
        ("palaestra.kernels.scalars", "palaestra.games.ucav.body"),
        ("palaestra.games.ucav.body", "palaestra.registry"),
        ("palaestra.games.ucav.body", "palaestra.cli"),
        ("palaestra.exact.values", "palaestra.cli.measure"),
        ("palaestra.exact.values", "palaestra.testing.playthroughs"),
        ("palaestra.registry", "palaestra.cli"),
        ("palaestra.replay.file", "palaestra.testing.playthroughs"),
        ("palaestra.games", "palaestra.games.ucav.body"),
        ("palaestra.games.ucav.body", "palaestra.games.teams.tag"),
        ("palaestra.evaluation.by_id", "palaestra.cli.common"),
        ("palaestra.testing.random_walk", "palaestra.cli.common"),
        ("palaestra.cli.main", "palaestra_baselines.pid"),
        ("palaestra_assets", "palaestra.core"),
    ],
)
def test_the_layers_refuse(module: str, imported: str):
    assert not may_import(module, imported)


def test_modules_do_not_import_each_other_in_a_circle():
    late = {"a": "import b", "b": "def f():\n    from c import x", "c": "from a import y", "d": "import a"}
    assert circle_in(import_graph(late)) == ["a", "b", "c", "d"]
    types = {"a": "import b", "b": "if TYPE_CHECKING:\n    from a import y"}
    assert circle_in(import_graph(types)) == ["a", "b"]
    for package in SOURCES:
        sources = {module: file.read_text(encoding="utf-8") for module, file in modules_of(package).items()}
        assert circle_in(import_graph(sources)) == [], package


CORE = ("core", "contract", "compile", "run", "faces")
"""Rooms of the core from the ground up; "core" are the files beside them."""


def core_room(module: str) -> int:
    part = module.removeprefix("palaestra.core").strip(".").partition(".")[0]
    return CORE.index(part) if part in CORE else 0


def test_a_room_of_the_core_imports_from_those_below_it():
    modules = modules_of("palaestra")
    for module, file in modules.items():
        if not is_within(module, "palaestra.core"):
            continue
        for line, imported in imported_modules(file.read_text(encoding="utf-8"), module, file.name == "__init__.py"):
            if is_within(imported, "palaestra.core"):
                target = imported if imported in modules else imported.rpartition(".")[0]
                assert core_room(target) <= core_room(module), f"{file.relative_to(HOUSE)}:{line} imports {imported}"


def test_the_core_is_seen_at_a_glance():
    entries = {p.name for p in (SOURCES["palaestra"] / "core").iterdir()} - {"__pycache__"}
    assert entries >= set(CORE[1:])
    assert len(entries) <= 8, sorted(entries)


def test_outside_the_core_what_authors_need_is_imported_from_its_one_place():
    door = (SOURCES["palaestra"] / "game.py").read_text(encoding="utf-8")
    offered = {name for _, name in imported_modules(door, "palaestra.game", is_package=False)}
    assert {"palaestra.core.contract.rules.Game", "palaestra.core.rng.uniform"} <= offered
    files = [
        f
        for folder in ("envs", "baselines", "benchmarks", "docs", "examples", "tests")
        for f in python_files(HOUSE / folder)
    ]
    inside = SOURCES["palaestra"] / "core"
    for file in (f for f in files if inside not in f.parents and f != SOURCES["palaestra"] / "game.py"):
        found = {name for _, name in imported_modules(file.read_text(encoding="utf-8"), "x", is_package=False)}
        assert not found & offered, f"{file.relative_to(HOUSE)}: import {sorted(found & offered)} from palaestra.game"


def test_every_file_has_a_name_of_its_own():
    files = [file for root in SOURCES.values() for file in python_files(root) if file.name != "__init__.py"]
    names = [file.name for file in files]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("package", SOURCES)
def test_modules_import_from_lower_layers_and_not_from_another_family(package: str):
    offences = []
    for file in python_files(SOURCES[package]):
        module = module_name(file, package, SOURCES[package])
        source = file.read_text(encoding="utf-8")
        for line, imported in imported_modules(source, module, file.name == "__init__.py"):
            if not may_import(module, imported):
                offences.append(f"{file.relative_to(HOUSE)}:{line} imports {imported}")
    assert not offences, "\n".join(offences)


# Rooms above the families, which know them by `registry.FAMILIES` alone.
SERVICES = {room for floor in FLOORS[FAMILY_FLOOR + 1 :] for room in floor} | {""}
OTHER_MEANINGS = {("", "teams"), ("cli.benchmarks", "calibration")}
"""Module of palaestra ("" for all) and a word in it that is a family's name, too, and does not mean the family."""


def families_named(source: str, module: str, is_package: bool) -> list[tuple[int, str]]:
    """Line and text of each import of a family, and of each text that is its name or holds the path of its folder."""
    names = "|".join(FAMILIES)
    path = re.compile(rf"\bpalaestra\.(games\.)?({names})\b")
    found = [(line, name) for line, name in imported_modules(source, module, is_package) if path.match(name)]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found += [(node.lineno, match.group()) for match in path.finditer(node.value)]
            found += [(node.lineno, node.value)] if node.value in FAMILIES else []
    return found


def test_no_service_imports_or_names_a_family():
    planted = """
'''See `palaestra.games.ucav.body`.'''
from palaestra.games import search
def late():
    import palaestra.games.teams.tag
    from palaestra.mathtext import score_answer
    return importlib.import_module("palaestra.pursuit.solver"), "ucav", "ucavs", "my search", palaestra.games
"""
    assert sorted({line for line, _ in families_named(planted, "palaestra.cli.x", False)}) == [2, 3, 5, 6, 7]
    assert [name for line, name in families_named(planted, "palaestra.cli.x", False) if name == "ucav"] == ["ucav"]
    offences = []
    for module, file in modules_of("palaestra").items():
        if room(module) in SERVICES and not is_within(module, "palaestra.games"):
            own = module.removeprefix("palaestra").strip(".")
            offences += [
                f"{file.relative_to(HOUSE)}:{line} names {text}"
                for line, text in families_named(file.read_text("utf-8"), module, file.name == "__init__.py")
                if not {("", text), (own, text)} & OTHER_MEANINGS
            ]
    assert not offences, "\n".join(offences)


def test_a_family_says_which_optional_packages_its_files_import():
    named = {"sentence-transformers": {"sentence_transformers", "transformers", "torch"}}
    for family in FAMILIES:
        folder = SOURCES["palaestra"] / "games" / family
        sources = [file.read_text(encoding="utf-8") for file in python_files(folder)]
        imported = {name.partition(".")[0] for text in sources for _, name in imported_modules(text, "x", False)}
        needs = set().union(*(named.get(p, {p}) for p in (*registry.FAMILIES[family].needs, *OPTIONAL)))
        assert imported & ONCE - {"numba", "llvmlite"} <= needs, family


def test_no_package_imports_a_program_that_is_not_installed():
    programs = {
        file.stem for folder in ("benchmarks", "docs/tools", "tests/tools") for file in python_files(HOUSE / folder)
    }
    assert {"golden", "speed", "write_pages"} <= programs
    for package, root in SOURCES.items():
        for module, file in modules_of(package).items():
            source = file.read_text(encoding="utf-8")
            imported = {name.partition(".")[0] for _, name in imported_modules(source, module, file.stem == "__init__")}
            assert not imported & programs, file.relative_to(root)


def test_importing_palaestra_loads_no_compiler_learner_engine_or_window():
    heavy = ["numba", "torch", "jsbsim", "mujoco", "pygame", "stable_baselines3", "scipy", "matplotlib", "rich"]
    program = f"import json, sys, palaestra; print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {[str(r.parent) for r in SOURCES.values()]}; {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout) == []


# Half of such a library does not survive Ctrl-C: its next import fails in this process.
ONCE = {"jsbsim", "llvmlite", "matplotlib", "mujoco", "numba", "onnxruntime", "pygame", "ray", "safetensors", "scipy",
        "sentence_transformers", "stable_baselines3", "tensordict", "torch", "torchrl", "transformers"}  # fmt: skip
# Where they may be imported without: what `compiler.compiling` is around, and programs, which end by Ctrl-C.
HELD_BY_CALLERS = ("core/compile", "cli", "testing")


def imports_that_ctrl_c_breaks(source: str) -> list[tuple[int, str]]:
    """Line and name of each import of such a library outside of ``with Importing(...)`` and ``if TYPE_CHECKING``."""
    found: list[tuple[int, str]] = []

    def look(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.FunctionDef) and f"{node.name} = imported_whole({node.name})" in source:
            return
        if isinstance(node, ast.With) and any("Importing(" in ast.unparse(item) for item in node.items):
            return
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names += [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        found.extend((node.lineno, name) for name in names if name.partition(".")[0] in ONCE)  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            look(child)

    look(ast.parse(source))
    return found


def test_a_library_is_imported_where_ctrl_c_waits():
    assert imports_that_ctrl_c_breaks("def f():\n    try:\n        import torch.nn\n    except ImportError: ...") == [
        (3, "torch.nn")
    ]
    assert imports_that_ctrl_c_breaks("import_module('ray')\nfrom numba import njit") == [(1, "ray"), (2, "numba")]
    assert imports_that_ctrl_c_breaks("with Importing('torch'):\n    import torch\nimport json") == []
    root = SOURCES["palaestra"]
    for file in python_files(root):
        if not str(file.relative_to(root)).startswith(HELD_BY_CALLERS):
            found = imports_that_ctrl_c_breaks(file.read_text(encoding="utf-8"))
            assert not found, f"{file.relative_to(root)}: import {found} in `with Importing(...)`, see palaestra.game"


def is_private(name: str) -> bool:
    """Whether a leading underscore marks the name as private; ``__init__`` and the like are public."""
    return name.startswith("_") and not name.endswith("__") and name.strip("_") != ""


def private_reaches(source: str, defined: set[str]) -> list[tuple[int, str]]:
    """Line and name of every use of another object's private member, among the names that our packages define.

    A file may use what it defines itself, on whichever object, and every object its own. Members of named tuples
    (``_replace``, ``_fields``, ...) are public.
    """
    own = facts(source).private_definitions | {"_asdict", "_field_defaults", "_fields", "_make", "_replace"}
    return [(line, name) for line, name in facts(source).private_uses if name in defined - own]


def test_the_reader_of_private_members_sees_every_reach_and_nothing_else():
    source = """
from palaestra.core.a import _hidden, public
class Own:
    def __init__(self, other):
        self._mine = other._wi
        self._seats = other._mine
    def copy(self, sim, row, memory):
        return self._words, sim.env._words[0], row._replace(), memory._buf, sim.__dict__, getattr(sim, "_mode", 0)
"""
    defined = {"_hidden", "_wi", "_words", "_mine", "_mode", "_replace", "_seats", "_"}
    assert sorted(private_reaches(source, defined)) == [(2, "_hidden"), (5, "_wi"), (8, "_mode"), (8, "_words")]
    assert facts("_a = 1\nclass _B:\n  _c: int = 0\n  def _d(self): self._e = __f__ = _").private_definitions == {
        "_a", "_B", "_c", "_d", "_e",
    }  # fmt: skip


BREAKS_ON_PURPOSE = (
    "action_faults.py",
    "batch_faults.py",
    "blind_spots.py",
    "face_faults.py",
    "state_faults.py",
    "view_faults.py",
)
"""Files of tests/reliability that replace members of the suite by broken ones."""


@pytest.mark.parametrize("folder", READERS)
def test_code_outside_the_core_uses_no_private_member(folder: str):
    ours = [file for root in SOURCES.values() for file in python_files(root)]
    defined = set().union(*(facts(file.read_text(encoding="utf-8")).private_definitions for file in ours))
    reaches = [
        f"{file.relative_to(HOUSE)}:{line} uses {name}"
        for file in python_files(HOUSE / folder)
        if SOURCES["palaestra"] / "core" not in file.parents and file.name not in BREAKS_ON_PURPOSE
        for line, name in sorted(private_reaches(file.read_text(encoding="utf-8"), defined))
    ]
    assert not reaches, f"{len(reaches)} private members used:\n" + "\n".join(reaches)


def test_every_file_is_short_enough_to_read():
    lengths = {
        str(file.relative_to(HOUSE).as_posix()): len(file.read_text(encoding="utf-8").splitlines())
        for folder in ("envs", "baselines", "assets", "benchmarks", "docs/tools", "tests", "examples")
        for file in python_files(HOUSE / folder)
    }
    too_long = {name: lines for name, lines in lengths.items() if lines > LONGEST and name not in LONG_FILES}
    assert not too_long, f"over {LONGEST} lines, split by rule or give the reason in LONG_FILES: {too_long}"
    forgotten = [name for name in LONG_FILES if lengths.get(name, 0) <= LONGEST]
    assert not forgotten, f"no longer long, take them out of LONG_FILES: {forgotten}"


def test_no_text_names_a_path_of_one_machine():
    if shutil.which("git") is None or not (HOUSE / ".git").exists():
        pytest.skip("not a git checkout")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=HOUSE, capture_output=True, text=True, check=True).stdout.split("\0")
    folders = "|".join(["home", "root", "Users", "work", "opt", "mnt", "srv"])
    machine_path = re.compile(rf"(?<![\w.~}})/-])/(?:{folders})/\w|\b[A-Z]:\\Users\b")
    offences = []
    for name in filter(None, names):
        file = HOUSE / name
        if not file.is_file() or file.is_symlink():
            continue
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or an archive
        for number, line in enumerate(text.splitlines(), 1):
            if found := machine_path.search(line):
                offences.append(f"{name}:{number}: {found.group()}...")
    assert not offences, "\n".join(offences)


def test_the_promised_files_and_folders_exist():
    for name in ("pyproject.toml", *READERS, "assets", "README.md", "LICENSE", "Makefile"):
        assert (HOUSE / name).exists(), name
    for package, root in SOURCES.items():
        assert (root / "__init__.py").is_file(), package
        assert (root / "py.typed").is_file(), package


def read_pins(name: str) -> dict[str, str]:
    lines = (HOUSE / name).read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {name: version for name, version in pins}


def read_project() -> dict:
    return tomllib.loads((HOUSE / "pyproject.toml").read_text(encoding="utf-8"))


def read_requirements(*extras: str) -> list[Requirement]:
    project = read_project()["project"]
    chosen = extras or [e for e in project["optional-dependencies"] if e != "all"]
    texts = [*project["dependencies"], *(t for e in chosen for t in project["optional-dependencies"][e])]
    return [Requirement(text) for text in texts]


def test_constraints_pin_every_direct_dependency_within_its_bounds():
    pins = read_pins("constraints.txt")
    groups = read_project()["dependency-groups"].values()
    development = [Requirement(text) for group in groups for text in group if isinstance(text, str)]
    for requirement in [*read_requirements(), *development]:
        assert requirement.name in pins, f"constraints.txt lacks {requirement.name}"
        assert pins[requirement.name] in requirement.specifier, f"{pins[requirement.name]} is outside {requirement}"


def test_the_lowest_constraints_are_the_declared_lower_bounds():
    pins = read_pins("constraints-lowest.txt")
    needed = set(registry.offers("needs").values()) - {"palaestra[text]"}
    requirements = read_requirements("exact", "render", *(extra.split("[")[1].rstrip("]") for extra in needed))
    assert set(pins) == {r.name for r in requirements}
    for requirement in requirements:
        bound = next(s.version for s in requirement.specifier if s.operator == ">=")
        lowest, declared = Version(pins[requirement.name]), Version(bound)
        assert lowest.release[: len(declared.release)] == declared.release, requirement.name


def test_all_holds_every_extra_but_the_large_ones():
    extras = read_project()["project"]["optional-dependencies"]
    (everything,) = (Requirement(text) for text in extras["all"])
    assert everything.extras == set(extras) - {"all", "ray", "text"}


def test_every_extra_installs_what_a_module_imports():
    names = {"pygame-ce": "pygame", "pillow": "PIL", "stable-baselines3": "stable_baselines3", "dm-tree": "ray",
             "lz4": "ray", "ormsgpack": "ray", "sentence-transformers": "sentence_transformers"}  # fmt: skip
    sources = [file.read_text(encoding="utf-8") for root in SOURCES.values() for file in python_files(root)]
    imported = {name.partition(".")[0] for text in sources for _, name in imported_modules(text, "palaestra", False)}
    extras = read_project()["project"]["optional-dependencies"]
    wanted = {r.name for extra in set(extras) - {"all"} for r in read_requirements(extra)}
    wanted -= {Requirement(text).name for text in read_project()["project"]["dependencies"]}
    assert sorted(name for name in wanted if names.get(name, name) not in imported) == []


def test_every_hint_to_install_an_extra_names_one_that_there_is():
    extras = read_project()["project"]["optional-dependencies"].keys()
    for root in SOURCES.values():
        for file in python_files(root):
            for named in re.findall(r"palaestra\[([a-z,]+)\]", file.read_text(encoding="utf-8")):
                assert set(named.split(",")) <= extras, f"{file.name} names {named}"


def test_an_asset_is_found_by_its_name():
    assert palaestra_assets.path("py.typed").is_file()


def test_a_missing_asset_names_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps" / "3m.json").touch()
    monkeypatch.setattr(palaestra_assets, "_ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no asset 'maps/4m\.json': palaestra_assets/maps holds 3m\.json"):
        palaestra_assets.path("maps/4m.json")
    with pytest.raises(FileNotFoundError, match="palaestra_assets holds maps/"):
        palaestra_assets.path("weights")
