"""Where the figures of a test go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from learning.figures import FigureArgs


@pytest.fixture
def figure_args(tmp_path: Path) -> FigureArgs:
    """Two seeds that this process trains."""
    from learning.figures import FigureArgs

    return FigureArgs(
        seeds=2, runs=tmp_path / "runs", figures=tmp_path / "figures", assets=tmp_path / "assets", workers=0
    )
