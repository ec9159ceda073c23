"""A replay of anybody can be wrong, never dangerous: it is refused by a named error or played by the rules."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from reliability.forge import forge, write_sealed

import palaestra
from palaestra.core.files import FileError
from palaestra.replay import Recorder, ReplayError, load, record, verify
from palaestra.replay.file import ARRAYS, FORMAT, RESTORE, SEED, SET_OPPONENT, SET_PARAMETER, SNAPSHOT, STREAM, TEXTS

SOCCER = "palaestra/GridSoccer-v0"
RAID = "test/Raid-v0"
palaestra.register(RAID, "games.two_team:game", family="test")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two lanes of a game in which parameters, scripts and python players take part."""
    path = tmp_path_factory.mktemp("honest") / "match.npz"
    sim = palaestra.make_batch(RAID, 2, opponents={"red": "mix", "blue": idle_blue}, nodes=8, horizon=5)
    with Recorder(sim) as recorder:
        sim.reset(seed=2)
        for step in range(12):
            if step == 5:
                sim.set_parameters(damage=2.0)
            sim.step()
    recorder.replay().save(path)
    assert verify(load(path)).ok
    return path


def idle_blue(observations: dict) -> dict:
    n = len(observations["scout"])
    guard = {"move": np.ones((n, 1), int), "trigger": np.ones((n, 1), int), "effort": np.full((n, 1), 0.5)}
    return {"scout": np.ones((n, 1), int), "guard": guard}


def push_right(observations: np.ndarray) -> np.ndarray:
    return np.ones(observations.shape[:2], np.int64)


def refused(path: Path) -> str:
    """The error with which a file is refused when it is read."""
    with pytest.raises(ReplayError) as refusal:
        load(path)
    assert path.name in str(refusal.value)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def refused_to_play(path: Path) -> str:
    """The error with which a file is refused when it is played."""
    replay = load(path)
    with pytest.raises(ReplayError) as refusal:
        verify(replay)
    return str(refusal.value)


def test_a_replay_error_is_a_file_error():
    assert issubclass(ReplayError, FileError)


@pytest.mark.parametrize(
    "header",
    [
        {"num_envs": "2"},
        {"num_envs": 2.0},
        {"num_envs": True},
        {"num_envs": 0},
        {"num_envs": 2**40},
        {"num_envs": 3},
        {"check_every": 0},
        {"check_every": [1]},
        {"check_every": 7},
        {"id": 5},
        {"id": ["palaestra/GridSoccer-v0"]},
        {"id": "two\nlines"},
        {"palaestra": "\x1b[2J"},
        {"keywords": []},
        {"players": {"red": 1}},
        {"outside": {"red": "ALPHASTAR"}},
        {"outside": ["red"]},
        {"teams": "red"},
        {"end_reasons": []},  # a match of the file has one
        {"autoreset_mode": None},
        {"more": 1},
    ],
)
def test_a_header_that_fits_no_replay_is_refused(honest: Path, tmp_path: Path, header: dict):
    refused(forge(honest, tmp_path / "forged.npz", header))


@pytest.mark.parametrize("name", sorted(set(ARRAYS) - {TEXTS}))
@pytest.mark.parametrize("how", ["absent", "type", "short", "axes", "object"])
def test_arrays_of_another_form_are_refused(honest: Path, tmp_path: Path, name: str, how: str):
    with np.load(honest) as archive:
        array = archive[name]
    changed = {
        "absent": None,
        "type": array.astype(np.complex64),
        "short": array[:-1],
        "axes": array[None],
        "object": array.astype("S7"),
    }[how]
    if how == "short" and name == "match_rows":
        assert verify(load(forge(honest, tmp_path / "forged.npz", match_rows=changed))).wrong == ("matches",)
    else:
        refused(forge(honest, tmp_path / "forged.npz", **{name: changed}))


@pytest.mark.parametrize(
    "turns",
    [b"[", b"{}", b"[0]", b"[[0, 0, 0]]", b"[[0, 0, 0, 5]]", b"[" * 100_000]
    + [f'[[{step}, {lane}, 0, "x"]]'.encode() for step, lane in [(99, 0), (0, 9), (-1, 0), (0, -1), ("true", 0)]],
)
def test_turns_that_nobody_can_have_written_are_refused(honest: Path, tmp_path: Path, turns: bytes):
    refused(forge(honest, tmp_path / "forged.npz", turns=np.frombuffer(turns, np.uint8)))
    refused(forge(honest, tmp_path / "forged.npz", turns=np.frombuffer(b"[]", np.int8)))


