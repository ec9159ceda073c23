"""What one process writes of each id, a replay and a snapshot, and whether another process goes on with it."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from games.play import all_bytes

from palaestra import make_batch
from palaestra.core.compile.reachable import unchanged_rules
from palaestra.replay import Recorder, ReplayError, load, verify
from palaestra.testing.players import Player

DECISIONS = 3


def files(id: str, folder: Path) -> tuple[Path, Path]:
    """Where the replay and the snapshot of an id are."""
    name = id.rpartition("/")[2]
    return folder / f"{name}.npz", folder / f"{name}.pickle"


def next_decisions(sim: Any) -> str:
    """Hash of the next decisions of a random player."""
    player, sha = Player(sim), hashlib.sha256()
    for _ in range(DECISIONS):
        player.play(sim)
        sim.step()
        sha.update(all_bytes(sim).tobytes())
    return sha.hexdigest()


def write(id: str, folder: Path) -> None:
    """Plays a few decisions, writes their replay, a snapshot and what came after it.

    Raises:
        ImportError: An optional package is missing.
    """
    replay, snapshot = files(id, folder)
    with unchanged_rules():
        sim = make_batch(id, 1)
        with Recorder(sim) as recorder:
            sim.reset(seed=3)
            next_decisions(sim)
        recorder.replay().save(replay)
        snapshot.write_bytes(pickle.dumps((sim.snapshot(), next_decisions(sim))))
        sim.close()


def problems(ids: Iterable[str], folder: Path, *, replays: bool) -> Iterator[str]:
    """What does not go on as it was written.

    Args:
        ids: In this order, which decides what other simulations were made and closed before.
        folder: Where the files are.
        replays: Whether to repeat the replays too.
    """
    with unchanged_rules():
        for id in ids:
            yield from _problems_of(id, folder, replays)


def _problems_of(id: str, folder: Path, replays: bool) -> Iterator[str]:
    replay, snapshot = files(id, folder)
    if replays:
        try:
            result = verify(load(replay))
            if not result.ok:
                yield f"{id}: {result}"
        except ReplayError as error:
            yield f"{id}: {error}"
    saved, expected = pickle.loads(snapshot.read_bytes())
    sim = make_batch(id, 1)
    try:
        sim.restore(saved)
        if next_decisions(sim) != expected:
            yield f"{id}: a restored snapshot goes on in another way"
    except ValueError as error:
        yield f"{id}: {error}"
    sim.close()
