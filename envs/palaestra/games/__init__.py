"""The families of games, a folder each. A family imports nothing of another one.

What stood in ``palaestra.search``, ``palaestra.ucav``, ... before the families had a room of their own is still found
there: such a module is the one of `palaestra.games`, not a second one.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType

FAMILIES_OF_BEFORE = ("calibration", "ensemble", "mathtext", "pursuit", "robots", "search", "skirmish", "teams", "ucav")
MOVED = {
    "palaestra.search.server": "palaestra.adapters.retrieval_server",
    **{f"palaestra.{family}": f"palaestra.games.{family}" for family in FAMILIES_OF_BEFORE},
}
"""Packages and modules by their names of before."""


def is_in(module: str, package: str) -> bool:
    """Whether a module is a package, or in it."""
    return f"{module}.".startswith(f"{package}.")


class _OldPath(Loader):
    """Loads the module of `palaestra.games` under its name of before."""

    spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        before = next(name for name in MOVED if is_in(spec.name, name))
        module = importlib.import_module(spec.name.replace(before, MOVED[before], 1))
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec  # the import system has written the one of the name of before


class _OldPaths(MetaPathFinder):
    """Finds ``palaestra.search`` and what is in it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_moved = any(is_in(fullname, name) for name in MOVED)
        return spec_from_loader(fullname, _OldPath()) if is_moved else None


sys.meta_path.insert(0, _OldPaths())  # before the one that would find a second copy
