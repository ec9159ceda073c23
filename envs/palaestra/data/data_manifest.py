"""The manifest of a data set: what was recorded how, and the digests of the files that hold it.

A data set is a folder: ``data/main_data.hdf5`` and ``data/metadata.json``, which Minari reads, and ``palaestra.json``,
the manifest. It is read first: nothing else is opened before its SHA-256 is that of the manifest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.compile.identity import rules_digest
from palaestra.core.contract.file_keywords import parse_json, plain_file
from palaestra.core.files import FileError, open_regular, printable, printable_name, read_limited, write_atomically

MANIFEST = "palaestra.json"
HDF5, METADATA = "data/main_data.hdf5", "data/metadata.json"
"""Files of a data set, by their paths in its folder."""
MAGIC, FORMAT = "palaestra data", 1
LARGEST_MANIFEST, LARGEST_METADATA = 2**28, 2**22
"""Bytes; an episode has about 40 in the manifest."""
KINDS = "biuf"
"""Kinds of numbers that an array may hold: no objects, texts or records."""
WIDEST = 2**24
"""Numbers of a row of an array, at most."""


class DataError(FileError):
    """A data set that cannot be made or read; the message names the file, the episode, the array and the reason.

    Attributes:
        file: Path of the file.
        episode: Number of the episode, or None.
        key: Name of the array, or None.
        reason: What is wrong.
    """

    def __init__(self, file: str | Path, reason: str, episode: int | None = None, key: str | None = None) -> None:
        """Joins the parts to one line."""
        where = [] if episode is None else [f"episode {episode}"]
        where += [] if key is None else [key]
        super().__init__(": ".join([str(file), *([", ".join(where)] if where else []), reason]))
        self.file, self.episode, self.key, self.reason = str(file), episode, key, reason


@dataclass(frozen=True)
class Manifest:
    """What a data set says of itself.

    Attributes:
        name: Name by which Minari knows it, the name of its folder: ``NAME-v0``.
        id: Id of the environment.
        keywords: Those of `palaestra.make_batch`, without ``task``.
        team: The recorded team.
        players: Player of each team, as text.
        policies: SHA-256 of the files of these players, by team.
        seed: Number of the run that its matches were drawn from; None for episodes of a loop of one's own.
        task_list: Tasks that were played one after the other; None where the game has none, or draws them itself.
        infos: Fields of ``sim.info`` that were kept.
        rules: Digest of the rules, see `rules_of`.
        engine: Engine and platform that the bits depend on; empty where they are the same everywhere.
        palaestra: Version that recorded.
        arrays: By name of array its dtype and the shape of a row.
        files: By path in the folder, bytes and SHA-256.
        seeds: Seed of the lane of each episode.
        matches: Number of the match since its lane was seeded.
        tasks: Task of each episode, -1 for none.
        steps: Decisions of each episode.
    """

    name: str
    id: str
    keywords: Mapping[str, Any]
    team: str
    players: Mapping[str, str]
    policies: Mapping[str, str]
    seed: int | None
    task_list: Sequence[int] | None
    infos: Sequence[str]
    rules: str
    engine: str
    palaestra: str
    arrays: Mapping[str, Sequence[Any]]
    files: Mapping[str, Sequence[Any]]
    seeds: Sequence[int]
    matches: Sequence[int]
    tasks: Sequence[int]
    steps: Sequence[int]

    @property
    def episodes(self) -> int:
        """Number of episodes."""
        return len(self.steps)

    def same_plan(self, other: Manifest) -> bool:
        """Whether both are made of the same matches, finished or not."""
        blank: dict[str, Any] = dict.fromkeys(("seeds", "matches", "tasks", "steps", "files"), ())
        return replace(self, **blank) == replace(other, **blank)

    def save(self, folder: Path) -> None:
        """Writes the file."""
        text = json.dumps({"magic": MAGIC, "format": FORMAT, **asdict(self)}, default=plain_file)
        write_atomically(folder / MANIFEST, lambda file: file.write(text.encode()))


LISTS = ("seeds", "matches", "tasks", "steps")
TEXTS = ("name", "id", "team", "rules", "engine", "palaestra")


def rules_of(id: str, keywords: Mapping[str, Any], tasks: Sequence[int] | None) -> str:
    """Digest of the rules of an environment, or of those of all its tasks.

    Raises:
        KeyError, TypeError, ValueError: No such environment or task.
    """
    if tasks is None:
        return rules_digest(registry.make_game(id, **keywords)[0])
    digests = [rules_digest(registry.make_game(id, **keywords, task=task)[0]) for task in tasks]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


def file_digest(path: Path, size: int) -> str:
    """SHA-256 of a regular file of so many bytes.

    Raises:
        FileError, OSError: It is none, it is larger, or it cannot be read.
    """
    with open_regular(path, size) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def read_manifest(path: str | Path) -> Manifest:
    """Reads and checks the manifest of a data set; no other file is opened. The folder may be of somebody else.

    Args:
        path: Folder of the data set.

    Raises:
        DataError: There is none, it is damaged, or of another format.
    """
    file = Path(path) / MANIFEST
    if not file.is_file():
        minari = (Path(path) / METADATA).is_file()
        other = "it is of another project, whose own reader may take it (minari.load_dataset)" if minari else "name one"
        raise DataError(path, f"no data set of palaestra, which has a file {MANIFEST}: {other}")
    try:
        content = parse_json(read_limited(file, LARGEST_MANIFEST).decode())
    except (ValueError, RecursionError, MemoryError) as error:
        raise DataError(file, f"is damaged or cut off, or no manifest: {printable(error)}") from error
    if not isinstance(content, dict) or content.pop("magic", None) != MAGIC:
        raise DataError(file, "is no manifest of palaestra")
    if (version := content.pop("format", None)) != FORMAT:
        do = "take a newer palaestra" if isinstance(version, int) and version > FORMAT else "record the data again"
        raise DataError(file, f"has format {printable(version)}, this palaestra reads format {FORMAT}: {do}")
    names = {field.name for field in fields(Manifest)}
    if wrong := sorted(map(str, set(content) ^ names)):
        raise DataError(file, f"is damaged: it lacks, or should not hold, {printable(', '.join(wrong))}")
    manifest = Manifest(**content)
    for name in names:
        if not _fits(name, getattr(manifest, name)):
            raise DataError(file, f"is damaged: {name} does not fit a data set")
    if len({len(getattr(manifest, name)) for name in LISTS}) > 1:
        raise DataError(file, f"is damaged: {', '.join(LISTS)} are not of one length")
    if not manifest.episodes:
        raise DataError(file, "the data set is empty: it has no episode")
    return manifest


def check_expected(path: str | Path, manifest: Manifest, id: str | None, keywords: Mapping[str, Any] | None) -> None:
    """Whether a data set is of the environment that its reader means, under the rules of this palaestra.

    Raises:
        DataError: Another id, other keywords, keywords that may name files or code, or other rules.
    """
    file = Path(path) / MANIFEST
    if id is not None and manifest.id != id:
        raise DataError(file, f"was recorded in {printable_name(manifest.id)}, not in {id}")
    if keywords is not None and json.loads(json.dumps(manifest.keywords, default=str)) != dict(keywords):
        raise DataError(file, f"was recorded with keywords {printable(dict(manifest.keywords))}, not {dict(keywords)}")
    if manifest.id not in registry.ROWS:
        raise DataError(file, f"is of {printable_name(manifest.id)}, which is not registered: import its module first")
    if reason := registry.refused_keyword(manifest.id, manifest.keywords):
        raise DataError(file, reason)
    try:
        rules = rules_of(manifest.id, manifest.keywords, manifest.task_list)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(file, f"its keywords fit no {printable_name(manifest.id)} here: {printable(error)}") from error
    if rules != manifest.rules:
        raise DataError(
            file,
            f"was recorded by other rules of {manifest.id} (palaestra {printable_name(manifest.palaestra)}): record it "
            "again, or install that version",
        )


def check_files(path: str | Path, manifest: Manifest) -> None:
    """Compares all files with the manifest; none is parsed.

    Raises:
        DataError: One is missing, cut off, longer or changed.
    """
    for name in (METADATA, HDF5):
        file, (size, digest) = Path(path) / name, manifest.files[name]
        if not file.is_file():
            raise DataError(file, "is missing, or no regular file: take the whole folder")
        if (found := file.stat().st_size) != size:
            what = "is cut off" if found < size else "is longer than it was"
            raise DataError(file, f"{what}: {found} bytes of {size}")
        try:
            is_same = file_digest(file, size) == digest
        except (FileError, OSError) as error:
            raise DataError(file, f"cannot be read: {printable(error)}") from error
        if not is_same:
            raise DataError(file, "has changed since it was recorded: its SHA-256 is not that of the manifest")


def _fits(name: str, value: Any) -> bool:
    """Whether an entry is of its type, so that messages can print it and readers can trust its numbers."""
    if name in TEXTS:
        return isinstance(value, str) and value.isprintable() and len(value) <= 200
    if name in LISTS:
        low, high = (1, 2**40) if name == "steps" else (-1, 2**63) if name == "tasks" else (0, 2**64)
        return isinstance(value, list) and all(type(n) is int and low <= n < high for n in value)
    if name == "arrays":
        return isinstance(value, dict) and {"observations", "actions", "rewards"} <= set(value) and all(
            map(_is_array, value.values())
        )  # fmt: skip
    if name == "files":
        return isinstance(value, dict) and set(value) == {HDF5, METADATA} and all(map(_is_file, value.values()))
    if name in ("players", "policies"):
        return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    if name == "infos":
        return isinstance(value, list) and all(isinstance(text, str) for text in value)
    if name == "task_list":
        return value is None or (isinstance(value, list) and all(type(n) is int for n in value))
    if name == "seed":
        return value is None or (type(value) is int and 0 <= value < 2**32)
    return isinstance(value, dict)


def _is_array(entry: Any) -> bool:
    """``[dtype, shape of a row]``."""
    if not isinstance(entry, list) or len(entry) != 2 or not isinstance(entry[0], str) or len(entry[0]) > 4:
        return False
    try:
        kind = np.dtype(entry[0]).kind
    except (TypeError, ValueError):
        return False
    shape = entry[1]
    sizes = isinstance(shape, list) and len(shape) <= 8 and all(type(n) is int and 0 < n <= WIDEST for n in shape)
    return kind in KINDS and sizes and int(np.prod(shape, dtype=object)) <= WIDEST


def _is_file(entry: Any) -> bool:
    """``[bytes, SHA-256]``."""
    return isinstance(entry, list) and len(entry) == 2 and type(entry[0]) is int and isinstance(entry[1], str)
