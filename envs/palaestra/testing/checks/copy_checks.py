"""Snapshots and copies: they hold everything that decides how a match continues, and share nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

from palaestra.testing.checks.lane_checks import SHORT
from palaestra.testing.drivers import Driver, drivers
from palaestra.testing.harness import conformance, require
from palaestra.testing.players import Player, RememberingPlayer
from palaestra.testing.snapshot_view import SnapshotView, difference, snapshot_view, unlike
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

    Some lanes are taken between two matches, and Python opponents with a memory play too.
    """
    first = next(iter(subject.game.teams))
    setups: list[dict[str, Any]] = [{"horizon": subject.draw.integer("horizon", 2, 2 * SHORT)}, {}]
    if subject.opponents(first):
        setups.append({"opponents": subject.opponents(first)})
    for options in setups:
        _check_snapshot(subject, options, None)
    if (team := RememberingPlayer.team_of(subject.batch(1))) is not None:
        _check_snapshot(subject, {}, team)


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
    """A deep copy of each face in mid-match continues like its original; the two do not affect each other."""
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
