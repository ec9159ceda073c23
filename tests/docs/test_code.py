"""The code of the documentation runs as a reader would run it: saved as a script, or typed at the console script.

A page with Python is one script: its blocks continue each other; README's stand alone. A block whose first line is a
comment with a file name (``# my_game.py``) is that file. Lines that begin with ``palaestra`` run in the same folder.
"""

from __future__ import annotations

import ast
import csv
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = [ROOT / folder for folder in ("envs", "baselines", "assets")]
QUOTING = ("many_sizes.md", "add_a_game.md", "wrap_an_engine.md")
"""Pages that quote parts of files (tests/core/test_author_pages.py compares them): their commands are run alone."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
ENVIRONMENTS = ROOT / "docs" / "environments"
SHORTER = {
    "palaestra demo": "palaestra demo --matches 1",
    "learn(150_000)": "learn(2_048)",
    "curriculum.learn(1_000_000, ": "curriculum.learn(8_192, ",
    "model.learn(400_000)": "model.learn(6_400)",
    "--total-steps 60000": "--total-steps 4096 --matches 2",
    "--matches 512": "--matches 4",
    "model.learn(150_000)": "model.learn(4_096)",
    "train ppo --env-id TeamTag": "train ppo --total-steps 8192 --evaluations 2 --matches 2 --env-id TeamTag",
    "train ucav_pursuit": "train ucav_pursuit --matches 2 --total-steps 4096",
    "ucav_hierarchy --seed 1": "ucav_hierarchy --total-steps 2000 --matches 2 --pairs 1 --evaluations 1 --seed 1",
    "--total-steps 400000": "--total-steps 400 --matches 2 --pairs 1 --evaluations 1",
    "model.learn(100_000)": "model.learn(4_096)",
    "model.learn(204_800)": "model.learn(4_096)",
    "hunter.learn(50_000)": "hunter.learn(512)",
    "model.learn(40_000, ": "model.learn(8_192, ",
    "range(1, 6)": "range(1, 3)",
    "updates = 100": "updates = 2",
    "--head poisson": "--head poisson --total-steps 4096",
    "--head ordinal": "--head ordinal --total-steps 4096 --matches 2",
    "train seqwm --env-id": "train seqwm --total-steps 2560 --matches 2 --env-id",
    "seqwm/QuadPushBox-v0/seed_0/last.safetensors": "seqwm/QuadPushBox-v0/seed_0/last.safetensors --matches 2",
}
"""What takes long on a page, and what runs instead."""
NOT_HERE = ("palaestra play ", " my_package.", " module:", " FILE ", " --ray ", " assets/")
"""Commands that need a person, a Ray cluster, a clone, or a game that the page only speaks of."""
COMMAND = re.compile(r"^(?:\w+=\S+ )?palaestra .*$", re.M)
FENCED = re.compile(r"^```(python|console|bash)\n(.*?)^```", re.M | re.S)
CONSOLE_SCRIPT = "import sys\nfrom palaestra.cli import main\nsys.exit(main())\n"
"""As pip writes it into a folder of its own: Python then looks for modules there, not in the current folder."""
LEARNT = ("win_rate", "score", "catches", "won_behind", "greedy", "learned_value", "return")
"""Columns of `log.csv` that rise where a first hour learns; the first that a method has counts."""
NEEDED = ("benchmarl", "gem", "jsbsim", "sb3_contrib", "scipy", "stable_baselines3", "torch")
"""Packages that a page may need: without them its code is skipped."""


class Page(NamedTuple):
    """What a reader can run: Python blocks, files to save by name, command lines, and the examples that it links."""

    blocks: list[str]
    files: dict[str, str]
    commands: list[str]
    examples: list[Path]


def read(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    linked = re.findall(r"\]\(\.\./\.\./examples/(\w+\.py)\)", text) if path.parent.name == "guides" else []
    page = Page([], {}, [], [ROOT / "examples" / name for name in dict.fromkeys(linked)])
    for language, code in FENCED.findall(text):
        named = re.match(r"# (\w+\.py)\n", code)
        if language != "python":
            page.commands.extend(COMMAND.findall(code))
        elif named:
            page.files[named[1]] = code
        elif path.name not in QUOTING:
            page.blocks.append(code)
    return page


def shortened(text: str) -> str:
    for long, short in SHORTER.items():
        text = text.replace(long, short)
    return text


def scripts(path: Path) -> list[str]:
    """The scripts of a page: README's blocks one by one, all others as one."""
    blocks = [shortened(block) for block in read(path).blocks]
    return blocks if path.name == "README.md" else ["\n".join(blocks)] if blocks else []


