"""A data set that is being made: finished episodes in parts, joined to the files that Minari reads at the end.

The parts lie in a hidden folder beside the data set: ``plan.json`` and one file of rows a part, each written in one
piece. Whoever is killed loses the part that was being made, and no more. Episodes are joined in the order of a hash of
their `Key`, which depends neither on lanes nor on parts, and says nothing of the task; then the folder is renamed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from palaestra import __version__
from palaestra.core.contract.file_keywords import plain_file
from palaestra.core.files import read_limited, write_atomically
from palaestra.core.rng import mix64
from palaestra.data.data_manifest import HDF5, LARGEST_MANIFEST, METADATA, DataError, Manifest, file_digest
from palaestra.data.data_reader import MISSING
from palaestra.data.episode_rows import INFO, EpisodeRows, Key
from palaestra.game import Importing

PLAN = "plan.json"


class Parts:
    """The folder of parts of one data set.

    Attributes:
        path: Folder of the data set to be.
        folder: Folder of the parts.
        episodes: Number of episodes in all parts.
    """

    def __init__(self, path: str | Path, plan: Manifest, rows: EpisodeRows, *, goes_on: bool) -> None:
        """Takes the folder, or makes it.

        Args:
            path: Folder of the data set to be; its parents are made.
            plan: Its manifest, without episodes.
            rows: Spaces and record of the episodes.
            goes_on: Keep finished parts of the same plan; else parts of an unfinished recording are deleted.

        Raises:
            DataError: There is a data set already, or parts of another plan.
            ImportError: Minari is not installed; names the extra.
        """
        with Importing("minari", MISSING):
            import minari.dataset._storages.hdf5_storage  # noqa: F401  (h5py and Pillow too, before anything is played)
        self.path, self._plan, self._rows = Path(path), plan, rows
        self.folder = self.path.with_name(f".{self.path.name}.parts")
        if self.path.exists():
            raise DataError(path, "is there already: name another folder, or delete it")
        text = json.dumps([asdict(plan), np.lib.format.dtype_to_descr(rows.dtype)], default=plain_file).encode()
        if self.folder.exists() and not goes_on:
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / PLAN).exists():
            write_atomically(self.folder / PLAN, lambda file: file.write(text))
        elif read_limited(self.folder / PLAN, LARGEST_MANIFEST) != text:
            raise DataError(self.folder, "holds parts of another data set: delete it, or name another folder")
        self.episodes = sum(len(self._starts(self._read(number))) - 1 for number in self._numbers())

    def has(self, number: int) -> bool:
        """Whether a part is finished."""
        return self._file(number).exists()

    def add(self, number: int, episodes: Sequence[np.ndarray]) -> None:
        """Writes a part: the rows of some episodes.

        Raises:
            DataError: A number that is not finite.
            OSError: It cannot be written.
        """
        for rows in episodes:
            for name in ("observation", "action", "reward"):
                values = rows[name]
                if values.dtype.kind == "f" and not np.isfinite(values).all():
                    seed = int(rows["seed"][0])
                    raise DataError(self.path, f"the match of seed {seed} has a {name} that is NaN or infinite")
        write_atomically(self._file(number), lambda file: file.write(b"".join(rows.tobytes() for rows in episodes)))
        self.episodes += len(episodes)

    def finish(self) -> Manifest:
        """Joins the parts, puts the data set in its place in one piece, and deletes the parts.

        Raises:
            DataError: There is no episode.
            OSError: It cannot be written.
        """
        if not self.episodes:
            shutil.rmtree(self.folder)
            raise DataError(self.path, "no match has ended: a data set holds complete episodes alone")
        final = self.folder / "final"
        shutil.rmtree(final, ignore_errors=True)
        (final / METADATA).parent.mkdir(parents=True)
        order = self._order()
        self._write_minari(final, order)
        files = {}
        for name in (HDF5, METADATA):
            with (final / name).open("rb+") as file:
                os.fsync(file.fileno())
            size = (final / name).stat().st_size
            files[name] = [size, file_digest(final / name, size)]
        listed = {name: order[name].tolist() for name in ("seeds", "matches", "tasks", "steps")}
        manifest = replace(self._plan, files=files, **listed)
        manifest.save(final)
        final.replace(self.path)
        shutil.rmtree(self.folder)
        return manifest

    def close(self) -> None:
        """Deletes the parts."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:08}.rows"

    def _numbers(self) -> list[int]:
        return sorted(int(file.stem) for file in self.folder.glob("*.rows"))

    def _read(self, number: int, start: int = 0, count: int = -1) -> np.ndarray:
        return np.fromfile(self._file(number), self._rows.dtype, count, offset=start * self._rows.dtype.itemsize)

    def _starts(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of the first rows of the episodes of a part, and that of all its rows."""
        last = np.flatnonzero(rows["terminated"] | rows["truncated"]) + 1  # a row of zeros follows the last decision
        return np.concatenate([[0], last + 1])

    def _order(self) -> np.ndarray:
        """A record an episode, in the order of the file: where it is, and its `Key`."""
        found = []
        for number in self._numbers():
            rows = self._read(number)
            starts = self._starts(rows)
            for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                key = [rows[name][start].item() for name in Key._fields]
                found.append((number, start, end - start - 1, *key))
        kinds = [("part", "i8"), ("start", "i8"), ("steps", "i8"), ("seeds", "u8"), ("matches", "i8"), ("tasks", "i8")]
        order = np.array(found, kinds)
        with np.errstate(over="ignore"):
            keys = mix64(mix64(order["seeds"]) + order["matches"].astype(np.uint64))
        return order[np.lexsort((order["matches"], order["seeds"], keys))]

    def _write_minari(self, folder: Path, order: np.ndarray) -> None:
        import minari
        from minari.dataset.minari_storage import MinariStorage

        plan, rows = self._plan, self._rows
        place = (folder / METADATA).parent.absolute()  # Minari measures no folder of a relative path
        storage = MinariStorage.new(place, rows.observation_space, rows.action_space, env_spec(plan), "hdf5")
        storage.update_episodes(self._buffers(order))
        storage.update_metadata(
            {
                "dataset_id": plan.name,
                "minari_version": minari.__version__,
                "algorithm_name": plan.players[plan.team],
                "description": f"{plan.id}, team {plan.team}, recorded by palaestra {__version__}",
                "requirements": [f"palaestra=={__version__}"],
            }
        )

    def _buffers(self, order: np.ndarray) -> Iterator[Any]:
        """Minari's form of the episodes."""
        from minari.data_collector import EpisodeBuffer

        for part, start, steps, seed, _, task in order.tolist():
            rows = self._read(part, start, steps + 1)
            played = rows[:-1]
            options = None if task < 0 else {"task": task}
            infos = {name.removeprefix(INFO): rows[name].copy() for name in rows.dtype.names or () if INFO in name}
            yield EpisodeBuffer(
                seed=seed,
                options=options,
                observations=rows["observation"].copy(),  # type: ignore[arg-type]
                actions=played["action"].copy(),  # type: ignore[arg-type]
                rewards=played["reward"].copy(),  # type: ignore[arg-type]
                terminations=played["terminated"].copy(),  # type: ignore[arg-type]
                truncations=played["truncated"].copy(),  # type: ignore[arg-type]
                infos=infos or None,
            )


def env_spec(plan: Manifest) -> Any:
    """Gymnasium's recipe of the environment, for ``recover_environment``; None where keywords hold a file.

    Players that are no scripts, and the task where the episodes are of several, are left out.
    """
    try:
        json.dumps(plan.keywords)
    except TypeError:
        return None
    keywords = dict(plan.keywords)
    if len(plan.players) > 1:
        keywords["control"] = plan.team
    return replace(gymnasium.spec(plan.id), kwargs={**gymnasium.spec(plan.id).kwargs, **keywords})
