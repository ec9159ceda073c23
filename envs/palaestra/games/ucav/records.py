"""What pictures, films and flight recordings read from the match records of all games of this family."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from palaestra.game import Game
from palaestra.games.ucav.body import PERIOD_S


def stack_records(records: Iterable[np.void] | np.ndarray) -> np.ndarray:
    """The records of a match as one array ``[T]``: what ``trail`` is a slice of.

    Args:
        records: Copies of ``simulation.states[lane]`` in their order, or already an array.
    """
    return records if isinstance(records, np.ndarray) else np.array(list(records))


def match_time_s(game: Game, s: np.void) -> float:
    """Time since the start of a match, s; also within a decision, where the rules count periods."""
    if "periods" in (s.dtype.names or ()):
        return PERIOD_S * int(s["periods"])
    return int(s["steps"]) / game.render_fps


def reason(game: Game, number: int) -> str:
    """An end reason as text."""
    return game.end_reason(int(number)).replace("_", " ").replace("horizon", "time is up")


def outcome(game: Game, s: np.void) -> str:
    """How a match ended, as text; empty while it runs."""
    why, winner = reason(game, s["info"]["end_reason"]), int(s["info"]["winner"])
    if not why or len(game.teams) < 2:
        return why
    return f"{list(game.teams)[winner]} wins · {why}" if winner >= 0 else f"draw · {why}"
