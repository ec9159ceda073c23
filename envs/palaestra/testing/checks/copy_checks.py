"""Snapshots and copies: they hold everything that decides how a match continues, and share nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from palaestra.testing.checks.buffer_checks import Memory, arrays_in, memory_of
from palaestra.testing.checks.lane_checks import SHORT
from palaestra.testing.drivers import Driver, drivers, pay_ends
from palaestra.testing.harness import conformance, require
from palaestra.testing.players import Player, RememberingPlayer, SpacePlayer, mask_of
from palaestra.testing.snapshot_view import SnapshotView, difference, first_difference, snapshot_view, unlike
from palaestra.testing.subject import Subject

SHOWN_AFTER_RESTORE = ("observations", "masks", "info", "alive", "acting", "stream of the rules", "global state")


def _stay(sim: Any, player: Player, steps: int) -> list[SnapshotView]:
    shown = []
    for _ in range(steps):
        player.play(sim)
        sim.step()
        shown.append(snapshot_view(sim))
    return shown


@conformance(order=401)
def snapshot_continues(subject: Subject) -> None:
    """A restored snapshot shows the same state and continues bitwise equal, here and in another simulation.

    Some lanes are taken between two matches, and Python opponents with a memory play too. A snapshot shares nothing
    with a simulation: it stays as it is, whatever is played before and after it is restored. Decisions without outputs
    from the same records have the same results.
    """
    first = next(iter(subject.game.teams))
    setups: list[dict[str, Any]] = [{"horizon": subject.draw.integer("horizon", 2, 2 * SHORT)}, {}]
    if subject.opponents(first):
        setups.append({"opponents": subject.opponents(first)})
    for options in setups:
        _check_snapshot(subject, options, None)
    if (team := RememberingPlayer.team_of(subject.batch(1))) is not None:
        _check_snapshot(subject, {}, team)
    _check_laden_snapshot(subject)
    if not subject.is_engine_game:
        _check_results(subject)


def _check_results(subject: Subject) -> None:
    """Compares decisions without outputs, from loaded records, with those that write all; as plain Python."""
    sim, quiet = (subject.batch(2, autoreset_mode="off", compiled=False) for _ in range(2))
    player = Player(sim)
    sim.reset(seed=subject.draw.seed("seed without outputs"))
    for _ in range(4):
        quiet.load_states(sim.states.copy(), outputs=False)
        player.play(sim)
        quiet.buffers.action_words[...] = sim.buffers.action_words
        sim.step()
        quiet.step(outputs=False)
        for name in ("states", "rewards", "terminated", "truncated", "winners"):
            with_outputs, without = (_bytes_of(getattr(one.buffers, name)) for one in (sim, quiet))
            require(with_outputs == without, f"{name} differ in a decision without outputs")
        sim.reset(sim.terminated | sim.truncated)


def _bytes_of(array: np.ndarray) -> bytes:
    """The bytes of all numbers, without the padding of records."""
    names = array.dtype.names
    return array.tobytes() if names is None else b"".join(_bytes_of(array[name]) for name in names)


def _check_snapshot(subject: Subject, options: dict[str, Any], remembering: str | None) -> None:
    made = []
    draw = subject.draw
    lanes = draw.integer("lanes", 1, 3 if subject.is_engine_game else 5)
    for _ in range(2):
        sim = subject.batch(lanes, **options)
        if remembering is not None:
            sim.set_opponent(remembering, RememberingPlayer(sim, remembering))
        made.append(sim)
    sim, fresh = made
    player = Player(sim)
    sim.reset(seed=draw.seed())
    before = draw.integer("snapshot after", 0, 60 if subject.level == "full" else 2 * SHORT)
    _stay(sim, player, before)
    saved, then, later_player = sim.snapshot(), snapshot_view(sim), copy.deepcopy(player)
    steps = 60 if subject.level == "full" else 8
    went_on = _stay(sim, player, steps)
    for where, target in (("the same simulation", sim), ("an equal simulation", fresh)):
        target.restore(saved)
        what = f"when saved and when restored in {where} ({options or 'defaults'})"
        now = snapshot_view(target)
        shown = {k: now[k] for k in SHOWN_AFTER_RESTORE if k in now}
        found = difference(subject.game, {k: then[k] for k in shown}, shown)
        require(not found, f"{found}, {what}")
        for number, (was, again) in enumerate(
            zip(went_on, _stay(target, copy.deepcopy(later_player), steps), strict=True), 1
        ):
            found = difference(subject.game, was, again)
            require(
                not found, f"{found}, first and after a restore in {where}, {number} steps on ({options or 'defaults'})"
            )
        if remembering is not None:
            target.set_opponent(remembering, None)


@conformance(order=402)
def deepcopy_continues(subject: Subject) -> None:
    """A deep copy of each face in mid-match continues like its original; the two do not affect each other.

    It holds all that waits: parameters of the next match, written actions, matches between two, opponents' memory.
    """
    _check_copies(subject, copy.deepcopy, "deepcopy")


@conformance(order=403)
def pickle_continues(subject: Subject) -> None:
    """The same through pickle, as worker processes and checkpoints need it."""
    _check_copies(subject, lambda face: pickle.loads(pickle.dumps(face)), "pickle")


def _check_copies(subject: Subject, copied: Callable[[Any], Any], how: str) -> None:
    draw, after = subject.draw, 100 if subject.level == "full" else 12
    seed, before = draw.seed(), draw.integer("copied after", 0, 60 if subject.level == "full" else 16)
    horizon = draw.integer("horizon", 2, 30)
    for driver, twin in zip(
        drivers(subject, seed, horizon=horizon), drivers(subject, seed, horizon=horizon), strict=True
    ):
        for each in (driver, twin):
            each.start()
            for _ in range(before):
                each.play()
        expected = [copy.deepcopy(twin.play()) for _ in range(after)]
        other = driver.with_face(copied(driver.face))
        try:
            _follow(other, expected, f"{how} of {driver.name}")
            _follow(driver, expected, f"{driver.name} whose {how} was played")
        finally:
            other.face.close()
    _check_copied_players(subject, copied, how)
    _check_laden_copy(subject, copied, how)
    _check_copied_turns(subject, copied, how)


def _check_copied_players(subject: Subject, copied: Callable[[Any], Any], how: str) -> None:
    """What Python opponents remember goes into the copy, and each of the two remembers on by itself."""
    draw = subject.draw
    before, after, seed = draw.integer("copied after", 1, 8), 8, draw.seed()
    options = {"horizon": draw.integer("horizon", 5, 30)}
    original, twin = (subject.batch(2, **options) for _ in range(2))
    team = RememberingPlayer.team_of(original)
    if team is None:
        return
    for sim in (original, twin):
        sim.set_opponent(team, RememberingPlayer(sim, team))
        sim.reset(seed=seed)
    expected = _stay(twin, Player(twin), before + after)[before:]
    player = Player(original)
    _stay(original, player, before)
    for what, sim in ((f"a {how}", subject.keep(copied(original))), (f"a batch whose {how} was played", original)):
        for number, (was, now) in enumerate(zip(expected, _stay(sim, copy.deepcopy(player), after), strict=True), 1):
            found = difference(subject.game, was, now)
            require(not found, f"{what} against a Python opponent, {number} decisions after the copy: {found}")


def _follow(driver: Driver, expected: list[Any], what: str) -> None:
    for number, result in enumerate(expected, 1):
        found = unlike(result, driver.play())
        require(not found, f"{what}, {number} decisions after the copy: {found} (as it should be, as it is)")


# -- simulations that are full of what may be forgotten ----------------------------------------------------------------


class Laden:
    """How simulations are brought to a moment at which much waits; two of the same subject are equal.

    Lanes differ in parameters, horizon and opponents, some wait for their next match, parameters wait for it too, and
    actions are written.
    """

    def __init__(self, subject: Subject) -> None:
        """Draws all numbers."""
        draw, game = subject.draw, subject.game
        self._subject, self._lanes = subject, 3
        self._mode = draw.choice("autoreset_mode", ("next_step", "same_step"))
        self._seed, self._decisions = draw.seed(), draw.integer("played before", 3, 6)
        self._horizons = np.array([draw.integer("horizon", 2, 3), *(draw.integer("horizon", 2, 9) for _ in range(2))])
        free = [p for p in game.parameters if p.name not in (*subject.keywords, "horizon")]
        waiting = [p for p in free if p.at_start or not subject.is_engine_game]
        # An engine that cannot save its state repeats its inputs: those do not tell when a parameter was changed.
        self._values = [{p.name: draw.parameter(p.name, p, 3, free) for p in some} for some in (free, waiting)]
        team = RememberingPlayer.team_of(subject.batch(1))
        self._python = team if len(game.teams) > 1 else None
        self._script = "mix:0.5" if game.scripts else "random"

    def make(self) -> Any:
        """A simulation at that moment, before its opponents are asked."""
        sim = self._subject.batch(self._lanes, autoreset_mode=self._mode)
        sim.set_parameters(horizon=self._horizons.astype(np.float64), **self._values[0])
        self.assign(sim)
        sim.reset(seed=self._seed)
        player = Player(sim)
        for _ in range(self._decisions):
            player.play(sim)
            sim.step()
        sim.set_parameters(**self._values[1])
        sim.refresh()  # what is seen may depend on them: a restore writes it anew
        Player(sim).play(sim)
        return sim

    def assign(self, sim: Any) -> None:
        """Gives teams to opponents, of several kinds."""
        for team in sim.game.teams if len(sim.game.teams) > 1 else ():
            if team != self._python:
                sim.set_opponent(team, self._script, [1, 2])
        if self._python is not None:
            sim.set_opponent(self._python, RememberingPlayer(sim, self._python), np.arange(self._lanes) < 2)


def _all_arrays(sim: Any) -> list[tuple[str, np.ndarray]]:
    """Everything that a simulation writes into."""
    assigned = [a for of_team in sim.opponent_assignments.values() for a in of_team]
    players = [(f"{n} of an opponent", getattr(a, n)) for a in assigned for n in ("memory", "agents", "lanes")]
    found = [*memory_of(sim), *sim.buffers.live().items(), *players]
    return [(name, array) for name, array in found if array.flags.writeable]


def _check_apart(one: list[tuple[str, np.ndarray]], other: list[tuple[str, np.ndarray]], what: str) -> None:
    memory = Memory(one)
    for name, array in other:
        shared = memory.shared_by(array)
        require(not shared, f"{what}: {name} is the memory of {shared}")


def _check_laden_copy(subject: Subject, copied: Callable[[Any], Any], how: str) -> None:
    laden = Laden(subject)
    original, twin = laden.make(), laden.make()
    other = subject.keep(copied(original))
    _check_equal(original, other, f"{how} of a batch")
    _check_apart(_all_arrays(original), _all_arrays(other), f"{how} of a batch")
    expected = _stay(twin, Player(twin), 6)
    for what, sim in ((f"a {how}", other), (f"a batch whose {how} was played", original)):
        for number, (was, now) in enumerate(zip(expected, _stay(sim, Player(sim), 6), strict=True), 1):
            found = difference(subject.game, was, now)
            require(not found, f"{what}, {number} decisions after the copy: {found} (as it should be, as it is)")
        _check_equal(twin, sim, f"{what}, later")


def _check_equal(one: Any, other: Any, what: str) -> None:
    """Demands the same records, memory, seeds and memory of opponents."""
    pairs = [("lane_seeds", one.lane_seeds, other.lane_seeds)]
    theirs = other.buffers.live()
    pairs += [(name, array, theirs[name]) for name, array in one.buffers.live().items()]
    memories = other.opponent_assignments.memories()
    pairs += [(f"memory of {t}'s opponent", m, memories[t]) for t, m in one.opponent_assignments.memories().items()]
    for name, ours, now in pairs:
        if (found := first_difference(ours, now)) is not None:
            path, index, was, value = found
            require(False, f"{what}: {'.'.join((name, *path))}{list(index)} is {value}, not {was}")


def _check_laden_snapshot(subject: Subject) -> None:
    laden = Laden(subject)
    sim, twin, fresh = laden.make(), laden.make(), subject.batch(3, autoreset_mode=laden._mode)
    laden.assign(fresh)
    saved = sim.snapshot()
    parts = {"states": saved.states, "lane_seeds": saved.lane_seeds, **saved.memories}
    held = [*arrays_in(parts, "snapshot "), *arrays_in(saved.engine, "snapshot engine ")]
    as_saved = copy.deepcopy(held)
    expected = _stay(twin, Player(twin), 6)
    later = (("went on", sim, None), ("was restored", fresh, saved), ("was restored by pickle", sim, _pickled(saved)))
    for what, target, snapshot in later:
        if snapshot is not None:
            target.restore(snapshot)
            found = first_difference(saved.states, target.states)
            require(found is None, f"the record is not as saved: {found}")
        for number, (was, now) in enumerate(zip(expected, _stay(target, Player(target), 6), strict=True), 1):
            found = difference(subject.game, was, now)
            require(not found, f"a batch that {what}, {number} decisions on: {found} (as it should be, as it is)")
        _check_apart(_all_arrays(target), held, f"a batch that {what}")
        for (name, then), (_, now) in zip(as_saved, held, strict=True):
            found = first_difference(then, now)
            require(found is None, f"{name} has changed, as a batch {what}: {found}")


def _pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def _check_copied_turns(subject: Subject, copied: Callable[[Any], Any], how: str) -> None:
    """An AEC face that is copied between two agents' turns goes on with what each has chosen and earned."""
    draw, horizon = subject.draw, subject.draw.integer("horizon", 2, 9)
    seed, before = draw.seed(), draw.integer("turns before the copy", 1, 9)
    aec, twin = subject.aec(horizon=horizon), subject.aec(horizon=horizon)
    first = {a: SpacePlayer(aec.action_space(a), seed, slot) for slot, a in enumerate(aec.possible_agents)}
    for face in (aec, twin):
        players, sim = _anew(first), face.unwrapped.sim
        pay_ends(sim, always=True)
        face.reset(seed=seed)
        _take_turns(face, players, before)
        for _ in range(2):
            if face.agents and face.agent_selection == face.agents[0]:  # nobody has chosen in this decision
                _take_turns(face, players, 1)
        del sim.step  # from now on pays as it does
    other = subject.keep(copied(aec))
    expected, *found = (_take_turns(face, _anew(players), 9) for face in (twin, other, aec))
    for what, given in zip((f"a {how}", f"an AECEnv whose {how} was played"), found, strict=True):
        differs = unlike(expected, given)
        require(not differs, f"{what} of an AECEnv after {before} turns: {differs} (as it should be, as it is)")


def _anew(players: dict[str, SpacePlayer]) -> dict[str, SpacePlayer]:
    """The same players at the same moment."""
    return {agent: copy.copy(player) for agent, player in players.items()}


def _take_turns(aec: Any, players: dict[str, SpacePlayer], count: int) -> list[Any]:
    """Plays turns; returns what each agent was given."""
    shown = []
    for _ in range(count):
        if not aec.agents:
            break
        agent = aec.agent_selection
        given = aec.last()
        shown.append((agent, copy.deepcopy(given)))
        is_out = given[2] or given[3]
        aec.step(None if is_out else players[agent].act(mask_of(aec.unwrapped.agent_ios[agent])))
    return shown
