"""Faults of five classes that a review found the kit blind to: lanes, order, pay, winners and rounding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from testing.planting import Patch, changed_rule, suite

from palaestra.core.faces.aec_env import GameAECEnv
from palaestra.core.faces.gym_env import GameEnv
from palaestra.core.faces.parallel_env import GameParallelEnv
from palaestra.core.faces.vector_env import GameVectorEnv
from palaestra.core.run.kernel import KernelSimulation
from palaestra.core.run.simulation import Simulation

# -- lanes beyond those that a check looks at --------------------------------------------------------------------------


@suite()
def _() -> Iterator[Patch]:
    """far lanes: rewards of lane 12 and later are those of the lane before."""
    honest = Simulation.step

    def step(sim: Any, actions: Any = None) -> None:
        honest(sim, actions)
        if sim.num_envs > 12:
            sim.rewards[12:] = sim.rewards[11:-1].copy()

    yield Simulation, "step", step


@suite("Couriers")
def _() -> Iterator[Patch]:
    """far lanes: lanes 33 and later of a reset are seeded like lane 32."""
    honest = Simulation.seed

    def seed(sim: Any, given: Any, mask: Any = None) -> None:
        honest(sim, given, mask)
        if sim.num_envs > 33:
            sim.states["rng"][33:] = sim.states["rng"][32]

    yield Simulation, "seed", seed


@suite("Pong")
def _() -> Iterator[Patch]:
    """far lanes: a VectorEnv of more than seven lanes shows lane 6 in the last one."""
    honest = GameVectorEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, *rest = honest(env, actions)
        if env.num_envs > 7 and isinstance(seen, np.ndarray):
            seen = seen.copy()
            seen[-1] = seen[6]
        return seen, *rest

    yield GameVectorEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """far lanes: final observations of lanes beyond the first four are zeros."""
    honest = GameVectorEnv._add_finals

    def add_finals(env: Any, over: np.ndarray, info: dict[str, Any]) -> None:
        honest(env, over, info)
        zero = lambda v: {k: zero(x) for k, x in v.items()} if isinstance(v, dict) else np.zeros_like(v)  # noqa: E731
        for lane in np.flatnonzero(over):
            if lane >= 4:
                info["final_obs"][lane] = zero(info["final_obs"][lane])

    yield GameVectorEnv, "_add_finals", add_finals


@suite("Orchard")
def _() -> Iterator[Patch]:
    """far lanes: parameters of lanes 9 and later stay as they are."""
    honest = Simulation.set_parameters

    def set_parameters(sim: Any, lanes: Any = None, **values: Any) -> None:
        before = sim.states["parameters"][9:].copy()
        honest(sim, lanes, **values)
        sim.states["parameters"][9:] = before

    yield Simulation, "set_parameters", set_parameters


@suite()
def _() -> Iterator[Patch]:
    """far lanes: infos of a VectorEnv repeat the masks of lane 3 from there on."""
    honest = GameVectorEnv._info

    def info(env: Any, over: Any) -> dict[str, Any]:
        made = honest(env, over)
        if "action_mask" in made:
            made["action_mask"] = made["action_mask"].copy()
            made["action_mask"][3:] = made["action_mask"][3:4]
        return made

    yield GameVectorEnv, "_info", info


@suite()
def _() -> Iterator[Patch]:
    """far lanes: state() leaves out all lanes after the tenth."""
    honest = KernelSimulation._write_state

    def write_state(sim: Any, out: np.ndarray) -> None:
        before = out[10:].copy()
        honest(sim, out)
        out[10:] = before

    yield KernelSimulation, "_write_state", write_state


# -- the order of a ParallelEnv's dicts --------------------------------------------------------------------------------


def _reordered(part: int, order: Callable[[Any, dict], Any]) -> Iterator[Patch]:
    honest = GameParallelEnv.step

    def step(env: Any, actions: Any) -> Any:
        result = list(honest(env, actions))
        result[part] = {a: result[part][a] for a in order(env, result[part])}
        return tuple(result)

    yield GameParallelEnv, "step", step


@suite("Pong")
def _() -> Iterator[Patch]:
    """dict order: observations of a step stand in reverse."""
    yield from _reordered(0, lambda env, given: reversed(given))


@suite()
def _() -> Iterator[Patch]:
    """dict order: rewards are sorted by the names of agents."""
    yield from _reordered(1, lambda env, given: sorted(given))


@suite()
def _() -> Iterator[Patch]:
    """dict order: the flags of those that left stand last."""
    yield from _reordered(2, lambda env, given: sorted(given, key=lambda a: given[a]))


@suite()
def _() -> Iterator[Patch]:
    """dict order: infos of a reset stand team by team."""
    honest = GameParallelEnv.reset

    def reset(env: Any, seed: Any = None, options: Any = None) -> Any:
        seen, infos = honest(env, seed, options)
        return seen, {a: infos[a] for members in env.teams.values() for a in members if a in infos}

    yield GameParallelEnv, "reset", reset


@suite()
def _() -> Iterator[Patch]:
    """dict order: a newcomer is the first of the agents."""
    honest = GameParallelEnv._present

    def present(env: Any) -> list[str]:
        found = honest(env)
        fresh = [a for a in found if env.agents and a not in env.agents]
        return [*fresh, *(a for a in found if a not in fresh)]

    yield GameParallelEnv, "_present", present


@suite()
def _() -> Iterator[Patch]:
    """dict order: possible_agents are sorted by name."""
    honest = GameParallelEnv.__init__

    def init(env: Any, sim: Any, **options: Any) -> None:
        honest(env, sim, **options)
        env.possible_agents = sorted(env.possible_agents)

    yield GameParallelEnv, "__init__", init


# -- a reward paid one decision late -----------------------------------------------------------------------------------

changed_rule(
    "late pay: goals are paid in the next decision",
    "Raid",
    "rewards[a] = points if TEAM[a] == RED else -points",
    "rewards[a] = s.owed if TEAM[a] == RED else -s.owed",
    ("    return s.info.end_reason != 0\n", "    s.owed = points\n    return s.info.end_reason != 0\n"),
    ('state=(("phase", "i8"),', 'state=(("phase", "i8"), ("owed", "f8"),'),
)
changed_rule(
    "late pay: parcels are paid in the next decision, from the lead",
    "Couriers",
    "        rewards[k] = gained if s.team[k] == 0 else -gained\n",
    "        rewards[k] = s.info.lead - s.paid if s.team[k] == 0 else s.paid - s.info.lead\n",
    ("    s.info.lead += gained\n", "    s.paid = s.info.lead\n    s.info.lead += gained\n"),
    ('("idle", "i8"),', '("idle", "i8"),\n            ("paid", "f8"),'),
)
changed_rule(
    "late pay: a picker is paid for what it picked before",
    "Orchard",
    "            rewards[a] = gain / 3.0\n",
    "            rewards[a] = s.force[a, 1] / 3.0 if a < pickers else gain / 3.0\n"
    "            s.force[a, 1] = gain if a < pickers else s.force[a, 1]\n",
)


@suite()
def _() -> Iterator[Patch]:
    """late pay: rewards of a batch are those of the decision before."""
    honest = Simulation.step

    def step(sim: Any, actions: Any = None) -> None:
        honest(sim, actions)
        now = sim.rewards.copy()
        before = vars(sim).get("_before")
        sim.rewards[...] = 0.0 if before is None else before
        sim._before = now

    yield Simulation, "step", step


@suite()
def _() -> Iterator[Patch]:
    """late pay: a compiled step pays what the decision before was worth, in running matches."""
    honest = KernelSimulation._step_lanes

    def step_lanes(sim: Any) -> int:
        offender = honest(sim)
        if offender < 0:
            now, before = sim.buffers.rewards.copy(), vars(sim).get("_before")
            running = ~(sim.terminated | sim.truncated)
            if before is not None:
                sim.buffers.rewards[running] = before[running]
            sim._before = now
        return offender

    yield KernelSimulation, "_step_lanes", step_lanes
    yield Simulation, "_one_call", property(lambda sim: None, lambda sim, value: None)


@suite()
def _() -> Iterator[Patch]:
    """late pay: a VectorEnv pays the decision before in lanes that go on."""
    honest = GameVectorEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, rewards, terminated, truncated, info = honest(env, actions)
        before = vars(env).get("_before", rewards)
        env._before = rewards.copy()
        return seen, np.where(terminated | truncated, rewards, before), terminated, truncated, info

    yield GameVectorEnv, "step", step


@suite("Orchard")
def _() -> Iterator[Patch]:
    """late pay: a ParallelEnv pays each agent for its decision before."""
    honest = GameParallelEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, rewards, *rest = honest(env, actions)
        before, env._before = vars(env).get("_before", {}), rewards
        return seen, {a: before.get(a, 0.0) for a in rewards}, *rest

    yield GameParallelEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """late pay: an Env pays the decision before while the match goes on."""
    honest = GameEnv.step

    def step(env: Any, action: Any) -> Any:
        seen, reward, terminated, truncated, info = honest(env, action)
        before, env._before = vars(env).get("_before", 0.0), reward
        return seen, reward if terminated or truncated else before, terminated, truncated, info

    yield GameEnv, "step", step


@suite()
def _() -> Iterator[Patch]:
    """late pay: rewards of the AEC interface are those of the decision before."""
    honest = GameAECEnv._play

    def play(env: Any, actions: Any) -> None:
        honest(env, actions)
        before, env._before = vars(env).get("_before", {}), env.rewards
        env.rewards = {a: before.get(a, 0.0) for a in env.rewards}

    yield GameAECEnv, "_play", play


# -- a winner named wrongly --------------------------------------------------------------------------------------------

changed_rule(
    "winner: the team that lets the ball pass",
    "Pong",
    "s.info.winner, s.info.end_reason = 1 - team, POINT",
    "s.info.winner, s.info.end_reason = team, POINT",
)
changed_rule(
    "winner: the other team than the one that scored last",
    "Raid",
    "s.info.winner, s.info.end_reason = team, SCORED",
    "s.info.winner, s.info.end_reason = 1 - team, SCORED",
)
changed_rule(
    "winner: the first team where the lead is blue's",
    "Couriers",
    "0 if s.info.lead > 0.0 else 1 if s.info.lead < 0.0 else -1",
    "0 if s.info.lead != 0.0 else -1",
)
changed_rule(
    "winner: the team that is behind at the horizon",
    "Raid",
    "    return s.info.end_reason != 0\n",
    "    if s.info.end_reason == 0 and s.steps >= s.parameters.horizon and s.info.goals[0] != s.info.goals[1]:\n"
    "        s.info.winner = 0 if s.info.goals[0] < s.info.goals[1] else 1\n"
    "    return s.info.end_reason != 0\n",
)


@suite()
def _() -> Iterator[Patch]:
    """winner: the info of an Env names its own team whoever won."""
    honest = GameEnv._info

    def info(env: Any, over: bool) -> dict[str, Any]:
        made = honest(env, over)
        if over and made["winner"] >= 0:
            made["winner"] = np.int64(list(env.sim.game.teams).index(env.control))
        return made

    yield GameEnv, "_info", info


@suite()
def _() -> Iterator[Patch]:
    """winner: the infos of a ParallelEnv say to the last team that it has won."""
    honest = GameParallelEnv._infos

    def infos(env: Any, agents: Any, over: bool) -> Any:
        made = honest(env, agents, over)
        for info in made.values():
            if over and info["winner"] >= 0 and info["team"] == len(env.sim.game.teams) - 1:
                info["winner"] = info["team"]
        return made

    yield GameParallelEnv, "_infos", infos


@suite("Pong")
def _() -> Iterator[Patch]:
    """winner: a VectorEnv names the first team in all lanes that end together."""
    honest = GameVectorEnv._info

    def info(env: Any, over: Any) -> dict[str, Any]:
        made = honest(env, over)
        if over is not None and over.sum() > 1:
            made["winner"] = np.where(made["winner"] > 0, 0, made["winner"])
        return made

    yield GameVectorEnv, "_info", info


# -- amounts near rounding that only one side gets ---------------------------------------------------------------------

changed_rule(
    "rounding: blue's paddles are faster by one part in 10^12",
    "Pong",
    "        s.paddle_y[slot] = max(s.paddle_y[slot] - s.parameters.paddle_speed, -highest)",
    "        more = 1.0 + 1e-12 if 2 * slot >= len(s.paddle_y) else 1.0\n"
    "        s.paddle_y[slot] = max(s.paddle_y[slot] - more * s.parameters.paddle_speed, -highest)",
)
changed_rule(
    "rounding: one scout is paid 1e-7 more than its team",
    "Raid",
    "rewards[a] = points if TEAM[a] == RED else -points",
    "rewards[a] = points + (2e-7 if a == LATE and points > 0.0 else 0.0) if TEAM[a] == RED else -points",
)
changed_rule(
    "rounding: blue pays 1e-7 less than red gets in the later part of a match",
    "Couriers",
    "rewards[k] = gained if s.team[k] == 0 else -gained",
    "rewards[k] = gained if s.team[k] == 0 else -gained * (1.0 if s.left > 3 else 1.0 - 2e-7)",
)
changed_rule(
    "rounding: blue sees its own height divided where red's is multiplied",
    "Pong",
    "            seen.own_y = s.paddle_y[own + k] * (1.0 / HALF_HEIGHT)",
    "            seen.own_y = s.paddle_y[own + k] * (1.0 / HALF_HEIGHT)\n"
    "            seen.own_y *= 1.0 if team == RED else 1.0000001",
)


@suite("Orchard")
def _() -> Iterator[Patch]:
    """rounding: a step adds 1e-12 to what the first team is paid."""
    honest = KernelSimulation._step_lanes

    def step_lanes(sim: Any) -> int:
        offender = honest(sim)
        if offender < 0:
            paid = sim.buffers.rewards
            first = sim.game.team_index == 0
            paid[:, : len(first)] += 1e-12 * (first & (paid[:, : len(first)] != 0.0))
        return offender

    yield KernelSimulation, "_step_lanes", step_lanes
    yield Simulation, "_one_call", property(lambda sim: None, lambda sim, value: None)


@suite("Orchard")
def _() -> Iterator[Patch]:
    """rounding: a VectorEnv of the last team pays in single precision."""
    honest = GameVectorEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, rewards, *rest = honest(env, actions)
        if env.control == list(env.sim.game.teams)[-1]:
            rewards = rewards.astype(np.float32).astype(rewards.dtype)
        return seen, rewards, *rest

    yield GameVectorEnv, "step", step


@suite("Orchard")
def _() -> Iterator[Patch]:
    """rounding: a ParallelEnv rounds what the last agent is paid to nine digits."""
    honest = GameParallelEnv.step

    def step(env: Any, actions: Any) -> Any:
        seen, rewards, *rest = honest(env, actions)
        return seen, {a: round(r, 9) if a == env.possible_agents[-1] else r for a, r in rewards.items()}, *rest

    yield GameParallelEnv, "step", step


@suite("Orchard")
def _() -> Iterator[Patch]:
    """rounding: an Env that plays the last team is paid 1e-12 more."""
    honest = GameEnv.step

    def step(env: Any, action: Any) -> Any:
        seen, reward, *rest = honest(env, action)
        return seen, reward + 1e-12 * (env.control == list(env.sim.game.teams)[-1] and reward != 0.0), *rest

    yield GameEnv, "step", step


@suite("Orchard")
def _() -> Iterator[Patch]:
    """rounding: cumulative rewards of the AEC interface are kept in single precision for the first agent."""
    honest = GameAECEnv._play

    def play(env: Any, actions: Any) -> None:
        honest(env, actions)
        for agent in env._cumulative_rewards:
            if agent == env.possible_agents[0]:
                env._cumulative_rewards[agent] = float(np.float32(env._cumulative_rewards[agent]))

    yield GameAECEnv, "_play", play
