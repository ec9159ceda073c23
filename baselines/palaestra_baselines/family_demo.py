"""The demo of a family by the scripts that it names: ``palaestra demo --game teams``, or of any id.

It plays matches between scripts, prints how they ended, and writes one of them as a page for a browser.
"""

from __future__ import annotations

from pathlib import Path

from palaestra import registry
from palaestra.cli.progress_bar import Progress
from palaestra.console import find_id
from palaestra.evaluation import evaluate
from palaestra.replay import record, to_html
from palaestra_baselines.skirmish_demo import seed_of_best_match


def show(out: Path, game: str, matches: int, seed: int, quiet: bool) -> list[Path]:
    """Plays matches, prints a table and writes the won match of median length.

    Args:
        out: Folder of the page.
        game: Name of a family, for its demo, or an id.
        matches: Number of matches.
        seed: Number of the run; match k has the seed ``(seed << 32) + k``.
        quiet: Show no progress.

    Returns:
        The page.

    Raises:
        KeyError: No such game; suggests the nearest id.
        ValueError: The game has no script that could play it.
    """
    family = registry.FAMILIES.get(game)
    id, *named = (find_id(game),) if family is None else family.demo
    rules, _ = registry.make_game(id)
    if not rules.scripts:
        raise ValueError(f"{id} has no scripts to play it: name another game")
    players = dict(zip(rules.teams, [*named, *[rules.default_opponent] * len(rules.teams)], strict=False))
    with Progress("matches", matches, title=id, quiet=quiet) as progress:
        table = evaluate(
            id,
            *players.values(),
            matches=matches,
            seed=seed,
            swap=False,
            progress=lambda done, _: progress.update(done),
        )
    print(table)
    page = out / f"{id.rpartition('/')[2]}.html"
    to_html(record(id, players, seed=seed_of_best_match(table)), page)
    return [page]
