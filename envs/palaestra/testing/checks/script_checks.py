"""Scripts: their actions are legal, and they have their own random stream."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.snapshot_view import difference, snapshot_view
from palaestra.testing.subject import Subject

SEED = 400


def _players(subject: Subject) -> list[str]:
    """Names of all players: scripts, the random player, and the mixture of scripts."""
    scripts = subject.game.scripts
    if not scripts and len(subject.game.teams) == 1:
        raise Skipped("a game of one team without scripts")
    return [*scripts, "random", *(["mix"] if scripts else [])]


def _let_play(sim: Any, name: str) -> None:
    for team in sim.game.teams:
        sim.set_opponent(team, name)


@conformance(order=1001)
def scripts_play_legally(subject: Subject) -> None:
    """Each script plays each team within the action ranges and the masks."""
    steps = 0
    names = _players(subject)
    sim = subject.batch(4)
    for name in names:
        _let_play(sim, name)
        sim.reset(seed=SEED)
        for number in subject.rounds(12, 60, 1000, None if subject.level == "full" else 0.3 / len(names)):
            sim.step()
            steps += sim.num_envs
            _check_legal(sim, f"script {name!r}, step {number}")
    subject.note(f"{steps} lane-steps of {', '.join(names)}")


@conformance(order=1002)
def weak_scripts_play_legally(subject: Subject) -> None:
    """A script of strength 0, which plays at random, and of strength 0.5 keeps to ranges and masks as well."""
    if not subject.game.scripts:
        raise Skipped("no scripts")
    steps = 0
    sim = subject.batch(4)
    names = [f"{name}:{strength}" for name in subject.game.scripts for strength in ("0", "0.5")]
    for name in names:
        _let_play(sim, name)
        sim.reset(seed=SEED)
        for number in subject.rounds(8, 40, 500, None if subject.level == "full" else 0.2 / len(names)):
            sim.step()
            steps += sim.num_envs
            _check_legal(sim, f"script {name!r}, step {number}")
    subject.note(f"{steps} lane-steps of {len(names)} players")


def _check_legal(sim: Any, place: str) -> None:
    _check_ranges(sim, place)
    for lane, slot in np.argwhere(sim.info["illegal"] != 0):
        count = int(sim.info["illegal"][lane, slot])
        require(False, f"lane {lane}, {sim.game.agents[slot]}, {place}: {count} illegal actions")


def _check_ranges(sim: Any, place: str) -> None:
    reals = sim.buffers.action_words.view(np.float64)
    for word, name in zip(sim.action_table.words, sim.action_table.names, strict=True):
        column = word["column"]
        values = sim.buffers.action_words[:, column] if word["n"] else reals[:, column]
        low, high = (0, word["n"] - 1) if word["n"] else (word["low"], word["high"])
        for lane in np.flatnonzero(~((values >= low) & (values <= high))):
            agent = sim.game.agents[int(word["agent"])]
            require(False, f"lane {lane}, {agent}, {place}: {name} = {values[lane]} is not in [{low}, {high}]")


@conformance(order=1003)
def scripts_change_only_actions(subject: Subject) -> None:
    """The actions of scripts, given from outside, give the same matches: scripts change no state or random draw."""
    steps = 0
    names = _players(subject)
    played, repeated = subject.batch(3), subject.batch(3)
    for name in names:
        _let_play(played, name)
        for sim in (played, repeated):
            sim.reset(seed=SEED)
        for number in subject.rounds(12, 60, 1000, None if subject.level == "full" else 0.3 / len(names)):
            played.step()
            repeated.buffers.action_words[...] = played.buffers.action_words
            repeated.step()
            steps += played.num_envs
            found = difference(subject.game, snapshot_view(played), snapshot_view(repeated))
            require(not found, f"{found}: script {name!r} playing, and its actions given by hand (step {number})")
    subject.note(f"{steps} lane-steps of {', '.join(names)}")


@conformance(order=1004)
def script_rng_is_separate(subject: Subject) -> None:
    """Scripts and their random stream do not change how a match starts: the rules draw from their own stream."""
    names = _players(subject)
    sim = subject.batch(4)
    sim.reset(seed=SEED)
    without_script = snapshot_view(sim)
    for number, name in enumerate(names, 1):
        _let_play(sim, name)
        sim.seed(SEED)
        sim.states["script_rng"] += np.uint64(7919 * number)
        sim.reset()
        found = difference(subject.game, without_script, snapshot_view(sim))
        require(not found, f"{found}: the start of a match without a script and with script {name!r}")