def missing_package(text: str) -> str | None:
    """A package that the code imports and that is not installed here."""
    from importlib.util import find_spec

    wanted = re.findall(r"^\s*(?:from|import) (\w+)", text, re.M) + (["jsbsim"] if "palaestra/Ucav" in text else [])
    return next((name for name in wanted if name in NEEDED and find_spec(name) is None), None)


def execute(words: list[str], folder: Path, **variables: str) -> str:
    """What the program printed; fails with its errors."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "SDL_VIDEODRIVER": "dummy", **variables},
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    assert done.returncode == 0, f"{' '.join(words[-4:])}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def is_run(command: str) -> bool:
    return not any(part in command for part in NOT_HERE)


def run_page(path: Path, folder: Path, **variables: str) -> None:
    """Runs all that a page lets a reader run, in a folder; skips the test if a package is missing."""
    page = read(path)
    if lacking := missing_package("\n".join([*page.blocks, *page.files.values(), *page.commands])):
        pytest.skip(f"needs {lacking}")
    for name, text in page.files.items():
        (folder / name).write_text(shortened(text), encoding="utf-8")
    for example in page.examples:
        shutil.copy(example, folder)
        if path.name in QUOTING:
            execute([example.name], folder)
    for number, script in enumerate(scripts(path)):
        (folder / f"page_{number}.py").write_text(script, encoding="utf-8")
        execute([f"page_{number}.py"], folder, **variables)
    for command in filter(is_run, page.commands):
        run_command(shortened(command), folder, **variables)


def run_command(command: str, folder: Path, **variables: str) -> str:
    """What a line of a console block printed."""
    console_script = folder / "bin" / "palaestra"
    console_script.parent.mkdir(exist_ok=True)
    console_script.write_text(CONSOLE_SCRIPT, encoding="utf-8")
    words = shlex.split(command, comments=True)
    at = words.index("palaestra")
    given = dict(word.split("=", 1) for word in words[:at])
    return execute([str(console_script), *words[at + 1 :]], folder, **variables, **given)


WITH_CODE = [path for path in PAGES if path.parent != ENVIRONMENTS and (read(path).blocks or read(path).commands)]
FIRST_HOURS = [path for path in WITH_CODE if path.parent.name == "first_hours"]


@pytest.mark.parametrize("path", [path for path in PAGES if read(path).blocks], ids=lambda path: path.stem)
def test_the_code_of_a_page_is_python_and_guards_what_starts_processes(path: Path):
    for block in [*read(path).blocks, *read(path).files.values()]:
        ast.parse(block)
    for script in scripts(path):
        assert "workers=" not in script or 'if __name__ == "__main__":' in script


def test_what_is_shortened_stands_on_a_page():
    texts = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    assert [long for long in SHORTER if long not in texts] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in WITH_CODE if path not in FIRST_HOURS], ids=lambda path: path.stem)
def test_a_page_runs_as_a_script_and_at_the_console(path: Path, tmp_path: Path):
    run_page(path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("path", FIRST_HOURS, ids=lambda path: path.stem)
def test_a_first_hour_learns_within_a_minute_of_processor_time_and_ends_in_a_page(path: Path, tmp_path: Path):
    ids = re.findall(r"palaestra/\w[\w.-]*-v\d+", "\n".join(read(path).blocks))
    run_command(f"palaestra doctor --warm {ids[0]}", tmp_path)  # compiling is done once, and is not counted
    before = os.times()
    run_page(path, tmp_path, OMP_NUM_THREADS="1")
    after = os.times()
    spent_s = sum(getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system"))
    assert spent_s <= 60.0
    (log,) = tmp_path.glob("runs/*/*/seed_0/log.csv")
    with log.open(encoding="utf-8") as file:
        first, *_, last = csv.DictReader(file)
    column = next(name for name in LEARNT if name in first)
    assert float(last[column]) > float(first[column])
    assert list(tmp_path.glob("*/index.html"))


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(ENVIRONMENTS.glob("*.md")), ids=lambda path: path.stem)
def test_the_example_of_an_environment_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (script,) = scripts(path)
    if lacking := missing_package(script):
        pytest.skip(f"needs {lacking}")
    file = tmp_path / "page.py"
    file.write_text(script, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(file), run_name="__main__")


# -- docstrings --------------------------------------------------------------------------------------------------------


def docstrings(path: Path) -> Iterator[str]:
    """Of the module, its classes and functions; of files that may hold an example: parsing all takes seconds."""
    text = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if re.search(r"::\n\n|>>>", text) else ():
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def examples(text: str) -> list[str]:
    """The examples of a docstring: ``>>>`` lines, and blocks behind ``::`` that name something of palaestra."""
    found = []
    for block in re.findall(r"::\n\n((?:(?: {4}.*)?\n)+)", text + "\n"):
        code = textwrap.dedent(block)
        if re.search(r"^(?:from|import) .*palaestra|\"palaestra/", code, re.M):
            found.append(code)
    shown = re.findall(r"^ *(?:>>>|\.\.\.) ?(.*)$", text, re.M)
    return [*found, *(["\n".join(shown)] if shown else [])]


EXAMPLES = {
    f"{path.stem if path.stem != '__init__' else path.parent.name}-{number}": (path, code)
    for root in SOURCES
    for path in sorted(root.rglob("*.py"))
    for number, code in enumerate(code for text in docstrings(path) for code in examples(text))
}


GIVEN = {
    "pool-0": "first_policy = second_policy = lambda seen: np.zeros(seen.shape[:2], int)\n",
    "corpora-0": """
