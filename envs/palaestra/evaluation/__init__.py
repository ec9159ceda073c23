"""Evaluation: matches between named players of a registered environment, tournaments, Elo.

* `palaestra.evaluation.by_id`: `evaluate` and `tournament`;
* `palaestra.evaluation.matches`: how matches are played and counted;
* `palaestra.evaluation.ratings`: Elo and confidence intervals.
"""

from palaestra.evaluation.by_id import evaluate, tournament
from palaestra.evaluation.matches import EVALUATION_RUN, MatchTable, Tournament
from palaestra.evaluation.ratings import Rating, fit_elo, wilson_interval

__all__ = [
    "EVALUATION_RUN",
    "MatchTable",
    "Rating",
    "Tournament",
    "evaluate",
    "fit_elo",
    "tournament",
    "wilson_interval",
]
