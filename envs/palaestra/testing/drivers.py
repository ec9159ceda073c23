"""A face with its own random player: one way to drive all of them, result by result, through resets."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from gymnasium.vector.utils import concatenate, create_empty_array

from palaestra.testing.players import Player, SpacePlayer, mask_of
from palaestra.testing.snapshot_view import snapshot_view

LANES = 3
"""Lanes of a run with several."""


class Driver:
    """A face and its player. ``play()`` plays one decision and returns the results of the face.

    Attributes:
        face: The batch, Env, VectorEnv or ParallelEnv.
        name: Name for messages.
        ended: Matches that have ended.
        given: The last action.
    """

    name = ""

    def __init__(self, face: Any, seed: int) -> None:
        """Keeps a face that was not reset yet."""
        self.face, self.seed = face, seed
        self.ended = 0
        self.given: Any = None

    def start(self, seed: int | None = None) -> Any:
        """First reset. Returns the results of the face."""
        raise NotImplementedError

    def play(self) -> Any:
        """One decision, or the reset after a match. Returns the results of the face."""
        raise NotImplementedError

    def with_face(self, face: Any) -> Driver:
        """A run that continues from here with another face, a copy of this one's."""
        twin = copy.copy(self)
        twin.__dict__.update({k: copy.deepcopy(v) for k, v in vars(self).items() if k != "face"})
        twin.face = face
        return twin


class BatchDriver(Driver):
    """The simulation itself."""

    name = "batch"

    def start(self, seed: int | None = None) -> Any:
        """See `Run`."""
        self._player = Player(self.face)
        self.face.reset(seed=self.seed if seed is None else seed)
        return snapshot_view(self.face)

    def play(self) -> Any:
        """See `Run`."""
        self._player.play(self.face)
        self.face.step()
        self.ended += int((self.face.terminated | self.face.truncated).sum())
        return snapshot_view(self.face)


class EnvDriver(Driver):
    """Gymnasium's Env, reset by hand after each match."""

    name = "Env"

    def start(self, seed: int | None = None) -> Any:
        """See `Run`."""
        self._player = SpacePlayer(self.face.action_space, self.seed)
        return self._seen(self.face.reset(seed=self.seed if seed is None else seed), False)

    def play(self) -> Any:
        """See `Run`."""
        if self.over:
            return self._seen(self.face.reset(), False)
        self.given = self._player.act(mask_of(self.face.agent_io))
        result = self.face.step(self.given)
        return self._seen(result, result[2] or result[3])

    def _seen(self, result: Any, over: bool) -> Any:
        self.over = over
        self.ended += over
        return result


class VectorDriver(Driver):
    """Gymnasium's VectorEnv in any autoreset mode; with ``DISABLED`` finished lanes are reset by ``reset_mask``.

    Attributes:
        over: bool ``[N]``, matches that ended in the last step.
        mode: Name of Gymnasium's autoreset mode.
    """

    name = "VectorEnv"

    def start(self, seed: int | None = None) -> Any:
        """See `Run`."""
        n = self.face.num_envs
        self._players = [SpacePlayer(self.face.single_action_space, self.seed + i) for i in range(n)]
        self.over = np.zeros(n, np.bool_)
        self.mode = self.face.metadata["autoreset_mode"].name
        return self.face.reset(seed=self.seed if seed is None else seed)

    def play(self) -> Any:
        """See `Run`."""
        n = self.face.num_envs
        if self.mode == "DISABLED" and self.over.any():
            self.over, which = np.zeros(n, np.bool_), self.over
            return self.face.reset(options={"reset_mask": which})
        space = self.face.single_action_space
        # A lane that is reset by this step ignores its action: its player does not move on.
        asked = ~self.over if self.mode == "NEXT_STEP" else np.ones(n, np.bool_)
        players = [p if asked[i] else copy.copy(p) for i, p in enumerate(self._players)]
        actions = [p.act(mask_of(self.face.agent_io, i)) for i, p in enumerate(players)]
        self.given = concatenate(space, actions, create_empty_array(space, n))
        result = self.face.step(self.given)
        self.over = np.array(result[2] | result[3])
        self.ended += int(self.over.sum())
        return result


class ParallelDriver(Driver):
    """PettingZoo's ParallelEnv, reset by hand after each match."""

    name = "ParallelEnv"

    def start(self, seed: int | None = None) -> Any:
        """See `Run`."""
        face = self.face
        self._players = {
            a: SpacePlayer(face.action_space(a), self.seed, slot) for slot, a in enumerate(face.possible_agents)
        }
        return face.reset(seed=self.seed if seed is None else seed)

    def play(self) -> Any:
        """See `Run`."""
        if not self.face.agents:
            return self.face.reset()
        self.given = {a: self._players[a].act(mask_of(self.face.agent_ios[a])) for a in self.face.agents}
        result = self.face.step(self.given)
        self.ended += not self.face.agents
        return result


def pay_ends(sim: Any, always: bool = False) -> None:
    """Lets matches that end unpaid be paid from now on, another amount for each lane and team, and have a winner.

    Most games pay nothing when the horizon cuts a match: a face that takes away what is told then would not be seen.
    With ``always`` every unpaid decision is paid.
    """
    step, teams = sim.step, sim.game.team_index
    share = np.where(teams == 0, 1.0, -1.0) if len(sim.game.teams) == 2 else 1.0 + teams
    amounts = (1.0 + 0.25 * np.arange(sim.num_envs))[:, None] * share

    def paid_step(*given: Any, **options: Any) -> None:
        step(*given, **options)
        ended = sim.terminated | sim.truncated
        unpaid = ~sim.rewards.any(axis=1) & (ended | always)
        if unpaid.any():
            sim.rewards[unpaid] = amounts[unpaid]
            same_step = sim.autoreset_mode == "same_step"  # the next match has begun
            told = (sim.final_info,) if same_step else (sim.info, {"winner": sim.buffers.winners})
            for info in told if len(sim.game.teams) == 2 else ():
                info["winner"][unpaid & ended & (info["winner"] < 0)] = 0

    sim.step = paid_step


def drivers(subject: Any, seed: int, batch: bool = True, **options: Any) -> list[Driver]:
    """A run of each face, not started."""
    made: list[Driver] = [BatchDriver(subject.batch(LANES, **options), seed)] if batch else []
    made.append(EnvDriver(subject.env(**options), seed))
    made.append(VectorDriver(subject.vec(LANES, **options), seed))
    made.append(ParallelDriver(subject.parallel(**options), seed))
    return made
