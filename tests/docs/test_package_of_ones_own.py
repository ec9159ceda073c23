"""A package of one's own adds a game, a preset, an engine and a learner, and touches no file but its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROJECT = """
[project]
name = "lake"
version = "1.0"

[project.entry-points."palaestra.families"]
lake = "lake:FAMILY"

[project.entry-points."palaestra.baselines"]
half_iql = "lake.half_iql"

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
"""
FAMILY = """
from palaestra.game import Family, Preset, presets

FAMILY = Family(
    "lake",
    rows=(
        *presets(
            "lake.flag:game",
            Preset("lake/Flag-v0", "three against three carry a flag home"),
            Preset("lake/FlagShort-v0", "the same in 30 decisions", horizon=30),
        ),
        *presets("lake.pucks:game", Preset("lake/Pucks-v0", "pucks that an engine outside moves")),
    ),
)
"""
LEARNER = '''
"""Independent Q-learning with half of the loss."""

from dataclasses import dataclass
from pathlib import Path

from palaestra_baselines import iql
from palaestra_baselines.common.flat_networks import load_player
from palaestra_baselines.common.training import LearningArgs, learning_command
from palaestra_baselines.vdn import train_utilities

METHOD = "half_iql"
load_policy = load_player


@dataclass
class Args(LearningArgs):
    """Arguments of `LearningArgs`."""

    directory: Path = Path("runs/half_iql/{env_id}")


def train(args, evaluation=None):
    return train_utilities(args, METHOD, lambda *given: iql.td_loss(*given) / 2, evaluation)


def main(argv=None):
    learning_command(Args, METHOD, __doc__, argv, train)
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sources of the package and, in ``site``, its installation."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "lake").mkdir()
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "lake" / "__init__.py").write_text(FAMILY)
    (folder / "lake" / "half_iql.py").write_text(LEARNER)
    shutil.copy(ROOT / "tests/games/body_game.py", folder / "lake" / "pucks.py")
    flag = (ROOT / "examples/capture_the_flag.py").read_text(encoding="utf-8")
    (folder / "lake" / "flag.py").write_text(flag.partition("\npalaestra.register(")[0], encoding="utf-8")
    options = ["--quiet", "--no-deps", "--target", str(folder / "site")]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(folder)], check=True)
    return folder


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("list --all", "lake/FlagShort-v0"),
        ("check lake/Flag-v0", "passed"),
        ("check lake/FlagShort-v0 --level preset", "passed"),
        ("check lake/Pucks-v0", "passed"),
        ("train half_iql --env-id lake/Flag-v0 --total-steps 2000 --evaluations 1 --quiet", "last.safetensors"),
        ("eval lake/Flag-v0 --a runs/half_iql/lake_Flag-v0/seed_0/last.safetensors --b rush --matches 8", "rush"),
    ],
)
def test_it_adds_to_every_command(package: Path, command: str, shown: str):
    roots = [package / "site", *(ROOT / name for name in ("envs", "baselines", "assets"))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, roots))}
    words = [sys.executable, "-m", "palaestra", *command.split()]
    ran = subprocess.run(words, cwd=package, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert shown in ran.stdout
    assert "FAILED" not in ran.stdout
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "lake" not in changed.stdout
