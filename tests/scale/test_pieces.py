"""Matches in pieces: each match in exactly one, players and games as data, and results in a file."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import palaestra
from palaestra import registry
from palaestra.core.files import FileError
from palaestra.evaluation import evaluate
from palaestra.evaluation.matches import MATCH
from palaestra.game import Game
from palaestra.scale import by_ray, pieces
from palaestra.scale.pieces import (
    Job,
    Piece,
    PolicyFile,
    WorkerRefused,
    arrived,
    pieces_of,
    play_piece,
    row_data,
    travelling,
)
from palaestra.scale.saved import SavedResults

PONG = "palaestra/TeamPong-v0"
WEIGHTS = Path(__file__).parents[2] / "assets" / "palaestra_assets" / "weights" / "fm3q_team_pong.safetensors"


def job(a: Any = "tracker", b: Any = "chaser", num_envs: int = 64, **keywords: Any) -> Job:
    versions = pieces.made_with(PONG, keywords)
    return Job(PONG, row_data(registry.row(PONG)), keywords, (a, b), versions, num_envs)


@pytest.mark.parametrize("counts", [(1,), (1, 0), (7, 7), (100, 99), (5000,), (123_457, 123_457)])
@pytest.mark.parametrize("has_engine", [False, True])
def test_every_match_is_in_one_piece(counts, has_engine):
    found = pieces_of(3, 9, counts, has_engine)
    for side, count in enumerate(counts):
        numbers = [k for p in found if p.side == side for k in range(p.first, p.first + p.count)]
        assert numbers == list(range(count))
    assert all(p.count <= (64 if has_engine else 512) and (p.job, p.seed) == (3, 9) for p in found)


def test_pieces_give_the_table_of_one_process():
    whole = evaluate(PONG, "tracker", "chaser", matches=50, horizon=200)
    parts = [play_piece([job(num_envs=5, horizon=200)], p) for p in pieces_of(0, 2**31, (25, 25))]
    np.testing.assert_array_equal(np.sort(np.concatenate(parts), order=["seed", "side"]), whole.results)


@pytest.mark.parametrize("name", ["palaestra", "NumPy", f"the rules of {PONG}"])
def test_a_process_with_another_version_or_other_rules_is_refused(name):
    other = job()
    other = dataclasses.replace(other, made_with={**other.made_with, name: "0.0.1"})
    with pytest.raises(WorkerRefused, match=f"{name} there: .*, here: 0.0.1; install the same"):
        play_piece([other], Piece(0, 0, 0, 0, 1))


def test_other_rules_have_another_digest():
    assert (
        pieces.made_with(PONG, {})[f"the rules of {PONG}"]
        != pieces.made_with("palaestra/TeamTag-v0", {})["the rules of palaestra/TeamTag-v0"]
    )


def player(observations: np.ndarray) -> np.ndarray:
    return np.zeros(observations.shape[:2], np.int64)


def test_players_travel_as_text_or_as_files():
    kept: list[bytes] = []
    put = lambda content: kept.append(content) or len(kept)  # noqa: E731
    assert travelling("tracker:0.5", put) == "tracker:0.5"
    assert travelling(None, put) is None
    found = travelling(WEIGHTS, put)
    assert isinstance(found, PolicyFile)
    assert (found.name, found.content, kept) == (WEIGHTS.name, 1, [WEIGHTS.read_bytes()])
    assert travelling(palaestra.make_batch, put) == "palaestra.registry:make_batch"


def test_what_cannot_travel_is_refused(tmp_path):
    for given, error, message in (
        (lambda o: o, TypeError, "an object of this process"),
        (tmp_path / "missing.onnx", OSError, "missing.onnx"),
        ("pool.json", ValueError, "a pool names files of this machine"),
    ):
        with pytest.raises(error, match=message):
            travelling(given, bytes)


def test_files_that_travelled_are_told_apart_and_do_not_stay(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = [PolicyFile("same.onnx", text, text.encode()) for text in ("first", "second")]
    with arrived(["tracker", files[0], None, files[1]]) as players:
        assert players[::2] == ["tracker", None]
        assert [player.name for player in players[1::2]] == ["same.onnx"] * 2
        assert [player.read_text() for player in players[1::2]] == ["first", "second"]
        assert all(tmp_path in player.parents for player in players[1::2])
    assert not list(tmp_path.iterdir())
    strong = travelling(WEIGHTS, bytes)
    results = play_piece([dataclasses.replace(job(), players=(strong, "random"))], Piece(0, 0, 0, 0, 4))
    assert len(results) == 4
    assert not list(tmp_path.iterdir())


def game() -> Game:
    return registry.make_game(PONG)[0]


def test_a_game_travels_by_the_name_of_its_function():
    row = registry.row(PONG)
    assert row_data(dataclasses.replace(row, factory="my_games:pong"))[0] == "my_games:pong"
    with pytest.raises(ValueError, match='register it as "module:function"'):
        row_data(dataclasses.replace(row, factory=lambda: game()))


# -------------------------------------------------------------------------------------------------------- results kept


def results(piece: Piece) -> np.ndarray:
    made = np.zeros(piece.count, MATCH)
    made["seed"] = np.arange(piece.first, piece.first + piece.count)
    return made


def test_an_interrupted_run_goes_on_from_its_file(tmp_path):
    file, cut = tmp_path / "some" / "results.npz", pieces_of(0, 1, (100,))
    kept = sum(cut[k].count for k in (0, 2, 3))

    def interrupted() -> None:
        with SavedResults(file, [job()], cut) as saved:
            for number in (0, 2, 3):
                saved.add(number, results(cut[number]))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stop:
        interrupted()
    assert stop.value.__notes__ == [f"{kept} of 100 matches are kept in {file}: the same call goes on from there"]
    with SavedResults(file, [job()], cut) as again:
        assert again.missing == [k for k in range(len(cut)) if k not in (0, 2, 3)]
        assert again.matches == kept
        for number in again.missing:
            again.add(number, results(cut[number]))
        part = np.concatenate(again.parts(0))
    assert part["seed"].tolist() == list(range(100))
    assert not file.exists()


def test_a_piece_is_taken_once_and_whole(tmp_path):
    cut = pieces_of(0, 1, (60,))
    with SavedResults(tmp_path / "r.npz", [job()], cut) as saved:
        with pytest.raises(ValueError, match="19 results of 20"):
            saved.add(0, results(cut[0])[:19])
        saved.add(0, results(cut[0]))
        with pytest.raises(ValueError, match="a second time"):
            saved.add(0, results(cut[0]))


def test_a_file_of_other_matches_is_refused(tmp_path):
    file, cut = tmp_path / "results.npz", pieces_of(0, 1, (60,))
    with SavedResults(file, [job()], cut) as saved:
        saved.add(0, results(cut[0]))
    for others, numbers in ((job("chaser"), cut), (job(), pieces_of(0, 2, (60,))), (job(horizon=50), cut)):
        with pytest.raises(FileError, match="results of other matches, rules or versions"):
            SavedResults(file, [others], numbers)
    file.write_bytes(b"nothing")
    with pytest.raises(FileError, match=r"no results of palaestra\.scale"):
        SavedResults(file, [job()], cut)


def test_wrong_words_are_refused_before_a_cluster_is_asked():
    for error, message, given in (
        (TypeError, r"workers= makes no sense here", {"workers": 2}),
        (ValueError, "num_envs and actors must be at least 1", {"actors": 0}),
        (ValueError, "neither a script", {"b": "nobody"}),
        (ValueError, "names must be two", {"names": ("a",)}),
    ):
        with pytest.raises(error, match=message):
            by_ray.evaluate(PONG, "tracker", **{"b": "chaser", **given})
