"""Representations: the same matches, seen in another way, within the bounds of their tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.faces.agent_io import NO_CODEC
from palaestra.core.faces.goals import ACHIEVED, DESIRED
from palaestra.game import Representation
from palaestra.testing.checks.standard_checks import contained
from palaestra.testing.drivers import drivers
from palaestra.testing.harness import Skipped, conformance, require
from palaestra.testing.players import Player
from palaestra.testing.random_walk import wrong_observation
from palaestra.testing.snapshot_view import difference, first_difference, snapshot_view
from palaestra.testing.subject import Subject

LANES = 6
SEEN = ("observations", "final observations")


@conformance(order=1103)
def representations_match(subject: Subject) -> None:
    """With any representation the matches are bitwise the same; what it shows is in its bounds and of its types.

    It depends on the record alone: written anew for some lanes, it is the same.
    """
    rules, _ = registry.make_game(subject.id, **{**subject.rules_keywords, "observation": None})
    shown = (subject.keywords.get("observation") or rules.default_observation).partition(":")[0]
    options = ["dict", *rules.representations]
    options.remove(shown if shown in options else "dict")
    if not rules.representations:
        raise Skipped("the game has no other representations")
    steps = 0
    for option in options:
        for opponents in ({}, subject.opponents()) if rules.scripts else ({},):
            steps += _walk(subject, option, opponents)
        _faces(subject, option)
    subject.note(f"{steps} lane-steps of {', '.join(options)}")


def _walk(subject: Subject, option: str, opponents: dict[str, str]) -> int:
    draw, options = subject.draw, {"autoreset_mode": "same_step", "opponents": opponents}
    if not opponents:
        options["horizon"] = draw.integer("horizon", 5, 40)
    plain, other = subject.batch(LANES, **options), subject.batch(LANES, observation=option, **options)
    is_same = other.game.global_state is plain.game.global_state is not None
    leave_out = SEEN if is_same else (*SEEN, "global state")
    seed, players = draw.seed(), (Player(plain), Player(other))
    for sim in (plain, other):
        sim.reset(seed=seed)
    steps = 0
    for number in subject.rounds(60, 240, 3000, 0.1 if subject.level == "fast" else None):
        place = f"observation={option!r}, step {number}"
        ours, theirs = snapshot_view(plain), snapshot_view(other)
        found = difference(subject.game, ours, theirs, leave_out=leave_out)
        require(not found, f"{place}: {found} (usual observations and these)")
        found = first_difference(plain.states, other.states)
        require(not found, f"{place}: the match record has {found} (usual observations and these)")
        found = wrong_observation(other)
        require(not found, f"{place}: {found}")
        other.refresh(np.arange(LANES) == number % LANES)
        found = first_difference(theirs["observations"], snapshot_view(other)["observations"])
        require(not found, f"{place}: written anew for lane {number % LANES} it is another: {found}")
        for sim, player in zip((plain, other), players, strict=True):
            if not opponents:
                player.play(sim)
            sim.step()
        steps += LANES
    return steps


def _faces(subject: Subject, option: str) -> None:
    codec: Any = {} if subject.game.default_codec is None else {"codec": NO_CODEC}
    for driver in drivers(subject, subject.draw.seed(), batch=False, observation=option, **codec):
        for number in range(3):
            seen = (driver.start() if number == 0 else driver.play())[0]
            place = f"{driver.name} with observation={option!r}, call {number}"
            if driver.name == "ParallelEnv":
                for agent, own in seen.items():
                    contained(driver.face.observation_space(agent), own, f"{place}, {agent}")
            else:
                contained(driver.face.observation_space, seen, place)


@conformance(order=1104)
def goal_rewards_are_paid(subject: Subject) -> None:
    """``compute_reward`` gives for the goals that a decision shows what it has paid, for one match and for many.

    It does not look at the match: asked for the goals of earlier decisions, it gives what they have paid.
    """
    game = subject.game
    if game.goal_reward is None:
        raise Skipped("the game has no rewards by goals")
    names = [name for name, shown in game.representations.items() if _has_goals(shown)]
    require(names, "no representation shows achieved_goal and desired_goal")
    option, lanes = f"{names[0]}:dict", LANES
    seed, rounds = subject.draw.seed(), list(subject.rounds(20, 60, 600))
    env, vec = subject.env(observation=option), subject.vec(lanes, observation=option, autoreset_mode="same_step")
    env.reset(seed=seed)
    vec.reset(seed=seed)
    for face in (env, vec):
        face.action_space.seed(seed % 2**32)
    achieved, desired, paid = [], [], []
    for number in rounds:
        seen, reward, terminated, truncated, info = env.step(env.action_space.sample())
        given = env.compute_reward(seen[ACHIEVED], seen[DESIRED], info=info)
        require(given == reward, f"Env, decision {number}: paid {reward}, compute_reward gives {given}")
        achieved, desired, paid = [*achieved, seen[ACHIEVED]], [*desired, seen[DESIRED]], [*paid, reward]
        if terminated or truncated:
            env.reset()
        seen, rewards, terminated, truncated, info = vec.step(vec.action_space.sample())
        runs = ~(terminated | truncated)  # where a match has ended, the next one is shown
        given = vec.compute_reward(seen[ACHIEVED], seen[DESIRED], info=info)
        wrong = np.flatnonzero(runs & (given != rewards))
        require(
            not len(wrong), f"VectorEnv, decision {number}, lanes {wrong}: paid {rewards[wrong]}, given {given[wrong]}"
        )
    given = env.compute_reward(np.array(achieved), np.array(desired))
    wrong = np.flatnonzero(given != np.array(paid, given.dtype))
    require(not len(wrong), f"Env, decisions {wrong}, asked for once more: {given[wrong]}")
    subject.note(f"{len(rounds) * (lanes + 1)} lane-steps of {names[0]}")


def _has_goals(shown: Representation) -> bool:
    return all({ACHIEVED, DESIRED} <= {f.name for f in table} for table in shown.observation.values())
