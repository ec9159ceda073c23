"""Matches of an evaluation as pieces that any machine can play, and the process that plays them.

A piece is a side and a range of matches. How matches are cut into pieces depends on their number alone, never on how
many processes play: a table is the same whoever has played what.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import __version__, registry
from palaestra.core.compile.identity import rules_digest
from palaestra.core.files import read_limited
from palaestra.core.run.opponents import MOST_POLICY_BYTES, SUFFIXES, FunctionOpponent, OpponentSpec, player_name
from palaestra.evaluation.matches import match_seeds, play_seeds, set_players
from palaestra.game import Row
from palaestra.players.named_players import named_player
from palaestra.scale.cluster import import_ray

FEWEST, MOST, A_SIDE = 25, 512, 8
"""Matches of a piece, at least and at most, and pieces of a side between these bounds: a match takes microseconds to
milliseconds, a piece about two milliseconds of the calling process."""
OF_ENGINES = 8, 64, 32
"""The same where an engine outside moves the bodies, and a match takes about a second."""


class WorkerRefused(RuntimeError):
    """A process of another version than the one that asks, whose results would mean something else."""


@dataclass(frozen=True)
class PolicyFile:
    """The file of a policy as it travels.

    Attributes:
        name: Of the file; its suffix says what it is.
        digest: SHA-256 of its content.
        content: Ray's reference to the bytes, or the bytes.
    """

    name: str
    digest: str
    content: Any = field(repr=False)


@dataclass(frozen=True)
class Job:
    """What two players play; plain data, which every machine understands.

    Attributes:
        id: Registered id.
        row: Arguments that register it where it is not known: factory, family, about, keywords.
        keywords: As for `palaestra.make_batch`.
        players: Two players: the text of a script or of ``module:name``, a `PolicyFile`, or None.
        made_with: Versions and digest of the rules of the process that asks.
        num_envs: Most matches at the same time in a process.
    """

    id: str
    row: tuple[str, str, str, dict[str, Any]]
    keywords: dict[str, Any]
    players: tuple[Any, Any]
    made_with: dict[str, str]
    num_envs: int


@dataclass(frozen=True)
class Piece:
    """A range of the matches of one side.

    Attributes:
        job: Number of the job.
        seed: Number of the run.
        side: Team that the first player plays.
        first: Number of the first match.
        count: How many matches.
    """

    job: int
    seed: int
    side: int
    first: int
    count: int

    def __str__(self) -> str:
        """For messages."""
        return f"matches {self.first} to {self.first + self.count - 1} of side {self.side}"


def pieces_of(job: int, seed: int, counts: Sequence[int], has_engine: bool = False) -> list[Piece]:
    """The pieces of a job.

    Args:
        job: Number of the job.
        seed: Number of the run.
        counts: Matches by side.
        has_engine: Whether an engine outside moves the bodies.
    """
    fewest, most, a_side = OF_ENGINES if has_engine else (FEWEST, MOST, A_SIDE)
    pieces = []
    for side, count in enumerate(counts):
        number = math.ceil(count / min(max(math.ceil(count / a_side), fewest), most))
        size = math.ceil(count / max(number, 1))  # evenly
        pieces += [Piece(job, seed, side, k, min(size, count - k)) for k in range(0, count, size)] if count else []
    return pieces


def row_data(row: Row) -> tuple[str, str, str, dict[str, Any]]:
    """Arguments that register a game in another process.

    Raises:
        ValueError: Its factory has no name that another process could import.
    """
    factory = row.factory if isinstance(row.factory, str) else _import_name(row.factory)
    if factory is None:
        raise ValueError(
            f"{row.id}: other machines cannot import the function that makes it: put it at the top level of a module "
            'of its own, and register it as "module:function"'
        )
    return factory, row.family, row.about, dict(row.kwargs)


def _import_name(value: Any) -> str | None:
    """``module:name`` of what stands at the top level of a module that others can import, else None."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if module in (None, "__main__") or not name.isidentifier():
        return None
    return f"{module}:{name}" if getattr(importlib.import_module(module), name, None) is value else None


