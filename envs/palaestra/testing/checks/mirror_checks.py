"""Fair sides: mirrored positions, actions and random draws give the mirror image of the match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from palaestra.core.batch_loop import CALLER, RUNNING
from palaestra.core.game import Game
from palaestra.core.rng import opposite_stream
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


def partners(game: Game) -> dict[int, int]:
    """For each slot the one that it becomes: the k-th of one team is the k-th of the other, where both are alike.

    Empty where the mirror leaves the teams as they are: observations then have no mirror image common to all agents.
    """
    if not game.symmetric_teams:
        return {}
    red, blue = game.teams.values()
    if [game.role_of(a)[0].name for a in red] != [game.role_of(b)[0].name for b in blue]:
        return {}
    return {**dict(zip(red, blue, strict=True)), **dict(zip(blue, red, strict=True))}


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


@conformance(order=801)
def mirror_symmetry_holds(subject: Subject) -> None:
    """Mirrored positions, actions and random draws give the mirrored match: `Game.mirror` holds, no side is favoured.

    Compares states, alive and acting agents, rewards and winners of exchanged teams, ends, and the observations and
    masks of exchanged agents.
    """
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
