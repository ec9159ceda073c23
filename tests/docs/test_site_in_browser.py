"""The site in a headless Chromium: pages fit the screens of laptops."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import chromium
from chromium import Chromium

ROOT = Path(__file__).parents[2]
WHY_NOT = chromium.why_not()
pytestmark = [pytest.mark.browser, pytest.mark.skipif(WHY_NOT != "", reason=WHY_NOT)]
WIDTHS = (390, 1280, 1330, 1366, 1400, 1440, 1536, 1920)


def test_a_page_with_a_wide_table_does_not_scroll_sideways(tmp_path: Path):
    pytest.importorskip("furo", reason="the site needs the dependency group docs")
    shutil.copytree(ROOT / "docs" / "_static", tmp_path / "_static")
    settings = 'html_theme = "furo"\nhtml_static_path = ["_static"]\nhtml_css_files = ["site.css"]\n'
    (tmp_path / "conf.py").write_text(f'extensions = ["myst_parser"]\n{settings}', encoding="utf-8")
    cells = " | ".join(["a cell of some words"] * 9)
    table = "\n".join(f"| {line} |" for line in (cells, " | ".join(["---"] * 9), cells))
    (tmp_path / "index.md").write_text(f"# Page\n\n## Part\n\n{table}\n", encoding="utf-8")
    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-b", "html", ".", "site"], cwd=tmp_path, check=True)
    with Chromium() as browser:
        for width in WIDTHS:
            metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            browser.driver.get((tmp_path / "site" / "index.html").as_uri())
            assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= width
