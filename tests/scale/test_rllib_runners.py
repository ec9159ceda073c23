"""RLlib's own processes play our matches."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray.rllib", reason='needs the extra "palaestra[ray]"')
pytestmark = [pytest.mark.ray, pytest.mark.slow]

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_with_rllib.py"


def test_the_example_learns_from_a_remote_env_runner(tmp_path: Path):
    words = [sys.executable, str(EXAMPLE), "2000", "1"]
    process = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert process.returncode == 0, process.stderr[-2000:]
    found = re.search(r"after 2000 decisions: red_0 earns (-?[\d.]+) a match", process.stdout)
    assert found
    assert -1.0 <= float(found[1]) <= 1.0