def travelling(player: OpponentSpec, put: Callable[[bytes], Any]) -> Any:
    """A player as it travels: a text, a `PolicyFile`, or None.

    Args:
        player: As for `palaestra.evaluation.evaluate`.
        put: Stores bytes where all machines can read them, and returns a reference.

    Raises:
        TypeError: An object, which would have to be pickled.
        ValueError: The file of a policy that holds names of other files.
        OSError: No such file.
    """
    if player is None:
        return None
    if isinstance(player, str | Path):
        suffix = Path(player).suffix.lower()
        if suffix == ".json":
            raise ValueError(f"{player}: a pool names files of this machine: let its members play, each by its file")
        if suffix not in SUFFIXES:
            return str(player)
        content = read_limited(player, MOST_POLICY_BYTES)
        return PolicyFile(Path(player).name, hashlib.sha256(content).hexdigest(), put(content))
    name = _import_name(player.function if isinstance(player, FunctionOpponent) else player)
    if name is None:
        raise TypeError(
            f"the player {player_name(player)} is an object of this process: other machines can be given a script, the "
            "file of a policy, or what stands at the top level of a module"
        )
    return name


def made_with(id: str, keywords: Mapping[str, Any]) -> dict[str, str]:
    """Versions and digest of the rules: what must be the same in all processes that play for one table."""
    game, _ = registry.make_game(id, **keywords)
    versions = {"palaestra": __version__, "NumPy": np.__version__, f"the rules of {id}": rules_digest(game)}
    return versions if game.engine_version is None else {**versions, "the engine": game.engine_version()}


def check_made_with(wanted: Mapping[str, str], id: str, keywords: Mapping[str, Any]) -> None:
    """Compares this process with the one that asks.

    Raises:
        WorkerRefused: They differ; names both.
    """
    here = made_with(id, keywords)
    for name, version in wanted.items():
        if here.get(name) != version:
            raise WorkerRefused(
                f"a worker of the cluster is refused: {name} there: {here.get(name)}, here: {version}; install the "
                "same on all machines"
            )


def accept(
    id: str, row: tuple[str, str, str, dict[str, Any]], wanted: Mapping[str, str], keywords: Mapping[str, Any]
) -> None:
    """Registers a game that this process does not know, and compares it with that of the process that asks.

    Args:
        id: Registered id.
        row: See `row_data`.
        wanted: See `made_with`.
        keywords: As for `palaestra.make_batch`.

    Raises:
        WorkerRefused: See `check_made_with`.
    """
    if id not in registry.ROWS:
        factory, family, about, kwargs = row
        registry.register(id, factory, family=family, about=about, **kwargs)
    check_made_with(wanted, id, keywords)


# ------------------------------------------------------------------------------------------ in the process that plays


_sims: dict[Any, Any] = {}
"""The last simulation of this process, by what made it: pieces of one job follow each other."""


def play_piece(jobs: Sequence[Job], piece: Piece) -> np.ndarray:
    """The results of a piece, one `palaestra.evaluation.matches.MATCH` record a match.

    Raises:
        WorkerRefused: This process has other versions or other rules.
        Exception: Whatever rules and players raise.
    """
    job = jobs[piece.job]
    key = (piece.job, piece.side, min(job.num_envs, piece.count), repr(job))
    if key not in _sims:
        for sim in _sims.values():
            sim.close()
        _sims.clear()
        _sims[key] = _simulation(job, piece)
    sim = _sims[key]
    seeds = match_seeds(piece.seed, range(piece.first, piece.first + piece.count))
    return play_seeds(sim, seeds, piece.side)


def prepare(jobs: Sequence[Job], number: int) -> None:
    """Makes a job known to this process and compiles its game, if that is needed."""
    _simulation(jobs[number], Piece(number, 0, 0, 0, 1)).close()


def _simulation(job: Job, piece: Piece) -> Any:
    accept(job.id, job.row, job.made_with, job.keywords)
    sim = registry.make_batch(job.id, min(job.num_envs, piece.count), autoreset_mode="off", **job.keywords)
    with arrived(job.players) as players:
        set_players(sim, piece.side, *players)
    return sim


@contextlib.contextmanager
def arrived(travelled: Sequence[Any]) -> Iterator[list[Any]]:
    """Players that travelled as data. Files of policies lie on this machine's disk within the block alone.

    So whoever is killed later, as processes of a cluster are, leaves none behind.
    """
    with tempfile.TemporaryDirectory(prefix="palaestra-policy-") as folder:
        yield [_arrived(player, Path(folder, str(number))) for number, player in enumerate(travelled)]


def _arrived(travelled: Any, folder: Path) -> Any:
    if not isinstance(travelled, PolicyFile):
        return named_player(travelled) if isinstance(travelled, str) else travelled
    content = travelled.content
    if not isinstance(content, bytes):
        content = import_ray().get(content)
    folder.mkdir()
    path = folder / travelled.name
    path.write_bytes(content)
    return path
