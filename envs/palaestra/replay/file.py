"""The file of a replay: an npz archive that NumPy opens, without pickles, with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

MAGIC = "palaestra replay"
FORMAT = 1
RESET, STEP = 0, 1
"""Values of `Replay.operations`."""
CHECK_BYTES = 8


class ReplayError(Exception):
    """A replay that cannot be made, read or repeated; says why."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Everything that came from outside in a run of N lanes, K operations (resets and decisions) long.

    Attributes:
        id: Id of the environment.
        keywords: Keywords of `palaestra.make_batch` besides `num_envs` and `autoreset_mode`.
        num_envs: Number of lanes N.
        autoreset_mode: As for `palaestra.make_batch`.
        seeds: Seed of each lane.
        players: Player of each team at the start, in words.
        matches: The finished matches in the order of their ends: ``lane``, ``step`` (decisions of the run so far),
            ``winner`` (a team or None), ``end_reason``.
        palaestra: Version of the package that recorded.
        rules: Digest of the rules, see `palaestra.core.identity`.
        engine: Engine and platform that a per-platform game's bits depend on; empty for a cross-platform game.
        check_every: Operations between two entries of `checks`.
        digest: SHA-256 of the whole run.
        operations: uint8 ``[K]``, `RESET` or `STEP`.
        reset_lanes: bool ``[resets, N]``, which lanes a reset started.
        actions: int64 ``[steps, N, W]``, the words of the actions that came from outside, in the order of
            `palaestra.core.actions.ActionTable.words`; reals as the bits of their float64.
        change_operations: int64 ``[C]``, number of the operation before which a lane was changed from outside.
        change_lanes: int64 ``[C]``, which lane.
        changes: uint8 ``[C, B]``, the lane as it then was (`palaestra.replay.lane_bytes`); first of all where each
            began.
        checks: uint8 ``[checks, N, 8]``, starts of each lane's hash chain after every `check_every` operations and at
            the end.
    """

    id: str
    keywords: Mapping[str, Any]
    num_envs: int
    autoreset_mode: str
    seeds: list[int]
    players: Mapping[str, str]
    matches: list[dict[str, Any]]
    palaestra: str
    rules: str
    engine: str
    check_every: int
    digest: str
    operations: np.ndarray
    reset_lanes: np.ndarray
    actions: np.ndarray
    change_operations: np.ndarray
    change_lanes: np.ndarray
    changes: np.ndarray
    checks: np.ndarray

    @property
    def steps(self) -> int:
        """Decisions played."""
        return len(self.actions)

    def save(self, path: str | Path) -> None:
        """Writes the file; the write is atomic.

        Raises:
            OSError: It cannot be written.
        """
        path = Path(path)
        header = {name: getattr(self, name) for name in HEADER}
        text = json.dumps({"magic": MAGIC, "format": FORMAT, **header})
        content = {"header": np.frombuffer(text.encode(), np.uint8)}
        content |= {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS}
        content["checksum"] = np.frombuffer(_checksum(content), np.uint8)
        unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with unfinished.open("xb") as file:
                np.savez_compressed(file, **content)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


ARRAYS: dict[str, tuple[str, int]] = {
    "operations": ("|u1", 1),
    "reset_lanes": ("|b1", 2),
    "actions": ("<i8", 3),
    "change_operations": ("<i8", 1),
    "change_lanes": ("<i8", 1),
    "changes": ("|u1", 2),
    "checks": ("|u1", 3),
}
"""Members of the archive: type and number of axes."""
HEADER = tuple(f.name for f in fields(Replay) if f.name not in ARRAYS)


def load(path: str | Path) -> Replay:
    """Reads a replay and checks that it is whole.

    Raises:
        ReplayError: The file is damaged, cut off, something else, or of a newer format; says which.
        OSError: It cannot be read.
    """
    path = Path(path)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
        text = bytes(content["header"]).decode()
        header = json.loads(text)
        magic, version = header.pop("magic"), header.pop("format")
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ReplayError(f"{path} is no replay of palaestra, or it is damaged or cut off ({_why(error)})") from error
    if magic != MAGIC:
        raise ReplayError(f"{path} is no replay of palaestra")
    if version != FORMAT:
        raise ReplayError(
            f"{path} has format {version}, this palaestra reads format {FORMAT}: pip install --upgrade palaestra"
        )
    if content.pop("checksum", np.empty(0)).tobytes() != _checksum(content):
        raise ReplayError(f"{path} is damaged: its checksum does not match")
    kinds = {name: (content[name].dtype.str, content[name].ndim) for name in ARRAYS if name in content}
    if set(header) != set(HEADER) or kinds != ARRAYS:
        raise ReplayError(f"{path} is damaged: it does not hold what a replay of format {FORMAT} holds")
    replay = Replay(**header, **{name: content[name] for name in ARRAYS})
    _check_sizes(replay, path)
    return replay


def _check_sizes(replay: Replay, path: Path) -> None:
    steps, resets = (int((replay.operations == kind).sum()) for kind in (STEP, RESET))
    count, n = len(replay.change_operations), replay.num_envs
    sizes = {
        "actions": replay.actions.shape[:2] == (steps, n),
        "reset_lanes": replay.reset_lanes.shape == (resets, n),
        "operations": steps + resets == len(replay.operations) > 0 == replay.operations[0],
        "changes": len(replay.changes) == len(replay.change_lanes) == count >= n,
        "change_lanes": bool(((replay.change_lanes >= 0) & (replay.change_lanes < n)).all()),
        "checks": replay.checks.shape[1:] == (n, CHECK_BYTES) and replay.check_every >= 1,
        "seeds": len(replay.seeds) == n,
    }
    wrong = [name for name, fits in sizes.items() if not fits]
    if wrong:
        raise ReplayError(f"{path} is damaged: {', '.join(wrong)} do not fit the rest")


def _checksum(content: Mapping[str, np.ndarray]) -> bytes:
    sha = hashlib.sha256()
    for name in sorted(content):
        sha.update(f"{name} {content[name].dtype.str} {content[name].shape}".encode())
        sha.update(content[name].tobytes())
    return sha.digest()


def _why(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]
