"""Fair sides: mirrored positions, actions and random draws give the mirror image of the match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import CALLER, RUNNING
from palaestra.core.contract.fields import values_of
from palaestra.core.rng import opposite_stream
from palaestra.game import Game
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.subject import Subject


class Mirror:
    """Plays every decision of a simulation a second time, mirrored, in another of the same game.

    Numbers are compared by value: bitwise except for the sign of zero.
    """

    def __init__(self, sim: Any, twin: Any) -> None:
        """Takes two simulations of equal size in ``autoreset_mode="off"``; players act in the first one."""
        self._sim, self._twin, self._game = sim, twin, sim.game
        self._partners = partners(sim.game)
        self._fields = [*(name for name, *_ in sim.game.state), "alive", "acting"]
        twin.reset(seed=0)

    def step(self) -> str:
        """One decision in both. Returns what is not the mirror, with lane and values, or ``""``."""
        sim, twin = self._sim, self._twin
        before = sim.states.copy()
        lanes = np.flatnonzero(before["pending"] == RUNNING)
        sim.step()
        twin.states[...] = before
        twin.states["current_player"] = CALLER  # the actions of scripts are repeated from outside
        twin.buffers.action_words[...] = sim.buffers.action_words
        self._game.mirror(twin.states, twin.buffers.action_records)
        twin.states["rng"] = opposite_stream(before["rng"])
        twin.refresh()  # the masks that decide which actions are legal
        twin.step()
        for place, found in self._differences():
            wrong = _first_unequal(*found, lanes)
            if wrong:
                return f"{place}: {wrong}"
        return ""

    def _differences(self) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
        """Names, what the mirror should hold, and what it holds."""
        sim, twin, game = self._sim, self._twin, self._game
        expected = sim.states.copy()
        game.mirror(expected, sim.buffers.action_records.copy())
        for name in self._fields:
            yield f"state {name}", (expected[name], twin.states[name])
        yield "terminated", (sim.terminated, twin.terminated)
        yield "truncated", (sim.truncated, twin.truncated)
        yield "end_reason", (sim.info["end_reason"], twin.info["end_reason"])
        winner, swaps = sim.info["winner"], game.symmetric_teams
        yield "winner", (np.where(winner < 0, winner, 1 - winner) if swaps else winner, twin.info["winner"])
        teams = list(game.teams)
        for team, mirrored in zip(teams, teams[::-1] if swaps else teams, strict=True):
            yield f"reward of {mirrored}", (sim.team_rewards(team), twin.team_rewards(mirrored))
        for slot, partner in self._partners.items():
            role, index = game.role_of(slot)
            other = game.role_of(partner)[1]
            agent = game.agents[partner]
            seen, reflected = (one.buffers.observations[role.name] for one in (sim, twin))
            yield f"observation of {agent}", (seen[:, index], reflected[:, other])
            if role.name in (game.mask_dtype.names or ()):
                allowed, reflected = (one.buffers.masks[role.name] for one in (sim, twin))
                yield f"mask of {agent}", (allowed[:, index], reflected[:, other])
        if swaps:
            yield from self._shared()

    def _shared(self) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
        """What teams and all agents see besides: the mirror exchanges the teams' rows and leaves the lane's alone."""
        seen, reflected = self._sim.buffers.observations, self._twin.buffers.observations
        if self._game.team_observation:
            for number, team in enumerate(self._game.teams):
                yield (
                    f"team observation that {team} mirrors",
                    (seen["team"][:, number], reflected["team"][:, 1 - number]),
                )
        if self._game.lane_observation:
            yield "lane observation", (seen["lane"], reflected["lane"])


def partners(game: Game) -> dict[int, int]:
    """For each slot the one that it becomes: the k-th of a role in one team is the k-th of that role in the other.

    Empty where the mirror leaves the teams as they are: observations then have no mirror image common to all agents.
    """
    if not game.symmetric_teams:
        return {}
    red, blue = (
        [[slot for slot in slots if game.role_of(slot)[0] is role] for role in game.roles]
        for slots in game.teams.values()
    )
    pairs = [pair for ours, theirs in zip(red, blue, strict=True) for pair in zip(ours, theirs, strict=True)]
    return {**dict(pairs), **{b: a for a, b in pairs}}


def _first_unequal(ours: np.ndarray, theirs: np.ndarray, lanes: np.ndarray, path: str = "") -> str:
    if ours.dtype.names is not None:
        parts = (_first_unequal(ours[n], theirs[n], lanes, f"{path} {n}") for n in ours.dtype.names)
        return next((found for found in parts if found), "")
    a, b = ours[lanes], theirs[lanes]
    bad = np.argwhere((a != b) & ((a == a) | (b == b)))
    if len(bad) == 0:
        return ""
    row, *index = (int(i) for i in bad[0])
    where = f"lane {lanes[row]}{path}{index or ''}"
    return f"{where} is {b[row, *index]} in the mirrored match, {a[row, *index]} in the mirror of the match"


def walk(sim: Any, twin: Any, seed: int, rounds: Any, player: Player | None = None) -> tuple[int, int]:
    """Plays matches and their mirrors. Returns lane-steps and matches.

    Args:
        sim: In ``autoreset_mode="off"``; its opponents play, or the player.
        twin: A second simulation without opponents; it gets the mirrored actions.
        seed: Of the matches.
        rounds: Iterable, one decision each.
        player: Player of the teams without an opponent.

    Raises:
        CheckError: Something is not the mirror; names seed, step, lane, field and values.
    """
    mirror = Mirror(sim, twin)
    sim.reset(seed=seed)
    steps = matches = 0
    for number in rounds:
        if player is not None:
            player.play(sim)
        steps += int((sim.states["pending"] == RUNNING).sum())
        found = mirror.step()
        require(not found, f"{found} (decision {number}, seed {seed})")
        over = sim.terminated | sim.truncated
        if over.any():
            matches += int(over.sum())
            sim.reset(over)
    return steps, matches


def why_no_mirror(game: Game) -> str:
    """Why there is nothing to compare, or ``""``."""
    if game.mirror is None:
        return f"the game gives no mirror{' that proves its symmetric_teams' if game.symmetric_teams else ''}"
    return "another engine moves the bodies" if game.physics is not None else ""


MOMENTS = (0, 1, 3, 12)
"""Decisions after which the sides are compared."""
FAR = 4.7
"""Difference of two distributions of n values each, times the root of n, that chance gives once in a thousand million
comparisons (two-sample Kolmogorov-Smirnov)."""


def compare_sides(sim: Any, seed: int) -> None:
    """Demands that exchanged agents of random players see alike: each number has the same distribution on both sides.

    For games without a mirror: it does not prove that the rules are fair.

    Args:
        sim: In ``autoreset_mode="off"``, without opponents.
        seed: Of the matches.
    """
    player = Player(sim)
    sim.reset(seed=seed)
    for number in range(MOMENTS[-1] + 1):
        if number in MOMENTS:
            for name, one, other, ours, theirs in _both_sides(sim):
                place = f"after {number} decisions {name} of {one} and of {other}"
                far = _distance(ours, theirs)
                require(
                    far.size == 0 or far.max() * np.sqrt(len(ours)) < FAR,
                    f"symmetric_teams=True, but {place} are not distributed alike over {len(ours)} matches: "
                    f"{ours[:, far.argmax()].min():g} to {ours[:, far.argmax()].max():g} and "
                    f"{theirs[:, far.argmax()].min():g} to {theirs[:, far.argmax()].max():g}: let each side see itself "
                    "in the same way, or declare symmetric_teams=False",
                )
        player.play(sim)
        sim.step()


def _both_sides(sim: Any) -> Iterator[tuple[str, str, str, np.ndarray, np.ndarray]]:
    """Field, the two agents or teams, and what they see, float64 ``[n, numbers]`` of the running matches."""
    game, memory = sim.game, sim.buffers.observations
    running = np.flatnonzero(sim.states["pending"] == RUNNING)
    flat = lambda rows, k: rows[running][:, k].reshape(len(running), -1).astype(np.float64)  # noqa: E731
    for slot, partner in partners(game).items():
        (role, ours), (_, theirs) = game.role_of(slot), game.role_of(partner)
        for f in role.observation if slot < partner else ():
            rows = values_of(memory[role.name], f)
            yield f.name, game.agents[slot], game.agents[partner], flat(rows, ours), flat(rows, theirs)
    red, blue = game.teams
    for f in game.team_observation:
        rows = values_of(memory["team"], f)
        yield f.name, red, blue, flat(rows, 0), flat(rows, 1)


def _distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Greatest difference of the two cumulative distributions of each column."""
    far = np.zeros(a.shape[1])
    for k in np.flatnonzero((np.sort(a, axis=0) != np.sort(b, axis=0)).any(axis=0)).tolist():
        at = np.concatenate([a[:, k], b[:, k]])
        below = (np.searchsorted(np.sort(column), at, "right") for column in (a[:, k], b[:, k]))
        far[k] = np.abs(np.subtract(*below)).max() / len(a)
    return far


