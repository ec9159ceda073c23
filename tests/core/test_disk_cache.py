"""The cache of compiled games costs time at worst: nothing foreign, damaged or full is loaded or stops a game."""

import importlib.util
import os
import pickle
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from palaestra.core.compile import compiler, disk_cache
from palaestra.core.compile.linker import jit_disabled

pytestmark = pytest.mark.skipif(jit_disabled(), reason="nothing is compiled")
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners and rights here")
SOURCE = "def add(x):\n    return x + {}\n"


class Cache:
    """A folder with one compiled function."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "adder.py"
        self.file.write_text(SOURCE.format(1))
        self.stored = folder / "__pycache__"

    def load(self) -> Any:
        """The function as another process would meet it."""
        spec = importlib.util.spec_from_file_location("numpy", self.file)  # a name of a module that can be imported
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)  # the folder holds what numba stores alone
            spec.loader.exec_module(module)
        return compiler.compile_cached(module.add)

    def hits(self) -> int:
        """Calls the function; whether it was loaded."""
        function = self.load()
        assert function(1.0) == 2.0
        return sum(function.stats.cache_hits.values())

    def files(self, kind: str) -> list[Path]:
        return sorted(self.stored.glob(f"*.{kind}"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Cache:
    cache = Cache(tmp_path_factory.mktemp("compiled"))
    assert cache.hits() == 0
    assert cache.hits() == 1
    return cache


@pytest.fixture
def cache(compiled: Cache, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cache]:
    """With what the first call has stored, however the test before has left it."""
    monkeypatch.setattr(disk_cache, "_warned", set())
    monkeypatch.setattr("palaestra.core.compile.numba_cache.refused", {})
    kept = compiled.stored.with_name("kept")
    if not kept.exists():
        shutil.copytree(compiled.stored, kept)
    shutil.rmtree(compiled.stored)
    shutil.copytree(kept, compiled.stored)
    yield compiled
    compiled.stored.chmod(0o755)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda stored: b"",
    "cut": lambda stored: stored[: len(stored) // 2],
    "foreign": lambda stored: b"something else",
    "a flipped bit in the mark": lambda stored: bytes([stored[0] ^ 1]) + stored[1:],
    "a flipped bit in the checksum": lambda stored: stored[:15] + bytes([stored[15] ^ 4]) + stored[16:],
    "a flipped bit in the middle": lambda stored: (
        stored[: len(stored) // 2] + bytes([stored[len(stored) // 2] ^ 16]) + stored[len(stored) // 2 + 1 :]
    ),
    "longer": lambda stored: stored + b"\0",
}


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_removed_and_made_anew_with_one_warning(cache: Cache, kind: str, damage):
    (file,) = cache.files(kind)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.warns(RuntimeWarning, match="has removed a damaged file of the cache") as caught:
        assert cache.hits() == 0
    assert len(caught) == 1
    assert str(file) in str(caught[0].message)
    assert cache.hits() == 1


def test_code_under_the_name_of_other_code_is_not_loaded(cache: Cache):
    (index,), (code,) = cache.files("nbi"), cache.files("nbc")
    other = code.with_name(code.name.replace(".1.nbc", ".2.nbc"))
    assert cache.load()(np.float32(1)) == 2.0  # another signature: another file
    shutil.copy(other, code)
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert cache.hits() == 0
    content = disk_cache.read(other)
    assert content is not None
    disk_cache.write(code, content)  # whole, under this name, and for other arguments
    assert cache.hits() == 0
    assert index.exists()


def test_what_cannot_be_unpickled_is_made_anew(cache: Cache):
    (code,) = cache.files("nbc")
    disk_cache.write(code, b"cmissing_package\nname\n.")
    with pytest.warns(RuntimeWarning, match=r"\(ModuleNotFoundError\)"):
        assert cache.hits() == 0


def test_files_of_numba_itself_are_never_unpickled_and_replaced_without_a_warning(cache: Cache):
    class Planted:
        def __reduce__(self) -> tuple:
            return (pytest.fail, ("a pickle of somebody else was loaded",))

    (index,) = cache.files("nbi")
    index.write_bytes(pickle.dumps(Planted()))
    assert cache.hits() == 0
    assert cache.hits() == 1


def test_a_full_disk_stops_nothing(cache: Cache, monkeypatch: pytest.MonkeyPatch):
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    shutil.rmtree(cache.stored)
    with monkeypatch.context() as patch:
        patch.setattr(disk_cache, "write", full)
        with pytest.warns(RuntimeWarning, match="could not keep a compiled game .* No space left on device"):
            assert cache.hits() == 0
    assert cache.hits() == 0
    assert cache.hits() == 1


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "x.nbi"
    disk_cache.write(path, b"old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        disk_cache.write(path, b"new")
    assert disk_cache.read(path) == b"old"
    assert list(tmp_path.iterdir()) == [path]


@posix
@pytest.mark.parametrize(
    ("uid", "mode", "problem"),
    [
        (12345, 0o755, "belongs to the user 12345"),
        (None, 0o757, "everybody may"),
        (None, 0o775, "the group 4711 may"),
    ],
)
def test_a_folder_that_others_can_write_is_not_used(
    cache: Cache, uid: int | None, mode: int, problem: str, monkeypatch: pytest.MonkeyPatch
):
    real = os.stat

    def stat(path: Any, **keywords: Any) -> os.stat_result:
        found = list(real(path, **keywords))
        if str(path) == str(cache.stored):
            found[0], found[4], found[5] = 0o040000 | mode, os.geteuid() if uid is None else uid, 4711
        return os.stat_result(found)

    monkeypatch.setattr(disk_cache.os, "stat", stat)
    monkeypatch.setattr("palaestra.core.compile.numba_cache.caching.CacheImpl._locator_classes", _in_tree())
    with pytest.warns(RuntimeWarning, match=rf"no directory .*{cache.stored}: .*{problem}.* yours alone"):
        assert cache.hits() == 0


def _in_tree() -> list[Any]:
    from numba.core import caching

    return [caching.InTreeCacheLocator]


@posix
def test_a_named_folder_that_others_can_write_is_refused_and_another_one_used(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from numba.core import config

    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))
    assert cache.hits() == 0
    (named,) = tmp_path.iterdir()
    named.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=rf"does not keep compiled games in {named} \(NUMBA_CACHE_DIR\): everybody"):
        assert cache.hits() == 1  # from beside the source


@posix
def test_a_file_that_others_can_write_is_not_loaded(cache: Cache):
    (code,) = cache.files("nbc")
    code.chmod(0o666)
    with pytest.warns(RuntimeWarning, match=f"does not load the compiled game in {code}: everybody may write"):
        assert cache.hits() == 0
    assert cache.hits() == 1
    assert code.stat().st_mode & 0o022 == 0


def test_an_edit_is_never_served_by_the_code_of_before(cache: Cache):
    cache.file.write_text(SOURCE.format(2))
    try:
        assert cache.load()(1.0) == 3.0
    finally:
        cache.file.write_text(SOURCE.format(1))


def test_a_survey_counts_and_names(cache: Cache):
    (code,) = cache.files("nbc")
    assert disk_cache.survey(cache.stored.iterdir()) | {"megabytes": 0} == {
        "files": 2, "megabytes": 0, "damaged": [], "foreign": [],
    }  # fmt: skip
    code.write_bytes(b"x")
    code.with_name("y.nbc").write_bytes(b"")
    if hasattr(os, "geteuid"):
        code.with_name("y.nbc").chmod(0o666)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = disk_cache.survey(sorted(cache.stored.iterdir()))
    assert (found["files"], found["damaged"]) == (3, [code.name] if hasattr(os, "geteuid") else [code.name, "y.nbc"])
    assert found["foreign"] == (["y.nbc"] if hasattr(os, "geteuid") else [])
