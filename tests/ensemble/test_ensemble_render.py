"""Pictures and texts of LLMEnsemble."""

from typing import Any

import numpy as np
import pytest
from ensemble.ensemble_matches import SPANS, K, started

from palaestra.games.ensemble.ensemble_render import RIGHT, WRONG, cell_color, draw, write

pytestmark = pytest.mark.jitless


def record_of(sim: Any) -> Any:
    return sim.states.view((np.record, sim.states.dtype))[0]


def test_the_text_shows_weights_tokens_and_shares() -> None:
    sim = started(1, seed=4)
    assert write(sim.game, sim.game.world, record_of(sim)).startswith("span 0 of 6, next domain ")
    sim.step(np.log([[[0.5, 0.3, 0.2]]]))
    s = record_of(sim)
    first, *rows = write(sim.game, sim.game.world, s).splitlines()
    assert first == f"span 1 of 6, next domain {s.domain}, right {s.info.right:.0%}"
    assert [row.split()[:4] for row in rows[:K]] == [
        ["expert", str(k), "weight", f"{weight:.2f}"] for k, weight in enumerate((0.5, 0.3, 0.2))
    ]
    for row, tokens in zip(rows, (*s.proposed[:4].T, s.written[:4]), strict=True):
        stars = [
            f"{token}*" if token == wanted else f"{token}" for token, wanted in zip(tokens, s.wanted, strict=False)
        ]
        assert row.split()[-4:] == stars
    for _ in range(SPANS - 1):
        sim.step(np.zeros((1, 1, K)))
    assert "span 6 of 6, complete" in write(sim.game, sim.game.world, record_of(sim))


def test_the_picture_has_a_cell_for_each_token_and_span() -> None:
    sim = started(1, seed=4)
    canvas = draw(sim.game, sim.game.world, record_of(sim))
    empty = [shape for shape in canvas.shapes if shape.kind == "rectangle"]
    sim.step(np.zeros((1, 1, K)))
    canvas = draw(sim.game, sim.game.world, record_of(sim))
    filled = [shape for shape in canvas.shapes if shape.kind == "rectangle"]
    assert len(filled) - len(empty) == K + 4 * (K + 1)
    assert np.asarray(canvas).shape == (408, 760, 3)


def test_cells_are_the_bluer_the_more_is_right() -> None:
    sim = started(1)
    sim.step(np.zeros((1, 1, K)))
    s = record_of(sim)
    s.history[0, :3] = 0, 2, 4
    none, half, all_ = (cell_color(sim.game.world, s, 0, row) for row in range(3))
    assert none[2] < half[2] < all_[2]
    assert none[0] > half[0] > all_[0]
    assert WRONG[0] > RIGHT[0]
    assert cell_color(sim.game.world, s, 1, 0) not in (none, half, all_)
