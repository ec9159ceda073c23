"""Golden files: every environment plays as recorded, and a changed rule is detected."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from games.play import OURS, by_tier
from testing.planting import DUEL, SPOKEN, TUG

import golden
from palaestra import registry
from palaestra.testing import CheckError, Skipped, playthrough
from palaestra.testing.playthroughs import MOST_LINES

FOLDER = Path(__file__).parents[1] / "golden"


def needs_package(id: str) -> None:
    if not golden.makeable([id]):
        pytest.skip(f"an optional package of {id} is missing")


@pytest.mark.parametrize("id", by_tier())
def test_an_id_plays_as_recorded(id: str):
    needs_package(id)
    try:
        golden.compare_hash(id, FOLDER)
    except Skipped as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("id", OURS)
def test_the_rules_of_an_id_are_those_recorded_under_every_python_and_numpy(id: str):
    try:
        golden.compare_rules(id, FOLDER)
    except Skipped as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("id", by_tier(dict.fromkeys(map(golden.shown_id, OURS))))
def test_a_playthrough_of_a_factory_reads_as_recorded(id: str):
    needs_package(id)
    golden.compare_playthrough(id, FOLDER)


@pytest.mark.parametrize("path", sorted((FOLDER / "playthroughs").glob("*.txt")), ids=lambda path: path.stem)
def test_a_playthrough_is_short_and_its_actions_vary(path: Path):
    lines = path.read_text(encoding="utf-8").splitlines()
    moves = [line for before, line in pairwise(lines) if before.startswith("decision ")]
    assert len(lines) <= MOST_LINES
    assert sum(one != other for one, other in pairwise(moves)) >= (len(moves) - 1) / 3


def test_a_playthrough_of_agents_that_speak_is_in_words(broken_games_are_registered: None):
    lines = playthrough(SPOKEN).splitlines()
    assert lines[3:5] == ["  red_0 reads", "    0.09"]
    said = [line for line in lines if " says " in line]
    assert len(said) >= 3
    assert all(line.count(" says '") == 2 for line in said)
    assert "red_0 says 'pull " in said[0]


@pytest.mark.check
def test_golden_files_are_of_ids_that_exist():
    assert golden.orphans(FOLDER) == []
    hashes = golden.read_hashes(FOLDER)
    assert not set().union(*hashes.values()) - set(registry.ROWS)


@pytest.mark.check
@pytest.mark.jitless
@pytest.mark.usefixtures("broken_games_are_registered")
def test_a_cross_platform_hash_is_the_same_interpreted_and_compiled():
    assert golden.fingerprint(DUEL) == "1b1457319063a9f4c785fa12e35974c1"


@pytest.mark.check
@pytest.mark.usefixtures("broken_games_are_registered")
def test_what_is_recorded_is_found_again_and_a_change_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(registry, "ROWS", {DUEL: registry.ROWS[DUEL]})  # other tests have ids of this factory too
    with pytest.raises(CheckError, match="has no golden hash"):
        golden.compare_hash(DUEL, tmp_path)
    with pytest.raises(CheckError, match="has no playthrough"):
        golden.compare_playthrough(DUEL, tmp_path)
    with pytest.raises(CheckError, match="has no recorded digest of its rules"):
        golden.compare_rules(DUEL, tmp_path)
    playthrough = str(tmp_path / "playthroughs" / "Duel-v0.txt")
    assert golden.update([DUEL], tmp_path) == [f"digest of the rules of {DUEL}", f"hash of {DUEL}", playthrough]
    golden.compare_hash(DUEL, tmp_path)
    golden.compare_playthrough(DUEL, tmp_path)
    assert golden.update([DUEL], tmp_path) == []
    monkeypatch.setitem(registry.ROWS, DUEL, registry.Row(DUEL, "testing.broken_games:duel", kwargs={"fault": 9}))
    with pytest.raises(CheckError, match="plays otherwise than recorded on all machines"):
        golden.compare_hash(DUEL, tmp_path)
    golden.compare_rules(DUEL, tmp_path)  # the fault is a parameter's default
    monkeypatch.setattr(golden, "rules_digest", lambda game: "0" * 16)
    with pytest.raises(CheckError, match="has other rules than recorded"):
        golden.compare_rules(DUEL, tmp_path)
    with pytest.raises(CheckError, match=r"Duel-v0.txt, line \d+: recorded 'rewards"):
        golden.compare_playthrough(DUEL, tmp_path)


@pytest.mark.check
def test_a_platform_without_a_recorded_hash_is_skipped_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    id = "palaestra/CartPole-v0"
    golden.update([id], tmp_path)
    monkeypatch.setattr(golden, "platform_key", lambda game: "another planet")
    with pytest.raises(Skipped, match="recorded on another planet"):
        golden.compare_hash(id, tmp_path)
    golden.compare_rules(id, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(golden, "rules_digest", lambda game: "0" * 16)
        with pytest.raises(Skipped, match="were recorded on another planet"):
            golden.compare_rules(id, tmp_path)
    golden.update([id], tmp_path)
    assert len(golden.read_hashes(tmp_path)["per-platform"][id]) == 2


@pytest.mark.check
def test_a_changed_hash_takes_those_of_other_platforms_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    id = "palaestra/CartPole-v0"
    golden.update([id], tmp_path)
    monkeypatch.setattr(golden, "platform_key", lambda game: "another planet")
    golden.update([id], tmp_path)
    monkeypatch.setattr(golden, "fingerprint", lambda id: "0" * 32)
    golden.update([id], tmp_path)
    assert golden.read_hashes(tmp_path)["per-platform"][id] == {"another planet": "0" * 32}


def test_the_command_updates_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["--folder", str(tmp_path), "palaestra/CartPole-v0"]
    assert golden.main(["--check", *arguments]) == 1
    assert golden.main(["--update", *arguments]) == 0
    assert golden.main(["--check", *arguments]) == 0
    assert "hash of palaestra/CartPole-v0" in capsys.readouterr().out


@pytest.mark.usefixtures("broken_games_are_registered")
def test_a_playthrough_lists_actions_by_agent():
    text = playthrough(TUG)
    assert text.startswith(f"{TUG}, seed 4, ")
    assert "decision 1\n  red_0 does pull " in text
    assert "\n    knot_m                       -1.17869 m\n" in text
    assert text.rstrip().splitlines()[-1].startswith("terminated: dragged_over, winner ")


def test_numbers_of_per_platform_games_may_differ_a_little_and_words_not():
    was = "  roll 0.5 rad\n  x 1e-17"
    assert golden.first_other_line(was, "  roll 0.5001 rad\n  x -3e-18", numerically=True) == ""
    assert golden.first_other_line(was, "  roll 0.51 rad\n  x 0", numerically=True).startswith("line 1")
    assert golden.first_other_line(was, "  yaw 0.5 rad\n  x 1e-17", numerically=True).startswith("line 1")
    assert golden.first_other_line(was, "  roll 0.5001 rad\n  x 1e-17", numerically=False).startswith("line 1")
    assert golden.first_other_line(was, "  roll 0.5 rad", numerically=True) == "it had 2 lines and now has 1"
