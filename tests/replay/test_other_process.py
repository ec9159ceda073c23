"""Games, replays and snapshots of all ids are used by a process that did other things before than their writer."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from games.play import python
from testing.handed_on import problems, write

from palaestra import registry

pytestmark = [pytest.mark.usefixtures("rules_do_not_change"), pytest.mark.check]

MOST_BYTES = 2048
OURS = [id for id in registry.ROWS if id.startswith("palaestra/")]
FIRST_OF_PAGES = [rows[0].id for _, rows in registry.pages()]
OTHER_PROCESS = """
import pickle, sys
from pathlib import Path
from palaestra.core.compile.reachable import unchanged_rules
folder, *ids = sys.argv[1:]
pickles = pickle.loads((Path(folder) / "games").read_bytes())
with unchanged_rules():
    games = {id: pickle.loads(pickles[id]) for id in ids}
    from palaestra import registry
    from testing.handed_on import problems
    other = [id for id in ids if registry.make_game(id)[0] is not games[id]]
    others = (f"{id}: what arrived is not the game made here" for id in other)
    print(*others, *problems(ids, Path(folder), replays=True), sep="\\n")
"""


@pytest.fixture(scope="module")
def pickles() -> dict[str, bytes]:
    """The game of each id whose packages are installed."""
    found: dict[str, bytes] = {}
    for id in OURS:
        try:
            found[id] = pickle.dumps(registry.make_game(id)[0])
        except ImportError:
            continue
    return found


def test_every_registered_game_is_pickled_small_and_comes_back_as_itself(pickles: dict[str, bytes]):
    assert len(pickles) > 60
    assert not {id: len(pickled) for id, pickled in pickles.items() if len(pickled) > MOST_BYTES}
    assert all(pickle.loads(pickled) is registry.make_game(id)[0] for id, pickled in pickles.items())


@pytest.mark.parametrize("chosen", [FIRST_OF_PAGES, pytest.param(OURS, marks=pytest.mark.slow)], ids=["pages", "all"])
def test_all_is_taken_by_another_process_and_snapshots_by_this_one(
    chosen: list[str], tmp_path: Path, pickles: dict[str, bytes]
):
    """Takes seconds: two processes make every game. One test, because each of several would start a process.

    The other process makes each game anew, which shows that none needs what this one has.
    """
    ids = []
    for id in [id for id in chosen if id in pickles]:
        try:
            write(id, tmp_path)
        except ImportError:  # its engine is not installed
            continue
        ids.append(id)
    # Kernels own no memory: only engines may remember what they have played.
    again = [id for id in ids if registry.make_game(id)[0].physics is not None]
    assert list(problems([*ids, *again], tmp_path, replays=False)) == []
    (tmp_path / "games").write_bytes(pickle.dumps(pickles))
    # The other process has another seed of hashes and makes the games in another order.
    assert python(OTHER_PROCESS, str(tmp_path), *reversed(ids), PYTHONHASHSEED="12") == ""
