"""A lane is a match of its own: seeds, batch sizes, threads, processes and faces do not change it bitwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.fields import values_of
from palaestra.testing.drivers import Driver, EnvDriver, ParallelDriver, VectorDriver, drivers
from palaestra.testing.harness import PRESET, Skipped, conformance, require
from palaestra.testing.players import Player, lane_of
from palaestra.testing.snapshot_view import difference, rows_of, snapshot_view, unlike
from palaestra.testing.subject import Subject

SEED = 20
SHORT = 7
"""Horizon of matches that should end and start often."""


def compare_with_singles(subject: Subject, seed: int, rounds: Any, **options: Any) -> int:
    """Plays N lanes and N simulations of one lane side by side. Returns the lane-steps played."""
    n = 3 if subject.is_engine_game else 5
    whole = subject.batch(n, **options)
    singles = [subject.batch(1, **options) for _ in range(n)]
    players = [Player(whole), *(Player(s) for s in singles)]
    whole.reset(seed=seed)
    for lane, single in enumerate(singles):
        single.reset(seed=seed + lane)
    steps = 0
    for number in rounds:
        shown = snapshot_view(whole)
        for lane, single in enumerate(singles):
            found = difference(subject.game, rows_of(shown, slice(lane, lane + 1)), snapshot_view(single), lane)
            require(not found, f"{found} (in a batch of {n} and alone) after {number} steps, seed {seed}, {options}")
        for sim, player in zip((whole, *singles), players, strict=True):
            player.play(sim)
            sim.step()
        steps += n
    return steps


@conformance(order=201)
def lanes_equal_single_envs(subject: Subject) -> None:
    """Lane i of N lanes seeded s is bitwise the single simulation seeded s + i, through resets and against scripts."""
    first = next(iter(subject.game.teams))
    steps = compare_with_singles(subject, SEED, subject.rounds(20, 80, 2000))
    steps += compare_with_singles(subject, SEED + 50, subject.rounds(16, 40, 1000), horizon=SHORT)
    if subject.opponents(first):
        opponents = subject.opponents(first)
        steps += compare_with_singles(
            subject, SEED, subject.rounds(20, 60, 2000), opponents=opponents, horizon=3 * SHORT
        )
    subject.note(f"{steps} lane-steps")


def play_alike(one: Driver, other: Driver, rounds: Any, what: str) -> int:
    """Plays two runs decision by decision and demands the same results. Returns the decisions played."""
    found = unlike(one.start(), other.start())
    require(not found, f"{one.name}, first reset, {what}: {found}")
    played = 0
    for number in rounds:
        found = unlike(one.play(), other.play())
        require(not found, f"{one.name}, decision {number}, {what}: {found}")
        played += 1
    return played


@conformance(order=202)
def same_seed_same_matches(subject: Subject) -> None:
    """Two faces of the same seed return the same through 500 decisions and the resets between, every one of them.

    PettingZoo's own parallel_seed_test stops after one step: it takes the keys of a dict for its values.
    """
    played = 0
    for one, other in zip(drivers(subject, SEED), drivers(subject, SEED), strict=True):
        most = 500 if isinstance(one, ParallelDriver) else 150
        played += play_alike(one, other, subject.rounds(40, most, 2000), f"two with seed {SEED}")
    subject.note(f"{played} decisions on four faces")


@conformance(order=203)
def seeding_resets_history(subject: Subject) -> None:
    """A reset with a seed starts the same match whatever was played before."""
    for used, fresh in zip(drivers(subject, SEED), drivers(subject, SEED), strict=True):
        used.start(seed=SEED + 999)
        for _ in range(12):
            used.play()
        play_alike(used, fresh, subject.rounds(12, 30, 300), f"one had played seed {SEED + 999} before")


@conformance(order=204, levels=PRESET)
def faces_agree(subject: Subject) -> None:
    """Env, VectorEnv and ParallelEnv show what the batch holds, field by field, agent by agent, masks included."""
    control = subject.keywords.get("control")
    teams = [control] if control else list(subject.game.teams)
    made: list[Driver] = [ParallelDriver(subject.parallel(observation=subject.shown("dict")), SEED)]
    for team in teams:
        made.append(EnvDriver(subject.env(observation=subject.shown("dict"), control=team), SEED))
        made.append(
            VectorDriver(subject.vec(3, observation=subject.shown("dict"), control=team, autoreset_mode="off"), SEED)
        )
    for driver in made:
        driver.start()
        for number in subject.rounds(10, 40, 400):
            expected = driver.face.sim
            result = driver.play()
            if len(result) != 5:  # a reset
                continue
            for agent, agent_io, given, lane in _views(driver, result):
                place = f"{driver.name}, decision {number}, lane {lane}, {agent}"
                _compare_view(subject, expected, agent, agent_io, given, lane, place)


def _views(driver: Driver, result: Any) -> list[tuple[str, Any, tuple[Any, float, bool, Any], int]]:
    """(agent or team, its `AgentIO`, (observation, reward, over, info), lane) of everything in a step's result."""
    observations, rewards, terminations, truncations, infos = result
    face = driver.face
    if isinstance(driver, ParallelDriver):
        over = {a: terminations[a] or truncations[a] for a in observations}
        each = [(a, (observations[a], rewards[a], over[a], infos[a])) for a in sorted(observations)]
        return [(a, face.agent_ios[a], given, 0) for a, given in each]
    team = face.control
    if isinstance(driver, EnvDriver):
        return [(team, face.agent_io, (observations, rewards, terminations or truncations, infos), 0)]
    over = terminations | truncations
    masks = {name: infos[name] for name in ("action_mask", "candidates") if name in infos}
    lanes = range(face.num_envs)
    return [(team, face.agent_io, (lane_of(observations, i), rewards[i], over[i], lane_of(masks, i)), i) for i in lanes]


