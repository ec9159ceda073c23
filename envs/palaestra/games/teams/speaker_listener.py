"""SpeakerListener: one agent knows the goal and can only send messages, the other can only move.

## Description

The task of Lowe et al. ("Multi-agent actor-critic for mixed cooperative-competitive environments", NeurIPS 2017): three
coloured landmarks are on an unbounded plane. The speaker (``agent_0``) sees the colour of one of them and sends one of
three messages; the listener (``agent_1``) receives it in the next decision and should go to that landmark. It is mpe2's
`simple_speaker_listener_v4`: the same states bit for bit, the same observations and rewards rounded to float32
(`palaestra.games.teams.particles`). A decision is 0.1 s.

## Action Space

<!-- table: action -->

With ``actions="continuous"`` the choice `move` is replaced by two numbers in [-1, 1], `force`: thrust to the right and
up as a share of the greatest; and `word` by three numbers in [0, 1], `words`.

## Observation Space

An offset is the landmark's position minus the listener's. What lies beyond the bounds is clipped; there are none in
mpe2.

<!-- table: observation -->

## Rewards

``reward="dense"``: minus the squared distance of the listener from the goal (m^2), in each decision.
``reward="sparse"``: +1 in each decision after which the listener is within `goal_radius_m` of the goal, else 0.
``reward="first"``: +1 after the first such decision, which ends the match; 0 before.
``reward="event"``: +1 when the listener arrives, -1 when it leaves.

`SparseSpeakerListener-v0` is a task of exploration: continuous actions, ``reward="first"``, a radius of 0.04 m. Random
play solves 1.6 % of the matches, the script 98.7 % (100,000 matches each). The dense task beside it is
`SpeakerListener-v0` with continuous actions.

## Starting State

Listener and landmarks are anywhere in the square of 2 m around the origin, uniformly, at rest; no message was sent.

## Episode End

Truncated after 25 decisions. With ``reward="first"`` terminated when the listener is at the goal (`solved`). The winner
is the team if the listener is there at the end, else there is none; the info `arrived` is 1 if it is there now.

## Arguments

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Any

from palaestra.game import Field, Game, Parameter, Role, integer, uniform, with_options
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

LISTENER, LANDMARKS, WORDS = 0, 3, 3
"""The listener is the only body that moves: number 0, slot 1."""
DARK, BRIGHT = 0.15, 0.65
"""Of the colours (mpe2)."""

PARAMETERS = (
    Parameter("goal_radius_m", 0.1, 0.01, 1.0, "m", "distance within which the listener is at the goal"),
    Parameter("force_n", 5.0, 0.0, 20.0, "N", "greatest thrust of the listener, which weighs 1 kg (mpe2)"),
)
SPEAKER_OBSERVATION = (
    Field(
        "goal_color",
        (3,),
        0,
        1,
        "1",
        "colour of the goal: 0.65 for its landmark, 0.15 else",
        parts=tuple(f"landmark {k}" for k in range(LANDMARKS)),
    ),
)
LISTENER_OBSERVATION = (
    Field("velocity_mps", (2,), -OPEN_MPS, OPEN_MPS, "m/s", "own velocity, right and up", parts=("x", "y")),
    Field(
        "landmark_offset_m", (LANDMARKS, 2), -2 * OPEN_M, 2 * OPEN_M, "m", "offsets of the landmarks", parts=("x", "y")
    ),
    Field(
        "heard",
        (WORDS,),
        0,
        1,
        "1",
        "message of the speaker in the last decision, one-hot if discrete",
        parts=tuple(f"word {k}" for k in range(WORDS)),
    ),
)


# --------------------------------------------------------------------------------------------------------------- rules


def reset(s, world):
    """Draws all positions uniformly in the square."""
    s.goal = integer(s, LANDMARKS)
    for i in range(1 + LANDMARKS):
        s.position_m[i, 0], s.position_m[i, 1] = uniform(s, -START_M, START_M), uniform(s, -START_M, START_M)


def step_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions."""
    particles.thrust_by_moves(actions.listener, LISTENER, s.parameters.force_n, scratch)
    say_word(s.said, actions.speaker[0].word)
    return play(s, world, rewards, scratch)


def step_by_forces(s, world, actions, rewards, scratch):
    """One decision with continuous actions."""
    particles.thrust_by_forces(actions.listener, LISTENER, s.parameters.force_n, scratch)
    say_words(s.said, actions.speaker[0].words)
    return play(s, world, rewards, scratch)


