"""Numba's cache on disk, with files that are checked before they are loaded and that may fail.

Numba unpickles what it finds and runs it: a file of somebody else is code of somebody else, and one that is damaged is
an error in every process or the end of the interpreter. Here such files cost the time of the compiler.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from numba.core import caching

from palaestra.core.compile import disk_cache

NO_FOLDER = "no locator available"
"""What numba says where it finds no folder."""

refused: dict[str, str] = {}
"""Folders that are not used, and why."""


class _Implementation(caching.CompileResultCacheImpl):
    """Keeps machine code only in folders that are ours alone."""

    @property
    def _locator_classes(self) -> list[Any]:
        return [_Trusted(kind) for kind in caching.CacheImpl._locator_classes]


class _Trusted:
    """Offers the folder of one of numba's locators if nobody else may write there."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind

    def from_function(self, function: Any, file: str) -> Any:
        """See numba; None where the folder is not used."""
        locator = self.kind.from_function(function, file)
        if locator is None:
            return None
        folder = locator.get_cache_path()
        problem = disk_cache.folder_problem(folder)
        if problem and Path(folder).exists():
            refused[str(folder)] = problem
            if self.kind is caching.UserProvidedCacheLocator:  # else the next one may do, which nobody asked not for
                disk_cache.warn_once(
                    f"folder {folder}",
                    f"palaestra does not keep compiled games in {folder} (NUMBA_CACHE_DIR): {problem}, and whoever can "
                    "write there could run code here. Name a folder that you alone may write (chmod go-w)",
                )
            return None
        return locator


class _Files(caching.IndexDataCacheFile):
    """An index and files of machine code with checksums; the code says itself what it was compiled for."""

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self) -> dict[Any, Any]:
        version, stamp, overloads = self._read(Path(self._index_path)) or ("", None, {})
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, Any]) -> None:
        disk_cache.write(Path(self._index_path), self._dump((self._version, self._source_stamp, overloads)))

    def _load_data(self, name: str) -> Any:
        return self._read(Path(self._data_path(name)))

    def _save_data(self, name: str, data: Any) -> None:
        disk_cache.write(Path(self._data_path(name)), self._dump(data))

    def _read(self, path: Path) -> Any:
        """What a file holds, None where it is not there or of no use."""
        try:
            content = disk_cache.read(path)
            return None if content is None else pickle.loads(content)
        except Exception as error:  # damaged; or pickled with another version of some package, which may raise anything
            disk_cache.drop(path, error)
        return None


class CheckedCache(caching.FunctionCache):
    """The cache of one function. Neither loading nor saving can fail: what cannot be loaded is compiled."""

    _impl_class = _Implementation

    def __init__(self, function: Any) -> None:
        """Finds a folder.

        Raises:
            RuntimeError: There is none (`NO_FOLDER`).
        """
        super().__init__(function)
        if disk_cache.folder_problem(self._cache_path) and Path(self._cache_path).exists():
            raise RuntimeError(f"{NO_FOLDER}: {self._cache_path}")  # of a locator that the user has named
        stamp, base = self._impl.locator.get_source_stamp(), self._impl.filename_base
        self._cache_file = _Files(cache_path=self._cache_path, filename_base=base, source_stamp=stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """See numba; None where what is stored cannot be loaded, whatever the reason."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            disk_cache.drop(Path(self._cache_file._index_path), error)
            return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        try:
            super()._save_overload(sig, data)
        except Exception as error:
            disk_cache.warn_once(
                "save",
                f"palaestra could not keep a compiled game in {self._cache_path} ({type(error).__name__}: {error}): "
                "it runs, and other processes compile it anew",
            )


def keep(dispatcher: Any) -> Any:
    """Lets a dispatcher keep its machine code on disk; returns the dispatcher.

    Raises:
        RuntimeError: There is no folder for it (`NO_FOLDER`).
    """
    dispatcher._cache = CheckedCache(dispatcher.py_func)
    return dispatcher
