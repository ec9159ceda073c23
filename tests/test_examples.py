"""Every example runs as a user would run it, and the README's fences say what is true."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDS = {"train_with_sb3": "stable_baselines3"}
ARGUMENTS = {"train_with_sb3": ["2048"]}
SAYS = {
    "add_a_game": "steady won",
    "faces": "ParallelEnv",
    "self_play": "generation 4",
    "train_with_sb3": "decisions upright",
}
RUN_ALL = """
import contextlib, io, json, runpy, sys

said = {}
for script, arguments in json.loads(sys.argv[1]).items():
    sys.argv, sys.path[0] = [script, *arguments], script.rpartition("/")[0]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(script, run_name="__main__")
    said[script] = output.getvalue()
print(json.dumps(said))
"""
"""Runs scripts one after the other as programs, and says what they said."""


def run(*arguments: str) -> str:
    path = os.pathsep.join(str(ROOT / folder) for folder in ("envs", "baselines", "assets"))
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_runs_and_says_what_it_did():
    """All in one process: libraries are imported, and the game that two of them play is compiled, once."""
    examples = [path for path in sorted((ROOT / "examples").glob("*.py")) if _can_run(path)]
    assert examples
    scripts = {path.as_posix(): ARGUMENTS.get(path.stem, []) for path in examples}
    said = json.loads(run("-c", RUN_ALL, json.dumps(scripts)))
    for path in examples:
        assert SAYS[path.stem] in said[path.as_posix()]


def _can_run(example: Path) -> bool:
    return importlib.util.find_spec(NEEDS.get(example.stem, "numpy")) is not None


def test_the_python_of_the_readme_runs():
    pytest.importorskip("jsbsim")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    program = "\n".join(blocks).replace("num_envs=64, workers=2", "num_envs=2, workers=1")
    program = program.replace('commands="macro"', 'commands="macro", compiled=False')  # nothing else needs this kernel
    guarded = "if __name__ == '__main__':\n" + "\n".join(f"    {line}" for line in program.splitlines())
    assert run("-c", guarded) == ""
