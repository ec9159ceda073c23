"""Families of tasks: their split, matches that are recorded in them, and returns of players in one task after another.

Recorded players choose by the position alone, as a network does: the player of a task is the same in all its matches.
``medium`` is the expert of a wrong task, `ERROR_RAD` beside the true one, whose actions are weakened and disturbed. In
games without a script ``expert`` a policy that was trained with ``observe_task=True`` is the expert of all tasks;
``medium`` is then this expert of the true task, whose actions are weakened and disturbed likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from palaestra import registry
from palaestra.core.run.opponents import Opponent, OpponentSpec, resolve
from palaestra.core.run.simulation import Simulation
from palaestra_baselines.common.agents import Roster
from palaestra_baselines.common.offline_data import Matches, gather_matches
from palaestra_baselines.common.rollout import RUN_BITS

TABLES = {
    "MetaPoint": "goals_m",
    "MetaDirection": "directions",
    "MetaCheetahVel": "targets_mps",
    "MetaCheetahParam": "factors",
}
"""Table of all tasks in the world, by the name of the game."""
BELIEFS = {"MetaPoint": "goal_m", "MetaDirection": "direction"}
"""Field of a match's record from which the script ``expert`` reads the task, a vector in the plane; likewise."""
ERROR_RAD, SHARE, NOISE = 0.25, 0.6, 0.5
"""Of a medium player: angle between its task and the true one, weight of its actions, deviation of what is added."""
KINDS = {
    "expert": ("expert",),
    "uniform": ("uniform",),
    "medium": ("medium",),
    "mixed": ("expert", "medium", "uniform"),
}
"""Players of the matches of a task, who take turns."""


@dataclass(frozen=True)
class Family:
    """A game that is a set of tasks.

    Attributes:
        env_id: Its id.
        options: Keywords of the game.
        training: Numbers of the tasks for training.
        test: Numbers of the tasks that are held out.
        tasks: All tasks as the rules hold them, float64 ``[50, p]``; p is 0 where they are no table.
        field: Field of a match's record from which the script ``expert`` reads it; empty where there is none.
        roster: The one agent.
        expert: A policy that is told the task, where no script is the expert; None where neither is there.
    """

    env_id: str
    options: Mapping[str, Any]
    training: np.ndarray
    test: np.ndarray
    tasks: np.ndarray
    field: str
    roster: Roster
    expert: OpponentSpec = None

    @property
    def has_expert(self) -> bool:
        """Whether anybody plays well."""
        return bool(self.field) or self.expert is not None

    @property
    def told(self) -> np.ndarray:
        """Tasks float32 ``[50, p]``, scaled by mean and deviation of those for training."""
        own = self.tasks[self.training]
        return ((self.tasks - own.mean(0)) / np.maximum(own.std(0), 1e-6)).astype(np.float32)

    @property
    def team(self) -> str:
        """Name of the only team."""
        return next(iter(self.roster.game.teams))

    @property
    def joint(self) -> Any:
        """The numbers of an action, see `palaestra_baselines.common.agents.JointNumbers`."""
        return next(iter(self.roster.joint.values()))

    def make_lanes(self, lanes: int, tasks: Any, **options: Any) -> Simulation:
        """Matches in tasks of these numbers, one for all lanes or one a lane."""
        return registry.make_batch(self.env_id, lanes, task=tasks, **{**self.options, "tasks": "all", **options})


def find_family(env_id: str, options: Mapping[str, Any], expert: OpponentSpec = None) -> Family:
    """The tasks of a registered id.

    Args:
        env_id: The id.
        options: Keywords of the game.
        expert: A policy that was trained with ``observe_task=True``, where no script is the expert.

    Raises:
        ValueError: It is no family of tasks, several agents play, or they make choices; an expert that cannot be used.
    """
    if "tasks" in options or "task" in options:
        raise ValueError("which tasks are played is part of the method: leave tasks= and task= out of the options")
    game, _ = registry.make_game(env_id, **options)
    if "task" not in {p.name for p in game.parameters}:
        known = ", ".join(name for name in registry.ROWS if name.startswith("palaestra/Meta"))
        raise ValueError(f"{env_id} is no family of tasks: choose from {known}")
    roster = Roster(game, numbers=True)
    if roster.agents != 1 or not roster.gives_numbers:
        raise ValueError(f"{env_id}: sequence models play one agent that gives real numbers")
    training, test = (
        numbers_of(registry.make_game(env_id, **{**options, "tasks": part})[0]) for part in ("train", "test")
    )
    count, table = int(max(*training, *test)) + 1, TABLES.get(game.name)
    tasks = np.zeros((count, 0)) if table is None else np.asarray(getattr(game.world, table), np.float64)
    field = BELIEFS.get(game.name, "")
    if field and expert is not None:
        raise ValueError(f"{env_id} has a script 'expert': leave out the policy {expert}")
    return Family(env_id, options, training, test, tasks.reshape(len(tasks), -1), field, roster, expert)


