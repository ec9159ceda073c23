"""Reads and verifies data sets, those of other people too: a file can be wrong, never dangerous.

The manifest comes first, then SHA-256 and rules, and HDF5 opens the file last. In it nothing is followed but groups and
arrays of numbers: no links, no parts in other files, no filters (which are code), no objects. Sizes are compared with
the bytes of the file before memory is allocated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from palaestra.core.files import printable
from palaestra.data.data_manifest import HDF5, DataError, Manifest, check_expected, check_files, read_manifest
from palaestra.game import Importing

MISSING = 'data sets need Minari and h5py: pip install "palaestra[data]"'


class Episode(NamedTuple):
    """One match, from its start to its end.

    Attributes:
        observations: float32 ``[T + 1, n]``, before each decision and after the last.
        actions: ``[T, m]``: float32, or int64 where they are choices.
        rewards: float32 ``[T]``.
        terminated: Whether a rule ended the match.
        truncated: Whether the horizon did.
        seed: Seed of the match, or of its lane where it is not the first match of that.
        task: Number of its task, -1 for none.
        infos: Fields of ``sim.info`` that were kept, ``[T + 1, ...]``.
    """

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminated: bool
    truncated: bool
    seed: int
    task: int
    infos: Mapping[str, np.ndarray]


def read_data(path: str | Path, id: str | None = None, keywords: Mapping[str, Any] | None = None) -> list[Episode]:
    """All episodes of a data set, in the order of the file, which says nothing of lanes or tasks.

    Args:
        path: Folder of the data set.
        id: Environment that it must be of; None for any.
        keywords: Keywords that it must have been recorded with; None for any.

    Raises:
        DataError: It is damaged, of something else, or of other rules; names file, episode, array and reason.
        ImportError: h5py is not installed; names the extra.
    """
    return list(iterate_data(path, id, keywords))


def verify(path: str | Path, id: str | None = None, keywords: Mapping[str, Any] | None = None) -> Manifest:
    """Reads a whole data set, episode by episode, and compares all that it says; arguments and errors as `read_data`.

    Returns:
        Its manifest.
    """
    for _ in iterate_data(path, id, keywords):
        pass
    return read_manifest(path)


def iterate_data(
    path: str | Path, id: str | None = None, keywords: Mapping[str, Any] | None = None
) -> Iterator[Episode]:
    """The episodes of `read_data` one by one, for data sets larger than memory; arguments and errors as there."""
    manifest = read_manifest(path)
    check_files(path, manifest)
    check_expected(path, manifest, id, keywords)
    with Importing("h5py", MISSING):
        import h5py

    file = Path(path) / HDF5
    rows = sum(manifest.steps) + manifest.episodes
    if rows * sum(_row_bytes(entry) for entry in manifest.arrays.values()) > 2 * manifest.files[HDF5][0]:
        raise DataError(file, f"cannot hold {rows} rows, as the manifest says: it has {manifest.files[HDF5][0]} bytes")
    try:
        with h5py.File(file, "r") as opened:
            if len(opened) != manifest.episodes:
                raise DataError(file, f"has {len(opened)} groups, and the manifest {manifest.episodes} episodes")
            for number in range(manifest.episodes):
                yield _EpisodeReader(file, number, manifest).read(opened)
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(file, f"is damaged: {printable(error)}") from error


def _row_bytes(entry: Any) -> int:
    return np.dtype(entry[0]).itemsize * int(np.prod(entry[1], dtype=np.int64))


class _EpisodeReader:
    """Reads one group; every error names file, episode and array."""

    def __init__(self, file: Path, number: int, manifest: Manifest) -> None:
        self.file, self.number, self.manifest, self.steps = file, number, manifest, manifest.steps[number]

    def error(self, reason: str, key: str | None = None) -> DataError:
        return DataError(self.file, reason, self.number, key)

    def read(self, opened: Any) -> Episode:
        """The episode."""
        name, manifest = f"episode_{self.number}", self.manifest
        group = self._member(opened, name, None, "group")
        wanted = {"observations", "actions", "rewards", "terminations", "truncations"}
        wanted |= {"infos"} if manifest.infos else set()
        self._check_names(group, wanted, None)
        seed, task = manifest.seeds[self.number], manifest.tasks[self.number]
        for attribute, value in (("seed", seed), ("total_steps", self.steps)):
            if attribute not in group.attrs or group.attrs.get_id(attribute).shape != ():
                raise self.error("is missing, or is no number", attribute)
            if group.attrs.get_id(attribute).dtype.kind not in "iu" or int(group.attrs[attribute]) != value:
                raise self.error(f"is not {value}, as the manifest says", attribute)
        observations = self._array(group, "observations", 1)
        actions, rewards = self._array(group, "actions"), self._array(group, "rewards")
        ends = [self._array(group, key) for key in ("terminations", "truncations")]
        infos = {}
        if manifest.infos:
            folder = self._member(group, "infos", "infos", "group")
            self._check_names(folder, set(manifest.infos), "infos")
            infos = {name: self._array(folder, name, 1, f"infos/{name}") for name in manifest.infos}
        over = ends[0] | ends[1]
        if over[:-1].any() or not over[-1]:
            raise self.error("the match does not end with its last decision, or ends before it", "terminations")
        numbers = actions.dtype.kind == "f"
        return Episode(
            observations.reshape(self.steps + 1, -1).astype(np.float32, copy=False),
            actions.reshape(self.steps, -1).astype(np.float32 if numbers else np.int64, copy=False),
            rewards.astype(np.float32, copy=False),
            bool(ends[0][-1]),
            bool(ends[1][-1]),
            seed,
            task,
            infos,
        )

    def _check_names(self, group: Any, wanted: set[str], key: str | None) -> None:
        if len(group) > len(wanted):
            raise self.error(f"has {len(group)} members, more than {', '.join(sorted(wanted))}", key)
        for name in sorted(wanted - set(group)):
            raise self.error("is missing", name if key is None else f"{key}/{name}")

    def _member(self, group: Any, name: str, key: str | None, kind: str) -> Any:
        """A group or array that lies in this file itself."""
        import h5py

        link = group.get(name, getlink=True)
        if link is None:
            raise self.error("is missing", key)
        if type(link) is not h5py.HardLink:
            raise self.error(f"is a {type(link).__name__}, which is not followed", key)
        found = group.get(name, getclass=True)
        if found is not (h5py.Group if kind == "group" else h5py.Dataset):
            raise self.error(f"is no {kind}", key)
        return group[name]

    def _array(self, group: Any, name: str, more: int = 0, key: str | None = None) -> np.ndarray:
        """An array of the dtype and shape of the manifest; nothing is read before both are known to be right."""
        key = name if key is None else key
        array = self._member(group, name, key, "array")
        dtype, row = ("|b1", []) if name in ("terminations", "truncations") and not more else self.manifest.arrays[key]
        shape = (self.steps + more, *row)
        if array.shape != shape:
            raise self.error(f"has shape {array.shape}, not {shape}", key)
        if array.dtype != np.dtype(dtype):
            raise self.error(f"has dtype {array.dtype}, not {np.dtype(dtype)}", key)
        if array.external or array.is_virtual:
            raise self.error("lies in other files, which are not opened", key)
        if array.id.get_create_plist().get_nfilters():
            raise self.error("is compressed or filtered, which no recording is", key)
        if array.id.get_storage_size() < array.nbytes:
            raise self.error(f"has {array.id.get_storage_size()} bytes of {array.nbytes}: it was not written", key)
        values = array[()]
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise self.error("holds NaN or infinity", key)
        return values
