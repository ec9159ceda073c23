"""The notebook of a first hour: its cells run one after the other, and each ends in what a notebook shows as HTML."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest
from docs.test_code import ROOT, execute

NOTEBOOK = ROOT / "docs" / "first_hour.ipynb"
MOST_BYTES = 300_000
MOST_CPU_S = 180.0
BETWEEN = "-- end of a cell --"
SHOW = f"""
assert (type(_shown)._repr_html_(_shown)).startswith("<"), type(_shown)
print("{BETWEEN}")
"""


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def as_script(cell: str) -> str:
    """A cell whose last line, an expression, becomes what is shown."""
    code = ast.parse(cell)
    last = code.body[-1]
    assert isinstance(last, ast.Expr), ast.unparse(last)
    code.body[-1] = ast.Assign([ast.Name("_shown", ast.Store())], last.value)
    return ast.unparse(ast.fix_missing_locations(code)) + SHOW


def test_the_notebook_is_small_and_every_cell_ends_in_an_expression():
    assert NOTEBOOK.stat().st_size < MOST_BYTES
    assert [cell for cell in cells() if not as_script(cell)] == []


@pytest.mark.slow  # trains three policies
def test_the_notebook_runs_within_three_minutes_of_processor_time_and_each_cell_shows_html(tmp_path: Path):
    for package in ("PIL", "jsbsim", "scipy", "torch"):
        pytest.importorskip(package)
    script = tmp_path / "notebook.py"
    script.write_text("\n".join(map(as_script, cells())), encoding="utf-8")
    before = os.times()
    printed = execute([script.name], tmp_path, OMP_NUM_THREADS="1")
    after = os.times()
    spent_s = sum(getattr(after, name) - getattr(before, name) for name in ("children_user", "children_system"))
    assert spent_s <= MOST_CPU_S
    *outputs, rest = printed.split(BETWEEN)
    assert len(outputs) == len(cells())
    assert rest.strip() == ""
    assert max(len(text.splitlines()) for text in outputs) <= 1 + 3  # a training, too, prints three lines at most
