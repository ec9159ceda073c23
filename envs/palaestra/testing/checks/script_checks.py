"""Scripts: legal actions, a random stream of their own, and the stated strength and mixture."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra.core.compile.batch_loop import CALLER, RANDOM, RUNNING
from palaestra.core.compile.linker import hooks_of
from palaestra.core.compile.reachable import attributes_in
from palaestra.core.rng import GOLDEN, SHIFT_11, TO_UNIT, mix64
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.snapshot_view import difference, snapshot_view
from palaestra.testing.subject import Subject


def _players(subject: Subject) -> list[str]:
    """Names of all players: scripts, the random player, and the mixtures of scripts."""
    scripts = subject.game.scripts
    if not scripts and len(subject.game.teams) == 1:
        raise Skipped("a game of one team without scripts")
    return [*scripts, "random", *subject.game.mixtures]


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
        sim.reset(seed=subject.draw.seed())
        for number in subject.rounds(12, 60, 1000, None if subject.level == "full" else 0.3 / len(names)):
            sim.step()
            steps += sim.num_envs
            _check_legal(sim, f"script {name!r}, step {number}")
    subject.note(f"{steps} lane-steps of {', '.join(names)}")


@conformance(order=1002)
def weak_scripts_play_legally(subject: Subject) -> None:
    """A script of strength 0, and of a strength between 0 and 1, keeps to ranges and masks as well."""
    if not subject.game.scripts:
        raise Skipped("no scripts")
    steps = 0
    sim = subject.batch(4)
    strength = subject.draw.real("strength", 0.1, 0.9)
    names = [f"{name}:{share}" for name in subject.game.scripts for share in ("0", f"{strength:.3f}")]
    for name in names:
        _let_play(sim, name)
        sim.reset(seed=subject.draw.seed())
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
        seed = subject.draw.seed()
        for sim in (played, repeated):
            sim.reset(seed=seed)
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
    sim, seed = subject.batch(4), subject.draw.seed()
    sim.reset(seed=seed)
    without_script = snapshot_view(sim)
    for number, name in enumerate(names, 1):
        _let_play(sim, name)
        sim.seed(seed)
        sim.states["script_rng"] += np.uint64(7919 * number)
        sim.reset()
        found = difference(subject.game, without_script, snapshot_view(sim))
        require(not found, f"{found}: the start of a match without a script and with script {name!r}")


def script_draws(streams: np.ndarray) -> np.ndarray:
    """The next number in [0, 1) of each script stream, which moves on."""
    with np.errstate(over="ignore"):
        streams += GOLDEN
        return (mix64(streams) >> SHIFT_11) * TO_UNIT


@conformance(order=1005)
def strength_is_decision_share(subject: Subject) -> None:
    """At strength p a script decides where its draw is below p, and the random player elsewhere: 0 is that player.

    One agent at a time is played by ``"script:p"``; two twins in the same position, with the stream one draw further,
    play the script at full strength and the random player. Not of games whose hooks read ``s.strength``.
    """
    game, draw = subject.game, subject.draw
    if not game.scripts:
        raise Skipped("no scripts")
    lanes, looked, shares = (2, 4, (0.5,)) if subject.is_engine_game else (8, 8, (0.0, 1.0, None))
    sim, twin = subject.batch(lanes, autoreset_mode="off"), subject.batch(lanes, autoreset_mode="off")
    for team, slots in game.teams.items():
        for player, name in ((RANDOM, "random"), *enumerate(game.scripts)):
            sim.set_opponent(team, name)
            assigned = sim.states["assigned_player"][:, slots]
            require((assigned == player).all(), f"{team}: {name!r} is played by {assigned.tolist()}, not by {player}")
    if "strength" in attributes_in(hooks_of(game)):
        raise Skipped("its scripts grade themselves")
    counts = [0, 0]
    for number in subject.rounds(2 if subject.is_engine_game else 4, 8, 60):
        slot = draw.integer("slot", 0, len(game.agents) - 1)
        name = draw.choice("script", game.scripts)
        share = shares[number % len(shares)]
        strength = draw.real("strength", 0.2, 0.8) if share is None else share
        for team in game.teams:
            sim.set_opponent(team, None)
        sim.set_opponent(game.agents[slot], f"{name}:{strength!r}")
        sim.reset(seed=draw.seed())
        player = Player(sim)
        for step in range(looked):
            player.play(sim)
            words, states, saved = sim.buffers.action_words.copy(), sim.states.copy(), sim.snapshot()
            sim.step()
            asked = (states["pending"] == RUNNING) & (states["alive"][:, slot] & states["acting"][:, slot] != 0)
            scripted = script_draws(states["script_rng"].copy()) < strength
            for by_script in (False, True):
                twin.restore(saved)
                _repeat(twin, words, slot, game.scripts.index(name) if by_script else RANDOM, strength < 1.0)
                which = asked & (scripted == by_script)
                counts[by_script] += int(which.sum())
                player_name = f"{'script' if by_script else 'random player'} in place of {name}:{strength:.3f}"
                _same_actions(sim, twin, slot, which, f"step {step}, {player_name}")
    subject.note(f"{counts[1]} decisions of scripts, {counts[0]} at random")


def _repeat(twin: Any, words: np.ndarray, slot: int, player: int, drawn: bool) -> None:
    """Plays a decision again in which another player has a slot."""
    records = twin.states
    records["assigned_player"][:, slot] = records["current_player"][:, slot] = player
    records["strength"][:, slot] = 1.0
    if drawn:
        with np.errstate(over="ignore"):
            records["script_rng"] += GOLDEN
    twin.buffers.action_words[...] = words
    twin.step()


def _same_actions(sim: Any, twin: Any, slot: int, which: np.ndarray, place: str) -> None:
    for number in range(sim.action_table.first_word[slot], sim.action_table.first_word[slot + 1]):
        column = sim.action_table.words["column"][number]
        one, other = (s.buffers.action_words[:, column] for s in (sim, twin))
        for lane in np.flatnonzero(which & (one != other)):
            agent, name = sim.game.agents[slot], sim.action_table.names[number]
            require(False, f"lane {lane}, {agent}, {place}: {name} has the bits {one[lane]}, not {other[lane]}")


@conformance(order=1006)
def mix_draws_every_script(subject: Subject) -> None:
    """``"mix"`` draws a script for each team at each start, by the lane's own stream, and each script comes up.

    So does ``"held_out"``, of the scripts that are held out; ``"mix"`` draws none of these. Between two starts the
    script stays, and it plays as if it had been named.
    """
    scripts, held_out = subject.game.scripts, subject.game.held_out
    if not scripts:
        raise Skipped("no scripts")
    mixed = len(scripts) - len(held_out)
    _draws_every_script(subject, "mix", 0, scripts[:mixed])
    if held_out:
        _draws_every_script(subject, "held_out", mixed, held_out)
    subject.note(f"{len(scripts)} scripts")


def _draws_every_script(subject: Subject, mixture: str, first: int, scripts: tuple[str, ...]) -> None:
    """Looks at the starts of matches in which a mixture of scripts, numbered from ``first`` on, plays all teams."""
    game, draw, count = subject.game, subject.draw, len(scripts)
    lanes = 2 if subject.is_engine_game else draw.integer("lanes", 3, 12)
    sim, named = (subject.batch(lanes, autoreset_mode="off") for _ in range(2))
    for team in game.teams:
        sim.set_opponent(team, mixture)
    sim.reset(seed=draw.seed())
    least = 2 if subject.is_engine_game else 6
    seen: dict[str, set[int]] = {team: set() for team in game.teams}
    enough = 60 * count // lanes + 1  # a fair draw misses a script in fewer than one of 10**24 runs
    for number in range(enough):
        streams = sim.states["script_rng"].copy()
        sim.reset()
        for team, slots in game.teams.items():
            expected = first + (script_draws(streams) * count).astype(np.int64)
            for slot in slots:
                for lane in np.flatnonzero(sim.states["current_player"][:, slot] != expected):
                    drawn = sim.states["current_player"][lane, slot]
                    place = f"lane {lane}, {game.agents[slot]}"
                    require(False, f"{place}: {mixture} plays script {drawn}, drew {expected[lane]}")
            seen[team] |= set(expected.tolist())
        if number < least:
            _plays_as_named(subject, sim, named)
        elif all(len(drawn) == count for drawn in seen.values()):
            break
    for team, numbers in seen.items():
        missing = [name for number, name in enumerate(scripts, first) if number not in numbers]
        absent = ", ".join(missing)
        require(not missing, f"{mixture} never played {absent} for {team} in {enough} starts of {lanes} lanes")


def _plays_as_named(subject: Subject, sim: Any, named: Any) -> None:
    """Plays some decisions of mixed scripts, and the same with scripts that were named."""
    named.restore(sim.snapshot())
    named.states["assigned_player"] = named.states["current_player"]
    playing = sim.states["current_player"].copy()
    for number in range(4):
        for each in (sim, named):
            each.step()
        found = difference(subject.game, snapshot_view(named), snapshot_view(sim), leave_out=("rewards",))
        require(not found, f"{found}, step {number}: a script that was named, and the same one drawn by mix")
        for lane, slot in np.argwhere(
            (sim.states["current_player"] != playing) & (sim.states["pending"] == 0)[:, None]
        ):
            require(False, f"lane {lane}, slot {slot}: mix changed its script in the middle of a match")


@conformance(order=1007)
def scripts_ignore_current_actions(subject: Subject) -> None:
    """What a script does in a decision does not depend on the choices of other agents in the same decision."""
    game, draw = subject.game, subject.draw
    if not game.scripts or len(game.agents) < 2:
        raise Skipped("no scripts" if not game.scripts else "one agent")
    lanes = 2 if subject.is_engine_game else 6
    sim, twin = (subject.batch(lanes, autoreset_mode="off") for _ in range(2))
    looked = 0
    for _ in subject.rounds(2, 6, 60):
        slot = draw.integer("slot", 0, len(game.agents) - 1)
        for team in game.teams:
            sim.set_opponent(team, None)
        sim.set_opponent(game.agents[slot], draw.choice("script", game.scripts))
        sim.reset(seed=draw.seed())
        player, other = Player(sim), Player(sim)
        for step in range(3 if subject.is_engine_game else 8):
            player.play(sim)
            twin.restore(sim.snapshot())
            twin.buffers.action_words[...] = sim.buffers.action_words
            twin.lane_seeds[...] = sim.lane_seeds + np.uint64(4)
            other.play(twin)
            asked = (sim.states["pending"] == RUNNING) & (sim.states["current_player"][:, slot] != CALLER)
            for each in (sim, twin):
                each.step()
            _same_actions(sim, twin, slot, asked, f"step {step}, when the others choose differently")
            looked += int(asked.sum())
    subject.note(f"{looked} decisions of scripts")
