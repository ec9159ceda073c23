"""Faults of the suite: snapshots, copies and faces."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from testing.planting import Patch, suite

from palaestra.core.compile.batch_loop import RUNNING
from palaestra.core.faces import agent_io, joint_choices
from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.run.parameters import ParameterRecords
from palaestra.core.run.simulation import Simulation

# -- snapshots and copies ----------------------------------------------------------------------------------------------


def _changed_snapshot(change: Callable[[Any], Any]) -> Iterator[Patch]:
    honest = Simulation.snapshot
    yield Simulation, "snapshot", lambda sim: change(honest(sim))


@suite()
def _() -> Iterator[Patch]:
    """a snapshot shares the match records."""
    honest = Simulation.snapshot
    yield Simulation, "snapshot", lambda sim: replace(honest(sim), states=sim.states)


@suite()
def _() -> Iterator[Patch]:
    """a snapshot forgets what the opponents remember."""
    yield from _changed_snapshot(
        lambda made: replace(made, memories={team: np.zeros_like(m) for team, m in made.memories.items()})
    )


def _keeping(name: str) -> Iterator[Patch]:
    honest = Simulation.restore

    def restore(sim: Any, snapshot: Any) -> Any:
        states = snapshot.states.copy()
        states[name] = sim.states[name]
        return honest(sim, replace(snapshot, states=states))

    yield Simulation, "restore", restore


@suite()
def _() -> Iterator[Patch]:
    """restore leaves the parameters as they are."""
    yield from _keeping("parameters")


@suite()
def _() -> Iterator[Patch]:
    """restore leaves the players as they are."""
    yield from _keeping("current_player")


@suite()
def _() -> Iterator[Patch]:
    """restore leaves the streams of the scripts as they are."""
    yield from _keeping("script_rng")


@suite()
def _() -> Iterator[Patch]:
    """restore leaves the strength of the scripts as it is."""
    yield from _keeping("strength")


@suite()
def _() -> Iterator[Patch]:
    """restore leaves the observations of the last lane as they are."""
    honest = Simulation.restore

    def restore(sim: Any, snapshot: Any) -> Any:
        before = sim.buffers.observations[-1].copy()
        seen = honest(sim, snapshot)
        sim.buffers.observations[-1] = before
        return seen

    yield Simulation, "restore", restore


@suite()
def _() -> Iterator[Patch]:
    """load_states() with a mask loads the records into the first lanes."""
    honest = Simulation.load_states

    def load_states(sim: Any, records: Any, mask: Any = None) -> Any:
        if mask is not None:
            mask = np.arange(sim.num_envs) < np.asarray(mask).sum()
        return honest(sim, records, mask)

    yield Simulation, "load_states", load_states


@suite()
def _() -> Iterator[Patch]:
    """a pickled simulation forgets its parameters."""
    honest = Simulation.__setstate__

    def setstate(sim: Any, saved: dict[str, Any]) -> None:
        honest(sim, saved)
        ParameterRecords(sim.game, sim.states).write_defaults()

    yield Simulation, "__setstate__", setstate


@suite()
def _() -> Iterator[Patch]:
    """a deep copy shares the memory of its opponents."""

    def deepcopy(sim: Any, memo: dict) -> Any:
        made = object.__new__(type(sim))
        saved = sim.__getstate__()
        assignments = saved.pop("opponent_assignments")
        made.__setstate__({**copy.deepcopy(saved, memo), "opponent_assignments": assignments})
        return made

    yield Simulation, "__deepcopy__", deepcopy


# -- faces -------------------------------------------------------------------------------------------------------------


@suite()
def _() -> Iterator[Patch]:
    """copy=False returns copies."""
    honest = GameVectorEnv.__init__
    yield GameVectorEnv, "__init__", lambda env, sim, **options: honest(env, sim, **{**options, "copy": True})


@suite()
def _() -> Iterator[Patch]:
    """a VectorEnv that copies hands out its own rewards."""
    honest = GameVectorEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, _, *rest = honest(env, actions)
        return seen, env.sim.rewards[:, env._slot], *rest

    yield GameVectorEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """the first lane of a VectorEnv never has an info of its own."""
    honest = GameVectorEnv._info

    def info(env: Any, over: Any) -> dict[str, Any]:
        made = honest(env, over)
        flags = np.arange(env.num_envs) > 0
        return {k: flags if k.startswith("_") else v for k, v in made.items()}

    yield GameVectorEnv, "_info", info


@suite()
def _() -> Iterator[Patch]:
    """final observations of a VectorEnv are those of the neighbouring lane."""
    honest = GameVectorEnv._add_finals

    def add_finals(env: Any, over: np.ndarray, info: dict[str, Any]) -> None:
        honest(env, over, info)
        lanes = np.flatnonzero(over)
        info["final_obs"][lanes] = np.roll(info["final_obs"][lanes], 1)

    yield GameVectorEnv, "_add_finals", add_finals


@suite()
def _() -> Iterator[Patch]:
    """the final info of a VectorEnv names the winner of the new match."""
    honest = GameVectorEnv._add_finals

    def add_finals(env: Any, over: np.ndarray, info: dict[str, Any]) -> None:
        honest(env, over, info)
        info["final_info"]["winner"] = env.sim.info["winner"].copy()

    yield GameVectorEnv, "_add_finals", add_finals


@suite()
def _() -> Iterator[Patch]:
    """set_attr() of a VectorEnv gives the values to the lanes in reverse."""
    honest = GameVectorEnv.set_attr
    yield (
        GameVectorEnv,
        "set_attr",
        lambda env, name, values: honest(env, name, values[::-1] if isinstance(values, list | tuple) else values),
    )


@suite()
def _() -> Iterator[Patch]:
    """a truncated match of an Env is said to be terminated too."""
    honest = GameEnv.step

    def step(env: Any, action: Any) -> Any:
        seen, reward, terminated, truncated, info = honest(env, action)
        return seen, reward, terminated or truncated, truncated, info

    yield GameEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """an Env that plays the last team is paid like the first."""
    honest = GameEnv.step

    def step(env: Any, action: Any) -> Any:
        seen, _, *rest = honest(env, action)
        return seen, float(env.sim.team_rewards(next(iter(env.sim.game.teams)))[0]), *rest

    yield GameEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """masks in the infos are those of the step before."""
    honest = agent_io.AgentIO.masks_of

    def masks_of(io: Any, lane: int = 0, final: bool = False) -> Any:
        now = copy.deepcopy(honest(io, lane, final))
        before = vars(io).get("_before", now)
        io._before = now
        return before

    yield agent_io.AgentIO, "masks_of", masks_of


@suite()
def _() -> Iterator[Patch]:
    """mask="obs" shows no forbidden action."""
    honest = agent_io.AgentIO._with_masks

    def with_masks(io: Any, seen: Any, masks: dict[str, Any]) -> Any:
        return honest(io, seen, {k: ones(v) if k == "action_mask" else v for k, v in masks.items()})

    def ones(mask: Any) -> Any:
        if isinstance(mask, dict):
            return {name: ones(part) for name, part in mask.items()}
        if isinstance(mask, tuple):
            return tuple(map(ones, mask))
        return None if mask is None else np.ones_like(mask)

    yield agent_io.AgentIO, "_with_masks", with_masks


@suite("Pong")
def _() -> Iterator[Patch]:
    """choices="discrete" counts its factors in the other order."""
    honest = joint_choices.JointChoices.split
    yield joint_choices.JointChoices, "split", lambda joint, given, lanes: honest(joint, given, lanes)[..., ::-1]


@suite()
def _() -> Iterator[Patch]:
    """a ParallelEnv does not tell that an agent has left."""
    honest = GameParallelEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, rewards, ends, cuts, infos = honest(env, actions)
        return seen, rewards, dict.fromkeys(ends, bool(env.sim.terminated[0])), cuts, infos

    yield GameParallelEnv, "step", step


@suite("Orchard")
def _() -> Iterator[Patch]:
    """a ParallelEnv exchanges the rewards of two teammates."""
    honest = GameParallelEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, rewards, *rest = honest(env, actions)
        red = [a for a in rewards if a.startswith("red")]
        if len(red) > 1:
            rewards[red[0]], rewards[red[1]] = rewards[red[1]], rewards[red[0]]
        return seen, rewards, *rest

    yield GameParallelEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """the infos of a ParallelEnv name the team of the first agent for all."""
    honest = GameParallelEnv._infos

    def infos(env: Any, agents: Any, over: bool) -> Any:
        made = honest(env, agents, over)
        for info in made.values():
            info["team"] = np.int64(0)
        return made

    yield GameParallelEnv, "_infos", infos


@suite()
def _() -> Iterator[Patch]:
    """max_cycles of a ParallelEnv is one too many."""
    honest = GameParallelEnv.max_cycles
    yield (
        GameParallelEnv,
        "max_cycles",
        property(honest.fget, lambda env, value: env.sim.set_parameters(horizon=value + 1)),
    )


@suite()
def _() -> Iterator[Patch]:
    """cumulative rewards of the AEC interface are never cleared."""
    honest = GameAECEnv._play

    def play(env: Any, actions: Any) -> None:
        before = dict(env._cumulative_rewards)
        honest(env, actions)
        for agent, value in before.items():
            if agent in actions and agent in env._cumulative_rewards:
                env._cumulative_rewards[agent] += value

    yield GameAECEnv, "_play", play


@suite()
def _() -> Iterator[Patch]:
    """fixed_agents=True pays the absent nothing and the present twice."""
    honest = GameParallelEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, rewards, *rest = honest(env, actions)
        if env.fixed_agents:
            alive = env.sim.alive[0]
            rewards = {a: 2 * r if alive[env._slot[a]] else 0.0 for a, r in rewards.items()}
        return seen, rewards, *rest

    yield GameParallelEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """refresh() of some lanes writes all lanes."""
    honest = Simulation.refresh
    yield Simulation, "refresh", lambda sim, mask=None: honest(sim)


@suite()
def _() -> Iterator[Patch]:
    """a lane that waits for its reset is paid again."""
    honest = Simulation.step

    def step(sim: Any, actions: Any = None) -> None:
        waiting, paid = sim.states["pending"] != RUNNING, sim.rewards.copy()
        honest(sim, actions)
        if sim.autoreset_mode == "off":
            sim.rewards[waiting] = paid[waiting]

    yield Simulation, "step", step
