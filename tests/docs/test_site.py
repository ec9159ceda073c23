"""The site builds without warnings and without the network, and its reference has every public module."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import palaestra

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "envs" / "palaestra"
UNLISTED = {
    "console": "printing for the command line",
    "cli": "the command line: `palaestra --help`",
    "core": "listed by module: what users and authors see",
    "__main__": "runs the command line",
}
"""Modules that the reference leaves out, or lists in part, and why."""


def public_modules() -> list[str]:
    """Modules of `palaestra` that are no family, and the adapters and kernels one by one."""
    from palaestra import registry

    factories = [row.factory for row in registry.ROWS.values() if isinstance(row.factory, str)]
    families = {factory.split(".")[1] for factory in factories if factory.startswith("palaestra.")}
    found = [path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    own = [name for name in found if name not in {*families, *UNLISTED, "__init__"}]
    parts = [
        f"{folder}.{path.stem}"
        for folder in ("adapters", "kernels")
        for path in (PACKAGE / folder).glob("*.py")
        if path.stem not in ("__init__", "agent_rows", "padding", "torchrl_groups")
    ]
    return sorted(f"palaestra.{name}" for name in [*own, *parts])


def test_the_reference_has_every_public_module():
    listed = set()
    for page in (ROOT / "docs" / "api").glob("*.md"):
        listed.update(re.findall(r"^\.\. automodule:: (\S+)$", page.read_text(encoding="utf-8"), re.M))
    assert [name for name in public_modules() if name not in listed] == []


def test_every_page_has_a_place_in_the_site():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in [*(ROOT / "docs" / "guides").glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        name = page.relative_to(ROOT / "docs").with_suffix("").as_posix()
        assert name == "index" or re.search(rf"^{name}$", index, re.M), f"docs/index.md has no {name}"


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_asks_no_other_machine(tmp_path: Path):
    pytest.importorskip("sphinx", reason="the site needs the dependency group docs")
    words = ["--fail-on-warning", "--keep-going", "--quiet", "-b", "html", "-c", "docs", "-d", f"{tmp_path}/trees", "."]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words, f"{tmp_path}/site"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(ROOT / name) for name in ("envs", "baselines", "assets"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    site = tmp_path / "site"
    assert (site / "index.html").exists()
    assert (site / "_matches" / "TeamPong.html").exists()
    assert "../../_matches/TeamPong.html" in (site / "docs" / "environments" / "TeamPong.html").read_text("utf-8")
    typed = [page.name for page in (site / "docs" / "api").glob("*.html") if ">Type<span" in page.read_text("utf-8")]
    assert typed == []  # a sentence "What it is: more of it" names no type
    loaded = re.compile(r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=\"(?:https?:)?//([^\"]+)\"")
    for page in site.rglob("*.html"):
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {palaestra.__version__}\n" in text


def test_every_paper_of_the_table_has_its_bibtex():
    table, _, entries = (ROOT / "docs" / "references.md").read_text(encoding="utf-8").partition("```bibtex")
    named = set(re.findall(r"`([a-z]+\d{4}\w+)`", table))
    assert named
    assert named == set(re.findall(r"^@\w+\{(\w+),$", entries, re.M))
