"""Fixed worlds of SearchQA: which questions are asked."""

import numpy as np
import pytest

from palaestra.games.search import generator

pytestmark = pytest.mark.jitless


def test_questions_whose_answer_is_beyond_the_entities_in_mind_are_not_asked() -> None:
    """Two other passages before each one that is needed: after three searches there is no room left."""
    world = generator.make_world(2000, 0, generator.Noise())
    for hops, share in ((1, 1.0), (4, 0.0)):
        asked = generator.draw_questions(world, 0, 200, (hops, hops), False, None)
        others = np.random.default_rng(0).integers(len(world.texts), size=(len(asked.kind), 4, 2))
        found = np.concatenate([others, asked.gold[:, :, None]], axis=2)
        assert generator.is_followable(world, asked, found).mean() == pytest.approx(share, abs=0.1)


def test_no_path_of_a_fixed_world_comes_back_to_an_entity() -> None:
    world = generator.make_world(600, 0, generator.Noise())
    asked = generator.draw_questions(world, 0, 600, (4, 4), False, None)
    assert len(asked.nodes) > 400
    assert all(len(set(nodes)) == 5 for nodes in asked.nodes.tolist())
