"""A reader that knows sentences, and nothing of the package, answers all questions of all presets from their text."""

import pytest
from search.readers import CarefulReader, PlainReader

from palaestra import registry
from palaestra.games.search import score

PRESETS = [id for id in registry.ROWS if "/SearchQA-" in id and "Custom" not in id and "Docs" not in id]


def share_of_right_answers(id: str, matches: int, **keywords: object) -> float:
    """Plays matches of new seeds; answers are judged by the scorer and by the environment, which agree."""
    reader = CarefulReader if "Reading" in id else PlainReader
    env = registry.make_env(id, form="text", **keywords)
    right = 0
    for seed in range(10_000, 10_000 + matches):
        observation, info = env.reset(seed=seed)
        told = info["answers"]
        policy, is_over, turn = reader(), False, ""
        while not is_over:
            turn = policy.turn(observation)
            observation, _, terminated, truncated, info = env.step(turn)
            is_over = terminated or truncated
        said = turn.removeprefix("<answer>").removesuffix("</answer>")
        assert score(said, told).exact_match == info["exact_match"], (seed, turn)
        right += int(info["exact_match"])
    env.close()
    return right / matches


@pytest.mark.parametrize("id", PRESETS)
@pytest.mark.slow  # ten kernels, and 5,000 matches in text
def test_a_careful_reader_answers_all_questions(id: str):
    assert share_of_right_answers(id, 500) == 1.0
