"""How Sphinx builds the site (`make docs`): README.md, the pages in docs/ and the docstrings, without the network.

The source folder is the root of the repository, so that links between README.md and docs/ work on the site as they do
in the tree.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from sphinx.ext.napoleon.docstring import GoogleDocstring

sys.path.insert(0, str(Path(__file__).with_name("tools")))
import gallery
from palaestra import __version__

project = "palaestra"
author = "palaestra contributors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = ["docs/**", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
exclude_patterns = ["build", "dist", ".*", "assets", "baselines", "envs", "runs", "tests", "palaestra-demo"]

default_role = "literal"  # docstrings write `name` as Markdown does
myst_heading_anchors = 4
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
napoleon_use_ivar = True
autodoc_mock_imports = [
    "benchmarl",
    "gem",
    "mcp",
    "openenv",
    "ray",
    "skyrl_gym",
    "stable_baselines3",
    "tensordict",
    "textarena",
    "torch",
    "torchrl",
    "verifiers",
    "xuance",
]
"""What only adapters import: the site is built without them."""

html_theme = "furo"
html_title = f"palaestra {release}"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]

FOLDER = re.compile(r"\[([^\]]+)\]\((?!https?:|#)([^)#]*/|[^)#.]*)\)")
"""Links to folders: the site has none, so their text stays."""
MATCH = re.compile(r"!\[A match of (\S+)\]\([^)]*\)")
"""The picture of an environment's page."""
PICTURE = re.compile(r'<a href="([^"]+)"><img width="\d+" alt="([^"]+)" src="([^"]+)"></a>')
"""A picture of README.md's gallery, in HTML because of its width."""


def as_on_the_site(app: Any, name: str, source: list[str]) -> None:
    """Turns what GitHub shows and MyST does not into what both show."""
    source[0] = FOLDER.sub(r"\1", PICTURE.sub(r"[![\2](\3)](\1)", source[0]))


def add_match(app: Any, name: str, source: list[str]) -> None:
    """Puts a match that plays in the browser under the picture of an environment's page."""
    found = MATCH.search(source[0]) if name.startswith("docs/environments/") else None
    if found is None:
        return
    page = Path(app.outdir, "_matches", f"{Path(name).name}.html")
    try:
        gallery.write_match(found[1], page)
    except ImportError:
        return  # its engine is not installed
    frame = f'<iframe class="match" loading="lazy" title="a match of {found[1]}" src="../../_matches/{page.name}">'
    source[0] = source[0].replace(found[0], f"```{{raw}} html\n{frame}</iframe>\n```", 1)


def lead_to_the_first_page(app: Any, error: Exception | None) -> None:
    """Writes index.html at the top of the site."""
    if error is None:
        page = f'<!doctype html><meta http-equiv="refresh" content="0; url={root_doc}.html"><title>palaestra</title>\n'
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


CONSTANTS = ("attribute", "data", "property")
"""What napoleon reads as ``type: text``; the docstrings here hold sentences, and annotations give the types."""


def keep_sentence(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Called before napoleon."""
    if what in CONSTANTS:
        app.env.temp_data["sentence"] = list(lines)


def restore_sentence(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Called after napoleon: "Decisions that a match may last: twelve days" names no type."""
    if what in CONSTANTS:
        lines[:] = GoogleDocstring(app.env.temp_data.pop("sentence"), app.config).lines()


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", keep_sentence, priority=400)
    app.connect("autodoc-process-docstring", restore_sentence, priority=600)
    app.connect("source-read", as_on_the_site)
    app.connect("source-read", add_match)
    app.connect("build-finished", lead_to_the_first_page)
