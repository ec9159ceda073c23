"""Documentation: an id has a page, and its tables are those of the game."""

from __future__ import annotations

import re

from palaestra import pages, registry
from palaestra.core.contract import factories
from palaestra.core.contract.options import options_of
from palaestra.testing.harness import PRESET, Skipped, conformance, require
from palaestra.testing.subject import Subject


@conformance(order=1301, levels=PRESET)
def documentation_is_complete(subject: Subject) -> None:
    """The page has all sections in order, tables of all that there is, and no marker left over.

    Third-party games without a page are skipped.
    """
    text = pages.docstring(subject.id)
    if not re.search(r"^## ", text, re.MULTILINE) and not subject.id.startswith("palaestra/"):
        raise Skipped("the factory's module has no page in its docstring")
    titles = re.findall(r"^## (.+)$", text, re.MULTILINE)
    wanted = [t for t in pages.SECTIONS if t in titles]
    missing = [f"no section {t}" for t in pages.SECTIONS if t not in titles]
    has_options = bool(options_of(factories.load(registry.row(subject.id).factory)))
    markers = [*pages.MARKERS, *[pages.OPTIONS] * has_options]
    missing += [f"no line {marker}" for marker in markers if marker not in text]
    require(
        not missing,
        f"the docstring has {', '.join(missing)}; a docstring with everything: "
        'python -c "from palaestra.pages import TEMPLATE; print(TEMPLATE)"',
    )
    require(
        [t for t in titles if t in pages.SECTIONS] == wanted,
        f"the sections are in the order {titles}, not {list(pages.SECTIONS)}",
    )
    page = pages.page(subject.id, **subject.rules_keywords)
    left = re.findall(r"<!-- table: [^>]*-->", page)
    require(not left, f"the page has markers that nothing fills: {', '.join(left)}")
    for name in pages.names(subject.game):
        require(f"`{name}`" in page, f"the page does not name {name}")