def _compare_view(subject: Subject, sim: Any, agent: str, agent_io: Any, given: tuple, lane: int, place: str) -> None:
    game = subject.game
    slots = game.teams.get(agent) or (game.agents.index(agent),)
    observation, reward, over, info = given
    expected = float(sim.rewards[lane, list(slots)].sum() if game.reward == "agent" else sim.rewards[lane, slots[0]])
    require(float(reward) == expected, f"{place}: reward {reward} but {expected} in the batch")
    match_over = bool(sim.terminated[lane] or sim.truncated[lane])
    left = agent not in game.teams and bool(sim.agent_terminated[lane, slots[0]])
    require(bool(over) == (match_over or left), f"{place}: over is {over} but {match_over or left} in the batch")
    masks = info or {}
    if agent_io.mask_mode == "obs":
        masks, observation = observation, observation["observation"]
    if agent_io.mask_mode is not None:
        _compare_masks(sim, slots, lane, masks, place)
    for field, shown, true in _fields(sim, slots, lane, observation):
        found = unlike(np.asarray(shown), true)
        require(not found, f"{place}: observation {field}{found} in the batch")


def _compare_masks(sim: Any, slots: tuple[int, ...], lane: int, shown: Any, place: str) -> None:
    """Masks and lists of candidates at a face against those of the batch."""
    roles = [sim.game.role_of(slot)[0].name for slot in slots]
    flags, ids = [], []
    for slot, role in zip(slots, roles, strict=True):
        for number in range(sim.action_table.first_word[slot], sim.action_table.first_word[slot + 1]):
            word, row = sim.action_table.words[number], sim.buffers.mask_bytes[lane : lane + 1]
            names = {sim.action_table.names[number].partition("[")[0], *([role] if len(set(roles)) > 1 else [])}
            if word["candidates"]:
                ids.append((names, sim.action_table.listed(row, number)[0][0]))
            elif word["n"]:
                flags.append((names, row[0, word["mask_offset"] : word["mask_offset"] + word["n"]]))
    for name, parts in (("action_mask", flags), ("candidates", ids)):
        leaves = list(_mask_leaves(shown.get(name)))
        count, wanted = sum(leaf.size for _, leaf in leaves), sum(part.size for _, part in parts)
        require(count == wanted, f"{place}: {name} has {count} entries, in the batch {wanted}")
        for path, leaf in leaves:
            true = np.concatenate([part for names, part in parts if set(path) <= names])
            same = np.array_equal(leaf, true)
            require(same, f"{place}: {' '.join((name, *path))} is {leaf.tolist()}, in the batch {true.tolist()}")


