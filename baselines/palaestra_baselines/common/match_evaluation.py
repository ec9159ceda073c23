"""Evaluation of learnt players in matches against scripts and saved players, from both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from palaestra.core.opponents import OpponentSpec
from palaestra.evaluation import EVALUATION_RUN, MatchTable, evaluate

PlayerOfTeam = OpponentSpec | Mapping[str, OpponentSpec]
"""A player of either team: a script, the file of a policy, or a player for each team by its name."""


@dataclass(frozen=True)
class BothSides:
    """Matches of a player against an opponent, half of them as each team.

    Attributes:
        as_first: The player has the first team.
        as_second: The player has the second team; the table counts wins of the opponent.
    """

    as_first: MatchTable
    as_second: MatchTable

    @property
    def win_rates(self) -> tuple[float, float]:
        """Share of matches that the player won as first and as second team."""
        return self.as_first.wins / self.as_first.matches, self.as_second.losses / self.as_second.matches

    @property
    def win_rate(self) -> float:
        """Share of all matches that the player won."""
        return sum(self.win_rates) / 2

    @property
    def score(self) -> float:
        """Share of the points of the player: a win is 1, a draw 1/2."""
        return (self.as_first.score + 1.0 - self.as_second.score) / 2


def play_both_sides(
    id: str,
    player: PlayerOfTeam,
    opponent: PlayerOfTeam,
    matches: int,
    seed: int = EVALUATION_RUN,
    num_envs: int = 64,
    **keywords: Any,
) -> BothSides:
    """Plays matches of a two-team game, half of them with the player as each team; both halves have the same seeds.

    Args:
        id: Registered id.
        player: Its wins are counted.
        opponent: The other player.
        matches: Number of matches, rounded down to an even number.
        seed: Number of the run, as for `palaestra.evaluation.evaluate`.
        num_envs: Matches at once.
        **keywords: Of the game.
    """
    options: dict[str, Any] = {"matches": matches // 2, "seed": seed, "swap": False, "num_envs": num_envs, **keywords}
    first = evaluate(id, in_team(player, 0), in_team(opponent, 1), **options)
    second = evaluate(id, in_team(opponent, 0), in_team(player, 1), **options)
    return BothSides(first, second)


def in_team(player: PlayerOfTeam, number: int) -> OpponentSpec:
    """The player of the team with this number."""
    return list(player.values())[number] if isinstance(player, Mapping) else player
