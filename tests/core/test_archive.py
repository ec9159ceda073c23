"""Archives of arrays that somebody else wrote: read without pickle, refused by a named error."""

from __future__ import annotations

import contextlib
import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from palaestra.core.files import FileError
from palaestra.core.files.archive import Archive

VALUES = np.arange(6, dtype=np.int64).reshape(2, 3)
ENOUGH = 10_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.savez_compressed(tmp_path / "a.npz", values=VALUES)
    return tmp_path / "a.npz"


def rewrite(path: Path, members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members:
            archive.writestr(name, content)


def npy(path: Path) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return archive.read("values.npy")


def refused(path: Path, **more) -> str:
    with pytest.raises(FileError) as refusal, Archive(path) as archive:
        archive.read("values", more.get("dtype", "<i8"), more.get("shape", (2, 3)), more.get("most_bytes", ENOUGH))
    assert str(path) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


def test_an_array_is_read_as_it_was_written(path: Path):
    with Archive(path) as archive:
        assert list(archive.sizes) == ["values"]
        np.testing.assert_array_equal(archive.read("values", "<i8", (None, 3), ENOUGH), VALUES)


def test_another_type_or_shape_is_refused(path: Path):
    assert "is <i8 2x3, not <f8 2x3" in refused(path, dtype="<f8")
    assert "is <i8 2x3, not <i8 2x4" in refused(path, shape=(2, 4))
    assert "is <i8 2x3, not <i8 any" in refused(path, shape=(None,))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"'<i8'", b"'|O'  "),
        (b"False", b"True "),
        (b"(2, 3)", b"(3, 2)  "),
        (b"(2, 3)", b"(-2,-3)"),
        (b"'descr'", b"__import__('os')"),
        (b"\x01\x00", b"\x02\x00"),
    ],
)
def test_a_header_of_another_form_is_refused(path: Path, old: bytes, new: bytes):
    content = npy(path).replace(old, new, 1)
    rewrite(path, [("values.npy", content[: len(npy(path))])])
    refused(path, shape=(2, 3))


def test_a_size_that_does_not_fit_the_shape_is_refused_before_it_is_inflated(path: Path):
    rewrite(path, [("values.npy", npy(path) + bytes(50_000_000))])
    assert "more than 10000" in refused(path)
    tracemalloc.start()
    assert "does not have the size" in refused(path, most_bytes=10**9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_a_member_twice_or_of_another_kind_is_refused(path: Path):
    content = npy(path)
    with pytest.warns(UserWarning, match="Duplicate"):
        rewrite(path, [("values.npy", content)] * 2)
    assert "twice" in refused(path)
    rewrite(path, [("values.npy", content), ("payload.pickle", b"x")])
    assert "no array" in refused(path)


def test_other_compressions_and_encryption_are_refused(path: Path):
    content = npy(path)
    rewrite(path, [("values.npy", content)], zipfile.ZIP_BZIP2)
    assert "compressed in an unknown way" in refused(path)
    rewrite(path, [("values.npy", content)])
    data = bytearray(path.read_bytes())
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    assert "encrypted" in refused(path)


def test_a_damaged_file_is_refused_wherever_the_damage_is(path: Path):
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    refusals = 0
    for k in range(200):
        data = bytearray(whole)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(data[: rng.integers(len(data))] if k % 2 else data)
        with contextlib.suppress(FileError):
            refusals += 1
            with Archive(path) as archive:
                np.testing.assert_array_equal(archive.read("values", "<i8", (2, 3), ENOUGH), VALUES)
            refusals -= 1
    assert refusals > 150


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes there")
def test_a_pipe_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(FileError, match=r"pipe.npz: no regular file"):
        Archive(tmp_path / "pipe.npz")


@pytest.mark.parametrize("extended", [False, True])
def test_a_long_list_of_members_is_refused_unread(path: Path, extended: bool):
    content, size = path.read_bytes(), 2 * 2**30
    with path.open("wb") as file:
        file.write(content)
        file.seek(size, os.SEEK_CUR)  # sparse: it takes no room on the disk
        if extended:
            file.write(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, size, len(content)))
            file.write(struct.pack("<4sIQI", b"PK\6\7", 0, len(content) + size, 1))
        file.write(struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, 99 if extended else size, len(content), 0))
    tracemalloc.start()
    assert "is no archive of arrays" in refused(path)
    assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    tracemalloc.stop()


def test_names_of_members_are_quoted(path: Path):
    rewrite(path, [("\x1b[2J" + "x" * 999, b"")])
    assert r"'\x1b[2J" + "x" * 56 + "'... (1003 characters)" in refused(path)


def test_it_says_how_much_of_a_member_is_in_the_file(tmp_path: Path):
    np.savez_compressed(tmp_path / "zeros.npz", zeros=np.zeros(100_000, "<f4"))
    with Archive(tmp_path / "zeros.npz") as archive:
        assert archive.sizes["zeros"] == 400_128
        assert archive.stored["zeros"] < 1000
