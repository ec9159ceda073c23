"""What must be the same for a replay to repeat: the rules, and for per-platform games the engine and the platform."""

from __future__ import annotations

import platform

from palaestra.core.compile.identity import rules_digest
from palaestra.game import Game

__all__ = ["engine_key", "rules_digest"]


def engine_key(game: Game) -> str:
    """What a per-platform game's bits depend on besides its rules; empty for a cross-platform game."""
    if game.determinism == "cross-platform":
        return ""
    engine = f"{game.engine_version()} on " if game.engine_version is not None else ""
    return f"{engine}{platform.system()} {platform.machine()}"
