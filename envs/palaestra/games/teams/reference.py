"""Reference: each of two agents knows the goal of the other and sends it messages.

## Description

The task of Mordatch and Abbeel ("Emergence of grounded compositional language in multi-agent populations", AAAI 2018)
in the form of Lowe et al. (NeurIPS 2017). Two agents and three coloured landmarks are on an unbounded plane; each agent
sees the colour of the landmark to which *the other* should go. In each decision an agent thrusts and sends one of ten
messages, which the other receives in the next; they have to learn what a message means. Bodies pass through each other.
States follow mpe2's `simple_reference_v3` bit for bit (`palaestra.games.teams.particles`). A decision is 0.1 s.

## Action Space

<!-- table: action -->

With ``actions="continuous"`` the choice `move` is replaced by two numbers in [-1, 1], `force`: thrust to the right and
up as a share of the greatest; and `word` by ten numbers in [0, 1], `words`.

## Observation Space

An offset is the other's position minus one's own. What lies beyond the bounds is clipped; there are none in mpe2.

<!-- table: observation -->

## Rewards

``reward="dense"``: minus the mean distance of the two agents from their goals, in each decision.
``reward="sparse"``: +1 in each decision after which both are within `goal_radius_m` of their goals, else 0.
``reward="first"``: +1 after the first such decision, which ends the match; 0 before.
``reward="event"``: the change of the number of agents at their goals, which is 0 before the first decision: +1 for each
that arrives, -1 for each that leaves. So the return is the number of agents that are there at the end.

`SparseReference-v0` is a task of exploration: continuous actions, ``reward="first"``, a radius of 0.25 m. Random play
solves 0.85 % of the matches, the script all (100,000 matches each). The dense task beside it is `Reference-v0` with
continuous actions.

## Starting State

Agents and landmarks are anywhere in the square of 2 m around the origin, uniformly, at rest; no message was
sent. Goals are drawn independently: both may be the same.

## Episode End

Truncated after 25 decisions. With ``reward="first"`` terminated when both agents are at their goals (`solved`). The
winner is the team if both are there at the end, else there is none; the info `arrived` counts the agents that are there
now.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from palaestra.game import Field, Game, Option, Parameter, Role, integer, uniform, with_options
from palaestra.games.teams import particles
from palaestra.games.teams.messages import (
    MASS_KG,
    NEAR_M,
    START_M,
    loudest,
    message_of,
    say_word,
    say_words,
    write_color,
)
from palaestra.games.teams.particles import (
    ACTIONS,
    COAST_S,
    GOAL_REWARD,
    OPEN_M,
    OPEN_MPS,
    advance,
    write_offset,
    write_vector,
)
from palaestra.kernels.vectors import distance

AGENTS, LANDMARKS, WORDS = 2, 3, 10
DARK, BRIGHT = 0.25, 0.75
"""Of the colours (mpe2)."""

PARAMETERS = (
    Parameter("local_ratio", 0.5, 0.0, 1.0, "1", 'share of its own task in a reward of `rules="mpe"` (mpe2)'),
    Parameter("goal_radius_m", 0.1, 0.01, 1.0, "m", "distance within which an agent is at its goal"),
    Parameter("force_n", 5.0, 0.0, 20.0, "N", "greatest thrust of an agent, which weighs 1 kg (mpe2)"),
)
SEEN = (
    Field("velocity_mps", (2,), -OPEN_MPS, OPEN_MPS, "m/s", "own velocity, right and up", parts=("x", "y")),
    Field(
        "landmark_offset_m", (LANDMARKS, 2), -2 * OPEN_M, 2 * OPEN_M, "m", "offsets of the landmarks", parts=("x", "y")
    ),
    Field(
        "goal_color",
        (3,),
        0,
        1,
        "1",
        "colour of the other's goal: 0.75 for its landmark, 0.25 else",
        parts=tuple(f"landmark {k}" for k in range(LANDMARKS)),
    ),
    Field(
        "heard",
        (WORDS,),
        0,
        1,
        "1",
        "message of the other in the last decision, one-hot if discrete",
        parts=tuple(f"word {k}" for k in range(WORDS)),
    ),
)


# --------------------------------------------------------------------------------------------------------------- rules


def reset(s, world):
    """Draws all positions uniformly in the square; ``s.goal[i]`` is the landmark that agent i should go to."""
    for i in range(AGENTS):
        s.goal[i] = integer(s, LANDMARKS)
    for i in range(AGENTS + LANDMARKS):
        s.position_m[i, 0], s.position_m[i, 1] = uniform(s, -START_M, START_M), uniform(s, -START_M, START_M)


def step_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions."""
    particles.thrust_by_moves(actions.agent, 0, s.parameters.force_n, scratch)
    for i in range(AGENTS):
        say_word(s.said[i], actions.agent[i].word)
    return play(s, world, rewards, scratch)


def step_by_forces(s, world, actions, rewards, scratch):
    """One decision with continuous actions."""
    particles.thrust_by_forces(actions.agent, 0, s.parameters.force_n, scratch)
    for i in range(AGENTS):
        say_words(s.said[i], actions.agent[i].words)
    return play(s, world, rewards, scratch)


