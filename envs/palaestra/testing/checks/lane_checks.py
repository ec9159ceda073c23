"""A lane is a match of its own: seeds, batch sizes, threads, processes and faces do not change it bitwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import OFF, RUNNING
from palaestra.core.compile.linker import hooks_of
from palaestra.core.compile.reachable import attributes_in
from palaestra.core.contract.fields import values_of
from palaestra.core.run.arrays import summed
from palaestra.core.run.kernel import lane_arguments
from palaestra.testing.call_sequences import CALLS, MODES, STEPS, Episode, opponent_specs, play_episodes
from palaestra.testing.drivers import Driver, EnvDriver, ParallelDriver, VectorDriver, drivers, pay_ends
from palaestra.testing.harness import PRESET, CheckError, Skipped, conformance, require
from palaestra.testing.players import Player, RememberingPlayer, lane_of
from palaestra.testing.random_walk import random_walk
from palaestra.testing.snapshot_view import difference, first_difference, snapshot_view, unlike
from palaestra.testing.subject import SECONDS, Subject

GIVEN = ("states", "action_words", "mask_bytes", "observations")
"""What a decision starts from: observations hold what was written at the reset."""
SHORT = 7
"""Horizon of matches that should end and start often."""


@conformance(order=201)
def lanes_equal_single_envs(subject: Subject) -> None:
    """Lane i of N lanes seeded s is bitwise the single simulation seeded s + i, through resets and against scripts.

    Whatever the lanes, threads, seeds, horizon, autoreset mode and scripts.
    """
    engine = subject.is_engine_game
    rounds = subject.rounds(2, 3, 40) if engine else subject.rounds(3, 8, 200)
    steps = play_episodes(subject, rounds, STEPS, 10 if engine else 24)
    subject.note(f"{steps} lane-steps")


@conformance(order=207)
def call_lanes_are_independent(subject: Subject) -> None:
    """Calls for chosen lanes do to them what they do to a single simulation, and nothing to the others, bitwise.

    Random sequences of step, reset, seed, set_parameters, set_opponent, load_states, refresh, snapshot, restore, copies
    and reads.
    """
    engine = subject.is_engine_game
    rounds = subject.rounds(2, 3, 60) if engine else subject.rounds(4, 14, 400, 1.5 * SECONDS[subject.level])
    steps = play_episodes(subject, rounds, CALLS, 12 if engine else 30)
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
    played, seed = 0, subject.draw.seed()
    for one, other in zip(drivers(subject, seed), drivers(subject, seed), strict=True):
        most = 500 if isinstance(one, ParallelDriver) else 100
        rounds = subject.rounds(40, most, 2000, None if subject.level == "full" else 0.03)
        played += play_alike(one, other, rounds, f"two with seed {seed}")
    subject.note(f"{played} decisions on four faces")


@conformance(order=203)
def seeding_resets_history(subject: Subject) -> None:
    """A reset with a seed starts the same match whatever was played before, and whatever Python opponents remember."""
    draw = subject.draw
    seed, earlier, horizon = draw.seed(), draw.seed("earlier seed"), draw.integer("horizon", 2, 40)
    for used, fresh in zip(
        drivers(subject, seed, horizon=horizon), drivers(subject, seed, horizon=horizon), strict=True
    ):
        used.start(seed=earlier)
        for _ in range(draw.integer("played before", 1, 16)):
            used.play()
        play_alike(used, fresh, subject.rounds(12, 30, 300), f"one had played seed {earlier} before")
    _players_forget(subject, seed, earlier)


def _players_forget(subject: Subject, seed: int, earlier: int) -> None:
    """The same for a player with a memory that outlives matches."""
    used, fresh = (subject.batch(2, horizon=5) for _ in range(2))
    team = RememberingPlayer.team_of(used)
    if team is None:
        return
    for sim in (used, fresh):
        sim.set_opponent(team, RememberingPlayer(sim, team))
    used.reset(seed=earlier)
    players = Player(used), Player(fresh)
    for _ in range(8):
        used.step()
    (assignment,) = used.opponent_assignments[team]
    counted, taken = int(assignment.memory[:, 0].sum()), assignment.opponent.decisions
    require(counted == taken, f"a Python opponent has taken {taken} decisions, but its memory holds {counted} of them")
    for sim in (used, fresh):
        sim.reset(seed=seed)
    for number in range(8):
        for sim, player in zip((used, fresh), players, strict=True):
            player.play(sim)
            sim.step()
        found = difference(subject.game, snapshot_view(used), snapshot_view(fresh))
        require(not found, f"{found}, step {number} against a Python opponent: one had played seed {earlier} before")


@conformance(order=204, levels=PRESET)
def faces_agree(subject: Subject) -> None:
    """Env, VectorEnv and ParallelEnv show what the batch holds, field by field, agent by agent, masks included."""
    control = subject.keywords.get("control")
    teams = [control] if control else list(subject.game.teams)
    draw = subject.draw
    options: dict[str, Any] = {"observation": subject.shown("dict")}
    if subject.level != "preset":
        options["horizon"] = draw.integer("horizon", 2, 6)
    made: list[Driver] = [ParallelDriver(subject.parallel(**options), draw.seed())]
    for team in teams:
        own = {**options, "control": team}
        if len(subject.game.teams) > 1:
            own["opponent"] = draw.choice("opponent", opponent_specs(subject.game))
        made.append(EnvDriver(subject.env(**own), draw.seed()))
        lanes = draw.integer("lanes", 1, 4)
        made.append(VectorDriver(subject.vec(lanes, autoreset_mode="off", **own), draw.seed()))
    for driver in made:
        pay_ends(driver.face.sim)
        driver.start()
        for number in subject.rounds(10, 40, 400):
            expected = driver.face.sim
            if number == SHORT and subject.level != "preset":
                expected.set_parameters(horizon=draw.integer("later horizon", 2, 40))
            result = driver.play()
            if len(result) != 5:  # a reset
                continue
            for agent, agent_io, given, lane in _views(driver, result):
                place = f"{driver.name}, decision {number}, lane {lane}, {agent}"
                _compare_view(subject, expected, agent, agent_io, given, lane, place)
        _compare_action_masks(subject, driver)


def _compare_action_masks(subject: Subject, driver: Driver) -> None:
    """What `action_masks` allows after the last decision against the masks of the batch, lists of candidates too."""
    face, game = driver.face, subject.game
    sim, table = face.sim, face.sim.action_table
    if sim.legal is None:
        return
    for agent_io in face.agent_ios.values() if isinstance(driver, ParallelDriver) else [face.agent_io]:
        numbers = [k for slot in agent_io.slots for k in range(table.first_word[slot], table.first_word[slot + 1])]
        allowed = [table.allowed(sim.buffers.mask_bytes, k) for k in numbers if table.words["n"][k]]
        if allowed:
            found = unlike(agent_io.action_masks(), np.concatenate(allowed, axis=1))
            agents = ", ".join(game.agents[slot] for slot in agent_io.slots)
            require(not found, f"{driver.name}, {agents}: action_masks(){found} in the batch")


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
    own = {name: value for name, value in infos.items() if not name.startswith("_")}
    lanes = range(face.num_envs)
    return [(team, face.agent_io, (lane_of(observations, i), rewards[i], over[i], lane_of(own, i)), i) for i in lanes]


def _compare_view(subject: Subject, sim: Any, agent: str, agent_io: Any, given: tuple, lane: int, place: str) -> None:
    game = subject.game
    slots = game.teams.get(agent) or (game.agents.index(agent),)
    observation, reward, over, info = given
    paid = sim.rewards[:, list(slots)]
    expected = float(summed(paid)[lane] if game.reward == "agent" else paid[lane, 0])
    require(float(reward) == expected, f"{place}: reward {reward} but {expected} in the batch")
    match_over = bool(sim.terminated[lane] or sim.truncated[lane])
    left = agent not in game.teams and bool(sim.agent_terminated[lane, slots[0]])
    require(bool(over) == (match_over or left), f"{place}: over is {over} but {match_over or left} in the batch")
    compare_shown(sim, slots, agent_io, (observation, info), match_over, lane, place)


def compare_shown(
    sim: Any, slots: tuple[int, ...], agent_io: Any, given: tuple[Any, Any], over: bool, lane: int, place: str
) -> None:
    """Compares observation (of the form ``"dict"``), masks and info with what a lane of a batch holds."""
    observation, info = given
    _compare_info(sim, slots, lane, info, over, place)
    masks = info or {}
    if agent_io.mask_mode == "obs":
        masks, observation = observation, observation["observation"]
    if agent_io.mask_mode is not None:
        _compare_masks(sim, slots, lane, masks, place)
    for field, shown, true in _fields(sim, slots, lane, observation):
        found = unlike(np.asarray(shown), true)
        require(not found, f"{place}: observation {field}{found} in the batch")


def _compare_info(sim: Any, slots: tuple[int, ...], lane: int, info: Any, over: bool, place: str) -> None:
    """Numbers of an info against those of the batch."""
    own = slots[0] if len(slots) == 1 else list(slots)
    expected = {f.name: sim.info[f.name][lane] for f in sim.game.info}
    expected["winner"] = sim.info["winner"][lane] if over else -1
    expected["end_reason"] = sim.info["end_reason"][lane] if over else 0
    expected["acting"] = sim.acting[lane, own] & (not over)
    expected["illegal"] = sim.info["illegal"][lane, own]
    expected["team"] = sim.game.team_index[slots[0]]
    for name, value in info.items():
        if name in expected and not np.array_equal(value, expected[name]):  # no `require`: writing arrays takes long
            raise CheckError(f"{place}: info {name} is {value}, in the batch {expected[name]}")


def _compare_masks(sim: Any, slots: tuple[int, ...], lane: int, shown: Any, place: str) -> None:
    """Masks and lists of candidates at a face against those of the batch."""
    roles = [sim.game.role_of(slot)[0].name for slot in slots]
    flags, ids = [], []
    row = sim.buffers.mask_bytes[lane : lane + 1]
    for slot, role in zip(slots, roles, strict=True):
        for number in range(sim.action_table.first_word[slot], sim.action_table.first_word[slot + 1]):
            word = sim.action_table.words[number]
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
            if not np.array_equal(leaf, true):
                where = " ".join((name, *path))
                raise CheckError(f"{place}: {where} is {leaf.tolist()}, in the batch {true.tolist()}")


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
    """Any number of threads plays bitwise the same matches as one; an engine outside gets their number."""
    draw, played = subject.draw, 0
    for _ in subject.rounds(1, 2, 20) if subject.is_engine_game else subject.rounds(3, 6, 100):
        lanes = draw.integer("lanes", 1, 4 if subject.is_engine_game else 17)
        threads = draw.integer("threads", 2, min(lanes + 2, 8))
        options = {"horizon": draw.integer("horizon", 2, 2 * SHORT), "autoreset_mode": draw.choice("mode", MODES[:2])}
        specs = opponent_specs(subject.game)
        if specs and draw.chance(0.5):
            options["opponents"] = {team: draw.choice(f"opponent of {team}", specs) for team in subject.game.teams}
        one, many = (subject.batch(lanes, threads=t, **options) for t in (1, threads))
        played += _side_by_side(subject, one, many, draw.seed(), 12, f"with one thread and with {threads}")
    subject.note(f"{played} lane-steps")


@conformance(order=208)
def compiled_rules_equal_plain_python(subject: Subject) -> None:
    """The compiled rules play bitwise the same matches as the same rules in plain Python."""
    if subject.is_engine_game:
        raise Skipped("an engine outside moves the bodies")
    draw, played = subject.draw, 0
    for _ in subject.rounds(1, 1, 20):
        options = {"horizon": draw.integer("horizon", 2, 2 * SHORT), "autoreset_mode": draw.choice("mode", MODES[:2])}
        specs = opponent_specs(subject.game)
        if specs and draw.chance(0.5):
            options["opponents"] = {team: draw.choice(f"opponent of {team}", specs) for team in subject.game.teams}
        lanes = draw.integer("lanes", 2, 4)
        compiled, plain = (subject.batch(lanes, compiled=how, **options) for how in (True, False))
        played += _side_by_side(subject, compiled, plain, draw.seed(), 8, "compiled and in plain Python")
    subject.note(f"{played} lane-steps")


@conformance(order=217)
def decisions_match_hooks(subject: Subject) -> None:
    """One decision of the hooks, as plain Python on a copy of a lane's record, gives the lane's record and results.

    Looks at decisions that pay, that end a match or in which an agent leaves or arrives, and at some others; and at
    some that pay, once more as the last before the horizon.
    """
    if subject.is_engine_game:
        _cut_pays_the_same(subject)
        return
    draw = subject.draw
    lanes, seed = 16, draw.seed()
    horizons = np.array([draw.integer("horizon", 1, 40) for _ in range(lanes)], np.float64)
    sim, twin = subject.batch(lanes, autoreset_mode="off"), subject.batch(1, autoreset_mode="off", compiled=False)
    sim.set_parameters(horizon=horizons)
    sim.reset(seed=seed)
    player, step = Player(sim), twin.kernel.drivers["step_lanes"]
    arguments = lane_arguments(twin)
    looked = np.zeros(2, np.int64)  # decisions in which nothing happens, and others
    most = 3 if subject.level == "fast" else 60
    for number in subject.rounds(24, 60, 600, 0.1 if subject.level == "fast" else None):
        player.play(sim)
        given = {name: getattr(sim.buffers, name).copy() for name in GIVEN}
        sim.step()
        now, over = sim.states["alive"] != given["states"]["alive"], sim.terminated | sim.truncated
        eventful = sim.rewards.any(axis=1) | over | now.any(axis=1)
        for lane in draw.order(lanes).tolist():
            kind = int(eventful[lane])
            if looked[kind] < most * (1 + kind) and given["states"]["pending"][lane] == RUNNING:
                looked[kind] += 1
                for name, memory in given.items():
                    getattr(twin.buffers, name)[0] = memory[lane]
                step(0, 1, False, OFF, 0, *arguments)
                found = difference(
                    subject.game, _shown(sim.buffers, sim, lane), _shown(twin.buffers, sim, 0), lane
                ) or first_difference(sim.states[lane : lane + 1], twin.states)
                require(not found, f"{found}, played and by the hooks as plain Python, decision {number}")
        sim.reset(sim.terminated | sim.truncated)
        if (looked >= (most, 2 * most)).all():
            break
    cut, paid = subject.batch(2, autoreset_mode="off"), random_walk(subject).pay.paid[:most]
    for record, words in paid:
        _load_last(cut, record, words)
        for name in GIVEN:
            getattr(twin.buffers, name)[0] = getattr(cut.buffers, name)[0]
        step(0, 1, False, OFF, 0, *arguments)
        cut.step()
        for lane in range(2):
            found = difference(subject.game, _shown(cut.buffers, cut, lane), _shown(twin.buffers, cut, 0), lane)
            require(not found, f"{found}, played and by the hooks as plain Python, a decision that the horizon ends")
    subject.note(f"{looked[1]} decisions with an event, {looked[0]} without, {len(paid)} paid ones cut by the horizon")


def _load_last(cut: Any, record: np.ndarray, words: np.ndarray) -> None:
    """Loads a decision into all lanes of a batch, as the last before the horizon: they are cut together."""
    records = np.repeat(record, cut.num_envs)
    records["parameters"]["horizon"] = records["steps"] + 1
    cut.load_states(records)
    cut.buffers.action_words[...] = words


def _cut_pays_the_same(subject: Subject) -> None:
    """A decision of bodies that an engine moves pays the same whether or not it is the last before the horizon."""
    if "horizon" in attributes_in(hooks_of(subject.game)):
        raise Skipped("an engine outside moves the bodies, and the rules look at the horizon")
    cut, long = (subject.batch(2, autoreset_mode="off") for _ in range(2))
    paid = random_walk(subject).pay.paid[: 3 if subject.level == "fast" else 60]
    for record, words in paid:
        _load_last(cut, record, words)
        long.load_states(cut.states.copy())
        long.set_parameters(horizon=float(record["steps"][0]) + 9.0)
        long.buffers.action_words[...] = words
        cut.step()
        long.step()
        for name in ("rewards", "terminated", "agent_terminated"):
            found = unlike(getattr(long, name), getattr(cut, name))
            require(not found, f"{name}{found} (of a decision that goes on, and of the same before the horizon)")
    subject.note(f"{len(paid)} paid decisions, cut by the horizon and not")


def _shown(buffers: Any, sim: Any, lane: int) -> dict[str, np.ndarray]:
    """What a decision has written for a lane."""
    agents = len(sim.game.agents)
    names = (
        "rewards",
        "agent_terminated",
        "terminated",
        "truncated",
        "winners",
        "end_reasons",
        "observations",
        "masks",
    )
    rows = {name: getattr(buffers, name)[lane : lane + 1] for name in names}
    return {name: row[:, :agents] if name in names[:2] else row for name, row in rows.items()}


@conformance(order=206, levels=("full",))
def workers_do_not_change_results(subject: Subject) -> None:
    """Two worker processes play bitwise the same matches as none."""
    main = getattr(sys.modules["__main__"], "__file__", None)
    if main is not None and not Path(main).exists():
        raise Skipped("worker processes import the main module, but this one is no file")
    draw = subject.draw
    workers = draw.integer("workers", 2, 3)
    lanes = draw.integer("lanes", workers, 7)
    options = {"horizon": draw.integer("horizon", 2, 3 * SHORT), "autoreset_mode": draw.choice("mode", MODES[:2])}
    one, two = subject.batch(lanes, **options), subject.batch(lanes, workers=workers, **options)
    same = _side_by_side(subject, one, two, draw.seed(), 60, f"without workers and with {workers}")
    episode = Episode(subject, draw, workers=workers)
    same += episode.play(CALLS, 30 if subject.is_engine_game else 150)
    subject.note(f"{same} lane-steps")


def _side_by_side(subject: Subject, one: Any, two: Any, seed: int, steps: int, what: str) -> int:
    players = Player(one), Player(two)
    one.reset(seed=seed)
    two.reset(seed=seed)
    for number in range(steps):
        found = difference(subject.game, snapshot_view(one), snapshot_view(two))
        require(not found, f"{found}, {what}, after {number} steps")
        for sim, player in zip((one, two), players, strict=True):
            player.play(sim)
            sim.step()
    return steps * one.num_envs
