"""The file of a replay: an npz archive that NumPy opens, without pickles, with a checksum."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.contract.file_keywords import parse_json, plain_file
from palaestra.core.files import FileError, write_atomically
from palaestra.core.files.archive import Archive
from palaestra.core.files.short_repr import short_repr, text_html

MAGIC = "palaestra replay"
FORMAT = 3
RESET, STEP = 0, 1
"""Values of `Replay.operations`."""
SEED, STREAM, SET_OPPONENT, SET_PARAMETER, SNAPSHOT, RESTORE, REFRESH, STEP_LANES = range(8)
"""First numbers of `Replay.change_verbs`, see `palaestra.replay.changes`."""
CHECK_BYTES = 8
LARGEST_HEADER = 2**22
LONGEST_TEXT = 500
"""Characters of an id, a version, a digest or an engine."""
LARGEST = 2**31
"""Bytes that a replay may have in memory, and bytes of the lanes that play it."""


class ReplayError(FileError):
    """A replay that cannot be made, read or repeated; the message gives the reason."""


@dataclass(frozen=True, eq=False)
class Replay:
    """Everything that came from outside in a run of N lanes, K operations (resets and decisions) long.

    It holds calls and their arguments, never the memory of a match: its content goes through the same checks as a
    call of `palaestra.core.run.simulation.Simulation`.

    Attributes:
        id: Id of the environment.
        keywords: Keywords of `palaestra.make_batch` besides `num_envs` and `autoreset_mode`; a file is a
            `palaestra.core.files.TextFile`.
        num_envs: Number of lanes N.
        autoreset_mode: As for `palaestra.make_batch`.
        players: Player of each team at the start, as text.
        outside: By team the names of its Python players, whose actions are in the file.
        teams: Names of the teams.
        end_reasons: Names of the numbers of end reasons.
        palaestra: Version of the package that recorded.
        rules: Digest of the rules, see `palaestra.core.compile.identity`.
        engine: Engine and platform that a per-platform game's bits depend on; empty for a cross-platform game.
        check_every: Operations between two entries of `checks`.
        digest: SHA-256 of the hashes of all lanes at the end.
        output_columns: By team and by name, how many numbers its Python player computed for an agent, such as
            probabilities; see `palaestra.core.run.opponents.Opponent`.
        seeds: uint64 ``[N]``, seed of each lane at the start.
        operations: uint8 ``[K]``, `RESET` or `STEP`.
        reset_lanes: bool ``[resets, N]``, which lanes a reset started.
        actions: int64 ``[steps, N, W]``, the action words that came from outside, in the order of
            `palaestra.core.contract.actions.ActionTable.words`; reals as the bits of their float64.
        change_operations: int64 ``[C]``, number of the operation before which another call came.
        change_verbs: int64 ``[C, 3]``, which call, its target, and a number: see `palaestra.replay.changes`.
        change_lanes: bool ``[C, N]``, in which lanes.
        change_values: int64 ``[C, N]``, bits of a value for each lane.
        match_rows: int64 ``[M, 4]``, the finished matches in the order of their ends: lane, decisions of the run so
            far, number of the winner (-1 for none), number of the end reason.
        checks: uint8 ``[checks, N, 8]``, the hash of each lane after every `check_every` operations and at the end,
            see `palaestra.replay.lane_hashes`.
        outputs: float32 ``[steps, N, W]``, what players computed, in the order of ``output_columns``, agent by agent.
            They decide nothing: nobody verifies them.
        turns: uint8, what players wrote, as it was before it became actions: empty, or a list ``[decision, lane, slot,
            text]`` each in JSON. Likewise.
        path: The file that it was read from, for messages.
        is_trusted: Whether its keywords may name code, files, folders and models: not where somebody else wrote it.
    """

    id: str
    keywords: Mapping[str, Any]
    num_envs: int
    autoreset_mode: str
    players: Mapping[str, str]
    outside: Mapping[str, list[str]]
    teams: list[str]
    end_reasons: list[str]
    palaestra: str
    rules: str
    engine: str
    check_every: int
    digest: str
    output_columns: Mapping[str, Mapping[str, int]]
    seeds: np.ndarray
    operations: np.ndarray
    reset_lanes: np.ndarray
    actions: np.ndarray
    change_operations: np.ndarray
    change_verbs: np.ndarray
    change_lanes: np.ndarray
    change_values: np.ndarray
    match_rows: np.ndarray
    checks: np.ndarray
    outputs: np.ndarray
    turns: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    path: str = ""
    is_trusted: bool = True

    def __repr__(self) -> str:
        """One line."""
        return short_repr(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: who played, and how the first matches ended."""
        players = " and ".join(f"{player} ({team})" for team, player in self.players.items())
        matches = self.matches
        lines = [f"{self.id}: {players}, {self.steps} decisions in {self.num_envs} lanes, {len(matches)} matches ended"]
        lines += [
            f"  lane {m['lane']}, decision {m['step']}: {m['winner'] or 'nobody'}, {m['end_reason']}"
            for m in matches[:8]
        ]
        lines += ["  ..."] * (len(matches) > 8) + ["palaestra.replay.show(replay) plays it"]
        return text_html("\n".join(lines))

    @property
    def steps(self) -> int:
        """Decisions played."""
        return len(self.actions)

    @property
    def streams_went_on(self) -> bool:
        """Whether the recording began without a seed: then the seeds alone do not decide the matches."""
        return bool((self.change_verbs[self.change_operations == 0, 0] == STREAM).any())

    @functools.cached_property
    def texts(self) -> dict[tuple[int, int, int], str]:
        """What players wrote (`turns`) by decision, lane and slot."""
        rows = json.loads(self.turns.tobytes()) if len(self.turns) else []
        return {(decision, lane, slot): text for decision, lane, slot, text in rows}

    @property
    def matches(self) -> list[dict[str, Any]]:
        """The finished matches: ``lane``, ``step`` (decisions so far), ``winner`` (a team or None), ``end_reason``."""
        return [
            {
                "lane": lane,
                "step": step,
                "winner": self.teams[winner] if winner >= 0 else None,
                "end_reason": self.end_reasons[reason],
            }
            for lane, step, winner, reason in self.match_rows.tolist()
        ]

    def save(self, path: str | Path) -> None:
        """Writes the file in one piece: an old file stays until the new one is whole.

        Raises:
            ReplayError: It is too large to be read again; record fewer lanes or less often.
            OSError: It cannot be written.
        """
        header = {name: getattr(self, name) for name in HEADER}
        text = json.dumps({"magic": MAGIC, "format": FORMAT, **header}, default=plain_file).encode()
        content = {"header": np.frombuffer(text, np.uint8)}
        content |= {name: np.ascontiguousarray(getattr(self, name)) for name in ARRAYS if name != TEXTS}
        content |= {TEXTS: self.turns} if len(self.turns) else {}
        size = sum(array.nbytes for array in content.values())
        if len(text) > LARGEST_HEADER or size > LARGEST:
            raise ReplayError(f"{path}: a replay of {size} bytes ({len(text)} of keywords and names) is too large")
        content["checksum"] = np.frombuffer(_checksum(content), np.uint8)
        write_atomically(path, lambda file: np.savez_compressed(file, **content))  # type: ignore[arg-type]


