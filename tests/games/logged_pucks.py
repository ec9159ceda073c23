"""The pucks of the body game by an engine that neither saves nor draws, as JSBSim: its inputs are logged instead."""

from __future__ import annotations

from dataclasses import replace

from games import body_game

from palaestra.game import Game


class LoggedPucks:
    """`body_game.Pucks` without what an engine may do besides moving bodies."""

    body_field = body_game.Pucks.body_field
    command_fields = body_game.Pucks.command_fields

    def __init__(self, game: Game, lanes: int, threads: int) -> None:
        """See `body_game.Pucks`."""
        pucks = body_game.Pucks(game, lanes, threads)
        self.load, self.advance, self.close = pucks.load, pucks.advance, pucks.close


def game() -> Game:
    """The body game with this engine."""
    return replace(body_game.game(), physics=f"{__name__}:LoggedPucks")
