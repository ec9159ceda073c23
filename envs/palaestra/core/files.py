"""Files of all kinds: one error for those that cannot be used, one way to write them without losing the old one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

LONGEST_NAME = 50
"""Characters of a file's name that its unfinished copy repeats; file systems allow 255 bytes in all."""


class FileError(ValueError):
    """A file that cannot be used.

    Its message is one line: ``<path>: what is wrong: what to do``.
    """


@contextmanager
def open_atomically(path: str | Path) -> Iterator[BinaryIO]:
    """Opens a file for writing; ``path`` holds the old content until the block has ended, then all of the new one.

    The content goes to an unfinished file of a unique name in the same folder, is flushed to the disk, and takes the
    place of ``path`` at once. After any exception the unfinished file is removed and ``path`` is as it was. A link is
    followed; what is no regular file (``/dev/stdout``) is written directly.

    Yields:
        The unfinished file, opened in binary mode.

    Raises:
        OSError: It cannot be written; names ``path``.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    unfinished = target.with_name(f".{target.name[:LONGEST_NAME]}.{secrets.token_hex(8)}.tmp")
    try:
        file = unfinished.open("xb")
    except OSError as error:
        error.filename = str(path)
        raise
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(unfinished), unfinished):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error  # a full disk names no file
    finally:
        unfinished.unlink(missing_ok=True)


def write_atomically(path: str | Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes a file in one piece, see `open_atomically`.

    Args:
        path: File to write.
        write: Receives the unfinished file, opened in binary mode, and writes all of the content.

    Raises:
        OSError: It cannot be written; names ``path``.
    """
    with open_atomically(path) as file:
        write(file)
