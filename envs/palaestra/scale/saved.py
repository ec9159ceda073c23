"""Finished matches in a file, so that an evaluation that was interrupted goes on where it was."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from palaestra.core.files import FileError, open_regular, write_atomically
from palaestra.evaluation.matches import MATCH
from palaestra.scale.pieces import Job, Piece, PolicyFile

FOLDER = Path("runs", "scale")
EVERY_S = 30.0
"""Time between two writes."""


class SavedResults:
    """Results of pieces, in memory and now and then in a file; to be used as a context manager.

    The file is deleted when all is there, and written when the work ends before.

    Attributes:
        pieces: All pieces.
        path: The file.
    """

    def __init__(self, path: str | Path | None, jobs: Sequence[Job], pieces: Sequence[Piece]) -> None:
        """Reads the file if there is one.

        Args:
            path: The file; None for one in `FOLDER`.
            jobs: What is played, with the contents of policies in place of references.
            pieces: All pieces.

        Raises:
            FileError: The file holds something else, or matches of something else.
        """
        self._about = json.dumps([_plain(jobs), _plain(pieces)], sort_keys=True)
        key = hashlib.sha256(self._about.encode()).hexdigest()[:16]
        self.path = FOLDER / f"{jobs[0].id.replace('/', '-')}-{key}.npz" if path is None else Path(path)
        self.pieces = list(pieces)
        starts = np.cumsum([0, *(piece.count for piece in pieces)])
        self._rows = [slice(a, b) for a, b in itertools.pairwise(starts)]
        self._results = np.zeros(starts[-1], MATCH)
        self._done = np.zeros(len(pieces), np.bool_)
        self._written_s = time.monotonic()
        if self.path.exists():
            self._read()

    @property
    def missing(self) -> list[int]:
        """Numbers of the pieces that are still to be played."""
        return np.flatnonzero(~self._done).tolist()

    @property
    def matches(self) -> int:
        """Number of finished matches."""
        return sum(self.pieces[k].count for k in np.flatnonzero(self._done))

    def add(self, number: int, results: np.ndarray) -> None:
        """Takes the results of a piece.

        Raises:
            ValueError: It is there already, or the results are those of another number of matches.
        """
        if self._done[number] or len(results) != self.pieces[number].count:
            raise ValueError(f"piece {number}: {len(results)} results of {self.pieces[number].count}, or a second time")
        self._results[self._rows[number]] = results
        self._done[number] = True
        if time.monotonic() - self._written_s > EVERY_S:
            self._write()

    def parts(self, job: int) -> list[np.ndarray]:
        """Results of a job, in parts."""
        return [self._results[rows] for piece, rows in zip(self.pieces, self._rows, strict=True) if piece.job == job]

    def __enter__(self) -> Self:
        """Begins."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Deletes the file where all is there, else writes it and says so."""
        if self._done.all():
            self.path.unlink(missing_ok=True)
        elif self._done.any():
            self._write()
            if error is not None:
                error.add_note(
                    f"{self.matches} of {len(self._results)} matches are kept in {self.path}: the same call goes on "
                    "from there"
                )

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {"about": np.array(self._about), "done": self._done, "results": self._results}
        write_atomically(self.path, lambda file: np.savez(file, **content))  # type: ignore[arg-type]
        self._written_s = time.monotonic()

    def _read(self) -> None:
        try:
            with open_regular(self.path) as file, np.load(file, allow_pickle=False) as content:
                about, done, results = str(content["about"]), content["done"], content["results"]
        except (ValueError, KeyError, EOFError) as error:
            raise FileError(f"{self.path}: no results of palaestra.scale: delete it, or name another file") from error
        if about != self._about or done.shape != self._done.shape or results.dtype != MATCH:
            raise FileError(
                f"{self.path}: results of other matches, rules or versions: name another file, or delete it"
            )
        self._done[...], self._results[...] = done, results


def _plain(value: Any) -> Any:
    """Jobs and pieces as JSON holds them; a policy is its digest."""
    if isinstance(value, PolicyFile):
        return [value.name, value.digest]
    if isinstance(value, Job | Piece):
        return {name: _plain(member) for name, member in vars(value).items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if isinstance(value, dict):
        return {str(name): _plain(member) for name, member in value.items()}
    return value if isinstance(value, str | int | float | bool) or value is None else repr(value)
