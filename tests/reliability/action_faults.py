"""Faults of what codecs make of actions, of infos and masks that are one turn old, and of pay at the horizon."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from testing.planting import Patch, changed_rule, suite

from palaestra.core.faces import agent_io
from palaestra.core.faces.agent_io import AgentIO
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.run.simulation import Simulation
from palaestra.games.mathtext.math_codec import MathCodec
from palaestra.games.mathtext.math_language import CLOSE, MINUS
from palaestra.games.pursuit.codec import GraphCodec
from palaestra.games.search.turn_codec import TurnCodec

# -- what an action says -----------------------------------------------------------------------------------------------


@suite("MathText")
def _() -> Iterator[Patch]:
    """codec action: an answer loses its sign."""
    honest = MathCodec.decode

    def decode(codec: Any, view: Any, action: str) -> np.ndarray:
        said = honest(codec, view, action)
        where = np.flatnonzero(said[:-1] == 18)
        if len(where) and said[where[0] + 1] == MINUS:
            said[where[0] + 1 :] = [*said[where[0] + 2 :], 0]
        return said

    yield MathCodec, "decode", decode


@suite("MathText")
def _() -> Iterator[Patch]:
    """codec action: of several worked steps the first is left out."""
    honest = MathCodec.decode

    def decode(codec: Any, view: Any, action: str) -> np.ndarray:
        said = honest(codec, view, action)
        closed = np.flatnonzero(said == CLOSE)
        return (
            np.roll(said, -closed[0] - 1) * (np.arange(len(said)) < len(said) - closed[0] - 1)
            if len(closed) > 1
            else said
        )

    yield MathCodec, "decode", decode


@suite("MathText")
def _() -> Iterator[Patch]:
    """codec action: the demonstration in the infos leaves the answer out."""
    honest = MathCodec.info

    def info(codec: Any, view: Any) -> dict[str, Any]:
        told = honest(codec, view)
        return {**told, "demonstration": told["demonstration"].partition("<answer>")[0]}

    yield MathCodec, "info", info


@suite("SearchQA")
def _() -> Iterator[Patch]:
    """codec action: the turns of many matches at once lose their last word."""
    honest = TurnCodec.decode_many

    def decode_many(codec: Any, view: Any, actions: Any) -> np.ndarray:
        decoded = honest(codec, view, actions)
        for row in decoded:
            words = np.flatnonzero(row[1:])
            row[1 + words[-1] if len(words) > 1 else 0] *= len(words) <= 1
        return decoded

    yield TurnCodec, "decode_many", decode_many


@suite("SearchQA")
def _() -> Iterator[Patch]:
    """codec action: the first two words of a turn change places."""
    honest = TurnCodec.decode

    def decode(codec: Any, view: Any, action: str) -> np.ndarray:
        said = honest(codec, view, action)
        if said[2]:
            said[1], said[2] = said[2], said[1]
        return said

    yield TurnCodec, "decode", decode


@suite("Hunt")
def _() -> Iterator[Patch]:
    """codec action: beside a graph the third way is the last that can be named."""
    honest = GraphCodec.decode
    yield GraphCodec, "decode", lambda codec, view, action: np.minimum(honest(codec, view, action), 2)


changed_rule(
    "codec action: a strike is as hard as the energy that is left, whatever is said",
    "Raid",
    'return {"move": 0, "trigger": 1, "effort": float(found[1])}',
    'return {"move": 0, "trigger": 1, "effort": 0.5 * float(view.row["energy"])}',
)
changed_rule(
    "codec action: a guard that moves takes the next way",
    "Raid",
    'return {"move": int(found[1]), "trigger": 0, "effort": 0.1} if is_guard else int(found[1])',
    'return {"move": -int(found[1]) % (1 + EXITS), "trigger": 0, "effort": 0.1} if is_guard else int(found[1])',
)


@suite("MathText")
def _() -> Iterator[Patch]:
    """codec action: where some lanes move, each of them does what the one before says."""
    honest = AgentIO.write

    def write(io: Any, actions: Any, which: Any = None) -> None:
        if io.codec is not None and which is not None:
            actions = [actions[lane - 1] for lane in range(len(actions))]
        honest(io, actions, which)

    yield AgentIO, "write", write


@suite()
def _() -> Iterator[Patch]:
    """codec action: a face of one match pulls no trigger."""
    honest = AgentIO.write_one

    def write_one(io: Any, action: Any) -> None:
        if io.codec is None:
            honest(io, action)
            return
        decoded = io.codec.decode(io._first_view, action)
        io._write(agent_io._batched({**decoded, "trigger": 0} if isinstance(decoded, dict) else decoded), slice(None))

    yield AgentIO, "write_one", write_one


# -- one turn old ------------------------------------------------------------------------------------------------------


def _late(owner: Any, now: Any, what: str = "_late") -> Any:
    before = vars(owner).get(what, now)
    setattr(owner, what, copy.deepcopy(now))
    return before


@suite("MathText")
def _() -> Iterator[Patch]:
    """one turn old: what a codec tells of one match."""
    honest = AgentIO.tell

    def tell(io: Any, info: dict[str, Any], lane: int = 0) -> None:
        told: dict[str, Any] = {}
        honest(io, told, lane)
        info.update(_late(io, told))

    yield AgentIO, "tell", tell


@suite("SearchQA")
def _() -> Iterator[Patch]:
    """one turn old: what a codec tells of many matches that go on."""
    honest = AgentIO.tell_lanes

    def tell_lanes(io: Any, info: dict[str, Any], lanes: np.ndarray, final: bool = False) -> None:
        told: dict[str, Any] = {}
        honest(io, told, lanes, final)
        info.update(told if final else _late(io, told))

    yield AgentIO, "tell_lanes", tell_lanes


@suite("MathText")
def _() -> Iterator[Patch]:
    """one turn old: what a codec tells of an end is of the next match."""
    honest = AgentIO.tell_lanes
    yield AgentIO, "tell_lanes", lambda io, info, lanes, final=False: honest(io, info, lanes)


@suite("MathText")
def _() -> Iterator[Patch]:
    """one turn old: a codec tells what it has told before."""
    honest = MathCodec.info
    yield MathCodec, "info", lambda codec, view: _late(codec, honest(codec, view))


@suite("SearchQA")
def _() -> Iterator[Patch]:
    """one turn old: a VectorEnv shows the texts of the turn before."""
    honest = AgentIO.observe

    def observe(io: Any, copy: bool = True) -> Any:
        return honest(io, copy) if io.codec is None else _late(io, honest(io, copy))

    yield AgentIO, "observe", observe


@suite()
def _() -> Iterator[Patch]:
    """one turn old: final infos have the masks of the next match."""
    honest = AgentIO.masks
    yield AgentIO, "masks", lambda io, copy=True, final=False: honest(io, copy)


@suite("Hunt")
def _() -> Iterator[Patch]:
    """one turn old: final observations have the masks of the next match."""
    honest = AgentIO.masks_of
    yield AgentIO, "masks_of", lambda io, lane=0, final=False: honest(io, lane)


@suite("Flight")
def _() -> Iterator[Patch]:
    """one turn old: the game's own fields in final infos are those of the next match."""
    honest = GameVectorEnv._add_finals

    def add_finals(env: Any, over: np.ndarray, info: dict[str, Any]) -> None:
        honest(env, over, info)
        for name in env._own_fields:
            info["final_info"][name] = env.sim.info[name].copy()

    yield GameVectorEnv, "_add_finals", add_finals