ARRAYS: dict[str, str] = {
    "seeds": "<u8",
    "operations": "|u1",
    "reset_lanes": "|b1",
    "actions": "<i8",
    "change_operations": "<i8",
    "change_verbs": "<i8",
    "change_lanes": "|b1",
    "change_values": "<i8",
    "match_rows": "<i8",
    "checks": "|u1",
    "outputs": "<f4",
    "turns": "|u1",
}
"""Arrays of the archive and their types."""
TEXTS = "turns"
"""That which is missing where nobody wrote."""
HEADER = tuple(f.name for f in fields(Replay) if f.name not in (*ARRAYS, "path", "is_trusted"))
COUNTS = ("num_envs", "check_every")
NAMES = ("teams", "end_reasons")
MAPPINGS = ("keywords", "players", "outside", "output_columns")
MOST_OUTPUTS = 2**16
"""Numbers that a player computes for an agent, at most."""


def load(path: str | Path, *, trust_paths: bool = False) -> Replay:
    """Reads a replay and checks that it is whole. The file may be untrusted: nothing in it is run, no file is opened.

    Args:
        path: The file.
        trust_paths: Take keywords that name files, folders, code or models, which the game then opens, imports and
            calls: only if you know who wrote the file. A recording holds the content of a map, a ruleset or a graph;
            paths are left where a game takes nothing else.

    Raises:
        ReplayError: The file is damaged, cut off, too large, something else, of another format, or its keywords may
            name files or code; the message gives the reason.
        OSError: It cannot be read.
    """
    try:
        with Archive(path) as archive:
            replay = _read(archive)
    except ReplayError:
        raise
    except FileError as error:
        raise ReplayError(f"{path} is no replay of palaestra, or it is damaged or cut off ({error})") from error
    replay = replace(replay, is_trusted=trust_paths)
    check_keywords(replay)
    return replay


