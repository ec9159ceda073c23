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

ENDINGS = ("terminations", "truncations")
ARRAYS = ("observations", "actions", "rewards", *ENDINGS)
"""Arrays of an episode, in Minari's words."""
ENDS: tuple[str, list[int]] = "|b1", []
"""Dtype and shape of a row of `ENDINGS`."""
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
                yield _EpisodeReader(h5py, file, number, manifest).read(opened.id)
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(file, f"is damaged: {printable(error)}") from error


def _row_bytes(entry: Any) -> int:
    return np.dtype(entry[0]).itemsize * int(np.prod(entry[1], dtype=np.int64))


class _EpisodeReader:
    """Reads one group; every error names file, episode and array. By h5py's low level, in half of the time."""

    def __init__(self, h5py: Any, file: Path, number: int, manifest: Manifest) -> None:
        self.h5py, self.file, self.manifest = h5py, file, manifest
        self.number, self.steps = number, manifest.steps[number]

    def error(self, reason: str, key: str | None = None) -> DataError:
        return DataError(self.file, reason, self.number, key)

    def read(self, opened: Any) -> Episode:
        """The episode."""
        manifest, infos = self.manifest, {}
        group = self._group(opened, f"episode_{self.number}", None, {*ARRAYS, *(["infos"] if manifest.infos else [])})
        seed, task = manifest.seeds[self.number], manifest.tasks[self.number]
        self._check_attribute(group, "seed", seed)
        self._check_attribute(group, "total_steps", self.steps)
        observations, actions, rewards, terminated, truncated = (self._array(group, name, name) for name in ARRAYS)
        if manifest.infos:
            folder = self._group(group, "infos", "infos", set(manifest.infos))
            infos = {name: self._array(folder, name, f"infos/{name}") for name in manifest.infos}
        over = terminated | truncated
        if over[:-1].any() or not over[-1]:
            raise self.error("the match does not end with its last decision, or ends before it", "terminations")
        return Episode(
            observations.reshape(self.steps + 1, -1).astype(np.float32, copy=False),
            actions.reshape(self.steps, -1).astype(np.float32 if actions.dtype.kind == "f" else np.int64, copy=False),
            rewards.astype(np.float32, copy=False),
            bool(terminated[-1]),
            bool(truncated[-1]),
            seed,
            task,
            infos,
        )

    def _check_attribute(self, group: Any, name: str, value: int) -> None:
        h5a = self.h5py.h5a
        number = h5a.open(group, name.encode()) if h5a.exists(group, name.encode()) else None
        if number is None or number.shape != () or number.dtype.kind not in "iu":
            raise self.error("is missing, or is no number", name)
        found = np.zeros((), number.dtype)
        number.read(found)
        if int(found) != value:
            raise self.error(f"is not {value}, as the manifest says", name)

    def _member(self, group: Any, name: str, key: str | None, kind: str) -> Any:
        """A group or array that lies in this file itself."""
        h5py = self.h5py
        if not group.links.exists(name.encode()):
            raise self.error("is missing", key)
        if group.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
            raise self.error("is a link, which is not followed", key)
        found = h5py.h5o.open(group, name.encode())
        if type(found) is not {"group": h5py.h5g.GroupID, "array": h5py.h5d.DatasetID}[kind]:
            raise self.error(f"is no {kind}", key)
        return found

    def _group(self, owner: Any, name: str, key: str | None, wanted: set[str]) -> Any:
        """A group that has these members and no others."""
        group = self._member(owner, name, key, "group")
        for member in sorted(wanted):
            if not group.links.exists(member.encode()):
                raise self.error("is missing", member if key is None else f"{key}/{member}")
        if group.get_num_objs() != len(wanted):
            raise self.error(f"has other members than {', '.join(sorted(wanted))}", key)
        return group

    def _array(self, group: Any, name: str, key: str) -> np.ndarray:
        """An array of the dtype and shape of the manifest; nothing is read before both are known to be right."""
        h5py = self.h5py
        array = self._member(group, name, key, "array")
        dtype, row = ENDS if key in ENDINGS else self.manifest.arrays[key]
        dtype, shape = np.dtype(dtype), (self.steps + (key == "observations" or "/" in key), *row)
        if array.shape != shape:
            raise self.error(f"has shape {array.shape}, not {shape}", key)
        if array.dtype != dtype:
            raise self.error(f"has dtype {array.dtype}, not {dtype}", key)
        recipe = array.get_create_plist()
        if recipe.get_external_count() or recipe.get_layout() == h5py.h5d.VIRTUAL:
            raise self.error("lies in other files, which are not opened", key)
        if recipe.get_nfilters():
            raise self.error("is compressed or filtered, which no recording is", key)
        values = np.empty(shape, dtype)
        if array.get_storage_size() < values.nbytes:
            raise self.error(f"has {array.get_storage_size()} bytes of {values.nbytes}: it was not written", key)
        array.read(h5py.h5s.ALL, h5py.h5s.ALL, values)
        if dtype.kind == "f" and "/" not in key and not np.isfinite(values).all():
            raise self.error("holds NaN or infinity", key)
        return values
