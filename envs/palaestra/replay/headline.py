"""A match in one line: who played, who won, how it ended and after how long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from palaestra.core.run.opponents import SUFFIXES


def headline(id: str, players: Mapping[str, str], winner: str | None, reason: str, decisions: int) -> str:
    """One line of who played a match, who won, how it ended and after how long.

    Args:
        id: Of the environment.
        players: Name of the player of each team.
        winner: Name of the team that won, or None.
        reason: Why it ended; empty for a match that goes on.
        decisions: Its length.
    """
    names = {team: f"{player} ({team})" for team, player in players.items()}
    length = f"{decisions} decision{'s' * (decisions != 1)}"
    ended = f" by {reason}" if len(names) > 1 else f", {reason}"
    if len(names) == 1:
        (who,) = players.values()
    elif winner in names:
        who = f"{names.pop(winner)} beat {' and '.join(names.values())}"  # pyright: ignore[reportArgumentType]
    else:
        who = " and ".join(names.values()) + (" drew" if reason else "")
    return f"{name_of(id)}: {who}{ended if reason else ', unfinished'}, {length}"


def name_of(id: str) -> str:
    """Name of an environment without its namespace and version."""
    name = id.partition("/")[2] or id
    return name.rpartition("-v")[0] or name


def short_names(players: Sequence[str]) -> list[str]:
    """Players as pages name them: files by their stems, with as many folders before them as tells them apart."""
    parts = [_parts(player) for player in players]
    depth = 1
    while depth < max(map(len, parts), default=1):
        named = {"/".join(part[-depth:]) for part in parts}
        if len(named) == len(set(players)):
            break
        depth += 1
    return ["/".join(part[-depth:]) for part in parts]


def _parts(player: str) -> tuple[str, ...]:
    """Folders and stem of a file; of anything else the name alone."""
    path = Path(player)
    return (*path.parts[:-1], path.stem) if path.suffix.lower() in SUFFIXES else (player,)
