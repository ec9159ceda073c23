"""Makes data sets: matches of named players, each under a seed of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import __version__, registry
from palaestra.core.contract.file_keywords import plain_keywords
from palaestra.core.contract.keywords import check_count
from palaestra.core.run.opponents import MOST_POLICY_BYTES, SUFFIXES, OpponentSpec, player_name
from palaestra.data.data_manifest import DataError, Manifest, file_digest, read_manifest, rules_of
from palaestra.data.data_parts import Parts
from palaestra.data.episode_rows import INFO, NO_TASK, EpisodeRows
from palaestra.evaluation.matches import match_seeds
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
    if isinstance(each_task, str):
        keywords = {**keywords, "tasks": each_task}
        each_task = named_tasks(id, keywords)
    tasks = None if each_task is None else [int(task) for task in each_task]
    if tasks is not None and (not tasks or len(set(tasks)) < len(tasks)):
        raise ValueError(f"each_task must be one or more numbers, each once, got {tasks}")
    refuse_face_keywords(keywords)
    cells: Sequence[int | None] = [None] if tasks is None else tasks

    def lanes_of(task: int | None, lanes: int) -> EpisodeRows:
        own = {} if task is None else {"task": task}
        sim = registry.make_batch(id, lanes, autoreset_mode="off", **keywords, **own)
        rows = EpisodeRows(sim, team, infos)
        for name in sim.game.teams:
            others = sim.game.default_opponent if opponent is None else opponent
            sim.set_opponent(name, policy if name == rows.team else others)
        return rows

    rows = lanes_of(cells[0], 1)
    others = rows.sim.game.default_opponent if opponent is None else opponent
    players = dict.fromkeys(rows.sim.game.teams, others) | {rows.team: policy}
    plan = plan_of(path, rows, players, seed, tasks)
    if Path(path).exists() and read_manifest(path).same_plan(plan):
        return read_manifest(path)
    parts, size = Parts(path, plan, rows, goes_on=True), part_size(rows)
    chunks = [range(k, min(k + size, episodes)) for k in range(0, episodes, size)]
    try:
        for number, task in enumerate(cells):
            missing = [k for k in range(len(chunks)) if not parts.has(number * len(chunks) + k)]
            rows.sim.close()
            rows = lanes_of(task, min(num_envs, size, episodes)) if missing else rows
            for k in missing:
                first = number * episodes + chunks[k].start
                seeds = match_seeds(seed, range(first, first + len(chunks[k])))
                parts.add(number * len(chunks) + k, play_episodes(rows, seeds, NO_TASK if task is None else task))
                if progress is not None:
                    progress(parts.episodes, episodes * len(cells))
    finally:
        rows.sim.close()
        if not parts.episodes:
            parts.close()
    return parts.finish()


def play_episodes(rows: EpisodeRows, seeds: np.ndarray, task: int = NO_TASK) -> list[np.ndarray]:
    """Plays matches to their ends, one a seed: lane i those of the seeds i, i + N, i + 2 N, ...

    Args:
        rows: Of lanes in ``autoreset_mode="off"``, with players.
        seeds: uint64.
        task: What the episodes say, if the simulation does not.

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
    parameters = {parameter.name: parameter for parameter in registry.make_game(id, **rules)[0].parameters}
    values = getattr(parameters.get("task"), "values", ())
    return [int(value) for value in values if value >= 0] or None


def part_size(rows: EpisodeRows) -> int:
    """Episodes of a part: so few that all of them, as long as they can be, fit `PART_BYTES`."""
    longest = int(rows.sim.parameters["horizon"].max()) + 1
    return int(np.clip(PART_BYTES // (longest * rows.dtype.itemsize), 1, MOST_EPISODES))


def plan_of(
    path: str | Path,
    rows: EpisodeRows,
    players: Mapping[str, OpponentSpec],
    seed: int | None = None,
    tasks: Sequence[int] | None = None,
) -> Manifest:
    """The manifest of a data set that is to be made, without episodes; arguments as for `make_data`.

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
    given = {key: value for key, value in given.items() if tasks is None or key != "task"}
    keywords = plain_keywords(registry.held_keywords(id, given), id)
    arrays = {"observations": "observation", "actions": "action", "rewards": "reward"}
    arrays |= {f"infos/{name.removeprefix(INFO)}": name for name in rows.dtype.names or () if INFO in name}
    kinds = {key: rows.dtype[column] for key, column in arrays.items()}
    return Manifest(
        name=name,
        id=id,
        keywords=keywords,
        team=rows.team,
        players={team: player_name(player) for team, player in players.items()},
        policies={team: digest for team, player in players.items() if (digest := _policy_digest(player))},
        seed=seed,
        task_list=tasks,
        infos=[key.removeprefix("infos/") for key in kinds if "/" in key],
        rules=rules_of(id, keywords, tasks),
        engine=engine_key(sim.game),
        palaestra=__version__,
        arrays={key: [kind.base.str, list(kind.shape)] for key, kind in kinds.items()},
        files={},
        seeds=[],
        matches=[],
        tasks=[],
        steps=[],
    )


def refuse_face_keywords(keywords: Mapping[str, Any]) -> None:
    """Refuses keywords that `make_data` sets itself.

    Raises:
        TypeError: Names it and what to write.
    """
    for name in ("autoreset_mode", "opponents", "control"):
        if name in keywords:
            raise TypeError(f"{name}= makes no sense here: the players are policy and opponent, the team is team=")


def _policy_digest(player: OpponentSpec) -> str | None:
    """SHA-256 of the file of a policy; None for other players."""
    if not isinstance(player, str | Path) or Path(player).suffix.lower() not in SUFFIXES or not Path(player).is_file():
        return None
    return file_digest(Path(player), MOST_POLICY_BYTES)
