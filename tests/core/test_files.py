"""Files that are written in one piece."""

from __future__ import annotations

import codecs
import os
import pickle
import threading
from pathlib import Path

import pytest

from palaestra.core import files
from palaestra.core.files import (
    FileError,
    TextFile,
    open_atomically,
    open_regular,
    printable,
    printable_name,
    read_limited,
    read_text,
    write_atomically,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_error_is_a_value_error() -> None:
    assert issubclass(FileError, ValueError)


def test_a_new_file_holds_the_content_and_nothing_else_is_left(tmp_path: Path) -> None:
    write_atomically(tmp_path / "new", lambda file: file.write(b"all of it"))
    assert (tmp_path / "new").read_bytes() == b"all of it"
    assert names(tmp_path) == ["new"]


def test_the_old_content_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    with open_atomically(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def fail(file: object) -> None:
        raise error

    with pytest.raises(type(error)):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["kept"]


def test_writers_of_one_path_do_not_disturb_each_other(tmp_path: Path) -> None:
    path, failed = tmp_path / "shared", []
    contents = [bytes([k]) * 100_000 for k in range(4)]

    def write(content: bytes) -> None:
        for _ in range(6):
            try:
                write_atomically(path, lambda file: file.write(content))
            except OSError as error:
                failed.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert path.read_bytes() in contents
    assert names(tmp_path) == ["shared"]


def test_an_unfinished_file_of_another_writer_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: "same")
    other = tmp_path / ".kept.same.tmp"
    other.write_bytes(b"of another process")
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "kept", lambda file: file.write(b"new"))
    assert other.read_bytes() == b"of another process"


def test_a_missing_folder_is_named_by_the_path_that_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no_folder.match\.npz'$"):
        write_atomically(tmp_path / "no_folder" / "match.npz", lambda file: file.write(b"new"))


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    write_atomically(tmp_path / ("n" * 255), lambda file: file.write(b"new"))
    assert names(tmp_path) == ["n" * 255]


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", lambda file: file.write(b"new"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="no /dev there")
def test_a_device_is_written_directly() -> None:
    write_atomically("/dev/null", lambda file: file.write(b"new"))
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_an_error_of_the_disk_names_the_file_that_was_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(os, call, fail)
        with pytest.raises(OSError, match=r"No space left on device: '.*kept'$"):
            write_atomically(path, lambda file: file.write(b"new"))
    with pytest.raises(OSError, match="other"):  # a file of the caller keeps its name
        write_atomically(path, lambda file: (tmp_path / "other").read_bytes())
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["kept"]


def test_a_file_is_read_up_to_its_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "five.txt"
    path.write_bytes(b"12345")
    assert read_limited(path, 5) == b"12345"
    with pytest.raises(FileError, match=r"five\.txt: larger than 4 bytes"):
        read_limited(path, 4)


def test_a_sparse_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(20_000_000_000)
    with pytest.raises(FileError, match="sparse: larger than"):
        read_limited(path, 1_000_000)


@pytest.mark.skipif(not hasattr(os, "SEEK_HOLE"), reason="there are no holes in files here")
def test_a_large_file_of_holes_is_refused_whatever_size_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "hollow"
    with path.open("wb") as file:
        file.write(b"a beginning")
        file.truncate(20_000_000_000)
    with pytest.raises(FileError, match="hollow: 20000000000 bytes, of which few are stored"):
        open_regular(path, 2**40)


HOSTILE = "a\x1b[2J\r\n\x9b\u202e\u2028\x7fb"
"""Parts of a name that clear a screen, begin a line, turn the reading direction, or are no text."""


def test_whatever_a_message_of_a_file_holds_a_terminal_can_show_it() -> None:
    error = FileError(f"{HOSTILE}: no such thing: caf\u00e9 \\ 'x'")
    shown = r"a\x1b[2J\r\n\x9b\u202e\u2028\x7fb"
    assert str(error) == f"{shown}: no such thing: caf\u00e9 \\ 'x'"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(FileError, match="pipe: no regular file"):
        read_limited(path, 100)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no devices here")
def test_a_device_is_refused_without_being_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise AssertionError("a device was opened")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(FileError, match="null: no regular file"):
        read_limited("/dev/null", 100)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises((FileError, OSError)):
        read_limited(tmp_path, 100)


def test_what_a_stranger_wrote_is_escaped_and_cut_in_messages() -> None:
    assert printable("caf\u00e9") == "'caf\u00e9'"
    assert printable("\x1b[2J\u202e") == r"'\x1b[2J\u202e'"
    assert printable("x" * 1000) == f"{'x' * 60!r}... (1000 characters)"
    assert printable(2**70) == f"'{2**70}'"


def test_a_text_file_stands_for_its_path(tmp_path: Path) -> None:
    (tmp_path / "city.edges").write_text("a b\n", encoding="utf-8")
    assert read_text(tmp_path / "city.edges", 4) == read_text(TextFile("city.edges", "a b\n"), 4)
    for source in (tmp_path / "city.edges", TextFile("city.edges", "a b\n")):
        with pytest.raises(FileError, match=r"city\.edges.*: larger than 3 bytes"):
            read_text(source, 3)
    (tmp_path / "bytes").write_bytes(b"ab\xff")
    with pytest.raises(FileError, match="bytes: no text in UTF-8: byte 2"):
        read_text(tmp_path / "bytes", 9)
    with pytest.raises(FileError, match="none: cannot be read: No such file"):
        read_text(tmp_path / "none", 9)


TEXT = "a \u00e9\n"
LITTLE, BIG = codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be")


@pytest.mark.parametrize("content", [TEXT.encode(), TEXT.encode("utf-8-sig"), LITTLE, BIG])
def test_the_mark_of_an_encoding_is_no_part_of_a_text(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "text").write_bytes(content)
    assert read_text(tmp_path / "text", 99) == TEXT


@pytest.mark.parametrize(
    "content", [TEXT.encode("latin-1"), *(TEXT.encode(f"utf-{e}") for e in ("16-le", "16-be", "32"))]
)
def test_a_text_in_another_encoding_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "text").write_bytes(content)
    with pytest.raises(FileError, match=r"text: no text in UTF-8: .*: save it in UTF-8"):
        read_text(tmp_path / "text", 99)


@pytest.mark.parametrize(("text", "what"), [("a\0b", "a byte of zero"), ("a\ud800b", "half a character")])
def test_a_text_that_travels_is_one_that_a_file_could_hold(text: str, what: str) -> None:
    with pytest.raises(FileError, match=f"no text in UTF-8: it has {what}"):
        read_text(TextFile("text", text), 99)


def test_plain_names_are_shown_as_they_are() -> None:
    assert [printable_name(name) for name in ("grid:10x10", "dungeons:2x9[1]", "a b", "\x1b")] == [
        *("grid:10x10", "dungeons:2x9[1]", "'a b'", "'\\x1b'")
    ]