def test_headers_that_are_no_replay_are_refused(honest: Path, tmp_path: Path):
    for text in (b"[" * 100_000, b"9" * 5_000, b"null", b"{}", b'{"magic": 1}', b"\xff\xfe", b" " * (2**20 + 1)):
        assert "replay" in refused(forge(honest, tmp_path / "forged.npz", text))


def test_a_file_of_the_old_format_says_what_to_do(tmp_path: Path):
    text = json.dumps({"magic": "palaestra replay", "format": FORMAT - 1, "id": SOCCER}).encode()
    write_sealed(tmp_path / "old.npz", {"header": np.frombuffer(text, np.uint8)})
    wrong = f"has format {FORMAT - 1}, this palaestra reads format {FORMAT}: record the match again"
    assert refused(tmp_path / "old.npz").endswith(wrong)


def test_a_small_file_that_becomes_large_is_refused_before_it_does(honest: Path, tmp_path: Path):
    bomb = io.BytesIO()
    np.save(bomb, np.zeros(10_000_000, np.uint8))
    for name in ("unknown.npy", "header.npy", "operations.npy"):
        with zipfile.ZipFile(honest) as source, zipfile.ZipFile(tmp_path / "bomb.npz", "w", 8) as target:
            for member in source.infolist():
                if member.filename != name:
                    target.writestr(member.filename, source.read(member))
            target.writestr(name, bomb.getvalue() + bytes(name == "operations.npy"))
        tracemalloc.start()
        refused(tmp_path / "bomb.npz")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 3_000_000, name


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"nodes": "many"}, "recorded by palaestra"),
        ({"workers": 500}, "workers"),
        ({"opponents": {"red": "random"}}, "opponents"),
        ({"num_envs": 7}, "num_envs"),
        ({"damage": [[1.0]], "nodes": 8, "horizon": 5}, "damage must be one value"),
        ({"damage": 1e300, "nodes": 8, "horizon": 5}, "damage must be in"),
    ],
)
def test_keywords_that_the_rules_refuse_are_refused(honest: Path, tmp_path: Path, keywords: dict, error: str):
    assert error in refused_to_play(forge(honest, tmp_path / "f.npz", {"keywords": keywords}))


@pytest.mark.parametrize(
    ("call", "value", "error"),
    [
        ((SET_OPPONENT, 0, 10**9), 1.0, "no script number 1000000000"),
        ((SET_OPPONENT, 0, -4), 1.0, "no script number -4"),
        ((SET_OPPONENT, 99, 0), 1.0, "no team or agent number 99"),
        ((SET_OPPONENT, -1, 0), 1.0, "no team or agent number -1"),
        ((SET_OPPONENT, 0, 0), 1e300, "strength"),
        ((SET_OPPONENT, 0, 0), float("nan"), "strength"),
        ((SET_PARAMETER, 0, 0), 1e300, "must be in"),
        ((SET_PARAMETER, 0, 0), float("nan"), "must be in"),
        ((SET_PARAMETER, 10**12, 0), 1.0, "no parameter number"),
        ((STREAM, 2, 0), 0.0, "no stream number 2"),
        ((RESTORE, 0, 0), 0.0, "snapshot 0 was not taken"),
        ((-1, 0, 0), 0.0, "no call number -1"),
        ((99, 0, 0), 0.0, "no call number 99"),
    ],
)
def test_a_call_that_the_simulation_refuses_is_refused(honest: Path, tmp_path: Path, call, value, error: str):
    assert error in refused_to_play(add_change(honest, tmp_path / "forged.npz", 3, call, value))


def add_change(source: Path, target: Path, operation: int, call: tuple[int, int, int], value: float) -> Path:
    """A replay with one call more, in all lanes."""
    replay = load(source)
    at = int(np.searchsorted(replay.change_operations, operation, side="right"))
    bits = np.full((1, replay.num_envs), value).view(np.int64)
    return forge(
        source,
        target,
        change_operations=np.insert(replay.change_operations, at, operation),
        change_verbs=np.insert(replay.change_verbs, at, call, axis=0),
        change_lanes=np.insert(replay.change_lanes, at, True, axis=0),
        change_values=np.insert(replay.change_values, at, bits, axis=0),
    )