def numbers_of(game: Any) -> np.ndarray:
    """Numbers of the tasks of a game, int64."""
    return np.array(next(p for p in game.parameters if p.name == "task").values[1:], np.int64)


# ---------------------------------------------------------------------------------------------------------------- data


def play_matches(family: Family, tasks: Sequence[int] | np.ndarray, player: str, matches: int, seed: int) -> Matches:
    """Matches that a player plays in some tasks, those of a task side by side.

    Args:
        family: The tasks.
        tasks: Numbers of those that are played.
        player: A name of `KINDS`.
        matches: In each task.
        seed: Number of the run.

    Raises:
        ValueError: Nobody knows how to play these tasks.
    """
    if not family.has_expert and player != "uniform":
        raise ValueError(
            f"{family.env_id} has no script 'expert' to play {player} matches: give a policy that was trained with "
            "observe_task=True (--expert), or a folder of recorded matches (--data)"
        )
    rng, numbers = np.random.default_rng([seed, 4]), np.repeat(np.asarray(tasks, np.int64), matches)
    kinds = np.tile(np.resize(KINDS[player], matches), len(tasks))
    told = {} if family.expert is None else {"observe_task": True}
    sim = family.make_lanes(len(numbers), numbers, autoreset_mode="off", **told)
    if family.expert is None:
        guide = Guide(family, sim, wrong_tasks(family, rng)[numbers], kinds == "medium")
    else:
        guide = LearntGuide(family, sim)
    sim.reset(seed=(np.uint64(seed) << np.uint64(RUN_BITS)) + np.arange(len(numbers), dtype=np.uint64))
    size = seen(sim).shape[1] - (family.tasks.shape[1] if told else 0)
    states, actions, rewards, over = [seen(sim)[:, :size]], [], [], np.zeros(len(numbers), np.bool_)
    lengths = np.zeros(len(numbers), np.int64)
    while not over.all():
        lengths += ~over
        chosen, shape = guide.actions(), (len(numbers), family.joint.n)
        disturbed = SHARE * chosen + NOISE * rng.standard_normal(shape)
        chosen = np.where((kinds == "medium")[:, None], disturbed, chosen)
        chosen = np.where((kinds == "uniform")[:, None], rng.uniform(-1.0, 1.0, shape), chosen)
        actions.append(np.clip(chosen, -1.0, 1.0) * ~over[:, None])
        family.roster.write_actions(sim, actions[-1][:, None])
        sim.step()
        rewards.append(sim.team_rewards(family.team) * ~over)
        states.append(seen(sim)[:, :size] * ~over[:, None])
        over |= sim.terminated | sim.truncated
    sim.close()
    guide.close()
    arrays = [np.ascontiguousarray(np.stack(part, 1), np.float32) for part in (states, actions, rewards)]
    return Matches(arrays[0], arrays[1], arrays[2], lengths, numbers)


class Guide:
    """What the expert of a task would do, the true one or a wrong one, in positions of a simulation.

    Attributes:
        twin: Lanes that are given the positions and the task in which the expert believes.
    """

    def __init__(self, family: Family, sim: Simulation, beliefs: np.ndarray, is_wrong: np.ndarray) -> None:
        """Starts the lanes; ``beliefs [N, p]`` count where ``is_wrong``, bool ``[N]``."""
        self.family, self.sim, self.beliefs, self.is_wrong = family, sim, beliefs, is_wrong
        self.twin = family.make_lanes(len(is_wrong), -1, autoreset_mode="off", opponents={family.team: "expert"})
        self.twin.reset(seed=0)

    def actions(self) -> np.ndarray:
        """Scaled actions ``[N, m]``."""
        if not self.family.field:
            return np.zeros((len(self.is_wrong), self.family.joint.n))
        for name, *_ in self.sim.game.state:
            self.twin.states[name] = self.sim.states[name]
        self.twin.states[self.family.field][self.is_wrong] = self.beliefs[self.is_wrong]
        self.twin.step()
        taken: Any = self.twin.team_view(self.family.team, "actions")
        return self.family.joint.scale(np.asarray(taken)[:, 0])

    def close(self) -> None:
        """Ends the lanes."""
        self.twin.close()


