"""TeamPong: pong between two pairs of paddles, one in front and one at the back of each side.

## Description

The physics of Wimblepong (Aalto Intelligent Robotics group), which FM3Q (Hu, Zhu, Li and Zhao, arXiv 2402.00738) plays
two against two: an arena of 235 x 200 units, paddles of 5 x 20 that move 3 units in each of the three substeps of a
decision, a ball of 5 x 5, and returns that are the steeper the farther from the middle of the paddle the ball is met.
Written anew from these facts.

A paddle meets the ball on its way to the paddle's own wall, when the ball reaches the face of the paddle and the two
overlap. With offset d of the ball from the middle of the paddle, a share of its half length, -1 to 1, the bounce angle
is b = `bounce_deg` d, and the ball leaves with the velocity

    (3 (cos b + 1), 8 sin b) f        units in a substep, away from the wall,

where the speed factor f begins at `start_factor` and grows by `growth` with each hit, up to `greatest_factor`. Top and
bottom reflect the ball. What passes both paddles of a team is a point for the other.

What is ours, since the paper does not specify it: the middles of the back paddles are 10 units from their walls, as in
Wimblepong, those of the front paddles `front_gap`, 45. Both move over the whole height, so nothing but the agents
decides which paddle takes which ball: the front paddle returns early and leaves the opponents less time, the back one
has more time to come, and where both cover the same height they cover half as much. A ball that the back paddle
returns passes its teammate. With Wimblepong's own `growth` of 0.005 two good players do not miss; the default of 0.05
ends their matches.

## Action Space

<!-- table: action -->

## Observation Space

Each agent sees its own wall on the left: x points to the other team, y up. Positions are shares of half the arena's
width and height, so that the walls are at -1 and 1.

<!-- table: observation -->

## Rewards

+1 to the team that makes the point and -1 to the other.

## Starting State

The paddles start in the middle of the height and the ball in the middle of the arena. It flies to a side drawn
at random, as if returned with a bounce angle drawn uniformly from [-`serve_deg`, `serve_deg`).

## Episode End

By rule with a point (``point``). Truncated after 500 decisions: a draw. Info `hits` counts the returns.

## Arguments

The script ``tracker`` runs to where the ball will come, leaves it to its teammate where the teammate is there for it,
and aims away from the opponents; ``chaser`` follows the height of the ball.

<!-- table: options -->

<!-- table: parameters -->

## Version History

* v0: first version.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from palaestra.game import Choice, Field, Game, Option, Parameter, Role, integer, uniform, with_options

HALF_WIDTH, HALF_HEIGHT = 117.5, 100.0
"""Of the arena, units. The origin is in its middle, red's wall on the left, y points up."""
BALL = 5.0
"""Side of the ball, units."""
THICKNESS, BACK_GAP = 5.0, 10.0
"""Of a paddle, and from the wall to the middle of a back paddle, units."""
SUBSTEPS = 3
HIGHEST_BALL = HALF_HEIGHT - BALL / 2
ALONG, ACROSS = 3.0, 8.0
"""Speeds in the formula of a return, units in a substep."""

RED, BLUE = 0, 1
BACK, FRONT = 0, 1
"""Places of a paddle in its team."""
STAY, UP, DOWN = range(3)
POINT = 2
"""Number of the end reason."""
TRACKER, CHASER = 0, 1
"""Numbers of the scripts."""

SEEN_SPEED, SEEN_SPEEDS = 10.0, 2.4
"""Unit of the observed velocity, units in a substep, and its bound: more than ALONG and ACROSS allow at factor 3."""

MOVE = Choice("move", 3, ("stay", "up", "down"))
PARAMETERS = (
    Parameter("paddle_speed", 3.0, 0.0, 20.0, "units", "that a paddle moves in a substep"),
    Parameter("paddle_length", 20.0, 1.0, 100.0, "units", "length of a paddle"),
    Parameter("front_gap", 45.0, 20.0, 100.0, "units", "from the wall to the middle of a front paddle"),
    Parameter("start_factor", 0.42, 0.1, 3.0, "1", "speed factor of the serve"),
    Parameter("growth", 0.05, 0.0, 1.0, "1", "of the speed factor with each hit"),
    Parameter("greatest_factor", 3.0, 0.1, 3.0, "1", "greatest speed factor of a return"),
    Parameter("bounce_deg", 65.0, 0.0, 80.0, "deg", "bounce angle at the end of a paddle"),
    Parameter("serve_deg", 40.0, 0.0, 80.0, "deg", "greatest angle of a serve"),
)