@suite("Robot")
def _() -> Iterator[Patch]:
    """one turn old: final observations are those before the last decision."""
    finals, seen = AgentIO.final_rows, AgentIO.observe

    def observe(io: Any, copy: bool = True) -> Any:
        now = seen(io, copy)
        io._shown = np.array(now) if isinstance(now, np.ndarray) else now
        return now

    def final_rows(io: Any, lanes: np.ndarray) -> Any:
        shown = vars(io).get("_shown")
        return shown[lanes].copy() if isinstance(shown, np.ndarray) else finals(io, lanes)

    yield AgentIO, "observe", observe
    yield AgentIO, "final_rows", final_rows


# -- pay at the horizon ------------------------------------------------------------------------------------------------


def _vector(change: Any) -> Iterator[Patch]:
    honest = GameVectorEnv.step

    def step(env: Any, actions: Any, *, options: Any = None) -> Any:
        seen, rewards, terminated, truncated, info = honest(env, actions, options=options)
        return seen, change(env, rewards, truncated), terminated, truncated, info

    yield GameVectorEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """cut by the horizon: a VectorEnv pays nothing."""
    yield from _vector(lambda env, paid, cut: np.where(cut, 0.0, paid))


@suite("Flight")
def _() -> Iterator[Patch]:
    """cut by the horizon: a VectorEnv under same_step pays nothing where matches are cut together."""
    yield from _vector(
        lambda env, paid, cut: (
            np.where(cut, 0.0, paid) if cut.sum() > 1 and env.sim.autoreset_mode == "same_step" else paid
        )
    )


@suite("Robot")
def _() -> Iterator[Patch]:
    """cut by the horizon: a VectorEnv under next_step takes what it should give."""
    yield from _vector(
        lambda env, paid, cut: np.where(cut, -paid, paid) if env.sim.autoreset_mode == "next_step" else paid
    )


@suite("Pong")
def _() -> Iterator[Patch]:
    """cut by the horizon: an Env pays twice."""
    honest = GameEnv.step

    def step(env: Any, action: Any) -> Any:
        seen, reward, terminated, truncated, info = honest(env, action)
        return seen, 2.0 * reward if truncated else reward, terminated, truncated, info

    yield GameEnv, "step", step


@suite("Orchard")
def _() -> Iterator[Patch]:
    """cut by the horizon: a ParallelEnv pays its last agent nothing."""
    honest = GameParallelEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, rewards, ends, cuts, infos = honest(env, actions)
        rewards = {a: 0.0 if cuts[a] and a == env.possible_agents[-1] else r for a, r in rewards.items()}
        return seen, rewards, ends, cuts, infos

    yield GameParallelEnv, "step", step


def _batch(pays: Any) -> Iterator[Patch]:
    honest = Simulation.step

    def step(sim: Any, actions: Any = None, lanes: Any = None) -> None:
        honest(sim, actions, lanes)
        sim.rewards[sim.truncated] *= pays(sim)

    yield Simulation, "step", step


@suite("Couriers")
def _() -> Iterator[Patch]:
    """cut by the horizon: a batch pays nothing."""
    yield from _batch(lambda sim: 0.0)


@suite("Robot")
def _() -> Iterator[Patch]:
    """cut by the horizon: a batch whose matches are cut together pays half."""
    yield from _batch(lambda sim: 0.5 if sim.truncated.sum() > 1 else 1.0)


@suite("Flight")
def _() -> Iterator[Patch]:
    """cut by the horizon: infos of a VectorEnv name no winner."""
    honest = GameVectorEnv._info

    def info(env: Any, over: Any) -> dict[str, Any]:
        made = honest(env, over)
        if over is not None:
            made["winner"] = np.where(env.sim.truncated, -1, made["winner"])
        return made

    yield GameVectorEnv, "_info", info