def check_keywords(replay: Replay) -> None:
    """Refuses keywords that could open a file of the user or run code; `load` has called it for ids known then.

    Raises:
        ReplayError: Names the file, the keyword and what to do.
    """
    reason = None if replay.is_trusted else registry.refused_keyword(replay.id, replay.keywords)
    if reason is not None:
        raise ReplayError(
            f"{replay.path}: {reason}: if you trust its author to open files of yours and to run code, "
            "load(..., trust_paths=True) or palaestra replay --trust-paths"
        )


def _read(archive: Archive) -> Replay:
    path = archive.path
    text = archive.read("header", "|u1", (None,), LARGEST_HEADER)
    header = _parse(text.tobytes(), path)
    _check_header(header, path)
    expected = {"header", "checksum", *ARRAYS}
    if set(archive.sizes) | {TEXTS} != expected:
        wrong = ", ".join(sorted(map(repr, set(archive.sizes) ^ expected)))[:200]
        raise ReplayError(f"{path} is damaged: it lacks, or should not hold, {wrong}")
    size = sum(archive.sizes.values())
    if size > LARGEST:
        raise ReplayError(f"{path} would need {size} bytes of memory, more than {LARGEST}: it is not read")
    n = header["num_envs"]
    content: dict[str, np.ndarray] = {"header": text}

    def read(name: str, *shape: int | None) -> np.ndarray:
        content[name] = archive.read(name, ARRAYS[name], shape, LARGEST)
        return content[name]

    read("seeds", n)
    operations = read("operations", None)
    resets, steps = (int((operations == kind).sum()) for kind in (RESET, STEP))
    if resets + steps != len(operations) or len(operations) == 0 or operations[0] != RESET:
        raise ReplayError(f"{path} is damaged: operations are resets and decisions, and a reset comes first")
    if not read("reset_lanes", resets, n)[0].all():
        raise ReplayError(f"{path} is damaged: a recording begins with a reset of all lanes")
    read("actions", steps, n, None)
    changed = read("change_operations", None)
    if (np.diff(changed) < 0).any() or ((changed < 0) | (changed >= len(operations))).any():
        raise ReplayError(f"{path} is damaged: change_operations are not numbers of operations in their order")
    read("change_verbs", len(changed), 3)
    read("change_lanes", len(changed), n)
    read("change_values", len(changed), n)
    _check_matches(read("match_rows", None, 4), header, path)
    read("checks", -(-len(operations) // header["check_every"]), n, CHECK_BYTES)
    read("outputs", steps, n, None)
    if TEXTS in archive.sizes:
        _check_texts(read(TEXTS, None), steps, n, path)
    if archive.read("checksum", "|u1", (32,), 32).tobytes() != _checksum(content):
        raise ReplayError(f"{path} is damaged: its checksum does not match")
    attributes: dict[str, Any] = {**header, **{name: content[name] for name in ARRAYS if name in content}}
    return Replay(**attributes, path=str(path))


def _parse(text: bytes, path: Path) -> dict[str, Any]:
    """The header's JSON, if it is that of a replay of this format."""
    try:
        header = parse_json(text.decode())
    except FileError as error:
        raise ReplayError(f"{path} is damaged: {error}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise ReplayError(
            f"{path} is no replay of palaestra, or it is damaged: its header is no JSON ({type(error).__name__})"
        ) from error
    if not isinstance(header, dict) or header.pop("magic", None) != MAGIC:
        raise ReplayError(f"{path} is no replay of palaestra")
    version = header.pop("format", None)
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        do = "take a newer palaestra" if newer else "record the match again"
        raise ReplayError(f"{path} has format {str(version)[:20]}, this palaestra reads format {FORMAT}: {do}")
    return header


def _check_header(header: dict[str, Any], path: Path) -> None:
    """Whether each entry is of its type and can be printed."""
    wrong = sorted(set(header) ^ set(HEADER))
    for name in set(header) & set(HEADER):
        value = header[name]
        if name in COUNTS:
            fits = type(value) is int and 1 <= value < 2**31
        elif name in NAMES:
            fits = isinstance(value, list) and all(map(_is_text, value))
        elif name in MAPPINGS:
            fits = isinstance(value, dict) and all(map(_is_text, value)) and _fits_mapping(name, value)
        else:
            fits = _is_text(value) and len(value) <= LONGEST_TEXT
        wrong += [] if fits else [name]
    if wrong:
        raise ReplayError(f"{path} is damaged: {', '.join(map(repr, wrong))[:200]} do not fit a replay")


def _fits_mapping(name: str, value: dict[str, Any]) -> bool:
    if name == "players":
        return all(map(_is_text, value.values()))
    if name == "outside":
        return all(isinstance(names, list) and all(map(_is_text, names)) for names in value.values())
    if name == "output_columns":
        return all(isinstance(names, dict) and all(map(_is_output, names.items())) for names in value.values())
    return True


def _is_output(item: tuple[str, Any]) -> bool:
    name, size = item
    return _is_text(name) and type(size) is int and 1 <= size <= MOST_OUTPUTS


def _is_text(value: Any) -> bool:
    """Whether it is a string that a terminal prints as it is."""
    return isinstance(value, str) and value.isprintable()


def _check_matches(rows: np.ndarray, header: dict[str, Any], path: Path) -> None:
    lane, step, winner, reason = rows.T
    inside = (lane >= 0) & (lane < header["num_envs"]) & (step >= 0)
    inside &= (winner >= -1) & (winner < len(header["teams"])) & (reason >= 0) & (reason < len(header["end_reasons"]))
    if not inside.all():
        raise ReplayError(f"{path} is damaged: it lists a match of a lane, winner or end reason that it does not know")


def _check_texts(turns: np.ndarray, steps: int, lanes: int, path: Path) -> None:
    """Whether `Replay.turns` are what they should be."""
    try:
        rows = json.loads(turns.tobytes())
        fits = isinstance(rows, list) and all(
            [type(part) for part in row] == [int, int, int, str] and 0 <= row[0] < steps and 0 <= row[1] < lanes
            for row in rows
        )
    except (ValueError, TypeError, RecursionError):
        fits = False
    if not fits:
        raise ReplayError(f"{path} is damaged: {TEXTS!r} are not what players wrote")


def _checksum(content: Mapping[str, np.ndarray]) -> bytes:
    sha = hashlib.sha256()
    for name in sorted(content):
        sha.update(f"{name} {content[name].dtype.str} {content[name].shape}".encode())
        sha.update(content[name].tobytes())
    return sha.digest()
