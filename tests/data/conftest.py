"""Small data sets, recorded by rules that run as plain Python."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import games.targets  # noqa: F401  (registers its id)
import pytest

from palaestra.data import make_data

TARGETS = "tests/Targets-v0"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve episodes of three tasks."""
    path = tmp_path_factory.mktemp("recorded") / "targets-v0"
    make_data(TARGETS, "random", path, episodes=4, seed=3, each_task=[0, 1, 5], infos=["task"], compiled=False)
    return path


@pytest.fixture
def spoilt(recorded: Path, tmp_path: Path) -> Callable[[], Path]:
    """A copy that a test may spoil."""

    def spoilt() -> Path:
        return Path(shutil.copytree(recorded, tmp_path / "targets-v0"))

    return spoilt
