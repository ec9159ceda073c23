"""The pages for authors of games show code that runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GAMES, CORE = ROOT / "tests" / "games", ROOT / "envs" / "palaestra" / "core"
PAGES = {
    ROOT / "docs" / "guides" / "many_sizes.md": (GAMES / "size_game.py",),
    ROOT / "docs" / "guides" / "add_a_game.md": (
        ROOT / "examples" / "capture_the_flag.py",
        GAMES / "named_level.py",
        GAMES / "toy_family" / "__init__.py",
    ),
    ROOT / "docs" / "guides" / "wrap_an_engine.md": (
        ROOT / "examples" / "pendulum.py",
        GAMES / "body_game.py",
        CORE / "contract" / "engines.py",
    ),
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_all_code_of_a_page_stands_in_the_files_that_it_names(page: Path):
    text = page.read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in PAGES[page]]
    quotations = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(quotations) > 5
    for quotation in quotations:
        assert any(quotation in source for source in sources), f"not in the sources:\n{quotation}"
    for path in PAGES[page]:
        assert path.name in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_of_a_page_lead_somewhere(page: Path):
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        file, _, title = link.partition("#")
        assert (page.parent / file).exists(), link
        titles = (
            re.findall(r"^#+ (.+)$", (page.parent / file).read_text(encoding="utf-8"), re.MULTILINE) if title else []
        )
        assert not title or title in [t.lower().replace(" ", "-") for t in titles], link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_readme_and_the_page_for_contributors_lead_to_a_page(page: Path):
    for name in ("README.md", "CONTRIBUTING.md"):
        assert f"]({page.relative_to(ROOT).as_posix()})" in (ROOT / name).read_text(encoding="utf-8"), name
