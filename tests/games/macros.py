"""The dogfight by macros, as the demo and the README play it; `make test` compiles it beforehand."""

from __future__ import annotations

from palaestra.game import Game
from palaestra.games.ucav import dogfight


def game() -> Game:
    """Two aircraft that are told roll, flight path and speed; an inner loop moves the sticks."""
    return dogfight.game(commands="macro")