def observation_table(players: int) -> tuple[Field, ...]:
    """What each agent sees."""
    bound = SEEN_SPEEDS
    return (
        Field("is_front", (), 0, 1, "1", "1 for front paddles, 0 for back ones"),
        Field("ball_position", (2,), -1, 1, "1", "of the ball, x and y", parts=("x", "y")),
        Field("ball_velocity", (2,), -bound, bound, "10 units in a substep", "of the ball, x and y", parts=("x", "y")),
        Field("own_y", (), -1, 1, "1", "own height"),
        Field("teammate_y", (players - 1,), -1, 1, "1", "height of the teammate"),
        Field(
            "opponent_y",
            (players,),
            -1,
            1,
            "1",
            "heights of the opponents, the back paddle first",
            parts=tuple(f"opponent {k}" for k in range(players)),
        ),
    )


# -- rules -------------------------------------------------------------------------------------------------------------


def reset(s, world):
    """Paddles in the middle, the ball on its way to a side drawn at random."""
    p = s.parameters
    side = 1.0 if integer(s, 2) else -1.0
    angle_rad = math.radians(uniform(s, -p.serve_deg, p.serve_deg))
    s.speed_factor = p.start_factor
    send(s, side, angle_rad)


def send(s, direction, angle_rad):
    """Sends the ball off: to the right for direction 1, to the left for -1, upwards for angles above 0."""
    s.ball_velocity[0] = direction * (ALONG * (math.cos(angle_rad) + 1.0) * s.speed_factor)
    s.ball_velocity[1] = ACROSS * math.sin(angle_rad) * s.speed_factor


def step(s, world, actions, rewards, scratch):
    """Three substeps: paddles, then the ball."""
    players = len(s.paddle_y) // 2
    for _ in range(SUBSTEPS):
        for slot in range(len(s.paddle_y)):
            move_paddle(s, slot, actions.paddle[slot].move)
        team = BLUE if s.ball_velocity[0] > 0.0 else RED  # whose wall the ball is on its way to
        if move_ball(s, team):
            s.info.winner, s.info.end_reason = 1 - team, POINT
            for slot in range(len(s.paddle_y)):
                rewards[slot] = -1.0 if slot // players == team else 1.0
            return True
    return False


def move_paddle(s, slot, move):
    """Up or down as far as the arena goes."""
    highest = HALF_HEIGHT - 0.5 * s.parameters.paddle_length
    if move == UP:
        s.paddle_y[slot] = min(s.paddle_y[slot] + s.parameters.paddle_speed, highest)
    elif move == DOWN:
        s.paddle_y[slot] = max(s.paddle_y[slot] - s.parameters.paddle_speed, -highest)


def move_ball(s, team):
    """One substep of the ball towards the wall of a team, whose paddles may meet it. Returns whether it gets there."""
    side = wall_side(team)
    y = s.ball_position[1]
    ahead = side * s.ball_position[0]
    ahead_after = ahead + side * s.ball_velocity[0]
    players = len(s.paddle_y) // 2
    for k in range(players):
        place = players - 1 - k  # the front paddle comes first
        face = face_of(s, place)
        if ahead < face <= ahead_after:
            share = (face - ahead) / (ahead_after - ahead)
            y_there = reflected(y + share * s.ball_velocity[1])
            if meet(s, team * players + place, y_there, -side):
                s.ball_position[0], s.ball_position[1] = side * face, y_there
                return False
    s.ball_position[0] = side * ahead_after
    y += s.ball_velocity[1]
    s.ball_position[1] = reflected(y)
    if abs(y) > HIGHEST_BALL:
        s.ball_velocity[1] = -s.ball_velocity[1]
    return ahead_after >= HALF_WIDTH


