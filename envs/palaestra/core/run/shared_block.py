"""One block of shared memory for the arrays of a simulation: reserved before it is used, freed by its maker alone."""

from __future__ import annotations

import errno
import os
import weakref
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

FOLDER = Path("/dev/shm")
"""Where Linux keeps shared memory."""


class SharedBlock:
    """Zeroed shared memory that other processes find by its name.

    Attributes:
        memory: The block.
    """

    def __init__(self, size: int, owner: str) -> None:
        """Reserves the memory.

        Args:
            size: In bytes.
            owner: What needs it, for errors.

        Raises:
            OSError: There is not so much shared memory; names the needed and the free size.
        """
        free = free_bytes()
        if free is not None and free < size:
            raise _no_space(size, free, owner)
        self.memory = SharedMemory(create=True, size=size)
        self._free = weakref.finalize(self, _free, self.memory)
        try:
            _reserve(self.memory, size)
        except OSError as error:
            self.free()
            if error.errno != errno.ENOSPC:
                raise
            raise _no_space(size, free_bytes(), owner) from None

    def free(self) -> None:
        """Removes the block; arrays that lie in it keep their values. May be called twice."""
        self._free()

    def leave(self) -> None:
        """Called in the child of a fork: the block is the parent's."""
        self._free.detach()


def free_bytes() -> int | None:
    """Free shared memory in bytes; None where the system does not say."""
    if not FOLDER.is_dir():
        return None
    found = os.statvfs(FOLDER)
    return found.f_bavail * found.f_frsize


def megabytes(size: int) -> str:
    """A size in words."""
    return f"{size / 1e6:,.1f} MB"


def _no_space(size: int, free: int | None, owner: str) -> OSError:
    there = "there is less" if free is None else f"{FOLDER} has {megabytes(free)} free"
    return OSError(
        errno.ENOSPC,
        f"{owner} needs {megabytes(size)} of shared memory for its workers, {there}: use fewer lanes, no workers, or "
        "give the container more (docker run --shm-size=2g)",
    )


def _reserve(memory: SharedMemory, size: int) -> None:
    """Takes the memory now: without it a write into a full file system ends the process by a signal."""
    path = FOLDER / memory.name
    if not hasattr(os, "posix_fallocate") or not path.exists():
        return
    handle = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(handle, 0, size)
    finally:
        os.close(handle)


def _free(memory: SharedMemory) -> None:
    try:
        memory.close()
    except BufferError:  # a view is still held: the mapping goes with the last of them
        memory._buf = memory._mmap = None  # type: ignore[attr-defined]
    memory.unlink()
