"""A random key of this user on this machine: it tells checkpoints that this user wrote from those of others."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

SIZE = 32
"""Bytes of the key."""


def key_path() -> Path:
    """Where the key lies: in the user's folder for state, which no other user may write to."""
    if os.name == "nt":
        folder = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return folder / "palaestra" / "checkpoint.key"


def user_key() -> bytes:
    """The key; made at first use, with rights for this user alone.

    Raises:
        OSError: It can neither be read nor made, or others can read or replace it; says what to do.
    """
    path = key_path()
    if not path.exists():
        make_key(path)
    key = path.read_bytes()
    if len(key) != SIZE:
        raise OSError(f"{path}: the key has {len(key)} bytes instead of {SIZE}: delete it, a new one is made")
    if os.name != "nt":
        facts = path.stat()
        if facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o077:
            raise OSError(f"{path}: the key belongs to another user, or others can read it: delete it")
    return key


def make_key(path: Path) -> None:
    """Makes the key; of two processes that do so at once one is first, and both have its key."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(SIZE))
            file.flush()
            os.fsync(file.fileno())
        os.link(unfinished, path)  # fails where the key is there by now
    except FileExistsError:
        pass
    finally:
        unfinished.unlink(missing_ok=True)
