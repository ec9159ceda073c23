"""The connection to Ray, and work on it as `palaestra.scale.tasks.Tasks`."""

# pyright: reportMissingImports=false

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from importlib import import_module
from typing import Any

from palaestra.core.interrupts import Hold
from palaestra.game import Importing
from palaestra.scale.tasks import Lost

WAIT_S, KNOCK_S = 1.0, 10.0
CLUSTER_VARIABLE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Where it is 0, as Ray has it on Windows and macOS, all processes of a cluster listen on 127.0.0.1 alone."""
_is_ours = False
"""Whether the connection of this process ends with the call that made it; Ray then ends all work of the connection."""


def import_ray() -> Any:
    """Ray itself.

    Raises:
        ImportError: It is not installed; names the extra.
    """
    with Importing("ray", 'palaestra.scale needs Ray, which is not installed: pip install "palaestra[ray]"'):
        return import_module("ray")


@contextmanager
def connected(address: str | None, processes: int) -> Iterator[Any]:
    """Ray, connected inside; a connection that the caller has already is used and left open.

    Args:
        address: Of a cluster: ``"auto"`` for one of this machine, ``"ip:6379"``, ``"ray://ip:10001"``. None and
            ``"local"`` start one here, which no other machine can reach, and end it afterwards.
        processes: Most tasks at the same time on a cluster that is started here.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: There is no cluster at the address.
    """
    ray = import_ray()
    if ray.is_initialized():
        yield ray
        return
    for name, value in {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}.items():
        os.environ.setdefault(name, value)  # no statistics sent to anybody, no warning of a coming change
    is_local = address in (None, "local")
    own = {"num_cpus": processes, "include_dashboard": False} if is_local else {}
    _knock(address or "local")
    global _is_ours
    with ExitStack() as undo:
        if is_local:
            undo.enter_context(_on_this_machine_alone(ray))
        undo.callback(ray.shutdown)  # of a start that is interrupted too
        try:
            with Hold("the start of Ray") if is_local else nullcontext():
                ray.init(logging_level="error", log_to_driver=False, address=address or "local", **own)
        except (ConnectionError, RuntimeError, ValueError) as error:
            if is_local:
                raise
            raise ConnectionError(f"no Ray cluster answers at {address!r}: {str(error).splitlines()[0]}") from error
        if is_local and not _is_loopback(ray.get_runtime_context().gcs_address):
            warnings.warn(
                f"this version of Ray ({ray.__version__}) lets other machines reach its ports, which have no password: "
                "whoever reaches them runs code here. Close them in the firewall",
                RuntimeWarning,
                stacklevel=4,
            )
        _is_ours = True
        try:
            yield ray
        finally:
            _is_ours = False


@contextmanager
def _on_this_machine_alone(ray: Any) -> Iterator[None]:
    """Where Ray starts a cluster that listens on 127.0.0.1: a port of Ray has no password and runs what it is sent."""
    constants = ray._private.ray_constants  # where the variable was read when Ray was imported
    before, was_enabled = os.environ.get(CLUSTER_VARIABLE), getattr(constants, "ENABLE_RAY_CLUSTER", None)
    os.environ[CLUSTER_VARIABLE] = "0"
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = was_enabled
        if before is None:
            del os.environ[CLUSTER_VARIABLE]
        else:
            os.environ[CLUSTER_VARIABLE] = before


def _is_loopback(address: str) -> bool:
    """Whether an address ``ip:port`` is one of this machine alone."""
    return address.rpartition(":")[0].strip("[]").removeprefix("::ffff:") in ("127.0.0.1", "localhost", "::1")


def _knock(address: str) -> None:
    """Connects to a machine that an address names, as Ray tries for minutes and says little.

    Raises:
        ConnectionError: Nobody answers.
    """
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=KNOCK_S).close()
        except OSError as error:
            raise ConnectionError(f"no Ray cluster answers at {address!r}: {error.strerror or error}") from None


class RayTasks:
    """Pieces of work as Ray's tasks, one processor each."""

    def __init__(self, ray: Any, function: Callable[[Any, Any], Any], shared: Any) -> None:
        """Makes a function known.

        Args:
            ray: Ray, connected.
            function: ``function(shared, piece) -> result`` of a module that all machines can import.
            shared: First argument of all calls; a machine receives it once.
        """
        self._ray = ray
        self._function = ray.remote(num_cpus=1, max_retries=0)(function)
        self._shared = ray.put(shared)

    def start(self, piece: Any) -> Any:
        """See `palaestra.scale.tasks.Tasks`."""
        return self._function.remote(self._shared, piece)

    def wait(self, running: list[Any]) -> list[Any]:
        """See `palaestra.scale.tasks.Tasks`."""
        if not self._ray.wait(running, num_returns=1, timeout=WAIT_S)[0]:
            return []
        return self._ray.wait(running, num_returns=len(running), timeout=0)[0]

    def result(self, handle: Any) -> Any:
        """See `palaestra.scale.tasks.Tasks`."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except errors.RayTaskError as error:
            raise work_error(error) from None
        except (
            errors.WorkerCrashedError,
            errors.NodeDiedError,
            errors.LocalRayletDiedError,
            errors.ObjectLostError,
            errors.OutOfMemoryError,
        ) as error:
            raise Lost(str(error).strip().partition("\n")[0]) from None

    def cancel(self, running: list[Any]) -> None:
        """See `palaestra.scale.tasks.Tasks`."""
        if not _is_ours:
            for handle in running:
                self._ray.cancel(handle)


def work_error(error: Any) -> Exception:
    """What a task raised, as it was raised; a worker that cannot import palaestra cannot raise it."""
    cause = error.cause
    text = str(error)
    if isinstance(cause, ModuleNotFoundError) or "No module named 'palaestra" in text:
        module = getattr(cause, "name", None) or "palaestra"
        return ImportError(f"a worker of the cluster cannot import {module!r}: install it on every machine")
    return cause if isinstance(cause, Exception) else RuntimeError(text)
