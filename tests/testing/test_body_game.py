"""The conformance kit on the body game: an engine outside that saves, and its compiled twin."""

import pytest
from games import body_game

from palaestra.testing import check

pytestmark = pytest.mark.check

IDS = ("tests/Body-v0", "tests/BodyCompiled-v0")


def test_the_ids_differ_in_the_engine_alone():
    assert body_game.game().physics == "games.body_game:Pucks"
    assert body_game.game("compiled").physics is None
    with pytest.raises(ValueError, match="engine must be 'outside' or 'compiled', got 'magic'"):
        body_game.game("magic")  # type: ignore[arg-type]


@pytest.mark.parametrize("id", IDS)
def test_the_body_game_passes_the_kit(id):
    report = check(id)
    assert report.passed, str(report)
    assert report["threads_do_not_change_results"].status == "passed"


@pytest.mark.slow
@pytest.mark.parametrize("id", IDS)
def test_the_body_game_passes_the_kit_at_full(id):
    report = check(id, "full")
    assert report.passed, str(report)
