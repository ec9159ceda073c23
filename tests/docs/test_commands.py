"""Every command that a page names exists; those of README.md run.

A command stands at the beginning of a line of a console block, or in the text as code. `tests/docs/test_code.py` runs
the blocks of all pages; `tests/benchmarks/test_figures.py` knows the names of figures.
"""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from docs.test_code import CONSOLE_SCRIPT, execute

from palaestra import cli
from result_tables import claims_of

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [
    README,
    *(ROOT / "docs" / f"{name}.md" for name in ("results", "speed", "libraries", "guarantees")),
    *(RESULTS := sorted((ROOT / "docs" / "results").glob("*.md"))),
    ROOT / "docs" / "guides" / "choose_an_environment.md",
    *sorted((ROOT / "docs" / "first_hours").glob("*.md")),
]
PROGRAMS = ("palaestra", "python", "make", "pip", "source", "export")
CODE = re.compile(rf"`((?:{'|'.join(PROGRAMS)}) [^`]+)`")
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.M | re.S)
ALONE = ("palaestra play",)
"""Commands that need a person: that they exist is all."""
LONG = {"palaestra doctor --warm": "palaestra doctor --warm CartPole"}
"""What takes long, and what runs instead."""
VERDICTS = ("shown", "partly", "not shown", "refuted")


def commands(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    blocks = [line for block in CONSOLE.findall(text) for line in block.splitlines() if line.startswith(PROGRAMS)]
    return list(dict.fromkeys([*blocks, *(" ".join(code.split()) for code in CODE.findall(text))]))


def missing(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command names that is not there; nothing if all is."""
    program, *words = shlex.split(command)
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
        return "" if words[0] in targets else f"no target {words[0]}"
    if program == "pip":
        return missing_for_pip(words)
    if program == "python" and words[0] == "-m":
        return "" if find_spec(words[1]) else f"no module {words[1]}"
    if program == "python":
        return "" if (ROOT / words[0]).is_file() else f"no file {words[0]}"
    if program == "palaestra":
        return missing_option(words, capsys)
    return ""


def missing_for_pip(words: list[str]) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for word in words:
        if word.endswith(".txt") and not (ROOT / word).is_file():
            return f"no file {word}"
        extras = re.findall(r"\w+", word.partition("[")[2])
        if unknown := set(extras) - set(project["optional-dependencies"]):
            return f"no extra {unknown}"
    return ""


def missing_option(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    name, *rest = words
    if name not in cli.COMMANDS:
        return f"no command {name}"
    if name in ("train", "demo"):  # what they pass on is another program's
        return ""
    assert cli.main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    return next((f"no option {word}" for word in rest if word.startswith("--") and word not in shown), "")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_exists(page: Path, capsys: pytest.CaptureFixture[str]):
    found = commands(page)
    assert found
    assert {command: what for command in found if (what := missing(command, capsys))} == {}


@pytest.mark.slow  # the demo, the conformance kit and a game from a folder of examples
def test_every_command_of_the_readme_runs(tmp_path: Path):
    pytest.importorskip("jsbsim")
    pytest.importorskip("torch")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    script = tmp_path / "bin" / "palaestra"
    script.parent.mkdir()
    script.write_text(CONSOLE_SCRIPT, encoding="utf-8")
    ran = [c for c in commands(README) if c.startswith("palaestra ") and not c.startswith(ALONE)]
    assert ran
    for command in ran:
        words = shlex.split(LONG.get(command, command))[1:]
        execute([str(script), *words, *(["--matches", "1"] if words[0] == "demo" else [])], tmp_path)


def test_the_readme_is_read_in_three_minutes():
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 220
    assert [line for line in lines if len(line) > 165] == []


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "index.md"], ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page: Path):
    for link in re.findall(r"(?:\]\(|href=\"|src=\")([^)\"\s]+)[)\"]", page.read_text(encoding="utf-8")):
        file, _, title = link.partition("#")
        if link.startswith("http"):
            continue
        there = page if not file else page.parent / file
        assert there.exists(), link
        titles = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.M) if title else []
        assert not title or title in [re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles], link


def test_every_measurement_that_a_row_of_speed_names_exists():
    measured = (ROOT / "benchmarks" / "speed.py").read_text(encoding="utf-8").partition("MEASUREMENTS: ")[2]
    known = set(re.findall(r'^    "([\w-]+)": \(', measured, re.M))
    with (ROOT / "docs" / "speed.csv").open(newline="", encoding="utf-8") as file:
        named = {name for row in csv.DictReader(file) for name in row["measurements"].split()}
    assert {"cartpole", "ucav"} <= named <= known


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.stem)
def test_every_claim_has_a_paper_in_the_references_a_number_a_verdict_and_a_command(page: Path):
    papers = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    for paper, claim, measured, verdict, command in claims_of(page):
        assert claim
        assert re.search(r"\*\*.+?\*\*", measured), measured
        assert verdict.startswith(VERDICTS), verdict
        assert re.fullmatch(r"`(python -m |python benchmarks/|palaestra ).+`", command), command
        for number in re.findall(r"arXiv:([\d.]+)", paper):
            assert f"arXiv:{number}" in papers, number
