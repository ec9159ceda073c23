"""Soccer in alternating order: as learners of several tests play it, and for tests that do not look at observations."""

from __future__ import annotations

from dataclasses import replace

from palaestra.game import Game
from palaestra.games.teams import soccer


def game() -> Game:
    """One against one, as ``order=alternating`` has it; `make test` compiles it beforehand."""
    return soccer.game(order="alternating")


def in_turn(rows: int = 4, columns: int = 5, players: int = 1) -> Game:
    """The rules of alternating order; what a player observes does not say whose turn it is.

    Whose turn it is is the only difference between the kernels of the two orders: the order itself is an array of the
    world. So this one is compiled where `make test` compiles a registered id of the same size.
    """
    given = soccer.game(rows, columns, players, "alternating")
    other = soccer.game(rows, columns, players)
    return replace(given, roles=other.roles, observe=other.observe)
