"""Files of the cache of compiled games: read only where nobody else can have written them, and only if they are whole.

The files are pickles and machine code: whoever can write them decides what runs here. A folder is used only if it and
its files belong to this user or to root and nobody else may write there. Each file begins with a checksum of its name
and its content; damaged ones are removed and compiled anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import uuid
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MARK = b"palaestra\1"
"""How a file begins; the checksum follows."""
DIGEST_BYTES = 32
PATTERN = "*.nb[ic]"
"""Names of the files of the cache."""

_warned: set[str] = set()


def warn_once(subject: str, message: str) -> None:
    """Warns, once a subject and process."""
    if subject not in _warned:
        _warned.add(subject)
        warnings.warn(message, RuntimeWarning, stacklevel=6)


class DamagedError(Exception):
    """A file of the cache is cut, changed, or another file than its name says."""


def not_ours(status: os.stat_result) -> str:
    """Why others may have written a file or folder; empty where they cannot have."""
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to {_user(status.st_uid)}"
    if status.st_mode & stat.S_IWOTH:
        return "everybody may write there"
    if status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid):
        return f"the group {_group(status.st_gid)} may write there"
    return ""


def _user(number: int) -> str:
    import pwd

    with contextlib.suppress(KeyError):
        return f"the user {pwd.getpwuid(number).pw_name}"
    return f"the user {number}"


def _group(number: int) -> str:
    import grp

    with contextlib.suppress(KeyError):
        return grp.getgrgid(number).gr_name
    return str(number)


def _is_own_group(number: int) -> bool:
    """Whether a group holds this user alone, as many systems make one for each user."""
    import grp
    import pwd

    with contextlib.suppress(KeyError):
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(number)
        return user.pw_gid == number and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return False


def folder_problem(folder: str | Path) -> str:
    """Why a folder is not used; empty where it is."""
    try:
        return not_ours(os.stat(folder))
    except OSError as error:
        return error.strerror or str(error)


def owner_and_rights(folder: Path) -> str:
    """Whose a folder is and who may do what there, in words for people; empty where folders have no owners."""
    if not hasattr(os, "geteuid"):
        return ""
    status = folder.stat()
    return f"of {_user(status.st_uid)}, {stat.filemode(status.st_mode)}"


def read(path: Path) -> bytes | None:
    """Content of a file; None where there is none, or none that is ours (with a warning).

    Raises:
        DamagedError: The file is not what was written.
    """
    try:
        file = path.open("rb")
    except OSError:
        return None
    with file:
        if problem := not_ours(os.fstat(file.fileno())):
            warn_once("file", f"palaestra does not load the compiled game in {path}: {problem}. It is compiled anew.")
            return None
        stored = file.read()
    if not stored.startswith(MARK):
        if stored[:1] == b"\x80":  # a pickle, as numba writes them by itself
            return None
        raise DamagedError
    start = len(MARK) + DIGEST_BYTES
    content = stored[start:]
    if stored[len(MARK) : start] != _digest(path.name, content):
        raise DamagedError
    return content


def write(path: Path, content: bytes) -> None:
    """Writes a file whole or not at all.

    Raises:
        OSError: It cannot be written.
    """
    part = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
    try:
        with open(
            os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644), "wb"
        ) as file:
            file.write(MARK + _digest(path.name, content) + content)
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def _digest(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + content).digest()


def drop(path: Path, error: BaseException | None = None) -> None:
    """Removes a damaged file, with a warning."""
    with contextlib.suppress(OSError):
        path.unlink()
    why = f" ({type(error).__name__})" if error is not None and not isinstance(error, DamagedError) else ""
    warn_once(
        "damaged", f"palaestra has removed a damaged file of the cache of compiled games{why}: {path}. It is made anew."
    )


def survey(files: Iterable[Path]) -> dict[str, Any]:
    """Looks at files of a cache: how many ``files``, their ``megabytes``, the names of ``damaged`` and ``foreign``."""
    found: dict[str, Any] = {"files": 0, "megabytes": 0.0, "damaged": [], "foreign": []}
    for path in files:
        try:
            status = path.stat()
            found["files"] += 1
            found["megabytes"] += status.st_size / 1e6
            if not_ours(status):
                found["foreign"].append(path.name)
            else:
                read(path)
        except DamagedError:
            found["damaged"].append(path.name)
        except OSError:  # removed meanwhile
            continue
    return found
