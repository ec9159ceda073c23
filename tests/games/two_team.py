"""Raid: two unequal teams on a small graph, a test game in which every feature of the core is a rule.

Red (two scouts and a guard) meets blue (a scout and a guard). The teams take turns: red decides, then blue. A scout
walks along the edges of the graph and scores when it stands in the other team's home after its team's turn. A guard
walks too, or strikes all agents of the other team on its own node. Red's second scout arrives late. The first
team that has `GOALS` goals, or whose opponents are all gone, wins; every goal pays its team what the other
team pays.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np

from palaestra.game import (
    AgentView,
    Choice,
    Continuous,
    Field,
    Game,
    Parameter,
    Role,
    TextSpace,
    script_integer,
    uniform,
)

RED, BLUE = 0, 1
EXITS = 3  # largest number of edges at a node
GOALS = 3
SCORED, WIPED_OUT = 2, 3
RUNNER, FIGHTER, IDLER = 0, 1, 2

# Slots: red_0, red_1, blue_0 are scouts, red_2 and blue_1 are guards, so no team's slots lie side by side.
TEAM = (RED, RED, BLUE, RED, BLUE)
IS_GUARD = (0, 0, 0, 1, 1)
INDEX = (0, 1, 2, 0, 1)  # within the role
LATE = 1
AGENTS = len(TEAM)

MOVE = Choice("move", 1 + EXITS, ("stay", "first edge", "second edge", "third edge"))
SCOUT = Role(
    "scout",
    ("red_0", "red_1", "blue_0"),
    (
        Field("node", (), 0, 255, "1", "where it is"),
        Field("exits", (EXITS,), -1, 255, "1", "nodes behind its edges, -1 for none"),
        Field("energy", (), 0, 1, "1", "strength left"),
    ),
    (MOVE,),
)
GUARD = Role(
    "guard",
    ("red_2", "blue_1"),
    (
        Field("node", (), 0, 255, "1", "where it is", "i8"),
        Field("energy", (), 0, 1, "1", "strength left"),
        Field("enemies_here", (), 0, AGENTS, "1", "at its node"),
    ),
    (
        MOVE,
        Choice("trigger", 2, ("hold", "strike")),
        Continuous("effort", (), 0.1, 0.9, "1", "share of its own energy that a strike may cost", 0.1),
    ),
)
PARAMETERS = (
    Parameter("damage", 0.6, 0, 10, "1", "energy that a strike at full effort takes"),
    Parameter("hit_chance", 0.8, 0, 1, "1", "of a strike"),
    Parameter("arrival", 6, 1, 1000, "decisions", "before red's second scout comes"),
)
TEXT = frozenset("abcdefghijklmnopqrstuvwxyz0123456789., ")
PER_AGENT = (("node", "i8"), ("came_from", "i8"), ("energy", "f8"))


class Graph(NamedTuple):
    adjacency: np.ndarray  # uint8 [V, V], symmetric, at most EXITS ones a row
    homes: np.ndarray  # int64 [2], home node of each team


def ring(nodes: int) -> Graph:
    """A ring with the homes at opposite ends."""
    edges = np.roll(np.eye(nodes, dtype=np.uint8), 1, axis=1)
    return Graph(edges | edges.T.copy(), np.array([0, nodes // 2]))


def exit_node(world, node, number):
    """The node behind edge ``number`` (from 1), or -1."""
    for other in range(len(world.adjacency)):
        number -= world.adjacency[node, other]
        if number == 0 and world.adjacency[node, other]:
            return other
    return -1


def take_turns(s):
    for a in range(AGENTS):
        s.acting[a] = TEAM[a] == s.phase


def reset(s, world):
    for a in range(AGENTS):
        s.node[a] = world.homes[TEAM[a]]
        s.energy[a] = uniform(s, 0.5, 1.0)
        s.came_from[a] = -1
    s.alive[LATE] = 0
    s.phase = RED
    take_turns(s)


def step(s, world, actions, rewards, scratch):
    if s.steps == s.parameters.arrival:
        s.alive[LATE] = 1
    for a in range(AGENTS):  # all agents walk, then all strike
        scratch.damage[a] = 0.0
        k = INDEX[a]
        move = actions.guard[k].move if IS_GUARD[a] else actions.scout[k].move
        if move > 0:
            s.came_from[a] = s.node[a]
            s.node[a] = exit_node(world, s.node[a], move)
    for a in range(AGENTS):
        draw = uniform(s, 0.0, 1.0)  # always drawn
        if IS_GUARD[a] and actions.guard[INDEX[a]].trigger:
            effort = actions.guard[INDEX[a]].effort
            s.info.strikes[a] += 1
            scratch.damage[a] += 0.1 * effort * s.energy[a]
            for b in range(AGENTS):
                if draw < s.parameters.hit_chance and is_enemy_here(s, a, b):
                    scratch.damage[b] += effort * s.parameters.damage
    points = 0.0
    for a in range(AGENTS):
        s.energy[a] = max(0.0, s.energy[a] - scratch.damage[a])
        s.alive[a] = s.alive[a] and s.energy[a] > 0.0
        team = TEAM[a]
        if s.alive[a] and team == s.phase and not IS_GUARD[a] and s.node[a] == world.homes[1 - team]:
            s.info.goals[team] += 1
            points += 1.0 if team == RED else -1.0
            s.node[a] = world.homes[team]
    s.phase = 1 - s.phase
    take_turns(s)
    for team in range(2):
        left = 0
        for a in range(AGENTS):
            rewards[a] = points if TEAM[a] == RED else -points
            left += TEAM[a] == team and (s.alive[a] or (a == LATE and s.steps < s.parameters.arrival))
        if s.info.goals[team] >= GOALS:
            s.info.winner, s.info.end_reason = team, SCORED
        elif left == 0:
            s.info.winner, s.info.end_reason = 1 - team, WIPED_OUT
    return s.info.end_reason != 0


def is_enemy_here(s, a, b):
    return s.alive[b] and TEAM[b] != TEAM[a] and s.node[b] == s.node[a]


def observe(s, world, observations, scratch):
    for a in range(AGENTS):
        if not s.alive[a]:
            continue
        if IS_GUARD[a]:
            guard = observations.guard[INDEX[a]]
            guard.node, guard.energy = s.node[a], s.energy[a]
            for b in range(AGENTS):
                guard.enemies_here += is_enemy_here(s, a, b)
        else:
            scout = observations.scout[INDEX[a]]
            scout.node, scout.energy = s.node[a], s.energy[a]
            for number in range(EXITS):
                scout.exits[number] = exit_node(world, s.node[a], number + 1)
    for team in range(2):
        observations.team[team].goals = s.info.goals[team]
    lane = observations.lane
    lane.phase, lane.time_left = s.phase, max(0.0, 1.0 - s.steps / s.parameters.horizon)


def legal(s, world, mask):
    for a in range(AGENTS):
        k = INDEX[a]
        for number in range(1 + EXITS):
            moves = mask.guard[k].move if IS_GUARD[a] else mask.scout[k].move
            moves[number] = number == 0 or exit_node(world, s.node[a], number) >= 0
        if IS_GUARD[a]:
            mask.guard[k].trigger[0] = 1
            for b in range(AGENTS):
                if is_enemy_here(s, a, b):
                    mask.guard[k].trigger[1] = 1


def script(s, world, slot, which, actions, scratch):
    if which == IDLER:
        return
    k = INDEX[slot]
    move = 1 + script_integer(s, EXITS)
    if which == RUNNER and exit_node(world, s.node[slot], move) == s.came_from[slot]:
        move = move % EXITS + 1  # it remembers where it came from and does not turn back
    if exit_node(world, s.node[slot], move) < 0:
        move = 0
    if not IS_GUARD[slot]:
        actions.scout[k].move = move
        return
    actions.guard[k].move = 0 if which == FIGHTER else move
    for b in range(AGENTS):
        if which == FIGHTER and is_enemy_here(s, slot, b):
            actions.guard[k].trigger, actions.guard[k].effort = 1, 0.9


def global_state(s, world, out):
    for a in range(AGENTS):
        out[2 * a], out[2 * a + 1] = s.node[a], s.energy[a]
    out[2 * AGENTS] = s.phase


class TextCodec:
    """``"node 3, energy 0.50, goals 0, red to move"`` and ``"move 2"`` or ``"strike 0.5"``."""

    def observation_space(self, role: Role) -> TextSpace:
        return TextSpace(64, charset=TEXT)

    def action_space(self, role: Role) -> TextSpace:
        return TextSpace(16, charset=TEXT)

    def encode(self, view: AgentView) -> str:
        row = view.row
        turn = "red" if view.lane["phase"] == RED else "blue"
        words = f"node {int(row['node'])}, energy {float(row['energy']):.2f}, goals {int(view.team['goals'])}"
        return f"{words}, {turn} to move"

    def encode_action(self, view: AgentView, action: Any) -> str:
        if view.role is not GUARD:
            return f"move {action}"
        move, trigger, effort = action["move"], action["trigger"], action["effort"]
        if (move != 0 or not 0.05 < effort < 0.95) if trigger else effort > 0.15:
            raise ValueError("one strikes where one is, with an effort from 0.1 to 0.9, or moves without")
        return f"strike {effort:.1f}" if trigger else f"move {move}"

    def decode(self, view: AgentView, action: str) -> Any:
        is_guard = view.role is GUARD
        if found := re.fullmatch(rf"move ([0-{EXITS}])", action):
            return {"move": int(found[1]), "trigger": 0, "effort": 0.1} if is_guard else int(found[1])
        if is_guard and (found := re.fullmatch(r"strike (0\.[1-9])", action)):
            return {"move": 0, "trigger": 1, "effort": float(found[1])}
        name, may = view.role.name, " or 'strike 0.1' to 'strike 0.9'" if is_guard else ""
        raise ValueError(f"a {name} understands 'move 0' to 'move {EXITS}'{may}, not {action!r}")


def game(nodes: int = 6) -> Game:
    return Game(
        name="Raid",
        roles=(SCOUT, GUARD),
        state=(("phase", "i8"), *((name, kind, (AGENTS,)) for name, kind in PER_AGENT)),
        reset=reset,
        step=step,
        observe=observe,
        legal=legal,
        script=script,
        scripts=("runner", "fighter", "idler"),
        parameters=PARAMETERS,
        horizon=40,
        info=(Field("goals", (2,), 0, GOALS + 2, dtype="i8"), Field("strikes", (AGENTS,), 0, 1000, dtype="i8")),
        end_reasons=("scored", "wiped_out"),
        lane_observation=(Field("phase", (), 0, 1), Field("time_left", (), 0, 1)),
        team_observation=(Field("goals", (), 0, GOALS + 2),),  # several may score at once
        global_state=global_state,
        global_state_size=2 * AGENTS + 1,
        scratch=(("damage", "f8", (AGENTS,)),),
        world=ring(nodes),
        zero_sum=True,
        determinism="cross-platform",
        default_opponent="runner",
        codecs={"text": TextCodec()},
    )
