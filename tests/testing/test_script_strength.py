"""The table of strengths says what holds and what does not."""

import pytest

import palaestra
import script_strength
from script_strength import ScriptStrength, measure

MELEE, RAID = "test/Melee-v0", "test/Raid-v0"
palaestra.register(MELEE, "games.two_team_homogeneous:game", family="test")
palaestra.register(RAID, "games.two_team:game", family="test")
GOOD = ScriptStrength(MELEE, "chaser", "both", 0.95, (0.1, 0.3, 0.5, 0.7, 0.9), (0.5, 0.49, 0.52), 1000)


def with_(**changes) -> ScriptStrength:
    return ScriptStrength(**{**vars(GOOD), **changes})


def test_what_holds_has_no_violations():
    assert GOOD.violations == []
    assert with_(rises=(0.1, 0.3, 0.29, 0.7, 0.9)).violations == [], "a fall within the luck of the matches"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"wins": 0.89}, "1 beats 0 in 89.0%"),
        ({"rises": (0.1, 0.5, 0.3, 0.7, 0.9)}, "does not rise"),
        ({"equal": (0.5, 0.54, 0.5)}, "a side has an advantage"),
    ],
)
def test_what_does_not_hold_is_named(changes: dict, complaint: str):
    assert with_(**changes).violations == [complaint]


def test_symmetric_teams_have_one_row_and_others_one_a_team():
    (both,) = measure(MELEE, "chaser", 40)
    assert (both.side, len(both.rises), len(both.equal)) == ("both", 5, 3)
    assert both.wins > 0.5
    assert both.rises[-1] > both.rises[0]
    assert [row.side for row in measure(RAID, "fighter", 10)] == ["red", "blue"]


def test_a_script_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"no zero-sum game with a script 'chasr': chaser"):
        measure(MELEE, "chasr")
    with pytest.raises(ValueError, match="CartPole-v0 is no zero-sum game"):
        measure("palaestra/CartPole-v0")


def test_the_command_prints_a_table_and_fails_where_something_does_not_hold(capsys: pytest.CaptureFixture[str]):
    code = script_strength.main([RAID, "--script", "idler", "--matches", "10"])
    printed = capsys.readouterr().out
    assert code == 1
    assert "1 beats 0 in" in printed
    assert "test/Raid-v0" in printed
