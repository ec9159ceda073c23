"""Makes what a release uploads, and tries it as its users will: ``make release``. It uploads nothing.

It refuses a commit with changes, or one at which a unit of ``make nightly`` has not passed. Then it builds the wheel
and the sdist, and on each Python of pyproject.toml that is on this machine installs the wheel alone: .ci/core_only.py,
the bits of two games, and the tests of rules as plain Python from the unpacked sdist. The files and the notes are left
in build/release.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / ".ci"), str(ROOT / "tests")]

import nightly  # noqa: E402 (found by the line above)
import pythons  # noqa: E402

BUILD = ROOT / "build" / "release"
RULES = "jitless and not (browser or check or learning or peers or ray or slow)"


def refuse(text: str) -> None:
    """Ends with a reason."""
    sys.exit(f"no release: {text}")


def run(words: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """What a command prints; ends where it fails."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ran = subprocess.run(words, cwd=folder, env=clean | environment, capture_output=True, text=True, check=False)
    if ran.returncode:
        print(ran.stdout, ran.stderr, sep="\n")
        refuse(f"{' '.join(map(str, words))} failed in {folder}")
    return ran.stdout


def check_nightly(commit: str) -> str:
    """Ends where a unit has not passed at the commit; else says how many have."""
    if commit.endswith("-dirty"):
        refuse("files are changed: commit them")
    results, names = nightly.read_results(nightly.KEPT), list(nightly.units())
    missing = [
        name for name in names
        if name not in results or results[name]["result"] == "failed" or results[name]["commit"] != commit
    ]  # fmt: skip
    if missing:
        refuse(f"{len(missing)} of {len(names)} units have not passed at {commit} ({missing[0]}, ...): make nightly")
    return f"{len(names)} units of `make nightly` at {commit}"


def try_wheel(python: str, wheel: Path, tests: Path, folder: Path) -> str:
    """Installs the wheel in a fresh venv and tries it; returns a line for the notes."""
    pins = ["--quiet", "--constraint", ROOT / "constraints.txt"]
    run([python, "-m", "venv", "--clear", folder], ROOT)
    inside = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    run([inside, "-m", "pip", "install", *pins, wheel], folder)
    shutil.copy(ROOT / ".ci" / "core_only.py", folder)
    said = run([inside, "core_only.py"], folder).strip()
    bits = json.loads(run([inside, "-m", "palaestra", "doctor", "--json"], folder))["bits"]
    if wrong := [row["id"] for row in bits if row["status"] != "equal"]:
        refuse(f"the bits of {', '.join(wrong)} are others with {python}")
    groups = ["hypothesis", "pytest", "packaging"]
    run([inside, "-m", "pip", "install", *pins, *groups], folder)
    told = run([inside, "-m", "pytest", "-q", "-m", RULES, "tests/games", "tests/teams"], tests, NUMBA_DISABLE_JIT="1")
    return f"{said}; {told.strip().splitlines()[-1]}"


def notes(version: str, checked: Sequence[str]) -> str:
    """The section of the changelog, and what was checked."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\][^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if section is None:
        refuse(f"CHANGELOG.md has no section [{version}]")
    lines = "\n".join(f"* {line}" for line in checked)
    return f"# palaestra {version}\n\n{section[1].strip() if section else ''}\n\n## Checked\n\n{lines}\n"


def main() -> None:
    """Builds, tries and writes the notes."""
    checked = [check_nightly(nightly.commit_of(ROOT))]
    shutil.rmtree(BUILD, ignore_errors=True)
    files = BUILD / "files"
    run([sys.executable, "-m", "build", "--outdir", files, "."], ROOT)
    (wheel,), (sdist,) = files.glob("*.whl"), files.glob("*.tar.gz")
    run([sys.executable, "-m", "twine", "check", "--strict", wheel, sdist], ROOT)
    with tarfile.open(sdist) as archive:
        archive.extractall(BUILD, filter="data")
    tests = BUILD / sdist.name.removesuffix(".tar.gz")
    interpreters = pythons.found()
    if absent := [version for version in pythons.wanted() if version not in interpreters]:
        print(f"not tried, as they are not on this machine: Python {', '.join(absent)}")
    for version, python in interpreters.items():
        print(f"trying Python {version}", flush=True)
        checked.append(f"Python {version}: {try_wheel(python, wheel, tests, BUILD / f'venv-{version}')}")
    text = notes(wheel.name.split("-")[1], checked)
    (BUILD / "notes.md").write_text(text, encoding="utf-8")
    print(f"{files} holds the files of the release, {BUILD / 'notes.md'} its notes. Nothing was uploaded.")


if __name__ == "__main__":
    main()