def wall_side(team):
    """-1 for red, whose wall is on the left, 1 for blue."""
    return 1.0 if team == BLUE else -1.0


def face_of(s, place):
    """Distance from the middle line at which the ball touches a paddle."""
    return HALF_WIDTH - gap_of(s, place) - 0.5 * (THICKNESS + BALL)


def gap_of(s, place):
    """Distance from the wall to the middle of a paddle."""
    return s.parameters.front_gap if place == FRONT else BACK_GAP


def reflected(y):
    """Height of a ball that was at ``y`` if top and bottom did not reflect it (once)."""
    if y > HIGHEST_BALL:
        return 2.0 * HIGHEST_BALL - y
    return -2.0 * HIGHEST_BALL - y if y < -HIGHEST_BALL else y


def meet(s, slot, y, direction):
    """The ball reaches the face of a paddle at height ``y``: where they overlap it is returned. Returns whether."""
    p = s.parameters
    offset = y - s.paddle_y[slot]
    half = 0.5 * p.paddle_length
    if abs(offset) > half + 0.5 * BALL:
        return False
    share = min(max(offset / half, -1.0), 1.0)
    s.speed_factor = min(s.speed_factor + p.growth, p.greatest_factor)
    send(s, direction, math.radians(p.bounce_deg * share))
    s.info.hits += 1
    return True


def observe(s, world, observations, scratch):
    """Each agent sees its own wall on the left."""
    players = len(s.paddle_y) // 2
    ball_x = min(max(s.ball_position[0] * (1.0 / HALF_WIDTH), -1.0), 1.0)
    ball_y = s.ball_position[1] * (1.0 / HALF_HEIGHT)
    velocity_x, velocity_y = s.ball_velocity[0] * (1.0 / SEEN_SPEED), s.ball_velocity[1] * (1.0 / SEEN_SPEED)
    for team in range(2):
        ahead = -wall_side(team)
        own, opponents = team * players, (1 - team) * players
        for k in range(players):
            seen = observations.paddle[own + k]
            seen.is_front = k
            seen.ball_position[0], seen.ball_position[1] = ahead * ball_x, ball_y
            seen.ball_velocity[0], seen.ball_velocity[1] = ahead * velocity_x, velocity_y
            seen.own_y = s.paddle_y[own + k] * (1.0 / HALF_HEIGHT)
            if players == 2:
                seen.teammate_y[0] = s.paddle_y[own + 1 - k] * (1.0 / HALF_HEIGHT)
            for j in range(players):
                seen.opponent_y[j] = s.paddle_y[opponents + j] * (1.0 / HALF_HEIGHT)


# -- scripts -----------------------------------------------------------------------------------------------------------

AIMS = (-0.7, -0.35, 0.0, 0.35, 0.7)
"""Offsets from the middle of the paddle at which a tracker thinks of meeting the ball, shares of its half length."""
ANSWER = 0.5
"""Where a tracker waits while the opponents have the ball, as a share of the ball's height."""
NEVER = 1e9


def script(s, world, slot, which, actions, scratch):
    """Moves towards the height where the paddle wants to be."""
    wanted = s.ball_position[1] if which == CHASER else tracked_height(s, slot)
    way = wanted - s.paddle_y[slot]
    near = 0.5 * SUBSTEPS * s.parameters.paddle_speed  # a whole decision would lead past it
    actions.paddle[slot].move = UP if way > near else (DOWN if way < -near else STAY)


def tracked_height(s, slot):
    """Where a tracker wants to be: at the ball that it takes, else where its teammate is not."""
    players = len(s.paddle_y) // 2
    team, place = slot // players, slot % players
    if wall_side(team) * s.ball_velocity[0] <= 0.0:
        return waiting_height(s, players, place)
    if players == 2 and place == BACK and can_come(s, slot + 1, FRONT):
        return waiting_height(s, players, BACK)
    if players == 2 and place == FRONT and not can_come(s, slot, FRONT):
        return waiting_height(s, players, FRONT)
    return aimed_height(s, slot, arrival_height(s, team, place))


