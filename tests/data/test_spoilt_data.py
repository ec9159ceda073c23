"""A data set of somebody else can be wrong, never dangerous: it is refused with file and reason, and nothing runs."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaestra.core.files import FileError
from palaestra.data import DataError, make_data, read_data, read_manifest, verify

h5py: Any = pytest.importorskip("h5py", reason='needs the extra "palaestra[data]"')
pytestmark = pytest.mark.usefixtures("rules_do_not_change")

HDF5, METADATA, MANIFEST = "data/main_data.hdf5", "data/metadata.json", "palaestra.json"
KEYS = ("observations", "actions", "rewards")
RAN = "ran"
"""File that a spoilt data set makes if anything of it is executed."""


class Bomb:
    """An object whose pickle makes a file."""

    def __reduce__(self) -> Any:
        return os.mkdir, (RAN,)


def say(path: Path, **entries: Any) -> None:
    """Changes the manifest."""
    content = json.loads((path / MANIFEST).read_text())
    (path / MANIFEST).write_text(json.dumps(content | entries))


def seal(path: Path) -> None:
    """Gives the manifest the digests of what lies there now: a forger can do so."""
    files = {name: (path / name).read_bytes() for name in (HDF5, METADATA)}
    say(path, files={name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in files.items()})


def flip(path: Path, name: str) -> None:
    data = bytearray((path / name).read_bytes())
    data[len(data) // 2] ^= 1
    (path / name).write_bytes(data)


def change(edit: Callable[[Any, Path], object]) -> Callable[[Path], None]:
    """Edits the HDF5 file and seals it."""

    def spoil(path: Path) -> None:
        with h5py.File(path / HDF5, "a") as file:
            edit(file, path)
        seal(path)

    return spoil


def put(key: str, **how: Any) -> Callable[[Path], None]:
    """Writes another array in the place of one of episode 2."""

    def edit(file: Any, path: Path) -> None:
        group = file["episode_2"]
        old = group[key][()]
        del group[key]
        given = how["data"](old) if "data" in how else None
        group.create_dataset(key, **(how | ({} if given is None else {"data": given})))

    return change(edit)


def link(name: str, to: Any) -> Callable[[Path], None]:
    def edit(file: Any, path: Path) -> None:
        owner, _, last = name.rpartition("/")
        del file[owner or "/"][last]
        file[owner or "/"][last] = to

    return change(edit)


def make_virtual(file: Any, path: Path) -> None:
    shape = file["episode_2/rewards"].shape
    layout = h5py.VirtualLayout(shape, "<f4")
    layout[:] = h5py.VirtualSource(str(path / "other.hdf5"), "rewards", shape)
    del file["episode_2/rewards"]
    file["episode_2"].create_virtual_dataset("rewards", layout)


def store_elsewhere(file: Any, path: Path) -> None:
    shape = file["episode_2/rewards"].shape
    (path / "raw").write_bytes(bytes(64))
    del file["episode_2/rewards"]
    file["episode_2"].create_dataset("rewards", shape, "<f4", external=[(str(path / "raw"), 0, 64)])


def be_a_pickle(path: Path) -> None:
    (path / HDF5).write_bytes(pickle.dumps(Bomb()) + bytes(9999))
    seal(path)


def be_a_pipe(path: Path) -> None:
    (path / HDF5).unlink()
    os.mkfifo(path / HDF5)


def claim_steps(path: Path) -> None:
    say(path, steps=[2**39] * read_manifest(path).episodes)


def with_nan(old: np.ndarray) -> np.ndarray:
    old = old.copy()
    old.flat[0] = np.nan
    return old


def drop_key(file: Any, path: Path) -> None:
    del file["episode_2/actions"]


def group_for_array(file: Any, path: Path) -> None:
    del file["episode_2/rewards"]
    file["episode_2"].create_group("rewards")


SPOILT: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "cut off": (lambda p: os.truncate(p / HDF5, 4000), HDF5, r"is cut off: 4000 bytes of \d+"),
    "longer": (lambda p: os.truncate(p / HDF5, 999_999), HDF5, r"is longer than it was: 999999 bytes of \d+"),
    "a bit changed": (lambda p: flip(p, HDF5), HDF5, "has changed since it was recorded: its SHA-256"),
    "metadata changed": (lambda p: flip(p, METADATA), METADATA, "has changed since it was recorded: its SHA-256"),
    "a file missing": (lambda p: (p / METADATA).unlink(), METADATA, "is missing, or no regular file: take the"),
    "a pipe": (be_a_pipe, HDF5, "is missing, or no regular file"),
    "of another project": (lambda p: (p / MANIFEST).unlink(), "", r"no data set of palaestra.*of another project"),
    "manifest cut off": (lambda p: os.truncate(p / MANIFEST, 200), MANIFEST, "is damaged or cut off"),
    "manifest of something else": (lambda p: say(p, magic="x"), MANIFEST, "is no manifest of palaestra"),
    "newer format": (lambda p: say(p, format=2), MANIFEST, "has format '2', this palaestra reads format 1: take"),
    "an entry more": (lambda p: say(p, hook="os:abort"), MANIFEST, "lacks, or should not hold, 'hook'"),
    "an entry of another type": (lambda p: say(p, team=["x"]), MANIFEST, "team does not fit a data set"),
    "lists of other lengths": (lambda p: say(p, seeds=[1]), MANIFEST, "seeds, matches, tasks, steps are not of one"),
    "empty": (lambda p: say(p, seeds=[], matches=[], tasks=[], steps=[]), MANIFEST, "is empty: it has no episode"),
    "of an unknown id": (lambda p: say(p, id="x/Y-v0"), MANIFEST, "is of x/Y-v0, which is not registered"),
    "keyword that names code": (lambda p: say(p, keywords={"tasks": "os:abort"}), MANIFEST, "keyword tasks names"),
    "keyword that no game takes": (lambda p: say(p, keywords={"tusk": 1}), MANIFEST, "its keywords fit no"),
    "of other rules": (lambda p: say(p, rules="0" * 16), MANIFEST, "was recorded by other rules of tests/Targets-v0"),
    "object arrays": (lambda p: say(p, arrays={key: ["|O", []] for key in KEYS}), MANIFEST, "arrays does not fit a"),
    "steps beyond the file": (claim_steps, HDF5, r"cannot hold \d+ rows"),
    "a pickle": (be_a_pickle, HDF5, "is damaged: "),
    "an episode missing": (change(lambda f, p: f.pop("episode_2")), HDF5, "has 11 groups, and the manifest 12"),
    "an episode renamed": (change(lambda f, p: f.move("episode_2", "episode_x")), HDF5, "episode 2: is missing"),
    "an array missing": (change(drop_key), HDF5, "episode 2, actions: is missing"),
    "an array more": (change(lambda f, p: f["episode_2"].create_group("x")), HDF5, "episode 2: has other members than"),
    "a group for an array": (change(group_for_array), HDF5, "episode 2, rewards: is no array"),
    "another shape": (put("rewards", data=lambda old: old[:, None]), HDF5, r"episode 2, rewards: has shape \(\d, 1\)"),
    "another dtype": (put("rewards", data=lambda old: old.astype("f8")), HDF5, "episode 2, rewards: has dtype float64"),
    "texts": (put("rewards", data=lambda old: [b"x"] * len(old), dtype=h5py.string_dtype()), HDF5, "has dtype object"),
    "not a number": (put("observations", data=with_nan), HDF5, "episode 2, observations: holds NaN or infinity"),
    "terabytes": (put("rewards", shape=(2**42,), dtype="<f4", chunks=(2**20,)), HDF5, r"has shape \(4398046511104,\)"),
    "compressed": (put("rewards", data=lambda old: old, compression="gzip"), HDF5, "episode 2, rewards: is compressed"),
    "a soft link": (link("episode_2/rewards", h5py.SoftLink("/episode_1/rewards")), HDF5, "rewards: is a link"),
    "an external link": (link("episode_2", h5py.ExternalLink("x.hdf5", "/")), HDF5, "episode 2: is a link"),
    "a virtual array": (change(make_virtual), HDF5, "episode 2, rewards: lies in other files"),
    "an array in another file": (change(store_elsewhere), HDF5, "episode 2, rewards: lies in other files"),
    "another seed": (change(lambda f, p: f["episode_2"].attrs.modify("seed", 1)), HDF5, r"episode 2, seed: is not \d+"),
    "seed missing": (change(lambda f, p: f["episode_2"].attrs.pop("seed")), HDF5, "episode 2, seed: is missing"),
    "without an end": (put("terminations", data=np.zeros_like), HDF5, "the match does not end with its last decision"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SPOILT)
def test_a_spoilt_data_set_is_refused_with_file_and_reason_and_nothing_is_executed(
    kind: str, spoilt: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
):
    path = spoilt()
    monkeypatch.chdir(path)
    spoil, file, reason = SPOILT[kind]
    spoil(path)
    for read in (read_data, verify):
        with pytest.raises(DataError, match=reason) as refusal:
            read(path)
        assert refusal.value.file == str(path / file if file else path)
        assert "\n" not in str(refusal.value)
    assert not (path / RAN).exists()


def test_the_unspoilt_data_set_is_taken(recorded: Path):
    assert verify(recorded) == read_manifest(recorded)


def test_a_data_error_is_a_file_error_that_has_its_parts(recorded: Path):
    error = DataError("a.hdf5", "is missing", 3, "actions")
    assert isinstance(error, FileError)
    assert str(error) == "a.hdf5: episode 3, actions: is missing"
    assert (error.file, error.episode, error.key, error.reason) == ("a.hdf5", 3, "actions", "is missing")


def test_a_reader_says_which_environment_and_keywords_it_means(recorded: Path):
    assert len(read_data(recorded, "tests/Targets-v0", {})) == 12
    with pytest.raises(DataError, match="was recorded in tests/Targets-v0, not in palaestra/CartPole-v0"):
        read_data(recorded, "palaestra/CartPole-v0")
    with pytest.raises(DataError, match=r"was recorded with keywords '\{\}', not \{'real': True\}"):
        read_data(recorded, "tests/Targets-v0", {"real": True})


def test_hdf5_opens_nothing_before_the_digest_is_known_to_be_right(
    spoilt: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
):
    path = spoilt()
    flip(path, HDF5)
    monkeypatch.setattr(h5py, "File", lambda *_: pytest.fail("opened"))
    with pytest.raises(DataError, match="has changed"):
        read_data(path)


def test_what_is_not_a_number_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from palaestra.data import data_maker

    def spoil(*arguments: Any) -> Any:
        rows = play(*arguments)
        rows[0]["reward"][0] = np.nan
        return rows

    play = data_maker.play_episodes
    monkeypatch.setattr(data_maker, "play_episodes", spoil)
    with pytest.raises(DataError, match=r"the match of seed \d+ has a reward that is NaN or infinite"):
        make_data("tests/Targets-v0", "random", tmp_path / "nan-v0", episodes=2, compiled=False)
