"""A saved index is loaded as it was; a folder that somebody broke is refused by the name of the file."""

import os
from pathlib import Path

import numpy as np
import pytest

from palaestra.core.files import FileError
from palaestra.games.search import Index, index_files
from palaestra.games.search.corpus import Passages, ids_of

pytestmark = pytest.mark.jitless

TEXTS = ["The cat sat on the mat.", "Dogs bark at cäts.", "", "A mat for the dog, a cat."]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Index(TEXTS, k1=1.2, b=0.5).save(tmp_path / "index")
    return tmp_path / "index"


def test_a_loaded_index_is_the_saved_one(folder: Path):
    made, loaded = Index(TEXTS, k1=1.2, b=0.5), Index.load(folder)
    assert (len(loaded), loaded.k1, loaded.b, list(loaded.vocabulary)) == (4, 1.2, 0.5, list(made.vocabulary))
    assert list(loaded.passages) == TEXTS
    assert loaded.passages[-1] == TEXTS[-1]
    assert loaded.passages[1:3] == tuple(TEXTS[1:3])
    with pytest.raises(IndexError):
        loaded.passages[4]
    for one, other in zip(made.search(["cat mat", "cäts"], 3), loaded.search(["cat mat", "cäts"], 3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_takes_eight_bytes_a_posting(folder: Path):
    postings = Index.load(folder).postings
    assert (postings.passages.nbytes + postings.scores.nbytes) / postings.offsets[-1] == 8
    with pytest.raises(ValueError, match="read-only"):
        postings.scores[0] = 1


def test_an_empty_index_can_be_saved(tmp_path: Path):
    Index([]).save(tmp_path)
    assert len(Index.load(tmp_path)) == 0
    assert Index.load(tmp_path).search("cat", 2)[0].tolist() == [-1, -1]


def test_saving_again_replaces_an_index(folder: Path):
    Index(["other"]).save(folder)
    assert list(Index.load(folder).passages) == ["other"]


def test_text_that_is_no_utf8_is_read_as_such(folder: Path):
    texts = np.load(folder / "texts.npy")
    texts[0] = 255
    np.save(folder / "texts.npy", texts)
    assert Index.load(folder).passages[0] == "\ufffdhe cat sat on the mat."


def changed(name: str, **places: float):
    """Replaces elements of a file."""

    def change(folder: Path) -> None:
        array = np.load(folder / f"{name}.npy")
        for place, value in places.items():
            array[int(place[1:])] = value
        np.save(folder / f"{name}.npy", array)

    return change


def replaced(name: str, array):
    return lambda folder: np.save(folder / f"{name}.npy", array, allow_pickle=True)


def lies(name: str, old: bytes, new: bytes):
    """Replaces text of a file's header."""

    def change(folder: Path) -> None:
        path = folder / f"{name}.npy"
        content = path.read_bytes()
        assert old in content
        path.write_bytes(content.replace(old, new, 1))

    return change


def cut(folder: Path) -> None:
    path = folder / "scores.npy"
    path.write_bytes(path.read_bytes()[:-3])


def pipe(folder: Path) -> None:
    (folder / "texts.npy").unlink()
    os.mkfifo(folder / "texts.npy")


REFUSED = {
    "missing": ("words", lambda folder: (folder / "words.npy").unlink()),
    "cut": ("scores", cut),
    "no array": ("peaks", lambda folder: (folder / "peaks.npy").write_bytes(b"cat")),
    "empty": ("peaks", lambda folder: (folder / "peaks.npy").write_bytes(b"")),
    "objects": ("texts", replaced("texts", np.array([{}, None], object))),
    "another type": ("passages", replaced("passages", np.zeros(14, np.int64))),
    "two axes": ("passages", replaced("passages", np.zeros((14, 1), np.int32))),
    "a shape that lies": ("scores", lies("scores", b"(15,)", b"(99,)")),
    "a shape that is a call": ("scores", lies("scores", b"(15,)", b"f(1,)")),
    "another format": ("parameters", changed("parameters", _0=2)),
    "few parameters": ("parameters", replaced("parameters", np.ones(2))),
    "no b": ("parameters", changed("parameters", _2=np.nan)),
    "texts that end early": ("text_offsets", changed("text_offsets", _4=len("".join(TEXTS).encode()) - 1)),
    "texts that go back": ("text_offsets", changed("text_offsets", _2=9)),
    "no texts": ("text_offsets", replaced("text_offsets", np.zeros(0, np.int64))),
    "offsets beyond": ("offsets", changed("offsets", _2=10**12)),
    "negative offsets": ("offsets", changed("offsets", _0=-1)),
    "few scores": ("scores", replaced("scores", np.ones(3, np.float32))),
    "few peaks": ("peaks", replaced("peaks", np.ones(3, np.float32))),
    "another peak": ("peaks", changed("peaks", _0=0.001)),
    "a passage beyond": ("passages", changed("passages", _1=4)),
    "a negative passage": ("passages", changed("passages", _0=-1)),
    "passages in disorder": ("passages", changed("passages", _0=3)),
    "a score of 0": ("scores", changed("scores", _3=0)),
    "a score that is none": ("scores", changed("scores", _3=np.nan)),
    "few words": ("words", replaced("words", np.frombuffer(b"the\ncat", np.uint8))),
    "a word twice": ("words", lambda folder: replaced("words", doubled(folder))(folder)),
    "words of no text": ("words", changed("words", _0=255)),
    **({"a pipe": ("texts", pipe)} if hasattr(os, "mkfifo") else {}),
}


def doubled(folder: Path) -> np.ndarray:
    words = bytes(np.load(folder / "words.npy")).split(b"\n")
    return np.frombuffer(b"\n".join([words[1], *words[1:]]), np.uint8)


@pytest.mark.parametrize("broken", REFUSED)
def test_a_broken_folder_is_refused(folder: Path, broken: str):
    name, change = REFUSED[broken]
    change(folder)
    with pytest.raises(FileError, match=rf"{name}\.npy: "):
        Index.load(folder)


def test_an_interrupted_save_is_no_index(folder: Path, monkeypatch: pytest.MonkeyPatch):
    def save(file, array, allow_pickle):
        raise OSError("disk full")

    monkeypatch.setattr(np, "save", save)
    with pytest.raises(OSError, match="disk full"):
        Index(["other"]).save(folder)
    with pytest.raises(FileError, match=r"parameters\.npy"):
        Index.load(folder)


@pytest.mark.parametrize(("name", "of"), [("offsets", "passages"), ("text_offsets", "texts")])
def test_differences_that_overflow_are_no_way_up(folder: Path, name: str, of: str):
    led = np.load(folder / f"{name}.npy")
    jumps = np.array([led[0], 2**62, -(2**63) + 5, -(2**62), *led[4:]], "<i8")
    assert (np.diff(jumps[:3]) > 0).all()
    np.save(folder / f"{name}.npy", jumps)
    with pytest.raises(FileError, match=rf"{name}\.npy: its numbers do not lead through {of}\.npy"):
        Index.load(folder)


def test_contents_are_checked_across_the_parts_that_are_looked_at_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    whole = np.load(folder / "passages.npy")
    offsets = np.load(folder / "offsets.npy")
    for part in (1, 2, 3):
        monkeypatch.setattr(index_files, "PART", part)
        assert len(Index.load(folder)) == 4
        for at in (k for k in range(1, len(whole)) if k not in offsets):
            bad = whole.copy()
            bad[at] = bad[at - 1]
            np.save(folder / "passages.npy", bad)
            with pytest.raises(FileError, match=r"passages\.npy: passages of a word do not ascend"):
                Index.load(folder)
        np.save(folder / "passages.npy", whole)


def test_ids_are_kept_with_the_index(tmp_path: Path):
    passages = Passages(TEXTS, ["Q64", "x", "", "Q\xe4"])
    Index(passages).save(tmp_path)
    assert list(ids_of(Index.load(tmp_path).passages)) == ["Q64", "x", "", "Q\xe4"]
    np.save(tmp_path / "id_offsets.npy", np.array([0, 2**62, -(2**63), 1, 6], "<i8"))
    with pytest.raises(FileError, match=r"id_offsets\.npy: its numbers do not lead"):
        Index.load(tmp_path)
    Index(TEXTS).save(tmp_path)
    assert not ids_of(Index.load(tmp_path).passages)


def test_a_passage_that_is_too_long_to_be_read_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(index_files, "LONGEST_TEXT", 20)
    with pytest.raises(FileError, match=r"text_offsets\.npy: a passage is too long"):
        Index.load(folder)
