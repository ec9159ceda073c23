"""Whether this machine gives the bits that all machines give: a few matches, compared with shipped hashes."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from palaestra import make_batch

HASHES = {
    "palaestra/GridSoccer-v0": "f73f1c32dc966c8f",
    "palaestra/ArenaDuel2v2-v0": "542d661119a69838",
}
"""Ids whose matches have the same bits everywhere, and the hash of `LANES` matches between random players."""
LANES, DECISIONS, SEED = 4, 12, 2**33


def bit_check() -> list[dict[str, Any]]:
    """One row an id: ``id``, ``status`` (``"equal"``, ``"different"`` or ``"failed"``) and ``note``."""
    rows = []
    for id, expected in HASHES.items():
        try:
            found = match_hash(id)
        except Exception as error:
            rows.append({"id": id, "status": "failed", "note": f"{type(error).__name__}: {error}".splitlines()[0]})
            continue
        note = "" if found == expected else f"{found} instead of {expected}: report numba, llvmlite and this processor"
        rows.append({"id": id, "status": "different" if note else "equal", "note": note})
    return rows


def match_hash(id: str) -> str:
    """Hash of all that is seen and paid in matches between random players."""
    sim, sha = make_batch(id, LANES), hashlib.sha256()
    try:
        for team in sim.game.teams:
            sim.set_opponent(team, "random")
        sim.reset(seed=SEED)
        for _ in range(DECISIONS):
            sim.step()
            for array in (sim.observations, sim.rewards, sim.terminated, sim.truncated):
                sha.update(np.ascontiguousarray(array).tobytes())
    finally:
        sim.close()
    return sha.hexdigest()[:16]
