"""Replays and snapshots of all ids are used by a process that did other things before than the one that wrote them."""

from __future__ import annotations

from pathlib import Path

from games.play import python
from testing.handed_on import problems, write

from palaestra import registry

OTHER_PROCESS = """
import sys
from pathlib import Path
from testing.handed_on import problems
folder, *ids = sys.argv[1:]
print(*problems(ids, Path(folder), replays=True), sep="\\n")
"""


def test_replays_and_snapshots_of_all_ids_are_taken_by_another_process_and_snapshots_by_this_one(tmp_path: Path):
    """Takes seconds: two processes make every game. One test, because each of several would start a process."""
    ids = []
    for id in registry.ROWS:
        if id.startswith("palaestra/"):
            try:
                write(id, tmp_path)
            except ImportError:
                continue
            ids.append(id)
    assert list(problems([*ids, *ids], tmp_path, replays=False)) == []
    # The other process has another seed of hashes and makes the games in another order.
    assert python(OTHER_PROCESS, str(tmp_path), *reversed(ids), PYTHONHASHSEED="12") == ""
    assert len(ids) > 60
