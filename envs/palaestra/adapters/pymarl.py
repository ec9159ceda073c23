"""PyMARL's interface: one team against an opponent, for the learners of PyMARL, EPyMARL and their relatives.

`TeamMultiAgentEnv` has the methods of PyMARL's ``MultiAgentEnv``. PyMARL keeps its environments in a dict; one line in
its ``src/envs/__init__.py`` adds this one::

    REGISTRY["palaestra"] = partial(env_fn, env=TeamMultiAgentEnv)

with ``env_args: {key: "palaestra/TeamPong-v0", opponent: "tracker"}``, in EPyMARL ``api: epymarl`` besides. EPyMARL
takes ids without an edit too: see `palaestra.adapters.epymarl`.

Every agent has one Discrete: several choices of an agent are multiplied out. Observations are flat, float32. Where the
members of the team are unlike, their observations and masks are padded with zeros to the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from palaestra import registry
from palaestra.core.contract.actions import ActionError
from palaestra.core.faces.agent_io import NO_CODEC, AgentIO, controlled_slots
from palaestra.core.faces.attributes import RuleAttributes
from palaestra.core.faces.reset_arguments import start_matches
from palaestra.core.faces.screen import Screen
from palaestra.core.rng import check_seed


class TeamMultiAgentEnv(RuleAttributes):
    """One team of one match; all others are played by opponents.

    Attributes:
        sim: The simulation.
        n_agents: Members of the team.
        agents: Their names.
        agent_ios: What each sees and moves.
    """

    def __init__(
        self,
        key: str,
        *,
        api: Literal["pymarl", "epymarl"] = "pymarl",
        seed: int | None = None,
        time_limit: int | None = None,
        common_reward: bool = True,
        reward_scalarisation: Literal["sum", "mean"] = "sum",
        replay_folder: str | Path | None = None,
        **keywords: Any,
    ) -> None:
        """Makes the match; the first `reset` starts it.

        Args:
            key: Registered id.
            api: ``"pymarl"`` (`step` returns 3 values, `reset` observations and state) or ``"epymarl"`` (5 values;
                observations and info).
            seed: Of the first match; later ones go on from it.
            time_limit: Decisions until a match is cut off; the id's own if None.
            common_reward: Whether `step` gives one number, the reward of the controlled team, or a list, one a member.
            reward_scalarisation: How one number is made of the members' rewards in games that pay each member on its
                own. Where the team is paid as one, it is that reward.
            replay_folder: Where `save_replay` writes; None records nothing.
            **keywords: ``control``, ``opponent`` and all others of `gymnasium.make`.

        Raises:
            ValueError: An unknown api or reward_scalarisation; actions that are real numbers; no flat observation.
            TypeError: An unknown keyword.
        """
        if api not in ("pymarl", "epymarl"):
            raise ValueError(f'api must be "pymarl" or "epymarl", got {api!r}')
        if reward_scalarisation not in ("sum", "mean"):
            raise ValueError(f'reward_scalarisation must be "sum" or "mean", got {reward_scalarisation!r}')
        horizon = {} if time_limit is None else {"horizon": time_limit}
        self.sim, face = registry.against(key, 1, {**keywords, **horizon, "autoreset_mode": "off"})
        if unknown := sorted(set(face) - {"control", "observation"}):
            self.sim.close()
            raise TypeError(f"{unknown[0]}= is for other faces: here every agent has one Discrete and its own mask")
        game = self.sim.game
        self.api, self.common_reward, self.key = api, common_reward, key
        self._mean = reward_scalarisation == "mean"
        self._slots = list(controlled_slots(self.sim, face["control"]))
        self.agent_ios = [AgentIO(self.sim, (s,), "flat", None, NO_CODEC, choices="discrete") for s in self._slots]
        self.agents = [game.agents[slot] for slot in self._slots]
        self.n_agents = len(self.agents)
        seen: list[Any] = [agent_io.observation_space for agent_io in self.agent_ios]
        done: list[Any] = [agent_io.action_space for agent_io in self.agent_ios]
        self._sizes, self._n_actions = [space.shape[0] for space in seen], [int(space.n) for space in done]
        self._team = list(game.teams).index(face["control"])
        self._numbers = [f.name for f in game.info if not f.shape]
        self._seed = self._next_seed = None if seed is None else check_seed(seed)
        self._screen = Screen(game)
        self._stats = {"battles_game": 0, "battles_won": 0, "timeouts": 0}
        self._replay_folder = None if replay_folder is None else Path(replay_folder)
        self._recorder: Any = None
        self._take_rules(self.sim)

    @property
    def episode_limit(self) -> int:
        """Decisions after which a match is cut off."""
        return int(self.sim.parameters["horizon"][0])

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[list[np.ndarray], Any]:
        """Starts a match.

        Returns:
            Observations, and the state (``api="pymarl"``) or an info.

        Raises:
            ValueError: A wrong seed, or an option that is no parameter of the start of a match.
        """
        seed = None if seed is None else check_seed(seed)
        seed, self._next_seed = self._next_seed if seed is None else seed, None
        if self._recorder is not None:
            self._recorder.stop()
            self._recorder = None
        if self._replay_folder is not None:
            from palaestra.replay import Recorder

            self._recorder = Recorder(self.sim)
        start_matches(self.sim, options, seed=seed)
        return self.get_obs(), self.get_state() if self.api == "pymarl" else {}

    def step(self, actions: Sequence[Any]) -> tuple[Any, ...]:
        """Plays one decision.

        Args:
            actions: One integer a member (numbers, arrays or tensors of one entry). Those of members that are dead or
                not asked do not count.

        Returns:
            ``(reward, terminated, info)``, or ``(observations, reward, terminated, truncated, info)`` with
            ``api="epymarl"``. ``info`` holds numbers alone: the game's own, ``battle_won`` (the controlled team has
            won) and ``episode_limit`` (the time is up: ``terminated`` too with ``api="pymarl"``, whose runners then
            bootstrap).

        Raises:
            ActionError: Not one action a member, or one that the member does not have; names it.
        """
        given = np.asarray([int(action) for action in actions], np.int64)
        if broken := [action for action, whole in zip(actions, given.tolist(), strict=True) if action != whole]:
            raise ActionError(f"actions are whole numbers, got {broken[0]}")
        if given.shape != (self.n_agents,):
            raise ActionError(f"{self.n_agents} members need {self.n_agents} actions, got {given.size}")
        counted = self._counted()
        for k, agent_io in enumerate(self.agent_ios):
            if not counted[k]:
                continue
            if not 0 <= given[k] < self._n_actions[k]:
                raise ActionError(f"{self.agents[k]}: action {given[k]} is not one of 0 to {self._n_actions[k] - 1}")
            agent_io.write_one(given[k])
        self.sim.step()
        terminated, truncated = self.sim.terminated.item(0), self.sim.truncated.item(0)
        info = self._info(terminated, truncated)
        if self.api == "pymarl":
            return self._reward(), terminated or truncated, info
        return self.get_obs(), self._reward(), terminated, truncated, info

    def _reward(self) -> float | list[float]:
        rewards = self.sim.rewards[0, self._slots].tolist()
        if not self.common_reward:
            return rewards
        if self.sim.game.reward != "agent":
            return rewards[0]
        return sum(rewards) / (self.n_agents if self._mean else 1)

    def _info(self, terminated: bool, truncated: bool) -> dict[str, Any]:
        over, won = terminated or truncated, self.sim.info["winner"].item(0) == self._team
        self._stats["battles_game"] += over
        self._stats["battles_won"] += over and won
        self._stats["timeouts"] += truncated
        own = {name: self.sim.info[name].item(0) for name in self._numbers}
        return {**own, "battle_won": over and won, "episode_limit": truncated}

    def _counted(self) -> list[bool]:
        return (self.sim.alive[0, self._slots] & self.sim.acting[0, self._slots]).tolist()

    def get_obs(self) -> list[np.ndarray]:
        """What each member sees, float32 ``[get_obs_size()]`` each."""
        return [self.get_obs_agent(k) for k in range(self.n_agents)]

    def get_obs_agent(self, agent_id: int) -> np.ndarray:
        """What a member sees, a copy."""
        seen = np.zeros(self.get_obs_size(), np.float32)
        seen[: self._sizes[agent_id]] = self.agent_ios[agent_id].observe_one()
        return seen

    def get_obs_size(self) -> int:
        """Length of an observation."""
        return max(self._sizes)

    def get_state(self) -> np.ndarray:
        """The global state of the match, float32 ``[get_state_size()]``, a copy."""
        return self.sim.state()[0].copy()

    def get_state_size(self) -> int:
        """Length of the state."""
        return self.sim.buffers.state.shape[1]

    def get_avail_actions(self) -> list[list[int]]:
        """What each member may choose, 0 or 1 by action."""
        return [self.get_avail_agent_actions(k) for k in range(self.n_agents)]

    def get_avail_agent_actions(self, agent_id: int) -> list[int]:
        """What a member may choose; action 0 alone where its action does not count."""
        length = self.get_total_actions()
        if not self._counted()[agent_id]:
            return [1] + [0] * (length - 1)
        mask = self.agent_ios[agent_id].action_masks()[0].astype(int).tolist()
        return [*mask, *[0] * (length - len(mask))]

    def get_total_actions(self) -> int:
        """Actions of the member that has most."""
        return max(self._n_actions)

    def get_env_info(self) -> dict[str, int]:
        """The sizes that PyMARL builds its networks from."""
        return {
            "state_shape": self.get_state_size(),
            "obs_shape": self.get_obs_size(),
            "n_actions": self.get_total_actions(),
            "n_agents": self.n_agents,
            "episode_limit": self.episode_limit,
        }

    def get_stats(self) -> dict[str, float]:
        """Matches that ended, were won and were cut off since this object was made, and the share won."""
        return {**self._stats, "win_rate": self._stats["battles_won"] / max(1, self._stats["battles_game"])}

    def seed(self, seed: int | None = None) -> int | None:
        """Gives the next match a seed, where there is one. Returns the seed given last."""
        if seed is not None:
            self._seed = self._next_seed = seed
        return self._seed

    def render(self, mode: str | None = "human") -> Any:
        """Shows the match in a window, or returns a picture uint8 ``[H, W, 3]`` for ``mode="rgb_array"``."""
        return self._screen.show(self.sim, mode)

    def save_replay(self) -> Path:
        """Writes the match that is played, as a file for `palaestra.replay`. Returns its path.

        Raises:
            RuntimeError: Nothing is recorded.
        """
        if self._recorder is None or self._replay_folder is None:
            raise RuntimeError("nothing is recorded: give replay_folder=..., and play before you save")
        self._replay_folder.mkdir(parents=True, exist_ok=True)
        path = self._replay_folder / f"{registry.zoo_name(self.key)}_{self._stats['battles_game']}.npz"
        self._recorder.replay().save(path)
        return path

    def close(self) -> None:
        """Frees the simulation and the window."""
        self._screen.close()
        self.sim.suspend()


__all__ = ["TeamMultiAgentEnv"]
