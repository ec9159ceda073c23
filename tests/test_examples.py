"""Every example runs as a user would run it, and the README's Python too."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDS = {
    "readme": "stable_baselines3",
    "independent_ppo": "torch",
    "throw_by_search": "mujoco",
    "train_with_sb3": "stable_baselines3",
    "trained_battle": "torch",
}
BY_PAGE = ("capture_the_flag", "pendulum")
"""Examples that pages show: tests/docs runs them."""
ALONE = {
    "train_with_benchmarl": "benchmarl",
    "train_with_rllib": "ray",
    "mappo_on_ray": "ray",
    "train_with_torchrl": "torchrl",
}
"""Examples of libraries that have environments of their own, and these libraries: see tests/adapters."""
WITH_MODEL = ("train_with_trl",)
"""Examples that need a model: see tests/adapters."""
ARGUMENTS = {"independent_ppo": ["4800"], "throw_by_search": ["--rollouts", "100"], "train_with_sb3": ["2048"]}
SAYS = {
    "add_a_game": "steady won",
    "concert_search": "of 8 centres",
    "faces": "ParallelEnv",
    "grid_battle": "it wins 100% of 64 matches",
    "independent_ppo": "touches a match",
    "pursuit": "optimal: captured in 100.0%",
    "self_play": "generation 4",
    "skirmish": "red won after",
    "throw_by_search": "the ball came within",
    "train_with_benchmarl": "mean reward of a match",
    "train_with_rllib": "red_0 earns",
    "train_with_epymarl": "src/main.py",
    "train_with_sb3": "decisions upright",
    "train_with_torchrl": "reward of a match",
    "trained_battle": "red won",
}
RUN_ALL = """
import contextlib, io, json, runpy, sys

readme, scripts = json.loads(sys.argv[1])
said = {}
with contextlib.redirect_stdout(io.StringIO()) as output:
    for path in readme:
        runpy.run_path(path, run_name="__main__")
said["readme"] = output.getvalue()
for name, (path, *arguments) in scripts.items():
    sys.argv, sys.path[0] = [path, *arguments], path.rpartition("/")[0]
    with contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(path, run_name="__main__")
    said[name] = output.getvalue()
print(json.dumps(said))
"""
"""Runs the Python of the README, then scripts one after the other as programs, and says what they printed."""


@pytest.mark.check
def test_the_readme_and_every_example_run_and_say_what_they_did(tmp_path: Path):
    """All in one process: libraries are imported, and the game that three of them define is compiled, once."""
    examples = [
        path
        for path in (ROOT / "examples").glob("*.py")
        if path.stem not in (*ALONE, *BY_PAGE, *WITH_MODEL) and _can_run(path.stem)
    ]
    scripts = {path.stem: [path.as_posix(), *ARGUMENTS.get(path.stem, [])] for path in examples}
    assert scripts
    path = os.pathsep.join(str(ROOT / folder) for folder in ("envs", "baselines", "assets"))
    done = subprocess.run(
        [sys.executable, "-c", RUN_ALL, json.dumps([readme(tmp_path) if _can_run("readme") else [], scripts])],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.pop("readme").startswith("palaestra/UcavPursuit-v2: pilot against weave, 64 matches")
    assert said.keys() == scripts.keys()
    for name, output in said.items():
        assert SAYS[name] in output


@pytest.mark.parametrize("name", ALONE)
def test_an_example_of_another_library_runs_where_that_is_installed(name):
    if importlib.util.find_spec(ALONE[name]) is None:
        pytest.skip(f"examples/{name}.py needs {ALONE[name]}: pip install {ALONE[name]}")
    done = subprocess.run(
        [sys.executable, f"examples/{name}.py", "2000"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "envs")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert SAYS[name] in done.stdout


def readme(folder: Path) -> list[str]:
    """Each Python block of the README as a script of its own."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert blocks
    paths = [folder / f"block_{number}.py" for number in range(len(blocks))]
    for path, block in zip(paths, blocks, strict=True):
        shorter = block.replace("num_envs=64, opp", "num_envs=2, opp").replace("150_000", "2_048")
        path.write_text(shorter.replace("pilot.zip", (folder / "pilot.zip").as_posix()), encoding="utf-8")
    return [path.as_posix() for path in paths]


def _can_run(name: str) -> bool:
    return importlib.util.find_spec(NEEDS.get(name, "numpy")) is not None
