"""Makes data sets: matches of named players, each under a seed of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import __version__, registry
from palaestra.core.contract.keywords import check_count
from palaestra.core.run.opponents import MOST_POLICY_BYTES, SUFFIXES, OpponentSpec, player_name
from palaestra.data.data_manifest import DataError, Manifest, file_digest, read_manifest, recorded_keywords, rules_of
from palaestra.data.data_parts import Parts
from palaestra.data.episode_rows import INFO, NO_TASK, EpisodeRows
from palaestra.evaluation.matches import match_seeds
from palaestra.game import Game
from palaestra.replay.provenance import engine_key

NAME = re.compile(r"[A-Za-z0-9_][-\w]{0,99}-v\d{1,6}", re.ASCII)
"""Names that Minari takes, without a folder before them."""
MOST_EPISODES, PART_BYTES = 256, 2**25
"""Episodes of a part, and bytes if all of them last as long as they can: what memory needs does not grow with N."""
Progress = Callable[[int, int], Any]


def make_data(
    id: str,
    policy: OpponentSpec,
    path: str | Path,
    *,
    episodes: int,
    seed: int = 0,
    each_task: Sequence[int] | str | None = None,
    team: str | None = None,
    opponent: OpponentSpec = None,
    infos: Sequence[str] = (),
    num_envs: int = 64,
    progress: Progress | None = None,
    **keywords: Any,
) -> Manifest:
    """Records matches of one team as a data set; the same call goes on where an earlier one was killed.

    Match k has seed ``(seed << 32) + k``, with k counting through the tasks one after the other. So the files have the
    same bytes whatever ``num_envs`` is, for scripts; a network may round differently in a batch of another size.

    Args:
        id: Registered id.
        policy: Player of the recorded team: a script, ``"random"``, the file of a policy, or what else
            `palaestra.evaluation.evaluate` takes.
        path: Folder to make; its name is the data set's in Minari: ``NAME-v0``.
        episodes: Number of matches; of each task, with ``each_task``.
        seed: Number of the run, in [0, 2**32). Evaluations have run 2**31.
        each_task: For games with a keyword ``task``: its values; each plays ``episodes`` matches. A word such as
            ``"train"`` stands for the keyword ``tasks`` and all tasks that it names.
        team: Recorded team; may be left out where there is one.
        opponent: Player of the other teams; the game's default opponent if None.
        infos: Fields of ``sim.info`` to keep.
        num_envs: Matches at the same time.
        progress: Called with the numbers of finished and of all episodes.
        **keywords: As for `palaestra.make_batch`.

    Returns:
        The manifest.

    Raises:
        DataError: The folder is there already and holds something else, or has no name for Minari.
        ValueError: No such team, player, task or info, or a game whose observations or actions are no flat vectors.
        ImportError: Minari is not installed; names the extra.
    """
    check_count("episodes", episodes, 1, 2**32 - 1)
    check_count("num_envs", num_envs, 1, 2**20)
    check_count("seed", seed, 0, 2**32 - 1)
    for name in ("autoreset_mode", "opponents", "mates", "control"):
        if name in keywords:
            raise TypeError(f"{name}= makes no sense here: the players are policy and opponent, the team is team=")
    if isinstance(each_task, str):
        keywords = {**keywords, "tasks": each_task}
        each_task = named_tasks(id, keywords)
    tasks = [NO_TASK] if each_task is None else [int(task) for task in each_task]
    if not tasks or len(set(tasks)) < len(tasks):
        raise ValueError(f"each_task must be one or more numbers, each once, got {tasks}")

    def lanes_of(task: int, lanes: int) -> EpisodeRows:
        own = {} if task == NO_TASK else {"task": task}
        sim = registry.make_batch(id, lanes, autoreset_mode="off", **keywords, **own)
        rows = EpisodeRows(sim, team, infos)
        for name in sim.game.teams:
            sim.set_opponent(name, policy if name == rows.team else others(sim.game))
        return rows

    def others(game: Game) -> OpponentSpec:
        return game.default_opponent if opponent is None else opponent

    rows = lanes_of(tasks[0], 1)
    players = dict.fromkeys(rows.sim.game.teams, others(rows.sim.game)) | {rows.team: policy}
    recipe = {"episodes": episodes, "seed": seed, "each_task": None if each_task is None else tasks}
    plan = plan_of(path, rows, players, recipe)
    if Path(path).exists() and read_manifest(path).same_plan(plan):
        return read_manifest(path)
    parts, size, playing = Parts(path, plan, rows, goes_on=True), part_size(rows), None
    pieces = [(task, n, k) for n, task in enumerate(tasks) for k in range(0, episodes, size)]
    try:
        for part, (task, number, k) in enumerate(pieces):
            if parts.has(part):
                continue
            if task != playing:
                rows.sim.close()
                rows, playing = lanes_of(task, min(num_envs, size, episodes)), task
            first = number * episodes + k
            seeds = match_seeds(seed, range(first, first + min(size, episodes - k)))
            parts.add(part, play_episodes(rows, seeds, task))
            if progress is not None:
                progress(parts.episodes, episodes * len(tasks))
    finally:
        rows.sim.close()
        if not parts.episodes:
            parts.close()
    return parts.finish()


def play_episodes(rows: EpisodeRows, seeds: np.ndarray, task: int) -> list[np.ndarray]:
    """Plays matches to their ends, one a seed: lane i those of the seeds i, i + N, i + 2 N, ...

    Args:
        rows: Of lanes in ``autoreset_mode="off"``, with players.
        seeds: uint64.
        task: Number of the task, or `NO_TASK`.

    Returns:
        Rows of the episodes, in the order of their ends.
    """
    sim, count = rows.sim, len(seeds)
    match_of_lane = np.arange(sim.num_envs)
    sim.reset(seed=seeds[np.minimum(match_of_lane, count - 1)])
    rows.begin(match_of_lane[:count], 0, task)
    episodes: list[np.ndarray] = []
    while len(episodes) < count:
        running = rows.running
        sim.step()
        episodes += rows.add_decision(running)
        over = running[(sim.terminated | sim.truncated)[running]]
        match_of_lane[over] += sim.num_envs
        again = np.zeros(sim.num_envs, np.bool_)
        again[over] = match_of_lane[over] < count
        if again.any():
            sim.reset(again, seed=seeds[np.minimum(match_of_lane, count - 1)])
            rows.begin(np.flatnonzero(again), 0, task)
    return episodes


def named_tasks(id: str, keywords: Mapping[str, Any]) -> list[int] | None:
    """The values that the parameter ``task`` has under these keywords; None where the game does not list them."""
    rules = {name: value for name, value in keywords.items() if name not in registry.SIMULATION_KEYWORDS}
    parameters = registry.make_game(id, **rules)[0].parameters
    return [int(n) for parameter in parameters if parameter.name == "task" for n in parameter.values if n >= 0] or None


def part_size(rows: EpisodeRows) -> int:
    """Episodes of a part: so few that all of them, as long as they can be, fit `PART_BYTES`."""
    longest = int(rows.sim.parameters["horizon"].max()) + 1
    return int(np.clip(PART_BYTES // (longest * rows.dtype.itemsize), 1, MOST_EPISODES))


def plan_of(
    path: str | Path, rows: EpisodeRows, players: Mapping[str, OpponentSpec], recipe: Mapping[str, Any]
) -> Manifest:
    """The manifest of a data set that is to be made, without episodes.

    Args:
        path: Folder to make.
        rows: What is recorded.
        players: Player of each team.
        recipe: See `Manifest`.

    Raises:
        DataError: Minari takes no such name, or the simulation was made by hand.
        FileError: A keyword that no file can hold.
    """
    sim, name = rows.sim, Path(path).name
    if NAME.fullmatch(name) is None:
        raise DataError(path, "the folder's name is that of the data set in Minari: write NAME-v0")
    if sim.origin is None:
        raise DataError(path, "this simulation was made by hand: make it by palaestra.make_batch, which knows its id")
    id, given = sim.origin
    tasks = recipe.get("each_task")
    given = {key: value for key, value in given.items() if tasks is None or key != "task"}
    columns = {"observations": "observation", "actions": "action", "rewards": "reward"}
    columns |= {f"infos/{name.removeprefix(INFO)}": name for name in rows.dtype.names or () if name.startswith(INFO)}
    kinds = {key: rows.dtype[column] for key, column in columns.items()}
    return Manifest(
        name=name,
        id=id,
        keywords=(keywords := recorded_keywords(id, given)),
        team=rows.team,
        players={team: _player_text(player) for team, player in players.items()},
        recipe=dict(recipe),
        rules=rules_of(id, keywords, tasks),
        engine=engine_key(sim.game),
        palaestra=__version__,
        arrays={key: [kind.base.str, list(kind.shape)] for key, kind in kinds.items()},
    )


def _player_text(player: OpponentSpec) -> str:
    """Name of a player, and of the file of a policy its digest: another policy makes another data set."""
    name = player_name(player)
    if not isinstance(player, str | Path) or Path(player).suffix.lower() not in SUFFIXES or not Path(player).is_file():
        return name
    return f"{name}, SHA-256 {file_digest(Path(player), MOST_POLICY_BYTES)}"
