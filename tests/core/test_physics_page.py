"""The page about games whose bodies an engine moves shows code that runs."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "writing_a_physics_game.md"
SOURCES = (ROOT / "tests" / "games" / "body_game.py", ROOT / "envs" / "palaestra" / "core" / "physics.py")


def test_all_code_of_the_page_stands_in_the_files_that_it_names():
    text = PAGE.read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in SOURCES]
    quotations = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(quotations) > 10
    for quotation in quotations:
        assert any(quotation in source for source in sources), f"not in the sources:\n{quotation}"
    for path in SOURCES:
        assert path.name in text


def test_links_of_the_page_lead_somewhere():
    for link in re.findall(r"\]\(([^)]+)\)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / link).exists(), link
