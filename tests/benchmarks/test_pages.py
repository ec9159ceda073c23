"""The measurements of pages: what is played, and a table of pages that a browser has opened."""

import pytest

import chromium
import pages

pytestmark = pytest.mark.slow


def test_a_game_without_scripts_is_played_at_random_and_stops_at_its_end():
    replay = pages.play("palaestra/CartPole-v0", 200, mode="off")
    assert replay.players == {"cart": "caller"}
    assert 5 < replay.steps < 200


def test_scripts_play_several_matches():
    replay = pages.play("palaestra/GridSoccer-v0", 60, {"red": "random"})
    assert replay.steps == 60
    assert len(replay.matches) > 2
    assert "random" in replay.players.values()


@pytest.mark.browser
@pytest.mark.skipif(chromium.why_not() != "", reason=chromium.why_not())
def test_the_table_has_a_row_for_each_page(capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("PIL", reason="pictures need the extra palaestra[render]")
    assert pages.main(["GridSoccer"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[1].split()[0] == "GridSoccer-v0"
    assert table[1].endswith("holds")
    assert len(table) == 3
