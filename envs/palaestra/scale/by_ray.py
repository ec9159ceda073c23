"""Evaluations and tournaments on Ray: the tables of `palaestra.evaluation`, to the bit, by many processes.

Example::

    from palaestra import scale

    print(scale.evaluate("palaestra/TeamPong-v0", "tracker", "chaser", matches=100_000, actors=16))
    print(scale.tournament("palaestra/TeamPong-v0", ["tracker", "chaser", "random"], address="auto"))
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.run.opponents import OpponentSpec
from palaestra.evaluation.by_id import named_players
from palaestra.evaluation.matches import (
    EVALUATION_RUN,
    MatchTable,
    Tournament,
    matches_by_side,
    names_of,
    pairs_of,
    play_tournament,
    table_of,
    without_shaping,
)
from palaestra.game import Game
from palaestra.players.named_players import named_player
from palaestra.scale.cluster import RayTasks, connected
from palaestra.scale.pieces import Job, made_with, pieces_of, play_piece, prepare, row_data, travelling
from palaestra.scale.saved import SavedResults
from palaestra.scale.tasks import work_off
from palaestra.wrappers.transcript import text_keywords

AHEAD = 2
"""Pieces that wait where all processors play: no process waits for its next piece."""
Progress = Callable[[int, int, str], Any]
"""``progress(done, total, note)``: matches, and in words pieces given out to processes and processes lost."""


def evaluate(
    id: str,
    a: OpponentSpec,
    b: OpponentSpec = None,
    *,
    matches: int = 64,
    seed: int = EVALUATION_RUN,
    swap: bool | None = None,
    num_envs: int = 64,
    names: tuple[str, str | None] | None = None,
    progress: Progress | None = None,
    address: str | None = None,
    actors: int | None = None,
    results: str | Path | None = None,
    **keywords: Any,
) -> MatchTable:
    """The table of `palaestra.evaluation.evaluate`, played by processes of a Ray cluster.

    Match k has the same seed whoever plays it, so the table is that of one process, to the bit (where a player is a
    network, up to the rounding of batches of other sizes). Matches of a process that dies are played again, each counts
    once. What is interrupted leaves its finished matches in a file, from which the same call goes on.

    Args:
        id: Registered id. Other machines import the module of its factory.
        a: First player: its wins and returns are counted. A script, the file of a policy, or what stands at the top
            level of a module, as ``"module:name"`` or itself.
        b: Second player.
        matches: Number of matches.
        seed: Number of the run.
        swap: As for `palaestra.evaluation.evaluate`.
        num_envs: Matches at the same time in a process.
        names: What to call the players.
        progress: Called at least every second with the numbers of finished and of all matches, and what the processes
            do.
        address: Of a Ray cluster (``"auto"``, ``"ip:6379"``); None or ``"local"`` starts one here and ends it.
        actors: Most processes that play; None for as many as there are processors.
        results: File of finished matches, read where it exists and deleted at the end. None for one in
            ``runs/scale`` under a name that says what is played.
        **keywords: The game's own, as for `palaestra.make_batch`.

    Raises:
        ImportError: Ray is not installed.
        ConnectionError: There is no cluster at the address.
        WorkerRefused: A machine has another version of palaestra, of NumPy, or other rules.
        TypeError: A player that cannot travel, or an unknown keyword.
        ValueError: As for `palaestra.evaluation.evaluate`.
    """
    names = names_of(names, a, b)
    match = _Match(id, (a, b), text_keywords(id, keywords, (a, b)), matches, seed, swap)
    ((game, parts),) = _play([match], num_envs, address, actors, results, progress)
    return table_of(id, game, names, parts)


def tournament(
    id: str,
    players: Mapping[str, OpponentSpec] | Sequence[OpponentSpec],
    *,
    matches: int = 64,
    anchors: Mapping[str, float] | None = None,
    seed: int = EVALUATION_RUN,
    swap: bool | None = None,
    num_envs: int = 64,
    progress: Progress | None = None,
    address: str | None = None,
    actors: int | None = None,
    results: str | Path | None = None,
    **keywords: Any,
) -> Tournament:
    """The tournament of `palaestra.evaluation.tournament`, all pairs at once; arguments as for `evaluate`.

    Args:
        id: Registered id of a game with two teams.
        players: Players by name, or a list of players with names of their own.
        matches: Matches of each pair.
        anchors: Elo of some players, which stays; without any the mean is 0.
        seed: As for `evaluate`.
        swap: As for `evaluate`.
        num_envs: As for `evaluate`.
        progress: As for `evaluate`.
        address: As for `evaluate`.
        actors: As for `evaluate`.
        results: As for `evaluate`.
        **keywords: As for `evaluate`.

    Raises:
        ValueError: Fewer than two players, two of the same name, or an anchor that is none of them.
        Exception: As for `evaluate`.
    """
    players = named_players(players)
    pairs, keywords = pairs_of(players, anchors), text_keywords(id, keywords, players.values())
    jobs = [_Match(id, (players[a], players[b]), keywords, matches, seed, swap) for a, b in pairs]
    played = _play(jobs, num_envs, address, actors, results, progress)
    tables = {pair: table_of(id, game, pair, parts) for pair, (game, parts) in zip(pairs, played, strict=True)}
    return play_tournament(players, lambda a, b, _: tables[a, b], matches, anchors)


@dataclass(frozen=True)
class _Match:
    """What two players play, as the caller says it."""

    id: str
    players: tuple[OpponentSpec, OpponentSpec]
    keywords: dict[str, Any]
    matches: int
    seed: int
    swap: bool | None


def _play(
    given: Sequence[_Match],
    num_envs: int,
    address: str | None,
    actors: int | None,
    file: str | Path | None,
    progress: Progress | None,
) -> list[tuple[Game, list[np.ndarray]]]:
    """Rules and results of each job, in parts."""
    actors = (os.cpu_count() or 1) if actors is None and address in (None, "local") else actors
    if num_envs < 1 or (actors is not None and actors < 1):
        raise ValueError(f"num_envs and actors must be at least 1, got {num_envs} and {actors}")
    games, pieces = [], []
    for number, match in enumerate(given):
        if "mates" in match.keywords:
            raise TypeError("mates= are played by one machine alone: leave the cluster out")
        for name in ("autoreset_mode", "opponents", "opponent", "control", "workers", "threads"):
            if name in match.keywords:
                raise TypeError(f"{name}= makes no sense here: the players are a and b, the processes are actors=")
        game, _ = registry.make_game(match.id, **match.keywords)
        match.keywords.update(without_shaping(game, match.keywords))
        counts = matches_by_side(match.id, game, *match.players, match.matches, match.seed, match.swap)
        _try_players(match)
        games.append(game)
        pieces += pieces_of(number, match.seed, counts, game.physics is not None)
    stored: dict[bytes, Any] = {}
    local = [_job(match, num_envs, lambda content: stored.setdefault(content, content)) for match in given]
    saved = SavedResults(file, local, pieces)
    with connected(address, actors or 1) as ray, saved:
        references = {content: ray.put(content) for content in stored}
        jobs = [_job(match, num_envs, lambda content: references[content]) for match in given]
        if saved.missing:
            most = actors or max(1, int(ray.cluster_resources().get("CPU", 1)))
            _play_missing(ray, jobs, saved, min(most, len(saved.missing)), progress)
        return [(game, saved.parts(number)) for number, game in enumerate(games)]


def _play_missing(ray: Any, jobs: list[Job], saved: SavedResults, processes: int, progress: Progress | None) -> None:
    """Plays what is not saved yet."""
    total = sum(piece.count for piece in saved.pieces)
    note = [""]

    def tell() -> None:
        if progress is not None:
            progress(saved.matches, total, note[0])

    def report(done: int, running: int, losses: int) -> None:
        note[0] = f"{running} pieces given out" + (f", {losses} lost and replaced" if losses else "")
        tell()

    began = time.monotonic()
    for _ in work_off(RayTasks(ray, prepare, jobs), [0] * processes, processes):
        pass
    if os.environ.get("PALAESTRA_VERBOSE") != "0":
        ready_s = time.monotonic() - began
        print(f"palaestra: {processes} processes ready after {ready_s:.1f} s", file=sys.stderr, flush=True)
    missing = saved.missing
    tasks = RayTasks(ray, play_piece, jobs)
    if processes >= ray.cluster_resources().get("CPU", 0):
        processes += AHEAD
    for number, results in work_off(tasks, [saved.pieces[k] for k in missing], processes, report):
        saved.add(missing[number], results)
        tell()


def _try_players(match: _Match) -> None:
    """Lets the players take their teams here, so that what is wrong with one is said before a cluster is asked."""
    sim = registry.make_batch(match.id, 1, autoreset_mode="off", **match.keywords)
    try:
        for team, player in zip(sim.game.teams, match.players, strict=False):
            sim.set_opponent(team, named_player(player) if isinstance(player, str) else player)
    finally:
        sim.close()


def _job(match: _Match, num_envs: int, put: Callable[[bytes], Any]) -> Job:
    a, b = (travelling(player, put) for player in match.players)
    versions = made_with(match.id, match.keywords)
    return Job(match.id, row_data(registry.row(match.id)), match.keywords, (a, b), versions, num_envs)
