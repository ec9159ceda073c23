"""Interpreters of the Python versions that pyproject.toml names: ``python .ci/pythons.py TURN`` prints one of them.

Of those that are on this machine, on the path or of pyenv, it is the one whose turn it is; ``.ci/run`` counts commits.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION = "Programming Language :: Python :: "


def wanted() -> list[str]:
    """The versions, for example ``3.12``."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [text.removeprefix(VERSION) for text in project["classifiers"] if text.startswith(VERSION)]
    return [version for version in versions if "." in version]


def found() -> dict[str, str]:
    """An interpreter of each version that is here."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    here: dict[str, str] = {}
    for version in wanted():
        candidates = [*map(str, sorted(pyenv.glob(f"{version}.*/bin/python"))), shutil.which(f"python{version}")]
        for path in filter(None, candidates):
            ask = [path, "-c", "import ensurepip, sys; print(*sys.version_info[:2], sep='.')"]
            if subprocess.run(ask, capture_output=True, text=True, check=False).stdout.strip() == version:
                here[version] = path  # shims of pyenv answer for versions that are not chosen
                break
    return here


if __name__ == "__main__":
    interpreters = list(found().values()) or [sys.executable]
    print(interpreters[int(sys.argv[1]) % len(interpreters)])
