"""Files with mistakes, for the tests of rulesets and maps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import palaestra_assets


@pytest.fixture
def spoilt(tmp_path: Path) -> Callable[[str, dict[str, Any]], Path]:
    """``spoilt("maps/3m", {"red.groups.0.count": 28})``: a bundled file with other values at some key paths.

    The value ``...`` removes the key.
    """

    def write(asset: str, changes: dict[str, Any]) -> Path:
        content = json.loads(palaestra_assets.path(f"skirmish/{asset}.json").read_text(encoding="utf-8"))
        for key, value in changes.items():
            *path, last = (int(part) if part.isdigit() else part for part in key.split("."))
            inside = content
            for part in path:
                inside = inside[part]
            if value is ...:
                del inside[last]
            else:
                inside[last] = value
        file = tmp_path / "own.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        return file

    return write
