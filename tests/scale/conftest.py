"""A Ray cluster of two machines for all tests of this folder, and what looks for its processes."""

# pyright: reportMissingImports=false

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SCALE = Path(__file__).parent


@pytest.fixture(scope="session")
def decisions_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the policies of ``test_sampling.py`` count their decisions; workers of `cluster` know it as COUNT_FILE."""
    return tmp_path_factory.mktemp("actors") / "decisions"


@pytest.fixture(scope="session")
def cluster(decisions_file: Path) -> Iterator[Any]:
    """Two machines of one processor each, all on this one. Workers can import the modules of this folder.

    A test that kills a machine adds it first. A machine whose process is gone counts as dead after a second and a half
    instead of 15 seconds; one that is only slow has its 10 seconds as everywhere.
    """
    pytest.importorskip("ray", reason='needs the extra "palaestra[ray]"')
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SCALE), prepend=os.pathsep)
        patch.setenv("COUNT_FILE", str(decisions_file))
        quick = {"health_check_initial_delay_ms": 300, "health_check_period_ms": 300}
        head = {"num_cpus": 1, "include_dashboard": False, "_system_config": quick}
        made = Cluster(initialize_head=True, head_node_args=head)
        try:
            made.add_node(num_cpus=1)
            yield made
        finally:
            made.shutdown()


@pytest.fixture
def at_work() -> Callable[[str], list[int]]:
    """``at_work(function)``: ids of the processes that run this function as a task of Ray now.

    Where several processes test, those of a cluster that this one started.
    """
    ours = f"PYTEST_XDIST_WORKER={os.environ.get('PYTEST_XDIST_WORKER', '')}".encode()

    def find(function: str) -> list[int]:
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                is_at_work = (folder / "cmdline").read_bytes().startswith(f"ray::{function}".encode())
                if is_at_work and (ours[-1:] == b"=" or ours in (folder / "environ").read_bytes().split(b"\0")):
                    found.append(int(folder.name))
            except OSError:  # it has just ended
                continue
        return found

    return find
