"""The fuzzer plays the reported steps, finds planted faults, and locates them."""

import re

import pytest
from testing import broken_games
from testing.planting import DUEL, TUG

import fuzz

pytestmark = [pytest.mark.usefixtures("broken_games_are_registered"), pytest.mark.slow]


def test_a_sound_game_holds_by_chance_by_scripts_and_mirrored():
    verdict = fuzz.fuzz(TUG, 4000)
    assert verdict.violation == ""
    assert verdict.steps >= 4000
    assert verdict.mirrored >= 3000, "finished lanes do not wait: nearly all lane-steps are compared"
    assert verdict.matches == sum(verdict.ends.values()) > 50
    assert set(verdict.ends) == {"dragged_over", "horizon"}


def test_the_same_seed_plays_the_same_matches_and_another_does_not():
    ends = [fuzz.fuzz(DUEL, 3000, seed).ends for seed in (0, 0, 1)]
    assert ends[0] == ends[1] != ends[2]


@pytest.mark.parametrize(
    ("id", "fault", "says"),
    [
        (DUEL, "rewards do not add up", r"lane \d+: red gets -?\d\.\d, blue gets"),
        (
            DUEL,
            "one member is paid",
            r"lane \d+: (red|blue)_0 gets -?\d\.\d, (red|blue)_1 0\.0 \(step \d+, lanes seeded from 0\)",
        ),
        (TUG, "rope leans to red", "state knot_m: lane 0 is"),
    ],
)
def test_a_planted_fault_is_found(id: str, fault: str, says: str):
    verdict = fuzz.fuzz(id, 3000, fault=broken_games.NUMBER[fault])
    assert re.search(says, verdict.violation), verdict.violation


def test_the_command_prints_a_table_and_fails_where_a_promise_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert fuzz.main([TUG, "--steps", "2000", "--seed", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["id", "steps", "matches", "mirrored", "s", "verdict", "ends"]
    assert lines[1].startswith(TUG)
    assert " holds " in lines[1]
    monkeypatch.setattr(fuzz, "unbalanced", lambda sim: "lane 0: red gets 1.0, blue gets 0.0")
    assert fuzz.main([TUG, "--steps", "2000"]) == 1
    out = capsys.readouterr().out
    assert " BROKEN" in out
    assert f"{TUG}: lane 0: red gets 1.0, blue gets 0.0 (step 1, lanes seeded from 0)" in out


def test_without_ids_all_zero_sum_games_are_played():
    assert TUG in fuzz.zero_sum_ids()
    assert "palaestra/CartPole-v0" not in fuzz.zero_sum_ids()


def test_a_game_with_nothing_to_add_up_is_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        fuzz.main(["CartPole"])
    assert "palaestra/CartPole-v0 is not zero-sum" in capsys.readouterr().err
    with pytest.raises(ValueError, match="CartPole-v0 is not zero-sum"):
        fuzz.fuzz("palaestra/CartPole-v0")
    with pytest.raises(ValueError, match="steps must be at least 1"):
        fuzz.fuzz(TUG, 0)