class LearntGuide:
    """What a policy that is told the task would do in positions of a simulation with ``observe_task=True``."""

    def __init__(self, family: Family, sim: Simulation) -> None:
        """Loads the policy.

        Raises:
            ValueError: It cannot play the game with ``observe_task=True``.
        """
        self.family, self.sim, self.steps = family, sim, 0
        player = resolve(sim.game, family.team, family.expert)
        if not isinstance(player, Opponent):
            raise ValueError(f"{family.env_id}: the expert {family.expert} is no policy")
        self.player = player
        self.memory = np.zeros((sim.num_envs, player.memory_size))

    def actions(self) -> np.ndarray:
        """Scaled actions ``[N, m]``."""
        lanes = np.ones(self.sim.num_envs, np.bool_)
        first, self.steps = lanes & (self.steps == 0), self.steps + 1
        taken = self.player.act(self.sim.observations, None, lanes[:, None], first, self.sim.lane_seeds, self.memory)
        return self.family.joint.scale(np.asarray(taken)[:, 0])

    def close(self) -> None:
        """Nothing is left open."""


def wrong_tasks(family: Family, rng: np.random.Generator) -> np.ndarray:
    """All tasks ``[50, p]``, each turned by `ERROR_RAD` to one of both sides."""
    angles_rad = ERROR_RAD * rng.choice([-1.0, 1.0], len(family.tasks))
    if not family.field:
        return family.tasks
    x, y = family.tasks.T
    cos, sin = np.cos(angles_rad), np.sin(angles_rad)
    return np.stack([cos * x - sin * y, sin * x + cos * y], 1)


def seen(sim: Simulation) -> np.ndarray:
    """What the one agent sees, float32 ``[N, n]``."""
    observations: Any = sim.observations
    return np.array(observations[:, 0])


def read_matches(family: Family, path: Path) -> Matches:
    """Recorded matches in the training tasks, from a folder that `palaestra.data` has written.

    Raises:
        ValueError: None is there, or they do not fit.
    """
    from palaestra.data import read_data

    chosen = set(family.training.tolist())
    episodes = [episode for episode in read_data(path, family.env_id) if episode.task in chosen]
    return gather_matches([e._replace(actions=family.joint.scale(np.asarray(e.actions))) for e in episodes])


# ------------------------------------------------------------------------------------------------------------- returns


def play_returns(
    family: Family, player_of: Callable[[int], OpponentSpec], episodes: int, matches: int, seed: int
) -> np.ndarray:
    """Returns float64 ``[test tasks, episodes, matches]`` of players that play several matches one after the other.

    All tasks are played side by side, those of the same player by one of it.

    Args:
        family: The tasks.
        player_of: ``player_of(task)`` plays in a test task.
        episodes: Matches one after the other, in which a player may remember the earlier ones.
        matches: Lanes, which start from other seeds.
        seed: Number of the run.
    """
    numbers = np.repeat(family.test, matches)
    sim = family.make_lanes(len(numbers), numbers, autoreset_mode="same_step")
    by_task = {task: player_of(task) for task in family.test.tolist()}
    for player in {id(player): player for player in by_task.values()}.values():
        own = [task for task, found in by_task.items() if found is player]
        sim.set_opponent(family.team, player, np.isin(numbers, own))
    starts = np.tile(np.arange(matches, dtype=np.uint64), len(family.test))
    sim.reset(seed=(np.uint64(seed) << np.uint64(RUN_BITS)) + starts)
    returns, ended = np.zeros((len(numbers), episodes)), np.zeros(len(numbers), np.int64)
    while (ended < episodes).any():
        sim.step()
        counts = ended < episodes
        returns[counts, ended[counts]] += sim.team_rewards(family.team)[counts]
        ended += sim.terminated | sim.truncated
    sim.close()
    return returns.reshape(len(family.test), matches, episodes).swapaxes(1, 2)


def reference_returns(family: Family, player: str, episodes: int, matches: int, seed: int) -> np.ndarray:
    """Returns ``[test tasks, episodes, matches]``, as `play_returns`, of ``expert`` or ``uniform`` play."""
    if family.expert is None:
        script = "random" if player == "uniform" else player
        return play_returns(family, lambda _: script, episodes, matches, seed)
    played = play_matches(family, family.test, player, episodes * matches, seed)
    return played.rewards.sum(1, dtype=np.float64).reshape(len(family.test), episodes, matches)


def scores(returns: np.ndarray, expert: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Scores ``[tasks, episodes]``: mean returns, with those of the task's expert as 100 and of uniform play as 0.

    All are ``[tasks, episodes, matches]``.
    """
    best, none = (part.mean((1, 2))[:, None] for part in (expert, uniform))
    return 100.0 * (returns.mean(2) - none) / (best - none)
