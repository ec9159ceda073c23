"""Files of all kinds: one error for those that cannot be used, one way to read other people's, one way to write."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

LONGEST_NAME = 50
"""Characters of a file's name that its unfinished copy repeats; file systems allow 255 bytes in all."""
LONGEST_QUOTE = 60
"""Characters of a stranger's text that a message repeats."""
LONE_HALVES = re.compile("[\ud800-\udfff]")
"""Halves of characters: JSON may have them, files in UTF-8 cannot."""
MARKS_OF_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
LONGEST_LINE = 600
"""Characters of an error that a refusal repeats."""
PLAIN_NAME = re.compile(r"[A-Za-z0-9_.:+/-]+(\[\d+\])?")
"""Names that a message repeats without quotes: words, and members of a pool (``dungeons:8x60[3]``)."""


LARGE = 2**26
"""Bytes from which on a file is looked at for holes."""
MOST_HOLES = 8
"""Times that a file may be larger than what is stored of it."""


def escaped(text: str) -> str:
    """A text that a terminal can show: control characters, line breaks and changes of direction as escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class FileError(ValueError):
    """A file that cannot be used.

    Its message is one line: ``<path>: what is wrong: what to do``. It is `escaped` here, whatever the path and the
    file hold, so that no reader can forget it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(escaped(message))


@dataclass(frozen=True, repr=False)
class TextFile:
    """A text file without its path: what a replay holds of a map or a graph, and what `read_text` takes instead of one.

    Attributes:
        name: Of the file, without its folder.
        text: All that it holds.
    """

    name: str
    text: str

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content in UTF-8."""
        return hashlib.sha256(self.text.encode(errors="surrogatepass")).hexdigest()

    def __repr__(self) -> str:
        """For messages."""
        return f"<{printable_name(self.name)} {self.digest[:12]}>"


TextSource = str | Path | TextFile
"""What `read_text` reads."""


def open_regular(path: str | Path, most_bytes: int | None = None) -> BinaryIO:
    """Opens a file for reading, and nothing else: a named pipe or a device could keep the reader waiting for ever.

    Args:
        path: The file.
        most_bytes: Largest size; None: any, and holes are not looked for.

    Raises:
        FileError: A folder, a pipe, a socket or a device; too large; or large and mostly holes, which read as zeros.
        OSError: It cannot be opened.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # to open a device may do something
        raise FileError(f"{path}: no regular file: give a file, not a folder, pipe or device")
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise FileError(f"{path}: no regular file: give a file, not a folder, pipe or device")
        if most_bytes is not None and status.st_size > most_bytes:
            raise FileError(f"{path}: larger than {most_bytes} bytes: no such file is as large")
        if most_bytes is not None and status.st_size > LARGE and _is_hollow(descriptor, status):
            raise FileError(f"{path}: {status.st_size} bytes, of which few are stored: take a whole copy of it")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def _is_hollow(descriptor: int, status: os.stat_result) -> bool:
    """Whether a file is mostly holes: gigabytes that cost their sender nothing."""
    blocks = getattr(status, "st_blocks", None)  # none on Windows, 0 where a file system does not tell
    if blocks is None or 512 * MOST_HOLES * blocks >= status.st_size or not hasattr(os, "SEEK_HOLE"):
        return False
    try:
        return os.lseek(descriptor, 0, os.SEEK_HOLE) < status.st_size
    except OSError:
        return False
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def read_limited(path: str | Path, most_bytes: int) -> bytes:
    """The content of a file, whose size is checked before any of it is read.

    Args:
        path: The file.
        most_bytes: Largest size.

    Raises:
        FileError: No regular file, or too large; names ``path``.
        OSError: It cannot be read.
    """
    with open_regular(path, most_bytes) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1)
        if len(content) > size:
            raise FileError(f"{path}: has grown while it was read: wait until it is written")
        return content


def read_text(source: TextSource, most_bytes: int) -> str:
    """The content of a text file in UTF-8, or in UTF-16 with its mark; a mark is no part of the content.

    Args:
        source: Path of the file, or a `TextFile`.
        most_bytes: Largest size.

    Raises:
        FileError: No regular file, too large, no text, or it cannot be read; names ``source``.
    """
    if isinstance(source, TextFile):
        if len(source.text) > most_bytes:
            raise FileError(f"{source}: larger than {most_bytes} bytes: no such file is as large")
        text = source.text
        if LONE_HALVES.search(text):
            raise FileError(f"{source}: no text in UTF-8: it has half a character: save it in UTF-8")
    else:
        try:
            content = read_limited(source, most_bytes)
            text = content.decode("utf-16" if content.startswith(MARKS_OF_UTF_16) else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise FileError(f"{source}: no text in UTF-8: byte {error.start}: save it in UTF-8") from error
        except OSError as error:
            raise FileError(f"{source}: cannot be read: {error.strerror}") from error
    if "\0" in text:
        raise FileError(f"{source}: no text in UTF-8: it has a byte of zero: save it in UTF-8")
    return text


def printable(text: object, longest: int = LONGEST_QUOTE) -> str:
    """A stranger's text for a message: in quotes, control and direction characters escaped, and cut.

    Args:
        text: What a file says; anything but a text is written by ``str`` first.
        longest: Characters that are kept.
    """
    shown = str(text)
    return repr(shown) if len(shown) <= longest else f"{shown[:longest]!r}... ({len(shown)} characters)"


def printable_name(name: object) -> str:
    """A stranger's name for a message: a plain word (``grid:10x10``) as it is, else as `printable` writes it."""
    shown = str(name)
    return shown if len(shown) <= LONGEST_QUOTE and PLAIN_NAME.fullmatch(shown) else printable(shown)


def printable_error(error: BaseException) -> str:
    """What an error says, for a message: as it is where it is a short line, else as `printable` writes it."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error) or type(error).__name__
    return text if text.isprintable() and len(text) <= LONGEST_LINE else printable(text, LONGEST_LINE)


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
