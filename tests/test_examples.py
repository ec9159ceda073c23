"""Every example runs as a user would run it, and the README's fences say what is true."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NEEDS = {"train_with_sb3": "stable_baselines3"}
SAYS = {
    "add_a_game": "steady won",
    "faces": "ParallelEnv",
    "self_play": "generation 4",
    "train_with_sb3": "decisions upright",
}


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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_says_what_it_did(example: Path):
    pytest.importorskip(NEEDS.get(example.stem, "numpy"))
    arguments = ["2048"] if example.stem == "train_with_sb3" else []
    assert SAYS[example.stem] in run(str(example), *arguments)


def test_the_python_of_the_readme_runs():
    pytest.importorskip("jsbsim")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert blocks
    program = "\n".join(blocks).replace("num_envs=64, workers=2", "num_envs=2, workers=1")
    guarded = "if __name__ == '__main__':\n" + "\n".join(f"    {line}" for line in program.splitlines())
    assert run("-c", guarded) == ""
