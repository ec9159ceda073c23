"""Data sets as a kind of file that users pass on: how an honest one is made, spoilt and used."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
from reliability.mutations import Supply, evil_text

from palaestra.data import make_data, read_data

SOCCER = "palaestra/GridSoccer-v0"


def make_data_sets(folder: Path) -> list[Path]:
    """The HDF5 file and the manifest of one data set, whose folder lies beside them."""
    made = folder / "set" / "soccer-v0"
    make_data(SOCCER, "random", made, episodes=6, team="red", infos=["winner"])
    return [made / "data" / "main_data.hdf5", made / "palaestra.json"]


def evil_manifest(data: bytes, rng: np.random.Generator, supply: Supply) -> bytes:
    """Other values in a manifest that is JSON."""
    return evil_text(data, rng) if data.startswith(b"{") else data


def use_data_set(path: Path, honest: int) -> None:
    """Puts a file in the place of the honest one, the HDF5 file under a digest that fits, and reads all."""
    folder = path.parent / f"{path.name}-v0"
    shutil.copytree(path.parent.parent / "honest" / "set" / "soccer-v0", folder)
    target = folder / ("data/main_data.hdf5", "palaestra.json")[honest]
    target.unlink()
    target.symlink_to(path)
    if honest == 0 and path.is_file() and path.stat().st_size < 2**20:
        manifest = json.loads((folder / "palaestra.json").read_text())
        content = path.read_bytes()
        manifest["files"]["data/main_data.hdf5"] = [len(content), hashlib.sha256(content).hexdigest()]
        (folder / "palaestra.json").write_text(json.dumps(manifest))
    try:
        read_data(folder)
    finally:
        shutil.rmtree(folder)
