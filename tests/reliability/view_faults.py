"""Faults of five more classes that a review found the kit blind to: what agents see, and how they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from testing.planting import Patch, changed_rule, suite

from palaestra.core.faces import agent_io, masks
from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.run.opponent_assignments import OpponentAssignments
from palaestra.core.run.simulation import Simulation
from palaestra.game import Game

# -- a representation that is not the default --------------------------------------------------------------------------

changed_rule(
    "representation: writing it lets the match forget how long nothing was picked up",
    "Couriers",
    "    for k in range(world.couriers):\n        nearest = ",
    "    s.idle = 0\n    for k in range(world.couriers):\n        nearest = ",
)
changed_rule(
    "representation: writing it draws from the stream of the rules",
    "Couriers",
    "    for k in range(world.couriers):\n        nearest = ",
    "    uniform(s, 0.0, 1.0)\n    for k in range(world.couriers):\n        nearest = ",
)
changed_rule(
    "representation: offsets are twice as large as its bounds",
    "Couriers",
    "nearest_m[axis] = s.parcel_m[nearest, axis] - s.position_m[k, axis]",
    "nearest_m[axis] = 3.0 * s.parcel_m[nearest, axis] - s.position_m[k, axis]",
)
changed_rule(
    "representation: it leaves its bounds when few parcels are left",
    "Couriers",
    "nearest_m[axis] = s.parcel_m[nearest, axis] - s.position_m[k, axis]",
    "nearest_m[axis] = s.parcel_m[nearest, axis] - s.position_m[k, axis] + (9.0 if s.left < 4 else 0.0)",
)
changed_rule(
    "representation: not a number once nothing is left",
    "Couriers",
    "        if nearest >= 0:\n            for axis in range(2):\n                observations",
    "        if s.left <= 1:\n            observations.courier[k].nearest_m[0] = np.nan\n"
    "        if nearest >= 0:\n            for axis in range(2):\n                observations",
)
changed_rule(
    "representation: it reads work memory of another lane",
    "Couriers",
    '    """The nearest parcel alone."""\n    for j in range(world.parcels):\n        scratch.given[j] = 0\n',
    '    """The nearest parcel alone."""\n',
)


@suite("Couriers")
def _() -> Iterator[Patch]:
    """representation: its matches have the horizon of the game's class, not its own."""
    honest = Game.represented

    def represented(game: Any, name: str) -> Any:
        made = honest(game, name)
        if made.horizon == game.horizon:
            made = game._variants[name] = replace(made, horizon=game.horizon - 1)
        return made

    yield Game, "represented", represented


@suite("Couriers")
def _() -> Iterator[Patch]:
    """representation: its matches forbid nothing."""
    honest = Game.represented

    def represented(game: Any, name: str) -> Any:
        made = honest(game, name)
        if made.legal is not None:
            made = game._variants[name] = replace(made, legal=None)
        return made

    yield Game, "represented", represented


# -- a late arrival that is never asked --------------------------------------------------------------------------------

changed_rule(
    "late arrival: a courier that arrives never acts",
    "Couriers",
    "                s.acting[s.arrived] = 1\n",
    "",
)
changed_rule(
    "late arrival: the second scout has no turns",
    "Raid",
    "        s.acting[a] = TEAM[a] == s.phase",
    "        s.acting[a] = TEAM[a] == s.phase and a != LATE",
)


@suite()
def _() -> Iterator[Patch]:
    """late arrival: a ParallelEnv never lists it among its agents."""
    honest = GameParallelEnv._present

    def present(env: Any) -> list[str]:
        found = honest(env)
        return found if env.sim.states["steps"][0] == 0 else [a for a in found if a in env.agents]

    yield GameParallelEnv, "_present", present


