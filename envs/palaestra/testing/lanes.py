"""A lane is a match of its own: seeds, batch sizes, threads, processes and faces do not change a bit of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.fields import values_of
from palaestra.testing.frames import difference, frame, rows_of, unlike
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import MASKS, Player, lane_of
from palaestra.testing.runs import EnvRun, ParallelRun, Run, VectorRun, runs
from palaestra.testing.subject import Subject

SEED = 20
SHORT = 7
"""Horizon of matches that shall end and start anew often."""


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
        shown = frame(whole)
        for lane, single in enumerate(singles):
            found = difference(subject.game, rows_of(shown, slice(lane, lane + 1)), frame(single), lane)
            require(not found, f"{found} (in a batch of {n} and alone) after {number} steps, seed {seed}, {options}")
        for sim, player in zip((whole, *singles), players, strict=True):
            player.play(sim)
            sim.step()
        steps += n
    return steps


@conformance()
def lanes_equal_singles(subject: Subject) -> None:
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


def play_alike(one: Run, other: Run, rounds: Any, what: str) -> int:
    """Plays two runs decision by decision and demands the same results. Returns the decisions played."""
    found = unlike(one.start(), other.start())
    require(not found, f"{one.name}, first reset, {what}: {found}")
    played = 0
    for number in rounds:
        found = unlike(one.play(), other.play())
        require(not found, f"{one.name}, decision {number}, {what}: {found}")
        played += 1
    return played


@conformance()
def same_seed_same_matches(subject: Subject) -> None:
    """Two faces of the same seed return the same through 500 decisions and the resets between, every one of them.

    PettingZoo's own parallel_seed_test stops after one step: it takes the keys of a dict for its values.
    """
    played = 0
    for one, other in zip(runs(subject, SEED), runs(subject, SEED), strict=True):
        most = 500 if isinstance(one, ParallelRun) else 150
        played += play_alike(one, other, subject.rounds(40, most, 2000), f"two with seed {SEED}")
    subject.note(f"{played} decisions on four faces")


@conformance()
def a_seed_leaves_no_trace(subject: Subject) -> None:
    """A reset with a seed starts the same match whatever was played before."""
    for used, fresh in zip(runs(subject, SEED), runs(subject, SEED), strict=True):
        used.start(seed=SEED + 999)
        for _ in range(12):
            used.play()
        play_alike(used, fresh, subject.rounds(12, 30, 300), f"one had played seed {SEED + 999} before")


@conformance()
def faces_agree(subject: Subject) -> None:
    """Env, VectorEnv and ParallelEnv show what the batch holds, field by field, agent by agent."""
    control = subject.keywords.get("control")
    teams = [control] if control else list(subject.game.teams)
    by_name = subject.shown("dict")
    made: list[Run] = [ParallelRun(subject.parallel(observation=by_name), SEED)]
    for team in teams:
        made.append(EnvRun(subject.env(observation=by_name, control=team), SEED))
        made.append(VectorRun(subject.vec(3, observation=by_name, control=team, autoreset_mode="off"), SEED))
    for run in made:
        run.start()
        for number in subject.rounds(10, 40, 400):
            expected = run.face.sim
            result = run.play()
            if len(result) != 5:  # a reset
                continue
            for agent, given, lane in _views(run, result):
                place = f"{run.name}, decision {number}, lane {lane}, {agent}"
                _compare_view(subject, expected, agent, given, lane, place)


def _views(run: Run, result: Any) -> list[tuple[str, tuple[Any, float, bool], int]]:
    """(agent or team, (observation, reward, over), lane) of everything in the result of a step."""
    observations, rewards, terminations, truncations, _ = result
    if isinstance(run, ParallelRun):
        return [(a, (observations[a], rewards[a], terminations[a] or truncations[a]), 0) for a in sorted(observations)]
    team = run.face.control
    if isinstance(run, EnvRun):
        return [(team, (observations, rewards, terminations or truncations), 0)]
    lanes = range(run.face.num_envs)
    return [(team, (lane_of(observations, i), rewards[i], terminations[i] or truncations[i]), i) for i in lanes]


def _compare_view(subject: Subject, sim: Any, who: str, given: tuple[Any, float, bool], lane: int, place: str) -> None:
    game = subject.game
    slots = game.teams.get(who) or (game.agents.index(who),)
    observation, reward, over = given
    expected = float(sim.rewards[lane, list(slots)].sum() if game.reward == "agent" else sim.rewards[lane, slots[0]])
    require(float(reward) == expected, f"{place}: reward {reward} but {expected} in the batch")
    match_over = bool(sim.terminated[lane] or sim.truncated[lane])
    gone = who not in game.teams and bool(sim.agent_terminated[lane, slots[0]])
    require(bool(over) == (match_over or gone), f"{place}: over is {over} but {match_over or gone} in the batch")
    if isinstance(observation, dict) and any(name in observation for name in MASKS):
        observation = observation["observation"]
    for field, shown, true in _fields(sim, slots, lane, observation):
        found = unlike(np.asarray(shown), true)
        require(not found, f"{place}: observation {field}{found} in the batch")


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
                true = np.array(values_of(memory[role.name], f)[lane, rows[0] if len(rows) == 1 else rows])
                fields.append((f.name, own[f.name], true))
    team = int(game.team_index[slots[0]])
    shared = {f.name: values_of(memory["team"], f)[lane, team] for f in game.team_observation}
    for f in game.lane_observation:
        own = sim.world_observations[f.name] if f.world is not None else values_of(memory["lane"], f)
        shared[f.name] = own[lane]
    return fields + [(name, observation[name], np.array(true)) for name, true in shared.items()]


@conformance()
def threads_same_bits(subject: Subject) -> None:
    """Two threads play the same matches as one, to the bit; an engine outside is told their number."""
    lanes = 4 if subject.is_engine_game else 8
    one, two = subject.batch(lanes, threads=1, horizon=SHORT), subject.batch(lanes, threads=2, horizon=SHORT)
    same = _side_by_side(subject, one, two, subject.rounds(16, 60, 2000), "with one thread and with two")
    subject.note(f"{same} lane-steps")


@conformance(levels=("full",))
def workers_same_bits(subject: Subject) -> None:
    """Two worker processes play the same matches as none, to the bit."""
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
        found = difference(subject.game, frame(one), frame(two))
        require(not found, f"{found}, {what}, after {number} steps")
        for sim, player in zip((one, two), players, strict=True):
            player.play(sim)
            sim.step()
        played += one.num_envs
    return played