def goals_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions, paid by ``reward="first"`` or ``"event"``."""
    before = s.info.arrived
    step_by_moves(s, world, actions, rewards, scratch)
    return particles.pay_goals(s, world, rewards, before, s.info.arrived, AGENTS)


def goals_by_forces(s, world, actions, rewards, scratch):
    """The same with continuous actions."""
    before = s.info.arrived
    step_by_forces(s, world, actions, rewards, scratch)
    return particles.pay_goals(s, world, rewards, before, s.info.arrived, AGENTS)


def play(s, world, rewards, scratch):
    """All agents move, then the distances are paid."""
    for i in range(AGENTS):
        advance(s, scratch, i, MASS_KG, math.inf)
    first_m, second_m = distance(s.position_m, 0, AGENTS + s.goal[0]), distance(s.position_m, 1, AGENTS + s.goal[1])
    radius_m = s.parameters.goal_radius_m
    s.info.arrived = int(first_m <= radius_m) + int(second_m <= radius_m)
    shared, ratio = (-second_m - first_m) / AGENTS, s.parameters.local_ratio
    for i in range(AGENTS):
        if world.reward:
            rewards[i] = 1.0 * (s.info.arrived == AGENTS)
        elif world.rules:
            task = -second_m if i == 0 else -first_m
            rewards[i] = shared * (1.0 - ratio) + task * ratio
        else:
            rewards[i] = shared
    if s.steps >= s.parameters.horizon and s.info.arrived == AGENTS:
        s.info.winner = 0
    return False


def observe(s, world, observations, scratch):
    """The landmarks, the other's goal and the other's message."""
    for i in range(AGENTS):
        seen, other = observations.agent[i], 1 - i
        write_vector(seen.velocity_mps, s.velocity_mps[i], OPEN_MPS)
        for k in range(LANDMARKS):
            write_offset(seen.landmark_offset_m[k], s, AGENTS + k, i, 2 * OPEN_M)
        write_color(seen.goal_color, s.goal[other], DARK, BRIGHT)
        for k in range(WORDS):
            seen.heard[k] = s.said[other, k]


# ------------------------------------------------------------------------------------------------------------- scripts


def script_by_moves(s, world, slot, which, actions, scratch):
    """Sends the number of the other's landmark and goes to the one that it receives; discrete."""
    action = actions.agent[slot]
    action.word = s.goal[1 - slot]
    dx, dy = way_to_heard(s, slot, 1 - slot)
    particles.choose_move(action, dx, dy, NEAR_M)


def script_by_forces(s, world, slot, which, actions, scratch):
    """Sends the number of the other's landmark and goes to the one that it receives; continuous."""
    action = actions.agent[slot]
    action.words[s.goal[1 - slot]] = 1.0
    dx, dy = way_to_heard(s, slot, 1 - slot)
    particles.choose_force(action, dx, dy, NEAR_M)


def way_to_heard(s, i, speaker):
    """Vector from where a body would come to rest to the landmark of the message; (0, 0) without a message."""
    heard = loudest(s.said[speaker], LANDMARKS)
    goal = AGENTS + heard if heard >= 0 else i
    dx = s.position_m[goal, 0] - s.position_m[i, 0] - COAST_S * s.velocity_mps[i, 0]
    dy = s.position_m[goal, 1] - s.position_m[i, 1] - COAST_S * s.velocity_mps[i, 1]
    return dx, dy


@with_options(
    ACTIONS,
    Option(
        "rules",
        "team",
        "`mpe` has the rewards of mpe2, rounded to float32: each agent gets `local_ratio` times minus the distance of "
        "*the other* from its goal, plus the common reward times the rest. `local_ratio` has no effect with `team`",
        words=("team", "mpe"),
    ),
    replace(GOAL_REWARD, only={"rules": "team"}),
)
def game(options: Any) -> Game:
    """The rules of `palaestra/Reference-v0`."""
    names = tuple(f"agent_{k}" for k in range(AGENTS))
    is_discrete = options.actions == "discrete"
    pays_goals = particles.are_goals_paid(options.reward)
    by_moves, by_forces = (goals_by_moves, goals_by_forces) if pays_goals else (step_by_moves, step_by_forces)
    return Game(
        name="Reference",
        roles=(Role("agent", names, SEEN, (particles.action_of(options.actions), message_of(options.actions, WORDS))),),
        state=(
            ("position_m", "f8", (AGENTS + LANDMARKS, 2)),
            ("velocity_mps", "f8", (AGENTS, 2)),
            ("said", "f8", (AGENTS, WORDS)),
            ("goal", "i8", (AGENTS,)),
        ),
        reset=reset,
        step=by_moves if is_discrete else by_forces,
        observe=observe,
        script=script_by_moves if is_discrete else script_by_forces,
        scripts=("default",),
        parameters=PARAMETERS,
        horizon=25,
        end_reasons=particles.end_reasons_of(options.reward),
        info=(Field("arrived", (), 0, AGENTS, "1", "agents that are at their goals now", "i8"),),
        scratch=(("force_n", "f8", (AGENTS, 2)),),
        world=options.numbers,
        determinism="cross-platform",
        default_opponent="default",
        render="palaestra.games.teams.render_particles:draw_talk",
        mirror=particles.mirror_left_right,
    )
