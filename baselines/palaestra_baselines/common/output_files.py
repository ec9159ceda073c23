"""Tables and copies that are written in one piece: the old file stays until the new one is whole."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path

from palaestra.core.files import write_atomically


def write_csv(path: Path, rows: Iterable[Iterable[object]]) -> None:
    """Writes a table; its folder is made.

    Raises:
        OSError: It cannot be written; the old file is as it was.
    """
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda file: file.write(text.getvalue().encode()))


def copy_file(source: Path, target: Path) -> None:
    """Copies a file; the folder of the copy is made.

    Raises:
        OSError: It cannot be read or written; the old copy is as it was.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    content = source.read_bytes()
    write_atomically(target, lambda file: file.write(content))
