"""A Gymnasium Env made of a PettingZoo ParallelEnv: one team learns, policies play the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from palaestra.core.faces.attributes import RuleAttributes, only_where, simulations_of
from palaestra.wrappers.joint import flat_mask
from palaestra.wrappers.teams import RewardMode, TeamAsAgent

Policy = Callable[[Any], Any]
"""Joint observation of a team (with its mask where there is one) -> joint action."""


class SingleTeam(RuleAttributes, gymnasium.Env):
    """One team of any ParallelEnv whose agents form teams, as `TeamAsAgent` sees it.

    Masks move from the observation to ``info["action_mask"]``, in the form that ``action_space.sample`` takes; see also
    `action_masks`. The match is over for the learner when its team has left, or when no agent is left.

    For the games of this suite `gymnasium.make` does the same in compiled code; this is for those of others, and for
    opponents that want one joint observation.
    """

    def __init__(
        self,
        env: Any,
        team: str | None = None,
        *,
        opponent: Policy | Mapping[str, Policy] | None = None,
        reward: RewardMode = "common",
    ) -> None:
        """Wraps an environment.

        Args:
            env: A PettingZoo ParallelEnv.
            team: Team that learns; the first if None.
            opponent: ``policy(observation) -> action`` for every other team, or a dict of them by team. None plays at
                random, within the masks; lists of candidates need a policy.
            reward: See `TeamAsAgent`.

        Raises:
            ValueError: No such team, or a team without a player, or one that cannot be played at random.
        """
        self.teams_env = env if isinstance(env, TeamAsAgent) else TeamAsAgent(env, reward=reward)
        names = self.teams_env.possible_agents
        self.team = names[0] if team is None else team
        if self.team not in names:
            raise ValueError(f"there is no team {team!r}: choose from {', '.join(names)}")
        others = [name for name in names if name != self.team]
        players = dict(opponent) if isinstance(opponent, Mapping) else dict.fromkeys(others, opponent)
        if set(players) != set(others):
            raise ValueError(f"opponents are given for {', '.join(players)}, the other teams are {', '.join(others)}")
        self._players = {name: player or self._chance(name) for name, player in players.items()}
        space: Any = self.teams_env.observation_space(self.team)
        self._masked = self.teams_env.joints[self.team].masked
        self.observation_space: spaces.Space = space["observation"] if self._masked else space
        self.action_space = self.teams_env.action_space(self.team)
        self.metadata = dict(self.teams_env.metadata)
        self.render_mode = self.teams_env.render_mode
        self._seen: dict[str, Any] = {}
        self._take_rules(*simulations_of(self.teams_env))

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Starts a match; a seed also seeds the opponents that play at random."""
        super().reset(seed=seed)
        if seed is not None:
            for number, name in enumerate(self._players):
                self.teams_env.action_space(name).seed((seed + 1 + number) % 2**63)
        self._seen, infos = self.teams_env.reset(seed=seed, options=options)
        return self._shown(self._seen[self.team], infos[self.team])

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one decision of all teams."""
        actions = {name: self._players[name](self._seen[name]) for name in self.teams_env.agents if name != self.team}
        actions[self.team] = action
        self._seen, rewards, terminations, truncations, infos = self.teams_env.step(actions)
        observation, info = self._shown(self._seen[self.team], infos[self.team])
        return observation, rewards[self.team], terminations[self.team], truncations[self.team], info

    @only_where(
        lambda env: env._has_row_of_masks, "members have no masks or lists of candidates, or the action is a Dict"
    )
    def action_masks(self) -> np.ndarray:
        """Mask of the joint choices as bool, the name that sb3-contrib's MaskablePPO calls.

        Only environments that mask a row of choices have it.

        Raises:
            RuntimeError: No match has been started.
        """
        if not self._seen:
            raise RuntimeError("action_masks before reset: call reset() first")
        mask: Any = flat_mask(self._seen[self.team]["action_mask"])
        return mask.astype(bool)

    @property
    def _has_row_of_masks(self) -> bool:
        listed = self.teams_env.joints[self.team].listed
        return self._masked and not listed and not isinstance(self.action_space, spaces.Dict)

    def render(self) -> Any:
        """Picture of the environment."""
        return self.teams_env.render()

    def close(self) -> None:
        """Closes the environment."""
        self.teams_env.close()

    def _shown(self, seen: Any, info: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        return (seen["observation"], {**info, "action_mask": seen["action_mask"]}) if self._masked else (seen, info)

    def _chance(self, team: str) -> Policy:
        space = self.teams_env.action_space(team)
        if self.teams_env.joints[team].listed:
            raise ValueError(
                f'{team} observes lists of "candidates", which this wrapper cannot sample: give '
                f"opponent={{{team!r}: policy}}"
            )
        masked = self.teams_env.joints[team].masked
        return lambda seen: space.sample(seen["action_mask"]) if masked else space.sample()
