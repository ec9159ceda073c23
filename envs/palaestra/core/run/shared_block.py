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
            OSError: There is not so much shared memory, or none; names what is needed, what there is and what to write.
        """
        free = free_bytes()
        if free is not None and free < size:
            raise _refusal(errno.ENOSPC, size, free, owner)
        try:
            self.memory = SharedMemory(create=True, size=size)
        except OSError as error:
            raise _refusal(error.errno or errno.EIO, size, free, owner) from error
        self._free = weakref.finalize(self, _free, self.memory)
        try:
            _reserve(self.memory, size)
        except OSError as error:
            self.free()
            raise _refusal(error.errno or errno.EIO, size, free_bytes(), owner) from error

    def free(self) -> None:
        """Removes the block; arrays that lie in it keep their values. May be called twice."""
        self._free()

    def leave(self) -> None:
        """Called in the child of a fork: the block is the parent's."""
        self._free.detach()


def free_bytes() -> int | None:
    """Free shared memory in bytes; None where the system does not say."""
    try:
        found = os.statvfs(FOLDER)
    except (OSError, AttributeError):
        return None
    return found.f_bavail * found.f_frsize


def megabytes(size: int) -> str:
    """A size in words."""
    return f"{size / 1e6:,.1f} MB"


def _refusal(number: int, size: int, free: int | None, owner: str) -> OSError:
    """The error of a size that the system does not give; ``number`` says why."""
    if number == errno.ENOSPC:
        there = "there is less" if free is None else f"{FOLDER} has {megabytes(free)} free"
        instead = "use fewer lanes, or give the container more (docker run --shm-size=2g)"
    else:
        there = f"the system gives none ({os.strerror(number)}; Linux keeps it in {FOLDER})"
        instead = f"or let {FOLDER} be a file system in memory that you may write (mount -t tmpfs)"
    return OSError(
        number,
        f"{owner} needs {megabytes(size)} of shared memory for its workers, {there}: leave workers= out, which plays "
        f"in this process (threads= divides its lanes), {instead}",
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
