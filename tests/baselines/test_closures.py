"""The files of the package that a method's module needs: a reader of the method has no more to read."""

from __future__ import annotations

import pytest
from games.play import python

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("tyro")

pytestmark = pytest.mark.check

MOST = {"grpo": 14, "qmix": 9, "seqwm": 11}
PRINT = """
import sys, palaestra_baselines.{0}
files = (getattr(module, "__file__", None) or "" for module in list(sys.modules.values()))
print(*sorted({{file for file in files if "palaestra_baselines" in file and "__init__" not in file}}), sep="\\n")
"""


@pytest.mark.parametrize("method", MOST)
def test_a_method_imports_few_files_of_the_package(method: str):
    files = python(PRINT.format(method)).split()
    assert any(file.endswith(f"{method}.py") for file in files)
    assert len(files) <= MOST[method], "\n".join(files)
