"""Data that palaestra loads at run time: models, rulesets, maps, graphs and reference weights. No code but `path`."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

_ROOT = Path(str(resources.files(__name__)))


def path(name: str) -> Path:
    """Where a bundled file or folder lies on this machine.

    Args:
        name: Path inside this package with forward slashes, ``"skirmish/maps/3m.json"``.

    Raises:
        FileNotFoundError: There is no such asset. Says what there is in the nearest folder that exists.
    """
    found = _ROOT / name
    if found.exists():
        return found
    folder = next(parent for parent in found.parents if parent.is_dir())
    there = sorted(
        entry.name + "/" * entry.is_dir() for entry in folder.iterdir() if not entry.name.startswith(("__", "py.typed"))
    )
    inside = "palaestra_assets" if folder == _ROOT else f"palaestra_assets/{folder.relative_to(_ROOT).as_posix()}"
    raise FileNotFoundError(f"no asset {name!r}: {inside} holds {', '.join(there) or 'nothing'}")