@conformance(order=801)
def mirror_symmetry_holds(subject: Subject) -> None:
    """Mirrored positions, actions and random draws give the mirrored match: `Game.mirror` holds, no side is favoured.

    Compares states, alive and acting agents, rewards and winners of exchanged teams, ends, and the observations and
    masks of exchanged agents, of teams and of all. Where teams are symmetric without a mirror that can be played, what
    both sides see under random players is compared as distributions.
    """
    if subject.game.symmetric_teams and why_no_mirror(subject.game):
        lanes = 24 if subject.is_engine_game else 256
        compare_sides(subject.batch(lanes, autoreset_mode="off"), subject.draw.seed())
        subject.note(
            f"{why_no_mirror(subject.game)}: what both sides see has the same distributions in {lanes} matches"
        )
        return
    if reason := why_no_mirror(subject.game):
        raise Skipped(reason)
    sim, twin = (subject.batch(32, autoreset_mode="off") for _ in range(2))
    steps, matches = walk(sim, twin, subject.draw.seed(), subject.rounds(25, 60, 20_000), Player(sim))
    if subject.game.scripts:
        for team in subject.game.teams:
            sim.set_opponent(team, "mix:0.8")
        more = walk(sim, twin, subject.draw.seed("seed of the scripts"), subject.rounds(25, 50, 20_000))
        steps, matches = steps + more[0], matches + more[1]
    subject.note(f"{steps} lane-steps, {matches} matches")