def test_calls_out_of_order_or_of_operations_that_do_not_exist_are_refused(honest: Path, tmp_path: Path):
    replay = load(honest)
    for wrong in (replay.change_operations[::-1], replay.change_operations + 100, replay.change_operations - 1):
        assert "change_operations" in refused(forge(honest, tmp_path / "forged.npz", change_operations=wrong))


def test_a_call_in_the_middle_of_an_honest_run_diverges(honest: Path, tmp_path: Path):
    forged = load(add_change(honest, tmp_path / "forged.npz", 3, (STREAM, 0, 0), 5.0))
    assert not verify(forged).ok


def test_actions_that_the_rules_refuse_are_refused(honest: Path, tmp_path: Path):
    replay = load(honest)
    for word in (10**12, -1, int(np.array(np.nan).view(np.int64))):
        actions = np.full_like(replay.actions, word)
        assert "refused" in refused_to_play(forge(honest, tmp_path / "forged.npz", actions=actions))
    short = replay.actions[:, :, :-1]
    assert "actions of shape" in refused_to_play(forge(honest, tmp_path / "forged.npz", actions=short))


def test_more_lanes_than_memory_holds_are_refused(tmp_path: Path):
    replay = record("palaestra/CartPole-v0", {"cart": push_right}, horizon=1)
    n = 50_000_000
    vast = {
        name: np.lib.stride_tricks.as_strided(np.zeros(1, dtype), (rows, n), (0, 0))
        for name, dtype, rows in (("reset_lanes", bool, 1), ("change_lanes", bool, 0), ("change_values", np.int64, 0))
    }
    wide = type(replay)(**{**vars(replay), **vast, "num_envs": n})
    with pytest.raises(ReplayError, match=f"has {n} lanes of .* bytes: too many to play"):
        verify(wide)


@pytest.mark.parametrize(
    ("header", "wrong"), [({"players": {"red": "ALPHASTAR", "blue": "idle_blue"}}, "players"), ({}, "")]
)
def test_a_file_that_names_other_players_is_no_proof(honest: Path, tmp_path: Path, header: dict, wrong: str):
    result = verify(load(forge(honest, tmp_path / "forged.npz", header)))
    assert result.ok is not bool(wrong)
    assert result.wrong == ((wrong,) if wrong else ())


def test_a_file_that_lists_other_matches_is_no_proof(honest: Path, tmp_path: Path):
    row = np.array([[1, 999, 1, 1]])
    result = verify(load(forge(honest, tmp_path / "forged.npz", match_rows=row)))
    assert (result.ok, result.wrong) == (False, ("matches",))
    assert str(result) == "the replay repeats, but the file gives other matches than were played"


def test_a_match_of_an_unknown_team_is_refused(honest: Path, tmp_path: Path):
    for row in ([2, 9, 0, 1], [-1, 9, 0, 1], [0, 9, 7, 1], [0, 9, 0, 99], [0, 9, 0, -1]):
        assert "lists a match" in refused(forge(honest, tmp_path / "forged.npz", match_rows=np.array([row])))


def test_other_names_of_teams_are_refused(honest: Path, tmp_path: Path):
    assert "other teams" in refused_to_play(forge(honest, tmp_path / "f.npz", {"teams": ["blue", "red"]}))


def test_a_file_that_gives_other_seeds_is_no_proof(honest: Path, tmp_path: Path):
    true = load(honest).seeds
    forge(honest, tmp_path / "forged.npz", seeds=true + np.uint64(7))
    assert not verify(load(tmp_path / "forged.npz")).ok
    replay = load(tmp_path / "forged.npz")
    hidden = {
        "change_operations": np.insert(replay.change_operations, 0, 0),
        "change_verbs": np.insert(replay.change_verbs, 0, (SEED, 0, 0), axis=0),
        "change_lanes": np.insert(replay.change_lanes, 0, True, axis=0),
        "change_values": np.insert(replay.change_values, 0, true.view(np.int64), axis=0),
    }
    result = verify(load(forge(tmp_path / "forged.npz", tmp_path / "hidden.npz", **hidden)))
    assert (result.ok, result.wrong) == (False, ("seeds",))


def test_a_snapshot_that_nobody_restores_takes_no_memory(honest: Path, tmp_path: Path):
    assert verify(load(add_change(honest, tmp_path / "forged.npz", 3, (SNAPSHOT, 0, 0), 0.0))).ok
