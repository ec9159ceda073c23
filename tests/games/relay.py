"""Relay: a test game of two unlike teams in which everything but the actions follows from the number of decisions.

Red has two runners, blue a runner and a keeper; the slots of the teams alternate. The second red runner arrives after
`ARRIVES` decisions, the blue runner leaves after `LEAVES`. Slots of even and of odd number act in turns. A decision
pays red its number, and blue the opposite.
"""

from __future__ import annotations

from typing import Any

from palaestra.game import Choice, Field, Game, Parameter, Role

ARRIVES, LEAVES, HORIZON, OVER = 2, 3, 5, 2
LATE, LEAVER = 2, 1
AGENTS = ("red_0", "blue_0", "red_1", "blue_1")


def take_turns(s):
    for a in range(4):
        s.acting[a] = s.alive[a] and (s.steps + a) % 2 == 0


def reset(s, world):
    s.alive[LATE] = 0
    take_turns(s)


def step(s, world, actions, rewards, scratch):
    for a in range(3):
        s.last[a] = actions.runner[a].move
    s.last[3] = actions.keeper[0].guard
    if s.steps == ARRIVES:
        s.alive[LATE] = 1
    if s.steps == LEAVES:
        s.alive[LEAVER] = 0
    take_turns(s)
    for a in range(4):
        rewards[a] = 1.0 * s.steps if a % 2 == 0 else -1.0 * s.steps
    if s.steps == s.parameters.ends_at:
        s.info.winner, s.info.end_reason = 0, OVER
        return True
    return False


def observe(s, world, observations, scratch):
    for a in range(3):
        if s.alive[a]:
            observations.runner[a].slot = a
            observations.runner[a].time = s.steps
            observations.runner[a].last = s.last[a]
    observations.keeper[0].slot = 3
    observations.keeper[0].time = s.steps


def legal(s, world, mask):
    for a in range(3):
        for j in range(3):
            mask.runner[a].move[j] = j != 1 + s.steps % 2
    mask.keeper[0].guard[0] = mask.keeper[0].guard[1] = 1


def script(s, world, slot, which, actions, scratch):
    if slot < 3:
        actions.runner[slot].move = 1 + (s.steps + 1) % 2
    else:
        actions.keeper[0].guard = 1


def global_state(s, world, out):
    out[0], out[1] = s.steps, 10.0 * s.steps


def game(**changes: Any) -> Game:
    """The rules; the parameter ``ends_at`` is the decision after which a rule ends the match."""
    runner = (Field("slot", (), 0, 3), Field("time", (), 0, HORIZON), Field("last", (), 0, 2))
    keeper = (Field("slot", (), 0, 3), Field("time", (), 0, HORIZON))
    given: dict[str, Any] = {
        "name": "Relay",
        "roles": (
            Role("runner", AGENTS[:3], runner, (Choice("move", 3),)),
            Role("keeper", AGENTS[3:], keeper, (Choice("guard", 2),)),
        ),
        "state": (("last", "i8", (4,)),),
        "reset": reset,
        "step": step,
        "observe": observe,
        "legal": legal,
        "script": script,
        "scripts": ("eager",),
        "parameters": (Parameter("ends_at", 1000, 1, 1000),),
        "horizon": HORIZON,
        "end_reasons": ("over",),
        "global_state": global_state,
        "global_state_size": 2,
        "zero_sum": True,
        "determinism": "cross-platform",
        "default_opponent": "eager",
    }
    return Game(**{**given, **changes})
