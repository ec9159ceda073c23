"""Scripts of the particle games play better with more strength."""

from __future__ import annotations

import numpy as np
import pytest

from palaestra.evaluation import evaluate


@pytest.mark.slow
@pytest.mark.parametrize(("id", "matches"), [("palaestra/TeamKeepAway-v0", 2000), ("palaestra/TeamTag-2v2-v0", 1500)])
@pytest.mark.parametrize("red", [True, False], ids=["red", "blue"])
def test_the_score_of_either_side_rises_with_its_strength(id: str, matches: int, red: bool):
    scores = []
    for strength in (0.0, 0.25, 0.5, 0.75, 1.0):
        own, other = f"default:{strength}", "default:0.5"
        pair = (own, other) if red else (other, own)
        table = evaluate(id, *pair, matches=matches, swap=False, num_envs=256)
        scores.append(table.score if red else 1 - table.score)
    assert (np.diff(scores) > 0).all(), scores