def _mask_leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """The arrays of masks as a face shows them, by names of roles and choices; those of several slots as one."""
    if isinstance(tree, Mapping):
        for name, part in tree.items():
            yield from _mask_leaves(part, (*path, name))
    elif tree is not None:
        parts = [np.asarray(part).ravel() for part in (tree if isinstance(tree, tuple) else (tree,))]
        yield path, np.concatenate(parts)


def _fields(sim: Any, slots: tuple[int, ...], lane: int, observation: Any) -> list[tuple[str, Any, np.ndarray]]:
    """(name, value at the face, value in the batch) of every field of the slots' observation."""
    game, memory = sim.game, sim.buffers.observations
    members: dict[str, list[int]] = {}
    for slot in slots:
        role, index = game.role_of(slot)
        members.setdefault(role.name, []).append(index)
    fields = []
    for role in game.roles:
        if role.name in members:
            rows = members[role.name]
            own = observation[role.name] if len(members) > 1 else observation
            for f in role.observation:
                true = values_of(memory[role.name], f)[lane, rows[0] if len(rows) == 1 else rows]
                fields.append((f.name, own[f.name], np.atleast_1d(true)))
    team = int(game.team_index[slots[0]])
    shared = {f.name: values_of(memory["team"], f)[lane, team] for f in game.team_observation}
    for f in game.lane_observation:
        own = sim.world_observations[f.name] if f.world is not None else values_of(memory["lane"], f)
        shared[f.name] = own[lane]
    return fields + [(name, observation[name], np.atleast_1d(true)) for name, true in shared.items()]


@conformance(order=205)
def threads_do_not_change_results(subject: Subject) -> None:
    """Two threads play bitwise the same matches as one; an external engine gets their number."""
    lanes = 4 if subject.is_engine_game else 8
    one, two = subject.batch(lanes, threads=1, horizon=SHORT), subject.batch(lanes, threads=2, horizon=SHORT)
    same = _side_by_side(subject, one, two, subject.rounds(16, 60, 2000), "with one thread and with two")
    subject.note(f"{same} lane-steps")


@conformance(order=206, levels=("full",))
def workers_do_not_change_results(subject: Subject) -> None:
    """Two worker processes play bitwise the same matches as none."""
    main = getattr(sys.modules["__main__"], "__file__", None)
    if main is not None and not Path(main).exists():
        raise Skipped("worker processes import the main module, but this one is no file")
    one, two = subject.batch(5, horizon=3 * SHORT), subject.batch(5, workers=2, horizon=3 * SHORT)
    same = _side_by_side(subject, one, two, subject.rounds(16, 60, 400), "without workers and with two")
    subject.note(f"{same} lane-steps")


def _side_by_side(subject: Subject, one: Any, two: Any, rounds: Any, what: str) -> int:
    players = Player(one), Player(two)
    one.reset(seed=SEED)
    two.reset(seed=SEED)
    played = 0
    for number in rounds:
        found = difference(subject.game, snapshot_view(one), snapshot_view(two))
        require(not found, f"{found}, {what}, after {number} steps")
        for sim, player in zip((one, two), players, strict=True):
            player.play(sim)
            sim.step()
        played += one.num_envs
    return played
