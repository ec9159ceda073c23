"""The tests of the baselines have a key for checkpoints of their own: the user's folder is not touched."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def own_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for the key, in this process and in those that it starts."""
    patch = pytest.MonkeyPatch()
    folder = str(tmp_path_factory.mktemp("state"))
    patch.setenv("XDG_STATE_HOME", folder)
    patch.setenv("LOCALAPPDATA", folder)
    yield
    patch.undo()