def goals_by_moves(s, world, actions, rewards, scratch):
    """One decision with discrete actions, paid by ``reward="first"`` or ``"event"``."""
    before = s.info.arrived
    step_by_moves(s, world, actions, rewards, scratch)
    return particles.pay_goals(s, world, rewards, before, s.info.arrived, 1)


def goals_by_forces(s, world, actions, rewards, scratch):
    """The same with continuous actions."""
    before = s.info.arrived
    step_by_forces(s, world, actions, rewards, scratch)
    return particles.pay_goals(s, world, rewards, before, s.info.arrived, 1)


def play(s, world, rewards, scratch):
    """The listener moves, then its distance is paid."""
    advance(s, scratch, LISTENER, MASS_KG, math.inf)
    goal = 1 + s.goal
    dx = s.position_m[LISTENER, 0] - s.position_m[goal, 0]
    dy = s.position_m[LISTENER, 1] - s.position_m[goal, 1]
    square = dx * dx + dy * dy
    s.info.arrived = int(math.sqrt(square) <= s.parameters.goal_radius_m)
    for a in range(2):
        rewards[a] = 1.0 * s.info.arrived if world.reward else -square
    if s.steps >= s.parameters.horizon and s.info.arrived:
        s.info.winner = 0
    return False


def observe(s, world, observations, scratch):
    """The speaker sees the goal, the listener the landmarks and the message."""
    write_color(observations.speaker[0].goal_color, s.goal, DARK, BRIGHT)
    seen = observations.listener[0]
    write_vector(seen.velocity_mps, s.velocity_mps[LISTENER], OPEN_MPS)
    for k in range(LANDMARKS):
        write_offset(seen.landmark_offset_m[k], s, 1 + k, LISTENER, 2 * OPEN_M)
    for k in range(WORDS):
        seen.heard[k] = s.said[k]


# ------------------------------------------------------------------------------------------------------------- scripts


def script_by_moves(s, world, slot, which, actions, scratch):
    """The speaker sends the number of the landmark, the listener goes to the one that it receives; discrete."""
    if slot == 0:
        actions.speaker[0].word = s.goal
    else:
        dx, dy = way_to_heard(s)
        particles.choose_move(actions.listener[0], dx, dy, NEAR_M)


def script_by_forces(s, world, slot, which, actions, scratch):
    """The speaker sends the number of the landmark, the listener goes to the one that it receives; continuous."""
    if slot == 0:
        actions.speaker[0].words[s.goal] = 1.0
    else:
        dx, dy = way_to_heard(s)
        particles.choose_force(actions.listener[0], dx, dy, NEAR_M)


def way_to_heard(s):
    """Vector from where the listener would come to rest to the landmark of the message; to a stop without one."""
    goal = 1 + loudest(s.said, LANDMARKS)  # the listener itself is body 0
    dx = s.position_m[goal, 0] - s.position_m[LISTENER, 0] - COAST_S * s.velocity_mps[LISTENER, 0]
    dy = s.position_m[goal, 1] - s.position_m[LISTENER, 1] - COAST_S * s.velocity_mps[LISTENER, 1]
    return dx, dy


@with_options(ACTIONS, GOAL_REWARD)
def game(options: Any) -> Game:
    """The rules of `palaestra/SpeakerListener-v0`."""
    move = particles.action_of(options.actions)
    is_discrete = options.actions == "discrete"
    pays_goals = particles.are_goals_paid(options.reward)
    by_moves, by_forces = (goals_by_moves, goals_by_forces) if pays_goals else (step_by_moves, step_by_forces)
    return Game(
        name="SpeakerListener",
        roles=(
            Role("speaker", ("agent_0",), SPEAKER_OBSERVATION, (message_of(options.actions, WORDS),)),
            Role("listener", ("agent_1",), LISTENER_OBSERVATION, (move,)),
        ),
        state=(
            ("position_m", "f8", (1 + LANDMARKS, 2)),
            ("velocity_mps", "f8", (1, 2)),
            ("said", "f8", (WORDS,)),
            ("goal", "i8"),
        ),
        reset=reset,
        step=by_moves if is_discrete else by_forces,
        observe=observe,
        script=script_by_moves if is_discrete else script_by_forces,
        scripts=("default",),
        parameters=PARAMETERS,
        horizon=25,
        end_reasons=particles.end_reasons_of(options.reward),
        info=(Field("arrived", (), 0, 1, "1", "1 if the listener is at the goal now", "i8"),),
        scratch=(("force_n", "f8", (1, 2)),),
        world=options.numbers,
        determinism="cross-platform",
        default_opponent="default",
        render="palaestra.games.teams.render_particles:draw_talk",
        mirror=particles.mirror_left_right,
    )