def waiting_height(s, players, place):
    """The front paddle stays on the side of the ball, the back one on the other; alone, in the middle."""
    if players == 1:
        return 0.0
    return (ANSWER if place == FRONT else -ANSWER) * s.ball_position[1]


def arrival_substeps(s, team, place):
    """Substeps until the ball gets to the face of a paddle; `NEVER` once it has passed."""
    way = face_of(s, place) - wall_side(team) * s.ball_position[0]
    return way / abs(s.ball_velocity[0]) if way > 0.0 else NEVER


def arrival_height(s, team, place):
    """Height at which the ball gets there."""
    substeps = arrival_substeps(s, team, place)
    return s.ball_position[1] if substeps == NEVER else folded(s.ball_position[1] + substeps * s.ball_velocity[1])


def folded(y):
    """Height of a ball that was at ``y`` if top and bottom did not reflect it, however often."""
    turn = (y + HIGHEST_BALL) / (4.0 * HIGHEST_BALL)
    turn -= math.floor(turn)
    return HIGHEST_BALL * (4.0 * min(turn, 1.0 - turn) - 1.0)


def can_come(s, slot, place):
    """Whether a paddle can be at the ball in time."""
    team = slot // (len(s.paddle_y) // 2)
    substeps = arrival_substeps(s, team, place)
    way = abs(arrival_height(s, team, place) - s.paddle_y[slot]) - 0.5 * s.parameters.paddle_length
    return substeps != NEVER and way <= substeps * s.parameters.paddle_speed


def aimed_height(s, slot, arrival):
    """Where the paddle should be to send a ball that comes at height ``arrival`` farthest from the opponents."""
    players = len(s.paddle_y) // 2
    opponents = (1 - slot // players) * players
    flight = face_of(s, slot % players) + face_of(s, BACK)
    best, farthest = arrival, -1.0
    for k in range(len(AIMS)):
        angle_rad = math.radians(s.parameters.bounce_deg * AIMS[k])
        slope = ACROSS * math.sin(angle_rad) / (ALONG * (math.cos(angle_rad) + 1.0))
        end = folded(arrival + slope * flight)
        away = abs(end - s.paddle_y[opponents])
        for j in range(1, players):
            away = min(away, abs(end - s.paddle_y[opponents + j]))
        if away > farthest:
            best, farthest = arrival - AIMS[k] * 0.5 * s.parameters.paddle_length, away
    return best


# -- the game ----------------------------------------------------------------------------------------------------------


def mirror(states: Any, actions: Any) -> None:
    """Exchanges the teams and turns x around."""
    slots = states["paddle_y"].shape[1]
    exchanged = (np.arange(slots) + slots // 2) % slots
    for name in ("paddle_y", "alive", "acting"):
        states[name] = states[name][:, exchanged]
    states["ball_position"][:, 0] *= -1.0
    states["ball_velocity"][:, 0] *= -1.0
    actions["paddle"] = actions["paddle"][:, exchanged]


@with_options(Option("players", 2, "of a team; 1 has the back paddles alone, which is Wimblepong", low=1, high=2))
def game(options: Any) -> Game:
    """The rules of `palaestra/TeamPong-v0`."""
    players = options.players
    agents = tuple(f"{team}_{k}" for team in ("red", "blue") for k in range(players))
    return Game(
        name="TeamPong",
        roles=(Role("paddle", agents, observation_table(players), (MOVE,)),),
        state=(
            ("ball_position", "f8", (2,)),
            ("ball_velocity", "f8", (2,)),
            ("speed_factor", "f8"),
            ("paddle_y", "f8", (len(agents),)),
        ),
        reset=reset,
        step=step,
        observe=observe,
        script=script,
        scripts=("tracker", "chaser"),
        parameters=PARAMETERS,
        horizon=500,
        info=(Field("hits", (), 0, 1e6, "1", "returns so far", "i8"),),
        end_reasons=("point",),
        zero_sum=True,
        determinism="per-platform",
        default_opponent="tracker",
        render="palaestra.games.teams.render_pong:draw_pong",
        render_fps=30.0,
        symmetric_teams=True,
        mirror=mirror,
    )
