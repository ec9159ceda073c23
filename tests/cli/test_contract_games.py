"""The command line on a game of many sizes and on one whose bodies an engine moves."""

from __future__ import annotations

from pathlib import Path

import pytest
from games import body_game, size_game  # noqa: F401 (they register their ids)

from palaestra.cli.play import Session

COURIERS, LARGE = "tests/Couriers-v0", "tests/CouriersLarge-v0"
BODY, COMPILED = "tests/Body-v0", "tests/BodyCompiled-v0"


@pytest.mark.parametrize(
    ("id", "keys", "module"),
    [
        (f"games.size_game:{COURIERS}", "2,2+w,.,2", "games.size_game"),
        (LARGE, "3,.,1+e", ""),
        (f"games.body_game:{BODY}", "right,right+up,.", "games.body_game"),
        (COMPILED, "left", ""),
    ],
)
def test_a_match_is_played_by_keys_recorded_and_proved(id: str, keys: str, module: str, run, tmp_path: Path):
    pytest.importorskip("PIL")
    file = tmp_path / "match.npz"
    printed = run("play", id, "--headless", keys, "--record", file)
    assert printed.code == 0
    assert f"not over after {len(keys.split(','))} decisions" in printed.out
    command = f"palaestra replay {f'--import {module} ' if module else ''}{file}"
    assert command in printed.out
    words = command.split()[1:]
    printed = run(*words, "--verify", "--gif", tmp_path / "match.gif", "--csv", tmp_path / "match.csv")
    assert printed.code == 0, printed.err
    assert "the replay repeats bitwise" in printed.out
    assert (tmp_path / "match.gif").stat().st_size > 0


def test_a_key_walks_to_the_nearest_parcel_and_the_legend_names_it():
    pytest.importorskip("PIL")
    session = Session(COURIERS, wait=True)
    session.start()
    stay, nearest = session.sim.legal["parcel"]["ids"][0, 0, :2].tolist()  # type: ignore[index]
    assert [session.entry(key) for key in session.keyboard.keys[:2]] == [
        (f"1 parcel {stay}", True),
        (f"2 parcel {nearest}", False),
    ]
    assert session.decide(["2"])
    assert session.sim.actions[0, 0, 0] == nearest
    assert session.sim.info["illegal"][0, 0] == 0
    session.frame()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((COURIERS, "--a", "nearest", "--b", "random", "--matches", "8"), "8 wins, 0 losses, 0 draws"),
        ((COURIERS, "--players", "nearest", "shared_plan", "--matches", "4"), "nearest against shared_plan"),
        ((BODY, "--a", "steer", "--matches", "4"), "mean return"),
        ((COMPILED, "--a", "steer", "--matches", "4", "--set", "speed_limit_mps=0.2"), "mean return"),
    ],
)
def test_matches_are_evaluated(words: tuple[str, ...], says: str, run):
    printed = run("eval", *words)
    assert printed.code == 0, printed.err
    assert says in printed.out


@pytest.mark.check
def test_matches_with_another_representation_are_evaluated(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")  # no other test evaluates this representation
    printed = run("eval", LARGE, "--a", "nearest", "--b", "random", "--matches", "2", "--set", "observation=nearest")
    assert printed.code == 0, printed.err
    assert "2 wins" in printed.out


def test_the_ends_of_an_evaluation_have_their_names(run):
    printed = run("eval", BODY, "--a", "steer", "--matches", "4", "--set", "speed_limit_mps=0.2")
    assert "ends: diverged 4" in printed.out


def test_both_engines_have_the_same_evaluation(run):
    one = run("eval", BODY, "--a", "steer", "--matches", "4", "--json").json()
    other = run("eval", COMPILED, "--a", "steer", "--matches", "4", "--json").json()
    assert {k: v for k, v in one.items() if k != "id"} == {k: v for k, v in other.items() if k != "id"}


@pytest.mark.slow  # the kit itself passes these games in tests/testing
@pytest.mark.parametrize("id", [COURIERS, BODY])
def test_the_kit_is_run_by_its_command(id: str, run):
    printed = run("check", id)
    assert printed.code == 0, printed.out
    assert "FAILED" not in printed.out


def test_a_replay_of_an_unknown_id_says_what_to_import(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from palaestra import registry
    from palaestra.replay import record

    record(COURIERS, horizon=2).save(tmp_path / "match.npz")
    monkeypatch.delitem(registry.ROWS, COURIERS)
    printed = run("replay", tmp_path / "match.npz", "--verify")
    assert printed.code == 1
    assert "import the module that registers it first" in printed.err