from pathlib import Path

Path("passages.jsonl").write_text('{"id": "1", "text": "Ada wrote it."}')
Path("questions.jsonl").write_text('{"question": "Who wrote it?", "answer": "Ada", "gold": ["1"]}')
asked = '{"_id": "1", "question": "Who wrote it?", "answer": "Ada", "supporting_facts": [["Notes", 0]], '
Path("hotpot_dev_distractor_v1.json").write_text("[" + asked + '"context": [["Notes", ["Ada wrote it."]]]}]')
""",
}
"""What an example takes for granted."""
ELSEWHERE = {"by_ray-0": "a Ray cluster", "dense-0": "an embedding model on this disk"}
"""What an example needs that is not here."""


def own_names(path: Path) -> str:
    """An import of all public names of the example's module, and of what its package offers."""
    root = next(root for root in SOURCES if root in path.parents)
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    return f"from {module} import *\n"


def test_examples_are_found_in_docstrings():
    assert {"palaestra-0", "exact-0", "matrix_solver-0", "replay-0", "pool-0"} <= EXAMPLES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_example_of_a_docstring_runs(name: str, tmp_path: Path):
    path, code = EXAMPLES[name]
    if lacking := missing_package(code) or ELSEWHERE.get(name):
        pytest.skip(f"needs {lacking}")
    (tmp_path / "example.py").write_text(
        "import gymnasium\nimport numpy as np\n" + own_names(path) + GIVEN.get(name, "") + code, encoding="utf-8"
    )
    execute(["example.py"], tmp_path)