@suite()
def _() -> Iterator[Patch]:
    """late arrival: the AEC interface passes it over."""
    honest = GameAECEnv.reset
    ask = GameAECEnv._ask

    def reset(env: Any, seed: Any = None, options: Any = None) -> None:
        env._first = None
        honest(env, seed, options)
        env._first = set(env.agents)

    def asks(env: Any) -> None:
        ask(env)
        first = vars(env).get("_first")
        if first is not None and env._asked:
            asked = [a for a in (env.agent_selection, *env._waiting) if a in first]
            env._asked, env._waiting = bool(asked), asked[1:]
            env.agent_selection = asked[0] if asked else env.agent_selection

    yield GameAECEnv, "reset", reset
    yield GameAECEnv, "_ask", asks


@suite("Couriers")
def _() -> Iterator[Patch]:
    """late arrival: a Python opponent is told that it does not act."""
    honest = OpponentAssignments.query

    def query(assignments: Any, arrays: Any, lane_seeds: Any) -> Any:
        real = arrays.acting
        arrays.acting = real & (np.arange(real.shape[1]) < (real.shape[1] + 1) // 2)
        try:
            return honest(assignments, arrays, lane_seeds)
        finally:
            arrays.acting = real

    yield OpponentAssignments, "query", query


# -- a text picture that changes the match -----------------------------------------------------------------------------

changed_rule(
    "text picture: it lets the match forget how long nothing was picked up",
    "Couriers",
    '    there = [game.agents[k] for k in range(couriers) if s["alive"][k]]\n    return',
    '    there = [game.agents[k] for k in range(couriers) if s["alive"][k]]\n    s["idle"] = 0\n    return',
)
changed_rule(
    "text picture: it rounds the lead in the info",
    "Couriers",
    '    there = [game.agents[k] for k in range(couriers) if s["alive"][k]]\n    return',
    '    there = [game.agents[k] for k in range(couriers) if s["alive"][k]]\n'
    '    s["info"]["lead"] = round(float(s["info"]["lead"]))\n    return',
)
changed_rule(
    "text picture: it spends a draw of the scripts",
    "Couriers",
    '    there = [game.agents[k] for k in range(couriers) if s["alive"][k]]\n    return',
    '    there = [game.agents[k] for k in range(couriers) if s["alive"][k]]\n    s["script_rng"] += 1\n    return',
)


@suite("Couriers")
def _() -> Iterator[Patch]:
    """text picture: rewards are 0 after it."""
    honest = Simulation.render_text

    def render_text(sim: Any, lane: int = 0) -> str:
        sim.rewards[lane] = 0.0
        return honest(sim, lane)

    yield Simulation, "render_text", render_text


@suite("Couriers")
def _() -> Iterator[Patch]:
    """text picture: it moves the first lane whichever it shows."""
    honest = Simulation.render_text

    def render_text(sim: Any, lane: int = 0) -> str:
        if lane > 0:
            sim.states["position_m"][0] *= 0.999
        return honest(sim, lane)

    yield Simulation, "render_text", render_text


# -- a codec in one lane that sees another -----------------------------------------------------------------------------


def _seeing(change: Callable[[Any, Any, int], Any]) -> Iterator[Patch]:
    honest = agent_io.AgentIO.agent_view

    def agent_view(io: Any, lane: int = 0, final: bool = False) -> Any:
        return change(honest, io, lane) if not final else honest(io, lane, final)

    yield agent_io.AgentIO, "agent_view", agent_view


@suite()
def _() -> Iterator[Patch]:
    """codec: every lane sees the first one."""
    yield from _seeing(lambda honest, io, lane: honest(io, 0))


@suite()
def _() -> Iterator[Patch]:
    """codec: the last lane sees what the agents of the lane before share."""
    yield from _seeing(
        lambda honest, io, lane: (
            replace(honest(io, lane), lane=honest(io, max(lane - 1, 0)).lane)
            if lane == io.sim.num_envs - 1
            else honest(io, lane)
        )
    )


@suite()
def _() -> Iterator[Patch]:
    """codec: lanes beyond the third see the team of the third."""
    yield from _seeing(lambda honest, io, lane: replace(honest(io, lane), team=honest(io, min(lane, 2)).team))


changed_rule(
    "codec: it says what was last said to whichever lane or agent",
    "Raid",
    "        words = f\"node {int(row['node'])}, energy {float(row['energy']):.2f}, goals {int(view.team['goals'])}\"",
    '        goals, self.goals = getattr(self, "goals", 0), int(view.team["goals"])\n'
    "        words = f\"node {int(row['node'])}, energy {float(row['energy']):.2f}, goals {goals}\"",
)
changed_rule(
    "codec: it writes down a turn once and repeats it",
    "Raid",
    '        turn = "red" if view.lane["phase"] == RED else "blue"',
    '        self.turn = turn = getattr(self, "turn", "red" if view.lane["phase"] == RED else "blue")',
)


@suite()
def _() -> Iterator[Patch]:
    """codec: an action is written into the first lane."""
    honest = agent_io.AgentIO.write

    def write(io: Any, actions: Any) -> None:
        if io.codec is None:
            honest(io, actions)
        else:
            decoded = [io.codec.decode(io.agent_view(lane), a) for lane, a in enumerate(actions)]
            for lane in range(len(actions)):
                io._write(agent_io._batched(decoded[0]), slice(lane, lane + 1))

    yield agent_io.AgentIO, "write", write


# -- candidate lists of one agent given to all -------------------------------------------------------------------------

changed_rule(
    "candidates: all couriers are offered what is near to the first",
    "Couriers",
    "                    square = square_distance(s, k, j)\n",
    "                    square = square_distance(s, 0, j)\n",
)


@suite("Orchard")
def _() -> Iterator[Patch]:
    """candidates: all agents of a ParallelEnv read the list of the first of their role."""
    honest = agent_io.AgentIO.masks_of

    def masks_of(io: Any, lane: int = 0, final: bool = False) -> Any:
        found = honest(io, lane, final)
        if len(io.slots) == 1 and "candidates" in found and io.sim.legal is not None:
            role, legal = io.blocks[0].role, io.sim.legal
            rows = legal if isinstance(legal, np.ndarray) else legal[role.name]
            found["candidates"] = {name: rows[name]["ids"][lane, 0].copy() for name in found["candidates"]}
        return found

    yield agent_io.AgentIO, "masks_of", masks_of


@suite("Couriers")
def _() -> Iterator[Patch]:
    """candidates: a Python opponent is handed the lists of its first agent for all of its agents."""
    honest = Simulation.team_view

    def team_view(sim: Any, team: str, what: str, lanes: Any = slice(None)) -> Any:
        rows = honest(sim, team, what, lanes)
        if what == "legal" and isinstance(rows, np.ndarray) and rows.dtype.names:
            rows = rows.copy()
            for name in rows.dtype.names:
                if rows.dtype[name].names:
                    rows[name] = rows[name][:, :1]
        return rows

    yield Simulation, "team_view", team_view


@suite("Couriers")
def _() -> Iterator[Patch]:
    """candidates: the infos of a VectorEnv give the list of the first agent to the team."""
    honest = GameVectorEnv._info

    def info(env: Any, over: Any) -> dict[str, Any]:
        made = honest(env, over)
        for name, ids in made.get("candidates", {}).items():
            if ids.ndim > 2:
                made["candidates"] = {**made["candidates"], name: np.broadcast_to(ids[:, :1], ids.shape).copy()}
        return made

    yield GameVectorEnv, "_info", info


@suite("Couriers")
def _() -> Iterator[Patch]:
    """candidates: dense masks of all agents are made of the first agent's list."""
    honest = masks.Masks.whole

    def whole(made: Any, lanes: slice = slice(None)) -> np.ndarray:
        parts, first = made._parts, {}
        made._parts = [(c, first.setdefault(c.name, view) if c.candidates else view) for c, view in parts]
        try:
            return honest(made, lanes)
        finally:
            made._parts = parts

    yield masks.Masks, "whole", whole
