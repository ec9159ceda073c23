"""PettingZoo's ParallelEnv: one match, every agent in the user's hands, or those of the teams without an opponent."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from pettingzoo import ParallelEnv

from palaestra.core.faces.ports import MaskMode, ObservationMode, Port
from palaestra.core.faces.screen import Screen, check_render_mode
from palaestra.core.simulation import ActionError, Simulation


class GameParallelEnv(ParallelEnv):
    """One match of a `Simulation` with ``num_envs=1``.

    A dead agent gets its last reward and flag in the step in which it dies, then leaves `agents`; a newcomer joins it.
    In the last step all remaining agents get the same flag. ``infos[agent]`` holds ``team``, the game's own fields,
    ``action_mask`` if asked for there, and at the end ``winner`` (a team's name or None) and ``end_reason``.
    """

    def __init__(
        self,
        sim: Simulation,
        *,
        observation: ObservationMode = "flat",
        mask: MaskMode = "obs",
        codec: str | None = None,
        render_mode: str | None = None,
        name: str | None = None,
    ) -> None:
        """Wraps a simulation of one lane in ``autoreset_mode="off"``.

        Args:
            sim: The simulation; teams with an opponent and agents that a script plays are not shown.
            observation: ``"flat"`` or ``"dict"``.
            mask: ``"obs"`` gives ``{"observation", "action_mask"}`` (a Dict of masks where the action is a Dict),
                ``"info"`` puts masks, flat always, into the infos.
            codec: One of the game's codecs.
            render_mode: ``"rgb_array"``, ``"human"`` or None.
            name: ``metadata["name"]``.
        """
        game = sim.game
        self.sim = sim
        self.metadata = {
            "name": name or game.name,
            "render_modes": ["rgb_array", "human"] if game.render else [],
            "render_fps": game.render_fps,
            "is_parallelizable": True,
            "zero_sum": game.zero_sum,
        }
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"], game.name)
        open_slots = {team: sim.open_slots(team) for team in game.teams}
        self.teams = {team: tuple(game.agents[s] for s in slots) for team, slots in open_slots.items() if slots}
        self._slot = {game.agents[s]: s for s in sorted(s for slots in open_slots.values() for s in slots)}
        self.team_of = {a: t for t, members in self.teams.items() for a in members}
        self.possible_agents = list(self._slot)
        self.agents: list[str] = []
        self._ports = {
            a: Port(sim, (slot,), observation, mask if game.legal else None, codec) for a, slot in self._slot.items()
        }
        self.observation_spaces = {a: p.observation_space for a, p in self._ports.items()}
        self.action_spaces = {a: p.action_space for a, p in self._ports.items()}
        self._screen = Screen(game)
        self._state_space: spaces.Box | None = None
        self._team_names = list(game.teams)
        self._own_fields = [f.name for f in game.info]

    @property
    def max_cycles(self) -> int:
        """Decisions until a match is truncated; may be set."""
        return int(self.sim.states["parameters"]["horizon"][0])

    @max_cycles.setter
    def max_cycles(self, value: int) -> None:
        self.sim.set_parameters(horizon=value)

    @property
    def state_space(self) -> spaces.Box:
        """Space of `state`."""
        if self._state_space is None:
            size = self.sim.state().shape[1] if self.sim._started else _state_size(self.sim)
            info = np.finfo(np.float32)
            self._state_space = spaces.Box(info.min, info.max, (size,), np.float32)
        return self._state_space

    def observation_space(self, agent: str) -> spaces.Space:
        """Space of an agent's observations, the same object each time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        """Space of an agent's actions, the same object each time."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
        """Starts a match; see `pettingzoo.ParallelEnv.reset`."""
        self.sim.reset(seed=seed)
        self.agents = self._present()
        if self.render_mode == "human":
            self.render()
        return {a: self._ports[a].observe_lane() for a in self.agents}, {a: self._info(a, False) for a in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, dict[str, Any]]]:
        """Plays one decision. Agents that are not asked now may be left out.

        Raises:
            ActionError: An action outside its space, or one missing of an agent that is asked.
            KeyError: An action of an agent that is not in the match.
        """
        sim = self.sim
        if not self.agents:
            return {}, {}, {}, {}, {}
        for agent, action in actions.items():
            if agent not in self._slot or agent not in self.agents:
                raise KeyError(f"{agent!r} is not in the match: its agents are {', '.join(self.agents)}")
            self._ports[agent].write_one(action)
        self._check_complete(actions)
        sim.step()
        terminated, truncated = bool(sim.terminated[0]), bool(sim.truncated[0])
        gone = sim.agent_terminated[0]
        asked = self.agents
        present = self._present()
        seen = [*asked, *(a for a in present if a not in asked)]
        over = terminated or truncated
        result = (
            {a: self._ports[a].observe_lane() for a in seen},
            {a: float(sim.rewards[0, self._slot[a]]) for a in seen},
            {a: terminated or (bool(gone[self._slot[a]]) and not truncated) for a in seen},
            dict.fromkeys(seen, truncated),
            {a: self._info(a, over) for a in seen},
        )
        self.agents = [] if over else present
        if self.render_mode == "human":
            self.render()
        return result

    def _present(self) -> list[str]:
        alive = self.sim.alive[0]
        return [a for a, slot in self._slot.items() if alive[slot]]

    def _check_complete(self, actions: dict[str, Any]) -> None:
        if len(actions) == len(self.agents):
            return
        acting = self.sim.acting[0]
        missing = [a for a in self.agents if a not in actions and acting[self._slot[a]]]
        if missing:
            raise ActionError(f"no action for {', '.join(missing)}")

    def _info(self, agent: str, over: bool) -> dict[str, Any]:
        sim, slot = self.sim, self._slot[agent]
        info: dict[str, Any] = {"team": self.team_of[agent], "acting": bool(sim.acting[0, slot])}
        row = sim.states["info"][0]
        for name in self._own_fields:
            value = row[name]
            info[name] = value.copy() if value.ndim else value.item()
        if sim.legal is not None:
            if self._ports[agent].mask_mode == "info":
                info["action_mask"] = self._ports[agent].mask_lane()
            info["illegal"] = int(sim.info["illegal"][0, slot])
        if over:
            winner = int(row["winner"])
            info["winner"] = self._team_names[winner] if winner >= 0 else None
            info["end_reason"] = sim.game.end_reason(int(row["end_reason"]))
        return info

    def state(self) -> np.ndarray:
        """Global state float32, for centralised critics."""
        return self.sim.state()[0]

    def render(self) -> np.ndarray | None:
        """Picture of the match as ``render_mode`` asks."""
        return self._screen.show(self.sim, self.render_mode)

    def close(self) -> None:
        """Frees the simulation and the window."""
        self._screen.close()
        self.sim.close()


def _state_size(sim: Simulation) -> int:
    game = sim.game
    if game.global_state is not None:
        return game.global_state_size
    sizes = 0
    for role in game.roles:
        sizes += len(role.agents) * sum(f.size for f in role.observation)
    sizes += len(game.teams) * sum(f.size for f in game.team_observation)
    return sizes + sum(f.size for f in game.lane_observation)
